// tablepart_cells - what HBase requests are made of: cells, counters, deletions, reads, checks
// SPDX-License-Identifier: BSD-3-Clause
#include <stdlib.h>

#include "proto/tablepart.h"

/* HBase's LATEST_TIMESTAMP: no timestamp, spelt out. */
#define LATEST INT64_MAX

static bool timestamp(struct hg_tablepart *part, bool given, int64_t at_ms, int64_t *ret_ms,
                      bool *ret_dated)
{
    *ret_dated = given && at_ms != LATEST;
    *ret_ms = *ret_dated ? at_ms : 0;
    return *ret_ms >= 0 ||
           hg_tablepart_refuse(part, "'timestamp' is negative: it is in milliseconds since 1970");
}

static bool family_of(struct hg_tablepart *part, ProtobufCBinaryData bytes, struct hg_span *ret)
{
    *ret = hg_tablepb_span(bytes);
    return hg_tablemsg_family_right(*ret) ||
           hg_tablepart_refuse(part, "'family' has 1 to 250 bytes, none of them zero or a colon");
}

static bool column_of(struct hg_tablepart *part, ProtobufCBinaryData family,
                      ProtobufCBinaryData qualifier, struct hg_span *ret_family,
                      struct hg_span *ret_qualifier)
{
    if (!family_of(part, family, ret_family))
        return false;
    *ret_qualifier = hg_tablepb_span(qualifier);
    return qualifier.len <= HG_TABLE_COLUMN_MAX ||
           hg_tablepart_refuse(part, "'qualifier' has at most 250 bytes");
}

bool hg_tablepart_cells(struct hg_tablepart *part, size_t count, HG_PB(Cell) * *list,
                        struct hg_cells *ret)
{
    struct hg_cell *cells = hg_arena_array(part->arena, count, sizeof *cells);
    if (cells == NULL)
        return hg_tablepart_short(part);
    for (size_t i = 0; i < count; i++) {
        const HG_PB(Cell) *cell = list[i];
        bool given = cell->at_case == HEADGATE__TABLE__V1__CELL__AT_TIMESTAMP;
        if (!column_of(part, cell->family, cell->qualifier, &cells[i].family,
                       &cells[i].qualifier) ||
            !timestamp(part, given, cell->timestamp, &cells[i].at_ms, &cells[i].dated))
            return false;
        cells[i].value = hg_tablepb_span(cell->value);
    }
    *ret = (struct hg_cells){cells, count};
    return true;
}

bool hg_tablepart_counters(struct hg_tablepart *part, size_t count, HG_PB(Counter) * *list,
                           struct hg_hbase_item *ret)
{
    struct hg_counter_add *counters = hg_arena_array(part->arena, count, sizeof *counters);
    if (counters == NULL)
        return hg_tablepart_short(part);
    for (size_t i = 0; i < count; i++) {
        if (!column_of(part, list[i]->family, list[i]->qualifier, &counters[i].family,
                       &counters[i].qualifier))
            return false;
        counters[i].amount = list[i]->amount;
    }
    ret->counters = counters;
    ret->counter_count = count;
    return true;
}

static bool deletion(struct hg_tablepart *part, const HG_PB(Deletion) * from,
                     struct hg_deletion *ret)
{
    if ((unsigned)from->kind > HG_DELETION_VERSION)
        return hg_tablepart_refuse(part, "the kind of a deletion is 0 (ROW) to 4 (VERSION)");
    ret->kind = (enum hg_deletion_kind)from->kind;
    if (ret->kind == HG_DELETION_ROW && from->family.len > 0)
        return hg_tablepart_refuse(part, "a deletion of the kind ROW takes no 'family'");
    if (ret->kind <= HG_DELETION_FAMILY && from->qualifier.len > 0)
        return hg_tablepart_refuse(
            part, "a deletion takes a 'qualifier' when it is of the kind COLUMNS, COLUMN or "
                  "VERSION only");
    ret->family = ret->qualifier = HG_SPAN_LIT("");
    if (ret->kind != HG_DELETION_ROW &&
        !column_of(part, from->family, from->qualifier, &ret->family, &ret->qualifier))
        return false;
    if (!timestamp(part, from->at_case == HEADGATE__TABLE__V1__DELETION__AT_TIMESTAMP,
                   from->timestamp, &ret->at_ms, &ret->dated))
        return false;
    return ret->kind != HG_DELETION_VERSION || ret->dated ||
           hg_tablepart_refuse(part, "a deletion of the kind VERSION needs a 'timestamp'");
}

bool hg_tablepart_deletions(struct hg_tablepart *part, size_t count, HG_PB(Deletion) * *list,
                            struct hg_hbase_item *ret)
{
    size_t room = count > 0 ? count : 1;
    struct hg_deletion *deletions = hg_arena_array(part->arena, room, sizeof *deletions);
    if (deletions == NULL)
        return hg_tablepart_short(part);
    for (size_t i = 0; i < count; i++)
        if (!deletion(part, list[i], &deletions[i]))
            return false;
    if (count == 0)
        deletions[0] = (struct hg_deletion){
            .kind = HG_DELETION_ROW, .family = HG_SPAN_LIT(""), .qualifier = HG_SPAN_LIT("")};
    ret->deletions = deletions;
    ret->deletion_count = room;
    return true;
}

static int compare_families(const void *a, const void *b)
{
    return hg_tablepb_order(((const struct hg_family_columns *)a)->family,
                            ((const struct hg_family_columns *)b)->family);
}

static bool families(struct hg_tablepart *part, const HG_PB(Read) * read, struct hg_hbase_read *ret)
{
    if (read->n_columns > HG_TABLE_NAMES_MAX)
        return hg_tablepart_refuse(part, "'read' names more than 1000 families");
    struct hg_family_columns *list = hg_arena_array(part->arena, read->n_columns, sizeof *list);
    if (list == NULL)
        return hg_tablepart_short(part);
    for (size_t i = 0; i < read->n_columns; i++) {
        const HG_PB(FamilyColumns) *from = read->columns[i];
        if (!family_of(part, from->family, &list[i].family) ||
            !hg_tablepart_names(part, from->n_qualifiers, from->qualifiers, 0,
                                "'qualifiers' of 'read' have at most 250 bytes each",
                                &list[i].qualifiers))
            return false;
    }
    qsort(list, read->n_columns, sizeof *list, compare_families);
    for (size_t i = 1; i < read->n_columns; i++)
        if (compare_families(&list[i - 1], &list[i]) == 0)
            return hg_tablepart_refuse(part, "'read' names a family twice: give its qualifiers "
                                             "in one list");
    ret->columns = list;
    ret->column_count = read->n_columns;
    return true;
}

bool hg_tablepart_read(struct hg_tablepart *part, const HG_PB(Read) * read,
                       struct hg_hbase_read *ret)
{
    *ret = (struct hg_hbase_read){.min_ms = INT64_MIN, .max_ms = INT64_MAX, .max_versions = 1};
    if (read == NULL)
        return true;
    if (read->lower_case == HEADGATE__TABLE__V1__READ__LOWER_MIN_TIMESTAMP)
        ret->min_ms = read->min_timestamp;
    if (read->upper_case == HEADGATE__TABLE__V1__READ__UPPER_MAX_TIMESTAMP)
        ret->max_ms = read->max_timestamp;
    if (ret->min_ms > ret->max_ms)
        return hg_tablepart_refuse(part, "'min_timestamp' is greater than 'max_timestamp'");
    if (read->max_versions > 0)
        ret->max_versions = read->max_versions;
    return families(part, read, ret) && hg_tablepart_filter(part, read->filter, &ret->filter);
}

bool hg_tablepart_scan(struct hg_tablepart *part, const HG_PB(Scan) * scan,
                       struct hg_hbase_scan *ret)
{
    *ret = (struct hg_hbase_scan){
        .start = HG_SPAN_LIT(""), .stop = HG_SPAN_LIT(""), .caching = HG_TABLE_ROWS};
    if (scan == NULL)
        return true;
    if (!hg_tablepart_bound(part, scan->start, &ret->start) ||
        !hg_tablepart_bound(part, scan->stop, &ret->stop))
        return false;
    ret->start_exclusive = scan->start_exclusive;
    ret->stop_inclusive = scan->stop_inclusive;
    ret->reversed = scan->reversed;
    ret->limit = scan->limit;
    ret->batch = scan->batch;
    if (scan->caching > 0)
        ret->caching = scan->caching < HG_TABLE_ROWS_MAX ? scan->caching : HG_TABLE_ROWS_MAX;
    return true;
}

bool hg_tablepart_check(struct hg_tablepart *part, const HG_PB(Check) * check,
                        struct hg_hbase_check *ret)
{
    if (check == NULL)
        return hg_tablepart_refuse(part, "'check' is missing: it says what the column must be "
                                         "like");
    if ((unsigned)check->op > HG_GREATER_EQUAL)
        return hg_tablepart_refuse(part, "'op' of 'check' is 0 (EQUAL) to 5 (GREATER_OR_EQUAL)");
    ret->op = (enum hg_operator)check->op;
    ret->has_value = check->expected_case == HEADGATE__TABLE__V1__CHECK__EXPECTED_VALUE;
    ret->value = HG_SPAN_LIT("");
    if (ret->has_value)
        ret->value = hg_tablepb_span(check->value);
    else if (ret->op > HG_NOT_EQUAL)
        return hg_tablepart_refuse(part, "'check' without a 'value' takes EQUAL (the column is "
                                         "absent) or NOT_EQUAL (it is present)");
    return column_of(part, check->family, check->qualifier, &ret->family, &ret->qualifier);
}
