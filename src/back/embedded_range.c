// embedded_range - stretches of keys of the embedded store, in order
// SPDX-License-Identifier: BSD-3-Clause
//
// A range is answered within the call, from a snapshot of its own that is as new as the newest
// commit and ends with the call: nothing is pinned, however long a caller takes from one stretch
// to the next. Records that are expired, flushed or not ours are looked at and passed over.
#include <assert.h>
#include <errno.h>

#include "back/embedded_shared.h"
#include "base/clock.h"

#define RANGE        3  /* its reader */
#define ITEMS_A_LOOK 16 /* at the clock */

/* One walk over a stretch. */
struct walk {
    struct hg_embedded *embedded;
    struct hg_range_call *call;
    MDB_cursor *cursor;
    MDB_val key, record; /* where the cursor is */
    MDB_val from, to;
    size_t head; /* bytes before the key proper */
    uint8_t from_bytes[HG_EMBEDDED_KEY_BYTES], to_bytes[HG_EMBEDDED_KEY_BYTES];
    uint64_t wall_s, end_us;
    struct hg_item_flush flush;
    uint8_t last[HG_EMBEDDED_KEY_BYTES];
    struct hg_range_end end;
};

static int compare(const MDB_val *a, const MDB_val *b)
{
    size_t len = a->mv_size < b->mv_size ? a->mv_size : b->mv_size;
    int order = memcmp(a->mv_data, b->mv_data, len);
    return order != 0 ? order : (a->mv_size > b->mv_size) - (a->mv_size < b->mv_size);
}

static void fail(struct walk *walk, enum hg_fault fault, const char *text)
{
    walk->end.fault = fault;
    walk->end.text = hg_span_str(text);
}

/* The keys of the bounds; false when one is longer than any key can be. */
static bool set_bounds(struct walk *walk)
{
    const struct hg_range_call *call = walk->call;
    walk->from.mv_data = walk->from_bytes;
    walk->from.mv_size =
        hg_embedded_key(walk->from_bytes, call->tenant_id, call->prefix, call->from);
    walk->to.mv_data = walk->to_bytes;
    walk->to.mv_size = hg_embedded_key(walk->to_bytes, call->tenant_id, call->prefix, call->to);
    walk->head = HG_EMBEDDED_KEY_HEAD + call->prefix.len;
    return walk->from.mv_size > 0 && walk->to.mv_size > 0;
}

/* Moves the cursor; MDB_NOTFOUND at the end of the stretch. */
static int step(struct walk *walk, MDB_cursor_op op)
{
    int rc = mdb_cursor_get(walk->cursor, &walk->key, &walk->record, op);
    if (rc != 0)
        return rc;
    bool beyond = walk->call->reverse ? compare(&walk->key, &walk->from) < 0
                                      : compare(&walk->key, &walk->to) >= 0;
    return beyond ? MDB_NOTFOUND : 0;
}

static int first(struct walk *walk)
{
    bool reverse = walk->call->reverse;
    walk->key = reverse ? walk->to : walk->from;
    if (!reverse)
        return step(walk, MDB_SET_RANGE);
    /* The one before the first that is beyond; all of the file may lie before. */
    int rc = mdb_cursor_get(walk->cursor, &walk->key, &walk->record, MDB_SET_RANGE);
    if (rc != 0 && rc != MDB_NOTFOUND)
        return rc;
    return step(walk, rc == 0 ? MDB_PREV : MDB_LAST);
}

/* Hands out the item at the cursor if it is alive; false when the caller has enough. */
static bool visit(struct walk *walk)
{
    struct hg_item item;
    struct hg_span key =
        hg_span((const uint8_t *)walk->key.mv_data + walk->head, walk->key.mv_size - walk->head);
    memcpy(walk->last, key.at, key.len);
    walk->end.last = hg_span(walk->last, key.len);
    if (!hg_embedded_record_decode(walk->record, &item) ||
        !hg_item_alive(&item, walk->wall_s, walk->flush))
        return true;
    struct hg_range_item found = {key, item.flags, item.cas, item.value};
    return walk->call->on_item(walk->call, &found);
}

/* 0 when it stopped before the end of the stretch, MDB_NOTFOUND at its end. */
static int run(struct walk *walk)
{
    const struct hg_range_call *call = walk->call;
    MDB_cursor_op next = call->reverse ? MDB_PREV : MDB_NEXT;
    int rc = first(walk);
    for (uint32_t looked = 1; rc == 0; looked++) {
        bool enough = !visit(walk);
        if (enough)
            return 0;
        rc = step(walk, next);
        if (looked >= call->max_items ||
            (looked % ITEMS_A_LOOK == 0 && hg_now_us() >= walk->end_us))
            break;
    }
    return rc;
}

/* Walks in a snapshot that is renewed here and ends here. */
static void read_stretch(struct walk *walk, const struct hg_embedded_tenant *tenant)
{
    struct hg_embedded *embedded = walk->embedded;
    struct hg_embedded_shared *shared = embedded->shared;
    struct hg_embedded_reader *reader = &embedded->readers[RANGE];
    uint64_t published = atomic_load_explicit(&shared->db.published, memory_order_acquire);
    /* After `published`: it shows the flushes of all commits that are counted there. */
    walk->flush = hg_embedded_tenant_flush(tenant);
    int rc = hg_embedded_reader_renew(embedded, reader, published);
    if (rc == 0)
        rc = mdb_cursor_open(reader->txn, shared->db.dbi, &walk->cursor);
    if (rc == 0) {
        rc = run(walk);
        mdb_cursor_close(walk->cursor);
        walk->end.more = rc == 0;
    }
    if (reader->active)
        mdb_txn_reset(reader->txn);
    reader->active = false;
    if (rc == ENOMEM)
        fail(walk, HG_FAULT_MEMORY, "no memory is left");
    else if (rc != 0 && rc != MDB_NOTFOUND)
        fail(walk, HG_FAULT_INTERNAL, mdb_strerror(rc));
}

void hg_embedded_range(struct hg_store *store, struct hg_range_call *call)
{
    struct hg_embedded *embedded = HG_CONTAINER_OF(store, struct hg_embedded, store);
    struct walk walk;
    struct hg_embedded_tenant *tenant =
        hg_embedded_tenant_alive(&embedded->shared->tenants, call->tenant_id);
    uint64_t now_us = hg_now_us();
    assert(!embedded->range_busy && call->max_items > 0);
    walk.embedded = embedded;
    walk.call = call;
    walk.end = (struct hg_range_end){.server = embedded->shared->where};
    walk.end_us = call->max_us > UINT64_MAX - now_us ? UINT64_MAX : now_us + call->max_us;
    if (embedded->closing) {
        fail(&walk, HG_FAULT_LOST, "the store is being closed");
    } else if (tenant == NULL) {
        fail(&walk, HG_FAULT_INTERNAL, "the bucket has been deleted");
    } else if (call->deadline_us != 0 && call->deadline_us <= now_us) {
        fail(&walk, HG_FAULT_QUEUE_TIMEOUT, "there was no time left");
    } else if (!set_bounds(&walk)) {
        fail(&walk, HG_FAULT_KEY_TOO_LONG, "a bound of the range is too long");
    } else {
        walk.wall_s = hg_embedded_wall_of_turn(embedded);
        embedded->range_busy = true;
        read_stretch(&walk, tenant);
        embedded->range_busy = false;
    }
    call->on_done(call, &walk.end);
}

void hg_embedded_cancel_range(struct hg_store *store, struct hg_range_call *call)
{
    /* None outlives its call. */
    (void)store;
    (void)call;
}
