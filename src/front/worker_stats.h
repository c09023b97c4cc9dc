// worker_stats - what is counted for each worker, whatever the tenant
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_FRONT_WORKER_STATS_H
#define HG_FRONT_WORKER_STATS_H

/* HG_WORKER_STAT(name, sentence) */
#define HG_WORKER_STATS(HG_WORKER_STAT)                                                            \
    HG_WORKER_STAT(accepted, "client connections taken over from the listeners")                   \
    HG_WORKER_STAT(connections, "client connections open now")                                     \
    HG_WORKER_STAT(cmd_total, "requests that ended")                                               \
    HG_WORKER_STAT(get_hits, "gets that found an item")                                            \
    HG_WORKER_STAT(get_misses, "gets that found nothing")                                          \
    HG_WORKER_STAT(bytes_read, "bytes read from clients")                                          \
    HG_WORKER_STAT(bytes_written, "bytes handed to clients")                                       \
    HG_WORKER_STAT(idle_closed, "connections closed by the idle limit")                            \
    HG_WORKER_STAT(bad_frames, "connections closed for broken framing")                            \
    HG_WORKER_STAT(stranger_text, "connections closed for speaking a text protocol")               \
    HG_WORKER_STAT(stranger_tls, "connections closed for a TLS greeting")                          \
    HG_WORKER_STAT(stranger_resp, "connections closed for speaking Redis' protocol")               \
    HG_WORKER_STAT(stranger_other, "connections closed for an unknown first byte")                 \
    HG_WORKER_STAT(paused_for_output, "times that reading stopped for a slow reader")              \
    HG_WORKER_STAT(turns, "turns of the loop")                                                     \
    HG_WORKER_STAT(yields, "times that a connection gave way after its share of a turn")           \
    HG_WORKER_STAT(held_now, "requests held for credits now")                                      \
    HG_WORKER_STAT(in_flight, "requests with a store now")                                         \
    HG_WORKER_STAT(row_conflicts,                                                                  \
                   "changes of rows that others made in vain, and were tried again")               \
    HG_WORKER_STAT(row_conflicts_given_up, "row operations answered 0x85 after too many of them")  \
    HG_WORKER_STAT(row_waits, "row operations that waited for another on the same row")            \
    HG_WORKER_STAT(memory_bytes, "bytes of buffers in use now")

#endif
