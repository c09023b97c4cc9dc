// t_load_gen - tests of load/gen: what a load sends
// SPDX-License-Identifier: BSD-3-Clause
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "load/gen.h"

/* Draws `n` times and returns how often each key came; the caller frees. */
static uint32_t *draw(const struct hg_gen_zipf *zipf, uint32_t n)
{
    struct hg_gen_rng rng = {42};
    uint32_t *count = calloc(zipf->keys, sizeof *count);
    assert_non_null(count);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t key = hg_gen_zipf_draw(zipf, hg_gen_random(&rng));
        assert_true(key < zipf->keys);
        count[key]++;
    }
    return count;
}

static void check_zipf(uint32_t keys, double exponent)
{
    enum { N = 1000000 };
    struct hg_gen_zipf zipf;
    assert_int_equal(hg_gen_zipf_init(&zipf, keys, exponent), 0);
    uint32_t *count = draw(&zipf, N);
    double sum = 0;
    for (uint32_t n = 0; n < keys; n++) {
        sum += pow(n + 1.0, -exponent);
    }
    double got_tail = 0, wanted_tail = 0;
    for (uint32_t n = 0; n < keys; n++) {
        double wanted = N * pow(n + 1.0, -exponent) / sum;
        if (n < 100) { /* each within six standard deviations */
            assert_true(fabs(count[n] - wanted) < 6 * sqrt(wanted) + 1);
        } else {
            got_tail += count[n];
            wanted_tail += wanted;
        }
    }
    assert_true(fabs(got_tail - wanted_tail) < 6 * sqrt(wanted_tail) + 1);
    free(count);
    hg_gen_zipf_fini(&zipf);
}

static void zipf_has_its_shares(void **state)
{
    (void)state;
    check_zipf(100000, 0.99);
    check_zipf(1000, 1.5);
    check_zipf(3, 0.5);
    check_zipf(1, 0.99);
}

static void exponent_zero_is_uniform(void **state)
{
    (void)state;
    check_zipf(50, 0.0);
    check_zipf(100000, 0.0);
}

static void a_mix_has_exact_slots(void **state)
{
    (void)state;
    uint32_t weight[HG_LOAD_OPS] = {[HG_LOAD_GET] = 90, [HG_LOAD_SET] = 9, [HG_LOAD_GAT] = 1};
    uint32_t seen[HG_LOAD_OPS] = {0};
    struct hg_gen_mix_table mix;
    assert_int_equal(hg_gen_mix_init(&mix, weight), 0);
    assert_int_equal(mix.total, 100);
    for (uint32_t i = 0; i < mix.total; i++) {
        seen[mix.slots[i]]++;
    }
    assert_memory_equal(seen, weight, sizeof seen);
    hg_gen_mix_fini(&mix);
}

static void digits_are_enough_for_the_last_key(void **state)
{
    (void)state;
    assert_int_equal(hg_gen_digits(1), 2);
    assert_int_equal(hg_gen_digits(100), 2);
    assert_int_equal(hg_gen_digits(101), 4);
    assert_int_equal(hg_gen_digits(10000), 4);
    assert_int_equal(hg_gen_digits(10001), 6);
    assert_int_equal(hg_gen_digits(1000000000), 10);
}

static void keys_are_padded(void **state)
{
    (void)state;
    uint8_t key[17] = {0};
    hg_gen_put_key(key, "shop:", 'k', 16, 123);
    assert_string_equal((char *)key, "shop:k0000000123");
    hg_gen_put_digits(key + 16, 6, 99999);
    assert_string_equal((char *)key, "shop:k0000099999");
}

/* The first bytes of two values, as the manual's recipe gives them: a change here breaks readers.
 */
static void values_follow_the_recipe(void **state)
{
    (void)state;
    struct hg_gen_values values;
    uint8_t bytes[32];
    assert_int_equal(hg_gen_values_init(&values, 12, 20), 0);
    assert_int_equal(hg_gen_mix(1), UINT64_C(0xe220a8397b1dcdaf));
    struct hg_gen_value value = hg_gen_value_of(&values, 0);
    assert_int_equal(value.flags, 0x7b1dcdaf);
    assert_int_equal(value.len, 12 + ((UINT64_C(0xe220a839) * 9) >> 32));
    hg_gen_value_write(&value, bytes);
    static const uint8_t head[8] = {0xaf, 0xcd, 0x1d, 0x7b, 0x39, 0xa8, 0x20, 0xe2};
    assert_memory_equal(bytes, head, 8);
    size_t start = (UINT64_C(0xe220a8397b1dcdaf) >> 20) % 4096;
    for (size_t i = 8; i < value.len; i++) {
        uint64_t word = hg_gen_mix(0x68656164u + 1 + (start + i) / 8);
        assert_int_equal(bytes[i], (uint8_t)(word >> 8 * ((start + i) % 8)));
    }
    hg_gen_values_fini(&values);
}

static void a_value_is_told_from_any_other(void **state)
{
    (void)state;
    struct hg_gen_values values;
    uint8_t bytes[100];
    assert_int_equal(hg_gen_values_init(&values, 0, 90), 0);
    for (uint32_t key = 0; key < 2000; key++) {
        struct hg_gen_value value = hg_gen_value_of(&values, key);
        assert_true(value.len <= 90);
        hg_gen_value_write(&value, bytes);
        assert_true(hg_gen_value_is(&value, bytes, value.len));
        assert_false(hg_gen_value_is(&value, bytes, value.len + 1));
        assert_int_equal(hg_gen_value_differs_at(&value, bytes, value.len), value.len);
        for (size_t i = 0; i < value.len; i++) {
            bytes[i] ^= 0x10;
            assert_false(hg_gen_value_is(&value, bytes, value.len));
            assert_int_equal(hg_gen_value_differs_at(&value, bytes, value.len), i);
            bytes[i] ^= 0x10;
            assert_int_equal(hg_gen_value_byte(&value, i), bytes[i]);
        }
        struct hg_gen_value next = hg_gen_value_of(&values, key + 1);
        assert_true(next.len != value.len || value.len < 8 ||
                    !hg_gen_value_is(&next, bytes, value.len));
    }
    hg_gen_values_fini(&values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zipf_has_its_shares),
        cmocka_unit_test(exponent_zero_is_uniform),
        cmocka_unit_test(a_mix_has_exact_slots),
        cmocka_unit_test(digits_are_enough_for_the_last_key),
        cmocka_unit_test(keys_are_padded),
        cmocka_unit_test(values_follow_the_recipe),
        cmocka_unit_test(a_value_is_told_from_any_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
