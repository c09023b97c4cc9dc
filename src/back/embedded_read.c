// embedded_read - gets of the embedded store: snapshots of a worker, values without a copy
// SPDX-License-Identifier: BSD-3-Clause
//
// A value that was handed out as a view pins its snapshot until the end of the turn. When a newer
// commit has been published meanwhile, the second snapshot takes over; when that one has views too,
// a spare one answers, whose values hold only within on_done, so that it can be renewed each time.
// Nothing is pinned between turns: a reader that stays would keep LMDB from reusing pages.
#include "back/embedded_shared.h"
#include "proto/status.h"

#define SPARE 2

int hg_embedded_readers_init(struct hg_embedded *embedded)
{
    for (unsigned i = 0; i < HG_COUNT_OF(embedded->readers); i++) {
        struct hg_embedded_reader *reader = &embedded->readers[i];
        int rc = mdb_txn_begin(embedded->shared->db.env, NULL, MDB_RDONLY, &reader->txn);
        if (rc != 0) {
            reader->txn = NULL;
            hg_embedded_readers_fini(embedded);
            return rc;
        }
        mdb_txn_reset(reader->txn);
    }
    return 0;
}

void hg_embedded_readers_fini(struct hg_embedded *embedded)
{
    for (unsigned i = 0; i < HG_COUNT_OF(embedded->readers); i++) {
        if (embedded->readers[i].txn != NULL)
            mdb_txn_abort(embedded->readers[i].txn);
        embedded->readers[i].txn = NULL;
    }
}

void hg_embedded_readers_reset(struct hg_embedded *embedded)
{
    for (unsigned i = 0; i < HG_COUNT_OF(embedded->readers); i++) {
        struct hg_embedded_reader *reader = &embedded->readers[i];
        if (!reader->active)
            continue;
        mdb_txn_reset(reader->txn);
        reader->active = reader->viewed = false;
    }
    embedded->wall_known = false;
}

int hg_embedded_reader_renew(struct hg_embedded *embedded, struct hg_embedded_reader *reader,
                             uint64_t published)
{
    if (reader->active)
        mdb_txn_reset(reader->txn);
    reader->viewed = false;
    int rc = mdb_txn_renew(reader->txn);
    reader->active = rc == 0;
    reader->published = published;
    hg_counter_add(&embedded->counters.snapshots, 1);
    return rc;
}

/* A reader that sees everything that is published, or NULL while the spare one is in use or when
   LMDB fails, which *ret_rc tells. */
static struct hg_embedded_reader *newest(struct hg_embedded *embedded, int *ret_rc)
{
    uint64_t published =
        atomic_load_explicit(&embedded->shared->db.published, memory_order_acquire);
    struct hg_embedded_reader *reader = &embedded->readers[embedded->reader];
    *ret_rc = 0;
    if (HG_LIKELY(reader->active && reader->published == published))
        return reader;
    if (reader->viewed) {
        struct hg_embedded_reader *other = &embedded->readers[embedded->reader ^ 1];
        if (!other->viewed) {
            reader = other;
            embedded->reader ^= 1;
        } else {
            reader = &embedded->readers[SPARE];
            if (embedded->spare_busy)
                return NULL;
            if (reader->active && reader->published == published)
                return reader;
        }
    }
    *ret_rc = hg_embedded_reader_renew(embedded, reader, published);
    return *ret_rc == 0 ? reader : NULL;
}

uint64_t hg_embedded_wall_of_turn(struct hg_embedded *embedded)
{
    if (HG_UNLIKELY(!embedded->wall_known)) {
        embedded->wall_known = true;
        embedded->wall_s = embedded->shared->wall_s(embedded->shared->wall_arg);
    }
    return embedded->wall_s;
}

static void answer_fault(struct hg_embedded *embedded, struct hg_call *call, enum hg_fault fault,
                         const char *text)
{
    struct hg_result result = {.status = HG_STATUS_EINTERNAL,
                               .fault = fault,
                               .value = hg_span_str(text),
                               .server = embedded->shared->where};
    call->on_done(call, &result);
}

bool hg_embedded_read(struct hg_embedded *embedded, struct hg_call *call)
{
    struct hg_result result = {.status = HG_STATUS_KEY_ENOENT, .server = embedded->shared->where};
    struct hg_embedded_tenant *tenant =
        hg_embedded_tenant_alive(&embedded->shared->tenants, call->tenant_id);
    uint8_t key_bytes[HG_EMBEDDED_KEY_BYTES];
    MDB_val key = {hg_embedded_key(key_bytes, call->tenant_id, call->prefix, call->key), key_bytes};
    MDB_val record;
    struct hg_item item;
    int rc;
    if (HG_UNLIKELY(key.mv_size == 0)) {
        answer_fault(embedded, call, HG_FAULT_KEY_TOO_LONG, "the key is too long");
        return true;
    }
    struct hg_embedded_reader *reader = newest(embedded, &rc);
    if (HG_UNLIKELY(reader == NULL && rc == 0))
        return false;
    call->sent_us = call->now_us;
    if (HG_LIKELY(rc == 0))
        rc = mdb_get(reader->txn, embedded->shared->db.dbi, &key, &record);
    if (HG_UNLIKELY(rc != 0 && rc != MDB_NOTFOUND)) {
        answer_fault(embedded, call, HG_FAULT_INTERNAL, mdb_strerror(rc));
        return true;
    }
    hg_counter_add(&embedded->counters.reads, 1);
    if (HG_UNLIKELY(tenant == NULL)) {
        result.status = HG_STATUS_NO_BUCKET;
    } else if (rc == 0 && hg_embedded_record_decode(record, &item) &&
               hg_item_alive(&item, hg_embedded_wall_of_turn(embedded),
                             hg_embedded_tenant_flush(tenant))) {
        result.status = HG_STATUS_SUCCESS;
        result.item_flags = item.flags;
        result.cas = item.cas;
        result.value = item.value;
        result.until_turn_end = reader != &embedded->readers[SPARE];
        reader->viewed = result.until_turn_end;
        hg_counter_add(&embedded->counters.read_hits, 1);
    }
    bool spare = reader == &embedded->readers[SPARE];
    embedded->spare_busy |= spare;
    call->on_done(call, &result);
    if (spare)
        embedded->spare_busy = false;
    return true;
}
