// embedded_check - is a file a sound embedded store? Asked before LMDB maps it
// SPDX-License-Identifier: BSD-3-Clause
//
// LMDB trusts its files: a truncated one ends the process with SIGBUS, a garbled one with anything.
// So a file is judged first, by reading alone. The quick look costs nothing: magic, version, page
// size, and that the file is as long as it says it is. The full one walks both trees, and compares
// every page, node, count and the order of keys, and reads the store's own notes and the heads of
// all records; values themselves carry no checksum.
//
// A file may be shorter than it says by pages at its end that are free and were never written. So
// a quick look that finds a short file walks it in full.
#ifndef HG_BACK_EMBEDDED_CHECK_H
#define HG_BACK_EMBEDDED_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct hg_embedded_found {
    uint32_t format; /* version of the store's format */
    uint64_t tenants, items, item_bytes;
    uint64_t used_bytes; /* as the quota counts */
    uint64_t cas;        /* no item has a higher one */
};

/* A full look at the file behind `fd`, which is named `path` in messages. 0 and what it holds; or
   -EINVAL, when it is no sound store of a format that this program reads, or another -errno, and
   then `error` says what is wrong. */
HG_MUST_USE int hg_embedded_check(int fd, const char *path, struct hg_embedded_found *ret,
                                  char *error, size_t error_bytes);
/* The quick one. An empty file is fine: it becomes a new store. */
HG_MUST_USE int hg_embedded_check_quickly(int fd, const char *path, char *error,
                                          size_t error_bytes);

#endif
