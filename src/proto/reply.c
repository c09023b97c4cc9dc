// reply - the replies to clients: the header, and errors that say what was wrong
// SPDX-License-Identifier: BSD-3-Clause
#include "proto/reply.h"

#include "proto/jsontext.h"
#include "proto/status.h"

// Bytes being written, never past `end`.
struct writer {
    uint8_t *at;
    uint8_t *end;
};

static size_t room(const struct writer *w)
{
    return (size_t)(w->end - w->at);
}

static void put(struct writer *w, struct hg_span bytes)
{
    size_t len = bytes.len < room(w) ? bytes.len : room(w);
    if (len > 0)
        memcpy(w->at, bytes.at, len);
    w->at += len;
}

#define HEAD "{\"error\":{\"context\":\""
#define TAIL "}}"

static void put_json(struct writer *w, struct hg_span text, struct hg_span members)
{
    put(w, HG_SPAN_LIT(HEAD));
    size_t after = sizeof "\"" TAIL - 1; // what must follow the text
    if (members.len > 0 && members.len < room(w) - after)
        after += 1 + members.len;
    else
        members = HG_SPAN_NONE;
    w->at += hg_jsontext_escape(text, w->at, room(w) - after);
    put(w, HG_SPAN_LIT("\""));
    if (members.len > 0) {
        put(w, HG_SPAN_LIT(","));
        put(w, members);
    }
    put(w, HG_SPAN_LIT(TAIL));
}

// Members for a person: "limit":"hard","percent":30 is written as limit: hard, percent: 30
static void put_plain(struct writer *w, struct hg_span members)
{
    bool quoted = false;
    for (size_t i = 0; i < members.len; i++) {
        uint8_t c = members.at[i];
        if (quoted && c == '\\' && i + 1 < members.len) {
            put(w, hg_span(members.at + i++, 2));
            continue;
        }
        if (c == '"') {
            quoted = !quoted;
            continue;
        }
        put(w, hg_span(members.at + i, 1));
        if (!quoted && (c == ':' || c == ','))
            put(w, HG_SPAN_LIT(" "));
    }
}

static void put_text(struct writer *w, struct hg_span text, struct hg_span members)
{
    put(w, text);
    if (members.len == 0)
        return;
    put(w, HG_SPAN_LIT(" ("));
    put_plain(w, members);
    put(w, HG_SPAN_LIT(")"));
}

size_t hg_reply_error_value(uint8_t *out, size_t cap, bool json, struct hg_span text,
                            struct hg_span members)
{
    struct writer w = {out, out + cap};
    if (json)
        put_json(&w, text, members);
    else
        put_text(&w, text, members);
    return (size_t)(w.at - out);
}

size_t hg_reply_error(uint8_t *out, const struct hg_reply_error *error)
{
    struct hg_span framing = error->framing;
    struct hg_span key = error->key;
    if (framing.len > HG_FRAMEINFO_USAGE_MAX)
        framing = HG_SPAN_NONE;
    if (key.len > HG_KEY_MAX_BYTES)
        key = HG_SPAN_NONE;
    size_t before_value = HG_FRAME_HEADER_BYTES + framing.len + key.len;
    struct writer w = {out + HG_FRAME_HEADER_BYTES, out + before_value + HG_REPLY_ERROR_VALUE_MAX};
    put(&w, framing);
    put(&w, key);

    struct hg_span text = error->text;
    if (text.len == 0)
        text = hg_span_str(hg_status_text(error->status));
    bool verbatim = error->verbatim.len > 0 && error->verbatim.len <= HG_REPLY_ERROR_VALUE_MAX;
    if (verbatim)
        put(&w, error->verbatim);
    else if (error->json)
        put_json(&w, text, error->members);
    else
        put_text(&w, text, error->members);

    size_t total = (size_t)(w.at - out);
    bool alt = framing.len > 0;
    uint16_t key_len =
        alt ? hg_reply_key_len_alt((uint8_t)framing.len, (uint8_t)key.len) : (uint16_t)key.len;
    hg_reply_header(out, alt ? HG_MAGIC_REPLY_ALT : HG_MAGIC_REPLY, error->opcode, key_len, 0,
                    error->json ? HG_DATATYPE_JSON : HG_DATATYPE_RAW, error->status,
                    (uint32_t)(total - HG_FRAME_HEADER_BYTES), error->opaque, 0);
    return total;
}
