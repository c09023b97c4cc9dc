// headgate - the server: parse, set up in order, run, tear down in reverse
// SPDX-License-Identifier: BSD-3-Clause
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/metrics.h"
#include "app/process.h"
#include "app/restore.h"
#include "app/uptlsconf.h"

#define LISTEN_MAX 64

static const char usage[] =
    "usage: headgate [-c FILE] [-l ADDR]... [-d DATA_DIR] [-t THREADS] [-a ADDR] [--insecure]\n"
    "                [--take-over]\n"
    "       headgate --check [-c FILE]\n"
    "       headgate --restore FILE [-c FILE] [-d DATA_DIR] [--upstream NAME] [--force]\n"
    "       headgate --describe-config | --sample-config | --describe-stats | --describe-metrics\n"
    "       headgate --version | --help\n"
    "\n"
    "  -c, --config FILE      configuration (YAML); without one: 127.0.0.1:11211 and an embedded "
    "store\n"
    "  -l, --listen ADDR      listen here instead: HOST:PORT, [IPV6]:PORT, unix:PATH (repeatable)\n"
    "  -d, --data-dir DIR     directory of the embedded stores and the state file\n"
    "  -t, --threads N        worker threads, 0 = one for each core\n"
    "  -a, --admin ADDR       serve metrics, health and the dashboard over HTTP there: HOST:PORT\n"
    "      --insecure         allow listeners beyond this machine without a users file\n"
    "      --take-over        get the listening sockets from the headgate that runs on this "
    "data_dir,\n"
    "                         which then ends; without one start as usual\n"
    "      --check            check the configuration, print what is wrong, and end\n"
    "      --restore FILE     put a backup in the place of an embedded store, and end\n"
    "      --upstream NAME    which one; needed where several are embedded\n"
    "      --force            replace the store that is there\n"
    "      --describe-config  print every option with its range and default\n"
    "      --sample-config    print the sample configuration file\n"
    "      --describe-stats   print every statistic\n"
    "      --describe-metrics print every metric with its type and labels\n"
    "      --version          print the version\n"
    "      --help             print this\n";

enum {
    OPT_CHECK = 256,
    OPT_DESCRIBE_CONFIG,
    OPT_SAMPLE,
    OPT_DESCRIBE_STATS,
    OPT_DESCRIBE_METRICS,
    OPT_INSECURE,
    OPT_RESTORE,
    OPT_UPSTREAM,
    OPT_FORCE,
    OPT_TAKE_OVER
};

static const struct option options[] = {
    {"config", required_argument, NULL, 'c'},
    {"listen", required_argument, NULL, 'l'},
    {"data-dir", required_argument, NULL, 'd'},
    {"threads", required_argument, NULL, 't'},
    {"admin", required_argument, NULL, 'a'},
    {"insecure", no_argument, NULL, OPT_INSECURE},
    {"take-over", no_argument, NULL, OPT_TAKE_OVER},
    {"check", no_argument, NULL, OPT_CHECK},
    {"restore", required_argument, NULL, OPT_RESTORE},
    {"upstream", required_argument, NULL, OPT_UPSTREAM},
    {"force", no_argument, NULL, OPT_FORCE},
    {"describe-config", no_argument, NULL, OPT_DESCRIBE_CONFIG},
    {"sample-config", no_argument, NULL, OPT_SAMPLE},
    {"describe-stats", no_argument, NULL, OPT_DESCRIBE_STATS},
    {"describe-metrics", no_argument, NULL, OPT_DESCRIBE_METRICS},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct command_line {
    const char *conf_path;
    const char *listen[LISTEN_MAX];
    struct hg_conf_overrides overrides;
    struct hg_restore restore;
    bool take_over;
    int print; /* one of OPT_..., 'V', 'h', or 0: run */
};

/* An option that says what to do instead of serving, by what getopt_long returned for it. */
static const char *name_of(int mode)
{
    for (const struct option *option = options; option->name != NULL; option++)
        if (option->val == mode)
            return option->name;
    return "";
}

/* Keeps what to do; 0, or 2 if it is to do something else already. */
static int keep_mode(struct command_line *line, int mode)
{
    if (line->print == 'h' || line->print == 'V')
        return 0; /* whoever asks for these gets them */
    if (line->print != 0 && line->print != mode && mode != 'h' && mode != 'V') {
        fprintf(stderr, "headgate: --%s and --%s exclude each other\n", name_of(line->print),
                name_of(mode));
        return 2;
    }
    line->print = mode;
    return 0;
}

/* 0, or 2 for wrong usage. */
static int parse(int argc, char **argv, struct command_line *line)
{
    int option;
    line->overrides.listen = line->listen;
    while ((option = getopt_long(argc, argv, "c:l:d:t:a:", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            line->conf_path = optarg;
            break;
        case 'l':
            if (line->overrides.listen_count == LISTEN_MAX) {
                fprintf(stderr, "headgate: too many -l (accepted: %d)\n", LISTEN_MAX);
                return 2;
            }
            line->listen[line->overrides.listen_count++] = optarg;
            break;
        case 'd':
            line->overrides.data_dir = optarg;
            break;
        case 't':
            line->overrides.threads = optarg;
            break;
        case 'a':
            line->overrides.admin = optarg;
            break;
        case OPT_INSECURE:
            line->overrides.insecure = true;
            break;
        case OPT_RESTORE:
            line->restore.from = optarg;
            if (keep_mode(line, option) != 0)
                return 2;
            break;
        case OPT_UPSTREAM:
            line->restore.upstream = optarg;
            break;
        case OPT_FORCE:
            line->restore.force = true;
            break;
        case OPT_TAKE_OVER:
            line->take_over = true;
            break;
        case '?':
            fputs(usage, stderr);
            return 2;
        default:
            if (keep_mode(line, option) != 0)
                return 2;
            break;
        }
    }
    if (line->take_over && keep_mode(line, OPT_TAKE_OVER) != 0)
        return 2;
    if (line->print != OPT_RESTORE && line->print != 'h' && line->print != 'V' &&
        (line->restore.upstream != NULL || line->restore.force)) {
        fputs("headgate: --upstream and --force go with --restore\n", stderr);
        return 2;
    }
    if (optind < argc) {
        fprintf(stderr, "headgate: unexpected argument '%s'\n%s", argv[optind], usage);
        return 2;
    }
    return 0;
}

static int check(const struct command_line *line)
{
    struct hg_conf *conf = NULL;
    struct hg_conf_errors errs;
    hg_conf_errors_init(&errs);
    int rc = hg_conf_load(line->conf_path, &line->overrides, &conf, &errs);
    struct hg_users *users = NULL;
    if (rc == 0)
        rc = hg_users_load_for(conf, &users, &errs);
    hg_users_free(users);
    hg_conf_errors_print(&errs, stderr);
    if (rc == 0) {
        struct hg_tlsset *tls = NULL;
        char why[512];
        rc = hg_tlsset_load(conf, &tls, why);
        if (rc == 0)
            rc = hg_uptlsconf_try(conf, why);
        if (rc != 0)
            fprintf(stderr, "headgate: %s\n", why);
        hg_tlsset_free(tls);
    }
    if (rc == 0)
        hg_conf_compat_print(conf, stdout);
    if (rc == 0)
        printf("%s: fine\n", line->conf_path != NULL ? line->conf_path : "built-in configuration");
    hg_conf_errors_fini(&errs);
    hg_conf_free(conf);
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct command_line line = {0};
    int rc = parse(argc, argv, &line);
    if (rc != 0)
        return rc;
    switch (line.print) {
    case 0:
    case OPT_TAKE_OVER:
        return hg_process_run(
            &(struct hg_process_options){line.conf_path, line.overrides, line.take_over, argv});
    case OPT_CHECK:
        return check(&line);
    case OPT_RESTORE:
        return hg_restore_run(line.conf_path, &line.overrides, &line.restore);
    case OPT_DESCRIBE_CONFIG:
        hg_conf_describe(stdout);
        break;
    case OPT_SAMPLE:
        hg_conf_sample(stdout);
        break;
    case OPT_DESCRIBE_STATS:
        hg_stats_describe(stdout);
        break;
    case OPT_DESCRIBE_METRICS:
        hg_metrics_describe(stdout);
        break;
    case 'V':
        printf("headgate %s\n", PACKAGE_VERSION);
        break;
    default:
        fputs(usage, stdout);
        break;
    }
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
