// held - requests that wait for credits: order between workers, grants, wake-ups
// SPDX-License-Identifier: BSD-3-Clause
//
// Each worker keeps its own held requests of a bucket in a list, oldest first (at most one a
// connection, so the list is also the round robin over connections), and publishes count, units and
// head in its lane. While any lane holds, new requests of the bucket are held on all workers.
//
// Held ones are decided in a *pass*: at a tick or slice (hg_credit_tick says who holds), after
// advice to do it `again`, or after a poke by another worker. If the lanes want more than there is,
// the tick has put a grant into each, by demand (largest remainder; the oldest request of all comes
// first, so none starves); a pass stops at its grant, or at the first request that is held again.
// The last lane to finish tells all that still hold to pass again without a grant, so what one does
// not use returns to the others. A lane that becomes empty tells those that hold behind it.
//
// No wake-up is lost: counts live in one word with the open grants (`queue`: round 32, holding
// lanes 16, open grants 16), changed by compare-and-swap; who adds himself to it sees the others or
// is seen by them. Who holds against an old slot is told to do it `again`: publish first, then look
// at the slot; the tick stores the slot first, then looks at the lanes.
//
// The driver's duties:
// 1. After a HOLD append to the list and call hg_held_publish with the charge.
// 2. Whenever the list changes outside a pass (connection closed, deadline, bucket deleted; any
//    number of requests at once) call hg_held_publish without a charge.
// 3. Carry out the advice: `again`, a pass over this bucket now, from the loop; `poke`, wake those
//    workers: each makes a pass over this bucket if its list is not empty.
// 4. On hg_credit_tick's poke: a pass over every bucket that the worker holds requests of.
// 5. When hg_credit_undo or hg_credit_settle returns true: poke hg_held_holders, once a turn at
//    most.
//
// A pass, in which nothing else is decided or held for this bucket on this worker:
//
//     if (hg_held_pass_begin(node, bucket, worker, &pass))
//         while (list not empty && hg_held_decide(node, bucket, &pass, units, 0, &charge) == PASS)
//             move the head to a list of those that passed;
//     advice = hg_held_pass_done(node, bucket, worker, &pass, &what is still in the list);
//     dispatch those that passed, carry out the advice;
//
// Pure. A lane is written by its worker, its grant by the ticking thread too.
#ifndef HG_CORE_HELD_H
#define HG_CORE_HELD_H

#include "core/credit.h"

/* What a worker publishes; all 0 when its list is empty. */
struct hg_held {
    uint64_t units, head_units, head_since_us;
    uint32_t count;
};

struct hg_held_advice {
    bool again;    // make a pass over this bucket now (from the loop, not recursively)
    uint64_t poke; // other workers that should make a pass over this bucket
};

struct hg_held_pass {
    uint64_t grant; // what the lane may still take in this pass
    uint64_t claim; // the lane's grant word; 0: no cap
    bool open;      // this worker may decide
    bool oldest;    // the head to be decided is the bucket's oldest
    bool capped;    // stopped at the grant
};

/* This worker's list changed: `charge` of the HOLD that appended to it, NULL for another reason. */
HG_MUST_USE struct hg_held_advice hg_held_publish(struct hg_credit_node *node,
                                                  struct hg_credit_bucket *bucket, uint32_t worker,
                                                  const struct hg_held *held,
                                                  const struct hg_charge *charge);

/* False: it is the turn of others, this worker will be poked. Call pass_done all the same. */
HG_MUST_USE bool hg_held_pass_begin(struct hg_credit_node *node, struct hg_credit_bucket *bucket,
                                    uint32_t worker, struct hg_held_pass *ret);
/* Decides the head of the list, as hg_credit_decide does; HOLD ends the pass. With OBSERVE or
 * UNTHROTTLED (the tenant's mode or the user's privileges changed meanwhile) it passes. */
HG_MUST_USE enum hg_credit_verdict hg_held_decide(struct hg_credit_node *node,
                                                  struct hg_credit_bucket *bucket,
                                                  struct hg_held_pass *pass, uint32_t units,
                                                  unsigned flags, struct hg_charge *ret);
HG_MUST_USE struct hg_held_advice
hg_held_pass_done(struct hg_credit_node *node, struct hg_credit_bucket *bucket, uint32_t worker,
                  const struct hg_held_pass *pass, const struct hg_held *held);

/* The workers that hold requests of this bucket, as bits. */
uint64_t hg_held_holders(const struct hg_credit_node *node, const struct hg_credit_bucket *bucket);

/* Does anybody hold? One load. */
static inline bool hg_held_any(const struct hg_credit_bucket *bucket)
{
    return (uint32_t)atomic_load_explicit(&bucket->queue, memory_order_relaxed) != 0;
}

/* The tick's part: grants for the lanes that hold, when they want more than `available` units.
 * `saves`: there will be more at the next slice; until then nobody overtakes an oldest head that
 * does not fit. */
void hg_held_plan(struct hg_credit_node *node, struct hg_credit_bucket *bucket, uint64_t available,
                  bool saves);

#endif
