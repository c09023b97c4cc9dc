// rowshow - what rows and results look like, as tables and as JSON
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/rowshow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hg_rowshow_init(struct hg_ctl_table *table, bool with_row, bool of_cells)
{
    static const char *const columns[] = {"ROW", "COLUMN", "TYPE", "VALUE"};
    static const char *const cells[] = {"ROW", "COLUMN", "TIMESTAMP", "VALUE"};
    const char *const *headings = of_cells ? cells : columns;
    hg_ctl_table_init(table, with_row ? 4 : 3, headings + !with_row);
}

static void add_bytes(struct hg_ctl_table *table, ProtobufCBinaryData bytes)
{
    hg_ctl_table_add_bytes(table, (const char *)bytes.data, bytes.len);
}

static void add_value(struct hg_ctl_table *table, const hg_pb_value *value)
{
    const char *kind = hg_rowtext_kind(value);
    hg_ctl_table_add(table, kind);
    if (strcmp(kind, "bytes") == 0) {
        add_bytes(table, value->bytes);
    } else if (strcmp(kind, "null") == 0) {
        hg_ctl_table_add(table, "-");
    } else {
        char *number = hg_rowtext_number(value);
        hg_ctl_table_add(table, number);
        free(number);
    }
}

void hg_rowshow_entity(struct hg_ctl_table *table, const ProtobufCBinaryData *row,
                       const hg_pb_entity *entity)
{
    static const hg_pb_entity none = HEADGATE__TABLE__V1__ENTITY__INIT;
    entity = entity != NULL ? entity : &none;
    for (size_t i = 0; i < entity->n_columns; i++) {
        if (row != NULL)
            add_bytes(table, *row);
        add_bytes(table, entity->columns[i]->name);
        add_value(table, entity->columns[i]->value);
    }
    if (entity->n_columns > 0 || row == NULL)
        return;
    add_bytes(table, *row); /* a row without columns is a row too */
    for (int i = 0; i < 3; i++)
        hg_ctl_table_add(table, "-");
}

static void add_cell_name(struct hg_ctl_table *table, const hg_pb_cell *cell)
{
    size_t len = cell->family.len + 1 + cell->qualifier.len;
    char *name = malloc(len);
    if (name == NULL)
        abort();
    if (cell->family.len > 0)
        memcpy(name, cell->family.data, cell->family.len);
    name[cell->family.len] = ':';
    if (cell->qualifier.len > 0)
        memcpy(name + cell->family.len + 1, cell->qualifier.data, cell->qualifier.len);
    hg_ctl_table_add_bytes(table, name, len);
    free(name);
}

void hg_rowshow_cells(struct hg_ctl_table *table, const ProtobufCBinaryData *row,
                      hg_pb_cell **cells, size_t count)
{
    char text[32];
    for (size_t i = 0; i < count; i++) {
        if (row != NULL)
            add_bytes(table, *row);
        add_cell_name(table, cells[i]);
        snprintf(text, sizeof text, "%" PRId64, cells[i]->timestamp);
        hg_ctl_table_add(table, text);
        add_bytes(table, cells[i]->value);
    }
}

void hg_rowshow_print(struct hg_ctl_table *table)
{
    if (table->count > table->headings)
        hg_ctl_table_print(table, stdout);
    hg_ctl_table_fini(table);
}

json_t *hg_rowshow_entity_json(const hg_pb_entity *entity)
{
    if (entity == NULL)
        return json_null();
    json_t *object = json_object();
    for (size_t i = 0; i < entity->n_columns; i++) {
        json_t *name = hg_rowtext_json_bytes(entity->columns[i]->name);
        json_object_set_new(object, json_string_value(name),
                            hg_rowtext_json(entity->columns[i]->value));
        json_decref(name);
    }
    return object;
}

json_t *hg_rowshow_cells_json(hg_pb_cell **cells, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *cell = json_object();
        json_object_set_new(cell, "family", hg_rowtext_json_bytes(cells[i]->family));
        json_object_set_new(cell, "qualifier", hg_rowtext_json_bytes(cells[i]->qualifier));
        json_object_set_new(cell, "timestamp", json_integer(cells[i]->timestamp));
        json_object_set_new(cell, "value", hg_rowtext_json_bytes(cells[i]->value));
        json_array_append_new(list, cell);
    }
    return list;
}
