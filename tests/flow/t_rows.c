// t_rows - rows over the fake store: the order in the gates, conflicts, and every way to end
// SPDX-License-Identifier: BSD-3-Clause
#include "rowscene.h"

#include <stdio.h>

#define MANY 1000

static struct rowop ops[MANY];

static struct rowop *begin(struct rowscene *s, unsigned i, enum rowop_kind kind)
{
    rowop_init(&ops[i], s->store, kind, "table", "row");
    hg_rows_submit(s->rows, &ops[i].row);
    return &ops[i];
}

static void fini(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        rowop_fini(&ops[i]);
}

static void put_row(struct rowscene *s, const struct rowop *op, enum hg_api api, int64_t n)
{
    shelf_put(&s->shelf, (const char *)op->key, HG_ROWDOC_FLAGS, rowop_document(api, n, 0));
}

/* What the row holds; -1: there is none. */
static int64_t stored(struct rowscene *s)
{
    struct rowop read;
    s->fake->on_submit = rowscene_at_once;
    rowop_init(&read, s->store, ROWOP_READ, "table", "row");
    hg_rows_submit(s->rows, &read.row);
    assert_int_equal(read.done, 1);
    assert_int_equal(read.end.status, 0);
    int64_t n = read.n;
    rowop_fini(&read);
    return n;
}

/* What a row's call has, each call of its store has. */
static void expect_of_row(const struct hg_call *call)
{
    assert_int_equal(call->identity, 3);
    assert_int_equal(call->ticket, 2);
    assert_true(call->quarantine);
}

/* One operation from its read to its end, as the store sees it. */
static void read_apply_write(void **state)
{
    struct rowscene *s = *state;
    struct rowop *op = &ops[0];
    rowop_init(op, s->store, ROWOP_ADD, "table", "row");
    op->row.identity = 3;
    op->row.ticket = 2;
    op->row.quarantine = true;
    hg_rows_submit(s->rows, &op->row);
    struct kept *kept = fakestore_first(s->fake);
    assert_int_equal(kept->op, HG_OP_GET);
    expect_of_row(kept->call);
    assert_memory_equal(kept->key, "table\0row", 10);
    shelf_answer(&s->shelf, kept);
    kept = fakestore_first(s->fake);
    assert_int_equal(kept->op, HG_OP_ADD);
    expect_of_row(kept->call);
    assert_int_equal(kept->cas, 0);
    assert_int_equal(kept->item_flags, HG_ROWDOC_FLAGS);
    assert_true(kept->value_len > 5 && memcmp(kept->value, "\xf7HGRT", 5) == 0);
    size_t bytes = kept->value_len;
    assert_int_equal(op->done, 0);
    shelf_answer(&s->shelf, kept);
    assert_int_equal(op->done, 1);
    assert_int_equal(op->end.fault, HG_FAULT_NONE);
    assert_int_equal(op->end.status, 0);
    assert_int_equal(op->end.read_bytes, 0);
    assert_int_equal(op->end.written_bytes, bytes);
    assert_string_equal(op->server, "shelf:1");
    assert_ptr_equal(op->end.outcome, &op->row.outcome);
    assert_int_equal(op->end.outcome->act, HG_ROW_STORE);

    rowop_init(&ops[1], s->store, ROWOP_ADD, "table", "row");
    ops[1].row.expiry = 77;
    hg_rows_submit(s->rows, &ops[1].row);
    uint64_t cas = rowscene_item(s, op)->item.cas;
    rowscene_answer(s, HG_OP_GET);
    kept = fakestore_first(s->fake);
    assert_int_equal(kept->op, HG_OP_SET);
    assert_true(cas != 0 && kept->cas == cas);
    assert_int_equal(kept->expiry, 77);
    shelf_answer(&s->shelf, kept);
    assert_int_equal(ops[1].n, 2);
    assert_int_equal(ops[1].end.read_bytes, bytes);
    assert_int_equal(ops[1].end.written_bytes, bytes);

    begin(s, 2, ROWOP_KEEP);
    rowscene_answer(s, HG_OP_GET);
    assert_int_equal(ops[2].done, 1);
    assert_int_equal(ops[2].end.written_bytes, 0);

    begin(s, 3, ROWOP_REMOVE);
    cas = rowscene_item(s, op)->item.cas;
    rowscene_answer(s, HG_OP_GET);
    assert_int_equal(fakestore_first(s->fake)->cas, cas);
    rowscene_answer(s, HG_OP_DELETE);
    assert_int_equal(ops[3].end.written_bytes, 0);
    assert_null(rowscene_item(s, op));

    begin(s, 4, ROWOP_REMOVE);
    rowscene_answer(s, HG_OP_GET);
    begin(s, 5, ROWOP_READ);
    rowscene_answer(s, HG_OP_GET);
    for (unsigned i = 3; i < 6; i++)
        assert_true(ops[i].done == 1 && ops[i].end.status == 0 && ops[i].n == -1);
    assert_int_equal(fakestore_pending(s->fake), 0);
    assert_int_equal(hg_counter_get(&s->counters.conflicts), 0);
    assert_int_equal(hg_counter_get(&s->counters.waited), 0);
    fini(6);
}

/* Writers one by one, readers together, and nobody passes who waits. */
static void order_in_the_gate(void **state)
{
    struct rowscene *s = *state;
    static const enum rowop_kind kinds[] = {ROWOP_ADD,  ROWOP_ADD, ROWOP_READ,
                                            ROWOP_READ, ROWOP_ADD, ROWOP_READ};
    for (unsigned i = 0; i < 6; i++)
        begin(s, i, kinds[i]);
    assert_int_equal(fakestore_pending(s->fake), 1);
    assert_int_equal(hg_counter_get(&s->counters.waited), 5);
    rowscene_answer(s, HG_OP_GET);
    rowscene_answer(s, HG_OP_ADD);
    assert_int_equal(fakestore_pending(s->fake), 1);
    rowscene_answer(s, HG_OP_GET);
    rowscene_answer(s, HG_OP_SET);
    /* Both readers, and not the third, which came behind a writer. */
    assert_int_equal(fakestore_pending(s->fake), 2);
    begin(s, 6, ROWOP_READ);
    assert_int_equal(fakestore_pending(s->fake), 2);
    shelf_answer(&s->shelf, fakestore_nth(s->fake, 1));
    assert_true(ops[3].done == 1 && ops[2].done == 0);
    rowscene_answer(s, HG_OP_GET);
    assert_int_equal(fakestore_pending(s->fake), 1);
    rowscene_answer(s, HG_OP_GET);
    rowscene_answer(s, HG_OP_SET);
    assert_int_equal(fakestore_pending(s->fake), 2);
    rowscene_answer_all(s);
    static const struct {
        unsigned order;
        int64_t n;
    } ends[] = {{1, 1}, {2, 2}, {4, 2}, {3, 2}, {5, 3}, {6, 3}, {7, 3}};
    for (unsigned i = 0; i < 7; i++) {
        assert_int_equal(ops[i].order, ends[i].order);
        assert_int_equal(ops[i].n, ends[i].n);
    }
    assert_int_equal(hg_counter_get(&s->counters.conflicts), 0);
    fini(7);
}

/* Readers join readers while nobody waits. */
static void readers_join(void **state)
{
    struct rowscene *s = *state;
    for (unsigned i = 0; i < 5; i++)
        begin(s, i, ROWOP_READ);
    assert_int_equal(fakestore_pending(s->fake), 5);
    begin(s, 5, ROWOP_ADD);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(fakestore_pending(s->fake), 5 - i);
        rowscene_answer(s, HG_OP_GET);
    }
    assert_int_equal(fakestore_pending(s->fake), 1);
    rowscene_answer_all(s);
    assert_int_equal(ops[5].n, 1);
    fini(6);
}

/* The row of another key, tenant or store is another row. */
static void other_rows_do_not_wait(void **state)
{
    struct rowscene *s = *state;
    struct fakestore *other = fakestore_new(&s->worker);
    begin(s, 0, ROWOP_ADD);
    rowop_init(&ops[1], s->store, ROWOP_ADD, "table", "row2");
    rowop_init(&ops[2], s->store, ROWOP_ADD, "table", "row");
    ops[2].row.tenant_id = 1;
    rowop_init(&ops[3], &other->store, ROWOP_ADD, "table", "row");
    rowop_init(&ops[4], s->store, ROWOP_ADD, "table2", "row");
    ops[4].row.key_hash = ops[0].row.key_hash; /* whatever the hash says */
    for (unsigned i = 1; i < 5; i++)
        hg_rows_submit(s->rows, &ops[i].row);
    assert_int_equal(fakestore_pending(s->fake), 4);
    assert_int_equal(fakestore_pending(other), 1);
    assert_int_equal(s->rows->gate_count, 5);
    for (unsigned i = 0; i < 5; i++)
        hg_rows_cancel(&ops[i].row);
    other->store.ops->free(&other->store);
    fini(5);
}

static void many_gates(void **state)
{
    struct rowscene *s = *state;
    for (unsigned i = 0; i < MANY; i++) {
        char row[16];
        snprintf(row, sizeof row, "%u", i);
        rowop_init(&ops[i], s->store, ROWOP_READ, "t", row);
        hg_rows_submit(s->rows, &ops[i].row);
    }
    assert_int_equal(s->rows->gate_count, MANY);
    assert_true(s->rows->bucket_count >= MANY / 2);
    rowscene_answer_all(s);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(ops[i].done, 1);
    assert_int_equal(s->rows->gate_count, 0);
    fini(MANY);
}

/* Somebody else changes, makes or removes the row between the read and the write. */
static void conflicts(void **state)
{
    struct rowscene *s = *state;
    struct rowop *op = begin(s, 0, ROWOP_ADD);
    const char *key = (const char *)op->key;
    rowscene_answer(s, HG_OP_GET);
    put_row(s, op, HG_API_TABLE, 10);
    rowscene_answer(s, HG_OP_ADD); /* 0x02 */
    rowscene_answer(s, HG_OP_GET);
    put_row(s, op, HG_API_TABLE, 20);
    rowscene_answer(s, HG_OP_SET); /* 0x02 */
    rowscene_answer(s, HG_OP_GET);
    shelf_put(&s->shelf, key, 0, HG_SPAN_NONE);
    rowscene_answer(s, HG_OP_SET); /* 0x01 */
    rowscene_answer(s, HG_OP_GET);
    fakestore_say(fakestore_first(s->fake), HG_STATUS_NOT_STORED);
    put_row(s, op, HG_API_TABLE, 30);
    rowscene_let_rest(s);
    rowscene_answer(s, HG_OP_GET);
    assert_int_equal(op->done, 0);
    rowscene_answer(s, HG_OP_SET);
    assert_true(op->done == 1 && op->end.status == 0 && op->n == 31 && op->applied == 5);
    assert_int_equal(hg_counter_get(&s->counters.conflicts), 4);

    op = begin(s, 1, ROWOP_REMOVE);
    rowscene_answer(s, HG_OP_GET);
    put_row(s, op, HG_API_TABLE, 40);
    rowscene_answer(s, HG_OP_DELETE); /* 0x02 */
    rowscene_answer(s, HG_OP_GET);
    shelf_put(&s->shelf, key, 0, HG_SPAN_NONE);
    rowscene_answer(s, HG_OP_DELETE); /* 0x01 */
    rowscene_answer(s, HG_OP_GET);
    assert_true(op->done == 1 && op->end.status == 0 && op->applied == 3);
    assert_int_equal(hg_counter_get(&s->counters.conflicts), 6);
    assert_int_equal(hg_counter_get(&s->counters.given_up), 0);
    fini(2);
}

static void change_before_set(struct fakestore *fake, struct kept *kept)
{
    struct rowscene *s = fake->ctx;
    if (kept->op == HG_OP_SET)
        put_row(s, &ops[0], HG_API_TABLE, 1);
    shelf_answer(&s->shelf, kept);
}

static void gives_up(void **state)
{
    struct rowscene *s = *state;
    rowop_init(&ops[0], s->store, ROWOP_ADD, "table", "row");
    put_row(s, &ops[0], HG_API_TABLE, 1);
    s->fake->on_submit = change_before_set;
    hg_rows_submit(s->rows, &ops[0].row);
    rowscene_let_rest(s);
    assert_int_equal(ops[0].done, 1);
    assert_int_equal(ops[0].end.fault, HG_FAULT_NONE);
    assert_int_equal(ops[0].end.status, HG_STATUS_EBUSY);
    uint64_t took_us = rowscene_now_us - ROWSCENE_START_US; /* 60 rests, of 8 ms on average */
    assert_true(took_us > 200000 && took_us < 1000000);
    assert_int_equal(ops[0].end.written_bytes, 0);
    assert_string_equal(ops[0].text,
                        "others have changed the row before each of 64 attempts to do so");
    assert_int_equal(ops[0].applied, HG_ROWS_ATTEMPTS);
    assert_int_equal(s->shelf.counts[HG_OP_SET], HG_ROWS_ATTEMPTS);
    assert_int_equal(hg_counter_get(&s->counters.conflicts), HG_ROWS_ATTEMPTS);
    assert_int_equal(hg_counter_get(&s->counters.given_up), 1);
    assert_int_equal(stored(s), 1);
    fini(1);
}

/* --- what the key holds --- */

static void expect_refusal(struct rowscene *s, enum hg_api api, uint16_t status, const char *text)
{
    for (int writes = 0; writes < 2; writes++) {
        rowop_init(&ops[0], s->store, writes ? ROWOP_ADD : ROWOP_READ, "table", "row");
        ops[0].row.api = api;
        uint64_t cas = rowscene_item(s, &ops[0])->item.cas;
        s->fake->on_submit = rowscene_at_once;
        hg_rows_submit(s->rows, &ops[0].row);
        assert_int_equal(ops[0].done, 1);
        assert_int_equal(ops[0].end.status, status);
        assert_string_equal(ops[0].text, text);
        assert_int_equal(ops[0].applied, 0);
        assert_int_equal(rowscene_item(s, &ops[0])->item.cas, cas);
        rowop_fini(&ops[0]);
    }
}

static void not_a_row(void **state)
{
    struct rowscene *s = *state;
    char key[256] = "table\0row";
    static const char classic[] = "the key holds a classic item, not a row";
    static const char damaged[] = "the row is damaged: what is stored is no row document";
    shelf_put(&s->shelf, key, 0, HG_SPAN_LIT("text"));
    expect_refusal(s, HG_API_TABLE, HG_STATUS_NOT_SUPPORTED, classic);
    shelf_put(&s->shelf, key, 0, rowop_document(HG_API_TABLE, 1, 0)); /* other flags */
    expect_refusal(s, HG_API_TABLE, HG_STATUS_NOT_SUPPORTED, classic);
    shelf_put(&s->shelf, key, HG_ROWDOC_FLAGS, HG_SPAN_LIT("\xf7HG")); /* no mark */
    expect_refusal(s, HG_API_HBASE, HG_STATUS_NOT_SUPPORTED, classic);
    shelf_put(&s->shelf, key, HG_ROWDOC_FLAGS, rowop_document(HG_API_HBASE, 1, 0));
    expect_refusal(s, HG_API_TABLE, HG_STATUS_NOT_SUPPORTED,
                   "the row was written by HBase operations: TableAPI cannot use it");
    shelf_put(&s->shelf, key, HG_ROWDOC_FLAGS, rowop_document(HG_API_TABLE, 1, 0));
    expect_refusal(s, HG_API_HBASE, HG_STATUS_NOT_SUPPORTED,
                   "the row was written by TableAPI: HBase operations cannot use it");
    shelf_put(&s->shelf, key, HG_ROWDOC_FLAGS, HG_SPAN_LIT("\xf7HGRX"));
    expect_refusal(s, HG_API_TABLE, HG_STATUS_EINTERNAL, damaged);
    expect_refusal(s, HG_API_HBASE, HG_STATUS_EINTERNAL, damaged);
    struct hg_span whole = rowop_document(HG_API_TABLE, 1, 0);
    shelf_put(&s->shelf, key, HG_ROWDOC_FLAGS, hg_span(whole.at, whole.len - 1));
    expect_refusal(s, HG_API_TABLE, HG_STATUS_EINTERNAL, damaged);
    /* A delete of the whole row needs nothing of what is in it. */
    rowop_init(&ops[0], s->store, ROWOP_REMOVE, "table", "row");
    ops[0].row.removes = true;
    hg_rows_submit(s->rows, &ops[0].row);
    assert_int_equal(ops[0].done, 1);
    assert_int_equal(ops[0].end.status, 0);
    assert_int_equal(ops[0].applied, 1);
    assert_null(rowscene_item(s, &ops[0]));
    rowop_fini(&ops[0]);
}

static void hbase_rows(void **state)
{
    struct rowscene *s = *state;
    s->fake->on_submit = rowscene_at_once;
    for (unsigned i = 0; i < 3; i++) {
        rowop_init(&ops[0], s->store, ROWOP_ADD, "table", "row");
        ops[0].row.api = HG_API_HBASE;
        hg_rows_submit(s->rows, &ops[0].row);
        assert_int_equal(ops[0].end.status, 0);
        assert_int_equal(ops[0].n, i + 1);
        assert_memory_equal(rowscene_item(s, &ops[0])->value, "\xf7HGRH", 5);
        rowop_fini(&ops[0]);
    }
}

static void too_large(void **state)
{
    struct rowscene *s = *state;
    s->fake->on_submit = rowscene_at_once;
    begin(s, 0, ROWOP_ADD);
    rowop_init(&ops[1], s->store, ROWOP_PAD, "table", "row");
    ops[1].amount = 1000;
    ops[1].row.max_value_bytes = 1000;
    hg_rows_submit(s->rows, &ops[1].row);
    assert_int_equal(ops[1].end.status, HG_STATUS_E2BIG);
    assert_int_equal(ops[1].end.written_bytes, 0);
    assert_non_null(strstr(ops[1].text, "bytes, over the limit of 1000 for a value"));
    assert_int_equal(stored(s), 1);
    assert_int_equal(s->shelf.counts[HG_OP_SET], 0);
    /* The limit itself is fine. */
    size_t head = rowop_document(HG_API_TABLE, 1, 500).len - 500;
    rowop_init(&ops[2], s->store, ROWOP_PAD, "table", "row");
    ops[2].amount = 1000 - (int64_t)head;
    ops[2].row.max_value_bytes = 1000;
    hg_rows_submit(s->rows, &ops[2].row);
    assert_int_equal(ops[2].end.status, 0);
    assert_int_equal(ops[2].end.written_bytes, 1000);
    fini(3);
}

static void out_of_memory(void **state)
{
    struct rowscene *s = *state;
    s->fake->on_submit = rowscene_at_once;
    rowop_init(&ops[0], s->store, ROWOP_PAD, "table", "row");
    ops[0].amount = 100000;
    hg_rows_submit(s->rows, &ops[0].row);
    assert_int_equal(ops[0].end.status, 0);
    rowop_init(&ops[1], s->store, ROWOP_READ, "table", "row"); /* the document does not fit */
    ops[1].arena.limit_bytes = 50000;
    hg_rows_submit(s->rows, &ops[1].row);
    assert_int_equal(ops[1].end.status, HG_STATUS_ENOMEM);
    rowop_init(&ops[2], s->store, ROWOP_PAD, "table", "row2"); /* the new one does not */
    ops[2].amount = 100000;
    ops[2].arena.limit_bytes = 150000;
    hg_rows_submit(s->rows, &ops[2].row);
    assert_int_equal(ops[2].end.status, HG_STATUS_ENOMEM);
    assert_string_equal(ops[2].text, "the row needs more memory than a request may take");
    assert_null(rowscene_item(s, &ops[2]));
    fini(3);
}

static void without_cas(void **state)
{
    struct rowscene *s = *state;
    s->fake->on_submit = rowscene_at_once;
    s->shelf.without_cas = true;
    begin(s, 0, ROWOP_ADD);
    assert_int_equal(ops[0].end.status, 0);
    begin(s, 1, ROWOP_ADD);
    begin(s, 2, ROWOP_REMOVE);
    for (unsigned i = 1; i < 3; i++) {
        assert_int_equal(ops[i].end.status, HG_STATUS_NOT_SUPPORTED);
        assert_non_null(strstr(ops[i].text, "keeps no CAS"));
    }
    assert_int_equal(stored(s), 1);
    fini(3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW_TEST(read_apply_write), ROW_TEST(order_in_the_gate),
        ROW_TEST(readers_join),     ROW_TEST(other_rows_do_not_wait),
        ROW_TEST(many_gates),       ROW_TEST(conflicts),
        ROW_TEST(gives_up),         ROW_TEST(not_a_row),
        ROW_TEST(hbase_rows),       ROW_TEST(too_large),
        ROW_TEST(out_of_memory),    ROW_TEST(without_cas),
    };
    return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
