// t_link - a connection matches replies to requests, whatever the server or the clock does
// SPDX-License-Identifier: BSD-3-Clause
#include "pair.h"

#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "proto/opcode.h"

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
    for (unsigned op = 0; op < HG_OPS_CLASSIC; op++) {
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
        pair_send(&pair, &note);
        pair_turn(&pair);
        uint8_t in[256];
        size_t extras = stores                                             ? 8
                        : counts                                           ? 20
                        : appends || op == HG_OP_GET || op == HG_OP_DELETE ? 0
                                                                           : 4;
        size_t key = op == HG_OP_FLUSH ? 0 : 8, value = note.call.value.len;
        assert_int_equal(pair_hear(&pair, in, sizeof in), 24 + extras + key + value);
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
        pair_say(&pair, out,
                 fake_encode(out, codes[op], 0, op, 77, flags, reads ? 4 : 0,
                             counts ? (void *)number : "found",
                             counts  ? 8
                             : reads ? 5
                                     : 0));
        pair_turn(&pair);
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
        pair_get(&pair, &notes[i], "k");
    assert_false(hg_link_has_room(pair.link));
    assert_int_equal(pair_hear(&pair, in, sizeof in), 0); /* nothing before the end of the turn */
    pair_turn(&pair);
    assert_int_equal(pair_hear(&pair, in, sizeof in), 8 * 25);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(hg_get_u32(in + i * 25 + 12), i);
    uint8_t out[8 * 64];
    size_t len = 0;
    for (uint32_t i = 0; i < 8; i++)
        len += pair_found(out + len, i, "vv");
    note_reset_order();
    pair_say(&pair, out, len);
    pair_turn(&pair);
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
        pair_get(&pair, &a, "a");
        pair_get(&pair, &b, "b");
        pair_get(&pair, &c, "c");
        size_t len = pair_found(out, opaque, "short");
        len += fake_encode(out + len, HG_OPCODE_GET, 1, opaque + 1, 0, NULL, 0, "Not found", 9);
        len += pair_found(out + len, opaque + 2, big);
        assert_int_equal(len, total);
        opaque += 3;
        if (at < total) {
            pair_say(&pair, out, at);
            pair_turn(&pair);
            pair_say(&pair, out + at, total - at);
            pair_turn(&pair);
        } else {
            for (size_t i = 0; i < total; i++) {
                assert_int_equal(c.done, 0);
                pair_say(&pair, out + i, 1);
                pair_turn(&pair);
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
    pair_get(&pair, &first, "slow");
    pair_turn(&pair);
    uint64_t end_us = first.call.sent_us + pair.limits.timeout_us;
    hg_link_tick(pair.link, end_us - 1);
    assert_int_equal(first.done, 0);
    hg_link_tick(pair.link, end_us);
    assert_int_equal(first.done, 1);
    assert_int_equal(first.result.fault, HG_FAULT_TIMEOUT);
    assert_int_equal(pair.timeouts, 1);
    assert_int_equal(hg_link_pending(pair.link), 1); /* forgotten, and still in the way */
    pair_get(&pair, &second, "slow");
    pair_turn(&pair);
    pair_say_found(&pair, 0, "of the first");
    pair_turn(&pair);
    assert_int_equal(second.done, 0);
    pair_say_found(&pair, 1, "of the second");
    pair_turn(&pair);
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
    pair_turn(&pair);
    uint64_t now_us = pair.rig.loop.now_us;
    pair_get(&pair, &far, "far");
    note_init(&near, NULL, HG_OP_GET, "near");
    near.call.deadline_us = now_us + 500;
    pair_send(&pair, &near);
    hg_link_tick(pair.link, now_us + 499);
    assert_int_equal(near.done, 0);
    hg_link_tick(pair.link, now_us + 500);
    assert_int_equal(near.done, 1);
    assert_int_equal(near.result.fault, HG_FAULT_TIMEOUT);
    assert_int_equal(far.done, 0);
    pair_turn(&pair);
    pair_say_found(&pair, 0, "x");
    pair_turn(&pair);
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
        pair_get(&pair, &notes[i], "k");
    for (int i = 0; i < 8; i++)
        hg_link_cancel(pair.link, &notes[i].call);
    assert_false(hg_link_has_room(pair.link));
    pair.link->full = true;
    pair_turn(&pair);
    uint8_t out[512];
    pair_say(&pair, out, pair_found(out, 0, "dropped"));
    pair_turn(&pair);
    assert_int_equal(pair.rooms, 1);
    assert_true(hg_link_has_room(pair.link));
    pair_get(&pair, &next, "next");
    pair_turn(&pair);
    for (uint32_t i = 1; i < 9; i++)
        pair_say_found(&pair, i, i == 8 ? "mine" : "dropped");
    pair_turn(&pair);
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
    pair_get(&pair, &a, "a");
    pair_get(&pair, &gone, "gone");
    pair_get(&pair, &b, "b");
    hg_link_cancel(pair.link, &gone.call);
    pair_turn(&pair);
    pair_say(&pair, bytes, len);
    pair_turn(&pair);
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
    ends_with(out, pair_found(out, 1, "opaque of the next"), 0);
    ends_with(out, pair_found(out, 0xffffffff, "opaque of nobody"), 0);
    size_t len = fake_encode(out, HG_OPCODE_SET, 0, 0, 1, NULL, 0, NULL, 0);
    ends_with(out, len, 0); /* another opcode */
    len = fake_encode(out, HG_OPCODE_GET, 0, 0, 1, NULL, 0, "no flags", 8);
    ends_with(out, len, 0);
    len = pair_found(out, 0, "x");
    hg_put_u32(out + 8, (4 << 20) + 1); /* longer than allowed */
    ends_with(out, len, 0);
    len = pair_found(out, 0, "x");
    hg_put_u16(out + 2, 9); /* key and extras longer than the body */
    ends_with(out, len, 0);
    len = pair_found(out, 0, "x");
    len += pair_found(out + len, 2, "skipped one");
    ends_with(out, len, 1);
    len = pair_found(out, 0, "x");
    len += pair_found(out + len, 1, "x");
    len += pair_found(out + len, 2, "x");
    len += pair_found(out + len, 3, "one too many");
    ends_with(out, len, 3);
}

static void t_nonsense_in_pieces_ends_it(void **state)
{
    (void)state;
    struct pair pair;
    struct note a;
    uint8_t out[128];
    pair_init(&pair, false);
    pair_get(&pair, &a, "a");
    pair_turn(&pair);
    size_t len = pair_found(out, 5, "another's");
    pair_say(&pair, out, len - 1);
    pair_turn(&pair);
    assert_int_equal(a.done, 0);
    pair_say(&pair, out + len - 1, 1);
    pair_turn(&pair);
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
    pair_get(&pair, &a, "a");
    pair_get(&pair, &b, "b");
    pair_turn(&pair);
    size_t len = pair_found(out, 0, "last words");
    pair_say(&pair, out, len);
    shutdown(pair.fd, SHUT_WR);
    pair_turn(&pair);
    pair_turn(&pair);
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
    pair_turn(&pair);
    hg_link_tick(pair.link, pair.rig.loop.now_us + 100000000); /* idle is not silent */
    assert_int_equal(pair.ends, 0);
    pair_get(&pair, &a, "a");
    uint64_t sent_us = a.call.sent_us;
    assert_true(sent_us == pair.rig.loop.now_us);
    pair_turn(&pair);
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
    pair_turn(&pair);
    assert_int_equal(pair_hear(&pair, in, sizeof in), 24);
    assert_int_equal(in[1], HG_OPCODE_NOOP);
    assert_int_equal(pair.readies, 0);
    pair_say(&pair, out,
             fake_encode(out, HG_OPCODE_NOOP, 0, hg_get_u32(in + 12), 0, NULL, 0, NULL, 0));
    pair_turn(&pair);
    assert_int_equal(pair.readies, 1);
    assert_int_equal(pair.link->state, HG_LINK_READY);
    pair_fini(&pair);

    pair_init(&pair, true);
    pair_turn(&pair);
    assert_int_equal(pair_hear(&pair, in, sizeof in), 24);
    pair_say(&pair, out, fake_encode(out, HG_OPCODE_NOOP, 0x20, 0, 0, NULL, 0, "log in", 6));
    pair_turn(&pair);
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
    pair_get(&pair, &a, "a");
    pair_turn(&pair);
    hg_link_drain(pair.link);
    assert_int_equal(pair.link->state, HG_LINK_DRAINING);
    pair_say_found(&pair, 0, "x");
    pair_turn(&pair);
    assert_int_equal(a.done, 1);
    assert_int_equal(a.result.fault, HG_FAULT_NONE);
    assert_int_equal(pair.ends, 1);
    assert_int_equal(pair.why, HG_LINK_LET_GO);
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
        pair_get(&pair, &a, "a");
        pair_get(&pair, &b, "b");
        pair_turn(&pair);
        pair_say_found(&pair, 0xfffffffe + 2 * i, "A");
        pair_say_found(&pair, 0xffffffff + 2 * i, "B");
        pair_turn(&pair);
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
        cmocka_unit_test(t_opaque_wraps),
    };
    return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
