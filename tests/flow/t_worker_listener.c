// t_worker_listener - accepting: to the least loaded worker, up to the limit and a little beyond
// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "front/listener.h"
#include "scene.h"

#define MOST 400

struct hall {
    struct stage stage;
    struct hg_loop loop; /* the main thread's */
    struct hg_listeners *listeners;
    struct hg_addr bound;
    struct client clients[MOST];
};

static struct hall hall;

static void open_hall(const char *where, unsigned max)
{
    struct hg_addr addr;
    memset(&hall, 0, sizeof hall);
    stage_init(&hall.stage, 2);
    stage_open(&hall.stage);
    assert_int_equal(hg_loop_init(&hall.loop), 0);
    hall.listeners = hg_listeners_new(&hall.loop, &hall.stage.front, max);
    assert_non_null(hall.listeners);
    assert_int_equal(hg_addr_parse(where, 0, &addr), 0);
    assert_int_equal(hg_listeners_add(hall.listeners, &addr, 0600, &hall.bound), 0);
    assert_int_equal(hg_listeners_start(hall.listeners), 0);
    for (unsigned c = 0; c < MOST; c++)
        client_init(&hall.clients[c], -1);
}

static void close_hall(void)
{
    for (unsigned c = 0; c < MOST; c++)
        client_close(&hall.clients[c]);
    hg_listeners_free(hall.listeners);
    hg_loop_fini(&hall.loop);
    stage_close(&hall.stage);
}

static void dial(unsigned c)
{
    int fd = socket(hall.bound.sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&hall.bound.sa, hall.bound.len), 0);
    client_init(&hall.clients[c], fd);
}

static void turn_all(void)
{
    for (unsigned n = 0; n < 20; n++)
        hg_loop_turn(&hall.loop, false);
    stage_run(&hall.stage);
}

static uint64_t stat_of(const hg_counter *counter)
{
    return hg_counter_get(counter);
}

static void ask(unsigned c, uint16_t status)
{
    client_ask(&hall.clients[c], HG_OPCODE_NOOP, NULL, c);
    stage_expect(&hall.stage, &hall.clients[c], HG_OPCODE_NOOP, status, c);
}

static void test_least_loaded(void **state)
{
    (void)state;
    open_hall("127.0.0.1:0", 100);
    for (unsigned c = 0; c < 20; c++) {
        dial(c);
        turn_all();
    }
    for (unsigned w = 0; w < 2; w++)
        assert_int_equal(hg_counter_get(&hall.stage.workers[w].connections), 10);
    /* Those of one worker go: the next ones are his. */
    struct hg_worker *left = &hall.stage.workers[0];
    HG_LIST_EACH(node, &left->sessions)
    hg_session_close(HG_CONTAINER_OF(node, struct hg_session, node));
    turn_all();
    for (unsigned c = 20; c < 30; c++)
        dial(c);
    turn_all();
    for (unsigned w = 0; w < 2; w++)
        assert_int_equal(hg_counter_get(&hall.stage.workers[w].connections), 10);
    close_hall();
}

static void test_limit(void **state)
{
    (void)state;
    const unsigned max = 5;
    open_hall("127.0.0.1:0", max);
    for (unsigned c = 0; c < max + HG_OVER_LIMIT_GUESTS + 10; c++) {
        dial(c);
        if (c % 50 == 0)
            turn_all();
    }
    turn_all();
    const struct hg_listeners_stats *stats = hg_listeners_stats(hall.listeners);
    assert_int_equal(stat_of(&stats->accepted), max + HG_OVER_LIMIT_GUESTS + 10);
    assert_int_equal(stat_of(&stats->over_limit), HG_OVER_LIMIT_GUESTS + 10);
    assert_int_equal(stat_of(&stats->refused), 10);
    ask(0, 0);
    ask(max - 1, 0);
    ask(max, HG_STATUS_EBUSY);
    stage_expect_end(&hall.stage, &hall.clients[max]);
    ask(max + HG_OVER_LIMIT_GUESTS - 1, HG_STATUS_EBUSY);
    stage_expect_end(&hall.stage, &hall.clients[max + HG_OVER_LIMIT_GUESTS]);
    /* Guests that ask nothing do not stay; then there are places again. */
    stage_advance(6000000);
    stage_timer(&hall.stage);
    for (unsigned c = 0; c < 3; c++)
        client_close(&hall.clients[c]);
    for (unsigned c = max; c < MOST; c++)
        client_close(&hall.clients[c]);
    turn_all();
    assert_int_equal(stage_sessions(&hall.stage), 2);
    dial(0);
    turn_all();
    ask(0, 0);
    hg_listeners_set_max(hall.listeners, 1);
    dial(1);
    turn_all();
    ask(1, HG_STATUS_EBUSY);
    close_hall();
}

static void test_unix(void **state)
{
    char dir[] = "/tmp/t_listener.XXXXXX", path[64], text[80], peer[HG_ADDR_TEXT];
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/s", dir);
    snprintf(text, sizeof text, "unix:%s", path);
    open_hall(text, 10);
    dial(0);
    turn_all();
    ask(0, 0);
    assert_string_equal(hg_addr_text(&stage_session(&hall.stage)->peer, peer), text);
    hg_listeners_close(hall.listeners);
    assert_int_equal(access(path, F_OK), -1); /* the file goes with the listener */
    ask(0, 0);
    close_hall();
    rmdir(dir);
}

/* No descriptor is left: accepting pauses, it does not spin, and goes on by itself. */
static void test_out_of_descriptors(void **state)
{
    struct rlimit limit, low;
    (void)state;
    open_hall("127.0.0.1:0", 10);
    for (unsigned c = 0; c < 3; c++)
        dial(c);
    int next = dup(0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    uint64_t begun_us = hg_now_us();
    turn_all();
    const struct hg_listeners_stats *stats = hg_listeners_stats(hall.listeners);
    /* Once, and once more for each pause that a busy machine took for these turns. */
    uint64_t pauses = (hg_now_us() - begun_us) / HG_ACCEPT_PAUSE_US;
    assert_in_range(stat_of(&stats->failed), 1, 1 + pauses);
    assert_int_equal(stat_of(&stats->accepted), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    uint64_t deadline_us = stage_deadline();
    while (stat_of(&stats->accepted) < 3 && hg_now_us() < deadline_us)
        hg_loop_turn(&hall.loop, true);
    assert_int_equal(stat_of(&stats->accepted), 3);
    turn_all();
    for (unsigned c = 0; c < 3; c++)
        ask(c, 0);
    close_hall();
}

static void test_address_in_use(void **state)
{
    (void)state;
    open_hall("127.0.0.1:0", 10);
    assert_int_equal(hg_listeners_add(hall.listeners, &hall.bound, 0600, NULL), -EADDRINUSE);
    dial(0);
    turn_all();
    ask(0, 0);
    close_hall();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least_loaded),   cmocka_unit_test(test_limit),
        cmocka_unit_test(test_unix),           cmocka_unit_test(test_out_of_descriptors),
        cmocka_unit_test(test_address_in_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
