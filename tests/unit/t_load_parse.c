// t_load_parse - tests of load/parse, load/addr and load/status: texts and codes of a load
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "load/addr.h"
#include "load/options.h"
#include "load/parse.h"
#include "load/status.h"

static void numbers_are_whole_or_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", " 1", "1 ", "+1", "-1", "1.0", "1e3", "0x1", "1k", "11", "99999999999999999999"};
    uint64_t number = 77;
    for (size_t i = 0; i < HG_COUNT_OF(bad); i++) {
        assert_false(hg_load_parse_number(bad[i], 0, 10, &number));
    }
    assert_int_equal(number, 77);
    assert_true(hg_load_parse_number("010", 0, 10, &number));
    assert_int_equal(number, 10);
}

static void fractions_are_plain(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "-1", "inf", "nan", "1e1", "1.2.3", ".", "3.5"};
    double number = 0;
    for (size_t i = 0; i < HG_COUNT_OF(bad); i++) {
        assert_false(hg_load_parse_real(bad[i], 0, 3, &number));
    }
    assert_true(hg_load_parse_real("0.99", 0, 3, &number));
    assert_true(number == 0.99);
}

static void ranges_ascend(void **state)
{
    (void)state;
    uint32_t from = 0, to = 0;
    assert_true(hg_load_parse_range("32", 0, 100, &from, &to));
    assert_true(from == 32 && to == 32);
    assert_true(hg_load_parse_range("10-20", 0, 100, &from, &to));
    assert_true(from == 10 && to == 20);
    assert_false(hg_load_parse_range("20-10", 0, 100, &from, &to));
    assert_false(hg_load_parse_range("10-", 0, 100, &from, &to));
    assert_false(hg_load_parse_range("-10", 0, 100, &from, &to));
    assert_false(hg_load_parse_range("1-2-3", 0, 100, &from, &to));
    assert_false(hg_load_parse_range("1-101", 0, 100, &from, &to));
}

static void mixes_name_each_operation_once(void **state)
{
    (void)state;
    uint32_t weight[HG_LOAD_OPS];
    assert_true(hg_load_parse_mix("get=90,set=9/gat:1", 100, weight));
    assert_true(weight[HG_LOAD_GET] == 90 && weight[HG_LOAD_SET] == 9 && weight[HG_LOAD_GAT] == 1);
    assert_int_equal(weight[HG_LOAD_TOUCH], 0);
    static const char *const bad[] = {"",     "get",           "get=",   "get=0",  "get=-1",
                                      "gt=1", "get=1,get=1",   "get=1,", ",get=1", "get=101",
                                      "=5",   "get=60,set=41", "get=1 ", "get==1", "GET=1"};
    for (size_t i = 0; i < HG_COUNT_OF(bad); i++) {
        assert_false(hg_load_parse_mix(bad[i], 100, weight));
    }
    assert_int_equal(weight[HG_LOAD_GET], 90);
}

static void hello_is_a_set(void **state)
{
    (void)state;
    uint32_t features;
    assert_true(hg_load_parse_hello("nonblocking,xerror", &features));
    assert_int_equal(features, HG_LOAD_HELLO_XERROR | HG_LOAD_HELLO_NONBLOCKING);
    assert_true(hg_load_parse_hello("json", &features));
    assert_int_equal(features, HG_LOAD_HELLO_JSON);
    assert_false(hg_load_parse_hello("", &features));
    assert_false(hg_load_parse_hello("json,", &features));
    assert_false(hg_load_parse_hello("jso", &features));
}

static void addresses_come_apart(void **state)
{
    (void)state;
    struct hg_load_addr addr;
    assert_true(hg_load_addr_decode("example.org:11211", &addr));
    assert_string_equal(addr.host, "example.org");
    assert_string_equal(addr.port, "11211");
    assert_true(hg_load_addr_decode("[::1]:80", &addr));
    assert_string_equal(addr.host, "::1");
    assert_true(hg_load_addr_decode("unix:/a/b", &addr));
    assert_true(addr.is_unix);
    assert_string_equal(addr.host, "/a/b");
    assert_true(hg_load_addr_decode("/a/b", &addr));
    assert_true(addr.is_unix);
    char long_path[200];
    memset(long_path, 'x', sizeof long_path);
    long_path[0] = '/';
    long_path[sizeof long_path - 1] = '\0';
    assert_false(hg_load_addr_decode(long_path, &addr));
    static const char *const bad[] = {"",       "host",  "host:", ":1",         "host:0",
                                      "::1:80", "[]:80", "unix:", "host:65536", "host:1x"};
    for (size_t i = 0; i < HG_COUNT_OF(bad); i++) {
        assert_false(hg_load_addr_decode(bad[i], &addr));
    }
}

static void every_status_has_one_place(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0xffff; code++) {
        uint32_t slot = hg_load_status_slot((uint16_t)code);
        assert_true(slot < HG_LOAD_STATUS_SLOTS);
        if (code < 0x100 || code >= 0xff00) {
            assert_int_equal(hg_load_status_code(slot), code);
        } else {
            assert_int_equal(slot, HG_LOAD_STATUS_SLOTS - 1);
        }
    }
}

static void statuses_mean_what_the_operation_allows(void **state)
{
    (void)state;
    assert_int_equal(hg_load_status_means(0x00, HG_LOAD_SET), HG_LOAD_DONE);
    assert_int_equal(hg_load_status_means(0x01, HG_LOAD_GET), HG_LOAD_MISS);
    assert_int_equal(hg_load_status_means(0x01, HG_LOAD_SET), HG_LOAD_WRONG);
    assert_int_equal(hg_load_status_means(0x05, HG_LOAD_APPEND), HG_LOAD_MISS);
    assert_int_equal(hg_load_status_means(0x05, HG_LOAD_GET), HG_LOAD_WRONG);
    static const uint16_t refusals[] = {0x0c, 0x85, 0x86, 0x24, 0xff01, 0xff08, 0xff77};
    for (size_t i = 0; i < HG_COUNT_OF(refusals); i++) {
        assert_int_equal(hg_load_status_means(refusals[i], HG_LOAD_GET), HG_LOAD_REFUSED);
    }
    static const uint16_t wrong[] = {0x04, 0x81, 0x7777, 0xfe};
    for (size_t i = 0; i < HG_COUNT_OF(wrong); i++) {
        assert_int_equal(hg_load_status_means(wrong[i], HG_LOAD_GET), HG_LOAD_WRONG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_whole_or_refused),
        cmocka_unit_test(fractions_are_plain),
        cmocka_unit_test(ranges_ascend),
        cmocka_unit_test(mixes_name_each_operation_once),
        cmocka_unit_test(hello_is_a_set),
        cmocka_unit_test(addresses_come_apart),
        cmocka_unit_test(every_status_has_one_place),
        cmocka_unit_test(statuses_mean_what_the_operation_allows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
