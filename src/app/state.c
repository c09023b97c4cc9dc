// state - settings made by opcode: keeping and changing them
// SPDX-License-Identifier: BSD-3-Clause
#include "app/state_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/adminjson.h"
#include "app/conf_build.h"
#include "app/conf_table.h"

struct hg_state *hg_state_new(void)
{
    return calloc(1, sizeof(struct hg_state));
}

static const struct hg_conf_option *option_at(size_t index)
{
    return &hg_conf_scopes[HG_CONF_SCOPE_TENANT].options[index];
}

static void entry_fini(struct hg_state_bucket *entry)
{
    hg_state_drop_texts(HG_CONF_SCOPE_TENANT, entry->texts);
    free(entry->name);
    hg_adminjson_free_bucket(entry->created);
}

static void upstream_fini(struct hg_state_upstream *upstream)
{
    hg_state_drop_texts(HG_CONF_SCOPE_UPSTREAM, upstream->texts);
    free(upstream->name);
}

void hg_state_free(struct hg_state *state)
{
    if (!state)
        return;
    for (size_t i = 0; i < state->count; i++)
        entry_fini(&state->buckets[i]);
    for (size_t i = 0; i < state->upstream_count; i++)
        upstream_fini(&state->upstreams[i]);
    hg_state_drop_texts(HG_CONF_SCOPE_SERVER, state->texts);
    free(state->upstreams);
    free(state->buckets);
    free(state);
}

struct hg_conf_tenant *hg_state_copy_settings(const struct hg_conf_tenant *settings)
{
    struct hg_conf_tenant *copy = calloc(1, sizeof *copy);
    if (!copy)
        return NULL;
    if (hg_conf_object_copy(HG_CONF_SCOPE_TENANT, settings, copy) != 0) {
        hg_adminjson_free_bucket(copy);
        return NULL;
    }
    copy->by_opcode = true;
    return copy;
}

static bool copy_upstreams(const struct hg_state *from, struct hg_state *to)
{
    for (size_t i = 0; i < from->upstream_count; i++) {
        const struct hg_state_upstream *upstream = &from->upstreams[i];
        char **texts = hg_state_upstream_texts(to, upstream->name, strlen(upstream->name));
        if (!texts || !hg_state_copy_texts(HG_CONF_SCOPE_UPSTREAM, upstream->texts, texts))
            return false;
    }
    return hg_state_copy_texts(HG_CONF_SCOPE_SERVER, from->texts, to->texts);
}

struct hg_state *hg_state_clone(const struct hg_state *state)
{
    struct hg_state *copy = hg_state_new();
    if (!copy)
        return NULL;
    copy->node = state->node;
    if (!copy_upstreams(state, copy)) {
        hg_state_free(copy);
        return NULL;
    }
    for (size_t i = 0; i < state->count; i++) {
        const struct hg_state_bucket *from = &state->buckets[i];
        struct hg_state_bucket *to = hg_state_entry(copy, from->name, strlen(from->name));
        if (to) {
            to->has_throttle = from->has_throttle;
            to->deleted = from->deleted;
            to->data_limit = from->data_limit;
            to->throttle = from->throttle;
        }
        if (!to || !hg_state_copy_texts(HG_CONF_SCOPE_TENANT, from->texts, to->texts) ||
            (from->created && !(to->created = hg_state_copy_settings(from->created)))) {
            hg_state_free(copy);
            return NULL;
        }
    }
    return copy;
}

struct hg_state_bucket *hg_state_find(const struct hg_state *state, const char *name, size_t len)
{
    for (size_t i = 0; i < state->count; i++)
        if (strlen(state->buckets[i].name) == len && memcmp(state->buckets[i].name, name, len) == 0)
            return &state->buckets[i];
    return NULL;
}

struct hg_state_bucket *hg_state_entry(struct hg_state *state, const char *name, size_t len)
{
    struct hg_state_bucket *entry = hg_state_find(state, name, len);
    if (entry)
        return entry;
    if (state->count == state->room) {
        size_t room = state->room ? state->room * 2 : 8;
        void *more = reallocarray(state->buckets, room, sizeof *state->buckets);
        if (!more)
            return NULL;
        state->buckets = more;
        state->room = room;
    }
    entry = &state->buckets[state->count];
    *entry = (struct hg_state_bucket){.name = strndup(name, len)};
    if (!entry->name)
        return NULL;
    state->count++;
    return entry;
}

/* Takes an entry out if it says nothing any more. */
static void drop_if_empty(struct hg_state *state, struct hg_state_bucket *entry)
{
    if (entry->has_throttle || entry->deleted || entry->data_limit || entry->created ||
        hg_state_has_texts(HG_CONF_SCOPE_TENANT, entry->texts))
        return;
    entry_fini(entry);
    *entry = state->buckets[--state->count];
}

static void set_units(struct hg_state_units *to, struct hg_state_units from)
{
    if (from.mark == HG_STATE_DEFAULT)
        *to = (struct hg_state_units){HG_STATE_ABSENT, 0};
    else if (from.mark == HG_STATE_VALUE)
        *to = from;
}

int hg_state_set_node(struct hg_state *state, const struct hg_state_node *node)
{
    set_units(&state->node.capacity, node->capacity);
    set_units(&state->node.default_reserved, node->default_reserved);
    set_units(&state->node.default_hard_limit, node->default_hard_limit);
    return 0;
}

static struct hg_state_units or_default(struct hg_state_units units)
{
    return units.mark == HG_STATE_VALUE ? units : (struct hg_state_units){HG_STATE_DEFAULT, 0};
}

int hg_state_set_throttle(struct hg_state *state, struct hg_span bucket,
                          const struct hg_state_throttle *throttle)
{
    struct hg_state_bucket *entry = hg_state_entry(state, (const char *)bucket.at, bucket.len);
    if (!entry)
        return -ENOMEM;
    if (entry->deleted)
        return -ENOENT;
    entry->has_throttle = true;
    entry->throttle.reserved = or_default(throttle->reserved);
    entry->throttle.hard_limit = or_default(throttle->hard_limit);
    return 0;
}

/* A limit by itself: the other one stays as it was. */
static int set_limit(struct hg_state *state, struct hg_state_bucket *entry, size_t index,
                     const char *text, struct hg_conf_why *why)
{
    struct hg_state_units units = {text[0] ? HG_STATE_VALUE : HG_STATE_ABSENT, 0};
    struct hg_conf_option option = *option_at(index);
    option.offset = offsetof(struct hg_state_units, value);
    int rc = text[0] ? hg_conf_value_set(&option, &units, text, why) : 0;
    if (rc)
        return rc;
    if (!entry->has_throttle)
        entry->throttle = (struct hg_state_throttle){{HG_STATE_ABSENT, 0}, {HG_STATE_ABSENT, 0}};
    if (index == HG_CONF_TENANT_reserved)
        entry->throttle.reserved = units;
    else
        entry->throttle.hard_limit = units;
    entry->has_throttle = entry->throttle.reserved.mark != HG_STATE_ABSENT ||
                          entry->throttle.hard_limit.mark != HG_STATE_ABSENT;
    drop_if_empty(state, entry);
    return 0;
}

int hg_state_set_option(struct hg_state *state, struct hg_span bucket, const char *option,
                        const char *text, struct hg_conf_why *why)
{
    const struct hg_conf_option *found = hg_conf_option_find(HG_CONF_SCOPE_TENANT, option);
    size_t index = found ? (size_t)(found - option_at(0)) : HG_CONF_TENANT_COUNT;
    bool limit = index == HG_CONF_TENANT_reserved || index == HG_CONF_TENANT_hard_limit;
    if (!limit && !hg_state_keeps_text(HG_CONF_SCOPE_TENANT, index)) {
        char list[400];
        hg_state_list_options("", list, sizeof list);
        snprintf(why->text, sizeof why->text,
                 "this option of a tenant cannot be set at run time (accepted: %s)", list);
        return -EINVAL;
    }
    struct hg_state_bucket *entry = hg_state_entry(state, (const char *)bucket.at, bucket.len);
    if (!entry)
        return -ENOMEM;
    if (entry->deleted)
        return -ENOENT;
    if (limit)
        return set_limit(state, entry, index, text, why);
    int rc = hg_state_set_text(HG_CONF_SCOPE_TENANT, entry->texts, index, text, why);
    if (!rc)
        drop_if_empty(state, entry);
    return rc;
}

static int refuse_option(enum hg_conf_scope scope, const char *of, struct hg_conf_why *why)
{
    char list[1000];
    hg_state_list_texts(scope, "", list, sizeof list);
    snprintf(why->text, sizeof why->text, "this option%s cannot be set at run time (accepted: %s)",
             of, list);
    return -EINVAL;
}

int hg_state_set_upstream_option(struct hg_state *state, struct hg_span upstream,
                                 const char *option, const char *text, struct hg_conf_why *why)
{
    size_t index = hg_state_find_text(HG_CONF_SCOPE_UPSTREAM, option);
    if (index == HG_CONF_UPSTREAM_COUNT)
        return refuse_option(HG_CONF_SCOPE_UPSTREAM, " of an upstream", why);
    char **texts = hg_state_upstream_texts(state, (const char *)upstream.at, upstream.len);
    if (!texts)
        return -ENOMEM;
    int rc = hg_state_set_text(HG_CONF_SCOPE_UPSTREAM, texts, index, text, why);
    if (!hg_state_has_texts(HG_CONF_SCOPE_UPSTREAM, texts)) {
        struct hg_state_upstream *entry = HG_CONTAINER_OF((char *(*)[HG_CONF_UPSTREAM_COUNT])texts,
                                                          struct hg_state_upstream, texts);
        upstream_fini(entry);
        *entry = state->upstreams[--state->upstream_count];
    }
    return rc;
}

int hg_state_set_node_option(struct hg_state *state, const char *option, const char *text,
                             struct hg_conf_why *why)
{
    size_t index = hg_state_find_text(HG_CONF_SCOPE_SERVER, option);
    if (index == HG_CONF_SERVER_COUNT)
        return refuse_option(HG_CONF_SCOPE_SERVER, "", why);
    return hg_state_set_text(HG_CONF_SCOPE_SERVER, state->texts, index, text, why);
}

bool hg_state_sets_node_option(const char *option)
{
    return hg_state_find_text(HG_CONF_SCOPE_SERVER, option) != HG_CONF_SERVER_COUNT;
}

void hg_state_list_node_options(char *ret, size_t size)
{
    hg_state_list_texts(HG_CONF_SCOPE_SERVER, "", ret, size);
}

void hg_state_list_options(const char *head, char *ret, size_t size)
{
    size_t at = (size_t)snprintf(ret, size, "%sreserved, %shard_limit, ", head, head);
    if (at < size)
        hg_state_list_texts(HG_CONF_SCOPE_TENANT, head, ret + at, size - at);
}

int hg_state_set_data_limit(struct hg_state *state, struct hg_span bucket, uint16_t status)
{
    struct hg_state_bucket *entry = hg_state_entry(state, (const char *)bucket.at, bucket.len);
    if (!entry)
        return -ENOMEM;
    if (entry->deleted)
        return -ENOENT;
    entry->data_limit = status;
    drop_if_empty(state, entry);
    return 0;
}

int hg_state_create_bucket(struct hg_state *state, const struct hg_conf *conf,
                           const struct hg_conf_tenant *settings)
{
    struct hg_conf_tenant *created = hg_state_copy_settings(settings);
    if (!created)
        return -ENOMEM;
    if (!created->upstream[0] && conf->upstreams_count == 1) {
        char *upstream = strdup(conf->upstreams[0].name);
        if (!upstream) {
            hg_adminjson_free_bucket(created);
            return -ENOMEM;
        }
        free(created->upstream);
        created->upstream = upstream;
        created->lines[HG_CONF_TENANT_upstream] = HG_CONF_BY_OPCODE;
    }
    struct hg_state_bucket *entry = hg_state_entry(state, settings->name, strlen(settings->name));
    if (!entry) {
        hg_adminjson_free_bucket(created);
        return -ENOMEM;
    }
    hg_adminjson_free_bucket(entry->created);
    entry->created = created;
    hg_state_drop_texts(HG_CONF_SCOPE_TENANT, entry->texts);
    entry->has_throttle = false;
    entry->data_limit = 0;
    entry->deleted = false;
    return 0;
}

int hg_state_delete_bucket(struct hg_state *state, const struct hg_conf *conf,
                           struct hg_span bucket)
{
    struct hg_state_bucket *entry = hg_state_entry(state, (const char *)bucket.at, bucket.len);
    if (!entry)
        return -ENOMEM;
    hg_adminjson_free_bucket(entry->created);
    entry->created = NULL;
    hg_state_drop_texts(HG_CONF_SCOPE_TENANT, entry->texts);
    entry->has_throttle = false;
    entry->data_limit = 0;
    entry->deleted = hg_conf_tenant_find(conf, (const char *)bucket.at, bucket.len) != NULL;
    drop_if_empty(state, entry);
    return 0;
}

void hg_state_unset_node(struct hg_state *state)
{
    hg_state_drop_texts(HG_CONF_SCOPE_SERVER, state->texts);
    state->node =
        (struct hg_state_node){{HG_STATE_ABSENT, 0}, {HG_STATE_ABSENT, 0}, {HG_STATE_ABSENT, 0}};
}

void hg_state_unset_bucket(struct hg_state *state, struct hg_span bucket)
{
    struct hg_state_bucket *entry = hg_state_find(state, (const char *)bucket.at, bucket.len);
    if (!entry)
        return;
    hg_state_drop_texts(HG_CONF_SCOPE_TENANT, entry->texts);
    entry->has_throttle = false;
    entry->deleted = false;
    entry->data_limit = 0;
    drop_if_empty(state, entry);
}
