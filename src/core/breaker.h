// breaker - whether a server is worth sending to, and when to connect to it again
// SPDX-License-Identifier: BSD-3-Clause
//
//            refused or 3 failed connects with none live | not ready | silent time-outs
//   CLOSED ----------------------------------------------------------------> OPEN <------------.
//     ^ ^                                                                     | wait is over   |
//     | '---------- an answer on a connection that was left ------------------+                |
//     |                                                                       v   probe failed |
//     | as many as wanted, or a further connect fails, or 10 s        HALF_OPEN (1 probe) -----'
//   RAMP (1, 2, 4 ... connections) <------------------------------------------'  probe answered
//
// Only evidence opens it; a connection that is up is evidence against it. `Live` is what is up to
// the server, of all workers. `Alive` is when the last byte of an answer came on any of these.
//
//  - A connect that fails while none is live is the server's failure: one that is refused opens, as
//    do three in a row. Connects that were under way together count once. A connection that ends
//    before its first answer is a connect that failed.
//  - A connect that fails while one is live is nobody's failure: the server allows no more. The
//    target becomes what is live: below it connects are made at will, beyond it one is tried after
//    1, 2, 4 ... 60 s, until one succeeds, which lifts the target.
//  - Time-outs open only if there were 20 over at least 4 keys, none answered in between, and the
//    server has been silent for as long as one may take: a slow key closes a server to nobody.
//  - A connection that is lost says nothing: the next connect may be made at once. Losses within
//    10 ms are one; each makes one connect count against HG_BREAKER_RECONNECTS a second, as long as
//    the last one is less than a second old. Only failed connects make later ones wait (backoff.h),
//    and the first answer ends that.
//  - Errors of this host (no descriptor, no port, no memory) pause connects for 0.1 to 1 s. They
//    move nothing else.
//
// After a failure, and after the last connection has gone, connects go one at a time until one
// succeeds: a server that goes away is not asked once for each connection that it had. OPEN answers
// at once. After a wait one worker makes one connection and asks NOOP or PING through login, never
// a client's request. The driver keeps the connections on which something was heard lately, and an
// answer on one of them closes the breaker, unless the server has said that it is not ready.
//
// Threads: one breaker per server and process, shared. The caller holds one mutex for the calls
// that take a non-const breaker; they are rare. Without it, from any thread, with relaxed loads:
// hg_breaker_state, hg_breaker_may_send, hg_breaker_heeds, hg_breaker_live, hg_breaker_beside,
// hg_breaker_target. An answer needs telling only while hg_breaker_heeds. Pure.
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
    HG_BREAKER_TRIAL,   // the same: the one beyond the target
    HG_BREAKER_PROBE,   // connect, log in, NOOP: tell ok only when that was answered
};

enum hg_breaker_loss {
    HG_BREAKER_ENDED,    // idle, or closed by ourselves
    HG_BREAKER_BROKEN,   // by the server or on the way, with requests unanswered
    HG_BREAKER_UNPROVEN, // by the server or on the way, before the first answer
};

enum hg_breaker_reason {
    HG_BREAKER_REFUSED,  // a connect was refused
    HG_BREAKER_CONNECTS, // connects failed in a row
    HG_BREAKER_UNREADY,  // the server says so
    HG_BREAKER_SILENT,   // requests timed out
};

#define HG_BREAKER_FAILURES     3
#define HG_BREAKER_TIMEOUTS     20
#define HG_BREAKER_KEYS         4
#define HG_BREAKER_TOGETHER_US  10000
#define HG_BREAKER_RECONNECTS   10 // a second
#define HG_BREAKER_RAMP_US      10000000
#define HG_BREAKER_WAIT_US      50000 // bound of the first wait after a failed connect
#define HG_BREAKER_TRIAL_US     1000000
#define HG_BREAKER_TRIAL_MAX_US 60000000
#define HG_BREAKER_LOCAL_US     200000
#define HG_BREAKER_LOCAL_MAX_US 1000000
#define HG_BREAKER_NO_TARGET    UINT32_MAX

struct hg_breaker {
    _Atomic uint32_t state;        // enum hg_breaker_state
    _Atomic uint32_t target;       // connections that the server allows, or HG_BREAKER_NO_TARGET
    _Atomic bool heeds;            // an answer would change something
    _Atomic uint32_t live;         // connections that are up
    _Atomic uint32_t connecting;   // allowed, outcome not told yet
    bool lost_all;                 // the last connection that was up has gone; until one comes up
    bool failing;                  // one of the connects under way has failed, with none live
    bool trying;                   // a connect beyond the target is under way
    bool unready;                  // open since the server said so
    uint32_t allowed;              // in RAMP: live and connecting together
    uint32_t wanted;               // a ramp that reached this is over
    uint32_t failures;             // connects failed in a row with none live, since the last answer
    uint32_t timeouts;             // in a row, since the last answer
    uint32_t owed;                 // losses whose reconnect has not been made yet
    enum hg_breaker_reason reason; // why it opened last
    uint64_t retry_at_us;          // no connect before: OPEN, or with none live
    uint64_t trial_at_us;          // none beyond the target before
    uint64_t local_until_us;       // none at all before
    uint64_t ramp_at_us;           // when the ramp began
    uint64_t lost_at_us;           // when the last loss began
    uint64_t reconnects_us[HG_BREAKER_RECONNECTS]; // when the last ones were made: a ring
    uint32_t reconnects;                           // made, ever
    struct hg_backoff backoff, trials, locals;
    uint64_t keys[HG_BREAKER_TIMEOUTS]; // hashes of the last time-outs in a row
};

/* Closed. `reconnect_max_us` bounds the waits after failed connects; `wanted` is the pool's cap of
 * connections to the server. */
void hg_breaker_init(struct hg_breaker *breaker, uint64_t reconnect_max_us, uint32_t wanted,
                     uint64_t seed);

/* May a new connection be made now? Anything but WAIT is a connection in the making, until told. */
HG_MUST_USE enum hg_breaker_connect hg_breaker_take_connect(struct hg_breaker *breaker,
                                                            uint64_t now_us);
/* When take_connect can say yes, at the earliest: at most now_us if now, UINT64_MAX if only the
 * outcome of a connect under way helps. */
uint64_t hg_breaker_next_us(const struct hg_breaker *breaker);
/* Connections that may be made beyond those that are up or coming, as far as the target is
 * concerned; UINT32_MAX: there is none. */
uint32_t hg_breaker_room(const struct hg_breaker *breaker, uint64_t now_us);

/* What take_connect allowed (`kind` is its answer) is up; `proven`: the server has answered on it.
 * A probe always is. */
void hg_breaker_tell_connected(struct hg_breaker *breaker, enum hg_breaker_connect kind,
                               bool proven, uint64_t now_us);
/* It failed. False: that says nothing of the server, since others are live. */
bool hg_breaker_tell_failed(struct hg_breaker *breaker, enum hg_breaker_connect kind, bool refused,
                            uint64_t now_us);
/* This host lacked something for it. */
void hg_breaker_tell_local(struct hg_breaker *breaker, enum hg_breaker_connect kind,
                           uint64_t now_us);
/* It was given up for reasons of our own. */
void hg_breaker_tell_abandoned(struct hg_breaker *breaker, enum hg_breaker_connect kind,
                               uint64_t now_us);
/* A live connection ended. */
void hg_breaker_tell_lost(struct hg_breaker *breaker, enum hg_breaker_loss loss, uint64_t now_us);
/* It answers that it can serve nothing for now (Redis while it reads its data in): opens. */
void hg_breaker_tell_unready(struct hg_breaker *breaker, uint64_t now_us);
/* A request was answered: call it while hg_breaker_heeds. */
void hg_breaker_tell_answered(struct hg_breaker *breaker);
/* A request for that key timed out; `silent`: nothing has been heard on any live connection for as
 * long as a request may take. */
void hg_breaker_tell_timeout(struct hg_breaker *breaker, uint64_t key_hash, bool silent,
                             uint64_t now_us);
/* Time passes: a ramp may be over. */
void hg_breaker_tell_time(struct hg_breaker *breaker, uint64_t now_us);

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

/* Would an answer change something? */
static inline bool hg_breaker_heeds(const struct hg_breaker *breaker)
{
    return atomic_load_explicit(&breaker->heeds, memory_order_relaxed);
}

/* Connections that are up, of all workers. */
static inline uint32_t hg_breaker_live(const struct hg_breaker *breaker)
{
    return atomic_load_explicit(&breaker->live, memory_order_relaxed);
}

/* Connections that are up or in the making, of all workers, beside one that has been allowed. */
static inline uint32_t hg_breaker_beside(const struct hg_breaker *breaker)
{
    uint32_t count =
        atomic_load_explicit(&breaker->connecting, memory_order_relaxed) + hg_breaker_live(breaker);
    return count > 0 ? count - 1 : 0;
}

/* Connections that the server allows, as far as is known, or HG_BREAKER_NO_TARGET. */
static inline uint32_t hg_breaker_target(const struct hg_breaker *breaker)
{
    return atomic_load_explicit(&breaker->target, memory_order_relaxed);
}

#endif
