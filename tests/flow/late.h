// late - a server that answers some keys late and the others at once, in order on each connection
// SPDX-License-Identifier: BSD-3-Clause
//
// Keys that begin with "culprit" take `late_us` from when they come to the front of their
// connection; nothing behind them is answered before. The others take `each_us`.
#ifndef LATE_H
#define LATE_H

#include <string.h>

#include "solo.h"

struct late {
    uint64_t late_us, each_us;
    uint64_t front_us[FAKE_CONNS]; /* when the connection's oldest request came to the front */
    size_t front[FAKE_CONNS];      /* 1 + its number; 0: there is none */
    size_t looked;                 /* requests below are answered */
};

static inline bool late_is_culprit(const struct fake_request *request)
{
    return strncmp(request->key, "culprit", 7) == 0;
}

/* Answers what is due. */
static inline void late_serve(struct late *late, struct fake *fake)
{
    uint64_t now_us = hg_now_us();
    bool seen[FAKE_CONNS] = {false};
    while (late->looked < fake->count && fake->requests[late->looked].answered)
        late->looked++;
    for (size_t i = late->looked; i < fake->count; i++) {
        struct fake_request *request = &fake->requests[i];
        if (request->answered || seen[request->conn])
            continue;
        if (fake->conns[request->conn].fd < 0) {
            request->answered = true;
            continue;
        }
        if (late->front[request->conn] != i + 1) {
            late->front[request->conn] = i + 1;
            late->front_us[request->conn] = now_us;
        }
        uint64_t takes_us = late_is_culprit(request) ? late->late_us : late->each_us;
        if (now_us - late->front_us[request->conn] < takes_us)
            seen[request->conn] = true;
        else
            fake_obey(fake, request);
    }
}

/* As bench_turn, with the server at work. */
static inline void late_turn(struct late *late, struct solo *solo)
{
    bench_turn(&solo->bench);
    late_serve(late, &solo->fake);
}

#define LATE_UNTIL(late, solo, condition)                                                          \
    do {                                                                                           \
        uint64_t late_deadline = bench_deadline();                                                 \
        while (!(condition)) {                                                                     \
            if (hg_now_us() > late_deadline)                                                       \
                fail_msg("still not: %s", #condition);                                             \
            late_turn(late, solo);                                                                 \
        }                                                                                          \
    } while (0)

static inline void late_for(struct late *late, struct solo *solo, uint64_t us)
{
    uint64_t end_us = hg_now_us() + us;
    while (hg_now_us() < end_us)
        late_turn(late, solo);
}

#endif
