// tablescene - a scene whose store is a shelf that can read ranges, and requests of TableAPI
// SPDX-License-Identifier: BSD-3-Clause
#include "tablescene.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "front/table.h"

/* ---- the store ---- */

static struct tablescene *scene_of(struct hg_store *store)
{
    return HG_CONTAINER_OF(store->ops, struct tablescene, ops);
}

static void on_submit(struct fakestore *store, struct kept *kept)
{
    struct tablescene *t = scene_of(&store->store);
    if (!t->by_hand)
        shelf_answer(&t->shelf, kept);
}

static void range(struct hg_store *store, struct hg_range_call *call)
{
    struct tablescene *t = scene_of(store);
    assert_true(t->range_count < TABLE_RANGES);
    t->ranges[t->range_count++] = call;
    call->place.store = store;
    if (t->parts_at_once)
        table_part(t);
}

static void forget(struct tablescene *t, unsigned at)
{
    for (t->range_count--; at < t->range_count; at++)
        t->ranges[at] = t->ranges[at + 1];
}

static void cancel_range(struct hg_store *store, struct hg_range_call *call)
{
    struct tablescene *t = scene_of(store);
    unsigned at = 0;
    while (at < t->range_count && t->ranges[at] != call)
        at++;
    assert_true(at < t->range_count);
    t->range_cancels++;
    forget(t, at);
}

/* Keys on the shelf are padded with zeroes; those of the tests end in something else. */
static struct hg_span key_of(const struct shelf_item *item)
{
    size_t len = sizeof item->key;
    while (len > 0 && item->key[len - 1] == '\0')
        len--;
    return hg_span(item->key, len);
}

static int compare(struct hg_span a, struct hg_span b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = memcmp(a.at, b.at, len);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* The next item in [from, to) behind `last`, in the call's direction; NULL: none. */
static struct shelf_item *next_item(struct tablescene *t, const struct hg_range_call *call,
                                    struct hg_span last)
{
    struct shelf_item *best = NULL;
    for (unsigned i = 0; i < SHELF_ITEMS; i++) {
        struct shelf_item *item = &t->shelf.items[i];
        if (!item->used || compare(key_of(item), call->from) < 0 ||
            compare(key_of(item), call->to) >= 0)
            continue;
        int sign = call->reverse ? -1 : 1;
        if (last.len > 0 && sign * compare(key_of(item), last) <= 0)
            continue;
        if (best == NULL || sign * compare(key_of(item), key_of(best)) < 0)
            best = item;
    }
    return best;
}

void table_part(struct tablescene *t)
{
    assert_true(t->range_count > 0);
    struct hg_range_call *call = t->ranges[0];
    struct hg_range_end end = {.server = "shelf:1"};
    uint32_t most = t->part_items > 0 ? t->part_items : call->max_items;
    uint8_t last[256];
    struct shelf_item *item;
    forget(t, 0);
    t->parts++;
    for (uint32_t n = 0; (item = next_item(t, call, end.last)) != NULL; n++) {
        if (n == most) {
            end.more = true;
            break;
        }
        struct hg_range_item found = {.key = key_of(item),
                                      .item_flags = item->item.flags,
                                      .cas = 1,
                                      .value = hg_span(item->value, item->item.value.len)};
        memcpy(last, found.key.at, found.key.len);
        end.last = hg_span(last, found.key.len);
        if (!call->on_item(call, &found)) {
            end.more = true;
            break;
        }
    }
    call->on_done(call, &end);
}

void table_obey_one(struct tablescene *t, enum hg_op op)
{
    struct kept *kept = fakestore_first(t->s.store);
    assert_non_null(kept);
    assert_int_equal(kept->op, op);
    shelf_answer(&t->shelf, kept);
}

void table_obey(struct tablescene *t)
{
    struct kept *kept;
    while ((kept = fakestore_first(t->s.store)) != NULL)
        shelf_answer(&t->shelf, kept);
}

/* ---- the scene ---- */

void table_init(struct tablescene *t, unsigned workers)
{
    memset(t, 0, sizeof *t);
    stage_init(&t->s.stage, workers);
    shelf_init(&t->shelf);
    t->shelf.max_value_bytes = t->s.stage.settings.max_value_bytes;
}

void table_use(struct tablescene *t, struct fakestore *store)
{
    store->on_submit = on_submit;
    t->ops = *store->store.ops;
    t->ops.range = range;
    t->ops.cancel_range = cancel_range;
    store->store.ops = &t->ops;
}

void table_open(struct tablescene *t)
{
    stage_open(&t->s.stage);
    stage_connect_tcp(&t->s.stage, 0, &t->s.client);
    t->s.store = stage_store(&t->s.stage);
    stage_run(&t->s.stage);
    table_use(t, t->s.store);
}

void table_reset(struct tablescene *t, struct client *client)
{
    struct linger at_once = {1, 0};
    setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    client_close(client);
    stage_run(&t->s.stage);
}

void table_start(struct tablescene *t)
{
    table_init(t, 1);
    table_open(t);
}

void table_unordered(struct tablescene *t)
{
    t->ops.range = NULL;
}

void table_close(struct tablescene *t)
{
    scene_close(&t->s);
    shelf_fini(&t->shelf);
}

/* ---- bodies ---- */

struct writer {
    uint8_t bytes[70000];
    size_t len;
};

static struct writer *fresh(void)
{
    static struct writer writers[12];
    static unsigned turn;
    struct writer *writer = &writers[turn++ % 12];
    writer->len = 0;
    return writer;
}

static struct writer *fresh_body(void)
{
    static struct writer bodies[8];
    static unsigned turn;
    struct writer *writer = &bodies[turn++ % 8];
    writer->len = 0;
    return writer;
}

static void put_varint(struct writer *to, uint64_t n)
{
    for (; n >= 128; n >>= 7)
        to->bytes[to->len++] = (uint8_t)(n | 128);
    to->bytes[to->len++] = (uint8_t)n;
}

static void put_int(struct writer *to, unsigned field, uint64_t n)
{
    put_varint(to, field << 3);
    put_varint(to, n);
}

static void put_span(struct writer *to, unsigned field, struct hg_span bytes)
{
    assert(to->len + bytes.len + 20 < sizeof to->bytes);
    put_varint(to, field << 3 | 2);
    put_varint(to, bytes.len);
    if (bytes.len > 0)
        memcpy(to->bytes + to->len, bytes.at, bytes.len);
    to->len += bytes.len;
}

static void put_text(struct writer *to, unsigned field, const char *text)
{
    if (text != NULL)
        put_span(to, field, hg_span_str(text));
}

static void put_fixed64(struct writer *to, unsigned field, uint64_t n)
{
    put_varint(to, field << 3 | 1);
    for (unsigned i = 0; i < 8; i++)
        to->bytes[to->len++] = (uint8_t)(n >> (8 * i));
}

static struct hg_span done(const struct writer *writer)
{
    return hg_span(writer->bytes, writer->len);
}

struct hg_span body_none(void)
{
    return HG_SPAN_NONE;
}

static struct hg_span entity_of(const char *name, struct hg_span value)
{
    struct writer *column = fresh(), *entity = fresh();
    put_text(column, 1, name);
    put_span(column, 2, value);
    put_span(entity, 1, done(column));
    return done(entity);
}

static struct hg_span entity_int_of(const char *name, int64_t n)
{
    struct writer *value = fresh();
    put_int(value, 1, (uint64_t)n);
    return entity_of(name, done(value));
}

struct hg_span body_entity(const char *name, int64_t n)
{
    struct writer *body = fresh_body();
    put_span(body, 1, entity_int_of(name, n));
    return done(body);
}

struct hg_span body_bytes(const char *name, size_t len)
{
    static const uint8_t zeroes[66000];
    struct writer *value = fresh(), *body = fresh_body();
    assert(len <= sizeof zeroes);
    put_span(value, 3, hg_span(zeroes, len));
    put_span(body, 1, entity_of(name, done(value)));
    return done(body);
}

struct hg_span body_batch(bool atomic, const struct item *items, size_t count)
{
    struct writer *body = fresh_body();
    for (size_t i = 0; i < count; i++) {
        struct writer *item = fresh();
        put_int(item, 1, items[i].operation);
        put_text(item, 2, items[i].row);
        if (items[i].operation != 0 && items[i].operation != 2)
            put_span(item, 3, entity_int_of("n", items[i].n));
        put_span(body, 5, done(item));
    }
    if (atomic)
        put_int(body, 6, 1);
    return done(body);
}

struct hg_span body_query(const char *start, const char *end, unsigned limit, unsigned batch_rows,
                          bool reverse)
{
    struct writer *bounds = fresh(), *query = fresh(), *body = fresh_body();
    put_text(bounds, 1, start);
    put_text(bounds, 2, end);
    put_span(query, 1, done(bounds));
    put_int(query, 4, limit);
    put_int(query, 6, reverse);
    put_int(query, 7, batch_rows);
    put_span(body, 4, done(query));
    return done(body);
}

struct hg_span body_session(uint64_t id)
{
    struct writer *body = fresh_body();
    put_fixed64(body, 7, id);
    return done(body);
}

struct hg_span body_scan_session(uint64_t id)
{
    struct writer *body = fresh_body();
    put_fixed64(body, 8, id);
    return done(body);
}

struct hg_span body_cell(const char *family, const char *qualifier, const char *value)
{
    struct writer *cell = fresh(), *body = fresh_body();
    put_text(cell, 1, family);
    put_text(cell, 2, qualifier);
    put_text(cell, 4, value);
    put_span(body, 1, done(cell));
    return done(body);
}

struct hg_span body_scan(const char *start, unsigned batch, unsigned caching)
{
    struct writer *scan = fresh(), *body = fresh_body();
    put_text(scan, 1, start);
    put_int(scan, 7, batch);
    put_int(scan, 8, caching);
    put_span(body, 5, done(scan));
    return done(body);
}

/* ---- requests ---- */

static uint8_t opcode_of(enum hg_op op)
{
    return hg_op_rows[op].api == HG_API_TABLE ? HG_OPCODE_TABLE : HG_OPCODE_HBASE;
}

void table_add(struct client *client, enum hg_op op, const char *table, const char *row,
               struct hg_span body, uint32_t opaque)
{
    uint8_t extras[8] = {hg_op_rows[op].code};
    char key[300];
    hg_put_u16(extras + 2, (uint16_t)strlen(table));
    snprintf(key, sizeof key, "%s%s", table, row);
    client_add(client, &(struct ask){.opcode = opcode_of(op),
                                     .key = key,
                                     .opaque = opaque,
                                     .extras = hg_span(extras, sizeof extras),
                                     .value = body});
}

void table_ask(struct tablescene *t, enum hg_op op, const char *table, const char *row,
               struct hg_span body, uint32_t opaque)
{
    table_add(&t->s.client, op, table, row, body, opaque);
    scene_send(&t->s);
}

/* ---- replies ---- */

static unsigned affected;

unsigned table_affected(void)
{
    return affected;
}

static struct reply expect(struct tablescene *t, struct client *client, uint8_t opcode,
                           uint32_t opaque)
{
    struct reply reply = stage_expect(&t->s.stage, client, opcode, 0, opaque);
    assert_int_equal(reply.extras.len, 8);
    affected = hg_get_u16(reply.extras.at + 2);
    return reply;
}

table_reply *table_expect(struct tablescene *t, struct client *client, uint32_t opaque)
{
    static table_reply *last;
    struct reply reply = expect(t, client, HG_OPCODE_TABLE, opaque);
    if (last != NULL)
        headgate__table__v1__table_reply__free_unpacked(last, NULL);
    last = headgate__table__v1__table_reply__unpack(NULL, reply.value.len, reply.value.at);
    assert_non_null(last);
    return last;
}

hbase_reply *hbase_expect(struct tablescene *t, struct client *client, uint32_t opaque)
{
    static hbase_reply *last;
    struct reply reply = expect(t, client, HG_OPCODE_HBASE, opaque);
    if (last != NULL)
        headgate__table__v1__hbase_reply__free_unpacked(last, NULL);
    last = headgate__table__v1__hbase_reply__unpack(NULL, reply.value.len, reply.value.at);
    assert_non_null(last);
    return last;
}

const char *table_refused(struct tablescene *t, struct client *client, enum hg_op op,
                          uint16_t status, uint32_t opaque)
{
    struct reply reply = stage_expect(&t->s.stage, client, opcode_of(op), status, opaque);
    assert_int_equal(reply.extras.len, 0);
    return reply_text(&reply);
}

int64_t entity_int(const Headgate__Table__V1__Entity *entity, const char *name)
{
    assert_non_null(entity);
    for (size_t i = 0; i < entity->n_columns; i++)
        if (entity->columns[i]->name.len == strlen(name) &&
            memcmp(entity->columns[i]->name.data, name, strlen(name)) == 0)
            return entity->columns[i]->value->integer;
    fail_msg("there is no column %s", name);
    return 0;
}

void table_fill(struct tablescene *t, const char *table, const char *prefix, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char key[256] = {0};
        int len = snprintf(key, sizeof key, "%s", table);
        snprintf(key + len + 1, sizeof key - (size_t)len - 1, "%s%03u", prefix, i);
        shelf_put(&t->shelf, key, HG_ROWDOC_FLAGS, rowop_document(HG_API_TABLE, i, 0));
    }
}
