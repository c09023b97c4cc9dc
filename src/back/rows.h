// rows - rows on top of any store: read, apply, write back with compare-and-swap
// SPDX-License-Identifier: BSD-3-Clause
//
//   gate ─► GET ─► apply (pure) ─► ADD | SET with CAS | DELETE with CAS ─► done
//            ▲                              │ somebody else was faster
//            └──────────────────────────────┘ again, at most HG_ROWS_ATTEMPTS times, then 0x85
//
// The gate of a row lets calls of this worker through in the order in which they came: any number
// of readers, or one writer. So calls of one client for one row keep their order, calls of one
// worker do not fight, and conflicts come from other workers only, where one of the contenders
// always wins. Workers that run in step would let the same one win again and again: after a few
// attempts a call rests for a while that is left to chance, longer the more it has lost. Waiting in
// the gate ends at the call's deadline. Worker's thread only.
#ifndef HG_BACK_ROWS_H
#define HG_BACK_ROWS_H

#include "back/store.h"
#include "base/arena.h"
#include "base/counter.h"
#include "table/outcome.h"

#define HG_ROWS_ATTEMPTS 64

struct hg_rows; /* a worker's gates */

struct hg_row_end {
    enum hg_fault fault; /* NONE: `status` */
    /* 0: outcome.result has the operation's own. 0x83 the key holds a classic item, or a row of the
       other API; 0x84 the row is damaged; 0x85 too many conflicts; 0x03 the row would be over the
       item limit; 0x82 no memory; or the store's own error. */
    uint16_t status;
    const struct hg_row_outcome *outcome; /* of the last attempt; lies in the call's arena */
    uint64_t read_bytes;                  /* of the row document that was read, 0: none */
    uint64_t written_bytes;               /* of the one that was written, 0: none */
    struct hg_span text;                  /* of an error */
    const char *server;
};

struct hg_row_call {
    /* what is asked: set before hg_rows_submit, and holds until on_done */
    struct hg_store *store;
    enum hg_api api; /* a row of the other API is refused */
    uint32_t tenant_id, identity;
    bool quarantine; /* these three as struct hg_call's, for every call that it makes */
    uint64_t ticket;
    void *ticket_of;
    struct hg_span prefix;
    struct hg_span key; /* hg_rowdoc_key */
    uint32_t key_hash;
    bool writes;
    bool removes;    /* it deletes the row whatever is in it, one that cannot be decoded too: then
                        `old` is a row without content */
    uint32_t expiry; /* of what is written, in memcached's meaning; apply may set it */
    uint32_t max_value_bytes;
    uint64_t now_us, deadline_us;
    struct hg_arena *arena; /* scratch: reset before each attempt; results lie in it */
    /* Pure. `old` NULL: there is no row. */
    void (*apply)(struct hg_row_call *call, const struct hg_row *old, struct hg_row_outcome *ret);
    /* Exactly once, perhaps before hg_rows_submit returns, not after a cancel. */
    void (*on_done)(struct hg_row_call *call, const struct hg_row_end *end);

    /* rows' own */
    struct hg_rows *rows;
    struct hg_list node; /* in its gate */
    struct hg_list turn; /* among those that are to be started */
    struct hg_row_gate *gate;
    struct hg_call call;
    struct hg_row_outcome outcome;
    unsigned attempts;
    uint8_t step;
    uint64_t read_bytes, written_bytes;
    uint64_t start_us; /* rests until then */
};

struct hg_rows_counters {
    hg_counter conflicts; /* attempts that somebody else made in vain */
    hg_counter given_up;  /* calls that were answered 0x85 after HG_ROWS_ATTEMPTS */
    hg_counter waited;    /* calls that waited in a gate */
};

HG_MUST_USE struct hg_rows *hg_rows_new(struct hg_loop *loop, struct hg_rows_counters *counters);
/* When no call is under way. */
void hg_rows_free(struct hg_rows *rows);

/* Is a call for this store under way? Until there is none the store is not freed, even though it
   is drained: calls that wait in a gate, or rest, are not the store's. Walks over all gates. */
bool hg_rows_uses(const struct hg_rows *rows, const struct hg_store *store);

void hg_rows_submit(struct hg_rows *rows, struct hg_row_call *call);
/* The client has gone: after it on_done is not called, and the call may be freed. Nobody else's
   on_done is called from within. */
void hg_rows_cancel(struct hg_row_call *call);
/* Answers those whose deadline has passed while they wait in a gate (HG_FAULT_QUEUE_TIMEOUT). */
void hg_rows_expire(struct hg_rows *rows, uint64_t now_us);

/* A classic operation on a key that may be a row's, that is, one with a zero byte in it: submits it
   as the store would, with the store's promises, but answers 0x83 when the key holds a row. A
   read first, then the operation with the CAS that was read. It never waits for room (on_room is
   not called), and call->after is not looked at: the gate keeps the order, provided that all
   operations on such keys come this way, GET too (a GET needs no guard, since its answer tells;
   here it is a reader that keeps its place among the writers of its worker). A flush is submitted
   when no such operation of its client, nor a call for a row, is under way. */
struct hg_guard {
    struct hg_call *call; /* the operation */
    /* private */
    struct hg_row_call row;
    struct hg_blob *copy; /* of prefix, key and value, which must outlive the read */
    struct hg_blob *held; /* or the value's own, referenced */
    struct hg_span value;
};
void hg_rows_guard(struct hg_rows *rows, struct hg_store *store, struct hg_blobs *blobs,
                   struct hg_guard *guard, struct hg_call *call);
void hg_rows_cancel_guard(struct hg_guard *guard);

#endif
