// ring - which server a key belongs to, with libmemcached's own results
// SPDX-License-Identifier: BSD-3-Clause
//
// A memcached_st is set up as a libmemcached user would set up his, and only asked for the server
// of a key, so that both find the same keys on the same servers. Order matters to that library:
// distribution, then hash, then servers. So weights count under `ketama` and `consistent` too (a
// user who adds servers first and chooses the distribution afterwards has a ring without weights),
// and `ketama_weighted` brings MD5 unless a hash is named. The library leaves port 11211 out of
// the names on the ring, host names are taken as they are written.
//
// Asking does not change a ring: no lock, no socket. One thread uses one ring all the same.
#ifndef HG_BACK_RING_H
#define HG_BACK_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"

#define HG_RING_PORT       11211 /* of a server whose address names none */
#define HG_RING_WHY_BYTES  200
#define HG_RING_WEIGHT_MAX 65535
/* Of any kind but modula: with more libmemcached ends the process. */
#define HG_RING_SERVERS_MAX 100

struct hg_ring_server {
    const char *address; /* "host:port", "[v6]:port", "unix:/path", "/path" */
    uint32_t weight;     /* 1 .. HG_RING_WEIGHT_MAX */
};

struct hg_ring_conf {
    const struct hg_ring_server *servers;
    uint32_t count;
    const char *kind; /* "ketama", "ketama_weighted", "consistent", "modula" */
    const char *hash; /* libmemcached's name in lower case; NULL or "": the ring's own */
};

struct hg_ring;

/* A ring over those servers for which live[i] is true; NULL as `live` means all. On an error NULL
   and in `why` a text that names what is wrong and what is accepted. */
HG_MUST_USE struct hg_ring *hg_ring_new(const struct hg_ring_conf *conf, const bool *live,
                                        char why[HG_RING_WHY_BYTES]);
void hg_ring_free(struct hg_ring *ring);

/* Index in conf->servers of the server of `key`, which has no prefix. */
uint32_t hg_ring_of(const struct hg_ring *ring, struct hg_span key);

#endif
