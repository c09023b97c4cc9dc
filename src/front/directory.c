// directory - what workers know of the process: settings, tenants, stores, as one snapshot
// SPDX-License-Identifier: BSD-3-Clause
#include "front/directory.h"

#include <stdlib.h>
#include <string.h>

void hg_upstream_unref(struct hg_upstream *upstream)
{
    if (atomic_fetch_sub_explicit(&upstream->refs, 1, memory_order_acq_rel) == 1)
        upstream->retire(upstream);
}

void hg_generation_unref(struct hg_generation *generation)
{
    if (generation == NULL ||
        atomic_fetch_sub_explicit(&generation->refs, 1, memory_order_acq_rel) > 1)
        return;
    struct hg_upstream *upstream = generation->upstream;
    generation->retire(generation);
    hg_upstream_unref(upstream);
}

struct hg_directory *hg_directory_new(size_t buckets, size_t upstreams)
{
    struct hg_directory *directory = calloc(1, sizeof *directory);
    if (directory == NULL)
        return NULL;
    atomic_init(&directory->refs, 1);
    directory->buckets = calloc(buckets + 1, sizeof(struct hg_bucket *));
    directory->upstreams = calloc(upstreams + 1, sizeof(struct hg_upstream *));
    directory->generations = calloc(upstreams + 1, sizeof(struct hg_generation *));
    directory->identities = calloc(buckets + 1, sizeof(uint32_t));
    if (directory->buckets == NULL || directory->upstreams == NULL ||
        directory->generations == NULL || directory->identities == NULL) {
        hg_directory_unref(directory);
        return NULL;
    }
    return directory;
}

void hg_directory_list(struct hg_directory *directory, struct hg_generation *generation)
{
    size_t at = directory->upstream_count++;
    directory->upstreams[at] = hg_upstream_ref(generation->upstream);
    directory->generations[at] = hg_generation_ref(generation);
    atomic_fetch_add_explicit(&generation->listed, 1, memory_order_relaxed);
}

struct hg_directory *hg_directory_ref(struct hg_directory *directory)
{
    atomic_fetch_add_explicit(&directory->refs, 1, memory_order_relaxed);
    return directory;
}

void hg_directory_unref(struct hg_directory *directory)
{
    if (directory == NULL ||
        atomic_fetch_sub_explicit(&directory->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < directory->bucket_count; i++)
        hg_bucket_unref(directory->buckets[i]);
    for (size_t i = 0; i < directory->upstream_count; i++) {
        atomic_fetch_sub_explicit(&directory->generations[i]->listed, 1, memory_order_acq_rel);
        hg_generation_unref(directory->generations[i]);
        hg_upstream_unref(directory->upstreams[i]);
    }
    if (directory->users_unref != NULL)
        directory->users_unref(directory->users);
    free(directory->buckets);
    free(directory->upstreams);
    free(directory->generations);
    free(directory->identities);
    free(directory->tables);
    free(directory->table_bytes);
    free(directory);
}

/* The place of the bucket of that name, or bucket_count. */
static size_t find_bucket(const struct hg_directory *directory, struct hg_span name)
{
    size_t low = 0, high = directory->bucket_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        struct hg_bucket *bucket = directory->buckets[mid];
        size_t common = name.len < bucket->name_len ? name.len : bucket->name_len;
        int order = common > 0 ? memcmp(name.at, bucket->name, common) : 0;
        if (order == 0)
            order = (name.len > bucket->name_len) - (name.len < bucket->name_len);
        if (order == 0)
            return mid;
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return directory->bucket_count;
}

struct hg_bucket *hg_directory_bucket(const struct hg_directory *directory, struct hg_span name)
{
    return directory->buckets[find_bucket(directory, name)]; /* NULL behind the last */
}

uint32_t hg_directory_identity(const struct hg_directory *directory, const struct hg_bucket *bucket)
{
    size_t at = find_bucket(directory, hg_span(bucket->name, bucket->name_len));
    return directory->buckets[at] == bucket ? directory->identities[at] : 0;
}

struct hg_upstream *hg_directory_upstream(const struct hg_directory *directory, struct hg_span name)
{
    for (size_t i = 0; i < directory->upstream_count; i++)
        if (hg_span_is(name, directory->upstreams[i]->name))
            return directory->upstreams[i];
    return NULL;
}

struct hg_generation *hg_directory_generation(const struct hg_directory *directory,
                                              const struct hg_upstream *upstream)
{
    for (size_t i = 0; i < directory->upstream_count; i++)
        if (directory->upstreams[i] == upstream)
            return directory->generations[i];
    return NULL;
}
