// t_embedded - what a client of the embedded store sees: operations, order, views
// SPDX-License-Identifier: BSD-3-Clause
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

static void every_operation(void **state)
{
    struct world *world = *state;
    assert_int_equal(put(world, HG_OP_ADD, "k", "one", 0), HG_STATUS_SUCCESS);
    assert_int_equal(put(world, HG_OP_ADD, "k", "two", 0), HG_STATUS_KEY_EEXISTS);
    assert_int_equal(put(world, HG_OP_REPLACE, "k", "two", 0), HG_STATUS_SUCCESS);
    assert_int_equal(put(world, HG_OP_REPLACE, "none", "two", 0), HG_STATUS_KEY_ENOENT);
    assert_int_equal(put(world, HG_OP_APPEND, "k", "+", 0), HG_STATUS_SUCCESS);
    assert_int_equal(put(world, HG_OP_PREPEND, "k", "-", 0), HG_STATUS_SUCCESS);
    assert_int_equal(put(world, HG_OP_APPEND, "none", "+", 0), HG_STATUS_NOT_STORED);
    expect(world, "k", "-two+");
    assert_int_equal(put(world, HG_OP_INCREMENT, "k", "", 0), HG_STATUS_DELTA_BADVAL);
    assert_int_equal(put(world, HG_OP_DELETE, "k", "", 0), HG_STATUS_SUCCESS);
    assert_int_equal(put(world, HG_OP_DELETE, "k", "", 0), HG_STATUS_KEY_ENOENT);
    expect(world, "k", NULL);
    assert_int_equal(items(world), 0);
}

static void answers(void **state)
{
    struct world *world = *state;
    struct ask set = run(world, HG_OP_SET, "k", HG_SPAN_LIT("abc"), 0, 0);
    assert_int_equal(set.result.status, HG_STATUS_SUCCESS);
    assert_true(set.result.cas > 0);
    assert_string_equal(set.result.server,
                        world->store->ops->where(world->store, HG_SPAN_NONE, HG_SPAN_NONE));

    struct ask get = run(world, HG_OP_GET, "k", HG_SPAN_NONE, 0, 0);
    assert_int_equal(get.result.item_flags, 0xa1b2c3d4);
    assert_int_equal(get.result.cas, set.result.cas);
    assert_true(get.result.until_turn_end);

    struct ask touch = run(world, HG_OP_TOUCH, "k", HG_SPAN_NONE, 0, 100);
    assert_int_equal(touch.result.cas, set.result.cas);
    assert_int_equal(touch.result.item_flags, 0xa1b2c3d4);
    struct ask gat = run(world, HG_OP_GAT, "k", HG_SPAN_NONE, 0, 200);
    assert_int_equal(gat.result.cas, set.result.cas);
    assert_int_equal(gat.result.item_flags, 0xa1b2c3d4);
    assert_string_equal(gat.value, "abc");

    struct ask append = run(world, HG_OP_APPEND, "k", HG_SPAN_LIT("defg"), set.result.cas, 0);
    assert_int_equal(append.result.status, HG_STATUS_SUCCESS);
    assert_int_equal(append.result.item_bytes, 7);
    assert_true(append.result.cas > set.result.cas);
    struct ask stale = run(world, HG_OP_DELETE, "k", HG_SPAN_NONE, set.result.cas, 0);
    assert_int_equal(stale.result.status, HG_STATUS_KEY_EEXISTS);
    struct ask gone = run(world, HG_OP_DELETE, "k", HG_SPAN_NONE, append.result.cas, 0);
    assert_int_equal(gone.result.status, HG_STATUS_SUCCESS);
    assert_int_equal(gone.result.cas, 0);
    ask_fini(&set);
    ask_fini(&get);
    ask_fini(&touch);
    ask_fini(&gat);
    ask_fini(&append);
    ask_fini(&stale);
    ask_fini(&gone);
}

static void counters(void **state)
{
    struct world *world = *state;
    struct ask ask;
    for (uint64_t n = 0; n < 3; n++) {
        ask_init(&ask, world, HG_OP_INCREMENT, "n");
        ask.call.delta = 5;
        ask.call.initial = 98;
        ask_run(&ask);
        assert_int_equal(ask.result.status, HG_STATUS_SUCCESS);
        assert_int_equal(ask.result.counter, 98 + 5 * n);
        ask_fini(&ask);
    }
    expect(world, "n", "108");
    ask_init(&ask, world, HG_OP_DECREMENT, "n");
    ask.call.delta = 9;
    ask_run(&ask);
    assert_int_equal(ask.result.counter, 99);
    ask_fini(&ask);
    expect(world, "n", "99 ");
    assert_int_equal(put(world, HG_OP_INCREMENT, "none", "", 0xffffffff), HG_STATUS_KEY_ENOENT);
}

/* One length around each boundary: a page's node, a batch's room, pages of its own, the limit. */
static void value_lengths(void **state)
{
    struct world *world = *state;
    static const size_t around[] = {0, 256, 2006, 4075, 8192, 16384, 32768, (1u << 20) - 33};
    size_t step = world->options.sync == HG_EMBEDDED_SYNC_ALWAYS ? 11 : 1;
    uint8_t *bytes = malloc(1u << 20);
    assert_non_null(bytes);
    for (size_t i = 0; i < 1u << 20; i++)
        bytes[i] = (uint8_t)(i * 31 + (i >> 8));
    for (size_t a = 0; a < HG_COUNT_OF(around); a++)
        for (size_t len = around[a]; len <= around[a] + 33; len += step) {
            struct ask set = run(world, HG_OP_SET, "k", hg_span(bytes, len), 0, 0);
            assert_int_equal(set.result.status, HG_STATUS_SUCCESS);
            struct ask get = run(world, HG_OP_GET, "k", HG_SPAN_NONE, 0, 0);
            assert_int_equal(get.result.value.len, len);
            assert_memory_equal(get.value, bytes, len);
            struct ask gat = run(world, HG_OP_GAT, "k", HG_SPAN_NONE, 0, 0);
            assert_int_equal(gat.result.value.len, len);
            assert_memory_equal(gat.value, bytes, len);
            ask_fini(&set);
            ask_fini(&get);
            ask_fini(&gat);
        }
    struct ask set = run(world, HG_OP_SET, "k", hg_span(bytes, 1u << 20), 0, 0);
    struct ask more = run(world, HG_OP_APPEND, "k", hg_span(bytes, 1), 0, 0);
    assert_int_equal(more.result.status, HG_STATUS_E2BIG);
    ask_fini(&set);
    ask_fini(&more);
    free(bytes);
}

static void keys(void **state)
{
    struct world *world = *state;
    char longest[251];
    memset(longest, 'k', 250);
    longest[250] = '\0';
    assert_int_equal(put(world, HG_OP_SET, longest, "v", 0), HG_STATUS_SUCCESS);
    expect(world, longest, "v");
    longest[249] = '\0';
    expect(world, longest, NULL);
    /* A prefix is part of the key, and both together have a limit. */
    struct ask ask;
    char prefix[300];
    memset(prefix, 'p', sizeof prefix);
    static const enum hg_op ops[] = {HG_OP_SET, HG_OP_GET};
    for (size_t i = 0; i < HG_COUNT_OF(ops); i++) {
        ask_init(&ask, world, ops[i], longest);
        ask.call.prefix = hg_span(prefix, 257);
        ask_run(&ask);
        assert_int_equal(ask.result.fault, HG_FAULT_NONE);
        assert_int_equal(ask.result.status, HG_STATUS_SUCCESS);
        ask_fini(&ask);
        ask_init(&ask, world, ops[i], longest);
        ask.call.prefix = hg_span(prefix, 258);
        ask_run(&ask);
        assert_int_equal(ask.result.fault, HG_FAULT_KEY_TOO_LONG);
        ask_fini(&ask);
    }
    expect(world, longest, NULL);
}

/* A value in a blob of the caller is referenced, not copied, and let go after the answer. */
static void value_by_reference(void **state)
{
    struct world *world = *state;
    struct hg_blob *blob = hg_blob_borrow(&world->blobs, 20000);
    assert_non_null(blob);
    memset(blob->data, 'b', 20000);
    struct ask set;
    ask_init(&set, world, HG_OP_SET, "k");
    set.call.value = hg_span(blob->data + 100, 19000);
    set.call.blob = blob;
    ask_submit(&set);
    assert_int_equal(set.submit, HG_SUBMIT_TAKEN);
    assert_int_equal(blob->refs, 2);
    TURN_UNTIL(world, set.done > 0);
    assert_int_equal(set.result.status, HG_STATUS_SUCCESS);
    assert_int_equal(blob->refs, 1);
    struct ask get = run(world, HG_OP_GET, "k", HG_SPAN_NONE, 0, 0);
    assert_int_equal(get.result.value.len, 19000);
    assert_memory_equal(get.value, blob->data + 100, 19000);
    hg_blob_unref(blob);
    ask_fini(&set);
    ask_fini(&get);
}

/* Submits `count` operations at once, each after the one before if it is for the same key. */
static void submit_chain(struct ask *asks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i; j-- > 0 && asks[i].call.after == NULL;)
            if (!asks[j].is_done && strcmp(asks[i].key, asks[j].key) == 0)
                asks[i].call.after = &asks[j].call;
        ask_submit(&asks[i]);
    }
}

static void a_client_reads_its_own_writes(void **state)
{
    struct world *world = *state;
    struct ask asks[7];
    static const enum hg_op ops[] = {HG_OP_SET, HG_OP_GET,    HG_OP_GET, HG_OP_APPEND,
                                     HG_OP_GET, HG_OP_DELETE, HG_OP_GET};
    for (size_t i = 0; i < HG_COUNT_OF(asks); i++) {
        ask_init(&asks[i], world, ops[i], "k");
        asks[i].call.value = hg_span_str(ops[i] == HG_OP_SET ? "1" : "2");
    }
    struct ask other;
    ask_init(&other, world, HG_OP_GET, "other");
    submit_chain(asks, HG_COUNT_OF(asks));
    assert_int_equal(asks[1].submit, HG_SUBMIT_WAIT);
    ask_submit(&other); /* another key does not wait */
    assert_int_equal(other.done, 1);
    TURN_UNTIL(world, asks[6].done > 0);
    for (size_t i = 0; i < HG_COUNT_OF(asks); i++) {
        assert_int_equal(asks[i].done, 1);
        assert_int_equal(asks[i].result.status, i == 6 ? HG_STATUS_KEY_ENOENT : HG_STATUS_SUCCESS);
        if (i > 0)
            assert_true(asks[i].order > asks[i - 1].order);
    }
    assert_string_equal(asks[1].value, "1");
    assert_string_equal(asks[2].value, "1");
    assert_string_equal(asks[4].value, "12");
    for (size_t i = 0; i < HG_COUNT_OF(asks); i++)
        ask_fini(&asks[i]);
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

static void cancelled_calls(void **state)
{
    struct world *world = *state;
    struct ask set, get, flush, waits;
    ask_init(&set, world, HG_OP_SET, "k");
    set.call.value = HG_SPAN_LIT("v");
    ask_init(&get, world, HG_OP_GET, "k");
    get.call.after = &set.call;
    ask_submit(&set);
    ask_submit(&get);
    world->store->ops->cancel(world->store, &get.call);
    world->store->ops->cancel(world->store, &set.call);
    /* A read that waits behind a cancelled flush still goes on. */
    ask_init(&flush, world, HG_OP_FLUSH, "");
    flush.call.expiry = 1000;
    ask_init(&waits, world, HG_OP_GET, "k");
    ask_submit(&flush);
    ask_submit(&waits);
    world->store->ops->cancel(world->store, &flush.call);
    TURN_UNTIL(world, waits.done > 0 && world->store->ops->drained(world->store));
    assert_int_equal(set.done + get.done + flush.done, 0);
    assert_int_equal(get.rooms, 0);
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
}

static void answers_when_freed(void **state)
{
    struct world *world = *state;
    struct ask set, get;
    ask_init(&set, world, HG_OP_SET, "k");
    ask_init(&get, world, HG_OP_GET, "k");
    get.call.after = &set.call;
    ask_submit(&set);
    ask_submit(&get);
    world_close(world);
    assert_int_equal(set.done, 1);
    assert_int_equal(set.result.fault, HG_FAULT_LOST);
    assert_int_equal(get.done, 1);
    assert_int_equal(get.result.fault, HG_FAULT_LOST);
    ask_fini(&set);
    ask_fini(&get);
}

#define IN_MODE(fn, m)                                                                             \
    {                                                                                              \
#fn " " #m, fn, set_up, tear_down, &modes[m]                                               \
    }
#define IN_EACH_MODE(fn) IN_MODE(fn, 0), IN_MODE(fn, 1), IN_MODE(fn, 2)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_EACH_MODE(every_operation),
        IN_EACH_MODE(answers),
        IN_EACH_MODE(counters),
        IN_EACH_MODE(value_lengths),
        IN_EACH_MODE(keys),
        IN_EACH_MODE(value_by_reference),
        IN_EACH_MODE(a_client_reads_its_own_writes),
        IN_EACH_MODE(a_read_waits_for_a_flush),
        IN_EACH_MODE(many_in_one_turn),
        IN_EACH_MODE(cancelled_calls),
        IN_EACH_MODE(a_view_holds_while_newer_commits_are_seen),
        IN_EACH_MODE(asked_from_within_an_answer),
        IN_EACH_MODE(statistics),
        IN_EACH_MODE(answers_when_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
