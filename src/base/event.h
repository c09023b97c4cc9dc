// event - what begins and ends in the process: a line of the log, and a row of a ring
// SPDX-License-Identifier: BSD-3-Clause
//
//   2026-01-31T12:00:00.123Z warn throttle-begin what=breaker upstream=cache server=10.0.0.1:11211
//
// An event has a name and fields, which are added in the order in which they are printed. Names of
// events and fields are literals. What does not fit is left out: a field as a whole, never a part.
//
// The ring has the last HG_EVENTS_KEPT events of the process. It begins empty, and nothing of it is
// handed over to a successor. Any thread may tell and read; each takes a mutex, so an event is told
// where something has changed, never for a request.
#ifndef HG_BASE_EVENT_H
#define HG_BASE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/log.h"
#include "base/span.h"

#define HG_EVENTS_KEPT      1000
#define HG_EVENT_FIELDS     14
#define HG_EVENT_TEXT_BYTES 520 /* of all fields as they are printed */

enum hg_event_kind {
    HG_EVENT_WORD,  /* text without spaces and quotes, printed as it is */
    HG_EVENT_TEXT,  /* text in quotes; bytes that are not printable ASCII are \xNN */
    HG_EVENT_NUMBER /* printed as JSON would */
};

struct hg_event_field {
    const char *name;
    uint16_t at, len; /* of the value in `text`, without quotes */
    uint8_t kind;     /* enum hg_event_kind */
};

struct hg_event {
    uint64_t number; /* from 1; 0: not told yet */
    int64_t wall_ms; /* since 1970 */
    enum hg_log_level level;
    const char *name;
    uint16_t len, count;
    struct hg_event_field fields[HG_EVENT_FIELDS];
    char text[HG_EVENT_TEXT_BYTES]; /* "what=breaker upstream=cache", zero-ended */
};

void hg_event_init(struct hg_event *event, enum hg_log_level level, const char *name);
/* An empty word or text is left out. */
void hg_event_word(struct hg_event *event, const char *name, const char *value);
void hg_event_text(struct hg_event *event, const char *name, struct hg_span value);
void hg_event_number(struct hg_event *event, const char *name, uint64_t value);
void hg_event_real(struct hg_event *event, const char *name, double value, int decimals);

/* Writes the line, and puts the event in the ring. */
void hg_event_tell(struct hg_event *event);

/* Copies the oldest event in the ring with a number above `after`; false: there is none. */
HG_MUST_USE bool hg_events_next(uint64_t after, struct hg_event *ret);

#endif
