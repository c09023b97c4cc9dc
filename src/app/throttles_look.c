// throttles_look - what there is to see of throttlings: holders of tickets, and workers' boards
// SPDX-License-Identifier: BSD-3-Clause
#include "app/throttles.h"

#include <string.h>

#include "app/process.h"
#include "base/grow.h"
#include "front/gateset.h"

/* ---- tickets ---- */

#define LARGEST_US 10000000 /* a size before the last so long is no longer told of */

/* What was refused in a worker's line, for whatever reason but the key's share. */
static uint64_t refused_of(const struct hg_gate_tally *tally)
{
    return hg_counter_get(&tally->refused_flood) + hg_counter_get(&tally->refused_calm) +
           hg_counter_get(&tally->refused_stalled) + hg_counter_get(&tally->refused_overdue) +
           hg_counter_get(&tally->overflows);
}

/* The largest size of late. */
static int64_t largest(struct hg_gateshare *share, enum hg_ticket_kind kind, int64_t size,
                       uint64_t now_us)
{
    struct hg_gateshare_seen *seen = &share->seen;
    if (size >= seen->largest[kind] || now_us - seen->largest_us[kind] >= LARGEST_US) {
        seen->largest[kind] = size;
        seen->largest_us[kind] = now_us;
    }
    return seen->largest[kind];
}

static uint64_t not_negative(int64_t value)
{
    return value > 0 ? (uint64_t)value : 0;
}

static void see_holder(struct hg_throttles *throttles, const char *upstream,
                       struct hg_gateshare *share, enum hg_ticket_kind kind, uint64_t now_us)
{
    struct hg_gate_holder *holder = &share->holders[kind];
    int64_t size = hg_ticket_size(&holder->ticket);
    int64_t waiting = atomic_load(&holder->waiting) - atomic_load(&holder->held);
    struct hg_throttles_seen seen = {
        .what = HG_THROTTLE_TICKETS,
        .upstream = upstream,
        .server = share->server,
        .tenant = "",
        .tickets = hg_gate_place_name(holder->place),
        .number = 1,
        .active = waiting > 0,
        .from = not_negative(largest(share, kind, size, now_us)),
        .to = not_negative(size),
        .waiting = not_negative(waiting),
        .service_us = share->seen.slow.p50_us,
        .usual_us = share->seen.slow.usual_us,
        .gates = share,
        .kind = kind,
    };
    for (unsigned w = 0; w < holder->worker_count; w++) {
        seen.worker = w;
        seen.counted = refused_of(&holder->workers[w].tally);
        if (seen.active || seen.counted > 0)
            hg_throttles_see(throttles, &seen);
    }
}

static void see_tickets(struct hg_throttles *throttles, uint64_t now_us)
{
    const struct hg_directory *directory = throttles->process->directory;
    for (size_t i = 0; i < directory->upstream_count; i++) {
        struct hg_gateset *set = directory->upstreams[i]->gates;
        pthread_mutex_lock(&set->lock); /* a share may get another server */
        for (unsigned s = 0; s < hg_gateset_count(set); s++)
            for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
                see_holder(throttles, directory->upstreams[i]->name, hg_gateset_at(set, s),
                           (enum hg_ticket_kind)kind, now_us);
        pthread_mutex_unlock(&set->lock);
    }
}

/* ---- floods ---- */

/* The rows of a board, copied under its lock into memory that grows; what does not fit is left for
   the next look. */
static size_t copy_rows(pthread_mutex_t *lock, void **to, size_t *cap, void *const *rows,
                        const size_t *count, size_t row_bytes)
{
    pthread_mutex_lock(lock);
    size_t n = *count;
    void *grown = n > 0 ? hg_grow(*to, cap, n, row_bytes) : NULL;
    if (grown != NULL) {
        *to = grown;
        memcpy(grown, *rows, n * row_bytes);
    }
    pthread_mutex_unlock(lock);
    return grown != NULL ? n : 0;
}

#define COPY(board, to, cap)                                                                       \
    copy_rows(&(board)->lock, (void **)&(to), &(cap), (void *const *)&(board)->rows,               \
              &(board)->count, sizeof *(to))

static void see_floods(struct hg_throttles *throttles, unsigned worker)
{
    struct hg_flood_board *board = &throttles->process->workers[worker].flood_board;
    size_t count = COPY(board, throttles->floods, throttles->floods_cap);
    for (size_t i = 0; i < count; i++) {
        const struct hg_flood_shown *row = &throttles->floods[i];
        const struct hg_throttles_seen seen = {
            .what = HG_THROTTLE_FLOOD,
            .upstream = row->upstream,
            .server = row->server,
            .tenant = row->bucket,
            .tickets = hg_gate_place_name((enum hg_gate_place)row->place),
            .worker = worker,
            .number = row->number,
            .counted = row->refused,
            .active = row->floods,
        };
        hg_throttles_see(throttles, &seen);
    }
}

/* ---- keys ---- */

/* That a new key's requests wait until the first is back is nothing to be told. */
static void see_held_keys(struct hg_throttles *throttles, unsigned worker)
{
    struct hg_heldkey_board *board = &throttles->process->workers[worker].heldkey_board;
    size_t count = COPY(board, throttles->keys, throttles->keys_cap);
    for (size_t i = 0; i < count; i++) {
        const struct hg_heldkey_shown *row = &throttles->keys[i];
        const struct hg_throttles_seen seen = {
            .what = HG_THROTTLE_KEY_SHARE,
            .upstream = row->upstream,
            .server = row->server,
            .tenant = row->bucket,
            .tickets = hg_gate_place_name((enum hg_gate_place)(HG_GATE_READ + row->kind)),
            .key = hg_span(row->key, row->key_len),
            .id = row->id,
            .worker = worker,
            .number = row->since_us,
            .counted = row->refused,
            .active = row->is_dear && !row->is_over,
            .goes_on = !row->is_over,
            .service_us = row->service_us,
            .usual_us = row->usual_us,
            .share = row->share,
        };
        if (!row->is_observed)
            hg_throttles_see(throttles, &seen);
    }
}

static void see_evicted_keys(struct hg_throttles *throttles, unsigned worker)
{
    struct hg_bind_board *board = &throttles->process->workers[worker].bind_board;
    size_t count = COPY(board, throttles->binds, throttles->binds_cap);
    for (size_t i = 0; i < count; i++) {
        const struct hg_bind_shown *row = &throttles->binds[i];
        const struct hg_bucket *bucket =
            hg_directory_bucket(throttles->process->directory, hg_span_str(row->bucket));
        if (bucket == NULL || bucket->upstream == NULL ||
            atomic_load((_Atomic int *)(uintptr_t)&bucket->bind_mode) != HG_MODE_ENFORCE)
            continue;
        const struct hg_throttles_seen seen = {
            .what = HG_THROTTLE_BIND,
            .upstream = bucket->upstream->name,
            .server = "",
            .tenant = row->bucket,
            .tickets = "",
            .key = hg_span(row->key, row->key_len),
            .id = row->hash ^ (uint32_t)row->type << 8 ^ row->table_len,
            .worker = worker,
            .number = 1,
            .counted = row->refused,
            .active = true,
            .x = row->x,
        };
        hg_throttles_see(throttles, &seen);
    }
}

void hg_throttles_look_at_all(struct hg_throttles *throttles, uint64_t now_us)
{
    see_tickets(throttles, now_us);
    for (unsigned w = 0; w < throttles->process->front.worker_count; w++) {
        see_floods(throttles, w);
        see_held_keys(throttles, w);
        see_evicted_keys(throttles, w);
    }
}
