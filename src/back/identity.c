// identity - as whom connections speak to a server: user, password and database
// SPDX-License-Identifier: BSD-3-Clause
#include "back/identity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One that was replaced; somebody may still be reading it. */
struct hg_password {
    struct hg_password *older;
    char *text;
};

static void identity_free(struct hg_identity *identity)
{
    if (identity == NULL)
        return;
    free((char *)(uintptr_t)identity->user);
    free((char *)(uintptr_t)identity->password);
    free(identity);
}

static struct hg_identity *identity_new(uint32_t id, const char *user, const char *password,
                                        uint32_t database)
{
    struct hg_identity *identity = calloc(1, sizeof *identity);
    if (identity == NULL)
        return NULL;
    identity->id = id;
    identity->user = strdup(user);
    identity->password = strdup(password);
    identity->database = database;
    if (identity->user != NULL && identity->password != NULL)
        return identity;
    identity_free(identity);
    return NULL;
}

int hg_identities_init(struct hg_identities *identities, const char *user, const char *password,
                       uint32_t database)
{
    uint32_t id;
    memset(identities, 0, sizeof *identities);
    pthread_mutex_init(&identities->lock, NULL);
    int rc = hg_identities_add(identities, user, password, database, &id);
    if (rc != 0)
        pthread_mutex_destroy(&identities->lock);
    return rc;
}

void hg_identities_fini(struct hg_identities *identities)
{
    for (uint32_t i = 0; i < hg_identities_count(identities); i++)
        identity_free(identities->list[i]);
    while (identities->replaced != NULL) {
        struct hg_password *password = identities->replaced;
        identities->replaced = password->older;
        free(password->text);
        free(password);
    }
    pthread_mutex_destroy(&identities->lock);
}

static int add_new(struct hg_identities *identities, const char *user, const char *password,
                   uint32_t database, const struct hg_identity *login, uint32_t *ret_id)
{
    uint32_t count = hg_identities_count(identities);
    if (count == HG_IDENTITIES_MAX)
        return -ENOSPC;
    identities->list[count] = identity_new(count, user, password, database);
    if (identities->list[count] == NULL)
        return -ENOMEM;
    identities->list[count]->login = login;
    atomic_store_explicit(&identities->count, count + 1, memory_order_release);
    *ret_id = count;
    return 0;
}

bool hg_identity_is(const struct hg_identity *identity, const char *user, const char *password,
                    uint32_t database)
{
    return identity->login == NULL && identity->database == database &&
           strcmp(identity->user, user) == 0 && strcmp(identity->password, password) == 0;
}

int hg_identities_add(struct hg_identities *identities, const char *user, const char *password,
                      uint32_t database, uint32_t *ret_id)
{
    pthread_mutex_lock(&identities->lock);
    int rc = -ENOENT;
    for (uint32_t i = 0; i < hg_identities_count(identities) && rc != 0; i++) {
        if (!hg_identity_is(identities->list[i], user, password, database))
            continue;
        *ret_id = i;
        rc = 0;
    }
    if (rc != 0)
        rc = add_new(identities, user, password, database, NULL, ret_id);
    pthread_mutex_unlock(&identities->lock);
    return rc;
}

int hg_identities_add_own(struct hg_identities *identities, uint32_t database, uint32_t *ret_id)
{
    pthread_mutex_lock(&identities->lock);
    const struct hg_identity *own = identities->list[0];
    int rc = -ENOENT;
    for (uint32_t i = 0; i < hg_identities_count(identities) && rc != 0; i++) {
        const struct hg_identity *identity = identities->list[i];
        if (identity->database != database || (identity != own && identity->login != own))
            continue;
        *ret_id = i;
        rc = 0;
    }
    if (rc != 0)
        rc = add_new(identities, own->user, "", database, own, ret_id);
    pthread_mutex_unlock(&identities->lock);
    return rc;
}

int hg_identities_set_password(struct hg_identities *identities, const char *password)
{
    int rc = 0;
    pthread_mutex_lock(&identities->lock);
    struct hg_identity *own = identities->list[0];
    if (strcmp(own->password, password) != 0) {
        struct hg_password *replaced = calloc(1, sizeof *replaced);
        char *copy = strdup(password);
        if (replaced != NULL && copy != NULL) {
            *replaced =
                (struct hg_password){identities->replaced, (char *)(uintptr_t)own->password};
            identities->replaced = replaced;
            own->password = copy;
        } else {
            free(replaced);
            free(copy);
            rc = -ENOMEM;
        }
    }
    pthread_mutex_unlock(&identities->lock);
    return rc;
}
