// probe - fixed sizes, and MongoDB's throughput probing, see probe.h
// SPDX-License-Identifier: BSD-3-Clause
//
// Source of PROBING: MongoDB's documentation and parameters of throughput probing, and the
// behaviour that its unit tests show. Deliberately kept: a change of throughput counts however
// small it is, and while a holder is exhausted below its maximum the only way is up. Not kept: the
// forced step of one may not leave the bounds.
#include <stddef.h>
#include "core/probe_in.h"

#define SIZE_LIMIT (UINT32_MAX / 4) /* of a holder, so that sums of sizes fit */

static uint32_t round_size(double size)
{
    return (uint32_t)(size + 0.5);
}

static uint32_t total_of(const struct hg_probe *probe)
{
    return probe->size[HG_TICKET_READ] + probe->size[HG_TICKET_WRITE];
}

/* Options */

const char *hg_probe_check(const struct hg_probe_conf *conf)
{
    if (conf->min < 1)
        return "'throughput_probing_min_concurrency': at least 1";
    if (conf->max < conf->min)
        return "'throughput_probing_max_concurrency': at least "
               "'throughput_probing_min_concurrency'";
    if (!(conf->read_write_ratio >= 0 && conf->read_write_ratio <= 1))
        return "'throughput_probing_read_write_ratio': 0 to 1";
    if (!(conf->weight > 0 && conf->weight <= 1))
        return "'throughput_probing_concurrency_moving_average_weight': above 0, to 1";
    if (!(conf->step >= 0.01 && conf->step <= 0.5))
        return "'throughput_probing_step_multiple': 0.01 to 0.5";
    return NULL;
}

/* Clamps what is out of bounds; what is no number becomes the lower bound. */
static void take_conf(struct hg_probe *probe, const struct hg_probe_conf *conf)
{
    struct hg_probe_conf *own = &probe->conf;
    *own = *conf;
    if (own->min < 1)
        own->min = 1;
    if (own->min > SIZE_LIMIT)
        own->min = SIZE_LIMIT;
    if (own->max > SIZE_LIMIT)
        own->max = SIZE_LIMIT;
    if (own->max < own->min)
        own->max = own->min;
    if (!(own->read_write_ratio >= 0))
        own->read_write_ratio = 0;
    if (own->read_write_ratio > 1)
        own->read_write_ratio = 1;
    if (!(own->weight >= 0.01)) // below that nothing ever moves
        own->weight = 0.01;
    if (own->weight > 1)
        own->weight = 1;
    if (!(own->step >= 0.01))
        own->step = 0.01;
    if (own->step > 0.5)
        own->step = 0.5;
}

static enum hg_probe_initial judge_initial(const struct hg_probe_conf *conf)
{
    if (conf->initial == 0)
        return HG_PROBE_INITIAL_FITS;
    if (conf->initial < 2 * (uint64_t)conf->min)
        return HG_PROBE_INITIAL_BELOW;
    if (conf->initial > 2 * (uint64_t)conf->max)
        return HG_PROBE_INITIAL_ABOVE;
    return HG_PROBE_INITIAL_FITS;
}

/* Sizes */

void hg_probe_split(const struct hg_probe_conf *conf, double total, uint32_t size[HG_TICKET_KINDS])
{
    double reads = total * conf->read_write_ratio;
    double writes = total * (1 - conf->read_write_ratio);
    size[HG_TICKET_READ] = round_size(hg_probe_clamp(reads, conf->min, conf->max));
    size[HG_TICKET_WRITE] = round_size(hg_probe_clamp(writes, conf->min, conf->max));
}

/* Each size moves by one at least, within its bounds. */
static void split_step(struct hg_probe *probe, double multiple)
{
    const struct hg_probe_conf *conf = &probe->conf;
    uint32_t size[HG_TICKET_KINDS];
    hg_probe_split(conf, probe->stable_size * multiple, size);
    for (int kind = 0; kind < HG_TICKET_KINDS; kind++) {
        if (size[kind] == probe->size[kind])
            size[kind] = multiple > 1 ? size[kind] + 1 : size[kind] - 1;
        probe->size[kind] = (uint32_t)hg_probe_clamp(size[kind], conf->min, conf->max);
    }
}

void hg_probe_count(struct hg_probe *probe, bool increased, uint32_t amount)
{
    if (increased) {
        probe->stats.increased++;
        probe->stats.amount_increased += amount;
    } else {
        probe->stats.decreased++;
        probe->stats.amount_decreased += amount;
    }
}

/* PROBING */

static void probing_init(struct hg_probe *probe)
{
    const struct hg_probe_conf *conf = &probe->conf;
    double initial = conf->initial != 0 ? conf->initial : 2.0 * conf->cores;
    probe->stable_size = hg_probe_clamp(initial, 2.0 * conf->min, 2.0 * conf->max);
    hg_probe_split(conf, probe->stable_size, probe->size);
}

static bool is_exhausted(const struct hg_probe *probe, enum hg_ticket_kind kind)
{
    return probe->size[kind] < probe->conf.max && probe->peak[kind] >= (int64_t)probe->size[kind];
}

static void probing_stable(struct hg_probe *probe, double throughput)
{
    bool exhausted = is_exhausted(probe, HG_TICKET_READ) || is_exhausted(probe, HG_TICKET_WRITE);
    bool used = probe->peak[HG_TICKET_READ] > (int64_t)probe->conf.min ||
                probe->peak[HG_TICKET_WRITE] > (int64_t)probe->conf.min;
    probe->stats.probed_stable++;
    probe->stable_throughput = throughput;
    probe->peak[HG_TICKET_READ] = probe->peak[HG_TICKET_WRITE] = 0;
    if (exhausted) {
        probe->state = HG_PROBE_UP;
        split_step(probe, 1 + probe->conf.step);
    } else if (used) {
        probe->state = HG_PROBE_DOWN;
        split_step(probe, 1 - probe->conf.step);
    }
}

/* The end of a probe: a success moves the stable size by a share of what was tried. */
static void probing_settle(struct hg_probe *probe, double throughput)
{
    double weight = probe->conf.weight;
    uint32_t probed = total_of(probe), before[HG_TICKET_KINDS];
    bool up = probe->state == HG_PROBE_UP, success = throughput > probe->stable_throughput;
    *(up ? &probe->stats.probed_up : &probe->stats.probed_down) += 1;
    probe->state = HG_PROBE_STABLE;
    hg_probe_split(&probe->conf, probe->stable_size, before);
    if (success) {
        probe->stable_size = weight * probed + (1 - weight) * probe->stable_size;
        probe->stable_throughput = throughput;
    }
    hg_probe_split(&probe->conf, probe->stable_size, probe->size);
    if (success) {
        uint32_t from = before[HG_TICKET_READ] + before[HG_TICKET_WRITE], to = total_of(probe);
        hg_probe_count(probe, up, to > from ? to - from : from - to);
    }
}

static void probing_step(struct hg_probe *probe, const struct hg_probe_seen *seen,
                         uint64_t elapsed_us)
{
    uint64_t finished = seen->holder[HG_TICKET_READ].finished +
                        seen->holder[HG_TICKET_WRITE].finished + probe->carried;
    double throughput = (double)finished * 1e6 / (double)elapsed_us;
    if (probe->state == HG_PROBE_STABLE)
        probing_stable(probe, throughput);
    else
        probing_settle(probe, throughput);
}

/* All controls */

static void begin(struct hg_probe *probe)
{
    probe->state = HG_PROBE_STABLE;
    probe->started = false;
    probe->stable_throughput = 0;
    probe->carried = 0;
    probe->peak[HG_TICKET_READ] = probe->peak[HG_TICKET_WRITE] = 0;
    switch (probe->conf.control) {
    case HG_PROBE_PROBING:
        probing_init(probe);
        break;
    case HG_PROBE_FIXED:
        probe->size[HG_TICKET_READ] = probe->conf.read_tickets;
        probe->size[HG_TICKET_WRITE] = probe->conf.write_tickets;
        probe->stable_size = (double)probe->conf.read_tickets + probe->conf.write_tickets;
        break;
    case HG_PROBE_ADAPTIVE:
        hg_probe_adaptive_init(probe);
        break;
    }
}

enum hg_probe_initial hg_probe_init(struct hg_probe *probe, const struct hg_probe_conf *conf)
{
    *probe = (struct hg_probe){0};
    take_conf(probe, conf);
    begin(probe);
    return judge_initial(&probe->conf);
}

enum hg_probe_initial hg_probe_configure(struct hg_probe *probe, const struct hg_probe_conf *conf)
{
    enum hg_probe_control before = probe->conf.control;
    uint32_t initial = probe->conf.initial;
    take_conf(probe, conf);
    if (probe->conf.control != before || probe->conf.control == HG_PROBE_FIXED) {
        begin(probe);
    } else if (probe->conf.control == HG_PROBE_ADAPTIVE) {
        hg_probe_adaptive_configure(probe);
    } else if (probe->conf.initial != initial) {
        begin(probe);
    } else {
        probe->stable_size =
            hg_probe_clamp(probe->stable_size, 2.0 * probe->conf.min, 2.0 * probe->conf.max);
        hg_probe_split(&probe->conf, probe->stable_size, probe->size);
        probe->state = HG_PROBE_STABLE;
    }
    return judge_initial(&probe->conf);
}

static void keep_peaks(struct hg_probe *probe, const struct hg_probe_seen *seen)
{
    for (int kind = 0; kind < HG_TICKET_KINDS; kind++)
        if (seen->holder[kind].peak > probe->peak[kind])
            probe->peak[kind] = seen->holder[kind].peak;
}

void hg_probe_step(struct hg_probe *probe, const struct hg_probe_seen *seen)
{
    if (probe->conf.control == HG_PROBE_FIXED)
        return;
    keep_peaks(probe, seen);
    if (!probe->started) {
        probe->started = true;
        probe->last_us = seen->now_us;
        return;
    }
    if (seen->now_us <= probe->last_us) {
        probe->carried +=
            seen->holder[HG_TICKET_READ].finished + seen->holder[HG_TICKET_WRITE].finished;
        return;
    }
    uint64_t elapsed_us = seen->now_us - probe->last_us;
    probe->last_us = seen->now_us;
    if (probe->conf.control == HG_PROBE_PROBING)
        probing_step(probe, seen, elapsed_us);
    else
        hg_probe_adaptive_step(probe, seen, elapsed_us);
    probe->carried = 0;
}

const char *hg_probe_state_name(enum hg_probe_state state)
{
    switch (state) {
    case HG_PROBE_STABLE:
        return "stable";
    case HG_PROBE_UP:
        return "up";
    case HG_PROBE_DOWN:
        return "down";
    }
    return "unknown";
}
