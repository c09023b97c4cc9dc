// heldkey - keys that are held at their share of a server's tickets: what the log and others see
// SPDX-License-Identifier: BSD-3-Clause
#include "front/heldkey.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/log.h"

void hg_heldkey_name(struct hg_heldkey *held, const struct hg_bucket *bucket, struct hg_span key,
                     bool is_observed)
{
    held->is_observed = is_observed;
    if (held->record.is_named)
        return;
    held->record.is_named = true;
    memset(&held->notice, 0, sizeof held->notice);
    memcpy(held->bucket, bucket->name, sizeof held->bucket);
    held->key_len = (uint8_t)(key.len < sizeof held->key ? key.len : sizeof held->key);
    memcpy(held->key, key.at, held->key_len);
}

/* ---- the log ---- */

#define KEY_MAX (4 * HG_REQUEST_KEY_HEAD + 1) /* escaped */

/* "upstream=cache server=10.0.0.1:11211 what=key-share tenant=shop tickets=read key=\"...\"" */
#define SUBJECT "upstream=%s server=%s what=key-share tenant=%s tickets=%s key=\"%s\""

static uint64_t service_us(const struct hg_gate_line *in, const struct hg_heldkey *held)
{
    return hg_keyshare_service_us(&in->keys, &held->record, in->answered_us);
}

static void log_begin(const struct hg_gate_line *in, const struct hg_heldkey *held)
{
    char key[KEY_MAX];
    hg_log_warn(SUBJECT " service_ms=%.1f usual_ms=%.1f share=%u "
                        "msg=\"throttle-begin: requests for this key take long, and it has its "
                        "share of the tickets\"",
                in->part->gate->upstream->name, in->part->share->server, held->bucket,
                hg_gate_place_name(in->place),
                hg_escape(key, sizeof key, hg_span(held->key, held->key_len)),
                (double)service_us(in, held) / 1e3, (double)in->keys.usual.us / 1e3,
                (unsigned)in->keys.share);
}

static void log_end(const struct hg_gate_line *in, const struct hg_heldkey *held)
{
    char key[KEY_MAX];
    hg_log_info(SUBJECT " lasted_s=%.1f refused=%llu msg=\"throttle-end: it is held no longer\"",
                in->part->gate->upstream->name, in->part->share->server, held->bucket,
                hg_gate_place_name(in->place),
                hg_escape(key, sizeof key, hg_span(held->key, held->key_len)),
                (double)(in->worker->loop.now_us - held->notice.since_us) / 1e6,
                (unsigned long long)held->record.refused);
}

void hg_heldkey_end(const struct hg_gate_line *in, struct hg_heldkey *held)
{
    if (held->notice.told)
        log_end(in, held);
    held->notice.told = false;
}

/* A record stays for as long as its begin may not be told again, unless there are too many. */
static bool is_pinned(const struct hg_keyshare *keys, const struct hg_notice *notice,
                      uint64_t now_us)
{
    return notice->told || (notice->told_us != 0 && keys->key_count < HG_KEYSHARE_MOST &&
                            now_us - notice->told_us < HG_NOTICE_APART_US);
}

/* That a new key's requests wait until the first is back is nothing to be told. */
static void look_at(const struct hg_gate_line *in, struct hg_heldkey *held)
{
    struct hg_notice *notice = &held->notice;
    const struct hg_keyshare_key *record = &held->record;
    uint64_t now_us = in->worker->loop.now_us;
    bool bound = record->is_named && !held->is_observed && hg_keyshare_is_bound(record, now_us);
    bool active = bound && (notice->active ||
                            hg_keyshare_is_dear(&in->keys, record, in->answered_us, now_us));
    enum hg_notice_say say = hg_notice_look(notice, active, now_us);
    if (say == HG_NOTICE_BEGIN)
        log_begin(in, held);
    if (say == HG_NOTICE_END)
        log_end(in, held);
    held->record.is_pinned = is_pinned(&in->keys, notice, now_us);
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

/* Some wait, or were refused; or would be. */
static bool is_shown(const struct hg_gate_line *in, const struct hg_heldkey *held)
{
    const struct hg_keyshare_key *record = &held->record;
    uint64_t now_us = in->worker->loop.now_us;
    return record->is_named && hg_keyshare_is_bound(record, now_us) &&
           (record->waiting > 0 || record->refused > 0 ||
            (held->is_observed &&
             hg_keyshare_is_dear(&in->keys, record, in->answered_us, now_us)));
}

static void look_at_line(struct hg_heldkey_board *board, struct hg_gate_line *in)
{
    for (struct hg_keyshare_key *key = NULL; (key = hg_keyshare_each(&in->keys, key)) != NULL;) {
        struct hg_heldkey *held = hg_heldkey_of(key);
        look_at(in, held);
        if (is_shown(in, held))
            show(board, in, held);
    }
}

void hg_heldkeys_look(struct hg_worker *worker)
{
    struct hg_heldkey_board *board = &worker->heldkey_board;
    pthread_mutex_lock(&board->lock);
    board->count = 0;
    for (unsigned slot = 0; slot < HG_UPSTREAMS_MAX; slot++) {
        if (worker->gates[slot] == NULL)
            continue;
        HG_LIST_EACH(node, &worker->gates[slot]->parts)
        for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
            look_at_line(board, &HG_CONTAINER_OF(node, struct hg_gate_part, node)->lines[kind]);
    }
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
