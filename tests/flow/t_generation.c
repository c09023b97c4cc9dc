// t_generation - an upstream's stores are exchanged, and tenants move, under requests in every
// state SPDX-License-Identifier: BSD-3-Clause
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "front/gate.h"
#include "front/instance.h"
#include "scene.h"

static void renew(struct stage *stage)
{
    stage_renew(stage, 0);
    stage_publish(stage);
    stage_run(stage);
}

/* The store that is open now, on a worker. */
static struct fakestore *now_open(struct stage *stage, unsigned worker)
{
    struct fakestore *store = stage->upstreams[0].stores[worker];
    assert_non_null(store);
    return store;
}

static void expect_all_freed_but(struct stage *stage, unsigned open)
{
    stage_run(stage);
    assert_int_equal(stage->upstreams[0].opened - stage->upstreams[0].freed, open);
    assert_int_equal(stage->upstreams[0].generations, 1);
}

/* A record of that name takes the bucket's place. */
static struct hg_bucket *move(struct stage *stage, const char *name)
{
    struct hg_bucket *old = stage_find(stage, name);
    unsigned at = 0;
    while (stage->buckets[at] != old)
        at++;
    atomic_store(&old->moved, true);
    for (stage->bucket_count--; at < stage->bucket_count; at++)
        stage->buckets[at] = stage->buckets[at + 1];
    struct hg_bucket *now = stage_bucket(stage, name, 0, HG_UNITS_UNLIMITED);
    atomic_store(&now->ticket_mode, atomic_load(&old->ticket_mode));
    free(now->prefix);
    now->prefix = strdup("new:");
    now->prefix_len = 4;
    stage_publish(stage);
    hg_bucket_unref(old);
    stage_run(stage);
    return now;
}

/* ---- generations ---- */

/* What is under way ends on the old store, others go to the new one at once, and the same client's
   next request waits until nothing of his is on the old one: no order is changed. */
static void test_in_flight(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    scene_start(&s);
    stage_connect(&s.stage, 0, &other);
    client_ask(&s.client, HG_OPCODE_DELETE, "k", 1);
    stage_run(&s.stage);
    struct fakestore *old = s.store;
    assert_int_equal(fakestore_pending(old), 1);
    renew(&s.stage);
    assert_int_equal(s.stage.upstreams[0].freed, 0);
    client_add_op(&s.client, HG_OPCODE_GET, "k", 2);
    client_add_op(&s.client, HG_OPCODE_GET, "l", 3);
    scene_send(&s);
    assert_int_equal(s.stage.upstreams[0].opened, 1); /* nothing was looked at */
    client_ask(&other, HG_OPCODE_GET, "k", 1);
    stage_run(&s.stage);
    struct fakestore *now = now_open(&s.stage, 0);
    assert_ptr_not_equal(now, old);
    assert_int_equal(fakestore_pending(now), 1);
    fakestore_obey_all(old);
    scene_expect(&s, HG_OPCODE_DELETE, 0, 1);
    stage_run(&s.stage);
    assert_int_equal(fakestore_pending(now), 3);
    fakestore_obey_all(now);
    scene_expect(&s, HG_OPCODE_GET, 0, 2);
    scene_expect(&s, HG_OPCODE_GET, 0, 3);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, 0, 1);
    expect_all_freed_but(&s.stage, 1);
    client_close(&other);
    scene_close(&s);
}

/* Without anything under way the exchange is not noticed. */
static void test_idle(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    for (uint32_t n = 1; n <= 5; n++) {
        client_ask(&s.client, HG_OPCODE_GET, "k", n);
        stage_run(&s.stage);
        fakestore_obey_all(now_open(&s.stage, 0));
        scene_expect(&s, HG_OPCODE_GET, 0, n);
        renew(&s.stage);
        expect_all_freed_but(&s.stage, 0);
    }
    scene_close(&s);
}

/* Who waits for room in the old store goes to the new one, at once if he follows nobody. */
static void test_waiting_for_room(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    scene_start(&s);
    stage_connect(&s.stage, 0, &other);
    s.store->room = 1;
    struct fakestore *old = s.store;
    client_ask(&s.client, HG_OPCODE_GET, "a", 1);
    client_ask(&other, HG_OPCODE_GET, "b", 1);
    stage_run(&s.stage);
    client_ask(&s.client, HG_OPCODE_GET, "c", 2);
    stage_run(&s.stage);
    assert_int_equal(fakestore_waiting(old), 2);
    renew(&s.stage);
    assert_int_equal(fakestore_waiting(old), 0);
    struct fakestore *now = now_open(&s.stage, 0);
    assert_int_equal(fakestore_pending(now), 1); /* b; c comes behind a */
    fakestore_obey_all(old);
    stage_run(&s.stage);
    fakestore_obey_all(now);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    scene_expect(&s, HG_OPCODE_GET, 0, 2);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, 0, 1);
    expect_all_freed_but(&s.stage, 1);
    client_close(&other);
    scene_close(&s);
}

/* Its client goes while it is on the old store. */
static void test_client_gone(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    client_ask(&s.client, HG_OPCODE_GET, "a", 1);
    stage_run(&s.stage);
    renew(&s.stage);
    hg_session_close(stage_session(&s.stage));
    assert_int_equal(s.store->cancels, 1);
    stage_run(&s.stage);
    client_close(&s.client);
    stage_advance(HG_WORKER_TIMER_US);
    expect_all_freed_but(&s.stage, 0);
    stage_connect(&s.stage, 0, &s.client);
    scene_close(&s);
}

/* One exchange after the other, each with something under way. */
static void test_many(void **state)
{
    (void)state;
    enum { MANY = 6 };
    struct scene s;
    struct client clients[MANY];
    struct fakestore *stores[MANY];
    scene_start(&s);
    for (unsigned i = 0; i < MANY; i++) {
        stage_connect(&s.stage, 0, &clients[i]);
        client_ask(&clients[i], HG_OPCODE_GET, "k", 1);
        stage_run(&s.stage);
        stores[i] = now_open(&s.stage, 0);
        renew(&s.stage);
    }
    assert_int_equal(s.stage.upstreams[0].generations, MANY + 1);
    assert_int_equal(s.stage.upstreams[0].freed, 0);
    for (unsigned i = MANY; i-- > 0;) {
        fakestore_obey_all(stores[i]);
        stage_expect(&s.stage, &clients[i], HG_OPCODE_GET, 0, 1);
        stage_run(&s.stage);
        assert_int_equal(s.stage.upstreams[0].freed, MANY - i);
        client_close(&clients[i]);
    }
    expect_all_freed_but(&s.stage, 0);
    scene_close(&s);
}

/* Two workers, each with a request under way in its store. */
static void ask_on_both(struct stage *stage, struct client clients[2], struct fakestore *stores[2])
{
    stage_init(stage, 2);
    stage_open(stage);
    for (unsigned w = 0; w < 2; w++) {
        stage_connect(stage, w, &clients[w]);
        client_ask(&clients[w], HG_OPCODE_GET, "k", 1);
    }
    stage_run(stage);
    for (unsigned w = 0; w < 2; w++)
        stores[w] = now_open(stage, w);
}

/* An instance may be asked by another worker's of its generation: it stays until all are done. */
static void test_stays_for_the_others(void **state)
{
    (void)state;
    struct stage stage;
    struct client clients[2];
    struct fakestore *old[2];
    ask_on_both(&stage, clients, old);
    renew(&stage);
    fakestore_obey_all(old[0]);
    stage_expect(&stage, &clients[0], HG_OPCODE_GET, 0, 1);
    stage_run(&stage);
    assert_int_equal(stage.upstreams[0].freed, 0);
    fakestore_obey_all(old[1]);
    stage_expect(&stage, &clients[1], HG_OPCODE_GET, 0, 1);
    stage_advance(HG_WORKER_TIMER_US);
    STAGE_UNTIL(&stage, stage.upstreams[0].freed == 2);
    expect_all_freed_but(&stage, 0);
    for (unsigned w = 0; w < 2; w++)
        client_close(&clients[w]);
    stage_close(&stage);
}

/* Another worker summons an instance of a generation: of the one in force it is the current one, of
   an old one that is in use an old one, of one that nobody uses none. */
static void test_summons(void **state)
{
    (void)state;
    struct stage stage;
    struct client client;
    stage_init(&stage, 2);
    stage_open(&stage);
    stage_connect(&stage, 0, &client);
    client_ask(&client, HG_OPCODE_GET, "k", 1);
    stage_run(&stage);
    struct fakestore *old = now_open(&stage, 0);
    struct hg_generation *generation = hg_generation_ref(stage.upstreams[0].generation);
    renew(&stage);
    for (unsigned n = 0; n < 2; n++) {
        assert_int_equal(hg_worker_give_generation(&stage.workers[1], generation), 0);
        stage_run(&stage);
    }
    assert_int_equal(stage.upstreams[0].opened, 2);
    assert_null(stage.workers[1].instances[0]);
    assert_false(hg_list_empty(&stage.workers[1].old_instances));
    fakestore_obey_all(old);
    stage_expect(&stage, &client, HG_OPCODE_GET, 0, 1);
    stage_advance(HG_WORKER_TIMER_US);
    STAGE_UNTIL(&stage, stage.upstreams[0].freed == 2);
    assert_int_equal(hg_worker_give_generation(&stage.workers[1], generation), 0);
    stage_run(&stage);
    assert_int_equal(stage.upstreams[0].opened, 2);
    hg_generation_unref(generation);
    generation = stage.upstreams[0].generation;
    assert_int_equal(hg_worker_give_generation(&stage.workers[1], generation), 0);
    stage_run(&stage);
    assert_non_null(stage.workers[1].instances[0]);
    client_close(&client);
    stage_close(&stage);
}

/* Another worker knows of the new generation first, and summons: when this worker hears of it, too,
   that instance is its current one. Two of one generation would both count as this worker's. */
static void test_summons_of_what_is_not_known_yet(void **state)
{
    (void)state;
    struct stage stage;
    struct client clients[2];
    struct fakestore *old[2];
    ask_on_both(&stage, clients, old);
    stage_renew(&stage, 0);
    stage_list(&stage);
    assert_int_equal(hg_worker_give_directory(&stage.workers[0], stage.directory), 0);
    fakestore_obey_all(old[0]);
    stage_expect(&stage, &clients[0], HG_OPCODE_GET, 0, 1);
    client_ask(&clients[0], HG_OPCODE_GET, "k", 2);
    stage_run(&stage);
    assert_int_equal(stage.upstreams[0].opened, 3);
    struct hg_generation *generation = stage.upstreams[0].generation;
    assert_int_equal(hg_worker_give_generation(&stage.workers[1], generation), 0);
    stage_run(&stage);
    assert_int_equal(stage.upstreams[0].opened, 4);
    struct hg_instance *early =
        HG_CONTAINER_OF(hg_list_first(&stage.workers[1].old_instances), struct hg_instance, node);
    assert_ptr_equal(early->generation, generation);
    assert_ptr_equal(stage.workers[1].instances[0]->store, &old[1]->store);
    assert_int_equal(hg_worker_give_directory(&stage.workers[1], stage.directory), 0);
    stage_run(&stage);
    fakestore_obey_all(old[1]);
    stage_expect(&stage, &clients[1], HG_OPCODE_GET, 0, 1);
    client_ask(&clients[1], HG_OPCODE_GET, "k", 2);
    stage_run(&stage);
    assert_int_equal(stage.upstreams[0].opened, 4);
    assert_ptr_equal(stage.workers[1].instances[0], early);
    for (unsigned w = 0; w < 2; w++) {
        fakestore_obey_all(now_open(&stage, w));
        stage_expect(&stage, &clients[w], HG_OPCODE_GET, 0, 2);
    }
    stage_advance(HG_WORKER_TIMER_US);
    STAGE_UNTIL(&stage, stage.upstreams[0].freed == 2);
    assert_true(hg_list_empty(&stage.workers[1].old_instances));
    for (unsigned w = 0; w < 2; w++)
        client_close(&clients[w]);
    stage_close(&stage);
}

/* ---- tenants that move ---- */

static void test_moved_in_flight(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    client_ask(&s.client, HG_OPCODE_GET, "a", 1);
    stage_run(&s.stage);
    struct hg_bucket *now = move(&s.stage, "default");
    client_ask(&s.client, HG_OPCODE_GET, "b", 2);
    stage_run(&s.stage);
    assert_string_equal(fakestore_find(s.store, "a")->prefix, "");
    assert_string_equal(fakestore_find(s.store, "b")->prefix, "new:");
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    scene_expect(&s, HG_OPCODE_GET, 0, 2);
    assert_int_equal(atomic_load(&now->connections), 1);
    assert_int_equal(s.stage.retired, 1);
    scene_close(&s);
}

/* A request that waits for room begins again in the new record. */
static void test_moved_waiting_for_room(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    s.store->room = 1;
    client_add_op(&s.client, HG_OPCODE_GET, "a", 1);
    client_add_op(&s.client, HG_OPCODE_GET, "b", 2);
    client_add_op(&s.client, HG_OPCODE_GET, "c", 3);
    scene_send(&s);
    assert_int_equal(fakestore_waiting(s.store), 1);
    s.store->room = 5;
    (void)move(&s.stage, "default");
    assert_int_equal(fakestore_waiting(s.store), 0);
    assert_string_equal(fakestore_find(s.store, "b")->prefix, "new:");
    fakestore_obey_all(s.store);
    for (uint32_t n = 1; n <= 3; n++)
        scene_expect(&s, HG_OPCODE_GET, 0, n);
    assert_int_equal(s.stage.retired, 1);
    scene_close(&s);
}

/* One that is held for credits is admitted anew, by the new record's. */
static void test_moved_held(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    stage_bucket(&s.stage, "tight", 0, 1);
    s.stage.anonymous_bucket = "tight";
    scene_open(&s);
    client_add_op(&s.client, HG_OPCODE_DELETE, "a", 1);
    client_add_op(&s.client, HG_OPCODE_DELETE, "b", 2);
    client_add_op(&s.client, HG_OPCODE_DELETE, "c", 3);
    scene_send(&s);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_DELETE, 0, 1);
    assert_int_equal(hg_counter_get(&s.stage.workers[0].held_now), 1);
    (void)move(&s.stage, "tight");
    assert_int_equal(hg_counter_get(&s.stage.workers[0].held_now), 0);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_DELETE, 0, 2);
    stage_run(&s.stage);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_DELETE, 0, 3);
    assert_int_equal(s.stage.retired, 1);
    scene_close(&s);
}

/* One in line for a ticket leaves it, and the ticket that it would have had is there for others. */
static void test_moved_in_line(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    scene_start(&s);
    stage_connect(&s.stage, 0, &other);
    struct hg_gateshare *share = hg_gateset_at(s.stage.upstreams[0].upstream.gates, 0);
    atomic_store(&stage_find(&s.stage, "default")->ticket_mode, HG_MODE_ENFORCE);
    atomic_store(&share->holders[HG_TICKET_READ].max_waiting, 10);
    atomic_store(&share->holders[HG_TICKET_READ].queue_timeout_us, 3600000000u);
    hg_gate_poke(&s.stage.front, hg_ticket_resize(&share->holders[HG_TICKET_READ].ticket, 1));
    client_ask(&s.client, HG_OPCODE_GET, "a", 1);
    stage_run(&s.stage);
    client_ask(&other, HG_OPCODE_GET, "b", 1);
    stage_run(&s.stage);
    assert_int_equal(atomic_load(&share->holders[HG_TICKET_READ].waiting), 1);
    (void)move(&s.stage, "default");
    assert_int_equal(atomic_load(&share->holders[HG_TICKET_READ].waiting), 1);
    assert_int_equal(fakestore_pending(s.store), 1);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    stage_run(&s.stage);
    assert_string_equal(fakestore_first(s.store)->prefix, "new:");
    fakestore_obey_all(s.store);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, 0, 1);
    assert_int_equal(s.stage.retired, 1);
    client_close(&other);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_flight),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_waiting_for_room),
        cmocka_unit_test(test_client_gone),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_stays_for_the_others),
        cmocka_unit_test(test_summons),
        cmocka_unit_test(test_summons_of_what_is_not_known_yet),
        cmocka_unit_test(test_moved_in_flight),
        cmocka_unit_test(test_moved_waiting_for_room),
        cmocka_unit_test(test_moved_held),
        cmocka_unit_test(test_moved_in_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
