// t_ticket - the ticket holder, with the scenarios of MongoDB's own tests of its holders
// SPDX-License-Identifier: BSD-3-Clause
//
// Not here, as they belong to what drives a holder: statistics of operations that hold a ticket for
// too long, and an interrupted resize (a resize is one step and waits for nobody).
#include "ticketrig.h"

#include "base/prng.h"

static struct op ops[512];

static void arrive_all(uint32_t from, uint32_t n, uint32_t w, enum op_state expected)
{
    for (uint32_t i = from; i < from + n; i++)
        assert_int_equal(arrive(&ops[i], w), expected);
}

static void assert_states(uint32_t from, uint32_t n, enum op_state expected)
{
    for (uint32_t i = from; i < from + n; i++)
        assert_int_equal(ops[i].state, expected);
}

/* ---- time ---- */

static void test_basic_timeout(void **state)
{
    (void)state;
    setup(1);
    assert_int_equal(arrive_until(&ops[0], 0, rig.now_us - 1), OP_RUNS); // late, but it is free
    assert_int_equal(arrive_until(&ops[1], 0, rig.now_us), OP_LATE);
    assert_int_equal(arrive_until(&ops[2], 0, rig.now_us + 42000), OP_WAITS);
    pass(41999);
    assert_int_equal(ops[2].state, OP_WAITS);
    pass(1);
    assert_int_equal(ops[2].state, OP_LATE);
    end(&ops[0]);
    assert_holder(1, 0, 1);
    assert_int_equal(arrive(&ops[3], 0), OP_RUNS);
}

static void test_queue_time_is_measured(void **state)
{
    (void)state;
    setup(1);
    arrive_all(0, 1, 0, OP_RUNS);
    arrive_all(1, 1, 1, OP_WAITS);
    pass(50000);
    end(&ops[0]);
    assert_int_equal(ops[1].state, OP_RUNS);
    assert_int_equal(ops[1].queued_us, 50000);
}

static void test_deadlines_in_the_queue_are_exact(void **state)
{
    (void)state;
    setup(0);
    assert_int_equal(arrive_until(&ops[0], 0, rig.now_us + 650000), OP_WAITS);
    assert_int_equal(arrive_until(&ops[1], 1, rig.now_us + 50000), OP_WAITS);
    assert_int_equal(arrive_until(&ops[2], 1, rig.now_us + 5000000), OP_WAITS);
    pass(5000000);
    assert_states(0, 3, OP_LATE);
    assert_int_equal(ops[0].queued_us, 650000);
    assert_int_equal(ops[1].queued_us, 50000);
    assert_int_equal(ops[2].queued_us, 1000000); // the queue time-out
}

/* However old the others get: nobody's wait is cut. */
static void test_waits_are_not_cut_under_overload(void **state)
{
    (void)state;
    setup(0);
    assert_int_equal(arrive_until(&ops[0], 0, rig.now_us + 650000), OP_WAITS);
    pass(90000);
    assert_int_equal(arrive_until(&ops[1], 0, rig.now_us + 650000), OP_WAITS);
    pass(5000000);
    assert_states(0, 2, OP_LATE);
    assert_int_equal(ops[0].queued_us, 650000);
    assert_int_equal(ops[1].queued_us, 650000);
}

/* ---- sizes ---- */

static void test_resize_changes_size_and_available_only(void **state)
{
    static const int64_t sizes[] = {10, 1, 10, 6, 5};
    (void)state;
    setup(1);
    for (size_t i = 0; i < HG_COUNT_OF(sizes); i++) {
        resize(sizes[i]);
        assert_holder(sizes[i], 0, sizes[i]);
        assert_int_equal(hg_ticket_swap_peak(&rig.holder), 0);
    }
    arrive_all(0, 5, 0, OP_RUNS);
    resize(4); // at once, where the original waits for one to end
    assert_holder(4, 5, -1);
    assert_int_equal(rig.started, 5);
    assert_int_equal(rig.pokes, 0);
    assert_int_equal(hg_ticket_swap_peak(&rig.holder), 5);
}

static void test_can_resize_pool(void **state)
{
    (void)state;
    setup(1);
    arrive_all(0, 1, 0, OP_RUNS);
    arrive_all(1, 1, 0, OP_WAITS);
    resize(10);
    arrive_all(2, 8, 0, OP_RUNS);
    arrive_all(10, 1, 0, OP_WAITS);
    assert_int_equal(rig.runs, 10);
    for (uint32_t i = 0; i < 5; i++)
        end(&ops[i]); // the one that waits gets the first
    assert_int_equal(ops[10].state, OP_RUNS);
    resize(5);
    assert_holder(5, 6, -1);
    arrive_all(11, 1, 0, OP_WAITS);
    end(&ops[5]);
    assert_int_equal(ops[11].state, OP_WAITS);
    end(&ops[6]);
    assert_int_equal(ops[11].state, OP_RUNS);
    assert_holder(5, 5, 0);
}

static void test_shrink_with_some_left(void **state)
{
    (void)state;
    setup(10);
    arrive_all(0, 5, 0, OP_RUNS);
    resize(8);
    assert_holder(8, 5, 3);
    arrive_all(5, 3, 0, OP_RUNS);
    arrive_all(8, 1, 0, OP_WAITS);
}

static void test_shrink_below_use(void **state)
{
    (void)state;
    setup(10);
    arrive_all(0, 5, 0, OP_RUNS);
    resize(3);
    assert_holder(3, 5, -2);
    assert_false(hg_ticket_try(&rig.holder));
    assert_states(0, 5, OP_RUNS); // nothing is revoked
}

static void test_grow_with_a_waiter(void **state)
{
    (void)state;
    setup(3);
    arrive_all(0, 3, 0, OP_RUNS);
    arrive_all(3, 1, 1, OP_WAITS);
    resize(5);
    assert_int_equal(ops[3].state, OP_RUNS);
    assert_holder(5, 4, 1);
}

static void test_growing_wakes_as_many_as_became_available(void **state)
{
    (void)state;
    setup(0);
    for (uint32_t i = 0; i < 30; i++)
        arrive_all(i, 1, i % 10, OP_WAITS);
    resize(25);
    assert_int_equal(rig.runs, 25);
    assert_int_equal(rig.waiting, 5);
    assert_holder(25, 25, 0);
}

static void test_waiter_through_negative(void **state)
{
    (void)state;
    setup(10);
    arrive_all(0, 5, 0, OP_RUNS);
    resize(3);
    arrive_all(5, 1, 1, OP_WAITS);
    end(&ops[0]);
    assert_holder(3, 4, -1);
    end(&ops[1]);
    assert_holder(3, 3, 0);
    assert_int_equal(ops[5].state, OP_WAITS);
    assert_int_equal(rig.pokes, 0);
    end(&ops[2]);
    assert_int_equal(ops[5].state, OP_RUNS);
    assert_holder(3, 3, 0);
}

static void test_size_0_blocks_all_but_exempt(void **state)
{
    (void)state;
    setup(0);
    arrive_all(0, 1, 0, OP_WAITS);
    arrive_exempt(&ops[1], 0);
    assert_int_equal(ops[1].state, OP_RUNS);
    assert_holder(0, 0, 0);
    kill_waiter(&ops[0]); // an interruption
    assert_int_equal(rig.waiting, 0);
    resize(1);
    assert_int_equal(rig.pokes, 0);
    assert_holder(1, 0, 1);
}

static void test_sizes_have_bounds(void **state)
{
    (void)state;
    setup(-5);
    assert_holder(0, 0, 0);
    resize(INT64_MAX);
    assert_holder(HG_TICKET_SIZE_MAX, 0, HG_TICKET_SIZE_MAX);
    arrive_all(0, 1, 0, OP_RUNS);
    resize(INT64_MIN);
    assert_holder(0, 1, -1);
}

/* ---- hand-on ---- */

static void test_release_wakes(void **state)
{
    (void)state;
    setup(2);
    arrive_all(0, 2, 0, OP_RUNS);
    for (uint32_t i = 2; i < 5; i++)
        arrive_all(i, 1, i, OP_WAITS);
    rig.manual = true; // both releases before anybody wakes
    end(&ops[0]);
    end(&ops[1]);
    settle();
    assert_int_equal(rig.runs, 2);
    rig.manual = false;
    for (uint32_t i = 2; i < 5; i++)
        if (ops[i].state == OP_RUNS)
            end(&ops[i]);
    for (uint32_t i = 2; i < 5; i++)
        if (ops[i].state == OP_RUNS)
            end(&ops[i]);
    assert_states(2, 3, OP_ENDED);
    assert_holder(2, 0, 2);
}

/* The original once woke only when `available` rose from 0. */
static void test_release_wakes_beyond_the_boundary(void **state)
{
    (void)state;
    setup(2);
    arrive_all(0, 2, 0, OP_RUNS);
    arrive_all(2, 1, 1, OP_WAITS);
    arrive_all(3, 1, 2, OP_WAITS);
    rig.manual = true;
    end(&ops[0]); // 0 to 1: names worker 1, which is slow
    end(&ops[1]); // 1 to 2: names worker 2
    assert_true(rig.poked[1] && rig.poked[2]);
    settle();
    assert_states(2, 2, OP_RUNS);
}

static void test_a_killed_waiters_ticket_goes_to_the_next_best(void **state)
{
    (void)state;
    setup(1);
    arrive_all(0, 1, 0, OP_RUNS);
    for (uint32_t i = 1; i < 5; i++)
        arrive_all(i, 1, 3, OP_WAITS);
    rig.manual = true;
    end(&ops[0]);
    kill_waiter(&ops[1]); // it was its turn
    settle();
    assert_int_equal(ops[2].state, OP_RUNS);
    assert_states(3, 2, OP_WAITS);
}

static void test_a_killed_waiters_ticket_goes_to_another_worker(void **state)
{
    (void)state;
    setup(1);
    arrive_all(0, 1, 0, OP_RUNS);
    arrive_all(1, 1, 3, OP_WAITS);
    arrive_all(2, 1, 7, OP_WAITS);
    rig.manual = true;
    end(&ops[0]);
    assert_true(rig.poked[3] && !rig.poked[7]);
    kill_waiter(&ops[1]); // the worker's last one
    assert_true(rig.poked[7]);
    settle();
    assert_int_equal(ops[2].state, OP_RUNS);
}

static void test_a_late_waiters_ticket_goes_to_another_worker(void **state)
{
    (void)state;
    setup(1);
    arrive_all(0, 1, 0, OP_RUNS);
    assert_int_equal(arrive_until(&ops[1], 3, rig.now_us + 1000), OP_WAITS);
    arrive_all(2, 1, 7, OP_WAITS);
    rig.manual = true;
    end(&ops[0]);
    pass(1000); // the poke comes after the deadline
    settle();
    assert_int_equal(ops[1].state, OP_LATE);
    assert_int_equal(ops[2].state, OP_RUNS);
}

static void test_a_late_waiter_is_not_served(void **state)
{
    (void)state;
    setup(1);
    arrive_all(0, 1, 0, OP_RUNS);
    assert_int_equal(arrive_until(&ops[1], 3, rig.now_us + 1000), OP_WAITS);
    arrive_all(2, 1, 3, OP_WAITS);
    rig.now_us += 1000; // and no timer was looked at
    end(&ops[0]);
    assert_int_equal(ops[1].state, OP_LATE);
    assert_int_equal(ops[2].state, OP_RUNS);
}

static void test_nobody_overtakes_his_own_workers_line(void **state)
{
    (void)state;
    setup(1);
    arrive_all(0, 1, 0, OP_RUNS);
    arrive_all(1, 1, 0, OP_WAITS);
    rig.manual = true;
    end(&ops[0]);
    assert_int_equal(arrive(&ops[2], 0), OP_WAITS); // served the first instead
    assert_int_equal(ops[1].state, OP_RUNS);
}

static void test_workers_in_turn(void **state)
{
    (void)state;
    setup(1);
    arrive_all(0, 1, 0, OP_RUNS);
    for (uint32_t i = 1; i <= 48; i++)
        arrive_all(i, 1, (i - 1) / 3, OP_WAITS);
    for (uint32_t turn = 0; turn < 48; turn++) {
        uint32_t running = 0;
        for (uint32_t i = 0; i <= 48; i++)
            if (ops[i].state == OP_RUNS)
                running = i;
        end(&ops[running]);
    }
    for (uint32_t i = 1; i <= 48; i++) // each worker once, then each a second time
        assert_int_equal(ops[i].number, 2 + (i - 1) / 3 + 16 * ((i - 1) % 3));
}

/* Bits in all words, whatever the turn. */
static void test_any_worker_is_found(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < HG_TICKET_WORKERS; turn++) {
        uint32_t other = (turn * 37 + 11) % HG_TICKET_WORKERS;
        setup(0);
        assert_false(hg_ticket_want(&rig.holder, turn));
        assert_int_equal(hg_ticket_resize(&rig.holder, 1), turn);
        assert_int_equal(hg_ticket_next(&rig.holder), turn); // the only one
        assert_true(hg_ticket_want(&rig.holder, other));
        assert_int_equal(hg_ticket_put(&rig.holder), other);
        assert_int_equal(hg_ticket_next(&rig.holder), turn);
        assert_int_equal(hg_ticket_leave(&rig.holder, turn),
                         other == turn ? HG_TICKET_NOBODY : other);
        if (other != turn)
            assert_int_equal(hg_ticket_leave(&rig.holder, other), HG_TICKET_NOBODY);
        assert_int_equal(hg_ticket_next(&rig.holder), HG_TICKET_NOBODY);
    }
}

/* ---- bounds of the queue ---- */

static void test_queue_bound_0_refuses_at_once(void **state)
{
    (void)state;
    setup(4);
    rig.max_waiting = 0;
    arrive_all(0, 4, 0, OP_RUNS);
    arrive_all(4, 1, 1, OP_REFUSED);
    end(&ops[0]);
    arrive_all(5, 1, 1, OP_RUNS);
}

static void test_queue_bound_1_counts_all_workers(void **state)
{
    (void)state;
    setup(4);
    rig.max_waiting = 1;
    arrive_all(0, 4, 0, OP_RUNS);
    arrive_all(4, 1, 1, OP_WAITS);
    arrive_all(5, 1, 2, OP_REFUSED);
    end(&ops[0]);
    assert_int_equal(ops[4].state, OP_RUNS);
    arrive_all(6, 1, 2, OP_WAITS);
}

static void test_lowering_the_bound_leaves_waiters_alone(void **state)
{
    (void)state;
    setup(4);
    rig.max_waiting = 3;
    arrive_all(0, 4, 0, OP_RUNS);
    arrive_all(4, 3, 1, OP_WAITS);
    rig.max_waiting = 1;
    pass(1000);
    assert_states(4, 3, OP_WAITS);
    arrive_all(7, 1, 1, OP_REFUSED);
    for (uint32_t i = 0; i < 3; i++)
        end(&ops[i]);
    assert_states(4, 3, OP_RUNS);
    arrive_all(8, 1, 1, OP_WAITS);
    rig.max_waiting = 2;
    arrive_all(9, 1, 1, OP_WAITS);
}

/* ---- bookkeeping ---- */

/* Whether a ticket is held is a matter of when it was taken, whatever changed since. */
static void test_priority_bookkeeping(void **state)
{
    (void)state;
    setup(1);
    arrive_exempt(&ops[0], 0);
    assert_holder(1, 0, 1);
    arrive_all(1, 1, 0, OP_RUNS);
    end(&ops[0]); // the tenant is not exempt any more
    assert_int_equal(rig.exempt_started, 1);
    assert_int_equal(rig.exempt_ended, 1);
    assert_holder(1, 1, 0);
    end(&ops[1]);
    assert_int_equal(rig.started, 1);
    assert_int_equal(rig.ended, 1);
    assert_holder(1, 0, 1);
}

static void test_force_takes_what_is_not_there(void **state)
{
    (void)state;
    setup(2);
    arrive_all(0, 2, 0, OP_RUNS);
    hg_ticket_force(&rig.holder); // one is evicted; its slot is not free
    assert_holder(2, 3, -1);
    arrive_all(2, 1, 1, OP_WAITS);
    end(&ops[0]);
    assert_int_equal(ops[2].state, OP_WAITS);
    poke(hg_ticket_put(&rig.holder)); // the late answer
    settle();
    assert_int_equal(ops[2].state, OP_RUNS);
    assert_holder(2, 2, 0);
}

static void test_peak(void **state)
{
    (void)state;
    setup(10);
    assert_int_equal(hg_ticket_swap_peak(&rig.holder), 0);
    arrive_all(0, 7, 0, OP_RUNS);
    for (uint32_t i = 0; i < 4; i++)
        end(&ops[i]);
    assert_int_equal(hg_ticket_swap_peak(&rig.holder), 7);
    assert_int_equal(hg_ticket_swap_peak(&rig.holder), 3); // what was out all the time
    end(&ops[4]);
    arrive_all(0, 1, 0, OP_RUNS);
    hg_ticket_force(&rig.holder);
    assert_int_equal(hg_ticket_swap_peak(&rig.holder), 4);
    resize(2);
    assert_int_equal(hg_ticket_swap_peak(&rig.holder), 4);
}

/* ---- many ---- */

static void test_highly_concurrent(void **state)
{
    uint32_t rounds[10] = {0};
    bool open[10] = {false};
    struct hg_prng dice = {3};
    uint64_t done = 0;
    (void)state;
    setup(3);
    while (done < 10 * 50) {
        uint32_t t = (uint32_t)hg_prng_below(&dice, 10);
        if (!open[t] && rounds[t] < 50) {
            (void)arrive(&ops[t], t);
            open[t] = true;
        } else if (open[t] && ops[t].state == OP_RUNS) {
            end(&ops[t]);
            open[t] = false;
            rounds[t]++;
            done++;
        }
        assert_true(rig.runs <= 3);
        assert_int_equal(rig.runs, hg_ticket_out(&rig.holder));
    }
    assert_int_equal(rig.most_run, 3);
    assert_int_equal(hg_ticket_swap_peak(&rig.holder), 3);
    assert_holder(3, 0, 3);
    assert_int_equal(rig.late, 0);
}

/* Anything may happen while pokes are under way; once they are delivered nobody waits in vain. */
static void test_no_wake_up_is_lost(void **state)
{
    struct hg_prng dice = {7};
    uint64_t arrived = 0;
    int64_t forced = 0;
    (void)state;
    setup(5);
    memset(ops, 0, sizeof ops);
    rig.manual = true;
    for (uint32_t i = 0; i < 200000; i++) {
        struct op *op = &ops[hg_prng_below(&dice, 60)];
        uint64_t what = hg_prng_below(&dice, 100);
        if (what < 3) {
            resize((int64_t)hg_prng_below(&dice, 12));
        } else if (what < 6) {
            rig.now_us += hg_prng_below(&dice, 3000);
        } else if (what < 8) {
            hg_ticket_force(&rig.holder);
            forced++;
        } else if (what < 12 && forced > 0) {
            poke(hg_ticket_put(&rig.holder));
            forced--;
        } else if (what < 20) {
            settle();
            if (hg_ticket_available(&rig.holder) > 0)
                assert_int_equal(rig.waiting, 0);
        } else if (op->state == OP_RUNS) {
            end(op);
        } else if (op->state == OP_WAITS && what < 40) {
            kill_waiter(op);
        } else if (op->state != OP_WAITS) {
            (void)arrive_until(op, (uint32_t)hg_prng_below(&dice, RIG_WORKERS),
                               rig.now_us + hg_prng_below(&dice, 100000));
            arrived++;
        }
        assert_int_equal(hg_ticket_out(&rig.holder), (int64_t)rig.runs + forced);
    }
    assert_int_equal(arrived, rig.started + rig.late + rig.killed + rig.waiting);
    assert_true(rig.late > 1000 && rig.killed > 1000 && rig.started > 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_basic_timeout),
        cmocka_unit_test(test_queue_time_is_measured),
        cmocka_unit_test(test_deadlines_in_the_queue_are_exact),
        cmocka_unit_test(test_waits_are_not_cut_under_overload),
        cmocka_unit_test(test_resize_changes_size_and_available_only),
        cmocka_unit_test(test_can_resize_pool),
        cmocka_unit_test(test_shrink_with_some_left),
        cmocka_unit_test(test_shrink_below_use),
        cmocka_unit_test(test_grow_with_a_waiter),
        cmocka_unit_test(test_growing_wakes_as_many_as_became_available),
        cmocka_unit_test(test_waiter_through_negative),
        cmocka_unit_test(test_size_0_blocks_all_but_exempt),
        cmocka_unit_test(test_sizes_have_bounds),
        cmocka_unit_test(test_release_wakes),
        cmocka_unit_test(test_release_wakes_beyond_the_boundary),
        cmocka_unit_test(test_a_killed_waiters_ticket_goes_to_the_next_best),
        cmocka_unit_test(test_a_killed_waiters_ticket_goes_to_another_worker),
        cmocka_unit_test(test_a_late_waiters_ticket_goes_to_another_worker),
        cmocka_unit_test(test_a_late_waiter_is_not_served),
        cmocka_unit_test(test_nobody_overtakes_his_own_workers_line),
        cmocka_unit_test(test_workers_in_turn),
        cmocka_unit_test(test_any_worker_is_found),
        cmocka_unit_test(test_queue_bound_0_refuses_at_once),
        cmocka_unit_test(test_queue_bound_1_counts_all_workers),
        cmocka_unit_test(test_lowering_the_bound_leaves_waiters_alone),
        cmocka_unit_test(test_priority_bookkeeping),
        cmocka_unit_test(test_force_takes_what_is_not_there),
        cmocka_unit_test(test_peak),
        cmocka_unit_test(test_highly_concurrent),
        cmocka_unit_test(test_no_wake_up_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
