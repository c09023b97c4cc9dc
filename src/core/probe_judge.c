// probe_judge - steps of the adaptive control: how large, and whether they were worth it
// SPDX-License-Identifier: BSD-3-Clause
//
// A step is judged by full samples at both sizes. Up is accepted if the gain exceeds two standard
// errors, and a share of what proportion would give; else what was gained is kept, and no more.
// Down is accepted if less was lost than that share. A probe ends as soon as the outcome is two
// standard errors from the bound, and after some samples in any case.
//
// A step down goes at least as far as stands out from the noise, and at once to throughput x base x
// headroom if that is farther. Where it fails, throughput followed the size: the store did not
// queue at the smaller one, so the base is the service time there.
#include "core/probe_in.h"

/* Service time has risen if it is above the base by both, beyond its usual variation. */
#define RISEN_MULTIPLE 1.25
#define RISEN_US       1000.0
/* A step that aims at throughput x base leaves this multiple of it: both are estimates. */
#define HEADROOM 1.1
/* Weight in the base of a shorter service time that a step down has led to. */
#define BASE_WEIGHT 0.5

/* A step matters if throughput follows by this share of it. */
#define FOLLOWS (1.0 / 3)
/* But no step down may cost more than this share of the throughput. */
#define LOSS_MAX 0.1
/* The first step in a direction is at most this multiple, however much noise there is, and a step
   that succeeded is followed by one twice as large, at most one that doubles the size. */
#define FIRST_STEP_MAX 0.4
#define STEP_MAX       1.0
/* A step down to less than this share is large: one that fails ends in between. */
#define LARGE_CUT 0.7
/* A gain below this share is not worth a new size. */
#define GAIN_MIN 0.03
/* Samples that a probe takes at most; twice as many when two standard errors, there and back, are
   more than this share. */
#define MUCH_NOISE    0.3
#define PROBE_SAMPLES 4
/* Samples between steps that fail: from the first to about a second, so that capacity that has come
   back is found; and three times those of the probe, so that it costs a quarter of the time. */
#define BACKOFF_MIN 4
#define BACKOFF_MAX 12
/* Where neither direction is called for, so many steps up are tried for one down: up finds
   throughput, down only shortens a queue that the base says is not there. */
#define UPS_PER_DOWN 4
/* A store that serves within this shows in the same interval what more tickets do. */
#define SETTLED_US 20000.0

/* A new stable size; what was measured at another tells nothing of it. */
void hg_probe_settle(struct hg_probe *probe, double size)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    size = hg_probe_clamp(size, hg_probe_floor(probe), hg_probe_ceiling(probe));
    if (size != probe->stable_size) {
        double change = size - probe->stable_size;
        hg_probe_count(probe, change > 0, (uint32_t)((change > 0 ? change : -change) + 0.5));
        hg_probe_history_clear(&a->stable);
    }
    probe->stable_size = size;
    probe->state = HG_PROBE_STABLE;
    a->roof = 0;
    a->skip = 1;
    hg_probe_sample_clear(&a->sample);
}

/* A size that is not to be judged. */
void hg_probe_settle_at_once(struct hg_probe *probe, double size)
{
    hg_probe_settle(probe, size);
    probe->adaptive.skip = 0;
}

static void try_size(struct hg_probe *probe, double size)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    a->probed_size = hg_probe_clamp(size, hg_probe_floor(probe), hg_probe_ceiling(probe));
    probe->state = a->probed_size > probe->stable_size ? HG_PROBE_UP : HG_PROBE_DOWN;
    hg_probe_history_clear(&a->probed);
    hg_probe_sample_clear(&a->sample);
    a->skip = 1;
}

/* The smallest step whose effect can be told from noise with two samples. */
static double step_of(const struct hg_probe *probe)
{
    const struct hg_probe_adaptive *a = &probe->adaptive;
    uint32_t count = a->stable.count > 0 ? a->stable.count : 1;
    return hg_probe_clamp(3 * hg_probe_error(a, count, 2), probe->conf.step, FIRST_STEP_MAX);
}

void hg_probe_step_up(struct hg_probe *probe)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    double step = step_of(probe);
    if (a->grown > step)
        step = a->grown;
    a->aimed = false;
    try_size(probe, probe->stable_size * (1 + step));
    if (a->base_us < SETTLED_US)
        a->skip = 0;
}

void hg_probe_step_down(struct hg_probe *probe, double rate)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    double aim = rate * a->base_us / 1e6 * HEADROOM;
    double step = step_of(probe);
    if (-a->grown > step)
        step = -a->grown;
    if (a->base_us == 0) // halves until that costs throughput: then the base is known
        step = STEP_MAX;
    double most = probe->stable_size / (1 + step);
    a->aimed = aim < most && aim > 0;
    try_size(probe, a->aimed ? aim : most);
}

void hg_probe_step_to(struct hg_probe *probe, double size)
{
    probe->adaptive.aimed = true;
    try_size(probe, size);
}

/* Judging a step */

void hg_probe_forgive(struct hg_probe_adaptive *a)
{
    a->wait = 0;
    a->backoff = BACKOFF_MIN;
    a->grown = 0;
}

bool hg_probe_has_risen(const struct hg_probe_adaptive *a, double service_us)
{
    return service_us > a->base_us * RISEN_MULTIPLE && service_us > a->base_us + RISEN_US;
}

/* A small step that failed is not tried again for a while. */
static void fail(struct hg_probe *probe, bool down)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    bool small = a->grown == 0 && !a->aimed;
    a->grown = 0;
    a->down_next = false;
    if (small) {
        a->failures = down ? 0 : a->failures + 1;
        a->down_next = a->failures >= UPS_PER_DOWN;
        a->wait = a->backoff;
        if (a->wait > BACKOFF_MIN && a->wait < 3 * a->probed.count) // the first is soon repeated
            a->wait = 3 * a->probed.count;
        a->backoff = a->backoff * 2 > BACKOFF_MAX ? BACKOFF_MAX : a->backoff * 2;
    }
}

static void succeed(struct hg_probe *probe, double service_us)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    struct hg_probe_history probed = a->probed;
    bool down = probe->state == HG_PROBE_DOWN;
    double multiple = a->probed_size / probe->stable_size;
    if (down)
        a->grown = -hg_probe_clamp(2 * (1 / multiple - 1), 0, STEP_MAX);
    else
        a->grown = hg_probe_clamp(2 * (multiple - 1), 0, STEP_MAX);
    if (a->aimed) // perhaps too far
        a->grown = multiple < 0.5 ? STEP_MAX : 0;
    hg_probe_settle(probe, a->probed_size);
    a->stable = probed;
    a->skip = 0;
    a->wait = 0;
    a->backoff = BACKOFF_MIN;
    a->down_next = a->grown < 0;
    if (a->grown > 0 && !hg_probe_has_risen(a, service_us))
        hg_probe_step_up(probe);
}

void hg_probe_judge(struct hg_probe *probe, double rate, double out)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    bool down = probe->state == HG_PROBE_DOWN;
    hg_probe_history_add(&a->probed, rate, out);
    double stable = hg_probe_history_rate(&a->stable), probed = hg_probe_history_rate(&a->probed);
    double error = hg_probe_error(a, a->stable.count, a->probed.count);
    double size = probe->stable_size, ratio = stable > 0 ? probed / stable : 1;
    double tried = hg_probe_history_out(&a->probed) / hg_probe_history_out(&a->stable);
    double bound = 1 + FOLLOWS * (tried - 1);
    if (bound < 1 - LOSS_MAX)
        bound = 1 - LOSS_MAX;
    double apart = ratio > bound ? ratio - bound : bound - ratio;
    uint32_t samples = 4 * error > MUCH_NOISE ? 2 * PROBE_SAMPLES : PROBE_SAMPLES;
    if (apart < 2 * error && a->probed.count < samples && !(a->aimed && ratio >= bound))
        return;
    double service_us = hg_probe_history_out(&a->probed) / probed * 1e6;
    if (ratio >= bound && (down || ratio > 1 + 2 * error)) {
        if (service_us < a->base_us)
            a->base_us += BASE_WEIGHT * (service_us - a->base_us);
        succeed(probe, service_us);
        return;
    }
    /* Where throughput followed size, the store did not queue. */
    double landing = a->probed_size * (down ? stable / probed : 1);
    fail(probe, down);
    if (down) {
        a->base_us = service_us;
        hg_probe_settle(probe, tried < LARGE_CUT && landing < size ? landing : size);
    } else {
        hg_probe_settle(probe, ratio > 1 + GAIN_MIN ? size * ratio : size);
    }
}
