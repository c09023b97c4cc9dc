// hot - hot keys on the path of a request, worker's side
// SPDX-License-Identifier: BSD-3-Clause
#include "front/hot.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- keys ---- */

struct hg_hotkey_key hg_hot_key(const struct hg_worker *worker, struct hg_span table,
                                struct hg_span row, uint8_t room[HG_HOTKEY_KEY_MAX])
{
    uint64_t seed = worker->front->hash_seed;
    size_t len = row.len < HG_HOTKEY_KEY_MAX ? row.len : HG_HOTKEY_KEY_MAX;
    if (table.len == 0)
        return hg_hot_plain_key(hg_span(row.at, len),
                                (uint32_t)XXH3_64bits_withSeed(row.at, row.len, seed));
    size_t table_len = table.len < HG_HOTKEY_KEY_MAX ? table.len : HG_HOTKEY_KEY_MAX;
    if (len > HG_HOTKEY_KEY_MAX - table_len)
        len = HG_HOTKEY_KEY_MAX - table_len;
    memcpy(room, table.at, table_len);
    if (len > 0)
        memcpy(room + table_len, row.at, len);
    /* The table's hash and length seed the row's: "a" + "bc" is not "ab" + "c". */
    seed ^= XXH3_64bits_withSeed(table.at, table.len, seed + table.len);
    return (struct hg_hotkey_key){room, (uint32_t)XXH3_64bits_withSeed(row.at, row.len, seed),
                                  (uint8_t)(table_len + len), (uint8_t)table_len};
}

/* ---- refusing ---- */

bool hg_hot_refuses_listed(struct hg_worker *worker, struct hg_lane *lane,
                           const struct hg_hotkey_key *key, bool exempt, unsigned *ret_percent)
{
    struct hg_bucket *bucket = lane->bucket;
    struct hg_keylist *list = lane->hot_list->keys;
    int mode = atomic_load_explicit(&bucket->hotkey_mode, memory_order_relaxed);
    /* The list goes at the end of the epoch; what it says ends at once. */
    if (exempt || mode == HG_MODE_OFF ||
        atomic_load_explicit(&bucket->hotkey_threshold, memory_order_relaxed) == 0 ||
        !atomic_load_explicit(&bucket->hotkey_tracking, memory_order_relaxed))
        return false;
    int at = hg_keylist_find(list, key);
    if (HG_LIKELY(at < 0) || !hg_keylist_refuses(list, at, &worker->hot.prng))
        return false;
    if (mode == HG_MODE_OBSERVE) {
        hg_keylist_forgive(list, at);
        hg_counter_add(&lane->hotkey_would_reject, 1);
        return false;
    }
    hg_counter_add(&lane->hotkey_rejected, 1);
    *ret_percent = hg_keylist_percent(list, at);
    return true;
}

static unsigned left_ms(const struct hg_worker *worker)
{
    uint64_t now_us = worker->loop.now_us;
    uint64_t end_us = atomic_load_explicit(&worker->front->hot.epoch_end_us, memory_order_relaxed);
    return end_us > now_us ? (unsigned)((end_us - now_us + 999) / 1000) : 1;
}

void hg_hot_explain(const struct hg_worker *worker, const struct hg_lane *lane,
                    enum hg_hot_type type, unsigned percent, struct hg_hot_words *ret)
{
    unsigned left = left_ms(worker);
    snprintf(ret->text, sizeof ret->text,
             "this key of tenant '%s' is asked for too often: %u %% of its requests are refused; "
             "next decision in %u ms",
             lane->bucket->name, percent, left);
    snprintf(ret->members, sizeof ret->members,
             "\"limit\":\"kv_hotkey_throttle_threshold\",\"tenant\":\"%s\",\"type\":\"%s\","
             "\"percent\":%u,\"retry_after_ms\":%u",
             lane->bucket->name, hg_hot_type_name(type), percent, left);
}

struct hg_span hg_hot_words(struct hg_worker *worker, const struct hg_lane *lane,
                            enum hg_hot_type type, unsigned percent, bool json)
{
    const struct hg_words_key key = {.of = lane,
                                     .kind = HG_WORDS_HOT,
                                     .json = json,
                                     .number = (uint16_t)(type << 8 | percent),
                                     .other = left_ms(worker)};
    struct hg_span known = hg_words_find(&worker->words, &key);
    if (known.len > 0)
        return known;
    struct hg_hot_words words;
    hg_hot_explain(worker, lane, type, percent, &words);
    return hg_words_keep(&worker->words, &key, words.text, words.members);
}

/* ---- counting ---- */

static struct hg_hotshare *borrow_share(struct hg_hot_worker *hot)
{
    struct hg_list *first = hg_list_first(&hot->idle);
    if (first == NULL)
        return hg_hotshare_new();
    hg_list_remove(first);
    hot->idle_count--;
    return HG_CONTAINER_OF(first, struct hg_hotshare, node);
}

static void keep_share(struct hg_worker *worker, struct hg_hotshare *share)
{
    struct hg_hot_worker *hot = &worker->hot;
    hg_list_remove(&share->node);
    if (hot->idle_count >= hot->idle_max) {
        hg_hotshare_free(&worker->front->hot.mem, share);
        return;
    }
    hg_list_append(&hot->idle, &share->node);
    hot->idle_count++;
}

/* The lane's share of the running epoch; NULL when memory is out. */
static struct hg_hotshare *open_share(struct hg_worker *worker, struct hg_lane *lane)
{
    struct hg_hotshare *share = borrow_share(&worker->hot);
    if (share == NULL)
        return NULL;
    share->bucket = hg_bucket_ref(lane->bucket);
    hg_list_append(&worker->hot.shares, &share->node);
    lane->hot = share;
    return share;
}

static enum hg_hot_size size_of(unsigned setting, unsigned counters)
{
    if (counters == setting)
        return HG_HOT_SIZE_ALL;
    return counters == setting / 2 ? HG_HOT_SIZE_OTHER : HG_HOT_SIZE_SHRUNK;
}

/* A spare one, or a new one. */
static struct hg_hotsketch *borrow_sketch(struct hg_worker *worker, unsigned counters)
{
    struct hg_hot_worker *hot = &worker->hot;
    struct hg_hotmem *mem = &worker->front->hot.mem;
    enum hg_hot_size size =
        size_of(atomic_load_explicit(&mem->counters, memory_order_relaxed), counters);
    struct hg_hotsketch *sketch = NULL;
    while (sketch == NULL && hot->spare_counts[size] > 0) {
        struct hg_list *first = hg_list_first(&hot->spares[size]);
        struct hg_hotsketch *spare = HG_CONTAINER_OF(first, struct hg_hotsketch, node);
        hg_list_remove(first);
        hot->spare_counts[size]--;
        if (spare->counters == counters)
            sketch = spare;
        else
            hg_hotsketch_free(mem, spare); /* made before the setting changed */
    }
    if (sketch == NULL)
        sketch = hg_hotsketch_new(mem, counters);
    if (sketch != NULL)
        hot->taken[size]++;
    return sketch;
}

static struct hg_hotsketch *open_sketch(struct hg_worker *worker, struct hg_hotshare *share,
                                        enum hg_hot_type type)
{
    unsigned setting = atomic_load_explicit(&worker->front->hot.mem.counters, memory_order_relaxed);
    bool shrunk = atomic_load_explicit(&share->bucket->hotkey_shrunk, memory_order_relaxed);
    unsigned full = hg_hot_counters(setting, type, shrunk);
    unsigned small = hg_hot_counters(setting, type, true);
    if (share->refused[type] || setting == 0)
        return NULL;
    struct hg_hotsketch *sketch = borrow_sketch(worker, full);
    if (sketch == NULL && small < full)
        sketch = borrow_sketch(worker, small);
    share->sketches[type] = sketch;
    share->keys[type] = sketch != NULL ? sketch->keys : NULL;
    share->refused[type] = sketch == NULL;
    return sketch;
}

/* False: there is no memory to count it with. */
static bool tell_slowly(struct hg_worker *worker, struct hg_hotshare *share, enum hg_hot_type type,
                        const struct hg_hotkey_key *key)
{
    struct hg_hotsketch *sketch = share->sketches[type];
    if (sketch == NULL)
        sketch = open_sketch(worker, share, type);
    if (sketch == NULL)
        return false;
    return hg_hotkey_tell(sketch->keys, key, 1) ||
           (hg_hotsketch_give_room(&worker->front->hot.mem, sketch) &&
            hg_hotkey_tell(sketch->keys, key, 1));
}

void hg_hot_count(struct hg_worker *worker, struct hg_lane *lane, enum hg_hot_type type,
                  const struct hg_hotkey_key *key)
{
    struct hg_hotshare *share = lane->hot;
    if (HG_UNLIKELY(share == NULL))
        share = open_share(worker, lane);
    if (HG_UNLIKELY(share == NULL)) {
        hg_counter_add(&lane->hotkey_dropped, 1);
        return;
    }
    struct hg_hotkey *all = share->keys[HG_HOT_ALL], *own = share->keys[type];
    bool in_all = HG_LIKELY(all != NULL) && hg_hotkey_tell(all, key, 1);
    bool in_own = HG_LIKELY(own != NULL) && hg_hotkey_tell(own, key, 1);
    if (HG_UNLIKELY(!in_all))
        in_all = tell_slowly(worker, share, HG_HOT_ALL, key);
    if (HG_UNLIKELY(!in_own))
        in_own = tell_slowly(worker, share, type, key);
    hg_counter_add(HG_LIKELY(in_all && in_own) ? &lane->hotkey_counted : &lane->hotkey_dropped, 1);
}

/* ---- ends of epochs ---- */

/* Spares beyond what was in use in the epoch belong to tenants that went idle. */
static void drop_idle_spares(struct hg_hot_worker *hot, struct hg_hotparcel *parcel)
{
    for (unsigned size = 0; size < HG_HOT_SIZES; size++) {
        while (hot->spare_counts[size] > hot->taken[size]) {
            struct hg_list *first = hg_list_first(&hot->spares[size]);
            hg_list_remove(first);
            hg_list_append(&parcel->sketches, first);
            hot->spare_counts[size]--;
        }
        hot->taken[size] = 0;
    }
}

static void take_list_off(struct hg_hotshare *share, struct hg_hotlist **list)
{
    if (*list != NULL)
        hg_list_append(&share->lists, &(*list)->node);
    *list = NULL;
}

/* Moves the share to the parcel, with the list that was used. The lane goes on with the other one,
   and when there is none, with the same. */
static void hand_over(struct hg_worker *worker, struct hg_hotshare *share,
                      struct hg_hotparcel *parcel)
{
    struct hg_lane *lane = &share->bucket->lanes[worker->index];
    struct hg_hotshare *next = NULL;
    if (lane->hot_list != NULL) {
        next = borrow_share(&worker->hot);
        if (next == NULL)
            return; /* with the next epoch */
        next->bucket = hg_bucket_ref(share->bucket);
        hg_list_append(&worker->hot.shares, &next->node);
    }
    if (lane->hot_spare != NULL) {
        take_list_off(share, &lane->hot_list);
        lane->hot_list = lane->hot_spare;
        lane->hot_spare = NULL;
    }
    lane->hot = next;
    share->worker = worker->index;
    hg_list_remove(&share->node);
    hg_list_append(&parcel->shares, &share->node);
}

static uint64_t thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void end_epoch(struct hg_worker *worker, uint64_t epoch)
{
    struct hg_hot_worker *hot = &worker->hot;
    struct hg_hot_front *front = &worker->front->hot;
    uint64_t begin_ns = thread_ns(), handed = 0;
    struct hg_hotparcel *parcel = hot->parcel;
    if (parcel == NULL)
        parcel = hg_hotparcel_new(worker->index);
    if (parcel == NULL)
        return; /* with the next epoch */
    hot->parcel = NULL;
    struct hg_list now;
    hg_list_init(&now);
    hg_list_splice(&now, &hot->shares);
    while (!hg_list_empty(&now)) {
        struct hg_list *first = hg_list_first(&now);
        struct hg_hotshare *share = HG_CONTAINER_OF(first, struct hg_hotshare, node);
        hand_over(worker, share, parcel);
        if (hg_list_first(&now) == first) { /* it stays */
            hg_list_remove(first);
            hg_list_append(&hot->shares, first);
        } else {
            handed++;
        }
    }
    drop_idle_spares(hot, parcel);
    hot->idle_max = (unsigned)handed;
    parcel->epoch = epoch;
    parcel->ctx = front->ctx;
    parcel->letter.deliver = front->on_parcel;
    hg_counter_add(&hot->handovers, 1);
    hg_counter_add(&hot->handed_shares, handed);
    hg_mailbox_post(front->house, &parcel->letter);
    hg_counter_add(&hot->handover_ns, thread_ns() - begin_ns);
}

static void on_epoch_letter(struct hg_letter *letter, void *receiver)
{
    struct hg_worker *worker = receiver;
    (void)letter;
    uint64_t epoch = atomic_load(&worker->hot.epoch);
    atomic_store(&worker->hot.epoch_posted, false);
    if (!worker->stopping && worker->front->hot.house != NULL)
        end_epoch(worker, epoch);
}

void hg_hot_end_epoch(struct hg_worker *worker, uint64_t epoch)
{
    atomic_store(&worker->hot.epoch, epoch);
    if (atomic_exchange(&worker->hot.epoch_posted, true))
        return; /* it has not come to the last one yet, and will find this number */
    worker->hot.epoch_letter.deliver = on_epoch_letter;
    hg_mailbox_post(&worker->mailbox, &worker->hot.epoch_letter);
}

/* ---- what comes back ---- */

static struct hg_hotlist *take_list(struct hg_hotshare *share)
{
    struct hg_list *first = hg_list_first(&share->lists);
    if (first == NULL)
        return NULL;
    hg_list_remove(first);
    return HG_CONTAINER_OF(first, struct hg_hotlist, node);
}

/* New lists for a lane, or none: what it had goes home with its share. */
static void install(struct hg_worker *worker, struct hg_hotshare *share)
{
    struct hg_lane *lane = &share->bucket->lanes[worker->index];
    if (hg_bucket_is_over(share->bucket)) {
        hg_hotshare_free(&worker->front->hot.mem, share);
        return;
    }
    struct hg_hotlist *list = take_list(share), *spare = take_list(share);
    if (lane->hot == NULL) {
        hg_list_append(&worker->hot.shares, &share->node);
        lane->hot = share;
    } else {
        hg_hotshare_clear(&worker->front->hot.mem, share);
        keep_share(worker, share);
    }
    take_list_off(lane->hot, &lane->hot_list);
    take_list_off(lane->hot, &lane->hot_spare);
    lane->hot_list = list;
    lane->hot_spare = spare;
}

static void keep_sketch(struct hg_worker *worker, struct hg_hotsketch *sketch)
{
    unsigned setting = atomic_load_explicit(&worker->front->hot.mem.counters, memory_order_relaxed);
    enum hg_hot_size size = size_of(setting, sketch->counters);
    hg_list_append(&worker->hot.spares[size], &sketch->node);
    worker->hot.spare_counts[size]++;
}

void hg_hot_on_parcel(struct hg_letter *letter, void *receiver)
{
    struct hg_hotparcel *parcel = HG_CONTAINER_OF(letter, struct hg_hotparcel, letter);
    struct hg_worker *worker = receiver;
    struct hg_hot_worker *hot = &worker->hot;
    if (worker->stopping) {
        hg_hotparcel_free(&worker->front->hot.mem, parcel);
        return;
    }
    HG_LIST_EACH(node, &parcel->shares)
    {
        hg_list_remove(node);
        install(worker, HG_CONTAINER_OF(node, struct hg_hotshare, node));
    }
    HG_LIST_EACH(node, &parcel->idle)
    keep_share(worker, HG_CONTAINER_OF(node, struct hg_hotshare, node));
    HG_LIST_EACH(node, &parcel->sketches)
    {
        hg_list_remove(node);
        keep_sketch(worker, HG_CONTAINER_OF(node, struct hg_hotsketch, node));
    }
    if (hot->parcel == NULL)
        hot->parcel = parcel;
    else
        hg_hotparcel_free(&worker->front->hot.mem, parcel);
}

/* ---- begin and end ---- */

/* Takes all that its lane has with it. */
static void drop_share(struct hg_worker *worker, struct hg_hotshare *share)
{
    struct hg_lane *lane = &share->bucket->lanes[worker->index];
    take_list_off(share, &lane->hot_list);
    take_list_off(share, &lane->hot_spare);
    lane->hot = NULL;
    hg_hotshare_free(&worker->front->hot.mem, share);
}

void hg_hot_adopt(struct hg_worker *worker)
{
    HG_LIST_EACH(node, &worker->hot.shares)
    {
        struct hg_hotshare *share = HG_CONTAINER_OF(node, struct hg_hotshare, node);
        if (hg_bucket_is_over(share->bucket))
            drop_share(worker, share);
    }
}

void hg_hot_open(struct hg_worker *worker)
{
    struct hg_hot_worker *hot = &worker->hot;
    hg_list_init(&hot->shares);
    hg_list_init(&hot->idle);
    for (unsigned size = 0; size < HG_HOT_SIZES; size++)
        hg_list_init(&hot->spares[size]);
    hot->prng.state = worker->front->hash_seed + worker->index;
}

void hg_hot_close(struct hg_worker *worker)
{
    struct hg_hot_worker *hot = &worker->hot;
    struct hg_hotmem *mem = &worker->front->hot.mem;
    HG_LIST_EACH(node, &hot->shares)
    drop_share(worker, HG_CONTAINER_OF(node, struct hg_hotshare, node));
    HG_LIST_EACH(node, &hot->idle)
    hg_hotshare_free(mem, HG_CONTAINER_OF(node, struct hg_hotshare, node));
    for (unsigned size = 0; size < HG_HOT_SIZES; size++) {
        HG_LIST_EACH(node, &hot->spares[size])
        {
            hg_list_remove(node);
            hg_hotsketch_free(mem, HG_CONTAINER_OF(node, struct hg_hotsketch, node));
        }
        hot->spare_counts[size] = 0;
    }
    hg_hotparcel_free(mem, hot->parcel);
    hot->parcel = NULL;
}
