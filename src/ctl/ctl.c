// ctl - what the verbs of headgatectl share: options, exit codes, asking the server
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/ctl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "io/sock.h"
#include "proto/hello.h"
#include "proto/opcode.h"
#include "proto/status.h"

#define SERVER_DEFAULT "127.0.0.1:11211"
#define AGENT          "headgatectl"

static char *said_into;
static size_t said_size;

void hg_ctl_say_into(char *text, size_t size)
{
    said_into = text;
    said_size = size;
}

int hg_ctl_say(int code, const char *fmt, ...)
{
    va_list args;
    if (said_into != NULL) {
        va_start(args, fmt);
        vsnprintf(said_into, said_size, fmt, args);
        va_end(args);
        return code;
    }
    fflush(stdout);
    fputs("headgatectl: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    return code;
}

/* ---- connecting ---- */

static const char *server_of(const struct hg_ctl *ctl)
{
    return ctl->server != NULL ? ctl->server : SERVER_DEFAULT;
}

static int say_connect(const char *server, int rc)
{
    if (rc == -EINVAL)
        return hg_ctl_say(HG_CTL_USAGE,
                          "'%s' is no address (accepted: HOST:PORT, [IPV6]:PORT, unix:PATH)",
                          server);
    const char *why = rc == -ENOENT      ? "no such host or socket"
                      : rc == -ETIMEDOUT ? "no answer in time"
                                         : strerror(-rc);
    return hg_ctl_say(HG_CTL_LOST, "cannot connect to '%s': %s", server, why);
}

int hg_ctl_ask(struct hg_ctl *ctl, const struct hg_ctl_request *request, struct hg_ctl_reply *ret)
{
    if (hg_ctl_client_call(ctl->client, request, ret) != 0)
        return hg_ctl_say(HG_CTL_LOST, "lost '%s': %s", server_of(ctl),
                          hg_ctl_client_why(ctl->client));
    return HG_CTL_OK;
}

/* What came over the network must not move the cursor. */
static void tame(char *text)
{
    for (; *text != '\0'; text++)
        if (((unsigned char)*text < ' ' && *text != '\n') || *text == 0x7f)
            *text = '?';
}

char *hg_ctl_text_of(const struct hg_ctl_reply *reply)
{
    struct hg_span value = reply->value;
    char *text = value.len > 0 ? strndup((const char *)value.at, value.len)
                               : strdup(hg_status_text(reply->status));
    if (text == NULL)
        abort();
    tame(text);
    return text;
}

int hg_ctl_refused(const struct hg_ctl_reply *reply, const char *what)
{
    char *text = hg_ctl_text_of(reply);
    const char *hint = reply->status == HG_STATUS_NO_BUCKET ? "; use --bucket NAME" : "";
    hg_ctl_say(HG_CTL_REFUSED, "%s: %s%s (status 0x%02x)", what, text, hint, reply->status);
    free(text);
    return HG_CTL_REFUSED;
}

/* Statuses as they are, not translated for clients that know few. */
static int say_hello(struct hg_ctl *ctl)
{
    uint8_t features[2];
    struct hg_ctl_reply reply;
    hg_put_u16(features, 0x07); /* XERROR */
    struct hg_ctl_request hello = {.opcode = HG_OPCODE_HELLO,
                                   .key = HG_SPAN_LIT(AGENT),
                                   .value = hg_span(features, sizeof features)};
    int code = hg_ctl_ask(ctl, &hello, &reply);
    if (code == HG_CTL_OK && reply.status != HG_STATUS_SUCCESS)
        return hg_ctl_refused(&reply, "hello");
    return code;
}

static int select_bucket(struct hg_ctl *ctl)
{
    struct hg_ctl_reply reply;
    char what[300];
    struct hg_ctl_request select = {.opcode = HG_OPCODE_SELECT_BUCKET,
                                    .key = hg_span_str(ctl->bucket)};
    if (select.key.len == 0 || select.key.len > 250)
        return hg_ctl_say(HG_CTL_USAGE, "a bucket's name has 1 to 100 bytes");
    int code = hg_ctl_ask(ctl, &select, &reply);
    if (code != HG_CTL_OK || reply.status == HG_STATUS_SUCCESS)
        return code;
    snprintf(what, sizeof what, "select bucket '%s'", ctl->bucket);
    return hg_ctl_refused(&reply, what);
}

static int log_in(struct hg_ctl *ctl)
{
    char *password = NULL, text[200];
    struct hg_ctl_prompt prompt = {.text = text, .from_environment = true};
    snprintf(text, sizeof text, "Password of %s: ", ctl->user);
    if (ctl->password != NULL)
        return hg_ctl_login(ctl, ctl->password);
    int code = hg_ctl_password(ctl, &prompt, &password);
    if (code == HG_CTL_OK)
        code = hg_ctl_login(ctl, password);
    if (code == HG_CTL_OK && ctl->keeps_password)
        ctl->password = password;
    else
        hg_ctl_password_free(password);
    return code;
}

/* TLS with the server; an exit code. */
static int secure(struct hg_ctl *ctl)
{
    struct hg_tls_conf conf = {.certificate = ctl->tls_certificate,
                               .key = ctl->tls_key,
                               .ca = ctl->tls_ca,
                               .peer =
                                   ctl->tls_insecure ? HG_TLS_PEER_IGNORED : HG_TLS_PEER_REQUIRED};
    struct hg_tls_ctx *ctx;
    char why[HG_TLS_WHY_BYTES], host[256];
    uint16_t port;
    bool is_unix;
    if (hg_tls_ctx_new(&conf, &ctx, why) != 0)
        return hg_ctl_say(HG_CTL_USAGE, "%s", why);
    if (hg_addr_split(server_of(ctl), HG_CTL_PORT_DEFAULT, host, &port, &is_unix) != 0 || is_unix)
        strcpy(host, "localhost");
    int rc = hg_ctl_client_secure(ctl->client, ctx, host);
    hg_tls_ctx_unref(ctx);
    if (rc != 0)
        return hg_ctl_say(HG_CTL_LOST, "no TLS with '%s': %s", server_of(ctl),
                          hg_ctl_client_why(ctl->client));
    return HG_CTL_OK;
}

int hg_ctl_connect(struct hg_ctl *ctl)
{
    int rc = hg_ctl_client_open(server_of(ctl), &ctl->client);
    if (rc != 0)
        return say_connect(server_of(ctl), rc);
    int code = ctl->tls ? secure(ctl) : HG_CTL_OK;
    if (code == HG_CTL_OK)
        code = say_hello(ctl);
    if (code == HG_CTL_OK && ctl->user != NULL)
        code = log_in(ctl);
    if (code == HG_CTL_OK && ctl->bucket != NULL)
        code = select_bucket(ctl);
    return code;
}

/* ---- statistics ---- */

static char *copy(struct hg_span from)
{
    char *text = malloc(from.len + 1);
    if (text == NULL)
        abort();
    if (from.len > 0)
        memcpy(text, from.at, from.len);
    text[from.len] = '\0';
    return text;
}

static void add_row(struct hg_ctl_rows *rows, const struct hg_ctl_reply *reply)
{
    if (rows->count == rows->room) {
        rows->room = rows->room > 0 ? rows->room * 2 : 64;
        rows->row = realloc(rows->row, rows->room * sizeof *rows->row);
        if (rows->row == NULL)
            abort();
    }
    rows->row[rows->count++] =
        (struct hg_ctl_row){copy(reply->key), copy(reply->value), reply->key.len, reply->value.len};
}

int hg_ctl_fetch(struct hg_ctl *ctl, const char *group, struct hg_ctl_rows *rows,
                 char **ret_refused)
{
    struct hg_ctl_reply reply;
    struct hg_ctl_request request = {.opcode = HG_OPCODE_STAT, .key = hg_span_str(group)};
    *rows = (struct hg_ctl_rows){NULL, 0, 0};
    if (request.key.len > 250)
        return hg_ctl_say(HG_CTL_USAGE, "a group's name and argument have at most 250 bytes");
    int code = hg_ctl_ask(ctl, &request, &reply);
    for (;;) {
        if (code != HG_CTL_OK)
            return code;
        if (reply.status != HG_STATUS_SUCCESS) {
            char what[300];
            if (ret_refused != NULL) {
                *ret_refused = hg_ctl_text_of(&reply);
                return HG_CTL_REFUSED;
            }
            snprintf(what, sizeof what, "stats%s%s", group[0] != '\0' ? " " : "", group);
            return hg_ctl_refused(&reply, what);
        }
        if (reply.key.len == 0 && reply.value.len == 0)
            return HG_CTL_OK;
        add_row(rows, &reply);
        if (hg_ctl_client_receive(ctl->client, &reply) != 0)
            code = hg_ctl_say(HG_CTL_LOST, "lost '%s': %s", server_of(ctl),
                              hg_ctl_client_why(ctl->client));
    }
}

/* ---- JSON ---- */

static int print_json(json_t *json, size_t flags)
{
    int rc = json_dumpf(json, stdout, JSON_INDENT(2) | flags);
    json_decref(json);
    putchar('\n'); /* a full disk is noticed at the end of the program */
    return rc == 0 || ferror(stdout) ? HG_CTL_OK : hg_ctl_say(HG_CTL_LOST, "no memory is left");
}

int hg_ctl_json_print(json_t *json)
{
    return print_json(json, 0);
}

int hg_ctl_json_print_rounded(json_t *json)
{
    return print_json(json, JSON_REAL_PRECISION(12));
}
