// memcached - a store made of one or many memcached servers
// SPDX-License-Identifier: BSD-3-Clause
//
//   hg_upstream_shared        one for the process: servers with their breakers, counters
//     └ hg_memcached_store    one for each worker: a ring, and a pool for each server
//
// The ring is asked with the key without its prefix; the servers get prefix and key. Flush goes to
// every server and is answered once, by the worst of the answers. With eject_servers the keys of a
// server that is out are spread over those that are not; the others' keys stay where they are.
#ifndef HG_BACK_MEMCACHED_H
#define HG_BACK_MEMCACHED_H

#include <stdint.h>

#include "back/store.h"
#include "back/upstream.h"
#include "base/attr.h"
#include "base/blob.h"
#include "io/loop.h"
#include "io/mailbox.h"
#include "io/out.h"

/* The instance of worker number `worker`, who may have `share` connections to each server (at least
   1). NULL when memory is out. On the worker's thread, as everything that follows. */
HG_MUST_USE struct hg_store *
hg_memcached_store_new(struct hg_upstream_shared *shared, struct hg_loop *loop,
                       struct hg_mailbox *mailbox, struct hg_blobs *blobs, struct hg_out_pool *outs,
                       uint32_t worker, uint32_t share);
/* New time-outs, from now on. */
void hg_memcached_store_set_times(struct hg_store *store, const struct hg_memcached_times *times);

#endif
