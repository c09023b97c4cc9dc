// show - the verbs that look and change nothing: stats, buckets, where, status
// SPDX-License-Identifier: BSD-3-Clause
//
// What the server sends is shown as it comes: names that are not known here are no fault, names
// that are missing are shown as "-".
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/showtickets.h"
#include "ctl/table.h"
#include "ctl/top.h"

/* ---- stats ---- */

static int print_rows(const struct hg_ctl_rows *rows)
{
    struct hg_ctl_table table;
    hg_ctl_table_init(&table, 2, NULL);
    for (size_t i = 0; i < rows->count; i++) {
        hg_ctl_table_add_bytes(&table, rows->row[i].name, rows->row[i].name_len);
        hg_ctl_table_add_bytes(&table, rows->row[i].value, rows->row[i].value_len);
    }
    hg_ctl_table_print(&table, stdout);
    hg_ctl_table_fini(&table);
    return HG_CTL_OK;
}

/* "bucket_details shop": the words as one, malloc'd. */
static char *join(char **args, int count)
{
    size_t len = 1;
    for (int i = 0; i < count; i++)
        len += strlen(args[i]) + 1;
    char *text = calloc(1, len);
    if (text == NULL)
        abort();
    for (int i = 0; i < count; i++) {
        strcat(text, i > 0 ? " " : "");
        strcat(text, args[i]);
    }
    return text;
}

int hg_ctl_stats(struct hg_ctl *ctl)
{
    struct hg_ctl_rows rows = {NULL, 0, 0};
    int code = hg_ctl_connect(ctl);
    if (code != HG_CTL_OK)
        return code;
    char *group = join(ctl->args, ctl->arg_count);
    code = hg_ctl_fetch(ctl, group, &rows, NULL);
    if (code == HG_CTL_OK)
        code = ctl->json ? hg_ctl_json_print(hg_ctl_json_rows(&rows)) : print_rows(&rows);
    hg_ctl_rows_free(&rows);
    free(group);
    return code;
}

/* ---- buckets ---- */

static const struct column {
    const char *heading, *key;
    const char *older; /* what an older server has instead, or NULL */
} bucket_columns[] = {
    {"TENANT", "name", NULL},
    {"STATE", "state", NULL},
    {"UPSTREAM", "upstream", NULL},
    {"CLIENTS", "clients", NULL},
    {"RESERVED", "throttle_reserved", NULL},
    {"HARD LIMIT", "throttle_hard_limit", NULL},
    {"RU", "ru", NULL},
    {"WU", "wu", NULL},
    {"HELD", "held", NULL},
    {"THROTTLED", "num_throttled", NULL},
    {"REJECTED", "refused", "num_rejected"},
    {"WAITED MS", "throttle_wait_time", NULL},
};

/* The rows of `buckets` as a list of objects; a row that is no object is left out. */
static json_t *buckets_of(const struct hg_ctl_rows *rows)
{
    json_t *list = json_array();
    for (size_t i = 0; i < rows->count; i++) {
        json_t *bucket = json_loadb(rows->row[i].value, rows->row[i].value_len, 0, NULL);
        if (!json_is_object(bucket)) {
            json_decref(bucket);
            continue;
        }
        if (json_object_get(bucket, "name") == NULL)
            json_object_set_new(bucket, "name",
                                hg_ctl_json_text(rows->row[i].name, rows->row[i].name_len));
        json_array_append_new(list, bucket);
    }
    return list;
}

static void add_json_cell(struct hg_ctl_table *table, const struct column *column,
                          const json_t *bucket)
{
    const json_t *value = json_object_get(bucket, column->key);
    char text[32];
    if (value == NULL && column->older != NULL)
        value = json_object_get(bucket, column->older);
    if (json_is_integer(value)) {
        json_int_t number = json_integer_value(value);
        if (strcmp(column->key, "throttle_wait_time") == 0)
            number /= 1000; /* microseconds */
        snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, number);
        hg_ctl_table_add(table, text);
    } else {
        hg_ctl_table_add(table, json_is_string(value) ? json_string_value(value) : "-");
    }
}

static void print_buckets(const json_t *list)
{
    const char *headings[HG_COUNT_OF(bucket_columns)];
    struct hg_ctl_table table;
    size_t i;
    json_t *bucket;
    for (size_t c = 0; c < HG_COUNT_OF(bucket_columns); c++)
        headings[c] = bucket_columns[c].heading;
    hg_ctl_table_init(&table, HG_COUNT_OF(bucket_columns), headings);
    json_array_foreach(list, i, bucket)
    {
        for (size_t c = 0; c < HG_COUNT_OF(bucket_columns); c++)
            add_json_cell(&table, &bucket_columns[c], bucket);
    }
    hg_ctl_table_print(&table, stdout);
    hg_ctl_table_fini(&table);
}

int hg_ctl_buckets(struct hg_ctl *ctl)
{
    struct hg_ctl_rows rows = {NULL, 0, 0};
    int code = hg_ctl_connect(ctl);
    if (code == HG_CTL_OK)
        code = hg_ctl_fetch(ctl, "buckets", &rows, NULL);
    if (code == HG_CTL_OK) {
        json_t *list = buckets_of(&rows);
        if (ctl->json) {
            code = hg_ctl_json_print(list);
        } else {
            print_buckets(list);
            json_decref(list);
        }
    }
    hg_ctl_rows_free(&rows);
    return code;
}

/* ---- where ---- */

int hg_ctl_where(struct hg_ctl *ctl)
{
    struct hg_ctl_rows rows = {NULL, 0, 0};
    char group[300];
    if (ctl->arg_count != 1)
        return hg_ctl_say(HG_CTL_USAGE, "where takes one key");
    if (strlen(ctl->args[0]) > 244) /* "where " and the key are the key of the request */
        return hg_ctl_say(HG_CTL_USAGE, "where takes a key of at most 244 bytes");
    int code = hg_ctl_connect(ctl);
    if (code != HG_CTL_OK)
        return code;
    snprintf(group, sizeof group, "where %s", ctl->args[0]);
    code = hg_ctl_fetch(ctl, group, &rows, NULL);
    if (code == HG_CTL_OK && rows.count != 1)
        code = hg_ctl_say(HG_CTL_LOST, "where: the server names %zu servers", rows.count);
    if (code == HG_CTL_OK && ctl->json) {
        json_t *object = json_object();
        json_object_set_new(object, "key", hg_ctl_json_text(ctl->args[0], strlen(ctl->args[0])));
        json_object_set_new(object, "server",
                            hg_ctl_json_text(rows.row[0].value, rows.row[0].value_len));
        code = hg_ctl_json_print(object);
    } else if (code == HG_CTL_OK) {
        char *shown = hg_ctl_escape(rows.row[0].value, rows.row[0].value_len);
        puts(shown);
        free(shown);
    }
    hg_ctl_rows_free(&rows);
    return code;
}

/* ---- status: the groups ---- */

enum { GENERAL, THROTTLE, BUCKETS, UPSTREAMS, TICKETS, BINDS, GROUPS };

static const struct group {
    const char *name, *key; /* of the statistics, of the JSON */
} groups[GROUPS] = {{"", "general"},        {"throttle", "throttle"},
                    {"buckets", "buckets"}, {"upstreams", "upstreams"},
                    {"tickets", "tickets"}, {"bindthrottle", "bindthrottle"}};

struct status {
    struct hg_ctl_rows rows[GROUPS];
    char *refused[GROUPS]; /* why the server does not say */
};

/* NAME:FIELD and NAME:N:FIELD become {NAME: {FIELD: .., "servers": [{FIELD: ..}]}}. */
static void add_upstream_row(json_t *upstreams, const struct hg_ctl_row *row)
{
    char *name = strdup(row->name), *field = name != NULL ? strchr(name, ':') : NULL;
    if (field == NULL) {
        free(name);
        return;
    }
    *field++ = '\0';
    json_t *object = json_object_get(upstreams, name);
    if (object == NULL) {
        object = json_object();
        json_object_set_new(upstreams, name, object);
    }
    char *end;
    unsigned long number = strtoul(field, &end, 10);
    if (end != field && *end == ':' && number < 10000) {
        json_t *servers = json_object_get(object, "servers");
        if (servers == NULL) {
            servers = json_array();
            json_object_set_new(object, "servers", servers);
        }
        while (json_array_size(servers) <= number)
            json_array_append_new(servers, json_object());
        object = json_array_get(servers, number);
        field = end + 1;
    }
    json_object_set_new(object, field, hg_ctl_json_of(row->value, row->value_len));
    free(name);
}

static json_t *upstreams_of(const struct hg_ctl_rows *rows)
{
    json_t *upstreams = json_object();
    for (size_t i = 0; i < rows->count; i++)
        add_upstream_row(upstreams, &rows->row[i]);
    return upstreams;
}

static json_t *status_json(const struct status *status)
{
    json_t *json = json_object();
    for (int g = 0; g < GROUPS; g++) {
        json_t *part = status->refused[g] != NULL ? json_null()
                       : g == BUCKETS             ? buckets_of(&status->rows[g])
                       : g == UPSTREAMS           ? upstreams_of(&status->rows[g])
                                                  : hg_ctl_json_rows(&status->rows[g]);
        json_object_set_new(json, groups[g].key, part);
    }
    return json;
}

/* ---- status: the screen ---- */

/* A value of the row of this name, escaped, behind `label`; "-" when there is none. */
static void print_value(const char *label, const struct hg_ctl_rows *rows, const char *name)
{
    const char *text = hg_ctl_rows_find(rows, name);
    char *shown = text != NULL ? hg_ctl_escape(text, strlen(text)) : NULL;
    printf("%s%s", label, shown != NULL ? shown : "-");
    free(shown);
}

static void print_uptime(const char *seconds)
{
    unsigned long long s = seconds != NULL ? strtoull(seconds, NULL, 10) : 0;
    if (s >= 86400)
        printf("%llu d ", s / 86400);
    printf("%02llu:%02llu:%02llu", s / 3600 % 24, s / 60 % 60, s % 60);
}

static void print_general(const struct hg_ctl_rows *rows)
{
    print_value("headgate ", rows, "version");
    print_value(", process ", rows, "pid");
    printf(", up ");
    print_uptime(hg_ctl_rows_find(rows, "uptime"));
    print_value("\nconnections  ", rows, "curr_connections");
    print_value(" of at most ", rows, "max_connections");
    print_value("; ", rows, "total_connections");
    print_value(" since the start, ", rows, "rejected_connections");
    print_value(" refused\nrequests     ", rows, "cmd_total");
    print_value("; held for credits now ", rows, "held_now");
    print_value(", with a store now ", rows, "in_flight");
    putchar('\n');
}

static void print_throttle(const struct hg_ctl_rows *rows)
{
    print_value("node         capacity ", rows, "node_capacity");
    print_value(" units/s, free pool ", rows, "free_pool");
    print_value(" (", rows, "free_pool_used");
    print_value(" used, ", rows, "free_pool_mode");
    puts(")");
}

static const char *text_of(const json_t *object, const char *key, char out[32])
{
    const json_t *value = json_object_get(object, key);
    if (json_is_string(value))
        return json_string_value(value);
    if (!json_is_integer(value))
        return "-";
    snprintf(out, 32, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    return out;
}

static double number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* "1.2", of microseconds; "-" for 0 and what the server does not say. */
static void add_ms(struct hg_ctl_table *table, double us)
{
    char text[32] = "-";
    if (us > 0)
        snprintf(text, sizeof text, "%.1f", us / 1e3);
    hg_ctl_table_add(table, text);
}

/* What the tickets' side says of a server: times, tickets, line, refusals. */
static void add_load(struct hg_ctl_table *table, const struct hg_ctl_server_load *load)
{
    char text[100] = "-";
    add_ms(table, load->p50_us);
    add_ms(table, load->p99_us);
    add_ms(table, load->usual_us);
    if (load->is_known)
        snprintf(text, sizeof text, "%.0f/%.0f", load->out, load->size);
    hg_ctl_table_add(table, text);
    if (load->is_known)
        snprintf(text, sizeof text, "%.0f", load->line);
    hg_ctl_table_add(table, text);
    add_ms(table, load->wait_p99_us);
    if (load->is_known)
        snprintf(text, sizeof text, "%.1f", load->refused_per_s);
    hg_ctl_table_add(table, text);
    hg_ctl_table_add(table, load->refused_per_s > 0 ? load->reason : "-");
}

static void add_server(struct hg_ctl_table *table, const char *name, const json_t *upstream,
                       const json_t *server, const struct hg_ctl_rows *tickets)
{
    char a[32], b[32], c[32], d[32], e[32], detail[700], state[48];
    struct hg_ctl_server_load load;
    const char *error = text_of(server, "last_error", e); /* "-": an older server does not say */
    bool has_error = error[0] != '\0' && strcmp(error, "-") != 0;
    hg_ctl_server_load(tickets, name, text_of(server, "address", a), &load);
    const char *word = hg_ctl_server_word(
        text_of(server, "state", b), number_of(server, "requests"), number_of(server, "probes"),
        number_of(server, "connect_failures"), number_of(server, "connect_target"));
    bool goes = strcmp(word, "up") == 0 || strcmp(word, "connects-limited") == 0;
    if (goes && load.is_silent)
        word = "stalled";
    else if (goes && load.slow_factor > 0) {
        snprintf(state, sizeof state, "slow x%.0f", load.slow_factor);
        word = state;
    }
    hg_ctl_table_add(table, name);
    hg_ctl_table_add(table, text_of(upstream, "kind", b));
    hg_ctl_table_add(table, text_of(server, "address", a));
    hg_ctl_table_add(table, word);
    add_load(table, &load);
    snprintf(detail, sizeof detail,
             "%s connections, %s unanswered, %s waiting, %s time-outs%s%.300s",
             text_of(server, "connections", a), text_of(server, "pending", b),
             text_of(server, "waiting", c), text_of(server, "timeouts", d),
             has_error ? "; no connection: " : "", has_error ? error : "");
    hg_ctl_table_add(table, detail);
}

static void add_store(struct hg_ctl_table *table, const char *name, const json_t *upstream)
{
    static const struct hg_ctl_server_load unknown = {.reason = ""};
    char a[32], b[32], c[32], detail[200];
    hg_ctl_table_add(table, name);
    hg_ctl_table_add(table, text_of(upstream, "kind", a));
    hg_ctl_table_add(table, "-");
    hg_ctl_table_add(table, "up");
    add_load(table, &unknown);
    snprintf(detail, sizeof detail, "%s items, %s of %s bytes", text_of(upstream, "items", a),
             text_of(upstream, "used_bytes", b), text_of(upstream, "max_bytes", c));
    hg_ctl_table_add(table, detail);
}

static void print_upstreams(const struct hg_ctl_rows *rows, const struct hg_ctl_rows *tickets)
{
    static const char *const headings[] = {
        "UPSTREAM", "KIND", "SERVER",      "STATE",     "P50 MS", "P99 MS", "USUAL MS",
        "TICKETS",  "LINE", "WAIT P99 MS", "REFUSED/S", "FOR",    "DETAIL"};
    struct hg_ctl_table table;
    const char *name;
    json_t *upstream, *server, *upstreams = upstreams_of(rows);
    size_t i;
    hg_ctl_table_init(&table, HG_COUNT_OF(headings), headings);
    json_object_foreach(upstreams, name, upstream)
    {
        const json_t *servers = json_object_get(upstream, "servers");
        json_array_foreach(servers, i, server)
        {
            add_server(&table, name, upstream, server, tickets);
        }
        if (servers == NULL)
            add_store(&table, name, upstream);
    }
    hg_ctl_table_print(&table, stdout);
    hg_ctl_table_fini(&table);
    json_decref(upstreams);
}

static void print_status(const struct status *status)
{
    json_t *buckets = buckets_of(&status->rows[BUCKETS]);
    for (int g = 0; g < GROUPS; g++) {
        if (g >= BUCKETS && g != BINDS)
            putchar('\n');
        if (status->refused[g] != NULL) {
            printf("%s: %s\n", groups[g].key, status->refused[g]);
        } else if (g == GENERAL) {
            print_general(&status->rows[g]);
        } else if (g == THROTTLE) {
            print_throttle(&status->rows[g]);
        } else if (g == BUCKETS) {
            print_buckets(buckets);
        } else if (g == UPSTREAMS) {
            print_upstreams(&status->rows[g], &status->rows[TICKETS]);
        } else if (g == TICKETS) {
            hg_ctl_print_tickets(&status->rows[g]);
        } else {
            hg_ctl_print_binds(&status->rows[g], buckets);
        }
    }
    json_decref(buckets);
}

int hg_ctl_status(struct hg_ctl *ctl)
{
    struct status status = {0};
    int code = hg_ctl_connect(ctl);
    for (int g = 0; g < GROUPS && code == HG_CTL_OK; g++) {
        code = hg_ctl_fetch(ctl, groups[g].name, &status.rows[g], &status.refused[g]);
        if (code == HG_CTL_REFUSED && g != GENERAL)
            code = HG_CTL_OK; /* other groups may need privileges that the user has not */
    }
    if (code == HG_CTL_REFUSED)
        hg_ctl_say(code, "status: %s", status.refused[GENERAL]);
    else if (code == HG_CTL_OK && ctl->json)
        code = hg_ctl_json_print(status_json(&status));
    else if (code == HG_CTL_OK)
        print_status(&status);
    for (int g = 0; g < GROUPS; g++) {
        hg_ctl_rows_free(&status.rows[g]);
        free(status.refused[g]);
    }
    return code;
}
