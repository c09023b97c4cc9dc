// table_pool - the states of table requests, kept for reuse
// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "front/table_in.h"

#define SPARE_MAX        64
#define SPARE_BYTES      16384 /* of an arena that is kept */
#define GUARDS_PER_BLOCK 8

static size_t limit_bytes(const struct hg_worker *worker)
{
    return 8 * (size_t)worker->directory->settings.max_value_bytes + 65536;
}

/* Empties the arena; a large first block is not worth keeping. */
static void recycle(struct hg_arena *arena)
{
    hg_arena_reset(arena);
    if (arena->used_bytes > SPARE_BYTES)
        hg_arena_fini(arena);
}

/* ---- tables ---- */

struct hg_table *hg_table_new(struct hg_worker *worker)
{
    struct hg_tables *tables = &worker->tables;
    struct hg_table *table;
    struct hg_list *spare = hg_list_first(&tables->spare_tables);
    if (spare != NULL) {
        hg_list_remove(spare);
        tables->spare_table_count--;
        table = HG_CONTAINER_OF(spare, struct hg_table, node);
    } else {
        table = malloc(sizeof *table);
        if (table == NULL)
            return NULL;
        hg_list_init(&table->node);
        hg_list_init(&table->slots);
        hg_arena_init(&table->arena, 0);
        hg_arena_init(&table->scratch, 0);
    }
    table->arena.limit_bytes = table->scratch.limit_bytes = limit_bytes(worker);
    table->worker = worker;
    table->request = NULL;
    table->exempt = table->is_found = table->pumping = table->in_front = false;
    table->read_units = table->write_units = 0;
    table->results = NULL;
    table->passes = NULL;
    table->next = table->under_way = table->in_line = table->result_bytes = 0;
    table->reader = NULL;
    table->cursor = NULL;
    table->store = NULL;
    tables->live++;
    return table;
}

static void free_table(struct hg_table *table)
{
    hg_arena_fini(&table->arena);
    hg_arena_fini(&table->scratch);
    free(table);
}

void hg_table_free(struct hg_table *table)
{
    struct hg_worker *worker = table->worker;
    struct hg_tables *tables = &worker->tables;
    struct hg_list *node;
    tables->live--;
    hg_list_remove(&table->node);
    while ((node = hg_list_first(&table->slots)) != NULL)
        hg_table_slot_free(HG_CONTAINER_OF(node, struct hg_table_slot, node));
    if (table->store != NULL)
        table->store->ops->cancel_range(table->store, &table->range);
    if (table->cursor != NULL)
        hg_cursors_end(&worker->front->cursors, table->cursor, worker->index);
    if (tables->spare_table_count >= SPARE_MAX) {
        free_table(table);
        return;
    }
    recycle(&table->arena);
    recycle(&table->scratch);
    hg_list_prepend(&tables->spare_tables, &table->node);
    tables->spare_table_count++;
}

void hg_table_cancel(struct hg_request *request)
{
    struct hg_table *table = request->table;
    request->table = NULL;
    if (table->passes != NULL)
        hg_table_undo_passes(table);
    HG_LIST_EACH(node, &table->slots)
    {
        struct hg_table_slot *slot = HG_CONTAINER_OF(node, struct hg_table_slot, node);
        if (slot->submitted)
            hg_rows_cancel(&slot->call);
    }
    hg_table_free(table);
}

/* ---- slots ---- */

struct hg_table_slot *hg_table_slot_new(struct hg_table *table)
{
    struct hg_tables *tables = &table->worker->tables;
    struct hg_table_slot *slot;
    struct hg_list *spare = hg_list_first(&tables->spare_slots);
    if (spare != NULL) {
        hg_list_remove(spare);
        tables->spare_slot_count--;
        slot = HG_CONTAINER_OF(spare, struct hg_table_slot, node);
    } else {
        slot = malloc(sizeof *slot);
        if (slot == NULL)
            return NULL;
        hg_list_init(&slot->node);
        hg_list_init(&slot->turn);
        hg_arena_init(&slot->arena, 0);
    }
    slot->arena.limit_bytes = limit_bytes(table->worker);
    slot->table = table;
    slot->submitted = slot->in_line = false;
    hg_gate_pass_init(&slot->pass, table->request, NULL);
    hg_list_append(&table->slots, &slot->node);
    return slot;
}

void hg_table_slot_free(struct hg_table_slot *slot)
{
    struct hg_tables *tables = &slot->table->worker->tables;
    hg_gate_end(&slot->pass, false);
    hg_list_remove(&slot->turn);
    hg_list_remove(&slot->node);
    if (tables->spare_slot_count >= SPARE_MAX) {
        hg_arena_fini(&slot->arena);
        free(slot);
        return;
    }
    recycle(&slot->arena);
    hg_list_prepend(&tables->spare_slots, &slot->node);
    tables->spare_slot_count++;
}

/* ---- the worker's part ---- */

int hg_tables_open(struct hg_worker *worker)
{
    struct hg_tables *tables = &worker->tables;
    hg_list_init(&tables->spare_tables);
    hg_list_init(&tables->spare_slots);
    hg_list_init(&tables->ranges);
    hg_list_init(&tables->items);
    hg_slab_init(&tables->guards, sizeof(struct hg_guard), GUARDS_PER_BLOCK);
    tables->rows = hg_rows_new(&worker->loop, &tables->row_counters);
    return tables->rows != NULL ? 0 : -ENOMEM;
}

void hg_tables_close(struct hg_worker *worker)
{
    struct hg_tables *tables = &worker->tables;
    struct hg_list *node;
    hg_rows_free(tables->rows);
    tables->rows = NULL;
    while ((node = hg_list_first(&tables->spare_tables)) != NULL) {
        hg_list_remove(node);
        free_table(HG_CONTAINER_OF(node, struct hg_table, node));
    }
    while ((node = hg_list_first(&tables->spare_slots)) != NULL) {
        struct hg_table_slot *slot = HG_CONTAINER_OF(node, struct hg_table_slot, node);
        hg_list_remove(node);
        hg_arena_fini(&slot->arena);
        free(slot);
    }
    hg_slab_fini(&tables->guards);
}

void hg_tables_tick(struct hg_worker *worker)
{
    struct hg_tables *tables = &worker->tables;
    hg_rows_expire(tables->rows, worker->loop.now_us);
    hg_counter_set(&worker->row_conflicts, hg_counter_get(&tables->row_counters.conflicts));
    hg_counter_set(&worker->row_conflicts_given_up, hg_counter_get(&tables->row_counters.given_up));
    hg_counter_set(&worker->row_waits, hg_counter_get(&tables->row_counters.waited));
    if (worker->index == 0)
        hg_cursors_sweep(&worker->front->cursors, worker->index, worker->loop.now_us);
}

void hg_tables_reset(struct hg_worker *worker)
{
    struct hg_rows_counters *counters = &worker->tables.row_counters;
    hg_counter_set(&counters->conflicts, 0);
    hg_counter_set(&counters->given_up, 0);
    hg_counter_set(&counters->waited, 0);
}

int64_t hg_table_now_ms(struct hg_worker *worker)
{
    struct hg_tables *tables = &worker->tables;
    if (tables->wall_ms == 0 || tables->wall_turn != worker->loop.turns) {
        tables->wall_turn = worker->loop.turns;
        tables->wall_ms = hg_wall_ms();
    }
    return tables->wall_ms;
}

struct hg_families hg_table_families(const struct hg_table *table)
{
    return hg_directory_families(table->worker->directory, table->request->lane->bucket,
                                 table->msg.table);
}
