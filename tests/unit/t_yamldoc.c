// t_yamldoc - what YAML allows and a configuration does not
// SPDX-License-Identifier: BSD-3-Clause
#include "apphelp.h"

static void test_the_surprises_of_yaml_are_refused(void **state)
{
    (void)state;
    static const struct complaint cases[] = {
        {"threads: 1\nlog_level: info\nthreads: 2\n",
         "c.yaml:3: repeated key 'threads' (accepted: once, and it is in line 1)\n"},
        {"listen:\n  - {address: /a, address: /b}\n",
         "c.yaml:2: repeated key 'address' (accepted: once, and it is in line 2)\n"},
        {"threads: &x 1\nlogin_queue: *x\n",
         "c.yaml:1: anchor 'x' (accepted: plain values)\n"
         "c.yaml:2: alias '*x' (accepted: the value written out)\n"},
        {"tenants: &a\n  - *a\n", "c.yaml:1: anchor 'a' (accepted: plain values)\n"
                                  "c.yaml:2: alias '*a' (accepted: the value written out)\n"},
        {"threads: 1\n---\nthreads: 2\n",
         "c.yaml:2: second document '---' (accepted: one document)\n"},
        {"threads: !!int 1\n", "c.yaml:1: tag 'tag:yaml.org,2002:int' (accepted: plain values)\n"},
        {"data_dir: \"a\\0b\"\n", "c.yaml:1: zero byte in 'data_dir'\n"},
        {"[a]: 1\n", "c.yaml:1: a list given for 'a key' (accepted: a single value)\n"},
        {"\"\": 1\n", "c.yaml:1: empty key '' (accepted: a name)\n"},
        {"threads: [1]\n", "c.yaml:1: a list given for 'threads' (accepted: a single value)\n"},
        {"- threads\n", "c.yaml:1: a list given for 'server' (accepted: a mapping of options)\n"},
        {"threads\n", "c.yaml:1: a value given for 'server' (accepted: a mapping of options)\n"},
        {"[[[[[[[[[[[[1]]]]]]]]]]]]\n", "c.yaml:1: nested too deeply (accepted: 8 levels)\n"},
        {"a: [1\nb: {\n",
         "c.yaml:2: not YAML: did not find expected ',' or ']' while parsing a flow sequence\n"},
        {"threads: 1\n\tlogin_queue: 2\n",
         "c.yaml:2: not YAML: found a tab character that violates indentation while scanning a "
         "plain scalar\n"},
        {"threads: 1\nlog_file: \xff\n", "c.yaml:2: not YAML: invalid leading UTF-8 octet\n"},
    };
    apphelp_refuses(cases, HG_COUNT_OF(cases));
}

/* A repeated key does not hide the faults behind it. */
static void test_reading_goes_on_behind_a_repeated_key(void **state)
{
    (void)state;
    static const struct complaint cases[] = {
        {"threads: 1\nthreads: 2\nlogin_queue: 0\n",
         "c.yaml:2: repeated key 'threads' (accepted: once, and it is in line 1)\n"
         "c.yaml:3: value out of range '0' of 'login_queue' (accepted: 1 to 100000 logins)\n"},
        {"listen: [{address: /a}]\nlisten: [{address: b}]\n",
         "c.yaml:2: repeated key 'listen' (accepted: once, and it is in line 1)\n"},
    };
    apphelp_refuses(cases, HG_COUNT_OF(cases));
}

/* Two hundred thousand keys are looked through in n log n. */
static void test_many_keys_take_no_square_of_time(void **state)
{
    (void)state;
    size_t size = 1 << 20, at = 0;
    char *text = malloc(size);
    assert_non_null(text);
    for (unsigned i = 0; at + 20 < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%x: 1\n", i);
    struct hg_conf_errors errs;
    struct hg_conf *conf = NULL;
    hg_conf_errors_init(&errs);
    assert_int_equal(hg_conf_parse(text, at, "c.yaml", NULL, &conf, &errs), -22);
    assert_int_equal(errs.error_count, 20);
    assert_true(errs.errors_left_out > 100000);
    hg_conf_errors_fini(&errs);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_surprises_of_yaml_are_refused),
        cmocka_unit_test(test_reading_goes_on_behind_a_repeated_key),
        cmocka_unit_test(test_many_keys_take_no_square_of_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
