// gen - which operation comes next, on which key, with which value
// SPDX-License-Identifier: BSD-3-Clause
//
// Everything that is sent follows from a key's number, so that any reader can check a value that
// any writer wrote with the same parameters:
//
//     h(n)      = mix(n + 1), 64 bits                 mix is the finisher of splitmix64, see below
//     key       = PREFIX, a letter, n in decimal with zeros in front, to `key_bytes` in all
//     length    = value_min + (h >> 32) * (value_max - value_min + 1) >> 32
//     flags     = the low 32 bits of h
//     value     = h as 8 bytes, low byte first (as many as fit), then bytes 8 .. length - 1 of
//                 pattern[o ..], o = (h >> 20) mod 4096
//     pattern   = mix(0x68656164 + 1), mix(0x68656164 + 2), ... as 8 bytes each, low byte first
//
// The values of two keys differ if they have 8 bytes or more: mix is a bijection.
//
// Pure but for the memory of the tables, which `init` allocates and `fini` frees. The tables are
// read by all threads; a generator of random numbers belongs to one.
#ifndef HG_LOAD_GEN_H
#define HG_LOAD_GEN_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/attr.h"
#include "load/op.h"

#define HG_GEN_WINDOW     4096
#define HG_GEN_MIX_MAX    10000
#define HG_GEN_ZIPF_KEYS  (1u << 24)
#define HG_GEN_KEY_DIGITS 10

/* splitmix64 (Steele, Lea, Flood 2014): a bijection of 64-bit words. */
static inline uint64_t hg_gen_mix(uint64_t n)
{
    uint64_t z = n * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct hg_gen_rng {
    uint64_t state;
};

static inline uint64_t hg_gen_random(struct hg_gen_rng *rng)
{
    return hg_gen_mix(++rng->state);
}

/* A number 0 .. bound - 1 from 32 random bits. */
static inline uint32_t hg_gen_below(uint32_t random, uint32_t bound)
{
    return (uint32_t)(((uint64_t)random * bound) >> 32);
}

/* Weights of operations. `slots` holds each operation as often as its weight says, so a draw is one
 * look-up and the shares are exact. */
struct hg_gen_mix_table {
    uint32_t weight[HG_LOAD_OPS];
    uint32_t total;
    uint8_t *slots;
};

/* Weights -> slots. 0, or -ENOMEM. At least one weight, HG_GEN_MIX_MAX in all. */
HG_MUST_USE int hg_gen_mix_init(struct hg_gen_mix_table *mix, const uint32_t weight[HG_LOAD_OPS]);
void hg_gen_mix_fini(struct hg_gen_mix_table *mix);

/* Key numbers 0 .. keys - 1: number n with a probability proportional to 1 / (n + 1)^exponent.
 * Alias method (Walker 1977, Vose 1991): one random word and one look-up a draw, 8 bytes a key.
 * With exponent 0 no table is made. */
struct hg_gen_zipf {
    uint32_t keys;
    struct hg_gen_alias {
        uint32_t keep; /* stay here when 32 random bits are below this */
        uint32_t other;
    } * alias;
};

/* 0, or -ENOMEM. keys >= 1, and <= HG_GEN_ZIPF_KEYS unless exponent is 0. */
HG_MUST_USE int hg_gen_zipf_init(struct hg_gen_zipf *zipf, uint32_t keys, double exponent);
void hg_gen_zipf_fini(struct hg_gen_zipf *zipf);

static inline uint32_t hg_gen_zipf_draw(const struct hg_gen_zipf *zipf, uint64_t random)
{
    uint32_t n = hg_gen_below((uint32_t)(random >> 32), zipf->keys);
    if (zipf->alias == NULL) {
        return n;
    }
    const struct hg_gen_alias *alias = &zipf->alias[n];
    return (uint32_t)random < alias->keep ? n : alias->other;
}

/* Lengths and bytes of values. */
struct hg_gen_values {
    uint32_t min_bytes;
    uint32_t max_bytes;
    uint8_t *pattern;
};

struct hg_gen_value {
    uint64_t head; /* h of the key: the first 8 bytes, in the order of memory */
    uint32_t flags;
    uint32_t len;
    const uint8_t *body; /* bytes from the ninth on are body[8 ..]; lives as long as the table */
};

HG_MUST_USE int hg_gen_values_init(struct hg_gen_values *values, uint32_t min_bytes,
                                   uint32_t max_bytes);
void hg_gen_values_fini(struct hg_gen_values *values);

static inline struct hg_gen_value hg_gen_value_of(const struct hg_gen_values *values, uint32_t key)
{
    uint64_t h = hg_gen_mix((uint64_t)key + 1);
    uint32_t spread = values->max_bytes - values->min_bytes + 1;
    return (struct hg_gen_value){
        .head = htole64(h),
        .flags = (uint32_t)h,
        .len = values->min_bytes + hg_gen_below((uint32_t)(h >> 32), spread),
        .body = values->pattern + (size_t)((h >> 20) % HG_GEN_WINDOW),
    };
}

/* `to` has room for value->len bytes, at least 8. */
static inline void hg_gen_value_write(const struct hg_gen_value *value, uint8_t *to)
{
    memcpy(to, &value->head, 8);
    if (value->len > 8) {
        memcpy(to + 8, value->body + 8, value->len - 8);
    }
}

/* Whether `len` bytes at `at` are the value. */
static inline bool hg_gen_value_is(const struct hg_gen_value *value, const uint8_t *at, size_t len)
{
    if (len != value->len) {
        return false;
    }
    if (len <= 8) {
        return len == 0 || memcmp(at, &value->head, len) == 0;
    }
    return memcmp(at, &value->head, 8) == 0 && memcmp(at + 8, value->body + 8, len - 8) == 0;
}

/* Position of the first byte that differs from the value, or the shorter length. */
size_t hg_gen_value_differs_at(const struct hg_gen_value *value, const uint8_t *at, size_t len);

/* The byte of a value at a position below its length. */
static inline uint8_t hg_gen_value_byte(const struct hg_gen_value *value, size_t at)
{
    return at < 8 ? ((const uint8_t *)&value->head)[at] : value->body[at];
}

/* How many digits the numbers below `keys` need, rounded up to even (they are written in pairs). */
uint32_t hg_gen_digits(uint32_t keys);

/* Writes `digits` (even) decimal digits of `n` to end before `end`. */
static inline void hg_gen_put_digits(uint8_t *end, uint32_t digits, uint32_t n)
{
    extern const char hg_gen_digit_pairs[201];
    for (; digits > 0; digits -= 2) {
        end -= 2;
        memcpy(end, hg_gen_digit_pairs + 2 * (size_t)(n % 100), 2);
        n /= 100;
    }
}

/* Writes a number in decimal and one more byte; returns where that ends. Room for 11 bytes. */
uint8_t *hg_gen_put_number(uint8_t *to, uint32_t number, char after);

/* Writes the whole key: prefix, letter, zeros, number. Room for key_bytes, and digits fit. */
void hg_gen_put_key(uint8_t *to, const char *prefix, char space, uint32_t key_bytes, uint32_t n);

#endif
