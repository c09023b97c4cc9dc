// options - the command line of headgate-load, parsed and checked
// SPDX-License-Identifier: BSD-3-Clause
//
// option.def is the table: getopt's lists, the parser, the keys of --tenant and --help come from
// it.
#include "load/options.h"

#include <ctype.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "load/gen.h"
#include "load/option.h"
#include "proto/tablemsg.h"

#define LONG_BASE 256 /* getopt's value of the first row */

/* Intervals of a series where nothing else is asked for: a plot of a minute has 600 points. */
#define SERIES_MS 100

static const struct hg_option_row *find_row(const char *name, size_t len)
{
    for (size_t i = 0; i < HG_OPTION_ROWS; i++) {
        if (strlen(hg_option_rows[i].name) == len &&
            memcmp(hg_option_rows[i].name, name, len) == 0) {
            return &hg_option_rows[i];
        }
    }
    return NULL;
}

/* The row of the key that a piece of a --tenant begins with; NULL if it is none of a tenant. */
static const struct hg_option_row *tenant_row(const char *piece)
{
    const struct hg_option_row *row = find_row(piece, strcspn(piece, "=,"));
    return row != NULL && row->scope == HG_OPTION_OF_TENANT ? row : NULL;
}

/* Where the value that starts at `value` ends. The comma separates keys, but mix, hello and rate
 * have commas of their own: what follows one and is no key of a tenant belongs to the list. */
static char *value_end(const struct hg_option_row *row, char *value)
{
    bool is_list = row != NULL && (row->type == HG_OPTION_MIX || row->type == HG_OPTION_HELLO ||
                                   row->type == HG_OPTION_RATE);
    char *end = value + strcspn(value, ",");
    while (is_list && *end == ',' && strncmp(end + 1, "name=", 5) != 0 &&
           tenant_row(end + 1) == NULL) {
        end += 1 + strcspn(end + 1, ",");
    }
    return end;
}

static bool is_name(const char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++) {
        if (!isgraph((unsigned char)text[i])) {
            return false;
        }
    }
    return len >= 1 && len <= 100;
}

/* One --tenant: a copy of `defaults`, changed by what the specification says. */
static bool add_tenant(struct hg_load_options *options, const struct hg_load_tenant *defaults,
                       const char *spec)
{
    if (options->tenant_count == HG_LOAD_TENANTS_MAX) {
        return hg_option_complain("--tenant: at most %d of them", HG_LOAD_TENANTS_MAX);
    }
    struct hg_load_tenant *tenant = &options->tenants[options->tenant_count];
    uint32_t number = options->tenant_count + 1;
    struct hg_option_place place = {options, tenant, number};
    *tenant = *defaults;
    tenant->name = NULL;
    char *at = hg_option_keep(options, strdup(spec));
    while (true) {
        char *value = at + strcspn(at, "=,");
        const struct hg_option_row *row = tenant_row(at);
        bool names = strncmp(at, "name=", 5) == 0;
        if (*value != '=' || (row == NULL && !names)) {
            return hg_option_complain(
                "--tenant no. %u: '%.*s' is no key=value of a tenant; see --help", number,
                (int)strcspn(at, ","), at);
        }
        value++;
        char *end = value_end(row, value);
        bool last = *end == '\0';
        *end = '\0';
        if (names) {
            tenant->name = value;
        } else if (!hg_option_set(&place, row, value)) {
            return false;
        }
        if (last) {
            break;
        }
        at = end + 1;
    }
    if (tenant->name == NULL || !is_name(tenant->name)) {
        return hg_option_complain(
            "--tenant no. %u: expected name= with 1 to 100 printable characters", number);
    }
    options->tenant_count++;
    return true;
}

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

static bool check_options(struct hg_load_options *options)
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

static void show_default(const struct hg_option_row *row, const struct hg_load_options *options,
                         const struct hg_load_tenant *defaults)
{
    const char *base =
        row->scope == HG_OPTION_OF_TENANT ? (const char *)defaults : (const char *)options;
    const void *field = base + row->offset;
    if (row->type == HG_OPTION_NUMBER) {
        printf(" (%u)", *(const uint32_t *)field);
    } else if (row->type == HG_OPTION_REAL) {
        printf(" (%g)", *(const double *)field);
    } else if (row->type == HG_OPTION_RANGE) {
        printf(" (%u)", defaults->value_min);
    } else if (row->type == HG_OPTION_TEXT && *(const char *const *)field != NULL) {
        printf(" ('%s')", *(const char *const *)field);
    } else if (row->type == HG_OPTION_SECONDS && *(const uint64_t *)field > 0) {
        printf(" (%g)", (double)*(const uint64_t *)field / 1e9);
    }
}

static void show_operations(void)
{
    for (int i = 0; i < HG_LOAD_OPS; i++) {
        enum hg_load_op op = (enum hg_load_op)i;
        printf("%s%s",
               op == HG_LOAD_GET         ? "\nOperations: "
               : op == HG_LOAD_TABLE_GET ? "\n  with --table: "
               : op == HG_LOAD_HBASE_PUT ? "\n  with --hbase: "
                                         : ", ",
               hg_load_op_table[op].name);
    }
    putchar('\n');
}

static void show_help(const struct hg_load_options *options, const struct hg_load_tenant *defaults)
{
    puts("usage: headgate-load [OPTION]...\n\n"
         "Loads a server that speaks the memcached binary protocol and checks every reply.\n");
    for (size_t i = 0; i < HG_OPTION_ROWS; i++) {
        const struct hg_option_row *row = &hg_option_rows[i];
        char left[60];
        snprintf(left, sizeof left, "  %c%c%s --%s%s%s", row->letter != 0 ? '-' : ' ',
                 row->letter != 0 ? row->letter : ' ', row->letter != 0 ? "," : " ", row->name,
                 row->argument != NULL ? " " : "", row->argument != NULL ? row->argument : "");
        printf("%-31s %s", left, row->sentence);
        show_default(row, options, defaults);
        putchar('\n');
    }
    show_operations();
    puts("\nA --tenant takes name= and, as key=value, the options from server to hello.\n"
         "Exit status: 0 fine, 1 wrong replies or trouble with a connection, 2 usage.");
}

static void list_getopt(char letters[3 * HG_OPTION_ROWS + 2],
                        struct option longs[HG_OPTION_ROWS + 1])
{
    *letters++ = ':';
    for (size_t i = 0; i < HG_OPTION_ROWS; i++) {
        bool takes = hg_option_rows[i].argument != NULL;
        longs[i] = (struct option){hg_option_rows[i].name, takes ? required_argument : no_argument,
                                   NULL, LONG_BASE + (int)i};
        if (hg_option_rows[i].letter != 0) {
            *letters++ = hg_option_rows[i].letter;
            *letters = ':';
            letters += takes;
        }
    }
    *letters = '\0';
    longs[HG_OPTION_ROWS] = (struct option){0};
}

static const struct hg_option_row *row_of_value(int value)
{
    for (size_t i = 0; i < HG_OPTION_ROWS; i++) {
        if (value == LONG_BASE + (int)i ||
            (hg_option_rows[i].letter != 0 && value == hg_option_rows[i].letter)) {
            return &hg_option_rows[i];
        }
    }
    return NULL;
}

static bool complain_option(int value, const char *word)
{
    const struct hg_option_row *row = row_of_value(optopt);
    if (value == ':' && row != NULL) {
        return hg_option_complain("--%s: expected a value: %s", row->name, row->argument);
    }
    if (row != NULL) {
        return hg_option_complain("--%s takes no value", row->name);
    }
    if (optopt != 0) {
        return hg_option_complain("unknown option '-%c'; --help lists what there is", optopt);
    }
    return hg_option_complain("unknown option '%s'; --help lists what there is", word);
}

static enum hg_load_parsed parse_words(struct hg_load_options *options,
                                       struct hg_load_tenant *defaults, int argc, char **argv)
{
    char letters[3 * HG_OPTION_ROWS + 2];
    struct option longs[HG_OPTION_ROWS + 1];
    const char *specs[HG_LOAD_TENANTS_MAX + 1];
    uint32_t spec_count = 0;
    struct hg_option_place place = {options, defaults, 0};
    list_getopt(letters, longs);
    opterr = 0;
    int value;
    while ((value = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        const struct hg_option_row *row = row_of_value(value);
        if (row == NULL) {
            complain_option(value, argv[optind - 1]);
            return HG_LOAD_USAGE;
        }
        if (row->type == HG_OPTION_HELP) {
            show_help(options, defaults);
            return HG_LOAD_SHOWN;
        }
        if (row->type == HG_OPTION_VERSION) {
            puts("headgate-load " PACKAGE_VERSION);
            return HG_LOAD_SHOWN;
        }
        if (row->type == HG_OPTION_TENANT) {
            if (spec_count <= HG_LOAD_TENANTS_MAX) {
                specs[spec_count++] = optarg;
            }
        } else if (!hg_option_set(&place, row, optarg)) {
            return HG_LOAD_USAGE;
        }
        options->has_operations |= row->letter == 'n';
        options->has_time |= row->letter == 't';
    }
    if (optind < argc) {
        hg_option_complain("unexpected word '%s'; every setting is an option", argv[optind]);
        return HG_LOAD_USAGE;
    }
    for (uint32_t i = 0; i < spec_count; i++) {
        if (!add_tenant(options, defaults, specs[i])) {
            return HG_LOAD_USAGE;
        }
    }
    if (spec_count == 0) {
        options->tenants[options->tenant_count++] = *defaults;
    }
    return check_options(options) ? HG_LOAD_RUN : HG_LOAD_USAGE;
}

enum hg_load_parsed hg_load_options_init(struct hg_load_options *options, int argc, char **argv)
{
    struct hg_load_tenant defaults = {
        .name = "default",
        .server = "127.0.0.1:11211",
        .connections = 50,
        .pipeline = 1,
        .hot_op = HG_LOAD_OPS,
        .keys = 100000,
        .key_bytes = 16,
        .key_prefix = "",
        .zipf = 0.99,
        .value_min = 32,
        .value_max = 32,
        .waiting = 100000,
    };
    *options = (struct hg_load_options){
        .interval_ns = 1000000000,
        .timeout_ns = UINT64_C(10000000000),
        .seed = 1,
        .threads = 1,
    };
    return parse_words(options, &defaults, argc, argv);
}

void hg_load_options_fini(struct hg_load_options *options)
{
    for (uint32_t i = 0; i < options->text_count; i++) {
        free(options->texts[i]);
    }
    free(options->texts);
    options->texts = NULL;
    options->text_count = 0;
}
