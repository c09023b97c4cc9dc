// instance - a worker's stores: opened on demand, exchanged when their upstream changes
// SPDX-License-Identifier: BSD-3-Clause
//
//   no instance ──first request──► current ──another generation is listed──► old ──quiet, all──►
//   freed
//
// An old instance carries out what it was given, and what follows from that; nothing new is given
// to it. Servers may be another worker's (back/relay.h): so it is freed only when the instances of
// all workers have nothing to do any more. That ends, since every call has a deadline. Meanwhile
// both have their connections. Worker's thread only, but for hg_worker_give_generation.
#ifndef HG_FRONT_INSTANCE_H
#define HG_FRONT_INSTANCE_H

#include "front/worker.h"

struct hg_gate;
struct hg_gate_part;

struct hg_instance {
    struct hg_list node; /* of an old one: in worker->old_instances */
    struct hg_store *store;
    struct hg_generation *generation; /* counted */
    bool quiet;                       /* not counted in generation->busy any more */
    struct hg_gate *gate;             /* of its upstream */
    struct hg_gate_part **parts;      /* of its servers' tickets, by number; NULL: not used yet */
    uint32_t part_count;
    struct hg_gate_part *nowhere; /* of what goes to no single server; NULL: not used yet */
};

/* The worker's own instance of the upstream, opened at first use; NULL when that fails. An old one
   of an upstream that is not listed any more, for what was begun before. */
struct hg_instance *hg_worker_instance(struct hg_worker *worker, struct hg_upstream *upstream);

/* The worker's directory is another: instances whose generation it does not list get old, and the
   others take over its settings. */
void hg_instances_adopt(struct hg_worker *worker);

/* Frees the old ones that are done. Once a turn, while there are any. */
void hg_instances_close_old(struct hg_worker *worker);

/* Frees all, whatever is under way. */
void hg_instances_close(struct hg_worker *worker);

#endif
