// t_link_tls - a link over TLS: the same requests and replies, a server that must prove who it is
// SPDX-License-Identifier: BSD-3-Clause
//
//   link ─ socket pair ─ the wire: passes bytes on as a test wants ─ socket pair ─ TLS ─ the server
#include "pair.h"
#include "tlshelp.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/tls_own.h"
#include "proto/opcode.h"

#define ROOM       (256 * 1024)
#define RECORD     17   /* bytes that a record of version 1.3 has more than what it carries */
#define MANY_TURNS 4000 /* more than any exchange needs, byte by byte */

static struct tls_identity ca, stranger, server, expired, client;

struct scene {
    struct pair pair;
    struct hg_uptls *uptls;
    struct hg_tls_ctx *ctx;
    struct hg_tls *tls; /* the server's; NULL: it is the test that speaks */
    struct hg_out out;
    int ends[2];           /* of the second pair: the wire's, the server's */
    size_t most;           /* bytes that the wire passes on in a turn and direction */
    size_t sent, limit;    /* bytes that reached the link, and that may */
    size_t spoil;          /* which of them is changed; 0: none */
    enum hg_tls_step step; /* of the server */
    uint8_t raw[ROOM];     /* what the link said, as it was on the wire */
    uint8_t heard[ROOM];   /* and what it was */
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

static struct hg_uptls_conf conf_of(const struct rules *rules)
{
    return (struct hg_uptls_conf){
        .tls = {.ca = rules->trusted != NULL ? rules->trusted : ca.certificate_file,
                .certificate = rules->own != NULL ? rules->own->certificate_file : NULL,
                .key = rules->own != NULL ? rules->own->key_file : NULL,
                .peer = rules->trusts_all ? HG_TLS_PEER_IGNORED : HG_TLS_PEER_REQUIRED},
        .server_name = rules->server_name};
}

static void begin_server(struct scene *scene, const struct rules *rules)
{
    char why[HG_TLS_WHY_BYTES];
    const struct tls_identity *shown = rules->shown != NULL ? rules->shown : &server;
    struct hg_tls_conf conf = {.is_server = true,
                               .certificate = shown->certificate_file,
                               .key = shown->key_file,
                               .ca = rules->asks ? ca.certificate_file : NULL,
                               .peer = rules->asks ? HG_TLS_PEER_REQUIRED : HG_TLS_PEER_IGNORED};
    assert_int_equal(hg_tls_ctx_new(&conf, &scene->ctx, why), 0);
    if (rules->is_old)
        SSL_CTX_set_max_proto_version(scene->ctx->ssl, TLS1_2_VERSION);
    scene->tls = hg_tls_new(scene->ctx, scene->ends[1], NULL);
    assert_non_null(scene->tls);
    hg_out_init(&scene->out, &scene->pair.rig.outs);
    scene->step = HG_TLS_WANT_READ;
}

/* A link whose socket is connected and whose handshake has begun. */
static struct scene *scene_new(const struct rules *rules)
{
    struct scene *scene = calloc(1, sizeof *scene);
    char why[HG_TLS_WHY_BYTES];
    int fds[2];
    const struct hg_uptls_conf conf = conf_of(rules);
    struct pair *pair = &scene->pair;
    pair_init(pair, false);
    hg_link_end(pair->link, HG_LINK_LET_GO, 0);
    close(pair->fd);
    pair->readies = pair->ends = 0;
    if (rules->depth > 0)
        pair->limits.depth = rules->depth;
    scene->uptls = hg_uptls_new(&conf, why);
    assert_non_null(scene->uptls);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, scene->ends), 0);
    begin_server(scene, rules);
    pair->fd = fds[1];
    pair->link = pair_bare_link(pair);
    pair->link->uptls = scene->uptls;
    pair->link->host = rules->host != NULL ? rules->host : "cache.example";
    scene->most = scene->limit = SIZE_MAX;
    hg_link_adopt(pair->link, fds[0], rules->probe);
    return scene;
}

static void scene_free(struct scene *scene)
{
    hg_tls_free(scene->tls);
    if (scene->ctx != NULL)
        hg_out_fini(&scene->out);
    hg_tls_ctx_unref(scene->ctx);
    for (int i = 0; i < 2; i++)
        if (scene->ends[i] >= 0)
            close(scene->ends[i]);
    pair_fini(&scene->pair);
    hg_uptls_free(scene->uptls);
    free(scene);
}

/* The server goes away. */
static void hang_up(struct scene *scene)
{
    hg_tls_free(scene->tls);
    scene->tls = NULL;
    close(scene->ends[1]);
    scene->ends[1] = -1;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The wire, from the link on. */
static void pass_on(struct scene *scene)
{
    size_t room = least(sizeof scene->raw - scene->raw_len, scene->most);
    ssize_t n = recv(scene->pair.fd, scene->raw + scene->raw_len, room, 0);
    if (n <= 0)
        return;
    if (scene->ends[1] >= 0)
        assert_int_equal(send(scene->ends[0], scene->raw + scene->raw_len, (size_t)n, MSG_NOSIGNAL),
                         n);
    scene->raw_len += (size_t)n;
}

/* And to it; the server's end is the link's. */
static void pass_back(struct scene *scene)
{
    static uint8_t bytes[ROOM];
    size_t room = least(least(scene->most, scene->limit - scene->sent), sizeof bytes);
    ssize_t n = room > 0 ? recv(scene->ends[0], bytes, room, 0) : 0;
    if (n == 0 && (scene->sent == scene->limit || scene->ends[1] < 0))
        shutdown(scene->pair.fd, SHUT_WR);
    if (n <= 0)
        return;
    if (scene->spoil > scene->sent && scene->spoil <= scene->sent + (size_t)n)
        bytes[scene->spoil - scene->sent - 1] ^= 0xff;
    scene->sent += (size_t)n;
    (void)!send(scene->pair.fd, bytes, (size_t)n, MSG_NOSIGNAL);
}

static void serve(struct scene *scene)
{
    if (scene->tls == NULL)
        return;
    if (scene->step == HG_TLS_WANT_READ)
        scene->step = hg_tls_handshake(scene->tls);
    while (scene->step == HG_TLS_DONE && scene->heard_len < sizeof scene->heard) {
        ssize_t n = hg_tls_recv(scene->tls, scene->heard + scene->heard_len,
                                sizeof scene->heard - scene->heard_len);
        if (n <= 0)
            break;
        scene->heard_len += (size_t)n;
    }
    if (scene->step == HG_TLS_DONE)
        (void)!hg_tls_flush(scene->tls, &scene->out);
}

static void turn(struct scene *scene)
{
    pair_turn(&scene->pair);
    pass_on(scene);
    serve(scene);
    pass_back(scene);
}

#define TURN_UNTIL(scene, condition)                                                               \
    do {                                                                                           \
        unsigned turns_ = 0;                                                                       \
        while (!(condition)) {                                                                     \
            if (turns_++ > MANY_TURNS * 10)                                                        \
                fail_msg("still not: %s", #condition);                                             \
            turn(scene);                                                                           \
        }                                                                                          \
    } while (0)

static void come_up(struct scene *scene)
{
    TURN_UNTIL(scene, scene->pair.readies == 1 || scene->pair.ends == 1);
    assert_int_equal(scene->pair.readies, 1);
}

static void say(struct scene *scene, const uint8_t *bytes, size_t len)
{
    hg_out_put(&scene->out, hg_span(bytes, len));
}

static void say_found(struct scene *scene, uint32_t opaque, const char *value)
{
    uint8_t out[1024];
    say(scene, out, pair_found(out, opaque, value));
}

static uint64_t failures(const struct scene *scene)
{
    return hg_counter_get(&scene->pair.counters.values[HG_UPSTREAM_TLS_FAILURES]);
}

/* The link has ended and nothing was sent or answered. */
static void assert_refused(struct scene *scene, const char *word)
{
    TURN_UNTIL(scene, scene->pair.ends == 1);
    assert_int_equal(scene->pair.why, HG_LINK_TLS_FAILED);
    assert_int_equal(scene->pair.readies, 0);
    assert_int_equal(failures(scene), 1);
    if (strstr(scene->pair.text, word) == NULL)
        fail_msg("'%s' is not in '%s'", word, scene->pair.text);
    assert_non_null(strstr(scene->pair.text, "TLS failed: "));
}

/* ---- as without ---- */

static void t_a_request_and_its_reply(void **state)
{
    (void)state;
    struct scene *scene = scene_new(&(struct rules){0});
    struct note note;
    pair_get(&scene->pair, &note, "confidential"); /* waits for the handshake */
    assert_int_equal(scene->pair.link->state, HG_LINK_CONNECTING);
    come_up(scene);
    TURN_UNTIL(scene, scene->heard_len > 0);
    assert_int_equal(scene->heard[1], HG_OPCODE_GET);
    assert_memory_equal(scene->heard + 24, "confidential", 12);
    assert_int_equal(scene->raw[0], 22); /* a greeting of TLS is the first word */
    assert_null(memmem(scene->raw, scene->raw_len, "confidential", 12));
    say_found(scene, 0, "value");
    TURN_UNTIL(scene, note.done > 0);
    assert_int_equal(note.result.status, HG_STATUS_SUCCESS);
    assert_string_equal(note.value, "value");
    assert_int_equal(scene->pair.answers, 1);
    assert_int_equal(failures(scene), 0);
    assert_int_equal(hg_counter_get(&scene->pair.counters.values[HG_UPSTREAM_BYTES_OUT]), 36);
    scene_free(scene);
}

static void t_in_pieces_of_any_size(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 5, 21, 777};
    static uint8_t reply[70000];
    for (size_t i = 0; i < HG_COUNT_OF(sizes); i++) {
        struct scene *scene = scene_new(&(struct rules){0});
        struct note notes[2];
        scene->most = sizes[i];
        pair_get(&scene->pair, &notes[0], "a");
        come_up(scene);
        pair_get(&scene->pair, &notes[1], "b");
        TURN_UNTIL(scene, scene->heard_len == 50);
        size_t len = 20000;
        memset(reply, 'x', sizeof reply);
        size_t whole = fake_encode(reply, HG_OPCODE_GET, 0, 0, 7, (const uint8_t *)"\0\0\0\0", 4,
                                   memset(reply + 40000, 'y', len), len);
        say(scene, reply, whole);
        say_found(scene, 1, "last");
        TURN_UNTIL(scene, notes[1].done > 0);
        assert_int_equal(notes[0].done, 1);
        assert_int_equal(notes[0].value_len, len);
        assert_string_equal(notes[1].value, "last");
        scene_free(scene);
    }
}

static void t_logs_in_as_without(void **state)
{
    (void)state;
    uint8_t out[64];
    struct scene *scene = scene_new(&(struct rules){.probe = true});
    TURN_UNTIL(scene, scene->heard_len > 0);
    assert_int_equal(scene->heard[1], HG_OPCODE_NOOP);
    assert_int_equal(scene->pair.link->state, HG_LINK_HANDSHAKE);
    assert_int_equal(scene->pair.readies, 0);
    say(scene, out, fake_encode(out, HG_OPCODE_NOOP, 0, 0, 0, NULL, 0, NULL, 0));
    come_up(scene);
    scene_free(scene);
}

/* What a server says at once is read with the end of the handshake (it has the last word in version
   1.2), and no event tells of it. */
static void t_what_was_read_with_the_handshake(void **state)
{
    (void)state;
    struct scene *scene = scene_new(&(struct rules){.is_old = true});
    say_found(scene, 0, "unasked");
    TURN_UNTIL(scene, scene->pair.ends == 1);
    assert_int_equal(scene->pair.why, HG_LINK_GARBAGE);
    scene_free(scene);
}

/* So many replies of 728 bytes are there before the link has a turn. False: not allowed. */
static bool answer_at_once(uint32_t replies)
{
    static struct note notes[1500];
    struct scene *scene = scene_new(&(struct rules){.depth = replies});
    char value[701];
    int bytes = 8 << 20;
    bool may = setsockopt(scene->pair.fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) == 0;
    come_up(scene);
    for (uint32_t i = 0; i < replies; i++)
        pair_get(&scene->pair, &notes[i], "k");
    TURN_UNTIL(scene, scene->heard_len == 25 * replies);
    memset(value, 'v', 700);
    value[700] = '\0';
    for (uint32_t i = 0; i < replies; i++)
        say_found(scene, i, value);
    for (int i = 0; may && i < MANY_TURNS; i++) {
        serve(scene);
        pass_back(scene);
    }
    for (int i = 0; may && i < 3; i++)
        pair_turn(&scene->pair);
    assert_true(!may || notes[replies - 1].done == 1);
    scene_free(scene);
    return may;
}

/* More than a link reads in a turn (4 times the hub's room): the last of it is decrypted, or read
   to be, when its reads are over and the socket is empty. */
static void t_what_no_event_tells_of(void **state)
{
    (void)state;
    for (uint32_t more = 1; more < 24; more += 2)
        if (!answer_at_once(4 * HG_HUB_SCRATCH_BYTES / 728 + more)) {
            print_message("# not allowed to make the buffer of a socket that large\n");
            return;
        }
}

/* Lengths of what the records from the link carried, after its handshake. */
static size_t records(const struct scene *scene, size_t from, size_t *lens, size_t max)
{
    size_t count = 0;
    for (size_t at = from; at + 5 <= scene->raw_len && count < max;) {
        size_t len = (size_t)scene->raw[at + 3] << 8 | scene->raw[at + 4];
        assert_int_equal(scene->raw[at], 23);
        lens[count++] = len - RECORD;
        at += 5 + len;
    }
    return count;
}

static void t_records_hold_whole_requests(void **state)
{
    (void)state;
    static const size_t values[] = {9000, 9000, 0, 40000, 0};
    static char value[40000];
    const size_t head = 24 + 8 + 1;
    const size_t wanted[] = {head + 9000, head + 9000 + 25, 16384, 16384, head + 40000 - 32768, 25};
    struct scene *scene = scene_new(&(struct rules){0});
    struct note notes[HG_COUNT_OF(values)];
    size_t lens[16];
    come_up(scene);
    for (int i = 0; i < 5; i++)
        turn(scene);
    size_t from = scene->raw_len;
    for (size_t i = 0; i < HG_COUNT_OF(values); i++) {
        note_init(&notes[i], NULL, values[i] > 0 ? HG_OP_SET : HG_OP_GET, "k");
        notes[i].call.value = hg_span(value, values[i]);
        pair_send(&scene->pair, &notes[i]);
    }
    TURN_UNTIL(scene, scene->heard_len == 3 * head + 58000 + 2 * 25);
    assert_int_equal(records(scene, from, lens, HG_COUNT_OF(lens)), HG_COUNT_OF(wanted));
    for (size_t i = 0; i < HG_COUNT_OF(wanted); i++)
        assert_int_equal(lens[i], wanted[i]);
    scene_free(scene);
}

/* ---- the server goes, or is none ---- */

static void t_closed_at_every_byte_of_the_handshake(void **state)
{
    (void)state;
    struct scene *scene = scene_new(&(struct rules){.probe = true});
    TURN_UNTIL(scene, scene->heard_len > 0);
    size_t whole = scene->sent;
    scene_free(scene);
    assert_true(whole > 500);
    for (size_t limit = 0; limit < whole; limit += 1 + limit % 13) {
        scene = scene_new(&(struct rules){.probe = true});
        scene->limit = limit;
        TURN_UNTIL(scene, scene->pair.ends == 1);
        assert_int_equal(scene->pair.readies, 0);
        /* The handshake is over before its last bytes, tickets, have come. */
        assert_true(scene->pair.why == HG_LINK_TLS_FAILED || scene->pair.why == HG_LINK_CLOSED);
        scene_free(scene);
    }
}

static void t_garbage(void **state)
{
    (void)state;
    static const char *const texts[] = {"HTTP/1.1", "ERROR\r\n", "\x15\x03\x03\x00\x02\x02\x28",
                                        "\x81\x0a\0\0\0\0\0\0"};
    for (size_t i = 0; i < HG_COUNT_OF(texts); i++) {
        struct scene *scene = scene_new(&(struct rules){0});
        hg_tls_free(scene->tls);
        scene->tls = NULL; /* it says nothing */
        assert_int_equal(send(scene->pair.fd, texts[i], 7, MSG_NOSIGNAL), 7);
        assert_refused(scene, "");
        scene_free(scene);
    }
}

/* What the pool does when connect_timeout_ms is over. */
static void t_time_is_up(void **state)
{
    (void)state;
    struct scene *scene = scene_new(&(struct rules){0});
    struct note note;
    pair_get(&scene->pair, &note, "k");
    pair_turn(&scene->pair);
    hg_link_end(scene->pair.link, HG_LINK_NO_CONNECT, -ETIMEDOUT);
    assert_refused(scene, "no answer in time");
    assert_int_equal(note.done, 1);
    assert_int_equal(note.result.fault, HG_FAULT_DOWN); /* it was never sent */
    scene_free(scene);
}

static void t_lost_while_it_is_used(void **state)
{
    (void)state;
    for (int spoilt = 0; spoilt < 2; spoilt++) {
        struct scene *scene = scene_new(&(struct rules){0});
        struct note note;
        come_up(scene);
        pair_get(&scene->pair, &note, "k");
        TURN_UNTIL(scene, scene->heard_len > 0);
        if (spoilt) {
            scene->spoil = scene->sent + 20;
            say_found(scene, 0, "value");
        } else {
            hang_up(scene);
        }
        TURN_UNTIL(scene, scene->pair.ends == 1);
        assert_int_equal(scene->pair.why, HG_LINK_CLOSED);
        assert_int_equal(note.done, 1);
        assert_int_equal(note.result.fault, HG_FAULT_LOST);
        assert_int_equal(failures(scene), 0);
        scene_free(scene);
    }
}

/* What lies in a record of which the socket took a part was not sent: it goes to another link. */
static void t_unsent_requests_move(void **state)
{
    (void)state;
    static char value[900000];
    struct scene *scene = scene_new(&(struct rules){0});
    struct note notes[2];
    int fd;
    come_up(scene);
    note_init(&notes[0], NULL, HG_OP_SET, "large");
    notes[0].call.value = hg_span(value, sizeof value);
    pair_send(&scene->pair, &notes[0]);
    pair_get(&scene->pair, &notes[1], "next");
    pair_turn(&scene->pair); /* nobody reads: the socket is full */
    assert_true(scene->pair.link->blocked);
    struct hg_link *link = scene->pair.link, *heir = pair_new_link(&scene->pair, &fd, false);
    scene->pair.heir = heir;
    hg_link_end(link, HG_LINK_CLOSED, 0);
    assert_int_equal(notes[0].done, 1);
    assert_int_equal(notes[0].result.fault, HG_FAULT_LOST);
    assert_int_equal(notes[1].done, 0);
    assert_ptr_equal(notes[1].call.place.link, heir);
    hg_link_end(heir, HG_LINK_LET_GO, 0);
    assert_int_equal(notes[1].done, 1);
    close(fd);
    scene_free(scene);
}

/* ---- whom to trust ---- */

static void t_who_is_not_trusted(void **state)
{
    (void)state;
    const struct {
        struct rules rules;
        const char *word;
    } cases[] = {
        {{.trusted = stranger.certificate_file}, "certificate"},
        {{.shown = &expired}, "expired"},
        {{.shown = &stranger}, "certificate"},
        {{.host = "other.example"}, "mismatch"},
        {{.host = "10.0.0.2"}, "mismatch"},
        {{.server_name = "other.example"}, "mismatch"},
    };
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        struct scene *scene = scene_new(&cases[i].rules);
        struct note note;
        pair_get(&scene->pair, &note, "confidential");
        assert_refused(scene, cases[i].word);
        assert_int_equal(note.result.fault, HG_FAULT_DOWN);
        assert_int_equal(scene->heard_len, 0);
        scene_free(scene);
    }
}

static void t_who_is_trusted(void **state)
{
    (void)state;
    const struct rules cases[] = {
        {.host = "10.0.0.1"},
        {.host = "10.9.9.9", .server_name = "cache.example"},
        {.trusts_all = true, .shown = &expired, .host = "who.example"},
        {.asks = true, .own = &client},
    };
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        struct scene *scene = scene_new(&cases[i]);
        come_up(scene);
        scene_free(scene);
    }
}

/* In version 1.3 it says so after the handshake. */
static void t_who_wants_a_certificate(void **state)
{
    (void)state;
    const struct rules cases[] = {{.asks = true, .probe = true},
                                  {.asks = true, .probe = true, .own = &stranger}};
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        struct scene *scene = scene_new(&cases[i]);
        assert_refused(scene, "alert");
        scene_free(scene);
    }
}

/* ---- many, and new ---- */

static void t_a_turn_makes_few_steps(void **state)
{
    (void)state;
    enum { LINKS = 13, STEPS = 4 };
    struct scene *scene = scene_new(&(struct rules){0});
    struct hg_link *links[LINKS];
    int fds[LINKS][2];
    uint8_t byte;
    for (int i = 0; i < LINKS; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds[i]),
                         0);
        links[i] = pair_bare_link(&scene->pair);
        links[i]->uptls = scene->uptls;
        links[i]->host = "cache.example";
        hg_link_adopt(links[i], fds[i][0], false);
    }
    int greeted = 0;
    for (int turns = 1; greeted < LINKS; turns++) {
        greeted = 0;
        for (int i = 0; i < LINKS; i++)
            greeted += recv(fds[i][1], &byte, 1, MSG_PEEK) == 1;
        assert_true(greeted <= STEPS * turns);
        assert_true(turns <= LINKS);
        pair_turn(&scene->pair);
    }
    for (int i = 0; i < LINKS; i++) {
        hg_link_end(links[i], HG_LINK_LET_GO, 0);
        close(fds[i][1]);
    }
    scene_free(scene);
}

static void copy(const char *from, const char *to)
{
    char text[8192];
    FILE *f = fopen(from, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    f = fopen(to, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

static void t_new_files(void **state)
{
    (void)state;
    char path[] = "/tmp/hgtrust.XXXXXX", why[HG_TLS_WHY_BYTES] = "";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    copy(stranger.certificate_file, path);
    const struct hg_uptls_conf conf = conf_of(&(struct rules){.trusted = path});
    struct hg_uptls *uptls = hg_uptls_new(&conf, why);
    assert_non_null(uptls);
    assert_int_equal(hg_uptls_renew(uptls, &conf, why), 0);
    copy("/dev/null", path);
    assert_true(hg_uptls_renew(uptls, &conf, why) < 0);
    assert_non_null(strstr(why, path));
    assert_true(hg_uptls_renew(uptls, &conf, why) < 0); /* and says so each time */
    copy(ca.certificate_file, path);
    assert_int_equal(hg_uptls_renew(uptls, &conf, why), 1);
    assert_int_equal(hg_uptls_renew(uptls, &conf, why), 0);
    hg_uptls_free(uptls);
    unlink(path);
    assert_null(hg_uptls_new(&conf, why));
    assert_non_null(strstr(why, path));
}

static int make_papers(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    ca = tls_make(&(struct tls_paper){.cn = "authority", .is_ca = true}, NULL);
    stranger = tls_make(
        &(struct tls_paper){.cn = "somebody", .is_ca = true, .san = "DNS:cache.example"}, NULL);
    server =
        tls_make(&(struct tls_paper){.cn = "server", .san = "DNS:cache.example,IP:10.0.0.1"}, &ca);
    expired = tls_make(
        &(struct tls_paper){
            .cn = "server", .san = "DNS:cache.example", .from_s = -7200, .until_s = -3600},
        &ca);
    client = tls_make(&(struct tls_paper){.cn = "headgate"}, &ca);
    return 0;
}

static int drop_papers(void **state)
{
    (void)state;
    struct tls_identity *all[] = {&ca, &stranger, &server, &expired, &client};
    for (size_t i = 0; i < HG_COUNT_OF(all); i++)
        tls_drop(all[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_a_request_and_its_reply),
        cmocka_unit_test(t_in_pieces_of_any_size),
        cmocka_unit_test(t_logs_in_as_without),
        cmocka_unit_test(t_what_was_read_with_the_handshake),
        cmocka_unit_test(t_what_no_event_tells_of),
        cmocka_unit_test(t_records_hold_whole_requests),
        cmocka_unit_test(t_closed_at_every_byte_of_the_handshake),
        cmocka_unit_test(t_garbage),
        cmocka_unit_test(t_time_is_up),
        cmocka_unit_test(t_lost_while_it_is_used),
        cmocka_unit_test(t_unsent_requests_move),
        cmocka_unit_test(t_who_is_not_trusted),
        cmocka_unit_test(t_who_is_trusted),
        cmocka_unit_test(t_who_wants_a_certificate),
        cmocka_unit_test(t_a_turn_makes_few_steps),
        cmocka_unit_test(t_new_files),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_papers, drop_papers);
}
