// hello - the features that a client may ask for
// SPDX-License-Identifier: BSD-3-Clause
#include "proto/hello.h"

#include "base/bytes.h"
#include "proto/status.h"

static const struct {
    uint16_t code;
    const char *name;
} rows[HG_FEATURE_COUNT] = {
#define HG_FEATURE(name, code, printed) {code, printed},
    HG_FEATURES(HG_FEATURE)
#undef HG_FEATURE
};

static unsigned find(uint16_t code)
{
    unsigned index = 0;
    while (index < HG_FEATURE_COUNT && rows[index].code != code)
        index++;
    return index;
}

uint16_t hg_hello_decode(struct hg_span value, struct hg_hello *ret_hello, const char **ret_why)
{
    if (value.len % 2 != 0) {
        *ret_why = "Hello takes a list of features of 2 bytes each";
        return HG_STATUS_EINVAL;
    }
    struct hg_hello hello = {0};
    for (size_t i = 0; i < value.len; i += 2) {
        uint16_t code = hg_get_u16(value.at + i);
        unsigned index = find(code);
        if (index == HG_FEATURE_COUNT || (hello.features & 1u << index) != 0)
            continue;
        hello.features |= 1u << index;
        hello.granted[hello.granted_count++] = code;
    }
    *ret_hello = hello;
    return HG_STATUS_SUCCESS;
}

size_t hg_hello_encode(const struct hg_hello *hello, uint8_t out[HG_HELLO_VALUE_MAX])
{
    for (size_t i = 0; i < hello->granted_count; i++)
        hg_put_u16(out + 2 * i, hello->granted[i]);
    return 2 * (size_t)hello->granted_count;
}

const char *hg_feature_name(unsigned index)
{
    return index < HG_FEATURE_COUNT ? rows[index].name : "";
}
