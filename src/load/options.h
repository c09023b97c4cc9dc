// options - the command line of headgate-load, parsed and checked
// SPDX-License-Identifier: BSD-3-Clause
//
// What comes out is complete and consistent: nobody checks it again.
#ifndef HG_LOAD_OPTIONS_H
#define HG_LOAD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "load/arrivals.h"
#include "load/op.h"
#include "load/rate.h"

#define HG_LOAD_TENANTS_MAX 64
#define HG_LOAD_CPU_OF_MAX  16

enum {
    HG_LOAD_HELLO_XERROR = 1,
    HG_LOAD_HELLO_JSON = 2,
    HG_LOAD_HELLO_NONBLOCKING = 4,
};

/* One tenant's load. Texts belong to the options. */
struct hg_load_tenant {
    const char *name;
    const char *server;
    uint32_t connections;
    uint32_t pipeline;
    uint32_t weight[HG_LOAD_OPS];
    uint32_t keys;
    uint32_t key_bytes;
    const char *key_prefix;
    const char *key; /* the only key, as it is; NULL: keys are made from their numbers */
    double zipf;
    uint32_t value_min;
    uint32_t value_max;
    uint32_t expiry;
    struct hg_rate rate;
    enum hg_arrivals_kind arrivals;
    uint32_t waiting;  /* of an open loop: requests that wait when no connection has room */
    double slo_ms;     /* 0: every success is soon enough */
    const char *table; /* of TableAPI operations; NULL: there are none */
    const char *hbase;
    double hot_rate; /* 0: no key turns hot */
    uint32_t hot_key;
    uint32_t hot_op; /* enum hg_load_op */
    uint64_t hot_at_ns;
    uint64_t hot_until_ns; /* UINT64_MAX: to the end */
    const char *user;      /* NULL: nobody logs in */
    const char *password;
    const char *mechanism; /* NULL: the strongest offered */
    const char *bucket;
    const char *tls; /* file of authorities, "system", "any"; NULL: plain */
    const char *tls_cert;
    const char *tls_key;
    uint32_t hello;
};

enum hg_load_protocol {
    HG_LOAD_BINARY,
    HG_LOAD_TEXT,
    HG_LOAD_RESP,
};

extern const char *const hg_load_protocol_names[HG_LOAD_RESP + 1];

extern const char *const hg_load_arrivals_names[HG_ARRIVALS_POISSON + 1];

struct hg_load_options {
    enum hg_load_protocol protocol;
    bool fill;
    bool json;
    bool has_operations;
    bool has_time;
    uint64_t operations;
    uint64_t time_ns; /* 0: no bound but the operations */
    uint64_t warmup_ns;
    uint64_t interval_ns;
    uint32_t interval_ms; /* of the intervals that are counted apart; 0: none */
    const char *series;   /* file that they are written to; NULL: none */
    uint64_t timeout_ns;
    uint64_t seed;
    uint32_t threads;
    uint32_t cpu_of_count;
    pid_t cpu_of[HG_LOAD_CPU_OF_MAX];
    uint32_t tenant_count;
    struct hg_load_tenant tenants[HG_LOAD_TENANTS_MAX];
    char **texts; /* what the fields above point into, but for argv */
    uint32_t text_count;
};

enum hg_load_parsed {
    HG_LOAD_RUN,   /* go ahead */
    HG_LOAD_SHOWN, /* help or version was printed */
    HG_LOAD_USAGE, /* wrong; the reason is on stderr */
};

/* `argv` must outlive the options. */
HG_MUST_USE enum hg_load_parsed hg_load_options_init(struct hg_load_options *options, int argc,
                                                     char **argv);
void hg_load_options_fini(struct hg_load_options *options);

#endif
