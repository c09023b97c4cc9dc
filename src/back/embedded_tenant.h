// embedded_tenant - whose key spaces live in the embedded store: names, ids, flushes, deletions
// SPDX-License-Identifier: BSD-3-Clause
//
//   NONE ── tenant_id(name) ──► ALIVE ── tenant_delete(id) ──► DYING ── swept ──► NONE for ever
//
// An id is used for one life of a name only, so a bucket that is deleted and made again starts
// empty at once, while its old keys are removed in small steps under the old id. Names, flushes and
// dying ids are notes in the file; the table in memory is what the request path asks.
//
// Threads: names and lives are changed by any thread under `lock`, within a write transaction.
// `flush` is the writer's own view, uncommitted changes included. What readers see (seen_*) is
// stored after the commit, CAS first: a reader that finds a later flush gone finds its CAS.
#ifndef HG_BACK_EMBEDDED_TENANT_H
#define HG_BACK_EMBEDDED_TENANT_H

#include <pthread.h>
#include <stdatomic.h>

#include "back/embedded_db.h"
#include "back/item.h"

#define HG_EMBEDDED_TENANT_NAME_MAX 250
#define HG_EMBEDDED_TENANT_CHUNK    256
#define HG_EMBEDDED_TENANT_CHUNKS   4096

enum hg_embedded_life { HG_EMBEDDED_LIFE_NONE, HG_EMBEDDED_LIFE_ALIVE, HG_EMBEDDED_LIFE_DYING };

struct hg_embedded_tenant {
    uint32_t id;
    _Atomic uint32_t life; /* enum hg_embedded_life */
    _Atomic uint64_t seen_flush_cas, seen_flush_at_s;
    char *name; /* under the lock */

    /* the writer's */
    struct hg_item_flush flush;
    struct hg_embedded_tenant *next_changed; /* its flush has changed in this transaction */
    bool changed;
    bool sweep; /* has dead items to be removed, beyond what expires */
};

struct hg_embedded_tenants {
    struct hg_embedded_db *db;
    pthread_mutex_t lock;
    struct hg_embedded_tenant *_Atomic chunks[HG_EMBEDDED_TENANT_CHUNKS];
    _Atomic uint32_t next_id;
    _Atomic uint32_t dying; /* tenants in that state */
};

/* Reads the notes. 0 or -errno, and then `error` says what is wrong. */
HG_MUST_USE int hg_embedded_tenants_init(struct hg_embedded_tenants *tenants,
                                         struct hg_embedded_db *db, char *error,
                                         size_t error_bytes);
void hg_embedded_tenants_fini(struct hg_embedded_tenants *tenants);

/* The tenant of an id that was given out, whatever its life, or NULL. Any thread. */
static inline struct hg_embedded_tenant *
hg_embedded_tenant_at(const struct hg_embedded_tenants *tenants, uint32_t id)
{
    uint32_t chunk = id / HG_EMBEDDED_TENANT_CHUNK;
    if (HG_UNLIKELY(id == 0 || chunk >= HG_EMBEDDED_TENANT_CHUNKS))
        return NULL;
    struct hg_embedded_tenant *first =
        atomic_load_explicit(&tenants->chunks[chunk], memory_order_acquire);
    return first == NULL ? NULL : first + id % HG_EMBEDDED_TENANT_CHUNK;
}

/* The tenant if it is alive, or NULL. Any thread. */
static inline struct hg_embedded_tenant *
hg_embedded_tenant_alive(const struct hg_embedded_tenants *tenants, uint32_t id)
{
    struct hg_embedded_tenant *tenant = hg_embedded_tenant_at(tenants, id);
    if (HG_UNLIKELY(tenant == NULL || atomic_load_explicit(&tenant->life, memory_order_acquire) !=
                                          HG_EMBEDDED_LIFE_ALIVE))
        return NULL;
    return tenant;
}

/* The flush that a reader has to heed. */
static inline struct hg_item_flush hg_embedded_tenant_flush(const struct hg_embedded_tenant *tenant)
{
    struct hg_item_flush flush;
    flush.at_s = atomic_load_explicit(&tenant->seen_flush_at_s, memory_order_acquire);
    flush.cas = atomic_load_explicit(&tenant->seen_flush_cas, memory_order_acquire);
    return flush;
}

/* The id of a name, a new one if it has none. Any thread; waits for a commit. 0 or -errno. */
HG_MUST_USE int hg_embedded_tenants_id(struct hg_embedded_tenants *tenants, const char *name,
                                       uint32_t *ret_id);
/* Ends the life of an id; its keys are swept later. -ENOENT when it is not alive. */
HG_MUST_USE int hg_embedded_tenants_delete(struct hg_embedded_tenants *tenants, uint32_t id);
/* Calls fn for every living tenant, under the lock. */
void hg_embedded_tenants_each(struct hg_embedded_tenants *tenants,
                              void (*fn)(void *arg, const char *name, uint32_t id), void *arg);

/* The writer, inside its transaction: notes a new flush. 0 or an error of LMDB. */
HG_MUST_USE int hg_embedded_tenant_set_flush(struct hg_embedded_tenants *tenants, MDB_txn *txn,
                                             struct hg_embedded_tenant *tenant,
                                             struct hg_item_flush flush);
/* The writer, inside its transaction: the last key of a dying tenant is gone. When that has been
   committed, hg_embedded_tenant_gone. */
HG_MUST_USE int hg_embedded_tenant_forget(struct hg_embedded_tenants *tenants, MDB_txn *txn,
                                          const struct hg_embedded_tenant *tenant);
void hg_embedded_tenant_gone(struct hg_embedded_tenants *tenants,
                             struct hg_embedded_tenant *tenant);

#endif
