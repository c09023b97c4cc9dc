// probe - how many execution tickets an upstream has: fixed, by probing, or adaptive
// SPDX-License-Identifier: BSD-3-Clause
//
//   each interval:  what was seen (struct hg_probe_seen) ─► hg_probe_step ─► sizes of both holders
//
// PROBING is the machine of MongoDB's execution control, as documented: from `stable` it goes `up`
// when a holder was exhausted, else `down`, and keeps a share of the step when more was finished. A
// forced step of one is clamped again (the original probes at max + 1 and min - 1).
//
// ADAPTIVE is the same machine with three changes: a step is accepted only if the gain exceeds the
// noise; it probes down also while exhausted, when queueing delay or service time has risen, and
// accepts if nothing was lost beyond the noise; steps grow while they succeed, and a stall of the
// backend halves the size. A fast store gets the maximum within half a second. See
// probe_adaptive.c.
//
// Pure: the time is an argument, and nothing is random. Belongs to one thread.
#ifndef HG_CORE_PROBE_H
#define HG_CORE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/ticket.h"

enum hg_probe_control { HG_PROBE_ADAPTIVE, HG_PROBE_PROBING, HG_PROBE_FIXED };
enum hg_probe_state { HG_PROBE_STABLE, HG_PROBE_UP, HG_PROBE_DOWN };

/* Options; may change at any time. Sizes are tickets. */
struct hg_probe_conf {
    enum hg_probe_control control;
    uint32_t interval_us;                 /* between two steps */
    uint32_t read_tickets, write_tickets; /* fixed */
    uint32_t initial;                     /* total of both; 0: 2 x cores. Probing only */
    uint32_t cores;
    uint32_t min, max;       /* of each holder */
    double read_write_ratio; /* share of reads, 0 to 1 */
    double weight;           /* of the newest size in the moving average, above 0 to 1 */
    double step;             /* multiple, 0.01 to 0.5 */
};

/* How much work a request is. */
enum hg_probe_mix {
    HG_PROBE_ALIKE, /* they are alike */
    HG_PROBE_FRESH, /* many are there that are not known yet, */
    HG_PROBE_MIXED  /* or some are short, and some long (core/linework): that of their class */
};

/* What was seen of one holder since the step before. */
struct hg_probe_holder_seen {
    int64_t peak;        /* most tickets out at a time */
    int64_t out;         /* now, stranded ones included, but for keys that take unusually long */
    uint64_t finished;   /* requests that gave their ticket back after an answer, exempt ones,
                            evicted ones and late answers to those not counted */
    uint64_t service_us; /* sum of the time that these held their tickets */
    uint64_t work_us;    /* of what they usually do, see core/workclass; 0: not known */
    enum hg_probe_mix mix;
    uint64_t short_count;  /* of short classes, beside long ones (core/linework): answers, */
    uint64_t short_us;     /* and the time by which they took longer than usual */
    uint64_t work_squares; /* of the squares of that, in 256 us² */
    uint64_t waiting;      /* requests that wait for a ticket now */
    uint64_t queue_min_us; /* smallest sojourn in line; 0 when nobody had to wait */
};

struct hg_probe_seen {
    uint64_t now_us;
    struct hg_probe_holder_seen holder[HG_TICKET_KINDS];
    uint64_t oldest_us; /* how long the oldest request without an answer has been with the store */
};

/* Counted since the beginning; names of MongoDB's `monitor` section. */
struct hg_probe_stats {
    uint64_t probed_stable, probed_up, probed_down;
    uint64_t increased, decreased;               /* times */
    uint64_t amount_increased, amount_decreased; /* tickets, both holders */
    uint64_t stalls;
};

#define HG_PROBE_HISTORY 8 /* samples that a step is compared with */

/* The last samples at one size: throughput, a second, and what was out. */
struct hg_probe_history {
    double rate[HG_PROBE_HISTORY], out[HG_PROBE_HISTORY];
    uint32_t count, at;
};

/* Intervals, until enough was finished to tell something. */
struct hg_probe_sample {
    uint64_t finished, service_us, work_us, elapsed_us;
    uint64_t short_count, short_us;
    double work_squares;
    double out; /* sum of what was out at the intervals' ends */
    uint32_t intervals;
    bool full;    /* at each of their ends requests waited, or all tickets were out */
    bool reached; /* a peak reached the size */
};

/* Of the adaptive control; what it holds is its own affair. */
struct hg_probe_adaptive {
    struct hg_probe_sample sample;
    struct hg_probe_history stable, probed;
    double unit_us;                /* work that counts as one request; 0: not known */
    uint64_t mixed_us;             /* each request counts as its work for so long still; */
    bool in_work;                  /* and did, in the last sample */
    double base_us;                /* service time when nothing queues in the store; 0: unknown */
    double usual_us, usual_rate;   /* of late */
    double variance;               /* of a sample's throughput, relative */
    double share[HG_TICKET_KINDS]; /* of the demand */
    double recent_peak;            /* most that were out; fades */
    double probed_size;            /* of the step under way */
    double grown;                  /* size of the next step: up above 0, down below */
    double roof;                   /* size before it was capped on suspicion; 0: it was not */
    double before_stall;           /* size at its beginning; 0: there is none */
    uint64_t idle_us;              /* nothing was finished for so long while something was out */
    uint32_t skip;                 /* samples to ignore: they tell of the size before */
    uint32_t wait, backoff;        /* samples until the next step; what the next failure makes it */
    uint32_t failures;             /* of steps up, since one down */
    uint32_t free;                 /* samples since requests waited all the time */
    uint32_t suspicions;           /* samples in a row that were suspect */
    bool aimed;                    /* the step under way goes by Little's law */
    bool engaged;                  /* the store is what requests wait for */
    bool down_next;                /* when neither direction is called for */
};

struct hg_probe {
    struct hg_probe_conf conf;
    enum hg_probe_state state;
    double stable_size;             /* total, with fractions */
    double stable_throughput;       /* requests a second */
    bool started;                   /* the first step only takes a baseline */
    uint64_t last_us;               /* time of the last step */
    int64_t peak[HG_TICKET_KINDS];  /* since the last step in `stable` */
    uint64_t carried;               /* finished in steps without time */
    uint32_t size[HG_TICKET_KINDS]; /* in force */
    struct hg_probe_stats stats;
    struct hg_probe_adaptive adaptive;
};

/* What became of the initial size. */
enum hg_probe_initial { HG_PROBE_INITIAL_FITS, HG_PROBE_INITIAL_BELOW, HG_PROBE_INITIAL_ABOVE };

/* NULL, or what is wrong with the options, as "'option': what is accepted". What it says is an
   error where options are read; init and configure clamp it. */
const char *hg_probe_check(const struct hg_probe_conf *conf);

/* Takes over the options and sets the sizes to begin with. Tells whether `initial` was clamped, as
   it lay below 2 x min or above 2 x max: worth a warning. It matters for PROBING only. */
enum hg_probe_initial hg_probe_init(struct hg_probe *probe, const struct hg_probe_conf *conf);
/* New options: what is out of bounds is clamped, another control begins anew, its counters go on.
 */
enum hg_probe_initial hg_probe_configure(struct hg_probe *probe, const struct hg_probe_conf *conf);
/* One step; probe->size holds what is to be in force. Nothing when no time has passed, but what was
   finished counts in the next. */
void hg_probe_step(struct hg_probe *probe, const struct hg_probe_seen *seen);

/* Sizes of a total: reads by the ratio, writes the rest, each within its bounds. */
void hg_probe_split(const struct hg_probe_conf *conf, double total, uint32_t size[HG_TICKET_KINDS]);
const char *hg_probe_state_name(enum hg_probe_state state);

#endif
