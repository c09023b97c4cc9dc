// stranger - whose protocol it is that begins with a byte which is no magic of ours
// SPDX-License-Identifier: BSD-3-Clause
#include "proto/stranger.h"

#include <string.h>

#define TLS_HANDSHAKE 0x16

enum hg_stranger hg_stranger_of(uint8_t first_byte)
{
    uint8_t lower = first_byte | 0x20;
    if (first_byte == TLS_HANDSHAKE)
        return HG_STRANGER_TLS;
    if (first_byte != 0 && strchr("*$+-:", first_byte))
        return HG_STRANGER_RESP;
    if ((lower >= 'a' && lower <= 'z') || (first_byte != 0 && strchr("\r\n ", first_byte)))
        return HG_STRANGER_TEXT;
    return HG_STRANGER_OTHER;
}

const char *hg_stranger_name(enum hg_stranger stranger)
{
    static const char *const names[HG_STRANGER_COUNT] = {"other", "text", "tls", "resp"};
    return stranger < HG_STRANGER_COUNT ? names[stranger] : "other";
}
