// t_heap - the heap against a sorted array: order, and removal from anywhere
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>

#include "base/heap.h"
#include "base/prng.h"

#define NODES 1000

static struct hg_heap heap;
static struct hg_heap_node nodes[NODES];
static bool in[NODES];

static uint64_t smallest(void)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < NODES; i++)
        if (in[i] && nodes[i].key < least)
            least = nodes[i].key;
    return least;
}

static void test_empty_and_one(void **state)
{
    (void)state;
    heap = (struct hg_heap){0};
    assert_null(hg_heap_first(&heap));
    hg_heap_insert(&heap, &nodes[0], UINT64_MAX);
    assert_ptr_equal(hg_heap_first(&heap), &nodes[0]);
    hg_heap_remove(&heap, &nodes[0]);
    assert_null(hg_heap_first(&heap));
}

static void test_comes_out_in_order(void **state)
{
    struct hg_prng dice = {1};
    (void)state;
    for (uint32_t kind = 0; kind < 4; kind++) { // rising, falling, random, equal keys
        uint64_t last = 0, n = 0;
        heap = (struct hg_heap){0};
        for (uint64_t i = 0; i < NODES; i++) {
            uint64_t keys[] = {i, NODES - i, hg_prng_next(&dice), i % 3};
            hg_heap_insert(&heap, &nodes[i], keys[kind]);
        }
        for (; hg_heap_first(&heap) != NULL; n++) {
            assert_true(hg_heap_first(&heap)->key >= last);
            last = hg_heap_first(&heap)->key;
            hg_heap_remove(&heap, hg_heap_first(&heap));
        }
        assert_int_equal(n, NODES);
    }
}

static void test_any_node_may_go(void **state)
{
    struct hg_prng dice = {2};
    uint32_t count = 0;
    (void)state;
    heap = (struct hg_heap){0};
    for (uint32_t round = 0; round < 30000; round++) {
        uint32_t i = (uint32_t)hg_prng_below(&dice, NODES);
        // Grows to many, then shrinks to few, again and again.
        bool grow = hg_prng_below(&dice, 100) < (round / 3000 % 2 == 0 ? 80u : 20u);
        if (grow && !in[i]) {
            hg_heap_insert(&heap, &nodes[i], hg_prng_below(&dice, 500));
            in[i] = true;
            count++;
        } else if (!grow && in[i]) {
            hg_heap_remove(&heap, &nodes[i]);
            in[i] = false;
            count--;
        }
        assert_int_equal(hg_heap_first(&heap) == NULL, count == 0);
        if (count > 0 && round % 16 == 0)
            assert_int_equal(hg_heap_first(&heap)->key, smallest());
    }
    for (; count > 0; count--) {
        struct hg_heap_node *first = hg_heap_first(&heap);
        assert_int_equal(first->key, smallest());
        assert_true(in[first - nodes]);
        in[first - nodes] = false;
        hg_heap_remove(&heap, first);
    }
    assert_null(hg_heap_first(&heap));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_and_one),
        cmocka_unit_test(test_comes_out_in_order),
        cmocka_unit_test(test_any_node_may_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
