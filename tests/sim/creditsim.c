// creditsim - a driver of the credits in virtual time: workers, connections, a tick
// SPDX-License-Identifier: BSD-3-Clause
#include "creditsim.h"
#include <assert.h>
#include <string.h>

void sim_init(struct sim *sim, uint32_t workers, uint64_t capacity, uint32_t slot_ms,
              enum hg_free_pool free_pool, uint64_t seed)
{
    struct hg_credit_settings settings = {capacity, slot_ms, free_pool, 100};
    memset(sim, 0, sizeof *sim);
    sim->n_workers = workers;
    sim->prng.state = seed;
    sim->now_us = 1000000 + hg_prng_below(&sim->prng, 1000000);
    hg_credit_init(&sim->node, &settings, workers);
}

uint32_t sim_bucket(struct sim *sim, uint64_t reserved, uint64_t hard_limit)
{
    uint32_t b = sim->n_buckets++;
    assert(b < SIM_BUCKETS);
    sim->live[b] = &sim->buckets[b];
    hg_credit_bucket_init(&sim->node, &sim->buckets[b], sim->lanes[b], reserved, hard_limit);
    return b;
}

uint32_t sim_conns(struct sim *sim, uint32_t n, uint32_t bucket, uint32_t units,
                   uint64_t service_us)
{
    uint32_t first = sim->n_conns;
    assert(first + n <= SIM_CONNS);
    for (uint32_t i = 0; i < n; i++) {
        struct sim_conn *conn = &sim->conns[sim->n_conns];
        *conn = (struct sim_conn){.worker = sim->n_conns % sim->n_workers,
                                  .bucket = bucket,
                                  .units = units,
                                  .service_us = service_us,
                                  .at_us = sim->now_us};
        sim->n_conns++;
        hg_credit_join(&sim->buckets[bucket]);
    }
    return first;
}

static void poke(struct sim *sim, uint64_t workers, uint32_t b)
{
    for (uint32_t i = 0; i < sim->n_workers; i++)
        if (workers >> i & 1)
            sim->workers[i].poked[b] = true;
}

static void tick(struct sim *sim)
{
    hg_credit_tick(&sim->node, sim->live, sim->n_buckets, sim->scratch, sim->now_us, &sim->tick);
    if (sim->tick.slot) {
        sim->slots++;
        assert(sim->slots < SIM_SLOTS);
    }
    for (uint32_t b = 0; b < sim->n_buckets; b++)
        poke(sim, sim->tick.poke, b);
}

void sim_start(struct sim *sim)
{
    tick(sim);
    for (uint32_t i = 0; i < sim->n_conns; i++)
        sim->conns[i].at_us = sim->now_us;
}

static struct hg_held held_of(const struct sim *sim, const struct sim_worker *worker, uint32_t b)
{
    struct hg_held held = {0};
    held.count = worker->count[b];
    for (uint32_t i = 0; i < held.count; i++)
        held.units += sim->conns[worker->list[b][i]].units;
    if (held.count > 0) {
        held.head_units = sim->conns[worker->list[b][0]].units;
        held.head_since_us = sim->conns[worker->list[b][0]].since_us;
    }
    return held;
}

static void take_advice(struct sim *sim, uint32_t w, uint32_t b, struct hg_held_advice advice)
{
    assert((advice.poke >> w & 1) == 0);
    if (advice.again)
        sim->workers[w].poked[b] = true;
    poke(sim, advice.poke, b);
}

static void unlink_at(struct sim_worker *worker, uint32_t b, uint32_t i)
{
    worker->count[b]--;
    memmove(&worker->list[b][i], &worker->list[b][i + 1],
            (worker->count[b] - i) * sizeof worker->list[b][0]);
}

/* The request runs; its answer comes after the service time. */
static void dispatch(struct sim *sim, struct sim_conn *conn)
{
    uint32_t slot = conn->charge.slot; // the first slot has number 1
    conn->admitted += conn->charge.units;
    if (!(conn->flags & (HG_CREDIT_UNTHROTTLED | HG_CREDIT_OBSERVE)) && slot <= SIM_SLOTS) {
        sim->admitted[conn->bucket][slot] += conn->charge.units;
        sim->pooled[slot] += conn->charge.pool_units;
    }
    conn->state = SIM_BUSY;
    conn->at_us = sim->now_us + conn->service_us;
}

static void request(struct sim *sim, struct sim_worker *worker, uint32_t c)
{
    struct sim_conn *conn = &sim->conns[c];
    struct hg_credit_bucket *bucket = &sim->buckets[conn->bucket];
    unsigned flags = conn->flags;
    enum hg_credit_verdict verdict;
    if (conn->read_max > 0)
        conn->units = hg_readcost_estimate(&worker->cost[conn->bucket]);
    verdict = hg_credit_decide(&sim->node, bucket, conn->units, flags, &conn->charge);

    if (verdict == HG_CREDIT_PASS || (flags & HG_CREDIT_OBSERVE)) {
        conn->refused += verdict == HG_CREDIT_HOLD;
        dispatch(sim, conn);
        return;
    }
    if (conn->nonblocking) {
        conn->refused++;
        conn->at_us =
            sim->now_us + hg_credit_next_us(&sim->node, bucket, conn->charge.reason, sim->now_us);
        return;
    }
    conn->state = SIM_HELD;
    conn->since_us = sim->now_us;
    worker->list[conn->bucket][worker->count[conn->bucket]++] = c;
    worker->charge = conn->charge;
    worker->bucket = conn->bucket;
    worker->step = SIM_PUBLISH;
}

static void pass_step(struct sim *sim, uint32_t w)
{
    struct sim_worker *worker = &sim->workers[w];
    uint32_t b = worker->bucket;
    struct hg_credit_bucket *bucket = &sim->buckets[b];
    struct hg_held held;

    if (!worker->begun) {
        worker->begun = true;
        worker->ended = !hg_held_pass_begin(&sim->node, bucket, w, &worker->pass);
        return;
    }
    if (!worker->ended && worker->count[b] > 0) {
        uint32_t c = worker->list[b][0];
        struct sim_conn *conn = &sim->conns[c];
        worker->ended = hg_held_decide(&sim->node, bucket, &worker->pass, conn->units, 0,
                                       &conn->charge) != HG_CREDIT_PASS;
        if (!worker->ended) {
            unlink_at(worker, b, 0);
            worker->passed[worker->n_passed++] = c;
        }
        return;
    }
    held = held_of(sim, worker, b);
    take_advice(sim, w, b, hg_held_pass_done(&sim->node, bucket, w, &worker->pass, &held));
    for (uint32_t i = 0; i < worker->n_passed; i++) {
        struct sim_conn *conn = &sim->conns[worker->passed[i]];
        uint64_t waited = sim->now_us - conn->since_us;
        if (waited > conn->waited_us_max)
            conn->waited_us_max = waited;
        dispatch(sim, conn);
    }
    worker->n_passed = 0;
    worker->step = SIM_FREE;
}

/* The answer has come; or the request was refused after the credits, and gives back what it took.
 */
static void answer(struct sim *sim, struct sim_conn *conn)
{
    struct hg_credit_bucket *bucket = &sim->buckets[conn->bucket];
    conn->state = SIM_IDLE;
    if (conn->read_max > 0) {
        uint32_t real = 1 + (uint32_t)hg_prng_below(&sim->prng, conn->read_max);
        hg_readcost_tell(&sim->workers[conn->worker].cost[conn->bucket], real);
        sim->answered[conn->bucket][sim->slots] += real;
        if (hg_credit_settle(&sim->node, bucket, &conn->charge, real))
            poke(sim, hg_held_holders(&sim->node, bucket), conn->bucket);
    }
    if (!sim->undo_chance || hg_prng_below(&sim->prng, sim->undo_chance) != 0) {
        conn->done++;
        return;
    }
    if (conn->charge.slot <= SIM_SLOTS)
        sim->admitted[conn->bucket][conn->charge.slot] -= conn->charge.units;
    if (hg_credit_undo(&sim->node, bucket, &conn->charge))
        poke(sim, hg_held_holders(&sim->node, bucket), conn->bucket);
}

static bool is_ready(const struct sim *sim, const struct sim_conn *conn)
{
    return (conn->state == SIM_IDLE || conn->state == SIM_BUSY) && conn->at_us <= sim->now_us;
}

/* One step of a worker; false when it has nothing to do now. */
static bool step(struct sim *sim, uint32_t w)
{
    struct sim_worker *worker = &sim->workers[w];
    uint32_t start;
    struct hg_held held;

    if (worker->step == SIM_PUBLISH) {
        held = held_of(sim, worker, worker->bucket);
        worker->step = SIM_FREE;
        take_advice(
            sim, w, worker->bucket,
            hg_held_publish(&sim->node, &sim->buckets[worker->bucket], w, &held, &worker->charge));
        return true;
    }
    if (worker->step == SIM_PASS) {
        pass_step(sim, w);
        return true;
    }
    start = (uint32_t)hg_prng_below(&sim->prng, sim->n_conns + sim->n_buckets);
    for (uint32_t k = 0; k < sim->n_conns + sim->n_buckets; k++) {
        uint32_t i = (start + k) % (sim->n_conns + sim->n_buckets), b = i - sim->n_conns;
        if (i < sim->n_conns) {
            if (sim->conns[i].worker != w || !is_ready(sim, &sim->conns[i]))
                continue;
            if (sim->conns[i].state == SIM_BUSY) {
                answer(sim, &sim->conns[i]);
                return true;
            }
            request(sim, worker, i);
            return true;
        }
        if (!worker->poked[b])
            continue;
        worker->poked[b] = false;
        if (worker->count[b] == 0)
            continue; // as core/held.h says: nothing to do then
        worker->step = SIM_PASS;
        worker->bucket = b;
        worker->begun = worker->ended = false;
        return true;
    }
    return false;
}

/* A held connection of a worker between two steps goes away and comes back with a new request. */
static void reset_one(struct sim *sim)
{
    struct sim_conn *conn = &sim->conns[hg_prng_below(&sim->prng, sim->n_conns)];
    struct sim_worker *worker = &sim->workers[conn->worker];
    struct hg_held held;
    uint32_t i = 0;

    if (conn->state != SIM_HELD || worker->step != SIM_FREE)
        return;
    while (&sim->conns[worker->list[conn->bucket][i]] != conn)
        i++;
    unlink_at(worker, conn->bucket, i);
    conn->state = SIM_IDLE;
    conn->at_us = sim->now_us;
    held = held_of(sim, worker, conn->bucket);
    take_advice(
        sim, conn->worker, conn->bucket,
        hg_held_publish(&sim->node, &sim->buckets[conn->bucket], conn->worker, &held, NULL));
}

static bool any_step(struct sim *sim)
{
    uint32_t start =
        sim->unfair ? sim->n_workers - 1 : (uint32_t)hg_prng_below(&sim->prng, sim->n_workers);
    for (uint32_t k = 0; k < sim->n_workers; k++)
        if (step(sim, (start + k) % sim->n_workers)) {
            sim->steps++;
            return true;
        }
    return false;
}

void sim_settle(struct sim *sim)
{
    uint64_t limit = sim->steps + 50000000;
    while (any_step(sim))
        assert(sim->steps < limit);
}

static uint64_t next_event_us(const struct sim *sim)
{
    uint64_t at = hg_credit_due_us(&sim->node);
    for (uint32_t i = 0; i < sim->n_conns; i++)
        if ((sim->conns[i].state == SIM_IDLE || sim->conns[i].state == SIM_BUSY) &&
            sim->conns[i].at_us < at)
            at = sim->conns[i].at_us;
    return at;
}

void sim_run(struct sim *sim, uint64_t slots)
{
    uint64_t end = sim->slots + slots;
    while (sim->slots < end) {
        if (sim->reset_chance && hg_prng_below(&sim->prng, sim->reset_chance) == 0)
            reset_one(sim);
        if (sim->tick_chance && hg_prng_below(&sim->prng, sim->tick_chance) == 0) {
            sim->now_us = hg_credit_due_us(&sim->node);
            tick(sim);
        }
        if (any_step(sim))
            continue;
        sim->now_us = next_event_us(sim);
        if (sim->now_us < hg_credit_due_us(&sim->node))
            continue;
        sim->complete[sim->slots] = true;
        tick(sim);
    }
}

double sim_jain(const double *x, uint32_t n)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += x[i];
        squares += x[i] * x[i];
    }
    return squares > 0 ? sum * sum / (n * squares) : 1;
}
