// frameinfo - the objects in framing extras: what a request asks for, what a reply reports
// SPDX-License-Identifier: BSD-3-Clause
//
// An object is one byte, id in the high and length in the low nibble (15 = 15 plus the next byte,
// for the id first), then its data. Pure.
#ifndef HG_PROTO_FRAMEINFO_H
#define HG_PROTO_FRAMEINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"

struct hg_frameinfo {
    bool barrier;        // accepted: replies leave in order anyway
    bool impersonate;    // run as `user`
    bool external;       // the name began with ^ (which is not part of `user`)
    struct hg_span user; // in the frame's bytes
};

/* Reads the framing extras of a request. HG_STATUS_SUCCESS, or the status to refuse it with
 * (0x04 malformed, 0x80 unknown, 0x83 known but not supported) and a static text in ret_why;
 * ret_info is written only on success. Empty framing extras are an empty ret_info. */
uint16_t hg_frameinfo_decode(struct hg_span framing, struct hg_frameinfo *ret_info,
                             const char **ret_why) HG_MUST_USE;

/* What a reply reports. Units and throttle time are left out where they are 0. */
struct hg_frameinfo_usage {
    uint64_t server_us;   // reported if `tracing`
    uint64_t throttle_us; // 0 = was not held
    uint64_t read_units;
    uint64_t write_units;
    bool tracing; // HELLO Tracing is in force
    bool units;   // HELLO ReportUnitUsage is in force
};

#define HG_FRAMEINFO_USAGE_MAX 12

/* Writes the objects into out; returns their length, 0 if there is nothing to report (then the
 * reply has the plain magic). Units above 65535 are reported as 65535. */
size_t hg_frameinfo_encode(const struct hg_frameinfo_usage *usage,
                           uint8_t out[HG_FRAMEINFO_USAGE_MAX]);

/* Microseconds to 16 bits and back: (2 us)^(1/1.74), rounded, at most 65535 (two minutes). */
uint16_t hg_frameinfo_pack_us(uint64_t us);
uint64_t hg_frameinfo_unpack_us(uint16_t packed);

#endif
