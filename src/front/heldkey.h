// heldkey - keys that are held at their share of a server's tickets: what others see
// SPDX-License-Identifier: BSD-3-Clause
//
// All keys of which some wait, or were refused, are on the worker's board. Housekeeping tells when
// it begins that a dear key is held, and when that is over (app/throttles).
#ifndef HG_FRONT_HELDKEY_H
#define HG_FRONT_HELDKEY_H

#include "front/gate.h"

/* A record of core/keyshare, and whose it is. */
struct hg_heldkey {
    struct hg_keyshare_key record;
    char bucket[HG_BUCKET_NAME_MAX + 1];
    bool is_observed;
    uint64_t bound_us; /* when it was last held; 0: never */
    uint8_t key_len;
    uint8_t key[HG_REQUEST_KEY_HEAD];
};

static inline struct hg_heldkey *hg_heldkey_of(struct hg_keyshare_key *record)
{
    return HG_CONTAINER_OF(record, struct hg_heldkey, record);
}

/* Whose it is, once for each record; of a long key the first HG_REQUEST_KEY_HEAD bytes are kept. */
void hg_heldkey_name(struct hg_heldkey *held, const struct hg_bucket *bucket, struct hg_span key,
                     bool is_observed);

/* ---- for the worker ---- */

HG_MUST_USE int hg_heldkeys_open(struct hg_worker *worker);
/* When nobody reads the board any more. */
void hg_heldkeys_free(struct hg_worker *worker);
/* Every 100 ms: the board. */
void hg_heldkeys_look(struct hg_worker *worker);

#endif
