// t_balance_cases - whole stories: tests of the pools that this one follows, and rings
// SPDX-License-Identifier: BSD-3-Clause
//
// Connects take CONNECT_US, requests as long as the story says (until `finish`, or SERVICE_US).
#include "balancerig.h"

#define STEP_US    500
#define CONNECT_US (20 * MS)

static uint64_t service_us; /* 0: requests are held until finish */
static uint64_t next_tick_us;
static uint64_t first_wait_us[RIG_BLOCKS], worst_wait_us; /* of the first in each line */
static uint32_t served[RIG_BLOCKS];
static uint32_t failing_block, failures_left; /* so many connects to it fail */
static uint64_t moves_too_early;

static void begin_story(uint32_t capacity, uint32_t depth, uint32_t block_count)
{
    begin(capacity, depth, block_count);
    service_us = 0;
    next_tick_us = now + HG_BALANCE_TICK_US;
    failing_block = failures_left = 0;
    worst_wait_us = moves_too_early = 0;
    memset(served, 0, sizeof served);
    memset(first_wait_us, 0, sizeof first_wait_us);
}

/* Notes how long the first in a line waited, for lines that have moved on. */
static void note_waits(void)
{
    for (uint32_t i = 0; i < b.block_count; i++) {
        bool waits = hg_balance_size(&blocks[i]) == 0 && blocks[i].waiters > 0;
        if (!waits)
            first_wait_us[i] = 0;
        else if (first_wait_us[i] == 0)
            first_wait_us[i] = now;
        else if (now - first_wait_us[i] > worst_wait_us)
            worst_wait_us = now - first_wait_us[i];
    }
}

static void come_up_or_fail(struct hg_balance_conn *conn)
{
    if (failures_left > 0 && conn->block == &blocks[failing_block]) {
        failures_left--;
        hg_balance_conn_gone(&b, conn, true, now);
        return;
    }
    come_up(conn);
}

static void step(void)
{
    now += STEP_US;
    for (uint32_t i = 0; i < RIG_CONNS; i++) {
        struct hg_balance_conn *conn = &conns[i];
        if (conn->state == HG_BALANCE_COMING && now - conn->bound_us >= CONNECT_US)
            come_up_or_fail(conn);
        bool busy = conn->state == HG_BALANCE_BUSY || conn->state == HG_BALANCE_DRAINING;
        if (service_us > 0 && busy && now - conn->counted_us >= service_us) {
            uint64_t bound_us = conn->bound_us, hold_us = b.hold_us;
            served[conn->block - blocks]++;
            if (answer(conn) == HG_BALANCE_MOVE)
                moves_too_early += now - bound_us < hold_us;
        }
    }
    if (now >= next_tick_us) {
        now -= HG_BALANCE_TICK_US;
        (void)tick();
        next_tick_us = now + HG_BALANCE_TICK_US;
    }
    note_waits();
}

static void go_on(uint64_t us)
{
    for (uint64_t end_us = now + us; now < end_us;)
        step();
}

static struct hg_balance_conn *busy_one(uint32_t block)
{
    assert_true(blocks[block].busy_count > 0);
    return HG_CONTAINER_OF(blocks[block].busy.next, struct hg_balance_conn, node);
}

static enum hg_balance_verb finish(uint32_t block)
{
    return answer(busy_one(block));
}

/* "starved": 15 blocks, 10 connections; each releases once. */
static void test_starved(void **state)
{
    (void)state;
    begin_story(10, 1, 15);
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(request(i), HG_BALANCE_CREATE);
    for (uint32_t i = 10; i < 15; i++)
        assert_int_equal(request(i), HG_BALANCE_WAIT);
    go_on(200 * MS);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(finish(i), HG_BALANCE_MOVE);
        assert_ptr_equal(newest->block, &blocks[10 + i]); /* in the order of their coming */
    }
    for (uint32_t i = 5; i < 10; i++)
        assert_int_equal(finish(i), HG_BALANCE_KEEP);
    go_on(200 * MS);
    for (uint32_t i = 10; i < 15; i++)
        (void)finish(i);
    assert_int_equal(b.waiters, 0);
}

/* "longtrans": a third connection is granted while two are held. */
static void test_long_transactions(void **state)
{
    (void)state;
    begin_story(10, 1, 2);
    (void)request(1);
    (void)request(0);
    go_on(50 * MS);
    assert_int_equal(request(0), HG_BALANCE_CREATE);
    go_on(50 * MS);
    assert_int_equal(blocks[0].busy_count, 2);
    assert_int_equal(blocks[1].busy_count, 1);
}

/* ... also when the domain is full of connections that rest. */
static void test_long_transactions_when_full(void **state)
{
    (void)state;
    begin_story(3, 1, 2);
    for (uint32_t i = 0; i < 3; i++)
        (void)request(1);
    go_on(50 * MS);
    (void)finish(1);
    (void)finish(1);
    (void)request(0);
    go_on(100 * MS);
    (void)request(0);
    go_on(200 * MS);
    assert_int_equal(blocks[0].busy_count, 2);
    assert_int_equal(blocks[1].busy_count, 1);
}

/* "wrong quota": 4 of 5 are held by A, 1 by B until B has a second one. */
static void test_wrong_quota(void **state)
{
    (void)state;
    begin_story(5, 1, 2);
    for (uint32_t i = 0; i < 4; i++)
        (void)request(0);
    (void)request(1);
    go_on(100 * MS);
    (void)request(1);
    go_on(100 * MS);
    assert_int_equal(blocks[1].busy_count, 1); /* nothing is free yet */
    for (uint32_t i = 0; i < 4; i++)
        (void)finish(0);
    go_on(500 * MS);
    assert_int_equal(blocks[1].busy_count, 2);
    assert_int_equal(blocks[1].moves_in, 1);
    assert_int_equal(blocks[0].moves_out, 1);
}

/* "steal with connect error": the first two connects to B fail, the third serves it. */
static void test_steal_with_connect_error(void **state)
{
    (void)state;
    begin_story(2, 1, 2);
    (void)request(0);
    (void)request(0);
    go_on(100 * MS);
    (void)finish(0);
    (void)finish(0);
    failing_block = 1;
    failures_left = 2;
    assert_int_equal(request(1), HG_BALANCE_MOVE);
    go_on(200 * MS);
    assert_int_equal(failures_left, 0);
    assert_int_equal(blocks[1].busy_count, 1);
    assert_int_equal(blocks[1].connect_errors, 2);
    assert_int_equal(blocks[1].moves_in, 1);
    assert_int_equal(blocks[0].moves_out, 1);
    assert_true(b.total <= 2);
}

/* "eternal starvation": 10 blocks, 5 connections; nobody lets go before five have one. */
static void test_eternal_starvation(void **state)
{
    (void)state;
    begin_story(5, 1, 10);
    for (uint32_t i = 0; i < 10; i++)
        (void)request(i);
    go_on(100 * MS);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(blocks[i].busy_count, 1);
    for (uint32_t i = 0; i < 5; i++)
        (void)finish(i);
    go_on(200 * MS);
    for (uint32_t i = 5; i < 10; i++)
        assert_int_equal(blocks[i].busy_count, 1);
    for (uint32_t i = 5; i < 10; i++)
        (void)finish(i);
    assert_int_equal(b.waiters, 0);
}

/* Every block always has requests: each gets its turn, in time, and equally many. */
static void ring(uint32_t capacity, uint32_t block_count, uint32_t depth)
{
    uint32_t least = UINT32_MAX, most = 0;
    begin_story(capacity, depth, block_count);
    service_us = 5 * MS;
    for (uint32_t t = 0; t < 400; t++) {
        for (uint32_t i = 0; i < block_count; i++)
            while (blocks[i].waiters < 3 * depth)
                (void)request(i);
        go_on(10 * MS);
        assert_true(b.total <= capacity);
        if (t == 100) { /* all have come round */
            worst_wait_us = 0;
            memset(served, 0, sizeof served);
        }
    }
    uint64_t rounds = (block_count + capacity - 1) / capacity;
    /* A turn ends with a request, and, with depth, when it has drained; a drain may wait a tick. */
    uint64_t end_us = depth * service_us + HG_BALANCE_TICK_US;
    uint64_t bound_us = rounds * (b.slice_us + b.reconnect_us + end_us);
    if (depth > 1) /* one drain at a time */
        bound_us = block_count * (b.slice_us + b.reconnect_us + end_us);
    if (worst_wait_us > bound_us)
        fail_msg("%u waited %u us, more than %u", (unsigned)block_count, (unsigned)worst_wait_us,
                 (unsigned)bound_us);
    for (uint32_t i = 0; i < block_count; i++) {
        least = served[i] < least ? served[i] : least;
        most = served[i] > most ? served[i] : most;
    }
    assert_true(least * 4 >= most * 3);
    assert_int_equal(moves_too_early, 0);
}

static void test_ring(void **state)
{
    (void)state;
    ring(1, 2, 1);
    ring(1, 7, 1);
    ring(4, 5, 1);
    ring(4, 12, 1);
    ring(6, 32, 1);
}

static void test_ring_with_depth(void **state)
{
    (void)state;
    ring(1, 4, 8);
    ring(4, 12, 8);
}

/* What becomes of the one connection of block 0 when it is released after `held_us`, while the
   first of its line came `later_us` after that of block 1. */
static enum hg_balance_verb turn(uint32_t arrivals_of_other, int64_t later_us, uint64_t held_us)
{
    begin_story(1, 1, 2);
    struct hg_balance_conn *conn = connect_now(0, CONNECT_US);
    for (uint32_t t = 0; t < 20; t++) {
        for (uint32_t i = 0; i < 10; i++)
            hg_balance_arrived(&b, &blocks[0], now);
        for (uint32_t i = 0; i < arrivals_of_other; i++)
            hg_balance_arrived(&b, &blocks[1], now);
        (void)tick();
    }
    (void)request(0);
    (void)request(0);
    (void)request(1);
    (void)tick();
    assert_true(b.ring);
    conn->bound_us = now;
    now += held_us;
    blocks[0].oldest_us = now - 1 * S;
    blocks[1].oldest_us = (uint64_t)((int64_t)(now - 1 * S) - later_us);
    return finish(0);
}

static void test_turns(void **state)
{
    const uint64_t move_us = CONNECT_US, slice_us = 3 * CONNECT_US;
    (void)state;
    /* Usually three times of a move. */
    assert_int_equal(turn(10, 0, slice_us - 1), HG_BALANCE_KEEP);
    assert_int_equal(turn(10, 0, slice_us), HG_BALANCE_MOVE);
    /* Longer for who has waited longer, but not forever. */
    assert_int_equal(turn(10, -(int64_t)(5 * MS), slice_us + 5 * MS - 1), HG_BALANCE_KEEP);
    assert_int_equal(turn(10, -(int64_t)(5 * MS), slice_us + 5 * MS), HG_BALANCE_MOVE);
    assert_int_equal(turn(10, -(int64_t)(900 * MS), slice_us + move_us - 1), HG_BALANCE_KEEP);
    assert_int_equal(turn(10, -(int64_t)(900 * MS), slice_us + move_us), HG_BALANCE_MOVE);
    /* Shorter when the other has waited longer by more than a slice, but never than the hold. */
    assert_int_equal(turn(10, (int64_t)slice_us, slice_us - 1), HG_BALANCE_KEEP);
    assert_int_equal(turn(10, (int64_t)(slice_us + 5 * MS), slice_us - 5 * MS), HG_BALANCE_MOVE);
    assert_int_equal(turn(10, (int64_t)(900 * MS), slice_us - move_us - 1), HG_BALANCE_KEEP);
    assert_int_equal(turn(10, (int64_t)(900 * MS), slice_us - move_us), HG_BALANCE_MOVE);
    /* As usual when they are not alike: who asks for more waits longer. */
    assert_int_equal(turn(30, (int64_t)(900 * MS), slice_us - 1), HG_BALANCE_KEEP);
    assert_int_equal(turn(3, -(int64_t)(900 * MS), slice_us), HG_BALANCE_MOVE);
}

/* In the middle of a ring of greedy blocks one request comes for a block that was quiet. */
static void test_quiet_block_in_a_ring(void **state)
{
    (void)state;
    begin_story(2, 1, 9);
    service_us = 5 * MS;
    for (uint32_t t = 0; t < 300; t++) {
        for (uint32_t i = 0; i < 8; i++)
            while (blocks[i].waiters < 5)
                (void)request(i);
        if (t % 60 == 59)
            (void)request(8);
        go_on(10 * MS);
    }
    assert_true(served[8] >= 4);
    uint64_t bound_us = 5 * (b.slice_us + b.reconnect_us + service_us + HG_BALANCE_TICK_US);
    assert_true(worst_wait_us <= bound_us);
}

/* A quiet block beside a greedy one, in a domain that has room for both. */
static void test_quiet_block_beside_a_greedy_one(void **state)
{
    (void)state;
    begin_story(4, 1, 2);
    service_us = 5 * MS;
    for (uint32_t t = 0; t < 300; t++) {
        while (blocks[0].waiters < 50)
            (void)request(0);
        if (t % 100 == 99)
            (void)request(1);
        go_on(10 * MS);
    }
    go_on(200 * MS);
    assert_int_equal(served[1], 3);
    /* What is released next, past its hold, and the time of a move. */
    assert_true(worst_wait_us <= b.hold_us + service_us + CONNECT_US);
}

/* Trap 21: the same happens again. */
static void test_the_same_again(void **state)
{
    uint64_t sums[2];
    (void)state;
    for (uint32_t run = 0; run < 2; run++) {
        begin_story(5, 1, 10);
        service_us = 3 * MS;
        sums[run] = 0;
        for (uint32_t t = 0; t < 64; t++) {
            for (uint32_t i = 0; i < 10; i++)
                (void)request((i * 7 + t) % 10);
            go_on(10 * MS);
            for (uint32_t i = 0; i < op_count; i++)
                sums[run] = sums[run] * 31 + ops[i].verb * 100 + (uint64_t)(ops[i].conn - conns);
            for (uint32_t i = 0; i < 10; i++)
                sums[run] = sums[run] * 31 + blocks[i].waiters + blocks[i].moves_in * 1000;
        }
    }
    assert_true(sums[0] == sums[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_starved),
        cmocka_unit_test(test_long_transactions),
        cmocka_unit_test(test_long_transactions_when_full),
        cmocka_unit_test(test_wrong_quota),
        cmocka_unit_test(test_steal_with_connect_error),
        cmocka_unit_test(test_eternal_starvation),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_ring_with_depth),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_quiet_block_in_a_ring),
        cmocka_unit_test(test_quiet_block_beside_a_greedy_one),
        cmocka_unit_test(test_the_same_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
