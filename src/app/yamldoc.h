// yamldoc - YAML without its surprises: one document, no aliases, no tags, no repeated keys
// SPDX-License-Identifier: BSD-3-Clause
//
// libyaml builds the tree and knows the lines; what it lets pass and we do not is found here, so
// that who walks the tree can trust it: keys are texts, unique in their mapping, and nesting is
// shallow. Not thread-safe.
#ifndef HG_APP_YAMLDOC_H
#define HG_APP_YAMLDOC_H

#include <stdbool.h>
#include <yaml.h>

#include "app/conf_errors.h"
#include "base/attr.h"

struct hg_yamldoc {
    yaml_document_t document;
    const char *file; /* for messages; the caller's */
    bool faulty; /* a key was repeated or is no text: reading may go on to find more, but must fail
                  */
};

/* 0, -EINVAL with lines in errs, or -ENOMEM with one. fini only after 0. */
HG_MUST_USE int hg_yamldoc_init(struct hg_yamldoc *doc, const char *text, size_t len,
                                const char *file, struct hg_conf_errors *errs);
void hg_yamldoc_fini(struct hg_yamldoc *doc);

/* The text of a key; "" for one that is no text (it was complained of, so faulty is set). */
const char *hg_yamldoc_key(struct hg_yamldoc *doc, const yaml_node_pair_t *pair);

/* NULL for a file that says nothing. */
yaml_node_t *hg_yamldoc_root(struct hg_yamldoc *doc);
yaml_node_t *hg_yamldoc_node(struct hg_yamldoc *doc, int index);
unsigned hg_yamldoc_line(const yaml_node_t *node);

/* The text of a scalar; NULL with an error about `subject` for anything else: a list, a mapping,
   nothing (an empty value, null, ~), or a text with a zero byte. */
const char *hg_yamldoc_text(struct hg_yamldoc *doc, const yaml_node_t *node, const char *subject,
                            struct hg_conf_errors *errs);
/* Whether the node is of the kind, with an error about `subject` if not; accepts says what is
 * right. */
bool hg_yamldoc_is(struct hg_yamldoc *doc, const yaml_node_t *node, yaml_node_type_t type,
                   const char *subject, const char *accepts, struct hg_conf_errors *errs);

#endif
