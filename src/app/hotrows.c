// hotrows - the rows of a tenant's epoch, from its sketches to what the views show
// SPDX-License-Identifier: BSD-3-Clause
#include "app/hotrows.h"

#include <string.h>

void hg_hotbuild_begin(struct hg_hotbuild *build)
{
    build->count = build->tops = build->listed = 0;
    build->key_bytes = 0;
}

static void add_row(struct hg_hotbuild *build, const struct hg_keythrottle *throttle,
                    enum hg_hot_type type, const struct hg_hotkey_entry *entry)
{
    if (build->count == HG_HOTROWS_MAX)
        return;
    const struct hg_hotkey_key *key = &entry->key;
    const struct hg_keythrottle_key *listed = hg_keythrottle_find(throttle, key);
    uint8_t *bytes = build->bytes + build->key_bytes;
    memcpy(bytes, key->at, key->len);
    build->hashes[build->count] = key->hash;
    build->rows[build->count++] = (struct hg_hotrow){
        .key = bytes,
        .len = key->len,
        .table_len = key->table_len,
        .type = (uint8_t)type,
        .freq = entry->count,
        .error = entry->error,
        .rejected = listed != NULL ? listed->refused_epoch : 0,
    };
    build->key_bytes += key->len;
}

void hg_hotbuild_add_top(struct hg_hotbuild *build, const struct hg_keythrottle *throttle,
                         enum hg_hot_type type, const struct hg_hotmerge *merged)
{
    unsigned used = merged != NULL ? hg_hotmerge_used(merged) : 0;
    for (unsigned i = 0; i < used && i < HG_HOT_TOP; i++) {
        struct hg_hotkey_entry entry;
        hg_hotmerge_entry(merged, i, &entry);
        add_row(build, throttle, type, &entry);
    }
}

static struct hg_hotkey_key row_key(const struct hg_hotbuild *build, unsigned i)
{
    const struct hg_hotrow *row = &build->rows[i];
    return (struct hg_hotkey_key){row->key, build->hashes[i], row->len, row->table_len};
}

static bool same_key(const struct hg_hotkey_key *a, const struct hg_hotkey_key *b)
{
    return a->hash == b->hash && a->len == b->len && a->table_len == b->table_len &&
           memcmp(a->at, b->at, a->len) == 0;
}

static bool has_row(const struct hg_hotbuild *build, unsigned tops, const struct hg_hotkey_key *key)
{
    for (unsigned i = 0; i < tops; i++) {
        struct hg_hotkey_key other = row_key(build, i);
        if (same_key(&other, key))
            return true;
    }
    return false;
}

void hg_hotbuild_add_listed(struct hg_hotbuild *build, const struct hg_keythrottle *throttle,
                            const struct hg_hotmerge *merged)
{
    build->tops = build->count;
    for (unsigned i = 0; i < throttle->count; i++) {
        struct hg_hotkey_entry entry = {.key = throttle->keys[i].key};
        if (has_row(build, build->tops, &entry.key))
            continue;
        struct hg_hotkey_entry found;
        if (merged != NULL && hg_hotmerge_find(merged, &entry.key, &found)) {
            entry.count = found.count;
            entry.error = found.error;
        }
        add_row(build, throttle, HG_HOT_ALL, &entry);
    }
    build->listed = build->count;
}

void hg_hotbuild_set_percents(struct hg_hotbuild *build, const struct hg_keythrottle *throttle)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < build->count; i++) {
        struct hg_hotkey_key key = row_key(build, i);
        struct hg_hotrow *row = &build->rows[i];
        const struct hg_keythrottle_key *listed = hg_keythrottle_find(throttle, &key);
        row->percent = listed != NULL ? listed->percent : 0;
        bool only_listed = i >= build->tops && i < build->listed;
        if (only_listed && listed == NULL && row->rejected == 0)
            continue;
        build->rows[kept++] = *row;
    }
    build->count = kept;
}

struct hg_hotrecord *hg_hotbuild_record(const struct hg_hotbuild *build, struct hg_hotmem *mem)
{
    size_t rows_bytes = build->count * sizeof(struct hg_hotrow);
    size_t bytes = sizeof(struct hg_hotrecord) + rows_bytes + build->key_bytes;
    struct hg_hotrecord *record = hg_hotmem_take(mem, bytes);
    if (record == NULL)
        return NULL;
    record->epoch = record->end_wall_s = 0;
    record->bytes = bytes;
    record->count = build->count;
    memcpy(record->rows, build->rows, rows_bytes);
    uint8_t *keys = (uint8_t *)&record->rows[build->count];
    memcpy(keys, build->bytes, build->key_bytes);
    for (unsigned i = 0; i < build->count; i++)
        record->rows[i].key = keys + (build->rows[i].key - build->bytes);
    return record;
}
