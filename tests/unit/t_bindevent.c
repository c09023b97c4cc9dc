// t_bindevent - the lines of the log, to the letter
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "bindhelp.h"
#include "core/bindevent.h"

static char out[HG_BINDEVENT_BYTES];

static struct hg_bindevent_key classic(const char *text)
{
    return (struct hg_bindevent_key){"shop", key_of(HG_HOT_QUERY, text)};
}

static void test_the_lines_of_the_design(void **state)
{
    struct hg_bindevent_key of = classic("29001111");
    (void)state;
    hg_bindevent_evict(out, sizeof out, &of, 17);
    assert_string_equal(out, "BIND_EVICT     shop/QUERY 1 pid=17&k=key&v=29001111");
    hg_bindevent_evict(out, sizeof out, &of, HG_BINDEVENT_NO_SLOT);
    assert_string_equal(out, "BIND_EVICT     shop/QUERY 1 pid=-&k=key&v=29001111");
    hg_bindevent_throttle(out, sizeof out, &of, 67, "127.0.0.1:37676");
    assert_string_equal(out, "BIND_THROTTLE  shop/QUERY 1 k=key&v=29001111&allowEveryX=67"
                             "&allowFrac=0.01493&raddr=127.0.0.1:37676");
    hg_bindevent_incr(out, sizeof out, &of, 25);
    assert_string_equal(out,
                        "bind throttle incr class:shop/QUERY bindName:key val:29001111 prev:25");
    hg_bindevent_decr(out, sizeof out, &of, 2065, 2);
    assert_string_equal(
        out, "bind throttle decr class:shop/QUERY bindName:key val:29001111 allowEveryX:2065-2");
}

static void test_types(void **state)
{
    static const char *const names[] = {"ALL", "INSERT", "DELETE", "UPDATE", "QUERY"};
    (void)state;
    for (unsigned type = 0; type < HG_HOT_TYPES; type++) {
        struct hg_bindevent_key of = {"mugs", key_of((enum hg_hot_type)type, "k")};
        char expected[64];
        snprintf(expected, sizeof expected, "BIND_EVICT     mugs/%s 1 pid=0&k=key&v=k",
                 names[type]);
        assert_int_equal(hg_bindevent_evict(out, sizeof out, &of, 0), strlen(expected));
        assert_string_equal(out, expected);
    }
}

static void test_a_row_of_a_table(void **state)
{
    struct hg_bindevent_key of = classic("ordersrow-0001");
    (void)state;
    of.key.table_len = 6;
    hg_bindevent_evict(out, sizeof out, &of, 1);
    assert_string_equal(out, "BIND_EVICT     shop/QUERY 1 pid=1&k=orders&v=row-0001");
    of.key.table_len = 200; /* cut in the table's name */
    hg_bindevent_evict(out, sizeof out, &of, 1);
    assert_string_equal(out, "BIND_EVICT     shop/QUERY 1 pid=1&k=ordersrow-0001&v=");
}

static void test_no_key_forges_a_field_or_a_line(void **state)
{
    struct hg_bindevent_key of = classic("a&raddr=1\n \"\\\x7f\xff=");
    (void)state;
    of.tenant = "sh op&";
    hg_bindevent_throttle(out, sizeof out, &of, 2, "unix:/a b");
    assert_string_equal(out, "BIND_THROTTLE  sh\\x20op\\x26/QUERY 1 "
                             "k=key&v=a\\x26raddr=1\\x0a\\x20\\x22\\x5c\\x7f\\xff="
                             "&allowEveryX=2&allowFrac=0.50000&raddr=unix:/a\\x20b");
}

static void test_the_longest_fits(void **state)
{
    char name[251];
    uint8_t bytes[HG_BINDTHROTTLE_KEY_MAX];
    struct hg_bindevent_key of = {name, {.type = HG_HOT_UPDATE, .table_len = 100}};
    size_t len;
    (void)state;
    memset(name, 1, sizeof name - 1);
    name[250] = '\0';
    memset(bytes, 0, sizeof bytes);
    of.key.bytes = hg_span(bytes, sizeof bytes);
    len = hg_bindevent_throttle(out, sizeof out, &of, 10000,
                                "[2001:0db8:0000:0000:0000:0000:0000:0001%eth0]:65535");
    assert_string_equal(out + len - strlen("eth0]:65535"), "eth0]:65535");
}

static void test_a_request_without_a_key(void **state)
{
    const struct hg_bindevent_key of = {"shop", {.type = HG_HOT_QUERY}};
    (void)state;
    hg_bindevent_evict(out, sizeof out, &of, 3);
    assert_string_equal(out, "BIND_EVICT     shop/QUERY 1 pid=3&k=-&v=-");
}

static void test_cut_to_fit(void **state)
{
    struct hg_bindevent_key of = classic("a\nb\nc\n");
    size_t whole = hg_bindevent_evict(out, sizeof out, &of, 12);
    (void)state;
    for (size_t room = 0; room <= whole + 1; room++) {
        char *small = malloc(room > 0 ? room : 1);
        size_t len = hg_bindevent_evict(small, room, &of, 12);
        assert_true(room == 0 ? len == 0 : len < room);
        if (room > 0) {
            assert_int_equal(strlen(small), len);
            assert_memory_equal(small, out, len);
        }
        assert_true(room <= whole || len == whole);
        free(small);
    }
}

/* Hera's 28-20, then 8-2; here a pass takes 1. */
static void test_what_a_decision_tells(void **state)
{
    struct hg_bindevent_key of = classic("29001111");
    struct hg_bindthrottle_told told = {.last = 28, .prev = 8, .x = 7, .silent = true};
    (void)state;
    assert_true(hg_bindevent_waned(out, sizeof out, &of, &told) > 0);
    assert_string_equal(
        out, "bind throttle decr class:shop/QUERY bindName:key val:29001111 allowEveryX:28-20");
    hg_bindevent_passed(out, sizeof out, &of, &told);
    assert_string_equal(
        out, "bind throttle decr class:shop/QUERY bindName:key val:29001111 allowEveryX:8-1");
    told.silent = false;
    assert_int_equal(hg_bindevent_waned(out, sizeof out, &of, &told), 0);
    assert_string_equal(out, "");
    told = (struct hg_bindthrottle_told){.last = 25, .prev = 25, .x = 51, .silent = true};
    assert_int_equal(hg_bindevent_waned(out, sizeof out, &of, &told), 0);
    hg_bindevent_passed(out, sizeof out, &of, &told);
    assert_string_equal(out,
                        "bind throttle incr class:shop/QUERY bindName:key val:29001111 prev:25");
    told.prev = told.x = 10000;
    hg_bindevent_passed(out, sizeof out, &of, &told);
    assert_string_equal(out,
                        "bind throttle incr class:shop/QUERY bindName:key val:29001111 prev:10000");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_lines_of_the_design),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_a_row_of_a_table),
        cmocka_unit_test(test_no_key_forges_a_field_or_a_line),
        cmocka_unit_test(test_the_longest_fits),
        cmocka_unit_test(test_a_request_without_a_key),
        cmocka_unit_test(test_cut_to_fit),
        cmocka_unit_test(test_what_a_decision_tells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
