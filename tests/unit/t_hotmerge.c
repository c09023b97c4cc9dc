// t_hotmerge - merged sketches against exact counts
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/attr.h"
#include "core/hotmerge.h"
#include "hothelp.h"

#define IDS    5000
#define SPLITS 8

static uint64_t truth[IDS];

static void tell(struct hg_hotkey *sketch, uint32_t id, enum hot_shape shape, uint64_t n)
{
    uint8_t room[256];
    struct hg_hotkey_key key = hot_key(id, shape, room);
    truth[id] += n;
    assert_true(hg_hotkey_tell(sketch, &key, n));
}

static bool find(const struct hg_hotmerge *merged, uint32_t id, enum hot_shape shape,
                 struct hg_hotkey_entry *ret)
{
    uint8_t room[256];
    struct hg_hotkey_key key = hot_key(id, shape, room);
    return hg_hotmerge_find(merged, &key, ret);
}

/* Merges in memory of exactly the size that was asked for, and cuts the result to its size. */
static struct hg_hotmerge *merge(struct hg_hotkey *const *sketches, unsigned count, unsigned keep)
{
    const struct hg_hotkey *const *all = (const struct hg_hotkey *const *)sketches;
    unsigned entries = 0;
    for (unsigned i = 0; i < count; i++)
        entries += hg_hotkey_used(sketches[i]);
    size_t bytes = hg_hotmerge_bytes(keep);
    void *memory = malloc(bytes), *scratch = malloc(hg_hotmerge_scratch_bytes(entries));
    struct hg_hotmerge *merged = hg_hotmerge_make(memory, keep, all, count, scratch);
    assert_ptr_equal(merged, memory);
    free(scratch);
    assert_true(hg_hotmerge_size(merged) <= bytes);
    struct hg_hotmerge *moved = malloc(hg_hotmerge_size(merged));
    memcpy(moved, merged, hg_hotmerge_size(merged));
    memset(memory, 0xee, bytes);
    free(memory);
    return moved;
}

static int key_order(const struct hg_hotkey_key *a, const struct hg_hotkey_key *b)
{
    size_t len = a->len < b->len ? a->len : b->len;
    int order = a->table_len - b->table_len;
    if (order == 0)
        order = memcmp(a->at, b->at, len);
    return order != 0 ? order : a->len - b->len;
}

/* Bounds, completeness and order of a result. `most`: what the error may be. */
static void assert_promises(const struct hg_hotmerge *merged, enum hot_shape shape, double most)
{
    static bool seen[IDS];
    struct hg_hotkey_entry entry, before = {.count = UINT64_MAX};
    unsigned used = hg_hotmerge_used(merged);
    uint64_t n = 0, absent = hg_hotmerge_absent(merged);

    memset(seen, 0, sizeof seen);
    for (unsigned i = 0; i < used; i++) {
        hg_hotmerge_entry(merged, i, &entry);
        uint32_t id = hot_id(&entry.key, shape);
        assert_true(id < IDS && !seen[id]);
        seen[id] = true;
        assert_true(entry.error <= entry.count);
        assert_true(entry.count - entry.error <= truth[id] && truth[id] <= entry.count);
        assert_true((double)entry.error <= most);
        assert_true(entry.count >= absent);
        if (i >= HG_HOT_TOP) {
            assert_true(entry.count <= before.count);
            continue;
        }
        assert_true(entry.count < before.count ||
                    (entry.count == before.count && key_order(&before.key, &entry.key) < 0));
        before = entry;
    }
    for (uint32_t id = 0; id < IDS; id++) {
        n += truth[id];
        assert_true(find(merged, id, shape, &entry) == seen[id]);
        assert_true(seen[id] || truth[id] <= absent);
        assert_true(!seen[id] || hot_id(&entry.key, shape) == id);
    }
    assert_int_equal(hg_hotmerge_total(merged), n);
}

static void make_sketches(struct hg_hotkey **sketches, unsigned count, const unsigned *sizes,
                          enum hot_shape shape, double exponent, struct hg_prng *prng)
{
    struct hot_zipf zipf;
    hot_zipf_init(&zipf, IDS, exponent);
    memset(truth, 0, sizeof truth);
    for (unsigned i = 0; i < count; i++)
        sketches[i] = hot_new(sizes[i], true);
    for (unsigned i = 0; i < 30000; i++) {
        /* The first has most of the load, a last one may stay nearly empty. */
        unsigned to = (unsigned)(hg_prng_below(prng, count) * hg_prng_below(prng, 4) / 3);
        tell(sketches[to % count], hot_zipf_next(&zipf, prng), shape, 1);
    }
    hot_zipf_fini(&zipf);
}

static double bound_of(struct hg_hotkey *const *sketches, unsigned count)
{
    double bound = 0;
    for (unsigned i = 0; i < count; i++)
        bound += (double)hg_hotkey_total(sketches[i]) / hg_hotkey_counters(sketches[i]);
    return bound;
}

static void free_all(struct hg_hotkey **sketches, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        hot_free(sketches[i]);
}

static void test_promises_hold_whatever_is_merged(void **state)
{
    static const double exponents[] = {0, 0.6, 0.99, 1.4};
    static const unsigned keeps[] = {1, 3, 10, 64, 256, 1024, 4096};
    struct hg_prng prng = {1};
    (void)state;
    for (unsigned turn = 0; turn < 60; turn++) {
        struct hg_hotkey *sketches[SPLITS];
        unsigned count = 1 + turn % SPLITS, sizes[SPLITS];
        enum hot_shape shape = (enum hot_shape)(turn % (HOT_MIXED + 1));
        for (unsigned i = 0; i < count; i++)
            sizes[i] = turn < 30 ? 128 : 16 + (unsigned)hg_prng_below(&prng, 300);
        make_sketches(sketches, count, sizes, shape, exponents[turn / 3 % 4], &prng);
        for (unsigned k = 0; k < HG_COUNT_OF(keeps); k++) {
            struct hg_hotmerge *merged = merge(sketches, count, keeps[k]);
            assert_true(hg_hotmerge_used(merged) <= keeps[k]);
            assert_promises(merged, shape, bound_of(sketches, count));
            free(merged);
        }
        free_all(sketches, count);
    }
}

/* Sketches of m counters, m kept: every key with more than N / m is there. */
static void test_frequent_keys_are_kept(void **state)
{
    struct hg_prng prng = {2};
    (void)state;
    for (unsigned turn = 0; turn < 40; turn++) {
        static const unsigned sizes[SPLITS] = {64, 64, 64, 64, 64, 64, 64, 64};
        struct hg_hotkey *sketches[SPLITS], *full[SPLITS];
        unsigned count = 1 + turn % SPLITS, n = 0;
        struct hg_hotmerge *merged;
        make_sketches(sketches, count, sizes, HOT_BINARY, 0.2 * (turn % 7), &prng);
        merged = merge(sketches, count, 64);
        assert_true(hg_hotmerge_absent(merged) <= hg_hotmerge_total(merged) / 64);
        for (unsigned i = 0; i < count; i++)
            full[n++] = sketches[count - 1 - i];
        free(merged);
        merged = merge(full, n, 64);
        for (uint32_t id = 0; id < IDS; id++) {
            struct hg_hotkey_entry entry;
            assert_true(truth[id] <= hg_hotmerge_total(merged) / 64 ||
                        find(merged, id, HOT_BINARY, &entry));
        }
        free(merged);
        free_all(sketches, count);
    }
}

static void assert_same(const struct hg_hotmerge *a, const struct hg_hotmerge *b)
{
    struct hg_hotkey_entry x, y;
    assert_int_equal(hg_hotmerge_used(a), hg_hotmerge_used(b));
    assert_int_equal(hg_hotmerge_total(a), hg_hotmerge_total(b));
    assert_int_equal(hg_hotmerge_absent(a), hg_hotmerge_absent(b));
    for (unsigned i = 0; i < hg_hotmerge_used(a); i++) {
        hg_hotmerge_entry(a, i, &x);
        if (i < HG_HOT_TOP) {
            hg_hotmerge_entry(b, i, &y);
            assert_int_equal(key_order(&x.key, &y.key), 0);
        }
        assert_true(hg_hotmerge_find(b, &x.key, &y));
        assert_int_equal(x.count, y.count);
        assert_int_equal(x.error, y.error);
    }
}

static void test_order_of_sketches_does_not_matter(void **state)
{
    static const unsigned sizes[SPLITS] = {100, 100, 64, 64, 50, 300, 100, 16};
    struct hg_prng prng = {4};
    (void)state;
    for (unsigned turn = 0; turn < 30; turn++) {
        struct hg_hotkey *sketches[SPLITS];
        unsigned count = 2 + turn % (SPLITS - 1), keep = 20 + turn * 5;
        struct hg_hotmerge *first, *other;
        make_sketches(sketches, count, sizes, HOT_MIXED, turn % 2 == 0 ? 0 : 0.9, &prng);
        first = merge(sketches, count, keep);
        for (unsigned i = count - 1; i > 0; i--) {
            unsigned j = (unsigned)hg_prng_below(&prng, i + 1);
            struct hg_hotkey *held = sketches[i];
            sketches[i] = sketches[j];
            sketches[j] = held;
        }
        other = merge(sketches, count, keep);
        assert_same(first, other);
        free(first);
        free(other);
        free_all(sketches, count);
    }
}

static void test_a_missing_key_is_credited_the_minimum(void **state)
{
    struct hg_hotkey *sketches[3] = {hot_new(16, false), hot_new(16, false), hot_new(16, false)};
    struct hg_hotkey_entry entry;
    struct hg_hotmerge *merged;
    (void)state;
    memset(truth, 0, sizeof truth);
    for (uint32_t id = 0; id < 16; id++) {
        tell(sketches[0], id, HOT_BINARY, 10 + id);      // full, minimum 10
        tell(sketches[1], 8 + id, HOT_BINARY, 100 + id); // full, minimum 100
    }
    tell(sketches[0], 16, HOT_BINARY, 1); // in place of key 0: count 11, error 10; minimum 11
    tell(sketches[2], 3, HOT_BINARY, 7);  // not full: nothing to be credited
    merged = merge(sketches, 3, 100);
    assert_int_equal(hg_hotmerge_used(merged), 24 - 1);
    assert_int_equal(hg_hotmerge_absent(merged), 11 + 100);
    assert_true(find(merged, 3, HOT_BINARY, &entry));
    assert_int_equal(entry.count, 13 + 100 + 7);
    assert_int_equal(entry.error, 100);
    assert_true(find(merged, 10, HOT_BINARY, &entry));
    assert_int_equal(entry.count, 20 + 102);
    assert_int_equal(entry.error, 0);
    assert_true(find(merged, 16, HOT_BINARY, &entry));
    assert_int_equal(entry.count, 11 + 108);
    assert_int_equal(entry.error, 10);
    assert_true(find(merged, 20, HOT_BINARY, &entry));
    assert_int_equal(entry.count, 11 + 112);
    assert_int_equal(entry.error, 11);
    assert_false(find(merged, 0, HOT_BINARY, &entry));
    free(merged);
    free_all(sketches, 3);
}

/* Many keys of one count: selection must end, and be the same for every order. */
static void test_equal_counts(void **state)
{
    struct hg_hotkey *sketches[2] = {hot_new(1000, false), hot_new(1000, false)};
    struct hg_hotmerge *merged, *other;
    struct hg_hotkey *turned[2] = {sketches[1], sketches[0]};
    (void)state;
    memset(truth, 0, sizeof truth);
    for (uint32_t id = 0; id < 1000; id++) {
        tell(sketches[0], id, HOT_CLASH, 3);
        tell(sketches[1], id + 1000, HOT_CLASH, 3);
    }
    for (unsigned keep = 1; keep <= 2000; keep += 333) {
        merged = merge(sketches, 2, keep);
        other = merge(turned, 2, keep);
        assert_int_equal(hg_hotmerge_used(merged), keep);
        assert_promises(merged, HOT_CLASH, 6);
        assert_same(merged, other);
        free(merged);
        free(other);
    }
    free_all(sketches, 2);
}

static void test_nothing_to_merge(void **state)
{
    struct hg_hotkey *sketches[2] = {hot_new(16, false), hot_new(16, false)};
    void *memory = malloc(hg_hotmerge_bytes(10));
    struct hg_hotmerge *merged = hg_hotmerge_make(memory, 10, NULL, 0, NULL);
    struct hg_hotkey_entry entry;
    (void)state;
    assert_int_equal(hg_hotmerge_used(merged), 0);
    assert_int_equal(hg_hotmerge_total(merged), 0);
    assert_int_equal(hg_hotmerge_absent(merged), 0);
    assert_false(find(merged, 1, HOT_BINARY, &entry));
    free(memory);
    for (unsigned count = 1; count <= 2; count++) {
        merged = merge(sketches, count, 10);
        assert_int_equal(hg_hotmerge_used(merged), 0);
        assert_false(find(merged, 1, HOT_BINARY, &entry));
        free(merged);
    }
    free_all(sketches, 2);
}

static void test_short_keys_take_little_memory(void **state)
{
    struct hg_hotkey *sketch = hot_new(512, false);
    struct hg_hotmerge *merged;
    (void)state;
    memset(truth, 0, sizeof truth);
    for (uint32_t id = 0; id < 600; id++)
        tell(sketch, id, HOT_BINARY, 1);
    merged = merge(&sketch, 1, 512);
    assert_true(hg_hotmerge_size(merged) <= 512 * (32 + 4 + 4) + 64);
    free(merged);
    hot_free(sketch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promises_hold_whatever_is_merged),
        cmocka_unit_test(test_frequent_keys_are_kept),
        cmocka_unit_test(test_order_of_sketches_does_not_matter),
        cmocka_unit_test(test_a_missing_key_is_credited_the_minimum),
        cmocka_unit_test(test_equal_counts),
        cmocka_unit_test(test_nothing_to_merge),
        cmocka_unit_test(test_short_keys_take_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
