// probe_adaptive - as many tickets as the store can make use of, and not more
// SPDX-License-Identifier: BSD-3-Clause
//
//   stable ──► up    more is tried, kept if more is finished
//     ▲    └─► down  less is tried, kept if no less is finished
//     └────────┘
//
// A step is judged by the throughput of *full* samples, those in which requests waited for tickets
// all the time. By Little's law their service time is what was out / throughput, whatever the mix
// of cheap and dear requests is. The *base* is that time when nothing queues in the store; so
// throughput x base is the number of tickets that the store can make use of. A step down aims
// there, however far it is, and is judged when what was out before has gone. If it cost throughput
// after all, the store had not queued: the size goes back, and the base is learned anew. A step is
// so large that its effect stands out from the noise; it doubles when it succeeds.
//
// Samples that are not full judge nothing. Unused tickets of a fast store cost nothing: it has them
// all, after a start at few that doubles each interval, and keeps them until it queues in earnest.
// (Starting with all would flood a store that meets its load at once: one whose throughput falls
// beyond its knee does not recover from that for long.) A slow store keeps a multiple of what it
// used of late, so that a burst does not fill it with seconds of work before the next step.
#include "core/probe_in.h"

/* At the beginning, of the smallest size: 64 with the default options. */
#define START_MULTIPLE 8
/* A store that serves within this, when nothing queues in it, is fast: batches matter more than
   what a burst may do to it. */
#define FAST_US 2000.0
/* Queueing in a fast store below this is not worth acting on: it may be a hiccup of a scheduler,
   and batches thrive on it. */
#define SUSPECT_US 20000.0
/* Samples in a row that must show it while requests do not wait for tickets. */
#define SUSPECT_SAMPLES 2
/* Samples without waiting requests until a store is taken for unloaded: a second. */
#define FREE_SAMPLES 10
/* An unloaded slow store keeps this multiple of the most that was out, which fades by a hundredth
   an interval. */
#define SLACK 2.0
#define FADE  0.99

/* Service time has risen if it is above the base by both, beyond its usual variation... */
#define RISEN_MULTIPLE 1.25
#define RISEN_US       1000.0
/* ... and calls for a step at once above this multiple. */
#define URGENT_MULTIPLE 2.0
/* A step that aims at throughput x base leaves this multiple of it: both are estimates. */
#define HEADROOM 1.1
/* Weights of a sample in the base. It follows what is faster within a second, and what is slower
   within ten, as that may be the queue. */
#define BASE_FALL 0.1
#define BASE_RISE 0.01

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
/* A change of throughput by this share, without a step, is news: what was learned is void. */
#define CHANGE 0.3

/* Samples that a probe takes at most; twice as many when there is much noise. */
#define PROBE_SAMPLES 4
/* Samples that the first step in a direction is compared with at least. */
#define STABLE_SAMPLES 3
/* Samples between steps that fail: from the first to a second, so that capacity that has come back
   is found. */
#define BACKOFF_MIN 4
#define BACKOFF_MAX 12
/* Where neither direction is called for, so many steps up are tried for one down: up finds
   throughput, down only shortens a queue that the base says is not there. */
#define UPS_PER_DOWN 4
/* A store that serves within this shows in the same interval what more tickets do. */
#define SETTLED_US 20000.0

/* Nothing finished for so many usual service times, and so long, is a stall. */
#define STALL_SERVICES 4
#define STALL_US       300000

static double floor_of(const struct hg_probe *probe)
{
    return 2.0 * probe->conf.min;
}

static double ceiling_of(const struct hg_probe *probe)
{
    return 2.0 * probe->conf.max;
}

static double out_of(const struct hg_probe_seen *seen)
{
    return (double)(seen->holder[HG_TICKET_READ].out + seen->holder[HG_TICKET_WRITE].out);
}

static uint64_t finished_of(const struct hg_probe_seen *seen)
{
    return seen->holder[HG_TICKET_READ].finished + seen->holder[HG_TICKET_WRITE].finished;
}

/* Sizes */

/* The total goes by demand. A kind that is hardly used keeps half of what the ratio gives it: that
   is not taken from the other, as nobody uses it. */
static void split(struct hg_probe *probe, double total)
{
    const struct hg_probe_conf *conf = &probe->conf;
    double ratio[HG_TICKET_KINDS] = {conf->read_write_ratio, 1 - conf->read_write_ratio};
    for (int kind = 0; kind < HG_TICKET_KINDS; kind++) {
        double size = total * probe->adaptive.share[kind];
        if (size < total * ratio[kind] / 2)
            size = total * ratio[kind] / 2;
        if (total >= ceiling_of(probe))
            size = conf->max;
        probe->size[kind] = (uint32_t)(hg_probe_clamp(size, conf->min, conf->max) + 0.5);
    }
}

static void learn_shares(struct hg_probe *probe, const struct hg_probe_seen *seen)
{
    double demand[HG_TICKET_KINDS], sum = 0;
    for (int kind = 0; kind < HG_TICKET_KINDS; kind++) {
        demand[kind] = (double)seen->holder[kind].out + (double)seen->holder[kind].waiting;
        sum += demand[kind];
    }
    if (sum < 1)
        return;
    for (int kind = 0; kind < HG_TICKET_KINDS; kind++)
        probe->adaptive.share[kind] += 0.3 * (demand[kind] / sum - probe->adaptive.share[kind]);
}

/* A new stable size; what was measured at another tells nothing of it. */
static void settle(struct hg_probe *probe, double size)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    size = hg_probe_clamp(size, floor_of(probe), ceiling_of(probe));
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
static void settle_at_once(struct hg_probe *probe, double size)
{
    settle(probe, size);
    probe->adaptive.skip = 0;
}

static void try_size(struct hg_probe *probe, double size)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    a->probed_size = hg_probe_clamp(size, floor_of(probe), ceiling_of(probe));
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

static void step_up(struct hg_probe *probe)
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

static void step_down(struct hg_probe *probe, double rate)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    double aim = rate * a->base_us / 1e6 * HEADROOM;
    double step = step_of(probe);
    if (-a->grown > step)
        step = -a->grown;
    double most = probe->stable_size / (1 + step);
    a->aimed = aim < most && aim > 0;
    try_size(probe, a->aimed ? aim : most);
}

/* Judging a step */

static bool has_risen(const struct hg_probe_adaptive *a, double service_us)
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
    settle(probe, a->probed_size);
    a->stable = probed;
    a->skip = 0;
    a->wait = 0;
    a->backoff = BACKOFF_MIN;
    a->down_next = a->grown < 0;
    if (a->grown > 0 && !has_risen(a, service_us))
        step_up(probe);
}

static void judge(struct hg_probe *probe, double rate, double out)
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
    uint32_t samples = 4 * error > 0.3 ? 2 * PROBE_SAMPLES : PROBE_SAMPLES;
    if (apart < 2 * error && a->probed.count < samples && !a->aimed)
        return;
    double service_us = hg_probe_history_out(&a->probed) / probed * 1e6;
    if (ratio >= bound && (down || ratio > 1 + 2 * error)) {
        if (service_us < a->base_us)
            a->base_us += 0.5 * (service_us - a->base_us);
        succeed(probe, service_us);
        return;
    }
    /* Where throughput followed size, the store did not queue. */
    double landing = a->probed_size * (down ? stable / probed : 1);
    fail(probe, down);
    if (down) {
        a->base_us = service_us;
        settle(probe, tried < LARGE_CUT && landing < size ? landing : size);
    } else {
        settle(probe, ratio > 1 + GAIN_MIN ? size * ratio : size);
    }
}

/* In `stable` */

/* A change of the store or of the load: what was learned at this size is void. */
static void notice_change(struct hg_probe *probe, double rate)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    double mean = hg_probe_history_rate(&a->stable);
    double change = rate > mean ? rate - mean : mean - rate;
    if (a->stable.count == 0 || change < CHANGE * mean ||
        change * change < 16 * a->variance * mean * mean)
        return;
    hg_probe_history_clear(&a->stable);
    a->wait = 0;
    a->backoff = BACKOFF_MIN;
    a->grown = 0;
}

/* Requests wait, and nothing says yet that the store is what they wait for: true, and it is given
   more if there is more. */
static bool leave_alone(struct hg_probe *probe, double service_us)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    double excess_us = service_us - a->base_us;
    bool all = probe->stable_size >= ceiling_of(probe) || a->roof > 0;
    bool fast = a->base_us > 0 ? a->base_us < FAST_US : service_us < FAST_US;
    if (a->engaged)
        return false;
    if ((all || fast) && (excess_us <= SUSPECT_US || excess_us <= a->base_us)) {
        if (a->base_us == 0)
            a->base_us = service_us;
        if (!all)
            settle_at_once(probe, probe->stable_size * 2);
        return true;
    }
    a->engaged = true;
    return false;
}

static void decide_full(struct hg_probe *probe, double out, double rate)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    notice_change(probe, rate);
    hg_probe_learn_noise(a, rate);
    hg_probe_history_add(&a->stable, rate, out);
    double mean = hg_probe_history_rate(&a->stable);
    probe->stable_throughput = mean;
    a->free = 0;
    if (mean <= 0)
        return;
    double service_us = hg_probe_history_out(&a->stable) / mean * 1e6;
    if (leave_alone(probe, service_us))
        return;
    if (a->base_us == 0) {
        a->grown = -STEP_MAX;
        step_down(probe, mean);
        return;
    }
    if (service_us < a->base_us)
        a->base_us += BASE_FALL * (service_us - a->base_us);
    bool risen = has_risen(a, service_us);
    if (risen && service_us > URGENT_MULTIPLE * a->base_us && 64 * a->variance < a->stable.count) {
        step_down(probe, mean);
        return;
    }
    if (a->wait > 0) {
        a->wait--;
        return;
    }
    if (a->stable.count < STABLE_SAMPLES && a->grown == 0)
        return;
    if ((risen || a->down_next) && probe->stable_size > floor_of(probe))
        step_down(probe, mean);
    else if (probe->stable_size < ceiling_of(probe))
        step_up(probe);
}

/* A fast store that serves slower is busy, as far as one can tell from here: only a step down that
   fails proves that it is slow. */
static void learn_base(struct hg_probe_adaptive *a, double service_us)
{
    double rise = hg_probe_clamp(service_us - a->base_us, -a->base_us, a->base_us);
    if (a->base_us == 0)
        a->base_us = service_us;
    else if (rise < 0)
        a->base_us += BASE_FALL * rise;
    else if (a->base_us >= FAST_US)
        a->base_us += BASE_RISE * rise;
}

/* More is out than the throughput explains, though there are tickets left: it is capped where it
   is. The next samples are full then, and tell why, or the cap is lifted. True: it is suspect. */
static bool suspect(struct hg_probe *probe, double out, double rate)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    double excess_us = rate > 0 ? out / rate * 1e6 - a->base_us : 0;
    if (out <= floor_of(probe) || excess_us <= SUSPECT_US || excess_us <= a->base_us) {
        a->suspicions = 0;
        return false;
    }
    if (++a->suspicions >= SUSPECT_SAMPLES && a->roof == 0 && out < probe->stable_size) {
        double roof = probe->stable_size;
        settle_at_once(probe, out);
        a->roof = roof;
    }
    return true;
}

/* Of an unloaded store. One that is slow and used up its tickets now and then gets what a line of
   random arrivals needs not to wait: what is used, and its square root. */
static double free_size(const struct hg_probe *probe, double rate, double service_us, bool reached)
{
    const struct hg_probe_adaptive *a = &probe->adaptive;
    double use = rate * service_us / 1e6, staffed = use + hg_probe_root(use);
    double most = START_MULTIPLE * floor_of(probe);
    if (a->base_us < FAST_US)
        return a->engaged ? probe->stable_size : probe->stable_size * 2;
    if (SLACK * a->recent_peak > most)
        most = SLACK * a->recent_peak;
    if (probe->stable_size > most)
        return most;
    if (reached && staffed > probe->stable_size && !has_risen(a, service_us))
        return staffed;
    return probe->stable_size;
}

static void decide_free(struct hg_probe *probe, double out, double rate, double service_us,
                        bool reached)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    hg_probe_history_clear(&a->stable);
    if (service_us > 0)
        learn_base(a, service_us);
    if (++a->free >= FREE_SAMPLES)
        a->engaged = false;
    if (suspect(probe, out, rate))
        return;
    if (a->roof > 0) {
        settle_at_once(probe, a->roof);
        return;
    }
    settle_at_once(probe, free_size(probe, rate, service_us, reached));
}

static void take_sample(struct hg_probe *probe)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    struct hg_probe_sample sample = a->sample;
    hg_probe_sample_clear(&a->sample);
    double rate = (double)sample.finished * 1e6 / (double)sample.elapsed_us;
    double out = sample.out / sample.intervals;
    double service_us =
        sample.finished > 0 ? (double)sample.service_us / (double)sample.finished : 0;
    if (service_us > 0) {
        a->usual_us += (a->usual_us > 0 ? 0.3 : 1) * (service_us - a->usual_us);
        a->usual_rate += (a->usual_rate > 0 ? 0.3 : 1) * (rate - a->usual_rate);
    }
    if (a->skip > 0) {
        a->skip--;
        return;
    }
    switch (probe->state) {
    case HG_PROBE_STABLE:
        probe->stats.probed_stable++;
        if (sample.full)
            decide_full(probe, out, rate);
        else
            decide_free(probe, out, rate, service_us, sample.reached);
        break;
    case HG_PROBE_UP:
    case HG_PROBE_DOWN:
        if (probe->state == HG_PROBE_UP)
            probe->stats.probed_up++;
        else
            probe->stats.probed_down++;
        if (sample.full && sample.finished > 0)
            judge(probe, rate, out);
        else
            settle(probe, probe->stable_size);
        break;
    }
}

/* A stall */

static bool is_stalled(struct hg_probe *probe, const struct hg_probe_seen *seen,
                       uint64_t elapsed_us)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    bool young = seen->oldest_us > 0 && seen->oldest_us < STALL_US;
    if (finished_of(seen) > 0 || out_of(seen) <= floor_of(probe) || young) {
        a->idle_us = 0;
        return false;
    }
    a->idle_us += elapsed_us;
    return a->idle_us >= STALL_US && (double)a->idle_us >= STALL_SERVICES * a->usual_us;
}

/* Halves what may be out, and returns at the first answer: to what was in force, unless that was
   not known to be right. */
static bool go_through_stall(struct hg_probe *probe, const struct hg_probe_seen *seen,
                             uint64_t elapsed_us)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    if (is_stalled(probe, seen, elapsed_us)) {
        if (a->before_stall == 0) {
            a->before_stall = a->roof > 0 ? a->roof : probe->stable_size;
            probe->stats.stalls++;
        }
        double size = out_of(seen) < probe->stable_size ? out_of(seen) : probe->stable_size;
        settle(probe, size / 2);
        return true;
    }
    if (a->before_stall == 0)
        return false;
    if (finished_of(seen) == 0)
        return true;
    double size = a->before_stall, used = 2 * a->usual_rate * a->base_us / 1e6;
    a->before_stall = 0;
    if (size >= ceiling_of(probe))
        size = START_MULTIPLE * floor_of(probe) > used ? START_MULTIPLE * floor_of(probe) : used;
    settle(probe, size);
    a->wait = 0;
    a->backoff = BACKOFF_MIN;
    return true;
}

/* The control */

void hg_probe_adaptive_init(struct hg_probe *probe)
{
    double ratio = probe->conf.read_write_ratio;
    probe->adaptive = (struct hg_probe_adaptive){
        .variance = 0.05 * 0.05, // unknown; corrected within ten samples
        .share = {ratio, 1 - ratio},
        .backoff = BACKOFF_MIN,
    };
    hg_probe_sample_clear(&probe->adaptive.sample);
    probe->stable_size = hg_probe_clamp(START_MULTIPLE * floor_of(probe), 0, ceiling_of(probe));
    split(probe, probe->stable_size);
}

void hg_probe_adaptive_configure(struct hg_probe *probe)
{
    settle(probe, probe->stable_size);
    split(probe, probe->stable_size);
}

static bool is_draining(const struct hg_probe *probe, const struct hg_probe_seen *seen)
{
    return out_of(seen) > (double)probe->size[HG_TICKET_READ] + probe->size[HG_TICKET_WRITE];
}

void hg_probe_adaptive_step(struct hg_probe *probe, const struct hg_probe_seen *seen,
                            uint64_t elapsed_us)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    double peak = (double)(probe->peak[HG_TICKET_READ] + probe->peak[HG_TICKET_WRITE]);
    a->recent_peak = peak > a->recent_peak * FADE ? peak : a->recent_peak * FADE;
    learn_shares(probe, seen);
    if (!go_through_stall(probe, seen, elapsed_us)) {
        bool complete = hg_probe_gather(probe, seen, elapsed_us);
        if (is_draining(probe, seen)) {
            hg_probe_sample_clear(&a->sample);
            a->skip = 1;
        } else if (complete) {
            take_sample(probe);
        }
    }
    probe->peak[HG_TICKET_READ] = probe->peak[HG_TICKET_WRITE] = 0;
    split(probe, probe->state == HG_PROBE_STABLE ? probe->stable_size : a->probed_size);
}
