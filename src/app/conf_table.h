// conf_table - the option table as data: find an option, set it from text, show it as text
// SPDX-License-Identifier: BSD-3-Clause
//
// Within app/conf*, state and adminjson only. An "object" is a struct hg_conf, hg_conf_listen,
// hg_conf_upstream, hg_conf_upstream_server, hg_conf_tenant or hg_conf_family; its scope's options
// say where its fields lie. Pure but for allocation.
#ifndef HG_APP_CONF_TABLE_H
#define HG_APP_CONF_TABLE_H

#include "app/conf.h"

enum hg_conf_type {
    HG_CONF_TYPE_NUMBER,
    HG_CONF_TYPE_BYTES,
    HG_CONF_TYPE_UNITS,
    HG_CONF_TYPE_MODE,
    HG_CONF_TYPE_DECIMAL,
    HG_CONF_TYPE_BOOL,
    HG_CONF_TYPE_TEXT,
    HG_CONF_TYPE_NAME,
    HG_CONF_TYPE_SECRET,
    HG_CONF_TYPE_ADDRESS,
    HG_CONF_TYPE_LISTENS,
    HG_CONF_TYPE_UPSTREAMS,
    HG_CONF_TYPE_SERVERS,
    HG_CONF_TYPE_TENANTS,
    HG_CONF_TYPE_FAMILIES,
    HG_CONF_TYPE_ADMIN, /* from here on: groups */
    HG_CONF_TYPE_LISTEN_TLS,
    HG_CONF_TYPE_UPSTREAM_TLS,
#define HG_CONF_TYPE_OF_CHOICE(type, tag, VALUES) HG_CONF_TYPE_##type,
    HG_CONF_CHOICES(HG_CONF_TYPE_OF_CHOICE)
#undef HG_CONF_TYPE_OF_CHOICE
};

#define HG_CONF_SECRET_SHOWN "(secret)"

enum hg_conf_scope {
    HG_CONF_SCOPE_SERVER,
    HG_CONF_SCOPE_LISTEN,
    HG_CONF_SCOPE_UPSTREAM,
    HG_CONF_SCOPE_UPSTREAM_SERVER,
    HG_CONF_SCOPE_TENANT,
    HG_CONF_SCOPE_FAMILY,
    HG_CONF_SCOPE_ADMIN,
    HG_CONF_SCOPE_LISTEN_TLS,
    HG_CONF_SCOPE_UPSTREAM_TLS,
    HG_CONF_SCOPE_COUNT
};

/* Kinds of upstream that an option has a meaning for: bits, one for each kind. */
enum hg_conf_for_kind {
    HG_CONF_FOR_EMBEDDED = 1u << HG_CONF_KIND_EMBEDDED,
    HG_CONF_FOR_MEMCACHED = 1u << HG_CONF_KIND_MEMCACHED,
    HG_CONF_FOR_REDIS_ONE = 1u << HG_CONF_KIND_REDIS,
    HG_CONF_FOR_REDIS = HG_CONF_FOR_REDIS_ONE | 1u << HG_CONF_KIND_REDIS_CLUSTER,
    HG_CONF_FOR_REMOTE = HG_CONF_FOR_MEMCACHED | HG_CONF_FOR_REDIS,
    HG_CONF_FOR_ANY = HG_CONF_FOR_EMBEDDED | HG_CONF_FOR_REMOTE,
};

struct hg_conf_option {
    const char *name;
    enum hg_conf_type type;
    size_t offset;            /* of the field in the object */
    uint64_t min;             /* of a number (a decimal's in thousandths), or of a text's or list's
                                 length */
    uint64_t max;             /* likewise */
    const char *default_text; /* NULL: must be given */
    const char *unit;
    bool at_run_time;
    unsigned for_kinds; /* enum hg_conf_for_kind */
    const char *sentence;
};

struct hg_conf_scope_info {
    const char *noun;  /* "server", "listener", ... */
    const char *place; /* how its options are written: "", "listen", "upstreams", ... */
    const struct hg_conf_option *options;
    size_t count;
    size_t object_size;
    size_t lines_offset;
};

extern const struct hg_conf_scope_info hg_conf_scopes[HG_CONF_SCOPE_COUNT];

/* What is wrong, as text; room for a list of all option names. */
struct hg_conf_why {
    char text[2400];
};

/* NULL when the scope has no such option. */
const struct hg_conf_option *hg_conf_option_find(enum hg_conf_scope scope, const char *name);
/* Writes `unknown SUBJECT 'name'`, a likely meant one and the accepted names. */
void hg_conf_option_unknown(enum hg_conf_scope scope, const char *name, struct hg_conf_why *why);
/* The option of the server scope that gives this one its default, or NULL. */
const struct hg_conf_option *hg_conf_option_inherits(const struct hg_conf_option *option);
/* For the list types and groups: the scope of the elements; HG_CONF_SCOPE_COUNT for any other type.
 */
enum hg_conf_scope hg_conf_option_list(const struct hg_conf_option *option);
/* The index of the option's line in the object's `lines`. */
unsigned *hg_conf_option_line(enum hg_conf_scope scope, const struct hg_conf_option *option,
                              const void *object);
/* A list option's array and count. */
void *hg_conf_option_array(const struct hg_conf_option *option, const void *object,
                           size_t *ret_count);
void hg_conf_option_array_put(const struct hg_conf_option *option, void *object, void *array,
                              size_t count);

/* Whether it is a mapping in the file: a list of one element, or none. */
static inline bool hg_conf_option_is_group(const struct hg_conf_option *option)
{
    return option->type >= HG_CONF_TYPE_ADMIN && option->type <= HG_CONF_TYPE_UPSTREAM_TLS;
}

/* Whether the field is a string of its own. */
static inline bool hg_conf_option_is_text(const struct hg_conf_option *option)
{
    return option->type == HG_CONF_TYPE_TEXT || option->type == HG_CONF_TYPE_NAME ||
           option->type == HG_CONF_TYPE_SECRET;
}

/* The names of a choice type, NULL for any other type; *ret_count of them. */
const char *const *hg_conf_choice_names(enum hg_conf_type type, size_t *ret_count);

/* What an option accepts, in words: "0 to 256 threads". */
void hg_conf_value_accepts(const struct hg_conf_option *option, char *ret, size_t size);
/* Sets a field (no list) from text. 0; -EINVAL with *why, the field unchanged; -ENOMEM. */
HG_MUST_USE int hg_conf_value_set(const struct hg_conf_option *option, void *object,
                                  const char *text, struct hg_conf_why *why);
/* The field as it would be written in a file (lists in short), on the heap; NULL when memory is
   out. Of a secret only whether there is one: HG_CONF_SECRET_SHOWN. */
char *hg_conf_value_text(const struct hg_conf_option *option, const void *object);

/* All fields of a zeroed object to their defaults (lists to nothing). 0 or -ENOMEM; fini in both
 * cases. */
HG_MUST_USE int hg_conf_object_init(enum hg_conf_scope scope, void *object);
void hg_conf_object_fini(enum hg_conf_scope scope, void *object);
/* Copies options and lines to a zeroed object. */
HG_MUST_USE int hg_conf_object_copy(enum hg_conf_scope scope, const void *from, void *to);

/* Parses "HOST:PORT", "[V6]:PORT", "unix:PATH", "/PATH". 0, -EINVAL, -ENOMEM. */
HG_MUST_USE int hg_conf_address_parse(const char *text, struct hg_conf_address *ret);
void hg_conf_address_fini(struct hg_conf_address *address);
/* Whether only this machine can reach it. */
bool hg_conf_address_is_local(const struct hg_conf_address *address);

/* Whole number in decimal, no sign, no leading zero. 0, or -EINVAL / -ERANGE (over 64 bits). */
HG_MUST_USE int hg_conf_number_parse(const char *text, uint64_t *ret);
/* Decimal with at most six digits after the point, no sign, no exponent: in millionths. Same. */
HG_MUST_USE int hg_conf_decimal_parse(const char *text, uint64_t *ret_millionths);
/* Whether text may name a bucket or an upstream: 1-100 of [A-Za-z0-9._%-]. */
bool hg_conf_name_ok(const char *text, size_t len);

#endif
