// embedded_page - pages of an LMDB file, read past the library
// SPDX-License-Identifier: BSD-3-Clause
//
//   page   [number u64][pad u16][flags u16][lower u16][upper u16][offsets u16 ...] ... [nodes]
//   node   [lo u16][hi u16][flags u16][key bytes u16][key][data, or the number of its pages]
//
// Format version 1 of LMDB 0.9 (lmdb's mdb.c: MDB_page, MDB_node, MDB_meta, MDB_db), numbers in the
// machine's order. Needed for what the library cannot do: to judge a file before the library maps
// it, and to pick items at random. Every function checks what it reads against the page, and every
// page against the file; nothing here trusts a byte. Pure.
#ifndef HG_BACK_EMBEDDED_PAGE_H
#define HG_BACK_EMBEDDED_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/span.h"

#define HG_EMBEDDED_PAGE_HEAD     16
#define HG_EMBEDDED_NODE_HEAD     8
#define HG_EMBEDDED_PAGE_MIN      512
#define HG_EMBEDDED_PAGE_MAX      65536
#define HG_EMBEDDED_LMDB_MAGIC    0xbeefc0deu
#define HG_EMBEDDED_LMDB_VERSION  1u
#define HG_EMBEDDED_NO_ROOT       UINT64_MAX
#define HG_EMBEDDED_META_BYTES    152 /* of page head and meta together */
#define HG_EMBEDDED_PAGE_BRANCH   0x01
#define HG_EMBEDDED_PAGE_LEAF     0x02
#define HG_EMBEDDED_PAGE_OVERFLOW 0x04
#define HG_EMBEDDED_PAGE_META     0x08
#define HG_EMBEDDED_PAGE_KINDS    0x6f /* all but "dirty", which means nothing in a file */
#define HG_EMBEDDED_NODE_BIG      0x01

/* What is mapped of a file. */
struct hg_embedded_pages {
    const uint8_t *at;
    uint64_t bytes; /* of the file: nothing beyond is touched */
    uint32_t page_bytes;
};

/* One tree of the file. */
struct hg_embedded_tree {
    uint16_t flags, depth;
    uint64_t branch_pages, leaf_pages, overflow_pages, entries, root;
};

struct hg_embedded_meta {
    uint32_t magic, version, page_bytes;
    struct hg_embedded_tree free, main;
    uint64_t last_page, transaction;
};

struct hg_embedded_node {
    uint16_t flags;
    struct hg_span key;
    uint64_t child;      /* of a branch */
    uint32_t data_bytes; /* of a leaf */
    const uint8_t *data; /* of a leaf; of a big one the number of its pages */
};

static inline uint16_t hg_embedded_u16(const uint8_t *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint32_t hg_embedded_u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint64_t hg_embedded_u64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline void hg_embedded_tree_decode(const uint8_t *at, struct hg_embedded_tree *ret)
{
    ret->flags = hg_embedded_u16(at + 4);
    ret->depth = hg_embedded_u16(at + 6);
    ret->branch_pages = hg_embedded_u64(at + 8);
    ret->leaf_pages = hg_embedded_u64(at + 16);
    ret->overflow_pages = hg_embedded_u64(at + 24);
    ret->entries = hg_embedded_u64(at + 32);
    ret->root = hg_embedded_u64(at + 40);
}

/* Of a meta page of at least HG_EMBEDDED_META_BYTES. */
static inline void hg_embedded_meta_decode(const uint8_t *page, struct hg_embedded_meta *ret)
{
    const uint8_t *at = page + HG_EMBEDDED_PAGE_HEAD;
    ret->magic = hg_embedded_u32(at);
    ret->version = hg_embedded_u32(at + 4);
    ret->page_bytes = hg_embedded_u32(at + 24);
    hg_embedded_tree_decode(at + 24, &ret->free);
    hg_embedded_tree_decode(at + 72, &ret->main);
    ret->last_page = hg_embedded_u64(at + 120);
    ret->transaction = hg_embedded_u64(at + 128);
}

/* The meta page of the newest commit; the file has both. */
static inline void hg_embedded_meta_newest(const struct hg_embedded_pages *pages,
                                           struct hg_embedded_meta *ret)
{
    struct hg_embedded_meta other;
    hg_embedded_meta_decode(pages->at, ret);
    hg_embedded_meta_decode(pages->at + pages->page_bytes, &other);
    if (other.transaction > ret->transaction)
        *ret = other;
}

/* A page by number, or NULL when the file does not have it. */
static inline const uint8_t *hg_embedded_page(const struct hg_embedded_pages *pages,
                                              uint64_t number)
{
    if (number >= pages->bytes / pages->page_bytes)
        return NULL;
    return pages->at + number * pages->page_bytes;
}

static inline unsigned hg_embedded_page_flags(const uint8_t *page)
{
    return hg_embedded_u16(page + 10) & HG_EMBEDDED_PAGE_KINDS;
}

/* How many nodes a branch or leaf has, or -1 when its head makes no sense. */
static inline int hg_embedded_page_nodes(const struct hg_embedded_pages *pages, const uint8_t *page)
{
    uint32_t lower = hg_embedded_u16(page + 12), upper = hg_embedded_u16(page + 14);
    if (lower < HG_EMBEDDED_PAGE_HEAD || lower % 2 != 0 || lower > upper ||
        upper > pages->page_bytes)
        return -1;
    return (int)((lower - HG_EMBEDDED_PAGE_HEAD) / 2);
}

/* Node `index`, below the number of nodes. False when it does not lie within its page. */
static inline bool hg_embedded_page_node(const struct hg_embedded_pages *pages, const uint8_t *page,
                                         unsigned index, struct hg_embedded_node *ret)
{
    uint32_t upper = hg_embedded_u16(page + 14);
    uint32_t offset = hg_embedded_u16(page + HG_EMBEDDED_PAGE_HEAD + 2 * (size_t)index);
    if (offset < upper || offset + HG_EMBEDDED_NODE_HEAD > pages->page_bytes)
        return false;
    const uint8_t *at = page + offset;
    uint32_t lo = hg_embedded_u16(at), hi = hg_embedded_u16(at + 2);
    uint32_t key_bytes = hg_embedded_u16(at + 6);
    uint32_t room = pages->page_bytes - offset - HG_EMBEDDED_NODE_HEAD;
    if (key_bytes > room)
        return false;
    ret->flags = hg_embedded_u16(at + 4);
    ret->key = hg_span(at + HG_EMBEDDED_NODE_HEAD, key_bytes);
    ret->data_bytes = lo | hi << 16;
    ret->child = ret->data_bytes | (uint64_t)ret->flags << 32;
    ret->data = at + HG_EMBEDDED_NODE_HEAD + key_bytes;
    if ((hg_embedded_page_flags(page) & HG_EMBEDDED_PAGE_BRANCH) != 0)
        return true;
    uint32_t here = (ret->flags & HG_EMBEDDED_NODE_BIG) != 0 ? 8 : ret->data_bytes;
    return here <= room - key_bytes;
}

/* The data of a leaf's node, wherever it lies; NULL when its pages make no sense. */
static inline const uint8_t *hg_embedded_node_data(const struct hg_embedded_pages *pages,
                                                   const struct hg_embedded_node *node,
                                                   uint64_t *ret_pages)
{
    *ret_pages = 0;
    if ((node->flags & HG_EMBEDDED_NODE_BIG) == 0)
        return node->data;
    uint64_t number = hg_embedded_u64(node->data);
    const uint8_t *page = hg_embedded_page(pages, number);
    if (page == NULL || hg_embedded_u64(page) != number ||
        hg_embedded_page_flags(page) != HG_EMBEDDED_PAGE_OVERFLOW)
        return NULL;
    uint64_t count = hg_embedded_u32(page + 12);
    if (count == 0 || count > pages->bytes / pages->page_bytes - number ||
        count * pages->page_bytes < HG_EMBEDDED_PAGE_HEAD + (uint64_t)node->data_bytes)
        return NULL;
    *ret_pages = count;
    return page + HG_EMBEDDED_PAGE_HEAD;
}

#endif
