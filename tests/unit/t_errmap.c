// t_errmap - the error map is JSON that lists every status, in the version that was asked for
// SPDX-License-Identifier: BSD-3-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "proto/errmap.h"
#include "proto/status.h"

static void test_the_version_that_is_sent(void **state)
{
    (void)state;
    for (unsigned asked = 0; asked < 65536; asked++) {
        uint8_t value[2] = {(uint8_t)(asked >> 8), (uint8_t)asked};
        unsigned version = 99;
        const char *why = NULL;
        uint16_t status = hg_errmap_decode(hg_span(value, 2), &version, &why);
        assert_int_equal(status, asked == 0 ? HG_STATUS_KEY_ENOENT : 0);
        assert_int_equal(version, asked == 0 ? 99 : asked == 1 ? 1 : 2);
        assert_int_equal(why != NULL, asked == 0);
    }
    for (size_t len = 0; len < 8; len++) {
        unsigned version;
        const char *why = NULL;
        uint16_t status = hg_errmap_decode(hg_span("\0\1\0\1\0\1\0\1", len), &version, &why);
        assert_int_equal(status, len == 2 ? 0 : HG_STATUS_EINVAL);
    }
}

static bool has(const json_t *attrs, const char *name)
{
    for (size_t i = 0; i < json_array_size(attrs); i++)
        if (strcmp(json_string_value(json_array_get(attrs, i)), name) == 0)
            return true;
    return false;
}

static void test_every_status_is_listed(void **state)
{
    (void)state;
    for (unsigned version = 1; version <= 2; version++) {
        char *out = malloc(HG_ERRMAP_MAX_BYTES);
        assert_non_null(out);
        size_t len = hg_errmap_encode(version, out, HG_ERRMAP_MAX_BYTES);
        assert_true(len > 0);
        json_error_t why;
        json_t *map = json_loadb(out, len, JSON_REJECT_DUPLICATES, &why);
        assert_non_null(map);
        assert_int_equal(json_integer_value(json_object_get(map, "version")), version);
        assert_true(json_integer_value(json_object_get(map, "revision")) > 0);
        json_t *errors = json_object_get(map, "errors");
        assert_int_equal(json_object_size(errors), HG_STATUS_ROWS);
        for (size_t i = 0; i < HG_STATUS_ROWS; i++) {
            const struct hg_status_row *row = &hg_status_table[i];
            char code[8];
            snprintf(code, sizeof code, "%x", row->code);
            json_t *error = json_object_get(errors, code);
            assert_non_null(error);
            assert_string_equal(json_string_value(json_object_get(error, "name")), row->name);
            assert_string_equal(json_string_value(json_object_get(error, "desc")), row->meaning);
            json_t *attrs = json_object_get(error, "attrs");
            assert_true(json_array_size(attrs) > 0);
            assert_int_equal(has(attrs, "retry-later"),
                             (row->attributes & HG_STATUS_ATTR_LATER) != 0);
            assert_int_equal(has(attrs, "rate-limit"),
                             version == 2 && (row->attributes & HG_STATUS_ATTR_RATE) != 0);
            assert_int_equal(has(attrs, "success"), hg_status_is_success(row->code));
        }
        json_decref(map);
        free(out);
    }
}

static void test_too_little_room(void **state)
{
    (void)state;
    char whole[HG_ERRMAP_MAX_BYTES];
    size_t len = hg_errmap_encode(2, whole, sizeof whole);
    for (size_t cap = 0; cap <= len + 1; cap++) {
        char *out = malloc(cap ? cap : 1);
        assert_non_null(out);
        assert_int_equal(hg_errmap_encode(2, out, cap), cap <= len ? 0 : len);
        free(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_version_that_is_sent),
        cmocka_unit_test(test_every_status_is_listed),
        cmocka_unit_test(test_too_little_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
