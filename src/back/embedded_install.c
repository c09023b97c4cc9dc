// embedded_install - puts a copy of an embedded store in a store's place
// SPDX-License-Identifier: BSD-3-Clause
#include "back/embedded_install.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES (1u << 20)

struct install {
    const char *data_dir, *from;
    char *path, *part;
    int from_fd, old_fd, part_fd;
    char *error;
    size_t error_bytes;
};

static int HG_PRINTF(3, 4) fail(struct install *install, int rc, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(install->error, install->error_bytes, fmt, args);
    va_end(args);
    return rc;
}

static int cannot(struct install *install, const char *what, const char *path)
{
    int rc = errno != 0 ? -errno : -EIO;
    return fail(install, rc, "cannot %s '%s': %s", what, path, strerror(-rc));
}

/* The place: nobody uses it, and there is nothing unless `force`. The lock is held to the end. */
static int claim(struct install *install, bool force)
{
    struct stat st;
    if (mkdir(install->data_dir, 0700) != 0 && errno != EEXIST)
        return cannot(install, "create", install->data_dir);
    install->old_fd = open(install->path, O_RDWR | O_CLOEXEC);
    if (install->old_fd < 0)
        return errno == ENOENT ? 0 : cannot(install, "open", install->path);
    if (flock(install->old_fd, LOCK_EX | LOCK_NB) != 0)
        return fail(install, -EBUSY, "'%s' is used by another process: end it first",
                    install->path);
    if (fstat(install->old_fd, &st) != 0)
        return cannot(install, "look at", install->path);
    if (st.st_size > 0 && !force)
        return fail(install, -EEXIST, "there is a store in '%s' (--force replaces it)",
                    install->path);
    return 0;
}

static int write_all(int fd, const uint8_t *at, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
        }
    }
    return 0;
}

static int copy_bytes(struct install *install)
{
    uint8_t *chunk = malloc(CHUNK_BYTES);
    ssize_t n = 0;
    int rc = chunk == NULL ? fail(install, -ENOMEM, "no memory is left") : 0;
    if (rc == 0 && lseek(install->from_fd, 0, SEEK_SET) != 0)
        rc = cannot(install, "read", install->from);
    while (rc == 0 && (n = read(install->from_fd, chunk, CHUNK_BYTES)) > 0)
        if (write_all(install->part_fd, chunk, (size_t)n) != 0)
            rc = cannot(install, "write", install->part);
    if (rc == 0 && n < 0)
        rc = cannot(install, "read", install->from);
    free(chunk);
    return rc;
}

static int make_part(struct install *install, struct hg_embedded_found *ret)
{
    if (unlink(install->part) != 0 && errno != ENOENT)
        return cannot(install, "remove", install->part);
    install->part_fd = open(install->part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (install->part_fd < 0)
        return cannot(install, "create", install->part);
    int rc = copy_bytes(install);
    if (rc == 0)
        rc = hg_embedded_check(install->part_fd, install->part, ret, install->error,
                               install->error_bytes);
    if (rc == 0 && fsync(install->part_fd) != 0)
        rc = cannot(install, "write", install->part);
    return rc;
}

static int put_in_place(struct install *install)
{
    if (rename(install->part, install->path) != 0)
        return cannot(install, "make", install->path);
    int dir = open(install->data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = dir >= 0 && fsync(dir) == 0 ? 0 : cannot(install, "sync", install->data_dir);
    if (dir >= 0)
        close(dir);
    return rc;
}

static int run(struct install *install, bool force, struct hg_embedded_found *ret)
{
    install->from_fd = open(install->from, O_RDONLY | O_CLOEXEC);
    if (install->from_fd < 0)
        return cannot(install, "open", install->from);
    int rc = hg_embedded_check(install->from_fd, install->from, ret, install->error,
                               install->error_bytes);
    if (rc == 0)
        rc = claim(install, force);
    if (rc == 0)
        rc = make_part(install, ret);
    if (rc == 0)
        rc = put_in_place(install);
    if (rc != 0 && install->part_fd >= 0)
        unlink(install->part);
    return rc;
}

int hg_embedded_install(const char *data_dir, const char *name, const char *from, bool force,
                        struct hg_embedded_found *ret, char *error, size_t error_bytes)
{
    struct install install = {.data_dir = data_dir,
                              .from = from,
                              .from_fd = -1,
                              .old_fd = -1,
                              .part_fd = -1,
                              .error = error,
                              .error_bytes = error_bytes};
    int rc = 0;
    if (asprintf(&install.path, "%s/%s.mdb", data_dir, name) < 0) {
        install.path = NULL;
        rc = fail(&install, -ENOMEM, "no memory is left");
    } else if (asprintf(&install.part, "%s.restore", install.path) < 0) {
        install.part = NULL;
        rc = fail(&install, -ENOMEM, "no memory is left");
    }
    if (rc == 0)
        rc = run(&install, force, ret);
    if (install.from_fd >= 0)
        close(install.from_fd);
    if (install.part_fd >= 0)
        close(install.part_fd);
    if (install.old_fd >= 0)
        close(install.old_fd);
    free(install.path);
    free(install.part);
    return rc;
}
