// overload_score - see overload_score.h
// SPDX-License-Identifier: BSD-3-Clause
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "overload_score.h"
#include "simseeds.h"

#define WINDOW_BINS 10 /* 100 ms */
#define STAYS       30 /* windows: 3 s */
#define TAIL_US     4000000
#define BAND        .05
#define DEVIATIONS  3
#define WORTH       .8 /* of what could be had: less is no goal to converge to */

#define DOUBLES (sizeof(struct overload_score) / sizeof(double))

double overload_capacity(const struct overload_setup *setup, const struct overload_phase *phase)
{
    return setup->backend.mu * phase->speed * setup->backend.knee * phase->knee;
}

static double best_of(const struct overload_setup *setup, const struct overload_phase *phase)
{
    return fmin(phase->load, overload_capacity(setup, phase));
}

double overload_good_per_s(const struct overload_tally *tally, uint64_t from_us, uint64_t to_us)
{
    uint64_t good = 0, first = from_us / OVERLOAD_BIN_US, end = to_us / OVERLOAD_BIN_US;
    for (uint64_t i = first; i < end; i++)
        good += tally->bins[i].good;
    return (double)good * 1e6 / (double)((end - first) * OVERLOAD_BIN_US);
}

/* Convergence */

static uint64_t end_of(const struct overload_setup *setup, uint32_t phase)
{
    return phase + 1 < setup->phase_count ? setup->phases[phase + 1].from_us : setup->end_us;
}

static bool stays(const struct overload_tally *tally, uint64_t from_us, double mean, double noise)
{
    const uint64_t window_us = WINDOW_BINS * OVERLOAD_BIN_US;
    double whole = overload_good_per_s(tally, from_us, from_us + STAYS * window_us);
    double band = fmax(BAND, DEVIATIONS * noise);
    /* Both means vary. */
    double whole_band = fmax(BAND, DEVIATIONS * noise * sqrt(2. / STAYS));
    if (fabs(whole - mean) > whole_band * mean)
        return false;
    for (uint32_t i = 0; i < STAYS; i++) {
        uint64_t at_us = from_us + i * window_us;
        if (fabs(overload_good_per_s(tally, at_us, at_us + window_us) - mean) > band * mean)
            return false;
    }
    return true;
}

static double converged_s(const struct overload_setup *setup, const struct overload_tally *tally,
                          uint32_t phase, double mean)
{
    const uint64_t window_us = WINDOW_BINS * OVERLOAD_BIN_US;
    uint64_t from_us = setup->phases[phase].from_us, end_us = end_of(setup, phase);
    double noise = setup->backend.noise, held = mean * (double)window_us * 1e-6;
    if (mean < WORTH * best_of(setup, &setup->phases[phase]) || mean <= 0)
        return OVERLOAD_NOT_YET_S;
    for (uint64_t at_us = from_us; at_us + STAYS * window_us <= end_us; at_us += window_us)
        if (stays(tally, at_us, mean, sqrt(1 / held + noise * noise)))
            return (double)(at_us - from_us) * 1e-6;
    return OVERLOAD_NOT_YET_S;
}

static void score_phases(const struct overload_setup *setup, const struct overload_tally *tally,
                         struct overload_score *score)
{
    for (uint32_t i = 0; i < setup->phase_count; i++) {
        uint64_t end_us = end_of(setup, i), from_us = setup->phases[i].from_us;
        if (end_us - from_us > TAIL_US)
            from_us = end_us - TAIL_US;
        double mean = overload_good_per_s(tally, from_us, end_us);
        double best = best_of(setup, &setup->phases[i]);
        score->phases[i].goodput = best > 0 ? mean / best : 0;
        score->phases[i].converged_s = converged_s(setup, tally, i, mean);
    }
}

/* The rest */

double overload_jain(const uint32_t *values, uint32_t count)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += values[i];
        squares += (double)values[i] * values[i];
    }
    return squares > 0 ? sum * sum / (count * squares) : 0;
}

static int compare_latencies(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static double percentile_ms(const struct overload_tally *tally, double part)
{
    if (tally->latency_count == 0)
        return 0;
    return tally->latencies_us[(uint32_t)(part * (tally->latency_count - 1))] / 1e3;
}

static void score_sizes(const struct overload_setup *setup, const struct overload_tally *tally,
                        struct overload_score *score)
{
    uint32_t first = (uint32_t)(setup->from_us / OVERLOAD_INTERVAL_US), count = 0;
    double sum = 0, squares = 0, turns = 0, changes = 0;
    int last = 0;
    for (uint32_t i = first; i < tally->size_count; i++) {
        double size = tally->sizes[i];
        sum += size;
        squares += size * size;
        count++;
        if (i == first || tally->sizes[i] == tally->sizes[i - 1])
            continue;
        int direction = tally->sizes[i] > tally->sizes[i - 1] ? 1 : -1;
        changes++;
        turns += last != 0 && direction != last;
        last = direction;
    }
    double tens = (double)(setup->end_us - setup->from_us) / 1e7;
    score->size = sum / count;
    score->variation = sqrt(fmax(0, squares / count - score->size * score->size)) / score->size;
    score->turns = turns / tens;
    score->changes = changes / tens;
    score->inside = (double)tally->inside / count;
}

void overload_score(const struct overload_setup *setup, const struct overload_tally *tally,
                    struct overload_score *ret_score)
{
    struct overload_score score = {.peak = tally->peak};
    double seconds = (double)(setup->end_us - setup->from_us) * 1e-6, best = 0;
    for (uint32_t i = (uint32_t)(setup->from_us / OVERLOAD_BIN_US); i < tally->bin_count; i++) {
        score.answered += tally->bins[i].answered / seconds;
        score.refused += tally->bins[i].refused / seconds;
        score.waited += tally->bins[i].waited / seconds;
        score.timed_out += tally->bins[i].timed_out / seconds;
    }
    for (uint32_t i = 0; i < setup->phase_count; i++) {
        uint64_t from_us = setup->phases[i].from_us, end_us = end_of(setup, i);
        if (from_us < setup->from_us)
            from_us = setup->from_us;
        if (end_us > from_us)
            best += best_of(setup, &setup->phases[i]) * (double)(end_us - from_us) * 1e-6 / seconds;
    }
    score.goodput = overload_good_per_s(tally, setup->from_us, setup->end_us) / best;
    if (tally->latency_count > 0)
        qsort(tally->latencies_us, tally->latency_count, sizeof(*tally->latencies_us),
              compare_latencies);
    score.p50_ms = percentile_ms(tally, .5);
    score.p99_ms = percentile_ms(tally, .99);
    score.jain = overload_jain(tally->good_of, setup->tenants);
    score.jain_others = overload_jain(tally->good_of + 1, setup->tenants - 1);
    for (uint32_t i = 1; i < setup->tenants; i++)
        score.good_others += tally->good_of[i] / seconds;
    score_sizes(setup, tally, &score);
    score_phases(setup, tally, &score);
    *ret_score = score;
}

/* Over seeds */

uint32_t overload_seeds(void)
{
    return sim_seeds(OVERLOAD_SEEDS);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Number by number: a score is nothing but doubles. */
static void take_medians(const struct overload_score *scores, uint32_t count,
                         struct overload_score *ret_median)
{
    double values[64], median[DOUBLES];
    for (size_t i = 0; i < DOUBLES; i++) {
        for (uint32_t s = 0; s < count; s++)
            memcpy(&values[s], (const char *)&scores[s] + i * sizeof(double), sizeof(double));
        qsort(values, count, sizeof(*values), compare_doubles);
        median[i] = (values[(count - 1) / 2] + values[count / 2]) / 2;
    }
    memcpy(ret_median, median, sizeof(median));
}

void overload_compare(const char *name, const struct overload_setup *setup, uint32_t seeds,
                      struct overload_row *ret_row)
{
    struct overload_score scores[64];
    seeds = seeds > 64 ? 64 : seeds;
    *ret_row =
        (struct overload_row){.name = name, .seeds = seeds, .phase_count = setup->phase_count};
    for (uint32_t c = 0; c < OVERLOAD_CONTROLS; c++) {
        for (uint32_t s = 0; s < seeds; s++) {
            struct overload_setup own = *setup;
            struct overload_tally tally;
            own.seed = s + 1;
            overload_run(&own, &overload_controls[c], &tally);
            overload_score(&own, &tally, &scores[s]);
            overload_tally_fini(&tally);
        }
        take_medians(scores, seeds, &ret_row->scores[c]);
    }
}

/* Print */

void overload_print_head(const char *title)
{
    printf("# %s\n"
           "#   %-9s goodput  p50 ms  p99 ms   Jain  answ/s  refused/s timed/s"
           "  waited/s    size  variat. turns changes  inside\n",
           title, "");
}

void overload_print(const struct overload_setup *setup, const struct overload_row *row)
{
    printf("#  %s: capacity %.0f/s, SLO %.0f ms, %u seeds\n", row->name,
           overload_capacity(setup, &setup->phases[0]), (double)setup->slo_us / 1e3,
           (unsigned)row->seeds);
    for (uint32_t c = 0; c < OVERLOAD_CONTROLS; c++) {
        const struct overload_score *score = &row->scores[c];
        printf(
            "#   %-9s   %5.3f %7.1f %7.1f  %5.3f %7.0f %10.0f %7.0f %9.0f %7.0f  %6.3f %6.1f %7.1f"
            " %7.1f\n",
            overload_controls[c].name, score->goodput, score->p50_ms, score->p99_ms, score->jain,
            score->answered, score->refused, score->timed_out, score->waited, score->size,
            score->variation, score->turns, score->changes, score->inside);
    }
}

void overload_print_phases(const struct overload_setup *setup, const struct overload_row *row)
{
    printf("#  %s, %u seeds: each phase, goodput at its end and s to converge\n#   %-9s", row->name,
           (unsigned)row->seeds, "");
    for (uint32_t i = 0; i < setup->phase_count; i++)
        printf("  %5.2fx%c", setup->phases[i].load / overload_capacity(setup, &setup->phases[0]),
               i + 1 < setup->phase_count ? ' ' : '\n');
    for (uint32_t c = 0; c < OVERLOAD_CONTROLS; c++) {
        printf("#   %-9s", overload_controls[c].name);
        for (uint32_t i = 0; i < setup->phase_count; i++) {
            const struct overload_phase_score *score = &row->scores[c].phases[i];
            printf("  %5.3f %4.1f", score->goodput, score->converged_s);
        }
        printf("\n");
    }
}
