// overload_control - the controllers that are compared
// SPDX-License-Identifier: BSD-3-Clause
//
// Fixed, probing and adaptive are core/probe. Vegas and Gradient2 are Netflix's limits by their
// published rules. Their windows would blind them here (samples under 100 us are dropped there,
// windows last 1 s), so each interval of the simulation is a window, its sample the mean time that
// requests held their tickets, none left out; a window with less than ten samples is joined to the
// next one. Vegas' rtt_min is the smallest such mean: that of single requests would be the smallest
// demand and no base time; a new one is learned after so many windows. (Counted in requests it
// would be learned anew each second or two, from whatever queues by then, and the limit creeps up.)
// Both limits are totals, split over the holders like those of core/probe.
#include <math.h>
#include <stdlib.h>
#include "base/prng.h"
#include "overload.h"

#define SAMPLES 10 /* a window has at least so many */
#define CORES   4  /* probing starts at twice as many */

/* Vegas */
#define VEGAS_START   20
#define VEGAS_MAX     1000
#define VEGAS_RELEARN 30 /* times the limit, in windows, times 0.5 to 1 */

/* Gradient2 */
#define GRADIENT_START     20
#define GRADIENT_MIN       20
#define GRADIENT_MAX       200
#define GRADIENT_LONG      600 /* windows of the long average */
#define GRADIENT_WARM_UP   10
#define GRADIENT_TOLERANCE 1.5
#define GRADIENT_SMOOTHING .2
#define GRADIENT_QUEUE     4

static void *make_zeroed(size_t size)
{
    void *memory = calloc(1, size);
    if (memory == NULL)
        abort();
    return memory;
}

/* core/probe */

static void copy_sizes(uint32_t ret_size[HG_TICKET_KINDS], const uint32_t size[HG_TICKET_KINDS])
{
    for (uint32_t k = 0; k < HG_TICKET_KINDS; k++)
        ret_size[k] = size[k];
}

static struct hg_probe_conf conf_of(enum hg_probe_control control)
{
    return (struct hg_probe_conf){
        .control = control,
        .interval_us = OVERLOAD_INTERVAL_US,
        .read_tickets = OVERLOAD_MAX,
        .write_tickets = OVERLOAD_MAX,
        .cores = CORES,
        .min = OVERLOAD_MIN,
        .max = OVERLOAD_MAX,
        .read_write_ratio = .5,
        .weight = .2,
        .step = .1,
    };
}

static void *make_probe(const struct hg_probe_conf *conf, uint32_t ret_size[HG_TICKET_KINDS])
{
    struct hg_probe *probe = make_zeroed(sizeof(*probe));
    (void)hg_probe_init(probe, conf);
    copy_sizes(ret_size, probe->size);
    return probe;
}

static void step_probe(void *control, const struct overload_seen *seen,
                       uint32_t ret_size[HG_TICKET_KINDS])
{
    struct hg_probe *probe = control;
    hg_probe_step(probe, &seen->probe);
    copy_sizes(ret_size, probe->size);
}

static void *make_fixed(const struct overload_setup *setup, uint32_t ret_size[HG_TICKET_KINDS])
{
    struct hg_probe_conf conf = conf_of(HG_PROBE_FIXED);
    (void)setup;
    return make_probe(&conf, ret_size);
}

static void *make_probing(const struct overload_setup *setup, uint32_t ret_size[HG_TICKET_KINDS])
{
    struct hg_probe_conf conf = conf_of(HG_PROBE_PROBING);
    (void)setup;
    return make_probe(&conf, ret_size);
}

static void *make_adaptive(const struct overload_setup *setup, uint32_t ret_size[HG_TICKET_KINDS])
{
    struct hg_probe_conf conf = conf_of(HG_PROBE_ADAPTIVE);
    (void)setup;
    return make_probe(&conf, ret_size);
}

static void *make_oracle(const struct overload_setup *setup, uint32_t ret_size[HG_TICKET_KINDS])
{
    struct hg_probe_conf conf = conf_of(HG_PROBE_FIXED);
    conf.read_tickets = conf.write_tickets = (uint32_t)(setup->backend.knee / 2);
    return make_probe(&conf, ret_size);
}

/* Windows of samples */

struct window {
    double service_us;
    uint64_t finished, drops;
    int64_t peak;
};

struct sample {
    double rtt_us;
    int64_t inflight;
    bool dropped;
};

/* False: not enough yet. */
static bool add_interval(struct window *window, const struct overload_seen *seen,
                         struct sample *ret_sample)
{
    int64_t peak = 0;
    for (uint32_t k = 0; k < HG_TICKET_KINDS; k++) {
        const struct hg_probe_holder_seen *holder = &seen->probe.holder[k];
        window->finished += holder->finished;
        window->service_us += (double)holder->service_us;
        peak += holder->peak;
    }
    window->drops += seen->drops;
    window->peak = peak > window->peak ? peak : window->peak;
    if (window->finished < SAMPLES)
        return false;
    *ret_sample = (struct sample){
        .rtt_us = window->service_us / (double)window->finished,
        .inflight = window->peak,
        .dropped = window->drops > 0,
    };
    *window = (struct window){0};
    return true;
}

static void split(double limit, uint32_t ret_size[HG_TICKET_KINDS])
{
    uint32_t total = (uint32_t)fmax(2, round(limit));
    ret_size[HG_TICKET_READ] = (total + 1) / 2;
    ret_size[HG_TICKET_WRITE] = total / 2;
}

/* Vegas */

struct vegas {
    struct window window;
    struct hg_prng prng;
    double limit, rtt_min_us;
    double seen, jitter; // windows since rtt_min was learned
};

static void *make_vegas(const struct overload_setup *setup, uint32_t ret_size[HG_TICKET_KINDS])
{
    struct vegas *vegas = make_zeroed(sizeof(*vegas));
    vegas->prng.state = setup->seed;
    vegas->limit = VEGAS_START;
    vegas->jitter = 1;
    split(vegas->limit, ret_size);
    return vegas;
}

static void move_vegas(struct vegas *vegas, const struct sample *sample)
{
    double limit = vegas->limit, tenth = fmax(1, floor(log10(limit)));
    double queue = ceil(limit * (1 - vegas->rtt_min_us / sample->rtt_us));
    if (sample->dropped)
        limit -= tenth;
    else if ((double)sample->inflight * 2 < limit)
        return;
    else if (queue <= tenth)
        limit += 6 * tenth;
    else if (queue < 3 * tenth)
        limit += tenth;
    else if (queue > 6 * tenth)
        limit -= tenth;
    vegas->limit = fmin(fmax(limit, 1), VEGAS_MAX);
}

static void step_vegas(void *control, const struct overload_seen *seen,
                       uint32_t ret_size[HG_TICKET_KINDS])
{
    struct vegas *vegas = control;
    struct sample sample;
    if (add_interval(&vegas->window, seen, &sample)) {
        if (++vegas->seen >= VEGAS_RELEARN * vegas->limit * vegas->jitter) {
            vegas->seen = 0;
            vegas->jitter = .5 + (double)hg_prng_below(&vegas->prng, 1000) / 2000;
            vegas->rtt_min_us = sample.rtt_us;
        } else {
            if (vegas->rtt_min_us <= 0 || sample.rtt_us < vegas->rtt_min_us)
                vegas->rtt_min_us = sample.rtt_us;
            move_vegas(vegas, &sample);
        }
    }
    split(vegas->limit, ret_size);
}

/* Gradient2 */

struct gradient {
    struct window window;
    double limit, long_us;
    uint32_t count;
};

static void *make_gradient(const struct overload_setup *setup, uint32_t ret_size[HG_TICKET_KINDS])
{
    struct gradient *gradient = make_zeroed(sizeof(*gradient));
    (void)setup;
    gradient->limit = GRADIENT_START;
    split(gradient->limit, ret_size);
    return gradient;
}

static void move_gradient(struct gradient *gradient, const struct sample *sample)
{
    if (gradient->count < GRADIENT_WARM_UP) {
        gradient->long_us += (sample->rtt_us - gradient->long_us) / ++gradient->count;
    } else {
        gradient->long_us += (sample->rtt_us - gradient->long_us) * 2 / (GRADIENT_LONG + 1);
    }
    if (gradient->long_us > 2 * sample->rtt_us)
        gradient->long_us *= .95;
    if ((double)sample->inflight * 2 < gradient->limit)
        return;
    double slope = fmin(fmax(GRADIENT_TOLERANCE * gradient->long_us / sample->rtt_us, .5), 1);
    double limit = gradient->limit * slope + GRADIENT_QUEUE;
    limit = gradient->limit * (1 - GRADIENT_SMOOTHING) + limit * GRADIENT_SMOOTHING;
    gradient->limit = fmin(fmax(limit, GRADIENT_MIN), GRADIENT_MAX);
}

static void step_gradient(void *control, const struct overload_seen *seen,
                          uint32_t ret_size[HG_TICKET_KINDS])
{
    struct gradient *gradient = control;
    struct sample sample;
    if (add_interval(&gradient->window, seen, &sample))
        move_gradient(gradient, &sample);
    split(gradient->limit, ret_size);
}

const struct overload_control overload_controls[OVERLOAD_CONTROLS] = {
    [OVERLOAD_FIXED] = {"fixed", make_fixed, step_probe},
    [OVERLOAD_PROBING] = {"probing", make_probing, step_probe},
    [OVERLOAD_ADAPTIVE] = {"adaptive", make_adaptive, step_probe},
    [OVERLOAD_VEGAS] = {"vegas", make_vegas, step_vegas},
    [OVERLOAD_GRADIENT2] = {"gradient2", make_gradient, step_gradient},
    [OVERLOAD_ORACLE] = {"(oracle)", make_oracle, step_probe},
};
