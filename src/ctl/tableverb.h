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

#endif
