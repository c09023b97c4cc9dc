// conf_type - the types an option can have, and the names of the choices
// SPDX-License-Identifier: BSD-3-Clause
//
// Each choice is a list of (enumerator, name in the file); the enum, the parser and the manual use
// it. HG_CONF_FIELD_<TYPE>(name) declares the field of an option of that type.
#ifndef HG_APP_CONF_TYPE_H
#define HG_APP_CONF_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HG_CONF_UNLIMITED UINT64_MAX

/* clang-format off */
#define HG_CONF_LOG_LEVEL_VALUES(V) V(LOG_LEVEL_ERROR, "error") V(LOG_LEVEL_WARNING, "warning") \
    V(LOG_LEVEL_INFO, "info") V(LOG_LEVEL_DEBUG, "debug")
#define HG_CONF_FREE_POOL_VALUES(V) V(FREE_POOL_FIRST_COME, "first-come") V(FREE_POOL_FAIR, "fair")
#define HG_CONF_KIND_VALUES(V) V(KIND_EMBEDDED, "embedded") V(KIND_MEMCACHED, "memcached") \
    V(KIND_REDIS, "redis") V(KIND_REDIS_CLUSTER, "redis-cluster")
#define HG_CONF_SYNC_VALUES(V) V(SYNC_ALWAYS, "always") V(SYNC_SECOND, "second") \
    V(SYNC_NEVER, "never")
#define HG_CONF_WHEN_FULL_VALUES(V) V(WHEN_FULL_REFUSE, "refuse") V(WHEN_FULL_EVICT, "evict")
#define HG_CONF_RING_VALUES(V) V(RING_KETAMA, "ketama") V(RING_KETAMA_WEIGHTED, "ketama_weighted") \
    V(RING_CONSISTENT, "consistent") V(RING_MODULA, "modula")
#define HG_CONF_HASH_VALUES(V) V(HASH_DEFAULT, "default") V(HASH_MD5, "md5") V(HASH_CRC, "crc") \
    V(HASH_FNV1_64, "fnv1_64") V(HASH_FNV1A_64, "fnv1a_64") V(HASH_FNV1_32, "fnv1_32") \
    V(HASH_FNV1A_32, "fnv1a_32") V(HASH_JENKINS, "jenkins") V(HASH_MURMUR, "murmur") \
    V(HASH_MURMUR3, "murmur3")
#define HG_CONF_LAYOUT_VALUES(V) V(LAYOUT_ITEM, "item") V(LAYOUT_PLAIN, "plain")
#define HG_CONF_RANGES_VALUES(V) V(RANGES_AUTO, "auto") V(RANGES_ON, "on") V(RANGES_OFF, "off")
#define HG_CONF_MULTIGET_VALUES(V) V(MULTIGET_ERROR, "error") V(MULTIGET_MISS, "miss")
#define HG_CONF_TENANT_STATE_VALUES(V) V(TENANT_STATE_ACTIVE, "active") \
    V(TENANT_STATE_PAUSED, "paused") V(TENANT_STATE_DISABLED, "disabled")
#define HG_CONF_CREDIT_MODE_VALUES(V) V(CREDIT_MODE_OFF, "off") V(CREDIT_MODE_OBSERVE, "observe") \
    V(CREDIT_MODE_ENFORCE, "enforce")
#define HG_CONF_HOTKEY_MODE_VALUES(V) V(HOTKEY_MODE_OFF, "off") V(HOTKEY_MODE_OBSERVE, "observe") \
    V(HOTKEY_MODE_ENFORCE, "enforce")
#define HG_CONF_HOTKEY_CONTROL_VALUES(V) V(HOTKEY_CONTROL_STEP, "step") \
    V(HOTKEY_CONTROL_PROPORTIONAL, "proportional")
#define HG_CONF_TICKET_MODE_VALUES(V) V(TICKET_MODE_OFF, "off") V(TICKET_MODE_OBSERVE, "observe") \
    V(TICKET_MODE_ENFORCE, "enforce")
#define HG_CONF_BIND_MODE_VALUES(V) V(BIND_MODE_OFF, "off") V(BIND_MODE_OBSERVE, "observe") \
    V(BIND_MODE_ENFORCE, "enforce")
#define HG_CONF_FLOOD_ORDER_VALUES(V)       V(FLOOD_ORDER_OLDEST, "oldest") V(FLOOD_ORDER_NEWEST, "newest")
#define HG_CONF_EXECUTION_CONTROL_VALUES(V) V(EXECUTION_CONTROL_ADAPTIVE, "adaptive") \
    V(EXECUTION_CONTROL_PROBING, "probing") V(EXECUTION_CONTROL_FIXED, "fixed")
#define HG_CONF_TICKETS_SCOPE_VALUES(V) V(TICKETS_SCOPE_UPSTREAM, "upstream") \
    V(TICKETS_SCOPE_SERVER, "server")
#define HG_CONF_BIND_CONTROL_VALUES(V) V(BIND_CONTROL_SHARE, "share") V(BIND_CONTROL_HERA, "hera")
#define HG_CONF_COMPAT_OVERLOAD_VALUES(V) V(COMPAT_OVERLOAD_NONE, "none") \
    V(COMPAT_OVERLOAD_SEED, "seed")
#define HG_CONF_FAIR_BY_VALUES(V) V(FAIR_BY_TENANT, "tenant") V(FAIR_BY_USER, "user") \
    V(FAIR_BY_ADDRESS, "address")
#define HG_CONF_BIND_MENDED_VALUES(V) V(BIND_MENDED_HALVE, "halve") V(BIND_MENDED_SEED, "seed")
#define HG_CONF_CLIENT_AUTH_VALUES(V) V(CLIENT_AUTH_NONE, "none") V(CLIENT_AUTH_OPTIONAL, "optional") \
    V(CLIENT_AUTH_REQUIRED, "required")
#define HG_CONF_CLIENT_USER_VALUES(V) V(CLIENT_USER_NONE, "none") V(CLIENT_USER_CN, "cn")
#define HG_CONF_TLS_VERSION_VALUES(V) V(TLS_VERSION_1_2, "1.2") V(TLS_VERSION_1_3, "1.3")
#define HG_CONF_REJECT_STATUS_VALUES(V) V(REJECT_STATUS_TMPFAIL, "tmpfail") \
    V(REJECT_STATUS_BUSY, "busy") V(REJECT_STATUS_DEGRADE, "degrade")

/* Every choice: TYPE token, name of the enum, its values. */
#define HG_CONF_CHOICES(C) \
    C(LOG_LEVEL, hg_conf_log_level, HG_CONF_LOG_LEVEL_VALUES) \
    C(FREE_POOL, hg_conf_free_pool, HG_CONF_FREE_POOL_VALUES) \
    C(KIND, hg_conf_kind, HG_CONF_KIND_VALUES) \
    C(SYNC, hg_conf_sync, HG_CONF_SYNC_VALUES) \
    C(WHEN_FULL, hg_conf_when_full, HG_CONF_WHEN_FULL_VALUES) \
    C(RING, hg_conf_ring, HG_CONF_RING_VALUES) \
    C(HASH, hg_conf_hash, HG_CONF_HASH_VALUES) \
    C(LAYOUT, hg_conf_layout, HG_CONF_LAYOUT_VALUES) \
    C(RANGES, hg_conf_ranges, HG_CONF_RANGES_VALUES) \
    C(MULTIGET, hg_conf_multiget, HG_CONF_MULTIGET_VALUES) \
    C(TENANT_STATE, hg_conf_tenant_state, HG_CONF_TENANT_STATE_VALUES) \
    C(CREDIT_MODE, hg_conf_credit_mode, HG_CONF_CREDIT_MODE_VALUES) \
    C(HOTKEY_MODE, hg_conf_hotkey_mode, HG_CONF_HOTKEY_MODE_VALUES) \
    C(HOTKEY_CONTROL, hg_conf_hotkey_control, HG_CONF_HOTKEY_CONTROL_VALUES) \
    C(TICKET_MODE, hg_conf_ticket_mode, HG_CONF_TICKET_MODE_VALUES) \
    C(BIND_MODE, hg_conf_bind_mode, HG_CONF_BIND_MODE_VALUES) \
    C(EXECUTION_CONTROL, hg_conf_execution_control, HG_CONF_EXECUTION_CONTROL_VALUES) \
    C(TICKETS_SCOPE, hg_conf_tickets_scope, HG_CONF_TICKETS_SCOPE_VALUES) \
    C(FLOOD_ORDER, hg_conf_flood_order, HG_CONF_FLOOD_ORDER_VALUES) \
    C(BIND_CONTROL, hg_conf_bind_control, HG_CONF_BIND_CONTROL_VALUES) \
    C(COMPAT_OVERLOAD, hg_conf_compat_overload, HG_CONF_COMPAT_OVERLOAD_VALUES) \
    C(FAIR_BY, hg_conf_fair_by, HG_CONF_FAIR_BY_VALUES) \
    C(BIND_MENDED, hg_conf_bind_mended, HG_CONF_BIND_MENDED_VALUES) \
    C(CLIENT_AUTH, hg_conf_client_auth, HG_CONF_CLIENT_AUTH_VALUES) \
    C(CLIENT_USER, hg_conf_client_user, HG_CONF_CLIENT_USER_VALUES) \
    C(TLS_VERSION, hg_conf_tls_version, HG_CONF_TLS_VERSION_VALUES) \
    C(REJECT_STATUS, hg_conf_reject_status, HG_CONF_REJECT_STATUS_VALUES)
/* clang-format on */

/* enum hg_conf_sync { HG_CONF_SYNC_ALWAYS, ... } and so on, in the order of the lists. */
#define HG_CONF_ENUMERATOR(id, name)    HG_CONF_##id,
#define HG_CONF_ENUM(type, tag, VALUES) enum tag { VALUES(HG_CONF_ENUMERATOR) };
HG_CONF_CHOICES(HG_CONF_ENUM)
#undef HG_CONF_ENUM

/* A socket address as text; host is a name or a number without brackets, or the path if is_unix. */
struct hg_conf_address {
    char *text;
    char *host;
    uint16_t port;
    bool is_unix;
};

#define HG_CONF_FIELD_NUMBER(name)            uint64_t name;
#define HG_CONF_FIELD_BYTES(name)             uint64_t name;
#define HG_CONF_FIELD_UNITS(name)             uint64_t name; /* or HG_CONF_UNLIMITED */
#define HG_CONF_FIELD_MODE(name)              uint64_t name;
#define HG_CONF_FIELD_DECIMAL(name)           double name;
#define HG_CONF_FIELD_BOOL(name)              bool name;
#define HG_CONF_FIELD_TEXT(name)              char *name; /* never NULL */
#define HG_CONF_FIELD_NAME(name)              char *name;
#define HG_CONF_FIELD_SECRET(name)            char *name; /* a text that is never shown */
#define HG_CONF_FIELD_ADDRESS(name)           struct hg_conf_address name;
#define HG_CONF_FIELD_LOG_LEVEL(name)         enum hg_conf_log_level name;
#define HG_CONF_FIELD_FREE_POOL(name)         enum hg_conf_free_pool name;
#define HG_CONF_FIELD_KIND(name)              enum hg_conf_kind name;
#define HG_CONF_FIELD_SYNC(name)              enum hg_conf_sync name;
#define HG_CONF_FIELD_WHEN_FULL(name)         enum hg_conf_when_full name;
#define HG_CONF_FIELD_RING(name)              enum hg_conf_ring name;
#define HG_CONF_FIELD_HASH(name)              enum hg_conf_hash name;
#define HG_CONF_FIELD_LAYOUT(name)            enum hg_conf_layout name;
#define HG_CONF_FIELD_RANGES(name)            enum hg_conf_ranges name;
#define HG_CONF_FIELD_MULTIGET(name)          enum hg_conf_multiget name;
#define HG_CONF_FIELD_TENANT_STATE(name)      enum hg_conf_tenant_state name;
#define HG_CONF_FIELD_CREDIT_MODE(name)       enum hg_conf_credit_mode name;
#define HG_CONF_FIELD_HOTKEY_MODE(name)       enum hg_conf_hotkey_mode name;
#define HG_CONF_FIELD_HOTKEY_CONTROL(name)    enum hg_conf_hotkey_control name;
#define HG_CONF_FIELD_TICKET_MODE(name)       enum hg_conf_ticket_mode name;
#define HG_CONF_FIELD_BIND_MODE(name)         enum hg_conf_bind_mode name;
#define HG_CONF_FIELD_EXECUTION_CONTROL(name) enum hg_conf_execution_control name;
#define HG_CONF_FIELD_TICKETS_SCOPE(name)     enum hg_conf_tickets_scope name;
#define HG_CONF_FIELD_FLOOD_ORDER(name)       enum hg_conf_flood_order name;
#define HG_CONF_FIELD_BIND_CONTROL(name)      enum hg_conf_bind_control name;
#define HG_CONF_FIELD_COMPAT_OVERLOAD(name)   enum hg_conf_compat_overload name;
#define HG_CONF_FIELD_FAIR_BY(name)           enum hg_conf_fair_by name;
#define HG_CONF_FIELD_BIND_MENDED(name)       enum hg_conf_bind_mended name;
#define HG_CONF_FIELD_CLIENT_AUTH(name)       enum hg_conf_client_auth name;
#define HG_CONF_FIELD_CLIENT_USER(name)       enum hg_conf_client_user name;
#define HG_CONF_FIELD_TLS_VERSION(name)       enum hg_conf_tls_version name;
#define HG_CONF_FIELD_REJECT_STATUS(name)     enum hg_conf_reject_status name;

#endif
