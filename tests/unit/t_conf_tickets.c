// t_conf_tickets - options of tickets and binds: decimals, bounds, rules, and settings by opcode
// SPDX-License-Identifier: BSD-3-Clause
#include "apphelp.h"

#include <errno.h>
#include <unistd.h>

#include "app/conf_table.h"
#include "app/state.h"

/* ---- decimals ---- */

static void test_decimals_are_taken_whole_or_not_at_all(void **state)
{
    (void)state;
    static const struct {
        const char *option, *text;
        double value; /* below 0: refused */
        const char *shown;
    } rows[] = {
        {"throughput_probing_step_multiple", "0.1", 0.1, "0.1"},
        {"throughput_probing_step_multiple", "0.10", 0.1, "0.1"},
        {"throughput_probing_step_multiple", "0.01", 0.01, "0.01"},
        {"throughput_probing_step_multiple", "0.5", 0.5, "0.5"},
        {"throughput_probing_step_multiple", "0.123456", 0.123456, "0.123456"},
        {"throughput_probing_step_multiple", "0.009999", -1, NULL},
        {"throughput_probing_step_multiple", "0.500001", -1, NULL},
        {"throughput_probing_step_multiple", "0.1234567", -1, NULL},
        {"throughput_probing_step_multiple", "0", -1, NULL},
        {"throughput_probing_step_multiple", "1", -1, NULL},
        {"throughput_probing_read_write_ratio", "0", 0, "0.0"},
        {"throughput_probing_read_write_ratio", "1", 1, "1.0"},
        {"throughput_probing_read_write_ratio", "1.0", 1, "1.0"},
        {"throughput_probing_read_write_ratio", "1.000000", 1, "1.0"},
        {"throughput_probing_read_write_ratio", "1.000001", -1, NULL},
        {"throughput_probing_read_write_ratio", "-0.5", -1, NULL},
        {"throughput_probing_read_write_ratio", "+0.5", -1, NULL},
        {"throughput_probing_read_write_ratio", ".5", -1, NULL},
        {"throughput_probing_read_write_ratio", "0.", -1, NULL},
        {"throughput_probing_read_write_ratio", "00.5", -1, NULL},
        {"throughput_probing_read_write_ratio", "0,5", -1, NULL},
        {"throughput_probing_read_write_ratio", "0.5 ", -1, NULL},
        {"throughput_probing_read_write_ratio", "0.5.5", -1, NULL},
        {"throughput_probing_read_write_ratio", "5e-1", -1, NULL},
        {"throughput_probing_read_write_ratio", "nan", -1, NULL},
        {"throughput_probing_read_write_ratio", "inf", -1, NULL},
        {"throughput_probing_read_write_ratio", "", -1, NULL},
        {"throughput_probing_read_write_ratio", "18446744073709551615", -1, NULL},
        {"throughput_probing_read_write_ratio", "99999999999999999999999999", -1, NULL},
        {"throughput_probing_concurrency_moving_average_weight", "0", -1, NULL},
        {"throughput_probing_concurrency_moving_average_weight", "0.009", -1, NULL},
        {"throughput_probing_concurrency_moving_average_weight", "0.01", 0.01, "0.01"},
        {"throughput_probing_concurrency_moving_average_weight", "1", 1, "1.0"},
    };
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++) {
        struct hg_conf_upstream upstream;
        struct hg_conf_why why;
        const struct hg_conf_option *option =
            hg_conf_option_find(HG_CONF_SCOPE_UPSTREAM, rows[i].option);
        memset(&upstream, 0, sizeof upstream);
        assert_non_null(option);
        double *field = (void *)((char *)&upstream + option->offset);
        *field = 77;
        int rc = hg_conf_value_set(option, &upstream, rows[i].text, &why);
        if ((rc == 0) != (rows[i].value >= 0))
            fail_msg("%s: '%s' gave %d", rows[i].option, rows[i].text, rc);
        assert_true(*field == (rows[i].value >= 0 ? rows[i].value : 77));
        if (rc == 0) {
            char *shown = hg_conf_value_text(option, &upstream);
            assert_string_equal(shown, rows[i].shown);
            free(shown);
        }
    }
}

/* ---- the file ---- */

static void test_what_a_file_says_is_in_the_tree(void **state)
{
    (void)state;
    struct hg_conf *conf = apphelp_conf("ingress_enabled: false\ningress_tickets: 10\n"
                                        "bind_eviction_decr_per_sec: 11500\n"
                                        "bind_evict_sent_writes: true\n"
                                        "upstreams:\n"
                                        "  - name: rows\n"
                                        "    kind: embedded\n"
                                        "    execution_control: fixed\n"
                                        "    read_tickets: 7\n"
                                        "    queue_timeout_ms: 300\n"
                                        "    throughput_probing_read_write_ratio: 0.75\n"
                                        "tenants:\n"
                                        "  - {name: a, ticket_mode: \"off\", bind_mode: observe, "
                                        "bind_min_bytes: 250}\n");
    assert_false(conf->ingress_enabled);
    assert_int_equal(conf->ingress_tickets, 10);
    assert_true(conf->bind_eviction_decr_per_sec == 11500);
    assert_true(conf->bind_evict_sent_writes);
    assert_int_equal(conf->upstreams[0].execution_control, HG_CONF_EXECUTION_CONTROL_FIXED);
    assert_int_equal(conf->upstreams[0].read_tickets, 7);
    assert_int_equal(conf->upstreams[0].write_tickets, 1024);
    assert_int_equal(conf->upstreams[0].queue_timeout_ms, 300);
    assert_true(conf->upstreams[0].throughput_probing_read_write_ratio == 0.75);
    assert_int_equal(conf->tenants[0].ticket_mode, HG_CONF_TICKET_MODE_OFF);
    assert_int_equal(conf->tenants[0].bind_mode, HG_CONF_BIND_MODE_OBSERVE);
    assert_int_equal(conf->tenants[0].bind_min_bytes, 250);
    struct hg_conf *copy = hg_conf_clone(conf);
    assert_true(copy->bind_eviction_decr_per_sec == 11500);
    assert_true(copy->upstreams[0].throughput_probing_read_write_ratio == 0.75);
    assert_int_equal(hg_conf_diff(conf, copy, NULL, NULL), 0);
    hg_conf_free(copy);
    hg_conf_free(conf);
}

/* Each number at its bounds, which are those of the manual: taken there, refused beyond. */
static void test_bounds(void **state)
{
    (void)state;
    static const struct {
        enum hg_conf_scope scope;
        const char *option;
        uint64_t min, max;
    } rows[] = {
        {HG_CONF_SCOPE_SERVER, "ingress_tickets", 0, 1000000},
        {HG_CONF_SCOPE_SERVER, "ingress_max_queue_depth", 0, 1000000},
        {HG_CONF_SCOPE_SERVER, "ingress_queue_timeout_ms", 1, 600000},
        {HG_CONF_SCOPE_SERVER, "ingress_overload_wait_ms", 1, 600000},
        {HG_CONF_SCOPE_SERVER, "bind_backlog_ms", 100, 60000},
        {HG_CONF_SCOPE_SERVER, "bind_eviction_threshold_pct", 1, 100},
        {HG_CONF_SCOPE_SERVER, "bind_eviction_target_conn_pct", 0, 100},
        {HG_CONF_SCOPE_SERVER, "eviction_min_age_ms", 1, 600000},
        {HG_CONF_SCOPE_UPSTREAM, "read_tickets", 0, 1000000},
        {HG_CONF_SCOPE_UPSTREAM, "write_tickets", 0, 1000000},
        {HG_CONF_SCOPE_UPSTREAM, "upstream_tickets", 0, 1000000},
        {HG_CONF_SCOPE_UPSTREAM, "execution_max_queue_depth", 0, 1000000},
        {HG_CONF_SCOPE_UPSTREAM, "overload_wait_ms", 1, 600000},
        {HG_CONF_SCOPE_UPSTREAM, "flood_wait_ms", 10, 600000},
        {HG_CONF_SCOPE_UPSTREAM, "throughput_probing_interval_ms", 10, 60000},
        {HG_CONF_SCOPE_UPSTREAM, "throughput_probing_initial_concurrency", 0, 2000000},
        {HG_CONF_SCOPE_UPSTREAM, "throughput_probing_min_concurrency", 1, 1000000},
        {HG_CONF_SCOPE_UPSTREAM, "throughput_probing_max_concurrency", 1, 1000000},
        {HG_CONF_SCOPE_TENANT, "bind_min_bytes", 1, 250},
    };
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++) {
        const struct hg_conf_option *option = hg_conf_option_find(rows[i].scope, rows[i].option);
        void *object = calloc(1, hg_conf_scopes[rows[i].scope].object_size);
        struct hg_conf_why why;
        char text[32];
        assert_non_null(option);
        assert_true(option->at_run_time);
        assert_int_equal(option->min, rows[i].min);
        assert_int_equal(option->max, rows[i].max);
        snprintf(text, sizeof text, "%llu", (unsigned long long)rows[i].min);
        assert_int_equal(hg_conf_value_set(option, object, text, &why), 0);
        snprintf(text, sizeof text, "%llu", (unsigned long long)rows[i].max);
        assert_int_equal(hg_conf_value_set(option, object, text, &why), 0);
        snprintf(text, sizeof text, "%llu", (unsigned long long)rows[i].max + 1);
        assert_int_equal(hg_conf_value_set(option, object, text, &why), -EINVAL);
        snprintf(text, sizeof text, "%lld", (long long)rows[i].min - 1);
        assert_int_equal(hg_conf_value_set(option, object, text, &why), -EINVAL);
        free(object);
    }
}

#define E "upstreams:\n  - name: e\n    kind: embedded\n"

static void test_rules_between_sizes(void **state)
{
    (void)state;
    static const struct complaint refused[] = {
        {E "    flood_wait_ms: 1001\n",
         "c.yaml:4: flood_wait_ms '1001' of upstream 'e' exceeds queue_timeout_ms, 1000 (accepted: "
         "at least 10 and at most queue_timeout_ms)\n"},
        {E "    flood_wait_ms: 10\n    queue_timeout_ms: 5\n",
         "c.yaml:4: flood_wait_ms '10' of upstream 'e' exceeds queue_timeout_ms, 5 (accepted: at "
         "least 10 and at most queue_timeout_ms)\n"},
        {E "    throughput_probing_min_concurrency: 2000\n",
         "c.yaml:4: throughput_probing_min_concurrency '2000' of upstream 'e' exceeds "
         "throughput_probing_max_concurrency (accepted: 1 to 1024)\n"},
        {E "    throughput_probing_max_concurrency: 3\n",
         "c.yaml:4: throughput_probing_min_concurrency '4' of upstream 'e' exceeds "
         "throughput_probing_max_concurrency (accepted: 1 to 3)\n"},
        {E "    upstream_tickets: 1\n",
         "c.yaml:4: upstream_tickets '1' of upstream 'e' is less than a read and a write ticket "
         "for "
         "each of its servers (accepted: 0 for no limit, or 2 and more)\n"},
        {E "    throughput_probing_step_multiple: 0.6\n",
         "c.yaml:4: value out of range '0.6' of 'throughput_probing_step_multiple' (accepted: 0.01 "
         "to 0.5)\n"},
        {E "    execution_control: fast\n", "c.yaml:4: bad value 'fast' of 'execution_control' "
                                            "(accepted: adaptive, probing, fixed)\n"},
        {"bind_eviction_decr_per_sec: fast\n",
         "c.yaml:1: bad value 'fast' of 'bind_eviction_decr_per_sec' (accepted: 0.0 to 1000000.0 a "
         "second)\n"},
        {"tenants:\n  - {name: a, bind_mode: on}\n",
         "c.yaml:2: bad value 'on' of 'bind_mode' (accepted: off, observe, enforce)\n"},
    };
    static const struct complaint warned[] = {
        {E "    overload_wait_ms: 30\n",
         "warning: c.yaml:4: overload_wait_ms of upstream 'e' has no effect: what it did is now "
         "done by admission by predicted wait, see flood_wait_ms\n"},
        {"ingress_overload_wait_ms: 30\n",
         "warning: c.yaml:1: ingress_overload_wait_ms has no effect: what it did is now done by "
         "admission by predicted wait, see ingress_queue_timeout_ms\n"},
        {E "    queue_timeout_ms: 50\n", ""}, /* below flood_wait_ms, which nobody has set */
        {E "    throughput_probing_initial_concurrency: 8\n", ""},
        {E "    throughput_probing_initial_concurrency: 2048\n", ""},
        {E "    throughput_probing_initial_concurrency: 7\n",
         "warning: c.yaml:4: throughput_probing_initial_concurrency 7 of upstream 'e' is less than "
         "twice throughput_probing_min_concurrency: 8 is taken\n"},
        {E "    throughput_probing_initial_concurrency: 2049\n",
         "warning: c.yaml:4: throughput_probing_initial_concurrency 2049 of upstream 'e' is more "
         "than twice throughput_probing_max_concurrency: 2048 is taken\n"},
        {E "    upstream_tickets: 2\n", ""},
        {E "    read_tickets: 0\n", ""}, /* not fixed: it means nothing yet */
        {E "    execution_control: fixed\n    read_tickets: 5\n", ""},
        {E "    execution_control: fixed\n    read_tickets: 4\n    write_tickets: 0\n",
         "warning: c.yaml:5: read_tickets 4 of upstream 'e' is very few: a slow request keeps "
         "others out\n"
         "warning: c.yaml:6: write_tickets 0 of upstream 'e' lets no request in\n"},
        {"ingress_tickets: 0\n", "warning: c.yaml:1: ingress_tickets 0 lets no request in\n"},
        {"ingress_tickets: 0\ningress_enabled: false\n", ""},
    };
    apphelp_refuses(refused, HG_COUNT_OF(refused));
    apphelp_warns(warned, HG_COUNT_OF(warned));
}

static void test_all_kinds_of_upstream_have_tickets(void **state)
{
    (void)state;
    struct hg_conf *conf = apphelp_conf(
        "upstreams:\n"
        "  - {name: e, kind: embedded, read_tickets: 9, queue_timeout_ms: 9}\n"
        "  - {name: m, kind: memcached, read_tickets: 9, servers: [{address: \"h:1\"}]}\n"
        "  - {name: r, kind: redis, read_tickets: 9, servers: [{address: \"h:2\"}]}\n"
        "  - {name: c, kind: redis-cluster, read_tickets: 9, servers: [{address: \"h:3\"}]}\n"
        "tenants: [{name: a, upstream: e}]\n");
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(conf->upstreams[i].read_tickets, 9);
    hg_conf_free(conf);
}

/* ---- by opcode ---- */

static const char file[] = "bind_backlog_ms: 500\n"
                           "upstreams:\n"
                           "  - {name: e.x, kind: embedded, read_tickets: 10}\n"
                           "tenants:\n"
                           "  - {name: shop, bind_mode: observe}\n";

static struct hg_conf *merge(const char *text, const struct hg_state *state, const char *says)
{
    struct hg_conf_errors errs;
    struct hg_conf *conf = apphelp_conf(text), *merged = NULL;
    hg_conf_errors_init(&errs);
    int rc = hg_state_apply(conf, state, &merged, &errs);
    apphelp_said(&errs, says);
    assert_int_equal(rc, merged ? 0 : -EINVAL);
    hg_conf_free(conf);
    return merged;
}

static struct hg_state *over_a_restart(struct hg_state *state)
{
    struct hg_conf_errors errs;
    struct hg_state *again = NULL;
    char directory[] = "/tmp/hg-conf-XXXXXX", path[64];
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/s.json", directory);
    hg_conf_errors_init(&errs);
    assert_int_equal(hg_state_save(state, path), 0);
    assert_int_equal(hg_state_load(path, &again, &errs), 0);
    apphelp_said(&errs, "");
    unlink(path);
    rmdir(directory);
    hg_state_free(state);
    return again;
}

static void set_node(struct hg_state *state, const char *option, const char *text)
{
    struct hg_conf_why why;
    assert_int_equal(hg_state_set_node_option(state, option, text, &why), 0);
}

static void set_upstream(struct hg_state *state, const char *name, const char *option,
                         const char *text)
{
    struct hg_conf_why why;
    assert_int_equal(hg_state_set_upstream_option(state, hg_span_str(name), option, text, &why), 0);
}

static void set_tenant(struct hg_state *state, const char *option, const char *text)
{
    struct hg_conf_why why;
    assert_int_equal(hg_state_set_option(state, HG_SPAN_LIT("shop"), option, text, &why), 0);
}

static void test_settings_by_opcode_win_survive_and_go_back(void **unused)
{
    (void)unused;
    struct hg_state *state = hg_state_new();
    set_node(state, "bind_backlog_ms", "700");
    set_node(state, "bind_eviction_decr_per_sec", "0.1");
    set_upstream(state, "e.x", "read_tickets", "20");
    set_upstream(state, "e.x", "execution_control", "fixed");
    set_upstream(state, "e.x", "throughput_probing_read_write_ratio", "0.123456");
    set_tenant(state, "ticket_mode", "observe");
    set_tenant(state, "bind_mode", "off");
    set_tenant(state, "bind_min_bytes", "1");
    struct hg_state *clone = hg_state_clone(state);
    hg_state_free(state);
    state = over_a_restart(clone);
    struct hg_conf *conf = merge(
        file, state,
        "warning: c.yaml:1: 'bind_backlog_ms' was set by opcode, this line has no effect\n"
        "warning: c.yaml:3: 'read_tickets' of upstream 'e.x' was set by opcode, this line has no "
        "effect\n"
        "warning: c.yaml:5: 'bind_mode' of tenant 'shop' was set by opcode, this line has no "
        "effect\n");
    assert_int_equal(conf->bind_backlog_ms, 700);
    assert_true(conf->bind_eviction_decr_per_sec == 0.1);
    assert_int_equal(conf->lines[HG_CONF_SERVER_bind_backlog_ms], HG_CONF_BY_OPCODE);
    assert_int_equal(conf->upstreams[0].read_tickets, 20);
    assert_int_equal(conf->upstreams[0].execution_control, HG_CONF_EXECUTION_CONTROL_FIXED);
    assert_true(conf->upstreams[0].throughput_probing_read_write_ratio == 0.123456);
    assert_int_equal(conf->tenants[0].ticket_mode, HG_CONF_TICKET_MODE_OBSERVE);
    assert_int_equal(conf->tenants[0].bind_mode, HG_CONF_BIND_MODE_OFF);
    assert_int_equal(conf->tenants[0].bind_min_bytes, 1);
    hg_conf_free(conf);
    hg_state_unset_node(state);
    set_upstream(state, "e.x", "read_tickets", "");
    set_upstream(state, "e.x", "execution_control", "");
    set_upstream(state, "e.x", "throughput_probing_read_write_ratio", "");
    hg_state_unset_bucket(state, HG_SPAN_LIT("shop"));
    conf = merge(file, state, "");
    assert_int_equal(conf->bind_backlog_ms, 500);
    assert_true(conf->bind_eviction_decr_per_sec == 1);
    assert_int_equal(conf->upstreams[0].read_tickets, 10);
    assert_int_equal(conf->tenants[0].bind_mode, HG_CONF_BIND_MODE_OBSERVE);
    hg_conf_free(conf);
    hg_state_free(state);
}

/* ---- other defaults by one option ---- */

/* The options that compat_overload gives other defaults, as `option=value` with blanks. */
static const char *compat_of(const struct hg_conf_upstream *upstream)
{
    static const char *const names[] = {"execution_control", "bind_control",  "bind_mended",
                                        "flood_order",       "key_share_pct", "tenant_window"};
    static char text[256];
    size_t len = 0;
    for (size_t i = 0; i < HG_COUNT_OF(names); i++) {
        char *value =
            hg_conf_value_text(hg_conf_option_find(HG_CONF_SCOPE_UPSTREAM, names[i]), upstream);
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", i > 0 ? " " : "", value);
        free(value);
    }
    return text;
}

#define OWN_DEFAULTS "adaptive share halve oldest 25 8"

static void test_compat_overload(void **unused)
{
    (void)unused;
    static const struct {
        const char *head, *upstream, *by_node, *by_upstream, *is;
    } cases[] = {
        {"", "", NULL, NULL, OWN_DEFAULTS},
        {"compat_overload: none\n", "", NULL, NULL, OWN_DEFAULTS},
        {"compat_overload: seed\n", "", NULL, NULL, "probing hera seed oldest 100 0"},
        {"compat_overload: seed\n", "    key_share_pct: 25\n    bind_mended: halve\n", NULL, NULL,
         "probing hera halve oldest 25 0"},
        {"compat_overload: seed\n", "    flood_order: newest\n", NULL, "8",
         "probing hera seed newest 100 8"},
        {"compat_overload: seed\n", "    tenant_window: 8\n", "none", NULL, OWN_DEFAULTS},
        {"", "", "seed", NULL, "probing hera seed oldest 100 0"},
        {"", "    execution_control: fixed\n", "seed", "3", "fixed hera seed oldest 100 3"},
    };
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        char text[512];
        struct hg_state *state = hg_state_new();
        snprintf(text, sizeof text,
                 "%supstreams:\n  - name: e.x\n    kind: embedded\n%stenants:\n  - name: shop\n",
                 cases[i].head, cases[i].upstream);
        if (cases[i].by_node != NULL)
            set_node(state, "compat_overload", cases[i].by_node);
        if (cases[i].by_upstream != NULL)
            set_upstream(state, "e.x", "tenant_window", cases[i].by_upstream);
        const char *says =
            cases[i].by_node != NULL && cases[i].head[0]
                ? "warning: c.yaml:1: 'compat_overload' was set by opcode, this line "
                  "has no effect\n"
                : "";
        struct hg_conf *conf = merge(text, state, says);
        assert_string_equal(compat_of(&conf->upstreams[0]), cases[i].is);
        hg_conf_free(conf);
        hg_state_free(state);
    }
}

/* Also the store that there is without a file. */
static void test_compat_overload_of_the_default_upstream(void **unused)
{
    (void)unused;
    struct hg_state *state = hg_state_new();
    struct hg_conf *conf = merge("compat_overload: seed\n", state, "");
    assert_string_equal(compat_of(&conf->upstreams[0]), "probing hera seed oldest 100 0");
    hg_conf_free(conf);
    hg_state_free(state);
}

static void test_rules_hold_for_settings_by_opcode(void **unused)
{
    (void)unused;
    struct hg_state *state = hg_state_new();
    set_upstream(state, "e.x", "throughput_probing_min_concurrency", "2000");
    assert_null(merge(file, state,
                      "throughput_probing_min_concurrency '2000' of upstream 'e.x' exceeds "
                      "throughput_probing_max_concurrency (accepted: 1 to 1024)\n"
                      "the configuration and the settings made by opcode "
                      "('./headgate-data/state.json') do not fit together\n"));
    set_upstream(state, "e.x", "throughput_probing_max_concurrency", "2000");
    hg_conf_free(merge(file, state, ""));
    hg_state_free(state);
}

static void test_an_upstream_that_went_is_told(void **unused)
{
    (void)unused;
    struct hg_state *state = hg_state_new();
    set_upstream(state, "gone", "read_tickets", "20");
    hg_conf_free(merge(file, state,
                       "warning: settings made by opcode for upstream 'gone', which there is not, "
                       "have no effect\n"));
    set_upstream(state, "gone", "read_tickets", "");
    hg_conf_free(merge(file, state, ""));
    hg_state_free(state);
}

static void test_what_opcodes_cannot_set(void **unused)
{
    (void)unused;
    struct hg_state *state = hg_state_new();
    struct hg_conf_why why;
    assert_int_equal(hg_state_set_node_option(state, "threads", "1", &why), -EINVAL);
    assert_string_equal(
        why.text, "this option cannot be set at run time (accepted: log_level, max_connections, "
                  "idle_timeout_s, request_deadline_ms, throttle_max_wait_ms, slow_request_ms, "
                  "trace_sample, ingress_enabled, "
                  "ingress_tickets, ingress_max_queue_depth, ingress_queue_timeout_ms, "
                  "ingress_overload_wait_ms, compat_overload, bind_backlog_ms, "
                  "bind_eviction_threshold_pct, bind_eviction_target_conn_pct, "
                  "bind_eviction_decr_per_sec, eviction_min_age_ms, "
                  "bind_evict_sent_writes)");
    assert_int_equal(hg_state_set_upstream_option(state, HG_SPAN_LIT("e.x"), "sync", "never", &why),
                     -EINVAL);
    assert_string_equal(
        why.text,
        "this option of an upstream cannot be set at run time (accepted: connect_timeout_ms, "
        "backend_timeout_ms, "
        "reconnect_max_ms, pool_depth, pool_max_connections, pool_min_hold_ms, "
        "pool_idle_timeout_s, execution_control, "
        "read_tickets, write_tickets, tickets_scope, upstream_tickets, execution_max_queue_depth, "
        "queue_timeout_ms, overload_wait_ms, flood_wait_ms, flood_order, "
        "key_share_pct, tenant_window, bind_control, bind_mended, "
        "throughput_probing_interval_ms, throughput_probing_initial_concurrency, "
        "throughput_probing_min_concurrency, throughput_probing_max_concurrency, "
        "throughput_probing_read_write_ratio, "
        "throughput_probing_concurrency_moving_average_weight, throughput_probing_step_multiple, "
        "slow_server_factor)");
    assert_int_equal(
        hg_state_set_upstream_option(state, HG_SPAN_LIT("e.x"), "read_tickets", "-1", &why),
        -EINVAL);
    assert_string_equal(why.text,
                        "bad value '-1' of 'read_tickets' (accepted: 0 to 1000000 tickets)");
    assert_int_equal(hg_state_set_node_option(state, "bind_eviction_decr_per_sec", "1e9", &why),
                     -EINVAL);
    hg_conf_free(merge(file, state, "")); /* nothing was kept */
    hg_state_free(state);
}

#define BROKEN "s.json: broken state file: "

static void test_broken_files_are_named(void **unused)
{
    (void)unused;
    static const struct complaint cases[] = {
        {"{\"version\":1,\"options\":[]}", BROKEN "bad value '[]' of 'options' (accepted: an "
                                                  "object)\n"},
        {"{\"version\":1,\"options\":{\"bind_backlog_ms\":\"many\"}}",
         BROKEN "bad value '\"many\"' of 'bind_backlog_ms' (accepted: 100 to 60000 "
                "milliseconds)\n"},
        {"{\"version\":1,\"options\":{\"bind_eviction_decr_per_sec\":1e9}}",
         BROKEN "value out of range '1000000000' of 'bind_eviction_decr_per_sec' (accepted: 0.0 to "
                "1000000.0 a second)\n"},
        {"{\"version\":1,\"upstreams\":7}", BROKEN "bad value '7' of 'upstreams' (accepted: an "
                                                   "object)\n"},
        {"{\"version\":1,\"upstreams\":{\"a b\":{}}}",
         BROKEN "bad name of an upstream 'a b' (accepted: 1 to 100 of A-Z a-z 0-9 . _ % -)\n"},
        {"{\"version\":1,\"upstreams\":{\"a\":7}}", BROKEN "bad value '7' of 'a' (accepted: an "
                                                           "object)\n"},
        {"{\"version\":1,\"upstreams\":{\"a\":{\"read_tickets\":0.5}}}",
         BROKEN "bad value '0.5' of 'read_tickets' (accepted: 0 to 1000000 tickets)\n"},
        {"{\"version\":1,\"upstreams\":{\"a\":{\"execution_control\":\"fast\"}}}",
         BROKEN "bad value 'fast' of 'execution_control' (accepted: adaptive, probing, fixed)\n"},
    };
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        struct hg_conf_errors errs;
        struct hg_state *state = NULL;
        hg_conf_errors_init(&errs);
        int rc = hg_state_parse(cases[i].text, strlen(cases[i].text), "s.json", &state, &errs);
        apphelp_said(&errs, cases[i].says);
        assert_int_equal(rc, -EINVAL);
        assert_null(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decimals_are_taken_whole_or_not_at_all),
        cmocka_unit_test(test_what_a_file_says_is_in_the_tree),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_rules_between_sizes),
        cmocka_unit_test(test_all_kinds_of_upstream_have_tickets),
        cmocka_unit_test(test_settings_by_opcode_win_survive_and_go_back),
        cmocka_unit_test(test_compat_overload),
        cmocka_unit_test(test_compat_overload_of_the_default_upstream),
        cmocka_unit_test(test_rules_hold_for_settings_by_opcode),
        cmocka_unit_test(test_an_upstream_that_went_is_told),
        cmocka_unit_test(test_what_opcodes_cannot_set),
        cmocka_unit_test(test_broken_files_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
