// arena - memory that is taken in small pieces and freed all at once
// SPDX-License-Identifier: BSD-3-Clause
//
// For what lives as long as one request: decoded messages, rows, results. Pieces come out of
// blocks that grow; nothing is freed but everything. A limit bounds what one request may take, so
// that a small message that unfolds to a large one ends in a refusal. After a reset the first block
// is kept: a request that fits into it allocates nothing. One thread at a time.
#ifndef HG_BASE_ARENA_H
#define HG_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"

#define HG_ARENA_FIRST_BYTES 4096 /* of the first block */

struct hg_arena_block;

struct hg_arena {
    struct hg_arena_block *first, *last;
    uint8_t *at, *end; /* free part of the last block */
    size_t used_bytes; /* of all blocks */
    size_t limit_bytes;
};

/* Takes no memory yet. */
void hg_arena_init(struct hg_arena *arena, size_t limit_bytes);
void hg_arena_fini(struct hg_arena *arena);
/* Everything taken is gone; the first block is kept. */
void hg_arena_reset(struct hg_arena *arena);

/* `bytes` (0 is allowed) aligned for any type, not cleared; NULL when the limit or memory is out.
 */
HG_MUST_USE void *hg_arena_take(struct hg_arena *arena, size_t bytes);
/* The same for an array, cleared; NULL also when count * size does not fit. */
HG_MUST_USE void *hg_arena_array(struct hg_arena *arena, size_t count, size_t size);
/* A copy; at == NULL when memory is out (an empty span is copied to a span that is not NULL). */
HG_MUST_USE struct hg_span hg_arena_copy(struct hg_arena *arena, struct hg_span bytes);

#endif
