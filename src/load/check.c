// check - whether options fit together, and what follows from them
// SPDX-License-Identifier: BSD-3-Clause
#include "load/check.h"

#include <math.h>
#include <string.h>

#include "load/gen.h"
#include "load/option.h"
#include "proto/tablemsg.h"

/* Intervals of a series where nothing else is asked for: a plot of a minute has 600 points. */
#define SERIES_MS 100

static bool check_table(const struct hg_load_tenant *tenant, const char *option, const char *table)
{
    if (table != NULL && strlen(table) + tenant->key_bytes > HG_TABLE_KEY_MAX) {
        return hg_option_complain(
            "tenant '%s': %s '%s' and key-bytes %u: expected at most %d bytes "
            "of table and key together",
            tenant->name, option, table, tenant->key_bytes, HG_TABLE_KEY_MAX);
    }
    return true;
}

/* Whether there is a table for an operation on rows. */
static bool check_operation(const struct hg_load_tenant *tenant, int op)
{
    bool hbase = hg_load_op_is_hbase((enum hg_load_op)op);
    if (!hg_load_op_is_row((enum hg_load_op)op) ||
        (hbase ? tenant->hbase : tenant->table) != NULL) {
        return true;
    }
    return hg_option_complain("tenant '%s': %s needs --%s with the name of a table", tenant->name,
                              hg_load_op_table[op].name, hbase ? "hbase" : "table");
}

static bool check_rows(const struct hg_load_tenant *tenant)
{
    for (int op = 0; op < HG_LOAD_OPS; op++) {
        if (tenant->weight[op] > 0 && !check_operation(tenant, op)) {
            return false;
        }
    }
    return check_table(tenant, "table", tenant->table) &&
           check_table(tenant, "hbase", tenant->hbase);
}

/* The other protocols can less. */
static bool check_protocol(const struct hg_load_options *options,
                           const struct hg_load_tenant *tenant)
{
    const char *protocol = hg_load_protocol_names[options->protocol];
    if (options->protocol == HG_LOAD_BINARY) {
        return true;
    }
    for (int op = 0; op < HG_LOAD_OPS; op++) {
        if (tenant->weight[op] > 0 && !hg_load_op_table[op].in_text) {
            return hg_option_complain(
                "tenant '%s': mix: the %s protocol has get and set only, not %s", tenant->name,
                protocol, hg_load_op_table[op].name);
        }
    }
    if (tenant->user != NULL || tenant->bucket != NULL || tenant->hello != 0) {
        return hg_option_complain("tenant '%s': the %s protocol has no user, bucket or hello",
                                  tenant->name, protocol);
    }
    if (options->protocol == HG_LOAD_RESP && tenant->expiry > 0) {
        return hg_option_complain("tenant '%s': the %s protocol has no expiry here", tenant->name,
                                  protocol);
    }
    return true;
}

static bool check_hot(const struct hg_load_options *options, const struct hg_load_tenant *tenant)
{
    if (tenant->hot_rate <= 0) {
        return true;
    }
    if (tenant->hot_key >= tenant->keys) {
        return hg_option_complain("tenant '%s': hot-key %u: expected the number of a key, 0 to %u",
                                  tenant->name, tenant->hot_key, tenant->keys - 1);
    }
    if (tenant->hot_until_ns <= tenant->hot_at_ns) {
        return hg_option_complain("tenant '%s': hot-until: expected more than hot-at, %g",
                                  tenant->name, (double)tenant->hot_at_ns / 1e9);
    }
    if (options->time_ns > 0 && tenant->hot_at_ns >= options->time_ns) {
        return hg_option_complain("tenant '%s': hot-at: expected less than the time of the run, %g",
                                  tenant->name, (double)options->time_ns / 1e9);
    }
    if (options->protocol != HG_LOAD_BINARY && !hg_load_op_table[tenant->hot_op].in_text) {
        return hg_option_complain("tenant '%s': hot-op: the %s protocol has get and set only",
                                  tenant->name, hg_load_protocol_names[options->protocol]);
    }
    return check_operation(tenant, (int)tenant->hot_op);
}

/* Whether the rate and the loop go together. */
static bool check_rate(const struct hg_load_options *options, const struct hg_load_tenant *tenant)
{
    const struct hg_rate *rate = &tenant->rate;
    const struct hg_rate_step *last = &rate->step[rate->count > 0 ? rate->count - 1 : 0];
    bool is_open = tenant->arrivals != HG_ARRIVALS_CLOSED;
    if (options->time_ns > 0 && rate->count > 0 && last->at_ns >= options->time_ns) {
        return hg_option_complain(
            "tenant '%s': rate: expected times before the end of the run at second %g, not %g",
            tenant->name, (double)options->time_ns / 1e9, (double)last->at_ns / 1e9);
    }
    if (!options->has_time && options->has_operations && hg_rate_ends(rate)) {
        return hg_option_complain("tenant '%s': rate: ends with 0, so --operations may never be "
                                  "reached; expected --time with it",
                                  tenant->name);
    }
    for (uint32_t i = 0; is_open && i < rate->count; i++) {
        if (isinf(rate->step[i].rate)) {
            return hg_option_complain("tenant '%s': rate: expected numbers, not " HG_RATE_MAX_WORD
                                      ", with arrivals steady or poisson",
                                      tenant->name);
        }
    }
    return !is_open || rate->count > 0 ||
           hg_option_complain("tenant '%s': arrivals: steady and poisson need a rate above 0",
                              tenant->name);
}

/* One key for all operations: what reads verify, what counts and what grows are not the same. */
static bool check_key(const struct hg_load_tenant *tenant)
{
    const struct hg_load_op_info *first = NULL;
    if (tenant->key == NULL) {
        return true;
    }
    if (strcspn(tenant->key, " \t\r\n") != strlen(tenant->key)) {
        return hg_option_complain("tenant '%s': key '%s': expected no white space", tenant->name,
                                  tenant->key);
    }
    for (int op = 0; op < HG_LOAD_OPS; op++) {
        const struct hg_load_op_info *info = &hg_load_op_table[op];
        bool used = tenant->weight[op] > 0 || (tenant->hot_rate > 0 && (int)tenant->hot_op == op);
        if (used && first != NULL && info->space != first->space) {
            return hg_option_complain("tenant '%s': key: %s and %s cannot share one", tenant->name,
                                      first->name, info->name);
        }
        first = used ? info : first;
    }
    return true;
}

/* What is done when no mix says it, and to the hot key. */
static void fill_in_tenant(struct hg_load_tenant *tenant)
{
    uint32_t total = 0;
    for (int op = 0; op < HG_LOAD_OPS; op++) {
        total += tenant->weight[op];
    }
    if (total == 0) {
        bool table = tenant->table != NULL, hbase = !table && tenant->hbase != NULL;
        tenant->weight[table ? HG_LOAD_TABLE_GET : hbase ? HG_LOAD_HBASE_GET : HG_LOAD_GET] = 90;
        tenant->weight[table   ? HG_LOAD_TABLE_INSERT_OR_UPDATE
                       : hbase ? HG_LOAD_HBASE_PUT
                               : HG_LOAD_SET] = 10;
    }
    int first = 0;
    while (tenant->weight[first] == 0) {
        first++;
    }
    if (tenant->hot_op == HG_LOAD_OPS) {
        tenant->hot_op = !hg_load_op_is_row((enum hg_load_op)first)     ? HG_LOAD_GET
                         : !hg_load_op_is_hbase((enum hg_load_op)first) ? HG_LOAD_TABLE_GET
                                                                        : HG_LOAD_HBASE_GET;
    }
    if (tenant->hot_until_ns == 0) {
        tenant->hot_until_ns = UINT64_MAX;
    }
    if (tenant->key != NULL) {
        tenant->keys = 1;
        tenant->key_bytes = (uint32_t)strlen(tenant->key);
    }
}

static bool check_tenant(const struct hg_load_options *options, const struct hg_load_tenant *tenant)
{
    uint32_t digits = hg_gen_digits(tenant->keys);
    size_t needed = strlen(tenant->key_prefix) + 1 + digits;
    if (tenant->key == NULL && tenant->key_bytes < needed) {
        return hg_option_complain(
            "tenant '%s': key-bytes %u: %u keys with prefix '%s' need at least %zu", tenant->name,
            tenant->key_bytes, tenant->keys, tenant->key_prefix, needed);
    }
    if (strcspn(tenant->key_prefix, " \t\r\n") != strlen(tenant->key_prefix)) {
        return hg_option_complain("tenant '%s': key-prefix '%s': expected no white space",
                                  tenant->name, tenant->key_prefix);
    }
    if (tenant->zipf > 0 && tenant->keys > HG_GEN_ZIPF_KEYS) {
        return hg_option_complain("tenant '%s': keys %u: expected at most %u with zipf above 0",
                                  tenant->name, tenant->keys, HG_GEN_ZIPF_KEYS);
    }
    if ((tenant->user == NULL) != (tenant->password == NULL)) {
        return hg_option_complain("tenant '%s': user and password (or password-file) go together",
                                  tenant->name);
    }
    return check_protocol(options, tenant) && check_rows(tenant) && check_key(tenant) &&
           check_rate(options, tenant) && check_hot(options, tenant);
}

bool hg_load_check_options(struct hg_load_options *options)
{
    uint64_t connections = 0;
    for (uint32_t i = 0; i < options->tenant_count; i++) {
        struct hg_load_tenant *tenant = &options->tenants[i];
        fill_in_tenant(tenant);
        if (!check_tenant(options, tenant)) {
            return false;
        }
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(options->tenants[j].name, tenant->name) == 0) {
                return hg_option_complain("--tenant: two are named '%s'", tenant->name);
            }
        }
        connections += tenant->connections;
    }
    if (options->threads > connections) {
        return hg_option_complain(
            "--threads '%u': expected at most the number of connections, %llu", options->threads,
            (unsigned long long)connections);
    }
    if (options->has_operations && options->operations == 0 && !options->fill) {
        return hg_option_complain("--operations '0': expected at least 1, or --fill with it");
    }
    if (options->series != NULL && options->interval_ms == 0) {
        options->interval_ms = SERIES_MS;
    }
    if (!options->has_time) {
        options->time_ns = options->has_operations ? 0 : 10u * UINT64_C(1000000000);
    }
    return true;
}
