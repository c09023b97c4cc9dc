// fuzz_frame - any bytes as what a client sends: cut, judged, answered, and the same when split
// SPDX-License-Identifier: BSD-3-Clause
//
// Input: one byte that chooses limits and features, then the stream. The stream is cut into frames
// once as a whole, and once with its bytes arriving one by one, from memory that ends where they
// do; what comes out must be the same. Each frame is encoded again, and must be what it was; each
// refusal is written as a reply; what carries something of its own (frame info, Hello) is read.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "proto/errmap.h"
#include "proto/frame.h"
#include "proto/frameinfo.h"
#include "proto/hello.h"
#include "proto/mcreq.h"
#include "proto/reply.h"
#include "proto/status.h"
#include "fuzz.h"

#define INPUT_MAX 2048

// Stays on in every build: a broken promise must stop the fuzzer.
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

// What became of a frame; two ways of arriving must give the same.
struct event {
    enum hg_codec codec;
    uint8_t kind;
    uint8_t stranger;
    uint8_t opcode;
    uint16_t status;
    const char *why;
    uint64_t total_bytes;
    uint64_t cas;
    uint32_t opaque;
    size_t key_len;
};

struct trace {
    size_t count;
    struct event events[INPUT_MAX / HG_FRAME_HEADER_BYTES + 2];
};

struct setting {
    struct hg_frame_limits limits;
    uint32_t features;
};

static struct setting choose(uint8_t choice)
{
    static const struct hg_frame_limits limits[] = {
        {20u << 20, 1u << 20}, {16384, 1u << 20}, {UINT32_MAX, UINT32_MAX}, {64, 16}};
    return (struct setting){limits[choice & 3], (uint32_t)choice >> 2};
}

static void note(struct trace *trace, enum hg_codec codec, const struct hg_frame *frame,
                 const struct setting *setting)
{
    struct event event = {.codec = codec,
                          .kind = frame->kind,
                          .stranger = frame->stranger,
                          .opcode = frame->opcode,
                          .total_bytes = frame->total_bytes,
                          .cas = frame->cas,
                          .opaque = frame->opaque,
                          .key_len = frame->key.len};
    event.status = hg_frame_check(frame, setting->features, &event.why);
    MUST((event.status == HG_STATUS_SUCCESS) == (event.why == NULL));
    MUST(event.status == HG_STATUS_SUCCESS || event.why[0] != 0);
    MUST(codec != HG_BAD || event.status != HG_STATUS_SUCCESS);
    MUST(frame->kind == HG_FRAME_WHOLE || event.status != HG_STATUS_SUCCESS);
    MUST(codec == HG_BAD || frame->total_bytes >= HG_FRAME_HEADER_BYTES);
    trace->events[trace->count++] = event;
}

// Writes the frame again and compares.
static void encode_again(const uint8_t *bytes, const struct hg_frame *frame)
{
    uint8_t header[HG_FRAME_HEADER_BYTES];
    struct hg_span parts[] = {hg_frame_framing(frame), hg_frame_extras(frame), frame->key,
                              hg_frame_value(frame)};
    const uint8_t *at = bytes + HG_FRAME_HEADER_BYTES;
    for (size_t i = 0; i < 4; i++) {
        MUST(parts[i].at == at);
        at += parts[i].len;
    }
    MUST(at == bytes + frame->total_bytes);
    bool alt = frame->magic == HG_MAGIC_REQUEST_ALT;
    MUST(alt || parts[0].len == 0);
    hg_reply_header(header, frame->magic, frame->opcode,
                    alt ? hg_reply_key_len_alt((uint8_t)parts[0].len, (uint8_t)parts[2].len)
                        : (uint16_t)parts[2].len,
                    (uint8_t)parts[1].len, frame->datatype, be16toh(frame->wire_vbucket),
                    (uint32_t)(at - bytes) - HG_FRAME_HEADER_BYTES, frame->opaque, frame->cas);
    MUST(memcmp(header, bytes, sizeof header) == 0);
}

static void refuse(const struct hg_frame *frame, const struct setting *setting, uint16_t status,
                   const char *why)
{
    uint8_t out[HG_REPLY_ERROR_MAX];
    char text[128];
    struct hg_mcreply reply;
    size_t text_len = hg_frame_explain(frame, &setting->limits, why, text, sizeof text);
    MUST(text_len == strlen(text) && text_len > 0);
    struct hg_reply_error error = {.opcode = frame->opcode,
                                   .opaque = frame->opaque,
                                   .status = status,
                                   .json = (setting->features & HG_FEATURE_JSON) != 0,
                                   .text = hg_span(text, text_len)};
    size_t len = hg_reply_error(out, &error);
    MUST(hg_mcreply_decode(out, len, UINT32_MAX, &reply) == HG_OK);
    MUST(reply.total_bytes == len && reply.status == status && reply.cas == 0);
    MUST(memcmp(out + 12, &frame->opaque, 4) == 0 && reply.opcode == frame->opcode);
    MUST(reply.extras.len == 0 && reply.key.len == 0 && reply.value.len >= text_len);
}

// A frame with all its bytes: whatever else is in it is read, too.
static void look_inside(const struct hg_frame *frame)
{
    const char *why = NULL;
    struct hg_frameinfo info;
    uint16_t status = hg_frameinfo_decode(hg_frame_framing(frame), &info, &why);
    MUST((status == HG_STATUS_SUCCESS) == (why == NULL));
    if (status == HG_STATUS_SUCCESS && info.impersonate)
        MUST(info.user.len > 0 && info.user.at + info.user.len <= frame->key.at);

    struct hg_hello hello;
    uint8_t granted[HG_HELLO_VALUE_MAX];
    struct hg_span value = hg_frame_value(frame);
    if (hg_hello_decode(value, &hello, &why) == HG_STATUS_SUCCESS) {
        size_t len = hg_hello_encode(&hello, granted);
        MUST(len <= value.len && len <= sizeof granted);
        uint32_t features = hello.features;
        MUST(hg_hello_decode(hg_span(granted, len), &hello, &why) == HG_STATUS_SUCCESS);
        MUST(hello.features == features);
    }
    unsigned version = 0;
    if (hg_errmap_decode(value, &version, &why) == HG_STATUS_SUCCESS)
        MUST(version == 1 || version == 2);

    struct hg_reply_error error = {.json = true, .text = value, .members = HG_SPAN_LIT("\"a\":1")};
    uint8_t out[HG_REPLY_ERROR_MAX];
    size_t len = hg_reply_error(out, &error);
    MUST(len <= sizeof out && memcmp(out + len - 9, "\",\"a\":1}}", 9) == 0);
}

static void run_whole(const uint8_t *bytes, size_t size, const struct setting *setting,
                      struct trace *trace)
{
    size_t at = 0;
    for (;;) {
        struct hg_frame frame;
        enum hg_codec codec = hg_frame_decode(bytes + at, size - at, &setting->limits, &frame);
        if (codec == HG_MORE) {
            MUST(frame.total_bytes > size - at);
            return;
        }
        note(trace, codec, &frame, setting);
        const struct event *event = &trace->events[trace->count - 1];
        if (frame.kind == HG_FRAME_WHOLE) {
            MUST(frame.total_bytes <= size - at);
            encode_again(bytes + at, &frame);
            look_inside(&frame);
        }
        if (event->status != HG_STATUS_SUCCESS && frame.kind != HG_FRAME_BAD_MAGIC)
            refuse(&frame, setting, event->status, event->why);
        if (codec == HG_BAD || frame.total_bytes > size - at)
            return;
        at += (size_t)frame.total_bytes;
    }
}

// One more byte at a time. `need` may only grow once, from the header's size to the frame's.
static void run_split(const uint8_t *bytes, size_t size, const struct setting *setting,
                      struct trace *trace)
{
    size_t at = 0;
    for (size_t have = 0; at + have <= size; have++) {
        struct hg_frame frame;
        uint8_t *exact = malloc(have ? have : 1);
        MUST(exact);
        memcpy(exact, bytes + at, have);
        enum hg_codec codec = hg_frame_decode(exact, have, &setting->limits, &frame);
        if (codec != HG_MORE)
            note(trace, codec, &frame, setting);
        free(exact);
        if (codec == HG_MORE) {
            MUST(have >= HG_FRAME_HEADER_BYTES || frame.total_bytes == HG_FRAME_HEADER_BYTES);
            MUST(frame.total_bytes > have);
            continue;
        }
        if (codec == HG_BAD || frame.total_bytes > size - at)
            return;
        at += (size_t)frame.total_bytes;
        have = (size_t)-1; // begins again at 0
    }
}

static void run_as_reply(const uint8_t *bytes, size_t size)
{
    struct hg_mcreply reply;
    for (size_t have = 0; have <= size; have++) {
        uint8_t *exact = malloc(have ? have : 1);
        MUST(exact);
        memcpy(exact, bytes, have);
        enum hg_codec codec = hg_mcreply_decode(exact, have, 1u << 20, &reply);
        if (codec == HG_OK) {
            MUST(reply.value.at + reply.value.len == exact + reply.total_bytes);
            MUST(reply.total_bytes <= have);
        }
        free(exact);
        if (codec != HG_MORE)
            return;
        MUST(reply.total_bytes > have);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > INPUT_MAX)
        return 0;
    struct setting setting = choose(data[0]);
    struct trace whole = {0}, split = {0};
    run_whole(data + 1, size - 1, &setting, &whole);
    run_split(data + 1, size - 1, &setting, &split);
    MUST(whole.count == split.count);
    for (size_t i = 0; i < whole.count; i++) {
        const struct event *a = &whole.events[i], *b = &split.events[i];
        MUST(a->codec == b->codec && a->kind == b->kind && a->stranger == b->stranger);
        MUST(a->opcode == b->opcode && a->opaque == b->opaque && a->cas == b->cas);
        MUST(a->status == b->status && a->why == b->why);
        MUST(a->total_bytes == b->total_bytes && a->key_len == b->key_len);
    }
    run_as_reply(data + 1, size - 1);
    return 0;
}
