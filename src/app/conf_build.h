// conf_build - the steps from text to a checked tree; for conf_*.c and state only
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_APP_CONF_BUILD_H
#define HG_APP_CONF_BUILD_H

#include "app/conf_table.h"

/* A tree of defaults with nothing in its lists; NULL when memory is out. */
struct hg_conf *hg_conf_new(const char *file);

/* The lists of a file that gives none: listen, upstreams, tenants. Each 0 or -ENOMEM. */
HG_MUST_USE int hg_conf_default_lists(struct hg_conf *conf);

/* Takes the texts of the command line. 0, -EINVAL with errors, -ENOMEM. */
HG_MUST_USE int hg_conf_override(struct hg_conf *conf, const struct hg_conf_overrides *overrides,
                                 struct hg_conf_errors *errs);

/* Fills an upstream's servers, ring and hash from its configuration string. 0, -EINVAL with errors,
 * -ENOMEM. */
HG_MUST_USE int hg_conf_ring_parse(struct hg_conf_upstream *upstream, const char *file,
                                   struct hg_conf_errors *errs);

/* Reads the files that passwords stand in. 0, -EINVAL with errors, -ENOMEM. */
HG_MUST_USE int hg_conf_secrets_read(struct hg_conf *conf, struct hg_conf_errors *errs);

/* Can the files that upstreams' TLS is made of be read? 0, -EINVAL with errors, -ENOMEM. */
HG_MUST_USE int hg_conf_uptls_read(const struct hg_conf *conf, struct hg_conf_errors *errs);

/* Gives the options of upstreams that nobody has set the defaults that compat_overload says; part
   of hg_conf_resolve. 0 or -ENOMEM. */
HG_MUST_USE int hg_conf_compat_apply(struct hg_conf *conf);

/* Computes what follows from the options: upstreams by index, inherited limits, key prefixes,
   paths. Faults (an unknown upstream) are errors. 0, -EINVAL, -ENOMEM. Fields that are set already
   stay (a prefix, once given to a bucket, must not change because another one came). */
HG_MUST_USE int hg_conf_resolve(struct hg_conf *conf, struct hg_conf_errors *errs);

/* The rules between options. insecure turns the one about listeners into a warning. 0 or -EINVAL.
 */
HG_MUST_USE int hg_conf_check(const struct hg_conf *conf, bool insecure,
                              struct hg_conf_errors *errs);
/* The part of it that opcodes can break: limits of the node, tickets, and the tenants. */
HG_MUST_USE int hg_conf_check_tenants(const struct hg_conf *conf, struct hg_conf_errors *errs);

/* Parts of the two: upstreams by themselves, and as whom tenants go to them. */
void hg_conf_check_upstreams(const struct hg_conf *conf, struct hg_conf_errors *errs);
void hg_conf_check_logins(const struct hg_conf *conf, struct hg_conf_errors *errs);
/* TLS towards the servers of one upstream. */
void hg_conf_check_uptls(const struct hg_conf *conf, const struct hg_conf_upstream *upstream,
                         struct hg_conf_errors *errs);
/* Warns of upstreams that are one place under two names, where tenants' keys meet. */
void hg_conf_check_twins(const struct hg_conf *conf, struct hg_conf_errors *errs);
/* The part about HTTP. */
void hg_conf_check_admin(const struct hg_conf *conf, struct hg_conf_errors *errs);
/* The part about tickets. */
void hg_conf_check_tickets(const struct hg_conf *conf, struct hg_conf_errors *errs);
/* Can a key of one tenant be one of the other's, if both lie in one place? */
bool hg_conf_prefixes_overlap(const struct hg_conf_tenant *a, const struct hg_conf_tenant *b);

/* Where a line stands, for messages: in the file, or nowhere. */
const char *hg_conf_place(const struct hg_conf *conf, unsigned line);
#define HG_CONF_ERROR(conf, line, ...)                                                             \
    hg_conf_errors_add(errs, hg_conf_place(conf, line), line, __VA_ARGS__)
#define HG_CONF_WARN(conf, line, ...)                                                              \
    hg_conf_errors_warn(errs, hg_conf_place(conf, line), line, __VA_ARGS__)

/* The database of its redis upstream that the tenant's keys lie in; 0 with other kinds. */
uint64_t hg_conf_tenant_database(const struct hg_conf *conf, const struct hg_conf_tenant *tenant);

/* Frees what a tenant holds. */
void hg_conf_tenant_fini(struct hg_conf_tenant *tenant);

#endif
