// values - rows of statistics, and values as JSON
// SPDX-License-Identifier: BSD-3-Clause
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/table.h"

void hg_ctl_rows_free(struct hg_ctl_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        free(rows->row[i].name);
        free(rows->row[i].value);
    }
    free(rows->row);
    *rows = (struct hg_ctl_rows){NULL, 0, 0};
}

const char *hg_ctl_rows_find(const struct hg_ctl_rows *rows, const char *name)
{
    for (size_t i = 0; i < rows->count; i++)
        if (strcmp(rows->row[i].name, name) == 0)
            return rows->row[i].value;
    return NULL;
}

/* ---- as JSON ---- */

json_t *hg_ctl_json_text(const char *text, size_t len)
{
    json_t *json = json_stringn(text, len);
    if (json != NULL)
        return json;
    char *escaped = hg_ctl_escape(text, len);
    json = json_string(escaped);
    free(escaped);
    return json;
}

json_t *hg_ctl_json_of(const char *text, size_t len)
{
    json_t *json = NULL;
    bool digits = len > 0 && len < 19 && strspn(text, "0123456789") == len;
    if (digits && (text[0] != '0' || len == 1))
        json = json_integer(strtoll(text, NULL, 10));
    else if (len > 1 && (text[0] == '{' || text[0] == '['))
        json = json_loadb(text, len, 0, NULL);
    return json != NULL ? json : hg_ctl_json_text(text, len);
}

json_t *hg_ctl_json_rows(const struct hg_ctl_rows *rows)
{
    json_t *object = json_object();
    for (size_t i = 0; i < rows->count; i++) {
        const struct hg_ctl_row *row = &rows->row[i];
        json_t *name = hg_ctl_json_text(row->name, row->name_len);
        json_object_set_new(object, json_string_value(name),
                            hg_ctl_json_of(row->value, row->value_len));
        json_decref(name);
    }
    return object;
}
