// throttling - one thing that is throttled: when its begin and its end are told, and what it cost
// SPDX-License-Identifier: BSD-3-Clause
#include "core/throttling.h"

uint64_t hg_throttling_count(struct hg_throttling *t, unsigned worker, uint64_t number,
                             uint64_t count)
{
    uint64_t before = t->sources[worker].number == number ? t->sources[worker].count : 0;
    uint64_t fresh = count > before ? count - before : 0;
    t->sources[worker].number = number;
    t->sources[worker].count = count;
    t->refused += fresh;
    return fresh;
}

static void settle(struct hg_throttling *t, const struct hg_throttling_rule *rule, bool active,
                   bool at_once, uint64_t now_us)
{
    if (active && !t->is_active)
        t->active_us = now_us;
    t->is_active = active;
    if (active)
        t->seen_us = now_us;
    if (active && !t->is_settled && (at_once || now_us - t->active_us >= rule->rise_us)) {
        t->is_settled = true;
        t->begun_us = t->active_us;
    }
    if (!active && t->is_settled && now_us - t->seen_us >= rule->fall_us)
        t->is_settled = false;
}

struct hg_throttling_told hg_throttling_look(struct hg_throttling *t,
                                             const struct hg_throttling_rule *rule, bool active,
                                             bool at_once, uint64_t now_us)
{
    settle(t, rule, active, at_once, now_us);
    enum hg_notice_say say = hg_notice_look(&t->notice, t->is_settled, now_us);
    struct hg_throttling_told told = {.begin = say == HG_NOTICE_BEGIN, .end = say == HG_NOTICE_END};
    if (say == HG_NOTICE_NOTHING && !t->is_settled && !t->is_active && t->refused > 0 &&
        hg_notice_look(&t->notice, true, now_us) == HG_NOTICE_BEGIN) {
        (void)hg_notice_look(&t->notice, false, now_us);
        told.begin = told.end = true;
    } else if (!t->is_settled) {
        t->notice.active = false;
    }
    if (!told.end)
        return told;
    told.lasted_us = t->seen_us > t->begun_us ? t->seen_us - t->begun_us : 0;
    told.refused = t->refused;
    t->refused = 0;
    return told;
}

bool hg_throttling_is_over(const struct hg_throttling *t, uint64_t now_us)
{
    return !t->is_active && !t->is_settled && !t->notice.told && t->refused == 0 &&
           (t->notice.told_us == 0 || now_us - t->notice.told_us >= HG_NOTICE_APART_US);
}
