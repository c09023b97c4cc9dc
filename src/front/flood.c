// flood - tenants that flood a line: what is counted of them, and what others see
// SPDX-License-Identifier: BSD-3-Clause
#include "front/flood.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "front/gate_in.h"

/* A tenant is on the board for so long after the last refusal, so that all looks of others see the
   last count; then the count begins anew. */
#define SHOWN_US 15000000
#define ANEW_US  (2 * (uint64_t)SHOWN_US)

void hg_flood_count(struct hg_flood_count *count, uint64_t now_us)
{
    if (count->number == 0 || now_us - count->last_us >= ANEW_US) {
        count->number = now_us;
        count->refused = 0;
    }
    count->last_us = now_us;
    count->refused++;
}

/* ---- the board ---- */

static void copy(char *to, size_t bytes, const char *from)
{
    size_t len = strnlen(from, bytes - 1);
    memcpy(to, from, len);
    to[len] = '\0';
}

static bool does_flood(const struct hg_gate_line *in, const struct hg_ticketline_tenant *place)
{
    const struct hg_ticketline_conf conf = hg_gate_flood_conf(in);
    return hg_ticketline_flood_since_us(place, &conf, in->worker->loop.now_us) != 0;
}

static void show(struct hg_flood_board *board, const struct hg_gate_line *in,
                 const struct hg_lane *lane, bool floods, const struct hg_flood_count *count)
{
    uint64_t now_us = in->worker->loop.now_us;
    bool refused = count->number != 0 && now_us - count->last_us < SHOWN_US;
    if (!floods && !refused)
        return;
    struct hg_flood_shown *rows = hg_grow(board->rows, &board->cap, board->count + 1, sizeof *rows);
    if (rows == NULL)
        return;
    board->rows = rows;
    struct hg_flood_shown *row = &rows[board->count++];
    *row = (struct hg_flood_shown){.place = (uint8_t)in->place, .floods = floods};
    if (refused) {
        row->number = count->number;
        row->refused = count->refused;
    }
    copy(row->bucket, sizeof row->bucket, lane->bucket->name);
    if (in->part == NULL)
        return;
    copy(row->upstream, sizeof row->upstream, in->part->gate->upstream->name);
    copy(row->server, sizeof row->server, in->part->share->server);
}

/* Has some tenant flooded it a moment ago? */
static bool was_flooded(const struct hg_gate_line *in)
{
    return in->line.flooded_us != 0 && in->worker->loop.now_us < in->line.flooded_us + SHOWN_US;
}

/* Does the tenant, or a party of it (gate_party.c), flood the line? */
static bool does_cell_flood(const struct hg_gate_line *in, const struct hg_gate_cell *cell)
{
    bool floods = cell->home == in->part->number &&
                  does_flood(in, &cell->seats[in->place - HG_GATE_READ].queue);
    for (unsigned i = 0; !floods && cell->parties != NULL && i < HG_GATE_PARTIES; i++)
        floods = cell->parties[i] != NULL && does_cell_flood(in, cell->parties[i]);
    return floods;
}

static void look_at_line(void *board, struct hg_gate_line *in)
{
    if (!was_flooded(in))
        return;
    HG_LIST_EACH(node, &in->worker->lanes_used)
    {
        const struct hg_lane *lane = HG_CONTAINER_OF(node, struct hg_lane, used);
        if (in->part == NULL) {
            show(board, in, lane, does_flood(in, &lane->ingress), &lane->ingress_flood);
            continue;
        }
        const struct hg_gate_cell *cell =
            in->part->index < lane->cell_count ? lane->cells[in->part->index] : NULL;
        if (cell != NULL)
            show(board, in, lane, does_cell_flood(in, cell),
                 &cell->seats[in->place - HG_GATE_READ].flood);
    }
}

void hg_floods_look(struct hg_worker *worker)
{
    struct hg_flood_board *board = &worker->flood_board;
    pthread_mutex_lock(&board->lock);
    board->count = 0;
    look_at_line(board, worker->ingress);
    hg_gates_each_line(worker, look_at_line, board);
    pthread_mutex_unlock(&board->lock);
}

/* ---- the worker's part ---- */

int hg_floods_open(struct hg_worker *worker)
{
    return -pthread_mutex_init(&worker->flood_board.lock, NULL);
}

void hg_floods_free(struct hg_worker *worker)
{
    free(worker->flood_board.rows);
    pthread_mutex_destroy(&worker->flood_board.lock);
}
