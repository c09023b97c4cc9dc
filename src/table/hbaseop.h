// hbaseop - HBase operations on one row, as a pure function
// SPDX-License-Identifier: BSD-3-Clause
//
//   (row or none, operation, families, now) -> (keep | store | remove, row, result)
//
// A delete removes cells and leaves no mark: a later put with an older timestamp is visible. Cells
// past their family's time to live, and versions beyond its number, are never seen and are dropped
// when the row is written. A row without cells does not exist.
#ifndef HG_TABLE_HBASEOP_H
#define HG_TABLE_HBASEOP_H

#include "table/filter.h"
#include "table/outcome.h"

/* Attributes of a family of the table at hand; a family that is not listed has no time to live and
   keeps HG_FAMILY_VERSIONS. */
struct hg_family {
    struct hg_span name;
    uint64_t ttl_ms;       /* 0: for ever */
    uint32_t max_versions; /* at least 1 */
};
struct hg_families {
    const struct hg_family *list;
    size_t count;
};
#define HG_FAMILY_VERSIONS 1

/* `old` is NULL or a row of HBase. Statuses: 0x06 INCREMENT of a value that is not 8 bytes, 0x04
   what the operation cannot be given; then nothing is done, nothing by halves. Affected: cells put
   (of several with the same name, one) or deleted; 1 or 0 of CHECK_AND_x. Result cells: of GET; of
   APPEND and INCREMENT the new versions, in the order of a row. */
void hg_hbaseop_apply(const struct hg_row *old, const struct hg_hbase_item *item,
                      const struct hg_families *families, int64_t now_ms, struct hg_arena *arena,
                      struct hg_row_outcome *ret);

/* The cells of a row that a read returns, in order; false: none, the row is not part of it. The
   time range comes first, then the filter, then the read's number of versions. `row_key` is the
   filter's; all of it is put to the row here. */
bool hg_hbaseop_read(const struct hg_row *row, struct hg_span row_key,
                     const struct hg_hbase_read *read, const struct hg_families *families,
                     int64_t now_ms, struct hg_filter_state *state, struct hg_arena *arena,
                     struct hg_cells *ret, bool *ret_memory);

/* When the last cell of the row will be past its time to live, in ms since 1970; 0: never. */
int64_t hg_hbaseop_expiry(const struct hg_row *row, const struct hg_families *families);

#endif
