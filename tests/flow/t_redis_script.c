// t_redis_script - the Lua scripts in redis-server itself, beside what memcached does to an item
// SPDX-License-Identifier: BSD-3-Clause
#include "redisd.h"
#include "rig.h"

#include <hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "back/item.h"
#include "back/redis_script.h"
#include "base/bytes.h"
#include "base/prng.h"

#define HEAD_BYTES 12
#define LIMIT      64 /* bytes of a value */

static struct hg_redis_scripts scripts;
static struct daemon daemon_;
static redisContext *redis;

static struct hg_span lit(const char *text)
{
    return hg_span_str(text);
}

static struct hg_span number(uint64_t n)
{
    static char rooms[8][24];
    static unsigned next;
    char *room = rooms[next++ % 8];
    return hg_span(room, (size_t)snprintf(room, sizeof rooms[0], "%" PRIu64, n));
}

static struct hg_span cas_bytes(uint64_t cas)
{
    static uint8_t rooms[4][8];
    static unsigned next;
    uint8_t *room = rooms[next++ % 4];
    hg_put_u64(room, cas);
    return hg_span(room, 8);
}

/* Sends the parts, up to the first without bytes at all. */
static redisReply *ask(const struct hg_span *parts)
{
    const char *argv[24];
    size_t lens[24];
    int count = 0;
    for (; parts[count].at != NULL; count++) {
        argv[count] = (const char *)parts[count].at;
        lens[count] = parts[count].len;
    }
    redisReply *reply = redisCommandArgv(redis, count, argv, lens);
    assert_non_null(reply);
    return reply;
}

#define ASK(...) ask((const struct hg_span[]){__VA_ARGS__, HG_SPAN_NONE})
#define RUN(script, ...)                                                                           \
    ASK(lit("EVALSHA"), hg_span(scripts.shas[HG_REDIS_SCRIPT_##script], HG_REDIS_SHA_BYTES),       \
        __VA_ARGS__)
#define CODE(...) code(RUN(__VA_ARGS__))
#define TEXT(...) text(RUN(__VA_ARGS__))

static long long code(redisReply *reply)
{
    if (reply->type != REDIS_REPLY_INTEGER)
        fail_msg("type %d: %s", reply->type, reply->str);
    long long integer = reply->integer;
    freeReplyObject(reply);
    return integer;
}

static const char *text(redisReply *reply)
{
    static char room[4096];
    if (reply->type == REDIS_REPLY_INTEGER)
        snprintf(room, sizeof room, ":%lld", reply->integer);
    else if (reply->type == REDIS_REPLY_NIL)
        snprintf(room, sizeof room, "nil");
    else
        snprintf(room, sizeof room, "%.*s", (int)reply->len, reply->str);
    freeReplyObject(reply);
    return room;
}

static struct hg_span item(uint32_t flags, uint64_t cas, struct hg_span value)
{
    static uint8_t room[4096];
    hg_put_u32(room, flags);
    hg_put_u64(room + 4, cas);
    memcpy(room + HEAD_BYTES, value.at, value.len);
    return hg_span(room, HEAD_BYTES + value.len);
}

static void expect_item(const char *key, uint32_t flags, uint64_t cas, struct hg_span value)
{
    redisReply *reply = ASK(lit("GET"), lit(key));
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    struct hg_span want = item(flags, cas, value);
    assert_int_equal(reply->len, want.len);
    assert_memory_equal(reply->str, want.at, want.len);
    freeReplyObject(reply);
}

static void forget_all(void)
{
    freeReplyObject(ASK(lit("FLUSHDB")));
}

static void put_item(const char *key, uint32_t flags, uint64_t cas, const char *value)
{
    freeReplyObject(ASK(lit("SET"), lit(key), item(flags, cas, lit(value))));
}

static long long ttl(const char *key)
{
    return code(ASK(lit("TTL"), lit(key)));
}

/* The server names each script as we do. */
static void t_names(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HG_REDIS_SCRIPTS; i++) {
        redisReply *reply = ASK(lit("SCRIPT"), lit("LOAD"), scripts.texts[i]);
        if (reply->type != REDIS_REPLY_STRING)
            fail_msg("script %u: %s", i, reply->str);
        assert_memory_equal(reply->str, scripts.shas[i], HG_REDIS_SHA_BYTES);
        freeReplyObject(reply);
    }
}

static void t_store(void **state)
{
    (void)state;
    forget_all();
    const struct hg_span one = lit("1"), k = lit("k"), none = lit("");
    assert_int_equal(CODE(STORE, one, k, cas_bytes(1), none, none, none, item(7, 2, lit("v"))),
                     HG_REDIS_NONE);
    assert_int_equal(CODE(STORE, one, k, lit("+"), none, none, none, item(7, 2, lit("v"))),
                     HG_REDIS_NONE);
    assert_int_equal(CODE(STORE, one, k, none, none, none, none, item(7, 2, lit("v"))), 0);
    expect_item("k", 7, 2, lit("v"));
    assert_int_equal(CODE(STORE, one, k, none, none, none, none, item(7, 3, lit("w"))),
                     HG_REDIS_OTHER);
    assert_int_equal(CODE(STORE, one, k, cas_bytes(9), none, none, none, item(7, 3, lit("w"))),
                     HG_REDIS_OTHER);
    expect_item("k", 7, 2, lit("v"));
    assert_int_equal(
        CODE(STORE, one, k, cas_bytes(2), lit("EX"), lit("100"), none, item(8, 4, lit("w"))), 0);
    expect_item("k", 8, 4, lit("w"));
    assert_in_range(ttl("k"), 90, 100);
    assert_int_equal(CODE(STORE, one, k, lit("+"), none, none, none, item(9, 5, lit(""))), 0);
    expect_item("k", 9, 5, lit(""));
    assert_int_equal(ttl("k"), -1);
    assert_int_equal(CODE(STORE, one, k, lit("*"), none, none, none, item(9, 6, lit("z"))), 0);
    expect_item("k", 9, 6, lit("z"));
    /* A time that has passed: gone at once. */
    assert_int_equal(
        CODE(STORE, one, k, lit("*"), lit("EXAT"), lit("2592001"), none, item(9, 6, lit("z"))), 0);
    assert_string_equal(text(ASK(lit("GET"), k)), "nil");
    assert_int_equal(
        CODE(STORE, one, k, none, lit("EXAT"), lit("4294967295"), none, item(9, 6, lit("z"))), 0);
    assert_true(ttl("k") > 1000000);
}

static void t_remove(void **state)
{
    (void)state;
    forget_all();
    const struct hg_span one = lit("1"), k = lit("k");
    assert_int_equal(CODE(REMOVE, one, k, cas_bytes(1)), HG_REDIS_NONE);
    assert_int_equal(CODE(REMOVE, one, k, lit("")), HG_REDIS_NONE);
    put_item("k", 1, 5, "v");
    assert_int_equal(CODE(REMOVE, one, k, cas_bytes(1)), HG_REDIS_OTHER);
    assert_int_equal(CODE(REMOVE, one, k, cas_bytes(5)), 0);
    assert_string_equal(text(ASK(lit("GET"), k)), "nil");
    put_item("k", 1, 5, "v");
    assert_int_equal(CODE(REMOVE, one, k, lit("")), 0);
    assert_string_equal(text(ASK(lit("GET"), k)), "nil");
}

static void t_touch(void **state)
{
    (void)state;
    forget_all();
    const struct hg_span one = lit("1"), k = lit("k"), head = lit("12");
    assert_int_equal(CODE(TOUCH, one, k, lit("EXPIRE"), lit("10"), head), HG_REDIS_NONE);
    put_item("k", 1, 0x4142434445464748, "v");
    assert_string_equal(TEXT(TOUCH, one, k, lit("EXPIRE"), lit("100"), head), "ABCDEFGH");
    assert_in_range(ttl("k"), 90, 100);
    assert_string_equal(TEXT(TOUCH, one, k, lit("PERSIST"), lit("0"), head), "ABCDEFGH");
    assert_int_equal(ttl("k"), -1);
    assert_string_equal(TEXT(TOUCH, one, k, lit("EXPIREAT"), lit("2592001"), head), "ABCDEFGH");
    assert_string_equal(text(ASK(lit("GET"), k)), "nil");
    freeReplyObject(ASK(lit("SET"), k, lit("bare")));
    assert_string_equal(TEXT(TOUCH, one, k, lit("PERSIST"), lit("0"), lit("0")), "");
}

/* What other clients of Redis left under the key: neither taken for an item nor changed. */
static void t_strangers(void **state)
{
    (void)state;
    forget_all();
    const struct hg_span one = lit("1"), none = lit(""), zero = lit("0");
    static const char *const strings[] = {"", "short", "elevenbytes"};
    for (size_t i = 0; i < HG_COUNT_OF(strings); i++) {
        struct hg_span k = lit("k"), s = lit(strings[i]);
        freeReplyObject(ASK(lit("SET"), k, s));
        assert_int_equal(CODE(STORE, one, k, cas_bytes(1), none, none, none, item(1, 1, none)),
                         HG_REDIS_STRANGER);
        assert_int_equal(CODE(REMOVE, one, k, cas_bytes(1)), HG_REDIS_STRANGER);
        assert_int_equal(CODE(JOIN, one, k, none, cas_bytes(2), lit(">"), lit("99"), lit("x")),
                         HG_REDIS_STRANGER);
        assert_int_equal(CODE(COUNT, one, k, none, cas_bytes(2), lit("+"), one, one, none, zero),
                         HG_REDIS_STRANGER);
        assert_int_equal(CODE(TOUCH, one, k, lit("PERSIST"), zero, lit("12")), HG_REDIS_STRANGER);
        assert_string_equal(text(ASK(lit("GET"), k)), strings[i]);
    }
    struct hg_span h = lit("h");
    freeReplyObject(ASK(lit("HSET"), h, lit("f"), lit("v")));
    redisReply *replies[] = {
        RUN(STORE, one, h, cas_bytes(1), none, none, none, item(1, 1, none)),
        RUN(REMOVE, one, h, cas_bytes(1)),
        RUN(JOIN, one, h, none, cas_bytes(2), lit(">"), lit("99"), lit("x")),
        RUN(COUNT, one, h, none, cas_bytes(2), lit("+"), one, one, none, zero),
        RUN(TOUCH, one, h, lit("PERSIST"), zero, lit("12")),
        RUN(RANGE, one, h, lit("ZRANGEBYLEX"), lit("-"), lit("+"), lit("10"), lit("100"), lit("t")),
    };
    for (size_t i = 0; i < HG_COUNT_OF(replies); i++) {
        assert_int_equal(replies[i]->type, REDIS_REPLY_ERROR);
        assert_memory_equal(replies[i]->str, "WRONGTYPE ", 10);
        freeReplyObject(replies[i]);
    }
}

/* --- beside the model --- */

static const char *const texts[] = {
    "0",
    "1",
    "9",
    "10",
    "99",
    "007",
    "18446744073709551615",
    "18446744073709551614",
    "18446744073709551616",
    "18446744073709551606",
    "99999999999999999999",
    "9223372036854775807",
    "9223372036854775808",
    "10000000000",
    "9999999999",
    "-0",
    "-1",
    "-18446744073709551615",
    "-9223372036854775808",
    "-9223372036854775809",
    "-9223372036854775807",
    "+5",
    "+",
    "-",
    "",
    " ",
    " 5",
    "\t\n\v\f\r6",
    "7 ",
    "8 text",
    "8\ttext",
    "9x",
    "x9",
    "1.5",
    "0x10",
    "--1",
    "+-1",
    "00000000000000000000000000000000000012",
    "3709551616",
    "18446744070000000000",
    "5    ",
    "12345678901",
    "4294967296",
};

static uint64_t nasty(struct hg_prng *prng)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       2,
                                       9,
                                       10,
                                       9999999999,
                                       10000000000,
                                       3709551616,
                                       3709551615,
                                       UINT64_MAX,
                                       UINT64_MAX - 1,
                                       INT64_MAX,
                                       (uint64_t)INT64_MAX + 1,
                                       1844674407,
                                       18446744070000000000u};
    uint64_t n = hg_prng_below(prng, 3) == 0 ? hg_prng_next(prng)
                                             : numbers[hg_prng_below(prng, HG_COUNT_OF(numbers))];
    return hg_prng_below(prng, 2) ? n : n + hg_prng_below(prng, 5) - 2;
}

/* One random counter or join on one random item, by script and by the model. */
static void step(struct hg_prng *prng)
{
    char random_text[24];
    const char *value = texts[hg_prng_below(prng, HG_COUNT_OF(texts))];
    if (hg_prng_below(prng, 3) == 0) {
        snprintf(random_text, sizeof random_text, "%" PRIu64, nasty(prng));
        value = random_text;
    }
    bool there = hg_prng_below(prng, 8) != 0;
    struct hg_item old = {0xdeadbeef, 77, 0, hg_span_str(value)};
    if (value[0] == '8' && hg_prng_below(prng, 2))
        old.value = hg_span("8\0x", 3);
    forget_all();
    if (there)
        freeReplyObject(
            ASK(lit("SET"), lit("k"), item(old.flags, old.cas, old.value), lit("EX"), lit("1000")));
    enum hg_op op = (enum hg_op)(hg_prng_below(prng, 3) ? HG_OP_INCREMENT + hg_prng_below(prng, 2)
                                                        : HG_OP_APPEND + hg_prng_below(prng, 2));
    struct hg_item_ask want = {.op = op,
                               .expiry = hg_prng_below(prng, 3) ? 500 : HG_ITEM_NO_CREATE,
                               .cas = hg_prng_below(prng, 4) ? 0 : 76 + hg_prng_below(prng, 2),
                               .delta = nasty(prng),
                               .initial = nasty(prng)};
    char added[80];
    memset(added, 'a', sizeof added);
    want.value = hg_span(added, hg_prng_below(prng, sizeof added));
    struct hg_item_outcome outcome;
    hg_item_decide(there ? &old : NULL, &want, 1000, LIMIT, 88, &outcome);

    const struct hg_span cas = want.cas != 0 ? cas_bytes(want.cas) : lit("");
    bool counts = op == HG_OP_INCREMENT || op == HG_OP_DECREMENT;
    const char *told;
    if (counts)
        told =
            TEXT(COUNT, lit("1"), lit("k"), cas, cas_bytes(88),
                 lit(op == HG_OP_INCREMENT ? "+" : "-"), number(want.delta), number(want.initial),
                 lit(want.expiry == HG_ITEM_NO_CREATE ? "-" : "EX"), number(want.expiry));
    else
        told = TEXT(JOIN, lit("1"), lit("k"), cas, cas_bytes(88),
                    lit(op == HG_OP_APPEND ? ">" : "<"), number(LIMIT), want.value);
    char expected[32];
    switch (outcome.status) {
    case HG_STATUS_SUCCESS:
        snprintf(expected, sizeof expected, counts ? "%" PRIu64 : ":%" PRIu64,
                 counts ? outcome.counter : (uint64_t)hg_item_outcome_bytes(&outcome));
        break;
    case HG_STATUS_KEY_ENOENT:
        snprintf(expected, sizeof expected, ":%d", HG_REDIS_NONE);
        break;
    case HG_STATUS_KEY_EEXISTS:
        snprintf(expected, sizeof expected, ":%d", HG_REDIS_OTHER);
        break;
    case HG_STATUS_NOT_STORED:
        snprintf(expected, sizeof expected, ":%d", HG_REDIS_NO_JOIN);
        break;
    case HG_STATUS_DELTA_BADVAL:
        snprintf(expected, sizeof expected, ":%d", HG_REDIS_NO_NUMBER);
        break;
    default:
        assert_int_equal(outcome.status, HG_STATUS_E2BIG);
        snprintf(expected, sizeof expected, ":%d", HG_REDIS_TOO_LARGE);
    }
    if (strcmp(told, expected) != 0)
        fail_msg("op %d of %" PRIu64 " on \"%s\": %s, not %s", op, want.delta, value, told,
                 expected);
    if (outcome.act == HG_ITEM_STORE) {
        uint8_t stored[256];
        hg_item_outcome_copy(&outcome, stored);
        expect_item("k", outcome.item.flags, 88, hg_span(stored, hg_item_outcome_bytes(&outcome)));
        assert_in_range(ttl("k"), there ? 900 : 400, there ? 1000 : 500);
    } else if (there) {
        expect_item("k", old.flags, old.cas, old.value);
    } else {
        assert_string_equal(text(ASK(lit("GET"), lit("k"))), "nil");
    }
}

static void t_counters_and_joins(void **state)
{
    (void)state;
    struct hg_prng prng = {5};
    for (int i = 0; i < 6000; i++)
        step(&prng);
}

/* In the plain layout: no head, no padding, what redis itself counts on. */
static void t_plain(void **state)
{
    (void)state;
    forget_all();
    const struct hg_span one = lit("1"), k = lit("k"), none = lit("");
    assert_int_equal(CODE(JOIN, one, k, none, none, lit(">"), lit("99"), lit("x")),
                     HG_REDIS_NO_JOIN);
    assert_string_equal(TEXT(COUNT, one, k, none, none, lit("+"), one, lit("100"), none, none),
                        "100");
    assert_string_equal(TEXT(COUNT, one, k, none, none, lit("-"), one, lit("100"), none, none),
                        "99");
    assert_string_equal(text(ASK(lit("GET"), k)), "99");
    assert_int_equal(code(ASK(lit("INCR"), k)), 100);
    assert_int_equal(CODE(JOIN, one, k, none, none, lit(">"), lit("99"), lit("xy")), 5);
    assert_int_equal(CODE(JOIN, one, k, none, none, lit("<"), lit("99"), lit("ab")), 7);
    assert_int_equal(CODE(JOIN, one, k, none, none, lit("<"), lit("7"), lit("a")),
                     HG_REDIS_TOO_LARGE);
    assert_string_equal(text(ASK(lit("GET"), k)), "ab100xy");
    freeReplyObject(ASK(lit("SET"), k, none));
    assert_int_equal(CODE(COUNT, one, k, none, none, lit("+"), one, one, none, none),
                     HG_REDIS_NO_NUMBER);
}

/* --- ranges --- */

static void put_row(const char *row, const char *value)
{
    char key[64];
    snprintf(key, sizeof key, "p:t:%s", row);
    assert_int_equal(CODE(STORE, lit("2"), lit(key), lit("idx"), lit("*"), lit(""), lit(""),
                          lit(row), item(1, 1, lit(value))),
                     0);
}

/* A reply of RANGE as text: "more last | row=value row=value". */
static const char *range_text(redisReply *reply)
{
    static char room[8192];
    char *out = room;
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    const uint8_t *at = (const uint8_t *)reply->str, *end = at + reply->len;
    uint32_t len = hg_get_u32(at + 1);
    out += sprintf(out, "%c %.*s |", at[0], (int)len, (const char *)at + 5);
    at += 5 + len;
    while (at < end) {
        len = hg_get_u32(at);
        out += sprintf(out, " %.*s=", (int)len, (const char *)at + 4);
        at += 4 + len;
        len = hg_get_u32(at);
        out += sprintf(out, "%.*s", (int)len - HEAD_BYTES, (const char *)at + 4 + HEAD_BYTES);
        at += 4 + len;
    }
    assert_ptr_equal(at, end);
    freeReplyObject(reply);
    return room;
}

#define RANGE(command, from, to, most, bytes)                                                      \
    range_text(RUN(RANGE, lit("1"), lit("idx"), lit(command), lit(from), lit(to), lit(most),       \
                   lit(bytes), lit("p:t:")))

static void t_ranges(void **state)
{
    (void)state;
    forget_all();
    assert_string_equal(RANGE("ZRANGEBYLEX", "-", "+", "10", "1000"), "0  |");
    static const char *const rows[] = {"d", "a", "c", "b", "e", "ab"};
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++)
        put_row(rows[i], rows[i]);
    assert_string_equal(RANGE("ZRANGEBYLEX", "-", "+", "10", "1000"),
                        "0 e | a=a ab=ab b=b c=c d=d e=e");
    assert_string_equal(RANGE("ZRANGEBYLEX", "[ab", "(d", "10", "1000"), "0 c | ab=ab b=b c=c");
    assert_string_equal(RANGE("ZREVRANGEBYLEX", "(d", "[ab", "10", "1000"), "0 ab | c=c b=b ab=ab");
    assert_string_equal(RANGE("ZRANGEBYLEX", "-", "+", "2", "1000"), "1 ab | a=a ab=ab");
    assert_string_equal(RANGE("ZRANGEBYLEX", "(ab", "+", "4", "1000"), "0 e | b=b c=c d=d e=e");
    /* Each row of one byte takes 22; the first is answered however large. */
    assert_string_equal(RANGE("ZRANGEBYLEX", "(ab", "+", "10", "66"), "1 d | b=b c=c d=d");
    assert_string_equal(RANGE("ZRANGEBYLEX", "(ab", "+", "10", "65"), "1 c | b=b c=c");
    assert_string_equal(RANGE("ZRANGEBYLEX", "(ab", "+", "10", "1"), "1 b | b=b");

    /* Rows that are gone, however that came about. */
    freeReplyObject(ASK(lit("DEL"), lit("p:t:b"), lit("p:t:e")));
    freeReplyObject(ASK(lit("DEL"), lit("p:t:a")));
    freeReplyObject(ASK(lit("LPUSH"), lit("p:t:a"), lit("x")));
    assert_string_equal(RANGE("ZRANGEBYLEX", "-", "+", "1", "1000"), "1 a |");
    assert_int_equal(code(ASK(lit("ZCARD"), lit("idx"))), 5);
    assert_string_equal(RANGE("ZRANGEBYLEX", "-", "+", "10", "1000"), "0 e | ab=ab c=c d=d");
    assert_int_equal(code(ASK(lit("ZCARD"), lit("idx"))), 3);
    assert_int_equal(CODE(REMOVE, lit("2"), lit("p:t:c"), lit("idx"), cas_bytes(1), lit("c")), 0);
    assert_int_equal(code(ASK(lit("ZCARD"), lit("idx"))), 2);
    /* A refused write leaves the index alone. */
    assert_int_equal(CODE(STORE, lit("2"), lit("p:t:zz"), lit("idx"), cas_bytes(1), lit(""),
                          lit(""), lit("zz"), item(1, 1, lit("v"))),
                     HG_REDIS_NONE);
    assert_int_equal(CODE(REMOVE, lit("2"), lit("p:t:d"), lit("idx"), cas_bytes(9), lit("d")),
                     HG_REDIS_OTHER);
    assert_string_equal(RANGE("ZRANGEBYLEX", "-", "+", "10", "1000"), "0 d | ab=ab d=d");
}

/* Without memory nothing is written, not even a part of it, and deletes go on. */
static void t_no_memory(void **state)
{
    (void)state;
    forget_all();
    put_row("a", "12");
    const struct hg_span one = lit("1"), a = lit("p:t:a"), none = lit("");
    freeReplyObject(ASK(lit("CONFIG"), lit("SET"), lit("maxmemory"), lit("1")));
    redisReply *replies[] = {
        RUN(STORE, lit("2"), lit("p:t:b"), lit("idx"), none, none, none, lit("b"),
            item(1, 2, lit("x"))),
        RUN(STORE, one, a, cas_bytes(1), none, none, none, item(1, 2, lit("x"))),
        RUN(JOIN, one, a, none, cas_bytes(2), lit(">"), lit("99"), lit("x")),
        RUN(JOIN, one, a, none, cas_bytes(2), lit("<"), lit("99"), lit("x")),
        RUN(COUNT, one, a, none, cas_bytes(2), lit("+"), one, one, none, none),
    };
    for (size_t i = 0; i < HG_COUNT_OF(replies); i++) {
        assert_int_equal(replies[i]->type, REDIS_REPLY_ERROR);
        assert_non_null(strstr(replies[i]->str, "OOM"));
        freeReplyObject(replies[i]);
    }
    expect_item("p:t:a", 1, 1, lit("12"));
    assert_int_equal(code(ASK(lit("ZCARD"), lit("idx"))), 1);
    assert_string_equal(RANGE("ZRANGEBYLEX", "-", "+", "10", "1000"), "0 a | a=12");
    assert_int_equal(CODE(REMOVE, lit("2"), a, lit("idx"), cas_bytes(1), lit("a")), 0);
    freeReplyObject(ASK(lit("CONFIG"), lit("SET"), lit("maxmemory"), lit("0")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_names),     cmocka_unit_test(t_store),
        cmocka_unit_test(t_remove),    cmocka_unit_test(t_touch),
        cmocka_unit_test(t_strangers), cmocka_unit_test(t_counters_and_joins),
        cmocka_unit_test(t_plain),     cmocka_unit_test(t_ranges),
        cmocka_unit_test(t_no_memory),
    };
    if (!redisd_is_installed())
        return 0;
    if (hg_redis_scripts_init(&scripts) != 0) {
        printf("1..0 # SKIP libcrypto has no SHA-1\n");
        return 0;
    }
    redisd_launch(&daemon_, NULL);
    redis = redisConnect("127.0.0.1", daemon_.port);
    int rc = redis == NULL || redis->err != 0
                 ? 1
                 : cmocka_run_group_tests_name("redis_script", tests, NULL, NULL);
    redisFree(redis);
    daemon_put_down(&daemon_);
    return rc;
}
