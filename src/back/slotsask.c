// slotsask - asks the servers of a Redis Cluster, one after the other, who owns which slots
// SPDX-License-Identifier: BSD-3-Clause
#include "back/slotsask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/sock.h"

#define DEFAULT_PORT  6379
#define READ_BYTES    16384
#define REQUEST_BYTES 1280 /* user and password of 512 bytes each, and what is around them */

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

/* The candidate is of no use. */
static void give_up(struct hg_slotsask *ask, const char *why)
{
    snprintf(ask->why, sizeof ask->why, "'%s': %s", candidate(ask), why);
    let_go(ask);
    try_next(ask);
}

static uint32_t put_text(char *at, const char *text)
{
    return (uint32_t)sprintf(at, "$%zu\r\n%s\r\n", strlen(text), text);
}

/* What is said to a server; *ret_logins: replies that come before that of CLUSTER SLOTS. */
static uint32_t make_request(const struct hg_slotsask *ask, char out[REQUEST_BYTES],
                             unsigned *ret_logins)
{
    uint32_t len = 0;
    *ret_logins = ask->password[0] != '\0';
    if (*ret_logins) {
        bool named = ask->user[0] != '\0';
        len += (uint32_t)sprintf(out, "*%d\r\n$4\r\nAUTH\r\n", named ? 3 : 2);
        if (named)
            len += put_text(out + len, ask->user);
        len += put_text(out + len, ask->password);
    }
    return len + (uint32_t)sprintf(out + len, "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n");
}

/* Sends what is left of the request. */
static void send_rest(struct hg_slotsask *ask)
{
    char request[REQUEST_BYTES];
    unsigned logins;
    uint32_t len = make_request(ask, request, &logins);
    ssize_t n = send(ask->fd, request + ask->sent_bytes, len - ask->sent_bytes, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        give_up(ask, strerror(errno));
        return;
    }
    ask->sent_bytes += n > 0 ? (uint32_t)n : 0;
    if (ask->sent_bytes < len && event_add(&ask->write_event, NULL) != 0)
        give_up(ask, "no memory is left");
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct hg_slotsask *ask = arg;
    char bytes[READ_BYTES];
    hg_loop_stamp(ask->loop);
    ssize_t n = recv(fd, bytes, sizeof bytes, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        give_up(ask, n == 0 ? "connection closed" : strerror(errno));
        return;
    }
    enum hg_codec codec = hg_slotsreply_feed(ask->reply, bytes, (size_t)n);
    if (codec == HG_MORE)
        return;
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

static void come_up(struct hg_slotsask *ask)
{
    ask->connected = true;
    ask->sent_bytes = 0;
    hg_sock_tune(ask->fd, 0);
    if (event_add(&ask->read_event, NULL) != 0)
        give_up(ask, "no memory is left");
    else
        send_rest(ask);
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
    char request[REQUEST_BYTES];
    unsigned logins;
    (void)make_request(ask, request, &logins);
    ask->tried = 0;
    ask->reply = hg_slotsreply_new(candidate(ask), logins);
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
    else
        give_up(ask, "no answer in time");
}

int hg_slotsask_init(struct hg_slotsask *ask)
{
    ask->fd = -1;
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
