// t_link_login - a connection is somebody's before it carries requests, and may become another's
// SPDX-License-Identifier: BSD-3-Clause
#include "pair.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "proto/opcode.h"

static const struct hg_identity anna = {.id = 1, .user = "anna", .password = "secret"};
static const struct hg_identity berta = {.id = 2, .user = "berta", .password = "x"};

/* A pair whose link is another one, which logs in. */
static void pair_as(struct pair *pair, const struct hg_identity *identity, bool probe)
{
    int fds[2];
    pair_init(pair, false);
    pair->readies = 0;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    struct hg_link *link = hg_link_new(&pair->hub, &hg_dialect_memcached, &pair->limits,
                                       pair->link->owner, pair, &pair->counters);
    assert_non_null(link);
    hg_link_end(pair->link, HG_LINK_LET_GO, 0);
    pair->ends = 0;
    close(pair->fd);
    pair->fd = fds[1];
    pair->link = link;
    link->server = "test:1";
    link->identity = identity;
    hg_link_adopt(link, fds[0], probe);
    pair_turn(pair);
}

/* Reads a login; returns its length. */
static size_t hear_login(struct pair *pair, uint8_t *in, const char *plain, size_t plain_len)
{
    size_t n = pair_hear(pair, in, 256);
    assert_true(n >= 24 + 5 + plain_len);
    assert_int_equal(in[1], HG_OPCODE_SASL_AUTH);
    assert_int_equal(hg_get_u16(in + 2), 5);
    assert_int_equal(hg_get_u32(in + 8), 5 + plain_len);
    assert_memory_equal(in + 24, "PLAIN", 5);
    assert_memory_equal(in + 29, plain, plain_len);
    return n;
}

static void say(struct pair *pair, uint8_t opcode, uint16_t status, uint32_t opaque,
                const char *text)
{
    uint8_t out[256];
    pair_say(pair, out, fake_encode(out, opcode, status, opaque, 0, NULL, 0, text, strlen(text)));
    pair_turn(pair);
}

static void t_logs_in_before_it_is_ready(void **state)
{
    (void)state;
    struct pair pair;
    uint8_t in[256];
    pair_as(&pair, &anna, false);
    assert_int_equal(hear_login(&pair, in, "\0anna\0secret", 12), 24 + 5 + 12);
    assert_int_equal(pair.readies, 0);
    say(&pair, HG_OPCODE_SASL_AUTH, 0, hg_get_u32(in + 12), "");
    assert_int_equal(pair.readies, 1);
    struct note note;
    pair_get(&pair, &note, "key");
    pair_turn(&pair);
    pair_say_found(&pair, 1, "value");
    pair_turn(&pair);
    assert_int_equal(note.done, 1);
    pair_fini(&pair);
}

static void t_login_and_probe_are_both_answered_first(void **state)
{
    (void)state;
    struct pair pair;
    uint8_t in[256];
    pair_as(&pair, &anna, true);
    assert_int_equal(hear_login(&pair, in, "\0anna\0secret", 12), 24 + 5 + 12 + 24);
    assert_int_equal(in[24 + 5 + 12 + 1], HG_OPCODE_NOOP);
    say(&pair, HG_OPCODE_SASL_AUTH, 0, 0, "");
    assert_int_equal(pair.readies, 0);
    say(&pair, HG_OPCODE_NOOP, 0, 0, "");
    assert_int_equal(pair.readies, 1);
    pair_fini(&pair);
}

static void t_a_refused_login_ends_it(void **state)
{
    (void)state;
    for (int probe = 0; probe < 2; probe++) {
        struct pair pair;
        pair_as(&pair, &anna, probe);
        say(&pair, HG_OPCODE_SASL_AUTH, HG_STATUS_AUTH_ERROR, 0, "Auth failure.");
        assert_int_equal(pair.readies, 0);
        assert_int_equal(pair.ends, 1);
        assert_int_equal(pair.why, HG_LINK_REJECTED);
        pair_fini(&pair);
    }
}

static void t_another_error_is_no_refusal(void **state)
{
    (void)state;
    struct pair pair;
    pair_as(&pair, &anna, false);
    say(&pair, HG_OPCODE_SASL_AUTH, HG_STATUS_EBUSY, 0, "not now");
    assert_int_equal(pair.ends, 1);
    assert_int_equal(pair.why, HG_LINK_NO_CONNECT);
    pair_fini(&pair);
}

static void t_becomes_another_s_when_empty(void **state)
{
    (void)state;
    struct pair pair;
    uint8_t in[256];
    struct note note;
    pair_init(&pair, false);
    pair_get(&pair, &note, "key");
    pair_turn(&pair);
    pair_hear(&pair, in, sizeof in);
    pair_say_found(&pair, 0, "value");
    pair_turn(&pair);
    hg_link_rebind(pair.link, &berta);
    assert_int_equal(pair.link->state, HG_LINK_HANDSHAKE);
    pair_turn(&pair);
    hear_login(&pair, in, "\0berta\0x", 8);
    assert_int_equal(pair.readies, 1);
    say(&pair, HG_OPCODE_SASL_AUTH, 0, 1, "");
    assert_int_equal(pair.readies, 2);
    assert_ptr_equal(pair.link->identity, &berta);
    pair_fini(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_logs_in_before_it_is_ready),
        cmocka_unit_test(t_login_and_probe_are_both_answered_first),
        cmocka_unit_test(t_a_refused_login_ends_it),
        cmocka_unit_test(t_another_error_is_no_refusal),
        cmocka_unit_test(t_becomes_another_s_when_empty),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
