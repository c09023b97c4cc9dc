// toppage - the pages of top: what their columns are, and the rows of a sample
// SPDX-License-Identifier: BSD-3-Clause
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/toppage.h"

const char *const hg_top_page_names[HG_TOP_PAGES] = {"tenants", "hot keys", "upstreams",
                                                     "connections"};

static const struct hg_top_part *part_of(const struct hg_top_sample *sample,
                                         enum hg_top_group group)
{
    return sample != NULL ? &sample->parts[group] : NULL;
}

/* ---- members of JSON objects ---- */

static double number_in(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static const char *text_in(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "-";
}

/* A limit: a number of units a second, or "unlimited", which is more than any. */
static void set_limit(struct hg_top_line *line, unsigned column, const json_t *value)
{
    if (json_is_number(value))
        hg_top_set_number(line, column, json_number_value(value));
    else if (json_is_string(value))
        hg_top_set_as(line, column, "-", INFINITY);
    else
        hg_top_set_as(line, column, "-", NAN);
}

/* ---- tenants ---- */

enum {
    T_NAME,
    T_STATE,
    T_UNITS,
    T_RESERVED,
    T_LIMIT,
    T_REQUESTS,
    T_REFUSED,
    T_HELD,
    T_CLIENTS,
    T_WHY,
    T_COUNT
};

static const struct hg_top_column tenant_columns[T_COUNT] = {
    [T_NAME] = {"TENANT", "tenant", false, 12, 0},
    [T_STATE] = {"STATE", "state", false, 0, 5},
    [T_UNITS] = {"UNITS/S", "units_per_s", true, 0, 2},
    [T_RESERVED] = {"RESERVED", "reserved", true, 0, 8},
    [T_LIMIT] = {"LIMIT", "hard_limit", true, 0, 6},
    [T_REQUESTS] = {"REQ/S", "requests_per_s", true, 0, 1},
    [T_REFUSED] = {"REFUSED/S", "refused_per_s", true, 0, 3},
    [T_HELD] = {"HELD", "held", true, 0, 4},
    [T_CLIENTS] = {"CONNS", "connections", true, 0, 7},
    [T_WHY] = {"WHY", "why", false, 10, 2},
};

static void build_tenants(const struct hg_top_sample *before, const struct hg_top_sample *now,
                          struct hg_top_view *view)
{
    const struct hg_top_part *old = part_of(before, HG_TOP_BUCKETS),
                             *part = part_of(now, HG_TOP_BUCKETS);
    for (size_t i = 0; i < part->rows.count; i++) {
        const struct hg_top_entry *entry = &part->entries[i];
        const struct hg_top_entry *earlier = hg_top_find(old, entry->row->name);
        const json_t *a = earlier != NULL ? earlier->json : NULL, *b = entry->json;
        char why[200], beyond[100], both[310];
        if (b == NULL)
            continue;
        struct hg_top_line *line = hg_top_view_add(view);
        hg_top_why(old, part, a, b, why, sizeof why);
        hg_top_beyond(old, part, a, b, beyond, sizeof beyond);
        snprintf(both, sizeof both, "%s%s%s", why, why[0] != '\0' && beyond[0] != '\0' ? ", " : "",
                 beyond);
        hg_top_set(line, T_NAME, entry->row->name);
        hg_top_set(line, T_STATE, text_in(b, "state"));
        hg_top_set_number(line, T_UNITS,
                          hg_top_rate(old, part, number_in(a, "units"), number_in(b, "units")));
        set_limit(line, T_RESERVED, json_object_get(b, "throttle_reserved"));
        set_limit(line, T_LIMIT, json_object_get(b, "throttle_hard_limit"));
        hg_top_set_number(
            line, T_REQUESTS,
            hg_top_rate(old, part, number_in(a, "requests"), number_in(b, "requests")));
        hg_top_set_number(line, T_REFUSED, hg_top_refused_rate(old, part, a, b));
        hg_top_set_number(line, T_HELD, number_in(b, "held"));
        hg_top_set_number(line, T_CLIENTS, number_in(b, "clients"));
        hg_top_set(line, T_WHY, both);
        line->mark = why[0] != '\0' ? HG_TOP_BAD : beyond[0] != '\0' ? HG_TOP_NOTED : HG_TOP_PLAIN;
    }
}

/* ---- hot keys, and keys that were evicted ---- */

enum { H_KEY, H_TENANT, H_TYPE, H_TABLE, H_COUNT, H_ERROR, H_THROTTLE, H_REFUSED, H_COLUMNS };

static const struct hg_top_column key_columns[H_COLUMNS] = {
    [H_KEY] = {"KEY", "key", false, 16, 0},
    [H_TENANT] = {"TENANT", "tenant", false, 8, 2},
    [H_TYPE] = {"TYPE", "type", false, 0, 4},
    [H_TABLE] = {"TABLE", "table", false, 6, 6},
    [H_COUNT] = {"OPS", "operations", true, 0, 1},
    [H_ERROR] = {"ERROR", "error", true, 0, 7},
    [H_THROTTLE] = {"THROTTLE", "throttle_percent", true, 0, 2},
    [H_REFUSED] = {"REFUSED", "refused", true, 0, 3},
};

/* TABLE_HOTKEY_QUERY: "query". */
static void short_type(const char *type, char ret[24])
{
    const char *tail = strrchr(type, '_');
    snprintf(ret, 24, "%s", tail != NULL ? tail + 1 : type);
    for (char *at = ret; *at != '\0'; at++)
        *at = (char)(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
}

/* Is what a tenant's mode decides only counted? */
static bool is_observed(const struct hg_top_sample *now, const char *tenant, const char *mode)
{
    const struct hg_top_entry *entry = hg_top_find(part_of(now, HG_TOP_BUCKETS), tenant);
    return entry != NULL && strcmp(text_in(entry->json, mode), "observe") == 0;
}

/* The throttle of a key; in brackets what would be one. */
static void set_throttle(struct hg_top_line *line, const char *text, double percent, bool observed)
{
    char shown[40];
    snprintf(shown, sizeof shown, observed ? "(%s)" : "%s", text);
    hg_top_set_as(line, H_THROTTLE, percent > 0 ? shown : "-", percent);
    if (percent > 0)
        line->mark = observed ? HG_TOP_NOTED : HG_TOP_BAD;
}

static void add_hot(const struct hg_top_sample *now, struct hg_top_view *view, const json_t *row)
{
    char type[24], throttle[16];
    double percent = number_in(row, "THROTTLE_PERCENT");
    struct hg_top_line *line = hg_top_view_add(view);
    short_type(text_in(row, "HOTKEY_TYPE"), type);
    snprintf(throttle, sizeof throttle, "%.0f %%", percent);
    hg_top_set_shown(line, H_KEY, text_in(row, "HOTKEY"));
    hg_top_set(line, H_TENANT, text_in(row, "TENANT"));
    hg_top_set(line, H_TYPE, type);
    hg_top_set_shown(line, H_TABLE, text_in(row, "TABLE"));
    hg_top_set_number(line, H_COUNT, number_in(row, "HOTKEY_FREQ"));
    hg_top_set_number(line, H_ERROR, number_in(row, "ERROR"));
    set_throttle(line, throttle, percent, is_observed(now, text_in(row, "TENANT"), "hotkey_mode"));
    hg_top_set_number(line, H_REFUSED, number_in(row, "REJECTED"));
}

/* One in X passes: 100 - 100 / X percent are refused. */
static void add_evicted(const struct hg_top_sample *now, struct hg_top_view *view,
                        const json_t *row)
{
    char class[200], type[24], throttle[32];
    double x = number_in(row, "allowEveryX");
    struct hg_top_line *line = hg_top_view_add(view);
    snprintf(class, sizeof class, "%s", text_in(row, "class"));
    char *slash = strrchr(class, '/');
    short_type(slash != NULL ? slash + 1 : "-", type);
    if (slash != NULL)
        *slash = '\0';
    snprintf(throttle, sizeof throttle, "1 in %.0f", isnan(x) ? 1 : x);
    hg_top_set_shown(line, H_KEY, text_in(row, "v"));
    hg_top_set(line, H_TENANT, class);
    hg_top_set(line, H_TYPE, type);
    hg_top_set_shown(line, H_TABLE, strcmp(text_in(row, "k"), "key") == 0 ? "" : text_in(row, "k"));
    hg_top_set_number(line, H_COUNT, NAN);
    hg_top_set_number(line, H_ERROR, NAN);
    set_throttle(line, throttle, x >= 1 ? 100 - 100 / x : NAN,
                 is_observed(now, class, "bind_mode"));
    hg_top_set_number(line, H_REFUSED, number_in(row, "refused"));
}

static void build_keys(const struct hg_top_sample *before, const struct hg_top_sample *now,
                       struct hg_top_view *view)
{
    const struct hg_top_part *hot = part_of(now, HG_TOP_HOT), *binds = part_of(now, HG_TOP_BINDS);
    (void)before; /* what is counted is an epoch's */
    for (size_t i = 0; i < hot->rows.count; i++)
        if (hot->entries[i].json != NULL)
            add_hot(now, view, hot->entries[i].json);
    for (size_t i = 0; i < binds->rows.count; i++)
        if (binds->entries[i].json != NULL &&
            strncmp(binds->entries[i].row->name, "bindthrottle:", 13) == 0)
            add_evicted(now, view, binds->entries[i].json);
}

/* ---- upstreams: a row for each server, or for a store ---- */

enum {
    U_NAME,
    U_SERVER,
    U_STATE,
    U_REQUESTS,
    U_ERRORS,
    U_LINKS,
    U_PENDING,
    U_WAITING,
    U_READ,
    U_WRITE,
    U_QUEUED,
    U_KIND,
    U_COUNT
};

static const struct hg_top_column upstream_columns[U_COUNT] = {
    [U_NAME] = {"UPSTREAM", "upstream", false, 8, 0},
    [U_SERVER] = {"SERVER", "server", false, 15, 1},
    [U_STATE] = {"STATE", "state", false, 0, 1},
    [U_REQUESTS] = {"REQ/S", "requests_per_s", true, 0, 2},
    [U_ERRORS] = {"ERR/S", "errors_per_s", true, 0, 2},
    [U_LINKS] = {"CONNS", "connections", true, 0, 6},
    [U_PENDING] = {"PENDING", "pending", true, 0, 5},
    [U_WAITING] = {"WAITING", "waiting", true, 0, 7},
    [U_READ] = {"READ", "read_tickets", true, 0, 4},
    [U_WRITE] = {"WRITE", "write_tickets", true, 0, 4},
    [U_QUEUED] = {"QUEUED", "queued", true, 0, 3},
    [U_KIND] = {"KIND", "kind", false, 0, 8},
};

/* The value PREFIX:FIELD. */
static const char *text_at(const struct hg_top_part *part, const char *prefix, const char *field)
{
    char name[512];
    snprintf(name, sizeof name, "%s:%s", prefix, field);
    const char *text = hg_top_text(part, name);
    return text != NULL ? text : "-";
}

static double number_at(const struct hg_top_part *part, const char *prefix, const char *field)
{
    char name[512];
    snprintf(name, sizeof name, "%s:%s", prefix, field);
    return hg_top_number(part, name);
}

/* The sum of the rates of counters. */
static double rates_at(const struct hg_top_part *old, const struct hg_top_part *part,
                       const char *prefix, const char *const *fields, size_t count)
{
    double sum = 0;
    for (size_t f = 0; f < count; f++) {
        double rate = hg_top_rate(old, part, number_at(old, prefix, fields[f]),
                                  number_at(part, prefix, fields[f]));
        if (isnan(rate))
            return NAN;
        sum += rate;
    }
    return sum;
}

static void set_tickets(struct hg_top_line *line, const struct hg_top_part *part,
                        const char *upstream)
{
    static const char *const lines[] = {"read", "write"};
    static const unsigned columns[] = {U_READ, U_WRITE};
    double queued = 0;
    for (unsigned i = 0; i < 2; i++) {
        char prefix[300], out[16], all[16], text[40];
        snprintf(prefix, sizeof prefix, "%.200s:%s", upstream, lines[i]);
        double taken = number_at(part, prefix, "out");
        hg_top_format(taken, out);
        hg_top_format(number_at(part, prefix, "totalTickets"), all);
        snprintf(text, sizeof text, "%s/%s", out, all);
        hg_top_set_as(line, columns[i], text, taken);
        queued += number_at(part, prefix, "queueLength");
    }
    hg_top_set_number(line, U_QUEUED, queued);
    if (queued > 0)
        line->mark = HG_TOP_NOTED;
}

static void add_server(const struct hg_top_sample *before, const struct hg_top_sample *now,
                       struct hg_top_view *view, const char *prefix)
{
    static const char *const requests[] = {"requests"};
    static const char *const errors[] = {"connect_failures", "timeouts", "lost", "bad_replies",
                                         "refused_down"};
    const struct hg_top_part *part = part_of(now, HG_TOP_STORES);
    const struct hg_top_part *old = part_of(before, HG_TOP_STORES);
    struct hg_top_line *line = hg_top_view_add(view);
    char upstream[256];
    snprintf(upstream, sizeof upstream, "%s", prefix);
    *strrchr(upstream, ':') = '\0';
    const char *state = hg_ctl_server_word(
        text_at(part, prefix, "state"), number_at(part, prefix, "requests"),
        number_at(part, prefix, "probes"), number_at(part, prefix, "connect_failures"),
        number_at(part, prefix, "connect_target"));
    hg_top_set(line, U_NAME, upstream);
    hg_top_set(line, U_KIND, text_at(part, upstream, "kind"));
    hg_top_set(line, U_SERVER, text_at(part, prefix, "address"));
    hg_top_set(line, U_STATE, state);
    hg_top_set_number(line, U_REQUESTS, rates_at(old, part, prefix, requests, 1));
    hg_top_set_number(line, U_ERRORS, rates_at(old, part, prefix, errors, HG_COUNT_OF(errors)));
    hg_top_set_number(line, U_LINKS, number_at(part, prefix, "connections"));
    hg_top_set_number(line, U_PENDING, number_at(part, prefix, "pending"));
    hg_top_set_number(line, U_WAITING, number_at(part, prefix, "waiting"));
    set_tickets(line, part_of(now, HG_TOP_TICKETS), upstream);
    if (strcmp(state, "connects-limited") == 0)
        line->mark = HG_TOP_NOTED;
    else if (strcmp(state, "up") != 0 && strcmp(state, "not asked yet") != 0)
        line->mark = HG_TOP_BAD;
}

static void add_store(const struct hg_top_sample *before, const struct hg_top_sample *now,
                      struct hg_top_view *view, const char *upstream)
{
    static const char *const requests[] = {"reads", "group_ops"};
    static const char *const errors[] = {"write_errors", "sync_errors", "refused_full"};
    const struct hg_top_part *part = part_of(now, HG_TOP_STORES);
    const struct hg_top_part *old = part_of(before, HG_TOP_STORES);
    struct hg_top_line *line = hg_top_view_add(view);
    hg_top_set(line, U_NAME, upstream);
    hg_top_set(line, U_KIND, text_at(part, upstream, "kind"));
    hg_top_set(line, U_SERVER, "-");
    hg_top_set(line, U_STATE, "up");
    hg_top_set_number(line, U_REQUESTS,
                      rates_at(old, part, upstream, requests, HG_COUNT_OF(requests)));
    hg_top_set_number(line, U_ERRORS, rates_at(old, part, upstream, errors, HG_COUNT_OF(errors)));
    hg_top_set_number(line, U_LINKS, NAN);
    hg_top_set_number(line, U_PENDING, NAN);
    hg_top_set_number(line, U_WAITING, NAN);
    set_tickets(line, part_of(now, HG_TOP_TICKETS), upstream);
}

/* "cache:0:address" with the tail ":address": "cache:0". */
static bool cut_tail(const char *name, const char *tail, char ret[256])
{
    size_t len = strlen(name), tail_len = strlen(tail);
    if (len <= tail_len || len - tail_len >= 256 || strcmp(name + len - tail_len, tail) != 0)
        return false;
    memcpy(ret, name, len - tail_len);
    ret[len - tail_len] = '\0';
    return true;
}

static void build_upstreams(const struct hg_top_sample *before, const struct hg_top_sample *now,
                            struct hg_top_view *view)
{
    const struct hg_top_part *part = part_of(now, HG_TOP_STORES);
    for (size_t i = 0; i < part->rows.count; i++) {
        const struct hg_ctl_row *row = &part->rows.row[i];
        char prefix[256];
        if (cut_tail(row->name, ":address", prefix) && strchr(prefix, ':') != NULL)
            add_server(before, now, view, prefix);
        else if (cut_tail(row->name, ":kind", prefix) && strcmp(row->value, "embedded") == 0)
            add_store(before, now, view, prefix);
    }
}

/* ---- pages ---- */

static const struct page {
    const struct hg_top_column *columns;
    unsigned column_count, order;
    enum hg_top_group group;
    void (*build)(const struct hg_top_sample *before, const struct hg_top_sample *now,
                  struct hg_top_view *view);
} pages[HG_TOP_PAGES] = {
    [HG_TOP_TENANTS] = {tenant_columns, T_COUNT, T_UNITS, HG_TOP_BUCKETS, build_tenants},
    [HG_TOP_HOTKEYS] = {key_columns, H_COLUMNS, H_COUNT, HG_TOP_HOT, build_keys},
    [HG_TOP_UPSTREAMS] = {upstream_columns, U_COUNT, U_NAME, HG_TOP_STORES, build_upstreams},
    [HG_TOP_CONNECTIONS] = {hg_top_client_columns, HG_TOP_CLIENT_COLUMNS, HG_TOP_CLIENT_ORDER,
                            HG_TOP_CLIENTS, hg_top_build_clients},
};

unsigned hg_top_page_order(enum hg_top_page page)
{
    return pages[page].order;
}

const char *hg_top_page_refused(enum hg_top_page page, const struct hg_top_sample *now)
{
    return now->parts[pages[page].group].refused;
}

void hg_top_page_build(enum hg_top_page page, const struct hg_top_sample *before,
                       const struct hg_top_sample *now, struct hg_top_view *view)
{
    hg_top_view_init(view, pages[page].columns, pages[page].column_count);
    pages[page].build(before, now, view);
}
