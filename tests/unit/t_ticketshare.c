// t_ticketshare - a number of tickets divided among servers
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/prng.h"
#include "core/ticketshare.h"

#define MOST 6

static const struct row {
    const char *name;
    size_t n;
    uint64_t total, want[MOST], cap[MOST], split[MOST];
} rows[] = {
    {"all fit", 3, 30, {5, 5, 5}, {5, 5, 5}, {10, 10, 10}},
    {"exactly", 3, 15, {5, 5, 5}, {5, 5, 5}, {5, 5, 5}},
    {"the greedy one gives way", 3, 20, {100, 5, 5}, {10, 5, 5}, {10, 5, 5}},
    {"two greedy ones share", 4, 40, {100, 70, 4, 6}, {15, 15, 4, 6}, {15, 15, 4, 6}},
    {"all greedy", 3, 10, {50, 50, 50}, {4, 3, 3}, {4, 3, 3}},
    {"one that wants none", 3, 12, {0, 50, 2}, {0, 10, 2}, {1, 10, 2}},
    {"one alone", 1, 7, {1}, {1}, {7}},
    {"nobody wants any", 3, 10, {0, 0, 0}, {0, 0, 0}, {3, 3, 4}},
    {"fewer than holders", 4, 2, {9, 9, 9, 9}, {1, 1, 1, 1}, {1, 1, 1, 1}},
    {"none at all", 2, 0, {3, 4}, {1, 1}, {0, 0}},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t r = 0; r < HG_COUNT_OF(rows); r++) {
        uint64_t cap[MOST], split[MOST];
        hg_ticketshare_cap(rows[r].want, rows[r].n, rows[r].total, cap);
        hg_ticketshare_split(rows[r].want, rows[r].n, rows[r].total, split);
        for (size_t i = 0; i < rows[r].n; i++)
            if (cap[i] != rows[r].cap[i] || split[i] != rows[r].split[i])
                fail_msg("%s: holder %zu has %lu and %lu", rows[r].name, i, (unsigned long)cap[i],
                         (unsigned long)split[i]);
    }
}

/* Whatever is wanted: the sum holds, nobody has more than he wants, and who has less than he wants
   has no less than another who has more than one. */
static void test_any(void **state)
{
    (void)state;
    struct hg_prng dice = {7};
    for (unsigned round = 0; round < 20000; round++) {
        uint64_t want[MOST], got[MOST], sum = 0, total = 6 + hg_prng_below(&dice, 200);
        size_t n = 1 + hg_prng_below(&dice, MOST);
        for (size_t i = 0; i < n; i++)
            want[i] = hg_prng_below(&dice, 120);
        hg_ticketshare_cap(want, n, total, got);
        for (size_t i = 0; i < n; i++) {
            sum += got[i];
            assert_true(got[i] <= want[i]);
            assert_true(want[i] == 0 || got[i] > 0);
            for (size_t j = 0; j < n && got[i] < want[i]; j++)
                assert_true(got[j] <= got[i] + 1);
        }
        assert_true(sum <= total);
        hg_ticketshare_split(want, n, total, got);
        sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += got[i];
        assert_true(sum >= total && sum <= total + n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_any)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
