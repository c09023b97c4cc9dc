// scene - the usual stage of a test: one worker, one client, one store
// SPDX-License-Identifier: BSD-3-Clause
#ifndef SCENE_H
#define SCENE_H

#include "stage.h"

struct scene {
    struct stage stage;
    struct client client;
    struct fakestore *store;
};

/* Makes the stage; the test may change its settings, then scene_open. */
static inline void scene_init(struct scene *scene)
{
    stage_init(&scene->stage, 1);
}

static inline void scene_open(struct scene *scene)
{
    stage_open(&scene->stage);
    stage_connect(&scene->stage, 0, &scene->client);
    scene->store = stage_store(&scene->stage);
    stage_run(&scene->stage);
}

static inline void scene_start(struct scene *scene)
{
    scene_init(scene);
    scene_open(scene);
}

/* Closes the client; no session may be left then, and nothing else either. */
static inline void scene_close(struct scene *scene)
{
    client_close(&scene->client);
    stage_run(&scene->stage);
    assert_int_equal(stage_sessions(&scene->stage), 0);
    stage_close(&scene->stage);
}

static inline struct reply scene_expect(struct scene *scene, uint8_t opcode, uint16_t status,
                                        uint32_t opaque)
{
    return stage_expect(&scene->stage, &scene->client, opcode, status, opaque);
}

/* Sends what the client has collected, whole, and lets the worker look at it. */
static inline void scene_send(struct scene *scene)
{
    PATIENCE_WHILE(!client_send(&scene->client))
    stage_run(&scene->stage);
    stage_run(&scene->stage);
}

#endif
