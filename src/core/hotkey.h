// hotkey - which keys come most often: a space-saving sketch of bounded size
// SPDX-License-Identifier: BSD-3-Clause
//
// Source: Metwally, Agrawal, El Abbadi, "Efficient Computation of Frequent and Top-k Elements in
// Data Streams" (ICDT 2005), with their stream summary: counters of equal count hang on one bucket,
// buckets are sorted by count, so that an update is O(1). Of m counters, when all are in use a new
// key takes over the one with the smallest count and inherits that count as its error. Hence, with
// N the number of updates:
//   true count in [count - error, count];  error <= N / m;  every key with more than N / m is
//   there; a key that is not there has at most hg_hotkey_min.
//
// A key is (table length, bytes): the table's name, then the row key; length 0 for classic keys.
// Keys of up to 40 bytes lie in their counter, longer ones in a room that the caller gives when the
// first one comes. Memory is the caller's, one block that may be moved by nobody; hashes are seeded
// by the caller, the same for all sketches that are merged. Pure; one thread at a time.
#ifndef HG_CORE_HOTKEY_H
#define HG_CORE_HOTKEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"

#define HG_HOTKEY_INLINE_BYTES 40
#define HG_HOTKEY_KEY_MAX      250
#define HG_HOTKEY_COUNTERS_MIN 16
#define HG_HOTKEY_COUNTERS_MAX 8192

struct hg_hotkey; /* the sketch; its layout is in hotkey.c */

struct hg_hotkey_key {
    const uint8_t *at;
    uint32_t hash; /* of bytes and table length, seeded */
    uint8_t len;   /* at most HG_HOTKEY_KEY_MAX */
    uint8_t table_len;
};

struct hg_hotkey_entry {
    struct hg_hotkey_key key; /* bytes hold until the sketch is changed */
    uint64_t count, error;
};

/* Bytes of a sketch with that many counters, and of the room for its long keys. */
size_t hg_hotkey_bytes(unsigned counters);
size_t hg_hotkey_room_bytes(unsigned counters);

/* An empty sketch in `memory` (aligned for any type, hg_hotkey_bytes long). */
struct hg_hotkey *hg_hotkey_init(void *memory, unsigned counters);
/* Empties it; a room stays. Costs nothing that grows with what was in it but one memset. */
void hg_hotkey_clear(struct hg_hotkey *sketch);
/* Gives room for long keys (hg_hotkey_room_bytes), once; hg_hotkey_room hands it back, or NULL. */
void hg_hotkey_give_room(struct hg_hotkey *sketch, void *room);
void *hg_hotkey_room(const struct hg_hotkey *sketch);

/* A hint that a key of this hash will be told soon: what is then touched is fetched meanwhile. */
void hg_hotkey_expect(const struct hg_hotkey *sketch, uint32_t hash);

/* Counts the key `n` times more, n >= 1. False: it is a long one and there is no room: give room
   and tell again, or leave it. */
bool hg_hotkey_tell(struct hg_hotkey *sketch, const struct hg_hotkey_key *key, uint64_t n);

unsigned hg_hotkey_counters(const struct hg_hotkey *sketch); /* m */
unsigned hg_hotkey_used(const struct hg_hotkey *sketch);     /* in use */
uint64_t hg_hotkey_total(const struct hg_hotkey *sketch);    /* N */
/* The smallest count when all counters are in use, else 0. */
uint64_t hg_hotkey_min(const struct hg_hotkey *sketch);
/* Entry 0 <= i < hg_hotkey_used, in no order. */
void hg_hotkey_entry(const struct hg_hotkey *sketch, unsigned i, struct hg_hotkey_entry *ret);
/* False when the key is not there. */
bool hg_hotkey_find(const struct hg_hotkey *sketch, const struct hg_hotkey_key *key,
                    struct hg_hotkey_entry *ret);

#endif
