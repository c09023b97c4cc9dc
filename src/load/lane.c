// lane - one tenant's load on one thread: what to send next, and what became of it
// SPDX-License-Identifier: BSD-3-Clause
#include "load/lane.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "load/worker.h"

/* A lane that fell behind its pace may catch up on this much, so that a pause of the machine does
 * not lower the rate, nor end in a burst. */
#define CATCH_UP_NS 20000000u

void hg_lane_enter_row(struct hg_load_lane *lane, struct hg_load_conn *conn)
{
    if (conn->is_paced) {
        return;
    }
    conn->is_paced = true;
    conn->paced_next = NULL;
    if (lane->paced_first == NULL) {
        lane->paced_first = conn;
    } else {
        lane->paced_last->paced_next = conn;
    }
    lane->paced_last = conn;
    lane->paced_count++;
}

struct hg_load_conn *hg_lane_leave_row(struct hg_load_lane *lane)
{
    struct hg_load_conn *conn = lane->paced_first;
    lane->paced_first = conn->paced_next;
    lane->paced_count--;
    conn->is_paced = false;
    return conn;
}

/* A step of the rate begins; the first request of it is due at once, if there is one. */
static void begin_step(struct hg_load_lane *lane, uint32_t step)
{
    double rate = lane->rate->step[step].rate * lane->share;
    uint64_t end_ns = hg_rate_step_end(lane->rate, step);
    lane->step = step;
    lane->step_end_ns = end_ns == UINT64_MAX ? UINT64_MAX : lane->rate_from_ns + end_ns;
    lane->due_ns = rate > 0 ? lane->rate_from_ns + lane->rate->step[step].at_ns : UINT64_MAX;
    lane->pace_ns = 0;
    if (rate > 0 && !isinf(rate)) {
        lane->pace_ns = (uint64_t)(1e9 / rate);
        lane->pace_ns += lane->pace_ns == 0;
    }
}

void hg_lane_begin_rate(struct hg_load_lane *lane, uint64_t now_ns)
{
    lane->rate_from_ns = now_ns;
    begin_step(lane, 0);
}

/* Whether a request may be sent by the tenant's rate. */
static bool keep_pace(struct hg_load_lane *lane, uint64_t now_ns)
{
    while (now_ns >= lane->step_end_ns) {
        begin_step(lane, lane->step + 1);
    }
    if (lane->due_ns > now_ns) {
        return false;
    }
    if (lane->pace_ns > 0) {
        uint64_t earliest = now_ns - CATCH_UP_NS;
        lane->due_ns = (lane->due_ns > earliest ? lane->due_ns : earliest) + lane->pace_ns;
    }
    return true;
}

static void next_fill(struct hg_load_lane *lane, struct hg_load_pending *pending)
{
    uint64_t n = lane->filled++;
    pending->op = (uint8_t)lane->fill_ops[n / lane->fill_keys];
    pending->key = lane->fill_first + (uint32_t)(n % lane->fill_keys);
}

/* The hot key, when it is due. */
static bool next_hot(struct hg_load_lane *lane, uint64_t now_ns, struct hg_load_pending *pending)
{
    if (now_ns >= lane->hot_until_ns) {
        lane->hot_due_ns = UINT64_MAX;
    }
    if (lane->hot_due_ns > now_ns) {
        return false;
    }
    uint64_t earliest = now_ns - CATCH_UP_NS;
    lane->hot_due_ns =
        (lane->hot_due_ns > earliest ? lane->hot_due_ns : earliest) + lane->hot_pace_ns;
    lane->worker->budget--;
    pending->op = (uint8_t)lane->tenant->hot_op;
    pending->key = lane->tenant->hot_key;
    return true;
}

void hg_lane_draw(struct hg_load_lane *lane, struct hg_load_pending *pending)
{
    const struct hg_load_tables *tables = lane->tables;
    uint64_t random = hg_gen_random(&lane->rng);
    uint8_t op = tables->mix.slots[hg_gen_below((uint32_t)random, tables->mix.total)];
    pending->op = op == HG_LOAD_APPEND && random >> 59 == 0 ? HG_LOAD_START : op;
    pending->key = hg_gen_zipf_draw(&tables->zipf, hg_gen_random(&lane->rng));
}

/* Counts a request of a closed loop in the series. */
static void offer(struct hg_load_lane *lane, uint64_t now_ns, struct hg_load_pending *pending)
{
    enum hg_series_group group = hg_lane_group(lane, (enum hg_load_op)pending->op, pending->key);
    pending->group = (uint8_t)(1 + group);
    hg_series_tally(&lane->series, group, now_ns)->offered++;
}

bool hg_lane_next(struct hg_load_lane *lane, uint64_t now_ns, struct hg_load_pending *ret_pending)
{
    if (HG_UNLIKELY(lane->is_open && lane->mode == HG_LANE_MIX)) {
        return hg_open_take(&lane->open, ret_pending);
    }
    ret_pending->due_ns = now_ns;
    ret_pending->group = 0;
    ret_pending->measured = 0; /* nobody asks in a closed loop */
    if (HG_UNLIKELY(lane->mode != HG_LANE_MIX)) {
        if (lane->mode == HG_LANE_SILENT || lane->filled == lane->fill_total) {
            return false;
        }
        next_fill(lane, ret_pending);
        return true;
    }
    if (lane->worker->budget == 0) {
        return false;
    }
    if (lane->hot_pace_ns == 0 || !next_hot(lane, now_ns, ret_pending)) {
        if (lane->has_pace && !keep_pace(lane, now_ns)) {
            return false;
        }
        lane->worker->budget--;
        hg_lane_draw(lane, ret_pending);
    }
    if (HG_UNLIKELY(lane->in_series)) {
        offer(lane, now_ns, ret_pending);
    }
    return true;
}

void hg_lane_wrong(struct hg_load_lane *lane, enum hg_lane_wrong kind, enum hg_load_op op,
                   uint32_t key, const char *format, ...)
{
    hg_counter_add(&lane->into->wrong, 1);
    if ((lane->described & (1u << kind)) != 0) {
        return;
    }
    lane->described |= 1u << kind;
    const struct hg_load_tenant *tenant = lane->tenant;
    char key_text[256];
    char detail[300];
    hg_lane_put_key(tenant, hg_load_op_table[op].space, key, (uint8_t *)key_text);
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    fprintf(stderr, "headgate-load: wrong reply: tenant '%s', %s of key '%.*s': %s\n", tenant->name,
            hg_load_op_table[op].name, (int)tenant->key_bytes, key_text, detail);
}
