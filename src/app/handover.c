// handover - the old side of a hand-over: gives its listening sockets to a new process
// SPDX-License-Identifier: BSD-3-Clause
//
// One talk at a time. From the offer on nothing is changed by administrators, since the new process
// has read the state file; housekeeping says when the change that it was at is over. The sockets
// are kept, as duplicates, until the new process says that it accepts: whatever becomes of it, no
// connection is refused.
#include "app/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/notify.h"
#include "app/process.h"
#include "app/process_own.h"
#include "app/web.h"
#include "base/clock.h"
#include "base/log.h"

#define HELLO_TIMEOUT_US 5000000 /* who connects says at once what he wants */

#define PING_MS 500

enum stage {
    IDLE,
    GREETING, /* connected; no HELLO yet */
    SETTLING, /* housekeeping finishes what it is at */
    OFFERED,
    RELEASING, /* no more accepting; draining */
    ABANDONED, /* the same, but the new process has gone */
    GIVEN,     /* the new process accepts */
};

struct hg_handover {
    struct hg_process *process;
    enum stage stage;
    int listen_fd;
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    struct stat file; /* of path, as bound */
    struct event listen_event;
    int fd; /* to the new process; -1: none */
    pid_t peer;
    struct event event;
    struct hg_timer timer;
    bool no_return; /* asked to end meanwhile */
    struct hg_inherit sockets;
    uint32_t talks;           /* so far */
    struct hg_letter look;    /* to housekeeping: frozen_wanted has changed */
    struct hg_letter settled; /* and its answer */
    _Atomic bool look_posted, settled_posted;
    _Atomic uint32_t frozen_wanted; /* 0, or the talk for which nothing may be changed */
    _Atomic uint32_t frozen_as;     /* the same, as housekeeping has seen it */
};

bool hg_handover_path(const struct hg_conf *conf, char *ret, size_t size)
{
    const char *name = conf->handover_socket;
    int n = name[0] == '/' ? snprintf(ret, size, "%s", name)
                           : snprintf(ret, size, "%s/%s", conf->data_dir, name);
    return name[0] != '\0' && n > 0 && (size_t)n < size;
}

/* ---- administrative changes ---- */

static void on_settled(struct hg_letter *letter, void *receiver);

/* On housekeeping, behind whatever it was at. */
static void on_look(struct hg_letter *letter, void *receiver)
{
    struct hg_process *process = receiver;
    struct hg_handover *handover = HG_CONTAINER_OF(letter, struct hg_handover, look);
    atomic_store(&handover->look_posted, false);
    uint32_t wanted = atomic_load(&handover->frozen_wanted);
    process->frozen = wanted != 0;
    atomic_store(&handover->frozen_as, wanted);
    if (wanted != 0 && !atomic_exchange(&handover->settled_posted, true)) {
        handover->settled.deliver = on_settled;
        hg_mailbox_post(&process->mailbox, &handover->settled);
    }
}

/* 0: changes may be made again; else a number of this talk. */
static void freeze(struct hg_handover *handover, uint32_t as)
{
    atomic_store(&handover->frozen_wanted, as);
    if (atomic_exchange(&handover->look_posted, true))
        return;
    handover->look.deliver = on_look;
    hg_mailbox_post(&handover->process->house, &handover->look);
}

/* ---- the talk ---- */

static void hang_up(struct hg_handover *handover)
{
    hg_loop_timer_fini(&handover->timer);
    if (handover->fd >= 0) {
        event_del(&handover->event);
        close(handover->fd);
    }
    handover->fd = -1;
}

/* As if nobody had asked. */
static void give_up(struct hg_handover *handover, const char *why)
{
    hg_log_warn("pid=%d msg=\"the hand-over has failed: %s\"", (int)handover->peer, why);
    hang_up(handover);
    if (handover->stage == RELEASING) {
        handover->stage = ABANDONED;
        return;
    }
    if (handover->stage >= SETTLING) {
        hg_inherit_close(&handover->sockets);
        freeze(handover, 0);
    }
    handover->stage = IDLE;
}

static void on_timeout(struct hg_timer *timer)
{
    give_up(HG_CONTAINER_OF(timer, struct hg_handover, timer),
            "the new process was silent for too long");
}

static void arm(struct hg_handover *handover, uint64_t us)
{
    if (hg_loop_timer_arm(&handover->timer, us) != 0)
        give_up(handover, "no timer can be set");
}

struct offer {
    struct hg_handover *handover;
    struct hg_handover_msg msg;
    int fds[HG_INHERIT_MAX];
    unsigned count;
    enum hg_inherit_purpose purpose;
    char why[512];
    int rc;
};

static void offer_socket(void *arg, int fd, bool keeps_file)
{
    struct offer *offer = arg;
    struct hg_inherit *sockets = &offer->handover->sockets;
    int copy = offer->rc == 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (offer->rc != 0)
        return;
    if (copy < 0)
        offer->rc = -errno;
    else
        offer->rc = hg_inherit_add(sockets, copy, offer->purpose, "of this process", offer->why);
    if (offer->rc != 0) {
        if (copy >= 0)
            close(copy);
        return;
    }
    sockets->sockets[sockets->count - 1].keeps_file = keeps_file;
    offer->msg.purpose[offer->count] = (uint8_t)offer->purpose;
    offer->msg.keeps_file[offer->count] = keeps_file;
    offer->fds[offer->count++] = copy;
}

static bool has_embedded(const struct hg_directory *directory)
{
    for (size_t i = 0; i < directory->upstream_count; i++)
        if (strcmp(directory->upstreams[i]->kind, "embedded") == 0)
            return true;
    return false;
}

static int make_offer(struct hg_handover *handover)
{
    struct hg_process *process = handover->process;
    struct offer offer = {.handover = handover, .purpose = HG_INHERIT_LISTEN};
    memset(&handover->sockets, 0, sizeof handover->sockets);
    hg_listeners_each(process->listeners, offer_socket, &offer);
    offer.purpose = HG_INHERIT_ADMIN;
    if (process->web != NULL)
        offer_socket(&offer, hg_web_fd(process->web), false);
    pthread_mutex_lock(&process->lock);
    offer.msg.kind = HG_HANDOVER_OFFER;
    offer.msg.drain_ms = (uint32_t)process->effective->drain_timeout_s * 1000;
    offer.msg.embedded = has_embedded(process->directory);
    pthread_mutex_unlock(&process->lock);
    if (offer.rc == 0)
        offer.rc = hg_handover_send(handover->fd, &offer.msg, offer.fds, offer.count);
    if (offer.rc == 0)
        hg_log_info("pid=%d sockets=%u msg=\"offered to a new process; no administrative changes "
                    "until it has taken over\"",
                    (int)handover->peer, offer.count);
    return offer.rc;
}

static void refuse(int fd, const char *why)
{
    struct hg_handover_msg msg;
    memset(&msg, 0, sizeof msg);
    msg.kind = HG_HANDOVER_REFUSE;
    snprintf(msg.why, sizeof msg.why, "%s", why);
    if (hg_handover_send(fd, &msg, NULL, 0) != 0)
        hg_log_debug("msg=\"who asked for a hand-over is not there any more\"");
}

/* On the main thread: housekeeping has finished what it was at. */
static void on_settled(struct hg_letter *letter, void *receiver)
{
    struct hg_handover *handover = HG_CONTAINER_OF(letter, struct hg_handover, settled);
    (void)receiver;
    atomic_store(&handover->settled_posted, false);
    if (handover->stage != SETTLING || atomic_load(&handover->frozen_as) != handover->talks)
        return;
    if (atomic_load(&handover->process->draining)) {
        refuse(handover->fd, "it is about to end");
        give_up(handover, "this process is about to end");
        return;
    }
    int rc = make_offer(handover);
    if (rc != 0)
        give_up(handover, strerror(-rc));
    else
        handover->stage = OFFERED;
}

static void on_hello(struct hg_handover *handover)
{
    handover->stage = SETTLING;
    arm(handover, (uint64_t)HG_HANDOVER_TIMEOUT_MS * 1000);
    if (handover->stage == SETTLING)
        freeze(handover, ++handover->talks);
}

static void on_release(struct hg_handover *handover)
{
    handover->stage = RELEASING;
    hg_loop_timer_fini(&handover->timer);
    hg_listeners_keep_files(handover->process->listeners);
    hg_web_give_way(handover->process->web);
    hg_log_info("pid=%d msg=\"a new process takes over: giving the stores up\"",
                (int)handover->peer);
    /* Asked to end already? Then it drains. */
    if (!atomic_load(&handover->process->draining))
        hg_process_begin_drain(handover->process);
}

static void say_bye(int fd, pid_t peer)
{
    char text[HG_NOTIFY_BYTES];
    hg_notify_send(hg_notify_main_pid(text, peer));
    if (hg_handover_say(fd, HG_HANDOVER_BYE) != 0)
        hg_log_warn("pid=%d msg=\"the new process has gone since it took over\"", (int)peer);
}

static void on_done(struct hg_handover *handover)
{
    handover->stage = GIVEN;
    hg_listeners_keep_files(handover->process->listeners);
    hg_web_give_way(handover->process->web);
    hg_inherit_close(&handover->sockets);
    hg_log_info("pid=%d msg=\"a new process has taken over\"", (int)handover->peer);
    say_bye(handover->fd, handover->peer);
    hang_up(handover);
    if (!atomic_load(&handover->process->draining))
        hg_process_begin_drain(handover->process);
}

static void on_message(evutil_socket_t fd, short what, void *arg)
{
    struct hg_handover *handover = arg;
    struct hg_handover_msg msg;
    int fds[HG_INHERIT_MAX];
    unsigned count;
    (void)what;
    int rc = hg_handover_receive(fd, &msg, fds, &count);
    if (rc == -EAGAIN || rc == -EINTR)
        return;
    for (unsigned i = 0; i < count; i++)
        close(fds[i]);
    if (rc == -EPROTONOSUPPORT)
        refuse(fd, "it speaks another version of the hand-over");
    if (rc == 0 && handover->stage == GREETING && msg.kind == HG_HANDOVER_HELLO)
        on_hello(handover);
    else if (rc == 0 && handover->stage == OFFERED && msg.kind == HG_HANDOVER_RELEASE)
        on_release(handover);
    else if (rc == 0 && handover->stage == OFFERED && msg.kind == HG_HANDOVER_DONE)
        on_done(handover);
    else
        give_up(handover, rc == -ECONNRESET        ? "the new process has gone"
                          : rc == -EPROTONOSUPPORT ? "the new process speaks another version of it"
                                                   : "the new process says what it may not say");
}

static void on_connection(evutil_socket_t listen_fd, short what, void *arg)
{
    struct hg_handover *handover = arg;
    pid_t peer = 0;
    (void)what;
    int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (hg_handover_peer(fd, &peer) != 0) {
        hg_log_warn("pid=%d msg=\"a hand-over was asked for by a user who is neither this "
                    "process's nor root\"",
                    (int)peer);
        refuse(fd, "you are neither its user nor root");
        close(fd);
        return;
    }
    if (handover->stage != IDLE) {
        refuse(fd, "another process is taking over");
        close(fd);
        return;
    }
    handover->fd = fd;
    handover->peer = peer;
    handover->stage = GREETING;
    event_assign(&handover->event, handover->process->loop.base, fd, EV_READ | EV_PERSIST,
                 on_message, handover);
    if (event_add(&handover->event, NULL) != 0)
        give_up(handover, "no memory is left");
    else
        arm(handover, HELLO_TIMEOUT_US);
}

/* ---- the socket ---- */

/* Also by one who is too busy, or hangs. */
static bool is_answered(const struct sockaddr_un *addr)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool answered = fd >= 0 && (connect(fd, (const struct sockaddr *)addr, sizeof *addr) == 0 ||
                                errno == EAGAIN);
    if (fd >= 0)
        close(fd);
    return answered;
}

/* Bound beside its place and then moved there, so that there is always somebody to be asked. */
static int bind_socket(struct hg_handover *handover)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int n = snprintf(addr.sun_path, sizeof addr.sun_path, "%s.%d", handover->path, (int)getpid());
    if (n < 0 || (size_t)n >= sizeof addr.sun_path)
        return -ENAMETOOLONG;
    handover->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (handover->listen_fd < 0)
        return -errno;
    (void)unlink(addr.sun_path);
    /* Before it has its place, so that it never has another mode there. */
    if (fchmod(handover->listen_fd, 0600) != 0 ||
        bind(handover->listen_fd, (const struct sockaddr *)&addr, sizeof addr) != 0)
        return -errno;
    if (listen(handover->listen_fd, 4) != 0 || rename(addr.sun_path, handover->path) != 0 ||
        lstat(handover->path, &handover->file) != 0) {
        int rc = -errno;
        (void)unlink(addr.sun_path);
        return rc;
    }
    return 0;
}

static int start(struct hg_handover *handover, const struct hg_conf *conf)
{
    struct hg_process *process = handover->process;
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    if (!hg_handover_path(conf, handover->path, sizeof handover->path))
        return -ENAMETOOLONG;
    memcpy(addr.sun_path, handover->path, sizeof addr.sun_path);
    if (conf->handover_socket[0] != '/' && mkdir(conf->data_dir, 0700) != 0 && errno != EEXIST)
        return -errno;
    if (!process->took_over && is_answered(&addr))
        return -EADDRINUSE;
    int rc = bind_socket(handover);
    if (rc == 0)
        rc = hg_loop_timer_init(&process->loop, &handover->timer, 0, on_timeout);
    if (rc != 0)
        return rc;
    event_assign(&handover->listen_event, process->loop.base, handover->listen_fd,
                 EV_READ | EV_PERSIST, on_connection, handover);
    return event_add(&handover->listen_event, NULL) == 0 ? 0 : -ENOMEM;
}

void hg_handover_open(struct hg_process *process)
{
    const struct hg_conf *conf = process->effective;
    if (conf->handover_socket[0] == '\0')
        return;
    struct hg_handover *handover = calloc(1, sizeof *handover);
    int rc = -ENOMEM;
    if (handover != NULL) {
        handover->process = process;
        handover->fd = handover->listen_fd = -1;
        rc = start(handover, conf);
    }
    if (rc == 0) {
        process->handover = handover;
        return;
    }
    if (handover != NULL && handover->listen_fd >= 0)
        close(handover->listen_fd);
    hg_log_warn("handover_socket=%s msg=\"no process can take over from this one: %s\"",
                conf->handover_socket,
                rc == -EADDRINUSE     ? "another one answers on its hand-over socket"
                : rc == -ENAMETOOLONG ? "the path is too long (accepted: fewer than 100 bytes)"
                                      : strerror(-rc));
    free(handover);
}

bool hg_handover_gives_way(const struct hg_process *process)
{
    const struct hg_handover *handover = process->handover;
    return handover != NULL && handover->stage >= RELEASING;
}

bool hg_handover_shares(const struct hg_process *process)
{
    const struct hg_handover *handover = process->handover;
    return handover != NULL && handover->stage >= OFFERED;
}

void hg_handover_forbid_return(struct hg_process *process)
{
    if (process->handover != NULL)
        process->handover->no_return = true;
}

void hg_handover_close(struct hg_process *process, struct hg_handover_rest *ret)
{
    struct hg_handover *handover = process->handover;
    struct stat file;
    ret->fd = -1;
    ret->owes_sockets = false;
    if (handover == NULL)
        return;
    bool mine = lstat(handover->path, &file) == 0 && file.st_ino == handover->file.st_ino &&
                file.st_dev == handover->file.st_dev;
    if (mine && handover->stage != GIVEN)
        (void)unlink(handover->path);
    event_del(&handover->listen_event);
    close(handover->listen_fd);
    if (handover->stage == RELEASING || (handover->stage == ABANDONED && !handover->no_return)) {
        ret->fd = handover->fd;
        ret->peer = handover->peer;
        ret->owes_sockets = !handover->no_return;
        ret->inherit = handover->sockets;
        if (handover->fd >= 0)
            event_del(&handover->event);
        handover->fd = -1;
        handover->sockets.count = 0;
    }
    hang_up(handover);
    hg_inherit_close(&handover->sockets);
    process->handover = NULL;
    free(handover);
}

/* ---- behind the point where nothing runs any more ---- */

/* Waits for DONE. The watchdog is told that this is no hanging. */
static bool wait_for_done(struct hg_handover_rest *rest)
{
    struct hg_handover_msg msg;
    int fds[HG_INHERIT_MAX];
    unsigned count;
    if (hg_handover_say(rest->fd, HG_HANDOVER_RELEASED) != 0)
        return false;
    int rc = -ETIMEDOUT;
    for (int ms = 0; ms < HG_HANDOVER_TIMEOUT_MS && rc == -ETIMEDOUT; ms += PING_MS) {
        hg_notify_send("WATCHDOG=1");
        rc = hg_handover_await(rest->fd, PING_MS, &msg, fds, &count);
    }
    return rc == 0 && msg.kind == HG_HANDOVER_DONE;
}

bool hg_handover_finish(struct hg_handover_rest *rest)
{
    bool done = rest->fd >= 0 && wait_for_done(rest);
    if (done) {
        hg_log_info("pid=%d msg=\"a new process has taken over\"", (int)rest->peer);
        say_bye(rest->fd, rest->peer);
    } else {
        hg_log_error("pid=%d msg=\"the new process has not taken over\"", (int)rest->peer);
    }
    if (rest->fd >= 0)
        close(rest->fd);
    rest->fd = -1;
    if (done || !rest->owes_sockets)
        hg_inherit_close(&rest->inherit);
    return done || !rest->owes_sockets;
}
