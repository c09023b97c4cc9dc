// uptlsconf - what the configuration says of TLS towards servers, as the stores want it
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_APP_UPTLSCONF_H
#define HG_APP_UPTLSCONF_H

#include "app/conf.h"
#include "back/uptls.h"
#include "base/attr.h"

/* What a group `tls` says; the texts are the configuration's. */
struct hg_uptls_conf hg_uptlsconf_of(const struct hg_conf_upstream_tls *tls);

/* Reads the files of all upstreams, to see whether they are any good. 0, or -errno, and `why` names
   the upstream and the file. */
HG_MUST_USE int hg_uptlsconf_try(const struct hg_conf *conf, char why[512]);

#endif
