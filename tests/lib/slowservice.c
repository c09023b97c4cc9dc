// slowservice - slots, a queue before them, and a time for each job: how a store is slow
// SPDX-License-Identifier: BSD-3-Clause
//
// The jobs in service are a binary heap by their ends. A slot that falls free is filled in
// hg_slow_due, at the end of the job that left it.
#include "slowservice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"

#define FACTOR_MIN                                                                                 \
    0.05 /* throughput that is left far beyond the knee; least factor of noise too                 \
          */

// ---- the heap ----

static void heap_up(struct hg_slow *slow, uint32_t at)
{
    struct hg_slow_job *job = slow->heap[at];
    while (at > 0 && slow->heap[(at - 1) / 2]->end_us > job->end_us) {
        slow->heap[at] = slow->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    slow->heap[at] = job;
}

static void heap_push(struct hg_slow *slow, struct hg_slow_job *job)
{
    if (slow->in_service == slow->heap_room) {
        slow->heap_room = slow->heap_room ? 2 * slow->heap_room : 64;
        slow->heap = realloc(slow->heap, slow->heap_room * sizeof *slow->heap);
        if (!slow->heap)
            abort();
    }
    slow->heap[slow->in_service] = job;
    heap_up(slow, slow->in_service++);
}

static struct hg_slow_job *heap_pop(struct hg_slow *slow)
{
    struct hg_slow_job *top = slow->heap[0], *last = slow->heap[--slow->in_service];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= slow->in_service)
            break;
        if (child + 1 < slow->in_service &&
            slow->heap[child + 1]->end_us < slow->heap[child]->end_us)
            child++;
        if (slow->heap[child]->end_us >= last->end_us)
            break;
        slow->heap[at] = slow->heap[child];
        at = child;
    }
    slow->heap[at] = last;
    return top;
}

// ---- times ----

/* Above 0, at most 1. */
static double draw_uniform(struct hg_slow *slow)
{
    return (double)((hg_prng_next(&slow->prng) >> 11) + 1) / 9007199254740992.0;
}

static double draw_normal(struct hg_slow *slow)
{
    double radius = sqrt(-2.0 * log(draw_uniform(slow)));
    return radius * cos(2.0 * M_PI * draw_uniform(slow));
}

static double noise_at(struct hg_slow *slow, uint64_t now_us)
{
    if (slow->conf.noise <= 0)
        return 1.0;
    if (now_us >= slow->noise_until_us) {
        slow->noise = fmax(FACTOR_MIN, 1.0 + slow->conf.noise * draw_normal(slow));
        slow->noise_until_us = now_us + HG_SLOW_NOISE_US;
    }
    return slow->noise;
}

static double speed(const struct hg_slow *slow)
{
    double slots = slow->conf.slots;
    if (slots < 1 || (double)slow->inside <= slots)
        return 1.0;
    double fall = slow->conf.knee_fall * ((double)slow->inside - slots) / slots;
    return fmax(FACTOR_MIN, 1.0 - fall);
}

static void begin(struct hg_slow *slow, struct hg_slow_job *job, uint64_t at_us)
{
    struct hg_slow_group *group = &slow->groups[job->group];
    double time_us = group->service_us < 0 ? slow->conf.service_us : group->service_us;
    if (slow->conf.exponential)
        time_us *= -log(draw_uniform(slow));
    time_us *= noise_at(slow, at_us) / speed(slow);
    job->end_us = at_us + (uint64_t)llround(time_us);
    heap_push(slow, job);
    group->in_service++;
    if (group->in_service > group->max_in_service)
        group->max_in_service = group->in_service;
}

// ---- groups ----

bool hg_slow_set_group(struct hg_slow *slow, const char *prefix, double service_us)
{
    size_t len = strlen(prefix);
    if (len == 0 || len >= HG_SLOW_PREFIX_MAX)
        return false;
    for (uint32_t i = 1; i < slow->group_count; i++) {
        if (strcmp(slow->groups[i].prefix, prefix) == 0) {
            slow->groups[i].service_us = service_us;
            return true;
        }
    }
    if (slow->group_count == HG_SLOW_GROUPS)
        return false;
    struct hg_slow_group *group = &slow->groups[slow->group_count++];
    memcpy(group->prefix, prefix, len + 1);
    group->prefix_len = len;
    group->service_us = service_us;
    return true;
}

uint32_t hg_slow_group_of(const struct hg_slow *slow, const uint8_t *key, size_t len)
{
    for (uint32_t i = 1; i < slow->group_count; i++) {
        const struct hg_slow_group *group = &slow->groups[i];
        if (len >= group->prefix_len && memcmp(key, group->prefix, group->prefix_len) == 0)
            return i;
    }
    return 0;
}

// ---- jobs ----

void hg_slow_init(struct hg_slow *slow, const struct hg_slow_conf *conf, uint64_t seed)
{
    memset(slow, 0, sizeof *slow);
    slow->conf = *conf;
    slow->group_count = 1;
    slow->groups[0].service_us = -1;
    slow->prng.state = seed;
    slow->noise = 1.0;
    hg_list_init(&slow->queue);
}

void hg_slow_fini(struct hg_slow *slow)
{
    free(slow->heap);
    slow->heap = NULL;
}

static void fill(struct hg_slow *slow, uint64_t at_us)
{
    while (!slow->paused && slow->in_service < slow->conf.slots) {
        struct hg_list *first = hg_list_first(&slow->queue);
        if (!first)
            return;
        hg_list_remove(first);
        slow->queued--;
        struct hg_slow_job *job = HG_CONTAINER_OF(first, struct hg_slow_job, node);
        begin(slow, job, job->arrived_us > at_us ? job->arrived_us : at_us);
    }
}

void hg_slow_fill(struct hg_slow *slow, uint64_t now_us)
{
    fill(slow, now_us);
}

void hg_slow_arrive(struct hg_slow *slow, struct hg_slow_job *job, uint32_t group, uint64_t now_us)
{
    memset(job, 0, sizeof *job);
    job->arrived_us = now_us;
    job->group = group;
    slow->groups[group].arrived++;
    slow->groups[group].inside++;
    if (++slow->inside > slow->max_inside)
        slow->max_inside = slow->inside;
    hg_list_append(&slow->queue, &job->node);
    slow->queued++;
    /* While a job is overdue its slot is hg_slow_due's to fill. */
    if (slow->in_service == 0 || slow->heap[0]->end_us > now_us)
        fill(slow, now_us);
}

bool hg_slow_leave(struct hg_slow *slow, struct hg_slow_job *job)
{
    if (job->end_us)
        return false;
    hg_list_remove(&job->node);
    slow->queued--;
    slow->inside--;
    slow->groups[job->group].inside--;
    return true;
}

struct hg_slow_job *hg_slow_due(struct hg_slow *slow, uint64_t now_us)
{
    if (slow->paused || slow->in_service == 0 || slow->heap[0]->end_us > now_us)
        return NULL;
    struct hg_slow_job *job = heap_pop(slow);
    struct hg_slow_group *group = &slow->groups[job->group];
    job->ended = true;
    slow->inside--;
    group->inside--;
    group->in_service--;
    group->served++;
    fill(slow, job->end_us);
    return job;
}

uint64_t hg_slow_next_us(const struct hg_slow *slow)
{
    return slow->paused || slow->in_service == 0 ? UINT64_MAX : slow->heap[0]->end_us;
}

void hg_slow_pause(struct hg_slow *slow, uint64_t now_us)
{
    if (!slow->paused)
        slow->paused_us = now_us;
    slow->paused = true;
}

void hg_slow_resume(struct hg_slow *slow, uint64_t now_us)
{
    if (!slow->paused)
        return;
    slow->paused = false;
    /* All ends move alike, so the heap stays one. */
    for (uint32_t i = 0; i < slow->in_service; i++)
        slow->heap[i]->end_us += now_us - slow->paused_us;
    fill(slow, now_us);
}
