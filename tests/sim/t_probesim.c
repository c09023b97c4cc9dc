// t_probesim - probing behaves as the original was found to, its weaknesses included
// SPDX-License-Identifier: BSD-3-Clause
//
// Endless demand, holders of equal size. A backend with a knee at a total of 64 finishes as many
// requests as there are tickets up to the knee, and 64 (1 - t (n - 64) / 64) beyond it, at least a
// twentieth of 64; times Gaussian noise, drawn anew each interval. Options are the original's
// defaults. The stable total is looked at after 10, 30, 60 and 300 s, as a mean over 20 seeds.
//
// The last rows are what `adaptive` is for: probing ratchets to the maximum on a flat curve with
// noise, and stays above a knee for ever when the demand does.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "base/prng.h"
#include "core/probe.h"

#define SEEDS       20
#define KNEE        64
#define INTERVAL_US 100000
#define TIMES       4
#define SCALE       1000 /* requests for each that the model finishes: rounding is no noise */

static const uint32_t times_s[TIMES] = {10, 30, 60, 300};

struct row {
    const char *name;
    uint32_t start;
    double t, noise;
    double expected[TIMES], within[TIMES];
};

static double uniform(struct hg_prng *prng)
{
    return (double)((hg_prng_next(prng) >> 11) + 1) * 0x1p-53;
}

static double normal(struct hg_prng *prng)
{
    double radius = sqrt(-2 * log(uniform(prng)));
    return radius * cos(2 * M_PI * uniform(prng));
}

static double throughput(const struct row *row, double n, struct hg_prng *prng)
{
    double rate = n < KNEE ? n : KNEE * fmax(.05, 1 - row->t * (n - KNEE) / KNEE);
    return rate * fmax(0, 1 + row->noise * normal(prng));
}

static void run(const struct row *row, uint64_t seed, double ret_sizes[TIMES])
{
    struct hg_probe_conf conf = {
        .control = HG_PROBE_PROBING,
        .initial = row->start,
        .cores = 4,
        .min = 4,
        .max = 128,
        .read_write_ratio = .5,
        .weight = .2,
        .step = .1,
    };
    struct hg_probe probe;
    struct hg_probe_seen seen = {.now_us = 0};
    struct hg_prng prng = {seed};
    (void)hg_probe_init(&probe, &conf);
    hg_probe_step(&probe, &seen);
    for (uint32_t time = 0; time < TIMES; time++) {
        while (seen.now_us < times_s[time] * UINT64_C(1000000)) {
            double total = probe.size[HG_TICKET_READ] + probe.size[HG_TICKET_WRITE];
            seen.now_us += INTERVAL_US;
            for (int kind = 0; kind < HG_TICKET_KINDS; kind++) {
                seen.holder[kind].peak = seen.holder[kind].out = probe.size[kind];
                seen.holder[kind].waiting = 1;
            }
            seen.holder[HG_TICKET_READ].finished =
                (uint64_t)(throughput(row, total, &prng) * SCALE);
            hg_probe_step(&probe, &seen);
        }
        ret_sizes[time] = probe.stable_size;
    }
}

/* Means over the seeds against the table. */
static void check(const struct row *row)
{
    double sums[TIMES] = {0}, sizes[TIMES];
    bool fits = true;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run(row, seed, sizes);
        for (int i = 0; i < TIMES; i++)
            sums[i] += sizes[i];
    }
    printf("# %-40s", row->name);
    for (int i = 0; i < TIMES; i++) {
        double mean = sums[i] / SEEDS;
        bool near = fabs(mean - row->expected[i]) <= row->within[i];
        printf(" %6.1f (%3.0f)%s", mean, row->expected[i], near ? " " : "!");
        fits = fits && near;
    }
    printf("\n");
    assert_true(fits);
}

static void test_without_noise_it_finds_the_knee(void **state)
{
    const struct row row = {
        "start 16, t = 0.5, no noise", 16, .5, 0, {43, 62, 62, 62}, {2, 2, 2, 2}};
    (void)state;
    check(&row);
}

static void test_noise_carries_it_beyond_the_knee(void **state)
{
    const struct row row = {
        "start 16, t = 0.5, noise 3 percent", 16, .5, .03, {42, 73, 84, 100}, {4, 5, 8, 10}};
    (void)state;
    check(&row);
}

static void test_more_noise_carries_it_farther(void **state)
{
    const struct row row = {
        "start 16, t = 0.5, noise 10 percent", 16, .5, .1, {34, 90, 131, 151}, {5, 10, 12, 12}};
    (void)state;
    check(&row);
}

static void test_noise_ratchets_to_the_maximum(void **state)
{
    const struct row row = {
        "start 16, flat, noise 3 percent", 16, 0, .03, {42, 136, 253, 253}, {4, 10, 4, 4}};
    (void)state;
    check(&row);
}

static void test_never_comes_down_from_above_the_knee(void **state)
{
    const struct row row = {
        "start 200, t = 0.25, noise 3 percent", 200, .25, .03, {200, 200, 200, 200}, {2, 2, 2, 2}};
    (void)state;
    check(&row);
}

static void test_hardly_comes_down_from_the_maximum(void **state)
{
    const struct row row = {
        "start 256, t = 0.25, noise 3 percent", 256, .25, .03, {252, 252, 251, 252}, {4, 4, 4, 4}};
    (void)state;
    check(&row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_noise_it_finds_the_knee),
        cmocka_unit_test(test_noise_carries_it_beyond_the_knee),
        cmocka_unit_test(test_more_noise_carries_it_farther),
        cmocka_unit_test(test_noise_ratchets_to_the_maximum),
        cmocka_unit_test(test_never_comes_down_from_above_the_knee),
        cmocka_unit_test(test_hardly_comes_down_from_the_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
