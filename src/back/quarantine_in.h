// quarantine_in - what the parts of a quarantine, calls and connection, know of each other
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_BACK_QUARANTINE_IN_H
#define HG_BACK_QUARANTINE_IN_H

#include "back/pool_in.h"
#include "back/quarantine.h"

/* Does the next thing that is needed for a free connection of this pool's identity: a unit, a
   connect, another login. Nothing while that is under way, or a request. */
void hg_quarantine_prepare(struct hg_quarantine *quarantine, struct hg_pool *pool);
/* Time-outs; ends what is idle for long, or of no use. */
void hg_quarantine_tick_link(struct hg_quarantine *quarantine, uint64_t now_us);

extern const struct hg_link_owner hg_quarantine_link_owner;

#endif
