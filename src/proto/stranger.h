// stranger - whose protocol it is that begins with a byte which is no magic of ours
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_PROTO_STRANGER_H
#define HG_PROTO_STRANGER_H

#include <stdint.h>

enum hg_stranger {
    HG_STRANGER_OTHER,
    HG_STRANGER_TEXT, // memcached's text protocol, HTTP, a person at a terminal
    HG_STRANGER_TLS,
    HG_STRANGER_RESP, // Redis
    HG_STRANGER_COUNT,
};

/* One byte decides, so that it does not matter how many have arrived. */
enum hg_stranger hg_stranger_of(uint8_t first_byte);

/* "other", "text", "tls", "resp". */
const char *hg_stranger_name(enum hg_stranger stranger);

#endif
