// table - TableAPI and HBase requests: from their frame to their reply
// SPDX-License-Identifier: BSD-3-Clause
//
//   frame ─► operation (extras) ─► rights ─► hot key ─► body ─► credits ─► rows, or a range ─►
//   reply
//
// A request has a struct hg_table from the moment its body is decoded until its reply is encoded:
// the message, the row calls under way, what was found. It ends in exactly one of: answered
// (table_row, table_batch, table_range), refused while it waits (answer.c), client gone
// (dispatch.c); the latter two by hg_table_cancel. Worker's thread only; sessions of queries are
// shared (front/cursor.h).
#ifndef HG_FRONT_TABLE_H
#define HG_FRONT_TABLE_H

#include "front/dispatch.h"
#include "front/tables.h"

/* 0 or -ENOMEM. */
HG_MUST_USE int hg_tables_open(struct hg_worker *worker);
/* When no request is left. */
void hg_tables_close(struct hg_worker *worker);
/* Reads on in the ranges under way, a part of each; once a turn. */
void hg_tables_go_on(struct hg_worker *worker);
/* Counts rows' conflicts from 0 again. */
void hg_tables_reset(struct hg_worker *worker);
/* By the worker's timer. */
void hg_tables_tick(struct hg_worker *worker);

/* A frame of class TABLE whose shape is right. */
enum hg_step hg_table_dispatch(struct hg_session *session, const struct hg_frame *frame);
/* Its request's wait is over. */
enum hg_step hg_table_resume(struct hg_session *session, struct hg_request *request);
/* Ends what the request has under way, and frees its state. The request is the caller's to answer
   or to forget. */
void hg_table_cancel(struct hg_request *request);

#endif
