// dialect - how one protocol of servers says requests and reads replies, for back/link
// SPDX-License-Identifier: BSD-3-Clause
//
// A link knows nothing of what it carries but this table: requests are answered one by one, in
// their order. A dialect keeps no state but what `reader_new` makes for a link; it may be part of a
// larger struct that says how its store wants things said.
#ifndef HG_BACK_DIALECT_H
#define HG_BACK_DIALECT_H

#include <stdbool.h>
#include <stdint.h>

#include "back/identity.h"
#include "back/store.h"
#include "base/attr.h"
#include "base/codec.h"
#include "io/out.h"

#define HG_DIALECT_HEAD_BYTES 24 /* so many bytes of a reply say how long it is */

/* Why a server asks for a request to be said again, somewhere or some time: it did nothing. */
enum hg_again {
    HG_AGAIN_NO,
    HG_AGAIN_NOSCRIPT, /* with the script itself */
    HG_AGAIN_MOVED,    /* at again_address, which owns the slot again_slot from now on */
    HG_AGAIN_ASK,      /* at again_address, this once, after ASKING */
    HG_AGAIN_TRYAGAIN, /* a little later: the keys are on the move */
    HG_AGAIN_LOADING,  /* much later: it reads its data in */
    HG_AGAIN_READONLY, /* at another server: this one is a replica */
    HG_AGAIN_DOWN      /* the cluster is incomplete */
};

struct hg_reply {
    uint64_t total_bytes; /* of the reply, see decode */
    uint32_t opaque;      /* must be that of the oldest request without a reply */
    uint8_t tag;          /* must be that of the same request */
    uint8_t again;        /* enum hg_again; then `result` is what to say if it is not said again */
    uint16_t again_slot;
    struct hg_span again_address; /* HOST:PORT, or :PORT of the same host */
    struct hg_result result;
};

/* What the oldest request without a reply expects. */
struct hg_due {
    bool any;   /* false: nothing, a reply is one too many */
    bool plain; /* just success or an error: a step of a login, or what goes before a request */
    uint8_t tag;
    uint32_t opaque;
};

struct hg_dialect {
    const char *name;
    /* A login can be said on a connection that has one already; only an identity with something to
       say can take it over. */
    bool can_rebind;
    /* Queues the request of `call` in `out`: its head in one piece, first. False, and nothing
       queued, if it cannot be said: *ret_fault says why. *ret_tag is given back with the reply.
       *ret_before, 0 when it is called, is the number of plain replies that come before the one to
       the request. */
    bool (*encode)(const struct hg_dialect *dialect, struct hg_out *out, const struct hg_call *call,
                   uint32_t opaque, uint8_t *ret_tag, uint8_t *ret_before,
                   enum hg_fault *ret_fault);
    /* Is there something to be said before a connection is `identity`'s? */
    bool (*has_login)(const struct hg_dialect *dialect, const struct hg_identity *identity);
    /* Queues what makes the connection `identity`'s and ready; `rebind`: it has been somebody
       else's; `probe`: something must be asked in any case. Returns how many replies follow, all of
       which must be success: at least 1 unless there is no login and no probe. */
    uint32_t (*encode_login)(const struct hg_dialect *dialect, struct hg_out *out,
                             const struct hg_identity *identity, bool rebind, bool probe,
                             uint32_t opaque);
    /* Changes the opaque of a request of which the first HG_DIALECT_HEAD_BYTES are at `head`; NULL
       where requests carry none. */
    void (*restamp)(uint8_t *head, uint32_t opaque);
    /* What a connection needs to read replies with; NULL functions: nothing. */
    void *(*reader_new)(uint32_t max_bytes);
    void (*reader_free)(void *reader);
    /* Looks at the `have` bytes at `bytes`. HG_OK: a reply ends after total_bytes of them; spans
       point into `bytes` or the reader and hold until the next call; result.blob and result.server
       are left NULL. HG_MORE: total_bytes is the length of the reply, which is wanted in one piece,
       or HG_DIALECT_HEAD_BYTES while that is not known (and fewer are there), or 0: the reader has
       taken them all. HG_BAD: not a reply, not one that `due` can have, or one of more than
       `max_bytes`. */
    enum hg_codec (*decode)(const struct hg_dialect *dialect, void *reader, const uint8_t *bytes,
                            size_t have, uint32_t max_bytes, const struct hg_due *due,
                            struct hg_reply *ret_reply);
};

/* memcached's binary protocol. */
extern const struct hg_dialect hg_dialect_memcached;

#endif
