// request - one request of a client, from its admission to its reply
// SPDX-License-Identifier: BSD-3-Clause
//
//   decided ─► WAITING (credits, tickets, room) ─► SENT ─► answered, or DONE (encoded, waits for
//   its turn)
//
// A session's requests form a queue in the order of arrival; replies leave in that order. Only the
// last of the queue can be waiting, and nothing behind a waiting request has been looked at.
#ifndef HG_FRONT_REQUEST_H
#define HG_FRONT_REQUEST_H

#include "back/store.h"
#include "core/bindthrottle.h"
#include "core/credit.h"
#include "front/bucket.h"
#include "front/gatepass.h"
#include "proto/opcode.h"

struct hg_gateshare;
struct hg_guard;
struct hg_session;
struct hg_table;

enum hg_request_state {
    HG_REQUEST_WAITING, /* in no store yet */
    HG_REQUEST_SENT,
    HG_REQUEST_DONE /* `reply` holds the encoded reply, or NULL for silence */
};

#define HG_REQUEST_KEY_HEAD 40

struct hg_request {
    struct hg_call call;
    struct hg_session *session;
    struct hg_request *next; /* in the session's queue */
    const struct hg_opcode_row *row;
    struct hg_lane *lane;  /* counted in lane->users; NULL for requests of the front end itself */
    struct hg_blob *reply; /* DONE: what to send, */
    struct hg_blob *value_blob; /* and a value to send behind it, by reference */
    struct hg_span value;
    struct hg_blob *key;    /* a copy, for replies that carry it; else NULL */
    struct hg_table *table; /* of a table request that is not answered; else NULL */
    struct hg_guard *guard; /* of a classic operation on what may be a row's key; else NULL */
    struct hg_charge charge;
    struct hg_gateshare *in_backlog;  /* of which it is counted so, as it waits for room; NULL */
    struct hg_gate_pass pass;         /* its tickets */
    uint32_t bind_hash;               /* of a table request: that of front/hot for its row */
    uint64_t start_us;                /* first looked at */
    uint64_t hold_us;                 /* began to wait (credits, then room) */
    uint64_t throttle_us;             /* was held for credits */
    uint64_t queue_us;                /* waited for tickets, and for room: */
    uint64_t room_us;                 /* that part of it */
    uint64_t read_units, write_units; /* estimated, then real */
    uint32_t opaque;
    uint32_t frame_bytes;
    uint16_t key_len;
    uint16_t features; /* in force when it was parsed */
    uint8_t state;     /* enum hg_request_state */
    bool admitted;     /* the credits let it pass */
    bool impersonated;
    bool follows; /* waits for room behind an earlier request of its client for the same key */
    bool unmetered;
    bool bind_passed;   /* it is the one in X for its key */
    uint8_t seen;       /* HG_SEEN_*, see trace.h */
    uint8_t held_for;   /* enum hg_credit_reason of HG_SEEN_CREDIT_*, or of its refusal */
    uint32_t value_len; /* of the request */
    uint8_t key_head[HG_REQUEST_KEY_HEAD];
    struct hg_bindthrottle_pass bind_pass; /* how it passed the bind throttle, if it did */
};

/* Whether it goes to its store by way of back/rows.h, which keeps the order of its own. */
static inline bool hg_request_on_rows(const struct hg_request *request)
{
    return request->table != NULL || request->guard != NULL;
}

#endif
