// piece - a call that carries part of a pattern and checks that it comes back
// SPDX-License-Identifier: BSD-3-Clause
#ifndef PIECE_H
#define PIECE_H

#include "rig.h"

#define PIECE_VALUE_MAX (1024 * 1024)

struct piece {
    struct hg_call call;
    struct hg_store *store;
    char key[32];
    struct hg_span prefix;
    uint32_t tenant_id;
    size_t from, len; /* of the pattern */
    int *done;        /* counts the answers */
    bool right;       /* the answer's value is the piece */
    bool in_blob;     /* it lay in result.blob */
    enum hg_fault fault;
    uint16_t status;
};

/* Makes the pattern: no run of it equals another. Free it with piece_fini. */
void piece_init(void);
void piece_fini(void);

/* Submits the piece under its key. An operation that stores takes the piece as its value: from
   `blob`, which has len + 3 bytes and gets the piece, or from the pattern when `blob` is NULL. */
void piece_submit(struct piece *piece, struct hg_store *store, struct rig *rig, enum hg_op op,
                  struct hg_blob *blob);

#endif
