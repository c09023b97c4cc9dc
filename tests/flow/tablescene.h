// tablescene - a scene whose store is a shelf that can read ranges, and requests of TableAPI
// SPDX-License-Identifier: BSD-3-Clause
//
// The shelf is carried out when the test says so, or at once. Ranges wait for table_part, which
// answers one part from the shelf as an ordered store would.
#ifndef TABLESCENE_H
#define TABLESCENE_H

#include "proto/table.pb-c.h"
#include "rowhelp.h"
#include "scene.h"

#define TABLE_RANGES 16

typedef Headgate__Table__V1__TableReply table_reply; /* generated names are long */
typedef Headgate__Table__V1__HBaseReply hbase_reply;

struct tablescene {
    struct scene s;
    struct shelf shelf;
    struct hg_store_ops ops; /* the fake store's, and ranges */
    bool by_hand;            /* calls stay until table_obey */
    struct hg_range_call *ranges[TABLE_RANGES];
    unsigned range_count, range_cancels, parts;
    bool parts_at_once;
    uint32_t part_items; /* at most, in a part; 0: as asked */
};

/* With ranges; a test may change the stage between init and open. */
void table_init(struct tablescene *t, unsigned workers);
void table_open(struct tablescene *t);
void table_start(struct tablescene *t);
void table_close(struct tablescene *t);
/* The client has gone (a reset, over TCP as the scene's own is). */
void table_reset(struct tablescene *t, struct client *client);
/* The store reads no ranges. */
void table_unordered(struct tablescene *t);
/* Every worker's store becomes the shelf; called by table_open for worker 0. */
void table_use(struct tablescene *t, struct fakestore *store);

/* Answers what the store has, until it has nothing. */
void table_obey(struct tablescene *t);
/* Answers the oldest call, which must be of this operation. */
void table_obey_one(struct tablescene *t, enum hg_op op);
/* Answers the oldest part of a range; there must be one. */
void table_part(struct tablescene *t);

/* ---- bodies, in static memory until a few more have been made ---- */

struct hg_span body_none(void);
/* TableRequest.entity: one column `name`. */
struct hg_span body_entity(const char *name, int64_t n);
struct hg_span body_bytes(const char *name, size_t len);
struct item {
    unsigned operation;
    const char *row;
    int64_t n; /* of its column "n"; with operation 0 and 2 no entity is sent */
};
struct hg_span body_batch(bool atomic, const struct item *items, size_t count);
struct hg_span body_query(const char *start, const char *end, unsigned limit, unsigned batch_rows,
                          bool reverse);
struct hg_span body_session(uint64_t id);
/* HBaseRequest: PUT of one cell; SCAN; SCAN_NEXT, SCAN_END. */
struct hg_span body_cell(const char *family, const char *qualifier, const char *value);
struct hg_span body_scan(const char *start, unsigned batch, unsigned caching);
struct hg_span body_scan_session(uint64_t id);

/* Adds a frame with the operation's extras; the client sends. */
void table_add(struct client *client, enum hg_op op, const char *table, const char *row,
               struct hg_span body, uint32_t opaque);
/* The same with other extras, and sent. */
void table_ask(struct tablescene *t, enum hg_op op, const char *table, const char *row,
               struct hg_span body, uint32_t opaque);

/* The next reply, which must be a success; unpacked, until the next call. */
table_reply *table_expect(struct tablescene *t, struct client *client, uint32_t opaque);
hbase_reply *hbase_expect(struct tablescene *t, struct client *client, uint32_t opaque);
/* Of the last reply that was expected. */
unsigned table_affected(void);
/* The next reply, with this status; its text. */
const char *table_refused(struct tablescene *t, struct client *client, enum hg_op op,
                          uint16_t status, uint32_t opaque);
/* The integer column of an entity. */
int64_t entity_int(const Headgate__Table__V1__Entity *entity, const char *name);
/* Puts rows PREFIX000 ... with column n = number, straight onto the shelf. */
void table_fill(struct tablescene *t, const char *table, const char *prefix, unsigned count);

static inline struct hg_lane *table_lane(struct tablescene *t)
{
    return &stage_find(&t->s.stage, "default")->lanes[0];
}

#endif
