// probe_in - the insides of probe.h, for its own files only
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_CORE_PROBE_IN_H
#define HG_CORE_PROBE_IN_H

#include "core/probe.h"

static inline double hg_probe_clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* Bounds of the total. */
static inline double hg_probe_floor(const struct hg_probe *probe)
{
    return 2.0 * probe->conf.min;
}

static inline double hg_probe_ceiling(const struct hg_probe *probe)
{
    return 2.0 * probe->conf.max;
}

/* Counts a step that was accepted: by how many tickets the total became larger or smaller. */
void hg_probe_count(struct hg_probe *probe, bool increased, uint32_t amount);

/* Samples, of the adaptive control. */
void hg_probe_sample_clear(struct hg_probe_sample *sample);
/* Adds an interval; true: the sample is complete. */
bool hg_probe_gather(struct hg_probe *probe, const struct hg_probe_seen *seen, uint64_t elapsed_us);

void hg_probe_history_clear(struct hg_probe_history *history);
void hg_probe_history_add(struct hg_probe_history *history, double rate, double out);
/* Means; 0: there is none. */
double hg_probe_history_rate(const struct hg_probe_history *history);
double hg_probe_history_out(const struct hg_probe_history *history);
/* A sample more at an unchanged size, not yet in the history. */
void hg_probe_learn_noise(struct hg_probe_adaptive *adaptive, double rate);
/* Standard error of the ratio of the means of so many samples, at least 1 each. */
double hg_probe_error(const struct hg_probe_adaptive *adaptive, uint32_t stable, uint32_t probed);

/* The square root, without libm, which nothing else in core needs. */
double hg_probe_root(double square);

/* Steps, of the adaptive control. A new stable size: what was measured at another is forgotten, and
   the next sample ignored, unless nothing is to be judged by it. */
void hg_probe_settle(struct hg_probe *probe, double size);
void hg_probe_settle_at_once(struct hg_probe *probe, double size);
/* From `stable`, whose history has a sample at least; down: with its throughput. */
void hg_probe_step_up(struct hg_probe *probe);
void hg_probe_step_down(struct hg_probe *probe, double rate);
/* Likewise, to a size below. */
void hg_probe_step_to(struct hg_probe *probe, double size);
/* A full sample at the probed size. */
void hg_probe_judge(struct hg_probe *probe, double rate, double out);
/* Forgets failures: the next step may come at once. */
void hg_probe_forgive(struct hg_probe_adaptive *adaptive);
bool hg_probe_has_risen(const struct hg_probe_adaptive *adaptive, double service_us);

void hg_probe_adaptive_init(struct hg_probe *probe);
/* New options of the same control: bounds hold at once. */
void hg_probe_adaptive_configure(struct hg_probe *probe);
void hg_probe_adaptive_step(struct hg_probe *probe, const struct hg_probe_seen *seen,
                            uint64_t elapsed_us);

#endif
