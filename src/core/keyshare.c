// keyshare - how many tickets of a holder the requests for one key may have at a time
// SPDX-License-Identifier: BSD-3-Clause
//
// See keyshare.h. A part is in one list at a time: that of its chain while its key has no record,
// else one of its key's.
#include "core/keyshare.h"

#include <assert.h>

#define MEAN_US    2000000 /* over which tickets in use are averaged */
#define SECOND_US  1000000
#define SLOW_US    1000   /* usual service from which on a second request of a key is looked at */
#define CALM_US    200000 /* so long at most a key counts as proven without another look */
#define STALL_US   100000 /* nothing was answered for so long: the store stands still */
#define SILENCE_US 300000 /* and for so long, and four usual services: it stood still */

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint64_t since(uint64_t now_us, uint64_t then_us)
{
    return now_us > then_us ? now_us - then_us : 0;
}

/* ---- what is fast ---- */

/* A tenant that nothing is known of is measured by what others' requests take. */
static uint64_t usual_us(const struct hg_keyshare *ks, uint32_t of_tenant_us)
{
    if (of_tenant_us != 0)
        return of_tenant_us;
    return ks->usual.us != 0 ? ks->usual.us : ks->view.usual_us;
}

static uint64_t fast_us(const struct hg_keyshare *ks, uint32_t of_tenant_us)
{
    uint64_t us = 4 * usual_us(ks, of_tenant_us);
    return us > HG_KEYSHARE_FAST_US ? us : HG_KEYSHARE_FAST_US;
}

static uint64_t last_answer_us(const struct hg_keyshare *ks, uint64_t answered_us)
{
    return answered_us > ks->view.answered_us ? answered_us : ks->view.answered_us;
}

static struct hg_keyshare_part *part_at(struct hg_list *node)
{
    return HG_CONTAINER_OF(node, struct hg_keyshare_part, node);
}

/* Somebody had an answer then. */
static void note_answer(struct hg_keyshare *ks, uint64_t answered_us)
{
    uint64_t usual = 4 * usual_us(ks, 0);
    if (answered_us <= ks->answered_us)
        return;
    if (ks->answered_us != 0 &&
        answered_us - ks->answered_us > (usual > SILENCE_US ? usual : SILENCE_US))
        ks->resumed_us = answered_us;
    ks->answered_us = answered_us;
}

/* How old the oldest under way was when the store last answered anything. */
static uint64_t oldest_age_us(const struct hg_keyshare *ks, const struct hg_keyshare_key *key,
                              uint64_t answered_us)
{
    struct hg_list *first = hg_list_first((struct hg_list *)(uintptr_t)&key->running);
    return first == NULL ? 0 : since(last_answer_us(ks, answered_us), part_at(first)->since_us);
}

/* Likewise, or how long a slot had been stranded: since its client has gone, or its answer was
   late. */
static uint64_t held_for_us(const struct hg_keyshare *ks, const struct hg_keyshare_key *key,
                            uint64_t answered_us)
{
    uint64_t age_us = oldest_age_us(ks, key, answered_us), stranded_us = 0;
    if (key->stranded > 0)
        stranded_us = since(last_answer_us(ks, answered_us), key->stranded_us);
    return age_us > stranded_us ? age_us : stranded_us;
}

static bool is_overdue(const struct hg_keyshare *ks, const struct hg_keyshare_key *key,
                       uint64_t answered_us)
{
    return held_for_us(ks, key, answered_us) > fast_us(ks, key->usual_us);
}

static bool is_proven(const struct hg_keyshare *ks, const struct hg_keyshare_key *key,
                      uint64_t answered_us, uint64_t now_us)
{
    return key->fast_us != 0 && since(now_us, key->fast_us) < HG_KEYSHARE_LAST_US &&
           !is_overdue(ks, key, answered_us);
}

bool hg_keyshare_is_dear(const struct hg_keyshare *ks, const struct hg_keyshare_key *key,
                         uint64_t answered_us, uint64_t now_us)
{
    if (is_proven(ks, key, answered_us, now_us))
        return false;
    return key->slow >= 2 || (key->out + key->stranded > 1 && is_overdue(ks, key, answered_us));
}

/* ---- what is usual ---- */

/* A median, by steps: a sixteenth up or down with each sample; up to half, once several in a row
   were above it: when the store becomes slower, that is soon usual. */
static void learn(struct hg_keyshare_usual *usual, uint32_t service_us)
{
    uint32_t us = usual->us, step = us / 16 + 1;
    if (service_us == 0)
        service_us = 1; /* 0 is: not known */
    if (us == 0 || service_us <= us) {
        usual->us = us == 0 || us - service_us < step ? service_us : us - step;
        usual->rises = 0;
        return;
    }
    step <<= usual->rises / 2;
    usual->us = service_us - us < step ? service_us : us + step;
    usual->rises += usual->rises < 6;
}

/* An answer, be it of a watched key or not. A sixteenth of the difference. */
static void note_recent(struct hg_keyshare *ks, uint32_t service_us)
{
    int64_t off = (int64_t)service_us - ks->recent_us;
    ks->recent_us = ks->recent_us == 0 ? service_us : (uint32_t)(ks->recent_us + off / 16);
}

void hg_keyshare_sample(struct hg_keyshare *ks, struct hg_keyshare_tenant *of, uint32_t service_us)
{
    learn(&of->usual, service_us);
    learn(&ks->usual, service_us);
    note_recent(ks, service_us);
}

/* ---- records ---- */

static uint32_t held_by(const struct hg_keyshare_key *key)
{
    return key->out + key->stranded;
}

static void set_unproven(struct hg_keyshare *ks, struct hg_keyshare_key *key, bool unproven)
{
    if (key->is_unproven == unproven)
        return;
    key->is_unproven = unproven;
    if (unproven)
        key->calm_us = 0;
    ks->unproven_out += unproven ? held_by(key) : -held_by(key);
}

static void enter(struct hg_keyshare_key *key, struct hg_keyshare_part *part)
{
    bool runs = part->since_us != 0;
    hg_list_append(runs ? &key->running : &key->lined, &part->node);
    part->key = key;
    key->engaged++;
    key->out += runs;
}

/* Sorts by age: a chain is in the order in which its parts were engaged. */
static void sort_in(struct hg_keyshare_key *key, struct hg_keyshare_part *part)
{
    struct hg_list *before = &key->running;
    while (before->prev != &key->running && part_at(before->prev)->since_us > part->since_us)
        before = before->prev;
    hg_list_put_before(before, &part->node);
}

/* A record, with those of the key that are engaged already. NULL: there is no spare one. */
static struct hg_keyshare_key *make(struct hg_keyshare *ks, uint32_t id, uint32_t of_tenant_us,
                                    uint64_t now_us)
{
    struct hg_keyshare_chain *chain = &ks->chains[hg_keyshare_chain_of(id)];
    if (ks->key_count >= HG_KEYSHARE_MOST)
        hg_keyshare_sweep(ks, now_us);
    struct hg_keyshare_key *key = ks->spare;
    if (key == NULL)
        return NULL;
    ks->spare = key->next;
    *key = (struct hg_keyshare_key){.id = id, .usual_us = of_tenant_us, .used_us = now_us};
    hg_list_init(&key->running);
    hg_list_init(&key->lined);
    hg_list_init(&key->parked);
    HG_LIST_EACH(node, &chain->parts)
    {
        struct hg_keyshare_part *part = part_at(node);
        if (part->id != id)
            continue;
        hg_list_remove(node);
        enter(key, part);
        if (part->since_us != 0) {
            hg_list_remove(node);
            sort_in(key, part);
            key->started += part->since_us > ks->second_us;
        }
    }
    key->next = chain->keys;
    chain->keys = key;
    ks->key_count++;
    return key;
}

static bool is_used(const struct hg_keyshare_key *key)
{
    return key->engaged > 0 || key->waiting > 0 || key->is_pinned;
}

void hg_keyshare_sweep(struct hg_keyshare *ks, uint64_t now_us)
{
    bool many = ks->key_count >= HG_KEYSHARE_MOST;
    if (ks->key_count == 0)
        return;
    for (unsigned i = 0; i < HG_KEYSHARE_CHAINS; i++)
        for (struct hg_keyshare_key **at = &ks->chains[i].keys; *at != NULL;) {
            struct hg_keyshare_key *key = *at;
            if (is_used(key) || (!many && since(now_us, key->used_us) < HG_KEYSHARE_LAST_US)) {
                at = &key->next;
                continue;
            }
            *at = key->next;
            hg_keyshare_give_room(ks, key);
            ks->key_count--;
        }
}

struct hg_keyshare_key *hg_keyshare_each(struct hg_keyshare *ks, struct hg_keyshare_key *last)
{
    unsigned i = 0;
    if (ks->key_count == 0)
        return NULL;
    if (last != NULL && last->next != NULL)
        return last->next;
    if (last != NULL)
        i = hg_keyshare_chain_of(last->id) + 1;
    while (i < HG_KEYSHARE_CHAINS && ks->chains[i].keys == NULL)
        i++;
    return i < HG_KEYSHARE_CHAINS ? ks->chains[i].keys : NULL;
}

void hg_keyshare_init(struct hg_keyshare *ks, struct hg_keyshare_counts *counts)
{
    *ks = (struct hg_keyshare){
        .counts = counts, .watch = UINT32_MAX, .share = UINT32_MAX, .unproven_share = UINT32_MAX};
    for (unsigned i = 0; i < HG_KEYSHARE_CHAINS; i++)
        hg_list_init(&ks->chains[i].parts);
}

struct hg_keyshare_key *hg_keyshare_take_record(struct hg_keyshare *ks)
{
    struct hg_keyshare_key *key = ks->spare;
    if (key != NULL) {
        ks->spare = key->next;
        return key;
    }
    for (unsigned i = 0; i < HG_KEYSHARE_CHAINS; i++)
        if ((key = ks->chains[i].keys) != NULL) {
            ks->chains[i].keys = key->next;
            ks->key_count--;
            return key;
        }
    return NULL;
}

/* ---- the share ---- */

static uint32_t part_of(uint32_t share, uint32_t workers)
{
    return larger(1, share / larger(1, workers));
}

void hg_keyshare_tick(struct hg_keyshare *ks, const struct hg_keyshare_view *view)
{
    uint64_t elapsed_us = since(view->now_us, ks->view.now_us);
    double weight = elapsed_us < MEAN_US ? (double)elapsed_us / MEAN_US : 1;
    ks->mean_out += weight * (view->out - ks->mean_out);
    ks->view = *view;
    note_answer(ks, view->answered_us);
    double in_use = ks->mean_out < view->size ? ks->mean_out : view->size;
    ks->share = larger(HG_KEYSHARE_LEAST, (uint32_t)(in_use * view->pct / 100));
    ks->unproven_share = part_of(larger(HG_KEYSHARE_LEAST, (uint32_t)(in_use / 2)), view->workers);
    ks->watch = part_of(ks->share, view->workers);
    /* Of many requests some share a chain, whatever their keys are: that is no reason to look. */
    uint32_t crowd = 1 + part_of(2 * (uint32_t)in_use, view->workers) / HG_KEYSHARE_CHAINS;
    if (usual_us(ks, 0) >= SLOW_US && crowd < ks->watch)
        ks->watch = crowd;
    if (view->pct >= 100)
        ks->share = ks->unproven_share = ks->watch = UINT32_MAX;
    if (since(view->now_us, ks->second_us) < SECOND_US)
        return;
    ks->started_before = ks->second_us != 0 ? view->started - ks->second_started : 0;
    ks->has_second = ks->second_us != 0;
    ks->second_started = view->started;
    ks->second_us = view->now_us;
    for (struct hg_keyshare_key *key = NULL; (key = hg_keyshare_each(ks, key)) != NULL;) {
        key->started_before = key->started;
        key->started = 0;
    }
}

/* Is another key active? */
static bool has_others(const struct hg_keyshare *ks, const struct hg_keyshare_key *key)
{
    uint64_t all = since(ks->view.started, ks->second_started) + ks->started_before;
    return !ks->has_second || all > (uint64_t)key->started + key->started_before;
}

/* A key that is proven now stays so until then, if no more than what is under way ends, and what is
   usual does not fall. */
static uint64_t calm_until_us(const struct hg_keyshare *ks, const struct hg_keyshare_key *key,
                              uint64_t now_us)
{
    struct hg_list *first = hg_list_first((struct hg_list *)(uintptr_t)&key->running);
    uint64_t last_us = key->fast_us + HG_KEYSHARE_LAST_US, limit_us = fast_us(ks, key->usual_us);
    uint64_t overdue_us = (first != NULL ? part_at(first)->since_us : now_us) +
                          (limit_us < CALM_US ? limit_us : CALM_US);
    if (key->stranded > 0)
        return 0;
    return overdue_us < last_us ? overdue_us : last_us;
}

static void judge(struct hg_keyshare *ks, struct hg_keyshare_key *key, uint64_t answered_us,
                  uint64_t now_us)
{
    bool proven = is_proven(ks, key, answered_us, now_us);
    set_unproven(ks, key, !proven);
    if (proven)
        key->calm_us = calm_until_us(ks, key, now_us);
}

/* Would `engaged` of it be within its bounds? */
static bool is_within(struct hg_keyshare *ks, struct hg_keyshare_key *key, uint32_t engaged,
                      uint64_t answered_us, uint64_t now_us)
{
    judge(ks, key, answered_us, now_us);
    return !key->is_unproven || (key->engaged == 0 && key->slow == 0) ||
           (engaged < ks->share && ks->unproven_out < ks->unproven_share) || !has_others(ks, key);
}

uint64_t hg_keyshare_service_us(const struct hg_keyshare *ks, const struct hg_keyshare_key *key,
                                uint64_t answered_us)
{
    uint64_t age_us = held_for_us(ks, key, answered_us);
    return age_us > key->service_us ? age_us : key->service_us;
}

bool hg_keyshare_stands_out(const struct hg_keyshare *ks, const struct hg_keyshare_key *key,
                            uint64_t answered_us)
{
    return hg_keyshare_service_us(ks, key, answered_us) >= 4 * (uint64_t)ks->recent_us;
}

/* Would its wait be in vain? Only where the key has proved slow, and while the store answers. */
static bool is_in_vain(const struct hg_keyshare *ks, const struct hg_keyshare_key *key,
                       uint64_t answered_us, uint64_t now_us)
{
    if ((!is_overdue(ks, key, answered_us) && key->slow < 2) ||
        !hg_keyshare_stands_out(ks, key, answered_us))
        return false;
    if (since(now_us, last_answer_us(ks, answered_us)) > STALL_US ||
        since(now_us, ks->resumed_us) < SECOND_US)
        return false;
    uint64_t service_us = hg_keyshare_service_us(ks, key, answered_us);
    return key->waiting >= 4 * (uint64_t)ks->share ||
           (key->waiting + 1) * service_us / ks->share > ks->view.timeout_us;
}

static uint32_t count_of(const struct hg_keyshare *ks, uint32_t id)
{
    uint32_t n = 0;
    const struct hg_list *head = &ks->chains[hg_keyshare_chain_of(id)].parts;
    for (struct hg_list *node = head->next; node != head; node = node->next)
        n += part_at(node)->id == id;
    return n;
}

enum hg_keyshare_verdict hg_keyshare_ask(struct hg_keyshare *ks,
                                         const struct hg_keyshare_asks *asks,
                                         struct hg_keyshare_key **ret_key)
{
    struct hg_keyshare_key *key = hg_keyshare_find(ks, asks->id);
    *ret_key = NULL;
    note_answer(ks, asks->answered_us);
    if (ks->share == UINT32_MAX)
        return HG_KEYSHARE_GO;
    if (key == NULL) {
        uint32_t least = ks->watch < ks->share ? ks->watch : ks->share;
        if (hg_keyshare_count(ks->counts, asks->id) + asks->elsewhere < least ||
            count_of(ks, asks->id) + asks->elsewhere < least)
            return HG_KEYSHARE_GO;
        key = make(ks, asks->id, asks->of->usual.us, asks->now_us);
        if (key == NULL)
            return HG_KEYSHARE_GO;
    }
    *ret_key = key;
    key->usual_us = asks->of->usual.us;
    key->used_us = asks->now_us;
    if (is_within(ks, key, key->engaged + asks->elsewhere, asks->answered_us, asks->now_us))
        return HG_KEYSHARE_GO;
    if (!hg_keyshare_is_bound(key, asks->now_us)) {
        key->held_us = asks->now_us;
        key->refused = 0;
    }
    key->refused_us = asks->now_us;
    if (!is_in_vain(ks, key, asks->answered_us, asks->now_us))
        return HG_KEYSHARE_PARK;
    key->refused++;
    return HG_KEYSHARE_REFUSE;
}

bool hg_keyshare_may_start(struct hg_keyshare *ks, const struct hg_keyshare_part *part,
                           uint64_t answered_us, uint64_t now_us)
{
    struct hg_keyshare_key *key = part->key;
    if (key == NULL || is_within(ks, key, held_by(key), answered_us, now_us))
        return true;
    return held_by(key) == 0 && key->slow == 0; /* its one; is_within sees it engaged already */
}

bool hg_keyshare_is_bound(const struct hg_keyshare_key *key, uint64_t now_us)
{
    return key->held_us != 0 &&
           (key->waiting > 0 || since(now_us, key->refused_us) < HG_KEYSHARE_LAST_US);
}

/* ---- engaged ones ---- */

void hg_keyshare_engage(struct hg_keyshare *ks, struct hg_keyshare_part *part)
{
    struct hg_keyshare_key *key = hg_keyshare_find(ks, part->id);
    hg_keyshare_add(ks, part->id, 1);
    part->is_engaged = true;
    part->since_us = 0;
    part->key = NULL;
    if (key != NULL)
        enter(key, part);
    else
        hg_list_append(&ks->chains[hg_keyshare_chain_of(part->id)].parts, &part->node);
}

void hg_keyshare_start_known(struct hg_keyshare *ks, struct hg_keyshare_part *part, uint64_t now_us)
{
    struct hg_keyshare_key *key = part->key;
    hg_list_remove(&part->node);
    hg_list_append(&key->running, &part->node);
    key->out++;
    key->started++;
    key->used_us = now_us;
    ks->unproven_out += key->is_unproven;
}

static void note_service(struct hg_keyshare *ks, struct hg_keyshare_key *key,
                         struct hg_keyshare_tenant *of, uint64_t us, bool answered, uint64_t now_us)
{
    uint32_t service_us = us < UINT32_MAX / 8 ? (uint32_t)us : UINT32_MAX / 8;
    bool fast = us <= fast_us(ks, of->usual.us);
    key->usual_us = of->usual.us;
    if (!answered && (fast || since(now_us, ks->view.answered_us) > STALL_US))
        return; /* it says nothing */
    if (answered && hg_keyshare_counts_as_sample(of, now_us)) {
        note_recent(ks, service_us);
        if (since(now_us, key->learnt_us) >= HG_KEYSHARE_LAST_US) {
            key->learnt_us = now_us;
            learn(&of->usual, service_us);
            learn(&ks->usual, service_us);
        }
    }
    key->service_us = key->service_us == 0 ? service_us : (3 * key->service_us + service_us) / 4;
    key->slow = fast ? 0 : key->slow + 1;
    if (fast)
        key->fast_us = now_us;
}

void hg_keyshare_end_known(struct hg_keyshare *ks, struct hg_keyshare_part *part,
                           uint64_t service_us, bool answered, uint64_t now_us)
{
    struct hg_keyshare_key *key = part->key;
    part->key = NULL;
    key->engaged--;
    key->used_us = now_us;
    if (part->since_us == 0)
        return;
    key->out--;
    ks->unproven_out -= key->is_unproven;
    note_service(ks, key, part->of, service_us, answered, now_us);
    if (answered && (now_us >= key->calm_us || key->slow > 0)) /* by the store, now */
        judge(ks, key, now_us, now_us);
}

void hg_keyshare_strand(struct hg_keyshare *ks, uint32_t id, int change, uint64_t now_us)
{
    struct hg_keyshare_key *key = hg_keyshare_find(ks, id);
    if (key == NULL && change > 0)
        key = make(ks, id, 0, now_us);
    if (key == NULL || (change < 0 && key->stranded == 0))
        return; /* there was no record to spare: the slot is not counted */
    hg_keyshare_add(ks, id, (uint32_t)change);
    key->calm_us = 0;
    if (key->stranded == 0)
        key->stranded_us = now_us;
    key->stranded += (uint32_t)change;
    key->engaged += (uint32_t)change;
    key->used_us = now_us;
    if (key->is_unproven)
        ks->unproven_out += (uint32_t)change;
}

/* ---- parked ones ---- */

void hg_keyshare_park(struct hg_keyshare *ks, struct hg_keyshare_part *part,
                      struct hg_keyshare_key *key, uint64_t now_us)
{
    part->key = key;
    part->is_parked = true;
    hg_list_append(&key->parked, &part->node);
    key->waiting++;
    key->used_us = now_us;
    ks->parked++;
}

void hg_keyshare_unpark(struct hg_keyshare *ks, struct hg_keyshare_part *part)
{
    assert(part->is_parked);
    hg_list_remove(&part->node);
    part->key->waiting--;
    part->key = NULL;
    part->is_parked = false;
    ks->parked--;
}

struct hg_keyshare_part *hg_keyshare_next(struct hg_keyshare *ks, struct hg_keyshare_key *key,
                                          uint32_t elsewhere, uint64_t answered_us, uint64_t now_us)
{
    if (key->waiting == 0 || (ks->share != UINT32_MAX &&
                              !is_within(ks, key, key->engaged + elsewhere, answered_us, now_us)))
        return NULL;
    return part_at(hg_list_first(&key->parked));
}
