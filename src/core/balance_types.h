// balance_types - what the planner of a capacity domain keeps of blocks and connections
// SPDX-License-Identifier: BSD-3-Clause
//
// The structures are the planner's (balance.h): a driver embeds them, reads the fields marked
// "read" for its statistics, and writes only those marked "driver".
#ifndef HG_CORE_BALANCE_TYPES_H
#define HG_CORE_BALANCE_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

#define HG_BALANCE_TICK_US 10000 // hg_balance_rebalance is called that often
#define HG_BALANCE_SAMPLES 32    // reconnect times that make a mean
#define HG_BALANCE_LISTED  64    // blocks that a tick puts in order of hunger
#define HG_BALANCE_OPS_MAX 256   // steps that one rebalance plans at most

enum hg_balance_conn_state {
    HG_BALANCE_GONE,     // not counted
    HG_BALANCE_COMING,   // connecting, or being bound to another block
    HG_BALANCE_IDLE,     // nothing unanswered
    HG_BALANCE_BUSY,     // something unanswered
    HG_BALANCE_DRAINING, // busy, takes nothing new, moves to `reserved` when empty
    HG_BALANCE_CLOSING,  // its socket is not closed yet: holds capacity, is no block's
};

/* One connection, from before connect() until after close(). */
struct hg_balance_conn {
    uint32_t load; // driver: requests unanswered (to choose whom to drain); 0 is always allowed
    enum hg_balance_conn_state state;  // read
    bool rebinding;                    // COMING: it was another block's before
    bool planned;                      // a step of the rebalance under way is about it
    struct hg_balance_block *block;    // read: whose it is
    struct hg_balance_block *reserved; // DRAINING: who gets it
    struct hg_list node;               // of its block: idle, busy or others
    struct hg_list lru;                // of the domain: idle ones, longest idle first
    uint64_t bound_us;   // when its (re)binding began: the minimum hold counts from it
    uint64_t up_us;      // when that had succeeded
    uint64_t since_us;   // when its state began
    uint64_t counted_us; // up to when its busy time is counted
};

/* One (server, identity). */
struct hg_balance_block {
    struct hg_list node; // of the domain: blocks with traffic, or the quiet ones
    /* What the tick goes over again and again, together. */
    double claim;          // read: what of its demand counts: less while slowness makes more of it
    double share;          // of the capacity
    double debt;           // what rounding has cost it, in connections x ticks
    uint32_t quota;        // read
    uint32_t useful;       // connections beyond that would not be busy
    uint32_t target;       // quota that the last tick would have given
    uint32_t target_ticks; // ticks in a row that wanted it changed that way
    uint32_t remainder;    // of the share, for rounding
    uint32_t waiters;      // read
    bool active;           // had traffic lately
    bool waited;           // the last tick found waiters
    bool resting;          // its connects fail: none before retry_us
    bool suppressed;       // takes no connections and ends those that it has
    bool barred;           // takes no connections for now
    bool slowed;           // read: its answers take much longer than they usually do
    /* What requests go by. */
    uint32_t arrivals, answers;                        // since the last tick
    uint32_t idle_count, busy_count, coming, draining; // read: connections by state
    uint32_t incoming;                                 // read: drain elsewhere, reserved for it
    uint32_t planned_in, planned_out;                  // by the rebalance under way
    uint64_t busy_us;        // since the last tick, of connections, up to their last answers
    uint64_t used_us;        // when a request last came, waited or was sent
    uint64_t oldest_us;      // read: since when the oldest waiter waits, while there are any
    struct hg_list idle;     // hg_balance_conn.node, longest idle first
    struct hg_list busy;     // longest busy first
    struct hg_list others;   // COMING and DRAINING
    struct hg_list starving; // of the domain: waiters and no connection; first come, first served
    double demand;           // read: connections that would be busy
    double service_us;       // read: busy time of a connection per answer; 0: unknown
    /* Moving averages of a tick; of the first, `weight` says how much of them is measured. */
    double arrivals_avg, backlog_avg, answers_avg, busy_avg, weight;
    /* The same over a minute without slow ticks: what is usual. */
    double usual_answers, usual_busy, usual_demand, usual_weight;
    double slowness;                   // moving average: how many of the ticks are slow
    uint64_t silent_us;                // how long it has had work and waiters and no answer
    uint32_t slowed_ticks;             // how long it has been slowed
    uint32_t failures;                 // connects that failed, since the last success
    uint64_t failed_us;                // when the last of them failed
    uint64_t retry_us;                 // resting: until then
    uint64_t traffic_tick;             // the last tick with traffic
    uint64_t moves_in, moves_out;      // read: connections won and lost, all told
    uint64_t steals;                   // read: of moves_in, those taken when a request came
    uint64_t connects, connect_errors; // read
};

/* Mean of the last HG_BALANCE_SAMPLES times. */
struct hg_balance_mean {
    uint32_t values_us[HG_BALANCE_SAMPLES];
    uint32_t count, next;
    uint64_t sum_us;
};

struct hg_balance_conf {
    uint32_t depth;       // requests that a connection may carry unanswered, >= 1
    uint64_t hold_min_us; // floor of the minimum hold (pool_min_hold_ms, 10 ms)
    uint64_t hold_max_us; // its cap (2 s)
    uint64_t idle_us;     // an idle connection is closed after that (pool_idle_timeout_s, 120 s)
};

/* A capacity domain as one worker sees it. */
struct hg_balance {
    struct hg_balance_conf conf;
    uint32_t capacity;    // read: connections allowed
    uint32_t total;       // read: connections that hold capacity, those CLOSING included
    uint32_t closing;     // read
    uint32_t drains;      // read: drains in progress
    uint32_t waiters;     // read
    uint32_t block_count; // read
    uint32_t suppressed_count;
    uint32_t wanting;              // read: blocks with demand
    bool constrained;              // read: the blocks want more than there is: quotas count
    bool ring;                     // read: more blocks with demand than connections
    bool frozen;                   // the breaker is not closed
    bool draining;                 // everything is to end
    struct hg_list active, quiet;  // hg_balance_block.node
    struct hg_list starving;       // hg_balance_block.starving
    struct hg_list lru;            // hg_balance_conn.lru of idle ones, longest idle first
    struct hg_list draining_conns; // hg_balance_conn.lru, first drained first
    struct hg_balance_block *hungry[HG_BALANCE_LISTED];   // of the last tick, hungriest first
    struct hg_balance_block *overfull[HG_BALANCE_LISTED]; // of the last tick, fullest first
    uint32_t hungry_count, overfull_count;
    uint32_t wanted;    // read: connections that waiters could use and that do not come
    double service_us;  // busy time per answer, of all blocks
    uint32_t quota_sum; // of the quotas
    struct hg_balance_mean connect, rebind; // times of successes
    uint64_t p99_us;   // driver: how long nearly all requests stay on a connection; 0: unknown
    uint64_t slice_us; // read: a usual turn in the ring
    uint64_t hold_us, reconnect_us; // read: minimum hold, mean time of a move
    double level;                   // connections per demand, of the last quotas
    uint64_t ticked_us, tick;
};

#endif
