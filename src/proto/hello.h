// hello - the features that a client may ask for
// SPDX-License-Identifier: BSD-3-Clause
//
// A request's value is a list of 16-bit codes; the reply's value lists those that were granted,
// in the order of the request, each once. What is not known is not granted, and is no error.
// Each HELLO starts from nothing: the result replaces what was in force. Pure.
#ifndef HG_PROTO_HELLO_H
#define HG_PROTO_HELLO_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"

/* HG_FEATURE(NAME, code on the wire, printed) */
#define HG_FEATURES(HG_FEATURE)                                                                    \
    HG_FEATURE(TCP_NODELAY, 0x03, "TcpNoDelay")                                                    \
    HG_FEATURE(XERROR, 0x07, "XERROR")                                                             \
    HG_FEATURE(SELECT_BUCKET, 0x08, "SelectBucket")                                                \
    HG_FEATURE(JSON, 0x0b, "JSON")                                                                 \
    HG_FEATURE(TRACING, 0x0f, "Tracing")                                                           \
    HG_FEATURE(ALT_REQUEST, 0x10, "AltRequest")                                                    \
    HG_FEATURE(REPORT_UNIT_USAGE, 0x1a, "ReportUnitUsage")                                         \
    HG_FEATURE(NON_BLOCKING_THROTTLING, 0x1b, "NonBlockingThrottlingMode")

enum hg_feature_index {
#define HG_FEATURE(name, code, printed) HG_FEATURE_INDEX_##name,
    HG_FEATURES(HG_FEATURE)
#undef HG_FEATURE
        HG_FEATURE_COUNT
};

/* Bits of a set of features (uint32_t). */
enum hg_feature {
#define HG_FEATURE(name, code, printed) HG_FEATURE_##name = 1 << HG_FEATURE_INDEX_##name,
    HG_FEATURES(HG_FEATURE)
#undef HG_FEATURE
};

struct hg_hello {
    uint32_t features;                  // set of enum hg_feature: what is in force from now on
    uint16_t granted[HG_FEATURE_COUNT]; // their codes, in the order of the request
    uint8_t granted_count;
};

#define HG_HELLO_VALUE_MAX (2 * HG_FEATURE_COUNT)

/* Reads the list. Returns HG_STATUS_SUCCESS, or HG_STATUS_EINVAL with a text in ret_why for a
 * list of an odd number of bytes; ret_hello is then untouched. */
uint16_t hg_hello_decode(struct hg_span value, struct hg_hello *ret_hello,
                         const char **ret_why) HG_MUST_USE;

/* Writes the granted list; returns its length in bytes. */
size_t hg_hello_encode(const struct hg_hello *hello, uint8_t out[HG_HELLO_VALUE_MAX]);

/* The printed name of feature number `index` (0 to HG_FEATURE_COUNT - 1). */
const char *hg_feature_name(unsigned index);

#endif
