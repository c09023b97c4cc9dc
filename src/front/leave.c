// leave - a connection that is to end, between two requests of its client
// SPDX-License-Identifier: BSD-3-Clause
//
// The protocol has no word for "go elsewhere": all that a server can do is to close at a moment at
// which the client waits for nothing. Then a request is either answered, or was sent when the end
// of the stream was on its way already, and has not been carried out.
#include <sys/ioctl.h>

#include "front/session.h"

bool hg_session_at_gap(const struct hg_session *session)
{
    uint64_t now_us = session->worker->loop.now_us;
    int unread = 0;
    if (session->queue_len > 0 || session->job != NULL || session->wait != HG_WAIT_NONE ||
        session->hidden || !hg_out_empty(&session->out) || !hg_list_empty(&session->ready))
        return false;
    /* Half a request: the rest is on its way, unless the client has stopped. */
    if ((session->in != NULL || session->skip_bytes > 0) &&
        now_us - session->active_us < HG_LEAVE_PATIENCE_US)
        return false;
    /* It may have connected to make the request that is on its way. */
    if (hg_counter_get(&session->requests) == 0 && now_us - session->born_us < HG_LEAVE_PATIENCE_US)
        return false;
    return session->read_closed || ioctl(session->fd, FIONREAD, &unread) != 0 || unread == 0;
}

void hg_session_leave(struct hg_session *session)
{
    session->leaving = true;
    if (!session->closing && hg_session_at_gap(session))
        hg_session_finish(session);
}
