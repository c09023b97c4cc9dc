// admin_own - what the files of admin share; for admin*.c only
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_APP_ADMIN_OWN_H
#define HG_APP_ADMIN_OWN_H

#include "app/process.h"

/* Who asks for a change, for the log. */
struct hg_author {
    const char *user;
    char from[HG_ADDR_TEXT];
};
struct hg_author hg_author_of(const struct hg_job *job);
/* A hg_conf_change_fn; ctx: the author. */
void hg_author_log(void *ctx, const struct hg_conf_change *change);

/* Why nothing is changed while process->frozen. */
extern const char hg_admin_frozen[];

/* Fails the job with all that is wrong, a line each, as far as it fits. */
void hg_admin_fail(struct hg_job *job, uint16_t status, const struct hg_conf_errors *errs);

/* reload.c: log_level and log_file of new settings; ConfigValidate and ConfigReload. */
void hg_reload_follow_log(const struct hg_conf *before, const struct hg_conf *now);
void hg_reload_validate_job(struct hg_process *process, struct hg_job *job);
void hg_reload_job(struct hg_process *process, struct hg_job *job);

/* A copy to change, or NULL: the job has failed. */
struct hg_state *hg_admin_copy_state(struct hg_process *process, struct hg_job *job);
/* Puts the changed copy in force, or fails the job; `rc` is what the setter said. Takes over
   `state`. `purge`: see hg_publish. */
void hg_admin_finish(struct hg_process *process, struct hg_job *job, struct hg_state *state, int rc,
                     const char *purge);
/* The tenant of a name, or NULL: the job has failed. */
const struct hg_conf_tenant *hg_admin_find_tenant(struct hg_process *process, struct hg_job *job,
                                                  struct hg_span name);

/* admin_param.c */
void hg_admin_set_param(struct hg_process *process, struct hg_job *job);

#endif
