// breaker - whether a server is worth sending to, and when to connect to it again
// SPDX-License-Identifier: BSD-3-Clause
//
// See breaker.h for the states. One place changes `state` (set_state), one opens (fail).
#include "core/breaker.h"

static void set_state(struct hg_breaker *breaker, enum hg_breaker_state state)
{
    atomic_store_explicit(&breaker->state, state, memory_order_relaxed);
}

static void forget_timeouts(struct hg_breaker *breaker)
{
    for (int i = 0; i < HG_BREAKER_WINDOW_S; i++)
        breaker->sent[i] = breaker->timeouts[i] = 0;
    atomic_store_explicit(&breaker->suspect, 0, memory_order_relaxed);
}

void hg_breaker_init(struct hg_breaker *breaker, uint64_t reconnect_max_us, uint32_t wanted,
                     uint64_t seed)
{
    *breaker = (struct hg_breaker){.wanted = wanted};
    hg_backoff_init(&breaker->backoff, reconnect_max_us, seed);
}

/* Long enough without a failure: the waits begin small again, and the ramp is over. */
static void calm_down(struct hg_breaker *breaker, uint64_t now_us)
{
    if (now_us - breaker->failed_at_us < HG_BREAKER_CALM_US)
        return;
    breaker->failures = 0;
    hg_backoff_reset(&breaker->backoff);
    if (hg_breaker_state(breaker) == HG_BREAKER_RAMP)
        set_state(breaker, HG_BREAKER_CLOSED);
}

static void fail(struct hg_breaker *breaker, bool opens, uint64_t now_us)
{
    calm_down(breaker, now_us);
    breaker->failures++;
    breaker->failed_at_us = now_us;
    breaker->retry_at_us = now_us + hg_backoff_next_us(&breaker->backoff);
    if (opens || breaker->failures >= HG_BREAKER_FAILURES)
        set_state(breaker, HG_BREAKER_OPEN);
}

/* Must the next connect wait for the outcome of another? */
static bool waits_for_outcome(const struct hg_breaker *breaker)
{
    switch (hg_breaker_state(breaker)) {
    case HG_BREAKER_HALF_OPEN:
        return true;
    case HG_BREAKER_RAMP:
        if (breaker->live + breaker->connecting >= breaker->allowed)
            return true;
        return breaker->failures > 0 && breaker->connecting > 0;
    case HG_BREAKER_CLOSED:
        return (breaker->failures > 0 || breaker->lost_all) && breaker->connecting > 0;
    case HG_BREAKER_OPEN:
        break;
    }
    return false;
}

enum hg_breaker_connect hg_breaker_take_connect(struct hg_breaker *breaker, uint64_t now_us)
{
    calm_down(breaker, now_us);
    if (now_us < breaker->retry_at_us || waits_for_outcome(breaker))
        return HG_BREAKER_WAIT;
    breaker->connecting++;
    if (hg_breaker_state(breaker) != HG_BREAKER_OPEN)
        return HG_BREAKER_CONNECT;
    set_state(breaker, HG_BREAKER_HALF_OPEN);
    return HG_BREAKER_PROBE;
}

uint64_t hg_breaker_next_us(const struct hg_breaker *breaker)
{
    return waits_for_outcome(breaker) ? UINT64_MAX : breaker->retry_at_us;
}

void hg_breaker_tell_connected(struct hg_breaker *breaker, enum hg_breaker_connect kind,
                               uint64_t now_us)
{
    breaker->connecting--;
    breaker->live++;
    breaker->lost_all = false;
    if (kind == HG_BREAKER_PROBE) {
        forget_timeouts(breaker);
        set_state(breaker, HG_BREAKER_RAMP);
        breaker->allowed = breaker->live;
    }
    if (!hg_breaker_may_send(breaker))
        return; // was under way when it opened: proves nothing, the probe will
    calm_down(breaker, now_us);
    breaker->failures = 0;
    if (hg_breaker_state(breaker) != HG_BREAKER_RAMP)
        return;
    if (breaker->live >= breaker->allowed)
        breaker->allowed = 2 * breaker->live;
    if (breaker->live >= breaker->wanted)
        set_state(breaker, HG_BREAKER_CLOSED);
}

void hg_breaker_tell_failed(struct hg_breaker *breaker, enum hg_breaker_connect kind, bool refused,
                            uint64_t now_us)
{
    bool ramp = hg_breaker_state(breaker) == HG_BREAKER_RAMP;
    breaker->connecting--;
    if (kind == HG_BREAKER_PROBE)
        fail(breaker, true, now_us);
    else if (hg_breaker_may_send(breaker)) // else: those that failed with it count once
        fail(breaker, (refused || ramp) && breaker->live == 0, now_us);
}

void hg_breaker_tell_abandoned(struct hg_breaker *breaker, enum hg_breaker_connect kind)
{
    breaker->connecting--;
    if (kind == HG_BREAKER_PROBE)
        set_state(breaker, HG_BREAKER_OPEN);
}

void hg_breaker_tell_lost(struct hg_breaker *breaker, bool failed, uint64_t now_us)
{
    bool ramp = hg_breaker_state(breaker) == HG_BREAKER_RAMP;
    breaker->live--;
    breaker->lost_all = breaker->live == 0;
    if (!failed || !hg_breaker_may_send(breaker))
        return;
    if (now_us - breaker->lost_at_us <= HG_BREAKER_TOGETHER_US && breaker->failures > 0)
        return;
    breaker->lost_at_us = now_us;
    fail(breaker, ramp && breaker->live == 0, now_us);
}

void hg_breaker_tell_unready(struct hg_breaker *breaker, uint64_t now_us)
{
    if (hg_breaker_may_send(breaker))
        fail(breaker, true, now_us);
}

/* Moves the window on to the second of now_us. */
static uint32_t window_at(struct hg_breaker *breaker, uint64_t now_us)
{
    uint64_t second = now_us / 1000000;
    for (int i = 0; i < HG_BREAKER_WINDOW_S && breaker->second < second; i++) {
        breaker->second++;
        breaker->sent[breaker->second % HG_BREAKER_WINDOW_S] = 0;
        breaker->timeouts[breaker->second % HG_BREAKER_WINDOW_S] = 0;
    }
    if (breaker->second < second)
        breaker->second = second; // all were cleared
    return (uint32_t)(breaker->second % HG_BREAKER_WINDOW_S);
}

void hg_breaker_tell_sent(struct hg_breaker *breaker, uint32_t n, uint64_t now_us)
{
    calm_down(breaker, now_us);
    breaker->sent[window_at(breaker, now_us)] += n;
}

void hg_breaker_tell_answered(struct hg_breaker *breaker)
{
    atomic_store_explicit(&breaker->suspect, 0, memory_order_relaxed);
}

static uint32_t distinct_keys(const struct hg_breaker *breaker)
{
    uint32_t distinct = 0;
    for (int i = 0; i < HG_BREAKER_TIMEOUTS; i++) {
        int j = 0;
        while (breaker->keys[j] != breaker->keys[i])
            j++;
        distinct += j == i;
    }
    return distinct;
}

bool hg_breaker_tell_timeout(struct hg_breaker *breaker, uint64_t key_hash, bool silent,
                             uint64_t now_us)
{
    uint32_t at = window_at(breaker, now_us);
    uint32_t streak = atomic_load_explicit(&breaker->suspect, memory_order_relaxed);
    uint64_t sent = 0, timeouts = 0;

    breaker->timeouts[at]++;
    breaker->keys[streak % HG_BREAKER_TIMEOUTS] = key_hash;
    atomic_store_explicit(&breaker->suspect, ++streak, memory_order_relaxed);
    if (!hg_breaker_may_send(breaker) || streak < HG_BREAKER_TIMEOUTS)
        return false;
    for (int i = 0; i < HG_BREAKER_WINDOW_S; i++) {
        sent += breaker->sent[i];
        timeouts += breaker->timeouts[i];
    }
    if (timeouts < HG_BREAKER_TIMEOUTS || (!silent && 2 * timeouts < sent) ||
        distinct_keys(breaker) < HG_BREAKER_KEYS)
        return false;
    fail(breaker, true, now_us);
    return true;
}
