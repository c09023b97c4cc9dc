// slotsreply - what a server says of its cluster: the reply of CLUSTER SLOTS, read with care
// SPDX-License-Identifier: BSD-3-Clause
//
//   depth 0: array of stretches
//   depth 1:   array: a stretch
//   depth 2:     integers first and last (place 0, 1), arrays: nodes (2: the owner, 3 ...:
//   replicas) depth 3:       host (0), port (1), id (2), and what later versions add
#include "back/slotsreply.h"

#include <hiredis/read.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 2048                /* twice the nodes */
#define NAMED   (HG_SLOTS_NONE - 1) /* owner of a slot that was named and has none yet */

struct hg_slotsreply {
    redisReader *reader;
    const char *asked;
    unsigned before; /* replies that are still to come before it */
    size_t fed_bytes;
    bool is_other;         /* an error, or not an array at all */
    long long first, last; /* of the stretch that is being read; -1: not yet known */
    struct hg_span host;   /* of the node that is being read, in `host_room` */
    bool host_known;
    uint8_t host_room[HG_REDIRECT_HOST_MAX + 1];
    char why[HG_SLOTSREPLY_WHY];
    uint16_t buckets[BUCKETS]; /* of addresses: number of the node + 1 */
    struct hg_slots slots;
};

/* Gives the reply up: the reader takes NULL for an error and stops. */
static void *refuse(struct hg_slotsreply *reply, const char *format, ...) HG_PRINTF(2, 3);
static void *refuse(struct hg_slotsreply *reply, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(reply->why, sizeof reply->why, format, args);
    va_end(args);
    return NULL;
}

static int depth_of(const redisReadTask *task)
{
    int depth = 0;
    for (; task->parent != NULL; task = task->parent)
        depth++;
    return depth;
}

/* What a node has behind its port: its id, and what later versions add. */
static bool is_extra(const redisReadTask *task, int depth)
{
    return depth > 3 || (depth == 3 && task->idx >= 2);
}

/* The number of the node, new or known; HG_SLOTS_NONE when there are too many. */
static uint16_t node_of(struct hg_slotsreply *reply, const char *address)
{
    struct hg_slots *slots = &reply->slots;
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *c = address; *c != '\0'; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    uint32_t bucket = hash % BUCKETS;
    for (; reply->buckets[bucket] != 0; bucket = (bucket + 1) % BUCKETS) {
        uint16_t node = reply->buckets[bucket] - 1;
        if (strcmp(slots->nodes[node].address, address) == 0)
            return node;
    }
    if (slots->node_count == HG_SLOTS_NODES_MAX)
        return HG_SLOTS_NONE;
    reply->buckets[bucket] = (uint16_t)(slots->node_count + 1);
    snprintf(slots->nodes[slots->node_count].address, HG_REDIRECT_ADDRESS, "%s", address);
    return (uint16_t)slots->node_count++;
}

/* Host and port of a node are known. */
static void *take_node(struct hg_slotsreply *reply, bool owns, long long port)
{
    struct hg_slots *slots = &reply->slots;
    char address[HG_REDIRECT_ADDRESS];
    bool unknown = port == 0 || hg_span_is(reply->host, "?") ||
                   (reply->host.len == 0 && strchr(reply->asked, '/') != NULL);
    uint16_t node = HG_SLOTS_NONE;
    if (port < 0 || port > UINT16_MAX)
        return refuse(reply, "a node has port %lld", port);
    if (!unknown) {
        if (!hg_redirect_address(reply->host, (uint64_t)port, reply->asked, address))
            return refuse(reply, "a node has no valid address");
        node = node_of(reply, address);
    }
    if (!owns || node == HG_SLOTS_NONE)
        return reply;
    slots->nodes[node].owns = true;
    for (long long slot = reply->first; slot <= reply->last; slot++)
        slots->owner[slot] = node;
    slots->uncovered -= (uint32_t)(reply->last - reply->first + 1);
    return reply;
}

/* Both ends of a stretch are known. */
static void *take_stretch(struct hg_slotsreply *reply)
{
    if (reply->first < 0 || reply->last >= HG_KEYSLOTS || reply->first > reply->last)
        return refuse(reply, "slots %lld to %lld cannot be", reply->first, reply->last);
    for (long long slot = reply->first; slot <= reply->last; slot++) {
        if (reply->slots.owner[slot] != HG_SLOTS_NONE)
            return refuse(reply, "slot %lld is named twice", slot);
        reply->slots.owner[slot] = NAMED;
    }
    return reply;
}

static void *on_array(const redisReadTask *task, int elements)
{
    struct hg_slotsreply *reply = task->privdata;
    int depth = depth_of(task);
    if (depth == 0 && reply->before > 0)
        return refuse(reply, "a login was answered by an array");
    if (depth == 0 && elements > HG_KEYSLOTS)
        return refuse(reply, "%d stretches of slots", elements);
    if (depth == 1) {
        reply->first = reply->last = -1;
        return elements >= 2 ? reply : refuse(reply, "a stretch without its slots");
    }
    if (depth == 2) {
        reply->host = HG_SPAN_NONE;
        reply->host_known = false;
        if (task->idx < 2 || elements < 2)
            return refuse(reply, "a node where a slot should be, or without its address");
    }
    return depth == 3 && task->idx < 2 ? refuse(reply, "an array for an address") : reply;
}

static void *on_integer(const redisReadTask *task, long long value)
{
    struct hg_slotsreply *reply = task->privdata;
    int depth = depth_of(task);
    if (depth == 0 && reply->before > 0)
        return reply;
    if (depth == 0) {
        reply->is_other = true;
        return reply;
    }
    if (depth == 2 && task->idx == 0) {
        reply->first = value;
        return reply;
    }
    if (depth == 2 && task->idx == 1) {
        reply->last = value;
        return take_stretch(reply);
    }
    if (depth == 3 && task->idx == 1 && reply->host_known)
        return take_node(reply, task->parent->idx == 2, value);
    return is_extra(task, depth) ? reply : refuse(reply, "a number out of place");
}

static void *take_host(struct hg_slotsreply *reply, const char *text, size_t len)
{
    if (len > HG_REDIRECT_HOST_MAX)
        return refuse(reply, "a host of %zu bytes", len);
    if (len > 0)
        memcpy(reply->host_room, text, len);
    reply->host = hg_span(reply->host_room, len);
    reply->host_known = true;
    return reply;
}

static bool has(const char *text, size_t len, const char *what)
{
    return memmem(text, len, what, strlen(what)) != NULL;
}

static void *on_string(const redisReadTask *task, char *text, size_t len)
{
    struct hg_slotsreply *reply = task->privdata;
    int depth = depth_of(task);
    if (task->type == REDIS_REPLY_ERROR && depth == 0)
        return refuse(reply, "%.*s%s", (int)(len < 140 ? len : 140), text,
                      has(text, len, "cluster support disabled") ? ": use an upstream of kind redis"
                                                                 : "");
    if (depth == 0) {
        reply->is_other = reply->before == 0;
        return reply;
    }
    if (task->type == REDIS_REPLY_ERROR)
        return refuse(reply, "an error out of place");
    if (depth == 3 && task->idx == 0)
        return take_host(reply, text, len);
    return is_extra(task, depth) ? reply : refuse(reply, "a text out of place");
}

static void *on_nil(const redisReadTask *task)
{
    struct hg_slotsreply *reply = task->privdata;
    int depth = depth_of(task);
    if (depth == 3 && task->idx == 0)
        return take_host(reply, NULL, 0);
    if (depth == 0)
        reply->is_other = reply->before == 0;
    return depth == 0 || is_extra(task, depth) ? reply : refuse(reply, "a nil out of place");
}

static void on_free(void *object)
{
    (void)object; /* all objects are the reply itself */
}

static redisReplyObjectFunctions functions = {
    .createString = on_string,
    .createArray = on_array,
    .createInteger = on_integer,
    .createNil = on_nil,
    .freeObject = on_free,
};

struct hg_slotsreply *hg_slotsreply_new(const char *asked, unsigned before)
{
    struct hg_slotsreply *reply = calloc(1, sizeof *reply);
    if (reply == NULL)
        return NULL;
    reply->reader = redisReaderCreateWithFunctions(&functions);
    if (reply->reader == NULL) {
        free(reply);
        return NULL;
    }
    reply->reader->privdata = reply;
    reply->asked = asked;
    reply->before = before;
    reply->slots.uncovered = HG_KEYSLOTS;
    memset(reply->slots.owner, 0xff, sizeof reply->slots.owner);
    return reply;
}

void hg_slotsreply_free(struct hg_slotsreply *reply)
{
    if (reply == NULL)
        return;
    redisReaderFree(reply->reader);
    free(reply);
}

/* A whole reply has been read. */
static enum hg_codec finish(struct hg_slotsreply *reply)
{
    if (reply->is_other) {
        (void)refuse(reply, "CLUSTER SLOTS was answered by something else");
        return HG_BAD;
    }
    for (uint32_t slot = 0; slot < HG_KEYSLOTS; slot++) {
        if (reply->slots.owner[slot] == NAMED)
            reply->slots.owner[slot] = HG_SLOTS_NONE;
    }
    return HG_OK;
}

enum hg_codec hg_slotsreply_feed(struct hg_slotsreply *reply, const void *bytes, size_t len)
{
    reply->fed_bytes += len;
    if (reply->fed_bytes > HG_SLOTSREPLY_MAX_BYTES) {
        (void)refuse(reply, "a reply of more than %u bytes", HG_SLOTSREPLY_MAX_BYTES);
        return HG_BAD;
    }
    bool ok = redisReaderFeed(reply->reader, bytes, len) == REDIS_OK;
    while (ok) {
        void *object = NULL;
        ok = redisReaderGetReply(reply->reader, &object) == REDIS_OK;
        if (ok && object == NULL)
            return HG_MORE;
        if (ok && reply->before-- == 0)
            return finish(reply);
    }
    if (reply->why[0] == '\0')
        (void)refuse(reply, "%s", reply->reader->errstr);
    return HG_BAD;
}

const struct hg_slots *hg_slotsreply_slots(const struct hg_slotsreply *reply)
{
    return &reply->slots;
}

const char *hg_slotsreply_why(const struct hg_slotsreply *reply)
{
    return reply->why;
}
