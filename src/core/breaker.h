// breaker - whether a server is worth sending to, and when to connect to it again
// SPDX-License-Identifier: BSD-3-Clause
//
//            refused, none live | 3 failures | time-outs
//   CLOSED ------------------------------------------------> OPEN <-------------.
//     ^                                                       | wait is over    | probe failed
//     | as many connections as wanted,                        v                 |
//     | or 10 s without a failure                         HALF_OPEN (1 probe) --'
//   RAMP (1, 2, 4 ... connections) <-------------------------'   probe answered
//
// One connect refused without a live connection opens it; so do three failures without a success in
// between (a connect that failed or timed out; connections lost with requests unanswered, those
// lost within 10 ms counting once); and so do at least 20 time-outs in 10 s that are half of what
// was sent, over at least 4 keys, the last 20 without an answer in between: one slow key must not
// close a server to everyone. OPEN answers at once. After a wait (backoff.h) one worker makes one
// connection and asks NOOP or PING through login, never a client's request. The wait's k grows with
// each failure and resets only after 10 s without one. A failure in RAMP, while nothing lives,
// opens again. After a failure, and after the last connection has gone, connections are made one at
// a time until one succeeds: a server that goes away is not asked once for each connection that it
// had. When it opens, the driver closes what is live, and still tells how the connects under way
// ended.
//
// Threads: one breaker per server and process, shared. The caller holds one mutex for the calls
// that take a non-const breaker; they are rare (connections, time-outs, and sums of what was sent).
// Without it, from any thread: hg_breaker_state, hg_breaker_may_send, hg_breaker_is_suspect
// (relaxed loads). What is sent is counted by the worker and told as a sum once a second, and
// before each time-out; an answer needs telling only while the breaker is suspect. Pure.
#ifndef HG_CORE_BREAKER_H
#define HG_CORE_BREAKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/attr.h"
#include "core/backoff.h"

enum hg_breaker_state {
    HG_BREAKER_CLOSED,
    HG_BREAKER_OPEN,
    HG_BREAKER_HALF_OPEN,
    HG_BREAKER_RAMP,
};

enum hg_breaker_connect {
    HG_BREAKER_WAIT,    // not now; hg_breaker_next_us says when to ask again
    HG_BREAKER_CONNECT, // connect; tell the outcome
    HG_BREAKER_PROBE,   // connect, log in, NOOP: tell ok only when that was answered
};

#define HG_BREAKER_FAILURES    3
#define HG_BREAKER_TIMEOUTS    20
#define HG_BREAKER_KEYS        4
#define HG_BREAKER_WINDOW_S    10
#define HG_BREAKER_TOGETHER_US 10000
#define HG_BREAKER_CALM_US     10000000

struct hg_breaker {
    _Atomic uint32_t state;   // enum hg_breaker_state
    _Atomic uint32_t suspect; // time-outs since the last answer
    uint32_t live;            // connections that are up
    uint32_t connecting;      // allowed, outcome not told yet
    uint32_t allowed;         // in RAMP: live and connecting together
    uint32_t wanted;          // a ramp that reached this is over
    uint32_t failures;        // since the last success
    bool lost_all;            // the last connection that was up has gone; until one comes up
    uint64_t retry_at_us;     // no connect before
    uint64_t failed_at_us;    // the last failure
    uint64_t lost_at_us;      // when the event began that the last lost connection belongs to
    struct hg_backoff backoff;
    uint64_t second; // the last one counted; counts of second s are at s % HG_BREAKER_WINDOW_S
    uint32_t sent[HG_BREAKER_WINDOW_S], timeouts[HG_BREAKER_WINDOW_S];
    uint64_t keys[HG_BREAKER_TIMEOUTS]; // hashes of the last time-outs in a row
};

/* Closed. `reconnect_max_us` bounds the waits; `wanted` is the pool's cap of connections to the
 * server. */
void hg_breaker_init(struct hg_breaker *breaker, uint64_t reconnect_max_us, uint32_t wanted,
                     uint64_t seed);

/* May a new connection be made now? Anything but WAIT is a connection in the making, until told. */
HG_MUST_USE enum hg_breaker_connect hg_breaker_take_connect(struct hg_breaker *breaker,
                                                            uint64_t now_us);
/* When take_connect can say yes, at the earliest: at most now_us if now, UINT64_MAX if only the
 * outcome of a connect under way helps. */
uint64_t hg_breaker_next_us(const struct hg_breaker *breaker);

/* What take_connect allowed (`kind` is its answer) is up (a probe: was answered), or failed, or was
 * given up for reasons of our own. */
void hg_breaker_tell_connected(struct hg_breaker *breaker, enum hg_breaker_connect kind,
                               uint64_t now_us);
void hg_breaker_tell_failed(struct hg_breaker *breaker, enum hg_breaker_connect kind, bool refused,
                            uint64_t now_us);
void hg_breaker_tell_abandoned(struct hg_breaker *breaker, enum hg_breaker_connect kind);
/* A live connection ended: by the peer with requests unanswered (`failed`), or idle or by
 * ourselves. */
void hg_breaker_tell_lost(struct hg_breaker *breaker, bool failed, uint64_t now_us);
/* It answers that it can serve nothing for now (Redis while it reads its data in): opens. */
void hg_breaker_tell_unready(struct hg_breaker *breaker, uint64_t now_us);
/* `n` requests were sent since the last call. */
void hg_breaker_tell_sent(struct hg_breaker *breaker, uint32_t n, uint64_t now_us);
/* A request was answered in time: call it while is_suspect. */
void hg_breaker_tell_answered(struct hg_breaker *breaker);
/* A request for that key timed out; `silent`: no connection has brought anything for as long, so it
 * does not matter how much was answered before. True when this opened the breaker. */
bool hg_breaker_tell_timeout(struct hg_breaker *breaker, uint64_t key_hash, bool silent,
                             uint64_t now_us);

static inline enum hg_breaker_state hg_breaker_state(const struct hg_breaker *breaker)
{
    return (enum hg_breaker_state)atomic_load_explicit(&breaker->state, memory_order_relaxed);
}

/* May clients' requests be sent, and wait for a connection? */
static inline bool hg_breaker_may_send(const struct hg_breaker *breaker)
{
    enum hg_breaker_state state = hg_breaker_state(breaker);
    return state == HG_BREAKER_CLOSED || state == HG_BREAKER_RAMP;
}

static inline bool hg_breaker_is_suspect(const struct hg_breaker *breaker)
{
    return atomic_load_explicit(&breaker->suspect, memory_order_relaxed) != 0;
}

#endif
