// hub - what the connections of one store on one worker share: scratch room and the end of a turn
// SPDX-License-Identifier: BSD-3-Clause
#include "back/hub.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "back/link.h"

static void send_all(struct hg_hook *hook)
{
    struct hg_hub *hub = HG_CONTAINER_OF(hook, struct hg_hub, send_hook);
    struct hg_list wakes;
    hg_list_init(&wakes);
    hg_list_splice(&wakes, &hub->wakes);
    struct hg_list *node;
    while ((node = hg_list_first(&wakes)) != NULL) {
        hg_list_remove(node);
        struct hg_hub_wake *wake = HG_CONTAINER_OF(node, struct hg_hub_wake, node);
        wake->fn(wake);
    }
    /* A link that breaks here may hand what it has not sent to another, which is sent too. */
    while ((node = hg_list_first(&hub->dirty)) != NULL) {
        hg_list_remove(node);
        hg_link_flush(HG_CONTAINER_OF(node, struct hg_link, dirty_node));
    }
    hub->sent_turn = hub->loop->turns;
    if (!hg_list_empty(&hub->wakes))
        hg_loop_again(hub->loop);
}

static void clean_up(struct hg_hook *hook)
{
    struct hg_hub *hub = HG_CONTAINER_OF(hook, struct hg_hub, cleanup_hook);
    struct hg_list *node;
    while ((node = hg_list_first(&hub->dead)) != NULL) {
        hg_list_remove(node);
        hg_link_free(HG_CONTAINER_OF(node, struct hg_link, node));
    }
}

int hg_hub_init(struct hg_hub *hub, struct hg_loop *loop, struct hg_mailbox *mailbox,
                struct hg_blobs *blobs, struct hg_out_pool *outs)
{
    memset(hub, 0, sizeof *hub);
    hub->loop = loop;
    hub->mailbox = mailbox;
    hub->blobs = blobs;
    hub->outs = outs;
    hub->sent_turn = UINT64_MAX;
    hub->scratch = malloc(HG_HUB_SCRATCH_BYTES);
    if (hub->scratch == NULL)
        return -ENOMEM;
    hg_list_init(&hub->wakes);
    hg_list_init(&hub->dirty);
    hg_list_init(&hub->dead);
    hg_loop_hook(loop, HG_STAGE_BACKENDS, &hub->send_hook, send_all);
    hg_loop_hook(loop, HG_STAGE_CLEANUP, &hub->cleanup_hook, clean_up);
    return 0;
}

void hg_hub_fini(struct hg_hub *hub)
{
    hg_loop_unhook(&hub->send_hook);
    hg_loop_unhook(&hub->cleanup_hook);
    clean_up(&hub->cleanup_hook);
    free(hub->scratch);
}
