// flush - one call that becomes one call for each server, and one answer
// SPDX-License-Identifier: BSD-3-Clause
//
// The answer is success when every server said so, else that of the first server that did not.
// A client that goes away stops those parts only that still wait.
#ifndef HG_BACK_FLUSH_H
#define HG_BACK_FLUSH_H

#include "back/remote.h"

enum hg_submit hg_flush_submit(struct hg_remote *remote, struct hg_call *call);
void hg_flush_cancel(struct hg_remote *remote, struct hg_call *call);

#endif
