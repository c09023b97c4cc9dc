// t_probe - fixed sizes, and probing in the scenarios of MongoDB's own tests
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/probe.h"

#define MIN  4
#define MAX  128
#define TICK 1000

static struct hg_probe_conf conf_of(uint32_t initial)
{
    return (struct hg_probe_conf){
        .control = HG_PROBE_PROBING,
        .interval_us = 100000,
        .read_tickets = 11,
        .write_tickets = 7,
        .initial = initial,
        .cores = 4,
        .min = MIN,
        .max = MAX,
        .read_write_ratio = 0.5,
        .weight = 0.2,
        .step = 0.1,
    };
}

/* A probe and the clock that it sees. */
struct rig {
    struct hg_probe probe;
    uint64_t now_us;
};

static void set_up(struct rig *rig, const struct hg_probe_conf *conf)
{
    *rig = (struct rig){.now_us = 5000000};
    (void)hg_probe_init(&rig->probe, conf);
}

static void set_up_size(struct rig *rig, uint32_t initial)
{
    struct hg_probe_conf conf = conf_of(initial);
    set_up(rig, &conf);
}

static uint64_t probes(const struct hg_probe *probe)
{
    return probe->stats.probed_stable + probe->stats.probed_up + probe->stats.probed_down;
}

/* A step a tick later: so many were finished, and these were the peaks. Each but the first is
   counted in exactly one of the three states. */
static void step(struct rig *rig, uint64_t finished, int64_t reads, int64_t writes)
{
    uint64_t before = probes(&rig->probe);
    bool first = !rig->probe.started;
    struct hg_probe_seen seen = {.now_us = rig->now_us += TICK};
    seen.holder[HG_TICKET_READ].finished = finished / 2;
    seen.holder[HG_TICKET_WRITE].finished = finished - finished / 2;
    seen.holder[HG_TICKET_READ].peak = reads;
    seen.holder[HG_TICKET_WRITE].peak = writes;
    hg_probe_step(&rig->probe, &seen);
    assert_int_equal(probes(&rig->probe), before + (first ? 0 : 1));
}

static void expect_sizes(const struct rig *rig, uint32_t reads, uint32_t writes)
{
    assert_int_equal(rig->probe.size[HG_TICKET_READ], reads);
    assert_int_equal(rig->probe.size[HG_TICKET_WRITE], writes);
}

static void expect_between(const struct rig *rig, uint32_t low, uint32_t high)
{
    for (int kind = 0; kind < HG_TICKET_KINDS; kind++)
        assert_in_range(rig->probe.size[kind], low + 1, high - 1);
}

/* Of MongoDB: start and bounds */

static void test_initial_concurrency_validator(void **state)
{
    const uint32_t accepted[] = {0, 2 * MIN, 2 * MAX, 1, 3 * MAX};
    (void)state;
    for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
        struct hg_probe_conf conf = conf_of(accepted[i]);
        assert_null(hg_probe_check(&conf));
    }
}

static void test_initial_concurrency_no_warning_for_default(void **state)
{
    struct hg_probe_conf conf = conf_of(0);
    struct hg_probe probe;
    (void)state;
    assert_int_equal(hg_probe_init(&probe, &conf), HG_PROBE_INITIAL_FITS);
    assert_int_equal(probe.size[HG_TICKET_READ], 4); // 2 x 4 cores in total
    assert_int_equal(probe.size[HG_TICKET_WRITE], 4);
}

static void test_initial_concurrency_no_warning_in_range(void **state)
{
    struct hg_probe_conf conf = conf_of(2 * MIN);
    struct hg_probe probe;
    (void)state;
    assert_int_equal(hg_probe_init(&probe, &conf), HG_PROBE_INITIAL_FITS);
    conf.initial = 2 * MAX;
    assert_int_equal(hg_probe_init(&probe, &conf), HG_PROBE_INITIAL_FITS);
}

static void test_initial_concurrency_below_minimum_warns(void **state)
{
    struct hg_probe_conf conf = conf_of(MIN);
    struct hg_probe probe;
    (void)state;
    assert_int_equal(hg_probe_init(&probe, &conf), HG_PROBE_INITIAL_BELOW);
    assert_int_equal((int)probe.stable_size, 8);
}

static void test_initial_concurrency_above_maximum_warns(void **state)
{
    struct hg_probe_conf conf = conf_of(2 * MAX + 1);
    struct hg_probe probe;
    (void)state;
    assert_int_equal(hg_probe_init(&probe, &conf), HG_PROBE_INITIAL_ABOVE);
    assert_int_equal((int)probe.stable_size, 256);
}

static void test_min_concurrency_validator(void **state)
{
    struct hg_probe_conf conf = conf_of(0);
    (void)state;
    conf.min = 5;
    assert_null(hg_probe_check(&conf));
    conf.min = MAX;
    assert_null(hg_probe_check(&conf));
    conf.min = 0;
    assert_non_null(hg_probe_check(&conf));
    conf.min = MAX + 1;
    assert_non_null(hg_probe_check(&conf));
}

static void test_max_concurrency_validator(void **state)
{
    struct hg_probe_conf conf = conf_of(0);
    (void)state;
    conf.max = MIN;
    assert_null(hg_probe_check(&conf));
    conf.max = 256;
    assert_null(hg_probe_check(&conf));
    conf.max = MIN - 1;
    assert_non_null(hg_probe_check(&conf));
}

/* Of MongoDB: probes */

static void test_probe_up_succeeds(void **state)
{
    struct rig rig;
    (void)state;
    set_up_size(&rig, 64);
    step(&rig, 0, 0, 0);
    expect_sizes(&rig, 32, 32);
    step(&rig, 1, 32, 0);
    assert_int_equal(rig.probe.state, HG_PROBE_UP);
    expect_sizes(&rig, 35, 35);
    step(&rig, 2, 0, 0);
    assert_int_equal(rig.probe.state, HG_PROBE_STABLE);
    expect_between(&rig, 32, 35);
    assert_int_equal(rig.probe.stats.increased, 1);
    assert_int_equal(rig.probe.stats.amount_increased, 2);
    assert_int_equal(rig.probe.stats.decreased, 0);
}

static void test_probe_up_fails(void **state)
{
    struct rig rig;
    (void)state;
    set_up_size(&rig, 64);
    step(&rig, 0, 0, 0);
    step(&rig, 1, 32, 0);
    expect_sizes(&rig, 35, 35);
    step(&rig, 1, 0, 0);
    assert_int_equal(rig.probe.state, HG_PROBE_STABLE);
    expect_sizes(&rig, 32, 32);
    assert_int_equal(rig.probe.stats.increased, 0);
    assert_int_equal(rig.probe.stats.amount_increased, 0);
}

static void test_probe_down_succeeds(void **state)
{
    struct rig rig;
    (void)state;
    set_up_size(&rig, 64);
    step(&rig, 0, 0, 0);
    step(&rig, 1, 31, 0);
    assert_int_equal(rig.probe.state, HG_PROBE_DOWN);
    expect_sizes(&rig, 29, 29);
    step(&rig, 2, 0, 0);
    assert_int_equal(rig.probe.state, HG_PROBE_STABLE);
    expect_between(&rig, 29, 32);
    assert_int_equal(rig.probe.stats.decreased, 1);
    assert_int_equal(rig.probe.stats.amount_decreased, 2);
    assert_int_equal(rig.probe.stats.increased, 0);
}

static void test_probe_down_fails(void **state)
{
    struct rig rig;
    (void)state;
    set_up_size(&rig, 64);
    step(&rig, 0, 0, 0);
    step(&rig, 1, 31, 0);
    expect_sizes(&rig, 29, 29);
    step(&rig, 1, 0, 0);
    assert_int_equal(rig.probe.state, HG_PROBE_STABLE);
    expect_sizes(&rig, 32, 32);
    assert_int_equal(rig.probe.stats.decreased, 0);
}

static void test_no_probe_up_at_maximum(void **state)
{
    struct rig rig;
    (void)state;
    set_up_size(&rig, 2 * MAX);
    step(&rig, 0, 0, 0);
    step(&rig, 1, MAX, MAX);
    assert_int_equal(rig.probe.state, HG_PROBE_DOWN);
    expect_sizes(&rig, 115, 115);
}

static void test_no_probe_down_at_minimum(void **state)
{
    struct rig rig;
    (void)state;
    set_up_size(&rig, 2 * MIN);
    step(&rig, 0, 0, 0);
    step(&rig, 1, MIN - 1, MIN - 1);
    assert_int_equal(rig.probe.state, HG_PROBE_STABLE);
    expect_sizes(&rig, MIN, MIN);
    assert_int_equal(rig.probe.stats.probed_stable, 1);
    step(&rig, 1, MIN - 1, MIN - 1);
    assert_int_equal(rig.probe.stats.probed_stable, 2);
}

static void test_step_size_non_zero(void **state)
{
    struct hg_probe_conf conf = conf_of(2 * MIN);
    struct rig rig;
    (void)state;
    conf.weight = 0.3;
    set_up(&rig, &conf);
    step(&rig, 0, 0, 0);
    step(&rig, 1, MIN, 0);
    expect_sizes(&rig, 5, 5);
    step(&rig, 2, 0, 0);
    expect_sizes(&rig, 4, 4);
    step(&rig, 2, MIN, 0);
    expect_sizes(&rig, 5, 5);
    step(&rig, 3, 0, 0);
    expect_sizes(&rig, 5, 5);
}

static void test_step_size_non_zero_down(void **state)
{
    struct rig rig;
    (void)state;
    set_up_size(&rig, 12);
    expect_sizes(&rig, 6, 6);
    rig.probe.conf.step = 0.01;
    step(&rig, 0, 0, 0);
    step(&rig, 1, 5, 0);
    expect_sizes(&rig, 5, 5);
}

static void test_read_write_ratio(void **state)
{
    struct hg_probe_conf conf = conf_of(64);
    struct rig rig;
    (void)state;
    set_up(&rig, &conf);
    conf.read_write_ratio = 0.67;
    (void)hg_probe_configure(&rig.probe, &conf);
    step(&rig, 0, 0, 0);
    step(&rig, 1, 0, 32);
    assert_int_equal(rig.probe.state, HG_PROBE_UP);
    expect_sizes(&rig, 47, 23);
    step(&rig, 2, 0, 0);
    assert_true(rig.probe.stable_size > 64);
    expect_sizes(&rig, 44, 22);
}

/* Of 16 tickets 14 are the large holder's, and 2 the small one's, which moves by exactly 1. */
static void heavy(double ratio, bool up, uint32_t small)
{
    int large_kind = ratio > 0.5 ? HG_TICKET_READ : HG_TICKET_WRITE;
    int small_kind = large_kind == HG_TICKET_READ ? HG_TICKET_WRITE : HG_TICKET_READ;
    struct hg_probe_conf conf = conf_of(16);
    struct rig rig;
    int64_t peak[HG_TICKET_KINDS] = {0};
    conf.read_write_ratio = ratio;
    conf.min = 1;
    set_up(&rig, &conf);
    step(&rig, 0, 0, 0);
    assert_int_equal(rig.probe.size[large_kind], 14);
    assert_int_equal(rig.probe.size[small_kind], 2);
    if (up)
        peak[small_kind] = 2;
    else
        peak[large_kind] = 13;
    step(&rig, 1, peak[HG_TICKET_READ], peak[HG_TICKET_WRITE]);
    assert_int_equal(rig.probe.state, up ? HG_PROBE_UP : HG_PROBE_DOWN);
    assert_int_equal(rig.probe.size[small_kind], small);
    if (up)
        assert_true(rig.probe.size[large_kind] > 14);
    else
        assert_true(rig.probe.size[large_kind] < 14);
}

static void test_read_heavy_probe_up(void **state)
{
    (void)state;
    heavy(0.9, true, 3);
}

static void test_read_heavy_probe_down(void **state)
{
    (void)state;
    heavy(0.9, false, 1);
}

static void test_write_heavy_probe_up(void **state)
{
    (void)state;
    heavy(0.1, true, 3);
}

static void test_write_heavy_probe_down(void **state)
{
    (void)state;
    heavy(0.1, false, 1);
}

static void test_set_period(void **state)
{
    struct hg_probe_conf conf = conf_of(64);
    struct rig rig;
    (void)state;
    set_up(&rig, &conf);
    conf.interval_us = 500000;
    (void)hg_probe_configure(&rig.probe, &conf);
    assert_int_equal(rig.probe.conf.interval_us, 500000);
    expect_sizes(&rig, 32, 32);
}

/* Details of the machine */

static void test_first_step_is_only_a_baseline(void **state)
{
    struct rig rig;
    (void)state;
    set_up_size(&rig, 64);
    step(&rig, 100, 32, 32);
    assert_int_equal(rig.probe.state, HG_PROBE_STABLE);
    assert_int_equal(probes(&rig.probe), 0);
    expect_sizes(&rig, 32, 32);
}

/* What was finished without time between counts in the next step. */
static void test_no_time_no_step(void **state)
{
    struct rig rig;
    (void)state;
    set_up_size(&rig, 64);
    step(&rig, 0, 0, 0);
    step(&rig, 3, 32, 0);
    struct hg_probe_seen seen = {.now_us = rig.now_us};
    seen.holder[HG_TICKET_READ].finished = 2;
    hg_probe_step(&rig.probe, &seen);
    seen.now_us -= 10; // the clock does not go back; if it did, that were no time either
    hg_probe_step(&rig.probe, &seen);
    assert_int_equal(rig.probe.state, HG_PROBE_UP);
    step(&rig, 0, 0, 0); // 4 in all
    assert_int_equal(rig.probe.stats.increased, 1);
}

/* The rate counts, not the number. */
static void test_intervals_of_unequal_length(void **state)
{
    struct rig rig;
    (void)state;
    set_up_size(&rig, 64);
    step(&rig, 0, 0, 0);
    step(&rig, 2, 32, 0);
    rig.now_us += 3 * TICK;
    step(&rig, 7, 0, 0);
    assert_int_equal(rig.probe.stats.increased, 0);
    expect_sizes(&rig, 32, 32);
}

/* A peak of a probe's interval counts in the next stable one, and only there. */
static void test_peaks_are_read_in_stable_only(void **state)
{
    struct rig rig;
    (void)state;
    set_up_size(&rig, 64);
    step(&rig, 0, 0, 0);
    step(&rig, 1, 32, 0);
    step(&rig, 1, 35, 0);
    assert_int_equal(rig.probe.state, HG_PROBE_STABLE);
    step(&rig, 1, 0, 0);
    assert_int_equal(rig.probe.state, HG_PROBE_UP);
    step(&rig, 1, 0, 0);
    step(&rig, 1, 0, 0);
    assert_int_equal(rig.probe.state, HG_PROBE_STABLE);
    expect_sizes(&rig, 32, 32);
}

/* The original would try max + 1 and min - 1. */
static void test_forced_step_stays_within_bounds(void **state)
{
    struct hg_probe_conf conf = conf_of(MIN + MAX);
    struct rig rig;
    (void)state;
    conf.read_write_ratio = 1;
    set_up(&rig, &conf);
    expect_sizes(&rig, 128, 4);
    step(&rig, 0, 0, 0);
    step(&rig, 1, 100, 4);
    assert_int_equal(rig.probe.state, HG_PROBE_UP);
    expect_sizes(&rig, 128, 5);
    step(&rig, 0, 0, 0);
    step(&rig, 1, 100, 0);
    assert_int_equal(rig.probe.state, HG_PROBE_DOWN);
    expect_sizes(&rig, 119, 4);
}

/* The average is of the sizes in force, whatever the bounds made of the step. */
static void test_average_is_of_actual_sums(void **state)
{
    struct hg_probe_conf conf = conf_of(0);
    struct rig rig;
    (void)state;
    conf.initial = 250;
    conf.weight = 0.5;
    set_up(&rig, &conf);
    step(&rig, 0, 0, 0);
    step(&rig, 1, 125, 125);
    expect_sizes(&rig, 128, 128);
    step(&rig, 2, 0, 0);
    assert_true(rig.probe.stable_size == 253);
    expect_sizes(&rig, 127, 127); // 126.5, to the nearest
}

static void test_lower_maximum_holds_at_once(void **state)
{
    struct hg_probe_conf conf = conf_of(200);
    struct rig rig;
    (void)state;
    set_up(&rig, &conf);
    conf.max = 40;
    assert_int_equal(hg_probe_configure(&rig.probe, &conf), HG_PROBE_INITIAL_ABOVE);
    expect_sizes(&rig, 40, 40);
    conf.min = 30;
    conf.max = 1024;
    (void)hg_probe_configure(&rig.probe, &conf);
    expect_sizes(&rig, 40, 40);
    conf.initial = 100;
    (void)hg_probe_configure(&rig.probe, &conf);
    expect_sizes(&rig, 50, 50);
}

static void test_senseless_options_are_clamped(void **state)
{
    struct hg_probe_conf conf = conf_of(64);
    struct hg_probe probe;
    (void)state;
    conf.min = 0;
    conf.max = 0;
    conf.read_write_ratio = __builtin_nan("");
    conf.weight = -1;
    conf.step = 1e9;
    (void)hg_probe_init(&probe, &conf);
    assert_int_equal(probe.size[HG_TICKET_READ], 1);
    assert_int_equal(probe.size[HG_TICKET_WRITE], 1);
    conf.min = conf.max = UINT32_MAX;
    conf.read_write_ratio = 7;
    (void)hg_probe_configure(&probe, &conf);
    assert_true(probe.size[HG_TICKET_READ] <= UINT32_MAX / 4);
    assert_non_null(hg_probe_check(&conf));
}

/* Fixed */

static void test_fixed(void **state)
{
    struct hg_probe_conf conf = conf_of(64);
    struct rig rig;
    (void)state;
    conf.control = HG_PROBE_FIXED;
    set_up(&rig, &conf);
    expect_sizes(&rig, 11, 7);
    struct hg_probe_seen seen = {.now_us = 1};
    for (int i = 0; i < 5; i++, seen.now_us += 100000) {
        seen.holder[HG_TICKET_READ].peak = 11;
        hg_probe_step(&rig.probe, &seen);
        expect_sizes(&rig, 11, 7);
    }
    assert_int_equal(probes(&rig.probe), 0);
    conf.read_tickets = 0; // blocks all reads
    (void)hg_probe_configure(&rig.probe, &conf);
    expect_sizes(&rig, 0, 7);
}

static void test_change_of_control(void **state)
{
    struct hg_probe_conf conf = conf_of(64);
    struct rig rig;
    (void)state;
    set_up(&rig, &conf);
    step(&rig, 0, 0, 0);
    step(&rig, 1, 32, 0);
    expect_sizes(&rig, 35, 35);
    conf.control = HG_PROBE_FIXED;
    (void)hg_probe_configure(&rig.probe, &conf);
    expect_sizes(&rig, 11, 7);
    conf.control = HG_PROBE_ADAPTIVE;
    (void)hg_probe_configure(&rig.probe, &conf);
    expect_sizes(&rig, 32, 32);
    conf.control = HG_PROBE_PROBING;
    (void)hg_probe_configure(&rig.probe, &conf);
    expect_sizes(&rig, 32, 32);
    assert_int_equal(rig.probe.state, HG_PROBE_STABLE);
    assert_int_equal(rig.probe.stats.probed_stable, 1);
    step(&rig, 50, 32, 32); // a baseline again
    expect_sizes(&rig, 32, 32);
}

static void test_state_names(void **state)
{
    (void)state;
    assert_string_equal(hg_probe_state_name(HG_PROBE_STABLE), "stable");
    assert_string_equal(hg_probe_state_name(HG_PROBE_UP), "up");
    assert_string_equal(hg_probe_state_name(HG_PROBE_DOWN), "down");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_initial_concurrency_validator),
        cmocka_unit_test(test_initial_concurrency_no_warning_for_default),
        cmocka_unit_test(test_initial_concurrency_no_warning_in_range),
        cmocka_unit_test(test_initial_concurrency_below_minimum_warns),
        cmocka_unit_test(test_initial_concurrency_above_maximum_warns),
        cmocka_unit_test(test_min_concurrency_validator),
        cmocka_unit_test(test_max_concurrency_validator),
        cmocka_unit_test(test_probe_up_succeeds),
        cmocka_unit_test(test_probe_up_fails),
        cmocka_unit_test(test_probe_down_succeeds),
        cmocka_unit_test(test_probe_down_fails),
        cmocka_unit_test(test_no_probe_up_at_maximum),
        cmocka_unit_test(test_no_probe_down_at_minimum),
        cmocka_unit_test(test_step_size_non_zero),
        cmocka_unit_test(test_step_size_non_zero_down),
        cmocka_unit_test(test_read_write_ratio),
        cmocka_unit_test(test_read_heavy_probe_up),
        cmocka_unit_test(test_read_heavy_probe_down),
        cmocka_unit_test(test_write_heavy_probe_up),
        cmocka_unit_test(test_write_heavy_probe_down),
        cmocka_unit_test(test_set_period),
        cmocka_unit_test(test_first_step_is_only_a_baseline),
        cmocka_unit_test(test_no_time_no_step),
        cmocka_unit_test(test_intervals_of_unequal_length),
        cmocka_unit_test(test_peaks_are_read_in_stable_only),
        cmocka_unit_test(test_forced_step_stays_within_bounds),
        cmocka_unit_test(test_average_is_of_actual_sums),
        cmocka_unit_test(test_lower_maximum_holds_at_once),
        cmocka_unit_test(test_senseless_options_are_clamped),
        cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_change_of_control),
        cmocka_unit_test(test_state_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
