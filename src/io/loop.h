// loop - one thread's event loop, cut into turns
// SPDX-License-Identifier: BSD-3-Clause
//
//   turn:  wait for events -> callbacks -> hooks in the order of their stage -> next turn
//
// Callbacks collect output; the hooks at the end of the turn send it, each connection once. That is
// what packs many clients' requests into one write. libevent does the waiting. The time is read
// once a turn. One thread owns a loop; other threads reach it through a mailbox.
#ifndef HG_IO_LOOP_H
#define HG_IO_LOOP_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/list.h"

/* Stages of the end of a turn, in order. */
enum hg_stage {
    HG_STAGE_READY,    /* clients with frames left over: more requests */
    HG_STAGE_BACKENDS, /* send to the stores */
    HG_STAGE_CLIENTS,  /* send to the clients */
    HG_STAGE_CLEANUP,  /* views end here: read transactions, deferred frees */
    HG_STAGES
};

struct hg_loop {
    struct event_base *base;
    uint64_t now_us;         /* monotonic, of this turn */
    uint64_t (*clock)(void); /* where it comes from: hg_now_us; tests set their own */
    uint64_t turns;
    uint64_t stamped_turn;
    struct hg_list hooks[HG_STAGES];
    struct hg_list *next_hook; /* runs after the one that runs now */
    bool again;                /* somebody has work left: the next turn does not wait */
    bool stopped;
};

struct hg_hook {
    struct hg_list node;
    struct hg_loop *loop;
    void (*fn)(struct hg_hook *hook);
};

/* 0 or -errno. */
HG_MUST_USE int hg_loop_init(struct hg_loop *loop);
void hg_loop_fini(struct hg_loop *loop);

/* Runs turns until hg_loop_stop. */
void hg_loop_run(struct hg_loop *loop);
/* From a callback or hook: return after this turn. */
void hg_loop_stop(struct hg_loop *loop);
/* One turn; waits only if `wait`. For tests, and what hg_loop_run does. */
void hg_loop_turn(struct hg_loop *loop, bool wait);

/* Calls hook->fn at the end of every turn until the hook is unhooked, which may be done from any
   hook. Within a stage hooks run in the order of their registration. */
void hg_loop_hook(struct hg_loop *loop, enum hg_stage stage, struct hg_hook *hook,
                  void (*fn)(struct hg_hook *));
/* From a hook too, whichever hook it is. */
void hg_loop_unhook(struct hg_hook *hook);

/* Reads the clock unless that was done in this turn: the first line of every callback. */
void hg_loop_stamp_slow(struct hg_loop *loop);

static inline void hg_loop_stamp(struct hg_loop *loop)
{
    if (loop->stamped_turn != loop->turns)
        hg_loop_stamp_slow(loop);
}

/* Makes the next turn poll instead of wait. */
static inline void hg_loop_again(struct hg_loop *loop)
{
    loop->again = true;
}

/* A timer that fires every `every_us` until hg_loop_timer_fini. 0 or -errno. It may fire a few
   milliseconds early, since libevent measures with a coarse clock: a callback that compares times
   arms its timer again when it finds nothing to do. */
struct hg_timer {
    struct event event;
    struct hg_loop *loop;
    void (*fn)(struct hg_timer *timer);
};
HG_MUST_USE int hg_loop_timer_init(struct hg_loop *loop, struct hg_timer *timer, uint64_t every_us,
                                   void (*fn)(struct hg_timer *));
/* Changes the interval, or fires once after `once_us` when the timer was made with every_us 0. */
HG_MUST_USE int hg_loop_timer_arm(struct hg_timer *timer, uint64_t us);
void hg_loop_timer_fini(struct hg_timer *timer);

#endif
