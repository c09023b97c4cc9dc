// adminjson - the JSON bodies of administration opcodes, decoded without mercy
// SPDX-License-Identifier: BSD-3-Clause
//
// One JSON object, no repeated or unknown key, whole numbers that are not negative, nothing behind
// it, within a size limit. A refusal is a sentence that names the key and what is accepted: the
// body of the 0x04 reply. Any thread.
#ifndef HG_APP_ADMINJSON_H
#define HG_APP_ADMINJSON_H

#include "app/conf.h"
#include "app/state.h"
#include "base/attr.h"
#include "base/span.h"

#define HG_ADMINJSON_THROTTLE_MAX 1024u  /* bytes of a body of 2a and 2c */
#define HG_ADMINJSON_BUCKET_MAX   16384u /* of 85 */
#define HG_ADMINJSON_WHY_MAX      512u

/* What is wrong, as text with a zero byte. */
struct hg_adminjson_why {
    char text[HG_ADMINJSON_WHY_MAX];
};

/* Opcode 2a. 0, or -EINVAL with *why set. reserved > hard_limit is refused here if both are given,
   and by hg_state_apply where a default is involved. */
HG_MUST_USE int hg_adminjson_decode_throttle(struct hg_span body, struct hg_state_throttle *ret,
                                             struct hg_adminjson_why *why);
/* Opcode 2c. */
HG_MUST_USE int hg_adminjson_decode_node(struct hg_span body, struct hg_state_node *ret,
                                         struct hg_adminjson_why *why);
/* Opcode 85, with the bucket's name from the key. An empty body means all defaults. 0, -EINVAL with
 **why, -ENOMEM. ret is for hg_state_create_bucket and is freed by hg_adminjson_free_bucket. */
HG_MUST_USE int hg_adminjson_decode_bucket(struct hg_span name, struct hg_span body,
                                           struct hg_conf_tenant **ret,
                                           struct hg_adminjson_why *why);
/* The same of what was stored of such a bucket, which may be longer. */
HG_MUST_USE int hg_adminjson_decode_created(struct hg_span name, struct hg_span body,
                                            struct hg_conf_tenant **ret,
                                            struct hg_adminjson_why *why);
void hg_adminjson_free_bucket(struct hg_conf_tenant *settings);
/* Opcode 2b: 0 or 0x35-0x38. */
HG_MUST_USE int hg_adminjson_check_data_limit(uint16_t status, struct hg_adminjson_why *why);
/* 1-100 of [A-Za-z0-9._%-]. */
HG_MUST_USE int hg_adminjson_check_name(struct hg_span name, struct hg_adminjson_why *why);

#endif
