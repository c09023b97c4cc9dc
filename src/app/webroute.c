// webroute - which request gets what: paths, methods, the headers of every reply
// SPDX-License-Identifier: BSD-3-Clause
#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <stdlib.h>
#include <string.h>

#include "app/web_own.h"
#include "app/webauth.h"
#include "app/webfiles.h"
#include "base/clock.h"

#define JSON       "application/json"
#define PLAIN      "text/plain; charset=utf-8"
#define PROMETHEUS "text/plain; version=0.0.4; charset=utf-8"
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                \
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
#define LATE_US 1000000 /* how long a refusal of a token waits */

/* ---- replies ---- */

static void free_bytes(const void *data, size_t len, void *extra)
{
    (void)len;
    (void)extra;
    free((void *)(uintptr_t)data);
}

static void set_headers(struct evhttp_request *request, const char *type, size_t len)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    char text[32];
    snprintf(text, sizeof text, "%zu", len);
    evhttp_add_header(headers, "Content-Type", type);
    evhttp_add_header(headers, "Content-Length", text);
    evhttp_add_header(headers, "Cache-Control", "no-store");
    evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
    evhttp_add_header(headers, "Referrer-Policy", "no-referrer");
    evhttp_add_header(headers, "Content-Security-Policy", POLICY);
    evhttp_add_header(headers, "Cross-Origin-Resource-Policy", "same-origin");
    evhttp_add_header(headers, "X-Frame-Options", "DENY");
}

/* Bytes that are kept elsewhere, or with `owned` freed when they are sent. */
static void send_bytes(struct hg_web *web, struct evhttp_request *request, int code,
                       const char *type, const char *bytes, size_t len, bool owned)
{
    bool has_body = evhttp_request_get_command(request) != EVHTTP_REQ_HEAD;
    struct evbuffer *body = has_body ? evbuffer_new() : NULL;
    hg_counter_add(&web->requests, 1);
    if (!hg_webconns_reply(&web->conns, request, has_body ? len : 0)) {
        static const char busy[] = "too much is being sent already: try again\n";
        if (owned)
            free((void *)(uintptr_t)bytes);
        bytes = busy;
        len = sizeof busy - 1;
        owned = false;
        code = 503;
        type = PLAIN;
        if (!hg_webconns_reply(&web->conns, request, 0))
            len = 0; /* cannot be: nothing is always let through */
    }
    set_headers(request, type, len);
    if (body != NULL &&
        evbuffer_add_reference(body, bytes, len, owned ? free_bytes : NULL, NULL) == 0)
        owned = false;
    if (owned)
        free((void *)(uintptr_t)bytes);
    evhttp_send_reply(request, code, NULL, body);
    if (body != NULL)
        evbuffer_free(body);
}

static void send_text(struct hg_web *web, struct evhttp_request *request, int code,
                      const char *text)
{
    send_bytes(web, request, code, PLAIN, text, strlen(text), false);
}

static void refuse(struct hg_web *web, struct evhttp_request *request, int code, const char *text)
{
    hg_counter_add(&web->refused, 1);
    send_text(web, request, code, text);
}

void hg_web_reply(struct hg_web *web, struct evhttp_request *request, int code, const char *type,
                  struct hg_webtext *text)
{
    size_t len = 0;
    char *bytes = hg_webtext_take(text, &len);
    if (bytes == NULL)
        send_text(web, request, 500, "no memory is left\n");
    else
        send_bytes(web, request, code, type, bytes, len, true);
}

/* ---- refusals that wait ---- */

struct late {
    struct hg_list node;
    struct evhttp_request *request;
    uint64_t due_us;
    int code;
    const char *text;
};

static void refuse_late(struct hg_web *web, struct evhttp_request *request, int code,
                        const char *text)
{
    struct late *late = malloc(sizeof *late);
    if (late == NULL) {
        refuse(web, request, code, text);
        return;
    }
    hg_loop_stamp(&web->loop);
    *late = (struct late){
        .request = request, .due_us = web->loop.now_us + LATE_US, .code = code, .text = text};
    bool is_first = hg_list_empty(&web->late);
    hg_list_append(&web->late, &late->node);
    if (is_first)
        hg_web_send_late(web);
}

void hg_web_send_late(struct hg_web *web)
{
    HG_LIST_EACH(node, &web->late)
    {
        struct late *late = HG_CONTAINER_OF(node, struct late, node);
        if (late->due_us > web->loop.now_us &&
            hg_loop_timer_arm(&web->late_timer, late->due_us - web->loop.now_us) == 0)
            return;
        hg_list_remove(node);
        refuse(web, late->request, late->code, late->text);
        free(late);
    }
}

void hg_web_drop_late(struct hg_web *web)
{
    HG_LIST_EACH(node, &web->late)
    {
        hg_list_remove(node);
        free(HG_CONTAINER_OF(node, struct late, node));
    }
}

/* ---- paths ---- */

static void healthz(struct hg_web *web, struct evhttp_request *request)
{
    size_t hung = hg_webalive_hung(&web->alive);
    if (hung == HG_WEBALIVE_NONE) {
        send_text(web, request, 200, "ok\n");
        return;
    }
    struct hg_webtext line;
    hg_webtext_init(&line);
    hg_webtext_str(&line, hung == 0 ? "the main thread" : "worker ");
    if (hung > 0)
        hg_webtext_uint(&line, hung - 1);
    hg_webtext_str(&line, " hangs\n");
    hg_web_reply(web, request, 503, PLAIN, &line);
}

static void readyz(struct hg_web *web, struct evhttp_request *request)
{
    struct hg_web_view view;
    struct hg_webtext lines;
    hg_webtext_init(&lines);
    hg_web_view_take(web, &view);
    bool ready = hg_web_is_ready(web, &view, &lines);
    hg_web_view_put(&view);
    if (ready)
        send_text(web, request, 200, "ready\n");
    else
        hg_web_reply(web, request, 503, PLAIN, &lines);
    hg_webtext_fini(&lines);
}

typedef void make_fn(struct hg_web *web, const struct hg_web_view *view, struct hg_webtext *text);

static void make(struct hg_web *web, struct evhttp_request *request, const char *type, make_fn *fn)
{
    struct hg_web_view view;
    struct hg_webtext text;
    hg_webtext_init(&text);
    hg_web_view_take(web, &view);
    if (!hg_web_watch_sync(&web->watch, view.directory))
        text.failed = true;
    else
        fn(web, &view, &text);
    hg_web_view_put(&view);
    hg_web_reply(web, request, 200, type, &text);
}

static void metrics(struct hg_web *web, struct evhttp_request *request)
{
    make(web, request, PROMETHEUS, hg_web_metrics);
}

static void status(struct hg_web *web, struct evhttp_request *request)
{
    make(web, request, JSON, hg_web_status);
}

static void tenants(struct hg_web *web, struct evhttp_request *request)
{
    make(web, request, JSON, hg_web_tenants);
}

static void upstreams(struct hg_web *web, struct evhttp_request *request)
{
    make(web, request, JSON, hg_web_upstreams);
}

/* since=SECONDS in the query; false when it is none. */
static bool get_since(struct evhttp_request *request, double *ret)
{
    const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(request));
    struct evkeyvalq pairs;
    bool done = true;
    *ret = -1;
    if (query == NULL)
        return true;
    if (evhttp_parse_query_str(query, &pairs) != 0)
        return false;
    const char *text = evhttp_find_header(&pairs, "since");
    if (text != NULL) {
        char *end;
        *ret = strtod(text, &end);
        done = end != text && *end == '\0' && *ret == *ret;
    }
    evhttp_clear_headers(&pairs);
    return done;
}

static void history(struct hg_web *web, struct evhttp_request *request)
{
    struct hg_webtext text;
    double since_s;
    if (!get_since(request, &since_s)) {
        refuse(web, request, 400, "since is no number (accepted: seconds since 1970)\n");
        return;
    }
    hg_webtext_init(&text);
    hg_web_history_text(&web->history, hg_wall_s(), since_s, &text);
    hg_web_reply(web, request, 200, JSON, &text);
}

static const struct path {
    const char *path;
    bool is_open; /* needs no token */
    void (*answer)(struct hg_web *web, struct evhttp_request *request);
} paths[] = {
    {"/healthz", true, healthz},
    {"/readyz", true, readyz},
    {"/metrics", false, metrics},
    {"/api/status.json", false, status},
    {"/api/tenants.json", false, tenants},
    {"/api/upstreams.json", false, upstreams},
    {"/api/hotkeys.json", false, hg_webask_hotkeys},
    {"/api/slow.json", false, hg_webask_slow},
    {"/api/history.json", false, history},
};

static const struct path *find_path(const char *path)
{
    for (size_t i = 0; i < HG_COUNT_OF(paths); i++)
        if (strcmp(paths[i].path, path) == 0)
            return &paths[i];
    return NULL;
}

static const struct hg_web_file *find_file(const char *path)
{
    for (size_t i = 0; i < hg_web_file_count; i++)
        if (strcmp(hg_web_files[i].path, path) == 0)
            return &hg_web_files[i];
    return NULL;
}

static void log_in(struct hg_web *web, struct evhttp_request *request)
{
    char cookie[HG_WEBAUTH_COOKIE_MAX];
    switch (hg_webauth_log_in(web, request, cookie)) {
    case HG_WEBAUTH_PASS:
        if (cookie[0] != '\0')
            evhttp_add_header(evhttp_request_get_output_headers(request), "Set-Cookie", cookie);
        send_text(web, request, 200, "welcome\n");
        return;
    case HG_WEBAUTH_MISSING:
        refuse(web, request, 400, "the token is missing (accepted: token=TOKEN as a form)\n");
        return;
    default:
        refuse_late(web, request, 403, "the token is wrong\n");
    }
}

static void answer(struct hg_web *web, struct evhttp_request *request, const char *path)
{
    enum evhttp_cmd_type method = evhttp_request_get_command(request);
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    const struct hg_web_file *file = find_file(path);
    const struct path *row = find_path(path);
    bool is_login = strcmp(path, "/login") == 0;
    if (is_login ? method != EVHTTP_REQ_POST
                 : method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
        evhttp_add_header(headers, "Allow", is_login ? "POST" : "GET, HEAD");
        refuse(web, request, 405,
               is_login ? "only POST is answered here\n" : "only GET and HEAD are answered here\n");
    } else if (is_login) {
        log_in(web, request);
    } else if (file != NULL) {
        send_bytes(web, request, 200, file->type, (const char *)file->data, file->len, false);
    } else if (row != NULL && row->is_open) {
        row->answer(web, request);
    } else {
        switch (hg_webauth_check(web, request)) {
        case HG_WEBAUTH_PASS:
            if (row != NULL)
                row->answer(web, request);
            else
                send_text(web, request, 404, "there is nothing here\n");
            return;
        case HG_WEBAUTH_MISSING:
            evhttp_add_header(headers, "WWW-Authenticate", "Bearer realm=\"headgate\"");
            refuse(web, request, 401, "the token is missing (Authorization: Bearer TOKEN)\n");
            return;
        default:
            evhttp_add_header(headers, "WWW-Authenticate",
                              "Bearer realm=\"headgate\", error=\"invalid_token\"");
            refuse_late(web, request, 401, "the token is wrong\n");
        }
    }
}

void hg_web_on_request(struct evhttp_request *request, void *arg)
{
    struct hg_web *web = arg;
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
    const char *path = uri != NULL ? evhttp_uri_get_path(uri) : NULL;
    hg_webconns_begin(&web->conns, request);
    if (!hg_webauth_host_is_ours(web, request))
        refuse(web, request, 421,
               "this host name is not served here (accepted: localhost, a loopback address, or the "
               "name in admin.address)\n");
    else
        answer(web, request, path == NULL || path[0] == '\0' ? "/" : path);
}
