// t_rows_real - rows and guarded operations on the embedded store and on memcached itself
// SPDX-License-Identifier: BSD-3-Clause
//
// Run it under the thread sanitizer too.
#include "daemon.h"
#include "rig.h"
#include "rowhelp.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "back/embedded.h"
#include "base/log.h"

#define ACTORS  2
#define ROUNDS  500
#define AT_ONCE 3

enum place_kind { EMBEDDED_INLINE, EMBEDDED_THREAD, MEMCACHED, PLACES };
static const char *const place_names[PLACES] = {"embedded, inline", "embedded, writer thread",
                                                "memcached"};

/* Where rows are kept. */
struct place {
    enum place_kind kind;
    char dir[64];
    struct hg_embedded_shared *embedded;
    uint32_t tenant_id;
    struct daemon daemon;
    struct hg_ring_server server;
    struct hg_upstream_shared *memcached;
};

/* A worker: its loop, store and gates. */
struct actor {
    struct place *place;
    uint32_t index;
    struct rig rig;
    struct hg_timer tick; /* so that a waiting turn ends */
    struct hg_store *store;
    struct hg_rows *rows;
    struct hg_rows_counters counters;
    struct rowop ops[AT_ONCE];
    unsigned left, running, failed;
};

static void place_open(struct place *place, enum place_kind kind)
{
    char error[256];
    memset(place, 0, sizeof *place);
    place->kind = kind;
    print_message("# %s\n", place_names[kind]);
    if (kind == MEMCACHED) {
        struct hg_remote_conf conf;
        daemon_launch(&place->daemon);
        hg_remote_conf_init(&conf);
        conf.name = "real";
        place->server = (struct hg_ring_server){place->daemon.address, 1};
        conf.ring.servers = &place->server;
        conf.ring.count = 1;
        conf.times.backend_timeout_ms = 60000;
        conf.times.queue_timeout_ms = 60000;
        place->memcached = rig_shared(&conf, ACTORS);
        return;
    }
    snprintf(place->dir, sizeof place->dir, "/tmp/t_rows_real.XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    struct hg_embedded_options options = {
        .data_dir = place->dir,
        .name = "main",
        .sync = HG_EMBEDDED_SYNC_NEVER,
        .writing =
            kind == EMBEDDED_INLINE ? HG_EMBEDDED_WRITING_INLINE : HG_EMBEDDED_WRITING_THREAD,
        .workers = ACTORS,
        .max_bytes = 64u << 20,
        .max_value_bytes = 1u << 20,
        .timeout_us = 60000000,
    };
    if (hg_embedded_open(&options, &place->embedded, error, sizeof error) != 0)
        fail_msg("%s", error);
    assert_int_equal(hg_embedded_tenant_id(place->embedded, "shop", &place->tenant_id), 0);
}

static void place_close(struct place *place)
{
    char path[128];
    if (place->kind == MEMCACHED) {
        hg_upstream_shared_free(place->memcached);
        daemon_put_down(&place->daemon);
        return;
    }
    hg_embedded_close(place->embedded);
    snprintf(path, sizeof path, "%s/main.mdb", place->dir);
    unlink(path);
    strcat(path, "-lock");
    unlink(path);
    rmdir(place->dir);
}

static void on_tick(struct hg_timer *timer)
{
    (void)timer;
}

static void actor_init(struct actor *actor, struct place *place, uint32_t index)
{
    memset(actor, 0, sizeof *actor);
    actor->place = place;
    actor->index = index;
    rig_init(&actor->rig);
    assert_int_equal(hg_loop_timer_init(&actor->rig.loop, &actor->tick, 5000, on_tick), 0);
    if (place->kind == MEMCACHED)
        actor->store = rig_store(&actor->rig, place->memcached, index, 2);
    else
        assert_int_equal(hg_embedded_store_new(place->embedded, &actor->rig.loop, &actor->store),
                         0);
    actor->rows = hg_rows_new(&actor->rig.loop, &actor->counters);
    assert_non_null(actor->rows);
}

static void actor_fini(struct actor *actor)
{
    actor->store->ops->free(actor->store);
    hg_rows_free(actor->rows);
    hg_loop_timer_fini(&actor->tick);
    rig_fini(&actor->rig);
}

/* Turns the loop until the flag is set; false when that takes too long. */
static bool turn_until(struct actor *actor, const unsigned *flag, unsigned value)
{
    uint64_t end_us = hg_now_us() + 30000000 * bench_scale();
    hg_loop_again(&actor->rig.loop);
    while (*flag != value) {
        if (hg_now_us() > end_us)
            return false;
        hg_loop_turn(&actor->rig.loop, true);
    }
    return true;
}

static void submit(struct actor *actor, struct rowop *op, enum rowop_kind kind, const char *row)
{
    rowop_init(op, actor->store, kind, "table", row);
    op->row.tenant_id = actor->place->tenant_id;
    hg_rows_submit(actor->rows, &op->row);
}

/* One operation to its end. */
static uint16_t run(struct actor *actor, enum rowop_kind kind, enum hg_api api, int64_t *ret_n)
{
    struct rowop op;
    rowop_init(&op, actor->store, kind, "table", "row");
    op.row.api = api;
    op.row.tenant_id = actor->place->tenant_id;
    hg_rows_submit(actor->rows, &op.row);
    assert_true(turn_until(actor, &op.done, 1));
    assert_int_equal(op.end.fault, HG_FAULT_NONE);
    *ret_n = op.n;
    rowop_fini(&op);
    return op.end.status;
}

/* --- one worker --- */

static void life_of_a_row(struct place *place)
{
    static struct actor actor;
    int64_t n;
    actor_init(&actor, place, 0);
    assert_int_equal(run(&actor, ROWOP_READ, HG_API_TABLE, &n), 0);
    assert_int_equal(n, -1);
    for (int i = 1; i < 4; i++) {
        assert_int_equal(run(&actor, ROWOP_ADD, HG_API_TABLE, &n), 0);
        assert_int_equal(run(&actor, ROWOP_READ, HG_API_TABLE, &n), 0);
        assert_int_equal(n, i);
    }
    assert_int_equal(run(&actor, ROWOP_ADD, HG_API_HBASE, &n), HG_STATUS_NOT_SUPPORTED);
    assert_int_equal(run(&actor, ROWOP_REMOVE, HG_API_TABLE, &n), 0);
    assert_int_equal(run(&actor, ROWOP_REMOVE, HG_API_TABLE, &n), 0);
    assert_int_equal(run(&actor, ROWOP_READ, HG_API_TABLE, &n), 0);
    assert_int_equal(n, -1);
    assert_int_equal(run(&actor, ROWOP_ADD, HG_API_HBASE, &n), 0);
    assert_int_equal(run(&actor, ROWOP_READ, HG_API_TABLE, &n), HG_STATUS_NOT_SUPPORTED);
    assert_int_equal(hg_counter_get(&actor.counters.conflicts), 0);
    actor_fini(&actor);
}

#define MANY 1000

/* Many at once, of rows of their own and of one row. */
static void many_at_once(struct place *place)
{
    static struct actor actor;
    static struct rowop ops[MANY];
    actor_init(&actor, place, 0);
    for (int pass = 0; pass < 3; pass++) {
        for (unsigned i = 0; i < MANY; i++) {
            char row[16];
            snprintf(row, sizeof row, "%u", i % 10 == 0 ? 0 : i);
            submit(&actor, &ops[i], pass < 2 ? ROWOP_ADD : ROWOP_READ, row);
        }
        for (unsigned i = 0; i < MANY; i++) {
            assert_true(turn_until(&actor, &ops[i].done, 1));
            assert_true(ops[i].end.fault == HG_FAULT_NONE && ops[i].end.status == 0);
            int64_t expected = pass == 2 ? 2 : pass + 1;
            if (i % 10 == 0)
                expected = pass == 2 ? MANY / 5 : pass * (MANY / 10) + (int)i / 10 + 1;
            assert_int_equal(ops[i].n, expected);
            rowop_fini(&ops[i]);
        }
    }
    assert_int_equal(actor.rows->gate_count, 0);
    actor_fini(&actor);
}

/* --- two workers --- */

static void go_on(struct rowop *op)
{
    struct actor *actor = op->ctx;
    if (op->end.fault != HG_FAULT_NONE || op->end.status != 0)
        actor->failed++;
    if (actor->left == 0) {
        actor->running--;
        return;
    }
    actor->left--;
    hg_rows_submit(actor->rows, &op->row);
}

static void *count_up(void *arg)
{
    struct actor *actor = arg;
    actor_init(actor, actor->place, actor->index);
    actor->left = ROUNDS - AT_ONCE;
    actor->running = AT_ONCE;
    for (unsigned i = 0; i < AT_ONCE; i++) {
        rowop_init(&actor->ops[i], actor->store, ROWOP_ADD, "table", "shared");
        actor->ops[i].row.tenant_id = actor->place->tenant_id;
        actor->ops[i].then = go_on;
        actor->ops[i].ctx = actor;
    }
    for (unsigned i = 0; i < AT_ONCE; i++)
        hg_rows_submit(actor->rows, &actor->ops[i].row);
    if (!turn_until(actor, &actor->running, 0))
        abort();
    actor->failed += actor->rows->gate_count != 0;
    actor_fini(actor);
    for (unsigned i = 0; i < AT_ONCE; i++)
        rowop_fini(&actor->ops[i]);
    return NULL;
}

/* Nothing that two workers add to one row is lost. */
static void contention(struct place *place)
{
    static struct actor actors[ACTORS], reader;
    pthread_t threads[ACTORS];
    struct rowop op;
    for (uint32_t i = 0; i < ACTORS; i++) {
        actors[i].place = place;
        actors[i].index = i;
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, &actors[i]), 0);
    }
    uint64_t conflicts = 0;
    for (uint32_t i = 0; i < ACTORS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(actors[i].failed, 0);
        conflicts += hg_counter_get(&actors[i].counters.conflicts);
    }
    actor_init(&reader, place, 0);
    submit(&reader, &op, ROWOP_READ, "shared");
    assert_true(turn_until(&reader, &op.done, 1));
    assert_int_equal(op.n, ACTORS * ROUNDS);
    print_message("# %llu conflicts\n", (unsigned long long)conflicts);
    rowop_fini(&op);
    actor_fini(&reader);
}

/* --- guarded operations --- */

struct guarded {
    struct hg_guard guard;
    struct hg_call call;
    struct hg_store *store;
    unsigned done;
    struct hg_result result;
    char value[256];
};

static void on_done(struct hg_call *call, const struct hg_result *result)
{
    struct guarded *g = HG_CONTAINER_OF(call, struct guarded, call);
    g->done++;
    g->result = *result;
    snprintf(g->value, sizeof g->value, "%.*s", (int)result->value.len,
             result->value.len > 0 ? (const char *)result->value.at : "");
}

static void on_room(struct hg_call *call)
{
    struct guarded *g = HG_CONTAINER_OF(call, struct guarded, call);
    (void)g->store->ops->submit(g->store, call);
}

static void ask(struct actor *actor, struct guarded *g, const struct hg_item_ask *what,
                struct hg_span key, bool guard)
{
    memset(g, 0, sizeof *g);
    g->store = actor->store;
    g->call = (struct hg_call){.op = what->op,
                               .tenant_id = actor->place->tenant_id,
                               .key = key,
                               .key_hash = key.at[0],
                               .value = what->value,
                               .item_flags = what->flags,
                               .expiry = what->expiry,
                               .cas = what->cas,
                               .delta = what->delta,
                               .initial = what->initial,
                               .on_done = on_done,
                               .on_room = on_room};
    if (guard)
        hg_rows_guard(actor->rows, actor->store, &actor->rig.blobs, &g->guard, &g->call);
    else
        (void)actor->store->ops->submit(actor->store, &g->call);
    assert_true(turn_until(actor, &g->done, 1));
    assert_int_equal(g->result.fault, HG_FAULT_NONE);
}

/* Sets both keys up alike; the CAS of the item, or 0. */
static uint64_t hold(struct actor *actor, struct hg_span key, const char *text)
{
    struct guarded g;
    ask(actor, &g, &(struct hg_item_ask){.op = HG_OP_DELETE}, key, false);
    if (text == NULL)
        return 0;
    ask(actor, &g, &(struct hg_item_ask){.op = HG_OP_SET, .flags = 7, .value = hg_span_str(text)},
        key, false);
    assert_int_equal(g.result.status, 0);
    return g.result.cas;
}

static void compare(struct actor *actor, const struct hg_item_ask *what, const char *text,
                    int which_cas)
{
    static const struct hg_span keys[2] = {HG_SPAN_LIT("k\0guarded"), HG_SPAN_LIT("k\0plain")};
    struct guarded g[2], after[2];
    for (int i = 0; i < 2; i++) {
        struct hg_item_ask own = *what;
        uint64_t cas = hold(actor, keys[i], text);
        own.cas = which_cas == 0 ? 0 : which_cas == 1 ? cas : cas + 1000000;
        ask(actor, &g[i], &own, keys[i], i == 0);
        ask(actor, &after[i], &(struct hg_item_ask){.op = HG_OP_GET}, keys[i], false);
    }
    if (g[0].result.status != g[1].result.status)
        fail_msg("op %d on '%s', CAS kind %d: guarded %u, plain %u (%s)", what->op, text, which_cas,
                 g[0].result.status, g[1].result.status, g[1].value);
    assert_int_equal(g[0].result.counter, g[1].result.counter);
    assert_int_equal(g[0].result.item_flags, g[1].result.item_flags);
    assert_int_equal(g[0].result.cas != 0, g[1].result.cas != 0);
    assert_string_equal(g[0].value, g[1].value);
    assert_int_equal(after[0].result.status, after[1].result.status);
    assert_int_equal(after[0].result.item_flags, after[1].result.item_flags);
    assert_string_equal(after[0].value, after[1].value);
}

static void guard_answers(struct place *place)
{
    static struct actor actor;
    static const char *const texts[] = {NULL, "text", "41", ""};
    actor_init(&actor, place, 0);
    for (enum hg_op op = HG_OP_GET; op < HG_OP_FLUSH; op++)
        for (unsigned t = 0; t < HG_COUNT_OF(texts); t++)
            for (int which_cas = 0; which_cas < 3; which_cas++)
                for (int create = 0; create < 2; create++) {
                    bool counts = op == HG_OP_INCREMENT || op == HG_OP_DECREMENT;
                    struct hg_item_ask what = {.op = op,
                                               .flags = 21,
                                               .expiry = counts && create ? HG_ITEM_NO_CREATE : 500,
                                               .delta = 1,
                                               .initial = 6};
                    if ((op >= HG_OP_SET && op <= HG_OP_REPLACE) || op == HG_OP_APPEND ||
                        op == HG_OP_PREPEND)
                        what.value = HG_SPAN_LIT("1new");
                    compare(&actor, &what, texts[t], which_cas);
                }
    actor_fini(&actor);
}

/* No classic operation changes a row. */
static void guard_refuses(struct place *place)
{
    static struct actor actor;
    struct guarded g;
    int64_t n;
    actor_init(&actor, place, 0);
    assert_int_equal(run(&actor, ROWOP_ADD, HG_API_TABLE, &n), 0);
    for (enum hg_op op = HG_OP_GET; op < HG_OP_FLUSH; op++) {
        ask(&actor, &g, &(struct hg_item_ask){.op = op, .value = HG_SPAN_NONE},
            HG_SPAN_LIT("table\0row"), true);
        assert_int_equal(g.result.status, HG_STATUS_NOT_SUPPORTED);
        assert_string_equal(g.value, "the key holds a row: use the table operations");
    }
    assert_int_equal(run(&actor, ROWOP_READ, HG_API_TABLE, &n), 0);
    assert_int_equal(n, 1);
    actor_fini(&actor);
}

/* --- the tests, in each place --- */

static bool has_memcached;

static void everywhere(void (*test)(struct place *), unsigned workers)
{
    for (enum place_kind kind = EMBEDDED_INLINE; kind < PLACES; kind++) {
        struct place place;
        if ((kind == EMBEDDED_INLINE && workers > 1) || (kind == MEMCACHED && !has_memcached))
            continue;
        place_open(&place, kind);
        test(&place);
        place_close(&place);
    }
}

static void t_life_of_a_row(void **state)
{
    (void)state;
    everywhere(life_of_a_row, 1);
}

static void t_many_at_once(void **state)
{
    (void)state;
    everywhere(many_at_once, 1);
}

static void t_contention(void **state)
{
    (void)state;
    everywhere(contention, ACTORS);
}

static void t_guard_answers(void **state)
{
    (void)state;
    everywhere(guard_answers, 1);
}

static void t_guard_refuses(void **state)
{
    (void)state;
    everywhere(guard_refuses, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_life_of_a_row), cmocka_unit_test(t_many_at_once),
        cmocka_unit_test(t_contention),    cmocka_unit_test(t_guard_answers),
        cmocka_unit_test(t_guard_refuses),
    };
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_level(HG_LOG_ERROR);
    has_memcached = daemon_is_there();
    if (!has_memcached)
        print_message("# memcached is not installed: only the embedded store is tested\n");
    return cmocka_run_group_tests_name("rows_real", tests, NULL, NULL);
}
