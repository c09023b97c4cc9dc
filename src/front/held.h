// held - requests that wait for credits, worker's side
// SPDX-License-Identifier: BSD-3-Clause
//
// The queue of a lane is the list of sessions whose next request is held, oldest first; since a
// session has at most one, going through it is round robin over connections. The rules of passes,
// grants and pokes are core/held.h's; this file carries them out.
#ifndef HG_FRONT_HELD_H
#define HG_FRONT_HELD_H

#include "front/session.h"

/* Of enum hg_credit_reason, in statistics and traces. */
const char *hg_held_reason_name(int reason);

/* Decides a new request; true: it may go on. False: it is in the lane's queue now, or
   (non-blocking, impersonated) was refused and answered, and *ret_waits says which. */
bool hg_held_admit(struct hg_session *session, struct hg_request *request, bool *ret_waits);

/* Passes over all lanes of this worker that hold requests: at a tick, or poked. */
void hg_held_pass_all(struct hg_worker *worker);

/* Passes over those lanes that were advised to make one; once a turn. */
void hg_held_pass_wanted(struct hg_worker *worker);

/* Refuses those whose deadline has passed; their longest wait is looked at in passes only. */
void hg_held_expire(struct hg_worker *worker);

/* Takes a held request out of its queue: the client has gone, or the bucket. */
void hg_held_leave(struct hg_session *session);

/* A charge was given back in its slot: held ones of the bucket may fit now, here in this turn, on
   other workers when it ends. */
void hg_held_room(struct hg_worker *worker, struct hg_lane *lane);
/* Tells the other workers; once, at the end of a turn. */
void hg_held_poke_wanted(struct hg_worker *worker);

#endif
