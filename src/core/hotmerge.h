// hotmerge - several sketches as one, and the keys that lead it
// SPDX-License-Identifier: BSD-3-Clause
//
// Source: Agarwal et al., "Mergeable Summaries" (PODS 2012), in the form that keeps upper bounds:
// counts of a key are added up, and a key that is missing from a full sketch is credited that
// sketch's minimum, as count and as error, since it may have been there so often. So the true count
// stays within [count - error, count] and error <= sum of N_i / m. What is merged keeps the `keep`
// largest and can be looked up by key. Memory is the caller's; a result holds no address of its
// own, so that it may be copied and moved. Pure.
#ifndef HG_CORE_HOTMERGE_H
#define HG_CORE_HOTMERGE_H

#include "core/hotkey.h"

#define HG_HOT_TOP 10

struct hg_hotmerge; /* the result; its layout is in hotmerge.c */

/* Bytes of a result that keeps so many keys, long ones included. */
size_t hg_hotmerge_bytes(unsigned keep);
/* Bytes of it that are in use: the memory may be cut to so many, since most keys are short. */
size_t hg_hotmerge_size(const struct hg_hotmerge *merged);
/* Bytes that merging needs for a moment, with `entries` used counters in all sketches together. */
size_t hg_hotmerge_scratch_bytes(unsigned entries);

/* Merges into `memory` (hg_hotmerge_bytes(keep)), `keep` from 1 to HG_HOTKEY_COUNTERS_MAX, with
   memory for a moment at `scratch` (hg_hotmerge_scratch_bytes, aligned for any type). count 0: an
   empty result, no scratch. Decisions look keys up in all that is kept; for a list of the hottest
   keys alone `keep` HG_HOT_TOP is enough, and cheaper. */
struct hg_hotmerge *hg_hotmerge_make(void *memory, unsigned keep,
                                     const struct hg_hotkey *const *sketches, unsigned count,
                                     void *scratch);

unsigned hg_hotmerge_used(const struct hg_hotmerge *merged);
uint64_t hg_hotmerge_total(const struct hg_hotmerge *merged); /* N of all */
/* A key that is not there came at most so often. */
uint64_t hg_hotmerge_absent(const struct hg_hotmerge *merged);
/* Entry i of hg_hotmerge_used. The first HG_HOT_TOP are the largest, the largest first, equal
   counts by table length and key bytes; the others follow in no order. Which keys are kept, and in
   which order the first come, does not depend on the order of the sketches. The key's bytes hold
   until the result is moved or its memory is given away. */
void hg_hotmerge_entry(const struct hg_hotmerge *merged, unsigned i, struct hg_hotkey_entry *ret);
bool hg_hotmerge_find(const struct hg_hotmerge *merged, const struct hg_hotkey_key *key,
                      struct hg_hotkey_entry *ret);

#endif
