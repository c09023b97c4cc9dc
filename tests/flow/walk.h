// walk - reads a range over the rows of table "t" to its end, page by page
// SPDX-License-Identifier: BSD-3-Clause
#ifndef WALK_H
#define WALK_H

#include "rig.h"

enum { WALK_ITEMS = 120, WALK_NAME = 8 };

struct walk {
    struct hg_range_call range;
    struct hg_store *store;
    char bounds[2][32];
    char names[WALK_ITEMS][WALK_NAME]; /* without the table */
    char values[WALK_ITEMS][16];       /* their beginnings */
    int items, done;
    int stop_after; /* items; 0: never */
    struct hg_range_end end;
    char last[32];
    size_t last_len;
    char text[256];
};

/* From a row to a row (NULL: to the table's end), in pages of at most `most` rows. */
void walk_init(struct walk *walk, struct hg_store *store, struct hg_span prefix, const char *from,
               const char *to, bool reverse, uint32_t most);
/* Reads one page. */
void walk_page(struct walk *walk, struct bench *bench);
/* On behind the last key, until there is no more. The number of pages. */
int walk_all(struct walk *walk, struct bench *bench);

#endif
