// t_fairpool - max-min shares: the promises of the header, on tables and at random
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/attr.h"
#include "base/prng.h"
#include "core/fairpool.h"

#define INF HG_FAIR_INFINITE

static void assert_shares(struct hg_fair *claims, size_t n, uint64_t cap, uint64_t level,
                          const uint64_t *shares)
{
    assert_true(hg_fair_fill(claims, n, cap, 0) == level);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(claims[i].share, shares[i]);
}

static void test_equal_wants_share_equally(void **state)
{
    struct hg_fair claims[3] = {
        {.want = INF, .most = INF}, {.want = INF, .most = INF}, {.want = 50, .most = INF}};
    (void)state;
    assert_shares(claims, 3, 90, 30, (uint64_t[]){30, 30, 30});
}

static void test_small_wants_are_met(void **state)
{
    struct hg_fair claims[3] = {
        {.want = INF, .most = INF}, {.want = 10, .most = INF}, {.want = INF, .most = 15}};
    (void)state;
    assert_shares(claims, 3, 100, 75, (uint64_t[]){75, 10, 15});
}

static void test_what_is_taken_counts(void **state)
{
    struct hg_fair claims[3] = {{.taken = 60, .want = INF, .most = INF},
                                {.want = INF, .most = INF},
                                {.want = INF, .most = INF}};
    (void)state;
    assert_shares(claims, 3, 80, 10, (uint64_t[]){60, 10, 10});
    assert_shares(claims, 3, 50, 0, (uint64_t[]){60, 0, 0});
    assert_shares(claims, 3, 210, 70, (uint64_t[]){70, 70, 70});
}

static void test_leftovers_are_spread(void **state)
{
    struct hg_fair claims[3] = {
        {.taken = 10, .want = 20, .most = INF}, {.want = 0, .most = INF}, {.want = 0, .most = 3}};
    (void)state;
    assert_shares(claims, 3, 100, INF, (uint64_t[]){59, 38, 3});
}

static void test_debt_is_paid(void **state)
{
    struct hg_fair claims[2] = {{.debt = 80, .want = INF, .most = INF}, {.want = INF, .most = INF}};
    (void)state;
    assert_shares(claims, 2, 100, 90, (uint64_t[]){10, 90});
    assert_shares(claims, 2, 60, 60, (uint64_t[]){0, 60});
    claims[0].debt = 1000; // however deep: the pool is never left unused
    assert_shares(claims, 2, 60, 60, (uint64_t[]){0, 60});
    claims[1].want = 5;
    assert_shares(claims, 2, 60, 1055, (uint64_t[]){55, 5});
}

static void test_remainders_go_round(void **state)
{
    uint64_t sums[3] = {0};
    (void)state;
    for (uint64_t turn = 0; turn < 300; turn++) {
        struct hg_fair claims[3] = {
            {.want = INF, .most = INF}, {.want = INF, .most = INF}, {.want = INF, .most = INF}};
        hg_fair_fill(claims, 3, 100, turn);
        assert_int_equal(claims[0].share + claims[1].share + claims[2].share, 100);
        for (int i = 0; i < 3; i++)
            sums[i] += claims[i].share;
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(sums[i], 10000);
}

static void test_slices_add_up_to_the_pool(void **state)
{
    (void)state;
    for (uint64_t pool = 0; pool < 300; pool++) {
        for (uint32_t slice = 0; slice < HG_FAIR_SLICES; slice++)
            assert_int_equal(hg_fair_cap(pool, slice), pool * (slice + 1) / 10);
        assert_int_equal(hg_fair_cap(pool, 99), pool);
    }
    assert_true(hg_fair_cap(UINT64_MAX, 9) == UINT64_MAX);
}

static void test_nobody_is_there(void **state)
{
    (void)state;
    assert_true(hg_fair_fill(NULL, 0, 100, 3) == INF);
}

static uint64_t some(struct hg_prng *dice)
{
    return hg_prng_below(dice, 4) == 0 ? INF : hg_prng_below(dice, 200);
}

static void check_promises(const struct hg_fair *claims, size_t n, uint64_t cap, uint64_t level)
{
    uint64_t sum = 0, taken = 0, most = 0, share_max = 0;
    for (size_t i = 0; i < n; i++) {
        const struct hg_fair *c = &claims[i];
        uint64_t bound = c->taken > c->most ? c->taken : c->most;
        assert_true(c->taken <= c->share && c->share <= bound);
        sum += c->share;
        taken += c->taken;
        most += bound < 100000 ? bound : 100000;
        if (c->share > c->taken && c->share + c->debt > share_max)
            share_max = c->share + c->debt;
    }
    assert_true(sum <= (cap > taken ? cap : taken));
    if (most >= cap)
        assert_true(sum >= cap);
    if (level == INF)
        return;
    // Max-min: who has less than it wants is not below anybody who could be cut.
    for (size_t i = 0; i < n; i++) {
        const struct hg_fair *c = &claims[i];
        uint64_t want = c->want < c->most ? c->want : c->most;
        if (c->share < want)
            assert_true(c->share + c->debt + 1 >= share_max);
    }
}

static void test_promises_at_random(void **state)
{
    struct hg_prng dice = {42};
    struct hg_fair claims[12];
    (void)state;
    for (int run = 0; run < 20000; run++) {
        size_t n = 1 + hg_prng_below(&dice, HG_COUNT_OF(claims));
        uint64_t cap = hg_prng_below(&dice, 1000), level;
        for (size_t i = 0; i < n; i++)
            claims[i] = (struct hg_fair){.taken = hg_prng_below(&dice, 100),
                                         .debt = hg_prng_below(&dice, 3) ? 0 : some(&dice) % 300,
                                         .want = some(&dice),
                                         .most = some(&dice)};
        level = hg_fair_fill(claims, n, cap, hg_prng_next(&dice));
        check_promises(claims, n, cap, level);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_wants_share_equally),
        cmocka_unit_test(test_small_wants_are_met),
        cmocka_unit_test(test_what_is_taken_counts),
        cmocka_unit_test(test_leftovers_are_spread),
        cmocka_unit_test(test_debt_is_paid),
        cmocka_unit_test(test_remainders_go_round),
        cmocka_unit_test(test_slices_add_up_to_the_pool),
        cmocka_unit_test(test_nobody_is_there),
        cmocka_unit_test(test_promises_at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
