// loginserver - a server that only knows logins, on a real worker, and a client for it
// SPDX-License-Identifier: BSD-3-Clause
#include "loginserver.h"

#include <netinet/in.h>
#include <sys/time.h>

#include "base/bytes.h"

/* ---- the server ---- */

static const struct hg_users *users_of(const struct hg_directory *directory)
{
    return directory->users;
}

static void unref_users(void *users)
{
    hg_users_free(users);
}

/* `stat` says who asks. */
static void on_job(void *app, struct hg_job *job)
{
    struct server *server = app;
    if (job->row->code == HG_OPCODE_STAT) {
        const struct hg_user *user = job->user;
        hg_job_stat(job, "user", "%s", job->user_name);
        hg_job_stat(job, "same", "%d",
                    user == NULL ? job->user_name[0] == '\0'
                                 : strcmp(hg_user_name(user), job->user_name) == 0);
        hg_job_answer(job);
        return;
    }
    hg_logins_on_job(server->logins, job);
}

static void on_login_gone(void *app, void *login)
{
    (void)app;
    hg_logins_on_gone(login);
}

static uint32_t privileges(void *app, const struct hg_directory *directory, const void *user,
                           struct hg_span bucket)
{
    (void)app;
    return hg_users_privileges(users_of(directory), user, bucket);
}

static bool may_see(void *app, const struct hg_directory *directory, const void *user,
                    struct hg_span bucket)
{
    (void)app;
    return hg_users_may_see(users_of(directory), user, bucket);
}

static const void *find_user(void *app, const struct hg_directory *directory, struct hg_span name)
{
    (void)app;
    return hg_users_find(users_of(directory), name);
}

static bool revoked(void *app, const struct hg_directory *now, const void *before)
{
    (void)app;
    return hg_users_is_revoked(users_of(now), before);
}

static struct hg_span anonymous_bucket(void *app, const struct hg_directory *directory)
{
    (void)app;
    (void)directory;
    return HG_SPAN_NONE;
}

struct hg_directory *server_directory(struct hg_users *users)
{
    struct hg_directory *directory = hg_directory_new(0, 0);
    assert_non_null(directory);
    directory->users = users;
    directory->users_unref = unref_users;
    directory->settings = (struct hg_front_settings){.max_frame_bytes = 1 << 20,
                                                     .max_value_bytes = 1 << 20,
                                                     .high_water_bytes = 1 << 18,
                                                     .request_deadline_us = 2500000,
                                                     .read_unit_bytes = 4096,
                                                     .write_unit_bytes = 1024,
                                                     .login_required = true};
    return directory;
}

struct server *server_start(const struct test_user *rows, size_t count, unsigned threads,
                            unsigned queue_max)
{
    struct server *server = calloc(1, sizeof *server);
    assert_non_null(server);
    server->worker = aligned_alloc(HG_CACHE_LINE, (sizeof *server->worker + HG_CACHE_LINE - 1) /
                                                      HG_CACHE_LINE * HG_CACHE_LINE);
    assert_non_null(server->worker);
    memset(server->worker, 0, sizeof *server->worker);
    hg_credit_init(&server->node,
                   &(struct hg_credit_settings){.capacity = HG_UNITS_UNLIMITED, .slot_ms = 1000},
                   1);
    server->front = (struct hg_front){.hooks = {.app = server,
                                                .on_job = on_job,
                                                .on_login_gone = on_login_gone,
                                                .privileges = privileges,
                                                .may_see = may_see,
                                                .find_user = find_user,
                                                .revoked = revoked,
                                                .anonymous_bucket = anonymous_bucket},
                                      .node = &server->node,
                                      .worker_count = 1,
                                      .workers = server->worker,
                                      .version = "0.0.0"};
    hg_cursors_init(&server->front.cursors);
    assert_int_equal(hg_gate_holder_init(&server->front.ingress, HG_GATE_INGRESS, 1, 1000, NULL),
                     0);
    struct hg_logins_options options = {threads, queue_max, users_of};
    assert_int_equal(hg_logins_new(&options, &server->logins), 0);
    struct hg_directory *directory = server_directory(loginhelp_users(rows, count));
    assert_int_equal(hg_worker_start(server->worker, &server->front, 0, directory), 0);
    hg_directory_unref(directory);
    return server;
}

void server_stop(struct server *server)
{
    hg_logins_stop(server->logins);
    hg_worker_stop(server->worker);
    hg_workers_free(server->worker, 1);
    hg_cursors_fini(&server->front.cursors);
    hg_gate_holder_fini(&server->front.ingress);
    const struct hg_login_stats *stats = hg_logins_stats(server->logins);
    assert_int_equal(stats->started,
                     stats->succeeded + stats->failed + stats->refused_slowed + stats->cancelled);
    assert_int_equal(stats->waiting, 0);
    assert_int_equal(stats->delayed, 0);
    hg_logins_free(server->logins);
    free(server->worker);
    free(server);
}

const struct hg_login_stats *server_stats(const struct server *server)
{
    return hg_logins_stats(server->logins);
}

/* ---- a client ---- */

int dial_from(struct server *server, const struct hg_addr *peer)
{
    int fd[2];
    struct timeval limit = {(time_t)(PATIENCE_US / 1000000 * patience_scale()), 0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    assert_int_equal(setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    assert_int_equal(evutil_make_socket_nonblocking(fd[1]), 0);
    assert_int_equal(hg_worker_give_client(server->worker, fd[1], peer, false), 0);
    return fd[0];
}

int dial(struct server *server, uint8_t host)
{
    struct hg_addr peer = {.len = sizeof(struct sockaddr_in)};
    struct sockaddr_in *in = (struct sockaddr_in *)&peer.sa;
    in->sin_family = AF_INET;
    in->sin_addr.s_addr = htonl(0x0a000000u + host);
    return dial_from(server, &peer);
}

void ask(int fd, uint8_t opcode, const char *key, const void *value, size_t len)
{
    size_t key_len = strlen(key), bytes = 24 + key_len + len;
    uint8_t *frame = calloc(1, bytes);
    assert_non_null(frame);
    frame[0] = 0x80;
    frame[1] = opcode;
    hg_put_u16(frame + 2, (uint16_t)key_len);
    hg_put_u32(frame + 8, (uint32_t)(key_len + len));
    memcpy(frame + 24, key, key_len);
    if (len > 0)
        memcpy(frame + 24 + key_len, value, len);
    assert_int_equal(send(fd, frame, bytes, MSG_NOSIGNAL), bytes);
    free(frame);
}

static void receive(int fd, void *to, size_t len)
{
    for (size_t have = 0; have < len;) {
        ssize_t n = recv(fd, (char *)to + have, len - have, 0);
        assert_true(n > 0);
        have += (size_t)n;
    }
}

struct answer hear(int fd)
{
    uint8_t header[24];
    struct answer answer = {0};
    receive(fd, header, sizeof header);
    assert_int_equal(header[0], 0x81);
    answer.opcode = header[1];
    answer.status = hg_get_u16(header + 6);
    answer.key_len = hg_get_u16(header + 2);
    answer.len = hg_get_u32(header + 8);
    assert_true(answer.len < sizeof answer.text);
    receive(fd, answer.text, answer.len);
    return answer;
}

struct answer call(int fd, uint8_t opcode, const char *key, const void *value, size_t len)
{
    ask(fd, opcode, key, value, len);
    struct answer answer = hear(fd);
    assert_int_equal(answer.opcode, opcode);
    return answer;
}

static size_t plain_message(char out[200], const char *name, const char *password)
{
    return (size_t)snprintf(out, 200, "%c%s%c%s", 0, name, 0, password);
}

void ask_plain(int fd, const char *name, const char *password)
{
    char message[200];
    ask(fd, HG_OPCODE_SASL_AUTH, "PLAIN", message, plain_message(message, name, password));
}

struct answer plain(int fd, const char *name, const char *password)
{
    ask_plain(fd, name, password);
    return hear(fd);
}

const char *who(int fd)
{
    static char name[2048];
    struct answer first = call(fd, HG_OPCODE_STAT, "", NULL, 0);
    if (first.status == HG_STATUS_EACCESS)
        return NULL;
    assert_int_equal(first.status, 0);
    assert_int_equal(first.key_len, 4);
    struct answer same = hear(fd);
    assert_string_equal(same.text, "same1");
    assert_int_equal(hear(fd).len, 0);
    snprintf(name, sizeof name, "%s", first.text + 4);
    return name;
}
