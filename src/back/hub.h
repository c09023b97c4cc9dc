// hub - what the connections of one store on one worker share: scratch room and the end of a turn
// SPDX-License-Identifier: BSD-3-Clause
//
//   HG_STAGE_BACKENDS:  wake who waits for room -> send, each connection once -> again, while
//                       there is work
//   HG_STAGE_CLEANUP:   free the connections that ended in this turn
//
// So requests that were let in at the end of the turn leave with those that were there before, and
// nobody's connection is freed under his feet. Belongs to the worker's thread.
#ifndef HG_BACK_HUB_H
#define HG_BACK_HUB_H

#include <stdint.h>

#include "base/attr.h"
#include "base/blob.h"
#include "base/list.h"
#include "io/loop.h"
#include "io/mailbox.h"
#include "io/out.h"

#define HG_HUB_SCRATCH_BYTES (256 * 1024)

struct hg_hub {
    struct hg_loop *loop;
    struct hg_mailbox *mailbox;
    struct hg_blobs *blobs;
    struct hg_out_pool *outs;
    uint8_t *scratch;     /* HG_HUB_SCRATCH_BYTES, where replies are read to and parsed */
    struct hg_list wakes; /* hg_hub_wake.node */
    struct hg_list dirty; /* hg_link.dirty_node */
    struct hg_list dead;  /* hg_link.node */
    uint64_t sent_turn;   /* the last turn whose sending is over */
    uint64_t shake_turn;  /* the turn in which `shakes` steps of TLS handshakes were made */
    uint32_t shakes;
    struct hg_hook send_hook, cleanup_hook;
};

/* Called at the end of the turn, and no more than once a turn. */
struct hg_hub_wake {
    struct hg_list node;
    void (*fn)(struct hg_hub_wake *wake);
};

/* 0 or -ENOMEM. */
HG_MUST_USE int hg_hub_init(struct hg_hub *hub, struct hg_loop *loop, struct hg_mailbox *mailbox,
                            struct hg_blobs *blobs, struct hg_out_pool *outs);
/* Every link must have ended. */
void hg_hub_fini(struct hg_hub *hub);

static inline void hg_hub_wake_init(struct hg_hub_wake *wake, void (*fn)(struct hg_hub_wake *))
{
    hg_list_init(&wake->node);
    wake->fn = fn;
}

/* There is something to do at the end of the turn: if that has passed, let the next one not wait.
 */
static inline void hg_hub_hurry(struct hg_hub *hub)
{
    if (hub->sent_turn == hub->loop->turns)
        hg_loop_again(hub->loop);
}

static inline void hg_hub_wake_later(struct hg_hub *hub, struct hg_hub_wake *wake)
{
    if (hg_list_empty(&wake->node))
        hg_list_append(&hub->wakes, &wake->node);
    hg_hub_hurry(hub);
}

static inline void hg_hub_send_later(struct hg_hub *hub, struct hg_list *dirty_node)
{
    if (hg_list_empty(dirty_node))
        hg_list_append(&hub->dirty, dirty_node);
    hg_hub_hurry(hub);
}

#endif
