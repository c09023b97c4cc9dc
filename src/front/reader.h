// reader - one pass over the rows of a query or a scan, page by page
// SPDX-License-Identifier: BSD-3-Clause
//
//   bounds ─► the store reads a stretch of keys ─► take (each item) ─► page ─► reply
//      ▲                                             │ page full
//      └───────────── position ◄─────────────────────┘ next page: bounds again
//
// A reader remembers where it is: the last row that it looked at, what is left of limit and offset,
// what its filter has counted, and within a wide row the last cell. Rows that change while it reads
// are seen as they are when it comes to them. No thread of its own; plain memory.
#ifndef HG_FRONT_READER_H
#define HG_FRONT_READER_H

#include "back/store.h"
#include "table/filter.h"
#include "table/hbaseop.h"

#define HG_READER_KEY_BYTES (HG_TABLE_KEY_MAX + 3)

struct hg_reader {
    const struct hg_tablemsg *msg; /* QUERY, QUERY_START or SCAN */
    struct hg_filter_state filter;
    uint32_t rows_left; /* of the limit, if there is one */
    uint32_t offset_left;
    bool done;   /* limit reached, or nothing behind can pass */
    bool begun;  /* `last` is the last row that was looked at */
    bool inside; /* of which cells are still to come, behind `family`, `qualifier`, `at_ms` */
    uint16_t last_len;
    uint8_t family_len, qualifier_len;
    int64_t at_ms;
    uint8_t last[HG_TABLE_KEY_MAX];
    uint8_t family[HG_TABLE_COLUMN_MAX], qualifier[HG_TABLE_COLUMN_MAX];
};

/* Where the rows of one reply are collected. */
struct hg_page {
    struct hg_arena *arena;   /* rows are copied here */
    struct hg_arena *scratch; /* reset for each row */
    struct hg_found_row *rows;
    size_t count, room;
    size_t rows_max;         /* 0: no limit */
    size_t bytes, bytes_max; /* about what the encoded rows take */
    const struct hg_families *families;
    int64_t now_ms;
    uint64_t read_bytes; /* of keys and documents that were looked at */
    uint16_t status;     /* other than 0: it failed, `text` says how */
    const char *text;
};

/* False: a bound is longer than a row key can be. */
HG_MUST_USE bool hg_reader_init(struct hg_reader *reader, const struct hg_tablemsg *msg);

/* The stretch of stored keys that is still to be read. False: nothing is left. */
HG_MUST_USE bool hg_reader_bounds(const struct hg_reader *reader, uint8_t from[HG_READER_KEY_BYTES],
                                  uint8_t to[HG_READER_KEY_BYTES], struct hg_span *ret_from,
                                  struct hg_span *ret_to);
bool hg_reader_reversed(const struct hg_reader *reader);

/* Looks at an item of that stretch. False: enough for this page, or failed (page->status). */
HG_MUST_USE bool hg_reader_take(struct hg_reader *reader, const struct hg_range_item *item,
                                struct hg_page *page);

/* The store has looked at all up to this key: goes on behind it. */
void hg_reader_pass(struct hg_reader *reader, struct hg_span key);

/* About what these take in an encoded reply. */
size_t hg_entity_bytes(const struct hg_entity *entity);
size_t hg_cells_bytes(const struct hg_cell *cells, size_t count);
/* Deep copies; false when memory is out. */
HG_MUST_USE bool hg_entity_copy(struct hg_arena *arena, const struct hg_entity *from,
                                struct hg_entity *ret);
HG_MUST_USE bool hg_cells_copy(struct hg_arena *arena, const struct hg_cell *cells, size_t count,
                               struct hg_cells *ret);

#endif
