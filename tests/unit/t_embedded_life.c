// t_embedded_life - what outlives what: restarts, tenants, flushes, expiry, and files that are
// wrong SPDX-License-Identifier: BSD-3-Clause
#include "embeddedhelp.h"

#include <fcntl.h>

static enum hg_embedded_writing writings[] = {HG_EMBEDDED_WRITING_INLINE,
                                              HG_EMBEDDED_WRITING_THREAD};

static int set_up(void **state)
{
    struct world *world = world_for(state);
    world_open(world);
    return 0;
}

static void after_a_restart(void **state)
{
    struct world *world = *state;
    struct ask set = run(world, HG_OP_SET, "k", HG_SPAN_LIT("v"), 0, 0);
    uint32_t id = world->tenant_id;
    world_reopen(world);
    assert_int_equal(world->tenant_id, id);
    struct ask get = run(world, HG_OP_GET, "k", HG_SPAN_NONE, 0, 0);
    assert_string_equal(get.value, "v");
    assert_int_equal(get.result.cas, set.result.cas);
    assert_int_equal(get.result.item_flags, 0xa1b2c3d4);
    /* CAS goes on rising. */
    struct ask again = run(world, HG_OP_SET, "k2", HG_SPAN_LIT("v"), 0, 0);
    assert_true(again.result.cas > set.result.cas);
    ask_fini(&set);
    ask_fini(&get);
    ask_fini(&again);
}

static void expired_items(void **state)
{
    struct world *world = *state;
    put(world, HG_OP_SET, "relative", "v", 10);
    put(world, HG_OP_SET, "absolute", "v", WALL_START + 10);
    put(world, HG_OP_SET, "past", "v", WALL_START - 1);
    put(world, HG_OP_SET, "for ever", "v", 0);
    put(world, HG_OP_SET, "touched", "v", 10);
    put(world, HG_OP_TOUCH, "touched", "", 20);
    expect(world, "past", NULL);
    hg_loop_turn(&world->loop, false);
    atomic_store(&world->wall_s, WALL_START + 9);
    expect(world, "relative", "v");
    expect(world, "absolute", "v");
    hg_loop_turn(&world->loop, false);
    atomic_store(&world->wall_s, WALL_START + 10);
    expect(world, "relative", NULL);
    expect(world, "absolute", NULL);
    expect(world, "touched", "v");
    assert_int_equal(put(world, HG_OP_TOUCH, "relative", "", 0), HG_STATUS_KEY_ENOENT);
    assert_int_equal(put(world, HG_OP_ADD, "absolute", "new", 0), HG_STATUS_SUCCESS);
    expect(world, "absolute", "new");
    /* Nobody asks for what is left of them: the sweeper finds it. */
    put(world, HG_OP_SET, "forgotten", "v", 5);
    hg_loop_turn(&world->loop, false);
    atomic_store(&world->wall_s, WALL_START + 21);
    TURN_UNTIL(world, items(world) == 2);
    expect(world, "for ever", "v");
    expect(world, "touched", NULL);
}

static void the_sweeper_works_in_steps(void **state)
{
    struct world *world = *state;
    enum { COUNT = 3 * HG_EMBEDDED_SWEEP_RECORDS };
    struct ask *asks = calloc(COUNT, sizeof *asks);
    struct hg_embedded_stats before, after;
    assert_non_null(asks);
    for (unsigned i = 0; i < COUNT; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%u", i);
        ask_init(&asks[i], world, HG_OP_SET, key);
        asks[i].call.value = HG_SPAN_LIT("some value");
        asks[i].call.expiry = i % 3 == 0 ? 0 : 5;
        ask_submit(&asks[i]);
    }
    TURN_UNTIL(world, world->store->ops->drained(world->store));
    assert_int_equal(items(world), COUNT);
    hg_embedded_stats_read(world->shared, &before);
    atomic_store(&world->wall_s, WALL_START + 5);
    TURN_UNTIL(world, items(world) == COUNT / 3);
    TURN_UNTIL(world, (hg_embedded_stats_read(world->shared, &after),
                       after.swept - before.swept == COUNT - COUNT / 3));
    assert_true(after.sweep_steps - before.sweep_steps >= 3);
    for (unsigned i = 0; i < COUNT; i++) {
        expect(world, asks[i].key, i % 3 == 0 ? "some value" : NULL);
        ask_fini(&asks[i]);
    }
    free(asks);
}

static void flush_at_once(void **state)
{
    struct world *world = *state;
    struct ask other;
    put(world, HG_OP_SET, "a", "1", 0);
    ask_init(&other, world, HG_OP_SET, "a");
    other.call.value = HG_SPAN_LIT("theirs");
    assert_int_equal(hg_embedded_tenant_id(world->shared, "other", &other.call.tenant_id), 0);
    ask_run(&other);
    ask_fini(&other);
    assert_int_equal(put(world, HG_OP_FLUSH, "", "", 0), HG_STATUS_SUCCESS);
    expect(world, "a", NULL);
    assert_int_equal(put(world, HG_OP_APPEND, "a", "1", 0), HG_STATUS_NOT_STORED);
    put(world, HG_OP_SET, "b", "2", 0);
    expect(world, "b", "2");
    world_reopen(world);
    expect(world, "a", NULL);
    expect(world, "b", "2");
    TURN_UNTIL(world, items(world) == 2); /* ours and theirs */
}

/* Everything in one group: what was set before the flush is gone, what is set after it stays. */
static void flush_within_a_group(void **state)
{
    struct world *world = *state;
    struct ask asks[4];
    static const enum hg_op ops[] = {HG_OP_SET, HG_OP_FLUSH, HG_OP_ADD, HG_OP_SET};
    static const char *const names[] = {"a", "", "a", "b"};
    for (size_t i = 0; i < HG_COUNT_OF(asks); i++) {
        ask_init(&asks[i], world, ops[i], names[i]);
        asks[i].call.value = hg_span_str(i == 0 ? "before" : i == 1 ? "" : "after");
        ask_submit(&asks[i]);
    }
    TURN_UNTIL(world, world->store->ops->drained(world->store));
    for (size_t i = 0; i < HG_COUNT_OF(asks); i++) {
        assert_int_equal(asks[i].result.status, HG_STATUS_SUCCESS);
        ask_fini(&asks[i]);
    }
    expect(world, "a", "after");
    expect(world, "b", "after");
}

static void flush_later(void **state)
{
    struct world *world = *state;
    put(world, HG_OP_SET, "a", "1", 0);
    assert_int_equal(put(world, HG_OP_FLUSH, "", "", 10), HG_STATUS_SUCCESS);
    expect(world, "a", "1");
    put(world, HG_OP_SET, "b", "2", 0); /* goes with the rest */
    world_reopen(world);
    atomic_store(&world->wall_s, WALL_START + 9);
    expect(world, "a", "1");
    hg_loop_turn(&world->loop, false);
    atomic_store(&world->wall_s, WALL_START + 10);
    expect(world, "a", NULL);
    expect(world, "b", NULL);
    put(world, HG_OP_SET, "c", "3", 0);
    expect(world, "c", "3");
    TURN_UNTIL(world, items(world) == 1);
    /* The clock goes back: what was flushed stays so. */
    atomic_store(&world->wall_s, WALL_START);
    world_reopen(world);
    expect(world, "a", NULL);
    expect(world, "c", "3");
}

/* Nobody writes when the time comes. */
static void flush_later_in_silence(void **state)
{
    struct world *world = *state;
    put(world, HG_OP_SET, "a", "1", 0);
    put(world, HG_OP_FLUSH, "", "", 10);
    atomic_store(&world->wall_s, WALL_START + 12);
    TURN_UNTIL(world, items(world) == 0);
}

static void tenants(void **state)
{
    struct world *world = *state;
    uint32_t shop = world->tenant_id, same, other;
    assert_int_equal(hg_embedded_tenant_id(world->shared, "shop", &same), 0);
    assert_int_equal(same, shop);
    assert_int_equal(hg_embedded_tenant_id(world->shared, "other", &other), 0);
    assert_int_not_equal(other, shop);
    assert_int_equal(hg_embedded_tenant_id(world->shared, "", &same), -EINVAL);
    put(world, HG_OP_SET, "k", "shop's", 0);
    world->tenant_id = other;
    expect(world, "k", NULL);
    put(world, HG_OP_SET, "k", "other's", 0);
    world->tenant_id = shop;
    expect(world, "k", "shop's");

    assert_int_equal(hg_embedded_tenant_delete(world->shared, shop), 0);
    assert_int_equal(hg_embedded_tenant_delete(world->shared, shop), -ENOENT);
    struct ask get = run(world, HG_OP_GET, "k", HG_SPAN_NONE, 0, 0);
    assert_int_equal(get.result.status, HG_STATUS_NO_BUCKET);
    assert_int_equal(put(world, HG_OP_SET, "k2", "v", 0), HG_STATUS_NO_BUCKET);
    ask_fini(&get);
    assert_int_equal(hg_embedded_tenant_id(world->shared, "shop", &world->tenant_id), 0);
    assert_int_not_equal(world->tenant_id, shop);
    expect(world, "k", NULL);
    put(world, HG_OP_SET, "k", "new", 0);
    TURN_UNTIL(world, items(world) == 2);
    expect(world, "k", "new");
    world->tenant_id = other;
    expect(world, "k", "other's");
}

static void count_tenant(void *arg, const char *name, uint32_t id)
{
    unsigned *count = arg;
    assert_true(id > 0 && (strncmp(name, "tenant", 6) == 0 || strcmp(name, "shop") == 0));
    ++*count;
}

/* A deletion goes on after a restart; more tenants than a chunk of the table holds. */
static void many_tenants(void **state)
{
    struct world *world = *state;
    enum { COUNT = 300 };
    uint32_t ids[COUNT], id;
    char name[32];
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "tenant%u", i);
        assert_int_equal(hg_embedded_tenant_id(world->shared, name, &ids[i]), 0);
        world->tenant_id = ids[i];
        put(world, HG_OP_SET, "k", name, 0);
    }
    for (unsigned i = 0; i < COUNT; i += 2)
        assert_int_equal(hg_embedded_tenant_delete(world->shared, ids[i]), 0);
    world_reopen(world);
    unsigned count = 0;
    hg_embedded_tenant_each(world->shared, count_tenant, &count);
    assert_int_equal(count, COUNT / 2 + 1);
    TURN_UNTIL(world, items(world) == COUNT / 2);
    struct hg_embedded_stats stats;
    TURN_UNTIL(world, (hg_embedded_stats_read(world->shared, &stats), stats.dying_tenants == 0));
    world_reopen(world);
    hg_embedded_stats_read(world->shared, &stats);
    assert_int_equal(stats.dying_tenants, 0);
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "tenant%u", i);
        assert_int_equal(hg_embedded_tenant_id(world->shared, name, &id), 0);
        assert_int_equal(id == ids[i], i % 2 == 1);
        world->tenant_id = id;
        expect(world, "k", i % 2 == 1 ? name : NULL);
    }
}

static void expect_error(struct world *world, const char *text)
{
    char error[256] = "";
    assert_int_not_equal(hg_embedded_open(&world->options, &world->shared, error, sizeof error), 0);
    if (strstr(error, text) == NULL)
        fail_msg("'%s' does not say '%s'", error, text);
    world->shared = NULL;
}

/* Writes over the format note of the file, as another program could. */
static void set_format(struct world *world, const char *name, uint32_t version)
{
    char path[128], error[256];
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    uint8_t key_bytes[5] = {0, 0, 0, 0, 'F'}, format[8] = "";
    (void)error;
    world_path(world, path, "");
    memcpy(format, name, 4);
    hg_put_u32(format + 4, version);
    MDB_val key = {sizeof key_bytes, key_bytes}, value = {sizeof format, format};
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_open(env, path, MDB_NOSUBDIR, 0600), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    assert_int_equal(mdb_put(txn, dbi, &key, &value, 0), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

static void wrong_files(void **state)
{
    struct world *world = *state;
    struct world second;
    char path[128];
    world_path(world, path, "");
    put(world, HG_OP_SET, "k", "v", 0);

    memcpy(&second.options, &world->options, sizeof second.options);
    expect_error(&second, "another process uses it");
    world_close(world);

    set_format(world, "HGES", HG_EMBEDDED_FORMAT + 6);
    expect_error(world, "has format version 7, this program reads version 1");
    set_format(world, "XXXX", HG_EMBEDDED_FORMAT);
    expect_error(world, "no embedded store");
    set_format(world, "HGES", HG_EMBEDDED_FORMAT);
    world_open(world);
    expect(world, "k", "v");
    world_close(world);

    world->options.name = "../up";
    expect_error(world, "'../up' cannot be the name of a file");
    world->options.name = "";
    expect_error(world, "'' cannot be the name of a file");
    world->options.name = "main";
    world->options.max_bytes = 1000;
    expect_error(world, "a quota of 1000 bytes is too small");
    world->options.max_bytes = 64u << 20;
    world->options.data_dir = "/tmp/t_embedded.none/none";
    expect_error(world, "cannot create '/tmp/t_embedded.none/none': No such file");
    world->options.data_dir = path;
    expect_error(world, "Not a directory");
    world->options.data_dir = world->dir;

    int fd = open(path, O_WRONLY | O_TRUNC);
    assert_true(fd >= 0);
    char junk[8192];
    memset(junk, 'j', sizeof junk);
    assert_int_equal(write(fd, junk, sizeof junk), sizeof junk);
    close(fd);
    expect_error(world, "no embedded store");
}

static void one_worker_only_writes_itself(void **state)
{
    struct world *world = *state;
    struct hg_store *second = NULL;
    struct hg_embedded_options auto_options = world->options;
    if (!hg_embedded_writes_inline(world->shared))
        return;
    assert_int_equal(hg_embedded_store_new(world->shared, &world->loop, &second), -EBUSY);
    /* When it has gone another may come. */
    world->store->ops->free(world->store);
    assert_int_equal(hg_embedded_store_new(world->shared, &world->loop, &world->store), 0);
    put(world, HG_OP_SET, "k", "v", 0);
    expect(world, "k", "v");
    /* Who writes, when nobody says so. */
    world_close(world);
    static const struct {
        unsigned workers;
        enum hg_embedded_sync sync;
        bool is_inline;
    } rows[] = {{1, HG_EMBEDDED_SYNC_SECOND, true},
                {1, HG_EMBEDDED_SYNC_NEVER, true},
                {1, HG_EMBEDDED_SYNC_ALWAYS, false},
                {2, HG_EMBEDDED_SYNC_SECOND, false}};
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++) {
        world->options = auto_options;
        world->options.writing = HG_EMBEDDED_WRITING_AUTO;
        world->options.workers = rows[i].workers;
        world->options.sync = rows[i].sync;
        world_open(world);
        assert_int_equal(hg_embedded_writes_inline(world->shared), rows[i].is_inline);
        expect(world, "k", "v");
        world_close(world);
    }
}

struct freer {
    struct hg_hook hook;
    struct hg_store *store;
};

static void free_drained(struct hg_hook *hook)
{
    struct freer *freer = HG_CONTAINER_OF(hook, struct freer, hook);
    if (freer->store == NULL || !freer->store->ops->drained(freer->store))
        return;
    freer->store->ops->free(freer->store);
    freer->store = NULL;
}

/* As a worker does when an upstream is removed: in a hook that runs just before the store's own. */
static void freed_from_within_a_hook(void **state)
{
    struct world *world = *state;
    struct freer freer = {.store = NULL};
    struct ask set;
    world->store->ops->free(world->store);
    hg_loop_hook(&world->loop, HG_STAGE_CLEANUP, &freer.hook, free_drained);
    assert_int_equal(hg_embedded_store_new(world->shared, &world->loop, &world->store), 0);
    ask_init(&set, world, HG_OP_SET, "k");
    set.call.value = HG_SPAN_LIT("v");
    ask_submit(&set);
    world->store->ops->drain(world->store);
    freer.store = world->store;
    TURN_UNTIL(world, freer.store == NULL);
    assert_int_equal(set.done, 1);
    assert_int_equal(set.result.status, HG_STATUS_SUCCESS);
    ask_fini(&set);
    hg_loop_unhook(&freer.hook);
    assert_int_equal(hg_embedded_store_new(world->shared, &world->loop, &world->store), 0);
    expect(world, "k", "v");
}

/* `second` brings commits to the disk without anybody waiting for it. */
static void synced_once_a_second(void **state)
{
    struct world *world = *state;
    struct hg_embedded_stats stats;
    world_close(world);
    world->options.sync = HG_EMBEDDED_SYNC_SECOND;
    world_open(world);
    put(world, HG_OP_SET, "k", "v", 0);
    TURN_UNTIL(world, (hg_embedded_stats_read(world->shared, &stats), stats.syncs > 0));
    assert_int_equal(stats.sync_errors, 0);
}

#define IN_MODE(fn, m)                                                                             \
    {                                                                                              \
#fn " " #m, fn, set_up, world_tear_down, &writings[m]                                      \
    }
#define IN_EACH_MODE(fn) IN_MODE(fn, 0), IN_MODE(fn, 1)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_EACH_MODE(after_a_restart),
        IN_EACH_MODE(expired_items),
        IN_EACH_MODE(flush_at_once),
        IN_EACH_MODE(flush_within_a_group),
        IN_EACH_MODE(flush_later),
        IN_EACH_MODE(flush_later_in_silence),
        IN_EACH_MODE(tenants),
        IN_EACH_MODE(many_tenants),
        IN_EACH_MODE(wrong_files),
        IN_EACH_MODE(the_sweeper_works_in_steps),
        IN_EACH_MODE(freed_from_within_a_hook),
        IN_EACH_MODE(synced_once_a_second),
        IN_MODE(one_worker_only_writes_itself, 0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
