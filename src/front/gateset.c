// gateset - the tickets of an upstream: one share for each of its servers
// SPDX-License-Identifier: BSD-3-Clause
#include "front/gateset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/ticketshare.h"
#include "front/gate.h"

#define HOLDERS_MAX (HG_GATESET_MAX * HG_TICKET_KINDS)

struct hg_gateset *hg_gateset_new(unsigned workers)
{
    struct hg_gateset *set = calloc(1, sizeof *set);
    if (set == NULL)
        return NULL;
    set->workers = workers;
    pthread_mutex_init(&set->lock, NULL);
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++) {
        set->waits[kind] = calloc(workers, sizeof *set->waits[kind]);
        if (set->waits[kind] == NULL) {
            hg_gateset_free(set);
            return NULL;
        }
    }
    return set;
}

void hg_gateset_free(struct hg_gateset *set)
{
    if (set == NULL)
        return;
    for (unsigned i = 0; i < hg_gateset_count(set); i++)
        hg_gateshare_free(hg_gateset_at(set, i));
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
        free(set->waits[kind]);
    pthread_mutex_destroy(&set->lock);
    free(set);
}

/* Has its server gone, and has nobody a ticket of it, or waits for one? */
static bool is_idle(const struct hg_gateshare *share)
{
    struct hg_gateshare *s = (struct hg_gateshare *)(uintptr_t)share;
    if (hg_gateset_shows(share) || atomic_load(&s->backlog) > 0)
        return false;
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
        if (hg_ticket_out(&share->holders[kind].ticket) > 0 ||
            atomic_load(&s->holders[kind].waiting) > 0)
            return false;
    return true;
}

/* ---- options ---- */

static bool is_same(const struct hg_probe_conf *a, const struct hg_probe_conf *b)
{
    return a->control == b->control && a->interval_us == b->interval_us &&
           a->read_tickets == b->read_tickets && a->write_tickets == b->write_tickets &&
           a->initial == b->initial && a->cores == b->cores && a->min == b->min &&
           a->max == b->max && a->read_write_ratio == b->read_write_ratio &&
           a->weight == b->weight && a->step == b->step;
}

static void set_lines(struct hg_gateshare *share, const struct hg_gateset_conf *conf)
{
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++) {
        struct hg_gate_holder *holder = &share->holders[kind];
        atomic_store(&holder->max_waiting, conf->max_waiting);
        atomic_store(&holder->queue_timeout_us, conf->queue_timeout_us);
        atomic_store(&holder->flood_wait_us, conf->flood_wait_us);
        atomic_store(&holder->flood_newest, conf->flood_newest);
        atomic_store(&holder->key_share_pct, conf->key_share_pct);
        atomic_store(&holder->tenant_window,
                     conf->probe.control == HG_PROBE_ADAPTIVE ? conf->tenant_window : 0);
        atomic_store(&holder->may_exceed, conf->probe.control == HG_PROBE_ADAPTIVE);
    }
}

void hg_gateset_configure(struct hg_gateset *set, struct hg_front *front,
                          const struct hg_gateset_conf *conf, uint64_t now_us)
{
    pthread_mutex_lock(&set->lock);
    bool first = !set->configured, new = first || !is_same(&set->conf.probe, &conf->probe);
    set->conf = *conf;
    set->configured = true;
    atomic_store(&set->bind_halves, conf->bind_halves);
    for (unsigned i = 0; i < hg_gateset_count(set); i++) {
        struct hg_gateshare *share = hg_gateset_at(set, i);
        set_lines(share, conf);
        if (first)
            share->stepped_us = now_us;
        if (first)
            (void)hg_probe_init(&share->probe, &conf->probe);
        else if (new)
            (void)hg_probe_configure(&share->probe, &conf->probe);
    }
    hg_gateset_resize(set, front, now_us);
    pthread_mutex_unlock(&set->lock);
}

/* ---- sizes ---- */

/* Requests that all connections to a server can carry without any behind another; 0: they are not
   set apart. A worker that has not needed any yet could have as many as another. */
static uint64_t width_of(const struct hg_gateshare *share)
{
    const struct hg_gate_holder *holder = &share->holders[HG_TICKET_READ];
    uint64_t sum = 0, most = 0, others = 0;
    for (unsigned w = 0; w < holder->worker_count; w++) {
        uint64_t width = hg_counter_get(&holder->workers[w].width);
        sum += width;
        others += width == 0;
        most = width > most ? width : most;
    }
    return sum + others * most;
}

/* More tickets than that are of no use, and put requests behind others' slow ones. What one kind
   does not use the other may. An eighth is left for tickets beyond the size (gate.c). */
static void fit_widths(struct hg_gateshare *const *shares, unsigned count, uint64_t *sizes)
{
    for (unsigned i = 0; i < count; i++) {
        uint64_t width = width_of(shares[i]);
        width -= width / 8;
        for (unsigned kind = 0; width > 0 && kind < HG_TICKET_KINDS; kind++) {
            int64_t out = hg_ticket_out(&shares[i]->holders[1 - kind].ticket);
            uint64_t used = out > 0 ? (uint64_t)out : 0;
            uint64_t most = used < width / 2 ? width - used : (width + 1) / 2;
            uint64_t *size = &sizes[i * HG_TICKET_KINDS + kind];
            *size = *size > most ? most : *size;
        }
    }
}

/* The sizes of the holders of these shares, those of a share side by side. */
static void work_out(const struct hg_gateset_conf *conf, struct hg_gateshare *const *shares,
                     unsigned count, uint64_t *sizes)
{
    static const unsigned kinds = HG_TICKET_KINDS;
    uint64_t want[HOLDERS_MAX], got[HG_GATESET_MAX];
    for (unsigned i = 0; i < count; i++)
        for (unsigned kind = 0; kind < kinds; kind++)
            sizes[i * kinds + kind] = shares[i]->probe.size[kind];
    if (conf->probe.control == HG_PROBE_FIXED && conf->is_sum) {
        const uint64_t totals[HG_TICKET_KINDS] = {conf->probe.read_tickets,
                                                  conf->probe.write_tickets};
        for (unsigned kind = 0; kind < kinds; kind++) {
            for (unsigned i = 0; i < count; i++)
                want[i] = shares[i]->demand[kind];
            hg_ticketshare_split(want, count, totals[kind], got);
            for (unsigned i = 0; i < count; i++)
                sizes[i * kinds + kind] = got[i];
        }
    }
    if (conf->probe.control == HG_PROBE_ADAPTIVE)
        fit_widths(shares, count, sizes);
    if (conf->cap > 0) {
        memcpy(want, sizes, (size_t)count * kinds * sizeof *want);
        hg_ticketshare_cap(want, (size_t)count * kinds, conf->cap, sizes);
    }
}

static void set_size(struct hg_gate_holder *holder, int64_t size, struct hg_front *front,
                     uint64_t now_us)
{
    if (hg_ticket_size(&holder->ticket) == size)
        return;
    uint32_t poke = hg_gate_holder_resize(holder, size, now_us);
    if (front != NULL && front->workers != NULL)
        hg_gate_poke(front, poke);
}

/* What servers have together is divided among those of now. */
void hg_gateset_resize(struct hg_gateset *set, struct hg_front *front, uint64_t now_us)
{
    struct hg_gateshare *shares[HG_GATESET_MAX];
    uint64_t sizes[HOLDERS_MAX];
    unsigned count = 0;
    if (!set->configured)
        return;
    for (unsigned i = 0; i < hg_gateset_count(set); i++)
        if (!is_idle(hg_gateset_at(set, i)))
            shares[count++] = hg_gateset_at(set, i);
    work_out(&set->conf, shares, count, sizes);
    for (unsigned i = 0; i < count; i++)
        for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
            set_size(&shares[i]->holders[kind], (int64_t)sizes[i * HG_TICKET_KINDS + kind], front,
                     now_us);
}

/* ---- shares ---- */

static struct hg_gateshare *find(const struct hg_gateset *set, const char *server)
{
    for (unsigned i = 0; i < hg_gateset_count(set); i++)
        if (strcmp(hg_gateset_at(set, i)->server, server) == 0)
            return hg_gateset_at(set, i);
    return NULL;
}

/* A server's share begins with what the options say. */
static void begin(struct hg_gateset *set, struct hg_gateshare *share)
{
    share->demand[HG_TICKET_READ] = share->demand[HG_TICKET_WRITE] = 0;
    share->stepped_us = 0;
    memset(&share->seen, 0, sizeof share->seen);
    if (!set->configured)
        return;
    set_lines(share, &set->conf);
    (void)hg_probe_init(&share->probe, &set->conf.probe);
}

/* One whose server has gone, for another. */
static struct hg_gateshare *use_again(struct hg_gateset *set, const char *server)
{
    for (unsigned i = 0; i < hg_gateset_count(set); i++) {
        struct hg_gateshare *share = hg_gateset_at(set, i);
        if (!is_idle(share))
            continue;
        char *name = strdup(server);
        if (name == NULL)
            return NULL;
        free(share->server);
        share->server = name;
        for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++) {
            struct hg_gate_holder *holder = &share->holders[kind];
            for (unsigned w = 0; w < holder->worker_count; w++) {
                hg_gate_tally_add(&holder->workers[w].tally, set->gone[kind]);
                memset(&holder->workers[w], 0, sizeof holder->workers[w]);
            }
        }
        begin(set, share);
        return share;
    }
    return NULL;
}

static struct hg_gateshare *make(struct hg_gateset *set, const char *server)
{
    struct hg_gateshare *share = use_again(set, server);
    unsigned index = hg_gateset_count(set);
    if (share != NULL || index == HG_GATESET_MAX)
        return share;
    share = hg_gateshare_new(server, set->workers, set->waits);
    if (share == NULL)
        return NULL;
    share->index = index;
    begin(set, share);
    atomic_store_explicit(&set->shares[index], share, memory_order_relaxed);
    atomic_store_explicit(&set->count, index + 1, memory_order_release);
    return share;
}

struct hg_gateshare *hg_gateset_take(struct hg_gateset *set, struct hg_front *front,
                                     const char *server, uint64_t now_us)
{
    pthread_mutex_lock(&set->lock);
    struct hg_gateshare *share = find(set, server);
    bool comes = share == NULL || is_idle(share);
    if (share == NULL)
        share = make(set, server);
    if (share != NULL)
        atomic_fetch_add(&share->uses, 1);
    if (share != NULL && comes)
        hg_gateset_resize(set, front, now_us);
    pthread_mutex_unlock(&set->lock);
    return share;
}

void hg_gateset_give(struct hg_gateset *set, struct hg_gateshare *share)
{
    pthread_mutex_lock(&set->lock);
    atomic_fetch_sub(&share->uses, 1);
    pthread_mutex_unlock(&set->lock);
}

int hg_gateset_list(struct hg_gateset *set, struct hg_front *front, const char *const *servers,
                    size_t count, uint64_t now_us)
{
    int rc = 0;
    pthread_mutex_lock(&set->lock);
    for (unsigned i = 0; i < hg_gateset_count(set); i++) {
        struct hg_gateshare *share = hg_gateset_at(set, i);
        bool listed = false;
        for (size_t s = 0; s < count && !listed; s++)
            listed = strcmp(servers[s], share->server) == 0;
        atomic_store(&share->listed, listed);
    }
    for (size_t s = 0; s < count && rc == 0; s++) {
        struct hg_gateshare *share = find(set, servers[s]);
        if (share == NULL)
            share = make(set, servers[s]);
        if (share == NULL)
            rc = -ENOMEM;
        else
            atomic_store(&share->listed, true);
    }
    hg_gateset_resize(set, front, now_us);
    pthread_mutex_unlock(&set->lock);
    return rc;
}

/* ---- sums ---- */

static void add(struct hg_gateset_sum *sum, struct hg_gate_holder *holder, bool is_idle)
{
    /* One look at the word, so that size and out fit together. */
    uint64_t word = hg_ticket_word(&holder->ticket);
    sum->size += is_idle ? 0 : (int64_t)(word >> 32);
    sum->out += (int64_t)(uint32_t)word - hg_gate_holder_kept(holder);
    sum->waiting += atomic_load_explicit(&holder->waiting, memory_order_relaxed);
    sum->stranded += atomic_load_explicit(&holder->stranded, memory_order_relaxed);
    for (unsigned w = 0; w < holder->worker_count; w++)
        hg_gate_tally_add(&holder->workers[w].tally, sum->counts);
}

void hg_gateset_sum_one(struct hg_gate_holder *holder, struct hg_gateset_sum *ret)
{
    memset(ret, 0, sizeof *ret);
    hg_hist_init(&ret->waits);
    add(ret, holder, false);
    for (unsigned w = 0; w < holder->worker_count; w++) {
        ret->overloaded += hg_counter_get(&holder->workers[w].overloaded) != 0;
        if (holder->own_waits != NULL)
            hg_hist_merge(&ret->waits, &holder->own_waits[w]);
    }
}

/* Does some tenant flood a line of this worker? */
static bool is_overloaded(const struct hg_gateset *set, enum hg_ticket_kind kind, unsigned worker)
{
    for (unsigned i = 0; i < hg_gateset_count(set); i++)
        if (hg_counter_get(&hg_gateset_at(set, i)->holders[kind].workers[worker].overloaded) != 0)
            return true;
    return false;
}

void hg_gateset_sum(struct hg_gateset *set, enum hg_ticket_kind kind, struct hg_gateset_sum *ret)
{
    memset(ret, 0, sizeof *ret);
    hg_hist_init(&ret->waits);
    pthread_mutex_lock(&set->lock);
    memcpy(ret->counts, set->gone[kind], sizeof ret->counts);
    for (unsigned i = 0; i < hg_gateset_count(set); i++) {
        struct hg_gateshare *share = hg_gateset_at(set, i);
        add(ret, &share->holders[kind], is_idle(share));
    }
    for (unsigned w = 0; w < set->workers; w++) {
        ret->overloaded += is_overloaded(set, kind, w);
        hg_hist_merge(&ret->waits, &set->waits[kind][w]);
    }
    pthread_mutex_unlock(&set->lock);
}

int64_t hg_gateset_backlog(const struct hg_gateset *set, uint64_t *ret_since_us)
{
    int64_t sum = 0;
    uint64_t since_us = 0;
    for (unsigned i = 0; i < hg_gateset_count(set); i++) {
        struct hg_gateshare *share = hg_gateset_at(set, i);
        int64_t backlog = atomic_load(&share->backlog);
        uint64_t since = atomic_load(&share->backlog_since_us);
        if (backlog <= 0)
            continue;
        sum += backlog;
        if (since != 0 && (since_us == 0 || since < since_us))
            since_us = since;
    }
    *ret_since_us = since_us;
    return sum;
}

struct hg_probe_stats hg_gateset_probe_stats(struct hg_gateset *set)
{
    struct hg_probe_stats sum = {0};
    pthread_mutex_lock(&set->lock);
    for (unsigned i = 0; i < hg_gateset_count(set); i++) {
        const struct hg_probe_stats *of = &hg_gateset_at(set, i)->probe.stats;
        sum.probed_stable += of->probed_stable;
        sum.probed_up += of->probed_up;
        sum.probed_down += of->probed_down;
        sum.increased += of->increased;
        sum.decreased += of->decreased;
        sum.amount_increased += of->amount_increased;
        sum.amount_decreased += of->amount_decreased;
        sum.stalls += of->stalls;
    }
    pthread_mutex_unlock(&set->lock);
    return sum;
}
