// heap - a priority queue whose nodes live inside their owners: the smallest key first
// SPDX-License-Identifier: BSD-3-Clause
//
// A pairing heap: putting one in takes constant time, taking one out (any, not only the smallest)
// O(log n) on average over many. Equal keys come in any order. No ownership, no memory of its own,
// no recursion. Pure. Source: Fredman, Sedgewick, Sleator, Tarjan, "The pairing heap", 1986.
#ifndef HG_BASE_HEAP_H
#define HG_BASE_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

/* `key` is read-only while the node is in a heap. */
struct hg_heap_node {
    struct hg_heap_node *child;
    struct hg_heap_node *next; /* sibling */
    struct hg_heap_node *prev; /* sibling before, or the parent of the first; NULL: the root */
    uint64_t key;
};

/* All zero: empty. */
struct hg_heap {
    struct hg_heap_node *root;
};

/* Puts in a node that is in no heap. */
void hg_heap_insert(struct hg_heap *heap, struct hg_heap_node *node, uint64_t key);
/* Takes out a node that is in this heap. */
void hg_heap_remove(struct hg_heap *heap, struct hg_heap_node *node);

/* The node with the smallest key, which stays in; NULL when empty. */
static inline struct hg_heap_node *hg_heap_first(const struct hg_heap *heap)
{
    return heap->root;
}

#endif
