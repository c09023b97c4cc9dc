// tight - a scene whose bucket has few units
// SPDX-License-Identifier: BSD-3-Clause
#ifndef TIGHT_H
#define TIGHT_H

#include "scene.h"

/* A bucket "tight" with so many units a slot, in which everybody starts; a store that obeys. */
static inline void open_tight(struct scene *s, uint64_t units)
{
    scene_init(s);
    stage_bucket(&s->stage, "tight", 0, units);
    s->stage.anonymous_bucket = "tight";
    scene_open(s);
    s->store->answers = true;
}

static inline struct hg_bucket *tight(struct scene *s)
{
    return stage_find(&s->stage, "tight");
}

static inline struct hg_lane *lane(struct scene *s)
{
    return &tight(s)->lanes[0];
}

static inline uint64_t used(struct scene *s)
{
    struct hg_credit_view view;
    hg_credit_view(&s->stage.node, &tight(s)->credit, &view);
    return view.used;
}

static inline void say_hello(struct scene *s, const uint16_t *codes)
{
    client_add_hello(&s->client, 7777, codes);
    scene_send(s);
    scene_expect(s, HG_OPCODE_HELLO, 0, 7777);
}

/* Sends a delete (1 unit). */
static inline void ask(struct scene *s, uint32_t opaque)
{
    client_ask(&s->client, HG_OPCODE_DELETE, "k", opaque);
}

static inline void ask_and_get(struct scene *s, uint32_t opaque)
{
    ask(s, opaque);
    scene_expect(s, HG_OPCODE_DELETE, 0, opaque);
}

#endif
