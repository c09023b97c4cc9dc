// hotshare - hot keys: what workers and housekeeping hand each other
// SPDX-License-Identifier: BSD-3-Clause
#include "front/hotshare.h"

#include <stdlib.h>

struct hg_hotshare *hg_hotshare_new(void)
{
    struct hg_hotshare *share = calloc(1, sizeof *share);
    if (share == NULL)
        return NULL;
    hg_list_init(&share->node);
    hg_list_init(&share->lists);
    return share;
}

void hg_hotshare_clear(struct hg_hotmem *mem, struct hg_hotshare *share)
{
    for (unsigned type = 0; type < HG_HOT_TYPES; type++) {
        hg_hotsketch_free(mem, share->sketches[type]);
        share->sketches[type] = NULL;
        share->keys[type] = NULL;
        share->refused[type] = false;
    }
    HG_LIST_EACH(node, &share->lists)
    {
        hg_list_remove(node);
        hg_hotlist_free(mem, HG_CONTAINER_OF(node, struct hg_hotlist, node));
    }
    hg_bucket_unref(share->bucket);
    share->bucket = NULL;
}

void hg_hotshare_free(struct hg_hotmem *mem, struct hg_hotshare *share)
{
    hg_list_remove(&share->node);
    hg_hotshare_clear(mem, share);
    free(share);
}

struct hg_hotparcel *hg_hotparcel_new(unsigned worker)
{
    struct hg_hotparcel *parcel = calloc(1, sizeof *parcel);
    if (parcel == NULL)
        return NULL;
    parcel->worker = worker;
    hg_list_init(&parcel->shares);
    hg_list_init(&parcel->idle);
    hg_list_init(&parcel->sketches);
    return parcel;
}

void hg_hotparcel_free(struct hg_hotmem *mem, struct hg_hotparcel *parcel)
{
    if (parcel == NULL)
        return;
    HG_LIST_EACH(share, &parcel->shares)
    hg_hotshare_free(mem, HG_CONTAINER_OF(share, struct hg_hotshare, node));
    HG_LIST_EACH(idle, &parcel->idle)
    hg_hotshare_free(mem, HG_CONTAINER_OF(idle, struct hg_hotshare, node));
    HG_LIST_EACH(sketch, &parcel->sketches)
    hg_hotsketch_free(mem, HG_CONTAINER_OF(sketch, struct hg_hotsketch, node));
    free(parcel);
}
