// hothelp - streams of keys with exact counts beside them, for the tests of hot keys
// SPDX-License-Identifier: BSD-3-Clause
//
// A key is a number; its bytes follow from it and a shape. Streams are seeded.
#ifndef HG_TEST_HOTHELP_H
#define HG_TEST_HOTHELP_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "core/hotkey.h"

enum hot_shape {
    HOT_BINARY, // four bytes, most of them NUL
    HOT_TABLES, // the same bytes for four keys, which differ in table length only
    HOT_LONG,   // 41 to 250 bytes
    HOT_MIXED,  // 1 to 250 bytes, around the inline limit
    HOT_CLASH,  // as HOT_BINARY, and the hash is the same for all
};

static inline uint32_t hot_hash(const uint8_t *at, size_t len, uint8_t table_len)
{
    struct hg_prng prng = {0x5eed + table_len};
    uint64_t sum = hg_prng_next(&prng);
    for (size_t i = 0; i < len; i++) {
        prng.state = sum ^ at[i];
        sum = hg_prng_next(&prng);
    }
    return (uint32_t)(sum >> 32);
}

/* The key of number `id`; its bytes lie in `room`. */
static inline struct hg_hotkey_key hot_key(uint32_t id, enum hot_shape shape, uint8_t room[256])
{
    struct hg_hotkey_key key = {.at = room, .len = 4};
    uint32_t bytes = id;

    if (shape == HOT_TABLES) {
        bytes = id / 4;
        key.table_len = (uint8_t)(id % 4);
    } else if (shape == HOT_LONG) {
        key.len = (uint8_t)(41 + id % 210);
    } else if (shape == HOT_MIXED) {
        static const uint8_t lens[] = {4, 7, 8, 15, 16, 17, 31, 32, 33, 39, 40, 41, 100, 250};
        key.len = lens[id % sizeof lens];
    }
    memset(room, 0, key.len);
    memcpy(room + key.len - 4, &bytes, 4); // the end tells them apart
    key.hash = shape == HOT_CLASH ? 7 : hot_hash(room, key.len, key.table_len);
    return key;
}

static inline uint32_t hot_id(const struct hg_hotkey_key *key, enum hot_shape shape)
{
    uint32_t id;
    memcpy(&id, key->at + key->len - 4, 4);
    return shape == HOT_TABLES ? id * 4 + key->table_len : id;
}

struct hot_zipf {
    double *mass; // of the keys up to and with number i
    uint32_t keys;
};

/* Key i comes with weight 1 / (i + 1)^exponent; 0: all alike. */
static inline void hot_zipf_init(struct hot_zipf *zipf, uint32_t keys, double exponent)
{
    double sum = 0;
    zipf->keys = keys;
    zipf->mass = malloc(keys * sizeof *zipf->mass);
    for (uint32_t i = 0; i < keys; i++)
        zipf->mass[i] = sum += pow(i + 1, -exponent);
}

static inline void hot_zipf_fini(struct hot_zipf *zipf)
{
    free(zipf->mass);
}

static inline uint32_t hot_zipf_next(const struct hot_zipf *zipf, struct hg_prng *prng)
{
    double at = (double)(hg_prng_next(prng) >> 11) * 0x1p-53 * zipf->mass[zipf->keys - 1];
    uint32_t low = 0, high = zipf->keys - 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (zipf->mass[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A sketch in memory of exactly its size, so that a sanitizer sees what lies outside. */
static inline struct hg_hotkey *hot_new(unsigned counters, bool with_room)
{
    struct hg_hotkey *sketch = hg_hotkey_init(malloc(hg_hotkey_bytes(counters)), counters);
    if (with_room)
        hg_hotkey_give_room(sketch, malloc(hg_hotkey_room_bytes(counters)));
    return sketch;
}

static inline void hot_free(struct hg_hotkey *sketch)
{
    free(hg_hotkey_room(sketch));
    free(sketch);
}

#endif
