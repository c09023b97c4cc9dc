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
    char *shown = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    SAY(why, "bad value '%.80s' of '%s' (accepted: %s)", shown ? shown : "?", key, accepts);
    free(shown);
}

/* The value as the option's text, if it has the fitting JSON type. */
static const char *text_of(const struct hg_conf_option *option, const json_t *value,
                           char number[24])
{
    size_t count;
    bool takes_text = hg_conf_choice_names(option->type, &count) ||
                      option->type == HG_CONF_TYPE_TEXT || option->type == HG_CONF_TYPE_NAME;
    bool takes_number = option->type == HG_CONF_TYPE_NUMBER || option->type == HG_CONF_TYPE_BYTES ||
                        option->type == HG_CONF_TYPE_UNITS;
    const char *text = json_string_value(value);
    if (takes_text)
        return text;
    if (option->type == HG_CONF_TYPE_UNITS && text)
        return strcmp(text, "unlimited") == 0 ? text : NULL;
    if (option->type == HG_CONF_TYPE_BOOL && json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    if (!takes_number || !json_is_integer(value))
        return NULL;
    snprintf(number, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    return number;
}

int hg_strictjson_set(const struct hg_conf_option *option, void *object, const json_t *value,
                      struct hg_conf_why *why)
{
    char number[24], accepts[256];
    const char *text = text_of(option, value, number);
    if (text)
        return hg_conf_value_set(option, object, text, why);
    hg_conf_value_accepts(option, accepts, sizeof accepts);
    hg_strictjson_refuse(option->name, value, accepts, why);
    return -EINVAL;
}

json_t *hg_strictjson_get(const struct hg_conf_option *option, const void *object)
{
    const char *field = (const char *)object + option->offset;
    uint64_t number;
    bool truth;
    switch (option->type) {
    case HG_CONF_TYPE_NUMBER:
    case HG_CONF_TYPE_BYTES:
    case HG_CONF_TYPE_UNITS:
        memcpy(&number, field, sizeof number);
        return number == HG_CONF_UNLIMITED ? json_string("unlimited")
                                           : json_integer((json_int_t)number);
    case HG_CONF_TYPE_BOOL:
        memcpy(&truth, field, sizeof truth);
        return json_boolean(truth);
    default: {
        char *text = hg_conf_value_text(option, object);
        json_t *json = text ? json_string(text) : NULL;
        free(text);
        return json;
    }
    }
}
