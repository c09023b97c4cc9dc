// dispatch_in - what the ways of a frame have in common: data requests and table requests
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_FRONT_DISPATCH_IN_H
#define HG_FRONT_DISPATCH_IN_H

#include "front/answer.h"
#include "front/dispatch.h"
#include "proto/frameinfo.h"

/* Answers a frame with a refusal, in order. */
enum hg_step hg_dispatch_say(struct hg_session *session, const struct hg_frame *frame,
                             const struct hg_refusal *refusal);
/* The frame was not looked at after all: it comes again when a reply has left. */
enum hg_step hg_dispatch_defer(struct hg_session *session, const struct hg_frame *frame);
/* Is there a bucket, and may this client do in it what needs these privileges? If not, it has been
   refused. *ret_rights: what it may do there in all; those of both when it runs as another. */
HG_MUST_USE bool hg_dispatch_may(struct hg_session *session, const struct hg_frame *frame,
                                 uint32_t needs, struct hg_frameinfo *ret_info,
                                 uint32_t *ret_rights);
enum hg_step hg_dispatch_data_limit(struct hg_session *session, const struct hg_frame *frame,
                                    unsigned status);
/* A request at the end of the session's queue, charged with an estimate; NULL: no memory. */
HG_MUST_USE struct hg_request *hg_dispatch_request(struct hg_session *session,
                                                   const struct hg_frame *frame, enum hg_op op);
/* Does it count under one key in the ranking of hot keys? */
static inline bool hg_dispatch_is_ranked(enum hg_op op)
{
    return hg_op_rows[op].hot <= HG_HOT_RULE_QUERY;
}
/* Its lane has throttled keys. True: its key is one, and it has been refused. */
HG_MUST_USE bool hg_dispatch_refuse_hot(struct hg_session *session, struct hg_request *request,
                                        struct hg_span key_bytes);
/* Its lane has evicted keys. True: its key is one, the request is none of those that are let
   through, and it has been refused. */
HG_MUST_USE bool hg_dispatch_refuse_bind(struct hg_session *session, struct hg_request *request);
/* Why a bucket that is not live refuses; everything in it is constant. */
struct hg_refusal hg_dispatch_ended(const struct hg_bucket *bucket);
/* The last of the session's requests for the key that a store, or a row, is busy with; or NULL. */
struct hg_request *hg_dispatch_pending(const struct hg_session *session, uint32_t key_hash);
/* The bucket's store on this worker; NULL, with the refusal, when the bucket has ended or the store
   cannot be opened. */
HG_MUST_USE struct hg_store *hg_dispatch_store(struct hg_worker *worker,
                                               const struct hg_bucket *bucket,
                                               struct hg_refusal *ret_why);

#endif
