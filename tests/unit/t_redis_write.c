// t_redis_write - what Redis is asked, byte for byte
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "back/redis_write.h"

static struct hg_blobs blobs;
static struct hg_out_pool pool;
static struct hg_redis_style style;

static uint8_t said[1 << 20];
static size_t said_len;

/* What is queued, in one piece; and the queue is empty again. */
static void collect(struct hg_out *out)
{
    said_len = 0;
    for (struct hg_out_segment *s = out->first; s != NULL; s = s->next) {
        memcpy(said + said_len, s->at, s->len);
        said_len += s->len;
    }
    assert_false(out->broken);
    assert_int_equal(said_len, out->bytes);
    hg_out_fini(out);
}

static enum hg_redis_tag write_call(const struct hg_call *call, bool whole)
{
    struct hg_out out;
    uint8_t tag = 255;
    enum hg_fault fault = HG_FAULT_NONE;
    hg_out_init(&out, &pool);
    assert_true(hg_redis_write(&style, &out, call, whole, &tag, &fault));
    collect(&out);
    return (enum hg_redis_tag)tag;
}

static void expect_bytes(const char *bytes, size_t len)
{
    if (said_len != len || memcmp(said, bytes, len) != 0)
        fail_msg("%.*s, not %.*s", (int)said_len, (const char *)said, (int)len, bytes);
}

#define EXPECT(literal) expect_bytes(literal, sizeof(literal) - 1)

/* The parts of what was said: their number, and each by its own. */
static size_t part_count;
static struct hg_span parts[24];

static void cut(void)
{
    char *at = (char *)said;
    assert_int_equal(*at, '*');
    part_count = strtoul(at + 1, &at, 10);
    at += 2;
    for (size_t i = 0; i < part_count; i++) {
        assert_int_equal(*at, '$');
        size_t len = strtoul(at + 1, &at, 10);
        assert_memory_equal(at, "\r\n", 2);
        parts[i] = hg_span(at + 2, len);
        at += 2 + len;
        assert_memory_equal(at, "\r\n", 2);
        at += 2;
    }
    assert_ptr_equal(at, said + said_len);
}

static void expect_part(size_t i, const char *bytes, size_t len)
{
    if (i >= part_count || !hg_span_equal(parts[i], hg_span(bytes, len)))
        fail_msg("part %zu is %.*s, not %.*s", i, (int)parts[i].len, (const char *)parts[i].at,
                 (int)len, bytes);
}

#define PART(i, literal) expect_part(i, literal, sizeof(literal) - 1)

static struct hg_call base_call(enum hg_op op)
{
    return (struct hg_call){.op = op,
                            .prefix = HG_SPAN_LIT("p:"),
                            .key = HG_SPAN_LIT("key"),
                            .place.made_cas = 0x4142434445464748};
}

static void t_single(void **state)
{
    (void)state;
    struct hg_call call = base_call(HG_OP_GET);
    assert_int_equal(write_call(&call, false), HG_REDIS_TAG_VALUE);
    EXPECT("*2\r\n$3\r\nGET\r\n$5\r\np:key\r\n");
    call.op = HG_OP_DELETE;
    assert_int_equal(write_call(&call, false), HG_REDIS_TAG_DELETED);
    EXPECT("*2\r\n$3\r\nDEL\r\n$5\r\np:key\r\n");
    call.op = HG_OP_GAT;
    assert_int_equal(write_call(&call, false), HG_REDIS_TAG_VALUE);
    EXPECT("*3\r\n$5\r\nGETEX\r\n$5\r\np:key\r\n$7\r\nPERSIST\r\n");
    call.expiry = 60;
    write_call(&call, false);
    EXPECT("*4\r\n$5\r\nGETEX\r\n$5\r\np:key\r\n$2\r\nEX\r\n$2\r\n60\r\n");
    call.expiry = 2592001;
    write_call(&call, false);
    EXPECT("*4\r\n$5\r\nGETEX\r\n$5\r\np:key\r\n$4\r\nEXAT\r\n$7\r\n2592001\r\n");
    call.op = HG_OP_FLUSH;
    call.expiry = 0;
    assert_int_equal(write_call(&call, false), HG_REDIS_TAG_STORED);
    EXPECT("*2\r\n$7\r\nFLUSHDB\r\n$5\r\nASYNC\r\n");
}

static void t_set(void **state)
{
    (void)state;
    struct hg_call call = base_call(HG_OP_SET);
    call.value = HG_SPAN_LIT("v");
    call.item_flags = 0x30313233;
    assert_int_equal(write_call(&call, false), HG_REDIS_TAG_STORED);
    EXPECT("*3\r\n$3\r\nSET\r\n$5\r\np:key\r\n$13\r\n0123ABCDEFGHv\r\n");
    call.op = HG_OP_ADD;
    call.expiry = 2592000;
    assert_int_equal(write_call(&call, false), HG_REDIS_TAG_ADDED);
    EXPECT("*6\r\n$3\r\nSET\r\n$5\r\np:key\r\n$13\r\n0123ABCDEFGHv\r\n"
           "$2\r\nNX\r\n$2\r\nEX\r\n$7\r\n2592000\r\n");
    call.op = HG_OP_REPLACE;
    call.expiry = 0;
    assert_int_equal(write_call(&call, false), HG_REDIS_TAG_REPLACED);
    EXPECT("*4\r\n$3\r\nSET\r\n$5\r\np:key\r\n$13\r\n0123ABCDEFGHv\r\n$2\r\nXX\r\n");
    style.plain = true;
    write_call(&call, false);
    EXPECT("*4\r\n$3\r\nSET\r\n$5\r\np:key\r\n$1\r\nv\r\n$2\r\nXX\r\n");
    call.value = HG_SPAN_NONE;
    call.op = HG_OP_SET;
    write_call(&call, false);
    EXPECT("*3\r\n$3\r\nSET\r\n$5\r\np:key\r\n$0\r\n\r\n");
    style.plain = false;
}

/* Values of any length, from a blob or not: the same bytes. */
static void t_lengths(void **state)
{
    (void)state;
    static const size_t lens[] = {0, 1, 9, 10, 8179, 8180, 8191, 8192, 8193, 16384, 100000};
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        for (int by_ref = 0; by_ref < 2; by_ref++) {
            struct hg_blob *blob = hg_blob_borrow(&blobs, lens[i] + 1);
            memset(blob->data, 'x', lens[i] + 1);
            struct hg_call call = base_call(HG_OP_SET);
            call.expiry = 5;
            call.value = hg_span(blob->data, lens[i]);
            call.blob = by_ref ? blob : NULL;
            write_call(&call, false);
            cut();
            assert_int_equal(part_count, 5);
            assert_int_equal(parts[2].len, lens[i] + HG_REDIS_ITEM_HEAD);
            PART(3, "EX");
            call.op = HG_OP_APPEND;
            write_call(&call, true);
            cut();
            assert_int_equal(part_count, 9);
            assert_int_equal(parts[8].len, lens[i]);
            hg_blob_unref(blob);
        }
    }
    assert_int_equal(blobs.live_bytes, 0);
}

static void t_scripts(void **state)
{
    (void)state;
    struct hg_call call = base_call(HG_OP_INCREMENT);
    call.delta = UINT64_MAX;
    call.initial = 10;
    call.expiry = 0xffffffff;
    call.cas = 0x6162636465666768;
    assert_int_equal(write_call(&call, false), HG_REDIS_TAG_COUNTED);
    cut();
    PART(0, "EVALSHA");
    expect_part(1, style.scripts.shas[HG_REDIS_SCRIPT_COUNT], HG_REDIS_SHA_BYTES);
    PART(2, "1");
    PART(3, "p:key");
    PART(4, "abcdefgh");
    PART(5, "ABCDEFGH");
    PART(6, "+");
    PART(7, "18446744073709551615");
    PART(8, "10");
    PART(9, "-");
    PART(10, "");
    assert_int_equal(part_count, 11);
    write_call(&call, true);
    cut();
    PART(0, "EVAL");
    assert_true(hg_span_equal(parts[1], style.scripts.texts[HG_REDIS_SCRIPT_COUNT]));
    call.op = HG_OP_TOUCH;
    call.expiry = 0;
    assert_int_equal(write_call(&call, false), HG_REDIS_TAG_TOUCHED);
    cut();
    PART(4, "PERSIST");
    PART(6, "12");
    call.op = HG_OP_SET;
    assert_int_equal(write_call(&call, false), HG_REDIS_TAG_CODE);
    cut();
    PART(4, "abcdefgh");
    assert_int_equal(part_count, 9);
    call.op = HG_OP_TABLE_GET;
    struct hg_out out;
    uint8_t tag;
    enum hg_fault fault = HG_FAULT_NONE;
    hg_out_init(&out, &pool);
    assert_false(hg_redis_write(&style, &out, &call, false, &tag, &fault));
    assert_int_equal(fault, HG_FAULT_NOT_SUPPORTED);
    assert_true(hg_out_empty(&out));
}

static void expect_key(const char *key, size_t key_len, const char *stored, size_t stored_len)
{
    struct hg_call call = base_call(HG_OP_GET);
    uint8_t form[HG_REDIS_KEY_MAX + 8];
    call.key = hg_span(key, key_len);
    write_call(&call, false);
    cut();
    expect_part(1, stored, stored_len);
    assert_int_equal(hg_redis_key(&style, call.prefix, call.key, form), stored_len);
    assert_memory_equal(form, stored, stored_len);
}

#define KEY(key, stored) expect_key(key, sizeof(key) - 1, stored, sizeof(stored) - 1)

static void t_keys(void **state)
{
    (void)state;
    KEY("k", "p:k");
    KEY("t\0r", "p:t\0r");
    KEY("\0it", "p:\0\0it");
    KEY("\0", "p:\0\0");
    style.ranges = style.tagged = true;
    KEY("k", "p:k");
    KEY("t\0r", "p:{t}\0r");
    KEY("t\0r\0s", "p:{t}\0r\0s");
    KEY("\0r", "p:\0\0r");
    style.ranges = style.tagged = false;
    struct hg_call call = base_call(HG_OP_GET);
    uint8_t key[HG_REDIS_KEY_MAX] = {'k'}, tag;
    enum hg_fault fault = HG_FAULT_NONE;
    struct hg_out out;
    hg_out_init(&out, &pool);
    call.key = hg_span(key, sizeof key - 1);
    assert_false(hg_redis_write(&style, &out, &call, false, &tag, &fault));
    assert_int_equal(fault, HG_FAULT_KEY_TOO_LONG);
    assert_true(hg_out_empty(&out));
}

static void t_rows(void **state)
{
    (void)state;
    for (int tagged = 0; tagged < 2; tagged++) {
        style.ranges = true;
        style.tagged = tagged;
        struct hg_call call = base_call(HG_OP_ADD);
        call.key = HG_SPAN_LIT("t\0row");
        call.row = true;
        assert_int_equal(write_call(&call, false), HG_REDIS_TAG_CODE);
        cut();
        PART(2, "2");
        tagged ? PART(3, "p:{t}\0row") : PART(3, "p:t\0row");
        tagged ? PART(4, "p:\0i{t}") : PART(4, "p:\0it");
        PART(5, "");
        PART(8, "row");
        call.op = HG_OP_DELETE;
        call.cas = 1;
        write_call(&call, false);
        cut();
        tagged ? PART(4, "p:\0i{t}") : PART(4, "p:\0it");
        PART(6, "row");
    }
    style.ranges = style.tagged = false;
}

static void expect_range(const struct hg_range_call *range, const char *command, const char *first,
                         const char *second)
{
    struct hg_call call = base_call(HG_OP_TABLE_QUERY);
    call.row = true;
    call.key = range->from;
    call.range = (struct hg_range_call *)(uintptr_t)range;
    assert_int_equal(write_call(&call, false), HG_REDIS_TAG_RANGE);
    cut();
    PART(2, "1");
    PART(3, "p:\0it");
    expect_part(4, command, strlen(command));
    expect_part(5, first, strlen(first));
    expect_part(6, second, strlen(second));
    PART(9, "p:t\0");
    assert_int_equal(part_count, 10);
}

static void t_ranges(void **state)
{
    (void)state;
    style.ranges = true;
    struct hg_range_call range = {
        .from = HG_SPAN_LIT("t\0a"), .to = HG_SPAN_LIT("t\0b"), .max_items = 7};
    expect_range(&range, "ZRANGEBYLEX", "[a", "(b");
    PART(7, "7");
    range.reverse = true;
    range.max_items = 100000;
    expect_range(&range, "ZREVRANGEBYLEX", "(b", "[a");
    PART(7, "256");
    range.from = HG_SPAN_LIT("t\0");
    range.to = HG_SPAN_LIT("t\1");
    expect_range(&range, "ZREVRANGEBYLEX", "+", "[");
    range.reverse = false;
    expect_range(&range, "ZRANGEBYLEX", "[", "+");
    style.ranges = false;
}

static void expect_login(const struct hg_identity *identity, bool rebind, bool probe,
                         uint32_t replies, const char *begins)
{
    struct hg_out out;
    hg_out_init(&out, &pool);
    assert_int_equal(hg_redis_write_login(&style, &out, identity, rebind, probe), replies);
    collect(&out);
    if (said_len < strlen(begins) || memcmp(said, begins, strlen(begins)) != 0)
        fail_msg("%.*s", (int)said_len, (const char *)said);
}

static void t_logins(void **state)
{
    (void)state;
    const struct hg_identity nobody = {.user = "", .password = ""},
                             named = {.user = "ann", .password = "pw", .database = 12},
                             old = {.user = "", .password = "pw"};
    static const char load[] = "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$";
    const uint32_t n = HG_REDIS_SCRIPTS;
    expect_login(NULL, false, false, n, load);
    expect_login(&nobody, false, true, n + 1, load);
    expect_login(&old, false, false, n + 1,
                 "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n*3\r\n$6\r\nSCRIPT\r\n");
    expect_login(&named, false, false, n + 2,
                 "*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$2\r\npw\r\n*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n"
                 "*3\r\n$6\r\nSCRIPT\r\n");
    expect_login(&named, true, false, 2,
                 "*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$2\r\npw\r\n*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n");
    expect_login(&nobody, true, true, 3,
                 "*1\r\n$5\r\nRESET\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*1\r\n$4\r\nPING\r\n");
}

static void t_refusals(void **state)
{
    (void)state;
    struct hg_call call = base_call(HG_OP_FLUSH);
    assert_null(hg_redis_refusal(&style, &call));
    call.expiry = 1;
    assert_non_null(strstr(hg_redis_refusal(&style, &call), "delay"));
    call = base_call(HG_OP_SET);
    call.item_flags = 1;
    call.cas = 1;
    call.row = true;
    assert_null(hg_redis_refusal(&style, &call));
    style.plain = true;
    assert_non_null(strstr(hg_redis_refusal(&style, &call), "rows"));
    call.row = false;
    assert_non_null(strstr(hg_redis_refusal(&style, &call), "flags"));
    call.item_flags = 0;
    assert_non_null(strstr(hg_redis_refusal(&style, &call), "CAS"));
    call.cas = UINT64_MAX; /* which no item has: asked by a look before the write */
    assert_null(hg_redis_refusal(&style, &call));
    style.plain = false;
}

static int set_up(void **state)
{
    (void)state;
    hg_blobs_init(&blobs);
    hg_out_pool_init(&pool, &blobs);
    style.max_value_bytes = 1024;
    return hg_redis_scripts_init(&style.scripts);
}

static int tear_down(void **state)
{
    (void)state;
    hg_out_pool_fini(&pool);
    hg_blobs_fini(&blobs);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_single),  cmocka_unit_test(t_set),    cmocka_unit_test(t_lengths),
        cmocka_unit_test(t_scripts), cmocka_unit_test(t_keys),   cmocka_unit_test(t_rows),
        cmocka_unit_test(t_ranges),  cmocka_unit_test(t_logins), cmocka_unit_test(t_refusals),
    };
    return cmocka_run_group_tests_name("redis_write", tests, set_up, tear_down);
}
