// errmap - the JSON that tells a client what each status means (GetErrorMap)
// SPDX-License-Identifier: BSD-3-Clause
#include "proto/errmap.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/bytes.h"
#include "proto/status.h"

uint16_t hg_errmap_decode(struct hg_span value, unsigned *ret_version, const char **ret_why)
{
    if (value.len != 2) {
        *ret_why = "GetErrorMap takes a version of 2 bytes";
        return HG_STATUS_EINVAL;
    }
    unsigned version = hg_get_u16(value.at);
    if (version == 0) {
        *ret_why = "there is no error map of version 0: 1 and above are accepted";
        return HG_STATUS_KEY_ENOENT;
    }
    *ret_version = version < HG_ERRMAP_VERSION ? version : HG_ERRMAP_VERSION;
    return HG_STATUS_SUCCESS;
}

struct writer {
    char *out;
    size_t cap;
    size_t len; // more than cap once something did not fit
};

static void put(struct writer *w, const char *format, ...) HG_PRINTF(2, 3);

static void put(struct writer *w, const char *format, ...)
{
    if (w->len >= w->cap)
        return;
    va_list args;
    va_start(args, format);
    int len = vsnprintf(w->out + w->len, w->cap - w->len, format, args);
    va_end(args);
    w->len = len < 0 ? w->cap : w->len + (size_t)len;
}

// The names and sentences of status.def need no escaping; a test parses the result.
static void put_row(struct writer *w, const struct hg_status_row *row, unsigned version, bool first)
{
    put(w, "%s\"%x\":{\"name\":\"%s\",\"desc\":\"%s\",\"attrs\":[", first ? "" : ",", row->code,
        row->name, row->meaning);
    unsigned attributes = row->attributes;
    if (version < 2)
        attributes &= ~(unsigned)HG_STATUS_ATTR_RATE;
    const char *comma = "";
    for (unsigned bit = 0; bit < HG_STATUS_ATTR_COUNT; bit++)
        if ((attributes & 1u << bit) != 0) {
            put(w, "%s\"%s\"", comma, hg_status_attribute_name(bit));
            comma = ",";
        }
    put(w, "]}");
}

size_t hg_errmap_encode(unsigned version, char *out, size_t cap)
{
    struct writer w = {out, cap, 0};
    put(&w, "{\"version\":%u,\"revision\":%u,\"errors\":{", version, HG_ERRMAP_REVISION);
    for (size_t i = 0; i < HG_STATUS_ROWS; i++)
        put_row(&w, &hg_status_table[i], version, i == 0);
    put(&w, "}}");
    return w.len < cap ? w.len : 0;
}
