// state_build - the inside of a state; for state*.c only
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_APP_STATE_BUILD_H
#define HG_APP_STATE_BUILD_H

#include <jansson.h>

#include "app/conf_table.h"
#include "app/state.h"

/* What was set for one bucket. An entry that says nothing is taken out. */
struct hg_state_bucket {
    char *name;
    bool has_throttle;
    bool deleted; /* a bucket of the file that stays deleted */
    uint16_t data_limit;
    struct hg_state_throttle throttle; /* HG_STATE_ABSENT: as the file has it */
    char *texts[HG_CONF_TENANT_COUNT]; /* other options, as text; NULL: as the file has it */
    struct hg_conf_tenant *created;    /* or NULL; its own */
};

/* What was set for one upstream; at least one text. */
struct hg_state_upstream {
    char *name;
    char *texts[HG_CONF_UPSTREAM_COUNT];
};

struct hg_state {
    struct hg_state_node node;         /* marks HG_STATE_ABSENT or HG_STATE_VALUE */
    char *texts[HG_CONF_SERVER_COUNT]; /* the node's other options */
    struct hg_state_upstream *upstreams;
    size_t upstream_count;
    struct hg_state_bucket *buckets;
    size_t count;
    size_t room;
};

/* ---- options that are kept as text, of a scope: server, upstream or tenant (state_texts.c) ----
 */

/* Is the option of that number among them? */
bool hg_state_keeps_text(enum hg_conf_scope scope, size_t option);
/* Their names, comma-separated with `head` in front of each. */
void hg_state_list_texts(enum hg_conf_scope scope, const char *head, char *ret, size_t size);
/* The index of an option of that name that is kept; the scope's count: there is none. */
size_t hg_state_find_text(enum hg_conf_scope scope, const char *option);
/* `texts` has one place for each option of the scope. Takes a value that is right; "": none any
   more. 0, -EINVAL with *why, -ENOMEM. */
HG_MUST_USE int hg_state_set_text(enum hg_conf_scope scope, char **texts, size_t option,
                                  const char *text, struct hg_conf_why *why);
bool hg_state_has_texts(enum hg_conf_scope scope, char *const *texts);
void hg_state_drop_texts(enum hg_conf_scope scope, char **texts);
/* To places that are empty; false when memory is out. */
HG_MUST_USE bool hg_state_copy_texts(enum hg_conf_scope scope, char *const *from, char **to);
/* From an object of JSON, each as its type is written there. 0, -EINVAL with *why, -ENOMEM. */
HG_MUST_USE int hg_state_read_texts(enum hg_conf_scope scope, const json_t *object,
                                    const char *what, char **texts, struct hg_conf_why *why);
/* As an object; NULL when memory is out. */
json_t *hg_state_write_texts(enum hg_conf_scope scope, char *const *texts);
/* Puts them into an object of the scope, which `whose` names: " of tenant 'shop'", or "". */
HG_MUST_USE int hg_state_apply_texts(const struct hg_conf *conf, enum hg_conf_scope scope,
                                     void *object, const char *whose, char *const *texts,
                                     struct hg_conf_errors *errs);

/* The upstream's texts, made if there are none; NULL when memory is out. */
char **hg_state_upstream_texts(struct hg_state *state, const char *name, size_t len);

/* The entry of a name, or NULL. */
struct hg_state_bucket *hg_state_find(const struct hg_state *state, const char *name, size_t len);
/* The entry of a name, made if there is none; NULL when memory is out. */
struct hg_state_bucket *hg_state_entry(struct hg_state *state, const char *name, size_t len);
/* A copy of the settings of a tenant, NULL when memory is out; free by hg_adminjson_free_bucket. */
struct hg_conf_tenant *hg_state_copy_settings(const struct hg_conf_tenant *settings);

#endif
