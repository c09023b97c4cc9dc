// conn - one connection of a load, and the requests on it that are unanswered
// SPDX-License-Identifier: BSD-3-Clause
#include "load/conn.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "load/codec.h"
#include "load/secure.h"
#include "load/worker.h"

int hg_load_conn_init(struct hg_load_conn *conn, struct hg_load_lane *lane, int fd, uint32_t salt)
{
    uint32_t room = 1;
    while (room < lane->tenant->pipeline) {
        room *= 2;
    }
    memset(conn, 0, sizeof *conn);
    conn->fd = -1;
    conn->ring = calloc(room, sizeof *conn->ring);
    if (conn->ring == NULL) {
        return -ENOMEM;
    }
    conn->fd = fd;
    conn->lane = lane;
    conn->depth = lane->tenant->pipeline;
    conn->mask = room - 1;
    conn->salt = salt;
    return 0;
}

void hg_load_conn_fini(struct hg_load_conn *conn)
{
    if (conn->fd >= 0) {
        hg_tls_free(conn->tls);
        close(conn->fd);
        conn->fd = -1;
    }
    free(conn->ring);
    free(conn->in);
    free(conn->out);
    conn->ring = NULL;
    conn->in = conn->out = NULL;
}

void hg_load_conn_lose(struct hg_load_conn *conn, const char *format, ...)
{
    struct hg_load_lane *lane = conn->lane;
    char reason[200];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    if (hg_counter_get(&lane->before.lost) + hg_counter_get(&lane->measured.lost) == 0) {
        fprintf(stderr, "headgate-load: tenant '%s': lost a connection to '%s': %s\n",
                lane->tenant->name, lane->tenant->server, reason);
    }
    hg_counter_add(&lane->phase->lost, 1);
    lane->worker->unanswered -= hg_load_conn_unanswered(conn);
    for (uint32_t number = conn->head; number != conn->tail; number++) {
        const struct hg_load_pending *pending = &conn->ring[number & conn->mask];
        hg_lane_aim(lane, pending->measured);
        hg_counter_add(&lane->into->unanswered, 1);
        if (pending->group > 0) {
            enum hg_series_group group = (enum hg_series_group)(pending->group - 1);
            hg_series_tally(&lane->series, group, lane->worker->now_ns)->unanswered++;
        }
    }
    lane->worker->alive--;
    lane->alive--;
    conn->head = conn->tail;
    hg_tls_free(conn->tls);
    conn->tls = NULL;
    close(conn->fd);
    conn->fd = -1;
}

/* Keeps what the socket did not take and asks to be told when it does. */
static void keep_unsent(struct hg_load_conn *conn, const uint8_t *at, size_t len)
{
    if (conn->out_room < len) {
        uint8_t *out = realloc(conn->out, len);
        if (out == NULL) {
            hg_load_conn_lose(conn, "out of memory");
            return;
        }
        conn->out = out;
        conn->out_room = len;
    }
    memcpy(conn->out, at, len);
    conn->out_at = 0;
    conn->out_bytes = len;
    if (hg_load_worker_watch(conn->lane->worker, conn, true, true) != 0) {
        hg_load_conn_lose(conn, "cannot watch it: %s", strerror(errno));
    }
}

/* Bytes taken by the socket; -1 when the connection is lost. */
static ssize_t put_bytes(struct hg_load_conn *conn, const uint8_t *at, size_t len)
{
    ssize_t n = hg_load_put(conn->fd, conn->tls, at, len);
    if (n < 0) {
        if (errno == EAGAIN || errno == EINTR) {
            return 0;
        }
        hg_load_conn_lose(conn, "%s", strerror(errno));
        return -1;
    }
    hg_counter_add(&conn->lane->into->bytes_out, (uint64_t)n);
    return n;
}

/* Counts what is sent in an open loop or a series. */
static void note_apart(struct hg_load_lane *lane, const struct hg_load_pending *pending)
{
    if (lane->is_open && lane->mode == HG_LANE_MIX) {
        hg_lane_aim(lane, pending->measured);
        hg_counter_add(&lane->into->sent, 1);
        hg_hist_record(&lane->into->late, pending->sent_ns - pending->due_ns, 1);
    }
    if (pending->group > 0) {
        enum hg_series_group group = (enum hg_series_group)(pending->group - 1);
        hg_series_tally(&lane->series, group, pending->sent_ns)->sent++;
    }
}

/* Composes at most `most` requests, up to the depth or a full buffer; returns their bytes. */
static size_t compose_batch(struct hg_load_conn *conn, uint64_t now_ns, uint64_t most)
{
    struct hg_load_lane *lane = conn->lane;
    struct hg_load_worker *worker = lane->worker;
    const struct hg_load_codec *codec = lane->codec;
    size_t bytes = 0;
    uint32_t first = conn->tail;
    while (hg_load_conn_unanswered(conn) < conn->depth && bytes < worker->out_soft &&
           conn->tail - first < most) {
        struct hg_load_pending *pending = &conn->ring[conn->tail & conn->mask];
        if (!hg_lane_next(lane, now_ns, pending)) {
            break;
        }
        pending->sent_ns = now_ns;
        if (HG_UNLIKELY(lane->is_open || pending->group > 0)) {
            note_apart(lane, pending);
        }
        bytes += codec->compose(lane, (enum hg_load_op)pending->op, pending->key,
                                conn->tail + conn->salt, worker->out + bytes);
        conn->tail++;
    }
    worker->unanswered += conn->tail - first;
    if (!lane->is_open && lane->mode == HG_LANE_MIX) {
        hg_counter_add(&lane->into->intended, conn->tail - first);
        hg_counter_add(&lane->into->sent, conn->tail - first);
    }
    return bytes;
}

void hg_load_conn_send_some(struct hg_load_conn *conn, uint64_t now_ns, uint64_t most)
{
    struct hg_load_lane *lane = conn->lane;
    const uint8_t *out = lane->worker->out;
    while (conn->fd >= 0 && conn->out_bytes == 0 && hg_load_conn_unanswered(conn) < conn->depth) {
        uint32_t first = conn->tail;
        size_t bytes = compose_batch(conn, now_ns, most);
        if (bytes == 0) {
            if ((lane->has_pace || lane->is_open) && lane->mode == HG_LANE_MIX) {
                hg_lane_enter_row(lane, conn);
            }
            return;
        }
        most -= conn->tail - first;
        ssize_t n = put_bytes(conn, out, bytes);
        if (n >= 0 && (size_t)n < bytes) {
            keep_unsent(conn, out + n, bytes - (size_t)n);
        }
    }
}

void hg_load_conn_send(struct hg_load_conn *conn, uint64_t now_ns)
{
    hg_load_conn_send_some(conn, now_ns, UINT64_MAX);
}

void hg_load_conn_on_writable(struct hg_load_conn *conn, uint64_t now_ns)
{
    if (conn->fd < 0 || conn->out_bytes == 0) {
        return;
    }
    ssize_t n = put_bytes(conn, conn->out + conn->out_at, conn->out_bytes - conn->out_at);
    if (n < 0) {
        return;
    }
    conn->out_at += (size_t)n;
    if (conn->out_at < conn->out_bytes) {
        return;
    }
    conn->out_bytes = 0;
    if (hg_load_worker_watch(conn->lane->worker, conn, true, false) != 0) {
        hg_load_conn_lose(conn, "cannot watch it: %s", strerror(errno));
        return;
    }
    hg_load_conn_send(conn, now_ns);
}

/* Keeps the beginning of a reply for the next read. */
static void keep_unfinished(struct hg_load_conn *conn, const uint8_t *at, size_t len)
{
    if (conn->in == NULL && len > 0) {
        conn->in = malloc(conn->lane->worker->in_room);
        if (conn->in == NULL) {
            hg_load_conn_lose(conn, "out of memory");
            return;
        }
    }
    if (len > 0) {
        memmove(conn->in, at, len);
    }
    conn->in_bytes = len;
}

/* True when there may be more within TLS, of which the socket does not tell. */
static bool read_once(struct hg_load_conn *conn)
{
    struct hg_load_lane *lane = conn->lane;
    struct hg_load_worker *worker = lane->worker;
    uint8_t *in = conn->in_bytes > 0 ? conn->in : worker->in;
    ssize_t n =
        hg_load_get(conn->fd, conn->tls, in + conn->in_bytes, worker->in_room - conn->in_bytes);
    if (n <= 0) {
        if (n == 0) {
            hg_load_conn_lose(conn, "closed by the server");
        } else if (errno != EAGAIN && errno != EINTR) {
            hg_load_conn_lose(conn, "%s", strerror(errno));
        }
        return false;
    }
    worker->now_ns = hg_lane_now_ns();
    hg_counter_add(&lane->into->bytes_in, (uint64_t)n);
    size_t len = conn->in_bytes + (size_t)n;
    uint32_t first = conn->head;
    ssize_t used = lane->codec->answer(conn, in, len, worker->now_ns);
    hg_lane_settle(lane);
    worker->unanswered -= conn->head - first;
    if (used < 0) {
        hg_load_conn_lose(conn, "its replies cannot be followed");
        return false;
    }
    keep_unfinished(conn, in + used, len - (size_t)used);
    hg_load_conn_send(conn, worker->now_ns);
    return conn->tls != NULL && conn->fd >= 0 && hg_tls_pending(conn->tls) > 0;
}

void hg_load_conn_on_readable(struct hg_load_conn *conn)
{
    while (conn->fd >= 0 && read_once(conn)) {
    }
}
