// out - what a socket still has to send: small pieces copied into chunks, large ones by reference
// SPDX-License-Identifier: BSD-3-Clause
#include "io/out.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Few bytes first: a connection with one small reply takes a small block, a busy one whole chunks;
   and what lies between two references is mostly the head of one reply. */
#define FIRST_CHUNK_BYTES 1024

void hg_out_pool_init(struct hg_out_pool *pool, struct hg_blobs *blobs)
{
    memset(pool, 0, sizeof *pool);
    pool->blobs = blobs;
}

void hg_out_pool_fini(struct hg_out_pool *pool)
{
    while (pool->free != NULL) {
        struct hg_out_segment *segment = pool->free;
        pool->free = segment->next;
        free(segment);
    }
    free(pool->spare_room);
}

void hg_out_init(struct hg_out *out, struct hg_out_pool *pool)
{
    memset(out, 0, sizeof *out);
    out->pool = pool;
}

static void drop_first(struct hg_out *out)
{
    struct hg_out_segment *segment = out->first;
    out->first = segment->next;
    if (out->first == NULL)
        out->last = NULL;
    out->bytes -= segment->len;
    if (segment->blob != NULL) {
        out->held_bytes -= segment->blob->cap;
        hg_blob_unref(segment->blob);
    } else {
        out->views--;
    }
    segment->next = out->pool->free;
    out->pool->free = segment;
}

void hg_out_fini(struct hg_out *out)
{
    while (out->first != NULL)
        drop_first(out);
}

/* A segment at the end of the queue over `blob` (whose reference it takes over) or a view. */
static struct hg_out_segment *append(struct hg_out *out, struct hg_blob *blob, struct hg_span span)
{
    struct hg_out_segment *segment = out->pool->free;
    if (segment != NULL)
        out->pool->free = segment->next;
    else
        segment = malloc(sizeof *segment);
    if (segment == NULL) {
        out->broken = true;
        hg_blob_unref(blob);
        return NULL;
    }
    *segment = (struct hg_out_segment){NULL, blob, span.at, (uint32_t)span.len, false};
    if (out->last != NULL)
        out->last->next = segment;
    else
        out->first = segment;
    out->last = segment;
    out->bytes += span.len;
    if (blob != NULL)
        out->held_bytes += blob->cap;
    else
        out->views++;
    return segment;
}

uint8_t *hg_out_reserve_slow(struct hg_out *out, size_t bytes)
{
    assert(bytes <= HG_CHUNK_BYTES);
    if (!out->broken) {
        bool after_small = out->last != NULL && out->last->writable;
        size_t want = after_small ? HG_CHUNK_BYTES : FIRST_CHUNK_BYTES;
        struct hg_blob *blob = hg_blob_borrow(out->pool->blobs, want < bytes ? bytes : want);
        struct hg_out_segment *segment = NULL;
        if (blob != NULL)
            segment = append(out, blob, hg_span(blob->data, 0));
        if (segment != NULL) {
            segment->writable = true;
            return blob->data;
        }
        out->broken = true;
    }
    if (out->pool->spare_room == NULL)
        out->pool->spare_room = malloc(HG_CHUNK_BYTES);
    if (out->pool->spare_room == NULL)
        abort(); /* not even 16 KiB are left, and the caller was promised room */
    return out->pool->spare_room;
}

void hg_out_put(struct hg_out *out, struct hg_span span)
{
    while (span.len > 0 && !out->broken) {
        size_t room = 0;
        if (out->last != NULL && out->last->writable) {
            struct hg_out_segment *last = out->last;
            room = (size_t)(last->blob->data + last->blob->cap - (last->at + last->len));
        }
        size_t n = span.len;
        if (room == 0)
            room = n < HG_CHUNK_BYTES ? n : HG_CHUNK_BYTES;
        if (n > room)
            n = room;
        memcpy(hg_out_reserve(out, n), span.at, n);
        hg_out_commit(out, n);
        span.at += n;
        span.len -= n;
    }
}

void hg_out_put_blob(struct hg_out *out, struct hg_blob *blob, struct hg_span within)
{
    if (within.len < HG_OUT_SHARE_MIN)
        hg_out_put(out, within);
    else
        append(out, hg_blob_ref(blob), within);
}

void hg_out_put_view(struct hg_out *out, struct hg_span view)
{
    if (view.len < HG_OUT_SHARE_MIN)
        hg_out_put(out, view);
    else
        append(out, NULL, view);
}

void hg_out_keep(struct hg_out *out)
{
    if (out->views == 0)
        return;
    for (struct hg_out_segment *s = out->first; s != NULL; s = s->next) {
        if (s->blob != NULL)
            continue;
        struct hg_blob *blob = hg_blob_borrow(out->pool->blobs, s->len);
        if (blob == NULL) {
            /* The bytes are lost, so the stream is: nobody may send a part of it. */
            out->broken = true;
            out->bytes -= s->len;
            s->len = 0;
            continue;
        }
        memcpy(blob->data, s->at, s->len);
        s->blob = blob;
        s->at = blob->data;
        out->held_bytes += blob->cap;
        out->views--;
    }
}

void hg_out_consume(struct hg_out *out, size_t bytes)
{
    assert(bytes <= out->bytes);
    while (out->first != NULL && bytes >= out->first->len) {
        bytes -= out->first->len;
        drop_first(out);
    }
    if (bytes > 0) {
        out->first->at += bytes;
        out->first->len -= (uint32_t)bytes;
        out->bytes -= bytes;
    }
}

struct hg_span hg_out_gather(const struct hg_out *out, uint8_t *room, size_t bytes)
{
    const struct hg_out_segment *s = out->first;
    if (s == NULL)
        return hg_span(room, 0);
    if (s->len >= bytes)
        return hg_span(s->at, bytes);
    if (s->next == NULL)
        return hg_span(s->at, s->len);
    size_t filled = 0;
    for (; s != NULL && filled < bytes; s = s->next) {
        size_t n = s->len < bytes - filled ? s->len : bytes - filled;
        if (n > 0)
            memcpy(room + filled, s->at, n);
        filled += n;
    }
    return hg_span(room, filled);
}

int hg_out_flush(struct hg_out *out, int fd)
{
    while (out->first != NULL) {
        if (out->broken)
            return -ENOMEM;
        struct iovec iov[HG_OUT_IOV];
        int count = 0;
        size_t offered = 0;
        for (struct hg_out_segment *s = out->first; s != NULL && count < HG_OUT_IOV; s = s->next) {
            iov[count].iov_base = (void *)(uintptr_t)s->at;
            iov[count].iov_len = s->len;
            offered += s->len;
            count++;
        }
        ssize_t sent;
        if (count == 1) {
            sent = send(fd, iov[0].iov_base, iov[0].iov_len, MSG_NOSIGNAL);
        } else {
            struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)count};
            sent = sendmsg(fd, &msg, MSG_NOSIGNAL);
        }
        if (sent < 0) {
            if (errno == EINTR)
                continue;
            return errno == EAGAIN || errno == EWOULDBLOCK ? 1 : -errno;
        }
        hg_out_consume(out, (size_t)sent);
        if ((size_t)sent < offered)
            return 1;
    }
    return 0;
}
