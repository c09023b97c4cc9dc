// rights - what the user of a job may do to a bucket, or to the node
// SPDX-License-Identifier: BSD-3-Clause
#include "app/rights.h"

#include "proto/status.h"

uint32_t hg_rights_in(const struct hg_job *job, struct hg_span bucket)
{
    return hg_users_privileges(hg_users_of(job->directory), job->user, bucket) & ~job->dropped;
}

uint32_t hg_rights_of_node(const struct hg_job *job)
{
    return hg_rights_in(job, HG_SPAN_NONE) | hg_rights_in(job, HG_SPAN_LIT("*"));
}

bool hg_rights_check(struct hg_job *job, uint32_t rights, enum hg_privilege needed)
{
    if (hg_rights_have(rights, needed))
        return true;
    hg_job_fail(job, HG_STATUS_EACCESS, "the privilege %s is needed for this",
                hg_privilege_name(needed));
    return false;
}
