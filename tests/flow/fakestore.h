// fakestore - a store in the hands of a test: it answers what, when and in which order it is told
// SPDX-License-Identifier: BSD-3-Clause
//
// It keeps the promises of back/store.h and checks those of its caller: a call is submitted once,
// `after` is a call that is still here, cancel names a call that is here. What it hands out as a
// view is overwritten at HG_STAGE_CLEANUP, so a view that is used too long shows.
#ifndef FAKESTORE_H
#define FAKESTORE_H

#include <stdbool.h>
#include <stdint.h>

#include "back/store.h"
#include "front/worker.h"

/* A call that the store has. */
struct kept {
    struct hg_list node;
    struct fakestore *store;
    struct hg_call *call;
    enum hg_op op;
    uint64_t serial; /* of its submission */
    uint64_t after;  /* serial of call->after; 0: none */
    uint32_t expiry, item_flags;
    uint64_t cas, delta, initial;
    char key[256];
    char prefix[64];
    uint8_t *value; /* a copy */
    size_t value_len;
    bool in_blob; /* the value came by reference */
    bool waiting;
};

#define FAKESTORE_STRANDED 4096

struct fakestore {
    struct hg_store store;
    struct hg_worker *worker;
    struct hg_list pending; /* taken, not answered: oldest first */
    struct hg_list waiting; /* for room: oldest first */
    struct hg_hook cleanup_hook, send_hook;
    uint8_t *view; /* what was handed out in this turn */
    size_t view_len, view_cap;
    uint64_t serial;
    size_t room;  /* calls that may be pending; beyond it: WAIT */
    bool answers; /* at once, in submit: as on_submit says, or as fake_obey does */
    bool draining;
    bool strands;         /* a cancelled or timed-out call keeps its slot until fakestore_late */
    unsigned stranded[2]; /* slots by kind of ticket, */
    uint64_t tickets[2][FAKESTORE_STRANDED]; /* and whose they were, oldest first */
    unsigned submits, cancels, rooms, done;
    /* What to do with a call that has been taken; NULL: obey at once if `answers`, else keep. */
    void (*on_submit)(struct fakestore *store, struct kept *kept);
    /* At HG_STAGE_BACKENDS of each turn, or NULL. */
    void (*on_send)(struct fakestore *store);
    /* Decides whether a call must wait; NULL: by `room`. */
    bool (*must_wait)(struct fakestore *store, const struct hg_call *call);
    void (*on_free)(struct fakestore *store);
    /* Within `cancel`, when the call is forgotten; or NULL. */
    void (*on_cancel)(struct fakestore *store);
    /* Servers; 0: it has none. A key belongs to the one of its last digit, plus `moved`, modulo
       their number; another key, and a flush, to none. */
    unsigned servers, moved;
    void *ctx;
    void *data; /* the test's, freed with the store */
};

struct fakestore *fakestore_new(struct hg_worker *worker);
/* "fake:0", "fake:1", ... up to 9 */
const char *fakestore_server(unsigned server);

/* The oldest pending or waiting call for the key; NULL: none. */
struct kept *fakestore_find(struct fakestore *store, const char *key);
/* The oldest pending one, whatever its key; the one with `n` older ones before it. */
struct kept *fakestore_first(struct fakestore *store);
struct kept *fakestore_nth(struct fakestore *store, unsigned n);
unsigned fakestore_pending(const struct fakestore *store);
unsigned fakestore_waiting(const struct fakestore *store);

/* Ends a call. */
void fakestore_finish(struct kept *kept, const struct hg_result *result);
/* With a status and nothing else. */
void fakestore_say(struct kept *kept, uint16_t status);
void fakestore_fault(struct kept *kept, enum hg_fault fault);
/* A get with this value, in bytes of the moment. */
void fakestore_give(struct kept *kept, const void *value, size_t len);
/* In a blob of the worker, at an odd place within it. */
void fakestore_give_blob(struct kept *kept, const void *value, size_t len);
/* In bytes that hold until the end of the turn. */
void fakestore_give_view(struct kept *kept, const void *value, size_t len);
/* As a store would that has every key: gets find "v:KEY", everything else succeeds. */
void fakestore_obey(struct kept *kept);
/* All pending ones, oldest first; until there are none. */
void fakestore_obey_all(struct fakestore *store);
/* The late answer of a stranded slot comes. */
void fakestore_late(struct fakestore *store, unsigned kind);
/* The same at one of its servers. */
void fakestore_late_at(struct fakestore *store, unsigned kind, unsigned server);
/* Tells a waiting call to try again. */
void fakestore_call_room(struct kept *kept);

#endif
