// linesim_in - what the parts of the simulation of a line know of each other
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_TEST_LINESIM_IN_H
#define HG_TEST_LINESIM_IN_H

#include "linesim.h"

#include <stddef.h>

#include "base/prng.h"
#include "core/linework.h"
#include "core/probe.h"
#include "core/ticketline.h"

#define TICK_US          5000
#define INTERVAL_US      100000
#define PAUSE_US         100000 /* of a client after a refusal */
#define QUEUE_TIMEOUT_US 1000000
#define FLOOD_WAIT_US    100000
#define TENANT_WINDOW    8
#define IDLE_US          1000000
#define GRAIN_US         100 /* of latencies */
#define GRAINS           50000

enum kind { ARRIVAL, SEND, DONE, TICK, CONTROL, RESUME };

struct request {
    struct hg_ticketline_waiter waiter; // first
    struct request *next;               // in the store, or free
    uint32_t load, client, worker;
    uint64_t at_us, granted_us, service_us;
    bool is_late; // its end is known, and was heard of later
};

struct event {
    uint64_t at_us, number;
    enum kind kind;
    uint32_t load, client;
    struct request *request;
};

/* Its line of the holder, and what others know of that. */
struct worker {
    struct hg_ticketline line;
    struct hg_ticketline_tenant tenants[LINESIM_TENANTS];
    struct hg_linework work;
    struct hg_workclass classes[LINESIM_TENANTS];
    struct hg_ticketline_conf conf;
    struct hg_linework_classes told;
    uint64_t sole, forgiven;
    uint64_t rounds_elsewhere, forgiven_elsewhere;
};

struct sim {
    const struct linesim_setup *setup;
    struct linesim_result *result;
    struct hg_prng prng;
    uint64_t now_us, events;
    struct event *heap;
    uint32_t heap_count, heap_room;
    struct worker workers[LINESIM_WORKERS];
    uint32_t worker_count, turn;
    struct hg_probe probe;
    int64_t size, out, peak;
    uint64_t finished, service_us, work_us, short_count, short_us;
    double squares;
    uint64_t min_us;
    struct request *inside, **inside_end, *spare; /* waiting in the store */
    uint32_t busy;
    uint32_t answered;
    uint32_t *latencies[2];
    double sizes;
    uint32_t steps;
};

enum end { ANSWERED, REFUSED, LATE };

/* ---- events, ends, the store (linesim_store.c) ---- */

void *linesim_make(size_t count, size_t size);
double linesim_uniform(struct sim *sim);
void linesim_add(struct sim *sim, struct event event);
struct event linesim_take_first(struct sim *sim);
const struct linesim_load *linesim_load_of(const struct sim *sim, const struct request *request);
struct worker *linesim_worker_of(struct sim *sim, const struct request *request);
struct hg_ticketline_tenant *linesim_tenant_of(struct sim *sim, const struct request *request);
void linesim_tell(struct sim *sim, struct request *request, enum end end);
bool linesim_is_paused(const struct sim *sim);
void linesim_put_inside(struct sim *sim, struct request *request);
void linesim_fill_slots(struct sim *sim);

/* ---- the workers (linesim_workers.c) ---- */

struct worker *linesim_next_worker(struct sim *sim);
void linesim_share_size(struct sim *sim, struct worker *worker);
void linesim_note_work(struct sim *sim, struct worker *worker, uint32_t tenant,
                       uint64_t service_us);
void linesim_tick_worker(struct sim *sim, struct worker *worker);
uint32_t linesim_least_window(const struct sim *sim);

#endif
