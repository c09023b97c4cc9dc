// rowfilter - the options that narrow a read, as a filter
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_CTL_ROWFILTER_H
#define HG_CTL_ROWFILTER_H

#include "ctl/rowtext.h"

/* --where, --prefix and --column-prefix; NULL when there is none of them. With `cells`, conditions
   name FAMILY:QUALIFIER. An exit code. */
HG_MUST_USE int hg_rowfilter_of(struct hg_ctl *ctl, struct hg_arena *arena, bool cells,
                                hg_pb_filter **ret);

/* The first key behind all that begin with `prefix`; false: there is none, it is all 0xff. */
bool hg_rowfilter_behind(struct hg_arena *arena, ProtobufCBinaryData prefix,
                         ProtobufCBinaryData *ret);

#endif
