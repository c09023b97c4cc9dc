// listener - accepts clients and hands each to the least loaded worker
// SPDX-License-Identifier: BSD-3-Clause
//
// Lives on the main thread's loop. At most HG_ACCEPT_BUDGET connections are taken a turn, so that a
// flood of connections does not delay ticks; when descriptors run out accepting pauses for a
// moment.
#ifndef HG_FRONT_LISTENER_H
#define HG_FRONT_LISTENER_H

#include "front/handshake.h"
#include "front/worker.h"

#define HG_ACCEPT_BUDGET   64
#define HG_ACCEPT_PAUSE_US 100000
/* While there are too many handshakes, a TLS listener looks so often whether there is room. */
#define HG_HANDSHAKE_PAUSE_US 10000
/* Connections over the limit that are told so; more are closed at once. */
#define HG_OVER_LIMIT_GUESTS 256

struct hg_listeners;

struct hg_listeners_stats {
    hg_counter accepted, over_limit, refused, failed;
};

/* `max_connections` may change later. NULL when memory is out. */
HG_MUST_USE struct hg_listeners *hg_listeners_new(struct hg_loop *loop, struct hg_front *front,
                                                  unsigned max_connections);
/* Listens on one more address. 0 or -errno; *ret_bound (may be NULL) gets the address with the real
   port. */
HG_MUST_USE int hg_listeners_add(struct hg_listeners *listeners, const struct hg_addr *addr,
                                 unsigned unix_mode, struct hg_addr *ret_bound);
/* The same with a socket that listens already, which is taken over when it succeeds. `keeps_file`:
   the file of a unix socket is somebody else's and stays in the end. */
HG_MUST_USE int hg_listeners_adopt(struct hg_listeners *listeners, int fd, bool keeps_file,
                                   struct hg_addr *ret_bound);
/* Calls fn for each socket, the one that was added first first. */
void hg_listeners_each(const struct hg_listeners *listeners,
                       void (*fn)(void *arg, int fd, bool keeps_file), void *arg);
/* Another process listens on these sockets too: the files of unix sockets stay in the end. */
void hg_listeners_keep_files(struct hg_listeners *listeners);
/* The one that was added last is known by this number from now on; without it they are numbered in
   the order of adding. */
void hg_listeners_number_last(struct hg_listeners *listeners, size_t number);
/* Makes the listener of this number one of TLS; before start. Later it changes the rules for those
   who come, from any thread. Takes over the reference of `rules`. */
void hg_listeners_set_tls(struct hg_listeners *listeners, size_t number,
                          struct hg_tls_rules *rules);
/* Where the clients of those listeners are greeted; before start. */
void hg_listeners_set_handshakes(struct hg_listeners *listeners, struct hg_handshakes *handshakes);
void hg_listeners_set_max(struct hg_listeners *listeners, unsigned max_connections);
/* Starts to accept; the sockets have been listening since they were added. 0 or -errno. */
HG_MUST_USE int hg_listeners_start(struct hg_listeners *listeners);
/* Stops accepting and removes the files of unix sockets that are its own. */
void hg_listeners_close(struct hg_listeners *listeners);
void hg_listeners_free(struct hg_listeners *listeners);
/* The worker with the fewest connections; *ret_total: of all workers. */
struct hg_worker *hg_listeners_pick(struct hg_front *front, unsigned *ret_total);
const struct hg_listeners_stats *hg_listeners_stats(const struct hg_listeners *listeners);

#endif
