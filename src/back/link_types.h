// link_types - what a link is made of, and what it tells its owner
// SPDX-License-Identifier: BSD-3-Clause
//
// See link.h.
#ifndef HG_BACK_LINK_TYPES_H
#define HG_BACK_LINK_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "back/addrs.h"
#include "back/dialect.h"
#include "back/hub.h"
#include "back/store.h"
#include "back/upstream_stats.h"
#include "back/uptls.h"
#include "base/attr.h"
#include "core/balance_types.h"

#define HG_LINK_DENIAL_MAX  200   /* bytes that are kept of why a login was refused */
#define HG_LINK_LARGE_BYTES 65536 /* a value of this size holds up what is behind it */

enum hg_link_state {
    HG_LINK_CONNECTING, /* until the socket is connected and, with TLS, its handshake is over */
    HG_LINK_HANDSHAKE,  /* the server's answers to login and probe are awaited */
    HG_LINK_READY,
    HG_LINK_DRAINING, /* takes nothing new, ends when all is answered */
    HG_LINK_DEAD
};

enum hg_link_why {
    HG_LINK_REFUSED,    /* nobody listens there */
    HG_LINK_LOCAL,      /* this host lacks something: see local.h */
    HG_LINK_NO_CONNECT, /* the connection or the handshake failed otherwise */
    HG_LINK_TLS_FAILED, /* link->denial says why */
    HG_LINK_REJECTED,   /* the server does not let this identity in */
    HG_LINK_CLOSED,     /* by the server, or broken on the way */
    HG_LINK_GARBAGE,    /* a reply that is none, or not the one expected */
    HG_LINK_SILENT,     /* no byte for too long */
    HG_LINK_MEMORY,     /* ours ran out */
    HG_LINK_LET_GO      /* we do not need it any more */
};

struct hg_link_slot {
    struct hg_call *call; /* NULL: forgotten, or a probe */
    uint64_t sent_us;
    uint64_t expire_us;
    uint32_t bytes; /* of the request */
    uint8_t tag;
    uint8_t before;    /* plain replies that come before the one to the request */
    bool moved;        /* came from another link, and does not move again */
    uint64_t stranded; /* its call was given up and had this ticket; 0: neither */
};

struct hg_link_limits {
    uint32_t depth;      /* requests without a reply */
    uint32_t max_reply;  /* bytes */
    uint64_t max_bytes;  /* of requests without a reply */
    uint64_t timeout_us; /* for a reply */
    uint64_t silent_us;  /* without a byte while something is expected */
};

struct hg_link;

struct hg_link_owner {
    void (*on_ready)(struct hg_link *link);
    /* A slot was freed while `full` was set, which the owner does and undoes. */
    void (*on_room)(struct hg_link *link);
    /* Replies came, `in_time` of them for calls that still waited, `late` ones for others; the
       oldest had waited so long. May end or rebind the link. */
    void (*on_answers)(struct hg_link *link, uint32_t in_time, uint32_t late, uint64_t waited_us);
    /* The call is about to be answered HG_FAULT_TIMEOUT. */
    void (*on_timeout)(struct hg_link *link, const struct hg_call *call, uint64_t waited_us);
    /* The server did not carry out the call and wants it said again; it is on no link any more. To
       be submitted anew, or answered with reply->result; spans hold during this call only. NULL
       where the dialect knows no such replies. */
    void (*on_again)(struct hg_link *link, struct hg_call *call, const struct hg_reply *reply);
    /* The link is DEAD and closed; `was` is its last state. Every slot must be settled. */
    void (*on_end)(struct hg_link *link, enum hg_link_state was, enum hg_link_why why, int error);
    /* A slot became stranded (+1) or free again (-1), of a call with this ticket. May be NULL. */
    void (*on_strand)(struct hg_link *link, uint64_t ticket, int change);
};

struct hg_link {
    /* what every request and reply touches */
    struct hg_hub *hub;
    const struct hg_dialect *dialect;
    const struct hg_link_limits *limits; /* the owner's; may change */
    struct hg_upstream_counters *counters;
    struct hg_link_slot *slots;
    uint32_t mask, head, tail;
    uint8_t state; /* enum hg_link_state */
    bool full;     /* the owner's: tell me when a slot gets free */
    bool slow;     /* the owner's: takes nothing new for now */
    bool blocked;  /* the socket is full, the loop will tell */
    bool probe;    /* must answer before it is READY */
    bool proved;   /* the server has answered on it */
    bool large_out;
    uint64_t bytes;     /* of requests without a reply */
    uint64_t expire_us; /* no call expires before */
    uint64_t heard_us;  /* last byte received, or the link stopped being idle */
    struct hg_tls *tls; /* NULL: a plain connection */
    struct hg_out out;
    /* the rest */
    struct hg_blob *part; /* of a reply whose length is known; else what there is lies in `start` */
    uint64_t part_total, part_have;
    uint8_t start[HG_DIALECT_HEAD_BYTES];
    struct hg_list dirty_node;
    struct hg_list node; /* the owner's, while not DEAD */
    const struct hg_link_owner *owner;
    void *pool;                  /* the owner */
    uint32_t pool_index;         /* the owner's use */
    bool live;                   /* the owner's: the breaker knows of it */
    struct hg_balance_conn conn; /* the owner's */
    uint32_t keepalive_s;
    const char *server;                  /* for results */
    struct hg_uptls *uptls;              /* the owner's; NULL: no TLS */
    const char *host;                    /* the owner's: whose certificate it must be */
    struct hg_hub_wake wake;             /* goes on with TLS though no event will come */
    const struct hg_identity *identity;  /* the owner's; may be NULL */
    void *reader;                        /* the dialect's */
    char denial[HG_LINK_DENIAL_MAX + 1]; /* why the login was refused, or TLS failed */
    const struct hg_addrs *addrs;
    uint32_t tried; /* addresses that failed */
    int error;      /* why: of several errors one that is the server's */
    int fd;
    struct event read_event, write_event;
};

#endif
