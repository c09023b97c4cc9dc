// fakestore - a store in the hands of a test: it answers what, when and in which order it is told
// SPDX-License-Identifier: BSD-3-Clause
#include "fakestore.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POISON 0xdd

static struct fakestore *at(struct hg_store *store)
{
    return HG_CONTAINER_OF(store, struct fakestore, store);
}

static struct kept *kept_at(struct hg_list *node)
{
    return HG_CONTAINER_OF(node, struct kept, node);
}

static unsigned length(const struct hg_list *list)
{
    unsigned n = 0;
    for (const struct hg_list *node = list->next; node != list; node = node->next)
        n++;
    return n;
}

unsigned fakestore_pending(const struct fakestore *store)
{
    return length(&store->pending);
}

unsigned fakestore_waiting(const struct fakestore *store)
{
    return length(&store->waiting);
}

static void *must_alloc(size_t bytes)
{
    void *room = malloc(bytes > 0 ? bytes : 1);
    if (room == NULL)
        abort();
    return room;
}

static struct kept *keep(struct fakestore *store, struct hg_call *call)
{
    struct kept *kept = must_alloc(sizeof *kept);
    memset(kept, 0, sizeof *kept);
    hg_list_init(&kept->node);
    kept->store = store;
    kept->call = call;
    kept->op = call->op;
    kept->serial = ++store->serial;
    kept->expiry = call->expiry;
    kept->item_flags = call->item_flags;
    kept->cas = call->cas;
    kept->delta = call->delta;
    kept->initial = call->initial;
    assert(call->key.len < sizeof kept->key && call->prefix.len < sizeof kept->prefix);
    memcpy(kept->key, call->key.at, call->key.len);
    if (call->prefix.len > 0)
        memcpy(kept->prefix, call->prefix.at, call->prefix.len);
    kept->value = must_alloc(call->value.len);
    kept->value_len = call->value.len;
    if (call->value.len > 0)
        memcpy(kept->value, call->value.at, call->value.len);
    if (call->blob != NULL && call->value.len > 0) {
        const uint8_t *data = call->blob->data;
        kept->in_blob = call->value.at >= data && call->value.at < data + call->blob->len;
        assert(kept->in_blob);
    }
    if (call->after != NULL) {
        assert(call->after->key_hash == call->key_hash);
        if (call->after->place.store == &store->store) {
            struct kept *after = call->after->place.extra;
            assert(after != NULL && after->call == call->after && !after->waiting);
            kept->after = after->serial;
        }
    }
    call->place.store = &store->store;
    call->place.extra = kept;
    return kept;
}

/* The store forgets the call, which is told what became of it afterwards. */
static struct hg_call *let_go(struct kept *kept)
{
    struct hg_call *call = kept->call;
    hg_list_remove(&kept->node);
    call->place.extra = NULL;
    call->place.pending = call->place.waiting = false;
    free(kept->value);
    free(kept);
    return call;
}

static enum hg_submit submit(struct hg_store *base, struct hg_call *call)
{
    struct fakestore *store = at(base);
    assert(!call->place.pending && !call->place.waiting);
    store->submits++;
    bool wait = store->must_wait != NULL ? store->must_wait(store, call)
                                         : fakestore_pending(store) >= store->room;
    struct kept *kept = keep(store, call);
    if (wait) {
        kept->waiting = call->place.waiting = true;
        hg_list_append(&store->waiting, &kept->node);
        return HG_SUBMIT_WAIT;
    }
    call->place.pending = true;
    call->sent_us = call->now_us;
    hg_list_append(&store->pending, &kept->node);
    if (store->on_submit != NULL)
        store->on_submit(store, kept);
    else if (store->answers)
        fakestore_obey(kept);
    return HG_SUBMIT_TAKEN;
}

static uint32_t server_of(struct hg_store *base, const struct hg_call *call)
{
    const struct fakestore *store = at(base);
    if (store->servers == 0)
        return 0;
    uint8_t last = call->key.len > 0 ? call->key.at[call->key.len - 1] : 0;
    if (last < '0' || last > '9')
        return HG_SERVER_NONE;
    return ((uint32_t)(last - '0') + store->moved) % store->servers;
}

const char *fakestore_server(unsigned server)
{
    static const char *const names[] = {"fake:0", "fake:1", "fake:2", "fake:3", "fake:4",
                                        "fake:5", "fake:6", "fake:7", "fake:8", "fake:9"};
    return names[server];
}

static const char *server_name(struct hg_store *base, uint32_t server)
{
    return at(base)->servers == 0 ? "" : fakestore_server(server);
}

static void strand(struct fakestore *store, const struct hg_call *call)
{
    if (!store->strands || call->ticket == 0)
        return;
    unsigned kind = (unsigned)(call->ticket & 0xff) - 1;
    assert(store->stranded[kind] < FAKESTORE_STRANDED);
    store->tickets[kind][store->stranded[kind]++] = call->ticket;
    hg_store_strand(&store->store, server_of(&store->store, call), call->ticket, 1);
}

void fakestore_late_at(struct fakestore *store, unsigned kind, unsigned server)
{
    assert(store->stranded[kind] > 0);
    uint64_t ticket = store->tickets[kind][0];
    store->stranded[kind]--;
    memmove(store->tickets[kind], store->tickets[kind] + 1, store->stranded[kind] * sizeof ticket);
    hg_store_strand(&store->store, server, ticket, -1);
}

void fakestore_late(struct fakestore *store, unsigned kind)
{
    fakestore_late_at(store, kind, 0);
}

static void cancel(struct hg_store *base, struct hg_call *call)
{
    struct kept *kept = call->place.extra;
    assert(kept != NULL && kept->call == call && kept->store == at(base));
    assert(call->place.pending != call->place.waiting);
    at(base)->cancels++;
    if (call->place.pending)
        strand(at(base), call);
    (void)let_go(kept);
    if (at(base)->on_cancel != NULL)
        at(base)->on_cancel(at(base));
}

static const char *where(struct hg_store *base, struct hg_span prefix, struct hg_span key)
{
    (void)base;
    (void)prefix;
    (void)key;
    return "fake:1";
}

static void drain(struct hg_store *base)
{
    at(base)->draining = true;
}

static bool drained(struct hg_store *base)
{
    return hg_list_empty(&at(base)->pending) && hg_list_empty(&at(base)->waiting);
}

static void free_store(struct hg_store *base)
{
    struct fakestore *store = at(base);
    struct hg_list *node;
    while ((node = hg_list_first(&store->pending)) != NULL)
        fakestore_fault(kept_at(node), HG_FAULT_LOST);
    while ((node = hg_list_first(&store->waiting)) != NULL)
        fakestore_fault(kept_at(node), HG_FAULT_LOST);
    for (unsigned kind = 0; kind < HG_COUNT_OF(store->stranded); kind++)
        while (store->stranded[kind] > 0)
            fakestore_late(store, kind);
    if (store->on_free != NULL)
        store->on_free(store);
    hg_loop_unhook(&store->cleanup_hook);
    hg_loop_unhook(&store->send_hook);
    free(store->view);
    free(store);
}

static void on_cleanup(struct hg_hook *hook)
{
    struct fakestore *store = HG_CONTAINER_OF(hook, struct fakestore, cleanup_hook);
    if (store->view_len > 0)
        memset(store->view, POISON, store->view_len);
    store->view_len = 0;
}

static void on_send(struct hg_hook *hook)
{
    struct fakestore *store = HG_CONTAINER_OF(hook, struct fakestore, send_hook);
    if (store->on_send != NULL)
        store->on_send(store);
}

static const struct hg_store_ops ops = {
    .kind = "fake",
    .submit = submit,
    .cancel = cancel,
    .server_of = server_of,
    .server_name = server_name,
    .where = where,
    .drain = drain,
    .drained = drained,
    .free = free_store,
};

#define VIEW_BYTES (8u << 20)

struct fakestore *fakestore_new(struct hg_worker *worker)
{
    struct fakestore *store = must_alloc(sizeof *store);
    memset(store, 0, sizeof *store);
    store->store.ops = &ops;
    store->worker = worker;
    store->room = SIZE_MAX;
    hg_list_init(&store->pending);
    hg_list_init(&store->waiting);
    hg_loop_hook(&worker->loop, HG_STAGE_BACKENDS, &store->send_hook, on_send);
    hg_loop_hook(&worker->loop, HG_STAGE_CLEANUP, &store->cleanup_hook, on_cleanup);
    return store;
}

struct kept *fakestore_find(struct fakestore *store, const char *key)
{
    struct hg_list *lists[] = {&store->pending, &store->waiting};
    for (unsigned i = 0; i < HG_COUNT_OF(lists); i++)
        HG_LIST_EACH(node, lists[i])
        {
            if (strcmp(kept_at(node)->key, key) == 0)
                return kept_at(node);
        }
    return NULL;
}

struct kept *fakestore_first(struct fakestore *store)
{
    struct hg_list *node = hg_list_first(&store->pending);
    return node != NULL ? kept_at(node) : NULL;
}

struct kept *fakestore_nth(struct fakestore *store, unsigned n)
{
    struct hg_list *node = store->pending.next;
    while (n-- > 0)
        node = node->next;
    assert(node != &store->pending);
    return kept_at(node);
}

void fakestore_finish(struct kept *kept, const struct hg_result *result)
{
    kept->store->done++;
    struct hg_call *call = let_go(kept);
    call->on_done(call, result);
}

void fakestore_say(struct kept *kept, uint16_t status)
{
    fakestore_finish(kept, &(struct hg_result){.status = status, .cas = 99, .server = "fake:1"});
}

void fakestore_fault(struct kept *kept, enum hg_fault fault)
{
    if (fault == HG_FAULT_TIMEOUT && !kept->waiting)
        strand(kept->store, kept->call);
    fakestore_finish(kept, &(struct hg_result){.fault = fault, .server = "fake:1"});
}

static struct hg_result found(struct hg_span value)
{
    return (struct hg_result){.status = HG_STATUS_SUCCESS,
                              .item_flags = 7,
                              .cas = 99,
                              .value = value,
                              .item_bytes = (uint32_t)value.len,
                              .server = "fake:1"};
}

void fakestore_give(struct kept *kept, const void *value, size_t len)
{
    /* A copy that goes at once, so that nobody may refer to it. */
    void *copy = must_alloc(len);
    memcpy(copy, value, len);
    struct hg_result result = found(hg_span(copy, len));
    fakestore_finish(kept, &result);
    memset(copy, POISON, len);
    free(copy);
}

void fakestore_give_blob(struct kept *kept, const void *value, size_t len)
{
    struct hg_blob *blob = hg_blob_borrow(&kept->store->worker->blobs, len + 28);
    if (blob == NULL)
        abort();
    memset(blob->data, POISON, 28);
    memcpy(blob->data + 28, value, len);
    blob->len = len + 28;
    struct hg_result result = found(hg_span(blob->data + 28, len));
    result.blob = blob;
    fakestore_finish(kept, &result);
    hg_blob_unref(blob);
}

void fakestore_give_view(struct kept *kept, const void *value, size_t len)
{
    struct fakestore *store = kept->store;
    if (store->view == NULL) {
        store->view = must_alloc(VIEW_BYTES);
        store->view_cap = VIEW_BYTES;
    }
    assert(store->view_len + len <= store->view_cap);
    uint8_t *to = store->view + store->view_len;
    memcpy(to, value, len);
    store->view_len += len;
    struct hg_result result = found(hg_span(to, len));
    result.until_turn_end = true;
    fakestore_finish(kept, &result);
}

void fakestore_obey(struct kept *kept)
{
    char value[300];
    switch (kept->op) {
    case HG_OP_GET:
    case HG_OP_GAT:
        snprintf(value, sizeof value, "v:%s", kept->key);
        fakestore_give(kept, value, strlen(value));
        return;
    case HG_OP_INCREMENT:
    case HG_OP_DECREMENT:
        fakestore_finish(kept, &(struct hg_result){.counter = 42, .cas = 99, .server = "fake:1"});
        return;
    default:
        fakestore_say(kept, HG_STATUS_SUCCESS);
    }
}

void fakestore_obey_all(struct fakestore *store)
{
    struct kept *kept;
    while ((kept = fakestore_first(store)) != NULL)
        fakestore_obey(kept);
}

void fakestore_call_room(struct kept *kept)
{
    kept->store->rooms++;
    struct hg_call *call = let_go(kept);
    call->on_room(call);
}
