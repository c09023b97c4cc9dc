// hotkeys - the verb hotkeys: which keys are hot, and which are throttled
// SPDX-License-Identifier: BSD-3-Clause
//
// The server sends one JSON object a row (statistics hotkeys, hotkeys global, hotkeys history);
// what it does not say is shown as "-".
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/op.h"
#include "ctl/option.h"
#include "ctl/table.h"
#include "ctl/watch.h"

static const char *const columns[] = {
    "EPOCH",  "END",         "TENANT",      "TABLE", "SVR_IP",           "SVR_PORT",
    "HOTKEY", "HOTKEY_TYPE", "HOTKEY_FREQ", "ERROR", "THROTTLE_PERCENT", "REJECTED",
};
#define WATCH_MIN_S     0.1
#define WATCH_MAX_S     3600.0
#define HISTORY_COLUMNS 2 /* in front, of the history only */

/* TABLE_HOTKEY_QUERY, or the word behind the last underscore. An exit code. */
static int parse_type(const char *text, const char **ret)
{
    *ret = NULL;
    for (unsigned type = 0; text != NULL && type < HG_HOT_TYPES; type++) {
        const char *name = hg_hot_type_name((enum hg_hot_type)type);
        if (strcasecmp(text, name) == 0 || strcasecmp(text, strrchr(name, '_') + 1) == 0)
            *ret = name;
    }
    if (text == NULL || *ret != NULL)
        return HG_CTL_OK;
    return hg_ctl_say(HG_CTL_USAGE,
                      "'%s' is no type of hot keys (accepted: all, insert, delete, update, query)",
                      text);
}

static const char *text_of(const json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));
    return text != NULL ? text : "";
}

static json_int_t number_of(const json_t *row, const char *name)
{
    return json_integer_value(json_object_get(row, name));
}

/* The order of the types, an unknown one last. */
static int rank_of(const json_t *row)
{
    const char *type = text_of(row, "HOTKEY_TYPE");
    for (int i = 0; i < HG_HOT_TYPES; i++)
        if (strcmp(type, hg_hot_type_name((enum hg_hot_type)i)) == 0)
            return i;
    return HG_HOT_TYPES;
}

static int compare_numbers(json_int_t a, json_int_t b)
{
    return a < b ? -1 : a > b;
}

/* Epoch, tenant, type, most frequent first; then by name, so that the order is always the same. */
static int compare(const void *left, const void *right)
{
    const json_t *a = *(const json_t *const *)left, *b = *(const json_t *const *)right;
    int order = compare_numbers(number_of(a, "EPOCH"), number_of(b, "EPOCH"));
    if (order == 0)
        order = strcmp(text_of(a, "TENANT"), text_of(b, "TENANT"));
    if (order == 0)
        order = rank_of(a) - rank_of(b);
    if (order == 0)
        order = compare_numbers(number_of(b, "HOTKEY_FREQ"), number_of(a, "HOTKEY_FREQ"));
    if (order == 0)
        order = strcmp(text_of(a, "TABLE"), text_of(b, "TABLE"));
    return order != 0 ? order : strcmp(text_of(a, "HOTKEY"), text_of(b, "HOTKEY"));
}

/* The rows that are asked for, sorted, as a list. */
static json_t *list_of(const struct hg_ctl_rows *rows, const char *tenant, const char *type)
{
    json_t *list = json_array();
    json_t **sorted = calloc(rows->count + 1, sizeof(json_t *));
    size_t count = 0;
    if (sorted == NULL)
        abort();
    for (size_t i = 0; i < rows->count; i++) {
        json_t *row = json_loadb(rows->row[i].value, rows->row[i].value_len, 0, NULL);
        bool wanted = json_is_object(row) &&
                      (tenant == NULL || strcmp(text_of(row, "TENANT"), tenant) == 0) &&
                      (type == NULL || strcmp(text_of(row, "HOTKEY_TYPE"), type) == 0);
        if (wanted)
            sorted[count++] = row;
        else
            json_decref(row);
    }
    qsort(sorted, count, sizeof *sorted, compare);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, sorted[i]);
    free(sorted);
    return list;
}

static void print(const json_t *list, size_t first)
{
    struct hg_ctl_table table;
    size_t i;
    json_t *row;
    char text[32];
    hg_ctl_table_init(&table, (unsigned)(HG_COUNT_OF(columns) - first), columns + first);
    json_array_foreach(list, i, row)
    {
        for (size_t c = first; c < HG_COUNT_OF(columns); c++) {
            const json_t *value = json_object_get(row, columns[c]);
            snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
            hg_ctl_table_add_shown(&table, json_is_integer(value)  ? text
                                           : json_is_string(value) ? json_string_value(value)
                                                                   : "-");
        }
    }
    hg_ctl_table_print(&table, stdout);
    hg_ctl_table_fini(&table);
}

/* What is asked for. */
struct question {
    const char *tenant, *type;
    bool history, watches;
    uint64_t interval_us; /* of watching; 0: each epoch */
};

/* A list, or while watching one object a line. */
static int print_json(const struct question *question, json_t *list)
{
    size_t i;
    json_t *row;
    if (!question->watches)
        return hg_ctl_json_print(list);
    json_array_foreach(list, i, row)
    {
        if (json_dumpf(row, stdout, JSON_COMPACT) == 0)
            putchar('\n');
    }
    json_decref(list);
    return HG_CTL_OK;
}

static void print_time(void)
{
    char text[32];
    struct tm tm;
    time_t now = time(NULL);
    if (localtime_r(&now, &tm) != NULL && strftime(text, sizeof text, "%H:%M:%S", &tm) > 0)
        puts(text);
}

static int show(struct hg_ctl *ctl, void *ctx)
{
    const struct question *question = ctx;
    struct hg_ctl_rows rows = {NULL, 0, 0};
    char group[300];
    snprintf(group, sizeof group, "hotkeys%s%s%s",
             question->history                          ? " history"
             : hg_ctl_option_is(ctl, HG_CTL_OPT_GLOBAL) ? " global"
                                                        : "",
             question->tenant != NULL ? " " : "", question->tenant != NULL ? question->tenant : "");
    int code = hg_ctl_fetch(ctl, group, &rows, NULL);
    if (code == HG_CTL_OK) {
        json_t *list = list_of(&rows, question->tenant, question->type);
        if (ctl->json) {
            code = print_json(question, list);
        } else {
            if (question->watches)
                print_time();
            print(list, question->history ? 0 : HISTORY_COLUMNS);
            json_decref(list);
        }
    }
    hg_ctl_rows_free(&rows);
    return code;
}

/* --watch takes a number of seconds. An exit code. */
static int parse_watch(struct hg_ctl *ctl, struct question *question)
{
    char *end;
    question->watches = hg_ctl_option_is(ctl, HG_CTL_OPT_WATCH);
    if (ctl->arg_count > (question->watches ? 1 : 0))
        return hg_ctl_say(HG_CTL_USAGE, "hotkeys takes options only, not '%s'",
                          ctl->args[question->watches ? 1 : 0]);
    if (question->watches && question->history)
        return hg_ctl_say(HG_CTL_USAGE, "--history does not go with --watch");
    if (ctl->arg_count == 0)
        return HG_CTL_OK;
    const char *text = ctl->args[0];
    double seconds = strspn(text, "0123456789.") == strlen(text) ? strtod(text, &end) : 0;
    if (seconds < WATCH_MIN_S || seconds > WATCH_MAX_S || *end != '\0')
        return hg_ctl_say(HG_CTL_USAGE, "'%s' is no interval (accepted: %.1f to %.0f seconds)",
                          text, WATCH_MIN_S, WATCH_MAX_S);
    question->interval_us = (uint64_t)(seconds * 1e6);
    return HG_CTL_OK;
}

int hg_ctl_hotkeys(struct hg_ctl *ctl)
{
    struct question question = {.tenant = hg_ctl_option(ctl, HG_CTL_OPT_TENANT),
                                .history = hg_ctl_option_is(ctl, HG_CTL_OPT_HISTORY)};
    int code = parse_watch(ctl, &question);
    if (code != HG_CTL_OK)
        return code;
    if (question.history && hg_ctl_option_is(ctl, HG_CTL_OPT_GLOBAL))
        return hg_ctl_say(HG_CTL_USAGE, "--history is of one server: it does not go with --global");
    if (question.tenant != NULL && (question.tenant[0] == '\0' || strlen(question.tenant) > 100))
        return hg_ctl_say(HG_CTL_USAGE, "a tenant's name has 1 to 100 bytes");
    code = parse_type(hg_ctl_option(ctl, HG_CTL_OPT_TYPE), &question.type);
    if (code == HG_CTL_OK)
        code = hg_ctl_connect(ctl);
    if (code != HG_CTL_OK)
        return code;
    return question.watches ? hg_ctl_watch(ctl, question.interval_us, show, &question)
                            : show(ctl, &question);
}
