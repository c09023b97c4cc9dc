// apphelp - what the tests of src/app share: parse a text, compare the complaints as a whole
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_TEST_APPHELP_H
#define HG_TEST_APPHELP_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "app/conf.h"
#include "base/attr.h"

/* A text and all that is said of it, a line each. */
struct complaint {
    const char *text;
    const char *says;
};

/* All lines of errs as hg_conf_errors_print shows them, on the heap. */
static inline char *apphelp_lines(const struct hg_conf_errors *errs)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    hg_conf_errors_print(errs, to);
    assert_int_equal(fclose(to), 0);
    return text;
}

/* Compares and frees what was said. (Both whole on a difference: the library cuts long texts.) */
static inline void apphelp_said(struct hg_conf_errors *errs, const char *says)
{
    char *lines = apphelp_lines(errs);
    if (strcmp(lines, says) != 0)
        fprintf(stderr, "# expected:\n%s# said:\n%s", says, lines);
    assert_int_equal(strcmp(lines, says), 0);
    free(lines);
    hg_conf_errors_fini(errs);
}

/* A configuration that must be right, without a warning. */
static inline struct hg_conf *apphelp_conf(const char *text)
{
    struct hg_conf_errors errs;
    struct hg_conf *conf = NULL;
    hg_conf_errors_init(&errs);
    int rc = hg_conf_parse(text, strlen(text), "c.yaml", NULL, &conf, &errs);
    apphelp_said(&errs, "");
    assert_int_equal(rc, 0);
    return conf;
}

/* A configuration that must be right; the warnings are compared. */
static inline void apphelp_warns(const struct complaint *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct hg_conf_errors errs;
        struct hg_conf *conf = NULL;
        hg_conf_errors_init(&errs);
        int rc = hg_conf_parse(cases[i].text, strlen(cases[i].text), "c.yaml", NULL, &conf, &errs);
        apphelp_said(&errs, cases[i].says);
        assert_int_equal(rc, 0);
        hg_conf_free(conf);
    }
}

/* Configurations that must be refused, with these words. */
static inline void apphelp_refuses(const struct complaint *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct hg_conf_errors errs;
        struct hg_conf *conf = NULL;
        hg_conf_errors_init(&errs);
        int rc = hg_conf_parse(cases[i].text, strlen(cases[i].text), "c.yaml", NULL, &conf, &errs);
        apphelp_said(&errs, cases[i].says);
        assert_int_equal(rc, -22);
        assert_null(conf);
    }
}

#endif
