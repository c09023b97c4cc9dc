// arena - memory that is taken in small pieces and freed all at once
// SPDX-License-Identifier: BSD-3-Clause
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN 16

/* With AddressSanitizer, what was not taken is out of bounds: the free part of a block, and what a
   piece is rounded up by. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define HAS_ASAN
#endif
#endif
#if defined(HAS_ASAN) || defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes)   ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

struct hg_arena_block {
    struct hg_arena_block *next;
    size_t bytes; /* of data */
    uint8_t data[] __attribute__((aligned(ALIGN)));
};

void hg_arena_init(struct hg_arena *arena, size_t limit_bytes)
{
    memset(arena, 0, sizeof *arena);
    arena->limit_bytes = limit_bytes;
}

static void free_from(struct hg_arena *arena, struct hg_arena_block *block)
{
    while (block != NULL) {
        struct hg_arena_block *next = block->next;
        arena->used_bytes -= block->bytes;
        free(block);
        block = next;
    }
}

void hg_arena_fini(struct hg_arena *arena)
{
    free_from(arena, arena->first);
    hg_arena_init(arena, arena->limit_bytes);
}

void hg_arena_reset(struct hg_arena *arena)
{
    struct hg_arena_block *first = arena->first;
    if (first == NULL)
        return;
    free_from(arena, first->next);
    first->next = NULL;
    arena->last = first;
    arena->at = first->data;
    arena->end = first->data + first->bytes;
    ASAN_POISON_MEMORY_REGION(first->data, first->bytes);
}

/* A further block with room for at least `bytes`; false when there is none. */
static bool grow(struct hg_arena *arena, size_t bytes)
{
    size_t wanted = arena->last == NULL ? HG_ARENA_FIRST_BYTES : arena->last->bytes * 2;
    size_t left = arena->limit_bytes - arena->used_bytes;
    if (wanted > left)
        wanted = left;
    if (wanted < bytes)
        wanted = bytes;
    if (wanted > left)
        return false;
    struct hg_arena_block *block = malloc(sizeof *block + wanted);
    if (block == NULL)
        return false;
    block->next = NULL;
    block->bytes = wanted;
    if (arena->last != NULL)
        arena->last->next = block;
    else
        arena->first = block;
    arena->last = block;
    arena->at = block->data;
    arena->end = block->data + wanted;
    arena->used_bytes += wanted;
    ASAN_POISON_MEMORY_REGION(block->data, wanted);
    return true;
}

void *hg_arena_take(struct hg_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX - ALIGN)
        return NULL;
    size_t room = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (room == 0)
        room = ALIGN;
    if (room > (size_t)(arena->end - arena->at) && !grow(arena, room))
        return NULL;
    void *taken = arena->at;
    arena->at += room;
    ASAN_UNPOISON_MEMORY_REGION(taken, bytes);
    return taken;
}

void *hg_arena_array(struct hg_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    void *taken = hg_arena_take(arena, bytes);
    if (taken != NULL)
        memset(taken, 0, bytes);
    return taken;
}

struct hg_span hg_arena_copy(struct hg_arena *arena, struct hg_span bytes)
{
    uint8_t *at = hg_arena_take(arena, bytes.len);
    if (at == NULL)
        return HG_SPAN_NONE;
    if (bytes.len > 0)
        memcpy(at, bytes.at, bytes.len);
    return hg_span(at, bytes.len);
}
