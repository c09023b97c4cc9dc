// webask - what only other threads may look at, asked for by letter and kept for a moment
// SPDX-License-Identifier: BSD-3-Clause
#include "app/webask.h"

#include <stdlib.h>
#include <string.h>

#include "app/web_own.h"
#include "base/clock.h"
#include "base/grow.h"

struct waiting {
    struct hg_list node;
    struct evhttp_request *request;
};

void hg_webask_init(struct hg_webask *ask, struct hg_web *web)
{
    memset(ask, 0, sizeof *ask);
    ask->web = web;
    hg_list_init(&ask->waiting);
}

void hg_webask_drop(struct hg_webask *ask)
{
    HG_LIST_EACH(node, &ask->waiting)
    {
        hg_list_remove(node);
        free(HG_CONTAINER_OF(node, struct waiting, node));
    }
}

void hg_webask_fini(struct hg_webask *ask)
{
    hg_webask_drop(ask);
    free(ask->keys);
    free(ask->slow);
}

/* Room for one more row. */
static bool make_room(struct hg_webask *ask, void **rows, size_t row_bytes)
{
    void *more = hg_grow(*rows, &ask->cap, ask->count + 1, row_bytes);
    if (more != NULL)
        *rows = more;
    else
        ask->failed = true;
    return more != NULL;
}

/* ---- hot keys, on housekeeping ---- */

static void add_record(struct hg_webask *ask, const struct hg_bucket *bucket,
                       const struct hg_hotrecord *record)
{
    unsigned rank = 0;
    int type = -1;
    for (unsigned i = 0; record != NULL && i < record->count; i++) {
        const struct hg_hotrow *row = &record->rows[i];
        if (!make_room(ask, (void **)&ask->keys, sizeof ask->keys[0]))
            return;
        rank = row->type == type ? rank + 1 : 1;
        type = row->type;
        struct hg_webask_key *to = &ask->keys[ask->count++];
        *to = (struct hg_webask_key){
            .activity = bucket->hot_tenant->activity,
            .threshold = atomic_load(&((struct hg_bucket *)(uintptr_t)bucket)->hotkey_threshold),
            .type = row->type,
            .percent = row->percent,
            .rank = (uint8_t)(rank < UINT8_MAX ? rank : UINT8_MAX),
            .table_len = row->table_len,
            .len = row->len,
            .freq = row->freq,
            .error = row->error};
        memcpy(to->tenant, bucket->name, bucket->name_len + 1);
        memcpy(to->key, row->key, row->len);
    }
}

static void go_home(struct hg_webask *ask, void (*deliver)(struct hg_letter *, void *))
{
    ask->letter.deliver = deliver;
    hg_mailbox_post(&ask->web->mailbox, &ask->letter);
}

static void on_hot_home(struct hg_letter *letter, void *receiver);
static void on_slow_home(struct hg_letter *letter, void *receiver);

static void on_house(struct hg_letter *letter, void *receiver)
{
    struct hg_webask *ask = HG_CONTAINER_OF(letter, struct hg_webask, letter);
    struct hg_process *process = receiver;
    const struct hg_directory *directory = process->directory;
    ask->epoch = process->hotkeys.last;
    for (size_t i = 0; i < directory->bucket_count && !ask->failed; i++)
        add_record(ask, directory->buckets[i],
                   hg_hotkeys_record(&process->hotkeys, directory->buckets[i], 0));
    go_home(ask, on_hot_home);
}

/* ---- the slow log, from worker to worker ---- */

static void on_worker(struct hg_letter *letter, void *receiver)
{
    struct hg_webask *ask = HG_CONTAINER_OF(letter, struct hg_webask, letter);
    struct hg_worker *worker = receiver;
    uint64_t first =
        worker->slow_count > HG_SLOW_LOG_ENTRIES ? worker->slow_count - HG_SLOW_LOG_ENTRIES : 0;
    for (uint64_t n = first; n < worker->slow_count; n++) {
        if (!make_room(ask, (void **)&ask->slow, sizeof ask->slow[0]))
            break;
        ask->slow[ask->count++] = worker->slow[n % HG_SLOW_LOG_ENTRIES];
    }
    unsigned next = worker->index + 1;
    if (next < worker->front->worker_count)
        hg_mailbox_post(&worker->front->workers[next].mailbox, &ask->letter);
    else
        go_home(ask, on_slow_home);
}

/* ---- texts ---- */

static void key_object(struct hg_webtext *text, const struct hg_webask_key *key)
{
    uint64_t tenths = key->activity > 0 ? key->freq * 1000 / key->activity : 0;
    hg_json_open(text, '{');
    hg_json_key(text, "tenant");
    hg_json_string(text, key->tenant);
    hg_json_key(text, "type");
    hg_json_string(text, hg_hot_type_name((enum hg_hot_type)key->type));
    hg_json_key(text, "rank");
    hg_json_uint(text, key->rank);
    hg_json_key(text, "table");
    hg_json_bytes(text, hg_span(key->key, key->table_len));
    hg_json_key(text, "key");
    hg_json_bytes(text, hg_span(key->key + key->table_len, (size_t)key->len - key->table_len));
    hg_json_key(text, "count");
    hg_json_uint(text, key->freq);
    hg_json_key(text, "error");
    hg_json_uint(text, key->error);
    hg_json_key(text, "share_percent");
    hg_json_fixed(text, tenths < 1000 ? tenths : 1000, 1);
    hg_json_key(text, "threshold");
    hg_json_uint(text, key->threshold);
    hg_json_key(text, "throttled");
    hg_json_bool(text, key->percent > 0);
    hg_json_key(text, "percent");
    hg_json_uint(text, key->percent);
    hg_json_close(text, '}');
}

static void hot_text(struct hg_webask *ask, struct hg_webtext *text)
{
    hg_json_open(text, '{');
    hg_json_key(text, "epoch");
    hg_json_uint(text, ask->epoch);
    hg_json_key(text, "epoch_ms");
    hg_json_uint(text, atomic_load(&ask->web->process->front.hot.epoch_ms));
    hg_json_key(text, "keys");
    hg_json_open(text, '[');
    for (size_t i = 0; i < ask->count; i++)
        key_object(text, &ask->keys[i]);
    hg_json_close(text, ']');
    hg_json_close(text, '}');
}

static void slow_object(struct hg_webtext *text, const struct hg_slow_entry *entry)
{
    size_t shown = entry->key_len < sizeof entry->key ? entry->key_len : sizeof entry->key;
    hg_json_open(text, '{');
    hg_json_key(text, "time");
    hg_json_uint(text, entry->wall_s);
    hg_json_key(text, "tenant");
    hg_json_string(text, entry->bucket);
    hg_json_key(text, "operation");
    hg_json_string(text, hg_op_rows[entry->op].name);
    hg_json_key(text, "key");
    hg_json_bytes(text, hg_span(entry->key, shown));
    hg_json_key(text, "key_cut");
    hg_json_bool(text, shown < entry->key_len);
    hg_json_key(text, "server");
    hg_json_string(text, entry->server);
    hg_json_key(text, "outcome");
    hg_json_string(text, hg_outcome_rows[entry->outcome].name);
    hg_json_key(text, "total_us");
    hg_json_uint(text, entry->total_us);
    hg_json_key(text, "queue_us");
    hg_json_uint(text, entry->queue_us);
    hg_json_key(text, "throttle_us");
    hg_json_uint(text, entry->throttle_us);
    hg_json_key(text, "backend_us");
    hg_json_uint(text, entry->backend_us);
    hg_json_close(text, '}');
}

static int newest_first(const void *a, const void *b)
{
    const struct hg_slow_entry *left = a, *right = b;
    if (left->wall_s != right->wall_s)
        return left->wall_s > right->wall_s ? -1 : 1;
    return (left->total_us < right->total_us) - (left->total_us > right->total_us);
}

static void slow_text(struct hg_webask *ask, struct hg_webtext *text)
{
    size_t count = ask->count < HG_SLOW_LOG_ENTRIES ? ask->count : HG_SLOW_LOG_ENTRIES;
    hg_json_open(text, '{');
    hg_json_key(text, "slow");
    hg_json_open(text, '[');
    for (size_t i = 0; i < count; i++)
        slow_object(text, &ask->slow[i]);
    hg_json_close(text, ']');
    hg_json_close(text, '}');
}

/* ---- asking and answering ---- */

static void reply(struct hg_webask *ask, struct evhttp_request *request)
{
    struct hg_webtext text;
    hg_webtext_init(&text);
    if (ask == &ask->web->hot)
        hot_text(ask, &text);
    else
        slow_text(ask, &text);
    text.failed |= ask->failed;
    hg_web_reply(ask->web, request, 200, "application/json", &text);
}

static void come_home(struct hg_webask *ask)
{
    ask->under_way = false;
    ask->got_us = ask->failed ? 0 : hg_now_us();
    if (ask->web->stopping)
        return;
    HG_LIST_EACH(node, &ask->waiting)
    {
        struct waiting *waiting = HG_CONTAINER_OF(node, struct waiting, node);
        hg_list_remove(node);
        reply(ask, waiting->request);
        free(waiting);
    }
}

static void on_hot_home(struct hg_letter *letter, void *receiver)
{
    (void)receiver;
    come_home(HG_CONTAINER_OF(letter, struct hg_webask, letter));
}

static void on_slow_home(struct hg_letter *letter, void *receiver)
{
    struct hg_webask *ask = HG_CONTAINER_OF(letter, struct hg_webask, letter);
    (void)receiver;
    if (ask->count > 0)
        qsort(ask->slow, ask->count, sizeof ask->slow[0], newest_first);
    come_home(ask);
}

/* False: the request is answered. */
static bool wait_for(struct hg_webask *ask, struct evhttp_request *request)
{
    struct waiting *waiting;
    if (!ask->under_way && ask->got_us != 0 && hg_now_us() - ask->got_us < HG_WEBASK_FRESH_US) {
        reply(ask, request);
        return false;
    }
    waiting = malloc(sizeof *waiting);
    if (waiting == NULL) {
        struct hg_webtext text = {.failed = true};
        hg_web_reply(ask->web, request, 200, "application/json", &text);
        return false;
    }
    waiting->request = request;
    hg_list_append(&ask->waiting, &waiting->node);
    if (ask->under_way)
        return false;
    ask->under_way = true;
    ask->failed = false;
    ask->count = 0;
    return true;
}

void hg_webask_hotkeys(struct hg_web *web, struct evhttp_request *request)
{
    if (!wait_for(&web->hot, request))
        return;
    web->hot.letter.deliver = on_house;
    hg_mailbox_post(&web->process->house, &web->hot.letter);
}

void hg_webask_slow(struct hg_web *web, struct evhttp_request *request)
{
    if (!wait_for(&web->slow, request))
        return;
    web->slow.letter.deliver = on_worker;
    hg_mailbox_post(&web->process->workers[0].mailbox, &web->slow.letter);
}
