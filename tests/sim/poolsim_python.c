// poolsim_python - the rules of Gel's older connection pool (Python), as a reference
// SPDX-License-Identifier: BSD-3-Clause
//
// Written from a description. Modes: A one block; B several, demand below the capacity; C demand
// above it, quotas by demand; D as many blocks as connections or more, one connection each in turn.
// A timer that runs only while queries wait looks at the mode. Exclusive checkout at any depth.
#include <math.h>
#include <stdlib.h>
#include "poolsim.h"

#define MIN_CONNECT_US 10000
#define MIN_QUERY_US   1000
#define RETRIES        3
#define DBS            64

enum mode { MODE_A, MODE_B, MODE_C, MODE_D };

/* A mean of the last so many values. */
struct recent {
    double values[20];
    uint32_t size, count;
};

struct block {
    bool known, newcomer; // newcomer: in the line of blocks that wait for their first connection
    uint64_t turn;        // order: of the round robin
    uint64_t came;        // order: of the newcomers
    uint32_t total, coming, busy, failures;
    int64_t quota;
    struct recent query_us, demanded;
    uint64_t connected_us;
};

struct entry {
    struct poolsim_conn *conn;
    uint32_t db;
    bool idle;
    uint64_t begun_us, idle_us, used, taken_us;
};

struct python {
    struct poolsim *sim;
    struct poolsim_conf conf;
    struct entry *entries;
    struct block blocks[DBS];
    uint32_t total;
    struct recent connect_us;
    enum mode mode;
    uint64_t orders;
    uint64_t gc_us; // when idle connections are looked for; 0: nobody asked
    bool ticking;
    uint64_t tick_us;
};

static void *python_make(struct poolsim *sim, const struct poolsim_conf *conf)
{
    struct python *python = calloc(1, sizeof(*python));
    if (python == NULL)
        abort();
    python->sim = sim;
    python->conf = *conf;
    python->connect_us.size = 10;
    python->entries = calloc(conf->capacity + 1, sizeof(*python->entries));
    if (python->entries == NULL)
        abort();
    return python;
}

static void python_free(void *pool)
{
    struct python *python = pool;
    free(python->entries);
    free(python);
}

static void add(struct recent *recent, double value)
{
    recent->values[recent->count++ % recent->size] = value;
}

static double mean(const struct recent *recent)
{
    double sum = 0;
    uint32_t n = 0;
    while (n < recent->count && n < recent->size)
        sum += recent->values[n++];
    return n > 0 ? sum / n : 0;
}

static uint64_t hold_us(const struct python *python)
{
    return (uint64_t)fmax(mean(&python->connect_us), MIN_CONNECT_US);
}

static uint32_t waiting(const struct python *python, uint32_t db)
{
    return poolsim_waiting(python->sim, db);
}

/* The idle connection of `db` that was used last, or longest ago. */
static struct entry *find_idle(struct python *python, uint32_t db, bool last)
{
    struct entry *found = NULL;
    const struct block *block = &python->blocks[db];
    if (block->total == block->coming + block->busy)
        return NULL;
    for (uint32_t i = 0; i <= python->conf.capacity; i++) {
        struct entry *entry = &python->entries[i];
        if (entry->idle && entry->db == db &&
            (found == NULL || (last ? entry->used > found->used : entry->used < found->used)))
            found = entry;
    }
    return found;
}

static void serve(struct python *python, uint32_t db)
{
    struct entry *entry;
    while (waiting(python, db) > 0 && (entry = find_idle(python, db, true)) != NULL) {
        entry->idle = false;
        entry->taken_us = poolsim_now_us(python->sim);
        python->blocks[db].busy++;
        poolsim_serve(python->sim, entry->conn);
    }
}

static void create(struct python *python, uint32_t db)
{
    struct poolsim_conn *conn = poolsim_connect(python->sim, db);
    if (conn == NULL)
        return;
    python->entries[conn->index] =
        (struct entry){.conn = conn, .db = db, .begun_us = poolsim_now_us(python->sim)};
    python->total++;
    python->blocks[db].total++;
    python->blocks[db].coming++;
}

/* The entry is idle, or just released: in neither count. */
static void transfer(struct python *python, struct entry *entry, uint32_t db)
{
    if (!poolsim_move(python->sim, entry->conn, db))
        return;
    python->blocks[entry->db].total--;
    entry->idle = false;
    entry->db = db;
    entry->begun_us = poolsim_now_us(python->sim);
    python->blocks[db].total++;
    python->blocks[db].coming++;
    python->blocks[db].newcomer = false;
}

/* Who is to have a connection that `db` can spare; conf.dbs if nobody is. */
static uint32_t find_receiver(const struct python *python, uint32_t db)
{
    uint32_t none = python->conf.dbs, first = none, starving = none, below = none;
    for (uint32_t i = 0; i < none; i++) {
        const struct block *block = &python->blocks[i];
        if (!block->known || i == db)
            continue;
        if (block->newcomer && waiting(python, i) > 0 && block->total == 0 &&
            (first == none || block->came < python->blocks[first].came))
            first = i;
        if (block->total == 0 && waiting(python, i) > 0 &&
            (starving == none || waiting(python, i) > waiting(python, starving)))
            starving = i;
        if (block->quota > block->total &&
            (below == none || block->quota - block->total >
                                  python->blocks[below].quota - python->blocks[below].total))
            below = i;
    }
    return first != none ? first : starving != none ? starving : below;
}

static bool may_give(const struct python *python, uint32_t db)
{
    const struct block *block = &python->blocks[db];
    if (python->mode == MODE_D)
        return !(block->total == 1 && waiting(python, db) > 0 &&
                 poolsim_now_us(python->sim) - block->connected_us < hold_us(python));
    return python->mode == MODE_C && block->total > block->quota;
}

static void start_ticking(struct python *python)
{
    if (python->ticking)
        return;
    python->ticking = true;
    python->tick_us = poolsim_now_us(python->sim) + hold_us(python);
    poolsim_tick_in(python->sim, hold_us(python));
}

static void python_acquire(void *pool, uint32_t db)
{
    struct python *python = pool;
    struct block *block = &python->blocks[db];
    if (!block->known) {
        block->known = true;
        block->query_us.size = 20;
        block->demanded.size = 3;
        block->turn = ++python->orders;
        block->quota = 1;
    }
    uint32_t blocks = 0;
    for (uint32_t i = 0; i < python->conf.dbs; i++)
        blocks += python->blocks[i].known;
    int64_t spare = (int64_t)block->total - block->busy - (waiting(python, db) - 1);
    bool wants = blocks == 1 ? spare <= 1 : block->total < block->quota || spare <= 0;
    if (python->total < python->conf.capacity) {
        if (wants || block->total == 0)
            create(python, db);
    } else if (block->total == 0) {
        if (!block->newcomer) {
            block->newcomer = true;
            block->came = ++python->orders;
        }
        for (uint32_t i = 0; i < python->conf.dbs; i++) {
            struct entry *entry = i != db ? find_idle(python, i, false) : NULL;
            if (entry != NULL && python->blocks[i].total > python->blocks[i].quota) {
                transfer(python, entry, db);
                break;
            }
        }
    }
    serve(python, db);
    start_ticking(python);
}

static void python_release(void *pool, struct poolsim_conn *conn)
{
    struct python *python = pool;
    struct entry *entry = &python->entries[conn->index];
    struct block *block = &python->blocks[conn->db];
    uint64_t now_us = poolsim_now_us(python->sim);
    block->busy--;
    add(&block->query_us, (double)(now_us - entry->taken_us));
    if (may_give(python, conn->db)) {
        uint32_t db = find_receiver(python, conn->db);
        if (db < python->conf.dbs) {
            transfer(python, entry, db);
            return;
        }
    }
    entry->idle = true;
    entry->idle_us = now_us;
    entry->used = ++python->orders;
    serve(python, conn->db);
    if (entry->idle && python->gc_us == 0) {
        python->gc_us = now_us + python->conf.idle_us;
        poolsim_tick_in(python->sim, python->conf.idle_us);
    }
}

static void python_connected(void *pool, struct poolsim_conn *conn)
{
    struct python *python = pool;
    struct entry *entry = &python->entries[conn->index];
    struct block *block = &python->blocks[conn->db];
    uint64_t now_us = poolsim_now_us(python->sim);
    add(&python->connect_us, (double)(now_us - entry->begun_us));
    block->coming--;
    block->failures = 0;
    block->newcomer = false;
    block->connected_us = now_us;
    entry->idle = true;
    entry->idle_us = now_us;
    entry->used = ++python->orders;
    serve(python, conn->db);
}

/* Tries again at once, RETRIES times in a row; then all who wait for this block are refused. */
static void python_failed(void *pool, struct poolsim_conn *conn)
{
    struct python *python = pool;
    struct entry *entry = &python->entries[conn->index];
    struct block *block = &python->blocks[conn->db];
    add(&python->connect_us, (double)(poolsim_now_us(python->sim) - entry->begun_us));
    block->coming--;
    block->total--;
    python->total--;
    if (++block->failures <= RETRIES)
        create(python, conn->db);
    else
        while (poolsim_refuse(python->sim, conn->db))
            ;
}

static void python_closed(void *pool, struct poolsim_conn *conn)
{
    struct python *python = pool;
    struct block *block = &python->blocks[conn->db];
    python->total--, block->total--;
    block->coming--; // it was counted as not idle while it closed
}

static void python_lost(void *pool, struct poolsim_conn *conn)
{
    struct python *python = pool;
    struct entry *entry = &python->entries[conn->index];
    python->total--;
    python->blocks[conn->db].total--;
    if (!entry->idle) {
        python->blocks[conn->db].busy--;
        create(python, conn->db);
    }
    entry->idle = false;
}

/* The timer */

static void discard(struct python *python, struct entry *entry)
{
    poolsim_close(python->sim, entry->conn);
    entry->idle = false;
    python->blocks[entry->db].coming++;
}

static double demand_of(struct python *python, uint32_t db)
{
    struct block *block = &python->blocks[db];
    uint32_t now = waiting(python, db) + block->busy;
    return fmax(mean(&block->demanded), now) * fmax(mean(&block->query_us), MIN_QUERY_US);
}

/* Cumulative rounding of what the small blocks leave, over all that have a demand. */
static void set_quotas_by_demand(struct python *python, double sum)
{
    double capacity = python->conf.capacity, left = capacity, acc = 0;
    for (uint32_t db = 0; db < python->conf.dbs; db++) {
        double share = python->blocks[db].known ? demand_of(python, db) / sum * capacity : 0;
        if (share > 0 && share <= 1)
            left--;
    }
    for (uint32_t db = 0; db < python->conf.dbs; db++) {
        double before = rint(acc);
        if (!python->blocks[db].known)
            continue;
        acc += demand_of(python, db) / sum * left;
        python->blocks[db].quota = (int64_t)(rint(acc) - before);
    }
}

static int compare_turns(const void *a, const void *b)
{
    const struct block *const *x = a, *const *y = b;
    return (*x)->turn < (*y)->turn ? -1 : (*x)->turn > (*y)->turn;
}

/* One connection each, in turn: who has just got one keeps it, who is given one goes to the end. */
static void set_quotas_in_turn(struct python *python)
{
    struct block *order[DBS];
    uint32_t n = 0, left = python->conf.capacity;
    for (uint32_t db = 0; db < python->conf.dbs; db++) {
        struct block *block = &python->blocks[db];
        bool needs = block->known && waiting(python, db) + block->busy > 0;
        block->quota = 0;
        if (!needs)
            continue;
        if (block->total == 1 && left > 0 &&
            (block->coming == 1 ||
             poolsim_now_us(python->sim) - block->connected_us < hold_us(python))) {
            block->quota = 1;
            left--;
        } else {
            if (block->total > 0)
                block->turn = ++python->orders;
            order[n++] = block;
        }
    }
    qsort(order, n, sizeof(struct block *), compare_turns);
    for (uint32_t i = 0; i < n && left > 0; i++, left--)
        order[i]->quota = 1;
}

static void choose_mode(struct python *python)
{
    uint32_t known = 0, needing = 0, demanded = 0;
    double sum = 0;
    for (uint32_t db = 0; db < python->conf.dbs; db++) {
        struct block *block = &python->blocks[db];
        if (!block->known)
            continue;
        uint32_t now = waiting(python, db) + block->busy;
        add(&block->demanded, now);
        if (block->total == 0 && now == 0 && mean(&block->demanded) <= 0) {
            block->known = false;
            continue;
        }
        known++;
        needing += now > 0;
        demanded += now;
        sum += demand_of(python, db);
    }
    if (known <= 1) {
        python->mode = MODE_A;
        for (uint32_t db = 0; db < python->conf.dbs; db++)
            python->blocks[db].quota = python->conf.capacity;
    } else if (needing >= python->conf.capacity) {
        python->mode = MODE_D;
        set_quotas_in_turn(python);
    } else if (demanded < python->conf.capacity && python->total < python->conf.capacity) {
        python->mode = MODE_B;
        for (uint32_t db = 0; db < python->conf.dbs; db++)
            python->blocks[db].quota = waiting(python, db) + python->blocks[db].busy;
    } else if (sum > 0) {
        python->mode = MODE_C;
        set_quotas_by_demand(python, sum);
    }
}

static void rebalance(struct python *python)
{
    for (uint32_t db = 0; db < python->conf.dbs; db++) {
        struct block *block = &python->blocks[db];
        struct entry *entry;
        while (block->total > block->quota && (entry = find_idle(python, db, false)) != NULL) {
            uint32_t to = find_receiver(python, db);
            if (to == python->conf.dbs)
                break;
            transfer(python, entry, to);
        }
    }
    for (uint32_t db = 0; db < python->conf.dbs; db++) {
        struct block *block = &python->blocks[db];
        while (block->known && block->total < block->quota && python->total < python->conf.capacity)
            create(python, db);
    }
}

/* Not in the description: without this a block whose last connection went away while it had
   queries would wait for its next query. */
static void look_after_forgotten(struct python *python)
{
    for (uint32_t db = 0; db < python->conf.dbs; db++)
        if (waiting(python, db) > 0 && python->blocks[db].total == 0 &&
            python->total < python->conf.capacity)
            create(python, db);
}

static void collect(struct python *python)
{
    uint64_t now_us = poolsim_now_us(python->sim);
    bool left = false;
    for (uint32_t i = 0; i <= python->conf.capacity && python->mode != MODE_D; i++) {
        struct entry *entry = &python->entries[i];
        if (!entry->idle)
            continue;
        if (now_us - entry->idle_us >= python->conf.idle_us)
            discard(python, entry);
        else
            left = true;
    }
    python->gc_us = left || python->mode == MODE_D ? now_us + python->conf.idle_us : 0;
}

static uint64_t python_tick(void *pool)
{
    struct python *python = pool;
    uint64_t now_us = poolsim_now_us(python->sim), next_us = 0;
    if (python->ticking && now_us >= python->tick_us) {
        bool any = false;
        choose_mode(python);
        if (python->mode >= MODE_C)
            rebalance(python);
        else
            look_after_forgotten(python);
        for (uint32_t db = 0; db < python->conf.dbs; db++)
            any |= waiting(python, db) > 0;
        python->ticking = any;
        python->tick_us = now_us + hold_us(python);
    }
    if (python->gc_us > 0 && now_us >= python->gc_us)
        collect(python);
    if (python->ticking)
        next_us = python->tick_us;
    if (python->gc_us > 0 && (next_us == 0 || python->gc_us < next_us))
        next_us = python->gc_us;
    return next_us > now_us ? next_us - now_us : 0;
}

static uint32_t python_count(void *pool)
{
    return ((const struct python *)pool)->total;
}

const struct poolsim_pool poolsim_python = {
    .name = "gel-python",
    .make = python_make,
    .free = python_free,
    .acquire = python_acquire,
    .release = python_release,
    .connected = python_connected,
    .failed = python_failed,
    .closed = python_closed,
    .lost = python_lost,
    .tick = python_tick,
    .count = python_count,
};
