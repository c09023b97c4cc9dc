// t_directory - snapshots of what workers know, and the records that they list
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "front/directory.h"

static unsigned buckets_gone, upstreams_gone, users_gone;

static void on_bucket_gone(struct hg_bucket *bucket, void *ctx)
{
    assert_ptr_equal(ctx, &buckets_gone);
    assert_true(bucket->name_len > 0);
    buckets_gone++;
}

static void on_upstream_gone(struct hg_upstream *upstream)
{
    upstreams_gone++;
    free(upstream);
}

static void on_users_gone(void *users)
{
    assert_ptr_equal(users, &users_gone);
    users_gone++;
}

static struct hg_upstream *new_upstream(const char *name)
{
    struct hg_upstream *upstream = calloc(1, sizeof *upstream);
    assert_non_null(upstream);
    strcpy(upstream->name, name);
    atomic_init(&upstream->refs, 1);
    upstream->retire = on_upstream_gone;
    return upstream;
}

static struct hg_directory *new_directory(const char *const *names, size_t count)
{
    struct hg_directory *directory = hg_directory_new(count, 1);
    assert_non_null(directory);
    directory->users = &users_gone;
    directory->users_unref = on_users_gone;
    directory->upstreams[directory->upstream_count++] = new_upstream("store");
    for (size_t i = 0; i < count; i++) {
        struct hg_bucket *bucket = hg_bucket_new(names[i], 3);
        assert_non_null(bucket);
        bucket->retire = on_bucket_gone;
        bucket->retire_ctx = &buckets_gone;
        bucket->upstream = hg_upstream_ref(directory->upstreams[0]);
        directory->buckets[directory->bucket_count++] = bucket;
    }
    return directory;
}

static void test_finding(void **state)
{
    static const char *const names[] = {"A", "a", "aa", "ab", "abc", "b", "ba", "\xff"};
    static const char *const others[] = {"", "B", "aaa", "abcd", "ac", "c", "\xfe", "\xff\xff"};
    (void)state;
    for (size_t count = 0; count <= HG_COUNT_OF(names); count++) {
        struct hg_directory *directory = new_directory(names, count);
        for (size_t i = 0; i < HG_COUNT_OF(names); i++) {
            struct hg_bucket *bucket = hg_directory_bucket(directory, hg_span_str(names[i]));
            if (i >= count) {
                assert_null(bucket);
                continue;
            }
            assert_non_null(bucket);
            assert_string_equal(bucket->name, names[i]);
        }
        for (size_t i = 0; i < HG_COUNT_OF(others); i++)
            assert_null(hg_directory_bucket(directory, hg_span_str(others[i])));
        assert_null(hg_directory_bucket(directory, hg_span("a\0b", 3)));
        assert_null(hg_directory_bucket(directory, HG_SPAN_NONE));
        assert_ptr_equal(hg_directory_upstream(directory, HG_SPAN_LIT("store")),
                         directory->upstreams[0]);
        assert_null(hg_directory_upstream(directory, HG_SPAN_LIT("stor")));
        hg_directory_unref(directory);
    }
}

/* Records outlive the directories that list them as long as somebody refers to them. */
static void test_references(void **state)
{
    static const char *const names[] = {"a", "b"};
    (void)state;
    buckets_gone = upstreams_gone = users_gone = 0;
    struct hg_directory *directory = new_directory(names, 2);
    struct hg_bucket *kept = hg_bucket_ref(directory->buckets[1]);
    assert_ptr_equal(hg_directory_ref(directory), directory);
    hg_directory_unref(directory);
    assert_int_equal(buckets_gone, 0);
    hg_directory_unref(directory);
    assert_int_equal(buckets_gone, 1);
    assert_int_equal(users_gone, 1);
    assert_int_equal(upstreams_gone, 0); /* the bucket lives there */
    hg_bucket_unref(kept);
    assert_int_equal(buckets_gone, 2);
    assert_int_equal(upstreams_gone, 1);
    hg_bucket_unref(NULL);
    hg_directory_unref(NULL);
}

static void test_bucket(void **state)
{
    char name[HG_BUCKET_NAME_MAX + 1];
    (void)state;
    memset(name, 'n', HG_BUCKET_NAME_MAX);
    name[HG_BUCKET_NAME_MAX] = '\0';
    struct hg_bucket *bucket = hg_bucket_new(name, 5);
    assert_string_equal(bucket->name, name);
    assert_int_equal(bucket->prefix_len, 0);
    assert_string_equal(bucket->prefix, "");
    for (unsigned w = 0; w < 5; w++) {
        /* Lanes of different workers are on different cache lines. */
        assert_int_equal((uintptr_t)&bucket->lanes[w] % HG_CACHE_LINE, 0);
        assert_int_equal((uintptr_t)&bucket->credit_lanes[w] % HG_CACHE_LINE, 0);
        assert_ptr_equal(bucket->lanes[w].bucket, bucket);
        assert_true(hg_list_empty(&bucket->lanes[w].held));
    }
    assert_true(hg_bucket_live(bucket));
    atomic_store(&bucket->state, HG_BUCKET_DISABLED);
    assert_false(hg_bucket_live(bucket));
    atomic_store(&bucket->state, HG_BUCKET_DELETED);
    assert_false(hg_bucket_live(bucket));
    atomic_store(&bucket->connections, 1000000);
    assert_false(hg_bucket_is_full(bucket)); /* no limit */
    atomic_store(&bucket->max_connections, 1000000);
    assert_true(hg_bucket_is_full(bucket));
    atomic_store(&bucket->connections, 999999);
    assert_false(hg_bucket_is_full(bucket));
    hg_bucket_unref(bucket);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finding),
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
