// table - text in aligned columns
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define GAP "  "

char *hg_ctl_escape(const char *text, size_t len)
{
    char *out = malloc(4 * len + 1), *to = out;
    if (out == NULL)
        abort();
    for (size_t i = 0; i < len; i++) {
        if (text[i] >= ' ' && text[i] <= '~' && text[i] != '\\')
            *to++ = text[i];
        else
            to += sprintf(to, "\\x%02x", (unsigned char)text[i]);
    }
    *to = '\0';
    return out;
}

void hg_ctl_table_init(struct hg_ctl_table *table, unsigned columns, const char *const *heading)
{
    *table = (struct hg_ctl_table){.columns = columns};
    for (unsigned c = 0; heading != NULL && c < columns; c++)
        hg_ctl_table_add(table, heading[c]);
    table->headings = table->count;
}

void hg_ctl_table_fini(struct hg_ctl_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
}

static void add_cell(struct hg_ctl_table *table, char *cell)
{
    if (table->count == table->room) {
        table->room = table->room > 0 ? table->room * 2 : 64;
        table->cells = realloc(table->cells, table->room * sizeof *table->cells);
        if (table->cells == NULL)
            abort();
    }
    table->cells[table->count++] = cell;
}

void hg_ctl_table_add_bytes(struct hg_ctl_table *table, const char *text, size_t len)
{
    add_cell(table, hg_ctl_escape(text, len));
}

void hg_ctl_table_add_shown(struct hg_ctl_table *table, const char *text)
{
    char *cell = strdup(text);
    if (cell == NULL)
        abort();
    for (char *at = cell; *at != '\0'; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    add_cell(table, cell);
}

void hg_ctl_table_add(struct hg_ctl_table *table, const char *text)
{
    hg_ctl_table_add_bytes(table, text, strlen(text));
}

static bool is_number(const char *text)
{
    return strcmp(text, "unlimited") == 0 || strcmp(text, "-") == 0 ||
           (text[0] != '\0' && text[strspn(text, "-0123456789.")] == '\0');
}

/* Width of a column; whether it is one of numbers. */
static size_t measure(const struct hg_ctl_table *table, unsigned column, bool *ret_numbers)
{
    size_t width = 0;
    *ret_numbers = table->headings > 0 && table->count > table->headings;
    for (size_t i = column; i < table->count; i += table->columns) {
        size_t len = strlen(table->cells[i]);
        if (len > width)
            width = len;
        if (i >= table->headings && !is_number(table->cells[i]))
            *ret_numbers = false;
    }
    return width;
}

void hg_ctl_table_print(const struct hg_ctl_table *table, FILE *to)
{
    size_t *width = calloc(table->columns, sizeof *width);
    bool *numbers = calloc(table->columns, sizeof *numbers);
    if (width == NULL || numbers == NULL)
        abort();
    for (unsigned c = 0; c < table->columns; c++)
        width[c] = measure(table, c, &numbers[c]);
    for (size_t i = 0; i < table->count; i++) {
        unsigned c = (unsigned)(i % table->columns);
        bool last = c + 1 == table->columns || i + 1 == table->count;
        /* nothing behind the last cell of a line */
        int pad = numbers[c] ? (int)width[c] : last ? 0 : -(int)width[c];
        fprintf(to, "%s%*s%s", c > 0 ? GAP : "", pad, table->cells[i], last ? "\n" : "");
    }
    free(width);
    free(numbers);
}
