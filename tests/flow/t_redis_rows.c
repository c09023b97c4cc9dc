// t_redis_rows - rows in redis-server with their index: bounds of replies, no index, scripts that
// are forgotten (what every store with an order does alike is in conform.h)
// SPDX-License-Identifier: BSD-3-Clause
#include "redisscene.h"

#include <signal.h>

#include "base/log.h"
#include "proto/rowdoc.h"
#include "walk.h"

static struct walk walk;

/* The whole table in pages; how many there were. */
static int walk_table(struct scene *s, bool reverse, uint32_t most)
{
    walk_init(&walk, s->store, HG_SPAN_LIT("pre:"), "", NULL, reverse, most);
    return walk_all(&walk, &s->bench);
}

static struct hg_result write_row(struct scene *s, enum hg_op op, const char *row, uint64_t cas,
                                  const char *value)
{
    static char key[32];
    struct note *note = begin(s, op, "");
    note->call.prefix = HG_SPAN_LIT("pre:");
    note->call.key = hg_span(key, (size_t)snprintf(key, sizeof key, "t%c%s", 0, row));
    note->call.row = true;
    note->call.cas = cas;
    note->call.item_flags = HG_ROWDOC_FLAGS;
    note->call.value = op == HG_OP_DELETE ? HG_SPAN_NONE : hg_span_str(value);
    return finish(s, note);
}

static void name_of(int i, char out[WALK_NAME])
{
    snprintf(out, WALK_NAME, "r%02u", (unsigned)i % 100);
}

/* Rows that together are more than one reply may have. */
static void t_large(void **state)
{
    (void)state;
    enum { BYTES = 100000, COUNT = 20 };
    struct scene s;
    char name[WALK_NAME], *value = malloc(BYTES + 1);
    scene_launch(&s, NULL);
    scene_start(&s);
    memset(value, 'x', BYTES);
    value[BYTES] = '\0';
    for (int i = 0; i < COUNT; i++) {
        name_of(i, name);
        assert_int_equal(write_row(&s, HG_OP_ADD, name, 0, value).status, 0);
    }
    assert_int_equal(walk_table(&s, false, 100), COUNT / 2);
    assert_int_equal(walk.items, COUNT);
    /* So do replies that are bounded more closely. */
    scene_stop(&s);
    s.conf.max_reply_bytes = BYTES + 2 * HG_REDIS_RANGE_MORE;
    scene_start(&s);
    assert_int_equal(walk_table(&s, false, 100), COUNT);
    assert_int_equal(walk.items, COUNT);
    /* One that alone is larger than all together may be is given all the same. */
    scene_stop(&s);
    s.conf.max_reply_bytes = 1024 * 1024;
    scene_start(&s);
    char *huge = malloc(HG_REDIS_RANGE_BYTES + 1000);
    memset(huge, 'y', HG_REDIS_RANGE_BYTES + 999);
    huge[HG_REDIS_RANGE_BYTES + 999] = '\0';
    write_row(&s, HG_OP_ADD, "r00a", 0, huge);
    (void)walk_table(&s, true, 100);
    assert_int_equal(walk.items, COUNT + 1);
    free(huge);
    free(value);
    scene_fini(&s);
}

static void t_off(void **state)
{
    (void)state;
    struct scene s;
    scene_launch(&s, NULL);
    s.redis.ranges = false;
    scene_start(&s);
    write_row(&s, HG_OP_ADD, "b", 0, "1");
    assert_string_equal(scene_admin(&s, "DBSIZE"), "1");
    walk_init(&walk, s.store, HG_SPAN_LIT("pre:"), "", NULL, false, 10);
    s.store->ops->range(s.store, &walk.range);
    assert_int_equal(walk.done, 1);
    assert_int_equal(walk.end.fault, HG_FAULT_NOT_SUPPORTED);
    assert_non_null(strstr(walk.text, "ranges"));
    scene_fini(&s);
}

static void t_scripts_forgotten(void **state)
{
    (void)state;
    struct scene s;
    scene_launch(&s, NULL);
    scene_start(&s);
    write_row(&s, HG_OP_ADD, "b", 0, "1");
    scene_admin(&s, "SCRIPT FLUSH");
    (void)walk_table(&s, false, 10);
    assert_int_equal(walk.items, 1);
    scene_admin(&s, "SCRIPT FLUSH");
    write_row(&s, HG_OP_ADD, "a", 0, "1");
    (void)walk_table(&s, false, 10);
    assert_int_equal(walk.items, 2);
    scene_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_large),
        cmocka_unit_test(t_off),
        cmocka_unit_test(t_scripts_forgotten),
    };
    if (!redisd_is_installed())
        return 0;
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("redis_rows", tests, NULL, NULL);
}
