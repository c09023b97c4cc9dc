// blob - counted blocks of bytes, kept for reuse by size class
// SPDX-License-Identifier: BSD-3-Clause
#include "base/blob.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const size_t class_bytes[HG_BLOB_CLASSES] = {256, 1024, 4096, 16384, 65536};

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
    unsigned c = 0;
    while (c < HG_BLOB_CLASSES && class_bytes[c] < bytes)
        c++;
    struct hg_blob *blob = c < HG_BLOB_CLASSES ? pool->free[c] : NULL;
    if (blob != NULL) {
        pool->free[c] = blob->next_free;
        pool->kept[c] -= blob->cap;
    } else {
        size_t cap = c < HG_BLOB_CLASSES ? class_bytes[c] : bytes;
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
