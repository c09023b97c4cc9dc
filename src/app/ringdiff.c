// ringdiff - how many keys change their server when an upstream's ring does
// SPDX-License-Identifier: BSD-3-Clause
#include "app/ringdiff.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/process.h"
#include "back/ring.h"
#include "base/clock.h"

#define KEYS_A_LOOK 1000 /* at the clock */

static bool same_servers(const struct hg_conf_upstream *a, const struct hg_conf_upstream *b)
{
    if (a->servers_count != b->servers_count)
        return false;
    for (size_t i = 0; i < a->servers_count; i++)
        if (strcmp(a->servers[i].address.text, b->servers[i].address.text) != 0 ||
            a->servers[i].weight != b->servers[i].weight)
            return false;
    return true;
}

bool hg_ringdiff_differs(const struct hg_conf_upstream *before,
                         const struct hg_conf_upstream *after)
{
    struct hg_ring_conf a, b;
    if (before->kind != HG_CONF_KIND_MEMCACHED || after->kind != HG_CONF_KIND_MEMCACHED)
        return false;
    hg_upstream_ring_conf(&a, before);
    hg_upstream_ring_conf(&b, after);
    const char *hash_a = a.hash != NULL ? a.hash : "", *hash_b = b.hash != NULL ? b.hash : "";
    return strcmp(a.kind, b.kind) != 0 || strcmp(hash_a, hash_b) != 0 ||
           !same_servers(before, after);
}

/* One side: a ring, and for each of its servers the place among those of the comparison. */
struct side {
    struct hg_ring_server *servers;
    size_t *places;
    struct hg_ring *ring;
};

static void close_side(struct side *side)
{
    hg_ring_free(side->ring);
    free(side->servers);
    free(side->places);
}

static size_t place_of(struct hg_ringdiff *diff, const char *address)
{
    size_t i = 0;
    while (i < diff->count && strcmp(diff->servers[i].address, address) != 0)
        i++;
    if (i == diff->count)
        diff->servers[diff->count++].address = address;
    return i;
}

static int open_side(struct side *side, struct hg_ringdiff *diff,
                     const struct hg_conf_upstream *conf)
{
    char why[HG_RING_WHY_BYTES];
    struct hg_ring_conf ring;
    *side = (struct side){0};
    side->servers = calloc(conf->servers_count, sizeof *side->servers);
    side->places = calloc(conf->servers_count, sizeof *side->places);
    if (side->servers == NULL || side->places == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < conf->servers_count; i++) {
        const char *address = conf->servers[i].address.text;
        side->servers[i] = (struct hg_ring_server){address, (uint32_t)conf->servers[i].weight};
        side->places[i] = place_of(diff, address);
    }
    hg_upstream_ring_conf(&ring, conf);
    ring.servers = side->servers;
    ring.count = (uint32_t)conf->servers_count;
    side->ring = hg_ring_new(&ring, NULL, why);
    return side->ring != NULL ? 0 : -EINVAL;
}

static void compare(struct hg_ringdiff *diff, const struct side *before, const struct side *after,
                    uint64_t keys, uint64_t until_us)
{
    char text[48];
    while (diff->keys < keys) {
        if (diff->keys % KEYS_A_LOOK == 0 && diff->keys > 0 && hg_now_us() >= until_us)
            return;
        int len = snprintf(text, sizeof text, "sample-key-%llu", (unsigned long long)diff->keys);
        const struct hg_span key = hg_span(text, (size_t)len);
        size_t was = before->places[hg_ring_of(before->ring, key)];
        size_t is = after->places[hg_ring_of(after->ring, key)];
        diff->servers[was].before++;
        diff->servers[is].after++;
        diff->moved += was != is;
        diff->keys++;
    }
}

int hg_ringdiff_make(struct hg_ringdiff *diff, const struct hg_conf_upstream *before,
                     const struct hg_conf_upstream *after, uint64_t keys, uint64_t until_us)
{
    struct side was = {0}, is = {0};
    *diff = (struct hg_ringdiff){0};
    diff->servers = calloc(before->servers_count + after->servers_count, sizeof *diff->servers);
    int rc = diff->servers != NULL ? open_side(&was, diff, before) : -ENOMEM;
    if (rc == 0)
        rc = open_side(&is, diff, after);
    if (rc == 0)
        compare(diff, &was, &is, keys, until_us);
    close_side(&was);
    close_side(&is);
    if (rc != 0)
        hg_ringdiff_fini(diff);
    return rc;
}

void hg_ringdiff_fini(struct hg_ringdiff *diff)
{
    free(diff->servers);
    diff->servers = NULL;
}
