// t_strand - slots whose call was given up are told of once, and once more when they are free
// SPDX-License-Identifier: BSD-3-Clause
#include "solo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define READ     1 /* hg_call.ticket of the kinds 0 and 1 */
#define WRITE    2
#define KINDS    2
#define CALLS    64
#define RUN_US   800000
#define ASKED    3500  /* as many requests as the fake keeps, about */
#define HANGUP   8000  /* one step in so many */
#define PAUSE_US 40000 /* the server does nothing for so long, now and then */

/* Who listens to the stores. */
struct tally {
    int held[KINDS];
    unsigned told; /* times that a slot became stranded */
    int below;     /* times that more were free than had been stranded */
};

static void on_strand(void *ctx, uint32_t server, uint64_t ticket, int change)
{
    (void)server;
    struct tally *tally = ctx;
    uint64_t kind = ticket - 1;
    assert_true(kind < KINDS);
    assert_true(change == 1 || change == -1);
    tally->held[kind] += change;
    tally->told += change > 0;
    tally->below += tally->held[kind] < 0;
}

static void listen_to(struct solo *solo, struct tally *tally)
{
    memset(tally, 0, sizeof *tally);
    for (uint32_t w = 0; w < solo->workers; w++) {
        solo->stores[w]->on_strand = on_strand;
        solo->stores[w]->strand_ctx = tally;
    }
}

/* Slots of the worker's links that say that they are stranded, of a kind. */
static int count_slots(struct solo *solo, uint32_t worker, unsigned kind)
{
    const struct hg_domain *domain = &hg_remote_of(solo->stores[worker])->domains[0];
    int n = 0;
    for (uint32_t i = 0; i <= domain->own->link_count; i++) {
        const struct hg_link *link =
            i < domain->own->link_count ? domain->own->links[i] : domain->quarantine.link;
        for (uint32_t seq = link == NULL ? 0 : link->head; link != NULL && seq != link->tail; seq++)
            n += link->slots[seq & link->mask].stranded == kind + 1;
    }
    return n;
}

static enum hg_submit ask(struct solo *solo, struct note *note, const char *key, uint64_t ticket)
{
    note_init(note, solo->stores[0], ticket == WRITE ? HG_OP_SET : HG_OP_GET, key);
    note->call.ticket = ticket;
    return note_submit(note, &solo->rigs[0]);
}

static void cancel(struct note *note)
{
    note->store->ops->cancel(note->store, &note->call);
}

#define UNTIL(solo, condition) BENCH_UNTIL(&(solo)->bench, condition)

static void t_cancelled(void **state)
{
    (void)state;
    struct solo solo;
    struct tally tally;
    struct note read, write, plain, answered;
    solo_init(&solo, 1);
    solo_start(&solo, 1);
    listen_to(&solo, &tally);
    solo_warm_up(&solo);
    ask(&solo, &read, "read", READ);
    ask(&solo, &write, "write", WRITE);
    ask(&solo, &plain, "plain", 0);
    ask(&solo, &answered, "answered", READ);
    UNTIL(&solo, fake_find(&solo.fake, "answered") != NULL);
    assert_int_equal(tally.told, 0);
    cancel(&read);
    assert_int_equal(tally.held[0], 1);
    cancel(&write);
    cancel(&plain); /* has no ticket: nobody counts it */
    assert_int_equal(tally.held[0], 1);
    assert_int_equal(tally.held[1], 1);
    fake_obey(&solo.fake, fake_find(&solo.fake, "read"));
    UNTIL(&solo, tally.held[0] == 0);
    assert_int_equal(tally.held[1], 1);
    fake_obey(&solo.fake, fake_find(&solo.fake, "write"));
    fake_obey(&solo.fake, fake_find(&solo.fake, "plain"));
    fake_obey(&solo.fake, fake_find(&solo.fake, "answered"));
    UNTIL(&solo, answered.done == 1);
    assert_int_equal(tally.held[1], 0);
    assert_int_equal(tally.told, 2);
    assert_int_equal(tally.below, 0);
    solo_fini(&solo);
    assert_int_equal(tally.told, 2);
}

/* It is told before the call is answered, so that the request's own ticket does not come free in
   between. */
static int held_when_done;
static struct tally *held_by;

static void note_held(struct hg_call *call, const struct hg_result *result)
{
    (void)result;
    struct note *note = HG_CONTAINER_OF(call, struct note, call);
    note->done++;
    held_when_done = held_by->held[0];
}

static void t_timed_out(void **state)
{
    (void)state;
    struct solo solo;
    struct tally tally;
    struct note note;
    solo_init(&solo, 1);
    solo_start(&solo, 1);
    listen_to(&solo, &tally);
    solo_warm_up(&solo);
    held_by = &tally;
    held_when_done = -1;
    note_init(&note, solo.stores[0], HG_OP_GET, "late");
    note.call.ticket = READ;
    note.call.on_done = note_held;
    note.call.deadline_us = bench_now_us() + 20000;
    note_submit(&note, &solo.rigs[0]);
    UNTIL(&solo, note.done == 1);
    assert_int_equal(held_when_done, 1);
    assert_int_equal(tally.held[0], 1);
    fake_obey(&solo.fake, fake_find(&solo.fake, "late"));
    UNTIL(&solo, tally.held[0] == 0);
    assert_int_equal(tally.told, 1);
    assert_int_equal(tally.below, 0);
    solo_fini(&solo);
}

/* Nothing is owed on a connection that has ended, whoever ended it. */
static void t_connection_ends(void **state)
{
    (void)state;
    struct solo solo;
    struct tally tally;
    struct note gone, there;
    solo_init(&solo, 1);
    solo_start(&solo, 1);
    listen_to(&solo, &tally);
    solo_warm_up(&solo);
    ask(&solo, &gone, "gone", READ);
    ask(&solo, &there, "there", WRITE);
    UNTIL(&solo, fake_find(&solo.fake, "there") != NULL);
    cancel(&gone);
    fake_hang_up(&solo.fake, fake_find(&solo.fake, "there")->conn);
    UNTIL(&solo, there.done == 1);
    assert_int_equal(there.result.fault, HG_FAULT_LOST);
    assert_int_equal(tally.held[0], 0);
    assert_int_equal(tally.told, 1); /* who was answered is not stranded */
    solo_warm_up(&solo);
    ask(&solo, &gone, "again", READ);
    UNTIL(&solo, fake_find(&solo.fake, "again") != NULL);
    cancel(&gone);
    assert_int_equal(tally.held[0], 1);
    solo_fini(&solo); /* the store's end is its connections' */
    assert_int_equal(tally.held[0], 0);
    assert_int_equal(tally.below, 0);
}

/* What was not sent when its connection ended goes to another one, with its ticket. */
static void t_moved(void **state)
{
    (void)state;
    struct solo solo;
    struct tally tally;
    struct note first, moved;
    solo_init(&solo, 1);
    solo.conf.pool_depth = 1;
    solo_start(&solo, 2);
    listen_to(&solo, &tally);
    solo_warm_up(&solo);
    ask(&solo, &first, "first", READ); /* makes a second connection come */
    ask(&solo, &moved, "second", READ);
    UNTIL(&solo, fake_find(&solo.fake, "second") != NULL);
    fake_obey(&solo.fake, fake_find(&solo.fake, "first"));
    fake_obey(&solo.fake, fake_find(&solo.fake, "second"));
    UNTIL(&solo, first.done == 1 && moved.done == 1);
    ask(&solo, &moved, "moved", READ);
    hg_link_end(moved.call.place.link, HG_LINK_CLOSED, 0); /* before the turn's end: nothing sent */
    assert_int_equal(moved.done, 0);
    assert_true(solo_stat(&solo, HG_UPSTREAM_RETRIES) == 1);
    UNTIL(&solo, fake_find(&solo.fake, "moved") != NULL);
    assert_int_equal(tally.told, 0);
    cancel(&moved);
    assert_int_equal(tally.held[0], 1);
    fake_obey(&solo.fake, fake_find(&solo.fake, "moved"));
    UNTIL(&solo, tally.held[0] == 0);
    assert_int_equal(tally.below, 0);
    solo_fini(&solo);
}

/* A flush that was cancelled is one slot, until the last server has answered. */
static void t_flush(void **state)
{
    (void)state;
    struct solo solo;
    struct tally tally;
    struct note flush;
    solo_init(&solo, 1);
    solo_start(&solo, 1);
    listen_to(&solo, &tally);
    solo_warm_up(&solo);
    note_init(&flush, solo.stores[0], HG_OP_FLUSH, "");
    flush.call.ticket = WRITE;
    note_submit(&flush, &solo.rigs[0]);
    UNTIL(&solo, fake_find(&solo.fake, "") != NULL);
    cancel(&flush);
    assert_int_equal(tally.held[1], 1);
    fake_obey(&solo.fake, fake_find(&solo.fake, ""));
    UNTIL(&solo, tally.held[1] == 0);
    assert_int_equal(tally.told, 1);
    assert_int_equal(tally.below, 0);
    solo_fini(&solo);
}

/* A call that another worker carries out: its store tells, whoever gives it up. */
static void t_relayed(void **state)
{
    (void)state;
    struct solo solo;
    struct tally tally;
    struct note gone, late;
    solo_init(&solo, 2);
    solo.conf.pool_max_connections = 3;
    solo.conf.times.backend_timeout_ms = 100 * (uint32_t)bench_scale();
    solo_start(&solo, 2);
    listen_to(&solo, &tally);
    solo_bear_silence(&solo);
    solo_warm_up(&solo);
    note_init(&gone, solo.stores[1], HG_OP_GET, "gone");
    note_init(&late, solo.stores[1], HG_OP_GET, "late");
    gone.call.ticket = late.call.ticket = READ;
    note_submit(&gone, &solo.rigs[1]);
    UNTIL(&solo, fake_find(&solo.fake, "gone") != NULL);
    cancel(&gone);
    UNTIL(&solo, tally.held[0] == 1); /* the owner has heard of it */
    assert_int_equal(count_slots(&solo, 0, 0), 1);
    note_submit(&late, &solo.rigs[1]);
    UNTIL(&solo, late.done == 1);
    assert_int_equal(late.result.fault, HG_FAULT_TIMEOUT);
    assert_int_equal(tally.held[0], 2);
    fake_obey(&solo.fake, fake_find(&solo.fake, "gone"));
    fake_obey(&solo.fake, fake_find(&solo.fake, "late"));
    UNTIL(&solo, tally.held[0] == 0);
    assert_int_equal(tally.told, 2);
    assert_int_equal(tally.below, 0);
    solo_fini(&solo);
}

/* ---- anything in any order ---- */

struct chaos {
    struct solo solo;
    struct tally tally;
    struct note notes[CALLS];
    bool busy[CALLS];
    unsigned given_up, late, answered;
    uint64_t paused_us; /* until then */
};

static unsigned dice(unsigned sides)
{
    return (unsigned)rand() % sides;
}

/* The oldest request of a connection that is not answered, or NULL. */
static struct fake_request *oldest_of(struct fake *fake, int conn)
{
    for (size_t i = 0; i < fake->count; i++) {
        if (!fake->requests[i].answered && fake->requests[i].conn == conn)
            return &fake->requests[i];
    }
    return NULL;
}

static void answer_some(struct fake *fake)
{
    for (int conn = 0; conn < fake->accepted && conn < FAKE_CONNS; conn++) {
        struct fake_request *request = oldest_of(fake, conn);
        if (request != NULL && fake->conns[conn].fd >= 0 && dice(3) > 0)
            fake_obey(fake, request);
    }
}

static void ask_something(struct chaos *chaos, unsigned i)
{
    static const enum hg_op ops[] = {HG_OP_GET, HG_OP_GET, HG_OP_SET, HG_OP_DELETE, HG_OP_FLUSH};
    char key[16];
    struct solo *solo = &chaos->solo;
    uint32_t worker = dice(solo->workers);
    enum hg_op op = ops[dice(dice(10) == 0 ? 5 : 4)];
    snprintf(key, sizeof key, "k%u", dice(20));
    note_init(&chaos->notes[i], solo->stores[worker], op, op == HG_OP_FLUSH ? "" : key);
    chaos->notes[i].call.ticket = (uint8_t)dice(KINDS + 1);
    chaos->notes[i].call.quarantine = op != HG_OP_FLUSH && dice(10) == 0;
    if (dice(4) == 0)
        chaos->notes[i].call.deadline_us = bench_now_us() + dice(30000);
    chaos->busy[i] = true;
    (void)note_submit(&chaos->notes[i], &solo->rigs[worker]);
}

static void check(struct chaos *chaos)
{
    assert_int_equal(chaos->tally.below, 0);
    for (unsigned kind = 0; kind < KINDS; kind++) {
        int slots = 0;
        for (uint32_t w = 0; w < chaos->solo.workers; w++)
            slots += count_slots(&chaos->solo, w, kind);
        /* Those that a flush has are told of, too. */
        assert_true(chaos->tally.held[kind] >= slots);
    }
}

static void step(struct chaos *chaos)
{
    struct solo *solo = &chaos->solo;
    unsigned i = dice(CALLS);
    if (chaos->busy[i] && chaos->notes[i].done > 0) {
        chaos->late += chaos->notes[i].result.fault == HG_FAULT_TIMEOUT;
        chaos->answered += chaos->notes[i].result.fault == HG_FAULT_NONE;
        chaos->busy[i] = false;
    }
    if (!chaos->busy[i]) {
        if (solo->fake.count < ASKED && dice(6) == 0)
            ask_something(chaos, i);
    } else if (dice(40) == 0) {
        cancel(&chaos->notes[i]);
        chaos->busy[i] = false;
        chaos->given_up++;
    }
    if (dice(3000) == 0)
        chaos->paused_us = bench_now_us() + dice(PAUSE_US);
    if (bench_now_us() > chaos->paused_us && dice(4) == 0)
        answer_some(&solo->fake);
    if (dice(HANGUP) == 0 && solo->fake.accepted > 0 && solo->fake.accepted < FAKE_CONNS - 8) {
        int conn = (int)dice((unsigned)solo->fake.accepted);
        if (solo->fake.conns[conn].fd >= 0)
            fake_hang_up(&solo->fake, conn);
    }
    bench_turn(&solo->bench);
    check(chaos);
}

static bool is_quiet(const struct chaos *chaos)
{
    for (uint32_t w = 0; w < chaos->solo.workers; w++) {
        if (!chaos->solo.stores[w]->ops->drained(chaos->solo.stores[w]))
            return false;
    }
    return true;
}

static void settle(struct chaos *chaos)
{
    uint64_t deadline = bench_deadline();
    while (!is_quiet(chaos) && hg_now_us() < deadline) {
        answer_some(&chaos->solo.fake);
        bench_turn(&chaos->solo.bench);
    }
    assert_true(is_quiet(chaos));
}

/* However long that takes on a busy machine. */
static bool has_seen_enough(struct chaos *chaos)
{
    return chaos->answered > 20 && chaos->given_up > 5 && chaos->tally.told > 5 &&
           solo_stat(&chaos->solo, HG_UPSTREAM_QUARANTINED) > 0;
}

static void run_chaos(uint32_t workers, uint32_t connections, unsigned seed, bool drained)
{
    static struct chaos chaos;
    struct solo *solo = &chaos.solo;
    memset(&chaos, 0, sizeof chaos);
    srand(seed);
    solo_init(solo, workers);
    solo->conf.pool_depth = 8;
    solo->conf.pool_max_connections = connections;
    solo->conf.times.backend_timeout_ms = 30;
    solo->conf.times.queue_timeout_ms = 60;
    solo->conf.times.reconnect_max_ms = 5;
    solo_start(solo, connections);
    listen_to(solo, &chaos.tally);
    uint64_t end_us = hg_now_us() + RUN_US * bench_scale();
    PATIENCE_WHILE(hg_now_us() < end_us || !has_seen_enough(&chaos))
    {
        step(&chaos);
    }
    if (drained) {
        for (uint32_t w = 0; w < workers; w++)
            solo->stores[w]->ops->drain(solo->stores[w]);
        settle(&chaos);
        assert_int_equal(chaos.tally.held[0], 0);
        assert_int_equal(chaos.tally.held[1], 0);
    }
    solo_fini(solo);
    assert_int_equal(chaos.tally.held[0], 0);
    assert_int_equal(chaos.tally.held[1], 0);
    assert_int_equal(chaos.tally.below, 0);
    print_message("%u calls answered, %u given up, %u late, %u slots stranded\n", chaos.answered,
                  chaos.given_up, chaos.late, chaos.tally.told);
}

static void t_chaos(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 2; seed++)
        run_chaos(1, 3, seed, seed % 2 == 0);
}

static void t_chaos_of_two(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 2; seed++)
        run_chaos(2, 8, seed, seed % 2 == 0);
}

static void t_chaos_relayed(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 2; seed++)
        run_chaos(2, 3, seed, seed % 2 == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_cancelled),       cmocka_unit_test(t_timed_out),
        cmocka_unit_test(t_connection_ends), cmocka_unit_test(t_moved),
        cmocka_unit_test(t_flush),           cmocka_unit_test(t_relayed),
        cmocka_unit_test(t_chaos),           cmocka_unit_test(t_chaos_of_two),
        cmocka_unit_test(t_chaos_relayed),
    };
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("strand", tests, NULL, NULL);
}
