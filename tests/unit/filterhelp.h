// filterhelp - filters as literals, rows to try them on, and what passes as text
// SPDX-License-Identifier: BSD-3-Clause
//
// For inclusion after cmocka.h, in one file of a program.
#ifndef HG_TEST_FILTERHELP_H
#define HG_TEST_FILTERHELP_H

#include <stdio.h>
#include <string.h>

#include "table/filter.h"

#define S(text)     HG_SPAN_LIT(text)
#define INTEGER(n)  ((struct hg_value){.kind = HG_VALUE_INTEGER, .integer = (n)})
#define REAL(n)     ((struct hg_value){.kind = HG_VALUE_REAL, .real = (n)})
#define BYTES(text) ((struct hg_value){.kind = HG_VALUE_BYTES, .bytes = S(text)})
#define NULL_VALUE  ((struct hg_value){.kind = HG_VALUE_NULL})

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define NODE(k, ...) ((struct hg_filter_node){.kind = HG_FILTER_##k, __VA_ARGS__})
#define LIST(k, n)   NODE(k, .operands = (n))
#define FILTER(...)                                                                                \
    ((struct hg_filter){(struct hg_filter_node[]){__VA_ARGS__},                                    \
                        COUNT(((struct hg_filter_node[]){__VA_ARGS__}))})

static struct hg_arena arena;
static struct hg_filter_state fresh; /* of no row yet */

static inline int setup(void **state)
{
    (void)state;
    hg_arena_init(&arena, 1 << 20);
    memset(&fresh, 0, sizeof fresh);
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    hg_arena_fini(&arena);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* ---- rows ---- */

/* The columns a=1, ab="x", b=null, c=2.5 */
static struct hg_column abc[] = {
    {S("a"), {.kind = HG_VALUE_INTEGER, .integer = 1}},
    {S("ab"), {.kind = HG_VALUE_BYTES, .bytes = S("x")}},
    {S("b"), {.kind = HG_VALUE_NULL}},
    {S("c"), {.kind = HG_VALUE_REAL, .real = 2.5}},
};
static const struct hg_row columns_row = {.api = HG_API_TABLE, .entity = {abc, COUNT(abc)}};
static const struct hg_row empty_row = {.api = HG_API_TABLE};

static struct hg_cell fgs[] = {
    {S("f"), S("a"), 30, true, S("new")}, {S("f"), S("a"), 20, true, S("old")},
    {S("f"), S("b"), 10, true, S("")},    {S("g"), S(""), 5, true, S("no")},
    {S("g"), S("a"), 20, true, S("xyz")},
};
static const struct hg_row cells_row = {.api = HG_API_HBASE, .cells = {fgs, COUNT(fgs)}};

/* ---- what passes ---- */

/* What passes of a row of columns: "a ab! b", ! without its value; "-": the row does not. */
static inline const char *names_of(const struct hg_filter *filter, struct hg_filter_state *state,
                                   const char *key, const struct hg_row *row)
{
    static char text[400];
    struct hg_entity passed;
    bool memory = true;
    if (!hg_filter_entity(filter, state, hg_span_str(key), row, &row->entity, &arena, &passed,
                          &memory)) {
        assert_false(memory);
        return "-";
    }
    assert_false(memory);
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < passed.count; i++) {
        const struct hg_column *column = &passed.columns[i];
        bool bare = column->value.kind == HG_VALUE_NULL && !hg_span_is(column->name, "b");
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%.*s%s", i > 0 ? " " : "",
                               (int)column->name.len, column->name.at, bare ? "!" : "");
    }
    return text;
}

/* The same of a row of cells, by their numbers in it. */
static inline const char *cells_of(const struct hg_filter *filter, struct hg_filter_state *state,
                                   const char *key, const struct hg_row *row)
{
    static char text[400];
    struct hg_cells passed;
    bool memory = true;
    if (!hg_filter_cells(filter, state, hg_span_str(key), row, &row->cells, &arena, &passed,
                         &memory)) {
        assert_false(memory);
        return "-";
    }
    assert_true(passed.count > 0);
    size_t at = 0, j = 0;
    for (size_t i = 0; i < passed.count; i++) {
        const struct hg_cell *cell = &passed.list[i];
        while (cell->at_ms != row->cells.list[j].at_ms ||
               !hg_span_equal(cell->family, row->cells.list[j].family) ||
               !hg_span_equal(cell->qualifier, row->cells.list[j].qualifier))
            j++;
        bool bare = cell->value.len == 0 && row->cells.list[j].value.len > 0;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%zu%s", i > 0 ? " " : "", j,
                               bare ? "!" : "");
    }
    return text;
}

static inline void expect_names(struct hg_filter filter, const char *key, const char *expected)
{
    struct hg_filter_state state = {{0}};
    assert_string_equal(names_of(&filter, &state, key, &columns_row), expected);
}

static inline void expect_cells(struct hg_filter filter, const char *expected)
{
    struct hg_filter_state state = {{0}};
    assert_string_equal(cells_of(&filter, &state, "row", &cells_row), expected);
}

#endif
