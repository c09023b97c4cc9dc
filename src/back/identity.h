// identity - as whom connections speak to a server: user, password and database
// SPDX-License-Identifier: BSD-3-Clause
//
// A connection is bound to one identity at a time, and a call goes on connections of its own only.
// An upstream's identities have small numbers, 0 being the upstream's own; they are added while the
// process runs and never taken away, so a number, what it points to, and every password that one
// has had hold as long as the upstream. Any thread.
#ifndef HG_BACK_IDENTITY_H
#define HG_BACK_IDENTITY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

#define HG_IDENTITIES_MAX    16384
#define HG_IDENTITY_NONE     UINT32_MAX /* nobody: what goes as this is refused */
#define HG_IDENTITY_TEXT_MAX 512        /* bytes of a user name, and of a password */

struct hg_password;

struct hg_identity {
    uint32_t id;
    const char *user;                /* "": none is named (Redis: the default user) */
    const char *_Atomic password;    /* "": no login; see hg_identity_password */
    uint32_t database;               /* Redis only */
    const struct hg_identity *login; /* not NULL: it has the password of this one */
};

struct hg_identities {
    pthread_mutex_t lock;         /* for adding */
    _Atomic uint32_t count;       /* those below are there */
    struct hg_password *replaced; /* passwords that the own one had */
    struct hg_identity *list[HG_IDENTITIES_MAX];
};

/* With the upstream's own as number 0. 0 or -ENOMEM. */
HG_MUST_USE int hg_identities_init(struct hg_identities *identities, const char *user,
                                   const char *password, uint32_t database);
void hg_identities_fini(struct hg_identities *identities);

/* The number of this identity, new or known. 0, -ENOMEM, or -ENOSPC when there are
   HG_IDENTITIES_MAX. */
HG_MUST_USE int hg_identities_add(struct hg_identities *identities, const char *user,
                                  const char *password, uint32_t database, uint32_t *ret_id);

/* The same of the upstream's own login in another database. It follows the password of that one, so
   a changed password makes no other identity of it. */
HG_MUST_USE int hg_identities_add_own(struct hg_identities *identities, uint32_t database,
                                      uint32_t *ret_id);

/* Another password for the upstream's own; the next login uses it. 0 or -ENOMEM. */
HG_MUST_USE int hg_identities_set_password(struct hg_identities *identities, const char *password);

/* False of one that follows the upstream's own. */
HG_MUST_USE bool hg_identity_is(const struct hg_identity *identity, const char *user,
                                const char *password, uint32_t database);

/* Of now: it may change, so it is to be read once. */
static inline const char *hg_identity_password(const struct hg_identity *identity)
{
    return identity->login != NULL ? identity->login->password : identity->password;
}

static inline uint32_t hg_identities_count(const struct hg_identities *identities)
{
    return atomic_load_explicit(&((struct hg_identities *)identities)->count, memory_order_acquire);
}

/* A number that hg_identities_add has given. */
static inline const struct hg_identity *hg_identities_at(const struct hg_identities *identities,
                                                         uint32_t id)
{
    return identities->list[id];
}

#endif
