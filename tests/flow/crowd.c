// crowd - several users of one server with few connections, in the test's own time
// SPDX-License-Identifier: BSD-3-Clause
#include "crowd.h"

#include <stdio.h>
#include <string.h>

#define TICK_US 10000
#define STEP_US 1000

static uint64_t clock_us;
static uint64_t ticked_us;

uint64_t crowd_now_us(void)
{
    return clock_us;
}

void crowd_init(struct crowd *crowd, uint32_t workers, uint32_t depth)
{
    memset(crowd, 0, sizeof *crowd);
    clock_us = ticked_us = 3600000000;
    solo_init(&crowd->solo, workers);
    crowd->solo.fake.lets_in = true;
    crowd->solo.conf.pool_depth = depth;
    crowd->solo.conf.times.queue_timeout_ms = 60000;
    crowd->solo.conf.times.backend_timeout_ms = 60000;
    crowd->solo.conf.times.connect_timeout_ms = 60000;
    for (uint32_t w = 0; w < workers; w++) {
        crowd->solo.rigs[w].loop.clock = crowd_now_us;
        crowd->solo.rigs[w].loop.now_us = clock_us;
    }
}

void crowd_start(struct crowd *crowd, uint32_t users, uint32_t connections)
{
    struct solo *solo = &crowd->solo;
    solo->conf.pool_max_connections = connections;
    solo_start(solo, connections);
    for (uint32_t w = 0; w < solo->workers; w++) {
        struct hg_remote *remote = hg_remote_of(solo->stores[w]);
        event_del(&remote->timer.event); /* the test ticks */
        remote->busy = true;
        remote->due_us = clock_us + TICK_US;
    }
    crowd->users = users;
    for (uint32_t i = 0; i < users; i++) {
        char name[16];
        snprintf(name, sizeof name, "u%u", i);
        assert_int_equal(
            hg_identities_add(&solo->shared->identities, name, "password", 0, &crowd->ids[i]), 0);
    }
}

void crowd_fini(struct crowd *crowd)
{
    solo_fini(&crowd->solo);
}

void crowd_settle(struct crowd *crowd)
{
    for (int i = 0; i < 6; i++)
        bench_turn(&crowd->solo.bench);
}

void crowd_pass(struct crowd *crowd, uint64_t us)
{
    uint64_t end_us = clock_us + us;
    while (clock_us < end_us) {
        clock_us += end_us - clock_us < STEP_US ? end_us - clock_us : STEP_US;
        crowd_settle(crowd);
        if (clock_us - ticked_us < TICK_US)
            continue;
        ticked_us = clock_us;
        for (uint32_t w = 0; w < crowd->solo.workers; w++) {
            crowd->solo.rigs[w].loop.now_us = clock_us;
            hg_remote_of(crowd->solo.stores[w])->due_us = clock_us + TICK_US;
            (void)hg_domain_tick(crowd_domain(crowd, w), clock_us);
        }
        crowd_settle(crowd);
    }
}

void crowd_stall(struct crowd *crowd, uint64_t us)
{
    clock_us += us;
    for (uint32_t w = 0; w < crowd->solo.workers; w++)
        crowd->solo.rigs[w].loop.now_us = clock_us;
}

struct hg_domain *crowd_domain(struct crowd *crowd, uint32_t worker)
{
    return &hg_remote_of(crowd->solo.stores[worker])->domains[0];
}

struct hg_pool *crowd_pool(struct crowd *crowd, uint32_t worker, uint32_t user)
{
    struct hg_pool *pool = hg_domain_pool(crowd_domain(crowd, worker), crowd->ids[user]);
    assert_non_null(pool);
    return pool;
}

enum hg_submit crowd_ask_of(struct crowd *crowd, uint32_t worker, uint32_t user, struct note *note,
                            const char *key)
{
    note_init(note, crowd->solo.stores[worker], HG_OP_GET, key);
    note->call.key_hash = key[0];
    note->call.identity = crowd->ids[user];
    return note_submit(note, &crowd->solo.rigs[worker]);
}

enum hg_submit crowd_ask(struct crowd *crowd, uint32_t user, struct note *note, const char *key)
{
    return crowd_ask_of(crowd, 0, user, note, key);
}

void crowd_answer(struct crowd *crowd, const char *key)
{
    struct fake *fake = &crowd->solo.fake;
    BENCH_UNTIL(&crowd->solo.bench, fake_find(fake, key) != NULL);
    fake_obey(fake, fake_find(fake, key));
    crowd_settle(crowd);
}

uint64_t crowd_stat(struct crowd *crowd, uint32_t user, enum hg_pool_stat stat)
{
    struct hg_pool_sum sums[CROWD_MAX + 1];
    hg_server_sum_pools(&crowd->solo.shared->servers[0], sums, crowd->users + 1);
    assert_true(sums[crowd->ids[user]].known);
    return sums[crowd->ids[user]].values[stat];
}
