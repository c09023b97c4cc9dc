// watch - what is shown again and again
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/watch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOKS_AN_EPOCH 8       /* for its end */
#define LOOK_MIN_US    20000   /* an epoch is 100 ms at least */
#define EPOCH_US       1000000 /* when the server does not say how long one is */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    hg_ctl_client_stop_on(&interrupted);
}

static void pause_for(uint64_t us)
{
    const struct timespec time = {(time_t)(us / 1000000), (long)(us % 1000000 * 1000)};
    if (interrupted == 0)
        nanosleep(&time, NULL); /* a signal ends it */
}

struct epoch {
    bool known; /* who may not see the engine's statistics does not know */
    unsigned long long last, length_us;
};

static int ask_epoch(struct hg_ctl *ctl, struct epoch *ret)
{
    struct hg_ctl_rows rows = {NULL, 0, 0};
    char *refused = NULL;
    int code = hg_ctl_fetch(ctl, "hotkey_engine", &rows, &refused);
    const char *last = hg_ctl_rows_find(&rows, "last_epoch");
    const char *length = hg_ctl_rows_find(&rows, "epoch_ms");
    *ret = (struct epoch){code == HG_CTL_OK && last != NULL && length != NULL, 0, EPOCH_US};
    if (ret->known) {
        ret->last = strtoull(last, NULL, 10);
        ret->length_us = strtoull(length, NULL, 10) * 1000;
    }
    hg_ctl_rows_free(&rows);
    free(refused);
    return code == HG_CTL_REFUSED ? HG_CTL_OK : code;
}

/* Until the epoch is another one. */
static int wait_for_epoch(struct hg_ctl *ctl, const struct epoch *seen)
{
    struct epoch now = *seen;
    uint64_t step_us = seen->length_us / LOOKS_AN_EPOCH;
    if (!seen->known) {
        pause_for(seen->length_us);
        return HG_CTL_OK;
    }
    while (interrupted == 0 && now.last == seen->last) {
        pause_for(step_us > LOOK_MIN_US ? step_us : LOOK_MIN_US);
        int code = interrupted == 0 ? ask_epoch(ctl, &now) : HG_CTL_OK;
        if (code != HG_CTL_OK)
            return code;
    }
    return HG_CTL_OK;
}

static int again(struct hg_ctl *ctl, uint64_t interval_us, bool clears,
                 int (*show)(struct hg_ctl *ctl, void *ctx), void *ctx)
{
    char said[512] = "";
    struct epoch epoch = {0};
    int code = HG_CTL_OK;
    catch_signals();
    hg_ctl_say_into(said, sizeof said); /* an interrupted question is no fault */
    while (interrupted == 0 && code == HG_CTL_OK) {
        if (interval_us == 0)
            code = ask_epoch(ctl, &epoch);
        if (code == HG_CTL_OK && clears)
            fputs("\033[H\033[2J", stdout);
        if (code == HG_CTL_OK)
            code = show(ctl, ctx);
        fflush(stdout);
        if (ferror(stdout))
            break; /* whoever read it has gone */
        if (code == HG_CTL_OK && interval_us != 0)
            pause_for(interval_us);
        else if (code == HG_CTL_OK)
            code = wait_for_epoch(ctl, &epoch);
    }
    hg_ctl_say_into(NULL, 0);
    if (interrupted != 0)
        return HG_CTL_OK;
    return code == HG_CTL_OK ? code : hg_ctl_say(code, "%s", said);
}

int hg_ctl_watch(struct hg_ctl *ctl, uint64_t interval_us,
                 int (*show)(struct hg_ctl *ctl, void *ctx), void *ctx)
{
    const char *term = getenv("TERM");
    bool clears = !ctl->json && isatty(STDOUT_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
    return again(ctl, interval_us, clears, show, ctx);
}

int hg_ctl_follow(struct hg_ctl *ctl, uint64_t interval_us,
                  int (*show)(struct hg_ctl *ctl, void *ctx), void *ctx)
{
    return again(ctl, interval_us, false, show, ctx);
}
