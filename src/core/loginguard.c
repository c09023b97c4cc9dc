// loginguard - logins are bounded, and slowed for addresses that fail
// SPDX-License-Identifier: BSD-3-Clause
#include "core/loginguard.h"
#include <stddef.h>

void hg_loginguard_init(struct hg_loginguard *guard, uint32_t in_flight_max)
{
    *guard = (struct hg_loginguard){.in_flight_max = in_flight_max};
}

static struct hg_loginguard_entry *set_of(struct hg_loginguard *guard, uint64_t address)
{
    return guard->table[address % HG_LOGINGUARD_SETS];
}

/* The address's entry, with what time has forgiven taken off; NULL when nothing is left. */
static struct hg_loginguard_entry *find(struct hg_loginguard *guard, uint64_t address,
                                        uint64_t now_us)
{
    struct hg_loginguard_entry *set = set_of(guard, address);
    for (int i = 0; i < HG_LOGINGUARD_WAYS; i++) {
        struct hg_loginguard_entry *entry = &set[i];
        uint64_t forgiven = (now_us - entry->failed_us) / HG_LOGINGUARD_FORGIVE_US;
        if (entry->failures == 0 || entry->address != address)
            continue;
        if (forgiven >= entry->failures) {
            entry->failures = 0;
            return NULL;
        }
        entry->failures -= (uint32_t)forgiven;
        entry->failed_us += forgiven * HG_LOGINGUARD_FORGIVE_US;
        return entry;
    }
    return NULL;
}

/* A free entry of the set, or the one that failed longest ago. */
static struct hg_loginguard_entry *make_room(struct hg_loginguard *guard, uint64_t address)
{
    struct hg_loginguard_entry *set = set_of(guard, address), *room = &set[0];
    for (int i = 0; i < HG_LOGINGUARD_WAYS; i++) {
        if (set[i].failures == 0)
            return &set[i];
        if (set[i].failed_us < room->failed_us)
            room = &set[i];
    }
    return room;
}

bool hg_loginguard_ask(struct hg_loginguard *guard, uint64_t address, uint64_t now_us,
                       uint64_t *ret_wait_us)
{
    struct hg_loginguard_entry *entry = find(guard, address, now_us);
    uint64_t delay, at;

    if (entry == NULL || entry->failures < HG_LOGINGUARD_FREE) {
        *ret_wait_us = 0;
        return true;
    }
    delay = (uint64_t)(entry->failures - HG_LOGINGUARD_FREE + 1) * HG_LOGINGUARD_STEP_US;
    if (delay > HG_LOGINGUARD_MAX_US)
        delay = HG_LOGINGUARD_MAX_US;
    at = (entry->busy_us > now_us ? entry->busy_us : now_us) + delay;
    if (at - now_us > HG_LOGINGUARD_QUEUE_US)
        return false;
    entry->busy_us = at;
    *ret_wait_us = at - now_us;
    return true;
}

void hg_loginguard_tell(struct hg_loginguard *guard, uint64_t address, bool ok, uint64_t now_us)
{
    struct hg_loginguard_entry *entry = find(guard, address, now_us);
    if (ok) {
        if (entry != NULL)
            entry->failures = 0;
        return;
    }
    if (entry == NULL) {
        entry = make_room(guard, address);
        *entry = (struct hg_loginguard_entry){.address = address};
    }
    if (entry->failures < HG_LOGINGUARD_COUNT_MAX)
        entry->failures++;
    entry->failed_us = now_us;
}

bool hg_loginguard_take(struct hg_loginguard *guard)
{
    if (guard->in_flight >= guard->in_flight_max)
        return false;
    guard->in_flight++;
    return true;
}

void hg_loginguard_put(struct hg_loginguard *guard)
{
    guard->in_flight--;
}
