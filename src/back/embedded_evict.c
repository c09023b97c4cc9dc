// embedded_evict - makes room in a full embedded store that is used as a cache
// SPDX-License-Identifier: BSD-3-Clause
#include "back/embedded_evict.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "back/embedded_writer.h"
#include "proto/rowdoc.h"

#define DEPTH_MAX   32
#define TRIES       8    /* samples without anything that may go, before walking */
#define WALK_ENOUGH 64   /* records of a walk among which the oldest is taken */
#define WALK_MAX    1024 /* records of a walk, before giving up */
#define NEAR_MAX    8    /* items looked at on each side of a key */
#define AGE_SMOOTHS 16   /* samples over which the ages are averaged */

int hg_embedded_evict_init(struct hg_embedded_evict *evict, const struct hg_embedded_db *db)
{
    void *at = mmap(NULL, db->map_bytes, PROT_READ, MAP_SHARED, db->lock_fd, 0);
    if (at == MAP_FAILED)
        return -errno;
    evict->pages = (struct hg_embedded_pages){at, 0, db->page_bytes};
    evict->map_bytes = db->map_bytes;
    evict->random = 0x9e3779b97f4a7c15ull; /* any but 0: nobody gains from guessing it */
    return 0;
}

void hg_embedded_evict_fini(struct hg_embedded_evict *evict)
{
    if (evict->pages.at != NULL)
        munmap((void *)(uintptr_t)evict->pages.at, evict->map_bytes);
    evict->pages.at = NULL;
}

void hg_embedded_evict_begin(struct hg_embedded_writer *writer)
{
    struct hg_embedded_evict *evict = &writer->evict;
    struct hg_embedded_db *db = writer->db;
    evict->on =
        evict->pages.at != NULL && atomic_load_explicit(&evict->wanted, memory_order_relaxed);
    evict->looked = false;
    evict->left = HG_EMBEDDED_EVICT_ITEMS;
    evict->evicted = evict->evicted_bytes = evict->evicted_expired = 0;
    db->limit_bytes =
        db->max_bytes - (evict->on ? HG_EMBEDDED_EVICT_PAGES * (uint64_t)db->page_bytes : 0);
}

/* Marsaglia's xorshift64. */
static uint32_t draw(struct hg_embedded_evict *evict, uint32_t below)
{
    evict->random ^= evict->random << 13;
    evict->random ^= evict->random >> 7;
    evict->random ^= evict->random << 17;
    return (uint32_t)((evict->random >> 32) % below);
}

/* ---- the sample ---- */

/* An item of the newest commit. */
struct candidate {
    const uint8_t *page; /* that it lies in */
    MDB_val key;
    uint64_t cas;
};

enum fate { FATE_STAYS, FATE_OLD, FATE_DEAD };

/* What may become of the record; its CAS. */
static enum fate judge(struct hg_embedded_writer *writer, MDB_val key, MDB_val record,
                       uint64_t *ret_cas)
{
    struct hg_item item;
    if (key.mv_size < HG_EMBEDDED_KEY_HEAD || hg_get_u32(key.mv_data) == 0 ||
        !hg_embedded_record_decode(record, &item))
        return FATE_STAYS;
    *ret_cas = item.cas;
    if (hg_embedded_sweep_is_dead(writer, key, record))
        return FATE_DEAD;
    return hg_rowdoc_is(item.flags, item.value) ? FATE_STAYS : FATE_OLD;
}

static enum fate judge_node(struct hg_embedded_writer *writer, const uint8_t *page, unsigned index,
                            struct candidate *ret)
{
    struct hg_embedded_node node;
    uint64_t pages;
    if (!hg_embedded_page_node(&writer->evict.pages, page, index, &node))
        return FATE_STAYS;
    const uint8_t *data = hg_embedded_node_data(&writer->evict.pages, &node, &pages);
    if (data == NULL)
        return FATE_STAYS;
    ret->page = page;
    ret->key = (MDB_val){node.key.len, (void *)(uintptr_t)node.key.at};
    MDB_val record = {node.data_bytes, (void *)(uintptr_t)data};
    return judge(writer, ret->key, record, &ret->cas);
}

/* The newest commit's pages: how long the file is, and where its tree begins. */
static void look_at_file(struct hg_embedded_writer *writer)
{
    struct hg_embedded_evict *evict = &writer->evict;
    struct stat st;
    if (evict->looked)
        return;
    evict->looked = true;
    evict->pages.bytes = 0;
    if (fstat(writer->db->lock_fd, &st) == 0)
        evict->pages.bytes =
            (uint64_t)st.st_size < evict->map_bytes ? (uint64_t)st.st_size : evict->map_bytes;
}

/* A leaf, by choosing at random on the way down; NULL when there is none. */
static const uint8_t *random_leaf(struct hg_embedded_writer *writer)
{
    struct hg_embedded_evict *evict = &writer->evict;
    struct hg_embedded_meta meta;
    look_at_file(writer);
    if (evict->pages.bytes < 2 * (uint64_t)evict->pages.page_bytes)
        return NULL;
    hg_embedded_meta_newest(&evict->pages, &meta);
    uint64_t number = meta.main.root;
    for (unsigned depth = 0; depth < DEPTH_MAX; depth++) {
        struct hg_embedded_node node;
        const uint8_t *page = hg_embedded_page(&evict->pages, number);
        if (page == NULL || hg_embedded_page_nodes(&evict->pages, page) < 1)
            return NULL;
        if (hg_embedded_page_flags(page) == HG_EMBEDDED_PAGE_LEAF)
            return page;
        unsigned nodes = (unsigned)hg_embedded_page_nodes(&evict->pages, page);
        if (!hg_embedded_page_node(&evict->pages, page, draw(evict, nodes), &node))
            return NULL;
        number = node.child;
    }
    return NULL;
}

static void learn_age(uint64_t *age, uint64_t cas)
{
    *age = *age == 0 ? cas : *age - *age / AGE_SMOOTHS + cas / AGE_SMOOTHS;
}

/* The oldest of some random items; a dead one comes before all others. FATE_STAYS: none may go. */
static enum fate choose(struct hg_embedded_writer *writer, struct candidate *ret)
{
    uint64_t ages[HG_EMBEDDED_EVICT_SAMPLE];
    unsigned count = 0;
    for (unsigned i = 0; i < HG_EMBEDDED_EVICT_SAMPLE; i++) {
        struct candidate candidate = {NULL, {0, NULL}, 0};
        const uint8_t *page = random_leaf(writer);
        if (page == NULL)
            continue;
        unsigned nodes = (unsigned)hg_embedded_page_nodes(&writer->evict.pages, page);
        enum fate fate = judge_node(writer, page, draw(&writer->evict, nodes), &candidate);
        if (fate == FATE_STAYS)
            continue;
        if (fate == FATE_DEAD) {
            *ret = candidate;
            return FATE_DEAD;
        }
        unsigned at = count++;
        for (; at > 0 && ages[at - 1] > candidate.cas; at--)
            ages[at] = ages[at - 1];
        ages[at] = candidate.cas;
        if (at == 0)
            *ret = candidate;
    }
    if (count == 0)
        return FATE_STAYS;
    learn_age(&writer->evict.old_cas, ages[0]);
    learn_age(&writer->evict.middle_cas, ages[count / 2]);
    return FATE_OLD;
}

/* ---- removing ---- */

static void count_removed(struct hg_embedded_evict *evict, size_t bytes, enum fate fate)
{
    evict->credit += bytes + HG_EMBEDDED_NODE_HEAD;
    if (fate == FATE_DEAD) {
        evict->evicted_expired++;
    } else {
        evict->evicted++;
        evict->evicted_bytes += bytes;
    }
    if (evict->left > 0)
        evict->left--;
}

static bool is_same(MDB_val a, MDB_val b)
{
    return a.mv_size == b.mv_size && memcmp(a.mv_data, b.mv_data, a.mv_size) == 0;
}

/* Removes the record if it still is what was chosen, which the running transaction may have
   changed. */
static int remove_candidate(struct hg_embedded_writer *writer, MDB_cursor *cursor,
                            const struct candidate *candidate, bool *ret_removed)
{
    MDB_val key = candidate->key, record;
    uint64_t cas = 0;
    int rc = mdb_cursor_get(cursor, &key, &record, MDB_SET_KEY);
    if (rc != 0)
        return rc == MDB_NOTFOUND ? 0 : rc;
    enum fate fate = judge(writer, key, record, &cas);
    if (fate == FATE_STAYS || cas != candidate->cas)
        return 0;
    size_t bytes = key.mv_size + record.mv_size;
    rc = mdb_cursor_del(cursor, 0);
    if (rc == 0) {
        count_removed(&writer->evict, bytes, fate);
        *ret_removed = true;
    }
    return rc;
}

/* Removes the chosen one, and those in its page that are dead or as old as such usually are; or all
   of the page. */
static int remove_chosen(struct hg_embedded_writer *writer, const struct candidate *chosen,
                         MDB_val except, bool whole, bool *ret_removed)
{
    struct hg_embedded_evict *evict = &writer->evict;
    unsigned nodes = (unsigned)hg_embedded_page_nodes(&evict->pages, chosen->page);
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(writer->txn, writer->db->dbi, &cursor);
    if (rc != 0)
        return rc;
    for (unsigned i = 0; i < nodes && rc == 0 && evict->left > 0; i++) {
        struct candidate other = {NULL, {0, NULL}, 0};
        enum fate fate = judge_node(writer, chosen->page, i, &other);
        if (fate == FATE_STAYS || is_same(other.key, except))
            continue;
        if (fate == FATE_DEAD || whole || other.cas <= chosen->cas || other.cas <= evict->old_cas)
            rc = remove_candidate(writer, cursor, &other, ret_removed);
    }
    mdb_cursor_close(cursor);
    return rc;
}

/* The oldest of the next stretch of records that may go; dead ones first. The cursor is left where
   the walk ended. */
static enum fate walk_on(struct hg_embedded_writer *writer, MDB_cursor *cursor, MDB_val except,
                         struct candidate *ret)
{
    struct hg_embedded_evict *evict = &writer->evict;
    enum fate found = FATE_STAYS;
    MDB_val key = {evict->hand_len, evict->hand}, record;
    int rc = mdb_cursor_get(cursor, &key, &record, evict->hand_len > 0 ? MDB_SET_RANGE : MDB_FIRST);
    for (unsigned i = 0; i < WALK_MAX && (i < WALK_ENOUGH || found == FATE_STAYS); i++) {
        uint64_t cas = 0;
        if (rc == MDB_NOTFOUND)
            rc = mdb_cursor_get(cursor, &key, &record, MDB_FIRST);
        if (rc != 0)
            break;
        enum fate fate = is_same(key, except) ? FATE_STAYS : judge(writer, key, record, &cas);
        if (fate > found || (fate == found && fate == FATE_OLD && cas < ret->cas)) {
            found = fate;
            *ret = (struct candidate){NULL, key, cas};
        }
        rc = mdb_cursor_get(cursor, &key, &record, MDB_NEXT);
    }
    evict->hand_len = rc == 0 ? (uint32_t)key.mv_size : 0;
    if (rc == 0)
        memcpy(evict->hand, key.mv_data, key.mv_size);
    return found;
}

static int remove_by_walk(struct hg_embedded_writer *writer, MDB_val except, bool *ret_removed)
{
    struct candidate candidate;
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(writer->txn, writer->db->dbi, &cursor);
    if (rc != 0)
        return rc;
    if (walk_on(writer, cursor, except, &candidate) != FATE_STAYS)
        rc = remove_candidate(writer, cursor, &candidate, ret_removed);
    mdb_cursor_close(cursor);
    return rc;
}

int hg_embedded_evict_some(struct hg_embedded_writer *writer, MDB_val key, bool whole_pages)
{
    for (unsigned i = 0; i < TRIES && writer->evict.left > 0; i++) {
        struct candidate chosen;
        bool removed = false;
        if (choose(writer, &chosen) == FATE_STAYS)
            continue;
        int rc = remove_chosen(writer, &chosen, key, whole_pages, &removed);
        if (rc != 0 || removed)
            return rc;
    }
    bool removed = false;
    int rc = writer->evict.left > 0 ? remove_by_walk(writer, key, &removed) : 0;
    return rc != 0 || removed ? rc : MDB_NOTFOUND;
}

/* Removes records from `at` on in one direction, as long as they may go. */
static int remove_beside(struct hg_embedded_writer *writer, MDB_val at, unsigned most, bool back,
                         bool force, size_t *bytes_wanted)
{
    struct hg_embedded_evict *evict = &writer->evict;
    MDB_cursor *cursor;
    MDB_val key = at, record;
    int rc = mdb_cursor_open(writer->txn, writer->db->dbi, &cursor);
    if (rc != 0)
        return rc;
    rc = mdb_cursor_get(cursor, &key, &record, MDB_SET_RANGE);
    if (back)
        rc = mdb_cursor_get(cursor, &key, &record, rc == 0 ? MDB_PREV : MDB_LAST);
    for (unsigned i = 0; i < most && rc == 0 && *bytes_wanted > 0 && evict->left > 0; i++) {
        uint64_t cas = 0;
        enum fate fate = is_same(key, at) ? FATE_STAYS : judge(writer, key, record, &cas);
        if (fate == FATE_DEAD || (fate == FATE_OLD && (force || cas < evict->middle_cas))) {
            size_t bytes = key.mv_size + record.mv_size;
            rc = mdb_cursor_del(cursor, 0);
            if (rc != 0)
                break;
            count_removed(evict, bytes, fate);
            *bytes_wanted -= bytes < *bytes_wanted ? bytes : *bytes_wanted;
            /* The cursor stands on what followed. */
            rc = mdb_cursor_get(cursor, &key, &record, back ? MDB_PREV : MDB_GET_CURRENT);
            if (rc == EINVAL)
                rc = MDB_NOTFOUND; /* it was the last of all */
        } else {
            rc = mdb_cursor_get(cursor, &key, &record, back ? MDB_PREV : MDB_NEXT);
        }
    }
    mdb_cursor_close(cursor);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

int hg_embedded_evict_near(struct hg_embedded_writer *writer, MDB_val key, size_t bytes, bool force)
{
    size_t each = key.mv_size + bytes + HG_EMBEDDED_NODE_HEAD, before = each, behind = each;
    size_t fit = writer->db->page_bytes / each;
    unsigned most = fit > NEAR_MAX ? NEAR_MAX : fit < 1 ? 1 : (unsigned)fit;
    /* Which of the two lies in the same page is not known. */
    int rc = remove_beside(writer, key, most, true, force, &before);
    if (rc == 0 && (before > 0 || force))
        rc = remove_beside(writer, key, most, false, force, &behind);
    if (rc != 0)
        return rc;
    return before < each || behind < each ? 0 : MDB_NOTFOUND;
}

bool hg_embedded_evict_is_over(struct hg_embedded_writer *writer)
{
    struct hg_embedded_usage usage;
    if (!writer->evict.on)
        return false;
    hg_embedded_usage(writer->db, writer->txn, &usage);
    return usage.used_bytes > writer->db->limit_bytes;
}
