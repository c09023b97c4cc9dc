// webhistory_text - the history as JSON
// SPDX-License-Identifier: BSD-3-Clause
#include <stdlib.h>

#include "app/webhistory.h"

/* Which seconds are shown: from, up to and with the last. */
struct span {
    uint64_t from, to;
};

static struct span choose(const struct hg_web_history *history, double since_s)
{
    struct span span = {1, 0};
    if (history->begin_us == 0)
        return span;
    span.to = history->second;
    span.from = span.to >= HG_WEB_HISTORY_S ? span.to - HG_WEB_HISTORY_S + 1 : 0;
    while (span.from <= span.to && (double)history->time_s[span.from % HG_WEB_HISTORY_S] <= since_s)
        span.from++;
    return span;
}

static void ring(struct hg_webtext *text, const char *key, const hg_web_ring values,
                 struct span span)
{
    hg_json_key(text, key);
    hg_json_open(text, '[');
    for (uint64_t second = span.from; second <= span.to; second++) {
        uint32_t value = values[second % HG_WEB_HISTORY_S];
        if (value == HG_WEB_MISSING)
            hg_json_null(text);
        else
            hg_json_uint(text, value);
    }
    hg_json_close(text, ']');
}

static void times(struct hg_webtext *text, const struct hg_web_history *history, struct span span)
{
    hg_json_key(text, "time");
    hg_json_open(text, '[');
    for (uint64_t second = span.from; second <= span.to; second++)
        hg_json_uint(text, history->time_s[second % HG_WEB_HISTORY_S]);
    hg_json_close(text, ']');
}

static void upstreams(struct hg_webtext *text, const struct hg_web_history *history,
                      struct span span)
{
    static const char *const keys[HG_WEB_UP_COUNT] = {"read_tickets", "write_tickets", "out",
                                                      "queued"};
    hg_json_key(text, "upstreams");
    hg_json_open(text, '{');
    for (size_t i = 0; i < history->upstream_count; i++) {
        hg_json_key(text, history->upstreams[i]->name);
        hg_json_open(text, '{');
        for (unsigned r = 0; r < HG_WEB_UP_COUNT; r++)
            ring(text, keys[r], history->upstreams[i]->rings[r], span);
        hg_json_close(text, '}');
    }
    hg_json_close(text, '}');
}

static int busiest_first(const void *a, const void *b)
{
    const struct hg_web_tenant_rings *left = *(struct hg_web_tenant_rings *const *)a;
    const struct hg_web_tenant_rings *right = *(struct hg_web_tenant_rings *const *)b;
    return (left->sum < right->sum) - (left->sum > right->sum);
}

static void tenants(struct hg_webtext *text, const struct hg_web_history *history, struct span span)
{
    static const char *const keys[HG_WEB_OF_COUNT] = {"units_per_s", "rejected_per_s"};
    struct hg_web_tenant_rings *list[HG_WEB_HISTORY_TENANTS];
    size_t count = 0;
    for (unsigned i = 0; i < HG_WEB_HISTORY_TENANTS; i++)
        if (history->tenants[i] != NULL)
            list[count++] = history->tenants[i];
    if (count > 0)
        qsort(list, count, sizeof list[0], busiest_first);
    hg_json_key(text, "tenants");
    hg_json_open(text, '{');
    for (size_t i = 0; i < count && i < HG_WEB_HISTORY_SHOWN; i++) {
        hg_json_key(text, list[i]->name);
        hg_json_open(text, '{');
        for (unsigned r = 0; r < HG_WEB_OF_COUNT; r++)
            ring(text, keys[r], list[i]->rings[r], span);
        hg_json_close(text, '}');
    }
    hg_json_close(text, '}');
}

void hg_web_history_text(const struct hg_web_history *history, uint64_t wall_s, double since_s,
                         struct hg_webtext *text)
{
    static const char *const names[HG_WEB_SERIES_COUNT] = {
#define HG_WEB_SERIES(name) #name,
        HG_WEB_SERIES_LIST(HG_WEB_SERIES)
#undef HG_WEB_SERIES
    };
    struct span span = choose(history, since_s);
    hg_json_open(text, '{');
    hg_json_key(text, "step_s");
    hg_json_uint(text, 1);
    hg_json_key(text, "now");
    hg_json_uint(text, wall_s);
    times(text, history, span);
    hg_json_key(text, "series");
    hg_json_open(text, '{');
    for (unsigned s = 0; s < HG_WEB_SERIES_COUNT; s++)
        ring(text, names[s], history->series[s], span);
    hg_json_close(text, '}');
    upstreams(text, history, span);
    tenants(text, history, span);
    hg_json_close(text, '}');
}
