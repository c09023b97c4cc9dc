// bindsim - an upstream of few slots, its line, and clients in closed loop, in virtual time
// SPDX-License-Identifier: BSD-3-Clause
#include "bindsim.h"

#define STEP_US  BINDSIM_MS
#define ROUND_US (100 * BINDSIM_MS)
#define EMPTY    UINT64_MAX

struct bindsim *bindsim_new(uint32_t slots, uint64_t seed)
{
    struct bindsim *sim = calloc(1, sizeof *sim);

    sim->conf = (struct bindsim_conf){
        .slots = slots,
        .watching = true,
        .threshold_pct = 25,
        .target_pct = 50,
        .decr_per_sec = 1.0,
        .backlog_us = 1000 * BINDSIM_MS,
        .min_age_us = 200 * BINDSIM_MS,
        .queue_timeout_us = 1000 * BINDSIM_MS,
        .deadline_us = 2500 * BINDSIM_MS,
        .bind_min_bytes = 8,
    };
    sim->dice.state = seed;
    sim->now_us = SECOND_US;
    sim->backlog_since_us = sim->first_backlog_us = EMPTY;
    for (uint32_t w = 0; w < BINDSIM_WORKERS; w++)
        sim->tables[w] = table_new(16);
    sim->watch = hg_bindwatch_init(malloc(hg_bindwatch_bytes(BINDSIM_CLIENTS)), BINDSIM_CLIENTS);
    return sim;
}

void bindsim_free(struct bindsim *sim)
{
    for (uint32_t w = 0; w < BINDSIM_WORKERS; w++)
        free(sim->tables[w]);
    for (uint32_t g = 0; g < BINDSIM_GROUPS; g++)
        free(sim->counts[g].latency_us);
    free(sim->watch);
    free(sim);
}

/* A tenth more or less. */
static uint64_t about(struct bindsim *sim, uint64_t us)
{
    return us - us / 10 + hg_prng_below(&sim->dice, us / 5 + 1);
}

static uint32_t worker_of(uint32_t client)
{
    return client % BINDSIM_WORKERS;
}

uint32_t bindsim_add(struct bindsim *sim, const struct bindsim_group *group)
{
    uint32_t g = sim->group_count++;

    sim->groups[g] = *group;
    sim->first_evicted_us[g] = EMPTY;
    sim->counts[g].latency_us = malloc(BINDSIM_SAMPLES * sizeof(uint32_t));
    for (uint32_t i = 0; i < group->clients; i++) {
        struct bindsim_client *client = &sim->clients[sim->client_count++];
        client->group = g;
        if (group->keys > 0)
            snprintf(client->text, sizeof client->text, "%s%04u", group->key, i % group->keys);
        else
            snprintf(client->text, sizeof client->text, "%s", group->key);
        client->key = key_of(group->type, client->text);
        /* they do not begin in step */
        client->next_us = sim->now_us + group->from_us +
                          hg_prng_below(&sim->dice, group->think_us + 5 * BINDSIM_MS);
    }
    return g;
}

static void answer(struct bindsim *sim, uint32_t c, bool error)
{
    struct bindsim_client *client = &sim->clients[c];
    const struct bindsim_group *group = &sim->groups[client->group];

    client->state = BINDSIM_IDLE;
    client->next_us = sim->now_us + about(sim, error ? group->retry_us : group->think_us);
}

uint32_t bindsim_used(const struct bindsim *sim)
{
    uint32_t used = 0;
    for (uint32_t s = 0; s < sim->conf.slots; s++)
        used += sim->slots[s].used;
    return used;
}

uint32_t bindsim_holds(const struct bindsim *sim, uint32_t group)
{
    uint32_t holds = 0;
    for (uint32_t s = 0; s < sim->conf.slots; s++)
        holds += sim->slots[s].used && sim->slots[s].client >= 0 &&
                 sim->clients[sim->slots[s].client].group == group;
    return holds;
}

/* ---- slots ---- */

static void begin(struct bindsim *sim, struct bindsim_slot *slot)
{
    struct bindsim_client *client = &sim->clients[slot->client];

    slot->held = false;
    slot->began_us = sim->now_us;
    slot->ends_us = sim->now_us + about(sim, sim->groups[client->group].service_us);
    client->state = BINDSIM_RUNS;
}

static bool quarantine_busy(const struct bindsim *sim, uint32_t worker)
{
    for (uint32_t s = 0; s < sim->conf.slots; s++) {
        const struct bindsim_slot *slot = &sim->slots[s];
        if (slot->used && slot->quarantine && !slot->held && slot->worker == worker)
            return true;
    }
    return false;
}

static void end_services(struct bindsim *sim)
{
    for (uint32_t s = 0; s < sim->conf.slots; s++) {
        struct bindsim_slot *slot = &sim->slots[s];
        if (!slot->used || slot->held || slot->ends_us > sim->now_us)
            continue;
        slot->used = false;
        if (slot->client < 0)
            continue;
        struct bindsim_client *client = &sim->clients[slot->client];
        struct bindsim_counts *counts = &sim->counts[client->group];
        counts->answered++;
        if (counts->samples < BINDSIM_SAMPLES)
            counts->latency_us[counts->samples++] = (uint32_t)(sim->now_us - client->asked_us);
        answer(sim, (uint32_t)slot->client, false);
    }
    for (uint32_t s = 0; s < sim->conf.slots; s++) {
        struct bindsim_slot *slot = &sim->slots[s];
        if (slot->used && slot->held && !quarantine_busy(sim, slot->worker))
            begin(sim, slot);
    }
}

static void grant(struct bindsim *sim)
{
    uint32_t served = 0;

    for (uint32_t s = 0; s < sim->conf.slots && served < sim->waiting; s++) {
        struct bindsim_slot *slot = &sim->slots[s];
        if (slot->used)
            continue;
        uint32_t c = sim->line[served++];
        *slot = (struct bindsim_slot){
            .used = true,
            .client = (int)c,
            .worker = worker_of(c),
            .quarantine = sim->clients[c].quarantine,
        };
        slot->held = slot->quarantine;
        sim->clients[c].state = BINDSIM_HELD;
        if (!slot->quarantine)
            begin(sim, slot);
        else if (!quarantine_busy(sim, slot->worker))
            begin(sim, slot);
    }
    sim->waiting -= served;
    memmove(sim->line, sim->line + served, sim->waiting * sizeof *sim->line);
}

/* Those who have waited too long, for a slot or for the quarantine. */
static void expire(struct bindsim *sim)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < sim->waiting; i++) {
        uint32_t c = sim->line[i];
        if (sim->now_us - sim->clients[c].asked_us < sim->conf.queue_timeout_us) {
            sim->line[left++] = c;
            continue;
        }
        sim->counts[sim->clients[c].group].late++;
        if (sim->clients[c].quarantine)
            hg_bindthrottle_undo(sim->tables[worker_of(c)], &sim->clients[c].key,
                                 sim->clients[c].change);
        answer(sim, c, true);
    }
    sim->waiting = left;
    for (uint32_t s = 0; s < sim->conf.slots; s++) {
        struct bindsim_slot *slot = &sim->slots[s];
        if (!slot->used || !slot->held ||
            sim->now_us - sim->clients[slot->client].asked_us < sim->conf.deadline_us)
            continue;
        sim->counts[sim->clients[slot->client].group].late++;
        answer(sim, (uint32_t)slot->client, true);
        slot->used = false;
    }
}

/* ---- attempts ---- */

static void note_pass(struct bindsim *sim, uint32_t c, const struct hg_bindthrottle_told *told,
                      bool busy)
{
    uint32_t worker = worker_of(c), group = sim->clients[c].group;

    sim->counts[group].passed++;
    if (told->x > sim->max_x)
        sim->max_x = told->x;
    if (sim->pass_count < BINDSIM_PASSES)
        sim->passes[sim->pass_count++] = (struct bindsim_pass){
            sim->now_us, worker, group, sim->attempts[worker][group], *told, busy};
    sim->attempts[worker][group] = 0;
}

static bool throttle_refuses(struct bindsim *sim, uint32_t c)
{
    struct bindsim_client *client = &sim->clients[c];
    uint32_t worker = worker_of(c);
    bool busy = bindsim_used(sim) * 100 > sim->conf.target_pct * sim->conf.slots;
    struct hg_bindthrottle_told told;

    client->quarantine = false;
    if (sim->groups[client->group].exempt || client->key.bytes.len < sim->conf.bind_min_bytes)
        return false;
    switch (hg_bindthrottle_decide(sim->tables[worker], &client->key, busy, sim->conf.decr_per_sec,
                                   sim->now_us, &told)) {
    case HG_BINDTHROTTLE_REFUSE:
        sim->attempts[worker][client->group]++;
        return true;
    case HG_BINDTHROTTLE_PASS:
        sim->attempts[worker][client->group]++;
        client->quarantine = true;
        client->change = told.change;
        note_pass(sim, c, &told, busy);
        return false;
    default:
        return false;
    }
}

static void ask(struct bindsim *sim)
{
    for (uint32_t c = 0; c < sim->client_count; c++) {
        struct bindsim_client *client = &sim->clients[c];
        const struct bindsim_group *group = &sim->groups[client->group];
        if (client->state != BINDSIM_IDLE || client->next_us > sim->now_us)
            continue;
        if ((group->until_us != 0 && sim->now_us >= SECOND_US + group->until_us) ||
            (group->times != 0 && client->asked == group->times))
            continue;
        client->asked++;
        sim->counts[client->group].asked++;
        client->asked_us = sim->now_us;
        if (throttle_refuses(sim, c)) {
            sim->counts[client->group].throttled++;
            answer(sim, c, true);
            continue;
        }
        client->state = BINDSIM_WAITS;
        sim->line[sim->waiting++] = c;
    }
}

/* ---- the watch ---- */

static bool can_be_evicted(const struct bindsim *sim, const struct bindsim_client *client)
{
    return !sim->groups[client->group].exempt &&
           (client->key.type == HG_HOT_QUERY || sim->conf.evict_sent_writes);
}

static struct hg_bindwatch_row *row_of(struct hg_bindwatch_row *rows, size_t *count,
                                       const struct bindsim_client *client)
{
    for (size_t i = 0; i < *count; i++)
        if (hg_bindthrottle_same(&rows[i].key, &client->key))
            return &rows[i];
    rows[*count] = (struct hg_bindwatch_row){.key = client->key};
    return &rows[(*count)++];
}

static void report(struct bindsim *sim, uint32_t worker)
{
    struct hg_bindwatch_row rows[BINDSIM_CLIENTS];
    struct hg_bindwatch_report report = {.rows = rows};

    for (uint32_t s = 0; s < sim->conf.slots; s++) {
        const struct bindsim_slot *slot = &sim->slots[s];
        if (!slot->used || slot->worker != worker)
            continue;
        report.used += slot->client >= 0 || !sim->conf.stranded_unused;
        if (slot->client < 0)
            continue;
        const struct bindsim_client *client = &sim->clients[slot->client];
        bool evictable = can_be_evicted(sim, client);
        if (!slot->held && evictable && sim->now_us - slot->began_us > report.oldest_us)
            report.oldest_us = sim->now_us - slot->began_us;
        if (client->key.bytes.len < sim->conf.bind_min_bytes)
            continue;
        struct hg_bindwatch_row *row = row_of(rows, &report.count, client);
        row->slots += !slot->held;
        row->evictable += !slot->held && evictable;
        row->exempt += sim->groups[client->group].exempt;
        row->waiting += slot->held;
    }
    for (uint32_t i = 0; i < sim->waiting; i++) {
        const struct bindsim_client *client = &sim->clients[sim->line[i]];
        if (worker_of(sim->line[i]) == worker && !sim->groups[client->group].exempt &&
            client->key.bytes.len >= sim->conf.bind_min_bytes)
            row_of(rows, &report.count, client)->waiting++;
    }
    hg_bindwatch_add(sim->watch, worker, &report);
}

/* The longest-running request of the worker that may be evicted, of this key or of any; or NULL. */
static struct bindsim_slot *oldest(struct bindsim *sim, uint32_t worker,
                                   const struct hg_bindthrottle_key *key)
{
    struct bindsim_slot *found = NULL;

    for (uint32_t s = 0; s < sim->conf.slots; s++) {
        struct bindsim_slot *slot = &sim->slots[s];
        if (!slot->used || slot->held || slot->client < 0 || slot->worker != worker)
            continue;
        const struct bindsim_client *client = &sim->clients[slot->client];
        if (can_be_evicted(sim, client) &&
            (key == NULL || hg_bindthrottle_same(&client->key, key)) &&
            (found == NULL || slot->began_us < found->began_us))
            found = slot;
    }
    return found;
}

static void note_eviction(struct bindsim *sim, uint32_t c)
{
    uint32_t group = sim->clients[c].group;

    sim->counts[group].evicted++;
    if (sim->first_evicted_us[group] == EMPTY)
        sim->first_evicted_us[group] = sim->now_us;
    answer(sim, c, true);
}

static void evict_waiting(struct bindsim *sim, uint32_t worker,
                          const struct hg_bindthrottle_key *key)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < sim->waiting; i++) {
        uint32_t c = sim->line[i];
        if (worker_of(c) == worker && !sim->groups[sim->clients[c].group].exempt &&
            hg_bindthrottle_same(&sim->clients[c].key, key))
            note_eviction(sim, c);
        else
            sim->line[left++] = c;
    }
    sim->waiting = left;
    for (uint32_t s = 0; s < sim->conf.slots; s++) {
        struct bindsim_slot *slot = &sim->slots[s];
        if (slot->used && slot->held && slot->worker == worker &&
            hg_bindthrottle_same(&sim->clients[slot->client].key, key)) {
            note_eviction(sim, (uint32_t)slot->client);
            slot->used = false; /* it was not sent */
        }
    }
}

static void carry_out(struct bindsim *sim, uint32_t worker,
                      const struct hg_bindwatch_verdict *verdict)
{
    uint32_t has = 0;
    struct bindsim_slot *slot;

    evict_waiting(sim, worker, &verdict->key);
    for (uint32_t s = 0; s < sim->conf.slots; s++) {
        slot = &sim->slots[s];
        has += slot->used && !slot->held && slot->client >= 0 && slot->worker == worker &&
               can_be_evicted(sim, &sim->clients[slot->client]) &&
               hg_bindthrottle_same(&sim->clients[slot->client].key, &verdict->key);
    }
    for (uint32_t keep = hg_bindwatch_share(verdict, has); has > keep; has--) {
        slot = oldest(sim, worker, &verdict->key);
        note_eviction(sim, (uint32_t)slot->client);
        slot->client = -1;
    }
    hg_bindthrottle_make(sim->tables[worker], &verdict->key, verdict->evicted,
                         sim->conf.decr_per_sec, sim->now_us);
}

static void watch(struct bindsim *sim)
{
    const struct hg_bindwatch_conf conf = {.threshold_pct = sim->conf.threshold_pct,
                                           .min_age_us = sim->conf.min_age_us,
                                           .evict_longest = true};
    const struct hg_bindwatch_verdict *verdicts;
    uint32_t worker;
    size_t count;

    hg_bindwatch_clear(sim->watch);
    for (uint32_t w = 0; w < BINDSIM_WORKERS; w++)
        report(sim, w);
    count = hg_bindwatch_judge(sim->watch, &conf, &verdicts, &worker);
    for (size_t i = 0; i < count; i++)
        for (uint32_t w = 0; w < BINDSIM_WORKERS; w++)
            carry_out(sim, w, &verdicts[i]);
    if (worker != UINT32_MAX) {
        struct bindsim_slot *slot = oldest(sim, worker, NULL);
        sim->counts[sim->clients[slot->client].group].killed++;
        answer(sim, (uint32_t)slot->client, true);
        slot->client = -1;
    }
}

/* A line that is empty is relief only if there is room for the next one: it may be empty since
   all that were in it gave up. */
static void note_backlog(struct bindsim *sim)
{
    bool room = sim->conf.time_outs_relieve || bindsim_used(sim) < sim->conf.slots;

    if (sim->waiting == 0 && room)
        sim->backlog_since_us = EMPTY;
    else if (sim->waiting > 0 && sim->backlog_since_us == EMPTY)
        sim->backlog_since_us = sim->now_us;
}

void bindsim_run(struct bindsim *sim, uint64_t until_us)
{
    for (; sim->now_us < SECOND_US + until_us; sim->now_us += STEP_US) {
        end_services(sim);
        expire(sim);
        ask(sim);
        grant(sim);
        note_backlog(sim);
        if (sim->now_us % ROUND_US != 0)
            continue;
        for (uint32_t w = 0; w < BINDSIM_WORKERS; w++)
            hg_bindthrottle_sweep(sim->tables[w], sim->conf.decr_per_sec, sim->now_us);
        if (sim->backlog_since_us == EMPTY ||
            sim->now_us - sim->backlog_since_us < sim->conf.backlog_us)
            continue;
        if (sim->first_backlog_us == EMPTY)
            sim->first_backlog_us = sim->backlog_since_us;
        if (sim->conf.watching)
            watch(sim);
    }
}

/* ---- what happened ---- */

void bindsim_mark(struct bindsim *sim)
{
    for (uint32_t g = 0; g < sim->group_count; g++)
        sim->counts[g] = (struct bindsim_counts){.latency_us = sim->counts[g].latency_us};
    sim->pass_count = 0;
    sim->max_x = 0;
}

uint64_t bindsim_errors(const struct bindsim *sim, uint32_t group)
{
    const struct bindsim_counts *counts = &sim->counts[group];
    return counts->throttled + counts->evicted + counts->killed + counts->late;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

uint32_t bindsim_p99(struct bindsim *sim, uint32_t group)
{
    struct bindsim_counts *counts = &sim->counts[group];

    if (counts->samples == 0)
        return 0;
    qsort(counts->latency_us, counts->samples, sizeof *counts->latency_us, compare);
    return counts->latency_us[((uint64_t)counts->samples * 99 + 99) / 100 - 1];
}

uint32_t bindsim_x(const struct bindsim *sim, uint32_t group, uint32_t worker)
{
    for (uint32_t c = 0; c < sim->client_count; c++) {
        const struct hg_bindthrottle_entry *entry;
        if (sim->clients[c].group != group)
            continue;
        entry = hg_bindthrottle_find(sim->tables[worker], &sim->clients[c].key);
        if (entry != NULL)
            return hg_bindthrottle_x(entry, sim->conf.decr_per_sec, sim->now_us);
    }
    return 0;
}
