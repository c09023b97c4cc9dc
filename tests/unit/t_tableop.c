// t_tableop - TableAPI on one row: each operation, batches, reads of ranges
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "proto/status.h"
#include "tableophelp.h"

/* ---- the table of operations ---- */

static void test_get(void **state)
{
    (void)state;
    struct hg_row row = row_of("a=1 b='x' c=null d=2.5");
    expect(NULL, item(GET, ""), "keep 0 0 none");
    expect(&row, item(GET, ""), "keep 0 0 a=1 b='x' c=null d=2.5");
    expect(&row, item_select(GET, "", "d a"), "keep 0 0 a=1 d=2.5");
    expect(&row, item_select(GET, "", "a a zz a"), "keep 0 0 a=1");
    expect(&row, item_select(GET, "", "z"), "keep 0 0 ");
    expect(&row, item_select(GET, "", "a b c d"), "keep 0 0 a=1 b='x' c=null d=2.5");
    struct hg_row empty = row_of("");
    expect(&empty, item(GET, ""), "keep 0 0 ");
    expect(&empty, item_select(GET, "", "a"), "keep 0 0 ");
}

static void test_insert(void **state)
{
    (void)state;
    struct hg_row row = row_of("a=1");
    expect(NULL, item(INSERT, "a=1 b=null"), "store 0 1 none [a=1 b=null]");
    expect(NULL, item(INSERT, ""), "store 0 1 none []");
    expect(&row, item(INSERT, "b=2"), "keep 2 0 none the row exists");
    struct hg_row empty = row_of("");
    expect(&empty, item(INSERT, "b=2"), "keep 2 0 none the row exists");
}

static void test_delete(void **state)
{
    (void)state;
    struct hg_row row = row_of("a=1"), empty = row_of("");
    expect(NULL, item(DELETE, ""), "keep 0 0 none");
    expect(&row, item(DELETE, ""), "remove 0 1 none");
    expect(&empty, item(DELETE, ""), "remove 0 1 none");
}

static void test_update(void **state)
{
    (void)state;
    struct hg_row row = row_of("b=1 d='x'"), empty = row_of("");
    expect(NULL, item(UPDATE, "a=1"), "keep 0 0 none");
    expect(&row, item(UPDATE, "b=2"), "store 0 1 none [b=2 d='x']");
    expect(&row, item(UPDATE, "a=0 c=null e='z'"), "store 0 1 none [a=0 b=1 c=null d='x' e='z']");
    expect(&row, item(UPDATE, "b=null d=1.5"), "store 0 1 none [b=null d=1.5]");
    expect(&row, item(UPDATE, ""), "keep 0 1 none");
    expect(&empty, item(UPDATE, "a=1"), "store 0 1 none [a=1]");
    expect(&empty, item(UPDATE, ""), "keep 0 1 none");
}

static void test_insert_or_update(void **state)
{
    (void)state;
    struct hg_row row = row_of("b=1 d='x'");
    expect(NULL, item(INSERT_OR_UPDATE, "a=1"), "store 0 1 none [a=1]");
    expect(NULL, item(INSERT_OR_UPDATE, ""), "store 0 1 none []");
    expect(&row, item(INSERT_OR_UPDATE, "d='y' e=1"), "store 0 1 none [b=1 d='y' e=1]");
    expect(&row, item(INSERT_OR_UPDATE, ""), "keep 0 1 none");
}

static void test_replace(void **state)
{
    (void)state;
    struct hg_row row = row_of("b=1 d='x'");
    expect(NULL, item(REPLACE, "a=1"), "store 0 1 none [a=1]");
    expect(&row, item(REPLACE, "a=1"), "store 0 2 none [a=1]");
    expect(&row, item(REPLACE, ""), "store 0 2 none []");
}

static void test_increment(void **state)
{
    (void)state;
    struct hg_row row = row_of("b=5 c=null d='x' e=1.5");
    expect(NULL, item(INCREMENT, "a=3"), "store 0 1 none [a=3]");
    expect(NULL, item_return(INCREMENT, "a=3 b=-1"), "store 0 1 a=3 b=-1 [a=3 b=-1]");
    expect(&row, item(INCREMENT, "b=-7"), "store 0 1 none [b=-2 c=null d='x' e=1.5]");
    expect(&row, item_return(INCREMENT, "a=1 b=1 c=1"),
           "store 0 1 a=1 b=6 c=1 [a=1 b=6 c=1 d='x' e=1.5]");
    expect(&row, item_return(INCREMENT, "b=0"), "store 0 1 b=5 [b=5 c=null d='x' e=1.5]");
    /* One column that cannot be: nothing changes. */
    expect(&row, item_return(INCREMENT, "a=1 b=1 d=1"),
           "keep 6 0 none column 'd' does not hold an integer");
    expect(&row, item(INCREMENT, "e=1"), "keep 6 0 none column 'e' does not hold an integer");
    expect(&row, item(INCREMENT, "b=1 z=1.5"),
           "keep 4 0 none column 'z' can be incremented by an integer only");
    expect(&row, item(INCREMENT, "b='1'"),
           "keep 4 0 none column 'b' can be incremented by an integer only");
    expect(NULL, item(INCREMENT, "b=null"),
           "keep 4 0 none column 'b' can be incremented by an integer only");
    /* The operands are looked at first. */
    expect(&row, item(INCREMENT, "d=1 z='x'"),
           "keep 4 0 none column 'z' can be incremented by an integer only");
}

static void test_increment_to_the_ends(void **state)
{
    (void)state;
    struct hg_row row = row_of("a=9223372036854775806 b=-9223372036854775807");
    expect(&row, item_return(INCREMENT, "a=1 b=-1"),
           "store 0 1 a=9223372036854775807 b=-9223372036854775808 "
           "[a=9223372036854775807 b=-9223372036854775808]");
    expect(&row, item(INCREMENT, "a=2"),
           "keep 6 0 none column 'a' would leave the range of 64-bit integers");
    expect(&row, item(INCREMENT, "a=1 b=-2"),
           "keep 6 0 none column 'b' would leave the range of 64-bit integers");
    expect(&row, item_return(INCREMENT, "b=9223372036854775807"),
           "store 0 1 b=0 [a=9223372036854775806 b=0]");
}

static void test_append(void **state)
{
    (void)state;
    struct hg_row row = row_of("b='x' c=null d=1 e=''");
    expect(NULL, item_return(APPEND, "a='ab'"), "store 0 1 a='ab' [a='ab']");
    expect(&row, item(APPEND, "b='yz'"), "store 0 1 none [b='xyz' c=null d=1 e='']");
    expect(&row, item_return(APPEND, "a='1' b='2' c='3' e=''"),
           "store 0 1 a='1' b='x2' c='3' e='' [a='1' b='x2' c='3' d=1 e='']");
    expect(&row, item(APPEND, "b='y' d='y'"), "keep 6 0 none column 'd' does not hold bytes");
    expect(&row, item(APPEND, "b='y' z=1"),
           "keep 4 0 none column 'z' can be appended bytes to only");
    expect(&row, item(APPEND, "b=null"), "keep 4 0 none column 'b' can be appended bytes to only");
}

static void test_names_in_errors_are_escaped(void **state)
{
    (void)state;
    uint8_t name[HG_TABLE_COLUMN_MAX];
    memset(name, 1, sizeof name);
    struct hg_column column = {hg_span(name, sizeof name), {.kind = HG_VALUE_NULL}};
    struct hg_table_item bad = {.op = HG_OP_TABLE_APPEND, .entity = {&column, 1}};
    struct hg_row_outcome outcome;
    hg_tableop_apply(NULL, &bad, &arena, &outcome);
    assert_int_equal(outcome.result.status, HG_STATUS_EINVAL);
    assert_memory_equal(outcome.result.text.at, "column '\\x01\\x01", 16);
    for (size_t i = 0; i < outcome.result.text.len; i++)
        assert_in_range(outcome.result.text.at[i], ' ', '~');
}

static void test_what_is_no_row_operation(void **state)
{
    (void)state;
    struct hg_row row = row_of("a=1");
    expect(&row, item(QUERY, ""), "keep 4 0 none not an operation on one row of a table");
}

/* ---- atomic batches ---- */

static void test_a_batch_applies_in_order(void **state)
{
    (void)state;
    struct hg_row row = row_of("a=1 b='x'");
    const struct hg_table_item items[] = {
        item_return(INCREMENT, "a=1 c=5"),
        item(GET, ""),
        item_return(INCREMENT, "a=1 d=7"),
        item_select(GET, "", "d a"),
        item(DELETE, ""),
        item(GET, ""),
        item(UPDATE, "a=9"),
        item(INSERT, "q=1"),
        item_return(APPEND, "r='s'"),
        item(REPLACE, "t=1"),
        item(GET, ""),
    };
    expect_batch(&row, items, 11,
                 "0 1 a=2 c=5; 0 0 a=2 b='x' c=5; 0 1 a=3 d=7; 0 0 a=3 d=7; 0 1 none; 0 0 none; "
                 "0 0 none; 0 1 none; 0 1 r='s'; 0 2 none; 0 0 t=1; = store 0 7 [t=1]");
    expect_batch(NULL, items, 2, "0 1 a=1 c=5; 0 0 a=1 c=5; = store 0 1 [a=1 c=5]");
    expect_batch(&row, items + 1, 1, "0 0 a=1 b='x'; = keep 0 0");
    expect_batch(&row, items + 4, 2, "0 1 none; 0 0 none; = remove 0 1");
    const struct hg_table_item passing[] = {item(INSERT, "a=1"), item(DELETE, "")};
    expect_batch(NULL, passing, 2, "0 1 none; 0 1 none; = keep 0 2");
}

static void test_a_batch_is_all_or_nothing(void **state)
{
    (void)state;
    struct hg_row row = row_of("a=1 b='x'");
    const struct hg_table_item items[] = {item_return(INCREMENT, "a=1"), item(INCREMENT, "b=1"),
                                          item(GET, ""), item(INSERT, "")};
    const char *told = "5 0 none not applied: item 2 of the atomic batch failed";
    char expected[400];
    snprintf(expected, sizeof expected,
             "%s; 6 0 none column 'b' does not hold an integer; %s; = keep 6 0", told, told);
    expect_batch(&row, items, 3, expected);
    /* The last of them. */
    expect_batch(&row, items + 2, 2,
                 "5 0 none not applied: item 2 of the atomic batch failed; "
                 "2 0 none the row exists; = keep 2 0");
    assert_row(&row, "a=1 b='x'");
}

/* Many items that add columns: each result shows the row as it was then. */
static void test_a_batch_that_grows_the_row(void **state)
{
    (void)state;
    enum { ITEMS = 300 };
    static struct hg_table_item items[2 * ITEMS];
    static struct hg_column columns[ITEMS];
    static uint8_t names[ITEMS];
    static struct hg_row_result results[2 * ITEMS];
    struct hg_row row = row_of("m=1");
    struct hg_row_outcome outcome;
    for (size_t i = 0; i < ITEMS; i++) {
        names[i] = (uint8_t)(i * 97); /* all over the place, some twice */
        columns[i] = (struct hg_column){hg_span(&names[i], 1),
                                        {.kind = HG_VALUE_INTEGER, .integer = (int64_t)i}};
        items[2 * i] =
            (struct hg_table_item){.op = HG_OP_TABLE_INSERT_OR_UPDATE, .entity = {&columns[i], 1}};
        items[2 * i + 1] = (struct hg_table_item){.op = HG_OP_TABLE_GET};
    }
    hg_tableop_apply_all(&row, items, 2 * ITEMS, &arena, results, &outcome);
    assert_int_equal(outcome.act, HG_ROW_STORE);
    bool there[256] = {false};
    int64_t newest[256];
    there['m'] = true;
    newest['m'] = 1;
    for (size_t i = 0; i < ITEMS; i++) {
        there[names[i]] = true;
        newest[names[i]] = (int64_t)i;
        const struct hg_entity *shown = &results[2 * i + 1].entity;
        size_t at = 0;
        for (size_t n = 0; n < 256; n++) {
            if (!there[n])
                continue;
            assert_int_equal(shown->columns[at].name.at[0], n);
            assert_int_equal(shown->columns[at].value.integer, newest[n]);
            at++;
        }
        assert_int_equal(shown->count, at);
    }
    assert_int_equal(outcome.row.entity.count, 256);
    assert_row(&row, "m=1");
}

/* The same columns again and again cost no copy of a wide row each. */
static void test_a_batch_on_a_wide_row_takes_little_memory(void **state)
{
    (void)state;
    enum { ITEMS = HG_TABLE_ITEMS_MAX, WIDE = 1000 };
    static struct hg_table_item items[ITEMS];
    static struct hg_row_result results[ITEMS];
    static struct hg_column columns[WIDE], one;
    static uint8_t names[WIDE][2];
    struct hg_arena small;
    struct hg_row_outcome outcome;
    for (size_t i = 0; i < WIDE; i++) {
        names[i][0] = (uint8_t)(i >> 8);
        names[i][1] = (uint8_t)i;
        columns[i] =
            (struct hg_column){hg_span(names[i], 2), {.kind = HG_VALUE_INTEGER, .integer = 1}};
    }
    one = columns[500];
    for (size_t i = 0; i < ITEMS; i++)
        items[i] = (struct hg_table_item){.op = HG_OP_TABLE_INCREMENT, .entity = {&one, 1}};
    struct hg_row row = {.api = HG_API_TABLE, .entity = {columns, WIDE}};
    hg_arena_init(&small, 1 << 18);
    hg_tableop_apply_all(&row, items, ITEMS, &small, results, &outcome);
    assert_int_equal(outcome.act, HG_ROW_STORE);
    assert_int_equal(outcome.row.entity.count, WIDE);
    assert_int_equal(outcome.row.entity.columns[500].value.integer, 1 + ITEMS);
    assert_int_equal(outcome.row.entity.columns[501].value.integer, 1);
    assert_int_equal(columns[500].value.integer, 1);
    hg_arena_fini(&small);
}

/* ---- rows of a range ---- */

static const char *read_row(struct hg_row row, const char *select, struct hg_filter filter)
{
    static char text[TEXT_BYTES];
    struct hg_query query = {.select = names_of(select), .filter = filter};
    struct hg_filter_state pages = {{0}};
    struct hg_found_row found;
    bool memory = true;
    if (!hg_tableop_read(&row, HG_SPAN_LIT("key"), &query, &pages, &arena, &found, &memory)) {
        assert_false(memory);
        return "no";
    }
    assert_false(memory || found.partial);
    assert_true(hg_span_is(found.row, "key"));
    assert_int_equal(found.cells.count, 0);
    print_entity(text, &found.entity);
    return text;
}

static void test_reads_of_a_range(void **state)
{
    (void)state;
    struct hg_row row = row_of("a=1 b='x'");
    struct hg_filter_node one = {.kind = HG_FILTER_VALUE, .value = {.kind = HG_VALUE_INTEGER}};
    struct hg_filter_node key = {.kind = HG_FILTER_PREFIX, .low = HG_SPAN_LIT("k")};
    struct hg_filter none = {NULL, 0}, value = {&one, 1}, prefix = {&key, 1};
    one.value.integer = 1;
    assert_string_equal(read_row(row, "", none), "a=1 b='x'");
    assert_string_equal(read_row(row, "b", none), "b='x'");
    assert_string_equal(read_row(row, "z", none), "");
    assert_string_equal(read_row(row, "", value), "a=1");
    /* The filter looks at what is not selected. */
    assert_string_equal(read_row(row, "b", value), "");
    assert_string_equal(read_row(row, "a", value), "a=1");
    assert_string_equal(read_row(row, "b", prefix), "b='x'");
    assert_string_equal(read_row(row_of(""), "", prefix), "");
    assert_string_equal(read_row(row_of(""), "", value), "no");
    one.value.integer = 2;
    assert_string_equal(read_row(row, "", value), "no");
    key.low = HG_SPAN_LIT("z");
    assert_string_equal(read_row(row, "", prefix), "no");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_get),
        TEST(test_insert),
        TEST(test_delete),
        TEST(test_update),
        TEST(test_insert_or_update),
        TEST(test_replace),
        TEST(test_increment),
        TEST(test_increment_to_the_ends),
        TEST(test_append),
        TEST(test_names_in_errors_are_escaped),
        TEST(test_what_is_no_row_operation),
        TEST(test_a_batch_applies_in_order),
        TEST(test_a_batch_is_all_or_nothing),
        TEST(test_a_batch_that_grows_the_row),
        cmocka_unit_test_setup_teardown(test_a_batch_on_a_wide_row_takes_little_memory, setup,
                                        teardown),
        TEST(test_reads_of_a_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
