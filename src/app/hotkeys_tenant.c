// hotkeys_tenant - the end of an epoch for one tenant: merging, deciding, remembering, publishing
// SPDX-License-Identifier: BSD-3-Clause
#include <stdlib.h>
#include <string.h>

#include "app/hotkeys.h"
#include "front/hotshare.h"

#define ROOM_AT_FIRST 16 /* listed keys */

static struct hg_hotmem *mem_of(struct hg_hotkeys *hot)
{
    return &hot->front->hot.mem;
}

/* ---- tenants ---- */

struct hg_hottenant *hg_hottenant_of(struct hg_hotkeys *hot, struct hg_bucket *bucket)
{
    struct hg_hottenant *tenant = bucket->hot_tenant;
    if (tenant != NULL)
        return tenant;
    tenant = calloc(1, sizeof *tenant);
    if (tenant == NULL)
        return NULL;
    tenant->bucket = hg_bucket_ref(bucket);
    hg_list_init(&tenant->shares);
    hg_list_append(&hot->tenants, &tenant->node);
    bucket->hot_tenant = tenant;
    return tenant;
}

bool hg_hottenant_is_idle(const struct hg_hottenant *tenant)
{
    for (unsigned i = 0; i < HG_KEYTHROTTLE_EPOCHS; i++)
        if (tenant->spans[i].merged != NULL)
            return false;
    for (unsigned i = 0; i < HG_HOT_HISTORY; i++)
        if (tenant->history[i] != NULL)
            return false;
    /* What it did may be nowhere else to be seen: there was no memory to keep it. */
    return hg_list_empty(&tenant->shares) && tenant->activity == 0 && tenant->throttle.count == 0 &&
           !tenant->listed;
}

static void free_keys(struct hg_hotkeys *hot, struct hg_keythrottle *throttle)
{
    hg_hotmem_give_back(mem_of(hot), throttle->keys, throttle->room * sizeof throttle->keys[0]);
    *throttle = (struct hg_keythrottle){.keys = NULL};
}

static void free_span(struct hg_hotkeys *hot, struct hg_hotspan *span)
{
    hg_hotmem_give_back(mem_of(hot), span->merged, span->bytes);
    *span = (struct hg_hotspan){NULL, 0, 0};
}

static void free_record(struct hg_hotkeys *hot, struct hg_hotrecord **record)
{
    if (*record != NULL)
        hg_hotmem_give_back(mem_of(hot), *record, (*record)->bytes);
    *record = NULL;
}

void hg_hottenant_free(struct hg_hotkeys *hot, struct hg_hottenant *tenant)
{
    HG_LIST_EACH(node, &tenant->shares)
    hg_hotshare_free(mem_of(hot), HG_CONTAINER_OF(node, struct hg_hotshare, node));
    for (unsigned i = 0; i < HG_KEYTHROTTLE_EPOCHS; i++)
        free_span(hot, &tenant->spans[i]);
    for (unsigned i = 0; i < HG_HOT_HISTORY; i++)
        free_record(hot, &tenant->history[i]);
    free_keys(hot, &tenant->throttle);
    hg_list_remove(&tenant->node);
    tenant->bucket->hot_tenant = NULL;
    atomic_store_explicit(&tenant->bucket->hotkey_shrunk, false, memory_order_relaxed);
    atomic_store_explicit(&tenant->bucket->hot_throttled, 0, memory_order_relaxed);
    hg_bucket_unref(tenant->bucket);
    free(tenant);
}

/* ---- merging ---- */

/* NULL when memory is out; the content is lost. */
static void *scratch(struct hg_hotkeys *hot, size_t bytes)
{
    if (bytes <= hot->scratch_bytes)
        return hot->scratch;
    free(hot->scratch);
    hot->scratch = malloc(bytes);
    hot->scratch_bytes = hot->scratch != NULL ? bytes : 0;
    return hot->scratch;
}

static size_t aligned(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

struct sources {
    unsigned sketches; /* of the type, in all shares */
    unsigned entries;  /* used counters of them */
};

static struct sources count_sources(const struct hg_hottenant *tenant, enum hg_hot_type type)
{
    struct sources sources = {0, 0};
    HG_LIST_EACH(node, (struct hg_list *)&tenant->shares)
    {
        const struct hg_hotshare *share = HG_CONTAINER_OF(node, struct hg_hotshare, node);
        if (share->sketches[type] == NULL)
            continue;
        sources.sketches++;
        sources.entries += hg_hotkey_used(share->sketches[type]->keys);
    }
    return sources;
}

/* Merges the type's sketches into scratch that holds until the next merge. NULL when memory is
   out. */
static struct hg_hotmerge *merge(struct hg_hotkeys *hot, const struct hg_hottenant *tenant,
                                 enum hg_hot_type type, unsigned keep)
{
    struct sources sources = count_sources(tenant, type);
    size_t list_bytes = aligned(sources.sketches * sizeof(struct hg_hotkey *));
    size_t work_bytes = aligned(hg_hotmerge_scratch_bytes(sources.entries));
    uint8_t *room = scratch(hot, list_bytes + work_bytes + hg_hotmerge_bytes(keep));
    if (room == NULL)
        return NULL;
    const struct hg_hotkey **list = (const struct hg_hotkey **)(void *)room;
    unsigned count = 0;
    HG_LIST_EACH(node, (struct hg_list *)&tenant->shares)
    {
        const struct hg_hotshare *share = HG_CONTAINER_OF(node, struct hg_hotshare, node);
        if (share->sketches[type] != NULL)
            list[count++] = share->sketches[type]->keys;
    }
    return hg_hotmerge_make(room + list_bytes + work_bytes, keep, list, count, room + list_bytes);
}

/* The merged sketch of ALL as the newest span. When there is no memory to keep it for the next
   epochs it counts in this one only, and *ret_passing is to be freed after the decision. */
static void merge_all(struct hg_hotkeys *hot, struct hg_hottenant *tenant, uint64_t length_us,
                      void **ret_passing)
{
    struct sources sources = count_sources(tenant, HG_HOT_ALL);
    unsigned most = atomic_load(&mem_of(hot)->counters);
    unsigned keep = sources.entries < most ? sources.entries : most;
    free_span(hot, &tenant->spans[HG_KEYTHROTTLE_EPOCHS - 1]);
    memmove(&tenant->spans[1], &tenant->spans[0],
            (HG_KEYTHROTTLE_EPOCHS - 1) * sizeof tenant->spans[0]);
    struct hg_hotspan *span = &tenant->spans[0];
    *span = (struct hg_hotspan){NULL, 0, length_us};
    *ret_passing = NULL;
    if (keep == 0)
        return;
    const struct hg_hotmerge *merged = merge(hot, tenant, HG_HOT_ALL, keep);
    if (merged == NULL) {
        hg_counter_add(&hot->lost_merges, 1);
        return;
    }
    size_t bytes = hg_hotmerge_size(merged);
    void *memory = hg_hotmem_take(mem_of(hot), bytes);
    if (memory == NULL) {
        hg_counter_add(&hot->lost_merges, 1);
        memory = *ret_passing = malloc(bytes);
    }
    if (memory == NULL)
        return;
    span->merged = memcpy(memory, merged, bytes);
    span->bytes = bytes;
}

static void end_passing(struct hg_hottenant *tenant, void *passing)
{
    if (passing == NULL)
        return;
    free(passing);
    tenant->spans[0].merged = NULL;
}

/* ---- rows ---- */

/* All rows but for their percents, which the decision makes. */
static void collect_rows(struct hg_hotkeys *hot, struct hg_hottenant *tenant)
{
    struct hg_hotbuild *build = hot->build;
    const struct hg_hotmerge *all = tenant->spans[0].merged;
    hg_hotbuild_begin(build);
    hg_hotbuild_add_top(build, &tenant->throttle, HG_HOT_ALL, all);
    hg_hotbuild_add_listed(build, &tenant->throttle, all);
    for (unsigned type = HG_HOT_ALL + 1; type < HG_HOT_TYPES; type++)
        if (count_sources(tenant, (enum hg_hot_type)type).entries > 0)
            hg_hotbuild_add_top(build, &tenant->throttle, (enum hg_hot_type)type,
                                merge(hot, tenant, (enum hg_hot_type)type, HG_HOT_TOP));
}

/* Keeps the rows, and forgets those that are too old. */
static void remember(struct hg_hotkeys *hot, struct hg_hottenant *tenant)
{
    for (unsigned i = 0; i < HG_HOT_HISTORY; i++)
        if (tenant->history[i] != NULL && tenant->history[i]->epoch + HG_HOT_HISTORY <= hot->last)
            free_record(hot, &tenant->history[i]);
    hg_hotbuild_set_percents(hot->build, &tenant->throttle);
    if (hot->build->count == 0)
        return;
    struct hg_hotrecord *record = hg_hotbuild_record(hot->build, mem_of(hot));
    if (record == NULL) {
        hg_counter_add(&hot->lost_merges, 1);
        return;
    }
    record->epoch = hot->last;
    record->end_wall_s = hot->open_end_wall_s;
    free_record(hot, &tenant->history[HG_HOT_HISTORY - 1]);
    memmove(&tenant->history[1], &tenant->history[0],
            (HG_HOT_HISTORY - 1) * sizeof tenant->history[0]);
    tenant->history[0] = record;
}

/* ---- deciding ---- */

/* What the workers refused with the lists that they have handed over. */
static void tell_refusals(struct hg_hotkeys *hot, struct hg_hottenant *tenant)
{
    HG_LIST_EACH(share_node, &tenant->shares)
    {
        struct hg_hotshare *share = HG_CONTAINER_OF(share_node, struct hg_hotshare, node);
        HG_LIST_EACH(node, &share->lists)
        {
            struct hg_hotlist *list = HG_CONTAINER_OF(node, struct hg_hotlist, node);
            hg_keylist_report(list->keys, &tenant->throttle);
            hg_list_remove(node);
            hg_hotlist_free(mem_of(hot), list);
        }
    }
}

/* Room for the keys that this epoch may add. */
static void make_room(struct hg_hotkeys *hot, struct hg_keythrottle *throttle)
{
    unsigned want = throttle->count + HG_HOT_TOP;
    if (want > HG_KEYTHROTTLE_KEYS)
        want = HG_KEYTHROTTLE_KEYS;
    if (want <= throttle->room)
        return;
    unsigned room = throttle->room > 0 ? throttle->room * 2 : ROOM_AT_FIRST;
    if (room > HG_KEYTHROTTLE_KEYS)
        room = HG_KEYTHROTTLE_KEYS;
    size_t before = throttle->room * sizeof throttle->keys[0];
    struct hg_keythrottle_key *keys = hg_hotmem_take(mem_of(hot), room * sizeof keys[0]);
    if (keys == NULL) {
        hg_counter_add(&hot->lost_merges, 1);
        return;
    }
    hg_hotmem_give_back(mem_of(hot), hg_keythrottle_give_room(throttle, keys, room), before);
}

static struct hg_keythrottle_settings settings_of(const struct hg_bucket *bucket)
{
    struct hg_bucket *b = (struct hg_bucket *)bucket;
    bool on = atomic_load(&b->hotkey_tracking) && atomic_load(&b->hotkey_mode) != HG_MODE_OFF;
    return (struct hg_keythrottle_settings){
        on ? atomic_load(&b->hotkey_threshold) : 0,
        (enum hg_hotkey_control)atomic_load(&b->hotkey_control)};
}

static void decide(struct hg_hotkeys *hot, struct hg_hottenant *tenant,
                   const struct hg_keythrottle_settings *settings)
{
    struct hg_keythrottle_span spans[HG_KEYTHROTTLE_EPOCHS];
    for (unsigned i = 0; i < HG_KEYTHROTTLE_EPOCHS; i++)
        spans[i] =
            (struct hg_keythrottle_span){tenant->spans[i].merged, tenant->spans[i].length_us};
    if (settings->threshold > 0)
        make_room(hot, &tenant->throttle);
    hg_keythrottle_epoch(&tenant->throttle, settings, spans,
                         (uint64_t)atomic_load(&hot->front->hot.epoch_ms) * 1000);
    if (settings->threshold == 0 && tenant->throttle.count == 0)
        free_keys(hot, &tenant->throttle);
}

/* ---- what goes back ---- */

static struct hg_hotparcel *parcel_for(struct hg_hotkeys *hot, unsigned worker)
{
    if (hot->parcels[worker] == NULL)
        hot->parcels[worker] = hg_hotparcel_new(worker);
    return hot->parcels[worker];
}

/* The list, twice, for one worker; without keys: it is to take its lists off. False when memory is
   out. */
static bool send_list(struct hg_hotkeys *hot, struct hg_hottenant *tenant, unsigned worker,
                      enum hg_hotkey_control control)
{
    struct hg_hotparcel *parcel = parcel_for(hot, worker);
    struct hg_hotshare *share = parcel != NULL ? hg_hotshare_new() : NULL;
    if (share == NULL)
        return false;
    share->bucket = hg_bucket_ref(tenant->bucket);
    for (unsigned i = 0; i < 2 && tenant->throttle.count > 0; i++) {
        uint32_t start = (worker * 2 + i + (uint32_t)hot->last) * 0x9e3779b9u;
        struct hg_hotlist *list = hg_hotlist_new(mem_of(hot), &tenant->throttle, control, start);
        if (list == NULL) {
            hg_hotshare_free(mem_of(hot), share);
            return false;
        }
        hg_list_append(&share->lists, &list->node);
    }
    hg_list_append(&parcel->shares, &share->node);
    return true;
}

static void send_lists(struct hg_hotkeys *hot, struct hg_hottenant *tenant,
                       enum hg_hotkey_control control)
{
    bool any = tenant->throttle.count > 0;
    bool all_told = true;
    if (!any && !tenant->listed)
        return;
    for (unsigned w = 0; w < hot->front->worker_count; w++)
        if (!send_list(hot, tenant, w, control)) {
            hg_counter_add(&hot->lost_merges, 1);
            all_told = false;
        }
    tenant->listed = any || !all_told;
}

/* What a sketch takes: twice its size, since while one is in use another is under way. */
static uint64_t sketch_bytes(unsigned setting, enum hg_hot_type type, bool small)
{
    return 2 * hg_hotkey_bytes(hg_hot_counters(setting, type, small));
}

/* What is kept of the tenant beside sketches. */
static uint64_t kept_bytes(const struct hg_hottenant *tenant)
{
    uint64_t bytes = tenant->throttle.room * sizeof(struct hg_keythrottle_key);
    for (unsigned i = 0; i < HG_KEYTHROTTLE_EPOCHS; i++)
        bytes += tenant->spans[i].merged != NULL ? tenant->spans[i].bytes : 0;
    for (unsigned i = 0; i < HG_HOT_HISTORY; i++)
        bytes += tenant->history[i] != NULL ? tenant->history[i]->bytes : 0;
    return bytes;
}

static void note_size(struct hg_hotkeys *hot, struct hg_hottenant *tenant,
                      const struct hg_hotshare *share)
{
    unsigned setting = atomic_load(&mem_of(hot)->counters);
    for (unsigned type = 0; type < HG_HOT_TYPES; type++) {
        const struct hg_hotsketch *sketch = share->sketches[type];
        if (sketch == NULL && !share->refused[type])
            continue;
        tenant->full_bytes += sketch_bytes(setting, (enum hg_hot_type)type, false);
        tenant->small_bytes += sketch_bytes(setting, (enum hg_hot_type)type, true);
        tenant->small |= sketch == NULL ||
                         sketch->counters < hg_hot_counters(setting, (enum hg_hot_type)type, false);
    }
}

/* Sketches go back empty, for the worker's next epoch; shares too. */
static void return_shares(struct hg_hotkeys *hot, struct hg_hottenant *tenant)
{
    tenant->small = false;
    tenant->full_bytes = tenant->small_bytes = kept_bytes(tenant);
    HG_LIST_EACH(node, &tenant->shares)
    {
        struct hg_hotshare *share = HG_CONTAINER_OF(node, struct hg_hotshare, node);
        struct hg_hotparcel *parcel = hot->parcels[share->worker];
        note_size(hot, tenant, share);
        hg_list_remove(node);
        hg_counter_add(&hot->merged_shares, share->sketches[HG_HOT_ALL] != NULL);
        for (unsigned type = 0; parcel != NULL && type < HG_HOT_TYPES; type++) {
            struct hg_hotsketch *sketch = share->sketches[type];
            share->sketches[type] = NULL;
            share->keys[type] = NULL;
            if (sketch == NULL)
                continue;
            hg_hotsketch_clear(sketch);
            hg_list_append(&parcel->sketches, &sketch->node);
        }
        if (parcel == NULL) {
            hg_hotshare_free(mem_of(hot), share);
            continue;
        }
        hg_hotshare_clear(mem_of(hot), share);
        hg_list_append(&parcel->idle, &share->node);
    }
}

static void note_activity(struct hg_hottenant *tenant)
{
    uint64_t seen = 0;
    for (unsigned w = 0; w < tenant->bucket->lane_count; w++)
        seen += hg_counter_get(&tenant->bucket->lanes[w].hotkey_counted) +
                hg_counter_get(&tenant->bucket->lanes[w].hotkey_dropped);
    tenant->activity = seen >= tenant->activity_seen ? seen - tenant->activity_seen : seen;
    tenant->activity_seen = seen;
}

void hg_hottenant_finish(struct hg_hotkeys *hot, struct hg_hottenant *tenant, uint64_t length_us)
{
    struct hg_keythrottle_settings settings = settings_of(tenant->bucket);
    void *passing;
    if (hot->build == NULL)
        hot->build = malloc(sizeof *hot->build);
    if (hot->build == NULL) {
        hg_counter_add(&hot->lost_merges, 1);
        return; /* with the next epoch */
    }
    note_activity(tenant);
    tell_refusals(hot, tenant);
    merge_all(hot, tenant, length_us, &passing);
    collect_rows(hot, tenant);
    decide(hot, tenant, &settings);
    atomic_store_explicit(&tenant->bucket->hot_throttled, tenant->throttle.count,
                          memory_order_relaxed);
    remember(hot, tenant);
    send_lists(hot, tenant, settings.control);
    end_passing(tenant, passing);
    return_shares(hot, tenant);
}
