// main - headgatectl, the operator's tool: options, and which verb
// SPDX-License-Identifier: BSD-3-Clause
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/help.h"
#include "ctl/option.h"

enum {
    OPT_PASSWORD_FILE = 256,
    OPT_JSON,
    OPT_BUCKET,
    OPT_VERSION,
    OPT_TLS,
    OPT_TLS_CA,
    OPT_TLS_CERT,
    OPT_TLS_KEY,
    OPT_TLS_INSECURE,
    OPT_OF_VERB
};

static const struct option options[] = {
    {"server", required_argument, NULL, 's'},
    {"user", required_argument, NULL, 'u'},
    {"password-file", required_argument, NULL, OPT_PASSWORD_FILE},
    {"bucket", required_argument, NULL, 'b'},
    {"json", no_argument, NULL, OPT_JSON},
    {"tls", no_argument, NULL, OPT_TLS},
    {"tls-ca", required_argument, NULL, OPT_TLS_CA},
    {"tls-cert", required_argument, NULL, OPT_TLS_CERT},
    {"tls-key", required_argument, NULL, OPT_TLS_KEY},
    {"tls-insecure", no_argument, NULL, OPT_TLS_INSECURE},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, 'h'},
#define HG_CTL_OPTION(id, name, argument, ...)                                                     \
    {name, (argument) != NULL ? required_argument : no_argument, NULL,                             \
     OPT_OF_VERB + HG_CTL_OPT_##id},
#include "ctl/option.def"
#undef HG_CTL_OPTION
    {NULL, 0, NULL, 0},
};

/* Each of these asks for TLS, too. */
static void keep_tls(struct hg_ctl *ctl, int option, const char *value)
{
    ctl->tls = true;
    switch (option) {
    case OPT_TLS_CA:
        ctl->tls_ca = value;
        break;
    case OPT_TLS_CERT:
        ctl->tls_certificate = value;
        break;
    case OPT_TLS_KEY:
        ctl->tls_key = value;
        break;
    case OPT_TLS_INSECURE:
        ctl->tls_insecure = true;
        break;
    default:
        break;
    }
}

/* An exit code; -1 to go on. */
static int parse(int argc, char **argv, struct hg_ctl *ctl, bool *ret_help)
{
    int option;
    while ((option = getopt_long(argc, argv, "s:u:b:hd:", options, NULL)) != -1) {
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
        case OPT_TLS:
        case OPT_TLS_CA:
        case OPT_TLS_CERT:
        case OPT_TLS_KEY:
        case OPT_TLS_INSECURE:
            keep_tls(ctl, option, optarg);
            break;
        case OPT_VERSION:
            printf("headgatectl %s\n", PACKAGE_VERSION);
            return HG_CTL_OK;
        case 'h':
            *ret_help = true;
            break;
        default:
            if (option == 'd')
                option = OPT_OF_VERB + HG_CTL_OPT_INTERVAL;
            if (option < OPT_OF_VERB) {
                fputs("try 'headgatectl --help'\n", stderr);
                return HG_CTL_USAGE;
            }
            int code = hg_ctl_option_keep(ctl, (enum hg_ctl_option)(option - OPT_OF_VERB),
                                          optarg != NULL ? optarg : "");
            if (code != HG_CTL_OK)
                return code;
        }
    }
    return -1;
}

static int run(int argc, char **argv, struct hg_ctl *ctl)
{
    bool help = false;
    int code = parse(argc, argv, ctl, &help);
    if (code >= 0)
        return code;
    if (optind == argc && help) {
        hg_ctl_help_all();
        return HG_CTL_OK;
    }
    if (optind == argc) {
        hg_ctl_say(HG_CTL_USAGE, "no verb is given");
        fputs("try 'headgatectl --help'\n", stderr);
        return HG_CTL_USAGE;
    }
    const struct hg_ctl_verb *verb = hg_ctl_verb_find(argv[optind]);
    if (verb == NULL)
        return hg_ctl_no_verb(argv[optind]);
    if (help) {
        hg_ctl_help_verb(verb);
        return HG_CTL_OK;
    }
    if ((ctl->tls_certificate != NULL) != (ctl->tls_key != NULL))
        return hg_ctl_say(HG_CTL_USAGE, "%s goes with %s: certificate and key belong together",
                          ctl->tls_key == NULL ? "--tls-cert" : "--tls-key",
                          ctl->tls_key == NULL ? "--tls-key" : "--tls-cert");
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
    hg_ctl_password_free(ctl.password);
    if (fflush(stdout) != 0 || ferror(stdout))
        return hg_ctl_say(HG_CTL_USAGE, "cannot write the output");
    return code;
}
