// t_pool - calls find a connection, wait for one, or hear why not
// SPDX-License-Identifier: BSD-3-Clause
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/prng.h"
#include "proto/opcode.h"

/* One fake server, one worker. */
struct scene {
    struct rig rig;
    struct fake fake;
    struct hg_ring_server server;
    struct hg_memcached_conf conf;
    struct hg_upstream_shared *shared;
    struct hg_store *store;
    struct hg_pool *pool;
    struct bench bench;
};

static void scene_init(struct scene *scene)
{
    memset(scene, 0, sizeof *scene);
    rig_init(&scene->rig);
    fake_open(&scene->fake, 0);
    struct fake *fake = &scene->fake;
    rig_conf(&scene->conf, &scene->server, &fake, 1);
    scene->bench = (struct bench){{&scene->rig}, {fake}};
    note_reset_order();
}

static void scene_start(struct scene *scene, uint32_t share)
{
    scene->shared = rig_shared(&scene->conf, 1);
    scene->store = rig_store(&scene->rig, scene->shared, 0, share);
    scene->pool = rig_pool(scene->store, 0);
    scene->pool->usual_us = 1000000; /* so that a slow machine is not taken for a stuck server */
}

static void scene_fini(struct scene *scene)
{
    if (scene->store != NULL)
        scene->store->ops->free(scene->store);
    hg_upstream_shared_free(scene->shared);
    fake_close(&scene->fake);
    rig_fini(&scene->rig);
}

static uint64_t stat(struct scene *scene, enum hg_upstream_stat stat)
{
    return rig_stat(scene->shared, 0, stat);
}

static enum hg_submit ask(struct scene *scene, struct note *note, const char *key)
{
    note_init(note, scene->store, HG_OP_GET, key);
    return note_submit(note, &scene->rig);
}

/* One connection that is up and idle. */
static void warm_up(struct scene *scene)
{
    struct note note;
    bool automatic = scene->fake.automatic;
    scene->fake.automatic = true;
    ask(scene, &note, "warm");
    BENCH_UNTIL(&scene->bench, note.done == 1);
    assert_string_equal(note.value, "v:warm");
    scene->fake.automatic = automatic;
    note_reset_order();
}

static void t_first_calls_wait_for_the_connection(void **state)
{
    (void)state;
    struct scene s;
    struct note notes[3];
    scene_init(&s);
    scene_start(&s, 4);
    s.fake.automatic = true;
    for (int i = 0; i < 3; i++)
        assert_int_equal(ask(&s, &notes[i], "k"), HG_SUBMIT_WAIT);
    assert_int_equal(stat(&s, HG_UPSTREAM_WAITING), 3);
    BENCH_UNTIL(&s.bench, notes[2].done == 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(notes[i].done, 1);
        assert_int_equal(notes[i].rooms, 1);
        assert_int_equal(notes[i].order, i + 1);
        assert_int_equal(notes[i].room_order, i + 1);
        assert_string_equal(notes[i].value, "v:k");
        assert_string_equal(notes[i].result.server, s.fake.address);
    }
    assert_int_equal(s.fake.accepted, 1);
    assert_int_equal(stat(&s, HG_UPSTREAM_WAITING), 0);
    assert_int_equal(stat(&s, HG_UPSTREAM_CONNECTIONS), 1);
    assert_int_equal(stat(&s, HG_UPSTREAM_REQUESTS), 3);
    assert_int_equal(stat(&s, HG_UPSTREAM_REPLIES), 3);
    scene_fini(&s);
}

static void t_depth_bounds_and_order_holds(void **state)
{
    (void)state;
    struct scene s;
    struct note notes[6];
    scene_init(&s);
    s.conf.pool_depth = 2;
    scene_start(&s, 1);
    warm_up(&s);
    size_t before = s.fake.count;
    for (int i = 0; i < 6; i++)
        assert_int_equal(ask(&s, &notes[i], (char[2]){(char)('a' + i), 0}),
                         i < 2 ? HG_SUBMIT_TAKEN : HG_SUBMIT_WAIT);
    for (size_t i = 0; i < 6; i++) {
        size_t want = before + (i + 2 < 6 ? i + 2 : 6);
        BENCH_UNTIL(&s.bench, s.fake.count == want);
        bench_for(&s.bench, 2000);
        assert_int_equal(s.fake.count, want); /* and no more */
        fake_obey(&s.fake, &s.fake.requests[before + i]);
        BENCH_UNTIL(&s.bench, notes[i].done == 1);
    }
    for (int i = 0; i < 6; i++)
        assert_int_equal(notes[i].order, i + 1);
    assert_int_equal(s.fake.accepted, 1);
    scene_fini(&s);
}

static void t_packs_and_opens_when_full(void **state)
{
    (void)state;
    struct scene s;
    struct note notes[8], more[4];
    scene_init(&s);
    s.conf.pool_depth = 4;
    scene_start(&s, 4);
    warm_up(&s);
    for (int i = 0; i < 4; i++)
        assert_int_equal(ask(&s, &notes[i], "a"), HG_SUBMIT_TAKEN);
    bench_for(&s.bench, 2000);
    assert_int_equal(s.fake.accepted, 1); /* not before it is needed */
    for (int i = 4; i < 8; i++)
        assert_int_equal(ask(&s, &notes[i], "b"), HG_SUBMIT_WAIT);
    BENCH_UNTIL(&s.bench, s.fake.count == 9);
    assert_int_equal(s.fake.accepted, 2);
    for (size_t i = 1; i < 9; i++)
        fake_obey(&s.fake, &s.fake.requests[i]);
    BENCH_UNTIL(&s.bench, notes[3].done == 1 && notes[7].done == 1);
    /* Both are empty: what follows is packed into one. */
    for (int i = 0; i < 4; i++)
        assert_int_equal(ask(&s, &more[i], "c"), HG_SUBMIT_TAKEN);
    BENCH_UNTIL(&s.bench, s.fake.count == 13);
    for (size_t i = 10; i < 13; i++)
        assert_int_equal(s.fake.requests[i].conn, s.fake.requests[9].conn);
    for (size_t i = 9; i < 13; i++)
        fake_obey(&s.fake, &s.fake.requests[i]);
    BENCH_UNTIL(&s.bench, more[3].done == 1);
    assert_int_equal(s.fake.accepted, 2);
    scene_fini(&s);
}

static void t_bytes_count_too(void **state)
{
    (void)state;
    struct scene s;
    struct note set, next;
    char value[3000];
    memset(value, 'x', sizeof value);
    scene_init(&s);
    s.conf.pool_max_bytes = 2048;
    scene_start(&s, 2);
    warm_up(&s);
    note_init(&set, s.store, HG_OP_SET, "set");
    set.call.value = hg_span(value, sizeof value);
    assert_int_equal(note_submit(&set, &s.rig), HG_SUBMIT_TAKEN);
    assert_int_equal(ask(&s, &next, "next"), HG_SUBMIT_WAIT);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "next") != NULL);
    assert_int_equal(s.fake.accepted, 2);
    fake_obey(&s.fake, fake_find(&s.fake, "next"));
    fake_obey(&s.fake, fake_find(&s.fake, "set"));
    BENCH_UNTIL(&s.bench, set.done == 1 && next.done == 1);
    scene_fini(&s);
}

/* A large value on its way: others take another connection; if there is none, they go behind it. */
static void large_in_transit(uint32_t share)
{
    struct scene s;
    struct note set, next;
    size_t len = 20000000;
    scene_init(&s);
    s.conf.pool_max_bytes = 1 << 30;
    scene_start(&s, share);
    warm_up(&s);
    for (int i = 0; i < FAKE_CONNS; i++)
        s.fake.conns[i].deaf = true;
    struct hg_blob *blob = hg_blob_borrow(&s.rig.blobs, len);
    memset(blob->data, 1, len);
    note_init(&set, s.store, HG_OP_SET, "set");
    set.call.blob = blob;
    set.call.value = hg_span(blob->data, len);
    assert_int_equal(note_submit(&set, &s.rig), HG_SUBMIT_TAKEN);
    assert_int_equal(ask(&s, &next, "next"), HG_SUBMIT_TAKEN);
    if (share > 1) {
        /* That call went behind, as nothing else was there; the next one does better. */
        BENCH_UNTIL(&s.bench, s.fake.accepted == 2);
        struct note third;
        s.fake.conns[1].deaf = false;
        BENCH_UNTIL(&s.bench, s.pool->up_count == 2);
        assert_int_equal(ask(&s, &third, "third"), HG_SUBMIT_TAKEN);
        BENCH_UNTIL(&s.bench, fake_find(&s.fake, "third") != NULL);
        fake_obey(&s.fake, fake_find(&s.fake, "third"));
        BENCH_UNTIL(&s.bench, third.done == 1);
    } else {
        bench_for(&s.bench, 5000);
        assert_int_equal(s.fake.accepted, 1);
    }
    s.fake.conns[0].deaf = false;
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "next") != NULL);
    assert_int_equal(fake_find(&s.fake, "set")->value_len, len);
    fake_obey(&s.fake, fake_find(&s.fake, "set"));
    fake_obey(&s.fake, fake_find(&s.fake, "next"));
    BENCH_UNTIL(&s.bench, next.done == 1);
    assert_int_equal(set.result.fault, HG_FAULT_NONE);
    hg_blob_unref(blob);
    scene_fini(&s);
}

static void t_large_values_hold_nobody_up(void **state)
{
    (void)state;
    large_in_transit(2);
    large_in_transit(1);
}

static void t_waiting_is_bounded(void **state)
{
    (void)state;
    struct scene s;
    struct note sent, waits, hurried, too_many, late;
    scene_init(&s);
    s.conf.pool_depth = 1;
    s.conf.pool_queue_max = 2;
    s.conf.times.queue_timeout_ms = 150;
    s.conf.times.backend_timeout_ms = 3000;
    scene_start(&s, 1);
    warm_up(&s);
    uint64_t start_us = s.rig.loop.now_us;
    assert_int_equal(ask(&s, &sent, "sent"), HG_SUBMIT_TAKEN);
    assert_int_equal(ask(&s, &waits, "waits"), HG_SUBMIT_WAIT);
    note_init(&hurried, s.store, HG_OP_GET, "hurried");
    hurried.call.deadline_us = s.rig.loop.now_us + 40000;
    assert_int_equal(note_submit(&hurried, &s.rig), HG_SUBMIT_WAIT);
    assert_int_equal(ask(&s, &too_many, "too many"), HG_SUBMIT_TAKEN);
    assert_int_equal(too_many.done, 1);
    assert_int_equal(too_many.result.fault, HG_FAULT_QUEUE_FULL);
    note_init(&late, s.store, HG_OP_GET, "late");
    late.call.deadline_us = s.rig.loop.now_us;
    BENCH_UNTIL(&s.bench, hurried.done == 1);
    assert_int_equal(hurried.result.fault, HG_FAULT_QUEUE_TIMEOUT);
    assert_true(hg_now_us() - start_us >= 40000);
    assert_int_equal(note_submit(&late, &s.rig), HG_SUBMIT_TAKEN);
    assert_int_equal(late.result.fault, HG_FAULT_QUEUE_TIMEOUT);
    BENCH_UNTIL(&s.bench, waits.done == 1);
    assert_int_equal(waits.result.fault, HG_FAULT_QUEUE_TIMEOUT);
    assert_true(hg_now_us() - start_us >= 150000);
    assert_true(hurried.order < waits.order);
    assert_int_equal(sent.done, 0);
    assert_int_equal(hurried.rooms + waits.rooms, 0);
    assert_int_equal(stat(&s, HG_UPSTREAM_QUEUE_TIMEOUTS), 3);
    assert_int_equal(stat(&s, HG_UPSTREAM_QUEUE_FULL), 1);
    scene_fini(&s);
    assert_int_equal(sent.done, 1);
}

static void t_no_more_links_to_a_stuck_server(void **state)
{
    (void)state;
    struct scene s;
    struct note first, second, third;
    scene_init(&s);
    s.conf.pool_depth = 1;
    s.conf.times.backend_timeout_ms = 3000;
    s.conf.times.queue_timeout_ms = 3000;
    scene_start(&s, 8);
    warm_up(&s);
    assert_int_equal(ask(&s, &first, "first"), HG_SUBMIT_TAKEN);
    s.pool->usual_us = 1000;
    bench_for(&s.bench, 60000); /* well over 20 ms, and ten times a usual answer */
    assert_int_equal(ask(&s, &second, "second"), HG_SUBMIT_WAIT);
    bench_for(&s.bench, 60000);
    assert_int_equal(s.fake.accepted, 1);
    fake_obey(&s.fake, fake_find(&s.fake, "first"));
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "second") != NULL);
    assert_int_equal(ask(&s, &third, "third"), HG_SUBMIT_WAIT);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "third") != NULL);
    assert_int_equal(s.fake.accepted, 2);
    fake_obey(&s.fake, fake_find(&s.fake, "second"));
    fake_obey(&s.fake, fake_find(&s.fake, "third"));
    BENCH_UNTIL(&s.bench, second.done == 1 && third.done == 1);
    scene_fini(&s);
}

/* Two connections, A full and B with room; what must follow a call on A waits for A. */
static void t_after_stays_on_its_connection(void **state)
{
    (void)state;
    struct scene s;
    struct note a[3], b, follower, waiter, other, touch;
    scene_init(&s);
    s.conf.pool_depth = 3;
    s.conf.times.backend_timeout_ms = 3000;
    s.conf.times.queue_timeout_ms = 3000;
    scene_start(&s, 2);
    warm_up(&s);
    ask(&s, &a[0], "a0");
    ask(&s, &a[1], "a1");
    ask(&s, &a[2], "a2");
    assert_int_equal(ask(&s, &b, "b"), HG_SUBMIT_WAIT);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "b") != NULL);
    int conn_a = fake_find(&s.fake, "a1")->conn, conn_b = fake_find(&s.fake, "b")->conn;
    assert_int_not_equal(conn_a, conn_b);

    /* A is full, B is not: followers go to A all the same, up to twice its depth. */
    struct note extra[3];
    for (int i = 0; i < 3; i++) {
        note_init(&extra[i], s.store, HG_OP_GET, i == 0 ? "x0" : i == 1 ? "x1" : "x2");
        extra[i].call.after = &a[1].call;
        assert_int_equal(note_submit(&extra[i], &s.rig), HG_SUBMIT_TAKEN);
    }
    /* Then they wait, and others pass by. */
    note_init(&waiter, s.store, HG_OP_GET, "a1-next");
    waiter.call.after = &a[1].call;
    assert_int_equal(note_submit(&waiter, &s.rig), HG_SUBMIT_WAIT);
    assert_int_equal(ask(&s, &other, "other"), HG_SUBMIT_TAKEN);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "other") != NULL);
    assert_int_equal(fake_find(&s.fake, "other")->conn, conn_b);
    bench_for(&s.bench, 5000);
    assert_int_equal(waiter.rooms, 0);
    fake_obey(&s.fake, fake_find(&s.fake, "a0"));
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "a1-next") != NULL);
    assert_int_equal(waiter.rooms, 1);
    assert_int_equal(fake_find(&s.fake, "a1-next")->conn, conn_a);
    /* Nobody else goes to A before it is below its depth. */
    struct note third, fourth;
    assert_int_equal(ask(&s, &third, "third"), HG_SUBMIT_TAKEN);
    assert_int_equal(ask(&s, &fourth, "fourth"), HG_SUBMIT_WAIT);
    static const char *const left[] = {"a1", "a2", "x0"};
    for (int i = 0; i < 3; i++) {
        fake_obey(&s.fake, fake_find(&s.fake, left[i]));
        bench_for(&s.bench, 15000); /* a tick, too */
        assert_int_equal(fourth.rooms, 0);
    }
    fake_obey(&s.fake, fake_find(&s.fake, "x1"));
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "fourth") != NULL);
    assert_int_equal(fake_find(&s.fake, "fourth")->conn, conn_a);
    fake_obey(&s.fake, fake_find(&s.fake, "x2"));
    BENCH_UNTIL(&s.bench, extra[2].done == 1);

    /* B was used last, both have room: the follower goes to A. */
    fake_obey(&s.fake, fake_find(&s.fake, "b"));
    BENCH_UNTIL(&s.bench, b.done == 1);
    note_init(&touch, s.store, HG_OP_GET, "touch");
    touch.call.after = &other.call;
    assert_int_equal(note_submit(&touch, &s.rig), HG_SUBMIT_TAKEN);
    note_init(&follower, s.store, HG_OP_GET, "follower");
    follower.call.after = &waiter.call;
    assert_int_equal(note_submit(&follower, &s.rig), HG_SUBMIT_TAKEN);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "follower") != NULL);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "touch") != NULL);
    assert_int_equal(fake_find(&s.fake, "touch")->conn, conn_b);
    assert_int_equal(fake_find(&s.fake, "follower")->conn, conn_a);
    scene_fini(&s);
}

static void t_woken_who_does_not_come_holds_nobody_up(void **state)
{
    (void)state;
    struct scene s;
    struct note sent, stays[3], comes;
    scene_init(&s);
    s.conf.pool_depth = 1;
    scene_start(&s, 1);
    warm_up(&s);
    ask(&s, &sent, "sent");
    for (int i = 0; i < 3; i++) {
        note_init(&stays[i], s.store, HG_OP_GET, "stays");
        stays[i].stay = true;
        assert_int_equal(note_submit(&stays[i], &s.rig), HG_SUBMIT_WAIT);
    }
    assert_int_equal(ask(&s, &comes, "comes"), HG_SUBMIT_WAIT);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "sent") != NULL);
    fake_obey(&s.fake, fake_find(&s.fake, "sent"));
    s.fake.automatic = true;
    BENCH_UNTIL(&s.bench, stays[0].rooms == 1);
    assert_int_equal(stays[1].rooms, 0); /* one slot, one wake-up a turn */
    BENCH_UNTIL(&s.bench, comes.done == 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(stays[i].rooms, 1);
    scene_fini(&s);
}

static struct note newcomer;
static struct rig *newcomer_rig;
static enum hg_submit newcomer_got;

static void bring_newcomer(struct hg_call *call, const struct hg_result *result)
{
    (void)call;
    (void)result;
    newcomer_got = note_submit(&newcomer, newcomer_rig);
}

/* A slot gets free, and before the end of the turn somebody new asks: those that wait go first. */
static void t_newcomers_do_not_pass(void **state)
{
    (void)state;
    struct scene s;
    struct note sent, waits;
    scene_init(&s);
    s.conf.pool_depth = 1;
    scene_start(&s, 1);
    warm_up(&s);
    size_t before = s.fake.count;
    note_init(&newcomer, s.store, HG_OP_GET, "newcomer");
    newcomer_rig = &s.rig;
    newcomer_got = HG_SUBMIT_TAKEN;
    note_init(&sent, s.store, HG_OP_GET, "sent");
    sent.call.on_done = bring_newcomer;
    note_submit(&sent, &s.rig);
    assert_int_equal(ask(&s, &waits, "waits"), HG_SUBMIT_WAIT);
    s.fake.automatic = true;
    BENCH_UNTIL(&s.bench, newcomer.done == 1);
    assert_int_equal(newcomer_got, HG_SUBMIT_WAIT);
    assert_int_equal(waits.done, 1);
    assert_string_equal(s.fake.requests[before + 1].key, "waits");
    assert_string_equal(s.fake.requests[before + 2].key, "newcomer");
    scene_fini(&s);
}

static void t_cancel(void **state)
{
    (void)state;
    struct scene s;
    struct note pending, waiting, last;
    scene_init(&s);
    s.conf.pool_depth = 1;
    scene_start(&s, 1);
    warm_up(&s);
    ask(&s, &pending, "pending");
    ask(&s, &waiting, "waiting");
    ask(&s, &last, "last");
    s.store->ops->cancel(s.store, &waiting.call);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "pending") != NULL);
    s.store->ops->cancel(s.store, &pending.call);
    assert_false(s.store->ops->drained(s.store)); /* its reply is still to come */
    fake_obey(&s.fake, fake_find(&s.fake, "pending"));
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "last") != NULL);
    fake_obey(&s.fake, fake_find(&s.fake, "last"));
    BENCH_UNTIL(&s.bench, last.done == 1);
    assert_string_equal(last.value, "v:last");
    assert_int_equal(pending.done + waiting.done + waiting.rooms, 0);
    assert_int_equal(stat(&s, HG_UPSTREAM_LATE_REPLIES), 1);
    assert_int_equal(stat(&s, HG_UPSTREAM_WAITING), 0);
    assert_true(s.store->ops->drained(s.store));
    scene_fini(&s);
}

/* Calls come and go, some are cancelled, the server answers when it likes: each is answered once,
   nobody waits for ever. */
static void t_no_wakeup_is_lost(void **state)
{
    (void)state;
    enum { CALLS = 3000 };
    struct scene s;
    struct hg_prng prng = {42};
    struct note *notes = calloc(CALLS, sizeof *notes);
    bool *cancelled = calloc(CALLS, sizeof *cancelled);
    scene_init(&s);
    s.conf.pool_depth = 3;
    s.conf.times.queue_timeout_ms = 60000;
    s.conf.times.backend_timeout_ms = 60000;
    scene_start(&s, 2);
    size_t answered = 0;
    int made = 0, left = CALLS;
    uint64_t end_us = bench_deadline() + 20000000;
    while (left > 0) {
        assert_true(hg_now_us() < end_us);
        for (uint64_t n = hg_prng_below(&prng, 12); n > 0 && made < CALLS; n--) {
            note_init(&notes[made], s.store, HG_OP_GET, "k");
            if (made > 10 && hg_prng_below(&prng, 3) == 0)
                notes[made].call.after = &notes[made - 1 - (int)hg_prng_below(&prng, 10)].call;
            note_submit(&notes[made++], &s.rig);
        }
        bench_turn(&s.bench);
        while (answered < s.fake.count && hg_prng_below(&prng, 4) > 0)
            fake_obey(&s.fake, &s.fake.requests[answered++]);
        int victim = (int)hg_prng_below(&prng, (uint64_t)made);
        if (notes[victim].done == 0 && !cancelled[victim]) {
            s.store->ops->cancel(s.store, &notes[victim].call);
            cancelled[victim] = true;
        }
        left = CALLS - made;
        for (int i = 0; i < made; i++)
            left += notes[i].done == 0 && !cancelled[i];
    }
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(notes[i].done, cancelled[i] ? 0 : 1);
        if (!cancelled[i])
            assert_string_equal(notes[i].value, "v:k");
    }
    assert_in_range(s.fake.accepted, 1, 2);
    scene_fini(&s);
    free(cancelled);
    free(notes);
}

static void t_collects_idle_ones_but_one(void **state)
{
    (void)state;
    struct scene s;
    struct note notes[3];
    scene_init(&s);
    s.conf.pool_depth = 1;
    s.conf.pool_idle_timeout_s = 1;
    scene_start(&s, 3);
    for (int i = 0; i < 3; i++)
        ask(&s, &notes[i], "k");
    BENCH_UNTIL(&s.bench, s.fake.count == 3);
    assert_int_equal(fake_live(&s.fake), 3);
    s.fake.automatic = true;
    for (size_t i = 0; i < 3; i++)
        fake_obey(&s.fake, &s.fake.requests[i]);
    BENCH_UNTIL(&s.bench, fake_live(&s.fake) == 1);
    bench_for(&s.bench, 1200000);
    assert_int_equal(fake_live(&s.fake), 1);
    assert_int_equal(stat(&s, HG_UPSTREAM_CONNECTIONS), 1);
    warm_up(&s);
    assert_int_equal(s.fake.accepted, 3);
    scene_fini(&s);
}

static void t_drains(void **state)
{
    (void)state;
    struct scene s;
    struct note busy, waiting, fits, refused;
    scene_init(&s);
    s.conf.pool_depth = 1;
    scene_start(&s, 1);
    warm_up(&s);
    ask(&s, &busy, "busy");
    ask(&s, &waiting, "waiting");
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "busy") != NULL);
    s.store->ops->drain(s.store);
    assert_false(s.store->ops->drained(s.store));
    fake_obey(&s.fake, fake_find(&s.fake, "busy"));
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "waiting") != NULL);
    assert_int_equal(ask(&s, &fits, "fits"), HG_SUBMIT_WAIT);
    fake_obey(&s.fake, fake_find(&s.fake, "waiting"));
    s.fake.automatic = true;
    BENCH_UNTIL(&s.bench, s.store->ops->drained(s.store) && fake_live(&s.fake) == 0);
    assert_int_equal(busy.result.fault + waiting.result.fault + fits.result.fault, 0);
    assert_int_equal(busy.done + waiting.done + fits.done, 3);
    assert_int_equal(ask(&s, &refused, "refused"), HG_SUBMIT_TAKEN);
    assert_int_equal(refused.result.fault, HG_FAULT_DOWN);
    scene_fini(&s);
}

static void t_free_answers_everybody(void **state)
{
    (void)state;
    struct scene s;
    struct note notes[4];
    scene_init(&s);
    s.conf.pool_depth = 2;
    scene_start(&s, 1);
    warm_up(&s);
    for (int i = 0; i < 4; i++)
        ask(&s, &notes[i], "k");
    bench_turn(&s.bench);
    s.store->ops->free(s.store);
    s.store = NULL;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(notes[i].done, 1);
        assert_int_equal(notes[i].rooms, 0);
        assert_int_equal(notes[i].result.fault, HG_FAULT_LOST);
    }
    scene_fini(&s);
}

static void t_unix_socket(void **state)
{
    (void)state;
    struct scene s;
    struct note note;
    char path[64];
    snprintf(path, sizeof path, "/tmp/hg-t_pool-%d.sock", (int)getpid());
    memset(&s, 0, sizeof s);
    rig_init(&s.rig);
    fake_open_unix(&s.fake, path);
    s.fake.automatic = true;
    struct fake *fake = &s.fake;
    rig_conf(&s.conf, &s.server, &fake, 1);
    s.bench = (struct bench){{&s.rig}, {fake}};
    scene_start(&s, 1);
    assert_int_equal(ask(&s, &note, "k"), HG_SUBMIT_TAKEN); /* connects at once */
    BENCH_UNTIL(&s.bench, note.done == 1);
    assert_string_equal(note.value, "v:k");
    assert_string_equal(s.store->ops->where(s.store, HG_SPAN_LIT("k")), s.fake.address);
    unlink(path);
    scene_fini(&s);
}

/* "localhost" is ::1 and 127.0.0.1; only the second listens. */
static void t_names(void **state)
{
    (void)state;
    struct scene s;
    char address[64], why[HG_RING_WHY_BYTES];
    scene_init(&s);
    snprintf(address, sizeof address, "localhost:%u", s.fake.port);
    s.server.address = address;
    s.fake.automatic = true;
    assert_null(hg_upstream_shared_new(&s.conf, NULL, 1, why));
    struct hg_resolver *resolver = hg_resolver_new();
    s.shared = hg_upstream_shared_new(&s.conf, resolver, 1, why);
    s.store = rig_store(&s.rig, s.shared, 0, 2);
    s.pool = rig_pool(s.store, 0);
    warm_up(&s);
    assert_string_equal(s.store->ops->where(s.store, HG_SPAN_LIT("k")), address);
    struct note note;
    fake_hang_up(&s.fake, 0);
    BENCH_UNTIL(&s.bench, stat(&s, HG_UPSTREAM_CONNECTIONS) == 0);
    ask(&s, &note, "again");
    s.store->ops->cancel(s.store, &note.call);
    s.store->ops->free(s.store); /* perhaps while the name is looked up */
    s.store = NULL;
    hg_upstream_shared_free(s.shared);
    s.shared = NULL;
    hg_resolver_free(resolver);
    scene_fini(&s);
}

static struct note late_note;
static struct rig *late_rig;

static void submit_late(struct hg_hook *hook)
{
    hg_loop_unhook(hook);
    assert_int_equal(note_submit(&late_note, late_rig), HG_SUBMIT_TAKEN);
}

/* A call that comes after the backends' stage does not wait for an event to be sent. */
static void t_submitted_late_in_the_turn(void **state)
{
    (void)state;
    struct scene s;
    struct hg_hook hook;
    scene_init(&s);
    scene_start(&s, 1);
    warm_up(&s);
    note_init(&late_note, s.store, HG_OP_GET, "late");
    late_rig = &s.rig;
    hg_loop_hook(&s.rig.loop, HG_STAGE_CLIENTS, &hook, submit_late);
    hg_loop_turn(&s.rig.loop, false);
    assert_true(s.rig.loop.again);
    hg_loop_turn(&s.rig.loop, true); /* does not wait */
    fake_pump(&s.fake);
    assert_non_null(fake_find(&s.fake, "late"));
    fake_obey(&s.fake, fake_find(&s.fake, "late"));
    BENCH_UNTIL(&s.bench, late_note.done == 1);
    scene_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_first_calls_wait_for_the_connection),
        cmocka_unit_test(t_depth_bounds_and_order_holds),
        cmocka_unit_test(t_packs_and_opens_when_full),
        cmocka_unit_test(t_bytes_count_too),
        cmocka_unit_test(t_large_values_hold_nobody_up),
        cmocka_unit_test(t_waiting_is_bounded),
        cmocka_unit_test(t_no_more_links_to_a_stuck_server),
        cmocka_unit_test(t_after_stays_on_its_connection),
        cmocka_unit_test(t_woken_who_does_not_come_holds_nobody_up),
        cmocka_unit_test(t_newcomers_do_not_pass),
        cmocka_unit_test(t_cancel),
        cmocka_unit_test(t_no_wakeup_is_lost),
        cmocka_unit_test(t_collects_idle_ones_but_one),
        cmocka_unit_test(t_drains),
        cmocka_unit_test(t_free_answers_everybody),
        cmocka_unit_test(t_unix_socket),
        cmocka_unit_test(t_names),
        cmocka_unit_test(t_submitted_late_in_the_turn),
    };
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
