// wire - a link over TLS, its server, and between them a wire that passes on what a test wants
// SPDX-License-Identifier: BSD-3-Clause
#include "wire.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/tls_own.h"

struct tls_identity wire_ca, wire_stranger, wire_server, wire_expired, wire_client;

struct hg_uptls_conf wire_conf(const struct rules *rules)
{
    return (struct hg_uptls_conf){
        .tls = {.ca = rules->trusted != NULL ? rules->trusted : wire_ca.certificate_file,
                .certificate = rules->own != NULL ? rules->own->certificate_file : NULL,
                .key = rules->own != NULL ? rules->own->key_file : NULL,
                .peer = rules->trusts_all ? HG_TLS_PEER_IGNORED : HG_TLS_PEER_REQUIRED},
        .server_name = rules->server_name};
}

static void begin_server(struct wire *wire, const struct rules *rules)
{
    char why[HG_TLS_WHY_BYTES];
    const struct tls_identity *shown = rules->shown != NULL ? rules->shown : &wire_server;
    struct hg_tls_conf conf = {.is_server = true,
                               .certificate = shown->certificate_file,
                               .key = shown->key_file,
                               .ca = rules->asks ? wire_ca.certificate_file : NULL,
                               .peer = rules->asks ? HG_TLS_PEER_REQUIRED : HG_TLS_PEER_IGNORED};
    assert_int_equal(hg_tls_ctx_new(&conf, &wire->ctx, why), 0);
    if (rules->is_old)
        SSL_CTX_set_max_proto_version(wire->ctx->ssl, TLS1_2_VERSION);
    wire->tls = hg_tls_new(wire->ctx, wire->ends[1], NULL);
    assert_non_null(wire->tls);
    hg_out_init(&wire->out, &wire->pair.rig.outs);
    wire->step = HG_TLS_WANT_READ;
}

/* A link whose socket is connected and whose handshake has begun. */
struct wire *wire_new(const struct rules *rules)
{
    struct wire *wire = calloc(1, sizeof *wire);
    char why[HG_TLS_WHY_BYTES];
    int fds[2];
    const struct hg_uptls_conf conf = wire_conf(rules);
    struct pair *pair = &wire->pair;
    pair_init(pair, false);
    hg_link_end(pair->link, HG_LINK_LET_GO, 0);
    close(pair->fd);
    pair->readies = pair->ends = 0;
    if (rules->depth > 0)
        pair->limits.depth = rules->depth;
    wire->uptls = hg_uptls_new(&conf, why);
    assert_non_null(wire->uptls);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, wire->ends),
                     0);
    begin_server(wire, rules);
    pair->fd = fds[1];
    pair->link = pair_bare_link(pair);
    pair->link->uptls = wire->uptls;
    pair->link->host = rules->host != NULL ? rules->host : "cache.example";
    wire->most = wire->limit = SIZE_MAX;
    hg_link_adopt(pair->link, fds[0], rules->probe);
    return wire;
}

void wire_free(struct wire *wire)
{
    hg_tls_free(wire->tls);
    if (wire->ctx != NULL)
        hg_out_fini(&wire->out);
    hg_tls_ctx_unref(wire->ctx);
    for (int i = 0; i < 2; i++)
        if (wire->ends[i] >= 0)
            close(wire->ends[i]);
    pair_fini(&wire->pair);
    hg_uptls_free(wire->uptls);
    free(wire);
}

/* The server goes away. */
void wire_hang_up(struct wire *wire)
{
    hg_tls_free(wire->tls);
    wire->tls = NULL;
    close(wire->ends[1]);
    wire->ends[1] = -1;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The wire, from the link on. */
static void pass_on(struct wire *wire)
{
    size_t room = least(sizeof wire->raw - wire->raw_len, wire->most);
    ssize_t n = recv(wire->pair.fd, wire->raw + wire->raw_len, room, 0);
    if (n <= 0)
        return;
    if (wire->ends[1] >= 0)
        assert_int_equal(send(wire->ends[0], wire->raw + wire->raw_len, (size_t)n, MSG_NOSIGNAL),
                         n);
    wire->raw_len += (size_t)n;
}

/* And to it; the server's end is the link's. */
void wire_pass_back(struct wire *wire)
{
    static uint8_t bytes[WIRE_ROOM];
    size_t room = least(least(wire->most, wire->limit - wire->sent), sizeof bytes);
    ssize_t n = room > 0 ? recv(wire->ends[0], bytes, room, 0) : 0;
    if (n == 0 && (wire->sent == wire->limit || wire->ends[1] < 0))
        shutdown(wire->pair.fd, SHUT_WR);
    if (n <= 0)
        return;
    if (wire->spoil > wire->sent && wire->spoil <= wire->sent + (size_t)n)
        bytes[wire->spoil - wire->sent - 1] ^= 0xff;
    wire->sent += (size_t)n;
    (void)!send(wire->pair.fd, bytes, (size_t)n, MSG_NOSIGNAL);
}

void wire_serve(struct wire *wire)
{
    if (wire->tls == NULL)
        return;
    if (wire->step == HG_TLS_WANT_READ)
        wire->step = hg_tls_handshake(wire->tls);
    while (wire->step == HG_TLS_DONE && wire->heard_len < sizeof wire->heard) {
        ssize_t n = hg_tls_recv(wire->tls, wire->heard + wire->heard_len,
                                sizeof wire->heard - wire->heard_len);
        if (n <= 0)
            break;
        wire->heard_len += (size_t)n;
    }
    if (wire->step == HG_TLS_DONE)
        (void)!hg_tls_flush(wire->tls, &wire->out);
}

void wire_turn(struct wire *wire)
{
    pair_turn(&wire->pair);
    pass_on(wire);
    wire_serve(wire);
    wire_pass_back(wire);
}

void wire_come_up(struct wire *wire)
{
    WIRE_UNTIL(wire, wire->pair.readies == 1 || wire->pair.ends == 1);
    assert_int_equal(wire->pair.readies, 1);
}

void wire_say(struct wire *wire, const uint8_t *bytes, size_t len)
{
    hg_out_put(&wire->out, hg_span(bytes, len));
}

void wire_say_found(struct wire *wire, uint32_t opaque, const char *value)
{
    uint8_t out[1024];
    wire_say(wire, out, pair_found(out, opaque, value));
}

uint64_t wire_failures(const struct wire *wire)
{
    return hg_counter_get(&wire->pair.counters.values[HG_UPSTREAM_TLS_FAILURES]);
}

/* The link has ended and nothing was sent or answered. */
void wire_assert_refused(struct wire *wire, const char *word)
{
    WIRE_UNTIL(wire, wire->pair.ends == 1);
    assert_int_equal(wire->pair.why, HG_LINK_TLS_FAILED);
    assert_int_equal(wire->pair.readies, 0);
    assert_int_equal(wire_failures(wire), 1);
    if (strstr(wire->pair.text, word) == NULL)
        fail_msg("'%s' is not in '%s'", word, wire->pair.text);
    assert_non_null(strstr(wire->pair.text, "TLS failed: "));
}

int wire_begin(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    wire_ca = tls_make(&(struct tls_paper){.cn = "authority", .is_ca = true}, NULL);
    wire_stranger = tls_make(
        &(struct tls_paper){.cn = "somebody", .is_ca = true, .san = "DNS:cache.example"}, NULL);
    wire_server = tls_make(
        &(struct tls_paper){.cn = "server", .san = "DNS:cache.example,IP:10.0.0.1"}, &wire_ca);
    wire_expired = tls_make(
        &(struct tls_paper){
            .cn = "server", .san = "DNS:cache.example", .from_s = -7200, .until_s = -3600},
        &wire_ca);
    wire_client = tls_make(&(struct tls_paper){.cn = "headgate"}, &wire_ca);
    return 0;
}

int wire_end(void **state)
{
    (void)state;
    struct tls_identity *all[] = {&wire_ca, &wire_stranger, &wire_server, &wire_expired,
                                  &wire_client};
    for (size_t i = 0; i < HG_COUNT_OF(all); i++)
        tls_drop(all[i]);
    return 0;
}
