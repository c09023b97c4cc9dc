// filter_row - which cells of a row pass a filter
// SPDX-License-Identifier: BSD-3-Clause
//
// The program is walked once a row. Each node's result is a set of cells, one bit a cell; a
// condition on the row is the set of all cells or the empty one, so that lists are plain
// intersections and unions. A row without columns has one bit that stands for the row itself: no
// condition on cells lets it pass. So in every case a row passes what leaves a bit set.
//
// When a node's turn comes, the results that are open are those of the operands before it, in all
// the lists around it. That is what FIRST_KEY_ONLY needs to know what reaches it. What PAGE counts
// is known only at the end, hence the parents, and a set for every node.
#include "table/filter.h"

#include "table/filter_in.h"

#define WORD_BITS   64
#define LOCAL_WORDS 256 /* sets that fit into these need no arena */

struct walk {
    const struct hg_filter *filter;
    const struct hg_filter_state *state;
    struct hg_span row_key;
    const struct hg_row *row;
    const struct hg_column *columns; /* the candidates: these, */
    const struct hg_cell *cells;     /* or these */
    size_t count;
    /* the shape of the program */
    uint8_t parent[HG_TABLE_FILTER_NODES]; /* of the root: itself */
    bool key_only, page;                   /* there is one */
    /* by node, a set of `words` each: the cells that pass it; of those that lose their value */
    size_t bits, words;
    uint64_t *pass, *bare;
    /* the nodes whose results are open */
    uint8_t open[HG_TABLE_FILTER_DEPTH];
    size_t depth;
};

/* Is it well formed? Notes who is whose operand. */
static bool find_shape(struct walk *walk)
{
    uint8_t open[HG_TABLE_FILTER_DEPTH];
    size_t depth = 0;
    if (walk->filter->count > HG_TABLE_FILTER_NODES)
        return false;
    for (size_t i = 0; i < walk->filter->count; i++) {
        const struct hg_filter_node *node = &walk->filter->nodes[i];
        if ((unsigned)node->kind >= HG_FILTER_KINDS)
            return false;
        if (hg_filter_is_list(node)) {
            if (node->operands == 0 || node->operands > depth)
                return false;
            for (uint32_t k = 0; k < node->operands; k++)
                walk->parent[open[--depth]] = (uint8_t)i;
        }
        if (depth == HG_TABLE_FILTER_DEPTH)
            return false;
        open[depth++] = (uint8_t)i;
        walk->parent[i] = (uint8_t)i;
        walk->key_only |= node->kind == HG_FILTER_KEY_ONLY;
        walk->page |= node->kind == HG_FILTER_PAGE;
    }
    return depth == 1;
}

static uint64_t *pass_of(const struct walk *walk, size_t node)
{
    return walk->pass + node * walk->words;
}

static uint64_t *bare_of(const struct walk *walk, size_t node)
{
    return walk->bare + node * walk->words;
}

static bool bit(const uint64_t *set, size_t i)
{
    return set[i / WORD_BITS] >> i % WORD_BITS & 1;
}

static void set_bit(uint64_t *set, size_t i)
{
    set[i / WORD_BITS] |= UINT64_C(1) << i % WORD_BITS;
}

static void fill(const struct walk *walk, uint64_t *set, bool all)
{
    memset(set, all ? 0xff : 0, walk->words * sizeof *set);
    if (all && walk->bits % WORD_BITS != 0)
        set[walk->words - 1] = (UINT64_C(1) << walk->bits % WORD_BITS) - 1;
}

static struct hg_span qualifier_of(const struct walk *walk, size_t i)
{
    return walk->cells != NULL ? walk->cells[i].qualifier : walk->columns[i].name;
}

static struct hg_value value_of_cell(const struct hg_cell *cell)
{
    return (struct hg_value){.kind = HG_VALUE_BYTES, .bytes = cell->value};
}

static struct hg_value value_of(const struct walk *walk, size_t i)
{
    return walk->cells != NULL ? value_of_cell(&walk->cells[i]) : walk->columns[i].value;
}

/* The row's column, or the newest cell of it; false: there is none. */
static bool find_value(const struct hg_row *row, struct hg_span family, struct hg_span qualifier,
                       struct hg_value *ret)
{
    bool table = row->api == HG_API_TABLE;
    if (table && family.len > 0)
        return false;
    size_t low = 0, high = table ? row->entity.count : row->cells.count, count = high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = table ? 0 : hg_filter_compare_bytes(row->cells.list[middle].family, family);
        if (order == 0)
            order = hg_filter_compare_bytes(table ? row->entity.columns[middle].name
                                                  : row->cells.list[middle].qualifier,
                                            qualifier);
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == count)
        return false;
    if (table) {
        *ret = row->entity.columns[low].value;
        return hg_span_equal(row->entity.columns[low].name, qualifier);
    }
    *ret = value_of_cell(&row->cells.list[low]);
    return hg_span_equal(row->cells.list[low].family, family) &&
           hg_span_equal(row->cells.list[low].qualifier, qualifier);
}

static bool row_value_passes(const struct walk *walk, const struct hg_filter_node *node)
{
    struct hg_value value;
    if (!find_value(walk->row, node->family, node->qualifier, &value))
        return !node->filter_if_missing;
    return hg_filter_holds(node->op, hg_filter_compare(&value, &node->value));
}

/* Ascending lists are searched, so that a long one costs little. */
static bool is_ascending(const struct hg_filter_node *node)
{
    for (size_t i = 1; i < node->timestamp_count; i++)
        if (node->timestamps[i - 1] > node->timestamps[i])
            return false;
    return true;
}

static bool has_timestamp(const struct hg_filter_node *node, int64_t at_ms, bool ascending)
{
    size_t low = 0, high = node->timestamp_count;
    while (ascending && low < high) {
        size_t middle = low + (high - low) / 2;
        if (node->timestamps[middle] < at_ms)
            low = middle + 1;
        else
            high = middle;
    }
    if (ascending)
        return low < node->timestamp_count && node->timestamps[low] == at_ms;
    for (size_t i = 0; i < node->timestamp_count; i++)
        if (node->timestamps[i] == at_ms)
            return true;
    return false;
}

/* A node that looks at each cell by itself. */
static bool cell_passes(const struct walk *walk, const struct hg_filter_node *node, size_t i,
                        bool ascending)
{
    struct hg_span qualifier = qualifier_of(walk, i);
    struct hg_value value;
    switch (node->kind) {
    case HG_FILTER_COLUMN_PREFIX:
        return hg_filter_begins_with(qualifier, node->low);
    case HG_FILTER_COLUMN_RANGE:
        return !hg_filter_under_low(node, qualifier) && !hg_filter_over_high(node, qualifier);
    case HG_FILTER_QUALIFIER:
        value = (struct hg_value){.kind = HG_VALUE_BYTES, .bytes = qualifier};
        return hg_filter_holds(node->op, hg_filter_compare(&value, &node->value));
    case HG_FILTER_VALUE:
        value = value_of(walk, i);
        return hg_filter_holds(node->op, hg_filter_compare(&value, &node->value));
    case HG_FILTER_TIMESTAMPS:
        return walk->cells != NULL && walk->cells[i].dated &&
               has_timestamp(node, walk->cells[i].at_ms, ascending);
    default:
        return false;
    }
}

/* The first cell that all operands before it let pass, as far as an ALL takes them. */
static void pass_first(const struct walk *walk, uint64_t *pass)
{
    fill(walk, pass, false);
    for (size_t w = 0; w < walk->words; w++) {
        uint64_t reach = ~UINT64_C(0);
        if (w == walk->words - 1 && walk->bits % WORD_BITS != 0)
            reach = (UINT64_C(1) << walk->bits % WORD_BITS) - 1;
        for (size_t level = 0; level < walk->depth; level++)
            if (walk->filter->nodes[walk->parent[walk->open[level]]].kind == HG_FILTER_ALL)
                reach &= pass_of(walk, walk->open[level])[w];
        if (reach != 0) {
            pass[w] = reach & -reach;
            return;
        }
    }
}

/* The result of node `i`, which is no list. */
static void put_leaf(struct walk *walk, size_t i)
{
    const struct hg_filter_node *node = &walk->filter->nodes[i];
    uint64_t *pass = pass_of(walk, i);
    switch (node->kind) {
    case HG_FILTER_PREFIX:
    case HG_FILTER_ROW_RANGE:
    case HG_FILTER_PAGE:
        fill(walk, pass,
             hg_filter_key_may_pass(node, walk->state->passed[i], walk->row_key,
                                    HG_FILTER_THIS_ROW));
        break;
    case HG_FILTER_SINGLE_COLUMN_VALUE:
        fill(walk, pass, row_value_passes(walk, node));
        break;
    case HG_FILTER_KEY_ONLY:
        fill(walk, pass, true);
        break;
    case HG_FILTER_FIRST_KEY_ONLY:
        pass_first(walk, pass);
        break;
    default: {
        bool ascending = node->kind == HG_FILTER_TIMESTAMPS && is_ascending(node);
        fill(walk, pass, false);
        for (size_t c = 0; c < walk->count; c++)
            if (cell_passes(walk, node, c, ascending))
                set_bit(pass, c);
    }
    }
    if (walk->key_only)
        fill(walk, bare_of(walk, i), node->kind == HG_FILTER_KEY_ONLY);
}

/* The result of node `i`, a list: of the last results that are open, which it closes. */
static void put_list(struct walk *walk, size_t i)
{
    const struct hg_filter_node *node = &walk->filter->nodes[i];
    bool all = node->kind == HG_FILTER_ALL;
    uint64_t *pass = pass_of(walk, i), *bare = bare_of(walk, i);
    fill(walk, pass, all);
    if (walk->key_only)
        fill(walk, bare, false);
    for (uint32_t k = 0; k < node->operands; k++) {
        size_t operand = walk->open[--walk->depth];
        const uint64_t *next = pass_of(walk, operand);
        for (size_t w = 0; w < walk->words; w++)
            pass[w] = all ? pass[w] & next[w] : pass[w] | next[w];
        for (size_t w = 0; walk->key_only && w < walk->words; w++)
            bare[w] |= bare_of(walk, operand)[w];
    }
    for (size_t w = 0; walk->key_only && w < walk->words; w++)
        bare[w] &= pass[w];
}

/* Counts the row with each PAGE to which it owes a cell: one that passes the PAGE and all lists
   around it. Spoils the sets, but not the root's. */
static void count_pages(struct walk *walk, struct hg_filter_state *state)
{
    for (size_t i = walk->filter->count; walk->page && i-- > 0;) {
        uint64_t *pass = pass_of(walk, i), left = 0;
        const uint64_t *around = pass_of(walk, walk->parent[i]);
        for (size_t w = 0; w < walk->words; w++)
            left |= pass[w] &= around[w];
        if (left != 0 && walk->filter->nodes[i].kind == HG_FILTER_PAGE)
            state->passed[i]++;
    }
}

/* Runs the program; small sets lie in `local`. False: the row does not pass. */
static bool run(struct walk *walk, uint64_t *local, struct hg_arena *arena, bool *ret_memory)
{
    if (!find_shape(walk))
        return false;
    walk->bits = walk->count > 0 ? walk->count : 1;
    walk->words = (walk->bits + WORD_BITS - 1) / WORD_BITS;
    size_t nodes = walk->filter->count, all_words = nodes * walk->words;
    walk->pass = local;
    if (all_words * 2 > LOCAL_WORDS)
        walk->pass = hg_arena_take(arena, all_words * 2 * sizeof *walk->pass);
    if (walk->pass == NULL) {
        *ret_memory = true;
        return false;
    }
    walk->bare = walk->pass + all_words;
    for (size_t i = 0; i < nodes; i++) {
        if (hg_filter_is_list(&walk->filter->nodes[i]))
            put_list(walk, i);
        else
            put_leaf(walk, i);
        walk->open[walk->depth++] = (uint8_t)i;
    }
    const uint64_t *root = pass_of(walk, nodes - 1);
    for (size_t w = 0; w < walk->words; w++)
        if (root[w] != 0)
            return true;
    return false;
}

/* How many candidates pass; *ret_as_is when they are all of them, with their values. */
static size_t count_passing(const struct walk *walk, bool *ret_as_is)
{
    size_t root = walk->filter->count - 1, passing = 0;
    bool bare = false;
    for (size_t w = 0; walk->count > 0 && w < walk->words; w++) {
        passing += (size_t)__builtin_popcountll(pass_of(walk, root)[w]);
        bare |= walk->key_only && bare_of(walk, root)[w] != 0;
    }
    *ret_as_is = passing == walk->count && !bare;
    return passing;
}

/* Candidate `i` of a row that passes. */
static bool passes(const struct walk *walk, size_t i)
{
    return bit(pass_of(walk, walk->filter->count - 1), i);
}

static bool is_bare(const struct walk *walk, size_t i)
{
    return walk->key_only && bit(bare_of(walk, walk->filter->count - 1), i);
}

bool hg_filter_entity(const struct hg_filter *filter, struct hg_filter_state *state,
                      struct hg_span row_key, const struct hg_row *row,
                      const struct hg_entity *from, struct hg_arena *arena,
                      struct hg_entity *ret_entity, bool *ret_memory)
{
    struct walk walk = {.filter = filter,
                        .state = state,
                        .row_key = row_key,
                        .row = row,
                        .columns = from->columns,
                        .count = from->count};
    uint64_t local[LOCAL_WORDS];
    bool as_is = true;
    *ret_memory = false;
    if (filter->count > 0 && !run(&walk, local, arena, ret_memory))
        return false;
    size_t passing = filter->count > 0 ? count_passing(&walk, &as_is) : 0;
    struct hg_entity entity = *from;
    if (!as_is) {
        entity.columns = hg_arena_array(arena, passing, sizeof *entity.columns);
        entity.count = 0;
        if (entity.columns == NULL) {
            *ret_memory = true;
            return false;
        }
        for (size_t i = 0; i < from->count; i++) {
            if (!passes(&walk, i))
                continue;
            struct hg_column *column = &entity.columns[entity.count++];
            *column = from->columns[i];
            if (is_bare(&walk, i))
                column->value = (struct hg_value){.kind = HG_VALUE_NULL};
        }
    }
    count_pages(&walk, state);
    *ret_entity = entity;
    return true;
}

bool hg_filter_cells(const struct hg_filter *filter, struct hg_filter_state *state,
                     struct hg_span row_key, const struct hg_row *row, const struct hg_cells *from,
                     struct hg_arena *arena, struct hg_cells *ret_cells, bool *ret_memory)
{
    struct walk walk = {.filter = filter,
                        .state = state,
                        .row_key = row_key,
                        .row = row,
                        .cells = from->list,
                        .count = from->count};
    uint64_t local[LOCAL_WORDS];
    bool as_is = true;
    *ret_memory = false;
    if (from->count == 0 || (filter->count > 0 && !run(&walk, local, arena, ret_memory)))
        return false;
    size_t passing = filter->count > 0 ? count_passing(&walk, &as_is) : 0;
    struct hg_cells cells = *from;
    if (!as_is) {
        cells.list = hg_arena_array(arena, passing, sizeof *cells.list);
        cells.count = 0;
        if (cells.list == NULL) {
            *ret_memory = true;
            return false;
        }
        for (size_t i = 0; i < from->count; i++) {
            if (!passes(&walk, i))
                continue;
            struct hg_cell *cell = &cells.list[cells.count++];
            *cell = from->list[i];
            if (is_bare(&walk, i))
                cell->value = HG_SPAN_NONE;
        }
    }
    count_pages(&walk, state);
    *ret_cells = cells;
    return true;
}
