// t_embedded_full - the embedded store at its limits: quota, a full map, too much at once, a stuck
// disk SPDX-License-Identifier: BSD-3-Clause
#include "embeddedhelp.h"

static enum hg_embedded_writing writings[] = {HG_EMBEDDED_WRITING_INLINE,
                                              HG_EMBEDDED_WRITING_THREAD};

/* Not yet open: each test has limits of its own. */
static int set_up(void **state)
{
    (void)world_for(state);
    return 0;
}

static uint16_t put_bytes(struct world *world, unsigned n, size_t len, char **ret_text)
{
    char key[16];
    uint8_t *bytes = malloc(len);
    assert_non_null(bytes);
    memset(bytes, (int)('a' + n % 26), len);
    snprintf(key, sizeof key, "key%u", n);
    struct ask set = run(world, HG_OP_SET, key, hg_span(bytes, len), 0, 0);
    assert_int_equal(set.result.fault, HG_FAULT_NONE);
    free(bytes);
    if (ret_text != NULL)
        *ret_text = (char *)set.value;
    else
        ask_fini(&set);
    return set.result.status;
}

/* Fills the store; how many values went in. */
static unsigned fill(struct world *world, size_t len, char **ret_text)
{
    unsigned n = 0;
    for (;; n++) {
        uint16_t status = put_bytes(world, n, len, ret_text);
        if (status != HG_STATUS_SUCCESS) {
            assert_int_equal(status, HG_STATUS_ENOMEM);
            return n;
        }
        if (ret_text != NULL)
            free(*ret_text);
    }
}

static void above_the_quota(struct world *world, size_t len)
{
    char *text = NULL;
    struct hg_embedded_stats stats;
    world->options.max_bytes = 4u << 20;
    world_open(world);
    unsigned count = fill(world, len, &text);
    assert_non_null(strstr(text, "of 4194304 bytes used (embedded_max_bytes)"));
    free(text);
    assert_true(count * len > (2u << 20) && count * len < (4u << 20));
    hg_embedded_stats_read(world->shared, &stats);
    assert_true(stats.used_bytes <= stats.max_bytes + 4096 * 8);
    assert_int_equal(stats.refused_full, 1);
    assert_int_equal(stats.items, count);
    assert_int_equal(stats.group_retries, 0);

    /* What would take more room is refused, what would not is done. */
    assert_int_equal(put_bytes(world, count + 1, len, NULL), HG_STATUS_ENOMEM);
    assert_int_equal(put_bytes(world, 0, len + 5000, NULL), HG_STATUS_ENOMEM);
    assert_int_equal(put_bytes(world, 0, len, NULL), HG_STATUS_SUCCESS);
    assert_int_equal(put_bytes(world, 0, len / 2, NULL), HG_STATUS_SUCCESS);
    assert_int_equal(put(world, HG_OP_TOUCH, "key1", "", 100), HG_STATUS_SUCCESS);
    assert_int_equal(put(world, HG_OP_GAT, "key1", "", 100), HG_STATUS_SUCCESS);
    for (unsigned n = 0; n < count; n += 2) {
        char key[16];
        snprintf(key, sizeof key, "key%u", n);
        assert_int_equal(put(world, HG_OP_DELETE, key, "", 0), HG_STATUS_SUCCESS);
    }
    /* There is room again. */
    for (unsigned n = 0; n < count / 2; n += 2)
        assert_int_equal(put_bytes(world, n, len, NULL), HG_STATUS_SUCCESS);
    fill(world, len, NULL);
    /* A flush needs none, and gives all of it back. */
    assert_int_equal(put(world, HG_OP_FLUSH, "", "", 0), HG_STATUS_SUCCESS);
    TURN_UNTIL(world, items(world) == 0);
    assert_true(fill(world, len, NULL) >= count * 9 / 10);
}

static void above_the_quota_small(void **state)
{
    above_the_quota(*state, 300);
}

static void above_the_quota_large(void **state)
{
    above_the_quota(*state, 50000);
}

/* Sizes all mixed, for long; deletes are never refused. Then everything is deleted, and there is
   room again. */
static void churn(struct world *world, size_t last_bytes)
{
    uint32_t random = 12345;
    char key[16];
    world->options.max_bytes = 2u << 20;
    world_open(world);
    for (unsigned i = 0; i < 4000; i++) {
        random = random * 1664525 + 1013904223;
        unsigned n = (random >> 8) % 200;
        size_t len = (random >> 16) % 3 == 0 ? (random >> 12) % 120000 : (random >> 12) % 3000;
        snprintf(key, sizeof key, "key%u", n);
        uint16_t status = (random >> 28) % 4 == 0 ? put(world, HG_OP_DELETE, key, "", 0)
                                                  : put_bytes(world, n, len, NULL);
        if ((random >> 28) % 4 == 0)
            assert_true(status == HG_STATUS_SUCCESS || status == HG_STATUS_KEY_ENOENT);
        else
            assert_true(status == HG_STATUS_SUCCESS || status == HG_STATUS_ENOMEM);
    }
    for (unsigned n = 0; n < 200; n++) {
        snprintf(key, sizeof key, "key%u", n);
        put(world, HG_OP_DELETE, key, "", 0);
    }
    assert_int_equal(items(world), 0);
    assert_int_equal(put_bytes(world, 0, last_bytes, NULL), HG_STATUS_SUCCESS);
}

static void churn_at_the_quota(void **state)
{
    struct world *world = *state;
    struct hg_embedded_stats stats;
    churn(world, 1000000);
    hg_embedded_stats_read(world->shared, &stats);
    assert_int_equal(stats.group_retries, 0);
    assert_int_equal(stats.write_errors, 0);
    assert_true(stats.refused_full > 0);
    assert_true(stats.file_bytes <= world->shared->db.map_bytes);
}

/* The map is so small that the fragmented file reaches its end. */
static void churn_at_the_end_of_the_map(void **state)
{
    struct world *world = *state;
    struct hg_embedded_stats stats;
    world->options.map_bytes = 9u << 18; /* the quota and an eighth */
    churn(world, 100000);
    hg_embedded_stats_read(world->shared, &stats);
    assert_true(stats.group_retries > 0);
    assert_int_equal(stats.write_errors, 0);
}

/* A quota larger than the map: LMDB itself refuses, in the middle of a group. What was answered
   with success is there, the rest was refused. */
static void a_full_map(void **state)
{
    struct world *world = *state;
    enum { COUNT = 60, LEN = 30000 };
    struct ask asks[COUNT];
    struct hg_embedded_stats stats;
    static uint8_t bytes[LEN];
    unsigned stored = 0;
    world->options.map_bytes = 1u << 20;
    world_open(world);
    for (unsigned i = 0; i < COUNT; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%u", i);
        ask_init(&asks[i], world, HG_OP_SET, key);
        memset(bytes, (int)i, LEN);
        /* Small ones fit where large ones do not. */
        asks[i].call.value = hg_span(bytes, i % 4 == 3 ? 10 : LEN);
        ask_submit(&asks[i]);
    }
    TURN_UNTIL(world, world->store->ops->drained(world->store));
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(asks[i].done, 1);
        assert_int_equal(asks[i].result.fault, HG_FAULT_NONE);
        struct ask get = run(world, HG_OP_GET, asks[i].key, HG_SPAN_NONE, 0, 0);
        if (asks[i].result.status == HG_STATUS_SUCCESS) {
            stored++;
            assert_int_equal(get.result.value.len, asks[i].call.value.len);
            assert_int_equal(get.value[0], i);
            assert_int_equal(get.value[get.result.value.len - 1], i);
        } else {
            assert_int_equal(asks[i].result.status, HG_STATUS_ENOMEM);
            assert_non_null(strstr((char *)asks[i].value, "MDB_MAP_FULL"));
            assert_int_equal(get.result.status, HG_STATUS_KEY_ENOENT);
        }
        ask_fini(&get);
        ask_fini(&asks[i]);
    }
    assert_true(stored > 15 && stored < COUNT);
    hg_embedded_stats_read(world->shared, &stats);
    assert_true(stats.group_retries >= 1);
    assert_int_equal(stats.refused_full, COUNT - stored);
    world_reopen(world);
    assert_int_equal(items(world), stored);
}

/* A file that has grown beyond what a smaller quota allows can still be emptied. */
static void a_smaller_quota(void **state)
{
    struct world *world = *state;
    world->options.max_bytes = 16u << 20;
    world_open(world);
    unsigned count = fill(world, 100000, NULL);
    world_close(world);
    world->options.max_bytes = 1u << 20;
    world_open(world);
    assert_int_equal(put_bytes(world, count, 5000, NULL), HG_STATUS_ENOMEM);
    for (unsigned n = 0; n < count; n++) {
        char key[16];
        snprintf(key, sizeof key, "key%u", n);
        assert_int_equal(put(world, HG_OP_DELETE, key, "", 0), HG_STATUS_SUCCESS);
    }
    assert_int_equal(put_bytes(world, count, 5000, NULL), HG_STATUS_SUCCESS);
}

/* More at once than the store takes: the rest waits for room, and keeps its order. */
static void more_than_there_is_room_for(void **state)
{
    struct world *world = *state;
    enum { COUNT = 20000 };
    struct ask *asks = calloc(COUNT, sizeof *asks);
    assert_non_null(asks);
    world_open(world);
    unsigned waited = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        ask_init(&asks[i], world, i == 0 ? HG_OP_SET : HG_OP_INCREMENT, "n");
        asks[i].call.value = HG_SPAN_LIT("100000");
        asks[i].call.delta = 1;
        if (i > 0)
            asks[i].call.value = HG_SPAN_NONE;
        ask_submit(&asks[i]);
        waited += asks[i].submit == HG_SUBMIT_WAIT;
    }
    assert_true(waited > 0 && waited < COUNT);
    /* One of those that wait gives up. */
    world->store->ops->cancel(world->store, &asks[COUNT - 1].call);
    TURN_UNTIL(world, world->store->ops->drained(world->store));
    for (unsigned i = 0; i < COUNT - 1; i++) {
        assert_int_equal(asks[i].done, 1);
        assert_int_equal(asks[i].result.counter, i == 0 ? 0 : 100000 + i);
    }
    assert_int_equal(asks[COUNT - 1].done, 0);
    for (unsigned i = 0; i < COUNT; i++)
        ask_fini(&asks[i]);
    free(asks);
}

static int stranded[2], most_stranded[2];

static void on_strand(void *ctx, uint32_t server, uint64_t ticket, int change)
{
    (void)server;
    (void)ctx;
    uint64_t kind = ticket - 1;
    stranded[kind] += change;
    assert_true(stranded[kind] >= 0);
    if (stranded[kind] > most_stranded[kind])
        most_stranded[kind] = stranded[kind];
}

/* The writer cannot get on: pending calls time out, waiting ones are refused at their deadline, and
   a timed-out write may still happen. Slots are stranded until the writer has them. */
static void a_stuck_writer(void **state)
{
    struct world *world = *state;
    struct ask set, get, gone, late, *many;
    struct hg_embedded_stats stats;
    enum { COUNT = 8200 };
    MDB_txn *txn;
    if (world->options.writing == HG_EMBEDDED_WRITING_INLINE)
        return; /* nothing is pending between turns */
    world_open(world);
    put(world, HG_OP_SET, "k", "old", 0);
    uint64_t usual_us = world->shared->timeout_us;
    world->shared->timeout_us = 50000; /* what is written from here on is not committed in time */
    memset(stranded, 0, sizeof stranded);
    memset(most_stranded, 0, sizeof most_stranded);
    world->store->on_strand = on_strand;
    assert_int_equal(mdb_txn_begin(world->shared->db.env, NULL, 0, &txn), 0);
    ask_init(&set, world, HG_OP_SET, "k");
    set.call.value = HG_SPAN_LIT("new");
    ask_init(&get, world, HG_OP_GET, "k");
    get.call.after = &set.call;
    set.call.ticket = 2;
    ask_submit(&set);
    ask_submit(&get);
    ask_init(&gone, world, HG_OP_TOUCH, "none");
    gone.call.ticket = 1;
    ask_submit(&gone);
    world->store->ops->cancel(world->store, &gone.call);
    assert_int_equal(stranded[0], 1);
    many = calloc(COUNT, sizeof *many);
    assert_non_null(many);
    for (unsigned i = 0; i < COUNT; i++) {
        ask_init(&many[i], world, HG_OP_TOUCH, "none");
        ask_submit(&many[i]);
    }
    ask_init(&late, world, HG_OP_DELETE, "none");
    late.call.deadline_us = 1;
    ask_submit(&late);
    assert_int_equal(late.submit, HG_SUBMIT_WAIT);
    TURN_UNTIL(world, set.done > 0 && get.done > 0 && late.done > 0 && many[0].done > 0);
    assert_int_equal(set.result.fault, HG_FAULT_TIMEOUT);
    assert_string_equal(get.value, "old");
    assert_int_equal(late.result.fault, HG_FAULT_QUEUE_TIMEOUT);
    assert_int_equal(many[0].result.fault, HG_FAULT_TIMEOUT);
    assert_false(world->store->ops->drained(world->store));
    assert_int_equal(stranded[0], 1);
    assert_int_equal(stranded[1], 1);
    mdb_txn_abort(txn);
    TURN_UNTIL(world, world->store->ops->drained(world->store));
    world->shared->timeout_us = usual_us;
    assert_int_equal(stranded[0], 0);
    assert_int_equal(stranded[1], 0);
    assert_int_equal(most_stranded[1], 1);
    expect(world, "k", "new");
    hg_embedded_stats_read(world->shared, &stats);
    assert_true(stats.timeouts > 1);
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(many[i].done, 1);
        ask_fini(&many[i]);
    }
    free(many);
    ask_fini(&set);
    ask_fini(&get);
    ask_fini(&late);
}

#define IN_MODE(fn, m)                                                                             \
    {                                                                                              \
#fn " " #m, fn, set_up, world_tear_down, &writings[m]                                      \
    }
#define IN_EACH_MODE(fn) IN_MODE(fn, 0), IN_MODE(fn, 1)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_EACH_MODE(above_the_quota_small),
        IN_EACH_MODE(above_the_quota_large),
        IN_EACH_MODE(churn_at_the_quota),
        IN_EACH_MODE(churn_at_the_end_of_the_map),
        IN_EACH_MODE(a_full_map),
        IN_EACH_MODE(a_smaller_quota),
        IN_EACH_MODE(more_than_there_is_room_for),
        IN_EACH_MODE(a_stuck_writer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
