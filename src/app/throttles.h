// throttles - what is throttled, and which servers are slow: housekeeping's look
// SPDX-License-Identifier: BSD-3-Clause
//
//   every 100 ms:  holders of tickets ─┐
//                  boards of workers: ─┼─► a thing each, of the process ─► core/throttling
//                  floods, held keys,  │        what, upstream, server,        │ begin, end
//                  evicted keys       ─┘        tenant, kind of ticket, key    ▼
//                                                                        base/throttle: an event
//   every second:  medians of servers (serverlook.h)
//
// Limits of a server's connections (breaker, pool-target, local) apply to the whole process, so
// back/server, which sets them, reports them itself. A new process starts with an empty record.
#ifndef HG_APP_THROTTLES_H
#define HG_APP_THROTTLES_H

#include "base/coarsehist.h"
#include "base/span.h"
#include "base/throttle.h"
#include "core/throttling.h"
#include "core/ticket.h"
#include "front/bindboard.h"
#include "front/floodboard.h"
#include "io/loop.h"

#define HG_THROTTLES_LOOK_US 100000
#define HG_THROTTLES_MAX     8192 /* things at a time; further ones are not told of */
#define HG_THROTTLES_CHAINS  256

struct hg_process;
struct hg_gateshare;

/* One observation of a throttling: on one worker, or of the whole process. */
struct hg_throttles_seen {
    enum hg_throttle what;
    const char *upstream, *server, *tenant; /* "": does not apply */
    const char *tickets;                    /* "read", "write", "ingress"; "": does not apply */
    struct hg_span key;
    uint32_t id;     /* tells keys apart that are equal as far as they are known */
    unsigned worker; /* whose counter follows, see hg_throttling_count */
    uint64_t number, counted;
    bool active;                /* it is in force; true of one worker is enough */
    bool goes_on;               /* it is in force if it was before */
    uint64_t from, to, waiting; /* of tickets */
    uint64_t service_us, usual_us;
    uint64_t share, x;          /* of a key; of an evicted key */
    struct hg_gateshare *gates; /* of tickets: its waits are told at the end */
    enum hg_ticket_kind kind;
};

struct hg_throttles_thing;

struct hg_throttles {
    struct hg_process *process;
    struct hg_timer timer;
    bool is_open;
    _Atomic bool has_workers; /* which begin after housekeeping */
    uint64_t look;            /* number of this one */
    size_t count;
    struct hg_throttles_thing *chains[HG_THROTTLES_CHAINS];
    /* Copies of boards, so that no worker waits for this. */
    struct hg_flood_shown *floods;
    struct hg_heldkey_shown *keys;
    struct hg_bind_shown *binds;
    size_t floods_cap, keys_cap, binds_cap;
};

/* On housekeeping's loop. 0 or -errno. */
HG_MUST_USE int hg_throttles_start(struct hg_throttles *throttles, struct hg_process *process,
                                   struct hg_loop *loop);
/* All workers have begun: from now on it looks at them. Any thread. */
void hg_throttles_watch(struct hg_throttles *throttles);
void hg_throttles_stop(struct hg_throttles *throttles);

/* ---- for the look (throttles_look.c) ---- */

/* Something is there to be seen, in force or not. */
void hg_throttles_see(struct hg_throttles *throttles, const struct hg_throttles_seen *seen);
/* All that there is to see. */
void hg_throttles_look_at_all(struct hg_throttles *throttles, uint64_t now_us);

#endif
