// t_hot_epochs - the engine of hot keys: handing over, late workers, memory, tenants that come and
// go
// SPDX-License-Identifier: BSD-3-Clause
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hotscene.h"

static struct hg_hotkey_key key_of(struct hotscene *h, const char *text)
{
    uint8_t room[HG_HOTKEY_KEY_MAX]; /* not used without a table */
    return hg_hot_key(&h->s.stage.workers[0], HG_SPAN_NONE, hg_span_str(text), room);
}

/* As an admitted get of the bucket on that worker. */
static void tell(struct hotscene *h, struct hg_bucket *bucket, unsigned worker, const char *text,
                 unsigned n)
{
    struct hg_hotkey_key key = key_of(h, text);
    for (unsigned i = 0; i < n; i++)
        hg_hot_tell(&h->s.stage.workers[worker], &bucket->lanes[worker], HG_HOT_QUERY, &key);
}

static uint64_t used(struct hotscene *h)
{
    return atomic_load(&hot_mem(h)->used_bytes);
}

/* ---- epochs ---- */

static void test_workers_are_merged(void **state)
{
    (void)state;
    struct hotscene h;
    hot_init(&h, 2);
    hot_open(&h);
    tell(&h, h.bucket, 0, "both", 30);
    tell(&h, h.bucket, 1, "both", 12);
    tell(&h, h.bucket, 1, "one", 5);
    hot_epoch(&h);
    assert_int_equal(hot_freq(&h, "both", HG_HOT_ALL), 42);
    assert_int_equal(hot_freq(&h, "one", HG_HOT_QUERY), 5);
    assert_int_equal(hg_counter_get(&h.hot.merged_shares), 2);
    assert_int_equal(hg_counter_get(&h.hot.last_length_us), HOT_EPOCH_US);
    hot_close(&h);
}

static void test_ten_epochs_of_history(void **state)
{
    (void)state;
    struct hotscene h;
    hot_start(&h);
    for (unsigned epoch = 1; epoch <= 13; epoch++) {
        tell(&h, h.bucket, 0, "k", epoch);
        hot_epoch(&h);
    }
    for (unsigned back = 0; back < HG_HOT_HISTORY; back++) {
        const struct hg_hotrecord *record = hg_hotkeys_record(&h.hot, h.bucket, back);
        assert_int_equal(record->rows[0].freq, 13 - back);
        assert_int_equal(record->epoch, 13 - back);
        assert_int_equal(record->end_wall_s, 13 - back);
    }
    assert_null(hg_hotkeys_record(&h.hot, h.bucket, HG_HOT_HISTORY));
    /* Epochs without anything age it; at last nothing is left, nor any memory. */
    for (unsigned epoch = 0; epoch < HG_HOT_HISTORY; epoch++) {
        assert_non_null(h.bucket->hot_tenant);
        hot_epoch(&h);
    }
    assert_null(h.bucket->hot_tenant);
    assert_int_equal(used(&h), 0);
    hot_close(&h);
}

static void test_memory_of_an_idle_tenant_goes(void **state)
{
    (void)state;
    struct hotscene h;
    hot_start(&h);
    assert_int_equal(used(&h), 0);
    tell(&h, h.bucket, 0, "k", 1);
    size_t set = used(&h);
    assert_true(set > 0);
    for (unsigned epoch = 1; epoch <= 5; epoch++) {
        hot_end(&h);
        stage_run(&h.s.stage);
        tell(&h, h.bucket, 0, "k", 1); /* before anything has come back */
        hot_wait(&h, epoch);
        stage_run(&h.s.stage);
    }
    /* One set in use, one to come next; records and what is merged are small. */
    assert_in_range(used(&h), 2 * set, 2 * set + 16384);
    hot_epoch(&h);
    hot_epoch(&h);
    hot_epoch(&h);
    assert_in_range(used(&h), 1, 16384);
    hot_close(&h);
}

/* Keys of up to 40 bytes: the first epochs set sketches up, later ones use them again. */
static void test_counting_allocates_nothing_when_warm(void **state)
{
    (void)state;
    struct hotscene h;
    char text[HG_HOTKEY_INLINE_BYTES + 1];
    hot_start(&h);
    for (unsigned epoch = 1; epoch <= 6; epoch++) {
        size_t set = used(&h), heap = mallinfo2().uordblks;
        for (unsigned i = 0; i < 5000; i++) {
            snprintf(text, sizeof text, "a key of exactly forty bytes:%011u", i * epoch);
            tell(&h, h.bucket, 0, text, 1);
        }
        if (epoch == 1)
            assert_true(used(&h) > set);
        if (epoch > 3) {
            assert_int_equal(used(&h), set);
            assert_int_equal(mallinfo2().uordblks, heap);
        }
        hot_epoch(&h);
    }
    hot_close(&h);
}

static void test_many_keys_none_and_one(void **state)
{
    (void)state;
    struct hotscene h;
    char text[32];
    hot_start(&h);
    hot_epoch(&h);
    assert_int_equal(hot_rows(&h), 0);
    for (unsigned i = 0; i < 100000; i++) {
        snprintf(text, sizeof text, "key:%u", i);
        tell(&h, h.bucket, 0, text, 1);
        if (i % 50 == 0)
            tell(&h, h.bucket, 0, "often", 1);
    }
    size_t before = used(&h);
    hot_epoch(&h);
    const struct hg_hotrow *row = hot_row(&h, "often", HG_HOT_ALL);
    assert_non_null(row);
    assert_in_range(2000, row->freq - row->error, row->freq);
    assert_true(row->error <= 102000 / 512);
    assert_int_equal(hot_rows(&h), 20);
    assert_true(used(&h) < 2 * before);
    tell(&h, h.bucket, 0, "one", 1);
    hot_epoch(&h);
    assert_int_equal(hot_rows(&h), 2);
    assert_int_equal(hot_freq(&h, "one", HG_HOT_ALL), 1);
    hot_close(&h);
}

/* Housekeeping does not wait for a worker that is busy: what it has counts in the next epoch. */
static void test_a_late_worker(void **state)
{
    (void)state;
    struct hotscene h;
    hot_init(&h, 2);
    hot_open(&h);
    tell(&h, h.bucket, 0, "k", 3);
    tell(&h, h.bucket, 1, "k", 4);
    hot_end(&h);
    hg_loop_turn(&h.s.stage.workers[0].loop, false); /* worker 1 does not come to it */
    hot_wait(&h, 1);
    assert_int_equal(hot_freq(&h, "k", HG_HOT_ALL), 3);
    assert_int_equal(hg_counter_get(&h.hot.late_handovers), 0);
    stage_run(&h.s.stage);
    uint64_t deadline = stage_deadline();
    while (hg_counter_get(&h.hot.late_handovers) == 0 && hg_now_us() < deadline)
        hg_loop_turn(&h.loop, false);
    assert_int_equal(hg_counter_get(&h.hot.late_handovers), 1);
    tell(&h, h.bucket, 0, "k", 10);
    tell(&h, h.bucket, 1, "k", 20);
    hot_epoch(&h);
    assert_int_equal(hot_freq(&h, "k", HG_HOT_ALL), 34);
    hot_close(&h);
}

/* A worker that slept over two ends hands over once. */
static void test_a_worker_that_misses_an_end(void **state)
{
    (void)state;
    struct hotscene h;
    hot_init(&h, 2);
    hot_open(&h);
    tell(&h, h.bucket, 1, "k", 4);
    uint64_t now_us = h.s.stage.workers[0].loop.now_us;
    for (unsigned i = 1; i <= 2; i++) {
        hg_hotkeys_end_epoch(&h.hot, now_us + i * HOT_EPOCH_US, i, 0);
        hg_loop_turn(&h.s.stage.workers[0].loop, false);
    }
    stage_run(&h.s.stage);
    hot_wait(&h, 2);
    assert_int_equal(h.hot.last, 2);
    assert_int_equal(hot_freq(&h, "k", HG_HOT_ALL), 4);
    assert_int_equal(hg_counter_get(&h.hot.late_handovers), 0);
    assert_int_equal(hg_counter_get(&h.s.stage.workers[1].hot.handovers), 1);
    hot_close(&h);
}

/* Housekeeping that was busy for three epochs finds three, as long as they were. */
static void test_housekeeping_is_late(void **state)
{
    (void)state;
    struct hotscene h;
    hot_start(&h);
    for (unsigned epoch = 1; epoch <= 3; epoch++) {
        tell(&h, h.bucket, 0, "k", epoch * 10);
        hot_end(&h);
        stage_run(&h.s.stage);
    }
    hot_wait(&h, 3);
    for (unsigned back = 0; back < 3; back++)
        assert_int_equal(hg_hotkeys_record(&h.hot, h.bucket, back)->rows[0].freq, (3 - back) * 10);
    assert_int_equal(hg_counter_get(&h.hot.last_length_us), HOT_EPOCH_US);
    assert_int_equal(hg_counter_get(&h.hot.late_handovers), 0);
    stage_run(&h.s.stage);
    hot_close(&h);
}

/* ---- throttles over epochs ---- */

static void test_a_throttle_comes_and_goes(void **state)
{
    (void)state;
    struct hotscene h;
    hot_start_limited(&h, 2, 100);
    static const unsigned counts[] = {450, 100, 100, 100, 0, 0, 0, 0, 0};
    static const unsigned percents[] = {10, 20, 30, 40, 40, 30, 20, 10, 0};
    for (unsigned epoch = 0; epoch < HG_COUNT_OF(counts); epoch++) {
        tell(&h, h.bucket, epoch % 2, "hot", counts[epoch]);
        hot_epoch(&h);
        const struct hg_hotrow *row = hot_row(&h, "hot", HG_HOT_ALL);
        if (percents[epoch] == 0) {
            assert_true(row == NULL || row->percent == 0);
            assert_null(h.bucket->lanes[0].hot_list);
            assert_null(h.bucket->lanes[1].hot_list);
            break;
        }
        assert_non_null(row); /* also when it was not asked for at all */
        assert_int_equal(row->freq, counts[epoch]);
        assert_int_equal(row->percent, percents[epoch]);
        assert_non_null(h.bucket->lanes[0].hot_list);
        assert_non_null(h.bucket->lanes[1].hot_list);
    }
    hot_close(&h);
}

/* After a suspended machine there is one epoch, as long as it was: what came in it is little for so
   long a time. */
static void test_a_long_epoch(void **state)
{
    (void)state;
    struct hotscene h;
    hot_start_limited(&h, 1, 100);
    tell(&h, h.bucket, 0, "k", 450);
    stage_advance(9 * HOT_EPOCH_US);
    hot_epoch(&h);
    assert_int_equal(hg_counter_get(&h.hot.last_length_us), 10 * HOT_EPOCH_US);
    assert_int_equal(hot_row(&h, "k", HG_HOT_ALL)->percent, 0);
    tell(&h, h.bucket, 0, "k", 450);
    hot_epoch(&h);
    assert_int_equal(hot_row(&h, "k", HG_HOT_ALL)->percent, 10);
    hot_close(&h);
}

/* More listed keys than fit in the room at first, and a list that grows. */
static void test_many_listed_keys(void **state)
{
    (void)state;
    struct hotscene h;
    char text[32];
    hot_start_limited(&h, 1, 10);
    for (unsigned epoch = 0; epoch < 8; epoch++) {
        for (unsigned i = 0; i < 10; i++) {
            snprintf(text, sizeof text, "hot:%u:%u", epoch, i);
            tell(&h, h.bucket, 0, text, 400); /* hot for four epochs, gone after seven */
        }
        hot_epoch(&h);
    }
    const struct hg_hottenant *tenant = h.bucket->hot_tenant;
    assert_int_equal(tenant->throttle.count, 70);
    assert_int_equal(hot_rows(&h), 70 + 10);
    struct hg_hotkey_key key = key_of(&h, "hot:0:0");
    assert_null(hg_keythrottle_find(&tenant->throttle, &key));
    key = key_of(&h, "hot:1:0");
    assert_int_equal(hg_keythrottle_find(&tenant->throttle, &key)->percent, 10);
    key = key_of(&h, "hot:7:9");
    assert_true(hg_keylist_find(h.bucket->lanes[0].hot_list->keys, &key) >= 0);
    hot_close(&h);
}

/* ---- tenants ---- */

static void test_a_tenant_deleted_during_an_epoch(void **state)
{
    (void)state;
    struct hotscene h;
    hot_init(&h, 2);
    struct hg_bucket *gone = hot_tenant(&h, "gone", 10);
    hot_open(&h);
    tell(&h, gone, 0, "k", 100);
    hot_epoch(&h);
    assert_non_null(gone->lanes[1].hot_list);
    tell(&h, gone, 0, "k", 100);
    tell(&h, h.bucket, 0, "k", 7);
    size_t before = used(&h);
    stage_delete(&h.s.stage, "gone");
    stage_publish(&h.s.stage);
    stage_run(&h.s.stage);
    assert_int_equal(h.s.stage.retired, 0);
    hg_hotkeys_forget_deleted(&h.hot);
    assert_int_equal(h.s.stage.retired, 1); /* at once: nobody waits for the end of the epoch */
    assert_true(used(&h) < before);
    hot_epoch(&h);
    assert_int_equal(hot_freq(&h, "k", HG_HOT_ALL), 7);
    /* Made again, it is a new one: nothing of the old one is known. */
    struct hg_bucket *again = stage_bucket(&h.s.stage, "gone", 0, HG_UNITS_UNLIMITED);
    atomic_store(&again->hotkey_tracking, true);
    stage_publish(&h.s.stage);
    stage_run(&h.s.stage);
    assert_null(hg_hotkeys_record(&h.hot, again, 0));
    tell(&h, again, 1, "k", 3);
    hot_epoch(&h);
    assert_int_equal(hg_hotkeys_record(&h.hot, again, 0)->rows[0].freq, 3);
    assert_null(hg_hotkeys_record(&h.hot, again, 1));
    hot_close(&h);
}

/* Deleted after its worker has handed over, before housekeeping has looked; and with its new list
   under way to the worker. */
static void test_deleted_at_awkward_times(void **state)
{
    (void)state;
    for (unsigned when = 0; when < 2; when++) {
        struct hotscene h;
        hot_init(&h, 1);
        struct hg_bucket *gone = hot_tenant(&h, "gone", 10);
        hot_open(&h);
        tell(&h, gone, 0, "k", 100);
        hot_end(&h);
        stage_run(&h.s.stage);
        if (when == 1)
            hot_wait(&h, 1);
        stage_delete(&h.s.stage, "gone");
        stage_publish(&h.s.stage);
        hot_wait(&h, 1);
        stage_run(&h.s.stage);
        hg_hotkeys_forget_deleted(&h.hot);
        assert_int_equal(h.s.stage.retired, 1);
        hot_close(&h);
    }
}

/* Workers end with everything under way. */
static void test_the_end_in_mid_epoch(void **state)
{
    (void)state;
    struct hotscene h;
    hot_start_limited(&h, 2, 10);
    tell(&h, h.bucket, 0, "k", 100);
    hot_epoch(&h);
    tell(&h, h.bucket, 0, "k", 100);
    tell(&h, h.bucket, 1, "k", 100);
    hot_end(&h);
    hg_loop_turn(&h.s.stage.workers[0].loop, false);
    tell(&h, h.bucket, 0, "other", 100);
    hot_close(&h);
}

/* ---- memory ---- */

static void test_counters_changed_at_run_time(void **state)
{
    (void)state;
    struct hotscene h;
    hot_start(&h);
    tell(&h, h.bucket, 0, "k", 5);
    assert_int_equal(h.bucket->lanes[0].hot->sketches[HG_HOT_ALL]->counters, 512);
    assert_int_equal(h.bucket->lanes[0].hot->sketches[HG_HOT_QUERY]->counters, 256);
    atomic_store(&hot_mem(&h)->counters, 128);
    for (unsigned epoch = 0; epoch < 3; epoch++) {
        hot_epoch(&h);
        assert_int_equal(hot_freq(&h, "k", HG_HOT_ALL), 5);
        tell(&h, h.bucket, 0, "k", 5);
        assert_int_equal(h.bucket->lanes[0].hot->sketches[HG_HOT_ALL]->counters, 128);
        assert_int_equal(h.bucket->lanes[0].hot->sketches[HG_HOT_QUERY]->counters, 64);
    }
    hot_close(&h);
}

/* Room for one full tenant and small ones: the busiest has it from the next epoch on. */
static void test_memory_is_scarce(void **state)
{
    (void)state;
    struct hotscene h;
    struct hg_bucket *quiet[4];
    hot_init(&h, 1);
    for (unsigned i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "quiet%u", i);
        quiet[i] = stage_bucket(&h.s.stage, name, 0, HG_UNITS_UNLIMITED);
        atomic_store(&quiet[i]->hotkey_tracking, true);
    }
    hot_open(&h);
    size_t full = hg_hotkey_bytes(512) + hg_hotkey_bytes(256);
    size_t small = 2 * hg_hotkey_bytes(64);
    uint64_t cap = (2 * full + 4 * 2 * small + (16u << 10)) * 8 / 7;
    assert_true(cap < 5 * full);
    atomic_store(&hot_mem(&h)->cap_bytes, cap);
    for (unsigned epoch = 0; epoch < 6; epoch++) {
        for (unsigned i = 0; i < 4; i++)
            tell(&h, quiet[i], 0, "k", 10 + i);
        tell(&h, h.bucket, 0, "k", 1000); /* the last to come, the most active */
        assert_true(used(&h) <= cap);
        hot_epoch(&h);
        assert_true(used(&h) <= cap);
    }
    assert_true(atomic_load(&hot_mem(&h)->refused) > 0);
    assert_false(atomic_load(&h.bucket->hotkey_shrunk));
    assert_true(atomic_load(&quiet[0]->hotkey_shrunk));
    assert_true(hg_counter_get(&h.hot.shrunk_tenants) >= 1);
    tell(&h, h.bucket, 0, "k", 1);
    assert_int_equal(h.bucket->lanes[0].hot->sketches[HG_HOT_ALL]->counters, 512);
    /* When there is memory again all are full. */
    atomic_store(&hot_mem(&h)->cap_bytes, 64u << 20);
    for (unsigned epoch = 0; epoch < 2; epoch++) {
        for (unsigned i = 0; i < 4; i++)
            tell(&h, quiet[i], 0, "k", 1);
        hot_epoch(&h);
        assert_false(atomic_load(&quiet[0]->hotkey_shrunk));
        assert_int_equal(hg_counter_get(&h.hot.shrunk_tenants), epoch == 0 ? 4 : 0);
    }
    hot_close(&h);
}

static void test_no_memory_at_all(void **state)
{
    (void)state;
    struct hotscene h;
    hot_init(&h, 1);
    atomic_store(&hot_mem(&h)->cap_bytes, 0);
    hot_open(&h);
    assert_int_equal(hot_gets(&h, "k", 20, 0), 20);
    struct hg_lane *lane = &h.bucket->lanes[0];
    assert_int_equal(hg_counter_get(&lane->hotkey_counted), 0);
    assert_int_equal(hg_counter_get(&lane->hotkey_dropped), 20);
    hot_epoch(&h);
    assert_int_equal(hot_rows(&h), 0);
    /* Looked at again in each epoch, not at each request. */
    uint64_t refused = atomic_load(&hot_mem(&h)->refused);
    hot_gets(&h, "k", 20, 0);
    assert_in_range(atomic_load(&hot_mem(&h)->refused), refused + 1, refused + 6);
    atomic_store(&hot_mem(&h)->cap_bytes, 64u << 20);
    hot_epoch(&h);
    tell(&h, h.bucket, 0, "k", 5);
    hot_epoch(&h);
    assert_int_equal(hot_freq(&h, "k", HG_HOT_ALL), 5);
    hot_close(&h);
}

/* ---- threads ---- */

static void answer_at_once(struct stage *stage, struct fakestore *store)
{
    (void)stage;
    store->answers = true;
}

/* The replies that have come, by whether the request was admitted. */
static void collect(struct client *client, uint64_t *admitted, uint64_t *refused)
{
    struct reply reply;
    client_read(client, SIZE_MAX);
    while (client_take(client, &reply)) {
        *admitted += reply.status == 0;
        *refused += reply.status == HG_STATUS_ETMPFAIL;
    }
}

/* Two workers on threads of their own serve clients while epochs end. */
static void test_threads(void **state)
{
    (void)state;
    struct hotscene h;
    struct client clients[2];
    hot_init(&h, 2);
    atomic_store(&h.bucket->hotkey_threshold, 20);
    h.s.stage.on_open = answer_at_once;
    stage_start(&h.s.stage);
    for (unsigned c = 0; c < 2; c++)
        stage_connect(&h.s.stage, c, &clients[c]);
    uint64_t sent = 0, admitted = 0, refused = 0;
    for (unsigned epoch = 1; epoch <= 12; epoch++) {
        for (unsigned c = 0; c < 2; c++) {
            for (unsigned i = 0; i < 200; i++)
                client_add_op(&clients[c], HG_OPCODE_GET, i % 2 ? "hot" : "cold", i);
            sent += 200;
        }
        hg_hotkeys_end_epoch(&h.hot, epoch * HOT_EPOCH_US, epoch, 0);
        for (unsigned c = 0; c < 2; c++)
            PATIENCE_WHILE(!client_send(&clients[c]))
        hg_loop_turn(&h.loop, false);
        uint64_t deadline = stage_deadline();
        while (admitted + refused < sent && hg_now_us() < deadline) {
            hg_loop_turn(&h.loop, false);
            for (unsigned c = 0; c < 2; c++)
                collect(&clients[c], &admitted, &refused);
        }
        assert_int_equal(admitted + refused, sent);
        hot_wait(&h, epoch);
    }
    assert_true(refused > 0);
    uint64_t counted = 0;
    for (unsigned w = 0; w < 2; w++)
        counted += hg_counter_get(&h.bucket->lanes[w].hotkey_counted);
    assert_int_equal(counted, admitted);
    for (unsigned c = 0; c < 2; c++)
        client_close(&clients[c]);
    STAGE_UNTIL(&h.s.stage, atomic_load(&h.s.stage.workers[0].load) == 0 &&
                                atomic_load(&h.s.stage.workers[1].load) == 0);
    for (unsigned w = 0; w < 2; w++)
        hg_worker_stop(&h.s.stage.workers[w]);
    h.s.stage.threads = false; /* they have ended */
    hot_end_stage(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers_are_merged),
        cmocka_unit_test(test_ten_epochs_of_history),
        cmocka_unit_test(test_memory_of_an_idle_tenant_goes),
        cmocka_unit_test(test_counting_allocates_nothing_when_warm),
        cmocka_unit_test(test_many_keys_none_and_one),
        cmocka_unit_test(test_a_late_worker),
        cmocka_unit_test(test_a_worker_that_misses_an_end),
        cmocka_unit_test(test_housekeeping_is_late),
        cmocka_unit_test(test_a_throttle_comes_and_goes),
        cmocka_unit_test(test_a_long_epoch),
        cmocka_unit_test(test_many_listed_keys),
        cmocka_unit_test(test_a_tenant_deleted_during_an_epoch),
        cmocka_unit_test(test_deleted_at_awkward_times),
        cmocka_unit_test(test_the_end_in_mid_epoch),
        cmocka_unit_test(test_counters_changed_at_run_time),
        cmocka_unit_test(test_memory_is_scarce),
        cmocka_unit_test(test_no_memory_at_all),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
