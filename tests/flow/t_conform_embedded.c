// t_conform_embedded - what every store must do, by the embedded store
// SPDX-License-Identifier: BSD-3-Clause
#include "conform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "back/embedded.h"

#define HAS                                                                                        \
    (HAS_CAS | HAS_FLAGS | HAS_PADDING | HAS_ROWS | HAS_ORDER | HAS_LATER_FLUSH | HAS_JOIN_LIMIT | \
     HAS_SET_LIMIT | HAS_JOIN_SIZE | HAS_TOUCH_FLAGS | HAS_RISING_CAS | HAS_VIEWS |                \
     HAS_LARGE_NUMBERS)

static const struct mode {
    enum hg_embedded_writing writing;
    enum hg_embedded_sync sync;
} modes[] = {
    {HG_EMBEDDED_WRITING_INLINE, HG_EMBEDDED_SYNC_SECOND},
    {HG_EMBEDDED_WRITING_THREAD, HG_EMBEDDED_SYNC_NEVER},
    {HG_EMBEDDED_WRITING_THREAD, HG_EMBEDDED_SYNC_ALWAYS},
};

static const struct conform_store stores[] = {
    {"embedded, inline", HAS | IS_FAST, .key_max = 506, .mode = 0},
    {"embedded, writer thread", HAS | HAS_WORKERS | IS_FAST, .key_max = 506, .mode = 1},
    /* Each write waits for the disk. */
    {"embedded, synchronous", HAS | HAS_WORKERS, .key_max = 506, .mode = 2, .walk_steps = 1000,
     .length_step = 11},
};

static char dir[64];

static void nothing(void)
{
}

static void open_file(struct conform *c)
{
    char error[256];
    struct hg_embedded_shared *shared;
    snprintf(dir, sizeof dir, "/tmp/t_conform.XXXXXX");
    assert_non_null(mkdtemp(dir));
    struct hg_embedded_options options = {
        .data_dir = dir,
        .name = "main",
        .sync = modes[c->kept->mode].sync,
        .writing = modes[c->kept->mode].writing,
        .workers = 2,
        .max_bytes = 256u << 20,
        .max_value_bytes = c->max_value_bytes,
        .timeout_us = 60000000,
    };
    if (hg_embedded_open(&options, &shared, error, sizeof error) != 0)
        fail_msg("%s", error);
    assert_int_equal(hg_embedded_tenant_id(shared, "shop", &c->tenant_id), 0);
    c->shared = shared;
}

static struct hg_store *open_worker(struct conform *c, struct rig *rig, uint32_t worker)
{
    struct hg_store *store = NULL;
    (void)worker;
    assert_int_equal(hg_embedded_store_new(c->shared, &rig->loop, &store), 0);
    return store;
}

static void close_file(struct conform *c)
{
    char path[128];
    hg_embedded_close(c->shared);
    snprintf(path, sizeof path, "%s/main.mdb", dir);
    unlink(path);
    strcat(path, "-lock");
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    static const struct conform_kind kind = {.name = "conform_embedded",
                                             .launch = nothing,
                                             .put_down = nothing,
                                             .open = open_file,
                                             .worker = open_worker,
                                             .close = close_file};
    return conform_main(&kind, stores, HG_COUNT_OF(stores));
}
