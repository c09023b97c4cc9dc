// frameinfo - the objects in framing extras: what a request asks for, what a reply reports
// SPDX-License-Identifier: BSD-3-Clause
#include "proto/frameinfo.h"

#include "base/bytes.h"
#include "proto/status.h"

enum {
    REQUEST_BARRIER = 0,
    REQUEST_DURABILITY = 1,
    REQUEST_STREAM_ID = 2,
    REQUEST_IMPERSONATE = 4,
    REQUEST_PRESERVE_TTL = 5,
    REQUEST_EXTRA_PRIVILEGE = 6,

    REPLY_SERVER_TIME = 0,
    REPLY_READ_UNITS = 1,
    REPLY_WRITE_UNITS = 2,
    REPLY_THROTTLE_TIME = 3,
};

#define ESCAPE 15

struct object {
    unsigned id;
    struct hg_span data;
};

// Cuts the object off that `rest` begins with. False if it is not all there.
static bool cut_object(struct hg_span *rest, struct object *ret_object)
{
    const uint8_t *at = rest->at;
    const uint8_t *end = rest->at + rest->len;
    unsigned id = *at >> 4;
    size_t len = *at++ & 0x0f;
    if (id == ESCAPE) {
        if (at == end)
            return false;
        id += *at++;
    }
    if (len == ESCAPE) {
        if (at == end)
            return false;
        len += *at++;
    }
    if ((size_t)(end - at) < len)
        return false;
    *ret_object = (struct object){id, hg_span(at, len)};
    *rest = hg_span(at + len, (size_t)(end - at) - len);
    return true;
}

static uint16_t malformed(const char *why, const char **ret_why)
{
    *ret_why = why;
    return HG_STATUS_EINVAL;
}

static uint16_t not_supported(bool well_formed, const char *why, const char **ret_why)
{
    if (!well_formed)
        return malformed("frame info of a length that its kind does not have", ret_why);
    *ret_why = why;
    return HG_STATUS_NOT_SUPPORTED;
}

static uint16_t take_user(struct hg_span name, struct hg_frameinfo *info, const char **ret_why)
{
    if (info->impersonate)
        return malformed("frame info Impersonate (4) is accepted once", ret_why);
    if (name.len > 0 && name.at[0] == '^') {
        info->external = true;
        name = hg_span(name.at + 1, name.len - 1);
    }
    if (name.len == 0)
        return malformed("frame info Impersonate (4) takes a user name", ret_why);
    info->impersonate = true;
    info->user = name;
    return HG_STATUS_SUCCESS;
}

static uint16_t take_object(const struct object *object, struct hg_frameinfo *info,
                            const char **ret_why)
{
    size_t len = object->data.len;
    switch (object->id) {
    case REQUEST_BARRIER:
        if (len != 0)
            return malformed("frame info Barrier (0) takes no data", ret_why);
        info->barrier = true;
        return HG_STATUS_SUCCESS;
    case REQUEST_IMPERSONATE:
        return take_user(object->data, info, ret_why);
    case REQUEST_DURABILITY:
        return not_supported(len == 1 || len == 3, "frame info Durability (1) is not supported",
                             ret_why);
    case REQUEST_STREAM_ID:
        return not_supported(len == 2, "frame info DCP stream id (2) is not supported", ret_why);
    case REQUEST_PRESERVE_TTL:
        return not_supported(len == 0, "frame info PreserveTtl (5) is not supported", ret_why);
    case REQUEST_EXTRA_PRIVILEGE:
        return not_supported(len > 0, "frame info extra privilege (6) is not supported", ret_why);
    default:
        *ret_why = "unknown frame info: 0 (Barrier) and 4 (Impersonate) are accepted";
        return HG_STATUS_UNKNOWN_FRAME_INFO;
    }
}

uint16_t hg_frameinfo_decode(struct hg_span framing, struct hg_frameinfo *ret_info,
                             const char **ret_why)
{
    struct hg_frameinfo info = {0};
    while (framing.len > 0) {
        struct object object;
        if (!cut_object(&framing, &object))
            return malformed("frame info is longer than the framing extras it is in", ret_why);
        uint16_t status = take_object(&object, &info, ret_why);
        if (status != HG_STATUS_SUCCESS)
            return status;
    }
    *ret_info = info;
    return HG_STATUS_SUCCESS;
}

static uint8_t *put_object(uint8_t *at, unsigned id, uint64_t number)
{
    at[0] = (uint8_t)(id << 4 | 2);
    hg_put_u16(at + 1, number > UINT16_MAX ? UINT16_MAX : (uint16_t)number);
    return at + 3;
}

size_t hg_frameinfo_encode(const struct hg_frameinfo_usage *usage,
                           uint8_t out[HG_FRAMEINFO_USAGE_MAX])
{
    uint8_t *at = out;
    if (usage->tracing)
        at = put_object(at, REPLY_SERVER_TIME, hg_frameinfo_pack_us(usage->server_us));
    if (usage->units && usage->read_units > 0)
        at = put_object(at, REPLY_READ_UNITS, usage->read_units);
    if (usage->units && usage->write_units > 0)
        at = put_object(at, REPLY_WRITE_UNITS, usage->write_units);
    if (usage->units && usage->throttle_us > 0)
        at = put_object(at, REPLY_THROTTLE_TIME, hg_frameinfo_pack_us(usage->throttle_us));
    return (size_t)(at - out);
}

// Powers without the mathematical library, which a pure library does not link. Both series are
// cut where their next term is below the precision of a double.

#define LN2 0.69314718055994530942

// log2 of a whole number from 1 to 2^53.
static double log2_of(uint64_t x)
{
    int exponent = 63 - __builtin_clzll(x);
    double m = (double)x / (double)(UINT64_C(1) << exponent); // 1 <= m < 2
    if (m > 1.41421356237309504880) {
        m /= 2;
        exponent++;
    }
    double z = (m - 1) / (m + 1); // ln m = 2 (z + z^3/3 + z^5/5 + ...), |z| < 0.172
    double square = z * z, sum = 0;
    for (int k = 21; k >= 1; k -= 2)
        sum = sum * square + 1.0 / k;
    return exponent + 2 * z * sum / LN2;
}

// 2^y for 0 <= y < 62.
static double exp2_of(double y)
{
    unsigned whole = (unsigned)(y + 0.5);
    double x = (y - whole) * LN2; // e^x = 1 + x (1 + x/2 (1 + x/3 (...))), |x| < 0.347
    double sum = 1;
    for (int k = 16; k >= 1; k--)
        sum = 1 + x / k * sum;
    return sum * (double)(UINT64_C(1) << whole);
}

#define PACKED_POWER 1.74
#define PACKED_MAX   UINT64_C(120125042) // microseconds that are packed to 65535

uint16_t hg_frameinfo_pack_us(uint64_t us)
{
    if (us == 0)
        return 0;
    if (us >= PACKED_MAX)
        return UINT16_MAX;
    return (uint16_t)(exp2_of(log2_of(2 * us) / PACKED_POWER) + 0.5);
}

uint64_t hg_frameinfo_unpack_us(uint16_t packed)
{
    if (packed == 0)
        return 0;
    return (uint64_t)(exp2_of(log2_of(packed) * PACKED_POWER) / 2);
}
