// t_tie - bytes of calls that may be said again, and calls that wait for another
// SPDX-License-Identifier: BSD-3-Clause
#include "pair.h"

#include <string.h>

#include "back/tie.h"

struct knot {
    struct pair pair;
    struct hg_ties ties;
};

static void knot_init(struct knot *knot)
{
    pair_init(&knot->pair, false);
    hg_ties_init(&knot->ties, &knot->pair.hub);
}

static void knot_fini(struct knot *knot)
{
    assert_int_equal(knot->ties.slab.borrowed, 0);
    hg_ties_fini(&knot->ties);
    pair_fini(&knot->pair);
}

static void t_keeps_small_bytes_in_one_copy(void **state)
{
    (void)state;
    struct knot knot;
    knot_init(&knot);
    struct note note;
    char prefix[] = "shop:", value[] = "value";
    note_init(&note, NULL, HG_OP_SET, "key");
    note.call.prefix = hg_span_str(prefix);
    note.call.value = hg_span_str(value);
    assert_true(hg_tie_keep(&knot.ties, &note.call));
    memset(prefix, 'x', strlen(prefix));
    memset(value, 'x', strlen(value));
    memset(note.key, 'x', strlen(note.key));
    assert_memory_equal(note.call.prefix.at, "shop:", 5);
    assert_memory_equal(note.call.key.at, "key", 3);
    assert_memory_equal(note.call.value.at, "value", 5);
    /* Again is nothing new. */
    const void *at = note.call.key.at;
    assert_true(hg_tie_keep(&knot.ties, &note.call));
    assert_ptr_equal(note.call.key.at, at);
    hg_tie_end(&note.call);
    assert_null(note.call.place.tie);
    hg_tie_end(&note.call);
    knot_fini(&knot);
}

static void t_keeps_a_large_value_by_reference(void **state)
{
    (void)state;
    struct knot knot;
    knot_init(&knot);
    struct note note;
    note_init(&note, NULL, HG_OP_SET, "key");
    struct hg_blob *blob = hg_blob_borrow(&knot.pair.rig.blobs, 100000);
    assert_non_null(blob);
    note.call.blob = blob;
    note.call.value = hg_span(blob->data, 100000);
    assert_true(hg_tie_keep(&knot.ties, &note.call));
    assert_ptr_equal(note.call.value.at, blob->data);
    assert_int_equal(blob->refs, 2);
    hg_blob_unref(blob);
    hg_tie_end(&note.call);
    assert_int_equal(knot.pair.rig.blobs.live_bytes, 0);
    knot_fini(&knot);
}

static void t_who_waits_comes_when_the_other_is_answered(void **state)
{
    (void)state;
    struct knot knot;
    knot_init(&knot);
    struct note first, second, third;
    pair_get(&knot.pair, &first, "key");
    note_init(&second, NULL, HG_OP_GET, "key");
    note_init(&third, NULL, HG_OP_GET, "key");
    second.stay = third.stay = true;
    assert_true(hg_tie_behind(&knot.ties, &second.call, &first.call));
    assert_true(hg_tie_behind(&knot.ties, &third.call, &second.call));
    /* There is room for one behind a call, not for two. */
    struct note fourth;
    note_init(&fourth, NULL, HG_OP_GET, "key");
    assert_false(hg_tie_behind(&knot.ties, &fourth.call, &first.call));
    hg_tie_end(&fourth.call);
    assert_true(second.call.place.waiting && hg_tie_waits(&second.call));
    pair_turn(&knot.pair);
    assert_int_equal(second.rooms, 0);
    pair_say_found(&knot.pair, 0, "value");
    pair_turn(&knot.pair);
    pair_turn(&knot.pair);
    assert_int_equal(first.done, 1);
    assert_int_equal(second.rooms, 1);
    assert_false(second.call.place.waiting || hg_tie_waits(&second.call));
    /* The second might not come again, so the third is asked too, after it. */
    assert_int_equal(third.rooms, 1);
    assert_true(second.room_order < third.room_order);
    hg_tie_end(&second.call);
    hg_tie_end(&third.call);
    knot_fini(&knot);
}

static void t_a_call_that_is_cancelled_lets_the_next_one_go(void **state)
{
    (void)state;
    struct knot knot;
    knot_init(&knot);
    struct note first, second, third;
    pair_get(&knot.pair, &first, "key");
    note_init(&second, NULL, HG_OP_GET, "key");
    note_init(&third, NULL, HG_OP_GET, "key");
    second.stay = third.stay = true;
    assert_true(hg_tie_behind(&knot.ties, &second.call, &first.call));
    assert_true(hg_tie_behind(&knot.ties, &third.call, &second.call));
    hg_tie_cancel(&second.call);
    assert_false(second.call.place.waiting);
    hg_link_cancel(knot.pair.link, &first.call);
    pair_turn(&knot.pair);
    pair_turn(&knot.pair);
    assert_int_equal(second.rooms, 0);
    assert_int_equal(third.rooms, 1);
    hg_tie_end(&third.call);
    pair_say_found(&knot.pair, 0, "value");
    pair_turn(&knot.pair);
    knot_fini(&knot);
}

static void t_one_that_was_about_to_come_may_be_cancelled(void **state)
{
    (void)state;
    struct knot knot;
    knot_init(&knot);
    struct note first, second;
    pair_get(&knot.pair, &first, "key");
    note_init(&second, NULL, HG_OP_GET, "key");
    second.stay = true;
    assert_true(hg_tie_behind(&knot.ties, &second.call, &first.call));
    hg_link_cancel(knot.pair.link, &first.call);
    assert_true(hg_tie_waits(&second.call));
    hg_tie_cancel(&second.call);
    pair_turn(&knot.pair);
    assert_int_equal(second.rooms, 0);
    pair_say_found(&knot.pair, 0, "value");
    pair_turn(&knot.pair);
    knot_fini(&knot);
}

static void t_settling_leaves_nobody_waiting(void **state)
{
    (void)state;
    struct knot knot;
    knot_init(&knot);
    struct note first, second;
    pair_get(&knot.pair, &first, "key");
    note_init(&second, NULL, HG_OP_GET, "key");
    second.stay = true;
    assert_true(hg_tie_behind(&knot.ties, &second.call, &first.call));
    hg_link_end(knot.pair.link, HG_LINK_LET_GO, 0);
    assert_int_equal(second.rooms, 0);
    hg_ties_settle(&knot.ties);
    assert_int_equal(second.rooms, 1);
    hg_tie_end(&second.call);
    knot_fini(&knot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_keeps_small_bytes_in_one_copy),
        cmocka_unit_test(t_keeps_a_large_value_by_reference),
        cmocka_unit_test(t_who_waits_comes_when_the_other_is_answered),
        cmocka_unit_test(t_a_call_that_is_cancelled_lets_the_next_one_go),
        cmocka_unit_test(t_one_that_was_about_to_come_may_be_cancelled),
        cmocka_unit_test(t_settling_leaves_nobody_waiting),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
