// gatescene - a stage whose tenants need tickets, of which the test says how many there are
// SPDX-License-Identifier: BSD-3-Clause
#ifndef GATESCENE_H
#define GATESCENE_H

#include <string.h>

#include "base/clock.h"
#include "front/gate.h"
#include "scene.h"

static const uint16_t gate_xerror[] = {0x07, 0x0b, 0};

static inline struct hg_gateshare *gate_share(struct stage *stage)
{
    return hg_gateset_at(stage->upstreams[0].upstream.gates, 0);
}

static inline struct hg_gate_holder *gate_holder(struct stage *stage, enum hg_gate_place place)
{
    if (place == HG_GATE_INGRESS)
        return &stage->front.ingress;
    return &gate_share(stage)->holders[place - HG_GATE_READ];
}

static inline int64_t gate_out(struct stage *stage, enum hg_gate_place place)
{
    struct hg_gate_holder *holder = gate_holder(stage, place);
    return hg_ticket_out(&holder->ticket) - hg_gate_holder_kept(holder);
}

static inline int64_t gate_waiting(struct stage *stage, enum hg_gate_place place)
{
    return atomic_load(&gate_holder(stage, place)->waiting);
}

static inline void gate_resize(struct stage *stage, enum hg_gate_place place, int64_t size)
{
    hg_gate_poke(&stage->front, hg_ticket_resize(&gate_holder(stage, place)->ticket, size));
}

/* Of one counter of a holder, over all workers. */
static inline uint64_t gate_sum(struct stage *stage, enum hg_gate_place place, const char *field)
{
    uint64_t sums[HG_GATE_STATS];
    hg_gate_holder_sum(gate_holder(stage, place), sums);
    for (unsigned s = 0; s < HG_GATE_STATS; s++)
        if (strcmp(hg_gate_stat_rows[s].field, field) == 0)
            return sums[s];
    fail_msg("no counter %s", field);
    return 0;
}

/* The look at those who wait that is due each 5 ms, now. */
static inline void gate_look(struct stage *stage)
{
    for (unsigned w = 0; w < stage->worker_count; w++) {
        struct hg_worker *worker = &stage->workers[w];
        worker->loop.now_us = worker->loop.clock();
        worker->line_timer.fn(&worker->line_timer);
    }
    stage_run(stage);
}

static inline void gate_wait(struct stage *stage, uint64_t us)
{
    stage_advance(us);
    gate_look(stage);
}

/* The same in steps of 5 ms, as a server would look. */
static inline void gate_pass(struct stage *stage, uint64_t us)
{
    for (uint64_t at = 0; at < us; at += 5000)
        gate_wait(stage, us - at < 5000 ? us - at : 5000);
}

static inline struct hg_bucket *gate_bucket(struct stage *stage, const char *name)
{
    struct hg_bucket *bucket = stage_bucket(stage, name, 0, HG_UNITS_UNLIMITED);
    atomic_store(&bucket->ticket_mode, HG_MODE_ENFORCE);
    return bucket;
}

/* All that was taken is there again, and what was counted agrees. */
static inline void gate_check(struct stage *stage)
{
    for (enum hg_gate_place place = HG_GATE_INGRESS; place < HG_GATE_PLACES; place++) {
        struct hg_gate_holder *holder = gate_holder(stage, place);
        assert_int_equal(gate_out(stage, place), 0);
        assert_int_equal(atomic_load(&holder->waiting), 0);
        assert_int_equal(atomic_load(&holder->stranded), 0);
        assert_int_equal(atomic_load(&holder->held), 0);
        assert_int_equal(gate_sum(stage, place, "started"),
                         gate_sum(stage, place, "answered") + gate_sum(stage, place, "unanswered"));
        assert_int_equal(gate_sum(stage, place, "added"), gate_sum(stage, place, "removed"));
        assert_int_equal(gate_sum(stage, place, "exempt_started"),
                         gate_sum(stage, place, "exempt_finished"));
    }
    assert_int_equal(atomic_load(&gate_share(stage)->backlog), 0);
    for (unsigned w = 0; w < stage->worker_count; w++)
        assert_true(hg_list_empty(&stage->workers[w].lines_waiting));
}

/* The scene's bucket needs tickets, and its client knows the statuses from 0xff00 on. */
static inline void gate_init(struct scene *s)
{
    scene_init(s);
    atomic_store(&stage_find(&s->stage, "default")->ticket_mode, HG_MODE_ENFORCE);
}

static inline void gate_hello(struct stage *stage, struct client *client)
{
    client_add_hello(client, 7777, gate_xerror);
    assert_true(client_send(client));
    stage_expect(stage, client, HG_OPCODE_HELLO, 0, 7777);
}

static inline void gate_open(struct scene *s)
{
    scene_open(s);
    gate_hello(&s->stage, &s->client);
}

static inline void gate_start(struct scene *s)
{
    gate_init(s);
    gate_open(s);
}

/* Another client, of the bucket that anybody starts in. */
static inline void gate_connect(struct stage *stage, unsigned worker, struct client *client)
{
    stage_connect(stage, worker, client);
    gate_hello(stage, client);
}

static inline void gate_close(struct scene *s)
{
    client_close(&s->client);
    stage_run(&s->stage);
    assert_int_equal(stage_sessions(&s->stage), 0);
    gate_check(&s->stage);
    stage_close(&s->stage);
}

#endif
