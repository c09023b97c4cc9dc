// t_identity - numbers of identities: one for each, the same for equals, for ever
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "back/identity.h"

static struct hg_identities *identities_new(void)
{
    struct hg_identities *identities = calloc(1, sizeof *identities);
    assert_non_null(identities);
    assert_int_equal(hg_identities_init(identities, "", "", 0), 0);
    return identities;
}

static void identities_free(struct hg_identities *identities)
{
    hg_identities_fini(identities);
    free(identities);
}

static void t_equals_have_one_number(void **state)
{
    (void)state;
    struct hg_identities *identities = identities_new();
    uint32_t id[6], again;
    assert_int_equal(hg_identities_add(identities, "", "", 0, &id[0]), 0);
    assert_int_equal(id[0], 0); /* the upstream's own */
    assert_int_equal(hg_identities_add(identities, "anna", "x", 0, &id[1]), 0);
    assert_int_equal(hg_identities_add(identities, "anna", "y", 0, &id[2]), 0);
    assert_int_equal(hg_identities_add(identities, "anna", "x", 7, &id[3]), 0);
    assert_int_equal(hg_identities_add(identities, "", "x", 0, &id[4]), 0);
    for (uint32_t i = 1; i < 5; i++)
        assert_int_equal(id[i], i);
    assert_int_equal(hg_identities_add(identities, "anna", "x", 7, &again), 0);
    assert_int_equal(again, 3);
    assert_string_equal(hg_identities_at(identities, 3)->user, "anna");
    assert_string_equal(hg_identities_at(identities, 2)->password, "y");
    assert_int_equal(hg_identities_at(identities, 3)->database, 7);
    assert_int_equal(hg_identities_count(identities), 5);
    identities_free(identities);
}

/* Who looks at the old one may go on doing so. */
static void t_own_password_changes(void **state)
{
    (void)state;
    struct hg_identities *identities = identities_new();
    const struct hg_identity *own = hg_identities_at(identities, 0);
    const char *before = own->password;
    uint32_t id;
    assert_int_equal(hg_identities_set_password(identities, "new"), 0);
    assert_ptr_equal(hg_identities_at(identities, 0), own);
    assert_string_equal(own->password, "new");
    assert_string_equal(before, "");
    const char *second = own->password;
    assert_int_equal(hg_identities_set_password(identities, "new"), 0);
    assert_ptr_equal(own->password, second);
    assert_int_equal(hg_identities_set_password(identities, "newer"), 0);
    assert_string_equal(second, "new");
    assert_int_equal(hg_identities_add(identities, "", "newer", 0, &id), 0);
    assert_int_equal(id, 0);
    assert_int_equal(hg_identities_add(identities, "", "new", 0, &id), 0);
    assert_int_equal(id, 1);
    identities_free(identities);
}

/* However often the password changes: a tenant's database makes one identity. */
static void t_a_database_follows_the_password(void **state)
{
    (void)state;
    struct hg_identities *identities = identities_new();
    uint32_t first, id;
    assert_int_equal(hg_identities_add_own(identities, 0, &id), 0);
    assert_int_equal(id, 0);
    assert_int_equal(hg_identities_add_own(identities, 3, &first), 0);
    assert_int_equal(first, 1);
    for (int i = 0; i < 20; i++) {
        char text[16];
        snprintf(text, sizeof text, "p%d", i);
        assert_int_equal(hg_identities_set_password(identities, text), 0);
        assert_int_equal(hg_identities_add_own(identities, 3, &id), 0);
        assert_int_equal(id, first);
        assert_string_equal(hg_identity_password(hg_identities_at(identities, id)), text);
    }
    /* A login of the same name and password stays as it is. */
    assert_int_equal(hg_identities_add(identities, "", "p19", 3, &id), 0);
    assert_int_equal(id, 2);
    assert_int_equal(hg_identities_set_password(identities, "other"), 0);
    assert_string_equal(hg_identity_password(hg_identities_at(identities, 2)), "p19");
    assert_false(hg_identity_is(hg_identities_at(identities, 1), "", "other", 3));
    assert_int_equal(hg_identities_count(identities), 3);
    identities_free(identities);
}

static void t_there_is_a_last_one(void **state)
{
    (void)state;
    struct hg_identities *identities = identities_new();
    uint32_t id = 0;
    for (uint32_t i = 1; i < HG_IDENTITIES_MAX; i++) {
        assert_int_equal(hg_identities_add(identities, "u", "p", i, &id), 0);
        assert_int_equal(id, i);
    }
    assert_int_equal(hg_identities_add(identities, "one", "too many", 0, &id), -ENOSPC);
    assert_int_equal(hg_identities_add(identities, "u", "p", 77, &id), 0);
    assert_int_equal(id, 77);
    identities_free(identities);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_equals_have_one_number),
        cmocka_unit_test(t_own_password_changes),
        cmocka_unit_test(t_a_database_follows_the_password),
        cmocka_unit_test(t_there_is_a_last_one),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
