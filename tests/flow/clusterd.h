// clusterd - a real Redis Cluster of the test's own: redis-server processes on free ports of
// 127.0.0.1
// SPDX-License-Identifier: BSD-3-Clause
//
// Nodes 0 .. 2 are masters with a third of the slots each, 3 .. 5 their replicas; more can be
// added. Everything blocks, with a bound. The processes die with the test, their folder goes with
// it.
#ifndef CLUSTERD_H
#define CLUSTERD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>
#include <hiredis/hiredis.h>

#define CLUSTERD_NODES   8
#define CLUSTERD_MASTERS 3

struct clusterd_node {
    pid_t pid;
    uint16_t port, bus_port;
    char address[32];
    char id[64];
    redisContext *context; /* for what the test says to it */
};

struct clusterd {
    char folder[64];
    uint32_t count;
    struct clusterd_node nodes[CLUSTERD_NODES];
};

/* False, and a line for the test driver that skips everything, when there is no redis-server of
   version 7 or later. */
bool clusterd_is_installed(void);
/* Starts three masters and three replicas and returns when all of them say that all is well. */
void clusterd_init(struct clusterd *cluster);
void clusterd_fini(struct clusterd *cluster);

/* Starts one more node, a master without slots, and lets it join; its number. */
uint32_t clusterd_add(struct clusterd *cluster);
/* SIGKILL, and waits for the end. */
void clusterd_kill(struct clusterd *cluster, uint32_t node);
/* Starts it again, with what it knew of the cluster. */
void clusterd_relaunch(struct clusterd *cluster, uint32_t node);
/* Returns when every node that runs says cluster_state:ok and knows `owner` for the slot. */
void clusterd_wait(struct clusterd *cluster, uint32_t slot, uint32_t owner);
/* Returns when every node that runs knows of a replica of each of three masters. */
void clusterd_wait_replicas(struct clusterd *cluster);
/* Returns when every node names all others by this host (NULL: by none) in CLUSTER SLOTS. */
void clusterd_wait_hosts(struct clusterd *cluster, const char *host);
/* Returns when no other node names this one. */
void clusterd_wait_without(struct clusterd *cluster, uint32_t node);

/* A command; its reply is to be freed. Fails the test when there is none, or an error. */
redisReply *clusterd_ask(struct clusterd *cluster, uint32_t node, const char *format, ...);
/* The same, for its effect. */
void clusterd_do(struct clusterd *cluster, uint32_t node, const char *format, ...);
/* The master that owns the slot, as `witness` says. */
uint32_t clusterd_owner(struct clusterd *cluster, uint32_t witness, uint32_t slot);
/* Does this node say that it is a master? */
bool clusterd_is_master(struct clusterd *cluster, uint32_t node);

/* A slot is moved in three steps: opened at both ends, keys moved (at most `max`; how many were),
   closed: every node that runs is told, and agrees. */
void clusterd_open_slot(struct clusterd *cluster, uint32_t slot, uint32_t from, uint32_t to);
uint32_t clusterd_move_keys(struct clusterd *cluster, uint32_t slot, uint32_t from, uint32_t to,
                            uint32_t max);
void clusterd_close_slot(struct clusterd *cluster, uint32_t slot, uint32_t to);

#endif
