// t_slotsreply - CLUSTER SLOTS from servers that are right, odd, and hostile
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "back/slotsreply.h"
#include "base/attr.h"
#include "base/prng.h"

/* Feeds `len` bytes in pieces of at most `piece`. */
static enum hg_codec feed(struct hg_slotsreply *reply, const char *bytes, size_t len, size_t piece)
{
    enum hg_codec codec = HG_MORE;
    for (size_t at = 0; at < len && codec == HG_MORE; at += piece)
        codec = hg_slotsreply_feed(reply, bytes + at, len - at < piece ? len - at : piece);
    return codec;
}

static struct hg_slotsreply *take(const char *text, const char *asked, unsigned before)
{
    struct hg_slotsreply *reply = hg_slotsreply_new(asked, before);
    assert_non_null(reply);
    enum hg_codec codec = feed(reply, text, strlen(text), SIZE_MAX);
    if (codec != HG_OK)
        fail_msg("not taken: %s", hg_slotsreply_why(reply));
    hg_slotsreply_free(reply);
    reply = hg_slotsreply_new(asked, before);
    assert_int_equal(feed(reply, text, strlen(text), 1), HG_OK);
    return reply;
}

static const char *owner(const struct hg_slots *slots, uint32_t slot)
{
    uint16_t node = slots->owner[slot];
    return node == HG_SLOTS_NONE ? "none" : slots->nodes[node].address;
}

#define NODE(len, host, port) "*3\r\n$" #len "\r\n" host "\r\n:" #port "\r\n$2\r\nid\r\n"
#define THREE                                                                                      \
    "*3\r\n"                                                                                       \
    "*4\r\n:0\r\n:5460\r\n" NODE(9, "127.0.0.1", 7000)                                             \
        NODE(9, "127.0.0.1", 7003) "*4\r\n:5461\r\n:10922\r\n" NODE(9, "127.0.0.1", 7001)          \
            NODE(9, "127.0.0.1", 7004) "*4\r\n:10923\r\n:16383\r\n" NODE(9, "127.0.0.1", 7002)     \
                NODE(9, "127.0.0.1", 7005)

static void t_three_masters(void **state)
{
    (void)state;
    struct hg_slotsreply *reply = take(THREE, "seed:1", 0);
    const struct hg_slots *slots = hg_slotsreply_slots(reply);
    assert_int_equal(slots->node_count, 6);
    assert_int_equal(slots->uncovered, 0);
    assert_string_equal(owner(slots, 0), "127.0.0.1:7000");
    assert_string_equal(owner(slots, 5460), "127.0.0.1:7000");
    assert_string_equal(owner(slots, 5461), "127.0.0.1:7001");
    assert_string_equal(owner(slots, 10922), "127.0.0.1:7001");
    assert_string_equal(owner(slots, 16383), "127.0.0.1:7002");
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(slots->nodes[i].owns, i % 2 == 0);
    hg_slotsreply_free(reply);
}

static void t_behind_a_login(void **state)
{
    (void)state;
    struct hg_slotsreply *reply = take("+OK\r\n+PONG\r\n" THREE, "seed:1", 2);
    assert_int_equal(hg_slotsreply_slots(reply)->uncovered, 0);
    hg_slotsreply_free(reply);
}

/* Hosts of all kinds, holes, a node with many stretches, what later versions add. */
static void t_odd_ones(void **state)
{
    (void)state;
    struct hg_slotsreply *reply = take(
        "*6\r\n"
        "*3\r\n:0\r\n:9\r\n*2\r\n$0\r\n\r\n:7000\r\n"
        "*3\r\n:20\r\n:20\r\n*2\r\n$-1\r\n:7001\r\n"
        "*3\r\n:30\r\n:31\r\n" NODE(3, "::1", 7002) "*4\r\n:40\r\n:49\r\n" NODE(1, "?", 7003)
            NODE(1, "?", 7004) "*3\r\n:50\r\n:59\r\n*4\r\n$6\r\nnode-1\r\n:7000\r\n$2\r\nid\r\n"
                               "*4\r\n$2\r\nip\r\n*1\r\n:5\r\n:7\r\n$-1\r\n"
                               "*3\r\n:16383\r\n:16383\r\n*2\r\n+10.0.0.1\r\n:7000\r\n",
        "10.0.0.1:6379", 0);
    const struct hg_slots *slots = hg_slotsreply_slots(reply);
    assert_string_equal(owner(slots, 9), "10.0.0.1:7000");
    assert_string_equal(owner(slots, 10), "none");
    assert_string_equal(owner(slots, 20), "10.0.0.1:7001");
    assert_string_equal(owner(slots, 31), "[::1]:7002");
    assert_string_equal(owner(slots, 45), "none");
    assert_string_equal(owner(slots, 50), "node-1:7000");
    assert_int_equal(slots->owner[16383], slots->owner[0]);
    assert_int_equal(slots->node_count, 4);
    assert_int_equal(slots->uncovered, HG_KEYSLOTS - 10 - 1 - 2 - 10 - 1);
    hg_slotsreply_free(reply);
    reply = take("*0\r\n", "a:1", 0);
    assert_int_equal(hg_slotsreply_slots(reply)->uncovered, HG_KEYSLOTS);
    hg_slotsreply_free(reply);
    reply = take("*1\r\n*2\r\n:0\r\n:16383\r\n", "a:1", 0);
    assert_int_equal(hg_slotsreply_slots(reply)->uncovered, HG_KEYSLOTS);
    assert_string_equal(owner(hg_slotsreply_slots(reply), 5), "none");
    hg_slotsreply_free(reply);
    reply = take("*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n$0\r\n\r\n:7000\r\n", "unix:/run/redis", 0);
    assert_string_equal(owner(hg_slotsreply_slots(reply), 5), "none");
    hg_slotsreply_free(reply);
    /* A master whose address is lost, as Redis tells of it, hides nobody else. */
    reply = take("*2\r\n"
                 "*4\r\n:0\r\n:5\r\n*2\r\n$0\r\n\r\n:0\r\n*2\r\n$1\r\nb\r\n:1\r\n"
                 "*4\r\n:6\r\n:9\r\n*2\r\n$1\r\nc\r\n:2\r\n*2\r\n$0\r\n\r\n:0\r\n",
                 "a:1", 0);
    assert_string_equal(owner(hg_slotsreply_slots(reply), 5), "none");
    assert_string_equal(owner(hg_slotsreply_slots(reply), 6), "c:2");
    assert_int_equal(hg_slotsreply_slots(reply)->node_count, 2);
    assert_int_equal(hg_slotsreply_slots(reply)->uncovered, HG_KEYSLOTS - 4);
    hg_slotsreply_free(reply);
}

static void t_hostile(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"-ERR This instance has cluster support disabled\r\n",
         "cluster support disabled: use an upstream of kind redis"},
        {"-NOAUTH Authentication required.\r\n", "NOAUTH"},
        {"+OK\r\n", "something else"},
        {":5\r\n", "something else"},
        {"$-1\r\n", "something else"},
        {"$5\r\nhello\r\n", "something else"},
        {"*-1\r\n", "something else"},
        {"*1\r\n:5\r\n", "out of place"},
        {"*1\r\n$-1\r\n", "out of place"},
        {"*1\r\n*1\r\n", "without its slots"},
        {"*1\r\n*0\r\n", "without its slots"},
        {"*1\r\n*3\r\n:-1\r\n:5\r\n", "cannot be"},
        {"*1\r\n*3\r\n:0\r\n:16384\r\n", "cannot be"},
        {"*1\r\n*3\r\n:5\r\n:4\r\n", "cannot be"},
        {"*1\r\n*3\r\n:16384\r\n:16390\r\n", "cannot be"},
        {"*1\r\n*3\r\n:9223372036854775807\r\n:9223372036854775807\r\n", "cannot be"},
        {"*1\r\n*3\r\n$1\r\n0\r\n:5\r\n", "out of place"},
        {"*1\r\n*3\r\n*2\r\n:0\r\n:5\r\n", "a slot should be"},
        {"*1\r\n*3\r\n:0\r\n:5\r\n:6\r\n", "out of place"},
        {"*1\r\n*3\r\n:0\r\n:5\r\n*0\r\n", "address"},
        {"*1\r\n*3\r\n:0\r\n:5\r\n*1\r\n", "address"},
        {"*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n:7\r\n:7\r\n", "out of place"},
        {"*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n*1\r\n", "an array for an address"},
        {"*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n$1\r\na\r\n$1\r\n7\r\n", "out of place"},
        {"*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n$1\r\na\r\n:-1\r\n", "port -1"},
        {"*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n$1\r\na\r\n:65536\r\n", "port 65536"},
        {"*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n$3\r\na b\r\n:1\r\n", "no valid address"},
        {"*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n$5\r\n/path\r\n:1\r\n", "no valid address"},
        {"*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n-ERR\r\n:1\r\n", "out of place"},
        {"*2\r\n*3\r\n:0\r\n:5\r\n*2\r\n$1\r\na\r\n:1\r\n*3\r\n:5\r\n:6\r\n", "slot 5 is named"},
        {"*2\r\n*2\r\n:0\r\n:5\r\n*2\r\n:0\r\n:0\r\n", "slot 0 is named"},
        {"*16385\r\n", "16385 stretches"},
        {"*2147483647\r\n", "stretches"},
        {"*99999999999999999999\r\n", ""},
        {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", "without"},
        {"*1\r\n*3\r\n:0\r\n:1\r\n*3\r\n+a\r\n:1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
         ""},
        {"$-2\r\n", ""},
        {"GET / HTTP/1.1\r\n", ""},
        {"\x81\x00\x00\x00", ""},
    };
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++) {
        for (size_t piece = 1; piece < 300; piece = piece * 3 + 1) {
            struct hg_slotsreply *reply = hg_slotsreply_new("seed:1", 0);
            enum hg_codec codec = feed(reply, rows[i].text, strlen(rows[i].text), piece);
            if (codec != HG_BAD || strstr(hg_slotsreply_why(reply), rows[i].why) == NULL ||
                hg_slotsreply_why(reply)[0] == '\0')
                fail_msg("%s: %d '%s'", rows[i].text, codec, hg_slotsreply_why(reply));
            hg_slotsreply_free(reply);
        }
    }
}

static void t_login_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"-WRONGPASS no\r\n" THREE, "+OK\r\n-ERR no\r\n" THREE,
                                        "*1\r\n+OK\r\n" THREE};
    for (size_t i = 0; i < HG_COUNT_OF(texts); i++) {
        struct hg_slotsreply *reply = hg_slotsreply_new("seed:1", 2);
        assert_int_equal(feed(reply, texts[i], strlen(texts[i]), 7), HG_BAD);
        hg_slotsreply_free(reply);
    }
}

/* A reply without end is given up, whatever it claims to be. */
static void t_endless(void **state)
{
    (void)state;
    static char piece[65536];
    memset(piece, 'x', sizeof piece);
    struct hg_slotsreply *reply = hg_slotsreply_new("seed:1", 0);
    enum hg_codec codec = feed(reply, "$9000000000000000000\r\n", 22, 100);
    size_t fed = 0;
    for (; codec == HG_MORE; fed += sizeof piece)
        codec = hg_slotsreply_feed(reply, piece, sizeof piece);
    assert_int_equal(codec, HG_BAD);
    assert_in_range(fed, 1, HG_SLOTSREPLY_MAX_BYTES + sizeof piece);
    assert_non_null(strstr(hg_slotsreply_why(reply), "bytes"));
    hg_slotsreply_free(reply);
}

/* As many stretches and nodes as can be, and more nodes than are wanted. */
static void t_largest(void **state)
{
    (void)state;
    char *text = malloc(HG_SLOTSREPLY_MAX_BYTES), *at = text;
    at += sprintf(at, "*16384\r\n");
    for (int slot = 16383; slot >= 0; slot--) {
        int n = slot % 1500;
        at += sprintf(at, "*3\r\n:%d\r\n:%d\r\n*3\r\n$10\r\n10.1.%d.%d\r\n:%d\r\n$2\r\nid\r\n",
                      slot, slot, 10 + n / 90, 10 + n % 90, 1000 + n);
    }
    struct hg_slotsreply *reply = hg_slotsreply_new("seed:1", 0);
    assert_int_equal(feed(reply, text, (size_t)(at - text), 16384), HG_OK);
    const struct hg_slots *slots = hg_slotsreply_slots(reply);
    assert_int_equal(slots->node_count, HG_SLOTS_NODES_MAX);
    uint32_t none = 0;
    for (int slot = 0; slot < HG_KEYSLOTS; slot++) {
        int n = slot % 1500;
        char address[40];
        snprintf(address, sizeof address, "10.1.%d.%d:%d", 10 + n / 90, 10 + n % 90, 1000 + n);
        if (slots->owner[slot] == HG_SLOTS_NONE)
            none++;
        else
            assert_string_equal(owner(slots, (uint32_t)slot), address);
    }
    assert_int_equal(slots->uncovered, none);
    assert_true(none > 0);
    hg_slotsreply_free(reply);
    free(text);
}

/* A good reply with a few bytes changed: taken or not, nothing is read out of bounds, and what is
   taken holds together. */
static void t_damaged(void **state)
{
    (void)state;
    struct hg_prng prng = {11};
    char text[] = THREE;
    for (int round = 0; round < 20000; round++) {
        char copy[sizeof text];
        memcpy(copy, text, sizeof text);
        for (uint64_t n = hg_prng_below(&prng, 3) + 1; n > 0; n--)
            copy[hg_prng_below(&prng, sizeof copy - 1)] = (char)hg_prng_next(&prng);
        struct hg_slotsreply *reply = hg_slotsreply_new("seed:1", 0);
        if (feed(reply, copy, sizeof copy - 1, hg_prng_below(&prng, 99) + 1) == HG_OK) {
            const struct hg_slots *slots = hg_slotsreply_slots(reply);
            uint32_t none = 0;
            for (int slot = 0; slot < HG_KEYSLOTS; slot++) {
                none += slots->owner[slot] == HG_SLOTS_NONE;
                assert_true(slots->owner[slot] == HG_SLOTS_NONE ||
                            (slots->owner[slot] < slots->node_count &&
                             slots->nodes[slots->owner[slot]].owns));
            }
            assert_int_equal(none, slots->uncovered);
        }
        hg_slotsreply_free(reply);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_three_masters), cmocka_unit_test(t_behind_a_login),
        cmocka_unit_test(t_odd_ones),      cmocka_unit_test(t_hostile),
        cmocka_unit_test(t_login_refused), cmocka_unit_test(t_endless),
        cmocka_unit_test(t_largest),       cmocka_unit_test(t_damaged),
    };
    return cmocka_run_group_tests_name("slotsreply", tests, NULL, NULL);
}
