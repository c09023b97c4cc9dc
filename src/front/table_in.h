// table_in - what the files of table share
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_FRONT_TABLE_IN_H
#define HG_FRONT_TABLE_IN_H

#include "front/answer_in.h"
#include "front/cursor.h"
#include "front/dispatch_in.h"
#include "front/gate.h"
#include "front/hot.h"
#include "front/table.h"
#include "table/hbaseop.h"
#include "table/tableop.h"

#define HG_TABLE_SLOTS 16 /* row calls of a batch under way */

/* How a request is carried out. */
enum hg_table_kind {
    HG_TABLE_ROW,    /* one row, by its operation */
    HG_TABLE_POINT,  /* a range that is one row */
    HG_TABLE_BATCH,  /* items, each on its own */
    HG_TABLE_ATOMIC, /* items of one row, all or none */
    HG_TABLE_RANGE,  /* a range from its start: QUERY, QUERY_START, SCAN */
    HG_TABLE_NEXT,   /* the next page of a session */
    HG_TABLE_END     /* the end of a session */
};

/* A row call, under way or about to be. */
struct hg_table_slot {
    struct hg_list node; /* of its request, or spare */
    struct hg_table *table;
    size_t index; /* of the item, for batches */
    struct hg_row_call call;
    bool submitted;           /* the call was */
    bool in_line;             /* an item's: it waits for a ticket, or for its start after that */
    struct hg_gate_pass pass; /* an item's; of other requests it is the request's */
    struct hg_list turn;      /* an item's: among those that are to be started */
    struct hg_arena arena;    /* the call's */
    uint32_t key_hash, key_len;
    uint8_t key[HG_TABLE_KEY_MAX + 1];
};

/* An item of a batch that is the one in X for its key. */
struct hg_table_pass {
    bool passed;
    struct hg_bindthrottle_pass of;
};

struct hg_table {
    struct hg_list node; /* spare, or in the worker's list of ranges */
    struct hg_worker *worker;
    struct hg_request *request;
    enum hg_table_kind kind;
    bool exempt; /* Unthrottled: no hot key refuses it */
    struct hg_tablemsg msg;
    struct hg_span body;   /* encoded, in the arena */
    struct hg_arena arena; /* message, results, reply */
    struct hg_list slots;
    uint64_t read_units, write_units; /* real ones, up to now */

    /* POINT, ATOMIC: results that the apply leaves in its slot's arena */
    struct hg_found_row found;
    bool is_found;
    struct hg_row_result *results; /* BATCH: in the arena */

    /* BATCH */
    struct hg_table_pass *passes; /* by item, in the arena; NULL: none passed a bind throttle */
    size_t next, under_way;
    size_t in_line; /* of those under way: they wait for a ticket */
    size_t result_bytes;
    bool pumping;
    bool in_front; /* the session's barrier is this batch's */

    /* RANGE, NEXT */
    struct hg_reader own;     /* before there is a session */
    struct hg_reader *reader; /* this or the cursor's */
    struct hg_cursor *cursor; /* taken; NULL: none */
    struct hg_page page;
    struct hg_arena scratch;
    struct hg_range_call range;
    struct hg_store *store; /* that is reading; NULL: none */
    struct hg_families families;
    bool page_over; /* the page takes no more */
    uint8_t from[HG_READER_KEY_BYTES], to[HG_READER_KEY_BYTES];
};

/* ---- table_pool.c ---- */

/* NULL: no memory. */
HG_MUST_USE struct hg_table *hg_table_new(struct hg_worker *worker);
/* Cancels what is under way. */
void hg_table_free(struct hg_table *table);
/* A slot in the list of the request's; NULL: no memory. */
HG_MUST_USE struct hg_table_slot *hg_table_slot_new(struct hg_table *table);
void hg_table_slot_free(struct hg_table_slot *slot);
/* The wall clock, once a turn. */
int64_t hg_table_now_ms(struct hg_worker *worker);
/* Attributes of the families of the message's table. */
struct hg_families hg_table_families(const struct hg_table *table);

/* ---- ends; the table is gone afterwards ---- (answer_table.c) */

/* The encoded reply, with the units that the table has counted. */
void hg_table_answer(struct hg_table *table, const struct hg_table_reply *reply, uint16_t affected,
                     enum hg_outcome outcome, const char *server);
void hg_table_answer_error(struct hg_table *table, uint16_t status, struct hg_span text,
                           const char *server);
/* The same with an outcome that the status does not tell. */
void hg_table_answer_refused(struct hg_table *table, const struct hg_refusal *refusal,
                             const char *server);
void hg_table_answer_fault(struct hg_table *table, enum hg_fault fault, struct hg_span text,
                           const char *server);
/* Nothing was done: all is given back. */
void hg_table_answer_refusal(struct hg_table *table, const struct hg_refusal *refusal);
enum hg_outcome hg_table_outcome(uint16_t status);

/* ---- table_row.c ---- */

/* What becomes of a row, and who is told of its end. */
struct hg_table_act {
    enum hg_op op;
    bool writes;
    void (*apply)(struct hg_row_call *call, const struct hg_row *old, struct hg_row_outcome *ret);
    void (*on_done)(struct hg_row_call *call, const struct hg_row_end *end);
};

/* A slot for a call for the row. NULL: no memory. */
HG_MUST_USE struct hg_table_slot *hg_table_row_slot(struct hg_table *table, struct hg_span row,
                                                    size_t index);
/* Submits its call, under this ticket (of struct hg_call); counts its key as hot. Perhaps it is
   done, and the table gone, when this returns. */
void hg_table_submit_row(struct hg_table_slot *slot, struct hg_store *store, struct hg_span row,
                         uint64_t ticket, const struct hg_table_act *act);
/* Applies item `index` of the message. */
void hg_table_apply_item(struct hg_row_call *call, const struct hg_row *old,
                         struct hg_row_outcome *ret);
/* Adds what the call has cost to the table's units. */
void hg_table_count(struct hg_table *table, enum hg_op op, const struct hg_row_call *call,
                    const struct hg_row_end *end);
enum hg_op hg_table_item_op(const struct hg_tablemsg *msg, size_t index);
struct hg_span hg_table_item_row(const struct hg_tablemsg *msg, size_t index);
uint32_t hg_table_row_hash(const struct hg_table *table, struct hg_span row);
void hg_table_run_row(struct hg_table *table, struct hg_store *store);
void hg_table_run_point(struct hg_table *table, struct hg_store *store);
void hg_table_run_atomic(struct hg_table *table, struct hg_store *store);

/* ---- table_batch.c ---- */

/* Judges the items by their keys: those that are refused get their results. False: no memory. */
HG_MUST_USE bool hg_table_judge_batch(struct hg_table *table, struct hg_session *session,
                                      const struct hg_opcode_row *row);
/* The batch was refused without a slot: takes back what its items did to the bind throttle. */
void hg_table_undo_passes(struct hg_table *table);
/* What the items that were not refused are likely to cost. */
void hg_table_estimate_batch(const struct hg_table *table, struct hg_request *request);
void hg_table_run_batch(struct hg_table *table);
/* An item that waited for a ticket has its turn. */
void hg_table_start_item(struct hg_table_slot *slot);
/* The status that this client gets for an item that is refused for its key. */
uint16_t hg_table_key_status(const struct hg_session *session, const struct hg_opcode_row *row,
                             uint16_t status);

/* ---- table_range.c ---- */

void hg_table_run_range(struct hg_table *table, struct hg_store *store);
void hg_table_run_next(struct hg_table *table);
void hg_table_run_end(struct hg_table *table);
/* The next part. */
void hg_table_read_on(struct hg_table *table);

#endif
