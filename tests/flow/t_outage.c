// t_outage - a server hangs up, goes and comes back: who hears what, and who asks when
// SPDX-License-Identifier: BSD-3-Clause
#include "solo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "proto/opcode.h"

/* The server closes an idle connection; the next request comes before anybody has noticed. */
static void t_idle_connection_closed_by_the_server(void **state)
{
    (void)state;
    for (int round = 0; round < 4; round++) {
        struct solo s;
        struct note get, set, next;
        solo_init(&s, 1);
        solo_start(&s, 4);
        solo_warm_up(&s);
        s.fake.automatic = true;
        fake_hang_up(&s.fake, 0);
        if (round % 2 == 1)
            BENCH_UNTIL(&s.bench, solo_stat(&s, HG_UPSTREAM_CONNECTIONS) == 0);
        solo_ask_of(&s, 0, &get, HG_OP_GET, "get");
        solo_ask_of(&s, 0, &set, HG_OP_SET, "set");
        next.call.after = NULL;
        solo_ask(&s, &next, "next");
        BENCH_UNTIL(&s.bench, get.done + set.done + next.done == 3);
        assert_int_equal(get.result.fault, HG_FAULT_NONE);
        assert_int_equal(set.result.fault, HG_FAULT_NONE);
        assert_int_equal(next.result.fault, HG_FAULT_NONE);
        assert_string_equal(get.value, "v:get");
        assert_true(get.order < set.order && set.order < next.order);
        assert_int_equal(s.fake.accepted, 2);
        assert_int_equal(solo_stat(&s, HG_UPSTREAM_RETRIES), round % 2 == 1 ? 0 : 3);
        assert_int_equal(solo_stat(&s, HG_UPSTREAM_LOST), 0);
        assert_int_equal(solo_breaker(&s), HG_BREAKER_CLOSED);
        solo_fini(&s);
    }
}

/* Sent requests are lost, once each; unsent reads behind them go elsewhere, unsent writes do not,
   since what was sent may yet be carried out. */
static void t_lost_and_moved(void **state)
{
    (void)state;
    struct solo s;
    struct note sent, sent_write, unsent_read, unsent_write, other[8];
    solo_init(&s, 1);
    s.conf.pool_depth = 8;
    solo_start(&s, 4);
    solo_warm_up(&s);
    /* A second connection, so that there is somewhere to go. */
    for (int i = 0; i < 8; i++)
        solo_ask(&s, &other[i], "other");
    struct note ninth;
    solo_ask(&s, &ninth, "ninth");
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "ninth") != NULL);
    fake_obey(&s.fake, fake_find(&s.fake, "ninth"));
    for (int i = 8; i-- > 0;)
        fake_obey(&s.fake, &s.fake.requests[8 - i]);
    BENCH_UNTIL(&s.bench, other[7].done == 1 && ninth.done == 1);
    solo_ask_of(&s, 0, &sent, HG_OP_GET, "sent");
    struct hg_link *link = sent.call.place.link;
    note_init(&sent_write, s.stores[0], HG_OP_SET, "sent-write");
    sent_write.call.after = &sent.call;
    note_submit(&sent_write, &s.rigs[0]);
    assert_ptr_equal(sent_write.call.place.link, link);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "sent-write") != NULL);
    int conn = fake_find(&s.fake, "sent")->conn;
    rig_pool(s.stores[0], 0)->retry.tenths = HG_RETRY_KEPT_MAX;
    fake_hang_up(&s.fake, conn);
    note_init(&unsent_read, s.stores[0], HG_OP_GET, "unsent-read");
    unsent_read.call.after = &sent.call;
    note_submit(&unsent_read, &s.rigs[0]);
    note_init(&unsent_write, s.stores[0], HG_OP_SET, "unsent-write");
    unsent_write.call.after = &sent.call;
    note_submit(&unsent_write, &s.rigs[0]);
    BENCH_UNTIL(&s.bench, sent.done == 1 && sent_write.done == 1 && unsent_write.done == 1);
    assert_int_equal(sent.result.fault, HG_FAULT_LOST);
    assert_int_equal(sent_write.result.fault, HG_FAULT_LOST);
    assert_int_equal(unsent_write.result.fault, HG_FAULT_DOWN);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "unsent-read") != NULL);
    assert_int_not_equal(fake_find(&s.fake, "unsent-read")->conn, conn);
    fake_obey(&s.fake, fake_find(&s.fake, "unsent-read"));
    BENCH_UNTIL(&s.bench, unsent_read.done == 1);
    assert_string_equal(unsent_read.value, "v:unsent-read");
    assert_int_equal(solo_breaker(&s), HG_BREAKER_CLOSED);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_DISCONNECTS), 1);
    solo_fini(&s);
}

/* Nobody listens any more: the breaker opens, who waited hears it at once, who comes is refused at
   once; when the server is back, one NOOP of one worker finds out, and no client's request. */
static void t_gone_and_back(void **state)
{
    (void)state;
    struct solo s;
    struct note waits[3], refused, back[2];
    solo_init(&s, 2);
    /* Beyond all patience: no time-out is waited for. */
    s.conf.times.connect_timeout_ms = s.conf.times.queue_timeout_ms =
        2 * PATIENCE_US / 1000 * (uint32_t)bench_scale();
    s.fake.keeps_noops = true;
    solo_start(&s, 4);
    solo_warm_up(&s);
    fake_stop(&s.fake);
    BENCH_UNTIL(&s.bench, solo_stat(&s, HG_UPSTREAM_CONNECTIONS) == 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(solo_ask(&s, &waits[i], "waits"), HG_SUBMIT_WAIT);
    BENCH_UNTIL(&s.bench, waits[2].done == 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(waits[i].done, 1);
        assert_int_equal(waits[i].result.fault, HG_FAULT_DOWN);
    }
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_BREAKER_OPENS), 1);
    for (uint32_t w = 0; w < 2; w++) {
        assert_int_equal(solo_ask_of(&s, w, &refused, HG_OP_GET, "refused"), HG_SUBMIT_TAKEN);
        assert_int_equal(refused.done, 1);
        assert_int_equal(refused.result.fault, HG_FAULT_DOWN);
    }
    bench_for(&s.bench, 300000);
    assert_true(solo_stat(&s, HG_UPSTREAM_PROBES) <= 40);
    BENCH_UNTIL(&s.bench, solo_stat(&s, HG_UPSTREAM_PROBES) >= 2); /* it goes on asking */
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_BREAKER_OPENS), 1);

    size_t before = s.fake.count;
    int accepted = s.fake.accepted;
    fake_start(&s.fake);
    BENCH_UNTIL(&s.bench, s.fake.count > before);
    bench_for(&s.bench, 100000); /* more than enough for another worker's */
    assert_int_equal(s.fake.count, before + 1);
    assert_int_equal(s.fake.accepted, accepted + 1);
    assert_int_equal(s.fake.requests[before].opcode, HG_OPCODE_NOOP);
    assert_int_equal(solo_breaker(&s), HG_BREAKER_HALF_OPEN);
    assert_int_equal(solo_ask(&s, &refused, "early"), HG_SUBMIT_TAKEN);
    assert_int_equal(refused.result.fault, HG_FAULT_DOWN);
    fake_obey(&s.fake, &s.fake.requests[before]);
    s.fake.automatic = true;
    BENCH_UNTIL(&s.bench, solo_breaker(&s) == HG_BREAKER_RAMP);
    for (uint32_t w = 0; w < 2; w++)
        solo_ask_of(&s, w, &back[w], HG_OP_GET, "back");
    BENCH_UNTIL(&s.bench, back[0].done + back[1].done == 2);
    assert_string_equal(back[0].value, "v:back");
    assert_string_equal(back[1].value, "v:back");
    solo_fini(&s);
}

/* Reads that were not sent move as long as the retry budget lasts. */
static void t_retries_are_bounded(void **state)
{
    (void)state;
    struct solo s;
    struct note sent, reads[5];
    solo_init(&s, 1);
    solo_start(&s, 4);
    solo_warm_up(&s);
    solo_ask(&s, &sent, "sent");
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "sent") != NULL);
    /* A second connection to move to. */
    struct hg_pool *pool = rig_pool(s.stores[0], 0);
    struct hg_link *first = sent.call.place.link;
    hg_list_remove(&first->node);
    struct note second;
    solo_ask(&s, &second, "second");
    s.fake.automatic = true;
    BENCH_UNTIL(&s.bench, second.done == 1);
    hg_list_prepend(&pool->ready, &first->node);
    for (int i = 0; i < 5; i++) {
        note_init(&reads[i], s.stores[0], HG_OP_GET, "read");
        reads[i].call.after = &sent.call;
        note_submit(&reads[i], &s.rigs[0]);
        assert_ptr_equal(reads[i].call.place.link, first);
    }
    pool->retry.tenths = 3 * HG_RETRY_COST;
    hg_link_end(first, HG_LINK_CLOSED, -ECONNRESET);
    for (int i = 0; i < 5; i++) {
        BENCH_UNTIL(&s.bench, reads[i].done == 1);
        assert_int_equal(reads[i].result.fault, i < 3 ? HG_FAULT_NONE : HG_FAULT_DOWN);
    }
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_RETRIES), 3);
    solo_fini(&s);
}

/* Who waits for a connection that ends goes to another. */
static void t_bound_to_a_connection_that_ends(void **state)
{
    (void)state;
    struct solo s;
    struct note sent[2], waits;
    solo_init(&s, 1);
    s.conf.pool_depth = 1;
    s.conf.times.queue_timeout_ms = 60000;
    solo_start(&s, 4);
    solo_warm_up(&s);
    solo_ask(&s, &sent[0], "sent");
    for (int i = 1; i < 3; i++) {
        struct note *note = i == 1 ? &sent[1] : &waits;
        note_init(note, s.stores[0], HG_OP_GET, i == 1 ? "sent too" : "waits");
        note->call.after = &sent[0].call;
        assert_int_equal(note_submit(note, &s.rigs[0]), i == 1 ? HG_SUBMIT_TAKEN : HG_SUBMIT_WAIT);
    }
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "sent too") != NULL);
    s.fake.automatic = true;
    fake_hang_up(&s.fake, fake_find(&s.fake, "sent")->conn);
    BENCH_UNTIL(&s.bench, waits.done == 1);
    assert_string_equal(waits.value, "v:waits");
    assert_int_equal(sent[0].result.fault, HG_FAULT_LOST);
    assert_int_equal(sent[1].result.fault, HG_FAULT_LOST);
    solo_fini(&s);
}

static void t_nonsense_costs_a_connection_not_the_server(void **state)
{
    (void)state;
    struct solo s;
    struct note a, b, next;
    solo_init(&s, 1);
    solo_start(&s, 4);
    solo_warm_up(&s);
    solo_ask(&s, &a, "a");
    solo_ask(&s, &b, "b");
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "b") != NULL);
    fake_say(&s.fake, fake_find(&s.fake, "b")->conn, "ERROR\r\n", 7);
    BENCH_UNTIL(&s.bench, a.done + b.done == 2);
    assert_int_equal(a.result.fault, HG_FAULT_LOST);
    assert_int_equal(b.result.fault, HG_FAULT_LOST);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_BAD_REPLIES), 1);
    s.fake.automatic = s.fake.keeps_noops = true;
    size_t before = s.fake.count;
    solo_ask(&s, &next, "next");
    BENCH_UNTIL(&s.bench, next.done == 1);
    assert_string_equal(next.value, "v:next");
    assert_int_equal(s.fake.requests[before].opcode, HG_OPCODE_NOOP); /* trusted again */
    assert_string_equal(s.fake.requests[before + 1].key, "next");
    assert_int_equal(solo_breaker(&s), HG_BREAKER_CLOSED);
    solo_fini(&s);
}

/* A socket of 127.0.0.1 whose backlog is full: the kernel drops what else would connect. */
static int open_black_hole(int fillers[4], char address[32])
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    for (int i = 0; i < 4; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(fillers[i], (struct sockaddr *)&in, sizeof in);
    }
    snprintf(address, 32, "127.0.0.1:%u", ntohs(in.sin_port));
    return fd;
}

/* A connection that never comes up: three such open the breaker, and who waits hears it then. */
static void t_connect_times_out(void **state)
{
    (void)state;
    struct solo s;
    struct note waits;
    char address[32];
    int fillers[4];
    int fd = open_black_hole(fillers, address);
    solo_init(&s, 1);
    s.server.address = address;
    s.conf.times.connect_timeout_ms = 50;
    s.conf.times.queue_timeout_ms = 60000;
    solo_start(&s, 4);
    assert_int_equal(solo_ask(&s, &waits, "waits"), HG_SUBMIT_WAIT);
    BENCH_UNTIL(&s.bench, waits.done == 1);
    assert_int_equal(waits.result.fault, HG_FAULT_DOWN);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_CONNECT_FAILURES), 3);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_CONNECTS), 0);
    for (int i = 0; i < 4; i++)
        close(fillers[i]);
    close(fd);
    solo_fini(&s);
}

/* A worker that goes while its probe is under way leaves the duty to another. */
static void t_probe_is_handed_on(void **state)
{
    (void)state;
    struct solo s;
    solo_init(&s, 2);
    solo_start(&s, 4);
    solo_warm_up(&s);
    s.fake.keeps_noops = true;
    fake_stop(&s.fake);
    struct note note;
    solo_ask(&s, &note, "k");
    BENCH_UNTIL(&s.bench, solo_stat(&s, HG_UPSTREAM_BREAKER_OPENS) == 1);
    fake_start(&s.fake);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "") != NULL);
    uint32_t prober = rig_pool(s.stores[0], 0)->coming != NULL ? 0 : 1;
    s.stores[prober]->ops->free(s.stores[prober]);
    s.fake.automatic = true;
    s.bench.rigs[prober] = NULL;
    BENCH_UNTIL(&s.bench, hg_server_may_send(&s.shared->servers[0]));
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_CONNECTIONS), 1);
    s.stores[prober] = rig_store(&s.rigs[prober], s.shared, prober, 1);
    solo_fini(&s);
}

/* A server that fails, while its clients call again from within each answer. */
static struct solo *again_scene;
static int again_left;

static void ask_again(struct hg_call *call, const struct hg_result *result)
{
    (void)result;
    if (again_left == 0)
        return;
    again_left--;
    struct note *note = HG_CONTAINER_OF(call, struct note, call);
    (void)note_submit(note, &again_scene->rigs[0]);
}

static void t_calls_from_within_answers(void **state)
{
    (void)state;
    struct solo s;
    struct note notes[16];
    solo_init(&s, 1);
    s.conf.pool_depth = 4;
    s.conf.times.backend_timeout_ms = 50;
    solo_start(&s, 4);
    solo_warm_up(&s);
    again_scene = &s;
    again_left = 5000;
    for (int i = 0; i < 16; i++) {
        note_init(&notes[i], s.stores[0], HG_OP_GET, (char[2]){(char)('a' + i), 0});
        notes[i].call.key_hash = (uint32_t)i;
        notes[i].call.on_done = ask_again;
        note_submit(&notes[i], &s.rigs[0]);
    }
    size_t answered = s.fake.count;
    for (int round = 0; round < 60; round++) {
        bench_for(&s.bench, 3000);
        if (round % 7 == 3)
            fake_hang_up(&s.fake, round % 3);
        if (round % 11 == 10) {
            fake_stop(&s.fake);
            bench_for(&s.bench, 20000);
            fake_start(&s.fake);
        }
        while (round % 5 != 0 && answered < s.fake.count)
            fake_obey(&s.fake, &s.fake.requests[answered++]);
    }
    solo_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_idle_connection_closed_by_the_server),
        cmocka_unit_test(t_lost_and_moved),
        cmocka_unit_test(t_gone_and_back),
        cmocka_unit_test(t_retries_are_bounded),
        cmocka_unit_test(t_bound_to_a_connection_that_ends),
        cmocka_unit_test(t_nonsense_costs_a_connection_not_the_server),
        cmocka_unit_test(t_connect_times_out),
        cmocka_unit_test(t_probe_is_handed_on),
        cmocka_unit_test(t_calls_from_within_answers),
    };
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("outage", tests, NULL, NULL);
}
