// run - everything one call of headgate-load works with: tables, connections, threads, results
// SPDX-License-Identifier: BSD-3-Clause
#include "load/run.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "load/addr.h"
#include "load/codec.h"
#include "load/login.h"
#include "load/report.h"
#include "load/rowbody.h"
#include "load/secure.h"

/* Requests are written when so many bytes are composed, full depth or not. */
#define OUT_SOFT_BYTES (64u << 10)

/* A read takes at least so much; a reply that is larger than a value may be too. */
#define IN_BYTES (192u << 10)

/* Descriptors that are not connections. */
#define SPARE_DESCRIPTORS 64

HG_PRINTF(1, 2) static bool fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("headgate-load: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return false;
}

/* The rates that follow from a tenant's options. */
static void make_rates(const struct hg_load_tenant *tenant, struct hg_load_tables *tables)
{
    struct hg_rate *hot = &tables->hot_rate;
    if (tenant->rate.count > 0) {
        tables->warm_rate.count = 1;
        tables->warm_rate.step[0] = tenant->rate.step[0];
    }
    if (tenant->hot_at_ns > 0) {
        hot->step[hot->count++] = (struct hg_rate_step){0, 0};
    }
    hot->step[hot->count++] = (struct hg_rate_step){tenant->hot_at_ns, tenant->hot_rate};
    if (tenant->hot_until_ns != UINT64_MAX) {
        hot->step[hot->count++] = (struct hg_rate_step){tenant->hot_until_ns, 0};
    }
}

static bool make_tables(struct hg_load_run *run)
{
    for (uint32_t i = 0; i < run->options->tenant_count; i++) {
        const struct hg_load_tenant *tenant = &run->options->tenants[i];
        struct hg_load_tables *tables = &run->tables[i];
        make_rates(tenant, tables);
        if (hg_gen_mix_init(&tables->mix, tenant->weight) != 0 ||
            hg_gen_zipf_init(&tables->zipf, tenant->keys, tenant->zipf) != 0 ||
            hg_gen_values_init(&tables->values, tenant->value_min, tenant->value_max) != 0) {
            return fail("tenant '%s': out of memory for the tables of %u keys", tenant->name,
                        tenant->keys);
        }
    }
    return true;
}

static bool allow_descriptors(const struct hg_load_options *options)
{
    struct rlimit limit;
    rlim_t needed = SPARE_DESCRIPTORS;
    for (uint32_t i = 0; i < options->tenant_count; i++) {
        needed += options->tenants[i].connections;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) {
        return true;
    }
    limit.rlim_cur = needed < limit.rlim_max ? needed : limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur >= needed ||
           fail("%llu connections need %llu descriptors, the limit is %llu (ulimit -n)",
                (unsigned long long)(needed - SPARE_DESCRIPTORS), (unsigned long long)needed,
                (unsigned long long)limit.rlim_max);
}

/* Which of a tenant's connections a worker has. They go round over the workers, and each tenant
 * begins where the one before it ended: `start` is the sum of the connections before it. */
static struct hg_arrivals_share share_of_connections(uint64_t start, uint32_t connections,
                                                     uint32_t threads, uint32_t worker)
{
    uint32_t turn = (uint32_t)((worker + threads - start % threads) % threads);
    return (struct hg_arrivals_share){.first = turn, .stride = threads, .all = connections};
}

/* A share of `amount` for the connections of `share`, so that all shares add up to it. */
static uint64_t share_of(uint64_t amount, const struct hg_arrivals_share *share)
{
    uint64_t sum = 0;
    for (uint64_t n = share->first; n < share->all; n += share->stride) {
        sum += amount * (n + 1) / share->all - amount * n / share->all;
    }
    return sum;
}

/* How the lane's requests are spaced in time. */
static void prepare_loop(struct hg_load_lane *lane, const struct hg_arrivals_share *share)
{
    const struct hg_load_tenant *tenant = lane->tenant;
    uint32_t connections = hg_arrivals_own(share);
    lane->due_ns = lane->step_end_ns = UINT64_MAX;
    lane->hot_due_ns = UINT64_MAX; /* until the measured part begins */
    lane->slo_ns = tenant->slo_ms > 0 ? (uint64_t)(tenant->slo_ms * 1e6) : UINT64_MAX;
    if (tenant->arrivals != HG_ARRIVALS_CLOSED) {
        hg_open_init(lane, share, share_of(tenant->waiting, share));
        lane->worker->has_pace = lane->worker->is_open = true;
        return;
    }
    if (tenant->rate.count > 0) {
        lane->has_pace = true;
        lane->rate = &lane->tables->warm_rate;
        lane->share = (double)connections / tenant->connections;
        lane->worker->has_pace = true;
    }
    if (tenant->hot_rate > 0) {
        lane->hot_pace_ns = (uint64_t)(1e9 * tenant->connections / tenant->hot_rate / connections);
        lane->hot_pace_ns += lane->hot_pace_ns == 0;
    }
}

static const struct hg_load_codec *const codecs[] = {[HG_LOAD_BINARY] = &hg_load_codec_binary,
                                                     [HG_LOAD_TEXT] = &hg_load_codec_text,
                                                     [HG_LOAD_RESP] = &hg_load_codec_resp};

static struct hg_load_lane *new_lane(struct hg_load_run *run, uint32_t tenant_index,
                                     struct hg_load_worker *worker,
                                     const struct hg_arrivals_share *share)
{
    const struct hg_load_tenant *tenant = &run->options->tenants[tenant_index];
    struct hg_load_lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL) {
        return NULL;
    }
    lane->tenant = tenant;
    lane->tables = &run->tables[tenant_index];
    lane->codec = codecs[run->options->protocol];
    lane->worker = worker;
    lane->into = lane->phase = &lane->before;
    lane->alive = hg_arrivals_own(share);
    lane->digits = tenant->key == NULL ? hg_gen_digits(tenant->keys) : 0;
    lane->rng.state = hg_gen_mix(run->options->seed + 1) + hg_gen_mix(tenant_index + 1) * 3 +
                      ((uint64_t)worker->index << 40);
    prepare_loop(lane, share);
    uint64_t length_ns = (uint64_t)run->options->interval_ms * 1000000;
    if (length_ns > 0 && hg_series_init(&lane->series, length_ns, run->wall_offset_ns, lane->slo_ns,
                                        hg_lane_now_ns()) != 0) {
        free(lane);
        return NULL;
    }
    lane->codec->prepare(lane);
    worker->lanes[worker->lane_count++] = lane;
    return lane;
}

/* With what --fill stores a key: once for each kind of operations that the tenant has. */
static void choose_fill(struct hg_load_lane *lane)
{
    const struct hg_load_tenant *tenant = lane->tenant;
    bool classic = false, table = false, hbase = false;
    for (int i = 0; i < HG_LOAD_OPS; i++) {
        enum hg_load_op op = (enum hg_load_op)i;
        bool used = tenant->weight[op] > 0 || (tenant->hot_rate > 0 && tenant->hot_op == op);
        classic |= used && !hg_load_op_is_row(op);
        table |= used && hg_load_op_is_row(op) && !hg_load_op_is_hbase(op);
        hbase |= used && hg_load_op_is_hbase(op);
    }
    if (classic) {
        lane->fill_ops[lane->fill_op_count++] = HG_LOAD_SET;
    }
    if (tenant->weight[HG_LOAD_APPEND] > 0) {
        lane->fill_ops[lane->fill_op_count++] = HG_LOAD_START;
    }
    if (table) {
        lane->fill_ops[lane->fill_op_count++] = HG_LOAD_TABLE_INSERT_OR_UPDATE;
    }
    if (hbase) {
        lane->fill_ops[lane->fill_op_count++] = HG_LOAD_HBASE_PUT;
    }
}

/* Divides a tenant's keys among its lanes for --fill. */
static void share_keys(struct hg_load_run *run, uint32_t tenant_index)
{
    const struct hg_load_tenant *tenant = &run->options->tenants[tenant_index];
    struct hg_load_lane *lanes[256];
    uint64_t count = 0;
    for (uint32_t w = 0; w < run->options->threads; w++) {
        for (uint32_t i = 0; i < run->workers[w].lane_count; i++) {
            if (run->workers[w].lanes[i]->tenant == tenant) {
                lanes[count++] = run->workers[w].lanes[i];
            }
        }
    }
    for (uint64_t i = 0; i < count; i++) {
        lanes[i]->fill_first = (uint32_t)(tenant->keys * i / count);
        lanes[i]->fill_keys = (uint32_t)(tenant->keys * (i + 1) / count) - lanes[i]->fill_first;
        choose_fill(lanes[i]);
        lanes[i]->fill_total = (uint64_t)lanes[i]->fill_keys * lanes[i]->fill_op_count;
    }
}

static bool make_worker(struct hg_load_run *run, uint32_t index)
{
    const struct hg_load_options *options = run->options;
    struct hg_load_worker *worker = &run->workers[index];
    struct hg_arrivals_share shares[HG_LOAD_TENANTS_MAX];
    uint32_t value_max = 0;
    uint64_t start = 0;
    for (uint32_t i = 0; i < options->tenant_count; i++) {
        const struct hg_load_tenant *tenant = &options->tenants[i];
        shares[i] = share_of_connections(start, tenant->connections, options->threads, index);
        start += tenant->connections;
        worker->conn_count += hg_arrivals_own(&shares[i]);
        value_max = tenant->value_max > value_max ? tenant->value_max : value_max;
    }
    worker->plan = &run->plan;
    worker->index = index;
    worker->alive = worker->conn_count;
    worker->in_room = IN_BYTES + value_max;
    worker->out_soft = OUT_SOFT_BYTES;
    worker->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    worker->in = malloc(worker->in_room);
    worker->out = malloc(worker->out_soft + HG_LANE_FRAME_MAX + HG_ROWBODY_AROUND + 64 + value_max);
    worker->lanes = calloc(options->tenant_count, sizeof(struct hg_load_lane *));
    worker->conns = calloc(worker->conn_count, sizeof *worker->conns);
    if (worker->epoll_fd < 0 || worker->in == NULL || worker->out == NULL ||
        worker->lanes == NULL || worker->conns == NULL) {
        return fail("cannot set up thread %u: %s", index, strerror(errno));
    }
    for (uint32_t i = 0; i < worker->conn_count; i++) {
        worker->conns[i].fd = -1;
    }
    for (uint32_t i = 0; i < options->tenant_count; i++) {
        if (hg_arrivals_own(&shares[i]) > 0 && new_lane(run, i, worker, &shares[i]) == NULL) {
            return fail("out of memory");
        }
    }
    return true;
}

/* How to speak TLS with a tenant's server. */
struct place {
    struct hg_tls_ctx *ctx; /* NULL: not */
    const char *host;
};

/* One connection of a lane, up to the point where it may send. */
static bool open_connection(struct hg_load_run *run, struct hg_load_lane *lane,
                            const struct hg_load_endpoint *endpoint, struct hg_load_conn *conn,
                            struct Gsasl *sasl, const struct place *place)
{
    const struct hg_load_tenant *tenant = lane->tenant;
    int timeout_ms = (int)(run->options->timeout_ns / 1000000) + 1;
    char why[400];
    int fd = hg_load_addr_connect(endpoint, timeout_ms);
    if (fd < 0) {
        return fail("cannot connect to '%s': %s", tenant->server, strerror(-fd));
    }
    uint32_t salt = (uint32_t)hg_gen_random(&lane->rng);
    if (hg_load_conn_init(conn, lane, fd, salt) != 0) {
        close(fd);
        return fail("out of memory");
    }
    if (place->ctx != NULL) {
        conn->tls = hg_load_secure(place->ctx, fd, place->host, timeout_ms, why, sizeof why);
        if (conn->tls == NULL) {
            return fail("no TLS with '%s': %s", tenant->server, why);
        }
    }
    if (!hg_load_login(sasl, fd, conn->tls, tenant, timeout_ms, why, sizeof why)) {
        return fail("tenant '%s' at '%s': %s", tenant->name, tenant->server, why);
    }
    int rc = hg_load_worker_watch(lane->worker, conn, false, false);
    return rc == 0 || fail("cannot watch a connection: %s", strerror(-rc));
}

/* A tenant's connections, worker by worker; `used` counts what each worker's array holds. */
static bool open_at(struct hg_load_run *run, const struct hg_load_tenant *tenant,
                    struct Gsasl *sasl, uint32_t *used, struct place *place)
{
    struct hg_load_addr addr;
    struct hg_load_endpoint endpoint;
    if (!hg_load_addr_decode(tenant->server, &addr)) {
        return fail("'%s' is no address", tenant->server);
    }
    const char *why = hg_load_addr_resolve(&addr, &endpoint);
    if (why != NULL) {
        return fail("cannot resolve '%s': %s", tenant->server, why);
    }
    place->host = addr.is_unix ? "localhost" : addr.host;
    for (uint32_t w = 0; w < run->options->threads; w++) {
        struct hg_load_worker *worker = &run->workers[w];
        for (uint32_t i = 0; i < worker->lane_count; i++) {
            struct hg_load_lane *lane = worker->lanes[i];
            for (uint32_t n = 0; lane->tenant == tenant && n < lane->alive; n++) {
                struct hg_load_conn *conn = &worker->conns[used[w]++];
                if (!open_connection(run, lane, &endpoint, conn, sasl, place)) {
                    return false;
                }
            }
        }
    }
    return true;
}

static bool open_tenant(struct hg_load_run *run, const struct hg_load_tenant *tenant,
                        struct Gsasl *sasl, uint32_t *used)
{
    struct place place = {NULL, NULL};
    char why[HG_TLS_WHY_BYTES];
    if (!hg_load_secure_ctx(tenant, &place.ctx, why)) {
        return fail("tenant '%s': %s", tenant->name, why);
    }
    bool fine = open_at(run, tenant, sasl, used, &place);
    hg_tls_ctx_unref(place.ctx); /* connections have it, too */
    return fine;
}

static bool open_all(struct hg_load_run *run)
{
    const struct hg_load_options *options = run->options;
    struct Gsasl *sasl = NULL;
    uint32_t used[256] = {0};
    bool fine = true;
    for (uint32_t i = 0; i < options->tenant_count && fine; i++) {
        const struct hg_load_tenant *tenant = &options->tenants[i];
        if (tenant->user != NULL && sasl == NULL) {
            sasl = hg_load_login_new();
            fine = sasl != NULL || fail("cannot set up libgsasl");
        }
        fine = fine && open_tenant(run, tenant, sasl, used);
    }
    hg_load_login_free(sasl);
    return fine;
}

static void on_measure(void *user, bool begins, uint64_t now_ns)
{
    struct hg_load_run *run = user;
    for (uint32_t i = 0; i < run->options->cpu_of_count; i++) {
        (begins ? hg_load_cpu_start : hg_load_cpu_stop)(&run->others[i]);
    }
    (begins ? hg_load_cpu_start : hg_load_cpu_stop)(&run->own);
    hg_load_report_on_measure(run->report, begins, now_ns);
}

static void on_turn(void *user, uint64_t now_ns)
{
    struct hg_load_run *run = user;
    hg_load_report_on_turn(run->report, now_ns);
}

bool hg_load_run_init(struct hg_load_run *run, const struct hg_load_options *options,
                      const volatile sig_atomic_t *stop)
{
    memset(run, 0, sizeof *run);
    run->options = options;
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    run->wall_offset_ns =
        (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec - hg_lane_now_ns();
    run->plan = (struct hg_load_plan){
        .options = options,
        .stop = stop,
        .on_turn = options->interval_ns > 0 ? on_turn : NULL,
        .on_measure = on_measure,
        .user = run,
    };
    pthread_barrier_init(&run->plan.met, NULL, options->threads);
    run->tables = calloc(options->tenant_count, sizeof *run->tables);
    run->workers = calloc(options->threads, sizeof *run->workers);
    run->report = hg_load_report_new(run);
    if (run->tables == NULL || run->workers == NULL || run->report == NULL) {
        return fail("out of memory");
    }
    for (uint32_t i = 0; i < options->threads; i++) {
        run->workers[i].epoll_fd = -1;
    }
    if (!hg_load_report_open(run->report)) {
        return false;
    }
    int rc = hg_load_cpu_init(&run->own, 0);
    for (uint32_t i = 0; i < options->cpu_of_count && rc == 0; i++) {
        rc = hg_load_cpu_init(&run->others[i], options->cpu_of[i]);
        if (rc != 0) {
            return fail("cannot watch process %d: %s", (int)options->cpu_of[i], strerror(-rc));
        }
    }
    if (!allow_descriptors(options) || !make_tables(run)) {
        return false;
    }
    for (uint32_t i = 0; i < options->threads; i++) {
        if (!make_worker(run, i)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < options->tenant_count; i++) {
        share_keys(run, i);
    }
    return open_all(run);
}

static void *run_thread(void *user)
{
    hg_load_worker_run(user);
    return NULL;
}

bool hg_load_run_go(struct hg_load_run *run)
{
    for (uint32_t i = 1; i < run->options->threads; i++) {
        struct hg_load_worker *worker = &run->workers[i];
        int rc = pthread_create(&worker->thread, NULL, run_thread, worker);
        if (rc != 0) {
            /* The others wait at the barrier for ever; the process ends. */
            return fail("cannot start thread %u: %s", i, strerror(rc));
        }
    }
    hg_load_worker_run(&run->workers[0]);
    for (uint32_t i = 1; i < run->options->threads; i++) {
        pthread_join(run->workers[i].thread, NULL);
    }
    return true;
}

void hg_load_run_fini(struct hg_load_run *run)
{
    for (uint32_t w = 0; run->workers != NULL && w < run->options->threads; w++) {
        struct hg_load_worker *worker = &run->workers[w];
        for (uint32_t i = 0; worker->conns != NULL && i < worker->conn_count; i++) {
            hg_load_conn_fini(&worker->conns[i]);
        }
        for (uint32_t i = 0; i < worker->lane_count; i++) {
            hg_series_fini(&worker->lanes[i]->series);
            hg_open_fini(&worker->lanes[i]->open);
            free(worker->lanes[i]);
        }
        if (worker->epoll_fd >= 0) {
            close(worker->epoll_fd);
        }
        free(worker->in);
        free(worker->out);
        free(worker->lanes);
        free(worker->conns);
    }
    for (uint32_t i = 0; run->tables != NULL && i < run->options->tenant_count; i++) {
        hg_gen_mix_fini(&run->tables[i].mix);
        hg_gen_zipf_fini(&run->tables[i].zipf);
        hg_gen_values_fini(&run->tables[i].values);
    }
    pthread_barrier_destroy(&run->plan.met);
    hg_load_report_free(run->report);
    free(run->tables);
    free(run->workers);
}
