// tables - a worker's part of table requests: its rows, and states kept for reuse
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_FRONT_TABLES_H
#define HG_FRONT_TABLES_H

#include "back/rows.h"
#include "base/slab.h"

/* table_pool.c's. */
struct hg_tables {
    struct hg_rows *rows;
    struct hg_rows_counters row_counters;
    struct hg_slab guards; /* struct hg_guard: classic operations on what may be a row's key */
    struct hg_list spare_tables; /* kept for reuse, with the first block of their arenas */
    struct hg_list spare_slots;
    unsigned spare_table_count, spare_slot_count;
    unsigned live;         /* requests that have one now */
    struct hg_list ranges; /* ranges whose next part is to be read */
    struct hg_list items;  /* items of batches that waited for a ticket and have their turn */
    uint64_t wall_turn;    /* the turn of `wall_ms` */
    int64_t wall_ms;
};

#endif
