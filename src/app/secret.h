// secret - a password as SCRAM keeps it: PostgreSQL's text form, and the check of a plain password
// SPDX-License-Identifier: BSD-3-Clause
//
// `SCRAM-SHA-256$4096:SALT$STOREDKEY:SERVERKEY`, blobs in base64; `SCRAM-SHA-1$...` likewise. A
// secret does not hold the password, and is enough for SCRAM's server side and for PLAIN. Deriving
// costs milliseconds: never on a worker's loop. No state; any thread.
#ifndef HG_APP_SECRET_H
#define HG_APP_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

#define HG_SECRET_ITERATIONS_MIN     4096u
#define HG_SECRET_ITERATIONS_MAX     1000000u
#define HG_SECRET_ITERATIONS_DEFAULT 4096u
#define HG_SECRET_SALT_MIN           8u
#define HG_SECRET_SALT_MAX           64u
#define HG_SECRET_KEY_MAX            32u
#define HG_SECRET_TEXT_MAX           256u /* of hg_secret_encode, with the zero byte */

enum hg_secret_hash { HG_SECRET_SHA_1, HG_SECRET_SHA_256, HG_SECRET_HASH_COUNT };

struct hg_secret {
    enum hg_secret_hash hash;
    uint32_t iterations;
    uint32_t salt_len;
    uint32_t key_len; /* 20 or 32 */
    uint8_t salt[HG_SECRET_SALT_MAX];
    uint8_t stored_key[HG_SECRET_KEY_MAX];
    uint8_t server_key[HG_SECRET_KEY_MAX];
};

/* "SCRAM-SHA-256", the SASL mechanism's name too. */
const char *hg_secret_hash_name(enum hg_secret_hash hash);

/* Reads the text form. 0, or -EINVAL with *why set to a constant text that says what is wrong and
   what is accepted (never a part of the secret). */
HG_MUST_USE int hg_secret_decode(const char *text, size_t len, struct hg_secret *ret,
                                 const char **why);
/* Writes the text form and a zero byte; its length. */
size_t hg_secret_encode(const struct hg_secret *secret, char ret[HG_SECRET_TEXT_MAX]);

/* Derives a secret from a password of any bytes (RFC 5802; no SASLprep). 0, -EINVAL for a salt or
   count out of bounds, -EIO when OpenSSL fails. */
HG_MUST_USE int hg_secret_derive(enum hg_secret_hash hash, const void *password,
                                 size_t password_len, const uint8_t *salt, size_t salt_len,
                                 uint32_t iterations, struct hg_secret *ret);
/* The same with a random salt of 16 bytes and the default count: what `headgatectl passwd` prints.
 */
HG_MUST_USE int hg_secret_make(enum hg_secret_hash hash, const void *password, size_t password_len,
                               struct hg_secret *ret);
/* Whether the password is this secret's; takes the same time whatever the answer. */
HG_MUST_USE bool hg_secret_verify(const struct hg_secret *secret, const void *password,
                                  size_t password_len);

/* The three blobs as libgsasl wants them: base64 with a zero byte. Room for 4 * ((n + 2) / 3) + 1.
 */
void hg_secret_base64(const uint8_t *blob, size_t len, char *ret);

#endif
