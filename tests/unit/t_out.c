// t_out - what a socket has still to send: pieces, references, views, in order and complete
// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/prng.h"
#include "io/out.h"

struct bench {
    struct hg_blobs blobs;
    struct hg_out_pool pool;
    struct hg_out out;
    int fds[2]; /* ours, theirs */
    uint8_t *want, *got;
    size_t wanted, received;
};

#define ROOM (64u << 20)

static void open_bench(struct bench *b)
{
    int small = 8192;
    memset(b, 0, sizeof *b);
    hg_blobs_init(&b->blobs);
    hg_out_pool_init(&b->pool, &b->blobs);
    hg_out_init(&b->out, &b->pool);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, b->fds), 0);
    setsockopt(b->fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    b->want = malloc(ROOM);
    b->got = malloc(ROOM);
}

static void close_bench(struct bench *b)
{
    hg_out_fini(&b->out);
    assert_int_equal(b->out.bytes, 0);
    assert_int_equal(b->out.held_bytes, 0);
    assert_int_equal(b->out.views, 0);
    assert_int_equal(b->blobs.live_bytes, 0);
    hg_out_pool_fini(&b->pool);
    hg_blobs_fini(&b->blobs);
    close(b->fds[0]);
    close(b->fds[1]);
    free(b->want);
    free(b->got);
}

static void receive(struct bench *b, size_t most)
{
    while (most > 0) {
        ssize_t n = recv(b->fds[1], b->got + b->received, most, 0);
        if (n <= 0)
            return;
        b->received += (size_t)n;
        most -= (size_t)n;
    }
}

/* Everything leaves, and is what was put in. */
static void flush_all(struct bench *b)
{
    int rc;
    while ((rc = hg_out_flush(&b->out, b->fds[0])) == 1)
        receive(b, SIZE_MAX);
    assert_int_equal(rc, 0);
    receive(b, SIZE_MAX);
    assert_true(hg_out_empty(&b->out));
    assert_null(b->out.first);
    assert_int_equal(b->out.held_bytes, 0);
    assert_int_equal(b->received, b->wanted);
    assert_memory_equal(b->got, b->want, b->wanted);
}

static struct hg_span some(struct bench *b, struct hg_prng *dice, size_t len)
{
    uint8_t *at = b->want + b->wanted;
    assert_true(b->wanted + len <= ROOM);
    for (size_t i = 0; i < len; i++)
        at[i] = (uint8_t)hg_prng_next(dice);
    b->wanted += len;
    return hg_span(at, len);
}

static struct hg_blob *blob_of(struct bench *b, struct hg_span bytes, struct hg_span *ret_within)
{
    struct hg_blob *blob = hg_blob_borrow(&b->blobs, bytes.len + 10);
    memcpy(blob->data + 10, bytes.at, bytes.len);
    blob->len = bytes.len + 10;
    *ret_within = hg_span(blob->data + 10, bytes.len);
    return blob;
}

static void test_small_pieces_share_chunks(void **state)
{
    struct bench b;
    struct hg_prng dice = {1};
    (void)state;
    open_bench(&b);
    hg_out_put(&b.out, some(&b, &dice, 24));
    assert_int_equal(b.out.held_bytes, 1024); /* one reply costs little */
    for (unsigned i = 0; i < 200; i++)
        hg_out_put(&b.out, some(&b, &dice, 24));
    assert_int_equal(b.out.bytes, 201 * 24);
    assert_int_equal(b.out.held_bytes, 1024 + 16384);
    flush_all(&b);
    close_bench(&b);
}

static void test_reserve_and_commit(void **state)
{
    struct bench b;
    struct hg_prng dice = {2};
    (void)state;
    open_bench(&b);
    for (unsigned i = 0; i < 3000; i++) {
        size_t len = hg_prng_below(&dice, i % 50 == 0 ? HG_CHUNK_BYTES : 300);
        uint8_t *room =
            hg_out_reserve(&b.out, len + hg_prng_below(&dice, HG_CHUNK_BYTES - len + 1));
        if (len > 0)
            memcpy(room, some(&b, &dice, len).at, len);
        hg_out_commit(&b.out, len);
    }
    flush_all(&b);
    close_bench(&b);
}

static void test_large_pieces_by_copy(void **state)
{
    struct bench b;
    struct hg_prng dice = {3};
    static const size_t sizes[] = {1, 1023, 1024, 1025, 16319, 16320, 16321, 100000, 0, 3};
    (void)state;
    open_bench(&b);
    for (unsigned i = 0; i < HG_COUNT_OF(sizes); i++)
        hg_out_put(&b.out, some(&b, &dice, sizes[i]));
    flush_all(&b);
    close_bench(&b);
}

/* From HG_OUT_SHARE_MIN on by reference; the reference is its own. */
static void test_references(void **state)
{
    struct bench b;
    struct hg_prng dice = {4};
    struct hg_span within;
    (void)state;
    open_bench(&b);
    struct hg_blob *small = blob_of(&b, some(&b, &dice, HG_OUT_SHARE_MIN - 1), &within);
    hg_out_put_blob(&b.out, small, within);
    assert_int_equal(small->refs, 1);
    struct hg_blob *large = blob_of(&b, some(&b, &dice, HG_OUT_SHARE_MIN), &within);
    hg_out_put_blob(&b.out, large, within);
    assert_int_equal(large->refs, 2);
    /* What follows a reference is the head of a reply, mostly: it costs no whole chunk. */
    size_t held = b.out.held_bytes;
    hg_out_put(&b.out, some(&b, &dice, 28));
    assert_int_equal(b.out.held_bytes, held + 1024);
    hg_blob_unref(small);
    hg_blob_unref(large);
    flush_all(&b);
    close_bench(&b);
}

static void test_views_are_kept(void **state)
{
    struct bench b;
    struct hg_prng dice = {5};
    (void)state;
    open_bench(&b);
    uint8_t *theirs = malloc(3 * 50000);
    for (unsigned round = 0; round < 30; round++) {
        for (unsigned i = 0; i < 3; i++) {
            struct hg_span bytes = some(&b, &dice, i == 1 ? 100 : 50000);
            memcpy(theirs + i * 50000, bytes.at, bytes.len);
            hg_out_put_view(&b.out, hg_span(theirs + i * 50000, bytes.len));
        }
        assert_true(b.out.views >= 2);
        if (hg_out_flush(&b.out, b.fds[0]) == 0)
            assert_int_equal(b.out.views, 0);
        hg_out_keep(&b.out);
        assert_int_equal(b.out.views, 0);
        memset(theirs, 0xdd, 3 * 50000); /* the turn is over */
        receive(&b, 30000);
    }
    free(theirs);
    flush_all(&b);
    close_bench(&b);
}

/* More segments than one writev takes. */
static void test_many_segments(void **state)
{
    struct bench b;
    struct hg_prng dice = {6};
    (void)state;
    open_bench(&b);
    for (unsigned i = 0; i < 5 * HG_OUT_IOV; i++) {
        struct hg_span within;
        struct hg_blob *blob = blob_of(&b, some(&b, &dice, HG_OUT_SHARE_MIN + i), &within);
        hg_out_put_blob(&b.out, blob, within);
        hg_blob_unref(blob);
    }
    flush_all(&b);
    close_bench(&b);
}

static void check_sums(const struct hg_out *out)
{
    size_t bytes = 0, held = 0, views = 0;
    for (const struct hg_out_segment *s = out->first; s != NULL; s = s->next) {
        bytes += s->len;
        held += s->blob != NULL ? s->blob->cap : 0;
        views += s->blob == NULL;
        assert_true(s->next != NULL || s == out->last);
    }
    assert_int_equal(bytes, out->bytes);
    assert_int_equal(held, out->held_bytes);
    assert_int_equal(views, out->views);
}

static void test_anything_in_any_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct bench b;
        struct hg_prng dice = {seed};
        open_bench(&b);
        for (unsigned i = 0; i < 400; i++) {
            size_t len = hg_prng_below(&dice, 4) == 0 ? hg_prng_below(&dice, 40000)
                                                      : hg_prng_below(&dice, 300);
            struct hg_span within, bytes = some(&b, &dice, len);
            struct hg_blob *blob;
            switch (hg_prng_below(&dice, 3)) {
            case 0:
                hg_out_put(&b.out, bytes);
                break;
            case 1:
                blob = blob_of(&b, bytes, &within);
                hg_out_put_blob(&b.out, blob, within);
                hg_blob_unref(blob);
                break;
            default:
                hg_out_put_view(&b.out, bytes);
            }
            if (hg_prng_below(&dice, 10) == 0) {
                int rc = hg_out_flush(&b.out, b.fds[0]);
                assert_in_range(rc, 0, 1);
                receive(&b, hg_prng_below(&dice, 50000));
            }
            if (hg_prng_below(&dice, 10) == 0)
                hg_out_keep(&b.out);
            check_sums(&b.out);
        }
        flush_all(&b);
        close_bench(&b);
    }
}

static void test_dropped(void **state)
{
    struct bench b;
    struct hg_prng dice = {7};
    (void)state;
    open_bench(&b);
    hg_out_put(&b.out, some(&b, &dice, 100));
    hg_out_put_view(&b.out, some(&b, &dice, 10000));
    struct hg_span within;
    struct hg_blob *blob = blob_of(&b, some(&b, &dice, 20000), &within);
    hg_out_put_blob(&b.out, blob, within);
    hg_blob_unref(blob);
    close_bench(&b);
}

static void test_errors(void **state)
{
    struct bench b;
    struct hg_prng dice = {8};
    (void)state;
    open_bench(&b);
    hg_out_put(&b.out, some(&b, &dice, 100));
    shutdown(b.fds[1], SHUT_RD);
    assert_int_equal(hg_out_flush(&b.out, b.fds[0]), -EPIPE);
    close_bench(&b);
    /* What is incomplete is not sent. */
    open_bench(&b);
    hg_out_put(&b.out, some(&b, &dice, 100));
    b.out.broken = true;
    hg_out_put(&b.out, hg_span("lost", 4));
    assert_int_equal(b.out.bytes, 100);
    assert_int_equal(hg_out_flush(&b.out, b.fds[0]), -ENOMEM);
    receive(&b, SIZE_MAX);
    assert_int_equal(b.received, 0);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_pieces_share_chunks),
        cmocka_unit_test(test_reserve_and_commit),
        cmocka_unit_test(test_large_pieces_by_copy),
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_views_are_kept),
        cmocka_unit_test(test_many_segments),
        cmocka_unit_test(test_anything_in_any_order),
        cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
