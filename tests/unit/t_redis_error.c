// t_redis_error - what errors of Redis mean, in the words of its versions
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "back/redis_error.h"
#include "proto/status.h"

static struct hg_redis_error read_error(const char *said, size_t len)
{
    struct hg_redis_error error;
    memset(&error, 0xee, sizeof error);
    hg_redis_error_read(hg_span(said, len), &error);
    assert_in_range(error.text_len, 1, sizeof error.text - 1);
    error.text[error.text_len] = '\0';
    return error;
}

static void t_table(void **state)
{
    (void)state;
    static const struct {
        const char *said;
        uint16_t status;
        enum hg_again again;
        const char *text;
    } rows[] = {
        {"LOADING Redis is loading the dataset in memory", HG_STATUS_ETMPFAIL, HG_AGAIN_LOADING,
         "reading its data in"},
        {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
         HG_STATUS_EBUSY, HG_AGAIN_NO, "busy"},
        {"OOM command not allowed when used memory > 'maxmemory'.", HG_STATUS_ENOMEM, HG_AGAIN_NO,
         "maxmemory"},
        {"OOM command not allowed when used memory > 'maxmemory'. script: 0f, on @user_script:1.",
         HG_STATUS_ENOMEM, HG_AGAIN_NO, "maxmemory"},
        {"ERR Error running script (call to f_8ee8): @user_script:1: @user_script: 1: -OOM command "
         "not allowed when used memory > 'maxmemory'.",
         HG_STATUS_ENOMEM, HG_AGAIN_NO, "(OOM command not allowed"},
        {"ERR Error running script (call to f_8ee8): @user_script:12: WRONGTYPE Operation against "
         "a key holding the wrong kind of value",
         HG_STATUS_NOT_SUPPORTED, HG_AGAIN_NO, "no string"},
        {"ERR Error running script (call to f_8ee8): @user_script:1: -READONLY You can't write "
         "against a read only replica.",
         HG_STATUS_ETMPFAIL, HG_AGAIN_READONLY, "replica"},
        {"ERR Error running script", HG_STATUS_EINTERNAL, HG_AGAIN_NO, "Error running script"},
        {"READONLY You can't write against a read only replica.", HG_STATUS_ETMPFAIL,
         HG_AGAIN_READONLY, "replica"},
        {"NOAUTH Authentication required.", HG_STATUS_EINTERNAL, HG_AGAIN_NO, "login"},
        {"WRONGPASS invalid username-password pair or user is disabled.", HG_STATUS_EINTERNAL,
         HG_AGAIN_NO, "password is wrong"},
        {"ERR invalid password", HG_STATUS_EINTERNAL, HG_AGAIN_NO, "password is wrong"},
        {"ERR AUTH <password> called without any password configured for the default user. Are "
         "you sure your configuration is correct?",
         HG_STATUS_EINTERNAL, HG_AGAIN_NO, "has no password"},
        {"NOPERM this user has no permissions to run the 'get' command", HG_STATUS_EACCESS,
         HG_AGAIN_NO, "may not run"},
        {"WRONGTYPE Operation against a key holding the wrong kind of value",
         HG_STATUS_NOT_SUPPORTED, HG_AGAIN_NO, "no string"},
        {"MISCONF Redis is configured to save RDB snapshots", HG_STATUS_ETMPFAIL, HG_AGAIN_NO,
         "cannot save"},
        {"NOSCRIPT No matching script. Please use EVAL.", HG_STATUS_ETMPFAIL, HG_AGAIN_NOSCRIPT,
         "scripts"},
        {"CLUSTERDOWN The cluster is down", HG_STATUS_ETMPFAIL, HG_AGAIN_DOWN, "cluster is down"},
        {"CLUSTERDOWN Hash slot not served", HG_STATUS_ETMPFAIL, HG_AGAIN_DOWN, "cluster"},
        {"TRYAGAIN Multiple keys request during rehashing of slot", HG_STATUS_ETMPFAIL,
         HG_AGAIN_TRYAGAIN, "moving"},
        {"MASTERDOWN Link with MASTER is down", HG_STATUS_ETMPFAIL, HG_AGAIN_NO, "master"},
        {"EXECABORT Transaction discarded", HG_STATUS_EINTERNAL, HG_AGAIN_NO, "transaction"},
        {"CROSSSLOT Keys in request don't hash to the same slot", HG_STATUS_EINTERNAL, HG_AGAIN_NO,
         "slots"},
        {"ERR DB index is out of range", HG_STATUS_EINTERNAL, HG_AGAIN_NO, "databases"},
        {"ERR max number of clients reached", HG_STATUS_EBUSY, HG_AGAIN_NO, "maxclients"},
        {"ERR max number of clients + cluster connections reached", HG_STATUS_EBUSY, HG_AGAIN_NO,
         "maxclients"},
        {"ERR unknown command `GETEX`, with args beginning with:", HG_STATUS_NOT_SUPPORTED,
         HG_AGAIN_NO, "6.2"},
        {"ERR string exceeds maximum allowed size (512MB)", HG_STATUS_E2BIG, HG_AGAIN_NO, "larger"},
        {"ERR whatever", HG_STATUS_EINTERNAL, HG_AGAIN_NO, "(ERR whatever)"},
        {"", HG_STATUS_EINTERNAL, HG_AGAIN_NO, "redis failed ()"},
        {"LOAD", HG_STATUS_EINTERNAL, HG_AGAIN_NO, "(LOAD)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hg_redis_error error = read_error(rows[i].said, strlen(rows[i].said));
        if (error.status != rows[i].status || error.again != rows[i].again ||
            strstr(error.text, rows[i].text) == NULL)
            fail_msg("\"%s\": %#x, again %d, %s", rows[i].said, error.status, error.again,
                     error.text);
    }
}

static void t_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *said;
        enum hg_again again;
        uint16_t slot;
        const char *address;
    } rows[] = {
        {"MOVED 3999 127.0.0.1:6381", HG_AGAIN_MOVED, 3999, "127.0.0.1:6381"},
        {"ASK 0 [::1]:6381", HG_AGAIN_ASK, 0, "[::1]:6381"},
        {"MOVED 16383 :7000", HG_AGAIN_MOVED, 16383, ":7000"},
        {"MOVED 5 host.example.org:6381 more", HG_AGAIN_MOVED, 5, "host.example.org:6381"},
        {"MOVED 16384 127.0.0.1:6381", HG_AGAIN_NO, 0, ""},
        {"MOVED 99999999999999999999 127.0.0.1:6381", HG_AGAIN_NO, 0, ""},
        {"MOVED", HG_AGAIN_NO, 0, ""},
        {"MOVED ", HG_AGAIN_NO, 0, ""},
        {"MOVED 1", HG_AGAIN_NO, 0, ""},
        {"MOVED 1 ", HG_AGAIN_NO, 0, ""},
        {"MOVED x 127.0.0.1:6381", HG_AGAIN_NO, 0, ""},
        {"ASK 1 nowhere", HG_AGAIN_NO, 0, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hg_redis_error error = read_error(rows[i].said, strlen(rows[i].said));
        bool right = error.again == rows[i].again && error.slot == rows[i].slot &&
                     error.address.len == strlen(rows[i].address) &&
                     (error.address.len == 0 ||
                      memcmp(error.address.at, rows[i].address, error.address.len) == 0);
        if (!right)
            fail_msg("\"%s\": again %d, slot %u", rows[i].said, error.again, error.slot);
        assert_int_equal(error.status, HG_STATUS_EINTERNAL);
    }
}

/* Bytes that are no text, and more of them than a client should get. */
static void t_escaped_and_cut(void **state)
{
    (void)state;
    struct hg_redis_error error = read_error("ERR a\nb\0\xff\"", 9);
    assert_non_null(strstr(error.text, "(ERR a\\x0ab\\x00\\xff)"));
    char said[8000];
    memset(said, 1, sizeof said);
    error = read_error(said, sizeof said);
    assert_in_range(error.text_len, 100, 300);
    assert_non_null(strstr(error.text, "...)"));
    memset(said, 'x', sizeof said);
    error = read_error(said, sizeof said);
    assert_non_null(strstr(error.text, "xxx...)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_table),
        cmocka_unit_test(t_addresses),
        cmocka_unit_test(t_escaped_and_cut),
    };
    return cmocka_run_group_tests_name("redis_error", tests, NULL, NULL);
}
