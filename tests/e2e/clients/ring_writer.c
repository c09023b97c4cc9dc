// ring_writer - writes keys with libmemcached and says which server each went to
// SPDX-License-Identifier: BSD-3-Clause
//
//   ring_writer RING HASH PREFIX COUNT HOST:PORT[/WEIGHT] ...
//
// For each n below COUNT it sets key PREFIX<n> to the value <n>@<server> in the binary protocol,
// straight to the servers, and prints "<n> <server number>" a line. So the servers hold what a
// user of the library would have put there. HASH "-" leaves the ring's own hash. One set at a
// time: the library's buffering of quiet sets loses some. Exit code 1: the library refuses the
// combination (it says why on stderr).
#include <libmemcached/memcached.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct choice {
    const char *name;
    uint64_t value;
};

static const struct choice hashes[] = {
    {"default", MEMCACHED_HASH_DEFAULT},   {"md5", MEMCACHED_HASH_MD5},
    {"crc", MEMCACHED_HASH_CRC},           {"fnv1_64", MEMCACHED_HASH_FNV1_64},
    {"fnv1a_64", MEMCACHED_HASH_FNV1A_64}, {"fnv1_32", MEMCACHED_HASH_FNV1_32},
    {"fnv1a_32", MEMCACHED_HASH_FNV1A_32}, {"hsieh", MEMCACHED_HASH_HSIEH},
    {"murmur", MEMCACHED_HASH_MURMUR},     {"jenkins", MEMCACHED_HASH_JENKINS},
    {"murmur3", MEMCACHED_HASH_MURMUR3},
};

static void fail(memcached_st *memc, const char *what, memcached_return_t rc)
{
    fprintf(stderr, "ring_writer: %s: %s\n", what, memcached_strerror(memc, rc));
    exit(1);
}

static void behave(memcached_st *memc, const char *what, memcached_behavior_t flag, uint64_t value)
{
    memcached_return_t rc = memcached_behavior_set(memc, flag, value);
    if (rc != MEMCACHED_SUCCESS) {
        fail(memc, what, rc);
    }
}

static uint64_t hash_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof(hashes) / sizeof(hashes[0]); i++) {
        if (strcmp(hashes[i].name, name) == 0) {
            return hashes[i].value;
        }
    }
    fprintf(stderr, "ring_writer: unknown hash '%s'\n", name);
    exit(2);
}

/* The distribution first, then the hash of the keys: a distribution brings a hash of its own. */
static void set_ring(memcached_st *memc, const char *ring, const char *hash)
{
    if (strcmp(ring, "ketama") == 0) {
        behave(memc, ring, MEMCACHED_BEHAVIOR_KETAMA, 1);
    } else if (strcmp(ring, "ketama_weighted") == 0) {
        behave(memc, ring, MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1);
    } else if (strcmp(ring, "consistent") == 0) {
        behave(memc, ring, MEMCACHED_BEHAVIOR_DISTRIBUTION, MEMCACHED_DISTRIBUTION_CONSISTENT);
    } else if (strcmp(ring, "modula") == 0) {
        behave(memc, ring, MEMCACHED_BEHAVIOR_DISTRIBUTION, MEMCACHED_DISTRIBUTION_MODULA);
    } else {
        fprintf(stderr, "ring_writer: unknown ring '%s'\n", ring);
        exit(2);
    }
    if (strcmp(hash, "-") != 0) {
        behave(memc, hash, MEMCACHED_BEHAVIOR_HASH, hash_by_name(hash));
    }
}

static void add_server(memcached_st *memc, const char *where)
{
    char host[256];
    unsigned port = 0;
    unsigned weight = 1;
    int found = sscanf(where, "%255[^:]:%u/%u", host, &port, &weight);
    if (found < 2) {
        fprintf(stderr, "ring_writer: not HOST:PORT: '%s'\n", where);
        exit(2);
    }
    memcached_return_t rc = memcached_server_add_with_weight(memc, host, (in_port_t)port, weight);
    if (rc != MEMCACHED_SUCCESS) {
        fail(memc, where, rc);
    }
}

static void write_key(memcached_st *memc, const char *prefix, unsigned number)
{
    char key[251];
    char value[64];
    int key_len = snprintf(key, sizeof key, "%s%u", prefix, number);
    uint32_t server = memcached_generate_hash(memc, key, (size_t)key_len);
    int value_len = snprintf(value, sizeof value, "%u@%u", number, server);
    memcached_return_t rc =
        memcached_set(memc, key, (size_t)key_len, value, (size_t)value_len, 0, number);
    if (rc != MEMCACHED_SUCCESS) {
        fail(memc, key, rc);
    }
    printf("%u %u\n", number, server);
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: ring_writer RING HASH PREFIX COUNT HOST:PORT[/WEIGHT] ...\n");
        return 2;
    }
    memcached_st *memc = memcached_create(NULL);
    behave(memc, "binary protocol", MEMCACHED_BEHAVIOR_BINARY_PROTOCOL, 1);
    set_ring(memc, argv[1], argv[2]);
    for (int i = 5; i < argc; i++) {
        add_server(memc, argv[i]);
    }
    unsigned count = (unsigned)strtoul(argv[4], NULL, 10);
    for (unsigned n = 0; n < count; n++) {
        write_key(memc, argv[3], n);
    }
    memcached_quit(memc);
    memcached_free(memc);
    return 0;
}
