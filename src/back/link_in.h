// link_in - the receiving half of a link
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_BACK_LINK_IN_H
#define HG_BACK_LINK_IN_H

#include "back/link.h"

void hg_link_on_readable(evutil_socket_t fd, short what, void *link);
/* Reads what there is and gives each reply to its call; may end the link. */
void hg_link_receive(struct hg_link *link);

/* Nothing is owed to the slot any more: it is stranded no longer. */
static inline void hg_link_settle_slot(struct hg_link *link, struct hg_link_slot *slot)
{
    uint8_t ticket = slot->stranded;
    slot->stranded = 0;
    if (ticket != 0)
        link->owner->on_strand(link, ticket, -1);
}

#endif
