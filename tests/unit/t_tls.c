// t_tls - TLS over a socket pair: handshakes that succeed and fail, bytes that arrive whole
// SPDX-License-Identifier: BSD-3-Clause
#include "tlspair.h"
#include "patience.h"

static void a_handshake_and_a_word_each_way(void **state)
{
    (void)state;
    struct pair p;
    char got[100];
    open_pair(&p, server_conf(), client_conf(), "a.example");
    assert_shaken(&p);
    assert_string_equal(hg_tls_version(p.tls[SERVER]), "TLSv1.3");
    assert_non_null(strstr(hg_tls_cipher(p.tls[SERVER]), "TLS_"));
    assert_int_equal(hg_tls_recv(p.tls[SERVER], got, sizeof got), -EAGAIN);
    hg_out_put(&p.out[CLIENT], hg_span("ping", 4));
    assert_int_equal(hg_tls_flush(p.tls[CLIENT], &p.out[CLIENT]), 0);
    assert_int_equal(hg_tls_recv(p.tls[SERVER], got, sizeof got), 4);
    assert_memory_equal(got, "ping", 4);
    hg_out_put(&p.out[SERVER], hg_span("pong!", 5));
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), 0);
    assert_int_equal(hg_tls_recv(p.tls[CLIENT], got, sizeof got), 5);
    assert_memory_equal(got, "pong!", 5);
    assert_int_equal(hg_tls_recv(p.tls[CLIENT], got, sizeof got), -EAGAIN);
    close_pair(&p);
}

static void what_one_read_leaves_is_pending(void **state)
{
    (void)state;
    struct pair p;
    char got[100];
    open_pair(&p, server_conf(), client_conf(), "a.example");
    assert_shaken(&p);
    assert_int_equal(hg_tls_pending(p.tls[SERVER]), 0);
    hg_out_put(&p.out[CLIENT], hg_span("0123456789", 10));
    assert_int_equal(hg_tls_flush(p.tls[CLIENT], &p.out[CLIENT]), 0);
    hg_out_put(&p.out[CLIENT], hg_span("abc", 3));
    assert_int_equal(hg_tls_flush(p.tls[CLIENT], &p.out[CLIENT]), 0);
    assert_int_equal(hg_tls_recv(p.tls[SERVER], got, 4), 4);
    assert_int_equal(hg_tls_pending(p.tls[SERVER]), 6);
    assert_int_equal(hg_tls_recv(p.tls[SERVER], got, 6), 6);
    /* The second record came with the first and waits, undecrypted. */
    assert_int_equal(hg_tls_pending(p.tls[SERVER]), 1);
    assert_int_equal(hg_tls_recv(p.tls[SERVER], got, sizeof got), 3);
    assert_int_equal(hg_tls_pending(p.tls[SERVER]), 0);
    close_pair(&p);
}

static void small_replies_become_one_record(void **state)
{
    (void)state;
    struct pair p;
    char got[20000];
    open_pair(&p, server_conf(), client_conf(), "a.example");
    assert_shaken(&p);
    assert_int_equal(hg_tls_recv(p.tls[CLIENT], got, sizeof got), -EAGAIN); /* the ticket */
    for (int i = 0; i < 100; i++)
        hg_out_put(&p.out[SERVER], hg_span("0123456789012345678901234567890123456789", 40));
    assert_non_null(p.out[SERVER].first->next);
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), 0);
    /* Read from the socket: 4000 bytes and one head, type and tag. */
    ssize_t n = recv(p.fds[CLIENT], got, sizeof got, MSG_PEEK);
    assert_int_equal(n, 4000 + 5 + 1 + 16);
    assert_int_equal(hg_tls_recv(p.tls[CLIENT], got, sizeof got), 4000);
    close_pair(&p);
}

#define STREAM_BYTES (3u << 20)

/* Puts a random piece of the stream into the queue: copied, by reference, or as a view. */
static size_t put_piece(struct pair *p, int end, const uint8_t *all, size_t at, struct hg_prng *r)
{
    static const uint32_t most[] = {3, 100, 5000, 60000};
    size_t n = 1 + hg_prng_below(r, most[hg_prng_below(r, 4)]);
    if (n > STREAM_BYTES - at)
        n = STREAM_BYTES - at;
    struct hg_span span = hg_span(all + at, n);
    uint32_t kind = hg_prng_below(r, 3);
    if (kind == 0) {
        hg_out_put(&p->out[end], span);
    } else if (kind == 1) {
        hg_out_put_view(&p->out[end], span);
        if (hg_prng_below(r, 2) == 0)
            hg_out_keep(&p->out[end]);
    } else {
        struct hg_blob *blob = hg_blob_borrow(&p->blobs, n);
        assert_non_null(blob);
        memcpy(blob->data, span.at, n);
        hg_out_put_blob(&p->out[end], blob, hg_span(blob->data, n));
        hg_blob_unref(blob);
    }
    return n;
}

static void large_streams_both_ways(enum hg_tls_version version, uint64_t seed)
{
    struct pair p;
    struct hg_prng r;
    uint8_t *all[2], *got[2];
    size_t put[2] = {0, 0}, received[2] = {0, 0};
    struct hg_tls_conf of_client = *client_conf();
    of_client.min_version = version;
    r.state = seed;
    open_pair(&p, server_conf(), &of_client, "a.example");
    assert_shaken(&p);
    for (int i = 0; i < 2; i++) {
        all[i] = malloc(STREAM_BYTES);
        got[i] = malloc(STREAM_BYTES);
        for (size_t k = 0; k < STREAM_BYTES; k++)
            all[i][k] = (uint8_t)hg_prng_next(&r);
    }
    for (int idle = 0; received[0] < STREAM_BYTES || received[1] < STREAM_BYTES; idle++) {
        assert_true(idle < 10000000);
        int end = (int)hg_prng_below(&r, 2), peer = 1 - end;
        if (put[end] < STREAM_BYTES && p.out[end].bytes < 200000)
            put[end] += put_piece(&p, end, all[end], put[end], &r);
        if (hg_prng_below(&r, 2) == 0)
            assert_true(hg_tls_flush(p.tls[end], &p.out[end]) >= 0);
        size_t room = 1 + hg_prng_below(&r, 40000);
        if (room > STREAM_BYTES - received[peer])
            room = STREAM_BYTES - received[peer];
        if (room == 0 || hg_prng_below(&r, 3) == 0)
            continue;
        ssize_t n = hg_tls_recv(p.tls[peer], got[peer] + received[peer], room);
        assert_true(n > 0 || n == -EAGAIN);
        if (n > 0)
            received[peer] += (size_t)n;
    }
    for (int i = 0; i < 2; i++) {
        assert_memory_equal(all[i], got[1 - i], STREAM_BYTES);
        free(all[i]);
        free(got[1 - i]);
    }
    close_pair(&p);
}

static void streams_arrive_whole(void **state)
{
    (void)state;
    large_streams_both_ways(HG_TLS_1_2, 1);
    large_streams_both_ways(HG_TLS_1_3, 2);
}

/* A record half sent, then more in the queue, then the rest: nothing twice, nothing lost. */
static void a_full_socket_is_retried_with_more_behind(void **state)
{
    (void)state;
    struct pair p;
    static uint8_t all[400000], got[400000];
    size_t received = 0;
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (uint8_t)(i * 31 + (i >> 8));
    open_pair(&p, server_conf(), client_conf(), "a.example");
    assert_shaken(&p);
    size_t put = 0;
    int result = 0;
    while (result == 0 && put < 200000) {
        hg_out_put(&p.out[SERVER], hg_span(all + put, 1000));
        put += 1000;
        result = hg_tls_flush(p.tls[SERVER], &p.out[SERVER]);
    }
    assert_int_equal(result, 1);
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), 1);
    hg_out_put_view(&p.out[SERVER], hg_span(all + put, sizeof all - put));
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), 1);
    hg_out_keep(&p.out[SERVER]);
    PATIENCE_WHILE(received < sizeof got)
    {
        ssize_t n = hg_tls_recv(p.tls[CLIENT], got + received, sizeof got - received);
        if (n == -EAGAIN) {
            assert_true(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]) >= 0);
            continue;
        }
        assert_true(n > 0);
        received += (size_t)n;
    }
    assert_memory_equal(all, got, sizeof all);
    close_pair(&p);
}

static void the_end_is_told_with_and_without_farewell(void **state)
{
    (void)state;
    for (int polite = 0; polite < 2; polite++) {
        struct pair p;
        char got[10];
        open_pair(&p, server_conf(), client_conf(), "a.example");
        assert_shaken(&p);
        hg_out_put(&p.out[CLIENT], hg_span("last", 4));
        assert_int_equal(hg_tls_flush(p.tls[CLIENT], &p.out[CLIENT]), 0);
        if (polite)
            hg_tls_bye(p.tls[CLIENT]);
        assert_int_equal(shutdown(p.fds[CLIENT], SHUT_WR), 0);
        assert_int_equal(hg_tls_recv(p.tls[SERVER], got, sizeof got), 4);
        assert_int_equal(hg_tls_recv(p.tls[SERVER], got, sizeof got), 0);
        assert_int_equal(hg_tls_recv(p.tls[SERVER], got, sizeof got), 0);
        /* What the other side still has to say arrives. */
        hg_out_put(&p.out[SERVER], hg_span("fine", 4));
        assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), 0);
        assert_int_equal(hg_tls_recv(p.tls[CLIENT], got, sizeof got), 4);
        close_pair(&p);
    }
}

static void a_peer_that_is_gone_is_an_error_and_no_signal(void **state)
{
    (void)state;
    struct pair p;
    open_pair(&p, server_conf(), client_conf(), "a.example");
    assert_shaken(&p);
    close(p.fds[CLIENT]);
    p.fds[CLIENT] = -1;
    hg_out_put(&p.out[SERVER], hg_span("hello", 5));
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), -EPIPE);
    assert_non_null(strstr(hg_tls_why(p.tls[SERVER]), "roken pipe"));
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), -EPIPE);
    close_pair(&p);
}

static void no_handshake_but_something_else(void **state)
{
    (void)state;
    static const char strange[][32] = {"GET / HTTP/1.1\r\n\r\n", "get a_key_of_some_bytes\r\n",
                                       "\x80\x0a\0\0\0\0\0\0", "\x16\x03\x01\x7f\xff garbage"};
    for (size_t i = 0; i < HG_COUNT_OF(strange); i++) {
        struct pair p;
        open_pair(&p, server_conf(), NULL, NULL);
        assert_int_equal(hg_tls_handshake(p.tls[SERVER]), HG_TLS_WANT_READ);
        assert_true(send(p.fds[CLIENT], strange[i], 24, 0) > 0);
        assert_int_equal(hg_tls_handshake(p.tls[SERVER]), HG_TLS_FAILED);
        assert_true(strlen(hg_tls_why(p.tls[SERVER])) > 5);
        close_pair(&p);
    }
    struct pair p;
    open_pair(&p, server_conf(), NULL, NULL);
    assert_int_equal(shutdown(p.fds[CLIENT], SHUT_WR), 0);
    assert_int_equal(hg_tls_handshake(p.tls[SERVER]), HG_TLS_FAILED);
    assert_string_equal(hg_tls_why(p.tls[SERVER]), "the peer closed the connection");
    close_pair(&p);
}

/* Any byte of a record that is not what was sent ends the connection. */
static void a_changed_byte_is_noticed(void **state)
{
    (void)state;
    struct pair p;
    char raw[200], got[200];
    open_pair(&p, server_conf(), client_conf(), "a.example");
    assert_shaken(&p);
    int fds[2];
    assert_int_equal(hg_tls_recv(p.tls[CLIENT], got, sizeof got), -EAGAIN);
    hg_out_put(&p.out[SERVER], hg_span("secret", 6));
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), 0);
    ssize_t n = recv(p.fds[CLIENT], raw, sizeof raw, 0);
    assert_true(n > 10);
    raw[n - 1] ^= 1;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    assert_int_equal(dup2(fds[0], p.fds[CLIENT]), p.fds[CLIENT]);
    assert_int_equal(send(fds[1], raw, (size_t)n, 0), n);
    assert_int_equal(hg_tls_recv(p.tls[CLIENT], got, sizeof got), -EPROTO);
    assert_int_equal(hg_tls_recv(p.tls[CLIENT], got, sizeof got), -EPROTO);
    close(fds[0]);
    close(fds[1]);
    close_pair(&p);
}

/* A client of the plain library, so that it can do what ours never does. */
static SSL *strange_client(struct pair *p, SSL_CTX *ctx)
{
    SSL *ssl = SSL_new(ctx);
    SSL_set_fd(ssl, p->fds[CLIENT]);
    for (int turn = 0; turn < 50 && SSL_connect(ssl) != 1; turn++)
        if (p->step[SERVER] != HG_TLS_DONE)
            p->step[SERVER] = hg_tls_handshake(p->tls[SERVER]);
    PATIENCE_WHILE(p->step[SERVER] == HG_TLS_WANT_READ)
    p->step[SERVER] = hg_tls_handshake(p->tls[SERVER]);
    assert_int_equal(p->step[SERVER], HG_TLS_DONE);
    return ssl;
}

static void new_keys_again_and_again(void **state)
{
    (void)state;
    struct pair p;
    char got[10];
    open_pair(&p, server_conf(), NULL, NULL);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = strange_client(&p, ctx);
    /* 352 KB of them, all there at once. */
    int large = 1 << 20;
    setsockopt(p.fds[CLIENT], SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
    BIO *socket_bio = BIO_new_socket(p.fds[CLIENT], BIO_NOCLOSE), *memory = BIO_new(BIO_s_mem());
    SSL_set0_wbio(ssl, memory);
    for (unsigned sent = 0; sent < 16000; sent++) {
        assert_int_equal(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        assert_int_equal(SSL_do_handshake(ssl), 1);
    }
    assert_int_equal(SSL_write(ssl, "data", 4), 4);
    char *all;
    long bytes = BIO_get_mem_data(memory, &all), at = 0;
    ssize_t n = -EAGAIN;
    unsigned again = 0;
    PATIENCE_WHILE(n == -EAGAIN || n == -EINTR)
    {
        ssize_t went = 0;
        while (at < bytes && (went = send(p.fds[CLIENT], all + at, (size_t)(bytes - at), 0)) > 0)
            at += went;
        n = hg_tls_recv(p.tls[SERVER], got, sizeof got);
        again += n == -EINTR;
    }
    SSL_set0_wbio(ssl, socket_bio);
    assert_int_equal(n, 4);
    assert_memory_equal(got, "data", 4);
    assert_true(again > 0);
    assert_int_equal(hg_tls_recv(p.tls[SERVER], got, sizeof got), -EAGAIN);
    hg_out_put(&p.out[SERVER], hg_span("fine", 4));
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), 0);
    assert_int_equal(SSL_read(ssl, got, sizeof got), 4);
    /* Asked for new keys itself, the server answers while it reads. */
    assert_int_equal(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    assert_int_equal(SSL_write(ssl, "more", 4), 4);
    assert_int_equal(hg_tls_recv(p.tls[SERVER], got, sizeof got), 4);
    hg_out_put(&p.out[SERVER], hg_span("good", 4));
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), 0);
    assert_int_equal(SSL_read(ssl, got, sizeof got), 4);
    assert_memory_equal(got, "good", 4);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    close_pair(&p);
}

static void no_second_handshake(void **state)
{
    (void)state;
    struct pair p;
    char got[10];
    open_pair(&p, server_conf(), NULL, NULL);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
    SSL *ssl = strange_client(&p, ctx);
    assert_int_equal(SSL_renegotiate(ssl), 1);
    SSL_do_handshake(ssl);
    assert_int_equal(hg_tls_recv(p.tls[SERVER], got, sizeof got), -EAGAIN);
    assert_int_equal(SSL_do_handshake(ssl), -1);
    assert_int_equal(ERR_GET_REASON(ERR_peek_last_error()), SSL_R_NO_RENEGOTIATION);
    ERR_clear_error();
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    close_pair(&p);
}

/* A reload: the old context goes on for who has it. */
static void a_connection_outlives_its_context(void **state)
{
    (void)state;
    struct pair p;
    char got[10];
    open_pair(&p, server_conf(), client_conf(), "a.example");
    hg_tls_ctx_unref(p.ctx[SERVER]);
    p.ctx[SERVER] = NULL;
    assert_shaken(&p);
    hg_out_put(&p.out[SERVER], hg_span("still", 5));
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), 0);
    assert_int_equal(hg_tls_recv(p.tls[CLIENT], got, sizeof got), 5);
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handshake_and_a_word_each_way),
        cmocka_unit_test(what_one_read_leaves_is_pending),
        cmocka_unit_test(small_replies_become_one_record),
        cmocka_unit_test(streams_arrive_whole),
        cmocka_unit_test(a_full_socket_is_retried_with_more_behind),
        cmocka_unit_test(the_end_is_told_with_and_without_farewell),
        cmocka_unit_test(a_peer_that_is_gone_is_an_error_and_no_signal),
        cmocka_unit_test(no_handshake_but_something_else),
        cmocka_unit_test(a_changed_byte_is_noticed),
        cmocka_unit_test(new_keys_again_and_again),
        cmocka_unit_test(no_second_handshake),
        cmocka_unit_test(a_connection_outlives_its_context),
    };
    return cmocka_run_group_tests(tests, make_papers, drop_papers);
}
