// flood - tenants that flood a line: what is counted of them, and what others see
// SPDX-License-Identifier: BSD-3-Clause
//
// Which tenant floods is decided by core/ticketline_admit. Worker's thread only.
#ifndef HG_FRONT_FLOOD_H
#define HG_FRONT_FLOOD_H

#include "front/gate.h"

/* A request of the tenant was refused while it flooded the line. */
void hg_flood_count(struct hg_flood_count *count, uint64_t now_us);

/* ---- for the worker ---- */

HG_MUST_USE int hg_floods_open(struct hg_worker *worker);
/* When nobody reads the board any more. */
void hg_floods_free(struct hg_worker *worker);
/* Every 100 ms: the board. */
void hg_floods_look(struct hg_worker *worker);

#endif
