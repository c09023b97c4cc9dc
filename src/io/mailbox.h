// mailbox - what other threads ask of a loop
// SPDX-License-Identifier: BSD-3-Clause
//
// A lock-free stack of letters and an eventfd. Posting never blocks and pokes the loop only when
// the box was empty; the loop takes the whole stack, turns it round and delivers in the order of
// posting. A letter is part of its sender's object and belongs to the mailbox until delivered.
#ifndef HG_IO_MAILBOX_H
#define HG_IO_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/attr.h"
#include "io/loop.h"

struct hg_letter {
    struct hg_letter *next;
    /* Runs on the loop's thread. It may free or post the letter again. */
    void (*deliver)(struct hg_letter *letter, void *receiver);
};

struct hg_mailbox {
    struct hg_letter *_Atomic stack;
    void *receiver;
    struct hg_loop *loop;
    int fd; /* eventfd */
    struct event event;
};

/* 0 or -errno. */
HG_MUST_USE int hg_mailbox_init(struct hg_mailbox *box, struct hg_loop *loop, void *receiver);
/* Delivers what is still in the box, then closes it; nobody may post any more. */
void hg_mailbox_fini(struct hg_mailbox *box);

/* From any thread. letter->deliver must be set. */
void hg_mailbox_post(struct hg_mailbox *box, struct hg_letter *letter);

/* When the loop turns no more: delivers what is in the box now. True when there was something, so
   that letters which lead to letters elsewhere can be followed until all boxes are empty. */
bool hg_mailbox_deliver(struct hg_mailbox *box);

/* Without the loop: waits at most timeout_ms for letters and delivers them. */
void hg_mailbox_wait(struct hg_mailbox *box, int timeout_ms);

#endif
