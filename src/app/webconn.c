// webconn - the HTTP connections: how many, for how long, and with how much to send
// SPDX-License-Identifier: BSD-3-Clause
#include "app/webconn.h"

#include <string.h>
#include <sys/socket.h>

static struct hg_webconn *find(struct hg_webconns *conns, const struct bufferevent *bev)
{
    for (unsigned i = 0; i < HG_WEBCONN_ROOM; i++)
        if (bev != NULL && conns->conns[i].bev == bev)
            return &conns->conns[i];
    return NULL;
}

/* The server sees an end of file and cleans up by itself. */
static void close_conn(struct hg_webconns *conns, struct hg_webconn *conn)
{
    if (conn->closing)
        return;
    conn->closing = true;
    conns->open--;
    shutdown(bufferevent_getfd(conn->bev), SHUT_RDWR);
    /* While it is being answered nothing is read: the end has to be told. */
    if (conn->answering)
        bufferevent_trigger_event(conn->bev, BEV_EVENT_EOF | BEV_EVENT_WRITING,
                                  BEV_OPT_DEFER_CALLBACKS);
}

static void push_one_out(struct hg_webconns *conns)
{
    struct hg_webconn *oldest = NULL;
    for (unsigned i = 0; i < HG_WEBCONN_ROOM; i++) {
        struct hg_webconn *conn = &conns->conns[i];
        if (conn->bev == NULL || conn->closing)
            continue;
        if (oldest == NULL || conn->answering < oldest->answering ||
            (conn->answering == oldest->answering && conn->since_us < oldest->since_us))
            oldest = conn;
    }
    if (oldest != NULL)
        close_conn(conns, oldest);
}

/* A connection was accepted; its descriptor comes later. */
static struct bufferevent *on_connection(struct event_base *base, void *arg)
{
    struct hg_webconns *conns = arg;
    struct bufferevent *bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (bev == NULL)
        return NULL;
    hg_loop_stamp(conns->loop);
    if (conns->open >= HG_WEBCONN_MAX)
        push_one_out(conns);
    for (unsigned i = 0; i < HG_WEBCONN_ROOM; i++) {
        if (conns->conns[i].bev != NULL)
            continue;
        bufferevent_incref(bev);
        conns->conns[i] = (struct hg_webconn){.bev = bev, .since_us = conns->loop->now_us};
        conns->count++;
        conns->open++;
        break;
    }
    if (conns->count == HG_WEBCONN_ROOM) {
        evconnlistener_disable(conns->listener);
        conns->paused = true;
    }
    return bev;
}

static void let_go(struct hg_webconns *conns, struct hg_webconn *conn)
{
    conns->reply_bytes -= conn->reply_bytes;
    conns->count--;
    conns->open -= !conn->closing;
    bufferevent_decref(conn->bev);
    *conn = (struct hg_webconn){.bev = NULL};
}

/* At the end of a turn: what the server has freed. */
static void on_turn(struct hg_hook *hook)
{
    struct hg_webconns *conns = HG_CONTAINER_OF(hook, struct hg_webconns, hook);
    for (unsigned i = 0; i < HG_WEBCONN_ROOM; i++) {
        struct hg_webconn *conn = &conns->conns[i];
        bufferevent_event_cb on_event = NULL;
        if (conn->bev == NULL)
            continue;
        bufferevent_getcb(conn->bev, NULL, NULL, &on_event, NULL);
        if (on_event == NULL)
            let_go(conns, conn);
    }
    if (conns->paused && !conns->refuses && conns->count < HG_WEBCONN_ROOM) {
        evconnlistener_enable(conns->listener);
        conns->paused = false;
    }
}

void hg_webconns_refuse_new(struct hg_webconns *conns)
{
    conns->refuses = true;
    evconnlistener_disable(conns->listener);
}

void hg_webconns_init(struct hg_webconns *conns, struct hg_loop *loop, struct evhttp *http,
                      struct evconnlistener *listener)
{
    memset(conns, 0, sizeof *conns);
    conns->loop = loop;
    conns->listener = listener;
    evhttp_set_bevcb(http, on_connection, conns);
    evhttp_set_max_headers_size(http, HG_WEBCONN_HEAD_BYTES);
    evhttp_set_max_body_size(http, HG_WEBCONN_BODY_BYTES);
    evhttp_set_timeout(http, HG_WEBCONN_IDLE_US / 1000000);
    hg_loop_hook(loop, HG_STAGE_CLEANUP, &conns->hook, on_turn);
}

void hg_webconns_fini(struct hg_webconns *conns)
{
    if (conns->loop == NULL)
        return;
    for (unsigned i = 0; i < HG_WEBCONN_ROOM; i++)
        if (conns->conns[i].bev != NULL)
            let_go(conns, &conns->conns[i]);
    hg_loop_unhook(&conns->hook);
}

void hg_webconns_look(struct hg_webconns *conns)
{
    uint64_t now_us = conns->loop->now_us;
    for (unsigned i = 0; i < HG_WEBCONN_ROOM; i++) {
        struct hg_webconn *conn = &conns->conns[i];
        if (conn->bev == NULL)
            continue;
        uint64_t most_us = conn->answering ? HG_WEBCONN_REPLY_US
                           : conn->asked   ? HG_WEBCONN_IDLE_US
                                           : HG_WEBCONN_FIRST_US;
        if (now_us - conn->since_us > most_us)
            close_conn(conns, conn);
    }
}

static struct hg_webconn *of_request(struct hg_webconns *conns, struct evhttp_request *request)
{
    struct evhttp_connection *connection = evhttp_request_get_connection(request);
    return connection != NULL ? find(conns, evhttp_connection_get_bufferevent(connection)) : NULL;
}

void hg_webconns_begin(struct hg_webconns *conns, struct evhttp_request *request)
{
    struct hg_webconn *conn = of_request(conns, request);
    hg_loop_stamp(conns->loop);
    if (conn == NULL)
        return;
    conn->asked = conn->answering = true;
    conn->since_us = conns->loop->now_us;
}

static void on_complete(struct evhttp_request *request, void *arg)
{
    struct hg_webconns *conns = arg;
    struct hg_webconn *conn = of_request(conns, request);
    hg_loop_stamp(conns->loop);
    if (conn == NULL)
        return;
    conns->reply_bytes -= conn->reply_bytes;
    conn->reply_bytes = 0;
    conn->answering = false;
    conn->since_us = conns->loop->now_us;
}

bool hg_webconns_reply(struct hg_webconns *conns, struct evhttp_request *request, size_t bytes)
{
    struct hg_webconn *conn = of_request(conns, request);
    if (conn == NULL)
        return true; /* it has gone: sending frees the request */
    if (bytes > 0 && conns->reply_bytes + bytes > HG_WEBCONN_BYTES_MAX)
        return false;
    conn->reply_bytes += bytes;
    conns->reply_bytes += bytes;
    evhttp_request_set_on_complete_cb(request, on_complete, conns);
    return true;
}
