// overload_case - see overload_case.h
// SPDX-License-Identifier: BSD-3-Clause
#include <math.h>
#include "overload_case.h"

#define STEADY_S 10
#define LIGHT_S  2  /* at first, */
#define LIGHT    .5 /* at this load */

/* Scores of two controllers that differ by less than this part do not differ; neither do times
   within one window. */
#define TIE      .01
#define WINDOW_S .1

static const struct overload_backend stores[] = {
    [OVERLOAD_SMALL] = {.mu = 100, .knee = 20},
    [OVERLOAD_LARGE] = {.mu = 312.5, .knee = 64},
    [OVERLOAD_FAST] = {.mu = 5000, .knee = 8},
};

/* Of each tenant: more clients ask for more. */
static const uint32_t sessions[] = {
    [OVERLOAD_SMALL] = 20,
    [OVERLOAD_LARGE] = 200,
    [OVERLOAD_FAST] = 400,
};

struct overload_setup overload_steady(enum overload_store store, double t, double load)
{
    struct overload_setup setup = {
        .backend = stores[store],
        .slo_us = OVERLOAD_SLO_US,
        .tenants = 10,
        .sessions = sessions[store],
        .heavy = 1,
        .heavy_sessions = sessions[store],
        .reads = .5,
        .batch = 1,
    };
    setup.backend.t = t;
    setup.backend.noise = .05;
    overload_add_phase(&setup, 0, LIGHT, 1, 1);
    overload_add_phase(&setup, LIGHT_S, load, 1, 1);
    overload_set_end(&setup, STEADY_S / 2., STEADY_S);
    return setup;
}

void overload_add_phase(struct overload_setup *setup, double from_s, double load, double speed,
                        double knee)
{
    setup->phases[setup->phase_count++] = (struct overload_phase){
        .from_us = (uint64_t)(from_s * 1e6),
        .load = load * setup->backend.mu * setup->backend.knee,
        .speed = speed,
        .knee = knee,
    };
}

void overload_set_end(struct overload_setup *setup, double from_s, double end_s)
{
    setup->from_us = (uint64_t)(from_s * 1e6);
    setup->end_us = (uint64_t)(end_s * 1e6);
}

/* Is it below all others, by more than a tie and more than `slack`? Higher is better. */
static bool is_below_all(const struct overload_row *row, enum overload_which which,
                         double (*worth)(const struct overload_score *, uint32_t), double slack,
                         uint32_t phase, const char *what)
{
    double ours = worth(&row->scores[which], phase);
    double apart = fmax(TIE * fabs(ours), slack);
    for (uint32_t c = 0; c < OVERLOAD_FIVE; c++)
        if (c != which && worth(&row->scores[c], phase) <= ours + apart)
            return false;
    printf("#  %s is the worst in '%s', %s (phase %u): %g\n", overload_controls[which].name,
           row->name, what, (unsigned)phase, ours);
    return true;
}

static double worth_goodput(const struct overload_score *score, uint32_t phase)
{
    (void)phase;
    return score->goodput;
}

static double worth_p99(const struct overload_score *score, uint32_t phase)
{
    (void)phase;
    /* Who answers nothing has no p99. */
    return score->answered > 0 ? -score->p99_ms : -1e9;
}

static double worth_jain(const struct overload_score *score, uint32_t phase)
{
    (void)phase;
    return score->jain;
}

static double worth_phase(const struct overload_score *score, uint32_t phase)
{
    return score->phases[phase].goodput;
}

static double worth_time(const struct overload_score *score, uint32_t phase)
{
    return -score->phases[phase].converged_s;
}

bool overload_is_worst(const struct overload_row *row, enum overload_which which)
{
    bool worst = is_below_all(row, which, worth_goodput, 0, 0, "goodput");
    worst |= is_below_all(row, which, worth_p99, 0, 0, "p99");
    worst |= is_below_all(row, which, worth_jain, 0, 0, "Jain's index");
    for (uint32_t i = 1; i < row->phase_count; i++) {
        worst |= is_below_all(row, which, worth_phase, 0, i, "goodput at the end of the phase");
        worst |= is_below_all(row, which, worth_time, WINDOW_S, i, "time to converge");
    }
    return worst;
}
