// gateshare - tickets: what the workers and the process share
// SPDX-License-Identifier: BSD-3-Clause
#include "front/gateshare.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_WIDE 1000000

const struct hg_gate_stat_row hg_gate_stat_rows[] = {
#define HG_GATE_STAT(field, kind, printed, text) {#field, printed, text},
#include "front/gate.def"
#undef HG_GATE_STAT
};

const char *hg_gate_place_name(enum hg_gate_place place)
{
    static const char *const names[HG_GATE_PLACES] = {"ingress", "read", "write"};
    return names[place];
}

int hg_gate_holder_init(struct hg_gate_holder *holder, enum hg_gate_place place, unsigned workers,
                        int64_t size, struct hg_hist *waits)
{
    size_t bytes = workers * sizeof *holder->workers;
    memset(holder, 0, sizeof *holder);
    holder->workers = aligned_alloc(HG_CACHE_LINE, bytes);
    if (holder->workers == NULL)
        return -ENOMEM;
    memset(holder->workers, 0, bytes);
    if (waits == NULL)
        waits = holder->own_waits = calloc(workers, sizeof *waits);
    if (waits == NULL) {
        hg_gate_holder_fini(holder);
        return -ENOMEM;
    }
    holder->worker_count = workers;
    holder->place = place;
    holder->waits = waits;
    hg_ticket_init(&holder->ticket, size);
    atomic_init(&holder->max_waiting, OPEN_WIDE);
    atomic_init(&holder->queue_timeout_us, 1000000);
    atomic_init(&holder->flood_wait_us, 100000);
    atomic_init(&holder->key_share_pct, 100);
    atomic_init(&holder->may_exceed, false);
    return 0;
}

uint32_t hg_gate_holder_resize(struct hg_gate_holder *holder, int64_t size, uint64_t now_us)
{
    if (size > hg_ticket_size(&holder->ticket))
        atomic_store_explicit(&holder->grew_us, now_us, memory_order_relaxed);
    return hg_ticket_resize(&holder->ticket, size);
}

void hg_gate_holder_fini(struct hg_gate_holder *holder)
{
    free(holder->workers);
    free(holder->own_waits);
    holder->workers = NULL;
    holder->own_waits = NULL;
}

struct hg_gateshare *hg_gateshare_new(const char *server, unsigned workers,
                                      struct hg_hist *waits[HG_TICKET_KINDS])
{
    struct hg_gateshare *share = aligned_alloc(HG_CACHE_LINE, sizeof *share);
    if (share == NULL)
        return NULL;
    memset(share, 0, sizeof *share);
    share->server = strdup(server);
    if (share->server == NULL) {
        free(share);
        return NULL;
    }
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
        if (hg_gate_holder_init(&share->holders[kind],
                                (enum hg_gate_place)(HG_GATE_READ + (int)kind), workers, OPEN_WIDE,
                                waits[kind]) != 0) {
            hg_gateshare_free(share);
            return NULL;
        }
    return share;
}

void hg_gateshare_free(struct hg_gateshare *share)
{
    if (share == NULL)
        return;
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
        hg_gate_holder_fini(&share->holders[kind]);
    free(share->server);
    free(share);
}

void hg_gate_tally_add(const struct hg_gate_tally *tally, uint64_t sums[HG_GATE_STATS])
{
    const size_t longest = offsetof(struct hg_gate_tally, delinquent_max_ms) / sizeof(hg_counter);
    const hg_counter *of = (const hg_counter *)tally;
    for (unsigned s = 0; s < HG_GATE_STATS; s++) {
        uint64_t value = hg_counter_get(&of[s]);
        if (s != longest)
            sums[s] += value;
        else if (value > sums[s])
            sums[s] = value;
    }
}

int64_t hg_gate_holder_kept(const struct hg_gate_holder *holder)
{
    int64_t kept = 0;
    for (unsigned w = 0; w < holder->worker_count; w++)
        kept += hg_ticket_kept(&holder->workers[w].purse);
    return kept;
}

void hg_gate_holder_sum(const struct hg_gate_holder *holder, uint64_t sums[HG_GATE_STATS])
{
    memset(sums, 0, HG_GATE_STATS * sizeof *sums);
    for (unsigned w = 0; w < holder->worker_count; w++)
        hg_gate_tally_add(&holder->workers[w].tally, sums);
}

void hg_gate_tally_reset(struct hg_gate_tally *tally)
{
    uint64_t taken = hg_counter_get(&tally->started) - hg_counter_get(&tally->answered) -
                     hg_counter_get(&tally->unanswered);
    uint64_t waiting = hg_counter_get(&tally->added) - hg_counter_get(&tally->removed);
    uint64_t exempt =
        hg_counter_get(&tally->exempt_started) - hg_counter_get(&tally->exempt_finished);
    hg_counter *of = (hg_counter *)tally;
    for (unsigned s = 0; s < HG_GATE_STATS; s++)
        hg_counter_set(&of[s], 0);
    hg_counter_set(&tally->started, taken);
    hg_counter_set(&tally->added, waiting);
    hg_counter_set(&tally->exempt_started, exempt);
}

/* Longer ago than the gap; 0: it never was. */
static bool is_past(_Atomic uint64_t *at_us, uint64_t now_us)
{
    uint64_t us = atomic_load_explicit(at_us, memory_order_relaxed);
    return us == 0 || (now_us > us && now_us - us > HG_GATESHARE_GAP_US);
}

bool hg_gateshare_is_over(const struct hg_gateshare *share, uint64_t now_us)
{
    struct hg_gateshare *of = (struct hg_gateshare *)(uintptr_t)share;
    bool free = true;
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
        free &= hg_ticket_available(&share->holders[kind].ticket) > 0;
    return is_past(&of->backlog_late_us, now_us) &&
           (free || is_past(&of->backlog_empty_us, now_us));
}

void hg_gateshare_settle(struct hg_gateshare *share, uint64_t now_us)
{
    uint64_t none = 0;
    if (atomic_load(&share->backlog_since_us) == 0 || !hg_gateshare_is_over(share, now_us))
        return;
    atomic_store(&share->backlog_since_us, 0);
    /* Who began to wait meanwhile saw the old time, and left it: theirs begins now. */
    if (atomic_load(&share->backlog) > 0)
        atomic_compare_exchange_strong(&share->backlog_since_us, &none, now_us);
}

void hg_gateshare_backlog(struct hg_gateshare *share, int change, uint64_t now_us)
{
    int64_t before = atomic_fetch_add(&share->backlog, change);
    uint64_t since_us = atomic_load_explicit(&share->backlog_since_us, memory_order_relaxed);
    if (before <= 0 && before + change > 0) {
        bool goes_on = since_us != 0 && !(is_past(&share->backlog_empty_us, now_us) &&
                                          is_past(&share->backlog_late_us, now_us));
        if (!goes_on)
            atomic_compare_exchange_strong(&share->backlog_since_us, &since_us, now_us);
    } else if (before > 0 && before + change <= 0) {
        atomic_store_explicit(&share->backlog_empty_us, now_us, memory_order_relaxed);
        hg_gateshare_settle(share, now_us);
    }
}
