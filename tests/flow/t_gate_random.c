// t_gate_random - two workers, many clients: requests, cancels, evictions, sizes and answers at
// random from a seed
// SPDX-License-Identifier: BSD-3-Clause
//
// Every reply must be the next one that is due, and at the end nothing may be left: no ticket, no
// waiter, no backlog, and each request has ended in one outcome.
//
// HG_TEST_SEED=n runs one seed.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/prng.h"
#include "evictscene.h"

#define CLIENTS 14
#define DUE     512 /* power of two */
#define ROUNDS  3000
#define KEYS    6

struct due {
    uint32_t opaque;
    uint8_t opcode;
};

struct player {
    struct client client;
    struct due due[DUE];
    uint32_t first, next;
    bool open, half_closed;
};

struct play {
    struct evictscene e;
    struct stage stage;
    struct player players[CLIENTS];
    struct hg_prng dice;
    uint32_t opaque;
    uint64_t evicted, refused, replies;
};

static const char *const keys[KEYS] = {
    "29001111", "31415926", "a much longer key than 40 bytes it is, indeed",
    "short",    "27182818", "k"};
static const char *const names[] = {"default", "shop", "zoo"};

static uint64_t below(struct play *play, uint64_t n)
{
    return hg_prng_below(&play->dice, n);
}

/* ---- the stores ---- */

static struct kept *some_kept(struct play *play, struct hg_list *list, unsigned count)
{
    struct hg_list *node = list->next;
    for (uint64_t n = below(play, count); n > 0; n--)
        node = node->next;
    return HG_CONTAINER_OF(node, struct kept, node);
}

static void answer_something(struct play *play, struct fakestore *store)
{
    static const enum hg_fault faults[] = {HG_FAULT_DOWN, HG_FAULT_LOST, HG_FAULT_TIMEOUT,
                                           HG_FAULT_QUEUE_FULL, HG_FAULT_QUEUE_TIMEOUT};
    unsigned pending = fakestore_pending(store), waiting = fakestore_waiting(store);
    uint64_t throw = below(play, 20);
    if (throw < 10 && pending > 0) {
        fakestore_obey(some_kept(play, &store->pending, pending));
    } else if (throw < 12 && pending > 0) {
        fakestore_fault(some_kept(play, &store->pending, pending), faults[below(play, 3)]);
    } else if (throw < 13 && pending > 0) {
        fakestore_say(some_kept(play, &store->pending, pending), HG_STATUS_KEY_ENOENT);
    } else if (throw < 16 && waiting > 0) {
        fakestore_call_room(some_kept(play, &store->waiting, waiting));
    } else if (throw < 17 && waiting > 0) {
        fakestore_fault(some_kept(play, &store->waiting, waiting), faults[3 + below(play, 2)]);
    } else if (throw < 19) {
        unsigned kind = (unsigned)below(play, HG_TICKET_KINDS);
        if (store->stranded[kind] > 0)
            fakestore_late(store, kind);
    } else {
        store->room = below(play, 3) == 0 ? below(play, 6) : SIZE_MAX;
        store->answers = below(play, 8) == 0;
    }
}

static void on_open(struct stage *stage, struct fakestore *store)
{
    (void)stage;
    store->strands = true;
}

/* ---- the clients ---- */

static void take_replies(struct play *play, struct player *player)
{
    struct reply reply;
    client_read(&player->client, SIZE_MAX);
    while (client_take(&player->client, &reply)) {
        const struct due *due = &player->due[player->first % DUE];
        while (player->first != player->next && due->opaque != reply.opaque) {
            if (!hg_opcode_row(due->opcode)->quiet)
                fail_msg("opaque %u where %u was due", reply.opaque, due->opaque);
            due = &player->due[++player->first % DUE];
        }
        assert_true(player->first != player->next);
        assert_int_equal(due->opcode, reply.opcode);
        player->first++;
        play->replies++;
        play->evicted += reply.status == HG_STATUS_BIND_EVICTION;
        play->refused += reply.status == HG_STATUS_BIND_THROTTLE;
    }
}

static void ask(struct play *play, struct player *player)
{
    static const uint8_t opcodes[] = {HG_OPCODE_GET,    HG_OPCODE_GET,  HG_OPCODE_GETQ,
                                      HG_OPCODE_GETKQ,  HG_OPCODE_GET,  HG_OPCODE_DELETE,
                                      HG_OPCODE_DELETE, HG_OPCODE_NOOP, HG_OPCODE_SELECT_BUCKET};
    uint8_t opcode = opcodes[below(play, HG_COUNT_OF(opcodes))];
    const char *key = keys[below(play, 3) > 0 ? 0 : below(play, KEYS)];
    if (opcode == HG_OPCODE_NOOP)
        key = NULL;
    else if (opcode == HG_OPCODE_SELECT_BUCKET)
        key = names[below(play, 3)];
    player->due[player->next++ % DUE] = (struct due){++play->opaque, opcode};
    client_add_op(&player->client, opcode, key, play->opaque);
}

static void leave(struct player *player, bool reset)
{
    struct linger at_once = {1, 0};
    if (reset)
        setsockopt(player->client.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    client_close(&player->client);
    memset(player, 0, sizeof *player);
}

static void come(struct play *play, struct player *player)
{
    int on = 1;
    bool exempt = below(play, 6) == 0;
    uint32_t before = play->stage.anonymous_privileges;
    if (exempt)
        play->stage.anonymous_privileges |= HG_PRIVILEGE_BIT(HG_PRIVILEGE_UNTHROTTLED);
    play->stage.anonymous_bucket = names[below(play, 3)];
    stage_connect_tcp(&play->stage, (unsigned)below(play, 2), &player->client);
    setsockopt(player->client.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    stage_run(&play->stage);
    play->stage.anonymous_privileges = before;
    player->open = true;
    if (below(play, 4) == 0)
        return;
    player->due[player->next++ % DUE] = (struct due){++play->opaque, HG_OPCODE_HELLO};
    client_add_hello(&player->client, play->opaque, gate_xerror);
}

static void act(struct play *play, struct player *player)
{
    uint64_t throw = below(play, 100);
    if (!player->open) {
        come(play, player);
        return;
    }
    take_replies(play, player);
    if (player->client.ended) {
        leave(player, false);
    } else if (throw < 2) {
        leave(player, true);
    } else if (throw < 3 && !player->half_closed && player->client.out_len == 0) {
        player->half_closed = true;
        client_half_close(&player->client);
    } else if (throw < 60 && !player->half_closed && player->next - player->first < DUE / 2) {
        for (uint64_t n = below(play, 12); n > 0; n--)
            ask(play, player);
    }
    if (player->open && !player->half_closed)
        client_send(&player->client);
}

/* ---- the process ---- */

static struct hg_bucket *some_bucket(struct play *play)
{
    return stage_find(&play->stage, names[below(play, 3)]);
}

static void evict_something(struct play *play)
{
    unsigned worker = (unsigned)below(play, 2);
    struct hg_evict_key of[3];
    uint64_t n = below(play, 4);
    for (uint64_t i = 0; i < n; i++) {
        const char *key = keys[i == 0 ? 0 : below(play, KEYS)];
        enum hg_hot_type type = below(play, 3) == 0 ? HG_HOT_DELETE : HG_HOT_QUERY;
        unsigned evictable = (unsigned)below(play, 6);
        of[i] = evict_verdict(&play->e, some_bucket(play), type, NULL, key, evictable,
                              (unsigned)below(play, evictable + 1), (unsigned)below(play, 5));
    }
    evict_order(&play->e, worker, of, n);
}

static void new_bucket(struct play *play, const char *name)
{
    uint64_t limit = below(play, 3) == 0 ? 20 : HG_UNITS_UNLIMITED;
    evict_use(stage_bucket(&play->stage, name, 0, limit));
}

static void change_mode(struct play *play)
{
    struct hg_bucket *bucket = some_bucket(play);
    switch (below(play, 4)) {
    case 0:
        atomic_store(&bucket->ticket_mode, (int)below(play, 3));
        return;
    case 1:
        atomic_store(&bucket->bind_mode, (int)below(play, 3));
        return;
    case 2:
        evict_use(bucket);
        return;
    default:
        atomic_store(&play->stage.front.ingress_enabled, below(play, 4) > 0);
    }
}

static void change_something(struct play *play)
{
    enum hg_gate_place place = (enum hg_gate_place)below(play, HG_GATE_PLACES);
    struct hg_gate_holder *holder = gate_holder(&play->stage, place);
    uint64_t throw = below(play, 40);
    if (throw < 12) {
        gate_resize(&play->stage, place, (int64_t)below(play, 8));
    } else if (throw < 14) {
        atomic_store(&holder->max_waiting, below(play, 3) == 0 ? below(play, 4) : 1000);
        atomic_store(&holder->queue_timeout_us, 1000 + below(play, 200000));
    } else if (throw < 20) {
        evict_something(play);
    } else if (throw < 22) {
        evict_ask(&play->e);
    } else if (throw < 25) {
        change_mode(play);
    } else if (throw < 26) {
        const char *name = names[below(play, 3)];
        stage_delete(&play->stage, name);
        new_bucket(play, name);
        stage_publish(&play->stage);
    } else if (throw < 28) {
        stage_tick(&play->stage);
    } else if (throw < 30) {
        stage_timer(&play->stage);
    } else {
        gate_wait(&play->stage, below(play, 20000));
    }
}

static void fail_waiting(const struct play *play)
{
    for (unsigned w = 0; w < 2; w++)
        HG_LIST_EACH(node, &play->stage.workers[w].sessions)
        {
            const struct hg_session *x = HG_CONTAINER_OF(node, struct hg_session, node);
            print_message("# worker %u bucket %s wait %u queue %u paused %d ready %d closing %d "
                          "hung_up %d read_closed %d in %zu skip %zu watching 0x%x\n",
                          w, x->lane != NULL ? x->lane->bucket->name : "-", x->wait, x->queue_len,
                          x->paused, !hg_list_empty(&x->ready), x->closing, x->hung_up,
                          x->read_closed, x->in != NULL ? x->in->len - x->in_at : 0,
                          (size_t)x->skip_bytes, (unsigned)x->watching);
        }
    for (unsigned i = 0; i < CLIENTS; i++)
        if (play->players[i].open)
            print_message("# client %u: %u due, %zu bytes unsent%s\n", i,
                          play->players[i].next - play->players[i].first,
                          play->players[i].client.out_len,
                          play->players[i].half_closed ? ", half-closed" : "");
    fail_msg("somebody waits for ever");
}

/* Everything is let in and answered, until nobody has anything due. */
static void settle(struct play *play)
{
    bool all = false;
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct player *player = &play->players[i];
        if (!player->open || player->half_closed)
            continue;
        player->due[player->next++ % DUE] = (struct due){++play->opaque, HG_OPCODE_NOOP};
        client_add_op(&player->client, HG_OPCODE_NOOP, NULL, play->opaque);
    }
    for (enum hg_gate_place place = HG_GATE_INGRESS; place < HG_GATE_PLACES; place++)
        gate_resize(&play->stage, place, 1000);
    for (uint64_t deadline_us = stage_deadline(); !all;) {
        if (hg_now_us() > deadline_us)
            fail_waiting(play);
        all = true;
        stage_tick(&play->stage);
        gate_look(&play->stage);
        for (unsigned w = 0; w < 2; w++) {
            struct fakestore *store = play->stage.upstreams[0].stores[w];
            if (store == NULL)
                continue;
            store->room = SIZE_MAX;
            fakestore_obey_all(store);
            while (fakestore_waiting(store) > 0)
                fakestore_call_room(
                    HG_CONTAINER_OF(hg_list_first(&store->waiting), struct kept, node));
            for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
                while (store->stranded[kind] > 0)
                    fakestore_late(store, kind);
        }
        for (unsigned i = 0; i < CLIENTS; i++) {
            struct player *player = &play->players[i];
            if (!player->open)
                continue;
            if (!player->half_closed)
                client_send(&player->client);
            take_replies(play, player);
            all &= player->half_closed ? player->client.ended : player->first == player->next;
        }
    }
}

static void check_lanes(const struct play *play)
{
    for (unsigned w = 0; w < 2; w++) {
        const struct hg_worker *worker = &play->stage.workers[w];
        uint64_t sum = 0;
        for (unsigned o = 0; o < HG_OUTCOMES; o++)
            sum += hg_counter_get(&worker->outcomes[o]);
        assert_int_equal(sum, hg_counter_get(&worker->cmd_total));
        assert_int_equal(hg_counter_get(&worker->in_flight), 0);
        if (worker->gates[0] != NULL)
            assert_false(hg_gate_in_use(worker->gates[0]));
    }
}

static void play_seed(struct play *play, uint64_t seed)
{
    memset(play, 0, sizeof *play);
    play->dice.state = seed;
    stage_init(&play->stage, 2);
    play->stage.on_open = on_open;
    play->stage.settings.request_deadline_us = 300000;
    play->e.stage = &play->stage;
    evict_use(stage_find(&play->stage, "default"));
    new_bucket(play, "shop");
    new_bucket(play, "zoo");
    evict_settings(&play->e);
    play->stage.settings.bind.decr_per_sec = 50;
    play->stage.settings.bind.evict_sent_writes = seed % 2;
    evict_house_open(&play->e);
    stage_open(&play->stage);
    for (unsigned round = 0; round < ROUNDS; round++) {
        act(play, &play->players[below(play, CLIENTS)]);
        for (uint64_t n = below(play, 6); n > 0; n--) {
            struct fakestore *store = play->stage.upstreams[0].stores[below(play, 2)];
            if (store != NULL)
                answer_something(play, store);
        }
        if (below(play, 2) == 0)
            change_something(play);
        stage_turn(&play->stage);
    }
    settle(play);
    for (unsigned i = 0; i < CLIENTS; i++)
        if (play->players[i].open)
            leave(&play->players[i], false);
    STAGE_UNTIL(&play->stage, stage_sessions(&play->stage) == 0);
    gate_check(&play->stage);
    check_lanes(play);
    evict_house_close(&play->e);
    stage_close(&play->stage);
}

static void test_seeds(void **state)
{
    (void)state;
    static struct play play;
    const char *text = getenv("HG_TEST_SEED");
    uint64_t first = text != NULL ? strtoull(text, NULL, 10) : 1;
    uint64_t evicted = 0, refused = 0;
    for (uint64_t seed = first; seed < first + (text != NULL ? 1 : 40); seed++) {
        print_message("# seed %llu\n", (unsigned long long)seed);
        play_seed(&play, seed);
        evicted += play.evicted;
        refused += play.refused;
    }
    print_message("# %llu evicted, %llu throttled\n", (unsigned long long)evicted,
                  (unsigned long long)refused);
    if (text == NULL) { /* it has come to that at all */
        assert_true(evicted > 100);
        assert_true(refused > 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
