// loginserver - a server that only knows logins, on a real worker, and a client for it
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_TEST_LOGINSERVER_H
#define HG_TEST_LOGINSERVER_H

#include "loginhelp.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/login.h"
#include "base/clock.h"
#include "core/loginguard.h"
#include "front/worker.h"
#include "proto/status.h"
#include "patience.h"

struct server {
    struct hg_front front;
    struct hg_credit_node node;
    struct hg_worker *worker;
    struct hg_logins *logins;
};

/* Everything behind a login needs one; `stat` says who asks. */
struct server *server_start(const struct test_user *rows, size_t count, unsigned threads,
                            unsigned queue_max);
/* Ends it, and checks that every login is counted once. */
void server_stop(struct server *server);
const struct hg_login_stats *server_stats(const struct server *server);
/* A directory with these users, one reference. */
struct hg_directory *server_directory(struct hg_users *users);

/* A connection that seems to come from that address. */
int dial_from(struct server *server, const struct hg_addr *peer);
/* From 10.0.0.`host`. */
int dial(struct server *server, uint8_t host);

struct answer {
    uint8_t opcode;
    uint16_t status;
    size_t key_len, len;
    char text[2048]; /* key and value, with a zero byte */
};

void ask(int fd, uint8_t opcode, const char *key, const void *value, size_t len);
struct answer hear(int fd);
struct answer call(int fd, uint8_t opcode, const char *key, const void *value, size_t len);
void ask_plain(int fd, const char *name, const char *password);
struct answer plain(int fd, const char *name, const char *password);
/* Who the session is: a name, or NULL when it may not ask. */
const char *who(int fd);

#define POLL(question)                                                                             \
    do {                                                                                           \
        PATIENCE_UNTIL(question, poll(NULL, 0, 1));                                                \
    } while (0)

static const struct test_user everybody[] = {
    {"ann", "right", WITH_SHA_1 | WITH_SHA_256, 0},
    {"bob", "builder", WITH_SHA_256, 0},
};
#define START(threads, queue_max)                                                                  \
    server_start(everybody, HG_COUNT_OF(everybody), threads, queue_max)

/* Iterations that take long enough to be in the middle of. */
static const struct test_user heavy[] = {{"ann", "right", WITH_SHA_256, 150000}};
#define START_HEAVY(threads, queue_max) server_start(heavy, 1, threads, queue_max)

#endif
