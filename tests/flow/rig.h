// rig - a worker without a front end: a loop, a store or the parts of one, and calls that note what
// becomes of them
// SPDX-License-Identifier: BSD-3-Clause
#ifndef RIG_H
#define RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "back/hub.h"
#include "back/memcached.h"
#include "base/blob.h"
#include "base/clock.h"
#include "fake.h"
#include "io/loop.h"
#include "io/mailbox.h"
#include "io/out.h"
#include "proto/status.h"
#include "../unit/patience.h"

/* A worker's own things. */
struct rig {
    struct hg_loop loop;
    struct hg_mailbox mailbox;
    struct hg_blobs blobs;
    struct hg_out_pool outs;
};

void rig_init(struct rig *rig);
void rig_fini(struct rig *rig);

/* A call and its fate. */
struct note {
    struct hg_call call;
    struct hg_store *store;
    char key[256];
    int done;  /* times that on_done was called */
    int rooms; /* times that on_room was called */
    int order; /* of its on_done among all, from 1 */
    int room_order;
    bool stay; /* do not submit again from on_room */
    struct hg_result result;
    char value[512]; /* the beginning of the result's */
    size_t value_len;
    uint32_t value_sum;
    bool in_blob; /* the value lay in result.blob */
};

/* Sets `note` up for an operation on `key`. */
void note_init(struct note *note, struct hg_store *store, enum hg_op op, const char *key);
/* Submits it with the loop's time. */
enum hg_submit note_submit(struct note *note, struct rig *rig);
/* Order counters start again. */
void note_reset_order(void);

/* Turns the loop and pumps the fakes until the condition holds; fails the test when patience is at
 * its end. */
struct bench {
    struct rig *rigs[2];
    struct fake *fakes[4];
};
void bench_turn(struct bench *bench);
/* The clock of a bench: the real one, of which at most a millisecond passes in a turn. So the
   time-outs of a process that a busy machine kept from running are not over before the answers
   that lie in its sockets are read. */
uint64_t bench_now_us(void);
/* From now on the rig tells this time. */
void bench_keep_time(struct rig *rig);
/* The clock jumps. */
void bench_skip(uint64_t us);
uint64_t bench_deadline(void);
/* HG_TEST_SCALE, at least 1. */
uint64_t bench_scale(void);
#define BENCH_UNTIL(bench, condition)                                                              \
    do {                                                                                           \
        PATIENCE_UNTIL(condition, bench_turn(bench));                                              \
    } while (0)
/* Turns for so many microseconds of the real clock: for what must NOT happen. */
void bench_for(struct bench *bench, uint64_t us);

/* A configuration of these fakes with short time-outs. */
void rig_conf(struct hg_remote_conf *conf, struct hg_ring_server *servers, struct fake **fakes,
              uint32_t count);
struct hg_store *rig_store(struct rig *rig, struct hg_upstream_shared *shared, uint32_t worker,
                           uint32_t share);
struct hg_upstream_shared *rig_shared(const struct hg_remote_conf *conf, uint32_t workers);
struct hg_pool *rig_pool(struct hg_store *store, uint32_t index);
uint64_t rig_stat(const struct hg_upstream_shared *shared, uint32_t server,
                  enum hg_upstream_stat stat);

#endif
