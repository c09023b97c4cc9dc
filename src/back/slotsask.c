// slotsask - asks the servers of a Redis Cluster, one after the other, who owns which slots
// SPDX-License-Identifier: BSD-3-Clause
#include "back/slotsask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/sock.h"

#define DEFAULT_PORT 6379
#define READ_BYTES   16384

static void try_next(struct hg_slotsask *ask);
static void try_addr(struct hg_slotsask *ask);

static const char *candidate(const struct hg_slotsask *ask)
{
    return ask->candidates[ask->next - 1];
}

static void close_socket(struct hg_slotsask *ask)
{
    if (ask->fd < 0)
        return;
    event_del(&ask->read_event);
    event_del(&ask->write_event);
    hg_tls_free(ask->tls);
    ask->tls = NULL;
    hg_out_fini(&ask->out);
    close(ask->fd);
    ask->fd = -1;
}

/* Lets go of whatever the present candidate has. */
static void let_go(struct hg_slotsask *ask)
{
    hg_resolve_forget(ask->resolver, ask->resolve);
    ask->resolve = NULL;
    close_socket(ask);
    hg_slotsreply_free(ask->reply);
    ask->reply = NULL;
}

static void finish(struct hg_slotsask *ask, const struct hg_slots *slots)
{
    struct hg_slotsreply *reply = ask->reply;
    ask->reply = NULL;
    const char *from = slots == NULL ? NULL : candidate(ask);
    let_go(ask);
    ask->running = false;
    ask->count = 0;
    ask->on_done(ask, slots, from, ask->why);
    hg_slotsreply_free(reply);
}

static void give_up_for(struct hg_slotsask *ask, const char *why, bool for_tls)
{
    if (ask->on_useless != NULL)
        ask->on_useless(ask, candidate(ask), why, for_tls);
    snprintf(ask->why, sizeof ask->why, "'%s': %s", candidate(ask), why);
    let_go(ask);
    try_next(ask);
}

/* The candidate is of no use. */
static void give_up(struct hg_slotsask *ask, const char *why)
{
    give_up_for(ask, why, false);
}

static void give_up_tls(struct hg_slotsask *ask, const char *reason)
{
    char why[HG_TLS_WHY_BYTES];
    snprintf(why, sizeof why, "TLS failed: %.200s", reason);
    give_up_for(ask, why, true);
}

static void put(struct hg_out *out, const char *text)
{
    hg_out_put(out, hg_span_str(text));
}

static void put_text(struct hg_out *out, const char *text)
{
    char head[32];
    snprintf(head, sizeof head, "$%zu\r\n", strlen(text));
    put(out, head);
    put(out, text);
    put(out, "\r\n");
}

/* Does a reply to AUTH come before that to CLUSTER SLOTS? */
static bool logs_in(const struct hg_slotsask *ask)
{
    return ask->password[0] != '\0';
}

/* Queues what is said to a server. */
static void put_request(struct hg_slotsask *ask)
{
    bool named = ask->user[0] != '\0';
    if (logs_in(ask)) {
        put(&ask->out, named ? "*3\r\n$4\r\nAUTH\r\n" : "*2\r\n$4\r\nAUTH\r\n");
        if (named)
            put_text(&ask->out, ask->user);
        put_text(&ask->out, ask->password);
    }
    put(&ask->out, "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n");
}

static void wait_writable(struct hg_slotsask *ask)
{
    if (event_add(&ask->write_event, NULL) != 0)
        give_up(ask, "no memory is left");
}

/* Sends what is left of the request. */
static void send_rest(struct hg_slotsask *ask)
{
    int rc =
        ask->tls != NULL ? hg_tls_flush(ask->tls, &ask->out) : hg_out_flush(&ask->out, ask->fd);
    if (rc < 0)
        give_up(ask, strerror(-rc));
    else if (rc > 0)
        wait_writable(ask);
}

/* Goes on with the handshake of TLS; then asks. */
static void shake(struct hg_slotsask *ask)
{
    switch (hg_tls_handshake(ask->tls)) {
    case HG_TLS_WANT_READ:
        break;
    case HG_TLS_WANT_WRITE:
        wait_writable(ask);
        break;
    case HG_TLS_DONE:
        ask->connected = true;
        event_active(&ask->read_event, EV_READ, 0); /* a complaint may be in TLS' room already */
        send_rest(ask);
        break;
    case HG_TLS_FAILED:
        give_up_tls(ask, hg_tls_why(ask->tls));
        break;
    }
}

/* One read. Bytes, 0 at the end, -EAGAIN, or -errno. */
static ssize_t read_some(struct hg_slotsask *ask, char bytes[READ_BYTES])
{
    if (ask->tls != NULL)
        return hg_tls_recv(ask->tls, bytes, READ_BYTES);
    ssize_t n = recv(ask->fd, bytes, READ_BYTES, 0);
    return n >= 0 ? n : errno == EINTR ? -EAGAIN : -errno;
}

/* The reply is there, or is none. */
static void take_reply(struct hg_slotsask *ask, enum hg_codec codec)
{
    if (codec == HG_BAD) {
        char why[HG_SLOTSREPLY_WHY];
        snprintf(why, sizeof why, "%s", hg_slotsreply_why(ask->reply));
        give_up(ask, why);
        return;
    }
    const struct hg_slots *slots = hg_slotsreply_slots(ask->reply);
    if (slots->uncovered == HG_KEYSLOTS)
        give_up(ask, "it knows no owner of any slot");
    else
        finish(ask, slots);
}

/* Reads all there is: what TLS has decrypted no event tells of. A reply has a greatest length. */
static void receive(struct hg_slotsask *ask)
{
    char bytes[READ_BYTES];
    enum hg_codec codec = HG_MORE;
    while (codec == HG_MORE) {
        ssize_t n = read_some(ask, bytes);
        if (n == -EAGAIN)
            return;
        if (n == -EPROTO && ask->tls != NULL) {
            give_up_tls(ask, hg_tls_why(ask->tls));
            return;
        }
        if (n <= 0) {
            give_up(ask, n == 0 ? "connection closed" : strerror((int)-n));
            return;
        }
        codec = hg_slotsreply_feed(ask->reply, bytes, (size_t)n);
    }
    take_reply(ask, codec);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct hg_slotsask *ask = arg;
    hg_loop_stamp(ask->loop);
    if (ask->connected)
        receive(ask);
    else
        shake(ask);
}

/* The host that a candidate names, for its certificate. */
static bool begin_tls(struct hg_slotsask *ask)
{
    char host[256];
    uint16_t port;
    bool is_unix;
    if (hg_addr_split(candidate(ask), DEFAULT_PORT, host, &port, &is_unix) == 0)
        ask->tls = hg_uptls_begin(ask->uptls, ask->fd, host);
    return ask->tls != NULL;
}

/* The socket is connected. */
static void come_up(struct hg_slotsask *ask)
{
    hg_sock_tune(ask->fd, 0);
    put_request(ask);
    if (event_add(&ask->read_event, NULL) != 0 || (ask->uptls != NULL && !begin_tls(ask))) {
        give_up(ask, "no memory is left");
    } else if (ask->tls != NULL) {
        shake(ask);
    } else {
        ask->connected = true;
        send_rest(ask);
    }
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct hg_slotsask *ask = arg;
    hg_loop_stamp(ask->loop);
    if (ask->connected) {
        send_rest(ask);
        return;
    }
    if (ask->tls != NULL) {
        shake(ask);
        return;
    }
    int error = hg_sock_error(fd);
    if (error == 0) {
        come_up(ask);
    } else if (++ask->tried < ask->addrs.count) {
        close_socket(ask);
        try_addr(ask);
    } else {
        give_up(ask, strerror(-error));
    }
}

/* Connects to the address that is next. */
static void try_addr(struct hg_slotsask *ask)
{
    int error = -ENOENT;
    for (; ask->tried < ask->addrs.count; ask->tried++) {
        bool done = false;
        int fd = hg_sock_connect(&ask->addrs.list[ask->tried], &done);
        if (fd < 0) {
            error = fd;
            continue;
        }
        ask->fd = fd;
        ask->connected = false;
        hg_out_init(&ask->out, ask->outs);
        if (event_assign(&ask->read_event, ask->loop->base, fd, EV_READ | EV_PERSIST, on_readable,
                         ask) != 0 ||
            event_assign(&ask->write_event, ask->loop->base, fd, EV_WRITE, on_writable, ask) != 0)
            give_up(ask, "no memory is left");
        else if (done)
            come_up(ask);
        else if (event_add(&ask->write_event, NULL) != 0)
            give_up(ask, "no memory is left");
        return;
    }
    give_up(ask, strerror(-error));
}

static void on_resolved(struct hg_resolve *resolve, void *asker)
{
    struct hg_slotsask *ask = asker;
    ask->resolve = NULL;
    if (resolve->error != 0) {
        give_up(ask, resolve->error == -ENOENT ? "no such host" : strerror(-resolve->error));
        return;
    }
    ask->addrs = resolve->addrs;
    try_addr(ask);
}

/* Begins with a candidate; it may be given up at once. */
static void try_candidate(struct hg_slotsask *ask)
{
    ask->tried = 0;
    ask->reply = hg_slotsreply_new(candidate(ask), logs_in(ask));
    if (ask->reply == NULL || hg_loop_timer_arm(&ask->timer, ask->timeout_us) != 0) {
        give_up(ask, "no memory is left");
        return;
    }
    memset(&ask->addrs, 0, sizeof ask->addrs);
    if (hg_addr_parse(candidate(ask), DEFAULT_PORT, &ask->addrs.list[0]) == 0) {
        ask->addrs.count = 1;
        try_addr(ask);
        return;
    }
    if (ask->resolver != NULL)
        ask->resolve = hg_resolve_submit(ask->resolver, candidate(ask), DEFAULT_PORT, ask->mailbox,
                                         on_resolved, ask);
    if (ask->resolve == NULL)
        give_up(ask, ask->resolver == NULL ? "nobody looks up names" : "no memory is left");
}

/* At most as deep as there are candidates. */
static void try_next(struct hg_slotsask *ask)
{
    if (ask->next == ask->count) {
        finish(ask, NULL);
        return;
    }
    ask->next++;
    try_candidate(ask);
}

static void on_time(struct hg_timer *timer)
{
    struct hg_slotsask *ask = HG_CONTAINER_OF(timer, struct hg_slotsask, timer);
    if (!ask->running)
        return;
    if (ask->next == 0)
        try_next(ask);
    else if (ask->tls != NULL && !ask->connected)
        give_up_tls(ask, "no answer in time");
    else
        give_up(ask, "no answer in time");
}

int hg_slotsask_init(struct hg_slotsask *ask)
{
    ask->fd = -1;
    ask->tls = NULL;
    ask->running = false;
    ask->count = 0;
    ask->resolve = NULL;
    ask->reply = NULL;
    return hg_loop_timer_init(ask->loop, &ask->timer, 0, on_time);
}

void hg_slotsask_fini(struct hg_slotsask *ask)
{
    let_go(ask);
    ask->running = false;
    hg_loop_timer_fini(&ask->timer);
}

void hg_slotsask_add(struct hg_slotsask *ask, const char *address)
{
    if (ask->running || ask->count == HG_SLOTSASK_CANDIDATES ||
        strlen(address) >= HG_REDIRECT_ADDRESS)
        return;
    for (uint32_t i = 0; i < ask->count; i++) {
        if (strcmp(ask->candidates[i], address) == 0)
            return;
    }
    snprintf(ask->candidates[ask->count++], HG_REDIRECT_ADDRESS, "%s", address);
}

bool hg_slotsask_start(struct hg_slotsask *ask)
{
    if (ask->running || hg_loop_timer_arm(&ask->timer, 0) != 0)
        return false;
    ask->next = 0;
    ask->running = true;
    snprintf(ask->why, sizeof ask->why, "there is nobody to ask");
    return true;
}
