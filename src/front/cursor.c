// cursor - sessions of queries and scans: where each of them is, kept between its requests
// SPDX-License-Identifier: BSD-3-Clause
#include "front/cursor.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define FIRST_SLOTS 64

void hg_cursors_init(struct hg_cursors *cursors)
{
    memset(cursors, 0, sizeof *cursors);
    pthread_mutex_init(&cursors->lock, NULL);
    hg_list_init(&cursors->buckets);
}

/* ---- one cursor ---- */

struct hg_cursor *hg_cursor_new(const struct hg_reader *reader, struct hg_span body)
{
    const struct hg_tablemsg *msg = reader->msg;
    const char *why;
    if (body.len > HG_CURSOR_BODY_MAX)
        return NULL;
    struct hg_cursor *cursor = calloc(1, sizeof *cursor);
    if (cursor == NULL)
        return NULL;
    hg_list_init(&cursor->node);
    hg_arena_init(&cursor->arena, 16 * (size_t)HG_CURSOR_BODY_MAX);
    struct hg_span table = hg_arena_copy(&cursor->arena, msg->table);
    struct hg_span copy = hg_arena_copy(&cursor->arena, body);
    if (table.at == NULL || copy.at == NULL ||
        hg_tablemsg_decode(msg->op, table, HG_SPAN_NONE, copy, &cursor->arena, &cursor->msg,
                           &why) != 0) {
        hg_cursor_free(cursor);
        return NULL;
    }
    cursor->reader = *reader;
    cursor->reader.msg = &cursor->msg;
    return cursor;
}

void hg_cursor_free(struct hg_cursor *cursor)
{
    hg_arena_fini(&cursor->arena);
    free(cursor);
}

/* ---- the table; under its lock ---- */

static struct hg_cursor **slot_of(struct hg_cursors *cursors, uint64_t id)
{
    return &cursors->slots[id & (cursors->slot_count - 1)];
}

/* More slots, if there is memory: else the chains are longer. False: there is none at all. */
static bool grow(struct hg_cursors *cursors)
{
    size_t old_count = cursors->slot_count;
    struct hg_cursor **old = cursors->slots;
    if (cursors->count < old_count)
        return true;
    size_t count = old_count > 0 ? old_count * 2 : FIRST_SLOTS;
    struct hg_cursor **slots = calloc(count, sizeof(struct hg_cursor *));
    if (slots == NULL)
        return old_count > 0;
    cursors->slots = slots;
    cursors->slot_count = count;
    for (size_t i = 0; i < old_count; i++)
        while (old[i] != NULL) {
            struct hg_cursor *cursor = old[i];
            old[i] = cursor->next;
            struct hg_cursor **slot = slot_of(cursors, cursor->id);
            cursor->next = *slot;
            *slot = cursor;
        }
    free(old);
    return true;
}

static struct hg_cursor *find(struct hg_cursors *cursors, uint64_t id)
{
    if (cursors->slot_count == 0)
        return NULL;
    struct hg_cursor *cursor = *slot_of(cursors, id);
    while (cursor != NULL && cursor->id != id)
        cursor = cursor->next;
    return cursor;
}

/* Takes an idle or busy cursor out and chains it to the dead, which are freed without the lock. */
static void remove_cursor(struct hg_cursors *cursors, struct hg_cursor *cursor,
                          struct hg_cursor **dead)
{
    struct hg_bucket *bucket = cursor->bucket;
    struct hg_cursor **at = slot_of(cursors, cursor->id);
    while (*at != cursor)
        at = &(*at)->next;
    *at = cursor->next;
    cursors->count--;
    hg_list_remove(&cursor->node);
    if (--bucket->cursor_count == 0)
        hg_list_remove(&bucket->cursors_node);
    cursor->next = *dead;
    *dead = cursor;
}

static void count_gone(struct hg_bucket *bucket, unsigned worker)
{
    hg_counter_sub(&bucket->lanes[worker].table_sessions, 1);
}

/* Frees what was taken out. The reference of a bucket may be its last. */
static void bury(struct hg_cursor *dead, unsigned worker)
{
    while (dead != NULL) {
        struct hg_cursor *cursor = dead;
        dead = cursor->next;
        count_gone(cursor->bucket, worker);
        hg_bucket_unref(cursor->bucket);
        hg_cursor_free(cursor);
    }
}

static bool expired(const struct hg_cursor *cursor, uint64_t now_us)
{
    struct hg_bucket *bucket = cursor->bucket;
    uint64_t idle_s = atomic_load_explicit(&bucket->table_session_idle_s, memory_order_relaxed);
    return now_us >= cursor->idle_since_us + idle_s * 1000000;
}

/* Those of the bucket whose time is over; all idle ones if it was deleted. */
static void sweep_bucket(struct hg_cursors *cursors, struct hg_bucket *bucket, unsigned worker,
                         uint64_t now_us, struct hg_cursor **dead)
{
    bool all = hg_bucket_is_over(bucket);
    HG_LIST_EACH(node, &bucket->cursors)
    {
        struct hg_cursor *cursor = HG_CONTAINER_OF(node, struct hg_cursor, node);
        if (!all && !expired(cursor, now_us))
            break;
        hg_counter_add(&bucket->lanes[worker].table_sessions_expired, 1);
        remove_cursor(cursors, cursor, dead);
    }
}

static void put_idle(struct hg_cursor *cursor, uint64_t now_us)
{
    cursor->busy = false;
    cursor->idle_since_us = now_us;
    hg_list_append(&cursor->bucket->cursors, &cursor->node);
}

/* ---- for requests ---- */

static bool draw_id(struct hg_cursors *cursors, uint64_t *ret)
{
    do {
        if (getrandom(ret, sizeof *ret, 0) != (ssize_t)sizeof *ret)
            return false;
    } while (*ret == 0 || find(cursors, *ret) != NULL);
    return true;
}

bool hg_cursors_add(struct hg_cursors *cursors, struct hg_cursor *cursor, struct hg_bucket *bucket,
                    unsigned worker, uint64_t now_us, uint64_t *ret_id)
{
    struct hg_cursor *dead = NULL;
    unsigned most = atomic_load_explicit(&bucket->table_sessions, memory_order_relaxed);
    pthread_mutex_lock(&cursors->lock);
    if (bucket->cursor_count >= most)
        sweep_bucket(cursors, bucket, worker, now_us, &dead);
    bool ok = bucket->cursor_count < most && grow(cursors) && draw_id(cursors, &cursor->id);
    if (ok) {
        struct hg_cursor **slot = slot_of(cursors, cursor->id);
        cursor->next = *slot;
        *slot = cursor;
        cursors->count++;
        *ret_id = cursor->id;
        cursor->bucket = hg_bucket_ref(bucket);
        if (bucket->cursor_count++ == 0)
            hg_list_append(&cursors->buckets, &bucket->cursors_node);
        put_idle(cursor, now_us);
        hg_counter_add(&bucket->lanes[worker].table_sessions, 1);
    }
    pthread_mutex_unlock(&cursors->lock);
    bury(dead, worker);
    return ok;
}

enum hg_cursor_found hg_cursors_take(struct hg_cursors *cursors, uint64_t id,
                                     const struct hg_bucket *bucket, enum hg_api api,
                                     unsigned worker, uint64_t now_us, struct hg_cursor **ret)
{
    struct hg_cursor *dead = NULL;
    enum hg_cursor_found found = HG_CURSOR_UNKNOWN;
    pthread_mutex_lock(&cursors->lock);
    struct hg_cursor *cursor = find(cursors, id);
    if (cursor != NULL && (cursor->bucket != bucket || cursor->msg.api != api))
        cursor = NULL;
    if (cursor != NULL && cursor->busy) {
        found = HG_CURSOR_IN_USE;
    } else if (cursor != NULL && expired(cursor, now_us)) {
        hg_counter_add(&cursor->bucket->lanes[worker].table_sessions_expired, 1);
        remove_cursor(cursors, cursor, &dead);
    } else if (cursor != NULL) {
        found = HG_CURSOR_FOUND;
        cursor->busy = true;
        hg_list_remove(&cursor->node);
        *ret = cursor;
    }
    pthread_mutex_unlock(&cursors->lock);
    bury(dead, worker);
    return found;
}

size_t hg_cursors_table(struct hg_cursors *cursors, uint64_t id, const struct hg_bucket *bucket,
                        enum hg_api api, uint8_t *room)
{
    size_t len = 0;
    pthread_mutex_lock(&cursors->lock);
    const struct hg_cursor *cursor = find(cursors, id);
    if (cursor != NULL && cursor->bucket == bucket && cursor->msg.api == api &&
        cursor->msg.table.len <= HG_TABLE_KEY_MAX) {
        len = cursor->msg.table.len;
        memcpy(room, cursor->msg.table.at, len);
    }
    pthread_mutex_unlock(&cursors->lock);
    return len;
}

void hg_cursors_give_back(struct hg_cursors *cursors, struct hg_cursor *cursor, unsigned worker,
                          uint64_t now_us)
{
    struct hg_cursor *dead = NULL;
    pthread_mutex_lock(&cursors->lock);
    if (hg_bucket_is_over(cursor->bucket))
        remove_cursor(cursors, cursor, &dead);
    else
        put_idle(cursor, now_us);
    pthread_mutex_unlock(&cursors->lock);
    bury(dead, worker);
}

void hg_cursors_end(struct hg_cursors *cursors, struct hg_cursor *cursor, unsigned worker)
{
    struct hg_cursor *dead = NULL;
    pthread_mutex_lock(&cursors->lock);
    remove_cursor(cursors, cursor, &dead);
    pthread_mutex_unlock(&cursors->lock);
    bury(dead, worker);
}

/* ---- looking after them ---- */

void hg_cursors_sweep(struct hg_cursors *cursors, unsigned worker, uint64_t now_us)
{
    struct hg_cursor *dead = NULL;
    pthread_mutex_lock(&cursors->lock);
    HG_LIST_EACH(node, &cursors->buckets)
    sweep_bucket(cursors, HG_CONTAINER_OF(node, struct hg_bucket, cursors_node), worker, now_us,
                 &dead);
    pthread_mutex_unlock(&cursors->lock);
    bury(dead, worker);
}

void hg_cursors_fini(struct hg_cursors *cursors)
{
    struct hg_cursor *dead = NULL;
    for (size_t i = 0; i < cursors->slot_count; i++)
        while (cursors->slots[i] != NULL)
            remove_cursor(cursors, cursors->slots[i], &dead);
    bury(dead, 0);
    free(cursors->slots);
    pthread_mutex_destroy(&cursors->lock);
}
