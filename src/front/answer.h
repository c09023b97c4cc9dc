// answer - from the result of a request to the bytes of its reply, its outcome and its cost
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_FRONT_ANSWER_H
#define HG_FRONT_ANSWER_H

#include "front/session.h"

/* Why a request is refused by the front end itself. */
struct hg_refusal {
    uint16_t status;
    enum hg_outcome outcome;
    const char *text;        /* what is wrong and what is right; NULL: the status' own */
    struct hg_span members;  /* JSON members for the error context, or none */
    struct hg_span verbatim; /* the whole value, or none */
};

/* Tells the outcome of a data request, settles its charge, encodes the reply in the order of the
   session's queue and frees the request. The request is SENT or WAITING. */
void hg_answer_result(struct hg_request *request, const struct hg_result *result);
/* One that its store has is answered in the store's place; it is charged as estimated. */
void hg_answer_evicted(struct hg_request *request, const struct hg_refusal *refusal);
void hg_answer_refusal(struct hg_request *request, const struct hg_refusal *refusal);

/* Counts a request whose client has gone: what a store has is charged as estimated, what none has
   is given back. */
void hg_answer_gone(struct hg_request *request);

/* A request of the front end itself, or one that was refused before it became a request: encoded at
   once, or behind those under way. */
struct hg_reply_of {
    const struct hg_opcode_row *row; /* NULL: unknown opcode */
    uint8_t opcode;
    uint32_t opaque;
    uint32_t frame_bytes;
};
void hg_answer_session(struct hg_session *session, const struct hg_reply_of *of,
                       struct hg_span extras, struct hg_span value, uint16_t status);
void hg_answer_session_refusal(struct hg_session *session, const struct hg_reply_of *of,
                               const struct hg_refusal *refusal);
/* Raw bytes: whole reply packets. */
void hg_answer_session_packets(struct hg_session *session, const struct hg_reply_of *of,
                               struct hg_span packets, enum hg_outcome outcome);
/* Bytes in order that are part of the reply before them and count as no request. */
void hg_answer_raw(struct hg_session *session, struct hg_span bytes);
/* Counts a request that needs no reply at all (QuitQ). */
void hg_answer_silence(struct hg_session *session, const struct hg_reply_of *of,
                       enum hg_outcome outcome);

/* The status as a client with these features knows it: without XERROR none from 0xff00 on, and none
   of paused buckets. */
uint16_t hg_answer_plain_status(uint32_t features, uint16_t status);

/* The status that a client without XERROR gets for a refusal of the bucket's limits. */
uint16_t hg_reject_status(const struct hg_bucket *bucket, const struct hg_opcode_row *row,
                          bool *ret_silent);

#endif
