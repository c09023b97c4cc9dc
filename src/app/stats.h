// stats - the groups of `stat`, as far as they have files of their own
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_APP_STATS_H
#define HG_APP_STATS_H

#include "app/process.h"

/* May the job see rows of this bucket? Its own, or with Stats in it. */
bool hg_stats_may_see(const struct hg_job *job, const struct hg_bucket *bucket);

/* Fails the job that names a bucket which there is not (NULL), or which it may not see; who may see
   none but his own is not told which there are. */
void hg_stats_refuse_bucket(struct hg_job *job, const struct hg_bucket *bucket);

/* stats_hotkeys.c */
void hg_stats_hotkeys(struct hg_process *process, struct hg_job *job);
void hg_stats_hotkey_engine(struct hg_process *process, struct hg_job *job);

/* stats_bucket.c */
void hg_stats_buckets(struct hg_process *process, struct hg_job *job);
void hg_stats_bucket_details(struct hg_process *process, struct hg_job *job);
void hg_stats_throttle(struct hg_process *process, struct hg_job *job);

/* stats_tickets.c, stats_binds.c */
void hg_stats_tickets(struct hg_process *process, struct hg_job *job);
void hg_stats_binds(struct hg_process *process, struct hg_job *job);
/* A part of that: keys that are held at their share of tickets. */
void hg_stats_heldkeys(struct hg_process *process, struct hg_job *job);

/* stats_events.c */
void hg_stats_events(struct hg_process *process, struct hg_job *job);

/* stats_round.c: these send the job round the workers, and it answers itself */
void hg_stats_connections(struct hg_process *process, struct hg_job *job);
void hg_stats_slow(struct hg_process *process, struct hg_job *job);
void hg_stats_reset(struct hg_process *process, struct hg_job *job);

/* For hg_conf_list: adds a row to the job in ctx. */
void hg_stats_setting(void *ctx, const char *path, const char *value);

#endif
