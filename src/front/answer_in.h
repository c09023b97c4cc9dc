// answer_in - what the files of answer share: the parts of a reply, its place, its cost
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_FRONT_ANSWER_IN_H
#define HG_FRONT_ANSWER_IN_H

#include "front/answer.h"
#include "proto/frameinfo.h"

/* What a reply consists of, before it is bytes. */
struct hg_answer_parts {
    uint16_t status;
    uint64_t cas;
    struct hg_span key;
    struct hg_span value;
    struct hg_blob *blob; /* value lies in it */
    bool until_turn_end;
    uint8_t extras_len;
    uint8_t extras[8];
    uint8_t framing_len;
    uint8_t framing[HG_FRAMEINFO_USAGE_MAX];
};

/* Adds what the client wants to know of times and units. */
void hg_answer_usage(struct hg_request *request, struct hg_answer_parts *parts);
/* Places the reply (parts NULL: silence) in order and frees what is done. */
void hg_answer_deliver(struct hg_request *request, const struct hg_answer_parts *parts,
                       enum hg_outcome outcome, const char *server);
void hg_answer_error(struct hg_request *request, uint16_t status, const struct hg_refusal *refusal,
                     const char *server);
/* A fault of the store; result->value: its words, or none. */
void hg_answer_fault(struct hg_request *request, const struct hg_result *result);
/* What it means that a store, or the table's semantics, ended with this status. */
enum hg_outcome hg_answer_outcome(uint16_t status);
/* What a client is told of a fault. */
struct hg_refusal hg_answer_fault_refusal(enum hg_fault fault);
/* Counts the end of a data request. */
void hg_answer_tell(struct hg_request *request, enum hg_outcome outcome, size_t reply_bytes,
                    const char *server);
/* The status as this client may see it: ours from 0xff00 on are for those who know them. */
uint16_t hg_answer_visible_status(const struct hg_request *request, uint16_t status);

/* ---- what the request cost (answer_cost.c) ---- */

/* By the store's result. */
void hg_answer_settle(struct hg_request *request, const struct hg_result *result);
/* No store has seen it: all is given back. */
void hg_answer_settle_none(struct hg_request *request);
/* These are its real units. */
void hg_answer_settle_units(struct hg_request *request, uint64_t read_units, uint64_t write_units);
/* So many it has cost up to now; there will be more. */
void hg_answer_charge(struct hg_request *request, uint64_t read_units, uint64_t write_units);

#endif
