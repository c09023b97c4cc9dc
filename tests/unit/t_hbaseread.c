// t_hbaseread - what reads and checks see of a row, when it is over, and what happens without
// memory SPDX-License-Identifier: BSD-3-Clause
#include "hbasehelp.h"

static const char *const stored =
    "a:x@30=3 a:x@20=2 a:x@10=1 a:y@30=6 a:y@20=5 a:y@10=4 b:x@30=9 b:x@20=8 b:x@10=7 c:x@30=0";

static void start(struct rig *rig)
{
    rig_init(rig);
    rig_family(rig, "a", 0, 5);
    rig_family(rig, "b", 0, 5);
    assert_int_equal(rig_put(rig, stored), 0);
    rig->listed[1].max_versions = 2;
}

static struct hg_hbase_read read_all(uint32_t max_versions)
{
    return (struct hg_hbase_read){
        .min_ms = INT64_MIN, .max_ms = INT64_MAX, .max_versions = max_versions};
}

/* A GET, as text; the row is not touched. */
static const char *get(struct rig *rig, const struct hg_hbase_read *read)
{
    struct hg_hbase_item item = {.op = HG_OP_HBASE_GET, .row = HG_SPAN_LIT("row-1"), .read = *read};
    assert_int_equal(rig_apply(rig, &item), 0);
    assert_int_equal(rig->out.act, HG_ROW_KEEP);
    assert_int_equal(rig->out.result.affected, 0);
    return text_of(rig, &rig->out.result.cells);
}

static const char *get_filtered(struct rig *rig, struct hg_hbase_read read,
                                struct hg_filter_node *nodes, size_t count)
{
    read.filter = (struct hg_filter){nodes, count};
    return get(rig, &read);
}

static void test_versions_of_a_read(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    struct hg_hbase_read read = read_all(1);
    assert_string_equal(get(&rig, &read), "a:x@30=3 a:y@30=6 b:x@30=9 c:x@30=0");
    read.max_versions = 2;
    assert_string_equal(get(&rig, &read),
                        "a:x@30=3 a:x@20=2 a:y@30=6 a:y@20=5 b:x@30=9 b:x@20=8 c:x@30=0");
    /* the family's own number caps the read's */
    read.max_versions = UINT32_MAX;
    assert_string_equal(get(&rig, &read), "a:x@30=3 a:x@20=2 a:x@10=1 a:y@30=6 a:y@20=5 "
                                          "a:y@10=4 b:x@30=9 b:x@20=8 c:x@30=0");
    rig_fini(&rig);
}

static void test_a_row_that_is_not_there(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    struct hg_hbase_read read = read_all(1);
    assert_string_equal(get(&rig, &read), "-");
    rig_fini(&rig);
}

static void test_columns_of_a_read(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    struct hg_span qualifiers[] = {HG_SPAN_LIT("y"), HG_SPAN_LIT("q"), HG_SPAN_LIT("y")};
    struct hg_family_columns columns[] = {
        {.family = HG_SPAN_LIT("c")},
        {.family = HG_SPAN_LIT("a"), .qualifiers = {qualifiers, 3}},
        {.family = HG_SPAN_LIT("c")},
        {.family = HG_SPAN_LIT("none")},
    };
    struct hg_hbase_read read = read_all(1);
    read.columns = columns;
    read.column_count = 4;
    assert_string_equal(get(&rig, &read), "a:y@30=6 c:x@30=0");
    read.columns = &columns[3];
    read.column_count = 1;
    assert_string_equal(get(&rig, &read), "-");
    /* a family and one of its columns: the family */
    columns[3] = (struct hg_family_columns){.family = HG_SPAN_LIT("a")};
    read.columns = &columns[1];
    read.column_count = 3;
    assert_string_equal(get(&rig, &read), "a:x@30=3 a:y@30=6 c:x@30=0");
    rig_fini(&rig);
}

static void test_time_ranges(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    struct hg_hbase_read read = read_all(1);
    read.max_ms = 30;
    assert_string_equal(get(&rig, &read), "a:x@20=2 a:y@20=5 b:x@20=8");
    read.max_ms = 20;
    /* b keeps two versions: its third does not exist, whatever the range */
    assert_string_equal(get(&rig, &read), "a:x@10=1 a:y@10=4");
    read = read_all(5);
    read.min_ms = 20;
    read.max_ms = 21;
    assert_string_equal(get(&rig, &read), "a:x@20=2 a:y@20=5 b:x@20=8");
    read.max_ms = 20;
    assert_string_equal(get(&rig, &read), "-");
    read.min_ms = 31;
    read.max_ms = INT64_MAX;
    assert_string_equal(get(&rig, &read), "-");
    rig_fini(&rig);
}

static void test_the_end_of_time_is_no_bound(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    rig.now_ms = INT64_MAX;
    assert_int_equal(rig_put(&rig, "f:a=x"), 0);
    struct hg_hbase_read read = read_all(1);
    assert_string_equal(get(&rig, &read), "f:a@9223372036854775807=x");
    read.max_ms--;
    assert_string_equal(get(&rig, &read), "-");
    rig_fini(&rig);
}

static void test_a_read_does_not_see_dead_cells(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    rig.listed[0].ttl_ms = 100;
    rig.now_ms = 120;
    struct hg_hbase_read read = read_all(5);
    assert_string_equal(get(&rig, &read), "a:x@30=3 a:y@30=6 b:x@30=9 b:x@20=8 c:x@30=0");
    rig.now_ms = 129;
    assert_string_equal(get(&rig, &read), "a:x@30=3 a:y@30=6 b:x@30=9 b:x@20=8 c:x@30=0");
    rig.now_ms = 130;
    assert_string_equal(get(&rig, &read), "b:x@30=9 b:x@20=8 c:x@30=0");
    rig_fini(&rig);
}

static void test_filters_come_before_the_reads_versions(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    int64_t wanted[] = {10, 20};
    struct hg_filter_node node = {
        .kind = HG_FILTER_TIMESTAMPS, .timestamps = wanted, .timestamp_count = 2};
    /* ... but after the family's: b has no version 10 */
    assert_string_equal(get_filtered(&rig, read_all(1), &node, 1), "a:x@20=2 a:y@20=5 b:x@20=8");
    assert_string_equal(get_filtered(&rig, read_all(2), &node, 1),
                        "a:x@20=2 a:x@10=1 a:y@20=5 a:y@10=4 b:x@20=8");
    node = (struct hg_filter_node){.kind = HG_FILTER_VALUE, .op = HG_LESS};
    node.value = (struct hg_value){HG_VALUE_BYTES, .bytes = HG_SPAN_LIT("3")};
    assert_string_equal(get_filtered(&rig, read_all(1), &node, 1), "a:x@20=2 c:x@30=0");
    rig_fini(&rig);
}

static void test_filters_see_what_was_selected(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    struct hg_hbase_read read = read_all(3);
    struct hg_family_columns columns[] = {{.family = HG_SPAN_LIT("b")}};
    read.columns = columns;
    read.column_count = 1;
    read.max_ms = 30;
    struct hg_filter_node node = {.kind = HG_FILTER_FIRST_KEY_ONLY};
    assert_string_equal(get_filtered(&rig, read, &node, 1), "b:x@20=8");
    node.kind = HG_FILTER_KEY_ONLY;
    assert_string_equal(get_filtered(&rig, read, &node, 1), "b:x@20=");
    node = (struct hg_filter_node){.kind = HG_FILTER_PREFIX, .low = HG_SPAN_LIT("row-")};
    assert_string_equal(get_filtered(&rig, read, &node, 1), "b:x@20=8");
    node.low = HG_SPAN_LIT("row-2");
    assert_string_equal(get_filtered(&rig, read, &node, 1), "-");
    rig_fini(&rig);
}

static void test_a_condition_on_the_row_sees_all_of_it(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    struct hg_hbase_read read = read_all(1);
    struct hg_family_columns columns[] = {{.family = HG_SPAN_LIT("c")}};
    read.columns = columns;
    read.column_count = 1;
    struct hg_filter_node node = {.kind = HG_FILTER_SINGLE_COLUMN_VALUE,
                                  .family = HG_SPAN_LIT("b"),
                                  .qualifier = HG_SPAN_LIT("x"),
                                  .filter_if_missing = true};
    node.value = (struct hg_value){HG_VALUE_BYTES, .bytes = HG_SPAN_LIT("9")};
    assert_string_equal(get_filtered(&rig, read, &node, 1), "c:x@30=0");
    node.value.bytes = HG_SPAN_LIT("8"); /* not the newest */
    assert_string_equal(get_filtered(&rig, read, &node, 1), "-");
    /* the newest is what is alive */
    node.value.bytes = HG_SPAN_LIT("9");
    rig.listed[1].ttl_ms = 10;
    assert_string_equal(get_filtered(&rig, read, &node, 1), "-");
    rig_fini(&rig);
}

static void test_a_page_counts_rows_that_are_returned(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    struct hg_filter_node node = {.kind = HG_FILTER_PAGE, .count = 2};
    struct hg_hbase_read read = read_all(1);
    read.filter = (struct hg_filter){&node, 1};
    struct hg_filter_state pages = {0};
    struct hg_cells cells;
    bool memory = true;
    struct hg_hbase_read later = read;
    later.min_ms = 31;
    bool expected[] = {false, true, false, true, false, false};
    for (size_t i = 0; i < 6; i++) {
        bool found = hg_hbaseop_read(&rig.row, HG_SPAN_LIT("k"), i % 2 == 0 ? &later : &read,
                                     &rig.families, 1000, &pages, &rig.arena, &cells, &memory);
        assert_int_equal(found, expected[i]);
        assert_false(memory);
    }
    rig_fini(&rig);
}

/* ---- checks ---- */

static struct hg_hbase_item check_item(enum hg_op op, const char *column, enum hg_operator compare,
                                       const char *value)
{
    struct hg_hbase_item item = {.op = op};
    item.check.family = hg_span(column, 1);
    item.check.qualifier = hg_span_str(column + 2);
    item.check.op = compare;
    item.check.has_value = value != NULL;
    if (value != NULL)
        item.check.value = hg_span_str(value);
    return item;
}

enum { HOLDS, FAILS, REFUSED };

static void test_what_checks_hold(void **state)
{
    (void)state;
    /* f:m is "m", f:e is empty, f:n is not there; the given value stands on the left */
    const struct {
        const char *column;
        enum hg_operator op;
        const char *value;
        int outcome;
    } cases[] = {
        {"f:m", HG_EQUAL, "m", HOLDS},         {"f:m", HG_EQUAL, "l", FAILS},
        {"f:m", HG_EQUAL, "mm", FAILS},        {"f:m", HG_NOT_EQUAL, "m", FAILS},
        {"f:m", HG_NOT_EQUAL, "l", HOLDS},     {"f:m", HG_LESS, "l", HOLDS},
        {"f:m", HG_LESS, "m", FAILS},          {"f:m", HG_LESS, "n", FAILS},
        {"f:m", HG_LESS_EQUAL, "l", HOLDS},    {"f:m", HG_LESS_EQUAL, "m", HOLDS},
        {"f:m", HG_LESS_EQUAL, "n", FAILS},    {"f:m", HG_GREATER, "l", FAILS},
        {"f:m", HG_GREATER, "m", FAILS},       {"f:m", HG_GREATER, "mm", HOLDS},
        {"f:m", HG_GREATER_EQUAL, "m", HOLDS}, {"f:m", HG_GREATER_EQUAL, "l", FAILS},
        {"f:m", HG_EQUAL, NULL, FAILS},        {"f:m", HG_NOT_EQUAL, NULL, HOLDS},
        {"f:m", HG_LESS, NULL, REFUSED},       {"f:m", HG_GREATER_EQUAL, NULL, REFUSED},
        {"f:e", HG_EQUAL, NULL, HOLDS},        {"f:e", HG_NOT_EQUAL, NULL, FAILS},
        {"f:e", HG_EQUAL, "", HOLDS},          {"f:e", HG_NOT_EQUAL, "", FAILS},
        {"f:e", HG_GREATER, "x", HOLDS},       {"f:e", HG_LESS, "x", FAILS},
        {"f:n", HG_EQUAL, NULL, HOLDS},        {"f:n", HG_NOT_EQUAL, NULL, FAILS},
        {"f:n", HG_EQUAL, "x", FAILS},         {"f:n", HG_NOT_EQUAL, "x", FAILS},
        {"f:n", HG_LESS, "x", FAILS},          {"f:n", HG_GREATER, "x", FAILS},
        {"f:n", HG_EQUAL, "", FAILS},          {"f:n", HG_GREATER_EQUAL, "", FAILS},
        {"f:n", HG_LESS_EQUAL, NULL, REFUSED}, {"g:m", HG_EQUAL, "m", FAILS},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        struct rig rig;
        bool puts = i % 2 == 0;
        rig_init(&rig);
        assert_int_equal(rig_put(&rig, "f:e@5= f:m@5=m"), 0);
        struct hg_hbase_item item =
            check_item(puts ? HG_OP_HBASE_CHECK_AND_PUT : HG_OP_HBASE_CHECK_AND_DELETE,
                       cases[i / 2].column, cases[i / 2].op, cases[i / 2].value);
        if (puts)
            item.cells = cells_of(&rig, "f:e=1 f:r=2 f:r@7=3");
        int outcome = cases[i / 2].outcome;
        assert_int_equal(rig_apply(&rig, &item), outcome == REFUSED ? HG_STATUS_EINVAL : 0);
        assert_int_equal(rig.out.result.processed, outcome == HOLDS);
        assert_int_equal(rig.out.result.affected, outcome == HOLDS);
        assert_int_equal(rig.out.act, outcome != HOLDS ? HG_ROW_KEEP
                                      : puts           ? HG_ROW_STORE
                                                       : HG_ROW_REMOVE);
        assert_string_equal(row_text(&rig), outcome != HOLDS ? "f:e@5= f:m@5=m"
                                            : puts           ? "f:e@1000=1 f:m@5=m f:r@1000=2"
                                                             : "-");
        rig_fini(&rig);
    }
}

static void test_a_check_looks_at_the_newest_that_is_alive(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    rig_family(&rig, "f", 100, 3);
    assert_int_equal(rig_put(&rig, "f:a@950=old f:a@980=new"), 0);
    struct hg_hbase_item item = check_item(HG_OP_HBASE_CHECK_AND_PUT, "f:a", HG_EQUAL, "old");
    item.cells = cells_of(&rig, "f:b=x");
    assert_int_equal(rig_apply(&rig, &item), 0);
    assert_false(rig.out.result.processed);
    item.check.value = HG_SPAN_LIT("new");
    assert_int_equal(rig_apply(&rig, &item), 0);
    assert_true(rig.out.result.processed);
    rig.now_ms = 1080;
    assert_int_equal(rig_apply(&rig, &item), 0);
    assert_false(rig.out.result.processed);
    item.check.has_value = false;
    assert_int_equal(rig_apply(&rig, &item), 0);
    assert_true(rig.out.result.processed);
    assert_string_equal(row_text(&rig), "f:b@1080=x f:b@1000=x");
    rig_fini(&rig);
}

static void test_a_check_and_put_is_not_older_than_what_it_checked(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    assert_int_equal(rig_put(&rig, "f:a@5000=1"), 0);
    struct hg_hbase_item item = check_item(HG_OP_HBASE_CHECK_AND_PUT, "f:a", HG_EQUAL, "1");
    item.cells = cells_of(&rig, "f:a=2 f:b=x f:c@7=y");
    assert_int_equal(rig_apply(&rig, &item), 0);
    assert_string_equal(row_text(&rig), "f:a@5000=2 f:b@5000=x f:c@7=y");
    rig_fini(&rig);
}

static void test_a_check_that_holds_and_deletes_nothing(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    struct hg_hbase_item item = check_item(HG_OP_HBASE_CHECK_AND_DELETE, "f:a", HG_EQUAL, NULL);
    assert_int_equal(rig_apply(&rig, &item), 0);
    assert_true(rig.out.result.processed);
    assert_int_equal(rig.out.result.affected, 1);
    assert_int_equal(rig.out.act, HG_ROW_KEEP);
    rig_fini(&rig);
}

static void test_a_bad_request_is_refused_whether_or_not_its_check_holds(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    for (int holds = 0; holds < 2; holds++) {
        struct hg_hbase_item item =
            check_item(HG_OP_HBASE_CHECK_AND_PUT, "f:a", holds ? HG_EQUAL : HG_NOT_EQUAL, NULL);
        item.cells = cells_of(&rig, "f:a@-5=x");
        assert_int_equal(rig_apply(&rig, &item), HG_STATUS_EINVAL);
        struct hg_deletion one = deletion(HG_DELETION_VERSION, "f", "a");
        item.op = HG_OP_HBASE_CHECK_AND_DELETE;
        item.deletions = &one;
        item.deletion_count = 1;
        assert_int_equal(rig_apply(&rig, &item), HG_STATUS_EINVAL);
        assert_false(rig.out.result.processed);
    }
    rig_fini(&rig);
}

/* ---- the end of a row ---- */

static void test_when_a_row_is_over(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    rig_family(&rig, "f", 100, 3);
    rig_family(&rig, "g", 5000, 3);
    rig.now_ms = 0;
    struct hg_row row = {.api = HG_API_HBASE, .cells = cells_of(&rig, "f:a@7=x f:b@90=y")};
    assert_int_equal(hg_hbaseop_expiry(&row, &rig.families), 190);
    row.cells = cells_of(&rig, "f:a@7=x g:b@2=y");
    assert_int_equal(hg_hbaseop_expiry(&row, &rig.families), 5002);
    row.cells = cells_of(&rig, "f:a@7=x g:b@2=y h:c@1=z");
    assert_int_equal(hg_hbaseop_expiry(&row, &rig.families), 0);
    row.cells.count = 0;
    assert_int_equal(hg_hbaseop_expiry(&row, &rig.families), 0);
    rig_fini(&rig);
}

/* ---- memory ---- */

/* Every operation, with every amount of memory from none to enough: refused, or done right. */
static void test_without_memory(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    struct hg_deletion deletions[] = {deletion(HG_DELETION_COLUMN, "b", "x"),
                                      deletion(HG_DELETION_COLUMNS, "a", "y")};
    struct hg_counter_add adds[] = {{HG_SPAN_LIT("n"), HG_SPAN_LIT("2"), 1},
                                    {HG_SPAN_LIT("n"), HG_SPAN_LIT("1"), 1}};
    struct hg_counter_add wrong[] = {{HG_SPAN_LIT("a"), HG_SPAN_LIT("x"), 1}};
    struct hg_span qualifiers[] = {HG_SPAN_LIT("y"), HG_SPAN_LIT("x")};
    struct hg_family_columns columns[] = {{.family = HG_SPAN_LIT("c")},
                                          {HG_SPAN_LIT("a"), {qualifiers, 2}}};
    struct hg_filter_node node = {.kind = HG_FILTER_COLUMN_PREFIX, .low = HG_SPAN_LIT("y")};
    struct hg_hbase_item items[] = {
        {.op = HG_OP_HBASE_PUT, .cells = cells_of(&rig, "c:x=3 a:y=2 a:x=1")},
        {.op = HG_OP_HBASE_PUT, .cells = cells_of(&rig, "c:x@-3=3")},
        {.op = HG_OP_HBASE_DELETE, .deletions = deletions, .deletion_count = 2},
        {.op = HG_OP_HBASE_DELETE},
        {.op = HG_OP_HBASE_APPEND, .cells = cells_of(&rig, "c:x=3 a:y=2 a:x=1")},
        {.op = HG_OP_HBASE_INCREMENT, .counters = adds, .counter_count = 2},
        {.op = HG_OP_HBASE_INCREMENT, .counters = wrong, .counter_count = 1},
        check_item(HG_OP_HBASE_CHECK_AND_PUT, "a:x", HG_EQUAL, "3"),
        check_item(HG_OP_HBASE_CHECK_AND_DELETE, "a:x", HG_EQUAL, "3"),
        {.op = HG_OP_HBASE_GET, .read = read_all(1)},
    };
    items[7].cells = cells_of(&rig, "c:x=3 a:y=2 a:x=1");
    items[9].read.columns = columns;
    items[9].read.column_count = 2;
    items[9].read.filter = (struct hg_filter){&node, 1};
    size_t refused = 0;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        struct hg_row_outcome wanted, out;
        hg_hbaseop_apply(&rig.row, &items[i], &rig.families, 1000, &rig.arena, &wanted);
        assert_true(wanted.result.status != HG_STATUS_ENOMEM);
        for (size_t limit = 0; limit <= 8192; limit += 16) {
            struct hg_arena arena;
            hg_arena_init(&arena, limit);
            hg_hbaseop_apply(&rig.row, &items[i], &rig.families, 1000, &arena, &out);
            if (out.result.status == HG_STATUS_ENOMEM) {
                assert_int_equal(out.act, HG_ROW_KEEP);
                assert_true(out.result.text.len > 0);
                assert_false(out.result.processed);
                assert_int_equal(out.result.affected + out.result.cells.count, 0);
                assert_true(limit < 8192);
                refused++;
            } else {
                assert_int_equal(out.result.status, wanted.result.status);
                assert_int_equal(out.act, wanted.act);
                assert_int_equal(out.row.cells.count, wanted.row.cells.count);
                assert_int_equal(out.result.cells.count, wanted.result.cells.count);
                assert_int_equal(out.result.affected, wanted.result.affected);
            }
            hg_arena_fini(&arena);
        }
    }
    assert_true(refused > 100);
    assert_string_equal(row_text(&rig), stored);
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions_of_a_read),
        cmocka_unit_test(test_a_row_that_is_not_there),
        cmocka_unit_test(test_columns_of_a_read),
        cmocka_unit_test(test_time_ranges),
        cmocka_unit_test(test_the_end_of_time_is_no_bound),
        cmocka_unit_test(test_a_read_does_not_see_dead_cells),
        cmocka_unit_test(test_filters_come_before_the_reads_versions),
        cmocka_unit_test(test_filters_see_what_was_selected),
        cmocka_unit_test(test_a_condition_on_the_row_sees_all_of_it),
        cmocka_unit_test(test_a_page_counts_rows_that_are_returned),
        cmocka_unit_test(test_what_checks_hold),
        cmocka_unit_test(test_a_check_looks_at_the_newest_that_is_alive),
        cmocka_unit_test(test_a_check_and_put_is_not_older_than_what_it_checked),
        cmocka_unit_test(test_a_check_that_holds_and_deletes_nothing),
        cmocka_unit_test(test_a_bad_request_is_refused_whether_or_not_its_check_holds),
        cmocka_unit_test(test_when_a_row_is_over),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
