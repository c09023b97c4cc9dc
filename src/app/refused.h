// refused - how many requests were refused at a server, by reason
// SPDX-License-Identifier: BSD-3-Clause
//
// Sums of what the tickets' holders and the server's connections count. Requests that are refused
// before their server is known (credits, hot keys, evicted keys) are their tenant's: see its
// outcomes. Any thread that may read the directory.
#ifndef HG_APP_REFUSED_H
#define HG_APP_REFUSED_H

#include <stdint.h>

#include "front/gateset.h"

enum hg_refused {
#define HG_REFUSED(NAME, printed, text) HG_REFUSED_##NAME,
#include "app/refused.def"
#undef HG_REFUSED
    HG_REFUSED_REASONS
};

struct hg_directory;
struct hg_upstream;

/* "flood", "key_share" */
const char *hg_refused_name(enum hg_refused reason);
/* All that was refused at the server of the share. */
void hg_refused_sum(const struct hg_upstream *upstream, struct hg_gateshare *share,
                    uint64_t ret[HG_REFUSED_REASONS]);

#endif
