// link_tls - the part of a link that TLS is: its handshake, and reading what no event tells of
// SPDX-License-Identifier: BSD-3-Clause
//
//   socket connected ─► handshake, a step for each event ─► login ─► ...
//                        └ failed: the next address, or the end
//
// A step may cost half a millisecond of the worker's time (a key agreement, and the certificate
// checked), which all its clients wait for. So a turn makes a few only; who comes too late is woken
// in the next. Decrypted bytes that the link had no time for are come back to in the same way.
//
//   records:  [get][get][get][set ....... 9000] [set .... 16384 of 40000][.. 16384 of 40000][..
//   rest]
//
// A record holds whole requests, or a part of one: none has the end of a request that began in
// another record, and the beginning of the next. For memcached (1.6.18 at least) reads from a
// record what belongs to the request it is about, and then waits for the socket, not knowing of the
// bytes that are decrypted already: requests that lie there are answered when others come, or
// never.
#include "back/link_in.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"

/* Steps of handshakes in a turn, for an upstream: at half a millisecond each no request waits more
   than two for them. */
#define STEPS_PER_TURN 4

static bool may_step(struct hg_hub *hub)
{
    if (hub->shake_turn != hub->loop->turns) {
        hub->shake_turn = hub->loop->turns;
        hub->shakes = 0;
    }
    return hub->shakes++ < STEPS_PER_TURN;
}

void hg_link_tls_tell(struct hg_link *link, const char *why)
{
    snprintf(link->denial, sizeof link->denial, "%s", why);
    hg_upstream_count(link->counters, HG_UPSTREAM_TLS_FAILURES, 1);
    hg_log_debug("server=%s msg=\"TLS failed: %s\"", link->server, link->denial);
}

void hg_link_tls_step(struct hg_link *link)
{
    if (!may_step(link->hub)) {
        hg_hub_wake_later(link->hub, &link->wake);
        return;
    }
    switch (hg_tls_handshake(link->tls)) {
    case HG_TLS_WANT_READ:
        break;
    case HG_TLS_WANT_WRITE:
        if (event_add(&link->write_event, NULL) != 0)
            hg_link_end(link, HG_LINK_MEMORY, -ENOMEM);
        break;
    case HG_TLS_DONE:
        hg_hub_wake_later(link->hub, &link->wake); /* the server may have said more already */
        hg_link_log_in(link, false);
        break;
    case HG_TLS_FAILED:
        hg_link_tls_tell(link, hg_tls_why(link->tls));
        hg_link_try_next(link, HG_LINK_TLS_FAILED, -EPROTO);
        break;
    }
}

void hg_link_tls_begin(struct hg_link *link)
{
    link->tls = hg_uptls_begin(link->uptls, link->fd, link->host);
    if (link->tls == NULL)
        hg_link_end(link, HG_LINK_MEMORY, -ENOMEM);
    else
        hg_link_tls_step(link);
}

bool hg_link_tls_is_refused(struct hg_link *link)
{
    if (link->state == HG_LINK_HANDSHAKE && !link->live) {
        hg_link_tls_tell(link, hg_tls_why(link->tls));
        return true;
    }
    hg_log_warn("server=%s msg=\"TLS broke off: %s\"", link->server, hg_tls_why(link->tls));
    return false;
}

int hg_link_tls_flush(struct hg_link *link)
{
    if (link->out.broken)
        return -ENOMEM;
    uint32_t seq = hg_link_first_unsent(link);
    size_t rest = link->out.bytes;
    for (uint32_t s = seq; s != link->tail; s++)
        rest -= link->slots[s & link->mask].bytes;
    int rc = hg_tls_flush_part(link->tls, &link->out, rest); /* of one, or a login */
    while (rc == 0 && seq != link->tail) {
        size_t bytes = link->slots[seq++ & link->mask].bytes;
        while (seq != link->tail &&
               bytes + link->slots[seq & link->mask].bytes <= HG_TLS_RECORD_BYTES)
            bytes += link->slots[seq++ & link->mask].bytes;
        rc = hg_tls_flush_part(link->tls, &link->out, bytes);
    }
    return rc == 0 ? hg_tls_flush(link->tls, &link->out) : rc;
}

ssize_t hg_link_tls_read(struct hg_link *link, const struct iovec *iov, int count, bool *ret_more)
{
    size_t total = 0;
    ssize_t n = 0;
    *ret_more = true;
    for (int i = 0; i < count; i++) {
        for (size_t at = 0; at < iov[i].iov_len; at += (size_t)n, total += (size_t)n) {
            n = hg_tls_recv(link->tls, (char *)iov[i].iov_base + at, iov[i].iov_len - at);
            if (n > 0)
                continue;
            *ret_more = n != -EAGAIN;
            return total > 0 ? (ssize_t)total : n;
        }
    }
    return (ssize_t)total;
}

void hg_link_on_wake(struct hg_hub_wake *wake)
{
    struct hg_link *link = HG_CONTAINER_OF(wake, struct hg_link, wake);
    if (link->state == HG_LINK_CONNECTING)
        hg_link_tls_step(link);
    else
        hg_link_receive(link);
}
