// t_rowguard - classic operations on keys that may be rows': the answers are those without a guard
// SPDX-License-Identifier: BSD-3-Clause
#include "rowscene.h"

#include <stdio.h>

static const char key[256] = "table\0row";
#define KEY hg_span(key, 9)

struct guarded {
    struct hg_guard guard;
    struct hg_call call;
    unsigned done, rooms;
    struct hg_result result;
    uint8_t value[256];
    size_t value_len;
};

static void on_done(struct hg_call *call, const struct hg_result *result)
{
    struct guarded *g = HG_CONTAINER_OF(call, struct guarded, call);
    assert_false(call->place.pending || call->place.waiting);
    g->done++;
    g->result = *result;
    g->value_len = result->value.len;
    assert_true(g->value_len <= sizeof g->value);
    if (g->value_len > 0)
        memcpy(g->value, result->value.at, g->value_len);
}

static void on_room(struct hg_call *call)
{
    HG_CONTAINER_OF(call, struct guarded, call)->rooms++;
}

/* Submits the operation; the bytes it is given in are overwritten at once. */
static void begin_in_blob(struct rowscene *s, struct guarded *g, const struct hg_item_ask *ask,
                          struct hg_blob *blob)
{
    uint8_t bytes[512];
    memset(g, 0, sizeof *g);
    g->call = (struct hg_call){.op = ask->op,
                               .key_hash = 5,
                               .item_flags = ask->flags,
                               .expiry = ask->expiry,
                               .cas = ask->cas,
                               .delta = ask->delta,
                               .initial = ask->initial,
                               .blob = blob,
                               .on_done = on_done,
                               .on_room = on_room};
    memcpy(bytes, "pre:", 4);
    memcpy(bytes + 4, KEY.at, KEY.len);
    g->call.prefix = hg_span(bytes, 4);
    g->call.key = hg_span(bytes + 4, KEY.len);
    g->call.value = ask->value;
    if (blob == NULL) {
        if (ask->value.len > 0)
            memcpy(bytes + 4 + KEY.len, ask->value.at, ask->value.len);
        g->call.value = hg_span(bytes + 4 + KEY.len, ask->value.len);
    }
    hg_rows_guard(s->rows, s->store, &s->worker.blobs, &g->guard, &g->call);
    memset(bytes, 0xdd, sizeof bytes);
    g->call.key = g->call.prefix = g->call.value = HG_SPAN_NONE;
}

static void begin(struct rowscene *s, struct guarded *g, const struct hg_item_ask *ask)
{
    begin_in_blob(s, g, ask, NULL);
}

/* --- every operation on everything a key may hold --- */

enum content { NOTHING, TEXT, NUMBER, EMPTY, ROW, CONTENTS };

static void hold(struct shelf *shelf, enum content content)
{
    if (shelf_find(shelf, key) != NULL)
        shelf_put(shelf, key, 0, HG_SPAN_NONE);
    shelf->cas_last += 10;
    switch (content) {
    case TEXT:
        shelf_put(shelf, key, 7, HG_SPAN_LIT("text"));
        break;
    case NUMBER:
        shelf_put(shelf, key, 8, HG_SPAN_LIT("41"));
        break;
    case EMPTY:
        shelf_put(shelf, key, 9, HG_SPAN_LIT(""));
        break;
    case ROW:
        shelf_put(shelf, key, HG_ROWDOC_FLAGS, rowop_document(HG_API_TABLE, 3, 0));
        break;
    default:
        break;
    }
}

static void expect_same_items(struct shelf *a, struct shelf *b)
{
    struct shelf_item *one = shelf_find(a, key), *two = shelf_find(b, key);
    assert_int_equal(one != NULL, two != NULL);
    if (one == NULL)
        return;
    assert_int_equal(one->item.flags, two->item.flags);
    assert_int_equal(one->item.cas, two->item.cas);
    assert_int_equal(one->item.expiry_s, two->item.expiry_s);
    assert_true(hg_span_equal(one->item.value, two->item.value));
}

static void expect_same(const struct guarded *g, const struct hg_result *plain)
{
    assert_int_equal(g->done, 1);
    assert_int_equal(g->rooms, 0);
    assert_int_equal(g->result.fault, HG_FAULT_NONE);
    assert_int_equal(g->result.status, plain->status);
    assert_int_equal(g->result.cas, plain->cas);
    assert_int_equal(g->result.counter, plain->counter);
    assert_int_equal(g->result.item_flags, plain->item_flags);
    assert_int_equal(g->value_len, plain->value.len);
    if (g->value_len > 0)
        assert_memory_equal(g->value, plain->value.at, g->value_len);
    assert_string_equal(g->result.server, "shelf:1");
}

static void expect_refused(const struct guarded *g)
{
    assert_int_equal(g->done, 1);
    assert_int_equal(g->result.status, HG_STATUS_NOT_SUPPORTED);
    assert_true(hg_span_is(hg_span(g->value, g->value_len),
                           "the key holds a row: use the table operations"));
}

/* Calls fn with each operation, with no CAS, the item's and another. */
static void each_ask(struct rowscene *s, enum content first,
                     void (*fn)(struct rowscene *, struct shelf *, enum content,
                                struct hg_item_ask *, int which_cas))
{
    struct shelf twin;
    shelf_init(&twin);
    twin.cas_last = s->shelf.cas_last;
    for (enum hg_op op = HG_OP_GET; op < HG_OP_FLUSH; op++)
        for (int which_cas = 0; which_cas < 3; which_cas++)
            for (int create = 0; create < 2; create++) {
                struct hg_item_ask ask = {.op = op,
                                          .flags = 21,
                                          .expiry = create ? HG_ITEM_NO_CREATE : 50,
                                          .delta = 1,
                                          .initial = 6,
                                          .value = HG_SPAN_LIT("1new")};
                hold(&s->shelf, first);
                hold(&twin, first);
                struct shelf_item *item = shelf_find(&s->shelf, key);
                ask.cas = which_cas == 0   ? 0
                          : which_cas == 1 ? (item != NULL ? item->item.cas : 1)
                                           : 99999;
                fn(s, &twin, first, &ask, which_cas);
                assert_int_equal(s->worker.blobs.live_bytes, 0);
                assert_int_equal(s->shelf.cas_last, twin.cas_last);
            }
    shelf_fini(&twin);
}

static void without_a_race(struct rowscene *s, struct shelf *twin, enum content content,
                           struct hg_item_ask *ask, int which_cas)
{
    struct guarded g;
    (void)which_cas;
    begin(s, &g, ask);
    rowscene_answer_all(s);
    if (content == ROW) {
        expect_refused(&g);
    } else {
        struct hg_result plain = shelf_do(twin, key, ask);
        expect_same(&g, &plain);
    }
    expect_same_items(&s->shelf, twin);
}

static void as_without_a_guard(void **state)
{
    for (enum content content = NOTHING; content < CONTENTS; content++)
        each_ask(*state, content, without_a_race);
}

/* What the key holds after the look. */
static enum content later;

static void with_a_race(struct rowscene *s, struct shelf *twin, enum content content,
                        struct hg_item_ask *ask, int which_cas)
{
    struct guarded g;
    (void)content;
    if (ask->op == HG_OP_GET)
        return;
    begin(s, &g, ask);
    rowscene_answer(s, HG_OP_GET);
    hold(&s->shelf, later);
    hold(twin, later);
    rowscene_answer_all(s);
    bool knows_no_row = which_cas != 0 || ask->op == HG_OP_ADD || ask->op == HG_OP_INCREMENT ||
                        ask->op == HG_OP_DECREMENT || ask->op == HG_OP_TOUCH;
    if (later == ROW && !knows_no_row && ask->op != HG_OP_GAT) {
        expect_refused(&g);
        expect_same_items(&s->shelf, twin);
        return;
    }
    struct hg_result plain = shelf_do(twin, key, ask);
    if (later == ROW && ask->op == HG_OP_GAT)
        expect_refused(&g);
    else
        expect_same(&g, &plain);
    expect_same_items(&s->shelf, twin);
    if (later == ROW) /* whatever was answered, the row is what it was */
        assert_true(hg_span_equal(shelf_find(&s->shelf, key)->item.value,
                                  rowop_document(HG_API_TABLE, 3, 0)));
}

static void as_without_a_guard_in_a_race(void **state)
{
    for (enum content content = NOTHING; content < ROW; content++)
        for (later = NOTHING; later < CONTENTS; later++)
            each_ask(*state, content, with_a_race);
}

/* --- the gate --- */

/* Guarded operations and rows of one key keep their order, reads included. */
static void order(void **state)
{
    struct rowscene *s = *state;
    struct guarded set, get;
    struct rowop op;
    rowop_init(&op, s->store, ROWOP_ADD, "table", "row");
    op.row.key_hash = 5;
    hg_rows_submit(s->rows, &op.row);
    begin(s, &set, &(struct hg_item_ask){.op = HG_OP_SET, .value = HG_SPAN_LIT("1")});
    begin(s, &get, &(struct hg_item_ask){.op = HG_OP_GET});
    assert_int_equal(fakestore_pending(s->fake), 1);
    rowscene_answer(s, HG_OP_GET);
    rowscene_answer(s, HG_OP_ADD);
    assert_int_equal(op.done, 1);
    rowscene_answer(s, HG_OP_GET);
    expect_refused(&set);
    rowscene_answer(s, HG_OP_GET);
    expect_refused(&get);
    rowop_fini(&op);
    hold(&s->shelf, NOTHING);
    begin(s, &set, &(struct hg_item_ask){.op = HG_OP_SET, .value = HG_SPAN_LIT("1")});
    begin(s, &get, &(struct hg_item_ask){.op = HG_OP_GET});
    rowscene_answer(s, HG_OP_GET);
    rowscene_answer(s, HG_OP_ADD);
    rowscene_answer(s, HG_OP_GET);
    assert_true(get.done == 1 && get.value_len == 1 && get.value[0] == '1');
    assert_int_equal(get.result.cas, set.result.cas);
}

static void always_exists(struct fakestore *fake, struct kept *kept)
{
    struct rowscene *s = fake->ctx;
    if (kept->op == HG_OP_ADD)
        fakestore_say(kept, HG_STATUS_KEY_EEXISTS);
    else
        shelf_answer(&s->shelf, kept);
}

static void gives_up(void **state)
{
    struct rowscene *s = *state;
    struct guarded g;
    s->fake->on_submit = always_exists;
    begin(s, &g, &(struct hg_item_ask){.op = HG_OP_SET, .value = HG_SPAN_LIT("1")});
    rowscene_let_rest(s);
    assert_int_equal(g.done, 1);
    assert_int_equal(g.result.status, HG_STATUS_EBUSY);
    assert_int_equal(hg_counter_get(&s->counters.given_up), 1);
}

static void faults(void **state)
{
    struct rowscene *s = *state;
    static const enum hg_fault kinds[] = {HG_FAULT_DOWN, HG_FAULT_LOST, HG_FAULT_TIMEOUT};
    for (unsigned i = 0; i < HG_COUNT_OF(kinds); i++)
        for (int writing = 0; writing < 2; writing++) {
            struct guarded g;
            begin(s, &g, &(struct hg_item_ask){.op = HG_OP_SET, .value = HG_SPAN_LIT("1")});
            if (writing)
                rowscene_answer(s, HG_OP_GET);
            fakestore_fault(fakestore_first(s->fake), kinds[i]);
            assert_int_equal(g.done, 1);
            assert_int_equal(g.result.fault, kinds[i]);
        }
    /* An error of the read is the answer, and nothing is written. */
    struct guarded g;
    begin(s, &g, &(struct hg_item_ask){.op = HG_OP_SET, .value = HG_SPAN_LIT("1")});
    fakestore_say(fakestore_first(s->fake), HG_STATUS_NO_BUCKET);
    assert_true(g.done == 1 && g.result.status == HG_STATUS_NO_BUCKET);
}

static void late(void **state)
{
    struct rowscene *s = *state;
    struct guarded first, second;
    struct hg_item_ask ask = {.op = HG_OP_SET, .value = HG_SPAN_LIT("1")};
    begin(s, &first, &ask);
    begin(s, &second, &ask);
    second.guard.row.deadline_us = rowscene_now_us + 5;
    s->rows->next_expiry_us = 0;
    hg_rows_expire(s->rows, rowscene_now_us + 5);
    assert_true(second.done == 1 && second.result.fault == HG_FAULT_QUEUE_TIMEOUT);
    rowscene_answer_all(s);
    assert_int_equal(first.done, 1);
}

static void cancels(void **state)
{
    struct rowscene *s = *state;
    struct hg_item_ask ask = {.op = HG_OP_SET, .value = HG_SPAN_LIT("1")};
    for (unsigned answered = 0; answered < 3; answered++) {
        struct guarded g, behind;
        begin(s, &g, &ask);
        begin(s, &behind, &ask);
        for (unsigned i = 0; i < answered; i++)
            shelf_answer(&s->shelf, fakestore_first(s->fake));
        hg_rows_cancel_guard(&g.guard);
        hg_rows_cancel_guard(&behind.guard);
        assert_int_equal(g.done, answered == 2);
        assert_int_equal(behind.done, 0);
        assert_int_equal(fakestore_pending(s->fake), 0);
        assert_int_equal(s->worker.blobs.live_bytes, 0);
        hold(&s->shelf, NOTHING);
        rowscene_turn(s);
    }
}

/* A value in a blob travels by reference, and the reference ends. */
static void value_in_a_blob(void **state)
{
    struct rowscene *s = *state;
    struct guarded g;
    struct hg_blob *blob = hg_blob_borrow(&s->worker.blobs, 100000);
    assert_non_null(blob);
    memset(blob->data, 'v', 100000);
    blob->len = 100000;
    begin_in_blob(s, &g,
                  &(struct hg_item_ask){.op = HG_OP_SET, .value = hg_span(blob->data + 10, 99990)},
                  blob);
    hg_blob_unref(blob);
    rowscene_answer(s, HG_OP_GET);
    assert_true(fakestore_first(s->fake)->in_blob);
    assert_int_equal(fakestore_first(s->fake)->value_len, 99990);
    rowscene_answer(s, HG_OP_ADD);
    assert_int_equal(g.result.status, 0);
    assert_int_equal(s->worker.blobs.live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW_TEST(as_without_a_guard),
        ROW_TEST(as_without_a_guard_in_a_race),
        ROW_TEST(order),
        ROW_TEST(gives_up),
        ROW_TEST(faults),
        ROW_TEST(late),
        ROW_TEST(cancels),
        ROW_TEST(value_in_a_blob),
    };
    return cmocka_run_group_tests_name("rowguard", tests, NULL, NULL);
}
