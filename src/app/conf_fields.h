// conf_fields - the tree of a configuration as structs, made from the option table
// SPDX-License-Identifier: BSD-3-Clause
//
// One field for each row of conf.def, under the option's name. Texts are never NULL.
// `lines[HG_CONF_TENANT_reserved]` and the like say where a value comes from: a line of the file, 0
// = the default, HG_CONF_BY_OPCODE. Fields after `lines` are computed from the options.
#ifndef HG_APP_CONF_FIELDS_H
#define HG_APP_CONF_FIELDS_H

#include "app/conf_type.h"

#define HG_CONF_BY_OPCODE   (~0u)
#define HG_CONF_NO_UPSTREAM SIZE_MAX

enum hg_conf_server_option {
#define HG_SERVER(name, ...) HG_CONF_SERVER_##name,
#include "app/conf.def"
    HG_CONF_SERVER_COUNT
};
enum hg_conf_listen_option {
#define HG_LISTEN(name, ...) HG_CONF_LISTEN_##name,
#include "app/conf.def"
    HG_CONF_LISTEN_COUNT
};
enum hg_conf_upstream_option {
#define HG_UPSTREAM(name, ...) HG_CONF_UPSTREAM_##name,
#include "app/conf.def"
    HG_CONF_UPSTREAM_COUNT
};
enum hg_conf_upstream_server_option {
#define HG_UPSTREAM_SERVER(name, ...) HG_CONF_UPSTREAM_SERVER_##name,
#include "app/conf.def"
    HG_CONF_UPSTREAM_SERVER_COUNT
};
enum hg_conf_tenant_option {
#define HG_TENANT(name, ...) HG_CONF_TENANT_##name,
#include "app/conf.def"
    HG_CONF_TENANT_COUNT
};
enum hg_conf_family_option {
#define HG_FAMILY(name, ...) HG_CONF_FAMILY_##name,
#include "app/conf.def"
    HG_CONF_FAMILY_COUNT
};
enum hg_conf_admin_option {
#define HG_ADMIN(name, ...) HG_CONF_ADMIN_##name,
#include "app/conf.def"
    HG_CONF_ADMIN_COUNT
};
enum hg_conf_listen_tls_option {
#define HG_LISTEN_TLS(name, ...) HG_CONF_LISTEN_TLS_##name,
#include "app/conf.def"
    HG_CONF_LISTEN_TLS_COUNT
};
enum hg_conf_upstream_tls_option {
#define HG_UPSTREAM_TLS(name, ...) HG_CONF_UPSTREAM_TLS_##name,
#include "app/conf.def"
    HG_CONF_UPSTREAM_TLS_COUNT
};

/* A list option `x` is the fields `x` (an array) and `x_count`; a group, a mapping in the
   file, is one with a single element, or none. */
#define HG_CONF_FIELD_LISTENS(name)                                                                \
    struct hg_conf_listen *name;                                                                   \
    size_t name##_count;
#define HG_CONF_FIELD_UPSTREAMS(name)                                                              \
    struct hg_conf_upstream *name;                                                                 \
    size_t name##_count;
#define HG_CONF_FIELD_SERVERS(name)                                                                \
    struct hg_conf_upstream_server *name;                                                          \
    size_t name##_count;
#define HG_CONF_FIELD_TENANTS(name)                                                                \
    struct hg_conf_tenant *name;                                                                   \
    size_t name##_count;
#define HG_CONF_FIELD_FAMILIES(name)                                                               \
    struct hg_conf_family *name;                                                                   \
    size_t name##_count;
#define HG_CONF_FIELD_ADMIN(name)                                                                  \
    struct hg_conf_admin *name;                                                                    \
    size_t name##_count;
#define HG_CONF_FIELD_LISTEN_TLS(name)                                                             \
    struct hg_conf_listen_tls *name;                                                               \
    size_t name##_count;
#define HG_CONF_FIELD_UPSTREAM_TLS(name)                                                           \
    struct hg_conf_upstream_tls *name;                                                             \
    size_t name##_count;

struct hg_conf_admin {
#define HG_ADMIN(name, type, ...) HG_CONF_FIELD_##type(name)
#include "app/conf.def"
    unsigned lines[HG_CONF_ADMIN_COUNT];
};

struct hg_conf_listen_tls {
#define HG_LISTEN_TLS(name, type, ...) HG_CONF_FIELD_##type(name)
#include "app/conf.def"
    unsigned lines[HG_CONF_LISTEN_TLS_COUNT];
};

struct hg_conf_upstream_tls {
#define HG_UPSTREAM_TLS(name, type, ...) HG_CONF_FIELD_##type(name)
#include "app/conf.def"
    unsigned lines[HG_CONF_UPSTREAM_TLS_COUNT];
};

struct hg_conf_listen {
#define HG_LISTEN(name, type, ...) HG_CONF_FIELD_##type(name)
#include "app/conf.def"
    unsigned lines[HG_CONF_LISTEN_COUNT];
};

struct hg_conf_upstream_server {
#define HG_UPSTREAM_SERVER(name, type, ...) HG_CONF_FIELD_##type(name)
#include "app/conf.def"
    unsigned lines[HG_CONF_UPSTREAM_SERVER_COUNT];
};

/* With `configuration` given, servers, ring and hash are filled from it. */
struct hg_conf_upstream {
#define HG_UPSTREAM(name, type, ...) HG_CONF_FIELD_##type(name)
#include "app/conf.def"
    unsigned lines[HG_CONF_UPSTREAM_COUNT];
};

struct hg_conf_family {
#define HG_FAMILY(name, type, ...) HG_CONF_FIELD_##type(name)
#include "app/conf.def"
    unsigned lines[HG_CONF_FAMILY_COUNT];
};

struct hg_conf_tenant {
#define HG_TENANT(name, type, ...) HG_CONF_FIELD_##type(name)
#include "app/conf.def"
    unsigned lines[HG_CONF_TENANT_COUNT];
    size_t upstream_index;      /* in conf->upstreams; HG_CONF_NO_UPSTREAM only if disabled */
    char *effective_prefix;     /* key prefix towards servers, "" = none */
    size_t neighbours;          /* tenants whose keys lie in the same place */
    bool disabled;              /* its upstream is gone (state file only) */
    bool by_opcode;             /* made by CreateBucket */
    uint16_t data_limit_status; /* 0, or the status that refuses writes (0x35-0x38) */
};

struct hg_conf {
#define HG_SERVER(name, type, ...) HG_CONF_FIELD_##type(name)
#include "app/conf.def"
    unsigned lines[HG_CONF_SERVER_COUNT];
    char *file;       /* where it was read from; "" = the defaults */
    char *state_path; /* state_file, or state.json in data_dir */
};

#endif
