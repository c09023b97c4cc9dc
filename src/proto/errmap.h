// errmap - the JSON that tells a client what each status means (GetErrorMap)
// SPDX-License-Identifier: BSD-3-Clause
//
// Made from status.def. A client names the highest version it understands, and gets that or
// ours, whichever is lower; version 1 has no "rate-limit". Pure.
#ifndef HG_PROTO_ERRMAP_H
#define HG_PROTO_ERRMAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"

#define HG_ERRMAP_VERSION   2
#define HG_ERRMAP_REVISION  1
#define HG_ERRMAP_MAX_BYTES 8192

/* Reads a request's value. HG_STATUS_SUCCESS with the version to send; or HG_STATUS_EINVAL (not
 * 2 bytes) or HG_STATUS_KEY_ENOENT (version 0) with a text in ret_why. */
uint16_t hg_errmap_decode(struct hg_span value, unsigned *ret_version,
                          const char **ret_why) HG_MUST_USE;

/* Writes the map of version 1 or 2 into out (HG_ERRMAP_MAX_BYTES suffice); returns its length,
 * 0 if it does not fit. */
size_t hg_errmap_encode(unsigned version, char *out, size_t cap) HG_MUST_USE;

#endif
