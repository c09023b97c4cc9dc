// rowhelp - calls for rows with an operation of the tests' own, and a shelf behind the fake store
// SPDX-License-Identifier: BSD-3-Clause
//
// The operation counts up one number of the row, reads it, removes the row or leaves it alone; it
// is no operation of TableAPI or HBase. A shelf is what the fake store holds: it decides as
// memcached does, with CAS, when the test lets it.
#ifndef ROWHELP_H
#define ROWHELP_H

#include "back/item.h"
#include "back/rowgate.h"
#include "fakestore.h"

enum rowop_kind {
    ROWOP_READ,
    ROWOP_ADD,    /* n += amount; from 0 when there is no row */
    ROWOP_REMOVE, /* the row */
    ROWOP_KEEP,   /* a writer that changes nothing */
    ROWOP_PAD     /* a column of `amount` bytes beside n */
};

struct rowop {
    struct hg_row_call row;
    struct hg_arena arena;
    enum rowop_kind kind;
    int64_t amount;
    uint8_t key[256];
    unsigned applied; /* attempts that came so far */
    unsigned done;
    unsigned order; /* of its end among all, from 1 */
    int64_t n;      /* as it was after the operation; -1: no row */
    struct hg_row_end end;
    char text[160], server[64];
    /* NULL, or called at the end, when everything above is set; may free the rowop. */
    void (*then)(struct rowop *op);
    void *ctx;
};

/* The key is `table`, a zero byte and `row`. Free with rowop_fini. */
void rowop_init(struct rowop *op, struct hg_store *store, enum rowop_kind kind, const char *table,
                const char *row);
void rowop_fini(struct rowop *op);
/* `order` starts again at 1. */
void rowop_reset_order(void);

/* A row document with n and `pad` more bytes, as the API writes it, in static memory. */
struct hg_span rowop_document(enum hg_api api, int64_t n, size_t pad);

/* --- the shelf --- */

#define SHELF_ITEMS 64

struct shelf_item {
    char key[256]; /* padded with zeroes */
    struct hg_item item;
    uint8_t *value;
    bool used;
};

struct shelf {
    struct shelf_item items[SHELF_ITEMS];
    uint64_t cas_last;
    uint32_t max_value_bytes;
    bool without_cas; /* tells 0 as the CAS of what it reads */
    unsigned counts[HG_OPS];
};

void shelf_init(struct shelf *shelf);
void shelf_fini(struct shelf *shelf);
/* The item, or NULL. */
struct shelf_item *shelf_find(struct shelf *shelf, const char key[256]);
/* Somebody else stores (value.at NULL: removes) it. */
void shelf_put(struct shelf *shelf, const char key[256], uint32_t flags, struct hg_span value);
/* Carries out what the call asks. The outcome's value holds until the next. */
struct hg_result shelf_do(struct shelf *shelf, const char key[256], const struct hg_item_ask *ask);
/* Answers a call that the fake store keeps. */
void shelf_answer(struct shelf *shelf, struct kept *kept);

#endif
