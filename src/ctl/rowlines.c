// rowlines - operations on many rows as JSON lines: read from standard input, results printed
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/rowlines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES (20 << 20)

/* ---- input ---- */

static int add_line(const char *line, size_t len, const char *where, hg_rowlines_add_fn add,
                    void *user)
{
    json_error_t error;
    if (len > (size_t)LINE_MAX_BYTES)
        return hg_ctl_say(HG_CTL_USAGE, "%s is longer than a request may be", where);
    json_t *object = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL)
        return hg_ctl_say(HG_CTL_USAGE, "%s: no JSON: %s", where, error.text);
    int code = json_is_object(object) ? add(user, object, where)
                                      : hg_ctl_say(HG_CTL_USAGE, "%s: expected an object", where);
    json_decref(object);
    return code;
}

int hg_rowlines_read(const struct hg_rowcall *call, hg_rowlines_add_fn add, void *user)
{
    char *line = NULL, where[40];
    size_t room = 0;
    ssize_t len;
    bool any = false;
    int code = HG_CTL_OK;
    if (call->arg_count > 0)
        return hg_ctl_say(HG_CTL_USAGE, "%s takes a table, not '%s' too", call->verb,
                          call->args[0]);
    for (unsigned number = 1; code == HG_CTL_OK && (len = getline(&line, &room, stdin)) >= 0;
         number++) {
        if (len <= LINE_MAX_BYTES && strspn(line, " \t\r\n") == (size_t)len)
            continue;
        snprintf(where, sizeof where, "line %u", number);
        code = add_line(line, (size_t)len, where, add, user);
        any = true;
    }
    free(line);
    if (code == HG_CTL_OK && ferror(stdin))
        return hg_ctl_say(HG_CTL_USAGE, "cannot read standard input");
    if (code == HG_CTL_OK && !any)
        return hg_ctl_say(HG_CTL_USAGE, "%s: standard input holds no operation", call->verb);
    return code;
}

const char *hg_rowlines_member(const json_t *object, const char *name, const char *where)
{
    const json_t *member = json_object_get(object, name);
    if (json_is_string(member))
        return json_string_value(member);
    hg_ctl_say(HG_CTL_USAGE, "%s: expected \"%s\" with a string", where, name);
    return NULL;
}

/* ---- results ---- */

json_t *hg_rowlines_result(uint32_t status, ProtobufCBinaryData message, uint32_t affected)
{
    json_t *object = json_object();
    json_object_set_new(object, "status", json_integer(status));
    if (status != 0)
        json_object_set_new(object, "message", hg_rowtext_json_bytes(message));
    json_object_set_new(object, "affected", json_integer(affected));
    return object;
}

int hg_rowlines_print(const struct hg_rowcall *call, json_t *results)
{
    size_t i, count = json_array_size(results), refused = 0;
    json_t *item;
    int code = HG_CTL_OK;
    json_array_foreach(results, i, item)
    {
        refused += json_integer_value(json_object_get(item, "status")) != 0;
        if (!call->ctl->json) {
            json_dumpf(item, stdout, 0);
            putchar('\n');
        }
    }
    if (call->ctl->json)
        code = hg_ctl_json_print(results);
    else
        json_decref(results);
    if (code == HG_CTL_OK && refused > 0)
        return hg_ctl_say(HG_CTL_REFUSED, "%s %s: %zu of %zu operations were refused", call->verb,
                          call->table, refused, count);
    return code;
}
