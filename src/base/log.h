// log - one line per event, key=value, to stderr or a file
// SPDX-License-Identifier: BSD-3-Clause
//
//   2026-01-31T12:00:00.123Z warn upstream=cache server=10.0.0.1:11211 msg="breaker opened"
//
// A call site writes at most HG_LOG_PER_SECOND lines a second (HG_TRACE_PER_SECOND of traces,
// HG_EVICT_PER_SECOND of evicted requests); what it leaves out is counted and told with its next
// line. The sink is the process's, as stderr is; it may be opened, changed and reopened on any
// thread while others write. Lines are written with one write(2), so threads do not mix.
#ifndef HG_BASE_LOG_H
#define HG_BASE_LOG_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"

#define HG_LOG_PER_SECOND   10
#define HG_TRACE_PER_SECOND 1000 /* of traced requests, which are sampled already */
#define HG_EVICT_PER_SECOND 1000 /* of evicted requests: each has its line */

enum hg_log_level { HG_LOG_ERROR, HG_LOG_WARN, HG_LOG_INFO, HG_LOG_DEBUG };

struct hg_log_site {
    _Atomic uint64_t second_count; /* second << 16 | lines written in it */
    _Atomic uint64_t left_out;
    unsigned per_second; /* lines that it may write */
};

/* `path` NULL: the sink stays, at first stderr. 0 or -errno; on an error sink and level stay. */
HG_MUST_USE int hg_log_open(const char *path, enum hg_log_level level);
/* Opens the same path again (after a rotation). */
HG_MUST_USE int hg_log_reopen(void);
void hg_log_set_level(enum hg_log_level level);
/* Back to stderr; nobody may be writing. */
void hg_log_close(void);

void hg_log_at(struct hg_log_site *site, enum hg_log_level level, const char *fmt, ...)
    HG_PRINTF(3, 4);

#define HG_LOG_UP_TO(most, level, ...)                                                             \
    do {                                                                                           \
        static struct hg_log_site hg_log_site_ = {.per_second = (most)};                           \
        hg_log_at(&hg_log_site_, level, __VA_ARGS__);                                              \
    } while (0)
#define HG_LOG(level, ...) HG_LOG_UP_TO(HG_LOG_PER_SECOND, level, __VA_ARGS__)
#define hg_log_trace(...)  HG_LOG_UP_TO(HG_TRACE_PER_SECOND, HG_LOG_INFO, __VA_ARGS__)
#define hg_log_evict(...)  HG_LOG_UP_TO(HG_EVICT_PER_SECOND, HG_LOG_INFO, __VA_ARGS__)
#define hg_log_error(...)  HG_LOG(HG_LOG_ERROR, __VA_ARGS__)
#define hg_log_warn(...)   HG_LOG(HG_LOG_WARN, __VA_ARGS__)
#define hg_log_info(...)   HG_LOG(HG_LOG_INFO, __VA_ARGS__)
#define hg_log_debug(...)  HG_LOG(HG_LOG_DEBUG, __VA_ARGS__)

/* Writes `text` with everything but printable ASCII (and quote, backslash) as \xNN into `out`, cut
   to fit and zero-ended; returns `out`. */
const char *hg_escape(char *out, size_t out_bytes, struct hg_span text);

#endif
