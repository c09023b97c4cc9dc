// lane - one tenant's load on one thread: what to send next, and what became of it
// SPDX-License-Identifier: BSD-3-Clause
//
//     worker (a thread) --- lane (tenant A) --- connections
//                      `--- lane (tenant B) --- connections
//
// A lane belongs to its thread; only `before` and `measured` are read by others.
#ifndef HG_LOAD_LANE_H
#define HG_LOAD_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/attr.h"
#include "load/conn.h"
#include "load/gen.h"
#include "load/open.h"
#include "load/options.h"
#include "load/series.h"
#include "load/stats.h"

struct hg_load_codec;
struct hg_load_worker;

/* The tables of a tenant, read by all threads. */
struct hg_load_tables {
    struct hg_gen_mix_table mix;
    struct hg_gen_zipf zipf;
    struct hg_gen_values values;
    struct hg_rate warm_rate; /* the first step of the tenant's, for ever */
    struct hg_rate hot_rate;  /* that of the hot key, from the start of the measured part on */
};

enum hg_lane_mode {
    HG_LANE_SILENT, /* answers are awaited, nothing is sent */
    HG_LANE_FILL,   /* every key is stored once */
    HG_LANE_MIX,
};

/* A request, complete but for its opaque, its key's number and its value. */
#define HG_LANE_FRAME_MAX 320
struct hg_lane_frame {
    uint8_t bytes[HG_LANE_FRAME_MAX];
    uint32_t len;
    uint32_t digits_end; /* where the key's number ends */
};

/* Kinds of wrong replies; each is described once. */
enum hg_lane_wrong {
    HG_LANE_WRONG_FRAMING,
    HG_LANE_WRONG_UNASKED,
    HG_LANE_WRONG_OPCODE,
    HG_LANE_WRONG_OPAQUE,
    HG_LANE_WRONG_STATUS,
    HG_LANE_WRONG_LENGTH,
    HG_LANE_WRONG_VALUE,
    HG_LANE_WRONG_FLAGS,
    HG_LANE_WRONG_CAS,
    HG_LANE_WRONG_EXTRAS,
};

struct hg_load_lane {
    const struct hg_load_tenant *tenant;
    const struct hg_load_tables *tables;
    const struct hg_load_codec *codec;
    struct hg_load_worker *worker;
    uint32_t body_max; /* a longer reply is not believed */
    uint32_t alive;    /* connections that are not lost */

    /* What to send. */
    enum hg_lane_mode mode;
    struct hg_gen_rng rng;
    uint32_t digits;
    struct hg_lane_frame frame[HG_LOAD_OPS];
    uint64_t expected[HG_LOAD_OPS]; /* the first 8 bytes of an ordinary reply */
    uint32_t fill_first; /* this lane fills keys fill_first .. fill_first + fill_keys - 1 */
    uint32_t fill_keys;
    uint64_t filled; /* sets sent */
    uint64_t fill_total;
    enum hg_load_op fill_ops[4]; /* each key is stored with each of these */
    uint32_t fill_op_count;
    uint64_t fill_stored; /* known when all have been answered */

    /* Connections that may send but must wait, for the pace or for a request, stand in a row. */
    struct hg_load_conn *paced_first;
    struct hg_load_conn *paced_last;
    uint64_t paced_count;

    /* An open loop. */
    bool is_open;
    struct hg_open open;

    /* The pace of a closed loop whose tenant has a rate. */
    bool has_pace;
    const struct hg_rate *rate;
    double share;  /* this lane's part of it */
    uint32_t step; /* of the rate */
    uint64_t step_end_ns;
    uint64_t rate_from_ns; /* when the rate's first step began */
    uint64_t pace_ns;      /* 0: no bound */
    uint64_t due_ns;

    /* The hot key's requests have a pace of their own, and come before the others when due. */
    uint64_t hot_pace_ns; /* 0: there is none */
    uint64_t hot_due_ns;
    uint64_t hot_until_ns;

    /* What became of it. Equal latencies in a row, as the replies of one batch have, are gathered.
     */
    struct hg_load_stats *into;
    struct hg_load_stats *phase; /* where `into` points but for replies to requests of an open loop
                                    that were due in another phase */
    uint64_t slo_ns;
    uint64_t run_ns;
    uint64_t run_count;
    uint32_t described; /* bits of enum hg_lane_wrong */
    struct hg_load_stats before;
    struct hg_load_stats measured;
    struct hg_series series; /* length_ns 0: not kept */
    bool in_series;          /* requests that are sent now are counted in it */
};

static inline uint64_t hg_lane_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* When a connection of a closed loop that must wait may send again. */
static inline uint64_t hg_lane_due_ns(const struct hg_load_lane *lane)
{
    bool hot = lane->hot_pace_ns > 0 && lane->hot_due_ns < lane->hot_until_ns;
    uint64_t due_ns = lane->due_ns < lane->step_end_ns ? lane->due_ns : lane->step_end_ns;
    return hot && lane->hot_due_ns < due_ns ? lane->hot_due_ns : due_ns;
}

/* Takes the first connection out of the row, which is not empty. */
struct hg_load_conn *hg_lane_leave_row(struct hg_load_lane *lane);
void hg_lane_enter_row(struct hg_load_lane *lane, struct hg_load_conn *conn);

/* Begins a closed loop's rate at its first step. */
void hg_lane_begin_rate(struct hg_load_lane *lane, uint64_t now_ns);

/* Draws operation and key of a request of the mix. */
void hg_lane_draw(struct hg_load_lane *lane, struct hg_load_pending *pending);

/* Whose the request is, by what it is done to. */
static inline enum hg_series_group hg_lane_group(const struct hg_load_lane *lane,
                                                 enum hg_load_op op, uint32_t key)
{
    const struct hg_load_tenant *tenant = lane->tenant;
    const struct hg_load_op_info *hot = &hg_load_op_table[tenant->hot_op];
    const struct hg_load_op_info *info = &hg_load_op_table[op];
    return tenant->hot_rate > 0 && key == tenant->hot_key && info->space == hot->space &&
                   (info->opcode == hot->opcode || !hg_load_op_is_row(op)) &&
                   hg_load_op_is_row(op) == hg_load_op_is_row((enum hg_load_op)tenant->hot_op)
               ? HG_SERIES_HOT
               : HG_SERIES_OTHER;
}

/* The next request to send. False: there is none now (silent, filled, budget used up, or not yet
 * due: in a closed loop hg_lane_due_ns > now_ns then). */
HG_MUST_USE bool hg_lane_next(struct hg_load_lane *lane, uint64_t now_ns,
                              struct hg_load_pending *ret_pending);

/* Writes the whole key of a request. Room for key_bytes. */
static inline void hg_lane_put_key(const struct hg_load_tenant *tenant, char space, uint32_t key,
                                   uint8_t *to)
{
    if (tenant->key != NULL) {
        memcpy(to, tenant->key, tenant->key_bytes);
    } else {
        hg_gen_put_key(to, tenant->key_prefix, space, tenant->key_bytes, key);
    }
}

/* Writes the bytes of a frame and the number of its key; the caller adds the rest. Room for
 * HG_LANE_FRAME_MAX bytes. */
static inline void hg_lane_put_frame(const struct hg_load_lane *lane, enum hg_load_op op,
                                     uint32_t key, uint8_t *to)
{
    const struct hg_lane_frame *frame = &lane->frame[op];
    if (HG_LIKELY(frame->len <= 64)) {
        memcpy(to, frame->bytes, 64);
    } else {
        memcpy(to, frame->bytes, frame->len);
    }
    hg_gen_put_digits(to + frame->digits_end, lane->digits, key);
}

static inline void hg_lane_settle(struct hg_load_lane *lane)
{
    if (lane->run_count > 0) {
        hg_hist_record(&lane->into->latency, lane->run_ns, lane->run_count);
        hg_counter_add(&lane->into->within_slo, lane->run_ns <= lane->slo_ns ? lane->run_count : 0);
        lane->run_count = 0;
    }
}

/* What comes next is counted where the request belongs: in an open loop to the phase in which it
 * was due, in a closed one to the present one. */
static inline void hg_lane_aim(struct hg_load_lane *lane, bool measured)
{
    if (HG_UNLIKELY(lane->is_open && (lane->into == &lane->measured) != measured)) {
        hg_lane_settle(lane);
        lane->into = measured ? &lane->measured : &lane->before;
    }
}

/* Counts a reply of status slot `slot`. Latencies become visible with hg_lane_settle. */
static inline void hg_lane_tell(struct hg_load_lane *lane, const struct hg_load_pending *pending,
                                enum hg_load_outcome outcome, uint32_t slot, uint64_t now_ns)
{
    struct hg_load_stats *stats = lane->into;
    uint64_t latency_ns = now_ns - pending->due_ns;
    hg_counter_add(&stats->status[slot], 1);
    if (HG_UNLIKELY(pending->group != 0)) {
        hg_series_answered(&lane->series, (enum hg_series_group)(pending->group - 1), outcome, slot,
                           latency_ns, now_ns);
    }
    if (HG_UNLIKELY(outcome >= HG_LOAD_REFUSED)) {
        if (outcome == HG_LOAD_REFUSED) {
            hg_counter_add(&stats->count[pending->op][outcome], 1);
            hg_hist_record(&stats->refusal, latency_ns, 1);
        }
        return;
    }
    hg_counter_add(&stats->count[pending->op][outcome], 1);
    if (latency_ns != lane->run_ns) {
        hg_lane_settle(lane);
        lane->run_ns = latency_ns;
    }
    lane->run_count++;
}

/* Counts a wrong reply to a request, and describes the first of its kind on stderr. */
HG_PRINTF(5, 6)
void hg_lane_wrong(struct hg_load_lane *lane, enum hg_lane_wrong kind, enum hg_load_op op,
                   uint32_t key, const char *format, ...);

#endif
