// credit - buckets are held to units per second: reservation, free pool, hard limit
// SPDX-License-Identifier: BSD-3-Clause
//
// Time is cut into slots (`slot_us`). A bucket has a gauge of what it used in the running slot;
// what goes beyond its effective reservation comes out of the node's free pool, which has a gauge
// too. A request is charged an estimate when it is admitted, and settled when its cost is known.
//
// Exactness. A gauge is one word (slot number, units): a charge and the slot it belongs to are one
// compare-and-swap. What limits a slot (effective reservation, hard limit, pool) does not change
// while the slot runs and is kept for two slots by parity, so that nobody tests slot n against the
// limits of slot n + 1. Worker threads reserve on the bucket, then on the pool, and undo when the
// second fails: there is no overshoot. A refund gives the pool back what the charge took from it,
// so the pool's gauge is never less than what the buckets used beyond their reservations. New
// limits count from the next tick. Limits are per second; a slot gets its part such that the
// fraction is carried: 20 slots of 50 ms of 30 units/s are exactly 30.
//
// Any thread; pure: atomics, no clock, no allocation. Setting up: creditstate.h. The tick:
// credittick.h. Queueing of what is held: held.h. Source: Couchbase.
#ifndef HG_CORE_CREDIT_H
#define HG_CORE_CREDIT_H

#include <stdbool.h>
#include <stdint.h>
#include "base/attr.h"
#include "core/creditstate.h"

enum hg_credit_verdict { HG_CREDIT_PASS, HG_CREDIT_HOLD };

/* Why; the first four go with PASS, the others with HOLD. */
enum hg_credit_reason {
    HG_CREDIT_BY_RESERVATION,
    HG_CREDIT_BY_POOL,
    HG_CREDIT_BY_UNTHROTTLED,
    HG_CREDIT_BY_UNLIMITED, // the bucket's reservation is unlimited
    HG_CREDIT_NO_POOL,      // the free pool is used up
    HG_CREDIT_NO_SHARE,     // free_pool = fair: the bucket's share up to this slice is used up
    HG_CREDIT_HARD_LIMIT,
    HG_CREDIT_BEHIND, // others of this bucket are held, here or on another worker
};

enum hg_credit_flags {
    HG_CREDIT_UNTHROTTLED = 1, // passes, is charged
    HG_CREDIT_OBSERVE = 2,     // is charged whatever the verdict: HOLD says "would have been held"
    HG_CREDIT_RETRY = 4,       // is a held one whose turn it is (hg_held_decide sets it)
    HG_CREDIT_OLDEST = 8,      // with RETRY: nobody in this bucket has waited longer
};

/* What a request took, remembered in the request until it is settled; 20 bytes. */
struct hg_charge {
    uint32_t units;      // charged, 0 when held
    uint32_t pool_units; // of these, out of the free pool
    uint32_t slot;       // in this slot
    uint32_t seq;        // the node's count of slots and slices at the verdict, for held.h
    uint8_t reason;      // enum hg_credit_reason
    uint8_t charged;     // there is something to settle or undo
};

/*
 * May a request of so many units run? PASS: charged, `ret` remembers it for exactly one
 * hg_credit_undo or hg_credit_settle. HOLD: nothing is charged (but with OBSERVE: charged all the
 * same). New requests come without RETRY and are held while anybody of the bucket is, on any
 * worker; held ones are decided through hg_held_decide. A request larger than a whole slot allows
 * passes when the gauge is empty and nobody waits before it, and leaves a debt; where a slot allows
 * nothing at all (hard limit 0; nothing reserved and no pool) nothing passes.
 */
HG_MUST_USE enum hg_credit_verdict hg_credit_decide(struct hg_credit_node *node,
                                                    struct hg_credit_bucket *bucket, uint32_t units,
                                                    unsigned flags, struct hg_charge *ret);

/* Gives a charge back whole: the request was refused after the credits. Too late (the slot is
 * over): dropped. True when held requests of the bucket may now fit: worth a poke
 * (hg_held_holders), at most one a loop turn. */
bool hg_credit_undo(struct hg_credit_node *node, struct hg_credit_bucket *bucket,
                    struct hg_charge *charge);
/* The real cost is known: an excess is charged to the running slot, untested; a refund is given
 * back in the slot of the charge and dropped later. For a batch or a range call it as it goes, with
 * the sum so far: the charge stays open. Returns as undo does. */
bool hg_credit_settle(struct hg_credit_node *node, struct hg_credit_bucket *bucket,
                      struct hg_charge *charge, uint64_t real_units);

#endif
