// solo - one server in the hands of the test, and one or two workers with a store over it
// SPDX-License-Identifier: BSD-3-Clause
#ifndef SOLO_H
#define SOLO_H

#include "rig.h"

struct solo {
    struct rig rigs[2];
    struct fake fake;
    struct hg_ring_server server;
    struct hg_remote_conf conf;
    struct hg_upstream_shared *shared;
    struct hg_store *stores[2];
    uint32_t workers;
    struct bench bench;
};

/* Sets everything up but the stores, so that the configuration can be changed. */
void solo_init(struct solo *solo, uint32_t workers);
/* Makes the stores; each worker may have `share` connections. */
void solo_start(struct solo *solo, uint32_t share);
void solo_fini(struct solo *solo);
/* No connection is closed for being silent, however slow the machine. */
void solo_bear_silence(struct solo *solo);

uint64_t solo_stat(struct solo *solo, enum hg_upstream_stat stat);
enum hg_breaker_state solo_breaker(struct solo *solo);
/* A get of the first worker; any call of any worker. */
enum hg_submit solo_ask(struct solo *solo, struct note *note, const char *key);
enum hg_submit solo_ask_of(struct solo *solo, uint32_t worker, struct note *note, enum hg_op op,
                           const char *key);
/* One connection of each worker, up and idle. */
void solo_warm_up(struct solo *solo);

#endif
