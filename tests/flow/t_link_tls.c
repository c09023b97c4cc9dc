// t_link_tls - a link over TLS: the same requests and replies, however the bytes come
// SPDX-License-Identifier: BSD-3-Clause
#include "wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/opcode.h"

#define RECORD 17 /* bytes that a record of version 1.3 has more than what it carries */

/* ---- as without ---- */

static void t_a_request_and_its_reply(void **state)
{
    (void)state;
    struct wire *wire = wire_new(&(struct rules){0});
    struct note note;
    pair_get(&wire->pair, &note, "confidential"); /* waits for the handshake */
    assert_int_equal(wire->pair.link->state, HG_LINK_CONNECTING);
    wire_come_up(wire);
    WIRE_UNTIL(wire, wire->heard_len > 0);
    assert_int_equal(wire->heard[1], HG_OPCODE_GET);
    assert_memory_equal(wire->heard + 24, "confidential", 12);
    assert_int_equal(wire->raw[0], 22); /* a greeting of TLS is the first word */
    assert_null(memmem(wire->raw, wire->raw_len, "confidential", 12));
    wire_say_found(wire, 0, "value");
    WIRE_UNTIL(wire, note.done > 0);
    assert_int_equal(note.result.status, HG_STATUS_SUCCESS);
    assert_string_equal(note.value, "value");
    assert_int_equal(wire->pair.answers, 1);
    assert_int_equal(wire_failures(wire), 0);
    assert_int_equal(hg_counter_get(&wire->pair.counters.values[HG_UPSTREAM_BYTES_OUT]), 36);
    wire_free(wire);
}

static void t_in_pieces_of_any_size(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 5, 21, 777};
    static uint8_t reply[70000];
    for (size_t i = 0; i < HG_COUNT_OF(sizes); i++) {
        struct wire *wire = wire_new(&(struct rules){0});
        struct note notes[2];
        wire->most = sizes[i];
        pair_get(&wire->pair, &notes[0], "a");
        wire_come_up(wire);
        pair_get(&wire->pair, &notes[1], "b");
        WIRE_UNTIL(wire, wire->heard_len == 50);
        size_t len = 20000;
        memset(reply, 'x', sizeof reply);
        size_t whole = fake_encode(reply, HG_OPCODE_GET, 0, 0, 7, (const uint8_t *)"\0\0\0\0", 4,
                                   memset(reply + 40000, 'y', len), len);
        wire_say(wire, reply, whole);
        wire_say_found(wire, 1, "last");
        WIRE_UNTIL(wire, notes[1].done > 0);
        assert_int_equal(notes[0].done, 1);
        assert_int_equal(notes[0].value_len, len);
        assert_string_equal(notes[1].value, "last");
        wire_free(wire);
    }
}

static void t_logs_in_as_without(void **state)
{
    (void)state;
    uint8_t out[64];
    struct wire *wire = wire_new(&(struct rules){.probe = true});
    WIRE_UNTIL(wire, wire->heard_len > 0);
    assert_int_equal(wire->heard[1], HG_OPCODE_NOOP);
    assert_int_equal(wire->pair.link->state, HG_LINK_HANDSHAKE);
    assert_int_equal(wire->pair.readies, 0);
    wire_say(wire, out, fake_encode(out, HG_OPCODE_NOOP, 0, 0, 0, NULL, 0, NULL, 0));
    wire_come_up(wire);
    wire_free(wire);
}

/* What a server says at once is read with the end of the handshake (it has the last word in version
   1.2), and no event tells of it. */
static void t_what_was_read_with_the_handshake(void **state)
{
    (void)state;
    struct wire *wire = wire_new(&(struct rules){.is_old = true});
    wire_say_found(wire, 0, "unasked");
    WIRE_UNTIL(wire, wire->pair.ends == 1);
    assert_int_equal(wire->pair.why, HG_LINK_GARBAGE);
    wire_free(wire);
}

/* So many replies of 728 bytes are there before the link has a turn. False: not allowed. */
static bool answer_at_once(uint32_t replies)
{
    static struct note notes[1500];
    struct wire *wire = wire_new(&(struct rules){.depth = replies});
    char value[701];
    int bytes = 8 << 20;
    bool may = setsockopt(wire->pair.fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) == 0;
    wire_come_up(wire);
    for (uint32_t i = 0; i < replies; i++)
        pair_get(&wire->pair, &notes[i], "k");
    WIRE_UNTIL(wire, wire->heard_len == 25 * replies);
    memset(value, 'v', 700);
    value[700] = '\0';
    for (uint32_t i = 0; i < replies; i++)
        wire_say_found(wire, i, value);
    for (int i = 0; may && i < WIRE_TURNS; i++) {
        wire_serve(wire);
        wire_pass_back(wire);
    }
    for (int i = 0; may && i < 3; i++)
        pair_turn(&wire->pair);
    assert_true(!may || notes[replies - 1].done == 1);
    wire_free(wire);
    return may;
}

/* More than a link reads in a turn (4 times the hub's room): the last of it is decrypted, or read
   to be, when its reads are over and the socket is empty. */
static void t_what_no_event_tells_of(void **state)
{
    (void)state;
    for (uint32_t more = 1; more < 24; more += 2)
        if (!answer_at_once(4 * HG_HUB_SCRATCH_BYTES / 728 + more)) {
            print_message("# not allowed to make the buffer of a socket that large\n");
            return;
        }
}

/* Lengths of what the records from the link carried, after its handshake. */
static size_t records(const struct wire *wire, size_t from, size_t *lens, size_t max)
{
    size_t count = 0;
    for (size_t at = from; at + 5 <= wire->raw_len && count < max;) {
        size_t len = (size_t)wire->raw[at + 3] << 8 | wire->raw[at + 4];
        assert_int_equal(wire->raw[at], 23);
        lens[count++] = len - RECORD;
        at += 5 + len;
    }
    return count;
}

static void t_records_hold_whole_requests(void **state)
{
    (void)state;
    static const size_t values[] = {9000, 9000, 0, 40000, 0};
    static char value[40000];
    const size_t head = 24 + 8 + 1;
    const size_t wanted[] = {head + 9000, head + 9000 + 25, 16384, 16384, head + 40000 - 32768, 25};
    struct wire *wire = wire_new(&(struct rules){0});
    struct note notes[HG_COUNT_OF(values)];
    size_t lens[16];
    wire_come_up(wire);
    for (int i = 0; i < 5; i++)
        wire_turn(wire);
    size_t from = wire->raw_len;
    for (size_t i = 0; i < HG_COUNT_OF(values); i++) {
        note_init(&notes[i], NULL, values[i] > 0 ? HG_OP_SET : HG_OP_GET, "k");
        notes[i].call.value = hg_span(value, values[i]);
        pair_send(&wire->pair, &notes[i]);
    }
    WIRE_UNTIL(wire, wire->heard_len == 3 * head + 58000 + 2 * 25);
    assert_int_equal(records(wire, from, lens, HG_COUNT_OF(lens)), HG_COUNT_OF(wanted));
    for (size_t i = 0; i < HG_COUNT_OF(wanted); i++)
        assert_int_equal(lens[i], wanted[i]);
    wire_free(wire);
}

/* ---- the server goes, or is none ---- */

static void t_closed_at_every_byte_of_the_handshake(void **state)
{
    (void)state;
    struct wire *wire = wire_new(&(struct rules){.probe = true});
    WIRE_UNTIL(wire, wire->heard_len > 0);
    size_t whole = wire->sent;
    wire_free(wire);
    assert_true(whole > 500);
    for (size_t limit = 0; limit < whole; limit += 1 + limit % 13) {
        wire = wire_new(&(struct rules){.probe = true});
        wire->limit = limit;
        WIRE_UNTIL(wire, wire->pair.ends == 1);
        assert_int_equal(wire->pair.readies, 0);
        /* The handshake is over before its last bytes, tickets, have come. */
        assert_true(wire->pair.why == HG_LINK_TLS_FAILED || wire->pair.why == HG_LINK_CLOSED);
        wire_free(wire);
    }
}

static void t_garbage(void **state)
{
    (void)state;
    static const char *const texts[] = {"HTTP/1.1", "ERROR\r\n", "\x15\x03\x03\x00\x02\x02\x28",
                                        "\x81\x0a\0\0\0\0\0\0"};
    for (size_t i = 0; i < HG_COUNT_OF(texts); i++) {
        struct wire *wire = wire_new(&(struct rules){0});
        hg_tls_free(wire->tls);
        wire->tls = NULL; /* it says nothing */
        assert_int_equal(send(wire->pair.fd, texts[i], 7, MSG_NOSIGNAL), 7);
        wire_assert_refused(wire, "");
        wire_free(wire);
    }
}

/* What the pool does when connect_timeout_ms is over. */
static void t_time_is_up(void **state)
{
    (void)state;
    struct wire *wire = wire_new(&(struct rules){0});
    struct note note;
    pair_get(&wire->pair, &note, "k");
    pair_turn(&wire->pair);
    hg_link_end(wire->pair.link, HG_LINK_NO_CONNECT, -ETIMEDOUT);
    wire_assert_refused(wire, "no answer in time");
    assert_int_equal(note.done, 1);
    assert_int_equal(note.result.fault, HG_FAULT_DOWN); /* it was never sent */
    wire_free(wire);
}

static void t_lost_while_it_is_used(void **state)
{
    (void)state;
    for (int spoilt = 0; spoilt < 2; spoilt++) {
        struct wire *wire = wire_new(&(struct rules){0});
        struct note note;
        wire_come_up(wire);
        pair_get(&wire->pair, &note, "k");
        WIRE_UNTIL(wire, wire->heard_len > 0);
        if (spoilt) {
            wire->spoil = wire->sent + 20;
            wire_say_found(wire, 0, "value");
        } else {
            wire_hang_up(wire);
        }
        WIRE_UNTIL(wire, wire->pair.ends == 1);
        assert_int_equal(wire->pair.why, HG_LINK_CLOSED);
        assert_int_equal(note.done, 1);
        assert_int_equal(note.result.fault, HG_FAULT_LOST);
        assert_int_equal(wire_failures(wire), 0);
        wire_free(wire);
    }
}

/* What lies in a record of which the socket took a part was not sent: it goes to another link. */
static void t_unsent_requests_move(void **state)
{
    (void)state;
    static char value[900000];
    struct wire *wire = wire_new(&(struct rules){0});
    struct note notes[2];
    int fd;
    wire_come_up(wire);
    note_init(&notes[0], NULL, HG_OP_SET, "large");
    notes[0].call.value = hg_span(value, sizeof value);
    pair_send(&wire->pair, &notes[0]);
    pair_get(&wire->pair, &notes[1], "next");
    pair_turn(&wire->pair); /* nobody reads: the socket is full */
    assert_true(wire->pair.link->blocked);
    struct hg_link *link = wire->pair.link, *heir = pair_new_link(&wire->pair, &fd, false);
    wire->pair.heir = heir;
    hg_link_end(link, HG_LINK_CLOSED, 0);
    assert_int_equal(notes[0].done, 1);
    assert_int_equal(notes[0].result.fault, HG_FAULT_LOST);
    assert_int_equal(notes[1].done, 0);
    assert_ptr_equal(notes[1].call.place.link, heir);
    hg_link_end(heir, HG_LINK_LET_GO, 0);
    assert_int_equal(notes[1].done, 1);
    close(fd);
    wire_free(wire);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_a_request_and_its_reply),
        cmocka_unit_test(t_in_pieces_of_any_size),
        cmocka_unit_test(t_logs_in_as_without),
        cmocka_unit_test(t_what_was_read_with_the_handshake),
        cmocka_unit_test(t_what_no_event_tells_of),
        cmocka_unit_test(t_records_hold_whole_requests),
        cmocka_unit_test(t_closed_at_every_byte_of_the_handshake),
        cmocka_unit_test(t_garbage),
        cmocka_unit_test(t_time_is_up),
        cmocka_unit_test(t_lost_while_it_is_used),
        cmocka_unit_test(t_unsent_requests_move),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, wire_begin, wire_end);
}
