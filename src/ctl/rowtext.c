// rowtext - rows, columns and values as an operator types and reads them
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/rowtext.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/option.h"
#include "ctl/table.h"

#define FILE_BYTES_MAX (20u << 20) /* the server takes no larger frame */

/* ---- messages in the arena ---- */

static void *take(struct hg_arena *arena, size_t count, size_t size)
{
    void *memory = hg_arena_array(arena, count, size);
    if (memory == NULL)
        abort();
    return memory;
}

void *hg_pb_new(struct hg_arena *arena, const ProtobufCMessageDescriptor *descriptor)
{
    void *message = take(arena, 1, descriptor->sizeof_message);
    protobuf_c_message_init(descriptor, message);
    return message;
}

/* Room for one more: a list doubles when its count is a power of two. */
static void *grown(struct hg_arena *arena, void *list, size_t count, size_t size)
{
    if ((count & (count - 1)) != 0)
        return list;
    void *more = take(arena, count > 0 ? 2 * count : 1, size);
    if (count > 0)
        memcpy(more, list, count * size);
    return more;
}

void hg_pb_append(struct hg_arena *arena, void *list, size_t *count, void *message)
{
    void **at = *(void ***)list;
    at = grown(arena, at, *count, sizeof *at);
    at[(*count)++] = message;
    *(void ***)list = at;
}

void hg_pb_append_bytes(struct hg_arena *arena, ProtobufCBinaryData **list, size_t *count,
                        ProtobufCBinaryData bytes)
{
    *list = grown(arena, *list, *count, sizeof **list);
    (*list)[(*count)++] = bytes;
}

/* ---- bytes ---- */

static int hex_of(const char *text, size_t len)
{
    if (len < 4 || text[0] != '\\' || text[1] != 'x' || !isxdigit((unsigned char)text[2]) ||
        !isxdigit((unsigned char)text[3]))
        return -1;
    char digits[3] = {text[2], text[3], '\0'};
    return (int)strtol(digits, NULL, 16);
}

ProtobufCBinaryData hg_rowtext_bytes(struct hg_arena *arena, const char *text, size_t len)
{
    ProtobufCBinaryData bytes = {0, take(arena, len + 1, 1)};
    for (size_t i = 0; i < len;) {
        int byte = hex_of(text + i, len - i);
        bytes.data[bytes.len++] = byte >= 0 ? (uint8_t)byte : (uint8_t)text[i];
        i += byte >= 0 ? 4 : 1;
    }
    return bytes;
}

ProtobufCBinaryData hg_rowtext_of(struct hg_arena *arena, const char *text)
{
    return hg_rowtext_bytes(arena, text, strlen(text));
}

static int read_bytes(struct hg_arena *arena, const char *path, ProtobufCBinaryData *ret)
{
    FILE *from = strcmp(path, "-") == 0 ? stdin : fopen(path, "rbe");
    if (from == NULL)
        return hg_ctl_say(HG_CTL_USAGE, "cannot read '%s': %s", path, strerror(errno));
    uint8_t *data = take(arena, FILE_BYTES_MAX, 1);
    size_t len = fread(data, 1, FILE_BYTES_MAX, from);
    bool failed = ferror(from) != 0, more = fgetc(from) != EOF;
    if (from != stdin)
        fclose(from);
    if (failed)
        return hg_ctl_say(HG_CTL_USAGE, "cannot read '%s'", path);
    if (more)
        return hg_ctl_say(HG_CTL_USAGE, "'%s' is longer than a value may be (20 MiB)", path);
    *ret = (ProtobufCBinaryData){len, data};
    return HG_CTL_OK;
}

bool hg_rowtext_split(struct hg_arena *arena, const char *text, size_t len,
                      ProtobufCBinaryData *ret_family, ProtobufCBinaryData *ret_qualifier)
{
    const char *colon = memchr(text, ':', len);
    size_t family = colon != NULL ? (size_t)(colon - text) : len;
    *ret_family = hg_rowtext_bytes(arena, text, family);
    if (colon != NULL)
        *ret_qualifier = hg_rowtext_bytes(arena, colon + 1, len - family - 1);
    return colon != NULL;
}

/* ---- columns and cells ---- */

/* A whole number or a fraction; false: neither. */
static bool set_number(const char *text, hg_pb_value *value)
{
    char *end;
    int64_t integer;
    if (hg_ctl_number(text, &integer)) {
        value->kind_case = HEADGATE__TABLE__V1__VALUE__KIND_INTEGER;
        value->integer = integer;
        return true;
    }
    if (text[0] == '\0' || text[strspn(text, "+-.0123456789eE")] != '\0' ||
        strpbrk(text, ".eE") == NULL)
        return false;
    double real = strtod(text, &end);
    if (*end != '\0' || !isfinite(real))
        return false;
    value->kind_case = HEADGATE__TABLE__V1__VALUE__KIND_REAL;
    value->real = real;
    return true;
}

static void set_bytes(hg_pb_value *value, ProtobufCBinaryData bytes)
{
    value->kind_case = HEADGATE__TABLE__V1__VALUE__KIND_BYTES;
    value->bytes = bytes;
}

int hg_rowtext_column(struct hg_arena *arena, const char *arg, hg_pb_column **ret)
{
    const char *equals = strchr(arg, '=');
    char how = equals != NULL && equals > arg ? equals[-1] : '\0';
    size_t len = equals == NULL ? 0 : (size_t)(equals - arg) - (how == ':' || how == '@');
    if (len == 0)
        return hg_ctl_say(HG_CTL_USAGE,
                          "'%s' is no column (accepted: COLUMN=TEXT, COLUMN:=NUMBER, COLUMN:=null, "
                          "COLUMN@=FILE)",
                          arg);
    hg_pb_column *column = HG_PB_NEW(arena, column);
    column->name = hg_rowtext_bytes(arena, arg, len);
    column->value = HG_PB_NEW(arena, value);
    *ret = column;
    if (how == '@') {
        ProtobufCBinaryData bytes;
        int code = read_bytes(arena, equals + 1, &bytes);
        if (code == HG_CTL_OK)
            set_bytes(column->value, bytes);
        return code;
    }
    if (how != ':') {
        set_bytes(column->value, hg_rowtext_of(arena, equals + 1));
        return HG_CTL_OK;
    }
    if (strcmp(equals + 1, "null") == 0 || set_number(equals + 1, column->value))
        return HG_CTL_OK;
    return hg_ctl_say(HG_CTL_USAGE,
                      "'%s' is no number (accepted: a whole number of 64 bits, a fraction, null; "
                      "for text use =)",
                      equals + 1);
}

int hg_rowtext_cell(struct hg_arena *arena, const char *arg, hg_pb_cell **ret)
{
    const char *equals = strchr(arg, '=');
    bool of_file = equals != NULL && equals > arg && equals[-1] == '@';
    size_t len = equals == NULL ? 0 : (size_t)(equals - arg) - of_file;
    hg_pb_cell *cell = HG_PB_NEW(arena, cell);
    if (len == 0 || !hg_rowtext_split(arena, arg, len, &cell->family, &cell->qualifier))
        return hg_ctl_say(HG_CTL_USAGE,
                          "'%s' is no cell (accepted: FAMILY:QUALIFIER=TEXT, "
                          "FAMILY:QUALIFIER@=FILE)",
                          arg);
    *ret = cell;
    if (of_file)
        return read_bytes(arena, equals + 1, &cell->value);
    cell->value = hg_rowtext_of(arena, equals + 1);
    return HG_CTL_OK;
}

int hg_rowtext_counter(struct hg_arena *arena, const char *arg, hg_pb_counter **ret)
{
    const char *equals = strchr(arg, '=');
    hg_pb_counter *counter = HG_PB_NEW(arena, counter);
    if (equals == NULL || !hg_rowtext_split(arena, arg, (size_t)(equals - arg), &counter->family,
                                            &counter->qualifier))
        return hg_ctl_say(HG_CTL_USAGE, "'%s' is no counter (accepted: FAMILY:QUALIFIER=N)", arg);
    if (!hg_ctl_number(equals + 1, &counter->amount))
        return hg_ctl_say(HG_CTL_USAGE, "'%s' is no whole number of 64 bits", equals + 1);
    *ret = counter;
    return HG_CTL_OK;
}

/* ---- conditions ---- */

size_t hg_rowtext_operator(const char *text, hg_pb_operator *ret)
{
    static const struct {
        const char *text;
        hg_pb_operator op;
    } operators[] = {
        {"!=", HEADGATE__TABLE__V1__OPERATOR__NOT_EQUAL},
        {"<=", HEADGATE__TABLE__V1__OPERATOR__LESS_OR_EQUAL},
        {">=", HEADGATE__TABLE__V1__OPERATOR__GREATER_OR_EQUAL},
        {"=", HEADGATE__TABLE__V1__OPERATOR__EQUAL},
        {"<", HEADGATE__TABLE__V1__OPERATOR__LESS},
        {">", HEADGATE__TABLE__V1__OPERATOR__GREATER},
    };
    for (size_t i = 0; i < HG_COUNT_OF(operators); i++) {
        size_t len = strlen(operators[i].text);
        if (strncmp(text, operators[i].text, len) == 0) {
            *ret = operators[i].op;
            return len;
        }
    }
    return 0;
}

/* A number if it looks like one, text in double quotes without them, other text as it is. */
static hg_pb_value *operand_of(struct hg_arena *arena, const char *text, bool only_bytes)
{
    hg_pb_value *value = HG_PB_NEW(arena, value);
    size_t len = strlen(text);
    bool quoted = len >= 2 && text[0] == '"' && text[len - 1] == '"';
    if (quoted)
        set_bytes(value, hg_rowtext_bytes(arena, text + 1, len - 2));
    else if (only_bytes || !set_number(text, value))
        set_bytes(value, hg_rowtext_bytes(arena, text, len));
    return value;
}

int hg_rowtext_condition(struct hg_arena *arena, const char *arg, bool cells,
                         hg_pb_filter_node **ret)
{
    hg_pb_filter_node *node = HG_PB_NEW(arena, filter_node);
    size_t len = strcspn(arg, "!=<>"), op = hg_rowtext_operator(arg + len, &node->op);
    bool fits = len > 0 && op > 0;
    if (fits && cells)
        fits = hg_rowtext_split(arena, arg, len, &node->family, &node->qualifier);
    else if (fits)
        node->qualifier = hg_rowtext_bytes(arena, arg, len);
    if (!fits)
        return hg_ctl_say(HG_CTL_USAGE,
                          "--where '%s' is no condition (accepted: %s, then =, !=, <, <=, > or >=, "
                          "then a value)",
                          arg, cells ? "FAMILY:QUALIFIER" : "COLUMN");
    node->kind = HEADGATE__TABLE__V1__FILTER_NODE__KIND__SINGLE_COLUMN_VALUE;
    node->value = operand_of(arena, arg + len + op, cells);
    node->filter_if_missing = true;
    *ret = node;
    return HG_CTL_OK;
}

/* ---- JSON ---- */

int hg_rowtext_json_value(struct hg_arena *arena, const json_t *json, const char *where,
                          hg_pb_value **ret)
{
    hg_pb_value *value = HG_PB_NEW(arena, value);
    if (json_is_integer(json)) {
        value->kind_case = HEADGATE__TABLE__V1__VALUE__KIND_INTEGER;
        value->integer = json_integer_value(json);
    } else if (json_is_real(json)) {
        value->kind_case = HEADGATE__TABLE__V1__VALUE__KIND_REAL;
        value->real = json_real_value(json);
    } else if (json_is_string(json)) {
        set_bytes(value,
                  hg_rowtext_bytes(arena, json_string_value(json), json_string_length(json)));
    } else if (!json_is_null(json)) {
        return hg_ctl_say(HG_CTL_USAGE, "%s: expected a string, a number or null", where);
    }
    *ret = value;
    return HG_CTL_OK;
}

char *hg_rowtext_number(const hg_pb_value *value)
{
    char text[48];
    if (value->kind_case == HEADGATE__TABLE__V1__VALUE__KIND_INTEGER) {
        snprintf(text, sizeof text, "%" PRId64, value->integer);
    } else {
        snprintf(text, sizeof text, "%.17g", value->real);
        /* the shortest text that means the same number */
        for (int digits = 1; digits < 17; digits++) {
            char shorter[48];
            snprintf(shorter, sizeof shorter, "%.*g", digits, value->real);
            if (strtod(shorter, NULL) == value->real) {
                snprintf(text, sizeof text, "%s", shorter);
                break;
            }
        }
        if (isfinite(value->real) && strpbrk(text, ".e") == NULL)
            strcat(text, ".0");
    }
    char *copy = strdup(text);
    if (copy == NULL)
        abort();
    return copy;
}

const char *hg_rowtext_kind(const hg_pb_value *value)
{
    switch (value != NULL ? value->kind_case : HEADGATE__TABLE__V1__VALUE__KIND__NOT_SET) {
    case HEADGATE__TABLE__V1__VALUE__KIND_INTEGER:
        return "integer";
    case HEADGATE__TABLE__V1__VALUE__KIND_REAL:
        return "real";
    case HEADGATE__TABLE__V1__VALUE__KIND_BYTES:
        return "bytes";
    default:
        return "null";
    }
}

json_t *hg_rowtext_json(const hg_pb_value *value)
{
    switch (value != NULL ? value->kind_case : HEADGATE__TABLE__V1__VALUE__KIND__NOT_SET) {
    case HEADGATE__TABLE__V1__VALUE__KIND_INTEGER:
        return json_integer(value->integer);
    case HEADGATE__TABLE__V1__VALUE__KIND_REAL:
        return isfinite(value->real) ? json_real(value->real)
                                     : json_string(isnan(value->real) ? "nan"
                                                   : value->real > 0  ? "inf"
                                                                      : "-inf");
    case HEADGATE__TABLE__V1__VALUE__KIND_BYTES:
        return hg_rowtext_json_bytes(value->bytes);
    default:
        return json_null();
    }
}

json_t *hg_rowtext_json_bytes(ProtobufCBinaryData bytes)
{
    json_t *json = NULL;
    bool plain = true;
    for (size_t i = 0; i < bytes.len; i++)
        plain &= bytes.data[i] >= ' ' && bytes.data[i] != '\\' && bytes.data[i] != 0x7f;
    if (plain)
        json = json_stringn(bytes.len > 0 ? (const char *)bytes.data : "", bytes.len);
    if (json != NULL)
        return json;
    char *escaped = hg_ctl_escape((const char *)bytes.data, bytes.len);
    json = json_string(escaped);
    free(escaped);
    return json;
}
