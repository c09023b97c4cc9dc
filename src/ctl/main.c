// main - headgatectl, the operator's tool: options, and which verb
// SPDX-License-Identifier: BSD-3-Clause
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/option.h"

static const struct verb {
    const char *name;
    int (*run)(struct hg_ctl *ctl);
    const char *args, *text;
} verbs[] = {
#define HG_CTL_VERB(name, run, args, text) {name, run, args, text},
#include "ctl/verb.def"
#undef HG_CTL_VERB
};

enum { OPT_PASSWORD_FILE = 256, OPT_JSON, OPT_BUCKET, OPT_VERSION, OPT_OF_VERB };

static const struct option options[] = {
    {"server", required_argument, NULL, 's'},
    {"user", required_argument, NULL, 'u'},
    {"password-file", required_argument, NULL, OPT_PASSWORD_FILE},
    {"bucket", required_argument, NULL, 'b'},
    {"json", no_argument, NULL, OPT_JSON},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, 'h'},
#define HG_CTL_OPTION(id, name, argument, ...)                                                     \
    {name, (argument) != NULL ? required_argument : no_argument, NULL,                             \
     OPT_OF_VERB + HG_CTL_OPT_##id},
#include "ctl/option.def"
#undef HG_CTL_OPTION
    {NULL, 0, NULL, 0},
};

/* The text cut into lines of at most 72 characters, each behind `indent` blanks. */
static void print_wrapped(const char *text, int indent)
{
    while (*text != '\0') {
        size_t len = strlen(text);
        if (len > 72) {
            len = 72;
            while (len > 0 && text[len] != ' ')
                len--;
        }
        printf("%*s%.*s\n", indent, "", (int)len, text);
        text += len;
        text += strspn(text, " ");
    }
}

static void print_help(void)
{
    puts("usage: headgatectl [-s ADDR] [-u USER] [--password-file FILE] [--json] VERB ...\n"
         "\n"
         "  -s, --server ADDR         HOST:PORT, [IPV6]:PORT or unix:PATH (127.0.0.1:11211)\n"
         "  -u, --user USER           log in, by SCRAM\n"
         "      --password-file FILE  the password is its first line (- for standard input);\n"
         "                            without it: the variable HEADGATE_PASSWORD, or a prompt\n"
         "  -b, --bucket NAME         select a bucket (where, stats, table, hbase)\n"
         "      --json                print JSON\n"
         "      --version             print the version\n"
         "      --help                print this\n"
         "\nverbs:");
    for (size_t i = 0; i < HG_COUNT_OF(verbs); i++) {
        printf("  %s%s%s\n", verbs[i].name, verbs[i].args[0] != '\0' ? " " : "", verbs[i].args);
        print_wrapped(verbs[i].text, 6);
    }
    puts("\noptions of verbs:");
    for (size_t i = 0; i < HG_CTL_OPTIONS; i++) {
        const struct hg_ctl_option_row *row = &hg_ctl_option_rows[i];
        printf("  --%s%s%s\n", row->name, row->argument != NULL ? " " : "",
               row->argument != NULL ? row->argument : "");
        print_wrapped(row->text, 6);
    }
    puts("\nexit status: 0 done, 1 refused by the server, 2 wrong usage or an unreadable file,\n"
         "3 no connection, or lost, 4 the login failed");
}

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < HG_COUNT_OF(verbs); i++)
        if (strcmp(name, verbs[i].name) == 0)
            return &verbs[i];
    return NULL;
}

/* An exit code; -1 to go on. */
static int parse(int argc, char **argv, struct hg_ctl *ctl)
{
    int option;
    while ((option = getopt_long(argc, argv, "s:u:b:h", options, NULL)) != -1) {
        switch (option) {
        case 's':
            ctl->server = optarg;
            break;
        case 'u':
            ctl->user = optarg;
            break;
        case 'b':
            ctl->bucket = optarg;
            break;
        case OPT_PASSWORD_FILE:
            ctl->password_file = optarg;
            break;
        case OPT_JSON:
            ctl->json = true;
            break;
        case OPT_VERSION:
            printf("headgatectl %s\n", PACKAGE_VERSION);
            return HG_CTL_OK;
        case 'h':
            print_help();
            return HG_CTL_OK;
        default:
            if (option >= OPT_OF_VERB) {
                int code = hg_ctl_option_keep(ctl, (enum hg_ctl_option)(option - OPT_OF_VERB),
                                              optarg != NULL ? optarg : "");
                if (code != HG_CTL_OK)
                    return code;
                break;
            }
            fputs("try 'headgatectl --help'\n", stderr);
            return HG_CTL_USAGE;
        }
    }
    return -1;
}

static int run(int argc, char **argv, struct hg_ctl *ctl)
{
    int code = parse(argc, argv, ctl);
    if (code >= 0)
        return code;
    if (optind == argc) {
        hg_ctl_say(HG_CTL_USAGE, "no verb is given");
        fputs("try 'headgatectl --help'\n", stderr);
        return HG_CTL_USAGE;
    }
    const struct verb *verb = find_verb(argv[optind]);
    if (verb == NULL) {
        hg_ctl_say(HG_CTL_USAGE, "'%s' is no verb", argv[optind]);
        fputs("try 'headgatectl --help'\n", stderr);
        return HG_CTL_USAGE;
    }
    ctl->args = argv + optind + 1;
    ctl->arg_count = argc - optind - 1;
    code = hg_ctl_option_check(ctl, verb->name);
    if (code != HG_CTL_OK)
        return code;
    if (verb->args[0] == '\0' && ctl->arg_count > 0)
        return hg_ctl_say(HG_CTL_USAGE, "%s takes no argument, not '%s'", verb->name, ctl->args[0]);
    return verb->run(ctl);
}

int main(int argc, char **argv)
{
    struct hg_ctl ctl = {0};
    int code = run(argc, argv, &ctl);
    hg_ctl_client_free(ctl.client);
    if (fflush(stdout) != 0 || ferror(stdout))
        return hg_ctl_say(HG_CTL_USAGE, "cannot write the output");
    return code;
}
