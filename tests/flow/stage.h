// stage - front and core on a stage: workers, buckets and credits, with fakes for store, process,
// clients and clock
// SPDX-License-Identifier: BSD-3-Clause
//
// By default the test turns the workers' loops by hand (stage_turn, stage_run), so every step is
// its own; with stage_start the workers run on threads of their own. The clock stands until the
// test moves it; the credits tick when it says so.
#ifndef STAGE_H
#define STAGE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client.h"
#include "core/credittick.h"
#include "fakestore.h"
#include "front/directory.h"
#include "front/gateset.h"
#include "front/session.h"
#include "front/worker.h"
#include "proto/hello.h"
#include "proto/status.h"
#include "../unit/patience.h"

#define STAGE_WORKERS 2
#define STAGE_BUCKETS 8
#define STAGE_USERS   4
#define STAGE_SLOT_US 1000000

struct stage_user {
    const char *name;
    const char *bucket; /* the only one that it may see; NULL: all */
    uint32_t privileges;
    bool revoked;
};

struct stage_upstream {
    struct hg_upstream upstream;
    struct hg_generation *generation; /* listed in the next directory */
    struct stage *stage;
    struct fakestore *stores[STAGE_WORKERS]; /* open ones */
    unsigned opened, freed, retired;
    unsigned generations; /* that there are */
    bool fails;           /* to open */
};

struct stage {
    struct hg_front front;
    struct hg_credit_node node;
    struct hg_worker *workers;
    unsigned worker_count;
    bool threads;
    int epolls[STAGE_WORKERS];         /* of the workers' loops, when turned by hand */
    struct hg_front_settings settings; /* of the next directory */
    struct hg_directory *directory;    /* in force */
    struct stage_upstream upstreams[2];
    unsigned upstream_count;                  /* listed in the next directory */
    struct hg_bucket *buckets[STAGE_BUCKETS]; /* listed; by name; the stage holds a reference */
    unsigned bucket_count;
    unsigned retired; /* buckets that are gone */
    struct stage_user users[STAGE_USERS];
    unsigned user_count;
    uint32_t anonymous_privileges;
    const char *anonymous_bucket;
    pthread_mutex_t lock; /* for the jobs */
    struct hg_job *jobs[64];
    unsigned job_count;
    unsigned logins_gone;
    struct hg_credit_tick last_tick;
    void (*on_open)(struct stage *stage, struct fakestore *store); /* on its worker's thread */
    void *ctx;                                                     /* the test's */
};

/* A stage with one bucket "default" without limits on a fake store; nobody is logged in, everybody
   may do everything. Change what the test needs, then stage_open. */
void stage_init(struct stage *stage, unsigned workers);
/* Workers that the test turns. */
void stage_open(struct stage *stage);
/* Workers with threads. */
void stage_start(struct stage *stage);
/* Ends all, and checks that nothing is left: no request, no byte, no reference; and that every
   request has ended in one outcome. */
void stage_close(struct stage *stage);

/* A bucket for the next directory; before or after stage_open. */
struct hg_bucket *stage_bucket(struct stage *stage, const char *name, uint64_t reserved,
                               uint64_t hard_limit);
struct hg_bucket *stage_find(struct stage *stage, const char *name);
/* Takes it out of the next directory; it is DELETED from now on. */
void stage_delete(struct stage *stage, const char *name);
/* Makes a directory of what there is now. */
void stage_list(struct stage *stage);
/* The same, and hands it to the workers. */
void stage_publish(struct stage *stage);
/* Another generation of an upstream, to be listed in the next directory. */
void stage_renew(struct stage *stage, unsigned upstream);
struct stage_user *stage_user(struct stage *stage, const char *name, const char *bucket,
                              uint32_t privileges);

/* A connection to a worker; over a socket pair, or over TCP on loopback. */
void stage_connect(struct stage *stage, unsigned worker, struct client *client);
void stage_connect_tcp(struct stage *stage, unsigned worker, struct client *client);
/* The newest session of worker 0 that is not dead, or NULL. */
struct hg_session *stage_session(struct stage *stage);
unsigned stage_sessions(struct stage *stage);
/* The store of upstream 0 on worker 0 (opened if need be). */
struct fakestore *stage_store(struct stage *stage);

/* The clock, in microseconds from the start of the stage. Shared by all stages of the process. */
void stage_advance(uint64_t us);
/* One turn of each loop. */
void stage_turn(struct stage *stage);
/* Turns until nobody has work left, and no event is left that would wake a loop at once: one that
   spins fails the test. */
void stage_run(struct stage *stage);
/* The clock moves on to the next slot (or slice) of the credits, which begins; the loops are not
   turned. */
void stage_tick(struct stage *stage);
/* The worker's timer, which looks after idle and lingering connections. */
void stage_timer(struct stage *stage);
/* Takes the oldest job that waits for its answer, or NULL. */
struct hg_job *stage_job(struct stage *stage);

uint64_t stage_outcome(const struct stage *stage, enum hg_outcome outcome);
uint64_t stage_total(const struct stage *stage); /* requests that ended */

/* Runs the loops, reads, and checks the next reply. */
struct reply stage_expect(struct stage *stage, struct client *client, uint8_t opcode,
                          uint16_t status, uint32_t opaque);
/* Runs the loops; no reply is there, and the connection is open. */
void stage_expect_nothing(struct stage *stage, struct client *client);
/* Runs the loops; the server has closed, and there is no further reply. */
void stage_expect_end(struct stage *stage, struct client *client);
/* The value of a reply as a string; until the next call. */
const char *reply_text(const struct reply *reply);

/* HG_TEST_SCALE stretches every bound. */
uint64_t stage_deadline(void);
/* Polls until the condition holds; fails the test when patience is at its end. */
#define STAGE_UNTIL(stage, condition)                                                              \
    do {                                                                                           \
        PATIENCE_UNTIL(condition, stage_wait(stage));                                              \
    } while (0)
/* A turn by hand, or a moment for the threads. */
void stage_wait(struct stage *stage);

#endif
