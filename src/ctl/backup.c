// backup - the verb that fetches a copy of an embedded store into a file
// SPDX-License-Identifier: BSD-3-Clause
//
// FILE.part is written, its length and SHA-256 compared with what the server says, brought to the
// disk, and only then renamed: FILE is whole or not there.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "ctl/command.h"
#include "ctl/option.h"
#include "proto/opcode.h"
#include "proto/status.h"

#define PIECE_BYTES (1u << 20)
#define LOOK_NS     100000000 /* between questions whether the copy is ready */
#define PROGRESS_US 200000
#define HEX_BYTES   65
#define END_OF_IT   UINT64_MAX
#define CLIENT_MS   60000 /* a disk that is busy */

struct backup {
    struct hg_ctl *ctl;
    const char *upstream; /* NULL: the only one */
    const char *path;     /* "-": standard output */
    char *part;
    int fd;
    uint64_t id, bytes;
    char name[128], sha256[HEX_BYTES];
    uint64_t shown_us;
    bool shows;
};

static void show(struct backup *backup, const char *what, uint64_t done, uint64_t of, bool last)
{
    uint64_t now_us = hg_now_us();
    if (!backup->shows || (!last && now_us - backup->shown_us < PROGRESS_US))
        return;
    backup->shown_us = now_us;
    fprintf(stderr, "\r%s %" PRIu64 " of %" PRIu64 " MiB (%u%%)  ", what, done >> 20, of >> 20,
            of > 0 ? (unsigned)(done >= of ? 100 : done * 100 / of) : 100);
    if (last)
        fputc('\n', stderr);
    fflush(stderr);
}

static int ask(struct backup *backup, uint64_t offset, uint32_t bytes, struct hg_ctl_reply *ret)
{
    uint8_t extras[20];
    hg_put_u64(extras, backup->id);
    hg_put_u64(extras + 8, offset);
    hg_put_u32(extras + 16, bytes);
    struct hg_ctl_request request = {.opcode = HG_OPCODE_BACKUP,
                                     .extras = hg_span(extras, sizeof extras)};
    if (backup->id == 0 && backup->upstream != NULL)
        request.key = hg_span_str(backup->upstream);
    int code = hg_ctl_ask(backup->ctl, &request, ret);
    if (code == HG_CTL_OK && ret->status != HG_STATUS_SUCCESS)
        return hg_ctl_refused(ret, "backup");
    return code;
}

/* What the server says of the copy. */
static int understand(struct backup *backup, const struct hg_ctl_reply *reply, bool *ret_ready)
{
    const char *name, *state, *sha256 = NULL;
    json_int_t id, bytes, about;
    json_t *json = json_loadb((const char *)reply->value.at, reply->value.len, 0, NULL);
    int rc = json == NULL ? -1
                          : json_unpack(json, "{s:I, s:s, s:s, s:I, s:I, s?s}", "id", &id,
                                        "upstream", &name, "state", &state, "bytes", &bytes,
                                        "about_bytes", &about, "sha256", &sha256);
    if (rc != 0 || id <= 0 || bytes < 0) {
        json_decref(json);
        return hg_ctl_say(HG_CTL_LOST, "the server's answer is not understood");
    }
    backup->id = (uint64_t)id;
    backup->bytes = (uint64_t)bytes;
    snprintf(backup->name, sizeof backup->name, "%s", name);
    *ret_ready = sha256 != NULL && strcmp(state, "ready") == 0;
    snprintf(backup->sha256, sizeof backup->sha256, "%s", *ret_ready ? sha256 : "");
    show(backup, "copying", backup->bytes, (uint64_t)about, *ret_ready);
    json_decref(json);
    return HG_CTL_OK;
}

static int wait_until_ready(struct backup *backup)
{
    struct hg_ctl_reply reply;
    bool ready = false;
    for (;;) {
        int code = ask(backup, 0, 0, &reply);
        if (code == HG_CTL_OK)
            code = understand(backup, &reply, &ready);
        if (code != HG_CTL_OK || ready)
            return code;
        nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
    }
}

static int write_all(struct backup *backup, struct hg_span piece)
{
    for (size_t at = 0; at < piece.len;) {
        ssize_t n = write(backup->fd, piece.at + at, piece.len - at);
        if (n < 0 && errno != EINTR)
            return hg_ctl_say(HG_CTL_USAGE, "cannot write '%s': %s",
                              backup->part != NULL ? backup->part : "-", strerror(errno));
        at += n > 0 ? (size_t)n : 0;
    }
    return HG_CTL_OK;
}

static int fetch(struct backup *backup, EVP_MD_CTX *hash)
{
    struct hg_ctl_reply reply;
    for (uint64_t at = 0; at < backup->bytes;) {
        uint64_t left = backup->bytes - at;
        uint32_t bytes = left < PIECE_BYTES ? (uint32_t)left : PIECE_BYTES;
        int code = ask(backup, at, bytes, &reply);
        if (code == HG_CTL_OK && reply.value.len != bytes)
            code = hg_ctl_say(HG_CTL_LOST, "the server sent %zu bytes instead of %u",
                              reply.value.len, bytes);
        if (code == HG_CTL_OK)
            code = write_all(backup, reply.value);
        if (code != HG_CTL_OK)
            return code;
        if (EVP_DigestUpdate(hash, reply.value.at, bytes) != 1)
            return hg_ctl_say(HG_CTL_LOST, "cannot compute a SHA-256");
        at += bytes;
        show(backup, "fetching", at, backup->bytes, at == backup->bytes);
    }
    return HG_CTL_OK;
}

static int fetch_and_compare(struct backup *backup)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    char hex[HEX_BYTES] = "";
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    int code = hash != NULL && EVP_DigestInit_ex(hash, EVP_sha256(), NULL) == 1
                   ? fetch(backup, hash)
                   : hg_ctl_say(HG_CTL_LOST, "cannot compute a SHA-256");
    if (code == HG_CTL_OK && EVP_DigestFinal_ex(hash, digest, NULL) == 1)
        for (size_t i = 0; i < HEX_BYTES / 2; i++)
            snprintf(hex + 2 * i, sizeof hex - 2 * i, "%02x", digest[i]);
    EVP_MD_CTX_free(hash);
    if (code == HG_CTL_OK && strcmp(hex, backup->sha256) != 0)
        return hg_ctl_say(HG_CTL_LOST, "the copy arrived damaged: its SHA-256 is %s, not %s", hex,
                          backup->sha256);
    return code;
}

/* ---- the file ---- */

static int open_part(struct backup *backup, bool force)
{
    if (strcmp(backup->path, "-") == 0) {
        backup->fd = STDOUT_FILENO;
        if (isatty(backup->fd))
            return hg_ctl_say(HG_CTL_USAGE, "a copy is not written to a terminal");
        return HG_CTL_OK;
    }
    if (!force && access(backup->path, F_OK) == 0)
        return hg_ctl_say(HG_CTL_USAGE, "'%s' exists (--force replaces it)", backup->path);
    if (asprintf(&backup->part, "%s.part", backup->path) < 0)
        abort();
    backup->fd = open(backup->part, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (backup->fd < 0)
        return hg_ctl_say(HG_CTL_USAGE, "cannot create '%s': %s", backup->part, strerror(errno));
    /* What an interrupted one left is written over; one that is at work is not disturbed. */
    if (flock(backup->fd, LOCK_EX | LOCK_NB) != 0) {
        close(backup->fd);
        backup->fd = -1;
        return hg_ctl_say(HG_CTL_USAGE, "another backup writes '%s'", backup->part);
    }
    if (fchmod(backup->fd, 0600) != 0 || ftruncate(backup->fd, 0) != 0)
        return hg_ctl_say(HG_CTL_USAGE, "cannot write '%s': %s", backup->part, strerror(errno));
    return HG_CTL_OK;
}

static int sync_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
    int fd = dir != NULL ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int rc = fd >= 0 ? fsync(fd) : -1;
    if (fd >= 0)
        close(fd);
    free(dir);
    return rc;
}

/* The part becomes the file; without `force` never over one that came meanwhile. */
static int finish_part(struct backup *backup, bool force)
{
    if (backup->part == NULL)
        return HG_CTL_OK;
    if (fsync(backup->fd) != 0)
        return hg_ctl_say(HG_CTL_USAGE, "cannot write '%s': %s", backup->part, strerror(errno));
    int rc = force ? rename(backup->part, backup->path) : link(backup->part, backup->path);
    if (rc != 0 && !force && errno != EEXIST) /* a file system without links */
        rc = rename(backup->part, backup->path);
    if (rc != 0)
        return hg_ctl_say(HG_CTL_USAGE, "cannot make '%s': %s", backup->path, strerror(errno));
    if (!force)
        unlink(backup->part);
    if (sync_directory(backup->path) != 0)
        return hg_ctl_say(HG_CTL_USAGE, "'%s' is there, but its directory cannot be synced: %s",
                          backup->path, strerror(errno));
    return HG_CTL_OK;
}

static int print_result(struct backup *backup)
{
    if (backup->part == NULL)
        return HG_CTL_OK;
    if (backup->ctl->json)
        return hg_ctl_json_print(json_pack("{s:s, s:s, s:I, s:s}", "upstream", backup->name, "file",
                                           backup->path, "bytes", (json_int_t)backup->bytes,
                                           "sha256", backup->sha256));
    printf("%s: upstream %s, %" PRIu64 " bytes, SHA-256 %s\n", backup->path, backup->name,
           backup->bytes, backup->sha256);
    return HG_CTL_OK;
}

static int run(struct backup *backup, bool force)
{
    struct hg_ctl_reply reply;
    int code = hg_ctl_connect(backup->ctl);
    if (code == HG_CTL_OK)
        code = open_part(backup, force);
    if (code != HG_CTL_OK)
        return code;
    hg_ctl_client_set_timeout(backup->ctl->client, CLIENT_MS);
    code = wait_until_ready(backup);
    if (code == HG_CTL_OK)
        code = fetch_and_compare(backup);
    if (code == HG_CTL_OK)
        code = ask(backup, END_OF_IT, 0, &reply);
    if (code == HG_CTL_OK)
        code = finish_part(backup, force);
    return code;
}

int hg_ctl_backup(struct hg_ctl *ctl)
{
    struct backup backup = {.ctl = ctl, .fd = -1, .shows = isatty(STDERR_FILENO)};
    if (ctl->arg_count != 1)
        return hg_ctl_say(HG_CTL_USAGE, "backup takes one file (- for standard output)");
    backup.path = ctl->args[0];
    backup.upstream = hg_ctl_option(ctl, HG_CTL_OPT_UPSTREAM);
    if (backup.upstream != NULL &&
        (backup.upstream[0] == '\0' || strlen(backup.upstream) > HG_CTL_BUCKET_NAME_MAX))
        return hg_ctl_say(HG_CTL_USAGE, "'%s' is no upstream's name (accepted: 1 to %d bytes)",
                          backup.upstream, HG_CTL_BUCKET_NAME_MAX);
    int code = run(&backup, hg_ctl_option_is(ctl, HG_CTL_OPT_FORCE));
    if (code != HG_CTL_OK && backup.part != NULL && backup.fd >= 0)
        unlink(backup.part);
    if (code == HG_CTL_OK)
        code = print_result(&backup);
    if (backup.part != NULL && backup.fd >= 0)
        close(backup.fd);
    free(backup.part);
    return code;
}
