// list - a doubly linked list whose nodes live inside their owners
// SPDX-License-Identifier: BSD-3-Clause
//
// A head is a node that is linked to itself when the list is empty; a node that is in no list is
// linked to itself too, so removing twice is harmless. No ownership. Pure.
#ifndef HG_BASE_LIST_H
#define HG_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"

struct hg_list {
    struct hg_list *prev, *next;
};

static inline void hg_list_init(struct hg_list *node)
{
    node->prev = node->next = node;
}

static inline bool hg_list_empty(const struct hg_list *head)
{
    return head->next == head;
}

/* Puts `node`, which is in no list, in front of `before` (a head: at the end of the list). */
static inline void hg_list_put_before(struct hg_list *before, struct hg_list *node)
{
    node->prev = before->prev;
    node->next = before;
    before->prev->next = node;
    before->prev = node;
}

static inline void hg_list_append(struct hg_list *head, struct hg_list *node)
{
    hg_list_put_before(head, node);
}

static inline void hg_list_prepend(struct hg_list *head, struct hg_list *node)
{
    hg_list_put_before(head->next, node);
}

static inline void hg_list_remove(struct hg_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    hg_list_init(node);
}

/* First node, or NULL. */
static inline struct hg_list *hg_list_first(struct hg_list *head)
{
    return hg_list_empty(head) ? NULL : head->next;
}

/* Moves all of `from` to the end of `to`. */
static inline void hg_list_splice(struct hg_list *to, struct hg_list *from)
{
    if (hg_list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    hg_list_init(from);
}

/* `node` may be removed while walking. */
#define HG_LIST_EACH(node, head)                                                                   \
    for (struct hg_list *node = (head)->next, *node##_next = node->next; node != (head);           \
         node = node##_next, node##_next = node->next)

#endif
