// floodboard - what may be read of the tenants that flood a worker's lines
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_FRONT_FLOODBOARD_H
#define HG_FRONT_FLOODBOARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/bucket.h"
#include "front/heldkeyboard.h"

struct hg_flood_shown {
    char bucket[HG_BUCKET_NAME_MAX + 1];
    char upstream[HG_BUCKET_NAME_MAX + 1];  /* "": ingress */
    char server[HG_HELDKEY_SERVER_MAX + 1]; /* "": ingress, or of an upstream without servers */
    uint8_t place;                          /* enum hg_gate_place */
    bool floods;                            /* now; else it did a moment ago */
    uint64_t number;                        /* of the count that follows, which begins at 0 */
    uint64_t refused;                       /* since it began to flood */
};

/* As it was at most 100 ms ago, for any thread. */
struct hg_flood_board {
    pthread_mutex_t lock;
    struct hg_flood_shown *rows;
    size_t count, cap;
};

#endif
