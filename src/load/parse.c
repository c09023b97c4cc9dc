// parse - the texts of options, turned into values
// SPDX-License-Identifier: BSD-3-Clause
#include "load/parse.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load/options.h"

bool hg_load_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret_number)
{
    size_t len = strlen(text);
    if (len == 0 || len > 19 || strspn(text, "0123456789") != len) {
        return false;
    }
    uint64_t number = strtoull(text, NULL, 10);
    if (number < min || number > max) {
        return false;
    }
    *ret_number = number;
    return true;
}

bool hg_load_parse_real(const char *text, double min, double max, double *ret_number)
{
    size_t len = strlen(text);
    if (len == 0 || len > 40 || strspn(text, "0123456789.") != len) {
        return false;
    }
    char *end;
    double number = strtod(text, &end);
    if (*end != '\0' || !isfinite(number) || number < min || number > max) {
        return false;
    }
    *ret_number = number;
    return true;
}

bool hg_load_parse_range(const char *text, uint64_t min, uint64_t max, uint32_t *ret_from,
                         uint32_t *ret_to)
{
    char from_text[24];
    const char *dash = strchr(text, '-');
    size_t len = dash != NULL ? (size_t)(dash - text) : strlen(text);
    if (len >= sizeof from_text) {
        return false;
    }
    memcpy(from_text, text, len);
    from_text[len] = '\0';
    uint64_t from, to;
    if (!hg_load_parse_number(from_text, min, max, &from)) {
        return false;
    }
    to = from;
    if (dash != NULL && !hg_load_parse_number(dash + 1, from, max, &to)) {
        return false;
    }
    *ret_from = (uint32_t)from;
    *ret_to = (uint32_t)to;
    return true;
}

static bool find_operation(const char *name, size_t len, int *ret_op)
{
    for (int op = 0; op < HG_LOAD_OPS; op++) {
        const char *other = hg_load_op_table[op].name;
        if (strlen(other) == len && memcmp(other, name, len) == 0) {
            *ret_op = op;
            return true;
        }
    }
    return false;
}

/* One "get=90" of `len` bytes. */
static bool parse_weight(const char *item, size_t len, uint32_t max, int *ret_op,
                         uint32_t *ret_weight)
{
    size_t name_len = strcspn(item, "=:");
    char number[24];
    if (name_len >= len || len - name_len - 1 >= sizeof number) {
        return false;
    }
    memcpy(number, item + name_len + 1, len - name_len - 1);
    number[len - name_len - 1] = '\0';
    uint64_t weight;
    if (!hg_load_parse_number(number, 0, max, &weight)) {
        return false;
    }
    if (!find_operation(item, name_len, ret_op)) {
        return false;
    }
    *ret_weight = (uint32_t)weight;
    return true;
}

bool hg_load_parse_operation(const char *text, uint32_t *ret_op)
{
    int op;
    if (!find_operation(text, strlen(text), &op)) {
        return false;
    }
    *ret_op = (uint32_t)op;
    return true;
}

bool hg_load_parse_mix(const char *text, uint32_t max, uint32_t ret_weight[HG_LOAD_OPS])
{
    uint32_t weight[HG_LOAD_OPS] = {0};
    bool given[HG_LOAD_OPS] = {false};
    uint64_t total = 0;
    while (true) {
        size_t len = strcspn(text, ",/");
        int op;
        uint32_t one;
        if (!parse_weight(text, len, max, &op, &one) || given[op]) {
            return false;
        }
        given[op] = true;
        weight[op] = one;
        total += one;
        if (text[len] == '\0') {
            break;
        }
        text += len + 1;
    }
    if (total < 1 || total > max) {
        return false;
    }
    memcpy(ret_weight, weight, sizeof weight);
    return true;
}

bool hg_load_parse_hello(const char *text, uint32_t *ret_features)
{
    static const char *const names[] = {"xerror", "json", "nonblocking"};
    uint32_t features = 0;
    while (true) {
        size_t len = strcspn(text, ",/");
        size_t i = 0;
        while (i < HG_COUNT_OF(names) &&
               (strlen(names[i]) != len || memcmp(names[i], text, len) != 0)) {
            i++;
        }
        if (i == HG_COUNT_OF(names)) {
            return false;
        }
        features |= 1u << i;
        if (text[len] == '\0') {
            break;
        }
        text += len + 1;
    }
    *ret_features = features;
    return true;
}

char *hg_load_parse_password_file(const char *path)
{
    char line[1024];
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return NULL;
    }
    errno = EINVAL;
    char *got = fgets(line, sizeof line, file);
    size_t len = got != NULL ? strcspn(line, "\r\n") : 0;
    bool whole = got != NULL && (line[len] != '\0' || feof(file));
    int error = errno;
    fclose(file);
    line[got != NULL ? len : 0] = '\0';
    char *password = whole && len > 0 ? strdup(line) : NULL;
    explicit_bzero(line, sizeof line);
    if (password == NULL) {
        errno = error;
    }
    return password;
}
