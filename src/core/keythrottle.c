// keythrottle - which keys of a tenant are refused, and how many of their requests
// SPDX-License-Identifier: BSD-3-Clause
//
// The list is an array in no order. It is indexed by chains whose heads lie in the keys themselves:
// slot s begins at keys[s].head, with as many slots as keys, numbers + 1, 0: none. So the index
// needs no memory of its own and moves along when the array is copied.
#include "core/keythrottle.h"

#include <string.h>

/* ---- the index ---- */

static void build_index(struct hg_keythrottle *throttle)
{
    unsigned count = throttle->count;

    throttle->indexed = count;
    for (unsigned i = 0; i < count; i++)
        throttle->keys[i].head = 0;
    for (unsigned i = 0; i < count; i++) {
        struct hg_keythrottle_key *listed = &throttle->keys[i];
        uint16_t *head = &throttle->keys[listed->key.hash % count].head;
        listed->key.at = listed->bytes; /* it may have been moved */
        listed->link = *head;
        *head = (uint16_t)(i + 1);
    }
}

static struct hg_keythrottle_key *find(const struct hg_keythrottle *throttle,
                                       const struct hg_hotkey_key *key)
{
    if (throttle->indexed == 0)
        return NULL;
    for (unsigned i = throttle->keys[key->hash % throttle->indexed].head; i != 0;) {
        struct hg_keythrottle_key *listed = &throttle->keys[i - 1];
        if (listed->key.hash == key->hash && listed->key.len == key->len &&
            listed->key.table_len == key->table_len &&
            (key->len == 0 || memcmp(listed->bytes, key->at, key->len) == 0))
            return listed;
        i = listed->link;
    }
    return NULL;
}

const struct hg_keythrottle_key *hg_keythrottle_find(const struct hg_keythrottle *throttle,
                                                     const struct hg_hotkey_key *key)
{
    return find(throttle, key);
}

struct hg_keythrottle_key *hg_keythrottle_give_room(struct hg_keythrottle *throttle,
                                                    struct hg_keythrottle_key *keys, unsigned room)
{
    struct hg_keythrottle_key *before = throttle->keys;

    if (throttle->count > 0)
        memcpy(keys, before, throttle->count * sizeof *keys);
    throttle->keys = keys;
    throttle->room = room;
    build_index(throttle);
    return before;
}

void hg_keythrottle_tell(struct hg_keythrottle *throttle, const struct hg_hotkey_key *key,
                         uint64_t passed, uint64_t refused)
{
    struct hg_keythrottle_key *listed = find(throttle, key);
    if (listed == NULL)
        return;
    listed->passed_epoch += passed;
    listed->refused_epoch += refused;
    listed->refused += refused;
}

/* ---- what an epoch saw of a key ---- */

struct seen {
    double lower[HG_KEYTHROTTLE_EPOCHS]; /* admitted at least, an epoch */
    double sum;                          /* of them */
    double upper;                        /* admitted at most in the last one; negative: unknown */
};

struct deciding {
    const struct hg_keythrottle_settings *settings;
    const struct hg_keythrottle_span *spans;
    double scale[HG_KEYTHROTTLE_EPOCHS]; /* from counts to those of a nominal epoch */
    double threshold;
};

static double scale_of(const struct hg_keythrottle_span *span, uint64_t nominal_us)
{
    if (span->length_us == 0 || nominal_us == 0)
        return 1;
    if (span->length_us < nominal_us / 2)
        return 2;
    return (double)nominal_us / (double)span->length_us;
}

static struct seen look(const struct deciding *deciding, const struct hg_hotkey_key *key)
{
    struct seen seen = {.upper = -1};

    for (unsigned e = 0; e < HG_KEYTHROTTLE_EPOCHS; e++) {
        const struct hg_hotmerge *merged = deciding->spans[e].merged;
        struct hg_hotkey_entry entry = {.count = 0};
        if (merged == NULL)
            continue;
        if (!hg_hotmerge_find(merged, key, &entry))
            entry.count = entry.error = hg_hotmerge_absent(merged);
        seen.lower[e] = (double)(entry.count - entry.error) * deciding->scale[e];
        seen.sum += seen.lower[e];
        if (e == 0)
            seen.upper = (double)entry.count * deciding->scale[0];
    }
    return seen;
}

/* ---- decisions ---- */

static void set_share(struct hg_keythrottle_key *listed, double share)
{
    listed->percent = (uint8_t)(share * 100 + 0.5);
    listed->share = share >= 1 ? UINT32_MAX : (uint32_t)(share * 4294967295.0);
}

/* Of a listed key; false: it leaves. */
static bool decide_step(const struct deciding *deciding, struct hg_keythrottle_key *listed,
                        const struct seen *seen)
{
    double t = deciding->threshold;
    unsigned percent = listed->percent;

    if (seen->sum > HG_KEYTHROTTLE_EPOCHS * t)
        percent = percent + HG_KEYTHROTTLE_STEP < 100 ? percent + HG_KEYTHROTTLE_STEP : 100;
    else if (seen->sum * 10 < HG_KEYTHROTTLE_EPOCHS * t * 7)
        percent = percent > HG_KEYTHROTTLE_STEP ? percent - HG_KEYTHROTTLE_STEP : 0;
    set_share(listed, percent / 100.0);
    listed->offered = seen->lower[0] + (double)listed->refused_epoch * deciding->scale[0];
    listed->below = 0;
    listed->falling = false;
    return percent > 0;
}

/* Follows what was offered, without the noise of chance (three standard deviations of a Poisson
   count, or 5 %). */
static void smooth(struct hg_keythrottle_key *listed, double offered)
{
    double before = listed->offered, change = offered - before;
    bool noise = change * change <= 9 * before || change * change <= before * before / 400;

    if (noise) {
        listed->offered = before + change / 2;
        listed->falling = false;
    } else if (change > 0) {
        listed->offered = offered;
        listed->falling = false;
    } else if (listed->falling) {
        listed->offered = offered;
    } else {
        listed->falling = true;
    }
}

static double share_for(double offered, double threshold)
{
    return offered > threshold ? 1 - threshold / offered : 0;
}

static bool decide_proportional(const struct deciding *deciding, struct hg_keythrottle_key *listed,
                                const struct seen *seen)
{
    double passed = (double)listed->passed_epoch * deciding->scale[0];
    double offered;

    if (seen->upper >= 0 && passed > seen->upper)
        passed = seen->upper;
    if (passed < seen->lower[0])
        passed = seen->lower[0];
    offered = passed + (double)listed->refused_epoch * deciding->scale[0];
    if (offered > deciding->threshold)
        listed->below = 0;
    else if (listed->below < 2)
        listed->below++;
    smooth(listed, offered);
    set_share(listed, share_for(listed->offered, deciding->threshold));
    return listed->below < 2 || listed->share > 0;
}

/* Decides about every listed key, and closes the gaps of those that leave. */
static void decide_listed(struct hg_keythrottle *throttle, const struct deciding *deciding)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < throttle->count; i++) {
        struct hg_keythrottle_key *listed = &throttle->keys[i];
        listed->key.at = listed->bytes;
        struct seen seen = look(deciding, &listed->key);
        bool stays = deciding->settings->control == HG_HOTKEY_STEP
                         ? decide_step(deciding, listed, &seen)
                         : decide_proportional(deciding, listed, &seen);
        if (!stays)
            continue;
        listed->mean = (uint64_t)(seen.sum / HG_KEYTHROTTLE_EPOCHS + 0.5);
        listed->passed_epoch = listed->refused_epoch = 0;
        if (kept != i)
            throttle->keys[kept] = *listed;
        kept++;
    }
    throttle->count = kept;
    build_index(throttle);
}

/* ---- new keys ---- */

/* A place for a key that was offered so much: a free one, or that of the coolest if it was offered
   less; NULL: none. */
static struct hg_keythrottle_key *make_place(struct hg_keythrottle *throttle, double offered)
{
    unsigned most = throttle->room < HG_KEYTHROTTLE_KEYS ? throttle->room : HG_KEYTHROTTLE_KEYS;
    struct hg_keythrottle_key *coolest;

    if (throttle->count < most)
        return &throttle->keys[throttle->count++];
    if (throttle->count == 0)
        return NULL;
    coolest = &throttle->keys[0];
    for (unsigned i = 1; i < throttle->count; i++) {
        if (throttle->keys[i].offered < coolest->offered)
            coolest = &throttle->keys[i];
    }
    return coolest->offered < offered ? coolest : NULL;
}

/* Lists the key if it is hot. */
static void list_key(struct hg_keythrottle *throttle, const struct deciding *deciding,
                     const struct hg_hotkey_key *key)
{
    struct seen seen = look(deciding, key);
    bool step = deciding->settings->control == HG_HOTKEY_STEP;
    double heat = step ? seen.sum / HG_KEYTHROTTLE_EPOCHS : seen.lower[0];
    struct hg_keythrottle_key *place;

    if (heat <= deciding->threshold || key->len > HG_HOTKEY_KEY_MAX)
        return;
    place = make_place(throttle, seen.lower[0]);
    if (place == NULL)
        return;
    *place = (struct hg_keythrottle_key){
        .key = *key,
        .offered = seen.lower[0],
        .mean = (uint64_t)(seen.sum / HG_KEYTHROTTLE_EPOCHS + 0.5),
    };
    if (key->len > 0)
        memcpy(place->bytes, key->at, key->len);
    set_share(place,
              step ? HG_KEYTHROTTLE_STEP / 100.0 : share_for(place->offered, deciding->threshold));
    build_index(throttle);
}

void hg_keythrottle_epoch(struct hg_keythrottle *throttle,
                          const struct hg_keythrottle_settings *settings,
                          const struct hg_keythrottle_span spans[HG_KEYTHROTTLE_EPOCHS],
                          uint64_t nominal_us)
{
    struct deciding deciding = {settings, spans, {0}, (double)settings->threshold};
    const struct hg_hotmerge *ended = spans[0].merged;
    unsigned leaders = ended == NULL ? 0 : hg_hotmerge_used(ended);

    if (settings->threshold == 0) {
        throttle->count = throttle->indexed = 0;
        return;
    }
    for (unsigned e = 0; e < HG_KEYTHROTTLE_EPOCHS; e++)
        deciding.scale[e] = scale_of(&spans[e], nominal_us);
    decide_listed(throttle, &deciding);
    for (unsigned i = 0; i < leaders && i < HG_HOT_TOP; i++) {
        struct hg_hotkey_entry entry;
        hg_hotmerge_entry(ended, i, &entry);
        if (find(throttle, &entry.key) == NULL)
            list_key(throttle, &deciding, &entry.key);
    }
}
