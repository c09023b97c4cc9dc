// bench_embedded - nanoseconds per get and per grouped set of the embedded store
// SPDX-License-Identifier: BSD-3-Clause
//
//   bench_embedded [dir [value bytes]]
//
// 100,000 keys of 16 bytes, Zipf 0.99, as the comparison in doc/performance.md has them. A "turn"
// is what a worker does in one: so many gets, so many sets, then the end of the turn, where the
// sets are committed and answered. Without a dir the file lies in /tmp.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "back/embedded.h"
#include "base/clock.h"
#include "base/prng.h"

#define KEYS    100000u
#define PICKS   (1u << 20)
#define CALLS   2048
#define SECONDS 0.5

struct bench {
    struct hg_embedded_shared *shared;
    struct hg_loop loop;
    struct hg_store *store;
    uint32_t tenant_id;
    char (*keys)[17];
    uint32_t *picks;
    uint32_t pick;
    struct hg_call calls[CALLS];
    uint8_t value[65536];
    size_t value_bytes;
    unsigned pending;
    uint64_t sum;
};

static struct bench bench;

static void stop(const char *text)
{
    fprintf(stderr, "bench_embedded: %s\n", text);
    exit(1);
}

static void on_get(struct hg_call *call, const struct hg_result *result)
{
    (void)call;
    if (result->status != 0 || result->value.len != bench.value_bytes)
        stop("a get failed");
    bench.sum += result->value.at[0];
}

static void on_set(struct hg_call *call, const struct hg_result *result)
{
    (void)call;
    if (result->status != 0)
        stop("a set failed");
    bench.pending--;
}

static void on_room(struct hg_call *call)
{
    if (bench.store->ops->submit(bench.store, call) != HG_SUBMIT_TAKEN)
        stop("no room");
}

/* A Zipf distribution over the keys, shuffled. */
static void make_picks(void)
{
    struct hg_prng random = {1};
    double *upto = malloc(KEYS * sizeof *upto), sum = 0;
    uint32_t *rank = malloc(KEYS * sizeof *rank);
    bench.picks = malloc(PICKS * sizeof *bench.picks);
    bench.keys = malloc(KEYS * sizeof *bench.keys);
    if (upto == NULL || rank == NULL || bench.picks == NULL || bench.keys == NULL)
        stop("out of memory");
    for (uint32_t i = 0; i < KEYS; i++) {
        upto[i] = sum += 1 / pow(i + 1, 0.99);
        rank[i] = i;
        snprintf(bench.keys[i], sizeof bench.keys[i], "key-%012u", i);
    }
    for (uint32_t i = KEYS - 1; i > 0; i--) {
        uint32_t j = (uint32_t)hg_prng_below(&random, i + 1), keep = rank[i];
        rank[i] = rank[j];
        rank[j] = keep;
    }
    for (uint32_t p = 0; p < PICKS; p++) {
        double at = (double)(hg_prng_next(&random) >> 11) / 9007199254740992.0 * sum;
        uint32_t low = 0, high = KEYS - 1;
        while (low < high) {
            uint32_t mid = (low + high) / 2;
            if (upto[mid] < at)
                low = mid + 1;
            else
                high = mid;
        }
        bench.picks[p] = rank[low];
    }
    free(upto);
    free(rank);
}

static void submit(struct hg_call *call, enum hg_op op, uint32_t key)
{
    call->op = op;
    call->tenant_id = bench.tenant_id;
    call->key = hg_span(bench.keys[key], 16);
    call->value = op == HG_OP_SET ? hg_span(bench.value, bench.value_bytes) : HG_SPAN_NONE;
    call->on_done = op == HG_OP_SET ? on_set : on_get;
    call->on_room = on_room;
    bench.pending += op == HG_OP_SET;
    bench.store->ops->submit(bench.store, call);
}

static void end_turn(void)
{
    hg_loop_again(&bench.loop);
    do
        hg_loop_turn(&bench.loop, bench.pending > 0);
    while (bench.pending > 0);
}

/* Turns of `gets` and `sets`; nanoseconds per turn. */
static double measure(unsigned gets, unsigned sets)
{
    uint64_t begin_us = hg_now_us(), now_us = begin_us, turns = 0;
    while (now_us - begin_us < (uint64_t)(SECONDS * 1e6)) {
        for (unsigned rounds = 0; rounds < 16; rounds++, turns++) {
            for (unsigned i = 0; i < gets + sets; i++)
                submit(&bench.calls[i], i < gets ? HG_OP_GET : HG_OP_SET,
                       bench.picks[bench.pick++ % PICKS]);
            end_turn();
        }
        now_us = hg_now_us();
    }
    return (double)(now_us - begin_us) * 1000 / (double)turns;
}

static void open_store(const char *dir, enum hg_embedded_writing writing,
                       enum hg_embedded_sync sync)
{
    char error[256];
    struct hg_embedded_options options = {
        .data_dir = dir,
        .name = "bench",
        .sync = sync,
        .writing = writing,
        .workers = 1,
        .max_bytes = (uint64_t)4 << 30,
        .max_value_bytes = 1u << 20,
        .timeout_us = 60000000,
    };
    if (hg_embedded_open(&options, &bench.shared, error, sizeof error) != 0)
        stop(error);
    if (hg_loop_init(&bench.loop) != 0 ||
        hg_embedded_store_new(bench.shared, &bench.loop, &bench.store) != 0 ||
        hg_embedded_tenant_id(bench.shared, "bench", &bench.tenant_id) != 0)
        stop("cannot make the store");
}

static void close_store(void)
{
    bench.store->ops->free(bench.store);
    hg_loop_fini(&bench.loop);
    hg_embedded_close(bench.shared);
}

static void measure_all(const char *title)
{
    static const unsigned groups[] = {1, 5, 20, 80, 320};
    printf("%s, values of %zu bytes\n", title, bench.value_bytes);
    for (uint32_t key = 0; key < KEYS; key++) {
        submit(&bench.calls[key % CALLS], HG_OP_SET, key);
        if (key % CALLS == CALLS - 1 || key == KEYS - 1)
            end_turn();
    }
    double empty = measure(0, 0), gets = measure(800, 0);
    printf("  %8.0f ns  turn without calls\n", empty);
    printf("  %8.0f ns  per get, 800 a turn\n", (gets - empty) / 800);
    for (unsigned g = 0; g < HG_COUNT_OF(groups); g++)
        printf("  %8.0f ns  per set, %u a turn\n", (measure(0, groups[g]) - empty) / groups[g],
               groups[g]);
    printf("  %8.0f ns  per call, 720 gets and 80 sets a turn\n", measure(720, 80) / 800);
    printf("  %8.0f ns  per call, 45 gets and 5 sets a turn\n", measure(45, 5) / 50);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char made[] = "/tmp/bench_embedded.XXXXXX", path[512];
    const char *dir = argc > 1 ? argv[1] : mkdtemp(made);
    if (dir == NULL)
        stop("cannot make a folder in /tmp");
    bench.value_bytes = argc > 2 ? (size_t)atoi(argv[2]) : 32;
    if (bench.value_bytes < 1 || bench.value_bytes > sizeof bench.value)
        stop("value bytes must be 1 to 65536");
    make_picks();
    open_store(dir, HG_EMBEDDED_WRITING_INLINE, HG_EMBEDDED_SYNC_SECOND);
    measure_all("the worker writes");
    close_store();
    open_store(dir, HG_EMBEDDED_WRITING_THREAD, HG_EMBEDDED_SYNC_SECOND);
    measure_all("a writer thread");
    close_store();
    snprintf(path, sizeof path, "%s/bench.mdb", dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/bench.mdb-lock", dir);
    unlink(path);
    if (argc < 2)
        rmdir(dir);
    free(bench.picks);
    free(bench.keys);
    return 0;
}
