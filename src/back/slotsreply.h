// slotsreply - what a server says of its cluster: the reply of CLUSTER SLOTS, read with care
// SPDX-License-Identifier: BSD-3-Clause
//
//   [[first slot, last slot, [host, port, id, ...], [host, port, id, ...] ...], ...]
//                            the owner              its replicas
//
// Nothing in it is believed: slots outside of 0 .. 16383 or named twice, ports and hosts that are
// none, other types than these, and a reply over HG_SLOTSREPLY_MAX_BYTES make the whole reply void.
// A host that is empty or nil is that of the server that was asked. A node whose host is unknown
// ("?"), or that has port 0, as one has whose address is lost (noaddr), is left out: its slots have
// no owner. More than HG_SLOTS_NODES_MAX nodes: the others are left out too. Bytes may come in any
// pieces. hiredis' reader parses them; no tree is built.
#ifndef HG_BACK_SLOTSREPLY_H
#define HG_BACK_SLOTSREPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/codec.h"
#include "proto/keyslot.h"
#include "proto/redirect.h"

#define HG_SLOTS_NODES_MAX      1000
#define HG_SLOTS_NONE           UINT16_MAX
#define HG_SLOTSREPLY_MAX_BYTES (8u << 20) /* 16384 stretches of 3 nodes of 150 bytes each */
#define HG_SLOTSREPLY_WHY       192

struct hg_slots_node {
    char address[HG_REDIRECT_ADDRESS];
    bool owns; /* slots; else it is a replica */
};

struct hg_slots {
    uint32_t uncovered; /* slots without an owner */
    uint32_t node_count;
    uint16_t owner[HG_KEYSLOTS]; /* number of a node, or HG_SLOTS_NONE */
    struct hg_slots_node nodes[HG_SLOTS_NODES_MAX];
};

struct hg_slotsreply;

/* `asked`: address of the server. `before`: so many replies come first, those of a login, of which
   none may be an error. NULL when memory is out. */
HG_MUST_USE struct hg_slotsreply *hg_slotsreply_new(const char *asked, unsigned before);
void hg_slotsreply_free(struct hg_slotsreply *reply);

/* Takes the next bytes. HG_OK: hg_slotsreply_slots is there. HG_BAD: hg_slotsreply_why says why.
   Not to be called again after either. */
HG_MUST_USE enum hg_codec hg_slotsreply_feed(struct hg_slotsreply *reply, const void *bytes,
                                             size_t len);
/* Both hold as long as the reply. */
const struct hg_slots *hg_slotsreply_slots(const struct hg_slotsreply *reply);
const char *hg_slotsreply_why(const struct hg_slotsreply *reply);

#endif
