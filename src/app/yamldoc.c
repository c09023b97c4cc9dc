// yamldoc - YAML without its surprises: one document, no aliases, no tags, no repeated keys
// SPDX-License-Identifier: BSD-3-Clause
//
// Two passes: over the events, where aliases, tags and a second document still show (the tree has
// them resolved away), and over the tree, for its keys.
#include "app/yamldoc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 8

static unsigned line_of_offset(const char *text, size_t len, size_t offset)
{
    unsigned line = 1;
    for (size_t i = 0; i < offset && i < len; i++)
        line += text[i] == '\n';
    return line;
}

static int parser_fault(const yaml_parser_t *parser, const char *text, size_t len, const char *file,
                        struct hg_conf_errors *errs)
{
    if (parser->error == YAML_MEMORY_ERROR) {
        hg_conf_errors_add(errs, file, 0, "out of memory");
        return -ENOMEM;
    }
    /* The reader (encoding) knows an offset only, the scanner and the parser a line. */
    unsigned line = parser->error == YAML_READER_ERROR
                        ? line_of_offset(text, len, parser->problem_offset)
                        : (unsigned)parser->problem_mark.line + 1;
    hg_conf_errors_add(errs, file, line, "not YAML: %s%s%s",
                       parser->problem ? parser->problem : "unknown fault",
                       parser->context ? " " : "", parser->context ? parser->context : "");
    return -EINVAL;
}

static const char *anchor_or_tag(const yaml_event_t *event, bool *ret_is_tag)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    *ret_is_tag = !anchor;
    return (const char *)(anchor ? anchor : tag);
}

/* Counts documents and depth over the events; adds an error for what is not accepted. */
static void check_event(const yaml_event_t *event, unsigned *documents, unsigned *depth,
                        const char *file, struct hg_conf_errors *errs)
{
    unsigned line = (unsigned)event->start_mark.line + 1;
    bool is_tag;
    const char *mark = anchor_or_tag(event, &is_tag);
    if (mark)
        hg_conf_errors_add(errs, file, line, "%s '%.80s' (accepted: plain values)",
                           is_tag ? "tag" : "anchor", mark);
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (++*documents == 2)
            hg_conf_errors_add(errs, file, line, "second document '---' (accepted: one document)");
        break;
    case YAML_ALIAS_EVENT:
        hg_conf_errors_add(errs, file, line, "alias '*%.80s' (accepted: the value written out)",
                           (const char *)event->data.alias.anchor);
        break;
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        if (++*depth == DEPTH_MAX + 1)
            hg_conf_errors_add(errs, file, line, "nested too deeply (accepted: %d levels)",
                               DEPTH_MAX);
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        --*depth;
        break;
    default:
        break;
    }
}

static int check_events(const char *text, size_t len, const char *file, struct hg_conf_errors *errs)
{
    yaml_parser_t parser;
    unsigned documents = 0, depth = 0;
    size_t before = errs->error_count + errs->errors_left_out;
    int rc = 0;
    bool ended = false;
    if (!yaml_parser_initialize(&parser)) {
        hg_conf_errors_add(errs, file, 0, "out of memory");
        return -ENOMEM;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    /* Too deep is fatal at once: what follows may be deeper than memory. */
    while (!ended && !rc) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            rc = parser_fault(&parser, text, len, file, errs);
            break;
        }
        check_event(&event, &documents, &depth, file, errs);
        ended = event.type == YAML_STREAM_END_EVENT || depth > DEPTH_MAX;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    if (rc)
        return rc;
    return errs->error_count + errs->errors_left_out > before ? -EINVAL : 0;
}

static int compare_keys(const void *a, const void *b)
{
    const yaml_node_t *left = *(yaml_node_t *const *)a, *right = *(yaml_node_t *const *)b;
    int order =
        strcmp((const char *)left->data.scalar.value, (const char *)right->data.scalar.value);
    if (order)
        return order;
    return (left->start_mark.index > right->start_mark.index) -
           (left->start_mark.index < right->start_mark.index);
}

/* Keys are texts, and each stands once. */
static int check_keys(struct hg_yamldoc *doc, const yaml_node_t *mapping,
                      struct hg_conf_errors *errs)
{
    const yaml_node_pair_t *start = mapping->data.mapping.pairs.start;
    size_t count = (size_t)(mapping->data.mapping.pairs.top - start), used = 0;
    yaml_node_t **keys = calloc(count + 1, sizeof *keys);
    if (!keys) {
        hg_conf_errors_add(errs, doc->file, 0, "out of memory");
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        yaml_node_t *key = hg_yamldoc_node(doc, start[i].key);
        const char *text = hg_yamldoc_text(doc, key, "a key", errs);
        if (text && text[0]) {
            keys[used++] = key;
            continue;
        }
        if (text)
            hg_conf_errors_add(errs, doc->file, hg_yamldoc_line(key),
                               "empty key '' (accepted: a name)");
        doc->faulty = true;
    }
    qsort(keys, used, sizeof *keys, compare_keys);
    for (size_t i = 1; i < used; i++) {
        const char *name = (const char *)keys[i]->data.scalar.value;
        if (strcmp((const char *)keys[i - 1]->data.scalar.value, name) != 0)
            continue;
        hg_conf_errors_add(errs, doc->file, hg_yamldoc_line(keys[i]),
                           "repeated key '%.80s' (accepted: once, and it is in line %u)", name,
                           hg_yamldoc_line(keys[i - 1]));
        doc->faulty = true;
    }
    free(keys);
    return 0;
}

int hg_yamldoc_init(struct hg_yamldoc *doc, const char *text, size_t len, const char *file,
                    struct hg_conf_errors *errs)
{
    yaml_parser_t parser;
    int rc = check_events(text, len, file, errs);
    if (rc)
        return rc;
    if (!yaml_parser_initialize(&parser)) {
        hg_conf_errors_add(errs, file, 0, "out of memory");
        return -ENOMEM;
    }
    doc->file = file;
    doc->faulty = false;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    if (!yaml_parser_load(&parser, &doc->document))
        rc = parser_fault(&parser, text, len, file, errs);
    yaml_parser_delete(&parser);
    if (rc)
        return rc;
    for (const yaml_node_t *node = doc->document.nodes.start; node < doc->document.nodes.top;
         node++)
        if (node->type == YAML_MAPPING_NODE && !rc)
            rc = check_keys(doc, node, errs);
    if (rc)
        hg_yamldoc_fini(doc);
    return rc;
}

void hg_yamldoc_fini(struct hg_yamldoc *doc)
{
    yaml_document_delete(&doc->document);
}

yaml_node_t *hg_yamldoc_node(struct hg_yamldoc *doc, int index)
{
    return yaml_document_get_node(&doc->document, index);
}

const char *hg_yamldoc_key(struct hg_yamldoc *doc, const yaml_node_pair_t *pair)
{
    const yaml_node_t *key = hg_yamldoc_node(doc, pair->key);
    return key->type == YAML_SCALAR_NODE ? (const char *)key->data.scalar.value : "";
}

unsigned hg_yamldoc_line(const yaml_node_t *node)
{
    return (unsigned)node->start_mark.line + 1;
}

static bool means_nothing(const yaml_node_t *node)
{
    static const char *const nothings[] = {"", "~", "null", "Null", "NULL"};
    if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (size_t i = 0; i < HG_COUNT_OF(nothings); i++)
        if (strcmp((const char *)node->data.scalar.value, nothings[i]) == 0)
            return true;
    return false;
}

yaml_node_t *hg_yamldoc_root(struct hg_yamldoc *doc)
{
    yaml_node_t *root = yaml_document_get_root_node(&doc->document);
    return root && root->type == YAML_SCALAR_NODE && means_nothing(root) ? NULL : root;
}

const char *hg_yamldoc_text(struct hg_yamldoc *doc, const yaml_node_t *node, const char *subject,
                            struct hg_conf_errors *errs)
{
    if (!hg_yamldoc_is(doc, node, YAML_SCALAR_NODE, subject, "a single value", errs))
        return NULL;
    const char *text = (const char *)node->data.scalar.value;
    if (strlen(text) != node->data.scalar.length) {
        hg_conf_errors_add(errs, doc->file, hg_yamldoc_line(node), "zero byte in '%.80s'", subject);
        return NULL;
    }
    if (means_nothing(node)) {
        hg_conf_errors_add(errs, doc->file, hg_yamldoc_line(node),
                           "no value for '%.80s' (accepted: a value, or the line left out)",
                           subject);
        return NULL;
    }
    return text;
}

bool hg_yamldoc_is(struct hg_yamldoc *doc, const yaml_node_t *node, yaml_node_type_t type,
                   const char *subject, const char *accepts, struct hg_conf_errors *errs)
{
    static const char *const nouns[] = {"nothing", "a value", "a list", "a mapping"};
    if (node->type == type)
        return true;
    hg_conf_errors_add(errs, doc->file, hg_yamldoc_line(node),
                       "%s given for '%.80s' (accepted: %s)", nouns[node->type], subject, accepts);
    return false;
}
