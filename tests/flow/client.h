// client - the other end of a session's socket, in the hands of a test
// SPDX-License-Identifier: BSD-3-Clause
//
// Frames are collected with client_add and leave with client_send (or at once with client_ask), so
// that a test decides what arrives together. Replies are read by client_read and taken one by one.
#ifndef CLIENT_H
#define CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "proto/opcode.h"

struct client {
    int fd; /* -1: closed */
    uint8_t *out;
    size_t out_len, out_cap;
    uint8_t *in; /* bytes read, from the first reply not yet taken on at `at` */
    size_t in_len, in_cap, at;
    size_t read_total;
    bool ended; /* the server has closed */
    bool reset;
};

struct reply {
    uint8_t magic, opcode;
    uint16_t status;
    uint32_t opaque;
    uint64_t cas;
    struct hg_span framing, extras, key, value; /* until the next client_read */
};

/* Extra parts of a request; zero is usual. */
struct ask {
    uint8_t opcode;
    const char *key;
    uint32_t opaque;
    uint64_t cas;
    struct hg_span extras, value, framing;
};

void client_init(struct client *client, int fd);
/* Closes: with bytes unread the server sees a reset. */
void client_close(struct client *client);
/* Sends no more. */
void client_half_close(struct client *client);

/* Adds a frame; gets and the like need opcode, key and opaque only. A set has zero extras unless
   they are given. */
void client_add(struct client *client, const struct ask *ask);
void client_add_op(struct client *client, uint8_t opcode, const char *key, uint32_t opaque);
void client_add_set(struct client *client, uint8_t opcode, const char *key, const void *value,
                    size_t len, uint32_t opaque);
void client_add_bytes(struct client *client, const void *bytes, size_t len);
/* HELLO with these features (0: the end of the list). */
void client_add_hello(struct client *client, uint32_t opaque, const uint16_t *codes);
/* Sends what was collected as far as the socket takes it; true when all is gone. */
bool client_send(struct client *client);
/* Sends the first `len` bytes of it only. */
void client_send_part(struct client *client, size_t len);
/* Adds and sends. */
void client_ask(struct client *client, uint8_t opcode, const char *key, uint32_t opaque);

/* Reads what is there, at most `most` bytes. */
void client_read(struct client *client, size_t most);
/* Takes the next whole reply; false when there is none. */
bool client_take(struct client *client, struct reply *ret);

#endif
