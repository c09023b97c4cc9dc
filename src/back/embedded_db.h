// embedded_db - the file of the embedded store: opening it, its notes, how full it is
// SPDX-License-Identifier: BSD-3-Clause
//
//   notes   [0 u32]['F'] format    ['C'] CAS ceiling    ['N'] next tenant id
//           ['T' name] tenant id   ['L' id] flush       ['D' id] tenant that is being deleted
//
// One LMDB environment, one file, one process: the file is locked, since CAS values, flushes and
// tenants are also held in memory. The map is sparse and more than twice as large as the quota:
// LMDB needs free pages to delete, and values with pages of their own fragment the file. Since at
// most the quota is used, the other half is free pages that every delete finds.
//
// CAS values are handed out in rising order; a ceiling is noted once in a while, and a start goes
// on from there, so that none is given twice. Functions with a transaction run on the thread that
// began it; cas_* and used/room belong to whoever holds the write transaction.
#ifndef HG_BACK_EMBEDDED_DB_H
#define HG_BACK_EMBEDDED_DB_H

#include <lmdb.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "back/embedded_record.h"
#include "base/attr.h"

#define HG_EMBEDDED_FORMAT        1
#define HG_EMBEDDED_FORMAT_NAME   "HGES"
#define HG_EMBEDDED_CAS_STEP      (1u << 20) /* CAS values between two notes of the ceiling */
#define HG_EMBEDDED_RESERVE_MIN   (16u << 20)
#define HG_EMBEDDED_MAX_BYTES_MIN (1u << 20)

struct hg_embedded_db_options {
    const char *data_dir; /* made if missing */
    const char *name;     /* of the upstream; the file is <data_dir>/<name>.mdb */
    uint64_t max_bytes;   /* quota */
    uint64_t map_bytes;   /* 0: by the quota; else exactly this, which tests use to fill the map */
    unsigned readers;     /* read transactions at a time */
    bool sync_commits;    /* each commit reaches the disk */
};

struct hg_embedded_db {
    MDB_env *env;
    MDB_dbi dbi;
    int lock_fd;
    char *path;
    uint32_t page_bytes;
    uint32_t node_max_bytes; /* key and record together above this take pages of their own */
    uint64_t max_bytes, map_bytes;
    uint64_t limit_bytes; /* what a put heeds: the quota, less what it may take beyond */
    uint64_t cas_last;    /* newest CAS handed out */
    uint64_t cas_ceiling, cas_ceiling_next;
    _Atomic uint64_t published; /* commits so far: a reader with an older number renews */
};

/* Writes what is wrong to `error` and returns rc. */
int hg_embedded_fail(int rc, char *error, size_t error_bytes, const char *fmt, ...) HG_PRINTF(4, 5);

/* Opens or makes the file. 0 or -errno, and then `error` says what is wrong with which file. */
HG_MUST_USE int hg_embedded_db_open(struct hg_embedded_db *db,
                                    const struct hg_embedded_db_options *options, char *error,
                                    size_t error_bytes);
/* Notes the CAS, brings everything to the disk and closes. */
void hg_embedded_db_close(struct hg_embedded_db *db);

/* A note: kind, then `rest`. 0, MDB_NOTFOUND or another error of LMDB; values hold as LMDB's do. */
HG_MUST_USE int hg_embedded_note_get(struct hg_embedded_db *db, MDB_txn *txn, char kind,
                                     struct hg_span rest, MDB_val *ret);
HG_MUST_USE int hg_embedded_note_put(struct hg_embedded_db *db, MDB_txn *txn, char kind,
                                     struct hg_span rest, struct hg_span value);
/* A missing note is fine. */
HG_MUST_USE int hg_embedded_note_del(struct hg_embedded_db *db, MDB_txn *txn, char kind,
                                     struct hg_span rest);

/* How many notes there are; walks over them. */
uint64_t hg_embedded_notes_count(struct hg_embedded_db *db, MDB_txn *txn);

/* Makes sure that `count` CAS values may be handed out in this transaction; then, when it has been
   committed, hg_embedded_cas_committed. 0 or an error of LMDB. */
HG_MUST_USE int hg_embedded_cas_reserve(struct hg_embedded_db *db, MDB_txn *txn, uint64_t count);
static inline void hg_embedded_cas_committed(struct hg_embedded_db *db)
{
    db->cas_ceiling = db->cas_ceiling_next;
}

struct hg_embedded_usage {
    uint64_t items;      /* notes included */
    uint64_t used_bytes; /* pages that hold something */
    uint64_t file_bytes; /* how far the file has grown */
};
void hg_embedded_usage(struct hg_embedded_db *db, MDB_txn *txn, struct hg_embedded_usage *ret);

/* Is there room in this transaction for a record of `record_bytes` where one of `old_bytes` (0:
   none) is now? TRY: only if the put takes no further page, which LMDB tells afterwards. */
enum hg_embedded_room { HG_EMBEDDED_ROOM_NO, HG_EMBEDDED_ROOM_TRY, HG_EMBEDDED_ROOM_YES };
enum hg_embedded_room hg_embedded_room(struct hg_embedded_db *db, MDB_txn *txn, size_t key_bytes,
                                       size_t record_bytes, size_t old_bytes);

#endif
