// t_blob - counted blocks of bytes, and objects of one size
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/blob.h"
#include "base/prng.h"
#include "base/slab.h"

static void test_sizes(void **state)
{
    struct hg_blobs pool;
    (void)state;
    hg_blobs_init(&pool);
    for (size_t bytes = 0; bytes < 200000; bytes = bytes * 5 / 4 + 1) {
        struct hg_blob *blob = hg_blob_borrow(&pool, bytes);
        assert_non_null(blob);
        assert_true(blob->cap >= bytes);
        if (bytes > 256)
            assert_true(blob->cap < 2 * bytes);
        assert_int_equal(blob->len, 0);
        assert_int_equal(blob->refs, 1);
        assert_int_equal(pool.live_bytes, blob->cap);
        memset(blob->data, 1, blob->cap);
        hg_blob_unref(blob);
        assert_int_equal(pool.live_bytes, 0);
    }
    static const size_t edges[] = {256, 512, 1024, 16384, 65536};
    for (unsigned i = 0; i < HG_COUNT_OF(edges); i++) {
        struct hg_blob *blob = hg_blob_borrow(&pool, edges[i]);
        assert_int_equal(blob->cap, edges[i]);
        hg_blob_unref(blob);
    }
    assert_null(hg_blob_borrow(&pool, SIZE_MAX));
    hg_blobs_fini(&pool);
}

static void test_references(void **state)
{
    struct hg_blobs pool;
    (void)state;
    hg_blobs_init(&pool);
    struct hg_blob *blob = hg_blob_borrow(&pool, 1000);
    assert_ptr_equal(hg_blob_ref(blob), blob);
    hg_blob_unref(blob);
    assert_int_equal(pool.live_bytes, 1024);
    strcpy((char *)blob->data, "still there");
    hg_blob_unref(blob);
    hg_blob_unref(NULL);
    assert_int_equal(pool.live_bytes, 0);
    /* It is used again. */
    assert_ptr_equal(hg_blob_borrow(&pool, 600), blob);
    assert_int_equal(blob->refs, 1);
    hg_blob_unref(blob);
    hg_blobs_fini(&pool);
}

/* A moment of many leaves no more behind than a list may keep. */
static void test_keeps_little(void **state)
{
    struct hg_blobs pool;
    struct hg_blob *blobs[100];
    (void)state;
    hg_blobs_init(&pool);
    for (unsigned i = 0; i < 100; i++)
        blobs[i] = hg_blob_borrow(&pool, 65536);
    assert_int_equal(pool.live_bytes, 100 * 65536);
    for (unsigned i = 0; i < 100; i++)
        hg_blob_unref(blobs[i]);
    size_t kept = 0;
    for (unsigned c = 0; c < HG_BLOB_CLASSES; c++)
        kept += pool.kept[c];
    assert_int_equal(kept, HG_BLOB_KEEP_BYTES);
    hg_blobs_fini(&pool);
    /* What is too large for any list is kept in none. */
    hg_blobs_init(&pool);
    hg_blob_unref(hg_blob_borrow(&pool, 65537));
    for (unsigned c = 0; c < HG_BLOB_CLASSES; c++)
        assert_int_equal(pool.kept[c], 0);
    hg_blobs_fini(&pool);
}

static void test_slab(void **state)
{
    struct hg_slab slab;
    struct hg_prng dice = {3};
    unsigned char *objects[500] = {NULL};
    (void)state;
    hg_slab_init(&slab, 40, 16);
    assert_int_equal(slab.object_bytes, 48);
    size_t out = 0;
    for (unsigned n = 0; n < 20000; n++) {
        unsigned i = (unsigned)hg_prng_below(&dice, 500);
        if (objects[i] == NULL) {
            objects[i] = hg_slab_borrow(&slab);
            assert_non_null(objects[i]);
            assert_int_equal((uintptr_t)objects[i] % 16, 0);
            memset(objects[i], (int)(i & 255), 40);
            out++;
        } else {
            for (unsigned b = 0; b < 40; b++)
                assert_int_equal(objects[i][b], i & 255);
            hg_slab_give_back(&slab, objects[i]);
            objects[i] = NULL;
            out--;
        }
        assert_int_equal(slab.borrowed, out);
    }
    /* The last one given back is the first one taken: it is warm. */
    void *one = hg_slab_borrow(&slab);
    hg_slab_give_back(&slab, one);
    assert_ptr_equal(hg_slab_borrow(&slab), one);
    hg_slab_fini(&slab);
}

/* Nobody's until it is adopted; then like any other. */
static void test_loose(void **state)
{
    struct hg_blobs pool;
    (void)state;
    hg_blobs_init(&pool);
    for (size_t bytes = 0; bytes < 300000; bytes = bytes * 3 + 1) {
        struct hg_blob *blob = hg_blob_new_loose(bytes);
        assert_non_null(blob);
        assert_int_equal(blob->cap, bytes);
        assert_int_equal(blob->len, 0);
        memset(blob->data, 1, bytes);
        hg_blob_adopt(&pool, blob);
        assert_int_equal(pool.live_bytes, bytes);
        assert_ptr_equal(hg_blob_ref(blob), blob);
        hg_blob_unref(blob);
        hg_blob_unref(blob);
        assert_int_equal(pool.live_bytes, 0);
    }
    hg_blob_free_loose(hg_blob_new_loose(10));
    hg_blob_free_loose(NULL);
    assert_null(hg_blob_new_loose(SIZE_MAX));
    hg_blobs_fini(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),        cmocka_unit_test(test_references),
        cmocka_unit_test(test_keeps_little), cmocka_unit_test(test_loose),
        cmocka_unit_test(test_slab),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
