// t_bindmend - a throttled key whose requests are fast again is soon free
// SPDX-License-Identifier: BSD-3-Clause
#include "bindtable.h"

/* The request that has just passed is answered. */
static bool answered(uint64_t service_us, uint64_t usual_us)
{
    const struct hg_bindthrottle_pass pass = {told.change, told.before, key.hash, key.type};
    struct hg_bindthrottle_entry *entry = hg_bindthrottle_of_pass(table, &pass);
    return entry != NULL &&
           hg_bindthrottle_answer(table, entry, &pass, service_us, usual_us, &told);
}

static void test_what_an_answer_does(void **state)
{
    static const struct {
        uint32_t x, held_us;
        bool busy;
        uint32_t service_us, usual_us, x_after; /* 0: it has gone */
    } cases[] = {
        {100, 0, true, 16000, 8000, 50},
        {100, 0, false, 16000, 8000, 50},
        {100, 0, true, 16001, 8000, 201},
        {100, 0, false, 16001, 8000, 99},
        {101, 0, true, 8000, 8000, 51},
        {10000, 0, true, 8000, 8000, 5000},
        {3, 0, true, 8000, 8000, 2},
        {2, 0, true, 8000, 8000, 0},
        {100, 0, true, 2200, 200, 50},
        {100, 0, true, 2201, 200, 201},
        {100, 0, true, 0, 0, 201},
        {100, 500000, true, 250000, 400000, 50},
        {100, 500000, true, 250001, 400000, 201},
    };
    (void)state;
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        hg_bindthrottle_init(table, 16);
        make(&key, cases[i].x - 1)->held_us = cases[i].held_us;
        until_pass(cases[i].busy);
        uint32_t grown = told.x;
        bool halved = answered(cases[i].service_us, cases[i].usual_us);
        assert_int_equal(halved, cases[i].x_after != grown);
        assert_int_equal(x_of(&key), cases[i].x_after);
        if (!halved)
            continue;
        assert_int_equal(told.prev, grown);
        assert_int_equal(told.x, cases[i].x_after > 0 ? cases[i].x_after : 1);
        if (cases[i].x_after > 0)
            assert_int_equal(hg_bindthrottle_find(table, &key)->halved, 1);
    }
}

static void test_an_answer_whose_entry_has_gone(void **state)
{
    (void)state;
    make(&key, 1);
    until_pass(false); /* X is 1 */
    assert_false(answered(1, 1000));
    make(&other, 9);
    assert_false(answered(1, 1000));
    assert_int_equal(x_of(&other), 10);
}

/* Two passes are under way: each fast answer halves what its own pass found. */
static void test_answers_of_several_passes(void **state)
{
    (void)state;
    make(&key, 9);
    until_pass(true); /* 21 */
    struct hg_bindthrottle_told first = told;
    until_pass(true); /* 43 */
    struct hg_bindthrottle_told second = told;
    told = first;
    assert_true(answered(1, 1000));
    assert_int_equal(x_of(&key), 5);
    told = second;
    assert_true(answered(1, 1000));
    assert_int_equal(x_of(&key), 3);
}

/* Whatever X is, one passes that is asked for a second after the last; not with seed. */
static void test_one_passes_each_second(void **state)
{
    (void)state;
    for (unsigned halves = 0; halves < 2; halves++) {
        hg_bindthrottle_init(table, 16);
        table->halves = halves;
        make(&key, 9999);
        for (unsigned i = 0; i < 5; i++) {
            now += SECOND_US - 1;
            assert_int_equal(ask(true), HG_BINDTHROTTLE_REFUSE);
            now += 1;
            assert_int_equal(ask(true), halves ? HG_BINDTHROTTLE_PASS : HG_BINDTHROTTLE_REFUSE);
            assert_int_equal(ask(true), HG_BINDTHROTTLE_REFUSE);
        }
        assert_int_equal(hg_bindthrottle_find(table, &key)->passed, halves ? 5 : 0);
        assert_int_equal(x_of(&key), halves ? 10000 : 9995);
    }
}

/* How many microseconds it takes until the key is free, that is asked for so often a second, each
   answer in the usual time. The store is busy with others throughout. */
static uint64_t until_free_us(uint32_t x, unsigned per_second, double decr)
{
    uint64_t begun = now;
    hg_bindthrottle_init(table, 16);
    table->halves = true;
    make(&key, x - 1);
    while (table->count > 0 && now < begun + 20000 * (uint64_t)SECOND_US) {
        now += SECOND_US / per_second;
        if (hg_bindthrottle_decide(table, &key, true, decr, now, &told) == HG_BINDTHROTTLE_PASS)
            assert_true(answered(900, 1000));
    }
    return now - begun;
}

static void test_a_mended_key_is_free_soon(void **state)
{
    static const struct {
        uint32_t x;
        unsigned per_second, within_s;
    } cases[] = {{10000, 1, 14},   {10000, 2, 14},   {10000, 10, 14},
                 {10000, 200, 14}, {10000, 5000, 8}, {858, 200, 9},
                 {858, 1, 10},     {41, 1, 6},       {41, 200, 1}};
    (void)state;
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++)
        for (unsigned decr = 0; decr < 2; decr++) {
            uint64_t took_us = until_free_us(cases[i].x, cases[i].per_second, decr);
            assert_true(took_us <= (uint64_t)cases[i].within_s * SECOND_US);
        }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_an_answer_does),       TEST(test_an_answer_whose_entry_has_gone),
        TEST(test_answers_of_several_passes), TEST(test_one_passes_each_second),
        TEST(test_a_mended_key_is_free_soon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
