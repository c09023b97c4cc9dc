// hbasehelp - HBase operations on a row, written and read as text
// SPDX-License-Identifier: BSD-3-Clause
//
//   cells     "f:q@10=value g:q=value"   without @: not dated
//   row       the same, as it is stored; "-" when there is none
#ifndef HG_TESTS_HBASEHELP_H
#define HG_TESTS_HBASEHELP_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "proto/status.h"
#include "table/hbaseop.h"

struct rig {
    struct hg_arena arena; /* of everything the test makes */
    struct hg_family listed[4];
    struct hg_families families;
    int64_t now_ms;
    bool is_there;
    struct hg_row row;
    struct hg_row_outcome out; /* of the last operation */
    char text[4096];
};

static inline void rig_init(struct rig *rig)
{
    memset(rig, 0, sizeof *rig);
    hg_arena_init(&rig->arena, 64 << 20);
    rig->families.list = rig->listed;
    rig->now_ms = 1000;
}

static inline void rig_family(struct rig *rig, const char *name, uint64_t ttl_ms,
                              uint32_t max_versions)
{
    rig->listed[rig->families.count++] =
        (struct hg_family){hg_span_str(name), ttl_ms, max_versions};
}

static inline void rig_fini(struct rig *rig)
{
    hg_arena_fini(&rig->arena);
}

static inline struct hg_span part(const char **at, const char *stops)
{
    size_t len = strcspn(*at, stops);
    struct hg_span found = hg_span(*at, len);
    *at += len;
    return found;
}

static inline struct hg_cells cells_of(struct rig *rig, const char *text)
{
    size_t room = strlen(text) + 1;
    char *copy = hg_arena_take(&rig->arena, room);
    assert_non_null(copy);
    memcpy(copy, text, room);
    const char *at = copy;
    struct hg_cells cells = {hg_arena_array(&rig->arena, room / 2 + 1, sizeof *cells.list), 0};
    assert_non_null(cells.list);
    while (*at != '\0') {
        struct hg_cell *cell = &cells.list[cells.count++];
        cell->family = part(&at, ":");
        at++;
        cell->qualifier = part(&at, "@=");
        if (*at == '@') {
            char *end;
            cell->dated = true;
            cell->at_ms = strtoll(at + 1, &end, 10);
            at = end;
        }
        at++;
        cell->value = part(&at, " ");
        at += *at == ' ';
    }
    return cells;
}

static inline void add_span(char *text, size_t size, struct hg_span span)
{
    for (size_t i = 0; i < span.len; i++) {
        size_t len = strlen(text);
        bool printable = span.at[i] > 0x20 && span.at[i] < 0x7f;
        snprintf(text + len, size - len, printable ? "%c" : "\\%02x", span.at[i]);
    }
}

/* Cells as text; "-" when there are none. */
static inline const char *text_of(struct rig *rig, const struct hg_cells *cells)
{
    char *text = rig->text;
    size_t size = sizeof rig->text;
    snprintf(text, size, "%s", cells->count == 0 ? "-" : "");
    for (size_t i = 0; i < cells->count; i++) {
        const struct hg_cell *cell = &cells->list[i];
        assert_true(cell->dated);
        add_span(text, size, cell->family);
        snprintf(text + strlen(text), size - strlen(text), ":");
        add_span(text, size, cell->qualifier);
        snprintf(text + strlen(text), size - strlen(text), "@%lld=", (long long)cell->at_ms);
        add_span(text, size, cell->value);
        snprintf(text + strlen(text), size - strlen(text), i + 1 < cells->count ? " " : "");
    }
    return text;
}

static inline const char *row_text(struct rig *rig)
{
    if (rig->is_there)
        assert_int_equal(rig->row.api, HG_API_HBASE);
    return rig->is_there ? text_of(rig, &rig->row.cells) : "-";
}

/* Applies and takes over what becomes of the row. */
static inline uint16_t rig_apply(struct rig *rig, const struct hg_hbase_item *item)
{
    hg_hbaseop_apply(rig->is_there ? &rig->row : NULL, item, &rig->families, rig->now_ms,
                     &rig->arena, &rig->out);
    const struct hg_row_result *result = &rig->out.result;
    assert_true((result->status == 0) == (result->text.len == 0));
    if (rig->out.act == HG_ROW_STORE) {
        assert_true(rig->out.row.cells.count > 0);
        rig->row = rig->out.row;
        rig->is_there = true;
    } else if (rig->out.act == HG_ROW_REMOVE) {
        assert_true(rig->is_there);
        rig->is_there = false;
    }
    if (result->status != 0)
        assert_int_equal(rig->out.act, HG_ROW_KEEP);
    return result->status;
}

static inline uint16_t rig_put(struct rig *rig, const char *cells)
{
    struct hg_hbase_item item = {.op = HG_OP_HBASE_PUT, .cells = cells_of(rig, cells)};
    return rig_apply(rig, &item);
}

static inline uint16_t rig_append(struct rig *rig, const char *cells)
{
    struct hg_hbase_item item = {.op = HG_OP_HBASE_APPEND, .cells = cells_of(rig, cells)};
    return rig_apply(rig, &item);
}

static inline struct hg_deletion deletion(enum hg_deletion_kind kind, const char *family,
                                          const char *qualifier)
{
    return (struct hg_deletion){
        .kind = kind, .family = hg_span_str(family), .qualifier = hg_span_str(qualifier)};
}

static inline struct hg_deletion deletion_at(enum hg_deletion_kind kind, const char *family,
                                             const char *qualifier, int64_t at_ms)
{
    struct hg_deletion one = deletion(kind, family, qualifier);
    one.dated = true;
    one.at_ms = at_ms;
    return one;
}

static inline uint16_t rig_delete(struct rig *rig, struct hg_deletion *list, size_t count)
{
    struct hg_hbase_item item = {
        .op = HG_OP_HBASE_DELETE, .deletions = list, .deletion_count = count};
    return rig_apply(rig, &item);
}

static inline uint16_t rig_increment(struct rig *rig, const char *family, const char *qualifier,
                                     int64_t amount)
{
    struct hg_counter_add add = {hg_span_str(family), hg_span_str(qualifier), amount};
    struct hg_hbase_item item = {.op = HG_OP_HBASE_INCREMENT, .counters = &add, .counter_count = 1};
    return rig_apply(rig, &item);
}

static inline int64_t counter_of(const struct hg_cell *cell)
{
    assert_int_equal(cell->value.len, 8);
    return (int64_t)hg_get_u64(cell->value.at);
}

static inline bool text_has(struct hg_span text, const char *wanted)
{
    return memmem(text.at, text.len, wanted, strlen(wanted)) != NULL;
}

#endif
