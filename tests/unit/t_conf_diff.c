// t_conf_diff - what a reload would change, by path, and what it cannot
// SPDX-License-Identifier: BSD-3-Clause
#include "apphelp.h"

struct seen {
    char text[2000];
    size_t calls;
};

static void note(void *ctx, const struct hg_conf_change *change)
{
    struct seen *seen = ctx;
    size_t at = strlen(seen->text);
    seen->calls++;
    snprintf(seen->text + at, sizeof seen->text - at, "%s: %s -> %s%s\n", change->path,
             change->before ? change->before : "none", change->after ? change->after : "none",
             change->at_run_time ? "" : " (start)");
}

static void differ(const char *before, const char *after, size_t at_start, const char *says)
{
    struct hg_conf *old = apphelp_conf(before), *new = apphelp_conf(after);
    struct seen seen = {"", 0};
    assert_int_equal(hg_conf_diff(old, new, note, &seen), at_start);
    assert_string_equal(seen.text, says);
    hg_conf_free(old);
    hg_conf_free(new);
}

static void test_options_are_told_by_path(void **state)
{
    (void)state;
    differ("", "", 0, "");
    differ("threads: 2\nlog_level: debug\n", "threads: 3\nmax_value_bytes: 2 MiB\n", 2,
           "threads: 2 -> 3 (start)\n"
           "log_level: debug -> info\n"
           "max_value_bytes: 1 MiB -> 2 MiB (start)\n");
    differ("listen: [{address: /a}]\n",
           "listen: [{address: /a, mode: 0770}, {address: \"[::1]:1\"}]\n", 1,
           "listen: [/a 0700] -> [/a 0770, [::1]:1 0700] (start)\n");
}

static void test_upstreams_and_tenants_are_told_by_name(void **state)
{
    (void)state;
    static const char before[] =
        "upstreams:\n"
        "  - {name: c, kind: memcached, servers: [{address: \"h:1\"}, {address: \"h:2\"}]}\n"
        "  - {name: e, kind: embedded}\n"
        "tenants: [{name: a, upstream: c}, {name: b, upstream: e, reserved: 5}]\n";
    static const char after[] = "upstreams:\n"
                                "  - {name: n, kind: embedded}\n"
                                "  - {name: c, kind: memcached, backend_timeout_ms: 7,\n"
                                "     servers: [{address: \"h:1\", weight: 2}]}\n"
                                "tenants: [{name: b, upstream: n, reserved: unlimited},\n"
                                "          {name: z, upstream: c}]\n";
    differ(before, after, 0,
           "upstream.c.servers: [h:1 1, h:2 1] -> [h:1 2]\n"
           "upstream.c.backend_timeout_ms: 1000 -> 7\n"
           "upstream.e: embedded -> none\n"
           "upstream.n: none -> embedded\n"
           "tenant.a: c -> none\n"
           "tenant.b.upstream: e -> n\n"
           "tenant.b.reserved: 5 -> unlimited\n"
           "tenant.z: none -> c\n");
}

static void test_order_of_names_means_nothing(void **state)
{
    (void)state;
    differ("tenants: [{name: a}, {name: b}]\n", "tenants: [{name: b}, {name: a}]\n", 0, "");
}

/* Nothing was written about tenant a, and yet its keys get another prefix. */
static void test_a_prefix_that_follows_is_told(void **state)
{
    (void)state;
    static const char alone[] =
        "upstreams: [{name: c, kind: memcached, servers: [{address: \"h:1\"}]}]\n"
        "tenants: [{name: a}]\n";
    static const char shared[] =
        "upstreams: [{name: c, kind: memcached, servers: [{address: \"h:1\"}]}]\n"
        "tenants: [{name: a}, {name: b}]\n";
    struct hg_conf_errors errs;
    struct hg_conf *old = apphelp_conf(alone), *new = NULL;
    struct seen seen = {"", 0};
    hg_conf_errors_init(&errs);
    assert_int_equal(hg_conf_parse(shared, strlen(shared), "c.yaml", NULL, &new, &errs), 0);
    hg_conf_errors_fini(&errs);
    assert_int_equal(hg_conf_diff(old, new, note, &seen), 0);
    assert_string_equal(seen.text, "tenant.a.key_prefix:  -> a:\ntenant.b: none -> c\n");
    hg_conf_free(old);
    hg_conf_free(new);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_are_told_by_path),
        cmocka_unit_test(test_upstreams_and_tenants_are_told_by_name),
        cmocka_unit_test(test_a_prefix_that_follows_is_told),
        cmocka_unit_test(test_order_of_names_means_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
