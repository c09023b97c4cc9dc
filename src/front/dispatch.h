// dispatch - what becomes of each frame: checks, admission, the way to its store
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_FRONT_DISPATCH_H
#define HG_FRONT_DISPATCH_H

#include "front/session.h"

struct hg_refusal;

enum hg_step {
    HG_STEP_NEXT,  /* the frame is done with: look at the next */
    HG_STEP_WAIT,  /* its request waits: look at this frame again when the wait is over */
    HG_STEP_DEFER, /* not looked at: too much is under way; look again when a reply has left */
    HG_STEP_CLOSE  /* send what is queued, then close */
};

/* Carries a whole frame out, or continues the waiting request that it belongs to. `blob`: where the
   frame's bytes live, if they may be referenced. */
enum hg_step hg_dispatch(struct hg_session *session, const struct hg_frame *frame,
                         struct hg_blob *blob);
/* Answers a frame that is refused by its header alone (SKIP, BAD_LENGTHS, TOO_LONG). */
void hg_dispatch_refuse(struct hg_session *session, const struct hg_frame *frame);

/* Refuses the request that waits, because its client has hung up or the server drains. */
void hg_dispatch_refuse_waiting(struct hg_session *session);

/* The worker has adopted a directory, and the session too: what waits is refused if its bucket has
   been deleted or disabled, and goes on in the record and the store of now else. Nothing that comes
   later is looked at before what is under way on an old store is answered. */
void hg_dispatch_adopt(struct hg_session *session);

/* Answers a request in its store's place, or one that waits for a ticket or for room. */
void hg_dispatch_evict(struct hg_request *request, const struct hg_refusal *refusal);

/* Forgets a request that is under way because its client has gone. */
void hg_dispatch_cancel(struct hg_request *request);

/* session opcodes (control.c) */
enum hg_step hg_control(struct hg_session *session, const struct hg_frame *frame);

#endif
