// listener - accepts clients and hands each to the least loaded worker
// SPDX-License-Identifier: BSD-3-Clause
#include "front/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

#define BACKLOG 4096

struct listener {
    struct hg_listeners *all;
    struct listener *next;
    size_t number; /* in the order of adding */
    int fd;
    struct hg_addr addr;
    bool keeps_file;
    struct event event;
    bool speaks_tls;
    struct hg_tls_rules *rules; /* if it does; under lock */
};

struct hg_listeners {
    struct hg_loop *loop;
    struct hg_front *front;
    struct listener *first, *last;
    _Atomic unsigned max_connections;
    size_t count;
    struct hg_timer pause, handshake_pause;
    pthread_mutex_t lock;
    struct hg_handshakes *handshakes;
    struct hg_listeners_stats stats;
};

struct hg_worker *hg_listeners_pick(struct hg_front *front, unsigned *ret_total)
{
    struct hg_worker *best = &front->workers[0];
    unsigned best_load = UINT32_MAX;
    *ret_total = 0;
    for (unsigned w = 0; w < front->worker_count; w++) {
        unsigned load = atomic_load_explicit(&front->workers[w].load, memory_order_relaxed);
        *ret_total += load;
        if (load < best_load) {
            best_load = load;
            best = &front->workers[w];
        }
    }
    return best;
}

/* 0, or -ENOMEM: then the socket is still ours. */
static int pass_on(struct listener *listener, struct hg_worker *worker,
                   const struct hg_client *client)
{
    struct hg_listeners *all = listener->all;
    if (!listener->speaks_tls)
        return hg_worker_give(worker, client);
    pthread_mutex_lock(&all->lock);
    struct hg_tls_rules *rules = hg_tls_rules_ref(listener->rules);
    pthread_mutex_unlock(&all->lock);
    int rc = hg_handshakes_give(all->handshakes, client, rules);
    if (rc != 0)
        hg_tls_rules_unref(rules);
    return rc;
}

static void hand_over(struct listener *listener, int fd, const struct hg_addr *peer)
{
    struct hg_listeners *all = listener->all;
    unsigned total;
    unsigned max = atomic_load_explicit(&all->max_connections, memory_order_relaxed);
    struct hg_worker *worker = hg_listeners_pick(all->front, &total);
    if (all->handshakes != NULL)
        total += hg_handshakes_now(all->handshakes);
    bool over = total >= max;
    hg_counter_add(&all->stats.accepted, 1);
    if (over)
        hg_counter_add(&all->stats.over_limit, 1);
    if (total >= (uint64_t)max + HG_OVER_LIMIT_GUESTS) {
        hg_counter_add(&all->stats.refused, 1);
        close(fd);
        return;
    }
    struct hg_client client = {.fd = fd, .over_limit = over, .peer = *peer};
    if (pass_on(listener, worker, &client) != 0) {
        hg_counter_add(&all->stats.failed, 1);
        close(fd);
    }
}

/* True when another connection may be there. */
static bool accept_one(struct listener *listener)
{
    if (listener->speaks_tls && hg_handshakes_full(listener->all->handshakes)) {
        event_del(&listener->event); /* they wait in the kernel */
        if (hg_loop_timer_arm(&listener->all->handshake_pause, HG_HANDSHAKE_PAUSE_US) != 0)
            hg_log_error("msg=\"cannot set a timer: accepting has stopped\"");
        return false;
    }
    struct hg_addr peer = {.len = sizeof peer.sa};
    int fd =
        accept4(listener->fd, (struct sockaddr *)&peer.sa, &peer.len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        if (peer.len == 0 || peer.sa.ss_family == AF_UNIX)
            peer = listener->addr;
        hand_over(listener, fd, &peer);
        return true;
    }
    if (errno == EINTR || errno == ECONNABORTED)
        return true;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return false;
    struct hg_listeners *all = listener->all;
    hg_counter_add(&all->stats.failed, 1);
    hg_log_error("msg=\"cannot accept a connection: %s; trying again in a moment\"",
                 strerror(errno));
    for (struct listener *l = all->first; l != NULL; l = l->next)
        event_del(&l->event);
    if (hg_loop_timer_arm(&all->pause, HG_ACCEPT_PAUSE_US) != 0)
        hg_log_error("msg=\"cannot set a timer: accepting has stopped\"");
    return false;
}

static void on_acceptable(evutil_socket_t fd, short what, void *arg)
{
    struct listener *listener = arg;
    (void)fd;
    (void)what;
    hg_loop_stamp(listener->all->loop);
    for (unsigned n = 0; n < HG_ACCEPT_BUDGET && accept_one(listener); n++)
        ;
}

static void on_pause_over(struct hg_timer *timer)
{
    struct hg_listeners *all = HG_CONTAINER_OF(timer, struct hg_listeners, pause);
    if (hg_listeners_start(all) != 0)
        hg_log_error("msg=\"cannot watch the listeners: accepting has stopped\"");
}

static void on_handshake_pause_over(struct hg_timer *timer)
{
    struct hg_listeners *all = HG_CONTAINER_OF(timer, struct hg_listeners, handshake_pause);
    for (struct listener *l = all->first; l != NULL; l = l->next)
        if (l->speaks_tls && event_add(&l->event, NULL) != 0)
            hg_log_error("msg=\"cannot watch the listeners: accepting has stopped\"");
}

struct hg_listeners *hg_listeners_new(struct hg_loop *loop, struct hg_front *front,
                                      unsigned max_connections)
{
    struct hg_listeners *all = calloc(1, sizeof *all);
    if (all == NULL)
        return NULL;
    all->loop = loop;
    all->front = front;
    atomic_init(&all->max_connections, max_connections);
    if (hg_loop_timer_init(loop, &all->pause, 0, on_pause_over) != 0) {
        free(all);
        return NULL;
    }
    if (hg_loop_timer_init(loop, &all->handshake_pause, 0, on_handshake_pause_over) != 0) {
        hg_loop_timer_fini(&all->pause);
        free(all);
        return NULL;
    }
    pthread_mutex_init(&all->lock, NULL);
    return all;
}

void hg_listeners_number_last(struct hg_listeners *all, size_t number)
{
    if (all->last != NULL)
        all->last->number = number;
}

void hg_listeners_set_tls(struct hg_listeners *all, size_t number, struct hg_tls_rules *rules)
{
    struct hg_tls_rules *old = rules;
    pthread_mutex_lock(&all->lock);
    for (struct listener *l = all->first; l != NULL; l = l->next) {
        if (l->number != number)
            continue;
        old = l->rules;
        l->rules = rules;
        if (old == NULL)
            l->speaks_tls = true;
    }
    pthread_mutex_unlock(&all->lock);
    hg_tls_rules_unref(old);
}

void hg_listeners_set_handshakes(struct hg_listeners *all, struct hg_handshakes *handshakes)
{
    all->handshakes = handshakes;
}

static void read_own_address(struct listener *listener)
{
    struct hg_addr own = {.len = sizeof own.sa};
    if (getsockname(listener->fd, (struct sockaddr *)&own.sa, &own.len) == 0)
        listener->addr = own;
}

static void append(struct hg_listeners *all, struct listener *listener, struct hg_addr *ret_bound)
{
    listener->all = all;
    listener->number = all->count++;
    event_assign(&listener->event, all->loop->base, listener->fd, EV_READ | EV_PERSIST,
                 on_acceptable, listener);
    if (all->first == NULL)
        all->first = listener;
    else
        all->last->next = listener;
    all->last = listener;
    if (ret_bound != NULL)
        *ret_bound = listener->addr;
}

int hg_listeners_add(struct hg_listeners *all, const struct hg_addr *addr, unsigned unix_mode,
                     struct hg_addr *ret_bound)
{
    struct listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL)
        return -ENOMEM;
    listener->addr = *addr;
    listener->fd = hg_sock_listen(addr, BACKLOG, unix_mode);
    if (listener->fd < 0) {
        int rc = listener->fd;
        free(listener);
        return rc;
    }
    if (addr->sa.ss_family != AF_UNIX)
        read_own_address(listener);
    append(all, listener, ret_bound);
    return 0;
}

int hg_listeners_adopt(struct hg_listeners *all, int fd, bool keeps_file, struct hg_addr *ret_bound)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return -errno;
    struct listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL)
        return -ENOMEM;
    listener->fd = fd;
    listener->keeps_file = keeps_file;
    read_own_address(listener);
    append(all, listener, ret_bound);
    return 0;
}

void hg_listeners_each(const struct hg_listeners *all,
                       void (*fn)(void *arg, int fd, bool keeps_file), void *arg)
{
    for (const struct listener *l = all->first; l != NULL; l = l->next)
        fn(arg, l->fd, l->keeps_file);
}

void hg_listeners_keep_files(struct hg_listeners *all)
{
    for (struct listener *l = all->first; l != NULL; l = l->next)
        l->keeps_file = true;
}

void hg_listeners_set_max(struct hg_listeners *all, unsigned max_connections)
{
    atomic_store(&all->max_connections, max_connections);
}

int hg_listeners_start(struct hg_listeners *all)
{
    for (struct listener *l = all->first; l != NULL; l = l->next)
        if (event_add(&l->event, NULL) != 0)
            return -ENOMEM;
    return 0;
}

void hg_listeners_close(struct hg_listeners *all)
{
    hg_loop_timer_fini(&all->pause);
    hg_loop_timer_fini(&all->handshake_pause);
    pthread_mutex_lock(&all->lock);
    while (all->first != NULL) {
        struct listener *listener = all->first;
        all->first = listener->next;
        event_del(&listener->event);
        close(listener->fd);
        if (listener->addr.sa.ss_family == AF_UNIX && !listener->keeps_file)
            unlink(((struct sockaddr_un *)&listener->addr.sa)->sun_path);
        hg_tls_rules_unref(listener->rules);
        free(listener);
    }
    pthread_mutex_unlock(&all->lock);
}

void hg_listeners_free(struct hg_listeners *all)
{
    if (all == NULL)
        return;
    hg_listeners_close(all);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

const struct hg_listeners_stats *hg_listeners_stats(const struct hg_listeners *all)
{
    return &all->stats;
}
