// t_redis_rows - rows in redis-server with their index: stretches, pages, what is gone, beside a
// model SPDX-License-Identifier: BSD-3-Clause
#include "redisscene.h"

#include <signal.h>

#include "base/log.h"
#include "base/prng.h"
#include "proto/rowdoc.h"

enum { ROWS = 60, MARGIN = 8 };

/* --- a stretch, read to its end in pages --- */

struct walk {
    struct hg_range_call range;
    struct hg_store *store;
    char names[2 * ROWS][MARGIN];
    char values[2 * ROWS][16];
    int items, done, stop_after;
    struct hg_range_end end;
    char last[32];
    size_t last_len;
    char text[256];
};

static bool on_item(struct hg_range_call *range, const struct hg_range_item *item)
{
    struct walk *walk = HG_CONTAINER_OF(range, struct walk, range);
    assert_in_range(item->key.len, 3, MARGIN + 2);
    assert_memory_equal(item->key.at, "t\0", 2);
    assert_int_equal(item->item_flags, HG_ROWDOC_FLAGS);
    assert_true(item->cas != 0);
    int i = walk->items++;
    snprintf(walk->names[i], MARGIN, "%.*s", (int)item->key.len - 2,
             (const char *)item->key.at + 2);
    snprintf(walk->values[i], 16, "%.*s", (int)item->value.len, (const char *)item->value.at);
    return walk->stop_after == 0 || walk->items < walk->stop_after;
}

static void on_done(struct hg_range_call *range, const struct hg_range_end *end)
{
    struct walk *walk = HG_CONTAINER_OF(range, struct walk, range);
    walk->done++;
    walk->end = *end;
    walk->last_len = end->last.len;
    if (end->last.len > 0)
        memcpy(walk->last, end->last.at, end->last.len);
    snprintf(walk->text, sizeof walk->text, "%.*s", (int)end->text.len,
             end->text.len > 0 ? (const char *)end->text.at : "");
}

static void walk_init(struct walk *walk, struct scene *s, const char *from, const char *to,
                      bool reverse, uint32_t most)
{
    static char bounds[2][32];
    memset(walk, 0, sizeof *walk);
    size_t from_len = (size_t)snprintf(bounds[0], 32, "t%c%s", 0, from);
    size_t to_len = to == NULL ? 2 : (size_t)snprintf(bounds[1], 32, "t%c%s", 0, to);
    if (to == NULL)
        memcpy(bounds[1], "t\1", 2);
    walk->store = s->store;
    walk->range = (struct hg_range_call){.prefix = HG_SPAN_LIT("pre:"),
                                         .from = hg_span(bounds[0], from_len),
                                         .to = hg_span(bounds[1], to_len),
                                         .reverse = reverse,
                                         .max_items = most,
                                         .on_item = on_item,
                                         .on_done = on_done};
}

/* As the client side does it: on behind the last key, until there is no more. Number of pages. */
static int walk_all(struct scene *s, struct walk *walk)
{
    uint8_t bound[32];
    for (int pages = 1;; pages++) {
        walk->done = 0;
        hg_loop_stamp(&s->rig.loop);
        s->store->ops->range(s->store, &walk->range);
        BENCH_UNTIL(&s->bench, walk->done == 1);
        if (walk->end.fault != HG_FAULT_NONE)
            fail_msg("fault %d: %s", walk->end.fault, walk->text);
        if (!walk->end.more)
            return pages;
        assert_true(walk->last_len > 2);
        memcpy(bound, walk->last, walk->last_len);
        bound[walk->last_len] = 0;
        if (walk->range.reverse)
            walk->range.to = hg_span(bound, walk->last_len);
        else
            walk->range.from = hg_span(bound, walk->last_len + 1);
    }
}

/* --- rows --- */

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

static void name_of(int i, char *out)
{
    snprintf(out, MARGIN, "r%02d", i);
}

struct model {
    bool there;
    uint64_t cas;
    char value[16];
};

static void expect_stretch(struct scene *s, const struct model *models, int from, int to,
                           bool reverse, uint32_t most)
{
    static struct walk walk;
    char low[MARGIN], high[MARGIN], name[MARGIN];
    name_of(from, low);
    name_of(to, high);
    walk_init(&walk, s, from == 0 ? "" : low, to == ROWS ? NULL : high, reverse, most);
    int pages = walk_all(s, &walk);
    int found = 0;
    for (int k = 0; k < to - from; k++) {
        int i = reverse ? to - 1 - k : from + k;
        if (!models[i].there)
            continue;
        name_of(i, name);
        assert_true(found < walk.items);
        assert_string_equal(walk.names[found], name);
        assert_string_equal(walk.values[found], models[i].value);
        found++;
    }
    assert_int_equal(found, walk.items);
    assert_in_range(pages, (found + (int)most - 1) / (int)most, (to - from) / (int)most + 1);
}

/* Random writes, some refused, some behind the index' back; random stretches after each few. */
static void walk_beside_the_model(struct scene *s, struct hg_prng *prng)
{
    static struct model models[ROWS];
    memset(models, 0, sizeof models);
    for (int step = 0; step < 3000; step++) {
        int i = (int)hg_prng_below(prng, ROWS);
        struct model *model = &models[i];
        char name[MARGIN], value[16];
        name_of(i, name);
        snprintf(value, sizeof value, "v%d", step);
        uint64_t cas = hg_prng_below(prng, 5) == 0 ? 1 : model->cas;
        unsigned what = (unsigned)hg_prng_below(prng, 8);
        if (!model->there) {
            struct hg_result r =
                write_row(s, what == 0 ? HG_OP_SET : HG_OP_ADD, name, what == 0 ? 1 : 0, value);
            assert_int_equal(r.status, what == 0 ? HG_STATUS_KEY_ENOENT : 0);
            if (r.status == 0) {
                *model = (struct model){true, r.cas, ""};
                memcpy(model->value, value, sizeof value);
            }
        } else if (what < 4) {
            struct hg_result r = write_row(s, HG_OP_SET, name, cas, value);
            assert_int_equal(r.status, cas == model->cas ? 0 : HG_STATUS_KEY_EEXISTS);
            if (r.status == 0) {
                model->cas = r.cas;
                memcpy(model->value, value, sizeof value);
            }
        } else if (what < 6) {
            struct hg_result r = write_row(s, HG_OP_DELETE, name, cas, "");
            assert_int_equal(r.status, cas == model->cas ? 0 : HG_STATUS_KEY_EEXISTS);
            model->there = r.status != 0;
        } else if (what == 6) {
            assert_int_equal(write_row(s, HG_OP_ADD, name, 0, value).status, HG_STATUS_KEY_EEXISTS);
        } else {
            /* As when it expired. */
            char key[32];
            size_t len = (size_t)snprintf(key, sizeof key,
                                          s->redis.cluster ? "pre:{t}%c%s" : "pre:t%c%s", 0, name);
            assert_string_equal(scene_admin(s, "DEL %b", key, len), "1");
            model->there = false;
        }
        if (step % 10 == 0) {
            int from = (int)hg_prng_below(prng, ROWS), to = (int)hg_prng_below(prng, ROWS + 1);
            if (from <= to)
                expect_stretch(s, models, from, to, hg_prng_below(prng, 2),
                               1 + (uint32_t)hg_prng_below(prng, 20));
        }
    }
    expect_stretch(s, models, 0, ROWS, false, 1000);
    expect_stretch(s, models, 0, ROWS, true, 1000);
    /* All that is gone was pruned by the last walks. */
    int there = 0;
    for (int i = 0; i < ROWS; i++)
        there += models[i].there;
    char count[16];
    snprintf(count, sizeof count, "%d", there);
    assert_string_equal(scene_admin(s, "ZCARD %b", s->redis.cluster ? "pre:\0i{t}" : "pre:\0it",
                                    (size_t)(s->redis.cluster ? 9 : 7)),
                        count);
}

static void t_beside_the_model(void **state)
{
    (void)state;
    for (int tagged = 0; tagged < 2; tagged++) {
        struct scene s;
        struct hg_prng prng = {3};
        scene_launch(&s, NULL);
        s.redis.cluster = tagged;
        scene_start(&s);
        walk_beside_the_model(&s, &prng);
        scene_fini(&s);
    }
}

/* A stretch does not see other tables, nor items whose names are near. */
static void t_alone(void **state)
{
    (void)state;
    static struct walk walk;
    struct scene s;
    scene_launch(&s, NULL);
    scene_start(&s);
    walk_init(&walk, &s, "", NULL, false, 10);
    assert_int_equal(walk_all(&s, &walk), 1);
    assert_int_equal(walk.items, 0);
    assert_int_equal(walk.last_len, 0);
    write_row(&s, HG_OP_ADD, "b", 0, "1");
    struct note *note = begin(&s, HG_OP_SET, "");
    note->call.prefix = HG_SPAN_LIT("pre:");
    note->call.key = HG_SPAN_LIT("\0it");
    assert_int_equal(finish(&s, note).status, 0);
    note = begin(&s, HG_OP_ADD, "");
    note->call.prefix = HG_SPAN_LIT("pre:");
    note->call.key = HG_SPAN_LIT("tt\0a");
    note->call.row = true;
    note->call.item_flags = HG_ROWDOC_FLAGS;
    assert_int_equal(finish(&s, note).status, 0);
    walk_init(&walk, &s, "", NULL, false, 10);
    walk_all(&s, &walk);
    assert_int_equal(walk.items, 1);
    assert_string_equal(walk.names[0], "b");
    scene_fini(&s);
}

/* Enough is enough, and where it stopped is told. */
static void t_enough(void **state)
{
    (void)state;
    static struct walk walk;
    struct scene s;
    char name[MARGIN];
    scene_launch(&s, NULL);
    scene_start(&s);
    for (int i = 0; i < 20; i++) {
        name_of(i, name);
        write_row(&s, HG_OP_ADD, name, 0, "v");
    }
    for (int reverse = 0; reverse < 2; reverse++) {
        walk_init(&walk, &s, "", NULL, reverse, 100);
        walk.stop_after = 5;
        s.store->ops->range(s.store, &walk.range);
        BENCH_UNTIL(&s.bench, walk.done == 1);
        assert_int_equal(walk.items, 5);
        assert_true(walk.end.more);
        assert_memory_equal(walk.last, reverse ? "t\0r15" : "t\0r04", 5);
    }
    scene_fini(&s);
}

/* Rows that together are more than one reply may have. */
static void t_large(void **state)
{
    (void)state;
    static struct walk walk;
    enum { BYTES = 100000, COUNT = 20 };
    struct scene s;
    char name[MARGIN], *value = malloc(BYTES + 1);
    scene_launch(&s, NULL);
    scene_start(&s);
    memset(value, 'x', BYTES);
    value[BYTES] = '\0';
    for (int i = 0; i < COUNT; i++) {
        name_of(i, name);
        assert_int_equal(write_row(&s, HG_OP_ADD, name, 0, value).status, 0);
    }
    walk_init(&walk, &s, "", NULL, false, 100);
    assert_int_equal(walk_all(&s, &walk), COUNT / 2);
    assert_int_equal(walk.items, COUNT);
    /* So do replies that are bounded more closely. */
    scene_stop(&s);
    s.conf.max_reply_bytes = BYTES + 2 * HG_REDIS_RANGE_MORE;
    scene_start(&s);
    walk_init(&walk, &s, "", NULL, false, 100);
    assert_int_equal(walk_all(&s, &walk), COUNT);
    assert_int_equal(walk.items, COUNT);
    /* One that alone is larger than all together may be is given all the same. */
    scene_stop(&s);
    s.conf.max_reply_bytes = 1024 * 1024;
    scene_start(&s);
    char *huge = malloc(HG_REDIS_RANGE_BYTES + 1000);
    memset(huge, 'y', HG_REDIS_RANGE_BYTES + 999);
    huge[HG_REDIS_RANGE_BYTES + 999] = '\0';
    write_row(&s, HG_OP_ADD, "r00a", 0, huge);
    walk_init(&walk, &s, "", NULL, true, 100);
    walk_all(&s, &walk);
    assert_int_equal(walk.items, COUNT + 1);
    free(huge);
    free(value);
    scene_fini(&s);
}

static void t_off(void **state)
{
    (void)state;
    static struct walk walk;
    struct scene s;
    scene_launch(&s, NULL);
    s.redis.ranges = false;
    scene_start(&s);
    write_row(&s, HG_OP_ADD, "b", 0, "1");
    assert_string_equal(scene_admin(&s, "DBSIZE"), "1");
    walk_init(&walk, &s, "", NULL, false, 10);
    s.store->ops->range(s.store, &walk.range);
    assert_int_equal(walk.done, 1);
    assert_int_equal(walk.end.fault, HG_FAULT_NOT_SUPPORTED);
    assert_non_null(strstr(walk.text, "ranges"));
    scene_fini(&s);
}

static void t_scripts_forgotten(void **state)
{
    (void)state;
    static struct walk walk;
    struct scene s;
    scene_launch(&s, NULL);
    scene_start(&s);
    write_row(&s, HG_OP_ADD, "b", 0, "1");
    scene_admin(&s, "SCRIPT FLUSH");
    walk_init(&walk, &s, "", NULL, false, 10);
    walk_all(&s, &walk);
    assert_int_equal(walk.items, 1);
    scene_admin(&s, "SCRIPT FLUSH");
    write_row(&s, HG_OP_ADD, "a", 0, "1");
    walk_init(&walk, &s, "", NULL, false, 10);
    walk_all(&s, &walk);
    assert_int_equal(walk.items, 2);
    scene_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_beside_the_model),
        cmocka_unit_test(t_alone),
        cmocka_unit_test(t_enough),
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
