// redis_write - what Redis is asked for a call, as RESP commands
// SPDX-License-Identifier: BSD-3-Clause
#include "back/redis_write.h"

#include <assert.h>
#include <string.h>

#include "back/item.h"
#include "base/bytes.h"

#define INLINE_BYTES HG_OUT_SHARE_MIN /* a value below it lies in one piece with its head */
#define CAS_OF_NONE  UINT64_MAX       /* no item has it: see rowguard.c */
#define NUMBER_BYTES 20
#define COMMAND_BYTES                                                                              \
    128                  /* names and numbers of a command without a script, lengths of its parts */
#define SCRIPT_BYTES 320 /* the same of a call of a script */
#define KEY_MORE     8   /* bytes that a stored key may have more than prefix and key */
#define LEN_BYTES    13  /* "$", ten digits, line's end */

static_assert(SCRIPT_BYTES + HG_REDIS_SCRIPT_MAX + 4 * (HG_REDIS_KEY_MAX + KEY_MORE) +
                      INLINE_BYTES <=
                  HG_CHUNK_BYTES,
              "a command fits into one piece");

/* --- pieces --- */

static uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t len)
{
    memcpy(at, bytes, len);
    return at + len;
}

#define PUT(at, literal) put_bytes(at, literal, sizeof(literal) - 1)

static uint8_t *put_number(uint8_t *at, uint64_t n)
{
    if (n < 10) {
        *at = (uint8_t)('0' + n);
        return at + 1;
    }
    uint8_t turned[NUMBER_BYTES];
    size_t len = 0;
    for (; n > 0; n /= 10)
        turned[len++] = (uint8_t)('0' + n % 10);
    while (len > 0)
        *at++ = turned[--len];
    return at;
}

/* "$5\r\n" or "*5\r\n" */
static uint8_t *put_len(uint8_t *at, uint8_t kind, uint64_t n)
{
    *at++ = kind;
    at = put_number(at, n);
    return PUT(at, "\r\n");
}

static uint8_t *put_part(uint8_t *at, struct hg_span part)
{
    at = put_len(at, '$', part.len);
    if (part.len > 0)
        at = put_bytes(at, part.at, part.len);
    return PUT(at, "\r\n");
}

static uint8_t *put_number_part(uint8_t *at, uint64_t n)
{
    uint8_t digits[NUMBER_BYTES];
    size_t len = (size_t)(put_number(digits, n) - digits);
    return put_part(at, hg_span(digits, len));
}

static uint8_t *put_cas_part(uint8_t *at, uint64_t cas)
{
    at = PUT(at, "$8\r\n");
    hg_put_u64(at, cas);
    return PUT(at + 8, "\r\n");
}

/* --- keys --- */

/* Bytes of the table's name in the key of a row, or the whole length when it is none's. */
static size_t table_len(struct hg_span key)
{
    const uint8_t *zero = key.len > 0 ? memchr(key.at, 0, key.len) : NULL;
    return zero != NULL ? (size_t)(zero - key.at) : key.len;
}

static size_t key_len(const struct hg_redis_style *style, struct hg_span prefix, struct hg_span key)
{
    size_t len = prefix.len + key.len;
    if (HG_UNLIKELY(key.len > 0 && key.at[0] == '\0'))
        return len + 1;
    if (HG_UNLIKELY(style->tagged) && table_len(key) < key.len)
        return len + 2;
    return len;
}

static uint8_t *put_key(const struct hg_redis_style *style, struct hg_span prefix,
                        struct hg_span key, uint8_t *at)
{
    if (prefix.len > 0)
        at = put_bytes(at, prefix.at, prefix.len);
    if (HG_UNLIKELY(key.len > 0 && key.at[0] == '\0')) {
        *at++ = '\0';
    } else if (HG_UNLIKELY(style->tagged)) {
        size_t len = table_len(key);
        if (len < key.len) {
            *at++ = '{';
            at = put_bytes(at, key.at, len);
            *at++ = '}';
            key = hg_span(key.at + len, key.len - len);
        }
    }
    return key.len > 0 ? put_bytes(at, key.at, key.len) : at;
}

size_t hg_redis_key(const struct hg_redis_style *style, struct hg_span prefix, struct hg_span key,
                    uint8_t *out)
{
    return (size_t)(put_key(style, prefix, key, out) - out);
}

static uint8_t *put_key_part(const struct hg_redis_style *style, const struct hg_call *call,
                             uint8_t *at)
{
    at = put_len(at, '$', key_len(style, call->prefix, call->key));
    at = put_key(style, call->prefix, call->key, at);
    return PUT(at, "\r\n");
}

/* The key of the index of the table that the call's key lies in. */
static uint8_t *put_index_part(const struct hg_redis_style *style, const struct hg_call *call,
                               uint8_t *at)
{
    size_t len = table_len(call->key);
    at = put_len(at, '$', call->prefix.len + 2 + len + (style->tagged ? 2 : 0));
    if (call->prefix.len > 0)
        at = put_bytes(at, call->prefix.at, call->prefix.len);
    at = put_bytes(at, "\0i", 2);
    if (style->tagged)
        *at++ = '{';
    at = put_bytes(at, call->key.at, len);
    if (style->tagged)
        *at++ = '}';
    return PUT(at, "\r\n");
}

/* The row's name: what the index holds. */
static struct hg_span member_of(struct hg_span key)
{
    size_t len = table_len(key);
    return len < key.len ? hg_span(key.at + len + 1, key.len - len - 1) : HG_SPAN_NONE;
}

/* --- expiry --- */

static bool is_relative(uint32_t expiry)
{
    return expiry <= HG_ITEM_RELATIVE_MAX_S;
}

/* Two arguments of a script: how the time is meant, and the time. */
static uint8_t *put_expiry_parts(uint8_t *at, uint32_t expiry)
{
    if (expiry == 0)
        at = PUT(at, "$0\r\n\r\n");
    else if (is_relative(expiry))
        at = PUT(at, "$2\r\nEX\r\n");
    else
        at = PUT(at, "$4\r\nEXAT\r\n");
    return put_number_part(at, expiry);
}

/* --- values --- */

static size_t head_bytes(const struct hg_redis_style *style)
{
    return style->plain ? 0 : HG_REDIS_ITEM_HEAD;
}

static uint8_t *put_item_head(uint8_t *at, uint32_t flags, uint64_t cas)
{
    hg_put_u32(at, flags);
    hg_put_u64(at + 4, cas);
    return at + HG_REDIS_ITEM_HEAD;
}

static size_t inlined(const struct hg_call *call)
{
    return call->value.len < INLINE_BYTES ? call->value.len : 0;
}

/* Queues what was written from `base` to `at`, then the value and `tail`. */
static void finish(struct hg_out *out, const struct hg_call *call, uint8_t *base, uint8_t *at,
                   struct hg_span tail)
{
    struct hg_span value = call->value;
    if (HG_LIKELY(value.len < INLINE_BYTES)) {
        if (value.len > 0)
            at = put_bytes(at, value.at, value.len);
        at = put_bytes(at, tail.at, tail.len);
        hg_out_commit(out, (size_t)(at - base));
        return;
    }
    hg_out_commit(out, (size_t)(at - base));
    if (call->blob != NULL)
        hg_out_put_blob(out, call->blob, value);
    else
        hg_out_put(out, value);
    hg_out_put(out, tail);
}

/* --- single commands --- */

static void write_get(const struct hg_redis_style *style, struct hg_out *out,
                      const struct hg_call *call)
{
    uint8_t *base =
        hg_out_reserve(out, COMMAND_BYTES + call->prefix.len + call->key.len + KEY_MORE);
    uint8_t *at = PUT(base, "*2\r\n$3\r\nGET\r\n");
    at = put_key_part(style, call, at);
    hg_out_commit(out, (size_t)(at - base));
}

static void write_del(const struct hg_redis_style *style, struct hg_out *out,
                      const struct hg_call *call)
{
    uint8_t *base =
        hg_out_reserve(out, COMMAND_BYTES + call->prefix.len + call->key.len + KEY_MORE);
    uint8_t *at = PUT(base, "*2\r\n$3\r\nDEL\r\n");
    at = put_key_part(style, call, at);
    hg_out_commit(out, (size_t)(at - base));
}

/* GETEX: as GET, and another expiry. */
static void write_gat(const struct hg_redis_style *style, struct hg_out *out,
                      const struct hg_call *call)
{
    uint8_t *base =
        hg_out_reserve(out, COMMAND_BYTES + call->prefix.len + call->key.len + KEY_MORE);
    uint8_t *at =
        call->expiry == 0 ? PUT(base, "*3\r\n$5\r\nGETEX\r\n") : PUT(base, "*4\r\n$5\r\nGETEX\r\n");
    at = put_key_part(style, call, at);
    if (call->expiry == 0)
        at = PUT(at, "$7\r\nPERSIST\r\n");
    else
        at = put_expiry_parts(at, call->expiry);
    hg_out_commit(out, (size_t)(at - base));
}

/* SET, with NX for ADD and XX for REPLACE. */
static void write_set(const struct hg_redis_style *style, struct hg_out *out,
                      const struct hg_call *call)
{
    uint8_t tail_bytes[64], *tail = PUT(tail_bytes, "\r\n");
    unsigned parts = 3;
    if (call->op != HG_OP_SET) {
        tail = call->op == HG_OP_ADD ? PUT(tail, "$2\r\nNX\r\n") : PUT(tail, "$2\r\nXX\r\n");
        parts++;
    }
    if (call->expiry != 0) {
        tail = put_expiry_parts(tail, call->expiry);
        parts += 2;
    }
    uint8_t *base = hg_out_reserve(out, COMMAND_BYTES + call->prefix.len + call->key.len +
                                            KEY_MORE + inlined(call));
    uint8_t *at = put_len(base, '*', parts);
    at = PUT(at, "$3\r\nSET\r\n");
    at = put_key_part(style, call, at);
    at = put_len(at, '$', head_bytes(style) + call->value.len);
    if (!style->plain)
        at = put_item_head(at, call->item_flags, call->place.made_cas);
    finish(out, call, base, at, hg_span(tail_bytes, (size_t)(tail - tail_bytes)));
}

/* --- scripts --- */

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
    size_t room =
        SCRIPT_BYTES + name.len + inlined(call) + 3 * (call->prefix.len + call->key.len + KEY_MORE);
    if (which == HG_REDIS_SCRIPT_RANGE)
        room += HG_REDIS_KEY_MAX; /* the other end of the stretch */
    script->out = out;
    script->base = hg_out_reserve(out, room);
    uint8_t *at = put_len(script->base, '*', 3 + keys + args);
    at = whole ? PUT(at, "$4\r\nEVAL\r\n") : PUT(at, "$7\r\nEVALSHA\r\n");
    at = put_part(at, name);
    script->at = put_number_part(at, keys);
}

static void end_script(struct script_call *script)
{
    hg_out_commit(script->out, (size_t)(script->at - script->base));
}

/* An argument of a CAS that must be there; none: empty. */
static uint8_t *put_wanted_cas(uint8_t *at, uint64_t cas)
{
    return cas == 0 ? PUT(at, "$0\r\n\r\n") : put_cas_part(at, cas);
}

static uint8_t *put_new_cas(const struct hg_redis_style *style, uint8_t *at,
                            const struct hg_call *call)
{
    return style->plain ? PUT(at, "$0\r\n\r\n") : put_cas_part(at, call->place.made_cas);
}

static bool has_index(const struct hg_redis_style *style, const struct hg_call *call)
{
    return style->ranges && call->row;
}

static uint8_t *put_condition(uint8_t *at, const struct hg_call *call)
{
    if (call->cas != 0)
        return put_cas_part(at, call->cas);
    switch (call->op) {
    case HG_OP_ADD:
        return PUT(at, "$0\r\n\r\n");
    case HG_OP_REPLACE:
        return PUT(at, "$1\r\n+\r\n");
    default:
        return PUT(at, "$1\r\n*\r\n");
    }
}

static void write_store(const struct hg_redis_style *style, struct hg_out *out,
                        const struct hg_call *call, bool whole)
{
    struct script_call script;
    bool index = has_index(style, call);
    begin_script(&script, style, out, call, HG_REDIS_SCRIPT_STORE, whole, index ? 2 : 1, 5);
    uint8_t *at = put_key_part(style, call, script.at);
    if (index)
        at = put_index_part(style, call, at);
    at = put_condition(at, call);
    at = put_expiry_parts(at, call->expiry);
    at = put_part(at, index ? member_of(call->key) : HG_SPAN_NONE);
    at = put_len(at, '$', HG_REDIS_ITEM_HEAD + call->value.len);
    at = put_item_head(at, call->item_flags, call->place.made_cas);
    finish(out, call, script.base, at, HG_SPAN_LIT("\r\n"));
}

static void write_remove(const struct hg_redis_style *style, struct hg_out *out,
                         const struct hg_call *call, bool whole)
{
    struct script_call script;
    bool index = has_index(style, call);
    begin_script(&script, style, out, call, HG_REDIS_SCRIPT_REMOVE, whole, index ? 2 : 1, 2);
    uint8_t *at = put_key_part(style, call, script.at);
    if (index)
        at = put_index_part(style, call, at);
    at = put_wanted_cas(at, call->cas);
    script.at = put_part(at, index ? member_of(call->key) : HG_SPAN_NONE);
    end_script(&script);
}

static void write_join(const struct hg_redis_style *style, struct hg_out *out,
                       const struct hg_call *call, bool whole)
{
    struct script_call script;
    begin_script(&script, style, out, call, HG_REDIS_SCRIPT_JOIN, whole, 1, 5);
    uint8_t *at = put_key_part(style, call, script.at);
    at = put_wanted_cas(at, style->plain ? 0 : call->cas);
    at = put_new_cas(style, at, call);
    at = call->op == HG_OP_APPEND ? PUT(at, "$1\r\n>\r\n") : PUT(at, "$1\r\n<\r\n");
    at = put_number_part(at, style->max_value_bytes);
    at = put_len(at, '$', call->value.len);
    finish(out, call, script.base, at, HG_SPAN_LIT("\r\n"));
}

static void write_count(const struct hg_redis_style *style, struct hg_out *out,
                        const struct hg_call *call, bool whole)
{
    struct script_call script;
    begin_script(&script, style, out, call, HG_REDIS_SCRIPT_COUNT, whole, 1, 7);
    uint8_t *at = put_key_part(style, call, script.at);
    at = put_wanted_cas(at, style->plain ? 0 : call->cas);
    at = put_new_cas(style, at, call);
    at = call->op == HG_OP_INCREMENT ? PUT(at, "$1\r\n+\r\n") : PUT(at, "$1\r\n-\r\n");
    at = put_number_part(at, call->delta);
    at = put_number_part(at, call->initial);
    if (call->expiry == HG_ITEM_NO_CREATE)
        script.at = PUT(at, "$1\r\n-\r\n$0\r\n\r\n");
    else
        script.at = put_expiry_parts(at, call->expiry);
    end_script(&script);
}

static void write_touch(const struct hg_redis_style *style, struct hg_out *out,
                        const struct hg_call *call, bool whole)
{
    struct script_call script;
    begin_script(&script, style, out, call, HG_REDIS_SCRIPT_TOUCH, whole, 1, 3);
    uint8_t *at = put_key_part(style, call, script.at);
    if (call->expiry == 0)
        at = PUT(at, "$7\r\nPERSIST\r\n");
    else if (is_relative(call->expiry))
        at = PUT(at, "$6\r\nEXPIRE\r\n");
    else
        at = PUT(at, "$8\r\nEXPIREAT\r\n");
    at = put_number_part(at, call->expiry);
    script.at = put_number_part(at, head_bytes(style));
    end_script(&script);
}

/* One bound of a stretch: "[row" with, "(row" without the row itself; none: `open`. */
static uint8_t *put_bound(uint8_t *at, char kind, struct hg_span row, char open, bool is_open)
{
    at = put_len(at, '$', is_open ? 1 : 1 + row.len);
    *at++ = (uint8_t)(is_open ? open : kind);
    if (!is_open && row.len > 0)
        at = put_bytes(at, row.at, row.len);
    return PUT(at, "\r\n");
}

static void write_range(const struct hg_redis_style *style, struct hg_out *out,
                        const struct hg_call *call, bool whole)
{
    const struct hg_range_call *range = HG_CONTAINER_OF(call, struct hg_redis_range, call)->range;
    size_t table = table_len(range->from);
    /* `to` is in the same table, or behind all of it. */
    bool to_end = range->to.len <= table || range->to.at[table] != '\0';
    struct hg_span from = member_of(range->from), to = to_end ? from : member_of(range->to);
    uint32_t most = range->max_items < HG_REDIS_RANGE_ROWS ? range->max_items : HG_REDIS_RANGE_ROWS;
    struct script_call script;
    begin_script(&script, style, out, call, HG_REDIS_SCRIPT_RANGE, whole, 1, 6);
    uint8_t *at = put_index_part(style, call, script.at);
    if (range->reverse) {
        at = PUT(at, "$14\r\nZREVRANGEBYLEX\r\n");
        at = put_bound(at, '(', to, '+', to_end);
        at = put_bound(at, '[', from, '-', false);
    } else {
        at = PUT(at, "$11\r\nZRANGEBYLEX\r\n");
        at = put_bound(at, '[', from, '-', false);
        at = put_bound(at, '(', to, '+', to_end);
    }
    at = put_number_part(at, most);
    at = put_number_part(at, HG_REDIS_RANGE_BYTES);
    struct hg_span base = hg_span(range->from.at, table + 1);
    at = put_len(at, '$', key_len(style, call->prefix, base));
    at = put_key(style, call->prefix, base, at);
    script.at = PUT(at, "\r\n");
    end_script(&script);
}

/* --- which --- */

bool hg_redis_is_script(const struct hg_redis_style *style, const struct hg_call *call)
{
    switch (call->op) {
    case HG_OP_GET:
    case HG_OP_GAT:
    case HG_OP_FLUSH:
        return false;
    case HG_OP_SET:
    case HG_OP_ADD:
    case HG_OP_REPLACE:
    case HG_OP_DELETE:
        return !style->plain && (call->cas != 0 || has_index(style, call));
    default:
        return true;
    }
}

const char *hg_redis_refusal(const struct hg_redis_style *style, const struct hg_call *call)
{
    if (HG_UNLIKELY(call->op == HG_OP_FLUSH && call->expiry != 0))
        return "redis cannot flush later: only a delay of 0 is possible";
    if (HG_LIKELY(!style->plain))
        return NULL;
    if (call->row)
        return "rows need CAS and flags, which the plain layout of redis has not";
    if (call->item_flags != 0)
        return "the plain layout of redis keeps no flags: only 0 is possible";
    if (call->cas != 0 && call->cas != CAS_OF_NONE)
        return "the plain layout of redis keeps no CAS: only 0 is possible";
    return NULL;
}

static void write_script(const struct hg_redis_style *style, struct hg_out *out,
                         const struct hg_call *call, bool whole, uint8_t *ret_tag)
{
    switch (call->op) {
    case HG_OP_DELETE:
        *ret_tag = HG_REDIS_TAG_CODE;
        write_remove(style, out, call, whole);
        return;
    case HG_OP_INCREMENT:
    case HG_OP_DECREMENT:
        *ret_tag = HG_REDIS_TAG_COUNTED;
        write_count(style, out, call, whole);
        return;
    case HG_OP_APPEND:
    case HG_OP_PREPEND:
        *ret_tag = HG_REDIS_TAG_JOINED;
        write_join(style, out, call, whole);
        return;
    case HG_OP_TOUCH:
        *ret_tag = HG_REDIS_TAG_TOUCHED;
        write_touch(style, out, call, whole);
        return;
    case HG_OP_TABLE_QUERY:
        *ret_tag = HG_REDIS_TAG_RANGE;
        write_range(style, out, call, whole);
        return;
    default:
        *ret_tag = HG_REDIS_TAG_CODE;
        write_store(style, out, call, whole);
    }
}

bool hg_redis_write(const struct hg_redis_style *style, struct hg_out *out,
                    const struct hg_call *call, bool whole, uint8_t *ret_tag,
                    enum hg_fault *ret_fault)
{
    if (HG_UNLIKELY(call->prefix.len + call->key.len > HG_REDIS_KEY_MAX)) {
        *ret_fault = HG_FAULT_KEY_TOO_LONG;
        return false;
    }
    if (HG_LIKELY(call->op == HG_OP_GET)) {
        *ret_tag = HG_REDIS_TAG_VALUE;
        write_get(style, out, call);
        return true;
    }
    if (HG_UNLIKELY(call->op > HG_OP_FLUSH && call->op != HG_OP_TABLE_QUERY)) {
        *ret_fault = HG_FAULT_NOT_SUPPORTED;
        return false;
    }
    if (hg_redis_is_script(style, call)) {
        write_script(style, out, call, whole, ret_tag);
        return true;
    }
    switch (call->op) {
    case HG_OP_DELETE:
        *ret_tag = HG_REDIS_TAG_DELETED;
        write_del(style, out, call);
        break;
    case HG_OP_GAT:
        *ret_tag = HG_REDIS_TAG_VALUE;
        write_gat(style, out, call);
        break;
    case HG_OP_FLUSH:
        *ret_tag = HG_REDIS_TAG_STORED;
        hg_out_put(out, HG_SPAN_LIT("*2\r\n$7\r\nFLUSHDB\r\n$5\r\nASYNC\r\n"));
        break;
    default:
        *ret_tag = call->op == HG_OP_ADD       ? HG_REDIS_TAG_ADDED
                   : call->op == HG_OP_REPLACE ? HG_REDIS_TAG_REPLACED
                                               : HG_REDIS_TAG_STORED;
        write_set(style, out, call);
    }
    return true;
}

/* --- commands of our own --- */

void hg_redis_write_command(struct hg_out *out, const struct hg_span *parts, uint32_t count)
{
    size_t room = LEN_BYTES;
    for (uint32_t i = 0; i < count; i++)
        room += LEN_BYTES + parts[i].len + 2;
    uint8_t *base = hg_out_reserve(out, room), *at = put_len(base, '*', count);
    for (uint32_t i = 0; i < count; i++)
        at = put_part(at, parts[i]);
    hg_out_commit(out, (size_t)(at - base));
}

static void write_auth(struct hg_out *out, const struct hg_identity *identity)
{
    struct hg_span parts[3] = {HG_SPAN_LIT("AUTH")};
    uint32_t count = 1;
    if (identity->user[0] != '\0')
        parts[count++] = hg_span_str(identity->user);
    parts[count++] = hg_span_str(identity->password);
    hg_redis_write_command(out, parts, count);
}

static void write_select(struct hg_out *out, uint32_t database)
{
    uint8_t digits[NUMBER_BYTES];
    const struct hg_span parts[] = {
        HG_SPAN_LIT("SELECT"), hg_span(digits, (size_t)(put_number(digits, database) - digits))};
    hg_redis_write_command(out, parts, 2);
}

uint32_t hg_redis_write_login(const struct hg_redis_style *style, struct hg_out *out,
                              const struct hg_identity *identity, bool rebind, bool probe)
{
    uint32_t replies = 0;
    if (identity != NULL && identity->password[0] != '\0') {
        write_auth(out, identity);
        replies++;
    } else if (rebind) {
        /* Back to whom a new connection belongs to. */
        hg_redis_write_command(out, (const struct hg_span[]){HG_SPAN_LIT("RESET")}, 1);
        replies++;
    }
    uint32_t database = identity != NULL ? identity->database : 0;
    if (database != 0 || rebind) {
        write_select(out, database);
        replies++;
    }
    for (unsigned i = 0; !rebind && i < HG_REDIS_SCRIPTS; i++, replies++)
        hg_redis_write_command(out,
                               (const struct hg_span[]){HG_SPAN_LIT("SCRIPT"), HG_SPAN_LIT("LOAD"),
                                                        style->scripts.texts[i]},
                               3);
    if (probe) {
        hg_redis_write_command(out, (const struct hg_span[]){HG_SPAN_LIT("PING")}, 1);
        replies++;
    }
    return replies;
}
