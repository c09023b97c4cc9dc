// session_tls - what is different for a connection that speaks TLS
// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>

#include "front/session.h"

ssize_t hg_session_receive_tls(struct hg_session *session, uint8_t *room, size_t bytes)
{
    size_t have = 0;
    ssize_t n;
    session->hidden = false;
    do {
        n = hg_tls_recv(session->tls, room + have, bytes - have);
        if (n > 0)
            have += (size_t)n;
    } while (n > 0 && have < bytes && hg_tls_pending(session->tls) > 0);
    if (n > 0)
        session->hidden = have == bytes && hg_tls_pending(session->tls) > 0;
    else if (n != -EAGAIN)
        session->hidden = have > 0 || n == -EINTR; /* the end is told by the next call */
    if (n < 0)
        errno = (int)-n;
    return have > 0 ? (ssize_t)have : n;
}
