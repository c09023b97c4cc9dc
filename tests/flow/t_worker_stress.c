// t_worker_stress - two workers, many clients, everything at random from a seed
// SPDX-License-Identifier: BSD-3-Clause
//
// Clients ask, hang up, go; buckets come and go, change limits and modes; directories are swapped;
// the store answers in any order, late, at once, not at all, has no room; jobs are answered
// whenever. Every reply must be the next one that is due, everything that was asked and not given
// up must be answered, and at the end nothing may be left (stage_close).
//
// HG_TEST_SEED=n runs one seed.
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/prng.h"
#include "scene.h"

#define CLIENTS 20
#define DUE     4096 /* power of two */
#define ROUNDS  2500

struct due {
    uint32_t opaque;
    uint8_t opcode;
    bool quiet;
    char key[24];
};

struct player {
    struct client client;
    struct due due[DUE];
    uint32_t first, next; /* of due */
    bool open, half_closed;
};

struct play {
    struct stage stage;
    struct player players[CLIENTS];
    struct hg_prng dice;
    bool gentle; /* nobody goes: every request is counted */
    uint64_t sent;
    uint32_t opaque;
};

static uint64_t below(struct play *play, uint64_t n)
{
    return hg_prng_below(&play->dice, n);
}

/* ---- the store, on the workers' threads ---- */

struct whim {
    struct hg_prng dice;
    unsigned mood;
};

static void fill_value(uint8_t *value, size_t len, const char *key)
{
    size_t key_len = strlen(key);
    for (size_t i = 0; i < len; i++)
        value[i] = (uint8_t)(i < key_len ? (unsigned char)key[i] : i * 7);
}

static void give_something(struct kept *kept, struct hg_prng *dice)
{
    static const size_t sizes[] = {24, 100, 1000, 8191, 8192, 20000, 70000};
    uint8_t value[70000];
    size_t len = sizes[hg_prng_below(dice, 4) == 0 ? hg_prng_below(dice, HG_COUNT_OF(sizes)) : 0];
    fill_value(value, len, kept->key);
    switch (hg_prng_below(dice, 3)) {
    case 0:
        fakestore_give(kept, value, len);
        return;
    case 1:
        fakestore_give_blob(kept, value, len);
        return;
    default:
        if (kept->store->view_len + len < kept->store->view_cap || kept->store->view_cap == 0)
            fakestore_give_view(kept, value, len);
        else
            fakestore_give(kept, value, len);
    }
}

static void answer_somehow(struct kept *kept, struct hg_prng *dice)
{
    static const enum hg_fault faults[] = {HG_FAULT_DOWN,       HG_FAULT_LOST,
                                           HG_FAULT_TIMEOUT,    HG_FAULT_QUEUE_TIMEOUT,
                                           HG_FAULT_QUEUE_FULL, HG_FAULT_INTERNAL};
    uint64_t throw = hg_prng_below(dice, 20);
    bool get = kept->op == HG_OP_GET || kept->op == HG_OP_GAT;
    if (throw == 0)
        fakestore_fault(kept, faults[hg_prng_below(dice, HG_COUNT_OF(faults))]);
    else if (throw < 5)
        fakestore_say(kept, HG_STATUS_KEY_ENOENT);
    else if (get)
        give_something(kept, dice);
    else
        fakestore_obey(kept);
}

static void on_submit(struct fakestore *store, struct kept *kept)
{
    struct whim *whim = store->data;
    if (hg_prng_below(&whim->dice, 4) < whim->mood)
        answer_somehow(kept, &whim->dice);
}

static bool must_wait(struct fakestore *store, const struct hg_call *call)
{
    struct whim *whim = store->data;
    (void)call;
    return hg_prng_below(&whim->dice, 12) == 0;
}

static void on_send(struct fakestore *store)
{
    struct whim *whim = store->data;
    unsigned pending = fakestore_pending(store);
    if (hg_prng_below(&whim->dice, 50) == 0)
        whim->mood = (unsigned)hg_prng_below(&whim->dice, 5);
    for (uint64_t n = hg_prng_below(&whim->dice, 20); n > 0 && pending > 0; n--) {
        answer_somehow(fakestore_nth(store, (unsigned)hg_prng_below(&whim->dice, pending)),
                       &whim->dice);
        pending = fakestore_pending(store); /* answers may have led to more */
    }
    for (uint64_t n = hg_prng_below(&whim->dice, 6); n > 0; n--) {
        struct hg_list *node = hg_list_first(&store->waiting);
        if (node == NULL)
            break;
        struct kept *kept = HG_CONTAINER_OF(node, struct kept, node);
        if (hg_prng_below(&whim->dice, 8) == 0)
            fakestore_fault(kept, HG_FAULT_QUEUE_TIMEOUT);
        else
            fakestore_call_room(kept);
    }
    if (!hg_list_empty(&store->pending) || !hg_list_empty(&store->waiting))
        hg_loop_again(&store->worker->loop);
}

static void on_open(struct stage *stage, struct fakestore *store)
{
    static _Atomic uint64_t number;
    struct whim *whim = calloc(1, sizeof *whim);
    (void)stage;
    whim->dice.state = atomic_fetch_add(&number, 1) * 77 + 5;
    whim->mood = 1;
    store->data = whim;
    store->on_submit = on_submit;
    store->must_wait = must_wait;
    store->on_send = on_send;
}

/* ---- clients ---- */

static void fail_player(const struct player *player, const struct reply *reply, const char *why)
{
    fail_msg("%s: opcode 0x%02x status 0x%04x opaque %u '%.200s', first due is %u of %u", why,
             reply->opcode, reply->status, reply->opaque, reply_text(reply),
             player->due[player->first % DUE].opaque, player->next - player->first);
}

static void check_value(const struct player *player, const struct due *due,
                        const struct reply *reply)
{
    bool get = due->opcode == HG_OPCODE_GET || due->opcode == HG_OPCODE_GETQ ||
               due->opcode == HG_OPCODE_GETK || due->opcode == HG_OPCODE_GETKQ;
    if (!get || reply->status != 0)
        return;
    uint8_t *value = malloc(reply->value.len + 1);
    fill_value(value, reply->value.len, due->key);
    if (memcmp(value, reply->value.at, reply->value.len) != 0)
        fail_player(player, reply, "another value");
    free(value);
    bool keyed = due->opcode == HG_OPCODE_GETK || due->opcode == HG_OPCODE_GETKQ;
    if (keyed != hg_span_is(reply->key, due->key))
        fail_player(player, reply, "another key");
}

static void take_replies(struct player *player)
{
    struct reply reply;
    client_read(&player->client, SIZE_MAX);
    while (client_take(&player->client, &reply)) {
        const struct due *due = NULL;
        while (player->first != player->next) {
            due = &player->due[player->first % DUE];
            if (due->opaque == reply.opaque)
                break;
            if (!due->quiet)
                fail_player(player, &reply, "out of order");
            player->first++;
            due = NULL;
        }
        if (due == NULL || due->opcode != reply.opcode)
            fail_player(player, &reply, "not asked for");
        check_value(player, due, &reply);
        if (reply.opcode != HG_OPCODE_STAT || reply.status != 0 || reply.key.len == 0)
            player->first++;
    }
}

static struct due *add_due(struct play *play, struct player *player, uint8_t opcode, bool quiet)
{
    struct due *due = &player->due[player->next++ % DUE];
    *due = (struct due){.opaque = ++play->opaque, .opcode = opcode, .quiet = quiet};
    play->sent++;
    return due;
}

static void ask_something(struct play *play, struct player *player)
{
    static const uint8_t gets[] = {HG_OPCODE_GET, HG_OPCODE_GETQ, HG_OPCODE_GETK, HG_OPCODE_GETKQ};
    static const char *const names[] = {"default", "tight", "fair", "gone", "@no bucket@"};
    static uint8_t value[40000];
    struct client *client = &player->client;
    uint64_t throw = below(play, 100);
    struct due *due;
    char key[24];
    snprintf(key, sizeof key, "key%u", (unsigned)below(play, 12));
    if (throw < 55) {
        uint8_t opcode = gets[below(play, 4)];
        due = add_due(play, player, opcode, hg_opcode_row(opcode)->quiet);
        client_add_op(client, opcode, key, due->opaque);
    } else if (throw < 75) {
        uint8_t opcode = below(play, 2) ? HG_OPCODE_SETQ : HG_OPCODE_SET;
        due = add_due(play, player, opcode, opcode == HG_OPCODE_SETQ);
        size_t len = below(play, 10) == 0 ? below(play, sizeof value) : below(play, 2000);
        client_add_set(client, opcode, key, value, len, due->opaque);
    } else if (throw < 85) {
        due = add_due(play, player, HG_OPCODE_NOOP, false);
        client_add_op(client, HG_OPCODE_NOOP, NULL, due->opaque);
    } else if (throw < 90) {
        snprintf(key, sizeof key, "%s", names[below(play, HG_COUNT_OF(names))]);
        due = add_due(play, player, HG_OPCODE_SELECT_BUCKET, false);
        client_add_op(client, HG_OPCODE_SELECT_BUCKET, key, due->opaque);
    } else if (throw < 92) {
        due = add_due(play, player, HG_OPCODE_STAT, false);
        client_add_op(client, HG_OPCODE_STAT, NULL, due->opaque);
    } else if (throw < 94) {
        due = add_due(play, player, HG_OPCODE_FLUSH, false);
        client_add_op(client, HG_OPCODE_FLUSH, NULL, due->opaque);
    } else if (throw < 96) {
        static const uint16_t features[4][5] = {
            {0}, {0x07, 0x0b, 0}, {0x1b, 0x0f, 0}, {0x07, 0x1a, 0x0f, 0}};
        due = add_due(play, player, HG_OPCODE_HELLO, false);
        client_add_hello(client, due->opaque, features[below(play, 4)]);
    } else if (throw < 98) {
        due = add_due(play, player, 0x77, false); /* unknown, with a body */
        client_add_set(client, 0x77, key, value, below(play, 100), due->opaque);
    } else {
        due = add_due(play, player, HG_OPCODE_SET, false); /* too large */
        client_add_set(client, HG_OPCODE_SET, key, value, 35000 + below(play, 5000), due->opaque);
    }
    snprintf(due->key, sizeof due->key, "%s", key);
}

static void leave(struct play *play, struct player *player)
{
    (void)play;
    client_close(&player->client);
    player->open = false;
}

static void act(struct play *play, struct player *player)
{
    uint64_t throw = below(play, 100);
    if (!player->open) {
        memset(player, 0, sizeof *player);
        player->client.fd = -1;
        stage_connect(&play->stage, (unsigned)below(play, STAGE_WORKERS), &player->client);
        player->open = true;
        return;
    }
    if (throw < 60 && !player->half_closed && player->next - player->first < DUE / 2)
        for (uint64_t n = below(play, below(play, 10) == 0 ? 300 : 20); n > 0; n--)
            ask_something(play, player);
    if (throw < 5 && player->client.out_len > 0)
        client_send_part(&player->client, below(play, player->client.out_len));
    else
        client_send(&player->client);
    if (throw % 10 < 8) /* else it is a slow reader */
        take_replies(player);
    if (player->client.ended && player->half_closed)
        leave(play, player);
    else if (player->client.ended)
        fail_msg("the server closed a connection for no reason");
    else if (!play->gentle && throw == 99)
        leave(play, player);
    else if (!play->gentle && throw == 98 && !player->half_closed && player->client.out_len == 0) {
        player->half_closed = true;
        client_half_close(&player->client);
    }
}

/* ---- the process ---- */

static void answer_jobs(struct play *play)
{
    struct hg_job *job;
    while (below(play, 3) > 0 && (job = stage_job(&play->stage)) != NULL) {
        if (below(play, 4) == 0)
            hg_job_fail(job, HG_STATUS_EINTERNAL, "so it was thrown");
        else
            for (uint64_t n = below(play, 5); n > 0; n--)
                hg_job_stat(job, "name", "%u", (unsigned)n);
        hg_job_answer(job);
    }
}

static void change_something(struct play *play)
{
    static const char *const names[] = {"default", "tight", "fair"};
    struct hg_bucket *bucket = stage_find(&play->stage, names[below(play, 3)]);
    switch (below(play, 6)) {
    case 0:
        hg_credit_bucket_set(&bucket->credit, 0, 5 + below(play, 300), false);
        return;
    case 1:
        hg_credit_bucket_set(&bucket->credit, 0, HG_UNITS_UNLIMITED, false);
        return;
    case 2:
        atomic_store(&bucket->credit_mode, (int)below(play, 3));
        return;
    case 3:
        stage_delete(&play->stage, bucket->name);
        stage_publish(&play->stage);
        return;
    default:
        play->stage.settings.throttle_max_wait_us = 1000 + below(play, 30000);
        stage_publish(&play->stage);
    }
}

/* A deleted bucket is made again, under its name; the next directory lists it. */
static void complete(struct play *play)
{
    static const char *const names[] = {"default", "fair", "tight"};
    for (unsigned i = 0; i < HG_COUNT_OF(names); i++) {
        bool found = false;
        for (unsigned b = 0; b < play->stage.bucket_count; b++)
            found |= strcmp(play->stage.buckets[b]->name, names[i]) == 0;
        if (!found)
            stage_bucket(&play->stage, names[i], 0, below(play, 2) ? 50 : HG_UNITS_UNLIMITED);
    }
}

/* For whoever reads the failure: read without asking the workers' threads. */
static void fail_waiting(const struct play *play)
{
    for (unsigned w = 0; w < STAGE_WORKERS; w++)
        HG_LIST_EACH(node, &play->stage.workers[w].sessions)
        {
            const struct hg_session *x = HG_CONTAINER_OF(node, struct hg_session, node);
            print_message(
                "# worker %u bucket %s wait %u queue %u out %zu full %d paused %d ready %d "
                "in %zu skip %zu watching 0x%x\n",
                w, x->lane != NULL ? x->lane->bucket->name : "-", x->wait, x->queue_len,
                x->out.bytes, x->full, x->paused, !hg_list_empty(&x->ready),
                x->in != NULL ? x->in->len - x->in_at : 0, (size_t)x->skip_bytes,
                (unsigned)x->watching);
        }
    for (unsigned i = 0; i < CLIENTS; i++)
        if (play->players[i].open)
            print_message("# client %u: %u due, %zu bytes unsent%s\n", i,
                          play->players[i].next - play->players[i].first,
                          play->players[i].client.out_len,
                          play->players[i].half_closed ? ", half-closed" : "");
    fail_msg("somebody waits for ever");
}

/* Everybody who has not gone gets all that is due. */
static void settle(struct play *play)
{
    uint64_t deadline_us = stage_deadline() + 15000000;
    bool all = false;
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct player *player = &play->players[i];
        if (!player->open || player->half_closed)
            continue;
        struct due *due = add_due(play, player, HG_OPCODE_NOOP, false);
        client_add_op(&player->client, HG_OPCODE_NOOP, NULL, due->opaque);
    }
    while (!all) {
        all = true;
        struct hg_job *job;
        while ((job = stage_job(&play->stage)) != NULL)
            hg_job_answer(job);
        stage_tick(&play->stage);
        for (unsigned i = 0; i < CLIENTS; i++) {
            struct player *player = &play->players[i];
            if (!player->open)
                continue;
            client_send(&player->client);
            take_replies(player);
            if (player->half_closed ? !player->client.ended : player->first != player->next)
                all = false;
        }
        if (!all && hg_now_us() > deadline_us)
            fail_waiting(play);
        usleep(100); /* the cores are the workers' */
    }
}

static void play_seed(uint64_t seed)
{
    static struct play play;
    memset(&play, 0, sizeof play);
    play.dice.state = seed;
    play.gentle = seed % 2 == 0;
    print_message("# seed %u%s\n", (unsigned)seed, play.gentle ? ", nobody goes" : "");
    stage_init(&play.stage, STAGE_WORKERS);
    play.stage.settings.max_value_bytes = 35000;
    play.stage.settings.high_water_bytes = 64u << 10;
    play.stage.settings.throttle_max_wait_us = 20000;
    play.stage.on_open = on_open;
    stage_bucket(&play.stage, "tight", 0, 50);
    stage_bucket(&play.stage, "fair", 0, 200);
    stage_start(&play.stage);
    for (unsigned round = 0; round < ROUNDS; round++) {
        act(&play, &play.players[below(&play, CLIENTS)]);
        answer_jobs(&play);
        if (below(&play, 20) == 0)
            stage_tick(&play.stage);
        if (below(&play, 60) == 0) {
            complete(&play);
            change_something(&play);
        }
        if (below(&play, 4) == 0)
            sched_yield();
    }
    settle(&play);
    if (play.gentle)
        assert_int_equal(stage_total(&play.stage), play.sent);
    for (unsigned i = 0; i < CLIENTS; i++)
        if (play.players[i].open)
            leave(&play, &play.players[i]);
    stage_close(&play.stage);
}

static void test_seeds(void **state)
{
    (void)state;
    const char *one = getenv("HG_TEST_SEED");
    if (one != NULL) {
        play_seed(strtoull(one, NULL, 10));
        return;
    }
    for (uint64_t seed = 1; seed <= 4; seed++)
        play_seed(seed);
}

/* The workers end in the middle of it all. */
static void test_sudden_end(void **state)
{
    (void)state;
    for (uint64_t seed = 101; seed <= 102; seed++) {
        static struct play play;
        memset(&play, 0, sizeof play);
        play.dice.state = seed;
        stage_init(&play.stage, STAGE_WORKERS);
        play.stage.on_open = on_open;
        stage_bucket(&play.stage, "tight", 0, 50);
        stage_bucket(&play.stage, "fair", 0, 200);
        stage_start(&play.stage);
        for (unsigned round = 0; round < 300; round++)
            act(&play, &play.players[below(&play, CLIENTS)]);
        if (seed % 2 == 0)
            for (unsigned w = 0; w < STAGE_WORKERS; w++)
                hg_worker_begin_drain(&play.stage.workers[w]);
        stage_close(&play.stage);
        for (unsigned i = 0; i < CLIENTS; i++)
            if (play.players[i].open)
                leave(&play, &play.players[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_sudden_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
