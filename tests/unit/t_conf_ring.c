// t_conf_ring - libmemcached's configuration strings: what is taken, and the traps that are named
// SPDX-License-Identifier: BSD-3-Clause
//
// The second half asks the library itself: whatever is accepted here, it must read too, and see the
// same servers, names and distribution in it.
#include "apphelp.h"

#include <libmemcached/memcached.h>

#include "app/conf_table.h"

static struct hg_conf *parse(const char *string, struct hg_conf_errors *errs)
{
    char text[2000];
    struct hg_conf *conf = NULL;
    snprintf(text, sizeof text,
             "upstreams:\n  - name: c\n    kind: memcached\n    configuration: '%s'\n", string);
    hg_conf_errors_init(errs);
    int rc = hg_conf_parse(text, strlen(text), "c.yaml", NULL, &conf, errs);
    assert_true(rc == 0 || rc == -22);
    return conf;
}

static void test_a_string_names_servers_ring_and_hash(void **state)
{
    (void)state;
    struct hg_conf_errors errs;
    struct hg_conf *conf =
        parse("--DISTRIBUTION=consistent --HASH=MD5 --SERVER=host1:1001/?3 --SERVER=10.0.0.2 "
              "--SOCKET=\"/run/m c.sock\" --BINARY-PROTOCOL",
              &errs);
    apphelp_said(&errs, "");
    const struct hg_conf_upstream *upstream = &conf->upstreams[0];
    assert_int_equal(upstream->ring, HG_CONF_RING_CONSISTENT);
    assert_int_equal(upstream->hash, HG_CONF_HASH_MD5);
    assert_int_equal(upstream->servers_count, 3);
    assert_string_equal(upstream->servers[0].address.text, "host1:1001");
    assert_int_equal(upstream->servers[0].weight, 3);
    assert_string_equal(upstream->servers[1].address.text, "10.0.0.2:11211");
    assert_string_equal(upstream->servers[2].address.host, "/run/m c.sock");
    assert_true(upstream->servers[2].address.is_unix);
    hg_conf_free(conf);

    conf = parse("--server=host1", &errs);
    apphelp_said(&errs, "");
    assert_int_equal(conf->upstreams[0].ring, HG_CONF_RING_MODULA);
    assert_int_equal(conf->upstreams[0].hash, HG_CONF_HASH_DEFAULT);
    hg_conf_free(conf);
}

static void test_each_trap_is_named(void **state)
{
    (void)state;
#define SPACES                                                                                     \
    "libmemcached wants one space between the options of a configuration string, and none around " \
    "them"
    static const struct complaint traps[] = {
        {"--SERVER=host1:1 --DISTRIBUTION=consistent",
         "'--DISTRIBUTION' behind a server makes libmemcached ignore the server's weight "
         "(accepted: in "
         "front of all servers)"},
        {"--SERVER=host1:1/?2 --SERVER=host2:1",
         "weight of server 'host1:1' has no effect in libmemcached (accepted: "
         "--DISTRIBUTION=consistent "
         "in front of the servers)"},
        {"--DISTRIBUTION=consistent,md5 --SERVER=host1",
         "the hash in '--DISTRIBUTION=consistent,md5' has no effect in libmemcached (accepted: "
         "--HASH=md5 as an option of its own, if that is meant)"},
        {"--DISTRIBUTION=random --SERVER=host1",
         "bad value in '--DISTRIBUTION=random' (accepted: consistent, modula)"},
        {"--DISTRIBUTION=modula --DISTRIBUTION=modula --SERVER=host1",
         "repeated option '--DISTRIBUTION' (accepted: once)"},
        {"--HASH=hsieh --SERVER=host1", "bad value in '--HASH=hsieh' (accepted: md5, crc, fnv1_64, "
                                        "fnv1a_64, fnv1_32, fnv1a_32, jenkins, "
                                        "murmur)"},
        {"--SERVER=[::1]:11211", "libmemcached reads no IPv6 address in a configuration string: "
                                 "'--SERVER=[::1]:11211' (accepted: "
                                 "servers, with ring and hash)"},
        {"--SERVER=a:11211",
         "libmemcached cannot read the host 'a' in a configuration string (accepted: names of "
         "three or more "
         "letters, digits, . - _ that are none of its keywords, or servers, with ring and hash)"},
        {"--SERVER=md5:11211", "libmemcached cannot read the host 'md5' in a configuration string "
                               "(accepted: names of three or "
                               "more letters, digits, . - _ that are none of its keywords, or "
                               "servers, with ring and hash)"},
        {"--SERVER=host1:99999", "bad port in '--SERVER=host1:99999' (accepted: 1 to 65535)"},
        {"--SERVER=host1:0", "bad port in '--SERVER=host1:0' (accepted: 1 to 65535)"},
        {"--SERVER=host1/?0", "bad weight in '--SERVER=host1/?0' (accepted: 1 to 65535)"},
        {"--SOCKET=/run/mc",
         "bad value in '--SOCKET=/run/mc' (accepted: --SOCKET=\"/PATH\", in double quotes)"},
        {"--SOCKET=\"/run/mc/?3\"", "libmemcached takes the weight in '--SOCKET=\"/run/mc/?3\"' "
                                    "for a part of the path (accepted: "
                                    "servers, with ring and weights)"},
        {"--CONFIGURE-FILE=\"/etc/passwd\"", "option '--CONFIGURE-FILE' in the configuration "
                                             "string: it would read a file (accepted: its text, "
                                             "here)"},
        {"--NAMESPACE=\"x\" --SERVER=host1", "option '--NAMESPACE' in the configuration string: it "
                                             "has no effect here (accepted: key_prefix of a "
                                             "tenant)"},
        {"--SORT-HOSTS --SERVER=host1", "option '--SORT-HOSTS' in the configuration string: it "
                                        "would reorder the servers (accepted: servers in "
                                        "their sorted order)"},
        {"--REMOVE_FAILED_SERVERS=3 --SERVER=host1",
         "option '--REMOVE_FAILED_SERVERS' in the configuration string: it has no effect here "
         "(accepted: "
         "eject_servers of the upstream)"},
        {"--SERVER=host1 --VERIFY-KEY", "'--VERIFY-KEY' in the configuration string has no effect "
                                        "here (accepted: --SERVER, --SOCKET, "
                                        "--DISTRIBUTION, --HASH, --BINARY-PROTOCOL)"},
        {"--SERVER=host1 RESET", "'RESET' in the configuration string has no effect here "
                                 "(accepted: --SERVER, --SOCKET, --DISTRIBUTION, "
                                 "--HASH, --BINARY-PROTOCOL)"},
        {"--BINARY-PROTOCOL",
         "no server in the configuration string (accepted: at least one --SERVER or --SOCKET)"},
        {"--SERVER=host1  --SERVER=host2", SPACES},
        {" --SERVER=host1", SPACES},
        {"", SPACES},
    };
    for (size_t i = 0; i < HG_COUNT_OF(traps); i++) {
        struct hg_conf_errors errs;
        char says[500];
        struct hg_conf *conf = parse(traps[i].text, &errs);
        assert_null(conf);
        snprintf(says, sizeof says, "c.yaml:4: %s\n", traps[i].says);
        apphelp_said(&errs, says);
    }
}

static void test_the_servers_are_not_named_twice(void **state)
{
    (void)state;
    static const struct complaint cases[] = {
        {"upstreams:\n  - name: c\n    kind: memcached\n    configuration: --SERVER=host1\n"
         "    ring: modula\n    servers: [{address: \"h:1\"}]\n",
         "c.yaml:6: 'servers' given beside 'configuration' of upstream 'c', which says it too\n"
         "c.yaml:5: 'ring' given beside 'configuration' of upstream 'c', which says it too\n"},
        {"upstreams:\n  - name: c\n    kind: memcached\n    configuration: --SERVER=host1 "
         "--SERVER=host1\n",
         "c.yaml:4: repeated server 'host1:11211' of upstream 'c' (accepted: once)\n"},
    };
    apphelp_refuses(cases, HG_COUNT_OF(cases));
}

static void compare_with_library(const char *string, const struct hg_conf_upstream *upstream)
{
    memcached_st *library = memcached(string, strlen(string));
    if (!library)
        fail_msg("accepted here, but not by the library: %s", string);
    assert_int_equal(memcached_server_count(library), upstream->servers_count);
    for (unsigned i = 0; i < upstream->servers_count; i++) {
        const struct hg_conf_address *address = &upstream->servers[i].address;
        const struct memcached_instance_st *server =
            memcached_server_instance_by_position(library, i);
        assert_string_equal(memcached_server_name(server), address->host);
        if (!address->is_unix)
            assert_int_equal(memcached_server_port(server), address->port);
    }
    assert_int_equal(memcached_behavior_get_distribution(library),
                     upstream->ring == HG_CONF_RING_MODULA ? MEMCACHED_DISTRIBUTION_MODULA
                                                           : MEMCACHED_DISTRIBUTION_CONSISTENT);
    memcached_free(library);
}

/* Made from parts, right and wrong ones alike. */
static void test_the_library_reads_what_is_accepted_here(void **state)
{
    (void)state;
    static const char *const heads[] = {"",
                                        "--DISTRIBUTION=consistent ",
                                        "--distribution=MODULA ",
                                        "--HASH=murmur ",
                                        "--DISTRIBUTION=consistent --HASH=FNV1A_32 ",
                                        "--DISTRIBUTION=consistent --HASH=jenkins ",
                                        "--HASH=fnv1_64 "};
    static const char *const hosts[] = {
        "a",      "ab",        "abc",    "x12",     "h1",     "10.0.0.1", "1.2.3",     "my-host",
        "my_h",   "host-",     "-host",  "end",     "ends",   "true",     "crc",       "crc1",
        "cafe",   "deadbeef",  "1host",  "a.b",     "a.1",    "1.a",      "UP",        "UPPER",
        "random", "localhost", "modula", "default", "murmur", "ho st",    "h\xc3\xa4", "include",
        "reset",  "error",     "server", "fnv1_64"};
    static const char *const tails[] = {"",      ":11311", ":0", ":65536", "/?1",
                                        ":1/?7", ":01",    ":",  "/?"};
    unsigned accepted = 0;
    for (size_t i = 0; i < HG_COUNT_OF(heads); i++)
        for (size_t j = 0; j < HG_COUNT_OF(hosts); j++)
            for (size_t k = 0; k < HG_COUNT_OF(tails); k++) {
                char string[300];
                struct hg_conf_errors errs;
                snprintf(string, sizeof string, "%s--SERVER=%s%s --SOCKET=\"/run/mc\"", heads[i],
                         hosts[j], tails[k]);
                struct hg_conf *conf = parse(string, &errs);
                if (conf) {
                    compare_with_library(string, &conf->upstreams[0]);
                    accepted++;
                }
                hg_conf_free(conf);
                hg_conf_errors_fini(&errs);
            }
    assert_true(accepted > 400);
}

/* Every hash of the table is one that the library at hand can compute. */
static void test_the_library_knows_every_hash(void **state)
{
    (void)state;
    static const memcached_hash_t ids[] = {
        MEMCACHED_HASH_DEFAULT,  MEMCACHED_HASH_MD5,      MEMCACHED_HASH_CRC,
        MEMCACHED_HASH_FNV1_64,  MEMCACHED_HASH_FNV1A_64, MEMCACHED_HASH_FNV1_32,
        MEMCACHED_HASH_FNV1A_32, MEMCACHED_HASH_JENKINS,  MEMCACHED_HASH_MURMUR,
        MEMCACHED_HASH_MURMUR3,
    };
    size_t count;
    hg_conf_choice_names(HG_CONF_TYPE_HASH, &count);
    assert_int_equal(count, HG_COUNT_OF(ids));
    memcached_st *library = memcached_create(NULL);
    assert_non_null(library);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(memcached_behavior_set(library, MEMCACHED_BEHAVIOR_HASH, ids[i]),
                         MEMCACHED_SUCCESS);
    assert_int_not_equal(
        memcached_behavior_set(library, MEMCACHED_BEHAVIOR_HASH, MEMCACHED_HASH_HSIEH),
        MEMCACHED_SUCCESS);
    memcached_free(library);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_string_names_servers_ring_and_hash),
        cmocka_unit_test(test_each_trap_is_named),
        cmocka_unit_test(test_the_servers_are_not_named_twice),
        cmocka_unit_test(test_the_library_reads_what_is_accepted_here),
        cmocka_unit_test(test_the_library_knows_every_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
