// breaker - whether a server is worth sending to, and when to connect to it again
// SPDX-License-Identifier: BSD-3-Clause
//
// See breaker.h for the rules. One place changes `state` (set_state), one opens (open_it), one says
// when a connect may be made (hg_breaker_next_us).
#include "core/breaker.h"

#define SECOND_US 1000000

static void set_state(struct hg_breaker *breaker, enum hg_breaker_state state)
{
    atomic_store_explicit(&breaker->state, state, memory_order_relaxed);
}

static void set_target(struct hg_breaker *breaker, uint32_t target)
{
    atomic_store_explicit(&breaker->target, target, memory_order_relaxed);
}

/* Whatever has changed, is there something that an answer would change? */
static void look_at_answers(struct hg_breaker *breaker)
{
    bool is_out = !hg_breaker_may_send(breaker);
    bool heeds = is_out ? !breaker->unready
                        : breaker->timeouts > 0 || breaker->failures > 0 || breaker->failing ||
                              breaker->backoff.k > 0;
    atomic_store_explicit(&breaker->heeds, heeds, memory_order_relaxed);
}

void hg_breaker_init(struct hg_breaker *breaker, uint64_t reconnect_max_us, uint32_t wanted,
                     uint64_t seed)
{
    *breaker = (struct hg_breaker){.wanted = wanted, .target = HG_BREAKER_NO_TARGET};
    hg_backoff_init(&breaker->backoff, HG_BREAKER_WAIT_US, reconnect_max_us, seed);
    hg_backoff_init(&breaker->trials, HG_BREAKER_TRIAL_US, HG_BREAKER_TRIAL_MAX_US, seed + 1);
    hg_backoff_init(&breaker->locals, HG_BREAKER_LOCAL_US, HG_BREAKER_LOCAL_MAX_US, seed + 2);
}

static void lift_target(struct hg_breaker *breaker)
{
    set_target(breaker, HG_BREAKER_NO_TARGET);
    hg_backoff_reset(&breaker->trials);
}

static void open_it(struct hg_breaker *breaker, enum hg_breaker_reason reason, uint64_t now_us)
{
    if (breaker->retry_at_us <= now_us)
        breaker->retry_at_us = now_us + hg_backoff_next_us(&breaker->backoff);
    breaker->failures = 0;
    breaker->failing = false;
    breaker->reason = reason;
    breaker->unready = reason == HG_BREAKER_UNREADY;
    lift_target(breaker);
    set_state(breaker, HG_BREAKER_OPEN);
}

/* The server has answered something. */
static void heed_answer(struct hg_breaker *breaker)
{
    breaker->failures = breaker->timeouts = 0;
    breaker->failing = false;
    breaker->retry_at_us = 0;
    hg_backoff_reset(&breaker->backoff);
    if (!hg_breaker_may_send(breaker) && !breaker->unready)
        set_state(breaker, HG_BREAKER_CLOSED);
}

/* A connect failed, others are live: there can be no more. */
static void limit(struct hg_breaker *breaker, bool is_trial, uint64_t now_us)
{
    bool is_new = hg_breaker_target(breaker) == HG_BREAKER_NO_TARGET;
    set_target(breaker, breaker->live);
    if (is_new || is_trial)
        breaker->trial_at_us = now_us + hg_backoff_next_half_us(&breaker->trials);
    if (hg_breaker_state(breaker) == HG_BREAKER_RAMP)
        set_state(breaker, HG_BREAKER_CLOSED);
}

/* Of the connects that were under way together with none live, one has failed and none has come up:
   when the last of them is over, they are one failure. */
static void settle_failing(struct hg_breaker *breaker, uint64_t now_us)
{
    if (!breaker->failing || breaker->connecting > 0)
        return;
    breaker->failing = false;
    breaker->failures++;
    breaker->retry_at_us = now_us + hg_backoff_next_us(&breaker->backoff);
    if (breaker->failures >= HG_BREAKER_FAILURES)
        open_it(breaker, HG_BREAKER_CONNECTS, now_us);
}

/* The server did not let one connect; false: others are live. */
static bool fail(struct hg_breaker *breaker, bool refused, bool is_trial, uint64_t now_us)
{
    if (breaker->live > 0) {
        limit(breaker, is_trial, now_us);
        return false;
    }
    breaker->failing = true;
    if (refused)
        open_it(breaker, HG_BREAKER_REFUSED, now_us);
    else
        settle_failing(breaker, now_us);
    return true;
}

/* ---- when ---- */

static uint64_t later(uint64_t a_us, uint64_t b_us)
{
    return a_us > b_us ? a_us : b_us;
}

/* With nobody to say more of the server, one asks at a time. */
static uint64_t next_of_none_us(const struct hg_breaker *breaker)
{
    bool in_doubt = breaker->failures > 0 || breaker->failing || breaker->lost_all;
    return in_doubt && breaker->connecting > 0 ? UINT64_MAX : breaker->retry_at_us;
}

static uint64_t next_beyond_us(const struct hg_breaker *breaker)
{
    uint32_t used = breaker->live + breaker->connecting;
    if (used < hg_breaker_target(breaker))
        return 0;
    return breaker->trying ? UINT64_MAX : breaker->trial_at_us;
}

static uint64_t next_in_pace_us(const struct hg_breaker *breaker)
{
    uint32_t oldest = breaker->reconnects % HG_BREAKER_RECONNECTS;
    if (breaker->owed == 0 || breaker->reconnects < HG_BREAKER_RECONNECTS)
        return 0;
    return breaker->reconnects_us[oldest] + SECOND_US;
}

uint64_t hg_breaker_next_us(const struct hg_breaker *breaker)
{
    uint64_t at_us = breaker->local_until_us;
    enum hg_breaker_state state = hg_breaker_state(breaker);
    if (state == HG_BREAKER_HALF_OPEN)
        return UINT64_MAX;
    if (state == HG_BREAKER_OPEN)
        return later(at_us, breaker->retry_at_us);
    if (state == HG_BREAKER_RAMP && breaker->live + breaker->connecting >= breaker->allowed)
        return UINT64_MAX;
    at_us = later(at_us, next_in_pace_us(breaker));
    return later(at_us, breaker->live == 0 ? next_of_none_us(breaker) : next_beyond_us(breaker));
}

uint32_t hg_breaker_room(const struct hg_breaker *breaker, uint64_t now_us)
{
    uint32_t target = hg_breaker_target(breaker), used = breaker->live + breaker->connecting;
    if (target == HG_BREAKER_NO_TARGET || breaker->live == 0)
        return UINT32_MAX;
    if (used < target)
        return target - used;
    return !breaker->trying && now_us >= breaker->trial_at_us;
}

/* ---- events ---- */

static enum hg_breaker_connect take(struct hg_breaker *breaker, uint64_t now_us)
{
    breaker->connecting++;
    if (hg_breaker_state(breaker) == HG_BREAKER_OPEN) {
        set_state(breaker, HG_BREAKER_HALF_OPEN);
        return HG_BREAKER_PROBE;
    }
    if (breaker->owed > 0) {
        breaker->reconnects_us[breaker->reconnects % HG_BREAKER_RECONNECTS] = now_us;
        breaker->reconnects++;
        breaker->owed--;
    }
    /* Its own place is counted already. */
    if (breaker->live == 0 || breaker->live + breaker->connecting <= hg_breaker_target(breaker))
        return HG_BREAKER_CONNECT;
    breaker->trying = true;
    return HG_BREAKER_TRIAL;
}

enum hg_breaker_connect hg_breaker_take_connect(struct hg_breaker *breaker, uint64_t now_us)
{
    if (now_us - breaker->lost_at_us > SECOND_US)
        breaker->owed = 0;
    return now_us < hg_breaker_next_us(breaker) ? HG_BREAKER_WAIT : take(breaker, now_us);
}

/* A connect is over, whatever came of it; true if it was the probe that is waited for. */
static bool end_connect(struct hg_breaker *breaker, enum hg_breaker_connect kind)
{
    breaker->connecting--;
    if (kind == HG_BREAKER_TRIAL)
        breaker->trying = false;
    return kind == HG_BREAKER_PROBE && hg_breaker_state(breaker) == HG_BREAKER_HALF_OPEN;
}

static void begin_ramp(struct hg_breaker *breaker, uint64_t now_us)
{
    breaker->unready = false;
    breaker->ramp_at_us = now_us;
    breaker->allowed = breaker->live;
    set_state(breaker, HG_BREAKER_RAMP);
}

void hg_breaker_tell_connected(struct hg_breaker *breaker, enum hg_breaker_connect kind,
                               bool proven, uint64_t now_us)
{
    bool is_probe = end_connect(breaker, kind);
    breaker->live++;
    breaker->lost_all = breaker->failing = false;
    hg_backoff_reset(&breaker->locals);
    if (breaker->live > hg_breaker_target(breaker)) {
        if (kind == HG_BREAKER_CONNECT) /* under way when the one failed that set the target */
            set_target(breaker, breaker->live);
        else
            lift_target(breaker);
    }
    if (is_probe)
        begin_ramp(breaker, now_us);
    if (proven || is_probe)
        heed_answer(breaker);
    if (hg_breaker_state(breaker) == HG_BREAKER_RAMP) {
        if (breaker->live >= breaker->allowed)
            breaker->allowed = 2 * breaker->live;
        if (breaker->live >= breaker->wanted)
            set_state(breaker, HG_BREAKER_CLOSED);
    }
    look_at_answers(breaker);
}

bool hg_breaker_tell_failed(struct hg_breaker *breaker, enum hg_breaker_connect kind, bool refused,
                            uint64_t now_us)
{
    bool counts = true;
    if (end_connect(breaker, kind)) {
        breaker->retry_at_us = now_us + hg_backoff_next_us(&breaker->backoff);
        set_state(breaker, HG_BREAKER_OPEN);
    } else if (hg_breaker_may_send(breaker)) {
        counts = fail(breaker, refused, kind == HG_BREAKER_TRIAL, now_us);
    }
    look_at_answers(breaker);
    return counts;
}

/* One that says nothing of the server. */
static void end_in_silence(struct hg_breaker *breaker, enum hg_breaker_connect kind,
                           uint64_t now_us)
{
    if (end_connect(breaker, kind))
        set_state(breaker, HG_BREAKER_OPEN);
    else if (hg_breaker_may_send(breaker))
        settle_failing(breaker, now_us);
    look_at_answers(breaker);
}

void hg_breaker_tell_local(struct hg_breaker *breaker, enum hg_breaker_connect kind,
                           uint64_t now_us)
{
    if (now_us >= breaker->local_until_us)
        breaker->local_until_us = now_us + hg_backoff_next_half_us(&breaker->locals);
    end_in_silence(breaker, kind, now_us);
}

void hg_breaker_tell_abandoned(struct hg_breaker *breaker, enum hg_breaker_connect kind,
                               uint64_t now_us)
{
    end_in_silence(breaker, kind, now_us);
}

void hg_breaker_tell_lost(struct hg_breaker *breaker, enum hg_breaker_loss loss, uint64_t now_us)
{
    breaker->live--;
    breaker->lost_all = breaker->live == 0;
    if (!hg_breaker_may_send(breaker))
        return;
    if (loss == HG_BREAKER_UNPROVEN) {
        fail(breaker, false, false, now_us);
    } else if (loss == HG_BREAKER_BROKEN &&
               (breaker->lost_at_us == 0 ||
                now_us - breaker->lost_at_us > HG_BREAKER_TOGETHER_US)) {
        breaker->lost_at_us = now_us;
        breaker->owed++;
    }
    look_at_answers(breaker);
}

void hg_breaker_tell_unready(struct hg_breaker *breaker, uint64_t now_us)
{
    if (hg_breaker_may_send(breaker))
        open_it(breaker, HG_BREAKER_UNREADY, now_us);
    look_at_answers(breaker);
}

void hg_breaker_tell_answered(struct hg_breaker *breaker)
{
    heed_answer(breaker);
    look_at_answers(breaker);
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

void hg_breaker_tell_timeout(struct hg_breaker *breaker, uint64_t key_hash, bool silent,
                             uint64_t now_us)
{
    breaker->keys[breaker->timeouts++ % HG_BREAKER_TIMEOUTS] = key_hash;
    if (silent && hg_breaker_may_send(breaker) && breaker->timeouts >= HG_BREAKER_TIMEOUTS &&
        distinct_keys(breaker) >= HG_BREAKER_KEYS)
        open_it(breaker, HG_BREAKER_SILENT, now_us);
    look_at_answers(breaker);
}

void hg_breaker_tell_time(struct hg_breaker *breaker, uint64_t now_us)
{
    if (hg_breaker_state(breaker) == HG_BREAKER_RAMP &&
        now_us - breaker->ramp_at_us >= HG_BREAKER_RAMP_US)
        set_state(breaker, HG_BREAKER_CLOSED);
}
