// option - one row of the option table, and how a text becomes the value of its field
// SPDX-License-Identifier: BSD-3-Clause
#include "load/option.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load/addr.h"
#include "load/parse.h"

#define AT_TENANT(field) offsetof(struct hg_load_tenant, field)
#define AT_RUN(field)    offsetof(struct hg_load_options, field)

const struct hg_option_row hg_option_rows[HG_OPTION_ROWS] = {
#define LOAD_OPTION(letter, name, argument, scope, type, field, min, max, sentence)                \
    {letter, name, argument, HG_OPTION_OF_##scope, HG_OPTION_##type, AT_##scope(field),            \
     min,    max,  sentence},
#include "load/option.def"
#undef LOAD_OPTION
};

bool hg_option_complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("headgate-load: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return false;
}

/* Says what is wrong with an option's value and what would be right. */
HG_PRINTF(4, 5)
static bool complain_value(const struct hg_option_place *place, const struct hg_option_row *row,
                           const char *text, const char *format, ...)
{
    char expected[500];
    va_list args;
    va_start(args, format);
    vsnprintf(expected, sizeof expected, format, args);
    va_end(args);
    const char *shown = strcmp(row->name, "password") == 0 ? "..." : text;
    if (place->spec > 0) {
        return hg_option_complain("--tenant no. %u: %s '%s': expected %s", place->spec, row->name,
                                  shown, expected);
    }
    return hg_option_complain("--%s '%s': expected %s", row->name, shown, expected);
}

char *hg_option_keep(struct hg_load_options *options, char *text)
{
    char **texts = realloc(options->texts, (options->text_count + 1) * sizeof *texts);
    if (texts == NULL || text == NULL) {
        fputs("headgate-load: out of memory\n", stderr);
        exit(1);
    }
    options->texts = texts;
    texts[options->text_count++] = text;
    return text;
}

static bool set_text(const struct hg_option_place *place, const struct hg_option_row *row,
                     const char *text, const char **field)
{
    size_t len = strlen(text);
    struct hg_load_addr addr;
    if ((double)len < row->min || (double)len > row->max) {
        return complain_value(place, row, text, "%.0f to %.0f bytes", row->min, row->max);
    }
    if (strcmp(row->name, "server") == 0 && !hg_load_addr_decode(text, &addr)) {
        return complain_value(place, row, text, "HOST:PORT, [IPV6]:PORT or unix:PATH");
    }
    *field = text;
    return true;
}

static bool set_mechanism(const struct hg_option_place *place, const struct hg_option_row *row,
                          const char *text, const char **field)
{
    static const char *const names[] = {"PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256"};
    *field = NULL;
    for (size_t i = 0; i < HG_COUNT_OF(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *field = names[i];
        }
    }
    return *field != NULL || strcmp(text, "auto") == 0 ||
           complain_value(place, row, text, "PLAIN, SCRAM-SHA-1, SCRAM-SHA-256 or auto");
}

static bool add_pid(const struct hg_option_place *place, const struct hg_option_row *row,
                    const char *text)
{
    struct hg_load_options *options = place->options;
    uint64_t number;
    if (!hg_load_parse_number(text, (uint64_t)row->min, (uint64_t)row->max, &number)) {
        return complain_value(place, row, text, "the number of a process");
    }
    if (options->cpu_of_count == HG_LOAD_CPU_OF_MAX) {
        return hg_option_complain("--cpu-of: at most %d processes", HG_LOAD_CPU_OF_MAX);
    }
    options->cpu_of[options->cpu_of_count++] = (pid_t)number;
    return true;
}

static bool set_numeric(const struct hg_option_place *place, const struct hg_option_row *row,
                        const char *text, void *field)
{
    uint64_t number = 0;
    double real = 0.0;
    bool whole = row->type == HG_OPTION_NUMBER || row->type == HG_OPTION_NUMBER64;
    bool fits = whole ? hg_load_parse_number(text, (uint64_t)row->min, (uint64_t)row->max, &number)
                      : hg_load_parse_real(text, row->min, row->max, &real);
    if (!fits) {
        return complain_value(place, row, text, "a %s from %.15g to %.15g",
                              whole ? "whole number" : "number", row->min, row->max);
    }
    switch (row->type) {
    case HG_OPTION_NUMBER:
        *(uint32_t *)field = (uint32_t)number;
        break;
    case HG_OPTION_NUMBER64:
        *(uint64_t *)field = number;
        break;
    case HG_OPTION_SECONDS:
        *(uint64_t *)field = (uint64_t)(real * 1e9);
        break;
    default:
        *(double *)field = real;
        break;
    }
    return true;
}

const char *const hg_load_arrivals_names[] = {[HG_ARRIVALS_CLOSED] = "closed",
                                              [HG_ARRIVALS_STEADY] = "steady",
                                              [HG_ARRIVALS_POISSON] = "poisson"};

static bool set_arrivals(const char *text, enum hg_arrivals_kind *field)
{
    for (int i = HG_ARRIVALS_CLOSED; i <= HG_ARRIVALS_POISSON; i++) {
        if (strcmp(text, hg_load_arrivals_names[i]) == 0) {
            *field = (enum hg_arrivals_kind)i;
            return true;
        }
    }
    return false;
}

/* Seconds up to which a rate can have steps. */
#define STEP_SECONDS_MAX 1000000

static bool set_rate(const struct hg_option_place *place, const struct hg_option_row *row,
                     const char *text, struct hg_rate *field)
{
    switch (hg_rate_parse(text, row->max, STEP_SECONDS_MAX, field)) {
    case HG_RATE_FINE:
        return true;
    case HG_RATE_NO_START:
        return complain_value(place, row, text, "a first rate without a time, or from second 0 on");
    case HG_RATE_NO_ORDER:
        return complain_value(place, row, text, "each time to be later than the one before it");
    case HG_RATE_TOO_MANY:
        return complain_value(place, row, text, "at most %d rates", HG_RATE_STEPS_MAX);
    default:
        return complain_value(place, row, text,
                              "numbers from 0 to %.0f, or " HG_RATE_MAX_WORD
                              ", as in 500 or 500@0,2000@5.5",
                              row->max);
    }
}

const char *const hg_load_protocol_names[] = {
    [HG_LOAD_BINARY] = "binary", [HG_LOAD_TEXT] = "text", [HG_LOAD_RESP] = "resp"};

static bool set_protocol(const char *text, enum hg_load_protocol *field)
{
    for (int i = HG_LOAD_BINARY; i <= HG_LOAD_RESP; i++) {
        if (strcmp(text, hg_load_protocol_names[i]) == 0) {
            *field = (enum hg_load_protocol)i;
            return true;
        }
    }
    return false;
}

/* "get, set, ...": what a mix can be made of. */
static const char *list_operations(char list[400])
{
    list[0] = '\0';
    for (int op = 0; op < HG_LOAD_OPS; op++) {
        strcat(list, op > 0 ? ", " : "");
        strcat(list, hg_load_op_table[op].name);
    }
    return list;
}

static bool set_lists(const struct hg_option_place *place, const struct hg_option_row *row,
                      const char *text, void *field)
{
    struct hg_load_tenant *tenant = place->tenant;
    char list[400];
    switch (row->type) {
    case HG_OPTION_RANGE:
        return hg_load_parse_range(text, (uint64_t)row->min, (uint64_t)row->max, &tenant->value_min,
                                   &tenant->value_max) ||
               complain_value(place, row, text, "N or N-M from %.0f to %.0f", row->min, row->max);
    case HG_OPTION_MIX:
        return hg_load_parse_mix(text, (uint32_t)row->max, field) ||
               complain_value(place, row, text,
                              "weights like get=90,set=10 that add up to at most %.0f, of %s",
                              row->max, list_operations(list));
    case HG_OPTION_OPERATION:
        return hg_load_parse_operation(text, field) ||
               complain_value(place, row, text, "one of %s", list_operations(list));
    case HG_OPTION_ARRIVALS:
        return set_arrivals(text, field) ||
               complain_value(place, row, text, "closed, steady or poisson");
    case HG_OPTION_RATE:
        return set_rate(place, row, text, field);
    case HG_OPTION_HELLO:
        return hg_load_parse_hello(text, field) ||
               complain_value(place, row, text, "some of xerror, json, nonblocking");
    default:
        return set_protocol(text, field) ||
               complain_value(place, row, text, "binary, text or resp");
    }
}

bool hg_option_set(const struct hg_option_place *place, const struct hg_option_row *row,
                   const char *text)
{
    char *base = row->scope == HG_OPTION_OF_TENANT ? (char *)place->tenant : (char *)place->options;
    void *field = base + row->offset;
    switch (row->type) {
    case HG_OPTION_TEXT:
        return set_text(place, row, text, field);
    case HG_OPTION_MECHANISM:
        return set_mechanism(place, row, text, field);
    case HG_OPTION_PASSWORD_FILE: {
        char *password = hg_load_parse_password_file(text);
        if (password == NULL) {
            return complain_value(place, row, text, "a file with a password in its first line: %s",
                                  strerror(errno));
        }
        *(const char **)field = hg_option_keep(place->options, password);
        return true;
    }
    case HG_OPTION_PID:
        return add_pid(place, row, text);
    case HG_OPTION_FLAG:
        *(bool *)field = true;
        return true;
    case HG_OPTION_RANGE:
    case HG_OPTION_MIX:
    case HG_OPTION_OPERATION:
    case HG_OPTION_ARRIVALS:
    case HG_OPTION_RATE:
    case HG_OPTION_HELLO:
    case HG_OPTION_PROTOCOL:
        return set_lists(place, row, text, field);
    default:
        return set_numeric(place, row, text, field);
    }
}
