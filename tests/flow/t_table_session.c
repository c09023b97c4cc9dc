// t_table_session - sessions of queries: whose they are, in use, over, too many, forgotten
// SPDX-License-Identifier: BSD-3-Clause
//
// A case is a table of rows: what clients ask, how time passes, and what they hear. Sessions are
// A, B and C, clients US and OTHER. The table has 10 rows, of which the column n is the number.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "front/table_in.h"
#include "tablescene.h"

#define UNKNOWN HG_STATUS_KEY_ENOENT

enum { A, B, C, SESSIONS };
enum { US, OTHER };

struct play {
    struct tablescene t;
    struct client other;
    bool has_other;
    uint64_t ids[SESSIONS];
    uint32_t opaque;    /* of the newest request */
    uint32_t sent;      /* of the newest SEND_NEXT */
    table_reply *reply; /* the newest */
};

struct row {
    void (*act)(struct play *play, const struct row *row);
    int line;
    unsigned who, session;
    uint64_t n; /* rows, microseconds, or how many */
    unsigned at;
    enum hg_op op;
    uint16_t status;
    const char *text;
    unsigned limit, batch;
    const char *from, *to;
    bool reverse, on;
    uint64_t units; /* the bucket's credits; 0: no limit */
    uint64_t (*number)(struct play *play);
};

/* ---- what rows do ---- */

static struct client *client_of(struct play *play, unsigned who)
{
    return who == US ? &play->t.s.client : &play->other;
}

static struct hg_bucket *usual_bucket(struct play *play)
{
    return stage_find(&play->t.s.stage, "default");
}

/* Of as many workers; `text`: another bucket, into which the clients come if it has a limit. */
static void start(struct play *play, const struct row *row)
{
    struct tablescene *t = &play->t;
    table_init(t, (unsigned)row->n);
    if (row->text != NULL)
        stage_bucket(&t->s.stage, row->text, 0, row->units > 0 ? row->units : HG_UNITS_UNLIMITED);
    if (row->units > 0)
        t->s.stage.anonymous_bucket = row->text;
    table_open(t);
    table_fill(t, "t", "r", 10);
    t->parts_at_once = true;
}

static void connect_other(struct play *play, const struct row *row)
{
    stage_connect_tcp(&play->t.s.stage, (unsigned)row->n, &play->other);
    play->has_other = true;
}

static void use_store_of(struct play *play, const struct row *row)
{
    struct stage *stage = &play->t.s.stage;
    struct hg_store *store =
        hg_worker_store(&stage->workers[row->n], &stage->upstreams[0].upstream);
    table_use(&play->t, HG_CONTAINER_OF(store, struct fakestore, store));
}

static void select_bucket(struct play *play, const struct row *row)
{
    struct client *client = client_of(play, row->who);
    client_ask(client, HG_OPCODE_SELECT_BUCKET, row->text, ++play->opaque);
    stage_expect(&play->t.s.stage, client, HG_OPCODE_SELECT_BUCKET, 0, play->opaque);
}

static void query(struct play *play, const struct row *row)
{
    table_ask(&play->t, HG_OP_TABLE_QUERY_START, "t", "",
              body_query(row->from, row->to, row->limit, row->batch, row->reverse), ++play->opaque);
}

static void query_finds(struct play *play, const struct row *row)
{
    query(play, row);
    play->reply = table_expect(&play->t, client_of(play, US), play->opaque);
    assert_int_equal(play->reply->n_rows, row->n);
}

static void query_is_refused(struct play *play, const struct row *row)
{
    query(play, row);
    assert_non_null(strstr(table_refused(&play->t, client_of(play, US), HG_OP_TABLE_QUERY_START,
                                         row->status, play->opaque),
                           row->text));
}

static void keep_session(struct play *play, const struct row *row)
{
    assert_true(play->reply->more);
    assert_true(play->reply->session != 0);
    play->ids[row->session] = play->reply->session;
}

/* A query whose first page has so many rows. */
static void open_session(struct play *play, const struct row *row)
{
    query_finds(play, &(struct row){.batch = (unsigned)row->n, .n = row->n});
    keep_session(play, row);
}

static void open_many(struct play *play, const struct row *row)
{
    for (uint64_t i = 0; i < row->n; i++)
        open_session(play, &(struct row){.n = 1, .session = A});
}

static void ask(struct play *play, const struct row *row, uint64_t id)
{
    struct client *client = client_of(play, row->who);
    struct hg_span body =
        hg_op_rows[row->op].api == HG_API_TABLE ? body_session(id) : body_scan_session(id);
    table_add(client, row->op, "t", "", body, ++play->opaque);
    client_send(client);
}

static void send_next(struct play *play, const struct row *row)
{
    ask(play, row, play->ids[row->session]);
    play->sent = play->opaque;
}

static void next_page(struct play *play, const struct row *row)
{
    ask(play, row, play->ids[row->session]);
    play->reply = table_expect(&play->t, client_of(play, row->who), play->opaque);
    assert_int_equal(play->reply->n_rows, row->n);
}

static void end_session(struct play *play, const struct row *row)
{
    ask(play, row, play->ids[row->session]);
    table_expect(&play->t, client_of(play, row->who), play->opaque);
}

/* `n` is added to the session's number. */
static void is_refused(struct play *play, const struct row *row)
{
    ask(play, row, play->ids[row->session] + row->n);
    table_refused(&play->t, client_of(play, row->who), row->op, row->status, play->opaque);
}

static void sent_is_answered(struct play *play, const struct row *row)
{
    (void)row;
    table_expect(&play->t, client_of(play, US), play->sent);
}

static void sent_is_refused(struct play *play, const struct row *row)
{
    table_refused(&play->t, client_of(play, US), row->op, row->status, play->sent);
}

static void hears_nothing(struct play *play, const struct row *row)
{
    stage_expect_nothing(&play->t.s.stage, client_of(play, row->who));
}

static void run(struct play *play, const struct row *row)
{
    (void)row;
    stage_run(&play->t.s.stage);
}

static void reset_client(struct play *play, const struct row *row)
{
    table_reset(&play->t, client_of(play, row->who));
}

static void parts_at_once(struct play *play, const struct row *row)
{
    play->t.parts_at_once = row->on;
}

static void answer_part(struct play *play, const struct row *row)
{
    (void)row;
    table_part(&play->t);
}

static void spoil_row(struct play *play, const struct row *row)
{
    (void)row;
    shelf_put(&play->t.shelf, (char[256]){"t\0r0045"}, HG_ROWDOC_FLAGS,
              HG_SPAN_LIT("\xf7HGRT\xff"));
}

static void pass(struct play *play, const struct row *row)
{
    (void)play;
    stage_advance(row->n);
}

static void turn(struct play *play, const struct row *row)
{
    (void)row;
    stage_turn(&play->t.s.stage);
}

static void timer(struct play *play, const struct row *row)
{
    (void)row;
    stage_timer(&play->t.s.stage);
}

static void tick(struct play *play, const struct row *row)
{
    (void)row;
    stage_tick(&play->t.s.stage);
}

static void set_idle_s(struct play *play, const struct row *row)
{
    atomic_store(&usual_bucket(play)->table_session_idle_s, (uint32_t)row->n);
}

static void set_most(struct play *play, const struct row *row)
{
    atomic_store(&usual_bucket(play)->table_sessions, (uint32_t)row->n);
}

/* ---- what rows expect ---- */

static void item_is(struct play *play, const struct row *row)
{
    assert_true(row->at < play->reply->n_rows);
    assert_int_equal(entity_int(play->reply->rows[row->at]->entity, "n"), row->n);
}

static void is_the_end(struct play *play, const struct row *row)
{
    (void)row;
    assert_false(play->reply->more);
    assert_int_equal(play->reply->session, 0);
}

static void session_is(struct play *play, const struct row *row)
{
    assert_int_equal(play->reply->session, play->ids[row->session]);
}

static void sessions_differ(struct play *play, const struct row *row)
{
    assert_true(play->ids[row->session] != play->ids[row->at]);
}

static uint64_t open_in(struct tablescene *t, const char *bucket)
{
    struct hg_bucket *of = stage_find(&t->s.stage, bucket);
    uint64_t sum = 0;
    for (unsigned w = 0; w < t->s.stage.worker_count; w++)
        sum += hg_counter_get(&of->lanes[w].table_sessions);
    assert_int_equal(sum, of->cursor_count);
    return sum;
}

static uint64_t open_now(struct play *play)
{
    return open_in(&play->t, "default");
}

static uint64_t expired(struct play *play)
{
    return hg_counter_get(&table_lane(&play->t)->table_sessions_expired);
}

static uint64_t ranges(struct play *play)
{
    return play->t.range_count;
}

static uint64_t range_cancels(struct play *play)
{
    return play->t.range_cancels;
}

static void number_is(struct play *play, const struct row *row)
{
    uint64_t got = row->number(play);
    if (got != row->n)
        fail_msg("%s is %llu, not %llu", row->text, (unsigned long long)got,
                 (unsigned long long)row->n);
}

/* ---- rows ---- */

#define ROW(act_, ...)                                                                             \
    {                                                                                              \
        .act = act_, .line = __LINE__, __VA_ARGS__                                                 \
    }
#define START(workers_, ...)   ROW(start, .n = workers_, __VA_ARGS__)
#define CONNECT_OTHER(worker_) ROW(connect_other, .n = worker_)
#define USE_STORE_OF(worker_)  ROW(use_store_of, .n = worker_)
#define SELECT(who_, bucket_)  ROW(select_bucket, .who = who_, .text = bucket_)

#define OPEN(session_, page) ROW(open_session, .session = session_, .n = page)
#define OPEN_MANY(n_)        ROW(open_many, .n = n_)
#define QUERY(found, ...)    ROW(query_finds, .n = found, __VA_ARGS__)
#define QUERY_REFUSED(status_, text_, ...)                                                         \
    ROW(query_is_refused, .status = HG_STATUS_##status_, .text = text_, __VA_ARGS__)
#define KEEP(session_)              ROW(keep_session, .session = session_)
#define OF(who_, session_, op_)     .who = who_, .session = session_, .op = HG_OP_##op_
#define NEXT(who_, session_, found) ROW(next_page, OF(who_, session_, TABLE_QUERY_NEXT), .n = found)
#define END(who_, session_)         ROW(end_session, OF(who_, session_, TABLE_QUERY_END))
#define NEXT_REFUSED(who_, session_, status_)                                                      \
    ROW(is_refused, OF(who_, session_, TABLE_QUERY_NEXT), .status = status_)
#define END_REFUSED(who_, session_, status_)                                                       \
    ROW(is_refused, OF(who_, session_, TABLE_QUERY_END), .status = status_)
/* Of the number behind the session's. */
#define END_OF_NONE_REFUSED(who_, session_)                                                        \
    ROW(is_refused, OF(who_, session_, TABLE_QUERY_END), .status = UNKNOWN, .n = 1)
#define SCAN_REFUSED(who_, session_, status_)                                                      \
    ROW(is_refused, OF(who_, session_, HBASE_SCAN_NEXT), .status = status_)
/* We ask for a page, and what comes of it is seen later. */
#define SEND_NEXT(session_) ROW(send_next, OF(US, session_, TABLE_QUERY_NEXT))
#define SENT_IS_ANSWERED    ROW(sent_is_answered)
#define SENT_IS_REFUSED(status_)                                                                   \
    ROW(sent_is_refused, .op = HG_OP_TABLE_QUERY_NEXT, .status = status_)
#define HEARS_NOTHING(who_) ROW(hears_nothing, .who = who_)

#define RUN           ROW(run)
#define RESET(who_)   ROW(reset_client, .who = who_)
#define PARTS_BY_HAND ROW(parts_at_once, .on = false)
#define PARTS_AT_ONCE ROW(parts_at_once, .on = true)
#define PART          ROW(answer_part)
#define SPOIL_ROW     ROW(spoil_row)
#define PASS(us)      ROW(pass, .n = us)
#define TURN          ROW(turn)
#define TIMER         ROW(timer)
#define TICK          ROW(tick)
#define SET_IDLE_S(s) ROW(set_idle_s, .n = s)
#define SET_MOST(n_)  ROW(set_most, .n = n_)

#define ITEM(at_, n_)        ROW(item_is, .at = at_, .n = n_)
#define NO_MORE              ROW(is_the_end)
#define SESSION_IS(session_) ROW(session_is, .session = session_)
#define DIFFER(one, two)     ROW(sessions_differ, .session = one, .at = two)
#define NUMBER(number_, n_)  ROW(number_is, .number = number_, .n = n_, .text = #number_)
#define OPEN_NOW(n_)         NUMBER(open_now, n_)
#define EXPIRED(n_)          NUMBER(expired, n_)
#define RANGES(n_)           NUMBER(ranges, n_)
#define RANGE_CANCELS(n_)    NUMBER(range_cancels, n_)

/* clang-format off */

/* ---- the life of one ---- */

static const struct row test_to_the_end[] = {
    START(1),
    OPEN(A, 4),
    NEXT(US, A, 4),
    SESSION_IS(A),
    ITEM(0, 4),
    NEXT(US, A, 2),
    NO_MORE,
    NEXT_REFUSED(US, A, UNKNOWN),
    OPEN_NOW(0),
};

/* What fits into one reply needs no session, limits included. */
static const struct row test_none_is_needed[] = {
    START(1),
    QUERY(3, .limit = 3, .batch = 5),
    NO_MORE,
    QUERY(1, .from = "r001", .to = "r001", .batch = 1),
    NO_MORE,
    OPEN_NOW(0),
};

/* The limit holds over all replies together. */
static const struct row test_limit_over_pages[] = {
    START(1),
    QUERY(4, .limit = 7, .batch = 4, .reverse = true),
    ITEM(0, 9),
    KEEP(A),
    NEXT(US, A, 3),
    ITEM(2, 3),
    NO_MORE,
};

static const struct row test_ended_by_the_client[] = {
    START(1),
    OPEN(A, 4),
    END_OF_NONE_REFUSED(US, A),
    END(US, A),
    END_REFUSED(US, A, UNKNOWN),
    NEXT_REFUSED(US, A, UNKNOWN),
    OPEN_NOW(0),
};

/* ---- whose it is ---- */

/* Any connection of the tenant, on any worker. */
static const struct row test_other_connections[] = {
    START(2),
    OPEN(A, 4),
    CONNECT_OTHER(1),
    USE_STORE_OF(1),
    NEXT(OTHER, A, 4),
    NEXT(US, A, 2),
    OPEN_NOW(0),
};

static const struct row test_not_for_others[] = {
    START(1, .text = "else"),
    OPEN(A, 4),
    SCAN_REFUSED(US, A, UNKNOWN),
    CONNECT_OTHER(0),
    SELECT(OTHER, "else"),
    NEXT_REFUSED(OTHER, A, UNKNOWN),
    END_REFUSED(OTHER, A, UNKNOWN),
    NEXT(US, A, 4),
};

static const struct row test_one_request_at_a_time[] = {
    START(1),
    CONNECT_OTHER(0),
    OPEN(A, 4),
    PARTS_BY_HAND,
    SEND_NEXT(A),
    HEARS_NOTHING(US),
    NEXT_REFUSED(OTHER, A, HG_STATUS_EBUSY),
    END_REFUSED(OTHER, A, HG_STATUS_EBUSY),
    PART,
    SENT_IS_ANSWERED,
    PARTS_AT_ONCE,
    NEXT(OTHER, A, 2), /* it goes on as if nothing had been */
};

/* ---- ends that nobody asked for ---- */

static const struct row test_client_goes_in_the_middle[] = {
    START(1),
    CONNECT_OTHER(0),
    OPEN(A, 4),
    PARTS_BY_HAND,
    SEND_NEXT(A),
    RUN,
    RANGES(1),
    RESET(US),
    RANGE_CANCELS(1),
    NEXT_REFUSED(OTHER, A, UNKNOWN),
    OPEN_NOW(0),
};

static const struct row test_an_error_ends_it[] = {
    START(1),
    OPEN(A, 4),
    SPOIL_ROW,
    NEXT_REFUSED(US, A, HG_STATUS_EINTERNAL),
    NEXT_REFUSED(US, A, UNKNOWN),
    OPEN_NOW(0),
};

static const struct row test_expiry[] = {
    START(1),
    OPEN(A, 4),
    PASS(40000000),
    TURN,
    OPEN(B, 4),
    PASS(21000000), /* the first is over; noticed when it is asked for */
    NEXT_REFUSED(US, A, UNKNOWN),
    NEXT(US, B, 4), /* the second lives on from now */
    EXPIRED(1),
    PASS(59000000),
    TIMER,
    OPEN_NOW(1),
    PASS(2000000),
    TIMER, /* nobody asks */
    OPEN_NOW(0),
    EXPIRED(2),
    SET_IDLE_S(5),
    OPEN(A, 4),
    PASS(6000000),
    NEXT_REFUSED(US, A, UNKNOWN),
};

static const struct row test_capped[] = {
    START(1),
    SET_MOST(3),
    OPEN(A, 1),
    OPEN(B, 2),
    OPEN(C, 3),
    DIFFER(A, B),
    DIFFER(B, C),
    DIFFER(A, C),
    QUERY_REFUSED(EBUSY, "table_sessions", .batch = 4),
    QUERY(10, .batch = 20), /* it needs none */
    END(US, B),
    OPEN(B, 5),
    PASS(61000000), /* those that are over make room by themselves */
    TURN,
    OPEN(A, 5),
    OPEN_NOW(1),
};

/* What is still open when the process ends is freed with it. */
static const struct row test_left_open[] = {
    START(1),
    OPEN_MANY(90), /* more than the table's first size */
    OPEN_NOW(90),
};

/* Held for credits, a request has not taken its session yet. */
static const struct row test_held[] = {
    START(1, .text = "tight", .units = 1),
    CONNECT_OTHER(0),
    OPEN(A, 4),
    SEND_NEXT(A),
    HEARS_NOTHING(US),
    END(OTHER, A), /* costs nothing and waits for nothing */
    TICK,
    SENT_IS_REFUSED(UNKNOWN),
    END_REFUSED(OTHER, A, UNKNOWN),
};

/* clang-format on */

static void run_case(void **state)
{
    const struct cases_case *in = *state;
    static struct play play;
    memset(&play, 0, sizeof play);
    CASES_PLAY(in, &play);
    if (play.has_other)
        client_close(&play.other);
    table_close(&play.t);
    cases_over();
}

/* A function: it holds the bucket beyond its deletion, and counts its references and cursors. */
static void test_bucket_is_deleted(void **state)
{
    (void)state;
    static struct play play;
    struct tablescene *t = &play.t;
    const struct row next = {OF(US, A, TABLE_QUERY_NEXT), .status = HG_STATUS_NO_BUCKET};
    start(&play, &(struct row){.n = 1});
    open_session(&play, &(struct row){.n = 4, .session = B});
    open_session(&play, &(struct row){.n = 4, .session = A});
    struct hg_bucket *bucket = hg_bucket_ref(usual_bucket(&play));
    t->parts_at_once = false;
    send_next(&play, &next);
    stage_run(&t->s.stage);
    stage_delete(&t->s.stage, "default");
    stage_publish(&t->s.stage);
    stage_run(&t->s.stage);
    stage_timer(&t->s.stage);
    assert_int_equal(bucket->cursor_count, 1); /* the busy one */
    table_part(t);
    sent_is_answered(&play, &next); /* what was under way is answered */
    assert_int_equal(bucket->cursor_count, 0);
    is_refused(&play, &next);
    client_close(client_of(&play, US));
    stage_run(&t->s.stage);
    assert_int_equal(atomic_load(&bucket->refs), 1);
    hg_bucket_unref(bucket);
    stage_connect_tcp(&t->s.stage, 0, client_of(&play, US));
    table_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(run_case, test_to_the_end),
        CASE(run_case, test_none_is_needed),
        CASE(run_case, test_limit_over_pages),
        CASE(run_case, test_ended_by_the_client),
        CASE(run_case, test_other_connections),
        CASE(run_case, test_not_for_others),
        CASE(run_case, test_one_request_at_a_time),
        CASE(run_case, test_client_goes_in_the_middle),
        CASE(run_case, test_an_error_ends_it),
        CASE(run_case, test_expiry),
        CASE(run_case, test_capped),
        cmocka_unit_test(test_bucket_is_deleted),
        CASE(run_case, test_left_open),
        CASE(run_case, test_held),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
