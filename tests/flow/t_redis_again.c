// t_redis_again - what a redis-server refuses or forgets: scripts, memory, roles, logins, itself
// SPDX-License-Identifier: BSD-3-Clause
#include "redisscene.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum { MANY = 200 };

/* --- scripts --- */

static void t_script_flush(void **state)
{
    (void)state;
    struct scene s;
    struct note *note;
    scene_launch(&s, NULL);
    scene_start(&s);
    uint64_t cas = put_value(&s, HG_OP_SET, "k", "1", 0).cas;
    /* Each kind of script, of which the server knows none any more. */
    scene_admin(&s, "SCRIPT FLUSH");
    struct hg_result r = put_value(&s, HG_OP_SET, "k", "2", cas);
    assert_int_equal(r.status, 0);
    assert_true(run(&s, HG_OP_GET, "k").cas == r.cas);
    scene_admin(&s, "SCRIPT FLUSH");
    assert_int_equal(put_value(&s, HG_OP_APPEND, "k", "0", 0).status, 0);
    scene_admin(&s, "SCRIPT FLUSH");
    note = begin(&s, HG_OP_INCREMENT, "k");
    note->call.delta = 7;
    assert_int_equal(finish(&s, note).counter, 27);
    scene_admin(&s, "SCRIPT FLUSH");
    r = run(&s, HG_OP_TOUCH, "k");
    assert_int_equal(r.status, 0);
    scene_admin(&s, "SCRIPT FLUSH");
    note = begin(&s, HG_OP_DELETE, "k");
    note->call.cas = r.cas;
    assert_int_equal(finish(&s, note).status, 0);
    assert_int_equal(run(&s, HG_OP_GET, "k").status, HG_STATUS_KEY_ENOENT);
    assert_int_equal(rig_stat(s.shared, 0, HG_UPSTREAM_RETRIES), 5);
    assert_int_equal(rig_stat(s.shared, 0, HG_UPSTREAM_CONNECTS), 1);
    scene_fini(&s);
}

/* Hundreds under way when the scripts go, small and large, copied and by reference: each is said
   again with the bytes it had, though its owner's are gone. */
static void t_script_flush_under_way(void **state)
{
    (void)state;
    struct scene s;
    struct note *notes = calloc(MANY, sizeof *notes);
    char expected[16];
    scene_launch(&s, NULL);
    s.conf.pool_max_bytes = 64 * 1024 * 1024;
    scene_start(&s);
    int done = 0;
    for (int i = 0; i < MANY; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        put_value(&s, HG_OP_SET, key, ">", 0);
    }
    scene_admin(&s, "SCRIPT FLUSH");
    for (int i = 0; i < MANY; i++) {
        char key[16];
        size_t len = i % 3 == 0 ? 20000 : 4;
        snprintf(key, sizeof key, "k%d", i);
        note_ready(&s, &notes[i], HG_OP_APPEND, key);
        char *bytes = malloc(len);
        memset(bytes, 'x', len);
        char number[16];
        snprintf(number, sizeof number, "%03d.", i);
        memcpy(bytes, number, 4);
        notes[i].call.value = hg_span(bytes, len);
        struct hg_blob *blob = NULL;
        if (i % 6 == 0) {
            blob = hg_blob_borrow(&s.rig.blobs, len);
            memcpy(blob->data, bytes, len);
            notes[i].call.blob = blob;
            notes[i].call.value = hg_span(blob->data, len);
        }
        assert_int_equal(note_submit(&notes[i], &s.rig), HG_SUBMIT_TAKEN);
        hg_blob_unref(blob);
        free(bytes);
        memset(notes[i].key, '?', sizeof notes[i].key);
    }
    BENCH_UNTIL(&s.bench, (done = 0, ({
                               for (int i = 0; i < MANY; i++)
                                   done += notes[i].done;
                               done == MANY;
                           })));
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(notes[i].result.fault, HG_FAULT_NONE);
        assert_int_equal(notes[i].result.status, 0);
        snprintf(expected, sizeof expected, ">%03d.", i);
        assert_string_equal(scene_admin(&s, "GETRANGE k%d 12 16", i), expected);
        assert_string_equal(scene_admin(&s, "STRLEN k%d", i), i % 3 == 0 ? "20013" : "17");
    }
    assert_true(rig_stat(s.shared, 0, HG_UPSTREAM_RETRIES) > 0);
    free(notes);
    scene_fini(&s);
}

/* One client's operations on one key, sent at once: in their order, though some are repeated. */
static void t_order_of_one_client(void **state)
{
    (void)state;
    enum { STEPS = 40 };
    struct scene s;
    struct note notes[STEPS];
    scene_launch(&s, NULL);
    scene_start(&s);
    scene_admin(&s, "FLUSHALL");
    for (int round = 0; round < 5; round++) {
        put_value(&s, HG_OP_SET, "k", "0", 0);
        scene_admin(&s, "SCRIPT FLUSH");
        int next = 0;
        struct hg_call *before = NULL;
        uint64_t deadline = bench_deadline();
        /* As a session does it: goes on until one must wait, and then from its on_room. */
        while (next < STEPS || notes[STEPS - 1].done == 0) {
            assert_true(hg_now_us() < deadline);
            bool waits = next > 0 && notes[next - 1].done == 0 &&
                         (notes[next - 1].call.place.waiting || notes[next - 1].rooms > 0);
            if (next < STEPS && !(waits && notes[next - 1].call.place.waiting)) {
                struct note *note = &notes[next];
                enum hg_op op = next % 4 == 3   ? HG_OP_GET
                                : next % 4 == 2 ? HG_OP_SET
                                                : HG_OP_INCREMENT;
                note_ready(&s, note, op, "k");
                note->call.delta = 1;
                note->call.value = op == HG_OP_SET ? HG_SPAN_LIT("100") : HG_SPAN_NONE;
                note->call.after = before != NULL && before->place.pending ? before : NULL;
                (void)note_submit(note, &s.rig);
                before = &note->call;
                next++;
            }
            if (next == STEPS || notes[next - 1].call.place.waiting)
                bench_turn(&s.bench);
        }
        for (int i = 0; i < STEPS; i++) {
            assert_int_equal(notes[i].result.status, 0);
            /* 1 2 then 100 "100", 101 102 then 100 "100" ... */
            if (i % 4 < 2)
                assert_int_equal(notes[i].result.counter, (i < 4 ? 0 : 100) + i % 4 + 1);
            if (i % 4 == 3)
                assert_string_equal(notes[i].value, "100");
            if (i > 0)
                assert_true(notes[i].order > notes[i - 1].order);
        }
    }
    scene_fini(&s);
}

/* A client that goes while one of its calls waits for another, or is being said again. */
static void t_cancelled_in_between(void **state)
{
    (void)state;
    struct scene s;
    struct note one, two, three;
    scene_launch(&s, NULL);
    scene_start(&s);
    put_value(&s, HG_OP_SET, "k", "0", 0);
    for (int way = 0; way < 3; way++) {
        scene_admin(&s, "SCRIPT FLUSH");
        note_ready(&s, &one, HG_OP_INCREMENT, "k");
        one.call.delta = 1;
        assert_int_equal(note_submit(&one, &s.rig), HG_SUBMIT_TAKEN);
        note_ready(&s, &two, HG_OP_INCREMENT, "k");
        two.call.delta = 1;
        two.call.after = &one.call;
        assert_int_equal(note_submit(&two, &s.rig), HG_SUBMIT_WAIT);
        if (way == 0) {
            s.store->ops->cancel(s.store, &two.call);
            BENCH_UNTIL(&s.bench, one.done == 1);
        } else if (way == 1) {
            s.store->ops->cancel(s.store, &one.call);
            BENCH_UNTIL(&s.bench, two.done == 1);
            assert_int_equal(one.done, 0);
        } else {
            s.store->ops->cancel(s.store, &one.call);
            s.store->ops->cancel(s.store, &two.call);
        }
        note_ready(&s, &three, HG_OP_GET, "k");
        (void)note_submit(&three, &s.rig);
        BENCH_UNTIL(&s.bench, three.done == 1);
        assert_int_equal(two.done, way == 1);
        assert_int_equal(hg_remote_of(s.store)->ties.slab.borrowed, 0);
    }
    assert_true(s.store->ops->drained(s.store));
    scene_fini(&s);
}

static void t_restart(void **state)
{
    (void)state;
    struct scene s;
    scene_launch(&s, NULL);
    s.conf.times.backend_timeout_ms = 500;
    s.conf.times.queue_timeout_ms = 500;
    scene_start(&s);
    put_value(&s, HG_OP_SET, "k", "5", 0);
    daemon_put_down(&s.daemon);
    struct note *note = begin(&s, HG_OP_GET, "k");
    (void)note_submit(note, &s.rig);
    BENCH_UNTIL(&s.bench, note->done == 1);
    assert_true(note->result.fault != HG_FAULT_NONE);
    redisd_launch(&s.daemon, NULL);
    struct note again;
    uint64_t deadline = bench_deadline();
    do {
        assert_true(hg_now_us() < deadline);
        bench_turn(&s.bench);
        note_ready(&s, &again, HG_OP_INCREMENT, "k");
        again.call.expiry = 0;
        again.call.initial = 77;
        (void)note_submit(&again, &s.rig);
        BENCH_UNTIL(&s.bench, again.done == 1);
    } while (again.result.fault != HG_FAULT_NONE);
    assert_int_equal(again.result.status, 0);
    assert_int_equal(again.result.counter, 77);
    assert_int_equal(rig_stat(s.shared, 0, HG_UPSTREAM_BAD_REPLIES), 0);
    scene_connect_admin(&s);
    scene_fini(&s);
}

/* --- refusals --- */

static void expect_refusal(struct scene *s, enum hg_op op, uint64_t cas, uint16_t status,
                           const char *text)
{
    struct note *note = begin(s, op, "k");
    note->call.cas = cas;
    note->call.delta = 1;
    note->call.value = op == HG_OP_SET || op == HG_OP_APPEND ? HG_SPAN_LIT("v") : HG_SPAN_NONE;
    struct hg_result r = finish(s, note);
    if (r.status != status || strstr(note->value, text) == NULL)
        fail_msg("op %d: %#x %s", op, r.status, note->value);
    assert_string_equal(r.server, s->daemon.address);
}

static void t_no_memory(void **state)
{
    (void)state;
    struct scene s;
    scene_launch(&s, NULL);
    scene_start(&s);
    uint64_t cas = put_value(&s, HG_OP_SET, "k", "1", 0).cas;
    scene_admin(&s, "CONFIG SET maxmemory 1");
    expect_refusal(&s, HG_OP_SET, 0, HG_STATUS_ENOMEM, "maxmemory");
    expect_refusal(&s, HG_OP_SET, cas, HG_STATUS_ENOMEM, "maxmemory");
    expect_refusal(&s, HG_OP_APPEND, 0, HG_STATUS_ENOMEM, "OOM");
    expect_refusal(&s, HG_OP_INCREMENT, 0, HG_STATUS_ENOMEM, "OOM");
    expect_stored(&s, "k", "1");
    assert_int_equal(run(&s, HG_OP_DELETE, "k").status, 0);
    scene_admin(&s, "CONFIG SET maxmemory 0");
    assert_int_equal(put_value(&s, HG_OP_SET, "k", "1", 0).status, 0);
    scene_fini(&s);
}

/* Somebody's script that does not end: refused meanwhile, served afterwards. */
static void t_busy(void **state)
{
    (void)state;
    struct scene s;
    scene_launch(&s, NULL);
    scene_start(&s);
    put_value(&s, HG_OP_SET, "k", "1", 0);
    scene_admin(&s, "CONFIG SET busy-reply-threshold 1");
    redisContext *stubborn = redisConnect("127.0.0.1", s.daemon.port);
    int sent = 0;
    assert_int_equal(redisAppendCommand(stubborn, "EVAL %s 0", "while true do end"), REDIS_OK);
    PATIENCE_WHILE(sent == 0)
    assert_int_equal(redisBufferWrite(stubborn, &sent), REDIS_OK);
    struct note *note;
    uint64_t deadline = bench_deadline();
    do {
        assert_true(hg_now_us() < deadline);
        finish(&s, note = begin(&s, HG_OP_GET, "k"));
    } while (note->result.status == 0);
    assert_int_equal(note->result.status, HG_STATUS_EBUSY);
    assert_non_null(strstr(note->value, "BUSY"));
    expect_refusal(&s, HG_OP_INCREMENT, 0, HG_STATUS_EBUSY, "busy with a script");
    assert_string_equal(scene_admin(&s, "SCRIPT KILL"), "OK");
    do {
        assert_true(hg_now_us() < deadline);
        finish(&s, note = begin(&s, HG_OP_GET, "k"));
    } while (note->result.status == HG_STATUS_EBUSY);
    assert_string_equal(note->value, "1");
    redisFree(stubborn);
    scene_fini(&s);
}

static void t_replica(void **state)
{
    (void)state;
    struct scene s;
    scene_launch(&s, NULL);
    scene_start(&s);
    uint64_t cas = put_value(&s, HG_OP_SET, "k", "1", 0).cas;
    scene_admin(&s, "REPLICAOF 127.0.0.1 1");
    expect_refusal(&s, HG_OP_SET, 0, HG_STATUS_ETMPFAIL, "replica");
    expect_refusal(&s, HG_OP_SET, cas, HG_STATUS_ETMPFAIL, "replica");
    expect_refusal(&s, HG_OP_INCREMENT, 0, HG_STATUS_ETMPFAIL, "READONLY");
    expect_stored(&s, "k", "1");
    scene_admin(&s, "CONFIG SET replica-serve-stale-data no");
    expect_refusal(&s, HG_OP_GET, 0, HG_STATUS_ETMPFAIL, "MASTERDOWN");
    scene_fini(&s);
}

static void t_permissions(void **state)
{
    (void)state;
    struct scene s;
    scene_launch(&s, NULL);
    scene_admin(&s, "ACL SETUSER bob on >secret ~b:* +@all -flushdb");
    s.conf.user = "bob";
    s.conf.password = "secret";
    scene_start(&s);
    expect_refusal(&s, HG_OP_GET, 0, HG_STATUS_EACCESS, "NOPERM");
    expect_refusal(&s, HG_OP_INCREMENT, 0, HG_STATUS_EACCESS, "NOPERM");
    expect_refusal(&s, HG_OP_FLUSH, 0, HG_STATUS_EACCESS, "NOPERM");
    struct note *note = begin(&s, HG_OP_SET, "k");
    note->call.prefix = HG_SPAN_LIT("b:");
    assert_int_equal(finish(&s, note).status, 0);
    scene_fini(&s);
}

/* A login that is refused: calls fail for it, the breaker stays closed for the others. */
static void t_wrong_password(void **state)
{
    (void)state;
    static const char *const options[] = {"--requirepass", "right", NULL};
    static const struct {
        const char *user, *password;
        uint32_t database;
        const char *why; /* it is refused; NULL: it is not */
    } logins[] = {
        {"", "right", 0, NULL},        {"", "wrong", 0, "WRONGPASS"},
        {"", "", 0, "NOAUTH"},         {"nobody", "right", 0, "WRONGPASS"},
        {"default", "right", 3, NULL}, {"", "right", 99, "no database of this number"},
    };
    for (size_t i = 0; i < HG_COUNT_OF(logins); i++) {
        struct scene s;
        scene_launch(&s, options);
        scene_admin(&s, "AUTH right");
        s.conf.user = logins[i].user;
        s.conf.password = logins[i].password;
        s.conf.database = logins[i].database;
        s.conf.times.queue_timeout_ms = 10000;
        scene_start(&s);
        struct note *note = begin(&s, HG_OP_SET, "k");
        (void)note_submit(note, &s.rig);
        BENCH_UNTIL(&s.bench, note->done == 1);
        assert_int_equal(note->result.fault,
                         logins[i].why == NULL ? HG_FAULT_NONE : HG_FAULT_DENIED);
        if (logins[i].why != NULL && strstr(note->value, logins[i].why) == NULL)
            fail_msg("login %zu: %s", i, note->value);
        assert_true(hg_server_may_send(&s.shared->servers[0]));
        scene_admin(&s, "SELECT %u", logins[i].database % 16);
        assert_string_equal(scene_admin(&s, "EXISTS k"), logins[i].why == NULL ? "1" : "0");
        scene_fini(&s);
    }
}

/* Many identities on one server: databases and users, each sees its own. */
static void t_identities(void **state)
{
    (void)state;
    enum { IDS = 6 };
    struct scene s;
    uint32_t ids[IDS] = {0};
    char value[16];
    scene_launch(&s, NULL);
    scene_admin(&s, "ACL SETUSER ann on >a ~* +@all");
    scene_admin(&s, "ACL SETUSER bob on >b ~* +@all");
    scene_start(&s);
    struct hg_identities *identities = &s.shared->identities;
    for (uint32_t i = 1; i < IDS; i++)
        assert_int_equal(hg_identities_add(identities,
                                           i < 3   ? "ann"
                                           : i < 5 ? "bob"
                                                   : "",
                                           i < 3   ? "a"
                                           : i < 5 ? "b"
                                                   : "",
                                           i, &ids[i]),
                         0);
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < IDS; i++) {
            snprintf(value, sizeof value, "%u.%d", i, round);
            struct note *note = begin(&s, HG_OP_SET, "k");
            note->call.identity = ids[i];
            note->call.value = hg_span_str(value);
            assert_int_equal(finish(&s, note).status, 0);
        }
    }
    for (uint32_t i = 0; i < IDS; i++) {
        snprintf(value, sizeof value, "%u.2", i);
        scene_admin(&s, "SELECT %u", i);
        assert_string_equal(scene_admin(&s, "GETRANGE k 12 -1"), value);
    }
    struct note *note = begin(&s, HG_OP_FLUSH, "");
    note->call.identity = ids[2];
    assert_int_equal(finish(&s, note).status, 0);
    scene_admin(&s, "SELECT 2");
    assert_string_equal(scene_admin(&s, "DBSIZE"), "0");
    scene_admin(&s, "SELECT 3");
    assert_string_equal(scene_admin(&s, "DBSIZE"), "1");
    scene_fini(&s);
}

/* --- one connection that becomes one identity's after the other's --- */

static int ready, ended;

static void on_ready(struct hg_link *link)
{
    (void)link;
    ready++;
}

static void on_end(struct hg_link *link, enum hg_link_state was, enum hg_link_why why, int error)
{
    (void)was;
    (void)why;
    (void)error;
    ended++;
    hg_link_fail(link, link->tail, HG_FAULT_LOST);
}

/* What redis says of the connection that is not the admin's. */
static const char *client_line(struct scene *s)
{
    static char line[1024];
    char mine[32];
    snprintf(mine, sizeof mine, "id=%s ", scene_admin(s, "CLIENT ID"));
    const char *list = scene_admin(s, "CLIENT LIST");
    if (strncmp(list, mine, strlen(mine)) == 0)
        list = strchr(list, '\n') + 1;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(list, "\n"), list);
    return line;
}

static void t_rebind(void **state)
{
    (void)state;
    static const struct hg_link_owner owner = {.on_ready = on_ready, .on_end = on_end};
    static const struct hg_link_limits limits = {.depth = 8, .max_reply = 65536};
    static const struct {
        struct hg_identity identity;
        const char *user, *database;
        bool ok;
    } steps[] = {
        {{.id = 1, .user = "", .password = "", .database = 0}, " user=default ", " db=0 ", true},
        {{.id = 2, .user = "ann", .password = "a", .database = 0}, " user=ann ", " db=0 ", true},
        {{.id = 3, .user = "ann", .password = "a", .database = 7}, " user=ann ", " db=7 ", true},
        {{.id = 4, .user = "bob", .password = "b", .database = 0}, " user=bob ", " db=0 ", true},
        {{.id = 5, .user = "", .password = "", .database = 5}, " user=default ", " db=5 ", true},
        {{.id = 6, .user = "ann", .password = "wrong", .database = 0}, "", "", false},
    };
    struct scene s;
    struct hg_hub hub;
    struct hg_redis_dialect dialect;
    struct hg_upstream_counters counters;
    memset(&counters, 0, sizeof counters);
    ready = ended = 0;
    scene_launch(&s, NULL);
    scene_admin(&s, "ACL SETUSER ann on >a ~* +@all");
    scene_admin(&s, "ACL SETUSER bob on >b ~* +@all");
    assert_int_equal(hg_hub_init(&hub, &s.rig.loop, &s.rig.mailbox, &s.rig.blobs, &s.rig.outs), 0);
    assert_int_equal(hg_redis_dialect_init(&dialect, &s.redis), 0);
    struct hg_link *link = hg_link_new(&hub, &dialect.base, &limits, &owner, NULL, &counters);
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(s.daemon.port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int rc = connect(fd, (struct sockaddr *)&in, sizeof in);
    assert_true(rc == 0 || errno == EINPROGRESS);
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
    assert_int_equal(poll(&poll_fd, 1, (int)(PATIENCE_US / 1000)), 1);
    link->server = s.daemon.address;
    link->identity = &steps[0].identity;
    hg_link_adopt(link, fd, true);
    for (size_t i = 0; i < HG_COUNT_OF(steps); i++) {
        if (i > 0)
            hg_link_rebind(link, &steps[i].identity);
        BENCH_UNTIL(&s.bench, ready == (int)i + 1 || ended > 0);
        assert_int_equal(ended, !steps[i].ok);
        if (!steps[i].ok)
            break;
        const char *line = client_line(&s);
        if (strstr(line, steps[i].user) == NULL || strstr(line, steps[i].database) == NULL)
            fail_msg("step %zu: %s", i, line);
    }
    hg_loop_turn(&s.rig.loop, false);
    hg_hub_fini(&hub);
    scene_shut(&s);
}

/* A script's call comes behind a read that passed a bind throttle: it waits until that is answered,
   and another one behind it. */
static void t_behind_quarantine(void **state)
{
    (void)state;
    struct scene s;
    struct note pass, more[2];
    scene_launch(&s, NULL);
    scene_start(&s);
    put_value(&s, HG_OP_SET, "n", "40", 0);
    struct note *first = begin(&s, HG_OP_GET, "n");
    first->call.quarantine = true;
    assert_int_equal(finish(&s, first).status, 0);
    for (int round = 0; round < 3; round++) {
        note_ready(&s, &pass, HG_OP_GET, "n");
        pass.call.quarantine = true;
        assert_int_equal(note_submit(&pass, &s.rig), HG_SUBMIT_TAKEN);
        for (int i = 0; i < 2; i++) {
            note_ready(&s, &more[i], HG_OP_INCREMENT, "n");
            more[i].call.delta = 1;
            more[i].call.after = i == 0 ? &pass.call : &more[0].call;
            enum hg_submit submit = note_submit(&more[i], &s.rig);
#ifdef SCENE_RELAYED
            bool waits = i > 0; /* the first does so at the owner's */
#else
            bool waits = true;
#endif
            assert_int_equal(submit, waits ? HG_SUBMIT_WAIT : HG_SUBMIT_TAKEN);
        }
        BENCH_UNTIL(&s.bench, more[1].done == 1);
        assert_int_equal(pass.result.status, 0);
        assert_int_equal(atoi(pass.value), 40 + 2 * round);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(more[i].result.fault, HG_FAULT_NONE);
            assert_int_equal(more[i].result.counter, 41 + 2 * round + i);
        }
        assert_true(pass.order < more[0].order && more[0].order < more[1].order);
    }
    assert_true(rig_stat(s.shared, 0, HG_UPSTREAM_QUARANTINED) >= 4);
    scene_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_script_flush),
        cmocka_unit_test(t_script_flush_under_way),
        cmocka_unit_test(t_order_of_one_client),
        cmocka_unit_test(t_cancelled_in_between),
        cmocka_unit_test(t_behind_quarantine),
        cmocka_unit_test(t_restart),
        cmocka_unit_test(t_no_memory),
        cmocka_unit_test(t_busy),
        cmocka_unit_test(t_replica),
        cmocka_unit_test(t_permissions),
        cmocka_unit_test(t_wrong_password),
        cmocka_unit_test(t_identities),
        cmocka_unit_test(t_rebind),
    };
    if (!redisd_is_installed())
        return 0;
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("redis_again", tests, NULL, NULL);
}
