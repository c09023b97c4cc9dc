// t_hbaseop - HBase writes on one row: put, delete, append, increment
// SPDX-License-Identifier: BSD-3-Clause
#include "hbasehelp.h"

#define PUTS(rig, text)   assert_int_equal(rig_put(rig, text), 0)
#define ROW_IS(rig, text) assert_string_equal(row_text(rig), text)

static void test_a_put_dates_sorts_and_overwrites(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    rig_family(&rig, "f", 0, 3);
    PUTS(&rig, "g:a=1 f:b=2 f:a@5=3 f:a@7=4 f:=5");
    assert_int_equal(rig.out.act, HG_ROW_STORE);
    assert_int_equal(rig.out.result.affected, 5);
    assert_int_equal(rig.out.result.cells.count, 0);
    ROW_IS(&rig, "f:@1000=5 f:a@7=4 f:a@5=3 f:b@1000=2 g:a@1000=1");
    PUTS(&rig, "f:a@5=new ff:z@1=6");
    ROW_IS(&rig, "f:@1000=5 f:a@7=4 f:a@5=new f:b@1000=2 ff:z@1=6 g:a@1000=1");
    rig_fini(&rig);
}

static void test_the_last_of_a_puts_equal_cells_wins(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    rig_family(&rig, "f", 0, 3);
    PUTS(&rig, "f:a@5=1 f:b@5=x f:a@5=2 f:a=n f:a@1000=m f:a@5=3");
    assert_int_equal(rig.out.result.affected, 3);
    ROW_IS(&rig, "f:a@1000=m f:a@5=3 f:b@5=x");
    rig_fini(&rig);
}

static void test_a_put_twice_is_a_put_once(void **state)
{
    (void)state;
    struct rig rig;
    char once[4096];
    rig_init(&rig);
    rig_family(&rig, "f", 0, 2);
    PUTS(&rig, "f:a@1=1 f:a@2=2");
    PUTS(&rig, "f:a@3=3 f:b@1=4 g:a@1=5");
    snprintf(once, sizeof once, "%s", row_text(&rig));
    PUTS(&rig, "f:a@3=3 f:b@1=4 g:a@1=5");
    assert_int_equal(rig.out.result.affected, 3);
    ROW_IS(&rig, once);
    rig_fini(&rig);
}

static void test_timestamps_that_a_put_takes(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    assert_int_equal(rig_put(&rig, "f:ok=1 f:q@-1=2"), HG_STATUS_EINVAL);
    assert_true(text_has(rig.out.result.text, "'f:q'"));
    ROW_IS(&rig, "-");
    PUTS(&rig, "f:a@0=1 f:b@9223372036854775807=2 f:c@9223372036854775806=3 f:d@99999=4");
    ROW_IS(&rig, "f:a@0=1 f:b@1000=2 f:c@9223372036854775806=3 f:d@99999=4");
    assert_int_equal(rig_put(&rig, ""), HG_STATUS_EINVAL);
    rig_fini(&rig);
}

static void test_a_put_drops_what_is_beyond_the_versions(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    rig_family(&rig, "f", 0, 2);
    PUTS(&rig, "f:a@10=1 f:a@20=2 f:a@30=3 f:b@5=4");
    assert_int_equal(rig.out.result.affected, 4);
    ROW_IS(&rig, "f:a@30=3 f:a@20=2 f:b@5=4");
    PUTS(&rig, "f:a@15=old");
    assert_int_equal(rig.out.result.affected, 1);
    ROW_IS(&rig, "f:a@30=3 f:a@20=2 f:b@5=4");
    PUTS(&rig, "g:a@10=1");
    PUTS(&rig, "g:a@20=2");
    ROW_IS(&rig, "f:a@30=3 f:a@20=2 f:b@5=4 g:a@20=2");
    rig_fini(&rig);
}

static void test_a_put_drops_what_is_past_its_time(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    rig_family(&rig, "f", 100, 3);
    PUTS(&rig, "f:a@900=dead");
    assert_int_equal(rig.out.act, HG_ROW_KEEP);
    assert_int_equal(rig.out.result.affected, 1);
    PUTS(&rig, "f:a@901=1 f:a@900=dead f:b@950=2");
    ROW_IS(&rig, "f:a@901=1 f:b@950=2");
    rig.now_ms = 1001;
    PUTS(&rig, "f:a@999=3");
    ROW_IS(&rig, "f:a@999=3 f:b@950=2");
    rig.now_ms = 5000;
    PUTS(&rig, "f:a@1=dead");
    assert_int_equal(rig.out.act, HG_ROW_REMOVE);
    ROW_IS(&rig, "-");
    rig_fini(&rig);
}

static void test_times_to_live_that_reach_past_the_end_of_time(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    rig_family(&rig, "f", UINT64_MAX, 1);
    rig_family(&rig, "g", INT64_MAX, 1);
    rig.now_ms = INT64_MAX;
    PUTS(&rig, "f:a@1=1 g:a@1=2");
    ROW_IS(&rig, "f:a@1=1 g:a@1=2");
    assert_int_equal(hg_hbaseop_expiry(&rig.row, &rig.families), 0);
    rig_fini(&rig);
}

static const char *const several =
    "f:a@30=3 f:a@20=2 f:a@10=1 f:b@30=6 f:b@20=5 f:b@10=4 g:a@30=9 g:a@20=8 g:a@10=7";

static void start_several(struct rig *rig)
{
    rig_init(rig);
    rig_family(rig, "f", 0, 9);
    rig_family(rig, "g", 0, 9);
    PUTS(rig, several);
}

static void test_each_kind_of_deletion(void **state)
{
    (void)state;
    const struct {
        struct hg_deletion deletion;
        unsigned affected;
        const char *left;
    } cases[] = {
        {deletion(HG_DELETION_ROW, "", ""), 9, "-"},
        {deletion_at(HG_DELETION_ROW, "", "", 20), 6, "f:a@30=3 f:b@30=6 g:a@30=9"},
        {deletion_at(HG_DELETION_ROW, "", "", 9), 0, several},
        {deletion(HG_DELETION_FAMILY, "f", ""), 6, "g:a@30=9 g:a@20=8 g:a@10=7"},
        {deletion_at(HG_DELETION_FAMILY, "f", "", 29), 4,
         "f:a@30=3 f:b@30=6 g:a@30=9 g:a@20=8 g:a@10=7"},
        {deletion(HG_DELETION_FAMILY, "e", ""), 0, several},
        {deletion(HG_DELETION_COLUMNS, "f", "b"), 3,
         "f:a@30=3 f:a@20=2 f:a@10=1 g:a@30=9 g:a@20=8 g:a@10=7"},
        {deletion_at(HG_DELETION_COLUMNS, "f", "b", 20), 2,
         "f:a@30=3 f:a@20=2 f:a@10=1 f:b@30=6 g:a@30=9 g:a@20=8 g:a@10=7"},
        {deletion(HG_DELETION_COLUMNS, "f", "c"), 0, several},
        {deletion(HG_DELETION_COLUMN, "f", "a"), 1,
         "f:a@20=2 f:a@10=1 f:b@30=6 f:b@20=5 f:b@10=4 g:a@30=9 g:a@20=8 g:a@10=7"},
        {deletion_at(HG_DELETION_COLUMN, "f", "a", INT64_MAX), 1,
         "f:a@20=2 f:a@10=1 f:b@30=6 f:b@20=5 f:b@10=4 g:a@30=9 g:a@20=8 g:a@10=7"},
        {deletion_at(HG_DELETION_COLUMN, "f", "a", 20), 1,
         "f:a@30=3 f:a@10=1 f:b@30=6 f:b@20=5 f:b@10=4 g:a@30=9 g:a@20=8 g:a@10=7"},
        {deletion_at(HG_DELETION_COLUMN, "f", "a", 21), 0, several},
        {deletion_at(HG_DELETION_VERSION, "g", "a", 10), 1,
         "f:a@30=3 f:a@20=2 f:a@10=1 f:b@30=6 f:b@20=5 f:b@10=4 g:a@30=9 g:a@20=8"},
        {deletion_at(HG_DELETION_VERSION, "g", "a", 31), 0, several},
        {deletion_at(HG_DELETION_VERSION, "g", "b", 10), 0, several},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig rig;
        struct hg_deletion one = cases[i].deletion;
        start_several(&rig);
        assert_int_equal(rig_delete(&rig, &one, 1), 0);
        assert_int_equal(rig.out.result.affected, cases[i].affected);
        assert_int_equal(rig.out.act, cases[i].affected == 0            ? HG_ROW_KEEP
                                      : strcmp(cases[i].left, "-") == 0 ? HG_ROW_REMOVE
                                                                        : HG_ROW_STORE);
        ROW_IS(&rig, cases[i].left);
        rig_fini(&rig);
    }
}

static void test_several_deletions_at_once(void **state)
{
    (void)state;
    struct rig rig;
    start_several(&rig);
    struct hg_deletion list[] = {
        deletion_at(HG_DELETION_VERSION, "g", "a", 10),
        deletion(HG_DELETION_COLUMN, "f", "b"),
        deletion_at(HG_DELETION_FAMILY, "f", "", 10),
        deletion_at(HG_DELETION_VERSION, "g", "a", 30),
        deletion(HG_DELETION_COLUMN, "f", "b"),
        deletion(HG_DELETION_FAMILY, "a", ""),
        deletion(HG_DELETION_COLUMNS, "h", "a"),
    };
    assert_int_equal(rig_delete(&rig, list, sizeof list / sizeof *list), 0);
    assert_int_equal(rig.out.result.affected, 6);
    ROW_IS(&rig, "f:a@30=3 f:a@20=2 g:a@20=8");
    rig_fini(&rig);
}

static void test_without_deletions_the_row_goes(void **state)
{
    (void)state;
    struct rig rig;
    start_several(&rig);
    assert_int_equal(rig_delete(&rig, NULL, 0), 0);
    assert_int_equal(rig.out.act, HG_ROW_REMOVE);
    assert_int_equal(rig.out.result.affected, 9);
    assert_int_equal(rig_delete(&rig, NULL, 0), 0);
    assert_int_equal(rig.out.act, HG_ROW_KEEP);
    assert_int_equal(rig.out.result.affected, 0);
    rig_fini(&rig);
}

static void test_a_delete_leaves_no_mark_and_wakes_nothing(void **state)
{
    (void)state;
    struct rig rig;
    start_several(&rig);
    struct hg_deletion one = deletion(HG_DELETION_COLUMNS, "f", "a");
    assert_int_equal(rig_delete(&rig, &one, 1), 0);
    PUTS(&rig, "f:a@1=older");
    ROW_IS(&rig, "f:a@1=older f:b@30=6 f:b@20=5 f:b@10=4 g:a@30=9 g:a@20=8 g:a@10=7");
    /* what two versions hide does not come back when one of the two goes, nor is it deleted */
    rig.listed[0].max_versions = 2;
    one = deletion(HG_DELETION_COLUMN, "f", "b");
    assert_int_equal(rig_delete(&rig, &one, 1), 0);
    assert_int_equal(rig.out.result.affected, 1);
    ROW_IS(&rig, "f:a@1=older f:b@20=5 g:a@30=9 g:a@20=8 g:a@10=7");
    rig.listed[1].max_versions = 1;
    one = deletion_at(HG_DELETION_VERSION, "g", "a", 10);
    assert_int_equal(rig_delete(&rig, &one, 1), 0);
    assert_int_equal(rig.out.act, HG_ROW_KEEP);
    assert_int_equal(rig.out.result.affected, 0);
    rig_fini(&rig);
}

static void test_deletions_that_are_refused(void **state)
{
    (void)state;
    struct rig rig;
    start_several(&rig);
    struct hg_deletion list[] = {deletion(HG_DELETION_COLUMN, "f", "a"),
                                 deletion_at(HG_DELETION_FAMILY, "g", "", -1)};
    assert_int_equal(rig_delete(&rig, list, 2), HG_STATUS_EINVAL);
    list[1] = deletion(HG_DELETION_VERSION, "g", "a");
    assert_int_equal(rig_delete(&rig, list, 2), HG_STATUS_EINVAL);
    assert_true(text_has(rig.out.result.text, "'g:a'"));
    list[1] = deletion_at(HG_DELETION_VERSION, "g", "a", INT64_MAX);
    assert_int_equal(rig_delete(&rig, list, 2), HG_STATUS_EINVAL);
    ROW_IS(&rig, several);
    rig_fini(&rig);
}

static void test_an_append(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    rig_family(&rig, "f", 0, 2);
    assert_int_equal(rig_append(&rig, "f:b=y f:a=x"), 0);
    assert_int_equal(rig.out.result.affected, 2);
    assert_string_equal(text_of(&rig, &rig.out.result.cells), "f:a@1000=x f:b@1000=y");
    ROW_IS(&rig, "f:a@1000=x f:b@1000=y");
    assert_int_equal(rig_append(&rig, "f:a=z"), 0);
    assert_string_equal(text_of(&rig, &rig.out.result.cells), "f:a@1001=xz");
    rig.now_ms = 2000;
    assert_int_equal(rig_append(&rig, "f:a= f:c="), 0);
    assert_string_equal(text_of(&rig, &rig.out.result.cells), "f:a@2000=xz f:c@2000=");
    ROW_IS(&rig, "f:a@2000=xz f:a@1001=xz f:b@1000=y f:c@2000=");
    rig_fini(&rig);
}

static void test_an_append_that_is_refused(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    assert_int_equal(rig_append(&rig, "f:a=y f:b@50=x"), HG_STATUS_EINVAL);
    assert_true(text_has(rig.out.result.text, "'f:b'"));
    assert_int_equal(rig_append(&rig, ""), HG_STATUS_EINVAL);
    ROW_IS(&rig, "-");
    rig_fini(&rig);
}

static void test_a_column_twice_is_refused(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    PUTS(&rig, "f:a@1=x");
    assert_int_equal(rig_append(&rig, "f:a=1 f:b=2 f:a=3"), HG_STATUS_EINVAL);
    assert_true(text_has(rig.out.result.text, "'f:a'"));
    struct hg_counter_add adds[] = {{HG_SPAN_LIT("f"), HG_SPAN_LIT("n"), 1},
                                    {HG_SPAN_LIT("f"), HG_SPAN_LIT("n"), 2}};
    struct hg_hbase_item item = {.op = HG_OP_HBASE_INCREMENT, .counters = adds, .counter_count = 2};
    assert_int_equal(rig_apply(&rig, &item), HG_STATUS_EINVAL);
    ROW_IS(&rig, "f:a@1=x");
    rig_fini(&rig);
}

static void test_an_increment(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    assert_int_equal(rig_increment(&rig, "f", "n", 5), 0);
    assert_int_equal(rig.out.result.affected, 1);
    assert_string_equal(row_text(&rig), "f:n@1000=\\00\\00\\00\\00\\00\\00\\00\\05");
    assert_int_equal(rig_increment(&rig, "f", "n", -7), 0);
    assert_int_equal(rig.out.result.cells.count, 1);
    assert_int_equal(rig.out.result.cells.list[0].at_ms, 1001);
    assert_int_equal(counter_of(&rig.out.result.cells.list[0]), -2);
    rig.now_ms = 7;
    assert_int_equal(rig_increment(&rig, "f", "n", 0), 0);
    assert_int_equal(rig.row.cells.list[0].at_ms, 1002);
    assert_int_equal(counter_of(&rig.row.cells.list[0]), -2);
    struct hg_hbase_item none = {.op = HG_OP_HBASE_INCREMENT};
    assert_int_equal(rig_apply(&rig, &none), HG_STATUS_EINVAL);
    rig_fini(&rig);
}

static void test_counters_wrap(void **state)
{
    (void)state;
    const struct {
        int64_t start, amount, sum;
    } cases[] = {
        {INT64_MAX, 1, INT64_MIN},      {INT64_MIN, -1, INT64_MAX}, {INT64_MAX, INT64_MAX, -2},
        {INT64_MIN, INT64_MIN, 0},      {INT64_MAX, INT64_MIN, -1}, {INT64_MIN, INT64_MAX, -1},
        {0, INT64_MIN, INT64_MIN},      {-1, INT64_MIN, INT64_MAX}, {INT64_MAX - 1, 1, INT64_MAX},
        {INT64_MIN + 1, -1, INT64_MIN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig rig;
        rig_init(&rig);
        assert_int_equal(rig_increment(&rig, "f", "n", cases[i].start), 0);
        assert_int_equal(rig_increment(&rig, "f", "n", cases[i].amount), 0);
        assert_true(counter_of(&rig.row.cells.list[0]) == cases[i].sum);
        rig_fini(&rig);
    }
}

static void test_what_is_no_counter(void **state)
{
    (void)state;
    const char *const values[] = {"", "1", "1234567", "123456789"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct rig rig;
        char cells[64];
        rig_init(&rig);
        snprintf(cells, sizeof cells, "f:z@1=%s", values[i]);
        PUTS(&rig, cells);
        struct hg_counter_add adds[] = {{HG_SPAN_LIT("f"), HG_SPAN_LIT("a"), 1},
                                        {HG_SPAN_LIT("f"), HG_SPAN_LIT("z"), 2}};
        struct hg_hbase_item item = {
            .op = HG_OP_HBASE_INCREMENT, .counters = adds, .counter_count = 2};
        assert_int_equal(rig_apply(&rig, &item), HG_STATUS_DELTA_BADVAL);
        assert_true(text_has(rig.out.result.text, "'f:z'"));
        assert_int_equal(rig.out.result.cells.count, 0);
        assert_int_equal(rig.out.result.affected, 0);
        ROW_IS(&rig, cells);
        rig_fini(&rig);
    }
}

static void test_names_are_printed_so_that_they_can_be_read(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    PUTS(&rig, "f\1:\x7f\xff'\\q@1=no");
    assert_int_equal(rig_increment(&rig, "f\1", "\x7f\xff'\\q", 1), HG_STATUS_DELTA_BADVAL);
    assert_true(text_has(rig.out.result.text, "'f\\x01:\\x7f\\xff\\x27\\x5cq' has 2 bytes"));
    rig_fini(&rig);
}

static void test_versions_at_the_end_of_time(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    rig_family(&rig, "f", 0, 3);
    PUTS(&rig, "f:a@9223372036854775805=x");
    assert_int_equal(rig_append(&rig, "f:a=y"), 0);
    ROW_IS(&rig, "f:a@9223372036854775806=xy f:a@9223372036854775805=x");
    assert_int_equal(rig_append(&rig, "f:a=z"), 0);
    ROW_IS(&rig, "f:a@9223372036854775806=xyz f:a@9223372036854775805=x");
    rig_fini(&rig);
}

static void test_dead_values_count_for_nothing(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    rig_family(&rig, "f", 100, 3);
    PUTS(&rig, "f:n@950=text f:s@950=old f:k@1500=kept");
    rig.now_ms = 1050;
    assert_int_equal(rig_increment(&rig, "f", "n", 3), 0);
    assert_int_equal(counter_of(&rig.out.result.cells.list[0]), 3);
    assert_int_equal(rig_append(&rig, "f:s=new"), 0);
    ROW_IS(&rig, "f:k@1500=kept f:n@1050=\\00\\00\\00\\00\\00\\00\\00\\03 f:s@1050=new");
    rig_fini(&rig);
}

static void test_affected_ends_at_its_field(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    enum { CELLS = 70000 };
    struct hg_cells cells = {hg_arena_array(&rig.arena, CELLS, sizeof *cells.list), CELLS};
    uint32_t *names = hg_arena_array(&rig.arena, CELLS, sizeof *names);
    for (uint32_t i = 0; i < CELLS; i++) {
        names[i] = i * 2654435761u;
        cells.list[i].family = HG_SPAN_LIT("f");
        cells.list[i].qualifier = hg_span(&names[i], sizeof names[i]);
    }
    struct hg_hbase_item item = {.op = HG_OP_HBASE_PUT, .cells = cells};
    assert_int_equal(rig_apply(&rig, &item), 0);
    assert_int_equal(rig.row.cells.count, CELLS);
    assert_int_equal(rig.out.result.affected, UINT16_MAX);
    for (size_t i = 1; i < CELLS; i++)
        assert_true(hg_filter_compare_bytes(rig.row.cells.list[i - 1].qualifier,
                                            rig.row.cells.list[i].qualifier) < 0);
    assert_int_equal(rig_delete(&rig, NULL, 0), 0);
    assert_int_equal(rig.out.result.affected, UINT16_MAX);
    rig_fini(&rig);
}

static void test_other_operations_are_refused(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig);
    struct hg_hbase_item item = {.op = HG_OP_HBASE_SCAN};
    assert_int_equal(rig_apply(&rig, &item), HG_STATUS_EINVAL);
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_put_dates_sorts_and_overwrites),
        cmocka_unit_test(test_the_last_of_a_puts_equal_cells_wins),
        cmocka_unit_test(test_a_put_twice_is_a_put_once),
        cmocka_unit_test(test_timestamps_that_a_put_takes),
        cmocka_unit_test(test_a_put_drops_what_is_beyond_the_versions),
        cmocka_unit_test(test_a_put_drops_what_is_past_its_time),
        cmocka_unit_test(test_times_to_live_that_reach_past_the_end_of_time),
        cmocka_unit_test(test_each_kind_of_deletion),
        cmocka_unit_test(test_several_deletions_at_once),
        cmocka_unit_test(test_without_deletions_the_row_goes),
        cmocka_unit_test(test_a_delete_leaves_no_mark_and_wakes_nothing),
        cmocka_unit_test(test_deletions_that_are_refused),
        cmocka_unit_test(test_an_append),
        cmocka_unit_test(test_an_append_that_is_refused),
        cmocka_unit_test(test_a_column_twice_is_refused),
        cmocka_unit_test(test_an_increment),
        cmocka_unit_test(test_counters_wrap),
        cmocka_unit_test(test_what_is_no_counter),
        cmocka_unit_test(test_names_are_printed_so_that_they_can_be_read),
        cmocka_unit_test(test_versions_at_the_end_of_time),
        cmocka_unit_test(test_dead_values_count_for_nothing),
        cmocka_unit_test(test_affected_ends_at_its_field),
        cmocka_unit_test(test_other_operations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
