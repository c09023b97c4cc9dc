// link_in - the receiving half of a link
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_BACK_LINK_IN_H
#define HG_BACK_LINK_IN_H

#include <sys/types.h>
#include <sys/uio.h>

#include "back/link.h"

void hg_link_on_readable(evutil_socket_t fd, short what, void *link);
/* Reads what there is and gives each reply to its call; may end the link. */
void hg_link_receive(struct hg_link *link);

/* The connection is up: says what makes it link->identity's; READY at once if nothing is to be
 * said.
 */
void hg_link_log_in(struct hg_link *link, bool rebind);
/* The address that is tried is of no use: the next one is, or the link ends. */
void hg_link_try_next(struct hg_link *link, enum hg_link_why why, int error);

/* TLS (link_tls.c) */

/* The socket is connected and watched: begins the handshake. */
void hg_link_tls_begin(struct hg_link *link);
/* The socket can be read or written: goes on with the handshake. */
void hg_link_tls_step(struct hg_link *link);
/* The handshake failed: tells why, and counts it. */
void hg_link_tls_tell(struct hg_link *link, const char *why);
/* TLS broke off: is it the answer to our certificate, or to our having none? Then it is told. */
bool hg_link_tls_is_refused(struct hg_link *link);
/* As readv; *ret_more: there is more, or an end or an error, that no event may tell of. */
HG_MUST_USE ssize_t hg_link_tls_read(struct hg_link *link, const struct iovec *iov, int count,
                                     bool *ret_more);
/* Sends what is queued. As hg_out_flush. */
HG_MUST_USE int hg_link_tls_flush(struct hg_link *link);
void hg_link_on_wake(struct hg_hub_wake *wake);

/* Nothing is owed to the slot any more: it is stranded no longer. */
static inline void hg_link_settle_slot(struct hg_link *link, struct hg_link_slot *slot)
{
    uint64_t ticket = slot->stranded;
    slot->stranded = 0;
    if (ticket != 0)
        link->owner->on_strand(link, ticket, -1);
}

#endif
