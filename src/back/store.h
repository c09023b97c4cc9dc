// store - one table of functions for every kind of store, and the call that travels through it
// SPDX-License-Identifier: BSD-3-Clause
//
//   front ── submit(call) ──► store ── on_done(call, result) ──► front
//                 │ no room                 ▲
//                 └── HG_SUBMIT_WAIT ── on_room(call): submit again
//
// A worker has its own instance (struct hg_store) of each upstream, and a call never leaves its
// worker's thread except by copy. Promises:
//   - submit answers HG_SUBMIT_TAKEN: on_done is called exactly once, perhaps before submit
//   returns.
//   - submit answers HG_SUBMIT_WAIT: nothing was kept but the call's place in the store's queue;
//     on_room is called exactly once, when it is worth submitting again (no promise that there is
//     room then), or on_done with a refusal when the store knows that there will be none in time.
//   - cancel: the client has gone. After it neither on_done nor on_room is called, and the call may
//     be freed. What was sent is still sent; its reply is dropped. From within cancel no other call
//     is answered or told of room.
//   - the spans of a call hold only during submit; the store copies, or references call->blob.
//   - the spans of a result hold only during on_done, but bytes inside result->blob may be
//     referenced, and with result->until_turn_end bytes hold until HG_STAGE_CLEANUP.
//   - calls of one client for one key are carried out in the order of their submission: the client
//     side says so with call->after, which is looked at during submit only.
//   - a call that on_room submits again at once has kept its place in the queue, and a few that it
//     submits behind it from there go along; one that is
//     submitted later takes a new one.
//   - a store is not drained or freed from within on_done or on_room.
//   - a call with a ticket that is given up (cancelled, timed out) while its server still owes an
//     answer leaves its slot stranded: on_strand(server, ticket, +1), before on_done if there is
//     one. When that answer has come and was dropped, or the connection has ended,
//     on_strand(server, ticket, -1). Both from within the store, which the listener does not call.
//     A call that another worker's store carries out (relay.h) is reported there: on that worker's
//     thread, to its own listener.
//   - server_of names the server that submit would send a call to now. It changes nothing, and the
//     numbers of servers hold for all workers' instances of one generation.
#ifndef HG_BACK_STORE_H
#define HG_BACK_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/blob.h"
#include "base/list.h"
#include "base/op.h"
#include "base/span.h"
#include "io/loop.h"
#include "proto/status.h"

struct hg_store;
struct hg_link;
struct hg_tie;

struct hg_range_call;

#define HG_SERVER_NONE UINT32_MAX /* no single server, or it is not known yet */

enum hg_submit { HG_SUBMIT_TAKEN, HG_SUBMIT_WAIT };

/* Why a call was not answered by the store itself. */
enum hg_fault {
    HG_FAULT_NONE,          /* the store answered; `status` is its answer */
    HG_FAULT_DOWN,          /* breaker open, or no connection could be made: nothing was sent */
    HG_FAULT_LOST,          /* sent, but the connection broke before the answer */
    HG_FAULT_TIMEOUT,       /* sent, and no answer within backend_timeout_ms */
    HG_FAULT_QUEUE_TIMEOUT, /* waited for a connection past queue_timeout_ms or its deadline */
    HG_FAULT_QUEUE_FULL,    /* too many wait already */
    HG_FAULT_DENIED,        /* the server does not let the call's identity in */
    HG_FAULT_KEY_TOO_LONG,  /* prefix and key together exceed the store's limit */
    HG_FAULT_NOT_SUPPORTED, /* the store cannot do this operation */
    HG_FAULT_MEMORY,        /* memory ran out */
    HG_FAULT_INTERNAL       /* the store failed in a way that a retry will not mend */
};

struct hg_result {
    uint16_t status; /* enum hg_status: success, 0x01, 0x02, 0x03, 0x05, 0x06, 0x82 ... */
    enum hg_fault fault;
    uint32_t item_flags; /* get, gat */
    uint64_t cas;
    uint64_t counter;     /* increment, decrement: the new value */
    struct hg_span value; /* get, gat; or the text of an error, not zero-ended */
    struct hg_blob *blob; /* not NULL: `value` lies in it */
    bool until_turn_end;  /* `value` holds until the end of the turn */
    uint32_t item_bytes;  /* stored value's bytes after an append or prepend, if known, else 0 */
    const char *server;   /* which server: for the slow log and error texts; may be NULL */
};

/* Private to the store while a call is submitted or waits. */
struct hg_call_place {
    struct hg_list node;
    struct hg_store *store;
    struct hg_link *link; /* the connection that carries it; NULL while it waits */
    uint32_t index;       /* the store's own use: slot, server */
    uint64_t since_us;    /* waits since */
    bool pending;         /* taken and not answered */
    bool waiting;
    bool relayed; /* it goes by way of another worker, see back/relay.h */
    void *extra;
    struct hg_tie *tie; /* see back/tie.h; NULL but for few calls */
    uint64_t made_cas;  /* of a write that goes without the server's: what it will be */
};

struct hg_call {
    /* what is asked: set before submit */
    enum hg_op op;
    uint32_t tenant_id; /* embedded store: which key space */
    uint32_t
        identity;    /* as whom it goes to the server, see back/identity.h; 0: the upstream's own */
    bool row;        /* the key is a row's, `table 0x00 row`: an index for ranges goes with it */
    bool quarantine; /* it passed a bind throttle: away from everybody else's, see pool.h */
    uint64_t
        ticket; /* the execution ticket that it runs under, as the front end names it; 0: none */
    void *ticket_of;   /* the front's: who has that ticket; NULL: nobody of this worker */
    uint32_t route;    /* 1 + what server_of said of it in this turn; 0: it was not asked */
    uint32_t key_hash; /* of the key without prefix; any good hash, the same for equal keys */
    struct hg_span prefix;
    struct hg_span key;
    struct hg_span value;
    struct hg_blob *blob; /* not NULL: `value` lies in it */
    uint32_t item_flags;
    uint32_t
        expiry;   /* memcached's meaning; for flush the delay; counters: 0xffffffff = no create */
    uint64_t cas; /* 0: any */
    uint64_t delta, initial;
    const struct hg_range_call *range; /* of a stretch of a table that a store asks for, or NULL */
    uint64_t now_us;                   /* monotonic */
    uint64_t deadline_us;              /* of the whole request */
    /* The last call of this client for this key that is not yet answered, or NULL: set anew before
       each submit. A flush has no key: nothing of its client may be waiting when it is submitted.
     */
    struct hg_call *after;

    void (*on_done)(struct hg_call *call, const struct hg_result *result);
    void (*on_room)(struct hg_call *call);

    uint64_t sent_us; /* set by the store: handed to the server, or begun */
    struct hg_call_place place;
};

/* A stretch of keys in order, for stores that have an order. */
struct hg_range_item {
    struct hg_span key; /* without the tenant's prefix */
    uint32_t item_flags;
    uint64_t cas;
    struct hg_span value; /* holds during on_item only */
};

struct hg_range_end {
    enum hg_fault fault;
    bool more;           /* it stopped before the end of the stretch: go on behind `last` */
    struct hg_span last; /* the key that was looked at last, dead or alive, without prefix; empty
                            when there was none. Holds during on_done */
    struct hg_span text; /* of a fault, not zero-ended, or none */
    const char *server;
};

struct hg_range_call {
    uint32_t tenant_id;
    uint32_t identity;
    bool quarantine; /* as a call's */
    uint64_t ticket; /* as a call's, and the next */
    void *ticket_of;
    struct hg_span prefix;
    struct hg_span from, to; /* from <= key < to, without prefix; hold until on_done */
    bool reverse;            /* from the last to the first */
    uint32_t max_items;      /* that are looked at, dead ones included; at least 1 */
    uint64_t max_us;         /* stops after about so long */
    uint64_t deadline_us;
    /* For each item that is alive; false: enough, and `more` is set. */
    bool (*on_item)(struct hg_range_call *call, const struct hg_range_item *item);
    /* Exactly once, perhaps before `range` returns; never after cancel_range. */
    void (*on_done)(struct hg_range_call *call, const struct hg_range_end *end);
    struct hg_call_place place;
};

struct hg_store_ops {
    const char *kind;
    /* See the promises above. */
    enum hg_submit (*submit)(struct hg_store *store, struct hg_call *call);
    void (*cancel)(struct hg_store *store, struct hg_call *call);
    /* Reads a stretch of keys; NULL where the store keeps no order. It sees every write of this
       worker that has been answered. Not from within on_item. To go on forward, `from` is the last
       key and a zero byte behind it; in reverse, `to` is the last key. */
    void (*range)(struct hg_store *store, struct hg_range_call *call);
    void (*cancel_range)(struct hg_store *store, struct hg_range_call *call);
    /* Which server `key` of a tenant with this prefix goes to, as text that holds until the next
       call. */
    const char *(*where)(struct hg_store *store, struct hg_span prefix, struct hg_span key);
    /* The number of the server that a call with this prefix, key and op goes to, or
       HG_SERVER_NONE. NULL: all go to server 0. */
    uint32_t (*server_of)(struct hg_store *store, const struct hg_call *call);
    /* Address of a server, as long as the generation lives. NULL: it has none. */
    const char *(*server_name)(struct hg_store *store, uint32_t server);
    /* How many requests this worker's connections to a server can carry without any behind another,
       while they are set apart (pool.h); 0: they are not. NULL: never. */
    uint32_t (*width)(struct hg_store *store, uint32_t server);
    /* Takes no new calls that need a new connection, closes what is idle, ends when all is
       answered; `drained` asks whether nothing is pending. */
    void (*drain)(struct hg_store *store);
    bool (*drained)(struct hg_store *store);
    /* Answers every pending and waiting call (HG_FAULT_LOST), closes everything, frees itself. */
    void (*free)(struct hg_store *store);
};

struct hg_store {
    const struct hg_store_ops *ops;
    /* Slots of a server that became stranded (+1) or were freed (-1); NULL: nobody listens. Set by
       the user of the store, before the first call. */
    void (*on_strand)(void *ctx, uint32_t server, uint64_t ticket, int change);
    /* A call with a ticket goes on to this server, as the one that it was sent to said; NULL:
       nobody listens. */
    void (*on_move)(void *ctx, void *ticket_of, uint32_t server);
    void *strand_ctx; /* of both */
};

/* For stores: says that the call is about to be sent to another server. */
static inline void hg_store_move(const struct hg_store *store, const struct hg_call *call,
                                 uint32_t server)
{
    if (call->ticket != 0 && call->ticket_of != NULL && store->on_move != NULL)
        store->on_move(store->strand_ctx, call->ticket_of, server);
}

/* For stores: says that a slot of this server became stranded (+1) or free (-1) whose call has, or
   had, this ticket. */
static inline void hg_store_strand(const struct hg_store *store, uint32_t server, uint64_t ticket,
                                   int change)
{
    if (ticket != 0 && store->on_strand != NULL)
        store->on_strand(store->strand_ctx, server, ticket, change);
}

#endif
