// link - one pipelined connection to a server
// SPDX-License-Identifier: BSD-3-Clause
//
//   CONNECTING, [TLS] ─► [HANDSHAKE: login, probe] ─► READY ─► [DRAINING] ─► DEAD, freed after the
//                                  └── rebind, when empty ──┘                       turn
//
//   slots:   head                                tail     ring of 2^n, sequence number = opaque
//             ▼                                   ▼
//         ... [call 17][forgotten][call 19][call 20] ...
//             └ the next reply must be its        └ the next request goes here
//
// A request is encoded straight into the queue of the socket and takes a slot; the queue is sent
// once per turn. Replies are read into the hub's scratch room, parsed there, and matched in order;
// opaque and opcode must be those of the oldest slot, or the connection is closed: its stream has
// lost its meaning. A call that timed out or whose client has gone leaves its slot "forgotten",
// which counts toward the depth until its reply has come and been dropped, so a late reply never
// meets another request. What is left of an incomplete reply waits in a blob of the reply's exact
// size, which the result then refers to.
//
// With link->uptls set, TLS lies between link and socket: whatever is encoded and parsed is the
// same, and to the rest of the world the link is CONNECTING until the server has proved who it is.
//
// The owner (back/pool) hears of every change; a link ends in hg_link_end only, where the owner
// settles what is unanswered. Belongs to the worker's thread.
#ifndef HG_BACK_LINK_H
#define HG_BACK_LINK_H

#include "back/link_types.h"
#include "back/tie.h"

#define HG_LINK_WHY_BYTES (HG_LINK_DENIAL_MAX + 64)

/* NULL when memory is out. It is not connected yet. */
HG_MUST_USE struct hg_link *hg_link_new(struct hg_hub *hub, const struct hg_dialect *dialect,
                                        const struct hg_link_limits *limits,
                                        const struct hg_link_owner *owner, void *pool,
                                        struct hg_upstream_counters *counters);
/* Connects it to one of `addrs` (at least one; the owner's, until it is up), trying each in turn,
   and logs in as link->identity; on_ready or on_end follow, perhaps before this returns. `probe`:
   ask something first, and be READY when that is answered. */
void hg_link_connect(struct hg_link *link, const struct hg_addrs *addrs, bool probe);
/* The same with a socket that is connected already. */
void hg_link_adopt(struct hg_link *link, int fd, bool probe);
void hg_link_end(struct hg_link *link, enum hg_link_why why, int error);
/* Whose fault it is that a connect, or what goes before, failed with -errno. */
enum hg_link_why hg_link_why_of(int error);
/* Why it ended, in words: "cannot connect: Connection refused". */
const char *hg_link_end_text(const struct hg_link *link, enum hg_link_why why, int error,
                             char out[HG_LINK_WHY_BYTES]);
/* Logs in as somebody else on the connection, which is READY and empty: on_ready or on_end follow.
   Only if the dialect can. */
void hg_link_rebind(struct hg_link *link, const struct hg_identity *identity);
/* Takes nothing new, ends when it is empty. */
void hg_link_drain(struct hg_link *link);
/* For the hub only. */
void hg_link_flush(struct hg_link *link);
void hg_link_free(struct hg_link *link);

/* Index of the address that is being tried, or was taken. */
static inline uint32_t hg_link_addr(const struct hg_link *link)
{
    return (link->addrs->start + link->tried) % link->addrs->count;
}

static inline uint32_t hg_link_pending(const struct hg_link *link)
{
    return link->tail - link->head;
}

static inline bool hg_link_has_room(const struct hg_link *link)
{
    return link->tail - link->head < link->limits->depth && link->bytes < link->limits->max_bytes;
}

/* May calls be put on a link that is coming up? What it says first must be theirs. */
static inline bool hg_link_takes_early(const struct hg_link *link)
{
    return !link->probe && !link->dialect->has_login(link->dialect, link->identity);
}

/* May a call follow that must not use another link? It would wait behind others for the sake of its
   order only, so for it the depth is twice as large. */
static inline bool hg_link_has_slack(const struct hg_link *link)
{
    return link->tail - link->head < 2 * link->limits->depth &&
           link->bytes < 2 * link->limits->max_bytes;
}

/* Is a large value on its way, in either direction? */
static inline bool hg_link_is_large(const struct hg_link *link)
{
    return link->large_out || link->part_total >= HG_LINK_LARGE_BYTES;
}

/* Takes a call; the link has room. False: it cannot be said, *ret_fault says why. */
HG_MUST_USE bool hg_link_submit(struct hg_link *link, struct hg_call *call,
                                enum hg_fault *ret_fault);
/* Forgets a pending call. */
void hg_link_cancel(struct hg_link *link, struct hg_call *call);
/* Answers calls whose time is over; ends a link that is silent. */
void hg_link_tick(struct hg_link *link, uint64_t now_us);
/* Microseconds that the oldest request has waited; 0 when there is none. */
uint64_t hg_link_waited_us(const struct hg_link *link, uint64_t now_us);

/* For the owner's on_end: sequence number of the first request of which no byte was sent. */
uint32_t hg_link_first_unsent(const struct hg_link *link);
/* Answers the calls from the oldest up to, not including, number `end`. */
void hg_link_fail(struct hg_link *link, uint32_t end, enum hg_fault fault);
/* Hands all requests that are left, none of which was sent, to the links that `target` names;
   those for which it answers NULL, and which were moved before, are answered HG_FAULT_DOWN. */
void hg_link_move(struct hg_link *link,
                  struct hg_link *(*target)(void *arg, const struct hg_call *call), void *arg);

#endif
