// t_ticketpurse - tickets that a worker keeps at hand while there are plenty
// SPDX-License-Identifier: BSD-3-Clause
#include "ticketrig.h"

static void test_purse(void **state)
{
    struct hg_ticket_purse purse = {0};
    (void)state;
    setup(HG_TICKET_PLENTY + 2 * HG_TICKET_LOT);
    assert_true(hg_ticket_purse_try(&rig.holder, &purse));
    assert_int_equal(hg_ticket_out(&rig.holder), HG_TICKET_LOT);
    assert_int_equal(hg_ticket_kept(&purse), HG_TICKET_LOT - 1);
    for (uint32_t i = 1; i < HG_TICKET_LOT; i++)
        assert_true(hg_ticket_purse_try(&rig.holder, &purse));
    assert_int_equal(hg_ticket_out(&rig.holder), HG_TICKET_LOT);
    assert_int_equal(hg_ticket_kept(&purse), 0);
    assert_true(hg_ticket_purse_try(&rig.holder, &purse)); // the last lot of plenty
    assert_int_equal(hg_ticket_out(&rig.holder), 2 * HG_TICKET_LOT);
    assert_false(hg_ticket_purse_try(&rig.holder, &purse)); // though some are kept
    assert_int_equal(hg_ticket_purse_spill(&rig.holder, &purse), HG_TICKET_NOBODY);
    assert_int_equal(hg_ticket_kept(&purse), 0);
    assert_int_equal(hg_ticket_out(&rig.holder), HG_TICKET_LOT + 1);
}

/* More than two lots are never kept, and without need nothing is spilled. */
static void test_purse_is_trimmed(void **state)
{
    struct hg_ticket_purse purse = {0};
    (void)state;
    setup(1000000);
    for (uint32_t i = 0; i < 3 * HG_TICKET_LOT; i++)
        assert_true(hg_ticket_purse_try(&rig.holder, &purse));
    for (uint32_t i = 0; i < 3 * HG_TICKET_LOT; i++) {
        assert_int_equal(hg_ticket_purse_put(&rig.holder, &purse), HG_TICKET_NOBODY);
        assert_true(hg_ticket_kept(&purse) <= 2 * HG_TICKET_LOT);
    }
    assert_int_equal(hg_ticket_kept(&purse), hg_ticket_out(&rig.holder)); // nobody has any
    assert_int_equal(hg_ticket_purse_spill(&rig.holder, &purse), HG_TICKET_NOBODY);
    assert_true(hg_ticket_kept(&purse) > 0);
    resize(10);
    assert_int_equal(hg_ticket_purse_spill(&rig.holder, &purse), HG_TICKET_NOBODY);
    assert_int_equal(hg_ticket_out(&rig.holder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_purse),
        cmocka_unit_test(test_purse_is_trimmed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
