// embedded_copy - a consistent copy of an embedded store's file, made while it serves
// SPDX-License-Identifier: BSD-3-Clause
#include "back/embedded_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "back/embedded_shared.h"
#include "base/clock.h"
#include "base/log.h"

#define CHUNK_BYTES (1u << 20)
#define DISK_SPARE  (16u << 20) /* that the store itself may need meanwhile */
#define GIVE_WAY_MS 200

struct hg_embedded_copy {
    struct hg_embedded_shared *shared;
    pthread_t thread;
    int fd;      /* the copy */
    int out_fd;  /* the same, LMDB's to write to; becomes one that takes nothing to stop LMDB */
    int none_fd; /* such a one */
    uint64_t begin_us, begin_file_bytes, about_bytes;
    _Atomic bool stopped;

    pthread_mutex_t lock;  /* of the following */
    pthread_cond_t let_go; /* pins has become false */
    bool pins;             /* the snapshot is still held */
    enum hg_embedded_copy_state state;
    uint64_t bytes;
    uint8_t sha256[HG_EMBEDDED_COPY_HASH_BYTES];
    char why[HG_EMBEDDED_COPY_WHY];
};

/* ---- the thread ---- */

/* The first reason stands. */
static void HG_PRINTF(2, 3) set_failed(struct hg_embedded_copy *copy, const char *fmt, ...)
{
    va_list args;
    pthread_mutex_lock(&copy->lock);
    if (copy->state != HG_EMBEDDED_COPY_FAILED) {
        copy->state = HG_EMBEDDED_COPY_FAILED;
        va_start(args, fmt);
        vsnprintf(copy->why, sizeof copy->why, fmt, args);
        va_end(args);
    }
    pthread_mutex_unlock(&copy->lock);
}

/* LMDB's next write fails, and it gives up. */
static void stop(struct hg_embedded_copy *copy)
{
    atomic_store(&copy->stopped, true);
    dup2(copy->none_fd, copy->out_fd);
}

static int copy_file(struct hg_embedded_copy *copy)
{
    MDB_env *env = copy->shared->db.env;
    int rc = mdb_env_copyfd2(env, copy->out_fd, MDB_CP_COMPACT);
    /* It finds pages that belong to nothing: a copy with them is as good. */
    if (rc == MDB_INCOMPATIBLE && !atomic_load(&copy->stopped)) {
        if (ftruncate(copy->fd, 0) != 0 || lseek(copy->fd, 0, SEEK_SET) != 0)
            return errno;
        rc = mdb_env_copyfd2(env, copy->out_fd, 0);
    }
    return rc;
}

static int hash_file(struct hg_embedded_copy *copy, uint64_t bytes)
{
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    uint8_t *chunk = malloc(CHUNK_BYTES);
    int rc = hash == NULL || chunk == NULL ? ENOMEM : 0;
    if (rc == 0 && EVP_DigestInit_ex(hash, EVP_sha256(), NULL) != 1)
        rc = EIO;
    for (uint64_t at = 0; rc == 0 && at < bytes;) {
        ssize_t n = pread(copy->fd, chunk, CHUNK_BYTES, (off_t)at);
        if (n <= 0)
            rc = n < 0 ? errno : EIO;
        else if (atomic_load(&copy->stopped))
            rc = ECANCELED;
        else if (EVP_DigestUpdate(hash, chunk, (size_t)n) != 1)
            rc = EIO;
        else
            at += (uint64_t)n;
    }
    if (rc == 0 && EVP_DigestFinal_ex(hash, copy->sha256, NULL) != 1)
        rc = EIO;
    free(chunk);
    EVP_MD_CTX_free(hash);
    return rc;
}

static void *copy_thread(void *arg)
{
    struct hg_embedded_copy *copy = arg;
    struct stat st = {0};
    int rc = copy_file(copy);
    pthread_mutex_lock(&copy->lock);
    copy->pins = false;
    pthread_cond_broadcast(&copy->let_go);
    pthread_mutex_unlock(&copy->lock);
    if (rc == 0 && fstat(copy->fd, &st) != 0)
        rc = errno;
    if (rc == 0)
        rc = hash_file(copy, (uint64_t)st.st_size);
    if (rc != 0) {
        set_failed(copy, "the copy failed: %s", mdb_strerror(rc));
        return NULL;
    }
    pthread_mutex_lock(&copy->lock);
    if (copy->state == HG_EMBEDDED_COPY_RUNS) {
        copy->bytes = (uint64_t)st.st_size;
        copy->state = HG_EMBEDDED_COPY_DONE;
    }
    pthread_mutex_unlock(&copy->lock);
    return NULL;
}

/* ---- begin ---- */

/* A file in the store's directory that nobody can find; a descriptor or -errno. */
static int open_nameless(const struct hg_embedded_db *db)
{
    char path[4200];
    const char *slash = strrchr(db->path, '/');
    int dir_bytes = slash != NULL ? (int)(slash - db->path) : 0;
    snprintf(path, sizeof path, "%.*s", dir_bytes, db->path);
    int fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
        return fd >= 0 ? fd : -errno;
    snprintf(path, sizeof path, "%.*s/copy.XXXXXX", dir_bytes, db->path);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    unlink(path);
    return fd;
}

static int look_at_disk(struct hg_embedded_copy *copy, char *error, size_t error_bytes)
{
    struct hg_embedded_db *db = &copy->shared->db;
    struct hg_embedded_usage usage;
    struct statvfs disk;
    MDB_txn *txn;
    int rc = mdb_txn_begin(db->env, NULL, MDB_RDONLY, &txn);
    if (rc != 0)
        return hg_embedded_fail(-EIO, error, error_bytes, "cannot read '%s': %s", db->path,
                                mdb_strerror(rc));
    hg_embedded_usage(db, txn, &usage);
    mdb_txn_abort(txn);
    copy->about_bytes = usage.used_bytes + 2 * (uint64_t)db->page_bytes;
    copy->begin_file_bytes = usage.file_bytes;
    if (fstatvfs(db->lock_fd, &disk) != 0)
        return 0; /* the copy will tell */
    uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (room >= copy->about_bytes + DISK_SPARE)
        return 0;
    return hg_embedded_fail(
        -ENOSPC, error, error_bytes,
        "the disk of '%s' has %llu bytes left, a copy takes %llu and %u must remain", db->path,
        (unsigned long long)room, (unsigned long long)copy->about_bytes, DISK_SPARE);
}

static int open_files(struct hg_embedded_copy *copy, char *error, size_t error_bytes)
{
    const char *path = copy->shared->db.path;
    copy->fd = open_nameless(&copy->shared->db);
    if (copy->fd < 0)
        return hg_embedded_fail(copy->fd, error, error_bytes, "cannot make a file beside '%s': %s",
                                path, strerror(-copy->fd));
    copy->out_fd = fcntl(copy->fd, F_DUPFD_CLOEXEC, 0);
    copy->none_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (copy->out_fd < 0 || copy->none_fd < 0)
        return hg_embedded_fail(-errno, error, error_bytes, "no file can be opened: %s",
                                strerror(errno));
    return 0;
}

static void release(struct hg_embedded_copy *copy)
{
    if (copy->fd >= 0)
        close(copy->fd);
    if (copy->out_fd >= 0)
        close(copy->out_fd);
    if (copy->none_fd >= 0)
        close(copy->none_fd);
    pthread_cond_destroy(&copy->let_go);
    pthread_mutex_destroy(&copy->lock);
    free(copy);
}

static void set_copy(struct hg_embedded_shared *shared, struct hg_embedded_copy *copy)
{
    pthread_mutex_lock(&shared->copy_lock);
    shared->copy = copy;
    pthread_mutex_unlock(&shared->copy_lock);
}

static int start(struct hg_embedded_copy *copy)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&copy->thread, NULL, copy_thread, copy);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}

int hg_embedded_copy_begin(struct hg_embedded_shared *shared, struct hg_embedded_copy **ret,
                           char *error, size_t error_bytes)
{
    if (shared->copy != NULL)
        return hg_embedded_fail(-EBUSY, error, error_bytes, "a copy of this store is under way");
    struct hg_embedded_copy *copy = calloc(1, sizeof *copy);
    if (copy == NULL)
        return hg_embedded_fail(-ENOMEM, error, error_bytes, "no memory is left");
    copy->shared = shared;
    copy->fd = copy->out_fd = copy->none_fd = -1;
    copy->begin_us = hg_now_us();
    copy->pins = true;
    pthread_mutex_init(&copy->lock, NULL);
    pthread_cond_init(&copy->let_go, NULL);
    int rc = look_at_disk(copy, error, error_bytes);
    if (rc == 0)
        rc = open_files(copy, error, error_bytes);
    if (rc == 0) {
        set_copy(shared, copy);
        rc = start(copy);
        if (rc != 0) {
            set_copy(shared, NULL);
            hg_embedded_fail(rc, error, error_bytes, "cannot start a thread: %s", strerror(-rc));
        }
    }
    if (rc != 0)
        release(copy);
    else
        *ret = copy;
    return rc;
}

/* ---- while it lives ---- */

static void give_way_in_time(struct hg_embedded_copy *copy)
{
    const struct hg_embedded_db *db = &copy->shared->db;
    MDB_envinfo info;
    pthread_mutex_lock(&copy->lock);
    bool pins = copy->pins && copy->state == HG_EMBEDDED_COPY_RUNS;
    pthread_mutex_unlock(&copy->lock);
    if (!pins || mdb_env_info(db->env, &info) != 0)
        return;
    uint64_t file_bytes = (info.me_last_pgno + 1) * (uint64_t)db->page_bytes;
    if (file_bytes > copy->begin_file_bytes && file_bytes > db->map_bytes - db->map_bytes / 20) {
        set_failed(copy,
                   "so much was written meanwhile that the file of the store has grown to "
                   "%llu bytes, nearly all that it can have",
                   (unsigned long long)file_bytes);
        stop(copy);
    } else if (hg_now_us() - copy->begin_us > HG_EMBEDDED_COPY_MAX_S * (uint64_t)1000000) {
        set_failed(copy, "it took longer than %u seconds", HG_EMBEDDED_COPY_MAX_S);
        stop(copy);
    }
}

void hg_embedded_copy_look(struct hg_embedded_copy *copy, struct hg_embedded_copy_view *ret)
{
    struct stat st;
    give_way_in_time(copy);
    pthread_mutex_lock(&copy->lock);
    ret->state = copy->state;
    ret->bytes = copy->bytes;
    memcpy(ret->sha256, copy->sha256, sizeof ret->sha256);
    memcpy(ret->why, copy->why, sizeof ret->why);
    pthread_mutex_unlock(&copy->lock);
    ret->about_bytes = copy->about_bytes;
    if (ret->state == HG_EMBEDDED_COPY_RUNS && fstat(copy->fd, &st) == 0)
        ret->bytes = (uint64_t)st.st_size;
}

int hg_embedded_copy_read(struct hg_embedded_copy *copy, uint64_t offset, void *to, size_t bytes)
{
    uint8_t *at = to;
    while (bytes > 0) {
        ssize_t n = pread(copy->fd, at, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        at += n;
        offset += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return 0;
}

void hg_embedded_copy_end(struct hg_embedded_copy *copy)
{
    if (copy == NULL)
        return;
    stop(copy);
    pthread_join(copy->thread, NULL);
    set_copy(copy->shared, NULL);
    release(copy);
}

bool hg_embedded_copy_give_way(struct hg_embedded_shared *shared)
{
    struct timespec until;
    bool was_pinned = false;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += GIVE_WAY_MS * 1000000l;
    until.tv_sec += until.tv_nsec / 1000000000l;
    until.tv_nsec %= 1000000000l;
    pthread_mutex_lock(&shared->copy_lock);
    struct hg_embedded_copy *copy = shared->copy;
    if (copy != NULL) {
        pthread_mutex_lock(&copy->lock);
        was_pinned = copy->pins;
        pthread_mutex_unlock(&copy->lock);
    }
    if (was_pinned) {
        set_failed(copy, "so much was written meanwhile that the store had no page left");
        stop(copy);
        pthread_mutex_lock(&copy->lock);
        for (int rc = 0; copy->pins && rc == 0;)
            rc = pthread_cond_timedwait(&copy->let_go, &copy->lock, &until);
        pthread_mutex_unlock(&copy->lock);
    }
    pthread_mutex_unlock(&shared->copy_lock);
    return was_pinned;
}
