// conf_value - one option's value: from text, to text, and what it accepts
// SPDX-License-Identifier: BSD-3-Clause
//
// Strict: a value is taken whole or refused with what would be right. `10MB` is no number of bytes
// (10 MiB is), 1.5 no count, `yes` no truth value.
#include "app/conf_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MILLIONTHS UINT64_C(1000000)

#define HG_CONF_NAMES(type, tag, VALUES)                                                           \
    static const char *const tag##_names[] = {VALUES(HG_CONF_NAME_TEXT)};                          \
    const char *tag##_name(enum tag value)                                                         \
    {                                                                                              \
        return (size_t)value < HG_COUNT_OF(tag##_names) ? tag##_names[value] : "?";                \
    }                                                                                              \
    _Static_assert(sizeof(enum tag) == sizeof(unsigned), "choices are stored as unsigned");
#define HG_CONF_NAME_TEXT(id, name) name,
HG_CONF_CHOICES(HG_CONF_NAMES)

static const struct suffix {
    const char *text;
    unsigned shift;
} suffixes[] = {{"GiB", 30}, {"MiB", 20}, {"KiB", 10}};

static void *field_of(const struct hg_conf_option *option, const void *object)
{
    return (char *)object + option->offset;
}

const char *const *hg_conf_choice_names(enum hg_conf_type type, size_t *ret_count)
{
    switch (type) {
#define HG_CONF_CASE(type, tag, VALUES)                                                            \
    case HG_CONF_TYPE_##type:                                                                      \
        *ret_count = HG_COUNT_OF(tag##_names);                                                     \
        return tag##_names;
        HG_CONF_CHOICES(HG_CONF_CASE)
    default:
        return NULL;
    }
}

int hg_conf_number_parse(const char *text, uint64_t *ret)
{
    uint64_t value = 0;
    if (!*text || (text[0] == '0' && text[1]))
        return -EINVAL;
    for (const char *at = text; *at; at++) {
        if (*at < '0' || *at > '9')
            return -EINVAL;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return -ERANGE;
    }
    *ret = value;
    return 0;
}

int hg_conf_decimal_parse(const char *text, uint64_t *ret_millionths)
{
    char whole[24];
    size_t len = strcspn(text, ".");
    uint64_t value, part = 0;
    if (len >= sizeof whole)
        return -EINVAL;
    memcpy(whole, text, len);
    whole[len] = '\0';
    int rc = hg_conf_number_parse(whole, &value);
    if (rc)
        return rc;
    if (text[len] == '.') {
        const char *at = text + len + 1;
        uint64_t unit = MILLIONTHS;
        if (!*at)
            return -EINVAL;
        for (; *at; at++) {
            if (*at < '0' || *at > '9' || unit == 1)
                return -EINVAL;
            unit /= 10;
            part += (uint64_t)(*at - '0') * unit;
        }
    }
    if (__builtin_mul_overflow(value, MILLIONTHS, &value) ||
        __builtin_add_overflow(value, part, &value))
        return -ERANGE;
    *ret_millionths = value;
    return 0;
}

bool hg_conf_name_ok(const char *text, size_t len)
{
    if (len < 1 || len > 100)
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '%' || c == '-';
        if (!ok)
            return false;
    }
    return true;
}

static int parse_bytes(const char *text, uint64_t *ret)
{
    char digits[24];
    size_t len = strlen(text);
    unsigned shift = 0;
    for (size_t i = 0; i < HG_COUNT_OF(suffixes) && !shift; i++)
        if (len > 3 && strcmp(text + len - 3, suffixes[i].text) == 0) {
            shift = suffixes[i].shift;
            len -= 3;
            len -= len > 1 && text[len - 1] == ' ';
        }
    if (len >= sizeof digits)
        return -EINVAL;
    memcpy(digits, text, len);
    digits[len] = '\0';
    uint64_t value;
    int rc = hg_conf_number_parse(digits, &value);
    if (rc)
        return rc;
    if (value > UINT64_MAX >> shift)
        return -ERANGE;
    *ret = value << shift;
    return 0;
}

static int parse_mode(const char *text, uint64_t *ret)
{
    size_t len = strlen(text);
    uint64_t value = 0;
    if (len < 3 || len > 4)
        return -EINVAL;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '7')
            return -EINVAL;
        value = value * 8 + (uint64_t)(text[i] - '0');
    }
    *ret = value;
    return 0;
}

/* At least one digit after the point, and no more than are needed. */
static void decimal_text(uint64_t millionths, char ret[32])
{
    int len = snprintf(ret, 32, "%" PRIu64 ".%06" PRIu64, millionths / MILLIONTHS,
                       millionths % MILLIONTHS);
    while (ret[len - 1] == '0' && ret[len - 2] != '.')
        ret[--len] = '\0';
}

static void accepts_decimal(const struct hg_conf_option *option, char *ret, size_t size)
{
    char min[32], max[32];
    decimal_text(option->min * (MILLIONTHS / 1000), min);
    decimal_text(option->max * (MILLIONTHS / 1000), max);
    snprintf(ret, size, "%s to %s%s%s", min, max, option->unit[0] ? " " : "", option->unit);
}

static void accepts_choice(const char *const *names, size_t count, char *ret, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < count && at < size; i++)
        at += (size_t)snprintf(ret + at, size - at, "%s%s", i ? ", " : "", names[i]);
}

void hg_conf_value_accepts(const struct hg_conf_option *option, char *ret, size_t size)
{
    size_t count;
    const char *const *names = hg_conf_choice_names(option->type, &count);
    const char *space = option->unit[0] ? " " : "";
    if (names) {
        accepts_choice(names, count, ret, size);
        return;
    }
    switch (option->type) {
    case HG_CONF_TYPE_NUMBER:
        snprintf(ret, size, "%" PRIu64 " to %" PRIu64 "%s%s", option->min, option->max, space,
                 option->unit);
        return;
    case HG_CONF_TYPE_BYTES:
        snprintf(ret, size, "%" PRIu64 " to %" PRIu64 " bytes, or with KiB, MiB, GiB", option->min,
                 option->max);
        return;
    case HG_CONF_TYPE_UNITS:
        snprintf(ret, size, "%" PRIu64 " to %" PRIu64 "%s%s, or unlimited", option->min,
                 option->max, space, option->unit);
        return;
    case HG_CONF_TYPE_MODE:
        snprintf(ret, size, "3 or 4 octal digits up to %04" PRIo64, option->max);
        return;
    case HG_CONF_TYPE_DECIMAL:
        accepts_decimal(option, ret, size);
        return;
    case HG_CONF_TYPE_BOOL:
        snprintf(ret, size, "true, false");
        return;
    case HG_CONF_TYPE_TEXT:
    case HG_CONF_TYPE_SECRET:
        snprintf(ret, size, "text of %" PRIu64 " to %" PRIu64 " bytes", option->min, option->max);
        return;
    case HG_CONF_TYPE_NAME:
        snprintf(ret, size, "1 to 100 of the characters A-Z a-z 0-9 . _ %% -");
        return;
    case HG_CONF_TYPE_ADDRESS:
        snprintf(ret, size, "HOST:PORT, [IPV6]:PORT, unix:PATH, /PATH");
        return;
    default:
        if (hg_conf_option_is_group(option))
            snprintf(ret, size, "a mapping");
        else
            snprintf(ret, size, "a list of %" PRIu64 " to %" PRIu64 " entries", option->min,
                     option->max);
        return;
    }
}

static int refuse(const struct hg_conf_option *option, const char *text, const char *fault,
                  struct hg_conf_why *why)
{
    char accepts[256];
    hg_conf_value_accepts(option, accepts, sizeof accepts);
    snprintf(why->text, sizeof why->text, "%s '%.80s' of '%s' (accepted: %s)", fault,
             option->type == HG_CONF_TYPE_SECRET ? HG_CONF_SECRET_SHOWN : text, option->name,
             accepts);
    return -EINVAL;
}

static int set_number(const struct hg_conf_option *option, uint64_t *field, const char *text,
                      struct hg_conf_why *why)
{
    uint64_t value = 0;
    int rc;
    if (option->type == HG_CONF_TYPE_UNITS && strcmp(text, "unlimited") == 0) {
        *field = HG_CONF_UNLIMITED;
        return 0;
    }
    if (option->type == HG_CONF_TYPE_BYTES)
        rc = parse_bytes(text, &value);
    else if (option->type == HG_CONF_TYPE_MODE)
        rc = parse_mode(text, &value);
    else
        rc = hg_conf_number_parse(text, &value);
    if (rc == -EINVAL)
        return refuse(option, text, "bad value", why);
    if (rc || value < option->min || value > option->max)
        return refuse(option, text, "value out of range", why);
    *field = value;
    return 0;
}

static int set_decimal(const struct hg_conf_option *option, double *field, const char *text,
                       struct hg_conf_why *why)
{
    uint64_t millionths = 0;
    int rc = hg_conf_decimal_parse(text, &millionths);
    if (rc == -EINVAL)
        return refuse(option, text, "bad value", why);
    if (rc || millionths < option->min * (MILLIONTHS / 1000) ||
        millionths > option->max * (MILLIONTHS / 1000))
        return refuse(option, text, "value out of range", why);
    *field = (double)millionths / (double)MILLIONTHS;
    return 0;
}

static int set_text(const struct hg_conf_option *option, char **field, const char *text,
                    struct hg_conf_why *why)
{
    size_t len = strlen(text);
    if (option->type == HG_CONF_TYPE_NAME ? !hg_conf_name_ok(text, len)
                                          : len < option->min || len > option->max)
        return refuse(option, text,
                      option->type == HG_CONF_TYPE_NAME ? "bad name" : "bad length of", why);
    char *copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    free(*field);
    *field = copy;
    return 0;
}

static int set_address(const struct hg_conf_option *option, struct hg_conf_address *field,
                       const char *text, struct hg_conf_why *why)
{
    struct hg_conf_address address;
    int rc = hg_conf_address_parse(text, &address);
    if (rc == -EINVAL)
        return refuse(option, text, "bad value", why);
    if (rc)
        return rc;
    hg_conf_address_fini(field);
    *field = address;
    return 0;
}

int hg_conf_value_set(const struct hg_conf_option *option, void *object, const char *text,
                      struct hg_conf_why *why)
{
    void *field = field_of(option, object);
    size_t count;
    const char *const *names = hg_conf_choice_names(option->type, &count);
    for (size_t i = 0; names && i < count; i++)
        if (strcmp(names[i], text) == 0) {
            unsigned value = (unsigned)i;
            memcpy(field, &value, sizeof value);
            return 0;
        }
    if (names)
        return refuse(option, text, "bad value", why);
    switch (option->type) {
    case HG_CONF_TYPE_NUMBER:
    case HG_CONF_TYPE_BYTES:
    case HG_CONF_TYPE_UNITS:
    case HG_CONF_TYPE_MODE:
        return set_number(option, field, text, why);
    case HG_CONF_TYPE_DECIMAL:
        return set_decimal(option, field, text, why);
    case HG_CONF_TYPE_BOOL:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return refuse(option, text, "bad value", why);
        *(bool *)field = text[0] == 't';
        return 0;
    case HG_CONF_TYPE_TEXT:
    case HG_CONF_TYPE_NAME:
    case HG_CONF_TYPE_SECRET:
        return set_text(option, field, text, why);
    case HG_CONF_TYPE_ADDRESS:
        return set_address(option, field, text, why);
    default:
        return refuse(option, text, "bad value", why);
    }
}

static char *bytes_text(uint64_t value)
{
    char *text = NULL;
    for (size_t i = 0; i < HG_COUNT_OF(suffixes); i++) {
        uint64_t unit = UINT64_C(1) << suffixes[i].shift;
        if (value >= unit && value % unit == 0 && value > 8192)
            return asprintf(&text, "%" PRIu64 " %s", value / unit, suffixes[i].text) < 0 ? NULL
                                                                                         : text;
    }
    return asprintf(&text, "%" PRIu64, value) < 0 ? NULL : text;
}

/* `[127.0.0.1:11211, /run/headgate.sock 0660]`, `{127.0.0.1:11280}` of a group, and the like for
 * the other lists. */
static char *list_text(const struct hg_conf_option *option, const void *object)
{
    enum hg_conf_scope scope = hg_conf_option_list(option);
    const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
    size_t count, shown, size;
    const char *array = hg_conf_option_array(option, object, &count);
    char *text = NULL;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    fputc(hg_conf_option_is_group(option) ? '{' : '[', to);
    /* The elements of these lists are told by name elsewhere; of the others, every option is shown.
     */
    shown = scope == HG_CONF_SCOPE_UPSTREAM || scope == HG_CONF_SCOPE_TENANT ? 1 : info->count;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < shown; j++) {
            char *part = hg_conf_value_text(&info->options[j], array + i * info->object_size);
            if (part && strcmp(part, "{}") == 0) { /* a group that is not there */
                free(part);
                continue;
            }
            fprintf(to, "%s%s", j ? " " : i ? ", " : "", part ? part : "?");
            free(part);
        }
    fputc(hg_conf_option_is_group(option) ? '}' : ']', to);
    if (fclose(to) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

char *hg_conf_value_text(const struct hg_conf_option *option, const void *object)
{
    const void *field = field_of(option, object);
    size_t count;
    const char *const *names = hg_conf_choice_names(option->type, &count);
    char *text = NULL, decimal[32];
    uint64_t number = 0;
    if (names) {
        unsigned value;
        memcpy(&value, field, sizeof value);
        return strdup(value < count ? names[value] : "?");
    }
    if (option->type <= HG_CONF_TYPE_MODE)
        number = *(const uint64_t *)field;
    switch (option->type) {
    case HG_CONF_TYPE_BYTES:
        return bytes_text(number);
    case HG_CONF_TYPE_UNITS:
        if (number == HG_CONF_UNLIMITED)
            return strdup("unlimited");
        return asprintf(&text, "%" PRIu64, number) < 0 ? NULL : text;
    case HG_CONF_TYPE_NUMBER:
        return asprintf(&text, "%" PRIu64, number) < 0 ? NULL : text;
    case HG_CONF_TYPE_MODE:
        return asprintf(&text, "%04" PRIo64, number) < 0 ? NULL : text;
    case HG_CONF_TYPE_DECIMAL:
        decimal_text((uint64_t)(*(const double *)field * (double)MILLIONTHS + 0.5), decimal);
        return strdup(decimal);
    case HG_CONF_TYPE_BOOL:
        return strdup(*(const bool *)field ? "true" : "false");
    case HG_CONF_TYPE_TEXT:
    case HG_CONF_TYPE_NAME:
        return strdup(*(char *const *)field);
    case HG_CONF_TYPE_SECRET:
        return strdup((*(char *const *)field)[0] ? HG_CONF_SECRET_SHOWN : "");
    case HG_CONF_TYPE_ADDRESS:
        return strdup(((const struct hg_conf_address *)field)->text);
    default:
        return list_text(option, object);
    }
}
