// t_topology - when the owners of slots are asked for, and what is told of them
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "back/topology.h"

#define MS 1000u

static struct hg_slots slots;
static uint16_t numbers[HG_SLOTS_NODES_MAX];
static struct hg_topology_map map;

/* `nodes` nodes, numbered from `first`, with an even part of the slots each. */
static void divide(uint32_t nodes, uint16_t first)
{
    memset(&slots, 0, sizeof slots);
    slots.node_count = nodes;
    for (uint32_t n = 0; n < nodes; n++) {
        slots.nodes[n].owns = true;
        numbers[n] = (uint16_t)(first + n);
    }
    for (uint32_t slot = 0; slot < HG_KEYSLOTS; slot++)
        slots.owner[slot] = (uint16_t)(slot * nodes / HG_KEYSLOTS);
}

static void t_asked_at_the_start_and_every_30_s(void **state)
{
    (void)state;
    struct hg_topology t;
    uint64_t now_us = 5000000;
    hg_topology_init(&t);
    assert_int_equal(hg_topology_version(&t), 0);
    assert_true(hg_topology_take(&t, now_us));
    assert_false(hg_topology_take(&t, now_us)); /* somebody is about it */
    divide(3, 0);
    assert_true(hg_topology_publish(&t, &slots, numbers));
    assert_int_equal(hg_topology_version(&t), 1);
    assert_false(hg_topology_take(&t, now_us + 29999 * MS));
    assert_true(hg_topology_take(&t, now_us + 30000 * MS));
    assert_false(hg_topology_publish(&t, &slots, numbers)); /* no news, and yet told */
    assert_int_equal(hg_topology_version(&t), 2);
    hg_topology_fini(&t);
}

/* At most once in 100 ms, but what is wanted while it is asked is not forgotten. */
static void t_wanted(void **state)
{
    (void)state;
    struct hg_topology t;
    uint64_t now_us = 5000000;
    hg_topology_init(&t);
    assert_true(hg_topology_take(&t, now_us));
    hg_topology_want(&t, HG_SLOTS_NONE);
    divide(3, 0);
    assert_true(hg_topology_publish(&t, &slots, numbers));
    assert_false(hg_topology_take(&t, now_us + 99 * MS));
    assert_true(hg_topology_take(&t, now_us + 100 * MS));
    divide(2, 0);
    assert_true(hg_topology_publish(&t, &slots, numbers));
    assert_false(hg_topology_take(&t, now_us + 10000 * MS)); /* nobody wants it */
    hg_topology_want(&t, 7);
    hg_topology_want(&t, HG_SLOTS_NONE);
    assert_true(hg_topology_take(&t, now_us + 10000 * MS));
    assert_int_equal(hg_topology_hint(&t), 7);
    assert_int_equal(hg_topology_hint(&t), HG_SLOTS_NONE);
    hg_topology_fini(&t);
}

/* How often it is asked in a second if it is always wanted. */
static unsigned asked_in(struct hg_topology *t, uint64_t *now_us, unsigned seconds, bool fails)
{
    unsigned asked = 0;
    for (uint64_t end_us = *now_us + seconds * 1000000; *now_us < end_us; *now_us += MS) {
        hg_topology_want(t, HG_SLOTS_NONE);
        if (!hg_topology_take(t, *now_us))
            continue;
        asked++;
        if (fails)
            hg_topology_tell_failed(t, "refused");
        else
            (void)hg_topology_publish(t, &slots, numbers);
    }
    return asked;
}

static void t_slower_while_nothing_comes_of_it(void **state)
{
    (void)state;
    struct hg_topology t;
    uint64_t now_us = 5000000;
    char why[32];
    hg_topology_init(&t);
    assert_in_range(asked_in(&t, &now_us, 10, true), 19, 23);
    hg_topology_why(&t, why, sizeof why);
    assert_string_equal(why, "refused");
    divide(3, 0);
    assert_in_range(asked_in(&t, &now_us, 10, false), 19, 24);
    hg_topology_why(&t, why, sizeof why);
    assert_string_equal(why, "");
    /* News: fast again, after the last long pause. */
    unsigned asked = 0;
    for (uint64_t end_us = now_us + 1000000; now_us < end_us; now_us += MS) {
        hg_topology_want(&t, HG_SLOTS_NONE);
        if (!hg_topology_take(&t, now_us))
            continue;
        divide(3, (uint16_t)++asked);
        assert_true(hg_topology_publish(&t, &slots, numbers));
    }
    assert_in_range(asked, 6, 10);
    hg_topology_fini(&t);
}

static void t_abandoned(void **state)
{
    (void)state;
    struct hg_topology t;
    hg_topology_init(&t);
    assert_true(hg_topology_take(&t, 5000000));
    hg_topology_abandon(&t);
    assert_false(hg_topology_take(&t, 5000000 + 99 * MS));
    assert_true(hg_topology_take(&t, 5000000 + 100 * MS));
    hg_topology_fini(&t);
}

static void t_map(void **state)
{
    (void)state;
    struct hg_topology t;
    hg_topology_init(&t);
    hg_topology_copy(&t, &map);
    assert_int_equal(map.version, 0);
    assert_int_equal(map.uncovered, HG_KEYSLOTS);
    assert_int_equal(map.owner[0], HG_SLOTS_NONE);
    divide(4, 100);
    slots.node_count = 6; /* a replica, and one that got no number */
    numbers[4] = 2000;
    numbers[5] = HG_SLOTS_NONE;
    slots.nodes[5].owns = true;
    slots.owner[5] = 5;
    slots.owner[6] = HG_SLOTS_NONE;
    assert_true(hg_topology_take(&t, 5000000));
    assert_true(hg_topology_publish(&t, &slots, numbers));
    hg_topology_copy(&t, &map);
    assert_int_equal(map.version, 1);
    assert_int_equal(map.uncovered, 2);
    assert_int_equal(map.owner[0], 100);
    assert_int_equal(map.owner[5], HG_SLOTS_NONE);
    assert_int_equal(map.owner[6], HG_SLOTS_NONE);
    assert_int_equal(map.owner[16383], 103);
    assert_true(hg_topology_bit(map.member, 103) && hg_topology_bit(map.owns, 103));
    assert_true(hg_topology_bit(map.member, 2000) && !hg_topology_bit(map.owns, 2000));
    assert_false(hg_topology_bit(map.member, 99) || hg_topology_bit(map.member, 104));
    /* That a replica has come or gone is news too. */
    slots.node_count = 4;
    slots.owner[5] = HG_SLOTS_NONE;
    assert_true(hg_topology_publish(&t, &slots, numbers));
    hg_topology_copy(&t, &map);
    assert_false(hg_topology_bit(map.member, 2000));
    hg_topology_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_asked_at_the_start_and_every_30_s),
        cmocka_unit_test(t_wanted),
        cmocka_unit_test(t_slower_while_nothing_comes_of_it),
        cmocka_unit_test(t_abandoned),
        cmocka_unit_test(t_map),
    };
    return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
