// t_leaseplan - how workers part a server's connection limit
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/attr.h"
#include "core/leaseplan.h"

#define ALL    HG_LEASEPLAN_NOBODY
#define COUNT  4
#define ALIVE  HG_LEASEPLAN_ALIVE
#define UNBORN HG_LEASEPLAN_UNBORN
#define GONE   HG_LEASEPLAN_GONE

/* A situation of up to four workers, {life, units, held, idle, wanted}, and what they do. */
struct row {
    const char *name;
    uint32_t limit, owner, count;
    struct hg_leaseplan_worker workers[COUNT];
    uint32_t targets[COUNT];
    uint32_t takes[COUNT], yields[COUNT];
    uint32_t from[COUNT][COUNT];
};

static const struct row rows[] = {
    {.name = "all work and none waits",
     .limit = 8,
     .owner = ALL,
     .count = 2,
     .workers = {{ALIVE, 4, 4, 0, 0, 0}, {ALIVE, 4, 4, 0, 0, 0}},
     .targets = {4, 4}},
    {.name = "both wait at their even parts",
     .limit = 8,
     .owner = ALL,
     .count = 2,
     .workers = {{ALIVE, 4, 4, 0, 9, 0}, {ALIVE, 4, 4, 0, 5, 0}},
     .targets = {4, 4}},
    {.name = "the odd unit stays where it is",
     .limit = 5,
     .owner = ALL,
     .count = 2,
     .workers = {{ALIVE, 2, 2, 0, 9, 0}, {ALIVE, 3, 3, 0, 9, 0}},
     .targets = {2, 3}},
    {.name = "one waits, another has unused units and keeps one",
     .limit = 8,
     .owner = ALL,
     .count = 2,
     .workers = {{ALIVE, 4, 4, 0, 9, 0}, {ALIVE, 4, 0, 0, 0, 0}},
     .targets = {7, 1},
     .from = {{0, 3}}},
    {.name = "what nobody has goes first",
     .limit = 12,
     .owner = ALL,
     .count = 3,
     .workers = {{ALIVE, 2, 2, 0, 4, 0}, {ALIVE, 4, 1, 0, 0, 0}, {ALIVE, 3, 3, 0, 0, 0}},
     .targets = {6, 1, 3},
     .takes = {3},
     .from = {{0, 1}}},
    {.name = "two wait for what nobody has: each its part of it",
     .limit = 10,
     .owner = ALL,
     .count = 2,
     .workers = {{ALIVE, 4, 4, 0, 9, 0}, {ALIVE, 2, 2, 0, 9, 0}},
     .targets = {5, 5},
     .takes = {1, 3}},
    {.name = "who waits and has not connected yet is not robbed below the water",
     .limit = 8,
     .owner = ALL,
     .count = 2,
     .workers = {{ALIVE, 4, 4, 0, 9, 0}, {ALIVE, 4, 1, 0, 9, 0}},
     .targets = {4, 4}},
    {.name = "above the water yields to below",
     .limit = 8,
     .owner = ALL,
     .count = 2,
     .workers = {{ALIVE, 7, 7, 0, 3, 0}, {ALIVE, 1, 1, 0, 9, 0}},
     .targets = {4, 4},
     .yields = {3}},
    {.name = "it yields no more than is waited for",
     .limit = 8,
     .owner = ALL,
     .count = 2,
     .workers = {{ALIVE, 7, 7, 0, 3, 0}, {ALIVE, 1, 1, 0, 1, 0}},
     .targets = {6, 2},
     .yields = {1}},
    {.name = "nobody waits: nobody yields",
     .limit = 8,
     .owner = ALL,
     .count = 2,
     .workers = {{ALIVE, 7, 7, 0, 0, 0}, {ALIVE, 1, 1, 0, 0, 0}},
     .targets = {7, 1}},
    {.name = "idle connections are yielded below the water too, but for one",
     .limit = 8,
     .owner = ALL,
     .count = 2,
     .workers = {{ALIVE, 4, 4, 0, 9, 0}, {ALIVE, 4, 4, 4, 0, 0}},
     .targets = {7, 1},
     .yields = {0, 3}},
    {.name = "unused units are taken before anybody closes anything",
     .limit = 12,
     .owner = ALL,
     .count = 3,
     .workers = {{ALIVE, 4, 4, 0, 2, 0}, {ALIVE, 4, 4, 4, 0, 0}, {ALIVE, 4, 2, 0, 0, 0}},
     .targets = {6, 1, 2},
     .from = {{0, 0, 2}}},
    {.name = "who has most beyond his target yields first",
     .limit = 13,
     .owner = ALL,
     .count = 3,
     .workers = {{ALIVE, 1, 1, 0, 3, 0}, {ALIVE, 5, 5, 3, 0, 0}, {ALIVE, 7, 7, 4, 0, 0}},
     .targets = {4, 2, 3},
     .yields = {0, 0, 3}},
    {.name = "of two that have as much beyond it, one yields",
     .limit = 9,
     .owner = ALL,
     .count = 3,
     .workers = {{ALIVE, 1, 1, 0, 1, 0}, {ALIVE, 4, 4, 2, 0, 0}, {ALIVE, 4, 4, 2, 0, 0}},
     .targets = {2, 2, 2},
     .yields = {0, 1, 0}},
    {.name = "a worker that has not begun is kept one",
     .limit = 8,
     .owner = ALL,
     .count = 3,
     .workers = {{ALIVE, 3, 3, 0, 9, 0}, {UNBORN, 0, 0, 0, 0, 0}, {GONE, 0, 0, 0, 0, 0}},
     .targets = {7, 1, 0},
     .takes = {4}},
    {.name = "fewer units than workers",
     .limit = 1,
     .owner = ALL,
     .count = 2,
     .workers = {{ALIVE, 1, 1, 0, 9, 0}, {ALIVE, 0, 0, 0, 9, 0}},
     .targets = {1, 0}},
    {.name = "one owner: the others yield all, if it waits",
     .limit = 8,
     .owner = 1,
     .count = 3,
     .workers = {{ALIVE, 3, 2, 0, 0, 0}, {ALIVE, 3, 3, 0, 9, 0}, {ALIVE, 2, 1, 0, 0, 0}},
     .targets = {0, 8, 0},
     .yields = {2, 0, 1},
     .from = {{0}, {1, 0, 1}}},
};

static void t_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++) {
        struct row row = rows[i];
        uint32_t unowned = row.limit;
        for (uint32_t w = 0; w < row.count; w++)
            unowned -= row.workers[w].units;
        hg_leaseplan_fill(row.workers, row.count, row.limit, row.owner);
        for (uint32_t w = 0; w < row.count; w++) {
            struct hg_leaseplan plan;
            hg_leaseplan_decide(row.workers, row.count, unowned, w, &plan);
            if (row.workers[w].target != row.targets[w] || plan.take != row.takes[w] ||
                plan.yield != row.yields[w])
                fail_msg("%s: worker %u: target %u, take %u, yield %u", row.name, w,
                         row.workers[w].target, plan.take, plan.yield);
            for (uint32_t o = 0; o < row.count; o++) {
                if (plan.from[o] != row.from[w][o])
                    fail_msg("%s: worker %u takes %u from %u", row.name, w, plan.from[o], o);
            }
        }
    }
}

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* A random situation in which `limit` is kept to. */
static uint32_t random_workers(uint64_t *seed, struct hg_leaseplan_worker *workers, uint32_t count,
                               uint32_t limit)
{
    uint32_t left = limit;
    for (uint32_t w = 0; w < count; w++) {
        uint32_t units = (uint32_t)next_random(seed) % (left + 1);
        uint32_t held = (uint32_t)next_random(seed) % (units + 1);
        workers[w] = (struct hg_leaseplan_worker){
            .life = next_random(seed) % 8 == 0 ? GONE : ALIVE,
            .wanted = next_random(seed) % 2 == 0 ? 0 : (uint32_t)next_random(seed) % (limit + 1)};
        if (workers[w].life == GONE) {
            workers[w].wanted = 0;
            continue;
        }
        workers[w].units = units;
        workers[w].held = workers[w].wanted > 0 ? units : held;
        if (workers[w].wanted == 0)
            workers[w].idle = (uint32_t)next_random(seed) % (held + 1);
        left -= units;
    }
    return left;
}

/* Whatever the situation: targets fit, nobody takes what is used, plans are carried out in rounds
   until nothing moves, and that comes soon and is fair. */
static void t_rounds_settle(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int round = 0; round < 3000; round++) {
        struct hg_leaseplan_worker workers[8];
        uint32_t count = 1 + (uint32_t)next_random(&seed) % 8;
        uint32_t limit = count + (uint32_t)next_random(&seed) % 40;
        uint32_t unowned = random_workers(&seed, workers, count, limit);
        uint32_t moves = 0, steps = 0;
        bool moved = true;
        while (moved) {
            moved = false;
            assert_true(steps++ < 4);
            for (uint32_t w = 0; w < count; w++) {
                struct hg_leaseplan plan;
                uint32_t sum = 0;
                hg_leaseplan_fill(workers, count, limit, ALL);
                for (uint32_t o = 0; o < count; o++)
                    sum += workers[o].target;
                assert_true(sum <= limit);
                hg_leaseplan_decide(workers, count, unowned, w, &plan);
                assert_true(plan.take <= unowned);
                uint32_t got = plan.take;
                unowned -= plan.take;
                for (uint32_t o = 0; o < count; o++) {
                    assert_true(plan.from[o] <= workers[o].units - workers[o].held);
                    workers[o].units -= plan.from[o];
                    got += plan.from[o];
                }
                assert_true(got <= workers[w].wanted);
                assert_true(got == 0 || plan.yield == 0);
                assert_true(plan.yield <= workers[w].held);
                workers[w].units += got;
                workers[w].held += got;
                workers[w].wanted -= got;
                /* Connections that work and are closed for others are missed afterwards. */
                uint32_t idle = plan.yield < workers[w].idle ? plan.yield : workers[w].idle;
                workers[w].idle -= idle;
                workers[w].wanted += plan.yield - idle;
                workers[w].held -= plan.yield;
                workers[w].units -= plan.yield;
                unowned += plan.yield;
                moved |= got > 0 || plan.yield > 0;
                moves += got + plan.yield;
            }
        }
        assert_true(moves <= 2 * limit); /* a unit is let go and taken once */
        for (uint32_t w = 0; w < count; w++) {
            for (uint32_t o = 0; o < count && workers[w].wanted > 0; o++)
                assert_true(workers[o].units <= workers[w].units + 1);
            assert_true(workers[w].wanted == 0 || unowned == 0);
        }
    }
}

static void t_parts_are_even(void **state)
{
    (void)state;
    assert_int_equal(hg_leaseplan_part(7, 3, 0), 3);
    assert_int_equal(hg_leaseplan_part(7, 3, 1), 2);
    assert_int_equal(hg_leaseplan_part(7, 3, 2), 2);
    assert_int_equal(hg_leaseplan_part(1, 3, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_rows),
        cmocka_unit_test(t_rounds_settle),
        cmocka_unit_test(t_parts_are_even),
    };
    return cmocka_run_group_tests_name("leaseplan", tests, NULL, NULL);
}
