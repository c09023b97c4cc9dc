// conform - what every kind of store must do alike: a table of cases times a table of stores
// SPDX-License-Identifier: BSD-3-Clause
//
//   t_conform_<kind>.c   stores of one kind: how each is opened, and what it has (HAS_*)
//   conform_items.c      operations on items     ┐
//   conform_calls.c      sizes, many calls       │ cases; each runs on every store that has what
//   conform_rows.c       rows                    │ it needs
//   conform_ranges.c     ranges                  ┘
//
// Each (store, case) is one test: "redis: add to an absent key". It gets a store of its own and a
// key prefix of its own, on servers that all tests of the program share.
#ifndef CONFORM_H
#define CONFORM_H

#include "rig.h"

/* The features in which stores differ. If a store lacks one, a case with that bit in `lacks` tests
   what it does instead; otherwise the comment gives the reason. */
enum {
    HAS_CAS = 1 << 0,         /* Redis' plain layout keeps only the value */
    HAS_FLAGS = 1 << 1,       /* the same */
    HAS_PADDING = 1 << 2,     /* a counter that gets shorter keeps spaces; the same */
    HAS_ROWS = 1 << 3,        /* rows need CAS and flags */
    HAS_ORDER = 1 << 4,       /* ranges; memcached has no order of keys, the plain layout no rows */
    HAS_LATER_FLUSH = 1 << 5, /* Redis cannot flush later */
    HAS_JOIN_LIMIT = 1 << 6,  /* memcached knows only its own limit, and says NOT_STORED */
    HAS_SET_LIMIT = 1 << 7, /* Redis takes any value: the front refuses those that are too large */
    HAS_JOIN_SIZE = 1 << 8, /* memcached does not tell the size after an append */
    HAS_TOUCH_FLAGS = 1 << 9,   /* only the embedded store tells the flags with a touch */
    HAS_RISING_CAS = 1 << 10,   /* Redis' CAS values are made by each worker, in any order */
    HAS_SERVER_TEXTS = 1 << 11, /* memcached says why; elsewhere the front adds the text */
    HAS_VIEWS = 1 << 12,        /* values hold until the end of the turn, and need no block */
    HAS_WORKERS = 1 << 13, /* several workers share it; inline embedded and plain Redis lack this */
    HAS_ONE_SERVER = 1 << 14,    /* one server, and one connection to it suffices */
    HAS_TIES = 1 << 15,          /* a queued call is not sent yet; freeing the store refuses it
                                    (tie.h) */
    HAS_LARGE_NUMBERS = 1 << 16, /* memcached 1.6.18 looks for a minus in front of a number of 2^63
                                    and more, but beyond its end, and may refuse it */
    IS_FAST = 1 << 17,           /* no write waits for the disk */
};

/* A store under test. */
struct conform_store {
    const char *name;
    unsigned has;
    size_t key_max;     /* bytes of prefix and key together */
    unsigned rounds;    /* how often a case's steps are repeated, on other keys; 0: once */
    int walk_steps;     /* of the random walk; 0: 12000 */
    size_t length_step; /* between the lengths that size cases try; 0: every length */
    bool relayed;       /* calls go to a worker that reaches its servers through another */
    uint32_t mode;      /* the kind's own */
};

/* A test's store, open. */
struct conform {
    const struct conform_store *kept; /* its row */
    uint32_t max_value_bytes;
    bool large; /* the case's */
    char prefix_text[16];
    struct hg_span prefix;
    uint32_t tenant_id;
    struct rig rigs[2]; /* one for each worker; calls go to the last one's store */
    struct hg_store *stores[2];
    uint32_t workers;
    struct rig *rig;
    struct hg_store *store;
    struct bench bench;
    struct hg_timer ticks[2];            /* so that a waiting turn ends */
    struct hg_upstream_shared *upstream; /* of servers; NULL: embedded */
    void *shared;                        /* the kind's own */
};

/* What stores of one kind have in common. `launch` and `put_down` run once for the program. */
struct conform_kind {
    const char *name;
    void (*launch)(void);
    void (*put_down)(void);
    /* Opens what the workers share, for two workers, and closes it. */
    void (*open)(struct conform *c);
    struct hg_store *(*worker)(struct conform *c, struct rig *rig, uint32_t worker);
    void (*close)(struct conform *c);
    /* Makes the key for `name`, a different one in each round; NULL: the name and the round. */
    void (*key)(char key[64], const char *name, unsigned round);
    /* Removes a row's item behind the store's back; NULL: cannot be done. */
    void (*lose)(struct conform *c, const char *table, const char *row);
    /* How many rows the index of the table has; NULL: there is none to be seen. */
    long (*indexed)(struct conform *c, const char *table);
    /* What the server says until the item expires, -1: never, -2: there is none; may be NULL. */
    long (*seconds_left)(struct conform *c, const char *key);
};

/* Which CAS a step sends. */
enum conform_cas {
    CAS_ANY,
    CAS_RIGHT,  /* that of the item */
    CAS_OTHER,  /* another one */
    CAS_BEFORE, /* the one that the item had before its last change */
    CAS_SOME    /* any but 0, where there is no item */
};

/* One step of a case: the call and the expected answer. */
struct conform_step {
    enum hg_op op;
    const char *key, *value;
    enum conform_cas cas;
    uint32_t expiry;
    uint64_t delta, initial;
    uint16_t status;
    const char *gives; /* get, gat: the value; NULL: not checked */
    uint64_t counter;
    uint32_t bytes;   /* append, prepend: size of the value then; 0: not checked */
    const char *says; /* part of a refusal's text; NULL: not checked */
};

struct conform_case {
    const char *name;
    unsigned needs, lacks; /* the bits of stores that it is for */
    const struct conform_step *steps;
    size_t count;
    void (*run)(struct conform *c); /* when it is no table of steps */
    uint32_t max_value_bytes;       /* 0: 1 MiB */
    bool large;                     /* it may fill a server's memory */
    bool own_workers;               /* no store is open: the case opens its own */
};

extern const struct conform_case conform_items[], conform_calls[], conform_rows[], conform_ranges[];
extern const size_t conform_items_count, conform_calls_count, conform_rows_count,
    conform_ranges_count;

/* A turn of every worker; with `wait` it waits for events, where there is one worker. */
void conform_turn(struct conform *c, bool wait);
/* Every wait has a bound, far above what a busy machine takes. */
uint64_t conform_deadline(void);
#define CONFORM_UNTIL(c, condition)                                                                \
    do {                                                                                           \
        uint64_t until_us_ = conform_deadline();                                                   \
        for (bool wait_ = false; !(condition); wait_ = true) {                                     \
            if (hg_now_us() > until_us_)                                                           \
                fail_msg("still not: %s", #condition);                                             \
            conform_turn(c, wait_);                                                                \
        }                                                                                          \
    } while (0)

/* Prepares a call for a key under the test's prefix. */
void conform_note(struct conform *c, struct note *note, enum hg_op op, const char *key);
/* Submits it, waits for its end, and fails the test on a fault. */
struct hg_result conform_finish(struct conform *c, struct note *note);
/* The answer to one call. A value comes with flags where the store has them. */
struct hg_result conform_call(struct conform *c, enum hg_op op, const char *key, const char *value);
/* The key holds this value, or none when it is NULL. */
void conform_expect(struct conform *c, const char *key, const char *value);
bool conform_has(const struct conform *c, unsigned bits);
/* What the servers counted, together. */
uint64_t conform_stat(const struct conform *c, enum hg_upstream_stat stat);
/* Makes the workers, each with a store. */
void conform_open_stores(struct conform *c, uint32_t workers);
/* Frees the workers' stores, with what they have under way. */
void conform_free_stores(struct conform *c);
const struct conform_kind *conform_kind(void);
/* The configuration of these servers for a store that is patient. */
void conform_remote(const struct conform *c, struct hg_remote_conf *conf,
                    struct hg_ring_server *servers, uint32_t count);

/* Runs all cases on these stores; the program's exit status. */
int conform_main(const struct conform_kind *kind, const struct conform_store *stores, size_t count);

#endif
