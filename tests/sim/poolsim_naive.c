// poolsim_naive - what one would write first: no quota, no measure, no order between blocks
// SPDX-License-Identifier: BSD-3-Clause
//
// A query takes an idle connection of its db; else one is opened while there is room; else any idle
// one is moved to it; else it waits, and a connection that becomes free serves its own line first
// and then the db that waits longest. Nothing is taken from who is busy, nothing is closed.
#include <stdlib.h>
#include "poolsim.h"

struct naive {
    struct poolsim *sim;
    struct poolsim_conf conf;
    uint32_t count;
    uint32_t coming[64];         // connections on their way, by db
    struct poolsim_conn **conns; // those that are up, the last used last
    uint32_t up;
};

static void *naive_make(struct poolsim *sim, const struct poolsim_conf *conf)
{
    struct naive *naive = calloc(1, sizeof(*naive));
    if (naive == NULL)
        abort();
    naive->sim = sim;
    naive->conf = *conf;
    naive->conns = calloc(conf->capacity + 1, sizeof(struct poolsim_conn *));
    if (naive->conns == NULL)
        abort();
    return naive;
}

static void naive_free(void *pool)
{
    struct naive *naive = pool;
    free(naive->conns);
    free(naive);
}

static void drop(struct naive *naive, const struct poolsim_conn *conn)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < naive->up; i++)
        if (naive->conns[i] != conn)
            naive->conns[kept++] = naive->conns[i];
    naive->up = kept;
}

static void use(struct naive *naive, struct poolsim_conn *conn)
{
    drop(naive, conn);
    naive->conns[naive->up++] = conn;
}

static void open_one(struct naive *naive, uint32_t db)
{
    if (naive->count >= naive->conf.capacity || poolsim_connect(naive->sim, db) == NULL)
        return;
    naive->count++;
    naive->coming[db]++;
}

static void move(struct naive *naive, struct poolsim_conn *conn, uint32_t db)
{
    if (!poolsim_move(naive->sim, conn, db))
        return;
    naive->coming[db]++;
    drop(naive, conn);
}

static void naive_acquire(void *pool, uint32_t db)
{
    struct naive *naive = pool;
    for (uint32_t i = naive->up; i > 0; i--) {
        struct poolsim_conn *conn = naive->conns[i - 1];
        if (conn->db == db && conn->load < naive->conf.depth) {
            use(naive, conn);
            poolsim_serve(naive->sim, conn);
            return;
        }
    }
    if (poolsim_waiting(naive->sim, db) <= naive->coming[db])
        return;
    if (naive->count < naive->conf.capacity) {
        open_one(naive, db);
        return;
    }
    for (uint32_t i = 0; i < naive->up; i++)
        if (naive->conns[i]->load == 0) {
            move(naive, naive->conns[i], db);
            return;
        }
}

/* The db with the oldest query that no connection is on its way for; conf.dbs if there is none. */
static uint32_t longest_waiting(const struct naive *naive)
{
    uint32_t found = naive->conf.dbs;
    for (uint32_t db = 0; db < naive->conf.dbs; db++)
        if (poolsim_waiting(naive->sim, db) > naive->coming[db] &&
            (found == naive->conf.dbs ||
             poolsim_oldest_us(naive->sim, db) < poolsim_oldest_us(naive->sim, found)))
            found = db;
    return found;
}

static void naive_release(void *pool, struct poolsim_conn *conn)
{
    struct naive *naive = pool;
    use(naive, conn);
    while (conn->load < naive->conf.depth && poolsim_serve(naive->sim, conn))
        ;
    uint32_t db = longest_waiting(naive);
    if (conn->load == 0 && db < naive->conf.dbs)
        move(naive, conn, db);
}

static void naive_connected(void *pool, struct poolsim_conn *conn)
{
    struct naive *naive = pool;
    naive->coming[conn->db]--;
    naive_release(pool, conn);
}

static void naive_gone(void *pool, struct poolsim_conn *conn)
{
    struct naive *naive = pool;
    naive->count--;
    drop(naive, conn);
}

static void naive_failed(void *pool, struct poolsim_conn *conn)
{
    struct naive *naive = pool;
    uint32_t db = conn->db;
    naive->coming[db]--;
    naive_gone(pool, conn);
    poolsim_refuse(naive->sim, db);
    if (poolsim_waiting(naive->sim, db) > naive->coming[db])
        open_one(naive, db);
}

static void naive_lost(void *pool, struct poolsim_conn *conn)
{
    uint32_t db = conn->db;
    struct naive *naive = pool;
    naive_gone(pool, conn);
    if (poolsim_waiting(naive->sim, db) > naive->coming[db])
        open_one(naive, db);
}

/* Looks after lines that nobody else will: those that the breaker kept from a connection. */
static uint64_t naive_tick(void *pool)
{
    struct naive *naive = pool;
    uint32_t db = longest_waiting(naive);
    if (db < naive->conf.dbs)
        open_one(naive, db);
    return 10000;
}

static uint32_t naive_count(void *pool)
{
    const struct naive *naive = pool;
    return naive->count;
}

const struct poolsim_pool poolsim_naive = {
    .name = "naive",
    .make = naive_make,
    .free = naive_free,
    .acquire = naive_acquire,
    .release = naive_release,
    .connected = naive_connected,
    .failed = naive_failed,
    .closed = naive_gone,
    .lost = naive_lost,
    .tick = naive_tick,
    .count = naive_count,
};
