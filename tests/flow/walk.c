// walk - reads a range over the rows of table "t" to its end, page by page
// SPDX-License-Identifier: BSD-3-Clause
#include "walk.h"

#include <stdio.h>
#include <string.h>

#include "proto/rowdoc.h"

static bool on_item(struct hg_range_call *range, const struct hg_range_item *item)
{
    struct walk *walk = HG_CONTAINER_OF(range, struct walk, range);
    assert_in_range(item->key.len, 3, WALK_NAME + 2);
    assert_memory_equal(item->key.at, "t\0", 2);
    assert_int_equal(item->item_flags, HG_ROWDOC_FLAGS);
    assert_true(item->cas != 0);
    assert_in_range(walk->items, 0, WALK_ITEMS - 1);
    int i = walk->items++;
    snprintf(walk->names[i], WALK_NAME, "%.*s", (int)item->key.len - 2,
             (const char *)item->key.at + 2);
    snprintf(walk->values[i], 16, "%.*s", (int)item->value.len, (const char *)item->value.at);
    return walk->stop_after == 0 || walk->items < walk->stop_after;
}

static void on_done(struct hg_range_call *range, const struct hg_range_end *end)
{
    struct walk *walk = HG_CONTAINER_OF(range, struct walk, range);
    walk->done++;
    walk->end = *end;
    walk->last_len = end->last.len;
    assert_true(end->last.len <= sizeof walk->last);
    if (end->last.len > 0)
        memcpy(walk->last, end->last.at, end->last.len);
    snprintf(walk->text, sizeof walk->text, "%.*s", (int)end->text.len,
             end->text.len > 0 ? (const char *)end->text.at : "");
}

void walk_init(struct walk *walk, struct hg_store *store, struct hg_span prefix, const char *from,
               const char *to, bool reverse, uint32_t most)
{
    memset(walk, 0, sizeof *walk);
    size_t from_len = (size_t)snprintf(walk->bounds[0], 32, "t%c%s", 0, from);
    size_t to_len = to == NULL ? 2 : (size_t)snprintf(walk->bounds[1], 32, "t%c%s", 0, to);
    if (to == NULL)
        memcpy(walk->bounds[1], "t\1", 2);
    walk->store = store;
    walk->range = (struct hg_range_call){.prefix = prefix,
                                         .from = hg_span(walk->bounds[0], from_len),
                                         .to = hg_span(walk->bounds[1], to_len),
                                         .reverse = reverse,
                                         .max_items = most,
                                         .max_us = 60000000,
                                         .on_item = on_item,
                                         .on_done = on_done};
}

void walk_page(struct walk *walk, struct bench *bench)
{
    bench_turn(bench); /* what the test did meanwhile took no time of the call's */
    walk->done = 0;
    walk->store->ops->range(walk->store, &walk->range);
    uint64_t end_us = hg_now_us() + 60000000 * bench_scale();
    while (walk->done == 0) {
        assert_true(hg_now_us() < end_us);
        bench_turn(bench);
    }
    assert_int_equal(walk->done, 1);
}

int walk_all(struct walk *walk, struct bench *bench)
{
    for (int pages = 1;; pages++) {
        walk_page(walk, bench);
        if (walk->end.fault != HG_FAULT_NONE)
            fail_msg("fault %d: %s", walk->end.fault, walk->text);
        if (!walk->end.more)
            return pages;
        assert_in_range(walk->last_len, 3, 30);
        char *bound = walk->bounds[walk->range.reverse];
        memcpy(bound, walk->last, walk->last_len);
        bound[walk->last_len] = 0;
        if (walk->range.reverse)
            walk->range.to = hg_span(bound, walk->last_len);
        else
            walk->range.from = hg_span(bound, walk->last_len + 1);
    }
}
