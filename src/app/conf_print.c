// conf_print - the option table for people: --describe-config, the manual's list, the sample file
// SPDX-License-Identifier: BSD-3-Clause
#include "app/conf_table.h"

#include <string.h>

/* How a default reads: an empty text says nothing by itself. */
static const char *default_of(const struct hg_conf_option *option)
{
    if (!option->default_text)
        return "(must be given)";
    return option->default_text[0] ? option->default_text : "(empty)";
}

static const char *type_of(const struct hg_conf_option *option)
{
    size_t count;
    if (hg_conf_choice_names(option->type, &count))
        return "choice";
    switch (option->type) {
    case HG_CONF_TYPE_NUMBER:
        return "number";
    case HG_CONF_TYPE_BYTES:
        return "bytes";
    case HG_CONF_TYPE_UNITS:
        return "units";
    case HG_CONF_TYPE_MODE:
        return "mode";
    case HG_CONF_TYPE_DECIMAL:
        return "decimal";
    case HG_CONF_TYPE_BOOL:
        return "truth value";
    case HG_CONF_TYPE_TEXT:
        return "text";
    case HG_CONF_TYPE_NAME:
        return "name";
    case HG_CONF_TYPE_SECRET:
        return "secret";
    case HG_CONF_TYPE_ADDRESS:
        return "address";
    default:
        return hg_conf_option_is_group(option) ? "mapping" : "list";
    }
}

static const char *kind_of(const struct hg_conf_option *option)
{
    switch (option->for_kinds) {
    case HG_CONF_FOR_EMBEDDED:
        return "embedded only";
    case HG_CONF_FOR_MEMCACHED:
        return "memcached only";
    case HG_CONF_FOR_REDIS_ONE:
        return "redis only";
    case HG_CONF_FOR_REDIS:
        return "redis and redis-cluster only";
    case HG_CONF_FOR_REMOTE:
        return "not embedded";
    default:
        return "";
    }
}

/* Each scope's place in the file. */
static const char *const titles[HG_CONF_SCOPE_COUNT] = {
    [HG_CONF_SCOPE_SERVER] = "the server",
    [HG_CONF_SCOPE_LISTEN] = "each entry of listen",
    [HG_CONF_SCOPE_UPSTREAM] = "each entry of upstreams",
    [HG_CONF_SCOPE_UPSTREAM_SERVER] = "each entry of an upstream's servers",
    [HG_CONF_SCOPE_TENANT] = "each entry of tenants",
    [HG_CONF_SCOPE_FAMILY] = "each entry of a tenant's families",
    [HG_CONF_SCOPE_ADMIN] = "admin",
    [HG_CONF_SCOPE_LISTEN_TLS] = "a listener's tls",
    [HG_CONF_SCOPE_UPSTREAM_TLS] = "an upstream's tls",
};

void hg_conf_describe(FILE *to)
{
    for (int scope = 0; scope < HG_CONF_SCOPE_COUNT; scope++) {
        const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
        fprintf(to, "%sOptions of %s:\n", scope ? "\n" : "", titles[scope]);
        for (size_t i = 0; i < info->count; i++) {
            const struct hg_conf_option *option = &info->options[i];
            char accepts[256];
            hg_conf_value_accepts(option, accepts, sizeof accepts);
            fprintf(to, "\n  %s\n      %s\n", option->name, option->sentence);
            fprintf(to, "      type: %s; accepted: %s\n", type_of(option), accepts);
            fprintf(to, "      default: %s%s%s; unit: %s; at run time: %s%s%s\n",
                    default_of(option), hg_conf_option_inherits(option) ? " of the server" : "", "",
                    option->unit[0] ? option->unit : "none", option->at_run_time ? "yes" : "no",
                    kind_of(option)[0] ? "; " : "", kind_of(option));
        }
    }
}

void hg_conf_manual(FILE *to)
{
    for (int scope = 0; scope < HG_CONF_SCOPE_COUNT; scope++) {
        const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
        fprintf(to, "%s### Options of %s\n\n", scope ? "\n" : "", titles[scope]);
        fputs("| option | type | accepted | default | unit | at run time | what it is for |\n"
              "| --- | --- | --- | --- | --- | --- | --- |\n",
              to);
        for (size_t i = 0; i < info->count; i++) {
            const struct hg_conf_option *option = &info->options[i];
            char accepts[256];
            hg_conf_value_accepts(option, accepts, sizeof accepts);
            fprintf(to, "| `%s` | %s | %s | %s | %s | %s | %s%s%s%s |\n", option->name,
                    type_of(option), accepts, default_of(option),
                    option->unit[0] ? option->unit : "–", option->at_run_time ? "yes" : "no",
                    option->sentence, kind_of(option)[0] ? " (" : "", kind_of(option),
                    kind_of(option)[0] ? ")" : "");
        }
    }
}

/* What the sample sets; everything else stands there as a comment, with its default. */
static const struct shown {
    enum hg_conf_server_option option;
    const char *text;
} shown[] = {
    {HG_CONF_SERVER_listen, "listen:\n  - {address: 127.0.0.1:11211}\n"},
    {HG_CONF_SERVER_admin, "admin: {address: 127.0.0.1:11280}\n"},
    {HG_CONF_SERVER_node_capacity, "node_capacity: 25000\n"},
    {HG_CONF_SERVER_upstreams, "upstreams:\n"
                               "  - {name: rows, kind: embedded}\n"
                               "  - name: cache\n"
                               "    kind: memcached\n"
                               "    ring: ketama\n"
                               "    servers:\n"
                               "      - {address: 127.0.0.1:11311, weight: 1}\n"
                               "      - {address: 127.0.0.1:11312, weight: 1}\n"
                               "  - name: ledgers\n"
                               "    kind: redis\n"
                               "    servers: [{address: 127.0.0.1:6379}]\n"},
    {HG_CONF_SERVER_tenants,
     "tenants:\n"
     "  - {name: default, upstream: rows}\n"
     "  - {name: shop, upstream: cache, reserved: 5000, hard_limit: 20000}\n"
     "  - {name: ledger, upstream: ledgers, backend_database: 1, reserved: 1666, hard_limit: "
     "unlimited}\n"
     "  - {name: orders, upstream: ledgers, backend_database: 2, reserved: 1666}\n"},
};

static void sample_elements(FILE *to, enum hg_conf_scope scope)
{
    const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
    fprintf(to, "# Options of %s:\n", titles[scope]);
    for (size_t i = 0; i < info->count; i++) {
        const struct hg_conf_option *option = &info->options[i];
        fprintf(to, "#   %s: %s%s%s%s\n", option->name, default_of(option),
                kind_of(option)[0] ? " (" : "", kind_of(option), kind_of(option)[0] ? ")" : "");
        fprintf(to, "#       %s\n", option->sentence);
    }
}

static void sample_option(FILE *to, size_t index)
{
    const struct hg_conf_option *option = &hg_conf_scopes[HG_CONF_SCOPE_SERVER].options[index];
    enum hg_conf_scope list = hg_conf_option_list(option);
    char accepts[256];
    hg_conf_value_accepts(option, accepts, sizeof accepts);
    fprintf(to, "\n# %s\n", option->sentence);
    if (list != HG_CONF_SCOPE_COUNT) {
        sample_elements(to, list);
        if (list == HG_CONF_SCOPE_LISTEN)
            sample_elements(to, HG_CONF_SCOPE_LISTEN_TLS);
        if (list == HG_CONF_SCOPE_UPSTREAM) {
            sample_elements(to, HG_CONF_SCOPE_UPSTREAM_TLS);
            sample_elements(to, HG_CONF_SCOPE_UPSTREAM_SERVER);
        }
        if (list == HG_CONF_SCOPE_TENANT)
            sample_elements(to, HG_CONF_SCOPE_FAMILY);
    } else {
        fprintf(to, "# Accepted: %s%s\n", accepts,
                option->at_run_time ? "" : ". Takes effect at the next start");
    }
    for (size_t i = 0; i < HG_COUNT_OF(shown); i++)
        if (shown[i].option == index) {
            if (list == HG_CONF_SCOPE_COUNT)
                fprintf(to, "# Default: %s\n", default_of(option));
            fputs(shown[i].text, to);
            return;
        }
    fprintf(to, "#%s: %s\n", option->name, option->default_text[0] ? option->default_text : "\"\"");
}

void hg_conf_sample(FILE *to)
{
    fputs("# headgate.yaml - the configuration of headgate, read with `headgate -c FILE`\n"
          "#\n"
          "# A line with a # right in front of its name shows the default. `headgate --check -c "
          "FILE` says what\n"
          "# is wrong with a file.\n",
          to);
    for (size_t i = 0; i < HG_CONF_SERVER_COUNT; i++)
        sample_option(to, i);
}
