// handover_wire - what an old and a new process say to each other at a hand-over
// SPDX-License-Identifier: BSD-3-Clause
//
//   new ── HELLO ──────────────────────────► old      who makes no administrative changes from here
//   new ◄─ OFFER, with the sockets ───────── old      or REFUSE, with why
//        only if both have embedded stores:
//   new ── RELEASE ────────────────────────► old      which accepts no more, drains, closes its
//   stores new ◄─ RELEASED ──────────────────────── old
//        in any case:
//   new ── DONE, it accepts ───────────────► old      which goes, or drains and goes
//   new ◄─ BYE ───────────────────────────── old
//
// Until DONE the old one keeps the sockets, and goes on with them (after RELEASE: starts again) if
// the new one goes away or is silent for too long. The socket is of kind SOCK_SEQPACKET, so that
// messages stay apart, and both are on one machine: a message is this struct as it is in memory.
#ifndef HG_APP_HANDOVER_WIRE_H
#define HG_APP_HANDOVER_WIRE_H

#include <stdint.h>

#include "app/inherit.h"
#include "base/attr.h"

#define HG_HANDOVER_MAGIC   0x4f484748u /* "HGHO" */
#define HG_HANDOVER_VERSION 1
/* The other side reads files, looks names up and opens stores meanwhile: seconds, at most. */
#define HG_HANDOVER_TIMEOUT_MS 30000

enum hg_handover_kind {
    HG_HANDOVER_HELLO = 1,
    HG_HANDOVER_OFFER,
    HG_HANDOVER_REFUSE,
    HG_HANDOVER_RELEASE,
    HG_HANDOVER_RELEASED,
    HG_HANDOVER_DONE,
    HG_HANDOVER_BYE,
};

struct hg_handover_msg {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;     /* enum hg_handover_kind */
    uint32_t drain_ms; /* OFFER: how long the old one may drain */
    uint8_t embedded;  /* OFFER: it has embedded stores, which one process at a time can have */
    uint8_t count;     /* OFFER: sockets */
    uint8_t purpose[HG_INHERIT_MAX];    /* OFFER: of each, an enum hg_inherit_purpose */
    uint8_t keeps_file[HG_INHERIT_MAX]; /* OFFER: of each, whether its file is somebody else's */
    char why[256];                      /* REFUSE */
};

/* 0, -EPROTO: no message of this program; -EPROTONOSUPPORT: of another version. Pure. */
HG_MUST_USE int hg_handover_check(const struct hg_handover_msg *msg, size_t len);

/* Sends a message, with `count` descriptors. 0 or -errno. */
HG_MUST_USE int hg_handover_send(int fd, struct hg_handover_msg *msg, const int *fds,
                                 unsigned count);
HG_MUST_USE int hg_handover_say(int fd, enum hg_handover_kind kind);
/* Receives one, and at most HG_INHERIT_MAX descriptors, which are closed on exec. 0 or -errno
   (-ECONNRESET: the other one has gone; then and on every error there are no descriptors). */
HG_MUST_USE int hg_handover_receive(int fd, struct hg_handover_msg *ret, int fds[HG_INHERIT_MAX],
                                    unsigned *ret_count);
/* The same, but waits for it; -ETIMEDOUT. */
HG_MUST_USE int hg_handover_await(int fd, int timeout_ms, struct hg_handover_msg *ret,
                                  int fds[HG_INHERIT_MAX], unsigned *ret_count);

/* Is the process at the other end this one's user, or root? And its id. */
HG_MUST_USE int hg_handover_peer(int fd, pid_t *ret_pid);

#endif
