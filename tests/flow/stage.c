// stage - front and core on a stage: workers, buckets and credits, with fakes for store, process,
// clients and clock
// SPDX-License-Identifier: BSD-3-Clause
#include "stage.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "stagehooks.h"

#define TURNS_MAX 20000

static _Atomic uint64_t clock_us = 1000000000;

static uint64_t read_clock(void)
{
    return atomic_load(&clock_us);
}

void stage_advance(uint64_t us)
{
    atomic_fetch_add(&clock_us, us);
}

uint64_t stage_deadline(void)
{
    return patience_end_us();
}

/* ---- buckets and directories ---- */

static void on_bucket_gone(struct hg_bucket *bucket, void *ctx)
{
    (void)bucket;
    __atomic_fetch_add(&((struct stage *)ctx)->retired, 1, __ATOMIC_SEQ_CST);
}

struct hg_bucket *stage_find(struct stage *stage, const char *name)
{
    for (unsigned i = 0; i < stage->bucket_count; i++)
        if (strcmp(stage->buckets[i]->name, name) == 0)
            return stage->buckets[i];
    fail_msg("no bucket %s", name);
    return NULL;
}

struct hg_bucket *stage_bucket(struct stage *stage, const char *name, uint64_t reserved,
                               uint64_t hard_limit)
{
    static uint32_t tenant_id;
    struct hg_bucket *bucket = hg_bucket_new(name, stage->worker_count);
    assert_non_null(bucket);
    assert_true(stage->bucket_count < STAGE_BUCKETS);
    bucket->retire = on_bucket_gone;
    bucket->retire_ctx = stage;
    bucket->upstream = hg_upstream_ref(&stage->upstreams[0].upstream);
    bucket->tenant_id = ++tenant_id;
    atomic_store(&bucket->credit_mode, HG_MODE_ENFORCE);
    atomic_store(&bucket->allow_flush, true);
    hg_credit_bucket_init(&stage->node, &bucket->credit, bucket->credit_lanes, reserved,
                          hard_limit);
    unsigned at = stage->bucket_count++;
    while (at > 0 && strcmp(stage->buckets[at - 1]->name, name) > 0) {
        stage->buckets[at] = stage->buckets[at - 1];
        at--;
    }
    stage->buckets[at] = bucket;
    return bucket;
}

void stage_delete(struct stage *stage, const char *name)
{
    struct hg_bucket *bucket = stage_find(stage, name);
    atomic_store(&bucket->state, HG_BUCKET_DELETED);
    unsigned at = 0;
    while (stage->buckets[at] != bucket)
        at++;
    for (stage->bucket_count--; at < stage->bucket_count; at++)
        stage->buckets[at] = stage->buckets[at + 1];
    hg_bucket_unref(bucket);
}

static struct hg_directory *make_directory(struct stage *stage)
{
    struct hg_directory *directory = hg_directory_new(stage->bucket_count, stage->upstream_count);
    assert_non_null(directory);
    directory->settings = stage->settings;
    directory->users = stage;
    for (unsigned i = 0; i < stage->upstream_count; i++)
        hg_directory_list(directory, stage->upstreams[i].generation);
    for (unsigned i = 0; i < stage->bucket_count; i++)
        directory->buckets[directory->bucket_count++] = hg_bucket_ref(stage->buckets[i]);
    return directory;
}

void stage_list(struct stage *stage)
{
    hg_directory_unref(stage->directory);
    stage->directory = make_directory(stage);
}

void stage_publish(struct stage *stage)
{
    stage_list(stage);
    for (unsigned w = 0; stage->workers != NULL && w < stage->worker_count; w++)
        assert_int_equal(hg_worker_give_directory(&stage->workers[w], stage->directory), 0);
}

/* ---- the stage ---- */

void stage_init(struct stage *stage, unsigned workers)
{
    memset(stage, 0, sizeof *stage);
    assert_true(workers <= STAGE_WORKERS);
    stage->worker_count = workers;
    stage->settings = (struct hg_front_settings){
        .max_frame_bytes = 20u << 20,
        .max_value_bytes = 1u << 20,
        .high_water_bytes = 256u << 10,
        .request_deadline_us = 2500000,
        .throttle_max_wait_us = 60000000, /* beyond the deadline: of no matter */
        .read_unit_bytes = 4096,
        .write_unit_bytes = 1024,
    };
    stage->settings.request_deadline_us = 3600000000;
    stage->anonymous_privileges = HG_PRIVILEGES_ALL & ~HG_PRIVILEGE_BIT(HG_PRIVILEGE_UNTHROTTLED) &
                                  ~HG_PRIVILEGE_BIT(HG_PRIVILEGE_UNMETERED);
    stage->anonymous_bucket = "default";
    pthread_mutex_init(&stage->lock, NULL);
    stage->front.node = &stage->node;
    stage->front.worker_count = workers;
    stage->front.version = "1.2.3";
    stage->front.hash_seed = 42;
    hg_cursors_init(&stage->front.cursors);
    assert_int_equal(
        hg_gate_holder_init(&stage->front.ingress, HG_GATE_INGRESS, workers, 1000000, NULL), 0);
    atomic_init(&stage->front.ingress_enabled, true);
    stage_set_hooks(stage);
    hg_credit_init(&stage->node,
                   &(struct hg_credit_settings){.capacity = HG_UNITS_UNLIMITED,
                                                .slot_ms = STAGE_SLOT_US / 1000},
                   workers);
    stage->upstream_count = 1;
    stage_bucket(stage, "default", 0, HG_UNITS_UNLIMITED);
}

static void make_workers(struct stage *stage)
{
    size_t bytes = stage->worker_count * sizeof(struct hg_worker);
    bytes = (bytes + HG_CACHE_LINE - 1) & ~(size_t)(HG_CACHE_LINE - 1);
    struct hg_worker *workers = aligned_alloc(HG_CACHE_LINE, bytes);
    assert_non_null(workers);
    memset(workers, 0, bytes);
    stage_publish(stage);
    stage->workers = stage->front.workers = workers;
    stage_tick(stage);
}

/* The newest epoll descriptor of this process. */
static int newest_epoll(void)
{
    int found = -1;
    char path[64], target[64];
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, target, sizeof target - 1);
        if (n > 0 && strncmp(target, "anon_inode:[eventpoll]", (size_t)n) == 0)
            found = fd;
    }
    assert_true(found >= 0);
    return found;
}

void stage_open(struct stage *stage)
{
    make_workers(stage);
    for (unsigned w = 0; w < stage->worker_count; w++) {
        assert_int_equal(hg_worker_open(&stage->workers[w], &stage->front, w, stage->directory), 0);
        stage->workers[w].loop.clock = read_clock;
        event_del(&stage->workers[w].timer.event); /* it goes by the real clock: see stage_timer */
        stage->epolls[w] = newest_epoll();
    }
}

void stage_start(struct stage *stage)
{
    stage->threads = true;
    make_workers(stage);
    for (unsigned w = 0; w < stage->worker_count; w++)
        assert_int_equal(hg_worker_start(&stage->workers[w], &stage->front, w, stage->directory),
                         0);
}

static void check_worker(const struct hg_worker *worker)
{
    uint64_t sum = 0;
    for (unsigned o = 0; o < HG_OUTCOMES; o++)
        sum += hg_counter_get(&worker->outcomes[o]);
    assert_int_equal(sum, hg_counter_get(&worker->cmd_total));
    assert_int_equal(hg_counter_get(&worker->in_flight), 0);
    assert_int_equal(hg_counter_get(&worker->held_now), 0);
    assert_int_equal(hg_counter_get(&worker->connections), 0);
    assert_int_equal(worker->requests.borrowed, 0);
    assert_int_equal(worker->tables.live, 0);
    assert_int_equal(worker->tables.guards.borrowed, 0);
    assert_int_equal(worker->blobs.live_bytes, 0);
    assert_int_equal(atomic_load(&worker->load), 0);
}

static void check_bucket(struct stage *stage, struct hg_bucket *bucket)
{
    assert_int_equal(atomic_load(&bucket->connections), 0);
    assert_int_equal(atomic_load(&bucket->credit.users), 0);
    assert_int_equal((uint32_t)atomic_load(&bucket->credit.queue), 0);
    for (unsigned w = 0; w < stage->worker_count; w++) {
        uint64_t sum = 0;
        for (unsigned o = 0; o < HG_OUTCOMES; o++)
            sum += hg_counter_get(&bucket->lanes[w].outcomes[o]);
        assert_int_equal(sum, hg_counter_get(&bucket->lanes[w].requests));
        assert_int_equal(bucket->lanes[w].users, 0);
        assert_int_equal(bucket->lanes[w].holding.count, 0);
        assert_int_equal(bucket->lanes[w].holding.units, 0);
    }
}

void stage_close(struct stage *stage)
{
    for (unsigned w = 0; w < stage->worker_count; w++) {
        if (stage->threads)
            hg_worker_stop(&stage->workers[w]);
        else
            hg_worker_close(&stage->workers[w]);
    }
    struct hg_job *job;
    while ((job = stage_job(stage)) != NULL)
        hg_job_answer(job);
    for (unsigned w = 0; w < stage->worker_count; w++)
        check_worker(&stage->workers[w]);
    hg_workers_free(stage->workers, stage->worker_count);
    hg_gate_holder_fini(&stage->front.ingress);
    hg_cursors_fini(&stage->front.cursors);
    hg_directory_unref(stage->directory);
    for (unsigned i = 0; i < stage->bucket_count; i++) {
        check_bucket(stage, stage->buckets[i]);
        assert_int_equal(atomic_load(&stage->buckets[i]->refs), 1);
        hg_bucket_unref(stage->buckets[i]);
    }
    for (unsigned i = 0; i < HG_COUNT_OF(stage->upstreams); i++) {
        assert_int_equal(stage->upstreams[i].opened, stage->upstreams[i].freed);
        assert_int_equal(stage->upstreams[i].generations, 1);
        hg_generation_unref(stage->upstreams[i].generation);
        assert_int_equal(atomic_load(&stage->upstreams[i].upstream.refs), 1);
        hg_gateset_free(stage->upstreams[i].upstream.gates);
    }
    pthread_mutex_destroy(&stage->lock);
    free(stage->workers);
}

/* ---- connections ---- */

static void give(struct stage *stage, unsigned worker, int fd)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(4711)};
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct hg_addr peer = {.len = sizeof in};
    memcpy(&peer.sa, &in, sizeof in);
    assert_int_equal(hg_worker_give_client(&stage->workers[worker], fd, &peer, false), 0);
}

void stage_connect(struct stage *stage, unsigned worker, struct client *client)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    client_init(client, fds[0]);
    give(stage, worker, fds[1]);
}

void stage_connect_tcp(struct stage *stage, unsigned worker, struct client *client)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    socklen_t len = sizeof in;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&in, &len), 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
    int other = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(other >= 0);
    close(listener);
    client_init(client, fd);
    give(stage, worker, other);
}

struct hg_session *stage_session(struct stage *stage)
{
    struct hg_session *found = NULL;
    HG_LIST_EACH(node, &stage->workers[0].sessions)
    {
        struct hg_session *session = HG_CONTAINER_OF(node, struct hg_session, node);
        if (!session->dead)
            found = session;
    }
    return found;
}

unsigned stage_sessions(struct stage *stage)
{
    unsigned n = 0;
    for (unsigned w = 0; w < stage->worker_count; w++)
        n += (unsigned)hg_counter_get(&stage->workers[w].connections);
    return n;
}

struct fakestore *stage_store(struct stage *stage)
{
    struct hg_store *store = hg_worker_store(&stage->workers[0], &stage->upstreams[0].upstream);
    assert_non_null(store);
    return HG_CONTAINER_OF(store, struct fakestore, store);
}

/* ---- time ---- */

void stage_turn(struct stage *stage)
{
    for (unsigned w = 0; w < stage->worker_count; w++)
        hg_loop_turn(&stage->workers[w].loop, false);
}

void stage_run(struct stage *stage)
{
    unsigned quiet = 0;
    for (unsigned n = 0; quiet < 4; n++) {
        if (n > TURNS_MAX)
            fail_msg("the loops find no rest");
        bool busy = false;
        stage_turn(stage);
        for (unsigned w = 0; w < stage->worker_count; w++) {
            struct pollfd events = {.fd = stage->epolls[w], .events = POLLIN};
            busy |= stage->workers[w].loop.again || poll(&events, 1, 0) > 0;
        }
        quiet = busy ? 0 : quiet + 1;
    }
}

void stage_wait(struct stage *stage)
{
    if (stage->threads)
        patience_nap();
    else
        stage_turn(stage);
}

void stage_tick(struct stage *stage)
{
    struct hg_credit_bucket *credits[STAGE_BUCKETS];
    struct hg_fair scratch[STAGE_BUCKETS];
    for (unsigned i = 0; i < stage->bucket_count; i++)
        credits[i] = &stage->buckets[i]->credit;
    uint64_t due_us = hg_credit_due_us(&stage->node);
    if (due_us > read_clock())
        atomic_store(&clock_us, due_us);
    hg_credit_tick(&stage->node, credits, stage->bucket_count, scratch, read_clock(),
                   &stage->last_tick);
    for (uint64_t poke = stage->last_tick.poke; poke != 0; poke &= poke - 1)
        hg_worker_give_tick(&stage->workers[__builtin_ctzll(poke)]);
}

void stage_timer(struct stage *stage)
{
    for (unsigned w = 0; w < stage->worker_count; w++) {
        struct hg_worker *worker = &stage->workers[w];
        worker->loop.now_us = read_clock();
        for (unsigned n = 0; n < HG_WORKER_TIMERS_A_LOOK; n++)
            worker->timer.fn(&worker->timer);
    }
}

/* ---- what came of it ---- */

uint64_t stage_outcome(const struct stage *stage, enum hg_outcome outcome)
{
    uint64_t sum = 0;
    for (unsigned w = 0; w < stage->worker_count; w++)
        sum += hg_counter_get(&stage->workers[w].outcomes[outcome]);
    return sum;
}

uint64_t stage_total(const struct stage *stage)
{
    uint64_t sum = 0;
    for (unsigned w = 0; w < stage->worker_count; w++)
        sum += hg_counter_get(&stage->workers[w].cmd_total);
    return sum;
}

struct reply stage_expect(struct stage *stage, struct client *client, uint8_t opcode,
                          uint16_t status, uint32_t opaque)
{
    struct reply reply;
    while (!client_take(client, &reply)) {
        size_t before = client->read_total;
        stage_run(stage);
        client_read(client, SIZE_MAX);
        if (client->read_total > before)
            continue;
        fail_msg("no reply where opcode 0x%02x, opaque %u was expected%s", opcode, opaque,
                 client->ended ? " (closed)" : "");
    }
    if (reply.opcode != opcode || reply.status != status || reply.opaque != opaque)
        fail_msg("opcode 0x%02x status 0x%04x opaque %u '%s', not 0x%02x 0x%04x %u", reply.opcode,
                 reply.status, reply.opaque, reply_text(&reply), opcode, status, opaque);
    return reply;
}

void stage_expect_nothing(struct stage *stage, struct client *client)
{
    struct reply reply;
    stage_run(stage);
    client_read(client, SIZE_MAX);
    if (client_take(client, &reply))
        fail_msg("an unexpected reply: opcode 0x%02x status 0x%04x opaque %u '%s'", reply.opcode,
                 reply.status, reply.opaque, reply_text(&reply));
    assert_false(client->ended);
}

void stage_expect_end(struct stage *stage, struct client *client)
{
    struct reply reply;
    stage_run(stage);
    client_read(client, SIZE_MAX);
    if (client_take(client, &reply))
        fail_msg("an unexpected reply: opcode 0x%02x status 0x%04x opaque %u '%s'", reply.opcode,
                 reply.status, reply.opaque, reply_text(&reply));
    assert_true(client->ended);
}

const char *reply_text(const struct reply *reply)
{
    static char text[2048];
    size_t len = reply->value.len < sizeof text - 1 ? reply->value.len : sizeof text - 1;
    if (len > 0)
        memcpy(text, reply->value.at, len);
    text[len] = '\0';
    return text;
}
