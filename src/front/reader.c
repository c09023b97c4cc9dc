// reader - one pass over the rows of a query or a scan, page by page
// SPDX-License-Identifier: BSD-3-Clause
#include "front/reader.h"

#include <string.h>

#include "proto/status.h"
#include "table/tableop.h"

#define ROW_BYTES   32 /* of a row or value in a reply, beside its bytes */
#define VALUE_BYTES 24

/* ---- copies ---- */

size_t hg_entity_bytes(const struct hg_entity *entity)
{
    size_t bytes = 0;
    for (size_t i = 0; i < entity->count; i++) {
        const struct hg_column *column = &entity->columns[i];
        bytes += column->name.len + VALUE_BYTES;
        if (column->value.kind == HG_VALUE_BYTES)
            bytes += column->value.bytes.len;
    }
    return bytes;
}

size_t hg_cells_bytes(const struct hg_cell *cells, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += cells[i].family.len + cells[i].qualifier.len + cells[i].value.len + VALUE_BYTES;
    return bytes;
}

static bool copy(struct hg_arena *arena, struct hg_span *span)
{
    *span = hg_arena_copy(arena, *span);
    return span->at != NULL;
}

bool hg_entity_copy(struct hg_arena *arena, const struct hg_entity *from, struct hg_entity *ret)
{
    struct hg_column *columns = hg_arena_array(arena, from->count, sizeof *columns);
    if (columns == NULL)
        return false;
    for (size_t i = 0; i < from->count; i++) {
        columns[i] = from->columns[i];
        if (!copy(arena, &columns[i].name))
            return false;
        if (columns[i].value.kind == HG_VALUE_BYTES && !copy(arena, &columns[i].value.bytes))
            return false;
    }
    *ret = (struct hg_entity){columns, from->count};
    return true;
}

bool hg_cells_copy(struct hg_arena *arena, const struct hg_cell *cells, size_t count,
                   struct hg_cells *ret)
{
    struct hg_cell *list = hg_arena_array(arena, count, sizeof *list);
    if (list == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        list[i] = cells[i];
        if (!copy(arena, &list[i].family) || !copy(arena, &list[i].qualifier) ||
            !copy(arena, &list[i].value))
            return false;
    }
    *ret = (struct hg_cells){list, count};
    return true;
}

/* ---- where it is ---- */

struct bounds {
    struct hg_span low, high; /* empty: none */
    bool low_exclusive, high_exclusive;
};

static struct bounds bounds_of(const struct hg_tablemsg *msg)
{
    const struct hg_range *range = &msg->query.range;
    const struct hg_hbase_scan *scan = &msg->scan;
    if (msg->api == HG_API_TABLE)
        return (struct bounds){range->start, range->end, range->start_exclusive,
                               range->end_exclusive};
    if (scan->reversed)
        return (struct bounds){scan->stop, scan->start, !scan->stop_inclusive,
                               scan->start_exclusive};
    return (struct bounds){scan->start, scan->stop, scan->start_exclusive, !scan->stop_inclusive};
}

bool hg_reader_reversed(const struct hg_reader *reader)
{
    const struct hg_tablemsg *msg = reader->msg;
    return msg->api == HG_API_TABLE ? msg->query.reverse : msg->scan.reversed;
}

static uint32_t limit_of(const struct hg_tablemsg *msg)
{
    return msg->api == HG_API_TABLE ? msg->query.limit : msg->scan.limit;
}

static const struct hg_filter *filter_of(const struct hg_tablemsg *msg)
{
    return msg->api == HG_API_TABLE ? &msg->query.filter : &msg->read.filter;
}

bool hg_reader_init(struct hg_reader *reader, const struct hg_tablemsg *msg)
{
    struct bounds bounds = bounds_of(msg);
    size_t most = HG_TABLE_KEY_MAX - msg->table.len;
    memset(reader, 0, offsetof(struct hg_reader, last));
    reader->msg = msg;
    reader->rows_left = limit_of(msg);
    reader->offset_left = msg->api == HG_API_TABLE ? msg->query.offset : 0;
    return bounds.low.len <= most && bounds.high.len <= most;
}

/* The stored key of a row, or the next one after it. */
static struct hg_span key_at(uint8_t out[HG_READER_KEY_BYTES], struct hg_span table,
                             struct hg_span row, bool next)
{
    size_t len = hg_rowdoc_key(out, table, row);
    if (next)
        out[len++] = 0;
    return hg_span(out, len);
}

bool hg_reader_bounds(const struct hg_reader *reader, uint8_t from[HG_READER_KEY_BYTES],
                      uint8_t to[HG_READER_KEY_BYTES], struct hg_span *ret_from,
                      struct hg_span *ret_to)
{
    struct hg_span table = reader->msg->table;
    struct bounds bounds = bounds_of(reader->msg);
    struct hg_span last = hg_span(reader->last, reader->last_len);
    if (reader->done)
        return false;
    *ret_from = key_at(from, table, bounds.low, bounds.low_exclusive && bounds.low.len > 0);
    if (bounds.high.len > 0) {
        *ret_to = key_at(to, table, bounds.high, !bounds.high_exclusive);
    } else {
        *ret_to = key_at(to, table, HG_SPAN_NONE, false);
        to[table.len] = 1; /* behind every row of the table, before any other table's */
    }
    if (reader->begun && hg_reader_reversed(reader))
        *ret_to = key_at(to, table, last, reader->inside);
    else if (reader->begun)
        *ret_from = key_at(from, table, last, !reader->inside);
    return hg_filter_compare_bytes(*ret_from, *ret_to) < 0;
}

/* ---- one row ---- */

static bool fail(struct hg_page *page, uint16_t status, const char *text)
{
    page->status = status;
    page->text = text;
    return false;
}

static bool fail_memory(struct hg_page *page)
{
    return fail(page, HG_STATUS_ENOMEM, "the rows found take more memory than a request may have");
}

/* A further row of the page; its columns or cells are the caller's to copy. NULL: no memory. */
static struct hg_found_row *add_row(struct hg_page *page, struct hg_span row_key, size_t bytes)
{
    if (page->count == page->room) {
        size_t room = page->room > 0 ? page->room * 2 : 16;
        struct hg_found_row *rows = hg_arena_array(page->arena, room, sizeof *rows);
        if (rows == NULL)
            return NULL;
        if (page->count > 0)
            memcpy(rows, page->rows, page->count * sizeof *rows);
        page->rows = rows;
        page->room = room;
    }
    struct hg_found_row *row = &page->rows[page->count];
    memset(row, 0, sizeof *row);
    row->row = hg_arena_copy(page->arena, row_key);
    if (row->row.at == NULL)
        return NULL;
    page->count++;
    page->bytes += bytes + row_key.len + ROW_BYTES;
    return row;
}

static bool full(const struct hg_page *page)
{
    return page->rows_max > 0 && page->count >= page->rows_max;
}

/* Would so many bytes more be too many? A page has one row at least. */
static bool over(const struct hg_page *page, size_t bytes)
{
    return page->count > 0 && page->bytes + bytes + ROW_BYTES > page->bytes_max;
}

static void count_row(struct hg_reader *reader)
{
    if (limit_of(reader->msg) > 0 && --reader->rows_left == 0)
        reader->done = true;
}

static bool take_entity(struct hg_reader *reader, const struct hg_row *row, struct hg_span row_key,
                        struct hg_page *page)
{
    struct hg_found_row found;
    bool memory = false;
    bool passes = hg_tableop_read(row, row_key, &reader->msg->query, &reader->filter, page->scratch,
                                  &found, &memory);
    if (memory)
        return fail_memory(page);
    if (!passes)
        return true;
    if (reader->offset_left > 0) {
        reader->offset_left--;
        return true;
    }
    struct hg_found_row *to = add_row(page, row_key, hg_entity_bytes(&found.entity));
    if (to == NULL || !hg_entity_copy(page->arena, &found.entity, &to->entity))
        return fail_memory(page);
    count_row(reader);
    return true;
}

static int compare_cell(const struct hg_reader *reader, const struct hg_cell *cell)
{
    int order = hg_filter_compare_bytes(cell->family, hg_span(reader->family, reader->family_len));
    if (order == 0)
        order = hg_filter_compare_bytes(cell->qualifier,
                                        hg_span(reader->qualifier, reader->qualifier_len));
    if (order == 0)
        order = cell->at_ms > reader->at_ms ? -1 : cell->at_ms < reader->at_ms;
    return order;
}

static void stay_behind(struct hg_reader *reader, const struct hg_cell *cell)
{
    reader->inside = true;
    reader->family_len = (uint8_t)cell->family.len;
    reader->qualifier_len = (uint8_t)cell->qualifier.len;
    if (cell->family.len > 0)
        memcpy(reader->family, cell->family.at, cell->family.len);
    if (cell->qualifier.len > 0)
        memcpy(reader->qualifier, cell->qualifier.at, cell->qualifier.len);
    reader->at_ms = cell->at_ms;
}

/* The cells of a row in parts, from `at` on. False: the page is full, or it failed. */
static bool take_parts(struct hg_reader *reader, const struct hg_cells *cells, size_t at,
                       struct hg_span row_key, struct hg_page *page)
{
    size_t batch = reader->msg->scan.batch;
    while (at < cells->count) {
        size_t n = cells->count - at;
        if (batch > 0 && n > batch)
            n = batch;
        size_t bytes = hg_cells_bytes(cells->list + at, n);
        if (at > 0 && (full(page) || over(page, bytes))) {
            stay_behind(reader, &cells->list[at - 1]);
            return false;
        }
        struct hg_found_row *to = add_row(page, row_key, bytes);
        if (to == NULL || !hg_cells_copy(page->arena, cells->list + at, n, &to->cells))
            return fail_memory(page);
        at += n;
        to->partial = at < cells->count;
    }
    return true;
}

static bool take_cells(struct hg_reader *reader, const struct hg_row *row, struct hg_span row_key,
                       bool goes_on, struct hg_page *page)
{
    struct hg_filter_state before = reader->filter;
    struct hg_cells cells;
    bool memory = false;
    bool passes = hg_hbaseop_read(row, row_key, &reader->msg->read, page->families, page->now_ms,
                                  &reader->filter, page->scratch, &cells, &memory);
    if (memory)
        return fail_memory(page);
    if (!passes)
        return true;
    size_t at = 0;
    while (goes_on && at < cells.count && compare_cell(reader, &cells.list[at]) <= 0)
        at++;
    if (!take_parts(reader, &cells, at, row_key, page)) {
        reader->filter = before; /* the row will be counted again */
        return false;
    }
    count_row(reader);
    return true;
}

/* False: failed, or the row is not done with. */
static bool take_row(struct hg_reader *reader, const struct hg_range_item *item,
                     struct hg_span row_key, bool goes_on, struct hg_page *page)
{
    struct hg_row row;
    if (!hg_rowdoc_is(item->item_flags, item->value) ||
        !hg_filter_row_key(filter_of(reader->msg), &reader->filter, row_key))
        return true;
    hg_arena_reset(page->scratch);
    uint16_t status = hg_rowdoc_decode(item->value, page->scratch, &row);
    if (status == HG_STATUS_ENOMEM)
        return fail_memory(page);
    if (status != HG_STATUS_SUCCESS)
        return fail(page, status, "a row of the range is damaged");
    if (row.api != reader->msg->api)
        return fail(page, HG_STATUS_NOT_SUPPORTED,
                    reader->msg->api == HG_API_TABLE ? "the range holds rows of HBase"
                                                     : "the range holds rows of TableAPI");
    return row.api == HG_API_TABLE ? take_entity(reader, &row, row_key, page)
                                   : take_cells(reader, &row, row_key, goes_on, page);
}

static void set_last(struct hg_reader *reader, struct hg_span row_key)
{
    reader->inside = false;
    reader->begun = true;
    reader->last_len = (uint16_t)row_key.len;
    if (row_key.len > 0)
        memcpy(reader->last, row_key.at, row_key.len);
}

void hg_reader_pass(struct hg_reader *reader, struct hg_span key)
{
    size_t head = reader->msg->table.len + 1;
    if (key.len >= head && key.len - head <= sizeof reader->last)
        set_last(reader, hg_span(key.at + head, key.len - head));
}

bool hg_reader_take(struct hg_reader *reader, const struct hg_range_item *item,
                    struct hg_page *page)
{
    size_t head = reader->msg->table.len + 1;
    if (item->key.len < head || item->key.len - head > sizeof reader->last)
        return true; /* no row has such a key */
    struct hg_span row_key = hg_span(item->key.at + head, item->key.len - head);
    if (full(page) || over(page, row_key.len + item->value.len))
        return false;
    bool goes_on =
        reader->inside && hg_span_equal(row_key, hg_span(reader->last, reader->last_len));
    page->read_bytes += item->key.len + item->value.len;
    set_last(reader, row_key);
    if (!take_row(reader, item, row_key, goes_on, page))
        return false;
    if (hg_filter_done(filter_of(reader->msg), &reader->filter, row_key,
                       hg_reader_reversed(reader)))
        reader->done = true;
    return !reader->done && !full(page);
}
