// bindtable - a table of throttled keys and a clock, and what tests ask of them
// SPDX-License-Identifier: BSD-3-Clause
#ifndef BINDTABLE_H
#define BINDTABLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "bindhelp.h"

#define DECR 1.0 /* X a second */

static struct hg_bindthrottle *table;
static struct hg_bindthrottle_key key, other;
static struct hg_bindthrottle_told told;
static uint64_t now;

static inline int setup(void **state)
{
    (void)state;
    table = table_new(16);
    key = key_of(HG_HOT_QUERY, "29001111");
    other = key_of(HG_HOT_QUERY, "21001111");
    now = 5 * SECOND_US;
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    free(table);
    return 0;
}

static inline enum hg_bindthrottle_verdict ask(bool busy)
{
    return hg_bindthrottle_decide(table, &key, busy, DECR, now, &told);
}

static inline struct hg_bindthrottle_entry *make(const struct hg_bindthrottle_key *of,
                                                 uint64_t evicted)
{
    return hg_bindthrottle_make(table, of, evicted, DECR, now);
}

/* X in force of the key, 0: no entry. */
static inline uint32_t x_of(const struct hg_bindthrottle_key *of)
{
    const struct hg_bindthrottle_entry *entry = hg_bindthrottle_find(table, of);
    return entry == NULL ? 0 : hg_bindthrottle_x(entry, DECR, now);
}

/* Attempts at one instant until one passes; how many were refused. */
static inline uint32_t until_pass(bool busy)
{
    for (uint32_t refused = 0; refused <= HG_BINDTHROTTLE_MAX; refused++) {
        enum hg_bindthrottle_verdict verdict = ask(busy);
        if (verdict == HG_BINDTHROTTLE_PASS)
            return refused;
        assert_int_equal(verdict, HG_BINDTHROTTLE_REFUSE);
        assert_int_equal(told.x, told.prev);
    }
    fail_msg("no attempt passed");
    return 0;
}

#endif
