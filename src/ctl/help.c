// help - what there is: the verbs, their options, the exit codes
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/help.h"

#include <stdio.h>
#include <string.h>

#include "ctl/option.h"
#include "ctl/param.h"

#define TEXT_COLUMNS 72 /* of a line, besides its indent */

static const struct hg_ctl_verb verbs[] = {
#define HG_CTL_VERB(name, run, args, text) {name, run, args, text},
#include "ctl/verb.def"
#undef HG_CTL_VERB
};

static const char exits[] =
    "exit status: 0 done, 1 refused by the server, 2 wrong usage or an unreadable file,\n"
    "3 no connection, or lost, 4 the login failed";

const struct hg_ctl_verb *hg_ctl_verb_find(const char *name)
{
    for (size_t i = 0; i < HG_COUNT_OF(verbs); i++)
        if (strcmp(name, verbs[i].name) == 0)
            return &verbs[i];
    return NULL;
}

static void print_wrapped(const char *text, int indent)
{
    while (*text != '\0') {
        size_t len = strlen(text);
        if (len > TEXT_COLUMNS) {
            len = TEXT_COLUMNS;
            while (len > 0 && text[len] != ' ')
                len--;
        }
        printf("%*s%.*s\n", indent, "", (int)len, text);
        text += len;
        text += strspn(text, " ");
    }
}

static void print_option(const struct hg_ctl_option_row *row)
{
    printf("  --%s%s%s\n", row->name, row->argument != NULL ? " " : "",
           row->argument != NULL ? row->argument : "");
    print_wrapped(row->text, 6);
}

void hg_ctl_help_all(void)
{
    puts("usage: headgatectl [-s ADDR] [-u USER] [--password-file FILE] [--json] VERB ...\n"
         "\n"
         "  -s, --server ADDR         HOST:PORT, [IPV6]:PORT or unix:PATH (127.0.0.1:11211)\n"
         "  -u, --user USER           log in, by SCRAM\n"
         "      --password-file FILE  the password is its first line (- for standard input);\n"
         "                            without it: the variable HEADGATE_PASSWORD, or a prompt\n"
         "  -b, --bucket NAME         select a bucket (where, stats, table, hbase)\n"
         "      --tls                 speak TLS; the server's certificate is checked, its name, "
         "too\n"
         "      --tls-ca FILE         trust these authorities (PEM) instead of the system's\n"
         "      --tls-cert FILE       show this certificate (PEM); with its key:\n"
         "      --tls-key FILE        the private key (PEM), not encrypted\n"
         "      --tls-insecure        do not check the server's certificate\n"
         "      --json                print JSON\n"
         "      --version             print the version\n"
         "      --help                print this\n"
         "\nverbs:");
    for (size_t i = 0; i < HG_COUNT_OF(verbs); i++) {
        printf("  %s%s%s\n", verbs[i].name, verbs[i].args[0] != '\0' ? " " : "", verbs[i].args);
        print_wrapped(verbs[i].text, 6);
    }
    puts("\noptions of verbs:");
    for (size_t i = 0; i < HG_CTL_OPTIONS; i++)
        print_option(&hg_ctl_option_rows[i]);
    printf("\n%s\n", exits);
}

/* "table query" is of the verb table. */
static bool is_of_verb(const char *list, const char *verb)
{
    char name[32];
    snprintf(name, sizeof name, "%s", verb);
    for (char *at = name; *at != '\0'; at++)
        if (*at == '-')
            *at = '_';
    size_t len = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, name, len) == 0 && strchr(" |", at[len]) != NULL)
            return true;
    }
    return false;
}

void hg_ctl_help_verb(const struct hg_ctl_verb *verb)
{
    bool any = false;
    bool sets = strcmp(verb->name, "set") == 0;
    printf("usage: headgatectl [OPTION...] %s%s%s\n\n", verb->name,
           verb->args[0] != '\0' ? " " : "", verb->args);
    print_wrapped(verb->text, 2);
    if (sets || strcmp(verb->name, "unset") == 0)
        hg_ctl_print_params(sets);
    for (size_t i = 0; i < HG_CTL_OPTIONS; i++) {
        if (!is_of_verb(hg_ctl_option_rows[i].verbs, verb->name))
            continue;
        if (!any)
            putchar('\n');
        any = true;
        print_option(&hg_ctl_option_rows[i]);
    }
    printf("\n%s\n", exits);
}

int hg_ctl_no_verb(const char *name)
{
    hg_ctl_say(HG_CTL_USAGE, "'%s' is no verb", name);
    fputs("try 'headgatectl --help'\n", stderr);
    return HG_CTL_USAGE;
}

int hg_ctl_help(struct hg_ctl *ctl)
{
    if (ctl->arg_count > 1)
        return hg_ctl_say(HG_CTL_USAGE, "help takes one verb, not '%s' too", ctl->args[1]);
    if (ctl->arg_count == 0) {
        hg_ctl_help_all();
        return HG_CTL_OK;
    }
    const struct hg_ctl_verb *verb = hg_ctl_verb_find(ctl->args[0]);
    if (verb == NULL)
        return hg_ctl_no_verb(ctl->args[0]);
    hg_ctl_help_verb(verb);
    return HG_CTL_OK;
}
