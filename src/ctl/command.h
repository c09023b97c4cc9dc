// command - requests that change something: obeyed, or refused with a message
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_CTL_COMMAND_H
#define HG_CTL_COMMAND_H

#include "ctl/ctl.h"

#define HG_CTL_BUCKET_NAME_MAX 100

/* Sends, and says what the server said if it did not obey. An exit code. */
HG_MUST_USE int hg_ctl_command(struct hg_ctl *ctl, const struct hg_ctl_request *request,
                               const char *what);
/* The same for a bucket, whose name becomes the key: "VERB bucket 'NAME': ...". */
HG_MUST_USE int hg_ctl_command_on_bucket(struct hg_ctl *ctl, struct hg_ctl_request *request,
                                         const char *verb, const char *bucket);
/* A command whose value is JSON, which it lets go of; bucket NULL: no key, and `verb` is all of the
   message. */
HG_MUST_USE int hg_ctl_command_json(struct hg_ctl *ctl, uint8_t opcode, const char *verb,
                                    const char *bucket, json_t *json);

/* Whether the verb's first argument is this word. */
bool hg_ctl_is_of(const struct hg_ctl *ctl, const char *word);
/* "NAME=VALUE", cut at the first =; false when there is none, or no name. */
HG_MUST_USE bool hg_ctl_cut(char *arg, char **ret_name, char **ret_value);
/* The bucket's name behind "bucket"; NULL, and said so, when there is none. */
const char *hg_ctl_bucket_name(const struct hg_ctl *ctl, const char *verb);

#endif
