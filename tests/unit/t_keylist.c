// t_keylist - a worker's list: who is in it, how many it refuses, and what it reports
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/attr.h"
#include "core/keylist.h"
#include "hothelp.h"

static struct hg_keythrottle throttle;
static struct hg_keythrottle_key keys[HG_KEYTHROTTLE_KEYS];

/* Lists keys 0 .. n - 1 by way of an epoch each ten, then gives them a share. */
static void list_keys(unsigned n, enum hot_shape shape, double share)
{
    const struct hg_keythrottle_settings settings = {1, HG_HOTKEY_PROPORTIONAL};
    struct hg_hotkey *sketch = hot_new(64, true);
    const struct hg_hotkey *all[] = {sketch};
    void *merged = malloc(hg_hotmerge_bytes(64)), *scratch = malloc(hg_hotmerge_scratch_bytes(64));

    memset(&throttle, 0, sizeof throttle);
    hg_keythrottle_give_room(&throttle, keys, HG_KEYTHROTTLE_KEYS);
    for (uint32_t id = 0; id < n; id++) {
        uint8_t room[256];
        struct hg_hotkey_key key = hot_key(id, shape, room);
        assert_true(hg_hotkey_tell(sketch, &key, 1000000));
        if (id % 10 < 9 && id < n - 1)
            continue;
        struct hg_keythrottle_span spans[HG_KEYTHROTTLE_EPOCHS] = {
            {hg_hotmerge_make(merged, 64, all, 1, scratch), 0}};
        hg_keythrottle_epoch(&throttle, &settings, spans, 1);
        hg_hotkey_clear(sketch);
        for (unsigned i = 0; i < throttle.count; i++)
            throttle.keys[i].offered = 1e9, throttle.keys[i].below = 0; // stays
    }
    assert_int_equal(throttle.count, n);
    for (unsigned i = 0; i < n; i++) {
        throttle.keys[i].percent = (uint8_t)(share * 100 + 0.5);
        throttle.keys[i].share = share >= 1 ? UINT32_MAX : (uint32_t)(share * 4294967296.0);
    }
    free(merged);
    free(scratch);
    hot_free(sketch);
}

static struct hg_keylist *make_list(enum hg_hotkey_control control, uint32_t start)
{
    return hg_keylist_make(malloc(hg_keylist_bytes(&throttle)), &throttle, control, start);
}

static int find(const struct hg_keylist *list, uint32_t id, enum hot_shape shape)
{
    uint8_t room[256];
    struct hg_hotkey_key key = hot_key(id, shape, room);
    return hg_keylist_find(list, &key);
}

static void test_exactly_the_listed_keys_are_found(void **state)
{
    static const unsigned sizes[] = {0, 1, 2, 9, 10, 65, 1000, 1024};
    (void)state;
    for (unsigned s = 0; s < HG_COUNT_OF(sizes); s++) {
        for (unsigned shape = HOT_BINARY; shape <= HOT_CLASH; shape++) {
            static bool taken[HG_KEYTHROTTLE_KEYS];
            list_keys(sizes[s], shape, 0.5);
            struct hg_keylist *list = make_list(HG_HOTKEY_STEP, 0);
            memset(taken, 0, sizeof taken);
            for (uint32_t id = 0; id < sizes[s]; id++) {
                int index = find(list, id, shape);
                assert_true(index >= 0 && index < (int)sizes[s] && !taken[index]);
                taken[index] = true;
                assert_int_equal(hg_keylist_percent(list, index), 50);
            }
            for (uint32_t id = sizes[s]; id < sizes[s] + 3000; id++)
                assert_int_equal(find(list, id, shape), -1);
            free(list);
        }
    }
}

static unsigned refusals(struct hg_keylist *list, int index, unsigned draws, struct hg_prng *prng)
{
    unsigned n = 0;
    for (unsigned i = 0; i < draws; i++)
        n += hg_keylist_refuses(list, index, prng);
    return n;
}

static void test_dice_throw_the_percent(void **state)
{
    (void)state;
    for (unsigned percent = 0; percent <= 100; percent += 10) {
        struct hg_prng prng = {percent};
        double share = percent / 100.0, draws = 1000000;
        list_keys(1, HOT_BINARY, share);
        struct hg_keylist *list = make_list(HG_HOTKEY_STEP, 0);
        double most = 5 * sqrt(draws * share * (1 - share)); // five standard deviations
        double n = refusals(list, 0, (unsigned)draws, &prng);
        assert_true(fabs(n - draws * share) <= most);
        free(list);
    }
}

static void test_equal_seeds_throw_the_same(void **state)
{
    struct hg_prng a = {9}, b = {9};
    (void)state;
    list_keys(1, HOT_BINARY, 0.3);
    struct hg_keylist *list = make_list(HG_HOTKEY_STEP, 0);
    for (unsigned i = 0; i < 1000; i++)
        assert_true(hg_keylist_refuses(list, 0, &a) == hg_keylist_refuses(list, 0, &b));
    free(list);
}

/* After any number of draws as many are refused as the share says, to one. */
static void test_shares_are_spread_evenly(void **state)
{
    static const double shares[] = {0, 0.001, 0.1, 1 / 3.0, 0.5, 0.9, 0.999};
    struct hg_prng prng = {1};
    (void)state;
    for (unsigned s = 0; s < HG_COUNT_OF(shares); s++) {
        for (uint32_t start = 0; start < 50; start++) {
            unsigned refused = 0;
            list_keys(1, HOT_BINARY, shares[s]);
            struct hg_keylist *list = make_list(HG_HOTKEY_PROPORTIONAL, start);
            for (unsigned i = 1; i <= 2000; i++) {
                refused += hg_keylist_refuses(list, 0, &prng);
                assert_true(fabs(refused - shares[s] * i) < 1.0001);
            }
            free(list);
        }
    }
}

static void test_all_is_all(void **state)
{
    struct hg_prng prng = {1};
    (void)state;
    list_keys(1, HOT_BINARY, 1);
    for (unsigned control = HG_HOTKEY_STEP; control <= HG_HOTKEY_PROPORTIONAL; control++) {
        struct hg_keylist *list = make_list(control, 3);
        assert_int_equal(refusals(list, 0, 100000, &prng), 100000);
        free(list);
    }
}

/* Workers, epochs and keys begin at different places: one request of each is refused by chance. */
static void test_starts_differ(void **state)
{
    struct hg_prng prng = {1};
    unsigned first = 0;
    (void)state;
    list_keys(100, HOT_BINARY, 0.5);
    for (uint32_t start = 0; start < 100; start++) {
        struct hg_keylist *list = make_list(HG_HOTKEY_PROPORTIONAL, start);
        unsigned n = 0;
        for (int index = 0; index < 100; index++)
            n += hg_keylist_refuses(list, index, &prng);
        assert_true(n >= 20 && n <= 80);
        first += n;
        free(list);
    }
    assert_true(first >= 4600 && first <= 5400);
}

static void test_reports(void **state)
{
    uint8_t room[256];
    struct hg_prng prng = {5};
    struct hg_hotkey_key key;
    (void)state;
    list_keys(30, HOT_MIXED, 0.5);
    struct hg_keylist *a = make_list(HG_HOTKEY_STEP, 0), *b = make_list(HG_HOTKEY_STEP, 1);
    unsigned refused = refusals(a, find(a, 7, HOT_MIXED), 100, &prng);
    refused += refusals(b, find(b, 7, HOT_MIXED), 50, &prng);
    hg_keylist_report(a, &throttle);
    hg_keylist_report(b, &throttle);
    key = hot_key(7, HOT_MIXED, room);
    const struct hg_keythrottle_key *listed = hg_keythrottle_find(&throttle, &key);
    assert_int_equal(listed->refused_epoch, refused);
    assert_int_equal(listed->refused, refused);
    assert_int_equal(listed->passed_epoch, 150 - refused);
    key = hot_key(8, HOT_MIXED, room);
    assert_int_equal(hg_keythrottle_find(&throttle, &key)->passed_epoch, 0);
    /* The key has left meanwhile: its refusals are nobody's. */
    throttle.count = throttle.indexed = 0;
    hg_keylist_report(a, &throttle);
    free(a);
    free(b);
}

static void test_forgiven_refusals_have_passed(void **state)
{
    struct hg_prng prng = {5};
    (void)state;
    list_keys(1, HOT_BINARY, 1);
    struct hg_keylist *list = make_list(HG_HOTKEY_STEP, 0);
    for (unsigned i = 0; i < 10; i++) {
        assert_true(hg_keylist_refuses(list, 0, &prng));
        if (i < 4)
            hg_keylist_forgive(list, 0);
    }
    hg_keylist_report(list, &throttle);
    assert_int_equal(throttle.keys[0].refused_epoch, 6);
    assert_int_equal(throttle.keys[0].passed_epoch, 4);
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exactly_the_listed_keys_are_found),
        cmocka_unit_test(test_dice_throw_the_percent),
        cmocka_unit_test(test_equal_seeds_throw_the_same),
        cmocka_unit_test(test_shares_are_spread_evenly),
        cmocka_unit_test(test_all_is_all),
        cmocka_unit_test(test_starts_differ),
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_forgiven_refusals_have_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
