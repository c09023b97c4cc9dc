// webtext - text that grows: numbers, JSON and Prometheus' format, made without printf
// SPDX-License-Identifier: BSD-3-Clause
#include "app/webtext.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 4096
#define NUMBER_MAX  32

void hg_webtext_init(struct hg_webtext *text)
{
    *text = (struct hg_webtext){NULL, 0, 0, false};
}

void hg_webtext_fini(struct hg_webtext *text)
{
    free(text->at);
    hg_webtext_init(text);
}

char *hg_webtext_take(struct hg_webtext *text, size_t *ret_len)
{
    char *at = text->failed ? NULL : text->at;
    if (at == NULL)
        free(text->at);
    else
        *ret_len = text->len;
    hg_webtext_init(text);
    return at;
}

static bool make_room(struct hg_webtext *text, size_t len)
{
    if (text->failed)
        return false;
    if (text->cap - text->len >= len)
        return true;
    size_t cap = text->cap > 0 ? text->cap : FIRST_BYTES;
    while (cap - text->len < len)
        cap *= 2;
    char *more = realloc(text->at, cap);
    if (more == NULL) {
        text->failed = true;
        return false;
    }
    text->at = more;
    text->cap = cap;
    return true;
}

void hg_webtext_add(struct hg_webtext *text, const char *bytes, size_t len)
{
    if (!make_room(text, len))
        return;
    memcpy(text->at + text->len, bytes, len);
    text->len += len;
}

void hg_webtext_str(struct hg_webtext *text, const char *string)
{
    hg_webtext_add(text, string, strlen(string));
}

static void add_char(struct hg_webtext *text, char c)
{
    hg_webtext_add(text, &c, 1);
}

/* The digits in front of `end`; how many. */
static size_t digits(char *end, uint64_t value)
{
    char *at = end;
    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return (size_t)(end - at);
}

void hg_webtext_uint(struct hg_webtext *text, uint64_t value)
{
    char buffer[NUMBER_MAX];
    size_t len = digits(buffer + NUMBER_MAX, value);
    hg_webtext_add(text, buffer + NUMBER_MAX - len, len);
}

void hg_webtext_int(struct hg_webtext *text, int64_t value)
{
    if (value < 0)
        add_char(text, '-');
    hg_webtext_uint(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void hg_webtext_fixed(struct hg_webtext *text, uint64_t value, unsigned decimals)
{
    uint64_t power = 1;
    char buffer[NUMBER_MAX];
    for (unsigned i = 0; i < decimals; i++)
        power *= 10;
    hg_webtext_uint(text, value / power);
    if (value % power == 0)
        return;
    size_t len = digits(buffer + NUMBER_MAX, value % power);
    add_char(text, '.');
    for (size_t i = len; i < decimals; i++)
        add_char(text, '0');
    hg_webtext_add(text, buffer + NUMBER_MAX - len, len);
}

static bool is_plain(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

/* \xNN, whose backslash both formats want doubled. */
static void add_hex(struct hg_webtext *text, uint8_t byte)
{
    static const char hex[] = "0123456789abcdef";
    char out[] = {'\\', '\\', 'x', hex[byte >> 4], hex[byte & 15]};
    hg_webtext_add(text, out, sizeof out);
}

void hg_webtext_label(struct hg_webtext *text, const char *value)
{
    for (; *value != '\0'; value++) {
        if (is_plain((uint8_t)*value))
            add_char(text, *value);
        else if (*value == '\n')
            hg_webtext_str(text, "\\n");
        else if (*value == '"' || *value == '\\') {
            add_char(text, '\\');
            add_char(text, *value);
        } else
            add_hex(text, (uint8_t)*value);
    }
}

/* ---- JSON ---- */

static void add_comma(struct hg_webtext *text)
{
    if (text->len == 0 || text->failed)
        return;
    char last = text->at[text->len - 1];
    if (last != '{' && last != '[' && last != ':')
        add_char(text, ',');
}

void hg_json_open(struct hg_webtext *text, char bracket)
{
    add_comma(text);
    add_char(text, bracket);
}

void hg_json_close(struct hg_webtext *text, char bracket)
{
    add_char(text, bracket);
}

void hg_json_bytes(struct hg_webtext *text, struct hg_span bytes)
{
    add_comma(text);
    add_char(text, '"');
    for (size_t i = 0; i < bytes.len; i++) {
        if (is_plain(bytes.at[i]))
            add_char(text, (char)bytes.at[i]);
        else
            add_hex(text, bytes.at[i]);
    }
    add_char(text, '"');
}

void hg_json_string(struct hg_webtext *text, const char *string)
{
    hg_json_bytes(text, hg_span_str(string));
}

void hg_json_key(struct hg_webtext *text, const char *key)
{
    hg_json_string(text, key);
    add_char(text, ':');
}

void hg_json_uint(struct hg_webtext *text, uint64_t value)
{
    add_comma(text);
    hg_webtext_uint(text, value);
}

void hg_json_int(struct hg_webtext *text, int64_t value)
{
    add_comma(text);
    hg_webtext_int(text, value);
}

void hg_json_fixed(struct hg_webtext *text, uint64_t value, unsigned decimals)
{
    add_comma(text);
    hg_webtext_fixed(text, value, decimals);
}

void hg_json_bool(struct hg_webtext *text, bool value)
{
    add_comma(text);
    hg_webtext_str(text, value ? "true" : "false");
}

void hg_json_null(struct hg_webtext *text)
{
    add_comma(text);
    hg_webtext_str(text, "null");
}

void hg_json_units(struct hg_webtext *text, uint64_t value)
{
    if (value == UINT64_MAX)
        hg_json_null(text);
    else
        hg_json_uint(text, value);
}
