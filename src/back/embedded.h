// embedded - the store inside the process: one LMDB file, groups of writes, reads without a copy
// SPDX-License-Identifier: BSD-3-Clause
//
//   worker 1: store ── reads: own snapshots ────────────────► file
//   worker 2: store ── writes: a batch a turn ──► writer ────►  │  one commit a group
//                  ◄── answers after the commit ──┘             │
//                                          sync thread ──► disk, once a second
//
// A struct hg_embedded_shared is the file and its writer, one per process and upstream; each worker
// has a struct hg_store of it. With one worker and without a sync in the commit the worker is the
// writer itself, at the end of each turn: no thread, no hop.
//
// A get is answered within submit, from a snapshot that is as new as the newest commit; its value
// is a view into the file until the end of the turn. A get whose call->after is a write on its way,
// or whose tenant this worker is about to flush, waits for that. A delayed or immediate flush, an
// expired item and a deleted bucket are invisible at once, and swept later.
//
// What survives: the death of the process, always. A power cut: with `always` everything that was
// answered; with `second` and `never` the file may be lost as a whole.
#ifndef HG_BACK_EMBEDDED_H
#define HG_BACK_EMBEDDED_H

#include "back/embedded_stats.h"
#include "back/store.h"

struct hg_embedded_shared;

enum hg_embedded_sync { HG_EMBEDDED_SYNC_ALWAYS, HG_EMBEDDED_SYNC_SECOND, HG_EMBEDDED_SYNC_NEVER };

/* Who writes: AUTO is the worker if it is the only one and commits do not sync. */
enum hg_embedded_writing {
    HG_EMBEDDED_WRITING_AUTO,
    HG_EMBEDDED_WRITING_INLINE,
    HG_EMBEDDED_WRITING_THREAD
};

struct hg_embedded_options {
    const char *data_dir; /* made if missing; its parent must exist */
    const char *name;     /* of the upstream: the file is <data_dir>/<name>.mdb */
    enum hg_embedded_sync sync;
    enum hg_embedded_writing writing;
    unsigned workers;
    bool evict;         /* when the quota is reached: items go; otherwise sets are refused */
    uint64_t max_bytes; /* quota, at least 1 MiB; the file may grow to twice that and a reserve */
    uint32_t max_value_bytes;
    uint64_t timeout_us;           /* a write that is not committed by then is answered so */
    uint64_t (*wall_s)(void *arg); /* NULL: the machine's clock; must be callable by any thread */
    void *wall_arg;
    uint64_t map_bytes; /* 0: by the quota; for tests of a full map */
};

/* Opens the file and starts the threads it needs. 0 or -errno, and then `error` says what is wrong
   with which file. */
HG_MUST_USE int hg_embedded_open(const struct hg_embedded_options *options,
                                 struct hg_embedded_shared **ret, char *error, size_t error_bytes);
/* Ends the threads, brings everything to the disk and closes. All stores must have been freed.
   NULL is allowed. */
void hg_embedded_close(struct hg_embedded_shared *shared);

/* A worker's store, on the thread of `loop`, which must be done with it (ops->free) before
   `loop` goes. 0 or -errno; -EBUSY for a second one where the worker writes itself. */
HG_MUST_USE int hg_embedded_store_new(struct hg_embedded_shared *shared, struct hg_loop *loop,
                                      struct hg_store **ret);

/* The id for hg_call.tenant_id of a bucket's name of 1 to 250 bytes: the same over restarts, until
   the tenant is deleted. Any thread, but not for the request path: it waits for a commit, for the
   disk too with sync `always`. 0 or -errno. */
HG_MUST_USE int hg_embedded_tenant_id(struct hg_embedded_shared *shared, const char *name,
                                      uint32_t *ret_id);
/* Everything of this id is gone from now on; its calls are answered HG_STATUS_NO_BUCKET. The same
   name gets another id. 0 or -errno; -ENOENT when there is none. Threads as above. */
HG_MUST_USE int hg_embedded_tenant_delete(struct hg_embedded_shared *shared, uint32_t id);
/* Calls fn for every tenant of the file, which must not call back into the store. Any thread. */
void hg_embedded_tenant_each(struct hg_embedded_shared *shared,
                             void (*fn)(void *arg, const char *name, uint32_t id), void *arg);

/* Changes options.evict; any thread. */
void hg_embedded_set_evict(struct hg_embedded_shared *shared, bool evict);

/* Any thread. */
void hg_embedded_stats_read(struct hg_embedded_shared *shared, struct hg_embedded_stats *ret);
bool hg_embedded_writes_inline(const struct hg_embedded_shared *shared);

#endif
