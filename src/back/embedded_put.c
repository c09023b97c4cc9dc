// embedded_put - one record of the embedded store into the writer's transaction, if there is room
// SPDX-License-Identifier: BSD-3-Clause
#include "back/embedded_put.h"

#include <errno.h>
#include <stdlib.h>

#define TRIES_LEFT_OUT 31
#define EVICT_TRIES    24 /* to put a small record into the pages that are there */

static bool reserve_scratch(struct hg_embedded_writer *writer, size_t bytes)
{
    if (bytes <= writer->scratch_bytes)
        return true;
    uint8_t *grown = realloc(writer->scratch, bytes);
    if (grown == NULL)
        return false;
    writer->scratch = grown;
    writer->scratch_bytes = bytes;
    return true;
}

int hg_embedded_put_build(struct hg_embedded_writer *writer, const struct hg_item_outcome *outcome)
{
    if (!reserve_scratch(writer, HG_EMBEDDED_RECORD_HEAD + hg_item_outcome_bytes(outcome)))
        return ENOMEM;
    hg_embedded_record_head(writer->scratch, &outcome->item);
    hg_item_outcome_copy(outcome, writer->scratch + HG_EMBEDDED_RECORD_HEAD);
    return 0;
}

int hg_embedded_put_record(struct hg_embedded_writer *writer, MDB_val key,
                           const struct hg_item_outcome *outcome, bool built)
{
    MDB_val record = {HG_EMBEDDED_RECORD_HEAD + hg_item_outcome_bytes(outcome), NULL};
    if (built)
        record.mv_data = writer->scratch;
    int rc = mdb_put(writer->txn, writer->db->dbi, &key, &record, built ? 0 : MDB_RESERVE);
    if (rc != 0)
        return rc;
    if (!built) {
        hg_embedded_record_head(record.mv_data, &outcome->item);
        hg_item_outcome_copy(outcome, (uint8_t *)record.mv_data + HG_EMBEDDED_RECORD_HEAD);
    }
    hg_embedded_sweep_note(&writer->sweep, outcome->item.expiry_s);
    return 0;
}

enum hg_embedded_room hg_embedded_put_room(struct hg_embedded_writer *writer, MDB_val key,
                                           const struct hg_item_outcome *outcome, size_t old_bytes)
{
    if (HG_LIKELY(writer->roomy))
        return HG_EMBEDDED_ROOM_YES;
    size_t bytes = HG_EMBEDDED_RECORD_HEAD + hg_item_outcome_bytes(outcome);
    enum hg_embedded_room room =
        hg_embedded_room(writer->db, writer->txn, key.mv_size, bytes, old_bytes);
    if (HG_LIKELY(room == HG_EMBEDDED_ROOM_YES))
        return room;
    MDB_val old;
    if (old_bytes == 0 && mdb_get(writer->txn, writer->db->dbi, &key, &old) == 0 &&
        bytes <= old.mv_size)
        return HG_EMBEDDED_ROOM_YES;
    if (writer->tries_left_out > 0 && (writer->evict.on || room == HG_EMBEDDED_ROOM_TRY)) {
        writer->tries_left_out--;
        return HG_EMBEDDED_ROOM_NO;
    }
    return room;
}

int hg_embedded_put_try(struct hg_embedded_writer *writer, MDB_val key,
                        const struct hg_item_outcome *outcome, bool built, bool *ret_fits)
{
    struct hg_embedded_usage before, after;
    MDB_txn *group = writer->txn;
    hg_embedded_usage(writer->db, group, &before);
    int rc = mdb_txn_begin(writer->db->env, group, 0, &writer->txn);
    if (rc != 0) {
        writer->txn = group;
        return rc;
    }
    rc = hg_embedded_put_record(writer, key, outcome, built);
    hg_embedded_usage(writer->db, writer->txn, &after);
    *ret_fits = rc == 0 && after.used_bytes <= before.used_bytes;
    if (*ret_fits)
        rc = mdb_txn_commit(writer->txn);
    else
        mdb_txn_abort(writer->txn);
    writer->txn = group;
    writer->tries_left_out = *ret_fits ? 0 : TRIES_LEFT_OUT;
    return rc;
}

/* The bytes of a long value that the put of this key sets free. */
static size_t bytes_freed(struct hg_embedded_writer *writer, MDB_val key, size_t bytes)
{
    MDB_val old;
    if (key.mv_size + bytes <= writer->db->node_max_bytes ||
        mdb_get(writer->txn, writer->db->dbi, &key, &old) != 0)
        return 0;
    return old.mv_size;
}

int hg_embedded_put_evicting(struct hg_embedded_writer *writer, MDB_val key,
                             const struct hg_item_outcome *outcome, bool *ret_fits)
{
    struct hg_embedded_evict *evict = &writer->evict;
    size_t bytes = HG_EMBEDDED_RECORD_HEAD + hg_item_outcome_bytes(outcome);
    size_t needs = key.mv_size + bytes, old_bytes = bytes_freed(writer, key, bytes);
    int rc =
        bytes + 2 * (size_t)writer->db->page_bytes > writer->db->limit_bytes ? MDB_NOTFOUND : 0;
    bool whole_pages = false;
    *ret_fits = false;
    /* Even an empty store would be too small. */
    if (bytes + 2 * (uint64_t)writer->db->page_bytes > writer->db->limit_bytes)
        return 0;
    for (unsigned tries = 0; rc == 0 && !*ret_fits && tries < EVICT_TRIES;) {
        enum hg_embedded_room room =
            hg_embedded_room(writer->db, writer->txn, key.mv_size, bytes, old_bytes);
        if (room == HG_EMBEDDED_ROOM_YES) {
            rc = hg_embedded_put_record(writer, key, outcome, true);
            *ret_fits = rc == 0;
        } else if (room == HG_EMBEDDED_ROOM_NO || whole_pages || evict->credit < needs) {
            rc = hg_embedded_evict_some(writer, key, whole_pages);
        } else {
            rc = hg_embedded_put_try(writer, key, outcome, true, ret_fits);
            if (rc == 0 && !*ret_fits)
                rc = hg_embedded_evict_near(writer, key, bytes, tries >= EVICT_TRIES / 2);
            /* When all beside it is young, or rows, it takes a page, and some have to become free.
             */
            if (rc == MDB_NOTFOUND) {
                evict->credit = 0;
                whole_pages = tries >= EVICT_TRIES / 4;
                rc = 0;
            }
            tries++;
        }
    }
    if (*ret_fits)
        evict->credit -= needs < evict->credit ? needs : evict->credit;
    writer->tries_left_out = *ret_fits ? 0 : TRIES_LEFT_OUT;
    return rc == MDB_NOTFOUND ? 0 : rc;
}
