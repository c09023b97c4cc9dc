// topview - rows of a page: their order, which are shown, how wide their columns are
// SPDX-License-Identifier: BSD-3-Clause
//
// Knows no terminal. Cells are copied and escaped: whatever a client has put in a name, a cell is
// printable ASCII.
#ifndef HG_CTL_TOPVIEW_H
#define HG_CTL_TOPVIEW_H

#include <stdbool.h>
#include <stddef.h>

#define HG_TOP_COLUMNS_MAX 14
#define HG_TOP_GAP         1 /* columns of the terminal between two columns */

struct hg_top_column {
    const char *heading, *name; /* on the screen, in JSON */
    bool is_number;             /* to the right, largest first */
    unsigned min;               /* a text may be cut to so much; 0: never */
    unsigned rank;              /* the larger, the sooner it is left out where the line is short */
};

struct hg_top_cell {
    char *text;
    double number; /* NAN: unknown, or a text */
};

enum hg_top_mark { HG_TOP_PLAIN, HG_TOP_NOTED, HG_TOP_BAD };

struct hg_top_line {
    struct hg_top_cell cells[HG_TOP_COLUMNS_MAX];
    enum hg_top_mark mark;
};

struct hg_top_view {
    const struct hg_top_column *columns;
    unsigned column_count;
    struct hg_top_line *lines;
    size_t count, room;
};

void hg_top_view_init(struct hg_top_view *view, const struct hg_top_column *columns,
                      unsigned column_count);
void hg_top_view_fini(struct hg_top_view *view);

/* A line whose cells are to be set, each once; holds until the next is added. */
struct hg_top_line *hg_top_view_add(struct hg_top_view *view);
void hg_top_set(struct hg_top_line *line, unsigned column, const char *text);
/* Text that its sender has escaped: backslashes stay as they are. */
void hg_top_set_shown(struct hg_top_line *line, unsigned column, const char *text);
void hg_top_set_number(struct hg_top_line *line, unsigned column, double number);
/* Any text that is sorted as this number. */
void hg_top_set_as(struct hg_top_line *line, unsigned column, const char *text, double number);

/* By a column; numbers from the largest down, texts upwards, the other way round if `reverse`; what
   is unknown comes last. Equal ones stay in order of the first column. */
void hg_top_view_sort(struct hg_top_view *view, unsigned column, bool reverse);
/* Keeps lines in which a cell contains the text, whatever its case; "": all. */
void hg_top_view_filter(struct hg_top_view *view, const char *text);
/* How wide each column is on a line of `width`; 0: it is left out. That of `keep`, and the first,
   are never. */
void hg_top_view_fit(const struct hg_top_view *view, unsigned width, unsigned keep,
                     unsigned ret[HG_TOP_COLUMNS_MAX]);
/* One line, or with line NULL the headings, as text of at most `size` - 1. */
void hg_top_view_print(const struct hg_top_view *view, const struct hg_top_line *line,
                       const unsigned widths[HG_TOP_COLUMNS_MAX], char *ret, size_t size);

#endif
