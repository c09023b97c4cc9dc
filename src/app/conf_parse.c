// conf_parse - from a YAML tree to a tree of options, with every fault named
// SPDX-License-Identifier: BSD-3-Clause
//
// A mapping is read against its scope's rows; a fault is noted and reading goes on. Rules between
// options are only looked at when the text as such is clean, so that one slip does not bring five
// complaints.
#include "app/conf_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/file.h"
#include "app/yamldoc.h"

#define FILE_MAX_BYTES (1u << 20)

struct walk {
    struct hg_yamldoc doc;
    const char *file;
    struct hg_conf_errors *errs;
    int rc; /* the worst so far: 0, -EINVAL, -ENOMEM */
};

static void fault(struct walk *walk, int rc)
{
    if (rc && walk->rc != -ENOMEM)
        walk->rc = rc;
}

static void parse_mapping(struct walk *walk, const yaml_node_t *node, enum hg_conf_scope scope,
                          void *object);

static void parse_list(struct walk *walk, const struct hg_conf_option *option, void *object,
                       const yaml_node_t *node)
{
    enum hg_conf_scope scope = hg_conf_option_list(option);
    size_t size = hg_conf_scopes[scope].object_size;
    if (!hg_yamldoc_is(&walk->doc, node, YAML_SEQUENCE_NODE, option->name, "a list", walk->errs)) {
        fault(walk, -EINVAL);
        return;
    }
    const yaml_node_item_t *items = node->data.sequence.items.start;
    size_t count = (size_t)(node->data.sequence.items.top - items);
    if (count < option->min || count > option->max) {
        char accepts[256];
        hg_conf_value_accepts(option, accepts, sizeof accepts);
        hg_conf_errors_add(walk->errs, walk->file, hg_yamldoc_line(node),
                           "%zu entries in '%s' (accepted: %s)", count, option->name, accepts);
        fault(walk, -EINVAL);
        return;
    }
    char *array = calloc(count + 1, size);
    if (!array) {
        fault(walk, -ENOMEM);
        return;
    }
    hg_conf_option_array_put(option, object, array, count);
    for (size_t i = 0; i < count; i++) {
        fault(walk, hg_conf_object_init(scope, array + i * size));
        if (walk->rc == -ENOMEM)
            return;
        parse_mapping(walk, hg_yamldoc_node(&walk->doc, items[i]), scope, array + i * size);
    }
}

/* A mapping in place of a list: its only element. */
static void parse_group(struct walk *walk, const struct hg_conf_option *option, void *object,
                        const yaml_node_t *node)
{
    enum hg_conf_scope scope = hg_conf_option_list(option);
    void *element = calloc(1, hg_conf_scopes[scope].object_size);
    if (!element) {
        fault(walk, -ENOMEM);
        return;
    }
    hg_conf_option_array_put(option, object, element, 1);
    fault(walk, hg_conf_object_init(scope, element));
    if (walk->rc != -ENOMEM)
        parse_mapping(walk, node, scope, element);
}

static void parse_value(struct walk *walk, const struct hg_conf_option *option, void *object,
                        const yaml_node_t *node)
{
    struct hg_conf_why why;
    if (hg_conf_option_is_group(option)) {
        parse_group(walk, option, object, node);
        return;
    }
    if (hg_conf_option_list(option) != HG_CONF_SCOPE_COUNT) {
        parse_list(walk, option, object, node);
        return;
    }
    const char *text = hg_yamldoc_text(&walk->doc, node, option->name, walk->errs);
    int rc = text ? hg_conf_value_set(option, object, text, &why) : -EINVAL;
    if (text && rc == -EINVAL)
        hg_conf_errors_add(walk->errs, walk->file, hg_yamldoc_line(node), "%s", why.text);
    fault(walk, rc);
}

static void check_required(struct walk *walk, const yaml_node_t *node, enum hg_conf_scope scope,
                           const void *object)
{
    const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
    for (size_t i = 0; i < info->count; i++) {
        const struct hg_conf_option *option = &info->options[i];
        char accepts[256];
        if (option->default_text || *hg_conf_option_line(scope, option, object))
            continue;
        hg_conf_value_accepts(option, accepts, sizeof accepts);
        hg_conf_errors_add(walk->errs, walk->file, hg_yamldoc_line(node),
                           "%s without '%s' (accepted: %s)", info->noun, option->name, accepts);
        fault(walk, -EINVAL);
    }
}

static void parse_mapping(struct walk *walk, const yaml_node_t *node, enum hg_conf_scope scope,
                          void *object)
{
    char accepts[160] = "a mapping of options";
    if (node->type == YAML_SCALAR_NODE && hg_conf_option_find(scope, "address"))
        snprintf(accepts, sizeof accepts, "a mapping of options: write {address: \"%.100s\"}",
                 (const char *)node->data.scalar.value);
    if (!hg_yamldoc_is(&walk->doc, node, YAML_MAPPING_NODE, hg_conf_scopes[scope].noun, accepts,
                       walk->errs)) {
        fault(walk, -EINVAL);
        return;
    }
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    for (; pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = hg_yamldoc_node(&walk->doc, pair->key);
        const char *name = hg_yamldoc_key(&walk->doc, pair);
        const struct hg_conf_option *option = hg_conf_option_find(scope, name);
        if (!option && !name[0])
            continue;
        if (!option) {
            struct hg_conf_why why;
            hg_conf_option_unknown(scope, name, &why);
            hg_conf_errors_add(walk->errs, walk->file, hg_yamldoc_line(key), "%s", why.text);
            fault(walk, -EINVAL);
            continue;
        }
        unsigned *line = hg_conf_option_line(scope, option, object);
        if (*line) /* repeated, and complained of */
            continue;
        *line = hg_yamldoc_line(key);
        parse_value(walk, option, object, hg_yamldoc_node(&walk->doc, pair->value));
        if (walk->rc == -ENOMEM)
            return;
    }
    check_required(walk, node, scope, object);
}

/* Options that say nothing about this kind of upstream, and ways of naming the servers twice or
 * never. */
static int check_upstream(struct hg_conf_upstream *upstream, const char *file,
                          struct hg_conf_errors *errs)
{
    const struct hg_conf_scope_info *info = &hg_conf_scopes[HG_CONF_SCOPE_UPSTREAM];
    bool is_memcached = upstream->kind == HG_CONF_KIND_MEMCACHED;
    const unsigned *lines = upstream->lines;
    int rc = 0;
    for (size_t i = 0; i < info->count; i++)
        if (lines[i] && (info->options[i].for_kinds & 1u << upstream->kind) == 0) {
            hg_conf_errors_add(
                errs, file, lines[i], "'%s' has no effect on upstream '%s' of kind %s",
                info->options[i].name, upstream->name, hg_conf_kind_name(upstream->kind));
            rc = -EINVAL;
        }
    if (rc || upstream->kind == HG_CONF_KIND_EMBEDDED)
        return rc;
    if (!lines[HG_CONF_UPSTREAM_configuration]) {
        if (upstream->servers_count)
            return 0;
        hg_conf_errors_add(errs, file, lines[HG_CONF_UPSTREAM_name],
                           "no servers for upstream '%s' (accepted: servers%s)", upstream->name,
                           is_memcached ? ", or configuration" : "");
        return -EINVAL;
    }
    static const enum hg_conf_upstream_option doubles[] = {
        HG_CONF_UPSTREAM_servers, HG_CONF_UPSTREAM_ring, HG_CONF_UPSTREAM_hash};
    for (size_t i = 0; i < HG_COUNT_OF(doubles); i++)
        if (lines[doubles[i]]) {
            hg_conf_errors_add(
                errs, file, lines[doubles[i]],
                "'%s' given beside 'configuration' of upstream '%s', which says it too",
                info->options[doubles[i]].name, upstream->name);
            rc = -EINVAL;
        }
    return rc ? rc : hg_conf_ring_parse(upstream, file, errs);
}

static int parse_document(struct hg_conf *conf, const char *text, size_t len, const char *file,
                          struct hg_conf_errors *errs)
{
    struct walk walk = {.file = file, .errs = errs};
    int rc = hg_yamldoc_init(&walk.doc, text, len, file, errs);
    if (rc)
        return rc;
    const yaml_node_t *root = hg_yamldoc_root(&walk.doc);
    if (root)
        parse_mapping(&walk, root, HG_CONF_SCOPE_SERVER, conf);
    fault(&walk, walk.doc.faulty ? -EINVAL : 0);
    hg_yamldoc_fini(&walk.doc);
    return walk.rc;
}

/* Everything after the text: passwords from files, defaults of lists, command line, what follows,
   the rules. */
static int finish(struct hg_conf *conf, const struct hg_conf_overrides *overrides, bool read_files,
                  struct hg_conf_errors *errs)
{
    int rc = 0;
    for (size_t i = 0; i < conf->upstreams_count; i++) {
        int fault = check_upstream(&conf->upstreams[i], conf->file, errs);
        rc = fault ? fault : rc;
    }
    if (!rc && read_files)
        rc = hg_conf_secrets_read(conf, errs);
    if (!rc && read_files)
        rc = hg_conf_uptls_read(conf, errs);
    if (!rc)
        rc = hg_conf_default_lists(conf);
    if (!rc && overrides)
        rc = hg_conf_override(conf, overrides, errs);
    if (!rc)
        rc = hg_conf_resolve(conf, errs);
    return rc ? rc : hg_conf_check(conf, overrides && overrides->insecure, errs);
}

static int parse(const char *text, size_t len, const char *file, bool read_files,
                 const struct hg_conf_overrides *overrides, struct hg_conf **ret,
                 struct hg_conf_errors *errs)
{
    struct hg_conf *conf = hg_conf_new(file);
    int rc = conf ? parse_document(conf, text, len, file, errs) : -ENOMEM;
    if (!rc)
        rc = finish(conf, overrides, read_files, errs);
    if (rc == -ENOMEM)
        hg_conf_errors_add(errs, file[0] ? file : NULL, 0, "out of memory");
    if (rc) {
        hg_conf_free(conf);
        return rc;
    }
    *ret = conf;
    return 0;
}

int hg_conf_parse(const char *text, size_t len, const char *name,
                  const struct hg_conf_overrides *overrides, struct hg_conf **ret,
                  struct hg_conf_errors *errs)
{
    if (len > FILE_MAX_BYTES) {
        hg_conf_errors_add(errs, name, 0, "configuration of %zu bytes (accepted: up to %u)", len,
                           FILE_MAX_BYTES);
        return -EINVAL;
    }
    return parse(text, len, name, false, overrides, ret, errs);
}

int hg_conf_load(const char *path, const struct hg_conf_overrides *overrides, struct hg_conf **ret,
                 struct hg_conf_errors *errs)
{
    char *text;
    size_t len;
    if (!path)
        return parse("", 0, "", false, overrides, ret, errs);
    int rc = hg_file_read(path, FILE_MAX_BYTES, &text, &len);
    if (rc) {
        hg_conf_errors_add(errs, NULL, 0, "cannot read '%s': %s", path, strerror(-rc));
        return rc;
    }
    rc = parse(text, len, path, true, overrides, ret, errs);
    free(text);
    return rc;
}
