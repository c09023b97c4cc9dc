// t_tie - bytes of calls that may be said again, and calls that wait for another
// SPDX-License-Identifier: BSD-3-Clause
//
// What waits for what is told in tables of rows: calls A to D, one after the other. The tests of
// bytes are functions, since they look at memory and not at what happens.
#include "pair.h"

#include <string.h>

#include "back/tie.h"
#include "cases.h"

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

/* ---- calls that wait ---- */

enum { A, B, C, D, CALLS };

struct play {
    struct knot knot;
    struct note notes[CALLS];
};

struct row {
    void (*act)(struct play *play, const struct row *row);
    int line;
    unsigned call, other;
    int n;
};

static void start(struct play *play, const struct row *row)
{
    (void)row;
    knot_init(&play->knot);
    for (unsigned i = 0; i < CALLS; i++) {
        note_init(&play->notes[i], NULL, HG_OP_GET, "key");
        play->notes[i].stay = true;
    }
}

static void send_call(struct play *play, const struct row *row)
{
    pair_send(&play->knot.pair, &play->notes[row->call]);
}

static void put_behind(struct play *play, const struct row *row)
{
    bool has_room = hg_tie_behind(&play->knot.ties, &play->notes[row->call].call,
                                  &play->notes[row->other].call);
    assert_int_equal(has_room, row->n);
}

static void answer(struct play *play, const struct row *row)
{
    (void)row;
    pair_say_found(&play->knot.pair, 0, "value");
}

static void turn(struct play *play, const struct row *row)
{
    (void)row;
    pair_turn(&play->knot.pair);
}

static void cancel_sent(struct play *play, const struct row *row)
{
    hg_link_cancel(play->knot.pair.link, &play->notes[row->call].call);
}

static void cancel_waiting(struct play *play, const struct row *row)
{
    hg_tie_cancel(&play->notes[row->call].call);
}

static void end_link(struct play *play, const struct row *row)
{
    (void)row;
    hg_link_end(play->knot.pair.link, HG_LINK_LET_GO, 0);
}

static void settle(struct play *play, const struct row *row)
{
    (void)row;
    hg_ties_settle(&play->knot.ties);
}

static void end_tie(struct play *play, const struct row *row)
{
    hg_tie_end(&play->notes[row->call].call);
}

static void is_waiting(struct play *play, const struct row *row)
{
    assert_int_equal(play->notes[row->call].call.place.waiting, row->n);
}

static void is_tied(struct play *play, const struct row *row)
{
    assert_int_equal(hg_tie_waits(&play->notes[row->call].call), row->n);
}

static void was_asked(struct play *play, const struct row *row)
{
    assert_int_equal(play->notes[row->call].rooms, row->n);
}

static void was_asked_before(struct play *play, const struct row *row)
{
    assert_true(play->notes[row->call].room_order < play->notes[row->other].room_order);
}

static void is_done(struct play *play, const struct row *row)
{
    assert_int_equal(play->notes[row->call].done, 1);
}

#define ROW(act_, ...)                                                                             \
    {                                                                                              \
        .act = act_, .line = __LINE__, __VA_ARGS__                                                 \
    }
#define START                         ROW(start)
#define SEND(call_)                   ROW(send_call, .call = call_)
#define BEHIND(call_, other_)         ROW(put_behind, .call = call_, .other = other_, .n = true)
#define NO_ROOM_BEHIND(call_, other_) ROW(put_behind, .call = call_, .other = other_, .n = false)
#define ANSWER                        ROW(answer)
#define TURN                          ROW(turn)
#define CANCEL_SENT(call_)            ROW(cancel_sent, .call = call_)
#define CANCEL_WAITING(call_)         ROW(cancel_waiting, .call = call_)
#define END_LINK                      ROW(end_link)
#define SETTLE                        ROW(settle)
#define END(call_)                    ROW(end_tie, .call = call_)
#define WAITING(call_, is)            ROW(is_waiting, .call = call_, .n = is)
#define TIED(call_, is)               ROW(is_tied, .call = call_, .n = is)
#define ASKED(call_, times)           ROW(was_asked, .call = call_, .n = times)
#define ASKED_BEFORE(call_, other_)   ROW(was_asked_before, .call = call_, .other = other_)
#define DONE(call_)                   ROW(is_done, .call = call_)

/* clang-format off */

static const struct row t_who_waits_comes_when_the_other_is_answered[] = {
    START,
    SEND(A),
    BEHIND(B, A),
    BEHIND(C, B),
    NO_ROOM_BEHIND(D, A), /* there is room for one behind a call, not for two */
    END(D),
    WAITING(B, true),
    TIED(B, true),
    TURN,
    ASKED(B, 0),
    ANSWER,
    TURN,
    TURN,
    DONE(A),
    ASKED(B, 1),
    WAITING(B, false),
    TIED(B, false),
    ASKED(C, 1), /* the second might not come again, so the third is asked too, after it */
    ASKED_BEFORE(B, C),
    END(B),
    END(C),
};

static const struct row t_a_call_that_is_cancelled_lets_the_next_one_go[] = {
    START,
    SEND(A),
    BEHIND(B, A),
    BEHIND(C, B),
    CANCEL_WAITING(B),
    WAITING(B, false),
    CANCEL_SENT(A),
    TURN,
    TURN,
    ASKED(B, 0),
    ASKED(C, 1),
    END(C),
    ANSWER,
    TURN,
};

static const struct row t_one_that_was_about_to_come_may_be_cancelled[] = {
    START,
    SEND(A),
    BEHIND(B, A),
    CANCEL_SENT(A),
    TIED(B, true),
    CANCEL_WAITING(B),
    TURN,
    ASKED(B, 0),
    ANSWER,
    TURN,
};

static const struct row t_settling_leaves_nobody_waiting[] = {
    START,
    SEND(A),
    BEHIND(B, A),
    END_LINK,
    ASKED(B, 0),
    SETTLE,
    ASKED(B, 1),
    END(B),
};

/* clang-format on */

static void run_case(void **state)
{
    const struct cases_case *in = *state;
    static struct play play;
    CASES_PLAY(in, &play);
    knot_fini(&play.knot);
    cases_over();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_keeps_small_bytes_in_one_copy),
        cmocka_unit_test(t_keeps_a_large_value_by_reference),
        CASE(run_case, t_who_waits_comes_when_the_other_is_answered),
        CASE(run_case, t_a_call_that_is_cancelled_lets_the_next_one_go),
        CASE(run_case, t_one_that_was_about_to_come_may_be_cancelled),
        CASE(run_case, t_settling_leaves_nobody_waiting),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
