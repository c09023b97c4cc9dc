// t_notify - what the service manager is told, and whether all threads live
// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "app/liveness.h"
#include "app/notify.h"

static void test_texts(void **state)
{
    char out[HG_NOTIFY_BYTES];
    (void)state;
    assert_string_equal(hg_notify_ready(out, "serving"), "READY=1\nSTATUS=serving");
    assert_string_equal(hg_notify_reloading(out, 18446744073709551615ull),
                        "RELOADING=1\nMONOTONIC_USEC=18446744073709551615\nSTATUS=reloading");
    assert_string_equal(hg_notify_stopping(out, "draining"), "STOPPING=1\nSTATUS=draining");
    assert_string_equal(hg_notify_main_pid(out, 4711), "MAINPID=4711");
}

static void test_addresses(void **state)
{
    struct sockaddr_un un;
    socklen_t len = 0;
    char text[200];
    (void)state;
    assert_int_equal(hg_notify_address("/run/x", &un, &len), 0);
    assert_string_equal(un.sun_path, "/run/x");
    assert_int_equal(len, offsetof(struct sockaddr_un, sun_path) + 6);
    assert_int_equal(hg_notify_address("@x/y", &un, &len), 0);
    assert_memory_equal(un.sun_path, "\0x/y", 5);
    assert_int_equal(len, offsetof(struct sockaddr_un, sun_path) + 4);
    assert_int_equal(hg_notify_address("", &un, &len), -EINVAL);
    assert_int_equal(hg_notify_address("/", &un, &len), -EINVAL);
    assert_int_equal(hg_notify_address("@", &un, &len), -EINVAL);
    assert_int_equal(hg_notify_address("vsock:2:1", &un, &len), -EINVAL);
    assert_int_equal(hg_notify_address("run/x", &un, &len), -EINVAL);
    memset(text, 'x', sizeof text);
    text[0] = '/';
    text[sizeof un.sun_path - 1] = '\0';
    assert_int_equal(hg_notify_address(text, &un, &len), 0);
    text[sizeof un.sun_path - 1] = 'x';
    text[sizeof un.sun_path] = '\0';
    assert_int_equal(hg_notify_address(text, &un, &len), -EINVAL);
}

static void test_watchdog(void **state)
{
    (void)state;
    assert_int_equal(hg_notify_watchdog_us(NULL, NULL, 42), 0);
    assert_int_equal(hg_notify_watchdog_us("30000000", NULL, 42), 30000000);
    assert_int_equal(hg_notify_watchdog_us("30000000", "42", 42), 30000000);
    assert_int_equal(hg_notify_watchdog_us("30000000", "41", 42), 0);
    assert_int_equal(hg_notify_watchdog_us("30000000", "0", 42), 0);
    assert_int_equal(hg_notify_watchdog_us("30000000", "x", 42), 0);
    assert_int_equal(hg_notify_watchdog_us("", "42", 42), 0);
    assert_int_equal(hg_notify_watchdog_us("-1", "42", 42), 0);
    assert_int_equal(hg_notify_watchdog_us("1s", "42", 42), 0);
    assert_int_equal(hg_notify_watchdog_us("99999999999999999999", "42", 42), 0);
}

/* The watchdog of a predecessor, and nobody else's, is this process's from now on. */
static void test_succeeding(void **state)
{
    char own[24];
    (void)state;
    snprintf(own, sizeof own, "%d", (int)getpid());
    unsetenv("WATCHDOG_PID");
    hg_notify_succeed(41);
    assert_null(getenv("WATCHDOG_PID"));
    setenv("WATCHDOG_PID", "40", 1);
    hg_notify_succeed(41);
    assert_string_equal(getenv("WATCHDOG_PID"), "40");
    hg_notify_succeed(40);
    assert_string_equal(getenv("WATCHDOG_PID"), own);
    unsetenv("WATCHDOG_PID");
}

/* What is sent arrives as one datagram; nobody there is no fault. */
static void test_sending(void **state)
{
    char dir[] = "/tmp/t_notify.XXXXXX", path[64], got[64];
    struct sockaddr_un un;
    socklen_t len = 0;
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/sock", dir);
    assert_int_equal(hg_notify_address(path, &un, &len), 0);
    hg_notify_send("before it is open");
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&un, len), 0);
    setenv("NOTIFY_SOCKET", path, 1);
    hg_notify_open();
    hg_notify_send("READY=1");
    hg_notify_send("WATCHDOG=1");
    assert_int_equal(recv(fd, got, sizeof got, 0), 7);
    assert_memory_equal(got, "READY=1", 7);
    assert_int_equal(recv(fd, got, sizeof got, 0), 10);
    close(fd);
    hg_notify_send("nobody listens");
    unlink(path);
    hg_notify_send("nobody is there");
    hg_notify_close();
    hg_notify_send("after its end");
    unsetenv("NOTIFY_SOCKET");
    rmdir(dir);
}

/* ---- liveness ---- */

static void test_all_live(void **state)
{
    struct hg_liveness liveness;
    uint64_t counts[3] = {0, 5, UINT64_MAX};
    (void)state;
    hg_liveness_init(&liveness, counts, 3);
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < 3; i++)
            counts[i] += i + 1;
        assert_int_equal(hg_liveness_look(&liveness, counts), HG_LIVENESS_NONE);
    }
}

/* One that hangs keeps the ping back until it has moved, however often the others do. */
static void test_one_hangs(void **state)
{
    (void)state;
    for (size_t stuck = 0; stuck < 3; stuck++) {
        struct hg_liveness liveness;
        uint64_t counts[3] = {1, 1, 1};
        hg_liveness_init(&liveness, counts, 3);
        for (unsigned round = 0; round < 4; round++) {
            for (size_t i = 0; i < 3; i++)
                counts[i] += i != stuck;
            assert_int_equal(hg_liveness_look(&liveness, counts), stuck);
        }
        counts[stuck]++;
        /* The others need not have moved since the last look, but since the last ping. */
        assert_int_equal(hg_liveness_look(&liveness, counts), HG_LIVENESS_NONE);
        assert_int_equal(hg_liveness_look(&liveness, counts), 0);
    }
}

/* Counters may be set back to 0. */
static void test_reset_counts(void **state)
{
    struct hg_liveness liveness;
    uint64_t counts[1] = {1000};
    (void)state;
    hg_liveness_init(&liveness, counts, 1);
    counts[0] = 3;
    assert_int_equal(hg_liveness_look(&liveness, counts), HG_LIVENESS_NONE);
}

static void test_many(void **state)
{
    struct hg_liveness liveness;
    uint64_t counts[HG_LIVENESS_MAX + 1] = {0};
    (void)state;
    hg_liveness_init(&liveness, counts, HG_LIVENESS_MAX + 1);
    assert_int_equal(liveness.count, HG_LIVENESS_MAX);
    for (size_t i = 0; i < HG_LIVENESS_MAX; i++)
        counts[i] = 1;
    assert_int_equal(hg_liveness_look(&liveness, counts), HG_LIVENESS_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),     cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_watchdog),  cmocka_unit_test(test_succeeding),
        cmocka_unit_test(test_sending),   cmocka_unit_test(test_all_live),
        cmocka_unit_test(test_one_hangs), cmocka_unit_test(test_reset_counts),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
