// stagehooks - the process's side of a stage: users, jobs, upstreams
// SPDX-License-Identifier: BSD-3-Clause
#ifndef STAGEHOOKS_H
#define STAGEHOOKS_H

#include "stage.h"

/* Sets the stage's hooks and upstreams. */
void stage_set_hooks(struct stage *stage);

#endif
