// liveness - have all threads shown that they live since the last ping of the watchdog?
// SPDX-License-Identifier: BSD-3-Clause
#include "app/liveness.h"

#include <string.h>

void hg_liveness_init(struct hg_liveness *liveness, const uint64_t *counts, size_t count)
{
    liveness->count = count < HG_LIVENESS_MAX ? count : HG_LIVENESS_MAX;
    memcpy(liveness->last, counts, liveness->count * sizeof counts[0]);
}

size_t hg_liveness_look(struct hg_liveness *liveness, const uint64_t *counts)
{
    for (size_t i = 0; i < liveness->count; i++)
        if (counts[i] == liveness->last[i])
            return i;
    memcpy(liveness->last, counts, liveness->count * sizeof counts[0]);
    return HG_LIVENESS_NONE;
}
