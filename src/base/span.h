// span - a view of bytes that somebody else owns
// SPDX-License-Identifier: BSD-3-Clause
//
// A span never owns and never ends in a zero byte by promise. Whoever hands one out says until
// when it holds. Pure.
#ifndef HG_BASE_SPAN_H
#define HG_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct hg_span {
    const uint8_t *at;
    size_t len;
};

#define HG_SPAN_NONE   ((struct hg_span){NULL, 0})
#define HG_SPAN_LIT(s) ((struct hg_span){(const uint8_t *)(s), sizeof(s) - 1})

static inline struct hg_span hg_span(const void *at, size_t len)
{
    return (struct hg_span){(const uint8_t *)at, len};
}

static inline struct hg_span hg_span_str(const char *text)
{
    return hg_span(text, strlen(text));
}

static inline bool hg_span_is(struct hg_span span, const char *text)
{
    size_t len = strlen(text);
    return span.len == len && memcmp(span.at, text, len) == 0;
}

static inline bool hg_span_equal(struct hg_span a, struct hg_span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

#endif
