// t_load_rows - tests of load/rowbody and load/series: bodies of row operations, counts by interval
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "load/rowbody.h"
#include "load/series.h"
#include "proto/table.pb-c.h"

static struct hg_gen_values values;

static int make_values(void **state)
{
    (void)state;
    return hg_gen_values_init(&values, 0, 70000);
}

static int free_values(void **state)
{
    (void)state;
    hg_gen_values_fini(&values);
    return 0;
}

/* A key's value, made as long as is asked for. */
static struct hg_gen_value value_of(uint32_t len)
{
    struct hg_gen_value value = hg_gen_value_of(&values, 7);
    value.len = len;
    return value;
}

static const uint32_t lengths[] = {0, 1, 7, 8, 9, 100, 119, 120, 127, 128, 16383, 16384, 70000};

/* ---- requests: what protobuf-c reads in them ---- */

static void columns_hold_the_value(void **state)
{
    (void)state;
    static const enum hg_load_op ops[] = {HG_LOAD_TABLE_INSERT, HG_LOAD_TABLE_UPDATE,
                                          HG_LOAD_TABLE_INSERT_OR_UPDATE, HG_LOAD_TABLE_REPLACE};
    uint8_t *body = malloc(70000 + HG_ROWBODY_AROUND);
    for (size_t i = 0; i < HG_COUNT_OF(lengths) * HG_COUNT_OF(ops); i++) {
        struct hg_gen_value value = value_of(lengths[i / HG_COUNT_OF(ops)]);
        size_t len = hg_rowbody_encode(ops[i % HG_COUNT_OF(ops)], &value, body);
        assert_true(len <= value.len + HG_ROWBODY_AROUND);
        Headgate__Table__V1__TableRequest *request =
            headgate__table__v1__table_request__unpack(NULL, len, body);
        assert_non_null(request);
        assert_int_equal(request->entity->n_columns, 1);
        const Headgate__Table__V1__Column *column = request->entity->columns[0];
        assert_int_equal(column->name.len, 1);
        assert_int_equal(column->name.data[0], 'v');
        assert_int_equal(column->value->kind_case, HEADGATE__TABLE__V1__VALUE__KIND_BYTES);
        assert_true(hg_gen_value_is(&value, column->value->bytes.data, column->value->bytes.len));
        headgate__table__v1__table_request__free_unpacked(request, NULL);
    }
    free(body);
}

static void cells_hold_the_value(void **state)
{
    (void)state;
    uint8_t *body = malloc(70000 + HG_ROWBODY_AROUND);
    for (size_t i = 0; i < HG_COUNT_OF(lengths); i++) {
        struct hg_gen_value value = value_of(lengths[i]);
        size_t len = hg_rowbody_encode(HG_LOAD_HBASE_PUT, &value, body);
        Headgate__Table__V1__HBaseRequest *request =
            headgate__table__v1__hbase_request__unpack(NULL, len, body);
        assert_non_null(request);
        assert_int_equal(request->n_cells, 1);
        assert_int_equal(request->cells[0]->family.data[0], 'f');
        assert_int_equal(request->cells[0]->qualifier.data[0], 'v');
        assert_true(
            hg_gen_value_is(&value, request->cells[0]->value.data, request->cells[0]->value.len));
        headgate__table__v1__hbase_request__free_unpacked(request, NULL);
    }
    free(body);
}

static void counters_and_deletions_are_constant(void **state)
{
    (void)state;
    struct hg_gen_value value = value_of(32);
    uint8_t body[HG_ROWBODY_AROUND + 32];
    size_t len = hg_rowbody_encode(HG_LOAD_TABLE_INCREMENT, &value, body);
    Headgate__Table__V1__TableRequest *table =
        headgate__table__v1__table_request__unpack(NULL, len, body);
    assert_non_null(table);
    assert_true(table->return_entity);
    assert_int_equal(table->entity->columns[0]->name.data[0], 'n');
    assert_int_equal(table->entity->columns[0]->value->integer, 1);
    headgate__table__v1__table_request__free_unpacked(table, NULL);

    len = hg_rowbody_encode(HG_LOAD_HBASE_INCREMENT, &value, body);
    Headgate__Table__V1__HBaseRequest *hbase =
        headgate__table__v1__hbase_request__unpack(NULL, len, body);
    assert_non_null(hbase);
    assert_int_equal(hbase->n_counters, 1);
    assert_int_equal(hbase->counters[0]->qualifier.data[0], 'n');
    assert_int_equal(hbase->counters[0]->amount, 1);
    headgate__table__v1__hbase_request__free_unpacked(hbase, NULL);

    len = hg_rowbody_encode(HG_LOAD_HBASE_DELETE, &value, body);
    hbase = headgate__table__v1__hbase_request__unpack(NULL, len, body);
    assert_non_null(hbase);
    assert_int_equal(hbase->n_deletions, 1);
    assert_int_equal(hbase->deletions[0]->kind, HEADGATE__TABLE__V1__DELETION__KIND__ROW);
    headgate__table__v1__hbase_request__free_unpacked(hbase, NULL);
    assert_int_equal(hg_rowbody_encode(HG_LOAD_TABLE_GET, &value, body), 0);
    assert_int_equal(hg_rowbody_encode(HG_LOAD_HBASE_GET, &value, body), 0);
}

/* ---- replies: as protobuf-c writes them ---- */

struct table_reply {
    Headgate__Table__V1__TableReply reply;
    Headgate__Table__V1__Entity entity;
    Headgate__Table__V1__Column column, *columns[1];
    Headgate__Table__V1__Value value;
    uint8_t bytes[200], body[400];
};

static size_t pack_table(struct table_reply *r)
{
    assert_true(headgate__table__v1__table_reply__get_packed_size(&r->reply) <= sizeof r->body);
    return headgate__table__v1__table_reply__pack(&r->reply, r->body);
}

/* {entity {v: the value}} */
static void table_reply(struct table_reply *r, const struct hg_gen_value *value)
{
    headgate__table__v1__table_reply__init(&r->reply);
    headgate__table__v1__entity__init(&r->entity);
    headgate__table__v1__column__init(&r->column);
    headgate__table__v1__value__init(&r->value);
    hg_gen_value_write(value, r->bytes);
    r->value.kind_case = HEADGATE__TABLE__V1__VALUE__KIND_BYTES;
    r->value.bytes = (ProtobufCBinaryData){value->len, r->bytes};
    r->column.name = (ProtobufCBinaryData){1, (uint8_t *)"v"};
    r->column.value = &r->value;
    r->columns[0] = &r->column;
    r->entity.columns = r->columns;
    r->entity.n_columns = 1;
    r->reply.entity = &r->entity;
}

static void a_table_s_row_is_compared(void **state)
{
    (void)state;
    struct table_reply r;
    for (uint32_t len = 0; len <= 150; len += 5) {
        struct hg_gen_value value = value_of(len);
        table_reply(&r, &value);
        size_t bytes = pack_table(&r);
        assert_int_equal(hg_rowbody_decode(HG_LOAD_TABLE_GET, &value, r.body, bytes),
                         HG_ROWBODY_RIGHT);
        for (size_t cut = 1; cut < bytes; cut++) {
            assert_int_not_equal(hg_rowbody_decode(HG_LOAD_TABLE_GET, &value, r.body, cut),
                                 HG_ROWBODY_RIGHT);
        }
        struct hg_gen_value other = value_of(len + 1);
        assert_int_equal(hg_rowbody_decode(HG_LOAD_TABLE_GET, &other, r.body, bytes),
                         HG_ROWBODY_OTHER);
    }
    struct hg_gen_value value = value_of(20);
    assert_int_equal(hg_rowbody_decode(HG_LOAD_TABLE_GET, &value, r.body, 0), HG_ROWBODY_NO_ROW);
}

static void a_table_s_counter_is_an_integer(void **state)
{
    (void)state;
    struct table_reply r;
    struct hg_gen_value value = value_of(20);
    table_reply(&r, &value);
    r.column.name.data = (uint8_t *)"n";
    assert_int_equal(hg_rowbody_decode(HG_LOAD_TABLE_INCREMENT, &value, r.body, pack_table(&r)),
                     HG_ROWBODY_OTHER);
    r.value.kind_case = HEADGATE__TABLE__V1__VALUE__KIND_INTEGER;
    r.value.integer = -3;
    assert_int_equal(hg_rowbody_decode(HG_LOAD_TABLE_INCREMENT, &value, r.body, pack_table(&r)),
                     HG_ROWBODY_RIGHT);
    assert_int_equal(hg_rowbody_decode(HG_LOAD_TABLE_GET, &value, r.body, pack_table(&r)),
                     HG_ROWBODY_OTHER);
    assert_int_equal(hg_rowbody_decode(HG_LOAD_TABLE_REPLACE, &value, r.body, pack_table(&r)),
                     HG_ROWBODY_BAD);
    assert_int_equal(hg_rowbody_decode(HG_LOAD_TABLE_REPLACE, &value, r.body, 0), HG_ROWBODY_RIGHT);
}

static void a_cell_is_compared(void **state)
{
    (void)state;
    Headgate__Table__V1__HBaseReply reply = HEADGATE__TABLE__V1__HBASE_REPLY__INIT;
    Headgate__Table__V1__Cell cell = HEADGATE__TABLE__V1__CELL__INIT, *cells[2] = {&cell, &cell};
    struct hg_gen_value value = value_of(30);
    uint8_t bytes[64], body[400];
    hg_gen_value_write(&value, bytes);
    cell.family = (ProtobufCBinaryData){1, (uint8_t *)"f"};
    cell.qualifier = (ProtobufCBinaryData){1, (uint8_t *)"v"};
    cell.at_case = HEADGATE__TABLE__V1__CELL__AT_TIMESTAMP;
    cell.timestamp = INT64_C(1700000000000);
    cell.value = (ProtobufCBinaryData){30, bytes};
    reply.cells = cells;
    reply.n_cells = 1;
    size_t len = headgate__table__v1__hbase_reply__pack(&reply, body);
    assert_int_equal(hg_rowbody_decode(HG_LOAD_HBASE_GET, &value, body, len), HG_ROWBODY_RIGHT);
    assert_int_equal(hg_rowbody_decode(HG_LOAD_HBASE_GET, &value, body, 0), HG_ROWBODY_NO_ROW);
    bytes[20] ^= 1;
    len = headgate__table__v1__hbase_reply__pack(&reply, body);
    assert_int_equal(hg_rowbody_decode(HG_LOAD_HBASE_GET, &value, body, len), HG_ROWBODY_OTHER);
    reply.n_cells = 2;
    len = headgate__table__v1__hbase_reply__pack(&reply, body);
    assert_int_equal(hg_rowbody_decode(HG_LOAD_HBASE_GET, &value, body, len), HG_ROWBODY_BAD);
    reply.n_cells = 1;
    cell.qualifier.data = (uint8_t *)"n";
    cell.value.len = 8;
    len = headgate__table__v1__hbase_reply__pack(&reply, body);
    assert_int_equal(hg_rowbody_decode(HG_LOAD_HBASE_INCREMENT, &value, body, len),
                     HG_ROWBODY_RIGHT);
    cell.value.len = 7;
    len = headgate__table__v1__hbase_reply__pack(&reply, body);
    assert_int_equal(hg_rowbody_decode(HG_LOAD_HBASE_INCREMENT, &value, body, len),
                     HG_ROWBODY_OTHER);
}

static void garbage_is_no_reply(void **state)
{
    (void)state;
    struct hg_gen_value value = value_of(32);
    uint64_t random = 1;
    for (int i = 0; i < 20000; i++) {
        uint8_t exact[24];
        for (size_t at = 0; at < sizeof exact; at++) {
            random = hg_gen_mix(random);
            exact[at] = (uint8_t)(at % 2 == 0 ? random : random % 20);
        }
        size_t len = random % sizeof exact + 1;
        uint8_t *body = malloc(len); /* so that a sanitizer sees a byte too far */
        memcpy(body, exact, len);
        assert_int_not_equal(hg_rowbody_decode(HG_LOAD_TABLE_GET, &value, body, len),
                             HG_ROWBODY_RIGHT);
        assert_int_not_equal(hg_rowbody_decode(HG_LOAD_HBASE_GET, &value, body, len),
                             HG_ROWBODY_RIGHT);
        free(body);
    }
}

/* ---- series ---- */

#define MS UINT64_C(1000000)

static void intervals_begin_at_multiples_of_the_wall_clock(void **state)
{
    (void)state;
    struct hg_series series;
    /* monotonic 5 ms is 1000005 ms on the wall clock, in [1000000, 1000100) */
    assert_int_equal(hg_series_init(&series, 100 * MS, 1000000 * MS, MS, 5 * MS), 0);
    assert_int_equal(series.first, 10000);
    hg_series_tally(&series, HG_SERIES_HOT, 99 * MS)->sent++;
    hg_series_tally(&series, HG_SERIES_HOT, 100 * MS)->sent++;
    hg_series_answered(&series, HG_SERIES_HOT, HG_LOAD_DONE, 0, MS, 100 * MS);
    hg_series_answered(&series, HG_SERIES_OTHER, HG_LOAD_REFUSED, 0x101, MS, 100 * MS);
    assert_int_equal(series.count, 2);
    assert_int_equal(series.at[0][HG_SERIES_HOT].sent, 1);
    assert_int_equal(series.at[1][HG_SERIES_HOT].sent, 1);
    assert_int_equal(series.at[1][HG_SERIES_HOT].done, 1);
    assert_int_equal(series.at[1][HG_SERIES_OTHER].refused, 1);
    /* an hour later, with nothing between */
    hg_series_tally(&series, HG_SERIES_OTHER, 3600 * 1000 * MS)->sent++;
    assert_int_equal(series.count, 36001);
    assert_int_equal(series.at[36000][HG_SERIES_OTHER].sent, 1);
    assert_int_equal(series.at[20000][HG_SERIES_OTHER].sent, 0);
    struct hg_series_tally sum = {0};
    hg_series_total(&series, HG_SERIES_HOT, &sum);
    assert_int_equal(sum.sent, 2);
    hg_series_fini(&series);
}

static void the_last_interval_takes_what_comes_later(void **state)
{
    (void)state;
    struct hg_series series;
    assert_int_equal(hg_series_init(&series, MS, 0, MS, 0), 0);
    hg_series_tally(&series, HG_SERIES_HOT, 10 * MS)->sent++;
    hg_series_tally(&series, HG_SERIES_HOT, (uint64_t)2 * HG_SERIES_MAX * MS)->sent++;
    assert_int_equal(series.count, 11);
    assert_int_equal(series.at[10][HG_SERIES_HOT].sent, 2);
    hg_series_fini(&series);
}

static void statuses_beyond_the_room_have_no_name(void **state)
{
    (void)state;
    struct hg_series_tally sum = {0}, twice = {0};
    struct hg_series series;
    assert_int_equal(hg_series_init(&series, MS, 0, MS, 0), 0);
    for (uint32_t slot = 0; slot < HG_SERIES_STATUSES + 3; slot++) {
        hg_series_answered(&series, HG_SERIES_OTHER, HG_LOAD_REFUSED, slot, MS, 0);
    }
    hg_series_total(&series, HG_SERIES_OTHER, &sum);
    assert_int_equal(sum.statuses, HG_SERIES_STATUSES);
    assert_int_equal(sum.more_statuses, 3);
    assert_int_equal(sum.refused, HG_SERIES_STATUSES + 3);
    hg_series_tally_add(&twice, &sum);
    hg_series_tally_add(&twice, &sum);
    assert_int_equal(twice.status[0].count, 2);
    assert_int_equal(twice.more_statuses, 6);
    hg_series_fini(&series);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_hold_the_value),
        cmocka_unit_test(cells_hold_the_value),
        cmocka_unit_test(counters_and_deletions_are_constant),
        cmocka_unit_test(a_table_s_row_is_compared),
        cmocka_unit_test(a_table_s_counter_is_an_integer),
        cmocka_unit_test(a_cell_is_compared),
        cmocka_unit_test(garbage_is_no_reply),
        cmocka_unit_test(intervals_begin_at_multiples_of_the_wall_clock),
        cmocka_unit_test(the_last_interval_takes_what_comes_later),
        cmocka_unit_test(statuses_beyond_the_room_have_no_name),
    };
    return cmocka_run_group_tests(tests, make_values, free_values);
}
