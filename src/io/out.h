// out - what a socket still has to send: small pieces copied into chunks, large ones by reference
// SPDX-License-Identifier: BSD-3-Clause
//
//   segments:  [chunk 0..812][blob 24..1048600][view 0..9000][chunk 0..96]
//
// Writing costs one copy into the last chunk; hg_out_flush hands up to HG_OUT_IOV segments to one
// writev. An empty queue owns no memory. A view is bytes of somebody else that hold until the end
// of the turn: hg_out_keep copies what is left of them. One thread owns the queue and its pool.
#ifndef HG_IO_OUT_H
#define HG_IO_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/blob.h"
#include "base/span.h"

#define HG_CHUNK_BYTES   (16384 - 64) /* room for small pieces in one chunk */
#define HG_OUT_IOV       64
#define HG_OUT_SHARE_MIN 8192 /* from this many bytes on a reference is cheaper than a copy */

struct hg_out_segment {
    struct hg_out_segment *next;
    struct hg_blob *blob; /* where the bytes live; NULL for a view */
    const uint8_t *at;    /* first byte not yet sent */
    uint32_t len;         /* bytes not yet sent */
    bool writable;        /* a chunk of ours: more may be appended behind at + len */
};

/* Shared by all queues of a thread. */
struct hg_out_pool {
    struct hg_blobs *blobs;
    struct hg_out_segment *free;
    uint8_t *spare_room; /* scratch for a reservation that found no memory */
};

struct hg_out {
    struct hg_out_pool *pool;
    struct hg_out_segment *first, *last;
    size_t bytes;      /* not yet sent */
    size_t held_bytes; /* memory kept alive: capacity of the chunks and blobs */
    uint32_t views;
    bool broken; /* memory ran out: what was queued is incomplete, close the socket */
};

void hg_out_pool_init(struct hg_out_pool *pool, struct hg_blobs *blobs);
void hg_out_pool_fini(struct hg_out_pool *pool);

void hg_out_init(struct hg_out *out, struct hg_out_pool *pool);
/* Drops everything that is queued. */
void hg_out_fini(struct hg_out *out);

/* Room for `bytes` <= HG_CHUNK_BYTES in one piece, to be filled and then told with hg_out_commit.
   Never NULL: when memory is out the queue becomes broken and the room is scratch. */
uint8_t *hg_out_reserve_slow(struct hg_out *out, size_t bytes);

static inline uint8_t *hg_out_reserve(struct hg_out *out, size_t bytes)
{
    struct hg_out_segment *last = out->last;
    if (HG_LIKELY(last != NULL && last->writable)) {
        uint8_t *end = (uint8_t *)(uintptr_t)last->at + last->len;
        if (HG_LIKELY((size_t)(last->blob->data + last->blob->cap - end) >= bytes))
            return end;
    }
    return hg_out_reserve_slow(out, bytes);
}

static inline void hg_out_commit(struct hg_out *out, size_t bytes)
{
    if (HG_UNLIKELY(out->broken))
        return;
    out->last->len += (uint32_t)bytes;
    out->bytes += bytes;
}

/* Copies `span`, of any length. */
void hg_out_put(struct hg_out *out, struct hg_span span);

/* Queues bytes within `blob` by reference (it takes a reference of its own), or copies them when
   they are few. */
void hg_out_put_blob(struct hg_out *out, struct hg_blob *blob, struct hg_span within);

/* Queues a view that holds until the end of the turn; hg_out_keep must be called before that. */
void hg_out_put_view(struct hg_out *out, struct hg_span view);

/* Copies what is left of the views, so that nothing refers to foreign memory any more. */
void hg_out_keep(struct hg_out *out);

/* The next bytes to send, up to `bytes` of them, in one piece: where they are, or joined in `room`.
   Asked again before anything is consumed, it gives the same bytes, and perhaps more. */
struct hg_span hg_out_gather(const struct hg_out *out, uint8_t *room, size_t bytes);

/* The first `bytes` of the queue are sent: lets go of them. At most what is queued. */
void hg_out_consume(struct hg_out *out, size_t bytes);

/* Writes what the socket takes. 0: all is gone; 1: the socket is full; -errno. */
HG_MUST_USE int hg_out_flush(struct hg_out *out, int fd);

static inline bool hg_out_empty(const struct hg_out *out)
{
    return out->bytes == 0;
}

#endif
