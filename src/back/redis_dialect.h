// redis_dialect - how Redis says requests and reads replies, for back/link
// SPDX-License-Identifier: BSD-3-Clause
//
// Requests are written by redis_write, replies cut out by redis_read; here they are matched with
// what was asked, and errors given their meaning. A reply of another kind than the request can have
// is garbage. A dialect belongs to a store, whose calls keep it alive.
#ifndef HG_BACK_REDIS_DIALECT_H
#define HG_BACK_REDIS_DIALECT_H

#include "back/dialect.h"
#include "back/redis_write.h"
#include "base/attr.h"

struct hg_redis_dialect {
    struct hg_dialect base;
    struct hg_redis_style style;
};

struct hg_redis_conf {
    bool plain;               /* redis_layout = plain */
    bool ranges;              /* keep an index of each table */
    bool cluster;             /* tables with an index stay on one shard */
    uint32_t max_value_bytes; /* of a value, for appends */
};

/* 0, or -ENOSYS where the library of digests refuses SHA-1. */
HG_MUST_USE int hg_redis_dialect_init(struct hg_redis_dialect *dialect,
                                      const struct hg_redis_conf *conf);

static inline const struct hg_redis_style *hg_redis_style_of(const struct hg_dialect *dialect)
{
    return &HG_CONTAINER_OF(dialect, struct hg_redis_dialect, base)->style;
}

#endif
