// stats_rows - rows that each worker shows of its own, merged into one for each thing
// SPDX-License-Identifier: BSD-3-Clause
#include "app/stats_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

static char *row_at(const struct hg_stats_rows *list, size_t i)
{
    return (char *)list->rows + i * list->row_bytes;
}

void *hg_stats_add(struct hg_stats_rows *list)
{
    void *rows = hg_grow(list->rows, &list->cap, list->count + 1, list->row_bytes);
    if (rows == NULL)
        return NULL;
    list->rows = rows;
    return row_at(list, list->count++);
}

void hg_stats_merge(struct hg_stats_rows *list, hg_stats_compare *same,
                    void (*absorb)(void *into, const void *from), hg_stats_compare *order)
{
    size_t kept = 0;
    if (list->count == 0)
        return;
    qsort(list->rows, list->count, list->row_bytes, same);
    for (size_t i = 1; i < list->count; i++) {
        if (same(row_at(list, kept), row_at(list, i)) == 0)
            absorb(row_at(list, kept), row_at(list, i));
        else if (++kept != i)
            memcpy(row_at(list, kept), row_at(list, i), list->row_bytes);
    }
    list->count = kept + 1;
    qsort(list->rows, list->count, list->row_bytes, order);
}
