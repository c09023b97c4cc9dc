// t_resolve - names are looked up elsewhere and the answer comes to the loop that asked
// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "back/resolve.h"
#include "base/clock.h"
#include "patience.h"

struct asker {
    struct hg_loop loop;
    struct hg_mailbox mailbox;
    struct hg_resolver *resolver;
    int answers;
    int error;
    struct hg_addrs addrs;
};

static void on_done(struct hg_resolve *resolve, void *arg)
{
    struct asker *asker = arg;
    asker->answers++;
    asker->error = resolve->error;
    asker->addrs = resolve->addrs;
}

static int set_up(void **state)
{
    static struct asker asker;
    asker = (struct asker){.error = 1};
    assert_int_equal(hg_loop_init(&asker.loop), 0);
    assert_int_equal(hg_mailbox_init(&asker.mailbox, &asker.loop, NULL), 0);
    asker.resolver = hg_resolver_new();
    assert_non_null(asker.resolver);
    *state = &asker;
    return 0;
}

static int tear_down(void **state)
{
    struct asker *asker = *state;
    hg_resolver_free(asker->resolver);
    hg_mailbox_fini(&asker->mailbox);
    hg_loop_fini(&asker->loop);
    return 0;
}

static struct hg_resolve *ask(struct asker *asker, const char *text)
{
    struct hg_resolve *resolve =
        hg_resolve_submit(asker->resolver, text, 11211, &asker->mailbox, on_done, asker);
    assert_non_null(resolve);
    return resolve;
}

static void wait_for(struct asker *asker, int answers)
{
    PATIENCE_UNTIL(asker->answers >= answers, hg_loop_turn(&asker->loop, false));
}

static void t_finds_localhost(void **state)
{
    struct asker *asker = *state;
    char text[HG_ADDR_TEXT];
    ask(asker, "localhost:4711");
    wait_for(asker, 1);
    assert_int_equal(asker->error, 0);
    assert_in_range(asker->addrs.count, 1, HG_ADDRS_MAX);
    bool v4 = false;
    for (uint32_t i = 0; i < asker->addrs.count; i++) {
        assert_true(hg_addr_local(&asker->addrs.list[i]));
        v4 |= strcmp(hg_addr_text(&asker->addrs.list[i], text), "127.0.0.1:4711") == 0;
    }
    assert_true(v4);
}

static void t_default_port_and_order(void **state)
{
    struct asker *asker = *state;
    char text[HG_ADDR_TEXT];
    ask(asker, "127.0.0.1");
    ask(asker, "[::1]:7");
    wait_for(asker, 2);
    assert_string_equal(hg_addr_text(&asker->addrs.list[0], text), "[::1]:7");
    ask(asker, "127.0.0.1");
    wait_for(asker, 3);
    assert_string_equal(hg_addr_text(&asker->addrs.list[0], text), "127.0.0.1:11211");
}

static void t_unknown_name(void **state)
{
    struct asker *asker = *state;
    ask(asker, "no..such..name:1");
    wait_for(asker, 1);
    assert_int_equal(asker->error, -ENOENT);
    ask(asker, "a:b:c");
    wait_for(asker, 2);
    assert_int_equal(asker->error, -EINVAL);
}

/* Forgotten in whatever state: no answer, nothing leaks (the sanitizer looks). */
static void t_forgotten(void **state)
{
    struct asker *asker = *state;
    for (int round = 0; round < 50; round++) {
        struct hg_resolve *a = ask(asker, "127.0.0.1"), *b = ask(asker, "127.0.0.2");
        hg_resolve_forget(asker->resolver, b);
        hg_resolve_forget(asker->resolver, a);
        hg_resolve_forget(asker->resolver, NULL);
    }
    ask(asker, "127.0.0.3");
    wait_for(asker, 1);
    assert_int_equal(asker->answers, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(t_finds_localhost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(t_default_port_and_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(t_unknown_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(t_forgotten, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("resolve", tests, NULL, NULL);
}
