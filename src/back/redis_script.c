// redis_script - the Lua scripts of the redis store, and the names that Redis gives them
// SPDX-License-Identifier: BSD-3-Clause
#include "back/redis_script.h"

#include <errno.h>
#include <openssl/evp.h>

#define HG_REDIS_SCRIPT(name, text)                                                                \
    _Static_assert(sizeof(text) <= HG_REDIS_SCRIPT_MAX, "script " #name " is too long");
#include "back/redis_script.def"
#undef HG_REDIS_SCRIPT

static const struct hg_span texts[HG_REDIS_SCRIPTS] = {
#define HG_REDIS_SCRIPT(name, text)                                                                \
    [HG_REDIS_SCRIPT_##name] = {(const uint8_t *)(text), sizeof(text) - 1},
#include "back/redis_script.def"
#undef HG_REDIS_SCRIPT
};

static void put_hex(const uint8_t *digest, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (unsigned i = 0; i < HG_REDIS_SHA_BYTES / 2; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
}

int hg_redis_scripts_init(struct hg_redis_scripts *scripts)
{
    for (unsigned i = 0; i < HG_REDIS_SCRIPTS; i++) {
        uint8_t digest[EVP_MAX_MD_SIZE];
        unsigned len = 0;
        scripts->texts[i] = texts[i];
        if (EVP_Digest(texts[i].at, texts[i].len, digest, &len, EVP_sha1(), NULL) != 1 ||
            len != HG_REDIS_SHA_BYTES / 2)
            return -ENOSYS;
        put_hex(digest, scripts->shas[i]);
    }
    return 0;
}
