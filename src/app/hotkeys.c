// hotkeys - hot keys, housekeeping's side: epochs, and what workers hand over
// SPDX-License-Identifier: BSD-3-Clause
#include "app/hotkeys.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/probe_point.h"
#include "front/hot.h"

static uint64_t thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the end of an epoch ---- */

static void send_parcels(struct hg_hotkeys *hot)
{
    for (unsigned w = 0; w < hot->front->worker_count; w++) {
        struct hg_hotparcel *parcel = hot->parcels[w];
        if (parcel == NULL)
            continue;
        hot->parcels[w] = NULL;
        parcel->letter.deliver = hg_hot_on_parcel;
        hg_mailbox_post(&hot->front->workers[w].mailbox, &parcel->letter);
    }
}

void hg_hotkeys_forget_deleted(struct hg_hotkeys *hot)
{
    HG_LIST_EACH(node, &hot->tenants)
    {
        struct hg_hottenant *tenant = HG_CONTAINER_OF(node, struct hg_hottenant, node);
        if (hg_bucket_is_over(tenant->bucket))
            hg_hottenant_free(hot, tenant);
    }
}

static void finish(struct hg_hotkeys *hot)
{
    uint64_t begin_ns = thread_ns(), before = hg_counter_get(&hot->merged_shares);
    uint64_t shrunk = 0;
    hot->last = hot->open;
    hot->open = 0;
    hg_hotkeys_forget_deleted(hot);
    HG_LIST_EACH(node, &hot->tenants)
    {
        struct hg_hottenant *tenant = HG_CONTAINER_OF(node, struct hg_hottenant, node);
        hg_hottenant_finish(hot, tenant, hot->open_length_us);
        shrunk += tenant->small;
        if (hg_hottenant_is_idle(tenant))
            hg_hottenant_free(hot, tenant);
    }
    hg_hotkeys_share_memory(hot);
    send_parcels(hot);
    uint64_t spent_ns = thread_ns() - begin_ns;
    hg_counter_add(&hot->epochs, 1);
    hg_counter_add(&hot->merge_ns, spent_ns);
    hg_counter_set(&hot->last_merge_ns, spent_ns);
    hg_counter_set(&hot->last_shares, hg_counter_get(&hot->merged_shares) - before);
    hg_counter_set(&hot->last_length_us, hot->open_length_us);
    hg_counter_set(&hot->shrunk_tenants, shrunk);
}

static void on_waited(struct hg_timer *timer)
{
    struct hg_hotkeys *hot = HG_CONTAINER_OF(timer, struct hg_hotkeys, wait_timer);
    if (hot->open != 0)
        finish(hot);
}

struct end_letter {
    struct hg_letter letter;
    struct hg_hotkeys *hot;
    uint64_t epoch, length_us, wall_s;
};

static void on_end(struct hg_letter *letter, void *receiver)
{
    struct end_letter *end = HG_CONTAINER_OF(letter, struct end_letter, letter);
    struct hg_hotkeys *hot = end->hot;
    unsigned workers = hot->front->worker_count;
    (void)receiver;
    if (hot->open != 0)
        finish(hot); /* its time is more than over */
    hot->open = end->epoch;
    hot->open_length_us = end->length_us;
    hot->open_end_wall_s = end->wall_s;
    hot->pending = workers < 64 ? ((uint64_t)1 << workers) - 1 : UINT64_MAX;
    free(end);
    if (hot->pending == 0 || hg_loop_timer_arm(&hot->wait_timer, HG_HOT_WAIT_US) != 0)
        finish(hot);
}

void hg_hotkeys_end_epoch(struct hg_hotkeys *hot, uint64_t now_us, uint64_t wall_s,
                          uint64_t next_us)
{
    struct end_letter *end = malloc(sizeof *end);
    if (end == NULL)
        return;
    *end = (struct end_letter){
        {NULL, on_end}, hot, hot->next_epoch++, now_us - hot->last_end_us, wall_s};
    hot->last_end_us = now_us;
    atomic_store(&hot->front->hot.epoch_end_us, next_us);
    HG_PROBE_POINT(epoch__end, end->epoch, end->length_us, next_us);
    uint64_t epoch = end->epoch;
    /* First: that it has ended is known before anything of it comes. */
    hg_mailbox_post(hot->house, &end->letter);
    for (unsigned w = 0; w < hot->front->worker_count; w++)
        hg_hot_end_epoch(&hot->front->workers[w], epoch);
}

/* ---- what workers hand over ---- */

static void take_share(struct hg_hotkeys *hot, struct hg_hotshare *share)
{
    struct hg_hottenant *tenant =
        hg_bucket_is_over(share->bucket) ? NULL : hg_hottenant_of(hot, share->bucket);
    if (tenant == NULL)
        hg_hotshare_free(&hot->front->hot.mem, share);
    else
        hg_list_append(&tenant->shares, &share->node);
}

static void on_parcel(struct hg_letter *letter, void *receiver)
{
    struct hg_hotparcel *parcel = HG_CONTAINER_OF(letter, struct hg_hotparcel, letter);
    struct hg_hotkeys *hot = parcel->ctx;
    unsigned worker = parcel->worker;
    bool in_time = hot->open != 0 && parcel->epoch == hot->open;
    (void)receiver;
    if (!in_time)
        hg_counter_add(&hot->late_handovers, 1);
    HG_LIST_EACH(node, &parcel->shares)
    {
        hg_list_remove(node);
        take_share(hot, HG_CONTAINER_OF(node, struct hg_hotshare, node));
    }
    HG_LIST_EACH(node, &parcel->sketches)
    {
        hg_list_remove(node);
        hg_hotsketch_free(&hot->front->hot.mem, HG_CONTAINER_OF(node, struct hg_hotsketch, node));
    }
    if (hot->parcels[worker] == NULL)
        hot->parcels[worker] = parcel;
    else
        hg_hotparcel_free(&hot->front->hot.mem, parcel);
    if (!in_time)
        return;
    hot->pending &= ~((uint64_t)1 << worker);
    if (hot->pending == 0)
        finish(hot);
}

/* ---- begin and end ---- */

int hg_hotkeys_init(struct hg_hotkeys *hot, struct hg_front *front)
{
    hot->front = front;
    hot->next_epoch = 1;
    hg_list_init(&hot->tenants);
    hot->parcels = calloc(front->worker_count + 1, sizeof(struct hg_hotparcel *));
    return hot->parcels != NULL ? 0 : -ENOMEM;
}

int hg_hotkeys_open(struct hg_hotkeys *hot, struct hg_mailbox *house, struct hg_loop *loop,
                    uint64_t now_us)
{
    hot->house = house;
    hot->last_end_us = now_us;
    int rc = hg_loop_timer_init(loop, &hot->wait_timer, 0, on_waited);
    if (rc != 0)
        return rc;
    hot->is_open = true;
    hot->front->hot.on_parcel = on_parcel;
    hot->front->hot.ctx = hot;
    hot->front->hot.house = house;
    return 0;
}

void hg_hotkeys_close(struct hg_hotkeys *hot)
{
    if (hot->is_open)
        hg_loop_timer_fini(&hot->wait_timer);
    hot->is_open = false;
    HG_LIST_EACH(node, &hot->tenants)
    hg_hottenant_free(hot, HG_CONTAINER_OF(node, struct hg_hottenant, node));
    for (unsigned w = 0; hot->parcels != NULL && w < hot->front->worker_count; w++) {
        hg_hotparcel_free(&hot->front->hot.mem, hot->parcels[w]);
        hot->parcels[w] = NULL;
    }
}

void hg_hotkeys_fini(struct hg_hotkeys *hot)
{
    free(hot->parcels);
    free(hot->build);
    free(hot->scratch);
    hot->parcels = NULL;
    hot->build = NULL;
    hot->scratch = NULL;
}

const struct hg_hotrecord *hg_hotkeys_record(const struct hg_hotkeys *hot,
                                             const struct hg_bucket *bucket, unsigned back)
{
    const struct hg_hottenant *tenant = bucket->hot_tenant;
    for (unsigned i = 0; tenant != NULL && hot->last > back && i < HG_HOT_HISTORY; i++)
        if (tenant->history[i] != NULL && tenant->history[i]->epoch == hot->last - back)
            return tenant->history[i];
    return NULL;
}
