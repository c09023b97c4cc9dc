// slowstore - a real memcached made slow: stands before it and takes its time
// SPDX-License-Identifier: BSD-3-Clause
//
//   client ─► frames, in order ─► slots and times (slowservice.h) ─► memcached ─► client
//
// Speaks the memcached binary protocol as far as to cut requests. Each client connection has its
// own to the memcached. A request with a key gets a slot and takes its time; then it is handed to
// the memcached, but never before the requests that came before it on its connection, as the
// protocol demands: so one that is done lies ready behind one that is slow, without a slot. What
// has no key (noop, version) takes no slot, only its turn. Replies go back as they come. A client
// that leaves takes along what waits; what is in service keeps its slot to the end, as in a store
// that has begun, and is then dropped.
//
// A second port takes orders, one a line, so that a test can make it slower, quicker, or stop:
//
//   set service-ms|slots|knee-fall|noise N    slow PREFIX MS    usual PREFIX    pause    resume
//   stats: lines `name value`, then `end`      reset: the maxima begin anew
//
// Prints `listening PORT control PORT`. For tests; one thread.
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <event2/util.h>
#include <getopt.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "slowservice.h"

#define HEADER_BYTES 24
#define MAGIC        0x80
#define HEAD_MAX     (HEADER_BYTES + 255 + 256) /* header, extras, and of the key what matters */
#define BODY_MAX     (64u << 20)

struct store {
    struct event_base *base;
    struct event *timer;
    uint64_t timer_us; /* when it is set for; UINT64_MAX: it is not */
    struct hg_slow slow;
    struct sockaddr_storage backend;
    socklen_t backend_len;
    struct hg_list conns;
    uint64_t connections, accepted, unkeyed, dropped, garbage;
};

struct conn {
    struct hg_list node;
    struct store *store;
    struct bufferevent *client, *backend;
    struct evbuffer *held;   /* frames of `requests`, in their order */
    struct hg_list requests; /* not yet handed to the memcached */
};

struct request {
    struct hg_slow_job job;
    struct hg_list node; /* in its connection */
    struct conn *conn;   /* NULL: it has left */
    size_t len;
    bool ready;
};

static void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

static void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("slowstore: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(2);
}

static void *need(void *memory)
{
    if (!memory)
        fail("out of memory");
    return memory;
}

// ---- requests ----

static void conn_free(struct conn *conn)
{
    HG_LIST_EACH(node, &conn->requests)
    {
        struct request *request = HG_CONTAINER_OF(node, struct request, node);
        hg_list_remove(node);
        conn->store->dropped++;
        if (request->ready || hg_slow_leave(&conn->store->slow, &request->job))
            free(request);
        else
            request->conn = NULL;
    }
    hg_list_remove(&conn->node);
    conn->store->connections--;
    bufferevent_free(conn->client);
    bufferevent_free(conn->backend);
    evbuffer_free(conn->held);
    free(conn);
}

/* Hands over what is ready, up to the first that is not. */
static void conn_forward(struct conn *conn)
{
    if (conn->store->slow.paused)
        return;
    HG_LIST_EACH(node, &conn->requests)
    {
        struct request *request = HG_CONTAINER_OF(node, struct request, node);
        if (!request->ready)
            return;
        evbuffer_remove_buffer(conn->held, bufferevent_get_output(conn->backend), request->len);
        hg_list_remove(node);
        free(request);
    }
}

static void set_timer(struct store *store, uint64_t now_us)
{
    uint64_t next_us = hg_slow_next_us(&store->slow);
    if (next_us == store->timer_us)
        return;
    store->timer_us = next_us;
    if (next_us == UINT64_MAX) {
        evtimer_del(store->timer);
        return;
    }
    uint64_t wait_us = next_us > now_us ? next_us - now_us : 0;
    struct timeval wait = {(time_t)(wait_us / 1000000), (suseconds_t)(wait_us % 1000000)};
    evtimer_add(store->timer, &wait);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct store *store = arg;
    struct hg_slow_job *job;
    uint64_t now_us = hg_now_us();
    (void)fd, (void)what;
    store->timer_us = UINT64_MAX;
    while ((job = hg_slow_due(&store->slow, now_us))) {
        struct request *request = HG_CONTAINER_OF(job, struct request, job);
        request->ready = true;
        if (request->conn)
            conn_forward(request->conn);
        else
            free(request);
    }
    set_timer(store, now_us);
}

/* One frame from the client; false: there is no whole one. */
static bool take_frame(struct conn *conn, struct evbuffer *input, uint64_t now_us)
{
    struct store *store = conn->store;
    uint8_t head[HEAD_MAX];
    ev_ssize_t got = evbuffer_copyout(input, head, sizeof head);
    if (got < HEADER_BYTES)
        return false;
    uint32_t body = hg_get_u32(head + 8);
    if (head[0] != MAGIC || body > BODY_MAX) {
        store->garbage++;
        conn_free(conn);
        return false;
    }
    if (evbuffer_get_length(input) < HEADER_BYTES + (size_t)body)
        return false;

    struct request *request = need(calloc(1, sizeof *request));
    size_t key_len = hg_get_u16(head + 2), key_at = HEADER_BYTES + (size_t)head[4];
    request->conn = conn;
    request->len = HEADER_BYTES + (size_t)body;
    hg_list_append(&conn->requests, &request->node);
    evbuffer_remove_buffer(input, conn->held, request->len);
    if (key_len == 0 || key_at + key_len > request->len) {
        store->unkeyed++;
        request->ready = true;
        conn_forward(conn);
        return true;
    }
    if (key_at + key_len > (size_t)got)
        key_len = (size_t)got - key_at;
    uint32_t group = hg_slow_group_of(&store->slow, head + key_at, key_len);
    hg_slow_arrive(&store->slow, &request->job, group, now_us);
    return true;
}

static void on_client_read(struct bufferevent *bev, void *arg)
{
    struct conn *conn = arg;
    struct store *store = conn->store;
    uint64_t now_us = hg_now_us();
    while (take_frame(conn, bufferevent_get_input(bev), now_us)) {
    }
    set_timer(store, now_us);
}

static void on_backend_read(struct bufferevent *bev, void *arg)
{
    struct conn *conn = arg;
    bufferevent_write_buffer(conn->client, bufferevent_get_input(bev));
}

static void on_conn_event(struct bufferevent *bev, short what, void *arg)
{
    (void)bev;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        conn_free(arg);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer,
                      int peer_len, void *arg)
{
    struct store *store = arg;
    struct conn *conn = need(calloc(1, sizeof *conn));
    int one = 1;
    (void)listener, (void)peer, (void)peer_len;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    conn->store = store;
    hg_list_init(&conn->requests);
    hg_list_append(&store->conns, &conn->node);
    store->connections++;
    store->accepted++;
    conn->held = need(evbuffer_new());
    conn->client = need(bufferevent_socket_new(store->base, fd, BEV_OPT_CLOSE_ON_FREE));
    conn->backend = need(bufferevent_socket_new(store->base, -1, BEV_OPT_CLOSE_ON_FREE));
    bufferevent_setcb(conn->client, on_client_read, NULL, on_conn_event, conn);
    bufferevent_setcb(conn->backend, on_backend_read, NULL, on_conn_event, conn);
    if (bufferevent_socket_connect(conn->backend, (struct sockaddr *)&store->backend,
                                   (int)store->backend_len) != 0) {
        conn_free(conn);
        return;
    }
    if (store->backend.ss_family != AF_UNIX)
        setsockopt(bufferevent_getfd(conn->backend), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    bufferevent_enable(conn->backend, EV_READ | EV_WRITE);
    bufferevent_enable(conn->client, EV_READ | EV_WRITE);
}

// ---- orders ----

/* A number that is not negative. */
static bool parse_number(const char *text, double *ret_number)
{
    char *end;
    errno = 0;
    double number = strtod(text, &end);
    if (end == text || *end || errno || !isfinite(number) || number < 0 || number > 1e9)
        return false;
    *ret_number = number;
    return true;
}

static bool set_option(struct hg_slow_conf *conf, const char *name, const char *text)
{
    double number;
    if (strcmp(name, "times") == 0) {
        conf->exponential = strcmp(text, "exponential") == 0;
        return conf->exponential || strcmp(text, "constant") == 0;
    }
    if (!parse_number(text, &number))
        return false;
    if (strcmp(name, "service-ms") == 0)
        conf->service_us = number * 1000;
    else if (strcmp(name, "slots") == 0)
        conf->slots = (uint32_t)number;
    else if (strcmp(name, "knee-fall") == 0)
        conf->knee_fall = number;
    else if (strcmp(name, "noise") == 0)
        conf->noise = number / 100;
    else
        return false;
    return true;
}

static void tell_stats(const struct store *store, struct evbuffer *out)
{
    const struct hg_slow *slow = &store->slow;
    uint64_t arrived = 0, served = 0;
    for (uint32_t i = 0; i < slow->group_count; i++) {
        const struct hg_slow_group *group = &slow->groups[i];
        arrived += group->arrived;
        served += group->served;
        evbuffer_add_printf(out,
                            "%s.arrived %llu\n%s.served %llu\n%s.inside %llu\n"
                            "%s.in_service %llu\n%s.max_in_service %llu\n",
                            group->prefix, (unsigned long long)group->arrived, group->prefix,
                            (unsigned long long)group->served, group->prefix,
                            (unsigned long long)group->inside, group->prefix,
                            (unsigned long long)group->in_service, group->prefix,
                            (unsigned long long)group->max_in_service);
    }
    evbuffer_add_printf(out,
                        "arrived %llu\nserved %llu\ninside %llu\nmax_inside %llu\n"
                        "in_service %u\nqueued %u\nconnections %llu\naccepted %llu\n"
                        "unkeyed %llu\ndropped %llu\ngarbage %llu\npaused %d\nend\n",
                        (unsigned long long)arrived, (unsigned long long)served,
                        (unsigned long long)slow->inside, (unsigned long long)slow->max_inside,
                        slow->in_service, slow->queued, (unsigned long long)store->connections,
                        (unsigned long long)store->accepted, (unsigned long long)store->unkeyed,
                        (unsigned long long)store->dropped, (unsigned long long)store->garbage,
                        slow->paused);
}

static void resume(struct store *store, uint64_t now_us)
{
    hg_slow_resume(&store->slow, now_us);
    HG_LIST_EACH(node, &store->conns)
    {
        conn_forward(HG_CONTAINER_OF(node, struct conn, node));
    }
}

static void reset_maxima(struct hg_slow *slow)
{
    slow->max_inside = slow->inside;
    for (uint32_t i = 0; i < slow->group_count; i++)
        slow->groups[i].max_in_service = slow->groups[i].in_service;
}

/* Carries out one line; false: it is none. */
static bool obey(struct store *store, char *line, struct evbuffer *out)
{
    struct hg_slow *slow = &store->slow;
    uint64_t now_us = hg_now_us();
    char *rest = line, *order = strsep(&rest, " ");
    char *name = rest ? strsep(&rest, " ") : NULL;
    double number;

    if (strcmp(order, "stats") == 0 && !name) {
        tell_stats(store, out);
        return true;
    }
    if (strcmp(order, "pause") == 0 && !name)
        hg_slow_pause(slow, now_us);
    else if (strcmp(order, "resume") == 0 && !name)
        resume(store, now_us);
    else if (strcmp(order, "reset") == 0 && !name)
        reset_maxima(slow);
    else if (strcmp(order, "usual") == 0 && name && !rest)
        return hg_slow_set_group(slow, name, -1) && evbuffer_add_printf(out, "ok\n") > 0;
    else if (strcmp(order, "slow") == 0 && rest && parse_number(rest, &number))
        return hg_slow_set_group(slow, name, number * 1000) && evbuffer_add_printf(out, "ok\n") > 0;
    else if (strcmp(order, "set") == 0 && rest && set_option(&slow->conf, name, rest))
        hg_slow_fill(slow, now_us);
    else
        return false;
    set_timer(store, now_us);
    evbuffer_add_printf(out, "ok\n");
    return true;
}

static void on_order(struct bufferevent *bev, void *arg)
{
    char *line;
    while ((line = evbuffer_readln(bufferevent_get_input(bev), NULL, EVBUFFER_EOL_CRLF))) {
        if (!obey(arg, line, bufferevent_get_output(bev)))
            evbuffer_add_printf(bufferevent_get_output(bev), "error\n");
        free(line);
    }
}

static void on_control_event(struct bufferevent *bev, short what, void *arg)
{
    (void)arg;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        bufferevent_free(bev);
}

static void on_control(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer,
                       int peer_len, void *arg)
{
    struct store *store = arg;
    (void)listener, (void)peer, (void)peer_len;
    struct bufferevent *bev = need(bufferevent_socket_new(store->base, fd, BEV_OPT_CLOSE_ON_FREE));
    bufferevent_setcb(bev, on_order, NULL, on_control_event, store);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
}

// ---- start ----

static void parse_address(const char *text, struct sockaddr_storage *ret_address,
                          socklen_t *ret_len)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    const char *colon = strrchr(text, ':');
    memset(ret_address, 0, sizeof *ret_address);
    if (strncmp(text, "unix:", 5) == 0) {
        struct sockaddr_un *un = (struct sockaddr_un *)ret_address;
        if (strlen(text + 5) >= sizeof un->sun_path)
            fail("address '%s' is too long", text);
        un->sun_family = AF_UNIX;
        strcpy(un->sun_path, text + 5);
        *ret_len = sizeof *un;
        return;
    }
    char *host = colon ? need(strndup(text, (size_t)(colon - text))) : NULL;
    if (!host || getaddrinfo(host, colon + 1, &hints, &found) != 0)
        fail("no address: '%s' (accepted: IPV4:PORT, unix:PATH)", text);
    memcpy(ret_address, found->ai_addr, found->ai_addrlen);
    *ret_len = found->ai_addrlen;
    freeaddrinfo(found);
    free(host);
}

/* The port that it has got. */
static unsigned int listen_on(struct store *store, const char *text, evconnlistener_cb on_connect)
{
    struct sockaddr_storage address;
    socklen_t len;
    parse_address(text, &address, &len);
    struct evconnlistener *listener = evconnlistener_new_bind(
        store->base, on_connect, store, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 512,
        (struct sockaddr *)&address, (int)len);
    if (!listener)
        fail("cannot listen on '%s': %s", text, strerror(errno));
    len = sizeof address;
    getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&address, &len);
    return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

static void start_loop(struct store *store)
{
    struct event_config *config = need(event_config_new());
    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    store->base = need(event_base_new_with_config(config));
    event_config_free(config);
    store->timer = need(evtimer_new(store->base, on_timer, store));
    store->timer_us = UINT64_MAX;
    hg_list_init(&store->conns);
}

static const struct option options[] = {
    {"listen", required_argument, NULL, 'l'},      {"control", required_argument, NULL, 'c'},
    {"backend", required_argument, NULL, 'b'},     {"seed", required_argument, NULL, 'r'},
    {"slow-prefix", required_argument, NULL, 'p'}, {"slow-ms", required_argument, NULL, 'm'},
    {"service-ms", required_argument, NULL, 's'},  {"slots", required_argument, NULL, 's'},
    {"knee-fall", required_argument, NULL, 's'},   {"noise", required_argument, NULL, 's'},
    {"times", required_argument, NULL, 's'},       {NULL, 0, NULL, 0}};

int main(int argc, char **argv)
{
    static struct store store;
    const struct hg_slow_conf usual = {.service_us = 10000, .slots = 20, .exponential = false};
    const char *listen_at = "127.0.0.1:0", *control_at = "127.0.0.1:0", *backend = NULL;
    const char *prefix = NULL;
    double number = 0;
    int option, which;

    signal(SIGPIPE, SIG_IGN);
    hg_slow_init(&store.slow, &usual, 1);
    while ((option = getopt_long(argc, argv, "", options, &which)) != -1) {
        if (option == 'l')
            listen_at = optarg;
        else if (option == 'c')
            control_at = optarg;
        else if (option == 'b')
            backend = optarg;
        else if (option == 'p')
            prefix = optarg;
        else if (option == 's' && set_option(&store.slow.conf, options[which].name, optarg))
            continue;
        else if (option == '?' || option == 's' || !parse_number(optarg, &number))
            fail("option '%s' with '%s'", argv[optind - 1], optarg ? optarg : "");
        else if (option == 'r')
            store.slow.prng.state = (uint64_t)number;
        else if (!prefix || !hg_slow_set_group(&store.slow, prefix, number * 1000))
            fail("--slow-ms needs a --slow-prefix before it");
    }
    if (optind < argc || !backend)
        fail("usage: slowstore --backend ADDRESS [--listen ADDRESS] [--control ADDRESS] "
             "[--service-ms N] [--slots N] [--times constant|exponential] [--knee-fall T] "
             "[--noise PERCENT] [--slow-prefix TEXT --slow-ms N]... [--seed N]");
    parse_address(backend, &store.backend, &store.backend_len);
    start_loop(&store);
    unsigned int port = listen_on(&store, listen_at, on_accept);
    printf("listening %u control %u\n", port, listen_on(&store, control_at, on_control));
    fflush(stdout);
    event_base_dispatch(store.base);
    return 1;
}
