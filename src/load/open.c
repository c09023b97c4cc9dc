// open - the open loop of a lane: requests that are due, those that wait, those that are not sent
// SPDX-License-Identifier: BSD-3-Clause
#include "load/open.h"

#include <stdlib.h>
#include <string.h>

#include "load/lane.h"
#include "load/worker.h"

#define FIRST_ROOM 64

void hg_open_init(struct hg_load_lane *lane, const struct hg_arrivals_share *share, uint64_t bound)
{
    struct hg_open *open = &lane->open;
    memset(open, 0, sizeof *open);
    lane->is_open = true;
    open->share = *share;
    open->bound = bound;
    open->measured_ns = UINT64_MAX;
    hg_arrivals_clear(&open->arrivals);
    hg_arrivals_clear(&open->hot);
}

void hg_open_fini(struct hg_open *open)
{
    free(open->ring);
    open->ring = NULL;
}

void hg_open_begin(struct hg_load_lane *lane, bool measured, uint64_t origin_ns, uint64_t end_ns)
{
    struct hg_open *open = &lane->open;
    const struct hg_load_tenant *tenant = lane->tenant;
    const struct hg_load_tables *tables = lane->tables;
    uint64_t seed = hg_gen_random(&lane->rng);
    hg_arrivals_init(&open->arrivals, tenant->arrivals,
                     measured ? &tenant->rate : &tables->warm_rate, &open->share, seed, origin_ns,
                     end_ns);
    if (measured) {
        open->measured_ns = origin_ns;
    }
    if (measured && tenant->hot_rate > 0) {
        hg_arrivals_init(&open->hot, tenant->arrivals, &tables->hot_rate, &open->share,
                         hg_gen_mix(seed), origin_ns, end_ns);
    }
}

bool hg_open_take(struct hg_open *open, struct hg_load_pending *ret_request)
{
    if (open->head == open->tail) {
        return false;
    }
    *ret_request = open->ring[open->head++ & (open->room - 1)];
    return true;
}

/* False when there is no memory. */
static bool put(struct hg_open *open, const struct hg_load_pending *request)
{
    uint64_t count = hg_open_waiting(open);
    if (count == open->room) {
        uint64_t room = open->room > 0 ? 2 * open->room : FIRST_ROOM;
        struct hg_load_pending *ring = malloc(room * sizeof *ring);
        if (ring == NULL) {
            return false;
        }
        for (uint64_t i = 0; i < count; i++) {
            ring[i] = open->ring[(open->head + i) & (open->room - 1)];
        }
        free(open->ring);
        open->ring = ring;
        open->room = room;
        open->head = 0;
        open->tail = count;
    }
    open->ring[open->tail++ & (open->room - 1)] = *request;
    return true;
}

/* The request whose moment comes first. */
static struct hg_load_pending arrive(struct hg_load_lane *lane)
{
    struct hg_open *open = &lane->open;
    struct hg_load_pending request = {0};
    bool is_hot = open->hot.next_ns <= open->arrivals.next_ns;
    struct hg_arrivals *arrivals = is_hot ? &open->hot : &open->arrivals;
    request.due_ns = arrivals->next_ns;
    hg_arrivals_advance(arrivals);
    if (is_hot) {
        request.op = (uint8_t)lane->tenant->hot_op;
        request.key = lane->tenant->hot_key;
    } else {
        hg_lane_draw(lane, &request);
    }
    lane->worker->budget--;
    request.measured = request.due_ns >= open->measured_ns;
    struct hg_load_stats *stats = request.measured ? &lane->measured : &lane->before;
    hg_counter_add(&stats->intended, 1);
    if (request.measured && lane->series.length_ns > 0) {
        enum hg_series_group group = hg_lane_group(lane, (enum hg_load_op)request.op, request.key);
        request.group = (uint8_t)(1 + group);
        hg_series_tally(&lane->series, group, request.due_ns)->offered++;
    }
    return request;
}

static void shed(struct hg_load_lane *lane, const struct hg_load_pending *request)
{
    struct hg_load_stats *stats = request->measured ? &lane->measured : &lane->before;
    hg_counter_add(&stats->shed, 1);
    if (request->group > 0) {
        enum hg_series_group group = (enum hg_series_group)(request->group - 1);
        hg_series_tally(&lane->series, group, request->due_ns)->not_sent++;
    }
}

/* Spreads what waits evenly over the connections that have room. */
static void send_waiting(struct hg_load_lane *lane, uint64_t now_ns)
{
    while (lane->paced_first != NULL && hg_open_waiting(&lane->open) > 0) {
        uint64_t waiting = hg_open_waiting(&lane->open);
        uint64_t most = (waiting + lane->paced_count - 1) / lane->paced_count;
        hg_load_conn_send_some(hg_lane_leave_row(lane), now_ns, most);
    }
}

void hg_open_release(struct hg_load_lane *lane, uint64_t now_ns)
{
    struct hg_open *open = &lane->open;
    while (hg_open_next_ns(open) <= now_ns && lane->worker->budget > 0) {
        if (hg_open_waiting(open) >= open->bound + lane->paced_count) {
            send_waiting(lane, now_ns);
        }
        bool has_room = hg_open_waiting(open) < open->bound + lane->paced_count;
        struct hg_load_pending request = arrive(lane);
        if (!has_room || !put(open, &request)) {
            shed(lane, &request);
        }
    }
    send_waiting(lane, now_ns);
    while (hg_open_waiting(open) > open->bound) {
        shed(lane, &open->ring[--open->tail & (open->room - 1)]); /* a connection was lost */
    }
}

void hg_open_end(struct hg_load_lane *lane, uint64_t now_ns)
{
    struct hg_open *open = &lane->open;
    struct hg_load_pending request;
    while (hg_open_take(open, &request)) {
        struct hg_load_stats *stats = request.measured ? &lane->measured : &lane->before;
        hg_counter_add(&stats->left, 1);
        if (request.group > 0) {
            enum hg_series_group group = (enum hg_series_group)(request.group - 1);
            hg_series_tally(&lane->series, group, now_ns)->not_sent++;
        }
    }
    hg_arrivals_clear(&open->arrivals);
    hg_arrivals_clear(&open->hot);
}
