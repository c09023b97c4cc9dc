// rowcall - one TableAPI or HBase request and its reply
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_CTL_ROWCALL_H
#define HG_CTL_ROWCALL_H

#include "base/op.h"
#include "ctl/rowtext.h"

/* What the command line asks for: "table get users alice". */
struct hg_rowcall {
    struct hg_ctl *ctl;
    enum hg_api api;
    enum hg_op op;
    char verb[40];     /* "table get" */
    const char *table; /* as typed */
    const char *row;   /* as typed; NULL: the operation has none */
    struct hg_arena arena;
    ProtobufCBinaryData table_bytes, row_bytes;
    char **args; /* behind the row */
    int arg_count;
    unsigned affected; /* of the last reply */
};

/* Finds the operation, table and row of the command line. An exit code; fini in any case. */
HG_MUST_USE int hg_rowcall_init(struct hg_rowcall *call, struct hg_ctl *ctl, enum hg_api api);
void hg_rowcall_fini(struct hg_rowcall *call);

/* Sends `request` as operation `op` (a session's request has another than the call's), decodes the
   reply's body: *ret is the hg_pb_table_reply or hg_pb_hbase_reply of the call's API, in the arena.
   An exit code. */
HG_MUST_USE int hg_rowcall_send(struct hg_rowcall *call, enum hg_op op,
                                const ProtobufCMessage *request, void *ret);
/* Connects, then sends it as the call's own operation. An exit code. */
HG_MUST_USE int hg_rowcall_ask(struct hg_rowcall *call, const ProtobufCMessage *request, void *ret);

#endif
