// t_local - errors of a connect that are this host's, not the server's
// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "back/local.h"

static void test_whose_error(void **state)
{
    static const int ours[] = {EMFILE, ENFILE, ENOMEM,       ENOBUFS,        EADDRNOTAVAIL,
                               EACCES, EPERM,  EAFNOSUPPORT, EPROTONOSUPPORT};
    static const int theirs[] = {0,          ECONNREFUSED, ENOENT,      ETIMEDOUT,
                                 ECONNRESET, EHOSTUNREACH, ENETUNREACH, EAGAIN,
                                 EPIPE,      EPROTO};
    (void)state;
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        assert_true(hg_local_is(-ours[i]));
        assert_true(strlen(hg_local_advice(-ours[i])) > 20);
    }
    for (size_t i = 0; i < sizeof theirs / sizeof theirs[0]; i++)
        assert_false(hg_local_is(-theirs[i]));
    assert_non_null(hg_local_advice(-ECONNREFUSED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whose_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
