// lines - the answers of protocols that speak in lines, cut out and given to their requests
// SPDX-License-Identifier: BSD-3-Clause
#include "load/lines.h"

#include <string.h>

/* A longer line is none of a memcached, nor of a Redis. */
#define LINE_MAX_BYTES 4096

ssize_t hg_load_lines_answer(const struct hg_load_lines *lines, struct hg_load_conn *conn,
                             const uint8_t *at, size_t len, uint64_t now_ns)
{
    struct hg_load_lane *lane = conn->lane;
    size_t used = 0;
    while (used < len) {
        const uint8_t *reply = at + used;
        size_t left = len - used;
        const struct hg_load_pending *pending = &conn->ring[conn->head & conn->mask];
        enum hg_load_op op = (enum hg_load_op)pending->op;
        const uint8_t *feed = memchr(reply, '\n', left < LINE_MAX_BYTES ? left : LINE_MAX_BYTES);
        if (conn->head == conn->tail || (feed == NULL && left >= LINE_MAX_BYTES) || feed == reply ||
            (feed != NULL && feed[-1] != '\r')) {
            hg_lane_wrong(lane, HG_LANE_WRONG_FRAMING, op, pending->key,
                          "a line came that is no reply, or that no request waits for");
            return -1;
        }
        if (feed == NULL) {
            break;
        }
        size_t line_len = (size_t)(feed - reply) - 1;
        ssize_t whole = (ssize_t)line_len + 2;
        uint16_t status = 0;
        enum hg_load_outcome outcome;
        hg_lane_aim(lane, pending->measured);
        if (lines->is_value(reply, line_len)) {
            whole = lines->answer_value(lane, pending, reply, line_len, left, &outcome);
            if (whole < 0) {
                return -1;
            }
            if (whole == 0) {
                break;
            }
        } else {
            outcome = lines->answer_line(lane, pending, reply, line_len, &status);
        }
        hg_lane_tell(lane, pending, outcome, hg_load_status_slot(status), now_ns);
        conn->head++;
        used += (size_t)whole;
    }
    return (ssize_t)used;
}
