// probe_sample - what intervals tell: samples of enough requests, and how sure they make one
// SPDX-License-Identifier: BSD-3-Clause
#include "core/probe_in.h"

/* Fewer finished requests than this tell little of a rate: its chance error would be above a fifth.
   A second is as long as a decision may wait for them. */
#define ENOUGH_FINISHED 25
#define ENOUGH_US       1000000

/* Weight of the newest difference in the variance: the memory of about ten samples. */
#define VARIANCE_WEIGHT 0.1
/* A difference above this is a change of the load or of the store, not noise. */
#define DIFFERENCE_MAX 0.3

double hg_probe_root(double square) // without libm, which nothing else here needs
{
    double x = square > 1 ? square : 1;
    for (int i = 0; i < 40 && x * x > square * (1 + 1e-9); i++)
        x = (x + square / x) / 2;
    return x;
}

void hg_probe_history_clear(struct hg_probe_history *history)
{
    history->count = history->at = 0;
}

void hg_probe_history_add(struct hg_probe_history *history, double rate, double out)
{
    history->out[history->at] = out;
    history->rate[history->at] = rate;
    history->at = (history->at + 1) % HG_PROBE_HISTORY;
    if (history->count < HG_PROBE_HISTORY)
        history->count++;
}

static double mean_of(const double *values, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += values[i];
    return count > 0 ? sum / count : 0;
}

double hg_probe_history_rate(const struct hg_probe_history *history)
{
    return mean_of(history->rate, history->count);
}

double hg_probe_history_out(const struct hg_probe_history *history)
{
    return mean_of(history->out, history->count);
}

/* From the mean of those before: what varies slowly, as with the share of dear requests, counts. */
void hg_probe_learn_noise(struct hg_probe_adaptive *adaptive, double rate)
{
    const struct hg_probe_history *history = &adaptive->stable;
    double mean = hg_probe_history_rate(history);
    if (history->count < 2 || mean <= 0)
        return;
    double off = hg_probe_clamp(rate / mean - 1, -DIFFERENCE_MAX, DIFFERENCE_MAX);
    off = off * off * history->count / (history->count + 1); // the mean varies too
    adaptive->variance += VARIANCE_WEIGHT * (off - adaptive->variance);
}

double hg_probe_error(const struct hg_probe_adaptive *adaptive, uint32_t stable, uint32_t probed)
{
    return hg_probe_root(adaptive->variance * (1.0 / stable + 1.0 / probed));
}

/* Samples */

static bool is_short(const struct hg_probe *probe, const struct hg_probe_seen *seen, int kind)
{
    const struct hg_probe_holder_seen *holder = &seen->holder[kind];
    return holder->waiting > 0 || holder->out >= (int64_t)probe->size[kind];
}

/* Do tickets decide what is finished? Not when those that are short are few. */
static bool is_full(const struct hg_probe *probe, const struct hg_probe_seen *seen)
{
    double demand = 0, held_up = 0;
    for (int kind = 0; kind < HG_TICKET_KINDS; kind++) {
        double wanted = (double)seen->holder[kind].out + (double)seen->holder[kind].waiting;
        demand += wanted;
        if (is_short(probe, seen, kind))
            held_up += wanted;
    }
    return demand > 0 && held_up * 2 >= demand;
}

void hg_probe_sample_clear(struct hg_probe_sample *sample)
{
    *sample = (struct hg_probe_sample){.full = true};
}

/* Of requests that are unlike each other, few large ones tell as little as if there were no others:
   Kish's effective sample size. */
static double effective(const struct hg_probe_sample *sample, bool mixed)
{
    double work = (double)sample->work_us;
    double finished = (double)sample->finished;
    if (!mixed || sample->work_squares <= 0 || work * work > finished * sample->work_squares)
        return finished;
    return work * work / sample->work_squares;
}

bool hg_probe_gather(struct hg_probe *probe, const struct hg_probe_seen *seen, uint64_t elapsed_us)
{
    struct hg_probe_sample *sample = &probe->adaptive.sample;
    sample->finished += probe->carried;
    sample->elapsed_us += elapsed_us;
    sample->intervals++;
    for (int kind = 0; kind < HG_TICKET_KINDS; kind++) {
        const struct hg_probe_holder_seen *holder = &seen->holder[kind];
        sample->finished += holder->finished;
        sample->service_us += holder->service_us;
        sample->work_us += holder->work_us;
        sample->short_count += holder->short_count;
        sample->short_us += holder->short_us;
        sample->work_squares += 256.0 * (double)holder->work_squares;
        sample->out += (double)holder->out;
        if (probe->peak[kind] >= (int64_t)probe->size[kind])
            sample->reached = true;
    }
    if (!is_full(probe, seen))
        sample->full = false;
    return effective(sample, probe->adaptive.mixed_us > 0) >= ENOUGH_FINISHED ||
           sample->elapsed_us >= ENOUGH_US;
}
