// memcached - a store made of one or many memcached servers
// SPDX-License-Identifier: BSD-3-Clause
//
// The ring is asked with the key without its prefix; the servers get prefix and key. Flush goes to
// every server and is answered once, by the worst of the answers. With eject_servers the keys of a
// server that is out are spread over those that are not; the others' keys stay where they are.
#ifndef HG_BACK_MEMCACHED_H
#define HG_BACK_MEMCACHED_H

#include "back/remote.h"
#include "back/ring.h"
#include "base/attr.h"

struct hg_memcached_store {
    struct hg_remote remote;
    struct hg_ring *ring; /* over all servers */
    struct hg_ring *live; /* over the servers that are not out; with eject_servers only */
    bool *is_live;
    bool live_known;
    uint32_t live_changes; /* shared->changes when `live` was made */
};

/* A worker's instance. NULL when memory is out. On the worker's thread. */
HG_MUST_USE struct hg_store *hg_memcached_store_new(struct hg_upstream_shared *shared,
                                                    const struct hg_remote_place *place);

#endif
