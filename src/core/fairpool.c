// fairpool - max-min fair shares of the free pool, by water-filling
// SPDX-License-Identifier: BSD-3-Clause
//
// See fairpool.h. The level is the highest whole number at which the shares still fit under the
// cap; what is left then is less than one unit for each that could still rise.
#include "core/fairpool.h"

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t hg_fair_cap(uint64_t pool, uint32_t slice)
{
    uint64_t parts = slice + 1 < HG_FAIR_SLICES ? slice + 1 : HG_FAIR_SLICES;
    return pool / HG_FAIR_SLICES * parts + pool % HG_FAIR_SLICES * parts / HG_FAIR_SLICES;
}

/* The share at a level, in the first filling (up to what is wanted) or the second (on top of it).
 */
static uint64_t share_at(const struct hg_fair *claim, uint64_t level, int on_top)
{
    uint64_t share = smaller(claim->want, claim->most);
    if (on_top)
        share = smaller(add(larger(share, claim->taken), level), claim->most);
    else if (level != HG_FAIR_INFINITE)
        share = smaller(share, level > claim->debt ? level - claim->debt : 0);
    return larger(share, claim->taken);
}

static uint64_t sum_at(const struct hg_fair *claims, size_t n, uint64_t level, int on_top)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum = add(sum, share_at(&claims[i], level, on_top));
    return sum;
}

/* The highest level whose shares fit; 0 if none does. */
static uint64_t level_for(const struct hg_fair *claims, size_t n, uint64_t cap, int on_top)
{
    uint64_t low = 0, high = cap;
    for (size_t i = 0; i < n; i++)
        high = larger(high, add(cap, claims[i].debt));
    while (low < high) {
        uint64_t middle = high - (high - low) / 2;
        if (sum_at(claims, n, middle, on_top) <= cap)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

uint64_t hg_fair_fill(struct hg_fair *claims, size_t n, uint64_t cap, uint64_t turn)
{
    int on_top = sum_at(claims, n, HG_FAIR_INFINITE, 0) <= cap;
    uint64_t level = level_for(claims, n, cap, on_top);
    uint64_t sum = sum_at(claims, n, level, on_top);
    uint64_t left = sum < cap ? cap - sum : 0;

    for (size_t i = 0; i < n; i++) {
        struct hg_fair *claim = &claims[(turn + i) % n];
        claim->share = share_at(claim, level, on_top);
        if (left > 0 && share_at(claim, level + 1, on_top) > claim->share) {
            claim->share++;
            left--;
        }
    }
    return on_top ? HG_FAIR_INFINITE : level;
}
