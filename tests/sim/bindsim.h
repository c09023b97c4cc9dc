// bindsim - an upstream of few slots, its line, and clients in closed loop, in virtual time
// SPDX-License-Identifier: BSD-3-Clause
//
//   client ─► throttle of its worker ─► line (first come, first served) ─► slot ─► answer
//                 1 in X: quarantine, one at a time for each worker
//
// A slot serves a request in the time of its key, a tenth more or less. Every 100 ms, once the line
// has not been empty for `backlog_us`, the watch judges; evicted requests are answered at once and
// their slots are stranded until the store is done with them. Steps of one millisecond.
#ifndef HG_TEST_BINDSIM_H
#define HG_TEST_BINDSIM_H

#include "base/prng.h"
#include "../unit/bindhelp.h"
#include "core/bindwatch.h"

#define BINDSIM_MS      1000u
#define BINDSIM_WORKERS 2
#define BINDSIM_SLOTS   128
#define BINDSIM_CLIENTS 512
#define BINDSIM_GROUPS  8
#define BINDSIM_SAMPLES 400000
#define BINDSIM_PASSES  20000

struct bindsim_conf {
    uint32_t slots;
    bool watching; /* false: bind_mode off */
    uint32_t threshold_pct, target_pct;
    double decr_per_sec;
    uint64_t backlog_us, min_age_us, queue_timeout_us, deadline_us;
    size_t bind_min_bytes;
    bool evict_sent_writes;
    /* Other rules, to compare: */
    bool stranded_unused;   /* the watch does not count stranded slots */
    bool time_outs_relieve; /* a line that is empty since all in it gave up is no backlog */
};

/* Clients of one kind. */
struct bindsim_group {
    uint32_t clients;
    const char *key; /* of all; with `keys`: the beginning of so many */
    uint32_t keys;
    bool exempt;
    enum hg_hot_type type;
    uint64_t service_us;
    uint64_t think_us;          /* after an answer; a tenth more or less */
    uint64_t retry_us;          /* after an error; a tenth more or less */
    uint64_t from_us, until_us; /* asks in this time; until 0: for ever */
    uint32_t times;             /* each asks so many times; 0: no bound */
};

struct bindsim_counts {
    uint64_t asked;
    uint64_t answered;  /* by the store */
    uint64_t throttled; /* BIND_THROTTLE */
    uint64_t evicted;   /* BIND_EVICT */
    uint64_t killed;    /* the longest-running one */
    uint64_t late;      /* waited too long */
    uint64_t passed;    /* a throttle let it through */
    uint32_t samples;   /* latencies of the answered ones */
    uint32_t *latency_us;
};

enum bindsim_state { BINDSIM_IDLE, BINDSIM_WAITS, BINDSIM_HELD, BINDSIM_RUNS };

struct bindsim_client {
    uint32_t group;
    char text[32];
    struct hg_bindthrottle_key key;
    enum bindsim_state state;
    uint64_t next_us, asked_us;
    double change; /* of the pass */
    bool quarantine;
    uint32_t asked;
};

struct bindsim_slot {
    bool used;
    int client; /* -1: stranded */
    uint32_t worker;
    bool quarantine, held; /* held: has its ticket, waits for the quarantine connection */
    uint64_t began_us, ends_us;
};

struct bindsim_pass {
    uint64_t at_us;
    uint32_t worker, group, attempts; /* attempts: since the pass before, this one included */
    struct hg_bindthrottle_told told;
    bool busy;
};

struct bindsim {
    struct bindsim_conf conf;
    struct bindsim_group groups[BINDSIM_GROUPS];
    struct bindsim_counts counts[BINDSIM_GROUPS];
    uint32_t group_count, client_count;
    struct bindsim_client clients[BINDSIM_CLIENTS];
    struct bindsim_slot slots[BINDSIM_SLOTS];
    uint32_t line[BINDSIM_CLIENTS], waiting;
    struct hg_bindthrottle *tables[BINDSIM_WORKERS];
    uint32_t attempts[BINDSIM_WORKERS][BINDSIM_GROUPS];
    struct hg_bindwatch *watch;
    struct hg_prng dice;
    uint64_t now_us;
    uint64_t backlog_since_us; /* UINT64_MAX: the line is empty */
    uint64_t first_backlog_us, first_evicted_us[BINDSIM_GROUPS];
    uint32_t max_x;
    struct bindsim_pass passes[BINDSIM_PASSES];
    uint32_t pass_count;
};

/* The defaults of the options, and so many slots. */
struct bindsim *bindsim_new(uint32_t slots, uint64_t seed);
void bindsim_free(struct bindsim *sim);
/* Its number. */
uint32_t bindsim_add(struct bindsim *sim, const struct bindsim_group *group);
void bindsim_run(struct bindsim *sim, uint64_t until_us);
/* Counts begin anew. */
void bindsim_mark(struct bindsim *sim);
uint64_t bindsim_errors(const struct bindsim *sim, uint32_t group);
uint32_t bindsim_p99(struct bindsim *sim, uint32_t group);
/* X in force of a group's (first) key, 0: no entry. */
uint32_t bindsim_x(const struct bindsim *sim, uint32_t group, uint32_t worker);
uint32_t bindsim_used(const struct bindsim *sim);
/* Slots that a group's requests hold, without stranded ones. */
uint32_t bindsim_holds(const struct bindsim *sim, uint32_t group);

#endif
