// loginguard - logins are bounded, and slowed for addresses that fail
// SPDX-License-Identifier: BSD-3-Clause
//
// A table of fixed size, address hash -> failures. The first 3 attempts of an address cost nothing;
// after 3 failures attempts are spaced: by 100 ms, 100 ms more for each further failure, up to 2
// s. Attempts of one address that come together queue up behind each other, and one that would wait
// longer than HG_LOGINGUARD_QUEUE_US is refused. One failure is forgiven each 10 s; a success
// forgives all. It does not matter whether the name existed. The set that an address falls into
// keeps the most recently failed 8: a flood of addresses pushes out old ones and costs no memory.
//
// Besides, at most `in_flight_max` logins are worked on at a time (each costs a key derivation).
//
// Pure. One a process; the caller serialises (a mutex; every call is tens of ns). Address hashes
// are keyed by the caller with a secret, or addresses could be made that share a set.
#ifndef HG_CORE_LOGINGUARD_H
#define HG_CORE_LOGINGUARD_H

#include <stdbool.h>
#include <stdint.h>
#include "base/attr.h"

#define HG_LOGINGUARD_SETS       128
#define HG_LOGINGUARD_WAYS       8
#define HG_LOGINGUARD_FREE       3
#define HG_LOGINGUARD_STEP_US    100000
#define HG_LOGINGUARD_MAX_US     2000000
#define HG_LOGINGUARD_FORGIVE_US 10000000
#define HG_LOGINGUARD_QUEUE_US   10000000
#define HG_LOGINGUARD_COUNT_MAX  100 // failures remembered

struct hg_loginguard_entry {
    uint64_t address;   // hash
    uint64_t failed_us; // the last failure, moved on by what was forgiven
    uint64_t busy_us;   // attempts are handed out up to here
    uint32_t failures;  // 0: the entry is free
};

struct hg_loginguard {
    struct hg_loginguard_entry table[HG_LOGINGUARD_SETS][HG_LOGINGUARD_WAYS];
    uint32_t in_flight, in_flight_max;
};

void hg_loginguard_init(struct hg_loginguard *guard, uint32_t in_flight_max);

/* May this address try to log in? False: refuse at once. True: after `ret_wait_us` (0 = now), whose
 * place is taken by the call. Ask once an attempt (a whole SASL exchange). */
HG_MUST_USE bool hg_loginguard_ask(struct hg_loginguard *guard, uint64_t address, uint64_t now_us,
                                   uint64_t *ret_wait_us);
/* How an attempt ended; one given up by the client in the middle of the exchange has failed. */
void hg_loginguard_tell(struct hg_loginguard *guard, uint64_t address, bool ok, uint64_t now_us);

/* A place among those being worked on, until put; false: none free, queue or refuse. */
HG_MUST_USE bool hg_loginguard_take(struct hg_loginguard *guard);
void hg_loginguard_put(struct hg_loginguard *guard);

#endif
