// workclass - what requests of one kind usually take, so that unlike ones can be added up as work
// SPDX-License-Identifier: BSD-3-Clause
#include "core/workclass.h"

#define RISE_US 100000000 /* the usual is multiplied by e in so long at most */
#define FALL    4         /* it falls by a quarter of the difference */

void hg_workclass_look(struct hg_workclass *class, uint64_t now_us)
{
    uint64_t mean_us = class->sum_us / class->count, usual_us = class->usual_us;
    uint64_t elapsed_us = now_us > class->looked_us ? now_us - class->looked_us : 0;
    if (usual_us == 0) {
        usual_us = mean_us;
    } else if (mean_us < usual_us) {
        usual_us -= (usual_us - mean_us + FALL - 1) / FALL;
    } else if (!class->waited) {
        uint64_t most_us = usual_us;
        if (elapsed_us < RISE_US)
            most_us = usual_us * elapsed_us / RISE_US + (usual_us < 100);
        usual_us = mean_us - usual_us < most_us ? mean_us : usual_us + most_us;
    }
    if (usual_us == 0)
        usual_us = 1;
    class->usual_us = usual_us < UINT32_MAX / 2 ? (uint32_t)usual_us : UINT32_MAX / 2;
    class->count = 0;
    class->sum_us = 0;
    class->waited = false;
    class->looked_us = now_us;
}
