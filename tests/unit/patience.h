// patience - how tests wait: with a bound, and without taking the cores from what they wait for
// SPDX-License-Identifier: BSD-3-Clause
//
// Each wait lasts at most 30 s times HG_TEST_SCALE, enough for the slowest machine. Only a test
// that fails waits that long.
#ifndef PATIENCE_H
#define PATIENCE_H

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define PATIENCE_US 30000000u

/* HG_TEST_SCALE, at least 1. */
static inline uint64_t patience_scale(void)
{
    const char *text = getenv("HG_TEST_SCALE");
    long n = text == NULL ? 1 : atol(text);
    return n < 1 ? 1 : (uint64_t)n;
}

/* When to give up what is waited for from now on. */
static inline uint64_t patience_end_us(void)
{
    return hg_now_us() + PATIENCE_US * patience_scale();
}

/* Gives the core to others. A thread that calls sched_yield instead uses up its share of a busy
   machine, and then runs late. */
static inline void patience_nap(void)
{
    nanosleep(&(struct timespec){0, 20000}, NULL);
}

/* Repeats `step` until the condition holds. After 30 s (scaled) it fails the test and prints the
   condition. */
#define PATIENCE_UNTIL(condition, step)                                                            \
    do {                                                                                           \
        PATIENCE_WHILE(!(condition))                                                               \
        {                                                                                          \
            step;                                                                                  \
        }                                                                                          \
    } while (0)

/* A loop that fails the test after 30 s (scaled). */
#define PATIENCE_WHILE(condition)         PATIENCE_WHILE_0(condition, __LINE__)
#define PATIENCE_WHILE_0(condition, line) PATIENCE_WHILE_1(condition, line)
#define PATIENCE_WHILE_1(condition, line) PATIENCE_WHILE_2(condition, patience_end_us_##line)
#define PATIENCE_WHILE_2(condition, end_us)                                                        \
    for (uint64_t end_us = patience_end_us(); (condition); PATIENCE_CHECK(end_us, #condition))

/* Fails the test if the clock is past `end_us`; `what` is the text of the loop's condition. */
#define PATIENCE_CHECK(end_us, what)                                                               \
    ((void)(hg_now_us() > (end_us)                                                                 \
                ? (print_error("waited too long while: %s\n", what), _fail(__FILE__, __LINE__))    \
                : (void)0))

/* For a call that blocks: ends the process with a message after 30 s (scaled), unless
   patience_alarm_off comes before. */
static const char *patience_alarm_text;

static inline void patience_on_alarm(int signal)
{
    static const char before[] = "waited too long for: ";
    (void)signal;
    ssize_t n = write(STDERR_FILENO, before, sizeof before - 1);
    n += write(STDERR_FILENO, patience_alarm_text, strlen(patience_alarm_text));
    n += write(STDERR_FILENO, "\n", 1);
    _exit(n > 0 ? 1 : 2);
}

static inline void patience_alarm(const char *what)
{
    patience_alarm_text = what;
    signal(SIGALRM, patience_on_alarm);
    alarm((unsigned)(PATIENCE_US / 1000000 * patience_scale()));
}

static inline void patience_alarm_off(void)
{
    alarm(0);
}

/* True if the program is to check what it measures in real time: the deep check sets HG_TEST_ALONE
   and runs nothing beside it. */
static inline bool patience_measures(void)
{
    return getenv("HG_TEST_ALONE") != NULL;
}

#endif
