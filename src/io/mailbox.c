// mailbox - what other threads ask of a loop
// SPDX-License-Identifier: BSD-3-Clause
#include "io/mailbox.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* True when there were any. */
static bool deliver_all(struct hg_mailbox *box)
{
    struct hg_letter *stack = atomic_exchange_explicit(&box->stack, NULL, memory_order_acquire);
    struct hg_letter *queue = NULL;
    bool any = stack != NULL;
    while (stack != NULL) {
        struct hg_letter *letter = stack;
        stack = letter->next;
        letter->next = queue;
        queue = letter;
    }
    while (queue != NULL) {
        struct hg_letter *letter = queue;
        queue = letter->next;
        letter->deliver(letter, box->receiver);
    }
    return any;
}

static void on_poke(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    uint64_t count;
    /* Emptied first, so that a letter posted from now on pokes again. EAGAIN is harmless. */
    if (read(fd, &count, sizeof count) < 0 && errno != EAGAIN && errno != EINTR)
        return;
    struct hg_mailbox *box = arg;
    hg_loop_stamp(box->loop);
    (void)deliver_all(box);
}

int hg_mailbox_init(struct hg_mailbox *box, struct hg_loop *loop, void *receiver)
{
    atomic_init(&box->stack, NULL);
    box->receiver = receiver;
    box->loop = loop;
    box->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (box->fd < 0)
        return -errno;
    if (event_assign(&box->event, loop->base, box->fd, EV_READ | EV_PERSIST, on_poke, box) != 0 ||
        event_add(&box->event, NULL) != 0) {
        close(box->fd);
        return -ENOMEM;
    }
    return 0;
}

bool hg_mailbox_deliver(struct hg_mailbox *box)
{
    return deliver_all(box);
}

void hg_mailbox_fini(struct hg_mailbox *box)
{
    (void)deliver_all(box);
    event_del(&box->event);
    close(box->fd);
}

void hg_mailbox_post(struct hg_mailbox *box, struct hg_letter *letter)
{
    struct hg_letter *old = atomic_load_explicit(&box->stack, memory_order_relaxed);
    do {
        letter->next = old;
    } while (!atomic_compare_exchange_weak_explicit(&box->stack, &old, letter, memory_order_release,
                                                    memory_order_relaxed));
    if (old == NULL) {
        uint64_t one = 1;
        /* The counter cannot overflow: it is read before it is poked again. */
        if (write(box->fd, &one, sizeof one) < 0)
            return;
    }
}

void hg_mailbox_wait(struct hg_mailbox *box, int timeout_ms)
{
    struct pollfd pfd = {.fd = box->fd, .events = POLLIN};
    if (poll(&pfd, 1, timeout_ms) > 0)
        on_poke(box->fd, EV_READ, box);
}
