// worker - a thread of the load: its event loop and its phases
// SPDX-License-Identifier: BSD-3-Clause
#include "load/worker.h"

#include <errno.h>
#include <sys/epoll.h>

#define EVENTS 256

/* How often connections are looked at for replies that do not come. */
#define LOOK_NS 100000000u

int hg_load_worker_watch(struct hg_load_worker *worker, struct hg_load_conn *conn, bool again,
                         bool writable)
{
    struct epoll_event event = {
        .events = EPOLLIN | (writable ? EPOLLOUT : 0u),
        .data.ptr = conn,
    };
    int how = again ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    return epoll_ctl(worker->epoll_fd, how, conn->fd, &event) == 0 ? 0 : -errno;
}

/* Gives up connections whose oldest request waits too long. */
static void look_for_silence(struct hg_load_worker *worker)
{
    uint64_t timeout_ns = worker->plan->options->timeout_ns;
    if (worker->now_ns < worker->look_ns) {
        return;
    }
    worker->look_ns = worker->now_ns + LOOK_NS;
    for (uint32_t i = 0; i < worker->conn_count; i++) {
        struct hg_load_conn *conn = &worker->conns[i];
        if (conn->fd >= 0 && hg_load_conn_unanswered(conn) > 0 &&
            conn->ring[conn->head & conn->mask].sent_ns + timeout_ns <= worker->now_ns) {
            hg_load_conn_lose(conn, "no reply for %g s", (double)timeout_ns / 1e9);
        }
    }
}

/* Lets connections send that waited for their tenant's pace. */
static void release_paced(struct hg_load_worker *worker)
{
    for (uint32_t i = 0; i < worker->lane_count; i++) {
        struct hg_load_lane *lane = worker->lanes[i];
        while (lane->paced_first != NULL && hg_lane_due_ns(lane) <= worker->now_ns &&
               worker->budget > 0 && lane->mode == HG_LANE_MIX) {
            struct hg_load_conn *conn = lane->paced_first;
            lane->paced_first = conn->paced_next;
            conn->is_paced = false;
            hg_load_conn_send(conn, worker->now_ns);
        }
    }
}

/* Milliseconds, rounded up, that a turn may sleep. */
static int patience_ms(const struct hg_load_worker *worker, uint64_t until_ns)
{
    uint64_t until = until_ns < worker->look_ns ? until_ns : worker->look_ns;
    for (uint32_t i = 0; worker->has_pace && i < worker->lane_count; i++) {
        const struct hg_load_lane *lane = worker->lanes[i];
        if (lane->paced_first != NULL && lane->mode == HG_LANE_MIX &&
            hg_lane_due_ns(lane) < until) {
            until = hg_lane_due_ns(lane);
        }
    }
    return until <= worker->now_ns ? 0 : (int)((until - worker->now_ns + 999999) / 1000000);
}

static void turn(struct hg_load_worker *worker, uint64_t until_ns)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(worker->epoll_fd, events, EVENTS, patience_ms(worker, until_ns));
    if (n <= 0) {
        worker->now_ns = hg_lane_now_ns();
    }
    for (int i = 0; i < n; i++) {
        struct hg_load_conn *conn = events[i].data.ptr;
        if ((events[i].events & EPOLLOUT) != 0) {
            worker->now_ns = hg_lane_now_ns();
            hg_load_conn_on_writable(conn, worker->now_ns);
        }
        if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0) {
            hg_load_conn_on_readable(conn);
        }
    }
    if (worker->has_pace) {
        release_paced(worker);
    }
    look_for_silence(worker);
    if (worker->index == 0 && worker->plan->on_turn != NULL) {
        worker->plan->on_turn(worker->plan->user, worker->now_ns);
    }
}

static void set_mode(struct hg_load_worker *worker, enum hg_lane_mode mode)
{
    worker->now_ns = hg_lane_now_ns();
    for (uint32_t i = 0; i < worker->lane_count; i++) {
        worker->lanes[i]->mode = mode;
    }
    if (mode == HG_LANE_SILENT) {
        return;
    }
    for (uint32_t i = 0; i < worker->conn_count; i++) {
        if (worker->conns[i].fd >= 0) {
            hg_load_conn_send(&worker->conns[i], worker->now_ns);
        }
    }
}

static bool goes_on(const struct hg_load_worker *worker)
{
    return *worker->plan->stop == 0 && worker->alive > 0;
}

/* Waits for what is unanswered; look_for_silence bounds it. */
static void drain(struct hg_load_worker *worker)
{
    set_mode(worker, HG_LANE_SILENT);
    while (worker->unanswered > 0) {
        turn(worker, UINT64_MAX);
    }
}

static bool has_filled(const struct hg_load_worker *worker)
{
    for (uint32_t i = 0; i < worker->lane_count; i++) {
        const struct hg_load_lane *lane = worker->lanes[i];
        if (lane->filled < lane->fill_total && lane->alive > 0) {
            return false;
        }
    }
    return true;
}

static void fill(struct hg_load_worker *worker)
{
    set_mode(worker, HG_LANE_FILL);
    while (goes_on(worker) && !has_filled(worker)) {
        turn(worker, UINT64_MAX);
    }
    drain(worker);
    for (uint32_t i = 0; i < worker->lane_count; i++) {
        struct hg_load_lane *lane = worker->lanes[i];
        lane->fill_stored = hg_load_stats_outcome(&lane->before, HG_LOAD_DONE);
    }
}

static void warm_up(struct hg_load_worker *worker)
{
    const struct hg_load_options *options = worker->plan->options;
    worker->budget = UINT64_MAX;
    set_mode(worker, HG_LANE_MIX);
    uint64_t until_ns = worker->now_ns + options->warmup_ns;
    while (goes_on(worker) && worker->now_ns < until_ns) {
        turn(worker, until_ns);
    }
    if (options->has_operations) {
        drain(worker);
    }
}

static void switch_stats(struct hg_load_worker *worker, bool measured)
{
    for (uint32_t i = 0; i < worker->lane_count; i++) {
        struct hg_load_lane *lane = worker->lanes[i];
        lane->into = measured ? &lane->measured : &lane->before;
    }
}

/* From here on the hot key's clock runs, and requests are counted by intervals. */
static void start_lanes(struct hg_load_worker *worker)
{
    for (uint32_t i = 0; i < worker->lane_count; i++) {
        struct hg_load_lane *lane = worker->lanes[i];
        const struct hg_load_tenant *tenant = lane->tenant;
        lane->in_series = lane->series.length_ns > 0;
        lane->hot_due_ns = worker->start_ns + tenant->hot_at_ns;
        lane->hot_until_ns = tenant->hot_until_ns == UINT64_MAX
                                 ? UINT64_MAX
                                 : worker->start_ns + tenant->hot_until_ns;
    }
}

static uint64_t share_of_operations(const struct hg_load_worker *worker)
{
    const struct hg_load_options *options = worker->plan->options;
    if (!options->has_operations) {
        return UINT64_MAX;
    }
    return options->operations / options->threads +
           (worker->index < options->operations % options->threads ? 1 : 0);
}

static void measure(struct hg_load_worker *worker)
{
    struct hg_load_plan *plan = worker->plan;
    switch_stats(worker, true);
    worker->budget = share_of_operations(worker);
    worker->start_ns = worker->now_ns = hg_lane_now_ns();
    uint64_t until_ns =
        plan->options->time_ns > 0 ? worker->start_ns + plan->options->time_ns : UINT64_MAX;
    start_lanes(worker);
    if (worker->index == 0) {
        plan->on_measure(plan->user, true, worker->now_ns);
    }
    set_mode(worker, HG_LANE_MIX);
    while (goes_on(worker) && worker->now_ns < until_ns &&
           (worker->budget > 0 || worker->unanswered > 0)) {
        turn(worker, until_ns);
    }
    worker->end_ns = worker->now_ns;
    if (worker->index == 0) {
        plan->on_measure(plan->user, false, worker->now_ns);
    }
    switch_stats(worker, false);
    for (uint32_t i = 0; i < worker->lane_count; i++) {
        worker->lanes[i]->in_series = false; /* answers to what was counted still are */
    }
}

void hg_load_worker_run(struct hg_load_worker *worker)
{
    const struct hg_load_options *options = worker->plan->options;
    worker->now_ns = hg_lane_now_ns();
    worker->look_ns = worker->now_ns + LOOK_NS;
    if (options->fill) {
        fill(worker);
    }
    pthread_barrier_wait(&worker->plan->filled);
    if (options->fill && options->has_operations && options->operations == 0) {
        return;
    }
    if (options->warmup_ns > 0) {
        warm_up(worker);
    }
    measure(worker);
    drain(worker);
}
