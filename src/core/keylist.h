// keylist - the throttled keys of a tenant as one worker sees them
// SPDX-License-Identifier: BSD-3-Clause
//
// Made from struct hg_keythrottle at the end of an epoch, one copy for each worker: the worker
// looks keys up, draws, and counts refusals in its copy, and hands it back at the end of the next
// epoch together with its sketches. `step` throws dice with a generator that the caller seeds;
// `proportional` spreads refusals evenly by carrying the remainder on (error diffusion). Memory is
// the caller's; a list holds no address of its own. Pure; one thread at a time.
#ifndef HG_CORE_KEYLIST_H
#define HG_CORE_KEYLIST_H

#include "base/prng.h"
#include "core/keythrottle.h"

struct hg_keylist; /* its layout is in keylist.c */

size_t hg_keylist_bytes(const struct hg_keythrottle *throttle);
/* A list in `memory` (aligned for any type). `start` (any number, differing by worker and epoch)
   shifts where error diffusion begins, so that workers do not refuse in step, nor a rare key always
   or never. */
struct hg_keylist *hg_keylist_make(void *memory, const struct hg_keythrottle *throttle,
                                   enum hg_hotkey_control control, uint32_t start);

/* Index of the key, or -1: quick when it is not listed. */
int hg_keylist_find(const struct hg_keylist *list, const struct hg_hotkey_key *key);
/* Of its requests that are refused. */
unsigned hg_keylist_percent(const struct hg_keylist *list, int index);
/* Draws for one request of a listed key: true, it is refused. Counted either way. */
bool hg_keylist_refuses(struct hg_keylist *list, int index, struct hg_prng *prng);
/* Takes a refusal back: the request was let pass after all (it is observed only). */
void hg_keylist_forgive(struct hg_keylist *list, int index);

/* Tells everything that was counted to the tenant's state. */
void hg_keylist_report(const struct hg_keylist *list, struct hg_keythrottle *throttle);

#endif
