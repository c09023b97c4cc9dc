// t_bindmodel - the bind throttle against a naive one, by random operations
// SPDX-License-Identifier: BSD-3-Clause
//
// The model keeps a list without an index, and X as a whole number of billionths, so that what time
// takes is exact. Keys: of every type, in tables, of equal bytes and different lengths, longer than
// what is kept, and many of equal hash.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "bindhelp.h"

#define KEYS   4096
#define ONE    INT64_C(1000000000)
#define NEARLY (ONE / 10000000) /* what counts as nothing */

struct model_entry {
    uint32_t id;
    int64_t x; /* billionths */
    uint32_t attempts, last;
    uint64_t decayed_us, made_us, asked_us;
    uint64_t passed, refused;
};

static struct {
    struct hg_bindthrottle *table;
    struct model_entry entries[HG_BINDTHROTTLE_ENTRIES];
    uint32_t count;
    struct hg_bindthrottle_key keys[KEYS];
    uint8_t bytes[KEYS][300];
    struct hg_prng dice;
    uint64_t now;
    int64_t milli; /* X a second, thousandths */
} t;

static uint32_t below(uint32_t bound)
{
    return (uint32_t)hg_prng_below(&t.dice, bound);
}

/* ---- keys ---- */

static void make_key(uint32_t id, bool clash)
{
    struct hg_bindthrottle_key *key = &t.keys[id];
    uint32_t same = id / 4; /* four keys of the same bytes */
    size_t len = same % 16 == 0 ? 260 + same % 40 : 8 + same % 200;

    for (size_t i = 0; i < sizeof t.bytes[id]; i++)
        t.bytes[id][i] = (uint8_t)(i < 4 ? same >> 8 * i : 'a');
    if (same % 16 == 0) /* they differ behind what is kept */
        memcpy(&t.bytes[id][255], &id, sizeof id);
    *key = (struct hg_bindthrottle_key){
        .type = (uint8_t)(1 + id % 2),
        .table_len = id % 4 / 2 ? 5 : 0,
        .hash = bytes_hash(t.bytes[id], len) + id % 4 / 2,
        .bytes = hg_span(t.bytes[id], len),
    };
    if (clash && same % 16 != 0)
        key->hash %= 3;
}

/* ---- the model ---- */

static uint32_t up(int64_t x)
{
    return x <= ONE + NEARLY ? 1 : (uint32_t)((x - NEARLY + ONE - 1) / ONE);
}

static int64_t x_now(const struct model_entry *entry)
{
    return entry->x - t.milli * (int64_t)(t.now - entry->decayed_us);
}

static void wane(struct model_entry *entry)
{
    entry->x = x_now(entry);
    entry->decayed_us = t.now;
}

static struct model_entry *model_find(uint32_t id)
{
    for (uint32_t i = 0; i < t.count; i++)
        if (t.entries[i].id == id)
            return &t.entries[i];
    return NULL;
}

static void model_remove(struct model_entry *entry)
{
    *entry = t.entries[--t.count];
}

static struct model_entry *model_living(uint32_t id)
{
    struct model_entry *entry = model_find(id);

    if (entry == NULL)
        return NULL;
    wane(entry);
    if (up(entry->x) > 1)
        return entry;
    model_remove(entry);
    return NULL;
}

/* ---- operations on both ---- */

static double decr(void)
{
    return (double)t.milli / 1000;
}

static void grow(void)
{
    struct hg_bindthrottle *larger = table_new(2 * t.table->capacity);

    hg_bindthrottle_move(larger, t.table);
    assert_int_equal(t.table->count, 0);
    free(t.table);
    t.table = larger;
}

/* The table has pushed one out: it was of the lowest X, and then of the oldest. */
static void follow_pushed_out(void)
{
    struct model_entry *gone = NULL;
    int64_t low = INT64_MAX;

    for (uint32_t i = 0; i < t.count; i++) {
        if (x_now(&t.entries[i]) < low)
            low = x_now(&t.entries[i]);
        if (hg_bindthrottle_find(t.table, &t.keys[t.entries[i].id]) == NULL) {
            assert_null(gone);
            gone = &t.entries[i];
        }
    }
    assert_non_null(gone);
    assert_true(x_now(gone) <= low + NEARLY);
    for (uint32_t i = 0; i < t.count; i++)
        assert_true(x_now(&t.entries[i]) != low || t.entries[i].made_us >= gone->made_us ||
                    x_now(gone) != low);
    model_remove(gone);
}

static void do_make(uint32_t id)
{
    struct model_entry *entry = model_living(id);
    uint32_t evicted = below(10) == 0 ? below(20000) : below(60), x = evicted + 1;
    bool full = t.count == t.table->capacity;

    if (hg_bindthrottle_full(t.table) && below(4) != 0)
        grow(), full = false;
    hg_bindthrottle_make(t.table, &t.keys[id], evicted, decr(), t.now);
    if (entry == NULL) {
        if (full)
            follow_pushed_out();
        entry = &t.entries[t.count++];
        *entry = (struct model_entry){.id = id, .decayed_us = t.now, .made_us = t.now};
    }
    x = x < 2 ? 2 : x > 10000 ? 10000 : x;
    if (entry->x < x * ONE) {
        entry->x = x * ONE;
        entry->last = x;
    }
}

static void undo(uint32_t id, double change)
{
    struct model_entry *entry = model_find(id);

    hg_bindthrottle_undo(t.table, &t.keys[id], change);
    if (entry == NULL)
        return;
    entry->x -= (int64_t)(change * (double)ONE + (change < 0 ? -0.5 : 0.5));
    if (entry->x > 10000 * ONE)
        entry->x = 10000 * ONE;
    entry->last = entry->attempts = up(entry->x);
    entry->passed--;
}

static void do_attempt(uint32_t id)
{
    struct model_entry *entry = model_living(id);
    struct hg_bindthrottle_told told;
    bool busy = below(8) == 0;
    enum hg_bindthrottle_verdict verdict =
        hg_bindthrottle_decide(t.table, &t.keys[id], busy, decr(), t.now, &told);

    if (entry == NULL) {
        assert_int_equal(verdict, HG_BINDTHROTTLE_NONE);
        return;
    }
    uint64_t since = entry->asked_us != 0 ? entry->asked_us : entry->made_us;
    uint32_t x = up(entry->x);
    assert_int_equal(told.last, entry->last);
    assert_int_equal(told.prev, x);
    assert_int_equal(told.silent, t.now - since >= SECOND_US);
    entry->asked_us = t.now;
    entry->last = x;
    if (++entry->attempts < x) {
        entry->refused++;
        assert_int_equal(verdict, HG_BINDTHROTTLE_REFUSE);
        assert_int_equal(told.x, x);
        return;
    }
    assert_int_equal(verdict, HG_BINDTHROTTLE_PASS);
    entry->attempts = 0;
    entry->passed++;
    if (busy)
        entry->x = (2 * x + 1 < 10000 ? 2 * x + 1 : 10000) * ONE;
    else
        entry->x -= ONE;
    entry->last = up(entry->x);
    assert_int_equal(told.x, entry->last);
    if (entry->last < 2)
        model_remove(entry);
    if (below(5) == 0)
        undo(id, told.change);
}

static void do_sweep(void)
{
    for (uint32_t i = 0; i < t.count;) {
        wane(&t.entries[i]);
        if (up(t.entries[i].x) > 1)
            i++;
        else
            model_remove(&t.entries[i]);
    }
    assert_int_equal(hg_bindthrottle_sweep(t.table, decr(), t.now), t.count);
}

/* The settings change at run time; what was before counts as before. */
static void do_settings(void)
{
    static const int64_t millis[] = {0, 500, 1000, 1000, 1000, 3000, 10000000};
    do_sweep();
    t.milli = millis[below(HG_COUNT_OF(millis))];
}

static void compare(void)
{
    assert_int_equal(t.table->count, t.count);
    for (uint32_t i = 0; i < t.count; i++) {
        const struct model_entry *entry = &t.entries[i];
        const struct hg_bindthrottle_entry *found =
            hg_bindthrottle_find(t.table, &t.keys[entry->id]);
        assert_non_null(found);
        assert_int_equal(hg_bindthrottle_x(found, decr(), t.now), up(x_now(entry)));
        assert_int_equal(found->attempts, entry->attempts);
        assert_int_equal(found->passed, entry->passed);
        assert_int_equal(found->refused, entry->refused);
        assert_int_equal(found->asked_us, entry->asked_us);
        struct hg_bindthrottle_key key = hg_bindthrottle_key_of(found);
        assert_memory_equal(key.bytes.at, t.bytes[entry->id], key.bytes.len);
        assert_true(key.bytes.len == t.keys[entry->id].bytes.len ||
                    key.bytes.len == HG_BINDTHROTTLE_KEY_MAX);
    }
}

static void play(uint64_t seed, uint32_t keys, uint32_t step_us, bool clash)
{
    memset(&t, 0, sizeof t);
    t.dice.state = seed;
    t.now = SECOND_US;
    t.milli = 1000;
    t.table = table_new(1u << below(7));
    for (uint32_t id = 0; id < keys; id++)
        make_key(id, clash);
    for (unsigned round = 0; round < 40000; round++) {
        uint32_t what = below(1000), id = below(below(3) == 0 ? keys : 1 + keys / 20);
        t.now += below(4) == 0 ? below(step_us) : 0;
        if (what < 60)
            do_make(id);
        else if (what < 990)
            do_attempt(id);
        else if (what < 997)
            do_sweep();
        else if (what < 998)
            do_settings();
        else
            compare();
    }
    compare();
    free(t.table);
}

static void test_few_keys(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++)
        play(seed, 8 + (uint32_t)seed, 3000, seed % 2);
}

static void test_many_keys(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++)
        play(seed, KEYS, 20, seed % 3 == 0);
}

static void test_long_pauses(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++)
        play(seed, 100, 2 * SECOND_US, false);
}

/* ---- the largest table ---- */

static void test_the_lowest_makes_room(void **state)
{
    struct hg_bindthrottle *table = table_new(HG_BINDTHROTTLE_ENTRIES);
    (void)state;
    for (uint32_t id = 0; id <= HG_BINDTHROTTLE_ENTRIES; id++) {
        make_key(id, false);
        if (id < HG_BINDTHROTTLE_ENTRIES)
            hg_bindthrottle_make(table, &t.keys[id], 100 + (id * 7) % 1024, 1.0, SECOND_US);
    }
    assert_false(hg_bindthrottle_full(table)); /* no larger one */
    hg_bindthrottle_make(table, &t.keys[HG_BINDTHROTTLE_ENTRIES], 1, 1.0, 2 * SECOND_US);
    assert_int_equal(table->count, HG_BINDTHROTTLE_ENTRIES);
    assert_null(hg_bindthrottle_find(table, &t.keys[0]));
    for (uint32_t id = 1; id <= HG_BINDTHROTTLE_ENTRIES; id++)
        assert_non_null(hg_bindthrottle_find(table, &t.keys[id]));
    free(table);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_keys),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_long_pauses),
        cmocka_unit_test(test_the_lowest_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
