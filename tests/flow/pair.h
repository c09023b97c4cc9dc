// pair - a link whose server is the test itself, at the other end of a socket pair
// SPDX-License-Identifier: BSD-3-Clause
#ifndef PAIR_H
#define PAIR_H

#include "back/link.h"
#include "rig.h"

struct pair {
    struct rig rig;
    struct hg_hub hub;
    struct hg_link_limits limits;
    struct hg_upstream_counters counters;
    struct hg_link *link;
    int fd; /* the server's end */
    int readies, rooms, timeouts, ends;
    uint32_t answers;
    enum hg_link_why why;         /* of the last end, */
    char text[HG_LINK_WHY_BYTES]; /* and in words */
    struct hg_link *heir;         /* takes what was not sent */
};

void pair_init(struct pair *pair, bool probe);
void pair_fini(struct pair *pair);
/* Another link of the same kind, for pair->heir; its server's end in *ret_fd. */
struct hg_link *pair_new_link(struct pair *pair, int *ret_fd, bool probe);
/* One that is not connected yet. */
struct hg_link *pair_bare_link(struct pair *pair);
void pair_turn(struct pair *pair);
void pair_send(struct pair *pair, struct note *note);
void pair_get(struct pair *pair, struct note *note, const char *key);
/* As the server. */
void pair_say(struct pair *pair, const void *bytes, size_t len);
void pair_say_found(struct pair *pair, uint32_t opaque, const char *value);
/* A found value as bytes. */
size_t pair_found(uint8_t *out, uint32_t opaque, const char *value);
/* What the server has received. */
size_t pair_hear(struct pair *pair, uint8_t *out, size_t cap);

#endif
