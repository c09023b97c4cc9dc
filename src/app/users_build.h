// users_build - the inside of a users snapshot; for users*.c only
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_APP_USERS_BUILD_H
#define HG_APP_USERS_BUILD_H

#include "app/users.h"

struct hg_user_bucket {
    char *name;
    uint32_t privileges;
};

struct hg_user {
    char *name;
    unsigned line;
    bool has_secret[HG_SECRET_HASH_COUNT];
    struct hg_secret secrets[HG_SECRET_HASH_COUNT];
    uint32_t privileges;            /* everywhere */
    uint32_t any_bucket_privileges; /* "*" */
    struct hg_user_bucket *buckets; /* sorted by name */
    size_t bucket_count;
};

/* What most secrets of a hash look like, so that a fake one does too; zero = there are none. */
struct hg_users_usual {
    uint32_t iterations;
    uint32_t salt_len;
};

struct hg_users {
    struct hg_user *users; /* sorted by name */
    size_t count;
    char *anonymous_bucket; /* NULL: a login is required */
    uint32_t anonymous_privileges;
    bool anonymous_everywhere; /* no users file */
    struct hg_users_usual usual[HG_SECRET_HASH_COUNT];
    uint8_t fake_key[32];
};

/* Nobody, and a fresh key for fakes; NULL when memory or randomness is out. */
struct hg_users *hg_users_new(void);
/* The order of names in the sorted arrays. */
int hg_users_compare(struct hg_span a, struct hg_span b);

#endif
