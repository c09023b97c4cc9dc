// conform_items - what every store does with items: operations, CAS, counters, expiry
// SPDX-License-Identifier: BSD-3-Clause
#include "conform.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "back/item.h"
#include "base/prng.h"

#define NO_CREATE HG_ITEM_NO_CREATE

/* --- the random walk --- */

struct model {
    bool there;
    struct hg_item item;
    uint8_t value[4096];
};

enum { KEYS = 4, WALK_LIMIT = 400 };

static void apply(struct model *model, const struct hg_item_outcome *outcome)
{
    uint8_t value[sizeof model->value];
    size_t len = hg_item_outcome_bytes(outcome);
    switch (outcome->act) {
    case HG_ITEM_KEEP:
        return;
    case HG_ITEM_REMOVE:
        model->there = false;
        return;
    case HG_ITEM_TOUCH:
        model->item.expiry_s = outcome->item.expiry_s;
        return;
    case HG_ITEM_STORE:
        assert_true(len <= sizeof value);
        hg_item_outcome_copy(outcome, value);
        memcpy(model->value, value, len);
        model->item = outcome->item;
        model->item.value = hg_span(model->value, len);
        model->there = true;
    }
}

/* Something to do with the model's key. */
static struct hg_item_ask any_ask(const struct conform *c, struct hg_prng *prng,
                                  const struct model *model)
{
    static const char *const values[] = {"",     "0",    "5", "99", "18446744073709551615",
                                         "text", "x y z"};
    struct hg_item_ask ask = {.op = (enum hg_op)hg_prng_below(prng, HG_OP_FLUSH),
                              .flags = (uint32_t)hg_prng_below(prng, 3),
                              .expiry = hg_prng_below(prng, 2) ? 0 : 100000,
                              .delta = hg_prng_below(prng, 30),
                              .initial = hg_prng_next(prng),
                              .value =
                                  hg_span_str(values[hg_prng_below(prng, HG_COUNT_OF(values))])};
    if (hg_prng_below(prng, 3) == 0)
        ask.cas = model->there && hg_prng_below(prng, 2) ? model->item.cas : 1;
    if (ask.op == HG_OP_GET || ask.op == HG_OP_GAT || ask.op == HG_OP_TOUCH ||
        !conform_has(c, HAS_CAS))
        ask.cas = 0;
    if (!conform_has(c, HAS_FLAGS))
        ask.flags = 0;
    return ask;
}

static void check_answer(const struct conform *c, const struct hg_item_ask *ask,
                         const struct note *note, const struct model *model,
                         const struct hg_item_outcome *outcome)
{
    const struct hg_result *r = &note->result;
    bool reads = ask->op == HG_OP_GET || ask->op == HG_OP_GAT;
    if (outcome->status != 0 || !conform_has(c, HAS_CAS))
        assert_true(r->cas == 0);
    else if (reads || ask->op == HG_OP_TOUCH)
        assert_true(r->cas == model->item.cas);
    else if (ask->op != HG_OP_DELETE)
        assert_true(r->cas != 0);
    if (outcome->status == 0 && reads) {
        assert_int_equal(r->item_flags, outcome->item.flags);
        assert_int_equal(note->value_len, outcome->item.value.len);
        assert_memory_equal(note->value, outcome->item.value.at, note->value_len);
    }
    if (outcome->status == 0 && (ask->op == HG_OP_INCREMENT || ask->op == HG_OP_DECREMENT))
        assert_true(r->counter == outcome->counter);
}

static bool takes_a_value(enum hg_op op)
{
    return (op >= HG_OP_SET && op <= HG_OP_REPLACE) || op == HG_OP_APPEND || op == HG_OP_PREPEND;
}

/* Whether the store may refuse to count with the number that the key has. */
static bool may_refuse_number(const struct conform *c, enum hg_op op, const struct model *model)
{
    char digits[sizeof model->value + 1];
    if (conform_has(c, HAS_LARGE_NUMBERS) || !model->there ||
        (op != HG_OP_INCREMENT && op != HG_OP_DECREMENT))
        return false;
    memcpy(digits, model->value, model->item.value.len);
    digits[model->item.value.len] = '\0';
    return strtoull(digits, NULL, 10) >= UINT64_C(1) << 63;
}

/* One key in the name of a row, one that begins with a zero byte. */
static void walk_step(struct conform *c, struct hg_prng *prng, struct model models[KEYS], int step)
{
    static const char names[KEYS][8] = {"a", "b", "t\0row", "\0c"};
    static const size_t lens[KEYS] = {1, 1, 5, 2};
    size_t k = hg_prng_below(prng, KEYS);
    struct model *model = &models[k];
    struct hg_item_ask ask = any_ask(c, prng, model);
    struct hg_item_outcome outcome;
    struct note note;
    conform_note(c, &note, ask.op, "");
    note.call.key = hg_span(names[k], lens[k]);
    if (takes_a_value(ask.op))
        note.call.value = ask.value;
    note.call.item_flags = ask.flags;
    note.call.expiry = ask.expiry;
    note.call.cas = ask.cas;
    note.call.delta = ask.delta;
    note.call.initial = ask.initial;
    /* Rows go with their index, and are written with a condition only. */
    note.call.row =
        k == 2 && (ask.op == HG_OP_ADD || ask.op == HG_OP_SET) && conform_has(c, HAS_ROWS);
    struct hg_result r = conform_finish(c, &note);
    hg_item_decide(model->there ? &model->item : NULL, &ask, 1000,
                   conform_has(c, HAS_JOIN_LIMIT) ? WALK_LIMIT : 1 << 20, r.cas, &outcome);
    if (!conform_has(c, HAS_PADDING))
        outcome.pad = 0;
    if (r.status == HG_STATUS_DELTA_BADVAL && may_refuse_number(c, ask.op, model))
        return;
    if (r.status != outcome.status)
        fail_msg("step %d, op %d: status %#x, not %#x: %s", step, ask.op, r.status, outcome.status,
                 note.value);
    check_answer(c, &ask, &note, model, &outcome);
    apply(model, &outcome);
}

static void random_walk(struct conform *c)
{
    static struct model models[KEYS];
    struct hg_prng prng = {11};
    memset(models, 0, sizeof models);
    for (int i = 0; i < (c->kept->walk_steps != 0 ? c->kept->walk_steps : 12000); i++)
        walk_step(c, &prng, models, i);
    /* The expiry of each is as the model has it. */
    for (int k = 0; k < 2 && conform_kind()->seconds_left != NULL; k++) {
        long left = conform_kind()->seconds_left(c, k == 0 ? "a" : "b");
        assert_true(!models[k].there               ? left == -2
                    : models[k].item.expiry_s == 0 ? left == -1
                                                   : left > 90000);
    }
}

/* --- expiry --- */

/* One operation gives the key this expiry; false when the item it is for has gone meanwhile. */
static bool give_expiry(struct conform *c, enum hg_op op, const char *key, uint32_t expiry)
{
    struct note note;
    conform_note(c, &note, op, key);
    note.call.expiry = expiry;
    if (op == HG_OP_SET || op == HG_OP_ADD)
        note.call.value = HG_SPAN_LIT("5");
    uint16_t status = conform_finish(c, &note).status;
    assert_true(status == 0 || status == HG_STATUS_KEY_ENOENT);
    return status == 0;
}

/* Every operation that takes an expiry time: items without one, with one that is to come, and with
   one that has passed. */
static void expiry_times(struct conform *c)
{
    const uint32_t now_s = (uint32_t)time(NULL);
    static const enum hg_op ops[] = {HG_OP_SET, HG_OP_ADD, HG_OP_TOUCH, HG_OP_GAT, HG_OP_INCREMENT};
    const struct {
        const char *key;
        uint32_t expiry;
        bool gone;
    } rows[] = {
        {"never", 0, false},
        {"hour", 3600, false},
        {"days", HG_ITEM_RELATIVE_MAX_S, false},
        {"future", now_s + 5000, false},
        {"past", now_s - 1000, true},
        {"long past", HG_ITEM_RELATIVE_MAX_S + 1, true},
        {"late", 0xfffffffe, false},
    };
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++) {
        for (size_t way = 0; way < HG_COUNT_OF(ops); way++) {
            (void)conform_call(c, HG_OP_DELETE, rows[i].key, NULL);
            if (ops[way] != HG_OP_ADD && ops[way] != HG_OP_INCREMENT)
                assert_int_equal(conform_call(c, HG_OP_SET, rows[i].key, "5").status, 0);
            assert_true(give_expiry(c, ops[way], rows[i].key, rows[i].expiry));
            const char *value = ops[way] == HG_OP_INCREMENT ? "0" : "5";
            if (!rows[i].gone && ops[way] == HG_OP_SET) {
                conform_call(c, HG_OP_APPEND, rows[i].key, "1");
                conform_call(c, HG_OP_PREPEND, rows[i].key, "1");
                assert_int_equal(conform_call(c, HG_OP_INCREMENT, rows[i].key, NULL).counter, 151);
                value = "151";
            }
            conform_expect(c, rows[i].key, rows[i].gone ? NULL : value);
        }
    }
}

/* An item that is to live for a second, and then `op` on it, which finds it; a busy machine may
   need several attempts. */
static void short_life(struct conform *c, const char *key, enum hg_op op, uint32_t expiry)
{
    uint64_t end_us = conform_deadline();
    for (;;) {
        struct note note;
        assert_true(hg_now_us() < end_us);
        assert_true(give_expiry(c, HG_OP_SET, key, 1));
        conform_note(c, &note, op, key);
        note.call.expiry = expiry;
        note.call.delta = 1;
        if (op == HG_OP_APPEND || op == HG_OP_PREPEND)
            note.call.value = HG_SPAN_LIT("1");
        uint16_t status = conform_finish(c, &note).status;
        if (status == 0)
            return;
        assert_true(status == HG_STATUS_KEY_ENOENT || status == HG_STATUS_NOT_STORED);
    }
}

static uint16_t status_of(struct conform *c, const char *key)
{
    return conform_call(c, HG_OP_GET, key, NULL).status;
}

/* A second is a second for every operation that takes an expiry, and what changes the value leaves
   the expiry alone; items that were told to stay do. */
static void a_second(struct conform *c)
{
    static const char *const mortal[] = {"set", "add",     "counted", "got", "touched",
                                         "app", "prepend", "incr",    "decr"};
    assert_true(give_expiry(c, HG_OP_SET, "stays", 0));
    assert_true(give_expiry(c, HG_OP_SET, "got", 0));
    assert_true(give_expiry(c, HG_OP_SET, "touched", 0));
    short_life(c, "stays touched", HG_OP_TOUCH, 0);
    short_life(c, "stays got", HG_OP_GAT, 0);
    assert_true(give_expiry(c, HG_OP_SET, "set", 1));
    assert_true(give_expiry(c, HG_OP_ADD, "add", 1));
    assert_true(give_expiry(c, HG_OP_INCREMENT, "counted", 1));
    assert_true(give_expiry(c, HG_OP_GAT, "got", 1));
    assert_true(give_expiry(c, HG_OP_TOUCH, "touched", 1));
    short_life(c, "app", HG_OP_APPEND, 0);
    short_life(c, "prepend", HG_OP_PREPEND, 0);
    short_life(c, "incr", HG_OP_INCREMENT, NO_CREATE);
    short_life(c, "decr", HG_OP_DECREMENT, NO_CREATE);
    for (size_t i = 0; i < HG_COUNT_OF(mortal); i++)
        CONFORM_UNTIL(c, status_of(c, mortal[i]) == HG_STATUS_KEY_ENOENT);
    assert_int_equal(conform_call(c, HG_OP_ADD, "set", "again").status, 0);
    conform_expect(c, "set", "again");
    conform_expect(c, "stays", "5");
    conform_expect(c, "stays touched", "5");
    conform_expect(c, "stays got", "5");
}

/* --- the table --- */

#define STEPS(...)                                                                                 \
    .steps = (const struct conform_step[]){__VA_ARGS__},                                           \
    .count = HG_COUNT_OF(((const struct conform_step[]){__VA_ARGS__}))
/* clang-format off */
#define SET(k, v)         {HG_OP_SET, .key = k, .value = v}
#define GET(k, v)         {HG_OP_GET, .key = k, .gives = v}
#define GET_NONE(k)       {HG_OP_GET, .key = k, .status = HG_STATUS_KEY_ENOENT}
#define FLUSH             {.op = HG_OP_FLUSH}
#define CREATE(k, n)      {HG_OP_INCREMENT, .key = k, .delta = 5, .initial = n, .counter = n}
#define COUNT(o, k, d, n) {HG_OP_##o, .key = k, .delta = d, .expiry = NO_CREATE, .counter = n}

const struct conform_case conform_items[] = {
    {"set and get", STEPS(
        SET("k", "one"), GET("k", "one"), SET("k", "two"), GET("k", "two"),
        SET("k", ""), GET("k", ""))},
    {"get an absent key", STEPS(GET_NONE("none"))},
    {"add to an absent key", STEPS(
        {HG_OP_ADD, .key = "k", .value = "one"}, GET("k", "one"))},
    {"add to a present key", STEPS(
        SET("k", "one"),
        {HG_OP_ADD, .key = "k", .value = "x", .status = HG_STATUS_KEY_EEXISTS},
        GET("k", "one"))},
    {"replace a present key", STEPS(
        SET("k", "one"), {HG_OP_REPLACE, .key = "k", .value = "two"}, GET("k", "two"))},
    {"replace an absent key", STEPS(
        {HG_OP_REPLACE, .key = "none", .value = "x", .status = HG_STATUS_KEY_ENOENT}, GET_NONE("none"))},
    {"set with the right CAS", .needs = HAS_CAS, STEPS(
        SET("k", "one"), GET("k", "one"),
        {HG_OP_SET, .key = "k", .value = "two", .cas = CAS_RIGHT}, GET("k", "two"),
        {HG_OP_REPLACE, .key = "k", .value = "three", .cas = CAS_RIGHT}, GET("k", "three"))},
    {"set with another CAS", .needs = HAS_CAS, STEPS(
        SET("k", "one"),
        {HG_OP_SET, .key = "k", .value = "x", .cas = CAS_OTHER, .status = HG_STATUS_KEY_EEXISTS},
        {HG_OP_REPLACE, .key = "k", .value = "x", .cas = CAS_OTHER, .status = HG_STATUS_KEY_EEXISTS},
        GET("k", "one"))},
    {"set with a CAS of an absent key", .needs = HAS_CAS, STEPS(
        {HG_OP_SET, .key = "none", .value = "x", .cas = CAS_SOME, .status = HG_STATUS_KEY_ENOENT}, GET_NONE("none"))},
    {"append and prepend", STEPS(
        SET("k", "three"),
        {HG_OP_APPEND, .key = "k", .value = "+", .bytes = 6}, {HG_OP_PREPEND, .key = "k", .value = "-", .bytes = 7},
        GET("k", "-three+"))},
    {"append and prepend to an absent key", STEPS(
        {HG_OP_APPEND, .key = "none", .value = "+", .status = HG_STATUS_NOT_STORED},
        {HG_OP_PREPEND, .key = "none", .value = "-", .status = HG_STATUS_NOT_STORED},
        GET_NONE("none"))},
    {"append with a CAS", .needs = HAS_CAS, STEPS(
        SET("k", "abc"),
        {HG_OP_APPEND, .key = "k", .value = "x", .cas = CAS_OTHER, .status = HG_STATUS_KEY_EEXISTS},
        {HG_OP_APPEND, .key = "k", .value = "defg", .cas = CAS_RIGHT, .bytes = 7},
        GET("k", "abcdefg"))},
    {"delete with a CAS", .needs = HAS_CAS, STEPS(
        SET("k", "abc"), {HG_OP_APPEND, .key = "k", .value = "d"},
        {HG_OP_DELETE, .key = "k", .cas = CAS_BEFORE, .status = HG_STATUS_KEY_EEXISTS},
        {HG_OP_DELETE, .key = "k", .cas = CAS_OTHER, .status = HG_STATUS_KEY_EEXISTS},
        GET("k", "abcd"),
        {HG_OP_DELETE, .key = "k", .cas = CAS_RIGHT},
        GET_NONE("k"))},
    {"delete", STEPS(
        SET("k", "one"), {HG_OP_DELETE, .key = "k"}, GET_NONE("k"),
        {HG_OP_DELETE, .key = "k", .status = HG_STATUS_KEY_ENOENT})},
    {"a counter", STEPS(
        CREATE("n", 98),
        {HG_OP_INCREMENT, .key = "n", .delta = 5, .initial = 98, .counter = 103},
        {HG_OP_INCREMENT, .key = "n", .delta = 5, .initial = 98, .counter = 108},
        GET("n", "108"), COUNT(DECREMENT, "n", 9, 99), GET("n", "99 "))},
    {"a counter that must exist", STEPS(
        {HG_OP_INCREMENT, .key = "none", .expiry = NO_CREATE, .status = HG_STATUS_KEY_ENOENT},
        {HG_OP_DECREMENT, .key = "none", .expiry = NO_CREATE, .status = HG_STATUS_KEY_ENOENT},
        GET_NONE("none"))},
    {"a counter stops at zero", STEPS(
        CREATE("n", 40), COUNT(INCREMENT, "n", 5, 45), COUNT(DECREMENT, "n", 100, 0))},
    {"a counter begins again behind 64 bits", STEPS(
        CREATE("n", UINT64_MAX), COUNT(INCREMENT, "n", 5, 4))},
    {"count on a text", STEPS(
        SET("k", "text"),
        {HG_OP_INCREMENT, .key = "k", .expiry = NO_CREATE, .status = HG_STATUS_DELTA_BADVAL},
        {HG_OP_DECREMENT, .key = "k", .status = HG_STATUS_DELTA_BADVAL},
        GET("k", "text"))},
    {"touch", STEPS(
        SET("k", "abc"), {HG_OP_TOUCH, .key = "k", .expiry = 100}, {HG_OP_TOUCH, .key = "k"}, GET("k", "abc"),
        {HG_OP_TOUCH, .key = "none", .status = HG_STATUS_KEY_ENOENT}, GET_NONE("none"))},
    {"get and touch", STEPS(
        SET("k", "abc"), {HG_OP_GAT, .key = "k", .expiry = 200, .gives = "abc"},
        {HG_OP_GAT, .key = "k", .gives = "abc"}, GET("k", "abc"),
        {HG_OP_GAT, .key = "none", .status = HG_STATUS_KEY_ENOENT}, GET_NONE("none"))},
    {"texts of a server", .needs = HAS_SERVER_TEXTS, STEPS(
        {HG_OP_GET, .key = "none", .status = HG_STATUS_KEY_ENOENT, .says = "Not found"})},
    {"flush", STEPS(
        SET("k", "one"), CREATE("n", 1), FLUSH, GET_NONE("k"), GET_NONE("n"),
        SET("k", "two"), GET("k", "two"))},
    {"flush later", .needs = HAS_LATER_FLUSH, STEPS(
        SET("k", "one"), {.op = HG_OP_FLUSH, .expiry = 1000}, GET("k", "one"), FLUSH, GET_NONE("k"))},
    {"flush later is refused", .lacks = HAS_LATER_FLUSH, STEPS(
        SET("k", "one"),
        {.op = HG_OP_FLUSH, .expiry = 10, .status = HG_STATUS_NOT_SUPPORTED, .says = "delay"},
        GET("k", "one"))},
    {"expiry times", .run = expiry_times},
    {"a second", .run = a_second},
    {"a random walk beside the model", .run = random_walk, .max_value_bytes = WALK_LIMIT},
};
/* clang-format on */
const size_t conform_items_count = HG_COUNT_OF(conform_items);
