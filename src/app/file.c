// file - small files as a whole: read one, replace one so that it is never seen half
// SPDX-License-Identifier: BSD-3-Clause
#include "app/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads until the end or max + 1 bytes: a size from stat means nothing for a pipe or /proc. */
static int read_all(int fd, size_t max, char **ret, size_t *ret_len)
{
    size_t len = 0, room = 0;
    char *data = NULL;
    for (;;) {
        if (len == room) {
            room = room ? room * 2 : 4096;
            char *more = realloc(data, room + 1);
            if (!more) {
                free(data);
                return -ENOMEM;
            }
            data = more;
        }
        ssize_t n = read(fd, data + len, room - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || len + (size_t)n > max) {
            int rc = n < 0 ? -errno : -EFBIG;
            free(data);
            return rc;
        }
        if (n == 0)
            break;
        len += (size_t)n;
    }
    data[len] = '\0';
    *ret = data;
    *ret_len = len;
    return 0;
}

int hg_file_read(const char *path, size_t max, char **ret, size_t *ret_len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = read_all(fd, max, ret, ret_len);
    close(fd);
    return rc;
}

static int write_all(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        data += n;
        len -= (size_t)n;
    }
    return fsync(fd) < 0 ? -errno : 0;
}

static int sync_directory_of(const char *path)
{
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    /* EINVAL: a filesystem that knows no such thing. */
    if (fd < 0 || (fsync(fd) < 0 && errno != EINVAL))
        rc = -errno;
    if (fd >= 0)
        close(fd);
    free(copy);
    return rc;
}

int hg_file_replace(const char *path, const void *data, size_t len)
{
    char *temporary = NULL;
    if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
        return -ENOMEM;
    int fd = mkostemp(temporary, O_CLOEXEC), rc;
    if (fd < 0) {
        rc = -errno;
        free(temporary);
        return rc;
    }
    rc = write_all(fd, data, len);
    if (close(fd) < 0 && !rc)
        rc = -errno;
    if (!rc && rename(temporary, path) < 0)
        rc = -errno;
    if (rc)
        unlink(temporary);
    free(temporary);
    return rc ? rc : sync_directory_of(path);
}
