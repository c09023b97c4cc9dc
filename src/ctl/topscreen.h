// topscreen - the live screen of top; for topscreen.c and topdraw.c only
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_CTL_TOPSCREEN_H
#define HG_CTL_TOPSCREEN_H

#include "ctl/top.h"

#define HG_TOP_FILTER_BYTES 64

enum { HG_TOP_STYLE_BAD = 1, HG_TOP_STYLE_NOTED };

struct hg_top_order {
    unsigned column;
    bool reverse;
};

struct hg_top_screen_state {
    struct hg_ctl *ctl;
    uint64_t interval_us, next_us;
    enum hg_top_page page;
    struct hg_top_order orders[HG_TOP_PAGES];
    struct hg_top_sample samples[2]; /* the last, and the one before */
    unsigned last;                   /* which of them is the last */
    bool has_last, has_before;
    char filter[HG_TOP_FILTER_BYTES + 1], typed[HG_TOP_FILTER_BYTES + 1];
    bool typing, frozen, helping, colours, leave;
    size_t first, shown; /* rows: scrolled by, on the screen */
    size_t count;        /* rows of the page */
    char lost[512];      /* why there is no connection; "": there is one */
};

static inline const struct hg_top_sample *hg_top_last(const struct hg_top_screen_state *screen)
{
    return &screen->samples[screen->last];
}

/* Scrolls no further than to the last row. */
void hg_top_clamp_scroll(struct hg_top_screen_state *screen);
void hg_top_draw(struct hg_top_screen_state *screen);

#endif
