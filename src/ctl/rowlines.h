// rowlines - operations on many rows as JSON lines: read from standard input, results printed
// SPDX-License-Identifier: BSD-3-Clause
//
// What table batch and hbase hybrid have in common. `where` names a line in messages: "line 3".
#ifndef HG_CTL_ROWLINES_H
#define HG_CTL_ROWLINES_H

#include "ctl/rowcall.h"

/* Takes over what the object of one line says. An exit code. */
typedef int (*hg_rowlines_add_fn)(void *user, json_t *object, const char *where);

/* Gives `add` every line of standard input that is not blank: there is one at least, and the
   command line has nothing behind the table. An exit code. */
HG_MUST_USE int hg_rowlines_read(const struct hg_rowcall *call, hg_rowlines_add_fn add, void *user);
/* A text member of such an object: NULL and said so when it is missing or no text. */
const char *hg_rowlines_member(const json_t *object, const char *name, const char *where);

/* An item's result, to which the caller adds what was found: {"status", "message", "affected"}; the
   message is there if the status is not 0. */
json_t *hg_rowlines_result(uint32_t status, ProtobufCBinaryData message, uint32_t affected);
/* Prints the results, one a line as in the input, or as one list if JSON is asked for; lets go of
   them. An exit code: HG_CTL_REFUSED if an item was refused. */
HG_MUST_USE int hg_rowlines_print(const struct hg_rowcall *call, json_t *results);

#endif
