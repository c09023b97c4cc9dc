// tie - what a call has with its store beyond a slot: bytes to say it again, and who waits for it
// SPDX-License-Identifier: BSD-3-Clause
#include "back/tie.h"

#include <string.h>

#define PER_BLOCK 256

/* Lets those that may come again do so. What they submit may wait again, for another. */
static void run(struct hg_hub_wake *wake)
{
    struct hg_ties *ties = HG_CONTAINER_OF(wake, struct hg_ties, wake);
    struct hg_list now, *node;
    hg_list_init(&now);
    hg_list_splice(&now, &ties->ready);
    while ((node = hg_list_first(&now)) != NULL) {
        struct hg_tie *tie = HG_CONTAINER_OF(node, struct hg_tie, node);
        struct hg_call *call = tie->call;
        hg_list_remove(node);
        call->place.waiting = false;
        if (tie->bytes == NULL)
            hg_tie_end(call); /* perhaps it does not come again */
        call->on_room(call);
    }
}

void hg_ties_init(struct hg_ties *ties, struct hg_hub *hub)
{
    memset(ties, 0, sizeof *ties);
    ties->hub = hub;
    hg_slab_init(&ties->slab, sizeof(struct hg_tie), PER_BLOCK);
    hg_list_init(&ties->ready);
    hg_hub_wake_init(&ties->wake, run);
}

void hg_ties_settle(struct hg_ties *ties)
{
    while (!hg_list_empty(&ties->ready))
        run(&ties->wake);
}

void hg_ties_fini(struct hg_ties *ties)
{
    hg_list_remove(&ties->wake.node);
    hg_slab_fini(&ties->slab);
}

static struct hg_tie *tie_of(struct hg_ties *ties, struct hg_call *call)
{
    struct hg_tie *tie = call->place.tie;
    if (tie != NULL)
        return tie;
    tie = hg_slab_borrow(&ties->slab);
    if (tie == NULL)
        return NULL;
    *tie = (struct hg_tie){.ties = ties, .call = call};
    hg_list_init(&tie->node);
    call->place.tie = tie;
    return tie;
}

/* Copies `span` behind what the blob has. */
static struct hg_span put(struct hg_blob *blob, struct hg_span span)
{
    uint8_t *at = blob->data + blob->len;
    if (span.len > 0)
        memcpy(at, span.at, span.len);
    blob->len += span.len;
    return hg_span(at, span.len);
}

bool hg_tie_keep(struct hg_ties *ties, struct hg_call *call)
{
    struct hg_tie *tie = tie_of(ties, call);
    if (tie == NULL)
        return false;
    if (tie->bytes != NULL)
        return true;
    bool by_ref = call->blob != NULL && call->value.len >= HG_OUT_SHARE_MIN;
    size_t copied = by_ref ? 0 : call->value.len;
    tie->bytes = hg_blob_borrow(ties->hub->blobs, call->prefix.len + call->key.len + copied);
    if (tie->bytes == NULL)
        return false;
    tie->bytes->len = 0;
    call->prefix = put(tie->bytes, call->prefix);
    call->key = put(tie->bytes, call->key);
    if (by_ref) {
        tie->value = hg_blob_ref(call->blob);
    } else if (copied > 0) {
        call->value = put(tie->bytes, call->value);
        call->blob = tie->bytes;
    }
    return true;
}

void hg_tie_unkeep(struct hg_call *call)
{
    struct hg_tie *tie = call->place.tie;
    hg_blob_unref(tie->bytes);
    hg_blob_unref(tie->value);
    tie->bytes = tie->value = NULL;
}

bool hg_tie_behind(struct hg_ties *ties, struct hg_call *call, struct hg_call *before)
{
    struct hg_tie *mine = tie_of(ties, call), *its = tie_of(ties, before);
    if (mine == NULL || its == NULL || its->behind != NULL)
        return false;
    mine->before = before;
    its->behind = call;
    call->place.pending = false;
    call->place.waiting = true;
    call->place.link = NULL;
    return true;
}

bool hg_tie_waits(const struct hg_call *call)
{
    struct hg_tie *tie = call->place.tie;
    return tie != NULL && (tie->before != NULL || !hg_list_empty(&tie->node));
}

void hg_tie_cancel(struct hg_call *call)
{
    call->place.waiting = false;
    hg_tie_end(call);
}

void hg_tie_end_slow(struct hg_call *call)
{
    struct hg_tie *tie = call->place.tie;
    struct hg_ties *ties = tie->ties;
    call->place.tie = NULL;
    if (tie->behind != NULL) {
        struct hg_tie *next = tie->behind->place.tie;
        next->before = NULL;
        hg_list_append(&ties->ready, &next->node);
        hg_hub_wake_later(ties->hub, &ties->wake);
    }
    if (tie->before != NULL)
        tie->before->place.tie->behind = NULL;
    if (tie->on_room != NULL)
        call->on_room = tie->on_room;
    hg_list_remove(&tie->node);
    hg_blob_unref(tie->bytes);
    hg_blob_unref(tie->value);
    hg_slab_give_back(&ties->slab, tie);
}
