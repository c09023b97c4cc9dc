// t_conf_redis - upstreams of kind redis and redis-cluster: what is accepted, whose keys share a
// place
// SPDX-License-Identifier: BSD-3-Clause
#include "apphelp.h"

#define SERVERS "    servers: [{address: \"127.0.0.1:6379\"}]\n"
#define REDIS   "upstreams:\n  - name: r\n    kind: redis\n" SERVERS
#define CLUSTER "upstreams:\n  - name: c\n    kind: redis-cluster\n" SERVERS
#define NOT_OF(line, option, kind)                                                                 \
    "c.yaml:" line ": '" option "' has no effect on upstream 'r' of kind " kind "\n"

static void test_a_redis_upstream_is_read_whole(void **state)
{
    (void)state;
    struct hg_conf *conf = apphelp_conf(
        REDIS "    user: gate\n    password: secret\n    database: 3\n    redis_layout: plain\n"
              "    ranges: off\n    connect_timeout_ms: 7\n    pool_depth: 8\n"
              "    pool_min_hold_ms: 2000\n    multiget_backend_error: miss\n"
              "    allow_flush: true\n"
              "  - {name: c, kind: redis-cluster, ranges: on, servers: [{address: \"h:1\"}, "
              "{address: \"[::1]:2\"}]}\n"
              "tenants: [{name: a, upstream: r}, {name: b, upstream: c}]\n");
    const struct hg_conf_upstream *r = &conf->upstreams[0], *c = &conf->upstreams[1];
    assert_int_equal(r->kind, HG_CONF_KIND_REDIS);
    assert_string_equal(r->user, "gate");
    assert_string_equal(r->password, "secret");
    assert_int_equal(r->database, 3);
    assert_int_equal(r->redis_layout, HG_CONF_LAYOUT_PLAIN);
    assert_int_equal(r->ranges, HG_CONF_RANGES_OFF);
    assert_int_equal(r->pool_depth, 8);
    assert_int_equal(r->pool_min_hold_ms, 2000);
    assert_int_equal(r->multiget_backend_error, HG_CONF_MULTIGET_MISS);
    assert_int_equal(c->kind, HG_CONF_KIND_REDIS_CLUSTER);
    assert_int_equal(c->servers_count, 2);
    assert_int_equal(c->ranges, HG_CONF_RANGES_ON);
    assert_int_equal(c->redis_layout, HG_CONF_LAYOUT_ITEM);
    assert_int_equal(c->pool_min_hold_ms, 10);
    assert_int_equal(c->pool_depth, 256);
    hg_conf_free(conf);
}

static void test_options_of_other_kinds_are_refused(void **state)
{
    (void)state;
    static const struct complaint cases[] = {
        {REDIS "    sync: never\n    embedded_max_bytes: 1 GiB\n    configuration: x\n"
               "    ring: ketama\n    hash: md5\n    eject_servers: true\n",
         NOT_OF("5", "sync", "redis") NOT_OF("6", "embedded_max_bytes", "redis")
             NOT_OF("7", "configuration", "redis") NOT_OF("8", "ring", "redis")
                 NOT_OF("9", "hash", "redis") NOT_OF("10", "eject_servers", "redis")},
        {"upstreams:\n  - name: r\n    kind: redis-cluster\n" SERVERS "    database: 1\n",
         NOT_OF("5", "database", "redis-cluster")},
        {"upstreams:\n  - name: r\n    kind: memcached\n" SERVERS
         "    database: 0\n    redis_layout: item\n    ranges: auto\n",
         NOT_OF("5", "database", "memcached") NOT_OF("6", "redis_layout", "memcached")
             NOT_OF("7", "ranges", "memcached")},
        {"upstreams:\n  - name: r\n    kind: embedded\n    user: u\n    password: p\n"
         "    password_file: f\n    pool_min_hold_ms: 10\n",
         NOT_OF("4", "user", "embedded") NOT_OF("5", "password", "embedded")
             NOT_OF("6", "password_file", "embedded") NOT_OF("7", "pool_min_hold_ms", "embedded")},
    };
    apphelp_refuses(cases, HG_COUNT_OF(cases));
}

static void test_servers_are_those_of_the_kind(void **state)
{
    (void)state;
    static const struct complaint cases[] = {
        {"upstreams:\n  - {name: r, kind: redis}\n",
         "c.yaml:2: no servers for upstream 'r' (accepted: servers)\n"},
        {"upstreams:\n  - {name: r, kind: redis, servers: [\"h:1\"]}\n",
         "c.yaml:2: a value given for 'server of an upstream' (accepted: a mapping of options: "
         "write {address: \"h:1\"})\n"},
        {"upstreams:\n  - {name: r, kind: redis-cluster}\n",
         "c.yaml:2: no servers for upstream 'r' (accepted: servers)\n"},
        {"upstreams:\n  - name: r\n    kind: redis\n    servers:\n      - {address: \"h:1\"}\n"
         "      - {address: \"h:2\"}\n",
         "c.yaml:4: 2 servers of upstream 'r' of kind redis (accepted: one; redis-cluster has "
         "several)\n"},
        {"upstreams:\n  - name: r\n    kind: redis\n    servers:\n"
         "      - {address: \"h:1\", weight: 1}\n",
         "c.yaml:5: 'weight' has no effect on server 'h:1' of upstream 'r' of kind redis\n"},
        {"upstreams:\n  - name: c\n    kind: redis-cluster\n    servers:\n"
         "      - {address: \"h:1\"}\n      - {address: \"h:2\", weight: 3}\n",
         "c.yaml:6: 'weight' has no effect on server 'h:2' of upstream 'c' of kind redis-cluster, "
         "where the servers' slots say which keys they have\n"},
        {"upstreams:\n  - name: c\n    kind: redis-cluster\n    servers:\n"
         "      - {address: /run/redis.sock}\n",
         "c.yaml:5: unix socket '/run/redis.sock' as server of upstream 'c' (accepted: HOST:PORT, "
         "[IPV6]:PORT; the servers of a cluster name each other so)\n"},
        {"upstreams:\n  - name: c\n    kind: redis-cluster\n    servers:\n"
         "      - {address: \"h:0\"}\n      - {address: \"h:1\"}\n      - {address: \"h:1\"}\n",
         "c.yaml:5: port 0 in server 'h:0' (accepted: 1 to 65535)\n"
         "c.yaml:7: repeated server 'h:1' of upstream 'c' (accepted: once)\n"},
        {"upstreams:\n  - name: r\n    kind: Redis\n" SERVERS,
         "c.yaml:3: bad value 'Redis' of 'kind' (accepted: embedded, memcached, redis, "
         "redis-cluster)\n"},
    };
    apphelp_refuses(cases, HG_COUNT_OF(cases));
    hg_conf_free(apphelp_conf("upstreams:\n  - name: r\n    kind: redis\n    servers:\n"
                              "      - {address: /run/redis.sock}\n"));
}

static void test_values_are_bounded(void **state)
{
    (void)state;
    static const struct complaint cases[] = {
        {REDIS "    database: 65536\n    pool_min_hold_ms: 9\n    redis_layout: raw\n"
               "    ranges: true\n",
         "c.yaml:5: value out of range '65536' of 'database' (accepted: 0 to 65535)\n"
         "c.yaml:6: value out of range '9' of 'pool_min_hold_ms' (accepted: 10 to 2000 "
         "milliseconds)\n"
         "c.yaml:7: bad value 'raw' of 'redis_layout' (accepted: item, plain)\n"
         "c.yaml:8: bad value 'true' of 'ranges' (accepted: auto, on, off)\n"},
        {REDIS "    redis_layout: plain\n    ranges: on\n",
         "c.yaml:6: 'ranges: on' of upstream 'r' with redis_layout plain, which has no tables "
         "(accepted: auto, off)\n"},
        {REDIS "    redis_layout: plain\ntenants:\n  - name: a\n    families: [{table: t, name: "
               "f}]\n",
         "c.yaml:8: 'families' has no effect on tenant 'a', whose upstream 'r' has redis_layout "
         "plain and so no tables (accepted: redis_layout item)\n"},
    };
    apphelp_refuses(cases, HG_COUNT_OF(cases));
}

static void expect_prefixes(const char *text, size_t count, const char *const *prefixes)
{
    struct hg_conf *conf = apphelp_conf(text);
    assert_int_equal(conf->tenants_count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(conf->tenants[i].effective_prefix, prefixes[i]);
    hg_conf_free(conf);
}

static void test_each_database_is_a_place_of_its_own(void **state)
{
    (void)state;
    expect_prefixes(REDIS "tenants:\n  - {name: a}\n", 1, (const char *const[]){""});
    expect_prefixes(REDIS "tenants:\n  - {name: a}\n  - {name: b, backend_database: 1}\n"
                          "  - {name: c, backend_database: 2}\n",
                    3, (const char *const[]){"", "", ""});
    /* The upstream's own database by number is the same place. */
    expect_prefixes(REDIS "    database: 1\ntenants:\n  - {name: a}\n"
                          "  - {name: b, backend_database: 1}\n"
                          "  - {name: c, backend_database: 0}\n",
                    3, (const char *const[]){"a:", "b:", ""});
    /* Users do not part keys, unless a tenant is told to rely on it. */
    expect_prefixes(REDIS "tenants:\n  - {name: a, backend_user: u, backend_password: p}\n"
                          "  - {name: b, backend_user: v, backend_password: q}\n",
                    2, (const char *const[]){"a:", "b:"});
    expect_prefixes(CLUSTER "tenants:\n  - {name: a}\n  - {name: b, backend_user: v, "
                            "backend_password: q}\n",
                    2, (const char *const[]){"a:", "b:"});
    /* The same number on two upstreams is two places. */
    expect_prefixes(REDIS "  - {name: s, kind: redis, servers: [{address: \"h:2\"}]}\n"
                          "tenants:\n  - {name: a, upstream: r, backend_database: 1}\n"
                          "  - {name: b, upstream: s, backend_database: 1}\n",
                    2, (const char *const[]){"", ""});
}

static void test_neighbours_are_counted_by_place(void **state)
{
    (void)state;
    struct hg_conf *conf = apphelp_conf(REDIS "tenants:\n  - {name: a, backend_database: 5}\n"
                                              "  - {name: b}\n"
                                              "  - {name: c, backend_database: 5}\n"
                                              "  - {name: d, backend_database: 5}\n");
    assert_int_equal(conf->tenants[0].neighbours, 2);
    assert_int_equal(conf->tenants[1].neighbours, 0);
    assert_int_equal(conf->tenants[2].neighbours, 2);
    assert_int_equal(conf->tenants[3].neighbours, 2);
    hg_conf_free(conf);
}

static void test_prefixes_that_are_seldom_meant(void **state)
{
    (void)state;
    static const struct complaint cases[] = {
        {CLUSTER "tenants:\n  - {name: a, key_prefix: \"{a}:\"}\n",
         "warning: c.yaml:6: key prefix '{a}:' of tenant 'a' has a brace: what stands in braces is "
         "all that the cluster looks at to place a key, so the keys may go to one server\n"},
        {REDIS "tenants:\n  - {name: a, key_prefix: \"{a}:\"}\n", ""},
        {REDIS "tenants:\n  - {name: a, key_prefix: \"\"}\n  - {name: b}\n",
         "warning: c.yaml:6: tenants 'a' and 'b' share keys: prefix '' and 'b:' overlap\n"},
        {REDIS "tenants:\n  - {name: a, key_prefix: x, backend_database: 1}\n"
               "  - {name: b, key_prefix: x}\n",
         ""},
    };
    apphelp_warns(cases, HG_COUNT_OF(cases));
}

static void test_two_names_of_one_place(void **state)
{
    (void)state;
#define TWIN "  - {name: s, kind: redis, servers: [{address: \"127.0.0.1:6379\"}]}\n"
#define MEET                                                                                       \
    ": their tenants have no prefixes against each other, and a flush of one empties both\n"
    static const struct complaint cases[] = {
        {REDIS TWIN "tenants:\n  - {name: a, upstream: r}\n  - {name: b, upstream: s}\n",
         "warning: c.yaml:5: upstreams 'r' and 's' are the same database of 127.0.0.1:6379" MEET},
        {REDIS TWIN "tenants:\n  - {name: a, upstream: r}\n"
                    "  - {name: b, upstream: s, backend_database: 1}\n",
         ""},
        {REDIS TWIN "tenants:\n  - {name: a, upstream: r, key_prefix: \"a:\"}\n"
                    "  - {name: b, upstream: s, key_prefix: \"b:\"}\n",
         ""},
        {REDIS "  - {name: s, kind: redis, servers: [{address: \"127.0.0.1:6380\"}]}\n"
               "tenants:\n  - {name: a, upstream: r}\n  - {name: b, upstream: s}\n",
         ""},
        {CLUSTER "  - {name: s, kind: redis-cluster, servers: [{address: \"h:1\"}, {address: "
                 "\"127.0.0.1:6379\"}]}\n"
                 "tenants:\n  - {name: a, upstream: c}\n  - {name: b, upstream: s}\n",
         "warning: c.yaml:5: upstreams 'c' and 's' are the same cluster" MEET},
        {"upstreams:\n  - {name: m, kind: memcached, servers: [{address: \"h:1\"}, {address: "
         "\"h:2\"}]}\n"
         "  - {name: n, kind: memcached, servers: [{address: \"h:2\"}, {address: \"h:1\"}]}\n"
         "  - {name: o, kind: memcached, servers: [{address: \"h:2\"}]}\n"
         "tenants:\n  - {name: a, upstream: m}\n  - {name: b, upstream: n}\n"
         "  - {name: c, upstream: o}\n",
         "warning: c.yaml:3: upstreams 'm' and 'n' are the same servers" MEET},
    };
    apphelp_warns(cases, HG_COUNT_OF(cases));
}

static void test_other_time_outs_are_looked_at_too(void **state)
{
    (void)state;
    static const struct complaint cases[] = {
        {REDIS "    backend_timeout_ms: 9000\n",
         "warning: c.yaml:2: backend_timeout_ms 9000 of upstream 'r' is beyond "
         "request_deadline_ms 2500\n"},
    };
    apphelp_warns(cases, HG_COUNT_OF(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_redis_upstream_is_read_whole),
        cmocka_unit_test(test_options_of_other_kinds_are_refused),
        cmocka_unit_test(test_servers_are_those_of_the_kind),
        cmocka_unit_test(test_values_are_bounded),
        cmocka_unit_test(test_each_database_is_a_place_of_its_own),
        cmocka_unit_test(test_neighbours_are_counted_by_place),
        cmocka_unit_test(test_prefixes_that_are_seldom_meant),
        cmocka_unit_test(test_two_names_of_one_place),
        cmocka_unit_test(test_other_time_outs_are_looked_at_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
