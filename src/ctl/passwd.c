// passwd - the secrets of a user, made here, for users.yaml
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/password.h"
#include "app/secret.h"
#include "ctl/ctl.h"

#define NAME_MAX_BYTES 128

/* The strongest first, as clients should see them. */
static const enum hg_secret_hash hashes[] = {HG_SECRET_SHA_256, HG_SECRET_SHA_1};

static int make(const char *password, char texts[2][HG_SECRET_TEXT_MAX])
{
    size_t len = 0;
    char *prepared = hg_password_prepare(password, strlen(password), &len);
    if (prepared == NULL)
        abort();
    int rc = 0;
    for (size_t i = 0; i < HG_COUNT_OF(hashes) && rc == 0; i++) {
        struct hg_secret secret;
        rc = hg_secret_make(hashes[i], prepared, len, &secret);
        if (rc == 0)
            hg_secret_encode(&secret, texts[i]);
        explicit_bzero(&secret, sizeof secret);
    }
    hg_password_free(prepared, len);
    return rc == 0 ? HG_CTL_OK : hg_ctl_say(HG_CTL_USAGE, "cannot derive the keys: no randomness");
}

/* A name in YAML's double quotes, which are JSON's. */
static void print_name(const char *name)
{
    json_t *text = json_string(name);
    char *quoted = json_dumps(text, JSON_ENCODE_ANY);
    printf("  - name: %s\n", quoted);
    free(quoted);
    json_decref(text);
}

static void print_yaml(const char *name, char texts[2][HG_SECRET_TEXT_MAX])
{
    const char *indent = name != NULL ? "    " : "";
    if (name != NULL)
        print_name(name);
    printf("%ssecrets:\n", indent);
    for (size_t i = 0; i < HG_COUNT_OF(hashes); i++)
        printf("%s  - \"%s\"\n", indent, texts[i]);
}

static int print_json(const char *name, char texts[2][HG_SECRET_TEXT_MAX])
{
    json_t *secrets = json_pack("[s,s]", texts[0], texts[1]);
    json_t *user = json_object();
    if (name != NULL)
        json_object_set_new(user, "name", json_string(name));
    json_object_set_new(user, "secrets", secrets);
    return hg_ctl_json_print(user);
}

static int check_name(const char *name)
{
    json_t *text = json_string(name);
    json_decref(text);
    if (text == NULL || name[0] == '\0' || strlen(name) > NAME_MAX_BYTES)
        return hg_ctl_say(HG_CTL_USAGE, "a user's name is 1 to %d bytes of UTF-8", NAME_MAX_BYTES);
    return HG_CTL_OK;
}

int hg_ctl_passwd(struct hg_ctl *ctl)
{
    char texts[2][HG_SECRET_TEXT_MAX], question[200];
    const char *name = ctl->arg_count > 0 ? ctl->args[0] : NULL;
    struct hg_ctl_prompt prompt = {.text = question, .twice = true, .from_input = true};
    char *password = NULL;
    if (ctl->arg_count > 1)
        return hg_ctl_say(HG_CTL_USAGE, "passwd takes one name, not '%s' too", ctl->args[1]);
    int code = name != NULL ? check_name(name) : HG_CTL_OK;
    if (code != HG_CTL_OK)
        return code;
    snprintf(question, sizeof question, "New password%s%s: ", name != NULL ? " of " : "",
             name != NULL ? name : "");
    code = hg_ctl_password(ctl, &prompt, &password);
    if (code == HG_CTL_OK)
        code = make(password, texts);
    hg_ctl_password_free(password);
    if (code != HG_CTL_OK)
        return code;
    if (ctl->json)
        return print_json(name, texts);
    print_yaml(name, texts);
    return HG_CTL_OK;
}
