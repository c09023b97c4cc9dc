// t_pool - when connections are opened, used, left alone and closed
// SPDX-License-Identifier: BSD-3-Clause
#include "solo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/prng.h"
#include "proto/opcode.h"

static void t_first_calls_wait_for_the_connection(void **state)
{
    (void)state;
    struct solo s;
    struct note notes[3];
    solo_init(&s, 1);
    solo_start(&s, 4);
    s.fake.automatic = true;
    for (int i = 0; i < 3; i++)
        assert_int_equal(solo_ask(&s, &notes[i], "k"), HG_SUBMIT_WAIT);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_WAITING), 3);
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
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_WAITING), 0);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_CONNECTIONS), 1);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_REQUESTS), 3);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_REPLIES), 3);
    solo_fini(&s);
}

static void t_depth_bounds_and_order_holds(void **state)
{
    (void)state;
    struct solo s;
    struct note notes[6];
    solo_init(&s, 1);
    s.conf.pool_depth = 2;
    solo_start(&s, 1);
    solo_warm_up(&s);
    size_t before = s.fake.count;
    for (int i = 0; i < 6; i++)
        assert_int_equal(solo_ask(&s, &notes[i], (char[2]){(char)('a' + i), 0}),
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
    solo_fini(&s);
}

static void t_packs_and_opens_when_full(void **state)
{
    (void)state;
    struct solo s;
    struct note notes[8], more[4];
    solo_init(&s, 1);
    s.conf.pool_depth = 4;
    solo_start(&s, 4);
    solo_warm_up(&s);
    for (int i = 0; i < 4; i++)
        assert_int_equal(solo_ask(&s, &notes[i], "a"), HG_SUBMIT_TAKEN);
    bench_for(&s.bench, 2000);
    assert_int_equal(s.fake.accepted, 1); /* not before it is needed */
    for (int i = 4; i < 8; i++)
        assert_int_equal(solo_ask(&s, &notes[i], "b"), HG_SUBMIT_WAIT);
    BENCH_UNTIL(&s.bench, s.fake.count == 9);
    assert_int_equal(s.fake.accepted, 2);
    for (size_t i = 1; i < 9; i++)
        fake_obey(&s.fake, &s.fake.requests[i]);
    BENCH_UNTIL(&s.bench, notes[3].done == 1 && notes[7].done == 1);
    /* Both are empty: what follows is packed into one. */
    for (int i = 0; i < 4; i++)
        assert_int_equal(solo_ask(&s, &more[i], "c"), HG_SUBMIT_TAKEN);
    BENCH_UNTIL(&s.bench, s.fake.count == 13);
    for (size_t i = 10; i < 13; i++)
        assert_int_equal(s.fake.requests[i].conn, s.fake.requests[9].conn);
    for (size_t i = 9; i < 13; i++)
        fake_obey(&s.fake, &s.fake.requests[i]);
    BENCH_UNTIL(&s.bench, more[3].done == 1);
    assert_int_equal(s.fake.accepted, 2);
    solo_fini(&s);
}

static void t_bytes_count_too(void **state)
{
    (void)state;
    struct solo s;
    struct note set, next;
    char value[3000];
    memset(value, 'x', sizeof value);
    solo_init(&s, 1);
    s.conf.pool_max_bytes = 2048;
    solo_start(&s, 2);
    solo_warm_up(&s);
    note_init(&set, s.stores[0], HG_OP_SET, "set");
    set.call.value = hg_span(value, sizeof value);
    assert_int_equal(note_submit(&set, &s.rigs[0]), HG_SUBMIT_TAKEN);
    assert_int_equal(solo_ask(&s, &next, "next"), HG_SUBMIT_WAIT);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "next") != NULL);
    assert_int_equal(s.fake.accepted, 2);
    fake_obey(&s.fake, fake_find(&s.fake, "next"));
    fake_obey(&s.fake, fake_find(&s.fake, "set"));
    BENCH_UNTIL(&s.bench, set.done == 1 && next.done == 1);
    solo_fini(&s);
}

/* A large value on its way: others take another connection; if there is none, they go behind it. */
static void large_in_transit(uint32_t share)
{
    struct solo s;
    struct note set, next;
    size_t len = 20000000;
    solo_init(&s, 1);
    s.conf.pool_max_bytes = 1 << 30;
    solo_start(&s, share);
    solo_warm_up(&s);
    for (int i = 0; i < FAKE_CONNS; i++)
        s.fake.conns[i].deaf = true;
    struct hg_blob *blob = hg_blob_borrow(&s.rigs[0].blobs, len);
    memset(blob->data, 1, len);
    note_init(&set, s.stores[0], HG_OP_SET, "set");
    set.call.blob = blob;
    set.call.value = hg_span(blob->data, len);
    assert_int_equal(note_submit(&set, &s.rigs[0]), HG_SUBMIT_TAKEN);
    assert_int_equal(solo_ask(&s, &next, "next"), HG_SUBMIT_TAKEN);
    if (share > 1) {
        /* That call went behind, as nothing else was there; the next one does better. */
        BENCH_UNTIL(&s.bench, s.fake.accepted == 2);
        struct note third;
        s.fake.conns[1].deaf = false;
        BENCH_UNTIL(&s.bench, rig_pool(s.stores[0], 0)->up_count == 2);
        assert_int_equal(solo_ask(&s, &third, "third"), HG_SUBMIT_TAKEN);
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
    solo_fini(&s);
}

static void t_large_values_hold_nobody_up(void **state)
{
    (void)state;
    large_in_transit(2);
    large_in_transit(1);
}

static void t_collects_idle_ones(void **state)
{
    (void)state;
    struct solo s;
    struct note notes[3];
    solo_init(&s, 1);
    s.conf.pool_depth = 1;
    s.conf.pool_idle_timeout_s = 1;
    solo_start(&s, 3);
    for (int i = 0; i < 3; i++)
        solo_ask(&s, &notes[i], "k");
    BENCH_UNTIL(&s.bench, s.fake.count == 3);
    assert_int_equal(fake_live(&s.fake), 3);
    s.fake.automatic = true;
    for (size_t i = 0; i < 3; i++)
        fake_obey(&s.fake, &s.fake.requests[i]);
    BENCH_UNTIL(&s.bench, notes[0].done + notes[1].done + notes[2].done == 3);
    uint64_t idle_us = bench_now_us();
    BENCH_UNTIL(&s.bench, fake_live(&s.fake) < 3);
    assert_true(bench_now_us() - idle_us > 900000);
    BENCH_UNTIL(&s.bench, fake_live(&s.fake) == 0);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_CONNECTIONS), 0);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_DISCONNECTS), 0);
    solo_warm_up(&s);
    assert_int_equal(s.fake.accepted, 4);
    solo_fini(&s);
}

static void t_drains(void **state)
{
    (void)state;
    struct solo s;
    struct note busy, waiting, fits, refused;
    solo_init(&s, 1);
    s.conf.pool_depth = 1;
    solo_start(&s, 1);
    solo_warm_up(&s);
    solo_ask(&s, &busy, "busy");
    solo_ask(&s, &waiting, "waiting");
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "busy") != NULL);
    s.stores[0]->ops->drain(s.stores[0]);
    assert_false(s.stores[0]->ops->drained(s.stores[0]));
    fake_obey(&s.fake, fake_find(&s.fake, "busy"));
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "waiting") != NULL);
    assert_int_equal(solo_ask(&s, &fits, "fits"), HG_SUBMIT_WAIT);
    fake_obey(&s.fake, fake_find(&s.fake, "waiting"));
    s.fake.automatic = true;
    BENCH_UNTIL(&s.bench, s.stores[0]->ops->drained(s.stores[0]) && fake_live(&s.fake) == 0);
    assert_int_equal(busy.result.fault + waiting.result.fault + fits.result.fault, 0);
    assert_int_equal(busy.done + waiting.done + fits.done, 3);
    assert_int_equal(solo_ask(&s, &refused, "refused"), HG_SUBMIT_TAKEN);
    assert_int_equal(refused.result.fault, HG_FAULT_DOWN);
    solo_fini(&s);
}

static void t_free_answers_everybody(void **state)
{
    (void)state;
    struct solo s;
    struct note notes[4];
    solo_init(&s, 1);
    s.conf.pool_depth = 2;
    solo_start(&s, 1);
    solo_warm_up(&s);
    for (int i = 0; i < 4; i++)
        solo_ask(&s, &notes[i], "k");
    bench_turn(&s.bench);
    s.stores[0]->ops->free(s.stores[0]);
    s.stores[0] = NULL;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(notes[i].done, 1);
        assert_int_equal(notes[i].rooms, 0);
        assert_int_equal(notes[i].result.fault, HG_FAULT_LOST);
    }
    solo_fini(&s);
}

static void t_unix_socket(void **state)
{
    (void)state;
    struct solo s;
    struct note note;
    char path[64];
    snprintf(path, sizeof path, "/tmp/hg-t_pool-%d.sock", (int)getpid());
    solo_init(&s, 1);
    fake_close(&s.fake);
    fake_open_unix(&s.fake, path);
    s.fake.automatic = true;
    s.server.address = s.fake.address;
    solo_start(&s, 1);
    assert_int_equal(solo_ask(&s, &note, "k"), HG_SUBMIT_TAKEN); /* connects at once */
    BENCH_UNTIL(&s.bench, note.done == 1);
    assert_string_equal(note.value, "v:k");
    assert_string_equal(s.stores[0]->ops->where(s.stores[0], HG_SPAN_NONE, HG_SPAN_LIT("k")),
                        s.fake.address);
    unlink(path);
    solo_fini(&s);
}

/* "localhost" is ::1 and 127.0.0.1; only the second listens. */
static void t_names(void **state)
{
    (void)state;
    struct solo s;
    char address[64], why[HG_RING_WHY_BYTES];
    solo_init(&s, 1);
    snprintf(address, sizeof address, "localhost:%u", s.fake.port);
    s.server.address = address;
    s.fake.automatic = true;
    assert_null(hg_upstream_shared_new(&s.conf, NULL, 1, why));
    struct hg_resolver *resolver = hg_resolver_new();
    s.shared = hg_upstream_shared_new(&s.conf, resolver, 1, why);
    s.stores[0] = rig_store(&s.rigs[0], s.shared, 0, 2);
    solo_warm_up(&s);
    assert_string_equal(s.stores[0]->ops->where(s.stores[0], HG_SPAN_NONE, HG_SPAN_LIT("k")),
                        address);
    struct note note;
    fake_hang_up(&s.fake, 0);
    BENCH_UNTIL(&s.bench, solo_stat(&s, HG_UPSTREAM_CONNECTIONS) == 0);
    solo_ask(&s, &note, "again");
    s.stores[0]->ops->cancel(s.stores[0], &note.call);
    s.stores[0]->ops->free(s.stores[0]); /* perhaps while the name is looked up */
    s.stores[0] = NULL;
    hg_upstream_shared_free(s.shared);
    s.shared = NULL;
    hg_resolver_free(resolver);
    solo_fini(&s);
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
    struct solo s;
    struct hg_hook hook;
    solo_init(&s, 1);
    solo_start(&s, 1);
    solo_warm_up(&s);
    note_init(&late_note, s.stores[0], HG_OP_GET, "late");
    late_rig = &s.rigs[0];
    hg_loop_hook(&s.rigs[0].loop, HG_STAGE_CLIENTS, &hook, submit_late);
    hg_loop_turn(&s.rigs[0].loop, false);
    assert_true(s.rigs[0].loop.again);
    hg_loop_turn(&s.rigs[0].loop, true); /* does not wait */
    fake_pump(&s.fake);
    assert_non_null(fake_find(&s.fake, "late"));
    fake_obey(&s.fake, fake_find(&s.fake, "late"));
    BENCH_UNTIL(&s.bench, late_note.done == 1);
    solo_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_first_calls_wait_for_the_connection),
        cmocka_unit_test(t_depth_bounds_and_order_holds),
        cmocka_unit_test(t_packs_and_opens_when_full),
        cmocka_unit_test(t_bytes_count_too),
        cmocka_unit_test(t_large_values_hold_nobody_up),
        cmocka_unit_test(t_collects_idle_ones),
        cmocka_unit_test(t_drains),
        cmocka_unit_test(t_free_answers_everybody),
        cmocka_unit_test(t_unix_socket),
        cmocka_unit_test(t_names),
        cmocka_unit_test(t_submitted_late_in_the_turn),
    };
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
