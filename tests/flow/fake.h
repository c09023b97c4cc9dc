// fake - a memcached server in the hands of a test, on the test's own thread
// SPDX-License-Identifier: BSD-3-Clause
//
// It accepts on a free port of 127.0.0.1 (or a unix socket) when fake_pump is called, keeps every
// request, and says what the test tells it to: in whatever order, cut into pieces, or not at all.
#ifndef FAKE_H
#define FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_CONNS    64
#define FAKE_REQUESTS 4096
#define FAKE_KEY      251
#define FAKE_USER     32

struct fake_request {
    int conn;
    uint8_t opcode;
    uint32_t opaque;
    uint64_t cas;
    uint8_t extras[32];
    uint32_t extras_len;
    uint32_t value_len;
    uint32_t value_sum; /* of its bytes */
    char key[FAKE_KEY];
    char user[FAKE_USER]; /* as whom the connection was logged in; of a login: who is to be */
    bool answered;
};

struct fake_conn {
    int fd;
    uint8_t *in;
    size_t have, cap;
    bool deaf;            /* does not read */
    bool ended;           /* by the peer */
    size_t count;         /* requests */
    char user[FAKE_USER]; /* logged in as; "": nobody */
};

struct fake {
    int fd;
    uint16_t port;
    char address[128];
    bool automatic;          /* answers every request as a memcached would that has every key */
    bool lets_in;            /* so it does logins, though it is not automatic */
    bool keeps_noops;        /* they are requests like others; else answered at once, not kept */
    char refused[FAKE_USER]; /* this user is not let in */
    int most;                /* connections at a time; 0: all. Further ones are ... */
    bool waits;              /* ... left in the backlog, or else closed at once */
    bool one_login;          /* a second login on a connection is refused */
    struct fake_conn conns[FAKE_CONNS];
    int accepted; /* connections, ever */
    struct fake_request *requests;
    size_t count;
};

/* Listens; port 0: a free one. */
void fake_open(struct fake *fake, uint16_t port);
void fake_open_unix(struct fake *fake, const char *path);
/* Stops listening and closes all connections; the address stays. */
void fake_stop(struct fake *fake);
void fake_start(struct fake *fake);
void fake_close(struct fake *fake);
/* Accepts, reads, answers if automatic. */
void fake_pump(struct fake *fake);
/* Connections that the peer has not closed. */
int fake_live(const struct fake *fake);
void fake_hang_up(struct fake *fake, int conn);
/* The newest request that is not yet answered and has this key, or NULL. */
struct fake_request *fake_find(struct fake *fake, const char *key);

/* A whole reply as bytes in `out`; its length. */
size_t fake_encode(uint8_t *out, uint8_t opcode, uint16_t status, uint32_t opaque, uint64_t cas,
                   const void *extras, size_t extras_len, const void *value, size_t value_len);
void fake_say(struct fake *fake, int conn, const void *bytes, size_t len);
void fake_answer(struct fake *fake, struct fake_request *request, uint16_t status,
                 const char *value);
/* As a memcached would: gets find the value "v:KEY" with flags 7, counters are 42. */
void fake_obey(struct fake *fake, struct fake_request *request);

#endif
