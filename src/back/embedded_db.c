// embedded_db - the file of the embedded store: opening it, its notes, how full it is
// SPDX-License-Identifier: BSD-3-Clause
#include "back/embedded_db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "back/embedded_check.h"
#include "base/log.h"

int hg_embedded_fail(int rc, char *error, size_t error_bytes, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(error, error_bytes, fmt, args);
    va_end(args);
    return rc;
}

/* LMDB's errors are negative numbers of its own, or an errno. */
static int to_errno(int rc)
{
    return rc > 0 ? -rc : -EIO;
}

static MDB_val note_key(uint8_t out[HG_EMBEDDED_KEY_BYTES], char kind, struct hg_span rest)
{
    memset(out, 0, 4);
    out[4] = (uint8_t)kind;
    size_t len = rest.len;
    if (len > HG_EMBEDDED_KEY_BYTES - HG_EMBEDDED_KEY_HEAD)
        len = HG_EMBEDDED_KEY_BYTES - HG_EMBEDDED_KEY_HEAD;
    if (len > 0)
        memcpy(out + HG_EMBEDDED_KEY_HEAD, rest.at, len);
    return (MDB_val){HG_EMBEDDED_KEY_HEAD + len, out};
}

int hg_embedded_note_get(struct hg_embedded_db *db, MDB_txn *txn, char kind, struct hg_span rest,
                         MDB_val *ret)
{
    uint8_t bytes[HG_EMBEDDED_KEY_BYTES];
    MDB_val key = note_key(bytes, kind, rest);
    return mdb_get(txn, db->dbi, &key, ret);
}

int hg_embedded_note_put(struct hg_embedded_db *db, MDB_txn *txn, char kind, struct hg_span rest,
                         struct hg_span value)
{
    uint8_t bytes[HG_EMBEDDED_KEY_BYTES];
    MDB_val key = note_key(bytes, kind, rest);
    MDB_val data = {value.len, (void *)(uintptr_t)value.at};
    return mdb_put(txn, db->dbi, &key, &data, 0);
}

int hg_embedded_note_del(struct hg_embedded_db *db, MDB_txn *txn, char kind, struct hg_span rest)
{
    uint8_t bytes[HG_EMBEDDED_KEY_BYTES];
    MDB_val key = note_key(bytes, kind, rest);
    int rc = mdb_del(txn, db->dbi, &key, NULL);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

uint64_t hg_embedded_notes_count(struct hg_embedded_db *db, MDB_txn *txn)
{
    MDB_cursor *cursor;
    MDB_val key, value;
    uint64_t count = 0;
    if (mdb_cursor_open(txn, db->dbi, &cursor) != 0)
        return 0;
    int rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    for (; rc == 0 && hg_get_u32(key.mv_data) == 0; count++)
        rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    mdb_cursor_close(cursor);
    return count;
}

static int note_put_u64(struct hg_embedded_db *db, MDB_txn *txn, char kind, uint64_t value)
{
    uint8_t bytes[8];
    hg_put_u64(bytes, value);
    return hg_embedded_note_put(db, txn, kind, HG_SPAN_NONE, hg_span(bytes, sizeof bytes));
}

int hg_embedded_cas_reserve(struct hg_embedded_db *db, MDB_txn *txn, uint64_t count)
{
    db->cas_ceiling_next = db->cas_ceiling;
    if (HG_LIKELY(count == 0 || db->cas_last + count < db->cas_ceiling))
        return 0;
    db->cas_ceiling_next = db->cas_last + count + HG_EMBEDDED_CAS_STEP;
    return note_put_u64(db, txn, 'C', db->cas_ceiling_next);
}

void hg_embedded_usage(struct hg_embedded_db *db, MDB_txn *txn, struct hg_embedded_usage *ret)
{
    MDB_stat stat;
    MDB_envinfo info;
    memset(ret, 0, sizeof *ret);
    if (mdb_stat(txn, db->dbi, &stat) != 0 || mdb_env_info(db->env, &info) != 0)
        return;
    ret->items = stat.ms_entries;
    ret->used_bytes =
        (stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages) * db->page_bytes;
    ret->file_bytes = (info.me_last_pgno + 1) * db->page_bytes;
}

enum hg_embedded_room hg_embedded_room(struct hg_embedded_db *db, MDB_txn *txn, size_t key_bytes,
                                       size_t record_bytes, size_t old_bytes)
{
    if (record_bytes <= old_bytes)
        return HG_EMBEDDED_ROOM_YES;
    struct hg_embedded_usage usage;
    hg_embedded_usage(db, txn, &usage);
    if (key_bytes + record_bytes <= db->node_max_bytes)
        return usage.used_bytes < db->limit_bytes ? HG_EMBEDDED_ROOM_YES : HG_EMBEDDED_ROOM_TRY;
    if (old_bytes > 0 && key_bytes + old_bytes > db->node_max_bytes)
        usage.used_bytes -= old_bytes / db->page_bytes * db->page_bytes; /* these become free */
    /* It gets pages of its own, which must lie side by side: LMDB may still find the map full. */
    return usage.used_bytes + record_bytes + db->page_bytes <= db->limit_bytes
               ? HG_EMBEDDED_ROOM_YES
               : HG_EMBEDDED_ROOM_NO;
}

/* Name of the file, and the lock that keeps a second process out. */
static int claim_file(struct hg_embedded_db *db, const struct hg_embedded_db_options *options,
                      char *error, size_t error_bytes)
{
    if (options->name[0] == '\0' || options->name[0] == '.' || strchr(options->name, '/') != NULL)
        return hg_embedded_fail(-EINVAL, error, error_bytes, "'%s' cannot be the name of a file",
                                options->name);
    if (mkdir(options->data_dir, 0700) != 0 && errno != EEXIST)
        return hg_embedded_fail(-errno, error, error_bytes, "cannot create '%s': %s",
                                options->data_dir, strerror(errno));
    if (asprintf(&db->path, "%s/%s.mdb", options->data_dir, options->name) < 0) {
        db->path = NULL;
        return hg_embedded_fail(-ENOMEM, error, error_bytes, "out of memory");
    }
    db->lock_fd = open(db->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (db->lock_fd < 0)
        return hg_embedded_fail(-errno, error, error_bytes, "cannot open '%s': %s", db->path,
                                strerror(errno));
    if (flock(db->lock_fd, LOCK_EX | LOCK_NB) != 0)
        return hg_embedded_fail(-EBUSY, error, error_bytes,
                                "cannot open '%s': another process uses it", db->path);
    return hg_embedded_check_quickly(db->lock_fd, db->path, error, error_bytes);
}

/* The quota may have been larger when the file was written: the map then has to be, too. */
static int set_map(struct hg_embedded_db *db, const struct hg_embedded_db_options *options)
{
    MDB_envinfo info;
    int rc = mdb_env_info(db->env, &info);
    if (rc != 0)
        return rc;
    uint64_t file_bytes = (info.me_last_pgno + 1) * db->page_bytes;
    uint64_t reserve = options->max_bytes / 10;
    if (reserve < HG_EMBEDDED_RESERVE_MIN)
        reserve = HG_EMBEDDED_RESERVE_MIN;
    uint64_t least = options->max_bytes * 2 > file_bytes ? options->max_bytes * 2 : file_bytes;
    db->map_bytes = options->map_bytes > 0 ? options->map_bytes : least + reserve;
    return mdb_env_set_mapsize(db->env, db->map_bytes);
}

static int open_env(struct hg_embedded_db *db, const struct hg_embedded_db_options *options)
{
    int rc = mdb_env_create(&db->env);
    if (rc != 0)
        return rc;
    rc = mdb_env_set_maxreaders(db->env, options->readers);
    if (rc != 0)
        return rc;
    unsigned flags = MDB_NOSUBDIR | MDB_NOTLS | (options->sync_commits ? 0 : MDB_NOSYNC);
    rc = mdb_env_open(db->env, db->path, flags, 0600);
    if (rc != 0)
        return rc;
    MDB_stat stat;
    rc = mdb_env_stat(db->env, &stat);
    if (rc != 0)
        return rc;
    db->page_bytes = stat.ms_psize;
    /* As LMDB reckons: at least two nodes must fit in a page behind its head of 16 bytes. */
    db->node_max_bytes = (((db->page_bytes - 16) / 2) & ~1u) - 2 - 8;
    return set_map(db, options);
}

/* Checks the format, or writes it into a new file; reads what the notes say of CAS. */
static int read_notes(struct hg_embedded_db *db, MDB_txn *txn, char *error, size_t error_bytes)
{
    uint8_t format[8] = HG_EMBEDDED_FORMAT_NAME;
    MDB_stat stat;
    MDB_val note;
    int rc = mdb_stat(txn, db->dbi, &stat);
    if (rc == 0 && stat.ms_entries == 0) {
        hg_put_u32(format + 4, HG_EMBEDDED_FORMAT);
        rc = hg_embedded_note_put(db, txn, 'F', HG_SPAN_NONE, hg_span(format, sizeof format));
        if (rc == 0)
            rc = note_put_u64(db, txn, 'C', 0);
    }
    if (rc != 0)
        return hg_embedded_fail(to_errno(rc), error, error_bytes, "cannot read '%s': %s", db->path,
                                mdb_strerror(rc));
    rc = hg_embedded_note_get(db, txn, 'F', HG_SPAN_NONE, &note);
    if (rc != 0 || note.mv_size != sizeof format ||
        memcmp(note.mv_data, HG_EMBEDDED_FORMAT_NAME, 4) != 0)
        return hg_embedded_fail(-EINVAL, error, error_bytes,
                                "'%s' is an LMDB file, but no embedded store", db->path);
    uint32_t version = hg_get_u32((const uint8_t *)note.mv_data + 4);
    if (version != HG_EMBEDDED_FORMAT)
        return hg_embedded_fail(-EINVAL, error, error_bytes,
                                "'%s' has format version %u, this program reads version %u",
                                db->path, version, HG_EMBEDDED_FORMAT);
    rc = hg_embedded_note_get(db, txn, 'C', HG_SPAN_NONE, &note);
    if (rc != 0 || note.mv_size != 8)
        return hg_embedded_fail(-EINVAL, error, error_bytes,
                                "'%s' is damaged: its CAS ceiling is missing", db->path);
    db->cas_last = hg_get_u64(note.mv_data);
    db->cas_ceiling = db->cas_last;
    return 0;
}

static int open_store(struct hg_embedded_db *db, char *error, size_t error_bytes)
{
    MDB_txn *txn;
    int rc = mdb_txn_begin(db->env, NULL, 0, &txn);
    if (rc != 0)
        return hg_embedded_fail(to_errno(rc), error, error_bytes, "cannot write '%s': %s", db->path,
                                mdb_strerror(rc));
    rc = mdb_dbi_open(txn, NULL, 0, &db->dbi);
    if (rc != 0)
        rc = hg_embedded_fail(to_errno(rc), error, error_bytes, "cannot read '%s': %s", db->path,
                              mdb_strerror(rc));
    else
        rc = read_notes(db, txn, error, error_bytes);
    if (rc != 0) {
        mdb_txn_abort(txn);
        return rc;
    }
    rc = mdb_txn_commit(txn);
    if (rc != 0)
        return hg_embedded_fail(to_errno(rc), error, error_bytes, "cannot write '%s': %s", db->path,
                                mdb_strerror(rc));
    return 0;
}

static void release(struct hg_embedded_db *db)
{
    if (db->env != NULL)
        mdb_env_close(db->env);
    if (db->lock_fd >= 0)
        close(db->lock_fd);
    free(db->path);
    db->env = NULL;
    db->path = NULL;
    db->lock_fd = -1;
}

int hg_embedded_db_open(struct hg_embedded_db *db, const struct hg_embedded_db_options *options,
                        char *error, size_t error_bytes)
{
    memset(db, 0, sizeof *db);
    db->lock_fd = -1;
    db->max_bytes = db->limit_bytes = options->max_bytes;
    if (options->max_bytes < HG_EMBEDDED_MAX_BYTES_MIN)
        return hg_embedded_fail(-EINVAL, error, error_bytes,
                                "a quota of %llu bytes is too small, %u is least",
                                (unsigned long long)options->max_bytes, HG_EMBEDDED_MAX_BYTES_MIN);
    int rc = claim_file(db, options, error, error_bytes);
    if (rc == 0) {
        rc = open_env(db, options);
        if (rc == MDB_INVALID || rc == MDB_VERSION_MISMATCH)
            rc = hg_embedded_fail(-EINVAL, error, error_bytes, "'%s' is no embedded store: %s",
                                  db->path, mdb_strerror(rc));
        else if (rc != 0)
            rc = hg_embedded_fail(to_errno(rc), error, error_bytes, "cannot open '%s': %s",
                                  db->path, mdb_strerror(rc));
    }
    if (rc == 0)
        rc = open_store(db, error, error_bytes);
    if (rc != 0)
        release(db);
    return rc;
}

void hg_embedded_db_close(struct hg_embedded_db *db)
{
    if (db->env == NULL)
        return;
    MDB_txn *txn;
    int rc = mdb_txn_begin(db->env, NULL, 0, &txn);
    if (rc == 0) {
        rc = note_put_u64(db, txn, 'C', db->cas_last);
        if (rc == 0)
            rc = mdb_txn_commit(txn);
        else
            mdb_txn_abort(txn);
    }
    int sync_rc = mdb_env_sync(db->env, 1);
    if (rc != 0 || sync_rc != 0)
        hg_log_error("store=%s msg=\"cannot finish the file: %s\"", db->path,
                     mdb_strerror(rc != 0 ? rc : sync_rc));
    release(db);
}
