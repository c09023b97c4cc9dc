// rowgate - the order of calls for one row within a worker, and the list of those that may start
// SPDX-License-Identifier: BSD-3-Clause
//
//   enter ─► gate: inside, or waiting behind ─► ready ─► started by hg_rowgate_run ─► leave
//
// Private to rows. A gate exists while somebody is inside: any number of readers, or one writer.
// Who comes waits behind those that wait already, so a reader does not pass a waiting writer. A
// gate has no copy of its key: it is that of any call inside. Nothing is started from within
// another call's end but through the ready list, which one loop works off: however many calls a
// store answers at once, the stack does not grow.
#ifndef HG_BACK_ROWGATE_H
#define HG_BACK_ROWGATE_H

#include "back/rows.h"
#include "base/prng.h"
#include "base/slab.h"

enum hg_row_step {
    HG_ROW_STEP_NONE,  /* not ours: before, or done */
    HG_ROW_STEP_WAITS, /* in its gate */
    HG_ROW_STEP_LATE,  /* taken out of its gate, about to be answered */
    HG_ROW_STEP_READY, /* inside, to be started */
    HG_ROW_STEP_RESTS, /* inside, to be started later */
    HG_ROW_STEP_ASKS   /* inside, its store has a call of it */
};

struct hg_row_gate {
    struct hg_row_gate *next; /* of the same bucket */
    uint32_t hash;
    bool writing;
    struct hg_list inside, waiting; /* by hg_row_call.node */
    struct hg_list crowd;           /* in rows->crowded while somebody waits */
};

struct hg_rows {
    struct hg_loop *loop;
    struct hg_rows_counters *counters;
    struct hg_slab gates;
    struct hg_row_gate **buckets;
    size_t bucket_count, gate_count;
    struct hg_list crowded;     /* gates where somebody waits */
    uint64_t next_expiry_us;    /* nobody who waits is late before it */
    struct hg_list ready;       /* by hg_row_call.turn */
    bool running;               /* the ready list is being worked off */
    struct hg_list resting;     /* by hg_row_call.turn */
    uint64_t next_start_us;     /* nobody who rests is to be started before it */
    struct hg_timer rest_timer; /* makes the loop turn then */
    struct hg_prng prng;
    struct hg_hook ready_hook;
};

/* False when memory is out. */
HG_MUST_USE bool hg_rowgate_init(struct hg_rows *rows);
void hg_rowgate_fini(struct hg_rows *rows);

/* Lets the call in, which makes it ready, or lets it wait. False when memory is out. */
HG_MUST_USE bool hg_rowgate_enter(struct hg_rows *rows, struct hg_row_call *call);
/* Takes the call out of its gate and of every list, whatever its step; others may become ready. */
void hg_rowgate_leave(struct hg_row_call *call);
/* Moves those that wait and are late to `late`, with step LATE. */
void hg_rowgate_take_late(struct hg_rows *rows, uint64_t now_us, struct hg_list *late);

/* A call that is inside is to be started (again). */
void hg_rowgate_make_ready(struct hg_row_call *call);
/* The same, but in so many microseconds. */
void hg_rowgate_make_rest(struct hg_row_call *call, uint64_t us);
/* Starts what is ready, until nothing is; does nothing when that is under way already. The last
   thing that an entry from outside does. */
void hg_rowgate_run(struct hg_rows *rows);

/* rows.c, for rowguard.c too. */

/* Starts an attempt: the read. */
void hg_rows_start(struct hg_row_call *call);
/* Submits call->call, which is set but for what is the same for all of the call's. */
void hg_rows_ask(struct hg_row_call *row,
                 void (*on_done)(struct hg_call *, const struct hg_result *));
/* Somebody else was faster: once more, or false after HG_ROWS_ATTEMPTS. */
HG_MUST_USE bool hg_rows_again(struct hg_row_call *row);
/* What a call that has met too many others is told. */
extern const char hg_rows_too_many[];

/* rowguard.c: the answer to the read of a guarded operation. */
void hg_rowguard_on_read(struct hg_call *call, const struct hg_result *result);

#endif
