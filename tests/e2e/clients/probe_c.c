// probe_c - what libmemcached makes of a status; see probe.py
// SPDX-License-Identifier: BSD-3-Clause
#include <libmemcached/memcached.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text after the operation: "ok" is "is good", the value of good. */
static const char *fetch_good(memcached_st *mc)
{
    size_t len = 0;
    uint32_t flags;
    memcached_return_t rc;
    char *value = memcached_get(mc, "good", 4, &len, &flags, &rc);
    bool right = value != NULL && len == 7 && memcmp(value, "is good", 7) == 0;
    free(value);
    return right ? "ok" : rc == MEMCACHED_SUCCESS ? "another value" : memcached_strerror(mc, rc);
}

static memcached_return_t get(memcached_st *mc, const char *key)
{
    size_t len;
    uint32_t flags;
    memcached_return_t rc;
    free(memcached_get(mc, key, strlen(key), &len, &flags, &rc));
    return rc;
}

/* Writes the keys found, and how the walk ended. */
static void multiget(memcached_st *mc, const char *key, char *out, size_t cap)
{
    const char *keys[] = {"good1", key, "good2"};
    size_t lengths[] = {5, strlen(key), 5};
    size_t used = 0;
    memcached_result_st *result;
    memcached_return_t rc = memcached_mget(mc, keys, lengths, 3);
    if (rc == MEMCACHED_SUCCESS) {
        while ((result = memcached_fetch_result(mc, NULL, &rc)) != NULL && used < cap) {
            used += (size_t)snprintf(out + used, cap - used, "%.*s ",
                                     (int)memcached_result_key_length(result),
                                     memcached_result_key_value(result));
            memcached_result_free(result);
        }
    }
    snprintf(out + used, cap - used, "(%s)", memcached_strerror(mc, rc));
}

static void probe(const char *host, const char *port, const char *status, const char *op)
{
    char key[32];
    char saw[256] = "";
    uint64_t number;
    memcached_return_t rc = MEMCACHED_SUCCESS;
    memcached_st *mc = memcached_create(NULL);
    snprintf(key, sizeof key, "s%s", status);
    memcached_behavior_set(mc, MEMCACHED_BEHAVIOR_BINARY_PROTOCOL, 1);
    memcached_server_add(mc, host, (in_port_t)atoi(port));
    get(mc, "begin");
    if (strcmp(op, "get") == 0) {
        rc = get(mc, key);
    } else if (strcmp(op, "set") == 0) {
        rc = memcached_set(mc, key, strlen(key), "v", 1, 0, 0);
    } else if (strcmp(op, "incr") == 0) {
        rc = memcached_increment(mc, key, strlen(key), 1, &number);
    } else if (strcmp(op, "delete") == 0) {
        rc = memcached_delete(mc, key, strlen(key), 0);
    } else {
        multiget(mc, key, saw, sizeof saw);
    }
    if (saw[0] == '\0') {
        snprintf(saw, sizeof saw, "%s", memcached_strerror(mc, rc));
    }
    printf("%s\t%s\t%s\n", status, saw, fetch_good(mc));
    fflush(stdout);
    memcached_free(mc);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: probe_c HOST PORT OP STATUS ...\n");
        return 2;
    }
    for (int i = 4; i < argc; i++) {
        probe(argv[1], argv[2], argv[i], argv[3]);
    }
    return 0;
}
