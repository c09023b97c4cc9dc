// local - errors of a connect that are this host's, not the server's
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure.
#ifndef HG_BACK_LOCAL_H
#define HG_BACK_LOCAL_H

#include <stdbool.h>

/* Does -errno say that this host lacks something: descriptors, ports, memory, a permission? */
bool hg_local_is(int error);
/* Advice to the operator on how to resolve the error. */
const char *hg_local_advice(int error);

#endif
