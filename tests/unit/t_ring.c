// t_ring - keys go to the servers that a libmemcached client would send them to
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <libmemcached-1.0/memcached.h>

#include "back/ring.h"

#define SERVERS 9
#define KEYS    2000

static const struct hg_ring_server equal[SERVERS] = {
    {"10.0.0.1:11211", 1}, {"10.0.0.2", 1},        {"cache-3.example:11300", 1},
    {"[::1]:11211", 1},    {"10.0.0.5:11211", 1},  {"unix:/run/cache.sock", 1},
    {"localhost:1", 1},    {"[2001:db8::7]:9", 1}, {"10.0.0.9:65535", 1},
};

static const struct {
    const char *kind;
    memcached_behavior_t behavior;
    uint64_t value;
} kinds[] = {
    {"ketama", MEMCACHED_BEHAVIOR_KETAMA, 1},
    {"ketama_weighted", MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1},
    {"consistent", MEMCACHED_BEHAVIOR_DISTRIBUTION, MEMCACHED_DISTRIBUTION_CONSISTENT},
    {"modula", MEMCACHED_BEHAVIOR_DISTRIBUTION, MEMCACHED_DISTRIBUTION_MODULA},
};

static const struct {
    const char *name;
    int hash; /* -1: none is set */
} hashes[] = {
    {NULL, -1},
    {"", -1},
    {"default", MEMCACHED_HASH_DEFAULT},
    {"md5", MEMCACHED_HASH_MD5},
    {"crc", MEMCACHED_HASH_CRC},
    {"fnv1_64", MEMCACHED_HASH_FNV1_64},
    {"fnv1a_64", MEMCACHED_HASH_FNV1A_64},
    {"fnv1_32", MEMCACHED_HASH_FNV1_32},
    {"fnv1a_32", MEMCACHED_HASH_FNV1A_32},
    {"jenkins", MEMCACHED_HASH_JENKINS},
    {"murmur", MEMCACHED_HASH_MURMUR},
    {"murmur3", MEMCACHED_HASH_MURMUR3},
};

/* What a client's programmer writes: host and port apart, 11211 where none is named. */
static const struct {
    const char *host;
    in_port_t port;
} spoken[SERVERS] = {
    {"10.0.0.1", 11211}, {"10.0.0.2", 11211}, {"cache-3.example", 11300},
    {"::1", 11211},      {"10.0.0.5", 11211}, {"/run/cache.sock", 0},
    {"localhost", 1},    {"2001:db8::7", 9},  {"10.0.0.9", 65535},
};

static void add_servers(memcached_st *memc, const struct hg_ring_server *servers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        memcached_return_t rc =
            spoken[i].port == 0 ? memcached_server_add_unix_socket_with_weight(memc, spoken[i].host,
                                                                               servers[i].weight)
                                : memcached_server_add_with_weight(
                                      memc, spoken[i].host, spoken[i].port, servers[i].weight);
        assert_int_equal(rc, MEMCACHED_SUCCESS);
    }
}

static void set_hash(memcached_st *memc, int hash)
{
    if (hash >= 0)
        assert_int_equal(memcached_behavior_set(memc, MEMCACHED_BEHAVIOR_HASH, (uint64_t)hash),
                         MEMCACHED_SUCCESS);
}

static void set_kind(memcached_st *memc, unsigned kind)
{
    assert_int_equal(memcached_behavior_set(memc, kinds[kind].behavior, kinds[kind].value),
                     MEMCACHED_SUCCESS);
}

static unsigned differ(const struct hg_ring *ring, memcached_st *memc, unsigned *ret_used)
{
    unsigned wrong = 0;
    bool used[SERVERS] = {false};
    for (unsigned k = 0; k < KEYS; k++) {
        char key[40];
        int len = snprintf(key, sizeof key, k % 2 ? "user:%u:profile" : "%u", k * 7919);
        uint32_t server = hg_ring_of(ring, hg_span(key, (size_t)len));
        assert_true(server < SERVERS);
        used[server] = true;
        wrong += server != memcached_generate_hash(memc, key, (size_t)len);
    }
    *ret_used = 0;
    for (unsigned i = 0; i < SERVERS; i++)
        *ret_used += used[i];
    return wrong;
}

static struct hg_ring *ring_of(const struct hg_ring_server *servers, uint32_t count, unsigned kind,
                               unsigned hash)
{
    char why[HG_RING_WHY_BYTES] = "";
    const struct hg_ring_conf conf = {servers, count, kinds[kind].kind, hashes[hash].name};
    struct hg_ring *ring = hg_ring_new(&conf, NULL, why);
    if (ring == NULL)
        fail_msg("%s", why);
    return ring;
}

/* Every kind, hash and number of servers, against a client that was set up distribution first. */
static void t_agrees_with_clients(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < HG_COUNT_OF(kinds); kind++) {
        for (unsigned hash = 0; hash < HG_COUNT_OF(hashes); hash++) {
            for (uint32_t count = 1; count <= SERVERS; count++) {
                struct hg_ring *ring = ring_of(equal, count, kind, hash);
                memcached_st *memc = memcached_create(NULL);
                unsigned used;
                set_kind(memc, kind);
                set_hash(memc, hashes[hash].hash);
                add_servers(memc, equal, count);
                assert_int_equal(differ(ring, memc, &used), 0);
                if (hash == 0) /* some hashes of the library reach few points of a ring */
                    assert_int_equal(used, count);
                memcached_free(memc);
                hg_ring_free(ring);
            }
        }
    }
}

/* Servers first, then hash and distribution, as pylibmc does; without weights that is the same
   ring, but for ketama_weighted with a hash, where the order decides whose hash is used. */
static void t_agrees_with_servers_first(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < HG_COUNT_OF(kinds); kind++) {
        for (unsigned hash = 0; hash < HG_COUNT_OF(hashes); hash++) {
            if (strcmp(kinds[kind].kind, "ketama_weighted") == 0 && hashes[hash].hash >= 0 &&
                hashes[hash].hash != MEMCACHED_HASH_MD5)
                continue;
            for (uint32_t count = 2; count <= SERVERS; count++) {
                struct hg_ring *ring = ring_of(equal, count, kind, hash);
                memcached_st *memc = memcached_create(NULL);
                unsigned used;
                add_servers(memc, equal, count);
                set_hash(memc, hashes[hash].hash);
                set_kind(memc, kind);
                assert_int_equal(differ(ring, memc, &used), 0);
                memcached_free(memc);
                hg_ring_free(ring);
            }
        }
    }
}

static void t_weights_count(void **state)
{
    (void)state;
    struct hg_ring_server weighted[SERVERS];
    for (unsigned i = 0; i < SERVERS; i++)
        weighted[i] = (struct hg_ring_server){equal[i].address, i % 4 + 1};
    for (unsigned kind = 0; kind < HG_COUNT_OF(kinds); kind++) {
        for (unsigned hash = 0; hash < HG_COUNT_OF(hashes); hash++) {
            struct hg_ring *ring = ring_of(weighted, SERVERS, kind, hash);
            struct hg_ring *flat = ring_of(equal, SERVERS, kind, hash);
            memcached_st *memc = memcached_create(NULL);
            unsigned used, moved = 0;
            set_kind(memc, kind);
            set_hash(memc, hashes[hash].hash);
            add_servers(memc, weighted, SERVERS);
            assert_int_equal(differ(ring, memc, &used), 0);
            for (unsigned k = 0; k < KEYS; k++) {
                char key[20];
                struct hg_span span = hg_span(key, (size_t)snprintf(key, sizeof key, "%u", k));
                moved += hg_ring_of(ring, span) != hg_ring_of(flat, span);
            }
            if (strcmp(kinds[kind].kind, "modula") == 0)
                assert_int_equal(moved, 0);
            else if (hash == 0)
                assert_in_range(moved, KEYS / 20, KEYS);
            memcached_free(memc);
            hg_ring_free(flat);
            hg_ring_free(ring);
        }
    }
}

/* A ring among some servers names them by their place in the whole configuration. */
static void t_live_servers_only(void **state)
{
    (void)state;
    bool live[SERVERS] = {true, false, true, true, false, true, true, true, true};
    char why[HG_RING_WHY_BYTES];
    const struct hg_ring_conf conf = {equal, SERVERS, "ketama", NULL};
    struct hg_ring *ring = hg_ring_new(&conf, live, why), *all = hg_ring_new(&conf, NULL, why);
    assert_non_null(ring);
    unsigned stayed = 0, of_live = 0;
    for (unsigned k = 0; k < KEYS; k++) {
        char key[20];
        struct hg_span span = hg_span(key, (size_t)snprintf(key, sizeof key, "%u", k));
        uint32_t server = hg_ring_of(ring, span), before = hg_ring_of(all, span);
        assert_true(server < SERVERS && live[server]);
        of_live += live[before];
        stayed += server == before;
    }
    assert_int_equal(stayed, of_live); /* what consistent hashing is for */
    hg_ring_free(all);
    hg_ring_free(ring);
    memset(live, 0, sizeof live);
    live[4] = true;
    ring = hg_ring_new(&conf, live, why);
    assert_int_equal(hg_ring_of(ring, HG_SPAN_LIT("x")), 4);
    hg_ring_free(ring);
    live[4] = false;
    assert_null(hg_ring_new(&conf, live, why));
    assert_string_equal(why, "a ring needs at least one server");
}

static void refuses(const char *kind, const char *hash, const char *address, uint32_t weight,
                    const char *part)
{
    char why[HG_RING_WHY_BYTES] = "";
    const struct hg_ring_server server = {address, weight};
    const struct hg_ring_conf conf = {&server, 1, kind, hash};
    assert_null(hg_ring_new(&conf, NULL, why));
    if (strstr(why, part) == NULL)
        fail_msg("'%s' does not say '%s'", why, part);
}

static void t_says_what_is_wrong(void **state)
{
    (void)state;
    refuses("ring-o", NULL, "a:1", 1, "accepted are ketama, ketama_weighted, consistent, modula");
    refuses("ketama", "hsieh", "a:1", 1, "unknown hash 'hsieh', accepted are default, md5, crc");
    refuses("ketama", "hsieh", "a:1", 1, "murmur3");
    refuses("ketama", NULL, "::1:11211", 1, "'::1:11211' is no address");
    refuses("ketama", NULL, "a:99999", 1, "no address");
    refuses("ketama", NULL, "a:1", 0, "weight 0 of 'a:1'");
    refuses("ketama", NULL, "a:1", 65536, "weight 65536");
}

/* libmemcached would end the process. */
static void t_as_many_as_it_may_have(void **state)
{
    static char addresses[HG_RING_SERVERS_MAX + 1][24];
    struct hg_ring_server servers[HG_RING_SERVERS_MAX + 1];
    (void)state;
    for (uint32_t i = 0; i <= HG_RING_SERVERS_MAX; i++) {
        snprintf(addresses[i], sizeof addresses[i], "10.0.0.%" PRIu32 ":11211", i + 1);
        servers[i] = (struct hg_ring_server){addresses[i], 1 + i % 7};
    }
    for (unsigned kind = 0; kind < HG_COUNT_OF(kinds); kind++) {
        char why[HG_RING_WHY_BYTES] = "", expected[HG_RING_WHY_BYTES];
        hg_ring_free(ring_of(servers, HG_RING_SERVERS_MAX, kind, 0));
        struct hg_ring_conf conf = {servers, HG_RING_SERVERS_MAX + 1, kinds[kind].kind, NULL};
        struct hg_ring *ring = hg_ring_new(&conf, NULL, why);
        if (strcmp(kinds[kind].kind, "modula") == 0) {
            assert_non_null(ring);
            hg_ring_free(ring);
            continue;
        }
        assert_null(ring);
        snprintf(expected, sizeof expected,
                 "101 servers on ring '%s' (accepted: at most 100, or ring modula)",
                 kinds[kind].kind);
        assert_string_equal(why, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_agrees_with_clients), cmocka_unit_test(t_agrees_with_servers_first),
        cmocka_unit_test(t_weights_count),       cmocka_unit_test(t_live_servers_only),
        cmocka_unit_test(t_says_what_is_wrong),  cmocka_unit_test(t_as_many_as_it_may_have),
    };
    return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
