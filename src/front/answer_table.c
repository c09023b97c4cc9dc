// answer_table - the ends of table requests: reply, error, refusal
// SPDX-License-Identifier: BSD-3-Clause
//
// Each takes the request away from its table first, so that nothing ends twice, and frees the
// table last, since the bytes of the reply lie in it until they are queued.
#include <stdio.h>

#include "base/bytes.h"
#include "front/bind.h"
#include "front/table_in.h"

static struct hg_request *take_request(struct hg_table *table)
{
    struct hg_request *request = table->request;
    request->table = NULL;
    return request;
}

enum hg_outcome hg_table_outcome(uint16_t status)
{
    return status == HG_STATUS_QUEUE_TIMEOUT ? HG_OUTCOME_QUEUE_TIMEOUT : hg_answer_outcome(status);
}

void hg_table_answer(struct hg_table *table, const struct hg_table_reply *reply, uint16_t affected,
                     enum hg_outcome outcome, const char *server)
{
    struct hg_answer_parts parts = {.status = HG_STATUS_SUCCESS,
                                    .extras_len = HG_TABLE_EXTRAS_BYTES};
    if (!hg_tablemsg_encode(reply, &table->arena, &parts.value)) {
        hg_table_answer_error(table, HG_STATUS_ENOMEM,
                              HG_SPAN_LIT("what was found takes more memory than a reply may have; "
                                          "what was asked for has been carried out"),
                              server);
        return;
    }
    struct hg_request *request = take_request(table);
    parts.extras[0] = hg_op_rows[reply->op].code;
    hg_put_u16(parts.extras + 2, affected);
    hg_answer_settle_units(request, table->read_units, table->write_units);
    hg_answer_usage(request, &parts);
    hg_answer_deliver(request, &parts, outcome, server);
    hg_table_free(table);
}

void hg_table_answer_refused(struct hg_table *table, const struct hg_refusal *refusal,
                             const char *server)
{
    struct hg_request *request = take_request(table);
    hg_answer_settle_units(request, table->read_units, table->write_units);
    hg_answer_error(request, hg_answer_visible_status(request, refusal->status), refusal, server);
    hg_table_free(table);
}

void hg_table_answer_error(struct hg_table *table, uint16_t status, struct hg_span text,
                           const char *server)
{
    char words[512];
    struct hg_refusal refusal = {status, hg_table_outcome(status), NULL, HG_SPAN_NONE,
                                 HG_SPAN_NONE};
    if (text.len > 0) {
        snprintf(words, sizeof words, "%.*s", (int)(text.len < 500 ? text.len : 500),
                 (const char *)text.at);
        refusal.text = words;
    }
    hg_table_answer_refused(table, &refusal, server);
}

void hg_table_answer_fault(struct hg_table *table, enum hg_fault fault, struct hg_span text,
                           const char *server)
{
    struct hg_request *request = take_request(table);
    struct hg_result result = {.fault = fault, .value = text, .server = server};
    hg_answer_settle_units(request, table->read_units, table->write_units);
    hg_answer_fault(request, &result);
    hg_table_free(table);
}

void hg_table_answer_refusal(struct hg_table *table, const struct hg_refusal *refusal)
{
    if (table->request->bind_passed)
        hg_bind_undo(table->request); /* while its key is known */
    struct hg_request *request = take_request(table);
    hg_answer_refusal(request, refusal);
    hg_table_free(table);
}
