// topview - rows of a page: their order, which are shown, how wide their columns are
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/topview.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/table.h"
#include "ctl/top.h"

void hg_top_view_init(struct hg_top_view *view, const struct hg_top_column *columns,
                      unsigned column_count)
{
    *view = (struct hg_top_view){.columns = columns, .column_count = column_count};
}

static void line_fini(struct hg_top_line *line, unsigned columns)
{
    for (unsigned c = 0; c < columns; c++)
        free(line->cells[c].text);
}

void hg_top_view_fini(struct hg_top_view *view)
{
    for (size_t i = 0; i < view->count; i++)
        line_fini(&view->lines[i], view->column_count);
    free(view->lines);
    view->lines = NULL;
    view->count = view->room = 0;
}

struct hg_top_line *hg_top_view_add(struct hg_top_view *view)
{
    if (view->count == view->room) {
        view->room = view->room > 0 ? view->room * 2 : 32;
        view->lines = reallocarray(view->lines, view->room, sizeof *view->lines);
        if (view->lines == NULL)
            abort();
    }
    struct hg_top_line *line = &view->lines[view->count++];
    *line = (struct hg_top_line){.mark = HG_TOP_PLAIN};
    for (unsigned c = 0; c < view->column_count; c++)
        line->cells[c].number = NAN;
    return line;
}

/* ---- cells ---- */

void hg_top_set(struct hg_top_line *line, unsigned column, const char *text)
{
    line->cells[column].text = hg_ctl_escape(text, strlen(text));
}

void hg_top_set_shown(struct hg_top_line *line, unsigned column, const char *text)
{
    char *copy = strdup(text);
    if (copy == NULL)
        abort();
    for (char *at = copy; *at != '\0'; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    line->cells[column].text = copy;
}

void hg_top_set_number(struct hg_top_line *line, unsigned column, double number)
{
    char text[16];
    hg_top_format(number, text);
    hg_top_set_as(line, column, text, number);
}

void hg_top_set_as(struct hg_top_line *line, unsigned column, const char *text, double number)
{
    hg_top_set(line, column, text);
    line->cells[column].number = number;
}

/* ---- order ---- */

struct order {
    const struct hg_top_view *view;
    unsigned column;
    bool reverse;
};

static int compare_numbers(double a, double b)
{
    return (a < b) - (a > b);
}

static int compare_by(const struct hg_top_view *view, unsigned column, bool reverse,
                      const struct hg_top_line *a, const struct hg_top_line *b)
{
    const struct hg_top_cell *left = &a->cells[column], *right = &b->cells[column];
    int order;
    if (!view->columns[column].is_number) {
        order = strcmp(left->text, right->text);
    } else if (isnan(left->number) || isnan(right->number)) {
        return isnan(left->number) - isnan(right->number);
    } else {
        order = compare_numbers(left->number, right->number);
    }
    return reverse ? -order : order;
}

static int compare(const void *left, const void *right, void *ctx)
{
    const struct order *order = ctx;
    int result = compare_by(order->view, order->column, order->reverse, left, right);
    for (unsigned c = 0; result == 0 && c < order->view->column_count; c++)
        result = compare_by(order->view, c, false, left, right);
    return result;
}

void hg_top_view_sort(struct hg_top_view *view, unsigned column, bool reverse)
{
    struct order order = {view, column, reverse};
    if (view->count > 1)
        qsort_r(view->lines, view->count, sizeof *view->lines, compare, &order);
}

/* ---- filter ---- */

static bool contains(const struct hg_top_view *view, const struct hg_top_line *line,
                     const char *text)
{
    for (unsigned c = 0; c < view->column_count; c++)
        if (strcasestr(line->cells[c].text, text) != NULL)
            return true;
    return false;
}

void hg_top_view_filter(struct hg_top_view *view, const char *text)
{
    size_t kept = 0;
    for (size_t i = 0; text[0] != '\0' && i < view->count; i++) {
        if (contains(view, &view->lines[i], text))
            view->lines[kept++] = view->lines[i];
        else
            line_fini(&view->lines[i], view->column_count);
    }
    if (text[0] != '\0')
        view->count = kept;
}

/* ---- widths ---- */

static unsigned natural(const struct hg_top_view *view, unsigned column)
{
    size_t width = strlen(view->columns[column].heading);
    for (size_t i = 0; i < view->count; i++) {
        size_t len = strlen(view->lines[i].cells[column].text);
        width = len > width ? len : width;
    }
    return (unsigned)width;
}

static unsigned sum(const struct hg_top_view *view, const unsigned *widths)
{
    unsigned all = 0;
    for (unsigned c = 0; c < view->column_count; c++)
        all += widths[c] > 0 ? widths[c] + (all > 0 ? HG_TOP_GAP : 0) : 0;
    return all;
}

/* Cuts texts, the widest first, as far as that helps and may be. */
static void shrink(const struct hg_top_view *view, unsigned width, unsigned *widths)
{
    while (sum(view, widths) > width) {
        unsigned widest = view->column_count;
        for (unsigned c = 0; c < view->column_count; c++) {
            unsigned min = view->columns[c].min;
            if (min > 0 && widths[c] > min &&
                (widest == view->column_count || widths[c] > widths[widest]))
                widest = c;
        }
        if (widest == view->column_count)
            return;
        widths[widest]--;
    }
}

void hg_top_view_fit(const struct hg_top_view *view, unsigned width, unsigned keep,
                     unsigned ret[HG_TOP_COLUMNS_MAX])
{
    unsigned full[HG_TOP_COLUMNS_MAX];
    bool out[HG_TOP_COLUMNS_MAX] = {false};
    for (unsigned c = 0; c < view->column_count; c++)
        full[c] = natural(view, c);
    for (;;) {
        unsigned victim = view->column_count;
        for (unsigned c = 0; c < view->column_count; c++)
            ret[c] = out[c] ? 0 : full[c];
        shrink(view, width, ret);
        if (sum(view, ret) <= width)
            return;
        for (unsigned c = 1; c < view->column_count; c++)
            if (!out[c] && c != keep &&
                (victim == view->column_count ||
                 view->columns[c].rank > view->columns[victim].rank))
                victim = c;
        if (victim == view->column_count)
            return; /* what is left is cut by whoever draws it */
        out[victim] = true;
    }
}

void hg_top_view_print(const struct hg_top_view *view, const struct hg_top_line *line,
                       const unsigned widths[HG_TOP_COLUMNS_MAX], char *ret, size_t size)
{
    size_t at = 0;
    ret[0] = '\0';
    for (unsigned c = 0; c < view->column_count && at < size; c++) {
        if (widths[c] == 0)
            continue;
        const char *text = line != NULL ? line->cells[c].text : view->columns[c].heading;
        bool cut = strlen(text) > widths[c];
        int width = (int)widths[c];
        int n = snprintf(ret + at, size - at, "%s%*.*s%s", at > 0 ? " " : "",
                         cut                          ? 0
                         : view->columns[c].is_number ? width
                                                      : -width,
                         cut ? width - 1 : width, text, cut ? "~" : "");
        at += n > 0 ? (size_t)n : 0;
    }
}
