// heldkey - keys that are held at their share of a server's tickets: what the log and others see
// SPDX-License-Identifier: BSD-3-Clause
//
// A key that is dear, and whose requests wait for its share or are refused, is told of when that
// begins and when it is over (core/notice). All keys of which some wait, or were refused, are on
// the worker's board.
#ifndef HG_FRONT_HELDKEY_H
#define HG_FRONT_HELDKEY_H

#include "core/notice.h"
#include "front/gate.h"

/* A record of core/keyshare, and whose it is. */
struct hg_heldkey {
    struct hg_keyshare_key record;
    struct hg_notice notice;
    char bucket[HG_BUCKET_NAME_MAX + 1];
    bool is_observed;
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
/* The record goes: what was told to have begun is over. */
void hg_heldkey_end(const struct hg_gate_line *in, struct hg_heldkey *held);

/* ---- for the worker ---- */

HG_MUST_USE int hg_heldkeys_open(struct hg_worker *worker);
/* When nobody reads the board any more. */
void hg_heldkeys_free(struct hg_worker *worker);
/* Every 100 ms: lines for the log, and the board. */
void hg_heldkeys_look(struct hg_worker *worker);

#endif
