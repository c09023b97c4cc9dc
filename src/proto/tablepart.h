// tablepart - the parts of TableAPI and HBase requests, checked one by one
// SPDX-License-Identifier: BSD-3-Clause
//
// Each function turns a generated struct into ours, or says what is wrong with it: it returns
// false, and the decode in progress has the status and the text. The first fault is the one that
// is told. Used by tablemsg*.c only. Pure.
#ifndef HG_PROTO_TABLEPART_H
#define HG_PROTO_TABLEPART_H

#include "proto/tablepb.h"

/* A decode in progress. */
struct hg_tablepart {
    struct hg_arena *arena;
    enum hg_api api;
    struct hg_span table;
    uint16_t status; /* of the first fault */
    const char *why;
};

/* Both return false. `why` is static or lies in the arena. */
bool hg_tablepart_refuse(struct hg_tablepart *part, const char *why);
bool hg_tablepart_short(struct hg_tablepart *part); /* the arena is out of memory */

/* A field of a request, of the two APIs and their items: 1 << one of them. */
enum hg_tablefield {
    HG_TABLEFIELD_ENTITY,
    HG_TABLEFIELD_SELECT,
    HG_TABLEFIELD_RETURN_ENTITY,
    HG_TABLEFIELD_QUERY,
    HG_TABLEFIELD_ITEMS,
    HG_TABLEFIELD_ATOMIC,
    HG_TABLEFIELD_SESSION,
    HG_TABLEFIELD_CELLS,
    HG_TABLEFIELD_COUNTERS,
    HG_TABLEFIELD_DELETIONS,
    HG_TABLEFIELD_READ,
    HG_TABLEFIELD_SCAN,
    HG_TABLEFIELD_CHECK,
};

/* The fields that the operation takes. */
unsigned hg_tablefields_of(enum hg_op op);
/* Is there a row key in the request's key? */
bool hg_tablefields_row(enum hg_op op);
/* Refuses a field that is there although the operation does not take it. */
bool hg_tablepart_fields(struct hg_tablepart *part, enum hg_op op, unsigned present);

/* The row of an item: 1 byte or more, and not too long with the table's name. */
bool hg_tablepart_row(struct hg_tablepart *part, ProtobufCBinaryData bytes, struct hg_span *ret);
/* An end of a range: it may be empty. */
bool hg_tablepart_bound(struct hg_tablepart *part, ProtobufCBinaryData bytes, struct hg_span *ret);
/* Names of `least` to HG_TABLE_COLUMN_MAX bytes, sorted and each once; `why` if one is not such. */
bool hg_tablepart_names(struct hg_tablepart *part, size_t count, const ProtobufCBinaryData *list,
                        size_t least, const char *why, struct hg_names *ret);
bool hg_tablepart_entity(struct hg_tablepart *part, const HG_PB(Entity) * entity,
                         struct hg_entity *ret);
bool hg_tablepart_filter(struct hg_tablepart *part, const HG_PB(Filter) * filter,
                         struct hg_filter *ret);

bool hg_tablepart_cells(struct hg_tablepart *part, size_t count, HG_PB(Cell) * *list,
                        struct hg_cells *ret);
bool hg_tablepart_counters(struct hg_tablepart *part, size_t count, HG_PB(Counter) * *list,
                           struct hg_hbase_item *ret);
/* None: one that takes the whole row. */
bool hg_tablepart_deletions(struct hg_tablepart *part, size_t count, HG_PB(Deletion) * *list,
                            struct hg_hbase_item *ret);
/* Absent: everything, one version of each. */
bool hg_tablepart_read(struct hg_tablepart *part, const HG_PB(Read) * read,
                       struct hg_hbase_read *ret);
bool hg_tablepart_scan(struct hg_tablepart *part, const HG_PB(Scan) * scan,
                       struct hg_hbase_scan *ret);
bool hg_tablepart_check(struct hg_tablepart *part, const HG_PB(Check) * check,
                        struct hg_hbase_check *ret);

/* The bodies of the two APIs, into *ret, whose op, api and table are set. */
bool hg_tablepart_table(struct hg_tablepart *part, struct hg_span row, struct hg_span body,
                        struct hg_tablemsg *ret);
bool hg_tablepart_hbase(struct hg_tablepart *part, struct hg_span row, struct hg_span body,
                        struct hg_tablemsg *ret);
/* Puts "items[INDEX]: " in front of the text of the fault. False. */
bool hg_tablepart_in_item(struct hg_tablepart *part, size_t index);

#endif
