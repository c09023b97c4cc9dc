// hotsim - the loop of hot keys in virtual time: load, lists, sketches, merge, decision
// SPDX-License-Identifier: BSD-3-Clause
#include "hotsim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/hothelp.h"

static void *need(size_t bytes)
{
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL)
        abort();
    return memory;
}

static void publish(struct hotsim *sim)
{
    for (unsigned w = 0; w < sim->workers; w++) {
        free(sim->lists[w]);
        sim->lists[w] = hg_keylist_make(need(hg_keylist_bytes(&sim->throttle)), &sim->throttle,
                                        sim->settings.control, sim->epoch * HOTSIM_WORKERS + w);
    }
}

void hotsim_init(struct hotsim *sim, unsigned workers, enum hg_hotkey_control control,
                 uint64_t threshold, unsigned counters, uint64_t seed)
{
    uint8_t room[256];
    memset(sim, 0, sizeof *sim);
    sim->settings = (struct hg_keythrottle_settings){threshold, control};
    sim->workers = workers;
    sim->counters = counters;
    sim->prng.state = seed;
    for (uint32_t id = 0; id < HOTSIM_KEYS; id++)
        sim->hashes[id] = hot_key(id, HOT_BINARY, room).hash;
    for (unsigned w = 0; w < workers; w++)
        sim->sketches[w] = hot_new(counters, false);
    publish(sim);
}

void hotsim_fini(struct hotsim *sim)
{
    for (unsigned w = 0; w < sim->workers; w++) {
        hot_free(sim->sketches[w]);
        free(sim->lists[w]);
    }
    for (unsigned e = 0; e < HG_KEYTHROTTLE_EPOCHS; e++)
        free((void *)(uintptr_t)sim->spans[e].merged);
    free(sim->throttle.keys);
    free(sim->requests);
}

void hotsim_offer(struct hotsim *sim, uint32_t id, uint64_t n)
{
    if (sim->count + n > sim->room) {
        sim->room = 2 * sim->room + n;
        sim->requests = realloc(sim->requests, sim->room * sizeof *sim->requests);
        if (sim->requests == NULL)
            abort();
    }
    for (; n > 0; n--)
        sim->requests[sim->count++] = id;
}

static void play(struct hotsim *sim, uint32_t id)
{
    unsigned w = (unsigned)hg_prng_below(&sim->prng, sim->workers);
    struct hg_hotkey_key key = {(const uint8_t *)&id, sim->hashes[id], sizeof id, 0};
    int index = hg_keylist_find(sim->lists[w], &key);

    sim->offered[id]++;
    if (index >= 0 && hg_keylist_refuses(sim->lists[w], index, &sim->prng))
        return;
    if (!hg_hotkey_tell(sim->sketches[w], &key, 1))
        abort();
    sim->admitted[id]++;
}

static void merge(struct hotsim *sim, uint64_t length_us)
{
    const struct hg_hotkey *const *sketches = (const struct hg_hotkey *const *)sim->sketches;
    void *scratch = need(hg_hotmerge_scratch_bytes(sim->workers * sim->counters));

    free((void *)(uintptr_t)sim->spans[HG_KEYTHROTTLE_EPOCHS - 1].merged);
    memmove(sim->spans + 1, sim->spans, sizeof sim->spans - sizeof sim->spans[0]);
    sim->spans[0].merged = hg_hotmerge_make(need(hg_hotmerge_bytes(sim->counters)), sim->counters,
                                            sketches, sim->workers, scratch);
    sim->spans[0].length_us = length_us;
    free(scratch);
}

void hotsim_epoch_of(struct hotsim *sim, uint64_t length_us)
{
    unsigned room = sim->throttle.count + HG_HOT_TOP;

    memset(sim->offered, 0, sizeof sim->offered);
    memset(sim->admitted, 0, sizeof sim->admitted);
    for (size_t i = sim->count; i > 1; i--) { // Fisher and Yates
        size_t j = hg_prng_below(&sim->prng, i);
        uint32_t held = sim->requests[i - 1];
        sim->requests[i - 1] = sim->requests[j];
        sim->requests[j] = held;
    }
    for (size_t i = 0; i < sim->count; i++)
        play(sim, sim->requests[i]);
    sim->count = 0;
    for (unsigned w = 0; w < sim->workers; w++)
        hg_keylist_report(sim->lists[w], &sim->throttle);
    merge(sim, length_us);
    for (unsigned w = 0; w < sim->workers; w++)
        hg_hotkey_clear(sim->sketches[w]);
    if (sim->throttle.room < room)
        free(hg_keythrottle_give_room(
            &sim->throttle, need(2 * room * sizeof(struct hg_keythrottle_key)), 2 * room));
    hg_keythrottle_epoch(&sim->throttle, &sim->settings, sim->spans, HOTSIM_NOMINAL_US);
    sim->epoch++;
    publish(sim);
}

void hotsim_epoch(struct hotsim *sim)
{
    hotsim_epoch_of(sim, HOTSIM_NOMINAL_US);
}

int hotsim_percent(const struct hotsim *sim, uint32_t id)
{
    struct hg_hotkey_key key = {(const uint8_t *)&id, sim->hashes[id], sizeof id, 0};
    const struct hg_keythrottle_key *listed = hg_keythrottle_find(&sim->throttle, &key);
    return listed == NULL ? -1 : listed->percent;
}

/* Box and Muller's normal numbers, which is close for means of 30 and more. */
uint64_t hotsim_chance(struct hotsim *sim, double mean)
{
    double u = ((double)(hg_prng_next(&sim->prng) >> 11) + 1) * 0x1p-53;
    double v = (double)(hg_prng_next(&sim->prng) >> 11) * 0x1p-53;
    double n = mean + sqrt(mean) * sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
    return n < 0 ? 0 : (uint64_t)(n + 0.5);
}
