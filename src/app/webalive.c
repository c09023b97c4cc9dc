// webalive - does the process turn? Signs of life of the main thread and of the workers
// SPDX-License-Identifier: BSD-3-Clause
#include "app/webalive.h"

void hg_webalive_look(struct hg_webalive *alive, const uint64_t *counts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        alive->still[i] = counts[i] == alive->last[i] ? alive->still[i] + 1 : 0;
        alive->last[i] = counts[i];
    }
    alive->count = count;
}

size_t hg_webalive_hung(const struct hg_webalive *alive)
{
    for (size_t i = 0; i < alive->count; i++)
        if (alive->still[i] >= HG_WEBALIVE_LOOKS)
            return i;
    return HG_WEBALIVE_NONE;
}
