// webalive - does the process turn? Signs of life of the main thread and of the workers
// SPDX-License-Identifier: BSD-3-Clause
//
// Once a second the threads' counts are looked at. A thread whose count has not changed in
// HG_WEBALIVE_LOOKS looks in a row hangs. Looks are counted, not time, so that a process that was
// stopped and goes on is not taken for one that hangs. Housekeeping is left out: it may wait for a
// disk. Pure.
#ifndef HG_APP_WEBALIVE_H
#define HG_APP_WEBALIVE_H

#include <stddef.h>
#include <stdint.h>

#define HG_WEBALIVE_LOOKS 30 /* a worker with clients turns 20 times a second, idle or not */
#define HG_WEBALIVE_MAX   65 /* the main thread and 64 workers */
#define HG_WEBALIVE_NONE  ((size_t)-1)

struct hg_webalive {
    uint64_t last[HG_WEBALIVE_MAX];
    unsigned still[HG_WEBALIVE_MAX]; /* looks without a change */
    size_t count;
};

/* `count` of counts, at most HG_WEBALIVE_MAX; the same at every look. */
void hg_webalive_look(struct hg_webalive *alive, const uint64_t *counts, size_t count);
/* The first that hangs, or HG_WEBALIVE_NONE. */
size_t hg_webalive_hung(const struct hg_webalive *alive);

#endif
