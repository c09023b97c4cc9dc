// login - logging in by SCRAM, so that the password does not travel
// SPDX-License-Identifier: BSD-3-Clause
#include <gsasl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "proto/opcode.h"
#include "proto/status.h"

/* The server delays an address that failed before for up to 10 s. */
#define LOGIN_TIMEOUT_MS 15000

/* Is `name` one of the words of the list? */
static bool lists(struct hg_span list, const char *name)
{
    size_t at = 0, len = strlen(name);
    while (at < list.len) {
        const uint8_t *space = memchr(list.at + at, ' ', list.len - at);
        size_t end = space != NULL ? (size_t)(space - list.at) : list.len;
        if (end - at == len && memcmp(list.at + at, name, len) == 0)
            return true;
        at = end + 1;
    }
    return false;
}

/* An exit code; with *ret_mechanism the strongest that both sides know. */
static int choose(struct hg_ctl *ctl, const char **ret_mechanism)
{
    static const char *const ours[] = {"SCRAM-SHA-256", "SCRAM-SHA-1"};
    struct hg_ctl_request list = {.opcode = HG_OPCODE_SASL_LIST};
    struct hg_ctl_reply reply;
    int code = hg_ctl_ask(ctl, &list, &reply);
    if (code != HG_CTL_OK)
        return code;
    for (size_t i = 0; reply.status == HG_STATUS_SUCCESS && i < HG_COUNT_OF(ours); i++) {
        if (lists(reply.value, ours[i])) {
            *ret_mechanism = ours[i];
            return HG_CTL_OK;
        }
    }
    return hg_ctl_say(
        HG_CTL_LOGIN,
        "cannot log in as '%s': the server offers no SCRAM mechanism (it offers: %.*s)", ctl->user,
        reply.value.len > 0 ? (int)reply.value.len : 7,
        reply.value.len > 0 ? (const char *)reply.value.at : "nothing");
}

static int say_failed(struct hg_ctl *ctl, const struct hg_ctl_reply *reply)
{
    char what[300];
    snprintf(what, sizeof what, "cannot log in as '%s'", ctl->user);
    hg_ctl_refused(reply, what);
    return HG_CTL_LOGIN;
}

static int say_distrust(struct hg_ctl *ctl, const char *why)
{
    return hg_ctl_say(HG_CTL_LOGIN, "cannot log in as '%s': %s", ctl->user, why);
}

/* Messages in turn, until the server has said yes and proved that it knows the password too. */
static int converse(struct hg_ctl *ctl, Gsasl_session *sasl, const char *mechanism)
{
    struct hg_ctl_reply reply = {0};
    uint8_t opcode = HG_OPCODE_SASL_AUTH;
    for (int step = 0; step < 4; step++) {
        char *message = NULL;
        size_t len = 0;
        int rc = gsasl_step(sasl, (const char *)reply.value.at, reply.value.len, &message, &len);
        if (rc != GSASL_OK && rc != GSASL_NEEDS_MORE)
            return say_distrust(ctl, reply.status == HG_STATUS_SUCCESS && step > 1
                                         ? "the server does not know the password"
                                         : gsasl_strerror(rc));
        bool done = rc == GSASL_OK && step > 0;
        if (done && reply.status == HG_STATUS_SUCCESS) {
            gsasl_free(message);
            return HG_CTL_OK;
        }
        struct hg_ctl_request request = {
            .opcode = opcode, .key = hg_span_str(mechanism), .value = hg_span(message, len)};
        int code = hg_ctl_ask(ctl, &request, &reply);
        gsasl_free(message);
        if (code != HG_CTL_OK)
            return code;
        if (reply.status != HG_STATUS_SUCCESS && reply.status != HG_STATUS_AUTH_CONTINUE)
            return say_failed(ctl, &reply);
        if (done)
            return HG_CTL_OK;
        opcode = HG_OPCODE_SASL_STEP;
    }
    return say_distrust(ctl, "the server never ends");
}

static void wipe_password(Gsasl_session *sasl)
{
    char *text = (char *)(uintptr_t)gsasl_property_fast(sasl, GSASL_PASSWORD);
    if (text != NULL)
        explicit_bzero(text, strlen(text));
}

int hg_ctl_login(struct hg_ctl *ctl, const char *password)
{
    const char *mechanism = NULL;
    Gsasl *gsasl;
    Gsasl_session *sasl;
    hg_ctl_client_set_timeout(ctl->client, LOGIN_TIMEOUT_MS);
    int code = choose(ctl, &mechanism);
    if (code != HG_CTL_OK)
        return code;
    if (gsasl_init(&gsasl) != GSASL_OK)
        abort();
    int rc = gsasl_client_start(gsasl, mechanism, &sasl);
    if (rc == GSASL_OK) {
        rc = gsasl_property_set(sasl, GSASL_AUTHID, ctl->user);
        if (rc == GSASL_OK)
            rc = gsasl_property_set(sasl, GSASL_PASSWORD, password);
        code =
            rc == GSASL_OK ? converse(ctl, sasl, mechanism) : say_distrust(ctl, gsasl_strerror(rc));
        wipe_password(sasl);
        gsasl_finish(sasl);
    } else {
        code = say_distrust(ctl, gsasl_strerror(rc));
    }
    gsasl_done(gsasl);
    hg_ctl_client_set_timeout(ctl->client, HG_CTL_TIMEOUT_MS);
    return code;
}
