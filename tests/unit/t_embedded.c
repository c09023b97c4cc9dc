// t_embedded - what a client of the embedded store sees: order, views (what every store does alike
// is in tests/flow/conform.h) SPDX-License-Identifier: BSD-3-Clause
//
// Everything runs with the worker as the writer, with a writer thread, and with a sync in the
// commit.
#include "embeddedhelp.h"

struct mode {
    enum hg_embedded_writing writing;
    enum hg_embedded_sync sync;
};
static struct mode modes[] = {
    {HG_EMBEDDED_WRITING_INLINE, HG_EMBEDDED_SYNC_SECOND},
    {HG_EMBEDDED_WRITING_THREAD, HG_EMBEDDED_SYNC_NEVER},
    {HG_EMBEDDED_WRITING_THREAD, HG_EMBEDDED_SYNC_ALWAYS},
};

static int set_up(void **state)
{
    struct mode *mode = *state;
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world_init(world, mode->writing, mode->sync);
    world_open(world);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    world_fini(*state);
    free(*state);
    return 0;
}

/* A read waits for its client's write; one of another key is answered at once. */
static void a_read_waits_for_a_write(void **state)
{
    struct world *world = *state;
    struct ask set, get, other;
    ask_init(&set, world, HG_OP_SET, "k");
    set.call.value = HG_SPAN_LIT("1");
    ask_init(&get, world, HG_OP_GET, "k");
    get.call.after = &set.call;
    ask_init(&other, world, HG_OP_GET, "other");
    ask_submit(&set);
    ask_submit(&get);
    assert_int_equal(get.submit, HG_SUBMIT_WAIT);
    ask_submit(&other);
    assert_int_equal(other.done, 1);
    TURN_UNTIL(world, get.done > 0);
    assert_string_equal(get.value, "1");
    assert_true(set.order < get.order);
    ask_fini(&set);
    ask_fini(&get);
    ask_fini(&other);
}

static void a_read_waits_for_a_flush(void **state)
{
    struct world *world = *state;
    struct ask flush, get;
    put(world, HG_OP_SET, "k", "v", 0);
    ask_init(&flush, world, HG_OP_FLUSH, "");
    ask_init(&get, world, HG_OP_GET, "k");
    ask_submit(&flush);
    ask_submit(&get);
    assert_int_equal(get.submit, HG_SUBMIT_WAIT);
    TURN_UNTIL(world, get.done > 0);
    assert_int_equal(get.result.status, HG_STATUS_KEY_ENOENT);
    assert_true(flush.order < get.order);
    ask_fini(&flush);
    ask_fini(&get);
}

/* Many in one turn, over several batches, in the order of their submission. */
static void many_in_one_turn(void **state)
{
    struct world *world = *state;
    enum { COUNT = 1000 };
    struct ask *asks = calloc(COUNT, sizeof *asks);
    assert_non_null(asks);
    char value[2000];
    memset(value, 'x', sizeof value);
    for (unsigned i = 0; i < COUNT; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%u", i % 10);
        ask_init(&asks[i], world, i % 7 == 3 ? HG_OP_DELETE : HG_OP_SET, key);
        asks[i].call.value = hg_span(value, asks[i].call.op == HG_OP_SET ? i * 2 : 0);
        ask_submit(&asks[i]);
        assert_int_equal(asks[i].submit, HG_SUBMIT_TAKEN);
    }
    assert_false(world->store->ops->drained(world->store));
    TURN_UNTIL(world, world->store->ops->drained(world->store));
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(asks[i].done, 1);
        assert_true(i == 0 || asks[i].order > asks[i - 1].order);
        ask_fini(&asks[i]);
    }
    for (unsigned k = 0; k < 10; k++) {
        char key[16];
        snprintf(key, sizeof key, "key%u", k);
        unsigned last = COUNT - 10 + k;
        struct ask get = run(world, HG_OP_GET, key, HG_SPAN_NONE, 0, 0);
        assert_int_equal(get.result.status,
                         last % 7 == 3 ? HG_STATUS_KEY_ENOENT : HG_STATUS_SUCCESS);
        if (last % 7 != 3)
            assert_int_equal(get.result.value.len, last * 2);
        ask_fini(&get);
    }
    free(asks);
}

/* A read that waits behind a cancelled flush still goes on. */
static void a_cancelled_flush(void **state)
{
    struct world *world = *state;
    struct ask flush, waits;
    put(world, HG_OP_SET, "k", "v", 0);
    ask_init(&flush, world, HG_OP_FLUSH, "");
    flush.call.expiry = 1000;
    ask_init(&waits, world, HG_OP_GET, "k");
    ask_submit(&flush);
    ask_submit(&waits);
    world->store->ops->cancel(world->store, &flush.call);
    TURN_UNTIL(world, waits.done > 0 && world->store->ops->drained(world->store));
    assert_int_equal(flush.done, 0);
    assert_string_equal(waits.value, "v");
    ask_fini(&waits);
}

struct viewer {
    struct ask ask;
    struct hg_span view;
    bool until_turn_end;
};

static void on_view(struct hg_call *call, const struct hg_result *result)
{
    struct viewer *viewer = HG_CONTAINER_OF(call, struct viewer, ask.call);
    viewer->view = result->value;
    viewer->until_turn_end = result->until_turn_end;
    ask_on_done(call, result);
}

static void view(struct viewer *viewer, struct world *world, const char *key)
{
    ask_init(&viewer->ask, world, HG_OP_GET, key);
    viewer->ask.call.on_done = on_view;
    ask_submit(&viewer->ask);
    assert_int_equal(viewer->ask.done, 1);
    ask_fini(&viewer->ask);
}

/* Another worker commits while this one is in the middle of its turn. */
static void a_view_holds_while_newer_commits_are_seen(void **state)
{
    struct world *world = *state;
    if (world->options.writing == HG_EMBEDDED_WRITING_INLINE)
        return; /* there is no other worker */
    struct world other = {.tenant_id = world->tenant_id, .shared = world->shared};
    assert_int_equal(hg_loop_init(&other.loop), 0);
    assert_int_equal(hg_loop_timer_init(&other.loop, &other.tick, 5000, world_on_tick), 0);
    assert_int_equal(hg_embedded_store_new(world->shared, &other.loop, &other.store), 0);
    struct viewer seen[6];
    char value[16];
    for (int i = 0; i < 6; i++) {
        snprintf(value, sizeof value, "v%d", i);
        assert_int_equal(put(&other, HG_OP_SET, "k", value, 0), HG_STATUS_SUCCESS);
        view(&seen[i], world, "k");
        assert_true(hg_span_is(seen[i].view, value) || !seen[i].until_turn_end);
        /* Two snapshots hand out views; then the values have to be copied at once. */
        assert_int_equal(seen[i].until_turn_end, i < 2);
        for (int j = 0; j <= i && j < 2; j++) {
            snprintf(value, sizeof value, "v%d", j);
            assert_true(hg_span_is(seen[j].view, value));
        }
    }
    expect(world, "k", "v5");
    hg_loop_turn(&world->loop, false);
    view(&seen[0], world, "k");
    assert_true(seen[0].until_turn_end);
    other.store->ops->free(other.store);
    hg_loop_timer_fini(&other.tick);
    hg_loop_fini(&other.loop);
}

/* The answer of a write comes late in the turn; what is asked then sees the write, and views that
   were handed out earlier in the turn still hold. */
struct late {
    struct ask set;
    struct viewer *first, *second;
    bool first_held;
};

static void on_late(struct hg_call *call, const struct hg_result *result)
{
    struct late *late = HG_CONTAINER_OF(call, struct late, set.call);
    ask_on_done(call, result);
    if (late->first->until_turn_end)
        late->first_held = hg_span_is(late->first->view, "old");
    view(late->second, late->set.world, "k");
}

static void asked_from_within_an_answer(void **state)
{
    struct world *world = *state;
    if (world->options.writing != HG_EMBEDDED_WRITING_INLINE)
        return; /* the answer comes in another turn than the first view */
    struct viewer first, second;
    struct late late = {.first = &first, .second = &second};
    put(world, HG_OP_SET, "k", "old", 0);
    ask_init(&late.set, world, HG_OP_SET, "k");
    late.set.call.value = HG_SPAN_LIT("new");
    late.set.call.on_done = on_late;
    view(&first, world, "k");
    ask_submit(&late.set);
    TURN_UNTIL(world, late.set.done > 0);
    assert_true(late.first_held);
    assert_true(second.until_turn_end);
    assert_int_equal(second.ask.result.cas, late.set.result.cas);
    ask_fini(&late.set);
}

static void statistics(void **state)
{
    struct world *world = *state;
    struct hg_embedded_stats before, after;
    hg_embedded_stats_read(world->shared, &before);
    put(world, HG_OP_SET, "a", "1", 0);
    put(world, HG_OP_SET, "b", "1", 0);
    put(world, HG_OP_DELETE, "b", "", 0);
    expect(world, "a", "1");
    expect(world, "b", NULL);
    hg_embedded_stats_read(world->shared, &after);
    assert_int_equal(after.items, 1);
    assert_int_equal(after.reads - before.reads, 2);
    assert_int_equal(after.read_hits - before.read_hits, 1);
    assert_int_equal(after.groups - before.groups, 3);
    assert_int_equal(after.group_ops - before.group_ops, 3);
    assert_true(after.commits - before.commits >= 3);
    assert_int_equal(after.max_bytes, world->options.max_bytes);
    assert_true(after.used_bytes > 0 && after.used_bytes <= after.file_bytes);
    assert_int_equal(after.group_retries + after.refused_full + after.write_errors, 0);
    put(world, HG_OP_DELETE, "a", "", 0);
    assert_int_equal(items(world), 0);
}

#define IN_MODE(fn, m)                                                                             \
    {                                                                                              \
#fn " " #m, fn, set_up, tear_down, &modes[m]                                               \
    }
#define IN_EACH_MODE(fn) IN_MODE(fn, 0), IN_MODE(fn, 1), IN_MODE(fn, 2)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_EACH_MODE(a_read_waits_for_a_write),
        IN_EACH_MODE(a_read_waits_for_a_flush),
        IN_EACH_MODE(many_in_one_turn),
        IN_EACH_MODE(a_cancelled_flush),
        IN_EACH_MODE(a_view_holds_while_newer_commits_are_seen),
        IN_EACH_MODE(asked_from_within_an_answer),
        IN_EACH_MODE(statistics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
