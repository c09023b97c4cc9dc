// t_sock - addresses and sockets
// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/attr.h"
#include "io/sock.h"
#include "patience.h"

static void test_split(void **state)
{
    static const struct {
        const char *text;
        uint16_t default_port;
        int rc;
        const char *host;
        uint16_t port;
        bool is_unix;
    } rows[] = {
        {"127.0.0.1:11211", 0, 0, "127.0.0.1", 11211, false},
        {"cache.example:1", 0, 0, "cache.example", 1, false},
        {"cache.example", 11211, 0, "cache.example", 11211, false},
        {"cache.example:0", 11211, 0, "cache.example", 0, false},
        {"[::1]:65535", 0, 0, "::1", 65535, false},
        {"[fe80::1%eth0]", 7, 0, "fe80::1%eth0", 7, false},
        {"unix:/run/a", 0, 0, "/run/a", 0, true},
        {"/run/a:b", 11211, 0, "/run/a:b", 11211, true},
        {"cache.example", 0, -EINVAL, NULL, 0, false},
        {"", 11211, -EINVAL, NULL, 0, false},
        {":11211", 0, -EINVAL, NULL, 0, false},
        {"host:", 11211, -EINVAL, NULL, 0, false},
        {"host:65536", 0, -EINVAL, NULL, 0, false},
        {"host:-1", 0, -EINVAL, NULL, 0, false},
        {"host:+1", 0, -EINVAL, NULL, 0, false},
        {"host:1x", 0, -EINVAL, NULL, 0, false},
        {"host:18446744073709551617", 0, -EINVAL, NULL, 0, false},
        {"::1:11211", 0, -EINVAL, NULL, 0, false},
        {"[::1", 11211, -EINVAL, NULL, 0, false},
        {"[::1]11211", 0, -EINVAL, NULL, 0, false},
        {"[]:1", 0, -EINVAL, NULL, 0, false},
        {"unix:run/a", 0, -EINVAL, NULL, 0, false},
        {"unix:", 0, -EINVAL, NULL, 0, false},
    };
    (void)state;
    for (unsigned i = 0; i < HG_COUNT_OF(rows); i++) {
        char host[256] = "untouched";
        uint16_t port = 9;
        bool is_unix = false;
        int rc = hg_addr_split(rows[i].text, rows[i].default_port, host, &port, &is_unix);
        if (rc != rows[i].rc)
            fail_msg("'%s': %d", rows[i].text, rc);
        if (rc != 0)
            continue;
        assert_string_equal(host, rows[i].host);
        assert_int_equal(port, rows[i].port);
        assert_int_equal(is_unix, rows[i].is_unix);
    }
    char text[400], host[256];
    uint16_t port;
    bool is_unix;
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_int_equal(hg_addr_split(text, 1, host, &port, &is_unix), -EINVAL);
    text[0] = '/';
    assert_int_equal(hg_addr_split(text, 1, host, &port, &is_unix), -EINVAL);
}

static void test_text_and_back(void **state)
{
    static const char *const texts[] = {"127.0.0.1:11211", "10.1.2.3:1", "[::1]:80",
                                        "[2001:db8::5]:65535", "unix:/run/x/y"};
    static const bool local[] = {true, false, true, false, true};
    (void)state;
    for (unsigned i = 0; i < HG_COUNT_OF(texts); i++) {
        struct hg_addr addr;
        char text[HG_ADDR_TEXT];
        assert_int_equal(hg_addr_parse(texts[i], 0, &addr), 0);
        assert_string_equal(hg_addr_text(&addr, text), texts[i]);
        assert_int_equal(hg_addr_local(&addr), local[i]);
    }
    struct hg_addr addr;
    assert_int_equal(hg_addr_parse("localhost:1", 0, &addr), -EINVAL);
    assert_int_equal(hg_addr_resolve("localhost:1", 0, &addr), 0);
    assert_true(hg_addr_local(&addr));
    assert_int_equal(hg_addr_resolve("no such name:1", 0, &addr), -ENOENT);
}

static void connect_to(const struct hg_addr *addr)
{
    bool done = false;
    int fd = hg_sock_connect(addr, &done);
    assert_true(fd >= 0);
    struct pollfd pfd = {.fd = fd, .events = POLLOUT};
    if (!done)
        assert_int_equal(poll(&pfd, 1, (int)(PATIENCE_US / 1000)), 1);
    assert_int_equal(hg_sock_error(fd), 0);
    hg_sock_tune(fd, 60);
    close(fd);
}

static void test_tcp(void **state)
{
    static const char *const texts[] = {"127.0.0.1:0", "[::1]:0"};
    (void)state;
    for (unsigned i = 0; i < HG_COUNT_OF(texts); i++) {
        struct hg_addr addr;
        assert_int_equal(hg_addr_parse(texts[i], 0, &addr), 0);
        int fd = hg_sock_listen(&addr, 8, 0);
        if (fd == -EADDRNOTAVAIL || fd == -EAFNOSUPPORT) {
            print_message("# %s is not available here\n", texts[i]);
            continue;
        }
        assert_true(fd >= 0);
        assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        addr.len = sizeof addr.sa;
        assert_int_equal(getsockname(fd, (struct sockaddr *)&addr.sa, &addr.len), 0);
        connect_to(&addr);
        assert_int_equal(hg_sock_listen(&addr, 8, 0), -EADDRINUSE);
        close(fd);
        /* Nobody listens: told at once or by the socket's error. */
        bool done;
        fd = hg_sock_connect(&addr, &done);
        if (fd >= 0) {
            struct pollfd pfd = {.fd = fd, .events = POLLOUT};
            assert_int_equal(poll(&pfd, 1, (int)(PATIENCE_US / 1000)), 1);
            assert_int_equal(hg_sock_error(fd), -ECONNREFUSED);
            close(fd);
        } else {
            assert_int_equal(fd, -ECONNREFUSED);
        }
    }
}

static void test_tuned(void **state)
{
    (void)state;
    int fd = socket(AF_INET, SOCK_STREAM, 0), value = 0;
    socklen_t len = sizeof value;
    hg_sock_tune(fd, 0);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &len), 0);
    assert_true(value);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &len), 0);
    assert_false(value);
    hg_sock_tune(fd, 90);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &len), 0);
    assert_true(value);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &value, &len), 0);
    assert_int_equal(value, 90);
    close(fd);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    hg_sock_tune(fd, 90);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &len), 0);
    assert_false(value);
    close(fd);
}

static void test_unix(void **state)
{
    char dir[] = "/tmp/t_sock.XXXXXX", path[64], text[80];
    struct hg_addr addr;
    struct stat st;
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/s", dir);
    snprintf(text, sizeof text, "unix:%s", path);
    assert_int_equal(hg_addr_parse(text, 0, &addr), 0);
    int fd = hg_sock_listen(&addr, 8, 0620);
    assert_true(fd >= 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0620);
    connect_to(&addr);
    /* Somebody listens there. */
    assert_int_equal(hg_sock_listen(&addr, 8, 0600), -EADDRINUSE);
    connect_to(&addr);
    /* Nobody does any more: the file is replaced. */
    close(fd);
    assert_int_equal(stat(path, &st), 0);
    fd = hg_sock_listen(&addr, 8, 0600);
    assert_true(fd >= 0);
    connect_to(&addr);
    close(fd);
    unlink(path);
    /* What is no socket is never touched. */
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    close(fd);
    assert_int_equal(hg_sock_listen(&addr, 8, 0600), -EADDRINUSE);
    assert_int_equal(stat(path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    unlink(path);
    rmdir(dir);
    assert_int_equal(hg_sock_listen(&addr, 8, 0600), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split), cmocka_unit_test(test_text_and_back),
        cmocka_unit_test(test_tcp),   cmocka_unit_test(test_tuned),
        cmocka_unit_test(test_unix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
