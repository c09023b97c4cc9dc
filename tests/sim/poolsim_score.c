// poolsim_score - what a run of the simulation is worth
// SPDX-License-Identifier: BSD-3-Clause
//
// Percentiles are those of Gel's Python suite: deciles by the exclusive method, P75 the element
// floor(3n/4), P99 the element n - floor(n/99); variation is the population's standard deviation
// over the mean.
#include <math.h>
#include <stdlib.h>
#include "poolsim_load.h"

/* A query never served is still in line when the run is given up. */
#define GIVE_UP_FACTOR 30

/* Below this the groups count as equal. */
#define SPREAD_FLOOR .01

/* Waits of one db, sorted, seconds. */
struct waits {
    double *s;
    uint32_t count;
};

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* Who was never worked on has waited until the end. */
static double wait_s(const struct poolsim *sim, const struct poolsim_query *query)
{
    uint64_t end_us = query->begun_us > 0 ? query->begun_us
                      : query->end_us > 0 ? query->end_us
                                          : poolsim_now_us(sim);
    uint64_t us = end_us > query->at_us ? end_us - query->at_us : 1;
    return us / 1e6;
}

static struct waits get_waits(struct poolsim *sim, uint32_t first, uint32_t last, uint64_t from_us,
                              uint64_t to_us)
{
    struct waits waits = {calloc(poolsim_queries(sim) + 1, sizeof(double)), 0};
    if (waits.s == NULL)
        abort();
    for (uint32_t i = 0; i < poolsim_queries(sim); i++) {
        const struct poolsim_query *query = poolsim_query(sim, i);
        if (query->db >= first && query->db <= last && query->at_us >= from_us &&
            query->at_us < to_us && query->fate != POOLSIM_COMING)
            waits.s[waits.count++] = wait_s(sim, query);
    }
    qsort(waits.s, waits.count, sizeof(double), compare_doubles);
    return waits;
}

static double at_percent_ms(const struct waits *waits, double percent)
{
    if (waits->count == 0)
        return 0;
    uint32_t i = (uint32_t)ceil(waits->count * percent / 100);
    return waits->s[i > 0 ? i - 1 : 0] * 1e3;
}

double poolsim_wait_ms(struct poolsim *sim, uint32_t first, uint32_t last, uint64_t from_us,
                       uint64_t to_us, double percent)
{
    struct waits waits = get_waits(sim, first, last, from_us, to_us);
    double ms = at_percent_ms(&waits, percent);
    free(waits.s);
    return ms;
}

static double decile(const struct waits *waits, uint32_t i)
{
    uint64_t position = (uint64_t)i * (waits->count + 1);
    uint64_t j = position / 10;
    if (waits->count == 1)
        return waits->s[0];
    j = j < 1 ? 1 : j > waits->count - 1 ? waits->count - 1 : j;
    double over = (double)position - j * 10.0;
    return (waits->s[j - 1] * (10 - over) + waits->s[j] * over) / 10;
}

static double percentile(const struct waits *waits, enum poolsim_measure measure)
{
    uint32_t n = waits->count, i;
    if (n == 0)
        return 0;
    if (measure == POOLSIM_P75 || measure == POOLSIM_P75_RATIO)
        i = (uint64_t)n * 3 / 4;
    else
        i = n - n / 99;
    return waits->s[i < n ? i : n - 1];
}

static double variation(const double *values, uint32_t n)
{
    double mean = 0, square = 0;
    for (uint32_t i = 0; i < n; i++)
        mean += values[i] / n;
    for (uint32_t i = 0; i < n; i++)
        square += (values[i] - mean) * (values[i] - mean) / n;
    return sqrt(square) / mean;
}

static double spread(const struct waits *waits, uint32_t first, uint32_t last,
                     double *ret_arithmetic)
{
    double log_sum = 0;
    *ret_arithmetic = 0;
    for (uint32_t d = 1; d <= 9; d++) {
        double values[POOLSIM_DBS];
        uint32_t n = 0;
        for (uint32_t db = first; db <= last; db++)
            if (waits[db].count > 0)
                values[n++] = decile(&waits[db], d);
        double v = n > 0 ? variation(values, n) : 0;
        *ret_arithmetic += v / 9;
        log_sum += log(v > SPREAD_FLOOR ? v : SPREAD_FLOOR);
    }
    return exp(log_sum / 9);
}

static double mean_of(const struct waits *waits, uint32_t first, uint32_t last,
                      enum poolsim_measure measure)
{
    double sum = 0;
    for (uint32_t db = first; db <= last; db++)
        sum += percentile(&waits[db], measure);
    return sum / (last - first + 1);
}

/* Piecewise linear between the landmarks, which rise or fall. */
static double points(const struct poolsim_part *part, double value)
{
    const double at[] = {part->v0, part->v60, part->v90, part->v100}, worth[] = {0, 60, 90, 100};
    double sign = part->v100 > part->v0 ? 1 : -1;
    if (!isfinite(value) || sign * value <= sign * at[0])
        return 0;
    for (uint32_t i = 1; i < 4; i++)
        if (sign * value <= sign * at[i])
            return worth[i - 1] +
                   (worth[i] - worth[i - 1]) * (value - at[i - 1]) / (at[i] - at[i - 1]);
    return 100;
}

static double measure(const struct poolsim_part *part, const struct waits *waits,
                      struct poolsim_result *result)
{
    double arithmetic, value;
    switch (part->measure) {
    case POOLSIM_SPREAD:
        value = spread(waits, part->a.first, part->a.last, &arithmetic);
        if (result->arithmetic < 0)
            result->arithmetic = arithmetic;
        return value;
    case POOLSIM_OVERHEAD:
        return result->overhead;
    case POOLSIM_P75_RATIO:
    case POOLSIM_P99_RATIO:
        return mean_of(waits, part->a.first, part->a.last, part->measure) /
               mean_of(waits, part->b.first, part->b.last, part->measure);
    case POOLSIM_P75:
    case POOLSIM_P99:
        return mean_of(waits, part->a.first, part->a.last, part->measure);
    case POOLSIM_ENDING:
        return result->ending;
    }
    abort();
}

void poolsim_score(const struct poolsim_load *load, struct poolsim *sim,
                   struct poolsim_result *ret_result)
{
    const struct poolsim_counts *counts = poolsim_counts(sim);
    struct waits waits[POOLSIM_DBS];
    struct poolsim_result result = {.queries = poolsim_queries(sim), .arithmetic = -1};
    uint64_t last_us = 1;
    for (uint32_t i = 0; i < result.queries; i++) {
        const struct poolsim_query *query = poolsim_query(sim, i);
        if (query->fate != POOLSIM_ANSWERED)
            continue;
        result.answered++;
        if (query->end_us > last_us)
            last_us = query->end_us;
    }
    result.per_s = result.answered * 1e6 / last_us;
    result.ending = poolsim_count(sim);
    result.overhead = (double)(counts->moves + counts->closes) / result.queries;
    struct waits all = get_waits(sim, 0, POOLSIM_DBS, 0, POOLSIM_FOREVER);
    result.p50_ms = at_percent_ms(&all, 50);
    result.p99_ms = at_percent_ms(&all, 99);
    result.max_ms = at_percent_ms(&all, 100);
    free(all.s);
    for (uint32_t db = 0; db < load->setup.conf.dbs; db++)
        waits[db] = get_waits(sim, db, db, 0, POOLSIM_FOREVER);
    for (uint32_t i = 0; i < load->part_count; i++) {
        result.values[i] = measure(&load->parts[i], waits, &result);
        result.score += load->parts[i].weight * points(&load->parts[i], result.values[i]);
    }
    for (uint32_t db = 0; db < load->setup.conf.dbs; db++)
        free(waits[db].s);
    *ret_result = result;
}

void poolsim_load_run(const struct poolsim_load *load, const struct poolsim_pool *pool,
                      struct poolsim_result *ret_result)
{
    struct poolsim *sim = poolsim_new(&load->setup, pool);
    poolsim_load_submit(load, sim);
    bool drained = poolsim_run_out(sim, load->duration_us * GIVE_UP_FACTOR);
    if (poolsim_now_us(sim) < load->duration_us)
        poolsim_run(sim, load->duration_us);
    poolsim_score(load, sim, ret_result);
    ret_result->drained = drained;
    poolsim_free(sim);
}
