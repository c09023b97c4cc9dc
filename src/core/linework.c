// linework - what the requests of one line are, as work
// SPDX-License-Identifier: BSD-3-Clause
#include "core/linework.h"

#define SECOND_US 1000000
#define KNOWN     8       /* services of a class that tell whether it is short: */
#define FAR       16      /* on average no more than so many of the shortest; */
#define FEW       8       /* where that many in a second took longer, these are long */
#define LAST_US   1000000 /* what short ones told holds for so long */
#define TIMES     4      /* one that takes far longer counts as so many times what it was so far, */
#define STEP_US   8000   /* and so much; so one alone tells nothing */
#define EXPLAINS  1.25   /* work is known no better */
#define LOOK_US   100000 /* work is summed up over so long at least, */
#define SLOTS_US  500000 /* and averaged over so long */

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void hg_linework_init(struct hg_linework *of, uint64_t now_us)
{
    *of = (struct hg_linework){.shortest_us = UINT32_MAX,
                               .shortest_next_us = UINT32_MAX,
                               .own = HG_LINEWORK_NO_CLASSES,
                               .elsewhere = HG_LINEWORK_NO_CLASSES,
                               .second_us = now_us,
                               .looked_us = now_us};
}

/* Is it short after all? A mean of few services is off by half now and then. */
bool hg_linework_note_other(struct hg_linework *of, const struct hg_workclass *class)
{
    uint64_t usual_us = class->usual_us;
    bool is_far = usual_us == 0 && class->sum_us / class->count / FAR > of->shortest_us;
    of->far += is_far;
    if (usual_us == 0 && class->count < KNOWN && (!is_far || of->far < FEW)) {
        of->has_new = of->own.has_new = of->has_new_next = true;
        return false;
    }
    if (usual_us == 0 ? class->sum_us / class->count / FAR <= of->shortest_us
                      : usual_us / 4 <= of->shortest_us)
        return true;
    of->has_long = of->own.has_long = of->has_long_next = true;
    return false;
}

/* Without the time in the store's queue. */
uint64_t hg_linework_net_us(const struct hg_linework *of, uint64_t service_us, uint64_t now_us)
{
    uint64_t over_us = hg_linework_over_us(of, now_us);
    uint64_t net_us = service_us > over_us ? service_us - over_us : 0;
    return over_us > 0 && net_us < of->shortest_us ? of->shortest_us : net_us;
}

void hg_linework_note_shortest(struct hg_linework *of, uint32_t usual_us)
{
    of->shortest_next_us = usual_us;
    of->own.shortest_us = smaller(of->own.shortest_us, usual_us);
    of->shortest_us = smaller(of->shortest_us, usual_us);
}

void hg_linework_note_over(struct hg_linework *of, uint32_t usual_us, uint64_t service_us,
                           uint64_t now_us)
{
    uint64_t over_us = service_us > usual_us ? service_us - usual_us : 0;
    uint64_t most_us = TIMES * (uint64_t)of->over_us + STEP_US;
    if (over_us > most_us)
        over_us = most_us;
    of->over_us = (uint32_t)((15 * (uint64_t)of->over_us + over_us) / 16);
    if (of->slower_us > of->over_us)
        of->slower_us = of->over_us;
    of->usual_us = usual_us;
    of->noted_us = now_us;
}

/* The same of its own short requests. */
static uint32_t own_over_us(const struct hg_linework *of, uint64_t now_us)
{
    uint32_t over_us = of->over_us > of->slower_us ? of->over_us - of->slower_us : 0;
    bool on = (of->has_new || of->has_long) && of->noted_us != 0 && now_us < of->noted_us + LAST_US;
    return on && over_us > HG_LINEWORK_OVER_US && over_us > (of->usual_us + of->slower_us) / 3
               ? over_us
               : 0;
}

uint32_t hg_linework_over_us(const struct hg_linework *of, uint64_t now_us)
{
    uint32_t over_us = own_over_us(of, now_us);
    return over_us > of->elsewhere.over_us ? over_us : of->elsewhere.over_us;
}

struct hg_linework_classes hg_linework_tell(const struct hg_linework *of, uint64_t now_us)
{
    struct hg_linework_classes own = of->own;
    own.over_us = own_over_us(of, now_us);
    return own;
}

void hg_linework_add(struct hg_linework_classes *sum, const struct hg_linework_classes *line)
{
    sum->shortest_us = smaller(sum->shortest_us, line->shortest_us);
    if (line->over_us > sum->over_us)
        sum->over_us = line->over_us;
    sum->has_new |= line->has_new;
    sum->has_long |= line->has_long;
}

/* All workers together. */
static void sum_up(struct hg_linework *of)
{
    struct hg_linework_classes all = of->own;
    hg_linework_add(&all, &of->elsewhere);
    of->shortest_us = all.shortest_us;
    of->has_new = all.has_new;
    of->has_long = all.has_long;
}

void hg_linework_hear(struct hg_linework *of, const struct hg_linework_classes *others)
{
    of->elsewhere = *others;
    sum_up(of);
}

bool hg_linework_explains(const struct hg_linework *of, uint32_t out)
{
    return out <= EXPLAINS * of->slots + 2;
}

void hg_linework_forgive(struct hg_linework *of)
{
    of->slower_us = of->over_us;
}

void hg_linework_tick(struct hg_linework *of, uint64_t now_us)
{
    uint64_t elapsed_us = now_us - of->looked_us;
    if (elapsed_us >= LOOK_US) {
        double weight = elapsed_us < SLOTS_US ? (double)elapsed_us / SLOTS_US : 1;
        of->slots += weight * ((double)of->done_us / (double)elapsed_us - of->slots);
        of->done_us = 0;
        of->looked_us = now_us;
    }
    if (now_us - of->second_us < SECOND_US)
        return;
    of->second_us = now_us;
    of->slower_us -= of->slower_us / 10;
    of->own.shortest_us = of->shortest_next_us;
    of->own.has_new = of->has_new_next;
    of->own.has_long = of->has_long_next;
    of->shortest_next_us = UINT32_MAX;
    of->has_new_next = of->has_long_next = false;
    of->far = 0;
    sum_up(of);
}
