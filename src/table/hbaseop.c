// hbaseop - HBase operations on one row, as a pure function
// SPDX-License-Identifier: BSD-3-Clause
//
//   old row ── without dead cells ──► live ── merge or remove ──► without dead cells ──► new row
//
// Whose behaviour it is, Apache HBase's (2.5) or that of OBKV, OceanBase's HBase mode:
//   both    a cell is named by family, qualifier and timestamp, and a put overwrites; INT64_MAX as
//           a timestamp means "latest"; a check without a value holds for a column that is absent
//           or whose newest value is empty; a new version of APPEND and INCREMENT is put at
//           max(now, newest + 1); counters wrap, and other lengths than 8 bytes are refused
//   Apache  a check with a value fails on an absent column, with NOT_EQUAL too; undated cells of
//           CHECK_AND_PUT are not older than the cell that was checked; n deletions of a newest
//           version delete n
//   OBKV    no tombstones; the same column twice in one INCREMENT is refused (Apache's client keeps
//           the last one), here in one APPEND as well
//   here    an empty value to check for is a value (Apache takes it for none): it equals an empty
//           cell and no absent one; an APPEND takes no timestamp (in Apache it counts where the
//           column is absent)
#include "table/hbaseop.h"

#include <stdio.h>

#include "base/bytes.h"
#include "proto/status.h"
#include "table/hbasecells.h"
#include "table/hbasetargets.h"

#define COUNTER_BYTES 8

/* One application; its steps answer with a status, and leave a text with one that is not 0. */
struct work {
    const struct hg_hbase_item *item;
    const struct hg_families *families;
    int64_t now_ms;
    struct hg_arena *arena;
    bool had_row;
    bool is_hollow;       /* it had no cells: it was damaged, and is deleted */
    struct hg_cells live; /* cells of the old row */
    struct hg_row_outcome *ret;
};

static uint16_t refuse(struct work *work, uint16_t status, const char *text)
{
    work->ret->result.text = hg_span_str(text);
    return status;
}

static uint16_t no_memory(struct work *work)
{
    return refuse(work, HG_STATUS_ENOMEM, "no memory left for this request");
}

static size_t print_hex(char *at, size_t len, uint8_t c)
{
    static const char digits[] = "0123456789abcdef";
    at[len++] = '\\';
    at[len++] = 'x';
    at[len++] = digits[c >> 4];
    at[len++] = digits[c & 15];
    return len;
}

static size_t print_name(char *at, struct hg_span name)
{
    size_t len = 0;
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.at[i];
        if (c >= 0x20 && c < 0x7f && c != '\'' && c != '\\')
            at[len++] = (char)c;
        else
            len = print_hex(at, len, c);
    }
    return len;
}

/* "before 'family:qualifier' after", names printable. */
static uint16_t refuse_column(struct work *work, uint16_t status, const struct hg_cell *cell,
                              const char *before, const char *after)
{
    size_t room = strlen(before) + strlen(after) + 4 * (cell->family.len + cell->qualifier.len) + 8;
    char *text = hg_arena_take(work->arena, room);
    if (text == NULL)
        return no_memory(work);
    size_t len = (size_t)snprintf(text, room, "%s '", before);
    len += print_name(text + len, cell->family);
    text[len++] = ':';
    len += print_name(text + len, cell->qualifier);
    len += (size_t)snprintf(text + len, room - len, "' %s", after);
    work->ret->result.text = hg_span(text, len);
    return status;
}

static uint16_t affected(size_t count)
{
    return count < UINT16_MAX ? (uint16_t)count : UINT16_MAX;
}

/* The row becomes these cells, as far as they are alive. */
static uint16_t store(struct work *work, const struct hg_cells *cells)
{
    struct hg_row_outcome *ret = work->ret;
    ret->row.api = HG_API_HBASE;
    if (!hg_hbasecells_live(cells, work->families, work->now_ms, work->arena, &ret->row.cells))
        return no_memory(work);
    if (ret->row.cells.count > 0)
        ret->act = HG_ROW_STORE;
    else
        ret->act = work->had_row ? HG_ROW_REMOVE : HG_ROW_KEEP;
    return HG_STATUS_SUCCESS;
}

static uint16_t store_with(struct work *work, const struct hg_cells *fresh)
{
    struct hg_cells merged;
    if (!hg_hbasecells_merge(&work->live, fresh, work->arena, &merged))
        return no_memory(work);
    work->ret->result.affected = affected(fresh->count);
    return store(work, &merged);
}

static uint16_t check_cells(struct work *work)
{
    const struct hg_cells *cells = &work->item->cells;
    if (cells->count == 0)
        return refuse(work, HG_STATUS_EINVAL, "no cells to write: at least one is needed");
    for (size_t i = 0; i < cells->count; i++)
        if (cells->list[i].dated && cells->list[i].at_ms < 0)
            return refuse_column(work, HG_STATUS_EINVAL, &cells->list[i], "the timestamp of",
                                 "is negative: 0 or more is accepted");
    return HG_STATUS_SUCCESS;
}

static uint16_t check_deletions(struct work *work)
{
    for (size_t i = 0; i < work->item->deletion_count; i++) {
        const struct hg_deletion *one = &work->item->deletions[i];
        const struct hg_cell column = {.family = one->family, .qualifier = one->qualifier};
        if (one->dated && one->at_ms < 0)
            return refuse_column(work, HG_STATUS_EINVAL, &column, "the timestamp to delete of",
                                 "is negative: 0 or more is accepted");
        if (one->kind == HG_DELETION_VERSION && (!one->dated || one->at_ms == INT64_MAX))
            return refuse_column(work, HG_STATUS_EINVAL, &column, "the version to delete of",
                                 "has no timestamp: name it, or delete the newest as COLUMN");
    }
    return HG_STATUS_SUCCESS;
}

/* Cells without a timestamp get `undated_ms`. */
static uint16_t put(struct work *work, int64_t undated_ms)
{
    struct hg_cells fresh;
    if (!hg_hbasecells_sorted(&work->item->cells, undated_ms, work->arena, &fresh))
        return no_memory(work);
    hg_hbasecells_keep_last(&fresh);
    return store_with(work, &fresh);
}

static uint16_t delete_cells(struct work *work)
{
    const struct hg_deletion whole = {.kind = HG_DELETION_ROW};
    const struct hg_hbase_item *item = work->item;
    struct hg_hbasetargets targets;
    struct hg_cells left = {hg_arena_array(work->arena, work->live.count, sizeof *left.list), 0};
    if (left.list == NULL ||
        !hg_hbasetargets_init(&targets, item->deletion_count > 0 ? item->deletions : &whole,
                              item->deletion_count > 0 ? item->deletion_count : 1, work->arena))
        return no_memory(work);
    for (size_t i = 0; i < work->live.count; i++)
        if (!hg_hbasetargets_hit(&targets, &work->live.list[i]))
            left.list[left.count++] = work->live.list[i];
    if (left.count == work->live.count && !work->is_hollow)
        return HG_STATUS_SUCCESS;
    work->ret->result.affected = affected(work->live.count - left.count);
    return store(work, &left);
}

/* Without a value only absent or present can be asked; Apache takes every other operator then as
   EQUAL, which nobody can mean. */
static uint16_t check_check(struct work *work)
{
    const struct hg_hbase_check *check = &work->item->check;
    if (check->has_value || check->op == HG_EQUAL || check->op == HG_NOT_EQUAL)
        return HG_STATUS_SUCCESS;
    return refuse(work, HG_STATUS_EINVAL,
                  "a check without a value: EQUAL (absent) or NOT_EQUAL (present) is accepted");
}

static bool check_holds(const struct hg_hbase_check *check, const struct hg_cell *newest)
{
    if (!check->has_value) {
        bool is_absent = newest == NULL || newest->value.len == 0;
        return is_absent == (check->op == HG_EQUAL);
    }
    return newest != NULL &&
           hg_filter_holds(check->op, hg_filter_compare_bytes(check->value, newest->value));
}

static uint16_t check_and(struct work *work)
{
    const struct hg_hbase_check *check = &work->item->check;
    bool puts = work->item->op == HG_OP_HBASE_CHECK_AND_PUT;
    uint16_t status = check_check(work);
    if (status == HG_STATUS_SUCCESS)
        status = puts ? check_cells(work) : check_deletions(work);
    if (status != HG_STATUS_SUCCESS)
        return status;
    const struct hg_cell *newest =
        hg_hbasecells_newest(&work->live, check->family, check->qualifier);
    if (!check_holds(check, newest))
        return HG_STATUS_SUCCESS;
    int64_t undated_ms =
        newest != NULL && newest->at_ms > work->now_ms ? newest->at_ms : work->now_ms;
    status = puts ? put(work, undated_ms) : delete_cells(work);
    work->ret->result.processed = true;
    work->ret->result.affected = 1;
    return status;
}

/* The value of a column after an APPEND. */
static uint16_t append_to(struct work *work, const struct hg_cell *old, struct hg_cell *fresh)
{
    size_t len = old->value.len + fresh->value.len;
    uint8_t *value = hg_arena_take(work->arena, len);
    if (value == NULL)
        return no_memory(work);
    if (old->value.len > 0)
        memcpy(value, old->value.at, old->value.len);
    if (fresh->value.len > 0)
        memcpy(value + old->value.len, fresh->value.at, fresh->value.len);
    fresh->value = hg_span(value, len);
    return HG_STATUS_SUCCESS;
}

/* The value of a counter after an INCREMENT; it wraps. */
static uint16_t add_to(struct work *work, const struct hg_cell *old, struct hg_cell *fresh)
{
    if (old->value.len != COUNTER_BYTES) {
        char after[64];
        snprintf(after, sizeof after, "has %zu bytes: a counter has 8", old->value.len);
        return refuse_column(work, HG_STATUS_DELTA_BADVAL, old, "the value of", after);
    }
    uint8_t *value = hg_arena_take(work->arena, COUNTER_BYTES);
    if (value == NULL)
        return no_memory(work);
    hg_put_u64(value, hg_get_u64(old->value.at) + hg_get_u64(fresh->value.at));
    fresh->value = hg_span(value, COUNTER_BYTES);
    return HG_STATUS_SUCCESS;
}

/* Each cell of `fresh`, sorted, becomes a new version of its column, made by `make` of the newest
   one. A version that cannot be newer (its timestamp is at the end of time) replaces it. */
static uint16_t renew(struct work *work, struct hg_cells *fresh,
                      uint16_t (*make)(struct work *, const struct hg_cell *, struct hg_cell *))
{
    for (size_t i = 0; i < fresh->count; i++) {
        struct hg_cell *cell = &fresh->list[i];
        if (i > 0 && hg_hbasecells_order_columns(cell - 1, cell) == 0)
            return refuse_column(work, HG_STATUS_EINVAL, cell, "the column",
                                 "is named twice: once is accepted");
        const struct hg_cell *old =
            hg_hbasecells_newest(&work->live, cell->family, cell->qualifier);
        if (old == NULL)
            continue;
        uint16_t status = make(work, old, cell);
        if (status != HG_STATUS_SUCCESS)
            return status;
        int64_t next_ms = old->at_ms < INT64_MAX - 1 ? old->at_ms + 1 : old->at_ms;
        cell->at_ms = next_ms > work->now_ms ? next_ms : work->now_ms;
    }
    work->ret->result.cells = *fresh;
    return store_with(work, fresh);
}

static uint16_t append(struct work *work)
{
    const struct hg_cells *cells = &work->item->cells;
    struct hg_cells fresh;
    for (size_t i = 0; i < cells->count; i++)
        if (cells->list[i].dated)
            return refuse_column(work, HG_STATUS_EINVAL, &cells->list[i], "the cell to append to",
                                 "has a timestamp: APPEND takes none, the new version is newest");
    if (!hg_hbasecells_sorted(&work->item->cells, work->now_ms, work->arena, &fresh))
        return no_memory(work);
    return renew(work, &fresh, append_to);
}

static uint16_t increment(struct work *work)
{
    size_t count = work->item->counter_count;
    if (count == 0)
        return refuse(work, HG_STATUS_EINVAL, "no counters to add to: at least one is needed");
    struct hg_cells sent = {hg_arena_array(work->arena, count, sizeof *sent.list), count};
    uint8_t *amounts = hg_arena_array(work->arena, count, COUNTER_BYTES);
    struct hg_cells fresh;
    if (sent.list == NULL || amounts == NULL)
        return no_memory(work);
    for (size_t i = 0; i < count; i++) {
        const struct hg_counter_add *add = &work->item->counters[i];
        hg_put_u64(amounts + i * COUNTER_BYTES, (uint64_t)add->amount);
        sent.list[i] = (struct hg_cell){.family = add->family, .qualifier = add->qualifier};
        sent.list[i].value = hg_span(amounts + i * COUNTER_BYTES, COUNTER_BYTES);
    }
    if (!hg_hbasecells_sorted(&sent, work->now_ms, work->arena, &fresh))
        return no_memory(work);
    return renew(work, &fresh, add_to);
}

static uint16_t get(struct work *work, const struct hg_row *old)
{
    struct hg_filter_state state = {0};
    struct hg_cells cells = {0};
    bool memory = false;
    if (old != NULL && hg_hbaseop_read(old, work->item->row, &work->item->read, work->families,
                                       work->now_ms, &state, work->arena, &cells, &memory))
        work->ret->result.cells = cells;
    return memory ? no_memory(work) : HG_STATUS_SUCCESS;
}

static uint16_t apply(struct work *work)
{
    uint16_t status = HG_STATUS_SUCCESS;
    switch ((int)work->item->op) {
    case HG_OP_HBASE_PUT:
        status = check_cells(work);
        return status != HG_STATUS_SUCCESS ? status : put(work, work->now_ms);
    case HG_OP_HBASE_DELETE:
        status = check_deletions(work);
        return status != HG_STATUS_SUCCESS ? status : delete_cells(work);
    case HG_OP_HBASE_CHECK_AND_PUT:
    case HG_OP_HBASE_CHECK_AND_DELETE:
        return check_and(work);
    case HG_OP_HBASE_APPEND:
        status = check_cells(work);
        return status != HG_STATUS_SUCCESS ? status : append(work);
    case HG_OP_HBASE_INCREMENT:
        return increment(work);
    default:
        return refuse(work, HG_STATUS_EINVAL, "not an operation of HBase on one row");
    }
}

void hg_hbaseop_apply(const struct hg_row *old, const struct hg_hbase_item *item,
                      const struct hg_families *families, int64_t now_ms, struct hg_arena *arena,
                      struct hg_row_outcome *ret)
{
    struct work work = {
        .item = item, .families = families, .now_ms = now_ms, .arena = arena, .ret = ret};
    *ret = (struct hg_row_outcome){.act = HG_ROW_KEEP};
    work.had_row = old != NULL;
    work.is_hollow = old != NULL && old->cells.count == 0;
    uint16_t status = HG_STATUS_SUCCESS;
    if (item->op == HG_OP_HBASE_GET)
        status = get(&work, old);
    else if (old != NULL && !hg_hbasecells_live(&old->cells, families, now_ms, arena, &work.live))
        status = no_memory(&work);
    else
        status = apply(&work);
    if (status != HG_STATUS_SUCCESS)
        *ret = (struct hg_row_outcome){.result = {.status = status, .text = ret->result.text}};
}
