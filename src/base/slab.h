// slab - objects of one size, allocated by the block and reused
// SPDX-License-Identifier: BSD-3-Clause
//
// Blocks are never given back before hg_slab_fini, so a slab is as large as its busiest moment.
// One thread owns a slab.
#ifndef HG_BASE_SLAB_H
#define HG_BASE_SLAB_H

#include <stddef.h>

#include "base/attr.h"

struct hg_slab {
    void *free;   /* linked through the first word of each object */
    void *blocks; /* linked through the first word of each block */
    size_t object_bytes;
    size_t per_block;
    size_t borrowed;
};

/* `object_bytes` is rounded up to 16. */
void hg_slab_init(struct hg_slab *slab, size_t object_bytes, size_t per_block);
void hg_slab_fini(struct hg_slab *slab);

/* An object with undefined contents; NULL when memory is out. */
HG_MUST_USE void *hg_slab_borrow(struct hg_slab *slab);
void hg_slab_give_back(struct hg_slab *slab, void *object);

#endif
