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
/* Stops accepting and lets what is in flight end within drain_timeout_s, then stops the loop. For
   half of that time connections go on until their client waits for nothing; from then on nothing
   more is carried out. A second call does nothing. */
void hg_process_begin_drain(struct hg_process *process);

/* ---- process_spawn.c: main thread ---- */

/* Starts the program again, as it was started, to take over from this process. */
void hg_process_spawn(struct hg_process *process);

/* ---- process_watch.c: main thread ---- */

/* Pings the service manager's watchdog, if it has one for this process, as long as all threads show
   life. 0 or -errno. */
HG_MUST_USE int hg_process_begin_watch(struct hg_process *process);

/* ---- process_listen.c ---- */

/* Room for the connections that the settings allow, as far as the limit of open files may be
   raised; warns if it may not. */
void hg_process_raise_limit(const struct hg_conf *conf);
/* Opens all listeners, or takes them out of process->inherit; nothing is accepted yet. 0, or -errno
   with a message printed. */
HG_MUST_USE int hg_process_listen(struct hg_process *process);
/* What nobody wanted in process->inherit: of a parent an error, of a predecessor closed. After all
   who listen. 0, or -EINVAL with a message printed. */
HG_MUST_USE int hg_process_refuse_inherited(struct hg_process *process);

/* ---- process_house.c ---- */

/* Starts the housekeeping thread with what runs on it. 0 or -errno. */
HG_MUST_USE int hg_process_start_house(struct hg_process *process);
/* Stops and joins it; its loop and mailbox stay, for last letters. */
void hg_process_stop_house(struct hg_process *process);

#endif
