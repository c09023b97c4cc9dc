// server - one server of an upstream, as all workers of the process know it
// SPDX-License-Identifier: BSD-3-Clause
//
// Its breaker, its addresses and what each worker counts. A request looks at the breaker's state
// with one relaxed load; everything that changes something takes the mutex, which happens for
// connections, time-outs and sums of what was sent, never for a request.
#ifndef HG_BACK_SERVER_H
#define HG_BACK_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "back/addrs.h"
#include "back/lease.h"
#include "back/pool_stats.h"
#include "back/upstream_stats.h"
#include "base/attr.h"
#include "core/breaker.h"
#include "core/notice.h"

#define HG_SERVER_ERROR_BYTES 272 /* of why a connection could not be made, with its zero */

/* What is told of when it begins and when it ends. */
enum hg_server_notice {
    HG_SERVER_NOTICE_BREAKER, /* out */
    HG_SERVER_NOTICE_TARGET,  /* fewer connections than are wanted */
    HG_SERVER_NOTICE_LOCAL,   /* this host cannot connect */
    HG_SERVER_NOTICES
};

struct hg_server {
    struct hg_breaker breaker;
    struct hg_lease lease; /* of its connections, between the workers */
    bool named;            /* the address is a name, to be resolved at each reconnect */
    uint32_t index;
    uint32_t workers;
    const char *upstream; /* names for texts */
    char *address;
    char *host; /* of the address: a name, a number, or a path */
    uint16_t default_port;
    pthread_mutex_t lock;
    struct hg_notice notices[HG_SERVER_NOTICES]; /* under the lock */
    _Atomic uint64_t
        limited_us;  /* when it last took no more connections; 0: not since it was out */
    int local_error; /* the last one, -errno; under the lock */
    uint64_t local_errors_told_us; /* when that was last logged; under the lock */
    uint64_t refused_told; /* of what was refused while it was out, told by ends; under the lock */
    struct hg_addrs addrs; /* under the lock */
    uint64_t resolved_us;  /* when they were found; under the lock */
    char last_error[HG_SERVER_ERROR_BYTES]; /* under the lock */
    _Atomic uint32_t *changes;             /* counts changes of may_send, of all servers together */
    struct hg_upstream_counters *counters; /* one set for each worker */
    struct hg_pool_board *boards;          /* one for each worker */
};

/* 0, -ENOMEM, or -EINVAL when `address` is none. `upstream` and `changes` are referred
   to. */
HG_MUST_USE int hg_server_init(struct hg_server *server, const char *upstream, uint32_t index,
                               const char *address, uint16_t default_port, uint32_t workers,
                               uint64_t reconnect_max_us, uint32_t max_connections,
                               _Atomic uint32_t *changes);
void hg_server_fini(struct hg_server *server);

/* A new server whose address is also `before`'s: it begins as out if that one is, and tells no
 * begin too soon after one of that. Nobody uses it yet. */
void hg_server_follow(struct hg_server *server, const struct hg_server *before);

static inline bool hg_server_may_send(const struct hg_server *server)
{
    return hg_breaker_may_send(&server->breaker);
}

/* Sums over the workers; `sums` has HG_UPSTREAM_STATS numbers. From any thread. */
void hg_server_sum(const struct hg_server *server, uint64_t *sums);
/* The same of each identity: `sums` has room for `count`, at least 1, and is zeroed first. From any
 * thread. */
void hg_server_sum_pools(const struct hg_server *server, struct hg_pool_sum *sums, uint32_t count);
/* "closed", "open", "half-open", "ramp". From any thread. */
const char *hg_server_state(const struct hg_server *server);
/* Connections that the server allows, since it refused a further one; 0 while it allows all. From
 * any thread. */
uint32_t hg_server_connect_target(const struct hg_server *server);
void hg_server_set_reconnect_max(struct hg_server *server, uint64_t reconnect_max_us);

/* The breaker's functions of the same names, under the lock, with changes logged and counted for
   `worker`. */
HG_MUST_USE enum hg_breaker_connect hg_server_take_connect(struct hg_server *server,
                                                           uint32_t worker, uint64_t now_us,
                                                           uint64_t *ret_next_us);
void hg_server_tell_connected(struct hg_server *server, uint32_t worker,
                              enum hg_breaker_connect kind, bool proven, uint64_t now_us);
bool hg_server_tell_failed(struct hg_server *server, uint32_t worker, enum hg_breaker_connect kind,
                           bool refused, uint64_t now_us);
/* `error`: -errno. */
void hg_server_tell_local(struct hg_server *server, uint32_t worker, enum hg_breaker_connect kind,
                          int error, uint64_t now_us);
void hg_server_tell_abandoned(struct hg_server *server, uint32_t worker,
                              enum hg_breaker_connect kind, uint64_t now_us);
void hg_server_tell_lost(struct hg_server *server, uint32_t worker, enum hg_breaker_loss loss,
                         uint64_t now_us);
void hg_server_tell_unready(struct hg_server *server, uint32_t worker, uint64_t now_us);
void hg_server_tell_answered(struct hg_server *server, uint32_t worker, uint64_t now_us);
/* `timeout_us`: how long a request may take. */
void hg_server_tell_timeout(struct hg_server *server, uint32_t worker, uint64_t key_hash,
                            uint64_t timeout_us, uint64_t now_us);
void hg_server_tell_time(struct hg_server *server, uint32_t worker, uint64_t now_us);
/* When the server last took no more connections, as far as anybody has looked; 0: not since it was
   last out. Any thread. */
uint64_t hg_server_limited_us(struct hg_server *server, uint64_t now_us);
/* Takes no lock while the server allows all. */
uint32_t hg_server_room(struct hg_server *server, uint64_t now_us);

/* Why a connection could not be made: kept until one is. */
void hg_server_note_error(struct hg_server *server, const char *text);
/* What was noted last, "" if one was made since. From any thread. */
const char *hg_server_last_error(const struct hg_server *server, char out[HG_SERVER_ERROR_BYTES]);

/* The addresses, if they are fixed or were found at `since_us` or later. */
HG_MUST_USE bool hg_server_get_addrs(struct hg_server *server, uint64_t since_us,
                                     struct hg_addrs *ret_addrs);
void hg_server_put_addrs(struct hg_server *server, const struct hg_addrs *addrs, uint64_t now_us);
/* Which address is to be tried first from now on. */
void hg_server_start_with(struct hg_server *server, uint32_t start);

#endif
