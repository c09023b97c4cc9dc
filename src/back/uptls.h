// uptls - TLS towards the servers of an upstream: the rules, and the certificates of now
// SPDX-License-Identifier: BSD-3-Clause
//
// One for an upstream, shared by all workers. A connection takes the context of the moment; renew
// puts another in its place when the files have changed, which those that are up do not notice.
// From any thread: the mutex is taken for a connection and for a renewal, never for a request.
#ifndef HG_BACK_UPTLS_H
#define HG_BACK_UPTLS_H

#include "base/attr.h"
#include "io/tls.h"

struct hg_uptls;

struct hg_uptls_conf {
    struct hg_tls_conf tls;  /* is_server: false */
    const char *server_name; /* that every server's certificate must have; "": its own host */
};

/* Reads the files. NULL: `why` says what is wrong. */
HG_MUST_USE struct hg_uptls *hg_uptls_new(const struct hg_uptls_conf *conf,
                                          char why[HG_TLS_WHY_BYTES]);
/* Every connection has ended. NULL is allowed. */
void hg_uptls_free(struct hg_uptls *uptls);

/* Reads the files again if one of them was touched: 1: new ones are in force; 0: nothing changed;
   -errno: the old ones stay, `why` says what is wrong. One thread at a time. */
HG_MUST_USE int hg_uptls_renew(struct hg_uptls *uptls, const struct hg_uptls_conf *conf,
                               char why[HG_TLS_WHY_BYTES]);

/* A connection to a server of this host on `fd`; NULL when memory is out. */
HG_MUST_USE struct hg_tls *hg_uptls_begin(struct hg_uptls *uptls, int fd, const char *host);

#endif
