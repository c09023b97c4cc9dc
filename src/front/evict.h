// evict - who holds the slots of a backlogged server: reports to housekeeping, and its verdicts
// SPDX-License-Identifier: BSD-3-Clause
//
//   housekeeping: ask ─► each worker: report ─► housekeeping: judges (core/bindwatch)
//                        each worker ◄─ verdict ────┘ evicts its part, throttles the key
//
// An evicted request that waits leaves its line; one that was sent is answered at once, its slot
// stranded (gate.h) until the late answer has come. The spans and pointers of letters are theirs;
// buckets and the upstream are counted.
#ifndef HG_FRONT_EVICT_H
#define HG_FRONT_EVICT_H

#include "core/bindwatch.h"
#include "core/hotkey.h"
#include "front/worker.h"

/* A worker's report. */
struct hg_evict_report {
    struct hg_letter letter;
    void *ctx; /* of who asked */
    unsigned worker;
    uint64_t round;
    struct hg_upstream *upstream;
    unsigned server;                   /* index of its share, gateset.h */
    struct hg_bindwatch_report report; /* rows: tenant is a struct hg_bucket */
    struct hg_bindwatch_row *rows;
    uint8_t (*keys)[HG_HOTKEY_KEY_MAX];
};

/* A key that is to be evicted. */
struct hg_evict_key {
    struct hg_bucket *bucket;
    struct hg_bindwatch_verdict verdict; /* its tenant is not used */
    uint8_t key[HG_HOTKEY_KEY_MAX];
};

/* From housekeeping: the worker reports to `house` by a letter whose `deliver` is on_report. */
void hg_evict_ask(struct hg_worker *worker, struct hg_upstream *upstream, unsigned server,
                  uint64_t round, struct hg_mailbox *house,
                  void (*on_report)(struct hg_letter *letter, void *receiver), void *ctx);
/* The same: these keys are to be evicted; with none the worker's longest-running request of the
   server. Takes the array (malloc'd) and its references. */
void hg_evict_order(struct hg_worker *worker, struct hg_upstream *upstream, unsigned server,
                    struct hg_evict_key *keys, size_t count);
void hg_evict_keys_free(struct hg_evict_key *keys, size_t count);
/* Frees a report with its references. */
void hg_evict_report_free(struct hg_evict_report *report);

#endif
