// t_bindwatch - who is evicted, from the workers' counts
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "bindhelp.h"
#include "core/bindwatch.h"

#define ROWS 64

static const char shop[] = "shop", mugs[] = "mugs"; /* tenants: any address */
static struct hg_bindwatch *watch;
static struct hg_bindwatch_conf conf;
static const struct hg_bindwatch_verdict *verdicts;
static uint32_t oldest_worker;

static int setup(void **state)
{
    (void)state;
    watch = hg_bindwatch_init(malloc(hg_bindwatch_bytes(ROWS)), ROWS);
    conf = (struct hg_bindwatch_conf){
        .threshold_pct = 25, .min_age_us = 200000, .evict_longest = true};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(watch);
    return 0;
}

static struct hg_bindwatch_row row(const char *text, uint32_t slots, uint32_t waiting)
{
    return (struct hg_bindwatch_row){
        .tenant = shop,
        .key = key_of(HG_HOT_QUERY, text),
        .slots = slots,
        .evictable = slots,
        .waiting = waiting,
    };
}

static void add_aged(uint32_t worker, uint32_t used, uint64_t oldest_us,
                     const struct hg_bindwatch_row *rows, size_t count)
{
    struct hg_bindwatch_report report = {rows, count, used, oldest_us};
    hg_bindwatch_add(watch, worker, &report);
}

static void add(uint32_t worker, uint32_t used, struct hg_bindwatch_row one)
{
    add_aged(worker, used, 0, &one, 1);
}

static size_t judge(void)
{
    return hg_bindwatch_judge(watch, &conf, &verdicts, &oldest_worker);
}

/* One key of so many of the used slots, alone on one worker. */
static size_t judge_one(uint32_t slots, uint32_t used)
{
    hg_bindwatch_clear(watch);
    add(0, used, row("29001111", slots, 0));
    return judge();
}

/* ---- the threshold ---- */

/* So many a key must hold at least, whatever the share. */
static uint32_t least_of(uint64_t used)
{
    return used < 4 ? 2 : 3;
}

static void test_at_least_the_threshold(void **state)
{
    (void)state;
    assert_int_equal(judge_one(25, 100), 1);
    assert_int_equal(judge_one(24, 100), 0);
    assert_int_equal(judge_one(13, 50), 1); /* 12.5 */
    assert_int_equal(judge_one(12, 50), 0);
    conf.threshold_pct = 100;
    assert_int_equal(judge_one(49, 50), 0);
    assert_int_equal(judge_one(50, 50), 1);
    conf.threshold_pct = 1;
    assert_int_equal(judge_one(3, 300), 1);
    assert_int_equal(judge_one(3, 301), 0);
    assert_int_equal(judge_one(2, 200), 0);
}

/* Of a store that stands still: who is to blame has most of what is left. */
static void test_least_share(void **state)
{
    (void)state;
    conf.least_pct = 50;
    assert_int_equal(judge_one(19, 40), 0);
    assert_int_equal(judge_one(20, 40), 1);
    assert_int_equal(verdicts[0].keep, 9); /* as ever */
}

/* Of eight slots that fifty keys are asked for in, two are often of one key: that is chance. */
static void test_two_of_several_are_chance(void **state)
{
    (void)state;
    assert_int_equal(judge_one(2, 3), 1);
    for (uint32_t used = 4; used <= 8; used++) {
        assert_int_equal(judge_one(2, used), 0);
        assert_int_equal(judge_one(3, used), 1);
    }
}

/* The floor of the original was 0 for few slots, and one dispatched operation qualified. */
static void test_weakness_floor_of_zero(void **state)
{
    (void)state;
    for (uint32_t pct = 1; pct <= 100; pct++) {
        conf.threshold_pct = pct;
        for (uint32_t used = 1; used < 10; used++)
            assert_int_equal(judge_one(1, used), 0);
    }
    assert_int_equal(judge_one(0, 0), 0);
    conf.threshold_pct = 60;
    assert_int_equal(judge_one(2, 3), 1);
    assert_int_equal(judge_one(2, 4), 0); /* 2.4, not its floor */
}

/* What stays is below the threshold, or one: it does not qualify again by itself. */
static void test_what_stays_does_not_qualify(void **state)
{
    (void)state;
    for (uint32_t pct = 1; pct <= 100; pct += 3) {
        conf.threshold_pct = pct;
        for (uint32_t used = 2; used < 150; used++) {
            for (uint32_t slots = 1; slots <= used; slots++) {
                if (judge_one(slots, used) == 0) {
                    assert_true(slots < least_of(used) || slots * 100 < pct * used);
                    continue;
                }
                uint32_t keep = verdicts[0].keep;
                assert_true(keep >= 1 && keep < slots);
                assert_int_equal(verdicts[0].evicted, slots - keep);
                assert_true((keep + 1) * 100 >= pct * used || keep + 1 < 2 || keep == 1);
                assert_int_equal(judge_one(keep, used), 0);
            }
        }
    }
}

static void test_eighty_percent_of_fifty(void **state)
{
    struct hg_bindwatch_row rows[] = {row("29001111", 40, 7), row("21001111", 2, 3)};
    (void)state;
    add_aged(0, 50, 900000, rows, 2);
    assert_int_equal(judge(), 1);
    assert_true(hg_bindthrottle_same(&verdicts[0].key, &rows[0].key));
    assert_ptr_equal(verdicts[0].tenant, shop);
    assert_int_equal(verdicts[0].slots, 40);
    assert_int_equal(verdicts[0].keep, 12);
    assert_int_equal(verdicts[0].evicted, 28 + 7);
    assert_int_equal(oldest_worker, UINT32_MAX); /* though one is old enough */
}

/* Waiting ones do not make it a candidate. */
static void test_slots_alone_count(void **state)
{
    (void)state;
    add(0, 50, row("29001111", 12, 1000));
    assert_int_equal(judge(), 0);
}

/* ---- several workers, keys, tenants ---- */

static void test_workers_are_added_up(void **state)
{
    (void)state;
    add(0, 20, row("29001111", 4, 1));
    add(1, 20, row("29001111", 2, 0));
    assert_int_equal(judge(), 0);
    hg_bindwatch_clear(watch);
    add(0, 20, row("29001111", 4, 1));
    add(1, 20, row("29001111", 3, 2));
    add(2, 0, row("29001111", 3, 0));
    assert_int_equal(judge(), 1);
    assert_int_equal(verdicts[0].slots, 10);
    assert_int_equal(verdicts[0].evicted, 1 + 3);
    assert_int_equal(verdicts[0].keep, 9);
}

static void test_keys_are_told_apart(void **state)
{
    struct hg_bindwatch_row rows[5];
    (void)state;
    for (size_t i = 0; i < 5; i++)
        rows[i] = row("29001111", 5, 0);
    rows[1].tenant = mugs;
    rows[2].key.type = HG_HOT_UPDATE;
    rows[3].key.table_len = 3;
    rows[4].key.bytes = hg_span_str("29001112"); /* the same hash */
    conf.threshold_pct = 30;
    add_aged(0, 25, 0, rows, 5);
    assert_int_equal(watch->count, 5);
    assert_int_equal(judge(), 0);
}

static void test_two_culprits_of_forty_percent(void **state)
{
    struct hg_bindwatch_row rows[] = {row("aaaaaaaa", 20, 0), row("innocent", 10, 0),
                                      row("bbbbbbbb", 20, 5)};
    (void)state;
    add_aged(0, 50, 0, rows, 3);
    assert_int_equal(judge(), 2);
    assert_true(hg_bindthrottle_same(&verdicts[0].key, &rows[0].key));
    assert_true(hg_bindthrottle_same(&verdicts[1].key, &rows[2].key));
    assert_int_equal(verdicts[0].evicted, 8);
    assert_int_equal(verdicts[1].evicted, 13);
}

static void test_most_slots_first(void **state)
{
    char texts[9][16];
    struct hg_bindwatch_row rows[9];
    static const uint32_t slots[9] = {7, 3, 9, 9, 1, 4, 12, 5, 7};
    (void)state;
    conf.threshold_pct = 5; /* of 57: 3 */
    for (size_t i = 0; i < 9; i++) {
        snprintf(texts[i], sizeof texts[i], "key-%04zu", i);
        rows[i] = row(texts[i], slots[i], 0);
    }
    add_aged(0, 57, 0, rows, 9);
    assert_int_equal(judge(), 8);
    for (size_t i = 1; i < 8; i++)
        assert_true(verdicts[i - 1].slots >= verdicts[i].slots);
    assert_string_equal((const char *)verdicts[0].key.bytes.at, "key-0006");
    assert_string_equal((const char *)verdicts[1].key.bytes.at, "key-0002");
    assert_string_equal((const char *)verdicts[2].key.bytes.at, "key-0003");
    assert_string_equal((const char *)verdicts[7].key.bytes.at, "key-0001");
}

static void test_no_room_is_counted(void **state)
{
    char texts[ROWS + 6][16];
    (void)state;
    for (size_t i = 0; i < ROWS + 6; i++) {
        snprintf(texts[i], sizeof texts[i], "key-%04zu", i);
        add(0, 2, row(texts[i], 2, 0));
    }
    assert_int_equal(watch->count, ROWS);
    assert_int_equal(watch->left_out, 6);
    add(1, 60, row(texts[3], 60, 0)); /* one that is there has room */
    assert_int_equal(judge(), 1);
    assert_int_equal(verdicts[0].slots, 62);
    free(watch);
    watch = hg_bindwatch_init(malloc(hg_bindwatch_bytes(0)), 0);
    add(0, 2, row("29001111", 2, 0));
    assert_int_equal(judge(), 0);
    assert_int_equal(watch->left_out, 1);
}

/* ---- stranded slots ---- */

/* They are used, but nobody's: an eviction makes no innocent key the next culprit. */
static void test_stranded_slots_are_used(void **state)
{
    struct hg_bindwatch_row rows[] = {row("29001111", 2, 0), row("21001111", 4, 0)};
    (void)state;
    add_aged(0, 10 + 40, 0, rows, 2); /* 40 are stranded */
    assert_int_equal(judge(), 0);
}

/* ---- what cannot be evicted ---- */

static void test_sent_writes_stay_but_are_throttled(void **state)
{
    struct hg_bindwatch_row writes = row("29001111", 40, 0);
    (void)state;
    writes.key.type = HG_HOT_UPDATE;
    writes.evictable = 0;
    add_aged(0, 50, 900000, &writes, 1);
    assert_int_equal(judge(), 1);
    assert_int_equal(verdicts[0].evicted, 0);
    assert_int_equal(verdicts[0].keep, 0);
    assert_int_equal(oldest_worker, UINT32_MAX);
    hg_bindwatch_clear(watch);
    writes.waiting = 9;
    add(0, 50, writes);
    assert_int_equal(judge(), 1);
    assert_int_equal(verdicts[0].evicted, 9);
}

static void test_what_stays_counts_for_what_may_stay(void **state)
{
    struct hg_bindwatch_row mixed = row("29001111", 40, 2);
    (void)state;
    mixed.evictable = 35; /* of 12 that may be held 5 stay anyway */
    add(0, 50, mixed);
    assert_int_equal(judge(), 1);
    assert_int_equal(verdicts[0].keep, 7);
    assert_int_equal(verdicts[0].evicted, 28 + 2);
    hg_bindwatch_clear(watch);
    mixed.evictable = 20;
    add(0, 50, mixed);
    assert_int_equal(judge(), 1);
    assert_int_equal(verdicts[0].keep, 0);
    assert_int_equal(verdicts[0].evicted, 20 + 2);
}

/* The original made an entry also when every operation of the key was skipped. */
static void test_weakness_entry_without_eviction(void **state)
{
    struct hg_bindwatch_row only = row("29001111", 40, 0);
    (void)state;
    only.evictable = 0;
    only.exempt = 40; /* Unthrottled: neither evicted nor throttled */
    add_aged(0, 50, 900000, &only, 1);
    assert_int_equal(judge(), 0);
    assert_int_equal(oldest_worker, UINT32_MAX); /* it qualified: no other pays for it */
    hg_bindwatch_clear(watch);
    only.waiting = 3; /* others of that key are to be evicted, and throttled */
    add(0, 50, only);
    assert_int_equal(judge(), 1);
    assert_int_equal(verdicts[0].evicted, 3);
    hg_bindwatch_clear(watch);
    add(0, 50, row("29001111", 0, 0)); /* all evicted already: stranded */
    assert_int_equal(judge(), 0);
}

/* ---- the longest-running one ---- */

static void test_the_longest_running_one(void **state)
{
    (void)state;
    add_aged(0, 8, 200000, NULL, 0);
    assert_int_equal(judge(), 0);
    assert_int_equal(oldest_worker, UINT32_MAX); /* not older than 200 ms */
    add_aged(1, 8, 200001, NULL, 0);
    add_aged(2, 8, 900000, NULL, 0);
    add_aged(3, 8, 800000, NULL, 0);
    assert_int_equal(judge(), 0);
    assert_int_equal(oldest_worker, 2);
    conf.evict_longest = false;
    assert_int_equal(judge(), 0);
    assert_int_equal(oldest_worker, UINT32_MAX);
    hg_bindwatch_clear(watch);
    assert_int_equal(judge(), 0);
    assert_int_equal(oldest_worker, UINT32_MAX);
}

/* ---- shares ---- */

static void test_shares_keep_no_more_than_may_stay(void **state)
{
    struct hg_prng dice = {7};
    (void)state;
    for (unsigned round = 0; round < 2000; round++) {
        uint32_t has[8], workers = 1 + (uint32_t)hg_prng_below(&dice, 8), all = 0, stay = 0;
        struct hg_bindwatch_verdict verdict = {.tenant = shop};
        for (uint32_t w = 0; w < workers; w++)
            all += has[w] = (uint32_t)hg_prng_below(&dice, 30);
        verdict.evictable = all;
        verdict.keep = (uint32_t)hg_prng_below(&dice, all + 1);
        for (uint32_t w = 0; w < workers; w++) {
            uint32_t share = hg_bindwatch_share(&verdict, has[w]);
            assert_true(share <= has[w]);
            stay += share;
        }
        assert_true(stay <= verdict.keep && stay + workers > verdict.keep);
    }
}

static void test_share_of_one_who_has_more_by_now(void **state)
{
    struct hg_bindwatch_verdict verdict = {.evictable = 10, .keep = 4};
    (void)state;
    assert_int_equal(hg_bindwatch_share(&verdict, 12), 4);
    assert_int_equal(hg_bindwatch_share(&verdict, 5), 2);
    assert_int_equal(hg_bindwatch_share(&verdict, 0), 0);
    verdict.evictable = verdict.keep = 0;
    assert_int_equal(hg_bindwatch_share(&verdict, 3), 0);
}

/* ---- against a naive judge ---- */

struct naive {
    uint32_t slots, evictable, exempt, waiting;
};

/* Keys 0 .. 23: of two tenants and types, their hashes often equal. */
static struct hg_bindwatch_row random_row(struct hg_prng *dice, uint32_t id, char text[16])
{
    struct hg_bindwatch_row one;

    snprintf(text, 16, "key-%04u", id / 4);
    one = row(text, (uint32_t)hg_prng_below(dice, hg_prng_below(dice, 3) == 0 ? 30 : 4),
              (uint32_t)hg_prng_below(dice, 4));
    one.tenant = id % 4 / 2 == 0 ? shop : mugs;
    one.key.type = (uint8_t)(HG_HOT_UPDATE + id % 2);
    one.key.hash %= 2;
    one.exempt = hg_prng_below(dice, 5) == 0 ? one.slots / 2 : 0;
    one.evictable = hg_prng_below(dice, 3) == 0 ? 0 : one.slots - one.exempt;
    if (hg_prng_below(dice, 20) == 0) {
        one.exempt = one.slots;
        one.evictable = 0;
        one.waiting = 0;
    }
    return one;
}

static void compare_with_naive(const struct naive *sums, uint64_t used, uint64_t oldest)
{
    size_t expected = 0, count = judge();
    bool qualified = false;

    for (uint32_t id = 0; id < 24; id++) {
        const struct naive *sum = &sums[id];
        uint32_t keep = 0, stay = sum->slots - sum->evictable, found = 0;
        char text[16];
        if (sum->slots < least_of(used) || sum->slots * 100 < conf.threshold_pct * used)
            continue;
        qualified = true;
        while (keep < sum->evictable &&
               (keep + 1 + stay < 2 || (keep + 1 + stay) * 100 < conf.threshold_pct * used))
            keep++;
        uint32_t evicted = sum->evictable - keep + sum->waiting;
        if (evicted == 0 && sum->slots == sum->exempt)
            continue;
        expected++;
        snprintf(text, sizeof text, "key-%04u", id / 4);
        for (size_t i = 0; i < count; i++) {
            const struct hg_bindwatch_verdict *verdict = &verdicts[i];
            assert_true(i == 0 || verdicts[i - 1].slots >= verdict->slots);
            if (verdict->tenant != (id % 4 / 2 == 0 ? shop : mugs) ||
                verdict->key.type != HG_HOT_UPDATE + id % 2 ||
                !hg_span_is(verdict->key.bytes, text))
                continue;
            found++;
            assert_int_equal(verdict->slots, sum->slots);
            assert_int_equal(verdict->keep, keep);
            assert_int_equal(verdict->evicted, evicted);
        }
        assert_int_equal(found, 1);
    }
    assert_int_equal(count, expected);
    assert_true((oldest_worker != UINT32_MAX) == (!qualified && oldest > conf.min_age_us));
}

static void test_against_a_naive_judge(void **state)
{
    struct hg_prng dice = {11};
    (void)state;
    for (unsigned round = 0; round < 3000; round++) {
        struct naive sums[24] = {{0}};
        struct hg_bindwatch_row rows[8][24];
        char texts[8][24][16];
        uint64_t used = 0, oldest = 0;
        uint32_t workers = 1 + (uint32_t)hg_prng_below(&dice, 8);
        conf.threshold_pct = 1 + (uint32_t)hg_prng_below(&dice, round % 2 ? 100 : 30);
        hg_bindwatch_clear(watch);
        for (uint32_t w = 0; w < workers; w++) {
            uint32_t own = 0, age = (uint32_t)hg_prng_below(&dice, 250000);
            size_t count = 0;
            for (uint32_t id = 0; id < 24; id++) {
                if (hg_prng_below(&dice, 3) == 0)
                    continue;
                struct hg_bindwatch_row one = random_row(&dice, id, texts[w][count]);
                rows[w][count++] = one;
                sums[id].slots += one.slots;
                sums[id].evictable += one.evictable;
                sums[id].exempt += one.exempt;
                sums[id].waiting += one.waiting;
                own += one.slots;
            }
            own += (uint32_t)hg_prng_below(&dice, 20);
            used += own;
            oldest = age > oldest ? age : oldest;
            add_aged(w, own, age, rows[w], count);
        }
        assert_true(watch->count <= 24 && watch->left_out == 0);
        compare_with_naive(sums, used, oldest);
    }
}

/* Many requests for one key that are answered like all others: in a full store they wait for each
   other, and evicting them would help nobody. */
static void test_cheap_ones_stay(void **state)
{
    (void)state;
    static const struct {
        uint64_t dear_us, oldest_us;
        size_t evicted;
    } rows[] = {{0, 0, 1},         {20000, 0, 0},      {20000, 19999, 0},
                {20000, 20000, 1}, {200000, 90000, 0}, {200000, 500000, 1}};
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++) {
        struct hg_bindwatch_row young = row("hot-key", 4, 9), old = young;
        young.oldest_us = rows[i].oldest_us / 2;
        old.oldest_us = rows[i].oldest_us;
        hg_bindwatch_clear(watch);
        conf.dear_us = rows[i].dear_us;
        add(0, 8, young);
        add(1, 8, old);
        assert_int_equal(judge(), rows[i].evicted);
        assert_int_equal(oldest_worker, UINT32_MAX);
    }
}

static void test_what_is_dear(void **state)
{
    (void)state;
    static const struct {
        uint64_t usual_us, min_age_us, dear_us;
    } rows[] = {{0, 200000, 20000},      {1000, 200000, 20000},
                {5001, 200000, 20004},   {20000, 200000, 80000},
                {60000, 200000, 200000}, {900000, 200000, 200000},
                {20000, 10000, 10000},   {0, 0, 0}};
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++)
        assert_int_equal(hg_bindwatch_dear_us(rows[i].usual_us, rows[i].min_age_us),
                         rows[i].dear_us);
}

static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    TEST(test_at_least_the_threshold),
    TEST(test_least_share),
    TEST(test_cheap_ones_stay),
    TEST(test_what_is_dear),
    TEST(test_two_of_several_are_chance),
    TEST(test_weakness_floor_of_zero),
    TEST(test_what_stays_does_not_qualify),
    TEST(test_eighty_percent_of_fifty),
    TEST(test_slots_alone_count),
    TEST(test_workers_are_added_up),
    TEST(test_keys_are_told_apart),
    TEST(test_two_culprits_of_forty_percent),
    TEST(test_most_slots_first),
    TEST(test_no_room_is_counted),
    TEST(test_stranded_slots_are_used),
    TEST(test_sent_writes_stay_but_are_throttled),
    TEST(test_what_stays_counts_for_what_may_stay),
    TEST(test_weakness_entry_without_eviction),
    TEST(test_the_longest_running_one),
    TEST(test_shares_keep_no_more_than_may_stay),
    TEST(test_share_of_one_who_has_more_by_now),
    TEST(test_against_a_naive_judge),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
