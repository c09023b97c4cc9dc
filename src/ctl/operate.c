// operate - the verbs that open and close: pause, resume and disable a tenant, drain the server
// SPDX-License-Identifier: BSD-3-Clause
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "ctl/command.h"
#include "ctl/option.h"
#include "proto/opcode.h"

/* ---- tenants ---- */

static int set_state(struct hg_ctl *ctl, const char *verb, const char *state)
{
    char path[HG_CTL_BUCKET_NAME_MAX + 32], what[HG_CTL_BUCKET_NAME_MAX + 32];
    if (ctl->arg_count != 1)
        return hg_ctl_say(HG_CTL_USAGE, "%s takes the name of one tenant", verb);
    const char *tenant = ctl->args[0];
    if (tenant[0] == '\0' || strlen(tenant) > HG_CTL_BUCKET_NAME_MAX)
        return hg_ctl_say(HG_CTL_USAGE, "'%s' is no tenant's name (accepted: 1 to %d bytes)",
                          tenant, HG_CTL_BUCKET_NAME_MAX);
    snprintf(path, sizeof path, "tenant.%s.state", tenant);
    snprintf(what, sizeof what, "%s '%s'", verb, tenant);
    struct hg_ctl_request request = {
        .opcode = HG_OPCODE_SET_PARAM, .key = hg_span_str(path), .value = hg_span_str(state)};
    int code = hg_ctl_connect(ctl);
    if (code == HG_CTL_OK)
        code = hg_ctl_command(ctl, &request, what);
    if (code == HG_CTL_OK && ctl->json)
        code = hg_ctl_json_print(json_pack(
            "{s:o, s:s}", "tenant", hg_ctl_json_text(tenant, strlen(tenant)), "state", state));
    return code;
}

int hg_ctl_pause(struct hg_ctl *ctl)
{
    return set_state(ctl, "pause", "paused");
}

int hg_ctl_resume(struct hg_ctl *ctl)
{
    return set_state(ctl, "resume", "active");
}

int hg_ctl_disable(struct hg_ctl *ctl)
{
    return set_state(ctl, "disable", "disabled");
}

/* ---- drain ---- */

#define POLL_MS         50
#define MARGIN_S        3  /* on top of the time that the server gives itself */
#define DRAIN_UNKNOWN_S 60 /* when it does not say how long that is */

static void sleep_ms(long ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* The process that answers, as it calls itself; malloc'd, or NULL. */
static char *pid_of(struct hg_ctl *ctl)
{
    struct hg_ctl_rows rows = {NULL, 0, 0};
    char *refused = NULL, *pid = NULL;
    if (hg_ctl_fetch(ctl, "", &rows, &refused) == HG_CTL_OK) {
        const char *found = hg_ctl_rows_find(&rows, "pid");
        pid = found != NULL ? strdup(found) : NULL;
    }
    free(refused);
    hg_ctl_rows_free(&rows);
    return pid;
}

/* How long the server may take, in seconds. */
static unsigned long bound_of(struct hg_ctl *ctl)
{
    struct hg_ctl_rows rows = {NULL, 0, 0};
    char *refused = NULL;
    const char *found = NULL;
    if (hg_ctl_fetch(ctl, "settings", &rows, &refused) == HG_CTL_OK)
        found = hg_ctl_rows_find(&rows, "drain_timeout_s");
    unsigned long bound_s = found != NULL ? strtoul(found, NULL, 10) : DRAIN_UNKNOWN_S;
    free(refused);
    hg_ctl_rows_free(&rows);
    return bound_s + MARGIN_S;
}

static bool is_here(const char *server)
{
    static const char *const heads[] = {"unix:", "/", "127.", "localhost", "[::1]"};
    for (size_t i = 0; server != NULL && i < HG_COUNT_OF(heads); i++)
        if (strncmp(server, heads[i], strlen(heads[i])) == 0)
            return true;
    return server == NULL;
}

/* The process itself, if it is one of this machine: a descriptor that can be read when it has
   ended; -1: it cannot be watched. A server that drains accepts nobody long before that. */
static int watch_process(const struct hg_ctl *ctl, const char *pid)
{
    char path[64], name[32] = "";
    if (pid == NULL || !is_here(ctl->server) || strspn(pid, "0123456789") != strlen(pid))
        return -1;
    int process = pidfd_open((pid_t)strtol(pid, NULL, 10), 0);
    if (process < 0)
        return -1;
    snprintf(path, sizeof path, "/proc/%.20s/comm", pid);
    FILE *from = fopen(path, "re");
    bool known =
        from != NULL && fgets(name, sizeof name, from) != NULL && strcmp(name, "headgate\n") == 0;
    if (from != NULL)
        fclose(from);
    if (known)
        return process;
    close(process); /* of this number in another container */
    return -1;
}

static bool has_ended(int process)
{
    struct pollfd p = {process, POLLIN, 0};
    return process < 0 || poll(&p, 1, 0) > 0;
}

/* Has it gone? Nobody answers at its address, or another process does. */
static bool is_gone(struct hg_ctl *ctl, const char *pid)
{
    char said[512];
    hg_ctl_client_free(ctl->client);
    ctl->client = NULL;
    hg_ctl_say_into(said, sizeof said);
    int code = hg_ctl_connect(ctl);
    char *now = code == HG_CTL_OK ? pid_of(ctl) : NULL;
    hg_ctl_say_into(NULL, 0);
    bool gone = code == HG_CTL_LOST || (now != NULL && pid != NULL && strcmp(now, pid) != 0);
    free(now);
    return gone;
}

static int wait_until_gone(struct hg_ctl *ctl, const char *pid, int process, unsigned long bound_s)
{
    uint64_t until_us = hg_now_us() + (uint64_t)bound_s * 1000000;
    while (!has_ended(process) || !is_gone(ctl, pid)) {
        if (hg_now_us() >= until_us)
            return hg_ctl_say(HG_CTL_REFUSED, "drain: the server is still there after %lu s",
                              bound_s);
        sleep_ms(POLL_MS);
    }
    return HG_CTL_OK;
}

int hg_ctl_drain(struct hg_ctl *ctl)
{
    bool wait = hg_ctl_option_is(ctl, HG_CTL_OPT_WAIT);
    struct hg_ctl_request request = {.opcode = HG_OPCODE_SET_PARAM,
                                     .key = HG_SPAN_LIT("server.drain"),
                                     .value = HG_SPAN_LIT("true")};
    if (ctl->arg_count > 0)
        return hg_ctl_say(HG_CTL_USAGE, "drain takes no argument, not '%s'", ctl->args[0]);
    ctl->keeps_password = wait;
    int code = hg_ctl_connect(ctl);
    if (code != HG_CTL_OK)
        return code;
    char *pid = wait ? pid_of(ctl) : NULL;
    int process = wait ? watch_process(ctl, pid) : -1;
    unsigned long bound_s = wait ? bound_of(ctl) : 0;
    code = hg_ctl_command(ctl, &request, "drain");
    if (code == HG_CTL_OK && wait)
        code = wait_until_gone(ctl, pid, process, bound_s);
    if (code == HG_CTL_OK && ctl->json)
        code = hg_ctl_json_print(json_pack("{s:b, s:b}", "drain", true, "gone", wait));
    if (process >= 0)
        close(process);
    free(pid);
    return code;
}
