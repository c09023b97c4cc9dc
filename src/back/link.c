// link - one pipelined connection to a server: its life, sending, time-outs
// SPDX-License-Identifier: BSD-3-Clause
#include "back/link.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "back/link_in.h"
#include "back/local.h"

static void on_writable(evutil_socket_t fd, short what, void *arg);

static struct hg_link_slot *slot_of(const struct hg_link *link, uint32_t seq)
{
    return &link->slots[seq & link->mask];
}

struct hg_link *hg_link_new(struct hg_hub *hub, const struct hg_dialect *dialect,
                            const struct hg_link_limits *limits, const struct hg_link_owner *owner,
                            void *pool, struct hg_upstream_counters *counters)
{
    uint32_t slots = 1;
    while (slots < 2 * limits->depth)
        slots *= 2;
    struct hg_link *link = calloc(1, sizeof *link);
    if (link == NULL)
        return NULL;
    link->slots = calloc(slots, sizeof *link->slots);
    if (dialect->reader_new != NULL)
        link->reader = dialect->reader_new(limits->max_reply);
    if (link->slots == NULL || (link->reader == NULL && dialect->reader_new != NULL)) {
        if (link->reader != NULL)
            dialect->reader_free(link->reader);
        free(link->slots);
        free(link);
        return NULL;
    }
    link->hub = hub;
    link->dialect = dialect;
    link->limits = limits;
    link->owner = owner;
    link->pool = pool;
    link->counters = counters;
    link->mask = slots - 1;
    link->fd = -1;
    link->expire_us = UINT64_MAX;
    link->heard_us = hub->loop->now_us;
    hg_out_init(&link->out, hub->outs);
    hg_list_init(&link->dirty_node);
    hg_list_init(&link->node);
    hg_hub_wake_init(&link->wake, hg_link_on_wake);
    return link;
}

void hg_link_free(struct hg_link *link)
{
    if (link == NULL)
        return;
    assert(link->fd < 0 && link->head == link->tail);
    if (link->reader != NULL)
        link->dialect->reader_free(link->reader);
    free(link->slots);
    free(link);
}

static void close_socket(struct hg_link *link)
{
    if (link->fd < 0)
        return;
    if (event_initialized(&link->read_event))
        event_del(&link->read_event);
    if (event_initialized(&link->write_event))
        event_del(&link->write_event);
    hg_tls_free(link->tls);
    link->tls = NULL;
    close(link->fd);
    link->fd = -1;
}

void hg_link_end(struct hg_link *link, enum hg_link_why why, int error)
{
    if (link->state == HG_LINK_DEAD)
        return;
    enum hg_link_state was = link->state;
    if (HG_UNLIKELY(was == HG_LINK_CONNECTING && link->tls != NULL && why == HG_LINK_NO_CONNECT)) {
        hg_link_tls_tell(link, error == -ETIMEDOUT ? "no answer in time" : strerror(-error));
        why = HG_LINK_TLS_FAILED;
    }
    link->state = HG_LINK_DEAD;
    hg_list_remove(&link->dirty_node);
    hg_list_remove(&link->wake.node);
    close_socket(link);
    link->owner->on_end(link, was, why, error);
    assert(link->head == link->tail);
    hg_out_fini(&link->out);
    hg_blob_unref(link->part);
    link->part = NULL;
    hg_list_remove(&link->node);
    hg_list_append(&link->hub->dead, &link->node);
}

const char *hg_link_end_text(const struct hg_link *link, enum hg_link_why why, int error,
                             char out[HG_LINK_WHY_BYTES])
{
    static const char *const texts[] = {
        [HG_LINK_REFUSED] = "cannot connect",
        [HG_LINK_LOCAL] = "cannot connect",
        [HG_LINK_NO_CONNECT] = "cannot connect",
        [HG_LINK_TLS_FAILED] = "TLS failed",
        [HG_LINK_REJECTED] = "cannot log in",
        [HG_LINK_CLOSED] = "connection lost",
        [HG_LINK_GARBAGE] = "connection closed for a bad reply",
        [HG_LINK_SILENT] = "connection closed, the server is silent",
        [HG_LINK_MEMORY] = "connection closed, memory is out",
        [HG_LINK_LET_GO] = "connection closed",
    };
    bool is_told =
        why == HG_LINK_NO_CONNECT || why == HG_LINK_TLS_FAILED || why == HG_LINK_REJECTED;
    const char *more = is_told && link->denial[0] != '\0' ? link->denial
                       : error == 0                       ? "end of stream"
                                                          : strerror(-error);
    snprintf(out, HG_LINK_WHY_BYTES, "%s: %s", texts[why], more);
    return out;
}

void hg_link_log_in(struct hg_link *link, bool rebind)
{
    link->heard_us = link->hub->loop->now_us;
    if (!rebind && hg_link_takes_early(link)) {
        link->state = HG_LINK_READY; /* perhaps with calls already */
        link->owner->on_ready(link);
        if (link->state != HG_LINK_DEAD && !hg_out_empty(&link->out))
            hg_hub_send_later(link->hub, &link->dirty_node);
        return;
    }
    assert(link->head == link->tail);
    uint32_t replies = link->dialect->encode_login(link->dialect, &link->out, link->identity,
                                                   rebind, link->probe, link->tail);
    assert(replies > 0 && replies <= UINT8_MAX);
    link->state = HG_LINK_HANDSHAKE;
    *slot_of(link, link->tail++) = (struct hg_link_slot){
        .sent_us = link->heard_us, .expire_us = UINT64_MAX, .before = (uint8_t)(replies - 1)};
    hg_hub_send_later(link->hub, &link->dirty_node);
}

void hg_link_rebind(struct hg_link *link, const struct hg_identity *identity)
{
    assert(link->state == HG_LINK_READY && link->head == link->tail);
    link->identity = identity;
    link->probe = false;
    hg_link_log_in(link, true);
}

/* The socket is connected. */
static void come_up(struct hg_link *link)
{
    hg_sock_tune(link->fd, link->keepalive_s);
    if (event_assign(&link->read_event, link->hub->loop->base, link->fd, EV_READ | EV_PERSIST,
                     hg_link_on_readable, link) != 0 ||
        event_add(&link->read_event, NULL) != 0) {
        hg_link_end(link, HG_LINK_MEMORY, -ENOMEM);
        return;
    }
    if (link->uptls != NULL)
        hg_link_tls_begin(link);
    else
        hg_link_log_in(link, false);
}

static bool set_socket(struct hg_link *link, int fd)
{
    link->fd = fd;
    if (event_assign(&link->write_event, link->hub->loop->base, fd, EV_WRITE, on_writable, link) ==
        0)
        return true;
    hg_link_end(link, HG_LINK_MEMORY, -ENOMEM);
    return false;
}

enum hg_link_why hg_link_why_of(int error)
{
    if (hg_local_is(error))
        return HG_LINK_LOCAL;
    return error == -ECONNREFUSED || error == -ENOENT ? HG_LINK_REFUSED : HG_LINK_NO_CONNECT;
}

/* One address failed. If this host lacks something for another (IPv6, say), that is not why. */
static void note_error(struct hg_link *link, int error)
{
    if (link->error == 0 || hg_local_is(link->error))
        link->error = error;
}

/* Tries one address after the other, until one answers, or will later. */
static void connect_next(struct hg_link *link)
{
    for (; link->tried < link->addrs->count; link->tried++) {
        bool done = false;
        int fd = hg_sock_connect(&link->addrs->list[hg_link_addr(link)], &done);
        if (fd < 0) {
            note_error(link, fd);
            continue;
        }
        if (!set_socket(link, fd))
            return;
        if (done)
            come_up(link);
        else if (event_add(&link->write_event, NULL) != 0)
            hg_link_end(link, HG_LINK_MEMORY, -ENOMEM);
        return;
    }
    hg_link_end(link, hg_link_why_of(link->error), link->error);
}

void hg_link_try_next(struct hg_link *link, enum hg_link_why why, int error)
{
    note_error(link, error);
    if (link->addrs == NULL || ++link->tried >= link->addrs->count) {
        if (why == HG_LINK_LOCAL) {
            error = link->error;
            why = hg_link_why_of(error);
        }
        hg_link_end(link, why, error);
        return;
    }
    link->denial[0] = '\0';
    close_socket(link);
    connect_next(link);
}

void hg_link_connect(struct hg_link *link, const struct hg_addrs *addrs, bool probe)
{
    link->addrs = addrs;
    link->probe = probe;
    connect_next(link);
}

void hg_link_adopt(struct hg_link *link, int fd, bool probe)
{
    link->probe = probe;
    if (set_socket(link, fd))
        come_up(link);
}

void hg_link_flush(struct hg_link *link)
{
    if (link->blocked || link->state == HG_LINK_CONNECTING || link->state == HG_LINK_DEAD)
        return;
    size_t before = link->out.bytes;
    int rc =
        HG_LIKELY(link->tls == NULL) ? hg_out_flush(&link->out, link->fd) : hg_link_tls_flush(link);
    hg_upstream_count(link->counters, HG_UPSTREAM_BYTES_OUT, before - link->out.bytes);
    if (HG_LIKELY(rc == 0)) {
        link->large_out = false;
    } else if (rc > 0) {
        link->blocked = event_add(&link->write_event, NULL) == 0;
        if (!link->blocked)
            hg_link_end(link, HG_LINK_MEMORY, -ENOMEM);
    } else {
        hg_link_receive(link); /* what the server still said before it broke off */
        hg_link_end(link, rc == -ENOMEM ? HG_LINK_MEMORY : HG_LINK_CLOSED, rc);
    }
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct hg_link *link = arg;
    hg_loop_stamp(link->hub->loop);
    if (link->state == HG_LINK_CONNECTING) {
        int error = link->tls != NULL ? 0 : hg_sock_error(fd);
        if (error != 0)
            hg_link_try_next(link, hg_link_why_of(error), error);
        else if (link->tls != NULL)
            hg_link_tls_step(link);
        else
            come_up(link);
        return;
    }
    link->blocked = false;
    hg_link_flush(link);
}

bool hg_link_submit(struct hg_link *link, struct hg_call *call, enum hg_fault *ret_fault)
{
    uint64_t now_us = link->hub->loop->now_us;
    uint32_t seq = link->tail;
    assert(seq - link->head <= link->mask);
    struct hg_link_slot *slot = slot_of(link, seq);
    size_t before = link->out.bytes;
    slot->before = 0;
    if (HG_UNLIKELY(!link->dialect->encode(link->dialect, &link->out, call, seq, &slot->tag,
                                           &slot->before, ret_fault)))
        return false;
    if (link->head == seq)
        link->heard_us = now_us;
    link->tail = seq + 1;
    uint64_t expire_us = now_us + link->limits->timeout_us;
    if (call->deadline_us != 0 && call->deadline_us < expire_us)
        expire_us = call->deadline_us;
    if (expire_us < link->expire_us)
        link->expire_us = expire_us;
    slot->call = call;
    slot->sent_us = call->sent_us = now_us;
    slot->expire_us = expire_us;
    slot->bytes = (uint32_t)(link->out.bytes - before);
    slot->moved = false;
    slot->stranded = 0;
    link->bytes += slot->bytes;
    if (HG_UNLIKELY(call->value.len >= HG_LINK_LARGE_BYTES))
        link->large_out = true;
    call->place.link = link;
    call->place.index = seq;
    call->place.pending = true;
    if (!link->blocked && link->state != HG_LINK_CONNECTING)
        hg_hub_send_later(link->hub, &link->dirty_node);
    return true;
}

/* Takes the call out of its slot, which stays until the reply has come. */
static void forget(struct hg_link_slot *slot, struct hg_call *call)
{
    slot->call = NULL;
    call->place.link = NULL;
    call->place.pending = false;
    hg_tie_end(call);
}

/* A reply is still owed to the slot, of which the call was taken out. */
static void strand(struct hg_link *link, struct hg_link_slot *slot, uint64_t ticket)
{
    if (ticket == 0 || link->owner->on_strand == NULL)
        return;
    slot->stranded = ticket;
    link->owner->on_strand(link, ticket, 1);
}

void hg_link_cancel(struct hg_link *link, struct hg_call *call)
{
    struct hg_link_slot *slot = slot_of(link, call->place.index);
    assert(slot->call == call);
    forget(slot, call);
    strand(link, slot, call->ticket);
}

static void expire(struct hg_link *link, uint64_t now_us)
{
    /* Calls that are submitted meanwhile lower the bound themselves. */
    link->expire_us = UINT64_MAX;
    uint64_t next_us = UINT64_MAX;
    uint32_t end = link->tail;
    for (uint32_t seq = link->head; seq != end; seq++) {
        struct hg_link_slot *slot = slot_of(link, seq);
        struct hg_call *call = slot->call;
        if (call == NULL)
            continue;
        if (slot->expire_us > now_us) {
            if (slot->expire_us < next_us)
                next_us = slot->expire_us;
            continue;
        }
        hg_upstream_count(link->counters, HG_UPSTREAM_TIMEOUTS, 1);
        link->owner->on_timeout(link, call, now_us - slot->sent_us);
        forget(slot, call);
        strand(link, slot, call->ticket);
        const struct hg_result result = {.fault = HG_FAULT_TIMEOUT, .server = link->server};
        call->on_done(call, &result);
    }
    if (next_us < link->expire_us)
        link->expire_us = next_us;
}

void hg_link_tick(struct hg_link *link, uint64_t now_us)
{
    if (link->head == link->tail)
        return;
    if (now_us >= link->expire_us)
        expire(link, now_us);
    if ((link->state == HG_LINK_READY || link->state == HG_LINK_DRAINING) &&
        now_us - link->heard_us >= link->limits->silent_us)
        hg_link_end(link, HG_LINK_SILENT, -ETIMEDOUT);
}

uint64_t hg_link_waited_us(const struct hg_link *link, uint64_t now_us)
{
    return link->head == link->tail ? 0 : now_us - slot_of(link, link->head)->sent_us;
}

void hg_link_drain(struct hg_link *link)
{
    if (link->state != HG_LINK_READY)
        return;
    link->state = HG_LINK_DRAINING;
    if (link->head == link->tail)
        hg_link_end(link, HG_LINK_LET_GO, 0);
}

uint32_t hg_link_first_unsent(const struct hg_link *link)
{
    uint32_t seq = link->tail;
    if (link->out.broken)
        return seq; /* nobody knows what the queue holds */
    size_t left = link->out.bytes;
    while (seq != link->head && slot_of(link, seq - 1)->bytes <= left)
        left -= slot_of(link, --seq)->bytes;
    return seq;
}

void hg_link_fail(struct hg_link *link, uint32_t end, enum hg_fault fault)
{
    while (link->head != end) {
        struct hg_link_slot *slot = slot_of(link, link->head++);
        link->bytes -= slot->bytes;
        struct hg_call *call = slot->call;
        if (call == NULL) {
            hg_link_settle_slot(link, slot);
            continue;
        }
        if (fault == HG_FAULT_LOST)
            hg_upstream_count(link->counters, HG_UPSTREAM_LOST, 1);
        forget(slot, call);
        const struct hg_result result = {.fault = fault, .server = link->server};
        call->on_done(call, &result);
    }
}
