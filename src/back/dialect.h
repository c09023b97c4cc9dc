// dialect - how one protocol of servers says requests and reads replies, for back/link
// SPDX-License-Identifier: BSD-3-Clause
//
// A link knows nothing of what it carries but this table: requests are answered one by one, in
// their order. A dialect keeps no state.
#ifndef HG_BACK_DIALECT_H
#define HG_BACK_DIALECT_H

#include <stdbool.h>
#include <stdint.h>

#include "back/store.h"
#include "base/attr.h"
#include "base/codec.h"
#include "io/out.h"

#define HG_DIALECT_HEAD_BYTES 24 /* so many bytes of a reply say how long it is */

struct hg_reply {
    uint64_t total_bytes; /* of the reply; HG_DIALECT_HEAD_BYTES while that is not known */
    uint32_t opaque;      /* must be that of the oldest request without a reply */
    uint8_t tag;          /* must be that of the same request */
    struct hg_result result;
};

struct hg_dialect {
    const char *name;
    /* Queues the request of `call` in `out`: its head in one piece, first. False, and nothing
       queued, if it cannot be said: *ret_fault says why. *ret_tag is given back with the reply. */
    bool (*encode)(struct hg_out *out, const struct hg_call *call, uint32_t opaque,
                   uint8_t *ret_tag, enum hg_fault *ret_fault);
    /* Queues a request that asks nothing but whether the server answers. */
    void (*encode_probe)(struct hg_out *out, uint32_t opaque, uint8_t *ret_tag);
    /* Changes the opaque of a request of which the first HG_DIALECT_HEAD_BYTES are at `head`. */
    void (*restamp)(uint8_t *head, uint32_t opaque);
    /* Looks at the `have` bytes at `bytes`. HG_MORE: only total_bytes is there. HG_OK: all is, the
       spans point into `bytes`; result.blob and result.server are left NULL. HG_BAD: not a reply,
       or one of more than `max_bytes`. */
    enum hg_codec (*decode)(const uint8_t *bytes, size_t have, uint32_t max_bytes,
                            struct hg_reply *ret_reply);
};

/* memcached's binary protocol. */
extern const struct hg_dialect hg_dialect_memcached;

#endif
