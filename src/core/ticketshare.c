// ticketshare - how a number of tickets that several servers have together is divided among them
// SPDX-License-Identifier: BSD-3-Clause
#include "core/ticketshare.h"

#include <stdbool.h>

/* Gives all that want at most an equal part of what is left what they want; how many still want
   more. `left` is what they may have. */
static size_t fill(const uint64_t *want, size_t n, uint64_t *left, size_t open, uint64_t *ret)
{
    bool more = true;
    while (more && open > 0) {
        uint64_t part = *left / open;
        more = false;
        for (size_t i = 0; i < n; i++) {
            if (ret[i] != 0 || want[i] == 0 || want[i] > part)
                continue;
            ret[i] = want[i];
            *left -= want[i];
            open--;
            more = true;
        }
    }
    return open;
}

void hg_ticketshare_cap(const uint64_t *want, size_t n, uint64_t total, uint64_t *ret)
{
    size_t open = 0;
    uint64_t left = total;
    for (size_t i = 0; i < n; i++) {
        ret[i] = 0;
        open += want[i] > 0;
    }
    open = fill(want, n, &left, open, ret);
    for (size_t i = 0; i < n && open > 0; i++) {
        if (ret[i] != 0 || want[i] == 0)
            continue;
        uint64_t part = left / open + (left % open != 0);
        ret[i] = part > 0 ? part : 1;
        left -= ret[i] < left ? ret[i] : left;
        open--;
    }
}

void hg_ticketshare_split(const uint64_t *demand, size_t n, uint64_t total, uint64_t *ret)
{
    uint64_t left = total;
    hg_ticketshare_cap(demand, n, total, ret);
    for (size_t i = 0; i < n && total == 0; i++)
        ret[i] = 0; /* nobody is let in */
    for (size_t i = 0; i < n; i++)
        left -= ret[i] < left ? ret[i] : left;
    for (size_t i = 0; i < n; i++) {
        uint64_t part = left / (n - i);
        ret[i] += part;
        left -= part;
        if (ret[i] == 0 && total > 0)
            ret[i] = 1;
    }
}
