// hotmem - memory of hot-key sketches and lists, under one cap for the process
// SPDX-License-Identifier: BSD-3-Clause
#include "front/hotmem.h"

#include <stdlib.h>

static size_t rounded(size_t bytes)
{
    return (bytes + HG_CACHE_LINE - 1) & ~(size_t)(HG_CACHE_LINE - 1);
}

void *hg_hotmem_take(struct hg_hotmem *mem, size_t bytes)
{
    uint64_t cap = atomic_load_explicit(&mem->cap_bytes, memory_order_relaxed);
    uint64_t before = atomic_fetch_add_explicit(&mem->used_bytes, bytes, memory_order_relaxed);
    void *memory = before + bytes <= cap ? aligned_alloc(HG_CACHE_LINE, rounded(bytes)) : NULL;
    if (memory == NULL) {
        atomic_fetch_sub_explicit(&mem->used_bytes, bytes, memory_order_relaxed);
        atomic_fetch_add_explicit(&mem->refused, 1, memory_order_relaxed);
    }
    return memory;
}

void hg_hotmem_give_back(struct hg_hotmem *mem, void *memory, size_t bytes)
{
    if (memory == NULL)
        return;
    free(memory);
    atomic_fetch_sub_explicit(&mem->used_bytes, bytes, memory_order_relaxed);
}

static size_t sketch_bytes(unsigned counters)
{
    return sizeof(struct hg_hotsketch) + hg_hotkey_bytes(counters);
}

struct hg_hotsketch *hg_hotsketch_new(struct hg_hotmem *mem, unsigned counters)
{
    struct hg_hotsketch *sketch = hg_hotmem_take(mem, sketch_bytes(counters));
    if (sketch == NULL)
        return NULL;
    hg_list_init(&sketch->node);
    sketch->counters = counters;
    sketch->no_room = false;
    sketch->keys = hg_hotkey_init(sketch->memory, counters);
    return sketch;
}

void hg_hotsketch_free(struct hg_hotmem *mem, struct hg_hotsketch *sketch)
{
    if (sketch == NULL)
        return;
    hg_hotmem_give_back(mem, hg_hotkey_room(sketch->keys), hg_hotkey_room_bytes(sketch->counters));
    hg_hotmem_give_back(mem, sketch, sketch_bytes(sketch->counters));
}

bool hg_hotsketch_give_room(struct hg_hotmem *mem, struct hg_hotsketch *sketch)
{
    if (sketch->no_room || hg_hotkey_room(sketch->keys) != NULL)
        return false;
    void *room = hg_hotmem_take(mem, hg_hotkey_room_bytes(sketch->counters));
    sketch->no_room = room == NULL;
    if (room != NULL)
        hg_hotkey_give_room(sketch->keys, room);
    return room != NULL;
}

void hg_hotsketch_clear(struct hg_hotsketch *sketch)
{
    hg_hotkey_clear(sketch->keys);
    sketch->no_room = false;
}

struct hg_hotlist *hg_hotlist_new(struct hg_hotmem *mem, const struct hg_keythrottle *throttle,
                                  enum hg_hotkey_control control, uint32_t start)
{
    size_t bytes = sizeof(struct hg_hotlist) + hg_keylist_bytes(throttle);
    struct hg_hotlist *list = hg_hotmem_take(mem, bytes);
    if (list == NULL)
        return NULL;
    hg_list_init(&list->node);
    list->bytes = bytes;
    list->keys = hg_keylist_make(list->memory, throttle, control, start);
    return list;
}

void hg_hotlist_free(struct hg_hotmem *mem, struct hg_hotlist *list)
{
    if (list != NULL)
        hg_hotmem_give_back(mem, list, list->bytes);
}
