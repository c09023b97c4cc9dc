// t_embedded_check - damaged, foreign and short files: found, named, and never a crash
// SPDX-License-Identifier: BSD-3-Clause
#include "embeddedhelp.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "back/embedded_check.h"
#include "back/embedded_install.h"
#include "back/embedded_page.h"

#define KEYS 600

/* A file with small and large values, free pages, two tenants and a flush; and what is in it. */
struct scene {
    struct world world;
    char path[128];
    uint8_t *bytes;
    size_t len;
};

static void read_file(struct scene *scene)
{
    struct stat st;
    int fd = open(scene->path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    scene->len = (size_t)st.st_size;
    scene->bytes = malloc(scene->len);
    assert_non_null(scene->bytes);
    assert_int_equal(read(fd, scene->bytes, scene->len), scene->len);
    close(fd);
}

static void write_file(const struct scene *scene, const uint8_t *bytes, size_t len)
{
    int fd = open(scene->path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    close(fd);
}

static int set_up(void **state)
{
    struct scene *scene = calloc(1, sizeof *scene);
    assert_non_null(scene);
    struct world *world = &scene->world;
    char key[16];
    static uint8_t large[9000];
    uint32_t other;
    world_init(world, HG_EMBEDDED_WRITING_INLINE, HG_EMBEDDED_SYNC_NEVER);
    world_open(world);
    world_path(world, scene->path, "");
    assert_int_equal(hg_embedded_tenant_id(world->shared, "other", &other), 0);
    for (unsigned n = 0; n < KEYS; n++) {
        snprintf(key, sizeof key, "key%u", n);
        struct ask set =
            run(world, HG_OP_SET, key, hg_span(large, n % 20 == 0 ? sizeof large : n % 300), 0, 0);
        ask_fini(&set);
    }
    for (unsigned n = 0; n < KEYS; n += 3) {
        snprintf(key, sizeof key, "key%u", n);
        put(world, HG_OP_DELETE, key, "", 0);
    }
    world_close(world);
    read_file(scene);
    *state = scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    world_fini(&scene->world);
    free(scene->bytes);
    free(scene);
    return 0;
}

static int check(const struct scene *scene, struct hg_embedded_found *found, char error[512])
{
    int fd = open(scene->path, O_RDONLY);
    assert_true(fd >= 0);
    error[0] = '\0';
    int rc = hg_embedded_check(fd, scene->path, found, error, 512);
    close(fd);
    if (rc != 0)
        assert_non_null(strstr(error, scene->path));
    return rc;
}

/* The store's own start: 0 or what is wrong. */
static int start(struct scene *scene, char error[512])
{
    struct hg_embedded_shared *shared;
    int rc = hg_embedded_open(&scene->world.options, &shared, error, 512);
    if (rc == 0)
        hg_embedded_close(shared);
    return rc;
}

static void a_sound_file(void **state)
{
    struct scene *scene = *state;
    struct hg_embedded_found found;
    char error[512];
    assert_int_equal(check(scene, &found, error), 0);
    assert_int_equal(found.items, KEYS - KEYS / 3);
    assert_int_equal(found.tenants, 2);
    assert_int_equal(found.format, HG_EMBEDDED_FORMAT);
    assert_int_equal(found.cas, KEYS);
    world_open(&scene->world);
    struct hg_embedded_stats stats;
    hg_embedded_stats_read(scene->world.shared, &stats);
    assert_int_equal(stats.used_bytes, found.used_bytes);
    assert_int_equal(stats.items, found.items);
}

/* Shorter at every page: refused, at a start and by a full look. What is missing only pages that
   are free is fine. */
static void truncated(void **state)
{
    struct scene *scene = *state;
    struct hg_embedded_found found;
    char error[512];
    unsigned refused = 0;
    for (size_t len = scene->len - 1; len > 4096; len = len - 4096 > 4096 ? len - 4096 : 1) {
        write_file(scene, scene->bytes, len);
        int rc = check(scene, &found, error);
        assert_int_equal(start(scene, error) == 0, rc == 0);
        if (rc != 0) {
            assert_int_equal(rc, -EINVAL);
            refused++;
        } else {
            write_file(scene, scene->bytes, scene->len);
        }
    }
    assert_true(refused > 5);
    for (size_t len = 1; len < 4096; len += 300) {
        write_file(scene, scene->bytes, len);
        assert_int_equal(check(scene, &found, error), -EINVAL);
        assert_int_equal(start(scene, error), -EINVAL);
        assert_non_null(strstr(error, scene->path));
    }
}

static void not_ours(void **state)
{
    struct scene *scene = *state;
    struct hg_embedded_found found;
    char error[512];
    uint8_t *bytes = malloc(scene->len);
    assert_non_null(bytes);

    memset(bytes, 0x5a, scene->len);
    write_file(scene, bytes, scene->len);
    assert_int_equal(check(scene, &found, error), -EINVAL);
    assert_non_null(strstr(error, "no LMDB file"));
    assert_int_equal(start(scene, error), -EINVAL);

    memcpy(bytes, scene->bytes, scene->len);
    bytes[20] = bytes[4096 + 20] = 2; /* LMDB's own version */
    write_file(scene, bytes, scene->len);
    assert_int_equal(check(scene, &found, error), -EINVAL);
    assert_non_null(strstr(error, "version 2 of LMDB's format, this program reads version 1"));
    assert_int_equal(start(scene, error), -EINVAL);

    memcpy(bytes, scene->bytes, scene->len);
    for (size_t i = 0; i + 8 < scene->len; i++)
        if (memcmp(bytes + i, "HGES\0\0\0\1", 8) == 0)
            bytes[i + 7] = 9; /* ours */
    write_file(scene, bytes, scene->len);
    assert_int_equal(check(scene, &found, error), -EINVAL);
    assert_non_null(strstr(error, "has format version 9, this program reads version 1"));
    assert_int_equal(start(scene, error), -EINVAL);
    assert_non_null(strstr(error, "has format version 9, this program reads version 1"));

    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_val key = {6, "foreign"}, value = {5, "value"};
    unlink(scene->path);
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_open(env, scene->path, MDB_NOSUBDIR, 0600), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    assert_int_equal(mdb_put(txn, dbi, &key, &value, 0), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    assert_int_equal(check(scene, &found, error), -EINVAL);
    assert_non_null(strstr(error, "no embedded store"));
    assert_int_equal(start(scene, error), -EINVAL);
    free(bytes);
}

/* Bytes changed anywhere in what is in use: most is noticed, and what is called sound can be read
   to its end. */
static void garbled(void **state)
{
    struct scene *scene = *state;
    struct hg_embedded_found found;
    char error[512];
    uint32_t random = 1;
    unsigned noticed = 0, heads = 0, heads_noticed = 0;
    uint8_t *bytes = malloc(scene->len);
    assert_non_null(bytes);
    for (unsigned i = 0; i < 1500; i++) {
        memcpy(bytes, scene->bytes, scene->len);
        random = random * 1664525 + 1013904223;
        size_t page = (random >> 8) % (scene->len / 4096);
        random = random * 1664525 + 1013904223;
        /* Heads of pages more often than the rest: there lies what is followed. */
        bool in_head = i % 2 == 0;
        size_t at = page * 4096 + (random >> 8) % (in_head ? 40 : 4096);
        random = random * 1664525 + 1013904223;
        bytes[at] ^= (uint8_t)((random >> 8) % 255 + 1);
        write_file(scene, bytes, scene->len);
        int rc = check(scene, &found, error);
        heads += in_head;
        noticed += rc != 0;
        heads_noticed += in_head && rc != 0;
        if (rc == 0 && i % 8 == 0) {
            world_open(&scene->world);
            for (unsigned n = 0; n < KEYS; n += 7) {
                char key[16];
                snprintf(key, sizeof key, "key%u", n);
                struct ask get = run(&scene->world, HG_OP_GET, key, HG_SPAN_NONE, 0, 0);
                ask_fini(&get);
            }
            assert_int_equal(put(&scene->world, HG_OP_SET, "new", "value", 0), HG_STATUS_SUCCESS);
            world_close(&scene->world);
        }
    }
    free(bytes);
    print_message("# %u of 1500 changes noticed, of heads %u of %u\n", noticed, heads_noticed,
                  heads);
    /* Most pages of this file are free, or lie within a long value. */
    assert_true(heads_noticed * 5 > heads);
}

/* Calls `spoil` with each node of each leaf of a copy of the file, until it has spoilt one. */
static void spoil_one(struct scene *scene,
                      bool (*spoil)(const struct hg_embedded_node *node, uint8_t *page),
                      const char *text)
{
    struct hg_embedded_pages pages = {scene->bytes, scene->len, 4096};
    struct hg_embedded_found found;
    char error[512];
    bool done = false;
    for (uint64_t number = 2; number < scene->len / 4096 && !done; number++) {
        uint8_t *page = scene->bytes + number * 4096;
        int nodes =
            hg_embedded_page_flags(page) == HG_EMBEDDED_PAGE_LEAF && hg_embedded_u64(page) == number
                ? hg_embedded_page_nodes(&pages, page)
                : 0;
        for (int i = 0; i < nodes && !done; i++) {
            struct hg_embedded_node node;
            uint8_t kept[4096];
            memcpy(kept, page, sizeof kept);
            done = hg_embedded_page_node(&pages, page, (unsigned)i, &node) && spoil(&node, page);
            write_file(scene, scene->bytes, scene->len);
            /* A page that no tree has any more does not matter. */
            done = done && check(scene, &found, error) != 0;
            if (!done)
                memcpy(page, kept, sizeof kept);
        }
    }
    assert_true(done);
    if (strstr(error, text) == NULL)
        fail_msg("%s", error);
}

/* As long as its place and some of the next one's, and still within the page. */
static bool lengthen(const struct hg_embedded_node *node, uint8_t *page)
{
    uint16_t longer = (uint16_t)(node->data_bytes + 16);
    if (node->flags != 0 || node->key.len < 9 || node->data + longer > page + 4096)
        return false;
    memcpy(page + (node->key.at - page) - HG_EMBEDDED_NODE_HEAD, &longer, sizeof longer);
    return true;
}

/* Nodes that share bytes: the library would write beyond the page when it moves them. */
static void overlapping(void **state)
{
    spoil_one(*state, lengthen, "or over another");
}

static bool share(const struct hg_embedded_node *node, uint8_t *page)
{
    static uint64_t first;
    if ((node->flags & HG_EMBEDDED_NODE_BIG) == 0)
        return false;
    if (first == 0)
        first = hg_embedded_u64(node->data);
    if (hg_embedded_u64(node->data) == first)
        return false;
    memcpy(page + (node->data - page), &first, sizeof first);
    return true;
}

/* Two values in the same pages: one would be written over when the other is deleted. */
static void shared_pages(void **state)
{
    spoil_one(*state, share, "used more than once");
}

static bool soil(const struct hg_embedded_node *node, uint8_t *page)
{
    (void)node;
    page[10] |= 0x10;
    return true;
}

/* A page that says it is being written: the library would look for it in its memory. */
static void dirty(void **state)
{
    spoil_one(*state, soil, "not what its place asks for");
}

static void installed(void **state)
{
    struct scene *scene = *state;
    struct hg_embedded_found found;
    char error[512], from[160];
    snprintf(from, sizeof from, "%s/copy", scene->world.dir);
    assert_int_equal(rename(scene->path, from), 0);
    assert_int_equal(
        hg_embedded_install(scene->world.dir, "main", from, false, &found, error, sizeof error), 0);
    assert_int_equal(found.items, KEYS - KEYS / 3);
    assert_int_equal(
        hg_embedded_install(scene->world.dir, "main", from, false, &found, error, sizeof error),
        -EEXIST);
    assert_int_equal(
        hg_embedded_install(scene->world.dir, "main", from, true, &found, error, sizeof error), 0);
    world_open(&scene->world);
    assert_int_equal(
        hg_embedded_install(scene->world.dir, "main", from, true, &found, error, sizeof error),
        -EBUSY);
    assert_int_equal(items(&scene->world), KEYS - KEYS / 3);
    world_close(&scene->world);
    /* A damaged one leaves the store alone. */
    assert_int_equal(truncate(from, 20000), 0);
    assert_int_equal(
        hg_embedded_install(scene->world.dir, "main", from, true, &found, error, sizeof error),
        -EINVAL);
    world_open(&scene->world);
    assert_int_equal(items(&scene->world), KEYS - KEYS / 3);
    unlink(from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_sound_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(truncated, set_up, tear_down),
        cmocka_unit_test_setup_teardown(not_ours, set_up, tear_down),
        cmocka_unit_test_setup_teardown(garbled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(overlapping, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shared_pages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(dirty, set_up, tear_down),
        cmocka_unit_test_setup_teardown(installed, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
