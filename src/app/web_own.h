// web_own - the HTTP thread's state, for web*.c
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_APP_WEB_OWN_H
#define HG_APP_WEB_OWN_H

#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <pthread.h>

#include "app/process.h"
#include "app/web.h"
#include "app/webalive.h"
#include "app/webask.h"
#include "app/webconn.h"
#include "app/webhistory.h"
#include "app/webtext.h"
#include "app/webwatch.h"

#define HG_WEB_TOKEN_HASH 32

struct hg_web {
    struct hg_process *process;
    struct hg_loop loop;
    struct hg_mailbox mailbox;
    pthread_t thread;
    bool runs, stopping;
    struct evhttp *http;
    struct hg_webconns conns;
    int fd; /* listens; the listener's */
    struct hg_addr bound;
    bool is_loopback;
    char host[256]; /* as configured, without the port */
    struct hg_timer second, late_timer;
    struct hg_letter stop_letter, directory_letter, give_letter;
    _Atomic bool directory_posted, give_posted;
    struct hg_list late; /* refusals that wait */
    struct hg_web_watch watch;
    struct hg_web_history history;
    struct hg_webask hot, slow;
    struct hg_webalive alive;
    uint64_t rated_us;                      /* time of the last look */
    uint64_t requests_seen, requests_per_s; /* of the process */
    bool op_seen[HG_OPS];                   /* was ever used */
    hg_counter requests, refused;
};

/* What a reply is made from: the directory and what else is in force, as of one moment. */
struct hg_web_view {
    struct hg_directory *directory; /* counted */
    uint64_t node_capacity, max_connections, slot_ms;
};

void hg_web_view_take(struct hg_web *web, struct hg_web_view *ret);
void hg_web_view_put(struct hg_web_view *view);

/* webroute.c */
void hg_web_on_request(struct evhttp_request *request, void *web);
/* Sends text as the reply, which is taken; 500 when it has failed. */
void hg_web_reply(struct hg_web *web, struct evhttp_request *request, int code, const char *type,
                  struct hg_webtext *text);
/* Refusals whose time has come; sets late_timer for the next. */
void hg_web_send_late(struct hg_web *web);
void hg_web_drop_late(struct hg_web *web);

/* webready.c: appends a line for each reason not to be ready, or calls it ready: true. */
bool hg_web_is_ready(struct hg_web *web, const struct hg_web_view *view, struct hg_webtext *lines);

/* webmetrics.c, webmetrics_stores.c, webmetrics_servers.c */
void hg_web_metrics(struct hg_web *web, const struct hg_web_view *view, struct hg_webtext *text);
void hg_web_metrics_servers(const struct hg_directory *directory, struct hg_webtext *text);
void hg_web_metrics_stores(const struct hg_web_view *view, struct hg_web *web,
                           struct hg_webtext *text);

/* webapi.c */
void hg_web_status(struct hg_web *web, const struct hg_web_view *view, struct hg_webtext *text);
void hg_web_tenants(struct hg_web *web, const struct hg_web_view *view, struct hg_webtext *text);
void hg_web_upstreams(struct hg_web *web, const struct hg_web_view *view, struct hg_webtext *text);

/* webwhy.c: the member "why" of a tenant of which so many requests are held. True when the tenant
   itself is held back: by its credits, its keys, its binds, its limits. */
bool hg_web_why(struct hg_webtext *text, struct hg_web_tenant *tenant, uint64_t held);

/* Evicted keys of the upstream's tenants: of all workers the one with the most. */
uint64_t hg_web_evicted(const struct hg_web *web, const struct hg_directory *directory,
                        const struct hg_upstream *upstream);
/* Units a second that no reservation holds; UINT64_MAX for unlimited. */
uint64_t hg_web_free_pool(const struct hg_web *web, const struct hg_web_view *view);
/* Sum of an outcome over all workers. */
uint64_t hg_web_outcome(const struct hg_process *process, unsigned outcome);

#endif
