// t_webhistory - ten minutes of seconds: missed ones, the oldest that go, who has a ring
// SPDX-License-Identifier: BSD-3-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "app/webalive.h"
#include "app/webauth.h"
#include "app/webhistory.h"

#define SECOND 1000000u
#define WALL   1790000000u

static int setup(void **state)
{
    struct hg_web_history *history = malloc(sizeof *history);
    assert_non_null(history);
    assert_int_equal(hg_web_history_init(history), 0);
    *state = history;
    return 0;
}

static int teardown(void **state)
{
    hg_web_history_fini(*state);
    free(*state);
    return 0;
}

static json_t *text_of(const struct hg_web_history *history, double since_s)
{
    struct hg_webtext text;
    size_t len = 0;
    hg_webtext_init(&text);
    hg_web_history_text(history, WALL, since_s, &text);
    char *bytes = hg_webtext_take(&text, &len);
    json_t *json = json_loadb(bytes, len, 0, NULL);
    assert_non_null(json);
    free(bytes);
    return json;
}

/* One second, in which each of the tenants 0 to count - 1 uses its number + 1. */
static void sample(struct hg_web_history *history, uint64_t second, unsigned count)
{
    char name[32];
    unsigned at = hg_web_history_begin(history, 5 + second * SECOND, WALL + second);
    assert_true(at < HG_WEB_HISTORY_S);
    history->series[HG_WEB_SERIES_held][at] = (uint32_t)second;
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof name, "t%u", i);
        hg_web_history_tenant(history, name, i + 1, 0);
    }
    hg_web_history_end(history);
}

static size_t count_of(const json_t *json)
{
    return json_array_size(json_object_get(json, "time"));
}

static void test_empty(void **state)
{
    json_t *json = text_of(*state, -1);
    assert_int_equal(count_of(json), 0);
    assert_int_equal(json_object_size(json_object_get(json, "tenants")), 0);
    json_decref(json);
}

static void test_the_oldest_go(void **state)
{
    struct hg_web_history *history = *state;
    for (unsigned second = 0; second < 1000; second++)
        sample(history, second, 1);
    json_t *json = text_of(history, -1);
    json_t *time = json_object_get(json, "time");
    json_t *held = json_object_get(json_object_get(json, "series"), "held");
    assert_int_equal(json_array_size(time), HG_WEB_HISTORY_S);
    assert_int_equal(json_array_size(held), HG_WEB_HISTORY_S);
    for (size_t i = 0; i < HG_WEB_HISTORY_S; i++) {
        assert_int_equal(json_integer_value(json_array_get(time, i)), WALL + 400 + i);
        assert_int_equal(json_integer_value(json_array_get(held, i)), 400 + i);
    }
    json_decref(json);
    json = text_of(history, WALL + 997);
    assert_int_equal(count_of(json), 2);
    json_decref(json);
    json = text_of(history, WALL + 999);
    assert_int_equal(count_of(json), 0);
    json_decref(json);
}

static void test_missed_seconds(void **state)
{
    struct hg_web_history *history = *state;
    sample(history, 0, 1);
    sample(history, 3, 1);
    json_t *json = text_of(history, -1);
    json_t *held = json_object_get(json_object_get(json, "series"), "held");
    json_t *units =
        json_object_get(json_object_get(json_object_get(json, "tenants"), "t0"), "units_per_s");
    assert_int_equal(count_of(json), 4);
    assert_true(json_is_null(json_array_get(held, 1)) && json_is_null(json_array_get(held, 2)));
    assert_int_equal(json_integer_value(json_array_get(held, 3)), 3);
    assert_true(json_is_null(json_array_get(units, 2)));
    assert_int_equal(json_integer_value(json_array_get(units, 3)), 1);
    json_decref(json);
    /* The same second again, and a jitter of a third of one. */
    assert_int_equal(hg_web_history_begin(history, 5 + 3 * SECOND + 300000, WALL),
                     HG_WEB_HISTORY_S);
    assert_true(hg_web_history_begin(history, 5 + 4 * SECOND - 300000, WALL) < HG_WEB_HISTORY_S);
    /* Longer than the history: all is missing but the last. */
    sample(history, 5000, 1);
    json = text_of(history, -1);
    held = json_object_get(json_object_get(json, "series"), "held");
    assert_int_equal(json_array_size(held), HG_WEB_HISTORY_S);
    for (size_t i = 0; i + 1 < HG_WEB_HISTORY_S; i++)
        assert_true(json_is_null(json_array_get(held, i)));
    json_decref(json);
}

static void test_the_busiest_are_shown(void **state)
{
    struct hg_web_history *history = *state;
    for (unsigned second = 0; second < 5; second++)
        sample(history, second, 100);
    json_t *json = text_of(history, -1);
    json_t *tenants = json_object_get(json, "tenants");
    assert_int_equal(json_object_size(tenants), HG_WEB_HISTORY_SHOWN);
    assert_non_null(json_object_get(tenants, "t99"));
    assert_non_null(json_object_get(tenants, "t80"));
    assert_null(json_object_get(tenants, "t79"));
    json_decref(json);
}

/* More tenants than rings: who is busy gets one, and memory stays as it is. */
static void test_rings_are_bounded(void **state)
{
    struct hg_web_history *history = *state;
    char name[32];
    for (unsigned second = 0; second < 3; second++)
        sample(history, second, 1000);
    unsigned used = 0, busy = 0;
    for (unsigned i = 0; i < HG_WEB_HISTORY_TENANTS; i++) {
        used += history->tenants[i] != NULL;
        busy += history->tenants[i] != NULL && history->tenants[i]->sum > 0;
    }
    assert_int_equal(used, HG_WEB_HISTORY_TENANTS);
    assert_int_equal(busy, used);
    (void)hg_web_history_begin(history, 5 + 3 * SECOND, WALL + 3);
    for (unsigned i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "idle%u", i);
        hg_web_history_tenant(history, name, 0, 0);
    }
    hg_web_history_tenant(history, "flood", 1000000, 5);
    hg_web_history_end(history);
    json_t *json = text_of(history, -1);
    json_t *flood = json_object_get(json_object_get(json, "tenants"), "flood");
    assert_non_null(flood);
    assert_true(json_is_null(json_array_get(json_object_get(flood, "units_per_s"), 0)));
    assert_int_equal(
        json_integer_value(json_array_get(json_object_get(flood, "rejected_per_s"), 3)), 5);
    json_decref(json);
}

/* Who is gone leaves when nothing of it is left to show; sums stay what the rings add up to. */
static void test_who_is_gone(void **state)
{
    struct hg_web_history *history = *state;
    for (unsigned second = 0; second < 10; second++)
        sample(history, second, 3);
    for (unsigned second = 10; second < 700; second++) {
        sample(history, second, 1);
        for (unsigned i = 0; i < HG_WEB_HISTORY_TENANTS; i++) {
            const struct hg_web_tenant_rings *tenant = history->tenants[i];
            uint64_t sum = 0;
            for (unsigned s = 0; tenant != NULL && s < HG_WEB_HISTORY_S; s++)
                for (unsigned r = 0; r < HG_WEB_OF_COUNT; r++)
                    sum += tenant->rings[r][s] != HG_WEB_MISSING ? tenant->rings[r][s] : 0;
            if (tenant != NULL)
                assert_int_equal(sum, tenant->sum);
        }
    }
    json_t *json = text_of(history, -1);
    json_t *tenants = json_object_get(json, "tenants");
    assert_non_null(json_object_get(tenants, "t0"));
    assert_null(json_object_get(tenants, "t1"));
    json_decref(json);
}

static void test_large_values(void **state)
{
    struct hg_web_history *history = *state;
    sample(history, 0, 0);
    hg_web_history_tenant(history, "big", UINT64_MAX / 2, 0);
    json_t *json = text_of(history, -1);
    json_t *big = json_object_get(json_object_get(json, "tenants"), "big");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(big, "units_per_s"), 0)),
                     UINT32_MAX - 1);
    json_decref(json);
}

static void test_local_names(void **state)
{
    static const char *const ours[] = {"localhost",   "LocalHost:80",   "127.0.0.1",
                                       "127.0.0.1:1", "127.255.1.2",    "[::1]",
                                       "[::1]:80",    "headgate.local", "Headgate.LOCAL:11280"};
    static const char *const foreign[] = {"",
                                          ":",
                                          "evil.example",
                                          "localhost.evil.example",
                                          "evil.example:80",
                                          "10.0.0.1",
                                          "128.0.0.1",
                                          "[::2]",
                                          "[::1",
                                          "::1",
                                          "127.0.0.1.evil.example",
                                          "127.1",
                                          "[",
                                          "localhost@evil.example",
                                          "localhost:1:2",
                                          "[]",
                                          "[::1]evil.example"};
    char longest[600];
    (void)state;
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (!hg_webauth_is_local_name(ours[i], "headgate.local"))
            fail_msg("'%s' is refused", ours[i]);
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        if (hg_webauth_is_local_name(foreign[i], "headgate.local"))
            fail_msg("'%s' is accepted", foreign[i]);
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_false(hg_webauth_is_local_name(longest, "headgate.local"));
}

/* The cookie's name: by the port that the client sees, which a tunnel may have changed. */
static void test_port_of_host(void **state)
{
    static const struct {
        const char *host;
        unsigned port;
    } cases[] = {
        {"127.0.0.1:11280", 11280},
        {"[::1]:8080", 8080},
        {"localhost:1", 1},
        {"localhost:65535", 65535},
        {"127.0.0.1", 7},
        {"localhost:", 7},
        {"localhost:65536", 7},
        {"localhost:0", 7},
        {"localhost:99999999999", 7},
        {"localhost:80x", 7},
        {"localhost:-1", 7},
        {"[::1]", 7},
        {"::1", 7},
        {":", 7},
        {"", 7},
        {"localhost: 80", 7},
        {"[::1:80", 7},
        {NULL, 7},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (hg_webauth_port(cases[i].host, 7) != cases[i].port)
            fail_msg("'%s': %u", cases[i].host, hg_webauth_port(cases[i].host, 7));
}

/* A thread hangs when nothing of it has changed in so many looks; a reset of its count is life. */
static void test_life(void **state)
{
    struct hg_webalive alive = {.count = 0};
    uint64_t counts[3] = {5, 7, 9};
    (void)state;
    assert_int_equal(hg_webalive_hung(&alive), HG_WEBALIVE_NONE);
    for (unsigned look = 0; look < 3 * HG_WEBALIVE_LOOKS; look++) {
        counts[0]++;
        counts[1] = look % (HG_WEBALIVE_LOOKS - 1) == 0 ? 0 : counts[1] + 1;
        hg_webalive_look(&alive, counts, 3);
        assert_int_equal(hg_webalive_hung(&alive), look < HG_WEBALIVE_LOOKS ? HG_WEBALIVE_NONE : 2);
    }
    counts[2]++;
    hg_webalive_look(&alive, counts, 3);
    assert_int_equal(hg_webalive_hung(&alive), HG_WEBALIVE_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_oldest_go, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missed_seconds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_busiest_are_shown, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rings_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_who_is_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large_values, setup, teardown),
        cmocka_unit_test(test_local_names),
        cmocka_unit_test(test_port_of_host),
        cmocka_unit_test(test_life),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
