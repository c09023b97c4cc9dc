// t_balance_model - random events for hours of virtual time; after each, the books are right
// SPDX-License-Identifier: BSD-3-Clause
//
// The driver here is unkind: it declines plans now and then, loses connections, gives up waiters,
// changes the capacity, freezes, suppresses blocks. What must hold all the same is recounted from
// the connections themselves.
#include "balancerig.h"

#include "base/prng.h"

#define BLOCKS 12

static struct hg_prng prng;
static uint32_t conn_of_op[HG_BALANCE_OPS_MAX];

static uint32_t draw(uint32_t n)
{
    return (uint32_t)(hg_prng_next(&prng) % n);
}

static uint32_t length(const struct hg_list *head)
{
    uint32_t n = 0;
    for (const struct hg_list *node = head->next; node != head; node = node->next, n++)
        assert_ptr_equal(node->next->prev, node);
    return n;
}

struct count {
    uint32_t states[HG_BALANCE_CLOSING + 1], incoming;
};

static void check_block(struct hg_balance_block *block, const struct count *count)
{
    assert_int_equal(block->coming, count->states[HG_BALANCE_COMING]);
    assert_int_equal(block->idle_count, count->states[HG_BALANCE_IDLE]);
    assert_int_equal(block->busy_count, count->states[HG_BALANCE_BUSY]);
    assert_int_equal(block->draining, count->states[HG_BALANCE_DRAINING]);
    assert_int_equal(block->incoming, count->incoming);
    assert_int_equal(block->idle_count, length(&block->idle));
    assert_int_equal(block->busy_count, length(&block->busy));
    assert_int_equal(block->coming + block->draining, length(&block->others));
    assert_int_equal(block->planned_in + block->planned_out, 0);
    bool starves = block->waiters > 0 && hg_balance_size(block) + block->incoming == 0 &&
                   !block->suppressed && !block->resting;
    assert_int_equal(starves, !hg_list_empty(&block->starving));
    assert_true(block->demand >= 0 && block->demand < 1e9);
}

static void check_all(void)
{
    struct count counts[BLOCKS];
    uint32_t total = 0, idle = 0, closing = 0, drains = 0, draining = 0, waiters = 0, starving = 0;
    memset(counts, 0, sizeof counts);
    for (uint32_t i = 0; i < RIG_CONNS; i++) {
        const struct hg_balance_conn *conn = &conns[i];
        assert_false(conn->planned);
        if (conn->state == HG_BALANCE_GONE)
            continue;
        total++;
        idle += conn->state == HG_BALANCE_IDLE;
        closing += conn->state == HG_BALANCE_CLOSING;
        draining += conn->state == HG_BALANCE_DRAINING;
        assert_int_equal(conn->block == NULL, conn->state == HG_BALANCE_CLOSING);
        if (conn->block != NULL)
            counts[conn->block - blocks].states[conn->state]++;
        if (conn->reserved != NULL) {
            drains++;
            counts[conn->reserved - blocks].incoming++;
        }
    }
    for (uint32_t i = 0; i < BLOCKS; i++) {
        check_block(&blocks[i], &counts[i]);
        waiters += blocks[i].waiters;
        starving += !hg_list_empty(&blocks[i].starving);
    }
    assert_int_equal(b.total, total);
    assert_int_equal(b.closing, closing);
    assert_int_equal(b.drains, drains);
    assert_int_equal(b.waiters, waiters);
    assert_int_equal(length(&b.lru), idle);
    assert_int_equal(length(&b.draining_conns), draining);
    assert_int_equal(length(&b.starving), starving);
    assert_int_equal(length(&b.active) + length(&b.quiet), BLOCKS);
}

/* The hold, and who may give and get, for a plan that is not carried out yet. */
static void check_plan(const struct hg_balance_plan *plan)
{
    const struct hg_balance_conn *conn = plan->conn;
    bool takes = plan->verb == HG_BALANCE_MOVE || plan->verb == HG_BALANCE_DRAIN;
    if (plan->verb == HG_BALANCE_CREATE)
        assert_true(b.total < b.capacity);
    if (takes || plan->verb == HG_BALANCE_CREATE)
        assert_false(plan->block->suppressed || plan->block->resting);
    if (!takes)
        return;
    assert_false(b.frozen || b.draining);
    assert_ptr_not_equal(conn->block, plan->block);
    if (conn->reserved == NULL) {
        bool held = now - conn->bound_us >= b.hold_us;
        bool unused = conn->block->used_us < conn->up_us && conn->block->waiters == 0 &&
                      now - conn->up_us >= b.reconnect_us;
        assert_true(held || unused);
        assert_false(conn->block->suppressed);
    }
    assert_int_equal(conn->state,
                     plan->verb == HG_BALANCE_MOVE ? HG_BALANCE_IDLE : HG_BALANCE_BUSY);
    if (plan->verb == HG_BALANCE_DRAIN)
        assert_true(b.drains < (b.capacity < 20 ? 1 : b.capacity / 20));
}

/* Does it, mostly. */
static void take(const struct hg_balance_plan *plan, bool steal)
{
    check_plan(plan);
    if (draw(8) > 0) {
        carry_out(*plan, steal);
    } else if (plan->conn != NULL && plan->conn->reserved != NULL) {
        hg_balance_conn_undrain(&b, plan->conn, now); /* as the header demands */
        serve(plan->conn);
    }
}

static void random_request(void)
{
    uint32_t i = draw(3) == 0 ? draw(BLOCKS) : draw(4);
    struct hg_balance_block *block = &blocks[i];
    hg_balance_arrived(&b, block, now);
    struct hg_balance_plan plan = hg_balance_plan_acquire(&b, block, now);
    if (plan.verb == HG_BALANCE_USE) {
        put(plan.conn);
    } else if (plan.verb != HG_BALANCE_REFUSE && block->waiters < 200) {
        take(&plan, true);
        hg_balance_wait_begin(&b, block, now);
    }
}

static void answer_one(struct hg_balance_conn *conn)
{
    hg_balance_answered(conn, 1, now);
    conn->load--;
    if (conn->load > 0) {
        serve(conn);
        return;
    }
    hg_balance_conn_idle(&b, conn, now);
    struct hg_balance_plan plan = hg_balance_plan_release(&b, conn, now);
    if (plan.verb == HG_BALANCE_KEEP)
        serve(conn);
    else
        take(&plan, false);
}

static void random_conn_event(bool kind)
{
    struct hg_balance_conn *conn = &conns[draw(40)];
    uint32_t luck = kind ? 100 : draw(100);
    switch (conn->state) {
    case HG_BALANCE_COMING:
        if (luck < 20)
            (void)break_down(conn);
        else if (luck > 40)
            come_up(conn);
        return;
    case HG_BALANCE_BUSY:
    case HG_BALANCE_DRAINING:
        if (luck < 2)
            hg_balance_conn_gone(&b, conn, false, now);
        else
            answer_one(conn);
        return;
    case HG_BALANCE_IDLE:
        if (luck < 1)
            hg_balance_conn_closing(&b, conn, now);
        else if (luck > 95)
            serve(conn);
        return;
    case HG_BALANCE_CLOSING:
        hg_balance_conn_gone(&b, conn, false, now);
        return;
    default:
        return;
    }
}

static void check_ops(void)
{
    uint32_t creates = 0, drains = 0;
    for (uint32_t i = 0; i < op_count; i++) {
        creates += ops[i].verb == HG_BALANCE_CREATE;
        drains += ops[i].verb == HG_BALANCE_DRAIN;
        conn_of_op[i] = ops[i].conn == NULL ? UINT32_MAX - i : (uint32_t)(ops[i].conn - conns);
        for (uint32_t j = 0; j < i; j++)
            assert_int_not_equal(conn_of_op[i], conn_of_op[j]);
    }
    if (creates > 0)
        assert_true(b.total + creates <= b.capacity);
    if (drains > 0)
        assert_true(b.drains + drains <= (b.capacity < 20 ? 1 : b.capacity / 20));
}

static void random_tick(void)
{
    uint32_t sum = 0;
    op_count = hg_balance_rebalance(&b, ops, draw(4) == 0 ? 1 + draw(4) : HG_BALANCE_OPS_MAX, now);
    for (uint32_t i = 0; i < BLOCKS; i++)
        sum += blocks[i].quota;
    if (!b.frozen && b.constrained && !b.ring)
        assert_int_equal(sum, b.capacity);
    if (!b.frozen && !b.constrained)
        assert_true(sum <= b.capacity);
    check_all();
    check_ops();
    for (uint32_t i = 0; i < op_count; i++)
        take(&ops[i], false);
}

static void random_trouble(void)
{
    struct hg_balance_block *block = &blocks[draw(BLOCKS)];
    switch (draw(5)) {
    case 0:
        hg_balance_set_capacity(&b, draw(32));
        break;
    case 1:
        hg_balance_freeze(&b, !b.frozen);
        break;
    case 2:
        hg_balance_block_suppress(&b, block, !block->suppressed);
        break;
    default:
        while (block->waiters > 0) /* all have lost patience */
            hg_balance_wait_end(&b, block, now);
        break;
    }
}

/* No more trouble: everybody is served, then everything ends. */
static void settle(void)
{
    hg_balance_freeze(&b, false);
    hg_balance_set_capacity(&b, b.capacity < 4 ? 4 : b.capacity);
    for (uint32_t i = 0; i < BLOCKS; i++)
        if (blocks[i].suppressed)
            hg_balance_block_suppress(&b, &blocks[i], false);
    for (uint32_t t = 0; t < 20000 && b.waiters > 0; t++) {
        now += 1 * MS;
        for (uint32_t i = 0; i < 8; i++)
            random_conn_event(true);
        if (t % 10 == 9)
            random_tick();
    }
    check_all();
    assert_int_equal(b.waiters, 0);
    if (draw(2) == 0) {
        hg_balance_drain(&b);
    } else {
        now += 121 * S;
    }
    for (uint32_t t = 0; t < 20000 && b.total > 0; t++) {
        now += 10 * MS;
        for (uint32_t i = 0; i < 8; i++)
            random_conn_event(true);
        random_tick();
    }
    assert_int_equal(b.total, 0);
    check_all();
}

static void run(uint64_t seed, uint32_t depth, uint32_t steps)
{
    prng = (struct hg_prng){seed};
    begin(1 + draw(24), depth, BLOCKS);
    uint64_t tick_us = now + HG_BALANCE_TICK_US;
    for (uint32_t s = 0; s < steps; s++) {
        now += draw(4) == 0 ? draw(4000) : draw(400);
        if (now >= tick_us) {
            random_tick();
            tick_us = now + HG_BALANCE_TICK_US;
        }
        if (draw(3) == 0)
            random_request();
        else
            random_conn_event(false);
        if (draw(500) == 0)
            random_trouble();
        check_all();
    }
    settle();
}

static void test_exclusive(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 24; seed++)
        run(seed, 1, 8000);
}

static void test_pipelined(void **state)
{
    (void)state;
    for (uint64_t seed = 101; seed <= 124; seed++)
        run(seed, 4, 8000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exclusive),
        cmocka_unit_test(test_pipelined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
