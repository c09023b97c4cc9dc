// t_inherit - which inherited socket serves which entry of the configuration, and what is refused
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

#include "app/handover_wire.h"
#include "app/inherit.h"

static struct hg_addr addr(const char *text)
{
    struct hg_addr ret;
    assert_int_equal(hg_addr_parse(text, 0, &ret), 0);
    return ret;
}

static void add(struct hg_inherit *inherit, int fd, const char *text, bool both)
{
    struct hg_inherited *to = &inherit->sockets[inherit->count++];
    memset(to, 0, sizeof *to);
    to->fd = fd;
    to->addr = addr(text);
    to->both_families = both;
    to->purpose = HG_INHERIT_LISTEN;
}

static void test_fit(void **state)
{
    static const struct {
        const char *have;
        bool both;
        const char *want;
        enum hg_inherit_fit fit;
    } rows[] = {
        {"127.0.0.1:1", false, "127.0.0.1:1", HG_INHERIT_FIT_EXACT},
        {"127.0.0.1:1", false, "127.0.0.1:2", HG_INHERIT_FIT_NONE},
        {"127.0.0.1:1", false, "127.0.0.2:1", HG_INHERIT_FIT_NONE},
        {"127.0.0.1:1", false, "127.0.0.1:0", HG_INHERIT_FIT_PORT},
        {"127.0.0.1:1", false, "127.0.0.2:0", HG_INHERIT_FIT_NONE},
        {"[::ffff:127.0.0.1]:1", false, "127.0.0.1:1", HG_INHERIT_FIT_EXACT},
        {"0.0.0.0:1", false, "0.0.0.0:1", HG_INHERIT_FIT_EXACT},
        {"0.0.0.0:1", false, "127.0.0.1:1", HG_INHERIT_FIT_NONE},
        {"[::]:1", false, "[::]:1", HG_INHERIT_FIT_EXACT},
        {"[::]:1", false, "0.0.0.0:1", HG_INHERIT_FIT_NONE},
        {"[::]:1", true, "0.0.0.0:1", HG_INHERIT_FIT_WILDCARD},
        {"[::]:1", true, "0.0.0.0:2", HG_INHERIT_FIT_NONE},
        {"[::]:1", true, "127.0.0.1:1", HG_INHERIT_FIT_NONE},
        {"[::1]:1", true, "0.0.0.0:1", HG_INHERIT_FIT_NONE},
        {"unix:/a", false, "/a", HG_INHERIT_FIT_EXACT},
        {"unix:/a", false, "/b", HG_INHERIT_FIT_NONE},
        {"unix:/a", false, "127.0.0.1:1", HG_INHERIT_FIT_NONE},
        {"127.0.0.1:1", false, "/a", HG_INHERIT_FIT_NONE},
    };
    (void)state;
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++) {
        struct hg_inherit inherit = {.count = 0};
        struct hg_addr want = addr(rows[i].want);
        print_message("# %s for %s\n", rows[i].have, rows[i].want);
        add(&inherit, 5, rows[i].have, rows[i].both);
        assert_int_equal(hg_inherit_fit(&inherit.sockets[0], &want), rows[i].fit);
    }
}

/* Whatever the order of entries and sockets, the exact one wins, and nothing is given twice. */
static void test_take(void **state)
{
    (void)state;
    for (unsigned turned = 0; turned < 2; turned++) {
        struct hg_inherit inherit = {.count = 0};
        struct hg_inherit_share got[4];
        struct hg_addr wants[4] = {addr("0.0.0.0:1"), addr("127.0.0.1:0"), addr("127.0.0.1:7"),
                                   addr("127.0.0.1:9")};
        add(&inherit, 10, turned ? "0.0.0.0:1" : "[::]:1", true);
        add(&inherit, 11, turned ? "[::]:1" : "0.0.0.0:1", true);
        add(&inherit, 12, turned ? "127.0.0.1:7" : "127.0.0.1:6", false);
        add(&inherit, 13, turned ? "127.0.0.1:6" : "127.0.0.1:7", false);
        hg_inherit_take(&inherit, HG_INHERIT_LISTEN, wants, 4, got);
        assert_int_equal(got[0].fd, turned ? 10 : 11);
        assert_int_equal(got[1].fd, turned ? 13 : 12);
        assert_int_equal(got[2].fd, turned ? 12 : 13);
        assert_int_equal(got[3].fd, -ENOENT);
        assert_ptr_equal(hg_inherit_left(&inherit), &inherit.sockets[turned ? 1 : 0]);
    }
}

/* A socket for both families that the IPv6 entry got serves the IPv4 entry, which cannot be bound
   beside it. */
static void test_both_families(void **state)
{
    struct hg_inherit inherit = {.count = 0};
    struct hg_inherit_share got[2];
    struct hg_addr wants[2] = {addr("0.0.0.0:1"), addr("[::]:1")};
    (void)state;
    add(&inherit, 10, "[::]:1", true);
    hg_inherit_take(&inherit, HG_INHERIT_LISTEN, wants, 2, got);
    assert_int_equal(got[0].fd, -EALREADY);
    assert_int_equal(got[1].fd, 10);
    add(&inherit, 11, "[::]:2", true);
    wants[0] = addr("0.0.0.0:2");
    hg_inherit_take(&inherit, HG_INHERIT_LISTEN, wants, 1, got);
    assert_int_equal(got[0].fd, 11);
    assert_null(hg_inherit_left(&inherit));
}

static void test_purposes(void **state)
{
    struct hg_inherit inherit = {.count = 0};
    struct hg_inherit_share got;
    struct hg_addr want = addr("127.0.0.1:0");
    (void)state;
    add(&inherit, 10, "127.0.0.1:1", false);
    hg_inherit_take(&inherit, HG_INHERIT_ADMIN, &want, 1, &got);
    assert_int_equal(got.fd, -ENOENT);
    /* A parent does not say what a socket is for, and its address has to be named. */
    inherit.from_parent = true;
    hg_inherit_take(&inherit, HG_INHERIT_ADMIN, &want, 1, &got);
    assert_int_equal(got.fd, -ENOENT);
    want = addr("127.0.0.1:1");
    hg_inherit_take(&inherit, HG_INHERIT_ADMIN, &want, 1, &got);
    assert_int_equal(got.fd, 10);
}

static void test_count(void **state)
{
    static const struct {
        const char *pid, *fds;
        int count;
    } rows[] = {
        {NULL, NULL, 0},     {"42", NULL, 0},       {NULL, "1", 0},
        {"42", "2", 2},      {"41", "2", 0},        {"42", "0", 0},
        {"42", "80", 80},    {"42", "81", -EINVAL}, {"42", "-1", -EINVAL},
        {"42", "", -EINVAL}, {"42", "2x", -EINVAL}, {"x", "2", -EINVAL},
        {"", "2", -EINVAL},  {"41", "nonsense", 0}, {"42", "99999999999999999999", -EINVAL},
    };
    char why[512];
    (void)state;
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++) {
        print_message("# LISTEN_PID=%s LISTEN_FDS=%s\n", rows[i].pid, rows[i].fds);
        assert_int_equal(hg_inherit_count(rows[i].pid, rows[i].fds, 42, why), rows[i].count);
    }
}

static void test_add(void **state)
{
    struct hg_inherit inherit = {.count = 0};
    struct hg_addr any = addr("127.0.0.1:0");
    char why[512] = "";
    int pair[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(hg_inherit_add(&inherit, pair[0], HG_INHERIT_ANY, "pair", why), -EINVAL);
    assert_non_null(strstr(why, "'pair'"));
    close(pair[0]);
    assert_int_equal(hg_inherit_add(&inherit, pair[0], HG_INHERIT_ANY, "gone", why), -EBADF);
    close(pair[1]);
    int fd = hg_sock_listen(&any, 1, 0);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_SETFD, 0), 0);
    assert_int_equal(hg_inherit_add(&inherit, fd, HG_INHERIT_ANY, "good", why), 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    for (unsigned i = 1; i < HG_INHERIT_MAX; i++)
        assert_int_equal(hg_inherit_add(&inherit, dup(fd), HG_INHERIT_ANY, "copy", why), 0);
    assert_int_equal(hg_inherit_add(&inherit, fd, HG_INHERIT_ANY, "more", why), -E2BIG);
    hg_inherit_close(&inherit);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

/* ---- messages of a hand-over ---- */

static void test_check(void **state)
{
    struct hg_handover_msg msg;
    (void)state;
    memset(&msg, 0, sizeof msg);
    msg.magic = HG_HANDOVER_MAGIC;
    msg.version = HG_HANDOVER_VERSION;
    msg.kind = HG_HANDOVER_HELLO;
    assert_int_equal(hg_handover_check(&msg, sizeof msg), 0);
    for (size_t len = 0; len < sizeof msg; len++)
        assert_int_equal(hg_handover_check(&msg, len), -EPROTO);
    msg.count = HG_INHERIT_MAX + 1;
    assert_int_equal(hg_handover_check(&msg, sizeof msg), -EPROTO);
    msg.count = 0;
    memset(msg.why, 'x', sizeof msg.why);
    assert_int_equal(hg_handover_check(&msg, sizeof msg), -EPROTO);
    msg.why[0] = '\0';
    msg.kind = HG_HANDOVER_BYE + 1;
    assert_int_equal(hg_handover_check(&msg, sizeof msg), -EPROTO);
    msg.version++;
    assert_int_equal(hg_handover_check(&msg, sizeof msg), -EPROTONOSUPPORT);
    /* Another version may be longer or shorter; so much of it is the same. */
    assert_int_equal(hg_handover_check(&msg, 8), -EPROTONOSUPPORT);
    msg.magic++;
    assert_int_equal(hg_handover_check(&msg, sizeof msg), -EPROTO);
}

static void test_descriptors_travel(void **state)
{
    struct hg_handover_msg msg;
    int pair[2], fds[HG_INHERIT_MAX], got[HG_INHERIT_MAX];
    unsigned count = 9;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    assert_int_equal(hg_handover_receive(pair[1], &msg, got, &count), -EAGAIN);
    assert_int_equal(hg_handover_await(pair[1], 10, &msg, got, &count), -ETIMEDOUT);
    for (unsigned i = 0; i < HG_INHERIT_MAX; i++)
        fds[i] = pair[0];
    memset(&msg, 0, sizeof msg);
    msg.kind = HG_HANDOVER_OFFER;
    msg.drain_ms = 77;
    assert_int_equal(hg_handover_send(pair[0], &msg, fds, HG_INHERIT_MAX), 0);
    assert_int_equal(hg_handover_say(pair[0], HG_HANDOVER_BYE), 0);
    memset(&msg, 0, sizeof msg);
    assert_int_equal(hg_handover_await(pair[1], 1000, &msg, got, &count), 0);
    assert_int_equal(count, HG_INHERIT_MAX);
    assert_int_equal(msg.drain_ms, 77);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(fcntl(got[i], F_GETFD), FD_CLOEXEC);
        close(got[i]);
    }
    assert_int_equal(hg_handover_await(pair[1], 1000, &msg, got, &count), 0);
    assert_int_equal(msg.kind, HG_HANDOVER_BYE);
    assert_int_equal(count, 0);
    /* One that says less than it brings: nothing is kept. */
    msg.kind = HG_HANDOVER_OFFER;
    assert_int_equal(hg_handover_send(pair[0], &msg, NULL, 0), 0);
    close(pair[0]);
    assert_int_equal(hg_handover_receive(pair[1], &msg, got, &count), 0);
    assert_int_equal(hg_handover_receive(pair[1], &msg, got, &count), -ECONNRESET);
    close(pair[1]);
}

static void test_peer(void **state)
{
    int pair[2];
    pid_t pid = 0;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    assert_int_equal(hg_handover_peer(pair[0], &pid), 0);
    assert_int_equal(pid, getpid());
    close(pair[0]);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fit),           cmocka_unit_test(test_take),
        cmocka_unit_test(test_both_families), cmocka_unit_test(test_purposes),
        cmocka_unit_test(test_count),         cmocka_unit_test(test_add),
        cmocka_unit_test(test_check),         cmocka_unit_test(test_descriptors_travel),
        cmocka_unit_test(test_peer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
