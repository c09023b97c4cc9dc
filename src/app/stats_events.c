// stats_events - the last events of the process: what began and ended
// SPDX-License-Identifier: BSD-3-Clause
//
// One packet for each event, oldest first, named event:N by its number, whose value is a JSON
// object with the names and the order of the fields in the log. With a number, those after that
// one: so who asks again and again misses none, unless more than the ring has came in between.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/stats.h"
#include "base/event.h"
#include "proto/status.h"

static void format_time(int64_t wall_ms, char *text, size_t bytes)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    size_t len = strftime(text, bytes, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + len, bytes - len, ".%03dZ", (int)(wall_ms % 1000));
}

static json_t *value_of(const struct hg_event *event, const struct hg_event_field *field)
{
    const char *at = event->text + field->at;
    if (field->kind != HG_EVENT_NUMBER)
        return json_stringn(at, field->len);
    return memchr(at, '.', field->len) != NULL ? json_real(strtod(at, NULL))
                                               : json_integer((json_int_t)strtoull(at, NULL, 10));
}

static json_t *event_json(const struct hg_event *event)
{
    char time[64];
    format_time(event->wall_ms, time, sizeof time);
    json_t *row =
        json_pack("{s:I, s:s, s:s, s:s}", "number", (json_int_t)event->number, "time", time,
                  "severity", event->level == HG_LOG_WARN ? "warn" : "info", "event", event->name);
    for (unsigned f = 0; row != NULL && f < event->count; f++)
        (void)json_object_set_new(row, event->fields[f].name, value_of(event, &event->fields[f]));
    return row;
}

static bool add(struct hg_job *job, const struct hg_event *event)
{
    char name[32];
    json_t *row = event_json(event);
    char *text = row != NULL ? json_dumps(row, JSON_COMPACT | JSON_REAL_PRECISION(10)) : NULL;
    bool done = text != NULL;
    snprintf(name, sizeof name, "event:%llu", (unsigned long long)event->number);
    if (done)
        hg_job_stat_bytes(job, hg_span_str(name), hg_span_str(text));
    free(text);
    json_decref(row);
    return done;
}

/* "events" or "events NUMBER". False: it is something else. */
static bool parse(struct hg_span key, uint64_t *ret_after)
{
    char text[24] = "";
    size_t head = sizeof "events" - 1;
    *ret_after = 0;
    if (key.len <= head)
        return true;
    size_t len = key.len - head - 1;
    if (len == 0 || len >= sizeof text - 1)
        return false;
    memcpy(text, key.at + head + 1, len);
    if (strspn(text, "0123456789") != len)
        return false;
    *ret_after = strtoull(text, NULL, 10);
    return true;
}

void hg_stats_events(struct hg_process *process, struct hg_job *job)
{
    struct hg_event event;
    uint64_t after;
    (void)process;
    if (!parse(job->key, &after)) {
        hg_job_fail(job, HG_STATUS_EINVAL,
                    "that is no number of an event (accepted: events, events NUMBER)");
        return;
    }
    for (; hg_events_next(after, &event); after = event.number)
        if (!add(job, &event)) {
            hg_job_fail(job, HG_STATUS_EINTERNAL, "no memory is left");
            return;
        }
}
