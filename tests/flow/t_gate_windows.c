// t_gate_windows - requests that wait as their tenant has all tickets that it may have
// SPDX-License-Identifier: BSD-3-Clause
#include "gatescene.h"

#define CROWD 6

struct crowd {
    struct scene s;
    struct client clients[CROWD]; /* of the default tenant */
    struct client other;          /* of another */
};

/* `worker`: of the crowd; the other's is the first. */
static void start_on(struct crowd *c, unsigned worker)
{
    stage_init(&c->s.stage, worker + 1);
    atomic_store(&stage_find(&c->s.stage, "default")->ticket_mode, HG_MODE_ENFORCE);
    gate_open(&c->s);
    gate_bucket(&c->s.stage, "other");
    stage_publish(&c->s.stage);
    for (unsigned i = 0; i < CROWD; i++)
        gate_connect(&c->s.stage, worker, &c->clients[i]);
    gate_connect(&c->s.stage, 0, &c->other);
    client_ask(&c->other, HG_OPCODE_SELECT_BUCKET, "other", 1);
    stage_expect(&c->s.stage, &c->other, HG_OPCODE_SELECT_BUCKET, 0, 1);
    /* The other has been here, so the server is not the default tenant's alone. */
    client_ask(&c->other, HG_OPCODE_GET, "o", 2);
    stage_run(&c->s.stage);
    fakestore_obey_all(c->s.store);
    stage_expect(&c->s.stage, &c->other, HG_OPCODE_GET, 0, 2);
    struct hg_gate_holder *holder = gate_holder(&c->s.stage, HG_GATE_READ);
    atomic_store(&holder->tenant_window, 2 * holder->worker_count); /* each worker has its part */
    stage_advance(1000000);                                         /* they are no newcomers */
    stage_timer(&c->s.stage);
}

static void start(struct crowd *c)
{
    start_on(c, 0);
}

static void ask_all(struct crowd *c)
{
    for (uint32_t i = 0; i < CROWD; i++)
        client_ask(&c->clients[i], HG_OPCODE_GET, (char[]){(char)('a' + i), 0}, i);
    stage_run(&c->s.stage);
}

static void end(struct crowd *c)
{
    for (unsigned i = 0; i < CROWD; i++)
        client_close(&c->clients[i]);
    client_close(&c->other);
    gate_close(&c->s);
}

/* The store answers all that it has; so do those of the crowd in [from, to) have theirs. */
static void expect_answers(struct crowd *c, uint32_t from, uint32_t to)
{
    fakestore_obey_all(c->s.store);
    for (uint32_t i = from; i < to; i++)
        stage_expect(&c->s.stage, &c->clients[i], HG_OPCODE_GET, 0, i);
}

static int64_t held(struct crowd *c)
{
    return atomic_load(&gate_holder(&c->s.stage, HG_GATE_READ)->held);
}

static int64_t backlog(struct crowd *c)
{
    return atomic_load(&gate_share(&c->s.stage)->backlog);
}

/* Two go, four are held back; they are no backlog, and others pass them. With each answer one more
   goes than came back. */
static void test_others_pass(void **state)
{
    (void)state;
    struct crowd c;
    start(&c);
    ask_all(&c);
    assert_int_equal(fakestore_pending(c.s.store), 2);
    assert_int_equal(gate_waiting(&c.s.stage, HG_GATE_READ), 4);
    assert_int_equal(held(&c), 4);
    assert_int_equal(backlog(&c), 0);
    client_ask(&c.other, HG_OPCODE_GET, "o", 3);
    stage_run(&c.s.stage);
    assert_int_equal(fakestore_pending(c.s.store), 3);
    fakestore_obey(fakestore_find(c.s.store, "o"));
    stage_expect(&c.s.stage, &c.other, HG_OPCODE_GET, 0, 3);
    assert_int_equal(held(&c), 4);
    fakestore_obey(fakestore_find(c.s.store, "a"));
    stage_expect(&c.s.stage, &c.clients[0], HG_OPCODE_GET, 0, 0);
    stage_run(&c.s.stage);
    assert_int_equal(fakestore_pending(c.s.store), 3);
    assert_int_equal(held(&c), 2);
    for (uint32_t i = 1; i < CROWD; i++) {
        fakestore_obey(fakestore_find(c.s.store, (char[]){(char)('a' + i), 0}));
        stage_expect(&c.s.stage, &c.clients[i], HG_OPCODE_GET, 0, i);
        stage_run(&c.s.stage);
    }
    end(&c);
}

/* Held back and without tickets: those of the other tenant have the next one. */
static void test_no_turns_for_those_held_back(void **state)
{
    (void)state;
    struct crowd c;
    start(&c);
    gate_resize(&c.s.stage, HG_GATE_READ, 2);
    ask_all(&c);
    client_ask(&c.other, HG_OPCODE_GET, "o", 3);
    stage_run(&c.s.stage);
    assert_int_equal(gate_waiting(&c.s.stage, HG_GATE_READ), 5);
    assert_int_equal(held(&c), 4);
    assert_int_equal(backlog(&c), 1);
    fakestore_obey(fakestore_find(c.s.store, "a"));
    stage_expect(&c.s.stage, &c.clients[0], HG_OPCODE_GET, 0, 0);
    stage_run(&c.s.stage);
    assert_non_null(fakestore_find(c.s.store, "o"));
    fakestore_obey_all(c.s.store);
    stage_expect(&c.s.stage, &c.other, HG_OPCODE_GET, 0, 3);
    for (uint32_t i = 1; i < CROWD; i++) {
        stage_run(&c.s.stage);
        fakestore_obey_all(c.s.store);
        stage_expect(&c.s.stage, &c.clients[i], HG_OPCODE_GET, 0, i);
    }
    end(&c);
}

/* Their time is over as that of others who wait; and their clients may leave. */
static void test_held_back_for_too_long(void **state)
{
    (void)state;
    struct crowd c;
    start(&c);
    ask_all(&c);
    client_close(&c.clients[5]);
    stage_run(&c.s.stage);
    assert_int_equal(held(&c), 3);
    gate_pass(&c.s.stage, 999000);
    assert_int_equal(held(&c), 3);
    gate_wait(&c.s.stage, 2000);
    assert_int_equal(held(&c), 0);
    for (uint32_t i = 2; i < 5; i++)
        stage_expect(&c.s.stage, &c.clients[i], HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, i);
    expect_answers(&c, 0, 2);
    end(&c);
}

/* The tenant needs no tickets any more: all go. */
static void test_a_mode_that_needs_none(void **state)
{
    (void)state;
    struct crowd c;
    start(&c);
    ask_all(&c);
    atomic_store(&stage_find(&c.s.stage, "default")->ticket_mode, HG_MODE_OFF);
    stage_publish(&c.s.stage);
    stage_run(&c.s.stage);
    assert_int_equal(held(&c), 0);
    assert_int_equal(fakestore_pending(c.s.store), 6);
    expect_answers(&c, 0, CROWD);
    end(&c);
}

/* Without windows, and for a tenant that only observes, nobody is held back. */
static void test_no_windows(void **state)
{
    (void)state;
    for (unsigned observe = 0; observe < 2; observe++) {
        struct crowd c;
        start(&c);
        if (observe)
            atomic_store(&stage_find(&c.s.stage, "default")->ticket_mode, HG_MODE_OBSERVE);
        else
            atomic_store(&gate_holder(&c.s.stage, HG_GATE_READ)->tenant_window, 0);
        stage_timer(&c.s.stage);
        ask_all(&c);
        assert_int_equal(held(&c), 0);
        assert_int_equal(fakestore_pending(c.s.store), 6);
        expect_answers(&c, 0, CROWD);
        end(&c);
    }
}

/* A tenant that is alone on its worker is not bound, unless another is active on another worker. */
static void test_workers_know_of_each_others_tenants(void **state)
{
    (void)state;
    for (unsigned both = 0; both < 2; both++) {
        struct crowd c;
        start_on(&c, 1);
        struct fakestore *store = NULL;
        for (unsigned second = 0; second < 4; second++) {
            stage_advance(1000000);
            client_ask(&c.clients[0], HG_OPCODE_GET, "a", 9);
            stage_run(&c.s.stage);
            store = HG_CONTAINER_OF(
                hg_worker_store(&c.s.stage.workers[1], &c.s.stage.upstreams[0].upstream),
                struct fakestore, store);
            fakestore_obey_all(store);
            stage_expect(&c.s.stage, &c.clients[0], HG_OPCODE_GET, 0, 9);
            if (both) {
                client_ask(&c.other, HG_OPCODE_GET, "o", 9);
                stage_run(&c.s.stage);
                fakestore_obey_all(c.s.store);
                stage_expect(&c.s.stage, &c.other, HG_OPCODE_GET, 0, 9);
            }
            stage_timer(&c.s.stage);
            stage_timer(&c.s.stage); /* what the last has told */
        }
        ask_all(&c);
        assert_int_equal(fakestore_pending(store), both ? 2 : CROWD);
        assert_int_equal(held(&c), both ? CROWD - 2 : 0);
        for (unsigned n = 0; n < CROWD; n++) {
            fakestore_obey_all(store);
            stage_run(&c.s.stage);
        }
        for (uint32_t i = 0; i < CROWD; i++)
            stage_expect(&c.s.stage, &c.clients[i], HG_OPCODE_GET, 0, i);
        end(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_others_pass),
        cmocka_unit_test(test_no_turns_for_those_held_back),
        cmocka_unit_test(test_held_back_for_too_long),
        cmocka_unit_test(test_a_mode_that_needs_none),
        cmocka_unit_test(test_no_windows),
        cmocka_unit_test(test_workers_know_of_each_others_tenants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
