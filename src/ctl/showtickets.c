// showtickets - the part of `status` about overload: tickets, and keys that are throttled for it
// SPDX-License-Identifier: BSD-3-Clause
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/showtickets.h"
#include "ctl/table.h"

#define KEYS_MAX 10 /* that are shown: the narrowest throttles */

static void add_value(struct hg_ctl_table *table, const struct hg_ctl_rows *rows,
                      const char *prefix, const char *name)
{
    char key[340];
    snprintf(key, sizeof key, "%s:%s", prefix, name);
    const char *value = hg_ctl_rows_find(rows, key);
    hg_ctl_table_add(table, value != NULL ? value : "-");
}

static const char of_server[] = ":server:";

/* Is it of the only server of its upstream? That says nothing which the upstream's rows do not. */
static bool is_only_server(const struct hg_ctl_rows *rows, const char *prefix)
{
    const char *at = strstr(prefix, of_server), *end = strrchr(prefix, ':');
    if (at == NULL)
        return false;
    size_t head = (size_t)(at - prefix) + sizeof of_server - 1, own = (size_t)(end - prefix) + 1;
    for (size_t i = 0; i < rows->count; i++)
        if (rows->row[i].name_len > head && memcmp(rows->row[i].name, prefix, head) == 0 &&
            strncmp(rows->row[i].name, prefix, own) != 0 &&
            strstr(rows->row[i].name, ":totalTickets") != NULL)
            return false;
    return true;
}

/* `prefix` is "ingress", UPSTREAM:read or UPSTREAM:write, or UPSTREAM:server:ADDRESS:read and so
   on. */
static void add_holder(struct hg_ctl_table *table, const struct hg_ctl_rows *rows,
                       const char *prefix)
{
    char upstream[256], key[340];
    snprintf(upstream, sizeof upstream, "%s", prefix);
    char *colon = strstr(upstream, of_server);
    if (colon == NULL)
        colon = strrchr(upstream, ':');
    if (colon != NULL)
        *colon = '\0';
    hg_ctl_table_add(table, prefix);
    add_value(table, rows, upstream, "execution_control");
    add_value(table, rows, prefix, "out");
    add_value(table, rows, prefix, "totalTickets");
    add_value(table, rows, prefix, "queueLength");
    add_value(table, rows, prefix, "stranded");
    snprintf(key, sizeof key, "%s:overloaded", prefix);
    const char *overloaded = hg_ctl_rows_find(rows, key);
    hg_ctl_table_add(table, overloaded == NULL ? "-" : strcmp(overloaded, "0") == 0 ? "no" : "yes");
}

void hg_ctl_print_tickets(const struct hg_ctl_rows *rows)
{
    static const char *const headings[] = {"TICKETS", "CONTROL",  "OUT",       "OF",
                                           "WAITING", "STRANDED", "OVERLOADED"};
    static const char tail[] = ":totalTickets";
    struct hg_ctl_table table;
    hg_ctl_table_init(&table, sizeof headings / sizeof headings[0], headings);
    for (size_t i = 0; i < rows->count; i++) {
        char prefix[256];
        const struct hg_ctl_row *row = &rows->row[i];
        if (row->name_len < sizeof tail || row->name_len >= sizeof prefix)
            continue;
        size_t len = row->name_len - (sizeof tail - 1);
        if (strcmp(row->name + len, tail) != 0)
            continue;
        memcpy(prefix, row->name, len);
        prefix[len] = '\0';
        if (!is_only_server(rows, prefix))
            add_holder(&table, rows, prefix);
    }
    hg_ctl_table_print(&table, stdout);
    hg_ctl_table_fini(&table);
}

static void add_field(struct hg_ctl_table *table, const json_t *entry, const char *name)
{
    const json_t *value = json_object_get(entry, name);
    char text[32];
    if (json_is_real(value))
        snprintf(text, sizeof text, "%.1f", json_real_value(value));
    else
        snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    hg_ctl_table_add(table, json_is_string(value)   ? json_string_value(value)
                            : json_is_number(value) ? text
                                                    : "-");
}

/* Does the tenant of a class, "shop/QUERY", only observe? */
static bool is_observed(const json_t *entry, const json_t *buckets)
{
    const char *class = json_string_value(json_object_get(entry, "class"));
    const char *slash = class != NULL ? strrchr(class, '/') : NULL;
    size_t i;
    json_t *bucket;
    json_array_foreach(buckets, i, bucket)
    {
        const char *name = json_string_value(json_object_get(bucket, "name"));
        const char *mode = json_string_value(json_object_get(bucket, "bind_mode"));
        if (slash != NULL && name != NULL && mode != NULL &&
            strlen(name) == (size_t)(slash - class) &&
            memcmp(name, class, (size_t)(slash - class)) == 0)
            return strcmp(mode, "observe") == 0;
    }
    return false;
}

/* A table of the rows NAME:N whose entries are wanted, behind an empty line, if there are any. */
struct listing {
    const char *name;
    const char *const *headings, *const *fields;
    size_t columns;
    bool (*is_wanted)(const json_t *entry, const json_t *buckets);
};

static void print_listing(const struct listing *listing, const struct hg_ctl_rows *rows,
                          const json_t *buckets)
{
    struct hg_ctl_table table;
    size_t entries = 0, len = strlen(listing->name);
    hg_ctl_table_init(&table, listing->columns, listing->headings);
    for (size_t i = 0; i < rows->count; i++) {
        const struct hg_ctl_row *row = &rows->row[i];
        if (strncmp(row->name, listing->name, len) != 0)
            continue;
        json_t *entry = json_loadb(row->value, row->value_len, 0, NULL);
        if (json_is_object(entry) && listing->is_wanted(entry, buckets) && ++entries <= KEYS_MAX)
            for (size_t f = 0; f < listing->columns; f++)
                add_field(&table, entry, listing->fields[f]);
        json_decref(entry);
    }
    if (entries > 0) {
        putchar('\n');
        hg_ctl_table_print(&table, stdout);
    }
    if (entries > KEYS_MAX)
        printf("and %zu more, see stats bindthrottle\n", entries - KEYS_MAX);
    hg_ctl_table_fini(&table);
}

static bool is_evicted(const json_t *entry, const json_t *buckets)
{
    return !is_observed(entry, buckets);
}

/* At its share of a server's tickets. */
static bool is_held(const json_t *entry, const json_t *buckets)
{
    (void)buckets;
    return !json_is_true(json_object_get(entry, "observed"));
}

#define BINDS_COLUMNS 6
#define HELD_COLUMNS  8

void hg_ctl_print_binds(const struct hg_ctl_rows *rows, const json_t *buckets)
{
    static const char *const evicted[BINDS_COLUMNS] = {"EVICTED KEY", "CLASS",  "OF",
                                                       "ONE IN",      "PASSED", "REFUSED"};
    static const char *const observed[BINDS_COLUMNS] = {"WOULD EVICT", "CLASS",  "OF",
                                                        "ONE IN",      "PASSED", "REFUSED"};
    static const char *const binds[BINDS_COLUMNS] = {"v",           "class",  "k",
                                                     "allowEveryX", "passed", "refused"};
    static const char *const held[HELD_COLUMNS] = {"HELD KEY", "TENANT",  "SERVER",     "TICKETS",
                                                   "OUT",      "WAITING", "SERVICE MS", "REFUSED"};
    static const char *const shares[HELD_COLUMNS] = {"v",   "tenant",  "server",        "tickets",
                                                     "out", "waiting", "serviceMillis", "refused"};
    const struct listing listings[] = {
        {"bindthrottle:", evicted, binds, BINDS_COLUMNS, is_evicted},
        {"bindthrottle:", observed, binds, BINDS_COLUMNS, is_observed},
        {"keyshare:", held, shares, HELD_COLUMNS, is_held},
    };
    for (size_t i = 0; i < sizeof listings / sizeof listings[0]; i++)
        print_listing(&listings[i], rows, buckets);
}

/* ---- of a server ---- */

static const char *server_text(const struct hg_ctl_rows *rows, const char *prefix, const char *name)
{
    char key[400];
    snprintf(key, sizeof key, "%s:%s", prefix, name);
    return hg_ctl_rows_find(rows, key);
}

static double server_number(const struct hg_ctl_rows *rows, const char *prefix, const char *name)
{
    const char *text = server_text(rows, prefix, name);
    return text != NULL ? strtod(text, NULL) : 0;
}

static double both(const struct hg_ctl_rows *rows, const char *prefix, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "read:%s", name);
    double reads = server_number(rows, prefix, key);
    snprintf(key, sizeof key, "write:%s", name);
    return reads + server_number(rows, prefix, key);
}

void hg_ctl_server_load(const struct hg_ctl_rows *rows, const char *upstream, const char *address,
                        struct hg_ctl_server_load *ret)
{
    char prefix[340];
    snprintf(prefix, sizeof prefix, "%s:server:%s", upstream, address);
    const char *silent = server_text(rows, prefix, "silent");
    const char *reason = server_text(rows, prefix, "refusedFor");
    *ret = (struct hg_ctl_server_load){
        .is_known = server_text(rows, prefix, "read:totalTickets") != NULL,
        .is_silent = silent != NULL && strcmp(silent, "true") == 0,
        .slow_factor = server_number(rows, prefix, "slowFactor"),
        .p50_us = server_number(rows, prefix, "serviceMicros:p50"),
        .p99_us = server_number(rows, prefix, "serviceMicros:p99"),
        .usual_us = server_number(rows, prefix, "serviceMicros:usual"),
        .wait_p99_us = server_number(rows, prefix, "waitMicros:p99"),
        .out = both(rows, prefix, "out"),
        .size = both(rows, prefix, "totalTickets"),
        .line = both(rows, prefix, "queueLength"),
        .refused_per_s = server_number(rows, prefix, "refusedPerSecond"),
        .reason = reason != NULL ? reason : "-",
    };
}
