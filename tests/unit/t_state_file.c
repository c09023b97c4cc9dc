// t_state_file - settings by opcode on the disk: written whole, read with care
// SPDX-License-Identifier: BSD-3-Clause
#include "statescene.h"

#include <errno.h>
#include <sys/stat.h>

#include "app/file.h"

static void test_a_missing_directory_is_made(void **state)
{
    struct fixture *fixture = *state;
    struct stat made;
    char directory[160], path[192];
    snprintf(directory, sizeof directory, "%s/data", fixture->directory);
    snprintf(path, sizeof path, "%s/deeper/state.json", directory);
    assert_int_equal(hg_state_save(fixture->state, path), -ENOENT);
    assert_int_equal(stat(directory, &made), -1);
    snprintf(path, sizeof path, "%s/state.json", directory);
    assert_int_equal(hg_state_save(fixture->state, path), 0);
    assert_int_equal(stat(directory, &made), 0);
    assert_int_equal(made.st_mode & 0777, 0700);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

static void test_the_file_is_replaced_whole_and_private(void **state)
{
    struct fixture *fixture = *state;
    struct stat stat_before, stat_after;
    assert_int_equal(hg_state_save(fixture->state, fixture->path), 0);
    assert_int_equal(stat(fixture->path, &stat_before), 0);
    assert_int_equal(stat_before.st_mode & 0777, 0600);
    create(fixture, "toys", "{\"upstream\":\"rows\"}");
    assert_int_equal(hg_state_save(fixture->state, fixture->path), 0);
    assert_int_equal(stat(fixture->path, &stat_after), 0);
    assert_int_not_equal(stat_before.st_ino, stat_after.st_ino); /* another file under the name */
    char *text;
    size_t len;
    assert_int_equal(hg_file_read(fixture->path, 4096, &text, &len), 0);
    assert_string_equal(text, "{\n"
                              "  \"buckets\": {\n"
                              "    \"toys\": {\n"
                              "      \"created\": {\n"
                              "        \"upstream\": \"rows\"\n"
                              "      }\n"
                              "    }\n"
                              "  },\n"
                              "  \"node\": {},\n"
                              "  \"version\": 1\n"
                              "}");
    free(text);
}

static void test_a_failed_save_leaves_the_old_file(void **state)
{
    struct fixture *fixture = *state;
    char nowhere[200], under_a_file[200], *text;
    size_t len;
    assert_int_equal(hg_file_replace(fixture->path, "old", 3), 0);
    snprintf(nowhere, sizeof nowhere, "%s/no/no/state.json", fixture->directory);
    snprintf(under_a_file, sizeof under_a_file, "%s/x", fixture->path);
    assert_int_equal(hg_state_save(fixture->state, nowhere), -ENOENT);
    assert_int_equal(hg_state_save(fixture->state, under_a_file), -ENOTDIR);
    assert_int_equal(hg_state_save(fixture->state, fixture->directory), -EISDIR);
    assert_int_equal(hg_file_read(fixture->path, 4096, &text, &len), 0);
    assert_string_equal(text, "old");
    free(text);
    /* The temporary file of the third attempt is gone too: it stood beside the directory. */
    char command[200];
    snprintf(command, sizeof command, "%s.", fixture->directory);
    assert_int_not_equal(access(command, F_OK), 0);
}

static void test_files_have_a_largest_size(void **state)
{
    struct fixture *fixture = *state;
    char *text;
    size_t len;
    assert_int_equal(hg_file_replace(fixture->path, "12345", 5), 0);
    assert_int_equal(hg_file_read(fixture->path, 4, &text, &len), -EFBIG);
    assert_int_equal(hg_file_read(fixture->path, 5, &text, &len), 0);
    assert_int_equal(len, 5);
    free(text);
    assert_int_equal(hg_file_replace(fixture->path, "", 0), 0);
    assert_int_equal(hg_file_read(fixture->path, 5, &text, &len), 0);
    assert_int_equal(len, 0);
    free(text);
}

static void test_a_broken_file_stops_the_start_by_name(void **state)
{
    struct fixture *fixture = *state;
#define BROKEN "s.json: broken state file: "
    static const struct complaint cases[] = {
        {"", BROKEN "empty body (accepted: the state file as headgate wrote it)\n"},
        {"{", BROKEN
         "not JSON at byte 1: string or '}' expected near end of file (accepted: the state file as "
         "headgate wrote it)\n"},
        {"[]", BROKEN "not a JSON object (accepted: the state file as headgate wrote it)\n"},
        {"{}", BROKEN "no 'version' that is known (accepted: 1)\n"},
        {"{\"version\":2}", BROKEN "no 'version' that is known (accepted: 1)\n"},
        {"{\"version\":1,\"x\":2}",
         BROKEN "unknown key 'x' (accepted: version, node, options, upstreams, buckets)\n"},
        {"{\"version\":1,\"version\":1}",
         BROKEN "repeated key 'version' (accepted: each key once)\n"},
        {"{\"version\":1,\"node\":5}", BROKEN "bad value '5' of 'node' (accepted: an object)\n"},
        {"{\"version\":1,\"node\":{\"capacity\":-1}}", BROKEN
         "bad value '-1' of 'capacity' (accepted: 0 to 1000000000000 units/s, or unlimited)\n"},
        {"{\"version\":1,\"node\":{\"capacity\":\"default\"}}",
         BROKEN "bad value '\"default\"' of 'capacity' (accepted: 0 to 1000000000000 units/s, or "
                "unlimited)\n"},
        {"{\"version\":1,\"node\":{\"x\":1}}",
         BROKEN "unknown key 'x' (accepted: capacity, default_throttle_reserved_units, "
                "default_throttle_hard_limit)\n"},
        {"{\"version\":1,\"buckets\":[]}",
         BROKEN "bad value '[]' of 'buckets' (accepted: an object)\n"},
        {"{\"version\":1,\"buckets\":{\"a b\":{}}}",
         BROKEN "bad bucket name 'a b' (accepted: 1 to 100 of A-Z a-z 0-9 . _ % -)\n"},
        {"{\"version\":1,\"buckets\":{\"a\":1}}",
         BROKEN "bad value '1' of 'a' (accepted: an object)\n"},
        {"{\"version\":1,\"buckets\":{\"a\":{\"y\":1}}}",
         BROKEN "unknown key 'y' (accepted: throttle, options, data_limit, created, deleted)\n"},
        {"{\"version\":1,\"buckets\":{\"a\":{\"throttle\":{\"reserve\":1}}}}",
         BROKEN "unknown key 'reserve' (accepted: reserved, hard_limit)\n"},
        {"{\"version\":1,\"buckets\":{\"a\":{\"data_limit\":52}}}",
         BROKEN "bad value '52' of 'data_limit' (accepted: 53 to 56)\n"},
        {"{\"version\":1,\"buckets\":{\"a\":{\"deleted\":false}}}",
         BROKEN "bad value 'false' of 'deleted' (accepted: true)\n"},
        {"{\"version\":1,\"buckets\":{\"a\":{\"deleted\":true,\"data_limit\":53}}}",
         BROKEN "bucket 'a' is deleted and has settings (accepted: either)\n"},
        {"{\"version\":1,\"buckets\":{\"a\":{\"options\":7}}}",
         BROKEN "bad value '7' of 'options' (accepted: an object)\n"},
        {"{\"version\":1,\"buckets\":{\"a\":{\"options\":{\"hotkey_mode\":1}}}}",
         BROKEN "bad value '1' of 'hotkey_mode' (accepted: off, observe, enforce)\n"},
        {"{\"version\":1,\"buckets\":{\"a\":{\"options\":{\"reserved\":1}}}}", BROKEN
         "unknown key 'reserved' (accepted: state, credit_mode, reject_status, "
         "max_connections, kv_hotkey_throttle_threshold, hotkey_mode, "
         "hotkey_control, hotkey_tracking, ticket_mode, fair_by, bind_mode, bind_min_bytes)\n"},
        {"{\"version\":1,\"buckets\":{\"a\":{\"created\":7}}}",
         BROKEN "bad value '7' of 'created' (accepted: an object of settings)\n"},
        {"{\"version\":1,\"buckets\":{\"a\":{\"created\":{\"reserved\":2,\"hard_limit\":1}}}}",
         BROKEN "reserved '2' exceeds hard_limit (accepted: 0 to 1)\n"},
        {"{\"version\":1} x", BROKEN "bytes behind the JSON object, at byte 15 (accepted: the "
                                     "state file as headgate wrote it and "
                                     "nothing else)\n"},
    };
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        struct hg_conf_errors errs;
        struct hg_state *broken = NULL;
        hg_conf_errors_init(&errs);
        assert_int_equal(
            hg_state_parse(cases[i].text, strlen(cases[i].text), "s.json", &broken, &errs),
            -EINVAL);
        apphelp_said(&errs, cases[i].says);
        assert_null(broken);
    }
    struct hg_conf_errors errs;
    struct hg_state *none = NULL;
    char says[300];
    hg_conf_errors_init(&errs);
    assert_int_equal(hg_state_load(fixture->directory, &none, &errs), -EISDIR);
    snprintf(says, sizeof says, "cannot read state file '%s': Is a directory\n",
             fixture->directory);
    apphelp_said(&errs, says);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_missing_directory_is_made),
        TEST(test_the_file_is_replaced_whole_and_private),
        TEST(test_a_failed_save_leaves_the_old_file),
        TEST(test_files_have_a_largest_size),
        TEST(test_a_broken_file_stops_the_start_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
