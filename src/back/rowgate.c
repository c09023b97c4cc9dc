// rowgate - the order of calls for one row within a worker, and the list of those that may start
// SPDX-License-Identifier: BSD-3-Clause
#include "back/rowgate.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"

#define FIRST_BUCKETS   64 /* a power of two */
#define GATES_PER_BLOCK 64

static struct hg_row_call *call_at(struct hg_list *node)
{
    return HG_CONTAINER_OF(node, struct hg_row_call, node);
}

static struct hg_row_call *call_at_turn(struct hg_list *turn)
{
    return HG_CONTAINER_OF(turn, struct hg_row_call, turn);
}

static void wake_rested(struct hg_rows *rows);

/* The end of a turn: those whose time has come, and those that a cancel has let in. */
static void on_ready(struct hg_hook *hook)
{
    struct hg_rows *rows = HG_CONTAINER_OF(hook, struct hg_rows, ready_hook);
    if (HG_UNLIKELY(!hg_list_empty(&rows->resting)))
        wake_rested(rows);
    hg_rowgate_run(rows);
}

static void set_alarm(struct hg_rows *rows);

/* The loop turns, which is enough: see on_ready. A timer that is early is set again. */
static void on_rest(struct hg_timer *timer)
{
    struct hg_rows *rows = HG_CONTAINER_OF(timer, struct hg_rows, rest_timer);
    if (rows->next_start_us != UINT64_MAX && rows->loop->now_us < rows->next_start_us)
        set_alarm(rows);
}

bool hg_rowgate_init(struct hg_rows *rows)
{
    rows->buckets = calloc(FIRST_BUCKETS, sizeof *rows->buckets);
    if (rows->buckets == NULL ||
        hg_loop_timer_init(rows->loop, &rows->rest_timer, 0, on_rest) != 0) {
        free(rows->buckets);
        return false;
    }
    rows->bucket_count = FIRST_BUCKETS;
    rows->next_expiry_us = UINT64_MAX;
    hg_slab_init(&rows->gates, sizeof(struct hg_row_gate), GATES_PER_BLOCK);
    hg_list_init(&rows->crowded);
    hg_list_init(&rows->ready);
    hg_list_init(&rows->resting);
    rows->next_start_us = UINT64_MAX;
    rows->prng.state = hg_now_us() ^ (uintptr_t)rows; /* no two workers rest alike */
    hg_loop_hook(rows->loop, HG_STAGE_READY, &rows->ready_hook, on_ready);
    return true;
}

void hg_rowgate_fini(struct hg_rows *rows)
{
    assert(rows->gate_count == 0 && hg_list_empty(&rows->ready) && hg_list_empty(&rows->resting));
    hg_loop_unhook(&rows->ready_hook);
    hg_loop_timer_fini(&rows->rest_timer);
    hg_slab_fini(&rows->gates);
    free(rows->buckets);
}

/* --- the table of gates --- */

static uint32_t hash_of(const struct hg_row_call *call)
{
    uint64_t h = ((uint64_t)call->tenant_id << 32 | call->key_hash) ^ (uintptr_t)call->store;
    h *= 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32);
}

static bool is_of(const struct hg_row_gate *gate, const struct hg_row_call *call)
{
    const struct hg_row_call *inside = call_at(gate->inside.next);
    return inside->tenant_id == call->tenant_id && inside->store == call->store &&
           hg_span_equal(inside->key, call->key);
}

static struct hg_row_gate **bucket_of(struct hg_rows *rows, uint32_t hash)
{
    return &rows->buckets[hash & (rows->bucket_count - 1)];
}

/* Twice as many buckets; without memory the chains are longer. */
static void grow(struct hg_rows *rows)
{
    size_t count = rows->bucket_count * 2;
    struct hg_row_gate **old = rows->buckets, **fresh = calloc(count, sizeof *fresh);
    if (fresh == NULL)
        return;
    size_t old_count = rows->bucket_count;
    rows->buckets = fresh;
    rows->bucket_count = count;
    for (size_t i = 0; i < old_count; i++)
        while (old[i] != NULL) {
            struct hg_row_gate *gate = old[i], **to = bucket_of(rows, gate->hash);
            old[i] = gate->next;
            gate->next = *to;
            *to = gate;
        }
    free(old);
}

static struct hg_row_gate *find(struct hg_rows *rows, const struct hg_row_call *call, uint32_t hash)
{
    struct hg_row_gate *gate = *bucket_of(rows, hash);
    while (gate != NULL && (gate->hash != hash || !is_of(gate, call)))
        gate = gate->next;
    return gate;
}

static struct hg_row_gate *add(struct hg_rows *rows, uint32_t hash)
{
    struct hg_row_gate *gate = hg_slab_borrow(&rows->gates);
    if (gate == NULL)
        return NULL;
    if (rows->gate_count >= rows->bucket_count)
        grow(rows);
    struct hg_row_gate **bucket = bucket_of(rows, hash);
    gate->hash = hash;
    gate->writing = false;
    gate->next = *bucket;
    hg_list_init(&gate->inside);
    hg_list_init(&gate->waiting);
    hg_list_init(&gate->crowd);
    *bucket = gate;
    rows->gate_count++;
    return gate;
}

static void drop(struct hg_rows *rows, struct hg_row_gate *gate)
{
    struct hg_row_gate **at = bucket_of(rows, gate->hash);
    while (*at != gate)
        at = &(*at)->next;
    *at = gate->next;
    rows->gate_count--;
    hg_slab_give_back(&rows->gates, gate);
}

bool hg_rows_uses(const struct hg_rows *rows, const struct hg_store *store)
{
    for (size_t i = 0; i < rows->bucket_count && rows->gate_count > 0; i++)
        for (const struct hg_row_gate *gate = rows->buckets[i]; gate != NULL; gate = gate->next)
            if (call_at(gate->inside.next)->store == store)
                return true;
    return false;
}

/* --- in and out --- */

static bool may_enter(const struct hg_row_gate *gate, const struct hg_row_call *call)
{
    return hg_list_empty(&gate->inside) || (!gate->writing && !call->writes);
}

static void let_in(struct hg_row_gate *gate, struct hg_row_call *call)
{
    hg_list_append(&gate->inside, &call->node);
    gate->writing = call->writes;
    hg_rowgate_make_ready(call);
}

static void wait(struct hg_rows *rows, struct hg_row_gate *gate, struct hg_row_call *call)
{
    if (hg_list_empty(&gate->waiting))
        hg_list_append(&rows->crowded, &gate->crowd);
    hg_list_append(&gate->waiting, &call->node);
    call->step = HG_ROW_STEP_WAITS;
    if (call->deadline_us != 0 && call->deadline_us < rows->next_expiry_us)
        rows->next_expiry_us = call->deadline_us;
    hg_counter_add(&rows->counters->waited, 1);
}

/* Somebody has gone: the next ones come in, and an empty gate goes. */
static void settle(struct hg_rows *rows, struct hg_row_gate *gate)
{
    struct hg_list *node;
    while ((node = hg_list_first(&gate->waiting)) != NULL && may_enter(gate, call_at(node))) {
        hg_list_remove(node);
        let_in(gate, call_at(node));
    }
    if (hg_list_empty(&gate->waiting))
        hg_list_remove(&gate->crowd);
    if (hg_list_empty(&gate->inside))
        drop(rows, gate);
}

bool hg_rowgate_enter(struct hg_rows *rows, struct hg_row_call *call)
{
    uint32_t hash = hash_of(call);
    struct hg_row_gate *gate = find(rows, call, hash);
    if (gate == NULL)
        gate = add(rows, hash);
    if (HG_UNLIKELY(gate == NULL))
        return false;
    call->gate = gate;
    if (hg_list_empty(&gate->waiting) && may_enter(gate, call))
        let_in(gate, call);
    else
        wait(rows, gate, call);
    return true;
}

void hg_rowgate_leave(struct hg_row_call *call)
{
    struct hg_row_gate *gate = call->gate;
    if (call->step == HG_ROW_STEP_READY || call->step == HG_ROW_STEP_RESTS)
        hg_list_remove(&call->turn);
    if (call->step != HG_ROW_STEP_NONE)
        hg_list_remove(&call->node);
    call->step = HG_ROW_STEP_NONE;
    call->gate = NULL;
    if (gate != NULL)
        settle(call->rows, gate);
}

void hg_rowgate_take_late(struct hg_rows *rows, uint64_t now_us, struct hg_list *late)
{
    if (HG_LIKELY(now_us < rows->next_expiry_us))
        return;
    rows->next_expiry_us = UINT64_MAX;
    HG_LIST_EACH(crowd, &rows->crowded)
    {
        struct hg_row_gate *gate = HG_CONTAINER_OF(crowd, struct hg_row_gate, crowd);
        HG_LIST_EACH(node, &gate->waiting)
        {
            struct hg_row_call *call = call_at(node);
            if (call->deadline_us == 0)
                continue;
            if (call->deadline_us > now_us) {
                if (call->deadline_us < rows->next_expiry_us)
                    rows->next_expiry_us = call->deadline_us;
                continue;
            }
            hg_list_remove(node);
            hg_list_append(late, node);
            call->step = HG_ROW_STEP_LATE;
            call->gate = NULL;
        }
        settle(rows, gate);
    }
}

void hg_rowgate_make_ready(struct hg_row_call *call)
{
    call->step = HG_ROW_STEP_READY;
    hg_list_append(&call->rows->ready, &call->turn);
}

/* The loop turns when the next one is to be started. */
static void set_alarm(struct hg_rows *rows)
{
    uint64_t now_us = rows->loop->now_us;
    uint64_t us = rows->next_start_us > now_us ? rows->next_start_us - now_us : 0;
    if (hg_loop_timer_arm(&rows->rest_timer, us) != 0)
        hg_loop_again(rows->loop);
}

void hg_rowgate_make_rest(struct hg_row_call *call, uint64_t us)
{
    struct hg_rows *rows = call->rows;
    hg_loop_stamp(rows->loop);
    call->step = HG_ROW_STEP_RESTS;
    call->start_us = rows->loop->now_us + us;
    hg_list_append(&rows->resting, &call->turn);
    if (call->start_us < rows->next_start_us) {
        rows->next_start_us = call->start_us;
        set_alarm(rows);
    }
}

static void wake_rested(struct hg_rows *rows)
{
    hg_loop_stamp(rows->loop);
    if (rows->loop->now_us < rows->next_start_us)
        return;
    rows->next_start_us = UINT64_MAX;
    HG_LIST_EACH(turn, &rows->resting)
    {
        struct hg_row_call *call = call_at_turn(turn);
        if (call->start_us <= rows->loop->now_us) {
            hg_list_remove(turn);
            hg_rowgate_make_ready(call);
        } else if (call->start_us < rows->next_start_us) {
            rows->next_start_us = call->start_us;
        }
    }
    if (!hg_list_empty(&rows->resting))
        set_alarm(rows);
}

void hg_rowgate_run(struct hg_rows *rows)
{
    struct hg_list *node;
    if (rows->running)
        return;
    rows->running = true;
    while ((node = hg_list_first(&rows->ready)) != NULL) {
        struct hg_row_call *call = call_at_turn(node);
        hg_list_remove(node);
        call->step = HG_ROW_STEP_ASKS;
        hg_rows_start(call);
    }
    rows->running = false;
}
