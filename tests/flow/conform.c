// conform - what every kind of store must do alike: opens the stores, runs cases and their steps
// SPDX-License-Identifier: BSD-3-Clause
#include "conform.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "piece.h"

#define FLAGS 0xa1b2c3d4

static const struct conform_kind *kind;

/* A test: one case on one store. */
struct pair {
    const struct conform_store *store;
    const struct conform_case *what;
    unsigned number;
    struct conform c;
};

const struct conform_kind *conform_kind(void)
{
    return kind;
}

bool conform_has(const struct conform *c, unsigned bits)
{
    return (c->kept->has & bits) == bits;
}

uint64_t conform_deadline(void)
{
    return hg_now_us() + 60000000 * bench_scale();
}

void conform_remote(const struct conform *c, struct hg_remote_conf *conf,
                    struct hg_ring_server *servers, uint32_t count)
{
    hg_remote_conf_init(conf);
    conf->name = "real";
    conf->ring.servers = servers;
    conf->ring.count = count;
    conf->times.connect_timeout_ms = 60000;
    conf->times.backend_timeout_ms = 60000;
    conf->times.queue_timeout_ms = 60000;
    conf->times.reconnect_max_ms = 50;
    if (c->kept->relayed)
        conf->pool_max_connections = 3; /* less than 2 for each of two workers */
}

/* --- open and close --- */

static void on_tick(struct hg_timer *timer)
{
    (void)timer;
}

void conform_open_stores(struct conform *c, uint32_t workers)
{
    c->workers = workers;
    for (uint32_t w = 0; w < workers; w++) {
        struct rig *rig = &c->rigs[w];
        rig_init(rig);
        assert_int_equal(hg_loop_timer_init(&rig->loop, &c->ticks[w], 5000, on_tick), 0);
        c->bench.rigs[w] = rig;
        c->stores[w] = kind->worker(c, rig, w);
        assert_non_null(c->stores[w]);
    }
    c->rig = &c->rigs[workers - 1];
    c->store = c->stores[workers - 1];
    if (c->kept->relayed)
        assert_true(hg_relay_is_away(&hg_remote_of(c->store)->relay, 0));
}

void conform_turn(struct conform *c, bool wait)
{
    if (c->workers == 1)
        hg_loop_turn(&c->rig->loop, wait);
    else
        bench_turn(&c->bench);
}

void conform_free_stores(struct conform *c)
{
    for (uint32_t w = c->workers; w-- > 0;) {
        if (c->stores[w] != NULL)
            c->stores[w]->ops->free(c->stores[w]);
        c->stores[w] = NULL;
    }
}

static int set_up(void **state)
{
    struct pair *pair = *state;
    struct conform *c = &pair->c;
    memset(c, 0, sizeof *c);
    c->kept = pair->store;
    c->large = pair->what->large;
    c->max_value_bytes = pair->what->max_value_bytes != 0 ? pair->what->max_value_bytes : 1 << 20;
    snprintf(c->prefix_text, sizeof c->prefix_text, "c%u:", pair->number);
    c->prefix = hg_span_str(c->prefix_text);
    kind->open(c);
    if (!pair->what->own_workers)
        conform_open_stores(c, c->kept->relayed ? 2 : 1);
    return 0;
}

static int tear_down(void **state)
{
    struct conform *c = &((struct pair *)*state)->c;
    for (uint32_t w = 0; w < c->workers; w++)
        if (c->upstream != NULL && c->stores[w] != NULL)
            assert_int_equal(hg_remote_of(c->stores[w])->ties.slab.borrowed, 0);
    if (c->upstream != NULL) {
        assert_int_equal(conform_stat(c, HG_UPSTREAM_BAD_REPLIES), 0);
        assert_int_equal(conform_stat(c, HG_UPSTREAM_TIMEOUTS), 0);
    }
    conform_free_stores(c);
    kind->close(c);
    for (uint32_t w = 0; w < c->workers; w++) {
        hg_loop_timer_fini(&c->ticks[w]);
        rig_fini(&c->rigs[w]);
    }
    return 0;
}

uint64_t conform_stat(const struct conform *c, enum hg_upstream_stat stat)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->upstream->count; i++)
        sum += rig_stat(c->upstream, i, stat);
    return sum;
}

/* --- single calls --- */

void conform_note(struct conform *c, struct note *note, enum hg_op op, const char *key)
{
    note_init(note, c->store, op, key);
    note->call.tenant_id = c->tenant_id;
    note->call.prefix = c->prefix;
}

struct hg_result conform_finish(struct conform *c, struct note *note)
{
    (void)note_submit(note, c->rig);
    CONFORM_UNTIL(c, note->done > 0);
    assert_int_equal(note->done, 1);
    if (note->result.fault != HG_FAULT_NONE)
        fail_msg("%s: fault %d: %s", note->key, note->result.fault, note->value);
    return note->result;
}

struct hg_result conform_call(struct conform *c, enum hg_op op, const char *key, const char *value)
{
    struct note note;
    conform_note(c, &note, op, key);
    if (value != NULL) {
        note.call.value = hg_span_str(value);
        note.call.item_flags = conform_has(c, HAS_FLAGS) ? FLAGS : 0;
    }
    return conform_finish(c, &note);
}

void conform_expect(struct conform *c, const char *key, const char *value)
{
    struct note note;
    conform_note(c, &note, HG_OP_GET, key);
    assert_int_equal(conform_finish(c, &note).status, value == NULL ? HG_STATUS_KEY_ENOENT : 0);
    if (value != NULL) {
        assert_string_equal(note.value, value);
        assert_int_equal(note.value_len, strlen(value));
    }
}

/* --- steps --- */

/* What the steps so far made of a key. */
struct memory {
    const char *key;
    uint64_t cas, before;
    uint32_t flags;
};

static struct memory *remember(struct memory memories[4], const char *key)
{
    struct memory *memory = memories;
    while (memory->key != NULL && strcmp(memory->key, key) != 0)
        assert_ptr_not_equal(++memory, memories + 4);
    memory->key = key;
    return memory;
}

static uint64_t cas_of(const struct memory *memory, enum conform_cas cas)
{
    switch (cas) {
    case CAS_RIGHT:
        return memory->cas;
    case CAS_OTHER:
        return memory->cas + 1;
    case CAS_BEFORE:
        return memory->before;
    case CAS_SOME:
        return 5;
    default:
        return 0;
    }
}

static bool stores_a_value(enum hg_op op)
{
    return op == HG_OP_SET || op == HG_OP_ADD || op == HG_OP_REPLACE;
}

static bool is_counter(enum hg_op op)
{
    return op == HG_OP_INCREMENT || op == HG_OP_DECREMENT;
}

/* The CAS that comes with a success. */
static void check_cas(const struct conform *c, enum hg_op op, uint64_t cas, struct memory *memory)
{
    if (!conform_has(c, HAS_CAS) || op == HG_OP_DELETE || op == HG_OP_FLUSH) {
        assert_true(cas == 0);
    } else if (op == HG_OP_GET || op == HG_OP_GAT || op == HG_OP_TOUCH) {
        assert_true(cas == memory->cas);
    } else {
        assert_true(cas != 0 && cas != memory->cas);
        if (conform_has(c, HAS_RISING_CAS))
            assert_true(cas > memory->cas);
        memory->before = memory->cas;
        memory->cas = cas;
    }
}

static void check_value(const struct conform *c, const struct conform_step *step,
                        const struct note *note)
{
    char value[64];
    if (step->gives == NULL)
        return;
    snprintf(value, sizeof value, "%s", step->gives);
    if (!conform_has(c, HAS_PADDING))
        value[strcspn(value, " ")] = '\0';
    assert_string_equal(note->value, value);
    assert_int_equal(note->value_len, strlen(value));
}

static void check_success(struct conform *c, const struct conform_step *step,
                          const struct note *note, struct memory *memory)
{
    const struct hg_result *result = &note->result;
    check_cas(c, step->op, result->cas, memory);
    if (stores_a_value(step->op))
        memory->flags = note->call.item_flags;
    if (is_counter(step->op)) {
        if (result->counter != step->counter)
            fail_msg("the counter is %llu", (unsigned long long)result->counter);
        return;
    }
    if (step->op == HG_OP_GET || step->op == HG_OP_GAT) {
        assert_int_equal(result->item_flags, memory->flags);
        check_value(c, step, note);
    }
    if (step->op == HG_OP_TOUCH && conform_has(c, HAS_TOUCH_FLAGS))
        assert_int_equal(result->item_flags, memory->flags);
    if (step->bytes != 0 && conform_has(c, HAS_JOIN_SIZE))
        assert_int_equal(result->item_bytes, step->bytes);
}

static void run_step(struct conform *c, const struct conform_step *step, unsigned round,
                     struct memory *memory)
{
    struct note note;
    char key[64];
    const char *name = step->key != NULL ? step->key : "";
    if (kind->key != NULL && step->op != HG_OP_FLUSH)
        kind->key(key, name, round);
    else
        snprintf(key, sizeof key, round == 0 ? "%s" : "%s#%u", name, round);
    conform_note(c, &note, step->op, step->op == HG_OP_FLUSH ? "" : key);
    if (step->value != NULL)
        note.call.value = hg_span_str(step->value);
    if (stores_a_value(step->op) && conform_has(c, HAS_FLAGS))
        note.call.item_flags = FLAGS;
    note.call.cas = cas_of(memory, step->cas);
    note.call.expiry = step->expiry;
    note.call.delta = step->delta;
    note.call.initial = step->initial;
    struct hg_result result = conform_finish(c, &note);
    if (result.status != step->status)
        fail_msg("%s '%s': status %#x, not %#x: %s", hg_op_rows[step->op].name, key, result.status,
                 step->status, note.value);
    if (step->op != HG_OP_FLUSH)
        assert_string_equal(result.server,
                            c->store->ops->where(c->store, c->prefix, hg_span_str(key)));
    if (result.status == 0) {
        check_success(c, step, &note, memory);
        return;
    }
    assert_true(result.cas == 0);
    if (step->says != NULL)
        assert_non_null(strstr(note.value, step->says));
    if (step->op == HG_OP_GET)
        assert_true(note.value_len == 0 || conform_has(c, HAS_SERVER_TEXTS));
    if (conform_has(c, HAS_SERVER_TEXTS))
        assert_true(note.value_len > 0);
}

static void run_steps(struct conform *c, const struct conform_case *what)
{
    for (unsigned round = 0; round == 0 || round < c->kept->rounds; round++) {
        struct memory memories[4] = {{0}};
        for (size_t i = 0; i < what->count; i++)
            run_step(c, &what->steps[i], round,
                     remember(memories, what->steps[i].key != NULL ? what->steps[i].key : ""));
    }
    if (conform_has(c, HAS_ONE_SERVER))
        assert_int_equal(conform_stat(c, HG_UPSTREAM_CONNECTS), 1);
}

/* --- all of it --- */

static void run_pair(void **state)
{
    struct pair *pair = *state;
    if (pair->what->run != NULL)
        pair->what->run(&pair->c);
    else
        run_steps(&pair->c, pair->what);
}

static int launch(void **state)
{
    (void)state;
    kind->launch();
    return 0;
}

static int put_down(void **state)
{
    (void)state;
    kind->put_down();
    return 0;
}

struct suite {
    struct pair *pairs;
    struct CMUnitTest *tests;
    size_t count;
};

static void add_pairs(struct suite *suite, const struct conform_store *store,
                      const struct conform_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if ((store->has & cases[i].needs) != cases[i].needs || (store->has & cases[i].lacks) != 0)
            continue;
        char *name = NULL;
        if (asprintf(&name, "%s: %s", store->name, cases[i].name) < 0)
            abort();
        struct pair *pair = &suite->pairs[suite->count];
        *pair =
            (struct pair){.store = store, .what = &cases[i], .number = (unsigned)suite->count + 1};
        suite->tests[suite->count++] = (struct CMUnitTest){name, run_pair, set_up, tear_down, pair};
    }
}

int conform_main(const struct conform_kind *of, const struct conform_store *stores, size_t count)
{
    size_t most = count * (conform_items_count + conform_calls_count + conform_rows_count +
                           conform_ranges_count);
    struct suite suite = {calloc(most, sizeof *suite.pairs), calloc(most, sizeof *suite.tests), 0};
    if (suite.pairs == NULL || suite.tests == NULL)
        abort();
    kind = of;
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_level(HG_LOG_ERROR);
    piece_init();
    for (size_t i = 0; i < count; i++) {
        add_pairs(&suite, &stores[i], conform_items, conform_items_count);
        add_pairs(&suite, &stores[i], conform_calls, conform_calls_count);
        add_pairs(&suite, &stores[i], conform_rows, conform_rows_count);
        add_pairs(&suite, &stores[i], conform_ranges, conform_ranges_count);
    }
    int rc = _cmocka_run_group_tests(kind->name, suite.tests, suite.count, launch, put_down);
    for (size_t i = 0; i < suite.count; i++)
        free((char *)(uintptr_t)suite.tests[i].name);
    free(suite.tests);
    free(suite.pairs);
    piece_fini();
    return rc;
}
