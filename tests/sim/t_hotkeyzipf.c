// t_hotkeyzipf - how well the top ten of a skewed load are found
// SPDX-License-Identifier: BSD-3-Clause
//
// 10^6 keys by Zipf's law, 2 * 10^5 requests in an epoch, each on one of four workers at random,
// 512 counters a worker, merged; ten seeds for each exponent. A reported key is right when its true
// count is at least that of the true tenth, so that equal counts at the tenth place are no error.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "base/attr.h"
#include "core/hotmerge.h"
#include "../unit/hothelp.h"

#define KEYS     1000000
#define REQUESTS 200000
#define WORKERS  4
#define COUNTERS 512
#define SEEDS    10

static uint32_t truth[KEYS];
static uint32_t leaders[HG_HOT_TOP]; // true counts, the largest first

static struct hg_hotmerge *run(const struct hot_zipf *zipf, uint64_t seed, void *memory)
{
    struct hg_prng prng = {seed};
    struct hg_hotkey *sketches[WORKERS];
    void *scratch = malloc(hg_hotmerge_scratch_bytes(WORKERS * COUNTERS));
    struct hg_hotmerge *merged;
    uint8_t room[256];

    for (unsigned w = 0; w < WORKERS; w++)
        sketches[w] = hot_new(COUNTERS, false);
    memset(truth, 0, sizeof truth);
    for (unsigned i = 0; i < REQUESTS; i++) {
        uint32_t id = hot_zipf_next(zipf, &prng);
        struct hg_hotkey_key key = hot_key(id, HOT_BINARY, room);
        truth[id]++;
        assert_true(hg_hotkey_tell(sketches[hg_prng_below(&prng, WORKERS)], &key, 1));
    }
    merged = hg_hotmerge_make(memory, COUNTERS, (const struct hg_hotkey *const *)sketches, WORKERS,
                              scratch);
    for (unsigned w = 0; w < WORKERS; w++)
        hot_free(sketches[w]);
    free(scratch);
    memset(leaders, 0, sizeof leaders);
    for (uint32_t id = 0; id < KEYS; id++) {
        uint32_t count = truth[id];
        for (unsigned i = 0; i < HG_HOT_TOP && count > 0; i++) {
            uint32_t held = leaders[i];
            if (count <= held)
                continue;
            leaders[i] = count;
            count = held;
        }
    }
    return merged;
}

/* Right ones among the ten that are reported; asserts what each must keep. */
static unsigned recall(const struct hg_hotmerge *merged, double *most_over)
{
    struct hg_hotkey_entry entry;
    unsigned right = 0;

    for (unsigned i = 0; i < HG_HOT_TOP; i++) {
        hg_hotmerge_entry(merged, i, &entry);
        uint32_t count = truth[hot_id(&entry.key, HOT_BINARY)];
        double over = ((double)entry.count - count) / count;
        assert_true(entry.count >= count && entry.count - entry.error <= count);
        assert_true(over <= 0.01);
        *most_over = over > *most_over ? over : *most_over;
        right += count >= leaders[HG_HOT_TOP - 1];
    }
    /* `entry` is the tenth: no key that was missed is beyond its error. */
    assert_true(right == HG_HOT_TOP || leaders[HG_HOT_TOP - 1] <= entry.count);
    return right;
}

static void assert_accurate(double exponent)
{
    struct hot_zipf zipf;
    void *memory = malloc(hg_hotmerge_bytes(COUNTERS));
    unsigned sum = 0, worst = HG_HOT_TOP;
    double over = 0;

    hot_zipf_init(&zipf, KEYS, exponent);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        unsigned right = recall(run(&zipf, seed, memory), &over);
        sum += right;
        worst = right < worst ? right : worst;
    }
    printf("# exponent %.2f: recall %.1f on average, %u at worst; over-estimate %.2f %% at most\n",
           exponent, (double)sum / SEEDS, worst, over * 100);
    assert_true(worst >= 9);
    assert_true(sum >= 99 * SEEDS / 10);
    hot_zipf_fini(&zipf);
    free(memory);
}

static void test_zipf_090(void **state)
{
    (void)state;
    assert_accurate(0.9);
}

static void test_zipf_099(void **state)
{
    (void)state;
    assert_accurate(0.99);
}

static void test_zipf_110(void **state)
{
    (void)state;
    assert_accurate(1.1);
}

static void test_zipf_120(void **state)
{
    (void)state;
    assert_accurate(1.2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zipf_090),
        cmocka_unit_test(test_zipf_099),
        cmocka_unit_test(test_zipf_110),
        cmocka_unit_test(test_zipf_120),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
