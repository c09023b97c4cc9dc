// t_table_batch - batches: order, what is under way, refusals among the results, all or none
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/table_in.h"
#include "tablescene.h"

static struct client *client_of(struct tablescene *t)
{
    return &t->s.client;
}

static void ask_batch(struct tablescene *t, bool atomic, const struct item *items, size_t count,
                      uint32_t opaque)
{
    table_ask(t, HG_OP_TABLE_BATCH, "t", "", body_batch(atomic, items, count), opaque);
}

/* Results come in the order of the items, whatever the order in which they end; and items of one
   row see each other. */
static void test_results_in_order(void **state)
{
    (void)state;
    static const struct item items[] = {{1, "a", 1}, {1, "b", 2}, {6, "a", 5},
                                        {0, "a", 0}, {1, "b", 9}, {2, "b", 0}};
    struct tablescene t;
    table_start(&t);
    t.by_hand = true;
    ask_batch(&t, false, items, 6, 1);
    assert_int_equal(fakestore_pending(t.s.store), 2);
    shelf_answer(&t.shelf, fakestore_nth(t.s.store, 1)); /* b before a */
    table_obey(&t);
    table_reply *reply = table_expect(&t, client_of(&t), 1);
    assert_int_equal(reply->n_items, 6);
    assert_int_equal(table_affected(), 4);
    static const uint16_t statuses[] = {0, 0, 0, 0, HG_STATUS_KEY_EEXISTS, 0};
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(reply->items[i]->status, statuses[i]);
    assert_int_equal(entity_int(reply->items[3]->entity, "n"), 6);
    assert_true(reply->items[4]->message.len > 0);
    assert_int_equal(reply->items[5]->affected, 1);
    table_close(&t);
}

static void test_sixteen_under_way(void **state)
{
    (void)state;
    struct item items[40];
    char rows[40][8];
    struct tablescene t;
    table_start(&t);
    t.by_hand = true;
    for (unsigned i = 0; i < 40; i++) {
        snprintf(rows[i], sizeof rows[i], "r%02u", i);
        items[i] = (struct item){5, rows[i], i};
    }
    ask_batch(&t, false, items, 40, 1);
    for (unsigned done = 0; done < 40; done++) {
        unsigned left = 40 - done;
        assert_int_equal(fakestore_pending(t.s.store), left < HG_TABLE_SLOTS ? left : 16);
        table_obey_one(&t, HG_OP_GET); /* the oldest; its write comes last in the list */
        shelf_answer(&t.shelf, fakestore_nth(t.s.store, fakestore_pending(t.s.store) - 1));
    }
    assert_int_equal(table_expect(&t, client_of(&t), 1)->n_items, 40);
    assert_int_equal(table_affected(), 40);
    table_close(&t);
}

/* What a client sends behind a batch does not overtake those of its items that wait for a place,
   and goes on when the last of them has one, not only when the batch is done. */
static void test_others_behind_a_batch(void **state)
{
    (void)state;
    struct item items[18];
    char rows[18][8];
    struct tablescene t;
    table_start(&t);
    t.by_hand = true;
    for (unsigned i = 0; i < 18; i++) {
        snprintf(rows[i], sizeof rows[i], "r%02u", i);
        items[i] = (struct item){5, rows[i], i};
    }
    ask_batch(&t, false, items, 18, 1);
    table_ask(&t, HG_OP_TABLE_GET, "t", "r17", body_none(), 2);
    assert_int_equal(fakestore_pending(t.s.store), HG_TABLE_SLOTS);
    for (unsigned i = 0; i < 2; i++) { /* two are done, the last two begin, then the get waits */
        table_obey_one(&t, HG_OP_GET);
        shelf_answer(&t.shelf, fakestore_nth(t.s.store, fakestore_pending(t.s.store) - 1));
    }
    assert_int_equal(fakestore_pending(t.s.store), HG_TABLE_SLOTS);
    table_ask(&t, HG_OP_TABLE_GET, "t", "other", body_none(), 3);
    assert_int_equal(fakestore_pending(t.s.store), HG_TABLE_SLOTS + 1);
    table_obey(&t);
    assert_int_equal(table_expect(&t, client_of(&t), 1)->n_items, 18);
    assert_int_equal(entity_int(table_expect(&t, client_of(&t), 2)->entity, "n"), 17);
    assert_null(table_expect(&t, client_of(&t), 3)->entity);
    table_close(&t);
}

/* A fault is one item's; the store's words, or ours, are in its result. */
static void test_faults_of_items(void **state)
{
    (void)state;
    static const struct item items[] = {{5, "a", 1}, {5, "b", 1}, {5, "c", 1}};
    struct tablescene t;
    table_start(&t);
    t.by_hand = true;
    ask_batch(&t, false, items, 3, 1);
    fakestore_fault(fakestore_nth(t.s.store, 0), HG_FAULT_DOWN);
    table_obey_one(&t, HG_OP_GET);
    table_obey_one(&t, HG_OP_GET);
    fakestore_fault(fakestore_nth(t.s.store, 0), HG_FAULT_LOST);
    table_obey(&t);
    table_reply *reply = table_expect(&t, client_of(&t), 1);
    assert_int_equal(reply->items[0]->status, HG_STATUS_ETMPFAIL); /* no XERROR */
    assert_int_equal(reply->items[1]->status, HG_STATUS_ETMPFAIL);
    assert_int_equal(reply->items[2]->status, 0);
    assert_true(reply->items[1]->message.len > 40); /* "it may have been carried out" */
    /* Down costs nothing; lost, what it would have. */
    assert_int_equal(hg_counter_get(&table_lane(&t)->ru), 2);
    assert_int_equal(hg_counter_get(&table_lane(&t)->wu), 2);
    table_close(&t);
}

static void test_atomic(void **state)
{
    (void)state;
    static const struct item good[] = {{1, "a", 1}, {6, "a", 2}, {6, "a", 3}},
                             bad[] = {{6, "a", 10}, {1, "a", 1}};
    struct tablescene t;
    table_start(&t);
    ask_batch(&t, true, good, 3, 1);
    assert_int_equal(table_expect(&t, client_of(&t), 1)->n_items, 3);
    assert_int_equal(t.shelf.counts[HG_OP_ADD], 1); /* one write */
    assert_int_equal(hg_counter_get(&table_lane(&t)->ru), 3);
    assert_int_equal(hg_counter_get(&table_lane(&t)->wu), 3);
    ask_batch(&t, true, bad, 2, 2);
    table_reply *reply = table_expect(&t, client_of(&t), 2);
    assert_int_equal(table_affected(), 0);
    assert_int_equal(reply->items[0]->status, HG_STATUS_NOT_STORED);
    assert_int_equal(reply->items[1]->status, HG_STATUS_KEY_EEXISTS);
    table_ask(&t, HG_OP_TABLE_GET, "t", "a", body_none(), 3);
    assert_int_equal(entity_int(table_expect(&t, client_of(&t), 3)->entity, "n"), 6);
    assert_int_equal(stage_outcome(&t.s.stage, HG_OUTCOME_NOT_DONE), 1);
    table_close(&t);
}

/* What does not fit into the reply any more is said to be so, item by item. */
static void test_large_results(void **state)
{
    (void)state;
    static const struct item items[] = {{0, "a", 0}, {0, "b", 0}, {0, "c", 0}, {0, "d", 0}};
    struct tablescene t;
    table_init(&t, 1);
    t.s.stage.settings.max_value_bytes = 65536;
    table_open(&t);
    for (unsigned i = 0; i < 3; i++) {
        table_ask(&t, HG_OP_TABLE_REPLACE, "t", items[i].row, body_bytes("b", 30000), i);
        table_expect(&t, client_of(&t), i);
    }
    ask_batch(&t, false, items, 4, 9);
    table_reply *reply = table_expect(&t, client_of(&t), 9);
    assert_int_equal(reply->items[0]->status, 0);
    assert_int_equal(reply->items[1]->status, 0);
    assert_int_equal(reply->items[2]->status, HG_STATUS_E2BIG);
    assert_int_equal(reply->items[3]->status, 0);
    assert_null(reply->items[3]->entity);
    table_close(&t);
}

static void test_client_goes(void **state)
{
    (void)state;
    struct item items[30];
    char rows[30][8];
    for (unsigned answered = 0; answered < 6; answered++) {
        struct tablescene t;
        table_start(&t);
        t.by_hand = true;
        for (unsigned i = 0; i < 30; i++) {
            snprintf(rows[i], sizeof rows[i], "r%u", i % 20); /* some wait in gates */
            items[i] = (struct item){6, rows[i], i};
        }
        ask_batch(&t, true, (const struct item[]){{6, "r0", 1}, {6, "r0", 1}}, 2, 1);
        ask_batch(&t, false, items, 30, 2); /* nothing gets past it */
        for (unsigned i = 0; i < answered * 3; i++)
            shelf_answer(&t.shelf, fakestore_first(t.s.store));
        uint64_t live = t.s.stage.workers[0].tables.live;
        assert_in_range(live, 1, 2);
        table_reset(&t, client_of(&t));
        assert_int_equal(fakestore_pending(t.s.store), 0);
        assert_int_equal(t.s.stage.workers[0].tables.live, 0);
        assert_int_equal(stage_outcome(&t.s.stage, HG_OUTCOME_CLIENT_GONE), live);
        table_close(&t);
    }
}

/* The bucket goes while items are under way: the rest is told so. */
static void test_bucket_goes(void **state)
{
    (void)state;
    struct item items[20];
    char rows[20][8];
    struct tablescene t;
    table_start(&t);
    t.by_hand = true;
    for (unsigned i = 0; i < 20; i++) {
        snprintf(rows[i], sizeof rows[i], "r%u", i);
        items[i] = (struct item){0, rows[i], 0};
    }
    ask_batch(&t, false, items, 20, 1);
    stage_delete(&t.s.stage, "default");
    stage_publish(&t.s.stage);
    stage_run(&t.s.stage);
    table_obey(&t);
    table_reply *reply = table_expect(&t, client_of(&t), 1);
    assert_int_equal(reply->items[15]->status, 0);
    assert_int_equal(reply->items[16]->status, HG_STATUS_NO_BUCKET);
    assert_int_equal(reply->items[19]->status, HG_STATUS_NO_BUCKET);
    table_close(&t);
}

/* Admitted at once for the sum of its items. */
static void test_held_for_the_sum(void **state)
{
    (void)state;
    static const struct item reads[] = {{0, "a", 0}, {0, "b", 0}, {0, "c", 0}},
                             writes[] = {{5, "a", 1}, {5, "b", 1}};
    struct tablescene t;
    table_init(&t, 1);
    stage_bucket(&t.s.stage, "tight", 0, 6);
    t.s.stage.anonymous_bucket = "tight";
    table_open(&t);
    ask_batch(&t, false, reads, 3, 1); /* 3 */
    table_expect(&t, client_of(&t), 1);
    ask_batch(&t, false, writes, 2, 2); /* 4 */
    stage_expect_nothing(&t.s.stage, client_of(&t));
    assert_int_equal(t.s.stage.workers[0].tables.live, 1);
    stage_tick(&t.s.stage);
    table_expect(&t, client_of(&t), 2);
    assert_int_equal(hg_counter_get(&stage_find(&t.s.stage, "tight")->lanes[0].units), 7);
    table_close(&t);
}

static void test_hbase_batch(void **state)
{
    (void)state;
    /* HYBRID: PUT r (f:q = v), GET r */
    static const struct hg_span body = HG_SPAN_LIT("\x3a\x10\x08\x01\x12\x01r\x1a\x09\x0a\x01"
                                                   "f\x12\x01q\x22\x01v"
                                                   "\x3a\x05\x08\x05\x12\x01r");
    struct tablescene t;
    table_start(&t);
    table_ask(&t, HG_OP_HBASE_HYBRID, "h", "", body, 1);
    hbase_reply *reply = hbase_expect(&t, client_of(&t), 1);
    assert_int_equal(reply->n_items, 2);
    assert_int_equal(reply->items[0]->affected, 1);
    assert_int_equal(reply->items[1]->n_cells, 1);
    table_close(&t);
}

/* ---- hot keys ---- */

/* The row "hot" of table "t" is refused always, as it would be after ten epochs of a flood. */
struct refused_row {
    struct hg_keythrottle throttle;
    struct hg_keythrottle_key keys[HG_HOT_TOP + 1];
    struct hg_hotlist *list;
};

static void *need(size_t bytes)
{
    void *memory = calloc(1, bytes);
    assert_non_null(memory);
    return memory;
}

static void make_hot(struct tablescene *t, struct refused_row *hot)
{
    uint8_t room[HG_HOTKEY_KEY_MAX];
    struct hg_hotkey_key key =
        hg_hot_key(&t->s.stage.workers[0], HG_SPAN_LIT("t"), HG_SPAN_LIT("hot"), room);
    struct hg_hotkey *sketch = hg_hotkey_init(need(hg_hotkey_bytes(64)), 64);
    void *memory = need(hg_hotmerge_bytes(64)), *scratch = need(hg_hotmerge_scratch_bytes(64));
    assert_true(hg_hotkey_tell(sketch, &key, 1000));
    const struct hg_hotkey *sketches[] = {sketch};
    const struct hg_hotmerge *merged = hg_hotmerge_make(memory, 64, sketches, 1, scratch);
    memset(hot, 0, sizeof *hot);
    hot->throttle.keys = hot->keys;
    hot->throttle.room = HG_HOT_TOP + 1;
    struct hg_keythrottle_settings settings = {1, HG_HOTKEY_STEP};
    struct hg_keythrottle_span spans[HG_KEYTHROTTLE_EPOCHS] = {{merged, 0}};
    for (unsigned epoch = 0; epoch < 10; epoch++)
        hg_keythrottle_epoch(&hot->throttle, &settings, spans, 2000000);
    free(memory);
    free(scratch);
    free(sketch);
    size_t bytes = sizeof *hot->list + hg_keylist_bytes(&hot->throttle);
    bytes = (bytes + HG_CACHE_LINE - 1) & ~(size_t)(HG_CACHE_LINE - 1);
    hot->list = aligned_alloc(HG_CACHE_LINE, bytes);
    assert_non_null(hot->list);
    hot->list->keys = hg_keylist_make(hot->list->memory, &hot->throttle, HG_HOTKEY_STEP, 0);
    assert_int_equal(hg_keylist_percent(hot->list->keys, hg_keylist_find(hot->list->keys, &key)),
                     100);
    struct hg_bucket *bucket = stage_find(&t->s.stage, "default");
    atomic_store(&bucket->hotkey_threshold, 1);
    atomic_store(&bucket->hotkey_mode, HG_MODE_ENFORCE);
    atomic_store(&bucket->hotkey_tracking, true);
    table_lane(t)->hot_list = hot->list;
}

static void end_hot(struct tablescene *t, struct refused_row *hot)
{
    table_lane(t)->hot_list = NULL;
    free(hot->list);
}

/* One row is refused, whatever is done to it, before its body is looked at. */
static void test_hot_row(void **state)
{
    (void)state;
    struct tablescene t;
    struct refused_row hot;
    table_start(&t);
    make_hot(&t, &hot);
    table_ask(&t, HG_OP_TABLE_GET, "t", "hot", HG_SPAN_LIT("\xff"), 1);
    assert_non_null(strstr(table_refused(&t, client_of(&t), HG_OP_TABLE_GET, HG_STATUS_ETMPFAIL, 1),
                           "too often"));
    table_ask(&t, HG_OP_TABLE_REPLACE, "t", "hot", body_entity("n", 1), 2);
    table_refused(&t, client_of(&t), HG_OP_TABLE_REPLACE, HG_STATUS_ETMPFAIL, 2);
    table_ask(&t, HG_OP_TABLE_QUERY, "t", "", body_query("hot", "hot", 0, 0, false), 3);
    table_refused(&t, client_of(&t), HG_OP_TABLE_QUERY, HG_STATUS_ETMPFAIL, 3);
    table_ask(&t, HG_OP_TABLE_QUERY, "t", "", body_query("hot", "hou", 0, 0, false), 4);
    stage_run(&t.s.stage);
    table_part(&t); /* a range is not counted, and so not refused */
    table_expect(&t, client_of(&t), 4);
    table_ask(&t, HG_OP_TABLE_GET, "t2", "hot", body_none(), 5); /* another table's */
    table_expect(&t, client_of(&t), 5);
    client_add_hello(client_of(&t), 6, (const uint16_t[]){0x07, 0});
    scene_send(&t.s);
    scene_expect(&t.s, HG_OPCODE_HELLO, 0, 6);
    table_ask(&t, HG_OP_TABLE_GET, "t", "hot", body_none(), 7);
    table_refused(&t, client_of(&t), HG_OP_TABLE_GET, HG_STATUS_HOT_KEY, 7);
    assert_int_equal(stage_outcome(&t.s.stage, HG_OUTCOME_HOT_KEY), 4);
    assert_int_equal(hg_counter_get(&table_lane(&t)->hotkey_rejected), 4);
    end_hot(&t, &hot);
    table_close(&t);
}

/* Items are refused one by one; an atomic batch as a whole. */
static void test_hot_items(void **state)
{
    (void)state;
    static const struct item items[] = {{5, "a", 1}, {5, "hot", 1}, {0, "hot", 0}, {0, "a", 0}},
                             atomic[] = {{5, "hot", 1}, {6, "hot", 1}}, all[] = {{0, "hot", 0}};
    struct tablescene t;
    struct refused_row hot;
    table_start(&t);
    make_hot(&t, &hot);
    ask_batch(&t, false, items, 4, 1);
    table_reply *reply = table_expect(&t, client_of(&t), 1);
    assert_int_equal(reply->items[0]->status, 0);
    assert_int_equal(reply->items[1]->status, HG_STATUS_ETMPFAIL);
    assert_int_equal(reply->items[2]->status, HG_STATUS_ETMPFAIL);
    assert_int_equal(reply->items[3]->status, 0);
    assert_true(reply->items[1]->message.len > 0);
    assert_int_equal(entity_int(reply->items[3]->entity, "n"), 1);
    assert_int_equal(hg_counter_get(&table_lane(&t)->ru), 2);
    ask_batch(&t, true, atomic, 2, 2);
    table_refused(&t, client_of(&t), HG_OP_TABLE_BATCH, HG_STATUS_ETMPFAIL, 2);
    ask_batch(&t, false, all, 1, 3);
    assert_int_equal(table_expect(&t, client_of(&t), 3)->items[0]->status, HG_STATUS_ETMPFAIL);
    assert_int_equal(hg_counter_get(&table_lane(&t)->hotkey_rejected), 4);
    end_hot(&t, &hot);
    table_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results_in_order), cmocka_unit_test(test_sixteen_under_way),
        cmocka_unit_test(test_faults_of_items),  cmocka_unit_test(test_atomic),
        cmocka_unit_test(test_large_results),    cmocka_unit_test(test_client_goes),
        cmocka_unit_test(test_bucket_goes),      cmocka_unit_test(test_held_for_the_sum),
        cmocka_unit_test(test_hbase_batch),      cmocka_unit_test(test_hot_row),
        cmocka_unit_test(test_hot_items),        cmocka_unit_test(test_others_behind_a_batch),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
