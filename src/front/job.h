// job - requests that the process answers: parking a session and taking it up again
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_FRONT_JOB_H
#define HG_FRONT_JOB_H

#include "front/dispatch.h"

/* Copies what the frame carries, parks the session and hands the job to the process. */
enum hg_step hg_job_start(struct hg_session *session, const struct hg_frame *frame);

#endif
