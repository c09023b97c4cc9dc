// serverslow - is a server slow, compared with its siblings or with what it usually takes?
// SPDX-License-Identifier: BSD-3-Clause
#include "core/serverslow.h"

#define USUAL_RISE 0.01 /* a second */

static void learn(struct hg_serverslow *s, uint64_t elapsed_us)
{
    double usual = (double)s->usual_us, p50 = (double)s->p50_us;
    if (s->p50_us == 0)
        return;
    double most = usual + usual * USUAL_RISE * (double)elapsed_us / 1e6 + 1;
    if (s->usual_us == 0)
        s->usual_us = s->p50_us;
    else if (p50 < usual)
        s->usual_us = (uint64_t)(usual - (usual - p50) / 4);
    else
        s->usual_us = (uint64_t)(p50 < most ? p50 : most);
}

/* Is it beyond factor / by times the other, and a part of 5 ms more? */
static bool is_beyond(const struct hg_serverslow *s, unsigned factor, unsigned by)
{
    return s->against_us > 0 && s->p50_us * by >= s->against_us * factor &&
           s->p50_us >= s->against_us + HG_SERVERSLOW_MORE_US / by;
}

void hg_serverslow_look(struct hg_serverslow *s, uint64_t p50_us, uint64_t siblings_us,
                        unsigned factor, uint64_t now_us)
{
    uint64_t elapsed_us = s->looked_us != 0 ? now_us - s->looked_us : 0;
    s->looked_us = now_us;
    s->p50_us = p50_us;
    s->against_us = siblings_us > 0 ? siblings_us : s->usual_us;
    bool over = factor > 0 && is_beyond(s, factor, 1);
    bool calm = factor == 0 || !is_beyond(s, factor, 2);
    s->over_us = over ? s->over_us + elapsed_us : 0;
    s->calm_us = calm ? s->calm_us + elapsed_us : 0;
    if (s->over_us >= HG_SERVERSLOW_RISE_US)
        s->is_slow = true;
    if (s->calm_us >= HG_SERVERSLOW_FALL_US || factor == 0)
        s->is_slow = false;
    learn(s, elapsed_us);
}

double hg_serverslow_factor(const struct hg_serverslow *s)
{
    return s->against_us > 0 ? (double)s->p50_us / (double)s->against_us : 0;
}

uint64_t hg_serverslow_median_of_others(const uint64_t *sorted, size_t count, uint64_t own)
{
    size_t at = 0;
    if (count < 2)
        return 0;
    while (at < count - 1 && sorted[at] < own)
        at++;
    size_t middle = (count - 2) / 2; /* of the others, the lower one of two */
    return sorted[middle < at ? middle : middle + 1];
}
