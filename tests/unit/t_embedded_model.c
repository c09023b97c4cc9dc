// t_embedded_model - random operations on the embedded store against a table in memory
// SPDX-License-Identifier: BSD-3-Clause
//
// Groups of random operations on two tenants, of all sizes, with time that passes, flushes now and
// later, restarts, and buckets that are deleted and made again. The model decides each operation
// with hg_item_decide, which other tests compare with memcached; here the store must give the same
// answers, in the same order, and hold the same items in the end.
#include "embeddedhelp.h"

#include "base/prng.h"

#define TENANTS 2
#define KEYS    60
#define TURNS   400
#define AT_ONCE 40
#define LIMIT   6000 /* of a value */

static enum hg_embedded_writing writings[] = {HG_EMBEDDED_WRITING_INLINE,
                                              HG_EMBEDDED_WRITING_THREAD};

struct model_item {
    bool stored;
    struct hg_item item;
    uint8_t value[LIMIT];
};

struct model {
    struct world world;
    struct hg_prng random;
    uint64_t cas; /* the model's own */
    uint32_t tenant_ids[TENANTS];
    char names[TENANTS][8];
    struct hg_item_flush flushes[TENANTS];
    struct model_item items[TENANTS][KEYS];
    uint8_t bytes[LIMIT];
};

static uint64_t below(struct model *model, uint64_t bound)
{
    return hg_prng_below(&model->random, bound);
}

static uint64_t now_s(struct model *model)
{
    return atomic_load(&model->world.wall_s);
}

static bool model_alive(struct model *model, unsigned tenant, const struct model_item *item)
{
    hg_item_flush_due(&model->flushes[tenant], now_s(model), model->cas);
    return item->stored && hg_item_alive(&item->item, now_s(model), model->flushes[tenant]);
}

/* What the model expects of a call, and its own CAS for it. */
struct expected {
    uint16_t status;
    uint64_t counter;
    uint32_t flags;
    size_t len;
    uint8_t *value; /* get, gat */
};

static void decide(struct model *model, unsigned tenant, unsigned key, struct hg_item_ask *ask,
                   struct expected *ret)
{
    struct model_item *item = &model->items[tenant][key];
    struct hg_item_outcome outcome;
    uint8_t value[LIMIT];
    bool alive = model_alive(model, tenant, item);
    hg_item_decide(alive ? &item->item : NULL, ask, now_s(model), LIMIT, model->cas + 1, &outcome);
    *ret = (struct expected){.status = outcome.status, .counter = outcome.counter};
    if ((ask->op == HG_OP_GET || ask->op == HG_OP_GAT) && outcome.status == HG_STATUS_SUCCESS) {
        ret->flags = outcome.item.flags;
        ret->len = outcome.item.value.len;
        ret->value = malloc(ret->len + 1);
        assert_non_null(ret->value);
        memcpy(ret->value, outcome.item.value.at, ret->len);
    }
    if (outcome.act == HG_ITEM_REMOVE)
        item->stored = false;
    if (outcome.act != HG_ITEM_STORE && outcome.act != HG_ITEM_TOUCH)
        return;
    size_t len = hg_item_outcome_bytes(&outcome);
    hg_item_outcome_copy(&outcome, value);
    memcpy(item->value, value, len);
    item->item = outcome.item;
    item->item.value = hg_span(item->value, len);
    item->stored = true;
    if (outcome.act == HG_ITEM_STORE)
        model->cas++;
}

static void pick(struct model *model, struct hg_item_ask *ask)
{
    static const enum hg_op ops[] = {HG_OP_GET,       HG_OP_GET,       HG_OP_SET,     HG_OP_SET,
                                     HG_OP_SET,       HG_OP_ADD,       HG_OP_REPLACE, HG_OP_DELETE,
                                     HG_OP_INCREMENT, HG_OP_DECREMENT, HG_OP_APPEND,  HG_OP_PREPEND,
                                     HG_OP_TOUCH,     HG_OP_GAT};
    static const uint32_t expiries[] = {0, 0, 0, 1, 3, 10, 100, WALL_START - 5, WALL_START + 50};
    static const size_t around[] = {0, 3, 20, 200, 2000, 4050, LIMIT - 10};
    memset(ask, 0, sizeof *ask);
    ask->op = below(model, 150) == 0 ? HG_OP_FLUSH : ops[below(model, HG_COUNT_OF(ops))];
    ask->flags = (uint32_t)below(model, UINT32_MAX);
    ask->expiry = ask->op == HG_OP_FLUSH ? (uint32_t)below(model, 6)
                                         : expiries[below(model, HG_COUNT_OF(expiries))];
    ask->delta = below(model, 1000);
    ask->initial = below(model, 1000);
    bool carries = ask->op == HG_OP_SET || ask->op == HG_OP_ADD || ask->op == HG_OP_REPLACE ||
                   ask->op == HG_OP_APPEND || ask->op == HG_OP_PREPEND;
    if (!carries)
        return;
    if (below(model, 3) == 0) {
        ask->value = HG_SPAN_LIT("41");
        return;
    }
    size_t len = around[below(model, HG_COUNT_OF(around))] + below(model, 10);
    size_t from = below(model, LIMIT - len);
    ask->value = hg_span(model->bytes + from, len);
}

static void fill_call(struct ask *ask, const struct hg_item_ask *asked)
{
    ask->call.item_flags = asked->flags;
    ask->call.expiry = asked->expiry;
    ask->call.delta = asked->delta;
    ask->call.initial = asked->initial;
    ask->call.value = asked->value;
}

/* Submits a group. The order in which the store carries it out is that of submission, but for gets,
   which only wait for what they are told to. */
static void one_turn(struct model *model)
{
    struct ask asks[AT_ONCE];
    struct expected expected[AT_ONCE];
    for (unsigned i = 0; i < AT_ONCE; i++) {
        struct hg_item_ask asked;
        unsigned tenant = (unsigned)below(model, TENANTS), key = (unsigned)below(model, KEYS);
        char name[16];
        pick(model, &asked);
        snprintf(name, sizeof name, "key%u", key);
        ask_init(&asks[i], &model->world, asked.op, asked.op == HG_OP_FLUSH ? "" : name);
        asks[i].call.tenant_id = model->tenant_ids[tenant];
        fill_call(&asks[i], &asked);
        for (unsigned j = i; j-- > 0 && asks[i].call.after == NULL;)
            if (!asks[j].is_done && strcmp(asks[j].key, asks[i].key) == 0 &&
                asks[j].call.tenant_id == asks[i].call.tenant_id)
                asks[i].call.after = &asks[j].call;
        expected[i] = (struct expected){.status = HG_STATUS_SUCCESS};
        if (asked.op == HG_OP_FLUSH) {
            /* A read that waits must not be overtaken; the front submits nothing behind it. */
            for (unsigned j = 0; j < i; j++)
                TURN_UNTIL(&model->world, asks[j].is_done);
            hg_item_flush_due(&model->flushes[tenant], now_s(model), model->cas);
            model->flushes[tenant] =
                hg_item_flush_plan(model->flushes[tenant], asked.expiry, now_s(model), model->cas);
        } else {
            decide(model, tenant, key, &asked, &expected[i]);
        }
        ask_submit(&asks[i]);
    }
    for (unsigned i = 0; i < AT_ONCE; i++) {
        TURN_UNTIL(&model->world, asks[i].is_done);
        assert_int_equal(asks[i].done, 1);
        assert_int_equal(asks[i].result.fault, HG_FAULT_NONE);
        if (asks[i].result.status != expected[i].status)
            fail_msg("%s %s: 0x%x, the model says 0x%x", hg_op_rows[asks[i].call.op].name,
                     asks[i].key, asks[i].result.status, expected[i].status);
        assert_int_equal(asks[i].result.counter, expected[i].counter);
        if (expected[i].value != NULL) {
            assert_int_equal(asks[i].result.item_flags, expected[i].flags);
            assert_int_equal(asks[i].result.value.len, expected[i].len);
            assert_memory_equal(asks[i].value, expected[i].value, expected[i].len);
        }
        free(expected[i].value);
        ask_fini(&asks[i]);
    }
}

/* Every key of both tenants. */
static void compare(struct model *model)
{
    for (unsigned tenant = 0; tenant < TENANTS; tenant++)
        for (unsigned key = 0; key < KEYS; key++) {
            struct model_item *item = &model->items[tenant][key];
            char name[16];
            snprintf(name, sizeof name, "key%u", key);
            model->world.tenant_id = model->tenant_ids[tenant];
            struct ask get = run(&model->world, HG_OP_GET, name, HG_SPAN_NONE, 0, 0);
            if (!model_alive(model, tenant, item)) {
                assert_int_equal(get.result.status, HG_STATUS_KEY_ENOENT);
            } else {
                assert_int_equal(get.result.status, HG_STATUS_SUCCESS);
                assert_int_equal(get.result.item_flags, item->item.flags);
                assert_int_equal(get.result.value.len, item->item.value.len);
                assert_memory_equal(get.value, item->value, item->item.value.len);
            }
            ask_fini(&get);
        }
}

static void get_ids(struct model *model)
{
    for (unsigned tenant = 0; tenant < TENANTS; tenant++) {
        snprintf(model->names[tenant], sizeof model->names[tenant], "b%u", tenant);
        assert_int_equal(hg_embedded_tenant_id(model->world.shared, model->names[tenant],
                                               &model->tenant_ids[tenant]),
                         0);
    }
}

static void something_else(struct model *model)
{
    switch (below(model, 30)) {
    case 0:
        compare(model);
        world_reopen(&model->world);
        get_ids(model);
        compare(model);
        break;
    case 1: {
        unsigned tenant = (unsigned)below(model, TENANTS);
        uint32_t id = model->tenant_ids[tenant];
        assert_int_equal(hg_embedded_tenant_delete(model->world.shared, id), 0);
        get_ids(model);
        assert_int_not_equal(model->tenant_ids[tenant], id);
        memset(model->items[tenant], 0, sizeof model->items[tenant]);
        model->flushes[tenant] = (struct hg_item_flush){0, 0};
        break;
    }
    case 2:
    case 3:
    case 4:
        atomic_fetch_add(&model->world.wall_s, below(model, 4));
        break;
    default:
        break;
    }
    hg_loop_turn(&model->world.loop, false); /* the wall clock is read once a turn */
}

static void random_operations(void **state)
{
    enum hg_embedded_writing *writing = *state;
    struct model *model = calloc(1, sizeof *model);
    assert_non_null(model);
    model->random.state = 4711;
    for (size_t i = 0; i < sizeof model->bytes; i++)
        model->bytes[i] = (uint8_t)hg_prng_next(&model->random);
    world_init(&model->world, *writing, HG_EMBEDDED_SYNC_NEVER);
    model->world.options.max_value_bytes = LIMIT;
    world_open(&model->world);
    get_ids(model);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        one_turn(model);
        something_else(model);
    }
    compare(model);
    /* What is dead goes, and nothing else. */
    uint64_t alive = 0;
    for (unsigned tenant = 0; tenant < TENANTS; tenant++)
        for (unsigned key = 0; key < KEYS; key++)
            alive += model_alive(model, tenant, &model->items[tenant][key]);
    TURN_UNTIL(&model->world, items(&model->world) == alive);
    compare(model);
    world_fini(&model->world);
    free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(random_operations, &writings[0]),
        cmocka_unit_test_prestate(random_operations, &writings[1]),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
