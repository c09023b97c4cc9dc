// cursor - sessions of queries and scans: where each of them is, kept between its requests
// SPDX-License-Identifier: BSD-3-Clause
//
//   add ─► idle ─► take ─► busy (one request has it) ─► give_back ─► idle
//            │                        └─► end
//            └─► expired, or its bucket deleted: freed
//
// One table for all workers, so that any connection of a tenant may go on with a session. A cursor
// belongs to its bucket and API: to others it does not exist. Its number is random, 64 bits, not to
// be guessed. Memory is bounded: so many cursors a bucket, each with a copy of its query of at most
// HG_CURSOR_BODY_MAX. The lock is held for a moment, and never while a store is read.
#ifndef HG_FRONT_CURSOR_H
#define HG_FRONT_CURSOR_H

#include <pthread.h>

#include "front/bucket.h"
#include "front/reader.h"

#define HG_CURSOR_BODY_MAX 65536

struct hg_cursor {
    struct hg_cursor *next; /* in its slot of the table */
    struct hg_list node;    /* idle: in its bucket's list, the one that expires first in front */
    uint64_t id;
    struct hg_bucket *bucket; /* counted */
    uint64_t idle_since_us;
    bool busy;
    /* his who has it: busy, or not in the table yet */
    struct hg_reader reader;
    struct hg_tablemsg msg;
    struct hg_arena arena; /* what the message consists of */
};

struct hg_cursors {
    pthread_mutex_t lock;
    struct hg_cursor **slots; /* by id */
    size_t slot_count, count;
    struct hg_list buckets; /* with cursors */
};

enum hg_cursor_found { HG_CURSOR_FOUND, HG_CURSOR_UNKNOWN, HG_CURSOR_IN_USE };

void hg_cursors_init(struct hg_cursors *cursors);
/* When no worker runs any more. */
void hg_cursors_fini(struct hg_cursors *cursors);

/* A cursor of its own for the reader, which goes on with a copy of its query: `body`, decoded
   again. NULL: no memory, or the body is too long. Not in the table yet. */
HG_MUST_USE struct hg_cursor *hg_cursor_new(const struct hg_reader *reader, struct hg_span body);
/* One that is not in the table. */
void hg_cursor_free(struct hg_cursor *cursor);

/* Puts it into the table, idle, and gives it its number. False: the bucket has as many as it may.
 */
HG_MUST_USE bool hg_cursors_add(struct hg_cursors *cursors, struct hg_cursor *cursor,
                                struct hg_bucket *bucket, unsigned worker, uint64_t now_us,
                                uint64_t *ret_id);
/* Takes it for one request. */
HG_MUST_USE enum hg_cursor_found hg_cursors_take(struct hg_cursors *cursors, uint64_t id,
                                                 const struct hg_bucket *bucket, enum hg_api api,
                                                 unsigned worker, uint64_t now_us,
                                                 struct hg_cursor **ret);
/* Copies the name of the table that it reads into `room` (HG_TABLE_KEY_MAX bytes); its length, 0
   when there is no such cursor. */
size_t hg_cursors_table(struct hg_cursors *cursors, uint64_t id, const struct hg_bucket *bucket,
                        enum hg_api api, uint8_t *room);
/* Its request is over: it may be taken again, or (end) is freed. */
void hg_cursors_give_back(struct hg_cursors *cursors, struct hg_cursor *cursor, unsigned worker,
                          uint64_t now_us);
void hg_cursors_end(struct hg_cursors *cursors, struct hg_cursor *cursor, unsigned worker);

/* Frees those that have been idle too long, and those of buckets that were deleted. By a worker's
   timer, whose number says in whose lane it is counted. */
void hg_cursors_sweep(struct hg_cursors *cursors, unsigned worker, uint64_t now_us);

#endif
