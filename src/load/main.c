// main - headgate-load: parse, connect, load, report
// SPDX-License-Identifier: BSD-3-Clause
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "load/options.h"
#include "load/report.h"
#include "load/run.h"

enum {
    EXIT_FINE = 0,
    EXIT_TROUBLE = 1,
    EXIT_USAGE = 2,
};

static volatile sig_atomic_t stop_asked;

/* The first signal ends the measured part early, the second the process. */
static void on_signal(int number)
{
    (void)number;
    stop_asked = 1;
}

static void watch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv)
{
    static struct hg_load_options options;
    static struct hg_load_run run;
    enum hg_load_parsed parsed = hg_load_options_init(&options, argc, argv);
    if (parsed != HG_LOAD_RUN) {
        hg_load_options_fini(&options);
        return parsed == HG_LOAD_SHOWN ? EXIT_FINE : EXIT_USAGE;
    }
    int status = EXIT_TROUBLE;
    if (hg_load_run_init(&run, &options, &stop_asked)) {
        watch_signals();
        if (!hg_load_run_go(&run)) {
            _exit(EXIT_TROUBLE);
        }
        status = hg_load_report_finish(run.report) ? EXIT_FINE : EXIT_TROUBLE;
    }
    hg_load_run_fini(&run);
    hg_load_options_fini(&options);
    return status;
}
