// reload_report - what a reload changes, or would change, as JSON
// SPDX-License-Identifier: BSD-3-Clause
#include "app/reload_report.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/ringdiff.h"
#include "app/upstream_own.h"
#include "base/clock.h"

/* An answer stays below half a MiB, whatever there is to say. */
#define CHANGES_MAX 400
#define RINGS_MAX   64
#define SERVERS_MAX 64
#define TEXT_MAX    512

struct hg_report {
    json_t *changes, *warnings, *rings;
    size_t changes_out, warnings_out, rings_out, servers_out;
};

struct hg_report *hg_report_new(void)
{
    struct hg_report *report = calloc(1, sizeof *report);
    if (report == NULL)
        return NULL;
    report->changes = json_array();
    report->warnings = json_array();
    report->rings = json_array();
    if (report->changes != NULL && report->warnings != NULL && report->rings != NULL)
        return report;
    hg_report_free(report);
    return NULL;
}

void hg_report_free(struct hg_report *report)
{
    if (report == NULL)
        return;
    json_decref(report->changes);
    json_decref(report->warnings);
    json_decref(report->rings);
    free(report);
}

/* Cut, and what is no UTF-8 replaced. */
static json_t *text_json(const char *text)
{
    char room[TEXT_MAX + 4];
    size_t len = strlen(text), cut = len > TEXT_MAX ? TEXT_MAX : len;
    while (cut < len && cut > 0 && ((unsigned char)text[cut] & 0xc0) == 0x80)
        cut--; /* not within a character */
    memcpy(room, text, cut);
    snprintf(room + cut, sizeof room - cut, "%s", cut < len ? "..." : "");
    json_t *string = json_string(room);
    if (string != NULL)
        return string;
    for (char *at = room; *at != '\0'; at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    return json_string(room);
}

void hg_report_change(struct hg_report *report, const struct hg_conf_change *change)
{
    if (json_array_size(report->changes) >= CHANGES_MAX) {
        report->changes_out++;
        return;
    }
    json_t *row = json_object();
    json_object_set_new(row, "option", text_json(change->path));
    if (change->before != NULL)
        json_object_set_new(row, "before", text_json(change->before));
    if (change->after != NULL)
        json_object_set_new(row, "after", text_json(change->after));
    json_object_set_new(row, "at_run_time", json_boolean(change->at_run_time));
    if (json_array_append_new(report->changes, row) != 0)
        report->changes_out++;
}

void hg_report_warnings(struct hg_report *report, const struct hg_conf_errors *errs)
{
    report->warnings_out += errs->warnings_left_out;
    for (size_t i = 0; i < errs->warning_count; i++)
        if (json_array_append_new(report->warnings, text_json(errs->warnings[i])) != 0)
            report->warnings_out++;
}

/* ---- rings ---- */

static json_t *percent(uint64_t part, uint64_t whole)
{
    /* whole hundredths, rounded: no more digits come of the division than are shown */
    return json_real(whole > 0 ? (double)((part * 10000 + whole / 2) / whole) / 100 : 0);
}

static json_t *ring_json(struct hg_report *report, const char *name, const struct hg_ringdiff *diff)
{
    json_t *row = json_object(), *servers = json_array();
    json_object_set_new(row, "upstream", text_json(name));
    json_object_set_new(row, "keys", json_integer((json_int_t)diff->keys));
    json_object_set_new(row, "moved", json_integer((json_int_t)diff->moved));
    json_object_set_new(row, "percent", percent(diff->moved, diff->keys));
    for (size_t i = 0; i < diff->count; i++) {
        const struct hg_ringdiff_server *server = &diff->servers[i];
        if (i >= SERVERS_MAX) {
            report->servers_out++;
            continue;
        }
        json_t *one = json_object();
        json_object_set_new(one, "server", text_json(server->address));
        json_object_set_new(one, "before_percent", percent(server->before, diff->keys));
        json_object_set_new(one, "after_percent", percent(server->after, diff->keys));
        json_array_append_new(servers, one);
    }
    json_object_set_new(row, "servers", servers);
    return row;
}

void hg_report_rings(struct hg_report *report, const struct hg_conf *before,
                     const struct hg_conf *after)
{
    uint64_t until_us = hg_now_us() + HG_REPORT_RINGS_US;
    for (size_t i = 0; i < after->upstreams_count; i++) {
        const struct hg_conf_upstream *now = &after->upstreams[i];
        size_t found = hg_conf_upstream_find(before, now->name);
        struct hg_ringdiff diff;
        if (found == HG_CONF_NO_UPSTREAM || !hg_ringdiff_differs(&before->upstreams[found], now))
            continue;
        if (json_array_size(report->rings) >= RINGS_MAX || hg_now_us() >= until_us ||
            hg_ringdiff_make(&diff, &before->upstreams[found], now, HG_REPORT_KEYS, until_us) !=
                0) {
            report->rings_out++;
            continue;
        }
        if (json_array_append_new(report->rings, ring_json(report, now->name, &diff)) != 0)
            report->rings_out++;
        hg_ringdiff_fini(&diff);
    }
}

/* ---- all of it ---- */

static void count_left_out(json_t *to, const char *name, size_t count)
{
    if (count > 0)
        json_object_set_new(to, name, json_integer((json_int_t)count));
}

char *hg_report_text(const struct hg_report *report)
{
    json_t *all = json_object(), *left_out = json_object();
    json_object_set(all, "changes", report->changes);
    json_object_set(all, "warnings", report->warnings);
    json_object_set(all, "rings", report->rings);
    count_left_out(left_out, "changes", report->changes_out);
    count_left_out(left_out, "warnings", report->warnings_out);
    count_left_out(left_out, "rings", report->rings_out);
    count_left_out(left_out, "servers", report->servers_out);
    if (left_out != NULL && json_object_size(left_out) > 0)
        json_object_set(all, "left_out", left_out);
    char *text = all != NULL ? json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(left_out);
    json_decref(all);
    return text;
}
