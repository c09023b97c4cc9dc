// embedded_shared - the embedded store's file, writer and threads: what its workers share
// SPDX-License-Identifier: BSD-3-Clause
//
// Private to the embedded store. The writer runs on its own thread, a loop whose mailbox takes the
// workers' batches; or on the loop of the only worker, which queues and runs it itself.
#ifndef HG_BACK_EMBEDDED_SHARED_H
#define HG_BACK_EMBEDDED_SHARED_H

#include <pthread.h>

#include "back/embedded.h"
#include "back/embedded_writer.h"

/* The thread that brings commits to the disk once a second. */
struct hg_embedded_syncer {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool runs, stop;
    struct hg_embedded_counters counters;
};

struct hg_embedded_shared {
    struct hg_embedded_db db;
    struct hg_embedded_tenants tenants;
    struct hg_embedded_writer writer;
    struct hg_embedded_counters writer_counters;
    bool inline_writer;
    enum hg_embedded_sync sync;
    uint64_t timeout_us;
    uint64_t (*wall_s)(void *arg);
    void *wall_arg;
    char *where; /* "embedded:<path>" */

    pthread_mutex_t lock;             /* of the following */
    struct hg_list stores;            /* the workers' */
    struct hg_embedded_counters past; /* of stores that were freed */

    pthread_mutex_t copy_lock;
    struct hg_embedded_copy *copy; /* that is being made or read; under copy_lock; or NULL */

    struct hg_timer sweep_timer; /* on the loop that the writer runs on */
    /* the writer thread */
    pthread_t thread;
    bool thread_runs;
    struct hg_loop loop;
    struct hg_mailbox box;
    struct hg_hook hook;
    struct hg_letter stop;

    struct hg_embedded_syncer syncer;
};

/* One worker's store: see embedded.c. */
struct hg_embedded_reader {
    MDB_txn *txn;
    uint64_t published; /* sees at least these commits */
    bool active;
    bool viewed; /* a view of it was handed out in this turn */
};

struct hg_embedded {
    struct hg_store store;
    struct hg_embedded_shared *shared;
    struct hg_loop *loop;
    struct hg_list node; /* in shared->stores */
    struct hg_embedded_counters counters;
    bool closing;

    /* reads: two snapshots that hand out views, a spare one that does not, and one for ranges */
    struct hg_embedded_reader readers[4];
    unsigned reader; /* the newer of the two */
    bool spare_busy, range_busy;
    bool wall_known;
    uint64_t wall_s; /* the wall clock of this turn */

    /* writes */
    struct hg_embedded_batch *current; /* takes calls; NULL until the first */
    struct hg_list full;               /* of this turn */
    struct hg_list sent;               /* at the writer, oldest first */
    struct hg_list spare_batches;
    unsigned spare_count;
    size_t pending_ops, pending_bytes;
    struct hg_list waiting; /* calls without room */
    struct hg_list flushes; /* flushes on their way */
    struct hg_blobs blobs;
    struct hg_mailbox box; /* batches come back */
    struct hg_timer timer; /* time-outs; armed while something is away */
    bool timer_armed;
    struct hg_hook send_hook, cleanup_hook;
};

/* The sweeper's timer on the loop of the writer. */
HG_MUST_USE int hg_embedded_sweeper_start(struct hg_embedded_shared *shared, struct hg_loop *loop);
void hg_embedded_sweeper_stop(struct hg_embedded_shared *shared);

/* Letter: a batch comes back to its worker. */
void hg_embedded_on_batch(struct hg_letter *letter, void *receiver);
/* Letter: a batch arrives at the writer thread. */
void hg_embedded_on_write(struct hg_letter *letter, void *receiver);

/* embedded_read.c: the worker's snapshots. */
HG_MUST_USE int hg_embedded_readers_init(struct hg_embedded *embedded);
void hg_embedded_readers_fini(struct hg_embedded *embedded);
/* Answers a get; false when it must be submitted again next turn. */
HG_MUST_USE bool hg_embedded_read(struct hg_embedded *embedded, struct hg_call *call);
/* The end of the turn: views end. */
void hg_embedded_readers_reset(struct hg_embedded *embedded);
/* Makes the reader see everything that is published. 0 or an error of LMDB. */
HG_MUST_USE int hg_embedded_reader_renew(struct hg_embedded *embedded,
                                         struct hg_embedded_reader *reader, uint64_t published);
/* The wall clock of this turn. */
uint64_t hg_embedded_wall_of_turn(struct hg_embedded *embedded);

/* embedded_range.c: ops->range and ops->cancel_range. */
void hg_embedded_range(struct hg_store *store, struct hg_range_call *call);
void hg_embedded_cancel_range(struct hg_store *store, struct hg_range_call *call);

#endif
