// t_gate_threads - two workers that share the tickets: who puts one back wakes who waits for it
// SPDX-License-Identifier: BSD-3-Clause
//
// The look of each 5 ms would make up for a wake-up that was lost, so here nobody looks.
//
// HG_TEST_SEED=n runs one seed.
#include <stdio.h>
#include <stdlib.h>

#include "base/prng.h"
#include "gatescene.h"

static void look_away(struct hg_timer *timer)
{
    (void)timer;
}

static void on_open(struct stage *stage, struct fakestore *store)
{
    (void)stage;
    store->worker->line_timer.fn = look_away;
}

/* ---- step by step ---- */

static void open_two(struct stage *stage, struct client clients[2])
{
    stage_init(stage, 2);
    stage->on_open = on_open;
    atomic_store(&stage_find(stage, "default")->ticket_mode, HG_MODE_ENFORCE);
    stage_open(stage);
    for (unsigned w = 0; w < 2; w++)
        gate_connect(stage, w, &clients[w]);
}

static void close_two(struct stage *stage, struct client clients[2])
{
    for (unsigned w = 0; w < 2; w++)
        client_close(&clients[w]);
    stage_run(stage);
    gate_check(stage);
    stage_close(stage);
}

static void test_put_wakes_the_other(void **state)
{
    static const enum hg_gate_place places[] = {HG_GATE_INGRESS, HG_GATE_READ};
    (void)state;
    for (unsigned p = 0; p < 2; p++) {
        struct stage stage;
        struct client clients[2];
        open_two(&stage, clients);
        gate_resize(&stage, places[p], 1);
        client_ask(&clients[0], HG_OPCODE_GET, "a", 1);
        stage_run(&stage);
        client_ask(&clients[1], HG_OPCODE_GET, "b", 1);
        stage_run(&stage);
        assert_int_equal(gate_waiting(&stage, places[p]), 1);
        for (uint32_t turn = 0; turn < 6; turn++) { /* from one to the other, and back */
            unsigned has = turn % 2, wants = 1 - has;
            assert_false(atomic_load(&stage.workers[wants].gate_posted));
            fakestore_obey_all(stage.upstreams[0].stores[has]);
            assert_true(atomic_load(&stage.workers[wants].gate_posted));
            stage_expect(&stage, &clients[has], HG_OPCODE_GET, 0, 1);
            assert_int_equal(fakestore_pending(stage.upstreams[0].stores[wants]), 1);
            client_ask(&clients[has], HG_OPCODE_GET, "k", 1);
            stage_run(&stage);
            assert_int_equal(gate_waiting(&stage, places[p]), 1);
        }
        for (unsigned n = 0; n < 2; n++) {
            fakestore_obey_all(stage.upstreams[0].stores[n]);
            stage_run(&stage);
        }
        close_two(&stage, clients);
    }
}

/* Who was woken, and has nobody any more, hands the ticket on. */
static void test_handed_on(void **state)
{
    (void)state;
    struct stage stage;
    struct client clients[2];
    open_two(&stage, clients);
    gate_resize(&stage, HG_GATE_READ, 0);
    for (unsigned w = 0; w < 2; w++)
        client_ask(&clients[w], HG_OPCODE_GET, "k", w);
    stage_run(&stage);
    assert_int_equal(gate_waiting(&stage, HG_GATE_READ), 2);
    uint32_t first = hg_ticket_resize(&gate_holder(&stage, HG_GATE_READ)->ticket, 1);
    assert_true(first < 2);
    unsigned other = 1 - first;
    client_half_close(&clients[first]); /* seen before the letter is posted */
    STAGE_UNTIL(&stage, gate_waiting(&stage, HG_GATE_READ) == 0);
    stage_run(&stage);
    assert_int_equal(fakestore_pending(stage.upstreams[0].stores[other]), 1);
    hg_gate_poke(&stage.front, first);
    stage_run(&stage);
    fakestore_obey_all(stage.upstreams[0].stores[other]);
    stage_expect(&stage, &clients[other], HG_OPCODE_GET, 0, other);
    stage_expect(&stage, &clients[first], HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, first);
    close_two(&stage, clients);
}

/* A stranded slot of one worker, for which the other one waits. */
static void test_late_answer_wakes_the_other(void **state)
{
    (void)state;
    struct stage stage;
    struct client clients[2];
    open_two(&stage, clients);
    gate_resize(&stage, HG_GATE_READ, 1);
    client_ask(&clients[0], HG_OPCODE_GET, "a", 1);
    stage_run(&stage);
    client_ask(&clients[1], HG_OPCODE_GET, "b", 1);
    stage_run(&stage);
    struct fakestore *store = stage.upstreams[0].stores[0];
    store->strands = true;
    fakestore_fault(fakestore_first(store), HG_FAULT_TIMEOUT);
    stage_expect(&stage, &clients[0], HG_OPCODE_GET, HG_STATUS_BACKEND_TIMEOUT, 1);
    assert_int_equal(gate_waiting(&stage, HG_GATE_READ), 1);
    fakestore_late(store, HG_TICKET_READ);
    stage_run(&stage);
    fakestore_obey_all(stage.upstreams[0].stores[1]);
    stage_expect(&stage, &clients[1], HG_OPCODE_GET, 0, 1);
    close_two(&stage, clients);
}

/* ---- the backlog ---- */

#define CHANGES        2000
#define CHANGES_ROUNDS 60

static void *change_backlog(void *arg)
{
    struct hg_gateshare *share = arg;
    for (uint64_t n = 1; n <= CHANGES; n++) {
        hg_gateshare_backlog(share, 1, n);
        if (n < CHANGES)
            hg_gateshare_backlog(share, -1, n);
    }
    return NULL;
}

/* While somebody waits the backlog has begun, whoever ended one at that moment. */
static void test_backlog_is_not_lost(void **state)
{
    (void)state;
    for (unsigned round = 0; round < CHANGES_ROUNDS; round++) {
        struct hg_gateset *set = hg_gateset_new(2);
        assert_non_null(set);
        struct hg_gateshare *share = hg_gateset_take(set, NULL, "", 1);
        pthread_t threads[2];
        assert_non_null(share);
        for (unsigned t = 0; t < 2; t++)
            assert_int_equal(pthread_create(&threads[t], NULL, change_backlog, share), 0);
        PATIENCE_WHILE(atomic_load(&share->backlog) < 2)
        hg_gateshare_settle(share, 1); /* as housekeeping does, when it saw nobody */
        for (unsigned t = 0; t < 2; t++)
            pthread_join(threads[t], NULL);
        assert_int_equal(atomic_load(&share->backlog), 2);
        assert_true(atomic_load(&share->backlog_since_us) != 0);
        for (unsigned t = 0; t < 2; t++)
            hg_gateshare_backlog(share, -1, CHANGES);
        assert_int_equal(atomic_load(&share->backlog_since_us), 0);
        hg_gateset_give(set, share);
        hg_gateset_free(set);
    }
}

/* ---- all at once ---- */

#define CROWD    12
#define REQUESTS 1500 /* of each client */

struct whim {
    struct hg_prng dice;
};

static void answer_some(struct fakestore *store)
{
    struct whim *whim = store->data;
    unsigned pending = fakestore_pending(store);
    for (uint64_t n = hg_prng_below(&whim->dice, 4); n > 0 && pending > 0; n--) {
        struct kept *kept = fakestore_nth(store, (unsigned)hg_prng_below(&whim->dice, pending));
        uint64_t throw = hg_prng_below(&whim->dice, 20);
        if (throw == 0)
            fakestore_fault(kept, HG_FAULT_TIMEOUT);
        else
            fakestore_obey(kept);
        pending = fakestore_pending(store);
    }
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
        if (store->stranded[kind] > 0 && hg_prng_below(&whim->dice, 4) == 0)
            fakestore_late(store, kind);
    if (pending > 0 || store->stranded[0] + store->stranded[1] > 0)
        hg_loop_again(&store->worker->loop);
}

static void on_open_random(struct stage *stage, struct fakestore *store)
{
    on_open(stage, store);
    struct whim *whim = calloc(1, sizeof *whim);
    whim->dice.state = (uint64_t)(uintptr_t)stage->ctx * 2 + store->worker->index;
    store->data = whim;
    store->strands = true;
    store->on_send = answer_some;
}

struct player {
    struct client client;
    uint32_t asked, answered;
};

static void play(struct player *player, struct hg_prng *dice)
{
    struct reply reply;
    client_read(&player->client, SIZE_MAX);
    while (client_take(&player->client, &reply)) {
        assert_int_equal(reply.opaque, player->answered);
        assert_true(reply.status == 0 || reply.status == HG_STATUS_BACKEND_TIMEOUT);
        player->answered++;
    }
    assert_false(player->client.ended);
    if (player->asked == REQUESTS || player->asked - player->answered > 8)
        return;
    uint8_t opcode = hg_prng_below(dice, 3) == 0 ? HG_OPCODE_DELETE : HG_OPCODE_GET;
    client_ask(&player->client, opcode, "k", player->asked++);
}

static void resize_somehow(struct stage *stage, struct hg_prng *dice)
{
    enum hg_gate_place place = (enum hg_gate_place)hg_prng_below(dice, HG_GATE_PLACES);
    gate_resize(stage, place, 1 + (int64_t)hg_prng_below(dice, 5));
}

static void stress(uint64_t seed)
{
    struct stage stage;
    struct player crowd[CROWD];
    struct hg_prng dice = {seed};
    stage_init(&stage, 2);
    stage.ctx = (void *)(uintptr_t)seed;
    stage.on_open = on_open_random;
    atomic_store(&stage_find(&stage, "default")->ticket_mode, HG_MODE_ENFORCE);
    for (enum hg_gate_place place = HG_GATE_INGRESS; place < HG_GATE_PLACES; place++) {
        atomic_store(&gate_holder(&stage, place)->queue_timeout_us, 3600000000);
        hg_ticket_init(&gate_holder(&stage, place)->ticket, 2);
    }
    stage_start(&stage);
    memset(crowd, 0, sizeof crowd);
    for (unsigned i = 0; i < CROWD; i++) {
        stage_connect(&stage, i % 2, &crowd[i].client);
        client_add_hello(&crowd[i].client, 0, gate_xerror);
        crowd[i].asked = 1;
        client_send(&crowd[i].client);
    }
    unsigned done = 0, resize_at = 50;
    uint64_t deadline_us = stage_deadline();
    while (done < CROWD) {
        unsigned moved = 0;
        done = 0;
        for (unsigned i = 0; i < CROWD; i++) {
            play(&crowd[i], &dice);
            done += crowd[i].answered == REQUESTS;
            moved += crowd[i].answered;
        }
        if (moved >= resize_at) { /* seldom, since it wakes who was forgotten */
            resize_somehow(&stage, &dice);
            resize_at = moved + 1 + (unsigned)hg_prng_below(&dice, 100);
        }
        if (hg_now_us() > deadline_us)
            fail_msg("seed %llu: a wake-up was lost: %u of %u clients are done, %u answers",
                     (unsigned long long)seed, done, CROWD, moved);
        patience_nap();
    }
    for (unsigned i = 0; i < CROWD; i++)
        client_close(&crowd[i].client);
    STAGE_UNTIL(&stage, stage_sessions(&stage) == 0);
    for (unsigned place = HG_GATE_READ; place < HG_GATE_PLACES; place++)
        STAGE_UNTIL(&stage, atomic_load(&gate_holder(&stage, place)->stranded) == 0);
    uint64_t waited = 0;
    for (enum hg_gate_place place = HG_GATE_INGRESS; place < HG_GATE_PLACES; place++)
        waited += gate_sum(&stage, place, "added");
    assert_true(waited > 100);
    gate_check(&stage);
    stage_close(&stage);
}

static void test_stress(void **state)
{
    (void)state;
    const char *text = getenv("HG_TEST_SEED");
    uint64_t first = text != NULL ? strtoull(text, NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + (text != NULL ? 1 : 5); seed++)
        stress(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_wakes_the_other),
        cmocka_unit_test(test_handed_on),
        cmocka_unit_test(test_late_answer_wakes_the_other),
        cmocka_unit_test(test_backlog_is_not_lost),
        cmocka_unit_test(test_stress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
