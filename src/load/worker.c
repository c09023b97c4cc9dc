// worker - a thread of the load: its event loop and its phases
// SPDX-License-Identifier: BSD-3-Clause
#include "load/worker.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/prctl.h>

#define EVENTS 256

/* How often connections are looked at for replies that do not come. */
#define LOOK_NS 100000000u

/* How late the system may wake an open loop; by default it is 50 us, as long as a whole request to
 * a store in the same machine. */
#define TIMER_SLACK_NS 1000u

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

/* When a lane has something to send that it has not now; UINT64_MAX: only when it is answered. */
static uint64_t lane_due_ns(const struct hg_load_lane *lane)
{
    if (lane->mode != HG_LANE_MIX || lane->worker->budget == 0) {
        return UINT64_MAX;
    }
    if (lane->is_open) {
        return hg_open_next_ns(&lane->open);
    }
    return lane->paced_first != NULL ? hg_lane_due_ns(lane) : UINT64_MAX;
}

/* Sends what is due by now. */
static void release_due(struct hg_load_worker *worker)
{
    for (uint32_t i = 0; i < worker->lane_count; i++) {
        struct hg_load_lane *lane = worker->lanes[i];
        if (lane->is_open && lane->mode == HG_LANE_MIX) {
            hg_open_release(lane, worker->now_ns);
        }
        while (!lane->is_open && lane_due_ns(lane) <= worker->now_ns) {
            hg_load_conn_send(hg_lane_leave_row(lane), worker->now_ns);
        }
    }
}

/* How long a turn may sleep. */
static uint64_t patience_ns(const struct hg_load_worker *worker, uint64_t until_ns)
{
    uint64_t until = until_ns < worker->look_ns ? until_ns : worker->look_ns;
    for (uint32_t i = 0; worker->has_pace && i < worker->lane_count; i++) {
        uint64_t due_ns = lane_due_ns(worker->lanes[i]);
        until = due_ns < until ? due_ns : until;
    }
    return until <= worker->now_ns ? 0 : until - worker->now_ns;
}

/* Waits for events. An open loop wants its moments kept; a closed one is woken less often when its
 * waits are rounded up to milliseconds. */
static int wait_for_events(struct hg_load_worker *worker, struct epoll_event *events,
                           uint64_t until_ns)
{
    uint64_t wait_ns = patience_ns(worker, until_ns);
    if (worker->is_open && !worker->is_coarse) {
        struct timespec wait = {(time_t)(wait_ns / 1000000000), (long)(wait_ns % 1000000000)};
        int n = epoll_pwait2(worker->epoll_fd, events, EVENTS, &wait, NULL);
        if (n >= 0 || errno != ENOSYS) {
            return n;
        }
        worker->is_coarse = true;
    }
    uint64_t rounding = worker->is_open ? 0 : 999999; /* open: the rest is polled away */
    return epoll_wait(worker->epoll_fd, events, EVENTS, (int)((wait_ns + rounding) / 1000000));
}

static void turn(struct hg_load_worker *worker, uint64_t until_ns)
{
    struct epoll_event events[EVENTS];
    int n = wait_for_events(worker, events, until_ns);
    if (n <= 0 || worker->is_open) {
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
        release_due(worker);
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

/* Waits for the other threads, and takes a moment that all have in common. */
static uint64_t meet(struct hg_load_worker *worker)
{
    struct hg_load_plan *plan = worker->plan;
    pthread_barrier_wait(&plan->met);
    if (worker->index == 0) {
        plan->origin_ns = hg_lane_now_ns();
    }
    pthread_barrier_wait(&plan->met);
    return plan->origin_ns;
}

/* The rates of a phase begin. */
static void begin_rates(struct hg_load_worker *worker, bool measured, uint64_t from_ns,
                        uint64_t until_ns)
{
    for (uint32_t i = 0; i < worker->lane_count; i++) {
        struct hg_load_lane *lane = worker->lanes[i];
        if (lane->is_open) {
            hg_open_begin(lane, measured, from_ns, until_ns);
        } else if (lane->has_pace) {
            lane->rate = measured ? &lane->tenant->rate : &lane->tables->warm_rate;
            hg_lane_begin_rate(lane, from_ns);
        }
    }
}

/* Ends the open loops of a phase; those that wait are left. */
static void end_open(struct hg_load_worker *worker)
{
    for (uint32_t i = 0; i < worker->lane_count; i++) {
        if (worker->lanes[i]->is_open) {
            hg_open_end(worker->lanes[i], worker->now_ns);
        }
    }
}

/* Returns when the measured part begins. */
static uint64_t warm_up(struct hg_load_worker *worker, uint64_t origin_ns)
{
    const struct hg_load_options *options = worker->plan->options;
    uint64_t until_ns = origin_ns + options->warmup_ns;
    worker->budget = UINT64_MAX;
    begin_rates(worker, false, origin_ns, until_ns);
    set_mode(worker, HG_LANE_MIX);
    while (goes_on(worker) && worker->now_ns < until_ns) {
        turn(worker, until_ns);
    }
    if (!options->has_operations) {
        return until_ns;
    }
    end_open(worker);
    drain(worker);
    return meet(worker);
}

static void switch_stats(struct hg_load_worker *worker, bool measured)
{
    for (uint32_t i = 0; i < worker->lane_count; i++) {
        struct hg_load_lane *lane = worker->lanes[i];
        lane->into = lane->phase = measured ? &lane->measured : &lane->before;
    }
}

/* From here on the hot key's clock runs, and requests are counted by intervals. */
static void start_lanes(struct hg_load_worker *worker)
{
    for (uint32_t i = 0; i < worker->lane_count; i++) {
        struct hg_load_lane *lane = worker->lanes[i];
        const struct hg_load_tenant *tenant = lane->tenant;
        lane->in_series = lane->series.length_ns > 0;
        if (lane->in_series && worker->plan->options->series != NULL) {
            hg_series_start_at(&lane->series, worker->start_ns);
        }
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

/* Whether open loops have requests that wait. */
static bool has_waiting(const struct hg_load_worker *worker)
{
    for (uint32_t i = 0; worker->is_open && i < worker->lane_count; i++) {
        if (hg_open_waiting(&worker->lanes[i]->open) > 0) {
            return true;
        }
    }
    return false;
}

static void measure(struct hg_load_worker *worker, uint64_t start_ns)
{
    struct hg_load_plan *plan = worker->plan;
    switch_stats(worker, true);
    worker->budget = share_of_operations(worker);
    worker->now_ns = hg_lane_now_ns();
    worker->start_ns = start_ns < worker->now_ns ? start_ns : worker->now_ns; /* stopped early */
    uint64_t until_ns =
        plan->options->time_ns > 0 ? worker->start_ns + plan->options->time_ns : UINT64_MAX;
    start_lanes(worker);
    begin_rates(worker, true, worker->start_ns, until_ns);
    if (worker->index == 0) {
        plan->on_measure(plan->user, true, worker->start_ns);
    }
    set_mode(worker, HG_LANE_MIX);
    while (goes_on(worker) && worker->now_ns < until_ns &&
           (worker->budget > 0 || worker->unanswered > 0 || has_waiting(worker))) {
        turn(worker, until_ns);
    }
    worker->end_ns = worker->now_ns;
    end_open(worker);
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
    if (worker->is_open) {
        (void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    }
    uint64_t start_ns = meet(worker);
    if (options->fill && options->has_operations && options->operations == 0) {
        return;
    }
    if (options->warmup_ns > 0) {
        start_ns = warm_up(worker, start_ns);
    }
    measure(worker, start_ns);
    drain(worker);
}
