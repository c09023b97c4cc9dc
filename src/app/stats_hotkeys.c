// stats_hotkeys - the views of hot keys: the last epoch, its history, and how the engine fares
// SPDX-License-Identifier: BSD-3-Clause
//
// One packet a row, named hotkeys:N, whose value is a JSON object with OceanBase's column names.
// Reading changes nothing.
#include <jansson.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/rights.h"
#include "app/stats.h"
#include "proto/status.h"

#define ESCAPED_MAX (4 * HG_HOTKEY_KEY_MAX + 1)

/* Where the rows say that they were counted. */
struct place {
    char ip[HG_ADDR_TEXT];
    unsigned port;
};

struct view {
    struct hg_process *process;
    struct hg_job *job;
    struct place place;
    bool history;
    unsigned rows;
};

/* Printable ASCII as it is, a backslash doubled, everything else \xNN. */
static void escape(const uint8_t *bytes, size_t len, char ret[ESCAPED_MAX])
{
    char *at = ret;
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\\')
            at += sprintf(at, "\\\\");
        else if (bytes[i] >= 0x20 && bytes[i] < 0x7f)
            *at++ = (char)bytes[i];
        else
            at += sprintf(at, "\\x%02x", bytes[i]);
    }
    *at = '\0';
}

static json_t *row_json(const struct view *view, const struct hg_bucket *bucket,
                        const struct hg_hotrow *row)
{
    char table[ESCAPED_MAX], key[ESCAPED_MAX];
    escape(row->key, row->table_len, table);
    escape(row->key + row->table_len, (size_t)row->len - row->table_len, key);
    return json_pack("{s:s, s:s, s:s, s:i, s:s, s:s, s:I, s:I, s:i, s:I}", "TENANT", bucket->name,
                     "TABLE", table, "SVR_IP", view->place.ip, "SVR_PORT", (int)view->place.port,
                     "HOTKEY", key, "HOTKEY_TYPE", hg_hot_type_name((enum hg_hot_type)row->type),
                     "HOTKEY_FREQ", (json_int_t)row->freq, "ERROR", (json_int_t)row->error,
                     "THROTTLE_PERCENT", (int)row->percent, "REJECTED", (json_int_t)row->rejected);
}

static void add_record(struct view *view, const struct hg_bucket *bucket,
                       const struct hg_hotrecord *record)
{
    for (unsigned i = 0; record != NULL && i < record->count; i++) {
        char name[32];
        json_t *row = row_json(view, bucket, &record->rows[i]);
        if (row != NULL && view->history) {
            json_object_set_new(row, "EPOCH", json_integer((json_int_t)record->epoch));
            json_object_set_new(row, "END", json_integer((json_int_t)record->end_wall_s));
        }
        char *text = row != NULL ? json_dumps(row, JSON_COMPACT) : NULL;
        snprintf(name, sizeof name, "hotkeys:%u", ++view->rows);
        if (text == NULL)
            hg_job_fail(view->job, HG_STATUS_EINTERNAL, "no memory is left");
        else
            hg_job_stat_bytes(view->job, hg_span_str(name), hg_span_str(text));
        free(text);
        json_decref(row);
    }
}

static void add_bucket(struct view *view, const struct hg_bucket *bucket)
{
    const struct hg_hotkeys *hot = &view->process->hotkeys;
    if (!view->history) {
        add_record(view, bucket, hg_hotkeys_record(hot, bucket, 0));
        return;
    }
    for (unsigned back = HG_HOT_HISTORY; back-- > 0;)
        add_record(view, bucket, hg_hotkeys_record(hot, bucket, back));
}

/* The first listener; of a unix socket the path, and port 0. */
static void find_place(const struct hg_process *process, struct place *ret)
{
    const struct hg_addr *addr = &process->first_listen;
    char port[16] = "0";
    *ret = (struct place){"", 0};
    if (addr->sa.ss_family == AF_UNIX)
        hg_addr_text(addr, ret->ip);
    else if (getnameinfo((const struct sockaddr *)&addr->sa, addr->len, ret->ip, sizeof ret->ip,
                         port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        ret->port = (unsigned)atoi(port);
}

/* The words after "hotkeys": an optional view, an optional tenant. */
static struct hg_span cut_view(struct hg_span words, bool *ret_history)
{
    static const struct {
        const char *word;
        bool history;
    } views[] = {{"global", false}, {"history", true}};
    *ret_history = false;
    for (size_t i = 0; i < HG_COUNT_OF(views); i++) {
        size_t len = strlen(views[i].word);
        if (words.len < len || memcmp(words.at, views[i].word, len) != 0)
            continue;
        if (words.len > len && words.at[len] != ' ')
            continue;
        *ret_history = views[i].history;
        size_t skip = words.len > len ? len + 1 : len;
        return hg_span(words.at + skip, words.len - skip);
    }
    return words;
}

static void one_bucket(struct view *view, struct hg_span name)
{
    const struct hg_bucket *bucket = hg_directory_bucket(view->process->directory, name);
    if (bucket != NULL && hg_stats_may_see(view->job, bucket))
        add_bucket(view, bucket);
    else
        hg_stats_refuse_bucket(view->job, bucket);
}

void hg_stats_hotkeys(struct hg_process *process, struct hg_job *job)
{
    static const size_t head = sizeof "hotkeys " - 1;
    struct view view = {.process = process, .job = job};
    struct hg_span words = HG_SPAN_NONE;
    if (job->key.len > head)
        words = hg_span(job->key.at + head, job->key.len - head);
    struct hg_span tenant = cut_view(words, &view.history);
    find_place(process, &view.place);
    if (tenant.len > 0) {
        one_bucket(&view, tenant);
        return;
    }
    for (size_t i = 0; i < process->directory->bucket_count; i++)
        if (hg_stats_may_see(job, process->directory->buckets[i]))
            add_bucket(&view, process->directory->buckets[i]);
}

/* ---- the engine ---- */

static uint64_t sum_hot(const struct hg_process *process, size_t offset)
{
    uint64_t sum = 0;
    for (unsigned w = 0; w < process->front.worker_count; w++)
        sum +=
            hg_counter_get((const hg_counter *)((const char *)&process->workers[w].hot + offset));
    return sum;
}

static void stat(struct hg_job *job, const char *name, uint64_t value)
{
    hg_job_stat(job, name, "%llu", (unsigned long long)value);
}

static uint64_t share_of(uint64_t sum_ns, uint64_t parts)
{
    return parts > 0 ? sum_ns / parts : 0;
}

void hg_stats_hotkey_engine(struct hg_process *process, struct hg_job *job)
{
    struct hg_hotkeys *hot = &process->hotkeys;
    struct hg_hotmem *mem = &process->front.hot.mem;
    stat(job, "epoch_ms", atomic_load(&process->front.hot.epoch_ms));
    stat(job, "last_epoch", hot->last);
#define HG_HOT_STAT(name, kind, text) stat(job, #name, hg_counter_get(&hot->name));
    HG_HOT_STATS(HG_HOT_STAT)
#undef HG_HOT_STAT
    stat(job, "merge_ns_a_share",
         share_of(hg_counter_get(&hot->merge_ns), hg_counter_get(&hot->merged_shares)));
#define HG_HOT_WORKER_STAT(name, kind, text)                                                       \
    stat(job, #name, sum_hot(process, offsetof(struct hg_hot_worker, name)));
    HG_HOT_WORKER_STATS(HG_HOT_WORKER_STAT)
#undef HG_HOT_WORKER_STAT
    stat(job, "handover_ns_a_share",
         share_of(sum_hot(process, offsetof(struct hg_hot_worker, handover_ns)),
                  sum_hot(process, offsetof(struct hg_hot_worker, handed_shares))));
    stat(job, "memory_bytes", atomic_load(&mem->used_bytes));
    stat(job, "memory_cap_bytes", atomic_load(&mem->cap_bytes));
    stat(job, "memory_refused", atomic_load(&mem->refused));
}
