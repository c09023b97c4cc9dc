// worker_stats - what is counted for each worker, whatever the tenant
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_FRONT_WORKER_STATS_H
#define HG_FRONT_WORKER_STATS_H

/* HG_WORKER_STAT(name, kind, sentence), kind COUNTER (grows only) or GAUGE (a number of now) */
#define HG_WORKER_STATS(HG_WORKER_STAT)                                                            \
    HG_WORKER_STAT(accepted, COUNTER, "client connections taken over from the listeners")          \
    HG_WORKER_STAT(connections, GAUGE, "client connections open now")                              \
    HG_WORKER_STAT(tls_connections, GAUGE, "client connections with TLS open now")                 \
    HG_WORKER_STAT(tls_unknown_users, COUNTER,                                                     \
                   "client certificates that name no user: the connection was closed, or stayed "  \
                   "anonymous")                                                                    \
    HG_WORKER_STAT(cmd_total, COUNTER, "requests that ended")                                      \
    HG_WORKER_STAT(get_hits, COUNTER, "gets that found an item")                                   \
    HG_WORKER_STAT(get_misses, COUNTER, "gets that found nothing")                                 \
    HG_WORKER_STAT(bytes_read, COUNTER, "bytes read from clients")                                 \
    HG_WORKER_STAT(bytes_written, COUNTER, "bytes handed to clients")                              \
    HG_WORKER_STAT(idle_closed, COUNTER, "connections closed by the idle limit")                   \
    HG_WORKER_STAT(bad_frames, COUNTER, "connections closed for broken framing")                   \
    HG_WORKER_STAT(stranger_text, COUNTER, "connections closed for speaking a text protocol")      \
    HG_WORKER_STAT(stranger_tls, COUNTER, "connections closed for a TLS greeting")                 \
    HG_WORKER_STAT(stranger_resp, COUNTER, "connections closed for speaking Redis' protocol")      \
    HG_WORKER_STAT(stranger_other, COUNTER, "connections closed for an unknown first byte")        \
    HG_WORKER_STAT(paused_for_output, COUNTER, "times that reading stopped for a slow reader")     \
    HG_WORKER_STAT(turns, COUNTER, "turns of the loop")                                            \
    HG_WORKER_STAT(yields, COUNTER, "times that a connection gave way after its share of a turn")  \
    HG_WORKER_STAT(held_now, GAUGE, "requests held for credits now")                               \
    HG_WORKER_STAT(in_flight, GAUGE, "requests with a store now")                                  \
    HG_WORKER_STAT(row_conflicts, COUNTER,                                                         \
                   "changes of rows that others made in vain, and were tried again")               \
    HG_WORKER_STAT(row_conflicts_given_up, COUNTER,                                                \
                   "row operations answered 0x85 after too many of them")                          \
    HG_WORKER_STAT(row_waits, COUNTER, "row operations that waited for another on the same row")   \
    HG_WORKER_STAT(memory_bytes, GAUGE, "bytes of buffers in use now")

#endif
