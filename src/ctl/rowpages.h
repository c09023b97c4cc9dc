// rowpages - rows of a range, page by page through a session of their own
// SPDX-License-Identifier: BSD-3-Clause
//
// What table query and hbase scan have in common. Rows are printed when the last has come, since
// columns are aligned.
#ifndef HG_CTL_ROWPAGES_H
#define HG_CTL_ROWPAGES_H

#include "ctl/rowcall.h"
#include "ctl/table.h"

struct hg_rowpages {
    struct hg_ctl_table table; /* as hg_rowshow_init makes it, with rows */
    json_t *list;              /* the same rows, for --json */
    uint64_t session;          /* of the last page */
    bool more;                 /* there is a page behind it */
};

/* Adds the rows of a reply of the call's API to table and list, and sets session and more. */
typedef void (*hg_rowpages_add_fn)(struct hg_rowpages *pages, const void *reply);

/* Connects, starts with `request`, goes on until there is no more (the server ends the session
   then) and prints. An exit code; nothing is printed after an error. */
HG_MUST_USE int hg_rowpages_run(struct hg_rowcall *call, const ProtobufCMessage *request,
                                hg_rowpages_add_fn add);

#endif
