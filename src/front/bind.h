// bind - evicted keys on the path of a request, worker's side
// SPDX-License-Identifier: BSD-3-Clause
//
//   hot key ─► bind throttle: an entry for (type, key)? one in X passes, the others are refused
//                ▲ entries                                    │ passes: on the quarantine
//        verdicts of housekeeping (evict.h)                   ▼ connection of its store
//
// A bind is the key of a request, a class its tenant and hot-key type. Entries are the worker's
// own, in a table of the lane; shown merged. Batches that are not atomic are judged item by item;
// ranges of several rows have no key. Worker's thread only, but for the board.
#ifndef HG_FRONT_BIND_H
#define HG_FRONT_BIND_H

#include "core/bindthrottle.h"
#include "core/hotkey.h"
#include "front/session.h"

/* The bind of a key whose bytes and hash are those of front/hot. Of a long key, or row, the first
   HG_REQUEST_KEY_HEAD bytes are kept, which is what a request keeps of it; the hash tells the rest
   apart. */
static inline struct hg_bindthrottle_key hg_bind_key(enum hg_hot_type type,
                                                     const struct hg_hotkey_key *key)
{
    size_t most = (size_t)key->table_len + HG_REQUEST_KEY_HEAD;
    return (struct hg_bindthrottle_key){(uint8_t)type, key->table_len, key->hash,
                                        hg_span(key->at, key->len < most ? key->len : most)};
}

enum hg_bind_verdict { HG_BIND_FREE, HG_BIND_PASS, HG_BIND_REFUSE };

/* An attempt for a key of the lane, which has entries. PASS: it is one in X. REFUSE: *ret_x is X.
 */
enum hg_bind_verdict hg_bind_decide(struct hg_session *session, struct hg_lane *lane,
                                    const struct hg_bindthrottle_key *key, bool exempt,
                                    uint32_t *ret_x);
/* What a client is told that is refused while one in `x` is let through: the encoded value. It
   holds until the next refusal. */
struct hg_span hg_bind_words(struct hg_worker *worker, const struct hg_lane *lane,
                             enum hg_hot_type type, uint32_t x, bool json);
/* A request that had passed was answered by its store, and still has its ticket: if the answer came
   in the usual time, X is halved, where bind_mended says so. */
void hg_bind_answered(const struct hg_gate_pass *pass, const struct hg_bindthrottle_pass *of);
/* The request had passed, and was refused later without a slot. */
void hg_bind_undo(struct hg_request *request);
/* The bind of a request that was taken in, in `room` if it has a table; false: it has none. */
HG_MUST_USE bool hg_bind_of(const struct hg_request *request, uint8_t room[HG_HOTKEY_KEY_MAX],
                            struct hg_bindthrottle_key *ret);

/* Has it one key, of at least so many bytes? */
bool hg_bind_has_key(const struct hg_request *request, unsigned least);

/* An entry of an evicted key, of which so many were evicted, and the oldest was held_us old. */
void hg_bind_make(struct hg_worker *worker, struct hg_lane *lane,
                  const struct hg_bindthrottle_key *key, uint64_t evicted, uint64_t held_us);

/* ---- for the worker ---- */

HG_MUST_USE int hg_binds_open(struct hg_worker *worker);
void hg_binds_close(struct hg_worker *worker);
/* When nobody reads the board any more. */
void hg_binds_free(struct hg_worker *worker);
/* Every 100 ms: time works on the entries; tables without any go, and those of deleted buckets. */
void hg_binds_sweep(struct hg_worker *worker);

#endif
