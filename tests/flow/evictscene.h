// evictscene - a stage with housekeeping in the hands of the test: it asks who holds the slots, and
// orders evictions
// SPDX-License-Identifier: BSD-3-Clause
#ifndef EVICTSCENE_H
#define EVICTSCENE_H

#include "front/bind.h"
#include "front/evict.h"
#include "front/hot.h"
#include "gatescene.h"

struct evictscene {
    struct scene s;
    struct stage *stage; /* the scene's, or that of another scene */
    struct hg_loop loop; /* housekeeping's */
    struct hg_mailbox house;
    struct hg_evict_report *report; /* the last one */
    struct hg_bucket *bucket;       /* "default" */
    uint64_t round;
};

/* Binds of 8 bytes and more are evicted and throttled in it. */
static inline void evict_use(struct hg_bucket *bucket)
{
    atomic_store(&bucket->ticket_mode, HG_MODE_ENFORCE);
    atomic_store(&bucket->bind_mode, HG_MODE_ENFORCE);
    atomic_store(&bucket->bind_min_bytes, 8);
}

static inline void evict_house_open(struct evictscene *e)
{
    assert_int_equal(hg_loop_init(&e->loop), 0);
    assert_int_equal(hg_mailbox_init(&e->house, &e->loop, NULL), 0);
}

static inline void evict_house_close(struct evictscene *e)
{
    if (e->report != NULL)
        hg_evict_report_free(e->report);
    hg_mailbox_fini(&e->house);
    hg_loop_fini(&e->loop);
}

static inline void evict_settings(struct evictscene *e)
{
    e->stage->settings.bind = (struct hg_bind_settings){.backlog_us = 1000000,
                                                        .threshold_pct = 25,
                                                        .target_pct = 50,
                                                        .decr_per_sec = 1.0,
                                                        .min_age_us = 200000};
}

static inline void evict_init(struct evictscene *e)
{
    memset(e, 0, sizeof *e);
    e->stage = &e->s.stage;
    gate_init(&e->s);
    e->bucket = stage_find(&e->s.stage, "default");
    evict_use(e->bucket);
    evict_settings(e);
    evict_house_open(e);
}

static inline void evict_start(struct evictscene *e)
{
    evict_init(e);
    gate_open(&e->s);
}

static inline void evict_close(struct evictscene *e)
{
    evict_house_close(e);
    gate_close(&e->s);
}

/* A client that no throttle counts for. */
static inline void evict_connect_exempt(struct evictscene *e, struct client *ret)
{
    uint32_t before = e->s.stage.anonymous_privileges;
    e->s.stage.anonymous_privileges |= HG_PRIVILEGE_BIT(HG_PRIVILEGE_UNTHROTTLED);
    gate_connect(&e->s.stage, 0, ret);
    e->s.stage.anonymous_privileges = before;
}

static inline void evict_on_report(struct hg_letter *letter, void *receiver)
{
    struct hg_evict_report *report = HG_CONTAINER_OF(letter, struct hg_evict_report, letter);
    struct evictscene *e = report->ctx;
    (void)receiver;
    if (e->report != NULL)
        hg_evict_report_free(e->report);
    e->report = report;
}

/* Asks worker 0; what it says is in e->report. */
static inline const struct hg_bindwatch_report *evict_ask(struct evictscene *e)
{
    struct stage *stage = e->stage;
    hg_evict_ask(&stage->workers[0], &stage->upstreams[0].upstream, 0, ++e->round, &e->house,
                 evict_on_report, e);
    stage_run(stage);
    hg_mailbox_wait(&e->house, 0);
    assert_non_null(e->report);
    assert_int_equal(e->report->round, e->round);
    assert_int_equal(e->report->worker, 0);
    return &e->report->report;
}

/* A key, or with a table a row. */
static inline struct hg_bindthrottle_key evict_key(struct evictscene *e, enum hg_hot_type type,
                                                   const char *table, const char *key,
                                                   uint8_t room[HG_HOTKEY_KEY_MAX])
{
    struct hg_span of = table != NULL ? hg_span_str(table) : HG_SPAN_NONE;
    struct hg_hotkey_key hot = hg_hot_key(&e->stage->workers[0], of, hg_span_str(key), room);
    return hg_bind_key(type, &hot);
}

/* What the last report says of it; NULL: nothing. */
static inline const struct hg_bindwatch_row *evict_row(struct evictscene *e,
                                                       const struct hg_bucket *bucket,
                                                       enum hg_hot_type type, const char *table,
                                                       const char *key)
{
    uint8_t room[HG_HOTKEY_KEY_MAX];
    struct hg_bindthrottle_key of = evict_key(e, type, table, key, room);
    const struct hg_bindwatch_row *found = NULL;
    for (size_t i = 0; i < e->report->report.count; i++) {
        const struct hg_bindwatch_row *row = &e->report->report.rows[i];
        if (row->tenant != bucket || !hg_bindthrottle_same(&row->key, &of))
            continue;
        assert_null(found);
        found = row;
    }
    return found;
}

static inline void evict_check_row(const struct hg_bindwatch_row *row, unsigned slots,
                                   unsigned evictable, unsigned exempt, unsigned waiting)
{
    assert_non_null(row);
    assert_int_equal(row->slots, slots);
    assert_int_equal(row->evictable, evictable);
    assert_int_equal(row->exempt, exempt);
    assert_int_equal(row->waiting, waiting);
}

/* A verdict on a key of the bucket: of so many evictable ones `keep` stay; X is evicted + 1. */
static inline struct hg_evict_key evict_verdict(struct evictscene *e, struct hg_bucket *bucket,
                                                enum hg_hot_type type, const char *table,
                                                const char *key, unsigned evictable, unsigned keep,
                                                unsigned evicted)
{
    struct hg_evict_key of = {.bucket = hg_bucket_ref(bucket)};
    uint8_t room[HG_HOTKEY_KEY_MAX];
    of.verdict.key = evict_key(e, type, table, key, room);
    memcpy(of.key, of.verdict.key.bytes.at, of.verdict.key.bytes.len);
    of.verdict.slots = of.verdict.evictable = evictable;
    of.verdict.keep = keep;
    of.verdict.evicted = evicted;
    return of;
}

static inline void evict_order(struct evictscene *e, unsigned worker,
                               const struct hg_evict_key *keys, size_t count)
{
    struct stage *stage = e->stage;
    struct hg_evict_key *copy = count > 0 ? calloc(count, sizeof *copy) : NULL;
    if (count > 0)
        memcpy(copy, keys, count * sizeof *copy);
    hg_evict_order(&stage->workers[worker], &stage->upstreams[0].upstream, 0, copy, count);
    if (!stage->threads)
        stage_run(stage);
}

/* On worker 0, of reads of a key of "default". */
static inline void evict_reads(struct evictscene *e, const char *key, unsigned evictable,
                               unsigned keep, unsigned evicted)
{
    struct hg_evict_key of =
        evict_verdict(e, e->bucket, HG_HOT_QUERY, NULL, key, evictable, keep, evicted);
    evict_order(e, 0, &of, 1);
}

static inline void evict_oldest(struct evictscene *e)
{
    evict_order(e, 0, NULL, 0);
}

static inline struct hg_lane *evict_lane(struct evictscene *e)
{
    return &e->bucket->lanes[0];
}

#endif
