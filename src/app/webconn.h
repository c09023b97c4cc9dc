// webconn - the HTTP connections: how many, for how long, and with how much to send
// SPDX-License-Identifier: BSD-3-Clause
//
// libevent's HTTP server has no bound for any of these and does not tell when a connection ends. So
// each connection's bufferevent, which we make, is kept with a reference of our own, and let go
// when the server has: it then has no callbacks any more.
//
// A new connection always gets in: when there are too many, the one that has been without a request
// for longest is closed. So nobody can keep a scrape out by holding connections open. Who has not
// asked for anything in time, or does not take what it asked for, is closed too, however busily it
// sends or reads byte by byte.
#ifndef HG_APP_WEBCONN_H
#define HG_APP_WEBCONN_H

#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "io/loop.h"

#define HG_WEBCONN_MAX        64          /* connections; one more pushes one out */
#define HG_WEBCONN_ROOM       96          /* with those being closed; beyond, nothing is accepted */
#define HG_WEBCONN_FIRST_US   5000000     /* from the connect to the end of the first request */
#define HG_WEBCONN_IDLE_US    75000000    /* from a reply to the end of the next request */
#define HG_WEBCONN_REPLY_US   30000000    /* to take a reply */
#define HG_WEBCONN_BYTES_MAX  (64u << 20) /* of replies that are not taken yet, of all */
#define HG_WEBCONN_HEAD_BYTES 8192
#define HG_WEBCONN_BODY_BYTES 4096

struct hg_webconn {
    struct bufferevent *bev; /* NULL: free */
    uint64_t since_us;       /* the connect, the last request's end, or the last reply's */
    bool asked;              /* has sent a request, ever */
    bool answering;          /* a request is being answered */
    bool closing;
    size_t reply_bytes;
};

struct hg_webconns {
    struct hg_loop *loop;
    struct evconnlistener *listener;
    struct hg_hook hook;
    struct hg_webconn conns[HG_WEBCONN_ROOM];
    unsigned count;     /* in use */
    unsigned open;      /* of these, not closing */
    size_t reply_bytes; /* of all */
    bool paused;        /* there is no room */
    bool refuses;       /* for good */
};

/* Sets up limits of `http`, which accepts from `listener`. */
void hg_webconns_init(struct hg_webconns *conns, struct hg_loop *loop, struct evhttp *http,
                      struct evconnlistener *listener);
/* After evhttp_free. */
void hg_webconns_fini(struct hg_webconns *conns);
/* No more are accepted. */
void hg_webconns_refuse_new(struct hg_webconns *conns);
/* Once a second: closes whose time is over. */
void hg_webconns_look(struct hg_webconns *conns);
/* A request has come. */
void hg_webconns_begin(struct hg_webconns *conns, struct evhttp_request *request);
/* Its reply of so many bytes is about to be sent. False when too much is unsent already. */
HG_MUST_USE bool hg_webconns_reply(struct hg_webconns *conns, struct evhttp_request *request,
                                   size_t bytes);

#endif
