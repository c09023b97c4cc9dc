// throttle - what is throttled: its begin and its end as events, and how many there are now
// SPDX-License-Identifier: BSD-3-Clause
#include "base/throttle.h"

#include <stdatomic.h>

static const char *const names[HG_THROTTLES] = {
#define HG_THROTTLE(NAME, printed, text) printed,
#include "base/throttle.def"
#undef HG_THROTTLE
};

static _Atomic uint64_t begun[HG_THROTTLES], ended[HG_THROTTLES];

static void begin(struct hg_event *event, enum hg_log_level level, const char *name,
                  enum hg_throttle what, const struct hg_throttle_place *place)
{
    hg_event_init(event, level, name);
    hg_event_word(event, "what", names[what]);
    hg_event_word(event, "upstream", place->upstream);
    hg_event_word(event, "server", place->server);
}

void hg_throttle_begin(struct hg_event *event, enum hg_throttle what,
                       const struct hg_throttle_place *place)
{
    atomic_fetch_add_explicit(&begun[what], 1, memory_order_relaxed);
    begin(event, HG_LOG_WARN, "throttle-begin", what, place);
}

void hg_throttle_end(struct hg_event *event, enum hg_throttle what,
                     const struct hg_throttle_place *place)
{
    atomic_fetch_add_explicit(&ended[what], 1, memory_order_relaxed);
    begin(event, HG_LOG_INFO, "throttle-end", what, place);
}

uint64_t hg_throttle_now(enum hg_throttle what)
{
    uint64_t over = atomic_load_explicit(&ended[what], memory_order_relaxed);
    uint64_t all = atomic_load_explicit(&begun[what], memory_order_relaxed);
    return all > over ? all - over : 0;
}

const char *hg_throttle_name(enum hg_throttle what)
{
    return names[what];
}
