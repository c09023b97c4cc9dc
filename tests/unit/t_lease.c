// t_lease - units of a server's connections move between workers, and are never too many
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "back/lease.h"

#define PLAN HG_LEASE_PLAN_US

static struct hg_lease lease;
static uint64_t now;

static void begin(uint32_t limit, uint32_t workers)
{
    now = 1000 * PLAN;
    assert_int_equal(hg_lease_init(&lease, limit, workers), 0);
}

static void open_all(void)
{
    for (uint32_t w = 0; w < lease.count; w++)
        hg_lease_open(&lease, w, now);
}

/* Takes all it can; how many. */
static uint32_t take_all(uint32_t worker)
{
    uint32_t n = 0;
    while (hg_lease_take(&lease, worker))
        n++;
    return n;
}

static void put(uint32_t worker, uint32_t n)
{
    while (n-- > 0)
        hg_lease_put(&lease, worker);
}

static void assert_sum(void)
{
    uint32_t sum = lease.unowned;
    for (uint32_t w = 0; w < lease.count; w++)
        sum += hg_lease_units(&lease, w);
    assert_int_equal(sum, lease.limit);
}

static void end(void)
{
    for (uint32_t w = 0; w < lease.count; w++) {
        put(w, hg_lease_held(&lease, w));
        hg_lease_close(&lease, w);
    }
    assert_int_equal(lease.unowned, lease.limit);
    hg_lease_fini(&lease);
}

static void t_begins_even(void **state)
{
    (void)state;
    begin(7, 3);
    open_all();
    assert_int_equal(take_all(0), 3);
    assert_int_equal(take_all(1), 2);
    assert_int_equal(take_all(2), 2);
    hg_lease_put(&lease, 1);
    assert_false(hg_lease_take(&lease, 0));
    assert_true(hg_lease_take(&lease, 1));
    assert_sum();
    end();
}

/* One tick of the one that waits is enough; the quiet one need not do anything. */
static void t_unused_units_move_at_once(void **state)
{
    (void)state;
    begin(8, 2);
    open_all();
    assert_int_equal(take_all(0), 4);
    now += PLAN - 1;
    hg_lease_tick(&lease, 0, 9, 0, now);
    assert_false(hg_lease_take(&lease, 0)); /* not yet the time */
    now++;
    assert_true(hg_lease_tick(&lease, 0, 9, 0, now));
    assert_int_equal(hg_lease_capacity(&lease, 0), 7);
    assert_int_equal(take_all(0), 3);
    assert_int_equal(take_all(1), 1); /* one was kept */
    assert_sum();
    end();
}

static void tick_both(uint32_t wanted0, uint32_t idle0, uint32_t wanted1, uint32_t idle1)
{
    now += PLAN;
    hg_lease_tick(&lease, 0, wanted0, idle0, now);
    hg_lease_tick(&lease, 1, wanted1, idle1, now);
}

static void t_more_than_its_part_is_yielded(void **state)
{
    (void)state;
    begin(8, 2);
    open_all();
    take_all(0);
    tick_both(9, 0, 0, 0);
    take_all(0);
    take_all(1);
    assert_int_equal(hg_lease_held(&lease, 0), 7);
    /* A wish of a moment closes no connection. */
    tick_both(9, 0, 5, 0);
    tick_both(9, 0, 0, 0);
    assert_int_equal(hg_lease_capacity(&lease, 0), 7);
    tick_both(9, 0, 5, 0);
    tick_both(9, 0, 5, 0);
    tick_both(9, 0, 5, 0);
    assert_int_equal(hg_lease_capacity(&lease, 0), 4);
    assert_int_equal(hg_lease_held(&lease, 0), 7); /* until it has closed them */
    assert_false(hg_lease_take(&lease, 0));
    put(0, 3);
    assert_false(hg_lease_take(&lease, 0));
    assert_int_equal(take_all(1), 3); /* below its part it need not wait for its tick */
    for (int i = 0; i < 5; i++) {
        tick_both(9, 0, 9, 0);
        assert_int_equal(hg_lease_capacity(&lease, 0), 4);
        assert_int_equal(hg_lease_capacity(&lease, 1), 4);
    }
    assert_sum();
    end();
}

static void t_idle_connections_are_yielded(void **state)
{
    (void)state;
    begin(8, 2);
    open_all();
    take_all(0);
    take_all(1);
    tick_both(2, 0, 0, 4);
    tick_both(2, 0, 0, 4);
    tick_both(2, 0, 0, 4);
    assert_int_equal(hg_lease_capacity(&lease, 1), 2);
    put(1, 2);
    tick_both(2, 0, 0, 2);
    assert_int_equal(take_all(0), 2);
    /* Served: no more is asked for. */
    tick_both(0, 0, 0, 2);
    tick_both(0, 0, 0, 2);
    assert_int_equal(hg_lease_capacity(&lease, 1), 2);
    assert_sum();
    end();
}

static void t_a_wish_that_ends_is_forgotten(void **state)
{
    (void)state;
    begin(4, 2);
    open_all();
    take_all(0);
    take_all(1);
    for (int i = 0; i < 3; i++)
        tick_both(1, 0, 0, 2);
    assert_int_equal(hg_lease_capacity(&lease, 1), 1);
    for (int i = 0; i < 2; i++)
        tick_both(0, 0, 0, 2);
    assert_int_equal(hg_lease_capacity(&lease, 1), 2);
    put(1, 1);
    assert_true(hg_lease_take(&lease, 1)); /* its unit was not taken away */
    end();
}

static void t_who_ends_gives_all_back(void **state)
{
    (void)state;
    begin(6, 3);
    open_all();
    take_all(0);
    hg_lease_close(&lease, 1);
    hg_lease_close(&lease, 2);
    tick_both(9, 0, 0, 0);
    assert_int_equal(take_all(0), 4);
    /* And one that begins anew waits until the others have yielded. */
    hg_lease_open(&lease, 1, now);
    assert_int_equal(take_all(1), 0);
    for (int i = 0; i < 3; i++)
        tick_both(9, 0, 1, 0);
    assert_int_equal(hg_lease_capacity(&lease, 0), 5);
    put(0, 1);
    assert_int_equal(take_all(1), 1);
    assert_sum();
    put(1, 1);
    hg_lease_close(&lease, 1);
    put(0, 5);
    hg_lease_close(&lease, 0);
    assert_int_equal(lease.unowned, 6);
    hg_lease_fini(&lease);
}

static void t_who_has_not_begun_is_kept_one(void **state)
{
    (void)state;
    begin(6, 3);
    hg_lease_open(&lease, 0, now);
    assert_int_equal(take_all(0), 2);
    now += PLAN;
    hg_lease_tick(&lease, 0, 9, 0, now);
    assert_int_equal(take_all(0), 2);
    hg_lease_open(&lease, 1, now);
    assert_int_equal(take_all(1), 2);
    hg_lease_open(&lease, 2, now);
    assert_int_equal(take_all(2), 0);
    assert_sum();
    end();
}

static void t_one_owner_gets_all(void **state)
{
    (void)state;
    begin(6, 3);
    open_all();
    take_all(0);
    take_all(1);
    hg_lease_claim(&lease, 1);
    assert_false(hg_lease_take(&lease, 2));
    assert_int_equal(hg_lease_capacity(&lease, 0), 0);
    assert_int_equal(hg_lease_capacity(&lease, 2), 0);
    assert_int_equal(take_all(1), 0);
    put(0, 1); /* its unit is nobody's at once */
    assert_int_equal(take_all(1), 1);
    now += PLAN;
    hg_lease_tick(&lease, 1, 9, 0, now);
    assert_int_equal(take_all(1), 2); /* worker 2 had not used them */
    put(0, 1);
    hg_lease_close(&lease, 0);
    hg_lease_close(&lease, 2);
    assert_int_equal(take_all(1), 1);
    assert_int_equal(hg_lease_held(&lease, 1), 6);
    hg_lease_open(&lease, 0, now);
    assert_int_equal(take_all(0), 0);
    hg_lease_open(&lease, 2, now);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_begins_even),
        cmocka_unit_test(t_unused_units_move_at_once),
        cmocka_unit_test(t_more_than_its_part_is_yielded),
        cmocka_unit_test(t_idle_connections_are_yielded),
        cmocka_unit_test(t_a_wish_that_ends_is_forgotten),
        cmocka_unit_test(t_who_ends_gives_all_back),
        cmocka_unit_test(t_who_has_not_begun_is_kept_one),
        cmocka_unit_test(t_one_owner_gets_all),
    };
    return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
