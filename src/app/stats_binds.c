// stats_binds - statistics of bind eviction and of the keys that are throttled for it
// SPDX-License-Identifier: BSD-3-Clause
//
// One packet for each key, named bindthrottle:N, narrowest throttle first, whose value is a JSON
// object with the names of the log's events. Entries are each worker's own: what is shown of a key
// is the largest X, and the sums of the rest.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/rights.h"
#include "app/stats.h"
#include "app/stats_rows.h"
#include "base/clock.h"
#include "base/log.h"
#include "proto/status.h"

#define ESCAPED_MAX (4 * HG_HOTKEY_KEY_MAX + 1)

struct shown {
    struct hg_bind_shown of;
    unsigned workers;
};

static bool take_board(struct hg_stats_rows *list, struct hg_bind_board *board)
{
    struct shown *row = NULL;
    pthread_mutex_lock(&board->lock);
    size_t i = 0;
    for (; i < board->count && (row = hg_stats_add(list)) != NULL; i++)
        *row = (struct shown){board->rows[i], 1};
    bool done = i == board->count;
    pthread_mutex_unlock(&board->lock);
    return done;
}

static int compare_keys(const void *a, const void *b)
{
    const struct hg_bind_shown *left = &((const struct shown *)a)->of;
    const struct hg_bind_shown *right = &((const struct shown *)b)->of;
    int order = strcmp(left->bucket, right->bucket);
    if (order == 0)
        order = (int)left->type - (int)right->type;
    if (order == 0)
        order = (int)left->table_len - (int)right->table_len;
    if (order == 0)
        order = (int)left->key_len - (int)right->key_len;
    if (order == 0)
        order = memcmp(left->key, right->key, left->key_len);
    return order != 0 ? order : (left->hash > right->hash) - (left->hash < right->hash);
}

static int compare_x(const void *a, const void *b)
{
    const struct shown *left = a, *right = b;
    if (left->of.x != right->of.x)
        return left->of.x > right->of.x ? -1 : 1;
    return compare_keys(a, b);
}

static void absorb(void *a, const void *b)
{
    struct hg_bind_shown *into = &((struct shown *)a)->of;
    const struct hg_bind_shown *from = &((const struct shown *)b)->of;
    ((struct shown *)a)->workers++;
    into->x = from->x > into->x ? from->x : into->x;
    into->asked_us = from->asked_us > into->asked_us ? from->asked_us : into->asked_us;
    into->passed += from->passed;
    into->refused += from->refused;
    into->halved += from->halved;
}

static json_t *row_json(const struct shown *row, uint64_t now_us)
{
    const struct hg_bind_shown *of = &row->of;
    char table[ESCAPED_MAX] = "key", key[ESCAPED_MAX], class[HG_BUCKET_NAME_MAX + 32];
    if (of->table_len > 0)
        hg_escape(table, sizeof table, hg_span(of->key, of->table_len));
    hg_escape(key, sizeof key,
              hg_span(of->key + of->table_len, (size_t)of->key_len - of->table_len));
    snprintf(class, sizeof class, "%s/%s", of->bucket,
             hg_hot_type_name((enum hg_hot_type)of->type) + sizeof "TABLE_HOTKEY_" - 1);
    uint64_t idle_us = of->asked_us != 0 && now_us > of->asked_us ? now_us - of->asked_us : 0;
    return json_pack("{s:s, s:s, s:s, s:I, s:f, s:i, s:I, s:I, s:I, s:I}", "class", class, "k",
                     table, "v", key, "allowEveryX", (json_int_t)of->x, "allowFrac",
                     1.0 / (double)(of->x > 0 ? of->x : 1), "workers", (int)row->workers, "passed",
                     (json_int_t)of->passed, "refused", (json_int_t)of->refused, "halved",
                     (json_int_t)of->halved, "idleMillis", (json_int_t)(idle_us / 1000));
}

static void add_entries(struct hg_process *process, struct hg_job *job,
                        const struct hg_stats_rows *list)
{
    const struct shown *rows = list->rows;
    unsigned number = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct hg_bucket *bucket =
            hg_directory_bucket(process->directory, hg_span_str(rows[i].of.bucket));
        if (bucket == NULL || !hg_stats_may_see(job, bucket))
            continue;
        char name[32];
        json_t *row = row_json(&rows[i], hg_now_us());
        char *text = row != NULL ? json_dumps(row, JSON_COMPACT | JSON_REAL_PRECISION(5)) : NULL;
        snprintf(name, sizeof name, "bindthrottle:%u", ++number);
        if (text == NULL)
            hg_job_fail(job, HG_STATUS_EINTERNAL, "no memory is left");
        else
            hg_job_stat_bytes(job, hg_span_str(name), hg_span_str(text));
        free(text);
        json_decref(row);
    }
}

static void add_tenant(struct hg_job *job, const struct hg_bucket *bucket)
{
#define HG_BIND_ROW(field)                                                                         \
    do {                                                                                           \
        char name[HG_BUCKET_NAME_MAX + 64];                                                        \
        uint64_t sum = 0;                                                                          \
        for (unsigned w = 0; w < bucket->lane_count; w++)                                          \
            sum += hg_counter_get(&bucket->lanes[w].field);                                        \
        snprintf(name, sizeof name, "tenant:%s:%s", bucket->name, #field);                         \
        hg_job_stat(job, name, "%llu", (unsigned long long)sum);                                   \
    } while (0)
    HG_BIND_ROW(bind_throttled);
    HG_BIND_ROW(bind_passed);
    HG_BIND_ROW(bind_halved);
    HG_BIND_ROW(bind_would_throttle);
    HG_BIND_ROW(bind_evicted);
    HG_BIND_ROW(bind_evicted_waiting);
    HG_BIND_ROW(bind_evicted_oldest);
    HG_BIND_ROW(bind_would_evict);
    HG_BIND_ROW(bind_made);
    HG_BIND_ROW(key_share_waited);
    HG_BIND_ROW(key_share_refused);
    HG_BIND_ROW(key_share_would);
#undef HG_BIND_ROW
}

void hg_stats_binds(struct hg_process *process, struct hg_job *job)
{
    const struct hg_directory *directory = process->directory;
    struct hg_stats_rows list = {.row_bytes = sizeof(struct shown)};
    bool done = true;
    for (unsigned w = 0; done && w < process->front.worker_count; w++)
        done = take_board(&list, &process->workers[w].bind_board);
    if (!done)
        hg_job_fail(job, HG_STATUS_EINTERNAL, "no memory is left");
    if (hg_rights_have(hg_rights_of_node(job), HG_PRIVILEGE_STATS)) {
#define HG_BINDS_STAT(name, kind, text)                                                            \
    hg_job_stat(job, #name, "%llu", (unsigned long long)hg_counter_get(&process->binds.name));
        HG_BINDS_STATS(HG_BINDS_STAT)
#undef HG_BINDS_STAT
    }
    for (size_t i = 0; i < directory->bucket_count; i++)
        if (hg_stats_may_see(job, directory->buckets[i]))
            add_tenant(job, directory->buckets[i]);
    hg_stats_merge(&list, compare_keys, absorb, compare_x);
    add_entries(process, job, &list);
    hg_stats_heldkeys(process, job);
    free(list.rows);
}
