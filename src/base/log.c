// log - one line per event, key=value, to stderr or a file
// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static _Atomic int sink_fd = STDERR_FILENO;
static _Atomic int sink_level = HG_LOG_INFO;
static char *sink_path; /* under the lock, as is every change of the sink */
static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const level_names[] = {"error", "warn", "info", "debug"};

static int open_path(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    return fd < 0 ? -errno : fd;
}

/* From now on lines go to `fd`, which is taken over. A file's number stays the same, so a thread in
   the middle of a write never meets a closed one. 0 or -errno. */
static int swap_sink(int fd)
{
    int old = atomic_load(&sink_fd);
    if (old == STDERR_FILENO) {
        atomic_store(&sink_fd, fd);
        return 0;
    }
    int rc = dup3(fd, old, O_CLOEXEC) < 0 ? -errno : 0;
    close(fd);
    return rc;
}

int hg_log_open(const char *path, enum hg_log_level level)
{
    if (path == NULL) {
        hg_log_set_level(level);
        return 0;
    }
    int fd = open_path(path);
    if (fd < 0)
        return fd;
    char *copy = strdup(path);
    if (copy == NULL) {
        close(fd);
        return -ENOMEM;
    }
    pthread_mutex_lock(&sink_lock);
    int rc = swap_sink(fd);
    if (rc == 0) {
        char *old = sink_path;
        sink_path = copy;
        copy = old;
        hg_log_set_level(level);
    }
    pthread_mutex_unlock(&sink_lock);
    free(copy);
    return rc;
}

int hg_log_reopen(void)
{
    pthread_mutex_lock(&sink_lock);
    int rc = 0;
    if (sink_path != NULL) {
        rc = open_path(sink_path);
        if (rc >= 0)
            rc = swap_sink(rc);
    }
    pthread_mutex_unlock(&sink_lock);
    return rc;
}

void hg_log_set_level(enum hg_log_level level)
{
    atomic_store(&sink_level, (int)level);
}

void hg_log_close(void)
{
    pthread_mutex_lock(&sink_lock);
    int fd = atomic_exchange(&sink_fd, STDERR_FILENO);
    if (fd != STDERR_FILENO)
        close(fd);
    free(sink_path);
    sink_path = NULL;
    pthread_mutex_unlock(&sink_lock);
}

/* True when the site may write a line in this second. */
static bool site_takes(struct hg_log_site *site, uint64_t second)
{
    uint64_t old = atomic_load_explicit(&site->second_count, memory_order_relaxed);
    for (;;) {
        uint64_t count = old >> 16 == second ? (old & 0xffff) + 1 : 1;
        if (count > site->per_second) {
            atomic_fetch_add_explicit(&site->left_out, 1, memory_order_relaxed);
            return false;
        }
        if (atomic_compare_exchange_weak_explicit(&site->second_count, &old, second << 16 | count,
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
    }
}

void hg_log_at(struct hg_log_site *site, enum hg_log_level level, const char *fmt, ...)
{
    if ((int)level > atomic_load_explicit(&sink_level, memory_order_relaxed))
        return;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (!site_takes(site, (uint64_t)now.tv_sec))
        return;
    char line[2048];
    struct tm tm;
    gmtime_r(&now.tv_sec, &tm);
    size_t len = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &tm);
    len += (size_t)snprintf(line + len, sizeof line - len, ".%03ldZ %s ", now.tv_nsec / 1000000,
                            level_names[level]);
    va_list args;
    va_start(args, fmt);
    int wrote = vsnprintf(line + len, sizeof line - len - 64, fmt, args);
    va_end(args);
    if (wrote < 0)
        return;
    len += (size_t)wrote < sizeof line - len - 64 ? (size_t)wrote : sizeof line - len - 65;
    uint64_t left_out = atomic_exchange_explicit(&site->left_out, 0, memory_order_relaxed);
    if (left_out > 0)
        len += (size_t)snprintf(line + len, sizeof line - len - 1, " left_out=%llu",
                                (unsigned long long)left_out);
    line[len++] = '\n';
    /* A log that cannot be written has nobody to tell. */
    if (write(atomic_load_explicit(&sink_fd, memory_order_relaxed), line, len) < 0)
        return;
}

const char *hg_escape(char *out, size_t out_bytes, struct hg_span text)
{
    size_t at = 0;
    for (size_t i = 0; i < text.len && at + 5 < out_bytes; i++) {
        uint8_t c = text.at[i];
        if (c > 0x20 && c < 0x7f && c != '"' && c != '\\')
            out[at++] = (char)c;
        else
            at += (size_t)snprintf(out + at, out_bytes - at, "\\x%02x", c);
    }
    if (out_bytes > 0)
        out[at] = '\0';
    return out;
}
