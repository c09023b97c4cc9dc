// t_link - a connection matches replies to requests, whatever the server or the clock does
// SPDX-License-Identifier: BSD-3-Clause
#include "rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "back/link.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "proto/opcode.h"

/* A link whose server is the test, at the other end of a socket pair. */
struct pair {
    struct rig rig;
    struct hg_hub hub;
    struct hg_link_limits limits;
    struct hg_upstream_counters counters;
    struct hg_link *link;
    int fd; /* the server's end */
    int readies, rooms, timeouts, ends;
    uint32_t answers;
    enum hg_link_why why;
    struct hg_link *heir; /* takes what was not sent */
};

static void on_ready(struct hg_link *link)
{
    ((struct pair *)link->pool)->readies++;
}

static void on_room(struct hg_link *link)
{
    link->full = false;
    ((struct pair *)link->pool)->rooms++;
}

static void on_answers(struct hg_link *link, uint32_t in_time, uint64_t waited_us)
{
    (void)waited_us;
    ((struct pair *)link->pool)->answers += in_time;
}

static void on_timeout(struct hg_link *link, const struct hg_call *call, uint64_t waited_us)
{
    (void)call;
    (void)waited_us;
    ((struct pair *)link->pool)->timeouts++;
}

static struct hg_link *heir(void *arg, const struct hg_call *call)
{
    (void)call;
    return ((struct pair *)arg)->heir;
}

static void on_end(struct hg_link *link, enum hg_link_state was, enum hg_link_why why, int error)
{
    struct pair *pair = link->pool;
    (void)was;
    (void)error;
    pair->ends++;
    pair->why = why;
    hg_link_fail(link, hg_link_first_unsent(link), HG_FAULT_LOST);
    hg_link_move(link, heir, pair);
    if (link == pair->link)
        pair->link = NULL;
}

static const struct hg_link_owner owner = {on_ready, on_room, on_answers, on_timeout, on_end};

static struct hg_link *new_link(struct pair *pair, int *ret_fd, bool probe)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    struct hg_link *link = hg_link_new(&pair->hub, &hg_dialect_memcached, &pair->limits, &owner,
                                       pair, &pair->counters);
    assert_non_null(link);
    link->server = "test:1";
    hg_link_adopt(link, fds[0], probe);
    *ret_fd = fds[1];
    return link;
}

static void pair_init(struct pair *pair, bool probe)
{
    memset(pair, 0, sizeof *pair);
    rig_init(&pair->rig);
    pair->limits = (struct hg_link_limits){.depth = 8,
                                           .max_reply = 4 << 20,
                                           .max_bytes = 1 << 20,
                                           .timeout_us = 60000000,
                                           .silent_us = 120000000};
    assert_int_equal(hg_hub_init(&pair->hub, &pair->rig.loop, &pair->rig.mailbox, &pair->rig.blobs,
                                 &pair->rig.outs),
                     0);
    pair->link = new_link(pair, &pair->fd, probe);
}

static void pair_fini(struct pair *pair)
{
    if (pair->link != NULL)
        hg_link_end(pair->link, HG_LINK_LET_GO, 0);
    close(pair->fd);
    hg_hub_fini(&pair->hub);
    rig_fini(&pair->rig);
}

static void turn(struct pair *pair)
{
    hg_loop_turn(&pair->rig.loop, false);
}

static void send_call(struct pair *pair, struct note *note)
{
    enum hg_fault fault = HG_FAULT_NONE;
    assert_true(hg_link_has_room(pair->link));
    assert_true(hg_link_submit(pair->link, &note->call, &fault));
    assert_true(note->call.place.pending);
}

static void get(struct pair *pair, struct note *note, const char *key)
{
    note_init(note, NULL, HG_OP_GET, key);
    send_call(pair, note);
}

static void say(struct pair *pair, const void *bytes, size_t len)
{
    assert_int_equal(send(pair->fd, bytes, len, MSG_NOSIGNAL), len);
}

/* A found value as the server says it. */
static size_t found(uint8_t *out, uint32_t opaque, const char *value)
{
    const uint8_t flags[4] = {1, 2, 3, 4};
    return fake_encode(out, HG_OPCODE_GET, 0, opaque, 0x1122334455667788, flags, 4, value,
                       strlen(value));
}

static void say_found(struct pair *pair, uint32_t opaque, const char *value)
{
    uint8_t out[1024];
    say(pair, out, found(out, opaque, value));
}

/* What the server has received. */
static size_t hear(struct pair *pair, uint8_t *out, size_t cap)
{
    ssize_t n = recv(pair->fd, out, cap, 0);
    return n < 0 ? 0 : (size_t)n;
}

static void t_says_every_operation(void **state)
{
    (void)state;
    static const uint8_t codes[HG_OPS] = {
        [HG_OP_GET] = 0x00,       [HG_OP_SET] = 0x01,    [HG_OP_ADD] = 0x02,
        [HG_OP_REPLACE] = 0x03,   [HG_OP_DELETE] = 0x04, [HG_OP_INCREMENT] = 0x05,
        [HG_OP_DECREMENT] = 0x06, [HG_OP_FLUSH] = 0x08,  [HG_OP_APPEND] = 0x0e,
        [HG_OP_PREPEND] = 0x0f,   [HG_OP_TOUCH] = 0x1c,  [HG_OP_GAT] = 0x1d,
    };
    struct pair pair;
    pair_init(&pair, false);
    for (unsigned op = 0; op < HG_OPS; op++) {
        bool stores = op == HG_OP_SET || op == HG_OP_ADD || op == HG_OP_REPLACE;
        bool appends = op == HG_OP_APPEND || op == HG_OP_PREPEND;
        bool counts = op == HG_OP_INCREMENT || op == HG_OP_DECREMENT;
        struct note note;
        note_init(&note, NULL, op, op == HG_OP_FLUSH ? "" : "key");
        note.call.prefix = op == HG_OP_FLUSH ? HG_SPAN_NONE : HG_SPAN_LIT("shop:");
        note.call.value = stores || appends ? HG_SPAN_LIT("value") : HG_SPAN_NONE;
        note.call.item_flags = 0xa1a2a3a4;
        note.call.expiry = 0xe1e2e3e4;
        note.call.cas = 0xc1c2c3c4c5c6c7c8;
        note.call.delta = 5;
        note.call.initial = 6;
        send_call(&pair, &note);
        turn(&pair);
        uint8_t in[256];
        size_t extras = stores                                             ? 8
                        : counts                                           ? 20
                        : appends || op == HG_OP_GET || op == HG_OP_DELETE ? 0
                                                                           : 4;
        size_t key = op == HG_OP_FLUSH ? 0 : 8, value = note.call.value.len;
        assert_int_equal(hear(&pair, in, sizeof in), 24 + extras + key + value);
        assert_int_equal(in[0], 0x80);
        assert_int_equal(in[1], codes[op]);
        assert_int_equal(hg_get_u16(in + 2), key);
        assert_int_equal(in[4], extras);
        assert_int_equal(hg_get_u32(in + 8), extras + key + value);
        assert_int_equal(hg_get_u32(in + 12), op);
        assert_true(hg_get_u64(in + 16) == note.call.cas);
        assert_memory_equal(in + 24 + extras, "shop:key", key);
        assert_memory_equal(in + 24 + extras + key, "value", value);
        if (stores)
            assert_int_equal(hg_get_u32(in + 24), 0xa1a2a3a4);
        if (extras > 0)
            assert_int_equal(hg_get_u32(in + 24 + extras - 4), 0xe1e2e3e4);
        uint8_t out[128], flags[4] = {1, 2, 3, 4}, number[8] = {0, 0, 0, 0, 0, 0, 1, 0};
        bool reads = op == HG_OP_GET || op == HG_OP_GAT || op == HG_OP_TOUCH;
        say(&pair, out,
            fake_encode(out, codes[op], 0, op, 77, flags, reads ? 4 : 0,
                        counts ? (void *)number : "found",
                        counts  ? 8
                        : reads ? 5
                                : 0));
        turn(&pair);
        assert_int_equal(note.done, 1);
        assert_int_equal(note.result.fault, HG_FAULT_NONE);
        assert_int_equal(note.result.status, 0);
        assert_int_equal(note.result.cas, 77);
        bool shows = op == HG_OP_GET || op == HG_OP_GAT;
        assert_int_equal(note.result.item_flags, shows ? 0x01020304 : 0);
        assert_string_equal(note.value, shows ? "found" : "");
        assert_int_equal(note.result.counter, counts ? 256 : 0);
        assert_string_equal(note.result.server, "test:1");
    }
    assert_int_equal(pair.link->bytes, 0);
    pair_fini(&pair);
}

static void t_one_write_per_turn(void **state)
{
    (void)state;
    struct pair pair;
    struct note notes[8];
    uint8_t in[4096];
    pair_init(&pair, false);
    for (int i = 0; i < 8; i++)
        get(&pair, &notes[i], "k");
    assert_false(hg_link_has_room(pair.link));
    assert_int_equal(hear(&pair, in, sizeof in), 0); /* nothing before the end of the turn */
    turn(&pair);
    assert_int_equal(hear(&pair, in, sizeof in), 8 * 25);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(hg_get_u32(in + i * 25 + 12), i);
    uint8_t out[8 * 64];
    size_t len = 0;
    for (uint32_t i = 0; i < 8; i++)
        len += found(out + len, i, "vv");
    note_reset_order();
    say(&pair, out, len);
    turn(&pair);
    for (int i = 0; i < 8; i++)
        assert_int_equal(notes[i].order, i + 1);
    assert_int_equal(pair.answers, 8);
    pair_fini(&pair);
}

/* Three replies, of which one is an error with text and one large, cut at each byte into two
   reads; then byte by byte. */
static void t_replies_cut_anywhere(void **state)
{
    (void)state;
    struct pair pair;
    uint8_t out[2048];
    char big[1200];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    pair_init(&pair, false);
    uint32_t opaque = 0;
    size_t total = 3 * 24 + 4 + 5 + 9 + 4 + strlen(big);
    for (size_t at = 0; at <= total; at++) {
        struct note a, b, c;
        get(&pair, &a, "a");
        get(&pair, &b, "b");
        get(&pair, &c, "c");
        size_t len = found(out, opaque, "short");
        len += fake_encode(out + len, HG_OPCODE_GET, 1, opaque + 1, 0, NULL, 0, "Not found", 9);
        len += found(out + len, opaque + 2, big);
        assert_int_equal(len, total);
        opaque += 3;
        if (at < total) {
            say(&pair, out, at);
            turn(&pair);
            say(&pair, out + at, total - at);
            turn(&pair);
        } else {
            for (size_t i = 0; i < total; i++) {
                assert_int_equal(c.done, 0);
                say(&pair, out + i, 1);
                turn(&pair);
            }
        }
        assert_int_equal(a.done + b.done + c.done, 3);
        assert_string_equal(a.value, "short");
        assert_int_equal(a.result.item_flags, 0x01020304);
        assert_true(a.result.cas == 0x1122334455667788);
        assert_int_equal(b.result.status, HG_STATUS_KEY_ENOENT);
        assert_string_equal(b.value, "Not found");
        assert_int_equal(c.value_len, strlen(big));
        assert_int_equal(c.value_sum, strlen(big) * 'x');
    }
    assert_int_equal(pair.ends, 0);
    pair_fini(&pair);
}

static void t_late_reply_meets_nobody(void **state)
{
    (void)state;
    struct pair pair;
    struct note first, second;
    pair_init(&pair, false);
    pair.limits.timeout_us = 1000;
    get(&pair, &first, "slow");
    turn(&pair);
    hg_link_tick(pair.link, pair.rig.loop.now_us);
    assert_int_equal(first.done, 0);
    hg_link_tick(pair.link, pair.rig.loop.now_us + 1000);
    assert_int_equal(first.done, 1);
    assert_int_equal(first.result.fault, HG_FAULT_TIMEOUT);
    assert_int_equal(pair.timeouts, 1);
    assert_int_equal(hg_link_pending(pair.link), 1); /* forgotten, and still in the way */
    get(&pair, &second, "slow");
    turn(&pair);
    say_found(&pair, 0, "of the first");
    turn(&pair);
    assert_int_equal(second.done, 0);
    say_found(&pair, 1, "of the second");
    turn(&pair);
    assert_string_equal(second.value, "of the second");
    assert_int_equal(first.done, 1);
    assert_int_equal(hg_counter_get(&pair.counters.values[HG_UPSTREAM_LATE_REPLIES]), 1);
    assert_int_equal(hg_counter_get(&pair.counters.values[HG_UPSTREAM_REPLIES]), 1);
    pair_fini(&pair);
}

static void t_deadline_is_nearer_than_the_timeout(void **state)
{
    (void)state;
    struct pair pair;
    struct note far, near;
    pair_init(&pair, false);
    turn(&pair);
    uint64_t now_us = pair.rig.loop.now_us;
    get(&pair, &far, "far");
    note_init(&near, NULL, HG_OP_GET, "near");
    near.call.deadline_us = now_us + 500;
    send_call(&pair, &near);
    hg_link_tick(pair.link, now_us + 499);
    assert_int_equal(near.done, 0);
    hg_link_tick(pair.link, now_us + 500);
    assert_int_equal(near.done, 1);
    assert_int_equal(near.result.fault, HG_FAULT_TIMEOUT);
    assert_int_equal(far.done, 0);
    turn(&pair);
    say_found(&pair, 0, "x");
    turn(&pair);
    assert_int_equal(far.done, 1);
    pair_fini(&pair);
}

static void t_forgotten_slots_count(void **state)
{
    (void)state;
    struct pair pair;
    struct note notes[8], next;
    pair_init(&pair, false);
    for (int i = 0; i < 8; i++)
        get(&pair, &notes[i], "k");
    for (int i = 0; i < 8; i++)
        hg_link_cancel(pair.link, &notes[i].call);
    assert_false(hg_link_has_room(pair.link));
    pair.link->full = true;
    turn(&pair);
    uint8_t out[512];
    say(&pair, out, found(out, 0, "dropped"));
    turn(&pair);
    assert_int_equal(pair.rooms, 1);
    assert_true(hg_link_has_room(pair.link));
    get(&pair, &next, "next");
    turn(&pair);
    for (uint32_t i = 1; i < 9; i++)
        say_found(&pair, i, i == 8 ? "mine" : "dropped");
    turn(&pair);
    for (int i = 0; i < 8; i++)
        assert_int_equal(notes[i].done, 0);
    assert_string_equal(next.value, "mine");
    pair_fini(&pair);
}

/* Each of these must end the connection, with every call answered once. */
static void ends_with(const uint8_t *bytes, size_t len, int answered)
{
    struct pair pair;
    struct note a, b, gone;
    pair_init(&pair, false);
    get(&pair, &a, "a");
    get(&pair, &gone, "gone");
    get(&pair, &b, "b");
    hg_link_cancel(pair.link, &gone.call);
    turn(&pair);
    say(&pair, bytes, len);
    turn(&pair);
    assert_int_equal(pair.ends, 1);
    assert_int_equal(pair.why, HG_LINK_GARBAGE);
    assert_int_equal(a.done, 1);
    assert_int_equal(a.result.fault, answered > 0 ? HG_FAULT_NONE : HG_FAULT_LOST);
    assert_int_equal(gone.done, 0);
    assert_int_equal(b.done, 1);
    assert_int_equal(b.result.fault, answered > 2 ? HG_FAULT_NONE : HG_FAULT_LOST);
    pair_fini(&pair);
}

static void t_nonsense_ends_it(void **state)
{
    (void)state;
    uint8_t out[512];
    ends_with((const uint8_t *)"ERROR\r\n", 7, 0);
    ends_with((const uint8_t *)"\x80", 1, 0);
    ends_with(out, found(out, 1, "opaque of the next"), 0);
    ends_with(out, found(out, 0xffffffff, "opaque of nobody"), 0);
    size_t len = fake_encode(out, HG_OPCODE_SET, 0, 0, 1, NULL, 0, NULL, 0);
    ends_with(out, len, 0); /* another opcode */
    len = fake_encode(out, HG_OPCODE_GET, 0, 0, 1, NULL, 0, "no flags", 8);
    ends_with(out, len, 0);
    len = found(out, 0, "x");
    hg_put_u32(out + 8, (4 << 20) + 1); /* longer than allowed */
    ends_with(out, len, 0);
    len = found(out, 0, "x");
    hg_put_u16(out + 2, 9); /* key and extras longer than the body */
    ends_with(out, len, 0);
    len = found(out, 0, "x");
    len += found(out + len, 2, "skipped one");
    ends_with(out, len, 1);
    len = found(out, 0, "x");
    len += found(out + len, 1, "x");
    len += found(out + len, 2, "x");
    len += found(out + len, 3, "one too many");
    ends_with(out, len, 3);
}

static void t_nonsense_in_pieces_ends_it(void **state)
{
    (void)state;
    struct pair pair;
    struct note a;
    uint8_t out[128];
    pair_init(&pair, false);
    get(&pair, &a, "a");
    turn(&pair);
    size_t len = found(out, 5, "another's");
    say(&pair, out, len - 1);
    turn(&pair);
    assert_int_equal(a.done, 0);
    say(&pair, out + len - 1, 1);
    turn(&pair);
    assert_int_equal(a.done, 1);
    assert_int_equal(a.result.fault, HG_FAULT_LOST);
    assert_int_equal(pair.why, HG_LINK_GARBAGE);
    pair_fini(&pair);
}

static void t_end_of_stream(void **state)
{
    (void)state;
    struct pair pair;
    struct note a, b;
    uint8_t out[64];
    pair_init(&pair, false);
    get(&pair, &a, "a");
    get(&pair, &b, "b");
    turn(&pair);
    size_t len = found(out, 0, "last words");
    say(&pair, out, len);
    shutdown(pair.fd, SHUT_WR);
    turn(&pair);
    turn(&pair);
    assert_string_equal(a.value, "last words");
    assert_int_equal(b.result.fault, HG_FAULT_LOST);
    assert_int_equal(pair.why, HG_LINK_CLOSED);
    assert_int_equal(hg_counter_get(&pair.counters.values[HG_UPSTREAM_LOST]), 1);
    pair_fini(&pair);
}

static void t_silence(void **state)
{
    (void)state;
    struct pair pair;
    struct note a;
    pair_init(&pair, false);
    pair.limits.timeout_us = 1000;
    pair.limits.silent_us = 2000;
    turn(&pair);
    hg_link_tick(pair.link, pair.rig.loop.now_us + 100000000); /* idle is not silent */
    assert_int_equal(pair.ends, 0);
    get(&pair, &a, "a");
    uint64_t sent_us = a.call.sent_us;
    assert_true(sent_us == pair.rig.loop.now_us);
    turn(&pair);
    hg_link_tick(pair.link, sent_us + 1999);
    assert_int_equal(a.done, 1);
    assert_int_equal(pair.ends, 0);
    hg_link_tick(pair.link, sent_us + 2000);
    assert_int_equal(pair.ends, 1);
    assert_int_equal(pair.why, HG_LINK_SILENT);
    assert_int_equal(a.done, 1);
    pair_fini(&pair);
}

static void t_probe_before_ready(void **state)
{
    (void)state;
    struct pair pair;
    uint8_t in[64], out[64];
    pair_init(&pair, true);
    assert_int_equal(pair.link->state, HG_LINK_HANDSHAKE);
    turn(&pair);
    assert_int_equal(hear(&pair, in, sizeof in), 24);
    assert_int_equal(in[1], HG_OPCODE_NOOP);
    assert_int_equal(pair.readies, 0);
    say(&pair, out, fake_encode(out, HG_OPCODE_NOOP, 0, hg_get_u32(in + 12), 0, NULL, 0, NULL, 0));
    turn(&pair);
    assert_int_equal(pair.readies, 1);
    assert_int_equal(pair.link->state, HG_LINK_READY);
    pair_fini(&pair);

    pair_init(&pair, true);
    turn(&pair);
    assert_int_equal(hear(&pair, in, sizeof in), 24);
    say(&pair, out, fake_encode(out, HG_OPCODE_NOOP, 0x20, 0, 0, NULL, 0, "log in", 6));
    turn(&pair);
    assert_int_equal(pair.readies, 0);
    assert_int_equal(pair.ends, 1);
    pair_fini(&pair);
}

static void t_drains(void **state)
{
    (void)state;
    struct pair pair;
    struct note a;
    pair_init(&pair, false);
    get(&pair, &a, "a");
    turn(&pair);
    hg_link_drain(pair.link);
    assert_int_equal(pair.link->state, HG_LINK_DRAINING);
    say_found(&pair, 0, "x");
    turn(&pair);
    assert_int_equal(a.done, 1);
    assert_int_equal(a.result.fault, HG_FAULT_NONE);
    assert_int_equal(pair.ends, 1);
    assert_int_equal(pair.why, HG_LINK_LET_GO);
    pair_fini(&pair);
}

/* A large value comes in many reads, and lies in a blob of its size in the end; small ones around
   it come and go meanwhile. */
static void t_large_reply_by_reference(void **state)
{
    (void)state;
    struct pair pair;
    struct note before, large, after;
    const uint8_t flags[4] = {0};
    size_t value = 1000000;
    uint8_t *out = malloc(value + 512), *bytes = malloc(value);
    uint32_t sum = 0;
    for (size_t i = 0; i < value; i++)
        sum += bytes[i] = (uint8_t)(i * 31);
    pair_init(&pair, false);
    get(&pair, &before, "before");
    get(&pair, &large, "large");
    get(&pair, &after, "after");
    turn(&pair);
    size_t len = found(out, 0, "1");
    len += fake_encode(out + len, HG_OPCODE_GET, 0, 1, 0, flags, 4, bytes, value);
    len += found(out + len, 2, "3");
    bool was_large = false;
    for (size_t at = 0; at < len;) {
        ssize_t n = send(pair.fd, out + at, len - at, MSG_NOSIGNAL);
        if (n > 0)
            at += (size_t)n;
        turn(&pair);
        was_large |= hg_link_is_large(pair.link);
    }
    turn(&pair);
    assert_true(was_large);
    assert_false(hg_link_is_large(pair.link));
    assert_string_equal(before.value, "1");
    assert_int_equal(large.value_len, value);
    assert_int_equal(large.value_sum, sum);
    assert_true(large.in_blob);
    assert_string_equal(after.value, "3");
    free(bytes);
    free(out);
    pair_fini(&pair);
}

static void t_large_request_by_reference(void **state)
{
    (void)state;
    struct pair pair;
    struct note set, small, behind;
    size_t value = 300000, heard = 0;
    uint8_t *in = malloc(value + 512);
    pair_init(&pair, false);
    struct hg_blob *blob = hg_blob_borrow(&pair.rig.blobs, value + 100);
    memset(blob->data, 'v', blob->cap);
    note_init(&set, NULL, HG_OP_SET, "large");
    set.call.blob = blob;
    set.call.value = hg_span(blob->data + 100, value);
    get(&pair, &small, "small");
    send_call(&pair, &set);
    assert_int_equal(blob->refs, 2);
    hg_blob_unref(blob); /* the caller lets go; the queue holds on */
    assert_true(hg_link_is_large(pair.link));
    get(&pair, &behind, "behind");
    size_t want = 24 + 5 + 24 + 8 + 5 + value + 24 + 6;
    for (int i = 0; heard < want && i < 10000; i++) {
        turn(&pair);
        heard += hear(&pair, in + heard, value + 512 - heard);
    }
    assert_int_equal(heard, want);
    assert_int_equal(in[29 + 1], HG_OPCODE_SET);
    for (size_t i = 0; i < value; i++)
        assert_int_equal(in[29 + 37 + i], 'v');
    assert_memory_equal(in + want - 6, "behind", 6);
    turn(&pair);
    assert_false(hg_link_is_large(pair.link));
    free(in);
    pair_fini(&pair);
}

/* Every length around the limits between a copy and a reference, in chunks of every fill. */
static void t_values_of_all_sizes(void **state)
{
    (void)state;
    static const size_t around[] = {0, 64, 1024, 8192, 16320, 16384, 65536};
    struct pair pair;
    uint8_t *in = malloc(200000);
    pair_init(&pair, false);
    uint32_t opaque = 0;
    for (size_t i = 0; i < HG_COUNT_OF(around); i++) {
        for (size_t value = around[i] > 32 ? around[i] - 32 : 0; value <= around[i] + 32; value++) {
            struct hg_blob *blob = hg_blob_borrow(&pair.rig.blobs, value + 1);
            for (size_t b = 0; b < value; b++)
                blob->data[b] = (uint8_t)(b * 7 + value);
            struct note note;
            note_init(&note, NULL, HG_OP_SET, "k");
            note.call.blob = value % 2 ? blob : NULL;
            note.call.value = hg_span(blob->data, value);
            send_call(&pair, &note);
            size_t heard = 0, want = 24 + 8 + 1 + value;
            while (heard < want) {
                turn(&pair);
                heard += hear(&pair, in + heard, 200000 - heard);
            }
            assert_int_equal(heard, want);
            assert_memory_equal(in + 33, blob->data, value);
            hg_blob_unref(blob);
            uint8_t out[64];
            say(&pair, out, fake_encode(out, HG_OPCODE_SET, 0, opaque++, 1, NULL, 0, NULL, 0));
            turn(&pair);
            assert_int_equal(note.done, 1);
        }
    }
    free(in);
    pair_fini(&pair);
}

static void t_prefix_and_key_too_long(void **state)
{
    (void)state;
    struct pair pair;
    struct note note;
    char key[252];
    memset(key, 'k', sizeof key);
    key[246] = '\0';
    pair_init(&pair, false);
    note_init(&note, NULL, HG_OP_GET, key);
    note.call.prefix = HG_SPAN_LIT("shop:");
    enum hg_fault fault = HG_FAULT_NONE;
    assert_false(hg_link_submit(pair.link, &note.call, &fault));
    assert_int_equal(fault, HG_FAULT_KEY_TOO_LONG);
    assert_int_equal(pair.link->out.bytes, 0);
    assert_int_equal(hg_link_pending(pair.link), 0);
    note.call.prefix = HG_SPAN_LIT("shop");
    assert_true(hg_link_submit(pair.link, &note.call, &fault));
    pair_fini(&pair);
}

/* What was not sent moves, with opaques of its new link; what was sent is lost. */
static void t_unsent_moves(void **state)
{
    (void)state;
    struct pair pair;
    struct note sent, unsent[3], gone;
    uint8_t in[1024];
    int fd;
    pair_init(&pair, false);
    pair.heir = new_link(&pair, &fd, false);
    struct note other;
    note_init(&other, NULL, HG_OP_GET, "other");
    enum hg_fault fault;
    assert_true(hg_link_submit(pair.heir, &other.call, &fault));
    get(&pair, &sent, "sent");
    turn(&pair);
    for (int i = 0; i < 3; i++)
        get(&pair, &unsent[i], i == 0 ? "u0" : i == 1 ? "u1" : "u2");
    get(&pair, &gone, "gone");
    hg_link_cancel(pair.link, &gone.call);
    struct hg_link *to = pair.heir;
    hg_link_end(pair.link, HG_LINK_CLOSED, -ECONNRESET);
    assert_int_equal(sent.done, 1);
    assert_int_equal(sent.result.fault, HG_FAULT_LOST);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(unsent[i].done, 0);
        assert_ptr_equal(unsent[i].call.place.link, to);
    }
    turn(&pair);
    size_t n = (size_t)recv(fd, in, sizeof in, 0);
    assert_int_equal(n, 24 + 5 + 3 * 26);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(hg_get_u32(in + 29 + i * 26 + 12), i + 1);
        assert_memory_equal(in + 29 + i * 26 + 24, unsent[i].key, 2);
    }
    /* They do not move a second time. */
    pair.heir = NULL;
    uint8_t out[64];
    say(&(struct pair){.fd = fd}, out, found(out, 0, "o"));
    turn(&pair);
    hg_link_end(to, HG_LINK_CLOSED, -ECONNRESET);
    assert_int_equal(other.done, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(unsent[i].done, 1);
        assert_int_equal(unsent[i].result.fault, HG_FAULT_LOST); /* it had been sent by then */
    }
    close(fd);
    pair_fini(&pair);
}

/* The socket takes a part of a large value: that call is lost, what is behind it moves whole. */
static void t_behind_a_half_sent_request(void **state)
{
    (void)state;
    struct pair pair;
    struct note large, set, got;
    size_t value = 4000000, heard = 0;
    char *text = malloc(20001);
    memset(text, 'w', 20000);
    text[20000] = '\0';
    int fd;
    pair_init(&pair, false);
    pair.limits.max_bytes = 100000000;
    pair.heir = new_link(&pair, &fd, false);
    struct hg_link *to = pair.heir;
    struct hg_blob *blob = hg_blob_borrow(&pair.rig.blobs, value);
    memset(blob->data, 'v', value);
    note_init(&large, NULL, HG_OP_SET, "large");
    large.call.blob = blob;
    large.call.value = hg_span(blob->data, value);
    send_call(&pair, &large);
    turn(&pair);
    assert_true(pair.link->blocked);
    note_init(&set, NULL, HG_OP_SET, "set");
    set.call.value = hg_span_str(text);
    send_call(&pair, &set);
    get(&pair, &got, "got");
    hg_link_end(pair.link, HG_LINK_CLOSED, -ECONNRESET);
    assert_int_equal(large.done, 1);
    assert_int_equal(large.result.fault, HG_FAULT_LOST);
    assert_int_equal(set.done + got.done, 0);
    uint8_t *in = malloc(30000);
    size_t want = 24 + 8 + 3 + 20000 + 24 + 3;
    for (int i = 0; heard < want && i < 10000; i++) {
        turn(&pair);
        ssize_t n = recv(fd, in + heard, 30000 - heard, 0);
        heard += n > 0 ? (size_t)n : 0;
    }
    assert_int_equal(heard, want);
    assert_int_equal(in[1], HG_OPCODE_SET);
    assert_int_equal(hg_get_u32(in + 12), 0);
    for (size_t i = 0; i < 20000; i++)
        assert_int_equal(in[35 + i], 'w');
    assert_int_equal(hg_get_u32(in + 20035 + 12), 1);
    assert_memory_equal(in + want - 3, "got", 3);
    hg_blob_unref(blob);
    pair.heir = NULL;
    hg_link_end(to, HG_LINK_CLOSED, 0);
    assert_int_equal(set.done + got.done, 2);
    free(in);
    free(text);
    close(fd);
    pair_fini(&pair);
}

/* Opaques run over their end. */
static void t_opaque_wraps(void **state)
{
    (void)state;
    struct pair pair;
    pair_init(&pair, false);
    pair.link->head = pair.link->tail = 0xfffffffe;
    for (uint32_t i = 0; i < 5; i++) {
        struct note a, b;
        get(&pair, &a, "a");
        get(&pair, &b, "b");
        turn(&pair);
        say_found(&pair, 0xfffffffe + 2 * i, "A");
        say_found(&pair, 0xffffffff + 2 * i, "B");
        turn(&pair);
        assert_string_equal(a.value, "A");
        assert_string_equal(b.value, "B");
    }
    pair_fini(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_says_every_operation),
        cmocka_unit_test(t_one_write_per_turn),
        cmocka_unit_test(t_replies_cut_anywhere),
        cmocka_unit_test(t_late_reply_meets_nobody),
        cmocka_unit_test(t_deadline_is_nearer_than_the_timeout),
        cmocka_unit_test(t_forgotten_slots_count),
        cmocka_unit_test(t_nonsense_ends_it),
        cmocka_unit_test(t_nonsense_in_pieces_ends_it),
        cmocka_unit_test(t_end_of_stream),
        cmocka_unit_test(t_silence),
        cmocka_unit_test(t_probe_before_ready),
        cmocka_unit_test(t_drains),
        cmocka_unit_test(t_large_reply_by_reference),
        cmocka_unit_test(t_large_request_by_reference),
        cmocka_unit_test(t_values_of_all_sizes),
        cmocka_unit_test(t_prefix_and_key_too_long),
        cmocka_unit_test(t_unsent_moves),
        cmocka_unit_test(t_behind_a_half_sent_request),
        cmocka_unit_test(t_opaque_wraps),
    };
    return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
