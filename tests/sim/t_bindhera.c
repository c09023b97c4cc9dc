// t_bindhera - Hera's own scenarios of bind eviction, as far as they carry over to keys and slots
// SPDX-License-Identifier: BSD-3-Clause
//
// A statement that sleeps is a key with its service time, a connection is a slot, HERA-10x other
// than 105 and 106 is a wait that was too long or the eviction of the longest-running request. What
// does not carry over: evict_source and inclause_evict (there are no pseudo-binds and no lists of
// values), the backlog limit in percent of the connections (here time alone decides), the periods
// of the saturation loop (rounds are 100 ms apart), restoring a key in seconds without a raised
// decrement (the reference's code forgets X, here it falls by its rule).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "bindsim.h"

static struct bindsim *sim;

static void begin(uint32_t slots, uint32_t threshold_pct)
{
    sim = bindsim_new(slots, 1);
    sim->conf.threshold_pct = threshold_pct;
}

static int teardown(void **state)
{
    (void)state;
    bindsim_free(sim);
    sim = NULL;
    return 0;
}

static uint32_t add(uint32_t clients, const char *key, enum hg_hot_type type, uint64_t service_ms)
{
    struct bindsim_group group = {
        .clients = clients,
        .key = key,
        .type = type,
        .service_us = service_ms * BINDSIM_MS,
        .retry_us = 50 * BINDSIM_MS,
    };
    return bindsim_add(sim, &group);
}

/* Normal clients, each with a key of its own. */
static uint32_t add_normal(uint32_t clients)
{
    struct bindsim_group group = {
        .clients = clients,
        .key = "2100",
        .keys = clients,
        .type = HG_HOT_QUERY,
        .service_us = 100 * BINDSIM_MS,
    };
    return bindsim_add(sim, &group);
}

/* Operations that hang, each sent once. */
static uint32_t add_blocked(uint32_t clients, const char *key, enum hg_hot_type type)
{
    uint32_t group = add(clients, key, type, 10000);
    sim->groups[group].times = 1;
    return group;
}

/* HERA-100 to 104. */
static uint64_t other_errors(void)
{
    uint64_t errors = 0;
    for (uint32_t g = 0; g < sim->group_count; g++)
        errors += sim->counts[g].late + sim->counts[g].killed;
    return errors;
}

static uint64_t bind_evicts(void)
{
    uint64_t evicted = 0;
    for (uint32_t g = 0; g < sim->group_count; g++)
        evicted += sim->counts[g].evicted;
    return evicted;
}

static uint64_t bind_throttles(void)
{
    uint64_t throttled = 0;
    for (uint32_t g = 0; g < sim->group_count; g++)
        throttled += sim->counts[g].throttled;
    return throttled;
}

static uint64_t killed(void)
{
    uint64_t count = 0;
    for (uint32_t g = 0; g < sim->group_count; g++)
        count += sim->counts[g].killed;
    return count;
}

/* ---- unit tests of the original ---- */

static void test_bind_evict(void **state)
{
    uint32_t bad, normal;
    (void)state;
    begin(25, 50);
    bad = add(41, "29001111", HG_HOT_QUERY, 2900);
    sim->groups[bad].until_us = 4200 * BINDSIM_MS;
    struct bindsim_group one = {
        .clients = 1,
        .key = "21001111",
        .type = HG_HOT_QUERY,
        .service_us = 100 * BINDSIM_MS,
        .from_us = 3100 * BINDSIM_MS,
        .until_us = 4200 * BINDSIM_MS,
    };
    normal = bindsim_add(sim, &one);
    bindsim_run(sim, 4300 * BINDSIM_MS);
    assert_int_equal(bindsim_errors(sim, normal), 0);
    assert_true(sim->counts[normal].answered >= 8);
    assert_true(sim->counts[bad].evicted >= 1);
    assert_true(sim->counts[bad].throttled >= 1);
    assert_true(bindsim_x(sim, bad, 0) > 2);
    sim->conf.decr_per_sec = 11500;
    bindsim_run(sim, 5300 * BINDSIM_MS);
    assert_int_equal(bindsim_x(sim, bad, 0) + bindsim_x(sim, bad, 1), 0);
    bindsim_mark(sim);
    sim->groups[bad].until_us = 5310 * BINDSIM_MS; /* once more */
    sim->groups[bad].service_us = 100 * BINDSIM_MS;
    bindsim_run(sim, 6000 * BINDSIM_MS);
    assert_true(sim->counts[bad].answered > 0);
    assert_int_equal(bindsim_errors(sim, bad), 0);
}

static void test_bind_less_few(void **state)
{
    (void)state;
    begin(25, 50);
    add(1, "29001111", HG_HOT_QUERY, 2900);
    add(52, "100", HG_HOT_QUERY, 100);
    bindsim_run(sim, 6 * SECOND_US);
    assert_int_equal(bind_evicts(), 0);
    assert_int_equal(bind_throttles(), 0);
    assert_true(other_errors() >= 1);
}

static void test_bind_less_many(void **state)
{
    uint32_t bad, normal;
    (void)state;
    begin(25, 50);
    bad = add(17, "29001111", HG_HOT_QUERY, 2900);
    normal = add(36, "100", HG_HOT_QUERY, 100);
    bindsim_run(sim, 6 * SECOND_US);
    assert_true(sim->counts[bad].evicted >= 1);
    assert_true(sim->counts[bad].throttled >= 1);
    assert_int_equal(sim->counts[normal].evicted + sim->counts[normal].throttled, 0);
}

static void test_bind_throttle_few(void **state)
{
    (void)state;
    begin(25, 50);
    add(1, "29001111", HG_HOT_UPDATE, 3900);
    add_normal(52);
    bindsim_run(sim, 6 * SECOND_US);
    assert_int_equal(bind_evicts(), 0);
    assert_int_equal(bind_throttles(), 0);
    /* the one slow request is a write that was sent: it stays, and nothing else is as old */
    assert_int_equal(other_errors(), 0);
    bindsim_free(sim);
    begin(25, 50);
    sim->conf.evict_sent_writes = true;
    add(1, "29001111", HG_HOT_UPDATE, 3900);
    add_normal(52);
    bindsim_run(sim, 6 * SECOND_US);
    assert_int_equal(bind_evicts() + bind_throttles(), 0);
    assert_true(sim->counts[0].killed >= 1);
}

/* The events are of the bad text only: here of its type, though the other uses the same key. */
static void test_bind_throttle_many(void **state)
{
    uint32_t bad, other;
    (void)state;
    begin(25, 50);
    bad = add(20, "29001111", HG_HOT_QUERY, 3900);
    add_normal(32);
    other = add(1, "29001111", HG_HOT_UPDATE, 100);
    bindsim_run(sim, 8 * SECOND_US);
    assert_true(sim->counts[bad].evicted >= 1);
    assert_true(sim->counts[bad].throttled >= 1);
    assert_int_equal(bind_evicts(), sim->counts[bad].evicted);
    assert_int_equal(bind_throttles(), sim->counts[bad].throttled);
    assert_true(sim->counts[other].answered >= 1);
}

/* ---- functional tests of the original ---- */

static void test_bind_eviction_disable(void **state)
{
    (void)state;
    begin(5, 25);
    sim->conf.watching = false;
    add_blocked(7, "29001111", HG_HOT_QUERY);
    bindsim_run(sim, 9 * SECOND_US);
    assert_int_equal(bind_evicts() + bind_throttles() + killed(), 0);
    assert_int_equal(other_errors(), 2); /* too long in the line */
}

static void test_bind_length_less_than_eight(void **state)
{
    (void)state;
    begin(5, 25);
    add_blocked(7, "2900111", HG_HOT_QUERY);
    bindsim_run(sim, 5 * SECOND_US);
    assert_true(killed() >= 2);
    assert_int_equal(bind_evicts() + bind_throttles(), 0);
}

/* The queue rules hold for the length that is set. */
static void test_a_shorter_minimum(void **state)
{
    (void)state;
    begin(5, 25);
    sim->conf.bind_min_bytes = 7;
    add_blocked(7, "2900111", HG_HOT_QUERY);
    bindsim_run(sim, 5 * SECOND_US);
    assert_true(bind_evicts() >= 1);
}

static void test_capacity_limit_not_exceed(void **state)
{
    (void)state;
    begin(5, 25);
    add_blocked(5, "29001111", HG_HOT_QUERY);
    bindsim_run(sim, 9 * SECOND_US - 100 * BINDSIM_MS);
    assert_int_equal(bind_evicts() + bind_throttles() + other_errors(), 0);
}

/* They wait, but not as long as a backlog must last. */
static void test_no_backlog_timeout(void **state)
{
    uint32_t group;
    (void)state;
    begin(5, 25);
    group = add(6, "29001111", HG_HOT_QUERY, 800);
    sim->groups[group].times = 1;
    bindsim_run(sim, 5 * SECOND_US);
    assert_int_equal(sim->counts[group].answered, 6);
    assert_true(bindsim_p99(sim, group) > 1000 * BINDSIM_MS);
    assert_int_equal(bind_evicts() + bind_throttles() + other_errors(), 0);
}

/* With the 60 percent of the original's code: two of eight are less. */
static void test_threshold_not_reach(void **state)
{
    static const char *const keys[] = {"29001111", "29001112", "29001113", "29001114", "29001115"};
    (void)state;
    begin(8, 60);
    for (size_t i = 0; i < HG_COUNT_OF(keys); i++)
        add_blocked(2, keys[i], HG_HOT_QUERY);
    bindsim_run(sim, 5 * SECOND_US);
    assert_true(killed() >= 1);
    assert_int_equal(bind_evicts() + bind_throttles(), 0);
}

static void test_threshold_config_not_reach(void **state)
{
    (void)state;
    begin(8, 50);
    add_blocked(3, "29001111", HG_HOT_QUERY);
    add_blocked(3, "29001112", HG_HOT_QUERY);
    add_blocked(3, "29001113", HG_HOT_QUERY);
    bindsim_run(sim, 5 * SECOND_US);
    assert_true(killed() >= 1);
    assert_int_equal(bind_evicts() + bind_throttles(), 0);
}

static void test_simple_evict(void **state)
{
    uint32_t insert, updates;
    (void)state;
    begin(5, 25);
    sim->conf.evict_sent_writes = true;
    insert = add_blocked(1, "29001111", HG_HOT_INSERT);
    updates = add_blocked(6, "29001111", HG_HOT_UPDATE);
    bindsim_run(sim, 1200 * BINDSIM_MS);
    assert_true(sim->counts[updates].evicted >=
                3); /* of the others one waited too long, one stays */
    assert_true(sim->counts[insert].evicted <= 1);
    assert_true(bindsim_x(sim, updates, 0) > 2);
    assert_int_equal(bindsim_x(sim, insert, 0), 0);
}

/* 28 - 20, then 8: eight slots to evict and nineteen that wait make X = 28, time takes 20. That the
   next pass makes 8 - 1 of it, and what the log says, is in t_bindthrottle and t_bindevent. */
static void test_bind_throttle_with_its_pause(void **state)
{
    uint32_t selects, more;
    (void)state;
    begin(10, 25);
    sim->conf.queue_timeout_us = 2 * SECOND_US;
    selects = add_blocked(29, "29001111", HG_HOT_QUERY);
    struct bindsim_group five = {
        .clients = 5,
        .key = "29001111",
        .type = HG_HOT_QUERY,
        .service_us = 10 * BINDSIM_MS,
        .from_us = 21100 * BINDSIM_MS,
        .times = 1,
    };
    more = bindsim_add(sim, &five);
    bindsim_run(sim, 1101 * BINDSIM_MS);
    assert_int_equal(bind_evicts(), 27);
    assert_int_equal(bindsim_x(sim, selects, 0), 28);
    assert_int_equal(bindsim_x(sim, selects, 1), 28);
    bindsim_run(sim, 21101 * BINDSIM_MS);
    assert_int_equal(bindsim_x(sim, selects, 0), 8);
    bindsim_run(sim, 22000 * BINDSIM_MS);
    assert_int_equal(sim->counts[more].throttled, 5);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, NULL, teardown)
    static const struct CMUnitTest tests[] = {
        TEST(test_bind_evict),
        TEST(test_bind_less_few),
        TEST(test_bind_less_many),
        TEST(test_bind_throttle_few),
        TEST(test_bind_throttle_many),
        TEST(test_bind_eviction_disable),
        TEST(test_bind_length_less_than_eight),
        TEST(test_a_shorter_minimum),
        TEST(test_capacity_limit_not_exceed),
        TEST(test_no_backlog_timeout),
        TEST(test_threshold_not_reach),
        TEST(test_threshold_config_not_reach),
        TEST(test_simple_evict),
        TEST(test_bind_throttle_with_its_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
