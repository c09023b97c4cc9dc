// redis_range - stretches of a table's rows, in order, by one run of a script
// SPDX-License-Identifier: BSD-3-Clause
#include "back/redis_range.h"

#include <assert.h>
#include <string.h>

#include "back/redis.h"
#include "back/redis_rows.h"
#include "base/bytes.h"

static void end_with(struct hg_range_call *range, enum hg_fault fault, const char *text,
                     const char *server)
{
    const struct hg_range_end end = {.fault = fault, .text = hg_span_str(text), .server = server};
    range->on_done(range, &end);
}

/* Which fault an error of the server is: a range knows no others. */
static enum hg_fault fault_of(const struct hg_result *result)
{
    switch (result->status) {
    case HG_STATUS_SUCCESS:
        return HG_FAULT_NONE;
    case HG_STATUS_ETMPFAIL:
    case HG_STATUS_EBUSY:
        return HG_FAULT_DOWN;
    case HG_STATUS_NOT_SUPPORTED:
        return HG_FAULT_NOT_SUPPORTED;
    default:
        return HG_FAULT_INTERNAL;
    }
}

static_assert(HG_REDIS_ROW_MAX <= HG_REDIS_KEY_MAX, "a row's name fits into a key");

/* A key, `table 0x00 row`, out of the stretch's beginning and a row. */
struct key {
    size_t table;
    uint8_t bytes[2 * HG_REDIS_KEY_MAX];
};

static struct hg_span key_at(struct key *key, struct hg_span row)
{
    if (row.len > 0)
        memcpy(key->bytes + key->table, row.at, row.len);
    return hg_span(key->bytes, key->table + row.len);
}

/* Hands out the rows of a reply. */
static void hand_out(struct hg_range_call *range, struct hg_span reply, struct hg_range_end *end)
{
    struct hg_redis_rows rows;
    struct hg_span row, bytes;
    struct key key, last;
    const uint8_t *zero = memchr(range->from.at, 0, range->from.len);
    key.table = last.table = (size_t)(zero - range->from.at) + 1;
    memcpy(key.bytes, range->from.at, key.table);
    memcpy(last.bytes, range->from.at, key.table);
    bool whole = hg_redis_rows_decode(reply, &rows);
    assert(whole); /* the dialect has looked */
    (void)whole;
    end->more = rows.more;
    if (rows.last.len > 0)
        end->last = key_at(&last, rows.last);
    while (hg_redis_rows_next(&rows, &row, &bytes)) {
        if (bytes.len < HG_REDIS_ITEM_HEAD)
            continue; /* a string of somebody else's */
        const struct hg_range_item item = {
            .key = key_at(&key, row),
            .item_flags = hg_get_u32(bytes.at),
            .cas = hg_get_u64(bytes.at + 4),
            .value = hg_span(bytes.at + HG_REDIS_ITEM_HEAD, bytes.len - HG_REDIS_ITEM_HEAD)};
        if (!range->on_item(range, &item)) {
            end->more = true;
            end->last = key_at(&last, row);
            break;
        }
    }
    range->on_done(range, end);
}

static void on_done(struct hg_call *call, const struct hg_result *result)
{
    struct hg_redis_range *job = HG_CONTAINER_OF(call, struct hg_redis_range, call);
    struct hg_redis *redis = hg_redis_of(call->place.store);
    struct hg_range_call *range = job->range;
    hg_slab_give_back(&redis->ranges, job);
    range->place.pending = false;
    range->place.extra = NULL;
    struct hg_range_end end = {.fault = result->fault, .server = result->server};
    if (end.fault == HG_FAULT_NONE)
        end.fault = fault_of(result);
    if (end.fault == HG_FAULT_NONE) {
        hand_out(range, result->value, &end);
    } else {
        end.text = result->value;
        range->on_done(range, &end);
    }
}

static void on_room(struct hg_call *call)
{
    struct hg_store *store = call->place.store;
    call->now_us = hg_remote_of(store)->hub.loop->now_us;
    (void)hg_redis_submit(store, call);
}

void hg_redis_range(struct hg_store *store, struct hg_range_call *range)
{
    struct hg_redis *redis = hg_redis_of(store);
    range->place.pending = false;
    range->place.extra = NULL;
    if (!redis->dialect.style.ranges) {
        end_with(range, HG_FAULT_NOT_SUPPORTED,
                 "ranges of rows are off for the tenant's upstream (they need ranges: on and "
                 "redis_layout: item); a range of a single row works",
                 NULL);
        return;
    }
    if (memchr(range->from.at, 0, range->from.len) == NULL ||
        range->prefix.len + range->from.len > HG_REDIS_KEY_MAX ||
        range->to.len > HG_REDIS_KEY_MAX) {
        end_with(range, HG_FAULT_KEY_TOO_LONG, "a bound of the range is no key of a row", NULL);
        return;
    }
    struct hg_redis_range *job = hg_slab_borrow(&redis->ranges);
    if (job == NULL) {
        end_with(range, HG_FAULT_MEMORY, "no memory is left", NULL);
        return;
    }
    range->place.pending = true;
    range->place.extra = job;
    job->range = range;
    job->call = (struct hg_call){.op = HG_OP_TABLE_QUERY,
                                 .tenant_id = range->tenant_id,
                                 .identity = range->identity,
                                 .row = true,
                                 .quarantine = range->quarantine,
                                 .ticket = range->ticket,
                                 .ticket_of = range->ticket_of,
                                 .prefix = range->prefix,
                                 .key = range->from,
                                 .range = range,
                                 .now_us = redis->remote.hub.loop->now_us,
                                 .deadline_us = range->deadline_us,
                                 .on_done = on_done,
                                 .on_room = on_room};
    (void)hg_redis_submit(store, &job->call);
}

void hg_redis_cancel_range(struct hg_store *store, struct hg_range_call *range)
{
    struct hg_redis_range *job = range->place.extra;
    if (!range->place.pending)
        return;
    range->place.pending = false;
    range->place.extra = NULL;
    store->ops->cancel(store, &job->call);
    hg_slab_give_back(&hg_redis_of(store)->ranges, job);
}
