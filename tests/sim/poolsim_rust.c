// poolsim_rust - the rules of Gel's newer connection pool (Rust), as a reference
// SPDX-License-Identifier: BSD-3-Clause
//
// Written from a description of the algorithm, its traps included: an acquire opens a connection
// while there is room even if one is idle; a failed connection holds its room until a query meets
// it; all targets are 0 when there are more demanding blocks than room; maxima are reset before
// they are looked at. Exclusive checkout, whatever the depth. Terms whose weight is 0 are left out.
// All arithmetic is in whole milliseconds and truncates, as there.
#include <stdlib.h>
#include "poolsim.h"

#define TICK_US       10000
#define GC_EVERY_US   500000
#define GC_PARTS      120
#define SAMPLES       32
#define DEMANDS       16
#define DEMAND_MIN    16
#define ROUNDS        5
#define PERCENT       5
#define SELF_BOOST    46
#define NO_SCORE      INT64_MIN
#define DBS           64
#define WEIGHT_WAIT   61
#define WEIGHT_ACTIVE 31

enum state { NONE, CONNECTING, IDLE, ACTIVE, DISCONNECTING, STATES };

struct entry {
    struct poolsim_conn *conn;
    enum state state;
    uint32_t db;
    uint64_t since_us, used; // used: order of the last use
};

struct mean {
    uint32_t values[SAMPLES], count;
};

struct block {
    bool known;
    uint32_t in[STATES], failed; // connections by state
    uint32_t max_active, max_waiting;
    struct mean hold, connect, disconnect;
    uint32_t demands[DEMANDS], demand_count;
    uint64_t demand;
    int64_t target;
    uint64_t youngest_us;
};

struct rust {
    struct poolsim *sim;
    struct poolsim_conf conf;
    struct entry *entries;
    struct block blocks[DBS];
    uint64_t uses, gc_us;
};

static void *rust_make(struct poolsim *sim, const struct poolsim_conf *conf)
{
    struct rust *rust = calloc(1, sizeof(*rust));
    if (rust == NULL)
        abort();
    rust->sim = sim;
    rust->conf = *conf;
    rust->entries = calloc(conf->capacity + 1, sizeof(*rust->entries));
    if (rust->entries == NULL)
        abort();
    return rust;
}

static void rust_free(void *pool)
{
    struct rust *rust = pool;
    free(rust->entries);
    free(rust);
}

/* What is measured */

static void add(struct mean *mean, uint64_t us)
{
    mean->values[mean->count++ % SAMPLES] = (uint32_t)(us / 1000);
}

static int64_t mean_ms(const struct mean *mean)
{
    uint32_t n = mean->count < SAMPLES ? mean->count : SAMPLES;
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += mean->values[i];
    return n > 0 ? sum / n : 0;
}

static int64_t at_least_1(int64_t value)
{
    return value > 1 ? value : 1;
}

static int64_t total_of(const struct block *block)
{
    return block->in[CONNECTING] + block->in[IDLE] + block->in[ACTIVE] + block->in[DISCONNECTING] +
           block->failed;
}

static int64_t total(const struct rust *rust)
{
    int64_t sum = 0;
    for (uint32_t db = 0; db < rust->conf.dbs; db++)
        sum += total_of(&rust->blocks[db]);
    return sum;
}

/* The one mover between states; what was measured in the old one is kept. */
static void set_state(struct rust *rust, struct entry *entry, enum state state)
{
    struct block *block = &rust->blocks[entry->db];
    uint64_t now_us = poolsim_now_us(rust->sim), us = now_us - entry->since_us;
    if (entry->state != NONE)
        block->in[entry->state]--;
    if (entry->state == CONNECTING)
        add(&block->connect, us);
    else if (entry->state == ACTIVE)
        add(&block->hold, us);
    else if (entry->state == DISCONNECTING)
        add(&block->disconnect, us);
    if (state != NONE)
        block->in[state]++;
    entry->state = state;
    entry->since_us = now_us;
    if (block->in[ACTIVE] > block->max_active)
        block->max_active = block->in[ACTIVE];
}

static void insert(struct rust *rust, struct entry *entry, uint32_t db)
{
    entry->db = db;
    entry->state = NONE;
    set_state(rust, entry, CONNECTING);
    rust->blocks[db].youngest_us = poolsim_now_us(rust->sim);
}

/* Scores */

struct terms {
    int64_t waiting, hold, reconnect, youngest, oldest;
};

static struct terms terms_of(const struct rust *rust, uint32_t db)
{
    const struct block *block = &rust->blocks[db];
    uint64_t now_us = poolsim_now_us(rust->sim);
    struct terms terms;
    terms.waiting = (int64_t)poolsim_waiting(rust->sim, db) - block->in[CONNECTING];
    terms.waiting = terms.waiting > 0 ? terms.waiting : 0;
    terms.hold = at_least_1(mean_ms(&block->hold));
    terms.reconnect = at_least_1(mean_ms(&block->connect) + mean_ms(&block->disconnect));
    terms.youngest = (int64_t)((now_us - block->youngest_us) / 1000);
    terms.oldest = (int64_t)((now_us - poolsim_oldest_us(rust->sim, db)) / 1000);
    return terms;
}

static int64_t hunger(const struct rust *rust, uint32_t db, bool releasing)
{
    const struct block *block = &rust->blocks[db];
    struct terms t = terms_of(rust, db);
    int64_t n = total_of(block) - releasing;
    if (!block->known || n > block->target || (n == block->target && t.waiting < 1))
        return NO_SCORE;
    return t.oldest / 35 + 2 * t.waiting + (block->target - n) / 3 + t.hold / (611 * t.reconnect) -
           t.youngest / (39 * t.reconnect);
}

static int64_t overfull(const struct rust *rust, uint32_t db)
{
    const struct block *block = &rust->blocks[db];
    struct terms t = terms_of(rust, db);
    int64_t over = total_of(block) - block->target;
    if (over <= 0 || block->in[IDLE] == 0)
        return NO_SCORE;
    return 423 * (int64_t)block->in[IDLE] + over / 3 - t.youngest / (59 * t.reconnect) -
           194 * t.waiting - t.waiting * t.hold / (98 * t.reconnect) +
           t.hold / (696 * t.reconnect) - 60 * t.hold / t.reconnect;
}

static void share(struct rust *rust)
{
    int64_t max = rust->conf.capacity, k = 0, floor_each;
    uint64_t sum = 0;
    for (uint32_t db = 0; db < rust->conf.dbs; db++) {
        struct block *block = &rust->blocks[db];
        uint32_t n = block->demand_count < DEMANDS ? block->demand_count : DEMANDS;
        block->demand = 0;
        for (uint32_t i = 0; i < n; i++)
            block->demand += block->demands[i];
        block->demand = n > 0 ? block->demand / n : 0;
        k += block->demand > 0;
        sum += block->demand;
    }
    floor_each = k > 0 && k <= max ? 1 : 0;
    for (uint32_t db = 0; db < rust->conf.dbs; db++) {
        struct block *block = &rust->blocks[db];
        block->target = 0;
        if (block->demand > 0 && k <= max)
            block->target =
                floor_each + (int64_t)(block->demand * (uint64_t)(max - floor_each * k) / sum);
    }
}

static void sample(struct rust *rust)
{
    for (uint32_t db = 0; db < rust->conf.dbs; db++) {
        struct block *block = &rust->blocks[db];
        uint64_t hold = (uint64_t)at_least_1(mean_ms(&block->hold)), demand = 0;
        if (!block->known)
            continue;
        if (block->max_active > 0 || block->max_waiting > 0)
            demand =
                WEIGHT_WAIT * block->max_waiting * hold + WEIGHT_ACTIVE * block->max_active * hold;
        if (demand > 0 && demand < DEMAND_MIN)
            demand = DEMAND_MIN;
        block->demands[block->demand_count++ % DEMANDS] = (uint32_t)demand;
        block->max_active = block->in[ACTIVE];
        block->max_waiting = poolsim_waiting(rust->sim, db);
    }
    share(rust);
    for (uint32_t db = 0; db < rust->conf.dbs; db++) {
        struct block *block = &rust->blocks[db];
        if (block->known && total_of(block) == 0 && block->demand == 0 &&
            poolsim_waiting(rust->sim, db) == 0)
            *block = (struct block){0};
    }
}

/* Deeds */

/* The idle connection of `db` that was used last, or longest ago. */
static struct entry *find_idle(struct rust *rust, uint32_t db, bool last)
{
    struct entry *found = NULL;
    if (rust->blocks[db].in[IDLE] == 0)
        return NULL;
    for (uint32_t i = 0; i <= rust->conf.capacity; i++) {
        struct entry *entry = &rust->entries[i];
        if (entry->state == IDLE && entry->db == db &&
            (found == NULL || (last ? entry->used > found->used : entry->used < found->used)))
            found = entry;
    }
    return found;
}

static void create(struct rust *rust, uint32_t db)
{
    struct poolsim_conn *conn = poolsim_connect(rust->sim, db);
    if (conn == NULL)
        return;
    rust->entries[conn->index].conn = conn;
    insert(rust, &rust->entries[conn->index], db);
}

static void transfer(struct rust *rust, struct entry *entry, uint32_t db)
{
    if (!poolsim_move(rust->sim, entry->conn, db))
        return;
    set_state(rust, entry, NONE);
    add(&rust->blocks[entry->db].disconnect, 0);
    insert(rust, entry, db);
}

/* Queries that wait meet idle connections, else failed ones. */
static void meet(struct rust *rust, uint32_t db)
{
    struct block *block = &rust->blocks[db];
    struct entry *entry;
    while (poolsim_waiting(rust->sim, db) > 0) {
        if ((entry = find_idle(rust, db, true)) != NULL) {
            poolsim_serve(rust->sim, entry->conn);
            entry->used = ++rust->uses;
            set_state(rust, entry, ACTIVE);
        } else if (block->failed > 0) {
            block->failed--;
            poolsim_refuse(rust->sim, db);
        } else {
            break;
        }
    }
}

static void rust_acquire(void *pool, uint32_t db)
{
    struct rust *rust = pool;
    struct block *block = &rust->blocks[db];
    if (!block->known) {
        block->known = true;
        block->youngest_us = poolsim_now_us(rust->sim);
        block->demands[block->demand_count++] = DEMAND_MIN;
        share(rust);
    }
    if (total(rust) < rust->conf.capacity) {
        create(rust, db);
    } else if (total_of(block) < block->target || block->target == 0) {
        uint32_t victim = rust->conf.dbs;
        int64_t best = NO_SCORE;
        for (uint32_t i = 0; i < rust->conf.dbs; i++) {
            int64_t score = overfull(rust, i);
            if (score > best) {
                best = score;
                victim = i;
            }
        }
        if (victim < rust->conf.dbs)
            transfer(rust, find_idle(rust, victim, false), db);
    }
    if (poolsim_waiting(rust->sim, db) > block->max_waiting)
        block->max_waiting = poolsim_waiting(rust->sim, db);
    meet(rust, db);
}

/* Whom a connection of `db` goes to when it is released: itself, or who is hungrier. */
static uint32_t plan_release(const struct rust *rust, uint32_t db)
{
    const struct block *block = &rust->blocks[db];
    if (total(rust) < rust->conf.capacity || total_of(block) <= block->target)
        return db;
    uint32_t found = db;
    int64_t best = hunger(rust, db, true);
    if (best != NO_SCORE)
        best += SELF_BOOST;
    for (uint32_t i = 0; i < rust->conf.dbs; i++) {
        int64_t score = i == db ? NO_SCORE : hunger(rust, i, false);
        if (score > best) {
            best = score;
            found = i;
        }
    }
    return found;
}

static void rust_release(void *pool, struct poolsim_conn *conn)
{
    struct rust *rust = pool;
    struct entry *entry = &rust->entries[conn->index];
    uint32_t db = plan_release(rust, entry->db);
    if (conn->load > 0)
        abort();
    set_state(rust, entry, IDLE);
    if (db != entry->db)
        transfer(rust, entry, db);
    else
        meet(rust, db);
}

static void rust_connected(void *pool, struct poolsim_conn *conn)
{
    struct rust *rust = pool;
    set_state(rust, &rust->entries[conn->index], IDLE);
    meet(rust, conn->db);
}

static void rust_failed(void *pool, struct poolsim_conn *conn)
{
    struct rust *rust = pool;
    set_state(rust, &rust->entries[conn->index], NONE);
    rust->blocks[conn->db].failed++;
    meet(rust, conn->db);
}

static void rust_closed(void *pool, struct poolsim_conn *conn)
{
    struct rust *rust = pool;
    set_state(rust, &rust->entries[conn->index], NONE);
}

/* A connection in use is reopened; an idle one is gone. */
static void rust_lost(void *pool, struct poolsim_conn *conn)
{
    struct rust *rust = pool;
    struct entry *entry = &rust->entries[conn->index];
    bool reopen = entry->state == ACTIVE;
    set_state(rust, entry, NONE);
    if (reopen && total(rust) < rust->conf.capacity)
        create(rust, conn->db);
}

/* The timer */

static bool collect(struct rust *rust)
{
    uint64_t now_us = poolsim_now_us(rust->sim);
    bool any = false;
    for (uint32_t i = 0; i <= rust->conf.capacity; i++) {
        struct entry *entry = &rust->entries[i];
        if (entry->state != IDLE || now_us - entry->since_us < rust->conf.idle_us)
            continue;
        poolsim_close(rust->sim, entry->conn);
        set_state(rust, entry, DISCONNECTING);
        any = true;
    }
    return any;
}

static void grow(struct rust *rust)
{
    int64_t room = rust->conf.capacity - total(rust), sizes[DBS];
    for (uint32_t db = 0; db < rust->conf.dbs; db++)
        sizes[db] = total_of(&rust->blocks[db]);
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint32_t db = 0; db < rust->conf.dbs; db++) {
            const struct block *block = &rust->blocks[db];
            if (room > 0 && block->target > sizes[db] &&
                block->max_active + block->max_waiting > sizes[db] + round) {
                create(rust, db);
                room--;
            }
        }
}

/* The block with the best score, which is taken out of the list. */
static uint32_t best_of(const struct rust *rust, int64_t *scores)
{
    uint32_t found = rust->conf.dbs;
    for (uint32_t db = 0; db < rust->conf.dbs; db++)
        if (scores[db] != NO_SCORE && (found == rust->conf.dbs || scores[db] > scores[found]))
            found = db;
    if (found < rust->conf.dbs)
        scores[found] = NO_SCORE;
    return found;
}

static void rebalance(struct rust *rust)
{
    int64_t hungry[DBS], full[DBS], unused[DBS];
    uint32_t ops = rust->conf.capacity * PERCENT / 100;
    for (uint32_t db = 0; db < rust->conf.dbs; db++) {
        int64_t score = overfull(rust, db);
        bool demanded = rust->blocks[db].demand > 0;
        hungry[db] = hunger(rust, db, false);
        full[db] = demanded ? score : NO_SCORE;
        unused[db] = demanded ? NO_SCORE : score;
    }
    for (ops = ops > 1 ? ops : 1; ops > 0; ops--) {
        uint32_t to = best_of(rust, hungry);
        if (to == rust->conf.dbs)
            break;
        uint32_t from = best_of(rust, unused);
        if (from == rust->conf.dbs)
            from = best_of(rust, full);
        if (from == rust->conf.dbs)
            break;
        transfer(rust, find_idle(rust, from, false), to);
    }
}

static uint64_t rust_tick(void *pool)
{
    struct rust *rust = pool;
    uint64_t every_us = rust->conf.idle_us / GC_PARTS;
    every_us = every_us > GC_EVERY_US ? every_us : GC_EVERY_US;
    if (total(rust) == 0)
        return TICK_US;
    sample(rust);
    if (poolsim_now_us(rust->sim) >= rust->gc_us + every_us) {
        rust->gc_us = poolsim_now_us(rust->sim);
        if (collect(rust))
            return TICK_US;
    }
    if (total(rust) < rust->conf.capacity)
        grow(rust);
    else
        rebalance(rust);
    return TICK_US;
}

static uint32_t rust_count(void *pool)
{
    const struct rust *rust = pool;
    uint32_t count = 0;
    for (uint32_t i = 0; i <= rust->conf.capacity; i++)
        count += rust->entries[i].state != NONE;
    return count;
}

const struct poolsim_pool poolsim_rust = {
    .name = "gel-rust",
    .make = rust_make,
    .free = rust_free,
    .acquire = rust_acquire,
    .release = rust_release,
    .connected = rust_connected,
    .failed = rust_failed,
    .closed = rust_closed,
    .lost = rust_lost,
    .tick = rust_tick,
    .count = rust_count,
};
