// web - metrics, health, JSON and the dashboard over HTTP, on a thread of their own
// SPDX-License-Identifier: BSD-3-Clause
//
//   HTTP thread ── reads ──► counters (atomic), the directory in force (counted, under its lock)
//        │ letter
//        ▼
//   housekeeping: hot keys        worker to worker: slow log        (webask.c)
//
// Parsing, text and JSON are made on this thread alone. It samples all tenants once a second, which
// is where rates and the history come from. How much a client can make it keep is bounded: see
// webconn.c. What the paths show is in doc/api.md.
#ifndef HG_APP_WEB_H
#define HG_APP_WEB_H

#include "base/attr.h"

struct hg_process;
struct hg_web;

/* Binds the address of the configuration, or takes the socket that was handed over for it; nobody
   is answered yet. 0, or -errno with `why`. Without
   an address *ret is NULL, which all calls below take. */
HG_MUST_USE int hg_web_open(struct hg_process *process, struct hg_web **ret, char why[256]);
/* When workers and housekeeping run. 0 or -errno. */
HG_MUST_USE int hg_web_start(struct hg_web *web);
/* Ends the thread, and its connections; while workers and housekeeping still run. */
void hg_web_stop(struct hg_web *web);
/* When they do not any more: letters that were on their way have arrived. */
void hg_web_free(struct hg_web *web);

/* From any thread: a new directory is in force, the old one's records should be let go. */
void hg_web_note_directory(struct hg_web *web);

/* The listening socket, which stays ours; for a new process that takes over. */
int hg_web_fd(const struct hg_web *web);
/* From the main thread: a new process accepts on the socket from now on, this one does not. */
void hg_web_give_way(struct hg_web *web);

#endif
