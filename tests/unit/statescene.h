// statescene - a state over a file of settings, in a directory of the test's own
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_TEST_STATESCENE_H
#define HG_TEST_STATESCENE_H

#include "apphelp.h"

#include <unistd.h>

#include "app/adminjson.h"
#include "app/state.h"

#define N(v) ((struct hg_state_units){HG_STATE_VALUE, v})

static const char file[] =
    "node_capacity: 1000\n"
    "default_throttle_hard_limit: 500\n"
    "upstreams:\n"
    "  - {name: cache, kind: memcached, servers: [{address: \"127.0.0.1:11311\"}]}\n"
    "  - {name: rows, kind: embedded}\n"
    "tenants:\n"
    "  - {name: shop, upstream: cache, reserved: 5, hard_limit: 50}\n"
    "  - {name: ledger, upstream: rows}\n";

struct fixture {
    char directory[64];
    char path[128];
    struct hg_conf *conf;
    struct hg_state *state;
};

static inline int setup(void **ret)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    strcpy(fixture->directory, "/tmp/hg-state-XXXXXX");
    assert_non_null(mkdtemp(fixture->directory));
    snprintf(fixture->path, sizeof fixture->path, "%s/state.json", fixture->directory);
    fixture->conf = apphelp_conf(file);
    fixture->state = hg_state_new();
    assert_non_null(fixture->state);
    *ret = fixture;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *fixture = *state;
    unlink(fixture->path);
    assert_int_equal(rmdir(fixture->directory), 0); /* nothing else was left there */
    hg_conf_free(fixture->conf);
    hg_state_free(fixture->state);
    free(fixture);
    return 0;
}

static inline void create(struct fixture *fixture, const char *name, const char *body)
{
    struct hg_conf_tenant *settings = NULL;
    struct hg_adminjson_why why;
    assert_int_equal(
        hg_adminjson_decode_bucket(hg_span_str(name), hg_span_str(body), &settings, &why), 0);
    assert_int_equal(hg_state_create_bucket(fixture->state, fixture->conf, settings), 0);
    hg_adminjson_free_bucket(settings);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
