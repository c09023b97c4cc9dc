// t_metrics - names, kinds and units of metrics; lines and histograms
// SPDX-License-Identifier: BSD-3-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "app/metrics.h"

static const struct hg_metric *find(const char *name)
{
    for (unsigned g = 0; g < HG_METRICS_GROUPS; g++) {
        size_t count;
        const struct hg_metric *rows = hg_metrics_of((enum hg_metric_group)g, &count);
        for (size_t i = 0; i < count; i++)
            if (strcmp(rows[i].name, name) == 0)
                return &rows[i];
    }
    return NULL;
}

static void assert_text(struct hg_webtext *text, const char *is)
{
    size_t len = 0;
    char *bytes = hg_webtext_take(text, &len);
    assert_non_null(bytes);
    char *copy = strndup(bytes, len);
    assert_string_equal(copy, is);
    free(copy);
    free(bytes);
}

static int setup(void **state)
{
    (void)state;
    hg_metrics_init();
    return 0;
}

/* What a person would look for. */
static void test_names(void **state)
{
    static const struct {
        const char *name;
        enum hg_metric_kind kind;
        unsigned decimals;
    } known[] = {
        {"headgate_tenant_requests_total", HG_METRIC_COUNTER, 0},
        {"headgate_tenant_throttle_wait_time_seconds_total", HG_METRIC_COUNTER, 6},
        {"headgate_tenant_received_bytes_total", HG_METRIC_COUNTER, 0},
        {"headgate_tenant_table_sessions", HG_METRIC_GAUGE, 0},
        {"headgate_tenant_tickets_queued_seconds_total", HG_METRIC_COUNTER, 6},
        {"headgate_worker_requests_total", HG_METRIC_COUNTER, 0},
        {"headgate_worker_connections", HG_METRIC_GAUGE, 0},
        {"headgate_worker_memory_bytes", HG_METRIC_GAUGE, 0},
        {"headgate_tickets_processing_seconds_total", HG_METRIC_COUNTER, 6},
        {"headgate_tickets_delinquent_max_seconds", HG_METRIC_GAUGE, 3},
        {"headgate_server_pending", HG_METRIC_GAUGE, 0},
        {"headgate_server_timeouts_total", HG_METRIC_COUNTER, 0},
        {"headgate_pool_demand", HG_METRIC_GAUGE, 2},
        {"headgate_pool_oldest_wait_seconds", HG_METRIC_GAUGE, 6},
        {"headgate_embedded_used_bytes", HG_METRIC_GAUGE, 0},
        {"headgate_cluster_redirects_moved_total", HG_METRIC_COUNTER, 0},
        {"headgate_logins_waiting", HG_METRIC_GAUGE, 0},
        {"headgate_hotkey_engine_merge_seconds_total", HG_METRIC_COUNTER, 9},
        {"headgate_operation_duration_seconds", HG_METRIC_HISTOGRAM, 0},
        {"process_cpu_seconds_total", HG_METRIC_COUNTER, 6},
    };
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct hg_metric *metric = find(known[i].name);
        if (metric == NULL)
            fail_msg("there is no %s", known[i].name);
        assert_int_equal(metric->kind, known[i].kind);
        assert_int_equal(metric->decimals, known[i].decimals);
    }
}

/* Rules for all, so for rows that are added too. */
static void test_conventions(void **state)
{
    size_t all = 0;
    (void)state;
    for (unsigned g = 0; g < HG_METRICS_GROUPS; g++) {
        size_t count;
        const struct hg_metric *rows = hg_metrics_of((enum hg_metric_group)g, &count);
        assert_true(count > 0);
        all += count;
        for (size_t i = 0; i < count; i++) {
            const char *name = rows[i].name;
            size_t len = strlen(name);
            bool ends = len > 6 && strcmp(name + len - 6, "_total") == 0;
            assert_ptr_equal(find(name), &rows[i]); /* no name twice */
            assert_int_equal(ends, rows[i].kind == HG_METRIC_COUNTER);
            assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_"), len);
            assert_true(len < sizeof rows[i].name - 1);
            assert_null(strstr(name, "_us_"));
            assert_null(strstr(name, "_ms_"));
            assert_true(strlen(rows[i].help) > 0);
            assert_null(strpbrk(rows[i].help, "\n\\\t"));
            assert_null(strstr(rows[i].labels, "key"));
            if (rows[i].decimals >= 3)
                assert_non_null(strstr(name, "seconds"));
        }
    }
    assert_true(all > 150);
}

static void test_lines(void **state)
{
    const struct hg_metric *wait = find("headgate_tenant_throttle_wait_time_seconds_total");
    const struct hg_metric *limit = find("headgate_tenant_hard_limit_units_per_second");
    struct hg_webtext text;
    char labels[HG_METRIC_LABELS_MAX] = "";
    (void)state;
    hg_webtext_init(&text);
    hg_metric_label(labels, "tenant", "a\"b");
    hg_metric_label(labels, "op", "get");
    assert_string_equal(labels, "tenant=\"a\\\"b\",op=\"get\"");
    hg_metric_line(&text, wait, labels, 1500000);
    hg_metric_line(&text, wait, "", 0);
    hg_metric_units(&text, limit, "tenant=\"x\"", UINT64_MAX);
    hg_metric_units(&text, limit, "tenant=\"y\"", 20000);
    assert_text(&text,
                "headgate_tenant_throttle_wait_time_seconds_total{tenant=\"a\\\"b\",op=\"get\"} "
                "1.500000\n"
                "headgate_tenant_throttle_wait_time_seconds_total 0\n"
                "headgate_tenant_hard_limit_units_per_second{tenant=\"x\"} +Inf\n"
                "headgate_tenant_hard_limit_units_per_second{tenant=\"y\"} 20000\n");
    hg_metric_head(&text, limit);
    assert_text(&text,
                "# HELP headgate_tenant_hard_limit_units_per_second its hard limit; +Inf for "
                "unlimited\n"
                "# TYPE headgate_tenant_hard_limit_units_per_second gauge\n");
}

/* A label that does not fit is cut, and nothing is written behind the end. */
static void test_long_labels(void **state)
{
    char labels[HG_METRIC_LABELS_MAX] = "", name[300];
    (void)state;
    memset(name, '\xff', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (unsigned i = 0; i < 4; i++)
        hg_metric_label(labels, "server", name);
    assert_true(strlen(labels) < HG_METRIC_LABELS_MAX);
}

static uint64_t value_of(const char *text, const char *line)
{
    const char *at = strstr(text, line);
    if (at == NULL)
        fail_msg("no line '%s' in:\n%s", line, text);
    return strtoull(at + strlen(line), NULL, 10);
}

static void test_histograms(void **state)
{
    struct hg_hist *hist = calloc(1, sizeof *hist);
    struct hg_metric_hist sum = {.sum_us = 0};
    struct hg_webtext text;
    size_t len = 0;
    (void)state;
    static const uint64_t values[] = {0,   49,   50,      51,      100,     101,
                                      999, 1000, 4999999, 5000000, 60000000};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        hg_hist_record(hist, values[i], 1);
    hg_metric_hist_add(&sum, hist);
    hg_metric_hist_add(&sum, hist); /* another worker's */
    assert_int_equal(hg_metric_hist_count(&sum), 22);
    hg_webtext_init(&text);
    hg_metric_hist_lines(&text, find("headgate_operation_duration_seconds"), "op=\"get\"", &sum);
    hg_webtext_add(&text, "", 1);
    char *bytes = hg_webtext_take(&text, &len);
#define LINE(rest) value_of(bytes, "headgate_operation_duration_seconds" rest)
    assert_int_equal(LINE("_bucket{op=\"get\",le=\"5e-05\"} "), 6);
    assert_int_equal(LINE("_bucket{op=\"get\",le=\"0.0001\"} "), 10);
    assert_int_equal(LINE("_bucket{op=\"get\",le=\"0.001\"} "), 16);
    assert_int_equal(LINE("_bucket{op=\"get\",le=\"1\"} "), 16);
    assert_int_equal(LINE("_bucket{op=\"get\",le=\"5\"} "), 20);
    assert_int_equal(LINE("_bucket{op=\"get\",le=\"+Inf\"} "), 22);
    assert_int_equal(LINE("_count{op=\"get\"} "), 22);
    assert_non_null(strstr(bytes, "_sum{op=\"get\"} 140.004698\n"));
#undef LINE
    free(bytes);
    free(hist);
}

/* What is counted below a bound is at most 1.6 % above it. */
static void test_bounds_are_kept(void **state)
{
    static const uint64_t bounds_us[] = {50,    100,   250,   500,    1000,   2500,    5000,
                                         10000, 25000, 50000, 100000, 250000, 1000000, 5000000};
    (void)state;
    for (size_t i = 0; i < HG_METRIC_BUCKETS; i++) {
        uint64_t above = bounds_us[i] + bounds_us[i] * 17 / 1000 + 1;
        struct hg_hist *hist = calloc(1, sizeof *hist);
        struct hg_metric_hist sum = {.sum_us = 0};
        hg_hist_record(hist, bounds_us[i], 1);
        hg_hist_record(hist, above, 1);
        hg_metric_hist_add(&sum, hist);
        assert_int_equal(sum.buckets[i], 1);
        free(hist);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),      cmocka_unit_test(test_conventions),
        cmocka_unit_test(test_lines),      cmocka_unit_test(test_long_labels),
        cmocka_unit_test(test_histograms), cmocka_unit_test(test_bounds_are_kept),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
