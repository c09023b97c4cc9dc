// overload_in - the simulation's insides, shared by its files
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_TEST_OVERLOAD_IN_H
#define HG_TEST_OVERLOAD_IN_H

#include "base/list.h"
#include "base/prng.h"
#include "core/ticketline.h"
#include "overload.h"

#define OVERLOAD_NEVER UINT64_MAX

struct overload_request {
    struct hg_ticketline_waiter waiter; // first
    struct overload_request *next;      // in a socket, among retries or free ones
    struct hg_list sent;                // by the order in which they were dispatched
    uint32_t session;
    enum hg_ticket_kind kind;
    uint32_t tries;
    double demand;
    uint64_t at_us;    // intended send time
    uint64_t again_us; // a retry comes then
    uint64_t sent_us;
    double finish; // of the backend's virtual time
    bool answered; // timed out: the ticket is still taken
};

struct overload_fifo {
    struct overload_request *first, *last;
};

struct overload_session {
    uint32_t tenant;
    struct overload_fifo socket;
    struct overload_request *waits;
    uint64_t backed_us; // since when there may be bytes behind a waiting request
    bool resumes;       // is among those to be looked at again
};

/* The backend: its virtual time goes on by what each request inside is served. */
struct overload_server {
    const struct overload_setup *setup;
    struct hg_prng prng;
    uint64_t now_us, noise_us; // time of the next draw
    uint32_t phase;
    double factor; // of noise
    double share;  // demand served to each in a us, as things are
    uint64_t next_us;
    double time; // virtual: demand served to each since the beginning
    struct overload_request **heap;
    uint32_t count, room;
};

/* Where the arrivals come from: equal seeds, equal arrivals. */
struct overload_source {
    const struct overload_setup *setup;
    struct hg_prng prng;
    double at_us;
    uint32_t phase;
    double heavy;     // share of tenant 0
    uint32_t batch;   // requests that are left of it
    uint32_t session; // its
};

struct overload_arrival {
    uint64_t at_us;
    uint32_t session;
    enum hg_ticket_kind kind;
    double demand;
};

double overload_uniform(struct hg_prng *prng); // in (0, 1]
void overload_source_init(struct overload_source *source, const struct overload_setup *setup);
void overload_source_next(struct overload_source *source, struct overload_arrival *ret_arrival);
/* Sessions of all tenants; those of tenant 0 come first. */
uint32_t overload_sessions(const struct overload_setup *setup);

void overload_server_init(struct overload_server *server, const struct overload_setup *setup);
void overload_server_fini(struct overload_server *server);
/* R(n) now, a second. */
double overload_server_rate(const struct overload_server *server, uint32_t n);
/* When something happens inside next, if nothing comes in before: a request is done, or the rate
   changes. */
static inline uint64_t overload_server_next_us(const struct overload_server *server)
{
    return server->next_us;
}
/* Goes on to that moment, at most that of overload_server_next_us. */
void overload_server_go(struct overload_server *server, uint64_t now_us);
void overload_server_put(struct overload_server *server, struct overload_request *request);
/* One that is done now; NULL: there is none. */
struct overload_request *overload_server_take(struct overload_server *server);

#endif
