// t_state - settings by opcode: they win, and they can be taken back
// SPDX-License-Identifier: BSD-3-Clause
#include "statescene.h"

#include <errno.h>

#include "app/conf_table.h"

#define ABSENT  ((struct hg_state_units){HG_STATE_ABSENT, 0})
#define DEFAULT ((struct hg_state_units){HG_STATE_DEFAULT, 0})

/* Merges; the complaints are compared. NULL when it was refused. */
static struct hg_conf *apply(const struct hg_conf *conf, const struct hg_state *state,
                             const char *says)
{
    struct hg_conf_errors errs;
    struct hg_conf *merged = NULL;
    hg_conf_errors_init(&errs);
    int rc = hg_state_apply(conf, state, &merged, &errs);
    apphelp_said(&errs, says);
    assert_int_equal(rc, merged ? 0 : -EINVAL);
    return merged;
}

static const struct hg_conf_tenant *tenant_of(const struct hg_conf *conf, const char *name)
{
    return hg_conf_tenant_find(conf, name, strlen(name));
}

/* Saves and loads, so that what is looked at has been on the disk. */
static struct hg_state *over_a_restart(const struct fixture *fixture)
{
    struct hg_conf_errors errs;
    struct hg_state *again = NULL;
    hg_conf_errors_init(&errs);
    assert_int_equal(hg_state_save(fixture->state, fixture->path), 0);
    assert_int_equal(hg_state_load(fixture->path, &again, &errs), 0);
    apphelp_said(&errs, "");
    return again;
}

static void test_nothing_set_is_the_file(void **state)
{
    struct fixture *fixture = *state;
    struct hg_conf *merged = apply(fixture->conf, fixture->state, "");
    assert_int_equal(hg_conf_diff(fixture->conf, merged, NULL, NULL), 0);
    hg_conf_free(merged);
    struct hg_state *missing = NULL;
    struct hg_conf_errors errs;
    hg_conf_errors_init(&errs);
    assert_int_equal(hg_state_load(fixture->path, &missing, &errs), 0);
    apphelp_said(&errs, "");
    hg_state_free(missing);
}

static void test_node_settings_win_and_go_back(void **state)
{
    struct fixture *fixture = *state;
    struct hg_state_node node = {N(HG_CONF_UNLIMITED), N(7), ABSENT};
    assert_int_equal(hg_state_set_node(fixture->state, &node), 0);
    struct hg_state *again = over_a_restart(fixture);
    struct hg_conf *merged =
        apply(fixture->conf, again,
              "warning: c.yaml:1: 'node_capacity' was set by opcode, this line has no effect\n");
    assert_int_equal(merged->node_capacity, HG_CONF_UNLIMITED);
    assert_int_equal(merged->default_throttle_reserved_units, 7);
    assert_int_equal(merged->default_throttle_hard_limit, 500);
    assert_int_equal(tenant_of(merged, "ledger")->reserved, 7); /* inherits the new default */
    assert_int_equal(tenant_of(merged, "shop")->reserved, 5);
    assert_int_equal(merged->lines[HG_CONF_SERVER_node_capacity], HG_CONF_BY_OPCODE);
    hg_conf_free(merged);

    struct hg_state_node back = {DEFAULT, ABSENT, ABSENT};
    assert_int_equal(hg_state_set_node(again, &back), 0);
    merged = apply(fixture->conf, again, "");
    assert_int_equal(merged->node_capacity, 1000);
    assert_int_equal(merged->default_throttle_reserved_units, 7);
    hg_conf_free(merged);
    hg_state_unset_node(again);
    merged = apply(fixture->conf, again, "");
    assert_int_equal(hg_conf_diff(fixture->conf, merged, NULL, NULL), 0);
    hg_conf_free(merged);
    hg_state_free(again);
}

static void test_throttle_properties_win_and_a_missing_one_is_the_default(void **state)
{
    struct fixture *fixture = *state;
    struct hg_state_throttle throttle = {ABSENT, N(60)};
    assert_int_equal(hg_state_set_throttle(fixture->state, HG_SPAN_LIT("shop"), &throttle), 0);
    assert_int_equal(hg_state_set_data_limit(fixture->state, HG_SPAN_LIT("ledger"), 0x36), 0);
    struct hg_state *again = over_a_restart(fixture);
    struct hg_conf *merged = apply(fixture->conf, again,
                                   "warning: c.yaml:7: 'reserved' of tenant 'shop' was set by "
                                   "opcode, this line has no effect\n"
                                   "warning: c.yaml:7: 'hard_limit' of tenant 'shop' was set by "
                                   "opcode, this line has no effect\n");
    assert_int_equal(tenant_of(merged, "shop")->reserved, 0);
    assert_int_equal(tenant_of(merged, "shop")->hard_limit, 60);
    assert_int_equal(tenant_of(merged, "shop")->data_limit_status, 0);
    assert_int_equal(tenant_of(merged, "ledger")->data_limit_status, 0x36);
    assert_int_equal(tenant_of(merged, "ledger")->hard_limit, 500);
    hg_conf_free(merged);
    hg_state_unset_bucket(again, HG_SPAN_LIT("shop"));
    hg_state_unset_bucket(again, HG_SPAN_LIT("nobody"));
    assert_int_equal(hg_state_set_data_limit(again, HG_SPAN_LIT("ledger"), 0), 0);
    merged = apply(fixture->conf, again, "");
    assert_int_equal(tenant_of(merged, "shop")->reserved, 5);
    assert_int_equal(tenant_of(merged, "ledger")->data_limit_status, 0);
    hg_conf_free(merged);
    hg_state_free(again);
}

static void test_a_created_bucket_is_a_tenant_with_a_prefix_of_its_own(void **state)
{
    struct fixture *fixture = *state;
    create(fixture, "toys", "{\"upstream\":\"cache\",\"reserved\":10}");
    struct hg_state *again = over_a_restart(fixture);
    struct hg_conf *merged =
        apply(fixture->conf, again,
              "warning: key prefix 'toys:' of tenant 'toys' leaves 245 bytes for a "
              "key; longer keys are answered 0x04\n");
    const struct hg_conf_tenant *toys = tenant_of(merged, "toys");
    assert_int_equal(toys->reserved, 10);
    assert_int_equal(toys->hard_limit, 500);
    assert_true(toys->by_opcode);
    assert_false(toys->disabled);
    assert_int_equal(toys->upstream_index, 0);
    assert_string_equal(toys->effective_prefix, "toys:");
    /* Who was alone there keeps the keys as they are. */
    assert_string_equal(tenant_of(merged, "shop")->effective_prefix, "");
    assert_int_equal(tenant_of(merged, "shop")->neighbours, 1);
    hg_conf_free(merged);

    assert_int_equal(hg_state_delete_bucket(again, fixture->conf, HG_SPAN_LIT("toys")), 0);
    merged = apply(fixture->conf, again, "");
    assert_null(tenant_of(merged, "toys"));
    hg_conf_free(merged);
    hg_state_free(again);
}

static void test_a_created_bucket_whose_upstream_is_gone_is_disabled(void **state)
{
    struct fixture *fixture = *state;
    create(fixture, "toys", "{\"upstream\":\"cache\",\"reserved\":10}");
    struct hg_conf *other = apphelp_conf("node_capacity: 5\n");
    struct hg_conf *merged =
        apply(other, fixture->state,
              "warning: tenant 'toys' is disabled: its upstream 'cache' is gone\n");
    assert_true(tenant_of(merged, "toys")->disabled);
    assert_int_equal(tenant_of(merged, "toys")->upstream_index, HG_CONF_NO_UPSTREAM);
    assert_int_equal(tenant_of(merged, "default")->neighbours, 0);
    hg_conf_free(merged);
    hg_conf_free(other);
}

static void test_the_only_upstream_is_written_down(void **state)
{
    struct fixture *fixture = *state;
    hg_conf_free(fixture->conf);
    fixture->conf = apphelp_conf("");
    create(fixture, "toys", "");
    struct hg_conf *two =
        apphelp_conf("upstreams: [{name: a, kind: embedded}, {name: embedded, kind: "
                     "embedded}]\ntenants: [{name: x, upstream: a}]\n");
    struct hg_conf *merged = apply(two, fixture->state, "");
    assert_int_equal(tenant_of(merged, "toys")->upstream_index, 1);
    hg_conf_free(merged);
    hg_conf_free(two);
}

static void test_a_created_bucket_must_keep_the_rules(void **state)
{
    struct fixture *fixture = *state;
#define UNFIT                                                                                      \
    "the configuration and the settings made by opcode ('./headgate-data/state.json') do not fit " \
    "together\n"
    create(fixture, "toys", "{\"reserved\":10}");
    assert_null(
        apply(fixture->conf, fixture->state,
              "no upstream for tenant 'toys', and there are 2 (accepted: cache, rows)\n" UNFIT));
    create(fixture, "toys", "{\"upstream\":\"rows\",\"reserved\":501}");
    assert_null(
        apply(fixture->conf, fixture->state,
              "reserved '501' of tenant 'toys' exceeds hard_limit (accepted: 0 to 500)\n" UNFIT));
    create(fixture, "toys", "{\"upstream\":\"rows\",\"key_prefix\":\"x\"}");
    assert_null(
        apply(fixture->conf, fixture->state,
              "'key_prefix' has no effect on tenant 'toys', whose upstream 'rows' is embedded "
              "and keeps tenants apart anyway\n" UNFIT));
    struct hg_state_node node = {ABSENT, N(501), ABSENT};
    create(fixture, "toys", "{\"upstream\":\"rows\"}");
    assert_int_equal(hg_state_set_node(fixture->state, &node), 0);
    assert_null(
        apply(fixture->conf, fixture->state,
              "default_throttle_reserved_units '501' exceeds default_throttle_hard_limit "
              "(accepted: 0 to 500)\n" UNFIT
              "warning: c.yaml:1: reservations of 1007 units/s exceed node_capacity 1000: all are "
              "honoured, and nothing is left for the free pool\n"));
}

static void test_a_deleted_bucket_of_the_file_stays_deleted(void **state)
{
    struct fixture *fixture = *state;
    struct hg_state_throttle throttle = {N(1), N(2)};
    assert_int_equal(hg_state_set_throttle(fixture->state, HG_SPAN_LIT("shop"), &throttle), 0);
    assert_int_equal(hg_state_delete_bucket(fixture->state, fixture->conf, HG_SPAN_LIT("shop")), 0);
    assert_int_equal(hg_state_set_throttle(fixture->state, HG_SPAN_LIT("shop"), &throttle),
                     -ENOENT);
    assert_int_equal(hg_state_set_data_limit(fixture->state, HG_SPAN_LIT("shop"), 0x35), -ENOENT);
    struct hg_state *again = over_a_restart(fixture);
    struct hg_conf *merged =
        apply(fixture->conf, again,
              "warning: c.yaml:7: tenant 'shop' was deleted by opcode and stays deleted\n");
    assert_null(tenant_of(merged, "shop"));
    assert_non_null(tenant_of(merged, "ledger"));
    assert_int_equal(merged->tenants_count, 1);
    hg_conf_free(merged);
    hg_state_unset_bucket(again, HG_SPAN_LIT("shop"));
    merged = apply(fixture->conf, again, "");
    assert_int_equal(tenant_of(merged, "shop")->reserved, 5); /* as the file has it */
    hg_conf_free(merged);
    hg_state_free(again);
}

static void test_made_again_it_is_another_bucket(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(hg_state_delete_bucket(fixture->state, fixture->conf, HG_SPAN_LIT("ledger")),
                     0);
    create(fixture, "ledger", "{\"upstream\":\"rows\",\"reserved\":3}");
    struct hg_state *again = over_a_restart(fixture);
    struct hg_conf *merged = apply(
        fixture->conf, again,
        "warning: c.yaml:8: tenant 'ledger' was created by opcode, this entry has no effect\n");
    assert_int_equal(tenant_of(merged, "ledger")->reserved, 3);
    assert_int_equal(merged->tenants_count, 2);
    hg_conf_free(merged);
    hg_state_free(again);
}

static void test_settings_of_nobody_are_told(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(hg_state_set_data_limit(fixture->state, HG_SPAN_LIT("gone"), 0x35), 0);
    hg_conf_free(
        apply(fixture->conf, fixture->state,
              "warning: settings made by opcode for tenant 'gone', which there is not, have no "
              "effect\n"));
}

static void test_a_clone_changes_alone(void **state)
{
    struct fixture *fixture = *state;
    create(fixture, "toys", "{\"upstream\":\"rows\",\"reserved\":3}");
    struct hg_state *clone = hg_state_clone(fixture->state);
    assert_non_null(clone);
    struct hg_state_throttle throttle = {N(1), N(2)};
    assert_int_equal(hg_state_set_throttle(clone, HG_SPAN_LIT("toys"), &throttle), 0);
    struct hg_conf *before = apply(fixture->conf, fixture->state, "");
    struct hg_conf *after = apply(fixture->conf, clone, "");
    assert_int_equal(tenant_of(before, "toys")->reserved, 3);
    assert_int_equal(tenant_of(after, "toys")->reserved, 1);
    hg_conf_free(before);
    hg_conf_free(after);
    hg_state_free(clone);
}

static void set_option(struct hg_state *state, const char *bucket, const char *option,
                       const char *text)
{
    struct hg_conf_why why;
    assert_int_equal(hg_state_set_option(state, hg_span_str(bucket), option, text, &why), 0);
}

static void test_options_kept_as_text(void **state)
{
    struct fixture *fixture = *state;
    set_option(fixture->state, "shop", "kv_hotkey_throttle_threshold", "1000000000000000000");
    set_option(fixture->state, "shop", "hotkey_mode", "observe");
    set_option(fixture->state, "shop", "hotkey_control", "proportional");
    set_option(fixture->state, "shop", "hotkey_tracking", "false");
    create(fixture, "toys", "{\"upstream\":\"rows\",\"hotkey_mode\":\"off\"}");
    set_option(fixture->state, "toys", "hotkey_mode", "enforce");
    struct hg_state *again = over_a_restart(fixture);
    struct hg_conf *merged = apply(fixture->conf, again, "");
    const struct hg_conf_tenant *shop = tenant_of(merged, "shop");
    assert_int_equal(shop->kv_hotkey_throttle_threshold, 1000000000000000000);
    assert_int_equal(shop->hotkey_mode, HG_CONF_HOTKEY_MODE_OBSERVE);
    assert_int_equal(shop->hotkey_control, HG_CONF_HOTKEY_CONTROL_PROPORTIONAL);
    assert_false(shop->hotkey_tracking);
    assert_int_equal(shop->lines[HG_CONF_TENANT_hotkey_mode], HG_CONF_BY_OPCODE);
    assert_int_equal(shop->reserved, 5); /* as the file has it */
    assert_int_equal(tenant_of(merged, "toys")->hotkey_mode, HG_CONF_HOTKEY_MODE_ENFORCE);
    hg_conf_free(merged);
    set_option(again, "shop", "hotkey_mode", "");
    set_option(again, "toys", "hotkey_mode", "");
    merged = apply(fixture->conf, again, "");
    assert_int_equal(tenant_of(merged, "shop")->hotkey_mode, HG_CONF_HOTKEY_MODE_ENFORCE);
    assert_int_equal(tenant_of(merged, "shop")->hotkey_control,
                     HG_CONF_HOTKEY_CONTROL_PROPORTIONAL);
    assert_int_equal(tenant_of(merged, "toys")->hotkey_mode, HG_CONF_HOTKEY_MODE_OFF);
    hg_conf_free(merged);
    hg_state_unset_bucket(again, HG_SPAN_LIT("shop"));
    merged = apply(fixture->conf, again, "");
    assert_int_equal(tenant_of(merged, "shop")->kv_hotkey_throttle_threshold, 0);
    assert_true(tenant_of(merged, "shop")->hotkey_tracking);
    hg_conf_free(merged);
    hg_state_free(again);
}

static void test_a_limit_by_itself_leaves_the_other(void **state)
{
    struct fixture *fixture = *state;
    static const char warning[] = "warning: c.yaml:7: 'hard_limit' of tenant 'shop' was set by "
                                  "opcode, this line has no effect\n";
    set_option(fixture->state, "shop", "hard_limit", "60");
    struct hg_state *again = over_a_restart(fixture);
    struct hg_conf *merged = apply(fixture->conf, again, warning);
    assert_int_equal(tenant_of(merged, "shop")->hard_limit, 60);
    assert_int_equal(tenant_of(merged, "shop")->reserved, 5);
    hg_conf_free(merged);
    set_option(again, "shop", "hard_limit", "");
    merged = apply(fixture->conf, again, "");
    assert_int_equal(tenant_of(merged, "shop")->reserved, 5);
    hg_conf_free(merged);
    hg_state_free(again);
}

static void test_options_that_cannot_be_set(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *option, *text, *why;
    } cases[] = {
        {"hotkey_mode", "on", "bad value 'on' of 'hotkey_mode' (accepted: off, observe, enforce)"},
        {"hotkey_control", "dice",
         "bad value 'dice' of 'hotkey_control' (accepted: step, proportional)"},
        {"hotkey_tracking", "yes", "bad value 'yes' of 'hotkey_tracking' (accepted: true, false)"},
        {"kv_hotkey_throttle_threshold", "1000000000000000001",
         "value out of range '1000000000000000001' of 'kv_hotkey_throttle_threshold' (accepted: 0 "
         "to 1000000000000000000 operations an epoch)"},
        {"kv_hotkey_throttle_threshold", "-1",
         "bad value '-1' of 'kv_hotkey_throttle_threshold' (accepted: 0 to 1000000000000000000 "
         "operations an epoch)"},
        {"hard_limit", "much",
         "bad value 'much' of 'hard_limit' (accepted: 0 to 1000000000000 units/s, or unlimited)"},
        {"key_prefix", "x",
         "this option of a tenant cannot be set at run time (accepted: reserved, hard_limit, "
         "state, "
         "credit_mode, reject_status, max_connections, kv_hotkey_throttle_threshold, hotkey_mode, "
         "hotkey_control, hotkey_tracking, "
         "ticket_mode, fair_by, bind_mode, bind_min_bytes)"},
        {"", "x",
         "this option of a tenant cannot be set at run time (accepted: reserved, hard_limit, "
         "state, "
         "credit_mode, reject_status, max_connections, kv_hotkey_throttle_threshold, hotkey_mode, "
         "hotkey_control, hotkey_tracking, "
         "ticket_mode, fair_by, bind_mode, bind_min_bytes)"},
    };
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        struct hg_conf_why why;
        assert_int_equal(hg_state_set_option(fixture->state, HG_SPAN_LIT("shop"), cases[i].option,
                                             cases[i].text, &why),
                         -EINVAL);
        assert_string_equal(why.text, cases[i].why);
    }
    struct hg_conf *merged = apply(fixture->conf, fixture->state, "");
    assert_int_equal(tenant_of(merged, "shop")->hotkey_mode, HG_CONF_HOTKEY_MODE_ENFORCE);
    hg_conf_free(merged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_set_is_the_file),
        TEST(test_node_settings_win_and_go_back),
        TEST(test_throttle_properties_win_and_a_missing_one_is_the_default),
        TEST(test_a_created_bucket_is_a_tenant_with_a_prefix_of_its_own),
        TEST(test_a_created_bucket_whose_upstream_is_gone_is_disabled),
        TEST(test_the_only_upstream_is_written_down),
        TEST(test_a_created_bucket_must_keep_the_rules),
        TEST(test_a_deleted_bucket_of_the_file_stays_deleted),
        TEST(test_made_again_it_is_another_bucket),
        TEST(test_settings_of_nobody_are_told),
        TEST(test_a_clone_changes_alone),
        TEST(test_options_kept_as_text),
        TEST(test_a_limit_by_itself_leaves_the_other),
        TEST(test_options_that_cannot_be_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
