// secret - a password as SCRAM keeps it: PostgreSQL's text form, and the check of a plain password
// SPDX-License-Identifier: BSD-3-Clause
//
// RFC 5802: SaltedPassword = PBKDF2(password, salt, iterations); StoredKey = H(HMAC(SaltedPassword,
// "Client Key")); ServerKey = HMAC(SaltedPassword, "Server Key").
#include "app/secret.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

static const struct mechanism {
    const char *name;
    uint32_t key_len;
} mechanisms[HG_SECRET_HASH_COUNT] = {
    [HG_SECRET_SHA_1] = {"SCRAM-SHA-1", 20},
    [HG_SECRET_SHA_256] = {"SCRAM-SHA-256", 32},
};

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const char *hg_secret_hash_name(enum hg_secret_hash hash)
{
    return mechanisms[hash].name;
}

static const EVP_MD *digest_of(enum hg_secret_hash hash)
{
    return hash == HG_SECRET_SHA_1 ? EVP_sha1() : EVP_sha256();
}

void hg_secret_base64(const uint8_t *blob, size_t len, char *ret)
{
    for (size_t i = 0; i < len; i += 3) {
        uint32_t bits = (uint32_t)blob[i] << 16;
        bits |= i + 1 < len ? (uint32_t)blob[i + 1] << 8 : 0;
        bits |= i + 2 < len ? blob[i + 2] : 0;
        *ret++ = base64_digits[bits >> 18];
        *ret++ = base64_digits[bits >> 12 & 63];
        *ret++ = i + 1 < len ? base64_digits[bits >> 6 & 63] : '=';
        *ret++ = i + 2 < len ? base64_digits[bits & 63] : '=';
    }
    *ret = '\0';
}

/* Strict: whole quadruples, padding where it belongs, unused bits zero. False if anything else, or
   if it is longer than max. */
static bool base64_decode(const char *text, size_t len, uint8_t *ret, size_t max, size_t *ret_len)
{
    size_t used = 0, pad = 0;
    if (len % 4 || !len)
        return false;
    for (size_t i = 0; i < len; i += 4) {
        uint32_t bits = 0;
        for (size_t j = 0; j < 4; j++) {
            const char *digit = text[i + j] ? strchr(base64_digits, text[i + j]) : NULL;
            bool is_pad = text[i + j] == '=' && i + 4 == len && j >= 2;
            if (is_pad ? 0 : (!digit || pad))
                return false;
            pad += is_pad;
            bits = bits << 6 | (is_pad ? 0 : (uint32_t)(digit - base64_digits));
        }
        size_t n = 3 - pad;
        if (used + n > max || (pad == 1 && bits & 0xff) || (pad == 2 && bits & 0xffff))
            return false;
        for (size_t j = 0; j < n; j++)
            ret[used++] = (uint8_t)(bits >> (16 - 8 * j));
    }
    *ret_len = used;
    return true;
}

static bool decode_iterations(const char *text, size_t len, uint32_t *ret)
{
    uint32_t value = 0;
    if (len < 1 || len > 7 || text[0] == '0')
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (uint32_t)(text[i] - '0');
    }
    *ret = value;
    return value >= HG_SECRET_ITERATIONS_MIN && value <= HG_SECRET_ITERATIONS_MAX;
}

/* The bytes up to a separator; *at moves behind it. */
static bool cut(const char **at, const char *end, char separator, const char **ret, size_t *ret_len)
{
    const char *found = separator ? memchr(*at, separator, (size_t)(end - *at)) : end;
    if (!found)
        return false;
    *ret = *at;
    *ret_len = (size_t)(found - *at);
    *at = separator ? found + 1 : end;
    return true;
}

static const char shape[] =
    "secret has another form (accepted: SCRAM-SHA-256$COUNT:SALT$STOREDKEY:SERVERKEY, or "
    "SCRAM-SHA-1 likewise)";

int hg_secret_decode(const char *text, size_t len, struct hg_secret *ret, const char **why)
{
    const char *at = text, *end = text + len, *part[5];
    size_t part_len[5], n;
    static const char separators[5] = {'$', ':', '$', ':', '\0'};
    struct hg_secret secret = {.hash = HG_SECRET_HASH_COUNT};
    *why = shape;
    for (size_t i = 0; i < 5; i++)
        if (!cut(&at, end, separators[i], &part[i], &part_len[i]))
            return -EINVAL;
    for (int i = 0; i < HG_SECRET_HASH_COUNT; i++)
        if (strlen(mechanisms[i].name) == part_len[0] &&
            memcmp(mechanisms[i].name, part[0], part_len[0]) == 0)
            secret.hash = (enum hg_secret_hash)i;
    if (secret.hash == HG_SECRET_HASH_COUNT)
        return -EINVAL;
    if (!decode_iterations(part[1], part_len[1], &secret.iterations)) {
        *why = "secret with a bad iteration count (accepted: 4096 to 1000000)";
        return -EINVAL;
    }
    if (!base64_decode(part[2], part_len[2], secret.salt, sizeof secret.salt, &n) ||
        n < HG_SECRET_SALT_MIN) {
        *why = "secret with a bad salt (accepted: base64 of 8 to 64 bytes)";
        return -EINVAL;
    }
    secret.salt_len = (uint32_t)n;
    secret.key_len = mechanisms[secret.hash].key_len;
    if (!base64_decode(part[3], part_len[3], secret.stored_key, sizeof secret.stored_key, &n) ||
        n != secret.key_len ||
        !base64_decode(part[4], part_len[4], secret.server_key, sizeof secret.server_key, &n) ||
        n != secret.key_len) {
        *why = "secret with a bad key (accepted: base64 of 32 bytes, 20 for SCRAM-SHA-1)";
        return -EINVAL;
    }
    *ret = secret;
    return 0;
}

size_t hg_secret_encode(const struct hg_secret *secret, char ret[HG_SECRET_TEXT_MAX])
{
    char salt[4 * ((HG_SECRET_SALT_MAX + 2) / 3) + 1];
    char stored[4 * ((HG_SECRET_KEY_MAX + 2) / 3) + 1], server[sizeof stored];
    hg_secret_base64(secret->salt, secret->salt_len, salt);
    hg_secret_base64(secret->stored_key, secret->key_len, stored);
    hg_secret_base64(secret->server_key, secret->key_len, server);
    return (size_t)snprintf(ret, HG_SECRET_TEXT_MAX, "%s$%" PRIu32 ":%s$%s:%s",
                            mechanisms[secret->hash].name, secret->iterations, salt, stored,
                            server);
}

static bool hmac(const EVP_MD *digest, const uint8_t *key, size_t key_len, const char *text,
                 uint8_t *ret)
{
    unsigned len = HG_SECRET_KEY_MAX;
    return HMAC(digest, key, (int)key_len, (const uint8_t *)text, strlen(text), ret, &len) != NULL;
}

int hg_secret_derive(enum hg_secret_hash hash, const void *password, size_t password_len,
                     const uint8_t *salt, size_t salt_len, uint32_t iterations,
                     struct hg_secret *ret)
{
    const EVP_MD *digest = digest_of(hash);
    uint8_t salted[HG_SECRET_KEY_MAX], client[HG_SECRET_KEY_MAX];
    struct hg_secret secret = {.hash = hash, .iterations = iterations};
    if (salt_len < HG_SECRET_SALT_MIN || salt_len > HG_SECRET_SALT_MAX ||
        iterations < HG_SECRET_ITERATIONS_MIN || iterations > HG_SECRET_ITERATIONS_MAX ||
        password_len > INT32_MAX)
        return -EINVAL;
    secret.key_len = mechanisms[hash].key_len;
    secret.salt_len = (uint32_t)salt_len;
    memcpy(secret.salt, salt, salt_len);
    bool ok =
        PKCS5_PBKDF2_HMAC(password_len ? password : "", (int)password_len, salt, (int)salt_len,
                          (int)iterations, digest, (int)secret.key_len, salted) == 1 &&
        hmac(digest, salted, secret.key_len, "Client Key", client) &&
        EVP_Digest(client, secret.key_len, secret.stored_key, NULL, digest, NULL) == 1 &&
        hmac(digest, salted, secret.key_len, "Server Key", secret.server_key);
    OPENSSL_cleanse(salted, sizeof salted);
    OPENSSL_cleanse(client, sizeof client);
    if (!ok)
        return -EIO;
    *ret = secret;
    return 0;
}

int hg_secret_make(enum hg_secret_hash hash, const void *password, size_t password_len,
                   struct hg_secret *ret)
{
    uint8_t salt[16];
    if (RAND_bytes(salt, sizeof salt) != 1)
        return -EIO;
    return hg_secret_derive(hash, password, password_len, salt, sizeof salt,
                            HG_SECRET_ITERATIONS_DEFAULT, ret);
}

bool hg_secret_verify(const struct hg_secret *secret, const void *password, size_t password_len)
{
    struct hg_secret derived;
    if (hg_secret_derive(secret->hash, password, password_len, secret->salt, secret->salt_len,
                         secret->iterations, &derived) != 0)
        return false;
    return CRYPTO_memcmp(derived.stored_key, secret->stored_key, secret->key_len) == 0;
}
