// bindevent - the words of bind eviction and of the bind throttle, for the log
// SPDX-License-Identifier: BSD-3-Clause
#include "core/bindevent.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/op.h"

struct text {
    char *at;
    size_t len, room; /* room: without the zero at its end */
};

static struct text begin(char *out, size_t out_bytes)
{
    struct text text = {out, 0, out_bytes > 0 ? out_bytes - 1 : 0};
    if (out_bytes > 0)
        out[0] = '\0';
    return text;
}

static void put(struct text *text, const char *words)
{
    size_t len = strlen(words), left = text->room - text->len;
    if (len > left)
        len = left;
    if (len == 0)
        return;
    memcpy(text->at + text->len, words, len);
    text->len += len;
    text->at[text->len] = '\0';
}

static void put_number(struct text *text, uint64_t number)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, number);
    put(text, digits);
}

/* An escape is written whole or not at all. */
static void put_escaped(struct text *text, struct hg_span bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t c = bytes.at[i];
        bool plain = c > 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '&';
        char escaped[8];
        if (text->room - text->len < (plain ? 1 : 4))
            return;
        snprintf(escaped, sizeof escaped, plain ? "%c" : "\\x%02x", c);
        put(text, escaped);
    }
}

static void put_class(struct text *text, const struct hg_bindevent_key *of)
{
    put_escaped(text, hg_span_str(of->tenant));
    put(text, "/");
    put(text, hg_hot_type_name((enum hg_hot_type)of->key.type) + strlen("TABLE_HOTKEY_"));
}

/* The name and the value of the key, each behind its own words. */
static void put_key(struct text *text, const struct hg_bindevent_key *of, const char *name,
                    const char *value)
{
    struct hg_span bytes = of->key.bytes;
    size_t table = of->key.table_len < bytes.len ? of->key.table_len : bytes.len;

    put(text, name);
    if (of->key.table_len == 0)
        put(text, "key");
    else
        put_escaped(text, hg_span(bytes.at, table));
    put(text, value);
    put_escaped(text, hg_span(bytes.at + table, bytes.len - table));
}

size_t hg_bindevent_evict(char *out, size_t out_bytes, const struct hg_bindevent_key *of,
                          uint64_t slot)
{
    struct text text = begin(out, out_bytes);

    put(&text, "BIND_EVICT     ");
    put_class(&text, of);
    put(&text, " 1 pid=");
    if (slot == HG_BINDEVENT_NO_SLOT)
        put(&text, "-");
    else
        put_number(&text, slot);
    if (of->key.bytes.len == 0)
        put(&text, "&k=-&v=-");
    else
        put_key(&text, of, "&k=", "&v=");
    return text.len;
}

size_t hg_bindevent_throttle(char *out, size_t out_bytes, const struct hg_bindevent_key *of,
                             uint32_t x, const char *raddr)
{
    struct text text = begin(out, out_bytes);
    char share[32];

    put(&text, "BIND_THROTTLE  ");
    put_class(&text, of);
    put_key(&text, of, " 1 k=", "&v=");
    put(&text, "&allowEveryX=");
    put_number(&text, x);
    snprintf(share, sizeof share, "&allowFrac=%.5f&raddr=", x > 0 ? 1.0 / x : 1.0);
    put(&text, share);
    put_escaped(&text, hg_span_str(raddr));
    return text.len;
}

static struct text begin_change(char *out, size_t out_bytes, const struct hg_bindevent_key *of,
                                const char *words)
{
    struct text text = begin(out, out_bytes);

    put(&text, words);
    put(&text, " class:");
    put_class(&text, of);
    put_key(&text, of, " bindName:", " val:");
    return text;
}

size_t hg_bindevent_incr(char *out, size_t out_bytes, const struct hg_bindevent_key *of,
                         uint32_t prev)
{
    struct text text = begin_change(out, out_bytes, of, "bind throttle incr");

    put(&text, " prev:");
    put_number(&text, prev);
    return text.len;
}

size_t hg_bindevent_decr(char *out, size_t out_bytes, const struct hg_bindevent_key *of,
                         uint32_t prev, uint32_t step)
{
    struct text text = begin_change(out, out_bytes, of, "bind throttle decr");

    put(&text, " allowEveryX:");
    put_number(&text, prev);
    put(&text, "-");
    put_number(&text, step);
    return text.len;
}

size_t hg_bindevent_passed(char *out, size_t out_bytes, const struct hg_bindevent_key *of,
                           const struct hg_bindthrottle_told *told)
{
    if (told->x >= told->prev)
        return hg_bindevent_incr(out, out_bytes, of, told->prev);
    return hg_bindevent_decr(out, out_bytes, of, told->prev, told->prev - told->x);
}

size_t hg_bindevent_waned(char *out, size_t out_bytes, const struct hg_bindevent_key *of,
                          const struct hg_bindthrottle_told *told)
{
    if (told->silent && told->last > told->prev)
        return hg_bindevent_decr(out, out_bytes, of, told->last, told->last - told->prev);
    begin(out, out_bytes);
    return 0;
}
