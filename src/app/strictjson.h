// strictjson - JSON without its surprises, and options of the table in JSON
// SPDX-License-Identifier: BSD-3-Clause
//
// For bodies of opcodes and the state file: one object, no repeated keys, nothing behind it. Any
// thread.
#ifndef HG_APP_STRICTJSON_H
#define HG_APP_STRICTJSON_H

#include <jansson.h>

#include "app/conf_table.h"
#include "base/span.h"

/* The object, to be json_decref'ed; NULL with *why; accepts says there what is right. */
json_t *hg_strictjson_load(struct hg_span text, size_t max, const char *accepts,
                           struct hg_conf_why *why);

/* `unknown key 'x' (accepted: ...)` */
void hg_strictjson_unknown(const char *key, const char *accepts, struct hg_conf_why *why);
/* `bad value '-1' of 'key' (accepted: ...)` */
void hg_strictjson_refuse(const char *key, const json_t *value, const char *accepts,
                          struct hg_conf_why *why);

/* Sets an option's field from a value of the fitting JSON type: whole numbers, "unlimited", true
   and false, strings; of a list option, an array of objects of the elements' options, into a field
   that has none. 0, -EINVAL with *why, -ENOMEM. */
HG_MUST_USE int hg_strictjson_set(const struct hg_conf_option *option, void *object,
                                  const json_t *value, struct hg_conf_why *why);
/* The field as JSON, of a list's elements what was given; NULL when memory is out. */
json_t *hg_strictjson_get(const struct hg_conf_option *option, const void *object);

#endif
