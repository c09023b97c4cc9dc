// embedded_put - one record of the embedded store into the writer's transaction, if there is room
// SPDX-License-Identifier: BSD-3-Clause
//
// What the writer does for an operation that stores. Part of it, on its thread; errors are LMDB's.
#ifndef HG_BACK_EMBEDDED_PUT_H
#define HG_BACK_EMBEDDED_PUT_H

#include "back/embedded_writer.h"

/* Puts the record together outside of the file: needed when it contains the old value, which lies
   in a page that the put may move or reuse, and before anything is evicted. */
HG_MUST_USE int hg_embedded_put_build(struct hg_embedded_writer *writer,
                                      const struct hg_item_outcome *outcome);
/* Puts the outcome's item; `built`: hg_embedded_put_build has been called. */
HG_MUST_USE int hg_embedded_put_record(struct hg_embedded_writer *writer, MDB_val key,
                                       const struct hg_item_outcome *outcome, bool built);
/* Is there room for the outcome? `old_bytes` is 0 when the old record was not looked at. */
HG_MUST_USE enum hg_embedded_room hg_embedded_put_room(struct hg_embedded_writer *writer,
                                                       MDB_val key,
                                                       const struct hg_item_outcome *outcome,
                                                       size_t old_bytes);
/* Puts the outcome's item if that takes no further page. */
HG_MUST_USE int hg_embedded_put_try(struct hg_embedded_writer *writer, MDB_val key,
                                    const struct hg_item_outcome *outcome, bool built,
                                    bool *ret_fits);
/* Evicts until the record, which is built, fits and is put. */
HG_MUST_USE int hg_embedded_put_evicting(struct hg_embedded_writer *writer, MDB_val key,
                                         const struct hg_item_outcome *outcome, bool *ret_fits);

#endif
