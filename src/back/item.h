// item - what memcached does to one item, as a pure function
// SPDX-License-Identifier: BSD-3-Clause
//
//   (stored item or none, what is asked, now) -> (keep | store | touch | remove, status, answer)
//
// The semantics are those of memcached 1.6.18's binary protocol, found by asking it; a test puts
// the same random operations to both. Where it differs, it says so here:
//   - an append beyond the item limit answers E2BIG, where memcached says NOT_STORED;
//   - a delayed flush acts at its second, where memcached's acts one second early, and a later
//     flush never makes visible again what an earlier one hid.
// A store asks hg_item_alive first and passes NULL for what is dead. Pure: no clock, no allocation;
// spans of an outcome point into the old item, the question, or the outcome itself.
#ifndef HG_BACK_ITEM_H
#define HG_BACK_ITEM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/op.h"
#include "base/span.h"

#define HG_ITEM_RELATIVE_MAX_S (60u * 60 * 24 * 30) /* longer expiry times are absolute */
#define HG_ITEM_NO_CREATE      0xffffffffu          /* expiry of a counter that must exist */
#define HG_ITEM_DIGITS         20                   /* of the largest counter */

struct hg_item {
    uint32_t flags;
    uint64_t cas;
    uint64_t expiry_s; /* wall clock; 0: never */
    struct hg_span value;
};

struct hg_item_ask {
    enum hg_op op;   /* any but FLUSH */
    uint32_t flags;  /* set, add, replace */
    uint32_t expiry; /* as on the wire */
    uint64_t cas;    /* 0: any */
    uint64_t delta, initial;
    struct hg_span value;
};

enum hg_item_act {
    HG_ITEM_KEEP,   /* nothing changes */
    HG_ITEM_STORE,  /* outcome.item replaces what is there, with the new CAS */
    HG_ITEM_TOUCH,  /* outcome.item is the old one with another expiry */
    HG_ITEM_REMOVE, /* what is there goes away */
};

struct hg_item_outcome {
    enum hg_item_act act;
    uint16_t status;     /* enum hg_status */
    struct hg_item item; /* what is stored, or what get and gat found */
    struct hg_span tail; /* the stored value is item.value, then tail, then `pad` spaces */
    uint32_t pad;
    uint64_t counter; /* increment, decrement: the new value */
    char digits[HG_ITEM_DIGITS + 1];
};

/* What a flush made of a key space: items whose CAS is at most `cas` are gone, and from at_s on all
   that were stored before it (at_s 0: no flush is due later). */
struct hg_item_flush {
    uint64_t cas;
    uint64_t at_s;
};

/* Expiry of the wire to wall-clock seconds: 0 is never, up to 30 days is from now, more is a time
   since 1970. All values are unsigned, as in memcached's binary protocol. */
static inline uint64_t hg_item_expiry(uint32_t expiry, uint64_t now_s)
{
    return expiry == 0 || expiry > HG_ITEM_RELATIVE_MAX_S ? expiry : now_s + expiry;
}

static inline bool hg_item_alive(const struct hg_item *item, uint64_t now_s,
                                 struct hg_item_flush flush)
{
    return (item->expiry_s == 0 || now_s < item->expiry_s) && item->cas > flush.cas &&
           (flush.at_s == 0 || now_s < flush.at_s);
}

/* Decides `ask` on `old` (NULL: there is none, or it is dead). `new_cas` becomes the item's when
   the act is HG_ITEM_STORE. */
void hg_item_decide(const struct hg_item *old, const struct hg_item_ask *ask, uint64_t now_s,
                    uint32_t max_value_bytes, uint64_t new_cas, struct hg_item_outcome *ret);

/* Bytes of the value that an outcome stores. */
static inline size_t hg_item_outcome_bytes(const struct hg_item_outcome *outcome)
{
    return outcome->item.value.len + outcome->tail.len + outcome->pad;
}

/* Writes that value to `at`, which has room for hg_item_outcome_bytes. */
void hg_item_outcome_copy(const struct hg_item_outcome *outcome, uint8_t *at);

/* A flush with the delay of the wire; `last_cas` is the newest CAS in use. It replaces one that is
   still to come. */
struct hg_item_flush hg_item_flush_plan(struct hg_item_flush flush, uint32_t delay, uint64_t now_s,
                                        uint64_t last_cas);

/* Turns a flush whose time has come into one by CAS; must run before the first write of that
   second. True if there was one. */
bool hg_item_flush_due(struct hg_item_flush *flush, uint64_t now_s, uint64_t last_cas);

#endif
