// t_log - lines, levels, limits, and the sink that changes under its writers
// SPDX-License-Identifier: BSD-3-Clause
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "patience.h"

static char dir[64];

static int set_up(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/t_log.XXXXXX");
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    hg_log_close();
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command);
}

static const char *path_of(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, 128, "%s/%s", dir, name);
    return path;
}

/* The whole file as a string; until the next call. */
static const char *text_of(const char *name)
{
    static char text[65536];
    int fd = open(path_of(name), O_RDONLY);
    if (fd < 0)
        return NULL;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    assert_true(n >= 0);
    text[n] = '\0';
    return text;
}

static unsigned count_of(const char *text, const char *what)
{
    unsigned n = 0;
    while ((text = strstr(text, what)) != NULL) {
        n++;
        text += strlen(what);
    }
    return n;
}

static unsigned open_descriptors(void)
{
    unsigned n = 0;
    DIR *all = opendir("/proc/self/fd");
    assert_non_null(all);
    while (readdir(all) != NULL)
        n++;
    closedir(all);
    return n;
}

static void test_lines(void **state)
{
    (void)state;
    assert_int_equal(hg_log_open(path_of("a"), HG_LOG_INFO), 0);
    hg_log_info("n=%d msg=\"%s\"", 5, "five");
    hg_log_debug("msg=\"not shown\"");
    hg_log_set_level(HG_LOG_DEBUG);
    hg_log_debug("msg=\"shown\"");
    hg_log_set_level(HG_LOG_ERROR);
    hg_log_warn("msg=\"not shown\"");
    hg_log_error("msg=\"last\"");
    const char *text = text_of("a");
    assert_int_equal(count_of(text, "\n"), 3);
    assert_int_equal(count_of(text, "not shown"), 0);
    const char *line = strchr(text, ' ');
    assert_non_null(line);
    assert_int_equal(line - text, strlen("2026-01-31T12:00:00.123Z"));
    assert_int_equal(line[-1], 'Z');
    assert_memory_equal(line, " info n=5 msg=\"five\"\n", 21);
}

/* A line that is too long is cut, and still a line. */
static void test_long_line(void **state)
{
    (void)state;
    char *word = malloc(5000);
    memset(word, 'x', 4999);
    word[4999] = '\0';
    assert_int_equal(hg_log_open(path_of("a"), HG_LOG_INFO), 0);
    hg_log_info("word=%s", word);
    hg_log_info("word=short");
    const char *text = text_of("a");
    assert_int_equal(count_of(text, "\n"), 2);
    assert_in_range(strchr(text, '\n') - text, 1000, 2048);
    free(word);
}

static void write_one(int n)
{
    hg_log_info("n=%d", n);
}

static unsigned sum_of_left_out(const char *text)
{
    unsigned sum = 0;
    while ((text = strstr(text, "left_out=")) != NULL) {
        text += strlen("left_out=");
        sum += (unsigned)atoi(text);
    }
    return sum;
}

static void test_limit_of_a_site(void **state)
{
    (void)state;
    assert_int_equal(hg_log_open(path_of("a"), HG_LOG_INFO), 0);
    uint64_t begun_us = hg_now_us();
    unsigned calls = 0;
    for (; calls < 200; calls++)
        write_one((int)calls);
    /* Two seconds of the clock at the most, and those that it took. */
    unsigned seconds = 2 + (unsigned)((hg_now_us() - begun_us) / 1000000);
    const char *text = text_of("a");
    assert_in_range(count_of(text, "\n"), HG_LOG_PER_SECOND, seconds * HG_LOG_PER_SECOND);
    /* What was left out is told with the next line of the site: every call, in the end. */
    PATIENCE_WHILE(count_of(text, "\n") + sum_of_left_out(text) < calls)
    {
        usleep(10000);
        write_one(-1);
        calls++;
        text = text_of("a");
    }
    assert_int_equal(count_of(text, "\n") + sum_of_left_out(text), calls);
    assert_true(sum_of_left_out(text) >= 100);
}

static void test_reopen(void **state)
{
    (void)state;
    assert_int_equal(hg_log_reopen(), 0); /* stderr: nothing to do */
    assert_int_equal(hg_log_open(path_of("a"), HG_LOG_INFO), 0);
    hg_log_info("n=1");
    unsigned descriptors = open_descriptors();
    for (int i = 0; i < 5; i++) {
        assert_int_equal(rename(path_of("a"), path_of("old")), 0);
        assert_int_equal(hg_log_reopen(), 0);
    }
    hg_log_info("n=2");
    assert_int_equal(count_of(text_of("a"), "n=2"), 1);
    assert_int_equal(open_descriptors(), descriptors);
    /* It cannot be: what is open stays open. */
    assert_int_equal(unlink(path_of("a")), 0);
    assert_int_equal(mkdir(path_of("a"), 0700), 0);
    assert_int_equal(hg_log_reopen(), -EISDIR);
    hg_log_info("n=3");
}

static void test_another_file(void **state)
{
    (void)state;
    assert_int_equal(hg_log_open(path_of("a"), HG_LOG_INFO), 0);
    unsigned descriptors = open_descriptors();
    for (int i = 0; i < 10; i++)
        assert_int_equal(hg_log_open(path_of(i % 2 ? "a" : "b"), HG_LOG_INFO), 0);
    assert_int_equal(open_descriptors(), descriptors);
    hg_log_info("where=a");
    assert_int_equal(hg_log_open(path_of("b"), HG_LOG_INFO), 0);
    hg_log_info("where=b");
    assert_int_equal(hg_log_open("/nowhere/at/all", HG_LOG_DEBUG), -ENOENT);
    hg_log_info("still=b");
    hg_log_debug("level=unchanged");
    assert_int_equal(count_of(text_of("a"), "where=a"), 1);
    assert_int_equal(count_of(text_of("b"), "where=b"), 1);
    assert_int_equal(count_of(text_of("b"), "still=b"), 1);
    assert_int_equal(count_of(text_of("b"), "level="), 0);
}

static _Atomic bool stop;

static void *write_on(void *arg)
{
    static struct hg_log_site sites[2][64];
    unsigned me = *(unsigned *)arg, n = 0;
    for (unsigned i = 0; i < 64; i++)
        sites[me][i].per_second = HG_LOG_PER_SECOND;
    while (!stop)
        hg_log_at(&sites[me][n++ % 64], HG_LOG_INFO, "begin writer=%u end", me);
    return NULL;
}

/* Two threads write while the sink is reopened and changed by two others. */
static void *reopen_on(void *arg)
{
    (void)arg;
    while (!stop)
        assert_int_equal(hg_log_reopen(), 0);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[3];
    unsigned ids[2] = {0, 1};
    stop = false;
    assert_int_equal(hg_log_open(path_of("a"), HG_LOG_INFO), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_on, &ids[i]), 0);
    assert_int_equal(pthread_create(&threads[2], NULL, reopen_on, NULL), 0);
    for (int i = 0; i < 200; i++)
        assert_int_equal(hg_log_open(path_of(i % 2 ? "a" : "b"), HG_LOG_INFO), 0);
    stop = true;
    for (unsigned i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    static const char *const names[] = {"a", "b"};
    for (unsigned f = 0; f < 2; f++) {
        const char *text = text_of(names[f]);
        unsigned lines = count_of(text, "\n");
        assert_int_equal(count_of(text, " info begin writer="), lines);
        assert_int_equal(count_of(text, " end"), lines);
    }
}

static void test_escape(void **state)
{
    char out[64], tiny[6] = "xxxxx";
    (void)state;
    assert_string_equal(hg_escape(out, sizeof out, HG_SPAN_LIT("plain")), "plain");
    assert_string_equal(hg_escape(out, sizeof out, HG_SPAN_LIT("a b\n\"\\\x80")),
                        "a\\x20b\\x0a\\x22\\x5c\\x80");
    assert_string_equal(hg_escape(out, sizeof out, HG_SPAN_NONE), "");
    assert_string_equal(hg_escape(tiny, sizeof tiny, HG_SPAN_LIT("\n\n\n")), "\\x0a");
    assert_string_equal(hg_escape(tiny, 1, HG_SPAN_LIT("abc")), "");
    tiny[0] = 'q';
    hg_escape(tiny, 0, HG_SPAN_LIT("abc"));
    assert_int_equal(tiny[0], 'q');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_limit_of_a_site, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reopen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_threads, set_up, tear_down),
        cmocka_unit_test(test_escape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
