// tlslisten - TLS of the listeners: certificates read at the start and with every reload
// SPDX-License-Identifier: BSD-3-Clause
//
// Loading reads every file, and fails before anything is in force; putting cannot fail. Connections
// and handshakes under way keep the certificate that they began with. Which listeners there are,
// and which of them speak TLS, is settled at the start.
#ifndef HG_APP_TLSLISTEN_H
#define HG_APP_TLSLISTEN_H

#include "app/conf.h"
#include "front/handshake.h"

struct hg_process;
struct hg_job;
struct hg_listeners;

struct hg_tlslisten; /* what runs: the process's */
struct hg_tlsset;    /* rules by listener, loaded and not yet in force */

/* Reads the certificates that `conf` names; warns of those that are over. 0, or -errno with the
   reason in `why`: listener, file, fault. */
HG_MUST_USE int hg_tlsset_load(const struct hg_conf *conf, struct hg_tlsset **ret, char why[512]);
void hg_tlsset_free(struct hg_tlsset *set); /* NULL is allowed */

/* When all listeners have been added, with their number in `conf`: *ret is NULL when none speaks
   TLS. 0, or -errno with `why`. The main thread. */
HG_MUST_USE int hg_tlslisten_open(const struct hg_conf *conf, struct hg_front *front,
                                  struct hg_listeners *listeners, struct hg_tlslisten **ret,
                                  char why[512]);
/* All of these allow NULL for `tls`. */
HG_MUST_USE int hg_tlslisten_start(struct hg_tlslisten *tls);
/* Puts the rules in force for those who come from now on; empties the set. From housekeeping. */
void hg_tlslisten_put(struct hg_tlslisten *tls, struct hg_tlsset *set);
/* The limits of handshakes are those of `conf`. */
void hg_tlslisten_follow(struct hg_tlslisten *tls, const struct hg_conf *conf);
/* Handshakes under way. */
unsigned hg_tlslisten_now(const struct hg_tlslisten *tls);
/* Before the workers stop. */
void hg_tlslisten_stop(struct hg_tlslisten *tls);
void hg_tlslisten_free(struct hg_tlslisten *tls);

/* Counters of all threads together. */
void hg_tlslisten_sum(const struct hg_tlslisten *tls, struct hg_handshake_stats *ret);
/* When the certificate that ends first does, in seconds since 1970; UINT64_MAX: there is none. */
uint64_t hg_tlslisten_expires_s(const struct hg_tlslisten *tls);
/* Rows of `stat` and of `stat threads`. */
void hg_tlslisten_stats(const struct hg_tlslisten *tls, struct hg_job *job);
void hg_tlslisten_thread_stats(const struct hg_tlslisten *tls, struct hg_job *job);

#endif
