// relay_port - where one worker's store takes calls and answers from other workers' stores
// SPDX-License-Identifier: BSD-3-Clause
//
//   home:  item ──batch──► the owner's inbox     the owner carries out item->guest
//   home's inbox ◄──batch── item                 and leaves the answer in the item
//
// A port is an inbox, a lock-free stack of batches, and a letter that pokes the worker's mailbox
// when something was put into an empty one. Items are their home port's memory, and whoever has one
// away keeps the port alive: so a store can go while its items are with others, and they have
// something to bring back, or to drop when the port is closed.
//
// Posting never waits. Closing does, for those who are just posting, which is a matter of
// instructions; after it the inbox gets nothing more, and the mailbox only the letter that is under
// way, which finds a closed port.
#ifndef HG_BACK_RELAY_PORT_H
#define HG_BACK_RELAY_PORT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "back/store.h"
#include "base/attr.h"
#include "base/slab.h"
#include "io/mailbox.h"

#define HG_RELAY_ROOM 1024 /* bytes of a call, or of an answer, that travel in the item */

struct hg_relay;
struct hg_relay_port;

/* A call on its way to the owner and back. One thread at a time has it, but for `forgotten`. */
struct hg_relay_item {
    struct hg_relay_item *next;       /* in its batch */
    struct hg_relay_item *batch_next; /* of a batch's first: in an inbox */
    struct hg_relay_port *home;
    uint32_t server;
    bool is_answer;
    _Atomic bool forgotten; /* its client has gone */
    /* home's own */
    struct hg_list node;         /* hg_relay_lane.items */
    uint32_t owner;              /* the worker that it was sent to */
    struct hg_call *call;        /* NULL: answered already, or forgotten */
    struct hg_relay_item *after; /* must not be reused before this one is */
    uint32_t refs;               /* itself, and the item that comes after it */
    uint64_t expire_us;
    struct hg_blob *bytes; /* of a call that does not fit into `room`; loose */
    /* set by home, used by the owner */
    struct hg_call guest;
    struct hg_range_call range;
    struct hg_blob *value; /* of the call, until the owner adopts it; loose */
    bool keep;             /* the call may have to be said again: has a tie, with ... */
    bool asking;           /* ... these of hg_tie */
    uint32_t again;
    /* the owner's */
    struct hg_blob *held;      /* the value, adopted */
    struct hg_list guest_node; /* hg_relay.guests */
    bool settled;              /* not with the owner yet, or answered */
    /* set by the owner, used by home */
    struct hg_result result;
    struct hg_blob *answer; /* of a value that does not fit into `room`; loose */
    uint64_t sent_us;
    uint8_t room[HG_RELAY_ROOM];
};

struct hg_relay_port {
    _Atomic uint32_t refs;  /* its relay, who found it, the letter, and each item that is away */
    _Atomic uint32_t users; /* are posting now */
    _Atomic bool open;
    _Atomic bool poked;
    _Atomic uint32_t forgotten; /* grows when items that are here are forgotten at home */
    struct hg_relay_item *_Atomic inbox;
    uint32_t worker;
    struct hg_mailbox *mailbox;
    struct hg_letter letter;
    struct hg_relay *relay; /* NULL: closed. For the port's own thread */
    struct hg_slab items;
};

/* All ports of an upstream. */
struct hg_relay_ports {
    pthread_mutex_t lock;
    uint32_t count;
    struct hg_relay_port **list; /* by worker */
    bool *gone;                  /* it was there and is no more */
    /* Asks a worker, on any thread, to open its store; NULL: they do so by themselves. */
    void (*summon)(void *arg, uint32_t worker);
    void *summon_arg;
};

/* 0 or -ENOMEM. */
HG_MUST_USE int hg_relay_ports_init(struct hg_relay_ports *ports, uint32_t workers);
void hg_relay_ports_fini(struct hg_relay_ports *ports);

/* Opens a port and shows it to the others; NULL when memory is out. */
HG_MUST_USE struct hg_relay_port *hg_relay_port_new(struct hg_relay_ports *ports, uint32_t worker,
                                                    struct hg_mailbox *mailbox,
                                                    struct hg_relay *relay);
/* Nobody finds it any more or posts to it, from now on; what is in the inbox stays. */
void hg_relay_port_close(struct hg_relay_ports *ports, struct hg_relay_port *port);
/* A worker's port, referenced, or NULL; *ret_gone: it was there before. */
struct hg_relay_port *hg_relay_port_find(struct hg_relay_ports *ports, uint32_t worker,
                                         bool *ret_gone);
void hg_relay_port_ref(struct hg_relay_port *port, uint32_t n);
void hg_relay_port_unref(struct hg_relay_port *port, uint32_t n);

/* Puts a batch into the port's inbox. False: it is closed, and the batch is still the caller's. */
HG_MUST_USE bool hg_relay_port_post(struct hg_relay_port *port, struct hg_relay_item *first);
/* The oldest batch of all that are there, the others behind it by batch_next; NULL: none. */
struct hg_relay_item *hg_relay_port_take(struct hg_relay_port *port);

/* A copy of the call that can travel, with one reference; NULL when memory is out. On the port's
   own thread, as the other two. */
HG_MUST_USE struct hg_relay_item *hg_relay_item_new(struct hg_relay_port *home, uint32_t server,
                                                    const struct hg_call *call);
void hg_relay_item_free_bytes(struct hg_relay_item *item);
void hg_relay_item_unref(struct hg_relay_item *item);

#endif
