// wire - a link over TLS, its server, and between them a wire that passes on what a test wants
// SPDX-License-Identifier: BSD-3-Clause
//
//   link ─ socket pair ─ the wire ─ socket pair ─ TLS ─ the server, which is the test
#ifndef WIRE_H
#define WIRE_H

#include "pair.h"
#include "tlshelp.h"

#define WIRE_ROOM  (256 * 1024)
#define WIRE_TURNS 4000 /* more than any exchange needs, byte by byte */

/* Made by wire_begin; expired and server are of the authority ca, and for cache.example, the latter
   for 10.0.0.1 too. */
extern struct tls_identity wire_ca, wire_stranger, wire_server, wire_expired, wire_client;

struct wire {
    struct pair pair;
    struct hg_uptls *uptls;
    struct hg_tls_ctx *ctx;
    struct hg_tls *tls; /* the server's; NULL: it is the test that speaks */
    struct hg_out out;
    int ends[2];              /* of the second pair: the wire's, the server's */
    size_t most;              /* bytes that the wire passes on in a turn and direction */
    size_t sent, limit;       /* bytes that reached the link, and that may */
    size_t spoil;             /* which of them is changed; 0: none */
    enum hg_tls_step step;    /* of the server */
    uint8_t raw[WIRE_ROOM];   /* what the link said, as it was on the wire */
    uint8_t heard[WIRE_ROOM]; /* and what it was */
    size_t raw_len, heard_len;
};

struct rules {
    const struct tls_identity *shown; /* the server's; NULL: `server` */
    const char *trusted;              /* file; NULL: ca's */
    const char *server_name, *host;
    const struct tls_identity *own; /* the link's */
    bool trusts_all, asks;          /* the server wants a certificate */
    bool probe, is_old;             /* it speaks version 1.2 */
    uint32_t depth;                 /* of the link; 0: the usual */
};

/* For cmocka: the papers are made, and removed. */
int wire_begin(void **state);
int wire_end(void **state);

struct hg_uptls_conf wire_conf(const struct rules *rules);
/* A link whose socket is connected and whose handshake has begun. */
struct wire *wire_new(const struct rules *rules);
void wire_free(struct wire *wire);
/* The server goes away. */
void wire_hang_up(struct wire *wire);
/* The server reads, and sends what it has to say. */
void wire_serve(struct wire *wire);
/* From the server to the link; the server's end is the link's. */
void wire_pass_back(struct wire *wire);
/* A turn of the link, of the server, and of the wire in both directions. */
void wire_turn(struct wire *wire);
#define WIRE_UNTIL(wire, condition)                                                                \
    do {                                                                                           \
        unsigned turns_ = 0;                                                                       \
        while (!(condition)) {                                                                     \
            if (turns_++ > WIRE_TURNS * 10)                                                        \
                fail_msg("still not: %s", #condition);                                             \
            wire_turn(wire);                                                                       \
        }                                                                                          \
    } while (0)

void wire_come_up(struct wire *wire);
/* As the server. */
void wire_say(struct wire *wire, const uint8_t *bytes, size_t len);
void wire_say_found(struct wire *wire, uint32_t opaque, const char *value);
uint64_t wire_failures(const struct wire *wire);
/* The link ends for TLS' sake, nothing was sent or answered, and its end is told with this word. */
void wire_assert_refused(struct wire *wire, const char *word);

#endif
