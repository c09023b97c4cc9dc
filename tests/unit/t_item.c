// t_item - memcached's semantics of one item, walked through as a table
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "back/item.h"
#include "base/attr.h"
#include "proto/status.h"

#define NOW     1700000000u
#define NEW_CAS 77
#define MAX     64

/* One question and what becomes of it. `old` NULL: there is no item; CAS of the old one is 5, its
   flags 3, its expiry NOW + 100. `value` NULL: nothing is stored. */
struct row {
    const char *what;
    enum hg_op op;
    const char *old;
    const char *ask;
    uint64_t cas, delta, initial;
    uint32_t expiry;
    enum hg_item_act act;
    uint16_t status;
    const char *value;
    uint64_t counter;
};

#define KEEP   HG_ITEM_KEEP
#define STORE  HG_ITEM_STORE
#define TOUCH  HG_ITEM_TOUCH
#define REMOVE HG_ITEM_REMOVE

static const struct row rows[] = {
    {"get", HG_OP_GET, "v", "", 0, 0, 0, 0, KEEP, 0x00, NULL, 0},
    {"get miss", HG_OP_GET, NULL, "", 0, 0, 0, 0, KEEP, 0x01, NULL, 0},
    {"set new", HG_OP_SET, NULL, "n", 0, 0, 0, 0, STORE, 0x00, "n", 0},
    {"set over", HG_OP_SET, "v", "n", 0, 0, 0, 0, STORE, 0x00, "n", 0},
    {"set empty", HG_OP_SET, "v", "", 0, 0, 0, 0, STORE, 0x00, "", 0},
    {"set cas", HG_OP_SET, "v", "n", 5, 0, 0, 0, STORE, 0x00, "n", 0},
    {"set other cas", HG_OP_SET, "v", "n", 6, 0, 0, 0, KEEP, 0x02, NULL, 0},
    {"set cas missing", HG_OP_SET, NULL, "n", 5, 0, 0, 0, KEEP, 0x01, NULL, 0},
    {"add new", HG_OP_ADD, NULL, "n", 0, 0, 0, 0, STORE, 0x00, "n", 0},
    {"add existing", HG_OP_ADD, "v", "n", 0, 0, 0, 0, KEEP, 0x02, NULL, 0},
    {"add cas is a cas set", HG_OP_ADD, "v", "n", 5, 0, 0, 0, STORE, 0x00, "n", 0},
    {"add cas missing", HG_OP_ADD, NULL, "n", 5, 0, 0, 0, KEEP, 0x01, NULL, 0},
    {"replace", HG_OP_REPLACE, "v", "n", 0, 0, 0, 0, STORE, 0x00, "n", 0},
    {"replace missing", HG_OP_REPLACE, NULL, "n", 0, 0, 0, 0, KEEP, 0x01, NULL, 0},
    {"replace cas", HG_OP_REPLACE, "v", "n", 5, 0, 0, 0, STORE, 0x00, "n", 0},
    {"replace other cas", HG_OP_REPLACE, "v", "n", 6, 0, 0, 0, KEEP, 0x02, NULL, 0},
    {"delete", HG_OP_DELETE, "v", "", 0, 0, 0, 0, REMOVE, 0x00, NULL, 0},
    {"delete missing", HG_OP_DELETE, NULL, "", 0, 0, 0, 0, KEEP, 0x01, NULL, 0},
    {"delete cas", HG_OP_DELETE, "v", "", 5, 0, 0, 0, REMOVE, 0x00, NULL, 0},
    {"delete other cas", HG_OP_DELETE, "v", "", 6, 0, 0, 0, KEEP, 0x02, NULL, 0},
    {"delete cas missing", HG_OP_DELETE, NULL, "", 6, 0, 0, 0, KEEP, 0x01, NULL, 0},
    {"append", HG_OP_APPEND, "ab", "cd", 0, 0, 0, 0, STORE, 0x00, "abcd", 0},
    {"append nothing", HG_OP_APPEND, "ab", "", 0, 0, 0, 0, STORE, 0x00, "ab", 0},
    {"append to empty", HG_OP_APPEND, "", "cd", 0, 0, 0, 0, STORE, 0x00, "cd", 0},
    {"append missing", HG_OP_APPEND, NULL, "cd", 0, 0, 0, 0, KEEP, 0x05, NULL, 0},
    {"append missing cas", HG_OP_APPEND, NULL, "cd", 5, 0, 0, 0, KEEP, 0x05, NULL, 0},
    {"append cas", HG_OP_APPEND, "ab", "cd", 5, 0, 0, 0, STORE, 0x00, "abcd", 0},
    {"append other cas", HG_OP_APPEND, "ab", "cd", 6, 0, 0, 0, KEEP, 0x02, NULL, 0},
    {"prepend", HG_OP_PREPEND, "ab", "cd", 0, 0, 0, 0, STORE, 0x00, "cdab", 0},
    {"prepend missing", HG_OP_PREPEND, NULL, "cd", 0, 0, 0, 0, KEEP, 0x05, NULL, 0},
    {"prepend other cas", HG_OP_PREPEND, "ab", "cd", 6, 0, 0, 0, KEEP, 0x02, NULL, 0},
    {"touch", HG_OP_TOUCH, "v", "", 0, 0, 0, 9, TOUCH, 0x00, "v", 0},
    {"touch heeds no cas", HG_OP_TOUCH, "v", "", 6, 0, 0, 9, TOUCH, 0x00, "v", 0},
    {"touch missing", HG_OP_TOUCH, NULL, "", 0, 0, 0, 9, KEEP, 0x01, NULL, 0},
    {"gat", HG_OP_GAT, "v", "", 0, 0, 0, 9, TOUCH, 0x00, "v", 0},
    {"gat missing", HG_OP_GAT, NULL, "", 0, 0, 0, 9, KEEP, 0x01, NULL, 0},
    {"flush is none of ours", HG_OP_FLUSH, "v", "", 0, 0, 0, 0, KEEP, 0x83, NULL, 0},
    /* counters */
    {"increment", HG_OP_INCREMENT, "9", "", 0, 1, 0, 0, STORE, 0x00, "10", 10},
    {"increment in place", HG_OP_INCREMENT, "007", "", 0, 1, 0, 0, STORE, 0x00, "8  ", 8},
    {"decrement keeps the length", HG_OP_DECREMENT, "10", "", 0, 1, 0, 0, STORE, 0x00, "9 ", 9},
    {"decrement stops at 0", HG_OP_DECREMENT, "10", "", 0, 11, 0, 0, STORE, 0x00, "0 ", 0},
    {"increment wraps", HG_OP_INCREMENT, "18446744073709551615", "", 0, 3, 0, 0, STORE, 0x00,
     "2                   ", 2},
    {"by the largest delta", HG_OP_INCREMENT, "1", "", 0, UINT64_MAX, 0, 0, STORE, 0x00, "0", 0},
    {"make", HG_OP_INCREMENT, NULL, "", 0, 1, 5, 0, STORE, 0x00, "5", 5},
    {"make by decrement", HG_OP_DECREMENT, NULL, "", 0, 1, 5, 0, STORE, 0x00, "5", 5},
    {"make the largest", HG_OP_INCREMENT, NULL, "", 0, 1, UINT64_MAX, 0, STORE, 0x00,
     "18446744073709551615", UINT64_MAX},
    {"make in spite of a cas", HG_OP_INCREMENT, NULL, "", 5, 1, 5, 0, STORE, 0x00, "5", 5},
    {"do not make", HG_OP_INCREMENT, NULL, "", 0, 1, 5, 0xffffffff, KEEP, 0x01, NULL, 0},
    {"do not make, decrement", HG_OP_DECREMENT, NULL, "", 0, 1, 5, 0xffffffff, KEEP, 0x01, NULL, 0},
    {"existing, do not make", HG_OP_INCREMENT, "1", "", 0, 1, 5, 0xffffffff, STORE, 0x00, "2", 2},
    {"counter cas", HG_OP_INCREMENT, "1", "", 5, 1, 0, 0, STORE, 0x00, "2", 2},
    {"counter other cas", HG_OP_INCREMENT, "1", "", 6, 1, 0, 0, KEEP, 0x02, NULL, 0},
    {"no number, other cas", HG_OP_INCREMENT, "x", "", 6, 1, 0, 0, KEEP, 0x02, NULL, 0},
    {"empty, other cas", HG_OP_INCREMENT, "", "", 6, 1, 0, 0, KEEP, 0x06, NULL, 0},
    {"empty", HG_OP_INCREMENT, "", "", 0, 1, 0, 0, KEEP, 0x06, NULL, 0},
    {"text", HG_OP_INCREMENT, "abc", "", 0, 1, 0, 0, KEEP, 0x06, NULL, 0},
    {"text behind", HG_OP_INCREMENT, "12abc", "", 0, 1, 0, 0, KEEP, 0x06, NULL, 0},
    {"text behind a blank", HG_OP_INCREMENT, "12 abc", "", 0, 1, 0, 0, STORE, 0x00, "13    ", 13},
    {"blank in front", HG_OP_INCREMENT, " 12", "", 0, 1, 0, 0, STORE, 0x00, "13 ", 13},
    {"all blanks in front", HG_OP_INCREMENT, "\t\v\f\r\n 9", "", 0, 1, 0, 0, STORE, 0x00, "10     ",
     10},
    {"only blanks", HG_OP_INCREMENT, "  ", "", 0, 1, 0, 0, KEEP, 0x06, NULL, 0},
    {"plus", HG_OP_INCREMENT, "+12", "", 0, 1, 0, 0, STORE, 0x00, "13 ", 13},
    {"minus", HG_OP_INCREMENT, "-5", "", 0, 1, 0, 0, KEEP, 0x06, NULL, 0},
    {"minus nothing", HG_OP_INCREMENT, "-0", "", 0, 1, 0, 0, STORE, 0x00, "1 ", 1},
    {"a minus that wraps", HG_OP_INCREMENT, "-18446744073709551615", "", 0, 1, 0, 0, STORE, 0x00,
     "2                    ", 2},
    {"only a sign", HG_OP_INCREMENT, "-", "", 0, 1, 0, 0, KEEP, 0x06, NULL, 0},
    {"blank behind the sign", HG_OP_INCREMENT, "- 5", "", 0, 1, 0, 0, KEEP, 0x06, NULL, 0},
    {"2^64", HG_OP_INCREMENT, "18446744073709551616", "", 0, 1, 0, 0, KEEP, 0x06, NULL, 0},
    {"more than 20 digits", HG_OP_INCREMENT, "100000000000000000000000", "", 0, 1, 0, 0, KEEP, 0x06,
     NULL, 0},
    {"zeros in front", HG_OP_INCREMENT, "0000000000000000000000012", "", 0, 1, 0, 0, STORE, 0x00,
     "13                       ", 13},
    /* the limit */
    {"longest value", HG_OP_SET, NULL,
     "0123456789012345678901234567890123456789012345678901234567890123", 0, 0, 0, 0, STORE, 0x00,
     "0123456789012345678901234567890123456789012345678901234567890123", 0},
    {"too long", HG_OP_SET, NULL,
     "01234567890123456789012345678901234567890123456789012345678901234", 0, 0, 0, 0, KEEP, 0x03,
     NULL, 0},
    {"append to the limit", HG_OP_APPEND,
     "012345678901234567890123456789012345678901234567890123456789", "abcd", 0, 0, 0, 0, STORE,
     0x00, "012345678901234567890123456789012345678901234567890123456789abcd", 0},
    {"append beyond the limit", HG_OP_APPEND,
     "012345678901234567890123456789012345678901234567890123456789", "abcde", 0, 0, 0, 0, KEEP,
     0x03, NULL, 0},
    {"prepend beyond the limit", HG_OP_PREPEND,
     "012345678901234567890123456789012345678901234567890123456789", "abcde", 0, 0, 0, 0, KEEP,
     0x03, NULL, 0},
};

static void check_stored(const struct row *row, const struct hg_item_outcome *outcome)
{
    uint8_t value[MAX];
    size_t len = hg_item_outcome_bytes(outcome);
    assert_true(len <= sizeof value);
    hg_item_outcome_copy(outcome, value);
    assert_int_equal(len, strlen(row->value));
    assert_memory_equal(value, row->value, len);
    bool keeps = row->act == TOUCH || row->op == HG_OP_APPEND || row->op == HG_OP_PREPEND ||
                 ((row->op == HG_OP_INCREMENT || row->op == HG_OP_DECREMENT) && row->old != NULL);
    bool makes_counter = !keeps && (row->op == HG_OP_INCREMENT || row->op == HG_OP_DECREMENT);
    assert_int_equal(outcome->item.flags, keeps ? 3 : makes_counter ? 0 : 9);
    assert_int_equal(outcome->item.cas, row->act == TOUCH ? 5 : NEW_CAS);
    uint64_t expiry = row->act == TOUCH ? NOW + row->expiry : keeps ? NOW + 100 : row->expiry;
    assert_int_equal(outcome->item.expiry_s, expiry);
}

static void every_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++) {
        const struct row *row = &rows[i];
        struct hg_item old = {3, 5, NOW + 100, hg_span_str(row->old != NULL ? row->old : "")};
        struct hg_item_ask ask = {
            row->op, 9, row->expiry, row->cas, row->delta, row->initial, hg_span_str(row->ask)};
        struct hg_item_outcome outcome;
        hg_item_decide(row->old != NULL ? &old : NULL, &ask, NOW, MAX, NEW_CAS, &outcome);
        if (outcome.act != row->act || outcome.status != row->status)
            fail_msg("%s: act %d, status 0x%02x", row->what, (int)outcome.act, outcome.status);
        assert_int_equal(outcome.counter, row->counter);
        if (row->value != NULL)
            check_stored(row, &outcome);
        if ((row->op == HG_OP_GET || row->op == HG_OP_GAT) && row->old != NULL) {
            assert_int_equal(outcome.item.flags, 3);
            assert_int_equal(outcome.item.cas, 5);
            assert_true(hg_span_equal(outcome.item.value, old.value));
        }
    }
}

static void a_counter_ends_at_a_zero_byte(void **state)
{
    (void)state;
    struct hg_item old = {0, 5, 0, HG_SPAN_LIT("12\0abc")};
    struct hg_item_ask ask = {.op = HG_OP_INCREMENT, .delta = 1};
    struct hg_item_outcome outcome;
    uint8_t value[MAX];
    hg_item_decide(&old, &ask, NOW, MAX, NEW_CAS, &outcome);
    assert_int_equal(outcome.status, HG_STATUS_SUCCESS);
    hg_item_outcome_copy(&outcome, value);
    assert_memory_equal(value, "13    ", 6);
}

static void every_digit_count(void **state)
{
    (void)state;
    char text[32];
    uint64_t n = 1;
    for (int digits = 1; digits <= 20; digits++, n *= 10) {
        int len = snprintf(text, sizeof text, "%llu", (unsigned long long)n);
        struct hg_item old = {0, 5, 0, hg_span(text, (size_t)len)};
        struct hg_item_ask ask = {.op = HG_OP_INCREMENT, .delta = 0};
        struct hg_item_outcome outcome;
        uint8_t value[MAX];
        hg_item_decide(&old, &ask, NOW, MAX, NEW_CAS, &outcome);
        assert_int_equal(outcome.counter, n);
        hg_item_outcome_copy(&outcome, value);
        assert_int_equal(hg_item_outcome_bytes(&outcome), digits);
        assert_memory_equal(value, text, (size_t)digits);
    }
}

static void expiry(void **state)
{
    (void)state;
    assert_int_equal(hg_item_expiry(0, NOW), 0);
    assert_int_equal(hg_item_expiry(1, NOW), NOW + 1);
    assert_int_equal(hg_item_expiry(60 * 60 * 24 * 30, NOW), NOW + 60 * 60 * 24 * 30);
    assert_int_equal(hg_item_expiry(60 * 60 * 24 * 30 + 1, NOW), 60 * 60 * 24 * 30 + 1);
    assert_int_equal(hg_item_expiry(NOW - 1, NOW), NOW - 1);
    assert_int_equal(hg_item_expiry(0x80000000u, NOW), 0x80000000u);
    assert_int_equal(hg_item_expiry(0xffffffffu, NOW), 0xffffffffu);
}

static void alive(void **state)
{
    (void)state;
    struct hg_item item = {0, 10, 0, HG_SPAN_NONE};
    struct hg_item_flush none = {0, 0};
    assert_true(hg_item_alive(&item, NOW, none));
    item.expiry_s = NOW + 1;
    assert_true(hg_item_alive(&item, NOW, none));
    item.expiry_s = NOW;
    assert_false(hg_item_alive(&item, NOW, none));
    item.expiry_s = 60 * 60 * 24 * 30 + 1; /* long ago */
    assert_false(hg_item_alive(&item, NOW, none));
    item.expiry_s = 0;
    assert_true(hg_item_alive(&item, NOW, (struct hg_item_flush){9, 0}));
    assert_false(hg_item_alive(&item, NOW, (struct hg_item_flush){10, 0}));
    assert_true(hg_item_alive(&item, NOW, (struct hg_item_flush){0, NOW + 1}));
    assert_false(hg_item_alive(&item, NOW, (struct hg_item_flush){0, NOW}));
}

static void flushes(void **state)
{
    (void)state;
    struct hg_item_flush flush = hg_item_flush_plan((struct hg_item_flush){0, 0}, 0, NOW, 10);
    assert_int_equal(flush.cas, 10);
    assert_int_equal(flush.at_s, 0);
    /* A later one leaves what the first hid hidden. */
    flush = hg_item_flush_plan(flush, 5, NOW, 20);
    assert_int_equal(flush.cas, 10);
    assert_int_equal(flush.at_s, NOW + 5);
    assert_false(hg_item_flush_due(&flush, NOW + 4, 30));
    assert_int_equal(flush.cas, 10);
    assert_true(hg_item_flush_due(&flush, NOW + 5, 30));
    assert_int_equal(flush.cas, 30);
    assert_int_equal(flush.at_s, 0);
    assert_false(hg_item_flush_due(&flush, NOW + 9, 40));
    /* The newest of two that are to come counts; one for now takes back the one to come. */
    flush = hg_item_flush_plan(flush, 50, NOW, 40);
    flush = hg_item_flush_plan(flush, 60, NOW, 40);
    assert_int_equal(flush.at_s, NOW + 60);
    flush = hg_item_flush_plan(flush, 0, NOW, 50);
    assert_int_equal(flush.cas, 50);
    assert_int_equal(flush.at_s, 0);
    /* Absolute times. */
    flush = hg_item_flush_plan(flush, NOW + 100, NOW, 60);
    assert_int_equal(flush.at_s, NOW + 100);
    flush = hg_item_flush_plan(flush, NOW - 100, NOW, 60);
    assert_int_equal(flush.cas, 60);
    assert_int_equal(flush.at_s, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row),
        cmocka_unit_test(a_counter_ends_at_a_zero_byte),
        cmocka_unit_test(every_digit_count),
        cmocka_unit_test(expiry),
        cmocka_unit_test(alive),
        cmocka_unit_test(flushes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
