// worker - one thread with its loop, its clients and its instances of the stores
// SPDX-License-Identifier: BSD-3-Clause
#include "front/worker.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "front/bind.h"
#include "front/dispatch.h"
#include "front/gate.h"
#include "front/held.h"
#include "front/flood.h"
#include "front/heldkey.h"
#include "front/hot.h"
#include "front/instance.h"
#include "front/request.h"
#include "front/session.h"
#include "front/table.h"

#define REQUESTS_PER_BLOCK 64

/* ---- ends of turns ---- */

static void run_ready_lane(struct hg_worker *worker, struct hg_lane *lane)
{
    struct hg_list now;
    hg_list_init(&now);
    hg_list_splice(&now, &lane->ready);
    while (!hg_list_empty(&now)) {
        if (lane->turn == worker->loop.turns && lane->turn_frames >= hg_lane_share(worker))
            break;
        struct hg_session *session = HG_CONTAINER_OF(hg_list_first(&now), struct hg_session, ready);
        hg_list_remove(&session->ready);
        hg_session_run(session);
    }
    /* Those whose turn did not come stay in front of those that came back. */
    hg_list_splice(&now, &lane->ready);
    hg_list_splice(&lane->ready, &now);
}

static void on_ready(struct hg_hook *hook)
{
    struct hg_worker *worker = HG_CONTAINER_OF(hook, struct hg_worker, ready_hook);
    hg_held_pass_wanted(worker);
    hg_gates_serve(worker);
    struct hg_list lanes;
    hg_list_init(&lanes);
    hg_list_splice(&lanes, &worker->ready_lanes);
    while (!hg_list_empty(&lanes)) {
        struct hg_lane *lane = HG_CONTAINER_OF(hg_list_first(&lanes), struct hg_lane, ready_node);
        hg_list_remove(&lane->ready_node);
        run_ready_lane(worker, lane);
        if (!hg_list_empty(&lane->ready)) {
            if (hg_list_empty(&lane->ready_node))
                hg_list_append(&worker->ready_lanes, &lane->ready_node);
            hg_loop_again(&worker->loop);
        }
    }
    hg_tables_go_on(worker);
}

static void on_clients(struct hg_hook *hook)
{
    struct hg_worker *worker = HG_CONTAINER_OF(hook, struct hg_worker, client_hook);
    struct hg_list now;
    hg_list_init(&now);
    hg_list_splice(&now, &worker->dirty);
    while (!hg_list_empty(&now)) {
        struct hg_session *session = HG_CONTAINER_OF(hg_list_first(&now), struct hg_session, dirty);
        hg_list_remove(&session->dirty);
        hg_session_flush(session);
    }
    worker->active_lanes_before = worker->active_lanes;
    worker->active_lanes = 0;
}

static void release_lanes(struct hg_worker *worker)
{
    HG_LIST_EACH(node, &worker->lanes_used)
    {
        struct hg_lane *lane = HG_CONTAINER_OF(node, struct hg_lane, used);
        if (lane->users > 0)
            continue;
        hg_list_remove(&lane->used);
        hg_list_remove(&lane->ready_node);
        hg_bucket_unref(lane->bucket);
    }
}

static void on_cleanup(struct hg_hook *hook)
{
    struct hg_worker *worker = HG_CONTAINER_OF(hook, struct hg_worker, cleanup_hook);
    hg_held_poke_wanted(worker);
    while (!hg_list_empty(&worker->dead)) {
        struct hg_session *session =
            HG_CONTAINER_OF(hg_list_first(&worker->dead), struct hg_session, dirty);
        hg_session_free(session);
    }
    if (worker->lanes_idle) {
        worker->lanes_idle = false;
        release_lanes(worker);
    }
    if (!hg_list_empty(&worker->old_instances))
        hg_instances_close_old(worker);
    hg_counter_add(&worker->turns, 1);
    hg_counter_set(&worker->memory_bytes, worker->blobs.live_bytes);
}

static void on_timer(struct hg_timer *timer)
{
    struct hg_worker *worker = HG_CONTAINER_OF(timer, struct hg_worker, timer);
    hg_held_expire(worker);
    hg_gates_publish(worker);
    if (worker->timer_count % 2 == 0) {
        hg_binds_sweep(worker);
        hg_heldkeys_look(worker);
        hg_floods_look(worker);
    }
    hg_tables_tick(worker);
    if (++worker->timer_count % HG_WORKER_TIMERS_A_LOOK != 0)
        return;
    HG_LIST_EACH(node, &worker->sessions)
    hg_session_tick(HG_CONTAINER_OF(node, struct hg_session, node), worker->loop.now_us);
}

/* ---- lanes and stores ---- */

void hg_worker_use_lane(struct hg_worker *worker, struct hg_lane *lane)
{
    if (lane->users++ == 0 && hg_list_empty(&lane->used)) {
        hg_bucket_ref(lane->bucket);
        hg_list_append(&worker->lanes_used, &lane->used);
        hg_gate_lane_adopt(lane);
    }
}

void hg_worker_leave_lane(struct hg_worker *worker, struct hg_lane *lane)
{
    assert(lane->users > 0);
    if (--lane->users == 0)
        worker->lanes_idle = true;
}

/* As whom tenants go to the servers of the generations that are listed now. */
static void adopt_identities(struct hg_worker *worker)
{
    const struct hg_directory *directory = worker->directory;
    for (size_t i = 0; i < directory->bucket_count; i++) {
        struct hg_bucket *bucket = directory->buckets[i];
        struct hg_lane *lane = &bucket->lanes[worker->index];
        const struct hg_generation *generation = NULL;
        if (bucket->upstream != NULL)
            generation = hg_directory_generation(directory, bucket->upstream);
        lane->identity = directory->identities[i];
        lane->generation = generation != NULL ? generation->number : 0;
    }
}

static void adopt(struct hg_worker *worker, struct hg_directory *directory)
{
    struct hg_directory *old = worker->directory;
    worker->directory = directory;
    adopt_identities(worker);
    hg_instances_adopt(worker);
    HG_LIST_EACH(node, &worker->sessions)
    {
        struct hg_session *session = HG_CONTAINER_OF(node, struct hg_session, node);
        if (!session->dead)
            hg_session_adopt(session);
        if (!session->dead)
            hg_dispatch_adopt(session);
    }
    hg_gates_adopt(worker);
    hg_hot_adopt(worker);
    hg_words_forget(&worker->words);
    hg_directory_unref(old);
}

/* ---- letters ---- */

struct client_letter {
    struct hg_letter letter;
    struct hg_client client;
};

static void on_client_letter(struct hg_letter *letter, void *receiver)
{
    struct client_letter *given = HG_CONTAINER_OF(letter, struct client_letter, letter);
    const struct hg_client *client = &given->client;
    struct hg_worker *worker = receiver;
    struct hg_session *session = NULL;
    hg_counter_add(&worker->accepted, 1);
    hg_sock_tune(client->fd, worker->directory->settings.keepalive_s);
    if (!worker->stopping)
        session = hg_session_new(worker, client);
    if (session == NULL) {
        hg_tls_free(client->tls);
        close(client->fd);
        atomic_fetch_sub(&worker->load, 1);
    } else if (worker->draining && !session->dead) {
        hg_session_finish(session);
    } else if (worker->leaving && !session->dead) {
        hg_session_leave(session);
    }
    free(given);
}

int hg_worker_give(struct hg_worker *worker, const struct hg_client *client)
{
    struct client_letter *given = malloc(sizeof *given);
    if (given == NULL)
        return -ENOMEM;
    *given = (struct client_letter){{NULL, on_client_letter}, *client};
    atomic_fetch_add(&worker->load, 1);
    hg_mailbox_post(&worker->mailbox, &given->letter);
    return 0;
}

int hg_worker_give_client(struct hg_worker *worker, int fd, const struct hg_addr *peer,
                          bool over_limit)
{
    struct hg_client client = {.fd = fd, .over_limit = over_limit, .peer = *peer};
    return hg_worker_give(worker, &client);
}

struct directory_letter {
    struct hg_letter letter;
    struct hg_directory *directory;
};

static void on_directory_letter(struct hg_letter *letter, void *receiver)
{
    struct directory_letter *given = HG_CONTAINER_OF(letter, struct directory_letter, letter);
    adopt(receiver, given->directory);
    free(given);
}

int hg_worker_give_directory(struct hg_worker *worker, struct hg_directory *directory)
{
    struct directory_letter *given = malloc(sizeof *given);
    if (given == NULL)
        return -ENOMEM;
    given->letter.deliver = on_directory_letter;
    given->directory = hg_directory_ref(directory);
    hg_mailbox_post(&worker->mailbox, &given->letter);
    return 0;
}

static void on_tick_letter(struct hg_letter *letter, void *receiver)
{
    struct hg_worker *worker = receiver;
    (void)letter;
    /* Cleared first: who posts from now on may have something that this pass does not see. */
    atomic_store(&worker->tick_posted, false);
    hg_held_pass_all(worker);
}

void hg_worker_give_tick(struct hg_worker *worker)
{
    if (atomic_exchange(&worker->tick_posted, true))
        return;
    worker->tick_letter.deliver = on_tick_letter;
    hg_mailbox_post(&worker->mailbox, &worker->tick_letter);
}

static void on_leave_letter(struct hg_letter *letter, void *receiver)
{
    struct hg_worker *worker = receiver;
    (void)letter;
    worker->leaving = true;
    HG_LIST_EACH(node, &worker->sessions)
    {
        struct hg_session *session = HG_CONTAINER_OF(node, struct hg_session, node);
        if (!session->dead)
            hg_session_leave(session);
    }
}

void hg_worker_begin_leave(struct hg_worker *worker)
{
    worker->leave_letter.deliver = on_leave_letter;
    hg_mailbox_post(&worker->mailbox, &worker->leave_letter);
}

static void on_drain_letter(struct hg_letter *letter, void *receiver)
{
    struct hg_worker *worker = receiver;
    (void)letter;
    worker->draining = true;
    HG_LIST_EACH(node, &worker->sessions)
    {
        struct hg_session *session = HG_CONTAINER_OF(node, struct hg_session, node);
        if (!session->dead)
            hg_session_finish(session);
    }
}

void hg_worker_begin_drain(struct hg_worker *worker)
{
    worker->drain_letter.deliver = on_drain_letter;
    hg_mailbox_post(&worker->mailbox, &worker->drain_letter);
}

static void on_stop_letter(struct hg_letter *letter, void *receiver)
{
    struct hg_worker *worker = receiver;
    (void)letter;
    worker->stopping = true;
    hg_loop_stop(&worker->loop);
}

/* ---- the thread ---- */

void hg_worker_close(struct hg_worker *worker)
{
    worker->stopping = true; /* letters may still come, and find nothing to do */
    hg_hot_close(worker);
    hg_binds_close(worker);
    HG_LIST_EACH(node, &worker->sessions)
    hg_session_close(HG_CONTAINER_OF(node, struct hg_session, node));
    hg_instances_close(worker);
    while (!hg_list_empty(&worker->dead))
        hg_session_free(HG_CONTAINER_OF(hg_list_first(&worker->dead), struct hg_session, dirty));
    release_lanes(worker);
}

static void *run(void *arg)
{
    struct hg_worker *worker = arg;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    hg_loop_run(&worker->loop);
    hg_worker_close(worker);
    return NULL;
}

static void free_parts(struct hg_worker *worker)
{
    hg_loop_timer_fini(&worker->timer);
    hg_gates_close(worker);
    hg_binds_free(worker);
    hg_heldkeys_free(worker);
    hg_floods_free(worker);
    hg_tables_close(worker);
    hg_directory_unref(worker->directory);
    hg_out_pool_fini(&worker->outs);
    hg_slab_fini(&worker->requests);
    hg_blobs_fini(&worker->blobs);
    free(worker->scratch);
    hg_loop_fini(&worker->loop);
}

static void init_parts(struct hg_worker *worker, struct hg_front *front, unsigned index)
{
    worker->index = index;
    worker->front = front;
    hg_list_init(&worker->sessions);
    hg_list_init(&worker->ready_lanes);
    hg_list_init(&worker->dirty);
    hg_list_init(&worker->dead);
    hg_list_init(&worker->lanes_held);
    hg_list_init(&worker->lanes_used);
    hg_list_init(&worker->old_instances);
    hg_lane_init(&worker->nobody, NULL);
    hg_hot_open(worker);
    hg_blobs_init(&worker->blobs);
    hg_out_pool_init(&worker->outs, &worker->blobs);
    hg_slab_init(&worker->requests, sizeof(struct hg_request), REQUESTS_PER_BLOCK);
}

int hg_worker_open(struct hg_worker *worker, struct hg_front *front, unsigned index,
                   struct hg_directory *directory)
{
    init_parts(worker, front, index);
    worker->scratch = malloc(HG_SCRATCH_BYTES);
    int rc = worker->scratch != NULL ? hg_loop_init(&worker->loop) : -ENOMEM;
    if (rc != 0) {
        free(worker->scratch);
        return rc;
    }
    worker->directory = hg_directory_ref(directory);
    adopt_identities(worker);
    hg_loop_hook(&worker->loop, HG_STAGE_READY, &worker->ready_hook, on_ready);
    hg_loop_hook(&worker->loop, HG_STAGE_CLIENTS, &worker->client_hook, on_clients);
    hg_loop_hook(&worker->loop, HG_STAGE_CLEANUP, &worker->cleanup_hook, on_cleanup);
    rc = hg_loop_timer_init(&worker->loop, &worker->timer, HG_WORKER_TIMER_US, on_timer);
    if (rc == 0)
        rc = hg_gates_open(worker);
    if (rc == 0)
        rc = hg_binds_open(worker);
    if (rc == 0)
        rc = hg_heldkeys_open(worker);
    if (rc == 0)
        rc = hg_floods_open(worker);
    if (rc == 0)
        rc = hg_tables_open(worker);
    if (rc == 0)
        rc = hg_mailbox_init(&worker->mailbox, &worker->loop, worker);
    if (rc != 0)
        free_parts(worker);
    return rc;
}

int hg_worker_start(struct hg_worker *worker, struct hg_front *front, unsigned index,
                    struct hg_directory *directory)
{
    int rc = hg_worker_open(worker, front, index, directory);
    if (rc != 0)
        return rc;
    rc = -pthread_create(&worker->thread, NULL, run, worker);
    if (rc != 0)
        hg_workers_free(worker, 1);
    return rc;
}

void hg_worker_stop(struct hg_worker *worker)
{
    struct hg_letter stop = {NULL, on_stop_letter};
    hg_mailbox_post(&worker->mailbox, &stop);
    pthread_join(worker->thread, NULL);
}

void hg_workers_free(struct hg_worker *workers, unsigned count)
{
    bool any = true;
    while (any) {
        any = false;
        for (unsigned w = 0; w < count; w++)
            any |= hg_mailbox_deliver(&workers[w].mailbox);
    }
    for (unsigned w = 0; w < count; w++) {
        hg_mailbox_fini(&workers[w].mailbox);
        free_parts(&workers[w]);
    }
}
