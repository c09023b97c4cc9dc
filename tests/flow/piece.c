// piece - a call that carries part of a pattern and checks that it comes back
// SPDX-License-Identifier: BSD-3-Clause
#include "piece.h"

#include <stdlib.h>
#include <string.h>

#include "base/prng.h"

#define PATTERN_BYTES (PIECE_VALUE_MAX + 8192)

static uint8_t *pattern;

void piece_init(void)
{
    struct hg_prng prng = {1};
    pattern = malloc(PATTERN_BYTES);
    if (pattern == NULL)
        abort();
    for (size_t i = 0; i < PATTERN_BYTES; i++)
        pattern[i] = (uint8_t)hg_prng_next(&prng);
}

void piece_fini(void)
{
    free(pattern);
}

static void on_done(struct hg_call *call, const struct hg_result *result)
{
    struct piece *piece = HG_CONTAINER_OF(call, struct piece, call);
    const struct hg_span *value = &result->value;
    ++*piece->done;
    piece->fault = result->fault;
    piece->status = result->status;
    piece->right = value->len == piece->len &&
                   (piece->len == 0 || memcmp(value->at, pattern + piece->from, piece->len) == 0);
    piece->in_blob = result->blob != NULL && value->at >= result->blob->data &&
                     value->at + value->len <= result->blob->data + result->blob->cap;
}

static void on_room(struct hg_call *call)
{
    struct piece *piece = HG_CONTAINER_OF(call, struct piece, call);
    (void)piece->store->ops->submit(piece->store, call);
}

void piece_submit(struct piece *piece, struct hg_store *store, struct rig *rig, enum hg_op op,
                  struct hg_blob *blob)
{
    piece->store = store;
    piece->call = (struct hg_call){
        .op = op,
        .tenant_id = piece->tenant_id,
        .prefix = piece->prefix,
        .key = hg_span_str(piece->key),
        .key_hash = (uint32_t)piece->from,
        .on_done = on_done,
        .on_room = on_room,
    };
    if (op != HG_OP_GET && op != HG_OP_GAT)
        piece->call.value = hg_span(pattern + piece->from, piece->len);
    if (blob != NULL) {
        memcpy(blob->data + 3, pattern + piece->from, piece->len);
        piece->call.blob = blob;
        piece->call.value = hg_span(blob->data + 3, piece->len);
    }
    hg_loop_stamp(&rig->loop);
    piece->call.now_us = rig->loop.now_us;
    (void)store->ops->submit(store, &piece->call);
}
