// t_notice - when the begin and the end of a lasting thing are told
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/notice.h"

#define S ((uint64_t)1000000)

static const struct row {
    uint64_t at_s;
    bool active;
    enum hg_notice_say say;
} rows[] = {
    {1000, false, HG_NOTICE_NOTHING}, {1001, true, HG_NOTICE_BEGIN},
    {1002, true, HG_NOTICE_NOTHING}, // once
    {1003, false, HG_NOTICE_END},     {1004, false, HG_NOTICE_NOTHING},
    {1005, true, HG_NOTICE_NOTHING},  // too soon after the last one ...
    {1006, false, HG_NOTICE_NOTHING}, // ... so its end is not told either
    {1007, true, HG_NOTICE_NOTHING},  {1010, true, HG_NOTICE_NOTHING},
    {1011, true, HG_NOTICE_BEGIN}, // it has come to stay
    {1040, true, HG_NOTICE_NOTHING},  {1041, false, HG_NOTICE_END},
    {1042, true, HG_NOTICE_BEGIN},
};

static void test_begins_and_ends(void **state)
{
    (void)state;
    struct hg_notice notice = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum hg_notice_say say = hg_notice_look(&notice, rows[i].active, rows[i].at_s * S);
        if (say != rows[i].say)
            fail_msg("row %zu: %d", i, (int)say);
    }
}

static void test_since(void **state)
{
    (void)state;
    struct hg_notice notice = {0};
    (void)hg_notice_look(&notice, true, 7 * S);
    (void)hg_notice_look(&notice, true, 9 * S);
    assert_int_equal(hg_notice_look(&notice, false, 12 * S), HG_NOTICE_END);
    assert_int_equal(notice.since_us, 7 * S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_begins_and_ends),
        cmocka_unit_test(test_since),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
