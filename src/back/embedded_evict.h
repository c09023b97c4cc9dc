// embedded_evict - makes room in a full embedded store that is used as a cache
// SPDX-License-Identifier: BSD-3-Clause
//
//   a set at the quota: sample 5 items ──► dead ones among them go, else the one written longest
//   ago, and the items beside it that are as old ──► put, if it takes no further page or one is
//   free ──► else the oldest items beside the new key's place go, too
//
// CAS values rise with each write, so the lower one is the older; a touch or a read changes none.
// The sample is drawn by walking down the tree at random, which every item's page has the same
// chance of meeting, whatever the keys look like. It is read from the newest commit, whose pages
// stay as they are while the writer's transaction runs; each item is looked at again before it
// goes. Where the sample brings nothing (most is rows, or was removed by this transaction already)
// the oldest of a stretch of keys is taken, each time of the next stretch. Rows of tables are data
// and are never evicted. Idea and size of the sample: Redis' approximated LRU (maxmemory-samples
// 5).
//
// A page of the file becomes free only when little is left in it, so removing bytes alone does not
// lower the usage. What is written by rising keys lies together by age, and whole pages go at once;
// what is written at random gets the places of old items in its own page.
//
// Part of the writer, on its thread, inside its transaction.
#ifndef HG_BACK_EMBEDDED_EVICT_H
#define HG_BACK_EMBEDDED_EVICT_H

#include <lmdb.h>
#include <stdatomic.h>

#include "back/embedded_page.h"
#include "back/embedded_record.h"
#include "base/attr.h"

#define HG_EMBEDDED_EVICT_SAMPLE 5
/* Items that one transaction removes at most, about 20 ms of work. */
#define HG_EMBEDDED_EVICT_ITEMS 8192
/* Pages that a put may take at most: below the quota by so many, it stays below. */
#define HG_EMBEDDED_EVICT_PAGES 8

struct hg_embedded_writer;
struct hg_embedded_db;

struct hg_embedded_evict {
    _Atomic bool wanted; /* as configured; any thread */
    bool was_wanted;     /* as the sweeper saw last */
    bool on;             /* in this transaction */
    bool looked;         /* at the file's length, in this transaction */
    struct hg_embedded_pages pages;
    uint64_t map_bytes;
    uint64_t random;
    uint64_t old_cas;    /* about what the oldest of a sample has */
    uint64_t middle_cas; /* and its middle one */
    uint64_t credit;     /* bytes that were removed and not yet written again */
    uint32_t hand_len;   /* where a walk over all records goes on */
    uint8_t hand[HG_EMBEDDED_KEY_BYTES];
    uint32_t left; /* items that may still go in this transaction */
    /* of this transaction */
    uint64_t evicted, evicted_bytes, evicted_expired;
};

/* Maps the file of `db`; 0 or -errno. */
HG_MUST_USE int hg_embedded_evict_init(struct hg_embedded_evict *evict,
                                       const struct hg_embedded_db *db);
void hg_embedded_evict_fini(struct hg_embedded_evict *evict);

/* A transaction begins. */
void hg_embedded_evict_begin(struct hg_embedded_writer *writer);

/* Removes something, but not `key`; `whole_pages`: with all that lies in its page. 0, MDB_NOTFOUND
   when nothing was found or enough was removed in this transaction, or another error of LMDB. */
HG_MUST_USE int hg_embedded_evict_some(struct hg_embedded_writer *writer, MDB_val key,
                                       bool whole_pages);
/* Removes items beside the place of `key`, which a record of `bytes` is meant for: what is older
   than most, or anything if `force`. The same results. */
HG_MUST_USE int hg_embedded_evict_near(struct hg_embedded_writer *writer, MDB_val key, size_t bytes,
                                       bool force);

/* Is the store above its quota, and is it to be evicted from? In a transaction. */
HG_MUST_USE bool hg_embedded_evict_is_over(struct hg_embedded_writer *writer);

#endif
