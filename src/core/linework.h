// linework - what the requests of one line are, as work: which are short, and do these wait in the
// store?
// SPDX-License-Identifier: BSD-3-Clause
//
// A class (core/workclass) is short if it takes at most four times as long as the shortest class
// that had an answer in this second or the one before. Short requests wait in the store behind long
// ones, and tell how long its queue is: they wait as long as all others in it, and for them that is
// much. So of a class that is not known yet that much of a service is no work, but waiting. A class
// that has had less than eight answers counts as long, and is new.
//
// Each worker has a line of its own for a server. What its classes are is told to the others: so a
// worker that has long requests only knows that they are long, and that short ones wait.
//
// Pure; belongs to its worker's thread.
#ifndef HG_CORE_LINEWORK_H
#define HG_CORE_LINEWORK_H

#include "core/workclass.h"

#define HG_LINEWORK_OVER_US 2000 /* what short requests may take longer than usual in any case */

/* Of one line, or of several; as of the last second. */
struct hg_linework_classes {
    uint32_t shortest_us; /* usual service; UINT32_MAX: none is known */
    uint32_t over_us;     /* by which short requests take longer, see hg_linework_over_us */
    bool has_new;         /* was one answered of a class that is not known, */
    bool has_long;        /* or of one that is long? */
};

struct hg_linework {
    uint32_t shortest_us;           /* of all workers, */
    bool has_new, has_long;         /* likewise */
    uint32_t shortest_next_us;      /* this line's, in this second */
    struct hg_linework_classes own; /* in this one and the one before; over_us is not used */
    bool has_new_next, has_long_next;
    struct hg_linework_classes elsewhere;
    uint32_t far;       /* answers of unknown classes in this second that took far longer */
    uint64_t second_us; /* when this second began */
    uint32_t over_us;   /* by which the last sixteen or so of short ones took longer than usual */
    uint32_t usual_us;  /* of the last one of these */
    uint32_t slower_us; /* that much of over_us is no queue: they have become slower */
    uint64_t noted_us;  /* when that was answered; 0: never */
    uint64_t done_us;   /* the caller's: work since looked_us */
    uint64_t looked_us;
    double slots; /* work a time: what the store does at a time, on average */
};

void hg_linework_init(struct hg_linework *of, uint64_t now_us);
/* Every 5 to 100 ms. */
void hg_linework_tick(struct hg_linework *of, uint64_t now_us);
/* Does the store do at a time about what is out, so that none can wait in it? */
bool hg_linework_explains(const struct hg_linework *of, uint32_t out);
/* They take longer than usual for another reason than the store's queue. What is believed so is a
   tenth less each second, lest it be wrong for ever. */
void hg_linework_forgive(struct hg_linework *of);
/* By how much short requests take longer than usual, if that is a third of it and 2 ms, and there
   are others; else 0. As of the last second, on any worker. */
uint32_t hg_linework_over_us(const struct hg_linework *of, uint64_t now_us);

/* ---- several workers ---- */

/* Of none. */
#define HG_LINEWORK_NO_CLASSES ((struct hg_linework_classes){.shortest_us = UINT32_MAX})

/* What other workers are to know of this line. */
struct hg_linework_classes hg_linework_tell(const struct hg_linework *of, uint64_t now_us);
/* Adds the classes of one line to those of others. */
void hg_linework_add(struct hg_linework_classes *sum, const struct hg_linework_classes *line);
/* Does the line have short requests of its own? */
static inline bool hg_linework_has_short(const struct hg_linework *of)
{
    return of->own.shortest_us != UINT32_MAX && of->own.shortest_us / 4 <= of->shortest_us;
}
/* What other workers tell, all together. */
void hg_linework_hear(struct hg_linework *of, const struct hg_linework_classes *others);

/* Is it usual for a short class, or hardly longer? */
static inline bool hg_linework_is_in_time(const struct hg_linework *of, uint32_t usual_us,
                                          uint64_t service_us)
{
    uint64_t over_us = (usual_us + of->slower_us) / 3;
    return service_us <= usual_us + of->slower_us +
                             (over_us > HG_LINEWORK_OVER_US ? over_us : HG_LINEWORK_OVER_US);
}

/* For hg_linework_note. */
bool hg_linework_note_other(struct hg_linework *of, const struct hg_workclass *class);
uint64_t hg_linework_net_us(const struct hg_linework *of, uint64_t service_us, uint64_t now_us);
void hg_linework_note_shortest(struct hg_linework *of, uint32_t usual_us);
void hg_linework_note_over(struct hg_linework *of, uint32_t usual_us, uint64_t service_us,
                           uint64_t now_us);

/* A request of the class took so long: the work that it was, and whether the class is short.
   `waits` as in hg_workclass_note. */
static inline uint32_t hg_linework_note(struct hg_linework *of, struct hg_workclass *class,
                                        uint64_t service_us, bool waits, uint64_t now_us,
                                        bool *ret_short)
{
    uint32_t usual_us = class->usual_us;
    if (HG_UNLIKELY(usual_us == 0))
        service_us = hg_linework_net_us(of, service_us, now_us);
    uint32_t work_us = hg_workclass_note(class, service_us, waits, now_us);
    if (HG_UNLIKELY(usual_us - 1 < of->shortest_next_us - 1)) /* 0 is: not known */
        hg_linework_note_shortest(of, usual_us);
    *ret_short = usual_us != 0 && usual_us / 4 <= of->shortest_us;
    if (HG_UNLIKELY(!*ret_short))
        *ret_short = hg_linework_note_other(of, class);
    else if (HG_UNLIKELY(of->has_new || of->has_long))
        hg_linework_note_over(of, usual_us, service_us, now_us);
    return work_us;
}

#endif
