// handshake - greets the clients of TLS listeners, off the accept path and off the workers
// SPDX-License-Identifier: BSD-3-Clause
//
//   listener ─ give ─► handshake thread ─► least loaded worker
//
// A handshake costs a millisecond of key operations: threads of their own do it, each with a loop.
// At most `max` connections are here at a time. When there are so many, listeners leave new ones in
// the kernel's backlog, and the threads end some: the oldest of the address that has the most,
// first those that have said nothing yet. So who opens connections and stays silent displaces his
// own. Nothing is spent on a connection before its first byte is there.
#ifndef HG_FRONT_HANDSHAKE_H
#define HG_FRONT_HANDSHAKE_H

#include "base/counter.h"
#include "front/worker.h"
#include "io/tls.h"

#define HG_HANDSHAKE_THREADS_MAX  16
#define HG_HANDSHAKE_TICK_US      50000
#define HG_HANDSHAKE_SILENT_US    100000  /* who said nothing for so long may be displaced */
#define HG_HANDSHAKE_PROTECTED_US 1000000 /* who speaks has so long in any case */

/* How a listener greets; counted, never changed. */
struct hg_tls_rules {
    _Atomic unsigned refs;
    struct hg_tls_ctx *ctx;
    enum hg_client_user user;
};
/* Takes over `ctx`. NULL when memory is out: then it does not. */
HG_MUST_USE struct hg_tls_rules *hg_tls_rules_new(struct hg_tls_ctx *ctx, enum hg_client_user user);
struct hg_tls_rules *hg_tls_rules_ref(struct hg_tls_rules *rules);
void hg_tls_rules_unref(struct hg_tls_rules *rules); /* NULL is allowed */

struct hg_handshakes;

struct hg_handshake_stats {
#define HG_HANDSHAKE_STAT(name, kind, text) hg_counter name;
#include "front/handshake_stats.def"
#undef HG_HANDSHAKE_STAT
};

/* No thread runs yet. NULL when memory is out. */
HG_MUST_USE struct hg_handshakes *hg_handshakes_new(struct hg_front *front, unsigned threads);
/* 0 or -errno. */
HG_MUST_USE int hg_handshakes_start(struct hg_handshakes *all);
/* From any thread, at any time. */
void hg_handshakes_set(struct hg_handshakes *all, unsigned max, uint64_t timeout_us);
/* Ends the threads and what is under way; the workers still run, or have never run. */
void hg_handshakes_stop(struct hg_handshakes *all);
/* After stop, if it was started; NULL is allowed. */
void hg_handshakes_free(struct hg_handshakes *all);

/* Takes over the socket of `client`, whose `tls` it makes, and a reference of `rules`. 0, or
   -ENOMEM: then it took nothing over. From the main thread. */
HG_MUST_USE int hg_handshakes_give(struct hg_handshakes *all, const struct hg_client *client,
                                   struct hg_tls_rules *rules);
/* Connections that are here now. */
unsigned hg_handshakes_now(const struct hg_handshakes *all);
bool hg_handshakes_full(const struct hg_handshakes *all);
unsigned hg_handshakes_threads(const struct hg_handshakes *all);
const struct hg_handshake_stats *hg_handshakes_stats(const struct hg_handshakes *all,
                                                     unsigned thread);

#endif
