// tablepb - requests as the structs that the compiler made of proto/table.proto
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
