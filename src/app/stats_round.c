// stats_round - statistics that only the workers themselves can collect
// SPDX-License-Identifier: BSD-3-Clause
//
// The job is a letter: it goes from worker to worker, each adds its rows, the last answers.
#include <stdio.h>
#include <string.h>

#include "app/rights.h"
#include "app/stats.h"
#include "base/log.h"
#include "front/gateset.h"
#include "front/session.h"
#include "front/table.h"

static void go_on(struct hg_job *job, const struct hg_worker *worker)
{
    const struct hg_front *front = worker->front;
    unsigned next = worker->index + 1;
    if (next < front->worker_count)
        hg_mailbox_post(&front->workers[next].mailbox, &job->letter);
    else
        hg_job_answer(job);
}

static void start(struct hg_process *process, struct hg_job *job,
                  void (*visit)(struct hg_letter *, void *))
{
    job->letter.deliver = visit;
    hg_mailbox_post(&process->workers[0].mailbox, &job->letter);
}

/* ---- connections ---- */

static void add_connection(struct hg_job *job, const struct hg_session *session)
{
    static const char *const waits[] = {"none", "credits", "ticket", "room", "process"};
    char name[64], peer[HG_ADDR_TEXT], agent[256];
    uint64_t now_us = session->worker->loop.now_us;
    snprintf(name, sizeof name, "%u:%d", session->worker->index, session->fd);
    hg_job_stat(
        job, name,
        "peer=%s user=%s bucket=%s agent=%s age_s=%llu idle_ms=%llu requests=%llu "
        "queue=%u out_bytes=%zu wait=%s features=0x%02x tls=%s cipher=%s",
        hg_addr_text(&session->peer, peer), session->user_name != NULL ? session->user_name : "-",
        session->lane != NULL ? session->lane->bucket->name : "-",
        session->agent != NULL ? hg_escape(agent, sizeof agent, hg_span_str(session->agent)) : "-",
        (unsigned long long)(now_us - session->born_us) / 1000000,
        (unsigned long long)(now_us - session->active_us) / 1000,
        (unsigned long long)hg_counter_get(&session->requests), session->queue_len,
        session->out.bytes, waits[session->wait], session->features,
        session->tls != NULL ? hg_tls_version(session->tls) : "-",
        session->tls != NULL ? hg_tls_cipher(session->tls) : "-");
}

static void visit_connections(struct hg_letter *letter, void *receiver)
{
    struct hg_job *job = HG_CONTAINER_OF(letter, struct hg_job, letter);
    struct hg_worker *worker = receiver;
    HG_LIST_EACH(node, &worker->sessions)
    {
        const struct hg_session *session = HG_CONTAINER_OF(node, struct hg_session, node);
        bool mine = session->lane != NULL
                        ? hg_stats_may_see(job, session->lane->bucket)
                        : hg_rights_have(hg_rights_of_node(job), HG_PRIVILEGE_STATS);
        if (!session->dead && mine)
            add_connection(job, session);
    }
    go_on(job, worker);
}

void hg_stats_connections(struct hg_process *process, struct hg_job *job)
{
    start(process, job, visit_connections);
}

/* ---- slow requests ---- */

static bool may_see_slow(const struct hg_job *job, const struct hg_slow_entry *entry)
{
    if (hg_rights_have(hg_rights_of_node(job), HG_PRIVILEGE_STATS))
        return true;
    return job->bucket != NULL && strcmp(job->bucket->name, entry->bucket) == 0;
}

static void add_slow(struct hg_job *job, const struct hg_worker *worker, uint64_t number)
{
    const struct hg_slow_entry *entry = &worker->slow[number % HG_SLOW_LOG_ENTRIES];
    char name[64], key[200];
    size_t shown = entry->key_len < sizeof entry->key ? entry->key_len : sizeof entry->key;
    snprintf(name, sizeof name, "%u:%llu", worker->index, (unsigned long long)number);
    hg_job_stat(job, name,
                "time=%llu op=%s bucket=%s key=%s%s total_us=%u throttle_us=%u queue_us=%u "
                "backend_us=%u outcome=%s server=%s",
                (unsigned long long)entry->wall_s, hg_op_rows[entry->op].name, entry->bucket,
                hg_escape(key, sizeof key, hg_span(entry->key, shown)),
                shown < entry->key_len ? "..." : "", entry->total_us, entry->throttle_us,
                entry->queue_us, entry->backend_us, hg_outcome_rows[entry->outcome].name,
                entry->server[0] != '\0' ? entry->server : "-");
}

static void visit_slow(struct hg_letter *letter, void *receiver)
{
    struct hg_job *job = HG_CONTAINER_OF(letter, struct hg_job, letter);
    struct hg_worker *worker = receiver;
    uint64_t first =
        worker->slow_count > HG_SLOW_LOG_ENTRIES ? worker->slow_count - HG_SLOW_LOG_ENTRIES : 0;
    for (uint64_t n = first; n < worker->slow_count; n++)
        if (may_see_slow(job, &worker->slow[n % HG_SLOW_LOG_ENTRIES]))
            add_slow(job, worker, n);
    go_on(job, worker);
}

void hg_stats_slow(struct hg_process *process, struct hg_job *job)
{
    start(process, job, visit_slow);
}

/* ---- reset ---- */

/* By the kind of a row: what is a number of now stays. */
#define RESET_COUNTER(counter) hg_counter_set(counter, 0)
#define RESET_GAUGE(counter)   ((void)(counter))

static void reset_lane(struct hg_lane *lane)
{
#define HG_LANE(name, kind, text) RESET_##kind(&lane->name);
#include "front/lane.def"
#undef HG_LANE
    for (unsigned o = 0; o < HG_OUTCOMES; o++)
        hg_counter_set(&lane->outcomes[o], 0);
    for (unsigned place = 0; place < HG_GATE_PLACES; place++)
        hg_gate_tally_reset(&lane->tallies[place]);
}

static void reset_holder(struct hg_gate_holder *holder, unsigned worker)
{
    hg_gate_tally_reset(&holder->workers[worker].tally);
    hg_hist_init(&holder->waits[worker]);
}

static void reset_set(const struct hg_gateset *set, unsigned worker)
{
    for (unsigned i = 0; i < hg_gateset_count(set); i++)
        for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
            reset_holder(&hg_gateset_at(set, i)->holders[kind], worker);
}

static void visit_reset(struct hg_letter *letter, void *receiver)
{
    struct hg_job *job = HG_CONTAINER_OF(letter, struct hg_job, letter);
    struct hg_worker *worker = receiver;
#define HG_WORKER_STAT(name, kind, text) RESET_##kind(&worker->name);
    HG_WORKER_STATS(HG_WORKER_STAT)
#undef HG_WORKER_STAT
    hg_tables_reset(worker);
    for (unsigned o = 0; o < HG_OUTCOMES; o++)
        hg_counter_set(&worker->outcomes[o], 0);
    for (unsigned c = 0; c < 256; c++)
        hg_counter_set(&worker->opcodes[c], 0);
    for (unsigned op = 0; op < HG_OPS; op++)
        hg_hist_init(&worker->latency[op]);
    for (size_t i = 0; i < worker->directory->bucket_count; i++)
        reset_lane(&worker->directory->buckets[i]->lanes[worker->index]);
    reset_holder(&worker->front->ingress, worker->index);
    for (size_t i = 0; i < worker->directory->upstream_count; i++)
        reset_set(worker->directory->upstreams[i]->gates, worker->index);
    worker->slow_count = 0;
    go_on(job, worker);
}

/* What is housekeeping's, and the controllers'. */
static void reset_overload(struct hg_process *process)
{
#define HG_BINDS_STAT(name, kind, text) hg_counter_set(&process->binds.name, 0);
    HG_BINDS_STATS(HG_BINDS_STAT)
#undef HG_BINDS_STAT
    for (size_t i = 0; i < process->directory->upstream_count; i++) {
        struct hg_gateset *set = process->directory->upstreams[i]->gates;
        pthread_mutex_lock(&set->lock);
        memset(set->gone, 0, sizeof set->gone);
        for (unsigned s = 0; s < hg_gateset_count(set); s++)
            hg_gateset_at(set, s)->probe.stats = (struct hg_probe_stats){0};
        pthread_mutex_unlock(&set->lock);
    }
}

void hg_stats_reset(struct hg_process *process, struct hg_job *job)
{
    reset_overload(process);
    start(process, job, visit_reset);
}
