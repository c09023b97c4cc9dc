// link_in - the receiving half of a link: read much at once, parse in place, match in order
// SPDX-License-Identifier: BSD-3-Clause
//
//   scratch:  [rest of last time][reply][reply][reply][beginning of a reply]
//                                                       └► copied to a blob of its size, which
//                                                          the next read fills up first
#include "back/link_in.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/log.h"
#include "proto/status.h"

/* Then the loop's other events get their turn; the socket stays readable. */
#define READS_PER_EVENT 4
#define USER_LOGGED     100 /* bytes of a user's name, escaped */

struct tally {
    uint32_t in_time;
    uint32_t late;
};

static bool is_bad(struct hg_link *link, const char *why)
{
    hg_log_warn("server=%s msg=\"%s, connection closed\"", link->server, why);
    hg_link_end(link, HG_LINK_GARBAGE, -EPROTO);
    return false;
}

/* A step of the login, or of what goes before a request. False when the link has ended. */
static bool take_plain(struct hg_link *link, const struct hg_reply *reply)
{
    const struct hg_result *result = &reply->result;
    if (HG_LIKELY(result->status == HG_STATUS_SUCCESS))
        return true;
    if (link->state != HG_LINK_HANDSHAKE)
        return is_bad(link, "what goes before a request was refused");
    bool rejected = result->status == HG_STATUS_AUTH_ERROR || result->status == HG_STATUS_EACCESS;
    snprintf(link->denial, sizeof link->denial, "%.*s", (int)result->value.len,
             (const char *)result->value.at);
    char user[USER_LOGGED + 1];
    hg_escape(user, sizeof user, hg_span_str(link->identity != NULL ? link->identity->user : ""));
    hg_log_warn("server=%s user=\"%s\" database=%u msg=\"%s: %s\"", link->server, user,
                link->identity != NULL ? link->identity->database : 0,
                rejected ? "the login was refused" : "the server is not ready", link->denial);
    hg_link_end(link, rejected ? HG_LINK_REJECTED : HG_LINK_NO_CONNECT,
                rejected ? -EACCES : -EAGAIN);
    return false;
}

/* The reply of a slot whose call has gone, or the last of the login. */
static bool take_uncalled(struct hg_link *link, struct hg_link_slot *slot,
                          const struct hg_reply *reply, struct tally *tally)
{
    if (link->state != HG_LINK_HANDSHAKE) {
        tally->late++;
        hg_link_settle_slot(link, slot);
        return true;
    }
    if (!take_plain(link, reply))
        return false;
    link->state = HG_LINK_READY;
    link->owner->on_ready(link);
    return link->state != HG_LINK_DEAD;
}

/* Gives the reply to the oldest request. False when the link has ended. */
static bool match(struct hg_link *link, struct hg_reply *reply, struct hg_blob *blob,
                  struct tally *tally)
{
    uint32_t seq = link->head;
    struct hg_link_slot *slot = &link->slots[seq & link->mask];
    if (HG_UNLIKELY(seq == link->tail))
        return is_bad(link, "a reply that nobody asked for");
    if (HG_UNLIKELY(reply->opaque != seq || reply->tag != slot->tag))
        return is_bad(link, "a reply to another request");
    link->proved = true;
    if (HG_UNLIKELY(slot->before > 0)) {
        slot->before--;
        return take_plain(link, reply);
    }
    struct hg_call *call = slot->call;
    link->bytes -= slot->bytes;
    link->head = seq + 1;
    if (HG_UNLIKELY(link->full))
        link->owner->on_room(link);
    if (HG_UNLIKELY(call == NULL))
        return take_uncalled(link, slot, reply, tally);
    tally->in_time++;
    reply->result.blob = blob;
    reply->result.server = link->server;
    call->place.link = NULL;
    call->place.pending = false;
    if (HG_UNLIKELY(reply->again != HG_AGAIN_NO && link->owner->on_again != NULL)) {
        link->owner->on_again(link, call, reply);
        return link->state != HG_LINK_DEAD;
    }
    if (call->place.made_cas != 0 && reply->result.status == HG_STATUS_SUCCESS)
        reply->result.cas = call->place.made_cas;
    hg_tie_end(call);
    call->on_done(call, &reply->result);
    return true;
}

static enum hg_codec decode(struct hg_link *link, const uint8_t *at, size_t have,
                            struct hg_reply *reply)
{
    const struct hg_link_slot *slot = &link->slots[link->head & link->mask];
    const struct hg_due due = {.any = link->head != link->tail,
                               .plain = slot->before > 0 || link->state == HG_LINK_HANDSHAKE,
                               .tag = slot->tag,
                               .opaque = link->head};
    return link->dialect->decode(link->dialect, link->reader, at, have, link->limits->max_reply,
                                 &due, reply);
}

/* Keeps the beginning of a reply until the rest comes, unless the reader has it. */
static bool keep(struct hg_link *link, const uint8_t *at, size_t have, uint64_t total)
{
    if (total == 0)
        return true;
    if (have < HG_DIALECT_HEAD_BYTES) {
        memcpy(link->start, at, have);
        link->part_have = have;
        return true;
    }
    link->part = hg_blob_borrow(link->hub->blobs, total);
    if (link->part == NULL) {
        hg_link_end(link, HG_LINK_MEMORY, -ENOMEM);
        return false;
    }
    memcpy(link->part->data, at, have);
    link->part->len = total;
    link->part_total = total;
    link->part_have = have;
    return true;
}

/* Gives all whole replies in at .. end to their calls and keeps the rest. */
static bool parse(struct hg_link *link, const uint8_t *at, const uint8_t *end, struct tally *tally)
{
    while (at < end) {
        struct hg_reply reply;
        enum hg_codec codec = decode(link, at, (size_t)(end - at), &reply);
        if (HG_UNLIKELY(codec == HG_BAD))
            return is_bad(link, "bytes that are no reply");
        if (codec == HG_MORE)
            return keep(link, at, (size_t)(end - at), reply.total_bytes);
        if (HG_UNLIKELY(!match(link, &reply, NULL, tally)))
            return false;
        at += reply.total_bytes;
    }
    return true;
}

/* The reply in link->part is whole. */
static bool take_part(struct hg_link *link, struct tally *tally)
{
    struct hg_blob *part = link->part;
    struct hg_reply reply;
    enum hg_codec codec = decode(link, part->data, (size_t)link->part_total, &reply);
    link->part = NULL;
    link->part_total = link->part_have = 0;
    bool ok =
        codec == HG_OK ? match(link, &reply, part, tally) : is_bad(link, "bytes that are no reply");
    hg_blob_unref(part);
    return ok;
}

/* `n` new bytes were read: first into link->part, if there is one, then into the scratch room. */
static bool take(struct hg_link *link, size_t n, struct tally *tally)
{
    const uint8_t *at = link->hub->scratch;
    if (link->part == NULL) {
        n += (size_t)link->part_have;
        link->part_have = 0;
        return parse(link, at, at + n, tally);
    }
    size_t rest = (size_t)(link->part_total - link->part_have);
    if (n < rest) {
        link->part_have += n;
        return true;
    }
    return take_part(link, tally) && parse(link, at, at + (n - rest), tally);
}

/* One read. Bytes, 0 at the end, or -errno; *ret_filled: there may be more. */
static ssize_t read_some(struct hg_link *link, bool *ret_filled)
{
    uint8_t *scratch = link->hub->scratch;
    struct iovec iov[2] = {{scratch, HG_HUB_SCRATCH_BYTES}, {NULL, 0}};
    int count = 1;
    size_t room = HG_HUB_SCRATCH_BYTES;
    if (link->part != NULL) {
        iov[1] = iov[0];
        iov[0].iov_base = link->part->data + link->part_have;
        iov[0].iov_len = (size_t)(link->part_total - link->part_have);
        room += iov[0].iov_len;
        count = 2;
    } else if (link->part_have > 0) {
        memcpy(scratch, link->start, (size_t)link->part_have);
        iov[0].iov_base = scratch + link->part_have;
        iov[0].iov_len -= (size_t)link->part_have;
        room = iov[0].iov_len;
    }
    ssize_t n;
    if (HG_UNLIKELY(link->tls != NULL))
        return hg_link_tls_read(link, iov, count, ret_filled);
    do {
        n = count == 1 ? recv(link->fd, iov[0].iov_base, iov[0].iov_len, 0)
                       : readv(link->fd, iov, count);
    } while (n < 0 && errno == EINTR);
    *ret_filled = n > 0 && (size_t)n == room;
    return n < 0 ? -errno : n;
}

void hg_link_receive(struct hg_link *link)
{
    struct tally tally = {0, 0};
    uint64_t now_us = link->hub->loop->now_us;
    uint64_t waited_us = hg_link_waited_us(link, now_us);
    bool filled = true, alive = true;
    ssize_t n = 1;
    for (unsigned i = 0; i < READS_PER_EVENT && filled && alive; i++) {
        n = read_some(link, &filled);
        if (n <= 0)
            break;
        link->heard_us = now_us;
        hg_upstream_count(link->counters, HG_UPSTREAM_BYTES_IN, (uint64_t)n);
        if (HG_LIKELY(link->live))
            hg_counter_set(&link->counters->heard_us, now_us);
        alive = take(link, (size_t)n, &tally);
    }
    hg_upstream_count(link->counters, HG_UPSTREAM_REPLIES, tally.in_time);
    if (HG_UNLIKELY(tally.late > 0))
        hg_upstream_count(link->counters, HG_UPSTREAM_LATE_REPLIES, tally.late);
    if (link->state == HG_LINK_DEAD)
        return;
    if (HG_UNLIKELY(link->tls != NULL && n > 0 && filled))
        hg_hub_wake_later(link->hub, &link->wake); /* what is decrypted already, no event tells */
    if (HG_UNLIKELY(n <= 0 && n != -EAGAIN)) {
        bool is_refused = n == -EPROTO && link->tls != NULL && hg_link_tls_is_refused(link);
        hg_link_end(link, is_refused ? HG_LINK_TLS_FAILED : HG_LINK_CLOSED, (int)n);
        return;
    }
    if (link->state == HG_LINK_DRAINING && link->head == link->tail)
        hg_link_end(link, HG_LINK_LET_GO, 0);
    else if (tally.in_time + tally.late > 0)
        link->owner->on_answers(link, tally.in_time, tally.late, waited_us);
}

void hg_link_on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct hg_link *link = arg;
    hg_loop_stamp(link->hub->loop);
    if (HG_UNLIKELY(link->state == HG_LINK_CONNECTING))
        hg_link_tls_step(link);
    else
        hg_link_receive(link);
}
