// config - the verbs about configuration files: check, reload, ring-diff
// SPDX-License-Identifier: BSD-3-Clause
//
// The server compares; what it answers is a JSON object of changes, warnings and rings, of which
// an older server says nothing.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/table.h"
#include "proto/opcode.h"
#include "proto/status.h"

#define CONFIG_MAX (1u << 20)

/* ---- asking ---- */

/* The whole file, malloc'd. An exit code. */
static int read_file(const char *path, char **ret, size_t *ret_len)
{
    FILE *from = strcmp(path, "-") == 0 ? stdin : fopen(path, "rbe");
    char *text = malloc(CONFIG_MAX + 1);
    if (text == NULL)
        abort();
    size_t len = 0;
    int rc = from == NULL ? errno : 0;
    if (rc == 0) {
        len = fread(text, 1, CONFIG_MAX + 1, from);
        rc = ferror(from) ? errno : 0;
        if (from != stdin)
            fclose(from);
    }
    if (rc == 0 && len > 0 && len <= CONFIG_MAX) {
        *ret = text;
        *ret_len = len;
        return HG_CTL_OK;
    }
    free(text);
    if (rc != 0)
        return hg_ctl_say(HG_CTL_USAGE, "cannot read '%s': %s", path, strerror(rc));
    return hg_ctl_say(HG_CTL_USAGE, "'%s' is %s", path,
                      len == 0 ? "empty" : "longer than a configuration may be (1 MiB)");
}

/* Sends and takes the object of the answer: an empty one from a server that says nothing. An exit
   code. */
static int ask(struct hg_ctl *ctl, const struct hg_ctl_request *request, const char *what,
               json_t **ret)
{
    struct hg_ctl_reply reply;
    int code = hg_ctl_ask(ctl, request, &reply);
    if (code != HG_CTL_OK)
        return code;
    if (reply.status != HG_STATUS_SUCCESS)
        return hg_ctl_refused(&reply, what);
    json_t *body = reply.value.len == 0
                       ? json_object()
                       : json_loadb((const char *)reply.value.at, reply.value.len, 0, NULL);
    if (!json_is_object(body)) {
        json_decref(body);
        return hg_ctl_say(HG_CTL_LOST, "%s: the answer is no JSON object", what);
    }
    *ret = body;
    return HG_CTL_OK;
}

static int ask_about_file(struct hg_ctl *ctl, const char *verb, json_t **ret)
{
    char *text = NULL, what[4200];
    size_t len = 0;
    if (ctl->arg_count != 1)
        return hg_ctl_say(HG_CTL_USAGE, "%s takes one file", verb);
    int code = read_file(ctl->args[0], &text, &len);
    if (code == HG_CTL_OK)
        code = hg_ctl_connect(ctl);
    if (code == HG_CTL_OK) {
        struct hg_ctl_request request = {.opcode = HG_OPCODE_CONFIG_VALIDATE,
                                         .value = hg_span(text, len)};
        snprintf(what, sizeof what, "%s '%s'", verb, ctl->args[0]);
        code = ask(ctl, &request, what, ret);
    }
    free(text);
    return code;
}

/* ---- showing ---- */

/* A member's text, escaped and malloc'd; "-" when it is none, "" in quotes when it is empty. */
static char *shown(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (json_is_string(value) && json_string_length(value) > 0)
        return hg_ctl_escape(json_string_value(value), json_string_length(value));
    char *text = value != NULL && !json_is_null(value) ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    char *escaped = hg_ctl_escape(text != NULL ? text : "-", strlen(text != NULL ? text : "-"));
    free(text);
    return escaped;
}

static void print_changes(const json_t *body)
{
    size_t i;
    json_t *change;
    json_array_foreach(json_object_get(body, "changes"), i, change)
    {
        char *option = shown(change, "option"), *before = shown(change, "before"),
             *after = shown(change, "after");
        bool later = json_is_false(json_object_get(change, "at_run_time"));
        printf("%s: %s -> %s%s\n", option, before, after, later ? " (at the next start)" : "");
        free(option);
        free(before);
        free(after);
    }
}

static void print_warnings(const json_t *body)
{
    size_t i;
    json_t *warning;
    json_array_foreach(json_object_get(body, "warnings"), i, warning)
    {
        char *text = hg_ctl_escape(json_string_value(warning), json_string_length(warning));
        printf("warning: %s\n", text);
        free(text);
    }
}

/* "upstream cache: 24.99 % of the keys move (24987 of 100000)" */
static void print_share(const json_t *ring)
{
    char *upstream = shown(ring, "upstream");
    printf("upstream %s: %.2f %% of the keys move (%" JSON_INTEGER_FORMAT
           " of %" JSON_INTEGER_FORMAT ")\n",
           upstream, json_number_value(json_object_get(ring, "percent")),
           json_integer_value(json_object_get(ring, "moved")),
           json_integer_value(json_object_get(ring, "keys")));
    free(upstream);
}

static void print_moves(const json_t *body)
{
    size_t i;
    json_t *ring;
    json_array_foreach(json_object_get(body, "rings"), i, ring)
    {
        if (json_integer_value(json_object_get(ring, "moved")) > 0)
            print_share(ring);
    }
}

static void add_percent(struct hg_ctl_table *table, const json_t *server, const char *name)
{
    const json_t *value = json_object_get(server, name);
    char text[32] = "-";
    if (json_is_number(value))
        snprintf(text, sizeof text, "%.2f", json_number_value(value));
    hg_ctl_table_add(table, text);
}

static void print_servers(const json_t *ring)
{
    static const char *const headings[] = {"SERVER", "BEFORE %", "AFTER %"};
    struct hg_ctl_table table;
    size_t i;
    json_t *server;
    hg_ctl_table_init(&table, HG_COUNT_OF(headings), headings);
    json_array_foreach(json_object_get(ring, "servers"), i, server)
    {
        const char *address = json_string_value(json_object_get(server, "server"));
        hg_ctl_table_add(&table, address != NULL ? address : "-");
        add_percent(&table, server, "before_percent");
        add_percent(&table, server, "after_percent");
    }
    hg_ctl_table_print(&table, stdout);
    hg_ctl_table_fini(&table);
}

/* Lets go of the body. An exit code. */
static int show(const struct hg_ctl *ctl, json_t *body)
{
    if (ctl->json)
        return hg_ctl_json_print_rounded(body);
    print_changes(body);
    print_moves(body);
    print_warnings(body);
    json_decref(body);
    return HG_CTL_OK;
}

/* ---- the verbs ---- */

int hg_ctl_reload(struct hg_ctl *ctl)
{
    struct hg_ctl_request request = {.opcode = HG_OPCODE_CONFIG_RELOAD};
    json_t *body = NULL;
    int code = hg_ctl_connect(ctl);
    if (code == HG_CTL_OK)
        code = ask(ctl, &request, "reload", &body);
    return code != HG_CTL_OK ? code : show(ctl, body);
}

int hg_ctl_check(struct hg_ctl *ctl)
{
    json_t *body = NULL;
    int code = ask_about_file(ctl, "check", &body);
    return code != HG_CTL_OK ? code : show(ctl, body);
}

int hg_ctl_ring_diff(struct hg_ctl *ctl)
{
    json_t *body = NULL, *ring;
    size_t i;
    int code = ask_about_file(ctl, "ring-diff", &body);
    if (code != HG_CTL_OK)
        return code;
    json_t *rings = json_object_get(body, "rings");
    if (!json_is_array(rings)) {
        json_decref(body);
        return hg_ctl_say(HG_CTL_LOST, "ring-diff: the server does not say which keys would move");
    }
    if (ctl->json) {
        json_incref(rings);
        json_decref(body);
        return hg_ctl_json_print_rounded(rings);
    }
    if (json_array_size(rings) == 0)
        puts("no key moves");
    json_array_foreach(rings, i, ring)
    {
        if (i > 0)
            putchar('\n');
        print_share(ring);
        print_servers(ring);
    }
    json_decref(body);
    return HG_CTL_OK;
}
