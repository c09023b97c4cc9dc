// tableverb - the operations of the verbs table and hbase that have files of their own
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_CTL_TABLEVERB_H
#define HG_CTL_TABLEVERB_H

#include "ctl/rowcall.h"

/* Each sends the call's operation and prints what came of it. An exit code. */
HG_MUST_USE int hg_ctl_table_query(struct hg_rowcall *call);
HG_MUST_USE int hg_ctl_table_batch(struct hg_rowcall *call);
HG_MUST_USE int hg_ctl_hbase_scan(struct hg_rowcall *call);
HG_MUST_USE int hg_ctl_hbase_hybrid(struct hg_rowcall *call);

/* The Read of a get or scan: columns, versions, times, filter. An exit code. */
HG_MUST_USE int hg_ctl_hbase_read(struct hg_rowcall *call, hg_pb_read **ret);
/* Adds FAMILY or FAMILY:QUALIFIER to what is read. */
void hg_ctl_hbase_add_column(struct hg_arena *arena, hg_pb_read *read, const char *text);
/* What "FAMILY:QUALIFIER", "FAMILY" or nothing means to a delete. */
hg_pb_deletion *hg_ctl_hbase_deletion(struct hg_arena *arena, const char *text, bool newest,
                                      bool exact);

/* Lines of standard input, each a JSON object, given to `add` with its number. An exit code. */
HG_MUST_USE int hg_ctl_json_lines(int (*add)(void *user, json_t *object, const char *where),
                                  void *user);
/* A text member of such an object: NULL and said so when it is missing or no text. */
const char *hg_ctl_json_member(const json_t *object, const char *name, const char *where);

/* A list, one element a line, or as JSON if that is asked for; lets go of it. An exit code. */
HG_MUST_USE int hg_ctl_json_lines_print(const struct hg_ctl *ctl, json_t *list);

#endif
