// t_hotkey - the sketch against exact counts
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/attr.h"
#include "hothelp.h"

#define IDS 20000

static uint64_t truth[IDS];
static bool seen[IDS];

static void tell(struct hg_hotkey *sketch, uint32_t id, enum hot_shape shape, uint64_t n)
{
    uint8_t room[256];
    struct hg_hotkey_key key = hot_key(id, shape, room);
    truth[id] += n;
    assert_true(hg_hotkey_tell(sketch, &key, n));
}

static bool find(const struct hg_hotkey *sketch, uint32_t id, enum hot_shape shape,
                 struct hg_hotkey_entry *ret)
{
    uint8_t room[256];
    struct hg_hotkey_key key = hot_key(id, shape, room);
    return hg_hotkey_find(sketch, &key, ret);
}

/* Every promise of the header. */
static void assert_promises(const struct hg_hotkey *sketch, enum hot_shape shape)
{
    uint64_t n = 0, sum = 0, min = hg_hotkey_min(sketch), least = UINT64_MAX;
    unsigned m = hg_hotkey_counters(sketch), used = hg_hotkey_used(sketch), distinct = 0;
    struct hg_hotkey_entry entry;

    for (uint32_t id = 0; id < IDS; id++) {
        n += truth[id];
        distinct += truth[id] > 0;
    }
    assert_int_equal(hg_hotkey_total(sketch), n);
    assert_int_equal(used, distinct < m ? distinct : m);
    memset(seen, 0, sizeof seen);
    for (unsigned i = 0; i < used; i++) {
        hg_hotkey_entry(sketch, i, &entry);
        uint32_t id = hot_id(&entry.key, shape);
        assert_true(id < IDS && !seen[id]);
        seen[id] = true;
        assert_true(entry.count - entry.error <= truth[id] && truth[id] <= entry.count);
        assert_true(entry.error <= min);
        assert_true(entry.error <= n / m);
        sum += entry.count;
        least = entry.count < least ? entry.count : least;
    }
    assert_int_equal(sum, n);
    assert_true(min == (used < m ? 0 : least));
    for (uint32_t id = 0; id < IDS; id++) {
        assert_true(find(sketch, id, shape, &entry) == seen[id]);
        assert_true(seen[id] || truth[id] <= min);
        assert_true(seen[id] || truth[id] <= n / m);
        assert_true(!seen[id] || hot_id(&entry.key, shape) == id);
    }
}

/* ---- streams ---- */

enum { UNIFORM, FEW, ZIPF, DISTINCT, CYCLE, ROTATING, WEIGHTED, KINDS };

static struct hot_zipf zipf;

static void tell_stream(struct hg_hotkey *sketch, unsigned kind, enum hot_shape shape,
                        unsigned count, struct hg_prng *prng)
{
    unsigned m = hg_hotkey_counters(sketch);
    for (unsigned i = 0; i < count; i++) {
        uint32_t id = 0;
        uint64_t n = 1;
        switch (kind) {
        case UNIFORM:
            id = (uint32_t)hg_prng_below(prng, IDS);
            break;
        case FEW: // fewer keys than counters
            id = (uint32_t)hg_prng_below(prng, m - 1);
            break;
        case ZIPF:
            id = hot_zipf_next(&zipf, prng);
            break;
        case DISTINCT:
            id = i % IDS;
            break;
        case CYCLE: // one key more than there are counters: each comes after it was evicted
            id = i % (m + 1);
            break;
        case ROTATING: // hot for a while, then never again
            id = i / 100 % IDS;
            break;
        default:
            id = hot_zipf_next(&zipf, prng);
            n = hg_prng_below(prng, 8) == 0 ? 1 + hg_prng_below(prng, 5000) : 1;
        }
        tell(sketch, id, shape, n);
    }
}

static void test_promises_hold_on_every_stream(void **state)
{
    static const unsigned sizes[] = {16, 17, 64, 100, 512};
    (void)state;
    hot_zipf_init(&zipf, IDS, 1.0);
    for (unsigned s = 0; s < HG_COUNT_OF(sizes); s++) {
        for (unsigned kind = 0; kind < KINDS; kind++) {
            struct hg_prng prng = {sizes[s] * 100 + kind};
            struct hg_hotkey *sketch = hot_new(sizes[s], false);
            memset(truth, 0, sizeof truth);
            for (unsigned part = 0; part < 4; part++) {
                tell_stream(sketch, kind, HOT_BINARY, part == 0 ? 300 : 7000, &prng);
                assert_promises(sketch, HOT_BINARY);
            }
            hot_free(sketch);
        }
    }
    hot_zipf_fini(&zipf);
}

static void test_promises_hold_for_every_shape_of_key(void **state)
{
    (void)state;
    hot_zipf_init(&zipf, IDS, 0.9);
    for (unsigned shape = HOT_BINARY; shape <= HOT_CLASH; shape++) {
        for (unsigned kind = 0; kind < KINDS; kind++) {
            struct hg_prng prng = {shape * 100 + kind};
            struct hg_hotkey *sketch = hot_new(64, true);
            memset(truth, 0, sizeof truth);
            tell_stream(sketch, kind, shape, 20000, &prng);
            assert_promises(sketch, shape);
            hot_free(sketch);
        }
    }
    hot_zipf_fini(&zipf);
}

static void test_the_largest_sketch(void **state)
{
    struct hg_prng prng = {3};
    struct hg_hotkey *sketch = hot_new(HG_HOTKEY_COUNTERS_MAX, false);
    (void)state;
    memset(truth, 0, sizeof truth);
    tell_stream(sketch, UNIFORM, HOT_BINARY, 100000, &prng);
    assert_promises(sketch, HOT_BINARY);
    hot_free(sketch);
}

/* ---- single promises ---- */

static void test_exact_while_there_are_counters(void **state)
{
    struct hg_hotkey *sketch = hot_new(16, false);
    struct hg_hotkey_entry entry;
    (void)state;
    memset(truth, 0, sizeof truth);
    for (uint32_t id = 0; id < 16; id++) {
        assert_int_equal(hg_hotkey_min(sketch), 0);
        for (uint32_t i = 0; i <= id; i++)
            tell(sketch, id, HOT_BINARY, 1);
    }
    assert_int_equal(hg_hotkey_min(sketch), 1);
    for (uint32_t id = 0; id < 16; id++) {
        assert_true(find(sketch, id, HOT_BINARY, &entry));
        assert_int_equal(entry.count, id + 1);
        assert_int_equal(entry.error, 0);
    }
    assert_false(find(sketch, 16, HOT_BINARY, &entry));
    hot_free(sketch);
}

static void test_the_oldest_of_the_smallest_gives_way(void **state)
{
    struct hg_hotkey *sketch = hot_new(16, false);
    struct hg_hotkey_entry entry;
    (void)state;
    memset(truth, 0, sizeof truth);
    for (uint32_t id = 0; id < 16; id++)
        tell(sketch, id, HOT_BINARY, id == 0 ? 5 : 2);
    tell(sketch, 100, HOT_BINARY, 3);
    assert_false(find(sketch, 1, HOT_BINARY, &entry)); // 0 is older, and not among the smallest
    assert_true(find(sketch, 0, HOT_BINARY, &entry));
    assert_true(find(sketch, 100, HOT_BINARY, &entry));
    assert_int_equal(entry.count, 5);
    assert_int_equal(entry.error, 2);
    tell(sketch, 101, HOT_BINARY, 1);
    assert_false(find(sketch, 2, HOT_BINARY, &entry));
    assert_true(find(sketch, 3, HOT_BINARY, &entry));
    hot_free(sketch);
}

static void test_large_weights_overtake_many(void **state)
{
    struct hg_hotkey *sketch = hot_new(64, false);
    struct hg_hotkey_entry entry;
    (void)state;
    memset(truth, 0, sizeof truth);
    for (uint32_t id = 0; id < 64; id++)
        tell(sketch, id, HOT_BINARY, 1 + id * 10);
    tell(sketch, 0, HOT_BINARY, 1000000000000);
    tell(sketch, 1, HOT_BINARY, 310); // lands in the bucket of another
    assert_promises(sketch, HOT_BINARY);
    assert_true(find(sketch, 0, HOT_BINARY, &entry));
    assert_int_equal(entry.count, 1000000000001);
    assert_int_equal(entry.error, 0);
    hot_free(sketch);
}

static void test_long_keys_need_room(void **state)
{
    uint8_t bytes[256];
    struct hg_hotkey *sketch = hot_new(16, false);
    struct hg_hotkey_entry entry;
    struct hg_hotkey_key key;
    void *room = malloc(hg_hotkey_room_bytes(16));
    (void)state;
    memset(truth, 0, sizeof truth);
    tell(sketch, 1, HOT_BINARY, 1);
    memset(bytes, 'x', sizeof bytes);
    key = (struct hg_hotkey_key){bytes, 77, HG_HOTKEY_INLINE_BYTES + 1, 0};
    assert_null(hg_hotkey_room(sketch));
    assert_false(hg_hotkey_tell(sketch, &key, 1));
    assert_false(hg_hotkey_find(sketch, &key, &entry));
    assert_promises(sketch, HOT_BINARY); // nothing has changed
    key.len = HG_HOTKEY_INLINE_BYTES;
    assert_true(hg_hotkey_tell(sketch, &key, 1)); // just fits
    key.len++;
    hg_hotkey_give_room(sketch, room);
    assert_ptr_equal(hg_hotkey_room(sketch), room);
    assert_true(hg_hotkey_tell(sketch, &key, 2));
    assert_true(hg_hotkey_find(sketch, &key, &entry));
    assert_int_equal(entry.count, 2);
    assert_int_equal(entry.key.len, HG_HOTKEY_INLINE_BYTES + 1);
    assert_memory_equal(entry.key.at, bytes, entry.key.len);
    hg_hotkey_clear(sketch);
    assert_ptr_equal(hg_hotkey_room(sketch), room);
    assert_false(hg_hotkey_find(sketch, &key, &entry));
    assert_true(hg_hotkey_tell(sketch, &key, 1));
    hot_free(sketch);
}

static void test_keys_are_told_apart(void **state)
{
    static const uint8_t bytes[] = "ab\0c\0";
    struct hg_hotkey *sketch = hot_new(16, false);
    struct hg_hotkey_entry entry;
    const struct hg_hotkey_key keys[] = {
        {bytes, 9, 3, 0}, {bytes, 9, 3, 2},     {bytes, 9, 4, 2},  {bytes, 9, 5, 2},
        {bytes, 9, 2, 2}, {bytes + 2, 9, 1, 0}, {bytes, 10, 3, 0}, {NULL, 9, 0, 0},
    };
    (void)state;
    for (unsigned i = 0; i < HG_COUNT_OF(keys); i++)
        assert_true(hg_hotkey_tell(sketch, &keys[i], i + 1));
    assert_int_equal(hg_hotkey_used(sketch), HG_COUNT_OF(keys));
    for (unsigned i = 0; i < HG_COUNT_OF(keys); i++) {
        assert_true(hg_hotkey_find(sketch, &keys[i], &entry));
        assert_int_equal(entry.count, i + 1);
        assert_int_equal(entry.key.len, keys[i].len);
        assert_int_equal(entry.key.table_len, keys[i].table_len);
        assert_int_equal(entry.key.hash, keys[i].hash);
    }
    hot_free(sketch);
}

static void test_a_cleared_sketch_is_a_new_one(void **state)
{
    struct hg_hotkey *used = hot_new(100, true);
    (void)state;
    hot_zipf_init(&zipf, IDS, 1.0);
    for (unsigned turn = 0; turn < 5; turn++) {
        struct hg_hotkey *fresh = hot_new(100, true);
        struct hg_prng a = {turn}, b = {turn};
        memset(truth, 0, sizeof truth);
        tell_stream(used, turn, HOT_MIXED, 5000, &a);
        assert_promises(used, HOT_MIXED);
        tell_stream(fresh, turn, HOT_MIXED, 5000, &b);
        assert_int_equal(hg_hotkey_used(used), hg_hotkey_used(fresh));
        for (unsigned i = 0; i < hg_hotkey_used(fresh); i++) {
            struct hg_hotkey_entry x, y;
            hg_hotkey_entry(used, i, &x);
            hg_hotkey_entry(fresh, i, &y);
            assert_int_equal(x.count, y.count);
            assert_int_equal(x.error, y.error);
            assert_int_equal(hot_id(&x.key, HOT_MIXED), hot_id(&y.key, HOT_MIXED));
        }
        hot_free(fresh);
        hg_hotkey_clear(used);
        assert_int_equal(hg_hotkey_used(used), 0);
        assert_int_equal(hg_hotkey_total(used), 0);
        assert_int_equal(hg_hotkey_min(used), 0);
    }
    hot_free(used);
    hot_zipf_fini(&zipf);
}

static void test_memory_is_bounded(void **state)
{
    (void)state;
    assert_true(hg_hotkey_bytes(512) <= 48 * 1024);
    assert_true(hg_hotkey_bytes(256) <= 24 * 1024);
    assert_true(hg_hotkey_bytes(64) <= 6 * 1024 + 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promises_hold_on_every_stream),
        cmocka_unit_test(test_promises_hold_for_every_shape_of_key),
        cmocka_unit_test(test_the_largest_sketch),
        cmocka_unit_test(test_exact_while_there_are_counters),
        cmocka_unit_test(test_the_oldest_of_the_smallest_gives_way),
        cmocka_unit_test(test_large_weights_overtake_many),
        cmocka_unit_test(test_long_keys_need_room),
        cmocka_unit_test(test_keys_are_told_apart),
        cmocka_unit_test(test_a_cleared_sketch_is_a_new_one),
        cmocka_unit_test(test_memory_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
