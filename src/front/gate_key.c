// gate_key - how many tickets of a server the requests for one key may have, worker's side
// SPDX-License-Identifier: BSD-3-Clause
//
// Decisions are those of core/keyshare. A request that waits for its key's share is neither in the
// tenant's line nor backlog of its server: it waits for nobody but its own kind.
#include <stdlib.h>

#include "front/bind.h"
#include "front/gate_in.h"
#include "front/heldkey.h"

/* ---- whose key has a share ---- */

/* Only one that is long enough, of a connection that is not exempt, where binds are looked at. */
static bool is_limited(const struct hg_gate_pass *pass)
{
    const struct hg_request *request = pass->request;
    const struct hg_bucket *bucket = request->lane->bucket;
    unsigned least = atomic_load_explicit((_Atomic unsigned *)(uintptr_t)&bucket->bind_min_bytes,
                                          memory_order_relaxed);
    if (atomic_load_explicit((_Atomic int *)(uintptr_t)&bucket->bind_mode, memory_order_relaxed) ==
            HG_MODE_OFF ||
        request->session->privileges & HG_PRIVILEGE_BIT(HG_PRIVILEGE_UNTHROTTLED))
        return false;
    return pass == &request->pass ? hg_bind_has_key(request, least) : pass->key_len >= least;
}

static bool is_observed(const struct hg_gate_pass *pass)
{
    return atomic_load_explicit(&pass->request->lane->bucket->bind_mode, memory_order_relaxed) ==
           HG_MODE_OBSERVE;
}

/* Requests of the key, or of others with a like hash, that are engaged on other workers. */
static uint32_t elsewhere(const struct hg_gate_line *in, uint32_t id)
{
    const struct hg_gate_holder *holder = in->holder;
    uint32_t sum = 0;
    for (unsigned w = 0; w < holder->worker_count; w++)
        if (w != in->worker->index)
            sum += hg_keyshare_count(&holder->workers[w].keys, id);
    return sum;
}

/* The mean while nobody waits, or the median, whichever is less: neither is spoilt by a few that
   take long. Of a tenant that nothing is known of, the median of all. */
uint64_t hg_gate_usual_us(const struct hg_gate_pass *pass)
{
    uint64_t mean_us = hg_gate_work_of(pass->place)->usual_us;
    uint64_t median_us = hg_gate_usual_of(pass->place)->usual.us;
    if (mean_us == 0 || (median_us != 0 && median_us < mean_us))
        mean_us = median_us;
    return mean_us != 0 ? mean_us : pass->gate->keys.usual.us;
}

/* ---- records ---- */

void hg_gate_make_room(struct hg_gate_line *in)
{
    struct hg_heldkey *held = in->keys.spare == NULL ? calloc(1, sizeof *held) : NULL;
    if (held != NULL)
        hg_keyshare_give_room(&in->keys, &held->record);
}

/* Those that nobody needs any more; one stays. */
static void free_spare(struct hg_gate_line *in)
{
    while (in->keys.spare != NULL && in->keys.spare->next != NULL)
        free(hg_heldkey_of(hg_keyshare_take_record(&in->keys)));
}

/* ---- a request ---- */

enum hg_keyshare_verdict hg_gate_ask_key(struct hg_gate_pass *pass, struct hg_gate_line *in,
                                         struct hg_span bytes, struct hg_keyshare_key **ret_key)
{
    *ret_key = NULL;
    if (!is_limited(pass))
        return HG_KEYSHARE_GO;
    const struct hg_keyshare_asks asks = {.id = pass->key.id,
                                          .of = pass->key.of,
                                          .elsewhere = elsewhere(in, pass->key.id),
                                          .answered_us = in->answered_us,
                                          .now_us = in->worker->loop.now_us};
    hg_gate_make_room(in);
    enum hg_keyshare_verdict verdict = hg_keyshare_ask(&in->keys, &asks, ret_key);
    if (*ret_key != NULL)
        hg_heldkey_name(hg_heldkey_of(*ret_key), pass->request->lane->bucket, bytes,
                        is_observed(pass));
    if (verdict == HG_KEYSHARE_GO)
        return verdict;
    if (is_observed(pass)) {
        hg_counter_add(&pass->request->lane->key_share_would, 1);
        return HG_KEYSHARE_GO;
    }
    if (verdict == HG_KEYSHARE_REFUSE)
        hg_gate_refuse_key(pass, in, hg_keyshare_service_us(&in->keys, *ret_key, in->answered_us));
    return verdict;
}

bool hg_gate_may_start(struct hg_gate_pass *pass, struct hg_gate_line *in)
{
    struct hg_keyshare_key *key = pass->key.key;
    if (key == NULL ||
        hg_keyshare_may_start(&in->keys, &pass->key, in->answered_us, in->worker->loop.now_us) ||
        !is_limited(pass) || is_observed(pass))
        return true;
    hg_gate_park_again(pass, in, key);
    return false;
}

void hg_gate_release(struct hg_gate_line *in, struct hg_keyshare_key *key)
{
    struct hg_keyshare_part *part;
    bool any = false;
    while ((part = hg_keyshare_next(&in->keys, key, elsewhere(in, key->id), in->answered_us,
                                    in->worker->loop.now_us)) != NULL) {
        hg_gate_requeue(HG_CONTAINER_OF(part, struct hg_gate_pass, key), in);
        any = true;
    }
    if (any)
        hg_gate_wake_slow(in, in->worker->index);
}

/* ---- time ---- */

/* What one worker has published of a holder. Whether a key is the only one, what requests take, and
   whether the store answers at all, is seen from reads and writes together. */
static void look_at(struct hg_keyshare_view *view, const struct hg_gate_worker *of, bool is_own)
{
    uint64_t usual_us = hg_counter_get(&of->usual_us);
    uint64_t answered_us = hg_counter_get(&of->answered_us);
    view->started += hg_counter_get(&of->tally.started);
    if (answered_us > view->answered_us)
        view->answered_us = answered_us;
    if (is_own)
        return;
    if (usual_us != 0 && (view->usual_us == 0 || usual_us < view->usual_us))
        view->usual_us = usual_us;
}

static struct hg_keyshare_view view_of(const struct hg_gate_line *in)
{
    struct hg_gate_holder *holder = in->holder;
    int64_t size = hg_ticket_size(&holder->ticket), out = hg_ticket_out(&holder->ticket);
    struct hg_keyshare_view view = {
        .now_us = in->worker->loop.now_us,
        .pct = atomic_load_explicit(&holder->key_share_pct, memory_order_relaxed),
        .size = (uint32_t)size,
        .out = (uint32_t)out,
        .workers = holder->worker_count,
        .timeout_us = atomic_load_explicit(&holder->queue_timeout_us, memory_order_relaxed),
    };
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++) {
        const struct hg_gate_holder *of = &in->part->share->holders[kind];
        for (unsigned w = 0; w < of->worker_count; w++)
            look_at(&view, &of->workers[w], of == holder && w == in->worker->index);
    }
    return view;
}

void hg_gate_tick_keys(struct hg_gate_line *in)
{
    struct hg_gate_worker *shown = &in->holder->workers[in->worker->index];
    const struct hg_keyshare_view view = view_of(in);
    hg_counter_set(&shown->usual_us, in->keys.usual.us);
    hg_counter_set(&shown->answered_us, in->answered_us);
    hg_counter_set(&shown->unproven_out, in->keys.unproven_out);
    hg_keyshare_tick(&in->keys, &view);
    for (struct hg_keyshare_key *key = NULL; (key = hg_keyshare_each(&in->keys, key)) != NULL;)
        if (key->waiting > 0)
            hg_gate_release(in, key);
    hg_keyshare_sweep(&in->keys, view.now_us);
    free_spare(in);
}
