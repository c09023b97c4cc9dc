// t_domain - connections go from one identity to another: when, how, and what stands in the way
// SPDX-License-Identifier: BSD-3-Clause
//
// A case is a table of rows: what users ask, how time passes, what the server does, and what is
// true then. A call is named by its key. Each row ends when what it caused has arrived.
#include "crowd.h"

#include <string.h>

#include "base/log.h"
#include "cases.h"
#include "proto/opcode.h"

#define HOLD_US  10000
#define OWN      UINT32_MAX /* instead of a user: the upstream's own identity */
#define NOTES    16
#define ANY_OF_2 2

struct play {
    struct crowd c;
    struct note notes[NOTES];
    unsigned noted;
    /* As of the last MARK: */
    size_t requests;
    int accepted;
    uint64_t us;
    uint32_t quota; /* as of KEEP_QUOTA */
};

struct row {
    void (*act)(struct play *play, const struct row *row);
    int line;
    uint32_t user;
    const char *key;
    const char *text; /* a value, a user's name, another call's key, or the name of `number` */
    uint64_t n;
    int code; /* a result of submit, a fault, or a number in an enum */
    uint64_t (*number)(struct play *play, const struct row *row);
    enum hg_op op;
    uint32_t users, connections, depth;
    uint32_t queue_ms, connect_ms, idle_s;
    const char *own_user;
};

/* ---- what rows do ---- */

static void start(struct play *play, const struct row *row)
{
    struct crowd *c = &play->c;
    crowd_init(c, 1, row->depth);
    struct hg_remote_conf *conf = &c->solo.conf;
    if (row->text != NULL)
        strcpy(c->solo.fake.refused, row->text);
    if (row->queue_ms > 0)
        conf->times.queue_timeout_ms = row->queue_ms;
    if (row->connect_ms > 0)
        conf->times.connect_timeout_ms = row->connect_ms;
    if (row->idle_s > 0)
        conf->pool_idle_timeout_s = row->idle_s;
    if (row->own_user != NULL) {
        conf->user = row->own_user;
        conf->password = "old";
    }
    crowd_start(c, row->users, row->connections);
}

static struct note *note_of(struct play *play, const char *key)
{
    for (unsigned i = play->noted; i-- > 0;) {
        if (strcmp(play->notes[i].key, key) == 0)
            return &play->notes[i];
    }
    fail_msg("no call for '%s'", key);
    return NULL;
}

static void ask(struct play *play, const struct row *row)
{
    assert_true(play->noted < NOTES);
    struct note *note = &play->notes[play->noted++];
    int got = row->user == OWN ? solo_ask(&play->c.solo, note, row->key)
                               : crowd_ask(&play->c, row->user, note, row->key);
    if (row->code != ANY_OF_2)
        assert_int_equal(got, row->code);
}

static void ask_behind(struct play *play, const struct row *row)
{
    assert_true(play->noted < NOTES);
    struct note *after = note_of(play, row->text), *note = &play->notes[play->noted++];
    note_init(note, play->c.solo.stores[0], row->op, row->key);
    note->call.identity = play->c.ids[row->user];
    note->call.after = &after->call;
    assert_int_equal(note_submit(note, &play->c.solo.rigs[0]), HG_SUBMIT_WAIT);
}

static void cancel(struct play *play, const struct row *row)
{
    struct hg_store *store = play->c.solo.stores[0];
    store->ops->cancel(store, &note_of(play, row->key)->call);
}

static void answer(struct play *play, const struct row *row)
{
    crowd_answer(&play->c, row->key);
}

static void answer_the_last(struct play *play, const struct row *row)
{
    struct fake *fake = &play->c.solo.fake;
    (void)row;
    fake_obey(fake, &fake->requests[fake->count - 1]);
}

static void pass(struct play *play, const struct row *row)
{
    crowd_pass(&play->c, row->n);
}

static void settle(struct play *play, const struct row *row)
{
    (void)row;
    crowd_settle(&play->c);
}

static void mark(struct play *play, const struct row *row)
{
    (void)row;
    play->requests = play->c.solo.fake.count;
    play->accepted = play->c.solo.fake.accepted;
    play->us = crowd_now_us();
}

static void refuse(struct play *play, const struct row *row)
{
    strcpy(play->c.solo.fake.refused, row->text);
}

static void take_one_login(struct play *play, const struct row *row)
{
    (void)row;
    play->c.solo.fake.one_login = true;
}

static void ignore_logins(struct play *play, const struct row *row)
{
    (void)row;
    play->c.solo.fake.lets_in = false;
}

static void answer_everything(struct play *play, const struct row *row)
{
    (void)row;
    play->c.solo.fake.automatic = true;
}

static void stop_server(struct play *play, const struct row *row)
{
    (void)row;
    fake_stop(&play->c.solo.fake);
    crowd_settle(&play->c);
}

static void start_server(struct play *play, const struct row *row)
{
    (void)row;
    fake_start(&play->c.solo.fake);
}

static struct hg_pool *pool_of(struct play *play, uint32_t user)
{
    return user == OWN ? crowd_domain(&play->c, 0)->own : crowd_pool(&play->c, 0, user);
}

static void deny_for(struct play *play, const struct row *row)
{
    pool_of(play, row->user)->denied_until_us = crowd_now_us() + row->n;
}

static void set_password(struct play *play, const struct row *row)
{
    assert_int_equal(hg_identities_set_password(&play->c.solo.shared->identities, row->text), 0);
}

/* Another connection was tried a moment ago, since those that there are did not answer. */
static void try_in_vain(struct play *play, const struct row *row)
{
    struct hg_domain *domain = crowd_domain(&play->c, 0);
    (void)row;
    domain->usual_us = 1000;
    domain->tries = 1;
    domain->try_us = UINT64_MAX;
}

/* ---- what rows expect ---- */

static void is_done(struct play *play, const struct row *row)
{
    struct note *note = note_of(play, row->key);
    assert_int_equal(note->done, 1);
    assert_int_equal(note->result.fault, row->code);
}

static void until_done(struct play *play, const struct row *row)
{
    struct note *note = note_of(play, row->key);
    BENCH_UNTIL(&play->c.solo.bench, note->done == 1);
    is_done(play, row);
}

static void is_under_way(struct play *play, const struct row *row)
{
    assert_int_equal(note_of(play, row->key)->done, 0);
}

static void hears_nothing(struct play *play, const struct row *row)
{
    assert_int_equal(note_of(play, row->key)->done, 0);
    assert_int_equal(note_of(play, row->key)->rooms, 0);
}

static void value_is(struct play *play, const struct row *row)
{
    assert_string_equal(note_of(play, row->key)->value, row->text);
}

static void value_has(struct play *play, const struct row *row)
{
    const char *part = row->text != NULL ? row->text : play->c.solo.fake.address;
    assert_non_null(strstr(note_of(play, row->key)->value, part));
}

static void done_before(struct play *play, const struct row *row)
{
    assert_true(note_of(play, row->key)->order < note_of(play, row->text)->order);
}

static void until_sent(struct play *play, const struct row *row)
{
    struct fake *fake = &play->c.solo.fake;
    BENCH_UNTIL(&play->c.solo.bench, fake_find(fake, row->key) != NULL);
}

static void is_sent(struct play *play, const struct row *row)
{
    struct fake_request *request = fake_find(&play->c.solo.fake, row->key);
    assert_non_null(request);
    assert_string_equal(request->user, row->text);
}

/* The nth request since the mark came from this user; it is a login, or for that key. */
static void request_is(struct play *play, const struct row *row)
{
    size_t at = play->requests + row->n;
    assert_true(at < play->c.solo.fake.count);
    const struct fake_request *request = &play->c.solo.fake.requests[at];
    assert_string_equal(request->user, row->text);
    if (row->key == NULL)
        assert_int_equal(request->opcode, HG_OPCODE_SASL_AUTH);
    else
        assert_string_equal(request->key, row->key);
}

static void took_at_most(struct play *play, const struct row *row)
{
    assert_true(crowd_now_us() - play->us <= row->n);
}

static void denied_for_at_most(struct play *play, const struct row *row)
{
    assert_true(pool_of(play, row->user)->denied_until_us <= crowd_now_us() + row->n);
}

static void has_nothing_left_to_do(struct play *play, const struct row *row)
{
    (void)row;
    assert_false(hg_domain_tick(crowd_domain(&play->c, 0), crowd_now_us()));
}

static void keep_quota(struct play *play, const struct row *row)
{
    play->quota = pool_of(play, row->user)->block.quota;
    assert_true(play->quota > 0);
}

static void quota_is_kept(struct play *play, const struct row *row)
{
    assert_int_equal(pool_of(play, row->user)->block.quota, play->quota);
}

static void number_is(struct play *play, const struct row *row)
{
    uint64_t got = row->number(play, row);
    if (got != row->n)
        fail_msg("%s is %llu, not %llu", row->text, (unsigned long long)got,
                 (unsigned long long)row->n);
}

/* ---- numbers ---- */

#define NUMBER_OF(name, expression)                                                                \
    static uint64_t name(struct play *play, const struct row *row)                                 \
    {                                                                                              \
        (void)play;                                                                                \
        (void)row;                                                                                 \
        return (uint64_t)(expression);                                                             \
    }

NUMBER_OF(accepted, play->c.solo.fake.accepted)
NUMBER_OF(accepted_since, play->c.solo.fake.accepted - play->accepted)
NUMBER_OF(requests_since, play->c.solo.fake.count - play->requests)
NUMBER_OF(live, fake_live(&play->c.solo.fake))
NUMBER_OF(breaker, solo_breaker(&play->c.solo))
NUMBER_OF(breaker_live, play->c.solo.shared->servers[0].breaker.live)
NUMBER_OF(may_send, hg_server_may_send(&play->c.solo.shared->servers[0]))
NUMBER_OF(upstream_stat, solo_stat(&play->c.solo, (enum hg_upstream_stat)row->code))
NUMBER_OF(pool_stat, crowd_stat(&play->c, row->user, (enum hg_pool_stat)row->code))
NUMBER_OF(capacity_in_use, crowd_domain(&play->c, 0)->balance.total)
NUMBER_OF(blocks, crowd_domain(&play->c, 0)->balance.block_count)
NUMBER_OF(waiters, crowd_domain(&play->c, 0)->balance.waiters)
NUMBER_OF(frozen, crowd_domain(&play->c, 0)->balance.frozen)
NUMBER_OF(denied, pool_of(play, row->user)->denied)
NUMBER_OF(idle, pool_of(play, row->user)->block.idle_count)
NUMBER_OF(draining, pool_of(play, row->user)->block.draining)
NUMBER_OF(incoming, pool_of(play, row->user)->block.incoming)
NUMBER_OF(coming, pool_of(play, row->user)->block.coming)

/* ---- rows ---- */

#define ROW(act_, ...)                                                                             \
    {                                                                                              \
        .act = act_, .line = __LINE__, __VA_ARGS__                                                 \
    }
/* Users u0, u1 ...; connections that the server allows; requests on one at a time; and options. */
#define START(users_, connections_, depth_, ...)                                                   \
    ROW(start, .users = users_, .connections = connections_, .depth = depth_, __VA_ARGS__)
#define REFUSES(user_name) .text = user_name
/* User 0 has the only connection, and it is idle. */
#define START_WITH_ONE(users_, depth_)                                                             \
    START(users_, 1, depth_), ASK(0, "first"), ANSWER("first"), UNTIL_DONE("first", NONE),         \
        IDLE(0, 1)

#define ASK(user_, key_)       ROW(ask, .user = user_, .key = key_, .code = ANY_OF_2)
#define ASK_WAITS(user_, key_) ROW(ask, .user = user_, .key = key_, .code = HG_SUBMIT_WAIT)
#define ASK_TAKEN(user_, key_) ROW(ask, .user = user_, .key = key_, .code = HG_SUBMIT_TAKEN)
/* It must go to the connection that the other call is on, and waits. */
#define ASK_BEHIND(user_, op_, key_, other)                                                        \
    ROW(ask_behind, .user = user_, .op = HG_OP_##op_, .key = key_, .text = other)
#define CANCEL(key_)        ROW(cancel, .key = key_)
#define PASS(us)            ROW(pass, .n = us)
#define SETTLE              ROW(settle)
#define MARK                ROW(mark)
#define SET_PASSWORD(new_)  ROW(set_password, .text = new_)
#define DENY_FOR(user_, us) ROW(deny_for, .user = user_, .n = us)
#define TRY_IN_VAIN         ROW(try_in_vain)

#define ANSWER(key_)      ROW(answer, .key = key_)
#define ANSWER_THE_LAST   ROW(answer_the_last)
#define ANSWER_EVERYTHING ROW(answer_everything)
#define REFUSE(user_name) ROW(refuse, .text = user_name)
#define REFUSE_NOBODY     REFUSE("")
#define TAKE_ONE_LOGIN    ROW(take_one_login)
#define IGNORE_LOGINS     ROW(ignore_logins)
#define STOP_SERVER       ROW(stop_server)
#define START_SERVER      ROW(start_server)

#define UNTIL_DONE(key_, fault)  ROW(until_done, .key = key_, .code = HG_FAULT_##fault)
#define IS_DONE(key_, fault)     ROW(is_done, .key = key_, .code = HG_FAULT_##fault)
#define UNDER_WAY(key_)          ROW(is_under_way, .key = key_)
#define HEARS_NOTHING(key_)      ROW(hears_nothing, .key = key_)
#define VALUE(key_, value_)      ROW(value_is, .key = key_, .text = value_)
#define VALUE_HAS(key_, part)    ROW(value_has, .key = key_, .text = part)
#define VALUE_NAMES_SERVER(key_) ROW(value_has, .key = key_)
#define DONE_BEFORE(key_, other) ROW(done_before, .key = key_, .text = other)
#define UNTIL_SENT(key_)         ROW(until_sent, .key = key_)
#define IS_SENT(key_, user_name) ROW(is_sent, .key = key_, .text = user_name)
/* Since the mark: */
#define LOGIN(nth, user_name)         ROW(request_is, .n = nth, .text = user_name)
#define REQUEST(nth, key_, user_name) ROW(request_is, .n = nth, .key = key_, .text = user_name)
#define TOOK_AT_MOST(us)              ROW(took_at_most, .n = us)
#define TOOK_NO_TIME                  TOOK_AT_MOST(0)
#define DENIED_FOR_AT_MOST(user_, us) ROW(denied_for_at_most, .user = user_, .n = us)
#define NOTHING_LEFT_TO_DO            ROW(has_nothing_left_to_do)
#define KEEP_QUOTA(user_)             ROW(keep_quota, .user = user_)
#define QUOTA_IS_KEPT(user_)          ROW(quota_is_kept, .user = user_)

#define NUMBER(number_, n_, ...)                                                                   \
    ROW(number_is, .number = number_, .n = n_, .text = #number_, __VA_ARGS__)
#define ACCEPTED(n_)           NUMBER(accepted, n_)
#define ACCEPTED_SINCE(n_)     NUMBER(accepted_since, n_)
#define REQUESTS_SINCE(n_)     NUMBER(requests_since, n_)
#define LIVE(n_)               NUMBER(live, n_)
#define BREAKER(state_)        NUMBER(breaker, HG_BREAKER_##state_)
#define BREAKER_LIVE(n_)       NUMBER(breaker_live, n_)
#define MAY_SEND               NUMBER(may_send, true)
#define UPSTREAM(stat_, n_)    NUMBER(upstream_stat, n_, .code = HG_UPSTREAM_##stat_)
#define POOL(user_, stat_, n_) NUMBER(pool_stat, n_, .user = user_, .code = HG_POOL_##stat_)
#define CAPACITY_IN_USE(n_)    NUMBER(capacity_in_use, n_)
#define BLOCKS(n_)             NUMBER(blocks, n_)
#define WAITERS(n_)            NUMBER(waiters, n_)
#define FROZEN(n_)             NUMBER(frozen, n_)
#define DENIED(user_)          NUMBER(denied, true, .user = user_)
#define IDLE(user_, n_)        NUMBER(idle, n_, .user = user_)
#define DRAINING(user_, n_)    NUMBER(draining, n_, .user = user_)
#define INCOMING(user_, n_)    NUMBER(incoming, n_, .user = user_)
#define COMING(user_, n_)      NUMBER(coming, n_, .user = user_)

/* ---- cases ---- */

/* clang-format off */

/* An idle connection goes to who asks, by another login on it, but not before its hold is over. */
static const struct row t_moves_by_logging_in_anew[] = {
    START_WITH_ONE(2, 4),
    MARK,
    ASK_WAITS(1, "k"),
    PASS(HOLD_US - 1000),
    REQUESTS_SINCE(0),
    PASS(11000), /* the next tick after the hold */
    LOGIN(0, "u1"),
    ANSWER("k"),
    UNTIL_DONE("k", NONE),
    VALUE("k", "v:k"),
    REQUEST(1, "k", "u1"),
    TOOK_AT_MOST(HOLD_US + 10000),
    ACCEPTED(1),
    UPSTREAM(CONNECTS, 1),
    PASS(200000),
    POOL(1, MOVES, 1),
    POOL(1, REBINDS, 1),
    POOL(1, IDLE, 1),
    POOL(0, MOVES, 0),
    POOL(0, IDLE, 0),
};

/* Past its hold an idle connection is taken the moment somebody asks. */
static const struct row t_is_stolen_at_once[] = {
    START_WITH_ONE(2, 4),
    PASS(300000), /* its user has no demand any more */
    MARK,
    ASK_WAITS(1, "k"),
    ANSWER("k"),
    UNTIL_DONE("k", NONE),
    TOOK_NO_TIME,
    PASS(200000),
    POOL(1, STEALS, 1),
};

/* A busy one is drained first: it takes nothing new, and moves when the last answer has come. */
static const struct row t_moves_only_when_empty[] = {
    START_WITH_ONE(2, 4),
    ASK(0, "busy0"),
    ASK(0, "busy1"),
    PASS(20000),
    ASK_WAITS(1, "other"),
    PASS(20000),
    DRAINING(0, 1),
    INCOMING(1, 1),
    MARK,
    ASK_WAITS(0, "more"),
    ANSWER("busy0"),
    REQUESTS_SINCE(0), /* one is still unanswered */
    ANSWER("busy1"),
    UNTIL_DONE("busy0", NONE),
    UNTIL_DONE("busy1", NONE),
    UNTIL_SENT("other"),
    LOGIN(0, "u1"),
    ANSWER("other"),
    UNTIL_DONE("other", NONE),
    VALUE("other", "v:other"),
    /* It comes back, after the hold, for the one that waits. */
    UNDER_WAY("more"),
    PASS(3 * HOLD_US),
    ANSWER("more"),
    UNTIL_DONE("more", NONE),
    VALUE("more", "v:more"),
    ACCEPTED(1),
    PASS(200000),
    POOL(0, DRAINS, 1),
    POOL(0, MOVES, 1),
};

/* A server that does not answer keeps a connection from its next user for a bounded time; a call
   that must use this connection waits that long, too. */
static const struct row t_a_drain_that_takes_too_long_is_given_back[] = {
    START_WITH_ONE(2, 4),
    ASK(0, "busy"),
    PASS(20000),
    ASK(1, "other"),
    PASS(20000),
    DRAINING(0, 1),
    ASK_WAITS(0, "more"),
    ASK_BEHIND(0, GET, "behind", "busy"),
    PASS(70000),
    IS_SENT("more", "u0"),
    IS_SENT("behind", "u0"),
    UNDER_WAY("busy"),
    UNDER_WAY("other"),
    ANSWER("busy"),
    ANSWER("more"),
    ANSWER("behind"),
    PASS(3 * HOLD_US),
    ANSWER("other"),
    UNTIL_DONE("busy", NONE),
    UNTIL_DONE("more", NONE),
    UNTIL_DONE("behind", NONE),
    UNTIL_DONE("other", NONE),
    ACCEPTED(1),
};

/* A call that waits for its client's earlier one on a connection that goes to another pool. */
static const struct row t_bound_to_a_connection_that_moves[] = {
    START_WITH_ONE(2, 4),
    ASK(0, "busy"),
    PASS(20000),
    ASK(1, "other"),
    PASS(20000),
    DRAINING(0, 1),
    ASK_BEHIND(0, SET, "behind", "busy"),
    ANSWER("busy"),
    ANSWER("other"),
    PASS(3 * HOLD_US),
    ANSWER("behind"),
    UNTIL_DONE("busy", NONE),
    UNTIL_DONE("behind", NONE),
    UNTIL_DONE("other", NONE),
    DONE_BEFORE("busy", "other"),
    DONE_BEFORE("other", "behind"),
    ACCEPTED(1),
};

/* The server refuses one user: this user's calls fail at once, later ones too; the others are not
   concerned. After a while the login is tried again. */
static const struct row t_a_refused_login_hurts_its_own_only[] = {
    START(2, 2, 4, REFUSES("u1")),
    ASK(0, "good0"),
    ANSWER("good0"),
    MARK,
    ASK(1, "bad0"),
    UNTIL_DONE("bad0", DENIED),
    TOOK_NO_TIME,
    VALUE_NAMES_SERVER("bad0"),
    VALUE_HAS("bad0", "refuses the login of the tenant"),
    BREAKER(CLOSED),
    UPSTREAM(CONNECT_FAILURES, 0),
    CAPACITY_IN_USE(1), /* the refused one holds none */
    DENIED_FOR_AT_MOST(1, 1000000),
    DENY_FOR(1, 400000),
    MARK,
    ASK_TAKEN(1, "bad1"),
    IS_DONE("bad1", DENIED),
    PASS(350000),
    ACCEPTED_SINCE(0),
    ASK(0, "good1"),
    ANSWER("good1"),
    PASS(100000),
    REFUSE_NOBODY,
    ASK_WAITS(1, "bad2"),
    ANSWER("bad2"),
    UNTIL_DONE("bad2", NONE),
    UNTIL_DONE("good0", NONE),
    UNTIL_DONE("good1", NONE),
    ACCEPTED_SINCE(1),
    PASS(200000),
    POOL(1, REJECTED, 1),
    POOL(1, CONNECT_ERRORS, 0),
    POOL(0, REJECTED, 0),
};

/* A new password is tried at once. */
static const struct row t_another_password[] = {
    START(1, 2, 4, REFUSES("boss"), .own_user = "boss"),
    ASK(OWN, "first"),
    UNTIL_DONE("first", DENIED),
    VALUE_HAS("first", "refuses the login of the upstream"),
    DENY_FOR(OWN, 1000000),
    ASK(OWN, "second"),
    UNTIL_DONE("second", DENIED),
    VALUE_HAS("second", "refuses the login of the upstream"),
    DENY_FOR(OWN, 1000000),
    ACCEPTED(1),
    REFUSE_NOBODY,
    SET_PASSWORD("new"),
    ASK_WAITS(OWN, "k"),
    ANSWER("k"),
    UNTIL_DONE("k", NONE),
};

/* A user with a connection from before is served by it, and waits no longer than for it. */
static const struct row t_refused_with_a_connection_left[] = {
    START(1, 4, 1),
    ASK(0, "busy"),
    SETTLE,
    REFUSE("u0"),
    ASK_WAITS(0, "waits"),
    SETTLE,
    ACCEPTED(2),
    DENIED(0),
    DENY_FOR(0, 900000),
    ASK_WAITS(0, "later"),
    PASS(200000),
    UNDER_WAY("busy"),
    UNDER_WAY("waits"),
    UNDER_WAY("later"),
    ACCEPTED(2),
    ANSWER("busy"),
    ANSWER("waits"),
    ANSWER("later"),
    UNTIL_DONE("busy", NONE),
    UNTIL_DONE("waits", NONE),
    UNTIL_DONE("later", NONE),
};

/* A user who cannot log in does not stand in the line before one who can. */
static const struct row t_refused_ones_are_passed_by[] = {
    START(3, 1, 1, REFUSES("u1")),
    ASK(0, "busy"),
    SETTLE,
    ASK(1, "bad"),
    ASK(2, "good"),
    PASS(50000),
    UNDER_WAY("bad"),
    UNDER_WAY("good"),
    ANSWER("busy"),
    PASS(50000),
    UNTIL_DONE("bad", DENIED),
    ANSWER("good"),
    UNTIL_DONE("good", NONE),
};

/* A cancelled waiter, and one whose time is over, leave no trace: nothing moves for them. */
static const struct row t_nothing_moves_for_who_has_left[] = {
    START(3, 1, 4, .queue_ms = 15),
    ASK(0, "busy"),
    SETTLE,
    ASK(1, "cancelled"),
    ASK(2, "late"),
    CANCEL("cancelled"),
    PASS(40000),
    IS_DONE("late", QUEUE_TIMEOUT),
    WAITERS(0),
    ANSWER("busy"),
    PASS(200000),
    HEARS_NOTHING("cancelled"),
    IDLE(0, 1),
    POOL(1, MOVES, 0),
    POOL(2, MOVES, 0),
};

/* A server that takes one login a connection is connected to anew. */
#define ROUND(user_, key_, accepted_)                                                              \
    PASS(300000), ASK(user_, key_), ANSWER(key_), UNTIL_DONE(key_, NONE), ACCEPTED(accepted_),     \
        LIVE(1)
static const struct row t_no_second_login[] = {
    START_WITH_ONE(2, 4),
    TAKE_ONE_LOGIN,
    ROUND(1, "k1", 2),
    ROUND(0, "k2", 3),
    ROUND(1, "k3", 4),
    ROUND(0, "k4", 5),
    BREAKER(CLOSED),
    PASS(200000),
    /* One was tried with each, and then no more. */
    POOL(0, REJECTED, 1),
    POOL(1, REJECTED, 1),
};

/* A second login that is not answered is a connect that takes too long. */
static const struct row t_a_login_takes_too_long[] = {
    START(2, 1, 4, .connect_ms = 50),
    ASK(0, "first"),
    ANSWER("first"),
    PASS(300000),
    IGNORE_LOGINS,
    ASK(1, "k"),
    PASS(40000),
    COMING(1, 1),
    LIVE(1),
    ANSWER_EVERYTHING, /* what comes then must answer a NOOP, too */
    PASS(200000),
    UNTIL_DONE("k", NONE),
    ACCEPTED(2),
};

/* A connection that nobody uses is closed, and the planner forgets who used it. */
static const struct row t_idle_ones_are_collected[] = {
    START(3, 4, 4, .idle_s = 2),
    ASK(0, "k0"),
    ANSWER("k0"),
    ASK(1, "k1"),
    ANSWER("k1"),
    ASK(2, "k2"),
    ANSWER("k2"),
    LIVE(3),
    BLOCKS(3),
    PASS(1900000),
    LIVE(3),
    PASS(300000),
    LIVE(0),
    BLOCKS(0),
    POOL(2, IDLE, 0),
    NOTHING_LEFT_TO_DO,
    ASK(2, "again"),
    ANSWER("again"),
    UNTIL_DONE("again", NONE),
};

/* A server whose connections all wait unusually long, and of which another one was tried, gets no
   further one of the same user for a while; another user may try one too, but two users do not try
   at a time. */
static const struct row t_stuck[] = {
    START(3, 8, 1),
    TRY_IN_VAIN,
    ASK(0, "a"),
    SETTLE,
    IS_SENT("a", "u0"),
    PASS(60000),
    ASK(0, "b"),
    PASS(60000),
    ACCEPTED(1),
    IGNORE_LOGINS, /* so that one stays under way */
    ASK(1, "c"),
    SETTLE,
    ASK(2, "d"),
    PASS(60000),
    ACCEPTED(2),
    ANSWER_THE_LAST,
    ANSWER_EVERYTHING,
    PASS(60000),
    IS_DONE("c", NONE),
    IS_DONE("d", NONE),
    ANSWER("a"),
    PASS(60000),
    IS_DONE("a", NONE),
    IS_DONE("b", NONE),
};

/* While the server is out nothing moves and the quotas stay; then all is as it was. */
static const struct row t_the_breaker_freezes[] = {
    START_WITH_ONE(2, 4),
    ASK(0, "busy"),
    PASS(30000),
    KEEP_QUOTA(0),
    STOP_SERVER,
    ASK(1, "refused"),
    PASS(150000), /* the next connect waits a little, at random */
    UNTIL_DONE("refused", DOWN),
    FROZEN(true),
    PASS(500000),
    QUOTA_IS_KEPT(0),
    POOL(0, MOVES, 0),
    POOL(1, MOVES, 0),
    START_SERVER,
    ANSWER_EVERYTHING,
    PASS(200000),
    MAY_SEND,
    PASS(10100000), /* the ramp is over after 10 s without a failure */
    ASK(1, "k"),
    PASS(50000),
    IS_DONE("k", NONE),
    FROZEN(false),
};

/* The server is back but does not let in the user who asks: the others need not wait. */
static const struct row t_a_refused_probe_is_an_answer[] = {
    START_WITH_ONE(2, 4),
    STOP_SERVER,
    ASK(0, "down"),
    PASS(150000),
    UPSTREAM(BREAKER_OPENS, 1),
    REFUSE("u0"),
    START_SERVER,
    PASS(200000),
    MAY_SEND,
    ASK(0, "denied"),
    SETTLE,
    IS_DONE("denied", DENIED),
    ANSWER_EVERYTHING,
    ASK(1, "k"),
    PASS(100000),
    IS_DONE("k", NONE),
    BREAKER_LIVE(1),
};

/* clang-format on */

static void run_case(void **state)
{
    const struct cases_case *in = *state;
    static struct play play;
    memset(&play, 0, sizeof play);
    CASES_PLAY(in, &play);
    crowd_fini(&play.c);
    cases_over();
}

/* The waits between attempts grow up to a minute, with full jitter. (A function: each round's bound
   depends on the round, and the longest wait of all counts.) */
static void t_refused_logins_back_off(void **state)
{
    (void)state;
    struct crowd c;
    struct note note;
    crowd_init(&c, 1, 4);
    strcpy(c.solo.fake.refused, "u0");
    crowd_start(&c, 1, 2);
    uint64_t longest_us = 0;
    for (uint32_t i = 0; i < 24; i++) {
        crowd_ask(&c, 0, &note, "k");
        BENCH_UNTIL(&c.solo.bench, note.done == 1);
        assert_int_equal(note.result.fault, HG_FAULT_DENIED);
        assert_int_equal(c.solo.fake.accepted, i + 1);
        struct hg_pool *pool = crowd_pool(&c, 0, 0);
        uint64_t wait_us = pool->denied_until_us - crowd_now_us();
        assert_true(wait_us <= (i < 6 ? 1000000u << i : 60000000u));
        longest_us = wait_us > longest_us ? wait_us : longest_us;
        pool->denied_until_us = crowd_now_us();
        fake_hang_up(&c.solo.fake, 0);
    }
    assert_true(longest_us > 8000000);
    crowd_fini(&c);
}

/* More users than the server takes connections: they take turns on what is up, as if that were all
   that the pool may have. */
static void t_turns_on_what_the_server_takes(void **state)
{
    (void)state;
    struct crowd c;
    struct note notes[4];
    crowd_init(&c, 1, 4);
    c.solo.conf.times.queue_timeout_ms = 60000;
    c.solo.fake.automatic = true;
    c.solo.fake.most = 1;
    crowd_start(&c, 4, 8);
    for (int round = 0; round < 6; round++) {
        for (uint32_t user = 0; user < 4; user++)
            crowd_ask(&c, user, &notes[user], "k");
        crowd_pass(&c, 300000);
        for (uint32_t user = 0; user < 4; user++) {
            assert_int_equal(notes[user].done, 1);
            assert_int_equal(notes[user].result.fault, HG_FAULT_NONE);
        }
    }
    assert_int_equal(hg_server_connect_target(&c.solo.shared->servers[0]), 1);
    assert_int_equal(solo_stat(&c.solo, HG_UPSTREAM_REFUSED_DOWN), 0);
    assert_int_equal(solo_stat(&c.solo, HG_UPSTREAM_BREAKER_OPENS), 0);
    assert_int_equal(solo_stat(&c.solo, HG_UPSTREAM_CONNECTIONS), 1);
    crowd_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(run_case, t_moves_by_logging_in_anew),
        CASE(run_case, t_is_stolen_at_once),
        CASE(run_case, t_moves_only_when_empty),
        CASE(run_case, t_a_drain_that_takes_too_long_is_given_back),
        CASE(run_case, t_bound_to_a_connection_that_moves),
        CASE(run_case, t_a_refused_login_hurts_its_own_only),
        CASE(run_case, t_another_password),
        CASE(run_case, t_refused_with_a_connection_left),
        CASE(run_case, t_refused_ones_are_passed_by),
        CASE(run_case, t_nothing_moves_for_who_has_left),
        cmocka_unit_test(t_refused_logins_back_off),
        cmocka_unit_test(t_turns_on_what_the_server_takes),
        CASE(run_case, t_no_second_login),
        CASE(run_case, t_a_login_takes_too_long),
        CASE(run_case, t_idle_ones_are_collected),
        CASE(run_case, t_stuck),
        CASE(run_case, t_the_breaker_freezes),
        CASE(run_case, t_a_refused_probe_is_an_answer),
    };
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("domain", tests, NULL, NULL);
}
