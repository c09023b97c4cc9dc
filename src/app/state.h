// state - settings made by opcode, kept over a restart, merged over the configuration file
// SPDX-License-Identifier: BSD-3-Clause
//
// A struct hg_state is what was set by opcode and nothing else. To change something: clone, set,
// check by hg_state_apply, save, and only then use the new pair; if saving fails, answer 0x84 and
// free the clone. hg_state_apply makes the effective settings: a struct hg_conf of its own in which
// the state wins over the file. The state file is JSON, replaced atomically. One thread at a time
// (housekeeping).
#ifndef HG_APP_STATE_H
#define HG_APP_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "app/conf.h"
#include "base/span.h"

struct hg_state;
struct hg_conf_option;
struct hg_conf_why;

/* A setting of opcode 2a or 2c: absent leaves what was, otherwise a number, HG_CONF_UNLIMITED or
 * the default. */
enum hg_state_mark { HG_STATE_ABSENT, HG_STATE_DEFAULT, HG_STATE_VALUE };
struct hg_state_units {
    enum hg_state_mark mark;
    uint64_t value; /* HG_STATE_VALUE: units/s or HG_CONF_UNLIMITED */
};

struct hg_state_node {
    struct hg_state_units capacity;
    struct hg_state_units default_reserved;
    struct hg_state_units default_hard_limit;
};

/* For hg_state_set_throttle: absent counts as the default (a missing key of opcode 2a). */
struct hg_state_throttle {
    struct hg_state_units reserved;
    struct hg_state_units hard_limit;
};

/* An empty state, NULL when memory is out. */
struct hg_state *hg_state_new(void);
struct hg_state *hg_state_clone(const struct hg_state *state);
void hg_state_free(struct hg_state *state);

/* Reads a file; one that does not exist is an empty state. 0, or -errno with one line in errs that
   names the file: the start must stop then. */
HG_MUST_USE int hg_state_load(const char *path, struct hg_state **ret, struct hg_conf_errors *errs);
HG_MUST_USE int hg_state_parse(const char *text, size_t len, const char *name,
                               struct hg_state **ret, struct hg_conf_errors *errs);
/* Replaces the file: temporary file, fsync, rename, fsync of the directory. 0 or -errno; on failure
   the old file is whole. A directory that is missing is made, if its parent is there. */
HG_MUST_USE int hg_state_save(const struct hg_state *state, const char *path);

/* The setters: 0, -ENOMEM, or -ENOENT for a bucket that was deleted. */
/* Opcode 2c: what is absent stays as it was. HG_STATE_DEFAULT: back to the file's. */
HG_MUST_USE int hg_state_set_node(struct hg_state *state, const struct hg_state_node *node);
/* Opcode 2a. */
HG_MUST_USE int hg_state_set_throttle(struct hg_state *state, struct hg_span bucket,
                                      const struct hg_state_throttle *throttle);
/* SetParam, of a tenant's option in text as the file has it; "" means back to the file's. -EINVAL
   with *why: the option cannot be set so, or not to that. */
HG_MUST_USE int hg_state_set_option(struct hg_state *state, struct hg_span bucket,
                                    const char *option, const char *text, struct hg_conf_why *why);
/* The same of an option of an upstream, and of the node; no limits are among these. */
HG_MUST_USE int hg_state_set_upstream_option(struct hg_state *state, struct hg_span upstream,
                                             const char *option, const char *text,
                                             struct hg_conf_why *why);
HG_MUST_USE int hg_state_set_node_option(struct hg_state *state, const char *option,
                                         const char *text, struct hg_conf_why *why);
bool hg_state_sets_node_option(const char *option);
void hg_state_list_node_options(char *ret, size_t size);
/* The options of a tenant that can be set so, comma-separated with `head` in front of each. */
void hg_state_list_options(const char *head, char *ret, size_t size);
/* Opcode 2b. */
HG_MUST_USE int hg_state_set_data_limit(struct hg_state *state, struct hg_span bucket,
                                        uint16_t status);
/* Opcode 85: settings as hg_adminjson_decode_bucket made them, copied. What was set for an older
   bucket of that name is forgotten. conf is the file's, without the state: where it has one
   upstream and the settings name none, that one is written down. */
HG_MUST_USE int hg_state_create_bucket(struct hg_state *state, const struct hg_conf *conf,
                                       const struct hg_conf_tenant *settings);
/* Opcode 86: forgets what was set for it, and keeps a bucket of the file (conf, without the state)
   deleted over restarts. */
HG_MUST_USE int hg_state_delete_bucket(struct hg_state *state, const struct hg_conf *conf,
                                       struct hg_span bucket);
/* Back to the file's. All of the node's settings, or everything that was set for a bucket. */
void hg_state_unset_node(struct hg_state *state);
void hg_state_unset_bucket(struct hg_state *state, struct hg_span bucket);

/* Merges: *ret is a new tree, to be freed by hg_conf_free. 0, -ENOMEM, or -EINVAL with lines in
   errs when the merged settings break a rule (reserved > hard_limit, ...). Warnings tell of lines
   of the file that are overridden and of buckets whose upstream is gone. */
HG_MUST_USE int hg_state_apply(const struct hg_conf *conf, const struct hg_state *state,
                               struct hg_conf **ret, struct hg_conf_errors *errs);

#endif
