// t_conf - a configuration file as a whole: what it gives, and the words for each fault
// SPDX-License-Identifier: BSD-3-Clause
#include "apphelp.h"

#include "app/conf_table.h"

#include <errno.h>

static void test_without_a_file_it_runs(void **state)
{
    (void)state;
    struct hg_conf_errors errs;
    struct hg_conf *conf = NULL;
    hg_conf_errors_init(&errs);
    assert_int_equal(hg_conf_load(NULL, NULL, &conf, &errs), 0);
    apphelp_said(&errs, "");
    assert_string_equal(conf->file, "");
    assert_int_equal(conf->listen_count, 1);
    assert_string_equal(conf->listen[0].address.host, "127.0.0.1");
    assert_int_equal(conf->listen[0].address.port, 11211);
    assert_int_equal(conf->upstreams_count, 1);
    assert_string_equal(conf->upstreams[0].name, "embedded");
    assert_int_equal(conf->upstreams[0].kind, HG_CONF_KIND_EMBEDDED);
    assert_int_equal(conf->upstreams[0].sync, HG_CONF_SYNC_SECOND);
    assert_int_equal(conf->tenants[0].neighbours, 0);
    assert_int_equal(conf->tenants_count, 1);
    assert_string_equal(conf->tenants[0].name, "default");
    assert_int_equal(conf->tenants[0].upstream_index, 0);
    assert_string_equal(conf->tenants[0].effective_prefix, "");
    assert_int_equal(conf->tenants[0].reserved, 0);
    assert_int_equal(conf->tenants[0].hard_limit, HG_CONF_UNLIMITED);
    assert_int_equal(conf->node_capacity, HG_CONF_UNLIMITED);
    assert_int_equal(conf->request_deadline_ms, 2500);
    assert_int_equal(conf->max_frame_bytes, 20 << 20);
    assert_string_equal(conf->data_dir, "./headgate-data");
    assert_string_equal(conf->state_path, "./headgate-data/state.json");
    assert_string_equal(conf->users_file, "");
    hg_conf_free(conf);
}

static void test_an_empty_file_is_the_defaults(void **state)
{
    (void)state;
    static const char *const empty[] = {"", "\n", "# nothing\n", "---\n# nothing\n", "{}\n"};
    for (size_t i = 1; i < HG_COUNT_OF(empty); i++) {
        struct hg_conf *conf = apphelp_conf(empty[i]), *none = apphelp_conf(empty[0]);
        assert_int_equal(hg_conf_diff(none, conf, NULL, NULL), 0);
        hg_conf_free(conf);
        hg_conf_free(none);
    }
}

static const char whole[] =
    "listen:\n"
    "  - {address: \"127.0.0.1:11211\"}\n"
    "  - {address: \"[::1]:11212\"}\n"
    "  - {address: /run/h.sock, mode: 0660}\n"
    "threads: 3\n"
    "data_dir: /var/lib/headgate\n"
    "state_file: /etc/headgate/state.json\n"
    "node_capacity: 25000\n"
    "default_throttle_reserved_units: 7\n"
    "default_throttle_hard_limit: 900\n"
    "free_pool: fair\n"
    "max_value_bytes: 512 KiB\n"
    "upstreams:\n"
    "  - name: cache\n"
    "    kind: memcached\n"
    "    ring: ketama_weighted\n"
    "    hash: murmur3\n"
    "    eject_servers: true\n"
    "    multiget_backend_error: miss\n"
    "    servers:\n"
    "      - {address: 10.0.0.1:11211, weight: 2}\n"
    "      - {address: \"[fd00::2]:11211\"}\n"
    "      - {address: unix:/run/mc.sock}\n"
    "  - {name: rows, kind: embedded, sync: always, embedded_max_bytes: 2 GiB}\n"
    "tenants:\n"
    "  - {name: shop, upstream: cache, reserved: 5, hard_limit: unlimited}\n"
    "  - {name: ledger, upstream: rows, credit_mode: observe,\n"
    "     reject_status: degrade, max_connections: 9, allow_flush: false}\n";

static void test_a_whole_file_is_what_it_says(void **state)
{
    (void)state;
    struct hg_conf *conf = apphelp_conf(whole);
    const struct hg_conf_upstream *cache = &conf->upstreams[0], *rows = &conf->upstreams[1];
    const struct hg_conf_tenant *shop = &conf->tenants[0], *ledger = &conf->tenants[1];
    assert_int_equal(conf->listen_count, 3);
    assert_string_equal(conf->listen[1].address.host, "::1");
    assert_true(conf->listen[2].address.is_unix);
    assert_int_equal(conf->listen[2].mode, 0660);
    assert_int_equal(conf->listen[0].mode, 0700);
    assert_int_equal(conf->threads, 3);
    assert_int_equal(conf->lines[HG_CONF_SERVER_threads], 5);
    assert_int_equal(conf->lines[HG_CONF_SERVER_log_level], 0);
    assert_string_equal(conf->state_path, "/etc/headgate/state.json");
    assert_int_equal(conf->free_pool, HG_CONF_FREE_POOL_FAIR);
    assert_int_equal(conf->max_value_bytes, 512 * 1024);
    assert_int_equal(cache->ring, HG_CONF_RING_KETAMA_WEIGHTED);
    assert_int_equal(cache->hash, HG_CONF_HASH_MURMUR3);
    assert_int_equal(cache->multiget_backend_error, HG_CONF_MULTIGET_MISS);
    assert_true(cache->eject_servers);
    assert_int_equal(cache->servers_count, 3);
    assert_int_equal(cache->servers[0].weight, 2);
    assert_int_equal(cache->servers[1].weight, 1);
    assert_string_equal(cache->servers[1].address.host, "fd00::2");
    assert_string_equal(cache->servers[2].address.host, "/run/mc.sock");
    assert_int_equal(rows->sync, HG_CONF_SYNC_ALWAYS);
    assert_int_equal(rows->embedded_max_bytes, UINT64_C(2) << 30);
    assert_int_equal(shop->reserved, 5);
    assert_int_equal(shop->hard_limit, HG_CONF_UNLIMITED);
    assert_int_equal(shop->lines[HG_CONF_TENANT_reserved], 26);
    assert_int_equal(ledger->reserved, 7);
    assert_int_equal(ledger->hard_limit, 900);
    assert_int_equal(ledger->upstream_index, 1);
    assert_int_equal(ledger->credit_mode, HG_CONF_CREDIT_MODE_OBSERVE);
    assert_int_equal(ledger->reject_status, HG_CONF_REJECT_STATUS_DEGRADE);
    assert_int_equal(ledger->max_connections, 9);
    assert_false(ledger->allow_flush);
    assert_ptr_equal(hg_conf_tenant_find(conf, "ledger", 6), ledger);
    assert_null(hg_conf_tenant_find(conf, "ledge", 5));
    assert_int_equal(hg_conf_upstream_find(conf, "rows"), 1);
    assert_int_equal(hg_conf_upstream_find(conf, "row"), HG_CONF_NO_UPSTREAM);
    hg_conf_free(conf);
}

static void test_a_copy_is_equal_and_its_own(void **state)
{
    (void)state;
    struct hg_conf *conf = apphelp_conf(whole), *copy = hg_conf_clone(conf);
    assert_non_null(copy);
    assert_int_equal(hg_conf_diff(conf, copy, NULL, NULL), 0);
    assert_string_equal(copy->tenants[0].effective_prefix, conf->tenants[0].effective_prefix);
    assert_int_equal(copy->tenants[1].upstream_index, 1);
    assert_int_equal(copy->tenants[1].neighbours, conf->tenants[1].neighbours);
    assert_int_equal(copy->lines[HG_CONF_SERVER_threads], 5);
    hg_conf_free(conf);
    assert_string_equal(copy->upstreams[0].servers[2].address.text, "unix:/run/mc.sock");
    hg_conf_free(copy);
}

static void test_all_faults_are_told_at_once(void **state)
{
    (void)state;
    struct hg_conf_why unknown; /* with all options there are */
    char expected[8192];
    struct complaint cases[] = {
        {"thread: 4\n"
         "threads: 300\n"
         "max_value_bytes: 10MB\n"
         "idle_timeout_s: 1.5\n"
         "free_pool: maybe\n"
         "node_capacity: -1\n"
         "users_file: ~\n"
         "log_file:\n"
         "data_dir: \"\"\n"
         "listen:\n"
         "  - 5\n"
         "  - {address: foo}\n"
         "  - {mode: \"0888\"}\n"
         "upstreams: [{name: a b, kind: memcached, servers: []}, {}]\n"
         "tenants: {a: b}\n",
         "c.yaml:2: value out of range '300' of 'threads' (accepted: 0 to 256 threads)\n"
         "c.yaml:3: bad value '10MB' of 'max_value_bytes' (accepted: 1 to 134217728 bytes, or with "
         "KiB, MiB, GiB)\n"
         "c.yaml:4: bad value '1.5' of 'idle_timeout_s' (accepted: 0 to 31536000 seconds)\n"
         "c.yaml:5: bad value 'maybe' of 'free_pool' (accepted: first-come, fair)\n"
         "c.yaml:6: bad value '-1' of 'node_capacity' (accepted: 0 to 1000000000000 units/s, or "
         "unlimited)\n"
         "c.yaml:7: no value for 'users_file' (accepted: a value, or the line left out)\n"
         "c.yaml:8: no value for 'log_file' (accepted: a value, or the line left out)\n"
         "c.yaml:9: bad length of '' of 'data_dir' (accepted: text of 1 to 4000 bytes)\n"
         "c.yaml:11: a value given for 'listener' (accepted: a mapping of options: write {address: "
         "\"5\"})\n"
         "c.yaml:12: bad value 'foo' of 'address' (accepted: HOST:PORT, [IPV6]:PORT, unix:PATH, "
         "/PATH)\n"
         "c.yaml:13: bad value '0888' of 'mode' (accepted: 3 or 4 octal digits up to 0777)\n"
         "c.yaml:13: listener without 'address' (accepted: HOST:PORT, [IPV6]:PORT, unix:PATH, "
         "/PATH)\n"
         "c.yaml:14: bad name 'a b' of 'name' (accepted: 1 to 100 of the characters A-Z a-z 0-9 . "
         "_ % -)\n"
         "c.yaml:14: 0 entries in 'servers' (accepted: a list of 1 to 1000 entries)\n"
         "c.yaml:14: upstream without 'name' (accepted: 1 to 100 of the characters A-Z a-z 0-9 . _ "
         "% -)\n"
         "c.yaml:14: upstream without 'kind' (accepted: embedded, memcached, redis, "
         "redis-cluster)\n"
         "c.yaml:15: a mapping given for 'tenants' (accepted: a list)\n"},
    };
    hg_conf_option_unknown(HG_CONF_SCOPE_SERVER, "thread", &unknown);
    snprintf(expected, sizeof expected, "c.yaml:1: %s\n%s", unknown.text, cases[0].says);
    cases[0].says = expected;
    apphelp_refuses(cases, HG_COUNT_OF(cases));
}

static void test_no_more_than_twenty_faults_are_kept(void **state)
{
    (void)state;
    char text[600] = "";
    struct hg_conf_errors errs;
    struct hg_conf *conf = NULL;
    for (int i = 0; i < 30; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "x%d: 1\n", i);
    hg_conf_errors_init(&errs);
    assert_int_equal(hg_conf_parse(text, strlen(text), "c.yaml", NULL, &conf, &errs), -EINVAL);
    assert_int_equal(errs.error_count, 20);
    assert_int_equal(errs.errors_left_out, 10);
    char *lines = apphelp_lines(&errs);
    assert_non_null(strstr(lines, "\nand 10 more\n"));
    free(lines);
    hg_conf_errors_fini(&errs);
}

static void test_a_file_that_cannot_be_read_is_named(void **state)
{
    (void)state;
    struct hg_conf_errors errs;
    struct hg_conf *conf = NULL;
    hg_conf_errors_init(&errs);
    assert_int_equal(hg_conf_load("no/such.yaml", NULL, &conf, &errs), -ENOENT);
    apphelp_said(&errs, "cannot read 'no/such.yaml': No such file or directory\n");
    assert_int_equal(hg_conf_load("/", NULL, &conf, &errs), -EISDIR);
    apphelp_said(&errs, "cannot read '/': Is a directory\n");
    char *large = calloc(1, (1 << 20) + 1);
    assert_non_null(large);
    assert_int_equal(hg_conf_parse(large, (1 << 20) + 1, "c.yaml", NULL, &conf, &errs), -EINVAL);
    apphelp_said(&errs, "c.yaml: configuration of 1048577 bytes (accepted: up to 1048576)\n");
    free(large);
}

static void test_the_command_line_wins(void **state)
{
    (void)state;
    static const char *const listen[] = {"127.0.0.1:0", "/run/other.sock"};
    struct hg_conf_overrides overrides = {
        .listen = listen, .listen_count = 2, .data_dir = "/tmp/d", .threads = "5"};
    struct hg_conf_errors errs;
    struct hg_conf *conf = NULL;
    hg_conf_errors_init(&errs);
    assert_int_equal(hg_conf_parse(whole, strlen(whole), "c.yaml", &overrides, &conf, &errs), 0);
    apphelp_said(&errs, "");
    assert_int_equal(conf->listen_count, 2);
    assert_int_equal(conf->listen[0].address.port, 0);
    assert_string_equal(conf->listen[1].address.text, "/run/other.sock");
    assert_string_equal(conf->data_dir, "/tmp/d");
    assert_int_equal(conf->threads, 5);
    hg_conf_free(conf);
    conf = NULL;

    static const char *const wrong[] = {"11211"};
    overrides.listen = wrong;
    overrides.listen_count = 1;
    assert_int_equal(hg_conf_parse(whole, strlen(whole), "c.yaml", &overrides, &conf, &errs),
                     -EINVAL);
    apphelp_said(&errs, "command line: bad value '11211' of 'address' (accepted: HOST:PORT, "
                        "[IPV6]:PORT, unix:PATH, /PATH)\n");
    overrides.listen_count = 0;
    overrides.threads = "many";
    assert_int_equal(hg_conf_load(NULL, &overrides, &conf, &errs), -EINVAL);
    apphelp_said(&errs,
                 "command line: bad value 'many' of 'threads' (accepted: 0 to 256 threads)\n");
    assert_null(conf);
}

static void test_control_characters_do_not_reach_a_terminal(void **state)
{
    (void)state;
    static const struct complaint cases[] = {
        {"log_level: \"\\e[31mred\"\n",
         "c.yaml:1: bad value '?[31mred' of 'log_level' (accepted: error, warning, info, debug)\n"},
    };
    apphelp_refuses(cases, HG_COUNT_OF(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_file_it_runs),
        cmocka_unit_test(test_an_empty_file_is_the_defaults),
        cmocka_unit_test(test_a_whole_file_is_what_it_says),
        cmocka_unit_test(test_a_copy_is_equal_and_its_own),
        cmocka_unit_test(test_all_faults_are_told_at_once),
        cmocka_unit_test(test_no_more_than_twenty_faults_are_kept),
        cmocka_unit_test(test_a_file_that_cannot_be_read_is_named),
        cmocka_unit_test(test_the_command_line_wins),
        cmocka_unit_test(test_control_characters_do_not_reach_a_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
