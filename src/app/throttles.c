// throttles - what is throttled, and which servers are slow: housekeeping's look
// SPDX-License-Identifier: BSD-3-Clause
#include "app/throttles.h"

#include <stdlib.h>
#include <string.h>

#include "app/process.h"
#include "app/serverlook.h"
#include "base/clock.h"
#include "front/gateset.h"

/* Of each kind: when it counts as begun, and as over. What workers say of keys and tenants lasts a
   second or more by itself. */
static const struct hg_throttling_rule rules[HG_THROTTLES] = {
    [HG_THROTTLE_TICKETS] = {.rise_us = 1000000, .fall_us = 2000000},
    [HG_THROTTLE_FLOOD] = {.fall_us = 1000000},
    [HG_THROTTLE_KEY_SHARE] = {.fall_us = 500000},
    [HG_THROTTLE_BIND] = {.fall_us = 500000},
};

#define KEY_MAX HG_HOTKEY_KEY_MAX

struct hg_throttles_thing {
    struct hg_throttles_thing *next; /* in its chain */
    uint32_t hash;
    enum hg_throttle what;
    struct hg_throttling throttling;
    uint64_t look; /* when it was last seen */
    bool active, at_once;
    char upstream[HG_BUCKET_NAME_MAX + 1], tenant[HG_BUCKET_NAME_MAX + 1];
    char server[HG_HELDKEY_SERVER_MAX + 1];
    const char *tickets;
    uint32_t id;
    size_t key_len;
    uint8_t key[KEY_MAX];
    struct hg_throttles_seen seen;   /* numbers of the last look; its texts are not used */
    struct hg_coarsehist_sum waited; /* of these, when it began */
};

/* ---- things ---- */

static uint32_t mix(uint32_t hash, const void *at, size_t len)
{
    for (const uint8_t *byte = at; len-- > 0; byte++)
        hash = (hash ^ *byte) * 16777619u;
    return (hash ^ 0xff) * 16777619u;
}

static uint32_t hash_of(const struct hg_throttles_seen *seen)
{
    uint32_t hash = mix(2166136261u ^ (uint32_t)seen->what, seen->upstream, strlen(seen->upstream));
    hash = mix(hash, seen->server, strlen(seen->server));
    hash = mix(hash, seen->tenant, strlen(seen->tenant));
    hash = mix(hash, seen->tickets, strlen(seen->tickets));
    hash = mix(hash, &seen->id, sizeof seen->id);
    return mix(hash, seen->key.at, seen->key.len);
}

static bool is_of(const struct hg_throttles_thing *thing, const struct hg_throttles_seen *seen)
{
    return thing->what == seen->what && thing->id == seen->id && thing->key_len == seen->key.len &&
           (seen->key.len == 0 || memcmp(thing->key, seen->key.at, seen->key.len) == 0) &&
           strcmp(thing->tickets, seen->tickets) == 0 && strcmp(thing->tenant, seen->tenant) == 0 &&
           strcmp(thing->server, seen->server) == 0 && strcmp(thing->upstream, seen->upstream) == 0;
}

static void copy(char *to, size_t bytes, const char *from)
{
    size_t len = strnlen(from, bytes - 1);
    memcpy(to, from, len);
    to[len] = '\0';
}

static struct hg_throttles_thing *make(struct hg_throttles *throttles,
                                       const struct hg_throttles_seen *seen, uint32_t hash)
{
    struct hg_throttles_thing **chain = &throttles->chains[hash % HG_THROTTLES_CHAINS];
    struct hg_throttles_thing *thing =
        throttles->count < HG_THROTTLES_MAX && seen->key.len <= KEY_MAX ? calloc(1, sizeof *thing)
                                                                        : NULL;
    if (thing == NULL)
        return NULL;
    thing->hash = hash;
    thing->what = seen->what;
    thing->id = seen->id;
    thing->tickets = seen->tickets;
    copy(thing->upstream, sizeof thing->upstream, seen->upstream);
    copy(thing->server, sizeof thing->server, seen->server);
    copy(thing->tenant, sizeof thing->tenant, seen->tenant);
    thing->key_len = seen->key.len;
    if (seen->key.len > 0)
        memcpy(thing->key, seen->key.at, seen->key.len);
    thing->next = *chain;
    *chain = thing;
    throttles->count++;
    return thing;
}

void hg_throttles_see(struct hg_throttles *throttles, const struct hg_throttles_seen *seen)
{
    uint32_t hash = hash_of(seen);
    struct hg_throttles_thing *thing = throttles->chains[hash % HG_THROTTLES_CHAINS];
    while (thing != NULL && (thing->hash != hash || !is_of(thing, seen)))
        thing = thing->next;
    if (thing == NULL)
        thing = make(throttles, seen, hash);
    if (thing == NULL)
        return;
    if (thing->look != throttles->look)
        thing->active = thing->at_once = false;
    thing->look = throttles->look;
    uint64_t fresh = seen->number != 0 ? hg_throttling_count(&thing->throttling, seen->worker,
                                                             seen->number, seen->counted)
                                       : 0;
    bool refuses = fresh > 0;
    thing->at_once |= refuses || rules[thing->what].rise_us == 0;
    thing->active |= seen->active || refuses || (seen->goes_on && thing->throttling.is_settled);
    thing->seen = *seen;
}

/* ---- events ---- */

static void sum_waits(const struct hg_throttles_thing *thing, struct hg_coarsehist_sum *ret)
{
    const struct hg_gate_holder *holder = &thing->seen.gates->holders[thing->seen.kind];
    memset(ret, 0, sizeof *ret);
    for (unsigned w = 0; w < holder->worker_count; w++)
        hg_coarsehist_add(ret, &holder->workers[w].waited);
}

static void add_subject(struct hg_event *event, const struct hg_throttles_thing *thing)
{
    hg_event_word(event, "tenant", thing->tenant);
    hg_event_word(event, "tickets", thing->tickets);
    hg_event_text(event, "key", hg_span(thing->key, thing->key_len));
}

static double ms(uint64_t us)
{
    return (double)us / 1e3;
}

/* `is_seen`: its server is still there. */
static void tell_begin(struct hg_throttles_thing *thing, bool is_seen)
{
    const struct hg_throttle_place place = {thing->upstream, thing->server};
    const struct hg_throttles_seen *seen = &thing->seen;
    const char *reason = "";
    struct hg_event event;
    hg_throttle_begin(&event, thing->what, &place);
    add_subject(&event, thing);
    if (thing->what == HG_THROTTLE_TICKETS) {
        thing->waited = (struct hg_coarsehist_sum){0};
        if (is_seen)
            sum_waits(thing, &thing->waited);
        hg_event_number(&event, "from", seen->from);
        hg_event_number(&event, "to", seen->to);
        hg_event_number(&event, "waiting", seen->waiting);
        if (seen->service_us > 0) {
            hg_event_real(&event, "p50_ms", ms(seen->service_us), 1);
            hg_event_real(&event, "usual_ms", ms(seen->usual_us), 1);
        }
        reason = seen->to < seen->from ? "the controller has cut the tickets, and all are out"
                                       : "all tickets are out";
    } else if (thing->what == HG_THROTTLE_FLOOD) {
        reason = "the tenant asks for more than can be served in time";
    } else if (thing->what == HG_THROTTLE_KEY_SHARE) {
        hg_event_real(&event, "service_ms", ms(seen->service_us), 1);
        hg_event_real(&event, "usual_ms", ms(seen->usual_us), 1);
        hg_event_number(&event, "share", seen->share);
        reason = "requests for this key take long, and it has its share of the tickets";
    } else {
        hg_event_number(&event, "allowEveryX", seen->x);
        reason = "the key was evicted";
    }
    hg_event_text(&event, "reason", hg_span_str(reason));
    hg_event_tell(&event);
}

/* `is_seen` likewise. `reason`: "" if it is over. */
static void tell_end(const struct hg_throttles_thing *thing, const struct hg_throttling_told *told,
                     bool is_seen, const char *reason)
{
    const struct hg_throttle_place place = {thing->upstream, thing->server};
    struct hg_event event;
    hg_throttle_end(&event, thing->what, &place);
    add_subject(&event, thing);
    hg_event_real(&event, "lasted_s", (double)told->lasted_us / 1e6, 1);
    hg_event_number(&event, "refused", told->refused);
    if (thing->what == HG_THROTTLE_TICKETS && is_seen) {
        struct hg_coarsehist_sum waited;
        sum_waits(thing, &waited);
        hg_coarsehist_subtract(&waited, &thing->waited);
        hg_event_real(&event, "waited_p99_ms", ms(hg_coarsehist_percentile(&waited, 99)), 1);
    }
    hg_event_text(&event, "reason", hg_span_str(reason));
    hg_event_tell(&event);
}

/* False: nothing is lost if it goes. What was refused at a server is seen for as long as it is
   counted, so its thing stays. */
static bool settle(struct hg_throttles *throttles, struct hg_throttles_thing *thing,
                   uint64_t now_us)
{
    bool is_seen = thing->look == throttles->look;
    struct hg_throttling_told told =
        hg_throttling_look(&thing->throttling, &rules[thing->what], is_seen && thing->active,
                           is_seen && thing->at_once, now_us);
    if (told.begin)
        tell_begin(thing, is_seen);
    if (told.end)
        tell_end(thing, &told, is_seen, "");
    return is_seen || !hg_throttling_is_over(&thing->throttling, now_us);
}

static void settle_all(struct hg_throttles *throttles, uint64_t now_us)
{
    for (unsigned c = 0; c < HG_THROTTLES_CHAINS; c++)
        for (struct hg_throttles_thing **at = &throttles->chains[c]; *at != NULL;) {
            struct hg_throttles_thing *thing = *at;
            if (settle(throttles, thing, now_us)) {
                at = &thing->next;
                continue;
            }
            *at = thing->next;
            free(thing);
            throttles->count--;
        }
}

/* ---- the loop ---- */

static void on_look(struct hg_timer *timer)
{
    struct hg_throttles *throttles = HG_CONTAINER_OF(timer, struct hg_throttles, timer);
    uint64_t now_us = hg_now_us();
    if (!atomic_load_explicit(&throttles->has_workers, memory_order_acquire))
        return;
    throttles->look++;
    hg_serverlook(throttles->process, now_us);
    hg_throttles_look_at_all(throttles, now_us);
    settle_all(throttles, now_us);
}

static void end_with_process(const struct hg_throttles_thing *thing)
{
    const struct hg_throttling *t = &thing->throttling;
    const struct hg_throttling_told told = {
        .end = true,
        .lasted_us = t->seen_us > t->begun_us ? t->seen_us - t->begun_us : 0,
        .refused = t->refused,
    };
    if (t->notice.told)
        tell_end(thing, &told, false, "the process ends");
}

int hg_throttles_start(struct hg_throttles *throttles, struct hg_process *process,
                       struct hg_loop *loop)
{
    throttles->process = process;
    int rc = hg_loop_timer_init(loop, &throttles->timer, HG_THROTTLES_LOOK_US, on_look);
    throttles->is_open = rc == 0;
    return rc;
}

void hg_throttles_watch(struct hg_throttles *throttles)
{
    atomic_store_explicit(&throttles->has_workers, true, memory_order_release);
}

void hg_throttles_stop(struct hg_throttles *throttles)
{
    if (!throttles->is_open)
        return;
    hg_loop_timer_fini(&throttles->timer);
    throttles->is_open = false;
    for (unsigned c = 0; c < HG_THROTTLES_CHAINS; c++)
        while (throttles->chains[c] != NULL) {
            struct hg_throttles_thing *thing = throttles->chains[c];
            throttles->chains[c] = thing->next;
            end_with_process(thing);
            free(thing);
        }
    free(throttles->floods);
    free(throttles->keys);
    free(throttles->binds);
}
