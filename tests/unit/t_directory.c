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

static unsigned buckets_gone, upstreams_gone, users_gone, generations_gone;

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

static void on_generation_gone(struct hg_generation *generation)
{
    generations_gone++;
    free(generation);
}

static struct hg_generation *new_generation(const char *name)
{
    struct hg_generation *generation = calloc(1, sizeof *generation);
    assert_non_null(generation);
    atomic_init(&generation->refs, 1);
    generation->number = 1;
    generation->upstream = new_upstream(name);
    generation->retire = on_generation_gone;
    return generation;
}

static struct hg_directory *new_directory(const char *const *names, size_t count)
{
    struct hg_directory *directory = hg_directory_new(count, 1);
    assert_non_null(directory);
    directory->users = &users_gone;
    directory->users_unref = on_users_gone;
    struct hg_generation *generation = new_generation("store");
    hg_directory_list(directory, generation);
    hg_generation_unref(generation);
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
    buckets_gone = upstreams_gone = users_gone = generations_gone = 0;
    struct hg_directory *directory = new_directory(names, 2);
    struct hg_bucket *kept = hg_bucket_ref(directory->buckets[1]);
    assert_ptr_equal(hg_directory_ref(directory), directory);
    hg_directory_unref(directory);
    assert_int_equal(buckets_gone, 0);
    hg_directory_unref(directory);
    assert_int_equal(buckets_gone, 1);
    assert_int_equal(users_gone, 1);
    assert_int_equal(generations_gone, 1);
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

static bool has_family(const struct hg_directory *directory, const struct hg_bucket *bucket,
                       const char *table, const char *name, uint64_t ttl_ms, uint32_t versions)
{
    struct hg_families families = hg_directory_families(directory, bucket, hg_span_str(table));
    for (size_t i = 0; i < families.count; i++)
        if (hg_span_is(families.list[i].name, name))
            return families.list[i].ttl_ms == ttl_ms && families.list[i].max_versions == versions;
    return false;
}

static void test_families(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    (void)state;
    struct hg_directory *directory = new_directory(names, 3);
    const struct hg_bucket *a = directory->buckets[0], *b = directory->buckets[1];
    assert_int_equal(hg_directory_families(directory, a, HG_SPAN_LIT("t")).count, 0);
    assert_true(hg_directory_set_families(directory, NULL, 0));
    char table[] = "t", name[] = "z"; /* gone afterwards */
    struct hg_directory_family list[] = {
        {b, hg_span_str(table), {hg_span_str(name), 60000, 3}},
        {a, HG_SPAN_LIT("u"), {HG_SPAN_LIT("d"), 0, 7}},
        {a, HG_SPAN_LIT("t"), {HG_SPAN_LIT("e"), 2000, 1}},
        {b, hg_span_str(table), {HG_SPAN_LIT("d"), 0, 2}},
        {a, HG_SPAN_LIT("t"), {HG_SPAN_LIT("d"), 1000, 1}},
        {a, HG_SPAN_LIT("tt"), {HG_SPAN_LIT("d"), 5, 5}},
    };
    assert_true(hg_directory_set_families(directory, list, HG_COUNT_OF(list)));
    memset(list, 0, sizeof list);
    table[0] = name[0] = '!';
    struct hg_families found = hg_directory_families(directory, a, HG_SPAN_LIT("t"));
    assert_int_equal(found.count, 2);
    assert_true(hg_span_is(found.list[0].name, "d") && hg_span_is(found.list[1].name, "e"));
    assert_true(has_family(directory, a, "t", "d", 1000, 1));
    assert_true(has_family(directory, a, "t", "e", 2000, 1));
    assert_true(has_family(directory, a, "u", "d", 0, 7));
    assert_true(has_family(directory, a, "tt", "d", 5, 5));
    assert_true(has_family(directory, b, "t", "d", 0, 2));
    assert_true(has_family(directory, b, "t", "z", 60000, 3));
    assert_int_equal(hg_directory_families(directory, b, HG_SPAN_LIT("u")).count, 0);
    assert_int_equal(hg_directory_families(directory, a, HG_SPAN_LIT("")).count, 0);
    assert_int_equal(hg_directory_families(directory, a, HG_SPAN_LIT("ttt")).count, 0);
    assert_int_equal(
        hg_directory_families(directory, directory->buckets[2], HG_SPAN_LIT("t")).count, 0);
    hg_directory_unref(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finding),
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_bucket),
        cmocka_unit_test(test_families),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
