// late - a crowd's server that answers some keys late, the others at once, each connection in order
// SPDX-License-Identifier: BSD-3-Clause
//
// Keys that begin with "culprit" take `late_us` from when they come to the front of their
// connection; nothing behind them is answered before. The others take `each_us`.
#ifndef LATE_H
#define LATE_H

#include <string.h>

#include "crowd.h"

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
    bool busy[FAKE_CONNS] = {false};
    while (late->looked < fake->count && fake->requests[late->looked].answered)
        late->looked++;
    for (size_t i = late->looked; i < fake->count; i++) {
        struct fake_request *request = &fake->requests[i];
        int conn = request->conn;
        if (request->answered || busy[conn])
            continue;
        if (fake->conns[conn].fd < 0) {
            request->answered = true;
            continue;
        }
        if (late->front[conn] != i + 1) {
            late->front[conn] = i + 1;
            late->front_us[conn] = crowd_now_us();
        }
        uint64_t takes_us = late_is_culprit(request) ? late->late_us : late->each_us;
        if (crowd_now_us() - late->front_us[conn] < takes_us)
            busy[conn] = true;
        else
            fake_obey(fake, request);
    }
}

/* Lets time pass, with the server at work. */
static inline void late_pass(struct late *late, struct crowd *crowd, uint64_t us)
{
    for (uint64_t end_us = crowd_now_us() + us; crowd_now_us() < end_us;) {
        crowd_pass(crowd, end_us - crowd_now_us() < 1000 ? end_us - crowd_now_us() : 1000);
        late_serve(late, &crowd->solo.fake);
        crowd_settle(crowd);
    }
}

#endif
