// link_move - what a connection that ended had not begun to send goes to another
// SPDX-License-Identifier: BSD-3-Clause
//
//   queue:   [rest of a request][request 20][request 21][request 22]     as segments of any cut
//             not to be moved     ^ first unsent
//
// The bytes of a request are all there, so they are copied (large values by reference) and get
// the opaque of their new place.
#include "back/link.h"

#include <string.h>

/* A place in the queue of bytes. */
struct cursor {
    const struct hg_out_segment *segment;
    uint32_t at;
};

/* The next bytes that lie in one piece, at most `len`; the cursor moves behind them. */
static struct hg_span next_piece(struct cursor *cursor, size_t len, struct hg_blob **ret_blob)
{
    while (cursor->at == cursor->segment->len) {
        cursor->segment = cursor->segment->next;
        cursor->at = 0;
    }
    size_t n = cursor->segment->len - cursor->at;
    if (n > len)
        n = len;
    struct hg_span piece = hg_span(cursor->segment->at + cursor->at, n);
    cursor->at += (uint32_t)n;
    *ret_blob = cursor->segment->blob;
    return piece;
}

static void skip(struct cursor *cursor, size_t bytes)
{
    struct hg_blob *blob;
    while (bytes > 0)
        bytes -= next_piece(cursor, bytes, &blob).len;
}

/* Copies one request of `bytes` bytes and gives it another opaque. */
static void copy(struct cursor *cursor, size_t bytes, struct hg_link *to, uint32_t opaque)
{
    uint8_t head[HG_DIALECT_HEAD_BYTES];
    struct hg_blob *blob;
    size_t len = bytes < sizeof head ? bytes : sizeof head, have = 0;
    while (have < len) {
        struct hg_span piece = next_piece(cursor, len - have, &blob);
        memcpy(head + have, piece.at, piece.len);
        have += piece.len;
    }
    if (to->dialect->restamp != NULL)
        to->dialect->restamp(head, opaque);
    hg_out_put(&to->out, hg_span(head, len));
    while (have < bytes) {
        struct hg_span piece = next_piece(cursor, bytes - have, &blob);
        hg_out_put_blob(&to->out, blob, piece);
        have += piece.len;
    }
}

/* Gives the call of `slot` a slot of `to`. */
static void settle_in(struct hg_link *to, const struct hg_link_slot *slot)
{
    uint32_t seq = to->tail++;
    if (to->head == seq)
        to->heard_us = to->hub->loop->now_us;
    to->slots[seq & to->mask] = *slot;
    to->slots[seq & to->mask].moved = true;
    to->bytes += slot->bytes;
    if (slot->bytes >= HG_LINK_LARGE_BYTES)
        to->large_out = true;
    if (slot->expire_us < to->expire_us)
        to->expire_us = slot->expire_us;
    slot->call->place.link = to;
    slot->call->place.index = seq;
    hg_upstream_count(to->counters, HG_UPSTREAM_RETRIES, 1);
    if (!to->blocked && to->state != HG_LINK_CONNECTING)
        hg_hub_send_later(to->hub, &to->dirty_node);
}

void hg_link_move(struct hg_link *link,
                  struct hg_link *(*target)(void *arg, const struct hg_call *call), void *arg)
{
    struct cursor cursor = {link->out.first, 0};
    size_t left = link->out.bytes;
    for (uint32_t seq = link->head; seq != link->tail; seq++)
        left -= link->slots[seq & link->mask].bytes;
    skip(&cursor, left); /* of a request that was sent in part */
    while (link->head != link->tail) {
        struct hg_link_slot slot = link->slots[link->head & link->mask];
        struct hg_link *to = NULL;
        if (slot.call != NULL && !slot.moved)
            to = target(arg, slot.call);
        if (to == NULL) {
            skip(&cursor, slot.bytes);
            hg_link_fail(link, link->head + 1, HG_FAULT_DOWN);
            continue;
        }
        link->head++;
        link->bytes -= slot.bytes;
        copy(&cursor, slot.bytes, to, to->tail);
        settle_in(to, &slot);
    }
}
