// events - the verb events: what began and ended in the server
// SPDX-License-Identifier: BSD-3-Clause
//
// The server sends one JSON object for each (statistics events); what it says beside time, severity
// and name is shown as it comes.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/option.h"
#include "ctl/table.h"
#include "ctl/watch.h"

#define WATCH_US    500000 /* between two looks */
#define DETAIL_MAX  1024
#define NAME_COLUMN 15 /* "throttle-begin" and a space, so that looks are aligned alike */

struct question {
    bool watches;
    json_int_t last; /* number of the last event that was shown */
};

/* " NAME=VALUE", as in the log. */
static size_t add_field(char *text, size_t at, const char *name, const json_t *value)
{
    const char *string = json_string_value(value);
    const char *quote = string != NULL && strchr(string, ' ') != NULL ? "\"" : "";
    int len = 0;
    if (string != NULL)
        len = snprintf(text + at, DETAIL_MAX - at, " %s=%s%s%s", name, quote, string, quote);
    else if (json_is_integer(value))
        len = snprintf(text + at, DETAIL_MAX - at, " %s=%" JSON_INTEGER_FORMAT, name,
                       json_integer_value(value));
    else if (json_is_real(value))
        len = snprintf(text + at, DETAIL_MAX - at, " %s=%.1f", name, json_real_value(value));
    return len > 0 && at + (size_t)len < DETAIL_MAX ? at + (size_t)len : at;
}

static bool is_column(const char *name)
{
    return strcmp(name, "number") == 0 || strcmp(name, "time") == 0 ||
           strcmp(name, "severity") == 0 || strcmp(name, "event") == 0;
}

static void add_event(struct hg_ctl_table *table, json_t *event)
{
    static const char *const columns[] = {"time", "severity", "event"};
    char detail[DETAIL_MAX] = " ", name[64];
    size_t at = 0;
    const char *field;
    json_t *value;
    for (size_t c = 0; c < HG_COUNT_OF(columns); c++) {
        const char *text = json_string_value(json_object_get(event, columns[c]));
        snprintf(name, sizeof name, "%-*s", strcmp(columns[c], "event") == 0 ? NAME_COLUMN : 0,
                 text != NULL ? text : "-");
        hg_ctl_table_add_shown(table, name);
    }
    json_object_foreach(event, field, value)
    {
        if (!is_column(field))
            at = add_field(detail, at, field, value);
    }
    hg_ctl_table_add_shown(table, detail + 1);
}

/* The events that the server has sent, as a list; an object that is none is left out. */
static json_t *list_of(const struct hg_ctl_rows *rows)
{
    json_t *list = json_array();
    for (size_t i = 0; i < rows->count; i++) {
        json_t *event = json_loadb(rows->row[i].value, rows->row[i].value_len, 0, NULL);
        if (json_is_object(event))
            json_array_append_new(list, event);
        else
            json_decref(event);
    }
    return list;
}

/* A list, or while watching one object a line. */
static int print_json(const struct question *question, json_t *list)
{
    size_t i;
    json_t *event;
    if (!question->watches)
        return hg_ctl_json_print_rounded(list);
    json_array_foreach(list, i, event)
    {
        if (json_dumpf(event, stdout, JSON_COMPACT | JSON_REAL_PRECISION(10)) == 0)
            putchar('\n');
    }
    json_decref(list);
    return HG_CTL_OK;
}

static void print(const struct question *question, json_t *list)
{
    static const char *const headings[] = {"TIME", "SEVERITY", "EVENT", "DETAIL"};
    struct hg_ctl_table table;
    size_t i;
    json_t *event;
    bool first = !question->watches;
    hg_ctl_table_init(&table, HG_COUNT_OF(headings), first ? headings : NULL);
    json_array_foreach(list, i, event)
    {
        add_event(&table, event);
    }
    hg_ctl_table_print(&table, stdout);
    hg_ctl_table_fini(&table);
    json_decref(list);
}

static int show(struct hg_ctl *ctl, void *ctx)
{
    struct question *question = ctx;
    struct hg_ctl_rows rows = {NULL, 0, 0};
    char group[48];
    snprintf(group, sizeof group, "events %" JSON_INTEGER_FORMAT, question->last);
    int code = hg_ctl_fetch(ctl, question->last > 0 ? group : "events", &rows, NULL);
    if (code == HG_CTL_OK) {
        json_t *list = list_of(&rows);
        const json_t *last = json_array_get(list, json_array_size(list) - 1);
        if (json_is_integer(json_object_get(last, "number")))
            question->last = json_integer_value(json_object_get(last, "number"));
        if (ctl->json)
            code = print_json(question, list);
        else
            print(question, list);
    }
    hg_ctl_rows_free(&rows);
    return code;
}

int hg_ctl_events(struct hg_ctl *ctl)
{
    struct question question = {.watches = hg_ctl_option_is(ctl, HG_CTL_OPT_WATCH)};
    if (ctl->arg_count > 0)
        return hg_ctl_say(HG_CTL_USAGE, "events takes options only, not '%s'", ctl->args[0]);
    int code = hg_ctl_connect(ctl);
    if (code != HG_CTL_OK)
        return code;
    return question.watches ? hg_ctl_follow(ctl, WATCH_US, show, &question) : show(ctl, &question);
}
