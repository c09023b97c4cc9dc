// bindhelp - tables and keys for the tests of bind throttle and bind watch
// SPDX-License-Identifier: BSD-3-Clause
//
// Keys are texts; the hash is of the whole text, or one that the test says. Include cmocka first.
#ifndef HG_TEST_BINDHELP_H
#define HG_TEST_BINDHELP_H

#include <stdio.h>
#include <stdlib.h>

#include "base/op.h"
#include "base/prng.h"
#include "core/bindthrottle.h"

#define SECOND_US 1000000u

static inline struct hg_bindthrottle *table_new(uint32_t capacity)
{
    return hg_bindthrottle_init(malloc(hg_bindthrottle_bytes(capacity)), capacity);
}

static inline uint32_t bytes_hash(const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * 16777619u;
    return hash;
}

static inline struct hg_bindthrottle_key key_of(enum hg_hot_type type, const char *text)
{
    return (struct hg_bindthrottle_key){
        .type = (uint8_t)type,
        .hash = bytes_hash(text, strlen(text)),
        .bytes = hg_span_str(text),
    };
}

#endif
