// server - one server of an upstream, as all workers of the process know it
// SPDX-License-Identifier: BSD-3-Clause
#include "back/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "back/local.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/probe_point.h"
#include "base/throttle.h"

static const char *const state_names[] = {
    [HG_BREAKER_CLOSED] = "closed",
    [HG_BREAKER_OPEN] = "open",
    [HG_BREAKER_HALF_OPEN] = "half-open",
    [HG_BREAKER_RAMP] = "ramp",
};

static uint64_t random_seed(void)
{
    uint64_t seed;
    /* Jitter needs no secret: if the kernel has nothing yet, the time will do. */
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed = hg_now_us();
    return seed;
}

int hg_server_init(struct hg_server *server, const char *upstream, uint32_t index,
                   const char *address, uint16_t default_port, uint32_t workers,
                   uint64_t reconnect_max_us, uint32_t max_connections, _Atomic uint32_t *changes)
{
    char host[256];
    uint16_t port;
    bool is_unix;
    memset(server, 0, sizeof *server);
    if (hg_addr_split(address, default_port, host, &port, &is_unix) != 0)
        return -EINVAL;
    server->upstream = upstream;
    server->index = index;
    server->workers = workers;
    server->default_port = default_port;
    server->changes = changes;
    server->named = hg_addr_parse(address, default_port, &server->addrs.list[0]) != 0;
    server->addrs.count = server->named ? 0 : 1;
    server->address = strdup(address);
    server->host = strdup(host);
    server->counters = aligned_alloc(HG_CACHE_LINE, workers * sizeof(struct hg_upstream_counters));
    server->boards = calloc(workers, sizeof *server->boards);
    if (server->address == NULL || server->host == NULL || server->counters == NULL ||
        server->boards == NULL || hg_lease_init(&server->lease, max_connections, workers) != 0) {
        free(server->address);
        free(server->host);
        free(server->counters);
        free(server->boards);
        return -ENOMEM;
    }
    memset(server->counters, 0, workers * sizeof(struct hg_upstream_counters));
    pthread_mutex_init(&server->lock, NULL);
    hg_breaker_init(&server->breaker, reconnect_max_us, max_connections, random_seed());
    return 0;
}

void hg_server_sum(const struct hg_server *server, uint64_t *sums)
{
    memset(sums, 0, HG_UPSTREAM_STATS * sizeof sums[0]);
    for (uint32_t w = 0; w < server->workers; w++)
        hg_upstream_counters_add(&server->counters[w], sums);
}

void hg_server_sum_pools(const struct hg_server *server, struct hg_pool_sum *sums, uint32_t count)
{
    memset(sums, 0, count * sizeof sums[0]);
    sums[0].known = true; /* the upstream's own */
    for (uint32_t w = 0; w < server->workers; w++)
        hg_pool_board_add(&server->boards[w], sums, count);
}

const char *hg_server_state(const struct hg_server *server)
{
    return state_names[hg_breaker_state(&server->breaker)];
}

uint32_t hg_server_connect_target(const struct hg_server *server)
{
    uint32_t target = hg_breaker_target(&server->breaker);
    return target == HG_BREAKER_NO_TARGET ? 0 : target;
}

void hg_server_set_reconnect_max(struct hg_server *server, uint64_t reconnect_max_us)
{
    pthread_mutex_lock(&server->lock);
    server->breaker.backoff.max_us = reconnect_max_us;
    pthread_mutex_unlock(&server->lock);
}

/* ---- what begins and ends ---- */

static const char *const reasons[] = {
    [HG_BREAKER_REFUSED] = "a connect was refused, and no connection is left",
    [HG_BREAKER_CONNECTS] = "connects fail, and no connection is left",
    [HG_BREAKER_UNREADY] = "the server is not ready",
    [HG_BREAKER_SILENT] = "requests time out, and nothing is heard",
};

static const enum hg_throttle throttles[HG_SERVER_NOTICES] = {
    [HG_SERVER_NOTICE_BREAKER] = HG_THROTTLE_BREAKER,
    [HG_SERVER_NOTICE_TARGET] = HG_THROTTLE_POOL_TARGET,
    [HG_SERVER_NOTICE_LOCAL] = HG_THROTTLE_LOCAL,
};

/* Requests that were refused as it was out, since the last end. */
static uint64_t take_refused(struct hg_server *server)
{
    uint64_t sums[HG_UPSTREAM_STATS], before = server->refused_told;
    hg_server_sum(server, sums);
    uint64_t refused = sums[HG_UPSTREAM_REFUSED_DOWN];
    server->refused_told = refused;
    return refused >= before ? refused - before : refused; /* counters may be set to 0 */
}

static void tell_begin(struct hg_server *server, enum hg_server_notice which)
{
    const struct hg_throttle_place place = {server->upstream, server->address};
    struct hg_event event;
    hg_throttle_begin(&event, throttles[which], &place);
    if (which == HG_SERVER_NOTICE_BREAKER) {
        hg_event_text(&event, "reason", hg_span_str(reasons[server->breaker.reason]));
    } else if (which == HG_SERVER_NOTICE_TARGET) {
        hg_event_number(&event, "to", hg_breaker_target(&server->breaker));
        hg_event_text(&event, "reason", hg_span_str(server->last_error));
    } else {
        hg_event_text(&event, "reason", hg_span_str(strerror(-server->local_error)));
        hg_event_text(&event, "advice", hg_span_str(hg_local_advice(server->local_error)));
    }
    hg_event_tell(&event);
}

/* `reason` NULL: it is as it was before. */
static void tell_end(struct hg_server *server, enum hg_server_notice which, const char *reason,
                     uint64_t now_us)
{
    const struct hg_throttle_place place = {server->upstream, server->address};
    struct hg_event event;
    hg_throttle_end(&event, throttles[which], &place);
    hg_event_real(&event, "lasted_s", (double)(now_us - server->notices[which].since_us) / 1e6, 1);
    if (which == HG_SERVER_NOTICE_BREAKER)
        hg_event_number(&event, "refused", take_refused(server));
    if (reason != NULL)
        hg_event_text(&event, "reason", hg_span_str(reason));
    hg_event_tell(&event);
}

/* That this host cannot connect is logged each 10 s, since it is to be mended here. */
static void log_local(struct hg_server *server, uint64_t now_us)
{
    if (now_us - server->local_errors_told_us < HG_NOTICE_APART_US)
        return;
    server->local_errors_told_us = now_us;
    hg_log_warn("upstream=%s server=%s reason=\"%s\" "
                "msg=\"this host still cannot connect: %s\"",
                server->upstream, server->address, strerror(-server->local_error),
                hg_local_advice(server->local_error));
}

static void look_at_notices(struct hg_server *server, uint64_t now_us)
{
    const struct hg_breaker *breaker = &server->breaker;
    const bool active[HG_SERVER_NOTICES] = {
        [HG_SERVER_NOTICE_BREAKER] = !hg_breaker_may_send(breaker),
        [HG_SERVER_NOTICE_TARGET] = hg_breaker_target(breaker) != HG_BREAKER_NO_TARGET,
        [HG_SERVER_NOTICE_LOCAL] = breaker->locals.k > 0,
    };
    for (int i = 0; i < HG_SERVER_NOTICES; i++) {
        enum hg_notice_say say = hg_notice_look(&server->notices[i], active[i], now_us);
        if (say == HG_NOTICE_BEGIN)
            tell_begin(server, (enum hg_server_notice)i);
        if (say == HG_NOTICE_END)
            tell_end(server, (enum hg_server_notice)i, NULL, now_us);
        if (i == HG_SERVER_NOTICE_LOCAL && say == HG_NOTICE_BEGIN)
            server->local_errors_told_us = now_us;
    }
    if (server->notices[HG_SERVER_NOTICE_LOCAL].told)
        log_local(server, now_us);
}

/* ---- end and succession ---- */

void hg_server_fini(struct hg_server *server)
{
    for (int i = 0; i < HG_SERVER_NOTICES; i++)
        if (server->notices[i].told)
            tell_end(server, (enum hg_server_notice)i, "the upstream was replaced or closed",
                     hg_now_us());
    pthread_mutex_destroy(&server->lock);
    hg_lease_fini(&server->lease);
    for (uint32_t w = 0; w < server->workers; w++)
        hg_pool_board_fini(&server->boards[w]);
    free(server->boards);
    free(server->address);
    free(server->host);
    free(server->counters);
}

void hg_server_follow(struct hg_server *server, const struct hg_server *before)
{
    struct hg_server *old = (struct hg_server *)(uintptr_t)before;
    pthread_mutex_lock(&old->lock);
    for (int i = 0; i < HG_SERVER_NOTICES; i++)
        server->notices[i].told_us = old->notices[i].told_us;
    pthread_mutex_unlock(&old->lock);
    if (!hg_server_may_send(before))
        hg_breaker_tell_unready(&server->breaker, hg_now_us());
}

/* ---- the breaker ---- */

/* Between these two the breaker may be changed. */
static enum hg_breaker_state enter(struct hg_server *server)
{
    pthread_mutex_lock(&server->lock);
    return hg_breaker_state(&server->breaker);
}

static bool can_send(enum hg_breaker_state state)
{
    return state == HG_BREAKER_CLOSED || state == HG_BREAKER_RAMP;
}

static void leave(struct hg_server *server, uint32_t worker, enum hg_breaker_state was,
                  uint64_t now_us)
{
    enum hg_breaker_state is = hg_breaker_state(&server->breaker);
    look_at_notices(server, now_us);
    pthread_mutex_unlock(&server->lock);
    if (is == was)
        return;
    HG_PROBE_POINT(breaker, server->upstream, server->address, is);
    if (can_send(was) != can_send(is))
        atomic_fetch_add_explicit(server->changes, 1, memory_order_release);
    if (is == HG_BREAKER_OPEN && can_send(was)) {
        atomic_store_explicit(&server->limited_us, 0, memory_order_relaxed);
        hg_upstream_count(&server->counters[worker], HG_UPSTREAM_BREAKER_OPENS, 1);
    }
    hg_log_debug("upstream=%s server=%s msg=\"breaker %s\"", server->upstream, server->address,
                 state_names[is]);
}

enum hg_breaker_connect hg_server_take_connect(struct hg_server *server, uint32_t worker,
                                               uint64_t now_us, uint64_t *ret_next_us)
{
    enum hg_breaker_state was = enter(server);
    enum hg_breaker_connect may = hg_breaker_take_connect(&server->breaker, now_us);
    *ret_next_us = hg_breaker_next_us(&server->breaker);
    leave(server, worker, was, now_us);
    return may;
}

void hg_server_tell_connected(struct hg_server *server, uint32_t worker,
                              enum hg_breaker_connect kind, bool proven, uint64_t now_us)
{
    enum hg_breaker_state was = enter(server);
    hg_breaker_tell_connected(&server->breaker, kind, proven, now_us);
    server->last_error[0] = '\0';
    leave(server, worker, was, now_us);
}

bool hg_server_tell_failed(struct hg_server *server, uint32_t worker, enum hg_breaker_connect kind,
                           bool refused, uint64_t now_us)
{
    enum hg_breaker_state was = enter(server);
    bool counts = hg_breaker_tell_failed(&server->breaker, kind, refused, now_us);
    leave(server, worker, was, now_us);
    return counts;
}

void hg_server_tell_local(struct hg_server *server, uint32_t worker, enum hg_breaker_connect kind,
                          int error, uint64_t now_us)
{
    hg_upstream_count(&server->counters[worker], HG_UPSTREAM_LOCAL_ERRORS, 1);
    enum hg_breaker_state was = enter(server);
    server->local_error = error;
    hg_breaker_tell_local(&server->breaker, kind, now_us);
    leave(server, worker, was, now_us);
}

void hg_server_tell_abandoned(struct hg_server *server, uint32_t worker,
                              enum hg_breaker_connect kind, uint64_t now_us)
{
    enum hg_breaker_state was = enter(server);
    hg_breaker_tell_abandoned(&server->breaker, kind, now_us);
    leave(server, worker, was, now_us);
}

void hg_server_tell_lost(struct hg_server *server, uint32_t worker, enum hg_breaker_loss loss,
                         uint64_t now_us)
{
    enum hg_breaker_state was = enter(server);
    hg_breaker_tell_lost(&server->breaker, loss, now_us);
    leave(server, worker, was, now_us);
}

void hg_server_tell_unready(struct hg_server *server, uint32_t worker, uint64_t now_us)
{
    enum hg_breaker_state was = enter(server);
    hg_breaker_tell_unready(&server->breaker, now_us);
    leave(server, worker, was, now_us);
}

void hg_server_tell_answered(struct hg_server *server, uint32_t worker, uint64_t now_us)
{
    enum hg_breaker_state was = enter(server);
    hg_breaker_tell_answered(&server->breaker);
    leave(server, worker, was, now_us);
}

/* When any worker last heard a byte of an answer. */
static uint64_t alive_us(const struct hg_server *server)
{
    uint64_t last_us = 0;
    for (uint32_t w = 0; w < server->workers; w++) {
        uint64_t heard_us = hg_counter_get(&server->counters[w].heard_us);
        last_us = heard_us > last_us ? heard_us : last_us;
    }
    return last_us;
}

void hg_server_tell_timeout(struct hg_server *server, uint32_t worker, uint64_t key_hash,
                            uint64_t timeout_us, uint64_t now_us)
{
    bool silent = now_us >= alive_us(server) + timeout_us;
    enum hg_breaker_state was = enter(server);
    hg_breaker_tell_timeout(&server->breaker, key_hash, silent, now_us);
    leave(server, worker, was, now_us);
}

void hg_server_tell_time(struct hg_server *server, uint32_t worker, uint64_t now_us)
{
    enum hg_breaker_state was = enter(server);
    hg_breaker_tell_time(&server->breaker, now_us);
    leave(server, worker, was, now_us);
}

uint64_t hg_server_limited_us(struct hg_server *server, uint64_t now_us)
{
    if (HG_UNLIKELY(hg_breaker_target(&server->breaker) != HG_BREAKER_NO_TARGET))
        atomic_store_explicit(&server->limited_us, now_us, memory_order_relaxed);
    return atomic_load_explicit(&server->limited_us, memory_order_relaxed);
}

uint32_t hg_server_room(struct hg_server *server, uint64_t now_us)
{
    if (HG_LIKELY(hg_breaker_target(&server->breaker) == HG_BREAKER_NO_TARGET))
        return UINT32_MAX;
    pthread_mutex_lock(&server->lock);
    uint32_t room = hg_breaker_room(&server->breaker, now_us);
    pthread_mutex_unlock(&server->lock);
    return room;
}

void hg_server_note_error(struct hg_server *server, const char *text)
{
    pthread_mutex_lock(&server->lock);
    snprintf(server->last_error, sizeof server->last_error, "%s", text);
    pthread_mutex_unlock(&server->lock);
}

const char *hg_server_last_error(const struct hg_server *server, char out[HG_SERVER_ERROR_BYTES])
{
    pthread_mutex_t *lock = &((struct hg_server *)(uintptr_t)server)->lock;
    pthread_mutex_lock(lock);
    memcpy(out, server->last_error, HG_SERVER_ERROR_BYTES);
    pthread_mutex_unlock(lock);
    return out;
}

bool hg_server_get_addrs(struct hg_server *server, uint64_t since_us, struct hg_addrs *ret_addrs)
{
    pthread_mutex_lock(&server->lock);
    bool have = server->addrs.count > 0 && (!server->named || server->resolved_us >= since_us);
    if (have)
        *ret_addrs = server->addrs;
    pthread_mutex_unlock(&server->lock);
    return have;
}

void hg_server_put_addrs(struct hg_server *server, const struct hg_addrs *addrs, uint64_t now_us)
{
    pthread_mutex_lock(&server->lock);
    uint32_t start = server->addrs.start;
    server->addrs = *addrs;
    server->addrs.start = start < addrs->count ? start : 0;
    server->resolved_us = now_us;
    pthread_mutex_unlock(&server->lock);
}

void hg_server_start_with(struct hg_server *server, uint32_t start)
{
    pthread_mutex_lock(&server->lock);
    server->addrs.start = start < server->addrs.count ? start : 0;
    pthread_mutex_unlock(&server->lock);
}
