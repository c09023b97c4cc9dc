// t_embedded_copy - a copy of a store that serves: consistent, whole, and never in its way
// SPDX-License-Identifier: BSD-3-Clause
#include "embeddedhelp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>

#include "back/embedded_check.h"
#include "back/embedded_copy.h"

static enum hg_embedded_writing writings[] = {HG_EMBEDDED_WRITING_INLINE,
                                              HG_EMBEDDED_WRITING_THREAD};

static int set_up(void **state)
{
    (void)world_for(state);
    return 0;
}

static uint16_t set_number(struct world *world, const char *name, unsigned n, size_t len)
{
    char key[32];
    char *value = malloc(len + 1);
    assert_non_null(value);
    snprintf(key, sizeof key, "%s%u", name, n);
    memset(value, 'x', len);
    value[len] = '\0';
    uint16_t status = put(world, HG_OP_SET, key, value, 0);
    free(value);
    return status;
}

static struct hg_embedded_copy *begin(struct world *world)
{
    struct hg_embedded_copy *copy = NULL;
    char error[256] = "";
    if (hg_embedded_copy_begin(world->shared, &copy, error, sizeof error) != 0)
        fail_msg("begin: %s", error);
    return copy;
}

static struct hg_embedded_copy_view view_of(struct hg_embedded_copy *copy)
{
    struct hg_embedded_copy_view view;
    hg_embedded_copy_look(copy, &view);
    return view;
}

/* Reads the copy into the place of a store in a folder of its own, and opens that. */
static void open_copy(struct hg_embedded_copy *copy, const struct world *like, struct world *ret)
{
    struct hg_embedded_copy_view view = view_of(copy);
    struct hg_embedded_found found;
    char path[128], error[256];
    uint8_t digest[EVP_MAX_MD_SIZE];
    assert_int_equal(view.state, HG_EMBEDDED_COPY_DONE);
    uint8_t *bytes = malloc(view.bytes);
    assert_non_null(bytes);
    for (uint64_t at = 0; at < view.bytes; at += 100000) {
        size_t piece = view.bytes - at < 100000 ? (size_t)(view.bytes - at) : 100000;
        assert_int_equal(hg_embedded_copy_read(copy, at, bytes + at, piece), 0);
    }
    assert_int_equal(EVP_Digest(bytes, view.bytes, digest, NULL, EVP_sha256(), NULL), 1);
    assert_memory_equal(digest, view.sha256, sizeof view.sha256);
    world_init(ret, like->options.writing, HG_EMBEDDED_SYNC_NEVER);
    world_path(ret, path, "");
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, view.bytes), view.bytes);
    if (hg_embedded_check(fd, path, &found, error, sizeof error) != 0)
        fail_msg("%s", error);
    close(fd);
    free(bytes);
    world_open(ret);
}

static unsigned count_files(const struct world *world)
{
    unsigned count = 0;
    DIR *dir = opendir(world->dir);
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

/* Pairs are written all the time, first a, then b: in the copy no b is newer than its a, nothing
   that was answered before the begin is missing, and nothing comes from after it. */
static void consistent_under_load(void **state)
{
    struct world *world = *state, restored;
    char key[32];
    world_open(world);
    for (unsigned n = 0; n < 300; n++)
        set_number(world, "old", n, n % 50 == 0 ? 20000 : 200);
    put(world, HG_OP_SET, "expires", "later", 100);
    struct ask with_cas = run(world, HG_OP_SET, "cas", HG_SPAN_LIT("v"), 0, 0);
    unsigned files = count_files(world);
    for (unsigned n = 0; n < 50; n++) {
        set_number(world, "a", n, 500);
        set_number(world, "b", n, 500);
    }
    struct hg_embedded_copy *copy = begin(world), *second = NULL;
    char error[256];
    assert_int_equal(hg_embedded_copy_begin(world->shared, &second, error, sizeof error), -EBUSY);
    unsigned pairs = 50;
    while (view_of(copy).state == HG_EMBEDDED_COPY_RUNS || pairs < 200) {
        set_number(world, "a", pairs, 500);
        set_number(world, "b", pairs, 500);
        pairs++;
    }
    assert_int_equal(count_files(world), files);
    open_copy(copy, world, &restored);
    hg_embedded_copy_end(copy);
    unsigned a = 0, b = 0;
    for (unsigned n = 0; n < pairs; n++) {
        snprintf(key, sizeof key, "a%u", n);
        struct ask get = run(&restored, HG_OP_GET, key, HG_SPAN_NONE, 0, 0);
        a += get.result.status == HG_STATUS_SUCCESS;
        assert_true(get.result.status == HG_STATUS_SUCCESS ? a == n + 1 : true);
        ask_fini(&get);
        snprintf(key, sizeof key, "b%u", n);
        get = run(&restored, HG_OP_GET, key, HG_SPAN_NONE, 0, 0);
        b += get.result.status == HG_STATUS_SUCCESS;
        ask_fini(&get);
    }
    assert_true(b >= 50 && (a == b || a == b + 1));
    assert_int_equal(items(&restored), 302 + a + b);
    expect(&restored, "expires", "later");
    atomic_fetch_add(&restored.wall_s, 101);
    hg_loop_turn(&restored.loop, false);
    expect(&restored, "expires", NULL);
    struct ask get = run(&restored, HG_OP_GET, "cas", HG_SPAN_NONE, 0, 0);
    assert_int_equal(get.result.cas, with_cas.result.cas);
    assert_int_equal(get.result.item_flags, 0xa1b2c3d4);
    ask_fini(&get);
    /* No CAS is given twice. */
    struct ask set = run(&restored, HG_OP_SET, "new", HG_SPAN_LIT("v"), 0, 0);
    assert_true(set.result.cas > with_cas.result.cas + a + b);
    ask_fini(&set);
    ask_fini(&with_cas);
    world_fini(&restored);
    copy = begin(world); /* another may follow */
    hg_embedded_copy_end(copy);
}

/* Ended at once, or while it runs: nothing is left, and the next one may begin. */
static void given_up(void **state)
{
    struct world *world = *state;
    world_open(world);
    for (unsigned n = 0; n < 200; n++)
        set_number(world, "k", n, 50000);
    unsigned files = count_files(world);
    for (unsigned n = 0; n < 20; n++) {
        struct hg_embedded_copy *copy = begin(world);
        for (unsigned i = 0; i < n; i++)
            (void)view_of(copy);
        hg_embedded_copy_end(copy);
        assert_int_equal(count_files(world), files);
    }
}

/* What the writer does when LMDB finds no page: a copy that still holds some is stopped, and one
   that is made already is left alone. */
static void gives_way(void **state)
{
    struct world *world = *state;
    struct hg_embedded_copy_view view;
    world_open(world);
    for (unsigned n = 0; n < 400; n++)
        set_number(world, "k", n, 50000);
    bool gave_way = false;
    for (unsigned i = 0; i < 50 && !gave_way; i++) {
        struct hg_embedded_copy *copy = begin(world);
        gave_way = hg_embedded_copy_give_way(world->shared);
        TURN_UNTIL(world, (view = view_of(copy)).state != HG_EMBEDDED_COPY_RUNS);
        assert_int_equal(view.state == HG_EMBEDDED_COPY_FAILED, gave_way);
        if (gave_way)
            assert_non_null(strstr(view.why, "no page left"));
        else
            assert_false(hg_embedded_copy_give_way(world->shared));
        hg_embedded_copy_end(copy);
    }
    assert_true(gave_way);
    assert_false(hg_embedded_copy_give_way(world->shared));
}

/* A map that is nearly full: copies come and go, every write is done. */
static void writes_at_the_end_of_the_map(void **state)
{
    struct world *world = *state;
    struct hg_embedded_stats stats;
    unsigned ended = 0;
    world->options.max_bytes = 4u << 20;
    world->options.map_bytes = 8u << 20;
    world_open(world);
    struct hg_embedded_copy *copy = begin(world);
    for (unsigned n = 0; n < 1500; n++) {
        assert_int_equal(set_number(world, "k", n % 60, 50000), HG_STATUS_SUCCESS);
        if (view_of(copy).state == HG_EMBEDDED_COPY_RUNS)
            continue;
        ended++;
        hg_embedded_copy_end(copy);
        copy = begin(world);
    }
    /* On a busy machine the first one still runs: its end is waited for. */
    TURN_UNTIL(world, ended > 0 || view_of(copy).state != HG_EMBEDDED_COPY_RUNS);
    hg_embedded_copy_end(copy);
    hg_embedded_stats_read(world->shared, &stats);
    assert_int_equal(stats.refused_full, 0);
    assert_int_equal(stats.write_errors, 0);
}

#define IN_MODE(fn, m)                                                                             \
    {                                                                                              \
#fn " " #m, fn, set_up, world_tear_down, &writings[m]                                      \
    }
#define IN_EACH_MODE(fn) IN_MODE(fn, 0), IN_MODE(fn, 1)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_EACH_MODE(consistent_under_load),
        IN_EACH_MODE(given_up),
        IN_EACH_MODE(gives_way),
        IN_EACH_MODE(writes_at_the_end_of_the_map),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
