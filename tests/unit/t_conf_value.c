// t_conf_value - one value: what is taken, what is refused, and that text and value agree
// SPDX-License-Identifier: BSD-3-Clause
#include "apphelp.h"

#include "app/conf_table.h"

struct attempt {
    const char *option;
    const char *text;
    bool right;
    uint64_t value;
};

static void test_numbers_are_taken_whole_or_not_at_all(void **state)
{
    (void)state;
    static const struct attempt attempts[] = {
        {"threads", "0", true, 0},
        {"threads", "256", true, 256},
        {"threads", "257", false, 0},
        {"threads", "-1", false, 0},
        {"threads", "+1", false, 0},
        {"threads", "1.5", false, 0},
        {"threads", "1e1", false, 0},
        {"threads", "0x10", false, 0},
        {"threads", "010", false, 0},
        {"threads", " 1", false, 0},
        {"threads", "1 ", false, 0},
        {"threads", "", false, 0},
        {"threads", "18446744073709551615", false, 0},
        {"threads", "18446744073709551617", false, 0},
        {"threads", "184467440737095516170000", false, 0},
        {"threads", "1 KiB", false, 0},
        {"max_value_bytes", "1", true, 1},
        {"max_value_bytes", "0", false, 0},
        {"max_value_bytes", "1KiB", true, 1024},
        {"max_value_bytes", "1 KiB", true, 1024},
        {"max_value_bytes", "128 MiB", true, 134217728},
        {"max_value_bytes", "129 MiB", false, 0},
        {"max_value_bytes", "1  KiB", false, 0},
        {"max_value_bytes", "KiB", false, 0},
        {"max_value_bytes", " KiB", false, 0},
        {"max_value_bytes", "10MB", false, 0},
        {"max_value_bytes", "10M", false, 0},
        {"max_value_bytes", "10 mib", false, 0},
        {"max_value_bytes", "1.5 MiB", false, 0},
        {"max_value_bytes", "18446744073709551615 GiB", false, 0},
        {"max_value_bytes", "17179869184 GiB", false, 0},
        {"node_capacity", "unlimited", true, HG_CONF_UNLIMITED},
        {"node_capacity", "1000000000000", true, 1000000000000},
        {"node_capacity", "1000000000001", false, 0},
        {"node_capacity", "18446744073709551615", false, 0},
        {"node_capacity", "Unlimited", false, 0},
    };
    for (size_t i = 0; i < HG_COUNT_OF(attempts); i++) {
        struct hg_conf conf = {.threads = 77};
        struct hg_conf_why why = {""};
        const struct hg_conf_option *option =
            hg_conf_option_find(HG_CONF_SCOPE_SERVER, attempts[i].option);
        assert_non_null(option);
        int rc = hg_conf_value_set(option, &conf, attempts[i].text, &why);
        if (!!rc == attempts[i].right)
            fail_msg("%s: '%s' gave %d", attempts[i].option, attempts[i].text, rc);
        uint64_t value;
        memcpy(&value, (char *)&conf + option->offset, sizeof value);
        if (attempts[i].right)
            assert_int_equal(value, attempts[i].value);
        else
            assert_int_equal(value, strcmp(attempts[i].option, "threads") == 0 ? 77 : 0);
    }
}

static void test_truth_has_two_words(void **state)
{
    (void)state;
    static const char *const wrong[] = {"True", "yes", "no", "on", "1", "0", "maybe", "", "truee"};
    const struct hg_conf_option *option = hg_conf_option_find(HG_CONF_SCOPE_TENANT, "allow_flush");
    struct hg_conf_tenant tenant = {.allow_flush = false};
    struct hg_conf_why why;
    assert_int_equal(hg_conf_value_set(option, &tenant, "true", &why), 0);
    assert_true(tenant.allow_flush);
    assert_int_equal(hg_conf_value_set(option, &tenant, "false", &why), 0);
    assert_false(tenant.allow_flush);
    for (size_t i = 0; i < HG_COUNT_OF(wrong); i++)
        assert_int_equal(hg_conf_value_set(option, &tenant, wrong[i], &why), -22);
}

static void test_addresses_have_four_forms(void **state)
{
    (void)state;
    static const struct form {
        const char *text;
        const char *host; /* NULL: refused */
        uint16_t port;
        bool is_unix;
        bool is_local;
    } forms[] = {
        {"127.0.0.1:11211", "127.0.0.1", 11211, false, true},
        {"127.9.9.9:1", "127.9.9.9", 1, false, true},
        {"0.0.0.0:0", "0.0.0.0", 0, false, false},
        {"10.0.0.1:65535", "10.0.0.1", 65535, false, false},
        {"localhost:1", "localhost", 1, false, true},
        {"cache-1.example.com:11211", "cache-1.example.com", 11211, false, false},
        {"127.evil.example:1", "127.evil.example", 1, false, false},
        {"a:11211", "a", 11211, false, false},
        {"[::1]:11211", "::1", 11211, false, true},
        {"[::]:11211", "::", 11211, false, false},
        {"[::ffff:127.0.0.1]:1", "::ffff:127.0.0.1", 1, false, true},
        {"[fe80::1]:1", "fe80::1", 1, false, false},
        {"unix:/run/h.sock", "/run/h.sock", 0, true, true},
        {"unix:h.sock", "h.sock", 0, true, true},
        {"/run/h.sock", "/run/h.sock", 0, true, true},
        {"127.0.0.1", NULL, 0, false, false},
        {"127.0.0.1:", NULL, 0, false, false},
        {"127.0.0.1:65536", NULL, 0, false, false},
        {"127.0.0.1:-1", NULL, 0, false, false},
        {"127.0.0.1: 1", NULL, 0, false, false},
        {":11211", NULL, 0, false, false},
        {"::1:11211", NULL, 0, false, false},
        {"[::1]", NULL, 0, false, false},
        {"[::1:11211", NULL, 0, false, false},
        {"[]:11211", NULL, 0, false, false},
        {"[host]:11211", NULL, 0, false, false},
        {"ho st:1", NULL, 0, false, false},
        {"unix:", NULL, 0, false, false},
        {"/", NULL, 0, false, false},
        {"", NULL, 0, false, false},
        {"/a234567890123456789012345678901234567890123456789012345678901234567890123456789012345678"
         "901"
         "234567890123456789",
         NULL, 0, false, false},
    };
    for (size_t i = 0; i < HG_COUNT_OF(forms); i++) {
        struct hg_conf_address address;
        int rc = hg_conf_address_parse(forms[i].text, &address);
        if (!forms[i].host != (rc == -22))
            fail_msg("'%s' gave %d", forms[i].text, rc);
        if (rc)
            continue;
        assert_string_equal(address.text, forms[i].text);
        assert_string_equal(address.host, forms[i].host);
        assert_int_equal(address.port, forms[i].port);
        assert_int_equal(address.is_unix, forms[i].is_unix);
        if (hg_conf_address_is_local(&address) != forms[i].is_local)
            fail_msg("'%s' is local or not", forms[i].text);
        hg_conf_address_fini(&address);
    }
}

static void test_names_are_those_of_buckets(void **state)
{
    (void)state;
    char hundred[102];
    memset(hundred, 'a', sizeof hundred);
    assert_true(hg_conf_name_ok("shop", 4));
    assert_true(hg_conf_name_ok("A-z_0.9%", 8));
    assert_true(hg_conf_name_ok(hundred, 100));
    assert_false(hg_conf_name_ok(hundred, 101));
    assert_false(hg_conf_name_ok("", 0));
    assert_false(hg_conf_name_ok("a b", 3));
    assert_false(hg_conf_name_ok("a/b", 3));
    assert_false(hg_conf_name_ok("a:b", 3));
    assert_false(hg_conf_name_ok("a\0b", 3));
    assert_false(hg_conf_name_ok("\xc3\xa4", 2));
}

/* A row whose default breaks its own bounds, or that no text leads back to, is a fault of the
 * table. */
static void test_every_default_is_accepted_and_reads_back(void **state)
{
    (void)state;
    for (int scope = 0; scope < HG_CONF_SCOPE_COUNT; scope++) {
        const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
        void *object = calloc(1, info->object_size), *again = calloc(1, info->object_size);
        assert_non_null(object);
        assert_non_null(again);
        assert_int_equal(hg_conf_object_init((enum hg_conf_scope)scope, object), 0);
        assert_int_equal(hg_conf_object_init((enum hg_conf_scope)scope, again), 0);
        for (size_t i = 0; i < info->count; i++) {
            const struct hg_conf_option *option = &info->options[i];
            struct hg_conf_why why;
            assert_true(strlen(option->sentence) > 10);
            assert_int_equal(option->sentence[strlen(option->sentence) - 1], '.');
            assert_ptr_equal(hg_conf_option_find((enum hg_conf_scope)scope, option->name), option);
            if (!option->default_text || hg_conf_option_list(option) != HG_CONF_SCOPE_COUNT)
                continue;
            char *text = hg_conf_value_text(option, object);
            assert_non_null(text);
            if (!hg_conf_option_inherits(option))
                assert_string_equal(text, option->default_text);
            assert_int_equal(hg_conf_value_set(option, again, text, &why), 0);
            free(text);
        }
        hg_conf_object_fini((enum hg_conf_scope)scope, object);
        hg_conf_object_fini((enum hg_conf_scope)scope, again);
        free(object);
        free(again);
    }
}

static void test_a_wrong_name_brings_the_likely_one_and_all(void **state)
{
    (void)state;
    struct hg_conf_why why;
    hg_conf_option_unknown(HG_CONF_SCOPE_LISTEN, "adress", &why);
    assert_string_equal(why.text, "unknown option 'adress', did you mean 'address' (accepted: "
                                  "address, mode, tls)");
    hg_conf_option_unknown(HG_CONF_SCOPE_LISTEN, "zzzzzz", &why);
    assert_string_equal(why.text, "unknown option 'zzzzzz' (accepted: address, mode, tls)");
    static const struct {
        enum hg_conf_scope scope;
        const char *name, *meant;
    } rows[] = {
        {HG_CONF_SCOPE_TENANT, "backend_db", "'backend_database'"},
        {HG_CONF_SCOPE_TENANT, "backend_pass", "'backend_password'"},
        {HG_CONF_SCOPE_TENANT, "database", "'backend_database'"},
        {HG_CONF_SCOPE_TENANT, "user", "'backend_user'"},
        {HG_CONF_SCOPE_TENANT, "password", "'backend_password'"},
        {HG_CONF_SCOPE_TENANT, "password_file", "'backend_password_file'"},
        {HG_CONF_SCOPE_TENANT, "reserve", "'reserved'"},
        {HG_CONF_SCOPE_SERVER, "max_value_byte", "'max_value_bytes'"},
        {HG_CONF_SCOPE_SERVER, "default_quota", NULL},
    };
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++) {
        hg_conf_option_unknown(rows[i].scope, rows[i].name, &why);
        const char *meant = strstr(why.text, ", did you mean ");
        assert_true((meant != NULL) == (rows[i].meant != NULL));
        if (meant)
            assert_memory_equal(meant + strlen(", did you mean "), rows[i].meant,
                                strlen(rows[i].meant));
    }
    for (int scope = 0; scope < HG_CONF_SCOPE_COUNT; scope++) {
        char name[200];
        memset(name, 'x', sizeof name - 1);
        name[sizeof name - 1] = '\0';
        hg_conf_option_unknown((enum hg_conf_scope)scope, name, &why);
        size_t len = strlen(why.text);
        assert_int_equal(why.text[len - 1], ')'); /* the whole list had room */
    }
}

static void test_choices_have_the_names_of_the_file(void **state)
{
    (void)state;
    assert_string_equal(hg_conf_ring_name(HG_CONF_RING_KETAMA_WEIGHTED), "ketama_weighted");
    assert_string_equal(hg_conf_free_pool_name(HG_CONF_FREE_POOL_FIRST_COME), "first-come");
    assert_string_equal(hg_conf_hash_name((enum hg_conf_hash)99), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_are_taken_whole_or_not_at_all),
        cmocka_unit_test(test_truth_has_two_words),
        cmocka_unit_test(test_addresses_have_four_forms),
        cmocka_unit_test(test_names_are_those_of_buckets),
        cmocka_unit_test(test_every_default_is_accepted_and_reads_back),
        cmocka_unit_test(test_a_wrong_name_brings_the_likely_one_and_all),
        cmocka_unit_test(test_choices_have_the_names_of_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
