// hot - hot keys on the path of a request, worker's side
// SPDX-License-Identifier: BSD-3-Clause
//
// A lane has a sketch for each hot-key type, set up when the type is first counted in an epoch, and
// the list of its throttled keys. At the end of an epoch the worker hands its lanes' sketches and
// lists over to housekeeping (app/hotkeys) and starts with empty ones; cleared memory comes back
// for reuse. Worker's thread only, but for hg_hot_end_epoch.
#ifndef HG_FRONT_HOT_H
#define HG_FRONT_HOT_H

#include "core/hotkey.h"
#include "front/bucket.h"
#include "front/worker.h"

/* What a request, or an item of a batch, touches. The hash is made by hg_hot_key. The bytes lie in
   `row` when there is no table, else in `room`; of more than HG_HOTKEY_KEY_MAX the first ones are
   kept, and the hash is that of all. */
struct hg_hotkey_key hg_hot_key(const struct hg_worker *worker, struct hg_span table,
                                struct hg_span row, uint8_t room[HG_HOTKEY_KEY_MAX]);

/* The same for a key without a table whose hash is known: that of hg_call.key_hash. */
static inline struct hg_hotkey_key hg_hot_plain_key(struct hg_span key, uint32_t hash)
{
    return (struct hg_hotkey_key){key.at, hash, (uint8_t)key.len, 0};
}

/* Is a request for this key to be refused now? Counts the refusal; *ret_percent: the key's share.
   `exempt` (Unthrottled) requests and observe mode are never refused. */
bool hg_hot_refuses_listed(struct hg_worker *worker, struct hg_lane *lane,
                           const struct hg_hotkey_key *key, bool exempt, unsigned *ret_percent);

static inline bool hg_hot_refuses(struct hg_worker *worker, struct hg_lane *lane,
                                  const struct hg_hotkey_key *key, bool exempt,
                                  unsigned *ret_percent)
{
    return HG_UNLIKELY(lane->hot_list != NULL) &&
           hg_hot_refuses_listed(worker, lane, key, exempt, ret_percent);
}

/* A hint that the key will be told soon. */
static inline void hg_hot_expect(const struct hg_lane *lane, enum hg_hot_type type, uint32_t hash)
{
    const struct hg_hotshare *share = lane->hot;
    if (share == NULL || share->keys[type] == NULL || share->keys[HG_HOT_ALL] == NULL)
        return;
    hg_hotkey_expect(share->keys[HG_HOT_ALL], hash);
    hg_hotkey_expect(share->keys[type], hash);
}

/* An admitted operation has been handed to a store: counts it under its type and under ALL. */
void hg_hot_count(struct hg_worker *worker, struct hg_lane *lane, enum hg_hot_type type,
                  const struct hg_hotkey_key *key);

static inline void hg_hot_tell(struct hg_worker *worker, struct hg_lane *lane,
                               enum hg_hot_type type, const struct hg_hotkey_key *key)
{
    if (atomic_load_explicit(&lane->bucket->hotkey_tracking, memory_order_relaxed))
        hg_hot_count(worker, lane, type, key);
}

/* A refusal's words: text and JSON members for the error context. */
struct hg_hot_words {
    char text[256];
    char members[320];
};
void hg_hot_explain(const struct hg_worker *worker, const struct hg_lane *lane,
                    enum hg_hot_type type, unsigned percent, struct hg_hot_words *ret);

/* The same, encoded as the value of a refusal's reply. It holds until the next refusal. */
struct hg_span hg_hot_words(struct hg_worker *worker, const struct hg_lane *lane,
                            enum hg_hot_type type, unsigned percent, bool json);

/* ---- for the worker and the process ---- */

void hg_hot_open(struct hg_worker *worker);
void hg_hot_close(struct hg_worker *worker);

/* Buckets may have been deleted: lets go of those, and of what was counted for them. */
void hg_hot_adopt(struct hg_worker *worker);

/* From the main thread: the epoch of this number has ended, hand over. */
void hg_hot_end_epoch(struct hg_worker *worker, uint64_t epoch);
/* A parcel back to its worker. Called by hg_mailbox as the parcel's `deliver`. */
void hg_hot_on_parcel(struct hg_letter *letter, void *receiver);

#endif
