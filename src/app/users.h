// users - who may log in and what each may do in which bucket, as one snapshot that never changes
// SPDX-License-Identifier: BSD-3-Clause
//
//     users:
//       - {name: ann, secrets: [SCRAM-SHA-256$..., SCRAM-SHA-1$...],
//          buckets: {shop: [Read, Write], "*": [Stats]}, privileges: [Unthrottled]}
//     anonymous: {bucket: default, privileges: [Read, Write]}
//
// The list of an exact bucket name wins over "*"; `all` stands for every privilege; `privileges`
// hold in every bucket and without one. Without a file (hg_users_open) everyone is anonymous in
// `default` with every privilege but the exemptions Unthrottled and Unmetered. A snapshot is built
// by one thread, then read by any; the caller counts its readers.
#ifndef HG_APP_USERS_H
#define HG_APP_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/conf_errors.h"
#include "app/secret.h"
#include "base/attr.h"
#include "base/privilege.h"
#include "base/span.h"

#define HG_USERS_NAME_MAX 128u

struct hg_conf;
struct hg_users;
struct hg_user; /* one of a snapshot, gone with it; NULL means anonymous everywhere below */

/* Reads and checks users.yaml. 0, or -errno with at least one line in errs. `file` (NULL: none) and
   `line` are where the path is written, for a file that cannot be read. */
HG_MUST_USE int hg_users_load(const char *path, const char *file, unsigned line,
                              struct hg_users **ret, struct hg_conf_errors *errs);
/* The same for the users_file of a configuration; without one as hg_users_open. */
HG_MUST_USE int hg_users_load_for(const struct hg_conf *conf, struct hg_users **ret,
                                  struct hg_conf_errors *errs);
HG_MUST_USE int hg_users_parse(const char *text, size_t len, const char *name,
                               struct hg_users **ret, struct hg_conf_errors *errs);
/* No users file: nobody logs in, everybody may do everything. 0 or -ENOMEM. */
HG_MUST_USE int hg_users_open(struct hg_users **ret);
void hg_users_free(struct hg_users *users);

/* Whether nothing but a login is answered before a login (no `anonymous` section). */
bool hg_users_login_required(const struct hg_users *users);
/* Whether there is anybody who could log in; if not, no SASL mechanism is worth listing. */
bool hg_users_has_users(const struct hg_users *users);
/* Whether some user has a secret for this hash: which SCRAM mechanisms may be listed. */
bool hg_users_has_hash(const struct hg_users *users, enum hg_secret_hash hash);
/* Whether some user has a secret for this hash and for no other. */
bool hg_users_has_only(const struct hg_users *users, enum hg_secret_hash hash);
/* The bucket of anonymous connections, or NULL. */
const char *hg_users_anonymous_bucket(const struct hg_users *users);

/* NULL when there is none of that name. */
const struct hg_user *hg_users_find(const struct hg_users *users, struct hg_span name);
const char *hg_user_name(const struct hg_user *user);
/* The user's secret for a hash, or NULL. */
const struct hg_secret *hg_user_secret(const struct hg_user *user, enum hg_secret_hash hash);
/* The one to check a plain password with: SHA-256 if there is one; NULL if the user cannot log in
   (then check against hg_users_fake_secret, so that it takes the same time). */
const struct hg_secret *hg_user_plain_secret(const struct hg_user *user);

/* What the user may do with the bucket selected (bucket.at NULL: with none selected): bits of
   HG_PRIVILEGE_BIT. */
uint32_t hg_users_privileges(const struct hg_users *users, const struct hg_user *user,
                             struct hg_span bucket);
/* Whether the user may select and list the bucket: any of Read, Write, Stats,
   BucketThrottleManagement and NodeSupervisor in it. */
bool hg_users_may_see(const struct hg_users *users, const struct hg_user *user,
                      struct hg_span bucket);

/* A secret for a name that does not exist, or that has none for this hash: always the same one for
   the same name within a process, and of the usual iteration count, so that it cannot be told from
   a real one. No password fits it. */
void hg_users_fake_secret(const struct hg_users *users, struct hg_span name,
                          enum hg_secret_hash hash, struct hg_secret *ret);

/* Takes over the key that fake secrets are made with, so that a reload does not change them; before
   the new snapshot is shown to anyone. */
void hg_users_keep_key(struct hg_users *now, const struct hg_users *before);

/* Whether a connection logged in under the old snapshot must be closed: the user is gone, or has
   other secrets. */
bool hg_users_is_revoked(const struct hg_users *now, const struct hg_user *before);

#endif
