// slab - objects of one size, allocated by the block and reused
// SPDX-License-Identifier: BSD-3-Clause
#include "base/slab.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_HEAD 16

void hg_slab_init(struct hg_slab *slab, size_t object_bytes, size_t per_block)
{
    memset(slab, 0, sizeof *slab);
    slab->object_bytes = (object_bytes + 15) & ~(size_t)15;
    slab->per_block = per_block;
}

void hg_slab_fini(struct hg_slab *slab)
{
    while (slab->blocks != NULL) {
        void *block = slab->blocks;
        slab->blocks = *(void **)block;
        free(block);
    }
    slab->free = NULL;
}

static int grow(struct hg_slab *slab)
{
    char *block = malloc(BLOCK_HEAD + slab->object_bytes * slab->per_block);
    if (block == NULL)
        return -1;
    *(void **)block = slab->blocks;
    slab->blocks = block;
    for (size_t i = slab->per_block; i-- > 0;) {
        void **object = (void **)(block + BLOCK_HEAD + i * slab->object_bytes);
        *object = slab->free;
        slab->free = object;
    }
    return 0;
}

void *hg_slab_borrow(struct hg_slab *slab)
{
    if (HG_UNLIKELY(slab->free == NULL) && grow(slab) != 0)
        return NULL;
    void **object = slab->free;
    slab->free = *object;
    slab->borrowed++;
    return object;
}

void hg_slab_give_back(struct hg_slab *slab, void *object)
{
    assert(slab->borrowed > 0);
    slab->borrowed--;
    *(void **)object = slab->free;
    slab->free = object;
}
