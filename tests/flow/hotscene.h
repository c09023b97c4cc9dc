// hotscene - a scene with housekeeping for hot keys, whose epochs end when the test says so
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HOTSCENE_H
#define HOTSCENE_H

#include <string.h>

#include "app/hotkeys.h"
#include "base/clock.h"
#include "front/hot.h"
#include "scene.h"

#define HOT_EPOCH_US 2000000

struct hotscene {
    struct scene s;
    struct hg_loop loop; /* housekeeping's */
    struct hg_mailbox house;
    struct hg_hotkeys hot;
    struct hg_bucket *bucket; /* "default" */
    uint64_t wall_s;
};

static inline struct hg_hotmem *hot_mem(struct hotscene *h)
{
    return &h->s.stage.front.hot.mem;
}

/* Tracking is on, nothing is throttled. Change what the test needs, then hot_open. */
static inline void hot_init(struct hotscene *h, unsigned workers)
{
    memset(h, 0, sizeof *h);
    stage_init(&h->s.stage, workers);
    struct hg_front *front = &h->s.stage.front;
    front->hot.mem.cap_bytes = 64u << 20;
    front->hot.mem.counters = 512;
    front->hot.epoch_ms = HOT_EPOCH_US / 1000;
    h->bucket = stage_find(&h->s.stage, "default");
    atomic_store(&h->bucket->hotkey_tracking, true);
    atomic_store(&h->bucket->hotkey_mode, HG_MODE_ENFORCE);
    assert_int_equal(hg_hotkeys_init(&h->hot, front), 0);
    assert_int_equal(hg_loop_init(&h->loop), 0);
    assert_int_equal(hg_mailbox_init(&h->house, &h->loop, NULL), 0);
    assert_int_equal(hg_hotkeys_open(&h->hot, &h->house, &h->loop, 0), 0);
}

static inline void hot_open(struct hotscene *h)
{
    scene_open(&h->s);
    h->s.store->answers = true;
    h->hot.last_end_us = h->s.stage.workers[0].loop.now_us;
}

static inline void hot_start(struct hotscene *h)
{
    hot_init(h, 1);
    hot_open(h);
}

/* With a threshold, in requests an epoch, from which on a key is hot. */
static inline void hot_start_limited(struct hotscene *h, unsigned workers, uint64_t threshold)
{
    hot_init(h, workers);
    atomic_store(&h->bucket->hotkey_threshold, threshold);
    hot_open(h);
}

/* Another tenant, between init and open or before the stage is published again. */
static inline struct hg_bucket *hot_tenant(struct hotscene *h, const char *name, uint64_t threshold)
{
    struct hg_bucket *bucket = stage_bucket(&h->s.stage, name, 0, HG_UNITS_UNLIMITED);
    atomic_store(&bucket->hotkey_tracking, true);
    atomic_store(&bucket->hotkey_mode, HG_MODE_ENFORCE);
    atomic_store(&bucket->hotkey_threshold, threshold);
    return bucket;
}

/* Turns housekeeping until so many epochs have ended. */
static inline void hot_wait(struct hotscene *h, uint64_t epochs)
{
    uint64_t deadline = stage_deadline();
    while (hg_counter_get(&h->hot.epochs) < epochs) {
        if (hg_now_us() > deadline)
            fail_msg("epoch %d does not end", (int)epochs);
        hg_loop_turn(&h->loop, false);
    }
}

/* The main thread's part: letters go out, and nobody has looked at them. */
static inline void hot_end(struct hotscene *h)
{
    stage_advance(HOT_EPOCH_US);
    stage_turn(&h->s.stage);
    uint64_t now_us = h->s.stage.workers[0].loop.now_us;
    hg_hotkeys_end_epoch(&h->hot, now_us, ++h->wall_s, now_us + HOT_EPOCH_US);
}

static inline void hot_epoch(struct hotscene *h)
{
    uint64_t before = hg_counter_get(&h->hot.epochs);
    hot_end(h);
    stage_run(&h->s.stage);
    hot_wait(h, before + 1);
    stage_run(&h->s.stage);
}

/* The process's order: housekeeping goes when the workers do not turn any more, and what it has
   sent them is delivered last. Nothing is left, and no memory is counted that is not there. */
static inline void hot_end_stage(struct hotscene *h)
{
    h->s.stage.front.hot.house = NULL;
    hg_mailbox_fini(&h->house);
    hg_hotkeys_close(&h->hot);
    hg_loop_fini(&h->loop);
    stage_close(&h->s.stage);
    assert_int_equal(atomic_load(&hot_mem(h)->used_bytes), 0);
    hg_hotkeys_fini(&h->hot);
}

static inline void hot_close(struct hotscene *h)
{
    client_close(&h->s.client);
    stage_run(&h->s.stage);
    hot_end_stage(h);
}

/* The row of the last epoch, or NULL. */
static inline const struct hg_hotrow *hot_row(struct hotscene *h, const char *key,
                                              enum hg_hot_type type)
{
    const struct hg_hotrecord *record = hg_hotkeys_record(&h->hot, h->bucket, 0);
    for (unsigned i = 0; record != NULL && i < record->count; i++) {
        const struct hg_hotrow *row = &record->rows[i];
        if (row->type == type && row->len == strlen(key) && memcmp(row->key, key, row->len) == 0)
            return row;
    }
    return NULL;
}

static inline uint64_t hot_freq(struct hotscene *h, const char *key, enum hg_hot_type type)
{
    const struct hg_hotrow *row = hot_row(h, key, type);
    return row != NULL ? row->freq : 0;
}

static inline unsigned hot_rows(struct hotscene *h)
{
    const struct hg_hotrecord *record = hg_hotkeys_record(&h->hot, h->bucket, 0);
    return record != NULL ? record->count : 0;
}

/* Sends `n` gets of the key and reads the replies; how many had the status. */
static inline unsigned hot_gets(struct hotscene *h, const char *key, unsigned n, uint16_t status)
{
    unsigned found = 0;
    struct reply reply;
    for (unsigned i = 0; i < n; i++) {
        client_add_op(&h->s.client, HG_OPCODE_GET, key, i);
        if (i % 64 != 63 && i + 1 < n)
            continue;
        scene_send(&h->s);
        client_read(&h->s.client, SIZE_MAX);
        while (client_take(&h->s.client, &reply))
            found += reply.status == status;
    }
    return found;
}

#endif
