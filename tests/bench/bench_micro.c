// bench_micro - nanoseconds of the small steps that every request takes
// SPDX-License-Identifier: BSD-3-Clause
//
//   bench_micro [STEP]      each step five times, the median printed
//
// For instructions instead of time: valgrind --tool=callgrind tests/bench/bench_micro STEP
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_balance.h"
#include "table/tableop.h"
#include "core/hotkey.h"
#include "base/clock.h"
#include "base/prng.h"
#include "base/slab.h"
#include "core/credit.h"
#include "core/credittick.h"
#include "core/hotmerge.h"
#include "core/keylist.h"
#include "core/keythrottle.h"
#include "core/ticket.h"
#include "core/ticketline.h"
#include "core/units.h"
#include "proto/frame.h"
#include "proto/mcreq.h"
#include "proto/reply.h"

#define ROUNDS 5

static unsigned long iterations = 2000000;
static volatile uint64_t sink; /* keeps the compiler from dropping what is measured */

/* ---- frames ---- */

static uint8_t get_frame[24 + 16], set_frame[24 + 8 + 16 + 32];

static void make_frames(void)
{
    hg_reply_header(get_frame, 0x80, 0x00, 16, 0, 0, 0, 16, 7, 0);
    memcpy(get_frame + 24, "0123456789abcdef", 16);
    hg_reply_header(set_frame, 0x80, 0x01, 16, 8, 0, 0, 8 + 16 + 32, 7, 0);
    memcpy(set_frame + 32, "0123456789abcdef", 16);
}

static void decode(const uint8_t *bytes, size_t len)
{
    const struct hg_frame_limits limits = {20 << 20, 1 << 20};
    struct hg_frame frame;
    const char *why = NULL;
    uint64_t sum = 0;
    for (unsigned long i = 0; i < iterations; i++) {
        if (hg_frame_decode(bytes, len, &limits, &frame) == HG_OK)
            sum += frame.total_bytes + hg_frame_check(&frame, 0, &why);
    }
    sink = sum;
}

static void frame_get(void)
{
    decode(get_frame, sizeof get_frame);
}

static void frame_set(void)
{
    decode(set_frame, sizeof set_frame);
}

static void reply_header(void)
{
    uint8_t out[24];
    for (unsigned long i = 0; i < iterations; i++) {
        hg_reply_header(out, 0x81, 0, 0, 4, 0, 0, 36, (uint32_t)i, i);
        sink = out[23];
    }
}

/* ---- credits ---- */

static struct hg_credit_node node;
static struct hg_credit_bucket bucket;
static struct hg_credit_lane lanes[1];

static void credit_setup(uint64_t reserved, uint64_t hard_limit)
{
    struct hg_credit_settings settings = {.capacity = HG_UNITS_LIMIT_MAX, .slot_ms = 1000};
    struct hg_credit_bucket *all[] = {&bucket};
    struct hg_fair scratch[1];
    struct hg_credit_tick tick;
    memset(&node, 0, sizeof node);
    memset(&bucket, 0, sizeof bucket);
    memset(lanes, 0, sizeof lanes);
    hg_credit_init(&node, &settings, 1);
    hg_credit_bucket_init(&node, &bucket, lanes, reserved, hard_limit);
    hg_credit_join(&bucket);
    hg_credit_tick(&node, all, 1, scratch, 1000000, &tick);
}

static void decide_and_settle(void)
{
    struct hg_charge charge;
    uint64_t sum = 0;
    for (unsigned long i = 0; i < iterations; i++) {
        if (hg_credit_decide(&node, &bucket, 1, 0, &charge) == HG_CREDIT_PASS)
            sum += hg_credit_settle(&node, &bucket, &charge, 1);
    }
    sink = sum;
}

static void credit_reserved(void)
{
    credit_setup(HG_UNITS_LIMIT_MAX, HG_UNITS_UNLIMITED);
    decide_and_settle();
}

static void credit_pool(void)
{
    credit_setup(0, HG_UNITS_LIMIT_MAX);
    decide_and_settle();
}

static void credit_hold(void)
{
    struct hg_charge charge;
    uint64_t sum = 0;
    credit_setup(0, 0);
    for (unsigned long i = 0; i < iterations; i++)
        sum += hg_credit_decide(&node, &bucket, 1, 0, &charge);
    sink = sum;
}

/* ---- tickets ---- */

static struct hg_ticket holder;
static struct hg_ticketline line;
static struct hg_ticketline_tenant line_tenants[16];
static struct hg_ticketline_waiter line_waiters[1024];

static void ticket_prepare(void)
{
    hg_ticket_init(&holder, 1000);
}

/* Nobody waits, and no other worker is at it. */
static void ticket_take_put(void)
{
    uint64_t sum = 0;
    for (unsigned long i = 0; i < iterations; i++)
        if (hg_ticket_try(&holder))
            sum += hg_ticket_put(&holder);
    sink = sum;
}

static void line_push(unsigned long i)
{
    struct hg_ticketline_waiter *waiter = &line_waiters[i % HG_COUNT_OF(line_waiters)];
    waiter->since_us = waiter->came_us = i;
    waiter->deadline_us = i + 1000000;
    hg_ticketline_push(&line, &line_tenants[i % HG_COUNT_OF(line_tenants)], waiter, i);
}

/* Sixteen tenants, of which each has 32 in line. */
static void line_prepare(void)
{
    hg_ticketline_init(&line);
    for (size_t i = 0; i < HG_COUNT_OF(line_tenants); i++)
        hg_ticketline_tenant_init(&line_tenants[i]);
}

static const struct hg_ticketline_conf line_conf = {
    .queue_timeout_us = 1000000, .flood_wait_us = 100000, .size = 32};

static void line_push_pop(void)
{
    line_prepare();
    for (unsigned long i = 0; i < iterations; i++) {
        line_push(i);
        if (line.count > HG_COUNT_OF(line_waiters) / 2 &&
            hg_ticketline_pop(&line, &line_conf, i) == NULL)
            abort();
    }
}

/* Those that give up, in the order in which they came. */
static void line_push_expire(void)
{
    line_prepare();
    for (unsigned long i = 0; i < iterations; i++) {
        line_push(i);
        if (line.count > HG_COUNT_OF(line_waiters) / 2 &&
            hg_ticketline_expire(&line, &line_conf, i + 2000000) == NULL)
            abort();
    }
}

/* What each request pays while nobody waits. */
static void line_take_give(void)
{
    line_prepare();
    for (unsigned long i = 0; i < iterations; i++) {
        struct hg_ticketline_tenant *tenant = &line_tenants[i % HG_COUNT_OF(line_tenants)];
        hg_ticketline_take(&line, tenant, i);
        hg_ticketline_give(&line, tenant, i & 1023, true, i + 1);
    }
    sink = line_tenants[0].mean_16us;
}

/* ---- memory ---- */

static void slab(void)
{
    struct hg_slab pool;
    hg_slab_init(&pool, 384, 64);
    for (unsigned long i = 0; i < iterations; i++) {
        void *object = hg_slab_borrow(&pool);
        if (object == NULL)
            abort();
        sink = (uint64_t)(uintptr_t)object;
        hg_slab_give_back(&pool, object);
    }
    hg_slab_fini(&pool);
}

/* ---- rows ---- */

/* INSERT_OR_UPDATE of one of eight columns, without reading and writing the document. */
static void row_apply(void)
{
    struct hg_column columns[8];
    struct hg_arena arena;
    struct hg_row_outcome outcome;
    uint64_t sum = 0;
    static const char names[] = "column_0column_1column_2column_3"
                                "column_4column_5column_6column_7";
    for (size_t i = 0; i < 8; i++)
        columns[i] = (struct hg_column){hg_span(&names[8 * i], 8),
                                        {.kind = HG_VALUE_INTEGER, .integer = (int64_t)i}};
    struct hg_row row = {.api = HG_API_TABLE, .entity = {columns, 8}};
    struct hg_column change = columns[5];
    struct hg_table_item item = {.op = HG_OP_TABLE_INSERT_OR_UPDATE, .entity = {&change, 1}};
    hg_arena_init(&arena, 1 << 20);
    for (unsigned long i = 0; i < iterations; i++) {
        change.value.integer = (int64_t)i;
        hg_tableop_apply(&row, &item, &arena, &outcome);
        sum += outcome.row.entity.count;
        hg_arena_reset(&arena);
    }
    hg_arena_fini(&arena);
    sink = sum;
}

/* ---- hot keys ---- */

#define HOT_KEYS 1000000

struct hot_op {
    uint8_t key[16];
    uint32_t hash;
};
static struct hot_op *hot_ops;
static struct hg_hotkey *hot_all, *hot_type;

static void *need(size_t bytes)
{
    void *memory = malloc(bytes);
    if (memory == NULL)
        abort();
    return memory;
}

/* A stream of requests by Zipf's law; exponent 0: all keys alike. Their keys lie in a row, as they
   would in a buffer that was just read. */
static void hot_stream(double exponent)
{
    struct hg_prng prng = {42};
    double *mass = need(HOT_KEYS * sizeof *mass), sum = 0;

    if (hot_ops == NULL)
        hot_ops = need(iterations * sizeof *hot_ops);
    for (unsigned i = 0; i < HOT_KEYS; i++)
        mass[i] = sum += pow(i + 1, -exponent);
    for (unsigned long n = 0; n < iterations; n++) {
        double at = (double)(hg_prng_next(&prng) >> 11) * 0x1p-53 * sum;
        unsigned low = 0, high = HOT_KEYS - 1;
        while (low < high) {
            unsigned middle = (low + high) / 2;
            if (mass[middle] < at)
                low = middle + 1;
            else
                high = middle;
        }
        struct hg_prng hash = {low};
        uint64_t bits = hg_prng_next(&hash);
        char text[17];
        snprintf(text, sizeof text, "user:%011u", low);
        memcpy(hot_ops[n].key, text, 16);
        hot_ops[n].hash = (uint32_t)bits;
    }
    free(mass);
    if (hot_all == NULL) {
        hot_all = hg_hotkey_init(need(hg_hotkey_bytes(512)), 512);
        hot_type = hg_hotkey_init(need(hg_hotkey_bytes(256)), 256);
    }
}

static void hot_uniform_stream(void)
{
    hot_stream(0);
}

static void hot_zipf_stream(void)
{
    hot_stream(0.99);
}

/* What each counted operation costs: its own type and ALL. */
static void hot_update(void)
{
    hg_hotkey_clear(hot_all);
    hg_hotkey_clear(hot_type);
    for (unsigned long i = 0; i < iterations; i++) {
        struct hg_hotkey_key key = {hot_ops[i].key, hot_ops[i].hash, sizeof hot_ops[i].key, 0};
        hg_hotkey_tell(hot_type, &key, 1);
        hg_hotkey_tell(hot_all, &key, 1);
    }
    sink = hg_hotkey_min(hot_all);
}

/* ---- the end of an epoch ---- */

#define TICKS   500
#define WORKERS 2
#define TYPES   5
#define LISTED  100

static struct hg_hotkey *tick_sketches[TYPES][WORKERS];
static void *tick_merged[TYPES], *tick_scratch, *tick_lists[WORKERS];
static struct hg_keythrottle_key tick_listed[LISTED], tick_keys[LISTED + HG_HOT_TOP];
static struct hg_keythrottle tick_throttle;

static unsigned tick_counters(unsigned type)
{
    return type == 0 ? 512 : 256;
}

/* A busy tenant: two workers, all types in use, all sketches full, a hundred keys listed. */
static void tick_prepare(double exponent)
{
    hot_stream(exponent);
    for (unsigned t = 0; t < TYPES; t++) {
        for (unsigned w = 0; w < WORKERS && tick_sketches[t][w] == NULL; w++)
            tick_sketches[t][w] =
                hg_hotkey_init(need(hg_hotkey_bytes(tick_counters(t))), tick_counters(t));
        for (unsigned w = 0; w < WORKERS; w++)
            hg_hotkey_clear(tick_sketches[t][w]);
        if (tick_merged[t] == NULL)
            tick_merged[t] = need(hg_hotmerge_bytes(tick_counters(t)));
    }
    if (tick_scratch == NULL)
        tick_scratch = need(hg_hotmerge_scratch_bytes(WORKERS * 512));
    for (unsigned i = 0; i < 200000; i++) {
        struct hg_hotkey_key key = {hot_ops[i].key, hot_ops[i].hash, sizeof hot_ops[i].key, 0};
        hg_hotkey_tell(tick_sketches[0][i % WORKERS], &key, 1);
        hg_hotkey_tell(tick_sketches[1 + i / WORKERS % 4][i % WORKERS], &key, 1);
    }
    for (unsigned i = 0; i < LISTED; i++) {
        struct hg_keythrottle_key *listed = &tick_listed[i];
        *listed = (struct hg_keythrottle_key){.percent = 50, .share = UINT32_MAX / 2};
        listed->key = (struct hg_hotkey_key){listed->bytes, hot_ops[i * 50].hash, 16, 0};
        memcpy(listed->bytes, hot_ops[i * 50].key, 16);
    }
    tick_throttle = (struct hg_keythrottle){.keys = tick_listed, .count = LISTED};
    for (unsigned w = 0; w < WORKERS; w++) {
        free(tick_lists[w]);
        tick_lists[w] = need(hg_keylist_bytes(&tick_throttle) + HG_HOT_TOP * 1024);
    }
}

static void tick_uniform(void)
{
    tick_prepare(0);
}

static void tick_zipf(void)
{
    tick_prepare(0.99);
}

/* A tenant's whole tick, told for each of its workers: merge, decide, make the workers' lists. */
static void tick(void)
{
    const struct hg_keythrottle_settings settings = {10000, HG_HOTKEY_STEP};
    for (unsigned i = 0; i < TICKS; i++) {
        struct hg_keythrottle_span spans[HG_KEYTHROTTLE_EPOCHS];
        memcpy(tick_keys, tick_listed, sizeof tick_listed);
        tick_throttle = (struct hg_keythrottle){
            .keys = tick_keys, .count = LISTED, .room = LISTED + HG_HOT_TOP};
        for (unsigned t = 0; t < TYPES; t++)
            hg_hotmerge_make(tick_merged[t], tick_counters(t),
                             (const struct hg_hotkey *const *)tick_sketches[t], WORKERS,
                             tick_scratch);
        for (unsigned e = 0; e < HG_KEYTHROTTLE_EPOCHS; e++)
            spans[e] = (struct hg_keythrottle_span){tick_merged[0], 2000000};
        hg_keythrottle_epoch(&tick_throttle, &settings, spans, 2000000);
        for (unsigned w = 0; w < WORKERS; w++) {
            struct hg_keylist *list =
                hg_keylist_make(tick_lists[w], &tick_throttle, settings.control, i);
            hg_keylist_report(list, &tick_throttle);
            sink = (uint64_t)(uintptr_t)list;
        }
    }
}

/* A worker's share of it: empties the sketches of a tenant. */
static void hot_clear(void)
{
    for (unsigned i = 0; i < TICKS * WORKERS; i++) {
        for (unsigned t = 0; t < TYPES; t++)
            hg_hotkey_clear(tick_sketches[t][i % WORKERS]);
    }
}

/* ---- the list of throttled keys ---- */

static struct hg_keylist *draw_list;

static void list_prepare(void)
{
    tick_zipf();
    tick_throttle = (struct hg_keythrottle){.keys = tick_listed, .count = LISTED};
    draw_list = hg_keylist_make(tick_lists[0], &tick_throttle, HG_HOTKEY_STEP, 0);
}

static void list_miss(void)
{
    uint64_t sum = 0;
    for (unsigned long i = 0; i < iterations; i++) {
        struct hg_hotkey_key key = {hot_ops[i].key, ~hot_ops[i].hash, sizeof hot_ops[i].key, 0};
        sum += (uint64_t)hg_keylist_find(draw_list, &key);
    }
    sink = sum;
}

static void list_hit(void)
{
    struct hg_prng prng = {1};
    uint64_t sum = 0;
    for (unsigned long i = 0; i < iterations; i++) {
        const struct hot_op *op = &hot_ops[i % LISTED * 50];
        struct hg_hotkey_key key = {op->key, op->hash, sizeof op->key, 0};
        sum += hg_keylist_refuses(draw_list, hg_keylist_find(draw_list, &key), &prng);
    }
    sink = sum;
}

static const struct {
    const char *name;
    void (*run)(void);
    void (*prepare)(void);
    unsigned long times; /* of the step in a run; 0: `iterations` */
} steps[] = {
    {"frame_get", frame_get, NULL, 0},
    {"frame_set", frame_set, NULL, 0},
    {"reply_header", reply_header, NULL, 0},
    {"credit_reserved", credit_reserved, NULL, 0},
    {"credit_pool", credit_pool, NULL, 0},
    {"credit_hold", credit_hold, NULL, 0},
    {"ticket_take_put", ticket_take_put, ticket_prepare, 0},
    {"line_push_pop", line_push_pop, NULL, 0},
    {"line_push_expire", line_push_expire, NULL, 0},
    {"line_take_give", line_take_give, NULL, 0},
    {"slab", slab, NULL, 0},
    {"row_apply", row_apply, NULL, 0},
    {"hot_two_uniform", hot_update, hot_uniform_stream, 0},
    {"hot_two_zipf", hot_update, hot_zipf_stream, 0},
    {"hot_tick_uniform", tick, tick_uniform, TICKS *WORKERS},
    {"hot_tick_zipf", tick, tick_zipf, TICKS *WORKERS},
    {"hot_clear", hot_clear, tick_zipf, TICKS *WORKERS},
    {"list_miss", list_miss, list_prepare, 0},
    {"list_hit", list_hit, list_prepare, 0},
    {"balance_acquire", bench_balance_acquire, bench_balance_shared, BENCH_BALANCE_PLANS},
    {"balance_release", bench_balance_release, bench_balance_shared, BENCH_BALANCE_PLANS},
    {"balance_request", bench_balance_request, bench_balance_shared, BENCH_BALANCE_PLANS},
    {"balance_tick", bench_balance_tick, bench_balance_shared, BENCH_BALANCE_TICKS},
    {"balance_acquire_ring", bench_balance_acquire, bench_balance_ring, BENCH_BALANCE_PLANS},
    {"balance_acquire_vain", bench_balance_acquire, bench_balance_resting, BENCH_BALANCE_PLANS},
    {"balance_release_ring", bench_balance_release, bench_balance_ring, BENCH_BALANCE_PLANS},
    {"balance_tick_ring", bench_balance_tick, bench_balance_ring, BENCH_BALANCE_TICKS},
};

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

int main(int argc, char **argv)
{
    make_frames();
    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
        if (argc > 1 && strcmp(argv[1], steps[s].name) != 0)
            continue;
        double ns[ROUNDS];
        double times = (double)(steps[s].times > 0 ? steps[s].times : iterations);
        if (steps[s].prepare != NULL)
            steps[s].prepare();
        for (unsigned r = 0; r < ROUNDS; r++) {
            uint64_t begin_us = hg_now_us();
            steps[s].run();
            ns[r] = (double)(hg_now_us() - begin_us) * 1000 / times;
        }
        qsort(ns, ROUNDS, sizeof ns[0], by_value);
        printf("%-16s %7.2f ns  (%.2f to %.2f)\n", steps[s].name, ns[ROUNDS / 2], ns[0],
               ns[ROUNDS - 1]);
    }
    return 0;
}
