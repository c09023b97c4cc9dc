// jsontext - any bytes as the inside of a JSON string
// SPDX-License-Identifier: BSD-3-Clause
#include "proto/jsontext.h"

#include <stdbool.h>
#include <string.h>

static bool is_tail(uint8_t c)
{
    return (c & 0xc0) == 0x80;
}

// The length of the UTF-8 character at `at`: 1 to 4, or 0 if there is no valid one (too long a
// form, half a surrogate pair, above U+10FFFF, cut off).
static size_t utf8_length(const uint8_t *at, size_t have)
{
    uint8_t c = at[0];
    if (c < 0x80)
        return 1;
    if (c >= 0xc2 && c <= 0xdf)
        return have >= 2 && is_tail(at[1]) ? 2 : 0;
    if (c >= 0xe0 && c <= 0xef) {
        if (have < 3 || !is_tail(at[1]) || !is_tail(at[2]))
            return 0;
        bool too_long = c == 0xe0 && at[1] < 0xa0;
        bool surrogate = c == 0xed && at[1] > 0x9f;
        return too_long || surrogate ? 0 : 3;
    }
    if (c >= 0xf0 && c <= 0xf4) {
        if (have < 4 || !is_tail(at[1]) || !is_tail(at[2]) || !is_tail(at[3]))
            return 0;
        bool too_long = c == 0xf0 && at[1] < 0x90;
        bool too_high = c == 0xf4 && at[1] > 0x8f;
        return too_long || too_high ? 0 : 4;
    }
    return 0;
}

// Writes the escape of a byte that may not stand in a string as it is; returns its length.
static size_t escape_byte(uint8_t c, uint8_t out[6])
{
    static const char hex[] = "0123456789abcdef";
    static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt"; // the byte, then its letter
    for (size_t i = 0; i + 1 < sizeof shorts; i += 2)
        if (c == (uint8_t)shorts[i]) {
            out[0] = '\\';
            out[1] = (uint8_t)shorts[i + 1];
            return 2;
        }
    memcpy(out, "\\u00", 4);
    out[4] = (uint8_t)hex[c >> 4];
    out[5] = (uint8_t)hex[c & 15];
    return 6;
}

size_t hg_jsontext_escape(struct hg_span text, uint8_t *out, size_t cap)
{
    size_t used = 0;
    for (size_t i = 0; i < text.len;) {
        uint8_t escaped[6];
        const uint8_t *from = text.at + i;
        size_t taken = utf8_length(from, text.len - i);
        size_t len = taken;
        if (taken == 0) {
            from = (const uint8_t *)"\xef\xbf\xbd"; // U+FFFD
            len = 3;
            taken = 1;
        } else if (from[0] < 0x20 || from[0] == '"' || from[0] == '\\' || from[0] == 0x7f) {
            len = escape_byte(from[0], escaped);
            from = escaped;
        }
        if (cap - used < len)
            break;
        memcpy(out + used, from, len);
        used += len;
        i += taken;
    }
    return used;
}
