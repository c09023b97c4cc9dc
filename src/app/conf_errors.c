// conf_errors - what is wrong with a file, collected while it is read
// SPDX-License-Identifier: BSD-3-Clause
#include "app/conf_errors.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void hg_conf_errors_init(struct hg_conf_errors *errs)
{
    *errs = (struct hg_conf_errors){0};
}

void hg_conf_errors_fini(struct hg_conf_errors *errs)
{
    for (size_t i = 0; i < errs->error_count; i++)
        free(errs->errors[i]);
    for (size_t i = 0; i < errs->warning_count; i++)
        free(errs->warnings[i]);
    hg_conf_errors_init(errs);
}

/* A file's text may hold what a terminal would obey. */
static void defuse(char *text)
{
    for (; text && *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

/* NULL when memory is out. */
static HG_PRINTF(3, 0) char *line_of(const char *file, unsigned line, const char *format,
                                     va_list args)
{
    char *text = NULL, *whole = NULL;
    int rc;
    if (vasprintf(&text, format, args) < 0)
        return NULL;
    if (!file)
        return text;
    if (line)
        rc = asprintf(&whole, "%s:%u: %s", file, line, text);
    else
        rc = asprintf(&whole, "%s: %s", file, text);
    free(text);
    return rc < 0 ? NULL : whole;
}

static void add(char *lines[], size_t *count, size_t *left_out, char *line)
{
    defuse(line);
    for (size_t i = 0; line && i < *count; i++)
        if (strcmp(lines[i], line) == 0) {
            free(line);
            return;
        }
    if (*count < HG_CONF_ERRORS_MAX && line) {
        lines[(*count)++] = line;
        return;
    }
    free(line);
    ++*left_out;
}

void hg_conf_errors_add(struct hg_conf_errors *errs, const char *file, unsigned line,
                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(errs->errors, &errs->error_count, &errs->errors_left_out,
        line_of(file, line, format, args));
    va_end(args);
}

void hg_conf_errors_warn(struct hg_conf_errors *errs, const char *file, unsigned line,
                         const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(errs->warnings, &errs->warning_count, &errs->warnings_left_out,
        line_of(file, line, format, args));
    va_end(args);
}

void hg_conf_errors_print(const struct hg_conf_errors *errs, FILE *to)
{
    for (size_t i = 0; i < errs->error_count; i++)
        fprintf(to, "%s\n", errs->errors[i]);
    if (errs->errors_left_out)
        fprintf(to, "and %zu more\n", errs->errors_left_out);
    for (size_t i = 0; i < errs->warning_count; i++)
        fprintf(to, "warning: %s\n", errs->warnings[i]);
    if (errs->warnings_left_out)
        fprintf(to, "warning: and %zu more warnings\n", errs->warnings_left_out);
}
