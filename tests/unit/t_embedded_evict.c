// t_embedded_evict - a full embedded store that is used as a cache: what goes, and what stays
// SPDX-License-Identifier: BSD-3-Clause
#include "embeddedhelp.h"
#include "proto/rowdoc.h"

#define QUOTA (2u << 20)

static enum hg_embedded_writing writings[] = {HG_EMBEDDED_WRITING_INLINE,
                                              HG_EMBEDDED_WRITING_THREAD};

static int set_up(void **state)
{
    enum hg_embedded_writing *writing = *state;
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world_init(world, *writing, HG_EMBEDDED_SYNC_NEVER);
    world->options.max_bytes = QUOTA;
    world->options.evict = true;
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    world_fini(*state);
    free(*state);
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

/* Ten times the quota is written, each key once. Nothing is refused, the usage stays below the
   quota, and what is left is mostly what a cache that knows the exact order would have kept. */
static void ten_times_the_quota(struct world *world, enum order order, size_t len)
{
    char key[32];
    unsigned count = (unsigned)(10 * (size_t)QUOTA / len);
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

#define TEN_TIMES(order, len)                                                                      \
    static void ten_times_##order##_##len(void **state)                                            \
    {                                                                                              \
        ten_times_the_quota(*state, order, len);                                                   \
    }
TEN_TIMES(RISING, 200)
TEN_TIMES(RANDOM, 200)
TEN_TIMES(RISING, 1200)
TEN_TIMES(RANDOM, 1200)
TEN_TIMES(RISING, 20000)
TEN_TIMES(RANDOM, 20000)

#define IN_MODE(fn, m)                                                                             \
    {                                                                                              \
#fn " " #m, fn, set_up, tear_down, &writings[m]                                            \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_MODE(ten_times_RISING_200, 0),   IN_MODE(ten_times_RANDOM_200, 0),
        IN_MODE(ten_times_RISING_1200, 0),  IN_MODE(ten_times_RANDOM_1200, 0),
        IN_MODE(ten_times_RISING_20000, 0), IN_MODE(ten_times_RANDOM_20000, 1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
