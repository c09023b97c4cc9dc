// t_arena - memory that is freed all at once
// SPDX-License-Identifier: BSD-3-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/arena.h"

static void test_pieces_are_aligned_and_apart(void **state)
{
    (void)state;
    struct hg_arena arena;
    hg_arena_init(&arena, 1 << 20);
    uint8_t *last = NULL;
    for (size_t i = 0; i < 2000; i++) {
        uint8_t *piece = hg_arena_take(&arena, i % 70);
        assert_non_null(piece);
        assert_int_equal((uintptr_t)piece % 16, 0);
        assert_true(piece != last);
        memset(piece, (int)i, i % 70);
        last = piece;
    }
    hg_arena_fini(&arena);
    assert_int_equal(arena.used_bytes, 0);
}

static void test_the_limit_is_kept(void **state)
{
    (void)state;
    struct hg_arena arena;
    hg_arena_init(&arena, 10000);
    size_t taken = 0;
    while (hg_arena_take(&arena, 100) != NULL)
        taken += 100;
    assert_true(taken > 5000 && taken <= 10000);
    assert_true(arena.used_bytes <= 10000);
    assert_null(hg_arena_take(&arena, SIZE_MAX));
    assert_null(hg_arena_array(&arena, SIZE_MAX / 2, 3));
    hg_arena_reset(&arena);
    assert_null(hg_arena_take(&arena, 10001));
    assert_non_null(hg_arena_take(&arena, 4000));
    hg_arena_fini(&arena);
}

static void test_a_reset_keeps_the_first_block(void **state)
{
    (void)state;
    struct hg_arena arena;
    hg_arena_init(&arena, 1 << 20);
    void *first = hg_arena_take(&arena, 64);
    assert_non_null(hg_arena_take(&arena, 100000));
    hg_arena_reset(&arena);
    assert_int_equal(arena.used_bytes, HG_ARENA_FIRST_BYTES);
    assert_ptr_equal(hg_arena_take(&arena, 64), first);
    hg_arena_fini(&arena);
}

static void test_copies_and_cleared_arrays(void **state)
{
    (void)state;
    struct hg_arena arena;
    hg_arena_init(&arena, 1 << 20);
    memset(hg_arena_take(&arena, 4000), 0xff, 4000);
    hg_arena_reset(&arena);
    uint32_t *numbers = hg_arena_array(&arena, 100, sizeof *numbers);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(numbers[i], 0);
    struct hg_span copy = hg_arena_copy(&arena, HG_SPAN_LIT("some bytes"));
    assert_true(hg_span_is(copy, "some bytes"));
    copy = hg_arena_copy(&arena, HG_SPAN_NONE);
    assert_non_null(copy.at);
    assert_int_equal(copy.len, 0);
    hg_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_are_aligned_and_apart),
        cmocka_unit_test(test_the_limit_is_kept),
        cmocka_unit_test(test_a_reset_keeps_the_first_block),
        cmocka_unit_test(test_copies_and_cleared_arrays),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
