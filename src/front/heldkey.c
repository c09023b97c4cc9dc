// heldkey - keys that are held at their share of a server's tickets: what others see
// SPDX-License-Identifier: BSD-3-Clause
#include "front/heldkey.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void hg_heldkey_name(struct hg_heldkey *held, const struct hg_bucket *bucket, struct hg_span key,
                     bool is_observed)
{
    held->is_observed = is_observed;
    if (held->record.is_named)
        return;
    held->record.is_named = true;
    held->bound_us = 0;
    memcpy(held->bucket, bucket->name, sizeof held->bucket);
    held->key_len = (uint8_t)(key.len < sizeof held->key ? key.len : sizeof held->key);
    memcpy(held->key, key.at, held->key_len);
}

static uint64_t service_us(const struct hg_gate_line *in, const struct hg_heldkey *held)
{
    return hg_keyshare_service_us(&in->keys, &held->record, in->answered_us);
}

/* ---- the board ---- */

static void copy(char *to, size_t bytes, const char *from)
{
    size_t len = strnlen(from, bytes - 1);
    memcpy(to, from, len);
    to[len] = '\0';
}

static void show(struct hg_heldkey_board *board, const struct hg_gate_line *in,
                 const struct hg_heldkey *held)
{
    const struct hg_keyshare_key *record = &held->record;
    struct hg_heldkey_shown *rows =
        hg_grow(board->rows, &board->cap, board->count + 1, sizeof *rows);
    if (rows == NULL)
        return;
    board->rows = rows;
    struct hg_heldkey_shown *row = &rows[board->count++];
    *row = (struct hg_heldkey_shown){
        .id = record->id,
        .kind = (uint8_t)(in->place - HG_GATE_READ),
        .key_len = held->key_len,
        .is_observed = held->is_observed,
        .is_dear = hg_keyshare_is_dear(&in->keys, record, in->answered_us, in->worker->loop.now_us),
        .usual_us = in->keys.usual.us,
        .share = in->keys.share,
        .is_over = held->bound_us != in->worker->loop.now_us,
        .out = record->out + record->stranded,
        .waiting = record->waiting,
        .service_us = service_us(in, held),
        .since_us = record->held_us,
        .refused = record->refused,
    };
    copy(row->bucket, sizeof row->bucket, held->bucket);
    copy(row->upstream, sizeof row->upstream, in->part->gate->upstream->name);
    copy(row->server, sizeof row->server, in->part->share->server);
    memcpy(row->key, held->key, held->key_len);
}

/* A key stays on the board for so long after it was held: others have to see its last count. */
#define OVER_US 500000

/* Some wait, or were refused; or would be. */
static bool is_shown(const struct hg_gate_line *in, struct hg_heldkey *held)
{
    const struct hg_keyshare_key *record = &held->record;
    uint64_t now_us = in->worker->loop.now_us;
    if (!record->is_named)
        return false;
    if (hg_keyshare_is_bound(record, now_us))
        held->bound_us = now_us;
    return held->bound_us != 0 && now_us - held->bound_us < OVER_US &&
           (record->waiting > 0 || record->refused > 0 ||
            (held->is_observed && hg_keyshare_is_dear(&in->keys, record, in->answered_us, now_us)));
}

static void look_at_line(void *board, struct hg_gate_line *in)
{
    for (struct hg_keyshare_key *key = NULL; (key = hg_keyshare_each(&in->keys, key)) != NULL;) {
        struct hg_heldkey *held = hg_heldkey_of(key);
        key->is_pinned = is_shown(in, held); /* until others have seen what it ends with */
        if (key->is_pinned)
            show(board, in, held);
    }
}

void hg_heldkeys_look(struct hg_worker *worker)
{
    struct hg_heldkey_board *board = &worker->heldkey_board;
    pthread_mutex_lock(&board->lock);
    board->count = 0;
    hg_gates_each_line(worker, look_at_line, board);
    pthread_mutex_unlock(&board->lock);
}

/* ---- the worker's part ---- */

int hg_heldkeys_open(struct hg_worker *worker)
{
    return -pthread_mutex_init(&worker->heldkey_board.lock, NULL);
}

void hg_heldkeys_free(struct hg_worker *worker)
{
    free(worker->heldkey_board.rows);
    pthread_mutex_destroy(&worker->heldkey_board.lock);
}
