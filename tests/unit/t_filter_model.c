// t_filter_model - random filters on random rows, against a recursive evaluator
// SPDX-License-Identifier: BSD-3-Clause
//
// The model works the way round that the code does not: from the root down, where a list hands to
// each operand the cells it is to look at, and sets are arrays of bool.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "base/prng.h"
#include "table/filter.h"

#define CELLS_MAX 140 /* more than two words of bits */
#define ROUNDS    6000

/* ---- trees ---- */

struct tree {
    struct hg_filter_node node;
    struct tree *operands[HG_TABLE_FILTER_DEPTH];
    size_t index; /* in postfix */
    uint64_t counted;
    bool passes[CELLS_MAX]; /* of the last row */
};

static struct tree trees[HG_TABLE_FILTER_NODES];
static size_t tree_count;
static struct hg_prng prng;
static int64_t stamps[3];

static size_t below(size_t bound)
{
    return (size_t)hg_prng_below(&prng, bound);
}

static const char *const words[] = {"", "a", "ab", "abc", "b", "ba", "bb", "c", "ca", "d"};

static struct hg_span word(void)
{
    return hg_span_str(words[below(sizeof words / sizeof words[0])]);
}

static struct hg_value some_value(void)
{
    switch (below(4)) {
    case 0:
        return (struct hg_value){.kind = HG_VALUE_NULL};
    case 1:
        return (struct hg_value){.kind = HG_VALUE_INTEGER, .integer = (int64_t)below(4)};
    case 2:
        return (struct hg_value){.kind = HG_VALUE_REAL, .real = (double)below(8) / 2};
    default:
        return (struct hg_value){.kind = HG_VALUE_BYTES, .bytes = word()};
    }
}

static struct hg_filter_node some_leaf(void)
{
    struct hg_filter_node node = {
        .kind = (enum hg_filter_kind)(HG_FILTER_PREFIX + below(HG_FILTER_KINDS - 2)),
        .op = (enum hg_operator)below(6),
        .family = below(2) ? HG_SPAN_LIT("f") : HG_SPAN_NONE,
        .qualifier = word(),
        .value = some_value(),
        .low = word(),
        .high = word(),
        .low_exclusive = below(2),
        .high_exclusive = below(2),
        .filter_if_missing = below(2),
        .count = below(6),
        .timestamps = stamps,
        .timestamp_count = below(4),
    };
    if (node.kind == HG_FILTER_QUALIFIER)
        node.value = (struct hg_value){.kind = HG_VALUE_BYTES, .bytes = word()};
    return node;
}

/* A tree that needs at most `depth` open results and takes at most `*budget` nodes. */
static struct tree *some_tree(size_t depth, size_t *budget)
{
    struct tree *tree = &trees[tree_count++];
    memset(tree, 0, sizeof *tree);
    --*budget;
    if (*budget < HG_TABLE_FILTER_DEPTH || below(3) == 0) {
        tree->node = some_leaf();
        return tree;
    }
    uint32_t operands = 1 + (uint32_t)below(depth < 4 ? depth : 4);
    tree->node = (struct hg_filter_node){.kind = (enum hg_filter_kind)below(2)};
    for (uint32_t i = 0; i<operands && * budget> 0; i++) {
        tree->operands[i] = some_tree(depth - i, budget);
        tree->node.operands++;
    }
    return tree;
}

static void write_postfix(struct tree *tree, struct hg_filter *filter)
{
    for (uint32_t i = 0; i < tree->node.operands; i++)
        write_postfix(tree->operands[i], filter);
    tree->index = filter->count;
    filter->nodes[filter->count++] = tree->node;
}

/* ---- the model ---- */

struct thing { /* a column or a cell */
    struct hg_span family, qualifier;
    struct hg_value value;
    int64_t at_ms;
    bool dated;
};

static struct hg_span row_key;
static struct thing things[CELLS_MAX];
static size_t thing_count, bits;
static bool bare[CELLS_MAX];

static bool in_bounds(const struct hg_filter_node *node, struct hg_span bytes)
{
    int low = hg_filter_compare_bytes(bytes, node->low);
    int high = hg_filter_compare_bytes(bytes, node->high);
    return (node->low.len == 0 || low > 0 || (low == 0 && !node->low_exclusive)) &&
           (node->high.len == 0 || high < 0 || (high == 0 && !node->high_exclusive));
}

static bool starts(struct hg_span bytes, struct hg_span prefix)
{
    return bytes.len >= prefix.len && hg_span_equal(hg_span(bytes.at, prefix.len), prefix);
}

static bool row_holds(const struct tree *tree)
{
    const struct hg_filter_node *node = &tree->node;
    switch (node->kind) {
    case HG_FILTER_PREFIX:
        return starts(row_key, node->low);
    case HG_FILTER_ROW_RANGE:
        return in_bounds(node, row_key);
    case HG_FILTER_PAGE:
        return tree->counted < node->count;
    default: /* SINGLE_COLUMN_VALUE: the newest comes first */
        for (size_t i = 0; i < thing_count; i++)
            if (hg_span_equal(things[i].family, node->family) &&
                hg_span_equal(things[i].qualifier, node->qualifier))
                return hg_filter_holds(node->op, hg_filter_compare(&things[i].value, &node->value));
        return !node->filter_if_missing;
    }
}

static bool thing_holds(const struct hg_filter_node *node, const struct thing *thing)
{
    struct hg_value name = {.kind = HG_VALUE_BYTES, .bytes = thing->qualifier};
    switch (node->kind) {
    case HG_FILTER_COLUMN_PREFIX:
        return starts(thing->qualifier, node->low);
    case HG_FILTER_COLUMN_RANGE:
        return in_bounds(node, thing->qualifier);
    case HG_FILTER_QUALIFIER:
        return hg_filter_holds(node->op, hg_filter_compare(&name, &node->value));
    case HG_FILTER_VALUE:
        return hg_filter_holds(node->op, hg_filter_compare(&thing->value, &node->value));
    default: /* TIMESTAMPS */
        for (size_t i = 0; i < node->timestamp_count; i++)
            if (thing->dated && node->timestamps[i] == thing->at_ms)
                return true;
        return false;
    }
}

/* Which of the cells that reach `tree` pass it: tree->passes. Those that pass a KEY_ONLY on the way
   are noted in `lost`. */
static void feed(struct tree *tree, const bool *reach, bool *lost)
{
    const struct hg_filter_node *node = &tree->node;
    bool now[CELLS_MAX], mine[CELLS_MAX] = {false};
    memcpy(now, reach, sizeof now);
    memset(tree->passes, 0, sizeof tree->passes);
    for (uint32_t k = 0; k < node->operands; k++) {
        feed(tree->operands[k], node->kind == HG_FILTER_ALL ? now : reach, mine);
        for (size_t i = 0; i < bits; i++) {
            now[i] = tree->operands[k]->passes[i];
            tree->passes[i] |= now[i];
        }
    }
    if (node->kind == HG_FILTER_ALL)
        memcpy(tree->passes, now, sizeof now);
    for (size_t i = 0; node->kind > HG_FILTER_ANY && i < bits; i++) {
        bool whole_row = node->kind == HG_FILTER_PREFIX || node->kind == HG_FILTER_ROW_RANGE ||
                         node->kind == HG_FILTER_PAGE ||
                         node->kind == HG_FILTER_SINGLE_COLUMN_VALUE;
        if (node->kind == HG_FILTER_KEY_ONLY) {
            tree->passes[i] = mine[i] = reach[i];
        } else if (node->kind == HG_FILTER_FIRST_KEY_ONLY) {
            tree->passes[i] = reach[i];
            if (reach[i])
                break;
        } else if (whole_row) {
            tree->passes[i] = reach[i] && row_holds(tree);
        } else {
            tree->passes[i] = reach[i] && i < thing_count && thing_holds(node, &things[i]);
        }
    }
    for (size_t i = 0; i < bits; i++)
        lost[i] |= mine[i] && tree->passes[i];
}

static void count(struct tree *tree, const bool *around)
{
    bool both[CELLS_MAX] = {false}, left = false;
    for (size_t i = 0; i < bits; i++)
        left |= both[i] = tree->passes[i] && around[i];
    if (left && tree->node.kind == HG_FILTER_PAGE)
        tree->counted++;
    for (uint32_t k = 0; k < tree->node.operands; k++)
        count(tree->operands[k], both);
}

/* The cells that pass, in root->passes; false: none. */
static bool model(struct tree *root)
{
    bool all[CELLS_MAX];
    memset(all, true, sizeof all);
    memset(bare, 0, sizeof bare);
    bits = thing_count > 0 ? thing_count : 1;
    feed(root, all, bare);
    for (size_t i = 0; i < bits; i++)
        if (root->passes[i]) {
            count(root, root->passes);
            return true;
        }
    return false;
}

/* ---- rows ---- */

static struct hg_column columns[CELLS_MAX];
static struct hg_cell cells[CELLS_MAX];
static uint8_t long_names[CELLS_MAX][8];

/* A sorted row of columns, or of cells, and the same as things; small ones are the most frequent.
 */
static struct hg_row some_row(void)
{
    struct hg_row row = {.api = below(2) ? HG_API_TABLE : HG_API_HBASE};
    thing_count = 0;
    size_t wanted = below(20) == 0 ? CELLS_MAX - below(CELLS_MAX - 64) : below(10);
    for (size_t i = 0; i < wanted; i++) {
        struct hg_span name = hg_span_str(words[i % 10]);
        if (wanted > 10) {
            int len = snprintf((char *)long_names[i], sizeof long_names[i], "%c%03zu",
                               'a' + (int)(i * 4 / wanted), i);
            name = hg_span(long_names[i], (size_t)len);
        } else if (below(3) == 0) {
            continue;
        }
        struct thing thing = {.qualifier = name, .value = some_value()};
        if (row.api == HG_API_HBASE) {
            if (i > 0 && thing_count > 0 && below(4) == 0)
                thing.qualifier = things[thing_count - 1].qualifier; /* an older version */
            thing.family = HG_SPAN_LIT("f");
            thing.value = (struct hg_value){.kind = HG_VALUE_BYTES, .bytes = word()};
            thing.dated = true;
            thing.at_ms = (int64_t)(CELLS_MAX - i);
        }
        things[thing_count++] = thing;
    }
    for (size_t i = 0; i < thing_count; i++) {
        columns[i] = (struct hg_column){things[i].qualifier, things[i].value};
        cells[i] = (struct hg_cell){things[i].family, things[i].qualifier, things[i].at_ms, true,
                                    things[i].value.bytes};
    }
    if (row.api == HG_API_TABLE)
        row.entity = (struct hg_entity){columns, thing_count};
    else
        row.cells = (struct hg_cells){cells, thing_count};
    return row;
}

/* ---- the comparison ---- */

static void check_columns(const struct tree *root, const struct hg_entity *passed)
{
    size_t at = 0;
    for (size_t i = 0; i < thing_count; i++) {
        if (!root->passes[i])
            continue;
        assert_true(at < passed->count);
        struct hg_value expected = things[i].value, null = {.kind = HG_VALUE_NULL};
        assert_true(hg_span_equal(passed->columns[at].name, things[i].qualifier));
        assert_int_equal(
            hg_filter_compare(&passed->columns[at++].value, bare[i] ? &null : &expected), 0);
    }
    assert_int_equal(at, passed->count);
}

static void check_cells(const struct tree *root, const struct hg_cells *passed)
{
    size_t at = 0;
    for (size_t i = 0; i < thing_count; i++) {
        if (!root->passes[i])
            continue;
        assert_true(at < passed->count);
        const struct hg_cell *cell = &passed->list[at++];
        assert_true(hg_span_equal(cell->qualifier, things[i].qualifier));
        assert_int_equal(cell->at_ms, things[i].at_ms);
        assert_true(hg_span_equal(cell->value, bare[i] ? HG_SPAN_NONE : things[i].value.bytes));
    }
    assert_int_equal(at, passed->count);
}

static bool check_row(struct tree *root, const struct hg_filter *filter,
                      struct hg_filter_state *state, struct hg_arena *arena)
{
    struct hg_row row = some_row();
    struct hg_entity columns_passed = {NULL, 0};
    struct hg_cells cells_passed = {NULL, 0};
    bool may = hg_filter_row_key(filter, state, row_key), memory;
    bool done = hg_filter_done(filter, state, row_key, false) ||
                hg_filter_done(filter, state, row_key, true);
    bool expected = (row.api == HG_API_TABLE || thing_count > 0) && model(root), passed;
    if (row.api == HG_API_TABLE)
        passed = hg_filter_entity(filter, state, row_key, &row, &row.entity, arena, &columns_passed,
                                  &memory);
    else
        passed = hg_filter_cells(filter, state, row_key, &row, &row.cells, arena, &cells_passed,
                                 &memory);
    assert_false(memory);
    assert_int_equal(passed, expected);
    assert_true(!passed || (may && !done));
    if (passed && row.api == HG_API_TABLE)
        check_columns(root, &columns_passed);
    else if (passed)
        check_cells(root, &cells_passed);
    return passed;
}

/* Every row of keys that rise, or fall: what is said to be done lets nothing pass any more. */
static void test_random_filters(void **unused)
{
    (void)unused;
    struct hg_arena arena;
    size_t passed = 0, ended = 0, lists = 0;
    prng.state = 20240229;
    hg_arena_init(&arena, 1 << 20);
    for (int round = 0; round < ROUNDS; round++) {
        struct hg_filter_node nodes[HG_TABLE_FILTER_NODES];
        struct hg_filter filter = {nodes, 0};
        struct hg_filter_state state = {{0}};
        size_t budget = 1 + below(HG_TABLE_FILTER_NODES);
        for (size_t i = 0; i < 3; i++)
            stamps[i] = (int64_t)below(CELLS_MAX);
        tree_count = 0;
        struct tree *root = some_tree(HG_TABLE_FILTER_DEPTH, &budget);
        write_postfix(root, &filter);
        lists += filter.count > 1;
        bool reverse = below(2), done = false;
        for (size_t i = 0; i < 10; i++) {
            row_key = hg_span_str(words[reverse ? 9 - i : i]);
            done = done || hg_filter_done(&filter, &state, row_key, reverse);
            bool row = check_row(root, &filter, &state, &arena);
            assert_false(done && row);
            passed += row;
            ended += done;
            hg_arena_reset(&arena);
        }
        for (size_t i = 0; i < tree_count; i++)
            assert_int_equal(state.passed[trees[i].index], trees[i].counted);
    }
    hg_arena_fini(&arena);
    /* The test would show little if nearly nothing, or nearly all, passed. */
    assert_in_range(passed, ROUNDS * 2, ROUNDS * 8);
    assert_in_range(ended, ROUNDS / 10, ROUNDS * 8);
    assert_true(lists > ROUNDS / 3);
}

/* ANY does not mind the order of its operands; nor does ALL without FIRST_KEY_ONLY. */
static void test_order_of_operands(void **unused)
{
    (void)unused;
    struct hg_arena arena;
    prng.state = 77;
    hg_arena_init(&arena, 1 << 20);
    for (int round = 0; round < ROUNDS; round++) {
        struct hg_filter_node left[4], right[4];
        size_t operands = 1 + below(3);
        for (size_t i = 0; i < operands; i++) {
            left[i] = some_leaf();
            if (left[i].kind == HG_FILTER_FIRST_KEY_ONLY)
                left[i].kind = HG_FILTER_KEY_ONLY;
            right[operands - 1 - i] = left[i];
        }
        left[operands] = right[operands] = (struct hg_filter_node){
            .kind = (enum hg_filter_kind)below(2), .operands = (uint32_t)operands};
        struct hg_filter filters[2] = {{left, operands + 1}, {right, operands + 1}};
        struct hg_filter alone = {left, 1};
        struct hg_filter_state states[3] = {{{0}}, {{0}}, {{0}}};
        for (size_t i = 0; i < 10; i++) {
            struct hg_row row = some_row();
            struct hg_entity passed[3];
            bool passes[3], memory;
            if (row.api != HG_API_TABLE)
                continue;
            row_key = hg_span_str(words[i]);
            for (size_t k = 0; k < 3; k++)
                passes[k] = hg_filter_entity(k < 2 ? &filters[k] : &alone, &states[k], row_key,
                                             &row, &row.entity, &arena, &passed[k], &memory);
            /* A list of one operand is the operand. */
            for (size_t k = 1; k < (operands == 1 ? 3 : 2); k++) {
                assert_int_equal(passes[0], passes[k]);
                if (!passes[0])
                    continue;
                assert_int_equal(passed[0].count, passed[k].count);
                for (size_t c = 0; c < passed[0].count; c++) {
                    assert_true(
                        hg_span_equal(passed[0].columns[c].name, passed[k].columns[c].name));
                    assert_int_equal(passed[0].columns[c].value.kind,
                                     passed[k].columns[c].value.kind);
                }
            }
            hg_arena_reset(&arena);
        }
    }
    hg_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_filters),
        cmocka_unit_test(test_order_of_operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
