// t_conf_logins - users, passwords and databases of servers: checked, read from files, never shown
// SPDX-License-Identifier: BSD-3-Clause
#include "apphelp.h"

#include <errno.h>
#include <unistd.h>

#include "app/adminjson.h"
#include "app/conf_table.h"
#include "app/state.h"

#define SERVERS "    servers: [{address: \"127.0.0.1:6379\"}]\n"
#define REDIS   "upstreams:\n  - name: r\n    kind: redis\n" SERVERS
#define CACHE   "upstreams:\n  - name: m\n    kind: memcached\n" SERVERS
#define CLUSTER "upstreams:\n  - name: c\n    kind: redis-cluster\n" SERVERS
#define HIDDEN  "hunter2"

static void test_logins_are_whole(void **state)
{
    (void)state;
    static const struct complaint cases[] = {
        {REDIS "    user: u\n",
         "c.yaml:5: 'user' of upstream 'r' without a password (accepted: password or password_file "
         "beside it; any, for a user that Redis wants none from)\n"},
        {CACHE "    user: u\n",
         "c.yaml:5: 'user' of upstream 'm' without a password (accepted: password or password_file "
         "beside it)\n"},
        {CACHE "    password: p\n",
         "c.yaml:5: password of upstream 'm' without a user (accepted: user beside it)\n"},
        {CACHE "    password_file: p\n",
         "c.yaml:5: password of upstream 'm' without a user (accepted: user beside it)\n"},
        {REDIS "    password: p\n    password_file: f\n",
         "c.yaml:6: 'password_file' given beside 'password' of upstream 'r' (accepted: one of "
         "them)\n"},
        {REDIS "tenants:\n  - name: a\n    backend_user: u\n",
         "c.yaml:7: 'backend_user' of tenant 'a' without a password (accepted: backend_password or "
         "backend_password_file beside it; any, for a user that Redis wants none from)\n"},
        {CACHE "tenants:\n  - name: a\n    backend_password: p\n",
         "c.yaml:7: password of tenant 'a' without a user (accepted: backend_user beside it)\n"},
        {REDIS "tenants:\n  - name: a\n    backend_password: p\n    backend_password_file: f\n",
         "c.yaml:8: 'backend_password_file' given beside 'backend_password' of tenant 'a' "
         "(accepted: one of them)\n"},
    };
    apphelp_refuses(cases, HG_COUNT_OF(cases));
    hg_conf_free(apphelp_conf(REDIS "    password: p\n"));
    hg_conf_free(apphelp_conf(CACHE "    user: u\n    password: p\ntenants:\n"
                                    "  - {name: a, backend_user: v, backend_password: q}\n"));
}

static void test_tenants_log_in_where_that_means_something(void **state)
{
    (void)state;
    static const struct complaint cases[] = {
        {"tenants:\n  - name: a\n    backend_user: u\n    backend_password: p\n"
         "    backend_password_file: f\n    backend_database: 0\n",
         "c.yaml:3: 'backend_user' has no effect on tenant 'a', whose upstream 'embedded' is of "
         "kind embedded (accepted: on memcached, redis, redis-cluster)\n"
         "c.yaml:4: 'backend_password' has no effect on tenant 'a', whose upstream 'embedded' is "
         "of kind embedded (accepted: on memcached, redis, redis-cluster)\n"
         "c.yaml:5: 'backend_password_file' has no effect on tenant 'a', whose upstream 'embedded' "
         "is of kind embedded (accepted: on memcached, redis, redis-cluster)\n"
         "c.yaml:6: 'backend_database' has no effect on tenant 'a', whose upstream 'embedded' is "
         "of kind embedded (accepted: on redis)\n"},
        {CLUSTER "tenants:\n  - name: a\n    backend_database: 1\n",
         "c.yaml:7: 'backend_database' has no effect on tenant 'a', whose upstream 'c' is of kind "
         "redis-cluster (accepted: on redis)\n"},
        {CACHE "tenants:\n  - name: a\n    backend_database: 1\n",
         "c.yaml:7: 'backend_database' has no effect on tenant 'a', whose upstream 'm' is of kind "
         "memcached (accepted: on redis)\n"},
    };
    apphelp_refuses(cases, HG_COUNT_OF(cases));
}

/* ---- passwords are never shown ---- */

static void look_for_it(void *ctx, const char *path, const char *value)
{
    bool is_password =
        strcmp(path, "upstream.r.password") == 0 || strcmp(path, "tenant.a.backend_password") == 0;
    assert_null(strstr(value, HIDDEN));
    if (is_password)
        assert_string_equal(value, HG_CONF_SECRET_SHOWN);
    *(unsigned *)ctx += is_password;
}

static void test_lists_do_not_show_passwords(void **state)
{
    (void)state;
    struct hg_conf *conf = apphelp_conf(REDIS "    password: " HIDDEN "\ntenants:\n"
                                              "  - {name: a, backend_password: " HIDDEN "}\n");
    unsigned seen = 0;
    hg_conf_list(conf, look_for_it, &seen);
    assert_int_equal(seen, 2);
    hg_conf_free(conf);
}

struct told {
    const char *path, *before, *after;
    unsigned count;
};

static void compare_change(void *ctx, const struct hg_conf_change *change)
{
    struct told *told = ctx;
    assert_string_equal(change->path, told->path);
    assert_string_equal(change->before, told->before);
    assert_string_equal(change->after, told->after);
    assert_true(change->at_run_time);
    told->count++;
}

static void expect_change(const char *before, const char *after, struct told told)
{
    struct hg_conf *from = apphelp_conf(before), *to = apphelp_conf(after);
    assert_int_equal(hg_conf_diff(from, to, compare_change, &told), 0);
    assert_int_equal(told.count, 1);
    hg_conf_free(from);
    hg_conf_free(to);
}

static void test_differences_tell_that_not_what(void **state)
{
    (void)state;
    expect_change(REDIS, REDIS "    password: " HIDDEN "\n",
                  (struct told){"upstream.r.password", "", HG_CONF_SECRET_SHOWN, 0});
    expect_change(
        REDIS "    password: x\n", REDIS "    password: " HIDDEN "\n",
        (struct told){"upstream.r.password", HG_CONF_SECRET_SHOWN, "(another secret)", 0});
    expect_change(REDIS "    password: " HIDDEN "\n", REDIS,
                  (struct told){"upstream.r.password", HG_CONF_SECRET_SHOWN, "", 0});
    expect_change(
        REDIS "tenants: [{name: a, backend_password: x}]\n",
        REDIS "tenants: [{name: a, backend_password: y}]\n",
        (struct told){"tenant.a.backend_password", HG_CONF_SECRET_SHOWN, "(another secret)", 0});
}

static void test_faults_do_not_show_passwords(void **state)
{
    (void)state;
    char text[1000], body[1000], *lines;
    char secret[600];
    struct hg_conf_errors errs;
    struct hg_conf *conf = NULL;
    memset(secret, 'x', sizeof secret);
    memcpy(secret, HIDDEN, strlen(HIDDEN));
    secret[sizeof secret - 1] = '\0';
    snprintf(text, sizeof text, REDIS "    password: %s\n", secret);
    hg_conf_errors_init(&errs);
    assert_int_equal(hg_conf_parse(text, strlen(text), "c.yaml", NULL, &conf, &errs), -EINVAL);
    lines = apphelp_lines(&errs);
    assert_string_equal(lines, "c.yaml:5: bad length of '(secret)' of 'password' (accepted: text "
                               "of 0 to 512 bytes)\n");
    free(lines);
    hg_conf_errors_fini(&errs);

    struct hg_conf_tenant *tenant = NULL;
    struct hg_adminjson_why why;
    snprintf(body, sizeof body, "{\"backend_password\": [\"" HIDDEN "\"]}");
    assert_int_equal(hg_adminjson_decode_bucket(HG_SPAN_LIT("a"), hg_span_str(body), &tenant, &why),
                     -EINVAL);
    assert_string_equal(why.text,
                        "bad value of 'backend_password' (accepted: text of 0 to 512 bytes)");
}

/* ---- by opcode ---- */

static void test_an_opcode_makes_a_bucket_with_a_login(void **state)
{
    (void)state;
    char path[] = "/tmp/hg-t-logins-XXXXXX";
    struct hg_conf *conf = apphelp_conf(REDIS "tenants: [{name: old}]\n"), *merged = NULL;
    struct hg_conf_tenant *tenant = NULL;
    struct hg_adminjson_why why;
    struct hg_conf_errors errs;
    struct hg_state *kept = hg_state_new(), *again = NULL;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_non_null(kept);
    assert_int_equal(hg_adminjson_decode_bucket(HG_SPAN_LIT("new"),
                                                HG_SPAN_LIT("{\"backend_user\":\"u\","
                                                            "\"backend_password\":\"" HIDDEN "\","
                                                            "\"backend_database\":4}"),
                                                &tenant, &why),
                     0);
    assert_int_equal(hg_state_create_bucket(kept, conf, tenant), 0);
    hg_adminjson_free_bucket(tenant);
    assert_int_equal(hg_state_save(kept, path), 0);
    hg_conf_errors_init(&errs);
    assert_int_equal(hg_state_load(path, &again, &errs), 0);
    assert_int_equal(hg_state_apply(conf, again, &merged, &errs), 0);
    apphelp_said(&errs, "");
    assert_int_equal(merged->tenants_count, 2);
    assert_string_equal(merged->tenants[1].backend_user, "u");
    assert_string_equal(merged->tenants[1].backend_password, HIDDEN);
    assert_int_equal(merged->tenants[1].backend_database, 4);
    /* Who comes later does not move anybody's keys, nor could the next one move its own. */
    assert_string_equal(merged->tenants[0].effective_prefix, "");
    assert_string_equal(merged->tenants[1].effective_prefix, "new:");
    hg_conf_free(merged);
    hg_state_free(kept);
    hg_state_free(again);
    hg_conf_free(conf);
    close(fd);
    unlink(path);
}

static void test_an_opcode_names_no_file(void **state)
{
    (void)state;
    struct hg_conf_tenant *tenant = NULL;
    struct hg_adminjson_why why;
    assert_int_equal(hg_adminjson_decode_bucket(HG_SPAN_LIT("a"),
                                                HG_SPAN_LIT("{\"backend_password_file\":\"/x\"}"),
                                                &tenant, &why),
                     -EINVAL);
    static const char begins[] = "unknown key 'backend_password_file' (accepted: upstream, ";
    assert_memory_equal(why.text, begins, sizeof begins - 1);
    assert_null(strstr(why.text + sizeof begins, "backend_password_file"));
    assert_non_null(strstr(why.text, "backend_database"));
}

/* ---- from files ---- */

struct files {
    char secret[40], conf[40];
};

static void write_file(const char *path, const char *text, size_t len)
{
    FILE *to = fopen(path, "we");
    assert_non_null(to);
    assert_int_equal(fwrite(text, 1, len, to), len);
    assert_int_equal(fclose(to), 0);
}

/* Both options read the same file. */
static int load(const struct files *files, struct hg_conf **ret, struct hg_conf_errors *errs)
{
    char text[600];
    int len = snprintf(text, sizeof text,
                       REDIS "    password_file: %s\ntenants:\n  - name: a\n"
                             "    backend_user: u\n    backend_password_file: %s\n",
                       files->secret, files->secret);
    write_file(files->conf, text, (size_t)len);
    hg_conf_errors_init(errs);
    return hg_conf_load(files->conf, NULL, ret, errs);
}

static void open_files(struct files *files)
{
    *files = (struct files){"/tmp/hg-t-secret-XXXXXX", "/tmp/hg-t-conf-XXXXXX"};
    int one = mkstemp(files->secret), other = mkstemp(files->conf);
    assert_true(one >= 0 && other >= 0);
    close(one);
    close(other);
}

static void test_passwords_come_from_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *secret;
    } cases[] = {{"pass word\n", "pass word"}, {"p", "p"}, {"p\r\n", "p"}, {" p ", " p "}};
    struct files files;
    open_files(&files);
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        struct hg_conf *conf = NULL;
        struct hg_conf_errors errs;
        write_file(files.secret, cases[i].text, strlen(cases[i].text));
        assert_int_equal(load(&files, &conf, &errs), 0);
        apphelp_said(&errs, "");
        assert_string_equal(conf->upstreams[0].password, cases[i].secret);
        assert_string_equal(conf->tenants[0].backend_password, cases[i].secret);
        hg_conf_free(conf);
    }
    unlink(files.secret);
    unlink(files.conf);
}

static void expect_fault(const struct files *files, const char *what)
{
    char says[600];
    struct hg_conf *conf = NULL;
    struct hg_conf_errors errs;
    assert_int_equal(load(files, &conf, &errs), -EINVAL);
    assert_null(conf);
    snprintf(says, sizeof says, "%s:5: %s\n%s:9: %s\n", files->conf, what, files->conf, what);
    apphelp_said(&errs, says);
}

static void test_files_without_a_password_are_refused(void **state)
{
    (void)state;
    char what[300], longest[514];
    static const struct {
        const char *text;
        size_t len;
    } cases[] = {{"", 0}, {"\n", 1}, {"a\nb\n", 4}, {"a\0b", 3}, {"\r\n", 2}};
    struct files files;
    open_files(&files);
    snprintf(what, sizeof what, "no password in '%s' (accepted: one line of 1 to 512 bytes)",
             files.secret);
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        write_file(files.secret, cases[i].text, cases[i].len);
        expect_fault(&files, what);
    }
    memset(longest, 'x', sizeof longest);
    write_file(files.secret, longest, 513);
    expect_fault(&files, what);
    unlink(files.secret);
    snprintf(what, sizeof what, "cannot read '%s': No such file or directory", files.secret);
    expect_fault(&files, what);
    unlink(files.conf);
}

/* A text that somebody sends to be checked must not tell what the server can read. */
static void test_a_text_reads_no_files(void **state)
{
    (void)state;
    struct hg_conf *conf = apphelp_conf(REDIS "    password_file: /nowhere/to/be/found\n");
    assert_string_equal(conf->upstreams[0].password, "");
    hg_conf_free(conf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logins_are_whole),
        cmocka_unit_test(test_tenants_log_in_where_that_means_something),
        cmocka_unit_test(test_lists_do_not_show_passwords),
        cmocka_unit_test(test_differences_tell_that_not_what),
        cmocka_unit_test(test_faults_do_not_show_passwords),
        cmocka_unit_test(test_an_opcode_makes_a_bucket_with_a_login),
        cmocka_unit_test(test_an_opcode_names_no_file),
        cmocka_unit_test(test_passwords_come_from_files),
        cmocka_unit_test(test_files_without_a_password_are_refused),
        cmocka_unit_test(test_a_text_reads_no_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
