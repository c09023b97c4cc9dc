// memcached_in - a worker's instance of a memcached store, for the files that make it up
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_BACK_MEMCACHED_IN_H
#define HG_BACK_MEMCACHED_IN_H

#include "back/memcached.h"
#include "back/pool.h"

struct hg_memcached_store {
    struct hg_store base;
    struct hg_upstream_shared *shared;
    struct hg_ring *ring;  /* over all servers */
    struct hg_pool *pools; /* one for each server */
    bool busy;             /* the timer runs fast */
    struct hg_ring *live;  /* over the servers that are not out; with eject_servers only */
    bool *is_live;
    bool live_known;
    uint32_t live_changes; /* shared->changes when `live` was made */
    struct hg_hub hub;
    struct hg_pool_conf pool_conf;
    struct hg_timer timer;
};

/* Lets the timer run fast. */
void hg_memcached_get_busy(struct hg_memcached_store *store);
/* Cancels a call for one server. */
void hg_memcached_cancel_one(struct hg_memcached_store *store, struct hg_call *call);

#endif
