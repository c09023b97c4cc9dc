// embedded_batch - a worker's writes of one turn on their way to the writer and back
// SPDX-License-Identifier: BSD-3-Clause
//
//   worker:  add, add, add ──► writer: decide, put, commit ──► worker: answer each call
//
// A batch copies what it is asked, since the bytes of a call hold only while it is submitted: keys
// and small values into its own room, large values into a blob (or a reference to the call's). The
// writer leaves the answers in the operations. Batches are reused: after warm-up nothing is
// allocated but for values that get-and-touch hands out beyond ANSWER_ROOM.
//
// A batch is owned by one thread at a time; `call`, `blob` and `waiters` are never looked at by the
// writer, so a call may be cancelled while its batch is away.
#ifndef HG_BACK_EMBEDDED_BATCH_H
#define HG_BACK_EMBEDDED_BATCH_H

#include "back/embedded_record.h"
#include "back/store.h"
#include "io/mailbox.h"

#define HG_EMBEDDED_BATCH_OPS    128
#define HG_EMBEDDED_BATCH_ROOM   (32u << 10)
#define HG_EMBEDDED_VALUE_INLINE (8u << 10) /* longer values travel in a blob */
#define HG_EMBEDDED_ANSWER_ROOM  4096

struct hg_embedded;

struct hg_embedded_op {
    /* what is asked */
    struct hg_item_ask ask;
    uint32_t tenant_id;
    uint32_t key_len;
    const uint8_t *key; /* as LMDB has it */
    /* the writer's answer */
    struct hg_result result;
    /* the worker's own */
    struct hg_call *call;   /* NULL when nobody waits for the answer any more */
    uint64_t stranded;      /* then the ticket of the call, while the answer is to come */
    struct hg_blob *blob;   /* holds the value */
    struct hg_list waiters; /* calls that go on when this is answered */
    struct hg_list flushes; /* in the store's list of flushes that are on their way */
};

struct hg_embedded_answer; /* memory for one answer that did not fit */

struct hg_embedded_batch {
    struct hg_letter letter;
    struct hg_list node; /* in the list of the worker that waits for it */
    struct hg_embedded *home;
    struct hg_mailbox *home_box;
    struct hg_embedded_batch *next; /* in the writer's queue */
    uint64_t sent_us;
    uint32_t count;
    uint32_t room_used, answer_used;
    size_t bytes; /* keys and values, wherever they lie */
    struct hg_embedded_answer *answers;
    struct hg_span refusal; /* text of the first refusal, used by all others */
    struct hg_embedded_op ops[HG_EMBEDDED_BATCH_OPS];
    uint8_t answer_room[HG_EMBEDDED_ANSWER_ROOM];
    uint8_t room[HG_EMBEDDED_BATCH_ROOM];
};

/* An empty batch, or NULL when memory is out. */
HG_MUST_USE struct hg_embedded_batch *hg_embedded_batch_new(struct hg_embedded *home,
                                                            struct hg_mailbox *home_box);
void hg_embedded_batch_free(struct hg_embedded_batch *batch);
/* Empties it for the next use: every call has been answered. */
void hg_embedded_batch_clear(struct hg_embedded_batch *batch);

/* Does it have room for this call? An empty batch has room for any. */
bool hg_embedded_batch_fits(const struct hg_embedded_batch *batch, const struct hg_call *call);

/* Copies the call, for which there is room; long values go to `blobs`. HG_FAULT_NONE, or why it
   cannot be. Sets the call's place. */
HG_MUST_USE enum hg_fault hg_embedded_batch_add(struct hg_embedded_batch *batch,
                                                struct hg_call *call, struct hg_blobs *blobs);

/* The writer: room for `bytes` of an answer, which hold until the batch is cleared or
   hg_embedded_batch_drop_answers; NULL when memory is out. */
HG_MUST_USE uint8_t *hg_embedded_batch_answer(struct hg_embedded_batch *batch, size_t bytes);
void hg_embedded_batch_drop_answers(struct hg_embedded_batch *batch);

#endif
