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
// So has one of which nothing is known yet since nothing was asked of it for half a second.
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

/* Service time above this multiple of the base calls for a step at once, if that is beyond doubt:
   with a relative variance above 1/200 it takes more samples than one. */
#define URGENT_MULTIPLE 2.0
#define URGENT_CERTAIN  200
/* Weights of a sample in the base. It follows what is faster within a second, and what is slower
   within ten, as that may be the queue. */
#define BASE_FALL 0.1
#define BASE_RISE 0.01

/* So many answers of short requests tell how long the queue in the store is. */
#define QUEUE_ANSWERS 8

/* Weight of a sample in what is a unit of work. */
#define UNIT_WEIGHT 0.1

/* Long requests beside short ones are to be expected for so long after the last ones. */
#define MIXED_US 10000000

/* A change of throughput by this share, without a step, is news: what was learned is void. */
#define CHANGE 0.3

/* Samples that the first step in a direction is compared with at least. */
#define STABLE_SAMPLES 3
/* Nothing finished for so many usual service times, and so long, is a stall. */
#define STALL_SERVICES 4
#define STALL_US       300000

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
        if (total >= hg_probe_ceiling(probe))
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
    hg_probe_forgive(a);
}

/* Requests wait, and nothing says yet that the store is what they wait for: true, and it is given
   more if there is more. */
static bool leave_alone(struct hg_probe *probe, double service_us)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    double excess_us = service_us - a->base_us;
    bool all = probe->stable_size >= hg_probe_ceiling(probe) || a->roof > 0;
    bool fast = a->base_us > 0 ? a->base_us < FAST_US : service_us < FAST_US;
    if (a->engaged)
        return false;
    if ((all || fast) && (excess_us <= SUSPECT_US || excess_us <= a->base_us)) {
        if (a->base_us == 0)
            a->base_us = service_us;
        if (!all)
            hg_probe_settle_at_once(probe, probe->stable_size * 2);
        return true;
    }
    a->engaged = true;
    return false;
}

/* The service time of a unit of work, by Little's law. Just after many long requests have begun,
   Little's law gives too much, as they are out and none of them has finished; so where requests
   count as work, the mean of those that have finished counts if it is smaller. */
static double service_of(const struct hg_probe_adaptive *a, double out, double rate,
                         double finished_us)
{
    double service_us = out / rate * 1e6;
    return a->mixed_us > 0 && finished_us < service_us ? finished_us : service_us;
}

static void decide_full(struct hg_probe *probe, double out, double rate, double finished_us)
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
    double service_us = service_of(a, hg_probe_history_out(&a->stable), mean, finished_us);
    if (leave_alone(probe, service_us))
        return;
    if (a->base_us == 0) {
        hg_probe_step_down(probe, mean);
        return;
    }
    if (service_us < a->base_us)
        a->base_us += BASE_FALL * (service_us - a->base_us);
    bool risen = hg_probe_has_risen(a, service_us);
    if (risen && service_us > URGENT_MULTIPLE * a->base_us &&
        URGENT_CERTAIN * a->variance < a->stable.count) {
        hg_probe_step_down(probe, mean);
        return;
    }
    if (a->wait > 0) {
        a->wait--;
        return;
    }
    if (a->stable.count < STABLE_SAMPLES && a->grown == 0)
        return;
    if ((risen || a->down_next) && probe->stable_size > hg_probe_floor(probe))
        hg_probe_step_down(probe, mean);
    else if (probe->stable_size < hg_probe_ceiling(probe))
        hg_probe_step_up(probe);
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
static bool suspect(struct hg_probe *probe, double out, double rate, double finished_us)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    double excess_us = rate > 0 ? service_of(a, out, rate, finished_us) - a->base_us : 0;
    if (out <= hg_probe_floor(probe) || excess_us <= SUSPECT_US || excess_us <= a->base_us) {
        a->suspicions = 0;
        return false;
    }
    if (++a->suspicions >= SUSPECT_SAMPLES && a->roof == 0 && out < probe->stable_size) {
        double roof = probe->stable_size;
        hg_probe_settle_at_once(probe, out);
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
    double most = START_MULTIPLE * hg_probe_floor(probe);
    if (a->base_us < FAST_US)
        return a->engaged ? probe->stable_size : probe->stable_size * 2;
    if (SLACK * a->recent_peak > most)
        most = SLACK * a->recent_peak;
    if (probe->stable_size > most)
        return most;
    if (reached && staffed > probe->stable_size && !hg_probe_has_risen(a, service_us))
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
    if (suspect(probe, out, rate, service_us))
        return;
    if (a->roof > 0) {
        hg_probe_settle_at_once(probe, a->roof);
        return;
    }
    hg_probe_settle_at_once(probe, free_size(probe, rate, service_us, reached));
}

/* The unit is another: so are all rates and times. */
static void rescale(struct hg_probe *probe, double unit_us)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    double times = unit_us / a->unit_us;
    a->unit_us = unit_us;
    a->base_us *= times;
    a->usual_us *= times;
    a->usual_rate /= times;
    probe->stable_throughput /= times;
    for (unsigned i = 0; i < HG_PROBE_HISTORY; i++) {
        a->stable.rate[i] /= times;
        a->probed.rate[i] /= times;
    }
}

/* Requests that were finished, as units of work. A unit is what a request is on average. Where all
   are alike each counts as one: what its class usually takes is known by a few dozen services only,
   which would be noise. */
static double units_of(struct hg_probe *probe, const struct hg_probe_sample *sample)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    if (sample->work_us == 0 || sample->finished == 0)
        return (double)sample->finished;
    double mean_us = (double)sample->work_us / (double)sample->finished;
    if (a->unit_us == 0 || (a->mixed_us == 0 && !a->in_work))
        a->unit_us = mean_us;
    else if (a->mixed_us == 0)
        rescale(probe, mean_us); /* from now on each counts as one again */
    a->in_work = a->mixed_us > 0;
    if (!a->in_work)
        return (double)sample->finished;
    rescale(probe, a->unit_us + UNIT_WEIGHT * (mean_us - a->unit_us));
    return (double)sample->work_us / a->unit_us;
}

static void take_sample(struct hg_probe *probe)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    struct hg_probe_sample sample = a->sample;
    hg_probe_sample_clear(&a->sample);
    double units = units_of(probe, &sample);
    double rate = units * 1e6 / (double)sample.elapsed_us;
    double out = sample.out / sample.intervals;
    double service_us = units > 0 ? (double)sample.service_us / units : 0;
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
            decide_full(probe, out, rate, service_us);
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
            hg_probe_judge(probe, rate, out);
        else if (probe->state == HG_PROBE_DOWN && a->in_work && sample.finished > 0)
            hg_probe_settle(probe, a->probed_size); /* it does not bind */
        else
            hg_probe_settle(probe, probe->stable_size);
        break;
    }
}

/* Where requests of unlike kinds share a store, the short ones tell at once how long its queue is:
   they wait as long as all others in it, and for them that is much. True: so many tickets are in
   that queue, by Little's law, that the size is cut: by half at most, or to a quarter more than the
   work that the store does at a time. The step is judged like any other; one up is taken back. */
static bool cut_queue(struct hg_probe *probe)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    const struct hg_probe_sample *sample = &a->sample;
    if (a->mixed_us == 0 || a->skip > 0 || sample->short_count < QUEUE_ANSWERS)
        return false;
    double wait_us = (double)sample->short_us / (double)sample->short_count;
    if (wait_us < SUSPECT_US)
        return false;
    if (probe->state == HG_PROBE_UP) {
        hg_probe_settle(probe, probe->stable_size);
        return true;
    }
    double elapsed_us = (double)sample->elapsed_us, out = sample->out / sample->intervals;
    double busy = (double)sample->work_us / elapsed_us;
    double queued = (double)sample->finished / elapsed_us * wait_us;
    bool down = probe->state == HG_PROBE_DOWN;
    if ((down || !sample->full) && out <= 1.25 * busy + 2)
        return false; /* the store works on all of them: it is something else */
    double size = down ? a->probed_size : probe->stable_size;
    if (!sample->full && out < size)
        size = out;
    double least = 1.25 * busy + 2 < size / 2 ? 1.25 * busy + 2 : size / 2;
    if (queued < 2 + size / 8 || size <= hg_probe_floor(probe))
        return false;
    if (probe->state == HG_PROBE_STABLE)
        hg_probe_history_add(&a->stable, units_of(probe, sample) * 1e6 / elapsed_us, out);
    a->engaged = true;
    hg_probe_step_to(probe, size - queued > least ? size - queued : least);
    return true;
}

/* A stall */

static bool is_stalled(struct hg_probe *probe, const struct hg_probe_seen *seen,
                       uint64_t elapsed_us)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    bool young = seen->oldest_us > 0 && seen->oldest_us < STALL_US;
    if (finished_of(seen) > 0 || out_of(seen) <= hg_probe_floor(probe) || young) {
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
        hg_probe_settle(probe, size / 2);
        return true;
    }
    if (a->before_stall == 0)
        return false;
    if (finished_of(seen) == 0)
        return true;
    double size = a->before_stall, used = 2 * a->usual_rate * a->base_us / 1e6;
    a->before_stall = 0;
    double start = START_MULTIPLE * hg_probe_floor(probe) > used
                       ? START_MULTIPLE * hg_probe_floor(probe)
                       : used;
    if (size > start && (!a->engaged || size >= hg_probe_ceiling(probe)))
        size = start;
    hg_probe_settle(probe, size);
    hg_probe_forgive(a);
    return true;
}

/* The control */

void hg_probe_adaptive_init(struct hg_probe *probe)
{
    double ratio = probe->conf.read_write_ratio;
    probe->adaptive = (struct hg_probe_adaptive){
        .variance = 0.05 * 0.05, // unknown; corrected within ten samples
        .share = {ratio, 1 - ratio},
    };
    hg_probe_forgive(&probe->adaptive);
    hg_probe_sample_clear(&probe->adaptive.sample);
    probe->stable_size =
        hg_probe_clamp(START_MULTIPLE * hg_probe_floor(probe), 0, hg_probe_ceiling(probe));
    split(probe, probe->stable_size);
}

void hg_probe_adaptive_configure(struct hg_probe *probe)
{
    hg_probe_settle(probe, probe->stable_size);
    split(probe, probe->stable_size);
}

static bool is_draining(const struct hg_probe *probe, const struct hg_probe_seen *seen)
{
    return out_of(seen) > (double)probe->size[HG_TICKET_READ] + probe->size[HG_TICKET_WRITE];
}

/* Nothing is asked of a store that is not known to be slow: it is on the way to all tickets. */
static bool is_idle(const struct hg_probe *probe, const struct hg_probe_seen *seen)
{
    const struct hg_probe_adaptive *a = &probe->adaptive;
    bool waits = seen->holder[HG_TICKET_READ].waiting + seen->holder[HG_TICKET_WRITE].waiting > 0;
    return probe->state == HG_PROBE_STABLE && !a->engaged && a->roof == 0 && a->before_stall == 0 &&
           a->base_us < FAST_US && finished_of(seen) == 0 && out_of(seen) == 0 && !waits &&
           probe->stable_size < hg_probe_ceiling(probe);
}

static void note_mixed(struct hg_probe_adaptive *a, const struct hg_probe_seen *seen,
                       uint64_t elapsed_us)
{
    enum hg_probe_mix mix = seen->holder[HG_TICKET_READ].mix;
    if (mix < seen->holder[HG_TICKET_WRITE].mix)
        mix = seen->holder[HG_TICKET_WRITE].mix;
    a->mixed_us -= elapsed_us < a->mixed_us ? elapsed_us : a->mixed_us;
    if (mix == HG_PROBE_MIXED)
        a->mixed_us = MIXED_US;
    else if (mix == HG_PROBE_FRESH && a->mixed_us == 0)
        a->mixed_us = 1;
}

void hg_probe_adaptive_step(struct hg_probe *probe, const struct hg_probe_seen *seen,
                            uint64_t elapsed_us)
{
    struct hg_probe_adaptive *a = &probe->adaptive;
    double peak = (double)(probe->peak[HG_TICKET_READ] + probe->peak[HG_TICKET_WRITE]);
    a->recent_peak = peak > a->recent_peak * FADE ? peak : a->recent_peak * FADE;
    learn_shares(probe, seen);
    note_mixed(a, seen, elapsed_us);
    if (is_idle(probe, seen)) {
        hg_probe_settle_at_once(probe, probe->stable_size * 2);
    } else if (!go_through_stall(probe, seen, elapsed_us)) {
        bool complete = hg_probe_gather(probe, seen, elapsed_us);
        if (is_draining(probe, seen)) {
            hg_probe_sample_clear(&a->sample);
            a->skip = 1;
        } else if (!cut_queue(probe) && complete) {
            take_sample(probe);
        }
    }
    probe->peak[HG_TICKET_READ] = probe->peak[HG_TICKET_WRITE] = 0;
    split(probe, probe->state == HG_PROBE_STABLE ? probe->stable_size : a->probed_size);
}
