// arenahelp - an arena for every test of a program, empty at its start
// SPDX-License-Identifier: BSD-3-Clause
//
// For inclusion after cmocka.h, in one file of a program, with ARENA_BYTES as the arena's limit.
#ifndef HG_TEST_ARENAHELP_H
#define HG_TEST_ARENAHELP_H

#include "base/arena.h"

static struct hg_arena arena;

static inline int setup(void **state)
{
    (void)state;
    hg_arena_init(&arena, ARENA_BYTES);
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    hg_arena_fini(&arena);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
