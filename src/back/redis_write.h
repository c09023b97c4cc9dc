// redis_write - what Redis is asked for a call, as RESP commands
// SPDX-License-Identifier: BSD-3-Clause
//
//   "item" layout    [flags u32][CAS u64][value], big-endian, in one string
//   "plain" layout   [value]: what Redis clients share; no flags, no CAS
//
// Single commands where one does it (GET, SET with NX or XX, DEL, GETEX, FLUSHDB), a script of
// redis_script.def where none does. Keys:
//
//   item      prefix, key; a key that begins with a zero byte gets one more of them in front
//   index     prefix, "\0i", table: names of the rows of a table, in order (with `ranges`)
//   tagged    prefix, "{", table, "}", "\0", row, and prefix, "\0i{", table, "}": on a cluster,
//   where
//             a table with an index must stay on one shard; also for classic operations on such a
//             key
//
// so an index never meets an item. Pure but for the queue written to.
#ifndef HG_BACK_REDIS_WRITE_H
#define HG_BACK_REDIS_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "back/identity.h"
#include "back/redis_script.h"
#include "back/store.h"
#include "base/attr.h"
#include "io/out.h"

#define HG_REDIS_ITEM_HEAD  12   /* bytes of an item before its value */
#define HG_REDIS_KEY_MAX    512  /* bytes of prefix and key together */
#define HG_REDIS_RANGE_ROWS 256  /* that a range call looks at in one go */
#define HG_REDIS_RANGE_MORE 1024 /* bytes of such a reply that are not rows, at most */
#define HG_REDIS_RANGE_BYTES                                                                       \
    (256 * 1024) /* it answers at most, one row excepted: Redis builds the                         \
                    reply while it serves nobody else */

/* How a store wants things said. */
struct hg_redis_style {
    bool plain;
    bool ranges; /* rows have an index */
    bool tagged; /* and tables stay on one shard */
    uint32_t max_value_bytes;
    uint32_t range_bytes; /* of rows in the reply to a range, one row excepted */
    struct hg_redis_scripts scripts;
};

/* What kind of reply a request has. */
enum hg_redis_tag {
    HG_REDIS_TAG_VALUE,    /* an item or nil */
    HG_REDIS_TAG_STORED,   /* OK */
    HG_REDIS_TAG_ADDED,    /* OK, or nil: it was there */
    HG_REDIS_TAG_REPLACED, /* OK, or nil: it was not there */
    HG_REDIS_TAG_DELETED,  /* 1, or 0: it was not there */
    HG_REDIS_TAG_CODE,     /* of a script: 0, or enum hg_redis_code */
    HG_REDIS_TAG_JOINED,   /* of a script: the value's length, or enum hg_redis_code */
    HG_REDIS_TAG_COUNTED,  /* of a script: the number as text, or enum hg_redis_code */
    HG_REDIS_TAG_TOUCHED,  /* of a script: the CAS, 8 bytes or none, or enum hg_redis_code */
    HG_REDIS_TAG_RANGE     /* of a script: rows, see redis_rows.h */
};

/* A stretch of a table that is asked for: the call is a HG_OP_TABLE_QUERY in one of these. */
struct hg_redis_range {
    struct hg_call call; /* its key is the beginning of the stretch */
    struct hg_range_call *range;
};

/* Why the layout, or Redis, cannot do this; NULL: it can. */
const char *hg_redis_refusal(const struct hg_redis_style *style, const struct hg_call *call);

/* Does the call go by a script? Then the server may ask for it again (NOSCRIPT). */
bool hg_redis_is_script(const struct hg_redis_style *style, const struct hg_call *call);

/* Does the call write, so that it needs call->place.made_cas? */
static inline bool hg_redis_makes_cas(const struct hg_call *call)
{
    return call->op >= HG_OP_SET && call->op <= HG_OP_PREPEND && call->op != HG_OP_DELETE;
}

/* Queues the request of a call that is not refused, the head in one piece and a large value by
   reference. `whole`: a script is sent itself (EVAL), not its name. False, and nothing queued: why,
   in *ret_fault. */
HG_MUST_USE bool hg_redis_write(const struct hg_redis_style *style, struct hg_out *out,
                                const struct hg_call *call, bool whole, uint8_t *ret_tag,
                                enum hg_fault *ret_fault);

/* Queues the login; how many replies follow. A rebound connection has its scripts already. */
uint32_t hg_redis_write_login(const struct hg_redis_style *style, struct hg_out *out,
                              const struct hg_identity *identity, bool rebind, bool probe);

/* Queues a command of up to HG_REDIS_KEY_MAX bytes. */
void hg_redis_write_command(struct hg_out *out, const struct hg_span *parts, uint32_t count);

/* The stored form of `prefix` and `key`, into `out` of HG_REDIS_KEY_MAX + 8 bytes; its length. */
size_t hg_redis_key(const struct hg_redis_style *style, struct hg_span prefix, struct hg_span key,
                    uint8_t *out);

#endif
