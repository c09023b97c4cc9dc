// blob - counted blocks of bytes, kept for reuse by size class
// SPDX-License-Identifier: BSD-3-Clause
#include "base/blob.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SMALLEST_LOG2 8

/* The class of so many bytes; HG_BLOB_CLASSES when they are too many for any. */
static unsigned class_of(size_t bytes)
{
    if (bytes <= (size_t)1 << SMALLEST_LOG2)
        return 0;
    unsigned log2 = 64 - (unsigned)__builtin_clzll(bytes - 1); /* rounded up */
    unsigned c = log2 - SMALLEST_LOG2;
    return c < HG_BLOB_CLASSES ? c : HG_BLOB_CLASSES;
}

void hg_blobs_init(struct hg_blobs *pool)
{
    memset(pool, 0, sizeof *pool);
}

void hg_blobs_fini(struct hg_blobs *pool)
{
    for (unsigned c = 0; c < HG_BLOB_CLASSES; c++) {
        while (pool->free[c] != NULL) {
            struct hg_blob *blob = pool->free[c];
            pool->free[c] = blob->next_free;
            free(blob);
        }
        pool->kept[c] = 0;
    }
}

struct hg_blob *hg_blob_borrow(struct hg_blobs *pool, size_t bytes)
{
    unsigned c = class_of(bytes);
    struct hg_blob *blob = c < HG_BLOB_CLASSES ? pool->free[c] : NULL;
    if (blob != NULL) {
        pool->free[c] = blob->next_free;
        pool->kept[c] -= blob->cap;
    } else {
        size_t cap = c < HG_BLOB_CLASSES ? (size_t)1 << (SMALLEST_LOG2 + c) : bytes;
        if (cap > SIZE_MAX - sizeof *blob)
            return NULL;
        blob = malloc(sizeof *blob + cap);
        if (blob == NULL)
            return NULL;
        blob->pool = pool;
        blob->class_index = c;
        blob->cap = cap;
    }
    blob->refs = 1;
    blob->len = 0;
    blob->next_free = NULL;
    pool->live_bytes += blob->cap;
    return blob;
}

void hg_blob_unref(struct hg_blob *blob)
{
    if (blob == NULL)
        return;
    assert(blob->refs > 0);
    if (--blob->refs > 0)
        return;
    struct hg_blobs *pool = blob->pool;
    unsigned c = blob->class_index;
    pool->live_bytes -= blob->cap;
    if (c >= HG_BLOB_CLASSES || pool->kept[c] + blob->cap > HG_BLOB_KEEP_BYTES) {
        free(blob);
        return;
    }
    blob->next_free = pool->free[c];
    pool->free[c] = blob;
    pool->kept[c] += blob->cap;
}

struct hg_blob *hg_blob_new_loose(size_t bytes)
{
    struct hg_blob *blob = bytes > SIZE_MAX - sizeof *blob ? NULL : malloc(sizeof *blob + bytes);
    if (blob == NULL)
        return NULL;
    *blob = (struct hg_blob){.refs = 1, .class_index = HG_BLOB_CLASSES, .cap = bytes};
    return blob;
}

void hg_blob_free_loose(struct hg_blob *blob)
{
    assert(blob == NULL || (blob->pool == NULL && blob->refs == 1));
    free(blob);
}

void hg_blob_adopt(struct hg_blobs *pool, struct hg_blob *blob)
{
    assert(blob->pool == NULL);
    blob->pool = pool;
    pool->live_bytes += blob->cap;
}
