// jsontext - any bytes as the inside of a JSON string
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure.
#ifndef HG_PROTO_JSONTEXT_H
#define HG_PROTO_JSONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/* Writes `text` as the inside of a JSON string: quotes, backslashes and control characters
 * escaped, and each byte that is not part of valid UTF-8 replaced by U+FFFD. Stops before the first
 * character that does not fit whole into cap. Returns the length written; no zero byte at the end.
 */
size_t hg_jsontext_escape(struct hg_span text, uint8_t *out, size_t cap);

#endif
