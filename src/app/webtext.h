// webtext - text that grows: numbers, JSON and Prometheus' format, made without printf
// SPDX-License-Identifier: BSD-3-Clause
//
// When memory is out the text is marked as failed, and everything that is added after is dropped:
// look once, at the end. One thread at a time.
//
// JSON: commas come by themselves. A value or a key that does not follow an opening bracket or a
// key gets one in front:
//
//     hg_json_open(text, '{'); hg_json_key(text, "a"); hg_json_uint(text, 1); hg_json_close(text,
//     '}')
#ifndef HG_APP_WEBTEXT_H
#define HG_APP_WEBTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"

struct hg_webtext {
    char *at;
    size_t len, cap;
    bool failed;
};

/* An empty text takes no memory. */
void hg_webtext_init(struct hg_webtext *text);
void hg_webtext_fini(struct hg_webtext *text);
/* The bytes are the caller's to free; the text is empty again. NULL when it had failed or is empty.
 */
HG_MUST_USE char *hg_webtext_take(struct hg_webtext *text, size_t *ret_len);

void hg_webtext_add(struct hg_webtext *text, const char *bytes, size_t len);
void hg_webtext_str(struct hg_webtext *text, const char *string);
void hg_webtext_uint(struct hg_webtext *text, uint64_t value);
void hg_webtext_int(struct hg_webtext *text, int64_t value);
/* value / 10^decimals, exactly; `decimals` 0 to 9. */
void hg_webtext_fixed(struct hg_webtext *text, uint64_t value, unsigned decimals);

/* A label's value, without its quotes: backslash, quote and newline escaped, bytes that are no
   printable ASCII as \xNN (with the backslash escaped). */
void hg_webtext_label(struct hg_webtext *text, const char *value);

/* ---- JSON ---- */

void hg_json_open(struct hg_webtext *text, char bracket);
void hg_json_close(struct hg_webtext *text, char bracket);
void hg_json_key(struct hg_webtext *text, const char *key);
/* Any bytes: what is not printable ASCII, quote and backslash come as \xNN. */
void hg_json_bytes(struct hg_webtext *text, struct hg_span bytes);
void hg_json_string(struct hg_webtext *text, const char *string);
void hg_json_uint(struct hg_webtext *text, uint64_t value);
void hg_json_int(struct hg_webtext *text, int64_t value);
void hg_json_fixed(struct hg_webtext *text, uint64_t value, unsigned decimals);
void hg_json_bool(struct hg_webtext *text, bool value);
void hg_json_null(struct hg_webtext *text);
/* Units: null for HG_UNITS_UNLIMITED. */
void hg_json_units(struct hg_webtext *text, uint64_t value);

#endif
