// ringdiff - how many keys change their server when an upstream's ring does
// SPDX-License-Identifier: BSD-3-Clause
//
// A fixed sample of keys is asked of both rings. The keys are made up and equally likely: where
// keys really differ in size and traffic, so do the shares.
#ifndef HG_APP_RINGDIFF_H
#define HG_APP_RINGDIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/conf.h"
#include "base/attr.h"

struct hg_ringdiff_server {
    const char *address;    /* the configuration's */
    uint64_t before, after; /* keys of the sample */
};

struct hg_ringdiff {
    uint64_t keys, moved;
    size_t count; /* servers, each address once: those of before, then the new ones */
    struct hg_ringdiff_server *servers;
};

/* Are both memcached, and their keys spread by other servers, weights, ring or hash? */
bool hg_ringdiff_differs(const struct hg_conf_upstream *before,
                         const struct hg_conf_upstream *after);
/* Asks `keys` keys, or fewer when until_us (hg_now_us) comes. 0, -ENOMEM, or -EINVAL when a ring
   cannot be built. hg_ringdiff_fini after 0. */
HG_MUST_USE int hg_ringdiff_make(struct hg_ringdiff *diff, const struct hg_conf_upstream *before,
                                 const struct hg_conf_upstream *after, uint64_t keys,
                                 uint64_t until_us);
void hg_ringdiff_fini(struct hg_ringdiff *diff);

#endif
