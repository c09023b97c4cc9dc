// blob - counted blocks of bytes, kept for reuse by size class
// SPDX-License-Identifier: BSD-3-Clause
//
// A blob holds what must outlive the turn of the loop in which it arrived: a frame that came in
// pieces, a reply that waits for its turn, a value that travels by reference. Small ones are kept
// on free lists of their size class, so that a worker allocates nothing after warm-up; a block
// over the largest class goes back to the heap at once. Each list keeps at most HG_BLOB_KEEP_BYTES.
// Classes are powers of two: a block is less than twice what was asked for, but for small ones.
//
// A pool and its blobs belong to one thread; the count is not atomic. What is handed from one
// thread to another is a loose blob: nobody's, until the receiver adopts it.
#ifndef HG_BASE_BLOB_H
#define HG_BASE_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

#define HG_BLOB_CLASSES    9 /* 256 to 65536 */
#define HG_BLOB_KEEP_BYTES (1u << 20)

struct hg_blobs {
    struct hg_blob *free[HG_BLOB_CLASSES];
    size_t kept[HG_BLOB_CLASSES];
    size_t live_bytes; /* capacity of all blobs that are borrowed now */
};

struct hg_blob {
    struct hg_blobs *pool;
    struct hg_blob *next_free;
    uint32_t refs;
    uint32_t class_index; /* HG_BLOB_CLASSES: straight from the heap */
    size_t cap;           /* bytes that fit in `data` */
    size_t len;           /* bytes in use; the borrower's affair */
    uint8_t data[];
};

void hg_blobs_init(struct hg_blobs *pool);

/* Frees what is kept. Every blob must have been given back. */
void hg_blobs_fini(struct hg_blobs *pool);

/* A blob with room for `bytes`, one reference and len 0; NULL when memory is out. */
HG_MUST_USE struct hg_blob *hg_blob_borrow(struct hg_blobs *pool, size_t bytes);

/* A blob of no pool, from the heap, with one reference and len 0; NULL when memory is out. On any
   thread. */
HG_MUST_USE struct hg_blob *hg_blob_new_loose(size_t bytes);
/* Of one that nobody has adopted; NULL is allowed. */
void hg_blob_free_loose(struct hg_blob *blob);
/* From now on the blob is like one that was borrowed from `pool`. */
void hg_blob_adopt(struct hg_blobs *pool, struct hg_blob *blob);

static inline struct hg_blob *hg_blob_ref(struct hg_blob *blob)
{
    blob->refs++;
    return blob;
}

/* Drops a reference; NULL is allowed. */
void hg_blob_unref(struct hg_blob *blob);

#endif
