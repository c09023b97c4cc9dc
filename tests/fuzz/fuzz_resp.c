// fuzz_resp - any bytes as what a redis server says: cut, matched, and the same when split
// SPDX-License-Identifier: BSD-3-Clause
//
// Input: a byte that chooses limit, layout and whether a login is under way, a byte that chooses
// what was asked, then the stream. It is read once as a whole and once with its bytes arriving one
// by one, as a link does it, from memory that ends where they do; what comes out must be the same,
// and nothing but what the request can have.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "back/redis_dialect.h"
#include "back/redis_rows.h"
#include "fuzz.h"
#include "proto/status.h"

#define INPUT_MAX 4096

// Stays on in every build: a broken promise must stop the fuzzer.
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

struct setting {
    const struct hg_dialect *dialect;
    struct hg_due due;
    uint32_t max_bytes;
};

// What became of a reply; two ways of arriving must give the same.
struct outcome {
    uint16_t status;
    uint8_t again;
    uint64_t cas, counter;
    uint32_t item_flags, item_bytes;
    uint64_t sum;
};

struct trace {
    size_t count;
    bool bad;
    struct outcome outcomes[INPUT_MAX + 1];
};

static uint64_t sum_of(struct hg_span span)
{
    uint64_t sum = span.len;
    for (size_t i = 0; i < span.len; i++)
        sum = sum * 31 + span.at[i];
    return sum;
}

static void look_at_rows(struct hg_span reply)
{
    struct hg_redis_rows rows;
    struct hg_span row, item;
    MUST(hg_redis_rows_decode(reply, &rows));
    while (hg_redis_rows_next(&rows, &row, &item))
        MUST(row.len <= HG_REDIS_ROW_MAX && item.at + item.len <= reply.at + reply.len);
    MUST(rows.rest.len == 0);
}

static void note(struct trace *trace, const struct setting *setting, const struct hg_reply *reply)
{
    const struct hg_result *result = &reply->result;
    MUST(reply->opaque == setting->due.opaque && reply->tag == setting->due.tag);
    MUST(result->fault == HG_FAULT_NONE && result->blob == NULL && result->server == NULL);
    MUST(!setting->due.plain || reply->again == HG_AGAIN_NO);
    MUST(reply->again == HG_AGAIN_NO || result->status != HG_STATUS_SUCCESS);
    if (reply->again == HG_AGAIN_MOVED || reply->again == HG_AGAIN_ASK)
        MUST(reply->again_address.len > 0 && reply->again_slot < 16384);
    bool is_success = result->status == HG_STATUS_SUCCESS && !setting->due.plain;
    if (is_success && setting->due.tag == HG_REDIS_TAG_RANGE)
        look_at_rows(result->value);
    MUST(trace->count < INPUT_MAX);
    trace->outcomes[trace->count++] = (struct outcome){.status = result->status,
                                                       .again = reply->again,
                                                       .cas = result->cas,
                                                       .counter = result->counter,
                                                       .item_flags = result->item_flags,
                                                       .item_bytes = result->item_bytes,
                                                       .sum = sum_of(result->value)};
}

// Reads as a link does: `step` more bytes at a time.
static void run(const uint8_t *bytes, size_t size, size_t step, const struct setting *setting,
                struct trace *trace)
{
    const struct hg_dialect *dialect = setting->dialect;
    void *reader = dialect->reader_new(setting->max_bytes);
    MUST(reader);
    size_t at = 0, have = 0;
    while (at + have < size && !trace->bad) {
        have += size - at - have < step ? size - at - have : step;
        while (have > 0) {
            struct hg_reply reply;
            uint8_t *exact = malloc(have);
            MUST(exact);
            memcpy(exact, bytes + at, have);
            enum hg_codec codec = dialect->decode(dialect, reader, exact, have, setting->max_bytes,
                                                  &setting->due, &reply);
            if (codec == HG_OK) {
                MUST(reply.total_bytes > 0 && reply.total_bytes <= have);
                note(trace, setting, &reply);
                at += (size_t)reply.total_bytes;
                have -= (size_t)reply.total_bytes;
            }
            free(exact);
            trace->bad = codec == HG_BAD;
            if (codec == HG_MORE && reply.total_bytes == 0) {
                at += have;
                have = 0;
            } else if (codec == HG_MORE) {
                MUST(reply.total_bytes > have && reply.total_bytes <= setting->max_bytes);
                MUST(have >= HG_DIALECT_HEAD_BYTES || reply.total_bytes <= setting->max_bytes);
                MUST(have < HG_DIALECT_HEAD_BYTES || reply.total_bytes != HG_DIALECT_HEAD_BYTES);
            }
            if (codec != HG_OK)
                break;
        }
    }
    dialect->reader_free(reader);
}

// Both layouts, made once: they name their scripts by a digest.
static const struct hg_dialect *dialect_of(bool plain)
{
    static struct hg_redis_dialect dialects[2];
    struct hg_redis_dialect *dialect = &dialects[plain];
    const struct hg_redis_conf conf = {.plain = plain, .max_value_bytes = 1024};
    if (dialect->base.name == NULL)
        MUST(hg_redis_dialect_init(dialect, &conf) == 0);
    return &dialect->base;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t limits[] = {64, 1024, 65536, UINT32_MAX};
    if (size < 2 || size > INPUT_MAX)
        return 0;
    struct setting setting = {.dialect = dialect_of((data[0] & 4) != 0),
                              .max_bytes = limits[data[0] & 3],
                              .due = {.any = (data[0] & 16) == 0,
                                      .plain = (data[0] & 8) != 0,
                                      .tag = data[1] % (HG_REDIS_TAG_RANGE + 1),
                                      .opaque = data[1]}};
    struct trace *whole = calloc(2, sizeof *whole), *split = whole + 1;
    MUST(whole);
    run(data + 2, size - 2, SIZE_MAX, &setting, whole);
    run(data + 2, size - 2, 1, &setting, split);
    // Garbage may be known earlier when more of it is seen; what was said before it is the same.
    MUST(whole->bad == split->bad);
    MUST(whole->count == split->count);
    for (size_t i = 0; i < whole->count; i++) {
        const struct outcome *a = &whole->outcomes[i], *b = &split->outcomes[i];
        MUST(a->status == b->status && a->again == b->again && a->cas == b->cas);
        MUST(a->counter == b->counter && a->item_flags == b->item_flags);
        MUST(a->item_bytes == b->item_bytes && a->sum == b->sum);
    }
    free(whole);
    return 0;
}
