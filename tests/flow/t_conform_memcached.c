// t_conform_memcached - what every store must do, by the memcached store on memcached itself
// SPDX-License-Identifier: BSD-3-Clause
#include "conform.h"
#include "daemon.h"

#define SERVERS 3
#define HAS                                                                                        \
    (HAS_CAS | HAS_FLAGS | HAS_PADDING | HAS_ROWS | HAS_LATER_FLUSH | HAS_SET_LIMIT |              \
     HAS_SERVER_TEXTS | HAS_WORKERS | IS_FAST)

static const struct conform_store stores[] = {
    {"memcached", HAS | HAS_RISING_CAS | HAS_ONE_SERVER, .key_max = 250, .mode = 1},
    {"memcached, relayed", HAS | HAS_RISING_CAS | HAS_ONE_SERVER, .key_max = 250, .mode = 1,
     .relayed = true},
    {"three memcached", HAS | HAS_RISING_CAS, .key_max = 250, .mode = SERVERS, .rounds = SERVERS},
};

static struct daemon daemons[SERVERS];

static bool stale; /* what large values leave behind takes the memory of others */

static void put_down(void)
{
    for (int i = 0; i < SERVERS; i++)
        daemon_put_down(&daemons[i]);
}

static void launch(void)
{
    for (int i = 0; i < SERVERS; i++)
        daemon_launch(&daemons[i]);
}

static void open_servers(struct conform *c)
{
    struct hg_remote_conf conf;
    struct hg_ring_server servers[SERVERS];
    for (uint32_t i = 0; i < c->kept->mode; i++) {
        if (c->large || stale) {
            daemon_put_down(&daemons[i]);
            daemons[i] = (struct daemon){0};
            daemon_launch(&daemons[i]);
        }
        servers[i] = (struct hg_ring_server){daemons[i].address, 1};
    }
    stale = c->large;
    conform_remote(c, &conf, servers, c->kept->mode);
    c->upstream = rig_shared(&conf, 2);
}

static struct hg_store *open_worker(struct conform *c, struct rig *rig, uint32_t worker)
{
    return rig_store(rig, c->upstream, worker, 4);
}

static void close_servers(struct conform *c)
{
    hg_upstream_shared_free(c->upstream);
}

int main(void)
{
    static const struct conform_kind kind = {.name = "conform_memcached",
                                             .launch = launch,
                                             .put_down = put_down,
                                             .open = open_servers,
                                             .worker = open_worker,
                                             .close = close_servers};
    if (!daemon_is_installed())
        return 0;
    return conform_main(&kind, stores, HG_COUNT_OF(stores));
}
