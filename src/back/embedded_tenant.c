// embedded_tenant - whose key spaces live in the embedded store: names, ids, flushes, deletions
// SPDX-License-Identifier: BSD-3-Clause
#include "back/embedded_tenant.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"

#define LAST_ID (HG_EMBEDDED_TENANT_CHUNK * HG_EMBEDDED_TENANT_CHUNKS - 1)

struct id_bytes {
    uint8_t at[4];
};

static struct hg_span id_span(struct id_bytes *bytes, uint32_t id)
{
    hg_put_u32(bytes->at, id);
    return hg_span(bytes->at, sizeof bytes->at);
}

/* The place of an id in the table, made if need be; NULL when memory is out or ids are. */
static struct hg_embedded_tenant *place_for(struct hg_embedded_tenants *tenants, uint32_t id)
{
    if (id == 0 || id > LAST_ID)
        return NULL;
    uint32_t chunk = id / HG_EMBEDDED_TENANT_CHUNK;
    if (atomic_load_explicit(&tenants->chunks[chunk], memory_order_relaxed) == NULL) {
        struct hg_embedded_tenant *made = calloc(HG_EMBEDDED_TENANT_CHUNK, sizeof *made);
        if (made == NULL)
            return NULL;
        for (uint32_t i = 0; i < HG_EMBEDDED_TENANT_CHUNK; i++)
            made[i].id = chunk * HG_EMBEDDED_TENANT_CHUNK + i;
        atomic_store_explicit(&tenants->chunks[chunk], made, memory_order_release);
    }
    return hg_embedded_tenant_at(tenants, id);
}

static void set_life(struct hg_embedded_tenant *tenant, enum hg_embedded_life life)
{
    atomic_store_explicit(&tenant->life, life, memory_order_release);
}

/* One note of the file into the table. False when it makes no sense. */
static bool load_note(struct hg_embedded_tenants *tenants, uint8_t kind, struct hg_span rest,
                      MDB_val value)
{
    const uint8_t *at = value.mv_data;
    if (kind == 'N' && value.mv_size == 4) {
        atomic_store_explicit(&tenants->next_id, hg_get_u32(at), memory_order_relaxed);
        return true;
    }
    if (kind == 'T' && value.mv_size == 4) {
        struct hg_embedded_tenant *tenant = place_for(tenants, hg_get_u32(at));
        if (tenant == NULL || tenant->name != NULL)
            return false;
        tenant->name = strndup((const char *)rest.at, rest.len);
        set_life(tenant, HG_EMBEDDED_LIFE_ALIVE);
        return tenant->name != NULL;
    }
    if (kind == 'L' && rest.len == 4 && value.mv_size == 16) {
        struct hg_embedded_tenant *tenant = place_for(tenants, hg_get_u32(rest.at));
        if (tenant == NULL)
            return false;
        tenant->flush = (struct hg_item_flush){hg_get_u64(at), hg_get_u64(at + 8)};
        atomic_store_explicit(&tenant->seen_flush_cas, tenant->flush.cas, memory_order_relaxed);
        atomic_store_explicit(&tenant->seen_flush_at_s, tenant->flush.at_s, memory_order_relaxed);
        return true;
    }
    if (kind == 'D' && rest.len == 4) {
        struct hg_embedded_tenant *tenant = place_for(tenants, hg_get_u32(rest.at));
        if (tenant == NULL)
            return false;
        tenant->sweep = true;
        set_life(tenant, HG_EMBEDDED_LIFE_DYING);
        atomic_fetch_add_explicit(&tenants->dying, 1, memory_order_relaxed);
        return true;
    }
    return kind == 'F' || kind == 'C';
}

static int load_notes(struct hg_embedded_tenants *tenants)
{
    MDB_txn *txn;
    MDB_cursor *cursor;
    uint8_t zero[4] = {0};
    MDB_val key = {sizeof zero, zero}, value;
    int rc = mdb_txn_begin(tenants->db->env, NULL, MDB_RDONLY, &txn);
    if (rc != 0)
        return rc;
    rc = mdb_cursor_open(txn, tenants->db->dbi, &cursor);
    if (rc == 0) {
        bool sound = true;
        rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
        while (rc == 0 && sound && key.mv_size >= HG_EMBEDDED_KEY_HEAD &&
               memcmp(key.mv_data, zero, sizeof zero) == 0) {
            const uint8_t *at = key.mv_data;
            sound = load_note(tenants, at[4], hg_span(at + 5, key.mv_size - 5), value);
            rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
        }
        if (rc == MDB_NOTFOUND)
            rc = 0;
        if (!sound)
            rc = MDB_CORRUPTED;
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
    return rc;
}

int hg_embedded_tenants_init(struct hg_embedded_tenants *tenants, struct hg_embedded_db *db,
                             char *error, size_t error_bytes)
{
    memset(tenants, 0, sizeof *tenants);
    tenants->db = db;
    atomic_store_explicit(&tenants->next_id, 1, memory_order_relaxed);
    if (pthread_mutex_init(&tenants->lock, NULL) != 0) {
        snprintf(error, error_bytes, "out of memory");
        return -ENOMEM;
    }
    int rc = load_notes(tenants);
    if (rc == 0)
        return 0;
    snprintf(error, error_bytes, "cannot read the tenants of '%s': %s", db->path, mdb_strerror(rc));
    hg_embedded_tenants_fini(tenants);
    return rc > 0 ? -rc : -EINVAL;
}

void hg_embedded_tenants_fini(struct hg_embedded_tenants *tenants)
{
    for (uint32_t c = 0; c < HG_EMBEDDED_TENANT_CHUNKS; c++) {
        struct hg_embedded_tenant *chunk =
            atomic_load_explicit(&tenants->chunks[c], memory_order_relaxed);
        for (uint32_t i = 0; chunk != NULL && i < HG_EMBEDDED_TENANT_CHUNK; i++)
            free(chunk[i].name);
        free(chunk);
    }
    pthread_mutex_destroy(&tenants->lock);
}

static int write_failed(struct hg_embedded_tenants *tenants, int rc)
{
    hg_log_error("store=%s msg=\"cannot note a tenant: %s\"", tenants->db->path, mdb_strerror(rc));
    return rc > 0 ? -rc : rc == MDB_MAP_FULL ? -ENOSPC : -EIO;
}

/* Inside `txn`: finds the name or gives it the next id. */
static int find_or_make(struct hg_embedded_tenants *tenants, MDB_txn *txn, struct hg_span name,
                        uint32_t *ret_id, bool *ret_made)
{
    MDB_val note;
    int rc = hg_embedded_note_get(tenants->db, txn, 'T', name, &note);
    if (rc == 0) {
        *ret_id = hg_get_u32(note.mv_data);
        *ret_made = false;
        return 0;
    }
    if (rc != MDB_NOTFOUND)
        return rc;
    uint32_t id = atomic_load_explicit(&tenants->next_id, memory_order_relaxed);
    struct hg_embedded_tenant *tenant = place_for(tenants, id);
    if (tenant == NULL)
        return id > LAST_ID ? ENOSPC : ENOMEM;
    struct id_bytes bytes;
    rc = hg_embedded_note_put(tenants->db, txn, 'T', name, id_span(&bytes, id));
    if (rc == 0)
        rc = hg_embedded_note_put(tenants->db, txn, 'N', HG_SPAN_NONE, id_span(&bytes, id + 1));
    *ret_id = id;
    *ret_made = true;
    return rc;
}

static int id_locked(struct hg_embedded_tenants *tenants, struct hg_span name, uint32_t *ret_id)
{
    MDB_txn *txn;
    bool made = false;
    int rc = mdb_txn_begin(tenants->db->env, NULL, 0, &txn);
    if (rc != 0)
        return rc;
    rc = find_or_make(tenants, txn, name, ret_id, &made);
    if (rc != 0 || !made) {
        mdb_txn_abort(txn);
        return rc;
    }
    char *copy = strndup((const char *)name.at, name.len);
    if (copy == NULL) {
        mdb_txn_abort(txn);
        return ENOMEM;
    }
    rc = mdb_txn_commit(txn);
    if (rc != 0) {
        free(copy);
        return rc;
    }
    struct hg_embedded_tenant *tenant = hg_embedded_tenant_at(tenants, *ret_id);
    tenant->name = copy;
    set_life(tenant, HG_EMBEDDED_LIFE_ALIVE);
    atomic_store_explicit(&tenants->next_id, *ret_id + 1, memory_order_release);
    return 0;
}

int hg_embedded_tenants_id(struct hg_embedded_tenants *tenants, const char *name, uint32_t *ret_id)
{
    struct hg_span text = hg_span_str(name);
    if (text.len == 0 || text.len > HG_EMBEDDED_TENANT_NAME_MAX)
        return -EINVAL;
    uint32_t id = 0;
    pthread_mutex_lock(&tenants->lock);
    int rc = id_locked(tenants, text, &id);
    pthread_mutex_unlock(&tenants->lock);
    if (rc != 0)
        return write_failed(tenants, rc);
    *ret_id = id;
    return 0;
}

static int delete_locked(struct hg_embedded_tenants *tenants, struct hg_embedded_tenant *tenant)
{
    MDB_txn *txn;
    struct id_bytes bytes;
    int rc = mdb_txn_begin(tenants->db->env, NULL, 0, &txn);
    if (rc != 0)
        return rc;
    rc = hg_embedded_note_del(tenants->db, txn, 'T', hg_span_str(tenant->name));
    if (rc == 0)
        rc = hg_embedded_note_put(tenants->db, txn, 'D', id_span(&bytes, tenant->id), HG_SPAN_NONE);
    if (rc != 0) {
        mdb_txn_abort(txn);
        return rc;
    }
    /* While no other write transaction can run: the next one refuses writes to this tenant. */
    set_life(tenant, HG_EMBEDDED_LIFE_DYING);
    atomic_fetch_add_explicit(&tenants->dying, 1, memory_order_release);
    rc = mdb_txn_commit(txn);
    if (rc != 0) {
        set_life(tenant, HG_EMBEDDED_LIFE_ALIVE);
        atomic_fetch_sub_explicit(&tenants->dying, 1, memory_order_relaxed);
        return rc;
    }
    free(tenant->name);
    tenant->name = NULL;
    return 0;
}

int hg_embedded_tenants_delete(struct hg_embedded_tenants *tenants, uint32_t id)
{
    pthread_mutex_lock(&tenants->lock);
    struct hg_embedded_tenant *tenant = hg_embedded_tenant_alive(tenants, id);
    int rc = tenant == NULL ? ENOENT : delete_locked(tenants, tenant);
    pthread_mutex_unlock(&tenants->lock);
    if (tenant == NULL)
        return -ENOENT;
    return rc == 0 ? 0 : write_failed(tenants, rc);
}

void hg_embedded_tenants_each(struct hg_embedded_tenants *tenants,
                              void (*fn)(void *arg, const char *name, uint32_t id), void *arg)
{
    pthread_mutex_lock(&tenants->lock);
    uint32_t next = atomic_load_explicit(&tenants->next_id, memory_order_relaxed);
    for (uint32_t id = 1; id < next; id++) {
        struct hg_embedded_tenant *tenant = hg_embedded_tenant_alive(tenants, id);
        if (tenant != NULL)
            fn(arg, tenant->name, id);
    }
    pthread_mutex_unlock(&tenants->lock);
}

int hg_embedded_tenant_set_flush(struct hg_embedded_tenants *tenants, MDB_txn *txn,
                                 struct hg_embedded_tenant *tenant, struct hg_item_flush flush)
{
    uint8_t value[16];
    struct id_bytes bytes;
    hg_put_u64(value, flush.cas);
    hg_put_u64(value + 8, flush.at_s);
    int rc = hg_embedded_note_put(tenants->db, txn, 'L', id_span(&bytes, tenant->id),
                                  hg_span(value, sizeof value));
    if (rc == 0)
        tenant->flush = flush;
    return rc;
}

int hg_embedded_tenant_forget(struct hg_embedded_tenants *tenants, MDB_txn *txn,
                              const struct hg_embedded_tenant *tenant)
{
    struct id_bytes bytes;
    struct hg_span id = id_span(&bytes, tenant->id);
    int rc = hg_embedded_note_del(tenants->db, txn, 'L', id);
    return rc != 0 ? rc : hg_embedded_note_del(tenants->db, txn, 'D', id);
}

void hg_embedded_tenant_gone(struct hg_embedded_tenants *tenants, struct hg_embedded_tenant *tenant)
{
    set_life(tenant, HG_EMBEDDED_LIFE_NONE);
    atomic_fetch_sub_explicit(&tenants->dying, 1, memory_order_relaxed);
}
