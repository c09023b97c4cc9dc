// bucket - the run-time record of a tenant: its credits, settings and counters
// SPDX-License-Identifier: BSD-3-Clause
#include "front/bucket.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "front/directory.h"

const struct hg_outcome_row hg_outcome_rows[HG_OUTCOMES] = {
#define HG_OUTCOME(name, printed, text) {printed, text},
#include "front/outcome.def"
#undef HG_OUTCOME
};

bool hg_outcome_is_refusal(enum hg_outcome outcome)
{
    switch (outcome) {
    case HG_OUTCOME_PAUSED:
    case HG_OUTCOME_DISABLED:
    case HG_OUTCOME_THROTTLED:
    case HG_OUTCOME_THROTTLED_TOO_LONG:
    case HG_OUTCOME_HOT_KEY:
    case HG_OUTCOME_BIND_THROTTLED:
    case HG_OUTCOME_KEY_SHARE:
    case HG_OUTCOME_EVICTED:
    case HG_OUTCOME_DATA_LIMIT:
    case HG_OUTCOME_CONNECTION_LIMIT:
    case HG_OUTCOME_QUEUE_FULL:
    case HG_OUTCOME_QUEUE_TIMEOUT:
    case HG_OUTCOME_BACKEND_DOWN:
        return true;
    default:
        return false;
    }
}

static void free_bucket(struct hg_bucket *bucket)
{
    if (bucket->upstream != NULL)
        hg_upstream_unref(bucket->upstream);
    for (unsigned w = 0; w < bucket->lane_count; w++)
        hg_lane_fini(&bucket->lanes[w]);
    free(bucket->prefix);
    free(bucket->credit_lanes);
    free(bucket);
}

void hg_lane_init(struct hg_lane *lane, struct hg_bucket *bucket)
{
    lane->bucket = bucket;
    hg_list_init(&lane->held);
    hg_list_init(&lane->node);
    hg_list_init(&lane->ready);
    hg_list_init(&lane->ready_node);
    hg_list_init(&lane->used);
    hg_list_init(&lane->bound);
    hg_ticketline_tenant_init(&lane->ingress);
}

static void free_cell(struct hg_gate_cell *cell)
{
    for (unsigned i = 0; cell != NULL && cell->parties != NULL && i < HG_GATE_PARTIES; i++)
        free(cell->parties[i]);
    if (cell != NULL)
        free(cell->parties);
    free(cell);
}

void hg_lane_fini(struct hg_lane *lane)
{
    for (unsigned i = 0; i < lane->cell_count; i++)
        free_cell(lane->cells[i]);
    free(lane->cells);
    lane->cells = NULL;
    lane->cell_count = 0;
}

struct hg_gate_cell *hg_gate_cell_new(void)
{
    struct hg_gate_cell *cell = calloc(1, sizeof *cell);
    for (unsigned kind = 0; cell != NULL && kind < HG_TICKET_KINDS; kind++)
        hg_ticketline_tenant_init(&cell->seats[kind].queue);
    return cell;
}

struct hg_gate_cell *hg_lane_cell(struct hg_lane *lane, unsigned server)
{
    if (server < lane->cell_count && lane->cells[server] != NULL)
        return lane->cells[server];
    if (server >= lane->cell_count) {
        struct hg_gate_cell **more = reallocarray(lane->cells, server + 1, sizeof *more);
        if (more == NULL)
            return NULL;
        for (; lane->cell_count <= server; lane->cell_count++)
            more[lane->cell_count] = NULL;
        lane->cells = more;
    }
    return lane->cells[server] = hg_gate_cell_new();
}

unsigned hg_lane_cell_count(const struct hg_lane *lane, unsigned server)
{
    if (server >= lane->cell_count || lane->cells[server] == NULL)
        return 0;
    return lane->cells[server]->parties != NULL ? 1 + HG_GATE_PARTIES : 1;
}

struct hg_gate_cell *hg_lane_cell_at(const struct hg_lane *lane, unsigned server, unsigned i)
{
    return i == 0 ? lane->cells[server] : lane->cells[server]->parties[i - 1];
}

struct hg_bucket *hg_bucket_new(const char *name, unsigned workers)
{
    size_t len = strlen(name);
    assert(len <= HG_BUCKET_NAME_MAX);
    size_t bytes = sizeof(struct hg_bucket) + workers * sizeof(struct hg_lane);
    bytes = (bytes + HG_CACHE_LINE - 1) & ~(size_t)(HG_CACHE_LINE - 1);
    struct hg_bucket *bucket = aligned_alloc(HG_CACHE_LINE, bytes);
    if (bucket == NULL)
        return NULL;
    memset(bucket, 0, bytes);
    memcpy(bucket->name, name, len);
    bucket->name_len = len;
    atomic_init(&bucket->refs, 1);
    bucket->lane_count = workers;
    atomic_init(&bucket->table_sessions, HG_TABLE_SESSIONS);
    atomic_init(&bucket->table_session_idle_s, HG_TABLE_SESSION_IDLE_S);
    hg_list_init(&bucket->cursors);
    hg_list_init(&bucket->cursors_node);
    for (unsigned w = 0; w < workers; w++)
        hg_lane_init(&bucket->lanes[w], bucket);
    bucket->prefix = calloc(1, 1);
    size_t credit_bytes = workers * sizeof(struct hg_credit_lane);
    bucket->credit_lanes = aligned_alloc(HG_CACHE_LINE, credit_bytes);
    if (bucket->prefix == NULL || bucket->credit_lanes == NULL) {
        free_bucket(bucket);
        return NULL;
    }
    memset(bucket->credit_lanes, 0, credit_bytes);
    return bucket;
}

void hg_bucket_unref(struct hg_bucket *bucket)
{
    if (bucket == NULL || atomic_fetch_sub_explicit(&bucket->refs, 1, memory_order_acq_rel) > 1)
        return;
    if (bucket->retire != NULL)
        bucket->retire(bucket, bucket->retire_ctx);
    free_bucket(bucket);
}
