// bindboard - what may be read of a worker's evicted keys
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_FRONT_BINDBOARD_H
#define HG_FRONT_BINDBOARD_H

#include <pthread.h>

#include "core/hotkey.h"
#include "front/bucket.h"

/* What is shown of an entry. */
struct hg_bind_shown {
    char bucket[HG_BUCKET_NAME_MAX + 1];
    uint8_t type, table_len, key_len; /* enum hg_hot_type; of `key` */
    uint32_t hash;
    uint32_t x;
    uint64_t passed, refused, halved, asked_us;
    uint8_t key[HG_HOTKEY_KEY_MAX];
};

/* A worker's entries as they were at most 100 ms ago, for any thread. */
struct hg_bind_board {
    pthread_mutex_t lock;
    struct hg_bind_shown *rows;
    size_t count, cap;
};

#endif
