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

struct hg_directory *hg_directory_new(size_t buckets, size_t upstreams)
{
    struct hg_directory *directory = calloc(1, sizeof *directory);
    if (directory == NULL)
        return NULL;
    atomic_init(&directory->refs, 1);
    directory->buckets = calloc(buckets + 1, sizeof(struct hg_bucket *));
    directory->upstreams = calloc(upstreams + 1, sizeof(struct hg_upstream *));
    if (directory->buckets == NULL || directory->upstreams == NULL) {
        hg_directory_unref(directory);
        return NULL;
    }
    return directory;
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
    for (size_t i = 0; i < directory->upstream_count; i++)
        hg_upstream_unref(directory->upstreams[i]);
    if (directory->users_unref != NULL)
        directory->users_unref(directory->users);
    free(directory->buckets);
    free(directory->upstreams);
    free(directory->tables);
    free(directory->table_bytes);
    free(directory);
}

struct hg_bucket *hg_directory_bucket(const struct hg_directory *directory, struct hg_span name)
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
            return bucket;
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

struct hg_upstream *hg_directory_upstream(const struct hg_directory *directory, struct hg_span name)
{
    for (size_t i = 0; i < directory->upstream_count; i++)
        if (hg_span_is(name, directory->upstreams[i]->name))
            return directory->upstreams[i];
    return NULL;
}
