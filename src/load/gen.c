// gen - which operation comes next, on which key, with which value
// SPDX-License-Identifier: BSD-3-Clause
#include "load/gen.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

const struct hg_load_op_info hg_load_op_table[HG_LOAD_OPS] = {
#define LOAD_OP(name, printed, opcode, space, text, operation)                                     \
    [HG_LOAD_##name] = {printed, opcode, space, text, operation},
#include "load/op.def"
#undef LOAD_OP
};

const char hg_gen_digit_pairs[201] = "00010203040506070809"
                                     "10111213141516171819"
                                     "20212223242526272829"
                                     "30313233343536373839"
                                     "40414243444546474849"
                                     "50515253545556575859"
                                     "60616263646566676869"
                                     "70717273747576777879"
                                     "80818283848586878889"
                                     "90919293949596979899";

int hg_gen_mix_init(struct hg_gen_mix_table *mix, const uint32_t weight[HG_LOAD_OPS])
{
    uint32_t total = 0;
    for (int op = 0; op < HG_LOAD_OPS; op++) {
        mix->weight[op] = weight[op];
        total += weight[op];
    }
    mix->slots = malloc(total);
    if (mix->slots == NULL) {
        return -ENOMEM;
    }
    mix->total = total;
    uint32_t at = 0;
    for (int op = 0; op < HG_LOAD_OPS; op++) {
        memset(mix->slots + at, op, weight[op]);
        at += weight[op];
    }
    return 0;
}

void hg_gen_mix_fini(struct hg_gen_mix_table *mix)
{
    free(mix->slots);
    mix->slots = NULL;
}

/* Vose: columns that have less than the mean are filled up from one that has more. `share` is in
 * units of the mean; `work` lists the columns with less from its start, with more from its end. */
static void fill_alias(struct hg_gen_zipf *zipf, double *share, uint32_t *work)
{
    uint32_t less = 0;
    uint32_t more = zipf->keys;
    for (uint32_t n = 0; n < zipf->keys; n++) {
        work[share[n] < 1.0 ? less++ : --more] = n;
    }
    while (less > 0 && more < zipf->keys) {
        uint32_t small = work[--less];
        uint32_t large = work[more];
        zipf->alias[small].keep = (uint32_t)(share[small] * 4294967296.0);
        zipf->alias[small].other = large;
        share[large] -= 1.0 - share[small];
        if (share[large] < 1.0) {
            more++;
            work[less++] = large;
        }
    }
    /* What is left has the mean, up to rounding. */
    for (uint32_t i = 0; i < less; i++) {
        zipf->alias[work[i]] = (struct hg_gen_alias){UINT32_MAX, work[i]};
    }
    for (uint32_t i = more; i < zipf->keys; i++) {
        zipf->alias[work[i]] = (struct hg_gen_alias){UINT32_MAX, work[i]};
    }
}

int hg_gen_zipf_init(struct hg_gen_zipf *zipf, uint32_t keys, double exponent)
{
    zipf->keys = keys;
    zipf->alias = NULL;
    if (exponent <= 0.0) {
        return 0;
    }
    zipf->alias = calloc(keys, sizeof *zipf->alias);
    double *share = malloc(keys * sizeof *share);
    uint32_t *work = malloc(keys * sizeof *work);
    int result = -ENOMEM;
    if (zipf->alias != NULL && share != NULL && work != NULL) {
        double sum = 0.0;
        for (uint32_t n = 0; n < keys; n++) {
            share[n] = pow((double)n + 1.0, -exponent);
            sum += share[n];
        }
        for (uint32_t n = 0; n < keys; n++) {
            share[n] *= (double)keys / sum;
        }
        fill_alias(zipf, share, work);
        result = 0;
    } else {
        hg_gen_zipf_fini(zipf);
    }
    free(share);
    free(work);
    return result;
}

void hg_gen_zipf_fini(struct hg_gen_zipf *zipf)
{
    free(zipf->alias);
    zipf->alias = NULL;
}

int hg_gen_values_init(struct hg_gen_values *values, uint32_t min_bytes, uint32_t max_bytes)
{
    size_t words = (HG_GEN_WINDOW + (size_t)max_bytes) / 8 + 1;
    values->min_bytes = min_bytes;
    values->max_bytes = max_bytes;
    values->pattern = malloc(words * 8);
    if (values->pattern == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < words; i++) {
        uint64_t word = htole64(hg_gen_mix(0x68656164u + i + 1));
        memcpy(values->pattern + i * 8, &word, 8);
    }
    return 0;
}

void hg_gen_values_fini(struct hg_gen_values *values)
{
    free(values->pattern);
    values->pattern = NULL;
}

size_t hg_gen_value_differs_at(const struct hg_gen_value *value, const uint8_t *at, size_t len)
{
    size_t i = 0;
    while (i < len && i < value->len && at[i] == hg_gen_value_byte(value, i)) {
        i++;
    }
    return i;
}

uint32_t hg_gen_digits(uint32_t keys)
{
    uint32_t digits = 2;
    for (uint32_t last = keys - 1; last >= 100; last /= 100) {
        digits += 2;
    }
    return digits;
}

uint8_t *hg_gen_put_number(uint8_t *to, uint32_t number, char after)
{
    uint8_t digits[10];
    int n = 0;
    do {
        digits[n++] = (uint8_t)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (n > 0) {
        *to++ = digits[--n];
    }
    *to++ = (uint8_t)after;
    return to;
}

void hg_gen_put_key(uint8_t *to, const char *prefix, char space, uint32_t key_bytes, uint32_t n)
{
    size_t prefix_bytes = strlen(prefix);
    memcpy(to, prefix, prefix_bytes);
    to[prefix_bytes] = (uint8_t)space;
    memset(to + prefix_bytes + 1, '0', key_bytes - prefix_bytes - 1);
    uint32_t digits = hg_gen_digits(n + 1);
    hg_gen_put_digits(to + key_bytes, digits, n);
}
