// embedded_writer - applies batches of writes to the embedded store, a group per commit
// SPDX-License-Identifier: BSD-3-Clause
//
//   queue ──► group: begin, decide and put each, commit ──► done(batch)
//                 └── failed: each operation again in a transaction of its own
//
// Everything that changes items goes through one writer, on one thread: the writer thread, or the
// only worker. It reads the old item in the same transaction, so add, CAS, counters and the rest
// are atomic. An operation is answered when its group has been committed, never before.
//
// At the quota a small record may still fit into a page that is there: pages do not become free
// before nearly all that is in them has been deleted. So it is put in a nested transaction, which
// is undone if it took another page. That costs much more than a put, so after a failure the next
// ones are refused unseen, until something has been removed. A store that evicts removes something
// itself and tries again (embedded_evict.h).
#ifndef HG_BACK_EMBEDDED_WRITER_H
#define HG_BACK_EMBEDDED_WRITER_H

#include "back/embedded_batch.h"
#include "back/embedded_evict.h"
#include "back/embedded_stats.h"
#include "back/embedded_sweep.h"
#include "back/embedded_tenant.h"

#define HG_EMBEDDED_GROUP_OPS   1024 /* bounds of a group; it is at least one batch */
#define HG_EMBEDDED_GROUP_BYTES (8u << 20)

struct hg_embedded_writer {
    struct hg_embedded_db *db;
    struct hg_embedded_tenants *tenants;
    struct hg_embedded_counters *counters;
    uint32_t max_value_bytes;
    uint64_t (*wall_s)(void *arg);
    void *wall_arg;
    /* The batch has been carried out; called on the writer's thread. */
    void (*done)(struct hg_embedded_writer *writer, struct hg_embedded_batch *batch);

    /* LMDB finds no page left; true: pages may have become free, and it is worth another try. */
    bool (*on_map_full)(struct hg_embedded_writer *writer);

    struct hg_embedded_batch *first, *last; /* the queue */
    uint8_t *scratch;                       /* where a value is put together */
    size_t scratch_bytes;
    struct hg_embedded_sweep sweep;
    struct hg_embedded_evict evict;
    unsigned tries_left_out; /* at the quota: so many sets are refused before one is tried again */
    uint64_t next_flush_s;   /* no delayed flush is due before; 0: there is none */

    /* of the running transaction */
    MDB_txn *txn;
    uint64_t now_s;
    bool roomy;                         /* the quota is far away */
    uint64_t refused;                   /* operations without room */
    struct hg_embedded_tenant *changed; /* tenants whose flush changes with it */
};

void hg_embedded_writer_init(struct hg_embedded_writer *writer, struct hg_embedded_db *db,
                             struct hg_embedded_tenants *tenants,
                             struct hg_embedded_counters *counters);
void hg_embedded_writer_fini(struct hg_embedded_writer *writer);

void hg_embedded_writer_queue(struct hg_embedded_writer *writer, struct hg_embedded_batch *batch);
/* Carries out everything that is queued. */
void hg_embedded_writer_run(struct hg_embedded_writer *writer);

/* A write transaction that may hand out `cas_count` CAS values; flushes whose time has come are
   part of it. 0 or an error of LMDB, and then there is none. */
HG_MUST_USE int hg_embedded_writer_begin(struct hg_embedded_writer *writer, uint64_t cas_count);
/* Commits and tells the readers. On an error everything is as before the begin. */
HG_MUST_USE int hg_embedded_writer_commit(struct hg_embedded_writer *writer);
void hg_embedded_writer_abort(struct hg_embedded_writer *writer);

#endif
