// slotsask - asks the servers of a Redis Cluster, one after the other, who owns which slots
// SPDX-License-Identifier: BSD-3-Clause
//
//   start ─► candidate: look up its name, connect, [TLS], [AUTH] + CLUSTER SLOTS ─► on_done(slots)
//              │ refused, silent, garbage, not a cluster, no slots
//              └─► the next one ... none left ─► on_done(NULL, why)
//
// A connection of its own for each question: it must get through when those that carry requests are
// full, broken, or not there yet, and a server that is asked may be none that requests go to. One
// question at a time. Belongs to the loop's thread.
#ifndef HG_BACK_SLOTSASK_H
#define HG_BACK_SLOTSASK_H

#include <stdbool.h>
#include <stdint.h>

#include "back/addrs.h"
#include "back/resolve.h"
#include "back/slotsreply.h"
#include "back/uptls.h"
#include "base/attr.h"
#include "io/loop.h"
#include "io/mailbox.h"

#define HG_SLOTSASK_CANDIDATES 32
#define HG_SLOTSASK_WHY        (HG_REDIRECT_ADDRESS + HG_SLOTSREPLY_WHY + 32)

struct hg_slotsask {
    struct hg_loop *loop;
    struct hg_mailbox *mailbox;
    struct hg_resolver *resolver; /* NULL: names cannot be looked up */
    struct hg_out_pool *outs;
    struct hg_uptls *uptls; /* NULL: plain connections */
    /* These may change between questions. */
    const char *user, *password; /* as identities have them; referred to */
    uint64_t timeout_us;         /* for each candidate */
    /* From the loop, never from within start. `slots` hold until it returns. `from`: who said so.
       NULL slots: nobody did, `why` says what the last one's fault was. */
    void (*on_done)(struct hg_slotsask *ask, const struct hg_slots *slots, const char *from,
                    const char *why);
    /* A candidate is of no use. May be NULL. */
    void (*on_useless)(struct hg_slotsask *ask, const char *candidate, const char *why,
                       bool for_tls);
    void *asker; /* the callbacks' use */

    bool running;
    uint32_t count, next; /* candidates, and the one after the one that is tried */
    uint32_t tried;       /* addresses of its name */
    char candidates[HG_SLOTSASK_CANDIDATES][HG_REDIRECT_ADDRESS];
    struct hg_resolve *resolve;
    struct hg_addrs addrs;
    struct hg_timer timer;
    int fd;
    bool connected; /* and, with TLS, the handshake is over */
    struct event read_event, write_event;
    struct hg_tls *tls;
    struct hg_out out; /* of the question, what is not sent yet */
    struct hg_slotsreply *reply;
    char why[HG_SLOTSASK_WHY];
};

/* The fields up to `asker` are set. 0 or -errno. */
HG_MUST_USE int hg_slotsask_init(struct hg_slotsask *ask);
/* A question that runs is dropped, on_done not called. */
void hg_slotsask_fini(struct hg_slotsask *ask);

/* Adds a candidate for the next question, unless it is there already or there are too many. */
void hg_slotsask_add(struct hg_slotsask *ask, const char *address);
/* Asks, unless a question runs. False: it runs, or no timer can be had. */
bool hg_slotsask_start(struct hg_slotsask *ask);

#endif
