// binds - who piles up at a backlogged server: housekeeping's side of bind eviction
// SPDX-License-Identifier: BSD-3-Clause
#include "app/binds.h"

#include <stdlib.h>
#include <string.h>

#include "app/process.h"
#include "app/upstreams_view.h"
#include "base/clock.h"
#include "front/gateset.h"

/* Of a store that has answered nothing lately few requests are left, and a share of them says
   little: the key that is to blame has most of them. */
#define STILL_PCT 50

struct hg_binds_round {
    struct hg_list node;
    struct hg_upstream *upstream; /* counted */
    struct hg_gateshare *share;   /* of its server */
    uint64_t number;
    unsigned workers, reported;
    struct hg_bindwatch_conf conf;
    struct hg_evict_report *reports[]; /* by worker; NULL: not yet */
};

static void free_round(struct hg_binds_round *round)
{
    for (unsigned w = 0; w < round->workers; w++)
        if (round->reports[w] != NULL)
            hg_evict_report_free(round->reports[w]);
    hg_list_remove(&round->node);
    hg_upstream_unref(round->upstream);
    free(round);
}

/* ---- judging ---- */

/* A copy for one worker, with references. */
static struct hg_evict_key *copy_keys(const struct hg_bindwatch_verdict *verdicts, size_t count)
{
    struct hg_evict_key *keys = calloc(count, sizeof *keys);
    for (size_t i = 0; keys != NULL && i < count; i++) {
        const struct hg_bindwatch_verdict *verdict = &verdicts[i];
        keys[i].bucket = hg_bucket_ref((struct hg_bucket *)(uintptr_t)verdict->tenant);
        keys[i].verdict = *verdict;
        memcpy(keys[i].key, verdict->key.bytes.at, verdict->key.bytes.len);
    }
    return keys;
}

static void order(struct hg_binds *binds, const struct hg_binds_round *round,
                  const struct hg_bindwatch_verdict *verdicts, size_t count, uint32_t worker)
{
    struct hg_front *front = &binds->process->front;
    hg_counter_add(&binds->keys_evicted, count);
    for (unsigned w = 0; count > 0 && w < round->workers; w++) {
        struct hg_evict_key *keys = copy_keys(verdicts, count);
        if (keys != NULL)
            hg_evict_order(&front->workers[w], round->upstream, round->share->index, keys, count);
    }
    if (count > 0 || worker == UINT32_MAX)
        return;
    hg_counter_add(&binds->oldest_evicted, 1);
    hg_evict_order(&front->workers[worker], round->upstream, round->share->index, NULL, 0);
}

/* Stranded slots are nobody's, and used all the same. */
static uint32_t stranded_of(struct hg_gateshare *share)
{
    int64_t sum = 0;
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
        sum += atomic_load_explicit(&share->holders[kind].stranded, memory_order_relaxed);
    return sum > 0 ? (uint32_t)sum : 0;
}

static void judge(struct hg_binds *binds, struct hg_binds_round *round)
{
    size_t rows = 0;
    for (unsigned w = 0; w < round->workers; w++)
        if (round->reports[w] != NULL)
            rows += round->reports[w]->report.count;
    void *memory = malloc(hg_bindwatch_bytes(rows + 1));
    if (memory == NULL)
        return;
    struct hg_bindwatch *watch = hg_bindwatch_init(memory, rows + 1);
    const struct hg_bindwatch_report stranded = {.used = stranded_of(round->share)};
    for (unsigned w = 0; w < round->workers; w++)
        if (round->reports[w] != NULL)
            hg_bindwatch_add(watch, w, &round->reports[w]->report);
    hg_bindwatch_add(watch, 0, &stranded);
    const struct hg_bindwatch_verdict *verdicts;
    uint32_t worker;
    size_t count = hg_bindwatch_judge(watch, &round->conf, &verdicts, &worker);
    order(binds, round, verdicts, count, worker);
    free(memory);
}

static void finish(struct hg_binds *binds, struct hg_binds_round *round)
{
    judge(binds, round);
    free_round(round);
}

static struct hg_binds_round *find_round(struct hg_binds *binds, uint64_t number)
{
    HG_LIST_EACH(node, &binds->rounds)
    {
        struct hg_binds_round *round = HG_CONTAINER_OF(node, struct hg_binds_round, node);
        if (round->number == number)
            return round;
    }
    return NULL;
}

static void on_report(struct hg_letter *letter, void *receiver)
{
    struct hg_evict_report *report = HG_CONTAINER_OF(letter, struct hg_evict_report, letter);
    struct hg_binds *binds = report->ctx;
    struct hg_binds_round *round = find_round(binds, report->round);
    (void)receiver;
    if (round == NULL || report->worker >= round->workers ||
        round->reports[report->worker] != NULL) {
        hg_counter_add(&binds->late_reports, 1);
        hg_evict_report_free(report);
        return;
    }
    round->reports[report->worker] = report;
    if (++round->reported == round->workers)
        finish(binds, round);
}

/* ---- looking ---- */

static bool is_backlogged(struct hg_gateshare *share, uint64_t backlog_us, uint64_t now_us)
{
    uint64_t since_us = atomic_load(&share->backlog_since_us);
    if (atomic_load(&share->backlog) <= 0) {
        hg_gateshare_settle(share, now_us);
        return false;
    }
    return since_us != 0 && now_us > since_us && now_us - since_us >= backlog_us;
}

/* What a server has answered since the last look. */
struct done {
    bool still;        /* it has answered nothing */
    uint64_t usual_us; /* mean service of what it has answered; 0: nothing */
};

static struct done look(struct hg_gateshare *share)
{
    uint64_t answered = 0, service_us = 0;
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
        for (unsigned w = 0; w < share->holders[kind].worker_count; w++) {
            const struct hg_gate_tally *tally = &share->holders[kind].workers[w].tally;
            answered += hg_counter_get(&tally->answered);
            service_us += hg_counter_get(&tally->processing_us);
        }
    struct done done = {.still = answered == share->looked_answered};
    /* Less than before: somebody has just set the counters to 0. */
    if (answered > share->looked_answered && service_us >= share->looked_service_us)
        done.usual_us =
            (service_us - share->looked_service_us) / (answered - share->looked_answered);
    share->looked_answered = answered;
    share->looked_service_us = service_us;
    return done;
}

static bool may_evict_longest(const struct hg_upstream *upstream)
{
    pthread_mutex_lock(&upstream->gates->lock);
    bool longest = upstream->gates->conf.evict_longest;
    pthread_mutex_unlock(&upstream->gates->lock);
    return longest;
}

static void begin(struct hg_binds *binds, struct hg_upstream *upstream, struct hg_gateshare *share,
                  const struct hg_bind_settings *settings, const struct done *done)
{
    struct hg_front *front = &binds->process->front;
    struct hg_binds_round *round =
        calloc(1, sizeof *round + front->worker_count * sizeof *round->reports);
    if (round == NULL)
        return;
    round->upstream = hg_upstream_ref(upstream);
    round->share = share;
    round->number = ++binds->last_round;
    round->workers = front->worker_count;
    bool longest = may_evict_longest(upstream);
    round->conf = (struct hg_bindwatch_conf){
        .threshold_pct = settings->threshold_pct,
        .min_age_us = settings->min_age_us,
        .least_pct = done->still ? STILL_PCT : 0,
        .dear_us =
            hg_bindwatch_dear_us(done->usual_us, longest ? settings->min_age_us : UINT64_MAX),
        .evict_longest = longest,
    };
    hg_list_append(&binds->rounds, &round->node);
    hg_counter_add(&binds->rounds_begun, 1);
    for (unsigned w = 0; w < front->worker_count; w++)
        hg_evict_ask(&front->workers[w], upstream, share->index, round->number,
                     &binds->process->house, on_report, binds);
}

static void look_at(struct hg_binds *binds, struct hg_upstream *upstream, uint64_t now_us)
{
    const struct hg_directory *directory = binds->process->directory;
    const struct hg_bind_settings *settings = &directory->settings.bind;
    for (unsigned i = 0; i < hg_gateset_count(upstream->gates); i++) {
        struct hg_gateshare *share = hg_gateset_at(upstream->gates, i);
        const struct done done = look(share);
        bool alive;
        if (!is_backlogged(share, settings->backlog_us, now_us))
            continue;
        pthread_mutex_lock(&upstream->gates->lock);
        alive = hg_upstream_is_server_alive(directory, upstream, share->server);
        pthread_mutex_unlock(&upstream->gates->lock);
        /* Of a store that does not answer at all no key is to blame. */
        if (alive)
            begin(binds, upstream, share, settings, &done);
    }
}

static void on_look(struct hg_timer *timer)
{
    struct hg_binds *binds = HG_CONTAINER_OF(timer, struct hg_binds, timer);
    /* Only housekeeping changes the directory. */
    const struct hg_directory *directory = binds->process->directory;
    uint64_t now_us = hg_now_us();
    HG_LIST_EACH(node, &binds->rounds)
    finish(binds, HG_CONTAINER_OF(node, struct hg_binds_round, node));
    for (size_t i = 0; i < directory->upstream_count; i++)
        look_at(binds, directory->upstreams[i], now_us);
}

int hg_binds_start(struct hg_binds *binds, struct hg_process *process, struct hg_loop *loop)
{
    binds->process = process;
    hg_list_init(&binds->rounds);
    int rc = hg_loop_timer_init(loop, &binds->timer, HG_BINDS_LOOK_US, on_look);
    binds->is_open = rc == 0;
    return rc;
}

void hg_binds_stop(struct hg_binds *binds)
{
    if (!binds->is_open)
        return;
    hg_loop_timer_fini(&binds->timer);
    binds->is_open = false;
    HG_LIST_EACH(node, &binds->rounds)
    free_round(HG_CONTAINER_OF(node, struct hg_binds_round, node));
}
