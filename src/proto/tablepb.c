// tablepb - between the structs of proto/table.proto that the compiler made and our own
// SPDX-License-Identifier: BSD-3-Clause
#include "proto/tablepb.h"

struct source {
    struct hg_arena *arena;
    bool out; /* of memory */
};

static void *take(void *context, size_t bytes)
{
    struct source *source = context;
    void *taken = hg_arena_take(source->arena, bytes);
    if (taken == NULL)
        source->out = true;
    return taken;
}

static void give_back(void *context, void *taken)
{
    (void)context;
    (void)taken;
}

ProtobufCMessage *hg_tablepb_unpack(const ProtobufCMessageDescriptor *descriptor,
                                    struct hg_span bytes, struct hg_arena *arena, bool *ret_memory)
{
    struct source source = {.arena = arena};
    ProtobufCAllocator allocator = {.alloc = take, .free = give_back, .allocator_data = &source};
    ProtobufCMessage *message =
        protobuf_c_message_unpack(descriptor, &allocator, bytes.len, bytes.at);
    *ret_memory = source.out;
    return source.out ? NULL : message;
}

uint8_t *hg_tablepb_pack(const ProtobufCMessage *message, size_t head_bytes, struct hg_arena *arena,
                         size_t *ret_bytes)
{
    size_t bytes = head_bytes + protobuf_c_message_get_packed_size(message);
    uint8_t *at = hg_arena_take(arena, bytes);
    if (at == NULL)
        return NULL;
    protobuf_c_message_pack(message, at + head_bytes);
    *ret_bytes = bytes;
    return at;
}

static void fill_value(HG_PB(Value) * out, const struct hg_value *value)
{
    *out = (HG_PB(Value))HG_PB_INIT(VALUE);
    switch (value->kind) {
    case HG_VALUE_INTEGER:
        out->kind_case = HEADGATE__TABLE__V1__VALUE__KIND_INTEGER;
        out->integer = value->integer;
        return;
    case HG_VALUE_REAL:
        out->kind_case = HEADGATE__TABLE__V1__VALUE__KIND_REAL;
        out->real = value->real;
        return;
    case HG_VALUE_BYTES:
        out->kind_case = HEADGATE__TABLE__V1__VALUE__KIND_BYTES;
        out->bytes = hg_tablepb_bytes(value->bytes);
        return;
    default:
        return;
    }
}

bool hg_tablepb_columns(const struct hg_entity *entity, struct hg_arena *arena, size_t *ret_count,
                        HG_PB(Column) * **ret_list)
{
    struct pair {
        HG_PB(Column) column;
        HG_PB(Value) value;
    };
    HG_PB(Column) **list = hg_arena_array(arena, entity->count, sizeof *list);
    struct pair *pairs = hg_arena_array(arena, entity->count, sizeof *pairs);
    if (list == NULL || pairs == NULL)
        return false;
    for (size_t i = 0; i < entity->count; i++) {
        const struct hg_column *column = &entity->columns[i];
        pairs[i].column = (HG_PB(Column))HG_PB_INIT(COLUMN);
        pairs[i].column.name = hg_tablepb_bytes(column->name);
        if (column->value.kind != HG_VALUE_NULL) {
            fill_value(&pairs[i].value, &column->value);
            pairs[i].column.value = &pairs[i].value;
        }
        list[i] = &pairs[i].column;
    }
    *ret_count = entity->count;
    *ret_list = list;
    return true;
}

bool hg_tablepb_cells(const struct hg_cells *cells, struct hg_arena *arena, size_t *ret_count,
                      HG_PB(Cell) * **ret_list)
{
    HG_PB(Cell) **list = hg_arena_array(arena, cells->count, sizeof *list);
    HG_PB(Cell) *messages = hg_arena_array(arena, cells->count, sizeof *messages);
    if (list == NULL || messages == NULL)
        return false;
    for (size_t i = 0; i < cells->count; i++) {
        const struct hg_cell *cell = &cells->list[i];
        messages[i] = (HG_PB(Cell))HG_PB_INIT(CELL);
        messages[i].family = hg_tablepb_bytes(cell->family);
        messages[i].qualifier = hg_tablepb_bytes(cell->qualifier);
        messages[i].value = hg_tablepb_bytes(cell->value);
        messages[i].at_case = HEADGATE__TABLE__V1__CELL__AT_TIMESTAMP;
        messages[i].timestamp = cell->at_ms;
        list[i] = &messages[i];
    }
    *ret_count = cells->count;
    *ret_list = list;
    return true;
}
