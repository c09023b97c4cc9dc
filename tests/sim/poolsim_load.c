// poolsim_load - the ten scenarios of Gel's pool benchmark
// SPDX-License-Identifier: BSD-3-Clause
//
// Source: Gel's test suite of its connection pool (tests/test_server_pool.py), as numbers.
#include <stdlib.h>
#include "poolsim_load.h"

#define MS 1000u

/* Of connects and disconnects, and of queries. */
#define CONNECT_FLOOR_US (10 * MS)
#define QUERY_FLOOR_US   (1 * MS)

static void row(struct poolsim_load *load, uint32_t db, uint32_t start_ms, uint32_t end_ms,
                uint32_t qps, uint32_t cost_ms, uint32_t spread_ms)
{
    poolsim_load_row(load, db, start_ms * load->scale, end_ms * load->scale, qps, cost_ms * MS,
                     spread_ms * MS);
}

static void rows(struct poolsim_load *load, uint32_t first, uint32_t last, uint32_t start_ms,
                 uint32_t end_ms, uint32_t qps, uint32_t cost_ms, uint32_t spread_ms)
{
    for (uint32_t db = first; db <= last; db++)
        row(load, db, start_ms, end_ms, qps, cost_ms, spread_ms);
}

void poolsim_load_row(struct poolsim_load *load, uint32_t db, uint64_t start_ms, uint64_t end_ms,
                      uint32_t qps, uint64_t cost_us, uint64_t spread_us)
{
    if (load->row_count == POOLSIM_ROWS)
        abort();
    load->rows[load->row_count++] = (struct poolsim_row){
        db, start_ms * MS, end_ms * MS, qps, {cost_us, spread_us, QUERY_FLOOR_US}};
    if (db >= load->setup.conf.dbs)
        load->setup.conf.dbs = db + 1;
}

static void part(struct poolsim_load *load, struct poolsim_part part)
{
    load->parts[load->part_count++] = part;
}

static void spread(struct poolsim_load *load, uint32_t first, uint32_t last, double v90, double v60,
                   double v100, double weight)
{
    part(load, (struct poolsim_part){.measure = POOLSIM_SPREAD,
                                     .a = {first, last},
                                     .v100 = v100,
                                     .v90 = v90,
                                     .v60 = v60,
                                     .v0 = 2,
                                     .weight = weight});
}

static void overhead(struct poolsim_load *load, double weight)
{
    part(load, (struct poolsim_part){.measure = POOLSIM_OVERHEAD,
                                     .v100 = 0,
                                     .v90 = .1,
                                     .v60 = .2,
                                     .v0 = .5,
                                     .weight = weight});
}

static void size(struct poolsim_load *load, uint32_t capacity, uint32_t connect_ms,
                 uint32_t spread_ms)
{
    load->setup.conf.capacity = capacity;
    load->setup.connect = (struct poolsim_cost){connect_ms * MS, spread_ms * MS, CONNECT_FLOOR_US};
}

static void groups_overload(struct poolsim_load *load)
{
    size(load, 6, 50, 10);
    rows(load, 0, 5, 0, 500, 50, 30, 5);
    rows(load, 6, 11, 300, 700, 50, 30, 5);
    rows(load, 0, 5, 600, 800, 50, 30, 5);
    spread(load, 0, 5, .25, .5, 0, .18);
    spread(load, 6, 11, .1, .3, 0, .28);
    spread(load, 0, 11, .45, .7, .2, .48);
    overhead(load, .06);
}

static void fast_and_slow(struct poolsim_load *load)
{
    size(load, 100, 40, 11);
    rows(load, 0, 5, 0, 500, 1500, 1, 5);
    rows(load, 6, 11, 300, 700, 700, 30, 1);
    rows(load, 0, 5, 600, 800, 700, 60, 10);
    spread(load, 0, 5, .2, .3, 0, .15);
    spread(load, 6, 11, .05, .2, 0, .25);
    spread(load, 0, 11, .75, 1.0, .55, .45);
    overhead(load, .15);
}

static void equal_overload(struct poolsim_load *load)
{
    size(load, 100, 40, 11);
    rows(load, 0, 5, 0, 800, 5000, 10, 5);
    spread(load, 0, 5, .1, .2, 0, .85);
    overhead(load, .15);
}

static void unequal_costs(struct poolsim_load *load)
{
    size(load, 50, 40, 11);
    for (uint32_t i = 0; i < 6; i++)
        row(load, i, 0, 800, 1000, 10 * (i + 1), 5 * (i + 1));
    spread(load, 0, 5, .1, .2, 0, .90);
    overhead(load, .10);
}

static void transitions(struct poolsim_load *load)
{
    size(load, 6, 150, 50);
    for (uint32_t i = 0; i < 6; i++)
        row(load, i, i * 100, 500 + i * 100, 150, 20, 5);
    rows(load, 6, 11, 300, 700, 50, 8, 3);
    rows(load, 0, 5, 600, 800, 50, 3, 2);
    spread(load, 0, 5, .4, .8, 0, .05);
    spread(load, 6, 11, .4, .8, 0, .25);
    part(load, (struct poolsim_part){POOLSIM_P75_RATIO, {0, 5}, {6, 11}, 30, 5, 2, 1, .45});
    overhead(load, .15);
    part(load,
         (struct poolsim_part){
             .measure = POOLSIM_ENDING, .v100 = 6, .v90 = 5, .v60 = 4, .v0 = 3, .weight = .10});
}

static void one_db(struct poolsim_load *load)
{
    size(load, 6, 150, 50);
    for (uint32_t i = 0; i < 6; i++)
        row(load, 0, i * 100, 500 + i * 100, 150, 20, 5);
    overhead(load, 1.0);
}

static void rare_beside_greedy(struct poolsim_load *load)
{
    size(load, 6, 50, 10);
    row(load, 1, 0, 1000, 500, 40, 5);
    row(load, 2, 100, 300, 30, 30, 5);
    row(load, 2, 600, 900, 30, 10, 5);
    part(load, (struct poolsim_part){POOLSIM_P99_RATIO, {1, 1}, {2, 2}, 100, 50, 10, 1, .20});
    part(load, (struct poolsim_part){POOLSIM_P75_RATIO, {1, 1}, {2, 2}, 200, 100, 20, 1, .40});
    overhead(load, .40);
}

static void reuse(struct poolsim_load *load, uint32_t f)
{
    size(load, 100, 0, 0);
    row(load, 1, 0, 100, f / 32, 10, 0);
    row(load, 1, 100, 200, f / 16, 10, 0);
    row(load, 1, 200, 600, f / 8, 10, 0);
    overhead(load, 1.0);
}

static void preheated(struct poolsim_load *load, uint32_t f)
{
    size(load, 100, 10, 5);
    row(load, 1, 0, 100, f / 32, 10, 5);
    row(load, 1, 100, 400, f / 16, 10, 5);
    row(load, 2, 500, 600, f / 32, 10, 5);
    row(load, 2, 600, 1000, f / 16, 10, 5);
    row(load, 3, 700, 800, f / 16, 10, 5);
    row(load, 3, 800, 900, f / 8, 10, 5);
    spread(load, 1, 3, .5, 1, .2, .10);
    part(load, (struct poolsim_part){POOLSIM_P99, {1, 3}, {1, 3}, .001, .002, .004, .05, .10});
    part(load, (struct poolsim_part){POOLSIM_P75, {1, 3}, {1, 3}, .0001, .0002, .0004, .005, .20});
    overhead(load, .60);
}

static void collection(struct poolsim_load *load, uint32_t f)
{
    size(load, 100, 10, 5);
    row(load, 1, 0, 1000, f / 32, 10, 5);
    row(load, 2, 400, 600, f / 32 * 31, 10, 5);
    part(
        load,
        (struct poolsim_part){
            .measure = POOLSIM_ENDING, .v100 = 10, .v90 = 20, .v60 = 40, .v0 = 100, .weight = 1.0});
}

void poolsim_load_get(uint32_t number, uint32_t scale, uint64_t seed, uint32_t f,
                      struct poolsim_load *ret_load)
{
    static void (*const fixed[])(struct poolsim_load *) = {
        groups_overload, fast_and_slow, equal_overload,     unequal_costs,
        transitions,     one_db,        rare_beside_greedy,
    };
    *ret_load = (struct poolsim_load){.number = number, .scale = scale};
    if (number <= 7)
        fixed[number - 1](ret_load);
    else if (number == 8)
        reuse(ret_load, f);
    else if (number == 9)
        preheated(ret_load, f);
    else
        collection(ret_load, f);
    ret_load->duration_us = (uint64_t)1100 * MS * scale;
    ret_load->setup.conf.depth = 1;
    ret_load->setup.conf.idle_us = (uint64_t)100 * MS * scale;
    ret_load->setup.disconnect = (struct poolsim_cost){6 * MS, 1500, CONNECT_FLOOR_US};
    ret_load->setup.seed = seed;
}

struct arrival {
    uint64_t at_us, tie, cost_us;
    uint32_t db;
};

static int compare_arrivals(const void *a, const void *b)
{
    const struct arrival *x = a, *y = b;
    if (x->at_us != y->at_us)
        return x->at_us < y->at_us ? -1 : 1;
    return x->tie < y->tie ? -1 : x->tie > y->tie;
}

void poolsim_load_submit(const struct poolsim_load *load, struct poolsim *sim)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < load->row_count; r++)
        n += (load->rows[r].end_us - load->rows[r].start_us) * load->rows[r].qps / 1000000;
    struct arrival *arrivals = calloc(n > 0 ? n : 1, sizeof(*arrivals));
    if (arrivals == NULL)
        abort();
    uint32_t k = 0;
    for (uint32_t r = 0; r < load->row_count; r++) {
        const struct poolsim_row *row_ = &load->rows[r];
        struct hg_prng prng = {load->setup.seed * 1000 + r};
        uint32_t count = (row_->end_us - row_->start_us) * row_->qps / 1000000;
        for (uint64_t i = 0; i < count; i++, k++) {
            arrivals[k].at_us = row_->start_us + i * 1000000 / row_->qps;
            arrivals[k].tie = hg_prng_next(&prng);
            arrivals[k].cost_us = poolsim_draw(&prng, &row_->cost);
            arrivals[k].db = row_->db;
        }
    }
    qsort(arrivals, n, sizeof(*arrivals), compare_arrivals);
    for (k = 0; k < n; k++)
        poolsim_submit(sim, arrivals[k].db, arrivals[k].at_us, arrivals[k].cost_us);
    free(arrivals);
}
