// t_rowdoc - a row survives being stored, and nothing that is not one is taken for one
// SPDX-License-Identifier: BSD-3-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/prng.h"
#include "proto/rowdoc.h"
#include "proto/status.h"
#include "tablehelp.h"

static struct hg_arena arena;

static int setup(void **state)
{
    (void)state;
    hg_arena_init(&arena, 1u << 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hg_arena_fini(&arena);
    return 0;
}

// Decodes from memory of exactly that size which is gone afterwards.
static uint16_t decode(struct hg_span value, struct hg_row *ret)
{
    uint8_t *copy = malloc(value.len ? value.len : 1);
    assert_non_null(copy);
    memcpy(copy, value.at, value.len);
    uint16_t status = hg_rowdoc_decode(hg_span(copy, value.len), &arena, ret);
    memset(copy, 0xee, value.len);
    free(copy);
    return status;
}

static void same_value(const struct hg_value *a, const struct hg_value *b)
{
    assert_int_equal(a->kind, b->kind);
    if (a->kind == HG_VALUE_INTEGER)
        assert_true(a->integer == b->integer);
    if (a->kind == HG_VALUE_REAL)
        assert_memory_equal(&a->real, &b->real, sizeof a->real);
    if (a->kind == HG_VALUE_BYTES)
        assert_true(hg_span_equal(a->bytes, b->bytes));
}

static void same_row(const struct hg_row *a, const struct hg_row *b)
{
    assert_int_equal(a->api, b->api);
    assert_int_equal(a->entity.count, b->entity.count);
    for (size_t i = 0; i < a->entity.count; i++) {
        assert_true(hg_span_equal(a->entity.columns[i].name, b->entity.columns[i].name));
        same_value(&a->entity.columns[i].value, &b->entity.columns[i].value);
    }
    assert_int_equal(a->cells.count, b->cells.count);
    for (size_t i = 0; i < a->cells.count; i++) {
        const struct hg_cell *left = &a->cells.list[i], *right = &b->cells.list[i];
        assert_true(hg_span_equal(left->family, right->family));
        assert_true(hg_span_equal(left->qualifier, right->qualifier));
        assert_true(hg_span_equal(left->value, right->value));
        assert_true(left->at_ms == right->at_ms && right->dated);
    }
}

static struct hg_span random_bytes(struct hg_prng *prng, size_t max)
{
    size_t len = hg_prng_next(prng) % (max + 1);
    uint8_t *at = hg_arena_take(&arena, len);
    assert_non_null(at);
    for (size_t i = 0; i < len; i++)
        at[i] = (uint8_t)hg_prng_next(prng);
    return hg_span(at, len);
}

// Names that rise: a counter in front of random bytes.
static struct hg_span rising_name(struct hg_prng *prng, size_t index)
{
    struct hg_span tail = random_bytes(prng, 20);
    uint8_t *at = hg_arena_take(&arena, tail.len + 1);
    assert_non_null(at);
    at[0] = (uint8_t)(index * 3);
    memcpy(at + 1, tail.at, tail.len);
    return hg_span(at, tail.len + 1);
}

static struct hg_value random_value(struct hg_prng *prng)
{
    struct hg_value value = {.kind = (enum hg_value_kind)(hg_prng_next(prng) % 4)};
    uint64_t bits = hg_prng_next(prng) >> hg_prng_next(prng) % 64;
    if (value.kind == HG_VALUE_INTEGER)
        value.integer = (int64_t)bits;
    if (value.kind == HG_VALUE_REAL)
        memcpy(&value.real, &bits, sizeof value.real); // NaN, too
    if (value.kind == HG_VALUE_BYTES)
        value.bytes = random_bytes(prng, 60);
    return value;
}

static struct hg_row random_row(struct hg_prng *prng)
{
    struct hg_row row = {.api = hg_prng_next(prng) % 2 ? HG_API_TABLE : HG_API_HBASE};
    size_t count = hg_prng_next(prng) % 40;
    struct hg_column *columns = hg_arena_array(&arena, count, sizeof *columns);
    struct hg_cell *cells = hg_arena_array(&arena, count, sizeof *cells);
    assert_true(columns && cells);
    for (size_t i = 0; i < count; i++) {
        columns[i].name = rising_name(prng, i);
        columns[i].value = random_value(prng);
        cells[i] = (struct hg_cell){.family = HG_SPAN_LIT("d"), .dated = true};
        cells[i].qualifier = rising_name(prng, i);
        cells[i].at_ms = (int64_t)(hg_prng_next(prng) >> 1);
        cells[i].value = random_bytes(prng, 60);
        if (i > 0 && cells[i - 1].at_ms > INT64_MIN + 1 && hg_prng_next(prng) % 2) {
            cells[i].qualifier = cells[i - 1].qualifier;
            cells[i].at_ms = cells[i - 1].at_ms - 1;
        }
    }
    if (row.api == HG_API_TABLE)
        row.entity = (struct hg_entity){columns, count};
    else
        row.cells = (struct hg_cells){cells, count};
    return row;
}

// What protobuf-c makes of the same row.
static void must_be_what_protobuf_writes(const struct hg_row *row, struct hg_span value)
{
    PB(RowDocument) *document = headgate__table__v1__row_document__unpack(
        NULL, value.len - HG_ROWDOC_MARK_BYTES, value.at + HG_ROWDOC_MARK_BYTES);
    assert_non_null(document);
    assert_int_equal(document->n_columns, row->entity.count);
    assert_int_equal(document->n_cells, row->cells.count);
    for (size_t i = 0; i < document->n_columns; i++) {
        const PB(Column) *column = document->columns[i];
        const struct hg_value *value_of = &row->entity.columns[i].value;
        assert_int_equal(column->value == NULL, value_of->kind == HG_VALUE_NULL);
        if (value_of->kind == HG_VALUE_INTEGER)
            assert_true(column->value->integer == value_of->integer);
        if (value_of->kind == HG_VALUE_REAL)
            assert_memory_equal(&column->value->real, &value_of->real, 8);
    }
    for (size_t i = 0; i < document->n_cells; i++)
        assert_true(document->cells[i]->timestamp == row->cells.list[i].at_ms);
    struct hg_span packed = tablehelp_pack(document);
    assert_int_equal(packed.len, value.len - HG_ROWDOC_MARK_BYTES);
    assert_memory_equal(packed.at, value.at + HG_ROWDOC_MARK_BYTES, packed.len);
    free((void *)(uintptr_t)packed.at);
    headgate__table__v1__row_document__free_unpacked(document, NULL);
}

static void test_random_rows_come_back(void **state)
{
    (void)state;
    struct hg_prng prng = {42};
    for (int round = 0; round < 2000; round++) {
        hg_arena_reset(&arena);
        struct hg_row row = random_row(&prng), back, again;
        struct hg_span value, twice;
        assert_true(hg_rowdoc_encode(&row, &arena, &value));
        assert_true(hg_rowdoc_is(HG_ROWDOC_FLAGS, value));
        assert_int_equal(value.at[4], row.api == HG_API_TABLE ? 'T' : 'H');
        assert_int_equal(decode(value, &back), 0);
        same_row(&row, &back);
        must_be_what_protobuf_writes(&row, value);
        assert_true(hg_rowdoc_encode(&back, &arena, &twice));
        assert_true(hg_span_equal(value, twice));
        assert_int_equal(decode(twice, &again), 0);
        same_row(&back, &again);
    }
}

static void test_damage_is_never_a_crash(void **state)
{
    (void)state;
    struct hg_prng prng = {7};
    unsigned refused = 0;
    for (int round = 0; round < 3000; round++) {
        hg_arena_reset(&arena);
        struct hg_row row = random_row(&prng), back;
        struct hg_span value, copy;
        assert_true(hg_rowdoc_encode(&row, &arena, &value));
        copy = hg_arena_copy(&arena, value);
        uint8_t *at = (uint8_t *)(uintptr_t)copy.at;
        for (unsigned flips = 1 + hg_prng_next(&prng) % 3; flips > 0; flips--)
            at[hg_prng_next(&prng) % copy.len] ^= (uint8_t)(1u << hg_prng_next(&prng) % 8);
        if (hg_prng_next(&prng) % 3 == 0)
            copy.len = hg_prng_next(&prng) % copy.len;
        uint16_t status = decode(copy, &back);
        assert_true(status == 0 || status == HG_STATUS_EINTERNAL);
        refused += status != 0;
        if (status == 0) { // what is taken for a row is one
            struct hg_row again;
            assert_true(hg_rowdoc_encode(&back, &arena, &value));
            assert_int_equal(decode(value, &again), 0);
            same_row(&back, &again);
        }
    }
    assert_in_range(refused, 300, 2900);
}

// A document behind the mark.
static uint16_t decode_document(char kind, const void *document)
{
    struct hg_span packed = tablehelp_pack(document);
    uint8_t *value = hg_arena_take(&arena, packed.len + 5);
    assert_non_null(value);
    memcpy(value, "\xf7HGR", 4);
    value[4] = (uint8_t)kind;
    memcpy(value + 5, packed.at, packed.len);
    free((void *)(uintptr_t)packed.at);
    struct hg_row row;
    return decode(hg_span(value, packed.len + 5), &row);
}

static void test_documents_that_are_not_rows(void **state)
{
    (void)state;
#define DOC(...)     MSG(RowDocument, row_document, __VA_ARGS__)
#define COLUMNS(...) DOC(LIST(columns, Column, __VA_ARGS__))
#define CELLS(...)   DOC(LIST(cells, Cell, __VA_ARGS__))
#define LONG50       "01234567890123456789012345678901234567890123456789"
#define LONG250      LONG50 LONG50 LONG50 LONG50 LONG50
    const struct {
        char kind;
        const void *document;
        uint16_t status;
    } rows[] = {
        {'T', COLUMNS(COLUMN("a", INTEGER(1)), COLUMN("b", NOTHING)), 0},
        {'T', DOC(.n_cells = 0), 0},
        {'H', DOC(.n_cells = 0), 0},
        {'T', COLUMNS(COLUMN("b", NOTHING), COLUMN("a", NOTHING)), HG_STATUS_EINTERNAL},
        {'T', COLUMNS(COLUMN("a", NOTHING), COLUMN("a", NOTHING)), HG_STATUS_EINTERNAL},
        {'T', COLUMNS(COLUMN("ab", NOTHING), COLUMN("a", NOTHING)), HG_STATUS_EINTERNAL},
        {'T', COLUMNS(COLUMN("", NOTHING)), HG_STATUS_EINTERNAL},
        {'T', COLUMNS(COLUMN(LONG250, NOTHING)), 0},
        {'T', COLUMNS(COLUMN(LONG250 "x", NOTHING)), HG_STATUS_EINTERNAL},
        {'H', COLUMNS(COLUMN("a", NOTHING)), HG_STATUS_EINTERNAL},
        {'T', CELLS(CELL("d", "q", CELL_AT(1))), HG_STATUS_EINTERNAL},
        {'x', DOC(.n_cells = 0), HG_STATUS_EINTERNAL},
        {'H', CELLS(CELL("d", "q", CELL_AT(2)), CELL("d", "q", CELL_AT(1))), 0},
        {'H', CELLS(CELL("d", "q", CELL_AT(1)), CELL("d", "q", CELL_AT(2))), HG_STATUS_EINTERNAL},
        {'H', CELLS(CELL("d", "q", CELL_AT(1)), CELL("d", "q", CELL_AT(1))), HG_STATUS_EINTERNAL},
        {'H', CELLS(CELL("e", "q", CELL_AT(2)), CELL("d", "q", CELL_AT(1))), HG_STATUS_EINTERNAL},
        {'H', CELLS(CELL("d", "r", CELL_AT(2)), CELL("d", "q", CELL_AT(1))), HG_STATUS_EINTERNAL},
        {'H', CELLS(CELL("d", "", CELL_AT(1)), CELL("d", "q", CELL_AT(9))), 0},
        {'H', CELLS(CELL("", "q", CELL_AT(1))), HG_STATUS_EINTERNAL},
        {'H', CELLS(CELL("d", LONG250 "x", CELL_AT(1))), HG_STATUS_EINTERNAL},
        {'H', CELLS(CELL("d", "q")), HG_STATUS_EINTERNAL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint16_t status = decode_document(rows[i].kind, rows[i].document);
        if (status != rows[i].status)
            fail_msg("document %zu: 0x%x", i, status);
    }
}

// Behind the mark, as bytes.
static uint16_t decode_raw(char kind, struct hg_span document, struct hg_row *ret)
{
    uint8_t value[64] = "\xf7HGR";
    assert_true(document.len <= sizeof value - 5);
    value[4] = (uint8_t)kind;
    memcpy(value + 5, document.at, document.len);
    return decode(hg_span(value, document.len + 5), ret);
}

static void test_other_writers_and_what_would_be_lost(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        char kind;
        struct hg_span document;
        uint16_t status;
    } rows[] = {
        {"the value before the name", 'T', HG_SPAN_LIT("\x0a\7\x12\2\x08\5\x0a\1a"), 0},
        {"a long varint", 'T', HG_SPAN_LIT("\x0a\x87\0\x0a\1a\x12\2\x08\5"), 0},
        {"an empty value", 'T', HG_SPAN_LIT("\x0a\5\x0a\1a\x12\0"), 0},
        {"a name twice", 'T', HG_SPAN_LIT("\x0a\6\x0a\1a\x0a\1b"), HG_STATUS_EINTERNAL},
        {"a value twice", 'T', HG_SPAN_LIT("\x0a\x0b\x0a\1a\x12\2\x08\5\x12\2\x08\6"),
         HG_STATUS_EINTERNAL},
        {"two kinds of value", 'T', HG_SPAN_LIT("\x0a\x0a\x0a\1a\x12\5\x08\5\x1a\1x"),
         HG_STATUS_EINTERNAL},
        {"an unknown field", 'T', HG_SPAN_LIT("\x0a\3\x0a\1a\x18\1"), HG_STATUS_EINTERNAL},
        {"one of a column", 'T', HG_SPAN_LIT("\x0a\5\x0a\1a\x18\1"), HG_STATUS_EINTERNAL},
        {"one of a value", 'T', HG_SPAN_LIT("\x0a\7\x0a\1a\x12\2\x20\1"), HG_STATUS_EINTERNAL},
        {"an integer as bytes", 'T', HG_SPAN_LIT("\x0a\7\x0a\1a\x12\2\x0a\0"), HG_STATUS_EINTERNAL},
        {"a real cut short", 'T', HG_SPAN_LIT("\x0a\x0c\x0a\1a\x12\7\x11\0\0\0\0\0\0"),
         HG_STATUS_EINTERNAL},
        {"an endless varint", 'T',
         HG_SPAN_LIT("\x0a\x10\x0a\1a\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"),
         HG_STATUS_EINTERNAL},
        {"fields of a cell in any order", 'H', HG_SPAN_LIT("\x12\x08\x18\7\x22\1v\x0a\1d"), 0},
        {"a time twice", 'H', HG_SPAN_LIT("\x12\7\x0a\1d\x18\7\x18\x08"), HG_STATUS_EINTERNAL},
        {"a field of a cell", 'H', HG_SPAN_LIT("\x12\7\x0a\1d\x18\7\x28\x08"), HG_STATUS_EINTERNAL},
        {"a family as a number", 'H', HG_SPAN_LIT("\x12\4\x08\1\x18\7"), HG_STATUS_EINTERNAL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hg_row row;
        uint16_t status = decode_raw(rows[i].kind, rows[i].document, &row);
        if (status != rows[i].status)
            fail_msg("%s: 0x%x", rows[i].what, status);
        if (status == 0 && rows[i].kind == 'T')
            assert_true(hg_span_is(row.entity.columns->name, "a"));
        if (status == 0 && rows[i].kind == 'H')
            assert_true(hg_span_is(row.cells.list->family, "d") && row.cells.list->at_ms == 7);
    }
}

static void test_what_is_not_marked(void **state)
{
    (void)state;
    struct hg_row row;
    assert_true(hg_rowdoc_is(HG_ROWDOC_FLAGS, HG_SPAN_LIT("\xf7HGRT")));
    assert_false(hg_rowdoc_is(HG_ROWDOC_FLAGS, HG_SPAN_LIT("\xf7HGR")));
    assert_false(hg_rowdoc_is(HG_ROWDOC_FLAGS, HG_SPAN_LIT("\xf7HGS....")));
    assert_false(hg_rowdoc_is(0, HG_SPAN_LIT("\xf7HGRT")));
    assert_int_equal(decode(HG_SPAN_LIT("\xf7HGR"), &row), HG_STATUS_EINTERNAL);
    assert_int_equal(decode(HG_SPAN_LIT(""), &row), HG_STATUS_EINTERNAL);
    assert_int_equal(decode(HG_SPAN_LIT("value"), &row), HG_STATUS_EINTERNAL);
}

static void test_memory_has_a_limit(void **state)
{
    (void)state;
    // 100 kB of empty columns would unfold to many times that.
    size_t bytes = 100001;
    uint8_t *value = malloc(bytes);
    assert_non_null(value);
    memcpy(value, "\xf7HGRT", 5);
    for (size_t i = 5; i < bytes; i++)
        value[i] = i % 2 ? 0x0a : 0;
    struct hg_row row;
    assert_int_equal(hg_rowdoc_decode(hg_span(value, bytes), &arena, &row), HG_STATUS_ENOMEM);
    assert_true(arena.used_bytes <= 1u << 20);
    free(value);
    struct hg_arena none;
    hg_arena_init(&none, 0);
    struct hg_span out;
    assert_false(hg_rowdoc_encode(&(struct hg_row){.api = HG_API_TABLE}, &none, &out));
    assert_int_equal(hg_rowdoc_decode(HG_SPAN_LIT("\xf7HGRT"), &none, &row), HG_STATUS_ENOMEM);
    hg_arena_fini(&none);
}

static void test_stored_keys(void **state)
{
    (void)state;
    uint8_t key[HG_TABLE_KEY_MAX + 1];
    assert_int_equal(hg_rowdoc_key(key, HG_SPAN_LIT("orders"), HG_SPAN_LIT("r\0w")), 10);
    assert_memory_equal(key, "orders\0r\0w", 10);
    assert_int_equal(hg_rowdoc_key(key, HG_SPAN_LIT("t"), HG_SPAN_NONE), 2);
    assert_memory_equal(key, "t\0", 2);
    uint8_t names[HG_TABLE_KEY_MAX];
    memset(names, 'n', sizeof names);
    assert_int_equal(hg_rowdoc_key(key, hg_span(names, 100), hg_span(names + 100, 149)), 250);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_random_rows_come_back),
        TEST(test_damage_is_never_a_crash),
        TEST(test_documents_that_are_not_rows),
        TEST(test_other_writers_and_what_would_be_lost),
        TEST(test_what_is_not_marked),
        TEST(test_memory_has_a_limit),
        TEST(test_stored_keys),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
