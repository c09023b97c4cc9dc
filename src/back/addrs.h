// addrs - the addresses that one name stands for
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_BACK_ADDRS_H
#define HG_BACK_ADDRS_H

#include <stdint.h>

#include "io/sock.h"

#define HG_ADDRS_MAX 8

struct hg_addrs {
    struct hg_addr list[HG_ADDRS_MAX];
    uint32_t count;
    uint32_t start; /* which one is tried first; the others follow in turn */
};

#endif
