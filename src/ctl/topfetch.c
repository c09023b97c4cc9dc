// topfetch - asks the server for what a page of top shows
// SPDX-License-Identifier: BSD-3-Clause
//
// Only the groups that a page needs are asked for: with thousands of connections that of clients is
// a large one.
#include "base/clock.h"
#include "ctl/top.h"

static bool always(enum hg_top_page page)
{
    (void)page;
    return true;
}

static bool for_keys(enum hg_top_page page)
{
    return page == HG_TOP_HOTKEYS || page == HG_TOP_PAGES;
}

static bool for_upstreams(enum hg_top_page page)
{
    return page == HG_TOP_UPSTREAMS || page == HG_TOP_PAGES;
}

static bool for_clients(enum hg_top_page page)
{
    return page == HG_TOP_CONNECTIONS || page == HG_TOP_PAGES;
}

static const struct group {
    const char *name;
    bool (*is_needed)(enum hg_top_page page);
} groups[HG_TOP_GROUPS] = {
    [HG_TOP_GENERAL] = {"", always},
    [HG_TOP_BUCKETS] = {"buckets", always},
    [HG_TOP_HOT] = {"hotkeys", for_keys},
    [HG_TOP_BINDS] = {"bindthrottle", for_keys},
    [HG_TOP_STORES] = {"upstreams", for_upstreams},
    [HG_TOP_TICKETS] = {"tickets", for_upstreams},
    [HG_TOP_CLIENTS] = {"connections", for_clients},
};

int hg_top_fetch(struct hg_ctl *ctl, enum hg_top_page page, struct hg_top_sample *sample)
{
    for (int g = 0; g < HG_TOP_GROUPS; g++) {
        struct hg_top_part *part = &sample->parts[g];
        if (!groups[g].is_needed(page))
            continue;
        int code = hg_ctl_fetch(ctl, groups[g].name, &part->rows, &part->refused);
        if (code == HG_CTL_REFUSED && part->refused != NULL)
            code = HG_CTL_OK; /* what the user may not see: the others may be seen all the same */
        if (code != HG_CTL_OK)
            return code;
        part->at_us = hg_now_us();
        part->fetched = part->refused == NULL;
        hg_top_part_index(part);
    }
    return HG_CTL_OK;
}
