// embedded_check - is a file a sound embedded store? Asked before LMDB maps it
// SPDX-License-Identifier: BSD-3-Clause
#include "back/embedded_check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "back/embedded_db.h"
#include "back/embedded_page.h"
#include "back/embedded_record.h"

#define DEPTH_MAX 32 /* LMDB's own limit of a tree's height */

struct check {
    const char *path;
    char *error;
    size_t error_bytes;
    struct hg_embedded_pages pages;
    struct hg_embedded_meta meta;
    uint64_t size;
    uint8_t *met;                             /* a bit for each page of the file: it has a place */
    uint8_t taken[HG_EMBEDDED_PAGE_MAX / 16]; /* a bit for each two bytes of a page */

    /* of the tree that is walked */
    bool is_main;
    struct hg_embedded_tree seen; /* counted */
    uint8_t last_key[HG_EMBEDDED_KEY_BYTES];
    size_t last_key_len; /* 0: none yet */

    /* of the store */
    bool has_format, has_ceiling;
    uint64_t ceiling;
    struct hg_embedded_found found;
};

static int HG_PRINTF(2, 3) fail(struct check *check, const char *fmt, ...)
{
    char text[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    snprintf(check->error, check->error_bytes, "'%s' %s", check->path, text);
    return -EINVAL;
}

static int damaged(struct check *check, const char *what, uint64_t page)
{
    return fail(check, "is damaged: %s (page %llu)", what, (unsigned long long)page);
}

/* ---- what belongs to one only ---- */

/* Sets `count` bits from `first` on. False when one of them is set. */
static bool claim(uint8_t *bits, uint64_t first, uint64_t count)
{
    for (uint64_t i = first; i < first + count; i++) {
        uint8_t bit = (uint8_t)(1u << (i % 8));
        if ((bits[i / 8] & bit) != 0)
            return false;
        bits[i / 8] |= bit;
    }
    return true;
}

/* "Dirty" and the like among them: the library takes such a page for one that it has in memory. */
static unsigned all_flags(const uint8_t *page)
{
    return hg_embedded_u16(page + 10);
}

/* The library moves nodes by their sizes: two that share bytes would make it write beyond the
   page. */
static bool are_apart(struct check *check, const uint8_t *page, unsigned nodes)
{
    bool is_leaf = hg_embedded_page_flags(page) == HG_EMBEDDED_PAGE_LEAF;
    memset(check->taken, 0, sizeof check->taken);
    for (unsigned i = 0; i < nodes; i++) {
        struct hg_embedded_node node;
        if (!hg_embedded_page_node(&check->pages, page, i, &node))
            return false;
        bool is_big = (node.flags & HG_EMBEDDED_NODE_BIG) != 0;
        size_t bytes = HG_EMBEDDED_NODE_HEAD + node.key.len +
                       (is_leaf ? is_big ? 8 : (size_t)node.data_bytes : 0);
        size_t offset = (size_t)(node.key.at - page) - HG_EMBEDDED_NODE_HEAD;
        if (offset % 2 != 0 || !claim(check->taken, offset / 2, (bytes + 1) / 2))
            return false;
    }
    return true;
}

/* ---- what the leaves hold ---- */

static int look_at_note(struct check *check, struct hg_span key, const uint8_t *data,
                        size_t data_bytes)
{
    char kind = (char)key.at[4];
    if (kind == 'F') {
        if (data_bytes != 8 || memcmp(data, HG_EMBEDDED_FORMAT_NAME, 4) != 0)
            return fail(check, "is an LMDB file, but no embedded store");
        check->has_format = true;
        check->found.format = hg_get_u32(data + 4);
        if (check->found.format != HG_EMBEDDED_FORMAT)
            return fail(check, "has format version %u, this program reads version %u",
                        check->found.format, HG_EMBEDDED_FORMAT);
    } else if (kind == 'C' && data_bytes == 8) {
        check->has_ceiling = true;
        check->ceiling = hg_get_u64(data);
    } else if (kind == 'T' && data_bytes == 4) {
        check->found.tenants++;
    }
    return 0;
}

static int look_at_entry(struct check *check, struct hg_span key, const uint8_t *data,
                         size_t data_bytes, uint64_t page)
{
    struct hg_item item;
    MDB_val record = {data_bytes, (void *)(uintptr_t)data};
    if (key.len < HG_EMBEDDED_KEY_HEAD)
        return fail(check, "is an LMDB file, but no embedded store");
    if (hg_get_u32(key.at) == 0)
        return look_at_note(check, key, data, data_bytes);
    /* The notes come before everything else. */
    if (!check->has_format)
        return fail(check, "is an LMDB file, but no embedded store");
    if (!hg_embedded_record_decode(record, &item))
        return damaged(check, "a record has no head", page);
    check->found.items++;
    check->found.item_bytes += key.len - HG_EMBEDDED_KEY_HEAD + item.value.len;
    if (item.cas > check->found.cas)
        check->found.cas = item.cas;
    return 0;
}

/* A list of free pages: how many, then their numbers, all within the file's claim. */
static int look_at_free(struct check *check, struct hg_span key, const uint8_t *data,
                        size_t data_bytes, uint64_t page)
{
    if (key.len != 8 || data_bytes < 8 || data_bytes % 8 != 0 ||
        hg_embedded_u64(data) > data_bytes / 8 - 1)
        return damaged(check, "a list of free pages has a wrong length", page);
    uint64_t count = hg_embedded_u64(data);
    for (uint64_t i = 1; i <= count; i++) {
        uint64_t number = hg_embedded_u64(data + 8 * i);
        if (number > check->meta.last_page || number < 2)
            return damaged(check, "a free page is none of the file's", page);
        /* The file may end before pages at its end that are free. */
        if (number < check->size / check->pages.page_bytes && !claim(check->met, number, 1))
            return damaged(check, "a free page is used, or free twice", page);
    }
    return 0;
}

static bool is_in_order(struct check *check, struct hg_span key)
{
    bool in_order = true;
    if (check->is_main && check->last_key_len > 0) {
        size_t len = key.len < check->last_key_len ? key.len : check->last_key_len;
        int order = memcmp(check->last_key, key.at, len);
        in_order = order < 0 || (order == 0 && check->last_key_len < key.len);
    } else if (!check->is_main && check->last_key_len == 8 && key.len == 8) {
        in_order = hg_embedded_u64(check->last_key) < hg_embedded_u64(key.at);
    }
    memcpy(check->last_key, key.at, key.len);
    check->last_key_len = key.len;
    return in_order;
}

static int look_at_leaf(struct check *check, const uint8_t *page, uint64_t number, unsigned nodes)
{
    for (unsigned i = 0; i < nodes; i++) {
        struct hg_embedded_node node;
        uint64_t big_pages;
        if (!hg_embedded_page_node(&check->pages, page, i, &node))
            return damaged(check, "an entry does not lie within its page", number);
        if (node.key.len == 0 || node.key.len > HG_EMBEDDED_KEY_BYTES)
            return damaged(check, "a key has a wrong length", number);
        if ((node.flags & ~HG_EMBEDDED_NODE_BIG) != 0)
            return check->is_main ? fail(check, "is an LMDB file, but no embedded store")
                                  : damaged(check, "an entry has unknown flags", number);
        if (!is_in_order(check, node.key))
            return damaged(check, "keys are out of order", number);
        const uint8_t *data = hg_embedded_node_data(&check->pages, &node, &big_pages);
        if (data == NULL ||
            (big_pages > 0 && all_flags(data - HG_EMBEDDED_PAGE_HEAD) != HG_EMBEDDED_PAGE_OVERFLOW))
            return damaged(check, "a long value's pages are missing or not its own", number);
        if (big_pages > 0 && !claim(check->met, hg_embedded_u64(node.data), big_pages))
            return damaged(check, "a long value's pages are used more than once", number);
        check->seen.overflow_pages += big_pages;
        check->seen.entries++;
        int rc = check->is_main ? look_at_entry(check, node.key, data, node.data_bytes, number)
                                : look_at_free(check, node.key, data, node.data_bytes, number);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* ---- the walk ---- */

/* Walks down from page `number`, whose leaves are `levels` - 1 below. */
static int walk(struct check *check, uint64_t number, unsigned levels)
{
    const uint8_t *page = hg_embedded_page(&check->pages, number);
    if (page == NULL)
        return damaged(check, "it ends before a page that it needs", number);
    unsigned kind = all_flags(page);
    int nodes = hg_embedded_page_nodes(&check->pages, page);
    bool is_leaf = levels == 1;
    if (hg_embedded_u64(page) != number || nodes < 1 ||
        kind != (is_leaf ? HG_EMBEDDED_PAGE_LEAF : HG_EMBEDDED_PAGE_BRANCH))
        return damaged(check, "a page is not what its place asks for", number);
    /* Pages that are met again and again would make a small file take for ever. */
    if (!claim(check->met, number, 1))
        return damaged(check, "a page is used more than once", number);
    if (!are_apart(check, page, (unsigned)nodes))
        return damaged(check, "an entry does not lie within its page, or over another", number);
    if (is_leaf) {
        check->seen.leaf_pages++;
        return look_at_leaf(check, page, number, (unsigned)nodes);
    }
    check->seen.branch_pages++;
    for (unsigned i = 0; i < (unsigned)nodes; i++) {
        struct hg_embedded_node node;
        if (!hg_embedded_page_node(&check->pages, page, i, &node))
            return damaged(check, "an entry does not lie within its page", number);
        int rc = walk(check, node.child & 0xffffffffffffull, levels - 1);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int walk_tree(struct check *check, const struct hg_embedded_tree *tree, bool is_main)
{
    check->is_main = is_main;
    check->last_key_len = 0;
    check->seen = (struct hg_embedded_tree){.root = tree->root};
    if (tree->root == HG_EMBEDDED_NO_ROOT)
        return tree->entries == 0 ? 0 : damaged(check, "a tree has no root", 0);
    if (tree->depth == 0 || tree->depth > DEPTH_MAX)
        return damaged(check, "a tree has a wrong height", tree->root);
    int rc = walk(check, tree->root, tree->depth);
    if (rc != 0)
        return rc;
    const struct hg_embedded_tree *seen = &check->seen;
    if (seen->entries != tree->entries || seen->branch_pages != tree->branch_pages ||
        seen->leaf_pages != tree->leaf_pages || seen->overflow_pages != tree->overflow_pages)
        return damaged(check, "a tree has not as much in it as it says", tree->root);
    return 0;
}

static int walk_all(struct check *check)
{
    const struct hg_embedded_tree *main = &check->meta.main;
    check->met = calloc(1, check->size / check->pages.page_bytes / 8 + 1);
    if (check->met == NULL) {
        snprintf(check->error, check->error_bytes, "no memory is left to look at '%s'",
                 check->path);
        return -ENOMEM;
    }
    int rc = walk_tree(check, &check->meta.free, false);
    if (rc == 0)
        rc = walk_tree(check, main, true);
    if (rc != 0)
        return rc;
    if (!check->has_format)
        return fail(check, "is an LMDB file, but no embedded store");
    if (!check->has_ceiling || check->ceiling < check->found.cas)
        return fail(check, "is damaged: its CAS ceiling is missing or too low");
    check->found.used_bytes = (main->branch_pages + main->leaf_pages + main->overflow_pages) *
                              (uint64_t)check->pages.page_bytes;
    return 0;
}

/* ---- the head ---- */

static bool is_power_of_two(uint32_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

static int check_meta(struct check *check, const struct hg_embedded_meta *meta)
{
    if (meta->magic == __builtin_bswap32(HG_EMBEDDED_LMDB_MAGIC))
        return fail(check, "was written by a machine with another byte order");
    if (meta->magic != HG_EMBEDDED_LMDB_MAGIC)
        return fail(check, "is no embedded store: it is no LMDB file");
    if (meta->version != HG_EMBEDDED_LMDB_VERSION)
        return fail(check,
                    "is no embedded store: it has version %u of LMDB's format, this program "
                    "reads version %u",
                    meta->version, HG_EMBEDDED_LMDB_VERSION);
    if (!is_power_of_two(meta->page_bytes) || meta->page_bytes < HG_EMBEDDED_PAGE_MIN ||
        meta->page_bytes > HG_EMBEDDED_PAGE_MAX)
        return fail(check, "is damaged: pages of %u bytes", meta->page_bytes);
    return 0;
}

/* Maps the file and looks at its head. The map stays in check->pages. */
static int open_pages(struct check *check, int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        int rc = -errno;
        snprintf(check->error, check->error_bytes, "cannot look at '%s': %s", check->path,
                 strerror(-rc));
        return rc;
    }
    if (!S_ISREG(st.st_mode))
        return fail(check, "is no file");
    check->size = (uint64_t)st.st_size;
    if (check->size < 2 * HG_EMBEDDED_PAGE_MIN)
        return fail(check, "is no embedded store: it has only %llu bytes",
                    (unsigned long long)check->size);
    void *at = mmap(NULL, check->size, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        int rc = -errno;
        snprintf(check->error, check->error_bytes, "cannot read '%s': %s", check->path,
                 strerror(-rc));
        return rc;
    }
    check->pages = (struct hg_embedded_pages){at, check->size, 0};
    struct hg_embedded_meta first, second;
    hg_embedded_meta_decode(at, &first);
    int rc = check_meta(check, &first);
    if (rc != 0)
        return rc;
    check->pages.page_bytes = first.page_bytes;
    if (check->size < 2 * (uint64_t)first.page_bytes)
        return fail(check, "is damaged: it has only %llu bytes", (unsigned long long)check->size);
    hg_embedded_meta_decode((const uint8_t *)at + first.page_bytes, &second);
    rc = check_meta(check, &second);
    if (rc == 0 && second.page_bytes != first.page_bytes)
        rc = fail(check, "is damaged: its two heads differ");
    hg_embedded_meta_newest(&check->pages, &check->meta);
    return rc;
}

static void close_pages(struct check *check)
{
    if (check->pages.at != NULL)
        munmap((void *)(uintptr_t)check->pages.at, check->pages.bytes);
    free(check->met);
}

int hg_embedded_check(int fd, const char *path, struct hg_embedded_found *ret, char *error,
                      size_t error_bytes)
{
    struct check check = {.path = path, .error = error, .error_bytes = error_bytes};
    int rc = open_pages(&check, fd);
    if (rc == 0)
        rc = walk_all(&check);
    close_pages(&check);
    if (rc == 0)
        *ret = check.found;
    return rc;
}

int hg_embedded_check_quickly(int fd, const char *path, char *error, size_t error_bytes)
{
    struct check check = {.path = path, .error = error, .error_bytes = error_bytes};
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
        return 0;
    int rc = open_pages(&check, fd);
    if (rc == 0 && check.meta.last_page >= check.size / check.pages.page_bytes)
        rc = walk_all(&check);
    close_pages(&check);
    return rc;
}
