// lines - the answers of protocols that speak in lines, cut out and given to their requests
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_LOAD_LINES_H
#define HG_LOAD_LINES_H

#include "load/codec.h"

/* What a protocol makes of a line that ends with CR LF; `line_len` is without them. */
struct hg_load_lines {
    bool (*is_value)(const uint8_t *at, size_t line_len);
    /* A value begins with the line; there are `len` bytes. Bytes of the whole answer, 0: more are
       wanted, -1: it makes no sense. */
    ssize_t (*answer_value)(struct hg_load_lane *lane, const struct hg_load_pending *pending,
                            const uint8_t *at, size_t line_len, size_t len,
                            enum hg_load_outcome *ret_outcome);
    enum hg_load_outcome (*answer_line)(struct hg_load_lane *lane,
                                        const struct hg_load_pending *pending, const uint8_t *at,
                                        size_t line_len, uint16_t *ret_status);
};

/* As hg_load_codec's answer. */
ssize_t hg_load_lines_answer(const struct hg_load_lines *lines, struct hg_load_conn *conn,
                             const uint8_t *at, size_t len, uint64_t now_ns);

#endif
