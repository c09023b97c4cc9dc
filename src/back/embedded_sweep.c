// embedded_sweep - removes dead items from the embedded store in small steps
// SPDX-License-Identifier: BSD-3-Clause
#include "back/embedded_sweep.h"

#include <string.h>

#include "back/embedded_writer.h"
#include "base/log.h"

void hg_embedded_sweep_init(struct hg_embedded_sweep *sweep)
{
    memset(sweep, 0, sizeof *sweep);
    sweep->budget = HG_EMBEDDED_SWEEP_RECORDS;
}

static void begin_pass(struct hg_embedded_sweep *sweep, uint32_t tenant_id)
{
    sweep->passing = true;
    sweep->tenant_id = tenant_id;
    sweep->key_len = HG_EMBEDDED_KEY_HEAD;
    hg_put_u32(sweep->key, tenant_id == 0 ? 1 : tenant_id);
    sweep->key[4] = 0;
}

/* A tenant that has something to be removed, or NULL; clears its mark. */
static struct hg_embedded_tenant *next_tenant(struct hg_embedded_writer *writer)
{
    struct hg_embedded_tenants *tenants = writer->tenants;
    if (!writer->sweep.wanted && atomic_load_explicit(&tenants->dying, memory_order_acquire) == 0)
        return NULL;
    uint32_t next = atomic_load_explicit(&tenants->next_id, memory_order_acquire);
    for (uint32_t id = 1; id < next; id++) {
        struct hg_embedded_tenant *tenant = hg_embedded_tenant_at(tenants, id);
        if (tenant == NULL)
            continue;
        uint32_t life = atomic_load_explicit(&tenant->life, memory_order_acquire);
        if (life == HG_EMBEDDED_LIFE_DYING || (tenant->sweep && life != HG_EMBEDDED_LIFE_NONE)) {
            tenant->sweep = false;
            return tenant;
        }
    }
    writer->sweep.wanted = false;
    return NULL;
}

/* Begins a pass if one is due. */
static bool choose_pass(struct hg_embedded_writer *writer, uint64_t now_s)
{
    struct hg_embedded_tenant *tenant = next_tenant(writer);
    if (tenant != NULL) {
        begin_pass(&writer->sweep, tenant->id);
        return true;
    }
    if (now_s < writer->sweep.next_expiry_s)
        return false;
    /* The pass and all stores from now on will lower this again. */
    writer->sweep.next_expiry_s = UINT64_MAX;
    begin_pass(&writer->sweep, 0);
    return true;
}

bool hg_embedded_sweep_is_dead(struct hg_embedded_writer *writer, MDB_val key, MDB_val record)
{
    struct hg_item item;
    struct hg_embedded_tenant *tenant =
        hg_embedded_tenant_at(writer->tenants, hg_get_u32(key.mv_data));
    uint32_t life = tenant == NULL ? HG_EMBEDDED_LIFE_NONE
                                   : atomic_load_explicit(&tenant->life, memory_order_acquire);
    if (life == HG_EMBEDDED_LIFE_DYING)
        return true;
    if (life != HG_EMBEDDED_LIFE_ALIVE || !hg_embedded_record_decode(record, &item))
        return false;
    if (!hg_item_alive(&item, writer->now_s, tenant->flush))
        return true;
    hg_embedded_sweep_note(&writer->sweep, item.expiry_s);
    return false;
}

static bool in_pass(const struct hg_embedded_sweep *sweep, MDB_val key)
{
    return sweep->tenant_id == 0 || hg_get_u32(key.mv_data) == sweep->tenant_id;
}

/* Looks at `budget` records from the pass's key on. Leaves the next key in `ret_key`, or length 0
   when the pass is over. 0 or an error of LMDB. */
static int walk(struct hg_embedded_writer *writer, uint8_t ret_key[HG_EMBEDDED_KEY_BYTES],
                uint32_t *ret_key_len, uint32_t *ret_dead)
{
    struct hg_embedded_sweep *sweep = &writer->sweep;
    MDB_cursor *cursor;
    MDB_val key = {sweep->key_len, sweep->key}, record;
    int rc = mdb_cursor_open(writer->txn, writer->db->dbi, &cursor);
    if (rc != 0)
        return rc;
    *ret_dead = 0;
    *ret_key_len = 0;
    rc = mdb_cursor_get(cursor, &key, &record, MDB_SET_RANGE);
    for (uint32_t n = 0; rc == 0 && in_pass(sweep, key); n++) {
        if (n == sweep->budget) {
            memcpy(ret_key, key.mv_data, key.mv_size);
            *ret_key_len = (uint32_t)key.mv_size;
            break;
        }
        if (hg_embedded_sweep_is_dead(writer, key, record)) {
            rc = mdb_cursor_del(cursor, 0);
            ++*ret_dead;
        }
        if (rc == 0)
            rc = mdb_cursor_get(cursor, &key, &record, MDB_NEXT);
    }
    mdb_cursor_close(cursor);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

/* The tenant whose pass this is, if it is dying: with its last key it goes itself. */
static struct hg_embedded_tenant *dying_tenant(struct hg_embedded_writer *writer)
{
    struct hg_embedded_tenant *tenant =
        hg_embedded_tenant_at(writer->tenants, writer->sweep.tenant_id);
    bool dying = tenant != NULL && atomic_load_explicit(&tenant->life, memory_order_acquire) ==
                                       HG_EMBEDDED_LIFE_DYING;
    return dying ? tenant : NULL;
}

/* The step inside its transaction, which it ends. */
static int sweep_some(struct hg_embedded_writer *writer)
{
    struct hg_embedded_sweep *sweep = &writer->sweep;
    uint8_t key[HG_EMBEDDED_KEY_BYTES];
    uint32_t key_len = 0, dead = 0;
    struct hg_embedded_tenant *gone = NULL;
    int rc = walk(writer, key, &key_len, &dead);
    if (rc == 0 && key_len == 0 && (gone = dying_tenant(writer)) != NULL)
        rc = hg_embedded_tenant_forget(writer->tenants, writer->txn, gone);
    if (rc != 0 || (dead == 0 && gone == NULL && writer->changed == NULL))
        hg_embedded_writer_abort(writer);
    else
        rc = hg_embedded_writer_commit(writer);
    if (rc != 0)
        return rc;
    if (gone != NULL)
        hg_embedded_tenant_gone(writer->tenants, gone);
    sweep->passing = key_len > 0;
    sweep->key_len = key_len;
    memcpy(sweep->key, key, key_len);
    if (dead > 0)
        writer->tries_left_out = 0;
    hg_counter_add(&writer->counters->swept, dead);
    hg_counter_add(&writer->counters->sweep_steps, 1);
    return 0;
}

/* A cache whose quota is smaller than it was: some of what is too much goes, in its own
   transaction. */
static int shrink_some(struct hg_embedded_writer *writer)
{
    static const MDB_val none = {0, NULL};
    int rc = hg_embedded_writer_begin(writer, 0);
    if (rc != 0)
        return rc;
    writer->evict.left = HG_EMBEDDED_SWEEP_RECORDS;
    while (rc == 0 && hg_embedded_evict_is_over(writer))
        rc = hg_embedded_evict_some(writer, none, false);
    if (rc == MDB_NOTFOUND)
        rc = 0;
    if (rc != 0) {
        hg_embedded_writer_abort(writer);
        return rc;
    }
    bool some = writer->evict.evicted + writer->evict.evicted_expired > 0;
    writer->sweep.over = some && hg_embedded_evict_is_over(writer);
    if (some)
        return hg_embedded_writer_commit(writer);
    hg_embedded_writer_abort(writer);
    return 0;
}

uint64_t hg_embedded_sweep_step(struct hg_embedded_writer *writer)
{
    struct hg_embedded_sweep *sweep = &writer->sweep;
    uint64_t now_s = writer->wall_s(writer->wall_arg);
    bool flush_due = writer->next_flush_s != 0 && now_s >= writer->next_flush_s;
    bool wanted = atomic_load_explicit(&writer->evict.wanted, memory_order_relaxed);
    if (wanted != writer->evict.was_wanted)
        sweep->over = writer->evict.was_wanted = wanted;
    bool idle = !sweep->passing && !flush_due && !choose_pass(writer, now_s);
    if (idle && !sweep->over)
        return HG_EMBEDDED_SWEEP_IDLE_US;
    int rc = idle ? shrink_some(writer) : hg_embedded_writer_begin(writer, 0);
    if (rc == 0 && !idle && !sweep->passing)
        rc = hg_embedded_writer_commit(writer);
    else if (rc == 0 && !idle)
        rc = sweep_some(writer);
    if (rc != 0) {
        hg_log_warn("store=%s msg=\"the sweeper cannot write: %s\"", writer->db->path,
                    mdb_strerror(rc));
        sweep->budget = sweep->budget > 8 ? sweep->budget / 8 : 1;
        return HG_EMBEDDED_SWEEP_IDLE_US;
    }
    if (sweep->budget < HG_EMBEDDED_SWEEP_RECORDS)
        sweep->budget *= 2;
    return HG_EMBEDDED_SWEEP_STEP_US;
}
