// heldkeyboard - what may be read of a worker's keys that are held at their share of tickets
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_FRONT_HELDKEYBOARD_H
#define HG_FRONT_HELDKEYBOARD_H

#include <pthread.h>
#include <stdint.h>

#include "core/ticket.h"
#include "front/bucket.h"
#include "front/request.h"

#define HG_HELDKEY_SERVER_MAX 100 /* bytes of an address that are shown */

/* What is shown of a key, or row, by server and kind of ticket. */
struct hg_heldkey_shown {
    char bucket[HG_BUCKET_NAME_MAX + 1], upstream[HG_BUCKET_NAME_MAX + 1];
    char server[HG_HELDKEY_SERVER_MAX + 1]; /* "": of an upstream without servers */
    uint32_t id;                            /* tells keys apart that are longer than `key` */
    uint8_t kind, key_len;                  /* enum hg_ticket_kind; of `key` */
    bool is_observed;                       /* it would be held, and is not */
    bool is_dear;                           /* its requests take long */
    bool is_over;                           /* it is held no longer: this is what it ended with */
    uint32_t out, waiting;                  /* its tickets, stranded slots among them */
    uint64_t service_us;                    /* what its requests took lately; 0: not known */
    uint64_t usual_us;                      /* what its tenant's requests usually take */
    uint32_t share;                         /* tickets that it may have */
    uint64_t since_us;                      /* it has been held since */
    uint64_t refused;                       /* since then */
    uint8_t key[HG_REQUEST_KEY_HEAD];
};

/* A worker's held keys as they were at most 100 ms ago, for any thread. */
struct hg_heldkey_board {
    pthread_mutex_t lock;
    struct hg_heldkey_shown *rows;
    size_t count, cap;
};

#endif
