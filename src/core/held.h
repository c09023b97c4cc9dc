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
// The driver's duties: (1) after HOLD append to the list and call hg_held_publish with the charge's
// seq; (2) whenever the list changes outside a pass (closed connection, deadline, deleted bucket)
// publish again, with the current hg_credit_seq; (3) carry out the advice: `again` -> a pass of
// this bucket now, `poke` -> wake those workers, each makes a pass over this bucket if its list is
// not empty; (4) on hg_credit_tick's poke, a pass over every bucket with held requests. A pass is:
//
//     if (hg_held_pass_begin(node, bucket, worker, &pass)) {
//         while (list not empty && hg_held_decide(node, bucket, &pass, units, flags, &charge) ==
//         PASS)
//             unlink the head, dispatch it;
//     }
//     advice = hg_held_pass_done(node, bucket, worker, &pass, &summary of what is still in the
//     list);
//
// What a dispatched request does synchronously (next frame of its connection, new holds) belongs
// after pass_done, or must only append to the list. A lane is written by its worker, and by the
// tick (grants).
#ifndef HG_CORE_HELD_H
#define HG_CORE_HELD_H

#include "core/credit.h"

/* One worker's held requests of one bucket. Zeroed before hg_credit_bucket_init. */
struct hg_credit_lane {
    alignas(HG_CACHE_LINE) _Atomic uint64_t units; // of all held
    _Atomic uint64_t head_units, head_since_us;    // of the oldest
    _Atomic uint32_t count;
    _Atomic uint64_t grant; // round 24, units 40, open until claimed; 0 = none
};

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
    uint64_t claim; // the lane's grant word, 0 when not capped
    uint32_t seq;
    bool open;   // may decide
    bool oldest; // the lane's head is the bucket's oldest
};

/* The list of this worker changed; `seq` is that of the verdict (hg_charge.seq) or hg_credit_seq().
 */
HG_MUST_USE struct hg_held_advice hg_held_publish(struct hg_credit_node *node,
                                                  struct hg_credit_bucket *bucket, uint32_t worker,
                                                  const struct hg_held *held, uint32_t seq);

/* False: not this worker's turn (others have open grants); it will be poked. Call pass_done anyway.
 */
HG_MUST_USE bool hg_held_pass_begin(struct hg_credit_node *node, struct hg_credit_bucket *bucket,
                                    uint32_t worker, struct hg_held_pass *ret);
/* Decides the head of the list; HOLD ends the pass. With OBSERVE or UNTHROTTLED it always passes.
 */
HG_MUST_USE enum hg_credit_verdict hg_held_decide(struct hg_credit_node *node,
                                                  struct hg_credit_bucket *bucket,
                                                  struct hg_held_pass *pass, uint32_t units,
                                                  unsigned flags, struct hg_charge *ret);
HG_MUST_USE struct hg_held_advice
hg_held_pass_done(struct hg_credit_node *node, struct hg_credit_bucket *bucket, uint32_t worker,
                  const struct hg_held_pass *pass, const struct hg_held *held);

/* The workers that hold requests of this bucket, as bits. */
uint64_t hg_held_holders(const struct hg_credit_node *node, const struct hg_credit_bucket *bucket);

/* Does anybody hold? One load: the hot path's question. */
static inline bool hg_held_any(const struct hg_credit_bucket *bucket)
{
    return (uint32_t)atomic_load_explicit(&bucket->queue, memory_order_relaxed) != 0;
}

/* The node's count of ticks and slices. */
static inline uint32_t hg_credit_seq(const struct hg_credit_node *node)
{
    return atomic_load_explicit(&node->seq, memory_order_acquire);
}

/* The tick's part: shares `available` units out to the lanes that hold (grants), when they want
 * more. Called by hg_credit_tick, and by tests. */
void hg_held_plan(struct hg_credit_node *node, struct hg_credit_bucket *bucket, uint64_t available);

#endif
