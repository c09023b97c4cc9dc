// command - requests that change something: obeyed, or refused with a message
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/status.h"

int hg_ctl_command(struct hg_ctl *ctl, const struct hg_ctl_request *request, const char *what)
{
    struct hg_ctl_reply reply;
    int code = hg_ctl_ask(ctl, request, &reply);
    if (code == HG_CTL_OK && reply.status != HG_STATUS_SUCCESS)
        return hg_ctl_refused(&reply, what);
    return code;
}

int hg_ctl_command_on_bucket(struct hg_ctl *ctl, struct hg_ctl_request *request, const char *verb,
                             const char *bucket)
{
    char what[200];
    request->key = hg_span_str(bucket);
    snprintf(what, sizeof what, "%s bucket '%s'", verb, bucket);
    return hg_ctl_command(ctl, request, what);
}

int hg_ctl_command_json(struct hg_ctl *ctl, uint8_t opcode, const char *verb, const char *bucket,
                        json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT);
    if (text == NULL)
        abort();
    struct hg_ctl_request request = {.opcode = opcode, .value = hg_span_str(text)};
    int code = bucket != NULL ? hg_ctl_command_on_bucket(ctl, &request, verb, bucket)
                              : hg_ctl_command(ctl, &request, verb);
    free(text);
    json_decref(json);
    return code;
}

bool hg_ctl_is_of(const struct hg_ctl *ctl, const char *word)
{
    return ctl->arg_count > 0 && strcmp(ctl->args[0], word) == 0;
}

bool hg_ctl_cut(char *arg, char **ret_name, char **ret_value)
{
    char *equals = strchr(arg, '=');
    if (equals == NULL || equals == arg)
        return false;
    *equals = '\0';
    *ret_name = arg;
    *ret_value = equals + 1;
    return true;
}

const char *hg_ctl_bucket_name(const struct hg_ctl *ctl, const char *verb)
{
    if (ctl->arg_count < 2) {
        hg_ctl_say(HG_CTL_USAGE, "%s bucket takes the name of a bucket", verb);
        return NULL;
    }
    size_t len = strlen(ctl->args[1]);
    if (len == 0 || len > HG_CTL_BUCKET_NAME_MAX) {
        hg_ctl_say(HG_CTL_USAGE, "'%s' is no bucket's name (accepted: 1 to %d bytes)", ctl->args[1],
                   HG_CTL_BUCKET_NAME_MAX);
        return NULL;
    }
    return ctl->args[1];
}
