// attr - compiler attributes under names of our own
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_BASE_ATTR_H
#define HG_BASE_ATTR_H

#define HG_MUST_USE          __attribute__((warn_unused_result))
#define HG_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define HG_LIKELY(x)         __builtin_expect(!!(x), 1)
#define HG_UNLIKELY(x)       __builtin_expect(!!(x), 0)
#define HG_ALWAYS_INLINE     inline __attribute__((always_inline))
#define HG_CACHE_LINE        64

/* The structure of which `member` at `ptr` is a part. */
#define HG_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define HG_COUNT_OF(array)                 (sizeof(array) / sizeof((array)[0]))

#endif
