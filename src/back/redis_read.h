// redis_read - replies of Redis (RESP2) out of a stream of bytes
// SPDX-License-Identifier: BSD-3-Clause
//
//   "$5\r\nhello\r\n"      a string, decoded in place, whatever its size: wanted in one piece
//   "+OK\r\n" ":1\r\n"     a line; "-ERR ...\r\n"
//
// Lines go through hiredis' reader, with functions of our own, so that nothing is allocated for a
// reply: the text is copied into the reader's room, and the bytes of a line may arrive one by one.
// Nothing that is asked for here has an array as its answer, so an array is garbage, as is whatever
// is no RESP2 or too long: HG_BAD. A reader that said so must not be asked again. Belongs to one
// thread.
#ifndef HG_BACK_REDIS_READ_H
#define HG_BACK_REDIS_READ_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/codec.h"
#include "base/span.h"

#define HG_REDIS_LINE_MAX 8192 /* bytes of a line; a longer one is garbage */

enum hg_redis_type {
    HG_REDIS_STRING = '$',
    HG_REDIS_NIL = 'n', /* "$-1" */
    HG_REDIS_STATUS = '+',
    HG_REDIS_ERROR = '-',
    HG_REDIS_INTEGER = ':'
};

struct hg_redis_reply {
    uint64_t total_bytes; /* HG_OK: of `bytes`, up to the reply's end. HG_MORE: the length of a
                             string's reply, if that is known, or 0 and all bytes were taken; else
                             HG_REDIS_HEAD_BYTES and none was */
    enum hg_redis_type type;
    int64_t integer;
    struct hg_span text; /* of a string, status or error; in `bytes` or the reader's, holds until
                            the next call */
};

#define HG_REDIS_HEAD_BYTES 24 /* so many bytes of a string's reply say how long it is */

struct hg_redis_reader;

/* NULL when memory is out. */
HG_MUST_USE struct hg_redis_reader *hg_redis_reader_new(void);
void hg_redis_reader_free(struct hg_redis_reader *reader);

/* Reads one reply of at most `max_bytes`. */
enum hg_codec hg_redis_read(struct hg_redis_reader *reader, const uint8_t *bytes, size_t have,
                            uint32_t max_bytes, struct hg_redis_reply *ret);

#endif
