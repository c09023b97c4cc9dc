// state_file - the state as JSON on the disk
// SPDX-License-Identifier: BSD-3-Clause
//
//     {"version": 1,
//      "node": {"capacity": 25000, "default_throttle_hard_limit": "unlimited"},
//      "options": {"bind_eviction_decr_per_sec": 10.0},
//      "upstreams": {"cache": {"execution_control": "fixed", "read_tickets": 64}},
//      "buckets": {"shop": {"throttle": {"reserved": 500, "hard_limit": "default"}, "data_limit":
//      53},
//                  "mugs": {"options": {"hotkey_mode": "observe"}},
//                  "toys": {"created": {"upstream": "cache", "reserved": 10}},
//                  "old": {"deleted": true}}}
//
// The file is ours, but people edit files: it is read as strictly as the body of an opcode.
#include "app/state_build.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/adminjson.h"
#include "app/conf_table.h"
#include "app/file.h"
#include "app/strictjson.h"

#define FILE_MAX_BYTES (64u << 20)
#define VERSION        1

/* One number-or-text of the file: its key, where it goes, whose bounds it has. */
struct unit_key {
    const char *name;
    size_t offset; /* of the struct hg_state_units */
    enum hg_conf_scope scope;
    size_t option;
};

static const struct unit_key node_keys[] = {
    {"capacity", offsetof(struct hg_state_node, capacity), HG_CONF_SCOPE_SERVER,
     HG_CONF_SERVER_node_capacity},
    {"default_throttle_reserved_units", offsetof(struct hg_state_node, default_reserved),
     HG_CONF_SCOPE_SERVER, HG_CONF_SERVER_default_throttle_reserved_units},
    {"default_throttle_hard_limit", offsetof(struct hg_state_node, default_hard_limit),
     HG_CONF_SCOPE_SERVER, HG_CONF_SERVER_default_throttle_hard_limit},
};

static const struct unit_key throttle_keys[] = {
    {"reserved", offsetof(struct hg_state_throttle, reserved), HG_CONF_SCOPE_TENANT,
     HG_CONF_TENANT_reserved},
    {"hard_limit", offsetof(struct hg_state_throttle, hard_limit), HG_CONF_SCOPE_TENANT,
     HG_CONF_TENANT_hard_limit},
};

/* Reads an object of such keys into a struct; what it does not name stays. */
static int read_units(const json_t *object, const char *what, const struct unit_key *keys,
                      size_t count, void *ret, struct hg_conf_why *why)
{
    const char *name;
    json_t *value;
    if (!json_is_object(object)) {
        hg_strictjson_refuse(what, object, "an object", why);
        return -EINVAL;
    }
    json_object_foreach((json_t *)object, name, value)
    {
        size_t i = 0;
        while (i < count && strcmp(keys[i].name, name) != 0)
            i++;
        if (i == count) {
            hg_strictjson_unknown(name,
                                  count == 2 ? "reserved, hard_limit"
                                             : "capacity, default_throttle_reserved_units, "
                                               "default_throttle_hard_limit",
                                  why);
            return -EINVAL;
        }
        struct hg_state_units *units = (void *)((char *)ret + keys[i].offset);
        const char *text = json_string_value(value);
        if (keys == throttle_keys && text && strcmp(text, "default") == 0) {
            units->mark = HG_STATE_DEFAULT;
            continue;
        }
        struct hg_conf_option option = hg_conf_scopes[keys[i].scope].options[keys[i].option];
        option.name = keys[i].name;
        option.offset = offsetof(struct hg_state_units, value);
        int rc = hg_strictjson_set(&option, units, value, why);
        if (rc)
            return rc;
        units->mark = HG_STATE_VALUE;
    }
    return 0;
}

static int read_created(const json_t *settings, struct hg_state_bucket *entry,
                        struct hg_conf_why *why)
{
    struct hg_adminjson_why fault;
    char *body = json_is_object(settings) ? json_dumps(settings, JSON_COMPACT) : NULL;
    if (!body) {
        hg_strictjson_refuse("created", settings, "an object of settings", why);
        return -EINVAL;
    }
    int rc = hg_adminjson_decode_created(hg_span_str(entry->name), hg_span_str(body),
                                         &entry->created, &fault);
    if (rc == -EINVAL)
        snprintf(why->text, sizeof why->text, "%s", fault.text);
    free(body);
    return rc;
}

static int read_field(const char *key, const json_t *value, struct hg_state_bucket *entry,
                      struct hg_conf_why *why)
{
    if (strcmp(key, "throttle") == 0) {
        entry->has_throttle = true;
        entry->throttle = (struct hg_state_throttle){{HG_STATE_ABSENT, 0}, {HG_STATE_ABSENT, 0}};
        return read_units(value, key, throttle_keys, HG_COUNT_OF(throttle_keys), &entry->throttle,
                          why);
    }
    if (strcmp(key, "options") == 0)
        return hg_state_read_texts(HG_CONF_SCOPE_TENANT, value, key, entry->texts, why);
    if (strcmp(key, "created") == 0)
        return read_created(value, entry, why);
    if (strcmp(key, "data_limit") == 0) {
        json_int_t status = json_is_integer(value) ? json_integer_value(value) : -1;
        struct hg_adminjson_why fault;
        if (status > 0 && status <= UINT16_MAX &&
            hg_adminjson_check_data_limit((uint16_t)status, &fault) == 0) {
            entry->data_limit = (uint16_t)status;
            return 0;
        }
        hg_strictjson_refuse(key, value, "53 to 56", why);
        return -EINVAL;
    }
    if (strcmp(key, "deleted") == 0) {
        entry->deleted = json_is_true(value);
        if (entry->deleted)
            return 0;
        hg_strictjson_refuse(key, value, "true", why);
        return -EINVAL;
    }
    hg_strictjson_unknown(key, "throttle, options, data_limit, created, deleted", why);
    return -EINVAL;
}

static int read_bucket(struct hg_state *state, const char *name, const json_t *object,
                       struct hg_conf_why *why)
{
    const char *key;
    json_t *value;
    if (!hg_conf_name_ok(name, strlen(name))) {
        snprintf(why->text, sizeof why->text,
                 "bad bucket name '%.80s' (accepted: 1 to 100 of A-Z a-z 0-9 . _ %% -)", name);
        return -EINVAL;
    }
    if (!json_is_object(object)) {
        hg_strictjson_refuse(name, object, "an object", why);
        return -EINVAL;
    }
    struct hg_state_bucket *entry = hg_state_entry(state, name, strlen(name));
    if (!entry)
        return -ENOMEM;
    json_object_foreach((json_t *)object, key, value)
    {
        int rc = read_field(key, value, entry, why);
        if (rc)
            return rc;
    }
    if (!entry->deleted || (!entry->created && !entry->has_throttle && !entry->data_limit &&
                            !hg_state_has_texts(HG_CONF_SCOPE_TENANT, entry->texts)))
        return 0;
    snprintf(why->text, sizeof why->text,
             "bucket '%s' is deleted and has settings (accepted: either)", name);
    return -EINVAL;
}

static int read_upstreams(struct hg_state *state, const json_t *object, struct hg_conf_why *why)
{
    const char *name;
    json_t *value;
    if (!json_is_object(object)) {
        hg_strictjson_refuse("upstreams", object, "an object", why);
        return -EINVAL;
    }
    json_object_foreach((json_t *)object, name, value)
    {
        if (!hg_conf_name_ok(name, strlen(name))) {
            snprintf(why->text, sizeof why->text,
                     "bad name of an upstream '%.80s' (accepted: 1 to 100 of A-Z a-z 0-9 . _ %% -)",
                     name);
            return -EINVAL;
        }
        char **texts = hg_state_upstream_texts(state, name, strlen(name));
        int rc =
            texts ? hg_state_read_texts(HG_CONF_SCOPE_UPSTREAM, value, name, texts, why) : -ENOMEM;
        if (rc)
            return rc;
    }
    return 0;
}

static int read_root(struct hg_state *state, const json_t *root, struct hg_conf_why *why)
{
    const char *key, *name;
    json_t *value, *bucket;
    int rc = 0;
    const json_t *version = json_object_get(root, "version");
    if (!version || !json_is_integer(version) || json_integer_value(version) != VERSION) {
        snprintf(why->text, sizeof why->text, "no 'version' that is known (accepted: %d)", VERSION);
        return -EINVAL;
    }
    json_object_foreach((json_t *)root, key, value)
    {
        if (strcmp(key, "node") == 0) {
            rc = read_units(value, key, node_keys, HG_COUNT_OF(node_keys), &state->node, why);
        } else if (strcmp(key, "options") == 0) {
            rc = hg_state_read_texts(HG_CONF_SCOPE_SERVER, value, key, state->texts, why);
        } else if (strcmp(key, "upstreams") == 0) {
            rc = read_upstreams(state, value, why);
        } else if (strcmp(key, "buckets") == 0) {
            if (!json_is_object(value)) {
                hg_strictjson_refuse(key, value, "an object", why);
                return -EINVAL;
            }
            json_object_foreach(value, name, bucket)
            {
                rc = read_bucket(state, name, bucket, why);
                if (rc)
                    return rc;
            }
        } else if (strcmp(key, "version") != 0) {
            hg_strictjson_unknown(key, "version, node, options, upstreams, buckets", why);
            rc = -EINVAL;
        }
        if (rc)
            return rc;
    }
    return 0;
}

int hg_state_parse(const char *text, size_t len, const char *name, struct hg_state **ret,
                   struct hg_conf_errors *errs)
{
    struct hg_conf_why why = {"out of memory"};
    struct hg_state *state = hg_state_new();
    if (!state) {
        hg_conf_errors_add(errs, name, 0, "%s", why.text);
        return -ENOMEM;
    }
    json_t *root = hg_strictjson_load(hg_span(text, len), FILE_MAX_BYTES,
                                      "the state file as headgate wrote it", &why);
    int rc = root ? read_root(state, root, &why) : -EINVAL;
    json_decref(root);
    if (rc) {
        hg_conf_errors_add(errs, name, 0, "broken state file: %s", why.text);
        hg_state_free(state);
        return rc;
    }
    *ret = state;
    return 0;
}

int hg_state_load(const char *path, struct hg_state **ret, struct hg_conf_errors *errs)
{
    char *text;
    size_t len;
    int rc = hg_file_read(path, FILE_MAX_BYTES, &text, &len);
    if (rc == -ENOENT) {
        *ret = hg_state_new();
        if (*ret)
            return 0;
        rc = -ENOMEM;
    }
    if (rc) {
        hg_conf_errors_add(errs, NULL, 0, "cannot read state file '%s': %s", path, strerror(-rc));
        return rc;
    }
    rc = hg_state_parse(text, len, path, ret, errs);
    free(text);
    return rc;
}

static json_t *units_json(const struct hg_state_units *units)
{
    if (units->mark == HG_STATE_DEFAULT)
        return json_string("default");
    return units->value == HG_CONF_UNLIMITED ? json_string("unlimited")
                                             : json_integer((json_int_t)units->value);
}

/* Writes what is not absent; false when memory is out. */
static bool write_units(json_t *object, const struct unit_key *keys, size_t count, const void *from)
{
    bool ok = object != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        const struct hg_state_units *units = (const void *)((const char *)from + keys[i].offset);
        if (units->mark != HG_STATE_ABSENT)
            ok = json_object_set_new(object, keys[i].name, units_json(units)) == 0;
    }
    return ok;
}

static bool write_created(json_t *object, const struct hg_conf_tenant *settings)
{
    const struct hg_conf_scope_info *info = &hg_conf_scopes[HG_CONF_SCOPE_TENANT];
    json_t *created = json_object();
    bool ok = json_object_set_new(object, "created", created) == 0;
    for (size_t i = 0; ok && i < info->count; i++)
        if (i != HG_CONF_TENANT_name && settings->lines[i])
            ok = json_object_set_new(created, info->options[i].name,
                                     hg_strictjson_get(&info->options[i], settings)) == 0;
    return ok;
}

static bool write_bucket(json_t *buckets, const struct hg_state_bucket *entry)
{
    json_t *object = json_object();
    bool ok = json_object_set_new(buckets, entry->name, object) == 0;
    if (ok && entry->created)
        ok = write_created(object, entry->created);
    if (ok && entry->has_throttle) {
        json_t *throttle = json_object();
        ok = json_object_set_new(object, "throttle", throttle) == 0 &&
             write_units(throttle, throttle_keys, HG_COUNT_OF(throttle_keys), &entry->throttle);
    }
    if (ok && hg_state_has_texts(HG_CONF_SCOPE_TENANT, entry->texts))
        ok = json_object_set_new(object, "options",
                                 hg_state_write_texts(HG_CONF_SCOPE_TENANT, entry->texts)) == 0;
    if (ok && entry->data_limit)
        ok = json_object_set_new(object, "data_limit", json_integer(entry->data_limit)) == 0;
    if (ok && entry->deleted)
        ok = json_object_set_new(object, "deleted", json_true()) == 0;
    return ok;
}

static bool write_upstreams(json_t *root, const struct hg_state *state)
{
    json_t *upstreams = json_object();
    bool ok = json_object_set_new(root, "upstreams", upstreams) == 0;
    for (size_t i = 0; ok && i < state->upstream_count; i++)
        ok = json_object_set_new(
                 upstreams, state->upstreams[i].name,
                 hg_state_write_texts(HG_CONF_SCOPE_UPSTREAM, state->upstreams[i].texts)) == 0;
    return ok;
}

static json_t *write_root(const struct hg_state *state)
{
    json_t *root = json_object(), *node = json_object(), *buckets = json_object();
    bool ok = root && json_object_set_new(root, "version", json_integer(VERSION)) == 0;
    ok = json_object_set_new(root, "node", node) == 0 && ok;
    ok = json_object_set_new(root, "buckets", buckets) == 0 && ok;
    ok = ok && write_units(node, node_keys, HG_COUNT_OF(node_keys), &state->node);
    if (ok && hg_state_has_texts(HG_CONF_SCOPE_SERVER, state->texts))
        ok = json_object_set_new(root, "options",
                                 hg_state_write_texts(HG_CONF_SCOPE_SERVER, state->texts)) == 0;
    if (ok && state->upstream_count)
        ok = write_upstreams(root, state);
    for (size_t i = 0; ok && i < state->count; i++)
        ok = write_bucket(buckets, &state->buckets[i]);
    if (ok)
        return root;
    json_decref(root);
    return NULL;
}

static bool make_directory_of(const char *path)
{
    char *copy = strdup(path);
    bool made = copy && mkdir(dirname(copy), 0700) == 0;
    free(copy);
    return made;
}

int hg_state_save(const struct hg_state *state, const char *path)
{
    json_t *root = write_root(state);
    char *text =
        root ? json_dumps(root, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION(15)) : NULL;
    int rc = text ? hg_file_replace(path, text, strlen(text)) : -ENOMEM;
    if (rc == -ENOENT && make_directory_of(path)) /* without an embedded store nobody made it */
        rc = hg_file_replace(path, text, strlen(text));
    free(text);
    json_decref(root);
    return rc;
}
