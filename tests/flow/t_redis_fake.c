// t_redis_fake - the redis store before a server that answers in pieces, out of turn, or nonsense
// SPDX-License-Identifier: BSD-3-Clause
#include "redisscene.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

/* --- a server in the hands of the test: it answers logins itself --- */

struct player {
    int listener, fd; /* the newest connection, or -1 */
    char address[32];
    int accepted, ended; /* connections, ever */
    int asked;           /* commands that wait for the test to answer */
    char last[64];       /* name of the newest of them */
    const char *login;   /* what is answered to each step of a login */
    uint8_t in[1 << 16];
    size_t have;
};

static struct player player;
static struct scene s;

static void player_open(void)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof in;
    memset(&player, 0, sizeof player);
    player.fd = -1;
    player.login = "+OK\r\n";
    player.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(player.listener, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(player.listener, 16), 0);
    assert_int_equal(getsockname(player.listener, (struct sockaddr *)&in, &len), 0);
    snprintf(player.address, sizeof player.address, "127.0.0.1:%u", ntohs(in.sin_port));
}

static void say(const char *bytes, size_t len)
{
    if (len > 0)
        assert_int_equal(send(player.fd, bytes, len, MSG_NOSIGNAL), len);
}

#define SAY(literal) say(literal, sizeof(literal) - 1)

/* The first command in player.in: its length and name; 0: it is not whole. */
static size_t first_command(char *name, size_t room)
{
    const char *at = (const char *)player.in, *end = at + player.have;
    const char *line = memchr(at, '\n', player.have);
    if (line == NULL)
        return 0;
    long parts = strtol(at + 1, NULL, 10);
    at = line + 1;
    for (long i = 0; i < parts; i++) {
        line = memchr(at, '\n', (size_t)(end - at));
        if (line == NULL)
            return 0;
        long len = strtol(at + 1, NULL, 10);
        at = line + 1;
        if (at + len + 2 > end)
            return 0;
        if (i == 0)
            snprintf(name, room, "%.*s", (int)len, at);
        at += len + 2;
    }
    return (size_t)((const uint8_t *)at - player.in);
}

static void player_pump(void)
{
    int fd = accept4(player.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        if (player.fd >= 0)
            close(player.fd);
        player.fd = fd;
        player.have = 0;
        player.asked = 0;
        player.accepted++;
    }
    if (player.fd < 0)
        return;
    ssize_t n = recv(player.fd, player.in + player.have, sizeof player.in - player.have, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        close(player.fd);
        player.fd = -1;
        player.ended++;
        return;
    }
    if (n > 0)
        player.have += (size_t)n;
    char name[64];
    size_t len;
    while ((len = first_command(name, sizeof name)) > 0) {
        memmove(player.in, player.in + len, player.have - len);
        player.have -= len;
        if (strcmp(name, "SCRIPT") == 0 || strcmp(name, "PING") == 0) {
            say(player.login, strlen(player.login));
            continue;
        }
        snprintf(player.last, sizeof player.last, "%s", name);
        player.asked++;
    }
}

#define UNTIL(condition) BENCH_UNTIL(&s.bench, (player_pump(), condition))

static void begin_scene(void)
{
    player_open();
    scene_init(&s, player.address);
    s.conf.max_reply_bytes = 65536;
    s.conf.pool_max_connections = 1; /* the player plays one */
    s.conf.times.backend_timeout_ms = 2000;
    scene_start(&s);
}

static void end_scene(void)
{
    scene_fini(&s);
    close(player.listener);
    if (player.fd >= 0)
        close(player.fd);
}

static void ask(struct note *note, enum hg_op op, uint64_t cas)
{
    int before = player.asked;
    note_ready(&s, note, op, "k");
    note->call.cas = cas;
    (void)note_submit(note, &s.rig);
    UNTIL(player.asked == before + 1);
}

/* --- pieces --- */

/* Replies of all kinds to a batch, cut at every byte. */
static void t_in_pieces(void **state)
{
    (void)state;
    static const char replies[] = "$15\r\n\0\0\0\7\0\0\0\0\0\0\0\5abc\r\n"
                                  "$-1\r\n"
                                  "+OK\r\n"
                                  "$20\r\n18446744073709551615\r\n"
                                  ":-4\r\n"
                                  "-ERR something that is longer than the beginning of a reply\r\n"
                                  ":1\r\n"
                                  "$8\r\n\0\0\0\0\0\0\0\11\r\n"
                                  ":0\r\n"
                                  "$40\r\n\0\0\0\1\0\0\0\0\0\0\0\6a value that takes 28 bytes.\r\n";
    static const struct {
        enum hg_op op;
        uint64_t cas;
        uint16_t status;
    } asked[] = {
        {HG_OP_GET, 0, 0},
        {HG_OP_GET, 0, HG_STATUS_KEY_ENOENT},
        {HG_OP_SET, 0, 0},
        {HG_OP_INCREMENT, 0, 0},
        {HG_OP_DECREMENT, 0, HG_STATUS_DELTA_BADVAL},
        {HG_OP_GET, 0, HG_STATUS_EINTERNAL},
        {HG_OP_DELETE, 0, 0},
        {HG_OP_TOUCH, 0, 0},
        {HG_OP_SET, 5, 0},
        {HG_OP_GAT, 0, 0},
    };
    enum { COUNT = HG_COUNT_OF(asked) };
    struct note notes[COUNT];
    begin_scene();
    for (size_t split = 0; split < sizeof replies; split++) {
        for (size_t i = 0; i < COUNT; i++) {
            note_ready(&s, &notes[i], asked[i].op, "k");
            notes[i].call.cas = asked[i].cas;
            (void)note_submit(&notes[i], &s.rig);
        }
        UNTIL(player.asked == COUNT);
        player.asked = 0;
        say(replies, split);
        /* So that the pieces are read one after the other. */
        bench_turn(&s.bench);
        bench_turn(&s.bench);
        say(replies + split, sizeof replies - 1 - split);
        UNTIL(notes[COUNT - 1].done == 1);
        for (size_t i = 0; i < COUNT; i++) {
            assert_int_equal(notes[i].done, 1);
            assert_int_equal(notes[i].result.fault, HG_FAULT_NONE);
            assert_int_equal(notes[i].result.status, asked[i].status);
        }
        assert_string_equal(notes[0].value, "abc");
        assert_int_equal(notes[0].result.item_flags, 7);
        assert_int_equal(notes[0].result.cas, 5);
        assert_true(notes[2].result.cas != 0);
        assert_true(notes[3].result.counter == UINT64_MAX);
        assert_non_null(strstr(notes[5].value, "something that is longer"));
        assert_int_equal(notes[7].result.cas, 9);
        assert_string_equal(notes[9].value, "a value that takes 28 bytes.");
    }
    assert_int_equal(player.accepted, 1);
    assert_int_equal(rig_stat(s.shared, 0, HG_UPSTREAM_BAD_REPLIES), 0);
    end_scene();
}

/* --- nonsense --- */

/* The answer costs the connection, and the call that it was for; the next one is served. */
static void expect_closed(enum hg_op op, uint64_t cas, const char *bytes, size_t len)
{
    struct note note;
    uint64_t bad = rig_stat(s.shared, 0, HG_UPSTREAM_BAD_REPLIES);
    int ended = player.ended;
    /* Until it is connected again. */
    uint64_t deadline = bench_deadline();
    do {
        assert_true(hg_now_us() < deadline);
        bench_turn(&s.bench);
        player_pump();
        note_ready(&s, &note, op, "k");
        note.call.cas = cas;
        int before = player.asked;
        (void)note_submit(&note, &s.rig);
        UNTIL(note.done == 1 || player.asked > before);
    } while (note.done == 1);
    player.asked = 0;
    say(bytes, len);
    UNTIL(note.done == 1 && player.ended == ended + 1);
    if (note.result.fault != HG_FAULT_LOST)
        fail_msg("\"%.*s\" for op %d: fault %d, status %#x", (int)len, bytes, op, note.result.fault,
                 note.result.status);
    assert_int_equal(rig_stat(s.shared, 0, HG_UPSTREAM_BAD_REPLIES), bad + 1);
}

#define EXPECT_CLOSED(op, cas, literal) expect_closed(op, cas, literal, sizeof(literal) - 1)

static void t_garbage(void **state)
{
    (void)state;
    begin_scene();
    EXPECT_CLOSED(HG_OP_GET, 0, "HTTP/1.1 400 Bad Request\r\n");
    EXPECT_CLOSED(HG_OP_GET, 0, "\x81\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    EXPECT_CLOSED(HG_OP_GET, 0, "$5\r\nabcdefg\r\n");
    EXPECT_CLOSED(HG_OP_GET, 0, "$-7\r\n");
    EXPECT_CLOSED(HG_OP_GET, 0, "$99999999999999999999999999\r\n");
    EXPECT_CLOSED(HG_OP_GET, 0, "$70000\r\n");
    EXPECT_CLOSED(HG_OP_GET, 0,
                  "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n");
    EXPECT_CLOSED(HG_OP_GET, 0, "*2147483647\r\n");
    EXPECT_CLOSED(HG_OP_GET, 0, ":12x\r\n");
    EXPECT_CLOSED(HG_OP_SET, 0, "+OK\n");
    EXPECT_CLOSED(HG_OP_SET, 0, "\r\n");
    end_scene();
}

/* More than a reply may have, of a line, an array, and a string in an array. */
static void t_endless(void **state)
{
    (void)state;
    static const char *const heads[] = {"-", "*9999\r\n", "*1\r\n$9223372036854775807\r\n"};
    static const char *const rests[] = {"ERR again and again ", "$1\r\nx\r\n", "more "};
    char *bytes = malloc(80000);
    begin_scene();
    for (size_t i = 0; i < HG_COUNT_OF(heads); i++) {
        size_t len = (size_t)sprintf(bytes, "%s", heads[i]);
        while (len < 70000)
            len += (size_t)sprintf(bytes + len, "%s", rests[i]);
        expect_closed(HG_OP_GET, 0, bytes, len);
    }
    end_scene();
    free(bytes);
}

static void t_wrong_kind(void **state)
{
    (void)state;
    begin_scene();
    EXPECT_CLOSED(HG_OP_GET, 0, ":1\r\n");
    EXPECT_CLOSED(HG_OP_GET, 0, "+OK\r\n");
    EXPECT_CLOSED(HG_OP_GET, 0, "*1\r\n$20\r\n01234567890123456789\r\n");
    EXPECT_CLOSED(HG_OP_SET, 0, "$2\r\nOK\r\n");
    EXPECT_CLOSED(HG_OP_SET, 0, "$-1\r\n");
    EXPECT_CLOSED(HG_OP_ADD, 0, ":0\r\n");
    EXPECT_CLOSED(HG_OP_DELETE, 0, ":2\r\n");
    EXPECT_CLOSED(HG_OP_DELETE, 0, "+OK\r\n");
    EXPECT_CLOSED(HG_OP_SET, 5, ":1\r\n");
    EXPECT_CLOSED(HG_OP_SET, 5, ":-7\r\n");
    EXPECT_CLOSED(HG_OP_SET, 5, "$1\r\n0\r\n");
    EXPECT_CLOSED(HG_OP_APPEND, 0, ":4294967296\r\n");
    EXPECT_CLOSED(HG_OP_INCREMENT, 0, ":5\r\n");
    EXPECT_CLOSED(HG_OP_INCREMENT, 0, "$0\r\n\r\n");
    EXPECT_CLOSED(HG_OP_INCREMENT, 0, "$2\r\n-1\r\n");
    EXPECT_CLOSED(HG_OP_INCREMENT, 0, "$20\r\n18446744073709551616\r\n");
    EXPECT_CLOSED(HG_OP_TOUCH, 0, "$7\r\n1234567\r\n");
    EXPECT_CLOSED(HG_OP_TOUCH, 0, "*0\r\n");
    end_scene();
}

static void t_nobody_asked(void **state)
{
    (void)state;
    struct note note;
    begin_scene();
    ask(&note, HG_OP_GET, 0);
    SAY("$-1\r\n+OK\r\n");
    UNTIL(note.done == 1 && player.ended == 1);
    assert_int_equal(note.result.status, HG_STATUS_KEY_ENOENT);
    assert_int_equal(rig_stat(s.shared, 0, HG_UPSTREAM_BAD_REPLIES), 1);
    player.asked = 0;
    ask(&note, HG_OP_GET, 0);
    SAY("$-1\r\n");
    UNTIL(note.done == 1);
    assert_int_equal(note.result.fault, HG_FAULT_NONE);
    SAY("*2\r\n$7\r\nmessage\r\n$1\r\nx\r\n");
    UNTIL(player.ended == 2);
    end_scene();
}

/* A reply that comes after its call's time is dropped, whatever its kind. */
static void t_late(void **state)
{
    (void)state;
    static const char *const late[] = {"$-1\r\n",    "+OK\r\n",         ":-1\r\n",
                                       "-ERR x\r\n", "-NOSCRIPT x\r\n", "$3\r\n123\r\n"};
    static const enum hg_op ops[] = {HG_OP_GET, HG_OP_SET,    HG_OP_APPEND,
                                     HG_OP_GET, HG_OP_APPEND, HG_OP_INCREMENT};
    struct note note, next;
    begin_scene();
    for (size_t i = 0; i < HG_COUNT_OF(late); i++) {
        ask(&note, ops[i], 0);
        s.store->ops->cancel(s.store, &note.call);
        ask(&next, HG_OP_GET, 0);
        player.asked = 0;
        say(late[i], strlen(late[i]));
        SAY("$14\r\n\0\0\0\0\0\0\0\0\0\0\0\1ok\r\n");
        UNTIL(next.done == 1);
        assert_string_equal(next.value, "ok");
        assert_int_equal(note.done, 0);
    }
    assert_int_equal(player.accepted, 1);
    end_scene();
}

/* --- errors --- */

static void t_noscript_without_end(void **state)
{
    (void)state;
    struct note note;
    begin_scene();
    ask(&note, HG_OP_INCREMENT, 0);
    assert_string_equal(player.last, "EVALSHA");
    for (int i = 0; i <= HG_REDIS_AGAIN_MAX; i++) {
        assert_int_equal(note.done, 0);
        assert_int_equal(player.asked, 1);
        player.asked = 0;
        SAY("-NOSCRIPT No matching script. Please use EVAL.\r\n");
        UNTIL(note.done == 1 || player.asked == 1);
        if (note.done == 0)
            assert_string_equal(player.last, "EVAL");
    }
    assert_int_equal(note.done, 1);
    assert_int_equal(note.result.status, HG_STATUS_ETMPFAIL);
    assert_non_null(strstr(note.value, "NOSCRIPT"));
    assert_int_equal(player.accepted, 1);
    end_scene();
}

static void t_part_of_a_cluster(void **state)
{
    (void)state;
    struct note note;
    begin_scene();
    ask(&note, HG_OP_GET, 0);
    SAY("-MOVED 3999 127.0.0.1:6381\r\n");
    UNTIL(note.done == 1);
    assert_int_equal(note.result.status, HG_STATUS_EINTERNAL);
    assert_non_null(strstr(note.value, "redis-cluster"));
    end_scene();
}

/* A server that reads its data in: out until it is done, tried by logins only. */
static void t_loading(void **state)
{
    (void)state;
    struct note note, next;
    begin_scene();
    ask(&note, HG_OP_GET, 0);
    ask(&next, HG_OP_GET, 0);
    player.asked = 0;
    player.login = "-LOADING Redis is loading the dataset in memory\r\n";
    SAY("-LOADING Redis is loading the dataset in memory\r\n$-1\r\n");
    UNTIL(note.done == 1 && next.done == 1);
    assert_int_equal(note.result.status, HG_STATUS_ETMPFAIL);
    assert_non_null(strstr(note.value, "reading its data"));
    assert_int_equal(next.result.status, HG_STATUS_KEY_ENOENT);
    assert_false(hg_server_may_send(&s.shared->servers[0]));
    note_ready(&s, &note, HG_OP_GET, "k");
    (void)note_submit(&note, &s.rig);
    assert_int_equal(note.result.fault, HG_FAULT_DOWN);
    UNTIL(rig_stat(s.shared, 0, HG_UPSTREAM_CONNECT_FAILURES) >= 2);
    assert_int_equal(player.asked, 0);
    player.login = "+OK\r\n";
    UNTIL(hg_server_may_send(&s.shared->servers[0]));
    ask(&note, HG_OP_GET, 0);
    SAY("$-1\r\n");
    UNTIL(note.done == 1);
    assert_int_equal(note.result.fault, HG_FAULT_NONE);
    assert_int_equal(rig_stat(s.shared, 0, HG_UPSTREAM_BAD_REPLIES), 0);
    end_scene();
}

/* --- ranges --- */

struct walk {
    struct hg_range_call range;
    int items, done;
    struct hg_range_end end;
    char text[128];
};

static bool on_item(struct hg_range_call *range, const struct hg_range_item *item)
{
    (void)item;
    HG_CONTAINER_OF(range, struct walk, range)->items++;
    return true;
}

static void on_range_done(struct hg_range_call *range, const struct hg_range_end *end)
{
    struct walk *walk = HG_CONTAINER_OF(range, struct walk, range);
    walk->done++;
    walk->end = *end;
    snprintf(walk->text, sizeof walk->text, "%.*s", (int)end->text.len,
             end->text.len > 0 ? (const char *)end->text.at : "");
}

static void ask_range(struct walk *walk)
{
    int before = player.asked;
    *walk = (struct walk){.range = {.from = HG_SPAN_LIT("t\0"),
                                    .to = HG_SPAN_LIT("t\1"),
                                    .max_items = 10,
                                    .on_item = on_item,
                                    .on_done = on_range_done}};
    hg_loop_stamp(&s.rig.loop);
    s.store->ops->range(s.store, &walk->range);
    UNTIL(player.asked == before + 1);
}

static void t_ranges(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        enum hg_fault fault;
        int items;
    } replies[] = {
#define REPLY(literal, fault, items) {literal, sizeof(literal) - 1, fault, items}
        REPLY("$5\r\n0\0\0\0\0\r\n", HG_FAULT_NONE, 0),
        REPLY("$27\r\n1\0\0\0\1a\0\0\0\1a\0\0\0\14"
              "123456789012\r\n",
              HG_FAULT_NONE, 1),
        /* An item that is none is passed over. */
        REPLY("$17\r\n0\0\0\0\1a\0\0\0\1a\0\0\0\2xx\r\n", HG_FAULT_NONE, 0),
        REPLY("-WRONGTYPE x\r\n", HG_FAULT_NOT_SUPPORTED, 0),
        REPLY("-BUSY x\r\n", HG_FAULT_DOWN, 0),
        REPLY("-NOPERM x\r\n", HG_FAULT_INTERNAL, 0),
        REPLY("$0\r\n\r\n", HG_FAULT_LOST, 0),
        REPLY("$5\r\n2\0\0\0\0\r\n", HG_FAULT_LOST, 0),
        REPLY("$5\r\n1\0\0\0\0\r\n", HG_FAULT_LOST, 0),
        REPLY("$5\r\n0\0\0\0\1\r\n", HG_FAULT_LOST, 0),
        REPLY("$6\r\n0\0\0\0\0x\r\n", HG_FAULT_LOST, 0),
        REPLY("$9\r\n0\0\0\0\0\377\377\377\377\r\n", HG_FAULT_LOST, 0),
        REPLY("*1\r\n$1\r\n0\r\n", HG_FAULT_LOST, 0),
        REPLY("$-1\r\n", HG_FAULT_LOST, 0),
    };
    struct walk walk;
    for (size_t i = 0; i < HG_COUNT_OF(replies); i++) {
        begin_scene();
        ask_range(&walk);
        say(replies[i].bytes, replies[i].len);
        UNTIL(walk.done == 1);
        if (walk.end.fault != replies[i].fault)
            fail_msg("reply %zu: fault %d %s", i, walk.end.fault, walk.text);
        assert_int_equal(walk.items, replies[i].items);
        assert_int_equal(rig_stat(s.shared, 0, HG_UPSTREAM_BAD_REPLIES),
                         replies[i].fault == HG_FAULT_LOST);
        end_scene();
    }
    /* One whose asker goes. */
    begin_scene();
    ask_range(&walk);
    s.store->ops->cancel_range(s.store, &walk.range);
    SAY("$5\r\n0\0\0\0\0\r\n");
    struct note note;
    ask(&note, HG_OP_GET, 0);
    SAY("$-1\r\n");
    UNTIL(note.done == 1);
    assert_int_equal(walk.done, 0);
    assert_int_equal(player.accepted, 1);
    end_scene();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_in_pieces),
        cmocka_unit_test(t_garbage),
        cmocka_unit_test(t_endless),
        cmocka_unit_test(t_wrong_kind),
        cmocka_unit_test(t_nobody_asked),
        cmocka_unit_test(t_late),
        cmocka_unit_test(t_noscript_without_end),
        cmocka_unit_test(t_part_of_a_cluster),
        cmocka_unit_test(t_loading),
        cmocka_unit_test(t_ranges),
    };
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("redis_fake", tests, NULL, NULL);
}
