// probe_adaptive - as many tickets as the store can make use of, and not more
// SPDX-License-Identifier: BSD-3-Clause
//
//   stable ──► up    more is tried, kept if more is finished
//     ▲    └─► down  less is tried, kept if no less is finished
//     └────────┘
//
// A step is judged by the throughput of full samples, those in which requests waited for tickets
// all the time. By Little's law their service time is what was out / throughput, whatever the mix
// of cheap and dear requests is. The base is that time when nothing queues in the store, so
// throughput x base is the number of tickets that the store can make use of: a step down aims
// there, however far it is, and is judged when what was out before has gone. If it cost throughput
// after all, the store has not queued: the size returns to where throughput is regained, and the
// base is learned anew. A step is chosen so large that what it does exceeds four standard errors;
// a change of less than a third of it counts as none.
//
// Without full samples nothing is judged, and little is done: unused tickets cost nothing. Only
// when far more is out than the throughput explains, new requests are held back until that is
// clear.
#include "core/probe_in.h"

/* Queueing in the store below this is not worth acting on while all tickets are in force: it may
   be a hiccup, and batches thrive on it. */
#define SUSPECT_US 20000.0
/* Once below the maximum, service time has risen if it is above the base by this. */
#define RISEN_MULTIPLE 1.25
#define RISEN_US       1000.0
/* And beyond doubt above this multiple of the base. */
#define CERTAIN_MULTIPLE 2.0
/* What a step down leaves above what the store can make use of: it aims by an estimate. */
#define HEADROOM 1.1
/* Share of a step's size by which throughput must follow for the step to matter. */
#define FOLLOWS  (1.0 / 3)
#define STEP_MAX 1.0 /* doubles the size */
#define LOSS_MAX 0.1 /* of throughput, by a step down however large */
/* Samples: of a probe, before a step that is not urgent, and between failures. */
#define PROBE_SAMPLES_MAX 4
#define STABLE_SAMPLES    3
#define BACKOFF_MIN       4
#define BACKOFF_MAX 12
/* A size that requests wait for settles at once when the step before was that long ago. */
#define BASE_FALL 0.1 /* weights of a new service time in the base */
#define BASE_RISE 0.01
/* A store that serves within this gets all tickets back when it is not overloaded. */
#define FAST_US        2000.0
#define START_MULTIPLE 8
#define SLACK          2.0 /* of a slow store, above the most that were out of late */
#define FADE           0.99
/* Nothing finished for so many usual service times, and so long, is a stall. */
#define STALL_SERVICES 4
#define STALL_US       300000
#define SMALL_STEP_MAX 0.4
#define LARGE_CUT    0.7
#define UPS_PER_DOWN   4
#define FREE_SAMPLES   10
#define CHANGE         0.3
/* A store that serves within this shows at once what more tickets do. */
#define SETTLED_US 20000

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
    return hg_probe_clamp(3 * hg_probe_error(a, count, 2), probe->conf.step, SMALL_STEP_MAX);
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
    uint32_t samples = 4 * error > 0.3 ? 2 * PROBE_SAMPLES_MAX : PROBE_SAMPLES_MAX;
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
        settle(probe, ratio > 1.03 ? size * ratio : size);
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

/* Requests wait, and nothing says yet that the store is what they wait for. True: it is left at
   that, or given more. */
static bool is_left_alone(struct hg_probe *probe, double service_us)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    double excess_us = service_us - a->base_us;
    bool all = probe->stable_size >= ceiling_of(probe) || a->roof > 0;
    if (a->engaged)
        return false;
    if (all || (a->base_us > 0 && a->base_us < FAST_US) || service_us < FAST_US) {
        if (a->base_us > 0 ? excess_us <= SUSPECT_US || excess_us <= a->base_us
                           : service_us <= SUSPECT_US) {
            if (!all)
                settle(probe, probe->stable_size * 2);
            return true;
        }
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
    if (is_left_alone(probe, service_us))
        return;
    if (a->base_us == 0) {
        a->grown = -STEP_MAX;
        step_down(probe, mean);
        return;
    }
    if (service_us < a->base_us)
        a->base_us += BASE_FALL * (service_us - a->base_us);
    bool risen = has_risen(a, service_us);
    if (risen && service_us > CERTAIN_MULTIPLE * a->base_us) {
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

static void decide_free(struct hg_probe *probe, double out, double rate, double service_us,
                        bool reached)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    hg_probe_history_clear(&a->stable);
    if (service_us > 0) {
        double rise = hg_probe_clamp(service_us - a->base_us, -a->base_us, a->base_us);
        if (a->base_us == 0)
            a->base_us = service_us;
        else
            a->base_us += (rise < 0 ? BASE_FALL : BASE_RISE) * rise;
    }
    if (++a->free >= FREE_SAMPLES)
        a->engaged = false;
    double excess_us = rate > 0 ? out / rate * 1e6 - a->base_us : 0;
    if (out > floor_of(probe) && excess_us > SUSPECT_US && excess_us > a->base_us) {
        if (a->roof == 0 && out < probe->stable_size) {
            double roof = probe->stable_size;
            settle(probe, out);
            a->roof = roof;
            a->skip = 0;
        }
        return;
    }
    if (a->roof > 0) {
        settle(probe, a->roof);
        return;
    }
    bool at_base = service_us <= a->base_us * RISEN_MULTIPLE + RISEN_US;
    double use = rate * service_us / 1e6, staffed = use + hg_probe_root(use);
    double slack = SLACK * a->recent_peak;
    if (slack < START_MULTIPLE * floor_of(probe))
        slack = START_MULTIPLE * floor_of(probe);
    if (probe->stable_size < ceiling_of(probe) && at_base && a->base_us < FAST_US && !a->engaged)
        settle(probe, probe->stable_size * 2);
    else if (a->base_us >= FAST_US && probe->stable_size > slack)
        settle(probe, slack);
    else if (reached && at_base && probe->stable_size < staffed)
        settle(probe, staffed);
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
    if (finished_of(seen) > 0 || out_of(seen) <= floor_of(probe)) {
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
        size = used > 8 * floor_of(probe) ? used : 8 * floor_of(probe);
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
