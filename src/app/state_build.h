// state_build - the inside of a state; for state*.c only
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_APP_STATE_BUILD_H
#define HG_APP_STATE_BUILD_H

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

struct hg_state {
    struct hg_state_node node; /* marks HG_STATE_ABSENT or HG_STATE_VALUE */
    struct hg_state_bucket *buckets;
    size_t count;
    size_t room;
};

/* Whether the option is among those whose text is kept. */
bool hg_state_keeps_text(size_t option);
/* Their names, comma-separated with `head` in front of each. */
void hg_state_list_texts(const char *head, char *ret, size_t size);
/* Whether the entry has any. */
bool hg_state_has_texts(const struct hg_state_bucket *entry);

/* The entry of a name, or NULL. */
struct hg_state_bucket *hg_state_find(const struct hg_state *state, const char *name, size_t len);
/* The entry of a name, made if there is none; NULL when memory is out. */
struct hg_state_bucket *hg_state_entry(struct hg_state *state, const char *name, size_t len);
/* A copy of the settings of a tenant, NULL when memory is out; free by hg_adminjson_free_bucket. */
struct hg_conf_tenant *hg_state_copy_settings(const struct hg_conf_tenant *settings);

#endif
