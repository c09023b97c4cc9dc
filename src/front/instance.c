// instance - a worker's stores: opened on demand, exchanged when their upstream changes
// SPDX-License-Identifier: BSD-3-Clause
#include "front/instance.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "back/identity.h"
#include "back/rows.h"
#include "front/gate.h"

static struct hg_instance *instance_at(struct hg_list *node)
{
    return HG_CONTAINER_OF(node, struct hg_instance, node);
}

static struct hg_gate *gate_of(struct hg_worker *worker, struct hg_upstream *upstream)
{
    struct hg_gate **gate = &worker->gates[upstream->slot];
    if (*gate == NULL)
        *gate = hg_gate_new(worker, upstream);
    return *gate;
}

static void free_gate(struct hg_worker *worker, unsigned slot)
{
    hg_gate_free(worker->gates[slot]);
    worker->gates[slot] = NULL;
}

static struct hg_instance *open_instance(struct hg_worker *worker, struct hg_generation *generation)
{
    struct hg_upstream *upstream = generation->upstream;
    bool is_first = worker->gates[upstream->slot] == NULL;
    struct hg_instance *instance = calloc(1, sizeof *instance);
    if (instance == NULL)
        return NULL;
    instance->gate = gate_of(worker, upstream);
    instance->store = instance->gate != NULL ? upstream->open(generation, worker) : NULL;
    if (instance->store == NULL) {
        if (is_first)
            free_gate(worker, upstream->slot);
        free(instance);
        return NULL;
    }
    hg_list_init(&instance->node);
    instance->store->on_strand = hg_gate_on_strand;
    instance->store->on_move = hg_gate_on_move;
    instance->store->strand_ctx = instance;
    instance->generation = hg_generation_ref(generation);
    atomic_fetch_add_explicit(&generation->busy, 1, memory_order_acq_rel);
    return instance;
}

/* Frees the store, but not the gate of its upstream. */
static void free_instance(struct hg_instance *instance)
{
    hg_list_remove(&instance->node);
    instance->store->ops->free(instance->store);
    hg_gate_forget(instance);
    if (!instance->quiet)
        atomic_fetch_sub_explicit(&instance->generation->busy, 1, memory_order_acq_rel);
    hg_generation_unref(instance->generation);
    free(instance);
}

static struct hg_instance *find_old(struct hg_worker *worker, const struct hg_upstream *upstream)
{
    HG_LIST_EACH(node, &worker->old_instances)
    if (instance_at(node)->generation->upstream == upstream)
        return instance_at(node);
    return NULL;
}

static struct hg_instance *find_generation(struct hg_worker *worker,
                                           const struct hg_generation *generation)
{
    HG_LIST_EACH(node, &worker->old_instances)
    if (instance_at(node)->generation == generation)
        return instance_at(node);
    return NULL;
}

/* The one that another worker's summons opened before this worker knew that its generation is the
   current one: a worker has no two of a generation. NULL: there is none. */
static struct hg_instance *take_early(struct hg_worker *worker,
                                      const struct hg_generation *generation)
{
    struct hg_instance *instance = find_generation(worker, generation);
    if (instance == NULL)
        return NULL;
    assert(!instance->quiet); /* its generation is listed */
    hg_list_remove(&instance->node);
    return instance;
}

struct hg_instance *hg_worker_instance(struct hg_worker *worker, struct hg_upstream *upstream)
{
    struct hg_instance *instance = worker->instances[upstream->slot];
    if (instance != NULL) /* a slot is used again only when every worker has let go */
        return instance->generation->upstream == upstream ? instance : NULL;
    struct hg_generation *generation = hg_directory_generation(worker->directory, upstream);
    if (generation == NULL)
        return find_old(worker, upstream);
    instance = take_early(worker, generation);
    if (instance == NULL)
        instance = open_instance(worker, generation);
    if (instance == NULL)
        return NULL;
    worker->instances[upstream->slot] = instance;
    worker->stores[upstream->slot] = instance->store;
    return instance;
}

struct hg_store *hg_worker_store(struct hg_worker *worker, struct hg_upstream *upstream)
{
    struct hg_instance *instance = hg_worker_instance(worker, upstream);
    return instance != NULL ? instance->store : NULL;
}

static bool is_of(const struct hg_instance *instance, const struct hg_store *store,
                  uint64_t generation)
{
    return instance != NULL && instance->store == store &&
           instance->generation->number == generation;
}

uint32_t hg_worker_identity(const struct hg_worker *worker, const struct hg_lane *lane,
                            const struct hg_store *store)
{
    const struct hg_upstream *upstream = lane->bucket->upstream;
    bool known = is_of(worker->instances[upstream->slot], store, lane->generation);
    for (const struct hg_list *node = worker->old_instances.next;
         !known && node != &worker->old_instances; node = node->next)
        known = is_of(HG_CONTAINER_OF(node, struct hg_instance, node), store, lane->generation);
    return known ? lane->identity : HG_IDENTITY_NONE;
}

static void get_old(struct hg_worker *worker, struct hg_instance *instance)
{
    unsigned slot = instance->generation->upstream->slot;
    worker->instances[slot] = NULL;
    worker->stores[slot] = NULL;
    hg_list_append(&worker->old_instances, &instance->node);
}

void hg_instances_adopt(struct hg_worker *worker)
{
    for (unsigned slot = 0; slot < HG_UPSTREAMS_MAX; slot++) {
        struct hg_instance *instance = worker->instances[slot];
        if (instance == NULL)
            continue;
        struct hg_generation *generation = instance->generation;
        if (hg_directory_generation(worker->directory, generation->upstream) == generation)
            generation->upstream->refresh(generation, instance->store);
        else
            get_old(worker, instance);
    }
}

/* ---- the end of old ones ---- */

static bool has_other(const struct hg_worker *worker, const struct hg_instance *instance)
{
    unsigned slot = instance->generation->upstream->slot;
    if (worker->instances[slot] != NULL)
        return true;
    HG_LIST_EACH(node, &worker->old_instances)
    {
        struct hg_instance *other = instance_at(node);
        if (other != instance && other->generation->upstream->slot == slot)
            return true;
    }
    return false;
}

/* Rows may wait before their gates, where the store does not know of them. */
static bool is_done(const struct hg_worker *worker, const struct hg_instance *instance)
{
    return instance->store->ops->drained(instance->store) &&
           !hg_rows_uses(worker->tables.rows, instance->store);
}

static void close_if_done(struct hg_worker *worker, struct hg_instance *instance)
{
    struct hg_generation *generation = instance->generation;
    unsigned slot = generation->upstream->slot;
    if (atomic_load_explicit(&generation->listed, memory_order_acquire) > 0 ||
        !is_done(worker, instance))
        return;
    /* Nobody gives it anything new; but what others have under way may come here. */
    if (!instance->quiet) {
        instance->quiet = true;
        atomic_fetch_sub_explicit(&generation->busy, 1, memory_order_acq_rel);
    }
    if (atomic_load_explicit(&generation->busy, memory_order_acquire) > 0)
        return;
    bool last = !has_other(worker, instance);
    if (last && hg_gate_in_use(worker->gates[slot]))
        return;
    free_instance(instance);
    if (last)
        free_gate(worker, slot);
}

void hg_instances_close_old(struct hg_worker *worker)
{
    HG_LIST_EACH(node, &worker->old_instances)
    close_if_done(worker, instance_at(node));
}

void hg_instances_close(struct hg_worker *worker)
{
    while (!hg_list_empty(&worker->old_instances))
        free_instance(instance_at(hg_list_first(&worker->old_instances)));
    for (unsigned slot = 0; slot < HG_UPSTREAMS_MAX; slot++) {
        if (worker->instances[slot] != NULL)
            free_instance(worker->instances[slot]);
        worker->instances[slot] = NULL;
        worker->stores[slot] = NULL;
        free_gate(worker, slot);
    }
}

/* ---- summons ---- */

struct generation_letter {
    struct hg_letter letter;
    struct hg_generation *generation;
};

/* Another worker's instance has calls for this worker's, which it never had: of an old generation,
   or of one that this worker does not know yet to be the current one. */
static void open_other(struct hg_worker *worker, struct hg_generation *generation)
{
    if (find_generation(worker, generation) != NULL)
        return;
    struct hg_instance *instance = open_instance(worker, generation);
    if (instance != NULL)
        hg_list_append(&worker->old_instances, &instance->node);
}

static void on_generation_letter(struct hg_letter *letter, void *receiver)
{
    struct generation_letter *given = HG_CONTAINER_OF(letter, struct generation_letter, letter);
    struct hg_worker *worker = receiver;
    struct hg_generation *generation = given->generation;
    if (worker->stopping)
        ; /* it opens nothing any more */
    else if (hg_directory_generation(worker->directory, generation->upstream) == generation)
        (void)hg_worker_store(worker, generation->upstream);
    else if (atomic_load_explicit(&generation->busy, memory_order_acquire) > 0)
        open_other(worker, generation);
    hg_generation_unref(generation);
    free(given);
}

int hg_worker_give_generation(struct hg_worker *worker, struct hg_generation *generation)
{
    struct generation_letter *given = malloc(sizeof *given);
    if (given == NULL)
        return -ENOMEM;
    given->letter.deliver = on_generation_letter;
    given->generation = hg_generation_ref(generation);
    hg_mailbox_post(&worker->mailbox, &given->letter);
    return 0;
}
