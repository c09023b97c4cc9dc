// bindevent - the words of bind eviction and of the bind throttle, for the log
// SPDX-License-Identifier: BSD-3-Clause
//
// clang-format off
//   BIND_EVICT     shop/QUERY 1 pid=<slot>&k=key&v=29001111
//   BIND_THROTTLE  shop/QUERY 1 k=key&v=29001111&allowEveryX=67&allowFrac=0.01493&raddr=127.0.0.1:37676
//   bind throttle incr class:shop/QUERY bindName:key val:29001111 prev:25
//   bind throttle decr class:shop/QUERY bindName:key val:29001111 allowEveryX:2065-2
// clang-format on
//
// The same fields and names as in Hera's log; the class is tenant/type, k the table or `key`, v the
// row or the key. Names and values are escaped: all but printable ASCII, and space, quote,
// backslash and `&`, is written \xNN, so that no client can forge a field or a line.
//
// Each writes into the caller's buffer, cut to fit and zero-ended, and returns the bytes without
// the zero. HG_BINDEVENT_BYTES are enough for the longest key that a throttle keeps, with names of
// up to 250 bytes. Pure.
#ifndef HG_CORE_BINDEVENT_H
#define HG_CORE_BINDEVENT_H

#include "core/bindthrottle.h"

#define HG_BINDEVENT_BYTES   2304
#define HG_BINDEVENT_NO_SLOT UINT64_MAX /* it was waiting for one: pid=- */

struct hg_bindevent_key {
    const char *tenant;
    struct hg_bindthrottle_key key;
};

/* One request was evicted; `slot` is any number of its slot. Of one that has no key (no bytes, and
   no table) k and v are `-`. */
size_t hg_bindevent_evict(char *out, size_t out_bytes, const struct hg_bindevent_key *of,
                          uint64_t slot);
/* One was let through while 1 in x is; `raddr`: the client's address. */
size_t hg_bindevent_throttle(char *out, size_t out_bytes, const struct hg_bindevent_key *of,
                             uint32_t x, const char *raddr);
/* X has grown from `prev`. */
size_t hg_bindevent_incr(char *out, size_t out_bytes, const struct hg_bindevent_key *of,
                         uint32_t prev);
/* X has fallen from `prev` by `step`. */
size_t hg_bindevent_decr(char *out, size_t out_bytes, const struct hg_bindevent_key *of,
                         uint32_t prev, uint32_t step);

/* Of a request that was let through: what that did to X. At the cap it is an increment too. */
size_t hg_bindevent_passed(char *out, size_t out_bytes, const struct hg_bindevent_key *of,
                           const struct hg_bindthrottle_told *told);
/* Of any attempt, before that: what time did to X, when there was none for a second. 0: nothing is
   to be told. */
size_t hg_bindevent_waned(char *out, size_t out_bytes, const struct hg_bindevent_key *of,
                          const struct hg_bindthrottle_told *told);

#endif
