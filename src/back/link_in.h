// link_in - the receiving half of a link
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_BACK_LINK_IN_H
#define HG_BACK_LINK_IN_H

#include "back/link.h"

void hg_link_on_readable(evutil_socket_t fd, short what, void *link);
/* Reads what there is and gives each reply to its call; may end the link. */
void hg_link_receive(struct hg_link *link);

#endif
