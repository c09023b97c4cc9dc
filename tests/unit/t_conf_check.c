// t_conf_check - the rules between options, and what follows from them
// SPDX-License-Identifier: BSD-3-Clause
#include "apphelp.h"

#define EMBEDDED "upstreams: [{name: e, kind: embedded}]\n"
#define CACHE                                                                                      \
    "upstreams: [{name: cache, kind: memcached, servers: [{address: \"127.0.0.1:11311\"}]}]\n"

static void test_rules_are_told_with_line_and_way_out(void **state)
{
    (void)state;
    static const struct complaint cases[] = {
        {"request_deadline_ms: 900\n", "c.yaml:1: throttle_max_wait_ms '1000' exceeds "
                                       "request_deadline_ms (accepted: 0 to 900)\n"},
        {"request_deadline_ms: 1000\nthrottle_max_wait_ms: 1001\n",
         "c.yaml:2: throttle_max_wait_ms '1001' exceeds request_deadline_ms (accepted: 0 to "
         "1000)\n"},
        {"max_frame_bytes: 1 MiB\n", "c.yaml:1: max_value_bytes '1048576' does not fit into "
                                     "max_frame_bytes '1048576' (accepted: "
                                     "at least 1024 less)\n"},
        {"default_throttle_reserved_units: 5\ndefault_throttle_hard_limit: 4\n",
         "c.yaml:1: default_throttle_reserved_units '5' exceeds default_throttle_hard_limit "
         "(accepted: 0 to 4)\n"},
        {"tenants: [{name: a, reserved: 5, hard_limit: 4}]\n",
         "c.yaml:1: reserved '5' of tenant 'a' exceeds hard_limit (accepted: 0 to 4)\n"},
        {"default_throttle_hard_limit: 4\ntenants:\n  - {name: a, reserved: unlimited}\n",
         "c.yaml:3: reserved 'unlimited' of tenant 'a' exceeds hard_limit (accepted: 0 to 4)\n"},
        {"default_throttle_reserved_units: 9\ntenants:\n  - {name: a, hard_limit: 4}\n",
         "c.yaml:3: reserved '9' of tenant 'a' exceeds hard_limit (accepted: 0 to 4)\n"},
        {"tenants:\n  - {name: a, upstream: rows}\n",
         "c.yaml:2: unknown upstream 'rows' of tenant 'a' (accepted: embedded)\n"},
        {"upstreams: [{name: e, kind: embedded}, {name: f, kind: embedded}]\ntenants:\n  - {name: "
         "a}\n",
         "c.yaml:3: no upstream for tenant 'a', and there are 2 (accepted: e, f)\n"},
        {"upstreams: [{name: e, kind: embedded}, {name: f, kind: embedded}]\n",
         "no upstream for tenant 'default', and there are 2 (accepted: e, f)\n"},
        {"tenants:\n  - {name: a}\n  - {name: b}\n  - {name: a}\n",
         "c.yaml:4: repeated tenant 'a' (accepted: once, and it is in line 2)\n"},
        {"upstreams:\n  - {name: e, kind: embedded}\n  - {name: e, kind: embedded}\n"
         "tenants: [{name: a, upstream: e}]\n",
         "c.yaml:3: repeated upstream 'e' (accepted: once, and it is in line 2)\n"},
        {"upstreams:\n  - {name: .., kind: embedded}\n",
         "c.yaml:2: upstream '..' cannot name a file (accepted: no dot in front)\n"},
        {"listen:\n  - {address: /a}\n  - {address: /a}\n",
         "c.yaml:3: repeated listener '/a' (accepted: once)\n"},
        {"listen:\n  - {address: \"127.0.0.1:1\", mode: 0660}\n",
         "c.yaml:2: 'mode' has no effect on listener '127.0.0.1:1' (accepted: on unix sockets)\n"},
        {"listen:\n  - {address: \"0.0.0.0:11211\"}\n",
         "c.yaml:2: listener '0.0.0.0:11211' would let everybody do everything (accepted: a "
         "users_file, or loopback and unix sockets, or --insecure)\n"},
        {"upstreams:\n  - {name: c, kind: memcached}\n",
         "c.yaml:2: no servers for upstream 'c' (accepted: servers, or configuration)\n"},
        {"upstreams:\n  - name: e\n    kind: embedded\n    ring: ketama\n    pool_depth: 5\n",
         "c.yaml:4: 'ring' has no effect on upstream 'e' of kind embedded\n"
         "c.yaml:5: 'pool_depth' has no effect on upstream 'e' of kind embedded\n"},
        {"upstreams:\n  - name: c\n    kind: memcached\n    sync: never\n"
         "    servers: [{address: \"h:1\"}]\n",
         "c.yaml:4: 'sync' has no effect on upstream 'c' of kind memcached\n"},
        {"upstreams:\n  - name: c\n    kind: memcached\n    servers:\n      - {address: \"h:0\"}\n"
         "      - {address: \"h:1\"}\n      - {address: \"h:1\"}\n",
         "c.yaml:5: port 0 in server 'h:0' (accepted: 1 to 65535)\n"
         "c.yaml:7: repeated server 'h:1' of upstream 'c' (accepted: once)\n"},
        {EMBEDDED "tenants:\n  - {name: a, key_prefix: x}\n",
         "c.yaml:3: 'key_prefix' has no effect on tenant 'a', whose upstream 'e' is embedded and "
         "keeps tenants apart anyway\n"},
    };
    apphelp_refuses(cases, HG_COUNT_OF(cases));
}

static void test_warnings_stop_nothing(void **state)
{
    (void)state;
    static const struct complaint cases[] = {
        {"node_capacity: 10\ntenants: [{name: a, reserved: 6}, {name: b, reserved: 5}]\n",
         "warning: c.yaml:1: reservations of 11 units/s exceed node_capacity 10: all are honoured, "
         "and nothing is left for the free pool\n"},
        {"node_capacity: 10\ntenants: [{name: a, reserved: 5}, {name: b, reserved: 5}]\n", ""},
        {"node_capacity: 10\ntenants: [{name: a, reserved: unlimited}]\n", ""},
        {CACHE "tenants:\n  - {name: a}\n  - {name: bcd}\n",
         "warning: c.yaml:3: key prefix 'a:' of tenant 'a' leaves 248 bytes for a key; longer keys "
         "are answered 0x04\n"
         "warning: c.yaml:4: key prefix 'bcd:' of tenant 'bcd' leaves 246 bytes for a key; longer "
         "keys are answered 0x04\n"},
        {CACHE "tenants:\n  - {name: a, key_prefix: \"\"}\n  - {name: b, key_prefix: \"\"}\n",
         "warning: c.yaml:3: tenants 'a' and 'b' share keys: prefix '' and '' overlap\n"},
        {CACHE "tenants:\n  - {name: a, key_prefix: x}\n  - {name: b, key_prefix: xy}\n",
         "warning: c.yaml:3: key prefix 'x' of tenant 'a' leaves 249 bytes for a key; longer keys "
         "are answered 0x04\n"
         "warning: c.yaml:4: key prefix 'xy' of tenant 'b' leaves 248 bytes for a key; longer keys "
         "are answered 0x04\n"
         "warning: c.yaml:3: tenants 'a' and 'b' share keys: prefix 'x' and 'xy' overlap\n"},
        {"upstreams:\n  - name: c\n    kind: memcached\n    ring: modula\n"
         "    servers: [{address: \"h:1\", weight: 2}, {address: \"h:2\"}]\n",
         "warning: c.yaml:5: weight of server 'h:1' has no effect with ring modula\n"},
        {"upstreams:\n  - name: c\n    kind: memcached\n    hash: crc\n"
         "    servers: [{address: \"h:1\"}, {address: \"h:2\"}]\n",
         "warning: c.yaml:4: hash crc has 15 bits: with ring ketama all keys of upstream 'c' go to "
         "one server\n"},
        {"upstreams:\n  - name: c\n    kind: memcached\n    backend_timeout_ms: 9000\n"
         "    servers: [{address: \"h:1\"}]\n",
         "warning: c.yaml:2: backend_timeout_ms 9000 of upstream 'c' is beyond request_deadline_ms "
         "2500\n"},
    };
    apphelp_warns(cases, HG_COUNT_OF(cases));
}

static void test_prefixes_keep_tenants_of_one_memcached_apart(void **state)
{
    (void)state;
    struct hg_conf *alone = apphelp_conf(CACHE "tenants: [{name: a}]\n");
    assert_string_equal(alone->tenants[0].effective_prefix, "");
    hg_conf_free(alone);
    struct hg_conf *embedded = apphelp_conf(EMBEDDED "tenants: [{name: a}, {name: b}]\n");
    assert_string_equal(embedded->tenants[0].effective_prefix, "");
    assert_int_equal(embedded->tenants[0].neighbours, 1);
    hg_conf_free(embedded);

    static const char shared[] = CACHE "tenants: [{name: a}, {name: b, key_prefix: \"\"}]\n";
    struct hg_conf_errors errs;
    struct hg_conf *conf = NULL;
    hg_conf_errors_init(&errs);
    assert_int_equal(hg_conf_parse(shared, strlen(shared), "c.yaml", NULL, &conf, &errs), 0);
    hg_conf_errors_fini(&errs);
    assert_string_equal(conf->tenants[0].effective_prefix, "a:");
    assert_string_equal(conf->tenants[1].effective_prefix, "");
    hg_conf_free(conf);
}

#define TLS(more)                                                                                  \
    "users_file: u.yaml\nlisten:\n  - address: \"127.0.0.1:11207\"\n"                              \
    "    tls:\n      certificate: a.crt\n      key: a.key\n" more

static void test_client_certificates_need_an_authority(void **state)
{
    (void)state;
    static const struct complaint refused[] = {
        {TLS("      client_auth: required\n"),
         "c.yaml:7: 'client_auth' of listener '127.0.0.1:11207' needs 'client_ca', the file of the "
         "authorities whose certificates are accepted\n"},
        {TLS("      client_user: cn\n"),
         "c.yaml:7: 'client_user' of listener '127.0.0.1:11207' needs 'client_auth' (accepted: "
         "optional, required)\n"},
        {"listen:\n  - address: \"127.0.0.1:11207\"\n"
         "    tls: {certificate: a, key: b, client_ca: c, client_auth: optional, client_user: "
         "cn}\n",
         "c.yaml:3: 'client_user' of listener '127.0.0.1:11207' needs a users_file, which lists "
         "the "
         "users\n"},
    };
    static const struct complaint warned[] = {
        {TLS("      client_ca: ca.crt\n"),
         "warning: c.yaml:7: 'client_ca' has no effect on listener '127.0.0.1:11207', whose "
         "'client_auth' is none\n"},
    };
    apphelp_refuses(refused, HG_COUNT_OF(refused));
    apphelp_warns(warned, HG_COUNT_OF(warned));
    hg_conf_free(apphelp_conf(TLS("      client_ca: ca.crt\n      client_auth: optional\n"
                                  "      client_user: cn\n      min_version: \"1.3\"\n")));
}

static void test_open_listeners_need_users_or_a_word(void **state)
{
    (void)state;
    static const char text[] = "listen:\n  - {address: \"0.0.0.0:11211\"}\n";
    struct hg_conf_overrides insecure = {.insecure = true};
    struct hg_conf_errors errs;
    struct hg_conf *conf = NULL;
    hg_conf_errors_init(&errs);
    assert_int_equal(hg_conf_parse(text, strlen(text), "c.yaml", &insecure, &conf, &errs), 0);
    apphelp_said(&errs, "warning: c.yaml:2: listener '0.0.0.0:11211' lets everybody do everything, "
                        "without a login\n");
    hg_conf_free(conf);
    conf = apphelp_conf("users_file: u.yaml\nlisten: [{address: \"0.0.0.0:11211\"}]\n");
    hg_conf_free(conf);

    static const char *const listen[] = {"[::]:11211"};
    struct hg_conf_overrides overrides = {.listen = listen, .listen_count = 1};
    conf = NULL;
    assert_int_equal(hg_conf_load(NULL, &overrides, &conf, &errs), -22);
    apphelp_said(&errs, "listener '[::]:11211' would let everybody do everything (accepted: a "
                        "users_file, or loopback and unix sockets, or --insecure)\n");
}

/* Port 0 is another port each time. */
static void test_free_ports_are_no_repetition(void **state)
{
    (void)state;
    struct hg_conf *conf =
        apphelp_conf("listen: [{address: \"127.0.0.1:0\"}, {address: \"127.0.0.1:0\"}]\n");
    assert_int_equal(conf->listen_count, 2);
    hg_conf_free(conf);
}

static void test_no_tenants_is_a_choice(void **state)
{
    (void)state;
    struct hg_conf *conf = apphelp_conf("tenants: []\n");
    assert_int_equal(conf->tenants_count, 0);
    hg_conf_free(conf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_are_told_with_line_and_way_out),
        cmocka_unit_test(test_warnings_stop_nothing),
        cmocka_unit_test(test_prefixes_keep_tenants_of_one_memcached_apart),
        cmocka_unit_test(test_client_certificates_need_an_authority),
        cmocka_unit_test(test_open_listeners_need_users_or_a_word),
        cmocka_unit_test(test_free_ports_are_no_repetition),
        cmocka_unit_test(test_no_tenants_is_a_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
