// topsum - the lines above a page of top, and who is throttled and why
// SPDX-License-Identifier: BSD-3-Clause
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/table.h"
#include "ctl/top.h"

/* ---- refusals and their causes ---- */

/* Ends of requests that are refusals of ours, by the names of the statistics. */
static const char *const refusals[] = {
    "throttled",        "throttled_too_long", "hot_key",    "bind_throttled",
    "evicted",          "data_limit",         "queue_full", "queue_timeout",
    "connection_limit", "backend_down",       "paused",     "disabled",
};

/* What a tenant is told to be throttled for, and the counters that say so. */
static const struct cause {
    const char *word, *counter;
    bool is_outcome;
} causes[] = {
    {"hard limit", "held_for_hard_limit", false}, {"free pool", "held_for_pool", false},
    {"share", "held_for_share", false},           {"hot key", "hotkey_rejected", false},
    {"evicted key", "bind_throttled", false},     {"evicted key", "evicted", true},
    {"data limit", "data_limit", true},           {"connections", "connection_limit", true},
    {"queue full", "queue_full", true},           {"queue timeout", "queue_timeout", true},
    {"store down", "backend_down", true},         {"store lost", "backend_lost", true},
    {"store timeout", "backend_timeout", true},
};

enum { LIMITS = 3 }; /* of the causes, the first ones */

static double member(const json_t *tenant, const char *name, bool is_outcome)
{
    const json_t *from = is_outcome ? json_object_get(tenant, "outcomes") : tenant;
    const json_t *value = json_object_get(from, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

double hg_top_refused_rate(const struct hg_top_part *before, const struct hg_top_part *now,
                           const json_t *tenant_before, const json_t *tenant_now)
{
    double sum = 0;
    bool any = false;
    for (size_t i = 0; i < HG_COUNT_OF(refusals); i++) {
        double rate;
        if (tenant_now != NULL) {
            rate = hg_top_rate(before, now, member(tenant_before, refusals[i], true),
                               member(tenant_now, refusals[i], true));
        } else {
            char name[64];
            snprintf(name, sizeof name, "outcome_%s", refusals[i]);
            rate = hg_top_rate_of(before, now, name);
        }
        if (isnan(rate))
            continue; /* an older server has fewer */
        any = true;
        sum += rate;
    }
    return any ? sum : NAN;
}

struct found {
    const char *word;
    double rate;
};

static int compare_found(const void *a, const void *b)
{
    const struct found *left = a, *right = b;
    return (left->rate < right->rate) - (left->rate > right->rate);
}

static double not_nan(double number)
{
    return isnan(number) ? 0 : number;
}

/* How often a counter of a tenant grew a second; NAN: unknown. */
static double growth(const struct hg_top_part *before, const struct hg_top_part *now,
                     const json_t *tenant_before, const json_t *tenant_now, const char *counter,
                     bool is_outcome)
{
    return hg_top_rate(before, now, member(tenant_before, counter, is_outcome),
                       member(tenant_now, counter, is_outcome));
}

/* The limit for which the tenant's last request was held or refused; NULL: unknown, or none. */
static const char *last_limit(const json_t *tenant)
{
    static const char *const limits[][2] = {
        {"hard_limit", "hard limit"}, {"free_pool", "free pool"}, {"share", "share"}};
    const char *name = json_string_value(json_object_get(tenant, "held_for"));
    for (size_t i = 0; name != NULL && i < HG_COUNT_OF(limits); i++)
        if (strcmp(name, limits[i][0]) == 0)
            return limits[i][1];
    return NULL;
}

/* Requests that are held now, or were held or refused for credits behind others or after a wait:
   they count for the last limit, since those of limits[] count beginnings only. `sum`: these. */
static double held_beside(const struct hg_top_part *before, const struct hg_top_part *now,
                          const json_t *tenant_before, const json_t *tenant_now, double sum)
{
    double all =
        sum + not_nan(growth(before, now, tenant_before, tenant_now, "held_behind_others", false));
    double held = not_nan(member(tenant_now, "held", false));
    double refused =
        not_nan(growth(before, now, tenant_before, tenant_now, "throttled", true)) +
        not_nan(growth(before, now, tenant_before, tenant_now, "throttled_too_long", true));
    all = all > held ? all : held;
    return (all > refused ? all : refused) - sum;
}

/* Nothing is held or refused in observe mode, only counted. */
static bool only_counts(const json_t *tenant)
{
    const char *mode = json_string_value(json_object_get(tenant, "credit_mode"));
    return mode != NULL && strcmp(mode, "observe") == 0;
}

static size_t add_found(struct found *found, size_t count, const char *word, double rate)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(found[i].word, word) == 0) {
            found[i].rate += rate;
            return count;
        }
    found[count] = (struct found){word, rate};
    return count + 1;
}

void hg_top_why(const struct hg_top_part *before, const struct hg_top_part *now,
                const json_t *tenant_before, const json_t *tenant_now, char *ret, size_t size)
{
    struct found found[HG_COUNT_OF(causes) + 1];
    bool counts_only = only_counts(tenant_now);
    const char *state = json_string_value(json_object_get(tenant_now, "state"));
    size_t count = 0, at = 0;
    double limits = 0;
    ret[0] = '\0';
    for (size_t i = counts_only ? LIMITS : 0; i < HG_COUNT_OF(causes); i++) {
        const struct cause *cause = &causes[i];
        double rate =
            growth(before, now, tenant_before, tenant_now, cause->counter, cause->is_outcome);
        if (isnan(rate) || rate <= 0)
            continue;
        limits += i < LIMITS ? rate : 0;
        count = add_found(found, count, cause->word, rate);
    }
    double beside = counts_only ? not_nan(member(tenant_now, "held", false))
                                : held_beside(before, now, tenant_before, tenant_now, limits);
    const char *limit = last_limit(tenant_now);
    if (beside > 0 && limit != NULL)
        count = add_found(found, count, limit, beside);
    qsort(found, count, sizeof *found, compare_found);
    if (state != NULL && strcmp(state, "active") != 0)
        at += (size_t)snprintf(ret, size, "%s", state);
    else if (count == 0 && member(tenant_now, "held", false) > 0)
        at += (size_t)snprintf(ret, size, "credits");
    for (size_t i = 0; i < count && at < size; i++)
        at += (size_t)snprintf(ret + at, size - at, "%s%s", at > 0 ? ", " : "", found[i].word);
}

/* Is it beyond its hard limit, for the sake of users who are not held? Half more than the limit is
   beyond what the edges of slots explain. */
static bool is_exempt(const struct hg_top_part *before, const struct hg_top_part *now,
                      const json_t *tenant_before, const json_t *tenant_now)
{
    double units = growth(before, now, tenant_before, tenant_now, "units", false);
    return growth(before, now, tenant_before, tenant_now, "units_exempt", false) > 0 &&
           units > member(tenant_now, "throttle_hard_limit", false) * 1.5;
}

void hg_top_beyond(const struct hg_top_part *before, const struct hg_top_part *now,
                   const json_t *tenant_before, const json_t *tenant_now, char *ret, size_t size)
{
    double limit = member(tenant_now, "throttle_hard_limit", false);
    double debt =
        member(tenant_now, "slot_used", false) - member(tenant_now, "slot_hard_limit", false);
    bool exempt = is_exempt(before, now, tenant_before, tenant_now);
    char number[16];
    hg_top_format(debt, number);
    ret[0] = '\0';
    if (debt > 0 && (exempt || debt >= limit))
        snprintf(ret, size, "%sin debt: %s units", exempt ? "above its limit: exempt users, " : "",
                 number);
    else if (exempt)
        snprintf(ret, size, "above its limit: exempt users");
}

/* ---- who ---- */

typedef void why_fn(const struct hg_top_part *before, const struct hg_top_part *now,
                    const json_t *tenant_before, const json_t *tenant_now, char *ret, size_t size);

/* Calls for each tenant of whom `tell` says something, until it has had enough. */
static void each_told(const struct hg_top_sample *before, const struct hg_top_sample *now,
                      why_fn *tell, bool (*take)(void *ctx, const char *name, const char *why),
                      void *ctx)
{
    const struct hg_top_part *later = &now->parts[HG_TOP_BUCKETS];
    const struct hg_top_part *earlier = before != NULL ? &before->parts[HG_TOP_BUCKETS] : NULL;
    for (size_t i = 0; later->entries != NULL && i < later->rows.count; i++) {
        const struct hg_top_entry *entry = &later->entries[i];
        const struct hg_top_entry *old = hg_top_find(earlier, entry->row->name);
        char why[200];
        tell(earlier, later, old != NULL ? old->json : NULL, entry->json, why, sizeof why);
        if (why[0] != '\0' && !take(ctx, entry->row->name, why))
            return;
    }
}

struct list {
    char *text;
    size_t at, size;
    unsigned count, left_out;
};

static bool list_one(void *ctx, const char *name, const char *why)
{
    struct list *list = ctx;
    char *shown = hg_ctl_escape(name, strlen(name)), item[700];
    int len = snprintf(item, sizeof item, "%s%.100s (%s)", list->count > 0 ? ", " : "", shown, why);
    free(shown);
    if (list->left_out > 0 || list->at + (size_t)len + 20 >= list->size) {
        list->left_out++;
        return true;
    }
    memcpy(list->text + list->at, item, (size_t)len + 1);
    list->at += (size_t)len;
    list->count++;
    return true;
}

static bool note_one(void *ctx, const char *name, const char *why)
{
    (void)name;
    (void)why;
    *(bool *)ctx = false;
    return false;
}

static bool count_one(void *ctx, const char *name, const char *why)
{
    (void)name;
    (void)why;
    ++*(unsigned *)ctx;
    return true;
}

bool hg_top_is_calm(const struct hg_top_sample *before, const struct hg_top_sample *now)
{
    bool calm = true;
    each_told(before, now, hg_top_why, note_one, &calm);
    return calm;
}

static void say_who(const struct hg_top_sample *before, const struct hg_top_sample *now,
                    char ret[HG_TOP_LINE_BYTES])
{
    const char *refused = now->parts[HG_TOP_BUCKETS].refused;
    int head = snprintf(ret, HG_TOP_LINE_BYTES, "throttled: ");
    struct list list = {ret, (size_t)head, HG_TOP_LINE_BYTES, 0, 0};
    if (refused != NULL) {
        snprintf(ret + head, HG_TOP_LINE_BYTES - (size_t)head, "%.200s", refused);
        return;
    }
    each_told(before, now, hg_top_why, list_one, &list);
    if (list.count == 0)
        list.at += (size_t)snprintf(ret + head, HG_TOP_LINE_BYTES - (size_t)head, "nobody");
    else if (list.left_out > 0)
        list.at += (size_t)snprintf(ret + list.at, list.size - list.at, ", %u more", list.left_out);
    unsigned beyond = 0;
    each_told(before, now, hg_top_beyond, count_one, &beyond);
    if (beyond > 0)
        snprintf(ret + list.at, list.size - list.at, "; %u above their limits", beyond);
}

/* ---- the head ---- */

static void say_uptime(double seconds, char ret[32])
{
    unsigned long long s = isnan(seconds) ? 0 : (unsigned long long)seconds;
    int at = s >= 86400 ? snprintf(ret, 32, "%llu d ", s / 86400) : 0;
    snprintf(ret + at, 32 - (size_t)at, "%02llu:%02llu:%02llu", s / 3600 % 24, s / 60 % 60, s % 60);
}

void hg_top_head(const struct hg_top_sample *before, const struct hg_top_sample *now,
                 char ret[HG_TOP_HEAD_LINES][HG_TOP_LINE_BYTES])
{
    const struct hg_top_part *general = &now->parts[HG_TOP_GENERAL];
    const struct hg_top_part *old = before != NULL ? &before->parts[HG_TOP_GENERAL] : NULL;
    const char *version = hg_top_text(general, "version"), *pid = hg_top_text(general, "pid");
    char uptime[32], n[7][16];
    char *shown =
        hg_ctl_escape(version != NULL ? version : "-", version != NULL ? strlen(version) : 1);
    say_uptime(hg_top_number(general, "uptime"), uptime);
    snprintf(ret[0], HG_TOP_LINE_BYTES, "headgate %.40s, process %.20s, up %s", shown,
             pid != NULL ? pid : "-", uptime);
    free(shown);
    hg_top_format(hg_top_rate_of(old, general, "cmd_total"), n[0]);
    hg_top_format(hg_top_refused_rate(old, general, NULL, NULL), n[1]);
    hg_top_format(hg_top_number(general, "held_now"), n[2]);
    hg_top_format(hg_top_number(general, "in_flight"), n[3]);
    hg_top_format(hg_top_number(general, "curr_connections"), n[4]);
    hg_top_format(hg_top_number(general, "max_connections"), n[5]);
    snprintf(ret[1], HG_TOP_LINE_BYTES,
             "requests %s/s, refused %s/s, held %s, in stores %s, connections %s of %s", n[0], n[1],
             n[2], n[3], n[4], n[5]);
    say_who(before, now, ret[2]);
}

static bool add_one(void *ctx, const char *name, const char *why)
{
    json_array_append_new(
        ctx, json_pack("{s:o, s:s}", "tenant", hg_ctl_json_text(name, strlen(name)), "why", why));
    return true;
}

json_t *hg_top_head_json(const struct hg_top_sample *before, const struct hg_top_sample *now)
{
    const struct hg_top_part *general = &now->parts[HG_TOP_GENERAL];
    const struct hg_top_part *old = before != NULL ? &before->parts[HG_TOP_GENERAL] : NULL;
    const char *version = hg_top_text(general, "version");
    json_t *head = json_object(), *who = json_array();
    json_object_set_new(head, "version",
                        version != NULL ? hg_ctl_json_text(version, strlen(version)) : json_null());
    json_object_set_new(head, "uptime_s", hg_top_json_of(hg_top_number(general, "uptime")));
    json_object_set_new(head, "requests_per_s",
                        hg_top_json_of(hg_top_rate_of(old, general, "cmd_total")));
    json_object_set_new(head, "refused_per_s",
                        hg_top_json_of(hg_top_refused_rate(old, general, NULL, NULL)));
    json_object_set_new(head, "held", hg_top_json_of(hg_top_number(general, "held_now")));
    json_object_set_new(head, "in_flight", hg_top_json_of(hg_top_number(general, "in_flight")));
    json_object_set_new(head, "connections_now",
                        hg_top_json_of(hg_top_number(general, "curr_connections")));
    each_told(before, now, hg_top_why, add_one, who);
    json_object_set_new(head, "throttled", who);
    return head;
}

const char *hg_ctl_server_word(const char *breaker, double requests, double probes, double failures,
                               double connect_target)
{
    if (strcmp(breaker, "closed") == 0 && connect_target > 0)
        return "connects-limited";
    if (strcmp(breaker, "closed") == 0)
        return requests != 0 || probes > 0 || failures > 0 ? "up" : "not asked yet";
    return strcmp(breaker, "open") == 0 ? "down" : breaker;
}
