// redis_script - the Lua scripts of the redis store, and the names that Redis gives them
// SPDX-License-Identifier: BSD-3-Clause
//
// The table is redis_script.def. A script is called by the SHA-1 of its text (EVALSHA), which a
// server knows after SCRIPT LOAD, or after the script itself has been called (EVAL), until it is
// restarted or told SCRIPT FLUSH. Pure.
#ifndef HG_BACK_REDIS_SCRIPT_H
#define HG_BACK_REDIS_SCRIPT_H

#include "base/attr.h"
#include "base/span.h"

#define HG_REDIS_SHA_BYTES  40   /* hexadecimal */
#define HG_REDIS_SCRIPT_MAX 4096 /* bytes of a script */

enum hg_redis_script {
#define HG_REDIS_SCRIPT(name, text) HG_REDIS_SCRIPT_##name,
#include "back/redis_script.def"
#undef HG_REDIS_SCRIPT
    HG_REDIS_SCRIPTS
};

/* Integers that scripts answer for what they did not do. */
enum hg_redis_code {
    HG_REDIS_NONE = -1,    /* there is no item */
    HG_REDIS_OTHER = -2,   /* it exists, or its CAS is another */
    HG_REDIS_NO_JOIN = -3, /* there is no item to append to */
    HG_REDIS_NO_NUMBER = -4,
    HG_REDIS_TOO_LARGE = -5,
    HG_REDIS_STRANGER = -6 /* a string that is no item */
};

struct hg_redis_scripts {
    struct hg_span texts[HG_REDIS_SCRIPTS];
    char shas[HG_REDIS_SCRIPTS][HG_REDIS_SHA_BYTES];
};

/* 0, or -ENOSYS where the library of digests refuses SHA-1. */
HG_MUST_USE int hg_redis_scripts_init(struct hg_redis_scripts *scripts);

#endif
