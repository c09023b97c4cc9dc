// t_connects - connects that fail, and connections that are lost, while others go on
// SPDX-License-Identifier: BSD-3-Clause
//
// A server that takes no more connections, a host that can make none, a key that makes the server
// hang up: in each case what is up serves everybody, and the breaker stays closed.
#include "solo.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "back/remote.h"
#include "base/log.h"
#include "proto/opcode.h"

static uint32_t target_of(struct solo *s)
{
    return hg_server_connect_target(&s->shared->servers[0]);
}

/* Nobody was refused, and nothing was taken for the server's failure. */
static void assert_innocent(struct solo *s)
{
    assert_int_equal(solo_breaker(s), HG_BREAKER_CLOSED);
    assert_int_equal(solo_stat(s, HG_UPSTREAM_BREAKER_OPENS), 0);
    assert_int_equal(solo_stat(s, HG_UPSTREAM_REFUSED_DOWN), 0);
    assert_int_equal(solo_stat(s, HG_UPSTREAM_QUEUE_TIMEOUTS), 0);
    assert_int_equal(solo_stat(s, HG_UPSTREAM_TIMEOUTS), 0);
    assert_int_equal(solo_stat(s, HG_UPSTREAM_LOST), 0);
}

/* More calls than the connections have places; all are answered. */
static void ask_many(struct solo *s, uint32_t workers)
{
    static struct note notes[24];
    for (uint32_t i = 0; i < 24; i++)
        solo_ask_of(s, i % workers, &notes[i], HG_OP_GET, (char[2]){(char)('a' + i), 0});
    for (uint32_t i = 0; i < 24; i++) {
        BENCH_UNTIL(&s->bench, notes[i].done == 1);
        assert_int_equal(notes[i].result.fault, HG_FAULT_NONE);
    }
}

static void limited_start(struct solo *s, uint32_t workers, int most, bool waits)
{
    solo_init(s, workers);
    s->conf.pool_depth = 1;
    s->conf.times.connect_timeout_ms = 100 * (uint32_t)bench_scale();
    s->conf.times.queue_timeout_ms = 60000;
    s->fake.automatic = true;
    s->fake.most = most;
    s->fake.waits = waits;
    solo_start(s, 8);
}

/* The server closes what is beyond its limit at once, or lets it wait. What is up serves all; one
   more is tried now and then, and when it is taken the target is lifted. */
static void takes_no_more(bool waits)
{
    struct solo s;
    limited_start(&s, 1, 2, waits);
    for (int round = 0; round < 5; round++)
        ask_many(&s, 1);
    BENCH_UNTIL(&s.bench, target_of(&s) == 2);
    assert_int_equal(fake_live(&s.fake), waits ? fake_live(&s.fake) : 2);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_CONNECTIONS), 2);
    uint64_t failures = solo_stat(&s, HG_UPSTREAM_CONNECT_FAILURES);
    bench_for(&s.bench, 300000);
    ask_many(&s, 1);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_CONNECT_FAILURES), failures);
    assert_innocent(&s);
    s.fake.most = 0;
    BENCH_UNTIL(&s.bench, target_of(&s) == 0); /* though nobody asks for anything */
    ask_many(&s, 1);
    assert_true(solo_stat(&s, HG_UPSTREAM_CONNECTIONS) > 2);
    assert_innocent(&s);
    solo_fini(&s);
}

static void t_takes_no_more(void **state)
{
    (void)state;
    takes_no_more(false);
    takes_no_more(true);
}

/* One of those that it takes ends: another is made at once, as it is below the target. */
static void t_below_the_target(void **state)
{
    (void)state;
    struct solo s;
    limited_start(&s, 1, 2, false);
    ask_many(&s, 1);
    BENCH_UNTIL(&s.bench, target_of(&s) == 2);
    uint64_t failures = solo_stat(&s, HG_UPSTREAM_CONNECT_FAILURES);
    for (int i = 0; i < 2; i++) {
        int conn = 0;
        while (s.fake.conns[conn].fd < 0)
            conn++;
        fake_hang_up(&s.fake, conn);
        BENCH_UNTIL(&s.bench, solo_stat(&s, HG_UPSTREAM_CONNECTIONS) == 1);
        uint64_t start_us = s.rigs[0].loop.now_us;
        ask_many(&s, 1);
        assert_int_equal(solo_stat(&s, HG_UPSTREAM_CONNECTIONS), 2);
        assert_true(s.rigs[0].loop.now_us - start_us < 400000 * bench_scale());
    }
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_CONNECT_FAILURES), failures);
    assert_innocent(&s);
    solo_fini(&s);
}

/* A worker that gets no connection of its own goes by way of one that has; when the server takes
   more, and has for long enough, each has its own again. */
static void t_a_worker_without_any(void **state)
{
    (void)state;
    struct solo s;
    struct note first, own;
    limited_start(&s, 2, 1, false);
    solo_ask_of(&s, 1, &first, HG_OP_GET, "first"); /* worker 1 has it */
    BENCH_UNTIL(&s.bench, first.done == 1);
    for (int round = 0; round < 5; round++)
        ask_many(&s, 2);
    const struct hg_upstream_counters *counters = s.shared->servers[0].counters;
    assert_int_equal(target_of(&s), 1);
    assert_true(hg_counter_get(&counters[0].values[HG_UPSTREAM_RELAYED]) > 0);
    assert_int_equal(hg_counter_get(&counters[0].values[HG_UPSTREAM_REQUESTS]), 0);
    assert_int_equal(hg_counter_get(&counters[1].values[HG_UPSTREAM_RELAYED]), 0);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_CONNECTIONS), 1);
    assert_innocent(&s);
    s.fake.most = 0;
    BENCH_UNTIL(&s.bench, target_of(&s) == 0);
    ask_many(&s, 2);
    assert_int_equal(hg_counter_get(&counters[0].values[HG_UPSTREAM_REQUESTS]), 0);
    bench_skip(HG_RELAY_LIFTED_US);
    const struct hg_remote *remote = hg_remote_of(s.stores[0]);
    BENCH_UNTIL(&s.bench, !hg_relay_is_away(&remote->relay, 0));
    solo_ask_of(&s, 0, &own, HG_OP_GET, "own");
    BENCH_UNTIL(&s.bench, own.done == 1);
    assert_int_equal(own.result.fault, HG_FAULT_NONE);
    assert_int_equal(hg_counter_get(&counters[0].values[HG_UPSTREAM_REQUESTS]), 1);
    ask_many(&s, 2);
    assert_innocent(&s);
    solo_fini(&s);
}

/* A call that follows one that is with the owner when the server is everybody's again comes behind
   it. */
static void t_order_when_the_owner_ceases(void **state)
{
    (void)state;
    struct solo s;
    struct note first, before, behind;
    limited_start(&s, 2, 1, false);
    solo_ask_of(&s, 1, &first, HG_OP_GET, "first");
    BENCH_UNTIL(&s.bench, first.done == 1);
    ask_many(&s, 2);
    s.fake.most = 0;
    BENCH_UNTIL(&s.bench, target_of(&s) == 0);
    s.fake.automatic = false;
    solo_ask_of(&s, 0, &before, HG_OP_SET, "before");
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "before") != NULL);
    hg_lease_unclaim(&s.shared->servers[0].lease, 1);
    const struct hg_remote *remote = hg_remote_of(s.stores[0]);
    BENCH_UNTIL(&s.bench, !hg_relay_is_away(&remote->relay, 0));
    note_init(&behind, s.stores[0], HG_OP_SET, "behind");
    behind.call.after = &before.call;
    assert_int_equal(note_submit(&behind, &s.rigs[0]), HG_SUBMIT_WAIT);
    bench_for(&s.bench, 50000);
    assert_null(fake_find(&s.fake, "behind"));
    s.fake.automatic = true;
    fake_obey(&s.fake, fake_find(&s.fake, "before"));
    BENCH_UNTIL(&s.bench, before.done + behind.done == 2);
    assert_true(before.order < behind.order);
    assert_int_equal(before.result.fault + behind.result.fault, HG_FAULT_NONE);
    solo_fini(&s);
}

/* A key that makes the server hang up, each second: the next request does not wait, nor is anything
   asked before it. */
static void t_lost_again_and_again(void **state)
{
    (void)state;
    struct solo s;
    struct note poison, next;
    solo_init(&s, 1);
    solo_start(&s, 4);
    solo_warm_up(&s);
    s.fake.keeps_noops = true;
    for (int i = 0; i < 12; i++) {
        s.fake.automatic = false;
        char key[2] = {(char)('A' + i), 0};
        solo_ask(&s, &poison, key);
        BENCH_UNTIL(&s.bench, fake_find(&s.fake, key) != NULL);
        fake_hang_up(&s.fake, fake_find(&s.fake, key)->conn);
        BENCH_UNTIL(&s.bench, poison.done == 1);
        assert_int_equal(poison.result.fault, HG_FAULT_LOST);
        s.fake.automatic = true;
        size_t before = s.fake.count;
        int accepted = s.fake.accepted;
        solo_ask(&s, &next, "next");
        uint64_t start_us = s.rigs[0].loop.now_us;
        BENCH_UNTIL(&s.bench, next.done == 1);
        assert_int_equal(next.result.fault, HG_FAULT_NONE);
        assert_true(next.call.sent_us - start_us <= 5000 * bench_scale());
        assert_string_equal(s.fake.requests[before].key, "next");
        assert_int_equal(s.fake.accepted, accepted + 1);
        bench_skip(1000000);
        bench_for(&s.bench, 20000);
    }
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_BREAKER_OPENS), 0);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_CONNECT_FAILURES), 0);
    assert_int_equal(solo_breaker(&s), HG_BREAKER_CLOSED);
    solo_fini(&s);
}

/* The lowest number of a descriptor that is not in use, when all below are. */
static rlim_t count_files(void)
{
    rlim_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        rlim_t fd = strtoul(entry->d_name, NULL, 10);
        count = fd >= count ? fd + 1 : count;
    }
    closedir(dir);
    return count;
}

/* The host has no descriptor left: what is up serves all, and those who need another connection get
   it when there is one. */
static void t_no_descriptor(void **state)
{
    (void)state;
    struct solo s;
    struct note held, other;
    struct rlimit all;
    int fillers[256], count = 0;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
    solo_init(&s, 1);
    s.conf.pool_depth = 1;
    s.conf.times.queue_timeout_ms = 60000;
    s.conf.times.backend_timeout_ms = 60000;
    solo_start(&s, 4);
    solo_bear_silence(&s);
    solo_warm_up(&s);
    struct rlimit few = {.rlim_cur = count_files(), .rlim_max = all.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (count < 256 && (fillers[count] = dup(0)) >= 0)
        count++;
    solo_ask(&s, &held, "held");
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "held") != NULL);
    assert_int_equal(solo_ask(&s, &other, "other"), HG_SUBMIT_WAIT);
    BENCH_UNTIL(&s.bench, solo_stat(&s, HG_UPSTREAM_LOCAL_ERRORS) == 1);
    uint64_t first_us = bench_now_us();
    BENCH_UNTIL(&s.bench, solo_stat(&s, HG_UPSTREAM_LOCAL_ERRORS) == 3);
    assert_true(bench_now_us() - first_us >= 280000); /* a pause of 0.1 s, one of 0.2 s */
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_CONNECT_FAILURES), 0);
    assert_int_equal(target_of(&s), 0);
    fake_obey(&s.fake, fake_find(&s.fake, "held"));
    BENCH_UNTIL(&s.bench, held.done == 1 && fake_find(&s.fake, "other") != NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
    while (count > 0)
        close(fillers[--count]);
    solo_ask(&s, &held, "held");
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "held") != NULL); /* on a second connection */
    assert_int_equal(s.fake.accepted, 2);
    fake_obey(&s.fake, fake_find(&s.fake, "other"));
    fake_obey(&s.fake, fake_find(&s.fake, "held"));
    BENCH_UNTIL(&s.bench, held.done + other.done == 2);
    assert_int_equal(held.result.fault + other.result.fault, HG_FAULT_NONE);
    assert_innocent(&s);
    solo_fini(&s);
}

/* A name may have an address of a kind that this host does not speak. That is the reason only if
   there is no other. */
static void t_an_address_of_another_kind(void **state)
{
    (void)state;
    for (int order = 0; order < 3; order++) {
        struct solo s;
        struct note note;
        solo_init(&s, 1);
        s.conf.times.queue_timeout_ms = 60000;
        fake_stop(&s.fake);
        solo_start(&s, 1);
        struct hg_addrs *addrs = &s.shared->servers[0].addrs;
        addrs->list[1] = addrs->list[0];
        addrs->count = 2;
        for (int i = 0; i < 2; i++) {
            if (order == i || order == 2)
                addrs->list[i].sa.ss_family = AF_MAX;
        }
        solo_ask(&s, &note, "k");
        if (order == 2) {
            BENCH_UNTIL(&s.bench, solo_stat(&s, HG_UPSTREAM_LOCAL_ERRORS) == 2);
            assert_innocent(&s);
        } else {
            BENCH_UNTIL(&s.bench, note.done == 1);
            assert_int_equal(note.result.fault, HG_FAULT_DOWN);
            assert_int_equal(solo_stat(&s, HG_UPSTREAM_LOCAL_ERRORS), 0);
            assert_int_equal(solo_stat(&s, HG_UPSTREAM_BREAKER_OPENS), 1);
        }
        solo_fini(&s);
    }
}

/* Time-outs without a word open the breaker. A connection that was given something to do since
   stays, and its answer closes it again. */
static void t_an_answer_closes_it(void **state)
{
    (void)state;
    struct solo s;
    struct note late[24], kept, next;
    solo_init(&s, 2);
    s.conf.times.backend_timeout_ms = 100 * (uint32_t)bench_scale();
    solo_start(&s, 1);
    solo_bear_silence(&s);
    solo_warm_up(&s);
    s.shared->servers[0].breaker.backoff.max_us = 0;
    s.fake.keeps_noops = true; /* no probe is answered */
    for (int i = 0; i < 24; i++)
        solo_ask(&s, &late[i], (char[2]){(char)('a' + i), 0});
    bench_for(&s.bench, 60000 * bench_scale());
    solo_ask_of(&s, 1, &kept, HG_OP_GET, "kept");
    BENCH_UNTIL(&s.bench, solo_stat(&s, HG_UPSTREAM_BREAKER_OPENS) == 1);
    BENCH_UNTIL(&s.bench, solo_stat(&s, HG_UPSTREAM_CONNECTIONS) == 1); /* the silent one is not */
    assert_false(hg_server_may_send(&s.shared->servers[0]));
    assert_int_equal(kept.done, 0);
    fake_obey(&s.fake, fake_find(&s.fake, "kept"));
    BENCH_UNTIL(&s.bench, kept.done == 1);
    assert_int_equal(kept.result.fault, HG_FAULT_NONE);
    assert_true(hg_server_may_send(&s.shared->servers[0]));
    s.fake.automatic = true;
    solo_ask_of(&s, 1, &next, HG_OP_GET, "next");
    BENCH_UNTIL(&s.bench, next.done == 1);
    assert_int_equal(next.result.fault, HG_FAULT_NONE);
    solo_fini(&s);
}

/* Time-outs on one worker's connection open nothing while another's is answered. */
static void t_alive_for_another_worker(void **state)
{
    (void)state;
    struct solo s;
    struct note late[60], good;
    solo_init(&s, 2);
    s.conf.times.backend_timeout_ms = 100 * (uint32_t)bench_scale();
    solo_start(&s, 1);
    solo_bear_silence(&s);
    solo_warm_up(&s);
    for (int i = 0; i < 60; i++)
        solo_ask(&s, &late[i], (char[2]){(char)('a' + i % 26), 0});
    while (solo_stat(&s, HG_UPSTREAM_TIMEOUTS) < 60) {
        uint64_t next_us = hg_now_us() + 10000; /* the fake keeps all requests, so not too many */
        solo_ask_of(&s, 1, &good, HG_OP_GET, "good");
        BENCH_UNTIL(&s.bench, fake_find(&s.fake, "good") != NULL);
        fake_obey(&s.fake, fake_find(&s.fake, "good"));
        BENCH_UNTIL(&s.bench, good.done == 1 && hg_now_us() >= next_us);
    }
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_BREAKER_OPENS), 0);
    solo_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_takes_no_more),
        cmocka_unit_test(t_below_the_target),
        cmocka_unit_test(t_a_worker_without_any),
        cmocka_unit_test(t_order_when_the_owner_ceases),
        cmocka_unit_test(t_lost_again_and_again),
        cmocka_unit_test(t_no_descriptor),
        cmocka_unit_test(t_an_address_of_another_kind),
        cmocka_unit_test(t_an_answer_closes_it),
        cmocka_unit_test(t_alive_for_another_worker),
    };
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("connects", tests, NULL, NULL);
}
