// tableophelp - rows, items and results of TableAPI as text, for tests
// SPDX-License-Identifier: BSD-3-Clause
//
// For inclusion after cmocka.h and stdio.h, in one file of a program. A row is "a=1 b='x' c=null
// d=2.5", in the order of names; values of bytes have no blank and no quote.
#ifndef HG_TEST_TABLEOPHELP_H
#define HG_TEST_TABLEOPHELP_H

#include <stdlib.h>

#include "table/tableop.h"

#define ARENA_BYTES (16 << 20)
#include "arenahelp.h"

#define TEXT_BYTES 2000

/* ---- from text ---- */

static inline struct hg_value value_of(struct hg_span text)
{
    struct hg_value value = {.kind = HG_VALUE_NULL};
    if (text.at[0] == '\'') {
        value.kind = HG_VALUE_BYTES;
        value.bytes = hg_span(text.at + 1, text.len - 2);
    } else if (memchr(text.at, '.', text.len) != NULL) {
        value.kind = HG_VALUE_REAL;
        value.real = strtod((const char *)text.at, NULL);
    } else if (text.at[0] != 'n') {
        value.kind = HG_VALUE_INTEGER;
        value.integer = strtoll((const char *)text.at, NULL, 10);
    }
    return value;
}

/* The next word of a text with blanks between; false: no more. */
static inline bool next_word(const char **text, struct hg_span *ret)
{
    *text += strspn(*text, " ");
    *ret = hg_span(*text, strcspn(*text, " "));
    *text += ret->len;
    return ret->len > 0;
}

static inline struct hg_entity entity_of(const char *text)
{
    struct hg_entity entity = {hg_arena_array(&arena, 20, sizeof *entity.columns), 0};
    struct hg_span word;
    while (next_word(&text, &word)) {
        size_t name = (size_t)((const uint8_t *)memchr(word.at, '=', word.len) - word.at);
        entity.columns[entity.count++] = (struct hg_column){
            hg_span(word.at, name), value_of(hg_span(word.at + name + 1, word.len - name - 1))};
    }
    return entity;
}

static inline struct hg_names names_of(const char *text)
{
    struct hg_names names = {hg_arena_array(&arena, 20, sizeof *names.list), 0};
    while (next_word(&text, &names.list[names.count]))
        names.count++;
    return names;
}

static inline struct hg_row row_of(const char *text)
{
    return (struct hg_row){.api = HG_API_TABLE, .entity = entity_of(text)};
}

static inline struct hg_table_item make_item(enum hg_op op, const char *columns, const char *select,
                                             bool return_entity)
{
    return (struct hg_table_item){.op = op,
                                  .row = HG_SPAN_LIT("key"),
                                  .entity = entity_of(columns),
                                  .select = names_of(select),
                                  .return_entity = return_entity};
}
#define item(op, columns)                make_item(HG_OP_TABLE_##op, columns, "", false)
#define item_select(op, columns, select) make_item(HG_OP_TABLE_##op, columns, select, false)
#define item_return(op, columns)         make_item(HG_OP_TABLE_##op, columns, "", true)

/* ---- to text ---- */

static inline char *print_entity(char *out, const struct hg_entity *entity)
{
    *out = '\0';
    for (size_t i = 0; i < entity->count; i++) {
        const struct hg_column *column = &entity->columns[i];
        const struct hg_value *value = &column->value;
        out += sprintf(out, "%s%.*s=", i > 0 ? " " : "", (int)column->name.len, column->name.at);
        if (value->kind == HG_VALUE_NULL)
            out += sprintf(out, "null");
        else if (value->kind == HG_VALUE_INTEGER)
            out += sprintf(out, "%lld", (long long)value->integer);
        else if (value->kind == HG_VALUE_REAL)
            out += sprintf(out, "%g", value->real);
        else
            out += sprintf(out, "'%.*s'", (int)value->bytes.len, value->bytes.at);
    }
    return out;
}

/* "<status> <affected> <entity or none> <text>" */
static inline char *print_result(char *out, const struct hg_row_result *result)
{
    out += sprintf(out, "%u %u ", result->status, result->affected);
    if (result->found)
        out = print_entity(out, &result->entity);
    else
        out += sprintf(out, "none");
    if (result->text.len > 0)
        out += sprintf(out, " %.*s", (int)result->text.len, result->text.at);
    return out;
}

static inline char *print_act(char *out, const struct hg_row_outcome *outcome)
{
    static const char *const acts[] = {"keep ", "store ", "remove "};
    return out + sprintf(out, "%s", acts[outcome->act]);
}

static inline void print_row(char *out, const struct hg_row_outcome *outcome)
{
    if (outcome->act != HG_ROW_STORE)
        return;
    assert_int_equal(outcome->row.api, HG_API_TABLE);
    out = print_entity(out + sprintf(out, " ["), &outcome->row.entity);
    sprintf(out, "]");
}

/* ---- expectations ---- */

static inline void assert_row(const struct hg_row *row, const char *expected)
{
    char text[TEXT_BYTES];
    print_entity(text, &row->entity);
    assert_string_equal(text, expected);
}

/* "<act> <result>[ [<row>]]"; the old row stays as it is. */
static inline void expect(const struct hg_row *old, struct hg_table_item item, const char *expected)
{
    char text[TEXT_BYTES], before[TEXT_BYTES] = "", *out;
    struct hg_row_outcome outcome;
    if (old != NULL)
        print_entity(before, &old->entity);
    hg_tableop_apply(old, &item, &arena, &outcome);
    out = print_result(print_act(text, &outcome), &outcome.result);
    print_row(out, &outcome);
    assert_string_equal(text, expected);
    if (old != NULL)
        assert_row(old, before);
}

/* "<result>; <result>; = <act> <status> <affected>[ [<row>]]" */
static inline void expect_batch(const struct hg_row *old, const struct hg_table_item *items,
                                size_t count, const char *expected)
{
    char text[TEXT_BYTES], *out = text;
    struct hg_row_result results[20];
    struct hg_row_outcome outcome;
    hg_tableop_apply_all(old, items, count, &arena, results, &outcome);
    for (size_t i = 0; i < count; i++) {
        out = print_result(out, &results[i]);
        out += sprintf(out, "; ");
    }
    out = print_act(out + sprintf(out, "= "), &outcome);
    out += sprintf(out, "%u %u", outcome.result.status, outcome.result.affected);
    print_row(out, &outcome);
    assert_string_equal(text, expected);
}

#endif
