// scenario_c - what an application does with libmemcached in C over the binary protocol
// SPDX-License-Identifier: BSD-3-Clause
//
//   scenario_c HOST PORT USER|- PASSWORD|- PREFIX
#include <libmemcached/memcached.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MANY 100u

static memcached_st *mc;
static const char *prefix;

/* The key of a step, good until the next call. */
static const char *k(const char *name)
{
    static char key[256];
    snprintf(key, sizeof key, "%s%s", prefix, name);
    return key;
}

static void want(const char *step, memcached_return_t got, memcached_return_t expected)
{
    if (got != expected) {
        fprintf(stderr, "%s: got %s, want %s: %s\n", step, memcached_strerror(mc, got),
                memcached_strerror(mc, expected), memcached_last_error_message(mc));
        exit(1);
    }
}

static memcached_return_t set(const char *name, const char *value, time_t expiry)
{
    const char *key = k(name);
    return memcached_set(mc, key, strlen(key), value, strlen(value), expiry, 0);
}

static void want_value(const char *step, const char *name, const char *expected)
{
    const char *key = k(name);
    size_t len = 0;
    uint32_t flags = 0;
    memcached_return_t rc;
    char *value = memcached_get(mc, key, strlen(key), &len, &flags, &rc);
    if (expected == NULL) {
        want(step, rc, MEMCACHED_NOTFOUND);
    } else {
        want(step, rc, MEMCACHED_SUCCESS);
        if (len != strlen(expected) || memcmp(value, expected, len) != 0) {
            fprintf(stderr, "%s: another value came back\n", step);
            exit(1);
        }
    }
    free(value);
}

static void store(void)
{
    const char *key;
    want_value("get missing", "a", NULL);
    want("set", set("a", "one", 0), MEMCACHED_SUCCESS);
    want_value("get", "a", "one");
    key = k("a");
    want("add there", memcached_add(mc, key, strlen(key), "x", 1, 0, 0), MEMCACHED_DATA_EXISTS);
    key = k("c");
    want("add", memcached_add(mc, key, strlen(key), "x", 1, 0, 0), MEMCACHED_SUCCESS);
    want("replace", memcached_replace(mc, key, strlen(key), "y", 1, 0, 0), MEMCACHED_SUCCESS);
    key = k("zz");
    want("replace missing", memcached_replace(mc, key, strlen(key), "y", 1, 0, 0),
         MEMCACHED_NOTFOUND);
    want("append missing", memcached_append(mc, key, strlen(key), "y", 1, 0, 0),
         MEMCACHED_NOTSTORED);
    want("set s", set("s", "middle", 0), MEMCACHED_SUCCESS);
    key = k("s");
    want("append", memcached_append(mc, key, strlen(key), "-end", 4, 0, 0), MEMCACHED_SUCCESS);
    want("prepend", memcached_prepend(mc, key, strlen(key), "start-", 6, 0, 0), MEMCACHED_SUCCESS);
    want_value("appended", "s", "start-middle-end");
    want("touch", memcached_touch(mc, key, strlen(key), 3600), MEMCACHED_SUCCESS);
    key = k("zz");
    want("touch missing", memcached_touch(mc, key, strlen(key), 3600), MEMCACHED_NOTFOUND);
}

static void multiget(void)
{
    char keys[MANY][64];
    const char *pointers[MANY];
    size_t lengths[MANY];
    unsigned found = 0;
    memcached_return_t rc;
    for (unsigned i = 0; i < MANY; i++) {
        lengths[i] = (size_t)snprintf(keys[i], sizeof keys[i], "%sm%u", prefix, i);
        pointers[i] = keys[i];
        if (i % 2 == 0) {
            want("set many", memcached_set(mc, keys[i], lengths[i], keys[i], lengths[i], 0, i),
                 MEMCACHED_SUCCESS);
        }
    }
    want("mget", memcached_mget(mc, pointers, lengths, MANY), MEMCACHED_SUCCESS);
    memcached_result_st *result;
    while ((result = memcached_fetch_result(mc, NULL, &rc)) != NULL) {
        size_t len = memcached_result_length(result);
        if (len != memcached_result_key_length(result) ||
            memcmp(memcached_result_value(result), memcached_result_key_value(result), len) != 0) {
            fprintf(stderr, "mget: another value came back\n");
            exit(1);
        }
        found++;
        memcached_result_free(result);
    }
    if (found != MANY / 2) {
        fprintf(stderr, "mget: %u values, want %u\n", found, MANY / 2);
        exit(1);
    }
}

static void count(void)
{
    uint64_t value = 0;
    const char *key = k("i");
    want("incr missing", memcached_increment(mc, key, strlen(key), 1, &value), MEMCACHED_NOTFOUND);
    want("incr initial", memcached_increment_with_initial(mc, key, strlen(key), 1, 5, 0, &value),
         MEMCACHED_SUCCESS);
    want("incr", memcached_increment(mc, key, strlen(key), 3, &value), MEMCACHED_SUCCESS);
    if (value != 8) {
        fprintf(stderr, "incr: %llu, want 8\n", (unsigned long long)value);
        exit(1);
    }
    want("decr", memcached_decrement(mc, key, strlen(key), 10, &value), MEMCACHED_SUCCESS);
    if (value != 0) {
        fprintf(stderr, "decr: %llu, want 0\n", (unsigned long long)value);
        exit(1);
    }
}

static uint64_t cas_of(const char *name)
{
    const char *key = k(name);
    size_t len = strlen(key);
    memcached_return_t rc;
    want("mget one", memcached_mget(mc, &key, &len, 1), MEMCACHED_SUCCESS);
    memcached_result_st *result = memcached_fetch_result(mc, NULL, &rc);
    uint64_t cas = result == NULL ? 0 : memcached_result_cas(result);
    memcached_result_free(result);
    while ((result = memcached_fetch_result(mc, NULL, &rc)) != NULL) {
        memcached_result_free(result);
    }
    return cas;
}

static void swap_and_delete(void)
{
    uint64_t cas = cas_of("a");
    const char *key = k("a");
    if (cas == 0) {
        fprintf(stderr, "cas: none came\n");
        exit(1);
    }
    want("cas", memcached_cas(mc, key, strlen(key), "new", 3, 0, 0, cas), MEMCACHED_SUCCESS);
    want("cas again", memcached_cas(mc, key, strlen(key), "newer", 5, 0, 0, cas),
         MEMCACHED_DATA_EXISTS);
    want_value("after cas", "a", "new");
    key = k("a");
    want("delete", memcached_delete(mc, key, strlen(key), 0), MEMCACHED_SUCCESS);
    want("delete missing", memcached_delete(mc, key, strlen(key), 0), MEMCACHED_NOTFOUND);
}

static void expire(void)
{
    const char *key;
    time_t end = time(NULL) + 10;
    memcached_return_t rc = MEMCACHED_SUCCESS;
    want("set with expiry", set("t", "short", 1), MEMCACHED_SUCCESS);
    while (rc == MEMCACHED_SUCCESS) {
        size_t len;
        uint32_t flags;
        key = k("t");
        free(memcached_get(mc, key, strlen(key), &len, &flags, &rc));
        if (time(NULL) > end) {
            fprintf(stderr, "expiry: still there\n");
            exit(1);
        }
        usleep(50000);
    }
    want("expiry", rc, MEMCACHED_NOTFOUND);
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: scenario_c HOST PORT USER|- PASSWORD|- PREFIX\n");
        return 2;
    }
    prefix = argv[5];
    mc = memcached_create(NULL);
    memcached_behavior_set(mc, MEMCACHED_BEHAVIOR_BINARY_PROTOCOL, 1);
    memcached_behavior_set(mc, MEMCACHED_BEHAVIOR_SUPPORT_CAS, 1);
    if (strcmp(argv[3], "-") != 0) {
        want("login data", memcached_set_sasl_auth_data(mc, argv[3], argv[4]), MEMCACHED_SUCCESS);
    }
    want("server", memcached_server_add(mc, argv[1], (in_port_t)atoi(argv[2])), MEMCACHED_SUCCESS);
    store();
    multiget();
    count();
    swap_and_delete();
    expire();
    memcached_free(mc);
    puts("PASS");
    return 0;
}
