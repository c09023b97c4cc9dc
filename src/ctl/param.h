// param - what set and unset share: options that can be changed while the server runs
// SPDX-License-Identifier: BSD-3-Clause
//
// Limits of credits have opcodes of their own; all others go by SetParam, one by one, as text. What
// a value may be is the server's to say.
#ifndef HG_CTL_PARAM_H
#define HG_CTL_PARAM_H

#include "ctl/command.h"

#define HG_CTL_PATH_BYTES 200  /* of SetParam */
#define HG_CTL_PARAMS_MAX 32   /* options of one thing that go by it */
#define HG_CTL_LIST_BYTES 1000 /* of their names */

/* Limits of the node. */
struct hg_ctl_node_option {
    const char *name, *key; /* as typed; of the JSON */
    const char *path;       /* of SetParam */
};
enum { HG_CTL_NODE_OPTIONS = 4 };
extern const struct hg_ctl_node_option hg_ctl_node_options[HG_CTL_NODE_OPTIONS];
/* Whether the row is one more name of what is in the row before it. */
bool hg_ctl_is_other_name(size_t row);
/* NULL, and said so, when the node has no such option. */
const struct hg_ctl_node_option *hg_ctl_find_node_option(const char *name);

/* Limits of a bucket. */
enum { HG_CTL_RESERVED, HG_CTL_HARD_LIMIT, HG_CTL_UNITS };
extern const char *const hg_ctl_unit_names[HG_CTL_UNITS];

/* Names of what goes by SetParam. */
enum { HG_CTL_NODE_PARAMS = 19, HG_CTL_UPSTREAM_PARAMS = 29, HG_CTL_BUCKET_PARAMS = 12 };
extern const char *const hg_ctl_node_params[HG_CTL_NODE_PARAMS];
extern const char *const hg_ctl_upstream_params[HG_CTL_UPSTREAM_PARAMS];
extern const char *const hg_ctl_bucket_params[HG_CTL_BUCKET_PARAMS];
bool hg_ctl_has_name(const char *const *names, size_t count, const char *name);
/* Exit codes, with the names that there are said. */
int hg_ctl_say_no_upstream_option(const char *name);
int hg_ctl_say_no_bucket_option(const char *name, const char *verb);

/* All of them on standard output, each with what it accepts if `with_values`: the help of set and
   unset. */
void hg_ctl_print_params(bool with_values);

/* What was given for each of a list of names. */
struct hg_ctl_params {
    const char *const *names;
    size_t count;
    const char *values[HG_CTL_PARAMS_MAX]; /* NULL: not given */
};
/* Takes a value if the name is one of them: true; *ret_code is what to make of it. */
HG_MUST_USE bool hg_ctl_take_param(struct hg_ctl_params *params, const char *name,
                                   const char *value, int *ret_code);
/* Each goes by itself, so one that is refused leaves those before it set: their names come behind
   what `set` has. `head` is what stands before the name in the path. An exit code. */
HG_MUST_USE int hg_ctl_send_params(struct hg_ctl *ctl, const char *what, const char *head,
                                   const struct hg_ctl_params *params, char *set, size_t room);
/* One more name in a list of what was set. */
void hg_ctl_note(char *set, size_t room, const char *name);
/* Says so, if something failed after something was set; the code again. */
HG_MUST_USE int hg_ctl_say_what_stays(int code, const char *what, const char *set);

HG_MUST_USE int hg_ctl_send_data_limit(struct hg_ctl *ctl, const char *verb, const char *bucket,
                                       uint16_t status);
/* The name behind "upstream"; NULL, and said so, when there is none. */
const char *hg_ctl_upstream_name(const struct hg_ctl *ctl, const char *verb);
/* What the server says of the bucket now; NULL, and said so with `verb`, when it does not. */
json_t *hg_ctl_details_of(struct hg_ctl *ctl, const char *verb, const char *bucket, int *ret_code);

#endif
