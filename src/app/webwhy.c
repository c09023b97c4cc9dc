// webwhy - why a tenant is throttled, as doc/api.md has it
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>

#include "app/web_own.h"

static uint64_t outcome_rate(const struct hg_web_tenant *tenant, unsigned outcome)
{
    return tenant->rates[HG_WEB_OUTCOMES_AT + outcome];
}

/* `always`: also when it did not happen in the last second. */
static void add_reason(struct hg_webtext *text, const char *code, uint64_t per_s, bool always,
                       const char *what)
{
    if (per_s == 0 && !always)
        return;
    hg_json_open(text, '{');
    hg_json_key(text, "code");
    hg_json_string(text, code);
    hg_json_key(text, "text");
    hg_json_string(text, what);
    hg_json_key(text, "per_s");
    hg_json_uint(text, per_s);
    hg_json_close(text, '}');
}

/* ---- credits ---- */

/* Requests of the last second that were held or refused for credits, by the limit. */
struct credits {
    uint64_t hard, pool, share;
};

/*
 * Who was held behind others was so for their reason, the bucket's last one. And so was who is held
 * since before the last second, or was refused in it for having been held: a request is counted
 * when it begins to wait. So the sum is never less than what is held now, or was at the last look:
 * whose end only the next one sees.
 */
static void count_credits(const struct hg_web_tenant *tenant, uint64_t held, struct credits *ret)
{
    struct hg_bucket *bucket = tenant->bucket;
    const uint64_t *rates = tenant->rates;
    uint64_t refused = outcome_rate(tenant, HG_OUTCOME_THROTTLED) +
                       outcome_rate(tenant, HG_OUTCOME_THROTTLED_TOO_LONG);
    uint64_t least = held > refused ? held : refused;
    least = least > tenant->held ? least : tenant->held;
    *ret = (struct credits){0};
    if (least == 0 && atomic_load(&bucket->credit_mode) == HG_MODE_OBSERVE)
        return; /* they were counted, and passed */
    ret->hard = rates[HG_WEB_LANE_held_for_hard_limit];
    ret->pool = rates[HG_WEB_LANE_held_for_pool];
    ret->share = rates[HG_WEB_LANE_held_for_share];
    uint64_t sum = ret->hard + ret->pool + ret->share,
             all = sum + rates[HG_WEB_LANE_held_behind_others];
    uint64_t more = (all > least ? all : least) - sum;
    int reason = atomic_load(&bucket->held_for);
    if (reason == HG_CREDIT_NO_POOL)
        ret->pool += more;
    else if (reason == HG_CREDIT_NO_SHARE)
        ret->share += more;
    else
        ret->hard += more;
}

static bool add_credits(struct hg_webtext *text, const struct hg_web_tenant *tenant, uint64_t held)
{
    struct credits credits;
    char hard_text[100];
    count_credits(tenant, held, &credits);
    snprintf(hard_text, sizeof hard_text, "held for its hard limit of %llu units/s",
             (unsigned long long)atomic_load(&tenant->bucket->credit.hard_limit));
    add_reason(text, "hard_limit", credits.hard, false, hard_text);
    add_reason(text, "free_pool", credits.pool, false,
               "beyond its reservation, and the free pool is used up");
    add_reason(text, "share", credits.share, false,
               "beyond its reservation and its share of the free pool");
    return credits.hard + credits.pool + credits.share > 0;
}

/* Users with Unthrottled are charged and never held: what they use is not limited, and is not what
   the limit says. Half more than the limit is beyond what a second's edges explain. */
static void add_exempt(struct hg_webtext *text, const struct hg_web_tenant *tenant)
{
    uint64_t limit = atomic_load(&tenant->bucket->credit.hard_limit);
    uint64_t units = tenant->rates[HG_WEB_LANE_units];
    uint64_t exempt = tenant->rates[HG_WEB_LANE_units_exempt];
    char what[160];
    if (limit == HG_UNITS_UNLIMITED || exempt == 0 || units <= limit + limit / 2)
        return;
    snprintf(what, sizeof what,
             "used %llu units/s, of which users with Unthrottled %llu: above its hard limit of "
             "%llu units/s",
             (unsigned long long)units, (unsigned long long)exempt, (unsigned long long)limit);
    add_reason(text, "exempt", 0, true, what);
}

/* ---- all ---- */

/* What its operator has made of it is a reason even while nobody asks for anything. */
static void add_state(struct hg_webtext *text, struct hg_web_tenant *tenant)
{
    uint64_t paused = outcome_rate(tenant, HG_OUTCOME_PAUSED);
    uint64_t disabled = outcome_rate(tenant, HG_OUTCOME_DISABLED);
    switch (atomic_load(&tenant->bucket->state)) {
    case HG_BUCKET_PAUSED:
        add_reason(text, "paused", paused, true, "it is paused");
        return;
    case HG_BUCKET_DISABLED:
        add_reason(text, "disabled", disabled, true, "it is disabled");
        return;
    case HG_BUCKET_ORPHAN:
        add_reason(text, "disabled", paused + disabled, true, "its upstream is gone");
        return;
    default:
        return;
    }
}

bool hg_web_why(struct hg_webtext *text, struct hg_web_tenant *tenant, uint64_t held)
{
    uint64_t hot = outcome_rate(tenant, HG_OUTCOME_HOT_KEY);
    uint64_t bind =
        outcome_rate(tenant, HG_OUTCOME_BIND_THROTTLED) + outcome_rate(tenant, HG_OUTCOME_EVICTED);
    uint64_t data = outcome_rate(tenant, HG_OUTCOME_DATA_LIMIT);
    uint64_t places = outcome_rate(tenant, HG_OUTCOME_CONNECTION_LIMIT);
    uint64_t queue = outcome_rate(tenant, HG_OUTCOME_QUEUE_FULL) +
                     outcome_rate(tenant, HG_OUTCOME_QUEUE_TIMEOUT);
    uint64_t backend = outcome_rate(tenant, HG_OUTCOME_BACKEND_DOWN) +
                       outcome_rate(tenant, HG_OUTCOME_BACKEND_LOST) +
                       outcome_rate(tenant, HG_OUTCOME_BACKEND_TIMEOUT);
    char hot_text[100];
    snprintf(hot_text, sizeof hot_text,
             "refused for hot keys: more than its threshold of %llu operations an epoch",
             (unsigned long long)atomic_load(&tenant->bucket->hotkey_threshold));
    hg_json_key(text, "why");
    hg_json_open(text, '[');
    bool credits = add_credits(text, tenant, held);
    add_reason(text, "hot_key", hot, false, hot_text);
    add_reason(text, "bind", bind, false, "refused for keys that held up an overloaded store");
    add_reason(text, "data_limit", data, false, "writes refused: its data limit is set");
    add_reason(text, "connection_limit", places, false,
               "refused: it has as many connections as its max_connections allows");
    add_exempt(text, tenant);
    add_reason(text, "queue", queue, false,
               "too many requests waited for its store, or for too long");
    add_reason(text, "backend", backend, false, "its store is down, or does not answer");
    add_state(text, tenant);
    hg_json_close(text, ']');
    return credits || hot + bind + data + places > 0;
}
