// heap - a priority queue whose nodes live inside their owners: the smallest key first
// SPDX-License-Identifier: BSD-3-Clause
//
// See heap.h. Each node's children are a list; two heaps are joined by making the root with the
// larger key the first child of the other. When a root goes, its children are joined in pairs from
// the left, and these one by one from the right: that is what keeps the average low.
#include "base/heap.h"

/* Both are roots, of which neither has a sibling. */
static struct hg_heap_node *join(struct hg_heap_node *a, struct hg_heap_node *b)
{
    if (b->key < a->key) {
        struct hg_heap_node *larger = a;
        a = b;
        b = larger;
    }
    b->next = a->child;
    b->prev = a;
    if (a->child != NULL)
        a->child->prev = b;
    a->child = b;
    return a;
}

/* Takes a root off a list of siblings. */
static struct hg_heap_node *take(struct hg_heap_node **list)
{
    struct hg_heap_node *node = *list;
    *list = node->next;
    node->next = node->prev = NULL;
    return node;
}

/* One heap of a list of siblings; NULL of none. */
static struct hg_heap_node *join_all(struct hg_heap_node *siblings)
{
    struct hg_heap_node *pairs = NULL, *root;

    while (siblings != NULL) {
        struct hg_heap_node *pair = take(&siblings);
        if (siblings != NULL)
            pair = join(pair, take(&siblings));
        pair->next = pairs;
        pairs = pair;
    }
    if (pairs == NULL)
        return NULL;
    root = take(&pairs);
    while (pairs != NULL)
        root = join(root, take(&pairs));
    return root;
}

void hg_heap_insert(struct hg_heap *heap, struct hg_heap_node *node, uint64_t key)
{
    *node = (struct hg_heap_node){.key = key};
    heap->root = heap->root == NULL ? node : join(heap->root, node);
}

void hg_heap_remove(struct hg_heap *heap, struct hg_heap_node *node)
{
    struct hg_heap_node *children = join_all(node->child);

    if (node == heap->root) {
        heap->root = children;
    } else {
        if (node->prev->child == node)
            node->prev->child = node->next;
        else
            node->prev->next = node->next;
        if (node->next != NULL)
            node->next->prev = node->prev;
        if (children != NULL)
            heap->root = join(heap->root, children);
    }
    *node = (struct hg_heap_node){.key = node->key};
}
