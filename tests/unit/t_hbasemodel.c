// t_hbasemodel - random HBase operations against a model that knows no order: cells in a heap
// SPDX-License-Identifier: BSD-3-Clause
//
// The model keeps cells as numbers in an unsorted array and answers every question by looking at
// all of them. After each operation the result and the row are compared; clocks go back now and
// then, families change their attributes while rows live.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "proto/rowdoc.h"
#include "proto/status.h"
#include "table/hbaseop.h"

enum { FAMILIES = 4, NAMES = 6, LISTED = 3, CELLS_MAX = 512, SENT_MAX = 6 };

/* In the order of memcmp, so that numbers can be compared in their place. */
static const struct hg_span families[FAMILIES] = {HG_SPAN_LIT("\x01"), HG_SPAN_LIT("a"),
                                                  HG_SPAN_LIT("aa"), HG_SPAN_LIT("\xff")};
static const struct hg_span names[NAMES] = {HG_SPAN_LIT(""),   HG_SPAN_LIT("\x01"),
                                            HG_SPAN_LIT("a"),  HG_SPAN_LIT("aa"),
                                            HG_SPAN_LIT("ab"), HG_SPAN_LIT("\xff")};

struct cell {
    int family, qualifier;
    int64_t at;
    uint8_t value[16];
    size_t len;
};

struct heap {
    struct cell cells[CELLS_MAX];
    size_t count;
};

struct model {
    struct hg_prng prng;
    struct hg_family listed[LISTED];
    struct hg_families families;
    int64_t now;
    struct heap row; /* as it is stored, the dead included */
    struct hg_row real;
    bool is_there;
    struct hg_arena arenas[2]; /* of the row as it is, and as it was */
    bool turn;                 /* which is which */
    struct hg_arena arena;     /* of a request */
    struct hg_row_outcome out;
    size_t done[HG_OPS], refused, held, failed, removed, put_last;
};

static int below(struct model *model, int bound)
{
    return (int)hg_prng_below(&model->prng, (uint64_t)bound);
}

/* ---- the model ---- */

static void add(struct heap *heap, struct cell cell)
{
    assert_true(heap->count < CELLS_MAX);
    heap->cells[heap->count++] = cell;
}

static bool in_column(const struct cell *cell, int family, int qualifier)
{
    return cell->family == family && cell->qualifier == qualifier;
}

static void attributes(const struct model *model, int family, int64_t *ret_ttl,
                       size_t *ret_versions)
{
    *ret_ttl = 0;
    *ret_versions = HG_FAMILY_VERSIONS;
    for (size_t i = 0; i < model->families.count; i++)
        if (hg_span_equal(model->listed[i].name, families[family])) {
            *ret_ttl = (int64_t)model->listed[i].ttl_ms;
            *ret_versions = model->listed[i].max_versions;
        }
}

static size_t newer(const struct heap *heap, const struct cell *cell)
{
    size_t count = 0;
    for (size_t i = 0; i < heap->count; i++)
        count += in_column(&heap->cells[i], cell->family, cell->qualifier) &&
                 heap->cells[i].at > cell->at;
    return count;
}

static struct heap alive(const struct model *model, const struct heap *heap)
{
    struct heap living = {.count = 0};
    for (size_t i = 0; i < heap->count; i++) {
        int64_t ttl;
        size_t versions;
        attributes(model, heap->cells[i].family, &ttl, &versions);
        if ((ttl == 0 || heap->cells[i].at + ttl > model->now) &&
            newer(heap, &heap->cells[i]) < versions)
            add(&living, heap->cells[i]);
    }
    return living;
}

static void overwrite(struct heap *heap, struct cell cell)
{
    for (size_t i = 0; i < heap->count; i++)
        if (in_column(&heap->cells[i], cell.family, cell.qualifier) &&
            heap->cells[i].at == cell.at) {
            heap->cells[i] = cell;
            return;
        }
    add(heap, cell);
}

static const struct cell *newest(const struct heap *heap, int family, int qualifier)
{
    for (size_t i = 0; i < heap->count; i++)
        if (in_column(&heap->cells[i], family, qualifier) && newer(heap, &heap->cells[i]) == 0)
            return &heap->cells[i];
    return NULL;
}

/* How many cells come before this one in the order of a row. */
static size_t place(const struct heap *heap, const struct cell *cell)
{
    size_t before = 0;
    for (size_t i = 0; i < heap->count; i++) {
        const struct cell *other = &heap->cells[i];
        before += other->family < cell->family ||
                  (other->family == cell->family && other->qualifier < cell->qualifier) ||
                  (in_column(other, cell->family, cell->qualifier) && other->at > cell->at);
    }
    return before;
}

static void assert_same(const struct heap *heap, const struct hg_cells *cells)
{
    assert_int_equal(heap->count, cells->count);
    for (size_t i = 0; i < heap->count; i++) {
        const struct cell *mine = &heap->cells[i];
        const struct hg_cell *its = &cells->list[place(heap, mine)];
        assert_true(its->dated);
        assert_true(hg_span_equal(its->family, families[mine->family]));
        assert_true(hg_span_equal(its->qualifier, names[mine->qualifier]));
        assert_true(its->at_ms == mine->at);
        assert_true(hg_span_equal(its->value, hg_span(mine->value, mine->len)));
    }
}

/* ---- requests ---- */

static int some_name(struct model *model)
{
    return below(model, NAMES);
}

/* Of few columns, so that they meet; around now. */
static struct cell some_cell(struct model *model)
{
    struct cell cell = {.family = below(model, FAMILIES), .qualifier = some_name(model)};
    cell.at = model->now - 30 + below(model, 40);
    if (cell.at < 0)
        cell.at = 0;
    cell.len = below(model, 2) ? 8 : (size_t)below(model, 3);
    for (size_t i = 0; i < cell.len; i++)
        cell.value[i] = (uint8_t)(below(model, 3) * 127);
    return cell;
}

static void *room(struct model *model, size_t count, size_t size)
{
    void *at = hg_arena_array(&model->arena, count, size);
    assert_non_null(at);
    return at;
}

/* Keeps the new row as a store does, as a document; reading it checks its order. */
static void keep_row(struct model *model)
{
    struct hg_arena *arena = &model->arenas[model->turn = !model->turn];
    struct hg_span document;
    hg_arena_reset(arena);
    if (!model->is_there)
        return;
    assert_true(hg_rowdoc_encode(&model->out.row, arena, &document));
    assert_int_equal(hg_rowdoc_decode(document, arena, &model->real), 0);
    assert_int_equal(model->real.api, HG_API_HBASE);
}

/* Applies and compares: the row as the model says, or as it was. */
static void apply(struct model *model, const struct hg_hbase_item *item, const struct heap *wanted,
                  size_t affected)
{
    hg_hbaseop_apply(model->is_there ? &model->real : NULL, item, &model->families, model->now,
                     &model->arena, &model->out);
    model->done[item->op]++;
    assert_int_equal(model->out.result.affected, affected);
    if (wanted == NULL) {
        assert_int_equal(model->out.act, HG_ROW_KEEP);
        return;
    }
    assert_int_equal(model->out.result.status, 0);
    assert_int_equal(model->out.act, wanted->count > 0 ? HG_ROW_STORE
                                     : model->is_there ? HG_ROW_REMOVE
                                                       : HG_ROW_KEEP);
    if (wanted->count > 0)
        assert_same(wanted, &model->out.row.cells);
    model->row = *wanted;
    model->is_there = wanted->count > 0;
    model->removed += wanted->count == 0;
    keep_row(model);
}

static struct hg_cell as_sent(const struct cell *cell, bool dated)
{
    return (struct hg_cell){families[cell->family], names[cell->qualifier], cell->at, dated,
                            hg_span(cell->value, cell->len)};
}

/* Fills the cells of a request and puts them into `heap`; how many differ. */
static size_t send_cells(struct model *model, struct hg_hbase_item *item, int64_t undated,
                         struct heap *heap)
{
    struct heap distinct = {.count = 0};
    size_t count = (size_t)below(model, SENT_MAX) + 1;
    struct cell *sent = room(model, count, sizeof *sent);
    item->cells.list = room(model, count, sizeof *item->cells.list);
    item->cells.count = count;
    for (size_t i = 0; i < count; i++) {
        sent[i] = some_cell(model);
        bool dated = below(model, 3) > 0;
        item->cells.list[i] = as_sent(&sent[i], dated);
        struct cell kept = sent[i];
        if (!dated)
            kept.at = undated;
        overwrite(&distinct, kept);
        overwrite(heap, kept);
    }
    model->put_last += distinct.count < count;
    return distinct.count;
}

static void put(struct model *model)
{
    struct hg_hbase_item item = {.op = HG_OP_HBASE_PUT};
    struct heap heap = alive(model, &model->row);
    size_t affected = send_cells(model, &item, model->now, &heap);
    heap = alive(model, &heap);
    apply(model, &item, &heap, affected);
}

static bool is_hit(const struct heap *living, const struct cell *cell,
                   const struct hg_deletion *list, size_t count)
{
    size_t of_newest = 0;
    for (size_t i = 0; i < count; i++) {
        const struct hg_deletion *one = &list[i];
        bool family = hg_span_equal(one->family, families[cell->family]);
        bool column = family && hg_span_equal(one->qualifier, names[cell->qualifier]);
        bool until = !one->dated || cell->at <= one->at_ms;
        if ((one->kind == HG_DELETION_ROW && until) ||
            (one->kind == HG_DELETION_FAMILY && family && until) ||
            (one->kind == HG_DELETION_COLUMNS && column && until) ||
            (one->kind >= HG_DELETION_COLUMN && column && one->dated && cell->at == one->at_ms))
            return true;
        of_newest += one->kind == HG_DELETION_COLUMN && column && !one->dated;
    }
    return newer(living, cell) < of_newest;
}

/* Fills the deletions of a request; what they leave, and how many cells they take. */
static size_t send_deletions(struct model *model, struct hg_hbase_item *item, struct heap *left)
{
    const struct hg_deletion whole = {.kind = HG_DELETION_ROW};
    struct heap living = alive(model, &model->row);
    size_t count = (size_t)below(model, SENT_MAX);
    if (count == 0 && below(model, 4) > 0)
        count = 1;
    struct hg_deletion *list = room(model, count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        struct cell cell = some_cell(model);
        if (living.count > 0 && below(model, 2))
            cell = living.cells[below(model, (int)living.count)];
        list[i].kind =
            below(model, 12) == 0 ? HG_DELETION_ROW : (enum hg_deletion_kind)(1 + below(model, 4));
        list[i].family = families[cell.family];
        list[i].qualifier = names[cell.qualifier];
        list[i].dated = list[i].kind == HG_DELETION_VERSION || below(model, 2);
        list[i].at_ms = list[i].kind == HG_DELETION_ROW ? cell.at - 10 : cell.at;
        if (list[i].at_ms < 0)
            list[i].at_ms = 0;
    }
    item->deletions = list;
    item->deletion_count = count;
    left->count = 0;
    for (size_t i = 0; i < living.count; i++)
        if (!is_hit(&living, &living.cells[i], count > 0 ? list : &whole, count > 0 ? count : 1))
            add(left, living.cells[i]);
    return living.count - left->count;
}

static void delete_some(struct model *model)
{
    struct hg_hbase_item item = {.op = HG_OP_HBASE_DELETE};
    struct heap left;
    size_t affected = send_deletions(model, &item, &left);
    apply(model, &item, affected > 0 ? &left : NULL, affected);
}

static int compare(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
    for (size_t i = 0; i < a_len && i < b_len; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return a_len < b_len ? -1 : a_len > b_len;
}

static bool holds(const struct hg_hbase_check *check, const struct cell *cell)
{
    if (!check->has_value)
        return (cell == NULL || cell->len == 0) == (check->op == HG_EQUAL);
    if (cell == NULL)
        return false;
    int order = compare(check->value.at, check->value.len, cell->value, cell->len);
    const bool answers[] = {order == 0, order != 0, order<0, order <= 0, order> 0, order >= 0};
    return answers[check->op];
}

static void check_and(struct model *model)
{
    bool puts = below(model, 2);
    struct hg_hbase_item item = {.op = puts ? HG_OP_HBASE_CHECK_AND_PUT
                                            : HG_OP_HBASE_CHECK_AND_DELETE};
    struct heap living = alive(model, &model->row), heap = living;
    struct cell wanted = some_cell(model);
    if (living.count > 0 && below(model, 3))
        wanted = living.cells[below(model, (int)living.count)];
    const struct cell *found = newest(&living, wanted.family, wanted.qualifier);
    item.check.family = families[wanted.family];
    item.check.qualifier = names[wanted.qualifier];
    item.check.has_value = below(model, 4) > 0;
    item.check.op = (enum hg_operator)below(model, item.check.has_value ? 6 : 2);
    item.check.value = hg_span(wanted.value, wanted.len);
    bool held = holds(&item.check, found);
    bool changes = true;
    if (puts) {
        int64_t undated = found != NULL && found->at > model->now ? found->at : model->now;
        send_cells(model, &item, undated, &heap);
        heap = alive(model, &heap);
    } else {
        changes = send_deletions(model, &item, &heap) > 0;
    }
    apply(model, &item, held && changes ? &heap : NULL, held);
    assert_int_equal(model->out.result.status, 0);
    assert_int_equal(model->out.result.processed, held);
    if (held)
        model->held++;
    else
        model->failed++;
}

/* The new version of a column gets its timestamp. */
static struct cell next_of(const struct model *model, const struct cell *old, struct cell sent)
{
    sent.at = model->now;
    if (old != NULL && old->at >= model->now)
        sent.at = old->at + 1;
    return sent;
}

static void append(struct model *model)
{
    struct hg_hbase_item item = {.op = HG_OP_HBASE_APPEND};
    struct heap living = alive(model, &model->row), heap = living, fresh = {.count = 0};
    struct cell *sent = room(model, SENT_MAX, sizeof *sent);
    item.cells.list = room(model, SENT_MAX, sizeof *item.cells.list);
    bool twice = false;
    for (int i = below(model, SENT_MAX / 2); i >= 0; i--) {
        struct cell *one = &sent[item.cells.count];
        *one = some_cell(model);
        one->len = one->len > 2 ? 2 : one->len;
        const struct cell *old = newest(&living, one->family, one->qualifier);
        if (old != NULL && old->len > 12)
            continue;
        twice = twice || newest(&fresh, one->family, one->qualifier) != NULL;
        item.cells.list[item.cells.count++] = as_sent(one, false);
        struct cell made = next_of(model, old, *one);
        if (old != NULL) {
            memcpy(made.value, old->value, old->len);
            memcpy(made.value + old->len, one->value, one->len);
            made.len = old->len + one->len;
        }
        add(&fresh, made);
        overwrite(&heap, made);
    }
    if (item.cells.count == 0)
        return;
    heap = alive(model, &heap);
    apply(model, &item, twice ? NULL : &heap, twice ? 0 : fresh.count);
    assert_int_equal(model->out.result.status, twice ? HG_STATUS_EINVAL : 0);
    if (!twice)
        assert_same(&fresh, &model->out.result.cells);
    model->refused += twice;
}

static void increment(struct model *model)
{
    static const int64_t amounts[] = {0, 1, -1, 1000, INT64_MAX, INT64_MIN};
    struct hg_hbase_item item = {.op = HG_OP_HBASE_INCREMENT};
    struct heap living = alive(model, &model->row), heap = living, fresh = {.count = 0};
    item.counters = room(model, SENT_MAX, sizeof *item.counters);
    bool twice = false, wrong = false;
    for (int i = below(model, SENT_MAX / 2); i >= 0; i--) {
        struct cell one = some_cell(model);
        if (below(model, 3) && living.count > 0)
            one = living.cells[below(model, (int)living.count)];
        int64_t amount = amounts[below(model, 6)];
        const struct cell *old = newest(&living, one.family, one.qualifier);
        twice = twice || newest(&fresh, one.family, one.qualifier) != NULL;
        wrong = wrong || (old != NULL && old->len != 8);
        item.counters[item.counter_count++] =
            (struct hg_counter_add){families[one.family], names[one.qualifier], amount};
        struct cell made = next_of(model, old, one);
        uint64_t sum = (uint64_t)amount;
        if (old != NULL)
            sum += hg_get_u64(old->value);
        hg_put_u64(made.value, sum);
        made.len = 8;
        add(&fresh, made);
        overwrite(&heap, made);
    }
    heap = alive(model, &heap);
    apply(model, &item, twice || wrong ? NULL : &heap, twice || wrong ? 0 : fresh.count);
    uint16_t status = model->out.result.status;
    if (!twice && !wrong)
        assert_same(&fresh, &model->out.result.cells);
    else if (twice && wrong)
        assert_true(status == HG_STATUS_EINVAL || status == HG_STATUS_DELTA_BADVAL);
    else
        assert_int_equal(status, twice ? HG_STATUS_EINVAL : HG_STATUS_DELTA_BADVAL);
    model->refused += twice || wrong;
}

/* Random columns into a read; without any all are meant. */
static void send_columns(struct model *model, struct hg_hbase_read *read, bool all[FAMILIES],
                         bool some[FAMILIES][NAMES])
{
    read->column_count = (size_t)below(model, 4);
    read->columns = room(model, read->column_count, sizeof *read->columns);
    for (size_t i = 0; i < read->column_count; i++) {
        int family = below(model, FAMILIES);
        struct hg_family_columns *one = &read->columns[i];
        one->family = families[family];
        one->qualifiers.count = (size_t)below(model, 4);
        one->qualifiers.list = room(model, one->qualifiers.count, sizeof *one->qualifiers.list);
        all[family] = all[family] || one->qualifiers.count == 0;
        for (size_t j = 0; j < one->qualifiers.count; j++) {
            int qualifier = some_name(model);
            one->qualifiers.list[j] = names[qualifier];
            some[family][qualifier] = true;
        }
    }
    for (int f = 0; f < FAMILIES && read->column_count == 0; f++)
        all[f] = true;
}

static void get(struct model *model)
{
    struct hg_hbase_item item = {.op = HG_OP_HBASE_GET, .row = HG_SPAN_LIT("r")};
    struct hg_hbase_read *read = &item.read;
    bool all[FAMILIES] = {false}, some[FAMILIES][NAMES] = {{false}};
    send_columns(model, read, all, some);
    read->min_ms = below(model, 3) ? INT64_MIN : model->now - below(model, 30);
    read->max_ms = below(model, 3) ? INT64_MAX : model->now - 15 + below(model, 30);
    read->max_versions = (uint32_t)below(model, 4) + 1;
    int64_t at[] = {model->now - below(model, 20), model->now - below(model, 20)};
    struct hg_filter_node node = {
        .kind = HG_FILTER_TIMESTAMPS, .timestamps = at, .timestamp_count = 2};
    bool filtered = below(model, 4) == 0;
    if (filtered)
        read->filter = (struct hg_filter){&node, 1};
    struct heap living = alive(model, &model->row), passed = {.count = 0}, seen = {.count = 0};
    for (size_t i = 0; i < living.count; i++) {
        const struct cell *cell = &living.cells[i];
        if ((all[cell->family] || some[cell->family][cell->qualifier]) &&
            cell->at >= read->min_ms && cell->at < read->max_ms &&
            (!filtered || cell->at == at[0] || cell->at == at[1]))
            add(&passed, *cell);
    }
    for (size_t i = 0; i < passed.count; i++)
        if (newer(&passed, &passed.cells[i]) < read->max_versions)
            add(&seen, passed.cells[i]);
    apply(model, &item, NULL, 0);
    assert_int_equal(model->out.result.status, 0);
    assert_same(&seen, &model->out.result.cells);
}

/* When the model's row is over: the first time at which nothing of it is alive. */
static void compare_expiry(struct model *model)
{
    if (!model->is_there)
        return;
    int64_t last = 0, ttl;
    size_t versions;
    for (size_t i = 0; i < model->row.count; i++) {
        attributes(model, model->row.cells[i].family, &ttl, &versions);
        if (ttl == 0) {
            last = 0;
            break;
        }
        if (model->row.cells[i].at + ttl > last)
            last = model->row.cells[i].at + ttl;
    }
    assert_true(hg_hbaseop_expiry(&model->real, &model->families) == last);
}

static void change_families(struct model *model)
{
    static const uint64_t ttls[] = {0, 5, 25, 200};
    model->families.count = LISTED;
    for (int i = 0; i < LISTED; i++)
        model->listed[i] =
            (struct hg_family){families[i], ttls[below(model, 4)], (uint32_t)below(model, 5) + 1};
}

static void run(struct model *model, int operations)
{
    void (*const steps[])(struct model *) = {
        put, put, put, get, get, append, increment, increment, check_and, check_and, delete_some};
    model->families.list = model->listed;
    change_families(model);
    model->now = below(model, 100);
    for (int i = 0; i < operations; i++) {
        hg_arena_reset(&model->arena);
        steps[below(model, (int)(sizeof steps / sizeof *steps))](model);
        compare_expiry(model);
        model->now += below(model, 8);
        if (below(model, 40) == 0)
            model->now -= below(model, model->now > 30 ? 30 : 1);
        if (below(model, 200) == 0)
            change_families(model);
    }
}

static void test_against_the_model(void **state)
{
    (void)state;
    static struct model model;
    hg_arena_init(&model.arena, 1 << 20);
    for (int i = 0; i < 2; i++)
        hg_arena_init(&model.arenas[i], 1 << 20);
    for (uint64_t seed = 1; seed <= 40; seed++) {
        model.prng.state = seed;
        model.is_there = false;
        model.row.count = 0;
        run(&model, 1000);
    }
    const enum hg_op ops[] = {
        HG_OP_HBASE_PUT,           HG_OP_HBASE_DELETE,           HG_OP_HBASE_GET,
        HG_OP_HBASE_CHECK_AND_PUT, HG_OP_HBASE_CHECK_AND_DELETE, HG_OP_HBASE_APPEND,
        HG_OP_HBASE_INCREMENT};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        assert_true(model.done[ops[i]] > 1000);
    assert_true(model.refused > 1000 && model.held > 1000 && model.failed > 1000);
    assert_true(model.removed > 100 && model.put_last > 100);
    hg_arena_fini(&model.arena);
    for (int i = 0; i < 2; i++)
        hg_arena_fini(&model.arenas[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_the_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
