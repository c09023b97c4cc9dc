// dialogue - one SASL exchange with a client, from its first message to the verdict
// SPDX-License-Identifier: BSD-3-Clause
#include "app/dialogue.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/password.h"
#include "app/secret.h"

#define BASE64_ROOM (4 * ((HG_SECRET_SALT_MAX + 2) / 3) + 1)

struct hg_dialogue {
    Gsasl *gsasl;
    Gsasl_session *sasl; /* SCRAM's, from the first step on */
    enum hg_mechanism mechanism;
    unsigned steps;
    const struct hg_users *users; /* during the first step */
    struct hg_secret secret;      /* what is checked; a fake one unless `real` */
    bool real, known;
    bool refused; /* asks to be somebody else */
    bool ok;      /* the proof fitted */
    char name[HG_USERS_NAME_MAX + 1];
};

static const struct mechanism {
    const char *name;
    enum hg_secret_hash hash;
} mechanisms[HG_MECHANISMS] = {
    [HG_MECHANISM_SCRAM_SHA_256] = {"SCRAM-SHA-256", HG_SECRET_SHA_256},
    [HG_MECHANISM_SCRAM_SHA_1] = {"SCRAM-SHA-1", HG_SECRET_SHA_1},
    [HG_MECHANISM_PLAIN] = {"PLAIN", HG_SECRET_HASH_COUNT},
};

/* ---- mechanisms ---- */

const char *hg_mechanism_name(enum hg_mechanism mechanism)
{
    return mechanisms[mechanism].name;
}

bool hg_mechanism_parse(struct hg_span name, enum hg_mechanism *ret)
{
    for (int m = 0; m < HG_MECHANISMS; m++) {
        if (hg_span_is(name, mechanisms[m].name)) {
            *ret = (enum hg_mechanism)m;
            return true;
        }
    }
    return false;
}

bool hg_mechanism_is_served(const struct hg_users *users, enum hg_mechanism mechanism)
{
    if (mechanism == HG_MECHANISM_PLAIN)
        return hg_users_has_users(users);
    return hg_users_has_hash(users, mechanisms[mechanism].hash);
}

size_t hg_mechanisms_list(const struct hg_users *users, char out[HG_MECHANISMS_TEXT])
{
    size_t len = 0;
    out[0] = '\0';
    for (int m = 0; m < HG_MECHANISMS; m++) {
        if (!hg_mechanism_is_served(users, (enum hg_mechanism)m))
            continue;
        len += (size_t)snprintf(out + len, HG_MECHANISMS_TEXT - len, "%s%s", len > 0 ? " " : "",
                                mechanisms[m].name);
    }
    return len;
}

/* ---- the user, real or not ---- */

/* A name longer than a user's may be is nobody's; so its cut form must find nobody either. */
static const struct hg_user *find_user(struct hg_dialogue *dialogue, struct hg_span name)
{
    size_t len = name.len < HG_USERS_NAME_MAX ? name.len : HG_USERS_NAME_MAX;
    memcpy(dialogue->name, name.at, len);
    dialogue->name[len] = '\0';
    const struct hg_user *user = hg_users_find(dialogue->users, name);
    dialogue->known = user != NULL;
    return user;
}

/* The secret to check for this hash. The fake one is made in any case: it takes time. */
static bool load_secret(struct hg_dialogue *dialogue, const struct hg_user *user,
                        struct hg_span name, enum hg_secret_hash hash, struct hg_secret *ret)
{
    hg_users_fake_secret(dialogue->users, name, hash, ret);
    const struct hg_secret *real = user != NULL ? hg_user_secret(user, hash) : NULL;
    if (real != NULL)
        *ret = *real;
    return real != NULL;
}

const struct hg_user *hg_dialogue_user(const struct hg_dialogue *dialogue,
                                       const struct hg_users *users)
{
    const struct hg_secret *checked = &dialogue->secret;
    if (!dialogue->ok)
        return NULL;
    const struct hg_user *user = hg_users_find(users, hg_span_str(dialogue->name));
    const struct hg_secret *now = user != NULL ? hg_user_secret(user, checked->hash) : NULL;
    if (now == NULL || now->iterations != checked->iterations ||
        now->salt_len != checked->salt_len ||
        memcmp(now->salt, checked->salt, checked->salt_len) != 0 ||
        memcmp(now->stored_key, checked->stored_key, checked->key_len) != 0)
        return NULL;
    return user;
}

/* ---- PLAIN: authzid NUL authcid NUL password ---- */

static bool cut_plain(struct hg_span message, struct hg_span *ret_name, struct hg_span *ret_pass)
{
    struct hg_span part[3];
    const uint8_t *at = message.at, *end = message.at + message.len;
    for (int i = 0; i < 2; i++) {
        const uint8_t *zero = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
        if (zero == NULL)
            return false;
        part[i] = hg_span(at, (size_t)(zero - at));
        at = zero + 1;
    }
    part[2] = hg_span(at, (size_t)(end - at));
    if (part[1].len == 0 || part[2].len == 0 || memchr(part[2].at, '\0', part[2].len) != NULL ||
        (part[0].len > 0 && !hg_span_equal(part[0], part[1])))
        return false;
    *ret_name = part[1];
    *ret_pass = part[2];
    return true;
}

/* Which hashes to derive depends on the users together, not on the one asked for: where some have
   SHA-1 only, everybody costs both. */
static bool check_password(struct hg_dialogue *dialogue, struct hg_span name, const char *password,
                           size_t len)
{
    const struct hg_users *users = dialogue->users;
    const struct hg_user *user = find_user(dialogue, name);
    const struct hg_secret *own = user != NULL ? hg_user_plain_secret(user) : NULL;
    bool derived[HG_SECRET_HASH_COUNT] = {
        [HG_SECRET_SHA_256] = hg_users_has_hash(users, HG_SECRET_SHA_256),
        [HG_SECRET_SHA_1] = hg_users_has_only(users, HG_SECRET_SHA_1)};
    bool good = false;
    for (int hash = 0; hash < HG_SECRET_HASH_COUNT; hash++) {
        struct hg_secret secret;
        if (!derived[hash])
            continue;
        bool real =
            load_secret(dialogue, user, name, (enum hg_secret_hash)hash, &secret) && own != NULL;
        bool fits = hg_secret_verify(&secret, password, len);
        if (real && own->hash == secret.hash && fits) {
            dialogue->secret = secret;
            dialogue->real = good = true;
        }
        explicit_bzero(&secret, sizeof secret);
    }
    return good;
}

static enum hg_dialogue_result step_plain(struct hg_dialogue *dialogue, struct hg_span message)
{
    struct hg_span name, pass;
    size_t len = 0;
    if (dialogue->steps > 1 || !cut_plain(message, &name, &pass))
        return HG_DIALOGUE_FAILED;
    char *password = hg_password_prepare(pass.at, pass.len, &len);
    bool good = password != NULL && check_password(dialogue, name, password, len);
    hg_password_free(password, len);
    return good ? HG_DIALOGUE_OK : HG_DIALOGUE_FAILED;
}

/* ---- SCRAM ---- */

/* libgsasl asks for one property after the other; all are known with the name. */
static int give_secret(struct hg_dialogue *dialogue, Gsasl_session *sasl)
{
    const char *name = gsasl_property_fast(sasl, GSASL_AUTHID);
    const char *authzid = gsasl_property_fast(sasl, GSASL_AUTHZID);
    dialogue->refused = name == NULL || dialogue->users == NULL ||
                        (authzid != NULL && authzid[0] != '\0' && strcmp(authzid, name) != 0);
    if (dialogue->refused)
        return GSASL_AUTHENTICATION_ERROR;
    struct hg_span who = hg_span_str(name);
    struct hg_secret *secret = &dialogue->secret;
    dialogue->real = load_secret(dialogue, find_user(dialogue, who), who,
                                 mechanisms[dialogue->mechanism].hash, secret);
    char count[12], salt[BASE64_ROOM], stored[BASE64_ROOM], server[BASE64_ROOM];
    snprintf(count, sizeof count, "%" PRIu32, secret->iterations);
    hg_secret_base64(secret->salt, secret->salt_len, salt);
    hg_secret_base64(secret->stored_key, secret->key_len, stored);
    hg_secret_base64(secret->server_key, secret->key_len, server);
    int rc = gsasl_property_set(sasl, GSASL_SCRAM_ITER, count);
    if (rc == GSASL_OK)
        rc = gsasl_property_set(sasl, GSASL_SCRAM_SALT, salt);
    if (rc == GSASL_OK)
        rc = gsasl_property_set(sasl, GSASL_SCRAM_STOREDKEY, stored);
    if (rc == GSASL_OK)
        rc = gsasl_property_set(sasl, GSASL_SCRAM_SERVERKEY, server);
    explicit_bzero(stored, sizeof stored);
    explicit_bzero(server, sizeof server);
    return rc;
}

static int on_property(Gsasl *gsasl, Gsasl_session *sasl, Gsasl_property property)
{
    (void)gsasl;
    struct hg_dialogue *dialogue = gsasl_session_hook_get(sasl);
    return property == GSASL_SCRAM_ITER ? give_secret(dialogue, sasl) : GSASL_NO_CALLBACK;
}

/* libgsasl would take a message with channel binding, and one with more behind a zero byte. */
static bool is_well_formed(const struct hg_dialogue *dialogue, struct hg_span message)
{
    return message.len > 0 && memchr(message.at, '\0', message.len) == NULL &&
           (dialogue->steps > 1 || message.at[0] != 'p');
}

static enum hg_dialogue_result step_scram(struct hg_dialogue *dialogue, struct hg_span message,
                                          char **ret_reply, size_t *ret_len)
{
    if (!is_well_formed(dialogue, message))
        return HG_DIALOGUE_FAILED;
    if (dialogue->sasl == NULL) {
        if (gsasl_server_start(dialogue->gsasl, mechanisms[dialogue->mechanism].name,
                               &dialogue->sasl) != GSASL_OK) {
            dialogue->sasl = NULL;
            return HG_DIALOGUE_FAILED;
        }
        gsasl_session_hook_set(dialogue->sasl, dialogue);
    }
    char *reply = NULL;
    size_t len = 0;
    int rc = gsasl_step(dialogue->sasl, (const char *)message.at, message.len, &reply, &len);
    /* SCRAM has two messages of the client, and a fake secret fits none. */
    bool last = dialogue->steps > 1;
    if (rc != (last ? GSASL_OK : GSASL_NEEDS_MORE) || (last && !dialogue->real) ||
        dialogue->refused) {
        gsasl_free(reply);
        return HG_DIALOGUE_FAILED;
    }
    *ret_reply = reply;
    *ret_len = len;
    return last ? HG_DIALOGUE_OK : HG_DIALOGUE_MORE;
}

/* ---- the exchange ---- */

int hg_dialogue_library(Gsasl **ret)
{
    if (gsasl_init(ret) != GSASL_OK)
        return -ENOMEM;
    gsasl_callback_set(*ret, on_property);
    return 0;
}

struct hg_dialogue *hg_dialogue_new(Gsasl *gsasl, enum hg_mechanism mechanism)
{
    struct hg_dialogue *dialogue = calloc(1, sizeof *dialogue);
    if (dialogue == NULL)
        return NULL;
    dialogue->gsasl = gsasl;
    dialogue->mechanism = mechanism;
    return dialogue;
}

/* libgsasl frees its copies without wiping them. */
static void wipe_property(Gsasl_session *sasl, Gsasl_property property)
{
    char *text = (char *)(uintptr_t)gsasl_property_fast(sasl, property);
    if (text != NULL)
        explicit_bzero(text, strlen(text));
}

void hg_dialogue_free(struct hg_dialogue *dialogue)
{
    if (dialogue == NULL)
        return;
    if (dialogue->sasl != NULL) {
        wipe_property(dialogue->sasl, GSASL_SCRAM_STOREDKEY);
        wipe_property(dialogue->sasl, GSASL_SCRAM_SERVERKEY);
        gsasl_finish(dialogue->sasl);
    }
    explicit_bzero(dialogue, sizeof *dialogue);
    free(dialogue);
}

enum hg_dialogue_result hg_dialogue_step(struct hg_dialogue *dialogue, const struct hg_users *users,
                                         struct hg_span message, char **ret_reply, size_t *ret_len)
{
    *ret_reply = NULL;
    *ret_len = 0;
    dialogue->steps++;
    dialogue->users = dialogue->steps == 1 ? users : NULL;
    enum hg_dialogue_result result = dialogue->mechanism == HG_MECHANISM_PLAIN
                                         ? step_plain(dialogue, message)
                                         : step_scram(dialogue, message, ret_reply, ret_len);
    dialogue->users = NULL;
    dialogue->ok = result == HG_DIALOGUE_OK;
    return result;
}

enum hg_mechanism hg_dialogue_mechanism(const struct hg_dialogue *dialogue)
{
    return dialogue->mechanism;
}

bool hg_dialogue_is_at_proof(const struct hg_dialogue *dialogue)
{
    return dialogue->mechanism == HG_MECHANISM_PLAIN || dialogue->steps == 1;
}

const char *hg_dialogue_name(const struct hg_dialogue *dialogue)
{
    return dialogue->name;
}

bool hg_dialogue_knows_user(const struct hg_dialogue *dialogue)
{
    return dialogue->known;
}
