// upstreams_view - what may be read of an upstream from outside, whatever its kind
// SPDX-License-Identifier: BSD-3-Clause
//
// By who holds a directory that lists it. From any thread.
#ifndef HG_APP_UPSTREAMS_VIEW_H
#define HG_APP_UPSTREAMS_VIEW_H

#include "back/embedded_stats.h"
#include "back/identity.h"
#include "back/pool_stats.h"
#include "back/upstream.h"
#include "front/directory.h"

/* Its servers in the generation that the directory lists, or NULL: an embedded store, or not
 * listed. */
const struct hg_upstream_shared *hg_upstream_remote(const struct hg_directory *directory,
                                                    const struct hg_upstream *upstream);
/* How many servers it has now; 0 for an embedded store. */
uint32_t hg_upstream_servers(const struct hg_directory *directory,
                             const struct hg_upstream *upstream);
/* What the server at this address has counted, in all generations; HG_UPSTREAM_STATS numbers. */
void hg_upstream_server_sum(const struct hg_upstream *upstream, const char *address,
                            uint64_t *sums);
/* Is there a server that is not out? Always so for kinds without servers. */
bool hg_upstream_is_alive(const struct hg_directory *directory, const struct hg_upstream *upstream);
/* Is the server at this address not out? Of an address that is none of its: as above. */
bool hg_upstream_is_server_alive(const struct hg_directory *directory,
                                 const struct hg_upstream *upstream, const char *address);
/* False when it is no embedded store. */
bool hg_upstream_embedded(const struct hg_directory *directory, const struct hg_upstream *upstream,
                          struct hg_embedded_stats *ret);
/* False when it is no Redis Cluster; `ret` has HG_REDISCLUSTER_STATS numbers. */
bool hg_upstream_cluster(const struct hg_directory *directory, const struct hg_upstream *upstream,
                         uint64_t *ret);
/* Who an identity is: "own", or USER/DATABASE. `sums` as hg_server_sum_pools made them. */
void hg_upstream_identity_text(const struct hg_identities *identities,
                               const struct hg_pool_sum *sums, uint32_t id, char *out, size_t cap);

#endif
