// worker - one thread with its loop, its clients and its instances of the stores
// SPDX-License-Identifier: BSD-3-Clause
//
// Everything here belongs to the worker's thread, but for the mailbox, through which others hand
// over clients, directories and ticks, and the counters, which anybody may read.
#ifndef HG_FRONT_WORKER_H
#define HG_FRONT_WORKER_H

#include <pthread.h>

#include "base/hist.h"
#include "base/slab.h"
#include "front/bindboard.h"
#include "front/directory.h"
#include "front/floodboard.h"
#include "front/front.h"
#include "front/heldkeyboard.h"
#include "front/hotshare.h"
#include "front/tables.h"
#include "front/words.h"
#include "front/worker_stats.h"
#include "io/mailbox.h"
#include "io/out.h"
#include "io/sock.h"

#define HG_UPSTREAMS_MAX           256
#define HG_SCRATCH_BYTES           (256 * 1024)
#define HG_WORKER_TIMER_US         50000 /* deadlines of held requests */
#define HG_WORKER_TIMERS_A_LOOK    5     /* at all sessions: idle ones, lingering ones */
#define HG_SLOW_LOG_ENTRIES        128
#define HG_SESSION_FRAMES_PER_TURN 64
#define HG_LANE_FRAMES_ALONE       1024 /* of a tenant in a turn, while no other is active */

/* What a certificate makes of a client: nothing, its user if there is one, or its user or nobody.
 */
enum hg_client_user { HG_CLIENT_USER_NONE, HG_CLIENT_USER_OPTIONAL, HG_CLIENT_USER_REQUIRED };

/* A connection on its way to a worker. */
struct hg_client {
    int fd;
    bool over_limit;
    enum hg_client_user user;
    struct hg_tls *tls; /* its handshake is done; NULL: plain */
    struct hg_addr peer;
};

struct hg_instance;

struct hg_slow_entry {
    uint64_t wall_s;
    uint32_t total_us, queue_us, throttle_us, backend_us;
    uint8_t op;      /* enum hg_op */
    uint8_t outcome; /* enum hg_outcome */
    uint8_t key_len;
    char bucket[HG_BUCKET_NAME_MAX + 1];
    char server[48];
    uint8_t key[40];
};

struct hg_worker {
    unsigned index;
    pthread_t thread;
    struct hg_front *front;
    struct hg_loop loop;
    struct hg_mailbox mailbox;
    struct hg_blobs blobs;
    struct hg_out_pool outs;
    struct hg_slab requests;
    struct hg_directory *directory;
    struct hg_store *stores[HG_UPSTREAMS_MAX]; /* of instances[] */
    struct hg_instance *instances[HG_UPSTREAMS_MAX];
    struct hg_list old_instances;               /* of generations that are listed no more */
    struct hg_list sessions;                    /* all */
    struct hg_list ready_lanes;                 /* lanes with sessions that have frames left over */
    struct hg_lane nobody;                      /* of sessions without a bucket */
    unsigned active_lanes, active_lanes_before; /* in this turn and the last */
    struct hg_list dirty;                       /* have something to send */
    struct hg_list dead;                        /* closed; freed at the end of the turn */
    struct hg_list lanes_held;                  /* lanes that hold requests for credits */
    struct hg_list lanes_used; /* lanes with users: the worker holds a reference of their buckets */
    uint8_t *scratch;          /* HG_SCRATCH_BYTES, where clients' bytes are read to */
    struct hg_hook ready_hook, client_hook, cleanup_hook;
    struct hg_timer timer;
    unsigned timer_count;
    bool leaving, draining, stopping;
    bool lanes_idle;   /* some lane has no users any more */
    bool pokes_wanted; /* some lane wants others to be told of a refund */
    struct hg_letter tick_letter, leave_letter, drain_letter;
    struct hg_gate *gates[HG_UPSTREAMS_MAX]; /* of upstreams with an instance, old or not */
    struct hg_gate_line *ingress;
    uint64_t parts;               /* of gates, that were ever made */
    struct hg_list lines_waiting; /* lines with somebody in them */
    struct hg_timer line_timer;
    bool line_timer_armed;
    struct hg_list lanes_bound; /* lanes with evicted keys */
    struct hg_bind_board bind_board;
    struct hg_heldkey_board heldkey_board;
    struct hg_flood_board flood_board;
    struct hg_words words; /* of refusals */
    struct hg_letter gate_letter;
    _Atomic bool gate_posted;
    struct hg_hot_worker hot;
    struct hg_tables tables;
    _Atomic bool tick_posted;
    _Atomic unsigned load; /* connections given and not yet closed */

#define HG_WORKER_STAT(name, kind, text) hg_counter name;
    HG_WORKER_STATS(HG_WORKER_STAT)
#undef HG_WORKER_STAT
    hg_counter outcomes[HG_OUTCOMES];
    hg_counter opcodes[256];
    struct hg_hist latency[HG_OPS]; /* microseconds, from first look to reply */
    struct hg_slow_entry slow[HG_SLOW_LOG_ENTRIES];
    uint64_t slow_count;
    uint64_t traced; /* requests that ended while trace_sample was on */
};

/* Sets up everything but the thread: a test may turn the loop by hand. 0 or -errno. */
HG_MUST_USE int hg_worker_open(struct hg_worker *worker, struct hg_front *front, unsigned index,
                               struct hg_directory *directory);
/* Closes the clients and stores of a worker whose loop does not turn any more. */
void hg_worker_close(struct hg_worker *worker);
/* Opens the worker and starts its thread. 0 or -errno. */
HG_MUST_USE int hg_worker_start(struct hg_worker *worker, struct hg_front *front, unsigned index,
                                struct hg_directory *directory);
/* From any other thread: hand over, poke, end. Each posts a letter and returns; 0 or -ENOMEM. */
HG_MUST_USE int hg_worker_give(struct hg_worker *worker, const struct hg_client *client);
HG_MUST_USE int hg_worker_give_client(struct hg_worker *worker, int fd, const struct hg_addr *peer,
                                      bool over_limit);
HG_MUST_USE int hg_worker_give_directory(struct hg_worker *worker, struct hg_directory *directory);
/* Also from other workers: open its instance of the generation, if some worker still uses that. */
HG_MUST_USE int hg_worker_give_generation(struct hg_worker *worker,
                                          struct hg_generation *generation);
/* Also from other workers: pass over the held requests. */
void hg_worker_give_tick(struct hg_worker *worker);
/* Each connection closes at the first moment at which its client waits for nothing. */
void hg_worker_begin_leave(struct hg_worker *worker);
/* Nothing more is carried out; each connection closes when what is under way is answered, and what
   is held is refused. */
void hg_worker_begin_drain(struct hg_worker *worker);
/* Ends the thread: closes its clients and stores. Letters may still be posted to it. */
void hg_worker_stop(struct hg_worker *worker);
/* When all have stopped and nobody else posts any more: delivers the letters that are left, and
   those that they lead to, and frees the workers. */
void hg_workers_free(struct hg_worker *workers, unsigned count);

/* Frames that a tenant may have in this turn. While several are active it is what one connection
   may have, so that ten connections are not ten shares; and a turn has an end in any case, so that
   who comes next does not wait behind a flood. */
static inline unsigned hg_lane_share(const struct hg_worker *worker)
{
    bool alone = worker->active_lanes <= 1 && worker->active_lanes_before <= 1;
    return alone ? HG_LANE_FRAMES_ALONE : HG_SESSION_FRAMES_PER_TURN;
}

/* A session or request refers to the lane, or no longer does. */
void hg_worker_use_lane(struct hg_worker *worker, struct hg_lane *lane);
void hg_worker_leave_lane(struct hg_worker *worker, struct hg_lane *lane);

/* The worker's own instance of the upstream, opened at first use; NULL when that fails. */
struct hg_store *hg_worker_store(struct hg_worker *worker, struct hg_upstream *upstream);
/* As whom requests of the lane go to this store of the worker; HG_IDENTITY_NONE, which the store
   refuses, when what the lane knows is of another generation. */
uint32_t hg_worker_identity(const struct hg_worker *worker, const struct hg_lane *lane,
                            const struct hg_store *store);

#endif
