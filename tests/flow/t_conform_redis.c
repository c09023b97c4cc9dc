// t_conform_redis - what every store must do, by the redis store on redis-server itself
// SPDX-License-Identifier: BSD-3-Clause
//
// With CONFORM_TAGGED it is a program of its own for the names of rows that a cluster needs.
#include "conform.h"
#include "redisd.h"

#include <hiredis.h>
#include <stdio.h>

#include "back/redis.h"

#define HAS_PLAIN (HAS_JOIN_LIMIT | HAS_JOIN_SIZE | HAS_ONE_SERVER | HAS_LARGE_NUMBERS | IS_FAST)
#define HAS       (HAS_PLAIN | HAS_CAS | HAS_FLAGS | HAS_PADDING | HAS_ROWS | HAS_ORDER | HAS_WORKERS)

enum mode { ITEM, PLAIN, TAGGED };
static const struct conform_store stores[] = {
#ifdef CONFORM_TAGGED
    {"redis, tagged", HAS, .key_max = HG_REDIS_KEY_MAX, .mode = TAGGED},
    {"redis, tagged and relayed", HAS, .key_max = HG_REDIS_KEY_MAX, .mode = TAGGED,
     .relayed = true},
#else
    {"redis", HAS, .key_max = HG_REDIS_KEY_MAX, .mode = ITEM},
    {"redis, relayed", HAS, .key_max = HG_REDIS_KEY_MAX, .mode = ITEM, .relayed = true},
    {"redis, plain", HAS_PLAIN, .key_max = HG_REDIS_KEY_MAX, .mode = PLAIN},
#endif
};

static struct daemon server;
static redisContext *admin; /* a client of its own */

static void launch(void)
{
    redisd_launch(&server, NULL);
    admin = redisConnect("127.0.0.1", server.port);
    assert_non_null(admin);
    assert_int_equal(admin->err, 0);
}

static void put_down(void)
{
    redisFree(admin);
    daemon_put_down(&server);
}

static void open_server(struct conform *c)
{
    struct hg_remote_conf conf;
    struct hg_ring_server servers[1] = {{server.address, 1}};
    conform_remote(c, &conf, servers, 1);
    conf.is_memcached = false;
    conf.default_port = 6379;
    c->upstream = rig_shared(&conf, 2);
}

static struct hg_store *open_worker(struct conform *c, struct rig *rig, uint32_t worker)
{
    const struct hg_remote_place place = {&rig->loop, &rig->mailbox, &rig->blobs,
                                          &rig->outs, worker,        4};
    const struct hg_redis_conf conf = {.plain = c->kept->mode == PLAIN,
                                       .ranges = c->kept->mode != PLAIN,
                                       .cluster = c->kept->mode == TAGGED,
                                       .max_value_bytes = c->max_value_bytes};
    return hg_redis_store_new(c->upstream, &place, &conf);
}

static void close_server(struct conform *c)
{
    hg_upstream_shared_free(c->upstream);
}

static long integer_of(redisReply *reply)
{
    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    long integer = (long)reply->integer;
    freeReplyObject(reply);
    return integer;
}

/* On a cluster a row's name has its table in braces. */
static const char *brace(const struct conform *c, const char *text)
{
    return c->kept->mode == TAGGED ? text : "";
}

static void lose(struct conform *c, const char *table, const char *row)
{
    char key[64];
    int len = snprintf(key, sizeof key, "%s%s%s%s%c%s", c->prefix_text, brace(c, "{"), table,
                       brace(c, "}"), 0, row);
    assert_int_equal(integer_of(redisCommand(admin, "DEL %b", key, (size_t)len)), 1);
}

static long indexed(struct conform *c, const char *table)
{
    char key[64];
    int len = snprintf(key, sizeof key, "%s%ci%s%s%s", c->prefix_text, 0, brace(c, "{"), table,
                       brace(c, "}"));
    return integer_of(redisCommand(admin, "ZCARD %b", key, (size_t)len));
}

static long seconds_left(struct conform *c, const char *key)
{
    return integer_of(redisCommand(admin, "TTL %s%s", c->prefix_text, key));
}

int main(void)
{
    static const struct conform_kind kind = {.name = "conform_redis",
                                             .launch = launch,
                                             .put_down = put_down,
                                             .open = open_server,
                                             .worker = open_worker,
                                             .close = close_server,
                                             .lose = lose,
                                             .indexed = indexed,
                                             .seconds_left = seconds_left};
    if (!redisd_is_installed())
        return 0;
    return conform_main(&kind, stores, HG_COUNT_OF(stores));
}
