// gate_refuse - what a request is told that gets no ticket
// SPDX-License-Identifier: BSD-3-Clause
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "front/answer.h"
#include "front/flood.h"
#include "front/gate_in.h"
#include "front/words.h"
#include "proto/hello.h"
#include "proto/status.h"

/* "the server", "upstream 'cache'", "server '10.0.0.1:11211' of upstream 'cache'" */
static void name_holder(const struct hg_gate_line *in, char *text, size_t bytes)
{
    if (in->part == NULL) {
        snprintf(text, bytes, "the server");
        return;
    }
    const char *server = in->part->share->server, *upstream = in->part->gate->upstream->name;
    if (server[0] == '\0')
        snprintf(text, bytes, "upstream '%s'", upstream);
    else
        snprintf(text, bytes, "server '%.80s' of upstream '%s'", server, upstream);
}

/* The member that names the server, or nothing: of no server, or of one whose name is no JSON. */
static void server_member(const struct hg_gate_line *in, char *text, size_t bytes)
{
    const char *server = in->part != NULL ? in->part->share->server : "";
    text[0] = '\0';
    if (server[0] != '\0' && strpbrk(server, "\"\\\n\r\t") == NULL)
        snprintf(text, bytes, ",\"server\":\"%.80s\"", server);
}

/* Of whom it is that asks for too much. */
static const char *const whose[] = {[HG_FAIR_BY_TENANT] = "tenant",
                                    [HG_FAIR_BY_USER] = "this user of tenant",
                                    [HG_FAIR_BY_ADDRESS] = "this address of tenant"};

/* `retry_ms`: of a FLOOD or KEY. */
static struct hg_span explain(struct hg_words *words, const struct hg_words_key *key,
                              const struct hg_lane *lane, const struct hg_gate_line *in,
                              unsigned retry_ms)
{
    const struct hg_bucket *bucket = lane->bucket;
    const char *place = hg_gate_place_name(in->place);
    char of[240], server[100], text[480], members[400];
    name_holder(in, of, sizeof of);
    server_member(in, server, sizeof server);
    if (key->kind == HG_WORDS_FLOOD)
        snprintf(text, sizeof text,
                 "%s '%s' asks for more than can be served in time by a %s ticket of %s; try "
                 "again in %u ms",
                 whose[in->part != NULL ? lane->fair_by : HG_FAIR_BY_TENANT], bucket->name, place,
                 of, retry_ms);
    else if (key->kind == HG_WORDS_KEY)
        snprintf(text, sizeof text,
                 "requests for this key take long, and it has its share of the %s tickets of %s; "
                 "try again in %u ms",
                 place, of, retry_ms);
    else
        snprintf(text, sizeof text,
                 key->kind == HG_WORDS_LATE ? "no %s ticket of %s became free in time"
                                            : "too many requests wait for a %s ticket of %s",
                 place, of);
    if (key->kind == HG_WORDS_FLOOD || key->kind == HG_WORDS_KEY)
        snprintf(members, sizeof members,
                 "\"limit\":\"%s\",\"tenant\":\"%s\"%s,\"retry_after_ms\":%u",
                 key->kind == HG_WORDS_KEY ? "key_share" : "tenant_line", bucket->name, server,
                 retry_ms);
    else
        snprintf(members, sizeof members, "\"limit\":\"%s_tickets\",\"tenant\":\"%s\"%s", place,
                 bucket->name, server);
    return hg_words_keep(words, key, text, members);
}

/* A time to come again, of few different ones, so that the words are found again. */
static unsigned retry_class(uint64_t us)
{
    unsigned class = 4; /* 16 ms */
    while (class < 14 && ((uint64_t)1000 << class) < us)
        class ++;
    return class;
}

static struct hg_refusal refusal_of(enum hg_words_kind why)
{
    switch (why) {
    case HG_WORDS_FULL:
        return (struct hg_refusal){HG_STATUS_QUEUE_FULL, HG_OUTCOME_QUEUE_FULL, NULL, HG_SPAN_NONE,
                                   HG_SPAN_NONE};
    case HG_WORDS_KEY:
        return (struct hg_refusal){HG_STATUS_BIND_THROTTLE, HG_OUTCOME_KEY_SHARE, NULL,
                                   HG_SPAN_NONE, HG_SPAN_NONE};
    default:
        return (struct hg_refusal){HG_STATUS_QUEUE_TIMEOUT, HG_OUTCOME_QUEUE_TIMEOUT, NULL,
                                   HG_SPAN_NONE, HG_SPAN_NONE};
    }
}

/* ---- counting ---- */

struct hg_ticketline_conf hg_gate_flood_conf(const struct hg_gate_line *in)
{
    struct hg_gate_holder *h = in->holder;
    return (struct hg_ticketline_conf){
        .queue_timeout_us = atomic_load_explicit(&h->queue_timeout_us, memory_order_relaxed),
        .flood_wait_us = atomic_load_explicit(&h->flood_wait_us, memory_order_relaxed),
    };
}

/* Has the store answered nobody since then, on any worker? Or are there no tickets, so that nobody
   asks it? What is stranded is nobody's ticket, so the line alone does not tell. */
static bool is_silent(const struct hg_gate_line *in, uint64_t since_us)
{
    const struct hg_gate_holder *holder = in->holder;
    if (hg_ticket_size(&holder->ticket) == 0)
        return true;
    if (in->part == NULL || in->answered_us > since_us)
        return false;
    for (unsigned w = 0; w < holder->worker_count; w++)
        if (hg_counter_get(&holder->workers[w].answered_us) > since_us)
            return false;
    return true;
}

/* The row of gate.def that a refusal counts as; FULL has been counted. */
static size_t row_of(const struct hg_gate_pass *pass, const struct hg_gate_line *in,
                     const struct hg_ticketline_tenant *place, enum hg_words_kind why)
{
    const struct hg_ticketline_conf conf = hg_gate_flood_conf(in);
    uint64_t now_us = in->worker->loop.now_us;
    uint64_t since_us = in->place == HG_GATE_INGRESS ? pass->wait_us : pass->since_us;
    if (why == HG_WORDS_KEY || pass->waits_for_key)
        return offsetof(struct hg_gate_tally, refused_key);
    if (why == HG_WORDS_FLOOD ||
        (place != NULL && hg_ticketline_flood_since_us(place, &conf, now_us) != 0))
        return offsetof(struct hg_gate_tally, refused_flood);
    if (place != NULL && hg_ticketline_is_stalled(&in->line, place, now_us))
        return offsetof(struct hg_gate_tally, refused_stalled);
    if (now_us - since_us < conf.queue_timeout_us)
        return offsetof(struct hg_gate_tally, refused_overdue);
    if (is_silent(in, since_us))
        return offsetof(struct hg_gate_tally, refused_stalled);
    return offsetof(struct hg_gate_tally, refused_calm);
}

/* The tenant's, also where its parties take turns (gate_party.c); it has a cell. */
static struct hg_flood_count *flood_count_of(struct hg_lane *lane, const struct hg_gate_line *in)
{
    if (in->part == NULL)
        return &lane->ingress_flood;
    return &lane->cells[in->part->index]->seats[in->place - HG_GATE_READ].flood;
}

static void count(const struct hg_gate_pass *pass, const struct hg_gate_line *in,
                  enum hg_words_kind why)
{
    struct hg_lane *lane = pass->request->lane;
    struct hg_ticketline_tenant *place =
        in->part != NULL ? hg_gate_place_of(in, pass->request) : &lane->ingress;
    if (why == HG_WORDS_FULL)
        return;
    size_t row = row_of(pass, in, place, why);
    hg_counter_add((hg_counter *)((char *)in->tally + row), 1);
    hg_counter_add((hg_counter *)((char *)&lane->tallies[in->place] + row), 1);
    if (row == offsetof(struct hg_gate_tally, refused_flood) && place != NULL)
        hg_flood_count(flood_count_of(lane, in), in->worker->loop.now_us);
}

/* ---- telling ---- */

void hg_gate_refuse(struct hg_gate_pass *pass, const struct hg_gate_line *in,
                    enum hg_words_kind why, uint64_t predicted_us)
{
    struct hg_request *request = pass->request;
    struct hg_words *words = &request->session->worker->words;
    const struct hg_lane *lane = request->lane;
    bool timed = why == HG_WORDS_FLOOD || why == HG_WORDS_KEY;
    unsigned class = timed ? retry_class(predicted_us) : 0;
    const struct hg_words_key key = {
        .of = lane->bucket,
        .kind = (uint8_t)why,
        .json = pass == &request->pass && (request->features & HG_FEATURE_JSON) != 0,
        .number = (uint16_t)((unsigned)in->place | class << 8 | (unsigned)lane->fair_by << 12),
        .other = in->part != NULL ? (uint32_t)in->part->number : 0};
    struct hg_refusal refusal = refusal_of(why);
    count(pass, in, why);
    refusal.verbatim = hg_words_find(words, &key);
    if (refusal.verbatim.len == 0)
        refusal.verbatim = explain(words, &key, lane, in, 1u << class);
    pass->owner->on_refused(pass, &refusal);
}

void hg_gate_refuse_key(struct hg_gate_pass *pass, const struct hg_gate_line *in, uint64_t retry_us)
{
    hg_counter_add(&pass->request->lane->key_share_refused, 1);
    hg_gate_refuse(pass, in, HG_WORDS_KEY, retry_us);
}
