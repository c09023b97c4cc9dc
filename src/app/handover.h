// handover - giving the listening sockets to a new process, or getting them from the old one
// SPDX-License-Identifier: BSD-3-Clause
//
// The talk is in handover_wire.h. The old side lives on the main thread's loop; the new side runs
// while the process is set up and blocks, each step with a bound.
#ifndef HG_APP_HANDOVER_H
#define HG_APP_HANDOVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "app/handover_wire.h"
#include "app/inherit.h"

struct hg_process;
struct hg_conf;
struct hg_handover;

/* ---- the old side: handover.c ---- */

/* What is left to do about a hand-over when the process has been torn down. */
struct hg_handover_rest {
    int fd; /* to the new process; -1: there is none, or it has gone */
    pid_t peer;
    bool owes_sockets; /* `inherit` has them: go on unless the new process says DONE */
    struct hg_inherit inherit;
};

/* Listens on the hand-over socket, in place of whoever did. Only warns when it cannot: then nobody
   can take over. After the threads have been started. */
void hg_handover_open(struct hg_process *process);
/* Once the loop has ended. What is under way is in *ret. */
void hg_handover_close(struct hg_process *process, struct hg_handover_rest *ret);
/* The stores are closed: tells the new process and waits for its DONE. True: it serves. False: it
   does not, and rest->inherit has the sockets. */
bool hg_handover_finish(struct hg_handover_rest *rest);
/* Does it drain because another process takes its place? */
bool hg_handover_gives_way(const struct hg_process *process);
/* Has another process been given the sockets, which may go on with them or not? */
bool hg_handover_shares(const struct hg_process *process);
/* The process has been told to end: it does not go on if the new one fails. */
void hg_handover_forbid_return(struct hg_process *process);

/* The path of the hand-over socket in `ret`. False: there is none. */
HG_MUST_USE bool hg_handover_path(const struct hg_conf *conf, char *ret, size_t size);

/* ---- the new side: takeover.c ---- */

struct hg_takeover {
    int fd; /* to the old process; -1: nobody to take over from */
    pid_t peer;
    bool embedded; /* the old one has embedded stores */
    bool released; /* and has closed them */
    uint32_t drain_ms;
};

/* Asks the process on the hand-over socket for its sockets. 0, also when nobody is there
   (takeover->fd is -1 then); or -errno with a message printed. */
HG_MUST_USE int hg_takeover_begin(struct hg_takeover *takeover, const struct hg_conf *conf,
                                  struct hg_inherit *inherit);
/* Has the old one close its stores. 0, or -errno with a message printed. */
HG_MUST_USE int hg_takeover_release(struct hg_takeover *takeover);
/* This process accepts: the old one may go. 0, or -ECANCELED: it has given the hand-over up and
   goes on, so this one may not. */
HG_MUST_USE int hg_takeover_done(struct hg_takeover *takeover);
/* This process cannot: the old one goes on. */
void hg_takeover_cancel(struct hg_takeover *takeover);

#endif
