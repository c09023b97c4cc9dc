// t_embedded_threads - two workers, a writer thread and an administrator at the same time
// SPDX-License-Identifier: BSD-3-Clause
//
// Run it under the thread sanitizer too. Each worker counts up one shared counter, writes and reads
// back keys of its own, and looks at what the other has written: what it has once seen of a rising
// value must never fall. Meanwhile the main thread makes and deletes tenants and reads statistics.
#include <pthread.h>

#include "embeddedhelp.h"
#include "patience.h"

#define WORKERS 2
#define ROUNDS  300
#define AT_ONCE 8

struct worker {
    struct world world; /* its loop and store; the file is the main world's */
    pthread_t thread;
    unsigned index;
    uint64_t highest_seen;
    _Atomic bool is_ready;
};

static _Atomic bool go;

static void wait_for(_Atomic bool *flag)
{
    uint64_t end_us = patience_end_us();
    while (!atomic_load(flag)) {
        if (hg_now_us() > end_us)
            abort();
        patience_nap();
    }
}

/* cmocka's assertions jump, which other threads must not: these end the process. */
#define MUST(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                             \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static void finish(struct worker *worker, struct ask *asks, unsigned count)
{
    uint64_t end_us = patience_end_us();
    for (unsigned i = 0; i < count; i++)
        while (!asks[i].is_done) {
            MUST(hg_now_us() < end_us);
            hg_loop_turn(&worker->world.loop, true);
        }
}

static void count_up(struct worker *worker)
{
    struct ask asks[AT_ONCE];
    for (unsigned i = 0; i < AT_ONCE; i++) {
        ask_init(&asks[i], &worker->world, HG_OP_INCREMENT, "shared");
        asks[i].call.delta = 1;
        asks[i].call.initial = 1;
        ask_submit(&asks[i]);
    }
    finish(worker, asks, AT_ONCE);
    for (unsigned i = 0; i < AT_ONCE; i++) {
        MUST(asks[i].result.status == HG_STATUS_SUCCESS);
        MUST(asks[i].result.counter > worker->highest_seen);
        worker->highest_seen = asks[i].result.counter;
        ask_fini(&asks[i]);
    }
    /* Own answered writes are seen, and others' at least as far as they were seen before. */
    struct ask get;
    ask_init(&get, &worker->world, HG_OP_GET, "shared");
    ask_submit(&get);
    MUST(get.is_done && get.result.status == HG_STATUS_SUCCESS);
    uint64_t seen = strtoull((char *)get.value, NULL, 10);
    MUST(seen >= worker->highest_seen);
    worker->highest_seen = seen;
    ask_fini(&get);
}

struct stretch {
    struct hg_range_call call;
    const char *key; /* that was written last */
    uint64_t cas;    /* of it, as it was found */
    unsigned count;
    bool done, sorted;
    char last[32];
};

static bool on_range_item(struct hg_range_call *call, const struct hg_range_item *item)
{
    struct stretch *stretch = HG_CONTAINER_OF(call, struct stretch, call);
    char key[32] = "";
    MUST(item->key.len < sizeof key);
    memcpy(key, item->key.at, item->key.len);
    stretch->sorted = stretch->sorted && strcmp(stretch->last, key) < 0;
    snprintf(stretch->last, sizeof stretch->last, "%s", key);
    if (strcmp(key, stretch->key) == 0)
        stretch->cas = item->cas;
    stretch->count++;
    return true;
}

static void on_range_done(struct hg_range_call *call, const struct hg_range_end *end)
{
    MUST(end->fault == HG_FAULT_NONE && !end->more);
    HG_CONTAINER_OF(call, struct stretch, call)->done = true;
}

/* A stretch shows each of the worker's keys once, the newest value too. */
static void read_stretch(struct worker *worker, const char *key, uint64_t cas, unsigned count)
{
    char from[32], to[32];
    struct stretch stretch = {.key = key, .sorted = true};
    struct hg_store *store = worker->world.store;
    snprintf(from, sizeof from, "worker%u-", worker->index);
    snprintf(to, sizeof to, "worker%u.", worker->index);
    stretch.call = (struct hg_range_call){.tenant_id = worker->world.tenant_id,
                                          .from = hg_span_str(from),
                                          .to = hg_span_str(to),
                                          .max_items = 100,
                                          .max_us = 1000000000,
                                          .on_item = on_range_item,
                                          .on_done = on_range_done};
    store->ops->range(store, &stretch.call);
    MUST(stretch.done && stretch.sorted && stretch.count == count && stretch.cas == cas);
}

static void write_and_read_back(struct worker *worker, unsigned round)
{
    struct ask set, get, gat;
    char key[32], value[300];
    snprintf(key, sizeof key, "worker%u-%u", worker->index, round % 10);
    memset(value, (int)('a' + round % 26), sizeof value);
    ask_init(&set, &worker->world, HG_OP_SET, key);
    set.call.value = hg_span(value, round % sizeof value);
    ask_init(&gat, &worker->world, HG_OP_GAT, key);
    gat.call.expiry = 1000;
    ask_init(&get, &worker->world, HG_OP_GET, key);
    gat.call.after = &set.call;
    get.call.after = &gat.call;
    ask_submit(&set);
    ask_submit(&gat);
    ask_submit(&get);
    finish(worker, &get, 1);
    MUST(set.is_done && gat.is_done && set.order < gat.order);
    MUST(get.result.status == HG_STATUS_SUCCESS && gat.result.status == HG_STATUS_SUCCESS);
    MUST(get.result.cas == set.result.cas);
    MUST(get.result.value.len == round % sizeof value);
    MUST(memcmp(get.value, value, get.result.value.len) == 0);
    MUST(memcmp(gat.value, value, get.result.value.len) == 0);
    read_stretch(worker, key, set.result.cas, round < 10 ? round + 1 : 10);
    ask_fini(&set);
    ask_fini(&get);
    ask_fini(&gat);
}

/* A call is given up while its batch is away. */
static void give_up(struct worker *worker)
{
    struct ask set;
    ask_init(&set, &worker->world, HG_OP_SET, "given up");
    set.call.value = HG_SPAN_LIT("v");
    ask_submit(&set);
    hg_loop_turn(&worker->world.loop, false);
    if (!set.is_done)
        worker->world.store->ops->cancel(worker->world.store, &set.call);
    ask_fini(&set);
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct world *world = &worker->world;
    MUST(hg_loop_init(&world->loop) == 0);
    MUST(hg_loop_timer_init(&world->loop, &world->tick, 5000, world_on_tick) == 0);
    MUST(hg_embedded_store_new(world->shared, &world->loop, &world->store) == 0);
    atomic_store(&worker->is_ready, true);
    wait_for(&go);
    for (unsigned round = 0; round < ROUNDS; round++) {
        count_up(worker);
        write_and_read_back(worker, round);
        if (round % 16 == 0)
            give_up(worker);
    }
    world->store->ops->free(world->store);
    hg_loop_timer_fini(&world->tick);
    hg_loop_fini(&world->loop);
    return NULL;
}

static void administrate(struct world *world)
{
    struct hg_embedded_stats stats;
    uint32_t ids[8];
    char name[32];
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < HG_COUNT_OF(ids); i++) {
            snprintf(name, sizeof name, "bucket%u", i);
            assert_int_equal(hg_embedded_tenant_id(world->shared, name, &ids[i]), 0);
        }
        for (unsigned i = 0; i < HG_COUNT_OF(ids); i++)
            assert_int_equal(hg_embedded_tenant_delete(world->shared, ids[i]), 0);
        hg_embedded_stats_read(world->shared, &stats);
    }
}

static void two_workers(void **state)
{
    (void)state;
    struct world main_world;
    struct worker workers[WORKERS];
    world_init(&main_world, HG_EMBEDDED_WRITING_THREAD, HG_EMBEDDED_SYNC_SECOND);
    world_open(&main_world);
    memset(workers, 0, sizeof workers);
    for (unsigned w = 0; w < WORKERS; w++) {
        workers[w].index = w;
        workers[w].world.shared = main_world.shared;
        workers[w].world.tenant_id = main_world.tenant_id;
        assert_int_equal(pthread_create(&workers[w].thread, NULL, work, &workers[w]), 0);
    }
    for (unsigned w = 0; w < WORKERS; w++)
        wait_for(&workers[w].is_ready);
    atomic_store(&go, true);
    administrate(&main_world);
    for (unsigned w = 0; w < WORKERS; w++)
        pthread_join(workers[w].thread, NULL);
    char total[24];
    snprintf(total, sizeof total, "%u", WORKERS * ROUNDS * AT_ONCE);
    expect(&main_world, "shared", total);
    struct hg_embedded_stats stats;
    hg_embedded_stats_read(main_world.shared, &stats);
    assert_true(stats.group_ops >= WORKERS * ROUNDS * (AT_ONCE + 2));
    assert_true(stats.groups <= stats.group_ops);
    assert_int_equal(stats.write_errors + stats.refused_full, 0);
    world_fini(&main_world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
