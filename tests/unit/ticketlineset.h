// ticketlineset - one ticket line, a few tenants and waiters, for the tests of the line
// SPDX-License-Identifier: BSD-3-Clause
//
// Included after cmocka.h.
#ifndef TESTS_UNIT_TICKETLINESET_H
#define TESTS_UNIT_TICKETLINESET_H

#include "core/ticketline.h"

#define T0      1000000u
#define MS      1000u
#define TENANTS 4
#define WAITERS 600

static struct hg_ticketline line;
static struct hg_ticketline_tenant tenants[TENANTS];
static struct hg_ticketline_waiter waiters[WAITERS];
static uint32_t pushed;
static struct hg_ticketline_conf conf;

static inline void setup(void)
{
    conf = (struct hg_ticketline_conf){20 * MS};
    pushed = 0;
    hg_ticketline_init(&line);
    for (uint32_t t = 0; t < TENANTS; t++)
        hg_ticketline_tenant_init(&tenants[t]);
}

static inline struct hg_ticketline_waiter *
push_as(uint32_t tenant, uint64_t now_us, uint64_t came_us, uint64_t deadline_us, uint32_t cost)
{
    struct hg_ticketline_waiter *waiter = &waiters[pushed++];
    assert_true(pushed <= WAITERS);
    *waiter = (struct hg_ticketline_waiter){
        .since_us = now_us, .came_us = came_us, .deadline_us = deadline_us, .cost = cost};
    hg_ticketline_push(&line, &tenants[tenant], waiter, now_us);
    return waiter;
}

static inline struct hg_ticketline_waiter *push(uint32_t tenant, uint64_t now_us)
{
    return push_as(tenant, now_us, now_us, now_us + 1000 * MS, 1);
}

static inline void assert_pops(uint64_t now_us, const struct hg_ticketline_waiter *expected)
{
    assert_ptr_equal(hg_ticketline_pop(&line, now_us), expected);
    assert_null(expected->tenant);
}

#endif
