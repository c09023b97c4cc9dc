// handshake - greets the clients of TLS listeners, off the accept path and off the workers
// SPDX-License-Identifier: BSD-3-Clause
#include "front/handshake.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "front/listener.h"
#include "front/session.h"

#define FIRST_BYTE_OF_TLS 0x16
#define ADDRESS_SLOTS     256 /* addresses are told apart by so many hashes */

/* One thread, and what it greets: in the order of their coming. */
struct greeter {
    struct hg_handshakes *all;
    pthread_t thread;
    struct hg_loop loop;
    struct hg_mailbox mailbox;
    struct hg_timer timer;
    struct hg_list list;
    unsigned by_address[ADDRESS_SLOTS];
    bool stopping;
    struct hg_handshake_stats stats;
};

struct hg_handshakes {
    struct hg_front *front;
    unsigned count, running; /* threads */
    unsigned next;           /* whose turn it is; main thread's */
    _Atomic unsigned max, now;
    _Atomic uint64_t timeout_us;
    struct greeter greeters[];
};

struct handshake {
    struct hg_letter letter;
    struct hg_list node;
    struct greeter *greeter;
    struct hg_client client;
    struct hg_tls_rules *rules;
    struct event event;
    short watching;
    bool silent; /* no byte has come */
    uint8_t slot;
    uint64_t born_us;
};

struct hg_tls_rules *hg_tls_rules_new(struct hg_tls_ctx *ctx, enum hg_client_user user)
{
    struct hg_tls_rules *rules = calloc(1, sizeof *rules);
    if (rules == NULL)
        return NULL;
    atomic_init(&rules->refs, 1);
    rules->ctx = ctx;
    rules->user = user;
    return rules;
}

struct hg_tls_rules *hg_tls_rules_ref(struct hg_tls_rules *rules)
{
    atomic_fetch_add(&rules->refs, 1);
    return rules;
}

void hg_tls_rules_unref(struct hg_tls_rules *rules)
{
    if (rules == NULL || atomic_fetch_sub(&rules->refs, 1) > 1)
        return;
    hg_tls_ctx_unref(rules->ctx);
    free(rules);
}

/* ---- one handshake ---- */

static void unwatch(struct handshake *shake)
{
    if (shake->watching != 0)
        event_del(&shake->event);
    shake->watching = 0;
}

static void let_go(struct handshake *shake)
{
    if (!hg_list_empty(&shake->node)) {
        hg_list_remove(&shake->node);
        shake->greeter->by_address[shake->slot]--;
    }
    atomic_fetch_sub(&shake->greeter->all->now, 1);
    hg_tls_rules_unref(shake->rules);
    free(shake);
}

/* Closes the connection, too; `count` is what became of it. */
static void give_up(struct handshake *shake, hg_counter *count)
{
    hg_counter_add(count, 1);
    unwatch(shake); /* before the number can be another connection's */
    hg_tls_free(shake->client.tls);
    close(shake->client.fd);
    let_go(shake);
}

static void hand_on(struct handshake *shake)
{
    struct greeter *greeter = shake->greeter;
    unsigned total;
    struct hg_worker *worker = hg_listeners_pick(greeter->all->front, &total);
    unwatch(shake);
    shake->client.user = shake->rules->user;
    if (hg_worker_give(worker, &shake->client) != 0) {
        give_up(shake, &greeter->stats.failed);
        return;
    }
    hg_counter_add(&greeter->stats.succeeded, 1);
    let_go(shake);
}

static void go_on(struct handshake *shake);

static void on_event(evutil_socket_t fd, short what, void *arg)
{
    struct handshake *shake = arg;
    (void)fd;
    (void)what;
    hg_loop_stamp(&shake->greeter->loop);
    go_on(shake);
}

static void watch(struct handshake *shake, short want)
{
    if (shake->watching == want)
        return;
    unwatch(shake);
    event_assign(&shake->event, shake->greeter->loop.base, shake->client.fd, want | EV_PERSIST,
                 on_event, shake);
    if (event_add(&shake->event, NULL) != 0)
        give_up(shake, &shake->greeter->stats.failed);
    else
        shake->watching = want;
}

/* The first byte is there, and it is one of TLS: false also when the connection is given up. */
static bool is_greeted(struct handshake *shake)
{
    struct greeter *greeter = shake->greeter;
    char text[HG_ADDR_TEXT];
    uint8_t first;
    ssize_t n = recv(shake->client.fd, &first, 1, MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        watch(shake, EV_READ);
        return false;
    }
    if (n <= 0) {
        give_up(shake, &greeter->stats.failed); /* a port that was looked at: nothing to say */
        return false;
    }
    if (first != FIRST_BYTE_OF_TLS) {
        hg_log_warn("peer=%s msg=\"closed: this listener speaks TLS, the client does not\"",
                    hg_addr_text(&shake->client.peer, text));
        give_up(shake, &greeter->stats.plain);
        return false;
    }
    shake->silent = false;
    shake->client.tls = hg_tls_new(shake->rules->ctx, shake->client.fd, NULL);
    if (shake->client.tls == NULL) {
        give_up(shake, &greeter->stats.failed);
        return false;
    }
    return true;
}

static void go_on(struct handshake *shake)
{
    char text[HG_ADDR_TEXT];
    if (shake->silent && !is_greeted(shake))
        return;
    switch (hg_tls_handshake(shake->client.tls)) {
    case HG_TLS_DONE:
        hand_on(shake);
        return;
    case HG_TLS_WANT_READ:
        watch(shake, EV_READ);
        return;
    case HG_TLS_WANT_WRITE:
        watch(shake, EV_WRITE);
        return;
    default:
        hg_log_warn("peer=%s reason=\"%s\" msg=\"TLS handshake failed\"",
                    hg_addr_text(&shake->client.peer, text), hg_tls_why(shake->client.tls));
        give_up(shake, &shake->greeter->stats.failed);
    }
}

/* ---- time and room ---- */

static unsigned busiest_slot(const struct greeter *greeter)
{
    unsigned best = 0;
    for (unsigned slot = 1; slot < ADDRESS_SLOTS; slot++)
        if (greeter->by_address[slot] > greeter->by_address[best])
            best = slot;
    return best;
}

/* The one to be ended for want of room; NULL: all have some time left. */
static struct handshake *dispensable(struct greeter *greeter)
{
    unsigned slot = busiest_slot(greeter);
    struct handshake *speaking = NULL;
    HG_LIST_EACH(node, &greeter->list)
    {
        struct handshake *shake = HG_CONTAINER_OF(node, struct handshake, node);
        uint64_t age_us = greeter->loop.now_us - shake->born_us;
        if (age_us < HG_HANDSHAKE_SILENT_US)
            break;
        if (shake->slot != slot)
            continue;
        if (shake->silent)
            return shake;
        if (speaking == NULL && age_us >= HG_HANDSHAKE_PROTECTED_US)
            speaking = shake;
    }
    return speaking;
}

static void end_late(struct greeter *greeter)
{
    uint64_t timeout_us = atomic_load_explicit(&greeter->all->timeout_us, memory_order_relaxed);
    char text[HG_ADDR_TEXT];
    while (!hg_list_empty(&greeter->list)) {
        struct handshake *oldest =
            HG_CONTAINER_OF(hg_list_first(&greeter->list), struct handshake, node);
        if (greeter->loop.now_us - oldest->born_us < timeout_us)
            return;
        hg_log_warn("peer=%s reason=\"%s\" msg=\"TLS handshake took too long\"",
                    hg_addr_text(&oldest->client.peer, text),
                    oldest->silent ? "the client said nothing" : "the client stopped half-way");
        give_up(oldest, &greeter->stats.timed_out);
    }
}

static void on_timer(struct hg_timer *timer)
{
    struct greeter *greeter = HG_CONTAINER_OF(timer, struct greeter, timer);
    struct handshake *shake;
    hg_loop_stamp(&greeter->loop);
    end_late(greeter);
    if (!hg_handshakes_full(greeter->all))
        return;
    unsigned most = atomic_load(&greeter->all->max) / 4 + 1, ended = 0;
    while (ended < most && (shake = dispensable(greeter)) != NULL) {
        give_up(shake, &greeter->stats.displaced);
        ended++;
    }
    if (ended > 0)
        hg_log_warn("ended=%u max_tls_handshakes=%u msg=\"too many TLS handshakes at a time: the "
                    "oldest of the busiest address were ended\"",
                    ended, atomic_load(&greeter->all->max));
}

/* ---- letters ---- */

static void on_client(struct hg_letter *letter, void *receiver)
{
    struct handshake *shake = HG_CONTAINER_OF(letter, struct handshake, letter);
    struct greeter *greeter = receiver;
    hg_loop_stamp(&greeter->loop);
    hg_counter_add(&greeter->stats.started, 1);
    if (greeter->stopping) {
        give_up(shake, &greeter->stats.failed);
        return;
    }
    hg_list_append(&greeter->list, &shake->node);
    greeter->by_address[shake->slot]++;
    shake->born_us = greeter->loop.now_us;
    hg_sock_tune(shake->client.fd, 0);
    go_on(shake);
}

/* The same for all ports of an address. */
static uint8_t slot_of(const struct hg_front *front, const struct hg_addr *peer)
{
    const struct sockaddr *sa = (const struct sockaddr *)&peer->sa;
    struct hg_span address = HG_SPAN_NONE;
    if (sa->sa_family == AF_INET)
        address = hg_span(&((const struct sockaddr_in *)sa)->sin_addr, sizeof(struct in_addr));
    else if (sa->sa_family == AF_INET6)
        address = hg_span(&((const struct sockaddr_in6 *)sa)->sin6_addr, sizeof(struct in6_addr));
    uint64_t hash = front->hash_seed;
    for (size_t i = 0; i < address.len; i++)
        hash = (hash ^ address.at[i]) * 0x100000001b3u; /* FNV-1a */
    return (uint8_t)(hash >> 24);
}

int hg_handshakes_give(struct hg_handshakes *all, const struct hg_client *client,
                       struct hg_tls_rules *rules)
{
    struct handshake *shake = calloc(1, sizeof *shake);
    if (shake == NULL)
        return -ENOMEM;
    struct greeter *greeter = &all->greeters[all->next++ % all->count];
    shake->letter.deliver = on_client;
    hg_list_init(&shake->node);
    shake->greeter = greeter;
    shake->client = *client;
    shake->rules = rules;
    shake->silent = true;
    shake->slot = slot_of(all->front, &client->peer);
    atomic_fetch_add(&all->now, 1);
    hg_mailbox_post(&greeter->mailbox, &shake->letter);
    return 0;
}

/* ---- threads ---- */

static void *run(void *arg)
{
    struct greeter *greeter = arg;
    sigset_t signals;
    sigfillset(&signals);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    hg_loop_run(&greeter->loop);
    greeter->stopping = true;
    while (!hg_list_empty(&greeter->list))
        give_up(HG_CONTAINER_OF(hg_list_first(&greeter->list), struct handshake, node),
                &greeter->stats.failed);
    return NULL;
}

static void on_stop(struct hg_letter *letter, void *receiver)
{
    struct greeter *greeter = receiver;
    (void)letter;
    greeter->stopping = true;
    hg_loop_stop(&greeter->loop);
}

static int start(struct greeter *greeter)
{
    int rc = hg_loop_init(&greeter->loop);
    if (rc != 0)
        return rc;
    rc = hg_loop_timer_init(&greeter->loop, &greeter->timer, HG_HANDSHAKE_TICK_US, on_timer);
    if (rc == 0) {
        rc = hg_mailbox_init(&greeter->mailbox, &greeter->loop, greeter);
        if (rc == 0) {
            rc = -pthread_create(&greeter->thread, NULL, run, greeter);
            if (rc != 0)
                hg_mailbox_fini(&greeter->mailbox);
        }
        if (rc != 0)
            hg_loop_timer_fini(&greeter->timer);
    }
    if (rc != 0)
        hg_loop_fini(&greeter->loop);
    return rc;
}

struct hg_handshakes *hg_handshakes_new(struct hg_front *front, unsigned threads)
{
    struct hg_handshakes *all = calloc(1, sizeof *all + threads * sizeof all->greeters[0]);
    if (all == NULL)
        return NULL;
    all->front = front;
    all->count = threads;
    for (unsigned t = 0; t < threads; t++) {
        all->greeters[t].all = all;
        hg_list_init(&all->greeters[t].list);
    }
    return all;
}

int hg_handshakes_start(struct hg_handshakes *all)
{
    while (all->running < all->count) {
        int rc = start(&all->greeters[all->running]);
        if (rc != 0)
            return rc;
        all->running++;
    }
    return 0;
}

void hg_handshakes_set(struct hg_handshakes *all, unsigned max, uint64_t timeout_us)
{
    atomic_store(&all->max, max);
    atomic_store(&all->timeout_us, timeout_us);
}

void hg_handshakes_stop(struct hg_handshakes *all)
{
    for (unsigned t = 0; t < all->running; t++) {
        struct greeter *greeter = &all->greeters[t];
        struct hg_letter stop = {NULL, on_stop};
        hg_mailbox_post(&greeter->mailbox, &stop);
        pthread_join(greeter->thread, NULL);
        hg_mailbox_fini(&greeter->mailbox);
        hg_loop_timer_fini(&greeter->timer);
        hg_loop_fini(&greeter->loop);
    }
    all->running = 0;
}

void hg_handshakes_free(struct hg_handshakes *all)
{
    free(all);
}

unsigned hg_handshakes_now(const struct hg_handshakes *all)
{
    return atomic_load_explicit(&all->now, memory_order_relaxed);
}

bool hg_handshakes_full(const struct hg_handshakes *all)
{
    return hg_handshakes_now(all) >= atomic_load_explicit(&all->max, memory_order_relaxed);
}

unsigned hg_handshakes_threads(const struct hg_handshakes *all)
{
    return all->count;
}

const struct hg_handshake_stats *hg_handshakes_stats(const struct hg_handshakes *all,
                                                     unsigned thread)
{
    return &all->greeters[thread].stats;
}
