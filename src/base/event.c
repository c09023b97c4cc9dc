// event - what begins and ends in the process: a line of the log, and a row of a ring
// SPDX-License-Identifier: BSD-3-Clause
#include "base/event.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define PER_SECOND 200 /* lines of the log; the ring has what is left out there */

static struct hg_event ring[HG_EVENTS_KEPT]; /* under the lock, as is `told` */
static uint64_t told;
static pthread_mutex_t ring_lock = PTHREAD_MUTEX_INITIALIZER;

void hg_event_init(struct hg_event *event, enum hg_log_level level, const char *name)
{
    event->number = 0;
    event->wall_ms = 0;
    event->level = level;
    event->name = name;
    event->len = event->count = 0;
    event->text[0] = '\0';
}

/* Room for the value, behind " NAME=" and a quote; NULL: there is none. The caller writes `len`
   bytes and calls end. */
static char *begin(struct hg_event *event, const char *name, enum hg_event_kind kind, size_t len)
{
    size_t quotes = kind == HG_EVENT_TEXT ? 2 : 0;
    size_t needs = (event->count > 0) + strlen(name) + 1 + len + quotes;
    if (event->count == HG_EVENT_FIELDS || event->len + needs >= sizeof event->text)
        return NULL;
    event->len +=
        (uint16_t)snprintf(event->text + event->len, sizeof event->text - event->len, "%s%s=%s",
                           event->count > 0 ? " " : "", name, quotes > 0 ? "\"" : "");
    event->fields[event->count++] = (struct hg_event_field){
        .name = name, .at = event->len, .len = (uint16_t)len, .kind = (uint8_t)kind};
    return event->text + event->len;
}

static void end(struct hg_event *event, enum hg_event_kind kind, size_t len)
{
    event->len += (uint16_t)len;
    if (kind == HG_EVENT_TEXT)
        event->text[event->len++] = '"';
    event->text[event->len] = '\0';
}

static void put(struct hg_event *event, const char *name, enum hg_event_kind kind,
                const char *value, size_t len)
{
    char *to = len > 0 ? begin(event, name, kind, len) : NULL;
    if (to == NULL)
        return;
    memcpy(to, value, len);
    end(event, kind, len);
}

void hg_event_word(struct hg_event *event, const char *name, const char *value)
{
    put(event, name, HG_EVENT_WORD, value, strlen(value));
}

void hg_event_text(struct hg_event *event, const char *name, struct hg_span value)
{
    char text[HG_EVENT_TEXT_BYTES];
    size_t len = 0;
    for (size_t i = 0; i < value.len && len + 5 < sizeof text; i++) {
        uint8_t c = value.at[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\')
            text[len++] = (char)c;
        else
            len += (size_t)snprintf(text + len, sizeof text - len, "\\x%02x", c);
    }
    put(event, name, HG_EVENT_TEXT, text, len);
}

void hg_event_number(struct hg_event *event, const char *name, uint64_t value)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    put(event, name, HG_EVENT_NUMBER, text, (size_t)len);
}

void hg_event_real(struct hg_event *event, const char *name, double value, int decimals)
{
    char text[64];
    int len = snprintf(text, sizeof text, "%.*f", decimals, value);
    if (len > 0 && (size_t)len < sizeof text)
        put(event, name, HG_EVENT_NUMBER, text, (size_t)len);
}

void hg_event_tell(struct hg_event *event)
{
    pthread_mutex_lock(&ring_lock);
    event->number = ++told;
    event->wall_ms = hg_wall_ms();
    ring[(event->number - 1) % HG_EVENTS_KEPT] = *event;
    pthread_mutex_unlock(&ring_lock);
    HG_LOG_UP_TO(PER_SECOND, event->level, "%s %s", event->name, event->text);
}

bool hg_events_next(uint64_t after, struct hg_event *ret)
{
    pthread_mutex_lock(&ring_lock);
    uint64_t first = told > HG_EVENTS_KEPT ? told - HG_EVENTS_KEPT + 1 : 1;
    uint64_t number = after + 1 > first ? after + 1 : first;
    bool found = after < told;
    if (found)
        *ret = ring[(number - 1) % HG_EVENTS_KEPT];
    pthread_mutex_unlock(&ring_lock);
    return found;
}
