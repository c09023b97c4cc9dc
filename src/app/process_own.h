// process_own - what the files process*.c share with each other and with nobody else
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_APP_PROCESS_OWN_H
#define HG_APP_PROCESS_OWN_H

#include "app/process.h"

/* ---- process_ticks.c: main thread ---- */

/* One look at the credits of all buckets; also before the loop runs. */
void hg_process_tick(struct hg_process *process);
/* Makes the timers. 0 or -errno. */
HG_MUST_USE int hg_process_init_ticks(struct hg_process *process);
/* From now on slots, epochs and tickets go their ways. */
void hg_process_begin_ticks(struct hg_process *process);

/* ---- process_signals.c: main thread ---- */

HG_MUST_USE int hg_process_watch_signals(struct hg_process *process);
/* Stops accepting, lets what is in flight end within drain_timeout_s, then stops the loop. A second
   call ends the process at once, with status 1. */
void hg_process_begin_drain(struct hg_process *process);

/* ---- process_listen.c ---- */

/* Room for the connections that the settings allow, as far as the limit of open files may be
   raised; warns if it may not. */
void hg_process_raise_limit(const struct hg_conf *conf);
/* Opens all listeners; nothing is accepted yet. 0, or -errno with a message printed. */
HG_MUST_USE int hg_process_listen(struct hg_process *process);

/* ---- process_house.c ---- */

/* Starts the housekeeping thread with what runs on it. 0 or -errno. */
HG_MUST_USE int hg_process_start_house(struct hg_process *process);
/* Stops and joins it; its loop and mailbox stay, for last letters. */
void hg_process_stop_house(struct hg_process *process);

#endif
