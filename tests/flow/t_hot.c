// t_hot - hot keys on the way of a request: what is counted, what is refused, and how
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hotscene.h"

static const uint16_t xerror[] = {0x07, 0x0b, 0};
static const uint16_t xerror_only[] = {0x07, 0};
static const uint16_t nonblocking[] = {0x1b, 0};

static void say_hello(struct hotscene *h, const uint16_t *codes)
{
    client_add_hello(&h->s.client, 7777, codes);
    scene_send(&h->s);
    scene_expect(&h->s, HG_OPCODE_HELLO, 0, 7777);
}

/* A client that nothing is refused to, and that counts. */
static void connect_exempt(struct hotscene *h, struct client *ret)
{
    uint32_t before = h->s.stage.anonymous_privileges;
    h->s.stage.anonymous_privileges |= HG_PRIVILEGE_BIT(HG_PRIVILEGE_UNTHROTTLED);
    stage_connect(&h->s.stage, 0, ret);
    stage_run(&h->s.stage);
    h->s.stage.anonymous_privileges = before;
}

static void flood(struct hotscene *h, struct client *client, const char *key, unsigned n)
{
    struct reply reply;
    for (unsigned i = 0; i < n; i++)
        client_add_op(client, HG_OPCODE_GET, key, i);
    unsigned answered = 0;
    STAGE_UNTIL(&h->s.stage, client_send(client));
    PATIENCE_WHILE(answered < n)
    {
        stage_run(&h->s.stage);
        client_read(client, SIZE_MAX);
        while (client_take(client, &reply)) {
            assert_int_equal(reply.status, 0);
            answered++;
        }
    }
}

/* All requests for "hot" are refused from now on: an exempt client has asked for it so often. */
static void make_hot(struct hotscene *h)
{
    struct client exempt;
    connect_exempt(h, &exempt);
    for (unsigned percent = 10; percent <= 100; percent += 10) {
        flood(h, &exempt, "hot", percent == 10 ? 50 : 20);
        hot_epoch(h);
        const struct hg_hotrow *row = hot_row(h, "hot", HG_HOT_ALL);
        assert_non_null(row);
        assert_int_equal(row->percent, percent);
    }
    client_close(&exempt);
    stage_run(&h->s.stage);
}

static void start_hot(struct hotscene *h)
{
    hot_start_limited(h, 1, 10);
    make_hot(h);
}

/* ---- counting ---- */

static void test_each_type_under_its_own(void **state)
{
    (void)state;
    struct hotscene h;
    static const uint8_t zeros[20];
    hot_start(&h);
    struct client *client = &h.s.client;
    client_add_op(client, HG_OPCODE_GET, "k", 1);
    client_add_op(client, HG_OPCODE_GETK, "k", 2);
    client_add(client, &(struct ask){HG_OPCODE_GAT, "k", 3, .extras = hg_span(zeros, 4)});
    client_add_set(client, HG_OPCODE_SET, "k", "v", 1, 4);
    client_add_set(client, HG_OPCODE_ADD, "k", "v", 1, 5);
    client_add_set(client, HG_OPCODE_REPLACE, "k", "v", 1, 6);
    client_add(client, &(struct ask){HG_OPCODE_INCREMENT, "k", 7, .extras = hg_span(zeros, 20)});
    client_add(client, &(struct ask){HG_OPCODE_APPEND, "k", 8, .value = HG_SPAN_LIT("v")});
    client_add(client, &(struct ask){HG_OPCODE_TOUCH, "k", 9, .extras = hg_span(zeros, 4)});
    client_add_op(client, HG_OPCODE_DELETE, "k", 10);
    client_add_op(client, HG_OPCODE_FLUSH, NULL, 11);
    client_add_op(client, HG_OPCODE_NOOP, NULL, 12);
    scene_send(&h.s);
    hot_epoch(&h);
    assert_int_equal(hot_freq(&h, "k", HG_HOT_ALL), 10);
    assert_int_equal(hot_freq(&h, "k", HG_HOT_QUERY), 3);
    assert_int_equal(hot_freq(&h, "k", HG_HOT_INSERT), 2);
    assert_int_equal(hot_freq(&h, "k", HG_HOT_UPDATE), 4);
    assert_int_equal(hot_freq(&h, "k", HG_HOT_DELETE), 1);
    assert_int_equal(hot_rows(&h), 5); /* and no row for the flush */
    assert_int_equal(hg_counter_get(&h.bucket->lanes[0].hotkey_counted), 10);
    hot_epoch(&h);
    assert_int_equal(hot_rows(&h), 0);
    hot_close(&h);
}

/* A store that answers in submit: the request is gone when it is counted. */
static void test_an_answer_within_submit(void **state)
{
    (void)state;
    struct hotscene h;
    hot_start(&h);
    assert_int_equal(hot_gets(&h, "k", 300, 0), 300);
    hot_epoch(&h);
    assert_int_equal(hot_freq(&h, "k", HG_HOT_QUERY), 300);
    hot_close(&h);
}

static void test_what_waits_for_room(void **state)
{
    (void)state;
    struct hotscene h;
    hot_start(&h);
    h.s.store->answers = false;
    h.s.store->room = 1;
    client_add_op(&h.s.client, HG_OPCODE_GET, "a", 1);
    client_add_op(&h.s.client, HG_OPCODE_GET, "b", 2);
    client_add_op(&h.s.client, HG_OPCODE_GET, "c", 3);
    scene_send(&h.s);
    fakestore_obey(fakestore_find(h.s.store, "a"));
    fakestore_call_room(fakestore_find(h.s.store, "b"));
    stage_run(&h.s.stage);
    assert_true(fakestore_find(h.s.store, "c")->waiting);
    fakestore_fault(fakestore_find(h.s.store, "c"), HG_FAULT_QUEUE_TIMEOUT);
    fakestore_obey_all(h.s.store);
    stage_run(&h.s.stage);
    hot_epoch(&h);
    assert_int_equal(hot_freq(&h, "a", HG_HOT_QUERY), 1);
    assert_int_equal(hot_freq(&h, "b", HG_HOT_QUERY), 1); /* once, though it was submitted twice */
    assert_int_equal(hot_freq(&h, "c", HG_HOT_QUERY), 0);
    hot_close(&h);
}

static void test_refused_for_credits_is_not_counted(void **state)
{
    (void)state;
    struct hotscene h;
    hot_start(&h);
    hg_credit_bucket_set(&h.bucket->credit, 0, 5, false);
    say_hello(&h, nonblocking);
    stage_tick(&h.s.stage);
    unsigned passed = hot_gets(&h, "k", 20, 0);
    assert_in_range(passed, 1, 6);
    hot_epoch(&h);
    assert_int_equal(hot_freq(&h, "k", HG_HOT_ALL), passed);
    hot_close(&h);
}

static void test_without_tracking_nothing_is_counted(void **state)
{
    (void)state;
    struct hotscene h;
    hot_init(&h, 1);
    atomic_store(&h.bucket->hotkey_tracking, false);
    hot_open(&h);
    hot_gets(&h, "k", 20, 0);
    assert_int_equal(atomic_load(&hot_mem(&h)->used_bytes), 0);
    hot_epoch(&h);
    assert_int_equal(hot_rows(&h), 0);
    hot_close(&h);
}

static void test_long_keys(void **state)
{
    (void)state;
    struct hotscene h;
    char key[251];
    hot_start(&h);
    memset(key, 'k', 250);
    for (unsigned len = 250; len >= 38; len -= 4) {
        key[len] = '\0';
        hot_gets(&h, key, len, 0);
    }
    hot_epoch(&h);
    memset(key, 'k', 250);
    for (unsigned len = 250; len > 250 - 40; len -= 4) {
        key[len] = '\0';
        assert_int_equal(hot_freq(&h, key, HG_HOT_QUERY), len);
    }
    hot_close(&h);
}

/* ---- refusing ---- */

static void test_named_refusal(void **state)
{
    (void)state;
    struct hotscene h;
    start_hot(&h);
    say_hello(&h, xerror);
    stage_advance(500000);
    client_ask(&h.s.client, HG_OPCODE_GET, "hot", 1);
    struct reply reply = scene_expect(&h.s, HG_OPCODE_GET, HG_STATUS_HOT_KEY, 1);
    const char *text = reply_text(&reply);
    assert_non_null(strstr(text,
                           "\"limit\":\"kv_hotkey_throttle_threshold\",\"tenant\":\"default\","
                           "\"type\":\"TABLE_HOTKEY_QUERY\",\"percent\":100,"
                           "\"retry_after_ms\":1500"));
    /* Whatever its type; other keys do not feel it. */
    client_add_set(&h.s.client, HG_OPCODE_SET, "hot", "v", 1, 2);
    client_add_op(&h.s.client, HG_OPCODE_DELETE, "hot", 3);
    client_add_op(&h.s.client, HG_OPCODE_GETQ, "hot", 4);
    client_add_op(&h.s.client, HG_OPCODE_GET, "ho", 5);
    client_add_op(&h.s.client, HG_OPCODE_GET, "hotter", 6);
    scene_send(&h.s);
    reply = scene_expect(&h.s, HG_OPCODE_SET, HG_STATUS_HOT_KEY, 2);
    assert_non_null(strstr(reply_text(&reply), "\"type\":\"TABLE_HOTKEY_INSERT\""));
    scene_expect(&h.s, HG_OPCODE_DELETE, HG_STATUS_HOT_KEY, 3);
    scene_expect(&h.s, HG_OPCODE_GETQ, HG_STATUS_HOT_KEY, 4);
    scene_expect(&h.s, HG_OPCODE_GET, 0, 5);
    scene_expect(&h.s, HG_OPCODE_GET, 0, 6);
    assert_int_equal(stage_outcome(&h.s.stage, HG_OUTCOME_HOT_KEY), 4);
    assert_int_equal(hg_counter_get(&h.bucket->lanes[0].hotkey_rejected), 4);
    /* Refusals are shown, and not counted as admitted. */
    hot_epoch(&h);
    assert_int_equal(hot_row(&h, "hot", HG_HOT_ALL)->rejected, 4);
    assert_int_equal(hot_freq(&h, "hot", HG_HOT_ALL), 0);
    hot_close(&h);
}

static void test_a_refusal_is_free_of_credits(void **state)
{
    (void)state;
    struct hotscene h;
    start_hot(&h);
    uint64_t before = hg_counter_get(&h.bucket->lanes[0].units);
    say_hello(&h, xerror_only);
    assert_int_equal(hot_gets(&h, "hot", 30, HG_STATUS_HOT_KEY), 30);
    assert_int_equal(hg_counter_get(&h.bucket->lanes[0].units), before);
    hot_close(&h);
}

/* In order, behind what is under way. */
static void test_a_refusal_waits_for_its_turn(void **state)
{
    (void)state;
    struct hotscene h;
    start_hot(&h);
    say_hello(&h, xerror_only);
    h.s.store->answers = false;
    client_add_op(&h.s.client, HG_OPCODE_GET, "cold", 1);
    client_add_op(&h.s.client, HG_OPCODE_GET, "hot", 2);
    client_add_op(&h.s.client, HG_OPCODE_GET, "cold", 3);
    scene_send(&h.s);
    stage_expect_nothing(&h.s.stage, &h.s.client);
    fakestore_obey_all(h.s.store);
    scene_expect(&h.s, HG_OPCODE_GET, 0, 1);
    scene_expect(&h.s, HG_OPCODE_GET, HG_STATUS_HOT_KEY, 2);
    scene_expect(&h.s, HG_OPCODE_GET, 0, 3);
    hot_close(&h);
}

static void test_plain_clients_get_the_tenants_status(void **state)
{
    (void)state;
    struct hotscene h;
    start_hot(&h);
    struct client *client = &h.s.client;
    client_ask(client, HG_OPCODE_GET, "hot", 1);
    scene_expect(&h.s, HG_OPCODE_GET, HG_STATUS_ETMPFAIL, 1);
    atomic_store(&h.bucket->reject_status, HG_REJECT_BUSY);
    client_ask(client, HG_OPCODE_GET, "hot", 2);
    scene_expect(&h.s, HG_OPCODE_GET, HG_STATUS_EBUSY, 2);
    atomic_store(&h.bucket->reject_status, HG_REJECT_DEGRADE);
    client_add_op(client, HG_OPCODE_GET, "hot", 3);
    client_add_op(client, HG_OPCODE_GETQ, "hot", 4); /* a miss: silence */
    client_add_op(client, HG_OPCODE_GETK, "hot", 5);
    client_add_set(client, HG_OPCODE_SET, "hot", "v", 1, 6);
    client_add_set(client, HG_OPCODE_SETQ, "hot", "v", 1, 7);
    client_add_op(client, HG_OPCODE_DELETE, "hot", 8);
    scene_send(&h.s);
    scene_expect(&h.s, HG_OPCODE_GET, HG_STATUS_KEY_ENOENT, 3);
    struct reply reply = scene_expect(&h.s, HG_OPCODE_GETK, HG_STATUS_KEY_ENOENT, 5);
    assert_int_equal(reply.key.len, 3);
    scene_expect(&h.s, HG_OPCODE_SET, HG_STATUS_NOT_STORED, 6);
    scene_expect(&h.s, HG_OPCODE_SETQ, HG_STATUS_NOT_STORED, 7);
    scene_expect(&h.s, HG_OPCODE_DELETE, HG_STATUS_ETMPFAIL, 8);
    assert_int_equal(stage_outcome(&h.s.stage, HG_OUTCOME_HOT_KEY), 8);
    hot_close(&h);
}

static void test_non_blocking_clients_know_the_status(void **state)
{
    (void)state;
    struct hotscene h;
    start_hot(&h);
    say_hello(&h, nonblocking);
    client_ask(&h.s.client, HG_OPCODE_GET, "hot", 1);
    scene_expect(&h.s, HG_OPCODE_GET, HG_STATUS_HOT_KEY, 1);
    hot_close(&h);
}

static void test_observe_refuses_nothing(void **state)
{
    (void)state;
    struct hotscene h;
    start_hot(&h);
    atomic_store(&h.bucket->hotkey_mode, HG_MODE_OBSERVE);
    assert_int_equal(hot_gets(&h, "hot", 40, 0), 40);
    assert_int_equal(hg_counter_get(&h.bucket->lanes[0].hotkey_would_reject), 40);
    assert_int_equal(hg_counter_get(&h.bucket->lanes[0].hotkey_rejected), 0);
    hot_epoch(&h);
    assert_int_equal(hot_freq(&h, "hot", HG_HOT_ALL), 40);
    assert_int_equal(hot_row(&h, "hot", HG_HOT_ALL)->percent, 100);
    assert_int_equal(hot_row(&h, "hot", HG_HOT_ALL)->rejected, 0);
    hot_close(&h);
}

/* What ends at once, and what the next epoch shows then. */
static void switch_off(struct hotscene *h, void (*change)(struct hg_bucket *), bool ranked)
{
    start_hot(h);
    assert_int_equal(hot_gets(h, "hot", 5, HG_STATUS_ETMPFAIL), 5);
    change(h->bucket);
    assert_int_equal(hot_gets(h, "hot", 5, 0), 5);
    hot_epoch(h);
    assert_null(h->bucket->lanes[0].hot_list);
    if (ranked) {
        assert_int_equal(hot_freq(h, "hot", HG_HOT_ALL), 5);
        assert_int_equal(hot_row(h, "hot", HG_HOT_ALL)->percent, 0);
    }
    hot_gets(h, "hot", 5, 0);
    hot_epoch(h);
    assert_int_equal(hot_rows(h), ranked ? 2 : 0);
    hot_close(h);
}

static void set_threshold_0(struct hg_bucket *bucket)
{
    atomic_store(&bucket->hotkey_threshold, 0);
}

static void set_mode_off(struct hg_bucket *bucket)
{
    atomic_store(&bucket->hotkey_mode, HG_MODE_OFF);
}

static void set_tracking_off(struct hg_bucket *bucket)
{
    atomic_store(&bucket->hotkey_tracking, false);
}

static void test_switched_off_at_once(void **state)
{
    (void)state;
    struct hotscene h;
    switch_off(&h, set_threshold_0, true);
    switch_off(&h, set_mode_off, true);
    switch_off(&h, set_tracking_off, false);
}

static void test_the_share_is_kept(void **state)
{
    (void)state;
    struct hotscene h;
    struct client exempt;
    hot_start_limited(&h, 1, 10);
    connect_exempt(&h, &exempt);
    for (unsigned i = 0; i < 3; i++) {
        flood(&h, &exempt, "hot", 60);
        hot_epoch(&h);
    }
    assert_int_equal(hot_row(&h, "hot", HG_HOT_ALL)->percent, 30);
    unsigned refused = hot_gets(&h, "hot", 4000, HG_STATUS_ETMPFAIL);
    assert_in_range(refused, 1200 - 150, 1200 + 150); /* five standard deviations */
    client_close(&exempt);
    stage_run(&h.s.stage);
    hot_close(&h);
}

/* The list is in force between the end of an epoch and the coming of the next list, and what is
   refused then is not lost. */
static void test_no_gap_between_lists(void **state)
{
    (void)state;
    struct hotscene h;
    start_hot(&h);
    hot_end(&h);
    stage_run(&h.s.stage); /* handed over */
    assert_int_equal(hot_gets(&h, "hot", 7, HG_STATUS_ETMPFAIL), 7);
    hot_wait(&h, 11);
    stage_run(&h.s.stage);
    assert_int_equal(hot_row(&h, "hot", HG_HOT_ALL)->rejected, 0);
    assert_int_equal(hot_gets(&h, "hot", 4, HG_STATUS_ETMPFAIL), 4);
    hot_epoch(&h);
    assert_int_equal(hot_row(&h, "hot", HG_HOT_ALL)->rejected, 11);
    hot_close(&h);
}

/* A table's key is another one than the same bytes without. */
static void test_keys_of_tables(void **state)
{
    (void)state;
    struct hotscene h;
    uint8_t room[4][HG_HOTKEY_KEY_MAX], row[250];
    hot_start(&h);
    struct hg_worker *worker = &h.s.stage.workers[0];
    struct hg_hotkey_key plain = hg_hot_key(worker, HG_SPAN_NONE, HG_SPAN_LIT("abc"), room[0]);
    struct hg_hotkey_key one = hg_hot_key(worker, HG_SPAN_LIT("a"), HG_SPAN_LIT("bc"), room[1]);
    struct hg_hotkey_key two = hg_hot_key(worker, HG_SPAN_LIT("ab"), HG_SPAN_LIT("c"), room[2]);
    assert_int_not_equal(plain.hash, one.hash);
    assert_int_not_equal(one.hash, two.hash);
    assert_int_equal(one.table_len, 1);
    assert_memory_equal(two.at, "abc", 3);
    memset(row, 'r', sizeof row);
    struct hg_hotkey_key cut =
        hg_hot_key(worker, HG_SPAN_LIT("table"), hg_span(row, sizeof row), room[3]);
    assert_int_equal(cut.len, HG_HOTKEY_KEY_MAX);
    assert_int_equal(cut.table_len, 5);
    struct hg_lane *lane = &h.bucket->lanes[0];
    hg_hot_tell(worker, lane, HG_HOT_QUERY, &plain);
    for (unsigned i = 0; i < 2; i++)
        hg_hot_tell(worker, lane, HG_HOT_QUERY, &one);
    for (unsigned i = 0; i < 3; i++)
        hg_hot_tell(worker, lane, HG_HOT_QUERY, &two);
    hot_epoch(&h);
    const struct hg_hotrecord *record = hg_hotkeys_record(&h.hot, h.bucket, 0);
    assert_int_equal(record->count, 6);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(record->rows[i].freq, 3 - i);
        assert_int_equal(record->rows[i].table_len, 2 - i);
    }
    hot_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_type_under_its_own),
        cmocka_unit_test(test_an_answer_within_submit),
        cmocka_unit_test(test_what_waits_for_room),
        cmocka_unit_test(test_refused_for_credits_is_not_counted),
        cmocka_unit_test(test_without_tracking_nothing_is_counted),
        cmocka_unit_test(test_long_keys),
        cmocka_unit_test(test_named_refusal),
        cmocka_unit_test(test_a_refusal_is_free_of_credits),
        cmocka_unit_test(test_a_refusal_waits_for_its_turn),
        cmocka_unit_test(test_plain_clients_get_the_tenants_status),
        cmocka_unit_test(test_non_blocking_clients_know_the_status),
        cmocka_unit_test(test_observe_refuses_nothing),
        cmocka_unit_test(test_switched_off_at_once),
        cmocka_unit_test(test_the_share_is_kept),
        cmocka_unit_test(test_no_gap_between_lists),
        cmocka_unit_test(test_keys_of_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
