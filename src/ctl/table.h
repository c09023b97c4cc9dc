// table - text in aligned columns
// SPDX-License-Identifier: BSD-3-Clause
//
// Cells are copied and escaped, so that no name from the network can move the cursor. A column in
// which every cell below the heading is a number (or "unlimited" or "-") is aligned to the right.
#ifndef HG_CTL_TABLE_H
#define HG_CTL_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct hg_ctl_table {
    unsigned columns;
    char **cells;
    size_t count, room;
    size_t headings; /* cells of the first line; 0: there is none */
};

/* `heading`: the columns' names, or NULL for none. */
void hg_ctl_table_init(struct hg_ctl_table *table, unsigned columns, const char *const *heading);
void hg_ctl_table_fini(struct hg_ctl_table *table);

/* The next cell, row by row. */
void hg_ctl_table_add(struct hg_ctl_table *table, const char *text);
/* Text that its sender has escaped with backslashes: they stay as they are. */
void hg_ctl_table_add_shown(struct hg_ctl_table *table, const char *text);
void hg_ctl_table_add_bytes(struct hg_ctl_table *table, const char *text, size_t len);

/* Text with everything but printable ASCII, and the backslash, as \xNN; malloc'd. */
char *hg_ctl_escape(const char *text, size_t len);

void hg_ctl_table_print(const struct hg_ctl_table *table, FILE *to);

#endif
