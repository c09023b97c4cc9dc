// t_memcached - a store of several servers: the way of a key, flush, servers that are out
// SPDX-License-Identifier: BSD-3-Clause
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "proto/opcode.h"

#define SERVERS 3

struct scene {
    struct rig rig;
    struct fake fakes[SERVERS];
    struct hg_ring_server servers[SERVERS];
    struct hg_remote_conf conf;
    struct hg_upstream_shared *shared;
    struct hg_store *store;
    struct bench bench;
};

static void scene_init(struct scene *scene)
{
    struct fake *fakes[SERVERS];
    memset(scene, 0, sizeof *scene);
    rig_init(&scene->rig);
    bench_keep_time(&scene->rig);
    scene->bench.rigs[0] = &scene->rig;
    for (int i = 0; i < SERVERS; i++) {
        fakes[i] = scene->bench.fakes[i] = &scene->fakes[i];
        fake_open(&scene->fakes[i], 0);
        scene->fakes[i].automatic = true;
    }
    rig_conf(&scene->conf, scene->servers, fakes, SERVERS);
    note_reset_order();
}

static void scene_start(struct scene *scene)
{
    scene->shared = rig_shared(&scene->conf, 1);
    scene->store = rig_store(&scene->rig, scene->shared, 0, 2);
}

static void scene_fini(struct scene *scene)
{
    scene->store->ops->free(scene->store);
    hg_upstream_shared_free(scene->shared);
    for (int i = 0; i < SERVERS; i++)
        fake_close(&scene->fakes[i]);
    rig_fini(&scene->rig);
}

/* Index of the server that `where` names for the key. */
static int where(struct scene *scene, const char *key)
{
    const char *address = scene->store->ops->where(scene->store, HG_SPAN_NONE, hg_span_str(key));
    for (int i = 0; i < SERVERS; i++) {
        if (strcmp(address, scene->fakes[i].address) == 0)
            return i;
    }
    fail_msg("%s is none of the servers", address);
    return -1;
}

/* A key that belongs to the server. */
static void key_of(struct scene *scene, int server, char key[32])
{
    for (unsigned i = 0; i < 10000; i++) {
        snprintf(key, 32, "key-%u", i);
        if (where(scene, key) == server)
            return;
    }
    fail_msg("no key of server %d", server);
}

static void get(struct scene *scene, struct note *note, const char *key)
{
    note_init(note, scene->store, HG_OP_GET, key);
    (void)note_submit(note, &scene->rig);
    BENCH_UNTIL(&scene->bench, note->done == 1);
}

/* Keys are found where the ring says, whatever the prefix, and the prefix goes to the server. */
static void t_prefix_does_not_move_keys(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    scene_start(&s);
    int used[SERVERS] = {0};
    for (int i = 0; i < 60; i++) {
        char key[32], whole[64], value[80];
        struct note note;
        snprintf(key, sizeof key, "item:%d", i);
        snprintf(whole, sizeof whole, "shop-%d:%s", i, key);
        note_init(&note, s.store, HG_OP_GET, key);
        char prefix[32];
        note.call.prefix = hg_span(prefix, (size_t)snprintf(prefix, sizeof prefix, "shop-%d:", i));
        (void)note_submit(&note, &s.rig);
        BENCH_UNTIL(&s.bench, note.done == 1);
        snprintf(value, sizeof value, "v:%s", whole);
        assert_string_equal(note.value, value);
        int server = where(&s, key);
        assert_string_equal(note.result.server, s.fakes[server].address);
        assert_string_equal(s.fakes[server].requests[s.fakes[server].count - 1].key, whole);
        used[server]++;
    }
    for (int i = 0; i < SERVERS; i++)
        assert_true(used[i] > 0);
    scene_fini(&s);
}

static void t_key_too_long(void **state)
{
    (void)state;
    struct scene s;
    struct note note;
    char key[251];
    memset(key, 'k', 250);
    key[250] = '\0';
    scene_init(&s);
    scene_start(&s);
    get(&s, &note, key);
    assert_int_equal(note.result.fault, HG_FAULT_NONE);
    note_init(&note, s.store, HG_OP_GET, key);
    note.call.prefix = HG_SPAN_LIT("p");
    assert_int_equal(note_submit(&note, &s.rig), HG_SUBMIT_TAKEN);
    assert_int_equal(note.done, 1);
    assert_int_equal(note.result.fault, HG_FAULT_KEY_TOO_LONG);
    scene_fini(&s);
}

static void flush(struct scene *scene, struct note *note, uint32_t delay)
{
    note_init(note, scene->store, HG_OP_FLUSH, "");
    note->call.expiry = delay;
    assert_int_equal(note_submit(note, &scene->rig), HG_SUBMIT_TAKEN);
}

static void t_flush_goes_to_all(void **state)
{
    (void)state;
    struct scene s;
    struct note note;
    scene_init(&s);
    scene_start(&s);
    s.fakes[1].automatic = false;
    flush(&s, &note, 0);
    BENCH_UNTIL(&s.bench, fake_find(&s.fakes[1], "") != NULL);
    bench_for(&s.bench, 5000);
    assert_int_equal(note.done, 0); /* not before the last has answered */
    fake_obey(&s.fakes[1], fake_find(&s.fakes[1], ""));
    BENCH_UNTIL(&s.bench, note.done == 1);
    assert_int_equal(note.result.status, 0);
    assert_int_equal(note.result.fault, HG_FAULT_NONE);
    for (int i = 0; i < SERVERS; i++) {
        assert_int_equal(s.fakes[i].count, 1);
        assert_int_equal(s.fakes[i].requests[0].opcode, HG_OPCODE_FLUSH);
        assert_int_equal(s.fakes[i].requests[0].extras_len, 0);
    }
    s.fakes[1].automatic = true;
    flush(&s, &note, 7);
    BENCH_UNTIL(&s.bench, note.done == 1);
    for (int i = 0; i < SERVERS; i++) {
        assert_int_equal(s.fakes[i].requests[1].extras_len, 4);
        assert_int_equal(hg_get_u32(s.fakes[i].requests[1].extras), 7);
    }
    scene_fini(&s);
}

static void t_flush_tells_the_worst(void **state)
{
    (void)state;
    struct scene s;
    struct note note;
    scene_init(&s);
    scene_start(&s);
    s.fakes[2].automatic = false;
    flush(&s, &note, 0);
    BENCH_UNTIL(&s.bench, fake_find(&s.fakes[2], "") != NULL);
    fake_answer(&s.fakes[2], fake_find(&s.fakes[2], ""), 0x81, "Unknown command");
    BENCH_UNTIL(&s.bench, note.done == 1);
    assert_int_equal(note.result.status, 0x81);
    assert_string_equal(note.result.server, s.fakes[2].address);
    fake_stop(&s.fakes[2]);
    flush(&s, &note, 0);
    BENCH_UNTIL(&s.bench, note.done == 1);
    assert_true(note.result.fault == HG_FAULT_DOWN || note.result.fault == HG_FAULT_LOST);
    assert_int_equal(s.fakes[0].count, 2);
    assert_int_equal(s.fakes[1].count, 2);
    scene_fini(&s);
}

static void t_flush_is_cancelled(void **state)
{
    (void)state;
    struct scene s;
    struct note waits, sent, last;
    scene_init(&s);
    scene_start(&s);
    for (int i = 0; i < SERVERS; i++)
        s.fakes[i].automatic = false;
    flush(&s, &waits, 0); /* no connection yet: all parts wait */
    s.store->ops->cancel(s.store, &waits.call);
    memset(&waits.call, 0xee, sizeof waits.call);
    flush(&s, &sent, 0);
    for (int i = 0; i < SERVERS; i++)
        BENCH_UNTIL(&s.bench, fake_find(&s.fakes[i], "") != NULL);
    fake_obey(&s.fakes[0], fake_find(&s.fakes[0], ""));
    bench_for(&s.bench, 2000);
    s.store->ops->cancel(s.store, &sent.call);
    memset(&sent.call, 0xee, sizeof sent.call);
    for (int i = 1; i < SERVERS; i++)
        fake_obey(&s.fakes[i], fake_find(&s.fakes[i], ""));
    flush(&s, &last, 0); /* is under way when the store is freed */
    for (int i = 0; i < SERVERS; i++)
        BENCH_UNTIL(&s.bench, fake_find(&s.fakes[i], "") != NULL);
    for (int i = 0; i < SERVERS; i++)
        assert_int_equal(s.fakes[i].count, 2);
    assert_int_equal(waits.done + sent.done + last.done, 0);
    scene_fini(&s);
    assert_int_equal(waits.done + sent.done, 0);
    assert_int_equal(last.done, 1);
    assert_int_equal(last.result.fault, HG_FAULT_LOST);
}

/* Takes a server out; returns when the store knows. */
static void take_out(struct scene *s, int server)
{
    struct note note;
    char key[32];
    key_of(s, server, key);
    fake_stop(&s->fakes[server]);
    get(s, &note, key);
    assert_int_equal(note.result.fault, HG_FAULT_DOWN);
    assert_false(hg_server_may_send(&s->shared->servers[server]));
}

static void t_no_rehashing_unless_asked(void **state)
{
    (void)state;
    struct scene s;
    struct note note;
    char key[32], other[32];
    scene_init(&s);
    scene_start(&s);
    key_of(&s, 1, key);
    key_of(&s, 2, other);
    take_out(&s, 1);
    assert_int_equal(where(&s, key), 1);
    get(&s, &note, key);
    assert_int_equal(note.result.fault, HG_FAULT_DOWN);
    assert_string_equal(note.result.server, s.fakes[1].address);
    get(&s, &note, other);
    assert_int_equal(note.result.fault, HG_FAULT_NONE);
    scene_fini(&s);
}

static void t_ejected_servers_keys_are_spread(void **state)
{
    (void)state;
    struct scene s;
    struct note note;
    char keys[SERVERS][32];
    int spread[SERVERS] = {0}, before[300];
    scene_init(&s);
    s.conf.eject_servers = true;
    scene_start(&s);
    for (int i = 0; i < SERVERS; i++)
        key_of(&s, i, keys[i]);
    for (int i = 0; i < 300; i++) {
        char key[32];
        snprintf(key, sizeof key, "spread:%d", i);
        before[i] = where(&s, key);
    }
    take_out(&s, 1);
    for (int i = 0; i < 300; i++) {
        char key[32];
        snprintf(key, sizeof key, "spread:%d", i);
        if (before[i] == 1)
            spread[where(&s, key)]++;
        else
            assert_int_equal(where(&s, key), before[i]); /* theirs stay */
    }
    assert_int_equal(spread[1], 0);
    assert_true(spread[0] > 0 && spread[2] > 0);
    get(&s, &note, keys[1]);
    assert_int_equal(note.result.fault, HG_FAULT_NONE);
    assert_string_not_equal(note.result.server, s.fakes[1].address);
    take_out(&s, 0);
    assert_int_equal(where(&s, keys[0]), 2);
    assert_int_equal(where(&s, keys[1]), 2);
    fake_start(&s.fakes[1]);
    BENCH_UNTIL(&s.bench, hg_server_may_send(&s.shared->servers[1]));
    assert_int_equal(where(&s, keys[1]), 1);
    get(&s, &note, keys[1]);
    assert_string_equal(note.result.server, s.fakes[1].address);
    fake_stop(&s.fakes[1]);
    fake_stop(&s.fakes[2]);
    for (int i = 1; i < SERVERS; i++) {
        BENCH_UNTIL(&s.bench, rig_stat(s.shared, (uint32_t)i, HG_UPSTREAM_CONNECTIONS) == 0);
        uint64_t end_us = bench_deadline();
        do {
            PATIENCE_CHECK(end_us, "the server may be sent to");
            get(&s, &note, keys[i]);
            assert_int_equal(note.result.fault, HG_FAULT_DOWN);
        } while (hg_server_may_send(&s.shared->servers[i]));
    }
    get(&s, &note, keys[0]); /* nobody is left: its own server says so */
    assert_int_equal(note.result.fault, HG_FAULT_DOWN);
    assert_string_equal(note.result.server, s.fakes[0].address);
    scene_fini(&s);
}

static void t_times_change(void **state)
{
    (void)state;
    struct scene s;
    struct note note;
    char key[32];
    scene_init(&s);
    s.conf.times.backend_timeout_ms = 2 * PATIENCE_US / 1000 * (uint32_t)bench_scale();
    scene_start(&s);
    key_of(&s, 0, key);
    get(&s, &note, key);
    s.fakes[0].automatic = false;
    struct hg_remote_times times = s.conf.times;
    times.backend_timeout_ms = 30;
    hg_remote_set_times(s.store, &times);
    get(&s, &note, key);
    assert_int_equal(note.result.fault, HG_FAULT_TIMEOUT);
    uint64_t waited_us = s.rig.loop.now_us - note.call.sent_us;
    assert_true(waited_us >= 30000); /* and less than before, which get would not wait for */
    scene_fini(&s);
}

/* Every operation and many sizes at once over all servers, byte sums compared. */
static void t_many_at_once(void **state)
{
    (void)state;
    enum { MANY = 400 };
    struct scene s;
    static struct note notes[MANY];
    static char value[40000];
    scene_init(&s);
    scene_start(&s);
    memset(value, 'q', sizeof value);
    for (int i = 0; i < MANY; i++) {
        char key[32];
        snprintf(key, sizeof key, "many:%d", i);
        note_init(&notes[i], s.store, (enum hg_op)(i % HG_OP_FLUSH), key);
        enum hg_op op = notes[i].call.op;
        if (op == HG_OP_SET || op == HG_OP_ADD || op == HG_OP_REPLACE || op == HG_OP_APPEND ||
            op == HG_OP_PREPEND)
            notes[i].call.value = hg_span(value, (size_t)(i * 97));
        (void)note_submit(&notes[i], &s.rig);
    }
    for (int i = 0; i < MANY; i++) {
        BENCH_UNTIL(&s.bench, notes[i].done == 1);
        assert_int_equal(notes[i].result.fault, HG_FAULT_NONE);
        assert_int_equal(notes[i].result.cas, 99);
    }
    size_t count = 0;
    for (int f = 0; f < SERVERS; f++) {
        for (size_t r = 0; r < s.fakes[f].count; r++) {
            const struct fake_request *request = &s.fakes[f].requests[r];
            int i = atoi(request->key + 5);
            assert_int_equal(request->value_len, notes[i].call.value.len);
            assert_int_equal(request->value_sum, request->value_len * 'q');
            count++;
        }
    }
    assert_int_equal(count, MANY);
    scene_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_prefix_does_not_move_keys),
        cmocka_unit_test(t_key_too_long),
        cmocka_unit_test(t_flush_goes_to_all),
        cmocka_unit_test(t_flush_tells_the_worst),
        cmocka_unit_test(t_flush_is_cancelled),
        cmocka_unit_test(t_no_rehashing_unless_asked),
        cmocka_unit_test(t_ejected_servers_keys_are_spread),
        cmocka_unit_test(t_times_change),
        cmocka_unit_test(t_many_at_once),
    };
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("memcached", tests, NULL, NULL);
}
