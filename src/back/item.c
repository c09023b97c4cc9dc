// item - what memcached does to one item, as a pure function
// SPDX-License-Identifier: BSD-3-Clause
#include "back/item.h"

#include <string.h>

#include "proto/status.h"

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* memcached reads a counter with strtoull and wants white space or a zero byte behind it, and its
   values end in a line break that is not part of them: blanks, signs and zeros in front are
   accepted, and text behind a blank is. */
static bool parse_counter(struct hg_span text, uint64_t *ret_value)
{
    const uint8_t *at = text.at, *end = text.at + text.len;
    while (at < end && is_space(*at))
        at++;
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    const uint8_t *digits = at;
    uint64_t value = 0;
    for (; at < end && *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return false;
    if (at == digits || (at < end && *at != '\0' && !is_space(*at)))
        return false;
    if (negative)
        value = 0 - value;
    /* strtoull negates; what then looks negative is refused, the rest is not. */
    if (negative && value > INT64_MAX)
        return false;
    *ret_value = value;
    return true;
}

/* Decimal digits of `value` into `out`; how many. */
static size_t format_counter(uint64_t value, char out[HG_ITEM_DIGITS + 1])
{
    char turned[HG_ITEM_DIGITS];
    size_t n = 0;
    do
        turned[n++] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    for (size_t i = 0; i < n; i++)
        out[i] = turned[n - 1 - i];
    out[n] = '\0';
    return n;
}

static void keep(struct hg_item_outcome *ret, enum hg_status status)
{
    ret->act = HG_ITEM_KEEP;
    ret->status = (uint16_t)status;
}

static void store(struct hg_item_outcome *ret, uint32_t flags, uint64_t cas, uint64_t expiry_s,
                  struct hg_span value)
{
    ret->act = HG_ITEM_STORE;
    ret->status = HG_STATUS_SUCCESS;
    ret->item = (struct hg_item){flags, cas, expiry_s, value};
}

static void decide_store(const struct hg_item *old, const struct hg_item_ask *ask, uint64_t now_s,
                         uint32_t max_value_bytes, uint64_t new_cas, struct hg_item_outcome *ret)
{
    if (ask->value.len > max_value_bytes) {
        keep(ret, HG_STATUS_E2BIG);
        return;
    }
    /* With a CAS, set, add and replace are the same operation. */
    if (ask->cas != 0 && (old == NULL || old->cas != ask->cas)) {
        keep(ret, old == NULL ? HG_STATUS_KEY_ENOENT : HG_STATUS_KEY_EEXISTS);
        return;
    }
    if (ask->cas == 0 && ask->op == HG_OP_ADD && old != NULL) {
        keep(ret, HG_STATUS_KEY_EEXISTS);
        return;
    }
    if (ask->op == HG_OP_REPLACE && old == NULL) {
        keep(ret, HG_STATUS_KEY_ENOENT);
        return;
    }
    store(ret, ask->flags, new_cas, hg_item_expiry(ask->expiry, now_s), ask->value);
}

static void decide_join(const struct hg_item *old, const struct hg_item_ask *ask,
                        uint32_t max_value_bytes, uint64_t new_cas, struct hg_item_outcome *ret)
{
    if (old == NULL) {
        keep(ret, HG_STATUS_NOT_STORED);
        return;
    }
    if (ask->cas != 0 && ask->cas != old->cas) {
        keep(ret, HG_STATUS_KEY_EEXISTS);
        return;
    }
    if (ask->value.len > max_value_bytes || old->value.len > max_value_bytes - ask->value.len) {
        keep(ret, HG_STATUS_E2BIG);
        return;
    }
    bool append = ask->op == HG_OP_APPEND;
    store(ret, old->flags, new_cas, old->expiry_s, append ? old->value : ask->value);
    ret->tail = append ? ask->value : old->value;
}

static void decide_counter(const struct hg_item *old, const struct hg_item_ask *ask, uint64_t now_s,
                           uint64_t new_cas, struct hg_item_outcome *ret)
{
    if (old == NULL) {
        if (ask->expiry == HG_ITEM_NO_CREATE) {
            keep(ret, HG_STATUS_KEY_ENOENT);
            return;
        }
        ret->counter = ask->initial;
        size_t len = format_counter(ret->counter, ret->digits);
        store(ret, 0, new_cas, hg_item_expiry(ask->expiry, now_s), hg_span(ret->digits, len));
        return;
    }
    uint64_t value;
    if (old->value.len > 0 && ask->cas != 0 && ask->cas != old->cas) {
        keep(ret, HG_STATUS_KEY_EEXISTS);
        return;
    }
    if (!parse_counter(old->value, &value)) {
        keep(ret, HG_STATUS_DELTA_BADVAL);
        return;
    }
    if (ask->op == HG_OP_INCREMENT)
        value += ask->delta;
    else
        value = value > ask->delta ? value - ask->delta : 0;
    ret->counter = value;
    size_t len = format_counter(value, ret->digits);
    store(ret, old->flags, new_cas, old->expiry_s, hg_span(ret->digits, len));
    /* memcached writes into the old value and fills what is left of it. */
    if (len < old->value.len)
        ret->pad = (uint32_t)(old->value.len - len);
}

static void decide_touch(const struct hg_item *old, const struct hg_item_ask *ask, uint64_t now_s,
                         struct hg_item_outcome *ret)
{
    if (old == NULL) {
        keep(ret, HG_STATUS_KEY_ENOENT);
        return;
    }
    ret->act = HG_ITEM_TOUCH;
    ret->status = HG_STATUS_SUCCESS;
    ret->item = *old;
    ret->item.expiry_s = hg_item_expiry(ask->expiry, now_s);
}

static void decide_delete(const struct hg_item *old, const struct hg_item_ask *ask,
                          struct hg_item_outcome *ret)
{
    if (old == NULL) {
        keep(ret, HG_STATUS_KEY_ENOENT);
    } else if (ask->cas != 0 && ask->cas != old->cas) {
        keep(ret, HG_STATUS_KEY_EEXISTS);
    } else {
        ret->act = HG_ITEM_REMOVE;
        ret->status = HG_STATUS_SUCCESS;
    }
}

void hg_item_decide(const struct hg_item *old, const struct hg_item_ask *ask, uint64_t now_s,
                    uint32_t max_value_bytes, uint64_t new_cas, struct hg_item_outcome *ret)
{
    memset(ret, 0, sizeof *ret);
    switch (ask->op) {
    case HG_OP_GET:
        keep(ret, old == NULL ? HG_STATUS_KEY_ENOENT : HG_STATUS_SUCCESS);
        if (old != NULL)
            ret->item = *old;
        return;
    case HG_OP_SET:
    case HG_OP_ADD:
    case HG_OP_REPLACE:
        decide_store(old, ask, now_s, max_value_bytes, new_cas, ret);
        return;
    case HG_OP_APPEND:
    case HG_OP_PREPEND:
        decide_join(old, ask, max_value_bytes, new_cas, ret);
        return;
    case HG_OP_INCREMENT:
    case HG_OP_DECREMENT:
        decide_counter(old, ask, now_s, new_cas, ret);
        return;
    case HG_OP_TOUCH:
    case HG_OP_GAT:
        decide_touch(old, ask, now_s, ret);
        return;
    case HG_OP_DELETE:
        decide_delete(old, ask, ret);
        return;
    default:
        break;
    }
    keep(ret, HG_STATUS_NOT_SUPPORTED);
}

void hg_item_outcome_copy(const struct hg_item_outcome *outcome, uint8_t *at)
{
    if (outcome->item.value.len > 0)
        memcpy(at, outcome->item.value.at, outcome->item.value.len);
    at += outcome->item.value.len;
    if (outcome->tail.len > 0)
        memcpy(at, outcome->tail.at, outcome->tail.len);
    at += outcome->tail.len;
    memset(at, ' ', outcome->pad);
}

struct hg_item_flush hg_item_flush_plan(struct hg_item_flush flush, uint32_t delay, uint64_t now_s,
                                        uint64_t last_cas)
{
    uint64_t at_s = hg_item_expiry(delay, now_s);
    if (at_s <= now_s)
        return (struct hg_item_flush){last_cas, 0};
    return (struct hg_item_flush){flush.cas, at_s};
}

bool hg_item_flush_due(struct hg_item_flush *flush, uint64_t now_s, uint64_t last_cas)
{
    if (flush->at_s == 0 || now_s < flush->at_s)
        return false;
    *flush = (struct hg_item_flush){last_cas, 0};
    return true;
}
