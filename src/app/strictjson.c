// strictjson - JSON without its surprises, and options of the table in JSON
// SPDX-License-Identifier: BSD-3-Clause
//
// jansson refuses repeated keys and trailing bytes when asked, but tells of them in its own words;
// here they become messages in ours, that name the key.
#include "app/strictjson.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define SAY(why, ...) snprintf((why)->text, sizeof(why)->text, __VA_ARGS__)

/* The last key in front of a position: whose value jansson could not read. */
static void key_before(struct hg_span text, int position, char *ret, size_t size)
{
    size_t at = position > 0 && (size_t)position < text.len ? (size_t)position : text.len;
    ret[0] = '\0';
    while (at && text.at[at - 1] != ':')
        at--;
    while (at && text.at[at - 1] != '"')
        at--;
    size_t end = at ? at - 1 : 0, start = end;
    while (start && text.at[start - 1] != '"')
        start--;
    if (start)
        snprintf(ret, size, "%.*s", (int)(end - start), (const char *)text.at + start);
}

static void explain(struct hg_span text, const json_error_t *error, const char *accepts,
                    struct hg_conf_why *why)
{
    char key[80];
    switch (json_error_code(error)) {
    case json_error_duplicate_key: {
        const char *start = strchr(error->text, '"'), *end = strrchr(error->text, '"');
        int len = start && end > start ? (int)(end - start - 1) : 0;
        SAY(why, "repeated key '%.*s' (accepted: each key once)", len, len ? start + 1 : "");
        return;
    }
    case json_error_end_of_input_expected:
        SAY(why, "bytes behind the JSON object, at byte %d (accepted: %s and nothing else)",
            error->position, accepts);
        return;
    case json_error_numeric_overflow:
        key_before(text, error->position, key, sizeof key);
        SAY(why, "number out of range in '%s' (accepted: %s)", key, accepts);
        return;
    default:
        key_before(text, error->position, key, sizeof key);
        SAY(why, "not JSON at byte %d%s%s%s: %.80s (accepted: %s)", error->position,
            key[0] ? ", behind key '" : "", key, key[0] ? "'" : "", error->text, accepts);
    }
}

json_t *hg_strictjson_load(struct hg_span text, size_t max, const char *accepts,
                           struct hg_conf_why *why)
{
    json_error_t error;
    if (text.len == 0) {
        SAY(why, "empty body (accepted: %s)", accepts);
        return NULL;
    }
    if (text.len > max) {
        SAY(why, "body of %zu bytes (accepted: up to %zu bytes)", text.len, max);
        return NULL;
    }
    json_t *root = json_loadb((const char *)text.at, text.len,
                              JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!root) {
        explain(text, &error, accepts, why);
        return NULL;
    }
    if (json_is_object(root))
        return root;
    json_decref(root);
    SAY(why, "not a JSON object (accepted: %s)", accepts);
    return NULL;
}

void hg_strictjson_unknown(const char *key, const char *accepts, struct hg_conf_why *why)
{
    SAY(why, "unknown key '%.80s' (accepted: %s)", key, accepts);
}

void hg_strictjson_refuse(const char *key, const json_t *value, const char *accepts,
                          struct hg_conf_why *why)
{
    char *shown = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    SAY(why, "bad value '%.80s' of '%s' (accepted: %s)", shown ? shown : "?", key, accepts);
    free(shown);
}

/* The value as the option's text, if it has the fitting JSON type. */
static const char *text_of(const struct hg_conf_option *option, const json_t *value,
                           char number[24])
{
    size_t count;
    bool takes_text = hg_conf_choice_names(option->type, &count) || hg_conf_option_is_text(option);
    bool takes_number = option->type == HG_CONF_TYPE_NUMBER || option->type == HG_CONF_TYPE_BYTES ||
                        option->type == HG_CONF_TYPE_UNITS || option->type == HG_CONF_TYPE_DECIMAL;
    const char *text = json_string_value(value);
    if (takes_text)
        return text;
    if (option->type == HG_CONF_TYPE_UNITS && text)
        return strcmp(text, "unlimited") == 0 ? text : NULL;
    if (option->type == HG_CONF_TYPE_BOOL && json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    if (option->type == HG_CONF_TYPE_DECIMAL && json_is_real(value)) {
        /* As many digits as a double keeps of what was written. */
        snprintf(number, 24, "%.15g", json_real_value(value));
        return number;
    }
    if (!takes_number || !json_is_integer(value))
        return NULL;
    snprintf(number, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    return number;
}

/* An element of a list: its options by name, and none that must be given is missing. */
static int set_element(enum hg_conf_scope scope, void *element, const json_t *value,
                       struct hg_conf_why *why)
{
    const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
    const char *name;
    json_t *field;
    if (!json_is_object(value)) {
        hg_strictjson_refuse(info->place, value, "a list of objects", why);
        return -EINVAL;
    }
    json_object_foreach((json_t *)value, name, field)
    {
        const struct hg_conf_option *option = hg_conf_option_find(scope, name);
        if (!option) {
            hg_conf_option_unknown(scope, name, why);
            return -EINVAL;
        }
        int rc = hg_strictjson_set(option, element, field, why);
        if (rc)
            return rc;
        *hg_conf_option_line(scope, option, element) = HG_CONF_BY_OPCODE;
    }
    for (size_t i = 0; i < info->count; i++) {
        char accepts[256];
        if (info->options[i].default_text ||
            *hg_conf_option_line(scope, &info->options[i], element))
            continue;
        hg_conf_value_accepts(&info->options[i], accepts, sizeof accepts);
        SAY(why, "%s without '%s' (accepted: %s)", info->noun, info->options[i].name, accepts);
        return -EINVAL;
    }
    return 0;
}

static int set_list(const struct hg_conf_option *option, void *object, const json_t *value,
                    struct hg_conf_why *why)
{
    enum hg_conf_scope scope = hg_conf_option_list(option);
    bool group = hg_conf_option_is_group(option);
    size_t size = hg_conf_scopes[scope].object_size, count = group ? 1 : json_array_size(value);
    if (!(group ? json_is_object(value) : json_is_array(value)) || count < option->min ||
        count > option->max) {
        char accepts[256];
        hg_conf_value_accepts(option, accepts, sizeof accepts);
        hg_strictjson_refuse(option->name, value, accepts, why);
        return -EINVAL;
    }
    char *array = calloc(count + 1, size);
    if (!array)
        return -ENOMEM;
    hg_conf_option_array_put(option, object, array, count);
    int rc = 0;
    for (size_t i = 0; !rc && i < count; i++) {
        rc = hg_conf_object_init(scope, array + i * size);
        if (!rc)
            rc =
                set_element(scope, array + i * size, group ? value : json_array_get(value, i), why);
    }
    return rc;
}

int hg_strictjson_set(const struct hg_conf_option *option, void *object, const json_t *value,
                      struct hg_conf_why *why)
{
    char number[24], accepts[256];
    if (hg_conf_option_list(option) != HG_CONF_SCOPE_COUNT)
        return set_list(option, object, value, why);
    const char *text = text_of(option, value, number);
    if (text)
        return hg_conf_value_set(option, object, text, why);
    hg_conf_value_accepts(option, accepts, sizeof accepts);
    if (option->type == HG_CONF_TYPE_SECRET)
        SAY(why, "bad value of '%s' (accepted: %s)", option->name, accepts);
    else
        hg_strictjson_refuse(option->name, value, accepts, why);
    return -EINVAL;
}

/* An object of what was given, in list or group. */
static json_t *get_element(enum hg_conf_scope scope, const void *element)
{
    const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
    json_t *values = json_object();
    bool ok = values != NULL;
    for (size_t j = 0; ok && j < info->count; j++)
        if (*hg_conf_option_line(scope, &info->options[j], element))
            ok = json_object_set_new(values, info->options[j].name,
                                     hg_strictjson_get(&info->options[j], element)) == 0;
    if (ok)
        return values;
    json_decref(values);
    return NULL;
}

static json_t *get_list(const struct hg_conf_option *option, const void *object)
{
    enum hg_conf_scope scope = hg_conf_option_list(option);
    const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
    size_t count;
    const char *array = hg_conf_option_array(option, object, &count);
    if (hg_conf_option_is_group(option))
        return count > 0 ? get_element(scope, array) : json_null();
    json_t *list = json_array();
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < count; i++)
        ok = json_array_append_new(list, get_element(scope, array + i * info->object_size)) == 0;
    if (ok)
        return list;
    json_decref(list);
    return NULL;
}

json_t *hg_strictjson_get(const struct hg_conf_option *option, const void *object)
{
    const char *field = (const char *)object + option->offset;
    uint64_t number;
    double decimal;
    bool truth;
    if (hg_conf_option_list(option) != HG_CONF_SCOPE_COUNT)
        return get_list(option, object);
    switch (option->type) {
    case HG_CONF_TYPE_NUMBER:
    case HG_CONF_TYPE_BYTES:
    case HG_CONF_TYPE_UNITS:
        memcpy(&number, field, sizeof number);
        return number == HG_CONF_UNLIMITED ? json_string("unlimited")
                                           : json_integer((json_int_t)number);
    case HG_CONF_TYPE_DECIMAL:
        memcpy(&decimal, field, sizeof decimal);
        return json_real(decimal);
    case HG_CONF_TYPE_BOOL:
        memcpy(&truth, field, sizeof truth);
        return json_boolean(truth);
    case HG_CONF_TYPE_SECRET:
        return json_string(*(char *const *)(const void *)field);
    default: {
        char *text = hg_conf_value_text(option, object);
        json_t *json = text ? json_string(text) : NULL;
        free(text);
        return json;
    }
    }
}
