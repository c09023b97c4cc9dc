// session - one client connection: reading, order of replies, back-pressure
// SPDX-License-Identifier: BSD-3-Clause
#include "front/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "front/dispatch.h"
#include "front/gate.h"
#include "front/held.h"

#define READ_BYTES    65536
#define LARGE_FRAME   16384   /* from here on a frame gets a blob of its own size */
#define LINGER_US     1000000 /* a closed connection is read on for so long, at most */
#define LINGER_BYTES  (4u << 20)
#define CLOSING_US    30000000 /* a closing connection may read nothing for so long */
#define OVER_LIMIT_US 5000000  /* a connection over the limit has so long for its first request */

static void on_event(evutil_socket_t fd, short what, void *arg);

/* What the session's state wants to hear of. */
static short wanted_events(const struct hg_session *session)
{
    bool may_read = !session->read_closed && session->wait == HG_WAIT_NONE && !session->paused;
    short want = EV_PERSIST;
    if (session->lingering || (may_read && !session->closing))
        want |= EV_READ;
    else if (!session->read_closed && !session->hung_up)
        want |= EV_CLOSED;
    if (session->full)
        want |= EV_WRITE;
    return want;
}

/* A reset (EPOLLERR) is reported by the loop as readable and writable, never as closed, and until
   somebody takes notice it is reported again and again: who waits for the end of the stream only
   also asks for writable, once. */
static void set_events(struct hg_session *session, short want)
{
    short events = want == (EV_PERSIST | EV_CLOSED) ? want | EV_WRITE | EV_ET : want;
    if (session->watching != 0)
        event_del(&session->event);
    session->watching = want;
    if (want == EV_PERSIST)
        return;
    event_assign(&session->event, session->worker->loop.base, session->fd, events, on_event,
                 session);
    if (event_add(&session->event, NULL) != 0)
        hg_session_close(session);
}

/* Asks the loop for what the state wants. What is no longer wanted stays asked for until it happens
   (drop_unwanted): most waits are over before the client sends more, and a system call each time
   would cost more than the request. */
static void watch(struct hg_session *session)
{
    short want = wanted_events(session);
    short have = session->watching;
    if (have & EV_READ)
        have |= EV_CLOSED; /* the end of the stream is something to read, too */
    if (session->watching == 0 || (want & ~have) != 0)
        set_events(session, want);
}

/* Many a wait is over within a few turns: until then it is cheaper to be told again of bytes that
   cannot be read yet than to unsubscribe and subscribe. */
static bool may_ignore(struct hg_session *session, short unwanted)
{
    return unwanted == EV_READ && session->wait == HG_WAIT_ROOM &&
           session->ignored++ < HG_SESSION_IGNORED_MAX;
}

/* Something happened that the state does not want to hear of. */
static void drop_unwanted(struct hg_session *session)
{
    short want = wanted_events(session);
    if (hg_sock_error(session->fd) != 0)
        hg_session_close(session);
    else if (want != session->watching)
        set_events(session, want);
}

/* May another request be started, given what is under way and unsent? */
static bool window_open(const struct hg_session *session)
{
    size_t high = session->worker->directory->settings.high_water_bytes;
    if (session->barrier || session->turning)
        return false;
    if (HG_UNLIKELY(session->out.bytes > high || session->out.held_bytes > 2 * high))
        return false;
    return session->queue_len == 0 || (session->queue_len < HG_SESSION_QUEUE_MAX &&
                                       (uint64_t)session->queue_len * session->reply_peak <= high);
}

static struct hg_lane *lane_of(const struct hg_session *session)
{
    return session->lane != NULL ? session->lane : &session->worker->nobody;
}

void hg_session_make_ready(struct hg_session *session)
{
    struct hg_worker *worker = session->worker;
    struct hg_lane *lane = lane_of(session);
    if (!hg_list_empty(&session->ready) || session->dead)
        return;
    hg_list_append(&lane->ready, &session->ready);
    if (hg_list_empty(&lane->ready_node))
        hg_list_append(&worker->ready_lanes, &lane->ready_node);
    hg_loop_again(&worker->loop);
}

/* Frames that the session may still have in this turn. One that comes with new frames gets in line
   behind those of its tenant that have some left over. */
static unsigned frame_budget(struct hg_session *session, bool in_line)
{
    struct hg_worker *worker = session->worker;
    struct hg_lane *lane = lane_of(session);
    if (lane->turn != worker->loop.turns) {
        lane->turn = worker->loop.turns;
        lane->turn_frames = 0;
        worker->active_lanes++;
    }
    unsigned share = hg_lane_share(worker);
    if (lane->turn_frames >= share || (in_line && !hg_list_empty(&lane->ready)))
        return 0;
    unsigned left = share - lane->turn_frames;
    return left < HG_SESSION_FRAMES_PER_TURN ? left : HG_SESSION_FRAMES_PER_TURN;
}

static void pause_session(struct hg_session *session)
{
    if (!session->paused && session->out.bytes > 0)
        hg_counter_add(&session->worker->paused_for_output, 1);
    session->paused = true;
}

void hg_session_resume(struct hg_session *session)
{
    bool goes_on = session->waiting != NULL && session->wait == HG_WAIT_NONE;
    if (session->paused && (goes_on || window_open(session))) {
        session->paused = false;
        hg_session_make_ready(session);
    }
}

/* Carries out the frames in `bytes`; returns how many bytes are done with. What stopped it is in
   the session's state; ret_need is the length of a frame of which a part is there. */
static size_t eat(struct hg_session *session, const uint8_t *bytes, size_t have,
                  struct hg_blob *blob, unsigned budget, uint64_t *ret_need)
{
    const struct hg_front_settings *settings = &session->worker->directory->settings;
    struct hg_frame_limits limits = {session->logged_in || !settings->login_required
                                         ? settings->max_frame_bytes
                                         : HG_SESSION_LOGIN_FRAME_BYTES,
                                     settings->max_value_bytes};
    struct hg_lane *lane = lane_of(session);
    size_t at = 0;
    *ret_need = 0;
    for (unsigned frames = 0;; frames++, lane->turn_frames++) {
        if (session->closing || session->dead)
            return have;
        if (session->skip_bytes > 0) {
            size_t n = have - at < session->skip_bytes ? have - at : session->skip_bytes;
            session->skip_bytes -= n;
            at += n;
        }
        if (at == have || session->wait != HG_WAIT_NONE)
            return at;
        /* A request whose wait is over is a part of the window already. */
        if (session->waiting == NULL && !window_open(session)) {
            pause_session(session);
            return at;
        }
        if (frames >= budget) {
            hg_counter_add(&session->worker->yields, 1);
            hg_session_make_ready(session);
            return at;
        }
        struct hg_frame frame;
        enum hg_codec rc = hg_frame_decode(bytes + at, have - at, &limits, &frame);
        if (rc == HG_MORE) {
            *ret_need = frame.total_bytes;
            return at;
        }
        if (HG_UNLIKELY(frame.kind != HG_FRAME_WHOLE)) {
            hg_dispatch_refuse(session, &frame);
            if (rc == HG_OK)
                session->skip_bytes = frame.total_bytes;
            else
                session->closing = true;
            continue;
        }
        enum hg_step step = hg_dispatch(session, &frame, blob);
        if (step == HG_STEP_WAIT)
            return at;
        if (step == HG_STEP_DEFER) {
            pause_session(session);
            return at;
        }
        at += (size_t)frame.total_bytes;
        if (step == HG_STEP_CLOSE)
            session->closing = true;
    }
}

/* Keeps what is left of bytes that are about to go. */
static void keep(struct hg_session *session, const uint8_t *bytes, size_t len, uint64_t need)
{
    struct hg_blob *old = session->in;
    session->in = NULL;
    session->in_at = 0;
    if (len > 0 && !session->dead) {
        size_t room = need > LARGE_FRAME && need > len ? (size_t)need : len;
        session->in = hg_blob_borrow(&session->worker->blobs, room);
        if (session->in == NULL) {
            hg_session_close(session);
        } else {
            memcpy(session->in->data, bytes, len);
            session->in->len = len;
            session->in_need = (size_t)need;
        }
    }
    hg_blob_unref(old);
}

/* No event will tell of what is within: the session comes again by itself, if it may read. */
static void read_hidden(struct hg_session *session)
{
    if ((wanted_events(session) & EV_READ) == 0 || !hg_list_empty(&session->ready))
        return;
    session->unread = true;
    hg_session_make_ready(session);
}

static void settle_state(struct hg_session *session)
{
    if (session->dead)
        return;
    if (session->wait == HG_WAIT_NONE)
        session->ignored = 0;
    if (session->closing || session->read_closed)
        hg_session_touch(session);
    watch(session);
    if (HG_UNLIKELY(session->hidden) && !session->dead)
        read_hidden(session);
}

static void run(struct hg_session *session, unsigned budget)
{
    struct hg_blob *in = session->in;
    if (in != NULL && !session->dead) {
        uint64_t need;
        hg_blob_ref(in);
        session->in_at +=
            eat(session, in->data + session->in_at, in->len - session->in_at, in, budget, &need);
        if (session->in_at >= in->len) {
            hg_blob_unref(session->in);
            session->in = NULL;
        } else if (need > 0) {
            keep(session, in->data + session->in_at, in->len - session->in_at, need);
        }
        hg_blob_unref(in);
    }
    settle_state(session);
}

void hg_session_run_some(struct hg_session *session)
{
    run(session, HG_SESSION_FRAMES_AFTER_WAIT);
}

static void on_end_of_file(struct hg_session *session)
{
    session->read_closed = true;
    session->hung_up = true;
}

/* recv into `room`; 0 when nothing was read (end of file, error or nothing there). */
static size_t receive(struct hg_session *session, uint8_t *room, size_t bytes)
{
    ssize_t n = HG_LIKELY(session->tls == NULL) ? recv(session->fd, room, bytes, 0)
                                                : hg_session_receive_tls(session, room, bytes);
    if (n > 0) {
        session->active_us = session->read_us = session->worker->loop.now_us;
        hg_counter_add(&session->worker->bytes_read, (uint64_t)n);
        return (size_t)n;
    }
    if (n == 0)
        on_end_of_file(session);
    else if (errno != EAGAIN && errno != EINTR)
        hg_session_close(session);
    return 0;
}

static void read_more(struct hg_session *session, bool in_line)
{
    struct hg_worker *worker = session->worker;
    struct hg_blob *in = session->in;
    size_t left = in != NULL ? in->len - session->in_at : 0;
    if (session->lingering) {
        size_t n = receive(session, worker->scratch, HG_SCRATCH_BYTES);
        session->lingered_bytes += n;
        if (session->read_closed || session->lingered_bytes > LINGER_BYTES)
            hg_session_close(session);
        else if (session->hidden)
            read_hidden(session);
        return;
    }
    if (!hg_list_empty(&session->ready))
        return; /* its turn comes */
    if (frame_budget(session, in_line) == 0) {
        session->unread = true; /* the bytes are better off in the socket than in a copy */
        hg_session_make_ready(session);
        return;
    }
    if (in != NULL && session->in_at == 0 && session->in_need > in->len &&
        session->in_need <= in->cap && session->in_need > LARGE_FRAME) {
        /* The rest of a large frame goes straight to its place. */
        size_t n = receive(session, in->data + in->len, session->in_need - in->len);
        in->len += n;
        if (session->dead || in->len < session->in_need) {
            settle_state(session);
            return;
        }
        run(session, frame_budget(session, in_line));
        return;
    }
    if (left > 0) {
        if (left + READ_BYTES > HG_SCRATCH_BYTES) {
            hg_session_make_ready(session); /* these are whole frames: they come first */
            return;
        }
        memcpy(worker->scratch, in->data + session->in_at, left);
    }
    size_t n = receive(session, worker->scratch + left, READ_BYTES);
    if (n > 0) {
        uint64_t need;
        size_t have = left + n;
        size_t done =
            eat(session, worker->scratch, have, NULL, frame_budget(session, in_line), &need);
        keep(session, worker->scratch + done, have - done, need);
    }
    settle_state(session);
}

void hg_session_run(struct hg_session *session)
{
    bool unread = session->unread && !session->dead && (wanted_events(session) & EV_READ) != 0;
    session->unread = false;
    if (unread)
        read_more(session, false);
    else
        run(session, frame_budget(session, false));
}

/* The client has stopped sending while its request waits: it gets its refusal now. */
static void on_hang_up(struct hg_session *session)
{
    session->hung_up = true;
    if (hg_sock_error(session->fd) != 0) {
        hg_session_close(session);
        return;
    }
    hg_dispatch_refuse_waiting(session);
    hg_session_make_ready(session);
    watch(session);
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    struct hg_session *session = arg;
    hg_loop_stamp(&session->worker->loop);
    if (what & EV_WRITE) {
        session->full = false;
        hg_session_touch(session);
        /* Reading may have waited for this, too: TLS answers some of what it reads by itself. */
        if (session->tls != NULL && !session->dead && hg_tls_pending(session->tls) > 0) {
            session->hidden = true;
            read_hidden(session);
        }
    }
    short want = wanted_events(session);
    short unwanted = what & ~want & (EV_READ | EV_WRITE | EV_CLOSED);
    if (unwanted != 0 && !session->dead && !may_ignore(session, unwanted))
        drop_unwanted(session);
    if ((what & want & EV_READ) && !session->dead)
        read_more(session, true);
    if ((what & want & EV_CLOSED) && !session->dead)
        on_hang_up(session);
}

struct hg_session *hg_session_new(struct hg_worker *worker, const struct hg_client *client)
{
    struct hg_session *session = calloc(1, sizeof *session);
    if (session == NULL)
        return NULL;
    hg_list_init(&session->node);
    hg_list_init(&session->ready);
    hg_list_init(&session->dirty);
    hg_list_init(&session->held);
    session->worker = worker;
    session->fd = client->fd;
    session->tls = client->tls;
    session->peer = client->peer;
    session->over_limit = client->over_limit;
    session->reply_peak = HG_SESSION_REPLY_GUESS;
    session->born_us = session->active_us = worker->loop.now_us;
    hg_out_init(&session->out, &worker->outs);
    event_assign(&session->event, worker->loop.base, client->fd, 0, on_event, session);
    hg_list_append(&worker->sessions, &session->node);
    hg_counter_add(&worker->connections, 1);
    hg_session_adopt(session);
    if (session->tls != NULL) {
        hg_counter_add(&worker->tls_connections, 1);
        hg_session_present(session, client->user);
        /* The first request may have come with the end of the handshake. */
        session->hidden = !session->dead && hg_tls_pending(session->tls) > 0;
    }
    settle_state(session);
    return session;
}

void hg_session_close(struct hg_session *session)
{
    if (session->dead)
        return;
    session->dead = true;
    if (session->job != NULL)
        session->job->session = NULL;
    if (session->watching != 0)
        event_del(&session->event);
    session->watching = 0;
    if (session->tls != NULL) {
        hg_counter_sub(&session->worker->tls_connections, 1);
        hg_tls_free(session->tls);
        session->tls = NULL;
    }
    close(session->fd);
    session->fd = -1;
    hg_held_leave(session);
    hg_gate_abandon(session);
    while (session->first != NULL) {
        struct hg_request *request = session->first;
        session->first = request->next;
        hg_dispatch_cancel(request);
    }
    session->last = session->waiting = NULL;
    session->queue_len = 0;
    hg_session_select(session, NULL);
    hg_list_remove(&session->ready);
    hg_list_remove(&session->dirty);
    hg_list_append(&session->worker->dead, &session->dirty);
    hg_counter_sub(&session->worker->connections, 1);
    atomic_fetch_sub(&session->worker->load, 1);
}

void hg_session_free(struct hg_session *session)
{
    struct hg_front_hooks *hooks = &session->worker->front->hooks;
    hg_out_fini(&session->out);
    hg_blob_unref(session->in);
    if (session->login != NULL)
        hooks->on_login_gone(hooks->app, session->login);
    if (session->backup != 0)
        hooks->on_backup_gone(hooks->app, session->backup);
    hg_list_remove(&session->node);
    hg_list_remove(&session->dirty);
    free(session->user_name);
    free(session->agent);
    free(session);
}

void hg_session_touch(struct hg_session *session)
{
    if (hg_list_empty(&session->dirty))
        hg_list_append(&session->worker->dirty, &session->dirty);
}

/* All is sent, and the client may still be sending: closing now would reset the connection and take
   the last reply with it. So only our side is closed, and the rest read on for a moment; unless the
   client has had its last reply for long. */
static void linger(struct hg_session *session)
{
    int unsent = 0;
    bool long_idle = session->worker->loop.now_us - session->active_us >= LINGER_US;
    bool has_all = long_idle && ioctl(session->fd, TIOCOUTQ, &unsent) == 0 && unsent == 0;
    if (session->tls != NULL && !session->read_closed && !session->lingering)
        hg_tls_bye(session->tls);
    if (session->read_closed || has_all) {
        hg_session_close(session);
        return;
    }
    if (session->lingering)
        return;
    shutdown(session->fd, SHUT_WR);
    session->lingering = true;
    session->linger_until_us = session->worker->loop.now_us + LINGER_US;
    watch(session);
}

void hg_session_flush(struct hg_session *session)
{
    if (session->dead)
        return;
    if (HG_UNLIKELY(session->out.broken)) {
        hg_session_close(session); /* something is missing in what is queued, or all of it */
        return;
    }
    if (!session->full && !hg_out_empty(&session->out)) {
        size_t before = session->out.bytes;
        int rc = HG_LIKELY(session->tls == NULL) ? hg_out_flush(&session->out, session->fd)
                                                 : hg_tls_flush(session->tls, &session->out);
        hg_counter_add(&session->worker->bytes_written, before - session->out.bytes);
        if (session->out.bytes < before)
            session->active_us = session->worker->loop.now_us;
        if (rc < 0) {
            hg_session_close(session);
            return;
        }
        if (rc > 0) {
            session->full = true;
            watch(session);
        }
    }
    hg_out_keep(&session->out);
    if (session->paused)
        hg_session_resume(session);
    if (HG_UNLIKELY(session->leaving) && !session->closing && hg_session_at_gap(session))
        session->closing = true;
    bool answered = session->queue_len == 0 && session->job == NULL && hg_out_empty(&session->out);
    bool over = session->closing || (session->read_closed && session->wait == HG_WAIT_NONE &&
                                     hg_list_empty(&session->ready));
    if (answered && over && !session->dead)
        linger(session);
}

void hg_session_tick(struct hg_session *session, uint64_t now_us)
{
    uint64_t idle_us = (uint64_t)session->worker->directory->settings.idle_timeout_s * 1000000;
    if (session->lingering) {
        if (now_us >= session->linger_until_us)
            hg_session_close(session);
    } else if (session->leaving && !session->closing && hg_session_at_gap(session)) {
        hg_session_finish(session);
    } else if (session->over_limit && now_us - session->born_us >= OVER_LIMIT_US) {
        hg_session_close(session);
    } else if (session->queue_len == 0 && session->wait == HG_WAIT_NONE) {
        uint64_t quiet_us = now_us - session->active_us;
        if (session->closing && quiet_us >= CLOSING_US) {
            hg_session_close(session);
        } else if (idle_us > 0 && quiet_us >= idle_us) {
            hg_counter_add(&session->worker->idle_closed, 1);
            hg_session_close(session);
        }
    }
}

void hg_session_finish(struct hg_session *session)
{
    session->closing = true;
    hg_dispatch_refuse_waiting(session);
    settle_state(session);
}
