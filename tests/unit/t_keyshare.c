// t_keyshare - how large the share of a key is, and the keys that it does not bind
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "keysharerig.h"

/* ---- the share ---- */

static void test_the_share_is_a_percentage_of_what_is_in_use(void **state)
{
    static const struct {
        uint32_t pct, size, out, workers, usual_us, share, unproven_share, watch;
    } rows[] = {
        {25, 64, 40, 1, 2000, 10, 20, 1},
        {25, 64, 400, 1, 2000, 16, 32, 2},      // more than there are
        {50, 64, 40, 4, 2000, 20, 5, 1},        // a worker has its part of half
        {25, 64, 43, 1, 2000, 10, 21, 1},       // rounded down
        {25, 64, 11, 1, 2000, 2, 5, 1},         // 2 at least
        {25, 64, 0, 1, 2000, 2, 2, 1},          // so have all together
        {25, 64, 0, 16, 2000, 2, 1, 1},         // and a worker has 1 at least
        {25, 64, 40, 1, 1000, 10, 20, 1},       // 1 ms and more: the second request is looked at
        {25, 64, 40, 1, 999, 10, 20, 10},       // less: the one after the share
        {25, 64, 40, 4, 999, 10, 5, 2},         // after the worker's part
        {25, 64, 11, 4, 999, 2, 1, 1},          // 1 at least
        {25, 64, 40, 4, 0, 10, 5, 2},           // not known
        {25, 1024, 800, 1, 2000, 200, 400, 13}, // a crowd: about 6 in each chain
        {25, 1024, 800, 4, 2000, 200, 100, 4},  // of a worker
        {25, 64, 40, 0, 999, 10, 20, 10},       // no workers: as one
        {99, 100, 100, 1, 2000, 99, 50, 2},     // nearly all
        {100, 64, 40, 1, 2000, UINT32_MAX, UINT32_MAX, UINT32_MAX},
        {101, 64, 40, 1, 2000, UINT32_MAX, UINT32_MAX, UINT32_MAX},
    };
    (void)state;
    for (unsigned i = 0; i < HG_COUNT_OF(rows); i++) {
        hg_keyshare_init(&ks, &counts);
        view = (struct hg_keyshare_view){.pct = rows[i].pct,
                                         .size = rows[i].size,
                                         .out = rows[i].out,
                                         .workers = rows[i].workers,
                                         .usual_us = rows[i].usual_us};
        tick();
        assert_int_equal(ks.share, rows[i].share);
        assert_int_equal(ks.unproven_share, rows[i].unproven_share);
        assert_int_equal(ks.watch, rows[i].watch);
    }
}

/* What this worker has measured comes before what other workers tell. */
static void test_own_usual_service_decides_when_keys_are_watched(void **state)
{
    (void)state;
    use(50, 64, 8);
    ks.usual.us = 999;
    tick();
    assert_int_equal(ks.watch, 4);
    view.usual_us = 10;
    ks.usual.us = 1000;
    tick();
    assert_int_equal(ks.watch, 1);
}

static void test_tickets_in_use_are_averaged_over_two_seconds(void **state)
{
    (void)state;
    hg_keyshare_init(&ks, &counts);
    view.pct = 50;
    view.out = 0;
    tick();
    assert_int_equal(ks.share, 2);
    view.out = 40;
    now_us += 1 * S;
    tick(); // half of the way
    assert_int_equal(ks.share, 10);
    now_us += 2 * S;
    tick();
    assert_int_equal(ks.share, 20);
    view.out = 0;
    for (unsigned i = 0; i < 20; i++) { // 40 x 0.95^20 = 14.3
        now_us += 100 * MS;
        tick();
    }
    assert_int_equal(ks.share, 7);
    now_us += 60 * (uint64_t)S;
    tick();
    assert_int_equal(ks.share, 2);
}

static void test_no_share_before_the_first_tick(void **state)
{
    (void)state;
    hg_keyshare_init(&ks, &counts);
    burst(1, 100);
    assert_counts(1, 100, 0);
    make_room();
    const struct hg_keyshare_asks asks = {.id = 1, .of = &tenant, .now_us = now_us};
    assert_int_equal(hg_keyshare_ask(&ks, &asks, &asked), HG_KEYSHARE_GO);
    assert_null(asked);
    assert_int_equal(ks.key_count, 0);
}

static void test_no_share_at_a_hundred_percent(void **state)
{
    (void)state;
    be_slow(1, 500 * MS);
    burst(1, 6);
    assert_counts(1, 2, 4);
    view.pct = 100;
    tick();
    burst(1, 100);
    assert_counts(1, 102, 4);
    const struct hg_keyshare_asks asks = {.id = 1, .of = &tenant, .now_us = now_us};
    assert_int_equal(hg_keyshare_ask(&ks, &asks, &asked), HG_KEYSHARE_GO);
    assert_null(asked);
    release(record(1)); // those that wait do so no longer
    assert_counts(1, 106, 0);
}

/* Where requests take long a key has a record from its second request on, else from when it has
   reached the share. */
static void test_when_a_key_is_watched(void **state)
{
    (void)state;
    use(25, 64, 40);
    arrive(1);
    assert_null(record(1));
    arrive(1);
    assert_non_null(record(1));
    assert_int_equal(record(1)->out, 2);
    view.usual_us = 500;
    tick();
    burst(2, 10);
    assert_null(record(2));
    arrive(2);
    assert_int_equal(record(2)->out, 10);
    assert_int_equal(record(2)->waiting, 1);
}

/* ---- cheap keys ---- */

static void test_of_a_burst_for_a_new_key_two_go(void **state)
{
    (void)state;
    burst(1, 50);
    assert_counts(1, 2, 48);
    pass(5 * MS);
    assert_counts(1, 2, 48);
    answer(oldest_in(1, JOB_RUNS));
    assert_counts(1, 49, 0);
}

static void test_a_hot_cheap_key_is_never_bound(void **state)
{
    (void)state;
    burst(1, 2);
    pass(5 * MS);
    answer(oldest_in(1, JOB_RUNS));
    for (unsigned round = 0; round < 120; round++) { // 2.4 s
        burst(1, round == 60 ? 1000 : 20);
        assert_int_equal(count_in(1, JOB_PARKED) + count_in(1, JOB_REFUSED), 0);
        pass(20 * MS);
        answer_all(1);
    }
    assert_int_equal(record(1)->held_us, 0);
    assert_int_equal(ks.unproven_out, 0);
}

/* The first of a new key's requests take `us`. Are they fast? */
static bool is_fast(uint64_t us)
{
    static uint32_t id;
    struct job *first = burst(++id, 3);
    now_us += us;
    answer(first);
    bool fast = record(id)->slow == 0;
    assert_int_equal(record(id)->fast_us, fast ? now_us : 0);
    answer_all(id);
    return fast;
}

/* Four usual services of the tenant; of all tenants if nothing is known of it; of other workers;
   and 20 ms at least. */
static void test_what_is_fast(void **state)
{
    static const struct {
        uint32_t of_tenant_us, own_us, of_others_us, fast_us;
    } rows[] = {
        {6000, 50000, 50000, 24000}, {200000, 500, 500, 800000},  {100, 50000, 50000, 20000},
        {5000, 50000, 50000, 20000}, {5001, 50000, 50000, 20004}, {0, 7000, 50000, 28000},
        {0, 1, 50000, 20000},        {0, 0, 9000, 36000},         {0, 0, 0, 20000},
    };
    (void)state;
    for (unsigned i = 0; i < HG_COUNT_OF(rows); i++)
        for (unsigned more = 0; more < 2; more++) {
            tenant.usual = (struct hg_keyshare_usual){rows[i].of_tenant_us, 0};
            ks.usual = (struct hg_keyshare_usual){rows[i].own_us, 0};
            view.usual_us = rows[i].of_others_us;
            tick();
            assert_int_equal(is_fast(rows[i].fast_us + more), more == 0);
        }
}

static void test_a_fast_answer_proves_for_a_second(void **state)
{
    static const uint64_t later_us[] = {1 * S - 1, 1 * S};
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t id = 1 + i;
        burst(id, 2);
        pass(20 * MS);
        answer_all(id);
        pass(later_us[i]);
        burst(id, 10);
        assert_counts(id, i == 0 ? 10 : 2, i == 0 ? 0 : 8);
        assert_int_equal(record(id)->is_unproven, i == 1);
    }
}

/* A key is proven only while its oldest request under way is not overdue. */
static void test_an_overdue_request_unproves_its_key(void **state)
{
    (void)state;
    burst(1, 2);
    answer(oldest_in(1, JOB_RUNS)); // one is left
    pass(20 * MS);
    assert_asks(1, GO);
    burst(1, 10);
    assert_counts(1, 11, 0);
    pass(1);
    assert_asks(1, PARK);
    answer(oldest_in(1, JOB_RUNS)); // slow; the others are not overdue yet
    assert_asks(1, GO);
}

/* A tenant whose requests usually take 200 ms is not slow for that. */
static void test_tenants_are_measured_by_their_own(void **state)
{
    (void)state;
    tenant.usual.us = 200 * MS;
    burst(1, 30);
    assert_counts(1, 2, 28);
    pass(200 * MS);
    answer(oldest_in(1, JOB_RUNS));
    assert_counts(1, 29, 0);
    tenant.usual.us = 2 * MS;
    be_slow(2, 200 * MS);
    burst(2, 5);
    assert_counts(2, 2, 3);
    tenant.usual.us = 200 * MS;
    assert_asks(2, PARK);
    tenant.usual.us = 0;
    ks.usual.us = 200 * MS; // nothing is known of the tenant
    burst(3, 3);
    pass(200 * MS);
    answer(oldest_in(3, JOB_RUNS));
    assert_counts(3, 2, 0);
}

/* A record made for a stranded slot has no tenant. It takes that of the next request that asks. */
static void test_a_record_has_the_tenant_that_asked_last(void **state)
{
    (void)state;
    strand(1, 1);
    strand(1, -1);
    arrive(1 + HG_KEYSHARE_CHAINS); // so that the next one is looked at
    tenant.usual.us = 200 * MS;
    struct job *job = arrive(1);
    pass(200 * MS);
    answer(job);
    assert_int_equal(record(1)->slow, 0);
    assert_int_equal(record(1)->fast_us, now_us);
}

static void test_usual_service_is_a_median_by_steps(void **state)
{
    static const struct {
        uint32_t usual_us, service_us, then_us;
    } rows[] = {
        {0, 500, 500},      {0, 0, 1},          {1600, 1600, 1600}, {1600, 90000, 1701},
        {1600, 3, 1499},    {1600, 1601, 1601}, {1600, 1700, 1700}, {1600, 1701, 1701},
        {1600, 1500, 1500}, {1600, 1499, 1499}, {1, 0, 1},          {1, 90000, 2},
        {2, 0, 1},          {16, 0, 14},
    };
    (void)state;
    for (unsigned i = 0; i < HG_COUNT_OF(rows); i++) {
        tenant.usual = (struct hg_keyshare_usual){rows[i].usual_us, 0};
        hg_keyshare_sample(&ks, &tenant, rows[i].service_us);
        assert_int_equal(tenant.usual.us, rows[i].then_us);
    }
}

/* What is longer for all becomes usual soon; one that is not longer ends the hurry. */
static void test_a_slower_store_is_soon_usual(void **state)
{
    static const uint32_t then_us[] = {1701, 1808, 2036, 2292, 2868, 3588, 5388, 8084};
    tenant.usual = (struct hg_keyshare_usual){1600, 0};
    (void)state;
    for (unsigned i = 0; i < HG_COUNT_OF(then_us); i++) {
        hg_keyshare_sample(&ks, &tenant, 200 * MS);
        assert_int_equal(tenant.usual.us, then_us[i]);
    }
    hg_keyshare_sample(&ks, &tenant, 8084);
    hg_keyshare_sample(&ks, &tenant, 200 * MS);
    assert_int_equal(tenant.usual.us, 8084 + 8084 / 16 + 1);
}

/* A dear key, which has a record, does not make others' requests look slow: one answer a second
   counts. */
static void test_usual_service_is_of_keys_without_a_record(void **state)
{
    (void)state;
    tenant.usual.us = 0;
    struct job *job = arrive(1);
    now_us += 3 * MS;
    answer(job);
    assert_int_equal(tenant.usual.us, 3 * MS);
    assert_int_equal(ks.usual.us, 3 * MS);
    job = arrive(1);
    now_us += 1 * MS;
    end(job, false); // the store did not answer
    job = arrive(1);
    now_us += (uint64_t)UINT32_MAX / 2 + 1;
    answer(job); // of no use
    assert_int_equal(tenant.usual.us, 3 * MS);
    be_slow(1, 400 * MS); // twice
    assert_int_equal(tenant.usual.us, 3 * MS + 3 * MS / 16 + 1);
    assert_int_equal(ks.usual.us, tenant.usual.us);
}

/* Of many answers of a tenant 64 in 16 ms count. Nobody else's count for less. */
static void test_so_many_answers_count(void **state)
{
    struct hg_keyshare_tenant other = {.usual = {2 * MS, 0}};
    (void)state;
    use(100, 64, 8);
    tenant.usual.us = 2000 * MS;
    pass(100 * MS);
    for (unsigned i = 0; i < HG_KEYSHARE_SAMPLES; i++) {
        uint32_t before_us = tenant.usual.us;
        struct job *job = arrive(i);
        now_us += 10;
        answer(job);
        assert_true(tenant.usual.us < before_us);
    }
    uint32_t usual_us = tenant.usual.us, recent_us = ks.recent_us;
    struct job *job = arrive(1), *last = arrive(2);
    job->part.of = &other;
    now_us += HG_KEYSHARE_SAMPLES_US - 10 * HG_KEYSHARE_SAMPLES;
    job = arrive(3);
    now_us += 9;
    answer(job);
    assert_int_equal(tenant.usual.us, usual_us);
    assert_int_equal(ks.recent_us, recent_us);
    answer(&jobs[HG_KEYSHARE_SAMPLES]); // another tenant's
    assert_int_not_equal(ks.recent_us, recent_us);
    now_us += 1;
    answer(last);
    assert_int_not_equal(tenant.usual.us, usual_us);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_the_share_is_a_percentage_of_what_is_in_use),
        TEST(test_own_usual_service_decides_when_keys_are_watched),
        TEST(test_tickets_in_use_are_averaged_over_two_seconds),
        TEST(test_no_share_before_the_first_tick),
        TEST(test_no_share_at_a_hundred_percent),
        TEST(test_when_a_key_is_watched),
        TEST(test_of_a_burst_for_a_new_key_two_go),
        TEST(test_a_hot_cheap_key_is_never_bound),
        TEST(test_what_is_fast),
        TEST(test_a_fast_answer_proves_for_a_second),
        TEST(test_an_overdue_request_unproves_its_key),
        TEST(test_tenants_are_measured_by_their_own),
        TEST(test_a_record_has_the_tenant_that_asked_last),
        TEST(test_usual_service_is_a_median_by_steps),
        TEST(test_a_slower_store_is_soon_usual),
        TEST(test_usual_service_is_of_keys_without_a_record),
        TEST(test_so_many_answers_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
