// resolve - names into addresses, on a thread of its own
// SPDX-License-Identifier: BSD-3-Clause
//
// getaddrinfo blocks, so one thread for the process asks one name after the other; the answer comes
// as a letter to the loop that asked. A request belongs to the resolver; the asker gets its address
// only to forget it, and must do so before its mailbox ends.
#ifndef HG_BACK_RESOLVE_H
#define HG_BACK_RESOLVE_H

#include <stdbool.h>
#include <stdint.h>

#include "back/addrs.h"
#include "base/attr.h"
#include "base/list.h"
#include "io/mailbox.h"

struct hg_resolver;

enum hg_resolve_state {
    HG_RESOLVE_QUEUED,
    HG_RESOLVE_IN_HAND,   /* the thread is about it */
    HG_RESOLVE_FORGOTTEN, /* so it is, and frees it then */
    HG_RESOLVE_POSTED
};

struct hg_resolve {
    struct hg_letter letter;
    struct hg_list node;
    enum hg_resolve_state state; /* under the resolver's lock */
    struct hg_mailbox *mailbox;
    void (*on_done)(struct hg_resolve *resolve, void *asker);
    void *asker;
    int error; /* 0 or -errno; -ENOENT: the name has no address */
    struct hg_addrs addrs;
    uint16_t default_port;
    char text[256 + 8];
};

/* NULL when there is no memory or no thread to be had. */
HG_MUST_USE struct hg_resolver *hg_resolver_new(void);
/* Every request was answered or forgotten. A look-up that still goes on is not waited for: its
   thread frees what is left. */
void hg_resolver_free(struct hg_resolver *resolver);

/* Asks for the addresses of `text`, an address as in io/sock; on_done(request, asker) runs on the
   loop of `mailbox`, and the request is freed when it returns. NULL when memory is out. */
HG_MUST_USE struct hg_resolve *hg_resolve_submit(struct hg_resolver *resolver, const char *text,
                                                 uint16_t default_port, struct hg_mailbox *mailbox,
                                                 void (*on_done)(struct hg_resolve *, void *),
                                                 void *asker);
/* On the loop that asked: on_done will not be called. NULL is allowed. */
void hg_resolve_forget(struct hg_resolver *resolver, struct hg_resolve *resolve);

#endif
