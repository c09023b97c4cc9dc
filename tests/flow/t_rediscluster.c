// t_rediscluster - the redis-cluster store on a real cluster: redirects, resharding, users
// SPDX-License-Identifier: BSD-3-Clause
#include "clusterscene.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

static struct clusterd cluster;

static void gives(struct clusterscene *s, enum hg_op op, const char *key, const char *value,
                  uint16_t status)
{
    struct note *note = clusterscene_call(s, op, key, value);
    if (note->result.fault != HG_FAULT_NONE || note->result.status != status)
        fail_msg("%s: fault %d status 0x%02x '%s'", key, note->result.fault, note->result.status,
                 note->value);
}

static void holds(struct clusterscene *s, const char *key, const char *value)
{
    struct note *note = clusterscene_call(s, HG_OP_GET, key, NULL);
    assert_int_equal(note->result.fault, HG_FAULT_NONE);
    assert_int_equal(note->result.status, 0);
    assert_string_equal(note->value, value);
}

/* A flush reaches every master (what every store does alike is in conform.h). */
static void t_flush(void **state)
{
    (void)state;
    struct clusterscene s;
    clusterscene_init(&s, &cluster);
    clusterscene_start(&s);
    for (uint32_t m = 0; m < CLUSTERD_MASTERS; m++) {
        char key[64];
        clusterscene_key(key, HG_KEYSLOTS * m / CLUSTERD_MASTERS + 77, 1);
        gives(&s, HG_OP_SET, key, "one", 0);
        assert_string_equal(s.stores[0]->ops->where(s.stores[0], HG_SPAN_NONE, hg_span_str(key)),
                            cluster.nodes[m].address);
    }
    gives(&s, HG_OP_FLUSH, "", NULL, 0);
    for (uint32_t m = 0; m < CLUSTERD_MASTERS; m++) {
        redisReply *reply = clusterd_ask(&cluster, m, "DBSIZE");
        assert_int_equal(reply->integer, 0);
        freeReplyObject(reply);
    }
    assert_int_equal(clusterscene_stat(&s, HG_REDISCLUSTER_MOVED), 0);
    assert_int_equal(clusterscene_stat(&s, HG_REDISCLUSTER_MASTERS), 3);
    assert_int_equal(clusterscene_stat(&s, HG_REDISCLUSTER_MEMBERS), 6);
    assert_int_equal(clusterscene_stat(&s, HG_REDISCLUSTER_UNCOVERED), 0);
    clusterscene_fini(&s);
}

/* A key of every slot, with a prefix, from both workers; the server agrees about each slot. */
static void t_every_slot(void **state)
{
    (void)state;
    struct clusterscene s;
    struct user users[2];
    clusterscene_init(&s, &cluster);
    clusterscene_start(&s);
    uint64_t start_us = hg_now_us();
    for (uint32_t w = 0; w < 2; w++) {
        user_init(&users[w], &s, w, 2 * HG_KEYSLOTS, 300);
        for (uint32_t slot = 0; slot < HG_KEYSLOTS; slot++) {
            char key[64], value[64];
            clusterscene_key(key, slot, w);
            snprintf(value, sizeof value, "%u of %u", slot, w);
            user_add(&users[w], HG_OP_SET, key, value)->call.prefix = HG_SPAN_LIT("shop:");
            user_add(&users[w], HG_OP_GET, key, NULL)->call.prefix = HG_SPAN_LIT("shop:");
        }
    }
    while (!user_is_done(&users[0]) || !user_is_done(&users[1])) {
        user_pump(&users[0]);
        user_pump(&users[1]);
        bench_turn(&s.bench);
    }
    for (uint32_t w = 0; w < 2; w++) {
        for (int i = 0; i < users[w].count; i += 2) {
            assert_int_equal(users[w].steps[i].fault, HG_FAULT_NONE);
            assert_int_equal(users[w].steps[i + 1].status, 0);
            assert_string_equal(users[w].steps[i + 1].got, users[w].steps[i].value);
        }
        assert_int_equal(users[w].order_faults, 0);
        user_fini(&users[w]);
    }
    assert_int_equal(clusterscene_stat(&s, HG_REDISCLUSTER_MOVED), 0);
    /* The first, and one every 30 s, which sanitizers may take. */
    assert_in_range(clusterscene_stat(&s, HG_REDISCLUSTER_REFRESHES), 1,
                    1 + (hg_now_us() - start_us) / 30000000);
    gives(&s, HG_OP_FLUSH, "", NULL, 0);
    clusterscene_fini(&s);
}

/* A slot has another owner than the store thinks: one redirect, noted at once, told to all. */
static void t_moved(void **state)
{
    (void)state;
    enum { SLOT = 100 };
    struct clusterscene s;
    char key[64];
    clusterscene_init(&s, &cluster);
    clusterscene_start(&s);
    clusterscene_key(key, SLOT, 1);
    gives(&s, HG_OP_SET, key, "here", 0);
    clusterd_open_slot(&cluster, SLOT, 0, 1);
    assert_int_equal(clusterd_move_keys(&cluster, SLOT, 0, 1, 10), 1);
    clusterd_close_slot(&cluster, SLOT, 1);
    holds(&s, key, "here");
    assert_int_equal(clusterscene_stat(&s, HG_REDISCLUSTER_MOVED), 1);
    gives(&s, HG_OP_APPEND, key, " and there", 0);
    holds(&s, key, "here and there");
    assert_int_equal(clusterscene_stat(&s, HG_REDISCLUSTER_MOVED), 1);
    assert_string_equal(s.stores[0]->ops->where(s.stores[0], HG_SPAN_NONE, hg_span_str(key)),
                        cluster.nodes[1].address);
    /* The other worker hears of it without a redirect of its own. */
    BENCH_UNTIL(&s.bench, hg_topology_version(&s.shared->topology) >= 2);
    struct note note;
    note_init(&note, s.stores[1], HG_OP_GET, key);
    (void)note_submit(&note, &s.rigs[1]);
    BENCH_UNTIL(&s.bench, note.done == 1);
    assert_string_equal(note.value, "here and there");
    assert_int_equal(clusterscene_stat(&s, HG_REDISCLUSTER_MOVED), 1);
    clusterd_open_slot(&cluster, SLOT, 1, 0);
    clusterd_move_keys(&cluster, SLOT, 1, 0, 10);
    clusterd_close_slot(&cluster, SLOT, 0);
    clusterd_wait(&cluster, SLOT, 0);
    clusterscene_fini(&s);
}

/* A slot half moved: keys that are there yet, keys that have gone, keys that are new. */
static void t_ask(void **state)
{
    (void)state;
    enum { SLOT = 5555, KEYS = 20 };
    struct clusterscene s;
    char key[64];
    clusterscene_init(&s, &cluster);
    clusterscene_start(&s);
    for (unsigned i = 0; i < KEYS; i++) {
        clusterscene_key(key, SLOT, i);
        gives(&s, HG_OP_SET, key, key, 0);
    }
    clusterd_open_slot(&cluster, SLOT, 1, 2);
    assert_int_equal(clusterd_move_keys(&cluster, SLOT, 1, 2, KEYS / 2), KEYS / 2);
    for (unsigned i = 0; i < KEYS; i++) {
        clusterscene_key(key, SLOT, i);
        holds(&s, key, key);
        gives(&s, HG_OP_APPEND, key, "+", 0); /* a script */
        gives(&s, HG_OP_ADD, key, "no", HG_STATUS_KEY_EEXISTS);
    }
    assert_int_equal(clusterscene_stat(&s, HG_REDISCLUSTER_ASK), 3 * KEYS / 2);
    clusterscene_key(key, SLOT, KEYS);
    gives(&s, HG_OP_ADD, key, "new", 0); /* made where it will be */
    holds(&s, key, "new");
    assert_int_equal(clusterscene_stat(&s, HG_REDISCLUSTER_ASK), 3 * KEYS / 2 + 2);
    assert_string_equal(s.stores[0]->ops->where(s.stores[0], HG_SPAN_NONE, hg_span_str(key)),
                        cluster.nodes[1].address);
    /* The scripts are forgotten, behind an ASK too. */
    clusterd_do(&cluster, 2, "SCRIPT FLUSH");
    gives(&s, HG_OP_APPEND, key, "+", 0);
    holds(&s, key, "new+");
    assert_int_equal(clusterscene_stat(&s, HG_REDISCLUSTER_MOVED), 0);
    while (clusterd_move_keys(&cluster, SLOT, 1, 2, KEYS) > 0)
        continue;
    clusterd_close_slot(&cluster, SLOT, 2);
    for (unsigned i = 0; i < KEYS; i++) {
        char value[70];
        clusterscene_key(key, SLOT, i);
        snprintf(value, sizeof value, "%s+", key);
        holds(&s, key, value);
    }
#ifdef SCENE_RELAYED
    /* It is another worker that hears of it; this one does with the next topology. */
    assert_in_range(clusterscene_stat(&s, HG_REDISCLUSTER_MOVED), 1, KEYS);
#else
    assert_int_equal(clusterscene_stat(&s, HG_REDISCLUSTER_MOVED), 1);
#endif
    clusterd_open_slot(&cluster, SLOT, 2, 1);
    while (clusterd_move_keys(&cluster, SLOT, 2, 1, KEYS) > 0)
        continue;
    clusterd_close_slot(&cluster, SLOT, 1);
    clusterd_wait(&cluster, SLOT, 1);
    gives(&s, HG_OP_FLUSH, "", NULL, 0);
    clusterscene_fini(&s);
}

/* Clients append numbers to their keys, many under way at once, while the slots of all the keys go
   from one master to another and back: nothing is lost, done twice or out of order. */
static void t_resharding_under_load(void **state)
{
    (void)state;
    enum { USERS = 12, PER_USER = 400, FIRST = 300, SLOTS = 6 };
    struct clusterscene s;
    struct user users[USERS];
    clusterscene_init(&s, &cluster);
    clusterscene_start(&s);
    for (int u = 0; u < USERS; u++) {
        char key[64], value[16];
        user_init(&users[u], &s, (uint32_t)u % 2, 2 * PER_USER + 4, 8);
        for (unsigned k = 0; k < 2; k++) { /* two keys in different slots */
            clusterscene_key(key, FIRST + ((unsigned)u + k) % SLOTS, (unsigned)u);
            user_add(&users[u], HG_OP_SET, key, "");
        }
        for (int i = 0; i < PER_USER; i++) {
            clusterscene_key(key, FIRST + ((unsigned)u + (unsigned)i % 2) % SLOTS, (unsigned)u);
            snprintf(value, sizeof value, "%c", 'a' + i / 2 % 26);
            user_add(&users[u], HG_OP_APPEND, key, value);
            if (i % 5 == 0)
                user_add(&users[u], HG_OP_GET, key, NULL);
        }
        for (unsigned k = 0; k < 2; k++) {
            clusterscene_key(key, FIRST + ((unsigned)u + k) % SLOTS, (unsigned)u);
            user_add(&users[u], HG_OP_GET, key, NULL);
        }
    }
    uint32_t phase = 0, slot = 0, from = 0, to = 1, moves = 0;
    uint64_t end_us = hg_now_us() + 60000000 * bench_scale();
    for (bool all = false; !all; phase++) {
        all = true;
        for (int u = 0; u < USERS; u++) {
            /* They go on only as fast as the slots do, so that all of it happens meanwhile. */
            users[u].window = users[u].finished < (int)moves * 18 + 10 || moves > 4 * SLOTS ? 8 : 0;
            user_pump(&users[u]);
            all &= user_is_done(&users[u]);
        }
        bench_turn(&s.bench);
        assert_true(hg_now_us() < end_us);
        if (phase % 20 == 5) {
            clusterd_open_slot(&cluster, FIRST + slot, from, to);
        } else if (phase % 20 == 8 || phase % 20 == 12) {
            clusterd_move_keys(&cluster, FIRST + slot, from, to, 1);
        } else if (phase % 20 == 16) {
            while (clusterd_move_keys(&cluster, FIRST + slot, from, to, 50) > 0)
                continue;
            clusterd_close_slot(&cluster, FIRST + slot, to);
            moves++;
            if (++slot == SLOTS) {
                slot = 0;
                from = to;
                to = (to + 1) % CLUSTERD_MASTERS;
            }
        }
    }
    for (int u = 0; u < USERS; u++) {
        char want[PER_USER];
        for (int i = 0; i < PER_USER / 2; i++)
            want[i] = (char)('a' + i % 26);
        want[PER_USER / 2] = '\0';
        assert_int_equal(users[u].order_faults, 0);
        for (int i = 0; i < users[u].count; i++) {
            struct step *step = &users[u].steps[i];
            if (step->fault != HG_FAULT_NONE || step->status != 0)
                fail_msg("step %d: fault %d status 0x%02x '%s'", i, step->fault, step->status,
                         step->got);
            if (step->call.op == HG_OP_GET)
                assert_memory_equal(step->got, want, step->got_len);
        }
        assert_string_equal(users[u].steps[users[u].count - 1].got, want);
        assert_string_equal(users[u].steps[users[u].count - 2].got, want);
        user_fini(&users[u]);
    }
    assert_true(clusterscene_stat(&s, HG_REDISCLUSTER_ASK) > 0);
    assert_true(clusterscene_stat(&s, HG_REDISCLUSTER_MOVED) > 0);
    assert_int_equal(clusterscene_stat(&s, HG_REDISCLUSTER_GIVEN_UP), 0);
    gives(&s, HG_OP_FLUSH, "", NULL, 0);
    clusterscene_fini(&s);
}

/* The upstream's own password becomes another: the next question about the slots goes with it. */
static void t_password_changes(void **state)
{
    (void)state;
    struct clusterscene s;
    for (uint32_t n = 0; n < cluster.count; n++)
        clusterd_do(&cluster, n, "ACL SETUSER own on resetpass >first ~* +@all");
    clusterscene_init(&s, &cluster);
    s.conf.user = "own";
    s.conf.password = "first";
    clusterscene_start(&s);
    gives(&s, HG_OP_SET, "foo", "x", 0);
    for (uint32_t n = 0; n < cluster.count; n++)
        clusterd_do(&cluster, n, "ACL SETUSER own on resetpass >second ~* +@all");
    hg_topology_want(&s.shared->topology, HG_SLOTS_NONE);
    BENCH_UNTIL(&s.bench, clusterscene_stat(&s, HG_REDISCLUSTER_REFRESH_FAILURES) > 0);
    assert_int_equal(hg_identities_set_password(&s.shared->upstream->identities, "second"), 0);
    clusterscene_refresh(&s);
    gives(&s, HG_OP_FLUSH, "", NULL, 0);
    clusterscene_fini(&s);
}

/* Servers that name each other by host names, or by ports only: "where you have asked". */
static void t_names_of_servers(void **state)
{
    (void)state;
    static const char *const types[] = {"hostname", "unknown-endpoint"};
    enum { SLOT = 12000 };
    for (size_t i = 0; i < HG_COUNT_OF(types); i++) {
        struct clusterscene s;
        char key[64];
        for (uint32_t n = 0; n < cluster.count; n++) {
            clusterd_do(&cluster, n, "CONFIG SET cluster-announce-hostname localhost");
            clusterd_do(&cluster, n, "CONFIG SET cluster-preferred-endpoint-type %s", types[i]);
        }
        clusterd_wait_hosts(&cluster, i == 0 ? "localhost" : NULL);
        clusterscene_init(&s, &cluster);
        clusterscene_start(&s);
        for (uint32_t m = 0; m < CLUSTERD_MASTERS; m++) {
            clusterscene_key(key, HG_KEYSLOTS * m / CLUSTERD_MASTERS, 1);
            gives(&s, HG_OP_SET, key, "x", 0);
        }
        clusterscene_key(key, SLOT, 1);
        gives(&s, HG_OP_SET, key, "moves", 0);
        clusterd_open_slot(&cluster, SLOT, 2, 0);
        clusterd_move_keys(&cluster, SLOT, 2, 0, 10);
        holds(&s, key, "moves");
        clusterd_close_slot(&cluster, SLOT, 0);
        holds(&s, key, "moves");
        assert_int_equal(clusterscene_stat(&s, HG_REDISCLUSTER_ASK), 1);
        assert_int_equal(clusterscene_stat(&s, HG_REDISCLUSTER_MOVED), 1);
        clusterd_open_slot(&cluster, SLOT, 0, 2);
        clusterd_move_keys(&cluster, SLOT, 0, 2, 10);
        clusterd_close_slot(&cluster, SLOT, 2);
        clusterscene_refresh(&s);
        gives(&s, HG_OP_FLUSH, "", NULL, 0);
        assert_int_equal(clusterscene_stat(&s, HG_REDISCLUSTER_MASTERS), 3);
        clusterscene_fini(&s);
    }
    for (uint32_t n = 0; n < cluster.count; n++)
        clusterd_do(&cluster, n, "CONFIG SET cluster-preferred-endpoint-type ip");
}

/* A range and what it gave: the rows' names, with a blank behind each. */
struct stretch {
    struct hg_range_call call;
    int done;
    enum hg_fault fault;
    char rows[1024];
};

static bool on_item(struct hg_range_call *call, const struct hg_range_item *item)
{
    struct stretch *stretch = HG_CONTAINER_OF(call, struct stretch, call);
    const uint8_t *zero = memchr(item->key.at, 0, item->key.len);
    size_t row = item->key.len - (size_t)(zero + 1 - item->key.at), len = strlen(stretch->rows);
    assert_true(len + row + 2 < sizeof stretch->rows);
    memcpy(stretch->rows + len, zero + 1, row);
    memcpy(stretch->rows + len + row, " ", 2);
    return true;
}

static void on_range_done(struct hg_range_call *call, const struct hg_range_end *end)
{
    struct stretch *stretch = HG_CONTAINER_OF(call, struct stretch, call);
    stretch->done++;
    stretch->fault = end->fault;
}

static void begin_range(struct clusterscene *s, struct stretch *stretch)
{
    bench_turn(&s->bench);
    *stretch = (struct stretch){.call = {.prefix = HG_SPAN_LIT("t:"),
                                         .from = HG_SPAN_LIT("goods\0"),
                                         .to = HG_SPAN_LIT("goods\1"),
                                         .max_items = 100,
                                         .max_us = 1000000,
                                         .on_item = on_item,
                                         .on_done = on_range_done}};
    s->stores[0]->ops->range(s->stores[0], &stretch->call);
}

static void finish_range(struct clusterscene *s, struct stretch *stretch, const char *rows)
{
    BENCH_UNTIL(&s->bench, stretch->done > 0);
    assert_int_equal(stretch->done, 1);
    assert_int_equal(stretch->fault, HG_FAULT_NONE);
    assert_string_equal(stretch->rows, rows);
}

/* Begins a write of row "r<n>" of table "goods". */
static void begin_row(struct clusterscene *s, struct note *note, enum hg_op op, unsigned n)
{
    bench_turn(&s->bench);
    note_init(note, s->stores[0], op, "");
    int len = snprintf(note->key, sizeof note->key, "goods%cr%u", 0, n);
    note->call.key = hg_span(note->key, (size_t)len);
    note->call.prefix = HG_SPAN_LIT("t:");
    note->call.row = true;
    note->call.value = HG_SPAN_LIT("row");
    (void)note_submit(note, &s->rigs[0]);
}

static void finish_row(struct clusterscene *s, struct note *note)
{
    BENCH_UNTIL(&s->bench, note->done > 0);
    if (note->result.fault != HG_FAULT_NONE || note->result.status != 0)
        fail_msg("fault %d status 0x%02x '%s'", note->result.fault, note->result.status,
                 note->value);
}

/* A table with an index lies in one slot. While that is moved, row and index may lie apart: the
   server says TRYAGAIN until they are together again, and the write is done then. */
static void t_ranges(void **state)
{
    (void)state;
    struct clusterscene s;
    struct stretch stretch;
    struct note note;
    uint32_t slot = hg_keyslot_of(HG_SPAN_LIT("goods"));
    uint32_t from = clusterd_owner(&cluster, 0, slot), to = (from + 1) % CLUSTERD_MASTERS;
    clusterscene_init(&s, &cluster);
    s.redis.ranges = true;
    clusterscene_start(&s);
    for (unsigned n = 0; n < 4; n++) {
        begin_row(&s, &note, HG_OP_SET, n);
        finish_row(&s, &note);
    }
    redisReply *reply = clusterd_ask(&cluster, from, "CLUSTER COUNTKEYSINSLOT %d", slot);
    assert_int_equal(reply->integer, 5);
    freeReplyObject(reply);
    begin_range(&s, &stretch);
    finish_range(&s, &stretch, "r0 r1 r2 r3 ");

    clusterd_open_slot(&cluster, slot, from, to);
    assert_int_equal(clusterd_move_keys(&cluster, slot, from, to, 3), 3);
    uint64_t tries = clusterscene_stat(&s, HG_REDISCLUSTER_TRYAGAIN);
    struct note notes[4];
    for (unsigned n = 0; n < 4; n++)
        begin_row(&s, &notes[n], n == 1 ? HG_OP_DELETE : HG_OP_SET, n);
    BENCH_UNTIL(&s.bench, clusterscene_stat(&s, HG_REDISCLUSTER_TRYAGAIN) > tries + 2);
    while (clusterd_move_keys(&cluster, slot, from, to, 100) > 0)
        continue;
    for (unsigned n = 0; n < 4; n++)
        finish_row(&s, &notes[n]);
    begin_range(&s, &stretch); /* behind an ASK */
    finish_range(&s, &stretch, "r0 r2 r3 ");
    clusterd_close_slot(&cluster, slot, to);
    begin_row(&s, &note, HG_OP_SET, 9); /* behind a MOVED */
    finish_row(&s, &note);
    begin_range(&s, &stretch);
    finish_range(&s, &stretch, "r0 r2 r3 r9 ");
    /* One that is given up while it is on its way. */
    begin_range(&s, &stretch);
    s.stores[0]->ops->cancel_range(s.stores[0], &stretch.call);
    bench_for(&s.bench, 10000);
    assert_int_equal(stretch.done, 0);
    clusterd_open_slot(&cluster, slot, to, from);
    while (clusterd_move_keys(&cluster, slot, to, from, 100) > 0)
        continue;
    clusterd_close_slot(&cluster, slot, from);
    gives(&s, HG_OP_FLUSH, "", NULL, 0);
    clusterscene_fini(&s);
}

/* Without ranges a table is spread over the cluster, nothing but the rows is written, and a range
   says why it cannot be. */
static void t_no_ranges(void **state)
{
    (void)state;
    struct clusterscene s;
    struct stretch stretch;
    struct note note;
    clusterscene_init(&s, &cluster);
    clusterscene_start(&s);
    for (unsigned n = 0; n < 64; n++) {
        begin_row(&s, &note, HG_OP_SET, n);
        finish_row(&s, &note);
    }
    long long keys = 0;
    for (uint32_t m = 0; m < CLUSTERD_MASTERS; m++) {
        redisReply *reply = clusterd_ask(&cluster, m, "DBSIZE");
        assert_in_range(reply->integer, 1, 63);
        keys += reply->integer;
        freeReplyObject(reply);
    }
    assert_int_equal(keys, 64);
    begin_range(&s, &stretch);
    BENCH_UNTIL(&s.bench, stretch.done > 0);
    assert_int_equal(stretch.fault, HG_FAULT_NOT_SUPPORTED);
    gives(&s, HG_OP_FLUSH, "", NULL, 0);
    clusterscene_fini(&s);
}

/* Tenants as users of the servers: what a user may not do he may not, redirects go as the same
   user, and a wrong password is said. */
static void t_users(void **state)
{
    (void)state;
    enum { SLOT = 9000 };
    struct clusterscene s;
    struct note note;
    uint32_t shop, wrong;
    char key[64];
    for (uint32_t n = 0; n < cluster.count; n++) {
        clusterd_do(&cluster, n, "ACL SETUSER shop on >secret ~shop:* +@all");
        clusterd_do(&cluster, n, "ACL SETUSER own on >own-secret ~* +@all");
    }
    clusterscene_init(&s, &cluster);
    s.conf.user = "own";
    s.conf.password = "own-secret";
    clusterscene_start(&s);
    assert_int_equal(hg_identities_add(&s.shared->upstream->identities, "shop", "secret", 0, &shop),
                     0);
    assert_int_equal(hg_identities_add(&s.shared->upstream->identities, "shop", "no", 0, &wrong),
                     0);
    clusterscene_key(key, SLOT, 1);
    clusterd_open_slot(&cluster, SLOT, 1, 2);
    for (int i = 0; i < 3; i++) {
        bench_turn(&s.bench);
        note_init(&note, s.stores[0], HG_OP_SET, key);
        note.call.prefix = i == 1 ? HG_SPAN_LIT("mine:") : HG_SPAN_LIT("shop:");
        note.call.identity = i == 2 ? wrong : shop;
        (void)note_submit(&note, &s.rigs[0]);
        BENCH_UNTIL(&s.bench, note.done > 0);
        if (i == 0) {
            assert_int_equal(note.result.fault, HG_FAULT_NONE);
            assert_int_equal(note.result.status, 0);
        } else if (i == 1) {
            assert_int_equal(note.result.status, HG_STATUS_EACCESS);
        } else {
            assert_int_not_equal(note.result.fault, HG_FAULT_NONE);
        }
    }
    assert_int_equal(clusterscene_stat(&s, HG_REDISCLUSTER_ASK), 1);
    clusterd_close_slot(&cluster, SLOT, 2);
    clusterd_open_slot(&cluster, SLOT, 2, 1);
    while (clusterd_move_keys(&cluster, SLOT, 2, 1, 10) > 0)
        continue;
    clusterd_close_slot(&cluster, SLOT, 1);
    gives(&s, HG_OP_FLUSH, "", NULL, 0);
    clusterscene_fini(&s);
}

static int set_up(void **state)
{
    (void)state;
    clusterd_init(&cluster);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    clusterd_fini(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_flush),
        cmocka_unit_test(t_every_slot),
        cmocka_unit_test(t_moved),
        cmocka_unit_test(t_ask),
        cmocka_unit_test(t_password_changes),
        cmocka_unit_test(t_names_of_servers),
        cmocka_unit_test(t_ranges),
        cmocka_unit_test(t_no_ranges),
        cmocka_unit_test(t_users),
        cmocka_unit_test(t_resharding_under_load),
    };
    if (!clusterd_is_installed())
        return 0;
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("rediscluster", tests, set_up, tear_down);
}
