// toppage - what a page of top is made of; for toppage.c and topclient.c only
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_CTL_TOPPAGE_H
#define HG_CTL_TOPPAGE_H

#include "ctl/top.h"

enum { HG_TOP_CLIENT_COLUMNS = 11, HG_TOP_CLIENT_ORDER = 3 /* requests a second */ };
extern const struct hg_top_column hg_top_client_columns[HG_TOP_CLIENT_COLUMNS];
void hg_top_build_clients(const struct hg_top_sample *before, const struct hg_top_sample *now,
                          struct hg_top_view *view);

#endif
