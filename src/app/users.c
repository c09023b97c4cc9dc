// users - who may log in and what each may do in which bucket, as one snapshot that never changes
// SPDX-License-Identifier: BSD-3-Clause
//
// Users and their buckets are sorted by name, so a look-up is a binary search. Reading the file is
// in users_parse.c.
#include "app/users_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#define SEES_BUCKET                                                                                \
    (HG_PRIVILEGE_BIT(HG_PRIVILEGE_READ) | HG_PRIVILEGE_BIT(HG_PRIVILEGE_WRITE) |                  \
     HG_PRIVILEGE_BIT(HG_PRIVILEGE_STATS) | HG_PRIVILEGE_BIT(HG_PRIVILEGE_NODE_SUPERVISOR) |       \
     HG_PRIVILEGE_BIT(HG_PRIVILEGE_BUCKET_THROTTLE_MANAGEMENT))

struct hg_users *hg_users_new(void)
{
    struct hg_users *users = calloc(1, sizeof *users);
    if (users && RAND_bytes(users->fake_key, sizeof users->fake_key) != 1) {
        free(users);
        return NULL;
    }
    return users;
}

static void user_fini(struct hg_user *user)
{
    for (size_t i = 0; i < user->bucket_count; i++)
        free(user->buckets[i].name);
    free(user->buckets);
    free(user->name);
    OPENSSL_cleanse(user->secrets, sizeof user->secrets);
}

void hg_users_free(struct hg_users *users)
{
    if (!users)
        return;
    for (size_t i = 0; i < users->count; i++)
        user_fini(&users->users[i]);
    free(users->users);
    free(users->anonymous_bucket);
    OPENSSL_cleanse(users->fake_key, sizeof users->fake_key);
    free(users);
}

int hg_users_open(struct hg_users **ret)
{
    struct hg_users *users = hg_users_new();
    if (!users)
        return -ENOMEM;
    users->anonymous_bucket = strdup("default");
    users->anonymous_everywhere = true;
    /* Every right; but the two exemptions would switch the limits off for everybody. */
    users->anonymous_privileges = HG_PRIVILEGES_ALL & ~(HG_PRIVILEGE_BIT(HG_PRIVILEGE_UNTHROTTLED) |
                                                        HG_PRIVILEGE_BIT(HG_PRIVILEGE_UNMETERED));
    if (!users->anonymous_bucket) {
        hg_users_free(users);
        return -ENOMEM;
    }
    *ret = users;
    return 0;
}

bool hg_users_login_required(const struct hg_users *users)
{
    return users->anonymous_bucket == NULL;
}

bool hg_users_has_users(const struct hg_users *users)
{
    return users->count != 0;
}

bool hg_users_has_hash(const struct hg_users *users, enum hg_secret_hash hash)
{
    for (size_t i = 0; i < users->count; i++)
        if (users->users[i].has_secret[hash])
            return true;
    return false;
}

bool hg_users_has_only(const struct hg_users *users, enum hg_secret_hash hash)
{
    for (size_t i = 0; i < users->count; i++) {
        bool others = false;
        for (int h = 0; h < HG_SECRET_HASH_COUNT; h++)
            others |= h != (int)hash && users->users[i].has_secret[h];
        if (users->users[i].has_secret[hash] && !others)
            return true;
    }
    return false;
}

const char *hg_users_anonymous_bucket(const struct hg_users *users)
{
    return users->anonymous_bucket;
}

/* memcmp order, the shorter first: that of qsort in users_parse.c. */
int hg_users_compare(struct hg_span a, struct hg_span b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len ? memcmp(a.at, b.at, len) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

const struct hg_user *hg_users_find(const struct hg_users *users, struct hg_span name)
{
    size_t low = 0, high = users->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = hg_users_compare(name, hg_span_str(users->users[middle].name));
        if (order == 0)
            return &users->users[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const char *hg_user_name(const struct hg_user *user)
{
    return user ? user->name : "anonymous";
}

const struct hg_secret *hg_user_secret(const struct hg_user *user, enum hg_secret_hash hash)
{
    return user->has_secret[hash] ? &user->secrets[hash] : NULL;
}

const struct hg_secret *hg_user_plain_secret(const struct hg_user *user)
{
    const struct hg_secret *best = hg_user_secret(user, HG_SECRET_SHA_256);
    return best ? best : hg_user_secret(user, HG_SECRET_SHA_1);
}

/* The list of the exact name, else that of "*", else nothing. */
static uint32_t bucket_privileges(const struct hg_user *user, struct hg_span bucket)
{
    size_t low = 0, high = user->bucket_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = hg_users_compare(bucket, hg_span_str(user->buckets[middle].name));
        if (order == 0)
            return user->buckets[middle].privileges;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return user->any_bucket_privileges;
}

uint32_t hg_users_privileges(const struct hg_users *users, const struct hg_user *user,
                             struct hg_span bucket)
{
    if (user)
        return user->privileges | (bucket.at ? bucket_privileges(user, bucket) : 0);
    if (users->anonymous_everywhere)
        return users->anonymous_privileges;
    if (!users->anonymous_bucket || !bucket.at || !hg_span_is(bucket, users->anonymous_bucket))
        return 0;
    return users->anonymous_privileges;
}

bool hg_users_may_see(const struct hg_users *users, const struct hg_user *user,
                      struct hg_span bucket)
{
    return (hg_users_privileges(users, user, bucket) & SEES_BUCKET) != 0;
}

void hg_users_fake_secret(const struct hg_users *users, struct hg_span name,
                          enum hg_secret_hash hash, struct hg_secret *ret)
{
    static const char *const labels[] = {"salt", "salt'", "stored", "server"};
    const struct hg_users_usual *usual = &users->usual[hash];
    uint8_t blobs[4][HG_SECRET_KEY_MAX];
    uint8_t text[16 + HG_USERS_NAME_MAX];
    *ret = (struct hg_secret){.hash = hash,
                              .iterations = usual->iterations ? usual->iterations
                                                              : HG_SECRET_ITERATIONS_DEFAULT,
                              .salt_len = usual->salt_len ? usual->salt_len : 16,
                              .key_len = hash == HG_SECRET_SHA_1 ? 20 : 32};
    /* A name that is too long for a user exists nowhere; what it is cut to only has to stay the
     * same. */
    size_t len = name.len < HG_USERS_NAME_MAX ? name.len : HG_USERS_NAME_MAX;
    for (size_t i = 0; i < 4; i++) {
        memset(text, 0, 16);
        memcpy(text, labels[i], strlen(labels[i]));
        text[15] = (uint8_t)hash;
        if (len)
            memcpy(text + 16, name.at, len);
        unsigned blob_len = HG_SECRET_KEY_MAX;
        if (!HMAC(EVP_sha256(), users->fake_key, sizeof users->fake_key, text, 16 + len, blobs[i],
                  &blob_len))
            memset(blobs[i], 0xa5, HG_SECRET_KEY_MAX);
    }
    memcpy(ret->salt, blobs[0], ret->salt_len < 32 ? ret->salt_len : 32);
    if (ret->salt_len > 32)
        memcpy(ret->salt + 32, blobs[1], ret->salt_len - 32);
    memcpy(ret->stored_key, blobs[2], ret->key_len);
    memcpy(ret->server_key, blobs[3], ret->key_len);
}

void hg_users_keep_key(struct hg_users *now, const struct hg_users *before)
{
    memcpy(now->fake_key, before->fake_key, sizeof now->fake_key);
}

static bool same_secret(const struct hg_user *a, const struct hg_user *b, enum hg_secret_hash hash)
{
    const struct hg_secret *x = hg_user_secret(a, hash), *y = hg_user_secret(b, hash);
    if (!x || !y)
        return x == y;
    return x->iterations == y->iterations && x->salt_len == y->salt_len &&
           memcmp(x->salt, y->salt, x->salt_len) == 0 &&
           CRYPTO_memcmp(x->stored_key, y->stored_key, x->key_len) == 0 &&
           CRYPTO_memcmp(x->server_key, y->server_key, x->key_len) == 0;
}

bool hg_users_is_revoked(const struct hg_users *now, const struct hg_user *before)
{
    if (!before) /* anonymous */
        return now->anonymous_bucket == NULL;
    const struct hg_user *user = hg_users_find(now, hg_span_str(before->name));
    return !user || !same_secret(user, before, HG_SECRET_SHA_1) ||
           !same_secret(user, before, HG_SECRET_SHA_256);
}
