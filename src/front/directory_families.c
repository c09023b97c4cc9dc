// directory_families - attributes of the families of HBase tables, by bucket and table
// SPDX-License-Identifier: BSD-3-Clause
//
// One block holds everything: the families, sorted, and behind them the bytes of their names. The
// tables point to their stretch of it.
#include <stdlib.h>
#include <string.h>

#include "front/directory.h"

struct hg_directory_table {
    const struct hg_bucket *bucket;
    struct hg_span name;
    struct hg_families families;
};

static int compare_spans(struct hg_span a, struct hg_span b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common > 0 ? memcmp(a.at, b.at, common) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* Any order of buckets will do, as long as it is one. */
static int compare_tables(const struct hg_bucket *a_bucket, struct hg_span a,
                          const struct hg_bucket *b_bucket, struct hg_span b)
{
    uintptr_t left = (uintptr_t)a_bucket, right = (uintptr_t)b_bucket;
    return left != right ? (left > right) - (left < right) : compare_spans(a, b);
}

static int compare_families(const void *a, const void *b)
{
    const struct hg_directory_family *left = a, *right = b;
    int order = compare_tables(left->bucket, left->table, right->bucket, right->table);
    return order != 0 ? order : compare_spans(left->family.name, right->family.name);
}

static struct hg_span put(uint8_t **at, struct hg_span bytes)
{
    struct hg_span copy = hg_span(*at, bytes.len);
    if (bytes.len > 0)
        memcpy(*at, bytes.at, bytes.len);
    *at += bytes.len;
    return copy;
}

/* Into the directory, whose tables have room for each family. */
static void fill(struct hg_directory *directory, const struct hg_directory_family *sorted,
                 size_t count)
{
    struct hg_family *families = directory->table_bytes;
    uint8_t *bytes = (uint8_t *)(families + count);
    struct hg_directory_table *table = NULL;
    for (size_t i = 0; i < count; i++) {
        families[i] = sorted[i].family;
        families[i].name = put(&bytes, sorted[i].family.name);
        if (table == NULL ||
            compare_tables(table->bucket, table->name, sorted[i].bucket, sorted[i].table) != 0) {
            table = &directory->tables[directory->table_count++];
            table->bucket = sorted[i].bucket;
            table->name = put(&bytes, sorted[i].table);
            table->families.list = &families[i];
        }
        table->families.count++;
    }
}

bool hg_directory_set_families(struct hg_directory *directory,
                               const struct hg_directory_family *list, size_t count)
{
    if (count == 0)
        return true;
    size_t bytes = count * sizeof(struct hg_family);
    for (size_t i = 0; i < count; i++)
        bytes += list[i].table.len + list[i].family.name.len;
    struct hg_directory_family *sorted = calloc(count, sizeof *sorted);
    directory->tables = calloc(count, sizeof *directory->tables);
    directory->table_bytes = calloc(1, bytes);
    bool done = sorted != NULL && directory->tables != NULL && directory->table_bytes != NULL;
    if (done) {
        memcpy(sorted, list, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, compare_families);
        fill(directory, sorted, count);
    }
    free(sorted);
    return done;
}

struct hg_families hg_directory_families(const struct hg_directory *directory,
                                         const struct hg_bucket *bucket, struct hg_span table)
{
    size_t low = 0, high = directory->table_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct hg_directory_table *found = &directory->tables[mid];
        int order = compare_tables(bucket, table, found->bucket, found->name);
        if (order == 0)
            return found->families;
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return (struct hg_families){NULL, 0};
}
