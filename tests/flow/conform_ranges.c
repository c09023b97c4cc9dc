// conform_ranges - what every store that keeps an order does with stretches of a table's rows
// SPDX-License-Identifier: BSD-3-Clause
#include "conform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "proto/rowdoc.h"
#include "walk.h"

enum { ROWS = 60 };

static struct hg_result write_row(struct conform *c, enum hg_op op, const char *table,
                                  const char *row, uint64_t cas, const char *value)
{
    struct note note;
    conform_note(c, &note, op, "");
    int len = snprintf(note.key, sizeof note.key, "%s%c%s", table, 0, row);
    note.call.key = hg_span(note.key, (size_t)len);
    note.call.row = true;
    note.call.cas = cas;
    note.call.item_flags = op == HG_OP_DELETE ? 0 : HG_ROWDOC_FLAGS;
    note.call.value = op == HG_OP_DELETE ? HG_SPAN_NONE : hg_span_str(value);
    return conform_finish(c, &note);
}

static void name_of(int i, char out[WALK_NAME])
{
    snprintf(out, WALK_NAME, "r%02u", (unsigned)i % 100);
}

static struct walk *new_walk(struct conform *c, const char *from, const char *to, bool reverse,
                             uint32_t most)
{
    static struct walk walk;
    walk_init(&walk, c->store, c->prefix, from, to, reverse, most);
    walk.range.tenant_id = c->tenant_id;
    return &walk;
}

/* --- beside a model --- */

struct model {
    bool there;
    uint64_t cas;
    char value[16];
};

static void expect_stretch(struct conform *c, const struct model *models, int from, int to,
                           bool reverse, uint32_t most)
{
    char low[WALK_NAME], high[WALK_NAME], name[WALK_NAME];
    name_of(from, low);
    name_of(to, high);
    struct walk *walk = new_walk(c, from == 0 ? "" : low, to == ROWS ? NULL : high, reverse, most);
    int pages = walk_all(walk, &c->bench);
    int found = 0;
    for (int k = 0; k < to - from; k++) {
        int i = reverse ? to - 1 - k : from + k;
        if (!models[i].there)
            continue;
        name_of(i, name);
        assert_true(found < walk->items);
        assert_string_equal(walk->names[found], name);
        assert_string_equal(walk->values[found], models[i].value);
        found++;
    }
    assert_int_equal(found, walk->items);
    assert_in_range(pages, (found + (int)most - 1) / (int)most, (to - from) / (int)most + 1);
}

/* A row that is there goes, as when it expired if the kind knows a way for that. */
static void lose(struct conform *c, struct model *model, const char *name)
{
    if (conform_kind()->lose != NULL)
        conform_kind()->lose(c, "t", name);
    else
        assert_int_equal(write_row(c, HG_OP_DELETE, "t", name, 0, "").status, 0);
    model->there = false;
}

static void write_any(struct conform *c, struct hg_prng *prng, struct model *model,
                      const char *name, const char *value)
{
    uint64_t cas = hg_prng_below(prng, 5) == 0 ? 1 : model->cas;
    unsigned what = (unsigned)hg_prng_below(prng, 8);
    if (!model->there) {
        struct hg_result r =
            write_row(c, what == 0 ? HG_OP_SET : HG_OP_ADD, "t", name, what == 0 ? 1 : 0, value);
        assert_int_equal(r.status, what == 0 ? HG_STATUS_KEY_ENOENT : 0);
        if (r.status == 0) {
            *model = (struct model){true, r.cas, ""};
            memcpy(model->value, value, sizeof model->value);
        }
    } else if (what < 4) {
        struct hg_result r = write_row(c, HG_OP_SET, "t", name, cas, value);
        assert_int_equal(r.status, cas == model->cas ? 0 : HG_STATUS_KEY_EEXISTS);
        if (r.status == 0) {
            model->cas = r.cas;
            memcpy(model->value, value, sizeof model->value);
        }
    } else if (what < 6) {
        struct hg_result r = write_row(c, HG_OP_DELETE, "t", name, cas, "");
        assert_int_equal(r.status, cas == model->cas ? 0 : HG_STATUS_KEY_EEXISTS);
        model->there = r.status != 0;
    } else if (what == 6) {
        assert_int_equal(write_row(c, HG_OP_ADD, "t", name, 0, value).status,
                         HG_STATUS_KEY_EEXISTS);
    } else {
        lose(c, model, name);
    }
}

/* Random writes, some refused, some behind the store's back; random stretches after each few. */
static void beside_the_model(struct conform *c)
{
    static struct model models[ROWS];
    struct hg_prng prng = {3};
    memset(models, 0, sizeof models);
    for (int step = 0; step < 3000; step++) {
        char name[WALK_NAME], value[16];
        int i = (int)hg_prng_below(&prng, ROWS);
        name_of(i, name);
        snprintf(value, sizeof value, "v%d", step);
        write_any(c, &prng, &models[i], name, value);
        if (step % 10 == 0) {
            int from = (int)hg_prng_below(&prng, ROWS), to = (int)hg_prng_below(&prng, ROWS + 1);
            if (from <= to)
                expect_stretch(c, models, from, to, hg_prng_below(&prng, 2),
                               1 + (uint32_t)hg_prng_below(&prng, 20));
        }
    }
    expect_stretch(c, models, 0, ROWS, false, 1000);
    expect_stretch(c, models, 0, ROWS, true, 1000);
    /* All that is gone was pruned by the last walks. */
    long there = 0;
    for (int i = 0; i < ROWS; i++)
        there += models[i].there;
    if (conform_kind()->indexed != NULL)
        assert_int_equal(conform_kind()->indexed(c, "t"), there);
}

/* --- single stretches --- */

/* A stretch does not see other tables, nor items whose names are near. */
static void alone(struct conform *c)
{
    struct note note;
    struct walk *walk = new_walk(c, "", NULL, false, 10);
    assert_int_equal(walk_all(walk, &c->bench), 1);
    assert_int_equal(walk->items, 0);
    assert_int_equal(walk->last_len, 0);
    assert_int_equal(write_row(c, HG_OP_ADD, "t", "b", 0, "1").status, 0);
    conform_note(c, &note, HG_OP_SET, "");
    note.call.key = HG_SPAN_LIT("\0it");
    assert_int_equal(conform_finish(c, &note).status, 0);
    assert_int_equal(write_row(c, HG_OP_ADD, "tt", "a", 0, "").status, 0);
    assert_int_equal(write_row(c, HG_OP_ADD, "s", "a", 0, "").status, 0);
    walk = new_walk(c, "", NULL, false, 10);
    walk_all(walk, &c->bench);
    assert_int_equal(walk->items, 1);
    assert_string_equal(walk->names[0], "b");
}

static void add_rows(struct conform *c, int count, const char *value)
{
    char name[WALK_NAME];
    for (int i = 0; i < count; i++) {
        name_of(i, name);
        assert_int_equal(write_row(c, HG_OP_ADD, "t", name, 0, value).status, 0);
    }
}

/* Enough is enough, and where it stopped is told. */
static void enough(struct conform *c)
{
    add_rows(c, 20, "v");
    for (int reverse = 0; reverse < 2; reverse++) {
        struct walk *walk = new_walk(c, "", NULL, reverse, 100);
        walk->stop_after = 5;
        walk_page(walk, &c->bench);
        assert_int_equal(walk->end.fault, HG_FAULT_NONE);
        assert_int_equal(walk->items, 5);
        assert_true(walk->end.more);
        assert_int_equal(walk->last_len, 5);
        assert_memory_equal(walk->last, reverse ? "t\0r15" : "t\0r04", 5);
    }
}

/* Rows that together are more than one reply may have, and one that is that alone. */
static void large(struct conform *c)
{
    enum { BYTES = 100000, COUNT = 20, HUGE_BYTES = 1000000 };
    char *value = malloc(HUGE_BYTES + 1);
    assert_non_null(value);
    memset(value, 'x', HUGE_BYTES);
    value[BYTES] = '\0';
    add_rows(c, COUNT, value);
    value[BYTES] = 'x';
    value[HUGE_BYTES] = '\0';
    assert_int_equal(write_row(c, HG_OP_ADD, "t", "r00a", 0, value).status, 0);
    for (int reverse = 0; reverse < 2; reverse++) {
        struct walk *walk = new_walk(c, "", NULL, reverse, 100);
        walk_all(walk, &c->bench);
        assert_int_equal(walk->items, COUNT + 1);
        assert_string_equal(walk->names[reverse ? COUNT - 1 : 1], "r00a");
    }
    free(value);
}

/* One that is given up while it is on its way is not answered. */
static void given_up(struct conform *c)
{
    add_rows(c, 3, "v");
    struct walk *walk = new_walk(c, "", NULL, false, 100);
    bench_turn(&c->bench);
    c->store->ops->range(c->store, &walk->range);
    int before = walk->done;
    if (before == 0)
        c->store->ops->cancel_range(c->store, &walk->range);
    CONFORM_UNTIL(c, c->store->ops->drained(c->store));
    conform_expect(c, "none", NULL);
    assert_int_equal(walk->done, before);
    walk = new_walk(c, "", NULL, false, 100);
    walk_all(walk, &c->bench);
    assert_int_equal(walk->items, 3);
}

/* A store without order has no ranges, or says so. */
static void refused(struct conform *c)
{
    struct walk *walk = new_walk(c, "", NULL, false, 100);
    if (c->store->ops->range == NULL)
        return;
    walk_page(walk, &c->bench);
    assert_int_equal(walk->end.fault, HG_FAULT_NOT_SUPPORTED);
    assert_non_null(strstr(walk->text, "ranges"));
}

const struct conform_case conform_ranges[] = {
    {"ranges beside the model", .needs = HAS_ORDER | IS_FAST, .run = beside_the_model},
    {"a range of one table", .needs = HAS_ORDER, .run = alone},
    {"a range that has enough", .needs = HAS_ORDER, .run = enough},
    {"a range of large rows", .needs = HAS_ORDER, .run = large},
    {"a range that is given up", .needs = HAS_ORDER, .run = given_up},
    {"no ranges", .lacks = HAS_ORDER, .run = refused},
};
const size_t conform_ranges_count = HG_COUNT_OF(conform_ranges);
