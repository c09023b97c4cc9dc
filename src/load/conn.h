// conn - one connection of a load, and the requests on it that are unanswered
// SPDX-License-Identifier: BSD-3-Clause
//
// Closed loop: `depth` requests are kept unanswered. What one read answers is replaced in one
// write, so a turn of a connection costs one recv, one send and one look at the clock, whatever the
// depth. Open loop (load/open.h): at most `depth` requests are unanswered; a connection that has
// room and nothing to send stands in its lane's row.
//
// Reads go to a buffer of the thread that stays warm in its cache; only the beginning of a reply
// whose end is missing is kept here. Writes likewise: only what the socket did not take.
#ifndef HG_LOAD_CONN_H
#define HG_LOAD_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "load/op.h"

struct hg_load_lane;
struct hg_tls;

/* A request that is unanswered, or in an open loop waits to be sent. */
struct hg_load_pending {
    uint64_t sent_ns;
    uint64_t due_ns; /* what its latency counts from: in a closed loop when it was sent */
    uint32_t key;
    uint8_t op;       /* enum hg_load_op */
    uint8_t group;    /* 1 + enum hg_series_group; 0: not counted in a series */
    uint8_t measured; /* of an open loop: due in the measured part */
};

struct hg_load_conn {
    int fd;             /* -1: lost */
    struct hg_tls *tls; /* NULL: plain; goes with the socket */
    uint32_t depth;
    uint32_t head; /* the oldest unanswered request's number; it is ring[head & mask] */
    uint32_t tail; /* the next request's number */
    uint32_t mask;
    uint32_t salt; /* opaque = number + salt */
    struct hg_load_pending *ring;
    struct hg_load_lane *lane;
    uint8_t *in; /* in_bytes of an unfinished reply; NULL until there was one */
    size_t in_bytes;
    uint8_t *out; /* bytes out_at .. out_bytes were not taken yet */
    size_t out_at;
    size_t out_bytes;
    size_t out_room;
    bool is_paced; /* stands in its lane's row */
    struct hg_load_conn *paced_next;
};

/* Takes over a connected, non-blocking socket. 0 or -ENOMEM, then the socket is still the caller's.
 */
HG_MUST_USE int hg_load_conn_init(struct hg_load_conn *conn, struct hg_load_lane *lane, int fd,
                                  uint32_t salt);
void hg_load_conn_fini(struct hg_load_conn *conn);

static inline uint32_t hg_load_conn_unanswered(const struct hg_load_conn *conn)
{
    return conn->tail - conn->head;
}

/* Sends what the lane has for it, up to the depth. */
void hg_load_conn_send(struct hg_load_conn *conn, uint64_t now_ns);

/* The same, but at most so many requests. */
void hg_load_conn_send_some(struct hg_load_conn *conn, uint64_t now_ns, uint64_t most);

/* The socket has something to read, or broke. Checks the replies, then sends again. */
void hg_load_conn_on_readable(struct hg_load_conn *conn);

/* The socket takes bytes again. */
void hg_load_conn_on_writable(struct hg_load_conn *conn, uint64_t now_ns);

/* Gives the connection up: says why, counts what stays unanswered, closes. */
HG_PRINTF(2, 3) void hg_load_conn_lose(struct hg_load_conn *conn, const char *format, ...);

#endif
