// codec - a protocol as a load generator needs it: requests out, checked replies in
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_LOAD_CODEC_H
#define HG_LOAD_CODEC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "load/conn.h"
#include "load/lane.h"

struct hg_load_codec {
    /* Fills lane->frame, lane->expected and lane->body_max from the tenant. */
    void (*prepare)(struct hg_load_lane *lane);

    /* Writes one request, returns its length. Room for HG_LANE_FRAME_MAX bytes and a value. */
    size_t (*compose)(const struct hg_load_lane *lane, enum hg_load_op op, uint32_t key,
                      uint32_t opaque, uint8_t *to);

    /* Checks and counts every whole reply in `len` bytes, each against the oldest request that is
     * unanswered. Returns how many bytes those were, or -1 when it cannot be told where the next
     * one begins: the connection is of no use then. */
    ssize_t (*answer)(struct hg_load_conn *conn, const uint8_t *at, size_t len, uint64_t now_ns);
};

extern const struct hg_load_codec hg_load_codec_binary;
extern const struct hg_load_codec hg_load_codec_text;
extern const struct hg_load_codec hg_load_codec_resp;

#endif
