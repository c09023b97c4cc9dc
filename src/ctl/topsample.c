// topsample - values of a sample of statistics, and rates from the differences of two
// SPDX-License-Identifier: BSD-3-Clause
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/top.h"

static void part_free(struct hg_top_part *part)
{
    for (size_t i = 0; part->entries != NULL && i < part->rows.count; i++)
        json_decref(part->entries[i].json);
    free(part->entries);
    hg_ctl_rows_free(&part->rows);
    free(part->refused);
    *part = (struct hg_top_part){0};
}

void hg_top_sample_free(struct hg_top_sample *sample)
{
    for (int g = 0; g < HG_TOP_GROUPS; g++)
        part_free(&sample->parts[g]);
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct hg_top_entry *)a)->row->name,
                  ((const struct hg_top_entry *)b)->row->name);
}

void hg_top_part_index(struct hg_top_part *part)
{
    part->entries = calloc(part->rows.count + 1, sizeof *part->entries);
    if (part->entries == NULL)
        abort();
    for (size_t i = 0; i < part->rows.count; i++) {
        const struct hg_ctl_row *row = &part->rows.row[i];
        json_t *json = NULL;
        if (row->value_len > 0 && row->value[0] == '{')
            json = json_loadb(row->value, row->value_len, 0, NULL);
        if (!json_is_object(json)) {
            json_decref(json);
            json = NULL;
        }
        part->entries[i] = (struct hg_top_entry){row, json};
    }
    if (part->rows.count > 1)
        qsort(part->entries, part->rows.count, sizeof *part->entries, compare_entries);
}

const struct hg_top_entry *hg_top_find(const struct hg_top_part *part, const char *name)
{
    struct hg_ctl_row row = {.name = (char *)(uintptr_t)name};
    struct hg_top_entry wanted = {&row, NULL};
    if (part == NULL || part->entries == NULL || part->rows.count == 0)
        return NULL;
    return bsearch(&wanted, part->entries, part->rows.count, sizeof wanted, compare_entries);
}

const char *hg_top_text(const struct hg_top_part *part, const char *name)
{
    const struct hg_top_entry *entry = hg_top_find(part, name);
    return entry != NULL ? entry->row->value : NULL;
}

double hg_top_number(const struct hg_top_part *part, const char *name)
{
    const char *text = hg_top_text(part, name);
    char *end;
    if (text == NULL || text[0] < '0' || text[0] > '9')
        return NAN;
    double number = strtod(text, &end);
    return *end == '\0' ? number : NAN;
}

double hg_top_rate(const struct hg_top_part *before, const struct hg_top_part *now, double earlier,
                   double later)
{
    if (before == NULL || now == NULL || !before->fetched || !now->fetched ||
        now->at_us <= before->at_us || isnan(earlier) || isnan(later) || later < earlier)
        return NAN;
    return (later - earlier) * 1e6 / (double)(now->at_us - before->at_us);
}

double hg_top_rate_of(const struct hg_top_part *before, const struct hg_top_part *now,
                      const char *name)
{
    return hg_top_rate(before, now, hg_top_number(before, name), hg_top_number(now, name));
}

bool hg_top_follows(const struct hg_top_sample *before, const struct hg_top_sample *now)
{
    const struct hg_top_part *a = &before->parts[HG_TOP_GENERAL], *b = &now->parts[HG_TOP_GENERAL];
    const char *old = hg_top_text(a, "pid"), *new = hg_top_text(b, "pid");
    return old != NULL && new != NULL &&strcmp(old, new) == 0 &&
           hg_top_number(a, "uptime") <= hg_top_number(b, "uptime");
}

void hg_top_format(double number, char ret[16])
{
    if (isnan(number) || number < 0)
        snprintf(ret, 16, "-");
    else if (number > 0 && number < 9.95)
        snprintf(ret, 16, number == floor(number) ? "%.0f" : "%.1f", number);
    else if (number < 1e6)
        snprintf(ret, 16, "%.0f", number);
    else if (number < 1e7)
        snprintf(ret, 16, "%.0fk", number / 1e3);
    else if (number < 1e10)
        snprintf(ret, 16, "%.0fM", number / 1e6);
    else
        snprintf(ret, 16, number < 1e15 ? "%.0fG" : "%.0e", number < 1e15 ? number / 1e9 : number);
}

json_t *hg_top_json_of(double number)
{
    if (isnan(number))
        return json_null();
    if (isinf(number))
        return json_string("unlimited");
    return number == floor(number) && number < 1e15 ? json_integer((json_int_t)number)
                                                    : json_real(round(number * 100) / 100);
}
