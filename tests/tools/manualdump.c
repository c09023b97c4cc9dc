// manualdump - prints the manual's lists from the program's tables
// SPDX-License-Identifier: BSD-3-Clause
//
// manualdump opcodes | statuses | features | logins | embedded | upstream | cluster |
//            handshakes
//
// Used by tests/tools/drift-manual.sh, which holds the manual to what this prints.
#include <stdio.h>
#include <string.h>

#include "base/privilege.h"
#include "proto/hello.h"
#include "proto/opcode.h"
#include "proto/status.h"

static const char *bytes_text(uint32_t bytes, char out[16])
{
    if (bytes >= 1024 * 1024 && bytes % (1024 * 1024) == 0)
        snprintf(out, 16, "%u MiB", bytes / (1024 * 1024));
    else if (bytes >= 1024 && bytes % 1024 == 0)
        snprintf(out, 16, "%u KiB", bytes / 1024);
    else
        snprintf(out, 16, "%u", bytes);
    return out;
}

static void print_range(uint32_t least, uint32_t span)
{
    char from[16], to[16];
    if (span == 0)
        printf(" %s |", least == 0 ? "–" : bytes_text(least, from));
    else if (least + (uint64_t)span > 1024 * 1024)
        printf(" any |");
    else
        printf(" %s to %s |", bytes_text(least, from), bytes_text(least + span, to));
}

static void print_extras(const struct hg_opcode_row *row)
{
    const char *before = " ";
    for (unsigned n = 0; n < 32; n++) {
        if ((row->extras_lengths >> n & 1) == 0)
            continue;
        if (n == 0 && row->extras_lengths == 1)
            printf(" –");
        else
            printf("%s%u", before, n);
        before = " or ";
    }
    printf(" |");
}

static void print_needs(const struct hg_opcode_row *row)
{
    const char *before = " ";
    for (unsigned p = 0; p < HG_PRIVILEGE_COUNT; p++) {
        if ((row->needs & HG_PRIVILEGE_BIT(p)) == 0)
            continue;
        printf("%s%s", before, hg_privilege_name((enum hg_privilege)p));
        before = ", ";
    }
    printf("%s |", row->needs == 0 ? " –" : "");
}

static void print_opcodes(void)
{
    puts("| code | name | extras | key | value | CAS | needs | remarks |\n"
         "| --- | --- | --- | --- | --- | --- | --- | --- |");
    for (unsigned code = 0; code < 256; code++) {
        const struct hg_opcode_row *row = hg_opcode_row((uint8_t)code);
        if (row == NULL)
            continue;
        printf("| 0x%02x | %s |", code, row->name);
        print_extras(row);
        print_range(row->key_min, row->key_span);
        print_range(row->value_min, row->value_span);
        printf(" %s |", row->cas_mask == 0 ? "any" : "0");
        print_needs(row);
        if (row->quiet)
            printf(" quiet %s", hg_opcode_name(row->loud));
        printf("%s%s%s |\n", row->quiet && row->before_login ? "," : "",
               row->before_login ? " before login" : "",
               !row->quiet && !row->before_login ? " –" : "");
    }
}

static void print_statuses(void)
{
    puts("| status | name | what it means |\n| --- | --- | --- |");
    for (size_t s = 0; s < HG_STATUS_ROWS; s++)
        printf("| 0x%02x | %s | %s |\n", hg_status_table[s].code, hg_status_table[s].name,
               hg_status_table[s].meaning);
}

static void print_features(void)
{
    puts("| code | feature |\n| --- | --- |");
#define HG_FEATURE(name, code, printed) printf("| 0x%02x | %s |\n", code, printed);
    HG_FEATURES(HG_FEATURE)
#undef HG_FEATURE
}

static void stat_head(void)
{
    puts("| name | what it counts |\n| --- | --- |");
}

static void print_logins(void)
{
    stat_head();
#define HG_LOGIN_STAT(name, kind, text) printf("| `login_%s` | %s |\n", #name, text);
#include "app/login_stats.def"
#undef HG_LOGIN_STAT
}

static void print_handshakes(void)
{
    stat_head();
#define HG_HANDSHAKE_STAT(name, kind, text) printf("| `tls_handshakes_%s` | %s |\n", #name, text);
#include "front/handshake_stats.def"
#undef HG_HANDSHAKE_STAT
    puts("| `tls_handshakes_now` | TLS handshakes under way now |");
    puts(
        "| `tls_certificate_expires_s` | seconds until the first of the listeners' certificates is "
        "over; less than 0: it is |");
}

static void print_embedded(void)
{
    stat_head();
#define HG_EMBEDDED_STAT(name, kind, help) printf("| `%s` | %s |\n", #name, help);
#include "back/embedded_stats.def"
#undef HG_EMBEDDED_STAT
}

static void print_upstream(void)
{
    stat_head();
#define HG_UPSTREAM_STAT(id, name, kind, help) printf("| `%s` | %s |\n", name, help);
#include "back/upstream_stats.def"
#undef HG_UPSTREAM_STAT
}

static void print_cluster(void)
{
    stat_head();
#define HG_REDISCLUSTER_STAT(NAME, name, kind, help) printf("| `%s` | %s |\n", name, help);
#include "back/rediscluster_stats.def"
#undef HG_REDISCLUSTER_STAT
}

static const struct {
    const char *name;
    void (*print)(void);
} lists[] = {
    {"opcodes", print_opcodes}, {"statuses", print_statuses},     {"features", print_features},
    {"logins", print_logins},   {"embedded", print_embedded},     {"upstream", print_upstream},
    {"cluster", print_cluster}, {"handshakes", print_handshakes},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < HG_COUNT_OF(lists); i++) {
        if (strcmp(argv[1], lists[i].name) == 0) {
            lists[i].print();
            return fflush(stdout) == 0 ? 0 : 1;
        }
    }
    fputs("usage: manualdump opcodes | statuses | features | logins | embedded | upstream | "
          "cluster | handshakes\n",
          stderr);
    return 2;
}
