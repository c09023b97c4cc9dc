// redis_write_script - calls that go by a script, as RESP commands
// SPDX-License-Identifier: BSD-3-Clause
#include <assert.h>

#include "back/redis_put.h"

#define SCRIPT_BYTES 320 /* names and numbers of a call of a script, lengths of its parts */

static_assert(SCRIPT_BYTES + HG_REDIS_SCRIPT_MAX + 4 * (HG_REDIS_KEY_MAX + HG_REDIS_KEY_MORE) +
                      HG_REDIS_INLINE_BYTES <=
                  HG_CHUNK_BYTES,
              "a command fits into one piece");

struct script_call {
    struct hg_out *out;
    uint8_t *base, *at;
};

/* Begins a call of a script with `keys` keys and `args` arguments. */
static void begin_script(struct script_call *script, const struct hg_redis_style *style,
                         struct hg_out *out, const struct hg_call *call, enum hg_redis_script which,
                         bool whole, unsigned keys, unsigned args)
{
    struct hg_span name = whole ? style->scripts.texts[which]
                                : hg_span(style->scripts.shas[which], HG_REDIS_SHA_BYTES);
    size_t room = SCRIPT_BYTES + name.len + hg_redis_inlined(call) +
                  3 * (call->prefix.len + call->key.len + HG_REDIS_KEY_MORE);
    if (which == HG_REDIS_SCRIPT_RANGE)
        room += HG_REDIS_KEY_MAX; /* the other end of the stretch */
    script->out = out;
    script->base = hg_out_reserve(out, room);
    uint8_t *at = hg_redis_put_len(script->base, '*', 3 + keys + args);
    at = whole ? HG_REDIS_PUT(at, "$4\r\nEVAL\r\n") : HG_REDIS_PUT(at, "$7\r\nEVALSHA\r\n");
    at = hg_redis_put_part(at, name);
    script->at = hg_redis_put_number_part(at, keys);
}

static void end_script(struct script_call *script)
{
    hg_out_commit(script->out, (size_t)(script->at - script->base));
}

/* An argument of a CAS that must be there; none: empty. */
static uint8_t *put_wanted_cas(uint8_t *at, uint64_t cas)
{
    return cas == 0 ? HG_REDIS_PUT(at, "$0\r\n\r\n") : hg_redis_put_cas_part(at, cas);
}

static uint8_t *put_new_cas(const struct hg_redis_style *style, uint8_t *at,
                            const struct hg_call *call)
{
    return style->plain ? HG_REDIS_PUT(at, "$0\r\n\r\n")
                        : hg_redis_put_cas_part(at, call->place.made_cas);
}

static uint8_t *put_condition(uint8_t *at, const struct hg_call *call)
{
    if (call->cas != 0)
        return hg_redis_put_cas_part(at, call->cas);
    switch (call->op) {
    case HG_OP_ADD:
        return HG_REDIS_PUT(at, "$0\r\n\r\n");
    case HG_OP_REPLACE:
        return HG_REDIS_PUT(at, "$1\r\n+\r\n");
    default:
        return HG_REDIS_PUT(at, "$1\r\n*\r\n");
    }
}

static void write_store(const struct hg_redis_style *style, struct hg_out *out,
                        const struct hg_call *call, bool whole)
{
    struct script_call script;
    bool index = hg_redis_has_index(style, call);
    begin_script(&script, style, out, call, HG_REDIS_SCRIPT_STORE, whole, index ? 2 : 1, 5);
    uint8_t *at = hg_redis_put_key_part(style, call, script.at);
    if (index)
        at = hg_redis_put_index_part(style, call, at);
    at = put_condition(at, call);
    at = hg_redis_put_expiry_parts(at, call->expiry);
    at = hg_redis_put_part(at, index ? hg_redis_member_of(call->key) : HG_SPAN_NONE);
    at = hg_redis_put_len(at, '$', HG_REDIS_ITEM_HEAD + call->value.len);
    at = hg_redis_put_item_head(at, call->item_flags, call->place.made_cas);
    hg_redis_put_value(out, call, script.base, at, HG_SPAN_LIT("\r\n"));
}

static void write_remove(const struct hg_redis_style *style, struct hg_out *out,
                         const struct hg_call *call, bool whole)
{
    struct script_call script;
    bool index = hg_redis_has_index(style, call);
    begin_script(&script, style, out, call, HG_REDIS_SCRIPT_REMOVE, whole, index ? 2 : 1, 2);
    uint8_t *at = hg_redis_put_key_part(style, call, script.at);
    if (index)
        at = hg_redis_put_index_part(style, call, at);
    at = put_wanted_cas(at, call->cas);
    script.at = hg_redis_put_part(at, index ? hg_redis_member_of(call->key) : HG_SPAN_NONE);
    end_script(&script);
}

static void write_join(const struct hg_redis_style *style, struct hg_out *out,
                       const struct hg_call *call, bool whole)
{
    struct script_call script;
    begin_script(&script, style, out, call, HG_REDIS_SCRIPT_JOIN, whole, 1, 5);
    uint8_t *at = hg_redis_put_key_part(style, call, script.at);
    at = put_wanted_cas(at, style->plain ? 0 : call->cas);
    at = put_new_cas(style, at, call);
    at = call->op == HG_OP_APPEND ? HG_REDIS_PUT(at, "$1\r\n>\r\n")
                                  : HG_REDIS_PUT(at, "$1\r\n<\r\n");
    at = hg_redis_put_number_part(at, style->max_value_bytes);
    at = hg_redis_put_len(at, '$', call->value.len);
    hg_redis_put_value(out, call, script.base, at, HG_SPAN_LIT("\r\n"));
}

static void write_count(const struct hg_redis_style *style, struct hg_out *out,
                        const struct hg_call *call, bool whole)
{
    struct script_call script;
    begin_script(&script, style, out, call, HG_REDIS_SCRIPT_COUNT, whole, 1, 7);
    uint8_t *at = hg_redis_put_key_part(style, call, script.at);
    at = put_wanted_cas(at, style->plain ? 0 : call->cas);
    at = put_new_cas(style, at, call);
    at = call->op == HG_OP_INCREMENT ? HG_REDIS_PUT(at, "$1\r\n+\r\n")
                                     : HG_REDIS_PUT(at, "$1\r\n-\r\n");
    at = hg_redis_put_number_part(at, call->delta);
    at = hg_redis_put_number_part(at, call->initial);
    if (call->expiry == HG_ITEM_NO_CREATE)
        script.at = HG_REDIS_PUT(at, "$1\r\n-\r\n$0\r\n\r\n");
    else
        script.at = hg_redis_put_expiry_parts(at, call->expiry);
    end_script(&script);
}

static void write_touch(const struct hg_redis_style *style, struct hg_out *out,
                        const struct hg_call *call, bool whole)
{
    struct script_call script;
    begin_script(&script, style, out, call, HG_REDIS_SCRIPT_TOUCH, whole, 1, 3);
    uint8_t *at = hg_redis_put_key_part(style, call, script.at);
    if (call->expiry == 0)
        at = HG_REDIS_PUT(at, "$7\r\nPERSIST\r\n");
    else if (hg_redis_is_relative(call->expiry))
        at = HG_REDIS_PUT(at, "$6\r\nEXPIRE\r\n");
    else
        at = HG_REDIS_PUT(at, "$8\r\nEXPIREAT\r\n");
    at = hg_redis_put_number_part(at, call->expiry);
    script.at = hg_redis_put_number_part(at, hg_redis_head_bytes(style));
    end_script(&script);
}

/* One bound of a stretch: "[row" with, "(row" without the row itself; none: `open`. */
static uint8_t *put_bound(uint8_t *at, char kind, struct hg_span row, char open, bool is_open)
{
    at = hg_redis_put_len(at, '$', is_open ? 1 : 1 + row.len);
    *at++ = (uint8_t)(is_open ? open : kind);
    if (!is_open && row.len > 0)
        at = hg_redis_put_bytes(at, row.at, row.len);
    return HG_REDIS_PUT(at, "\r\n");
}

static void write_range(const struct hg_redis_style *style, struct hg_out *out,
                        const struct hg_call *call, bool whole)
{
    const struct hg_range_call *range = call->range;
    size_t table = hg_redis_table_len(range->from);
    /* `to` is in the same table, or behind all of it. */
    bool to_end = range->to.len <= table || range->to.at[table] != '\0';
    struct hg_span from = hg_redis_member_of(range->from),
                   to = to_end ? from : hg_redis_member_of(range->to);
    uint32_t most = range->max_items < HG_REDIS_RANGE_ROWS ? range->max_items : HG_REDIS_RANGE_ROWS;
    struct script_call script;
    begin_script(&script, style, out, call, HG_REDIS_SCRIPT_RANGE, whole, 1, 6);
    uint8_t *at = hg_redis_put_index_part(style, call, script.at);
    if (range->reverse) {
        at = HG_REDIS_PUT(at, "$14\r\nZREVRANGEBYLEX\r\n");
        at = put_bound(at, '(', to, '+', to_end);
        at = put_bound(at, '[', from, '-', false);
    } else {
        at = HG_REDIS_PUT(at, "$11\r\nZRANGEBYLEX\r\n");
        at = put_bound(at, '[', from, '-', false);
        at = put_bound(at, '(', to, '+', to_end);
    }
    at = hg_redis_put_number_part(at, most);
    at = hg_redis_put_number_part(at, style->range_bytes);
    struct hg_span base = hg_span(range->from.at, table + 1);
    at = hg_redis_put_len(at, '$', hg_redis_key_len(style, call->prefix, base));
    at = hg_redis_put_key(style, call->prefix, base, at);
    script.at = HG_REDIS_PUT(at, "\r\n");
    end_script(&script);
}

uint8_t hg_redis_write_script(const struct hg_redis_style *style, struct hg_out *out,
                              const struct hg_call *call, bool whole)
{
    switch (call->op) {
    case HG_OP_DELETE:
        write_remove(style, out, call, whole);
        return HG_REDIS_TAG_CODE;
    case HG_OP_INCREMENT:
    case HG_OP_DECREMENT:
        write_count(style, out, call, whole);
        return HG_REDIS_TAG_COUNTED;
    case HG_OP_APPEND:
    case HG_OP_PREPEND:
        write_join(style, out, call, whole);
        return HG_REDIS_TAG_JOINED;
    case HG_OP_TOUCH:
        write_touch(style, out, call, whole);
        return HG_REDIS_TAG_TOUCHED;
    case HG_OP_TABLE_QUERY:
        write_range(style, out, call, whole);
        return HG_REDIS_TAG_RANGE;
    default:
        write_store(style, out, call, whole);
        return HG_REDIS_TAG_CODE;
    }
}
