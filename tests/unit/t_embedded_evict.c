// t_embedded_evict - a full embedded store that is used as a cache: what goes, and what stays
// SPDX-License-Identifier: BSD-3-Clause
#include "embeddedhelp.h"
#include "proto/rowdoc.h"

/* How often the quota is written. A nested transaction allocates 2 MiB, which sanitizers mark byte
   by byte. */
#if defined(__SANITIZE_ADDRESS__)
#define TIMES 2
#define QUOTA (1u << 20)
#else
#define TIMES 10
#define QUOTA (2u << 20)
#endif

static enum hg_embedded_writing writings[] = {HG_EMBEDDED_WRITING_INLINE,
                                              HG_EMBEDDED_WRITING_THREAD};

static int set_up(void **state)
{
    struct world *world = world_for(state);
    world->options.max_bytes = QUOTA;
    world->options.evict = true;
    return 0;
}

static struct hg_embedded_stats stats_of(struct world *world)
{
    struct hg_embedded_stats stats;
    hg_embedded_stats_read(world->shared, &stats);
    return stats;
}

static uint32_t mix(uint32_t n)
{
    n = (n ^ n >> 16) * 0x85ebca6bu;
    n = (n ^ n >> 13) * 0xc2b2ae35u;
    return n ^ n >> 16;
}

enum order { RISING, RANDOM };

static void name(char key[32], enum order order, unsigned n)
{
    if (order == RISING)
        snprintf(key, 32, "key%08u", n);
    else
        snprintf(key, 32, "%08x", mix(n));
}

static uint16_t store(struct world *world, const char *key, size_t len, uint32_t flags,
                      uint32_t expiry)
{
    struct ask ask;
    uint8_t *bytes = malloc(len);
    assert_non_null(bytes);
    memset(bytes, key[strlen(key) - 1], len);
    ask_init(&ask, world, HG_OP_SET, key);
    ask.call.value = hg_span(bytes, len);
    ask.call.item_flags = flags;
    ask.call.expiry = expiry;
    ask_run(&ask);
    assert_int_equal(ask.result.fault, HG_FAULT_NONE);
    uint16_t status = ask.result.status;
    ask_fini(&ask);
    free(bytes);
    return status;
}

static bool has(struct world *world, const char *key)
{
    struct ask ask = run(world, HG_OP_GET, key, HG_SPAN_NONE, 0, 0);
    assert_int_equal(ask.result.fault, HG_FAULT_NONE);
    bool found = ask.result.status == HG_STATUS_SUCCESS;
    if (found)
        assert_int_equal(ask.value[0], key[strlen(key) - 1]);
    ask_fini(&ask);
    return found;
}

/* Many times the quota is written, each key once. Nothing is refused, the usage stays below the
   quota, and what is left is mostly what a cache that knows the exact order would have kept. */
static void many_times_the_quota(struct world *world, enum order order, size_t len)
{
    char key[32];
    unsigned count = (unsigned)(TIMES * (size_t)QUOTA / len);
    world_open(world);
    for (unsigned n = 0; n < count; n++) {
        name(key, order, n);
        assert_int_equal(store(world, key, len, 0, 0), HG_STATUS_SUCCESS);
        if (n % 64 == 0)
            assert_true(stats_of(world).used_bytes <= QUOTA);
    }
    struct hg_embedded_stats stats = stats_of(world);
    assert_true(stats.used_bytes <= QUOTA);
    assert_int_equal(stats.refused_full, 0);
    assert_int_equal(stats.write_errors, 0);
    assert_int_equal(stats.evicted + stats.items, count);
    assert_true(stats.evicted_bytes > stats.evicted * len);
    /* An exact cache of as many items holds the newest ones. */
    unsigned kept = (unsigned)stats.items, hits = 0, newest = 0;
    for (unsigned n = 0; n < kept; n++) {
        name(key, order, count - 1 - n);
        bool found = has(world, key);
        hits += found;
        newest += found && n < kept / 4;
    }
    print_message("# %zu bytes, %s keys: %u items (%.0f%% of the quota), %.0f%% of what an exact "
                  "cache would hold, %.0f%% of the newest quarter\n",
                  len, order == RISING ? "rising" : "random", kept,
                  100.0 * kept * (double)len / QUOTA, 100.0 * hits / kept,
                  100.0 * newest / (kept / 4));
    assert_true(kept * len > QUOTA * 2 / 5);
    assert_true(hits * 100 >= kept * 60);
    assert_true(newest * 100 >= kept / 4 * 85);
}

#define MANY_TIMES(order, len)                                                                     \
    static void many_times_##order##_##len(void **state)                                           \
    {                                                                                              \
        many_times_the_quota(*state, order, len);                                                  \
    }
MANY_TIMES(RISING, 200)
MANY_TIMES(RANDOM, 200)
MANY_TIMES(RISING, 1200)
MANY_TIMES(RANDOM, 1200)
MANY_TIMES(RISING, 20000)
MANY_TIMES(RANDOM, 20000)

/* Fills the store to its quota, and somewhat beyond. */
static unsigned fill(struct world *world, const char *prefix, size_t len)
{
    char key[32];
    unsigned n = 0;
    for (uint64_t before = stats_of(world).evicted;
         stats_of(world).evicted < before + 20 || n < 100; n++) {
        snprintf(key, sizeof key, "%s%08x", prefix, mix(n));
        assert_int_equal(store(world, key, len, 0, 0), HG_STATUS_SUCCESS);
    }
    return n;
}

/* What has expired goes before anything that lives, though it was written last. */
static void expired_first(void **state)
{
    struct world *world = *state;
    char key[32];
    world_open(world);
    unsigned live = QUOTA / 1000, dead = 0;
    for (unsigned n = 0; n < live; n++) {
        snprintf(key, sizeof key, "live%u", n);
        assert_int_equal(store(world, key, 300, 0, 0), HG_STATUS_SUCCESS);
    }
    for (; stats_of(world).used_bytes < QUOTA - 100000; dead++) {
        snprintf(key, sizeof key, "dead%u", dead);
        assert_int_equal(store(world, key, 300, 0, 10), HG_STATUS_SUCCESS);
    }
    atomic_fetch_add(&world->wall_s, 11);
    uint64_t swept = stats_of(world).swept;
    unsigned n = 0;
    for (; n < dead; n++) {
        snprintf(key, sizeof key, "next%u", n);
        assert_int_equal(store(world, key, 300, 0, 0), HG_STATUS_SUCCESS);
    }
    struct hg_embedded_stats stats = stats_of(world);
    assert_true(stats.evicted_expired + stats.swept - swept > dead / 2);
    unsigned kept = 0;
    for (n = 0; n < live; n++) {
        snprintf(key, sizeof key, "live%u", n);
        kept += has(world, key);
    }
    print_message("# %u of %u older items outlived %u expired ones\n", kept, live, dead);
    assert_true(kept > live * 3 / 4);
}

/* Rows are data: items make room for them, and they for nobody. */
static void rows_stay(void **state)
{
    struct world *world = *state;
    char key[32], row[300];
    world_open(world);
    memset(row, 'r', sizeof row);
    memcpy(row, "\xf7HGRT", 5);
    fill(world, "item", 300);
    unsigned rows = 0;
    for (;; rows++) {
        struct ask ask;
        snprintf(key, sizeof key, "row%08x", mix(rows));
        ask_init(&ask, world, HG_OP_SET, key);
        ask.call.value = hg_span(row, sizeof row);
        ask.call.item_flags = HG_ROWDOC_FLAGS;
        ask_run(&ask);
        bool stored = ask.result.status == HG_STATUS_SUCCESS;
        assert_true(stored || ask.result.status == HG_STATUS_ENOMEM);
        ask_fini(&ask);
        if (!stored)
            break;
    }
    print_message("# %u rows, %u items left\n", rows, (unsigned)(stats_of(world).items - rows));
    assert_true(rows * sizeof row > QUOTA * 2 / 5);
    struct hg_embedded_stats stats = stats_of(world);
    assert_true(stats.refused_full >= 1);
    assert_true(stats.used_bytes <= QUOTA);
    for (unsigned n = 0; n < rows; n++) {
        snprintf(key, sizeof key, "row%08x", mix(n));
        struct ask get = run(world, HG_OP_GET, key, HG_SPAN_NONE, 0, 0);
        assert_int_equal(get.result.status, HG_STATUS_SUCCESS);
        ask_fini(&get);
    }
    /* Deletes always work, and give room back. */
    for (unsigned n = 0; n < rows; n++) {
        snprintf(key, sizeof key, "row%08x", mix(n));
        assert_int_equal(put(world, HG_OP_DELETE, key, "", 0), HG_STATUS_SUCCESS);
    }
    fill(world, "more", 300);
}

/* Values of all sizes: what cannot fit is refused and throws nothing out. */
static void large_values(void **state)
{
    struct world *world = *state;
    char key[32];
    world->options.max_bytes = 1u << 20;
    world->options.max_value_bytes = 4u << 20;
    world_open(world);
    for (unsigned n = 0; n < 500; n++) {
        snprintf(key, sizeof key, "%08x", mix(n));
        assert_int_equal(store(world, key, 300, 0, 0), HG_STATUS_SUCCESS);
    }
    uint64_t before = stats_of(world).items;
    assert_int_equal(store(world, "huge", 1100000, 0, 0), HG_STATUS_ENOMEM);
    assert_int_equal(stats_of(world).items, before);
    assert_int_equal(stats_of(world).evicted, 0);
    for (unsigned n = 0; n < 300; n++) {
        snprintf(key, sizeof key, "large%u", n % 7);
        assert_int_equal(store(world, key, 1000 + (mix(n) % 500) * 1000, 0, 0), HG_STATUS_SUCCESS);
        assert_true(has(world, key));
        assert_true(stats_of(world).used_bytes <= 1u << 20);
    }
    assert_int_equal(stats_of(world).write_errors, 0);
}

/* What reads the old value to make the new one, while items are removed all around it. */
static void changes_at_the_quota(void **state)
{
    struct world *world = *state;
    char key[32], expected[512];
    world_open(world);
    fill(world, "item", 100);
    for (unsigned n = 0; n < 40; n++) {
        snprintf(key, sizeof key, "item%08x-own", mix(n));
        assert_int_equal(put(world, HG_OP_SET, key, "0123456789", 0), HG_STATUS_SUCCESS);
        snprintf(expected, sizeof expected, "0123456789");
        for (unsigned i = 0; i < 30; i++) {
            assert_int_equal(put(world, HG_OP_APPEND, key, "abcdefg", 0), HG_STATUS_SUCCESS);
            strcat(expected, "abcdefg");
        }
        assert_int_equal(put(world, HG_OP_TOUCH, key, "", 1000), HG_STATUS_SUCCESS);
        expect(world, key, expected);
        snprintf(key, sizeof key, "count%u", n);
        assert_int_equal(put(world, HG_OP_SET, key, "99", 0), HG_STATUS_SUCCESS);
        struct ask incr;
        ask_init(&incr, world, HG_OP_INCREMENT, key);
        incr.call.delta = 1;
        ask_run(&incr);
        assert_int_equal(incr.result.status, HG_STATUS_SUCCESS);
        assert_int_equal(incr.result.counter, 100);
        ask_fini(&incr);
    }
    assert_int_equal(stats_of(world).refused_full, 0);
    /* A flush works as ever. */
    assert_int_equal(put(world, HG_OP_FLUSH, "", "", 0), HG_STATUS_SUCCESS);
    TURN_UNTIL(world, items(world) == 0);
    assert_true(fill(world, "item", 100) > QUOTA / 400);
}

/* A smaller quota at the next start, and a store that begins to evict while it runs. */
static void a_smaller_quota(void **state)
{
    struct world *world = *state;
    char key[32];
    world->options.max_bytes = 8u << 20;
    world->options.evict = false;
    world_open(world);
    for (unsigned n = 0; n < 20000; n++) {
        snprintf(key, sizeof key, "%08x", mix(n));
        assert_int_equal(store(world, key, 200, 0, 0), HG_STATUS_SUCCESS);
    }
    world_close(world);
    world->options.max_bytes = QUOTA;
    world_open(world);
    assert_true(stats_of(world).used_bytes > QUOTA * 2);
    assert_int_equal(store(world, "refused", 5000, 0, 0), HG_STATUS_ENOMEM);
    assert_int_equal(stats_of(world).evicted, 0);
    hg_embedded_set_evict(world->shared, true);
    TURN_UNTIL(world, stats_of(world).used_bytes <= QUOTA);
    assert_int_equal(store(world, "stored", 5000, 0, 0), HG_STATUS_SUCCESS);
    unsigned newest = 0;
    for (unsigned n = 19000; n < 20000; n++) {
        snprintf(key, sizeof key, "%08x", mix(n));
        newest += has(world, key);
    }
    assert_true(newest > 900);
    hg_embedded_set_evict(world->shared, false);
    uint64_t evicted = stats_of(world).evicted;
    for (unsigned n = 0;
         store(world, (snprintf(key, sizeof key, "n%u", n), key), 5000, 0, 0) == HG_STATUS_SUCCESS;
         n++)
        assert_true(n < 1000);
    assert_int_equal(stats_of(world).evicted, evicted);
}

/* Sizes and operations all mixed, several at once in a group. */
static void churn(void **state)
{
    struct world *world = *state;
    enum { AT_ONCE = 40 };
    struct ask asks[AT_ONCE];
    static uint8_t bytes[130000];
    char key[32];
    uint32_t random = 12345;
    world_open(world);
    for (unsigned i = 0; i < 400; i++) {
        for (unsigned n = 0; n < AT_ONCE; n++) {
            random = random * 1664525 + 1013904223;
            snprintf(key, sizeof key, "key%u", (random >> 8) % 3000);
            unsigned kind = (random >> 24) % 16;
            ask_init(&asks[n], world,
                     kind == 0   ? HG_OP_DELETE
                     : kind == 1 ? HG_OP_APPEND
                     : kind == 2 ? HG_OP_GAT
                                 : HG_OP_SET,
                     key);
            size_t len = kind == 3 ? (random >> 8) % sizeof bytes : (random >> 8) % 1500;
            asks[n].call.value = hg_span(bytes, kind == 0 || kind == 2 ? 0 : len);
            asks[n].call.expiry = kind == 2 || kind == 4 ? 1 + (random >> 8) % 3 : 0;
            ask_submit(&asks[n]);
        }
        TURN_UNTIL(world, world->store->ops->drained(world->store));
        for (unsigned n = 0; n < AT_ONCE; n++) {
            assert_int_equal(asks[n].result.fault, HG_FAULT_NONE);
            assert_int_not_equal(asks[n].result.status, HG_STATUS_ENOMEM);
            ask_fini(&asks[n]);
        }
        assert_true(stats_of(world).used_bytes <= QUOTA);
        if (i % 20 == 0)
            atomic_fetch_add(&world->wall_s, 1);
    }
    struct hg_embedded_stats stats = stats_of(world);
    assert_int_equal(stats.write_errors, 0);
    assert_int_equal(stats.group_retries, 0);
    assert_true(stats.evicted > 0);
}

#define IN_MODE(fn, m)                                                                             \
    {                                                                                              \
#fn " " #m, fn, set_up, world_tear_down, &writings[m]                                      \
    }

#define IN_EACH_MODE(fn) IN_MODE(fn, 0), IN_MODE(fn, 1)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_MODE(expired_first, 0),
        IN_MODE(rows_stay, 1),
        IN_MODE(large_values, 0),
        IN_MODE(changes_at_the_quota, 0),
        IN_EACH_MODE(a_smaller_quota),
        IN_EACH_MODE(churn),
        IN_MODE(many_times_RISING_200, 0),
        IN_MODE(many_times_RANDOM_200, 0),
        IN_MODE(many_times_RISING_1200, 0),
        IN_MODE(many_times_RANDOM_1200, 0),
        IN_MODE(many_times_RISING_20000, 0),
        IN_MODE(many_times_RANDOM_20000, 1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
