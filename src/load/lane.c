// lane - one tenant's load on one thread: what to send next, and what became of it
// SPDX-License-Identifier: BSD-3-Clause
#include "load/lane.h"

#include <stdarg.h>
#include <stdio.h>

#include "load/worker.h"

/* A lane that fell behind its pace may catch up on this much, so that a pause of the machine does
 * not lower the rate, nor end in a burst. */
#define CATCH_UP_NS 20000000u

static void next_fill(struct hg_load_lane *lane, enum hg_load_op *ret_op, uint32_t *ret_key)
{
    uint64_t n = lane->filled++;
    *ret_op = lane->fill_ops[n / lane->fill_keys];
    *ret_key = lane->fill_first + (uint32_t)(n % lane->fill_keys);
}

/* The hot key, when it is due. */
static bool next_hot(struct hg_load_lane *lane, uint64_t now_ns, enum hg_load_op *ret_op,
                     uint32_t *ret_key)
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
    *ret_op = (enum hg_load_op)lane->tenant->hot_op;
    *ret_key = lane->tenant->hot_key;
    return true;
}

bool hg_lane_next(struct hg_load_lane *lane, uint64_t now_ns, enum hg_load_op *ret_op,
                  uint32_t *ret_key)
{
    if (HG_UNLIKELY(lane->mode != HG_LANE_MIX)) {
        if (lane->mode == HG_LANE_SILENT || lane->filled == lane->fill_total) {
            return false;
        }
        next_fill(lane, ret_op, ret_key);
        return true;
    }
    if (lane->worker->budget == 0) {
        return false;
    }
    if (lane->hot_pace_ns > 0 && next_hot(lane, now_ns, ret_op, ret_key)) {
        return true;
    }
    if (lane->pace_ns > 0) {
        if (lane->due_ns > now_ns) {
            return false;
        }
        uint64_t earliest = now_ns - CATCH_UP_NS;
        lane->due_ns = (lane->due_ns > earliest ? lane->due_ns : earliest) + lane->pace_ns;
    }
    lane->worker->budget--;
    const struct hg_load_tables *tables = lane->tables;
    uint64_t random = hg_gen_random(&lane->rng);
    enum hg_load_op op =
        (enum hg_load_op)tables->mix.slots[hg_gen_below((uint32_t)random, tables->mix.total)];
    *ret_op = op == HG_LOAD_APPEND && random >> 59 == 0 ? HG_LOAD_START : op;
    *ret_key = hg_gen_zipf_draw(&tables->zipf, hg_gen_random(&lane->rng));
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
    hg_gen_put_key((uint8_t *)key_text, tenant->key_prefix, hg_load_op_table[op].space,
                   tenant->key_bytes, key);
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    fprintf(stderr, "headgate-load: wrong reply: tenant '%s', %s of key '%.*s': %s\n", tenant->name,
            hg_load_op_table[op].name, (int)tenant->key_bytes, key_text, detail);
}
