// solo - one server in the hands of the test, and one or two workers with a store over it
// SPDX-License-Identifier: BSD-3-Clause
#include "solo.h"

#include <string.h>

void solo_init(struct solo *solo, uint32_t workers)
{
    memset(solo, 0, sizeof *solo);
    fake_open(&solo->fake, 0);
    struct fake *fake = &solo->fake;
    rig_conf(&solo->conf, &solo->server, &fake, 1);
    solo->workers = workers;
    solo->bench.fakes[0] = fake;
    for (uint32_t w = 0; w < workers; w++) {
        rig_init(&solo->rigs[w]);
        bench_keep_time(&solo->rigs[w]);
        solo->bench.rigs[w] = &solo->rigs[w];
    }
    note_reset_order();
}

void solo_start(struct solo *solo, uint32_t share)
{
    solo->shared = rig_shared(&solo->conf, solo->workers);
    for (uint32_t w = 0; w < solo->workers; w++) {
        solo->stores[w] = rig_store(&solo->rigs[w], solo->shared, w, share);
        /* So that a slow machine is not taken for a stuck server. */
        rig_pool(solo->stores[w], 0)->domain->usual_us = 1000000;
    }
}

void solo_fini(struct solo *solo)
{
    for (uint32_t w = 0; w < solo->workers; w++) {
        if (solo->stores[w] != NULL)
            solo->stores[w]->ops->free(solo->stores[w]);
    }
    hg_upstream_shared_free(solo->shared);
    fake_close(&solo->fake);
    for (uint32_t w = 0; w < solo->workers; w++)
        rig_fini(&solo->rigs[w]);
}

void solo_bear_silence(struct solo *solo)
{
    for (uint32_t w = 0; w < solo->workers; w++)
        hg_remote_of(solo->stores[w])->pool_conf.link.silent_us = 3600000000;
}

uint64_t solo_stat(struct solo *solo, enum hg_upstream_stat stat)
{
    return rig_stat(solo->shared, 0, stat);
}

enum hg_breaker_state solo_breaker(struct solo *solo)
{
    return hg_breaker_state(&solo->shared->servers[0].breaker);
}

enum hg_submit solo_ask_of(struct solo *solo, uint32_t worker, struct note *note, enum hg_op op,
                           const char *key)
{
    note_init(note, solo->stores[worker], op, key);
    note->call.key_hash = key[0];
    return note_submit(note, &solo->rigs[worker]);
}

enum hg_submit solo_ask(struct solo *solo, struct note *note, const char *key)
{
    return solo_ask_of(solo, 0, note, HG_OP_GET, key);
}

void solo_warm_up(struct solo *solo)
{
    bool automatic = solo->fake.automatic;
    solo->fake.automatic = true;
    for (uint32_t w = 0; w < solo->workers; w++) {
        struct note note;
        solo_ask_of(solo, w, &note, HG_OP_GET, "warm");
        BENCH_UNTIL(&solo->bench, note.done == 1);
        assert_string_equal(note.value, "v:warm");
    }
    solo->fake.automatic = automatic;
    note_reset_order();
}
