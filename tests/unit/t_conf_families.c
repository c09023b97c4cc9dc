// t_conf_families - families of HBase tables, in the file, by opcode and over a restart
// SPDX-License-Identifier: BSD-3-Clause
#include "apphelp.h"

#include <errno.h>
#include <unistd.h>

#include "app/adminjson.h"
#include "app/conf_table.h"
#include "app/state.h"

#define SHOP "tenants:\n  - name: shop\n    families:\n"

static void same_family(const struct hg_conf_family *family, const char *table, const char *name,
                        uint64_t ttl_s, uint64_t max_versions)
{
    assert_string_equal(family->table, table);
    assert_string_equal(family->name, name);
    assert_int_equal(family->ttl_s, ttl_s);
    assert_int_equal(family->max_versions, max_versions);
}

static void test_families_are_what_the_file_says(void **state)
{
    (void)state;
    struct hg_conf *conf =
        apphelp_conf(SHOP "      - {table: orders, name: d, ttl_s: 86400, max_versions: 3}\n"
                          "      - {table: orders, name: e}\n"
                          "      - {table: \"a table\", name: d, max_versions: 1000}\n"
                          "  - name: other\n");
    const struct hg_conf_tenant *shop = &conf->tenants[0];
    assert_int_equal(shop->families_count, 3);
    same_family(&shop->families[0], "orders", "d", 86400, 3);
    same_family(&shop->families[1], "orders", "e", 0, 1);
    same_family(&shop->families[2], "a table", "d", 0, 1000);
    assert_int_equal(shop->families[0].lines[HG_CONF_FAMILY_ttl_s], 4);
    assert_int_equal(shop->families[1].lines[HG_CONF_FAMILY_ttl_s], 0);
    assert_int_equal(conf->tenants[1].families_count, 0);
    struct hg_conf *copy = hg_conf_clone(conf);
    assert_non_null(copy);
    assert_int_equal(hg_conf_diff(conf, copy, NULL, NULL), 0);
    hg_conf_free(conf);
    same_family(&copy->tenants[0].families[0], "orders", "d", 86400, 3);
    hg_conf_free(copy);
}

static void test_faults_are_told_with_line_and_way_out(void **state)
{
    (void)state;
    static const struct complaint cases[] = {
        {SHOP "      - {table: orders}\n",
         "c.yaml:4: family without 'name' (accepted: text of 1 to 250 bytes)\n"},
        {SHOP "      - {name: d}\n",
         "c.yaml:4: family without 'table' (accepted: text of 1 to 100 bytes)\n"},
        {SHOP "      - {table: \"\", name: d}\n",
         "c.yaml:4: bad length of '' of 'table' (accepted: text of 1 to 100 bytes)\n"},
        {SHOP "      - {table: t, name: d, ttl_s: -1}\n",
         "c.yaml:4: bad value '-1' of 'ttl_s' (accepted: 0 to 3153600000 seconds)\n"},
        {SHOP "      - {table: t, name: d, max_versions: 0}\n",
         "c.yaml:4: value out of range '0' of 'max_versions' (accepted: 1 to 1000 versions)\n"},
        {SHOP "      - {table: t, name: d, max_versions: 1001}\n",
         "c.yaml:4: value out of range '1001' of 'max_versions' (accepted: 1 to 1000 versions)\n"},
        {SHOP "      - {table: t, name: d, ttl: 5}\n",
         "c.yaml:4: unknown option 'ttl', did you mean 'ttl_s' (accepted: table, name, ttl_s, "
         "max_versions)\n"},
        {SHOP "      - {table: t, name: \"a:b\"}\n",
         "c.yaml:4: bad family 'a:b' of table 't' of tenant 'shop' (accepted: 1 to 250 bytes "
         "without a colon)\n"},
        {SHOP "      - {table: t, name: d}\n      - {table: u, name: d}\n"
              "      - {table: t, name: d, ttl_s: 1}\n",
         "c.yaml:6: repeated family 'd' of table 't' of tenant 'shop' (accepted: once)\n"},
        {SHOP "      5\n", "c.yaml:4: 'families' is not a list\n"},
    };
    apphelp_refuses(cases, HG_COUNT_OF(cases) - 1);
    struct hg_conf_errors errs;
    struct hg_conf *conf = NULL;
    hg_conf_errors_init(&errs);
    const char *text = cases[HG_COUNT_OF(cases) - 1].text;
    assert_int_equal(hg_conf_parse(text, strlen(text), "c.yaml", NULL, &conf, &errs), -EINVAL);
    char *lines = apphelp_lines(&errs);
    assert_non_null(strstr(lines, "c.yaml:4: "));
    assert_non_null(strstr(lines, "families"));
    free(lines);
    hg_conf_errors_fini(&errs);
}

static void note_change(void *ctx, const struct hg_conf_change *change)
{
    snprintf(ctx, 300, "%s: %s -> %s%s", change->path, change->before, change->after,
             change->at_run_time ? "" : " (start)");
}

static void note_option(void *ctx, const char *path, const char *value)
{
    if (strcmp(path, "tenant.shop.families") == 0)
        snprintf(ctx, 300, "%s", value);
}

static void test_a_change_is_told_and_takes_effect_at_run_time(void **state)
{
    (void)state;
    char said[300] = "";
    struct hg_conf *before = apphelp_conf(SHOP "      - {table: t, name: d}\n");
    struct hg_conf *after =
        apphelp_conf(SHOP "      - {table: t, name: d, ttl_s: 9}\n      - {table: u, name: e}\n");
    assert_int_equal(hg_conf_diff(before, after, note_change, said), 0);
    assert_string_equal(said, "tenant.shop.families: [t d 0 1] -> [t d 9 1, u e 0 1]");
    hg_conf_list(after, note_option, said);
    assert_string_equal(said, "[t d 9 1, u e 0 1]");
    hg_conf_free(before);
    hg_conf_free(after);
}

static int decode(const char *body, struct hg_conf_tenant **ret, struct hg_adminjson_why *why)
{
    return hg_adminjson_decode_bucket(HG_SPAN_LIT("toys"), hg_span_str(body), ret, why);
}

static void test_an_opcode_gives_families(void **state)
{
    (void)state;
    struct hg_conf_tenant *tenant = NULL;
    struct hg_adminjson_why why = {""};
    assert_int_equal(decode("{\"families\":[{\"table\":\"t\",\"name\":\"d\",\"ttl_s\":60},"
                            "{\"name\":\"e\",\"table\":\"t\",\"max_versions\":2}],"
                            "\"reserved\":1}",
                            &tenant, &why),
                     0);
    assert_int_equal(tenant->families_count, 2);
    same_family(&tenant->families[0], "t", "d", 60, 1);
    same_family(&tenant->families[1], "t", "e", 0, 2);
    assert_int_equal(tenant->families[0].lines[HG_CONF_FAMILY_ttl_s], HG_CONF_BY_OPCODE);
    assert_int_equal(tenant->families[0].lines[HG_CONF_FAMILY_max_versions], 0);
    hg_adminjson_free_bucket(tenant);
    static const struct complaint cases[] = {
        {"{\"families\":5}", "bad value '5' of 'families' (accepted: a list of 0 to 1000 entries)"},
        {"{\"families\":[5]}", "bad value '5' of 'families' (accepted: a list of objects)"},
        {"{\"families\":[{\"table\":\"t\"}]}",
         "family without 'name' (accepted: text of 1 to 250 bytes)"},
        {"{\"families\":[{\"table\":\"t\",\"name\":\"d\",\"ttl_s\":\"x\"}]}",
         "bad value '\"x\"' of 'ttl_s' (accepted: 0 to 3153600000 seconds)"},
        {"{\"families\":[{\"table\":\"t\",\"name\":\"d\",\"versions\":1}]}",
         "unknown option 'versions' (accepted: table, name, ttl_s, max_versions)"},
        {"{\"families\":[{\"table\":\"t\",\"table\":\"t\"}]}",
         "repeated key 'table' (accepted: each key once)"},
    };
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        tenant = NULL;
        assert_int_equal(decode(cases[i].text, &tenant, &why), -EINVAL);
        assert_string_equal(why.text, cases[i].says);
        assert_null(tenant);
    }
}

// As many families as a body has room for: what is stored of them must be read again.
static void test_created_families_survive_a_restart(void **state)
{
    (void)state;
    char directory[] = "/tmp/hg-families-XXXXXX", path[64], *body = malloc(20000);
    assert_non_null(body);
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/state.json", directory);
    int at = sprintf(body, "{\"families\":[");
    size_t count = 0;
    for (; at < 16250; count++)
        at += sprintf(body + at, "{\"table\":\"t%zu\",\"name\":\"d\"},", count);
    int room = 16384 - at - (int)strlen("{\"table\":\"last\",\"name\":\"\"}]}");
    at += sprintf(body + at, "{\"table\":\"last\",\"name\":\"%0*d\"}]}", room, 0);
    assert_int_equal(at, 16384);
    struct hg_conf_tenant *tenant = NULL;
    struct hg_adminjson_why why;
    struct hg_conf_errors errs;
    struct hg_conf *conf = apphelp_conf("tenants: []\n"), *merged = NULL;
    struct hg_state *made = hg_state_new(), *again = NULL;
    assert_int_equal(decode(body, &tenant, &why), 0);
    assert_int_equal(hg_state_create_bucket(made, conf, tenant), 0);
    assert_int_equal(hg_state_save(made, path), 0);
    hg_conf_errors_init(&errs);
    assert_int_equal(hg_state_load(path, &again, &errs), 0);
    assert_int_equal(hg_state_apply(conf, again, &merged, &errs), 0);
    apphelp_said(&errs, "");
    const struct hg_conf_tenant *toys = hg_conf_tenant_find(merged, "toys", 4);
    assert_non_null(toys);
    assert_int_equal(toys->families_count, count + 1);
    for (size_t i = 0; i < count; i++) {
        char table[24];
        snprintf(table, sizeof table, "t%zu", i);
        same_family(&toys->families[i], table, "d", 0, 1);
    }
    hg_adminjson_free_bucket(tenant);
    hg_state_free(made);
    hg_state_free(again);
    hg_conf_free(merged);
    hg_conf_free(conf);
    free(body);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

static void test_created_families_must_keep_the_rules(void **state)
{
    (void)state;
    struct hg_conf_tenant *tenant = NULL;
    struct hg_adminjson_why why;
    struct hg_conf_errors errs;
    struct hg_conf *conf = apphelp_conf("tenants: []\n"), *merged = NULL;
    struct hg_state *made = hg_state_new();
    assert_int_equal(decode("{\"families\":[{\"table\":\"t\",\"name\":\"d\"},"
                            "{\"table\":\"t\",\"name\":\"d\",\"ttl_s\":1}]}",
                            &tenant, &why),
                     0);
    assert_int_equal(hg_state_create_bucket(made, conf, tenant), 0);
    hg_conf_errors_init(&errs);
    assert_int_equal(hg_state_apply(conf, made, &merged, &errs), -EINVAL);
    char *lines = apphelp_lines(&errs);
    assert_non_null(
        strstr(lines, "repeated family 'd' of table 't' of tenant 'toys' (accepted: once)\n"));
    free(lines);
    hg_conf_errors_fini(&errs);
    hg_adminjson_free_bucket(tenant);
    hg_state_free(made);
    hg_conf_free(conf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_families_are_what_the_file_says),
        cmocka_unit_test(test_faults_are_told_with_line_and_way_out),
        cmocka_unit_test(test_a_change_is_told_and_takes_effect_at_run_time),
        cmocka_unit_test(test_an_opcode_gives_families),
        cmocka_unit_test(test_created_families_survive_a_restart),
        cmocka_unit_test(test_created_families_must_keep_the_rules),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
