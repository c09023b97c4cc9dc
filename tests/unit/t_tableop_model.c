// t_tableop_model - random operations on a row, against a naive model; and with little memory
// SPDX-License-Identifier: BSD-3-Clause
//
// The model has a slot for each of its few columns and changes them one by one; a batch works on a
// copy of all slots.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "base/prng.h"
#include "proto/status.h"
#include "tableophelp.h"

#define SLOTS      8
#define BYTES_MAX  40
#define BATCH_MAX  6
#define OPERATIONS 60000

static const char letters[] = "abcdefgh"; /* the columns */
static struct hg_prng prng;

static size_t below(size_t bound)
{
    return (size_t)hg_prng_below(&prng, bound);
}

/* ---- the model ---- */

struct slot {
    bool there;
    enum hg_value_kind kind;
    int64_t integer;
    double real;
    uint8_t bytes[BYTES_MAX];
    size_t len;
};

struct model {
    bool there;
    struct slot slots[SLOTS];
};

/* What the model says of one operation. */
struct answer {
    uint16_t status, affected;
    bool found;
    struct slot slots[SLOTS]; /* of the entity */
};

static struct slot slot_of(const struct hg_value *value)
{
    struct slot slot = {.there = true, .kind = value->kind};
    if (value->kind == HG_VALUE_INTEGER)
        slot.integer = value->integer;
    if (value->kind == HG_VALUE_REAL)
        slot.real = value->real;
    if (value->kind == HG_VALUE_BYTES) {
        assert_in_range(value->bytes.len, 0, BYTES_MAX);
        slot.len = value->bytes.len;
        memcpy(slot.bytes, value->bytes.at, slot.len);
    }
    return slot;
}

static size_t slot_index(struct hg_span name)
{
    assert_int_equal(name.len, 1);
    return (size_t)(strchr(letters, name.at[0]) - letters);
}

/* INCREMENT and APPEND of one column: the status. */
static uint16_t model_combine(struct slot *slot, enum hg_op op, const struct hg_value *operand)
{
    bool increment = op == HG_OP_TABLE_INCREMENT;
    if (!slot->there || slot->kind == HG_VALUE_NULL) {
        *slot = slot_of(operand);
        return 0;
    }
    if (slot->kind != (increment ? HG_VALUE_INTEGER : HG_VALUE_BYTES))
        return HG_STATUS_DELTA_BADVAL;
    if (increment) {
        __int128 sum = (__int128)slot->integer + operand->integer;
        if (sum > INT64_MAX || sum < INT64_MIN)
            return HG_STATUS_DELTA_BADVAL;
        slot->integer = (int64_t)sum;
        return 0;
    }
    memcpy(slot->bytes + slot->len, operand->bytes.at, operand->bytes.len);
    slot->len += operand->bytes.len;
    return 0;
}

static void model_change(struct model *model, const struct hg_table_item *item,
                         struct answer *answer)
{
    bool combines = item->op == HG_OP_TABLE_INCREMENT || item->op == HG_OP_TABLE_APPEND;
    struct model after = *model;
    after.there = true;
    for (size_t i = 0; combines && i < item->entity.count; i++)
        if (item->entity.columns[i].value.kind !=
            (item->op == HG_OP_TABLE_INCREMENT ? HG_VALUE_INTEGER : HG_VALUE_BYTES)) {
            answer->status = HG_STATUS_EINVAL;
            return;
        }
    for (size_t i = 0; i < item->entity.count; i++) {
        const struct hg_value *value = &item->entity.columns[i].value;
        size_t s = slot_index(item->entity.columns[i].name);
        uint16_t status = 0;
        if (combines)
            status = model_combine(&after.slots[s], item->op, value);
        else
            after.slots[s] = slot_of(value);
        if (status != 0) {
            *answer = (struct answer){.status = status};
            return;
        }
        if (combines && item->return_entity)
            answer->slots[s] = after.slots[s];
    }
    answer->found = combines && item->return_entity;
    answer->affected = 1;
    *model = after;
}

static struct answer model_apply(struct model *model, const struct hg_table_item *item)
{
    struct answer answer = {0};
    switch (item->op) {
    case HG_OP_TABLE_GET:
        answer.found = model->there;
        for (size_t s = 0; s < SLOTS; s++) {
            bool selected = item->select.count == 0;
            for (size_t i = 0; i < item->select.count; i++)
                selected |= hg_span_equal(item->select.list[i], hg_span(&letters[s], 1));
            if (selected && model->there)
                answer.slots[s] = model->slots[s];
        }
        break;
    case HG_OP_TABLE_DELETE:
        answer.affected = model->there;
        memset(model, 0, sizeof *model);
        break;
    case HG_OP_TABLE_INSERT:
        if (model->there)
            answer.status = HG_STATUS_KEY_EEXISTS;
        else
            model_change(model, item, &answer);
        break;
    case HG_OP_TABLE_UPDATE:
        if (model->there)
            model_change(model, item, &answer);
        break;
    case HG_OP_TABLE_REPLACE: {
        bool there = model->there;
        memset(model, 0, sizeof *model);
        model_change(model, item, &answer);
        answer.affected = there ? 2 : 1;
        break;
    }
    default:
        model_change(model, item, &answer);
    }
    return answer;
}

/* ---- random operations ---- */

static const int64_t integers[] = {0, 1, -1, 7, INT64_MAX, INT64_MIN, INT64_MAX - 7};
static const char *const strings[] = {"", "x", "yz"};

static struct hg_value some_value(enum hg_op op)
{
    size_t dice = below(8);
    if (op == HG_OP_TABLE_INCREMENT && dice > 0)
        dice = 2;
    if (op == HG_OP_TABLE_APPEND && dice > 0)
        dice = 7;
    if (dice == 0)
        return (struct hg_value){.kind = HG_VALUE_NULL};
    if (dice == 1)
        return (struct hg_value){.kind = HG_VALUE_REAL, .real = 1.5};
    if (dice < 5)
        return (struct hg_value){.kind = HG_VALUE_INTEGER, .integer = integers[below(7)]};
    return (struct hg_value){.kind = HG_VALUE_BYTES, .bytes = hg_span_str(strings[below(3)])};
}

struct room { /* of one operation */
    struct hg_column columns[SLOTS];
    struct hg_span names[4];
};

static struct hg_table_item some_item(struct room *room)
{
    struct hg_table_item item = {
        .op = (enum hg_op)(HG_OP_TABLE_GET + below(8)),
        .entity = {room->columns, 0},
        .select = {room->names, below(2) ? 0 : below(4)},
        .return_entity = below(2),
    };
    if (item.op == HG_OP_TABLE_DELETE && below(3) > 0)
        item.op = HG_OP_TABLE_INSERT_OR_UPDATE;
    size_t density = 1 + below(8);
    for (size_t s = 0; s < SLOTS; s++)
        if (below(8) < density)
            room->columns[item.entity.count++] =
                (struct hg_column){hg_span(&letters[s], 1), some_value(item.op)};
    for (size_t i = 0; i < item.select.count; i++)
        room->names[i] = hg_span(&"abcdefghz"[below(9)], 1);
    return item;
}

/* ---- the comparison ---- */

static bool same_slot(const struct slot *a, const struct slot *b)
{
    return a->there == b->there && a->kind == b->kind && a->integer == b->integer &&
           !(a->real < b->real || a->real > b->real) && a->len == b->len &&
           memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* The columns are those of the slots, in order. */
static void check_entity(const struct hg_entity *entity, const struct slot *slots)
{
    size_t at = 0;
    for (size_t s = 0; s < SLOTS; s++) {
        if (!slots[s].there)
            continue;
        assert_true(at < entity->count);
        assert_int_equal(slot_index(entity->columns[at].name), s);
        struct slot found = slot_of(&entity->columns[at++].value);
        assert_true(same_slot(&found, &slots[s]));
    }
    assert_int_equal(at, entity->count);
}

static void check_result(const struct hg_row_result *result, const struct answer *answer)
{
    assert_int_equal(result->status, answer->status);
    assert_int_equal(result->affected, answer->affected);
    assert_int_equal(result->found, answer->found);
    assert_int_equal(result->status != 0, result->text.len > 0);
    if (answer->found)
        check_entity(&result->entity, answer->slots);
    else
        assert_int_equal(result->entity.count, 0);
}

static bool same_model(const struct model *a, const struct model *b)
{
    bool same = a->there == b->there;
    for (size_t s = 0; s < SLOTS; s++)
        same = same && same_slot(&a->slots[s], &b->slots[s]);
    return same;
}

/* `ret` turns the row of `before` into that of `after`, and does so only if there is a need. */
static void check_outcome(const struct hg_row_outcome *ret, const struct model *before,
                          const struct model *after)
{
    switch (ret->act) {
    case HG_ROW_KEEP:
        assert_true(same_model(before, after));
        break;
    case HG_ROW_REMOVE:
        assert_true(before->there && !after->there);
        break;
    case HG_ROW_STORE:
        assert_true(after->there);
        assert_int_equal(ret->row.api, HG_API_TABLE);
        check_entity(&ret->row.entity, after->slots);
        break;
    }
}

/* The row of the model, made anew. */
static struct hg_row row_of_model(const struct model *model, struct hg_column *columns)
{
    struct hg_row row = {.api = HG_API_TABLE, .entity = {columns, 0}};
    for (size_t s = 0; s < SLOTS; s++) {
        const struct slot *slot = &model->slots[s];
        struct hg_column *column = &columns[row.entity.count];
        if (!slot->there)
            continue;
        row.entity.count++;
        *column = (struct hg_column){hg_span(&letters[s], 1), {.kind = slot->kind}};
        if (slot->kind == HG_VALUE_INTEGER)
            column->value.integer = slot->integer;
        if (slot->kind == HG_VALUE_REAL)
            column->value.real = slot->real;
        if (slot->kind == HG_VALUE_BYTES)
            column->value.bytes = hg_span(slot->bytes, slot->len);
    }
    return row;
}

/* Values that have grown long become short again, so that they fit into their slots. */
static void shorten(struct model *model)
{
    for (size_t s = 0; s < SLOTS; s++)
        if (model->slots[s].len > 20)
            model->slots[s].len = below(4);
}

static void test_random_operations(void **state)
{
    (void)state;
    struct model model = {0};
    size_t statuses[8] = {0}, acts[3] = {0};
    prng.state = 1;
    for (int i = 0; i < OPERATIONS; i++) {
        struct room room;
        struct hg_column columns[SLOTS];
        struct hg_row_outcome outcome;
        shorten(&model);
        struct model before = model;
        struct hg_table_item item = some_item(&room);
        struct hg_row row = row_of_model(&before, columns);
        struct answer answer = model_apply(&model, &item);
        hg_tableop_apply(before.there ? &row : NULL, &item, &arena, &outcome);
        check_result(&outcome.result, &answer);
        check_outcome(&outcome, &before, &model);
        statuses[answer.status % 8]++;
        acts[outcome.act]++;
        hg_arena_reset(&arena);
    }
    static const uint16_t expected[] = {0, HG_STATUS_KEY_EEXISTS, HG_STATUS_EINVAL,
                                        HG_STATUS_DELTA_BADVAL};
    for (size_t i = 0; i < 4; i++) /* each of them was met often */
        assert_true(statuses[expected[i]] > OPERATIONS / 100);
    for (size_t i = 0; i < 3; i++)
        assert_true(acts[i] > OPERATIONS / 100);
}

static void test_random_batches(void **state)
{
    (void)state;
    struct model model = {0};
    size_t refused = 0;
    prng.state = 2;
    for (int i = 0; i < OPERATIONS / 4; i++) {
        struct room rooms[BATCH_MAX];
        struct hg_table_item items[BATCH_MAX];
        struct answer answers[BATCH_MAX] = {{0}};
        struct hg_row_result results[BATCH_MAX];
        struct hg_column columns[SLOTS];
        struct hg_row_outcome outcome;
        size_t count = 1 + below(BATCH_MAX), bad = SIZE_MAX, affected = 0;
        shorten(&model);
        struct model before = model;
        struct hg_row row = row_of_model(&before, columns);
        for (size_t k = 0; k < count; k++) {
            items[k] = some_item(&rooms[k]);
            if (bad == SIZE_MAX)
                answers[k] = model_apply(&model, &items[k]);
            affected += answers[k].affected;
            if (bad == SIZE_MAX && answers[k].status != 0)
                bad = k;
        }
        if (bad != SIZE_MAX)
            model = before;
        hg_tableop_apply_all(before.there ? &row : NULL, items, count, &arena, results, &outcome);
        for (size_t k = 0; k < count; k++) {
            struct answer told = {.status = HG_STATUS_NOT_STORED};
            check_result(&results[k], bad == SIZE_MAX || bad == k ? &answers[k] : &told);
        }
        assert_int_equal(outcome.result.status, bad == SIZE_MAX ? 0 : answers[bad].status);
        assert_int_equal(outcome.result.affected, bad == SIZE_MAX ? affected : 0);
        check_outcome(&outcome, &before, &model);
        refused += bad != SIZE_MAX;
        hg_arena_reset(&arena);
    }
    assert_in_range(refused, OPERATIONS / 40, OPERATIONS / 5);
}

/* ---- little memory ---- */

/* With each limit from nothing on: told as such, or as with plenty. */
static void test_no_memory_is_told(void **state)
{
    (void)state;
    struct model model = {0};
    size_t told = 0;
    prng.state = 3;
    for (int i = 0; i < 2000; i++) {
        struct room rooms[BATCH_MAX];
        struct hg_table_item items[BATCH_MAX];
        struct hg_column columns[SLOTS];
        struct hg_row_result results[2][BATCH_MAX];
        struct hg_row_outcome plenty, little;
        size_t count = 1 + below(BATCH_MAX);
        for (size_t k = 0; k < count; k++)
            items[k] = some_item(&rooms[k]);
        shorten(&model);
        struct hg_row row = row_of_model(&model, columns), *old = model.there ? &row : NULL;
        hg_tableop_apply_all(old, items, count, &arena, results[0], &plenty);
        for (size_t limit = 0;; limit += 16) {
            struct hg_arena small;
            hg_arena_init(&small, limit);
            hg_tableop_apply_all(old, items, count, &small, results[1], &little);
            uint16_t status = little.result.status;
            bool out = status == HG_STATUS_ENOMEM;
            if (out) {
                size_t own = 0;
                assert_int_equal(little.act, HG_ROW_KEEP);
                for (size_t k = 0; k < count; k++) {
                    own += results[1][k].status == HG_STATUS_ENOMEM;
                    assert_true(results[1][k].status == HG_STATUS_ENOMEM ||
                                results[1][k].status == HG_STATUS_NOT_STORED);
                    assert_true(results[1][k].text.len > 0 && !results[1][k].found);
                }
                assert_int_equal(own, 1);
                told++;
            } else {
                assert_int_equal(status, plenty.result.status);
                assert_int_equal(little.act, plenty.act);
                assert_int_equal(little.row.entity.count, plenty.row.entity.count);
            }
            hg_arena_fini(&small);
            if (!out)
                break;
            assert_in_range(limit, 0, 100000);
        }
        if (plenty.result.status == 0)
            for (size_t k = 0; k < count; k++)
                model_apply(&model, &items[k]);
        hg_arena_reset(&arena);
    }
    assert_true(told > 10000);
}

static void test_no_memory_for_a_read_is_told(void **state)
{
    (void)state;
    static struct hg_column columns[1000];
    static uint8_t names[1000][2];
    for (size_t i = 0; i < 1000; i++) {
        names[i][0] = (uint8_t)(i >> 8);
        names[i][1] = (uint8_t)i;
        columns[i] =
            (struct hg_column){hg_span(names[i], 2), {.kind = HG_VALUE_INTEGER, .integer = 1}};
    }
    struct hg_row row = {.api = HG_API_TABLE, .entity = {columns, 1000}};
    struct hg_span wanted[2] = {hg_span(names[500], 2), hg_span(names[7], 2)};
    struct hg_query query = {.select = {wanted, 2}};
    size_t told = 0;
    for (size_t limit = 0;; limit += 16) {
        struct hg_arena small;
        struct hg_filter_state pages = {{0}};
        struct hg_found_row found;
        bool memory = false;
        hg_arena_init(&small, limit);
        bool part =
            hg_tableop_read(&row, HG_SPAN_LIT("key"), &query, &pages, &small, &found, &memory);
        assert_int_equal(part, !memory);
        if (part) {
            assert_int_equal(found.entity.count, 2);
            assert_ptr_equal(found.entity.columns[0].name.at, names[7]);
        }
        hg_arena_fini(&small);
        if (part)
            break;
        told++;
    }
    assert_in_range(told, 10, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_random_operations),
        TEST(test_random_batches),
        TEST(test_no_memory_is_told),
        TEST(test_no_memory_for_a_read_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
