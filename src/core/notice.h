// notice - when the begin and the end of a lasting thing are told
// SPDX-License-Identifier: BSD-3-Clause
//
// Each begin that is told has its end told, and begins are HG_NOTICE_APART_US apart at least: a
// thing that comes and goes is not told each time, but one that has come to stay is, at the first
// look after that time. Pure.
#ifndef HG_CORE_NOTICE_H
#define HG_CORE_NOTICE_H

#include <stdbool.h>
#include <stdint.h>

#define HG_NOTICE_APART_US 10000000

/* Zeroed: there was none yet. */
struct hg_notice {
    bool active;
    bool told;         // its begin was
    uint64_t since_us; // when it began
    uint64_t told_us;  // when a begin was last told; 0: never
};

enum hg_notice_say {
    HG_NOTICE_NOTHING,
    HG_NOTICE_BEGIN,
    HG_NOTICE_END, // it lasted since since_us
};

/* Is it `active` now? What is to be told. */
static inline enum hg_notice_say hg_notice_look(struct hg_notice *notice, bool active,
                                                uint64_t now_us)
{
    if (!active) {
        bool told = notice->told;
        notice->active = notice->told = false;
        return told ? HG_NOTICE_END : HG_NOTICE_NOTHING;
    }
    if (!notice->active)
        notice->since_us = now_us;
    notice->active = true;
    if (notice->told || (notice->told_us != 0 && now_us - notice->told_us < HG_NOTICE_APART_US))
        return HG_NOTICE_NOTHING;
    notice->told = true;
    notice->told_us = now_us;
    return HG_NOTICE_BEGIN;
}

#endif
