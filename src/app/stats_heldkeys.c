// stats_heldkeys - statistics of the keys that are held at their share of a server's tickets
// SPDX-License-Identifier: BSD-3-Clause
//
// One packet for each key, server and kind of ticket, named keyshare:N, longest waiting line first,
// whose value is a JSON object. Records are each worker's own: what is shown is the longest service
// and the earliest begin, and the sums of the rest.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/rights.h"
#include "app/stats.h"
#include "app/stats_rows.h"
#include "base/clock.h"
#include "base/log.h"
#include "front/heldkeyboard.h"
#include "proto/status.h"

static bool take_board(struct hg_stats_rows *list, struct hg_heldkey_board *board)
{
    struct hg_heldkey_shown *row = NULL;
    pthread_mutex_lock(&board->lock);
    size_t i = 0;
    for (; i < board->count; i++) {
        if (board->rows[i].is_over)
            continue;
        if ((row = hg_stats_add(list)) == NULL)
            break;
        *row = board->rows[i];
    }
    bool done = i == board->count;
    pthread_mutex_unlock(&board->lock);
    return done;
}

static int compare_keys(const void *a, const void *b)
{
    const struct hg_heldkey_shown *left = a, *right = b;
    int order = strcmp(left->bucket, right->bucket);
    if (order == 0)
        order = strcmp(left->upstream, right->upstream);
    if (order == 0)
        order = strcmp(left->server, right->server);
    if (order == 0)
        order = (int)left->kind - (int)right->kind;
    return order != 0 ? order : (left->id > right->id) - (left->id < right->id);
}

static int compare_lines(const void *a, const void *b)
{
    const struct hg_heldkey_shown *left = a, *right = b;
    if (left->waiting != right->waiting)
        return left->waiting > right->waiting ? -1 : 1;
    if (left->refused != right->refused)
        return left->refused > right->refused ? -1 : 1;
    return compare_keys(a, b);
}

static void absorb(void *a, const void *b)
{
    struct hg_heldkey_shown *into = a;
    const struct hg_heldkey_shown *from = b;
    into->out += from->out;
    into->waiting += from->waiting;
    into->refused += from->refused;
    into->service_us = from->service_us > into->service_us ? from->service_us : into->service_us;
    into->since_us = from->since_us < into->since_us ? from->since_us : into->since_us;
}

static json_t *row_json(const struct hg_heldkey_shown *row, uint64_t now_us)
{
    char key[4 * HG_REQUEST_KEY_HEAD + 1];
    uint64_t lasted_us = now_us > row->since_us ? now_us - row->since_us : 0;
    hg_escape(key, sizeof key, hg_span(row->key, row->key_len));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:f, s:I, s:I, s:b}", "tenant",
                     row->bucket, "v", key, "upstream", row->upstream, "server", row->server,
                     "tickets", row->kind == HG_TICKET_READ ? "read" : "write", "out",
                     (json_int_t)row->out, "waiting", (json_int_t)row->waiting, "serviceMillis",
                     (double)row->service_us / 1e3, "sinceMillis", (json_int_t)(lasted_us / 1000),
                     "refused", (json_int_t)row->refused, "observed", (int)row->is_observed);
}

static void add_row(struct hg_job *job, unsigned number, const struct hg_heldkey_shown *shown)
{
    char name[32];
    json_t *row = row_json(shown, hg_now_us());
    char *text = row != NULL ? json_dumps(row, JSON_COMPACT | JSON_REAL_PRECISION(5)) : NULL;
    snprintf(name, sizeof name, "keyshare:%u", number);
    if (text == NULL)
        hg_job_fail(job, HG_STATUS_EINTERNAL, "no memory is left");
    else
        hg_job_stat_bytes(job, hg_span_str(name), hg_span_str(text));
    free(text);
    json_decref(row);
}

void hg_stats_heldkeys(struct hg_process *process, struct hg_job *job)
{
    struct hg_stats_rows list = {.row_bytes = sizeof(struct hg_heldkey_shown)};
    bool done = true;
    unsigned number = 0;
    for (unsigned w = 0; done && w < process->front.worker_count; w++)
        done = take_board(&list, &process->workers[w].heldkey_board);
    if (!done)
        hg_job_fail(job, HG_STATUS_EINTERNAL, "no memory is left");
    hg_stats_merge(&list, compare_keys, absorb, compare_lines);
    const struct hg_heldkey_shown *rows = list.rows;
    for (size_t i = 0; i < list.count; i++) {
        const struct hg_bucket *bucket =
            hg_directory_bucket(process->directory, hg_span_str(rows[i].bucket));
        if (bucket != NULL && hg_stats_may_see(job, bucket))
            add_row(job, ++number, &rows[i]);
    }
    free(list.rows);
}
