// redis_error - what an error reply of Redis means to a client, and whether to say it again
// SPDX-License-Identifier: BSD-3-Clause
//
// The table is redis_error.def. Errors from within a script carry the script's name in front or
// behind, in the words of the server's version; they count as what the command in it answered.
// Pure.
#ifndef HG_BACK_REDIS_ERROR_H
#define HG_BACK_REDIS_ERROR_H

#include <stddef.h>
#include <stdint.h>

#include "back/dialect.h"
#include "base/span.h"

#define HG_REDIS_ERROR_TEXT 512 /* bytes; room for any text that is made here */

struct hg_redis_error {
    uint16_t status;        /* enum hg_status */
    uint8_t again;          /* enum hg_again */
    uint16_t slot;          /* MOVED, ASK */
    struct hg_span address; /* MOVED, ASK: HOST:PORT as the server said it, in its text */
    size_t text_len;
    char text[HG_REDIS_ERROR_TEXT]; /* for the client: ours, then the server's in brackets, escaped
                                       and cut; not zero-ended */
};

/* `said` is the error without the '-' in front and the line's end. A MOVED or ASK without a slot
   and an address is no request to say anything again. */
void hg_redis_error_read(struct hg_span said, struct hg_redis_error *ret);

#endif
