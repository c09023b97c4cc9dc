// manage - the verbs about whole tenants: create, delete
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/command.h"
#include "proto/opcode.h"

/* ---- create and delete ---- */

/* How an option's value is written in JSON, by its type in the configuration. */
enum form { FORM_TEXT, FORM_NUMBER, FORM_BOOL, FORM_JSON };
enum {
    FORM_OF_TEXT = FORM_TEXT,
    FORM_OF_NAME = FORM_TEXT,
    FORM_OF_SECRET = FORM_TEXT,
    FORM_OF_TENANT_STATE = FORM_TEXT,
    FORM_OF_CREDIT_MODE = FORM_TEXT,
    FORM_OF_HOTKEY_MODE = FORM_TEXT,
    FORM_OF_HOTKEY_CONTROL = FORM_TEXT,
    FORM_OF_TICKET_MODE = FORM_TEXT,
    FORM_OF_FAIR_BY = FORM_TEXT,
    FORM_OF_BIND_MODE = FORM_TEXT,
    FORM_OF_REJECT_STATUS = FORM_TEXT,
    FORM_OF_NUMBER = FORM_NUMBER,
    FORM_OF_UNITS = FORM_NUMBER,
    FORM_OF_BOOL = FORM_BOOL,
    FORM_OF_FAMILIES = FORM_JSON,
};

static const struct tenant_option {
    const char *name;
    enum form form;
} tenant_options[] = {
#define HG_TENANT(name, type, ...) {#name, (enum form)FORM_OF_##type},
#include "app/conf.def"
};

/* The name is an argument by itself, and which files it reads nobody tells a running server. */
static bool is_settable(const struct tenant_option *option)
{
    return strcmp(option->name, "name") != 0 && strcmp(option->name, "backend_password_file") != 0;
}

static int say_unknown(const char *name)
{
    char list[600] = "";
    for (size_t i = 0; i < HG_COUNT_OF(tenant_options); i++) {
        if (!is_settable(&tenant_options[i]))
            continue;
        strncat(list, list[0] != '\0' ? ", " : "", sizeof list - strlen(list) - 1);
        strncat(list, tenant_options[i].name, sizeof list - strlen(list) - 1);
    }
    return hg_ctl_say(HG_CTL_USAGE, "'%s' is no option of a bucket (accepted: %s)", name, list);
}

static json_t *value_of(enum form form, const char *value)
{
    size_t len = strlen(value);
    if (form == FORM_BOOL && (strcmp(value, "true") == 0 || strcmp(value, "false") == 0))
        return json_boolean(value[0] == 't');
    json_t *list = form == FORM_JSON ? json_loadb(value, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (list != NULL)
        return list; /* what is no JSON goes as a text, and the server says what it takes */
    return form == FORM_NUMBER ? hg_ctl_json_of(value, len) : hg_ctl_json_text(value, len);
}

static int parse_options(struct hg_ctl *ctl, json_t *settings)
{
    char *name, *value;
    for (int i = 2; i < ctl->arg_count; i++) {
        const struct tenant_option *option = NULL;
        if (!hg_ctl_cut(ctl->args[i], &name, &value))
            return hg_ctl_say(HG_CTL_USAGE, "'%s' is not OPTION=VALUE", ctl->args[i]);
        for (size_t o = 0; o < HG_COUNT_OF(tenant_options); o++)
            if (strcmp(name, tenant_options[o].name) == 0 && is_settable(&tenant_options[o]))
                option = &tenant_options[o];
        if (option == NULL)
            return say_unknown(name);
        if (json_object_get(settings, name) != NULL)
            return hg_ctl_say(HG_CTL_USAGE, "%s is given twice", name);
        json_object_set_new(settings, name, value_of(option->form, value));
    }
    return HG_CTL_OK;
}

int hg_ctl_create(struct hg_ctl *ctl)
{
    if (!hg_ctl_is_of(ctl, "bucket"))
        return hg_ctl_say(HG_CTL_USAGE, "create takes 'bucket'");
    const char *bucket = hg_ctl_bucket_name(ctl, "create");
    if (bucket == NULL)
        return HG_CTL_USAGE;
    json_t *settings = json_object();
    int code = parse_options(ctl, settings);
    if (code == HG_CTL_OK)
        code = hg_ctl_connect(ctl);
    if (code == HG_CTL_OK)
        return hg_ctl_command_json(ctl, HG_OPCODE_CREATE_BUCKET, "create", bucket, settings);
    json_decref(settings);
    return code;
}

int hg_ctl_delete(struct hg_ctl *ctl)
{
    if (!hg_ctl_is_of(ctl, "bucket"))
        return hg_ctl_say(HG_CTL_USAGE, "delete takes 'bucket'");
    const char *bucket = hg_ctl_bucket_name(ctl, "delete");
    struct hg_ctl_request request = {.opcode = HG_OPCODE_DELETE_BUCKET};
    if (bucket == NULL)
        return HG_CTL_USAGE;
    if (ctl->arg_count > 2)
        return hg_ctl_say(HG_CTL_USAGE, "delete bucket takes one name, not '%s' too", ctl->args[2]);
    int code = hg_ctl_connect(ctl);
    return code != HG_CTL_OK ? code : hg_ctl_command_on_bucket(ctl, &request, "delete", bucket);
}
