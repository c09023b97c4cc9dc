// rights - what the user of a job may do to a bucket, or to the node
// SPDX-License-Identifier: BSD-3-Clause
//
// Administration and statistics speak of buckets that need not be the one selected, so the
// privileges that count are those in the bucket spoken of. Privileges of the node are those that a
// user has without a bucket, or in every one ("*"). What DropPrivilege took away is gone
// everywhere.
#ifndef HG_APP_RIGHTS_H
#define HG_APP_RIGHTS_H

#include "app/process.h"

/* Bits of HG_PRIVILEGE_BIT. */
uint32_t hg_rights_in(const struct hg_job *job, struct hg_span bucket);
uint32_t hg_rights_of_node(const struct hg_job *job);

static inline bool hg_rights_have(uint32_t rights, enum hg_privilege privilege)
{
    return (rights & HG_PRIVILEGE_BIT(privilege)) != 0;
}

/* May the job be carried out at all? If not, it has failed with 0x24. */
HG_MUST_USE bool hg_rights_check(struct hg_job *job, uint32_t rights, enum hg_privilege needed);

#endif
