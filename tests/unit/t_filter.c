// t_filter - which rows, columns and cells pass
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/prng.h"
#include "filterhelp.h"

/* ---- values ---- */

static void test_values_compare(void **state)
{
    (void)state;
    const int64_t two53 = INT64_C(1) << 53;
    /* Each is smaller than the next; those of one group are equal. */
    static const struct {
        int group;
        struct hg_value value;
    } rising[] = {
        {0, {.kind = HG_VALUE_NULL}},
        {1, {.kind = HG_VALUE_REAL, .real = -INFINITY}},
        {2, {.kind = HG_VALUE_REAL, .real = -1e300}},
        {3, {.kind = HG_VALUE_INTEGER, .integer = INT64_MIN}},
        {3, {.kind = HG_VALUE_REAL, .real = -0x1p63}},
        {4, {.kind = HG_VALUE_INTEGER, .integer = INT64_MIN + 1}},
        {5, {.kind = HG_VALUE_REAL, .real = -1.5}},
        {6, {.kind = HG_VALUE_INTEGER, .integer = -1}},
        {7, {.kind = HG_VALUE_REAL, .real = -0.5}},
        {8, {.kind = HG_VALUE_INTEGER, .integer = 0}},
        {8, {.kind = HG_VALUE_REAL, .real = -0.0}},
        {8, {.kind = HG_VALUE_REAL, .real = 0.0}},
        {9, {.kind = HG_VALUE_REAL, .real = 0.5}},
        {10, {.kind = HG_VALUE_INTEGER, .integer = 1}},
        {11, {.kind = HG_VALUE_INTEGER, .integer = (INT64_C(1) << 53) - 1}},
        {12, {.kind = HG_VALUE_REAL, .real = 0x1p53}},
        {12, {.kind = HG_VALUE_INTEGER, .integer = INT64_C(1) << 53}},
        {13, {.kind = HG_VALUE_INTEGER, .integer = (INT64_C(1) << 53) + 1}},
        {14, {.kind = HG_VALUE_REAL, .real = 0x1p53 + 2}},
        {15, {.kind = HG_VALUE_INTEGER, .integer = INT64_MAX}},
        {16, {.kind = HG_VALUE_REAL, .real = 0x1p63}},
        {17, {.kind = HG_VALUE_REAL, .real = INFINITY}},
        {18, {.kind = HG_VALUE_REAL, .real = NAN}},
        {18, {.kind = HG_VALUE_REAL, .real = -NAN}},
        {19, {.kind = HG_VALUE_BYTES}},
        {20, {.kind = HG_VALUE_BYTES, .bytes = {(const uint8_t *)"\0", 1}}},
        {21, {.kind = HG_VALUE_BYTES, .bytes = {(const uint8_t *)"a", 1}}},
        {22, {.kind = HG_VALUE_BYTES, .bytes = {(const uint8_t *)"a\0", 2}}},
        {23, {.kind = HG_VALUE_BYTES, .bytes = {(const uint8_t *)"ab", 2}}},
        {24, {.kind = HG_VALUE_BYTES, .bytes = {(const uint8_t *)"\xff", 1}}},
    };
    assert_true((double)(two53 + 1) == (double)two53); /* why it must be exact */
    for (size_t i = 0; i < COUNT(rising); i++)
        for (size_t j = 0; j < COUNT(rising); j++) {
            int order = hg_filter_compare(&rising[i].value, &rising[j].value);
            int expected =
                (rising[i].group > rising[j].group) - (rising[i].group < rising[j].group);
            assert_int_equal((order > 0) - (order < 0), expected);
        }
}

static void test_operators_hold(void **state)
{
    (void)state;
    static const struct {
        enum hg_operator op;
        bool less, equal, greater;
    } rows[] = {
        {HG_EQUAL, false, true, false},
        {HG_NOT_EQUAL, true, false, true},
        {HG_LESS, true, false, false},
        {HG_LESS_EQUAL, true, true, false},
        {HG_GREATER, false, false, true},
        {HG_GREATER_EQUAL, false, true, true},
        {(enum hg_operator)9, false, false, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(hg_filter_holds(rows[i].op, -7), rows[i].less);
        assert_int_equal(hg_filter_holds(rows[i].op, 0), rows[i].equal);
        assert_int_equal(hg_filter_holds(rows[i].op, 7), rows[i].greater);
    }
}

/* ---- each kind by itself ---- */

static void test_no_filter_passes_all(void **state)
{
    (void)state;
    struct hg_filter none = {NULL, 0};
    assert_true(hg_filter_row_key(&none, &fresh, S("k")));
    assert_false(hg_filter_done(&none, &fresh, S("k"), false));
    expect_names(none, "k", "a ab b c");
    expect_cells(none, "0 1 2 3 4");
    assert_string_equal(names_of(&none, &fresh, "k", &empty_row), "");
    assert_string_equal(cells_of(&none, &fresh, "k", &empty_row), "-");
}

static void test_conditions_on_the_row_key(void **state)
{
    (void)state;
    expect_names(FILTER(NODE(PREFIX, .low = S("ro"))), "row", "a ab b c");
    expect_names(FILTER(NODE(PREFIX, .low = S("row"))), "row", "a ab b c");
    expect_names(FILTER(NODE(PREFIX, .low = S("rows"))), "row", "-");
    expect_names(FILTER(NODE(PREFIX)), "row", "a ab b c");
    expect_names(FILTER(NODE(ROW_RANGE, .low = S("r"), .high = S("s"))), "row", "a ab b c");
    expect_names(FILTER(NODE(ROW_RANGE, .low = S("row"), .high = S("row"))), "row", "a ab b c");
    expect_names(FILTER(NODE(ROW_RANGE, .low = S("row"), .low_exclusive = true)), "row", "-");
    expect_names(FILTER(NODE(ROW_RANGE, .high = S("row"), .high_exclusive = true)), "row", "-");
    expect_names(FILTER(NODE(ROW_RANGE, .low = S("rox"))), "row", "-");
    expect_names(FILTER(NODE(ROW_RANGE, .high = S("ro"))), "row", "-");
    expect_names(FILTER(NODE(ROW_RANGE, .low_exclusive = true, .high_exclusive = true)), "row",
                 "a ab b c");
}

static void test_conditions_on_columns(void **state)
{
    (void)state;
    expect_names(FILTER(NODE(COLUMN_PREFIX, .low = S("a"))), "k", "a ab");
    expect_names(FILTER(NODE(COLUMN_PREFIX, .low = S("z"))), "k", "-");
    expect_names(FILTER(NODE(COLUMN_RANGE, .low = S("ab"), .high = S("c"))), "k", "ab b c");
    expect_names(FILTER(NODE(COLUMN_RANGE, .low = S("ab"), .high = S("c"), .low_exclusive = true,
                             .high_exclusive = true)),
                 "k", "b");
    expect_names(FILTER(NODE(COLUMN_RANGE)), "k", "a ab b c");
    expect_names(FILTER(NODE(QUALIFIER, .op = HG_EQUAL, .value = BYTES("b"))), "k", "b");
    expect_names(FILTER(NODE(QUALIFIER, .op = HG_LESS, .value = BYTES("b"))), "k", "a ab");
    expect_names(FILTER(NODE(QUALIFIER, .op = HG_NOT_EQUAL, .value = BYTES("b"))), "k", "a ab c");
    expect_names(FILTER(NODE(VALUE, .op = HG_EQUAL, .value = REAL(1.0))), "k", "a");
    expect_names(FILTER(NODE(VALUE, .op = HG_GREATER, .value = INTEGER(1))), "k", "ab c");
    expect_names(FILTER(NODE(VALUE, .op = HG_EQUAL, .value = NULL_VALUE)), "k", "b");
    expect_names(FILTER(NODE(VALUE, .op = HG_GREATER_EQUAL, .value = BYTES("y"))), "k", "-");
    expect_names(FILTER(NODE(KEY_ONLY)), "k", "a! ab! b c!");
    expect_names(FILTER(NODE(FIRST_KEY_ONLY)), "k", "a");
    int64_t zero[] = {0};
    expect_names(FILTER(NODE(TIMESTAMPS, .timestamps = zero, .timestamp_count = 1)), "k", "-");
}

static void test_conditions_on_cells(void **state)
{
    (void)state;
    expect_cells(FILTER(NODE(COLUMN_PREFIX, .low = S("a"))), "0 1 4");
    expect_cells(FILTER(NODE(QUALIFIER, .op = HG_LESS, .value = BYTES("a"))), "3");
    expect_cells(FILTER(NODE(VALUE, .op = HG_GREATER_EQUAL, .value = BYTES("no"))), "1 3 4");
    expect_cells(FILTER(NODE(VALUE, .op = HG_GREATER, .value = INTEGER(7))), "0 1 2 3 4");
    expect_cells(FILTER(NODE(KEY_ONLY)), "0! 1! 2 3! 4!");
    expect_cells(FILTER(NODE(FIRST_KEY_ONLY)), "0");
    int64_t rising[] = {5, 20, 20, 99}, mixed[] = {20, 5}, one[] = {7};
    expect_cells(FILTER(NODE(TIMESTAMPS, .timestamps = rising, .timestamp_count = 4)), "1 3 4");
    expect_cells(FILTER(NODE(TIMESTAMPS, .timestamps = mixed, .timestamp_count = 2)), "1 3 4");
    expect_cells(FILTER(NODE(TIMESTAMPS, .timestamps = one, .timestamp_count = 1)), "-");
    expect_cells(FILTER(NODE(TIMESTAMPS)), "-");
}

static void test_single_column_value(void **state)
{
    (void)state;
    expect_names(FILTER(NODE(SINGLE_COLUMN_VALUE, .qualifier = S("a"), .value = INTEGER(1))), "k",
                 "a ab b c");
    expect_names(FILTER(NODE(SINGLE_COLUMN_VALUE, .qualifier = S("a"), .value = INTEGER(2))), "k",
                 "-");
    for (int missing = 0; missing < 2; missing++) {
        const char *expected = missing ? "-" : "a ab b c";
        expect_names(FILTER(NODE(SINGLE_COLUMN_VALUE, .qualifier = S("bb"), .value = INTEGER(1),
                                 .filter_if_missing = missing)),
                     "k", expected);
        expect_names(FILTER(NODE(SINGLE_COLUMN_VALUE, .qualifier = S("z"), .value = INTEGER(1),
                                 .filter_if_missing = missing)),
                     "k", expected);
        /* A table has no families. */
        expect_names(FILTER(NODE(SINGLE_COLUMN_VALUE, .family = S("f"), .qualifier = S("a"),
                                 .value = INTEGER(2), .filter_if_missing = missing)),
                     "k", expected);
    }
    /* The newest cell decides, and families are told apart. */
#define SINGLE(f, q, v)                                                                            \
    FILTER(NODE(SINGLE_COLUMN_VALUE, .family = S(f), .qualifier = S(q), .value = BYTES(v),         \
                .filter_if_missing = true))
    expect_cells(SINGLE("f", "a", "new"), "0 1 2 3 4");
    expect_cells(SINGLE("f", "a", "old"), "-");
    expect_cells(SINGLE("g", "a", "xyz"), "0 1 2 3 4");
    expect_cells(SINGLE("f", "b", ""), "0 1 2 3 4");
    expect_cells(SINGLE("f", "c", ""), "-");
    expect_cells(SINGLE("e", "a", "new"), "-");
    expect_cells(SINGLE("h", "a", "new"), "-");
}

static void test_it_looks_at_the_row_not_at_the_candidates(void **state)
{
    (void)state;
    struct hg_filter filter = FILTER(NODE(SINGLE_COLUMN_VALUE, .qualifier = S("c"),
                                          .value = REAL(2.5), .filter_if_missing = true));
    struct hg_entity selected = {abc, 1}, passed;
    bool memory;
    assert_true(hg_filter_entity(&filter, &fresh, S("k"), &columns_row, &selected, &arena, &passed,
                                 &memory));
    assert_int_equal(passed.count, 1);
    struct hg_filter values = FILTER(NODE(VALUE, .value = REAL(2.5)));
    assert_false(hg_filter_entity(&values, &fresh, S("k"), &columns_row, &selected, &arena, &passed,
                                  &memory));
}

/* ---- lists ---- */

#define PREFIX_K   NODE(PREFIX, .low = S("k"))
#define PREFIX_Z   NODE(PREFIX, .low = S("z"))
#define COLUMN_A   NODE(COLUMN_PREFIX, .low = S("a"))
#define COLUMN_C   NODE(COLUMN_PREFIX, .low = S("c"))
#define VALUE_ONE  NODE(VALUE, .op = HG_EQUAL, .value = INTEGER(1))
#define VALUE_X    NODE(VALUE, .op = HG_EQUAL, .value = BYTES("x"))
#define PAGE_OF(n) NODE(PAGE, .count = (n))
#define FIRST      NODE(FIRST_KEY_ONLY)
#define BARE       NODE(KEY_ONLY)

static void test_lists(void **state)
{
    (void)state;
    /* One operand: as the operand. */
    expect_names(FILTER(COLUMN_A, LIST(ALL, 1)), "k", "a ab");
    expect_names(FILTER(COLUMN_A, LIST(ANY, 1)), "k", "a ab");
    /* Conditions on rows with conditions on cells. */
    expect_names(FILTER(PREFIX_K, VALUE_ONE, LIST(ALL, 2)), "k", "a");
    expect_names(FILTER(PREFIX_Z, VALUE_ONE, LIST(ALL, 2)), "k", "-");
    expect_names(FILTER(PREFIX_K, VALUE_ONE, LIST(ANY, 2)), "k", "a ab b c");
    expect_names(FILTER(PREFIX_Z, VALUE_ONE, LIST(ANY, 2)), "k", "a");
    expect_names(FILTER(PREFIX_Z, NODE(VALUE, .value = INTEGER(9)), LIST(ANY, 2)), "k", "-");
    /* Each operand lets a cell pass, but none passes both. */
    expect_names(FILTER(VALUE_ONE, VALUE_X, LIST(ALL, 2)), "k", "-");
    expect_names(FILTER(VALUE_ONE, VALUE_X, LIST(ANY, 2)), "k", "a ab");
    /* Lists in lists. */
    expect_names(FILTER(VALUE_ONE, COLUMN_C, LIST(ANY, 2), PREFIX_K, LIST(ALL, 2)), "k", "a c");
    expect_names(
        FILTER(PREFIX_Z, COLUMN_C, LIST(ALL, 2), VALUE_X, PREFIX_K, LIST(ALL, 2), LIST(ANY, 2)),
        "k", "ab");
}

static void test_key_only_in_lists(void **state)
{
    (void)state;
    expect_names(FILTER(COLUMN_A, BARE, LIST(ALL, 2)), "k", "a! ab!");
    /* A condition on values sees them, whatever the order. */
    expect_names(FILTER(BARE, VALUE_ONE, LIST(ALL, 2)), "k", "a!");
    expect_names(FILTER(BARE, VALUE_ONE, LIST(ANY, 2)), "k", "a! ab! b c!");
    /* Only what passes through it loses its value. */
    expect_names(FILTER(COLUMN_A, BARE, LIST(ALL, 2), COLUMN_C, LIST(ANY, 2)), "k", "a! ab! c");
    expect_names(FILTER(PREFIX_Z, BARE, LIST(ALL, 2), COLUMN_A, LIST(ANY, 2)), "k", "a ab");
}

static void test_first_key_only_in_lists(void **state)
{
    (void)state;
    expect_names(FILTER(VALUE_X, FIRST, LIST(ALL, 2)), "k", "ab");
    expect_names(FILTER(FIRST, VALUE_X, LIST(ALL, 2)), "k", "-");
    expect_names(FILTER(VALUE_X, FIRST, LIST(ANY, 2)), "k", "a ab");
    /* What reaches a nested list is what the operands before it let pass. */
    expect_names(FILTER(COLUMN_C, VALUE_ONE, FIRST, LIST(ANY, 2), LIST(ALL, 2)), "k", "c");
    expect_names(FILTER(VALUE_X, VALUE_ONE, FIRST, LIST(ALL, 2), LIST(ANY, 2)), "k", "a ab");
    expect_names(FILTER(PREFIX_Z, FIRST, LIST(ALL, 2)), "k", "-");
}

static void test_a_row_without_columns(void **state)
{
    (void)state;
    static const struct {
        struct hg_filter_node node;
        bool passes;
    } rows[] = {
        {{.kind = HG_FILTER_PREFIX, .low = S("k")}, true},
        {{.kind = HG_FILTER_PREFIX, .low = S("z")}, false},
        {{.kind = HG_FILTER_ROW_RANGE}, true},
        {{.kind = HG_FILTER_PAGE, .count = 1}, true},
        {{.kind = HG_FILTER_PAGE, .count = 0}, false},
        {{.kind = HG_FILTER_SINGLE_COLUMN_VALUE, .qualifier = S("a")}, true},
        {{.kind = HG_FILTER_SINGLE_COLUMN_VALUE, .filter_if_missing = true}, false},
        {{.kind = HG_FILTER_KEY_ONLY}, true},
        {{.kind = HG_FILTER_FIRST_KEY_ONLY}, true},
        {{.kind = HG_FILTER_COLUMN_PREFIX}, false},
        {{.kind = HG_FILTER_COLUMN_RANGE}, false},
        {{.kind = HG_FILTER_QUALIFIER, .op = HG_NOT_EQUAL}, false},
        {{.kind = HG_FILTER_VALUE, .op = HG_NOT_EQUAL}, false},
        {{.kind = HG_FILTER_TIMESTAMPS}, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hg_filter one = FILTER(rows[i].node);
        struct hg_filter any = FILTER(rows[i].node, PREFIX_K, LIST(ANY, 2));
        struct hg_filter all = FILTER(rows[i].node, PREFIX_K, LIST(ALL, 2));
        struct hg_filter_state states[3] = {{{0}}, {{0}}, {{0}}};
        const char *expected = rows[i].passes ? "" : "-";
        assert_string_equal(names_of(&one, &states[0], "k", &empty_row), expected);
        assert_string_equal(names_of(&any, &states[1], "k", &empty_row), "");
        assert_string_equal(names_of(&all, &states[2], "k", &empty_row), expected);
    }
}

/* ---- pages ---- */

/* Puts the keys to the filter; those that pass, without spaces between. */
static const char *rows_of(struct hg_filter filter, const char *const *keys, size_t count)
{
    static char text[200];
    struct hg_filter_state state = {{0}};
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        struct hg_span key = hg_span_str(keys[i]);
        if (hg_filter_done(&filter, &state, key, false)) {
            strcat(text, ".");
            break;
        }
        bool may = hg_filter_row_key(&filter, &state, key);
        if (strcmp(names_of(&filter, &state, keys[i], &columns_row), "-") == 0)
            continue;
        assert_true(may);
        strcat(strcat(text, text[0] != '\0' ? " " : ""), keys[i]);
    }
    return text;
}

static void test_pages(void **state)
{
    (void)state;
    static const char *const keys[] = {"a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2"};
    const struct hg_filter_node a = NODE(PREFIX, .low = S("a")), b = NODE(PREFIX, .low = S("b")),
                                b2 = NODE(PREFIX, .low = S("b2")),
                                no = NODE(VALUE, .value = BYTES("none"));
#define ROWS_OF(...) rows_of(FILTER(__VA_ARGS__), keys, COUNT(keys))
    assert_string_equal(ROWS_OF(PAGE_OF(2)), "a1 a2.");
    assert_string_equal(ROWS_OF(PAGE_OF(0)), ".");
    /* Wherever it stands in an ALL it counts what the others let pass. */
    assert_string_equal(ROWS_OF(PAGE_OF(2), b, LIST(ALL, 2)), "b1 b2.");
    assert_string_equal(ROWS_OF(b, PAGE_OF(2), LIST(ALL, 2)), "b1 b2.");
    assert_string_equal(ROWS_OF(PAGE_OF(2), b, VALUE_ONE, LIST(ALL, 3)), "b1 b2.");
    assert_string_equal(ROWS_OF(PAGE_OF(2), no, LIST(ALL, 2)), "");
    assert_string_equal(ROWS_OF(PAGE_OF(2), LIST(ALL, 1), b, LIST(ALL, 2)), "b1 b2.");
    /* Several: the smaller one ends it. */
    assert_string_equal(ROWS_OF(PAGE_OF(3), PAGE_OF(2), LIST(ALL, 2)), "a1 a2.");
    assert_string_equal(ROWS_OF(PAGE_OF(3), PAGE_OF(2), LIST(ANY, 2)), "a1 a2 a3.");
    /* A page for each branch. */
    assert_string_equal(
        ROWS_OF(a, PAGE_OF(2), LIST(ALL, 2), b, PAGE_OF(1), LIST(ALL, 2), LIST(ANY, 2)),
        "a1 a2 b1.");
    /* And one around them. */
    assert_string_equal(ROWS_OF(PAGE_OF(3), a, PAGE_OF(2), LIST(ALL, 2), b, PAGE_OF(2),
                                LIST(ALL, 2), LIST(ANY, 2), LIST(ALL, 2)),
                        "a1 a2 b1.");
    /* In an ANY it counts rows that would have passed without it. */
    assert_string_equal(ROWS_OF(PAGE_OF(2), b2, LIST(ANY, 2)), "a1 a2 b2.");
    /* A branch that gives the row no cell does not count it. */
    assert_string_equal(ROWS_OF(PAGE_OF(1), VALUE_X, LIST(ALL, 2), VALUE_ONE, LIST(ANY, 2),
                                NODE(COLUMN_PREFIX, .low = S("a")),
                                NODE(QUALIFIER, .op = HG_NOT_EQUAL, .value = BYTES("ab")),
                                LIST(ALL, 3)),
                        "a1 a2 a3 b1 b2 b3 c1 c2");
}

/* ---- row keys ---- */

static void test_row_key_and_done(void **state)
{
    (void)state;
    struct hg_filter prefix = FILTER(NODE(PREFIX, .low = S("bb")));
    struct hg_filter range = FILTER(NODE(ROW_RANGE, .low = S("bb"), .high = S("dd")));
    struct hg_filter open = FILTER(NODE(ROW_RANGE, .low = S("bb"), .high = S("dd"),
                                        .low_exclusive = true, .high_exclusive = true));
    struct hg_filter all = FILTER(prefix.nodes[0], VALUE_ONE, LIST(ALL, 2));
    struct hg_filter any = FILTER(prefix.nodes[0], VALUE_ONE, LIST(ANY, 2));
    struct hg_filter two = FILTER(prefix.nodes[0], range.nodes[0], LIST(ANY, 2));
    const struct {
        const struct hg_filter *filter;
        const char *key;
        bool may, done, done_reverse;
    } rows[] = {
        {&prefix, "b", false, false, true},  {&prefix, "ba", false, false, true},
        {&prefix, "bb", true, false, false}, {&prefix, "bbz", true, false, false},
        {&prefix, "bc", false, true, false}, {&prefix, "c", false, true, false},
        {&prefix, "", false, false, true},   {&range, "ba", false, false, true},
        {&range, "bb", true, false, false},  {&range, "c", true, false, false},
        {&range, "dd", true, false, false},  {&range, "dda", false, true, false},
        {&open, "bb", false, false, true},   {&open, "bba", true, false, false},
        {&open, "dd", false, true, false},   {&all, "bb", true, false, false},
        {&all, "a", false, false, true},     {&all, "c", false, true, false},
        {&any, "a", true, false, false},     {&any, "c", true, false, false},
        {&two, "c", true, false, false},     {&two, "de", false, true, false},
        {&two, "a", false, false, true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hg_span key = hg_span_str(rows[i].key);
        assert_int_equal(hg_filter_row_key(rows[i].filter, &fresh, key), rows[i].may);
        assert_int_equal(hg_filter_done(rows[i].filter, &fresh, key, false), rows[i].done);
        assert_int_equal(hg_filter_done(rows[i].filter, &fresh, key, true), rows[i].done_reverse);
    }
}

/* ---- what the decoder never lets through ---- */

static void test_what_is_not_well_formed_passes_nothing(void **state)
{
    (void)state;
    struct hg_filter_node many[HG_TABLE_FILTER_NODES + 2];
    for (size_t i = 0; i < COUNT(many); i++)
        many[i] = i % 2 == 0 ? PREFIX_K : LIST(ALL, i == 1 ? 1 : 2);
    const struct hg_filter bad[] = {
        FILTER(LIST(ALL, 0)),
        FILTER(LIST(ANY, 1)),
        FILTER(PREFIX_K, LIST(ALL, 2)),
        FILTER(PREFIX_K, LIST(ANY, UINT32_MAX)),
        FILTER(PREFIX_K, LIST(ALL, 0)),
        FILTER(PREFIX_K, PREFIX_K),
        FILTER(PREFIX_K, PREFIX_K, PREFIX_K, PREFIX_K, PREFIX_K, PREFIX_K, PREFIX_K, PREFIX_K,
               PREFIX_K, LIST(ANY, 9)),
        FILTER(NODE(KINDS)),
        FILTER({.kind = (enum hg_filter_kind) - 1}),
        {many, COUNT(many)},
        {many, SIZE_MAX},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_false(hg_filter_row_key(&bad[i], &fresh, S("k")));
        assert_true(hg_filter_done(&bad[i], &fresh, S("k"), false));
        assert_string_equal(names_of(&bad[i], &fresh, "k", &columns_row), "-");
        assert_string_equal(cells_of(&bad[i], &fresh, "k", &cells_row), "-");
    }
    struct hg_filter full = {many, 1}; /* 8 open results, 64 nodes are the most that pass */
    assert_string_equal(names_of(&full, &fresh, "k", &columns_row), "a ab b c");
    struct hg_filter eight = FILTER(PREFIX_K, PREFIX_K, PREFIX_K, PREFIX_K, PREFIX_K, PREFIX_K,
                                    PREFIX_K, COLUMN_A, LIST(ALL, 8));
    assert_string_equal(names_of(&eight, &fresh, "k", &columns_row), "a ab");
    for (size_t i = 1; i < HG_TABLE_FILTER_NODES; i++)
        many[i] = LIST(ANY, 1);
    full.count = HG_TABLE_FILTER_NODES;
    assert_string_equal(names_of(&full, &fresh, "k", &columns_row), "a ab b c");
}

static void test_any_program_is_harmless(void **state)
{
    (void)state;
    struct hg_prng prng = {7};
    for (int round = 0; round < 20000; round++) {
        struct hg_filter_node nodes[12];
        struct hg_filter filter = {nodes, (size_t)(round % 12) + 1};
        for (size_t i = 0; i < filter.count; i++) {
            enum hg_filter_kind kind = (enum hg_filter_kind)hg_prng_below(&prng, 14);
            nodes[i] = (struct hg_filter_node){
                .kind = kind, .operands = (uint32_t)hg_prng_below(&prng, 4), .count = 1};
        }
        struct hg_filter_state pages = {{0}};
        bool row = strcmp(names_of(&filter, &pages, "k", &columns_row), "-") != 0;
        assert_true(!row || hg_filter_row_key(&filter, &fresh, S("k")));
        hg_arena_reset(&arena);
    }
}

/* ---- memory ---- */

static void test_no_memory_is_told(void **state)
{
    (void)state;
    static struct hg_column columns[5000];
    static uint8_t names[5000][2];
    static struct hg_cell cells[5000];
    for (size_t i = 0; i < COUNT(columns); i++) {
        names[i][0] = (uint8_t)(i >> 8);
        names[i][1] = (uint8_t)i;
        columns[i] = (struct hg_column){hg_span(names[i], 2), INTEGER((int64_t)i)};
        cells[i] = (struct hg_cell){S("f"), hg_span(names[i], 2), 1, true, S("v")};
    }
    struct hg_row table = {.api = HG_API_TABLE, .entity = {columns, COUNT(columns)}};
    struct hg_row hbase = {.api = HG_API_HBASE, .cells = {cells, COUNT(cells)}};
    struct hg_filter filter =
        FILTER(NODE(COLUMN_PREFIX, .low = S("\1")), PAGE_OF(5), BARE, LIST(ALL, 3));
    unsigned refused = 0, passed = 0;
    for (size_t limit = 0; limit < 60000; limit += 500)
        for (int api = 0; api < 2; api++) {
            struct hg_arena small;
            struct hg_filter_state pages = {{0}};
            struct hg_entity entity = {NULL, 0};
            struct hg_cells list = {NULL, 0};
            bool memory = false;
            hg_arena_init(&small, limit);
            bool row = api == 0 ? hg_filter_entity(&filter, &pages, S("k"), &table, &table.entity,
                                                   &small, &entity, &memory)
                                : hg_filter_cells(&filter, &pages, S("k"), &hbase, &hbase.cells,
                                                  &small, &list, &memory);
            assert_int_equal(row, !memory);
            assert_int_equal(pages.passed[1], row);
            assert_int_equal(entity.count + list.count, row ? 256 : 0);
            if (row)
                passed++;
            else
                refused++;
            hg_arena_fini(&small);
        }
    assert_true(refused > 10 && passed > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_values_compare),
        TEST(test_operators_hold),
        TEST(test_no_filter_passes_all),
        TEST(test_conditions_on_the_row_key),
        TEST(test_conditions_on_columns),
        TEST(test_conditions_on_cells),
        TEST(test_single_column_value),
        TEST(test_it_looks_at_the_row_not_at_the_candidates),
        TEST(test_lists),
        TEST(test_key_only_in_lists),
        TEST(test_first_key_only_in_lists),
        TEST(test_a_row_without_columns),
        TEST(test_pages),
        TEST(test_row_key_and_done),
        TEST(test_what_is_not_well_formed_passes_nothing),
        TEST(test_any_program_is_harmless),
        TEST(test_no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
