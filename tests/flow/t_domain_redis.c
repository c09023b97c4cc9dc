// t_domain_redis - twelve databases of a redis-server on six connections
// SPDX-License-Identifier: BSD-3-Clause
#include "redisscene.h"

#include <signal.h>

#include "back/domain.h"
#include "base/clock.h"
#include "base/log.h"

#define USERS       12
#define CONNECTIONS 6
#define CLIENTS     24 /* of each user */

struct client {
    struct note note;
    uint32_t user;
    bool wrong; /* got another user's value */
    uint64_t asked_us;
};

struct crowd {
    struct scene scene;
    uint32_t ids[USERS];
    struct client clients[USERS][CLIENTS];
    struct {
        uint64_t waits, waited_us;
    } users[USERS];
};

static struct crowd crowd;

static void start(void)
{
    struct scene *s = &crowd.scene;
    memset(&crowd, 0, sizeof crowd);
    scene_launch(s, NULL);
    bench_keep_time(&s->rig);
    s->conf.pool_max_connections = CONNECTIONS;
    s->conf.pool_depth = 4;
    const struct hg_remote_place place = {
        &s->rig.loop, &s->rig.mailbox, &s->rig.blobs, &s->rig.outs, 0, CONNECTIONS};
    s->shared = rig_shared(&s->conf, 1);
    s->store = hg_redis_store_new(s->shared, &place, &s->redis);
    assert_non_null(s->store);
    for (uint32_t u = 0; u < USERS; u++)
        assert_int_equal(hg_identities_add(&s->shared->identities, "", "", u + 1, &crowd.ids[u]),
                         0);
}

/* Each user has a value of his own under the same key. */
static void fill(void)
{
    struct scene *s = &crowd.scene;
    for (uint32_t u = 0; u < USERS; u++) {
        struct note note;
        char value[16];
        snprintf(value, sizeof value, "of %u", u);
        note_ready(s, &note, HG_OP_SET, "key");
        note.call.identity = crowd.ids[u];
        note.call.value = hg_span_str(value);
        (void)note_submit(&note, &s->rig);
        BENCH_UNTIL(&s->bench, note.done == 1);
        assert_int_equal(note.result.fault + note.result.status, 0);
    }
}

static void count(struct client *client)
{
    char value[16];
    snprintf(value, sizeof value, "of %u", client->user);
    assert_int_equal(client->note.result.fault + client->note.result.status, 0);
    assert_string_equal(client->note.value, value);
    crowd.users[client->user].waits++;
    crowd.users[client->user].waited_us += client->note.call.sent_us - client->asked_us;
}

static void ask(struct client *client)
{
    struct scene *s = &crowd.scene;
    note_ready(s, &client->note, HG_OP_GET, "key");
    client->note.call.identity = crowd.ids[client->user];
    client->asked_us = bench_now_us();
    (void)note_submit(&client->note, &s->rig);
}

static bool all_have_waited(uint64_t times)
{
    for (uint32_t u = 0; u < USERS; u++) {
        if (crowd.users[u].waits < times)
            return false;
    }
    return true;
}

/* Every client asks again when it is answered, until the time is over, each user was answered so
   often, and nothing is under way. */
static void keep_busy(uint64_t us, uint64_t least)
{
    uint64_t end_us = bench_now_us() + us, deadline_us = us + bench_deadline();
    bool started = false;
    for (bool left = true; left;) {
        left = false;
        bool go_on = bench_now_us() < end_us || !all_have_waited(least);
        for (uint32_t i = 0; i < USERS * CLIENTS; i++) {
            struct client *client = &crowd.clients[i % USERS][i / USERS];
            client->user = i % USERS;
            if (started && client->note.done == 0) {
                left = true;
                continue;
            }
            if (started && client->note.done == 1)
                count(client);
            client->note.done = 2;
            left |= go_on;
            if (go_on)
                ask(client);
        }
        started = true;
        bench_turn(&crowd.scene.bench);
        assert_true(hg_now_us() < deadline_us);
    }
}

/* Keeps all busy for two seconds; the longest of the users' mean waits as percent of the shortest.
 */
static uint64_t spread_of_waits(void)
{
    memset(crowd.users, 0, sizeof crowd.users);
    keep_busy(2000000, 51);
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t u = 0; u < USERS; u++) {
        assert_true(crowd.users[u].waits > 50);
        uint64_t mean_us = crowd.users[u].waited_us / crowd.users[u].waits;
        least = mean_us < least ? mean_us : least;
        most = mean_us > most ? mean_us : most;
    }
    print_message("# mean waits of %d databases on %d connections: %llu to %llu us\n", USERS,
                  CONNECTIONS, (unsigned long long)least, (unsigned long long)most);
    return most * 100 / least;
}

static void t_databases_take_turns(void **state)
{
    (void)state;
    struct scene *s = &crowd.scene;
    start();
    fill();
    keep_busy(300000, 0);
    uint64_t percent = spread_of_waits();
    if (patience_measures())
        assert_true(percent <= 125);
    /* All of it without a further connection. */
    assert_int_equal(rig_stat(s->shared, 0, HG_UPSTREAM_CONNECTS), CONNECTIONS);
    struct hg_pool_sum sums[USERS + 1];
    uint64_t moves = 0, rebinds = 0;
    hg_server_sum_pools(&s->shared->servers[0], sums, USERS + 1);
    for (uint32_t u = 0; u < USERS; u++) {
        moves += sums[crowd.ids[u]].values[HG_POOL_MOVES];
        rebinds += sums[crowd.ids[u]].values[HG_POOL_REBINDS];
    }
    assert_true(moves > 20);
    assert_int_equal(moves, rebinds);
    scene_fini(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(t_databases_take_turns)};
    if (!redisd_is_installed())
        return 0;
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("domain_redis", tests, NULL, NULL);
}
