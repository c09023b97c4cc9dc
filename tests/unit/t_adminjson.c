// t_adminjson - bodies of opcodes: what is taken, and the words for what is not
// SPDX-License-Identifier: BSD-3-Clause
#include "apphelp.h"

#include <errno.h>

#include "app/adminjson.h"

#define THROTTLE "{\"reserved\": N or \"unlimited\", \"hard_limit\": N or \"unlimited\"}"

static void test_throttle_bodies_mean_what_they_say(void **state)
{
    (void)state;
    static const struct good {
        const char *body;
        struct hg_state_units reserved, hard_limit;
    } goods[] = {
        {"{}", {HG_STATE_DEFAULT, 0}, {HG_STATE_DEFAULT, 0}},
        {" { } \n", {HG_STATE_DEFAULT, 0}, {HG_STATE_DEFAULT, 0}},
        {"{\"reserved\":5}", {HG_STATE_VALUE, 5}, {HG_STATE_DEFAULT, 0}},
        {"{\"hard_limit\":0}", {HG_STATE_DEFAULT, 0}, {HG_STATE_VALUE, 0}},
        {"{\"hard_limit\":7,\"reserved\":7}", {HG_STATE_VALUE, 7}, {HG_STATE_VALUE, 7}},
        {"{\"reserved\":\"unlimited\",\"hard_limit\":\"unlimited\"}",
         {HG_STATE_VALUE, HG_CONF_UNLIMITED},
         {HG_STATE_VALUE, HG_CONF_UNLIMITED}},
        {"{\"reserved\":1000000000000}", {HG_STATE_VALUE, 1000000000000}, {HG_STATE_DEFAULT, 0}},
    };
    for (size_t i = 0; i < HG_COUNT_OF(goods); i++) {
        struct hg_state_throttle throttle;
        struct hg_adminjson_why why = {""};
        int rc = hg_adminjson_decode_throttle(hg_span_str(goods[i].body), &throttle, &why);
        if (rc)
            fail_msg("%s: %s", goods[i].body, why.text);
        assert_int_equal(throttle.reserved.mark, goods[i].reserved.mark);
        assert_int_equal(throttle.reserved.value, goods[i].reserved.value);
        assert_int_equal(throttle.hard_limit.mark, goods[i].hard_limit.mark);
        assert_int_equal(throttle.hard_limit.value, goods[i].hard_limit.value);
    }
}

static void test_throttle_bodies_are_refused_by_key(void **state)
{
    (void)state;
#define BOUNDS "(accepted: 0 to 1000000000000 units/s, or unlimited)"
    static const struct complaint cases[] = {
        {"", "empty body (accepted: " THROTTLE ")"},
        {"5", "not a JSON object (accepted: " THROTTLE ")"},
        {"[]", "not a JSON object (accepted: " THROTTLE ")"},
        {"null", "not a JSON object (accepted: " THROTTLE ")"},
        {"{\"reserved\":-1}", "bad value '-1' of 'reserved' " BOUNDS},
        {"{\"reserved\":1.5}", "bad value '1.5' of 'reserved' " BOUNDS},
        {"{\"reserved\":1.0}", "bad value '1.0' of 'reserved' " BOUNDS},
        {"{\"reserved\":1e3}", "bad value '1000.0' of 'reserved' " BOUNDS},
        {"{\"reserved\":true}", "bad value 'true' of 'reserved' " BOUNDS},
        {"{\"reserved\":null}", "bad value 'null' of 'reserved' " BOUNDS},
        {"{\"reserved\":\"5\"}", "bad value '\"5\"' of 'reserved' " BOUNDS},
        {"{\"reserved\":\"Unlimited\"}", "bad value '\"Unlimited\"' of 'reserved' " BOUNDS},
        {"{\"hard_limit\":[1]}", "bad value '[1]' of 'hard_limit' " BOUNDS},
        {"{\"hard_limit\":1000000000001}",
         "value out of range '1000000000001' of 'hard_limit' " BOUNDS},
        {"{\"hard_limit\":99999999999999999999}",
         "number out of range in 'hard_limit' (accepted: " THROTTLE ")"},
        {"{\"limit\":5}", "unknown key 'limit' (accepted: " THROTTLE ")"},
        {"{\"reserved\":1,\"reserved\":2}", "repeated key 'reserved' (accepted: each key once)"},
        {"{\"reserved\":1}x",
         "bytes behind the JSON object, at byte 15 (accepted: " THROTTLE " and nothing else)"},
        {"{\"reserved\":1}{}",
         "bytes behind the JSON object, at byte 15 (accepted: " THROTTLE " and nothing else)"},
        {"{\"reserved\":5,\"hard_limit\":4}", "reserved '5' exceeds hard_limit (accepted: 0 to 4)"},
        {"{\"reserved\":\"unlimited\",\"hard_limit\":4}",
         "reserved 'unlimited' exceeds hard_limit (accepted: 0 to 4)"},
        {"{\"reserved\":}", "not JSON at byte 13, behind key 'reserved': unexpected token near '}' "
                            "(accepted: " THROTTLE ")"},
        {"{\"reserved\":01}",
         "not JSON at byte 13, behind key 'reserved': invalid token near '0' (accepted: " THROTTLE
         ")"},
        {"{\"a\\u001b[31m\":1}", "unknown key 'a?[31m' (accepted: " THROTTLE ")"},
    };
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        struct hg_state_throttle throttle = {{HG_STATE_ABSENT, 77}, {HG_STATE_ABSENT, 77}};
        struct hg_adminjson_why why = {""};
        assert_int_equal(hg_adminjson_decode_throttle(hg_span_str(cases[i].text), &throttle, &why),
                         -EINVAL);
        assert_string_equal(why.text, cases[i].says);
        assert_int_equal(throttle.reserved.value, 77);
    }
}

static void test_bodies_have_a_size(void **state)
{
    (void)state;
    char body[HG_ADMINJSON_BUCKET_MAX + 2];
    struct hg_state_throttle throttle;
    struct hg_conf_tenant *tenant = NULL;
    struct hg_adminjson_why why;
    memset(body, ' ', sizeof body);
    body[0] = '{';
    body[1] = '}';
    assert_int_equal(hg_adminjson_decode_throttle(hg_span(body, 1024), &throttle, &why), 0);
    assert_int_equal(hg_adminjson_decode_throttle(hg_span(body, 1025), &throttle, &why), -EINVAL);
    assert_string_equal(why.text, "body of 1025 bytes (accepted: up to 1024 bytes)");
    assert_int_equal(
        hg_adminjson_decode_bucket(HG_SPAN_LIT("b"), hg_span(body, 16384), &tenant, &why), 0);
    hg_adminjson_free_bucket(tenant);
    assert_int_equal(
        hg_adminjson_decode_bucket(HG_SPAN_LIT("b"), hg_span(body, 16385), &tenant, &why), -EINVAL);
    assert_string_equal(why.text, "body of 16385 bytes (accepted: up to 16384 bytes)");
}

/* Cut or damaged anywhere, a body is refused or decoded, and nothing outside it is read. */
static void test_no_prefix_and_no_flipped_byte_breaks_anything(void **state)
{
    (void)state;
    static const char body[] =
        "{\"upstream\":\"e\",\"reserved\":5,\"hard_limit\":\"unlimited\",\"allow_flush\":true}";
    for (size_t len = 1; len <= strlen(body); len++)
        for (unsigned flip = 0; flip < 9; flip++) {
            char *exactly = malloc(len);
            struct hg_conf_tenant *tenant = NULL;
            struct hg_adminjson_why why;
            assert_non_null(exactly);
            memcpy(exactly, body, len);
            exactly[len / 2] ^= flip < 8 ? (char)(1 << flip) : 0;
            int rc =
                hg_adminjson_decode_bucket(HG_SPAN_LIT("b"), hg_span(exactly, len), &tenant, &why);
            assert_true(rc == 0 || rc == -EINVAL);
            if (flip == 8)
                assert_int_equal(rc, len == strlen(body) ? 0 : -EINVAL);
            if (rc)
                assert_true(strlen(why.text) > 10);
            hg_adminjson_free_bucket(tenant);
            free(exactly);
        }
}

static void test_node_bodies_leave_what_they_do_not_name(void **state)
{
    (void)state;
    struct hg_state_node node;
    struct hg_adminjson_why why;
    assert_int_equal(hg_adminjson_decode_node(HG_SPAN_LIT("{\"capacity\":9}"), &node, &why), 0);
    assert_int_equal(node.capacity.mark, HG_STATE_VALUE);
    assert_int_equal(node.capacity.value, 9);
    assert_int_equal(node.default_reserved.mark, HG_STATE_ABSENT);
    assert_int_equal(node.default_hard_limit.mark, HG_STATE_ABSENT);
    assert_int_equal(hg_adminjson_decode_node(HG_SPAN_LIT("{\"default_throttle_reserved_units\":9,"
                                                          "\"default_throttle_hard_limit\":8}"),
                                              &node, &why),
                     -EINVAL);
    assert_string_equal(why.text, "default_throttle_reserved_units '9' exceeds "
                                  "default_throttle_hard_limit (accepted: 0 to 8)");
    assert_int_equal(hg_adminjson_decode_node(HG_SPAN_LIT("{\"node_capacity\":9}"), &node, &why),
                     -EINVAL);
    assert_string_equal(why.text, "unknown key 'node_capacity' (accepted: {\"capacity\", "
                                  "\"default_throttle_reserved_units\", "
                                  "\"default_throttle_hard_limit\": N or \"unlimited\" each})");
}

static void test_a_bucket_is_the_settings_of_a_tenant(void **state)
{
    (void)state;
    struct hg_conf_tenant *tenant = NULL;
    struct hg_adminjson_why why;
    assert_int_equal(hg_adminjson_decode_bucket(
                         HG_SPAN_LIT("toys"),
                         HG_SPAN_LIT("{\"upstream\":\"cache\",\"reserved\":10,"
                                     "\"hard_limit\":\"unlimited\",\"credit_mode\":\"observe\","
                                     "\"reject_status\":\"busy\",\"key_prefix\":\"t/\","
                                     "\"max_connections\":3,\"allow_flush\":false}"),
                         &tenant, &why),
                     0);
    assert_string_equal(tenant->name, "toys");
    assert_string_equal(tenant->upstream, "cache");
    assert_int_equal(tenant->reserved, 10);
    assert_int_equal(tenant->hard_limit, HG_CONF_UNLIMITED);
    assert_int_equal(tenant->credit_mode, HG_CONF_CREDIT_MODE_OBSERVE);
    assert_int_equal(tenant->reject_status, HG_CONF_REJECT_STATUS_BUSY);
    assert_string_equal(tenant->key_prefix, "t/");
    assert_int_equal(tenant->max_connections, 3);
    assert_false(tenant->allow_flush);
    assert_true(tenant->by_opcode);
    assert_int_equal(tenant->lines[HG_CONF_TENANT_reserved], HG_CONF_BY_OPCODE);
    hg_adminjson_free_bucket(tenant);
    tenant = NULL;
    assert_int_equal(hg_adminjson_decode_bucket(HG_SPAN_LIT("toys"), HG_SPAN_NONE, &tenant, &why),
                     0);
    assert_int_equal(tenant->lines[HG_CONF_TENANT_reserved], 0);
    assert_true(tenant->allow_flush);
    hg_adminjson_free_bucket(tenant);
}

static void test_bucket_bodies_are_refused_by_key(void **state)
{
    (void)state;
    static const struct complaint cases[] = {
        {"{\"name\":\"x\"}", "unknown key 'name' (accepted: upstream, state, reserved, hard_limit, "
                             "credit_mode, kv_hotkey_throttle_threshold, hotkey_mode, "
                             "hotkey_control, hotkey_tracking, ticket_mode, fair_by, bind_mode, "
                             "bind_min_bytes, reject_status, "
                             "key_prefix, backend_user, backend_password, backend_database, "
                             "max_connections, table_sessions, "
                             "table_session_idle_s, required, allow_flush, families)"},
        {"{\"credit_mode\":\"on\"}",
         "bad value 'on' of 'credit_mode' (accepted: off, observe, enforce)"},
        {"{\"credit_mode\":1}", "bad value '1' of 'credit_mode' (accepted: off, observe, enforce)"},
        {"{\"allow_flush\":\"true\"}",
         "bad value '\"true\"' of 'allow_flush' (accepted: true, false)"},
        {"{\"allow_flush\":1}", "bad value '1' of 'allow_flush' (accepted: true, false)"},
        {"{\"max_connections\":-1}",
         "bad value '-1' of 'max_connections' (accepted: 0 to 1000000 connections)"},
        {"{\"upstream\":{}}", "bad value '{}' of 'upstream' (accepted: text of 0 to 100 bytes)"},
        {"{\"reserved\":3,\"hard_limit\":2}", "reserved '3' exceeds hard_limit (accepted: 0 to 2)"},
        {"{\"max_connections\":1} {}", "bytes behind the JSON object, at byte 23 (accepted: a JSON "
                                       "object of settings and nothing else)"},
    };
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        struct hg_conf_tenant *tenant = NULL;
        struct hg_adminjson_why why = {""};
        assert_int_equal(
            hg_adminjson_decode_bucket(HG_SPAN_LIT("b"), hg_span_str(cases[i].text), &tenant, &why),
            -EINVAL);
        assert_string_equal(why.text, cases[i].says);
        assert_null(tenant);
    }
}

static void test_names_and_statuses_have_bounds(void **state)
{
    (void)state;
    struct hg_adminjson_why why;
    struct hg_conf_tenant *tenant = NULL;
    assert_int_equal(hg_adminjson_check_name(HG_SPAN_LIT("A-z_0.9%"), &why), 0);
    assert_int_equal(hg_adminjson_check_name(HG_SPAN_NONE, &why), -EINVAL);
    assert_string_equal(why.text, "bad bucket name '' (accepted: 1 to 100 of A-Z a-z 0-9 . _ % -)");
    assert_int_equal(hg_adminjson_decode_bucket(HG_SPAN_LIT("a\x1b"), HG_SPAN_NONE, &tenant, &why),
                     -EINVAL);
    assert_string_equal(why.text,
                        "bad bucket name 'a?' (accepted: 1 to 100 of A-Z a-z 0-9 . _ % -)");
    for (unsigned status = 0; status < 0x10000; status++)
        assert_int_equal(hg_adminjson_check_data_limit((uint16_t)status, &why),
                         status == 0 || (status >= 0x35 && status <= 0x38) ? 0 : -EINVAL);
    assert_string_equal(
        why.text, "bad status '0xffff' of a data limit (accepted: 0, 0x35, 0x36, 0x37, 0x38)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_throttle_bodies_mean_what_they_say),
        cmocka_unit_test(test_throttle_bodies_are_refused_by_key),
        cmocka_unit_test(test_bodies_have_a_size),
        cmocka_unit_test(test_no_prefix_and_no_flipped_byte_breaks_anything),
        cmocka_unit_test(test_node_bodies_leave_what_they_do_not_name),
        cmocka_unit_test(test_a_bucket_is_the_settings_of_a_tenant),
        cmocka_unit_test(test_bucket_bodies_are_refused_by_key),
        cmocka_unit_test(test_names_and_statuses_have_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
