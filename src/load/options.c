// options - the command line of headgate-load, parsed and checked
// SPDX-License-Identifier: BSD-3-Clause
//
// option.def is the table: getopt's lists, the parser, the keys of --tenant and --help come from
// it.
#include "load/options.h"

#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "load/check.h"
#include "load/option.h"

#define LONG_BASE 256 /* getopt's value of the first row */

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
    return hg_load_check_options(options) ? HG_LOAD_RUN : HG_LOAD_USAGE;
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
