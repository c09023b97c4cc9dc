// t_event - events: their text, and the ring of the last thousand
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "base/event.h"

static void test_text(void **state)
{
    (void)state;
    struct hg_event event;
    hg_event_init(&event, HG_LOG_WARN, "throttle-begin");
    hg_event_word(&event, "what", "tickets");
    hg_event_word(&event, "tenant", ""); // left out
    hg_event_number(&event, "from", 64);
    hg_event_real(&event, "lasted_s", 8.25, 1);
    hg_event_text(&event, "key", hg_span("a \"b\"\n", 6));
    hg_event_text(&event, "reason", HG_SPAN_LIT("store queues 97 ms"));
    assert_string_equal(event.text, "what=tickets from=64 lasted_s=8.2 key=\"a \\x22b\\x22\\x0a\" "
                                    "reason=\"store queues 97 ms\"");
    assert_int_equal(event.count, 5);
    assert_int_equal(event.fields[4].kind, HG_EVENT_TEXT);
    assert_memory_equal(event.text + event.fields[4].at, "store queues 97 ms", event.fields[4].len);
}

/* A field that does not fit is left out as a whole; those that do come all the same. */
static void test_too_much(void **state)
{
    (void)state;
    struct hg_event event;
    char huge[2 * HG_EVENT_TEXT_BYTES];
    memset(huge, 'x', sizeof huge);
    huge[sizeof huge - 1] = '\0';
    hg_event_init(&event, HG_LOG_INFO, "throttle-end");
    hg_event_word(&event, "server", huge);
    hg_event_text(&event, "key", hg_span(huge, sizeof huge));
    for (unsigned i = 0; i < HG_EVENT_FIELDS + 3; i++)
        hg_event_number(&event, "n", 10 + i);
    assert_int_equal(event.count, HG_EVENT_FIELDS);
    assert_true(strlen(event.text) == event.len);
    assert_string_equal(event.text + event.fields[HG_EVENT_FIELDS - 1].at, "23");
}

static void tell(uint64_t n)
{
    struct hg_event event;
    hg_event_init(&event, HG_LOG_DEBUG, "test");
    hg_event_number(&event, "n", n);
    hg_event_tell(&event);
}

static void test_ring(void **state)
{
    (void)state;
    struct hg_event event = {.number = 0};
    assert_false(hg_events_next(0, &event));
    for (uint64_t n = 1; n <= HG_EVENTS_KEPT + 500; n++)
        tell(n);
    uint64_t count = 0, number = 0;
    while (hg_events_next(number, &event)) {
        assert_true(number == 0 || event.number == number + 1);
        number = event.number;
        count++;
    }
    assert_int_equal(count, HG_EVENTS_KEPT);
    assert_int_equal(number, HG_EVENTS_KEPT + 500);
    assert_string_equal(event.text, "n=1500");
    assert_false(hg_events_next(UINT64_MAX, &event));
}

static void *tell_many(void *arg)
{
    for (uint64_t n = 0; n < 2000; n++)
        tell(n);
    return arg;
}

/* What is read while others tell is whole, and in order. */
static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[2];
    struct hg_event event;
    uint64_t number = HG_EVENTS_KEPT + 500, last = number + 4000;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, tell_many, NULL), 0);
    while (number < last) {
        if (!hg_events_next(number, &event))
            continue;
        assert_true(event.number > number);
        assert_int_equal(event.len, strlen(event.text));
        assert_memory_equal(event.text, "n=", 2);
        number = event.number;
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_too_much),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
