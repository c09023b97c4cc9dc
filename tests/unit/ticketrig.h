// ticketrig - workers with lines for one holder of tickets, in virtual time
// SPDX-License-Identifier: BSD-3-Clause
//
// The driver of core/ticket.h as a front end is one: tests make operations arrive, end and be
// killed, and let time pass. Pokes are delivered by settle(), so a test can do something between a
// poke and its effect; the other calls settle on their own unless `manual` is set. All may wait
// that want to: admission is the affair of t_ticketline_admit.c.
#ifndef HG_TESTS_UNIT_TICKETRIG_H
#define HG_TESTS_UNIT_TICKETRIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "core/ticket.h"
#include "core/ticketline.h"

#define RIG_WORKERS 16
#define RIG_START   1000000

enum op_state { OP_NEW, OP_WAITS, OP_RUNS, OP_ENDED, OP_LATE, OP_REFUSED, OP_KILLED };

struct op {
    struct hg_ticketline_waiter waiter;
    enum op_state state;
    uint32_t worker;
    bool exempt; /* as it was when it got in */
    uint64_t queued_us, number;
    uint64_t since_us; /* runs since */
};

struct rig {
    struct hg_ticket holder;
    struct hg_ticketline_conf conf;
    uint64_t now_us, timeout_us;
    uint32_t max_waiting, waiting; /* on all workers: the front's to count */
    uint64_t runs, most_run, pokes, late, killed, refused, granted;
    uint64_t exempt_started, exempt_ended, started, ended;
    bool manual, poked[RIG_WORKERS];
    struct hg_ticketline lines[RIG_WORKERS];
    struct hg_ticketline_tenant tenants[RIG_WORKERS];
};

static struct rig rig;

static inline void setup(int64_t size)
{
    memset(&rig, 0, sizeof rig);
    hg_ticket_init(&rig.holder, size);
    rig.now_us = RIG_START;
    rig.timeout_us = 1000000;
    rig.conf = (struct hg_ticketline_conf){.queue_timeout_us = 1000000, .flood_wait_us = 100000};
    rig.max_waiting = UINT32_MAX;
    for (uint32_t w = 0; w < RIG_WORKERS; w++) {
        hg_ticketline_init(&rig.lines[w]);
        hg_ticketline_tenant_init(&rig.tenants[w]);
    }
}

static inline void poke(uint32_t worker)
{
    if (worker == HG_TICKET_NOBODY)
        return;
    assert_true(worker < RIG_WORKERS);
    rig.pokes++;
    rig.poked[worker] = true;
}

static inline void run(struct op *op)
{
    op->state = OP_RUNS;
    op->since_us = rig.now_us;
    hg_ticketline_take(&rig.lines[op->worker], &rig.tenants[op->worker], rig.now_us);
    op->queued_us = op->waiter.since_us != 0 ? rig.now_us - op->waiter.since_us : 0;
    op->number = ++rig.granted;
    rig.started++;
    if (++rig.runs > rig.most_run)
        rig.most_run = rig.runs;
}

static inline struct op *op_of(struct hg_ticketline_waiter *waiter)
{
    return HG_CONTAINER_OF(waiter, struct op, waiter);
}

static inline void expire(uint32_t w)
{
    struct hg_ticketline_waiter *waiter;
    while ((waiter = hg_ticketline_expire(&rig.lines[w], &rig.conf, rig.now_us)) != NULL) {
        op_of(waiter)->state = OP_LATE;
        op_of(waiter)->queued_us = rig.now_us - waiter->since_us;
        rig.late++;
        rig.waiting--;
    }
}

static inline void serve(uint32_t w)
{
    struct hg_ticketline *line = &rig.lines[w];
    expire(w);
    while (line->count > 0 && hg_ticket_want(&rig.holder, w)) {
        rig.waiting--;
        run(op_of(hg_ticketline_pop(line, &rig.conf, rig.now_us)));
    }
    if (line->count == 0)
        poke(hg_ticket_leave(&rig.holder, w));
}

/* Delivers pokes until there are none. */
static inline void settle(void)
{
    for (bool any = true; any;) {
        any = false;
        for (uint32_t w = 0; w < RIG_WORKERS; w++) {
            if (!rig.poked[w])
                continue;
            any = true;
            rig.poked[w] = false;
            if (rig.lines[w].count > 0)
                serve(w);
        }
    }
}

static inline void settle_unless_manual(void)
{
    if (!rig.manual)
        settle();
}

/* Arrives at a worker; gives up at the deadline, or when the queue time-out is over. */
static inline enum op_state arrive_until(struct op *op, uint32_t w, uint64_t deadline_us)
{
    uint64_t end_us = rig.now_us + rig.timeout_us;
    *op = (struct op){.worker = w};
    if (rig.lines[w].count == 0 && hg_ticket_try(&rig.holder)) {
        run(op);
        return op->state;
    }
    op->waiter.since_us = op->waiter.came_us = rig.now_us;
    op->waiter.deadline_us = deadline_us < end_us ? deadline_us : end_us;
    if (rig.waiting >= rig.max_waiting) {
        rig.refused++;
        return op->state = OP_REFUSED;
    }
    if (op->waiter.deadline_us <= rig.now_us) {
        rig.late++;
        return op->state = OP_LATE;
    }
    op->state = OP_WAITS;
    rig.waiting++;
    hg_ticketline_push(&rig.lines[w], &rig.tenants[w], &op->waiter, rig.now_us);
    serve(w);
    settle_unless_manual();
    return op->state;
}

static inline enum op_state arrive(struct op *op, uint32_t w)
{
    return arrive_until(op, w, UINT64_MAX);
}

/* Exempt operations take no ticket, and are counted apart by what they were when they got in. */
static inline void arrive_exempt(struct op *op, uint32_t w)
{
    *op = (struct op){.worker = w, .exempt = true, .state = OP_RUNS};
    rig.exempt_started++;
}

static inline void end(struct op *op)
{
    assert_int_equal(op->state, OP_RUNS);
    op->state = OP_ENDED;
    if (op->exempt) {
        rig.exempt_ended++;
        return;
    }
    rig.runs--;
    rig.ended++;
    hg_ticketline_give(&rig.lines[op->worker], &rig.tenants[op->worker], rig.now_us - op->since_us,
                       true, rig.now_us);
    poke(hg_ticket_put(&rig.holder));
    settle_unless_manual();
}

/* Its client is gone while it waits. */
static inline void kill_waiter(struct op *op)
{
    struct hg_ticketline *line = &rig.lines[op->worker];
    assert_int_equal(op->state, OP_WAITS);
    op->state = OP_KILLED;
    rig.killed++;
    rig.waiting--;
    hg_ticketline_remove(line, &op->waiter, rig.now_us);
    if (line->count == 0)
        poke(hg_ticket_leave(&rig.holder, op->worker));
    settle_unless_manual();
}

static inline void resize(int64_t size)
{
    poke(hg_ticket_resize(&rig.holder, size));
    settle_unless_manual();
}

/* To that moment, with a stop at each end of a waiter's time. */
static inline void pass_until(uint64_t then_us)
{
    for (;;) {
        uint64_t next_us = then_us;
        for (uint32_t w = 0; w < RIG_WORKERS; w++) {
            uint64_t of_line_us = hg_ticketline_next_us(&rig.lines[w]);
            if (of_line_us < next_us)
                next_us = of_line_us;
        }
        if (next_us > rig.now_us)
            rig.now_us = next_us;
        for (uint32_t w = 0; w < RIG_WORKERS; w++) {
            if (rig.lines[w].count == 0)
                continue;
            expire(w);
            if (rig.lines[w].count == 0)
                poke(hg_ticket_leave(&rig.holder, w));
        }
        settle_unless_manual();
        if (next_us == then_us)
            return;
    }
}

static inline void pass(uint64_t us)
{
    pass_until(rig.now_us + us);
}

static inline void assert_holder(int64_t size, int64_t out, int64_t available)
{
    assert_int_equal(hg_ticket_size(&rig.holder), size);
    assert_int_equal(hg_ticket_out(&rig.holder), out);
    assert_int_equal(hg_ticket_available(&rig.holder), available);
}

#endif
