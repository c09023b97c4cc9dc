// login - from a fresh connection to one that may send a tenant's requests
// SPDX-License-Identifier: BSD-3-Clause
//
// HELLO, SASL and SelectBucket, one after the other and each waited for: this happens before
// anything is timed. The socket stays non-blocking.
#ifndef HG_LOAD_LOGIN_H
#define HG_LOAD_LOGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "load/options.h"

struct Gsasl;
struct hg_tls;

/* libgsasl's context, NULL when it cannot be set up; may be shared by all logins. */
HG_MUST_USE struct Gsasl *hg_load_login_new(void);
void hg_load_login_free(struct Gsasl *sasl);

/* Does what the tenant asks for; each reply is waited for at most `timeout_ms`. False: `ret_why`
 * says what was refused. `tls`: through that, or NULL. `sasl` may be NULL where the tenant has no
 * user. */
HG_MUST_USE bool hg_load_login(struct Gsasl *sasl, int fd, struct hg_tls *tls,
                               const struct hg_load_tenant *tenant, int timeout_ms, char *ret_why,
                               size_t why_bytes);

#endif
