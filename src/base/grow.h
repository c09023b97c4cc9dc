// grow - arrays that grow by doubling
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_BASE_GROW_H
#define HG_BASE_GROW_H

#include <stdlib.h>

#include "base/attr.h"

#define HG_GROW_FIRST 16 /* rows of the first one */

/* The array with room for `count` rows, at least one; it may have moved, and *cap is what it has
   room for. NULL: memory is out, and the array is as it was. */
HG_MUST_USE static inline void *hg_grow(void *rows, size_t *cap, size_t count, size_t row_bytes)
{
    if (rows != NULL && count <= *cap)
        return rows;
    size_t room = *cap > 0 ? *cap : HG_GROW_FIRST;
    while (room < count)
        room *= 2;
    void *more = reallocarray(rows, room, row_bytes);
    if (more != NULL)
        *cap = room;
    return more;
}

#endif
