// t_embedded_kill - a process is killed in the middle of its writes: what it answered is there
// SPDX-License-Identifier: BSD-3-Clause
//
// A child writes rising numbers and tells each answered one through a pipe; it is killed without
// warning after a while, each time later. Then the file is opened and compared with what was told.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "back/embedded_check.h"
#include "embeddedhelp.h"

#define KEYS   40
#define ROUNDS 12

/* One answered write. */
struct told {
    uint32_t key;
    uint32_t number;
    uint64_t cas;
};

static void child_must(bool is_true)
{
    if (!is_true)
        _exit(3);
}

/* Writes until it is killed. Every fourth write is a delete, told with number 0. */
static void child(struct world *world, int fd, uint32_t number)
{
    struct ask asks[KEYS];
    char error[256], values[KEYS][600];
    child_must(hg_embedded_open(&world->options, &world->shared, error, sizeof error) == 0);
    child_must(hg_loop_init(&world->loop) == 0);
    child_must(hg_embedded_store_new(world->shared, &world->loop, &world->store) == 0);
    child_must(hg_embedded_tenant_id(world->shared, "shop", &world->tenant_id) == 0);
    for (;; number++) {
        for (uint32_t k = 0; k < KEYS; k++) {
            char key[16];
            snprintf(key, sizeof key, "key%u", k);
            bool del = (number + k) % 4 == 0;
            ask_init(&asks[k], world, del ? HG_OP_DELETE : HG_OP_SET, key);
            int len = snprintf(values[k], sizeof values[k], "%u %0*u", number,
                               (int)(number * 7 + k) % 500 + 1, k);
            asks[k].call.value = hg_span(values[k], del ? 0 : (size_t)len);
            ask_submit(&asks[k]);
        }
        for (uint32_t k = 0; k < KEYS; k++) {
            while (!asks[k].is_done)
                hg_loop_turn(&world->loop, true);
            bool del = asks[k].call.op == HG_OP_DELETE;
            child_must(asks[k].result.status == HG_STATUS_SUCCESS ||
                       (del && asks[k].result.status == HG_STATUS_KEY_ENOENT));
            struct told told = {k, del ? 0 : number, asks[k].result.cas};
            child_must(write(fd, &told, sizeof told) == sizeof told);
            ask_fini(&asks[k]);
        }
    }
}

/* Reads what the child tells, and kills it after `until` answers. */
static uint32_t listen_and_kill(pid_t pid, int fd, uint32_t until, struct told last[KEYS],
                                uint64_t *highest_cas)
{
    struct told told;
    uint32_t count = 0, highest = 0;
    while (read(fd, &told, sizeof told) == sizeof told) {
        if (++count == until)
            assert_int_equal(kill(pid, SIGKILL), 0);
        assert_true(told.key < KEYS);
        assert_true(told.cas == 0 || told.cas > *highest_cas);
        if (told.cas != 0)
            *highest_cas = told.cas;
        last[told.key] = told;
        if (told.number > highest)
            highest = told.number;
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_true(count >= until);
    return highest;
}

/* What was told is there, or what the next, unanswered round made of it. */
static void compare(struct world *world, const struct told last[KEYS], uint32_t highest)
{
    for (uint32_t k = 0; k < KEYS; k++) {
        char key[16];
        snprintf(key, sizeof key, "key%u", k);
        struct ask get = run(world, HG_OP_GET, key, HG_SPAN_NONE, 0, 0);
        uint32_t found = 0;
        if (get.result.status == HG_STATUS_SUCCESS) {
            found = (uint32_t)strtoul((char *)get.value, NULL, 10);
            uint32_t tail = (uint32_t)strtoul(strchr((char *)get.value, ' '), NULL, 10);
            assert_int_equal(tail, k);
        }
        bool next_deletes = (highest + 1 + k) % 4 == 0 || (highest + k) % 4 == 0;
        if (found != last[k].number && !(found > last[k].number && found <= highest + 1) &&
            !(found == 0 && next_deletes))
            fail_msg("key %u holds %u, %u was answered, %u is the highest", k, found,
                     last[k].number, highest);
        ask_fini(&get);
    }
}

static void killed(enum hg_embedded_writing writing, enum hg_embedded_sync sync)
{
    struct world world;
    struct told last[KEYS] = {{0, 0, 0}};
    uint32_t number = 1;
    uint64_t highest_cas = 0;
    world_init(&world, writing, sync);
    world.options.wall_s = NULL;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            close(fds[0]);
            child(&world, fds[1], number);
        }
        close(fds[1]);
        uint32_t highest = listen_and_kill(pid, fds[0], 50 + round * 131, last, &highest_cas);
        close(fds[0]);
        world_open(&world);
        compare(&world, last, highest);
        /* A CAS that was answered is never given again. */
        struct ask set = run(&world, HG_OP_SET, "another", HG_SPAN_LIT("v"), 0, 0);
        assert_true(set.result.cas > highest_cas);
        highest_cas = set.result.cas;
        ask_fini(&set);
        world_close(&world);
        number = highest + 2;
    }
    world_fini(&world);
}

static void killed_as_the_writer(void **state)
{
    (void)state;
    killed(HG_EMBEDDED_WRITING_INLINE, HG_EMBEDDED_SYNC_SECOND);
}

static void killed_with_a_writer_thread(void **state)
{
    (void)state;
    killed(HG_EMBEDDED_WRITING_THREAD, HG_EMBEDDED_SYNC_SECOND);
}

static void killed_without_any_sync(void **state)
{
    (void)state;
    killed(HG_EMBEDDED_WRITING_THREAD, HG_EMBEDDED_SYNC_NEVER);
}

/* Writes new keys into a full store that evicts until it is killed; tells each number. */
static void evicting_child(struct world *world, int fd, uint32_t number)
{
    char error[256], key[32], value[400];
    struct ask ask;
    child_must(hg_embedded_open(&world->options, &world->shared, error, sizeof error) == 0);
    child_must(hg_loop_init(&world->loop) == 0);
    child_must(hg_embedded_store_new(world->shared, &world->loop, &world->store) == 0);
    child_must(hg_embedded_tenant_id(world->shared, "shop", &world->tenant_id) == 0);
    memset(value, 'v', sizeof value);
    for (;; number++) {
        snprintf(key, sizeof key, "%08x", number * 2654435761u);
        ask_init(&ask, world, HG_OP_SET, key);
        ask.call.value = hg_span(value, sizeof value);
        ask_submit(&ask);
        while (!ask.is_done)
            hg_loop_turn(&world->loop, true);
        child_must(ask.result.status == HG_STATUS_SUCCESS);
        child_must(write(fd, &number, sizeof number) == sizeof number);
        ask_fini(&ask);
    }
}

static uint32_t listen_and_kill_evicting(pid_t pid, int fd, uint32_t until)
{
    uint32_t number = 0, count = 0;
    int status;
    while (read(fd, &number, sizeof number) == sizeof number)
        if (++count == until)
            assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return number;
}

/* Killed while it evicts: the file is sound, within its quota, and has the newest. */
static void killed_while_evicting(void **state)
{
    struct world world;
    struct hg_embedded_found found;
    char path[128], error[512], key[32];
    (void)state;
    uint32_t number = 1;
    world_init(&world, HG_EMBEDDED_WRITING_THREAD, HG_EMBEDDED_SYNC_NEVER);
    world.options.wall_s = NULL;
    world.options.evict = true;
    world.options.max_bytes = 1u << 20;
    world_path(&world, path, "");
    for (uint32_t round = 0; round < ROUNDS; round++) {
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            close(fds[0]);
            evicting_child(&world, fds[1], number);
        }
        close(fds[1]);
        number = listen_and_kill_evicting(pid, fds[0], (round == 0 ? 3000 : 300) + round * 37);
        close(fds[0]);
        int fd = open(path, O_RDONLY);
        assert_true(fd >= 0);
        if (hg_embedded_check(fd, path, &found, error, sizeof error) != 0)
            fail_msg("%s", error);
        close(fd);
        assert_true(found.used_bytes <= world.options.max_bytes);
        world_open(&world);
        for (uint32_t n = number; n > number - 50; n--) {
            snprintf(key, sizeof key, "%08x", n * 2654435761u);
            struct ask get = run(&world, HG_OP_GET, key, HG_SPAN_NONE, 0, 0);
            assert_int_equal(get.result.status, HG_STATUS_SUCCESS);
            ask_fini(&get);
        }
        world_close(&world);
        number++;
    }
    world_fini(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_while_evicting),
        cmocka_unit_test(killed_as_the_writer),
        cmocka_unit_test(killed_with_a_writer_thread),
        cmocka_unit_test(killed_without_any_sync),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
